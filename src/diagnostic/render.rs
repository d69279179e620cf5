//! Diagnostics as text for people, as cargo shows its own.

use annotate_snippets::{
    Annotation, AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet,
};

use super::{Diagnostic, Place, Severity};
use crate::text::escape;

/// How diagnostics are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether with colours.
    pub colour: bool,
    /// The width of the terminal in columns.
    pub width: usize,
}

impl Default for Style {
    fn default() -> Self {
        Self { colour: false, width: 140 }
    }
}

/// One diagnostic, without a line feed at its end.
pub(super) fn render(diagnostic: &Diagnostic, style: Style) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut group = level
        .primary_title(escape(&diagnostic.message))
        .id(diagnostic.code)
        .elements(Vec::<Element<'_>>::new());
    if let Some(place) = &diagnostic.place {
        group = show(group, place, diagnostic.label.as_deref(), AnnotationKind::Primary);
    }
    for (place, label) in &diagnostic.related {
        group = show(group, place, Some(label), AnnotationKind::Context);
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(escape(help)));
    }
    let renderer = if style.colour { Renderer::styled() } else { Renderer::plain() };
    let text = renderer.term_width(style.width.max(40)).render(&[group]);
    let related = diagnostic.related.iter().map(|(place, _)| place);
    diagnostic.place.iter().chain(related).fold(text, with_true_column)
}

/// `group` with a place: file, line and column, and the line itself where it is known.
fn show<'d>(
    group: Group<'d>,
    place: &'d Place,
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

/// The renderer counts columns in the line that is shown, where hidden parts are shorter than they
/// are in the file.
fn with_true_column(text: String, place: &Place) -> String {
    let Some((spot, (line, (start, _)))) =
        place.spot.as_ref().and_then(|spot| Some((spot, spot.snippet.as_ref()?)))
    else {
        return text;
    };
    let shown = line[..*start].chars().count() + 1;
    if shown == spot.column as usize {
        return text;
    }
    let at = |column: usize| format!("{}:{}:{column}", escape(&place.file), spot.line);
    text.replacen(&at(shown), &at(spot.column as usize), 1)
}
