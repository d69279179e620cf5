//! Compares a saved plan with a new plan. Finds the containers that apply may change as saved, and
//! the changes since the plan was saved.
//!
//! The plans agree on a group or project if its declaration is unchanged and all its new steps were
//! saved. A saved step may be missing from the new plan if its object was read completely.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    PlanRecorder, SavedPlan, content,
    form::{Declaration, SavedCall, SavedChange, SavedStep, Sent},
};
use crate::{
    address::Address,
    desired::Container,
    diff::{Action, Shown},
    operation::placeholder_path,
    plan::Plan,
    text::list_names,
    value::Json,
};

/// The comparison of a saved plan with a new one.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct PlanComparison {
    /// The id of the saved plan.
    pub id: String,
    /// Saved steps that are no longer needed, because somebody already made these changes.
    pub already: Vec<Address>,
    /// The changes since the plan was saved.
    pub stale: Vec<StaleObject>,
    /// The groups and projects whose new steps were all saved.
    #[serde(skip)]
    pub(in crate::plan) agreed_paths: BTreeSet<Arc<str>>,
}

/// A change since a plan was saved.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StaleObject {
    /// The object, or the group or project as a whole.
    pub address: Address,
    /// The change, as a message.
    pub reason: String,
    /// The fields that would change in another way than the saved plan shows.
    pub fields: Vec<FieldDifference>,
}

/// A field that would change in another way than the saved plan shows.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FieldDifference {
    /// The name of the field in the manifest.
    pub field: String,
    /// The saved change; absent if the saved plan does not change the field.
    pub saved: Option<ChangeSides>,
    /// The new change; absent if the new plan does not change the field.
    pub now: Option<ChangeSides>,
}

/// The two sides of a change.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ChangeSides {
    /// The live value.
    pub before: Shown,
    /// The declared value.
    pub after: Shown,
}

impl SavedPlan {
    /// Compares the saved plan with `plan`, which was made now for `containers`. `plan` needs
    /// [`Plan::with_container_plans`]; `id` is the id of the file.
    pub fn compare(
        &self,
        id: &str,
        plan: &Plan,
        containers: &[Container],
        recorder: PlanRecorder<'_>,
    ) -> PlanComparison {
        let (steps, _) = content::record_all(&plan.steps, &[], recorder);
        let declarations =
            containers.iter().map(|container| recorder.record_declaration(container));
        let declarations_by_path: BTreeMap<_, _> = declarations
            .map(|declaration| ((declaration.scope, declaration.path.clone()), declaration))
            .collect();
        let mut comparison = PlanComparison { id: id.to_owned(), ..PlanComparison::default() };
        for saved_container in &self.containers {
            let container_key = (saved_container.scope, saved_container.path.clone());
            let current = declarations_by_path.get(&container_key);
            let mut stale_objects = Vec::from_iter(declaration_change(saved_container, current));
            for step in steps.iter().filter(|step| *step.path == *saved_container.path) {
                let saved_step = self.steps.iter().find(|saved| saved.has_same_object(step));
                // The steps of the new plan have known sections, so this conversion does not fail.
                let Ok(current_step) = step.to_step() else { continue };
                if let Some((reason, fields)) = excess_reason(saved_step, step) {
                    stale_objects.push(StaleObject {
                        address: current_step.address,
                        reason,
                        fields,
                    });
                }
            }
            for saved_step in self.steps.iter().filter(|step| *step.path == *saved_container.path) {
                if steps.iter().any(|step| step.has_same_object(saved_step)) {
                    continue;
                }
                let Ok(shown_step) = saved_step.to_step() else { continue };
                let Some(cause) = plan.unconfirmed_cause(&shown_step) else {
                    comparison.already.push(shown_step.address);
                    continue;
                };
                let reason = format!("cannot tell whether this is still needed: {cause}");
                stale_objects.push(StaleObject {
                    address: shown_step.address,
                    reason,
                    fields: Vec::new(),
                });
            }
            if stale_objects.is_empty() {
                comparison.agreed_paths.insert(saved_container.path.as_str().into());
            }
            comparison.stale.extend(stale_objects);
        }
        comparison
    }
}

/// The change from the declaration `saved` to the declaration `current`; `None` if they are equal.
fn declaration_change(saved: &Declaration, current: Option<&Declaration>) -> Option<StaleObject> {
    let reason = match current {
        Some(declaration) if declaration.declared == saved.declared => return None,
        Some(_) => "its manifests have changed",
        None => "no manifest declares it any more",
    };
    let address = Address::container(saved.path.as_str().into());
    Some(StaleObject { address, reason: reason.to_owned(), fields: Vec::new() })
}

