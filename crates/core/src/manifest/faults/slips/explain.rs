//! Explains a fault by the typing error (slip) that causes the fault. The lines around the fault
//! show the slip.

use std::{collections::BTreeSet, ops::Range};

use super::{SLIPS, Slip, SlipSearch, line_number_at};
use crate::{
    manifest::faults::{LocatedFault, placeholders},
    text::{count, fill, looks_like_name, nearest},
    yaml,
};

/// Parts of a text of this size in bytes or more are not searched.
const MAX_PART_BYTES: usize = 1_000;

/// The maximum number of lines above a fault that are searched for its cause.
const MAX_LINES_ABOVE: usize = 40;

/// The maximum size in bytes of a document that is parsed again with a correction.
const MAX_REREAD_BYTES: usize = 1 << 16;

/// A fault, and the lines around it.
pub(super) struct FaultContext<'t> {
    text: &'t str,
    /// The first byte of the fault.
    fault_start: usize,
    lines: Vec<&'t str>,
    /// The number of the line of the fault, from 0.
    line_number: usize,
    /// The number of the last line above the fault that is not empty.
    previous_line_number: Option<usize>,
}

impl<'t> FaultContext<'t> {
    pub(super) fn new(text: &'t str, range: &Range<usize>) -> Option<Self> {
        text.get(..range.start)?;
        let line_number = line_number_at(text, range.start);
        let lines: Vec<_> = text.lines().collect();
        let mut lines_above = (0..line_number).rev();
        let previous_line_number = lines_above
            .find(|number| lines.get(*number).is_some_and(|line| !line.trim().is_empty()));
        Some(Self { text, fault_start: range.start, lines, line_number, previous_line_number })
    }

