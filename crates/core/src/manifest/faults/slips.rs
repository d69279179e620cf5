//! Typing errors that YAML reads as something else, recognised from the faults that they cause.

use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{LazyLock, OnceLock},
};

use regex::Regex;
use serde::Deserialize;

use super::Findings;
use crate::{
    text::{count, is_name, nearest},
    yaml,
};

/// A slip of the pen that the text shows.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Slip {
    codes: Vec<&'static str>,
    near: bool,
    two: bool,
    alone: bool,
    line: Pattern,
    at: &'static str,
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
    fn compiled(&self, text: &str) -> Option<&Regex> {
        self.compiled.get_or_init(|| Regex::new(text).ok()).as_ref()
    }

    /// What it finds in `text`, or its part in parentheses.
    fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        let Some(pattern) = self.text else { return Some("") };
        let found = self.compiled(pattern)?.captures(text)?;
        Some(found.get(1).or_else(|| found.get(0))?.as_str())
    }

    pub(super) fn fits(&self, text: &str) -> bool {
        self.find(text).is_some()
    }

    /// Whether it can be compiled.
    #[cfg(test)]
    pub(super) fn is_valid(&self) -> bool {
        self.text.is_none_or(|text| self.compiled(text).is_some())
    }
}

/// What a fault really is: another message, place and help.
struct Cause {
    message: String,
    at: Range<usize>,
    help: String,
    /// Whether it causes all that is wrong in its line.
    is_alone: bool,
}

impl Cause {
    fn new(message: impl Into<String>, at: Range<usize>, help: impl Into<String>) -> Self {
        Self { message: message.into(), at, help: help.into(), is_alone: false }
    }
}

/// Slips by what a line shows, and files that are no YAML by their first one.
static SLIPS: LazyLock<BTreeMap<&str, Vec<Slip>>> =
    LazyLock::new(|| yaml::built_in!("manifest/faults/slips"));

impl Slip {
    /// The part of `line` that shows it.
    fn find<'t>(&self, line: &'t str) -> Option<&'t str> {
        let line = if self.two { line } else { line.split(" #").next().unwrap_or_default() };
        self.line.find(line.trim_matches([' ', '\t', '\r']))
    }
}

/// The code of the faults of a second document without `---` before it.
const TWICE: &str = "duplicate-key";

/// Lines of this many bytes or more are not searched where that takes quadratic time.
const LONG: usize = 1_000;

impl Findings {
    /// Adds the typing error to faults, if the lines show it.
    pub(in crate::manifest) fn explain_slips(&mut self, text: &str) {
        if self.is_empty() {
            return;
        }
        self.second_documents(text);
        if self.other_files(text) || self.indented_head(text) {
            return;
        }
        self.texts(text);
        let mut alone = BTreeMap::new();
        for finding in &mut self.findings {
            if finding.code == "yaml-tag" {
                finding.at = tag(text, finding.at.start).unwrap_or_else(|| finding.at.clone());
                alone.insert(finding.at.start, true);
            }
            let Some(around) = Around::of(text, &finding.at) else { continue };
            if let Some(cause) = around.cause(finding.code, &finding.at) {
                let Cause { message, at, help, is_alone } = cause;
                alone.extend(is_alone.then_some((at.start, false)));
                (finding.message, finding.at, finding.help) = (message, at, Some(help));
                continue;
            }
            let is_shape =
                finding.help.as_ref().is_some_and(|help| help.contains("the indentation"));
            let is_list =
                finding.help.as_ref().is_some_and(|help| help.contains("brackets of a list"));
            let help = around.slip(finding.code, &finding.at);
            let help = help.or_else(|| around.lines_of_a_text().filter(|_| is_list));
            let shape = is_shape.then(|| shape(text, finding.at.start)).flatten();
            if let Some(shape) = shape.filter(|_| help.is_none()) {
                if shape.starts_with("indent") {
                    finding.message = "the indentation does not fit the lines above".to_owned();
                }
                finding.help = Some(shape);
            } else {
                finding.help = help.or_else(|| finding.help.take());
            }
        }
        // What a tag or an expression makes of a value is of no interest.
        let line = |at: usize| text[..at].matches('\n').count();
        let lines = alone.iter().map(|(at, is_tag)| (line(*at), *is_tag));
        let lines: BTreeMap<_, _> = lines.collect();
        self.findings.retain(|finding| match lines.get(&line(finding.at.start)) {
            _ if alone.contains_key(&finding.at.start) => true,
            Some(true) => !["reference", "type"].contains(&finding.code),
            is_tag => is_tag.is_none(),
        });
        // In braces, each piece of a text with commas looks like a key.
        self.findings.dedup_by(|next, finding| {
            let between = text.get(finding.at.start..next.at.start).unwrap_or("\n");
            [&*next, &*finding].iter().all(|of| of.code == "yaml-key")
                && next.message == finding.message
                && !between.contains('\n')
        });
        self.findings
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
        let is_broken =
            self.findings.iter().any(|fault| ["document", "syntax"].contains(&fault.code));
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
        self.findings.clear();
        self.error("syntax", message, at).help(help);
        true
    }

