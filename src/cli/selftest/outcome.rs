//! The findings of a selftest. Findings contain no names, values, hosts or paths, so users can send
//! them to anybody. The terminal shows one screen of findings. A file contains all findings.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    fmt::Write as _,
    path::Path,
};

use super::sample::{SamplePhase, TestSetup, Trial, parse_trial_path, trial_scope};
use crate::{
    address::Address,
    apply::{ApplyResult, MismatchReason},
    catalogue,
    cause::{Cause, Withheld},
    diff::Step,
    field::Scope,
    plan::Plan,
    text::{self, count},
};

/// A finding: a deviation from the expected result.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Deviation {
    /// The phase.
    phase: SamplePhase,
    /// The scope and the section of the object.
    object: (Option<Scope>, Option<&'static str>),
    /// The kind of the deviation.
    kind: DeviationKind,
    /// The operation that failed, and the HTTP status of its response.
    response: (Option<&'static str>, Option<u16>),
    /// The affected fields. Fields that undrift does not know are left out.
    fields: Vec<&'static str>,
}

/// How a result deviates from the expected one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DeviationKind {
    /// The plan has a problem with this code.
    Problem(&'static str),
    /// The object could not be read.
    Unreadable,
    /// The step was refused, or one of its requests failed.
    Failed,
    /// The change was accepted but not saved.
    NotSaved,
    /// Somebody else changed the object during the run.
    ChangedMeanwhile,
    /// The run did not send the whole change.
    NotSent,
    /// A later step of the run changed the object again.
    Undone,
    /// The next plan would change the object again.
    PlannedAgain,
}

impl fmt::Display for DeviationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Problem(code) => write!(f, "problem `{code}`"),
            Self::Unreadable => f.write_str("could not be read"),
            Self::Failed => f.write_str("failed"),
            Self::NotSaved => f.write_str("accepted but not saved"),
            Self::ChangedMeanwhile => f.write_str("changed by someone else meanwhile"),
            Self::NotSent => f.write_str("not sent yet"),
            Self::Undone => f.write_str("undone by a later step"),
            Self::PlannedAgain => f.write_str("planned again by the next run"),
        }
    }
}

impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scope, section) = self.object;
        let scope = scope.map_or("", Scope::noun);
        let object = format!("{scope} {}", section.unwrap_or("itself"));
        write!(f, "{}  {:<28} {}", self.phase, object.trim(), self.kind)?;
        match self.response {
            (Some(operation), Some(status)) => write!(f, ": {operation} answered {status}")?,
            (Some(operation), None) => write!(f, ": {operation}")?,
            (None, Some(status)) => write!(f, ": answered {status}")?,
            (None, None) => {}
        }
        if !self.fields.is_empty() {
            write!(f, " ({})", text::list_names(&self.fields))?;
        }
        Ok(())
    }
}

/// All deviations of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Deviations {
    findings: BTreeSet<Deviation>,
    /// The number of successful steps in each phase.
    step_counts: BTreeMap<SamplePhase, usize>,
    /// The sections that the service refuses, for example because a feature is not set up.
    refused_sections: BTreeSet<(Scope, &'static str)>,
}

impl Deviations {
    /// Adds the findings in a plan that prevent steps.
    pub(super) fn add_plan_findings(&mut self, phase: SamplePhase, plan: &Plan) {
        for problem in &plan.problems {
            self.add_finding(
                phase,
                (None, &problem.address),
                DeviationKind::Problem(problem.code),
                None,
                &[],
            );
        }
        for incomplete in &plan.incomplete {
            let is_refused = incomplete.reason.withheld == Some(Withheld::Refused);
            if is_refused
                && incomplete.is_withheld_section()
                && let Some((scope, section)) =
                    trial_scope(&incomplete.address.path).zip(incomplete.address.section)
            {
                self.refused_sections.insert((scope, section));
                // The group or project did not exist when the steps of this section were planned.
                // undrift could not yet read that the section is refused, so failures of these
                // steps are expected.
                self.findings.retain(|finding| {
                    finding.object != (Some(scope), Some(section))
                        || !matches!(
                            finding.kind,
                            DeviationKind::Failed | DeviationKind::Unreadable
                        )
                        || !matches!(finding.response.1, Some(401 | 403 | 404))
                });
            } else {
                let cause = Some(&incomplete.reason);
                self.add_finding(
                    phase,
                    (None, &incomplete.address),
                    DeviationKind::Unreadable,
                    cause,
                    &[],
                );
            }
        }
    }

