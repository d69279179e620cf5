//! Typing errors that YAML reads as something else, recognised from the faults that they cause.
//!
//! `slips.yaml` lists them, the surest first: what the lines around a fault look like, and what to
//! do. If a line alone proves little, the text is parsed again with the slip corrected: the slip is
//! the cause only if the parser then gets further.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::{LazyLock, OnceLock},
};

use regex::Regex;
use serde::Deserialize;

use super::{Findings, LocatedFault, texts, words};
use crate::{
    text::{count, fill, is_name, nearest},
    yaml,
};

/// Which lines are searched for a slip.
#[derive(Clone, Copy, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum SlipSearch {
    /// The line of the fault.
    #[default]
    Line,
    /// That line, and those before and after it.
    Near,
    /// The line of the fault joined with the one before.
    Two,
    /// The document up to the fault.
    Document,
    /// Each line from the fault upwards, alone and together with all lines down to the fault.
    Above,
}

/// A slip of the pen: how a text shows it, and what to do.
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

/// A regular expression of the table, compiled when it is first needed: most runs need none. Without
/// a text it matches everything.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(in crate::manifest) struct Pattern {
    text: Option<&'static str>,
    #[serde(skip)]
    compiled: OnceLock<Option<Regex>>,
}

impl Pattern {
    /// The expression; a test compiles all.
    fn compiled(&self) -> Option<&Regex> {
        let text = self.text?;
        self.compiled.get_or_init(|| Regex::new(text).ok()).as_ref()
    }

    /// The part of `text` that it finds, or of this the part that is called `at` or is the first in parentheses.
    pub(in crate::manifest) fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        if self.text.is_none() {
            return Some(&text[..0]);
        }
        let found = self.compiled()?.captures(text)?;
        Some(found.name("at").or_else(|| found.get(1)).or_else(|| found.get(0))?.as_str())
    }

    pub(in crate::manifest) fn fits(&self, text: &str) -> bool {
        self.find(text).is_some()
    }

    /// Replaces each match in `text` by `replacement`.
    pub(super) fn replace(&self, text: &str, replacement: &str) -> Option<String> {
        Some(self.compiled()?.replace_all(text, replacement).into_owned())
    }

    /// True if it can be compiled.
    #[cfg(test)]
    pub(super) fn is_valid(&self) -> bool {
        self.text.is_none() || self.compiled().is_some()
    }
}

/// Slips by what a line shows, and files that are no YAML by their first one.
static SLIPS: LazyLock<BTreeMap<&str, Vec<Slip>>> =
    LazyLock::new(|| yaml::built_in!("manifest/faults/slips"));

impl Slip {
    /// The part of `text` that shows it: without a comment, and without blanks at the ends, unless it is
    /// about more than a line.
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

/// The code of the faults of a second document without `---` before it.
const DUPLICATE_KEY_CODE: &str = "duplicate-key";

/// The codes of faults that another fault in the same line may cause.
const CONSEQUENCE_CODES: [&str; 5] = ["missing", "null", "reference", "type", "unknown-field"];

/// Parts of a text with this many bytes or more are not searched.
const MAX_PART_BYTES: usize = 1_000;

/// The number of lines above a fault that may be its cause.
const MAX_LINES_ABOVE: usize = 40;

/// The longest document that is read again with something mended.
const MAX_REREAD_BYTES: usize = 1 << 16;

impl Findings {
    /// Adds the typing error to faults, if the lines show it.
    pub(in crate::manifest) fn explain_slips(&mut self, text: &str) {
        if self.is_empty() {
            return;
        }
        self.drop_excess();
        self.join_second_document(text);
        if self.recognise_file(text) {
            return;
        }
        self.drop_consequences(text);
        let mut sole_causes = Vec::new();
        for finding in &mut self.items {
            if finding.code == "yaml-tag" {
                finding.position =
                    find_tag(text, finding.position.start).unwrap_or(finding.position.clone());
                sole_causes.push((
                    line_of(text, finding.position.start),
                    finding.position.start,
                    finding.code,
                ));
            }
            let surroundings = SurroundingLines::new(text, &finding.position);
            if surroundings.and_then(|context| context.explain(finding)) == Some(true) {
                sole_causes.push((
                    line_of(text, finding.position.start),
                    finding.position.start,
                    finding.code,
                ));
            }
        }
        self.items.retain(|finding| {
            let own_cause =
                (line_of(text, finding.position.start), finding.position.start, finding.code);
            sole_causes.contains(&own_cause)
                || !sole_causes.iter().any(|(line, _, code): &(usize, usize, &str)| {
                    *line == own_cause.0
                        && (*code == own_cause.2 || CONSEQUENCE_CODES.contains(&own_cause.2))
                })
        });
        // In braces, each piece of a text with commas looks like a key.
        self.items.dedup_by(|next, finding| {
            let between = text.get(finding.position.start..next.position.start).unwrap_or("\n");
            [&*next, &*finding].iter().all(|of| of.code == "yaml-key")
                && next.message == finding.message
                && !between.contains('\n')
        });
        self.items.dedup_by(|next, finding| {
            next.position == finding.position && next.message == finding.message
        });
    }

