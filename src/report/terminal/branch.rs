//! A plan against the base of a branch: the branch's changes first, then the drift, folded.

use super::{fold, notes::draw_paragraph};
use crate::{
    diff::{Action, Label, Step},
    plan::{Acknowledged, BaseComparison, Plan},
    report::{
        Canvas, Line, Overflow, Paint, ReportKind,
        model::{
            local_name, sign,
            step::{object_name, object_prefix},
        },
    },
};

/// Acknowledgements that the branch adds; reviewers must see them first.
pub(super) fn draw_acknowledged(canvas: &mut Canvas, acknowledged: &[Acknowledged]) {
    let mut new_acknowledgements =
        acknowledged.iter().filter(|acknowledgement| acknowledgement.is_new).peekable();
    if new_acknowledgements.peek().is_none() {
        return;
    }
    let title = "this branch acknowledges what a guard would refuse:";
    canvas.add_paragraph([Line::with_text(Paint::Change, title)]);
    for Acknowledged { refusal, reason, by, .. } in new_acknowledgements {
        let why = reason.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        let text = format!("{}: {}{why}", refusal.acknowledgement, refusal.reason);
        canvas.add_line_with_origin(Line::indented(2).text(text), by.as_ref(), Overflow::Wrap);
    }
}

/// The steps of `plan`: those of the branch in full, then drift.
pub(super) fn draw_branch_steps(canvas: &mut Canvas, plan: &Plan, kind: ReportKind) {
    let (drift, changes): (Vec<_>, Vec<_>) = plan.steps.iter().partition(|step| step.is_drift());
    fold::draw_steps(canvas, changes);
    let words = "drift: these differed before this branch";
    if kind == ReportKind::Apply {
        draw_all(canvas, words, &drift);
    } else {
        draw_names(canvas, words, &drift);
    }
}

/// The rest of the comparison with the base.
pub(super) fn draw_comparison(canvas: &mut Canvas, comparison: &BaseComparison) {
    let title = "excluded: drift that this branch did not ask for; `--heal` writes it too";
    draw_names(canvas, title, &comparison.left.iter().collect::<Vec<_>>());
    let refusals = comparison.refusals.iter().map(|refusal| (&refusal.address, &refusal.reason));
    let problems = comparison.problems.iter().map(|problem| (&problem.address, &problem.message));
    let drift_lines = refusals.chain(problems);
    let of_drift = drift_lines.map(|(address, why)| (&*address.path, object_prefix(address) + why));
    draw_paragraph(canvas, "problems of drift; they do not block this branch", of_drift);
    let already = comparison.already.iter().map(|already| {
        let fields = already.fields.join(", ");
        let fields = if fields.is_empty() { fields } else { format!(" ({fields})") };
        (&*already.address.path, local_name(&already.address) + &fields)
    });
    draw_paragraph(canvas, "declared by this branch and already live", already);
    let removed = comparison.removed.iter().map(|address| (&*address.path, local_name(address)));
    draw_paragraph(canvas, "declared at the base and not by this branch; unchanged", removed);
}

/// How many containers were not read.
pub(super) fn draw_unchanged(canvas: &mut Canvas, plan: &Plan) {
    let unchanged = plan.base.as_ref().map_or(0, |against| against.unchanged);
    if unchanged > 0 {
        let total = unchanged + plan.groups + plan.projects;
        let text = format!(
            "{unchanged} of {total} groups and projects are declared as at the base; not read"
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

/// `steps` in full.
fn draw_all(canvas: &mut Canvas, title: &str, steps: &[&Step]) {
    if !steps.is_empty() {
        canvas.add_paragraph([Line::with_text(Paint::Bold, title)]);
        fold::draw_steps(canvas, steps.iter().copied());
    }
}

/// `steps` by name, or with all fields if nothing is folded. Each removal is shown with its name.
fn draw_names(canvas: &mut Canvas, title: &str, steps: &[&Step]) {
    if canvas.style().full {
        return draw_all(canvas, title, steps);
    }
    // A paragraph has room for the names of up to nine steps.
    let is_short = steps.len() <= 9;
    let (removals, steps): (Vec<&Step>, Vec<_>) =
        steps.iter().partition(|step| step.action == Action::Delete && !is_short);
    let shown = steps.iter().map(|step| {
        let fields: Vec<_> = step.changes.iter().map(|change| &*change.field).collect();
        let is_part = step.action == Action::Update && !fields.is_empty();
        let fields = if is_part { format!(" ({})", fields.join(", ")) } else { String::new() };
        let (_, sign) = sign(step.action);
        (&*step.address.path, format!("{sign} {}{fields}", object_name(step.scope, &step.address)))
    });
    draw_paragraph(canvas, title, shown);
    draw_all(canvas, &format!("{title} (removals)"), &removals);
}
