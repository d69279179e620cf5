//! Lines of text for a terminal or a file: escaped, coloured and wrapped.
//!
//! A [`Line`] escapes every text on it, so no text from a manifest or the service can control a
//! terminal. The only control sequences in the output are the colours that [`Canvas`] adds. The
//! canvas removes secrets from a line before it wraps the line, because it would not recognise a
//! secret in two pieces. Widths are counted in columns of a terminal.

use std::{
    borrow::Cow,
    fmt::{self, Display, Formatter, Write as _},
};

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::TextStyle;
use crate::{
    origin::Origin,
    secret::{SECRET_MARK, Secrets},
    text::escape,
};

/// The meaning of a piece of text, which decides its colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Paint {
    /// Normal text.
    #[default]
    Plain,
    /// A heading.
    Bold,
    /// Less important text.
    Dim,
    /// A creation, or a success.
    Add,
    /// A changed value.
    Change,
    /// A removal.
    Remove,
    /// An error.
    Error,
    /// A note.
    Note,
}

impl Paint {
    /// The parameters of the SGR sequence; `None` for text without a colour.
    const fn code(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Bold => Some("1"),
            Self::Dim => Some("2"),
            Self::Add => Some("32"),
            Self::Change => Some("33"),
            Self::Remove => Some("31"),
            Self::Error => Some("1;31"),
            Self::Note => Some("36"),
        }
    }
}

/// A line of text. On a narrow terminal, the canvas wraps it to several lines.
#[must_use]
#[derive(Clone, Debug, Default)]
pub struct Line {
    hang_column: usize,
    cells: Vec<(char, Paint)>,
}

impl Line {
    /// A line of `indent` spaces. When wrapped, the line continues at the column `indent`.
    pub fn indented(indent: usize) -> Self {
        Self { hang_column: indent, cells: vec![(' ', Paint::Plain); indent] }
    }

    /// A line that begins with `text`, escaped.
    pub fn with_text(paint: Paint, text: impl AsRef<str>) -> Self {
        Self::default().put(paint, text)
    }

    /// A line that begins with `note: `, followed by `text`, escaped.
    pub fn note(text: impl AsRef<str>) -> Self {
        Self::default().put(Paint::Note, "note: ").text(text)
    }

    /// Adds `text`, escaped.
    pub fn put(mut self, paint: Paint, text: impl AsRef<str>) -> Self {
        self.cells.extend(escape(text.as_ref()).chars().map(|c| (c, paint)));
        self
    }

    /// Adds plain `text`, escaped.
    pub fn text(self, text: impl AsRef<str>) -> Self {
        self.put(Paint::Plain, text)
    }

    /// Adds the content of `other`.
    pub fn append(mut self, other: Self) -> Self {
        self.cells.extend(other.cells);
        self
    }

    /// Adds spaces up to `column`.
    pub fn pad_to(mut self, column: usize) -> Self {
        let padding = column.saturating_sub(self.width());
        self.cells.extend(std::iter::repeat_n((' ', Paint::Plain), padding));
        self
    }

    /// Makes the line continue at the current column when wrapped.
    pub fn set_hanging_indent(mut self) -> Self {
        self.hang_column = self.width();
        self
    }

    /// The number of columns of the unwrapped line.
    pub fn width(&self) -> usize {
        self.cells.iter().map(|(c, _)| c.width().unwrap_or(0)).sum()
    }

    /// True if the line is empty.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The line without `secrets`. The replacement has the colour of the secret.
    fn redact_line(&self, secrets: &Secrets) -> Cow<'_, Self> {
        let text = self.to_string();
        let secret_ranges = secrets.find_known_secrets(&text);
        if secret_ranges.is_empty() {
            return Cow::Borrowed(self);
        }
        let (mut cells, mut remaining_ranges) =
            (Vec::with_capacity(self.cells.len()), secret_ranges.iter().peekable());
        for ((byte_index, c), (_, paint)) in text.char_indices().zip(&self.cells) {
            remaining_ranges.next_if(|range| range.end <= byte_index);
            match remaining_ranges.peek() {
                Some(range) if range.start == byte_index => {
                    cells.extend(SECRET_MARK.chars().map(|c| (c, *paint)));
                }
                Some(range) if range.contains(&byte_index) => {}
                _ => cells.push((c, *paint)),
            }
        }
        Cow::Owned(Self { cells, hang_column: self.hang_column })
    }
}

