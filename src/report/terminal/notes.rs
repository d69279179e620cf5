//! The parts of a plan other than steps: notes, unread scopes, problems and refusals.

use std::collections::{BTreeMap, BTreeSet};

use unicode_width::UnicodeWidthStr as _;

use super::{
    count_shown,
    fold::{draw_others, render_lines},
};
use crate::{
    diagnostic::{Diagnostic, Diagnostics, SourceLocation},
    diff::{GuardRefusal, HeldObject, Incomplete, Note, Problem, Reason},
    plan::SkippedContainer,
    report::{
        Canvas, Line, Paint,
        model::{
            MAX_NAMED_CONTAINERS, acknowledgement_key, common_cause, describe_cause, fold_equal,
            fold_objects, group_by_kind, joint_acknowledgement, local_name,
            note::{note_kind, note_object},
        },
    },
    text::{count, shell_word},
};

/// The maximum number of objects of one project that a paragraph names without `--full`.
const MAX_NAMED_OBJECTS: usize = 8;
/// The minimum number of archived projects that are counted instead of named.
const MIN_COUNTED_PROJECTS: usize = 3;

/// Draws the notes: a paragraph for each kind, with a line for each project.
pub(super) fn draw_notes(canvas: &mut Canvas, notes: &[Note]) {
    for ((_, title), kind_notes) in group_by_kind(notes) {
        let projects: BTreeSet<_> = kind_notes.iter().map(|note| &*note.address.path).collect();
        // Archived projects have no other notes, so it is enough to count them.
        let is_archived = title == note_kind(&Reason::Archived).1;
        if is_archived && projects.len() >= MIN_COUNTED_PROJECTS && !canvas.style().is_full {
            let first_path = projects.first().copied().unwrap_or_default();
            let text = format!("{title}: {first_path} and {} more", projects.len() - 1);
            canvas.add_paragraph([Line::note(text).put(Paint::Dim, " (--full lists all)")]);
        } else {
            let objects =
                kind_notes.into_iter().map(|note| (&*note.address.path, note_object(note)));
            draw_paragraph(canvas, title, objects);
        }
    }
}

/// Draws the held objects: a paragraph for each last day of a hold.
pub(super) fn draw_held(canvas: &mut Canvas, held: &[HeldObject]) {
    let mut objects_by_day: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for HeldObject { address, until } in held {
        objects_by_day.entry(until).or_default().push((&*address.path, local_name(address)));
    }
    for (until, objects) in objects_by_day {
        let title = format!("held until {until}, that day included; unchanged");
        draw_paragraph(canvas, &title, objects);
    }
}

/// Draws a title, and a line for each project, or for several projects with the same objects. Draws
/// nothing if there are no objects.
pub(super) fn draw_paragraph<'p>(
    canvas: &mut Canvas,
    title: &str,
    objects: impl IntoIterator<Item = (&'p str, String)>,
) {
    let groups = fold_objects(objects, canvas.style().is_full);
    if groups.is_empty() {
        return;
    }
    let is_folded = groups.iter().any(|group| !group.others.is_empty());
    let hint = if is_folded { " (--full lists all)" } else { "" };
    canvas.add_paragraph([Line::note(title).put(Paint::Dim, hint)]);
    let groups: Vec<_> = groups.into_iter().map(|group| (group.title(), group.objects)).collect();
    let column =
        groups.iter().map(|(projects, _)| projects.width()).filter(|n| *n <= 40).max().unwrap_or(0);
    draw_first_items(canvas, "line", groups, |canvas, (projects, objects)| {
        let line = Line::indented(2).text(projects);
        let start = (2 + column).max(line.width()) + 2;
        let objects = join_first_objects(&objects, canvas.style().is_full);
        canvas.add_line(&line.pad_to(start).set_hanging_indent().text(objects));
    });
}

/// `objects` on one line: all of them, or the first few and the number of the others.
pub(super) fn join_first_objects(objects: &[String], is_full: bool) -> String {
    let shown_count = count_shown(objects.len(), MAX_NAMED_OBJECTS, is_full);
    let text = objects[..shown_count].join(", ");
    match objects.len() - shown_count {
        0 => text,
        more => format!("{text} … and {more} more, shown by --full"),
    }
}

/// Draws the scopes that could not be read.
pub(super) fn draw_incomplete(canvas: &mut Canvas, incomplete: &[Incomplete]) {
    if incomplete.is_empty() {
        return;
    }
    let title = Line::with_text(Paint::Change, "incomplete: ");
    canvas.add_paragraph([title.text("could not be read; nothing is planned there")]);
    let groups = fold_equal(incomplete, canvas.style().is_full, |scope| {
        common_cause(&scope.reason, &scope.address)
    });
    draw_first_items(canvas, "scope", groups, |canvas, (scope, others)| {
        let line =
            Line::indented(2).text(scope.address.to_string()).text("  ").set_hanging_indent();
        let help = scope.reason.help.as_ref();
        let help = help.map_or_else(String::new, |help| format!("; {help}"));
        let line = line.put(Paint::Dim, describe_cause(&scope.reason) + &help);
        canvas.add_line_with_origin(line, &scope.origin);
        draw_others(canvas, "scope", others.iter().map(|scope| &scope.address));
    });
}

