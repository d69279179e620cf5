//! What became of a plan, as text.

use std::collections::BTreeSet;

use super::heading;
use crate::{
    apply::{Applied, Mismatch, MismatchReason, StepResult},
    report::{
        Run, Style,
        canvas::{Canvas, Line, Paint},
        model::{
            outcome::{self, is_unread, outcome, told, why},
            step::{object, sign, tail},
        },
    },
    secret::Secrets,
    text::count,
};

/// How many steps that succeeded are listed unless all are; those that did not are always listed.
const LISTED: usize = 50;

/// The report of an apply, without what `secrets` knows.
pub fn applied(applied: &Applied, run: &Run, style: Style, secrets: &Secrets) -> String {
    let mut canvas = Canvas::new(style, secrets);
    heading(&mut canvas, "apply", run);
    steps(&mut canvas, &applied.steps);
    mismatches(&mut canvas, &applied.mismatches);
    helps(&mut canvas, applied);
    canvas.paragraph(outcome::summary(applied));
    canvas.finish()
}

fn steps(canvas: &mut Canvas, steps: &[StepResult]) {
    let succeeded = steps.iter().filter(|step| step.outcome.is_success()).count();
    let listed = if canvas.style().full || succeeded <= LISTED { succeeded } else { 0 };
    let mut last = "";
    for step in steps.iter().filter(|step| listed > 0 || !step.outcome.is_success()) {
        if last != &*step.address.path {
            last = &step.address.path;
            canvas.gap();
            canvas.line(&Line::default().put(Paint::Bold, last));
        }
        let (paint, sign) = sign(step.action);
        let line = Line::indented(2)
            .put(paint, format!("{sign} {}", object(step.scope, &step.address)))
            .text("  ");
        let (paint, word) = outcome(&step.outcome);
        let line = line.put(paint, word);
        canvas.line(&match step.outcome.cause() {
            Some(cause) => line.text(": ").text(told(cause)),
            None => line,
        });
    }
    if listed < succeeded {
        canvas.gap();
        canvas.line(&Line::default().put(
            Paint::Dim,
            format!("{} succeeded (--full lists them)", count(succeeded, "step")),
        ));
    }
}

fn mismatches(canvas: &mut Canvas, mismatches: &[Mismatch]) {
    let (unread, differing): (Vec<_>, Vec<_>) =
        mismatches.iter().partition(|mismatch| is_unread(mismatch));
    for (title, mismatches) in [
        ("does not match its manifest after the run:", differing),
        ("not verified after the run:", unread),
    ] {
        if mismatches.is_empty() {
            continue;
        }
        canvas.gap();
        canvas.line(&Line::default().put(Paint::Error, title));
        for mismatch in mismatches {
            let line = Line::indented(2)
                .text(mismatch.address.path.as_ref())
                .text(" ")
                .text(tail(&mismatch.address));
            let line = if mismatch.fields.is_empty() {
                line
            } else {
                line.text(format!(" ({})", mismatch.fields.join(", ")))
            };
            canvas.line(&line.text(": ").text(why(&mismatch.reason)));
        }
    }
}

/// What to do about what went wrong, each thing once.
fn helps(canvas: &mut Canvas, applied: &Applied) {
    let of_steps = applied.steps.iter().filter_map(|step| step.outcome.cause());
    let unread = applied.mismatches.iter().filter_map(|mismatch| match &mismatch.reason {
        MismatchReason::Unreadable(cause) => Some(cause),
        MismatchReason::NotSaved
        | MismatchReason::ChangedMeanwhile
        | MismatchReason::NotPlanned => None,
    });
    let causes = of_steps.chain(unread).filter_map(|cause| cause.help.as_deref());
    let mismatches = applied.mismatches.iter().filter_map(|mismatch| mismatch.help.as_deref());
    let helps: BTreeSet<_> = causes.chain(mismatches).collect();
    if !helps.is_empty() {
        canvas.gap();
    }
    for help in helps {
        canvas.line(&Line::default().put(Paint::Note, "help: ").text(help));
    }
}
