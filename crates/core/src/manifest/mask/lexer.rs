//! Finds the parts of a file with broken syntax that must be masked: line by line, without a tree.

use std::{collections::BTreeSet, ops::Range};

/// The parts of a text with broken syntax that must not be shown. The values of the keys in
/// `open_names` may be shown.
pub(super) fn find_secrets_in_lines(
    text: &str,
    shown_keys: &BTreeSet<String>,
) -> Vec<Range<usize>> {
    let mut lexer = Lexer { shown_keys, parents: Vec::new(), is_lost: false, hidden: Vec::new() };
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        lexer.read_line(line.trim_end(), at);
        at += line.len();
    }
    lexer.hidden
}

/// Reads lines one by one, and hides everything that is uncertain.
struct Lexer<'o> {
    shown_keys: &'o BTreeSet<String>,
    /// The parent keys of the line: their columns, and whether values below them are shown.
    parents: Vec<(usize, bool)>,
    /// Whether a bracket or quote may still be open. Then everything up to the next document is hidden.
    is_lost: bool,
    hidden: Vec<Range<usize>>,
}

impl Lexer<'_> {
    fn hide(&mut self, range: Range<usize>) {
        if !range.is_empty() {
            self.hidden.push(range);
        }
    }

    /// Reads a line that begins at the byte `start`.
    fn read_line(&mut self, line: &str, start: usize) {
        let (line, start) = line
            .strip_prefix('\u{feff}')
            .map_or((line, start), |rest| (rest, start + line.len() - rest.len()));
        if line == "---" || line.starts_with("--- ") {
            self.parents.clear();
            self.is_lost = false;
        }
        let content_column = line.len() - line.trim_start_matches([' ', '\t', '-']).len();
        self.parents.retain(|(column, _)| *column < content_column);
        if self.is_lost || self.parents.iter().any(|(_, is_shown)| !is_shown) {
            // The markers `-` may be part of a value, so hide them too.
            self.hide(start + (line.len() - line.trim_start().len())..start + line.len());
            return;
        }
        let content = &line[content_column..];
        if let Some((key, rest)) = split_key(content) {
            let is_block = rest.trim_start().starts_with(['|', '>']);
            self.parents.push((content_column, self.shown_keys.contains(key) && !is_block));
        }
        let (uncertain, depth) = self.read_flow(content, start + content_column);
        if let Some(uncertain_start) = uncertain {
            self.hide(uncertain_start..start + line.len());
        }
        self.is_lost |= depth > 0;
    }

    /// Reads brackets, keys and words. Returns the byte from which on the content is uncertain, and
    /// the number of open brackets.
    fn read_flow(&mut self, content: &str, start: usize) -> (Option<usize>, usize) {
        let (mut at, mut depth) = (0, 0_usize);
        while let Some(c) = content[at..].chars().next() {
            let rest = &content[at..];
            match c {
                '[' | '{' => depth += 1,
                ']' | '}' => depth = depth.saturating_sub(1),
                ' ' | '\t' | ',' => {}
                _ => {
                    let Some((key, value)) = split_key(rest) else {
                        return (Some(start + at), depth);
                    };
                    let value_start = content.len() - value.trim_start().len();
                    let value = &content[value_start..];
                    let length =
                        value.find([',', '}', ']']).filter(|_| depth > 0).unwrap_or(value.len());
                    match (self.shown_keys.contains(key), value.starts_with(['{', '['])) {
                        (true, true) => at = value_start,
                        (true, false) if has_only_words(&value[..length]) => {
                            at = value_start + length;
                        }
                        (false, false) if has_only_words(&value[..length]) => {
                            self.hide(start + value_start..start + value_start + length);
                            at = value_start + length;
                        }
                        _ => {
                            self.is_lost |= is_unclosed(value);
                            return (Some(start + value_start), depth);
                        }
                    }
                    continue;
                }
            }
            at += c.len_utf8();
        }
        (None, depth)
    }
}

/// A key before a colon, and the rest of the line.
fn split_key(content: &str) -> Option<(&str, &str)> {
    let length =
        content.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')))?;
    let rest = content[length..].strip_prefix(':')?;
    (length > 0 && (rest.is_empty() || rest.starts_with([' ', '\t'])))
        .then_some((&content[..length], rest))
}

/// True if `value` consists of words only.
fn has_only_words(value: &str) -> bool {
    value.chars().all(|c| c.is_ascii_alphanumeric() || " _-./*".contains(c))
}

/// True if a quote or bracket at the start of `value` may end on another line.
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
