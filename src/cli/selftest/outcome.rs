//! The findings of a selftest, without names, values, hosts and paths, so that they can be sent to
//! anybody. The terminal shows one screen of them, a file all.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    fmt::Write as _,
    path::Path,
};

use super::sample::{Phase, Setup, attribute_at, scope_at};
use crate::{
    address::Address,
    apply::{Applied, MismatchReason},
    catalogue,
    cause::{Cause, Withheld},
    diff::Step,
    field::Scope,
    plan::Plan,
    text::{self, count},
};

/// A deviation from the expected result.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Finding {
    /// The phase.
    phase: Phase,
    /// The scope and the section of the object.
    of: (Option<Scope>, Option<&'static str>),
    /// What happened.
    what: Fault,
    /// The operation, and the status of the answer.
    answer: (Option<&'static str>, Option<u16>),
    /// The fields concerned, as far as undrift knows them.
    fields: Vec<&'static str>,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    /// The plan has a problem with this code.
    Problem(&'static str),
    /// It could not be read.
    Unreadable,
    /// It was refused, or a request failed.
    Failed,
    /// It was accepted and not saved, or changed meanwhile.
    NotSaved,
    /// The next plan would change it again.
    PlannedAgain,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Problem(code) => write!(f, "problem `{code}`"),
            Self::Unreadable => f.write_str("could not be read"),
            Self::Failed => f.write_str("failed"),
            Self::NotSaved => f.write_str("accepted but not saved"),
            Self::PlannedAgain => f.write_str("planned again by the next run"),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scope, section) = self.of;
        let scope = scope.map_or("", Scope::noun);
        let place = format!("{scope} {}", section.unwrap_or("itself"));
        write!(f, "{}  {:<28} {}", self.phase, place.trim(), self.what)?;
        match self.answer {
            (Some(operation), Some(status)) => write!(f, ": {operation} answered {status}")?,
            (Some(operation), None) => write!(f, ": {operation}")?,
            (None, Some(status)) => write!(f, ": answered {status}")?,
            (None, None) => {}
        }
        if !self.fields.is_empty() {
            write!(f, " ({})", text::listed(&self.fields))?;
        }
        Ok(())
    }
}

/// All that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Findings {
    all: BTreeSet<Finding>,
    /// How many steps were carried out in each phase.
    done: BTreeMap<Phase, usize>,
    /// The sections that the service refuses, as those of a feature that is not set up.
    refused: BTreeSet<(Scope, &'static str)>,
}

impl Findings {
    /// Adds the findings in a plan that prevent steps.
    pub(super) fn planned(&mut self, phase: Phase, plan: &Plan) {
        for problem in &plan.problems {
            self.add(phase, (None, &problem.address), Fault::Problem(problem.code), None, &[]);
        }
        for scope in &plan.incomplete {
            let refused = scope_at(&scope.address.path).zip(scope.address.section);
            let is_refused = scope.reason.withheld == Some(Withheld::Refused);
            if let Some((of, section)) =
                refused.filter(|_| is_refused && scope.is_withheld_section())
            {
                self.refused.insert((of, section));
                // Before the group existed, its steps were planned.
                self.all.retain(|found| {
                    found.of != (Some(of), Some(section))
                        || !matches!(found.what, Fault::Failed | Fault::Unreadable)
                        || !matches!(found.answer.1, Some(401 | 403 | 404))
                });
            } else {
                let cause = Some(&scope.reason);
                self.add(phase, (None, &scope.address), Fault::Unreadable, cause, &[]);
            }
        }
    }

    /// Adds the findings in the result of applying a plan.
    pub(super) fn applied(&mut self, phase: Phase, applied: &Applied) {
        let done = applied.steps.iter().filter(|step| step.outcome.is_success()).count();
        self.done.insert(phase, done);
        for step in applied.steps.iter().filter(|step| !step.outcome.is_success()) {
            let of = (Some(step.scope), &step.address);
            self.add(phase, of, Fault::Failed, step.outcome.cause(), &[]);
        }
        for mismatch in &applied.mismatches {
            let (what, cause) = match &mismatch.reason {
                MismatchReason::Unreadable(cause) => (Fault::Unreadable, Some(cause)),
                MismatchReason::NotSaved
                | MismatchReason::ChangedMeanwhile
                | MismatchReason::NotPlanned
                | MismatchReason::Undone(_) => (Fault::NotSaved, None),
            };
            self.add(phase, (None, &mismatch.address), what, cause, &mismatch.fields);
        }
    }

