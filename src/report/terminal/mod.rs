//! Plans and apply reports as text for people.
//!
//! A plan is grouped by project. Each object has a line with `+`, `~` or `-`. Then come its fields
//! with the live and the declared value, and the location of the declaration. After the steps come
//! notes, then the problems and refusals that block the plan, then a summary line. Folded or
//! truncated text names the option that shows everything.

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

pub use applied::render_applied;
pub use edits::{SCREEN_LINES, render_edits_text};
pub use fold::render_lines;
pub use notes::skipped_text;
pub use saved::{render_saved_plan, stale_text};

use super::{Canvas, Line, Paint, ReportKind, ReportedRun, model::summary};
use crate::plan::Plan;

/// The maximum number of lines of a plan without `--full`.
const MAX_LINES: usize = 60;
/// The maximum number of lines if the result of apply follows the plan.
const MAX_LINES_BEFORE_RESULT: usize = 40;
/// The minimum number of lines that are reserved for steps.
const MIN_STEP_LINES: usize = 12;

/// Renders `plan` on an empty `canvas`. The most important parts are at the end, so their lines are
/// reserved first; the steps get the remaining lines.
pub fn render_plan(
    mut canvas: Canvas<'_>,
    plan: &Plan,
    run: &ReportedRun,
    kind: ReportKind,
) -> String {
    let max_lines = if kind == ReportKind::Apply { MAX_LINES_BEFORE_RESULT } else { MAX_LINES };
    draw_heading(&mut canvas, kind.plan_word(), run);
    branch::draw_acknowledged(&mut canvas, &plan.acknowledged);
    let mut end_part = canvas.new_part();
    notes::draw_problems(&mut end_part, &plan.problems);
    notes::draw_refusals(&mut end_part, &plan.refusals);
    end_part.add_paragraph(summary::summary_lines(plan, kind));
    let mut middle_part = canvas.new_part();
    middle_part.allow_lines(
        max_lines.saturating_sub(canvas.line_count() + end_part.line_count() + MIN_STEP_LINES + 2),
    );
    notes::draw_held(&mut middle_part, &plan.held);
    plan.base
        .iter()
        .for_each(|comparison| branch::draw_base_comparison(&mut middle_part, comparison));
    branch::draw_unread_count(&mut middle_part, plan);
    notes::draw_notes(&mut middle_part, &plan.notes);
    middle_part.add_paragraph(summary::exception_notes(plan));
    middle_part.add_paragraph(summary::limit_note(plan));
    notes::draw_incomplete(&mut middle_part, &plan.incomplete);
    canvas.allow_lines(
        max_lines
            .saturating_sub(
                canvas.line_count() + middle_part.line_count() + end_part.line_count() + 4,
            )
            .max(MIN_STEP_LINES),
    );
    branch::draw_branch_steps(&mut canvas, plan, kind);
    let (watched, held) = plan.split_watched_steps();
    for (steps, title) in [(watched, "watched, not written:"), (held, "held, not written:")] {
        if !steps.is_empty() {
            canvas.add_paragraph([Line::with_text(Paint::Bold, title)]);
            fold::draw_steps(&mut canvas, steps);
        }
    }
    for part in [middle_part, end_part].map(Canvas::finish).iter().filter(|part| !part.is_empty()) {
        canvas.add_gap();
        canvas.add_verbatim(part);
    }
    canvas.finish()
}

/// The number of `total` items that are shown. A single item is never omitted, because the line
/// about the omission would be as long.
const fn count_shown(total: usize, max_shown: usize, is_full: bool) -> usize {
    if is_full || total <= max_shown + 1 { total } else { max_shown }
}

/// Draws the first lines: the service, the user and the token, and the snapshot if there is one.
fn draw_heading(canvas: &mut Canvas, word: &str, run: &ReportedRun) {
    let line = Line::with_text(Paint::Bold, word).text(" for ");
    let line =
        if run.sandbox { line.put(Paint::Note, "the sandbox") } else { line.text(&run.target) };
    let line = line.text(" as ").text(&run.caller);
    canvas.add_line(&match &run.token {
        Some(token) => line.text(format!(" ({token})")),
        None => line,
    });
    if let Some(snapshot) = &run.snapshot {
        canvas.add_line(&Line::with_text(
            Paint::Note,
            format!("from the snapshot of {}", snapshot.display_text),
        ));
    }
    run.rehearsal_sentences().for_each(|text| canvas.add_line(&Line::with_text(Paint::Note, text)));
}