    /// Adds the findings in the result of applying a plan.
    pub(super) fn add_apply_findings(&mut self, phase: SamplePhase, applied: &ApplyResult) {
        let success_count = applied.steps.iter().filter(|step| step.outcome.is_success()).count();
        self.step_counts.insert(phase, success_count);
        for step in applied.steps.iter().filter(|step| !step.outcome.is_success()) {
            let object = (Some(step.scope), &step.address);
            self.add_finding(phase, object, DeviationKind::Failed, step.outcome.cause(), &[]);
        }
        for mismatch in &applied.mismatches {
            let (kind, cause) = match &mismatch.reason {
                MismatchReason::Unreadable(cause) => (DeviationKind::Unreadable, Some(cause)),
                MismatchReason::NotSaved => (DeviationKind::NotSaved, None),
                MismatchReason::ChangedMeanwhile => (DeviationKind::ChangedMeanwhile, None),
                MismatchReason::NotPlanned => (DeviationKind::NotSent, None),
                MismatchReason::Undone(_) => (DeviationKind::Undone, None),
            };
            self.add_finding(phase, (None, &mismatch.address), kind, cause, &mismatch.fields);
        }
    }

    /// Adds the steps of the next plan, which should be empty.
    pub(super) fn add_next_plan(&mut self, phase: SamplePhase, plan: &Plan) {
        for step in &plan.steps {
            let Step { scope, address, changes, .. } = step;
            let fields: Vec<_> = changes.iter().map(|change| change.field.to_string()).collect();
            self.add_finding(
                phase,
                (Some(*scope), address),
                DeviationKind::PlannedAgain,
                None,
                &fields,
            );
        }
        self.add_plan_findings(phase, plan);
    }

    fn add_finding(
        &mut self,
        phase: SamplePhase,
        (scope, address): (Option<Scope>, &Address),
        kind: DeviationKind,
        cause: Option<&Cause>,
        fields: &[String],
    ) {
        let response = cause.map_or((None, None), |cause| (cause.operation, cause.status));
        // A name that undrift does not know may have been chosen by a user.
        let mut fields: Vec<_> =
            fields.iter().filter_map(|name| catalogue::known_field_name(name)).collect();
        let mut object = (scope.or_else(|| trial_scope(&address.path)), address.section);
        if let Some((scope, section, field)) = parse_trial_path(&address.path) {
            object = (object.0.or(Some(scope)), object.1.or(catalogue::known_field_name(section)));
            if fields.is_empty() {
                fields.extend(catalogue::known_field_name(field));
            }
        }
        self.findings.insert(Deviation { phase, object, kind, response, fields });
    }

    /// True if the findings are equal. The numbers of steps and the refused sections are not compared.
    pub(super) fn has_same_findings(&self, other: &Self) -> bool {
        self.findings == other.findings
    }
}

/// The kinds and fields that were tried or skipped, and the findings. `sandbox_deviations` are the
/// findings of a run against the sandbox, if this build contains a sandbox.
pub(super) struct SelftestReport<'a> {
    setup: &'a TestSetup,
    deviations: &'a Deviations,
    sandbox_deviations: Option<&'a Deviations>,
    /// The numbers of tried kinds and fields.
    tried_counts: [usize; 2],
    /// The kinds and the fields that were left out, with the reasons.
    untested_trials: [Vec<(Trial, String)>; 2],
}

