//! The parts of a plan with a base: first the changes of the branch, then drift.

use super::{fold, notes::draw_paragraph};
use crate::{
    diff::{Action, Label, Step},
    plan::{Acknowledged, BaseComparison, Plan},
    report::{
        Canvas, Line, Paint, ReportKind,
        model::{
            action_sign, describe_cause, local_name,
            step::{object_name, object_prefix},
        },
    },
};

/// Draws the acknowledgements that the branch adds. These acknowledgements come first, because
/// reviewers must see them.
pub(super) fn draw_acknowledged(canvas: &mut Canvas, acknowledged: &[Acknowledged]) {
    let mut new_acknowledgements =
        acknowledged.iter().filter(|acknowledgement| acknowledgement.is_new).peekable();
    if new_acknowledgements.peek().is_none() {
        return;
    }
    let title = "this branch acknowledges what a guard would refuse:";
    canvas.add_paragraph([Line::with_text(Paint::Change, title)]);
    for Acknowledged { refusal, reason, by, .. } in new_acknowledgements {
        let reason_text = reason.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        let text = format!("{}: {}{reason_text}", refusal.acknowledgement, refusal.reason);
        canvas.add_line_with_origin(Line::indented(2).text(text), by.as_ref());
    }
}

/// Draws the steps of `plan`: the steps of the branch with all fields, then drift.
pub(super) fn draw_branch_steps(canvas: &mut Canvas, plan: &Plan, kind: ReportKind) {
    let (drift, changes): (Vec<_>, Vec<_>) = plan.steps.iter().partition(|step| step.is_drift());
    fold::draw_steps(canvas, changes);
    let title = "drift: these differed before this branch";
    if kind == ReportKind::Apply {
        draw_full_steps(canvas, title, &drift);
    } else {
        draw_step_names(canvas, title, &drift);
    }
}

/// Draws the results of the comparison with the base that are not steps of the plan.
pub(super) fn draw_base_comparison(canvas: &mut Canvas, comparison: &BaseComparison) {
    let title = "excluded: drift that this branch did not ask for; `--heal` writes it too";
    draw_step_names(canvas, title, &comparison.excluded_steps.iter().collect::<Vec<_>>());
    let refusals = comparison.refusals.iter().map(|refusal| (&refusal.address, &refusal.reason));
    let problems = comparison.problems.iter().map(|problem| (&problem.address, &problem.message));
    let drift_problems = refusals.chain(problems);
    let problem_lines =
        drift_problems.map(|(address, message)| (&*address.path, object_prefix(address) + message));
    draw_paragraph(canvas, "problems of drift; they do not block this branch", problem_lines);
    let unread_parts = comparison.incomplete.iter().map(|part| {
        (&*part.address.path, object_prefix(&part.address) + &describe_cause(&part.reason))
    });
    draw_paragraph(canvas, "could not be read; this branch does not change it", unread_parts);
    let adopted_objects = comparison.adopted.iter().map(|step| {
        let fields = step.fields.join(", ");
        let fields = if fields.is_empty() { fields } else { format!(" ({fields})") };
        (&*step.address.path, local_name(&step.address) + &fields)
    });
    draw_paragraph(canvas, "declared by this branch and already live", adopted_objects);
    let removed_objects =
        comparison.removed.iter().map(|address| (&*address.path, local_name(address)));
    draw_paragraph(
        canvas,
        "declared at the base and not by this branch; unchanged",
        removed_objects,
    );
}

/// Draws how many groups and projects were not read, because their declarations are the same at the
/// base.
pub(super) fn draw_unread_count(canvas: &mut Canvas, plan: &Plan) {
    let unchanged = plan.base.as_ref().map_or(0, |base| base.unchanged);
    if unchanged > 0 {
        let total = unchanged + plan.groups + plan.projects;
        let text = format!(
            "{unchanged} of {total} groups and projects have the same declarations as at the base; not read"
        );
        canvas.add_paragraph([Line::note(text)]);
    }
}

/// The mark after the name of an object or a field.
pub(super) const fn label_mark(label: Option<Label>) -> &'static str {
    match label {
        Some(Label::Drift) => " (drift)",
        Some(Label::Both) => " (drifted, and edited here)",
        Some(Label::Removed) => " (declared at the base)",
        Some(Label::Change | Label::Unknown) | None => "",
    }
}

/// Draws `steps` with all their fields and values.
fn draw_full_steps(canvas: &mut Canvas, title: &str, steps: &[&Step]) {
    if !steps.is_empty() {
        canvas.add_paragraph([Line::with_text(Paint::Bold, title)]);
        fold::draw_steps(canvas, steps.iter().copied());
    }
}

/// Draws only the names of `steps` and of their fields. With `--full`, also draws the values. If
/// the list is long, removals are drawn separately with all fields, so that no removal is
/// truncated.
fn draw_step_names(canvas: &mut Canvas, title: &str, steps: &[&Step]) {
    if canvas.style().is_full {
        return draw_full_steps(canvas, title, steps);
    }
    // The names of up to nine steps fit into one paragraph.
    let is_short = steps.len() <= 9;
    let (removals, steps): (Vec<&Step>, Vec<_>) =
        steps.iter().partition(|step| step.action == Action::Delete && !is_short);
    let step_names = steps.iter().map(|step| {
        let fields: Vec<_> = step.changes.iter().map(|change| &*change.field).collect();
        let shows_fields = step.action == Action::Update && !fields.is_empty();
        let fields = if shows_fields { format!(" ({})", fields.join(", ")) } else { String::new() };
        let (_, sign) = action_sign(step.action);
        (&*step.address.path, format!("{sign} {}{fields}", object_name(step.scope, &step.address)))
    });
    draw_paragraph(canvas, title, step_names);
    draw_full_steps(canvas, &format!("{title} (removals)"), &removals);
}