    /// The line with this number, from 0; an empty text after the last line.
    fn line(&self, number: usize) -> &'t str {
        self.lines.get(number).copied().unwrap_or(&self.text[self.text.len()..])
    }

    /// The byte at which `part` starts. `part` must be a slice of the text.
    fn find_start(&self, part: &str) -> usize {
        part.as_ptr().addr() - self.text.as_ptr().addr()
    }

    /// The byte range of `part`, which must be a slice of the text.
    fn find_range(&self, part: &str) -> Range<usize> {
        self.find_start(part)..self.find_start(part) + part.len()
    }

    /// The text of the lines from the number `first` to the number `last`.
    fn join_lines(&self, first: usize, last: usize) -> &'t str {
        let last = self.line(last);
        let range = self.find_start(self.line(first))..self.find_range(last).end;
        self.text.get(range).unwrap_or(last)
    }

    /// The byte at which the line of the fault ends.
    fn line_end(&self) -> usize {
        self.find_range(self.line(self.line_number)).end
    }

    /// The byte range of the document with the fault.
    fn document_range(&self) -> Range<usize> {
        let (text_above, text_below) = self.text.split_at(self.line_end());
        let start = text_above.rfind("\n---").map_or(0, |offset| offset + 1);
        start..text_below.find("\n---").map_or(self.text.len(), |offset| text_above.len() + offset)
    }

    /// The parts of the text to search for `slip`, each with the number of its line.
    fn parts_to_search(&self, slip: &Slip) -> Vec<(usize, &'t str)> {
        let line = (self.line_number, self.line(self.line_number));
        match (slip.over, self.previous_line_number) {
            (SlipSearch::Line, _) | (SlipSearch::Two, None) => vec![line],
            (SlipSearch::Near, previous) => {
                let numbers = [self.line_number, self.line_number + 1].into_iter().chain(previous);
                numbers.map(|number| (number, self.line(number))).collect()
            }
            (SlipSearch::Two, Some(previous)) => {
                vec![(self.line_number, self.join_lines(previous, self.line_number))]
            }
            (SlipSearch::Document, _) => {
                vec![(0, &self.text[self.document_range().start..self.line_end()])]
            }
            (SlipSearch::Above, previous) => {
                let last_number = previous.unwrap_or(self.line_number);
                let numbers =
                    (self.line_number.saturating_sub(MAX_LINES_ABOVE)..=self.line_number).rev();
                let parts = numbers.flat_map(|number| {
                    [(number, self.line(number)), (number, self.join_lines(number, last_number))]
                });
                parts.filter(|(_, part)| part.len() < MAX_PART_BYTES).collect()
            }
        }
    }

    /// Explains a fault with the first slip of the list `list_name` that matches. Returns true if
    /// this slip causes all faults on its line. Returns `None` if no slip matches.
    fn explain_by_list(&self, list_name: &str, finding: &mut LocatedFault) -> Option<bool> {
        let position = &finding.position;
        let marked_text = self.text.get(position.clone()).unwrap_or_default();
        let help = finding.help.as_deref().unwrap_or_default();
        let mut candidates = SLIPS[list_name].iter().filter(|slip| {
            (slip.codes.is_empty() || slip.codes.contains(&finding.code))
                && self.text[position.start..].starts_with(slip.at)
                && self.text[..position.start].ends_with(slip.after)
                && help.contains(slip.instead_of)
                && slip.marked.is_match(marked_text)
        });
        let (slip, line_number, matched_text) = candidates.find_map(|slip| {
            let may_be_outside = slip.over != SlipSearch::Line || finding.code != "unknown-field";
            self.parts_to_search(slip).into_iter().find_map(|(line_number, part)| {
                let matched_text = slip
                    .find(part)
                    .filter(|matched| may_be_outside || marked_text.contains(*matched))?;
                self.correction_helps(slip, part).then_some((slip, line_number, matched_text))
            })
        })?;
        let args = placeholders![line = line_number + 1, key = matched_text];
        finding.set_help(fill(slip.help, args));
        if !slip.message.is_empty() {
            finding.message = fill(slip.message, args);
            // The key is no misspelled field.
            if finding.code == "unknown-field" {
                finding.code = "syntax";
            }
        }
        if !slip.message.is_empty() && slip.line.text.is_some() {
            finding.position = self.find_range(matched_text);
        }
        Some(slip.alone)
    }

    /// True if the parser gets further after a correction of `part`, or if the slip has no
    /// corrections.
    fn correction_helps(&self, slip: &Slip, part: &str) -> bool {
        let mut corrections =
            slip.mends.iter().filter_map(|correction| slip.line.replace(part, correction));
        slip.mends.is_empty() || corrections.any(|corrected| self.parses_further(part, &corrected))
    }

    /// Replaces `part` by `corrected` and parses the document again. Returns true if no fault is
    /// left up to the end of the fault's line.
    fn parses_further(&self, part: &str, corrected: &str) -> bool {
        let (line, line_end) = (self.line(self.line_number), self.line_end());
        let Range { start: document_start, end: document_end } = self.document_range();
        let Range { start: part_start, end: part_end } = self.find_range(part);
        if document_end - document_start > MAX_REREAD_BYTES
            || !(document_start..=document_end).contains(&part_start)
            || part_end > document_end
        {
            return false;
        }
        // If the corrected part is above the line, the text after the fault may have other faults.
        let fault_end = if part_end <= self.find_start(line) { self.fault_start } else { line_end };
        let corrected_text =
            [&self.text[document_start..part_start], corrected, &self.text[part_end..document_end]]
                .concat();
        let faults = yaml::parse(&corrected_text).faults;
        let mut faults = faults.iter().filter(|fault| fault.code != "no-effect");
        faults.all(|fault| corrected_text.len() - fault.span.start < document_end - fault_end)
    }

    /// Explains a fault by the first slip that matches. Returns the same values as
    /// [`explain_by_list`](Self::explain_by_list).
    pub(super) fn explain(&self, finding: &mut LocatedFault) -> Option<bool> {
        let is_alias =
            finding.code == "syntax" && self.text[finding.position.start..].starts_with('*');
        (self.explain_by_list("lines", finding))
            .or_else(|| self.explain_unindented(finding))
            .or_else(|| {
                let help =
                    suggest_anchor(self.text, finding.position.start).filter(|_| is_alias)?;
                finding.set_help(help);
                Some(false)
            })
            .or_else(|| self.explain_by_list("later", finding))
            .or_else(|| self.explain_indentation(finding))
            .or_else(|| self.explain_by_list("last", finding))
    }

    /// Explains the fault of a text after `|` or `>` that is not indented.
    fn explain_unindented(&self, finding: &mut LocatedFault) -> Option<bool> {
        let header_number =
            (0..self.line_number).rev().find(|number| is_block_header(self.line(*number)))?;
        let first_line = (header_number + 1..=self.line_number)
            .map(|number| self.line(number))
            .find(|line| !line.trim().is_empty())?;
        let header_text = self.line(header_number).trim_start_matches([' ', '-']);
        let is_unindented = indentation_width(first_line)
            <= self.find_start(header_text) - self.find_start(self.line(header_number));
        let name =
            header_text.split(':').next().filter(|name| is_unindented && looks_like_name(name))?;
        let is_key =
            first_line.trim_start().split_once(':').is_some_and(|(key, _)| looks_like_name(key));
        let follows_header =
            finding.code == "unknown-field" && self.previous_line_number == Some(header_number);
        if !follows_header && (is_key || finding.code != "syntax") {
            return None;
        }
        finding.message = "the text after `|` or `>` is not indented".to_owned();
        finding.position = self.find_range(name);
        let number = header_number + 2;
        finding.set_help(format!("indent its lines, from line {number} on, deeper than the key"));
        Some(false)
    }

    /// Explains the fault of a line whose indentation is one or two columns off.
    fn explain_indentation(&self, finding: &mut LocatedFault) -> Option<bool> {
        let line = self.line(self.line_number);
        let current_width = indentation_width(line);
        let key = line.trim_start_matches([' ', '-']).split(": ").next().unwrap_or_default();
        if key.contains(' ') || finding.code != "syntax" {
            return None;
        }
        let lines_above = self.line_number.saturating_sub(MAX_LINES_ABOVE)..self.line_number;
        let columns: BTreeSet<_> = lines_above
            .map(|number| self.line(number))
            .flat_map(|line| {
                [indentation_width(line), line.len() - line.trim_start_matches([' ', '-']).len()]
            })
            .collect();
        let indentation = &line[..current_width];
        let near_columns = columns.into_iter().rev().filter(|column| {
            (1..=2).contains(&column.abs_diff(current_width))
                && self.parses_further(indentation, &" ".repeat(*column))
        });
        let nearest_column = near_columns.min_by_key(|column| column.abs_diff(current_width))?;
        let (number, space_count) = (self.line_number + 1, count(nearest_column, "space"));
        finding.message = "the indentation does not fit the lines above".to_owned();
        finding.position = self.find_range(key.split(':').next().unwrap_or(key));
        finding.set_help(match nearest_column {
            0 => format!("remove the spaces before line {number}"),
            _ => format!("indent line {number} by {space_count}, like the lines next to it"),
        });
        Some(false)
    }
}

