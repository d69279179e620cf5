//! Decides the outcome of a write whose response was lost, from a new plan of the current live
//! state.
//!
//! After a create without a response, the run reads the live state again 2, 5, 15, 35 and 75
//! seconds after the sending began ([`REREAD_DELAYS`]). The service ends every request before the
//! last reading, so an object that the last reading does not find will never appear. Then the run
//! sends the create once more. If the service enforces that the object is unique, the run sends the
//! create again after the first reading. Only one of the two creates can succeed. A create that
//! must never be sent twice is not sent again, and fails if the last reading does not find its
//! object.

use std::time::Duration;

use super::find_step;
use crate::{
    api::WRITE_TIMEOUT,
    catalogue,
    cause::Cause,
    diff::{Action, FieldChange, Step},
    field::Scope,
    kind::Section,
    operation::{Request, RetrySafety, Write},
    plan::ContainerPlan,
    planted::Bug,
    text,
};

/// The times of the readings after a write without a response, counted from the sending of the
/// write. Usually the service has finished the write before the first reading.
pub const REREAD_DELAYS: [Duration; 5] = [
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(15),
    Duration::from_secs(35),
    WRITE_TIMEOUT,
];

/// The state of one call of a step, according to a new plan.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CallState {
    /// The service executed the call.
    Applied,
    /// The service has not executed the call so far.
    NotApplied,
    /// The live state is neither the old state nor the sent state.
    Unexpected,
    /// The state cannot be determined.
    Unknown(Cause),
}

/// Determines the state of the call `index` of `step`, in a container of `scope`, from the new `plan`.
pub(super) fn determine_call_state(
    scope: Scope,
    step: &Step,
    index: usize,
    plan: &ContainerPlan,
) -> CallState {
    let creates_container = step.creates_container();
    // The container exists: the service is importing its contents.
    if creates_container && index == 0 && plan.import_state.is_some() {
        return CallState::Applied;
    }
    if let Some(cause) = plan.unconfirmed_cause(step) {
        return CallState::Unknown(cause);
    }
    let remaining_step = find_step(plan, &step.address);
    if step.replaces {
        return determine_replacement_state(step, index, remaining_step);
    }
    if let Some(create_index) = recreate_index(step).filter(|create_index| index >= *create_index) {
        return determine_recreation_state(step, index > create_index, plan);
    }
    if step.address.section.is_none() && step.action == Action::Update {
        return determine_move_state(step, index, remaining_step);
    }
    match (step.action, remaining_step) {
        (Action::Update, None) => determine_update_state(step, plan),
        (Action::Update, Some(remaining_step)) => {
            let changes = remaining_step.changes.iter();
            let mut remaining_changes =
                changes.filter(|change| sends_field(scope, step, index, change)).peekable();
            if remaining_changes.peek().is_none() {
                CallState::Applied
            } else if remaining_changes
                .all(|change| step.is_same_field_change(remaining_step, &change.field))
            {
                CallState::NotApplied
            } else {
                CallState::Unexpected
            }
        }
        (_, Some(remaining_step)) if step.is_same_change(remaining_step) => CallState::NotApplied,
        (_, Some(_)) => CallState::Unexpected,
        (Action::Create, None) if creates_container => {
            determine_creation_state(scope, step, index, plan)
        }
        (Action::Create | Action::Delete, None) => CallState::Applied,
    }
}

/// The index of the call with which an update creates its object a second time; `None` if the update
/// changes the object in place. The next call removes the old object.
fn recreate_index(step: &Step) -> Option<usize> {
    let mut calls = step.requests();
    calls
        .position(|call| call.retry_safety() == RetrySafety::MayDuplicate)
        .filter(|_| step.action == Action::Update)
}

/// The state of a call for an object that is created again before the old object is removed. While
/// both objects exist, a plan treats one object as a copy of the other object.
fn determine_recreation_state(step: &Step, is_removal: bool, plan: &ContainerPlan) -> CallState {
    let old_id = step.live_id();
    let mut remaining_steps = plan.steps.iter().filter(|remaining_step| {
        remaining_step.address == step.address || remaining_step.removes_copy_of(&step.address)
    });
    let is_done = if is_removal {
        remaining_steps.all(|remaining_step| remaining_step.live_id() != old_id)
    } else {
        remaining_steps.any(|remaining_step| {
            remaining_step.live_id() > old_id
                || (remaining_step.removes_copy && remaining_step.live_id() == old_id)
        })
    };
    if is_done { CallState::Applied } else { CallState::NotApplied }
}