    /// Replaces all faults by one if the text has Git conflict marks or is not YAML.
    fn recognise_file(&mut self, text: &str) -> bool {
        let mark = "<<<<<<< ";
        let conflict = text.find(&format!("\n{mark}")).map(|at| at + 1);
        let conflict = conflict.or_else(|| text.starts_with(mark).then_some(0));
        let (texts, at, what) = if let Some(at) = conflict.filter(|_| text.contains("\n>>>>>>> ")) {
            (texts::GIT_CONFLICT, at..at + mark.trim().len(), "")
        } else if self.items.iter().any(|fault| ["document", "syntax"].contains(&fault.code)) {
            let mut lines = text
                .lines()
                .filter(|line| !line.trim().is_empty() && !line.trim().starts_with(['#', '/']));
            let first = lines.next().unwrap_or_default();
            let next = lines.next().unwrap_or_default();
            let mut files = SLIPS["files"].iter();
            let file = files.find(|file| file.find(first).is_some() && next.contains(file.next));
            let Some(file) = file else { return false };
            let at = text.find(first).map_or(0..0, |at| at..at + first.len());
            (texts::NO_YAML, at, file.help)
        } else {
            return false;
        };
        self.items = vec![LocatedFault::new(texts, at, words![what])];
        true
    }

    /// Drops the faults of the lines after one that is no YAML: it makes a text of all of them.
    fn drop_consequences(&mut self, text: &str) {
        let mut explained_ends = Vec::new();
        for finding in self.items.iter().filter(|finding| finding.code == "document") {
            let context = SurroundingLines::new(text, &finding.position);
            if context.and_then(|context| context.explain(&mut finding.clone())).is_some() {
                explained_ends.push(finding.position.end);
            }
        }
        self.items.retain(|finding| {
            let explained_end = explained_ends.iter().rfind(|end| **end <= finding.position.start);
            let between = explained_end.and_then(|end| text.get(*end..finding.position.start));
            finding.code != "syntax" || between.is_none_or(|between| between.contains("\n---"))
        });
    }

    /// Joins the faults that a second `kind` and the keys after it cause.
    fn join_second_document(&mut self, text: &str) {
        let is_first =
            |at: &Range<usize>| text[..at.start].chars().next_back().is_none_or(|c| c == '\n');
        let second = self.items.iter().position(|finding| {
            let key = text.get(finding.position.clone()).unwrap_or_default();
            finding.code == DUPLICATE_KEY_CODE && is_first(&finding.position) && key == "kind"
        });
        let Some(at) = second else { return };
        let first = &mut self.items[at];
        let start = first.position.start;
        let before = first.related.as_ref().and_then(|at| text.get(at.end..start));
        if before.is_some_and(|before| before.matches('\n').count() < 2) {
            first.help("keep one of the two: a document has one kind");
            return;
        }
        first.message = "a second document begins here".to_owned();
        first.help("write `---` on a line of its own in front of it");
        self.items.retain(|finding| {
            finding.code != DUPLICATE_KEY_CODE
                || finding.position.start <= start
                || !is_first(&finding.position)
        });
    }
}

/// The lines of a text around a fault.
struct SurroundingLines<'t> {
    text: &'t str,
    /// The byte of the fault.
    fault_start: usize,
    lines: Vec<&'t str>,
    /// The number of its line.
    line_number: usize,
    /// The last line above it that is not empty.
    previous_number: Option<usize>,
}

