//! Plans and apply reports as text for people.
//!
//! A plan is grouped by project: `+ ~ -` for each object, then its fields with the live and the
//! declared value, and the place of the declaration. After the steps come notes, then what blocks
//! the plan, then a summary line. Folded or truncated text shows how to see everything.

mod applied;
mod branch;
mod change;
mod edits;
pub mod explain;
mod fold;
mod notes;
mod saved;

#[cfg(test)]
pub(super) mod tests;

pub use applied::applied;
pub use edits::{SCREEN_LINES, edits};
pub use fold::lines;
pub use notes::left_out;
pub use saved::{saved, stale};

use super::{Canvas, Line, Paint, ReportKind, Run, model::summary};
use crate::plan::Plan;

/// The maximum number of lines of a plan without `--full`.
const MAX_LINES: usize = 60;
/// The same if the result of the run follows.
const MAX_LINES_BEFORE_RESULT: usize = 40;
/// The minimum number of lines for steps.
const MIN_STEP_LINES: usize = 12;

/// `plan` on an empty `canvas`. The end is drawn first: it matters most, and the steps get the
/// remaining lines.
pub fn plan(mut canvas: Canvas<'_>, plan: &Plan, run: &Run, kind: ReportKind) -> String {
    let max_lines = if kind == ReportKind::Apply { MAX_LINES_BEFORE_RESULT } else { MAX_LINES };
    draw_heading(&mut canvas, kind.plan_word(), run);
    branch::draw_acknowledged(&mut canvas, &plan.acknowledged);
    let mut end = canvas.part();
    notes::draw_problems(&mut end, &plan.problems);
    notes::draw_refusals(&mut end, &plan.refusals);
    end.paragraph(summary::lines(plan, kind));
    let mut rest = canvas.part();
    rest.allow(max_lines.saturating_sub(canvas.lines() + end.lines() + MIN_STEP_LINES + 2));
    notes::draw_held(&mut rest, &plan.held);
    plan.base.iter().for_each(|against| branch::draw_comparison(&mut rest, against));
    branch::draw_unchanged(&mut rest, plan);
    notes::draw_notes(&mut rest, &plan.notes);
    rest.paragraph(summary::exception_notes(plan));
    rest.paragraph(summary::limit_note(plan));
    notes::draw_incomplete(&mut rest, &plan.incomplete);
    canvas.allow(
        max_lines
            .saturating_sub(canvas.lines() + rest.lines() + end.lines() + 4)
            .max(MIN_STEP_LINES),
    );
    branch::draw_branch_steps(&mut canvas, plan, kind);
    let (watched, held) = plan.watched_and_held();
    for (steps, title) in [(watched, "watched, not written:"), (held, "held, not written:")] {
        if !steps.is_empty() {
            canvas.paragraph([Line::of(Paint::Bold, title)]);
            fold::draw_steps(&mut canvas, steps);
        }
    }
    for part in [rest, end].map(Canvas::finish).iter().filter(|part| !part.is_empty()) {
        canvas.gap();
        canvas.verbatim(part);
    }
    canvas.finish()
}

/// The service of a report; the sandbox is always named as such.
fn draw_heading(canvas: &mut Canvas, word: &str, run: &Run) {
    let line = Line::of(Paint::Bold, word).text(" for ");
    let line =
        if run.sandbox { line.put(Paint::Note, "the sandbox") } else { line.text(&run.target) };
    let line = line.text(" as ").text(&run.caller);
    canvas.line(&match &run.token {
        Some(token) => line.text(format!(" ({token})")),
        None => line,
    });
    if let Some(live) = &run.live {
        canvas.line(&Line::of(Paint::Note, format!("from the snapshot of {}", live.shown)));
    }
    run.rehearsals().for_each(|text| canvas.line(&Line::of(Paint::Note, text)));
}