    /// Adds the steps of the next plan, which should be empty.
    pub(super) fn add_repeated(&mut self, phase: Phase, plan: &Plan) {
        for step in &plan.steps {
            let Step { scope, address, changes, .. } = step;
            let fields: Vec<_> = changes.iter().map(|change| change.field.to_string()).collect();
            self.add(phase, (Some(*scope), address), Fault::PlannedAgain, None, &fields);
        }
        self.planned(phase, plan);
    }

    fn add(
        &mut self,
        phase: Phase,
        (scope, address): (Option<Scope>, &Address),
        what: Fault,
        cause: Option<&Cause>,
        fields: &[String],
    ) {
        let answer = cause.map_or((None, None), |cause| (cause.operation, cause.status));
        // A name that undrift does not know may have been chosen by a user.
        let mut fields: Vec<_> = fields.iter().filter_map(|name| catalogue::name(name)).collect();
        let mut of = (scope.or_else(|| scope_at(&address.path)), address.section);
        if let Some((scope, section, field)) = attribute_at(&address.path) {
            of = (of.0.or(Some(scope)), of.1.or(catalogue::name(section)));
            if fields.is_empty() {
                fields.extend(catalogue::name(field));
            }
        }
        self.all.insert(Finding { phase, of, what, answer, fields });
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether the findings are the same, whatever the number of steps.
    pub(super) fn is_as(&self, others: &Self) -> bool {
        self.all == others.all
    }

    /// The findings that are not in `others`.
    pub(super) fn without(&self, others: &Self) -> Self {
        let all = self.all.difference(&others.all).cloned().collect();
        Self { all, ..Self::default() }
    }
}

/// What was tried and what was not, and the findings. `expected` are those of the sandbox, if it
/// was asked.
pub(super) struct Report<'a> {
    pub(super) setup: &'a Setup,
    pub(super) found: &'a Findings,
    pub(super) expected: Option<&'a Findings>,
}

const REFUSED: &str = "the service refuses it";
/// How many findings of a sort fit on a screen.
const MOST: usize = 6;

