//! The machine formats: one JSON object per report, with the version of its format.
//!
//! The types in this module define the formats; `undrift schema` generates the schemas from them.
//! Reports with the same content have the same bytes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    ReportedRun,
    redact::{KeyMeaning, RedactedValue},
};
use crate::{
    apply::{ApplyResult, StepOutcome, StepResult},
    diagnostic::{DiagnosticForm, Diagnostics, Severity},
    diff::Label,
    plan::{Acknowledged, Counts, Plan, SkippedContainer, saved::PlanComparison},
    secret::Secrets,
    text::is_unsafe,
};

/// The version of the formats of reports. Later releases only add fields to a version.
pub const FORMAT_VERSION: u32 = 1;

/// The kind of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReportKind {
    /// The steps that apply would take.
    Plan,
    /// The differences between manifests and live state.
    Drift,
    /// The result of applying a plan.
    Apply,
    /// The faults of manifests, found without the service.
    Check,
}

impl ReportKind {
    /// The name of the kind in reports and texts.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Drift => "drift",
            Self::Apply => "apply",
            Self::Check => "check",
        }
    }

    /// The word for a plan in a report of this kind.
    pub const fn plan_word(self) -> &'static str {
        if matches!(self, Self::Drift) { "drift" } else { "plan" }
    }
}

/// A report.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JsonReport<'a, T> {
    /// The kind of the report.
    pub undrift: ReportKind,
    /// The version of the format. Later releases of undrift only add fields to it.
    pub format_version: u32,
    /// The version of undrift that wrote the report.
    #[serde(serialize_with = "crate::text::serialize_word")]
    pub tool_version: &'static str,
    /// The state of the run, with its content.
    #[serde(flatten)]
    pub state: ReportState<'a, T>,
}

/// The state of a run.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ReportState<'a, T> {
    /// The run finished.
    Finished(FinishedRun<T>),
    /// The run failed before there was anything to report.
    Failed(FailedRun<'a>),
    /// The run is still running, or was killed.
    Unfinished(UnfinishedRun),
}

/// A run that finished.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct FinishedRun<T> {
    /// The state.
    status: FinishedStatus,
    /// The exit code of the run.
    pub(super) exit_code: u8,
    /// The content of the report.
    #[serde(flatten)]
    pub(super) content: T,
}

/// A run that failed before there was anything to report.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct FailedRun<'a> {
    /// The state.
    status: FailedStatus,
    /// The exit code of the run.
    pub(super) exit_code: u8,
    /// The error that ended the run.
    pub(super) error: &'a str,
    /// The advice for the user.
    pub(super) help: Option<&'a str>,
    /// The faults of the manifests, ordered by place, with warnings.
    #[schemars(with = "Vec<DiagnosticForm>")]
    diagnostics: &'a Diagnostics,
}

/// A run that is running, or was killed.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct UnfinishedRun {
    /// The state.
    status: UnfinishedStatus,
}

/// The status of a [`FinishedRun`] run.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum FinishedStatus {
    /// The run finished.
    Finished,
}

/// The status of a [`FailedRun`].
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum FailedStatus {
    /// The run failed before there was anything to report.
    Failed,
}

/// The status of an [`UnfinishedRun`] run.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum UnfinishedStatus {
    /// The run is running, or was killed.
    Unfinished,
}

impl<'a, T> ReportState<'a, T> {
    /// A run that is running, or was killed.
    pub const UNFINISHED: Self =
        Self::Unfinished(UnfinishedRun { status: UnfinishedStatus::Unfinished });

    /// A run that finished.
    pub const fn finished(exit_code: u8, content: T) -> Self {
        Self::Finished(FinishedRun { status: FinishedStatus::Finished, exit_code, content })
    }

