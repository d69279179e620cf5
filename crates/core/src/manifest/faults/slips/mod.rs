//! Recognises typing errors (slips) in YAML syntax from the faults that they cause.
//!
//! `slips.yaml` lists the slips, the most certain first. Each slip has patterns for the lines
//! around a fault, and a help text. If a pattern alone is not certain, the text is parsed again
//! with the slip corrected. The slip is the cause only if the parser then gets further.

mod explain;

use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{LazyLock, OnceLock},
};

use regex::Regex;
use serde::Deserialize;

use super::{FileFaults, LocatedFault, placeholders, texts};
use crate::yaml;
use explain::FaultContext;

/// The lines that are searched for a slip.
#[derive(Clone, Copy, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum SlipSearch {
    /// The line of the fault.
    #[default]
    Line,
    /// The line of the fault, and the lines before and after it.
    Near,
    /// The line of the fault, joined with the last line above it that is not empty.
    Two,
    /// The document up to the fault.
    Document,
    /// Each line from the fault upwards: alone, and joined with all lines from this line to the
    /// fault.
    Above,
}

/// A typing error: the conditions that recognise the error, and a help text. The head of
/// `slips.yaml` explains the fields.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Slip {
    codes: Vec<&'static str>,
    over: SlipSearch,
    alone: bool,
    line: Pattern,
    mends: Vec<&'static str>,
    at: &'static str,
    after: &'static str,
    instead_of: &'static str,
    marked: Pattern,
    next: &'static str,
    message: &'static str,
    help: &'static str,
}

/// A regular expression of a table. The expression is compiled on first use, because most runs need
/// no pattern. A pattern without a text matches everything.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(in crate::manifest) struct Pattern {
    text: Option<&'static str>,
    #[serde(skip)]
    regex_cell: OnceLock<Option<Regex>>,
}

impl Pattern {
    /// The compiled expression. A test compiles all expressions.
    fn regex(&self) -> Option<&Regex> {
        let text = self.text?;
        self.regex_cell.get_or_init(|| Regex::new(text).ok()).as_ref()
    }

    /// The match in `text`. This is the group `at`, or the first group, or the whole match, in this
    /// order.
    pub(in crate::manifest) fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        if self.text.is_none() {
            return Some(&text[..0]);
        }
        let captures = self.regex()?.captures(text)?;
        Some(captures.name("at").or_else(|| captures.get(1)).or_else(|| captures.get(0))?.as_str())
    }

    pub(in crate::manifest) fn is_match(&self, text: &str) -> bool {
        self.find(text).is_some()
    }

    /// Replaces each match in `text` by `replacement`.
    pub(super) fn replace(&self, text: &str, replacement: &str) -> Option<String> {
        Some(self.regex()?.replace_all(text, replacement).into_owned())
    }
}

/// The lists of `slips.yaml`, by name. The list `files` recognises files in other formats than YAML
/// by their first lines.
static SLIPS: LazyLock<BTreeMap<&str, Vec<Slip>>> =
    LazyLock::new(|| yaml::built_in!("manifest/faults/slips"));

impl Slip {
    /// The part of `text` that matches the pattern. Slips with corrections are searched in the
    /// whole text. Other slips ignore surrounding blanks and, unless they concern two lines,
    /// comments.
    fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        if !self.mends.is_empty() {
            return self.line.find(text.trim_end_matches('\r'));
        }
        let line = if self.over == SlipSearch::Two {
            text
        } else {
            text.split(" #").next().unwrap_or_default()
        };
        self.line.find(line.trim_matches([' ', '\t', '\r']))
    }
}

/// The code of faults about duplicate keys. A second document without `---` before it causes these
/// faults.
const DUPLICATE_KEY_CODE: &str = "duplicate-key";

/// The codes of faults that a slip on the same line may cause.
const CONSEQUENCE_CODES: [&str; 6] =
    ["missing", "null", "reference", "syntax", "type", "unknown-field"];

impl FileFaults {
    /// Explains the faults that a typing error causes, and drops the follow-up faults of the same
    /// error.
    pub(in crate::manifest) fn explain_slips(&mut self, text: &str) {
        if self.is_empty() {
            return;
        }
        self.drop_excess_faults();
        self.explain_missing_separator(text);
        if self.report_file_fault(text) {
            return;
        }
        self.drop_consequences(text);
        let mut sole_causes = Vec::new();
        for finding in &mut self.items {
            if finding.code == "yaml-tag" {
                finding.position =
                    find_tag(text, finding.position.start).unwrap_or(finding.position.clone());
                sole_causes.push(fault_key(text, finding));
            }
            let context = FaultContext::new(text, &finding.position);
            if context.and_then(|context| context.explain(finding)) == Some(true) {
                sole_causes.push(fault_key(text, finding));
            }
        }
        self.items.retain(|finding| {
            let key = fault_key(text, finding);
            let (line, _, code) = key;
            let is_consequence = CONSEQUENCE_CODES.contains(&code);
            sole_causes.contains(&key)
                || !sole_causes.iter().any(|(cause_line, _, cause_code)| {
                    *cause_line == line && (*cause_code == code || is_consequence)
                })
        });
        // In braces, each part of a text with commas looks like a key: keep only the first fault.
        self.items.dedup_by(|next, finding| {
            let gap = text.get(finding.position.start..next.position.start).unwrap_or("\n");
            [&*next, &*finding].iter().all(|fault| fault.code == "yaml-key")
                && next.message == finding.message
                && !gap.contains('\n')
        });
        self.items.dedup_by(|next, finding| {
            next.position == finding.position && next.message == finding.message
        });
    }

