//! Explains broken syntax. The explanation depends on the error of the parser and the text around
//! the error. The messages are in `syntax.yaml`.

use std::{borrow::Cow, ops::Range, sync::LazyLock};

use granit_parser::{BorrowedInput, ErrorKind, ScanError};
use serde::Deserialize;

use super::{Node, NodeValue, YamlFault, compose::Composer, texts};
use crate::{
    placeholders,
    text::{self, fill},
};

/// The message and the help for some errors of the parser.
#[derive(Deserialize)]
struct SyntaxMessage {
    /// The names of the errors, as variants of [`ErrorKind`].
    errors: Vec<&'static str>,
    message: &'static str,
    help: &'static str,
    /// An example of a text with one of the errors.
    #[cfg(test)]
    text: Option<&'static str>,
}

static MESSAGES: LazyLock<Vec<SyntaxMessage>> = LazyLock::new(|| super::built_in!("yaml/syntax"));

/// The message for a syntax error, and the help if the table has one.
fn describe_error(kind: &ErrorKind) -> (Cow<'static, str>, Option<&'static str>) {
    let name = format!("{kind:?}");
    let name = name.split(' ').next().unwrap_or_default();
    let Some(entry) = MESSAGES.iter().find(|message| message.errors.contains(&name)) else {
        return (kind.to_string().into(), None);
    };
    let message = match kind {
        ErrorKind::UnclosedFlowCollection { open } => {
            fill(entry.message, placeholders![open]).into()
        }
        ErrorKind::MismatchedFlowCollectionEnd { open, close } => {
            fill(entry.message, placeholders![open, close]).into()
        }
        _ => entry.message.into(),
    };
    (message, Some(entry.help))
}

impl<'t, I: BorrowedInput<'t>> Composer<'t, I> {
    pub(super) fn syntax_fault(&self, error: &ScanError) -> YamlFault {
        let offset = error.marker().byte_offset().unwrap_or(self.text.len());
        let (text_before, text_after) = self.text.split_at_checked(offset).unwrap_or_default();
        match error.kind() {
            ErrorKind::RecursionLimitExceeded => YamlFault::new(texts::TOO_DEEP, offset..offset),
            ErrorKind::UnknownAnchor => {
                let fault_texts = match () {
                    () if is_in_other_document(text_before, text_after) => texts::OTHER_DOCUMENT,
                    () if text_before.trim_end_matches([' ', '[', ',']).ends_with("<<:") => {
                        texts::MERGED_ANCHOR
                    }
                    () if is_alias(text_after) => texts::NO_ANCHOR,
                    () => texts::STAR,
                };
                YamlFault::new(fault_texts, offset..offset)
            }
            // In brackets, YAML reads the brace of `${NAME}` as the start of a mapping.
            _ if text_before.ends_with('$') && text_after.starts_with('{') => {
                YamlFault::new(texts::DOLLAR, offset - 1..offset)
            }
            kind => {
                let (message, help) = describe_error(kind);
                // The parser reports a forbidden tab at the previous token, which may be on an
                // earlier line.
                let is_tab_error = matches!(
                    kind,
                    ErrorKind::TabNotAllowed
                        | ErrorKind::TabInBlockIndentation
                        | ErrorKind::TabInIndentation
                        | ErrorKind::TabInPlainScalar
                );
                let tab = text_after.find('\t').filter(|_| is_tab_error);
                let start = tab.map_or(offset, |tab| self.first_tab(offset + tab));
                YamlFault { code: "syntax", message, help, span: start..start, first_span: None }
            }
        }
    }

    /// The first tab in the consecutive lines that are indented by tabs. The last of these lines
    /// contains the byte `offset`.
    fn first_tab(&self, offset: usize) -> usize {
        let mut first_tab = offset;
        let mut end = self.text[..offset].rfind('\n');
        while let Some(line) = end.map(|end| &self.text[..end]) {
            let start = line.rfind('\n').map_or(0, |end| end + 1);
            let Some(tab) = line[start..start + indentation(&line[start..])].find('\t') else {
                break;
            };
            (first_tab, end) = (start + tab, start.checked_sub(1));
        }
        first_tab
    }

    /// True if a colon follows the key that ends at the byte `key_end`. A key without a colon, as
    /// in `{word}`, may be a secret that somebody meant as a value.
    pub(super) fn has_colon(&self, key_end: usize) -> bool {
        self.text.get(key_end..).is_some_and(|rest| rest.trim_start().starts_with(':'))
    }

    /// True if a comment looks like the value of the key that ends at `key_end`, for example in
    /// `color: #ff0000`.
    pub(super) fn is_commented_out(&self, key_end: usize) -> bool {
        let text_after =
            self.text.get(key_end..).unwrap_or_default().trim_start_matches([' ', '\t']);
        let value = text_after.strip_prefix(':').map(|value| value.trim_start_matches([' ', '\t']));
        let comment = value.and_then(|value| value.strip_prefix('#'));
        comment.is_some_and(|comment| comment.starts_with(|c: char| c.is_alphanumeric()))
    }

    /// The range of the `#` if a comment after the text looks like a number or a colour, as in
    /// `Shop #1`. `end` is the end of the text in bytes.
    pub(super) fn find_joined_comment(&self, end: usize) -> Option<Range<usize>> {
        let text_after = self.text.get(end..)?;
        let blank_length = text_after.len() - text_after.trim_start_matches([' ', '\t']).len();
        let comment = text_after[blank_length..].strip_prefix('#').filter(|_| blank_length > 0)?;
        let comment_start = end + blank_length;
        let word = comment.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        let is_colour = matches!(word.len(), 3 | 6) && word.chars().all(|c| c.is_ascii_hexdigit());
        (is_colour || word.starts_with(|c: char| c.is_ascii_digit()))
            .then_some(comment_start..comment_start + 1)
    }

    /// Reports a line with `#` that seems to belong to `value`, but is a comment because of its
    /// indentation. `value` is the multi-line text of the key at `key_span`.
    pub(super) fn report_comment_in_text(&mut self, key_span: Range<usize>, value: &Node) {
        let NodeValue::Text(text) = &value.data else { return };
        // Return early: most values are not multi-line texts.
        let text_after_colon =
            self.text.get(key_span.end..).and_then(|rest| rest.trim_start().strip_prefix(':'));
        if !text_after_colon
            .is_some_and(|after_colon| after_colon.trim_start().starts_with(['|', '>']))
        {
            return;
        }
        let start = key_span.start;
        let key_column = start - self.text[..start].rfind('\n').map_or(0, |end| end + 1);
        let mut lines = self.text[start..].split_inclusive('\n');
        let key_line = lines.next().unwrap_or_default();
        let mut line_start = start + key_line.len();
        let (mut text_indent, mut is_after_blank) = (None, false);
        for line in lines.by_ref() {
            let is_blank = line.trim().is_empty();
            let is_inside = indentation(line) >= text_indent.unwrap_or(key_column + 1);
            if !is_blank && !is_inside {
                let next_line =
                    lines.find(|line| !line.trim().is_empty() && !line.trim().starts_with('#'));
                let is_before_sibling = indentation(line) == key_column
                    && next_line.is_some_and(|line| indentation(line) == key_column);
                let is_comment =
                    line.trim_start().starts_with('#') && indentation(line) >= key_column;
                let fault_start = line_start + indentation(line);
                let fault_texts = match is_comment {
                    true if text.is_empty() => texts::TEXT_COMMENTED_OUT,
                    true if !is_after_blank && !is_before_sibling => texts::COMMENT_IN_TEXT,
                    _ => return,
                };
                self.report(fault_texts, fault_start..fault_start + 1);
                return;
            }
            if !is_blank {
                text_indent = text_indent.or(Some(indentation(line)));
            }
            is_after_blank = is_blank;
            line_start += line.len();
        }
    }
}