/// The text of the line, escaped.
impl Display for Line {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.cells.iter().try_for_each(|(c, _)| f.write_char(*c))
    }
}

/// The maximum column at which an origin ends. Origins are at the right edge. On a wide terminal,
/// they would be too far from the text of their lines.
const MAX_ORIGIN_COLUMN: usize = 100;

/// The minimum width of wrapped text, in columns. If the indent leaves fewer columns, the text is
/// indented by a quarter of the width instead.
const MIN_TEXT_WIDTH: usize = 20;

/// The minimum length of a part of the text that is passed to the sink, in bytes.
const MIN_PART_BYTES: usize = 1 << 16;

/// A function that gets a text in parts.
pub type Sink<'s> = &'s mut dyn FnMut(&str);

/// A text that is being written.
pub struct Canvas<'s> {
    style: TextStyle,
    secrets: &'s Secrets,
    text: String,
    sink: Option<Sink<'s>>,
    line_count: usize,
    max_lines: usize,
}

impl<'s> Canvas<'s> {
    /// An empty canvas that never shows `secrets`.
    pub const fn new(style: TextStyle, secrets: &'s Secrets) -> Self {
        Self {
            style,
            secrets,
            text: String::new(),
            sink: None,
            line_count: 0,
            max_lines: usize::MAX,
        }
    }

    /// An empty canvas that passes its text to `sink` in parts, because plans of large
    /// organisations have many megabytes. Each part ends at the end of a paragraph.
    pub fn with_sink(sink: Sink<'s>, style: TextStyle, secrets: &'s Secrets) -> Self {
        Self { sink: Some(sink), ..Self::new(style, secrets) }
    }

    /// An empty canvas for another part of the same text.
    pub const fn new_part(&self) -> Self {
        Self::new(self.style, self.secrets)
    }

    /// The style.
    pub const fn style(&self) -> TextStyle {
        self.style
    }

    /// The number of lines that were written.
    pub const fn line_count(&self) -> usize {
        self.line_count
    }

    /// The number of lines that may still be written.
    pub const fn remaining_lines(&self) -> usize {
        self.max_lines.saturating_sub(self.line_count)
    }

    /// Allows `extra_lines` more lines, or any number if the style is full.
    pub const fn allow_lines(&mut self, extra_lines: usize) {
        self.max_lines =
            if self.style.is_full { usize::MAX } else { self.line_count + extra_lines };
    }

    /// The text; empty if it was passed to a sink.
    pub fn finish(self) -> String {
        match self.sink {
            Some(sink) => {
                sink(&self.text);
                String::new()
            }
            None => self.text,
        }
    }