    /// A run that failed before there was anything to report.
    pub const fn failed(
        exit_code: u8,
        error: &'a str,
        help: Option<&'a str>,
        diagnostics: &'a Diagnostics,
    ) -> Self {
        Self::Failed(FailedRun {
            status: FailedStatus::Failed,
            exit_code,
            error,
            help,
            diagnostics,
        })
    }
}

impl<'a, T: Serialize> JsonReport<'a, T> {
    /// The report of a run that finished.
    pub const fn finished(kind: ReportKind, exit_code: u8, content: T) -> Self {
        Self::new(kind, ReportState::finished(exit_code, content))
    }

    /// A report in the current format.
    pub const fn new(kind: ReportKind, state: ReportState<'a, T>) -> Self {
        let (format_version, tool_version) = (FORMAT_VERSION, env!("CARGO_PKG_VERSION"));
        Self { undrift: kind, format_version, tool_version, state }
    }

    /// The JSON text without `secrets`, with a line feed at its end.
    ///
    /// # Errors
    /// If a value cannot be written as JSON. Values of reports always can.
    pub fn to_text(&self, secrets: &Secrets) -> serde_json::Result<String> {
        Ok(escape_unsafe(&serde_json::to_string_pretty(&RedactedValue::new(
            self,
            KeyMeaning::Data,
            secrets,
        ))?) + "\n")
    }
}

/// Replaces characters in `json` that could mislead a terminal by `\u` escapes. Except for line
/// feeds, such characters only occur in JSON strings, where the escape has the same meaning.
pub fn escape_unsafe(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if is_unsafe(c) && c != '\n' {
            escaped.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// A plan, or drift.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PlanContent<'a> {
    /// The service.
    #[serde(flatten)]
    pub run: &'a ReportedRun,
    /// The numbers of steps and calls of the plan.
    pub counts: Counts,
    /// The number of steps by label, if the plan has a base.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<Label, usize>,
    /// The plan.
    #[serde(flatten)]
    pub plan: &'a Plan,
    /// The comparison with the saved plan that is to be applied, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saved_plan: Option<&'a PlanComparison>,
}

impl<'a> PlanContent<'a> {
    /// The content of a report about `plan`.
    pub fn new(run: &'a ReportedRun, plan: &'a Plan) -> Self {
        Self { run, counts: plan.counts(), labels: plan.label_counts(), plan, saved_plan: None }
    }
}

/// The result of applying a plan.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ApplyContent<'a> {
    /// The service.
    #[serde(flatten)]
    pub run: &'a ReportedRun,
    /// How many steps ended with each outcome.
    pub counts: OutcomeCounts,
    /// The applied plan, for reports that show it.
    #[serde(skip)]
    pub plan: &'a Plan,
    /// The result.
    #[serde(flatten)]
    pub applied: &'a ApplyResult,
    /// The acknowledged refusals.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub acknowledged: &'a [Acknowledged],
    /// The groups and projects that were skipped because of a problem, a refusal or a failed read.
    pub left_out: &'a [SkippedContainer],
    /// The comparison with the saved plan that was applied, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saved_plan: Option<&'a PlanComparison>,
}

impl<'a> ApplyContent<'a> {
    /// The result of applying `plan` in `run`; `left_out` are the groups and projects that were not applied.
    pub fn new(
        run: &'a ReportedRun,
        plan: &'a Plan,
        applied: &'a ApplyResult,
        left_out: &'a [SkippedContainer],
    ) -> Self {
        let counts = OutcomeCounts::from_steps(&applied.steps);
        let (acknowledged, saved_plan) = (plan.acknowledged.as_slice(), None);
        Self { run, counts, plan, applied, acknowledged, left_out, saved_plan }
    }
}

/// How many steps ended with each outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OutcomeCounts {
    /// Carried out.
    pub done: usize,
    /// Already done by somebody else.
    pub already: usize,
    /// Refused, or a request failed.
    pub failed: usize,
    /// Not sent, because the object changed after it was planned.
    pub changed_meanwhile: usize,
    /// Not started, because a step before it did not succeed.
    pub skipped: usize,
    /// Not started, because the run ended.
    pub not_started: usize,
    /// Sent, with unknown outcome.
    pub unknown: usize,
}

