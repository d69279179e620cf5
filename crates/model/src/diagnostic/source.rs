//! The text of a file, with line numbers and the parts that must not be shown.
//!
//! A [`SourceText`] converts byte ranges to a [`SourceLocation`] or an [`Origin`]. A location
//! contains a snippet of its line. The snippet hides the ranges that were passed to
//! [`SourceText::hide_ranges`], credentials in URLs, and comments.

use std::{cell::Cell, fmt, mem, ops::Range, sync::Arc};

use super::FileName;
use crate::{
    field::Secrecy,
    origin::{FileLayer, Layer, Origin},
    secret::judge,
    steps,
    text::{self, MASK},
};

/// The number of characters of a long line that are shown on each side of the fault.
const SNIPPET_CHARS: usize = 120;

/// A location in a file. Locations are ordered by file, line and column.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceLocation {
    /// The name of the file when it was read.
    pub file: FileName,
    /// The position in the file; `None` for the whole file.
    pub(super) position: Option<LineColumn>,
}

/// A position in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LineColumn {
    /// The line, from 1.
    pub(super) line: u32,
    /// The column in characters, from 1.
    pub(super) column: u32,
    /// The displayed part of the line, and the range of bytes in this part to mark.
    pub(super) snippet: Option<(String, (usize, usize))>,
}

impl SourceLocation {
    /// The whole file.
    pub fn whole_file(file: impl Into<FileName>) -> Self {
        Self { file: file.into(), position: None }
    }

    /// The line, from 1.
    pub fn line(&self) -> Option<u32> {
        self.position.as_ref().map(|position| position.line)
    }

    /// The column in characters, from 1.
    pub fn column(&self) -> Option<u32> {
        self.position.as_ref().map(|position| position.column)
    }
}

/// Writes `FILE:LINE:COLUMN`, or only `FILE` if the position is unknown.
impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        self.position
            .as_ref()
            .map_or(Ok(()), |position| write!(f, ":{}:{}", position.line, position.column))
    }
}

/// The location of a declared value, without its line of text.
impl From<&Origin> for SourceLocation {
    fn from(origin: &Origin) -> Self {
        Self {
            file: origin.file.clone(),
            position: Some(LineColumn { line: origin.line, column: origin.column, snippet: None }),
        }
    }
}

/// The text of one file.
#[derive(Debug)]
pub struct SourceText<'t> {
    /// The name of the file.
    pub name: FileName,
    /// For each layer, the [`FileLayer`] that all origins of the layer share.
    file_layers: [Arc<FileLayer>; Layer::ALL.len()],
    text: &'t str,
    /// The byte offset of the start of each line.
    line_starts: Vec<usize>,
    /// The byte ranges that must not be shown, ordered and merged.
    hidden_ranges: Vec<Range<usize>>,
    /// The last byte offset and its column. On a long line, the next column is counted from this
    /// offset.
    last_offset_column: Cell<(usize, u32)>,
    /// The number of the last displayed line, and the byte offset of the end of its code. Because
    /// of this cache, a long line is not scanned for each fault.
    last_code_end: Cell<(u32, usize)>,
}

impl<'t> SourceText<'t> {
    /// The text of the file `name`.
    pub fn new(name: impl Into<FileName>, text: &'t str) -> Self {
        let name = name.into();
        // Lines are short: a loop over bytes is faster than a search for each line.
        let line_feeds = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let line_starts: Vec<_> =
            std::iter::once(0).chain(line_feeds.map(|(index, _)| index + 1)).collect();
        steps::add_steps(line_starts.len() as u64);
        Self {
            file_layers: Layer::ALL
                .map(|layer| Arc::new(FileLayer { file: FileName::clone(&name), layer })),
            name,
            text,
            line_starts,
            hidden_ranges: judge::find_secrets(text, Secrecy::Address),
            last_offset_column: Cell::new((0, 1)),
            last_code_end: Cell::new((0, 0)),
        }
    }

