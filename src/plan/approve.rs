//! What of a plan may run: the one place that decides.
//!
//! A problem, a refusal or an unreadable scope was found on the service, and belongs to one group
//! or project: that one is left out and named, the rest may run. In thousands of projects one is
//! always broken. If too many are, it is not them.

use std::{collections::BTreeSet, sync::Arc};

use jiff::civil::Date;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Plan, saved::Comparison};
use crate::{
    address::Address,
    desired::{Acknowledgement, Guard, Moves},
    diagnostic::{Diagnostic, Place},
    diff::{Refusal, Step},
    live::Live,
    origin::Origin,
    text::{count, escape},
};

/// More containers than these left out, and more than this share of all, stop everything.
const MOST_LEFT_OUT: usize = 3;
const LARGEST_SHARE: f64 = 0.05;

/// The path of a refusal that is about the run as a whole.
pub(super) const EVERYTHING: &str = "**";

/// How much of a plan may be left out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Policy<'s> {
    /// Nothing runs if anything is left out.
    pub all_or_nothing: bool,
    /// How a saved plan compares with this one, if only what it says may run.
    pub saved: Option<&'s Comparison>,
}

/// A plan of which everything that is left may run. Only [`Plan::approve`] makes one, and apply
/// takes nothing else.
#[derive(Debug)]
pub struct Approved<'p> {
    plan: &'p Plan,
    left_out: BTreeSet<Arc<str>>,
}

impl Approved<'_> {
    /// What runs, in order.
    pub fn steps(&self) -> impl Iterator<Item = &Step> + Clone {
        self.plan.steps.iter().filter(|step| !self.left_out.contains(&step.address.path))
    }

    /// What was found of the container at `path` when the plan was made.
    pub fn live(&self, path: &str) -> Option<&Live> {
        self.plan.live(path)
    }

    /// Whether what a guard refuses now was refused, and acknowledged, when the plan was made.
    pub fn acknowledges(&self, refusal: &Refusal) -> bool {
        self.plan.acknowledged.iter().any(|known| {
            known.refusal.guard == refusal.guard
                && known.refusal.address == refusal.address
                && refusal.objects <= known.refusal.objects
        })
    }
}

/// A group or project that is not applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LeftOut {
    /// The group or project.
    pub address: Address,
    /// How many steps of it are not carried out.
    pub steps: usize,
}

/// Why nothing runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked(pub String);

/// A refusal that an acknowledgement let through.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Acknowledged {
    /// What was refused.
    pub refusal: Refusal,
    /// Why, in the words of whoever acknowledged it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Where that is written; nowhere if it was said on the command line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<Origin>,
    /// Whether only this branch says so, and its base does not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_new: bool,
}

impl Plan {
    /// Takes out of the refusals what is acknowledged, and warns of acknowledgements that are
    /// exceeded or of no use. What is over on `today` is passed over: the check of the manifests
    /// warns of it.
    pub fn acknowledge(
        &mut self,
        acknowledgements: &[Acknowledgement],
        moves: &Moves,
        today: Date,
    ) -> Vec<Diagnostic> {
        let mut warnings = Vec::new();
        let valid: Vec<_> = acknowledgements.iter().filter(|known| !known.is_over(today)).collect();
        let mut used = vec![false; valid.len()];
        let refusals = std::mem::take(&mut self.findings.refusals);
        for refusal in refusals {
            let is_named = |known: &Acknowledgement| match &*refusal.address.path {
                EVERYTHING => known.at.written() == EVERYTHING,
                // One glob in another: `acme/*` is not `acme/**`.
                glob if refusal.guard == Guard::Reach => {
                    let (at, glob) = (known.at.written().to_lowercase(), glob.to_lowercase());
                    at == EVERYTHING
                        || at == glob
                        || at.strip_suffix("**").is_some_and(|start| {
                            !start.contains(['*', '?', '[', '{']) && glob.starts_with(start)
                        })
                }
                path if refusal.guard == Guard::Deletion => {
                    known.at.written().to_lowercase() == path.to_lowercase()
                }
                _ => known.at.matches(&refusal.address),
            };
            let fits = |known: &Acknowledgement| known.guard == refusal.guard && is_named(known);
            let fitting: Vec<_> =
                valid.iter().copied().enumerate().filter(|(_, known)| fits(known)).collect();
            let mut letting = None;
            for (at, known) in fitting {
                used[at] = true;
                match exceeded(known, &refusal).or_else(|| renamed(known, &refusal, moves)) {
                    None => letting = letting.or(Some(known)),
                    Some(why) => warnings.push(warning(known, &why)),
                }
            }
            match letting {
                Some(known) => self.acknowledged.push(Acknowledged {
                    refusal,
                    reason: known.reason.clone(),
                    by: known.origin.clone(),
                    is_new: false,
                }),
                None => self.findings.refusals.push(refusal),
            }
        }
        let unused = valid.into_iter().zip(used).filter(|(_, used)| !used);
        warnings.extend(unused.map(|(known, _)| {
            warning(known, &format!("`{known}` acknowledges nothing that this run refuses"))
        }));
        warnings
    }