impl OutcomeCounts {
    /// Counts `steps`.
    pub fn from_steps(steps: &[StepResult]) -> Self {
        let mut counts = Self::default();
        for step in steps {
            *counts.count_mut(&step.outcome) += 1;
        }
        counts
    }

    /// The number of steps that ended with `outcome`.
    pub const fn count_mut(&mut self, outcome: &StepOutcome) -> &mut usize {
        match outcome {
            StepOutcome::Done => &mut self.done,
            StepOutcome::Already => &mut self.already,
            StepOutcome::Failed(_) => &mut self.failed,
            StepOutcome::ChangedMeanwhile(_) => &mut self.changed_meanwhile,
            StepOutcome::Skipped(_) => &mut self.skipped,
            StepOutcome::NotStarted => &mut self.not_started,
            StepOutcome::Unknown(_) => &mut self.unknown,
        }
    }

    /// The counts with their words, in display order, with zeros.
    pub const fn labelled_counts(&self) -> [(usize, &'static str); 7] {
        [
            (self.done, "done"),
            (self.already, "already done"),
            (self.failed, "failed"),
            (self.changed_meanwhile, "changed meanwhile"),
            (self.skipped, "skipped"),
            (self.not_started, "not started"),
            (self.unknown, "unknown"),
        ]
    }
}

/// The faults of manifests.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CheckContent<'a> {
    /// The numbers of errors and warnings.
    pub counts: CheckCounts,
    /// All errors and warnings, ordered by place.
    #[schemars(with = "Vec<DiagnosticForm>")]
    pub diagnostics: &'a Diagnostics,
}

impl<'a> CheckContent<'a> {
    /// The `diagnostics` of the manifests, which declare `projects` projects.
    pub fn new(diagnostics: &'a Diagnostics, projects: usize) -> Self {
        let counts = CheckCounts {
            errors: diagnostics.count_severity(Severity::Error),
            warnings: diagnostics.count_severity(Severity::Warning),
            projects,
        };
        Self { counts, diagnostics }
    }
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CheckCounts {
    /// Faults that must be fixed.
    pub errors: usize,
    /// Declarations that work but should be changed.
    pub warnings: usize,
    /// The projects that are declared; 0 if there are errors.
    pub projects: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::ReportFixture;
    use serde_json::{Value, json};

    #[test]
    fn unsafe_characters_are_escaped_without_changing_the_text() {
        let text = "a\u{9b}31m\u{202e}b\u{e0001}\u{7f}\n";
        let safe = escape_unsafe(&json!(text).to_string());
        assert!(!safe.contains(is_unsafe), "{safe}");
        assert_eq!(serde_json::from_str::<Value>(&safe).unwrap(), text);
    }

    #[test]
    fn a_plan_is_read_back_as_it_was_written() {
        let plan = ReportFixture::new().labelled().plan;
        let text: &'static str = serde_json::to_string(&plan).unwrap().leak();
        let parsed: Plan = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&parsed).unwrap(), text);
    }

    #[test]
    fn a_report_names_its_kind_and_version() {
        let (plan, run) = (
            Plan::default(),
            ReportedRun {
                target: "https://x.example".into(),
                caller: "a".into(),
                sandbox: true,
                rehearsed: Vec::new(),
                snapshot: None,
                token: None,
            },
        );
        let text = JsonReport::finished(ReportKind::Drift, 0, PlanContent::new(&run, &plan))
            .to_text(&Secrets::default())
            .unwrap();
        let report: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&report["undrift"], &report["format_version"], &report["sandbox"]),
            (&json!("drift"), &json!(1), &json!(true))
        );
        assert_eq!(report["counts"]["calls"], 0);
    }
}
