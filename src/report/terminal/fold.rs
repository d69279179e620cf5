//! Draws groups and projects with their steps. Equal changes are shown once.

use std::collections::BTreeSet;

use crate::{
    address::Address,
    diff::{Action, Step},
    report::{
        Canvas, Line, Paint,
        model::{
            FoldMode, FoldedSteps, ReportPart, StepExcerpt, StepItem, fold_equal, fold_steps,
            full_name, step::object_name,
        },
    },
    text::count,
};

use super::change;

/// The maximum number of named groups and projects with the same change.
pub(super) const MAX_NAMED: usize = 3;

/// Draws every group and project with its steps, in the order of the plan.
pub(super) fn draw_steps<'s>(canvas: &mut Canvas, steps: impl IntoIterator<Item = &'s Step>) {
    let steps = steps.into_iter().map(|step| StepItem::planned(0, step, ReportPart::Changes));
    let mode = if canvas.style().is_full { FoldMode::Nothing } else { FoldMode::Fields };
    let mut omitted_steps = Vec::new();
    for folded in fold_steps(&steps.collect::<Vec<_>>(), mode) {
        if canvas.remaining_lines() == 0 {
            let steps = folded.steps.iter();
            omitted_steps.extend(steps.map(|excerpt| (excerpt.item.step, folded.others.clone())));
            continue;
        }
        let shared_remark = folded.shared_remark().map(|more| format!("  ({more})"));
        let head = Line::with_text(Paint::Bold, &*folded.first_step().address.path);
        canvas.add_paragraph([head.put(Paint::Dim, shared_remark.unwrap_or_default())]);
        let noun = format!("more {}", folded.first_step().scope.noun());
        let FoldedSteps { steps, others, has_other_values, .. } = folded;
        // If something is removed, all other groups and projects are named, without a maximum.
        let has_removals = steps.iter().any(|excerpt| excerpt.item.step.action == Action::Delete);
        let max_named = if has_removals { others.len() } else { MAX_NAMED };
        for (index, StepExcerpt { item, changes }) in steps.into_iter().enumerate() {
            // The first step is always drawn, so that the heading is never alone.
            if canvas.remaining_lines() == 0 && index > 0 {
                omitted_steps.push((item.step, others.clone()));
                continue;
            }
            change::draw_step(canvas, item.step, changes, true);
        }
        let introduction = if has_other_values {
            "the same change, with other values, in"
        } else {
            "the same change in"
        };
        draw_others_line(canvas, introduction, &noun, &others, max_named);
    }
    draw_omitted(canvas, &omitted_steps);
}

/// Draws a summary of the steps that did not fit: their number, and the name of each removal. Each
/// pair in `omitted_steps` is a step and the paths of other groups and projects with the same step.
/// A step whose fields were drawn in several parts is counted once.
fn draw_omitted(canvas: &mut Canvas, omitted_steps: &[(&Step, Vec<&str>)]) {
    let changes: BTreeSet<_> = omitted_steps
        .iter()
        .flat_map(|(step, others)| {
            let (object, is_removal) =
                (object_name(step.scope, &step.address), step.action == Action::Delete);
            let paths = others.iter().copied().chain([&*step.address.path]);
            paths.map(move |path| (object.clone(), path, is_removal))
        })
        .collect();
    if changes.is_empty() {
        return;
    }
    let removals = changes.iter().filter(|(.., is_removal)| *is_removal);
    let removal_text = match removals.clone().count() {
        0 => String::new(),
        removal_count => format!(", with {}:", count(removal_count, "removal")),
    };
    let paths: BTreeSet<_> = changes.iter().map(|(_, path, _)| path).collect();
    let change_text = count(changes.len(), "more change");
    let container_text = count(paths.len(), "group or project");
    let text = format!("… and {change_text} in {container_text} (--full lists them){removal_text}");
    canvas.add_paragraph([Line::with_text(Paint::Dim, text)]);
    let removals: Vec<_> = removals.collect();
    for same_removals in removals.chunk_by(|(object, ..), (other, ..)| object == other) {
        let paths: Vec<_> = same_removals.iter().map(|(_, path, _)| *path).collect();
        let line = Line::indented(2).put(Paint::Remove, format!("- {}", same_removals[0].0));
        canvas.add_line(&line.text("  ").set_hanging_indent().text(paths.join(", ")));
    }
}

/// Draws the names of other objects that have the same change as the line above.
pub(super) fn draw_others<'a>(
    canvas: &mut Canvas,
    noun: &str,
    others: impl Iterator<Item = &'a Address>,
) {
    let others: Vec<_> = others.map(full_name).collect();
    draw_others_line(canvas, "the same for", &format!("more {noun}"), &others, MAX_NAMED);
}

fn draw_others_line(
    canvas: &mut Canvas,
    introduction: &str,
    noun: &str,
    others: &[impl AsRef<str>],
    max_named: usize,
) {
    if let Some(text) = others_text(introduction, noun, others, max_named) {
        canvas.add_line(&Line::indented(2).put(Paint::Note, text));
    }
}

/// Renders a `line` for each item on an empty `canvas`. Items with the same `key` share the line of the
/// first item, followed by the names of the others. `noun` is the word for one item.
pub fn render_lines<T, K: Ord>(
    mut canvas: Canvas<'_>,
    items: &[T],
    noun: &str,
    key: impl Fn(&T) -> K,
    line: impl Fn(&T) -> String,
    name: impl Fn(&T) -> String,
) -> String {
    for (first_item, others) in fold_equal(items, canvas.style().is_full, key) {
        let others: Vec<_> = others.into_iter().map(&name).collect();
        let others = others_text("; the same for", &format!("more {noun}"), &others, MAX_NAMED);
        canvas.add_line(&Line::default().text(line(first_item) + &others.unwrap_or_default()));
    }
    canvas.finish()
}

/// The text `introduction`, the number of `items` with their `noun`, and the names of the first `max_named`
/// items; `None` if there are no items.
pub(super) fn others_text(
    introduction: &str,
    noun: &str,
    items: &[impl AsRef<str>],
    max_named: usize,
) -> Option<String> {
    let named_items: Vec<_> = items.iter().take(max_named).map(AsRef::as_ref).collect();
    let rest_text = if items.len() > max_named { ", …; --full shows each" } else { "" };
    let text = format!(
        "{introduction} {}: {}{rest_text}",
        count(items.len(), noun),
        named_items.join(", ")
    );
    (!items.is_empty()).then_some(text)
}