    /// Whether a guard refuses the run as a whole. What is about a rule is so: it has no steps of its
    /// own that could be left out.
    pub fn is_refused(&self) -> bool {
        let is_whole = |refusal: &Refusal| {
            &*refusal.address.path == EVERYTHING || refusal.guard == Guard::Reach
        };
        self.refusals.iter().any(is_whole)
    }

    /// Decides what may run: everything but the containers with a problem, a refusal, or something
    /// that could not be read.
    ///
    /// # Errors
    /// Why nothing may run.
    pub fn approve(&self, policy: Policy<'_>) -> Result<(Approved<'_>, Vec<LeftOut>), Blocked> {
        let addresses = self.problems.iter().map(|problem| &problem.address);
        let addresses = addresses
            .chain(self.refusals.iter().map(|refusal| &refusal.address))
            .chain(self.incomplete.iter().map(|scope| &scope.address));
        let mut broken: BTreeSet<Arc<str>> =
            addresses.map(|address| address.path.clone()).collect();
        if self.is_refused() {
            return Err(Blocked("a guard refuses the run as a whole".into()));
        }
        let all = self.projects + self.groups;
        // What was not saved is no sign of something common, but it is left out.
        let apart = self.apart_from(policy.saved);
        if policy.all_or_nothing {
            broken.extend(apart.iter().cloned());
        }
        let what = || match self.groups {
            0 => format!("{} of {} cannot be applied", broken.len(), count(all, "project")),
            _ => format!("{} of {all} groups and projects cannot be applied", broken.len()),
        };
        if !broken.is_empty() && policy.all_or_nothing {
            return Err(Blocked(format!("{}, and `--all-or-nothing` was given", what())));
        }
        if broken.len() > MOST_LEFT_OUT && broken.len() as f64 > all as f64 * LARGEST_SHARE {
            return Err(Blocked(format!(
                "{}; more than {MOST_LEFT_OUT} and {:.0} % points to something common",
                what(),
                LARGEST_SHARE * 100.0
            )));
        }
        broken.extend(apart);
        self.add_dependants(&mut broken);
        let left_out = broken.iter().map(|path| {
            let steps = self.steps.iter().filter(|step| step.address.path == *path).count();
            LeftOut { address: Address::container(path.clone()), steps }
        });
        let left_out = left_out.collect();
        Ok((Approved { plan: self, left_out: broken }, left_out))
    }
}

impl Plan {
    /// The containers with steps, as far as those are not what was `saved`.
    fn apart_from(&self, saved: Option<&Comparison>) -> BTreeSet<Arc<str>> {
        let paths = self.steps.iter().map(|step| &step.address.path);
        let is_apart = |path: &&Arc<str>| saved.is_some_and(|saved| !saved.agreed.contains(*path));
        paths.filter(is_apart).cloned().collect()
    }

    /// Adds to `broken` the containers whose steps depend on a step of one that is.
    fn add_dependants(&self, broken: &mut BTreeSet<Arc<str>>) {
        loop {
            let depends = |step: &&Step| {
                step.after.iter().any(|edge| {
                    edge.address.path != step.address.path && broken.contains(&edge.address.path)
                })
            };
            let new: Vec<_> = self
                .steps
                .iter()
                .filter(|step| !broken.contains(&step.address.path))
                .filter(depends)
                .map(|step| step.address.path.clone())
                .collect();
            if new.is_empty() {
                return;
            }
            broken.extend(new);
        }
    }
}

/// Why an acknowledgement that fits does not let a refusal through, if so.
fn exceeded(known: &Acknowledgement, refusal: &Refusal) -> Option<String> {
    let most = known.at_most.filter(|most| *most < refusal.objects)?;
    Some(format!(
        "the acknowledgement of `{known}` is for {most} at most, and `{}` is about {}",
        refusal.address, refusal.objects
    ))
}

/// Why a glob does not let a refusal through although it fits: a branch that renames something would
/// choose which acknowledgements are for it. A path that is written out is no matter of choice.
fn renamed(known: &Acknowledgement, refusal: &Refusal, moves: &Moves) -> Option<String> {
    let (path, is_whole) = (&refusal.address.path, &*refusal.address.path == EVERYTHING);
    let written = known.at.written().split('#').next().unwrap_or_default();
    if is_whole || refusal.guard == Guard::Reach || written.to_lowercase() == path.to_lowercase() {
        return None;
    }
    let of = match moves.former(path) {
        None => "every former path".to_owned(),
        Some(former) => {
            let former = former.into_iter().find(|former| {
                !known.at.matches(&Address { path: (**former).into(), ..refusal.address.clone() })
            });
            format!("`{}`, the former path", escape(&former?))
        }
    };
    Some(format!(
        "the acknowledgement of `{known}` is not for {of} of `{path}`; write `{}`",
        refusal.acknowledgement
    ))
}

fn warning(known: &Acknowledgement, message: &str) -> Diagnostic {
    let warning = Diagnostic::warning("acknowledgement", message.to_owned());
    match &known.origin {
        Some(origin) => warning.at(Place::from(origin)),
        None => warning,
    }
}
