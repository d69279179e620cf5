//! Finds effects that a later step of the same run undid elsewhere. For example, the removal of a
//! member empties the rules that name the member, and a setting of a group overrides settings below
//! the group.
//!
//! Only sections that a constraint connects to a step of the run are read again.

use std::collections::{BTreeMap, HashMap, HashSet};

use futures_util::{StreamExt as _, stream};

use super::{Apply, ApplyResult, Mismatch, MismatchReason, StepOutcome, plan_with_extra_facts};
use crate::{
    address::groups_above,
    catalogue::{constraints, settings},
    cause::Cause,
    desired::{Container, EntryPresence, Unlisted},
    diff::Step,
    field::Scope,
    kind::{CreatedContainers, ReadSource},
    plan::{ApprovedPlan, Grantee, PlanSettings, grantee_losing_access, grantees},
    steps,
};

impl Apply<'_> {
    /// Finds objects that no longer match, although their own step succeeded or they needed no
    /// step.
    pub(super) async fn find_undone_effects(
        &self,
        plan: &ApprovedPlan<'_>,
        apply_result: &ApplyResult,
        created_containers: CreatedContainers,
    ) -> Vec<Mismatch> {
        let done_steps = apply_result.steps.iter().filter(|step| step.outcome == StepOutcome::Done);
        let done_addresses: HashSet<_> = done_steps.map(|step| &step.address).collect();
        let undoing_steps = collect_undoing_steps(
            plan.steps().filter(|step| done_addresses.contains(&step.address)),
        );
        let settings =
            PlanSettings { creatable_containers: created_containers, ..self.settings.clone() }
                .for_plan_after_run();
        let rereads = self.desired.containers.iter().filter_map(|container| {
            let is_compared = plan.covers_container(&container.path) && !container.is_watched;
            let sections = Some(affected_sections(container, &undoing_steps));
            let sections = sections.filter(|sections| is_compared && !sections.is_empty());
            Some(self.find_section_mismatches(container, sections?, &settings))
        });
        let mismatch_lists: Vec<_> =
            stream::iter(rereads).buffer_unordered(self.max_containers.max(1)).collect().await;
        let failed_steps = apply_result.steps.iter().filter(|step| !step.outcome.is_success());
        let mismatch_addresses = apply_result.mismatches.iter().map(|mismatch| &mismatch.address);
        let reported_addresses: HashSet<_> =
            failed_steps.map(|step| &step.address).chain(mismatch_addresses).collect();
        let mismatches = mismatch_lists.into_iter().flatten();
        mismatches.filter(|mismatch| !reported_addresses.contains(&mismatch.address)).collect()
    }

    /// Reads the sections that are keys of `undoing_steps` again, and returns their mismatches. The
    /// value of a section is the step that may have undone an effect in this section.
    async fn find_section_mismatches(
        &self,
        container: &Container,
        undoing_steps: BTreeMap<&'static str, &Step>,
        settings: &PlanSettings,
    ) -> Vec<Mismatch> {
        let mut reread_container = container.clone();
        reread_container.lifecycle.unlisted_projects = None;
        reread_container.sections.retain(|section| {
            let is_object = matches!(section.kind.scoped_kind.read_source, ReadSource::Object);
            is_object || undoing_steps.contains_key(section.kind.section)
        });
        let read_and_plan = async {
            let mut live = self.observer.read_container(&reread_container, None).await?;
            plan_with_extra_facts(self.observer, &reread_container, &mut live, settings).await
        };
        let plan = match read_and_plan.await {
            Ok(plan) => plan,
            Err(error) => {
                return vec![Mismatch::unreadable(container.address(), Cause::from(&error))];
            }
        };
        let reasons = undoing_steps.iter().map(|(section, step)| {
            let is_new = step.creates_container() && step.address.path == container.path;
            let undone_reason = MismatchReason::Undone(step.address.clone());
            (*section, if is_new { MismatchReason::NotPlanned } else { undone_reason })
        });
        let reasons: BTreeMap<_, _> = reasons.collect();
        let certain_steps = plan.steps.iter().filter(|step| step.possible.is_none());
        let step_mismatches = certain_steps.filter_map(|step| {
            Some(Mismatch::new(step, reasons.get(step.address.section?)?.clone()))
        });
        let problems = plan.problems.iter().map(|problem| (&problem.address, &*problem.message));
        let failing_notes = plan.notes.iter().filter(|note| note.reason.is_difference());
        let unlisted = failing_notes.map(|note| (&note.address, "not in any manifest"));
        let problem_mismatches = problems.chain(unlisted).filter_map(|(address, help)| {
            let reason = reasons.get(address.section?)?.clone();
            let (address, help) = (address.clone(), Some(help.to_owned()));
            Some(Mismatch { address, fields: Vec::new(), reason, help })
        });
        let incomplete_scopes = plan.incomplete.iter();
        let unreadable_scopes = incomplete_scopes
            .map(|scope| Mismatch::unreadable(scope.address.clone(), scope.reason.clone()));
        step_mismatches.chain(problem_mismatches).chain(unreadable_scopes).collect()
    }
}