/// True if the anchor of the alias at the start of `text_after` is in an earlier document.
fn is_in_other_document(text_before: &str, text_after: &str) -> bool {
    let is_delimiter = |c: char| c.is_whitespace() || ",]}".contains(c);
    let name = text_after.split(is_delimiter).next().and_then(|alias| alias.strip_prefix('*'));
    let Some(anchor) = name.map(|name| format!("&{name}")) else { return false };
    let mut anchors = text_before.match_indices(&anchor);
    anchors.any(|(anchor_start, _)| {
        text_before[anchor_start + anchor.len()..].chars().next().is_none_or(is_delimiter)
    })
}

/// True if `text` starts with an alias rather than with a glob or a schedule.
fn is_alias(text: &str) -> bool {
    let line_tail = text.get(1..).and_then(|rest| rest.lines().next()).unwrap_or_default();
    let name = line_tail.split([' ', ',', ']', '}']).next().unwrap_or_default();
    let tail = line_tail[name.len()..].trim_start();
    name.starts_with(|c: char| c != '-')
        && text::looks_like_name(name)
        && (tail.is_empty() || tail.starts_with(['#', ',', ']', '}']))
}

/// The number of blanks and tabs before a line.
fn indentation(line: &str) -> usize {
    line.len() - line.trim_start_matches([' ', '\t']).len()
}

#[cfg(test)]
mod tests {
    use granit_parser::Parser;

    use super::*;

    /// The table contains the names that the parser gives its errors.
    #[test]
    fn each_text_has_its_message() {
        let texts = MESSAGES.iter().filter_map(|message| Some((message, message.text?)));
        for (expected, text) in texts {
            let error = Parser::new_from_str(text).find_map(Result::err).unwrap();
            let (message, help) = describe_error(error.kind());
            assert_eq!(help, Some(expected.help), "{text}: {:?}", error.kind());
            assert!(expected.message.contains('{') || message == expected.message, "{message}");
        }
    }
}
