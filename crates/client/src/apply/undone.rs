//! Finds what a later step of the same run undid elsewhere: the removal of a member empties the
//! rules that name the member, and a setting of a group replaces those below it.
//!
//! Only what a constraint connects to such a step is read again.

use std::collections::{BTreeMap, HashMap, HashSet};

use futures_util::{StreamExt as _, stream};

use super::{Applied, Apply, Mismatch, MismatchReason, StepOutcome, plan_with_answers};
use crate::{
    address::groups_above,
    catalogue::{constraints, settings},
    cause::Cause,
    desired::{Container, Unlisted},
    diff::{Action, Step},
    field::Scope,
    kind::{CreatedContainers, ReadSource, Removal},
    plan::{Approved, Grantee, PlanSettings, access_loser, grantees},
    steps,
};

impl Apply<'_> {
    /// Finds objects that no longer match although their own step succeeded, or none was needed.
    pub(super) async fn find_undone(
        &self,
        plan: &Approved<'_>,
        applied: &Applied,
        created: CreatedContainers,
    ) -> Vec<Mismatch> {
        let done_steps = applied.steps.iter().filter(|step| step.outcome == StepOutcome::Done);
        let done_addresses: HashSet<_> = done_steps.map(|step| &step.address).collect();
        let undoing = collect_undoing_steps(
            plan.steps().filter(|step| done_addresses.contains(&step.address)),
        );
        let settings = PlanSettings { created, ..self.settings.clone() }.after_run();
        let affected = self.desired.containers.iter().filter_map(|container| {
            let is_compared = plan.covers_container(&container.path) && !container.is_watched;
            let affected = Some(affected_sections(container, &undoing));
            let affected = affected.filter(|affected| is_compared && !affected.is_empty());
            Some(self.reread_affected(container, affected?, &settings))
        });
        let mismatches: Vec<_> =
            stream::iter(affected).buffer_unordered(self.max_containers.max(1)).collect().await;
        let failed = applied.steps.iter().filter(|step| !step.outcome.is_success());
        let reported = applied.mismatches.iter().map(|mismatch| &mismatch.address);
        let reported: HashSet<_> = failed.map(|step| &step.address).chain(reported).collect();
        let mismatches = mismatches.into_iter().flatten();
        mismatches.filter(|mismatch| !reported.contains(&mismatch.address)).collect()
    }

    /// Reads the `affected` sections again, each with the step that may have undone it.
    async fn reread_affected(
        &self,
        container: &Container,
        affected: BTreeMap<&'static str, &Step>,
        settings: &PlanSettings,
    ) -> Vec<Mismatch> {
        let mut part = container.clone();
        part.lifecycle.unlisted_projects = None;
        part.sections.retain(|section| {
            let is_object = matches!(section.section.scoped_kind.place, ReadSource::Object);
            is_object || affected.contains_key(section.section.section)
        });
        let read = async {
            let mut live = self.observer.read_container(&part, None).await?;
            plan_with_answers(self.observer, &part, &mut live, settings).await
        };
        let plan = match read.await {
            Ok(plan) => plan,
            Err(error) => return vec![Mismatch::unread(container.address(), Cause::from(&error))],
        };
        let reasons = affected.iter().map(|(section, step)| {
            let is_new = step.creates_container() && step.address.path == container.path;
            let undone = MismatchReason::Undone(step.address.clone());
            (*section, if is_new { MismatchReason::NotPlanned } else { undone })
        });
        let reasons: BTreeMap<_, _> = reasons.collect();
        let steps = plan.steps.iter().filter(|step| step.possible.is_none());
        let steps = steps.filter_map(|step| {
            Some(Mismatch::new(step, reasons.get(step.address.section?)?.clone()))
        });
        let problems = plan.problems.iter().filter_map(|problem| {
            let (address, help) = (problem.address.clone(), Some(problem.message.clone()));
            let reason = reasons.get(address.section?)?.clone();
            Some(Mismatch { address, fields: Vec::new(), reason, help })
        });
        let incomplete = plan.incomplete.iter();
        let incomplete =
            incomplete.map(|part| Mismatch::unread(part.address.clone(), part.reason.clone()));
        steps.chain(problems).chain(incomplete).collect()
    }
}

/// An effect that a step may undo in its container and below it.
#[derive(PartialEq, Eq, Hash)]
enum UndoneKey<'s> {
    /// Entries that the service adds to a new container.
    DefaultEntries,
    /// Rules that name someone whose access ends.
    GrantsTo(Grantee),
    /// Fields below a group that this field (section, name) overrides.
    OverriddenField(&'s str, &'s str),
    /// The same entry (section, key) below a group: members of a group are also removed below it.
    EntryBelow(&'s str, &'s str),
}

