//! The result of an apply, as text.

use std::collections::BTreeSet;

use super::{draw_heading, fold::draw_others};
use crate::{
    apply::{ApplyResult, Mismatch, StepResult},
    report::{
        Canvas, Line, Paint, ReportedRun,
        model::{
            action_sign, common_cause, common_mismatch_reason, describe_cause, fold_equal,
            local_name, mismatch_reason,
            outcome::{self, outcome_words},
            step::object_name,
            unread_cause,
        },
    },
    text::count,
};

/// The maximum number of succeeded steps that are listed without `--full`. Other steps are always
/// listed.
const MAX_LISTED: usize = 12;

/// Renders the report of an apply on an empty `canvas`.
pub fn render_applied(mut canvas: Canvas<'_>, applied: &ApplyResult, run: &ReportedRun) -> String {
    draw_heading(&mut canvas, "apply", run);
    draw_steps(&mut canvas, &applied.steps);
    draw_mismatches(&mut canvas, &applied.mismatches);
    draw_help_texts(&mut canvas, applied);
    canvas.add_paragraph(outcome::summary_lines(applied));
    canvas.finish()
}

fn draw_steps(canvas: &mut Canvas, steps: &[StepResult]) {
    let success_count = steps.iter().filter(|step| step.outcome.is_success()).count();
    let is_full = canvas.style().is_full;
    let listed_count = if is_full || success_count <= MAX_LISTED { success_count } else { 0 };
    let listed_steps: Vec<_> =
        steps.iter().filter(|step| listed_count > 0 || !step.outcome.is_success()).collect();
    let folded = fold_equal(&listed_steps, is_full, |step| {
        let success_key =
            step.outcome.is_success().then(|| (local_name(&step.address), step.action));
        let cause = step.outcome.cause().map(|cause| common_cause(cause, &step.address));
        (outcome_words(&step.outcome).1, cause, success_key)
    });
    let mut last_path = "";
    for (step, others) in folded {
        if last_path != &*step.address.path {
            last_path = &step.address.path;
            canvas.add_paragraph([Line::with_text(Paint::Bold, last_path)]);
        }
        let (paint, sign) = action_sign(step.action);
        let line = Line::indented(2)
            .put(paint, format!("{sign} {}", object_name(step.scope, &step.address)))
            .text("  ");
        let (paint, word) = outcome_words(&step.outcome);
        let line = line.put(paint, word);
        match step.outcome.cause() {
            Some(cause) => {
                let line = line.text(": ").text(describe_cause(cause));
                canvas.add_line_with_origin(line, &step.origin);
            }
            None => canvas.add_line(&line),
        }
        draw_others(canvas, "step", others.iter().map(|step| &step.address));
    }
    if listed_count < success_count {
        let text = format!("{} succeeded (--full lists them)", count(success_count, "step"));
        canvas.add_paragraph([Line::with_text(Paint::Dim, text)]);
    }
}

fn draw_mismatches(canvas: &mut Canvas, mismatches: &[Mismatch]) {
    let (unread, differing): (Vec<_>, Vec<_>) =
        mismatches.iter().partition(|mismatch| unread_cause(mismatch).is_some());
    for (title, mismatches) in [
        ("does not match its manifest after the run:", differing),
        ("not verified after the run:", unread),
    ] {
        if mismatches.is_empty() {
            continue;
        }
        canvas.add_paragraph([Line::with_text(Paint::Error, title)]);
        let folded = fold_equal(&mismatches, canvas.style().is_full, |mismatch| {
            (common_mismatch_reason(mismatch), mismatch.fields.clone())
        });
        for (mismatch, others) in folded {
            let line = Line::indented(2)
                .text(mismatch.address.path.as_ref())
                .text(" ")
                .text(local_name(&mismatch.address));
            let line = if mismatch.fields.is_empty() {
                line
            } else {
                line.text(format!(" ({})", mismatch.fields.join(", ")))
            };
            canvas.add_line(&line.text(": ").text(mismatch_reason(&mismatch.reason)));
            draw_others(canvas, "object", others.iter().map(|mismatch| &mismatch.address));
        }
    }
}

/// Draws the hints for failures, each once.
fn draw_help_texts(canvas: &mut Canvas, applied: &ApplyResult) {
    let step_causes = applied.steps.iter().filter_map(|step| step.outcome.cause());
    let unread_causes = applied.mismatches.iter().filter_map(unread_cause);
    let cause_helps = step_causes.chain(unread_causes).filter_map(|cause| cause.help.as_deref());
    let mismatch_helps = applied.mismatches.iter().filter_map(|mismatch| mismatch.help.as_deref());
    let help_texts: BTreeSet<_> = cause_helps.chain(mismatch_helps).collect();
    canvas.add_paragraph(
        help_texts.iter().map(|help| Line::with_text(Paint::Note, "help: ").text(help)),
    );
}