/// An effect that a step may undo, in the container of the step or below.
#[derive(PartialEq, Eq, Hash)]
enum UndoableEffect<'s> {
    /// Entries that the service adds to a new container, or that the container inherits.
    DefaultEntries,
    /// Fields that a group above may override, after a move into another group.
    InheritedFields,
    /// Rules that name someone whose access ends.
    GrantsTo(Grantee),
    /// Fields below a group that a field of the group overrides. Contains the section and the name
    /// of the group's field.
    OverriddenField(&'s str, &'s str),
}

/// For each container, by its path in lower case: the effects that its steps may undo, each with
/// the first of these steps.
type UndoingSteps<'s> = HashMap<String, HashMap<UndoableEffect<'s>, &'s Step>>;

fn collect_undoing_steps<'s>(steps: impl Iterator<Item = &'s Step>) -> UndoingSteps<'s> {
    let mut undoing_steps = UndoingSteps::new();
    for step in steps {
        let container_steps = undoing_steps.entry(step.address.path.to_lowercase()).or_default();
        let section = step.address.section.unwrap_or(settings::SECTION);
        let mut effects = vec![];
        if step.creates_container() {
            effects.push(UndoableEffect::DefaultEntries);
        } else if step.scope == Scope::Group {
            effects.extend(
                step.changes
                    .iter()
                    .map(|change| UndoableEffect::OverriddenField(section, &change.field)),
            );
        }
        let is_moved_into_group = step.former_path().is_some();
        effects.extend(is_moved_into_group.then_some(UndoableEffect::InheritedFields));
        effects.extend(grantee_losing_access(step).map(UndoableEffect::GrantsTo));
        for effect in effects {
            container_steps.entry(effect).or_insert(step);
        }
    }
    undoing_steps
}

/// The sections of `container` that a step of the container or of a group above may have undone.
/// The value of each section is the first step that may have undone it.
fn affected_sections<'s>(
    container: &Container,
    undoing_steps: &UndoingSteps<'s>,
) -> BTreeMap<&'static str, &'s Step> {
    let path = container.path.to_lowercase();
    let paths = std::iter::once(&*path).chain(groups_above(&path));
    let steps_by_ancestor: Vec<_> = paths
        .filter_map(|ancestor| Some((ancestor != path, undoing_steps.get(ancestor)?)))
        .collect();
    let mut steps_by_section = BTreeMap::new();
    for section in container.sections.iter().filter(|_| !steps_by_ancestor.is_empty()) {
        let section_name = section.kind.section;
        let mut entries = section.entries.iter();
        let refuses_entries = matches!(section.unlisted.value, Unlisted::Delete | Unlisted::Fail)
            || entries.any(|entry| entry.state == EntryPresence::Absent);
        let default_entries = refuses_entries.then_some(UndoableEffect::DefaultEntries);
        let grants = grantees(section).map(|grantee| UndoableEffect::GrantsTo(grantee.0));
        let constraints = constraints::all_constraints().filter(|row| {
            let field = row
                .constrained
                .field
                .as_ref()
                .filter(|_| *row.constrained.section == *section_name);
            field.is_some_and(|field| section.field_names().any(|name| name == field))
        });
        let overridden_fields: Vec<_> = constraints
            .map(|row| {
                UndoableEffect::OverriddenField(
                    &row.group_setting.section,
                    &row.group_setting.field,
                )
            })
            .collect();
        let inherited_fields =
            (!overridden_fields.is_empty()).then_some(UndoableEffect::InheritedFields);
        let other_effects: Vec<_> =
            default_entries.into_iter().chain(inherited_fields).chain(grants).collect();
        let step = steps_by_ancestor.iter().find_map(|(is_above, steps_by_key)| {
            let overrides_from_above = overridden_fields.iter().filter(|_| *is_above);
            let applicable_effects = other_effects
                .iter()
                .filter(|key| !is_above || **key != UndoableEffect::DefaultEntries);
            overrides_from_above
                .chain(applicable_effects)
                .inspect(|_| steps::count_step())
                .find_map(|key| steps_by_key.get(key))
        });
        steps_by_section.extend(step.map(|step| (section_name, *step)));
    }
    steps_by_section
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        address::Address,
        desired::testing::{origin, shop},
        diff::Action,
        kind::Effect,
        steps::assert_linear_growth,
    };

    #[test]
    fn the_search_grows_in_proportion_to_removals() {
        assert_linear_growth("members and rules below removals", |n| {
            let removal_step = |index: usize, path: &str| {
                let entry = format!("gone{index}");
                let address =
                    Address::container(path.into()).with_section("members").with_entry(entry);
                let access_loss = Effect::Access {
                    user_id: None,
                    before: 30,
                    after: 0,
                    inherited_level: 0,
                    memberships_above: Vec::new(),
                    gets_end_date: false,
                    lost_role: None,
                };
                let (action, calls) = (Action::Delete, Vec::new());
                let step = Step::new(Scope::Group, address, action, origin(1), Vec::new(), calls);
                Step { effects: vec![access_loss], ..step }
            };
            let group_removals = (0..n).map(|at| removal_step(at, "acme"));
            let steps: Vec<_> =
                group_removals.chain((0..n).map(|at| removal_step(at, "acme/shop"))).collect();
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