/// The number of spaces at the start of a line.
fn indentation_width(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// Help for the unknown alias at the byte `start`. There is help if an anchor with the same name
/// follows. There is also help if an anchor with a similar name precedes the alias. The help does
/// not quote the name, because the name may be part of a secret.
fn suggest_anchor(text: &str, start: usize) -> Option<String> {
    let alias = leading_anchor_name(text.get(start + 1..)?);
    if text[start..].split('&').skip(1).any(|name| leading_anchor_name(name) == alias) {
        return Some(
            "define the anchor before its first use: it is defined further down".to_owned(),
        );
    }
    let document_start = text[..start].rfind("\n---").unwrap_or_default();
    let anchors = text[document_start..start].match_indices('&').filter_map(|(anchor_start, _)| {
        let name = leading_anchor_name(&text[document_start + anchor_start + 1..start]);
        Some((name, document_start + anchor_start)).filter(|(name, _)| looks_like_name(name))
    });
    let anchors: Vec<_> = anchors.collect();
    let nearest_name = nearest(alias, anchors.iter().map(|(name, _)| *name))?;
    let (_, anchor_offset) = anchors.iter().rfind(|(name, _)| *name == nearest_name)?;
    Some(format!("did you mean the anchor in line {}?", line_number_at(text, *anchor_offset) + 1))
}

/// The text up to the first character that the name of an anchor must not contain.
fn leading_anchor_name(text: &str) -> &str {
    text.split(|c: char| c.is_whitespace() || ",]}".contains(c)).next().unwrap_or_default()
}

/// True if a line ends with the header of a block text: `|` or `>`, and perhaps a width, `+` or
/// `-`.
fn is_block_header(line: &str) -> bool {
    let is_indicator = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-');
    let header = line.trim_end().trim_end_matches(is_indicator);
    [": |", ": >", "- |", "- >"].iter().any(|end| header.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_block_texts_are_recognised() {
        for line in ["a: |", "  a: >-", "a: |2", "a: >1-", "a: |+2 ", "- |", "  - >-", "- a: |"] {
            assert!(is_block_header(line), "{line}");
        }
        for line in ["a: b|", "a: b", "|", "- b", "a: 1-2", ""] {
            assert!(!is_block_header(line), "{line}");
        }
    }
}
