//! Typing errors that YAML reads as something else, recognised from the faults that they cause.
//!
//! `slips.yaml` lists them, the surest first: what the lines around a fault look like, and what to do. Where the
//! look of a line proves little, the text is read again with the slip mended: only if that goes further, the
//! slip is the cause.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::{LazyLock, OnceLock},
};

use regex::Regex;
use serde::Deserialize;

use super::{Finding, Findings};
use crate::{
    text::{count, is_name, nearest},
    yaml,
};

/// Which lines are searched for a slip.
#[derive(Clone, Copy, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Over {
    /// That of the fault.
    #[default]
    Line,
    /// Also the next one and the one before.
    Near,
    /// That of the fault together with the one before.
    Two,
    /// All of the document down to the fault.
    Document,
    /// Each line from that of the fault upwards, alone and with all down to the fault.
    Above,
}

/// A slip of the pen: how a text shows it, and what to do.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Slip {
    codes: Vec<&'static str>,
    over: Over,
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
pub(super) struct Pattern {
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

    /// What it finds in `text`, or its part that is called `at` or is the first in parentheses.
    pub(super) fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        if self.text.is_none() {
            return Some(&text[..0]);
        }
        let found = self.compiled()?.captures(text)?;
        Some(found.name("at").or_else(|| found.get(1)).or_else(|| found.get(0))?.as_str())
    }

    pub(super) fn fits(&self, text: &str) -> bool {
        self.find(text).is_some()
    }

    /// `text` with `by` in the place of what it finds.
    fn replace(&self, text: &str, by: &str) -> Option<String> {
        Some(self.compiled()?.replace(text, by).into_owned())
    }

    /// Whether it can be compiled.
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
        let line =
            if self.over == Over::Two { text } else { text.split(" #").next().unwrap_or_default() };
        self.line.find(line.trim_matches([' ', '\t', '\r']))
    }
}

/// The code of the faults of a second document without `---` before it.
const TWICE: &str = "duplicate-key";

/// The codes of faults of which the cause may be another one in the same line.
const CAUSED: [&str; 5] = ["missing", "null", "reference", "type", "unknown-field"];

/// Parts of a text with this many bytes or more are not searched.
const LONG: usize = 1_000;

/// How many lines above a fault may be its cause.
const FAR: usize = 40;

/// The longest document that is read again with something mended.
const MOST_READ: usize = 1 << 16;

impl Findings {
    /// Adds the typing error to faults, if the lines show it.
    pub(in crate::manifest) fn explain_slips(&mut self, text: &str) {
        if self.is_empty() {
            return;
        }
        self.limit();
        self.second_documents(text);
        if self.other_files(text) {
            return;
        }
        self.texts(text);
        let line = |at: usize| text[..at].matches('\n').count();
        let mut alone = Vec::new();
        for finding in &mut self.found {
            if finding.code == "yaml-tag" {
                finding.at = tag(text, finding.at.start).unwrap_or_else(|| finding.at.clone());
                alone.push((finding.at.start, finding.code));
            }
            let around = Around::of(text, &finding.at);
            if around.and_then(|around| around.explain(finding)) == Some(true) {
                alone.push((finding.at.start, finding.code));
            }
        }
        self.found.retain(|finding| {
            let this = (finding.at.start, finding.code);
            let causes = |(at, code): &(usize, &str)| {
                line(*at) == line(this.0) && (*code == this.1 || CAUSED.contains(&this.1))
            };
            alone.contains(&this) || !alone.iter().any(causes)
        });
        // In braces, each piece of a text with commas looks like a key.
        self.found.dedup_by(|next, finding| {
            let between = text.get(finding.at.start..next.at.start).unwrap_or("\n");
            [&*next, &*finding].iter().all(|of| of.code == "yaml-key")
                && next.message == finding.message
                && !between.contains('\n')
        });
        self.found
            .dedup_by(|next, finding| next.at == finding.at && next.message == finding.message);
    }