/// The state of a call of a replacement. If the new plan creates the object, the old object was
/// removed. If the new plan has the same step, the old object was not removed.
fn determine_replacement_state(
    step: &Step,
    index: usize,
    remaining_step: Option<&Step>,
) -> CallState {
    let is_removal = index == 0;
    let is_restore = step.planned_calls.get(index).is_some_and(|call| call.is_restore);
    match remaining_step {
        None => CallState::Applied,
        Some(remaining) if remaining.action == Action::Create && is_removal => CallState::Applied,
        Some(remaining) if remaining.action == Action::Create => CallState::NotApplied,
        Some(remaining) if step.is_same_change(remaining) && is_removal => CallState::NotApplied,
        Some(remaining) if step.is_same_change(remaining) && is_restore => CallState::Applied,
        Some(_) => CallState::Unexpected,
    }
}

/// The state of a call that renames or transfers a container. The service did not execute the calls
/// that the new plan still contains.
fn determine_move_state(step: &Step, index: usize, remaining_step: Option<&Step>) -> CallState {
    let operation = step.planned_calls.get(index).map(|call| call.request.operation);
    let mut requests = remaining_step.into_iter().flat_map(Step::requests);
    match operation {
        Some(operation) if requests.any(|request| request.operation == operation) => {
            CallState::NotApplied
        }
        _ => CallState::Applied,
    }
}

/// The state of an update without a remaining difference. If the service returns at least one of
/// the changed fields, this proves that the service executed the whole call.
fn determine_update_state(step: &Step, plan: &ContainerPlan) -> CallState {
    let unverifiable_fields = plan.unverifiable_fields(step);
    if unverifiable_fields.len() < step.changes.len() {
        return CallState::Applied;
    }
    CallState::Unknown(Cause::new(format!(
        "the service does not return {}",
        text::list_names(&unverifiable_fields)
    )))
}

/// The state of a call that creates a container, if the container exists now. Remaining differences
/// in the sections that are created with the container are separate steps of the new plan.
fn determine_creation_state(
    scope: Scope,
    step: &Step,
    index: usize,
    plan: &ContainerPlan,
) -> CallState {
    let request = step.requests().nth(index);
    if index > 0 && request.is_some_and(|request| request.body_fields().is_none()) {
        return CallState::Unknown(Cause::new("cannot tell whether this was carried out"));
    }
    let has_difference = plan.steps.iter().any(|remaining_step| {
        let section =
            remaining_step.address.section.and_then(|name| catalogue::find_section(scope, name));
        section.is_some_and(Section::is_created_with_container)
            && remaining_step.changes.iter().any(|change| sends_field(scope, step, index, change))
    });
    match (has_difference, index) {
        (false, _) => CallState::Applied,
        // Another container has the path.
        (true, 0) => CallState::Unexpected,
        (true, _) => CallState::NotApplied,
    }
}

/// True if the call `index` of `step` sends the field of `change`.
fn sends_field(scope: Scope, step: &Step, index: usize, change: &FieldChange) -> bool {
    let name = &*change.field;
    let sections = catalogue::sections(scope).filter(|section| match step.address.section {
        Some(name) => section.section == name,
        None => section.is_created_with_container(),
    });
    let spec = sections.filter_map(|section| section.spec(name)).next();
    let sent_name = spec.map_or(name, |spec| spec.field.sent_name());
    step.requests()
        .nth(index)
        .and_then(Request::body_fields)
        .is_some_and(|fields| fields.contains_key(sent_name))
}

/// The next action after a lost response.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LostCallAction {
    /// The service executed the call: send the next call.
    SendNext,
    /// Send the call again.
    Resend,
    /// Read the live state again, this long after the sending of the call.
    Reread(Duration),
    /// The service did not execute the call, and the run does not send the call again.
    Failed,
    /// The live state is neither the old state nor the sent state.
    Unexpected,
    /// The outcome is unknown, and cannot be determined.
    Unknown(Cause),
}

/// The history of a lost call.
#[derive(Clone, Copy, Debug)]
pub(super) struct LostCallHistory {
    /// The number of readings since the call was last sent, at the times in [`REREAD_DELAYS`].
    pub(super) reread_count: usize,
    /// True if the call was sent once more after a reading that did not find its object.
    pub(super) is_resent: bool,
    /// True if the rules for retries allow sending the call again.
    pub(super) is_repeatable: bool,
}