    /// If the text has Git conflict markers or is not YAML, replaces all faults by one and returns
    /// true.
    fn report_file_fault(&mut self, text: &str) -> bool {
        let conflict_marker = "<<<<<<< ";
        let marker_start = text.find(&format!("\n{conflict_marker}")).map(|offset| offset + 1);
        let conflict_start =
            marker_start.or_else(|| text.starts_with(conflict_marker).then_some(0));
        let (texts, range, what) = if let Some(start) =
            conflict_start.filter(|_| text.contains("\n>>>>>>> "))
        {
            (texts::GIT_CONFLICT, start..start + conflict_marker.trim().len(), "")
        } else if self.items.iter().any(|fault| ["document", "syntax"].contains(&fault.code)) {
            let mut lines = text
                .lines()
                .filter(|line| !line.trim().is_empty() && !line.trim().starts_with(['#', '/']));
            let first_line = lines.next().unwrap_or_default();
            let second_line = lines.next().unwrap_or_default();
            let mut slips = SLIPS["files"].iter();
            let matching_slip = slips
                .find(|slip| slip.find(first_line).is_some() && second_line.contains(slip.next));
            let Some(file_slip) = matching_slip else { return false };
            let line_range =
                text.find(first_line).map_or(0..0, |offset| offset..offset + first_line.len());
            (texts::NO_YAML, line_range, file_slip.help)
        } else {
            return false;
        };
        self.items = vec![LocatedFault::new(texts, range, placeholders![what])];
        true
    }

    /// Drops syntax errors that follow an explained `document` fault in the same document, because
    /// the explained fault causes them.
    fn drop_consequences(&mut self, text: &str) {
        let mut explained_ends = Vec::new();
        for finding in self.items.iter().filter(|finding| finding.code == "document") {
            let context = FaultContext::new(text, &finding.position);
            if context.and_then(|context| context.explain(&mut finding.clone())).is_some() {
                explained_ends.push(finding.position.end);
            }
        }
        self.items.retain(|finding| {
            let last_end = explained_ends.iter().rfind(|end| **end <= finding.position.start);
            let gap = last_end.and_then(|end| text.get(*end..finding.position.start));
            finding.code != "syntax" || gap.is_none_or(|gap| gap.contains("\n---"))
        });
    }

    /// Replaces the duplicate-key faults of a second document by one fault, if the `---` before it
    /// is missing.
    fn explain_missing_separator(&mut self, text: &str) {
        let is_at_line_start = |range: &Range<usize>| {
            text[..range.start].chars().next_back().is_none_or(|c| c == '\n')
        };
        let second_index = self.items.iter().position(|finding| {
            let marked_text = text.get(finding.position.clone()).unwrap_or_default();
            finding.code == DUPLICATE_KEY_CODE
                && is_at_line_start(&finding.position)
                && marked_text == "kind"
        });
        let Some(index) = second_index else { return };
        let second_fault = &mut self.items[index];
        let start = second_fault.position.start;
        let gap = second_fault.related.as_ref().and_then(|range| text.get(range.end..start));
        if gap.is_some_and(|gap| gap.matches('\n').count() < 2) {
            second_fault.set_help("keep one of the two: a document has one kind");
            return;
        }
        second_fault.message = "a second document begins here".to_owned();
        second_fault.set_help("write `---` on a line of its own in front of it");
        self.items.retain(|finding| {
            finding.code != DUPLICATE_KEY_CODE
                || finding.position.start <= start
                || !is_at_line_start(&finding.position)
        });
    }
}

/// The number of the line (from 0), the first byte and the code of a fault.
fn fault_key(text: &str, fault: &LocatedFault) -> (usize, usize, &'static str) {
    let start = fault.position.start;
    (line_number_at(text, start), start, fault.code)
}

/// The number, from 0, of the line with the byte `offset`.
fn line_number_at(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count()
}

/// The byte range of the tag of the node that begins at the byte `start`.
fn find_tag(text: &str, start: usize) -> Option<Range<usize>> {
    let text_before = text.get(..start)?;
    let tag_start = text_before.rfind('!')?;
    let tag = text_before[tag_start..].split(char::is_whitespace).next()?;
    let gap = &text_before[tag_start + tag.len()..];
    let is_before_value = gap.chars().all(|c| c.is_whitespace() || "|>+-".contains(c));
    is_before_value.then(|| tag_start..tag_start + tag.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Pattern {
        /// True if the pattern can be compiled.
        pub(in crate::manifest::faults) fn is_valid(&self) -> bool {
            self.text.is_none() || self.regex().is_some()
        }
    }

    #[test]
    fn every_pattern_of_the_slips_can_be_compiled() {
        for slip in SLIPS.values().flatten() {
            assert!(slip.line.is_valid() && slip.marked.is_valid(), "{}", slip.help);
        }
    }
}
