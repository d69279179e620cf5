//! Text of others in Markdown: the one place where it is made harmless.
//!
//! The service does more with a comment than Markdown says: it links names (`@all`, `#1`, `~bug`),
//! takes lines that begin with a slash for commands, and shows images. It does none of that in code. So
//! whatever comes from a manifest or the service stands in code, and no line begins with it: in a code
//! span, of which the fence is longer than any in it, or in a fenced block, in which each line begins
//! with a sign of ours.

use crate::{report::model::value::Said, secret::Secrets, text::escape};

/// How much of a text is shown, in characters: an element of a page is never larger than it is wide.
const LONGEST: usize = 240;

/// Makes text of others harmless.
#[derive(Clone, Copy)]
pub(super) struct Ink<'s> {
    /// What is struck.
    pub(super) secrets: &'s Secrets,
}

impl Ink<'_> {
    /// `text` as code.
    pub(super) fn code(self, text: &str) -> String {
        span(&cut(&escape(&self.secrets.redact(text))))
    }

    /// `text` as code in a cell of a table.
    pub(super) fn cell(self, text: &str) -> String {
        // A bar ends a cell, in code too, unless a backslash stands before it; and whether a backslash
        // before that one changes this, readers do not agree on.
        let text = cut(&escape(&self.secrets.redact(text)));
        span(&text.replace("\\|", "\\u{5c}|").replace('|', "\\|"))
    }

    /// One side of a change in a cell of a table.
    pub(super) fn side(self, said: &Said) -> String {
        match said {
            Said::Aside(words) | Said::Value(words) => self.cell(words),
        }
    }

    /// Lines of text, each after its sign, as a block of its own.
    pub(super) fn block(self, lines: &[(char, &str)]) -> String {
        let lines: Vec<_> = lines
            .iter()
            .map(|(sign, line)| format!("{sign}{}\n", cut(&escape_line(line))))
            .collect();
        let fence =
            "`".repeat(lines.iter().map(|line| longest_run(line)).max().unwrap_or(0).max(2) + 1);
        format!("{fence}diff\n{}{fence}\n", lines.concat())
    }
}

/// `line` escaped, but for tabs, which are what they seem in a block.
fn escape_line(line: &str) -> String {
    line.split('\t').map(escape).collect::<Vec<_>>().join("\t")
}

/// As much of `text` as is shown.
fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A code span of `text`, which has no controls in it.
fn span(text: &str) -> String {
    if text.is_empty() {
        return "(empty)".into();
    }
    let fence = "`".repeat(longest_run(text) + 1);
    // One space on both sides is taken away again.
    let ends = |c: char| text.starts_with(c) || text.ends_with(c);
    let is_blank = text.chars().all(|c| c == ' ');
    let space = if ends('`') || (ends(' ') && !is_blank) { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

/// How many backticks stand side by side in `text` at most.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}