impl Report<'_> {
    /// All findings, for a file.
    pub(super) fn whole(&self) -> String {
        let mut text = self.head();
        let (fields, kinds): (Vec<_>, Vec<_>) =
            self.setup.extent().1.into_iter().partition(|(trial, _)| trial.field.is_some());
        let line = |(trial, why)| format!("left out: {trial}: {why}\n");
        text.extend(kinds.into_iter().map(line));
        for (scope, section) in &self.found.refused {
            let _ = writeln!(text, "left out: {} {section}: {REFUSED}", scope.noun());
        }
        text.extend(fields.into_iter().map(line));
        self.findings(&mut text, usize::MAX);
        text + self.verdict()
    }

    /// What fits on a screen; `file` has the rest, if there is one.
    pub(super) fn screen(&self, file: Option<&Path>) -> String {
        let mut text = self.head();
        let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
        let (fields, kinds): (Vec<_>, Vec<_>) =
            self.setup.extent().1.into_iter().partition(|(trial, _)| trial.field.is_some());
        let skipped = kinds.into_iter().map(|(_, why)| why);
        for why in skipped.chain(self.found.refused.iter().map(|_| REFUSED.to_owned())) {
            *reasons.entry(why).or_default() += 1;
        }
        for (why, kinds) in reasons {
            let _ = writeln!(text, "left out: {}: {why}", count(kinds, "kind"));
        }
        if !fields.is_empty() {
            let fields = count(fields.len(), "field");
            let _ = writeln!(text, "left out: {fields} that cannot be changed alone");
        }
        let folded = self.findings(&mut text, MOST);
        match file {
            Some(file) => {
                let file = text::escape(&file.display().to_string()).into_owned();
                let _ = writeln!(text, "\nthe whole report is in `{file}`");
            }
            None if folded => text.push_str("\n`--output FILE` writes the whole report\n"),
            None => {}
        }
        text + self.verdict()
    }

    fn head(&self) -> String {
        let release = self.setup.release.release();
        let release = release.map_or("unknown".to_owned(), |release| release.to_string());
        let mut text = format!(
            "undrift {} selftest: service of release {release}, tier {}\n",
            env!("CARGO_PKG_VERSION"),
            self.setup.tier
        );
        let done = self.found.done.iter();
        let done = done.map(|(phase, done)| format!("{} to {phase}", count(*done, "step")));
        let done: Vec<_> = done.collect();
        let (all, _) = self.setup.extent();
        let fields = all.iter().filter(|trial| trial.field.is_some()).count();
        let mut tried = count(all.len() - fields, "kind");
        if fields > 0 {
            tried = format!("{tried}, {}", count(fields, "field"));
        }
        let _ = writeln!(text, "tried: {tried}; {}", done.join(", "));
        text
    }

    /// Adds the first `most` findings of each sort; returns whether there are more.
    fn findings(&self, text: &mut String, most: usize) -> bool {
        let (here, there, both) = self.compared();
        let mut folded = false;
        for (title, findings) in [
            ("not as expected:", here),
            ("expected from the sandbox, and not found:", there),
            ("in the sandbox too:", both),
        ] {
            if findings.is_empty() {
                continue;
            }
            let _ = writeln!(text, "\n{title}");
            for finding in findings.all.iter().take(most) {
                let _ = writeln!(text, "  {finding}");
            }
            let more = findings.all.len().saturating_sub(most);
            if more > 0 {
                let _ = writeln!(text, "  and {more} more");
                folded = true;
            }
        }
        folded
    }

    /// The findings only here, only in the sandbox, and in both.
    fn compared(&self) -> (Findings, Findings, Findings) {
        let none = Findings::default();
        let sandbox = self.expected.unwrap_or(&none);
        let (here, there) = (self.found.without(sandbox), sandbox.without(self.found));
        let both = self.found.without(&here);
        (here, there, both)
    }

    fn verdict(&self) -> &'static str {
        let (here, there, _) = self.compared();
        match (here.is_empty() && there.is_empty(), self.expected) {
            (true, Some(_)) => "\nthe service does the same as the sandbox\n",
            (true, None) => "\neverything converged\n",
            (false, Some(_)) => {
                "\nthe service differs from the sandbox; send this report to the project\n"
            }
            (false, None) => "\nnot everything converged; send this report to the project\n",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::Incomplete;

    /// Only the failures that show the same are no findings.
    #[test]
    fn a_withheld_section_takes_no_other_finding_along() {
        let mut found = Findings::default();
        let at = |place: &str| Address::container(place.into()).section("audit_streams");
        let failed = |status| {
            let mut cause = Cause::new("refused");
            cause.status = Some(status);
            cause
        };
        for (scope, what, status) in [
            (Scope::Group, Fault::Failed, 404),
            (Scope::Group, Fault::Failed, 500),
            (Scope::Group, Fault::Unreadable, 401),
            (Scope::Group, Fault::NotSaved, 404),
            (Scope::Project, Fault::Failed, 404),
        ] {
            let of = (Some(scope), &at("acme/group"));
            found.add(Phase::Create, of, what, Some(&failed(status)), &[]);
        }
        let mut plan = Plan::default();
        let reason = failed(404).withheld(Withheld::Refused);
        plan.findings.incomplete.push(Incomplete { address: at("acme/group"), reason });
        found.planned(Phase::Create, &plan);
        assert_eq!(found.all.len(), 3, "{:?}", found.all);
        assert_eq!(found.refused, BTreeSet::from([(Scope::Group, "audit_streams")]));
    }
}