    /// Makes one fault of what a first line brings that is indented, and the others are not.
    fn indented_head(&mut self, text: &str) -> bool {
        let is_code = |line: &&str| !line.trim().is_empty() && !line.starts_with(['#', '-']);
        let Some(first) = text.lines().find(is_code).filter(|line| width(line) > 0) else {
            return false;
        };
        let start = first.as_ptr().addr() - text.as_ptr().addr() + width(first);
        let is_left = |finding: &super::Finding| {
            let own = text[..finding.at.start].rsplit('\n').next().unwrap_or_default();
            finding.code == "syntax" && own.is_empty() && finding.at.start > start
        };
        let Some(at) = self.findings.iter().find(|finding| is_left(finding)) else { return false };
        let at = at.at.start;
        self.findings.retain(|finding| finding.at.start > at);
        let key = first.trim_start().split(':').next().unwrap_or_default().len();
        let message = "this line is indented, and those below it are not";
        self.error("syntax", message, start..start + key)
            .help("take the blanks in front of it away");
        true
    }

    /// Leaves out the faults of the lines behind one that is no YAML, which makes a text of all of them.
    fn texts(&mut self, text: &str) {
        let is_line = |finding: &&super::Finding| {
            let slip = |around: Around<'_>| around.slip(finding.code, &finding.at);
            finding.code == "document" && Around::of(text, &finding.at).and_then(slip).is_some()
        };
        let lines: Vec<_> = self.findings.iter().filter(is_line).map(|line| line.at.end).collect();
        let follows = |finding: &super::Finding| {
            let end = lines.iter().rfind(|end| **end <= finding.at.start)?;
            text.get(*end..finding.at.start).filter(|between| !between.contains("\n---"))
        };
        self.findings.retain(|finding| finding.code != "syntax" || follows(finding).is_none());
    }

    /// Joins the faults that a second `kind` and the keys after it cause.
    fn second_documents(&mut self, text: &str) {
        let is_first =
            |at: &Range<usize>| text[..at.start].chars().next_back().is_none_or(|c| c == '\n');
        let begins = |finding: &super::Finding| {
            let key = text.get(finding.at.clone()).unwrap_or_default();
            finding.code == TWICE && is_first(&finding.at) && key == "kind"
        };
        let Some(at) = self.findings.iter().position(begins) else { return };
        let first = &mut self.findings[at];
        let start = first.at.start;
        let before = first.related.as_ref().and_then(|(at, _)| text.get(at.end..start));
        if before.is_some_and(|before| before.matches('\n').count() < 2) {
            first.help("keep one of the two: a document has one kind");
            return;
        }
        first.message = "a second document begins here".to_owned();
        first.help("write `---` on a line of its own in front of it");
        self.findings.retain(|finding| {
            finding.code != TWICE || finding.at.start <= start || !is_first(&finding.at)
        });
    }
}

