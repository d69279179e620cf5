//! The events of apply: one stream for the record, the progress bar and the report.

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    address::Address,
    api::ApiError,
    cause::Cause,
    diff::{Action, Step},
    field::Scope,
    origin::Origin,
};

/// An event while a plan is applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A step is about to send its first call.
    Started {
        /// The object of the step.
        address: Address,
        /// The action of the step.
        action: Action,
    },
    /// A step ended, or will not start.
    Ended(StepResult),
    /// A container was read after its writes.
    Verified {
        /// The container that was read.
        container: Address,
        /// The differences that remain.
        mismatches: Vec<Mismatch>,
    },
}

/// The result of a step.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct StepResult {
    /// The scope of the container of the object.
    pub scope: Scope,
    /// The object that the step changes.
    pub address: Address,
    /// The action of the step.
    pub action: Action,
    /// The outcome of the step.
    pub outcome: StepOutcome,
    /// The place of the declaration; `None` if the object is not declared.
    #[serde(skip)]
    pub origin: Option<Origin>,
}

/// The outcome of a step.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(tag = "is", content = "cause", rename_all = "snake_case")]
pub enum StepOutcome {
    /// The step was applied.
    Done,
    /// Somebody else had made the change already.
    Already,
    /// The service refused a request of the step, or a request failed.
    Failed(Cause),
    /// The object, or another object of its container, changed after the plan was made. Nothing was
    /// sent.
    ChangedMeanwhile(Cause),
    /// The step depends on another step that did not succeed. It was not started.
    Skipped(Cause),
    /// The run was interrupted, or ended, before the step started.
    NotStarted,
    /// The step was sent, but its outcome could not be determined.
    Unknown(Cause),
}

impl StepOutcome {
    /// True if the object now matches its manifest.
    pub const fn is_success(&self) -> bool {
        matches!(self, Self::Done | Self::Already)
    }

    /// The cause of a step without success, if known.
    pub const fn cause(&self) -> Option<&Cause> {
        match self {
            Self::Failed(cause)
            | Self::ChangedMeanwhile(cause)
            | Self::Skipped(cause)
            | Self::Unknown(cause) => Some(cause),
            Self::Done | Self::Already | Self::NotStarted => None,
        }
    }

    /// True if another run may succeed without a repair.
    fn may_succeed_later(&self) -> bool {
        match self {
            Self::Failed(cause) => cause.transient,
            Self::ChangedMeanwhile(_) | Self::NotStarted | Self::Unknown(_) => true,
            // A skipped step can succeed only if the step that it depends on succeeds.
            Self::Done | Self::Already | Self::Skipped(_) => false,
        }
    }
}

/// A difference that remains, or is new, after apply.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Mismatch {
    /// The object that differs.
    pub address: Address,
    /// The fields that differ.
    #[serde(serialize_with = "crate::catalogue::serialize_names")]
    pub fields: Vec<String>,
    /// The reason for the difference.
    pub reason: MismatchReason,
    /// A possible explanation of the difference, or help.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl Mismatch {
    /// A mismatch in the fields that `step` would still change.
    pub(super) fn new(step: &Step, reason: MismatchReason) -> Self {
        let fields = step.changes.iter().map(|change| change.field.to_string()).collect();
        Self { address: step.address.clone(), fields, reason, help: None }
    }

    /// A mismatch for an object that could not be read back.
    pub(super) const fn unreadable(address: Address, cause: Cause) -> Self {
        let reason = MismatchReason::Unreadable(cause);
        Self { address, fields: Vec::new(), reason, help: None }
    }
}

/// The reason for a difference after apply.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(tag = "is", content = "cause", rename_all = "snake_case")]
pub enum MismatchReason {
    /// The service accepted the write, but did not save the value.
    NotSaved,
    /// Somebody else changed the object meanwhile: the difference was not part of the plan.
    ChangedMeanwhile,
    /// The difference depends on a step of this run, or became visible only after a step. Run apply
    /// again.
    NotPlanned,
    /// A later step of this run, at this address, undid the change.
    Undone(Address),
    /// The object could not be read back.
    Unreadable(Cause),
}

impl MismatchReason {
    fn is_transient(&self) -> bool {
        match self {
            Self::NotSaved => false,
            Self::ChangedMeanwhile | Self::NotPlanned | Self::Undone(_) => true,
            Self::Unreadable(cause) => cause.transient,
        }
    }
}

/// The result of applying a plan.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct ApplyResult {
    /// The results of all steps, in the order of the plan.
    pub steps: Vec<StepResult>,
    /// The differences from manifests that remain after the run.
    pub mismatches: Vec<Mismatch>,
    /// True if a signal ended the run.
    pub interrupted: bool,
    /// The error that ended the run early, for example a revoked token.
    #[serde(skip)]
    pub fatal_error: Option<ApiError>,
}

impl ApplyResult {
    /// True if everything now matches its manifest.
    pub fn is_complete(&self) -> bool {
        self.steps.iter().all(|step| step.outcome.is_success())
            && self.mismatches.is_empty()
            && !self.interrupted
            && self.fatal_error.is_none()
    }

    /// True if another run may complete more steps without a repair.
    pub fn is_worth_repeating(&self) -> bool {
        self.steps.iter().any(|step| step.outcome.may_succeed_later())
            || self.mismatches.iter().any(|mismatch| mismatch.reason.is_transient())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::Action;

    #[test]
    fn another_run_is_suggested_only_for_temporary_failures() {
        let (permanent, transient) =
            (Cause::new("refused"), Cause::new("not there").mark_transient());
        let outcomes = [
            (StepOutcome::Done, false),
            (StepOutcome::Already, false),
            (StepOutcome::Skipped(transient.clone()), false),
            (StepOutcome::Failed(permanent.clone()), false),
            (StepOutcome::Failed(transient.clone()), true),
            (StepOutcome::ChangedMeanwhile(permanent.clone()), true),
            (StepOutcome::NotStarted, true),
            (StepOutcome::Unknown(permanent.clone()), true),
        ];
        let reasons = [
            (MismatchReason::NotSaved, false),
            (MismatchReason::Unreadable(permanent), false),
            (MismatchReason::Unreadable(transient), true),
            (MismatchReason::ChangedMeanwhile, true),
            (MismatchReason::NotPlanned, true),
        ];
        let address = Address::container("acme/shop".into());
        for (outcome, step_is_transient) in outcomes {
            for (reason, mismatch_is_transient) in &reasons {
                let (scope, action) = (Scope::Project, Action::Update);
                let step = StepResult {
                    scope,
                    address: address.clone(),
                    action,
                    outcome: outcome.clone(),
                    origin: None,
                };
                let mismatch = Mismatch {
                    address: address.clone(),
                    fields: Vec::new(),
                    reason: reason.clone(),
                    help: None,
                };
                let applied = ApplyResult {
                    steps: vec![step],
                    mismatches: vec![mismatch],
                    ..ApplyResult::default()
                };
                let expected = step_is_transient || *mismatch_is_transient;
                assert_eq!(applied.is_worth_repeating(), expected, "{outcome:?} {reason:?}");
            }
        }
    }
}