impl<'t> SurroundingLines<'t> {
    fn new(text: &'t str, at: &Range<usize>) -> Option<Self> {
        text.get(..at.start)?;
        let number = line_of(text, at.start);
        let lines: Vec<_> = text.lines().collect();
        let mut previous_lines = (0..number).rev();
        let before =
            previous_lines.find(|at| lines.get(*at).is_some_and(|line| !line.trim().is_empty()));
        Some(Self {
            text,
            fault_start: at.start,
            lines,
            line_number: number,
            previous_number: before,
        })
    }

    /// The line with this number, from 0; after the last one an empty one at the end of the text.
    fn line(&self, number: usize) -> &'t str {
        self.lines.get(number).copied().unwrap_or(&self.text[self.text.len()..])
    }

    /// The byte at which a part of the text starts.
    fn start(&self, part: &str) -> usize {
        part.as_ptr().addr() - self.text.as_ptr().addr()
    }

    /// The range of a part of the text.
    fn range(&self, part: &str) -> Range<usize> {
        self.start(part)..self.start(part) + part.len()
    }

    /// The lines from `first` to `last`.
    fn lines_between(&self, first: usize, last: usize) -> &'t str {
        let last = self.line(last);
        self.text.get(self.start(self.line(first))..self.start(last) + last.len()).unwrap_or(last)
    }

    /// The end of the line of the fault.
    fn line_end(&self) -> usize {
        let line = self.line(self.line_number);
        self.start(line) + line.len()
    }

    /// The document that the fault is in.
    fn document(&self) -> Range<usize> {
        let (above, below) = self.text.split_at(self.line_end());
        let start = above.rfind("\n---").map_or(0, |line| line + 1);
        start..below.find("\n---").map_or(self.text.len(), |line| above.len() + line)
    }

    /// The parts of the text that may show a slip, each with the number of its first line.
    fn parts(&self, slip: &Slip) -> Vec<(usize, &'t str)> {
        let line = (self.line_number, self.line(self.line_number));
        match (slip.over, self.previous_number) {
            (SlipSearch::Line, _) | (SlipSearch::Two, None) => vec![line],
            (SlipSearch::Near, before) => {
                let numbers = [self.line_number, self.line_number + 1].into_iter().chain(before);
                numbers.map(|number| (number, self.line(number))).collect()
            }
            (SlipSearch::Two, Some(before)) => {
                vec![(self.line_number, self.lines_between(before, self.line_number))]
            }
            (SlipSearch::Document, _) => {
                vec![(0, &self.text[self.document().start..self.line_end()])]
            }
            (SlipSearch::Above, before) => {
                let last = before.unwrap_or(self.line_number);
                let numbers =
                    (self.line_number.saturating_sub(MAX_LINES_ABOVE)..=self.line_number).rev();
                let parts = numbers.flat_map(|number| {
                    [(number, self.line(number)), (number, self.lines_between(number, last))]
                });
                parts.filter(|(_, part)| part.len() < MAX_PART_BYTES).collect()
            }
        }
    }

    /// Explains a fault by the first row of `list` that the text shows. Returns true if the slip
    /// causes all faults in its line; `None` if no row fits.
    fn explain_by_list(&self, list: &str, finding: &mut LocatedFault) -> Option<bool> {
        let at = &finding.position;
        let marked = self.text.get(at.clone()).unwrap_or_default();
        let help = finding.help.as_deref().unwrap_or_default();
        let mut possible = SLIPS[list].iter().filter(|slip| {
            (slip.codes.is_empty() || slip.codes.contains(&finding.code))
                && self.text[at.start..].starts_with(slip.at)
                && self.text[..at.start].ends_with(slip.after)
                && help.contains(slip.instead_of)
                && slip.marked.fits(marked)
        });
        let (slip, number, sign) = possible.find_map(|slip| {
            let is_near = slip.over != SlipSearch::Line || finding.code != "unknown-field";
            self.parts(slip).into_iter().find_map(|(number, part)| {
                let sign = slip.find(part).filter(|sign| is_near || marked.contains(*sign))?;
                self.can_be_mended(slip, part).then_some((slip, number, sign))
            })
        })?;
        let words = words![line = number + 1, key = sign];
        finding.help(fill(slip.help, words));
        if !slip.message.is_empty() {
            finding.message = fill(slip.message, words);
        }
        if !slip.message.is_empty() && slip.line.text.is_some() {
            finding.position = self.range(sign);
        }
        Some(slip.alone)
    }

    /// True if the text can be read further with `part` written as the slip wants it.
    fn can_be_mended(&self, slip: &Slip, part: &str) -> bool {
        let mut mended = slip.mends.iter().filter_map(|mend| slip.line.replace(part, mend));
        slip.mends.is_empty() || mended.any(|mended| self.parses_further_with(part, &mended))
    }

    /// True if the parser finds no fault up to the end of the line after `part` is replaced by
    /// `mended`.
    fn parses_further_with(&self, part: &str, mended: &str) -> bool {
        let (line, end) = (self.line(self.line_number), self.line_end());
        let Range { start: above, end: below } = self.document();
        let (start, rest) = (self.start(part), self.start(part) + part.len());
        if below - above > MAX_REREAD_BYTES || !(above..=below).contains(&start) || rest > below {
            return false;
        }
        // Apart from the mended part, more may be wrong after the fault.
        let fault_end = if rest <= self.start(line) { self.fault_start } else { end };
        let mended = [&self.text[above..start], mended, &self.text[rest..below]].concat();
        let faults = yaml::parse(&mended).faults;
        let mut faults = faults.iter().filter(|fault| fault.code != "no-effect");
        faults.all(|fault| mended.len() - fault.span.start < below - fault_end)
    }

    /// Gives a fault its best explanation, as [`explain_by_list`](Self::explain_by_list) does.
    fn explain(&self, finding: &mut LocatedFault) -> Option<bool> {
        let is_alias =
            finding.code == "syntax" && self.text[finding.position.start..].starts_with('*');
        (self.explain_by_list("lines", finding))
            .or_else(|| self.explain_unindented(finding))
            .or_else(|| {
                let help =
                    suggest_anchor(self.text, finding.position.start).filter(|_| is_alias)?;
                finding.help(help);
                Some(false)
            })
            .or_else(|| self.explain_by_list("later", finding))
            .or_else(|| self.explain_indentation(finding))
            .or_else(|| self.explain_by_list("last", finding))
    }

    /// Explains a text after `|` or `>` that is not indented.
    fn explain_unindented(&self, finding: &mut LocatedFault) -> Option<bool> {
        let head = (0..self.line_number).rev().find(|number| is_block_head(self.line(*number)))?;
        let first = (head + 1..=self.line_number)
            .map(|number| self.line(number))
            .find(|line| !line.trim().is_empty())?;
        let key = self.line(head).trim_start_matches([' ', '-']);
        let is_text = indentation_width(first) <= self.start(key) - self.start(self.line(head));
        let name = key.split(':').next().filter(|name| is_text && is_name(name))?;
        let is_key = first.trim_start().split_once(':').is_some_and(|(key, _)| is_name(key));
        let is_empty = finding.code == "unknown-field" && self.previous_number == Some(head);
        if !is_empty && (is_key || finding.code != "syntax") {
            return None;
        }
        finding.message = "the text after `|` or `>` is not indented".to_owned();
        finding.position = self.range(name);
        finding.help(format!("indent its lines, from line {} on, deeper than the key", head + 2));
        Some(false)
    }

    /// Explains a line that is indented a little less or more than one above that it belongs beside.
    fn explain_indentation(&self, finding: &mut LocatedFault) -> Option<bool> {
        let line = self.line(self.line_number);
        let current_width = indentation_width(line);
        let key = line.trim_start_matches([' ', '-']).split(": ").next().unwrap_or_default();
        if key.contains(' ') || finding.code != "syntax" {
            return None;
        }
        let columns: BTreeSet<_> = (self.line_number.saturating_sub(MAX_LINES_ABOVE)
            ..self.line_number)
            .map(|number| self.line(number))
            .flat_map(|line| {
                [indentation_width(line), line.len() - line.trim_start_matches([' ', '-']).len()]
            })
            .collect();
        let blanks = &line[..current_width];
        let near = columns.into_iter().rev().filter(|column| {
            (1..=2).contains(&column.abs_diff(current_width))
                && self.parses_further_with(blanks, &" ".repeat(*column))
        });
        let near = near.min_by_key(|column| column.abs_diff(current_width))?;
        let space_count = count(near, "space");
        finding.message = "the indentation does not fit the lines above".to_owned();
        finding.help(match near {
            0 => format!("remove the spaces before line {}", self.line_number + 1),
            _ => format!(
                "indent line {} by {space_count}, like the lines next to it",
                self.line_number + 1
            ),
        });
        Some(false)
    }
}

