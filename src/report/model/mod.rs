//! The model of a report. All renderers use it.
//!
//! A [`Report`] borrows the finished values of a run. Problems, acknowledgements and failures are
//! [`ReportItem`]s; planned and applied steps are [`StepItem`]s. So the sentences of all reports
//! are written here. A renderer only lays out the sentences, removes secrets and escapes the text.

pub mod fold;
pub mod item;
pub mod note;
pub mod outcome;
pub mod step;
pub mod summary;
pub mod value;

use std::collections::{BTreeMap, BTreeSet};

pub use fold::{FoldMode, FoldedSteps, StepExcerpt, fold_equal, fold_steps, group_by_key};
pub use item::{
    ItemGroup, ReportItem, acknowledgement_key, declaration_origin, joint_acknowledgement,
};
pub(in crate::report) use note::group_by_kind;
pub use note::{MAX_NAMED_CONTAINERS, fold_objects};
pub use outcome::{
    common_cause, common_mismatch_reason, describe_cause, mismatch_reason, unread_cause,
};
use serde::Serialize;
pub use step::{
    StepRow, action_sign, build_rows, file_line, full_name, local_name, predecessors, remarks,
};
pub use value::{ValueText, value_text};

use super::{
    Line, ReportKind, ReportedRun,
    json::{self, ApplyContent, CheckContent, PlanContent},
};
use crate::{
    address::Address,
    apply::StepOutcome,
    diagnostic::Diagnostics,
    diff::{Action, Label, Note, Step},
    plan::Plan,
};

/// The result of a run.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// The kind of report.
    pub kind: ReportKind,
    /// The folder or file of manifests, as the user named it. Items without a position are shown at
    /// this path.
    pub manifests: &'a str,
    /// The diagnostics of the manifests.
    pub diagnostics: &'a Diagnostics,
    /// The state of the run.
    pub state: RunReportState<'a>,
}

/// The state of a run.
pub type RunReportState<'a> = json::ReportState<'a, ReportContent<'a>>;

/// The content of a report.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
pub enum ReportContent<'a> {
    /// A plan, or drift.
    Plan(&'a PlanContent<'a>),
    /// The result of applying a plan.
    Apply(&'a ApplyContent<'a>),
    /// The faults of manifests.
    Check(&'a CheckContent<'a>),
}

/// The part of a report in which a step is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReportPart {
    /// Steps that are, or would be, carried out.
    Changes,
    /// Steps that are drift. This part is used only if the branch also has changes.
    Drift,
    /// Steps that are only watched.
    Watched,
}

impl ReportPart {
    /// Every part, in display order.
    pub const ALL: [Self; 3] = [Self::Changes, Self::Drift, Self::Watched];

    /// The heading.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Changes => "Changes",
            Self::Drift => "Drift: differences from before this branch",
            Self::Watched => "Watched, not written",
        }
    }
}

/// A step with its outcome.
#[derive(Clone, Copy, Debug)]
pub struct StepItem<'a> {
    /// The number of the step in the plan, from 1.
    pub number: usize,
    /// The step.
    pub step: &'a Step,
    /// The part in which the step is shown.
    pub part: ReportPart,
    /// The outcome of the step, if the plan was applied.
    pub outcome: Option<&'static str>,
    /// True if the step succeeded.
    pub is_done: bool,
}

impl<'a> StepItem<'a> {
    /// A step that was not applied.
    pub const fn planned(number: usize, step: &'a Step, part: ReportPart) -> Self {
        Self { number, step, part, outcome: None, is_done: false }
    }
}

/// The word for a label.
pub const fn label_word(label: Label) -> &'static str {
    match label {
        Label::Change => "this branch",
        Label::Both => "this branch and drift",
        Label::Removed => "removed by this branch",
        Label::Drift => "drift",
        Label::Unknown => "unknown",
    }
}

/// The word for an action.
pub const fn action_word(action: Action) -> &'static str {
    match action {
        Action::Create => "create",
        Action::Update => "change",
        Action::Delete => "remove",
    }
}

