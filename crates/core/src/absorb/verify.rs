//! Verifies that the edited manifests declare the goals, and that nothing else changed.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    AbsorbMode, AbsorbRefusal,
    goal::{EXTRA_KEY, FieldValues, Goal, GoalChange},
};
use crate::{
    desired::{
        DeclaredValues, Desired, EntryPresence, SECTION_KEY, WHOLE_KEY, declared_values,
        state_value,
    },
    kind::{Section, forms},
    value::{self, Fields, Json, Value},
};

/// True if `desired` declares the entry of `goal` as present.
pub(super) fn declares_goal_entry(desired: &Desired, goal: &Goal) -> bool {
    let container = desired.container(&goal.address.path);
    let entry = container.and_then(|container| container.entry(goal.section.section, &goal.key));
    entry.is_some_and(|entry| entry.state == EntryPresence::Present)
}

/// Returns the paths of the groups and projects that have no goal but whose declarations change
/// too.
///
/// # Errors
/// Refusals for goals that the edited manifests do not declare, and for goals whose edit changes more
/// than the goal. With [`AbsorbMode::OwnDocument`], also if declarations of other containers change.
pub(super) fn check_goals(
    before: &Desired,
    after: &Desired,
    goals: &[Goal],
    mode: AbsorbMode,
) -> Result<BTreeSet<String>, Vec<AbsorbRefusal>> {
    let (mut other_containers, mut refusals) = (BTreeSet::new(), Vec::new());
    let mut goals_by_path: BTreeMap<&str, Vec<&Goal>> = BTreeMap::new();
    for goal in goals {
        goals_by_path.entry(&goal.address.path).or_default().push(goal);
    }
    for container in &before.containers {
        let container_goals = goals_by_path.get(&*container.path).map_or(&[][..], Vec::as_slice);
        let mut expected = declared_values(container);
        let mut actual = after.container(&container.path).map(declared_values).unwrap_or_default();
        for goal in container_goals {
            if !apply_goal(goal, &mut expected, &mut actual) {
                let reason =
                    "the edited manifest would not declare the live state; edit it by hand";
                refusals.push(AbsorbRefusal::new(&goal.address, reason));
            }
        }
        if expected == actual {
            continue;
        }
        let goal = container_goals.first().copied();
        let Some(goal) = goal.or_else(|| goals.first().filter(|_| mode == AbsorbMode::OwnDocument))
        else {
            other_containers.insert(container.path.to_string());
            continue;
        };
        let section = find_differing_section(&expected, &actual);
        let changed_address = match section.or_else(|| find_differing_section(&actual, &expected)) {
            None | Some(WHOLE_KEY) => container.address(),
            Some(section) => container.address().with_section(section),
        };
        let reason = format!(
            "the edit would also change the declaration of `{changed_address}`; edit it by hand"
        );
        refusals.push(AbsorbRefusal::new(&goal.address, reason));
    }
    if refusals.is_empty() { Ok(other_containers) } else { Err(refusals) }
}

/// The section of the first value in `values` that `other_values` lack.
fn find_differing_section(
    values: &DeclaredValues,
    other_values: &DeclaredValues,
) -> Option<&'static str> {
    let differing_entry = values.iter().find(|(entry, fields)| {
        let other_fields = other_values.get(*entry);
        let mut fields = fields.iter();
        fields.any(|(name, value)| other_fields.and_then(|other| other.get(name)) != Some(value))
    });
    differing_entry.map(|((section, _), _)| *section)
}

/// Adds the result of `goal` to `expected`. If more than one result is valid, checks the entry in
/// `actual` instead, and removes it from `expected` and `actual`. Returns false if the entry in
/// `actual` is not a valid result.
fn apply_goal(goal: &Goal, expected: &mut DeclaredValues, actual: &mut DeclaredValues) -> bool {
    let section = goal.section;
    // If the goal adds a section, expect its default policy too.
    let section_policy = (section.section, SECTION_KEY.to_owned());
    if let (false, Some(policy)) =
        (expected.contains_key(&section_policy), actual.get(&section_policy))
    {
        expected.insert(section_policy, policy.clone());
    }
    let entry_key = (section.section, goal.key.clone());
    match &goal.change {
        GoalChange::SetFields(values) => {
            let present_fields =
                Fields::from([(WHOLE_KEY.to_owned(), state_value(EntryPresence::Present))]);
            set_fields(section, expected.entry(entry_key).or_insert(present_fields), values);
            true
        }
        GoalChange::RemoveEntry => {
            expected.remove(&entry_key);
            let state = actual.remove(&entry_key).and_then(|mut fields| fields.remove(WHOLE_KEY));
            state.is_none_or(|state| state == state_value(EntryPresence::Absent))
        }
        GoalChange::DeclareEntry(values, _) => {
            let mut goal_fields = Fields::new();
            set_fields(section, &mut goal_fields, values);
            expected.remove(&entry_key);
            let mut declared_fields = actual.remove(&entry_key).unwrap_or_default();
            let is_present =
                declared_fields.remove(WHOLE_KEY) == Some(state_value(EntryPresence::Present));
            declared_fields.retain(|name, _| {
                goal_fields.contains_key(name) || !section.identity.contains(&name)
            });
            is_present && declared_fields == goal_fields
        }
    }
}

/// Sets `values` in the `fields` of an entry of `section`. The first key of a value is the field.
/// Further keys are inside the field.
fn set_fields(section: Section, fields: &mut Fields, values: &FieldValues) {
    for (keys, value) in values {
        let keys = keys.strip_prefix(&[EXTRA_KEY.to_owned()]).unwrap_or(keys);
        let Some((name, inner_keys)) = keys.split_first() else { continue };
        let mut field = fields.remove(name).unwrap_or(Value::Plain(Json::Null));
        if let Value::Plain(json) = &mut field {
            value::set_nested(json, inner_keys, value.clone());
            if let Some(spec) = section.spec(name) {
                forms::normalize_spelling(spec, &mut field);
            }
        } else {
            field = Value::Plain(value.clone());
        }
        fields.insert(name.clone(), field);
    }
}
