//! Typing errors that YAML reads as something else, recognised from the faults that they cause.

use std::{collections::BTreeSet, ops::Range};

use super::Findings;
use crate::text::is_name;

/// Characters that look like a blank.
const ODD_BLANKS: [(char, &str); 7] = [
    ('\u{a0}', "a no-break space (U+00A0)"),
    ('\u{2007}', "a figure space (U+2007)"),
    ('\u{2009}', "a thin space (U+2009)"),
    ('\u{200b}', "a space without width (U+200B)"),
    ('\u{202f}', "a narrow no-break space (U+202F)"),
    ('\u{3000}', "a wide space (U+3000)"),
    ('\u{feff}', "a byte order mark (U+FEFF)"),
];

/// Typographic quotes.
const QUOTES: &str = "‘’‚‛“”„‟«»";

/// The code of the faults of a second document without `---` before it.
const TWICE: &str = "duplicate-key";

impl Findings {
    /// Adds the typing error to faults, if the lines show it.
    pub(in crate::manifest) fn explain_slips(&mut self, text: &str) {
        if self.is_empty() {
            return;
        }
        self.second_documents(text);
        self.conflict(text);
        self.expressions(text);
        for finding in &mut self.findings {
            let help = slip(text, finding.code, &finding.at);
            if help.is_some() {
                finding.help = help;
            }
        }
    }

    /// Makes one fault of all that a conflict of Git brings.
    fn conflict(&mut self, text: &str) {
        let mark = "<<<<<<< ";
        let at =
            if text.starts_with(mark) { Some(0) } else { text.find("\n<<<<<<< ").map(|at| at + 1) };
        let Some(at) = at.filter(|_| text.contains("\n>>>>>>> ")) else { return };
        self.findings.clear();
        let conflict = self.error("syntax", "a conflict of Git that is not resolved", at..at + 7);
        conflict
            .help("keep one side, and take the lines with `<<<<<<<`, `=======` and `>>>>>>>` away");
    }

    /// Makes one fault of all that `{{ name }}` brings on a line, which YAML takes for two mappings, or
    /// `{name}` without quotes.
    fn expressions(&mut self, text: &str) {
        let line = |at: &Range<usize>| text[..at.start].matches('\n').count();
        let help = |finding: &super::Finding| {
            let before = text[..finding.at.start].trim_end();
            match &text[finding.at.start..] {
                _ if finding.code != "yaml-key" => None,
                own if own.starts_with('{') && before.ends_with('{') => Some(
                    "write the value itself: expressions of other tools are not filled in; text with braces must be in quotes",
                ),
                _ if before.ends_with("text: {") => {
                    Some("put the template in quotes, as in `{text: '{name}'}`")
                }
                _ => None,
            }
        };
        let found = self.findings.iter().filter(|finding| help(finding).is_some());
        let lines: BTreeSet<_> = found.map(|finding| line(&finding.at)).collect();
        self.findings.retain_mut(|finding| {
            let Some(help) = help(finding) else { return !lines.contains(&line(&finding.at)) };
            finding.message = "braces that YAML takes for a mapping".to_owned();
            finding.help(help);
            true
        });
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
        first.message = "a second document begins here".to_owned();
        first.help("write `---` on a line of its own in front of it");
        self.findings.retain(|finding| {
            finding.code != TWICE || finding.at.start <= start || !is_first(&finding.at)
        });
    }
}