impl<'a> Report<'a> {
    /// The content, if the run finished.
    pub const fn content(&self) -> Option<ReportContent<'a>> {
        match self.state {
            RunReportState::Finished(finished) => Some(finished.content),
            RunReportState::Failed(_) | RunReportState::Unfinished(_) => None,
        }
    }

    /// The exit code, if the run has ended.
    pub const fn exit_code(&self) -> Option<u8> {
        match self.state {
            RunReportState::Finished(finished) => Some(finished.exit_code),
            RunReportState::Failed(failed) => Some(failed.exit_code),
            RunReportState::Unfinished(_) => None,
        }
    }

    /// The run and its plan, if a plan was made.
    const fn run_and_plan(&self) -> Option<(&'a ReportedRun, &'a Plan)> {
        match self.content() {
            Some(ReportContent::Plan(planned)) => Some((planned.run, planned.plan)),
            Some(ReportContent::Apply(outcomes)) => Some((outcomes.run, outcomes.plan)),
            Some(ReportContent::Check(_)) | None => None,
        }
    }

    /// The plan, if there is one.
    pub fn plan(&self) -> Option<&'a Plan> {
        self.run_and_plan().map(|(_, plan)| plan)
    }

    /// The run, if a plan was made.
    pub fn run(&self) -> Option<&'a ReportedRun> {
        self.run_and_plan().map(|(run, _)| run)
    }

    /// The summary: at least one sentence, without text from manifests or the service.
    pub fn summary(&self) -> Vec<String> {
        let title = self.kind.word();
        let content = match self.state {
            RunReportState::Unfinished(_) => return vec![format!("{title}: not finished")],
            RunReportState::Failed(_) => return vec![format!("{title}: failed")],
            RunReportState::Finished(finished) => finished.content,
        };
        match content {
            ReportContent::Plan(planned) => {
                let mut lines = summary::summary_lines(planned.plan, self.kind);
                if planned.plan.steps.is_empty() {
                    // Without steps, show the blockers before the line "no changes".
                    lines.rotate_right(summary::blocker_lines(planned.plan).len());
                }
                line_texts(lines)
            }
            ReportContent::Apply(outcomes) => line_texts(outcome::summary_lines(outcomes.applied)),
            ReportContent::Check(checked) => {
                let summary_text = checked.diagnostics.summary();
                vec![format!("{title}: {}", summary_text.as_deref().unwrap_or("no problems found"))]
            }
        }
    }

    /// Sentences about the snapshot, the rehearsal and containers outside the plan. The sentences
    /// contain no names from manifests or the service.
    pub fn footnotes(&self) -> Vec<String> {
        let live_snapshot = self.run().and_then(|run| run.snapshot.as_ref());
        let snapshot_sentence = live_snapshot.map(|snapshot| {
            format!("From the snapshot of {}: later changes are not in it.", snapshot.taken_at)
        });
        let rehearsal_notes = self.run().into_iter().flat_map(ReportedRun::rehearsal_sentences);
        let rehearsed = rehearsal_notes.map(|sentence| format!("{sentence}."));
        let sentences = snapshot_sentence.into_iter().chain(rehearsed);
        let Some(plan) = self.plan() else { return sentences.collect() };
        let plan_lines =
            summary::exception_notes(plan).into_iter().chain(summary::limit_note(plan));
        sentences.chain(line_texts(plan_lines)).collect()
    }

    /// The notes, by kind.
    pub(super) fn notes(&self) -> BTreeMap<note::NoteKind, Vec<&'a Note>> {
        note::group_by_kind(self.plan().into_iter().flat_map(|plan| &plan.notes))
    }

    /// The steps, in the order of the plan.
    pub fn steps(&self) -> Vec<StepItem<'a>> {
        let Some(plan) = self.plan() else { return Vec::new() };
        let outcomes = self.outcomes();
        // If the branch has no changes, drift is shown in the part `Changes`.
        let has_changes = plan.steps.iter().any(|step| step.label.is_some() && !step.is_drift());
        let steps = plan.steps.iter().map(|step| {
            let part = if has_changes && step.is_drift() {
                ReportPart::Drift
            } else {
                ReportPart::Changes
            };
            (step, part)
        });
        let watched = plan.watched.iter().map(|step| (step, ReportPart::Watched));
        let steps = steps.chain(watched).zip(1..);
        let steps = steps.map(|((step, part), number)| {
            let mut item = StepItem::planned(number, step, part);
            if let Some(outcomes) = outcomes.as_ref().filter(|_| part != ReportPart::Watched) {
                let outcome = outcomes.get(&step.address);
                item.outcome =
                    Some(outcome.map_or("left out", |outcome| outcome::outcome_words(outcome).1));
                item.is_done = outcome.is_some_and(|outcome| outcome.is_success());
            }
            item
        });
        steps.collect()
    }

    /// The paths of groups and projects with a problem or a refusal.
    pub fn blocked_paths(&self) -> BTreeSet<&'a str> {
        let Some(plan) = self.plan() else { return BTreeSet::new() };
        let problems = plan.problems.iter().map(|problem| &*problem.address.path);
        problems.chain(plan.refusals.iter().map(|refusal| &*refusal.address.path)).collect()
    }

    /// The outcomes of approved steps, if the plan was applied.
    fn outcomes(&self) -> Option<BTreeMap<&'a Address, &'a StepOutcome>> {
        let Some(ReportContent::Apply(outcomes)) = self.content() else { return None };
        Some(outcomes.applied.steps.iter().map(|step| (&step.address, &step.outcome)).collect())
    }
}

/// The texts of `lines`, without colours. The lines must not contain secrets.
fn line_texts(lines: impl IntoIterator<Item = Line>) -> Vec<String> {
    lines.into_iter().map(|line| line.to_string()).collect()
}
