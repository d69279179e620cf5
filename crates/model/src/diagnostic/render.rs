//! Diagnostics as text for people, in the style of cargo.

use std::borrow::Cow;

use annotate_snippets::{
    Annotation, AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet,
};

use super::{Diagnostic, Severity, SourceLocation};
use crate::text::{escape, wrap_lines};

/// The style of text for people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextStyle {
    /// True if colours are used.
    pub is_coloured: bool,
    /// The width in columns at which lines are wrapped. `None` outside a terminal, where lines are
    /// not wrapped.
    pub width: Option<usize>,
    /// True if everything is shown, without folding or truncating.
    pub is_full: bool,
}

/// The width of diagnostics outside a terminal, in columns.
const DEFAULT_WIDTH: usize = 140;

/// The maximum number of diagnostics of one code that are shown in full. If a code has more, only
/// the first diagnostic is shown in full, with the locations of the next two.
pub(super) const MAX_SHOWN_PER_CODE: usize = 3;

/// The code of refusals by guards. Each refusal is shown, because each refusal needs its own
/// acknowledgement.
pub(super) const GUARD_CODE: &str = "guard";

/// Below this terminal width in columns, lines are wrapped between words. Output to a file is at
/// least this wide: unwrapped lines are easier to search.
const NARROW_WIDTH: usize = 120;

/// The maximum number of columns before the text of a note, as in `99999 = help: `.
const NOTE_INDENT: usize = 14;

/// The number of lines that can be read without scrolling.
pub(super) const SCREEN_LINES: usize = 60;

/// A diagnostic as text without its source line. The text also contains the number of `others`, the
/// other diagnostics of the same code.
pub(super) fn render_without_source(diagnostic: &Diagnostic, others: &[&Diagnostic]) -> String {
    let Diagnostic { severity, code, message, .. } = diagnostic;
    let severity = severity.word();
    let location =
        diagnostic.location.as_ref().map_or_else(String::new, |location| format!("{location}: "));
    let more_note =
        if others.is_empty() { String::new() } else { format!(" (and {} more)", others.len()) };
    let help = diagnostic.help.as_ref();
    let help = help.map_or_else(String::new, |help| format!("  = help: {}\n", escape(help)));
    format!("{severity}[{code}]: {}{}{more_note}\n{help}", escape(&location), escape(message))
}

/// A diagnostic as text, with the locations of `others`, the other diagnostics of the same code.
/// The text has no final line feed.
pub(super) fn render(diagnostic: &Diagnostic, others: &[&Diagnostic], style: TextStyle) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let width = style.width.unwrap_or(DEFAULT_WIDTH);
    let wrap = |text: Cow<'_, str>, indent: usize| {
        let max_width = width.max(40).saturating_sub(indent);
        if width < NARROW_WIDTH { wrap_lines(&text, max_width) } else { text.into_owned() }
    };
    let title_indent = "warning[]: ".len() + diagnostic.code.len();
    let mut group = level
        .primary_title(wrap(escape(&diagnostic.message), title_indent))
        .id(diagnostic.code)
        .elements(Vec::<Element<'_>>::new());
    if let Some(location) = &diagnostic.location {
        group = add_location(group, location, diagnostic.label.as_deref(), AnnotationKind::Primary);
    }
    for (location, label) in &diagnostic.related {
        group = add_location(group, location, Some(label), AnnotationKind::Context);
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(wrap(escape(help), NOTE_INDENT)));
    }
    let mut remaining_count = others.len();
    let mut other_locations = Vec::new();
    let batches: Vec<_> = others
        .chunk_by(|a, b| (&a.location, &a.message, &a.help) == (&b.location, &b.message, &b.help))
        .collect();
    // If only one batch would be left out, show this batch: its location needs no more lines than a
    // note with the count.
    let shows_all = diagnostic.code == GUARD_CODE || batches.len() == MAX_SHOWN_PER_CODE;
    for batch in
        batches.into_iter().take(if shows_all { usize::MAX } else { MAX_SHOWN_PER_CODE - 1 })
    {
        let times_note =
            if let [_] = batch { String::new() } else { format!(" ({} times)", batch.len()) };
        other_locations.push(describe_other(batch[0], diagnostic) + &times_note);
        remaining_count -= batch.len();
    }
    if remaining_count > 0 {
        other_locations.push(format!("and {remaining_count} more (--full shows all)"));
    }
    if !other_locations.is_empty() {
        group = group.element(
            Level::NOTE
                .with_name("also")
                .message(wrap(other_locations.join("\n").into(), NOTE_INDENT)),
        );
    }
    let renderer = if style.is_coloured { Renderer::styled() } else { Renderer::plain() };
    let text = renderer.term_width(width.max(40)).render(&[group]);
    let related = diagnostic.related.iter().map(|(related_location, _)| related_location);
    diagnostic.location.iter().chain(related).fold(text, correct_column)
}

/// The location of `other`, and its message and help if they differ from the message and help of
/// `first_diagnostic`.
fn describe_other(other: &Diagnostic, first_diagnostic: &Diagnostic) -> String {
    let has_same_location = other.location.is_some() && other.location == first_diagnostic.location;
    let location = other.location.as_ref().map(SourceLocation::to_string);
    let location = if has_same_location { Some("here".to_owned()) } else { location };
    let message = Some(&other.message).filter(|message| **message != first_diagnostic.message);
    let help = other.help.as_ref().filter(|_| other.help != first_diagnostic.help);
    let details = [location.as_ref(), message, help].into_iter().flatten();
    details.map(|detail| escape(detail)).collect::<Vec<_>>().join(": ")
}

/// Adds a location to `group`: the file, the line number, the column, and the text of the line.
/// Unknown parts are left out.
fn add_location<'d>(
    group: Group<'d>,
    location: &'d SourceLocation,
    label: Option<&'d str>,
    kind: AnnotationKind,
) -> Group<'d> {
    let path = escape(&location.file);
    let Some(position) = &location.position else { return group.element(Origin::path(path)) };
    let Some((line, (start, end))) = &position.snippet else {
        return group.element(
            Origin::path(path).line(position.line as usize).char_column(position.column as usize),
        );
    };
    let annotation = kind.span(*start..*end).label(label.map(escape));
    let snippet = Snippet::<Annotation<'_>>::source(line.as_str())
        .line_start(position.line as usize)
        .path(path);
    group.element(snippet.annotation(annotation))
}

/// Corrects the column in the rendered `text`. The renderer counts columns in the displayed line,
/// which hides parts of the line in the file.
fn correct_column(text: String, location: &SourceLocation) -> String {
    let Some((position, (line, (start, _)))) = location
        .position
        .as_ref()
        .and_then(|position| Some((position, position.snippet.as_ref()?)))
    else {
        return text;
    };
    let shown_column = line[..*start].chars().count() + 1;
    if shown_column == position.column as usize {
        return text;
    }
    let [shown_position, true_position] = [shown_column, position.column as usize]
        .map(|column| format!("{}:{}:{column}", escape(&location.file), position.line));
    // `a.yaml:1:10` is also the beginning of `a.yaml:1:104`.
    let end = text
        .match_indices(&shown_position)
        .map(|(match_start, _)| match_start + shown_position.len());
    match end.clone().find(|end| !text[*end..].starts_with(|c: char| c.is_ascii_digit())) {
        Some(end) => {
            format!("{}{true_position}{}", &text[..end - shown_position.len()], &text[end..])
        }
        None => text,
    }
}
