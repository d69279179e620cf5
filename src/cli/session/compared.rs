//! A session compared with the base of a branch: what of a plan is this branch's, and what either side
//! limits.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use super::{Session, opening::limits};
use crate::{
    api::ApiError,
    apply::{self, Own},
    cli::{Context, base::Found},
    desired::{Acknowledgement, Container, Desired, Member, Roster},
    diagnostic::{Diagnostic, Diagnostics},
    diff::Problem,
    live::Live,
    manifest::Config,
    plan::{Against, Base, Limits, Plan, Rest},
};

/// How a session uses a base.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) struct Use {
    /// Whether what differed before is planned too.
    pub(in crate::cli) heals: bool,
    /// Whether only what is declared otherwise than at the base is looked at.
    pub(in crate::cli) only_changed: bool,
}

/// What a session knows of a base.
pub(super) struct Compared {
    base: Base,
    config: Config,
    acknowledgements: Vec<Acknowledgement>,
    heals: bool,
    /// What was found so far.
    against: Mutex<Against>,
    /// By path, what is declared without what is left alone.
    rests: Mutex<BTreeMap<Arc<str>, Rest>>,
}

impl Session {
    /// The same against a base. The limits of both sides count.
    pub(in crate::cli) fn against(mut self, found: Found, used: Use, cx: &Context) -> Self {
        let mut against = Against { revision: found.revision, ..Against::default() };
        let (mut base, mut config, mut acknowledgements) =
            (Base::Unknown, Config::default(), Vec::new());
        if let Some(content) = found.content {
            let missing = missing(&self.desired, &content.desired);
            config = content.config;
            acknowledgements = content.desired.acknowledgements.clone();
            let brought = match content.includes {
                Some(includes) => includes.bring_in(content.desired, &mut { missing }, true),
                None => Ok(content.desired),
            };
            match brought {
                Ok(desired) => base = Base::of(desired.containers, &self.desired.containers),
                Err(_) => {
                    let why =
                        "no base to compare with: its rules have faults in what they bring in";
                    let warning = Diagnostic::warning("base", why);
                    let warnings: Diagnostics = std::iter::once(warning).collect();
                    cx.output.tell(&warnings.render(cx.output.stderr.into()));
                }
            }
        }
        let (removals, reach) = limits(&config);
        self.settings.limits = stricter(self.settings.limits, removals);
        self.extent.reach = stricter(self.extent.reach, reach);
        base.remember(&mut self.desired.containers);
        if used.only_changed {
            let all = self.desired.containers.len();
            self.desired.containers = base.changed(std::mem::take(&mut self.desired.containers));
            against.unchanged = all - self.desired.containers.len();
            self.settings.created = self.desired.created();
            // Those in documents are for what is looked at; those of the command line are for this
            // run.
            let containers = &self.desired.containers;
            self.acknowledged.retain(|known| {
                known.origin.is_none()
                    || containers.iter().any(|container| known.at.touches(&container.path))
            });
        }
        self.compared = Some(Compared {
            base,
            config,
            acknowledgements,
            heals: used.heals,
            against: Mutex::new(against),
            rests: Mutex::default(),
        });
        self
    }

    /// What is declared without what this run leaves alone, once it was planned.
    pub(in crate::cli) fn to_apply(&self) -> Cow<'_, Desired> {
        let Some(compared) = &self.compared else { return Cow::Borrowed(&self.desired) };
        let rests = compared.rests.lock().unwrap_or_else(PoisonError::into_inner);
        if rests.is_empty() {
            return Cow::Borrowed(&self.desired);
        }
        let rest = |container: &Container| match rests.get(&container.path) {
            Some(Rest::Nothing) => None,
            Some(Rest::Some(rest)) => Some((**rest).clone()),
            Some(Rest::All) | None => Some(container.clone()),
        };
        let containers = self.desired.containers.iter().filter_map(rest).collect();
        Cow::Owned(Desired { containers, ..self.desired.clone() })
    }
}

impl Compared {
    /// The plan of one container, with labels.
    pub(super) async fn plan(
        &self,
        session: &Session,
        container: &Container,
        live: &mut Live,
    ) -> Result<crate::plan::ContainerPlan, ApiError> {
        let (observer, settings) = (&session.observer, &session.settings);
        let planned =
            apply::plan_against(observer, container, &self.base, self.heals, live, settings);
        let Own { mut plan, rest, against } = planned.await?;
        plan.findings.problems.extend(outside(&self.config, container));
        self.against.lock().unwrap_or_else(PoisonError::into_inner).extend(against);
        if !matches!(rest, Rest::All) {
            let mut rests = self.rests.lock().unwrap_or_else(PoisonError::into_inner);
            rests.insert(container.path.clone(), rest);
        }
        Ok(plan)
    }

    /// Puts what was found of all containers into `plan`.
    pub(super) fn finish(&self, plan: &mut Plan) {
        let against = self.against.lock().unwrap_or_else(PoisonError::into_inner);
        plan.base = Some(against.clone());
    }

    /// Marks what an acknowledgement let through that only this branch has, and puts it first.
    pub(super) fn mark(&self, plan: &mut Plan, all: &[Acknowledgement]) {
        let is_old = |known: &&Acknowledgement| {
            self.acknowledgements.iter().any(|old| known.lets_no_more_through_than(old))
        };
        let old: BTreeSet<_> =
            all.iter().filter(is_old).filter_map(|known| known.origin.clone()).collect();
        for known in &mut plan.acknowledged {
            known.is_new = known.by.as_ref().is_some_and(|by| !old.contains(by));
        }
        plan.acknowledged.sort_by_key(|known| !known.is_new);
    }
}

/// What a rule at the base may have brought in: what is declared here and not there.
fn missing(here: &Desired, base: &Desired) -> Roster {
    let known: BTreeSet<_> =
        base.containers.iter().map(|container| container.path.to_lowercase()).collect();
    let others = here.containers.iter().filter(|own| !known.contains(&own.path.to_lowercase()));
    let member = |own: &Container| {
        let path = own.path.to_string();
        Member { scope: own.scope, path, exception: None }
    };
    Roster { members: others.map(member).collect(), ..Roster::default() }
}

/// The limits that both sides keep.
fn stricter(one: Limits, other: Limits) -> Limits {
    Limits { count: one.count.min(other.count), share: one.share.min(other.share) }
}

/// What is outside of what the base manages: nobody widens that and uses it at once.
fn outside(config: &Config, container: &Container) -> Option<Problem> {
    let (address, message) = config.outside(container)?;
    Some(Problem {
        address,
        code: "outside",
        message,
        help: Some(format!(
            "merge the change of `manages` in {} first, then declare this",
            crate::manifest::config::FILE
        )),
        origin: container.origin.clone(),
    })
}