    /// The whole text.
    pub const fn text(&self) -> &'t str {
        self.text
    }

    /// Hides these byte ranges.
    pub fn hide_ranges(&mut self, ranges: impl IntoIterator<Item = Range<usize>>) {
        self.hidden_ranges.extend(ranges.into_iter().filter(|range| !range.is_empty()));
        self.hidden_ranges = text::merge_ranges(mem::take(&mut self.hidden_ranges), true);
    }

    /// Shows this byte range again.
    pub fn reveal_range(&mut self, range: &Range<usize>) {
        let hidden_ranges = mem::take(&mut self.hidden_ranges).into_iter();
        let parts = hidden_ranges.flat_map(|hidden| {
            [hidden.start..hidden.end.min(range.start), hidden.start.max(range.end)..hidden.end]
        });
        self.hidden_ranges = parts.filter(|part| !part.is_empty()).collect();
    }

    /// The whole text with a mask for each hidden part. Hidden parts for which `is_plain` returns
    /// true are shown. The result has the same lines with the same indentation.
    pub fn visible_text(&self, is_plain: impl Fn(&str) -> bool) -> String {
        let (mut shown_text, mut copied_end) = (String::with_capacity(self.text.len()), 0);
        for range in &self.hidden_ranges {
            let hidden_text = &self.text[range.clone()];
            if !is_plain(hidden_text) {
                shown_text += &self.text[copied_end..range.start];
                hidden_text.split_inclusive('\n').for_each(|line| shown_text += &mask_line(line));
                copied_end = range.end;
            }
        }
        shown_text + &self.text[copied_end..]
    }

    /// The origin of a value at the byte `offset`.
    pub fn origin(&self, offset: usize, layer: Layer) -> Origin {
        let (line, column) = self.position(offset);
        Origin { file_layer: Arc::clone(&self.file_layers[layer as usize]), line, column }
    }

    /// The location of `span`, with its first line.
    pub fn locate(&self, span: &Range<usize>) -> SourceLocation {
        let start = floor_char_boundary(self.text, span.start);
        let (line, column) = self.position(start);
        let end = floor_char_boundary(self.text, span.end).max(start);
        let snippet =
            Some(self.make_snippet(line, start..end)).filter(|(text, _)| !text.is_empty());
        SourceLocation {
            file: self.name.clone(),
            position: Some(LineColumn { line, column, snippet }),
        }
    }

    /// The byte offset of a line and column, both from 1. If the text or line is shorter, the
    /// closest byte offset before.
    pub fn offset(&self, line: u32, column: u32) -> usize {
        let line = (line.max(1) as usize).min(self.line_starts.len());
        let start = self.line_starts[line - 1];
        let text = &self.text[start..];
        let text = &text[..text.find('\n').unwrap_or(text.len())];
        let bom_length =
            if start == 0 && text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        offset_after(self.text, start + bom_length, column.max(1) as usize - 1)
            .min(start + text.len())
    }

    /// The line and column of a byte, both from 1. A byte order mark is not a column.
    fn position(&self, offset: usize) -> (u32, u32) {
        let offset = floor_char_boundary(self.text, offset);
        let line = self.line_starts.partition_point(|start| *start <= offset);
        let start = self.line_starts[line - 1];
        let (cached_offset, column) = self.last_offset_column.get();
        let (count_start, column) = if (start..=offset).contains(&cached_offset) {
            (cached_offset, column)
        } else {
            (start, 1)
        };
        let text = &self.text[count_start..offset];
        let text =
            if count_start == 0 { text.strip_prefix('\u{feff}').unwrap_or(text) } else { text };
        let column = column.saturating_add(u32::try_from(text.chars().count()).unwrap_or(u32::MAX));
        self.last_offset_column.set((offset, column));
        (u32::try_from(line).unwrap_or(u32::MAX), column)
    }

    /// The byte offset of the end of a line without its comment.
    fn code_end(&self, line: u32) -> usize {
        let (cached_line, end) = self.last_code_end.get();
        if cached_line == line {
            return end;
        }
        let start = self.line_starts[line as usize - 1];
        let end = self.text[start..].find('\n').map_or(self.text.len(), |length| start + length);
        let comment_start = start + code_length(&self.text[start..end]);
        let end = start + self.text[start..comment_start].trim_end().len();
        self.last_code_end.set((line, end));
        end
    }

    /// The part of a line that may be shown, and the range of bytes in this part that corresponds
    /// to `span`.
    fn make_snippet(&self, line: u32, span: Range<usize>) -> (String, (usize, usize)) {
        let start = self.line_starts[line as usize - 1];
        let end = self.code_end(line);
        let span = span.start.min(end)..span.end.min(end).max(span.start.min(end));
        let snippet_start = offset_before(self.text, span.start, SNIPPET_CHARS).max(start);
        let snippet_end = offset_after(
            self.text,
            span.end.min(offset_after(self.text, span.start, SNIPPET_CHARS)),
            SNIPPET_CHARS,
        )
        .min(end);
        let mut snippet = String::new();
        let (mut shown_start, mut shown_end) = (None, 0);
        let mut offset = snippet_start;
        while offset < snippet_end {
            let range_index = self.hidden_ranges.partition_point(|range| range.end <= offset);
            let hidden_range =
                self.hidden_ranges.get(range_index).filter(|range| range.start <= offset);
            let (length, text) = match (hidden_range, self.text[offset..].chars().next()) {
                (Some(_), Some(' ')) if snippet.trim().is_empty() => (1, " ".into()),
                // Up to the mark, a hidden part keeps its width, so that the mark is in its column.
                (Some(range), _) if offset < span.start && span.start <= range.end => {
                    let hidden_text = &self.text[offset..span.start];
                    (hidden_text.len(), "*".repeat(hidden_text.chars().count()))
                }
                (Some(range), _) => (range.end.min(snippet_end) - offset, MASK.into()),
                (None, Some(c)) => (c.len_utf8(), display_char(c)),
                (None, None) => break,
            };
            if offset <= span.start && span.start < offset + length {
                shown_start = Some(snippet.len());
            }
            snippet.push_str(&text);
            if offset < span.end {
                shown_end = snippet.len();
            }
            offset += length;
        }
        let shown_start = shown_start.unwrap_or(snippet.len());
        (snippet, (shown_start, shown_end.max(shown_start)))
    }
}