    /// Makes one fault of all that a conflict of Git, or a file that is no YAML, brings.
    fn other_files(&mut self, text: &str) -> bool {
        let mark = "<<<<<<< ";
        let conflict = text.find(&format!("\n{mark}")).map(|at| at + 1);
        let conflict = conflict.or_else(|| text.starts_with(mark).then_some(0));
        let is_code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with(['#', '/']);
        let mut lines = text.lines().filter(is_code);
        let (first, next) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        let is = |file: &&Slip| file.find(first).is_some() && next.contains(file.next);
        let is_broken = self.found.iter().any(|fault| ["document", "syntax"].contains(&fault.code));
        let file = SLIPS["files"].iter().find(is).filter(|_| is_broken);
        let (at, message, help) = match (conflict.filter(|_| text.contains("\n>>>>>>> ")), file) {
            (Some(at), _) => (
                at..at + mark.trim().len(),
                "a conflict of Git that is not resolved".to_owned(),
                "keep one side, and take the lines with `<<<<<<<`, `=======` and `>>>>>>>` away",
            ),
            (None, Some(file)) => (
                text.find(first).map_or(0..0, |at| at..at + first.len()),
                format!("this is {}, not YAML", file.help),
                "write it as YAML, as in `kind: Project` and `path: acme/shop`, or move it out of the folder",
            ),
            (None, None) => return false,
        };
        self.found.clear();
        self.error("syntax", message, at).help(help);
        true
    }

    /// Leaves out the faults of the lines behind one that is no YAML, which makes a text of all of them.
    fn texts(&mut self, text: &str) {
        let is_line = |finding: &&Finding| {
            let explain = |around: Around<'_>| around.explain(&mut Finding::clone(finding));
            finding.code == "document" && Around::of(text, &finding.at).and_then(explain).is_some()
        };
        let lines: Vec<_> = self.found.iter().filter(is_line).map(|line| line.at.end).collect();
        let follows = |finding: &Finding| {
            let end = lines.iter().rfind(|end| **end <= finding.at.start)?;
            text.get(*end..finding.at.start).filter(|between| !between.contains("\n---"))
        };
        self.found.retain(|finding| finding.code != "syntax" || follows(finding).is_none());
    }

    /// Joins the faults that a second `kind` and the keys after it cause.
    fn second_documents(&mut self, text: &str) {
        let is_first =
            |at: &Range<usize>| text[..at.start].chars().next_back().is_none_or(|c| c == '\n');
        let begins = |finding: &Finding| {
            let key = text.get(finding.at.clone()).unwrap_or_default();
            finding.code == TWICE && is_first(&finding.at) && key == "kind"
        };
        let Some(at) = self.found.iter().position(begins) else { return };
        let first = &mut self.found[at];
        let start = first.at.start;
        let before = first.related.as_ref().and_then(|(at, _)| text.get(at.end..start));
        if before.is_some_and(|before| before.matches('\n').count() < 2) {
            first.help("keep one of the two: a document has one kind");
            return;
        }
        first.message = "a second document begins here".to_owned();
        first.help("write `---` on a line of its own in front of it");
        self.found.retain(|finding| {
            finding.code != TWICE || finding.at.start <= start || !is_first(&finding.at)
        });
    }
}

/// The lines of a text around a fault.
struct Around<'t> {
    text: &'t str,
    /// Where the fault is.
    at: usize,
    lines: Vec<&'t str>,
    /// The number of its line.
    number: usize,
    /// The last line above it that is not empty.
    before: Option<usize>,
}

impl<'t> Around<'t> {
    fn of(text: &'t str, at: &Range<usize>) -> Option<Self> {
        let number = text.get(..at.start)?.matches('\n').count();
        let lines: Vec<_> = text.lines().collect();
        let is_written =
            |number: &usize| lines.get(*number).is_some_and(|of| !of.trim().is_empty());
        let before = (0..number).rev().find(is_written);
        Some(Self { text, at: at.start, lines, number, before })
    }

