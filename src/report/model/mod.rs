//! The one model of a report: what a run came to, as every renderer is given it.
//!
//! A [`Report`] borrows the finished values of a run. What stands in the way, what was let pass and
//! what went wrong are [`Item`]s of one shape, wherever they were found; what is done, or would be,
//! are [`Told`] steps. So each fact has its words here once, and a renderer only lays them out. Texts
//! are as they came: secrets are struck, and the rest escaped, by the renderer.

pub mod fold;
mod item;
pub mod note;
pub mod outcome;
pub mod step;
pub mod summary;
pub mod value;

use std::collections::BTreeMap;

pub use item::{Group, Item};

use self::summary::Title;
use super::{
    Run,
    canvas::Line,
    json::{Checked, Outcomes, Planned, Sort},
};
use crate::{
    address::Address,
    apply::Outcome,
    diagnostic::Diagnostics,
    diff::{Action, Label, Note, Step},
    plan::Plan,
};

/// What a run came to.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// What it is about.
    pub sort: Sort,
    /// The folder or file of manifests, as it was named: the place of what has no other.
    pub manifests: &'a str,
    /// What was found in the manifests on the way.
    pub diagnostics: &'a Diagnostics,
    /// How far the run has come.
    pub state: State<'a>,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug)]
pub enum State<'a> {
    /// It is under way, or was ended from outside.
    Unfinished,
    /// It ended before there was anything to report.
    Failed {
        /// The code that it exits with.
        exit_code: u8,
        /// What happened.
        error: &'a str,
        /// What to do about it.
        help: Option<&'a str>,
    },
    /// It came to its end.
    Finished {
        /// The code that it exits with.
        exit_code: u8,
        /// What it says.
        content: Content<'a>,
    },
}

/// What a run that came to its end says.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// A plan, or drift.
    Planned(&'a Planned<'a>),
    /// What became of a plan.
    Outcomes(&'a Outcomes<'a>),
    /// What is wrong with manifests.
    Checked(&'a Checked<'a>),
}

impl<'a> From<&'a Planned<'a>> for Content<'a> {
    fn from(planned: &'a Planned<'a>) -> Self {
        Self::Planned(planned)
    }
}

impl<'a> From<&'a Outcomes<'a>> for Content<'a> {
    fn from(outcomes: &'a Outcomes<'a>) -> Self {
        Self::Outcomes(outcomes)
    }
}

impl<'a> From<&'a Checked<'a>> for Content<'a> {
    fn from(checked: &'a Checked<'a>) -> Self {
        Self::Checked(checked)
    }
}

/// Where a step stands in a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Among what is, or would be, done.
    Changes,
    /// The same, but it is drift, and there are changes of the branch that come first.
    Drift,
    /// Among what is only watched.
    Watched,
}

impl Part {
    /// Every part, in the order in which they are shown.
    pub const ALL: [Self; 3] = [Self::Changes, Self::Drift, Self::Watched];

    /// The heading.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Changes => "Changes",
            Self::Drift => "Drift: differences that were there before",
            Self::Watched => "Watched, and not written",
        }
    }
}

/// A step with what became of it.
#[derive(Clone, Copy, Debug)]
pub struct Told<'a> {
    /// Its number in the plan, from 1.
    pub number: usize,
    /// The step.
    pub step: &'a Step,
    /// Where it stands.
    pub part: Part,
    /// What became of it, if the plan was applied.
    pub outcome: Option<&'static str>,
    /// Whether its object is now as it was to be.
    pub is_done: bool,
}

/// The word for whose a difference is.
pub const fn whose(label: Label) -> &'static str {
    match label {
        Label::Change => "this branch",
        Label::Both => "this branch and drift",
        Label::Removed => "removed by this branch",
        Label::Drift => "drift",
        Label::Unknown => "unknown",
    }
}

/// The word for what is done.
pub const fn word(action: Action) -> &'static str {
    match action {
        Action::Create => "create",
        Action::Update => "change",
        Action::Delete => "remove",
    }
}