/// Draws problems that must be fixed first, in the form of compiler messages.
pub(super) fn draw_problems(canvas: &mut Canvas, problems: &[Problem]) {
    let diagnostics = problems.iter().map(|problem| {
        let diagnostic = Diagnostic::error(problem.code, &problem.message)
            .with_location(SourceLocation::from(&problem.origin));
        diagnostic.with_label(problem.address.to_string()).with_optional_help(problem.help.as_ref())
    });
    draw_diagnostics(canvas, diagnostics);
}

/// Draws refusals of guards, each with its acknowledgement. Many refusals by one guard are shown as one,
/// followed by the names of the other objects.
pub(super) fn draw_refusals(canvas: &mut Canvas, refusals: &[GuardRefusal]) {
    let groups = fold_equal(refusals, canvas.style().is_full, acknowledgement_key);
    let diagnostics = groups.iter().map(|(first_refusal, others)| {
        let GuardRefusal { guard, address, reason, origin, .. } = first_refusal;
        let ack = shell_word(&joint_acknowledgement(first_refusal, others.iter().copied()));
        let (message, help) = match others.len() {
            0 => (format!("{address}: {reason}"), format!("if intended, pass `--ack {ack}`")),
            more => (
                format!("{guard} in {}, the first: {address}: {reason}", count(more + 1, "object")),
                format!("if all are intended, pass `--ack {ack}`; `--full` shows each reason"),
            ),
        };
        let alternative = guard.alternative().map(|advice| format!("{advice}; "));
        let help = alternative.unwrap_or_default() + &help;
        Diagnostic::error("guard", message)
            .with_location(SourceLocation::from(origin))
            .with_help(help)
    });
    draw_diagnostics(canvas, diagnostics);
    for (refusal, others) in groups {
        let others: Vec<_> = others.iter().map(|other| other.address.to_string()).collect();
        for chunk in others.chunks(MAX_NAMED_OBJECTS) {
            let line = Line::indented(2).put(Paint::Note, format!("{} also in: ", refusal.guard));
            canvas.add_line(&line.set_hanging_indent().text(chunk.join(", ")));
        }
    }
}

/// Draws diagnostics. Secrets are removed from their texts first, because the layout could split them.
fn draw_diagnostics(canvas: &mut Canvas, diagnostics: impl Iterator<Item = Diagnostic>) {
    let redacted = diagnostics.map(|mut diagnostic| {
        let Diagnostic { message, location, label, help, .. } = &mut diagnostic;
        let texts = [Some(message), label.as_mut(), help.as_mut()];
        texts.into_iter().flatten().for_each(|text| *text = canvas.redact(text));
        location.iter_mut().for_each(|source| source.file = canvas.redact(&source.file).into());
        diagnostic
    });
    let redacted_diagnostics: Diagnostics = redacted.collect();
    if !redacted_diagnostics.is_empty() {
        canvas.add_gap();
        canvas.add_verbatim(&redacted_diagnostics.render(canvas.style()));
    }
}

/// Draws each of `items`, or the first few and the number of the other items.
fn draw_first_items<T>(
    canvas: &mut Canvas,
    noun: &str,
    items: Vec<T>,
    mut draw: impl FnMut(&mut Canvas, T),
) {
    let max_items = MAX_NAMED_CONTAINERS.min(canvas.remaining_lines());
    let shown_count = count_shown(items.len(), max_items, canvas.style().is_full);
    let omitted_count = items.len() - shown_count;
    for item in items.into_iter().take(shown_count) {
        draw(canvas, item);
    }
    if omitted_count > 0 {
        let text =
            format!("… and {} (--full lists them)", count(omitted_count, &format!("more {noun}")));
        canvas.add_line(&Line::indented(2).put(Paint::Dim, text));
    }
}

/// A line for each group or project that is not applied.
pub fn skipped_text(canvas: Canvas<'_>, containers: &[SkippedContainer]) -> String {
    let line = |SkippedContainer { address, steps }: &SkippedContainer| {
        format!("`{address}` is left out, with {}", count(*steps, "change"))
    };
    let steps = |skipped: &SkippedContainer| skipped.steps;
    let name = |skipped: &SkippedContainer| skipped.address.to_string();
    render_lines(canvas, containers, "group or project", steps, line, name)
}