    /// The line with this number, from 0; behind the last one an empty one at the end of the text.
    fn line(&self, number: usize) -> &'t str {
        self.lines.get(number).copied().unwrap_or(&self.text[self.text.len()..])
    }

    /// Where a part of the text starts.
    fn start(&self, part: &str) -> usize {
        part.as_ptr().addr() - self.text.as_ptr().addr()
    }

    /// The range of a part of the text.
    fn range(&self, part: &str) -> Range<usize> {
        self.start(part)..self.start(part) + part.len()
    }

    /// The lines from `first` to `last`.
    fn between(&self, first: usize, last: usize) -> &'t str {
        let last = self.line(last);
        self.text.get(self.start(self.line(first))..self.start(last) + last.len()).unwrap_or(last)
    }

    /// The end of the line of the fault.
    fn end(&self) -> usize {
        let line = self.line(self.number);
        self.start(line) + line.len()
    }

    /// The document that the fault is in.
    fn document(&self) -> Range<usize> {
        let (above, below) = self.text.split_at(self.end());
        let start = above.rfind("\n---").map_or(0, |line| line + 1);
        start..below.find("\n---").map_or(self.text.len(), |line| above.len() + line)
    }

    /// The parts of the text that may show a slip, each with the number of its first line.
    fn parts(&self, slip: &Slip) -> Vec<(usize, &'t str)> {
        let line = (self.number, self.line(self.number));
        match (slip.over, self.before) {
            (Over::Line, _) | (Over::Two, None) => vec![line],
            (Over::Near, before) => {
                let numbers = [Some(self.number), Some(self.number + 1), before];
                numbers.into_iter().flatten().map(|number| (number, self.line(number))).collect()
            }
            (Over::Two, Some(before)) => vec![(self.number, self.between(before, self.number))],
            (Over::Document, _) => vec![(0, &self.text[self.document().start..self.end()])],
            (Over::Above, before) => {
                let last = before.unwrap_or(self.number);
                let numbers = (self.number.saturating_sub(FAR)..=self.number).rev();
                let parts = numbers.flat_map(|number| {
                    [(number, self.line(number)), (number, self.between(number, last))]
                });
                parts.filter(|(_, part)| part.len() < LONG).collect()
            }
        }
    }

    /// Explains a fault by the first row of `list` that the text shows. Whether that causes all that is wrong in
    /// its line; `None` if there is none.
    fn row(&self, list: &str, finding: &mut Finding) -> Option<bool> {
        let at = &finding.at;
        let marked = self.text.get(at.clone()).unwrap_or_default();
        let help = finding.help.as_deref().unwrap_or_default();
        let is_possible = |slip: &&Slip| {
            (slip.codes.is_empty() || slip.codes.contains(&finding.code))
                && self.text[at.start..].starts_with(slip.at)
                && self.text[..at.start].ends_with(slip.after)
                && help.contains(slip.instead_of)
                && slip.marked.fits(marked)
        };
        let mut possible = SLIPS[list].iter().filter(is_possible);
        let (slip, number, sign) = possible.find_map(|slip| {
            let is_near = slip.over != Over::Line || finding.code != "unknown-field";
            let shows = |(number, part)| {
                let sign = slip.find(part).filter(|sign| is_near || marked.contains(*sign))?;
                self.is_mended(slip, part).then_some((slip, number, sign))
            };
            self.parts(slip).into_iter().find_map(shows)
        })?;
        let line = (number + 1).to_string();
        let fill = |text: &str| text.replace("{line}", &line).replace("{key}", sign);
        finding.help(fill(slip.help));
        if !slip.message.is_empty() {
            finding.message = fill(slip.message);
        }
        if !slip.message.is_empty() && slip.line.text.is_some() {
            finding.at = self.range(sign);
        }
        Some(slip.alone)
    }

    /// Whether the text can be read further with `part` written as the slip wants it.
    fn is_mended(&self, slip: &Slip, part: &str) -> bool {
        let mut mended = slip.mends.iter().filter_map(|mend| slip.line.replace(part, mend));
        slip.mends.is_empty() || mended.any(|mended| self.reads_with(part, &mended))
    }

    /// Whether nothing is wrong up to the end of the line once `part` is written as `mended`.
    fn reads_with(&self, part: &str, mended: &str) -> bool {
        let (line, end) = (self.line(self.number), self.end());
        let Range { start: above, end: below } = self.document();
        let (start, rest) = (self.start(part), self.start(part) + part.len());
        if below - above > MOST_READ || !(above..=below).contains(&start) || rest > below {
            return false;
        }
        // Beside what is mended itself, more may be wrong behind the fault.
        let wrong = if rest <= self.start(line) { self.at } else { end };
        let mended = [&self.text[above..start], mended, &self.text[rest..below]].concat();
        let is_below = |fault: &yaml::Fault| mended.len() - fault.span.start < below - wrong;
        yaml::parse(&mended).faults.iter().all(is_below)
    }

    /// Gives a fault its best explanation, as [`row`](Self::row) does.
    fn explain(&self, finding: &mut Finding) -> Option<bool> {
        let is_alias = finding.code == "syntax" && self.text[finding.at.start..].starts_with('*');
        (self.row("lines", finding))
            .or_else(|| self.unindented(finding))
            .or_else(|| {
                let help = anchor(self.text, finding.at.start).filter(|_| is_alias)?;
                finding.help(help);
                Some(false)
            })
            .or_else(|| self.row("later", finding))
            .or_else(|| self.indentation(finding))
            .or_else(|| self.row("last", finding))
    }

    /// A text behind `|` or `>` that is not indented.
    fn unindented(&self, finding: &mut Finding) -> Option<bool> {
        let head = (0..self.number).rev().find(|number| is_block_head(self.line(*number)))?;
        let first = (head + 1..=self.number)
            .map(|number| self.line(number))
            .find(|line| !line.trim().is_empty())?;
        let key = self.line(head).trim_start_matches([' ', '-']);
        let is_text = width(first) <= self.start(key) - self.start(self.line(head));
        let name = key.split(':').next().filter(|name| is_text && is_name(name))?;
        let is_key = first.trim_start().split_once(':').is_some_and(|(key, _)| is_name(key));
        if is_key || finding.code != "syntax" {
            return None;
        }
        finding.message = "the text behind `|` or `>` is not indented".to_owned();
        finding.at = self.range(name);
        finding.help(format!("indent its lines, from line {} on, deeper than the key", head + 2));
        Some(false)
    }

    /// A line that is a little less or more indented than one above that it belongs beside.
    fn indentation(&self, finding: &mut Finding) -> Option<bool> {
        let line = self.line(self.number);
        let written = width(line);
        let key = line.trim_start_matches([' ', '-']).split(": ").next().unwrap_or_default();
        if key.contains(' ') || finding.code != "syntax" {
            return None;
        }
        let lines = (self.number.saturating_sub(FAR)..self.number).map(|number| self.line(number));
        let columns = lines
            .flat_map(|line| [width(line), line.len() - line.trim_start_matches([' ', '-']).len()]);
        let is_right = |column: &usize| {
            let blanks = &line[..written];
            (1..=2).contains(&column.abs_diff(written))
                && self.reads_with(blanks, &" ".repeat(*column))
        };
        let columns: BTreeSet<_> = columns.collect();
        let near = columns.into_iter().rev().filter(is_right);
        let near = near.min_by_key(|column| column.abs_diff(written))?;
        let blanks = count(near, "space");
        finding.message = "the indentation does not fit the lines above".to_owned();
        finding.help(match near {
            0 => format!("take the blanks in front of line {} away", self.number + 1),
            _ => format!("indent line {} by {blanks}, as what is beside it", self.number + 1),
        });
        Some(false)
    }
}