impl<'a> Report<'a> {
    /// What it says, if the run came to its end.
    pub const fn content(&self) -> Option<Content<'a>> {
        match self.state {
            State::Finished { content, .. } => Some(content),
            State::Failed { .. } | State::Unfinished => None,
        }
    }

    /// The code that the run exits with, if it has ended.
    pub const fn exit_code(&self) -> Option<u8> {
        match self.state {
            State::Finished { exit_code, .. } | State::Failed { exit_code, .. } => Some(exit_code),
            State::Unfinished => None,
        }
    }

    /// The plan that it is about, if there is one.
    pub const fn plan(&self) -> Option<&'a Plan> {
        match self.content() {
            Some(Content::Planned(planned)) => Some(planned.plan),
            Some(Content::Outcomes(outcomes)) => Some(outcomes.plan),
            Some(Content::Checked(_)) | None => None,
        }
    }

    /// The service that it is about, if one was reached.
    pub const fn run(&self) -> Option<&'a Run> {
        match self.content() {
            Some(Content::Planned(planned)) => Some(planned.run),
            Some(Content::Outcomes(outcomes)) => Some(outcomes.run),
            Some(Content::Checked(_)) | None => None,
        }
    }

    /// What it comes to, a sentence each; one at least. They hold nothing but words and numbers of
    /// undrift.
    pub fn summary(&self) -> Vec<String> {
        let title = self.sort.word();
        let content = match self.state {
            State::Unfinished => return vec![format!("{title}: not finished")],
            State::Failed { .. } => return vec![format!("{title}: failed")],
            State::Finished { content, .. } => content,
        };
        match content {
            Content::Planned(planned) => {
                let title =
                    if matches!(self.sort, Sort::Drift) { Title::Drift } else { Title::Plan };
                texts(summary::lines(planned.plan, title))
            }
            Content::Outcomes(outcomes) => texts(outcome::summary(outcomes.applied)),
            Content::Checked(checked) => {
                let found = checked.diagnostics.summary();
                vec![format!("{title}: {}", found.as_deref().unwrap_or("nothing is wrong"))]
            }
        }
    }

    /// What exists, or has changes, and is no part of the plan, a sentence each, in words and numbers
    /// of undrift.
    pub fn asides(&self) -> Vec<String> {
        let live = self.run().and_then(|run| run.live.as_ref());
        let from = live.map(|live| {
            format!("From the snapshot of {}: what changed since is not in it.", live.taken_at)
        });
        let rehearsed = self.run().into_iter().flat_map(Run::rehearsals);
        let rehearsed = rehearsed.map(|told| format!("{told}."));
        let from = from.into_iter().chain(rehearsed);
        let Some(plan) = self.plan() else { return from.collect() };
        let asides = summary::exceptions(plan).into_iter().chain(summary::limited(plan));
        from.chain(texts(asides)).collect()
    }

    /// Why other things do not happen: each sort of note with its notes.
    pub(super) fn notes(&self) -> BTreeMap<note::Sort, Vec<&'a Note>> {
        let mut sorts: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for note in self.plan().into_iter().flat_map(|plan| &plan.notes) {
            sorts.entry(note::Sort::of(&note.reason)).or_default().push(note);
        }
        sorts
    }

    /// The steps, in the order of the plan.
    pub fn steps(&self) -> Vec<Told<'a>> {
        let Some(plan) = self.plan() else { return Vec::new() };
        let outcomes = self.outcomes();
        // Without changes of the branch, drift is all there is to see.
        let is_own = |step: &Step| step.label.is_some() && !step.is_drift();
        let folds = plan.steps.iter().any(is_own);
        let of = |at: usize, step: &'a Step| {
            let is_drift = folds && step.is_drift();
            let known = outcomes.as_ref().map(|known| known.get(&step.address).copied());
            let told = |known| outcome::outcome(known).1;
            let outcome = known.map(|known| known.map_or("left out", told));
            let is_done = known.flatten().is_some_and(Outcome::is_success);
            let part = if is_drift { Part::Drift } else { Part::Changes };
            Told { number: at + 1, step, part, outcome, is_done }
        };
        let watched = plan.watched.iter().enumerate().map(|(at, step)| Told {
            number: plan.steps.len() + at + 1,
            step,
            part: Part::Watched,
            outcome: None,
            is_done: false,
        });
        plan.steps.iter().enumerate().map(|(at, step)| of(at, step)).chain(watched).collect()
    }

    /// What became of each step that was approved, if the plan was applied.
    fn outcomes(&self) -> Option<BTreeMap<&'a Address, &'a Outcome>> {
        let Some(Content::Outcomes(outcomes)) = self.content() else { return None };
        Some(outcomes.applied.steps.iter().map(|step| (&step.address, &step.outcome)).collect())
    }

    /// What a reader has to know, in the order in which it is shown.
    pub fn items(&self) -> Vec<Item<'a>> {
        item::of(self)
    }
}

/// Lines without colours. They hold no secret.
fn texts(lines: impl IntoIterator<Item = Line>) -> Vec<String> {
    lines.into_iter().map(|line| line.to_string()).collect()
}