    /// Adds an empty line, unless the text is empty or already ends with one.
    pub fn add_gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
            self.line_count += 1;
        }
        if self.text.len() > MIN_PART_BYTES
            && let Some(sink) = &mut self.sink
        {
            // Keep the empty line at the end, so that the next gap finds it.
            let end = self.text.len() - "\n\n".len();
            sink(&self.text[..end]);
            self.text.drain(..end);
        }
    }

    /// `text` without secrets, for text that the caller splits into lines or lays out.
    pub fn redact(&self, text: &str) -> String {
        self.secrets.redact(text)
    }

    /// Adds text that is already escaped, laid out, and without secrets.
    pub fn add_verbatim(&mut self, text: &str) {
        self.text.push_str(text);
        self.line_count += text.lines().count();
    }

    /// Adds an empty line and then `lines`. Adds nothing if there are no lines.
    pub fn add_paragraph(&mut self, lines: impl IntoIterator<Item = Line>) {
        for (index, line) in lines.into_iter().enumerate() {
            if index == 0 {
                self.add_gap();
            }
            self.add_line(&line);
        }
    }

    /// Adds a line.
    pub fn add_line(&mut self, line: &Line) {
        let line = line.redact_line(self.secrets);
        let hang_column = self.style.width.map_or(0, |width| {
            if line.hang_column + MIN_TEXT_WIDTH > width { width / 4 } else { line.hang_column }
        });
        for (index, part) in
            wrap(&line.cells, hang_column, self.style.width).into_iter().enumerate()
        {
            let indent = if index == 0 { 0 } else { hang_column };
            self.text.extend(std::iter::repeat_n(' ', indent));
            self.add_cells(part);
            self.text.push('\n');
            self.line_count += 1;
        }
    }

    /// Adds a line with its origin, if there is one. An origin that does not fit gets its own line.
    pub fn add_line_with_origin<'o>(&mut self, line: Line, origin: impl Into<Option<&'o Origin>>) {
        let overflow = self.add_line_with_fitting_origin(line, origin.into());
        overflow.iter().for_each(|line| self.add_line(line));
    }

    /// Adds a line with its origin, if there is one. Returns a line for an origin that does not fit.
    pub fn add_line_with_fitting_origin(
        &mut self,
        line: Line,
        origin: Option<&Origin>,
    ) -> Option<Line> {
        let Some(origin) = origin else {
            self.add_line(&line);
            return None;
        };
        let line = line.redact_line(self.secrets).into_owned();
        let origin_text = format!("# {}:{}", origin.file, origin.line);
        let needed_width = line.width() + 2 + origin_text.width();
        match self.style.width {
            Some(width) if needed_width > width => {
                let indent = line.hang_column.min(width.saturating_sub(origin_text.width()));
                self.add_line(&line);
                Some(Line::indented(indent).put(Paint::Dim, &origin_text))
            }
            width => {
                // Without a width, there is no right edge for the origin.
                let column = width
                    .map_or(0, |width| width.min(MAX_ORIGIN_COLUMN) + 2)
                    .saturating_sub(needed_width - line.width());
                let column = column.max(line.width() + 2);
                self.add_line(&line.pad_to(column).put(Paint::Dim, &origin_text));
                None
            }
        }
    }

    fn add_cells(&mut self, cells: &[(char, Paint)]) {
        let mut last_paint = Paint::Plain;
        for (c, paint) in cells {
            self.switch_paint(last_paint, *paint);
            self.text.push(*c);
            last_paint = *paint;
        }
        self.switch_paint(last_paint, Paint::Plain);
    }

    fn switch_paint(&mut self, old_paint: Paint, new_paint: Paint) {
        if self.style.is_coloured && old_paint != new_paint {
            for code in [old_paint.code().and(Some("0")), new_paint.code()].into_iter().flatten() {
                self.text.extend(["\u{1b}[", code, "m"]);
            }
        }
    }
}

/// The number of `cells` that fit into `room` columns, at least 1.
fn count_fitting(cells: &[(char, Paint)], room: usize) -> usize {
    let mut width = 0;
    let first_outside = cells.iter().position(|(c, _)| {
        width += c.width().unwrap_or(0);
        width > room
    });
    first_outside.unwrap_or(cells.len()).max(1)
}