/// How far a line is indented.
fn width(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// Help for the unknown alias at the byte `start`, if an anchor above has nearly its name. What looks
/// like one may be a part of a secret, so it is not quoted.
fn anchor(text: &str, start: usize) -> Option<String> {
    let end = |c: char| c.is_whitespace() || ",]}".contains(c);
    let alias = text.get(start + 1..)?.split(end).next()?;
    let below = text[start..].split('&').skip(1);
    if below.filter_map(|name| name.split(end).next()).any(|name| name == alias) {
        return Some("set the anchor where it is first used: it is further down".to_owned());
    }
    let begin = text[..start].rfind("\n---").unwrap_or_default();
    let anchors = text[begin..start].match_indices('&').filter_map(|(at, _)| {
        let name = text[begin + at + 1..start].split(end).next()?;
        Some((name, begin + at)).filter(|(name, _)| is_name(name))
    });
    let anchors: Vec<_> = anchors.collect();
    let near = nearest(alias, anchors.iter().map(|(name, _)| *name))?;
    let (_, at) = anchors.iter().rfind(|(name, _)| *name == near)?;
    let line = text[..*at].matches('\n').count() + 1;
    Some(format!("did you mean the anchor in line {line}?"))
}

/// The place of the unknown tag of what begins at the byte `start`.
fn tag(text: &str, start: usize) -> Option<Range<usize>> {
    let before = text.get(..start)?;
    let begin = before.rfind('!')?;
    let tag = before[begin..].split(char::is_whitespace).next()?;
    let between = &before[begin + tag.len()..];
    let is_its_own = between.chars().all(|c| c.is_whitespace() || "|>+-".contains(c));
    is_its_own.then(|| begin..begin + tag.len())
}

/// Whether a line ends with the head of a text that goes over several lines.
fn is_block_head(line: &str) -> bool {
    let head = line.trim_end().trim_end_matches(['+', '-']);
    head.ends_with(": |") || head.ends_with(": >")
}

/// All expressions of the table.
#[cfg(test)]
pub(super) fn patterns() -> impl Iterator<Item = &'static Pattern> {
    SLIPS.values().flatten().flat_map(|slip| [&slip.line, &slip.marked])
}
