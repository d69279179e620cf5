//! Escapes text from manifests and the service for Markdown.
//!
//! The service adds features to the Markdown of comments: it links names (`@all`, `#1`, `~bug`),
//! executes lines that begin with a slash as commands, and shows images. None of these features
//! work in code. So text from manifests and the service is always written as code, and no line
//! begins with such text. A code span has a longer fence than any run of backticks in the text. In
//! a fenced block, each line begins with `+`, `-` or a space from undrift.

use crate::{
    report::{
        compare::{self, ComparedLine},
        model::value::ValueText,
    },
    secret::Secrets,
    text::escape,
};

/// The maximum length of a shown text, in characters, so that an element of a page stays small.
const MAX_CHARS: usize = 240;

/// Escapes text from manifests and the service.
#[derive(Clone, Copy)]
pub(super) struct MarkdownEscaper<'s> {
    /// The secrets to remove.
    pub(super) secrets: &'s Secrets,
}

impl MarkdownEscaper<'_> {
    /// `text` as code.
    pub(super) fn code(self, text: &str) -> String {
        code_span(&shorten(&escape(&self.secrets.redact(text))))
    }

    /// `text` as code in a cell of a table.
    pub(super) fn cell(self, text: &str) -> String {
        // A vertical bar ends a cell, even in code, unless a backslash precedes the bar. Parsers
        // disagree about two backslashes before a bar, so a backslash before a bar is escaped.
        let text = shorten(&escape(&self.secrets.redact(text)));
        code_span(&text.replace("\\|", "\\u{5c}|").replace('|', "\\|"))
    }

    /// The live or the declared value of a change, as code in a cell of a table.
    pub(super) fn value_cell(self, side: &ValueText) -> String {
        match side {
            ValueText::Remark(words) | ValueText::Value(words) => self.cell(words),
        }
    }

    /// Lines of text, each after its sign, as a fenced block.
    pub(super) fn diff_block(self, lines: &[ComparedLine]) -> String {
        let lines = lines.iter();
        let text: String = lines
            .map(|(tag, line)| {
                format!("{}{}\n", compare::line_sign(*tag), shorten(&escape_line(line)))
            })
            .collect();
        let fence = "`".repeat(longest_backtick_run(&text).max(2) + 1);
        format!("{fence}diff\n{text}{fence}\n")
    }
}

/// Escapes `line`, except for tabs, which are harmless in a block.
fn escape_line(line: &str) -> String {
    line.split('\t').map(escape).collect::<Vec<_>>().join("\t")
}

/// The first [`MAX_CHARS`] characters of `text`.
fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A code span of `text`, which has no control characters.
fn code_span(text: &str) -> String {
    if text.is_empty() {
        return "(empty)".into();
    }
    let fence = "`".repeat(longest_backtick_run(text) + 1);
    // Parsers remove one space on both sides.
    let is_blank = text.chars().all(|c| c == ' ');
    let edge_chars = [text.chars().next(), text.chars().next_back()];
    let needs_space =
        edge_chars.contains(&Some('`')) || (edge_chars.contains(&Some(' ')) && !is_blank);
    let space = if needs_space { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

/// The length of the longest run of backticks in `text`.
fn longest_backtick_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}