const REFUSED_TEXT: &str = "the service refuses it";
/// The maximum number of findings on a screen, for each of the three groups.
const MAX_SHOWN_FINDINGS: usize = 6;

impl<'a> SelftestReport<'a> {
    pub(super) fn new(
        setup: &'a TestSetup,
        deviations: &'a Deviations,
        sandbox_deviations: Option<&'a Deviations>,
    ) -> Self {
        let (trials, untested_trials) = setup.split_trials();
        let field_count = trials.iter().filter(|trial| trial.field.is_some()).count();
        let (untested_fields, untested_kinds) =
            untested_trials.into_iter().partition(|(trial, _)| trial.field.is_some());
        Self {
            setup,
            deviations,
            sandbox_deviations,
            tried_counts: [trials.len() - field_count, field_count],
            untested_trials: [untested_kinds, untested_fields],
        }
    }

    /// All findings, for a file.
    pub(super) fn full_text(&self) -> String {
        let mut text = self.header_text();
        let [kinds, fields] = &self.untested_trials;
        let skipped_line =
            |(trial, reason): &(Trial, String)| format!("left out: {trial}: {reason}\n");
        text.extend(kinds.iter().map(skipped_line));
        for (scope, section) in &self.deviations.refused_sections {
            let _ = writeln!(text, "left out: {} {section}: {REFUSED_TEXT}", scope.noun());
        }
        text.extend(fields.iter().map(skipped_line));
        self.write_findings(&mut text, usize::MAX);
        text + self.verdict_text()
    }

    /// The part of the report that fits on a screen, with a reference to `file` for the rest.
    pub(super) fn screen_text(&self, file: Option<&Path>) -> String {
        let mut text = self.header_text();
        let [kinds, fields] = &self.untested_trials;
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        let refused_reasons = self.deviations.refused_sections.iter().map(|_| REFUSED_TEXT);
        for reason in kinds.iter().map(|(_, reason)| &**reason).chain(refused_reasons) {
            *reasons.entry(reason).or_default() += 1;
        }
        for (reason, kind_count) in reasons {
            let _ = writeln!(text, "left out: {}: {reason}", count(kind_count, "kind"));
        }
        if !fields.is_empty() {
            let fields = count(fields.len(), "field");
            let _ = writeln!(text, "left out: {fields} that cannot be changed alone");
        }
        let is_folded = self.write_findings(&mut text, MAX_SHOWN_FINDINGS);
        match file {
            Some(file) => {
                let file = text::escape(&file.display().to_string()).into_owned();
                let _ = writeln!(text, "\nthe whole report is in `{file}`");
            }
            None if is_folded => text.push_str("\n`--output FILE` writes the whole report\n"),
            None => {}
        }
        text + self.verdict_text()
    }

    fn header_text(&self) -> String {
        let release = self.setup.release.release();
        let release = release.map_or("unknown".to_owned(), |release| release.to_string());
        let (version, tier) = (env!("CARGO_PKG_VERSION"), self.setup.tier);
        let step_counts = self.deviations.step_counts.iter();
        let counted_steps = step_counts
            .map(|(phase, step_count)| format!("{} to {phase}", count(*step_count, "step")));
        let step_summary = counted_steps.collect::<Vec<_>>().join(", ");
        let [kinds, fields] = self.tried_counts;
        let mut tried_text = count(kinds, "kind");
        if fields > 0 {
            tried_text = format!("{tried_text}, {}", count(fields, "field"));
        }
        format!(
            "undrift {version} selftest: service of release {release}, tier {tier}\n\
             tried: {tried_text}; {step_summary}\n"
        )
    }