/// `cells` split into parts that fit into `width`; each part after the first has `hang_column` columns of
/// indent. Splits at spaces if possible.
fn wrap(
    cells: &[(char, Paint)],
    hang_column: usize,
    width: Option<usize>,
) -> Vec<&[(char, Paint)]> {
    let end = cells.iter().rposition(|(c, _)| *c != ' ').map_or(0, |last| last + 1);
    let (mut remaining_cells, mut parts) = (&cells[..end], Vec::new());
    let mut room = width.unwrap_or(usize::MAX).max(1);
    loop {
        let fit_count = count_fitting(remaining_cells, room);
        if fit_count >= remaining_cells.len() {
            break;
        }
        // A split inside the leading spaces would leave an empty part.
        let text_start = remaining_cells.iter().position(|(c, _)| *c != ' ').unwrap_or(0);
        let space_index = remaining_cells[..=fit_count]
            .iter()
            .rposition(|(c, _)| *c == ' ')
            .filter(|index| *index > text_start);
        let (part, tail) = remaining_cells.split_at(space_index.unwrap_or(fit_count));
        parts.push(part);
        let space_count = tail.iter().position(|(c, _)| *c != ' ').unwrap_or(tail.len());
        remaining_cells = &tail[space_count..];
        room = width.unwrap_or(usize::MAX).saturating_sub(hang_column).max(1);
    }
    parts.push(remaining_cells);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{origin::Layer, secret::Secret, text::is_unsafe};
    use proptest::prelude::*;

    fn render_line(style: TextStyle, line: &Line) -> String {
        render_line_without(&Secrets::default(), style, line)
    }

    fn render_line_without(secrets: &Secrets, style: TextStyle, line: &Line) -> String {
        let mut canvas = Canvas::new(style, secrets);
        canvas.add_line(line);
        canvas.finish()
    }

    #[test]
    fn joined_parts_equal_the_whole_text() {
        fn draw(mut canvas: Canvas<'_>) -> String {
            for index in 0..9_000 {
                let line = Line::default().text(format!("paragraph {index} é"));
                canvas.add_paragraph([line.clone(), line]);
                canvas.add_gap();
            }
            canvas.finish()
        }
        let secrets = Secrets::default();
        let mut parts = Vec::new();
        let mut collect_part = |part: &str| parts.push(part.to_owned());
        assert_eq!(draw(Canvas::with_sink(&mut collect_part, TextStyle::default(), &secrets)), "");
        assert!(parts.len() > 3 && parts.iter().all(|part| part.len() < 2 * MIN_PART_BYTES));
        assert_eq!(parts.concat(), draw(Canvas::new(TextStyle::default(), &secrets)));
    }

    fn style_with(width: usize) -> TextStyle {
        TextStyle { width: Some(width), ..TextStyle::default() }
    }

    #[test]
    fn a_long_line_continues_under_its_start() {
        let line = Line::indented(2)
            .text("description ")
            .set_hanging_indent()
            .text("one two three four five six seven");
        assert_eq!(
            render_line(style_with(36), &line),
            "  description one two three four\n              five six seven\n"
        );
        assert_eq!(render_line(TextStyle::default(), &line).lines().count(), 1);
    }

    #[test]
    fn a_word_that_does_not_fit_is_cut() {
        assert_eq!(
            render_line(style_with(10), &Line::default().text("abcdefghijklmnop")),
            "abcdefghij\n  klmnop\n"
        );
    }

    #[test]
    fn a_wide_character_takes_two_columns() {
        let line = Line::default().text("工程").pad_to(6).set_hanging_indent().text("アクメ 商店");
        assert_eq!(render_line(TextStyle::default(), &line), "工程  アクメ 商店\n");
        assert_eq!(render_line(style_with(33), &line), "工程  アクメ 商店\n");
        let long_line = Line::indented(2).text("アクメの商店です アクメの商店です");
        assert_eq!(
            render_line(style_with(20), &long_line),
            "  アクメの商店です\n     アクメの商店で\n     す\n"
        );
    }

    #[test]
    fn an_origin_is_at_the_edge_below_or_omitted() {
        let origin = Origin::new("shop.yaml", 7, 3, Layer::Project);
        let render = |width, wraps| {
            let secrets = Secrets::default();
            let mut canvas = Canvas::new(TextStyle { width, ..TextStyle::default() }, &secrets);
            let line = Line::indented(2).text("visibility");
            if wraps {
                canvas.add_line_with_origin(line, &origin);
            } else {
                let _ = canvas.add_line_with_fitting_origin(line, Some(&origin));
            }
            canvas.finish()
        };
        assert_eq!(render(None, false), "  visibility  # shop.yaml:7\n");
        assert_eq!(render(Some(30), false), "  visibility     # shop.yaml:7\n");
        assert_eq!(render(Some(24), false), "  visibility\n");
        assert_eq!(render(Some(24), true), "  visibility\n  # shop.yaml:7\n");
        assert_eq!(render(Some(14), true), "  visibility\n # shop.yaml:7\n");
    }

    #[test]
    fn colours_end_after_their_text() {
        let line = Line::with_text(Paint::Add, "+").text(" a").put(Paint::Error, "!");
        let colour = TextStyle { is_coloured: true, ..TextStyle::default() };
        assert_eq!(render_line(colour, &line), "\u{1b}[32m+\u{1b}[0m a\u{1b}[1;31m!\u{1b}[0m\n");
    }

    fn secrets_with(secret: &str) -> Secrets {
        let mut secrets = Secrets::default();
        secrets.add_redaction(Secret::new(secret));
        secrets
    }

    #[test]
    fn a_secret_in_several_colours_is_removed() {
        let line = Line::indented(2)
            .text("is ")
            .put(Paint::Add, "hunter2\u{202e}")
            .put(Paint::Remove, "hunter2")
            .text(", and more");
        let secrets = secrets_with("hunter2\u{202e}hunter2");
        assert_eq!(
            render_line_without(&secrets, TextStyle::default(), &line),
            "  is [secret], and more\n"
        );
        let colour = TextStyle { is_coloured: true, ..TextStyle::default() };
        assert_eq!(
            render_line_without(&secrets, colour, &line),
            "  is \u{1b}[32m[secret]\u{1b}[0m, and more\n"
        );
    }

    #[test]
    fn an_origin_is_at_the_edge_beside_a_removed_secret() {
        let origin = Origin::new("shop.yaml", 7, 3, Layer::Project);
        let secrets = secrets_with("hunter2hunter2hunter2");
        let mut canvas = Canvas::new(style_with(40), &secrets);
        let line = Line::indented(2).text("is hunter2hunter2hunter2");
        assert!(canvas.add_line_with_fitting_origin(line, Some(&origin)).is_none());
        assert_eq!(canvas.finish(), "  is [secret]              # shop.yaml:7\n");
    }

    proptest! {
        #[test]
        fn no_piece_of_a_secret_is_shown_however_the_line_is_wrapped(
            before in "[a-z ]{0,30}", after in "[a-z ]{0,30}", secret in "[A-Z0-9]{6,90}", width in 1_usize..90,
        ) {
            let line = Line::indented(2).text(before).text(&secret).text(after);
            let out = render_line_without(&secrets_with(&secret), style_with(width), &line);
            prop_assert!(!out.contains(|c: char| c.is_ascii_uppercase() || c.is_ascii_digit()), "{}", out);
        }

        #[test]
        fn output_is_safe_and_complete(text in "(\\PC|\\p{C}){0,40}", width in proptest::option::of(1_usize..90)) {
            let style = TextStyle { width, ..TextStyle::default() };
            let out = render_line(style, &Line::indented(3).put(Paint::Bold, &text));
            prop_assert!(!out.replace('\n', "").contains(is_unsafe));
            let visible_chars = |s: &str| s.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            prop_assert_eq!(visible_chars(&out), visible_chars(&escape(&text)));
        }

        #[test]
        fn no_line_is_wider_than_the_terminal(text in "[a-z 工程é]{0,200}", width in 2_usize..90) {
            let out = render_line(style_with(width), &Line::indented(2).text(&text));
            prop_assert!(out.lines().all(|line| line.width() <= width), "{}", out);
        }
    }
}
