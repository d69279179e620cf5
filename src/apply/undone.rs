//! Finds what a later step of the same run undid elsewhere: the removal of a member empties the rules
//! that name the member, and a setting of a group replaces those below it.
//!
//! Only what a constraint connects to such a step is read again.

use std::collections::{BTreeMap, HashSet};

use futures_util::{StreamExt as _, stream};

use super::{Applied, Apply, Mismatch, MismatchReason, Outcome, plan};
use crate::{
    address::Address,
    cause::Cause,
    desired::{Container, DeclaredSection, Unlisted},
    diff::{Action, Step},
    kind::{Created, Place, Removal},
    kinds::{constraints, settings},
    plan::{Approved, Settings, takes_access},
};

impl Apply<'_> {
    /// What no longer matches although its own step succeeded, or none was needed.
    pub(super) async fn undone(
        &self,
        plan: &Approved<'_>,
        applied: &Applied,
        created: Created,
    ) -> Vec<Mismatch> {
        let done = applied.steps.iter().filter(|step| step.outcome == Outcome::Done);
        let done: HashSet<_> = done.map(|step| &step.address).collect();
        let mut deciding: BTreeMap<String, Vec<&Step>> = BTreeMap::new();
        for step in plan.steps().filter(|step| done.contains(&step.address)) {
            deciding.entry(step.address.path.to_lowercase()).or_default().push(step);
        }
        let settings = Settings { created, resend: Vec::new(), ..self.settings.clone() };
        let affected = self.desired.containers.iter().filter_map(|container| {
            let is_compared = plan.covers(&container.path) && !container.is_watched;
            let by = Some(touched(container, &deciding)).filter(|by| is_compared && !by.is_empty());
            Some(self.read_again(container, by?, &settings))
        });
        let found: Vec<_> =
            stream::iter(affected).buffer_unordered(self.ahead.max(1)).collect().await;
        let failed = applied.steps.iter().filter(|step| !step.outcome.is_success());
        let reported = applied.mismatches.iter().map(|mismatch| &mismatch.address);
        let reported: HashSet<_> = failed.map(|step| &step.address).chain(reported).collect();
        let found = found.into_iter().flatten();
        found.filter(|mismatch| !reported.contains(&mismatch.address)).collect()
    }

    /// Reads the sections in `by` again, each with the step that may have undone it.
    async fn read_again(
        &self,
        container: &Container,
        by: BTreeMap<&'static str, &Step>,
        settings: &Settings,
    ) -> Vec<Mismatch> {
        let mut part = container.clone();
        part.life.unlisted_projects = None;
        part.sections.retain(|section| {
            let is_object = matches!(section.of.home.place, Place::Object);
            is_object || by.contains_key(section.of.section)
        });
        let read = async {
            let mut live = self.observer.container(&part, None).await?;
            plan(self.observer, &part, &mut live, settings).await
        };
        let unread = |address: Address, cause: Cause| {
            let reason = MismatchReason::Unreadable(cause);
            Mismatch { address, fields: Vec::new(), reason, help: None }
        };
        let found = match read.await {
            Ok(found) => found,
            Err(error) => return vec![unread(container.address(), Cause::from(&error))],
        };
        let undone = |address: &Address, fields: Vec<String>, help: Option<String>| {
            let step = by.get(address.section?)?;
            let reason = if is_creation(step) && step.address.path == container.path {
                MismatchReason::NotPlanned
            } else {
                MismatchReason::Undone(step.address.clone())
            };
            Some(Mismatch { address: address.clone(), fields, reason, help })
        };
        let steps = found.steps.iter().filter(|step| step.possible.is_none()).filter_map(|step| {
            let fields = step.changes.iter().map(|change| change.field.to_string()).collect();
            undone(&step.address, fields, None)
        });
        let problems = found.problems.iter();
        let problems = problems
            .filter_map(|found| undone(&found.address, Vec::new(), Some(found.message.clone())));
        let incomplete = found.incomplete.iter();
        let incomplete = incomplete.map(|part| unread(part.address.clone(), part.reason.clone()));
        steps.chain(problems).chain(incomplete).collect()
    }
}

/// The sections of `container` that a step of it, or of a group above, may have undone, each with the
/// first such step.
fn touched<'s>(
    container: &Container,
    deciding: &BTreeMap<String, Vec<&'s Step>>,
) -> BTreeMap<&'static str, &'s Step> {
    let path = container.path.to_lowercase();
    let above = path.rmatch_indices('/').map(|(at, _)| &path[..at]);
    let steps = std::iter::once(&*path).chain(above).filter_map(|path| deciding.get(path));
    let mut touched = BTreeMap::new();
    for step in steps.flatten() {
        let is_above = step.address.path != container.path;
        for section in container.sections.iter().filter(|_| !is_above || !is_creation(step)) {
            if (is_above && (decides(step, section) || takes_along(step, section)))
                || takes_access(step, section)
                || (is_creation(step) && section.unlisted.value == Unlisted::Delete)
            {
                touched.entry(section.of.section).or_insert(*step);
            }
        }
    }
    touched
}

/// Whether `step` creates a container: the service may put something into it.
fn is_creation(step: &Step) -> bool {
    step.address.section.is_none() && step.action == Action::Create
}

/// Whether `step` removes a member of a group whom `section` declares: the service also removes
/// members below it.
fn takes_along(step: &Step, section: &DeclaredSection) -> bool {
    step.action == Action::Delete
        && step.address.section == Some(section.of.section)
        && section.of.removal == Removal::Access
        && section.entries.iter().any(|entry| step.address.entry.as_ref() == Some(&entry.key))
}

/// Whether `step` changes a setting that decides about a declared field of `section`.
fn decides(step: &Step, section: &DeclaredSection) -> bool {
    let of = step.address.section.unwrap_or(settings::KIND.section);
    constraints::all().any(|row| {
        let declares = |name: &String| section.names().any(|declared| declared == name);
        *row.over.section == *section.of.section
            && row.over.field.as_ref().is_some_and(declares)
            && *row.by.section == *of
            && step.changes.iter().any(|change| *change.field == *row.by.field)
    })
}