/// The reason why `new_step` does more than the step `saved`, with the fields that differ. `None`
/// if `new_step` does no more.
fn excess_reason(
    saved: Option<&SavedStep>,
    new_step: &SavedStep,
) -> Option<(String, Vec<FieldDifference>)> {
    let Some(saved) = saved else {
        let fields = new_step.changes.iter().map(|change| new_difference(None, change)).collect();
        return Some((format!("the saved plan does not {} it", action_verb(new_step)), fields));
    };
    if saved.possible {
        let is_other_action = !new_step.replaces && new_step.action != saved.action;
        let fields = differing_changes(saved, new_step, |saved, new| saved.after == new.after);
        let is_covered = new_step.action != Action::Delete
            && (new_step.replaces == saved.replaces || is_other_action)
            && fields.is_empty();
        return (!is_covered)
            .then(|| ("it would change more than the saved plan shows".to_owned(), fields));
    }
    if (new_step.action, new_step.replaces) != (saved.action, saved.replaces) {
        let (new_verb, saved_verb) = (action_verb(new_step), action_verb(saved));
        let fields = differing_changes(saved, new_step, SavedChange::is_same_change);
        return Some((format!("the plan would {new_verb} it now, not {saved_verb} it"), fields));
    }
    if new_step.possible {
        return Some(("the live state can no longer be read".to_owned(), Vec::new()));
    }
    let fields = differing_changes(saved, new_step, SavedChange::is_same_change);
    if !fields.is_empty() {
        return Some(("it changed since the plan was saved".to_owned(), fields));
    }
    let call_excess = new_step.calls.iter().find_map(|call| call.excess_reason(&saved.calls))?;
    Some((call_excess, Vec::new()))
}

/// The action as a verb.
const fn action_verb(step: &SavedStep) -> &'static str {
    match (step.action, step.replaces) {
        (_, true) => "replace",
        (Action::Create, _) => "create",
        (Action::Update, _) => "change",
        (Action::Delete, _) => "remove",
    }
}

/// The changes of `new_step` that `saved` does not contain.
fn differing_changes(
    saved: &SavedStep,
    new_step: &SavedStep,
    is_equal: impl Fn(&SavedChange, &SavedChange) -> bool,
) -> Vec<FieldDifference> {
    let changes = new_step.changes.iter().map(|change| (saved.change(&change.field), change));
    let differing = changes.filter(|(saved, new)| !saved.is_some_and(|saved| is_equal(saved, new)));
    differing.map(|(saved, now)| new_difference(saved, now)).collect()
}

fn new_difference(saved: Option<&SavedChange>, new_change: &SavedChange) -> FieldDifference {
    let change_sides = |SavedChange { before, after, .. }: &SavedChange| ChangeSides {
        before: before.clone(),
        after: after.clone(),
    };
    let (saved, now) = (saved.map(change_sides), Some(change_sides(new_change)));
    FieldDifference { field: new_change.field.clone(), saved, now }
}

impl SavedStep {
    /// True if both steps concern the same object.
    fn has_same_object(&self, other: &Self) -> bool {
        (self.scope, &self.path, &self.section, &self.entry)
            == (other.scope, &other.path, &other.section, &other.entry)
    }

    fn change(&self, field: &str) -> Option<&SavedChange> {
        self.changes.iter().find(|change| change.field == field)
    }
}

impl SavedChange {
    /// True if `new_change` is the same change of the same live value.
    fn is_same_change(&self, new_change: &Self) -> bool {
        self.before == new_change.before
            && self.after == new_change.after
            && is_same_digest(self.found.as_ref(), new_change.found.as_ref())
    }
}

/// True if two digests are equal, or one is missing.
fn is_same_digest(saved: Option<&String>, new: Option<&String>) -> bool {
    saved.zip(new).is_none_or(|(saved, now)| saved == now)
}

impl SavedCall {
    /// The reason why no call in `saved` equals this new call; `None` if a saved call is equal.
    fn excess_reason(&self, saved: &[Self]) -> Option<String> {
        let differing_names: Vec<Vec<&str>> = saved
            .iter()
            .filter(|saved| {
                saved.operation == self.operation
                    && (saved.restores, saved.undoes, saved.awaits)
                        == (self.restores, self.undoes, self.awaits)
                    && is_same_path(&saved.path, &self.path)
            })
            .map(|saved| self.differing_fields(saved))
            .collect();
        match differing_names.into_iter().min_by_key(Vec::len) {
            None => Some(format!("the call `{}` would have another path", self.operation)),
            Some(names) if names.is_empty() => None,
            Some(names) => Some(format!("its call sends other values in {}", list_names(&names))),
        }
    }

    /// The fields of the body that differ in `saved`.
    fn differing_fields(&self, saved: &Self) -> Vec<&str> {
        let differing_fields =
            self.body.iter().filter(|(name, new)| match (saved.body.get(*name), new) {
                (Some(Sent::Value(saved)), Sent::Value(now)) => !is_same_value(saved, now),
                (Some(Sent::AsItIs(saved)), Sent::AsItIs(now)) => {
                    !is_same_digest(saved.as_ref(), now.as_ref())
                }
                (saved, now) => saved != Some(now),
            });
        differing_fields.map(|(name, _)| name.as_str()).collect()
    }
}