    /// Adds the first `max_shown` findings of each group. Returns true if there are more.
    fn write_findings(&self, text: &mut String, max_shown: usize) -> bool {
        let (observed, no_deviations) = (&self.deviations.findings, BTreeSet::new());
        let expected_findings =
            self.sandbox_deviations.map_or(&no_deviations, |expected| &expected.findings);
        let mut is_folded = false;
        for (title, findings) in [
            ("not as expected:", observed.difference(expected_findings).collect::<Vec<_>>()),
            (
                "expected from the sandbox, and not found:",
                expected_findings.difference(observed).collect(),
            ),
            ("in the sandbox too:", observed.intersection(expected_findings).collect()),
        ] {
            if findings.is_empty() {
                continue;
            }
            let _ = writeln!(text, "\n{title}");
            for finding in findings.iter().take(max_shown) {
                let _ = writeln!(text, "  {finding}");
            }
            let hidden_count = findings.len().saturating_sub(max_shown);
            if hidden_count > 0 {
                let _ = writeln!(text, "  and {hidden_count} more");
                is_folded = true;
            }
        }
        is_folded
    }

    fn verdict_text(&self) -> &'static str {
        match self.sandbox_deviations {
            Some(expected) if self.deviations.has_same_findings(expected) => {
                "\nthe service does the same as the sandbox\n"
            }
            Some(_) => "\nthe service differs from the sandbox; send this report to the project\n",
            None if self.deviations.findings.is_empty() => "\neverything converged\n",
            None => "\nnot everything converged; send this report to the project\n",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{apply::Mismatch, diff::Incomplete};

    /// Only a change that the service accepted but did not keep is "not saved".
    #[test]
    fn a_mismatch_is_reported_with_its_reason() {
        let address = Address::container("acme/group".into()).with_section("variables");
        for (reason, expected) in [
            (MismatchReason::NotSaved, "accepted but not saved"),
            (MismatchReason::ChangedMeanwhile, "changed by someone else meanwhile"),
            (MismatchReason::NotPlanned, "not sent yet"),
            (MismatchReason::Undone(address.clone()), "undone by a later step"),
            (MismatchReason::Unreadable(Cause::new("refused")), "could not be read"),
        ] {
            let mismatch =
                Mismatch { address: address.clone(), fields: Vec::new(), reason, help: None };
            let applied = ApplyResult { mismatches: vec![mismatch], ..ApplyResult::default() };
            let mut deviations = Deviations::default();
            deviations.add_apply_findings(SamplePhase::Create, &applied);
            let shown: Vec<_> = deviations.findings.iter().map(ToString::to_string).collect();
            assert!(shown.len() == 1 && shown[0].ends_with(expected), "{shown:?}");
        }
    }

    /// Only failures that have the same cause are dropped.
    #[test]
    fn a_withheld_section_drops_only_its_own_failures() {
        let mut deviations = Deviations::default();
        let section_address =
            |path: &str| Address::container(path.into()).with_section("audit_streams");
        let refusal_cause = |status| {
            let mut cause = Cause::new("refused");
            cause.status = Some(status);
            cause
        };
        for (scope, kind, status) in [
            (Scope::Group, DeviationKind::Failed, 404),
            (Scope::Group, DeviationKind::Failed, 500),
            (Scope::Group, DeviationKind::Unreadable, 401),
            (Scope::Group, DeviationKind::NotSaved, 404),
            (Scope::Project, DeviationKind::Failed, 404),
        ] {
            let object = (Some(scope), &section_address("acme/group"));
            deviations.add_finding(
                SamplePhase::Create,
                object,
                kind,
                Some(&refusal_cause(status)),
                &[],
            );
        }
        let mut plan = Plan::default();
        let reason = refusal_cause(404).mark_withheld(Withheld::Refused);
        plan.findings.incomplete.push(Incomplete {
            address: section_address("acme/group"),
            reason,
            origin: None,
        });
        deviations.add_plan_findings(SamplePhase::Create, &plan);
        assert_eq!(deviations.findings.len(), 3, "{:?}", deviations.findings);
        assert_eq!(deviations.refused_sections, BTreeSet::from([(Scope::Group, "audit_streams")]));
    }
}
