//! Outcomes of steps and of runs, in words.

use crate::{
    address::Address,
    apply::{ApplyResult, Mismatch, MismatchReason, StepOutcome},
    cause::Cause,
    report::{Line, Paint, json::OutcomeCounts, model::summary::nonzero_counts},
};

/// The colour and the word for an outcome.
pub const fn outcome_words(outcome: &StepOutcome) -> (Paint, &'static str) {
    match outcome {
        StepOutcome::Done => (Paint::Add, "done"),
        StepOutcome::Already => (Paint::Add, "already done"),
        StepOutcome::Failed(_) => (Paint::Error, "failed"),
        StepOutcome::ChangedMeanwhile(_) => (Paint::Error, "changed meanwhile, skipped"),
        StepOutcome::Skipped(_) => (Paint::Change, "skipped"),
        StepOutcome::NotStarted => (Paint::Change, "not started"),
        StepOutcome::Unknown(_) => (Paint::Error, "unknown"),
    }
}

/// The reason why an object does not match.
pub fn mismatch_reason(reason: &MismatchReason) -> String {
    match reason {
        MismatchReason::NotSaved => "accepted but not saved".to_owned(),
        MismatchReason::ChangedMeanwhile => "changed by someone else meanwhile".to_owned(),
        MismatchReason::NotPlanned => "not sent yet; run apply again".to_owned(),
        MismatchReason::Undone(undoing_step) => {
            format!("undone by `{undoing_step}`, a later step of this run")
        }
        MismatchReason::Unreadable(cause) => describe_cause(cause),
    }
}

/// The part of a mismatch's reason that other objects can share: without the object and the request's id.
pub fn common_mismatch_reason(mismatch: &Mismatch) -> String {
    let unread = unread_cause(mismatch).map(|cause| common_cause(cause, &mismatch.address));
    unread.unwrap_or_else(|| mismatch_reason(&mismatch.reason))
}

/// A cause on one line, with the request's id in the service's log.
pub fn describe_cause(cause: &Cause) -> String {
    match &cause.request_id {
        Some(id) => format!("{cause} (request {id})"),
        None => cause.to_string(),
    }
}

/// The part of a cause that other objects can share: without the object and the request's id.
pub fn common_cause(cause: &Cause, address: &Address) -> String {
    cause.message.replace(&cause.request_line, "").replace(&*address.path, "")
}

/// The cause, if the object could not be read after the run. Such an object may match its manifest.
pub const fn unread_cause(mismatch: &Mismatch) -> Option<&Cause> {
    match &mismatch.reason {
        MismatchReason::Unreadable(cause) => Some(cause),
        MismatchReason::NotSaved
        | MismatchReason::ChangedMeanwhile
        | MismatchReason::NotPlanned
        | MismatchReason::Undone(_) => None,
    }
}

/// The last lines of a report: the result of the run, and the next command for the user.
pub fn summary_lines(applied: &ApplyResult) -> Vec<Line> {
    let step_counts = OutcomeCounts::from_steps(&applied.steps);
    let count_words = step_counts.labelled_counts();
    let unread_count = applied.mismatches.iter().filter_map(unread_cause).count();
    let mismatch_count = applied.mismatches.len() - unread_count;
    let mismatches = [(mismatch_count, "not matching"), (unread_count, "not verified")];
    let count_texts = nonzero_counts(count_words.into_iter().chain(mismatches));
    let (paint, word) = match (applied.is_complete(), applied.interrupted) {
        (true, _) => (Paint::Add, "applied: "),
        (false, true) => (Paint::Error, "interrupted: "),
        (false, false) if step_counts.done + step_counts.unknown == 0 => {
            (Paint::Error, "not applied: ")
        }
        (false, false) => (Paint::Error, "partly applied: "),
    };
    let next_command = applied.is_worth_repeating().then_some("run apply again to finish");
    let result_line = Line::with_text(paint, word).text(count_texts.join(", "));
    [Some(result_line), next_command.map(|text| Line::default().text(text))]
        .into_iter()
        .flatten()
        .collect()
}
