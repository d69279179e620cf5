//! Verifies that edited manifests declare the goals, and otherwise the same as before.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Mode, Refusal,
    drift::{EXTRA, Goal, GoalChange},
};
use crate::{
    catalogue,
    desired::{Container, Desired, ITSELF, SECTION, State, Values, meaning, state_of},
    kind::{Section, forms},
    value::{Json, Object, Value},
};

/// Whether `desired` declares the entry of `goal` as present.
pub(super) fn declares(desired: &Desired, goal: &Goal) -> bool {
    let container =
        desired.containers.iter().find(|container| container.path == goal.container.path);
    let entry = container.and_then(|container| container.entry(goal.section, &goal.key));
    entry.is_some_and(|entry| entry.state == State::Present)
}

/// Returns the groups and projects whose declarations change without a goal for them.
///
/// # Errors
/// The goals that the new manifests do not declare, or exceed. If only the
/// container's own document may be edited, also a change in another container.
pub(super) fn check(
    before: &Desired,
    after: &Desired,
    goals: &[Goal],
    mode: Mode,
) -> Result<BTreeSet<String>, Vec<Refusal>> {
    let (mut others, mut refused) = (BTreeSet::new(), Vec::new());
    let new: BTreeMap<_, _> =
        after.containers.iter().map(|container| (&container.path, container)).collect();
    for container in &before.containers {
        let container_goals: Vec<_> =
            goals.iter().filter(|goal| goal.container.path == container.path).collect();
        let after = new.get(&container.path).map(|container| meaning(container));
        let mut after = after.unwrap_or_default();
        let mut expected = meaning(container);
        for goal in &container_goals {
            if !apply_goal(goal, container, &mut expected, &mut after) {
                let reason =
                    "the edited manifest would not declare the live state; edit it by hand";
                refused.push(Refusal::new(&goal.address, reason));
            }
        }
        if expected == after {
            continue;
        }
        let first = expected.iter().find(|(slot, value)| after.get(*slot) != Some(value));
        let first = first.or_else(|| after.iter().find(|(slot, _)| !expected.contains_key(*slot)));
        let section = first.map_or(ITSELF, |((section, ..), _)| section);
        match container_goals
            .first()
            .copied()
            .or_else(|| goals.first().filter(|_| mode == Mode::Own))
        {
            Some(goal) => {
                let changed = match section {
                    ITSELF => container.path.to_string(),
                    section => container.address().section(section).to_string(),
                };
                let reason = format!(
                    "the edit would also change the declaration of `{changed}`; edit it by hand"
                );
                refused.push(Refusal::new(&goal.address, reason));
            }
            None => drop(others.insert(container.path.to_string())),
        }
    }
    if refused.is_empty() { Ok(others) } else { Err(refused) }
}

/// Adds the result of `goal` to `expected`. If several results fulfil it, removes the actual one
/// from both instead. Returns whether it is fulfilled, if that is known then.
fn apply_goal(
    goal: &Goal,
    container: &Container,
    expected: &mut Values,
    after: &mut Values,
) -> bool {
    let slot = |key: &str, field: &str| (goal.section, key.to_owned(), field.to_owned());
    let Some(of) = catalogue::section(container.scope, goal.section) else { return false };
    // A new section is managed from now on.
    let whole = slot(SECTION, ITSELF);
    if let (false, Some(policy)) = (expected.contains_key(&whole), after.get(&whole)) {
        expected.insert(whole, policy.clone());
    }
    let is_of_entry =
        |(section, key, _): &(&str, String, String)| (*section, key) == (goal.section, &goal.key);
    match &goal.what {
        GoalChange::Fields(fields) => {
            let state = slot(&goal.key, ITSELF);
            expected.entry(state).or_insert_with(|| state_of(State::Present));
            for (names, value) in fields {
                let names = names.strip_prefix(&[EXTRA.to_owned()]).unwrap_or(names);
                let Some((name, within)) = names.split_first() else { continue };
                let field =
                    expected.entry(slot(&goal.key, name)).or_insert(Value::Plain(Json::Null));
                set_value(of, name, field, within, value);
            }
            true
        }
        GoalChange::Gone => {
            let state = after.get(&slot(&goal.key, ITSELF)).cloned();
            expected.retain(|slot, _| !is_of_entry(slot));
            after.retain(|slot, _| !is_of_entry(slot));
            state.is_none_or(|state| state == state_of(State::Absent))
        }
        GoalChange::Entry(fields, _) => {
            let mut wanted: BTreeMap<String, Value> = BTreeMap::new();
            for (names, value) in fields {
                let Some((name, within)) = names.split_first() else { continue };
                let field = wanted.entry(name.clone()).or_insert(Value::Plain(Json::Null));
                set_value(of, name, field, within, value);
            }
            let slots: Vec<_> = after.keys().filter(|slot| is_of_entry(slot)).cloned().collect();
            let mut declared: BTreeMap<String, Value> = slots
                .iter()
                .filter_map(|slot| Some((slot.2.clone(), after.remove(slot)?)))
                .collect();
            expected.retain(|slot, _| !is_of_entry(slot));
            let is_there = declared.remove(ITSELF) == Some(state_of(State::Present));
            declared.retain(|name, _| wanted.contains_key(name) || !of.identity.contains(&&**name));
            is_there && declared == wanted
        }
    }
}

/// Sets the value below the keys `within` in `field`, the field `name` of `section`.
fn set_value(section: Section, name: &str, field: &mut Value, within: &[String], value: &Json) {
    let Value::Plain(json) = field else {
        *field = Value::Plain(value.clone());
        return;
    };
    let mut json = json;
    for key in within {
        if !json.is_object() {
            *json = Json::Object(Object::new());
        }
        json = &mut json[key.as_str()];
    }
    *json = value.clone();
    if let Some(spec) = section.table().get(name) {
        forms::normalise(spec, field);
    }
}