/// The typing error at the position of a fault with this code, and help.
fn slip(text: &str, code: &str, at: &Range<usize>) -> Option<String> {
    let number = text.get(..at.start)?.matches('\n').count();
    let line = |number: usize| text.lines().nth(number).unwrap_or_default();
    let own = line(number);
    let before = (0..number).rev().find(|number| !line(*number).trim().is_empty());
    let odd = |number: usize| {
        let content = line(number).split(" #").next()?.trim_end_matches('\r');
        if content.trim_start().starts_with(['–', '—', '−']) {
            return Some(format!("line {} starts with another dash: write `-`", number + 1));
        }
        let (_, name) = ODD_BLANKS.iter().find(|(blank, _)| content.contains(*blank))?;
        Some(format!("line {} has {name}: write a plain space", number + 1))
    };
    let is_shape = ["null", "syntax", "type", "unknown-field"].contains(&code);
    let around = [Some(number), Some(number + 1), before];
    let odd = is_shape.then(|| around.into_iter().flatten().find_map(odd)).flatten();
    let is_note = |number: usize| line(number).trim_start().starts_with("//");
    if ["document", "syntax"].contains(&code) && (is_note(number) || before.is_some_and(is_note)) {
        return Some("a comment starts with `#`".to_owned());
    }
    let key = text.get(at.clone()).unwrap_or_default();
    let odd = odd.or_else(|| match key.chars().next()? {
        '-' if ["duplicate-key", "unknown-field"].contains(&code) => dash(own, number),
        '/' if code == "unknown-field" && key.starts_with("//") => {
            Some("a comment starts with `#`".to_owned())
        }
        '+' if code == "unknown-field" => {
            Some("take the `+` away: is this a piece of a diff?".to_owned())
        }
        _ => None,
    });
    odd.or_else(|| match code {
        "syntax" if text[at.start..].starts_with('@') => {
            Some("leave the `@` away, or put the text in single quotes".to_owned())
        }
        "syntax" if own.trim_end().ends_with(',') && own.trim_end().len() > 1 => {
            Some("take the comma at the end of the line away".to_owned())
        }
        "syntax" if own.trim() == "--" => Some("write `---` between two documents".to_owned()),
        "syntax" | "document" if own.starts_with("--- ") => {
            Some("write `---` on a line of its own".to_owned())
        }
        "syntax" if before.is_some_and(|before| is_block_head(line(before))) => {
            Some("indent the lines behind `|` or `>` deeper than their key".to_owned())
        }
        "syntax" if is_name(own) => {
            Some(format!("line {}: a key has a colon behind it", number + 1))
        }
        "syntax" if dash(own, number).is_some() => dash(own, number),
        "yaml-tag" if own.contains("!include") => Some("undrift includes no other files: all files in the folder are read, and a `kind: Profile` holds what is shared".to_owned()),
        "choice" if key.contains('#') => {
            Some("write a space in front of `#`: without it, it starts no comment".to_owned())
        }
        "syntax" if own.trim_start().starts_with(['{', '[']) && own.contains("}}") | own.contains("%}") => {
            Some("expressions of other tools are not filled in: write what they come to".to_owned())
        }
        "syntax" => {
            [Some(number), before].into_iter().flatten().find_map(|at| joined(line(at), at))
        }
        "document" | "type" if own.contains(" = ") || own.contains(" => ") => {
            Some("write `key: value`: YAML knows no `=`".to_owned())
        }
        "document" => joined(own, number),
        "type" => joined(own, number).or_else(|| dash(line(number + 1), number + 1)),
        _ => {
            let value = text.get(at.clone())?.trim();
            let is_quoted = value.starts_with(|c| QUOTES.contains(c));
            is_quoted.then(|| "write `'` or `\"`: other quotes are part of the text".to_owned())
        }
    })
}

/// Whether a line ends with the head of a text that goes over several lines.
fn is_block_head(line: &str) -> bool {
    let head = line.trim_end().trim_end_matches(['+', '-']);
    head.ends_with(": |") || head.ends_with(": >")
}

/// An entry without a blank behind its `-`.
fn dash(line: &str, number: usize) -> Option<String> {
    let entry = line.trim_start().strip_prefix('-')?;
    let is_entry = entry.starts_with(|c: char| c.is_ascii_alphabetic() || "'\"{[".contains(c));
    is_entry.then(|| format!("line {}: write a space behind `-`", number + 1))
}

/// A line with a key, a colon and a value without a blank between them. The value is not quoted.
fn joined(line: &str, number: usize) -> Option<String> {
    let (key, value) = line.trim_start_matches([' ', '-']).split_once(':')?;
    let is_key = !key.is_empty() && key.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    let is_value = value.starts_with(|c: char| c.is_alphanumeric() || "'\"[{".contains(c));
    let help =
        || format!("line {}: write a space behind the colon, as in `{key}: ...`", number + 1);
    (is_key && is_value).then(help)
}