/// Replaces a line, or a part of a line, by a mask with the same indentation.
fn mask_line(line: &str) -> String {
    let text = line.trim();
    if text.is_empty() { line.into() } else { line.replacen(text, MASK, 1) }
}

/// A character in displayed form.
fn display_char(c: char) -> String {
    match c {
        '\t' => " ".into(),
        '\u{feff}' => String::new(),
        c => text::escape(c.encode_utf8(&mut [0; 4])).into_owned(),
    }
}

/// The length in bytes of a line before its comment. In doubt, a `#` starts a comment.
fn code_length(line: &str) -> usize {
    let mut previous_char = ' ';
    let mut value_may_start = true;
    let mut offset = 0;
    while let Some(c) = line[offset..].chars().next() {
        if c == '#' && previous_char.is_whitespace() {
            return offset;
        }
        let next_offset = offset + c.len_utf8();
        if matches!(c, '"' | '\'')
            && value_may_start
            && let Some(quoted_length) = find_closing_quote(&line[next_offset..], c)
        {
            offset = next_offset + quoted_length;
            previous_char = c;
            value_may_start = false;
            continue;
        }
        if !c.is_whitespace() {
            value_may_start = matches!(c, ':' | ',' | '[' | '{' | '-' | '?');
        }
        previous_char = c;
        offset = next_offset;
    }
    line.len()
}

/// The byte offset after the closing `quote` in `text`. `text` starts after the opening quote.
/// `None` if the closing quote is missing.
fn find_closing_quote(text: &str, quote: char) -> Option<usize> {
    let mut characters = text.char_indices().peekable();
    while let Some((offset, c)) = characters.next() {
        match c {
            '\\' if quote == '"' => {
                characters.next();
            }
            '\'' if quote == '\'' && characters.peek().is_some_and(|(_, next)| *next == '\'') => {
                characters.next();
            }
            c if c == quote => return Some(offset + 1),
            _ => {}
        }
    }
    None
}

/// The byte offset of the character that contains the byte `offset`, or the end of the text.
fn floor_char_boundary(text: &str, offset: usize) -> usize {
    (0..=offset.min(text.len())).rev().find(|index| text.is_char_boundary(*index)).unwrap_or(0)
}

/// The byte offset that is `distance` characters before `end`, or the start of the text.
fn offset_before(text: &str, end: usize, distance: usize) -> usize {
    text[..end].char_indices().rev().take(distance).last().map_or(end, |(index, _)| index)
}

/// The byte offset that is `distance` characters after `start`, or the end of the text.
fn offset_after(text: &str, start: usize, distance: usize) -> usize {
    text[start..].char_indices().nth(distance).map_or(text.len(), |(offset, _)| start + offset)
}