/// True if two request paths lead to the same object. If the object did not exist when the plan was
/// saved, the saved path contains the object's own path instead of its id.
fn is_same_path(saved: &str, new: &str) -> bool {
    let is_id = |segment: &str| segment.bytes().all(|byte| byte.is_ascii_digit());
    saved.split('/').count() == new.split('/').count()
        && saved.split('/').zip(new.split('/')).enumerate().all(|(index, (saved, now))| {
            saved == now || (index == 2 && !is_id(saved) && is_id(now))
        })
}

/// True if two values are equal. An id that was not known when the plan was saved equals every
/// number.
fn is_same_value(saved: &Json, new: &Json) -> bool {
    match (saved, new) {
        (saved, Json::Number(_)) if placeholder_path(saved).is_some() => true,
        (Json::Array(saved), Json::Array(now)) => {
            saved.len() == now.len()
                && saved.iter().zip(now).all(|(saved, now)| is_same_value(saved, now))
        }
        (Json::Object(saved), Json::Object(now)) => {
            saved.len() == now.len()
                && now.iter().all(|(name, now)| {
                    saved.get(name).is_some_and(|saved| is_same_value(saved, now))
                })
        }
        _ => saved == new,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::operation::id_placeholder;

    /// A step with one change, to `after`.
    fn step(action: &str, replaces: bool, possible: bool, after: &str) -> SavedStep {
        serde_json::from_value(json!({
            "scope": "project", "path": "acme/shop", "section": "settings", "action": action,
            "replaces": replaces, "possible": possible,
            "origin": {"file": "a.yaml", "line": 1, "column": 1, "layer": "project"},
            "changes": [{"field": "description", "before": Shown::Absent, "after": Shown::Value(after.into())}],
            "calls": [],
        }))
        .unwrap()
    }

    /// A new step may do at most what the saved step does. If the saved step is certain, the new
    /// step must be the same. If the saved step is possible, the new step may do less, as an edit
    /// or a creation, and must never remove the object.
    #[test]
    fn a_step_that_exceeds_the_saved_one_is_stale() {
        let all_forms = || {
            let actions = ["create", "update", "delete"].into_iter();
            let kinds = actions.flat_map(|action| [(action, false), (action, true)]);
            kinds.flat_map(|(action, replaces)| {
                [(action, replaces, false), (action, replaces, true)]
            })
        };
        for saved_form in all_forms() {
            for new_form in all_forms() {
                for after in ["b", "c"] {
                    let (action, replaces, possible) = new_form;
                    let excess = excess_reason(
                        Some(&step(saved_form.0, saved_form.1, saved_form.2, "b")),
                        &step(action, replaces, possible, after),
                    );
                    let is_within = after == "b"
                        && if saved_form.2 {
                            action != "delete"
                                && (replaces == saved_form.1 || !replaces && action != saved_form.0)
                        } else {
                            (action, replaces) == (saved_form.0, saved_form.1) && !possible
                        };
                    assert_eq!(excess.is_none(), is_within, "{saved_form:?} {new_form:?} {after}");
                }
            }
        }
        assert!(excess_reason(None, &step("update", false, false, "b")).is_some());
    }

    #[test]
    fn a_pending_id_matches_the_id_of_the_created_object() {
        for (saved, new, is_same) in [
            ("/projects/7/hooks", "/projects/7/hooks", true),
            ("/projects/acme%2Fshop/hooks", "/projects/7/hooks", true),
            ("/projects/7/hooks", "/projects/8/hooks", false),
            ("/projects/7/hooks", "/projects/acme%2Fshop/hooks", false),
            ("/projects/acme%2Fshop/hooks", "/projects/acme%2Fsite/hooks", false),
            ("/projects/7/hooks/a", "/projects/7/hooks/4", false),
            ("/projects/7/hooks", "/projects/7/hooks/4", false),
            ("/projects/7/hooks/4", "/projects/7/hooks", false),
            ("/projects", "/projects", true),
        ] {
            assert_eq!(is_same_path(saved, new), is_same, "{saved} {new}");
        }
        let pending_id = || id_placeholder("acme/neo");
        for (saved, now, is_same) in [
            (pending_id(), json!(7), true),
            (pending_id(), pending_id(), true),
            (pending_id(), json!("7"), false),
            (json!(7), pending_id(), false),
            (json!([{"group_id": pending_id()}]), json!([{"group_id": 7}]), true),
            (json!([{"group_id": pending_id()}]), json!([{"group_id": 7, "more": 1}]), false),
            (json!([1]), json!([1, 2]), false),
            (json!([1]), json!([2]), false),
        ] {
            assert_eq!(is_same_value(&saved, &now), is_same, "{saved} {now}");
        }
    }
}
