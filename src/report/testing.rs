//! Reports for the tests of file formats.

use super::{
    ApplyContent, CheckContent, PlanContent, ReportContent, ReportKind, ReportedRun,
    RunReportState,
    model::Report,
    terminal::tests::{blocked_plan, sample_applied, sample_run, shop_plan},
};
use crate::{
    apply::ApplyResult,
    desired::Guard,
    diagnostic::{Diagnostic, Diagnostics, SourceLocation},
    diff::Label,
    plan::{Acknowledged, Plan, SkippedContainer},
};

/// Everything that a report may borrow.
pub(super) struct ReportFixture {
    pub(super) run: ReportedRun,
    pub(super) plan: Plan,
    pub(super) applied: ApplyResult,
    pub(super) left_out: Vec<SkippedContainer>,
    pub(super) diagnostics: Diagnostics,
}

impl ReportFixture {
    /// A plan with all possible parts, its result, and faults in its manifests.
    pub(super) fn new() -> Self {
        let (mut plan, blocked) = (shop_plan(), blocked_plan());
        let address = blocked.refusals[0].address.clone();
        let left_out = vec![SkippedContainer { address, steps: 2 }];
        plan.problems = blocked.findings.problems;
        plan.incomplete = blocked.findings.incomplete;
        plan.refusals = blocked.findings.refusals;
        let mut refusal = plan.refusals[0].clone();
        refusal.guard = Guard::Visibility;
        let (reason, by) = (Some("INC-123".to_owned()), Some(refusal.origin.clone()));
        plan.acknowledged = vec![Acknowledged { refusal, reason, by, is_new: false }];
        let fault = Diagnostic::error("unknown-field", "unknown field `visiblity`")
            .with_location(SourceLocation::from(&plan.steps[0].origin))
            .with_help("did you mean `visibility`?");
        let warning = Diagnostic::warning("deprecated", "`wiki_enabled` is deprecated");
        let diagnostics = [fault, warning].into_iter().collect();
        Self { run: sample_run(), plan, applied: sample_applied(), left_out, diagnostics }
    }

    /// Labels the steps alternately as branch changes and as drift.
    pub(super) fn labelled(mut self) -> Self {
        let labels = [Label::Change, Label::Drift].into_iter().cycle();
        for (step, label) in self.plan.steps.iter_mut().zip(labels) {
            step.label = Some(label);
            step.changes.iter_mut().for_each(|change| change.label = Some(label));
        }
        self
    }

    /// Calls `visit` with a report of each kind and state.
    pub(super) fn for_each_report(&self, mut visit: impl FnMut(&str, &Report<'_>)) {
        let diagnostics = &self.diagnostics;
        let planned = PlanContent::new(&self.run, &self.plan);
        let outcomes = ApplyContent::new(&self.run, &self.plan, &self.applied, &self.left_out);
        let checked = CheckContent::new(diagnostics, 1);
        let finished_state = |content| RunReportState::finished(4, content);
        let failed = RunReportState::failed(
            3,
            "no service address given",
            Some("pass `--url`, or `--sandbox` for the embedded service"),
            diagnostics,
        );
        for (name, kind, state) in [
            ("unfinished", ReportKind::Plan, RunReportState::UNFINISHED),
            ("failed", ReportKind::Plan, failed),
            ("plan", ReportKind::Plan, finished_state(ReportContent::Plan(&planned))),
            ("drift", ReportKind::Drift, finished_state(ReportContent::Plan(&planned))),
            ("apply", ReportKind::Apply, finished_state(ReportContent::Apply(&outcomes))),
            ("check", ReportKind::Check, finished_state(ReportContent::Check(&checked))),
        ] {
            visit(name, &Report { kind, manifests: "./manifests", diagnostics, state });
        }
    }

    /// The output of `render` for the report called `name`.
    pub(super) fn render_named(
        &self,
        name: &str,
        render: impl Fn(&Report<'_>) -> String,
    ) -> String {
        let mut text = None;
        self.for_each_report(|report_name, report| {
            if report_name == name {
                text = Some(render(report));
            }
        });
        text.unwrap_or_else(|| panic!("no report `{name}`"))
    }
}