/// The lines of a text around a fault.
struct Around<'t> {
    text: &'t str,
    lines: Vec<&'t str>,
    own: usize,
    /// The last line above it that is not empty.
    before: Option<usize>,
}

impl<'t> Around<'t> {
    fn of(text: &'t str, at: &Range<usize>) -> Option<Self> {
        let own = text.get(..at.start)?.matches('\n').count();
        let lines: Vec<_> = text.lines().collect();
        let is_written =
            |number: &usize| lines.get(*number).is_some_and(|of| !of.trim().is_empty());
        let before = (0..own).rev().find(is_written);
        Some(Self { text, lines, own, before })
    }

    /// The line with this number, from 0; behind the last one an empty one at the end of the text.
    fn line(&self, number: usize) -> &'t str {
        self.lines.get(number).copied().unwrap_or(&self.text[self.text.len()..])
    }

    /// The line `number`, for some slips with what is before it.
    fn part(&self, slip: &Slip, number: usize) -> &'t str {
        let own = self.line(number);
        let before = self.before.filter(|_| slip.two).map_or(own, |before| self.line(before));
        self.text.get(self.start(before)..self.start(own) + own.len()).unwrap_or(own)
    }

    /// The slip of `list` that causes a fault, the number of its line, and what shows it.
    fn known(
        &self,
        list: &str,
        code: &str,
        at: &Range<usize>,
    ) -> Option<(&'static Slip, usize, &'t str)> {
        let around = [Some(self.own), Some(self.own + 1), self.before];
        let key = self.text.get(at.clone()).unwrap_or_default();
        SLIPS[list].iter().find_map(|slip| {
            let lines = if slip.near { &around[..] } else { &around[..1] };
            let is_cause = (slip.codes.is_empty() || slip.codes.contains(&code))
                && self.text[at.start..].starts_with(slip.at)
                && slip.marked.fits(key);
            let mut lines = lines.iter().flatten().filter(|_| is_cause);
            let (number, sign) =
                lines.find_map(|number| Some((*number, slip.find(self.part(slip, *number))?)))?;
            let is_there = slip.near || code != "unknown-field" || key.contains(sign);
            is_there.then_some((slip, number, sign))
        })
    }

    /// The cause of a fault, if it is at another place or deserves another message.
    fn cause(&self, code: &str, at: &Range<usize>) -> Option<Cause> {
        let known = self.known("lines", code, at).filter(|(slip, ..)| !slip.message.is_empty());
        let sign = known.map(|(slip, _, sign)| {
            let start = self.start(sign);
            let [message, help] = [slip.message, slip.help].map(|text| text.replace("{key}", sign));
            let is_alone = slip.alone;
            Cause { is_alone, ..Cause::new(message, start..start + sign.len(), help) }
        });
        sign.or_else(|| {
            let comma = || {
                let before = self.text[..at.start].ends_with(',').then_some(at.start)?;
                let help = "put the whole text in quotes";
                Some(Cause::new("within brackets, a `,` ends a value", before - 1..before, help))
            };
            match code {
                "syntax" => (self.commented(at).or_else(|| self.comma(at)))
                    .or_else(|| self.unindented())
                    .or_else(|| self.unclosed(at))
                    .or_else(|| self.closed(at))
                    .or_else(|| self.no_key()),
                "yaml-key" => comma(),
                _ => None,
            }
        })
    }

    /// The typing error at the position of a fault with this code, and help.
    fn slip(&self, code: &str, at: &Range<usize>) -> Option<String> {
        let text = self.text;
        let key = text.get(at.clone()).unwrap_or_default();
        let above = self.before.map_or("", |before| self.line(before));
        let number = self.before.map_or(0, |before| before + 1);
        let known = |list: &str| {
            let (slip, found, sign) = self.known(list, code, at)?;
            let line = (found + 1).to_string();
            Some(slip.help.replace("{line}", &line).replace("{key}", sign))
        };
        let other = || match code {
            "syntax" if text[at.start..].starts_with('*') => anchor(text, at.start),
            "duplicate-key" if begins_entry(text, at.start, key) => Some(
                "keep one of the two, or write `- ` in front of it if another entry begins here"
                    .to_owned(),
            ),
            "syntax" if is_open(above) => {
                Some(format!("line {number} is not closed: add the quote or bracket that ends it"))
            }
            _ => None,
        };
        known("lines").or_else(other).or_else(|| known("later"))
    }

    /// Help for a key above the lines of a text, of which YAML makes a list.
    fn lines_of_a_text(&self) -> Option<String> {
        let key = self.line(self.own).trim_end().strip_suffix(':')?;
        Some(format!(
            "write one value, and for several an entry or document for each; for a text of several lines, write `{}: |` above them",
            key.trim_start_matches([' ', '-'])
        ))
    }

    /// Where a part of the text starts.
    fn start(&self, part: &str) -> usize {
        part.as_ptr().addr() - self.text.as_ptr().addr()
    }

    /// A text behind `|` or `>` that is not indented.
    fn unindented(&self) -> Option<Cause> {
        let head = (0..self.own).rev().find(|number| is_block_head(self.line(*number)))?;
        let first = (head + 1..=self.own)
            .map(|number| self.line(number))
            .find(|line| !line.trim().is_empty())?;
        let key = self.line(head).trim_start_matches([' ', '-']);
        let is_text = width(first) <= self.start(key) - self.start(self.line(head));
        let name = key.split(':').next().filter(|name| is_text && is_name(name))?;
        let is_key = first.trim_start().split_once(':').is_some_and(|(key, _)| is_name(key));
        let start = self.start(key);
        let message = "the text behind `|` or `>` is not indented";
        let help = format!("indent its lines, from line {} on, deeper than the key", head + 2);
        (!is_key).then(|| Cause::new(message, start..start + name.len(), help))
    }

    /// Whether the line above belongs to a text behind `|` or `>`.
    fn is_below_text(&self) -> bool {
        let above = (0..self.own).rev().filter(|number| !self.line(*number).trim().is_empty());
        let mut deep = usize::MAX;
        for (at, number) in above.enumerate() {
            let line = self.line(number);
            if is_block_head(line) {
                return at > 0 && width(line) < deep;
            }
            deep = deep.min(width(line));
            if deep == 0 {
                return false;
            }
        }
        false
    }

    /// A line that is neither a key with a value nor an entry.
    fn no_key(&self) -> Option<Cause> {
        let line = self.line(self.own).trim();
        let start = self.start(line);
        let is_text = line.starts_with(char::is_alphanumeric) && !line.contains(':');
        let is_head = width(self.line(self.own + 1)) > width(self.line(self.own));
        let help = match line {
            _ if is_text && self.is_below_text() => {
                "indent it as the lines above, which belong to the text of a key"
            }
            _ if is_name(line) && is_head => "write a colon behind it",
            _ if has_key(line) => {
                "indent it deeper if it belongs to the text above; otherwise write a colon behind its first word, as in `path: acme/shop`"
            }
            _ => "indent it deeper if it belongs to the text above; a key has a colon behind it",
        };
        is_text.then(|| Cause::new("a line without a key", start..start + line.len(), help))
    }

    /// A comma that is missing between two lines within brackets.
    fn comma(&self, at: &Range<usize>) -> Option<Cause> {
        let own = self.line(self.own);
        let key = own.get(..at.start.checked_sub(self.start(own))?)?.trim().trim_end_matches(':');
        let above = self.line(self.before?).split(" #").next()?.trim_end();
        let outer = (0..self.own).rev().find(|number| {
            let line = self.line(*number);
            width(line) == 0 && !line.trim().is_empty()
        })?;
        let end = self.start(above) + above.len();
        let begun = self.text.get(self.start(self.line(outer))..end)?;
        let opens = |number: &usize| depth(self.line(*number)) > 0;
        let opener = (0..self.own).rev().find(opens)?;
        let is_deeper = width(own) > width(self.line(opener));
        let is_within = depth(begun) > 0 && depth(above) == 0 && is_deeper;
        let is_ended = above.ends_with([',', '{', '[', ':', '|', '>']);
        (is_name(key) && is_within && !is_ended).then(|| {
            let last = above.chars().next_back().map_or(0, char::len_utf8);
            Cause::new(
                "a `,` is missing behind this",
                end - last..end,
                "write a `,` at the end of the line",
            )
        })
    }

    /// A text that starts with `#` within brackets, which makes a comment of it and of their end.
    fn commented(&self, at: &Range<usize>) -> Option<Cause> {
        let sign = |line: &'t str| {
            let whole = depth(line);
            let signs = line.match_indices(" #").map(|(sign, _)| sign + 1);
            let mut texts = signs.filter(|sign| !line[sign + 1..].starts_with([' ', '#']));
            texts.find(|sign| depth(&line[..*sign]) > whole)
        };
        let lines = (0..=self.own).rev().map(|number| self.line(number));
        let lines = lines.filter(|line| line.len() < LONG);
        let mut signs = lines.filter_map(|line| Some(self.start(line) + sign(line)?));
        let start = signs.next()?;
        let between = self.text.get(start.min(at.start)..start.max(at.start))?;
        let is_open = !between.contains("\n---");
        let help = "put the text in quotes, as in `'#ff0000'`";
        let message = "` #` starts a comment, which takes the end of the brackets with it";
        is_open.then(|| Cause::new(message, start..start + 1, help))
    }

    /// A bracket that is not closed on its line although the next line is no part of it.
    fn unclosed(&self, at: &Range<usize>) -> Option<Cause> {
        let is_open_above = |number: &usize| {
            let (own, next) = (self.line(*number), self.line(*number + 1));
            let is_block = next.trim_start().starts_with("- ") || width(next) <= width(own);
            // A key beside the one with the bracket is not within it either.
            let is_beside = width(self.line(self.own)) <= width(own);
            is_open(own) && !next.trim().is_empty() && (is_block || is_beside) && depth(own) > 0
        };
        let number = (0..self.own).rev().find(is_open_above)?;
        let line = self.line(number);
        let open = line.find(['[', '{'])?;
        let start = self.start(line) + open;
        let inner = self.text.get(start..at.start).filter(|inner| depth(inner) > 0)?;
        let (sign, end) = if inner.starts_with('[') { ('[', ']') } else { ('{', '}') };
        let help = format!("close it with `{end}`");
        Some(Cause::new(format!("`{sign}` is never closed"), start..start + 1, help))
    }

    /// More behind a list or mapping in brackets on its line.
    fn closed(&self, at: &Range<usize>) -> Option<Cause> {
        let value = |line: &'t str| {
            let line = line.trim_start_matches([' ', '-']);
            Some(line.split_once(": ").map_or(line, |(_, value)| value).trim_start())
                .filter(|value| value.starts_with(['[', '{']))
        };
        let value = value(self.line(self.own)).filter(|value| self.start(value) < at.start)?;
        let start = self.start(value);
        let inner = self.text.get(start..at.start)?;
        let is_closed = inner.trim_end().ends_with([']', '}'])
            && depth(inner) == 0
            && !self.text[at.start..].starts_with([',', ']', '}']);
        let (open, what) =
            if value.starts_with('[') { ('[', "a list") } else { ('{', "a mapping") };
        let message = format!("text that starts with `{open}` is {what} in YAML");
        let help = "put the whole text in single quotes, or take what follows the bracket away";
        is_closed.then(|| Cause::new(message, start..start + 1, help))
    }
}

