//! The parts of a plan other than steps: notes, what could not be read, and what blocks it.

use std::collections::{BTreeMap, BTreeSet};

use unicode_width::UnicodeWidthStr as _;

use super::fold::{draw_others, lines};
use crate::{
    diagnostic::{Diagnostic, Diagnostics, SourceLocation},
    diff::{GuardRefusal, Held, Incomplete, Note, Problem, Reason},
    plan::LeftOut,
    report::{
        Canvas, Line, Paint, TextStyle,
        model::{
            MAX_CONTAINERS, acknowledged_together, acknowledgement, fold_equal, fold_objects, gist,
            group_by_kind, local_name,
            note::{note_kind, note_object},
            with_request_id,
        },
    },
    secret::Secrets,
    text::{count, shell_word},
};

/// How many objects of one project a paragraph names without `--full`.
const MAX_OBJECTS: usize = 8;
/// The minimum number of archived projects that are counted instead of named.
const MIN_COUNTED: usize = 3;

/// Notes: a paragraph for each kind, with a line for each project.
pub(super) fn draw_notes(canvas: &mut Canvas, notes: &[Note]) {
    for ((_, title), kind_notes) in group_by_kind(notes) {
        let projects: BTreeSet<_> = kind_notes.iter().map(|note| &*note.address.path).collect();
        // Archived projects have no other notes.
        let is_archived = title == note_kind(&Reason::Archived).1;
        if is_archived && projects.len() >= MIN_COUNTED && !canvas.style().full {
            let first = projects.first().copied().unwrap_or_default();
            let text = format!("{title}: {first} and {} more", projects.len() - 1);
            canvas.add_paragraph([Line::note(text).put(Paint::Dim, " (--full lists all)")]);
        } else {
            let objects =
                kind_notes.into_iter().map(|note| (&*note.address.path, note_object(note)));
            draw_paragraph(canvas, title, objects);
        }
    }
}

/// Holds: a paragraph for each last day.
pub(super) fn draw_held(canvas: &mut Canvas, held: &[Held]) {
    let mut days: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for Held { address, until } in held {
        days.entry(until).or_default().push((&*address.path, local_name(address)));
    }
    for (until, objects) in days {
        draw_paragraph(
            canvas,
            &format!("held until {until}, that day included; unchanged"),
            objects,
        );
    }
}

/// A title with a line for each project, or for several with the same objects; nothing without
/// objects.
pub(super) fn draw_paragraph<'p>(
    canvas: &mut Canvas,
    title: &str,
    objects: impl IntoIterator<Item = (&'p str, String)>,
) {
    let groups = fold_objects(objects, canvas.style().full);
    if groups.is_empty() {
        return;
    }
    let is_folded = groups.iter().any(|alike| !alike.others.is_empty());
    let aside = if is_folded { " (--full lists all)" } else { "" };
    canvas.add_paragraph([Line::note(title).put(Paint::Dim, aside)]);
    let groups: Vec<_> = groups.into_iter().map(|alike| (alike.title(), alike.objects)).collect();
    let column =
        groups.iter().map(|(projects, _)| projects.width()).filter(|n| *n <= 40).max().unwrap_or(0);
    let groups = groups.into_iter();
    draw_first(canvas, MAX_CONTAINERS, "line", groups, |canvas, (projects, objects)| {
        let line = Line::indented(2).text(projects);
        let start = (2 + column).max(line.len()) + 2;
        let objects = join_first_objects(&objects, canvas.style().full);
        canvas.add_line(&line.pad_to(start).hang_here().text(objects));
    });
}

/// `objects` on one line: all of them, or the first few and the number of the others.
pub(super) fn join_first_objects(objects: &[String], full: bool) -> String {
    let shown = if full || objects.len() <= MAX_OBJECTS + 1 { objects.len() } else { MAX_OBJECTS };
    let text = objects[..shown].join(", ");
    match objects.len() - shown {
        0 => text,
        more => format!("{text} … and {more} more, shown by --full"),
    }
}

