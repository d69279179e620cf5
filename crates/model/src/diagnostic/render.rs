//! Diagnostics as text for people, in the style of cargo.

use std::borrow::Cow;

use annotate_snippets::{
    Annotation, AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet,
};

use super::{Diagnostic, Severity, SourceLocation};
use crate::text::{escape, wrap_lines};

/// How diagnostics are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiagnosticStyle {
    /// Whether to use colours.
    pub has_colour: bool,
    /// The width of the terminal in columns.
    pub width: usize,
    /// Whether to show each one in full.
    pub is_full: bool,
}

impl Default for DiagnosticStyle {
    fn default() -> Self {
        Self { has_colour: false, width: 140, is_full: false }
    }
}

/// The number of diagnostics of one code that are shown in full. If there are more, only the first
/// is, with the places of the next two.
pub(super) const MAX_SHOWN: usize = 3;

/// The code of refusals. Each one is shown: it has an acknowledgement of its own.
pub(super) const GUARD_CODE: &str = "guard";

/// Below this terminal width in columns, lines are wrapped between words. Output to a file is at
/// least this wide, so its lines stay whole and searchable.
const NARROW_WIDTH: usize = 120;

/// The maximum number of columns before the text of a note: `99999 = help: `.
const NOTE_INDENT: usize = 14;

/// The number of lines that is read without scrolling.
pub(super) const SCREEN_LINES: usize = 60;

/// One diagnostic without the text of its line, and the number of others of its code.
pub(super) fn brief_form(diagnostic: &Diagnostic, others: &[&Diagnostic]) -> String {
    let Diagnostic { severity, code, message, .. } = diagnostic;
    let severity = severity.word();
    let place = diagnostic.place.as_ref().map_or_else(String::new, |place| format!("{place}: "));
    let more =
        if others.is_empty() { String::new() } else { format!(" (and {} more)", others.len()) };
    let help = diagnostic.help.as_ref();
    let help = help.map_or_else(String::new, |help| format!("  = help: {}\n", escape(help)));
    format!("{severity}[{code}]: {}{}{more}\n{help}", escape(&place), escape(message))
}

/// One diagnostic, and the others of its code, without a final line feed.
pub(super) fn render(
    diagnostic: &Diagnostic,
    others: &[&Diagnostic],
    style: DiagnosticStyle,
) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let wrap = |text: Cow<'_, str>, before: usize| {
        let max_width = style.width.max(40).saturating_sub(before);
        if style.width < NARROW_WIDTH { wrap_lines(&text, max_width) } else { text.into_owned() }
    };
    let title = "warning[]: ".len() + diagnostic.code.len();
    let mut group = level
        .primary_title(wrap(escape(&diagnostic.message), title))
        .id(diagnostic.code)
        .elements(Vec::<Element<'_>>::new());
    if let Some(place) = &diagnostic.place {
        group = add_place(group, place, diagnostic.label.as_deref(), AnnotationKind::Primary);
    }
    for (place, label) in &diagnostic.related {
        group = add_place(group, place, Some(label), AnnotationKind::Context);
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(wrap(escape(help), NOTE_INDENT)));
    }
    let mut remaining = others.len();
    let mut other_places = Vec::new();
    let alike: Vec<_> = others
        .chunk_by(|a, b| (&a.place, &a.message, &a.help) == (&b.place, &b.message, &b.help))
        .collect();
    // The last one takes no more room than its number.
    let is_all = diagnostic.code == GUARD_CODE || alike.len() == MAX_SHOWN;
    for same in alike.into_iter().take(if is_all { usize::MAX } else { MAX_SHOWN - 1 }) {
        let times = if let [_] = same { String::new() } else { format!(" ({} times)", same.len()) };
        other_places.push(short_form(same[0], diagnostic) + &times);
        remaining -= same.len();
    }
    if remaining > 0 {
        other_places.push(format!("and {remaining} more (--full shows all)"));
    }
    if !other_places.is_empty() {
        group = group.element(
            Level::NOTE
                .with_name("also")
                .message(wrap(other_places.join("\n").into(), NOTE_INDENT)),
        );
    }
    let renderer = if style.has_colour { Renderer::styled() } else { Renderer::plain() };
    let text = renderer.term_width(style.width.max(40)).render(&[group]);
    let related = diagnostic.related.iter().map(|(place, _)| place);
    diagnostic.place.iter().chain(related).fold(text, with_true_column)
}

/// The place of a diagnostic, and its message if it differs from `first`.
fn short_form(other: &Diagnostic, first: &Diagnostic) -> String {
    let is_same_place = other.place.is_some() && other.place == first.place;
    let place = other.place.as_ref().map(SourceLocation::to_string);
    let place = if is_same_place { Some("here".to_owned()) } else { place };
    let message = Some(&other.message).filter(|message| **message != first.message);
    let help = other.help.as_ref().filter(|_| other.help != first.help);
    let parts = [place.as_ref(), message, help].into_iter().flatten();
    parts.map(|part| escape(part)).collect::<Vec<_>>().join(": ")
}

/// Adds a place to `group`: file, line and column, and the line itself if known.
fn add_place<'d>(
    group: Group<'d>,
    place: &'d SourceLocation,
    label: Option<&'d str>,
    kind: AnnotationKind,
) -> Group<'d> {
    let path = escape(&place.file);
    let Some(spot) = &place.spot else { return group.element(Origin::path(path)) };
    let Some((line, (start, end))) = &spot.snippet else {
        return group.element(
            Origin::path(path).line(spot.line as usize).char_column(spot.column as usize),
        );
    };
    let annotation = kind.span(*start..*end).label(label.map(escape));
    let snippet =
        Snippet::<Annotation<'_>>::source(line.as_str()).line_start(spot.line as usize).path(path);
    group.element(snippet.annotation(annotation))
}

/// The renderer counts columns in the displayed line, where hidden parts are shorter than in the
/// file.
fn with_true_column(text: String, place: &SourceLocation) -> String {
    let Some((spot, (line, (start, _)))) =
        place.spot.as_ref().and_then(|spot| Some((spot, spot.snippet.as_ref()?)))
    else {
        return text;
    };
    let shown = line[..*start].chars().count() + 1;
    if shown == spot.column as usize {
        return text;
    }
    let [shown, true_place] = [shown, spot.column as usize]
        .map(|column| format!("{}:{}:{column}", escape(&place.file), spot.line));
    // `a.yaml:1:10` is also the beginning of `a.yaml:1:104`.
    let end = text.match_indices(&shown).map(|(at, _)| at + shown.len());
    match end.clone().find(|end| !text[*end..].starts_with(|c: char| c.is_ascii_digit())) {
        Some(end) => format!("{}{true_place}{}", &text[..end - shown.len()], &text[end..]),
        None => text,
    }
}
