//! Finds secrets in a text with broken syntax. Such a text has no parsed tree, so it is read line
//! by line.

use std::{collections::BTreeSet, ops::Range};

use crate::text::looks_like_name;

/// The byte ranges that must not be shown, in a text with broken syntax. The values of keys in
/// `harmless_names` may be shown.
pub(super) fn find_secrets_in_lines(
    text: &str,
    harmless_names: &BTreeSet<String>,
) -> Vec<Range<usize>> {
    let mut masker = LineMasker {
        harmless_names,
        parents: Vec::new(),
        may_be_unclosed: false,
        hidden_ranges: Vec::new(),
    };
    let mut line_start = 0;
    for line in text.split_inclusive('\n') {
        masker.mask_line(line.trim_end(), line_start);
        line_start += line.len();
    }
    masker.hidden_ranges
}

/// Masks a text line by line. Everything uncertain is hidden.
struct LineMasker<'o> {
    harmless_names: &'o BTreeSet<String>,
    /// The keys that contain the current line. For each key: its column, and whether the values below
    /// it may be shown.
    parents: Vec<(usize, bool)>,
    /// True if a bracket or quote may be open. The text up to the next document is then hidden.
    may_be_unclosed: bool,
    hidden_ranges: Vec<Range<usize>>,
}

impl LineMasker<'_> {
    fn hide(&mut self, range: Range<usize>) {
        if !range.is_empty() {
            self.hidden_ranges.push(range);
        }
    }

    /// Masks a line that begins at the byte `start`.
    fn mask_line(&mut self, line: &str, start: usize) {
        let (line, start) = line.strip_prefix('\u{feff}').map_or((line, start), |stripped_line| {
            (stripped_line, start + line.len() - stripped_line.len())
        });
        if line == "---" || line.starts_with("--- ") {
            self.parents.clear();
            self.may_be_unclosed = false;
        }
        let content_column = line.len() - line.trim_start_matches([' ', '\t', '-']).len();
        self.parents.retain(|(column, _)| *column < content_column);
        if self.may_be_unclosed || self.parents.iter().any(|(_, is_shown)| !is_shown) {
            // `-` may be part of a value, so it is hidden too.
            self.hide(start + (line.len() - line.trim_start().len())..start + line.len());
            return;
        }
        let content = &line[content_column..];
        if let Some((key, value)) = split_key(content) {
            let is_block = value.trim_start().starts_with(['|', '>']);
            self.parents.push((content_column, self.harmless_names.contains(key) && !is_block));
        }
        let (first_uncertain, depth) = self.mask_content(content, start + content_column);
        if let Some(uncertain_start) = first_uncertain {
            self.hide(uncertain_start..start + line.len());
        }
        self.may_be_unclosed |= depth > 0;
    }

    /// Reads the brackets, keys and words of a line, and hides secret values. Returns the byte at
    /// which an uncertain part of the line starts, if any, and the number of open brackets.
    fn mask_content(&mut self, content: &str, start: usize) -> (Option<usize>, usize) {
        let (mut position, mut depth) = (0, 0_usize);
        while let Some(c) = content[position..].chars().next() {
            let remaining_text = &content[position..];
            match c {
                '[' | '{' => depth += 1,
                ']' | '}' => depth = depth.saturating_sub(1),
                ' ' | '\t' | ',' => {}
                _ if remaining_text.strip_prefix("<<: *").is_some_and(looks_like_name) => break,
                _ => {
                    let Some((key, value)) = split_key(remaining_text) else {
                        return (Some(start + position), depth);
                    };
                    let value_start = content.len() - value.trim_start().len();
                    let value = &content[value_start..];
                    let length =
                        value.find([',', '}', ']']).filter(|_| depth > 0).unwrap_or(value.len());
                    match (self.harmless_names.contains(key), value.starts_with(['{', '['])) {
                        (true, true) => position = value_start,
                        (true, false) if has_only_words(&value[..length]) => {
                            position = value_start + length;
                        }
                        (false, false) if has_only_words(&value[..length]) => {
                            self.hide(start + value_start..start + value_start + length);
                            position = value_start + length;
                        }
                        _ => {
                            self.may_be_unclosed |= is_unclosed(value);
                            return (Some(start + value_start), depth);
                        }
                    }
                    continue;
                }
            }
            position += c.len_utf8();
        }
        (None, depth)
    }
}

/// Splits a line into a key and the text after its colon.
fn split_key(content: &str) -> Option<(&str, &str)> {
    let length =
        content.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')))?;
    let value = content[length..].strip_prefix(':')?;
    (length > 0 && (value.is_empty() || value.starts_with([' ', '\t'])))
        .then_some((&content[..length], value))
}

/// True if `value` consists of words only.
fn has_only_words(value: &str) -> bool {
    value.chars().all(|c| c.is_ascii_alphanumeric() || " _-./*".contains(c))
}

/// True if the quote or bracket at the start of `value` may end on another line.
fn is_unclosed(value: &str) -> bool {
    match value.chars().next() {
        Some(quote @ ('"' | '\'')) => {
            value.len() < 2
                || !value.ends_with(quote)
                || value[1..value.len() - 1].contains([quote, '\\'])
        }
        Some('{' | '[') => {
            value.matches(['{', '[']).count() != value.matches(['}', ']']).count()
                || value.contains(['"', '\''])
        }
        _ => false,
    }
}