/// Decides, without IO, the action after reading number `history.reread_count`.
pub(super) fn decide_lost_call(
    request: &Request<Write>,
    state: CallState,
    history: LostCallHistory,
) -> LostCallAction {
    let retry_safety = request.retry_safety();
    let state = if Bug::AssumeLostWriteApplied.is_planted() { CallState::Applied } else { state };
    let next_reread = REREAD_DELAYS.get(history.reread_count).copied();
    match (state, retry_safety) {
        (CallState::Applied, _) => LostCallAction::SendNext,
        (CallState::Unexpected, _) => LostCallAction::Unexpected,
        // Sending the call twice has the same effect as sending it once.
        (CallState::NotApplied, RetrySafety::Idempotent) if history.is_repeatable => {
            LostCallAction::Resend
        }
        (CallState::NotApplied, RetrySafety::RefusesDuplicates) if !history.is_resent => {
            LostCallAction::Resend
        }
        (CallState::NotApplied, RetrySafety::MayDuplicate)
            if (next_reread.is_none() || Bug::ResendEarly.is_planted()) && !history.is_resent =>
        {
            LostCallAction::Resend
        }
        (state, _) => match (next_reread, state) {
            (Some(delay), _) => LostCallAction::Reread(delay),
            (None, CallState::Unknown(cause)) => LostCallAction::Unknown(cause),
            (None, _) => LostCallAction::Failed,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::{
        address::Selector,
        desired::{CreationPolicy, Desired, Unlisted, testing::shop},
        diff::{FieldChange, Shown},
        kind::{ImportState, PlannedCall},
        live::{
            Presence,
            testing::{caller, live_container},
        },
        operation::{
            HOOK_CREATE, HOOK_DELETE, HOOK_UPDATE, Op, PROJECT_ARCHIVE, PROJECT_CREATE,
            PROJECT_FORK, PROJECT_TRANSFER, PROJECT_UPDATE, PROTECTED_BRANCH_CREATE,
            PROTECTED_BRANCH_DELETE, VARIABLE_CREATE,
        },
        plan::{self, PlanSettings},
        secret::{Reference, Secrets},
        value::Json,
    };

    const FIRST_REREAD: LostCallHistory =
        LostCallHistory { reread_count: 1, is_resent: false, is_repeatable: false };

    fn unknown_state() -> CallState {
        CallState::Unknown("unread".into())
    }

    fn action_after(
        op: Op<Write>,
        call_state: CallState,
        history: LostCallHistory,
    ) -> LostCallAction {
        decide_lost_call(&op.request(), call_state, history)
    }

    /// Remaining steps of other objects do not change the state of a call.
    #[test]
    fn the_state_of_a_call_depends_only_on_its_own_object() {
        let variable = json!({"key": "A", "environment_scope": "*", "value": "x"});
        let declared = json!({"settings": {"description": "new"}, "variables": [variable]});
        let shop = shop(&declared, Unlisted::Report);
        let settings = PlanSettings::for_run(caller(), Arc::default(), &Desired::default());
        let plan_remaining = |description: &str, variables: Json| {
            let live = json!({"settings": {"description": description}, "variables": variables});
            plan::plan_container(&shop, &live_container(&shop, &live), &settings)
        };
        let first_plan = plan_remaining("old", json!([]));
        let [first_step, other_step] = &first_plan.steps[..] else { panic!("{first_plan:?}") };
        for (new_plan, expected) in [
            (plan_remaining("old", json!([])), [CallState::NotApplied, CallState::NotApplied]),
            (plan_remaining("new", json!([])), [CallState::Applied, CallState::NotApplied]),
            (plan_remaining("old", json!([variable])), [CallState::NotApplied, CallState::Applied]),
        ] {
            assert_eq!(
                [first_step, other_step]
                    .map(|step| determine_call_state(shop.scope, step, 0, &new_plan)),
                expected
            );
        }
    }

    #[test]
    fn the_remaining_step_shows_which_calls_of_a_replacement_succeeded() {
        use CallState::{Applied, NotApplied, Unexpected};
        let shop = shop(&serde_json::json!({}), Unlisted::Report);
        let make_step = |action, level: &str| {
            let make_call = |op: Op<Write>| PlannedCall::from(op.request().with_argument("id", 1));
            let restore = PlannedCall { is_restore: true, ..make_call(PROTECTED_BRANCH_CREATE) };
            let calls = vec![
                make_call(PROTECTED_BRANCH_DELETE),
                make_call(PROTECTED_BRANCH_CREATE),
                restore,
            ];
            let after = Shown::Value(level.into());
            let change = FieldChange::new("allowed_to_push", Shown::Unknown, after, None);
            let (address, origin) = (shop.address().with_section("protected_tags"), &shop.origin);
            Step::new(shop.scope, address, action, origin.clone(), vec![change], calls)
        };
        let replacement = make_step(Action::Update, "maintainer");
        for (remaining, removed, added, restored) in [
            (None, Applied, Applied, Applied),
            (Some(make_step(Action::Create, "maintainer")), Applied, NotApplied, NotApplied),
            (Some(replacement.clone()), NotApplied, Unexpected, Applied),
            (Some(make_step(Action::Update, "developer")), Unexpected, Unexpected, Unexpected),
        ] {
            let actual = [0, 1, 2]
                .map(|index| determine_replacement_state(&replacement, index, remaining.as_ref()));
            assert_eq!(actual, [removed, added, restored], "{remaining:?}");
        }
    }

    /// A container is renamed and then moved.
    #[test]
    fn a_call_of_a_move_was_applied_unless_still_planned() {
        use CallState::{Applied, NotApplied};
        let shop = shop(&json!({}), Unlisted::Report);
        let make_step = |ops: &[Op<Write>]| {
            let calls = ops
                .iter()
                .map(|op| PlannedCall::from(op.request().with_argument("id", 1)))
                .collect();
            let (address, origin) = (shop.address(), shop.origin.clone());
            Step::new(shop.scope, address, Action::Update, origin, Vec::new(), calls)
        };
        let move_step = make_step(&[PROJECT_UPDATE, PROJECT_TRANSFER]);
        for (remaining, renamed, moved) in [
            (Some(move_step.clone()), NotApplied, NotApplied),
            (Some(make_step(&[PROJECT_TRANSFER])), Applied, NotApplied),
            (None, Applied, Applied),
        ] {
            let actual =
                [0, 1].map(|index| determine_move_state(&move_step, index, remaining.as_ref()));
            assert_eq!(actual, [renamed, moved], "{remaining:?}");
        }
    }

    /// A plan after a create has no remaining step, the same step, or another step.
    #[test]
    fn the_remaining_step_shows_whether_a_create_succeeded() {
        use CallState::{Applied, NotApplied, Unexpected};
        let shop_with_variable = |value: &str| {
            let variable = json!({"key": "A", "environment_scope": "*", "value": value});
            shop(&json!({"variables": [variable]}), Unlisted::Report)
        };
        let plan_for = |value: &str, live: Json| {
            let declared = shop_with_variable(value);
            let live = live_container(&declared, &json!({"variables": live}));
            let settings = PlanSettings::for_run(caller(), Arc::default(), &Desired::default());
            plan::plan_container(&declared, &live, &settings)
        };
        let step = plan_for("a", json!([])).findings.steps.remove(0);
        let live_variables = json!([{
            "key": "A", "environment_scope": "*", "value": "a", "variable_type": "env_var",
            "protected": false, "masked": false, "raw": false,
        }]);
        for (value, live, expected) in [
            ("a", json!([]), NotApplied),
            ("b", json!([]), Unexpected),
            ("a", live_variables, Applied),
        ] {
            assert_eq!(
                determine_call_state(Scope::Project, &step, 0, &plan_for(value, live)),
                expected,
                "{value}"
            );
        }
    }

    /// The live state does not show if a call without a body was carried out.
    #[test]
    fn the_outcome_of_a_bodiless_call_after_a_create_is_unknown() {
        let shop = shop(&json!({}), Unlisted::Report);
        let archive = PROJECT_ARCHIVE.request().with_argument("id", 1);
        let calls = vec![PlannedCall::from(PROJECT_CREATE.request()), PlannedCall::from(archive)];
        let (address, origin) = (shop.address(), shop.origin.clone());
        let step = Step::new(shop.scope, address, Action::Create, origin, Vec::new(), calls);
        let settings = PlanSettings::for_run(caller(), Arc::default(), &Desired::default());
        let new_plan = plan::plan_container(&shop, &live_container(&shop, &json!({})), &settings);
        assert_eq!(determine_creation_state(shop.scope, &step, 0, &new_plan), CallState::Applied);
        let second_state = determine_creation_state(shop.scope, &step, 1, &new_plan);
        assert!(matches!(second_state, CallState::Unknown(_)), "{second_state:?}");
    }

    #[test]
    fn a_project_whose_contents_are_arriving_was_created() {
        let mut shop = shop(&json!({}), Unlisted::Report);
        shop.creation_policy = CreationPolicy::Unselected { imports_contents: true };
        let mut live = live_container(&shop, &json!({}));
        let Presence::Existing(_, facts) = &mut live.presence else { panic!("it is there") };
        facts.import_state = Some(ImportState::Running);
        let settings = PlanSettings::for_run(caller(), Arc::default(), &Desired::default());
        let new_plan = plan::plan_container(&shop, &live, &settings);
        let edit_request = PROJECT_UPDATE.request().with_argument("id", 1);
        let calls =
            vec![PlannedCall::from(PROJECT_FORK.request()), PlannedCall::from(edit_request)];
        let (address, origin) = (shop.address(), shop.origin.clone());
        let step = Step::new(shop.scope, address, Action::Create, origin, Vec::new(), calls);
        assert_eq!(determine_call_state(shop.scope, &step, 0, &new_plan), CallState::Applied);
        let second_state = determine_call_state(shop.scope, &step, 1, &new_plan);
        assert!(matches!(second_state, CallState::Unknown(_)), "{second_state:?}");
    }

    /// If the outcome counted as applied, the run would remove the old object although no new
    /// object exists.
    #[test]
    fn the_outcome_of_an_addition_beside_an_equal_object_is_unknown() {
        let shop = shop(&json!({}), Unlisted::Report);
        let calls = vec![
            PlannedCall::from(HOOK_CREATE.request()),
            PlannedCall::from(HOOK_DELETE.request()),
        ];
        let address = shop.address().with_section("hooks").with_entry("x");
        let changes = vec![FieldChange::new("url", Shown::Hidden, Shown::Hidden, None)];
        let step =
            Step::new(shop.scope, address, Action::Update, shop.origin.clone(), changes, calls);
        let settings = PlanSettings::for_run(caller(), Arc::default(), &Desired::default());
        let new_plan = plan::plan_container(&shop, &live_container(&shop, &json!({})), &settings);
        for index in [0, 1] {
            let call_state = determine_call_state(shop.scope, &step, index, &new_plan);
            assert!(matches!(call_state, CallState::Unknown(_)), "{index}: {call_state:?}");
        }
    }

    /// A renewal creates an object again, and then removes the old object. The copy that a new plan
    /// finds shows which of these calls succeeded.
    #[test]
    fn the_copy_shows_which_calls_of_a_renewal_succeeded() {
        let reference = Reference::Env("A".into());
        let mut secrets = Secrets::new("/", [("A".to_owned(), "https://u:secret@h/x".to_owned())]);
        secrets.resolve([&reference]);
        let settings = PlanSettings::for_run(caller(), Arc::new(secrets), &Desired::default());
        let resend = vec![Selector::parse("**").unwrap()];
        let resend_all = PlanSettings { resend_selectors: resend, ..settings.clone() };
        let shop = shop(&json!({"remote_mirrors": [{"url": {"env": "A"}}]}), Unlisted::Report);
        let plan_mirrors = |ids: &[u64], settings: &PlanSettings| {
            let mirror_json = |id: &u64| {
                json!({
                    "id": id, "url": "https://*****:*****@h/x", "enabled": true, "only_protected_branches": false,
                    "keep_divergent_refs": false, "auth_method": "password", "mirror_branch_regex": null,
                })
            };
            let live = json!({"remote_mirrors": ids.iter().map(mirror_json).collect::<Vec<_>>()});
            plan::plan_container(&shop, &live_container(&shop, &live), settings)
        };
        let step = &plan_mirrors(&[3], &resend_all).findings.steps[0];
        for (ids, expected) in [
            (&[3][..], [CallState::NotApplied, CallState::NotApplied]),
            (&[3, 4], [CallState::Applied, CallState::NotApplied]),
            (&[4], [CallState::Applied, CallState::Applied]),
        ] {
            let call_states = |settings| {
                [0, 1].map(|index| {
                    determine_call_state(shop.scope, step, index, &plan_mirrors(ids, settings))
                })
            };
            assert_eq!(call_states(&resend_all), expected, "{ids:?}");
        }
        // The plan after a later reading no longer resends the URL.
        let new_plan = plan_mirrors(&[3, 4], &settings);
        assert_eq!(
            [0, 1].map(|index| determine_call_state(shop.scope, step, index, &new_plan)),
            [CallState::Applied, CallState::NotApplied]
        );
    }

    #[test]
    fn an_applied_or_replaced_call_is_decided_at_any_reread() {
        for op in [HOOK_CREATE, VARIABLE_CREATE, HOOK_UPDATE, PROJECT_FORK] {
            for rereads in 1..=REREAD_DELAYS.len() {
                for (resent, repeatable) in [(false, false), (true, false), (false, true)] {
                    let history = LostCallHistory {
                        reread_count: rereads,
                        is_resent: resent,
                        is_repeatable: repeatable,
                    };
                    assert_eq!(
                        action_after(op, CallState::Applied, history),
                        LostCallAction::SendNext
                    );
                    assert_eq!(
                        action_after(op, CallState::Unexpected, history),
                        LostCallAction::Unexpected
                    );
                }
            }
        }
    }

    #[test]
    fn a_create_that_could_duplicate_is_resent_only_after_the_last_reread() {
        for (rereads, delay) in REREAD_DELAYS.into_iter().enumerate().skip(1) {
            let history = LostCallHistory { reread_count: rereads, ..FIRST_REREAD };
            assert_eq!(
                action_after(HOOK_CREATE, CallState::NotApplied, history),
                LostCallAction::Reread(delay)
            );
        }
        let last = LostCallHistory { reread_count: REREAD_DELAYS.len(), ..FIRST_REREAD };
        assert_eq!(action_after(HOOK_CREATE, CallState::NotApplied, last), LostCallAction::Resend);
        assert_eq!(
            action_after(
                HOOK_CREATE,
                CallState::NotApplied,
                LostCallHistory { is_resent: true, ..last }
            ),
            LostCallAction::Failed
        );
        assert_eq!(REREAD_DELAYS[REREAD_DELAYS.len() - 1], WRITE_TIMEOUT);
    }

    #[test]
    fn a_create_of_a_unique_entry_is_resent_after_the_first_reread() {
        assert_eq!(
            action_after(VARIABLE_CREATE, CallState::NotApplied, FIRST_REREAD),
            LostCallAction::Resend
        );
        let resent_history = LostCallHistory { is_resent: true, ..FIRST_REREAD };
        assert_eq!(
            action_after(VARIABLE_CREATE, CallState::NotApplied, resent_history),
            LostCallAction::Reread(REREAD_DELAYS[1])
        );
        assert_eq!(
            action_after(
                VARIABLE_CREATE,
                CallState::NotApplied,
                LostCallHistory { reread_count: REREAD_DELAYS.len(), ..resent_history }
            ),
            LostCallAction::Failed
        );
    }

    #[test]
    fn a_repeatable_edit_is_resent_after_the_first_reread() {
        let repeatable = LostCallHistory { is_repeatable: true, ..FIRST_REREAD };
        assert_eq!(
            action_after(HOOK_UPDATE, CallState::NotApplied, repeatable),
            LostCallAction::Resend
        );
        assert_eq!(
            action_after(HOOK_UPDATE, unknown_state(), repeatable),
            LostCallAction::Reread(REREAD_DELAYS[1])
        );
        assert_eq!(
            action_after(HOOK_UPDATE, CallState::NotApplied, FIRST_REREAD),
            LostCallAction::Reread(REREAD_DELAYS[1])
        );
    }

    #[test]
    fn a_fork_is_never_resent() {
        for rereads in 1..=REREAD_DELAYS.len() {
            assert_ne!(
                action_after(
                    PROJECT_FORK,
                    CallState::NotApplied,
                    LostCallHistory {
                        reread_count: rereads,
                        is_resent: false,
                        is_repeatable: true
                    }
                ),
                LostCallAction::Resend
            );
        }
    }

    #[test]
    fn an_unreadable_object_is_unknown_after_the_last_reread() {
        for op in [HOOK_CREATE, VARIABLE_CREATE, HOOK_UPDATE, PROJECT_FORK] {
            assert_eq!(
                action_after(op, unknown_state(), FIRST_REREAD),
                LostCallAction::Reread(REREAD_DELAYS[1])
            );
            assert_eq!(
                action_after(
                    op,
                    unknown_state(),
                    LostCallHistory { reread_count: REREAD_DELAYS.len(), ..FIRST_REREAD }
                ),
                LostCallAction::Unknown("unread".into())
            );
        }
    }
}