/// The first step that may undo each of these, by the path of its container in lower case.
type UndoingSteps<'s> = HashMap<String, HashMap<UndoneKey<'s>, &'s Step>>;

fn collect_undoing_steps<'s>(steps: impl Iterator<Item = &'s Step>) -> UndoingSteps<'s> {
    let mut undoing = UndoingSteps::new();
    for step in steps {
        let container_steps = undoing.entry(step.address.path.to_lowercase()).or_default();
        let section = step.address.section.unwrap_or(settings::SECTION);
        let mut keys = vec![];
        if step.creates_container() {
            keys.push(UndoneKey::DefaultEntries);
        } else if step.scope == Scope::Group {
            keys.extend(step.changes.iter().map(|c| UndoneKey::OverriddenField(section, &c.field)));
            let removed = step.address.entry.as_ref().filter(|_| step.action == Action::Delete);
            keys.extend(removed.map(|entry| UndoneKey::EntryBelow(section, entry)));
        }
        keys.extend(access_loser(step).map(UndoneKey::GrantsTo));
        for undone in keys {
            container_steps.entry(undone).or_insert(step);
        }
    }
    undoing
}

/// The sections of `container` that a step of it, or of a group above, may have undone, each with
/// the first such step.
fn affected_sections<'s>(
    container: &Container,
    undoing: &UndoingSteps<'s>,
) -> BTreeMap<&'static str, &'s Step> {
    let path = container.path.to_lowercase();
    let paths = std::iter::once(&*path).chain(groups_above(&path));
    let steps: Vec<_> = paths.filter_map(|at| Some((at != path, undoing.get(at)?))).collect();
    let mut affected = BTreeMap::new();
    for section in container.sections.iter().filter(|_| !steps.is_empty()) {
        let section_name = section.section.section;
        let new = (section.unlisted.value == Unlisted::Delete).then_some(UndoneKey::DefaultEntries);
        let grants = grantees(section).map(|grantee| UndoneKey::GrantsTo(grantee.0));
        let anywhere: Vec<_> = new.into_iter().chain(grants).collect();
        let rows = constraints::all_constraints().filter(|row| {
            let field = row.over.field.as_ref().filter(|_| *row.over.section == *section_name);
            field.is_some_and(|field| section.names().any(|name| name == field))
        });
        let decided = rows.map(|row| UndoneKey::OverriddenField(&row.by.section, &row.by.field));
        let is_access = section.section.removal == Removal::Access;
        let entries = section.entries.iter().filter(|_| is_access);
        let entries = entries.map(|entry| UndoneKey::EntryBelow(section_name, &entry.key));
        let below: Vec<_> = decided.chain(entries).collect();
        let step = steps.iter().find_map(|(is_above, undoing)| {
            let below = below.iter().filter(|_| *is_above);
            let anywhere =
                anywhere.iter().filter(|undone| !is_above || **undone != UndoneKey::DefaultEntries);
            below.chain(anywhere).inspect(|_| steps::step()).find_map(|undone| undoing.get(undone))
        });
        affected.extend(step.map(|step| (section_name, *step)));
    }
    affected
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        address::Address,
        desired::testing::{origin, shop},
        kind::Effect,
        steps::grow_in_proportion,
    };

    #[test]
    fn what_many_removals_undo_is_looked_up() {
        grow_in_proportion("members and rules below removals", |n| {
            let removal = |at: usize, path: &str| {
                let entry = format!("gone{at}");
                let address = Address::container(path.into()).section("members").entry(entry);
                let gone = Effect::Access {
                    user: None,
                    before: 30,
                    after: 0,
                    ends: false,
                    lost_role: None,
                };
                let (action, sends) = (Action::Delete, Vec::new());
                let step = Step::new(Scope::Group, address, action, origin(1), Vec::new(), sends);
                Step { effects: vec![gone], ..step }
            };
            let above = (0..n).map(|at| removal(at, "acme"));
            let steps: Vec<_> = above.chain((0..n).map(|at| removal(at, "acme/shop"))).collect();
            let members: Vec<_> = (0..n)
                .map(|at| json!({"username": format!("m{at}"), "access_level": 30}))
                .collect();
            let users: Vec<_> = (0..n).map(|at| json!({"user": format!("m{at}")})).collect();
            let rule = json!({"name": "main", "allowed_to_push": users});
            let sections = json!({"members": members, "protected_branches": [rule]});
            let container = shop(&sections, Unlisted::Ignore);
            assert!(affected_sections(&container, &collect_undoing_steps(steps.iter())).is_empty());
        });
    }
}
