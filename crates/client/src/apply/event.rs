//! The events of apply: one stream that record, progress bar and report read.

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    address::Address,
    api::ApiError,
    cause::Cause,
    diff::{Action, Step},
    field::Scope,
};

/// An event while a plan is applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A step is about to send its first call.
    Started {
        /// The object.
        address: Address,
        /// The action of the step.
        action: Action,
    },
    /// A step ended, or will not be started.
    Ended(StepResult),
    /// A container was read after its writes.
    Verified {
        /// The container.
        container: Address,
        /// The differences that remain.
        mismatches: Vec<Mismatch>,
    },
}

/// The result of a step.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct StepResult {
    /// Whether the step concerned a group or a project, also for something inside one.
    pub scope: Scope,
    /// The object.
    pub address: Address,
    /// What the step was to do.
    pub action: Action,
    /// How it ended.
    pub outcome: StepOutcome,
}

/// The outcome of a step.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(tag = "is", content = "cause", rename_all = "snake_case")]
pub enum StepOutcome {
    /// It was carried out.
    Done,
    /// Somebody else had done it already.
    Already,
    /// The service refused, or a request failed.
    Failed(Cause),
    /// The object, or one beside it, changed after it was planned; nothing was sent.
    ChangedMeanwhile(Cause),
    /// It depends on a step that did not succeed, so it was not started.
    Skipped(Cause),
    /// The run was interrupted, or ended, before it started.
    NotStarted,
    /// It was sent, and its outcome could not be determined.
    Unknown(Cause),
}

impl StepOutcome {
    /// True if the object now matches its manifest.
    pub const fn is_success(&self) -> bool {
        matches!(self, Self::Done | Self::Already)
    }

    /// Why the object does not match, if known.
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
            // A skipped step depends on the one that did not succeed.
            Self::Done | Self::Already | Self::Skipped(_) => false,
        }
    }
}

/// A difference that remains, or is new, after apply.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Mismatch {
    /// The object.
    pub address: Address,
    /// The fields that differ.
    #[serde(serialize_with = "crate::catalogue::serialize_names")]
    pub fields: Vec<String>,
    /// How it arose: not saved, changed meanwhile, or not readable.
    pub reason: MismatchReason,
    /// A possible explanation, or what to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl Mismatch {
    /// The fields that `step` would still change.
    pub(super) fn new(step: &Step, reason: MismatchReason) -> Self {
        let fields = step.changes.iter().map(|change| change.field.to_string()).collect();
        Self { address: step.address.clone(), fields, reason, help: None }
    }

    /// A mismatch for an object that could not be read back.
    pub(super) const fn unread(address: Address, cause: Cause) -> Self {
        let reason = MismatchReason::Unreadable(cause);
        Self { address, fields: Vec::new(), reason, help: None }
    }
}

/// Why there is a difference after apply.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(tag = "is", content = "cause", rename_all = "snake_case")]
pub enum MismatchReason {
    /// The service accepted the write and did not save it.
    NotSaved,
    /// It was not part of the plan: somebody else changed the object meanwhile.
    ChangedMeanwhile,
    /// It had to wait for a step of this run, or became visible only after it; the next run does it.
    NotPlanned,
    /// The step of this run at this address undid it later.
    Undone(Address),
    /// It could not be read back.
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
pub struct Applied {
    /// The results of all steps, in the order of the plan.
    pub steps: Vec<StepResult>,
    /// What does not match its manifest after the run.
    pub mismatches: Vec<Mismatch>,
    /// Whether a signal ended the run.
    pub interrupted: bool,
    /// The error that ended the run early, for example a revoked token.
    #[serde(skip)]
    pub ended_by: Option<ApiError>,
}

impl Applied {
    /// True if everything now matches its manifest.
    pub fn is_complete(&self) -> bool {
        self.steps.iter().all(|step| step.outcome.is_success())
            && self.mismatches.is_empty()
            && !self.interrupted
            && self.ended_by.is_none()
    }

    /// True if another run may complete something without a repair.
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
        let (lasting, passing) = (Cause::new("refused"), Cause::new("not there").transient());
        let outcomes = [
            (StepOutcome::Done, false),
            (StepOutcome::Already, false),
            (StepOutcome::Skipped(passing.clone()), false),
            (StepOutcome::Failed(lasting.clone()), false),
            (StepOutcome::Failed(passing.clone()), true),
            (StepOutcome::ChangedMeanwhile(lasting.clone()), true),
            (StepOutcome::NotStarted, true),
            (StepOutcome::Unknown(lasting.clone()), true),
        ];
        let reasons = [
            (MismatchReason::NotSaved, false),
            (MismatchReason::Unreadable(lasting), false),
            (MismatchReason::Unreadable(passing), true),
            (MismatchReason::ChangedMeanwhile, true),
            (MismatchReason::NotPlanned, true),
        ];
        let address = Address::container("acme/shop".into());
        for (outcome, of_step) in outcomes {
            for (reason, of_mismatch) in &reasons {
                let (scope, action) = (Scope::Project, Action::Update);
                let step = StepResult {
                    scope,
                    address: address.clone(),
                    action,
                    outcome: outcome.clone(),
                };
                let mismatch = Mismatch {
                    address: address.clone(),
                    fields: Vec::new(),
                    reason: reason.clone(),
                    help: None,
                };
                let applied =
                    Applied { steps: vec![step], mismatches: vec![mismatch], ..Applied::default() };
                let expected = of_step || *of_mismatch;
                assert_eq!(applied.is_worth_repeating(), expected, "{outcome:?} {reason:?}");
            }
        }
    }
}