/// The indentation of a line.
fn indentation_width(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// Help for the unknown alias at the byte `start`, if an anchor above has nearly its name. What looks
/// like one may be a part of a secret, so it is not quoted.
fn suggest_anchor(text: &str, start: usize) -> Option<String> {
    let alias = first_word(text.get(start + 1..)?);
    if text[start..].split('&').skip(1).any(|name| first_word(name) == alias) {
        return Some("set the anchor where it is first used: it is further down".to_owned());
    }
    let begin = text[..start].rfind("\n---").unwrap_or_default();
    let anchors = text[begin..start].match_indices('&').filter_map(|(at, _)| {
        let name = first_word(&text[begin + at + 1..start]);
        Some((name, begin + at)).filter(|(name, _)| is_name(name))
    });
    let anchors: Vec<_> = anchors.collect();
    let near = nearest(alias, anchors.iter().map(|(name, _)| *name))?;
    let (_, at) = anchors.iter().rfind(|(name, _)| *name == near)?;
    Some(format!("did you mean the anchor in line {}?", line_of(text, *at) + 1))
}

/// The text up to the first character that no name of an anchor has.
fn first_word(text: &str) -> &str {
    text.split(|c: char| c.is_whitespace() || ",]}".contains(c)).next().unwrap_or_default()
}

/// The number of the line of the byte `at`, from 0.
fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count()
}

/// The place of the unknown tag on the node that begins at the byte `start`.
fn find_tag(text: &str, start: usize) -> Option<Range<usize>> {
    let before = text.get(..start)?;
    let begin = before.rfind('!')?;
    let tag = before[begin..].split(char::is_whitespace).next()?;
    let between = &before[begin + tag.len()..];
    let is_of_value = between.chars().all(|c| c.is_whitespace() || "|>+-".contains(c));
    is_of_value.then(|| begin..begin + tag.len())
}

/// True if a line ends with the head of a text that goes over several lines.
fn is_block_head(line: &str) -> bool {
    let head = line.trim_end().trim_end_matches(['+', '-']);
    head.ends_with(": |") || head.ends_with(": >")
}

/// All expressions of the table.
#[cfg(test)]
pub(super) fn patterns() -> impl Iterator<Item = &'static Pattern> {
    SLIPS.values().flatten().flat_map(|slip| [&slip.line, &slip.marked])
}