/// Whether `line` is a name and a value without a colon between them.
fn has_key(line: &str) -> bool {
    let is_key = |key: &str| key.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    line.split_once(' ').is_some_and(|(key, value)| is_key(key) && !value.contains(' '))
}

/// How many brackets of `text` are open at its end.
fn depth(text: &str) -> usize {
    text.matches(['[', '{']).count().saturating_sub(text.matches([']', '}']).count())
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

/// Help for the line of the byte `at` if it is a little less or more indented than what is above it, or
/// holds a text with a colon and a blank.
fn shape(text: &str, at: usize) -> Option<String> {
    let number = text.get(..at)?.matches('\n').count();
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let own = text.lines().nth(number).filter(|own| own.contains(':'))?;
    let lines: Vec<&str> = text.lines().take(number).filter(is_code).collect();
    let of_entry = own.trim_start().starts_with("- ");
    let of_keys = |line: &str| line.len() - line.trim_start_matches([' ', '-']).len();
    let written = width(own);
    let (mut columns, mut outer) = (Vec::new(), usize::MAX);
    // Below a key without a value, any deeper line is right.
    let last = lines.last().filter(|last| last.trim_end().ends_with(':'));
    columns.extend(last.filter(|last| of_keys(last) < written).map(|_| written));
    for line in lines.iter().rev().take_while(|line| !line.starts_with("---")) {
        let is_open = width(line) < outer && (!of_entry || line.trim_start().starts_with("- "));
        columns.extend(is_open.then(|| if of_entry { width(line) } else { of_keys(line) }));
        outer = outer.min(width(line));
    }
    let near = columns.into_iter().min_by_key(|column| column.abs_diff(written))?;
    let key = own.trim_start_matches([' ', '-']).split(": ").next().unwrap_or_default();
    let is_text = own.matches(": ").count() > 1 || key.contains(' ');
    let has_text = is_text && !own.contains(['"', '\'', '{', '[']);
    let mut starts = lines.iter().rev().filter(|line| line.trim_start().starts_with("- "));
    let first = starts.find(|line| of_keys(line) == written + 2);
    let first = first.and_then(|first| first.trim_start_matches([' ', '-']).split(':').next());
    let is_first = first.is_some() && first == key.split(':').next();
    match near.abs_diff(written) {
        2 if is_first && !of_entry => {
            Some(format!("write `- ` in front of line {}: it starts an entry", number + 1))
        }
        1 | 2 if !key.contains(' ') => Some(format!(
            "indent line {} by {}, as what is beside it",
            number + 1,
            count(near, "space")
        )),
        _ if has_text => Some(
            "write each key on a line of its own, or put the whole text in quotes: it holds `: `"
                .to_owned(),
        ),
        _ => None,
    }
}

/// Whether a line ends with the head of a text that goes over several lines.
fn is_block_head(line: &str) -> bool {
    let head = line.trim_end().trim_end_matches(['+', '-']);
    head.ends_with(": |") || head.ends_with(": >")
}

/// Whether `key` at the byte `at` is also the first key of the entry that it is in.
fn begins_entry(text: &str, at: usize, key: &str) -> bool {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let (above, from_here) = text.split_at(start);
    let goes_on = from_here
        .lines()
        .nth(1)
        .is_some_and(|next| width(next) == width(from_here) && width(from_here) > 0);
    let begins = |line: &str| {
        let first = line.trim_start().strip_prefix("- ")?;
        Some(
            first.starts_with(&format!("{key}:")) || goes_on && width(line) + 2 == width(from_here),
        )
    };
    above.lines().rev().find_map(begins) == Some(true)
}

/// Whether a quote or a bracket is open at the end of a line.
fn is_open(line: &str) -> bool {
    let line = line.split(" #").next().unwrap_or_default();
    let line = line.trim_start_matches([' ', '-']);
    let value = match line.starts_with(['{', '[']) {
        true => line,
        false => line.split_once(": ").map_or(line, |(_, value)| value).trim_start(),
    };
    let count = |c: char| value.matches(c).count();
    let is_quoted = ['"', '\''].into_iter().find(|quote| value.starts_with(*quote));
    let is_bracket = value.starts_with(['{', '[']) && !value.contains(['"', '\'']);
    is_bracket && (count('{') > count('}') || count('[') > count(']'))
        || is_quoted.is_some_and(|quote| count(quote) == 1)
}

/// All expressions of the table.
#[cfg(test)]
pub(super) fn patterns() -> impl Iterator<Item = &'static Pattern> {
    SLIPS.values().flatten().flat_map(|slip| [&slip.line, &slip.marked])
}