/// Scopes that could not be read.
pub(super) fn draw_incomplete(canvas: &mut Canvas, incomplete: &[Incomplete]) {
    if incomplete.is_empty() {
        return;
    }
    let title = Line::with_text(Paint::Change, "incomplete: ");
    canvas.add_paragraph([title.text("could not be read; nothing is planned there")]);
    let groups =
        fold_equal(incomplete, canvas.style().full, |scope| gist(&scope.reason, &scope.address));
    draw_first(canvas, MAX_CONTAINERS, "scope", groups.into_iter(), |canvas, (scope, others)| {
        let line = Line::indented(2).text(scope.address.to_string()).text("  ").hang_here();
        let help = scope.reason.help.as_ref().filter(|_| !others.is_empty());
        let help = help.map_or_else(String::new, |help| format!("; {help}"));
        canvas.add_line(&line.put(Paint::Dim, with_request_id(&scope.reason) + &help));
        draw_others(canvas, "scope", others.iter().map(|scope| &scope.address));
    });
}

/// Problems to repair first, in the form of compiler messages.
pub(super) fn draw_problems(canvas: &mut Canvas, problems: &[Problem]) {
    let located = problems.iter().map(|problem| {
        let diagnostic = Diagnostic::error(problem.code, &problem.message)
            .at_place(SourceLocation::from(&problem.origin));
        diagnostic.label(problem.address.to_string()).help_if(problem.help.as_ref())
    });
    draw_diagnostics(canvas, located);
}

/// Refusals of guards, each with its acknowledgement. Many refusals by one guard are shown as one,
/// followed by the names of its other objects.
pub(super) fn draw_refusals(canvas: &mut Canvas, refusals: &[GuardRefusal]) {
    let groups = fold_equal(refusals, canvas.style().full, acknowledged_together);
    let shown = groups.iter().map(|(first, others)| {
        let GuardRefusal { guard, address, reason, origin, .. } = first;
        let ack = shell_word(&acknowledgement(first, others.iter().copied()));
        let (message, help) = match others.len() {
            0 => (format!("{address}: {reason}"), format!("if intended, pass `--ack {ack}`")),
            more => (
                format!("{guard} in {}, the first: {address}: {reason}", count(more + 1, "object")),
                format!("if all are intended, pass `--ack {ack}`; `--full` shows each reason"),
            ),
        };
        Diagnostic::error("guard", message).at_place(SourceLocation::from(origin)).help(help)
    });
    draw_diagnostics(canvas, shown);
    for (first, others) in groups {
        let others: Vec<_> = others.iter().map(|other| other.address.to_string()).collect();
        for chunk in others.chunks(MAX_OBJECTS) {
            let line = Line::indented(2).put(Paint::Note, format!("{} also in: ", first.guard));
            canvas.add_line(&line.hang_here().text(chunk.join(", ")));
        }
    }
}

/// Diagnostics have their own layout, so secrets are removed from their texts before it.
fn draw_diagnostics(canvas: &mut Canvas, diagnostics: impl Iterator<Item = Diagnostic>) {
    let redacted = diagnostics.map(|mut diagnostic| {
        let Diagnostic { message, place, label, help, .. } = &mut diagnostic;
        let texts = [Some(message), label.as_mut(), help.as_mut()];
        texts.into_iter().flatten().for_each(|text| *text = canvas.redact(text));
        place.iter_mut().for_each(|place| place.file = canvas.redact(&place.file).into());
        diagnostic
    });
    let struck: Diagnostics = redacted.collect();
    if !struck.is_empty() {
        canvas.add_gap();
        canvas.add_verbatim(&struck.render(canvas.style().into()));
    }
}

/// Draws each of `items`, or the first few and the number of the rest.
pub(super) fn draw_first<T>(
    canvas: &mut Canvas,
    max_items: usize,
    noun: &str,
    items: impl ExactSizeIterator<Item = T>,
    mut draw: impl FnMut(&mut Canvas, T),
) {
    let max_items = max_items.min(canvas.remaining_lines());
    let shown =
        if canvas.style().full || items.len() <= max_items + 1 { items.len() } else { max_items };
    let omitted = items.len() - shown;
    for item in items.take(shown) {
        draw(canvas, item);
    }
    if omitted > 0 {
        let text = format!("… and {} (--full lists them)", count(omitted, &format!("more {noun}")));
        canvas.add_line(&Line::indented(2).put(Paint::Dim, text));
    }
}

/// The groups and projects that are not applied.
pub fn left_out(containers: &[LeftOut], style: TextStyle, secrets: &Secrets) -> String {
    let line = |LeftOut { address, steps }: &LeftOut| {
        format!("`{address}` is left out, with {}", count(*steps, "change"))
    };
    let texts: [&dyn Fn(&LeftOut) -> String; 2] = [&line, &|skipped| skipped.address.to_string()];
    lines(containers, "group or project", |skipped| skipped.steps, texts, (style, secrets))
}
