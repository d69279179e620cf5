//! What a selftest found: without names, values, hosts and paths, so that it can be sent to anybody.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    fmt::Write as _,
};

use super::sample::{LeftOut, Phase};
use crate::{
    address::Address,
    apply::{Applied, MismatchReason},
    cause::Cause,
    diff::Step,
    field::{Scope, Tier},
    kinds,
    plan::Plan,
    text::{self, count},
};

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Finding {
    /// What was being done.
    phase: Phase,
    /// Whether to a group or a project, or to something in one, and which section.
    of: (Option<Scope>, Option<&'static str>),
    /// What happened.
    what: What,
    /// The operation, and what the service answered.
    answer: (Option<&'static str>, Option<u16>),
    /// The fields that it is about, of those that undrift knows.
    fields: Vec<&'static str>,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// The plan has a problem of this sort.
    Problem(&'static str),
    /// It could not be read.
    Unreadable,
    /// It was refused, or broke.
    Failed,
    /// It was accepted and not saved, or changed meanwhile.
    NotSaved,
    /// The next plan would change it again.
    PlannedAgain,
}

impl fmt::Display for What {
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
}

impl Findings {
    /// Takes in what a plan says that keeps something from being done.
    pub(super) fn planned(&mut self, phase: Phase, plan: &Plan) {
        for problem in &plan.problems {
            self.add(phase, (None, &problem.address), What::Problem(problem.code), None, &[]);
        }
        for scope in &plan.incomplete {
            let cause = Some(&scope.reason);
            self.add(phase, (None, &scope.address), What::Unreadable, cause, &[]);
        }
    }

    /// Takes in what became of a plan.
    pub(super) fn applied(&mut self, phase: Phase, applied: &Applied) {
        let done = applied.steps.iter().filter(|step| step.outcome.is_success()).count();
        self.done.insert(phase, done);
        for step in applied.steps.iter().filter(|step| !step.outcome.is_success()) {
            let of = (Some(step.scope), &step.address);
            self.add(phase, of, What::Failed, step.outcome.cause(), &[]);
        }
        for mismatch in &applied.mismatches {
            let (what, cause) = match &mismatch.reason {
                MismatchReason::Unreadable(cause) => (What::Unreadable, Some(cause)),
                MismatchReason::NotSaved
                | MismatchReason::ChangedMeanwhile
                | MismatchReason::NotPlanned => (What::NotSaved, None),
            };
            self.add(phase, (None, &mismatch.address), what, cause, &mismatch.fields);
        }
    }

    /// Takes in what the next plan would do.
    pub(super) fn again(&mut self, phase: Phase, plan: &Plan) {
        for step in &plan.steps {
            let Step { scope, address, changes, .. } = step;
            let fields: Vec<_> = changes.iter().map(|change| change.field.clone()).collect();
            self.add(phase, (Some(*scope), address), What::PlannedAgain, None, &fields);
        }
        self.planned(phase, plan);
    }

    fn add(
        &mut self,
        phase: Phase,
        (scope, address): (Option<Scope>, &Address),
        what: What,
        cause: Option<&Cause>,
        fields: &[String],
    ) {
        let answer = cause.map_or((None, None), |cause| (cause.operation, cause.status));
        // What undrift does not know may be a name that somebody chose.
        let fields = fields.iter().filter_map(|name| kinds::name(name)).collect();
        self.all.insert(Finding { phase, of: (scope, address.section), what, answer, fields });
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether others found the same, however many steps that took.
    pub(super) fn is_as(&self, others: &Self) -> bool {
        self.all == others.all
    }

    /// What is here and not in `others`.
    pub(super) fn without(&self, others: &Self) -> Self {
        let all = self.all.difference(&others.all).cloned().collect();
        Self { all, done: BTreeMap::new() }
    }
}

/// What the service is, as far as it is no secret.
pub(super) struct About {
    /// Its release, as text.
    pub(super) release: String,
    /// Its tier, as the command line says.
    pub(super) tier: Tier,
}

/// The report: what was tried and what was not, and what was found here, which in the sandbox is
/// `expected`, if it was asked.
pub(super) fn report(
    about: &About,
    extent: &(Vec<(Scope, &'static str)>, Vec<LeftOut>),
    found: &Findings,
    expected: Option<&Findings>,
) -> String {
    let mut text = format!(
        "undrift {} selftest: service of release {}, tier {}\n",
        env!("CARGO_PKG_VERSION"),
        about.release,
        about.tier
    );
    let (tried, left_out) = extent;
    let done =
        found.done.iter().map(|(phase, done)| format!("{} to {phase}", count(*done, "step")));
    let done: Vec<_> = done.collect();
    let _ = writeln!(text, "tried: {}; {}", count(tried.len(), "kind"), done.join(", "));
    for LeftOut { of: (scope, section), why } in left_out {
        let _ = writeln!(text, "left out: {} {section}: {why}", scope.noun());
    }
    let mut paragraph = |title: &str, findings: &Findings| {
        if !findings.is_empty() {
            let _ = writeln!(text, "\n{title}");
            findings.all.iter().for_each(|finding| {
                let _ = writeln!(text, "  {finding}");
            });
        }
    };
    let none = Findings::default();
    let sandbox = expected.unwrap_or(&none);
    let (here, there) = (found.without(sandbox), sandbox.without(found));
    let both = found.without(&here);
    paragraph("otherwise than it should be:", &here);
    paragraph("expected from the sandbox, and not found:", &there);
    paragraph("in the sandbox too:", &both);
    let verdict = match (here.is_empty() && there.is_empty(), expected) {
        (true, Some(_)) => "the service does the same as the sandbox",
        (true, None) => "everything converged",
        (false, Some(_)) => "the service differs from the sandbox; send this report to the project",
        (false, None) => "not everything converged; send this report to the project",
    };
    let _ = writeln!(text, "\n{verdict}");
    text
}
