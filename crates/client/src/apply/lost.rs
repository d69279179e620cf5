//! Decides the outcome of a write whose answer was lost, from a new plan of the present live state.
//!
//! After a create without an answer, the run reads again 2, 5, 15, 35 and 75 seconds after the
//! sending began ([`REREAD_AFTER`]). The service lets no request run longer than that, so an object
//! that the last reading lacks will not appear any more. If the service keeps the object unique, the
//! run need not wait: it sends the create once more as soon as the first reading finds nothing,
//! because only one of the two can succeed. A create that must never be sent twice is looked for
//! until the end.

use std::time::Duration;

use super::step_at;
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

/// When to read again after a write without an answer, counted from the start of its sending. The
/// first pause is what the service usually needs.
pub const REREAD_AFTER: [Duration; 5] = [
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(15),
    Duration::from_secs(35),
    WRITE_TIMEOUT,
];

/// The state of one call of a step, according to a new plan.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CallState {
    /// The call was carried out.
    Applied,
    /// It was not, so far.
    NotApplied,
    /// The live state is neither the old one nor what was sent.
    Other,
    /// Too little is known.
    Unknown(Cause),
}

/// The state of the call `index` of `step`, in a container of `scope`, according to the new `plan`.
pub(super) fn call_state(
    scope: Scope,
    step: &Step,
    index: usize,
    plan: &ContainerPlan,
) -> CallState {
    let creates = step.creates_container();
    // The container exists, and its contents are arriving.
    if creates && index == 0 && plan.import_state().is_some() {
        return CallState::Applied;
    }
    if let Some(doubt) = plan.unconfirmed_cause(step) {
        return CallState::Unknown(doubt);
    }
    let remaining = step_at(plan, &step.address);
    if step.replaces {
        return replacement_state(step, index, remaining);
    }
    if let Some(add) = second_create_index(step).filter(|add| index >= *add) {
        return renewal_state(step, index > add, plan);
    }
    if step.address.section.is_none() && step.action == Action::Update {
        return move_state(step, index, remaining);
    }
    match (step.action, remaining) {
        (Action::Update, None) => update_state(step, plan),
        (Action::Update, Some(remaining)) => {
            let changes = remaining.changes.iter();
            let mut open =
                changes.filter(|change| sends_field(scope, step, index, change)).peekable();
            if open.peek().is_none() {
                CallState::Applied
            } else if open.all(|change| step.is_same_field_change(remaining, &change.field)) {
                CallState::NotApplied
            } else {
                CallState::Other
            }
        }
        (_, Some(remaining)) if step.is_same_change(remaining) => CallState::NotApplied,
        (_, Some(_)) => CallState::Other,
        (Action::Create, None) if creates => creation_state(scope, step, index, plan),
        (Action::Create | Action::Delete, None) => CallState::Applied,
    }
}

/// The call of an update that adds its object a second time, before the next call removes the old
/// one.
fn second_create_index(step: &Step) -> Option<usize> {
    let mut calls = step.requests();
    calls
        .position(|call| call.retry_safety() == RetrySafety::Second)
        .filter(|_| step.action == Action::Update)
}

/// The state of a call for an object that is added again before the old one is removed. While both
/// exist, a plan takes one of them for a copy of the other.
fn renewal_state(step: &Step, is_removal: bool, plan: &ContainerPlan) -> CallState {
    let old = step.live_id();
    let mut remaining = plan.steps.iter().filter(|remaining| {
        remaining.address == step.address || remaining.is_copy_of(&step.address)
    });
    let is_done = if is_removal {
        remaining.all(|remaining| remaining.live_id() != old)
    } else {
        remaining.any(|remaining| {
            remaining.live_id() > old || (remaining.is_copy && remaining.live_id() == old)
        })
    };
    if is_done { CallState::Applied } else { CallState::NotApplied }
}

/// The state of a call of a replacement: a missing object is still to be created, an unchanged one
/// is still to be replaced.
fn replacement_state(step: &Step, index: usize, remaining: Option<&Step>) -> CallState {
    let removes = index == 0;
    let restores = step.sends.get(index).is_some_and(|call| call.is_restore);
    match remaining {
        None => CallState::Applied,
        Some(remaining) if remaining.action == Action::Create && removes => CallState::Applied,
        Some(remaining) if remaining.action == Action::Create => CallState::NotApplied,
        Some(remaining) if step.is_same_change(remaining) && removes => CallState::NotApplied,
        Some(remaining) if step.is_same_change(remaining) && restores => CallState::Applied,
        Some(_) => CallState::Other,
    }
}

/// The state of a call for a container that is renamed and then moved: the remaining calls were not
/// carried out.
fn move_state(step: &Step, index: usize, remaining: Option<&Step>) -> CallState {
    let operation = step.sends.get(index).map(|call| call.request.operation);
    let mut remaining = remaining.into_iter().flat_map(Step::requests);
    match operation {
        Some(operation) if remaining.any(|other| other.operation == operation) => {
            CallState::NotApplied
        }
        _ => CallState::Applied,
    }
}

/// The state of an update without a remaining difference. One field that is seen to have changed
/// proves the call with all its fields.
fn update_state(step: &Step, plan: &ContainerPlan) -> CallState {
    let unseen = plan.unverifiable_fields(step);
    if unseen.len() < step.changes.len() {
        return CallState::Applied;
    }
    CallState::Unknown(Cause::new(format!(
        "the service does not return {}",
        text::list_names(&unseen)
    )))
}

/// The state of a call that creates a container, if the container exists now. It was created with
/// parts of its own object; remaining differences are steps of their own.
fn creation_state(scope: Scope, step: &Step, index: usize, plan: &ContainerPlan) -> CallState {
    let request = step.requests().nth(index);
    if index > 0 && request.is_some_and(|request| request.body_fields().is_none()) {
        return CallState::Unknown(Cause::new("cannot tell whether this was carried out"));
    }
    let differs = plan.steps.iter().any(|remaining| {
        let section = remaining.address.section.and_then(|name| catalogue::section(scope, name));
        section.is_some_and(Section::comes_with_container)
            && remaining.changes.iter().any(|change| sends_field(scope, step, index, change))
    });
    match (differs, index) {
        (false, _) => CallState::Applied,
        // Another project has the path.
        (true, 0) => CallState::Other,
        (true, _) => CallState::NotApplied,
    }
}

/// True if the call `index` of `step` sends the field of `change`.
fn sends_field(scope: Scope, step: &Step, index: usize, change: &FieldChange) -> bool {
    let name = &*change.field;
    let sections = catalogue::sections(scope).filter(|section| match step.address.section {
        Some(name) => section.section == name,
        None => section.comes_with_container(),
    });
    let spec = sections.filter_map(|section| section.table().get(name)).next();
    let sent_name = spec.map_or(name, |spec| spec.field.sent_name());
    step.requests()
        .nth(index)
        .and_then(Request::body_fields)
        .is_some_and(|fields| fields.contains_key(sent_name))
}

/// The next action after a lost answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LossVerdict {
    /// The call was carried out: send the next one.
    Next,
    /// Send it again.
    Resend,
    /// Read once more this long after the sending.
    Reread(Duration),
    /// It was not carried out, and is not sent again.
    Failed,
    /// The live state is something else.
    Other,
    /// The outcome is unknown, and cannot be determined.
    Unknown(Cause),
}

/// The history of a lost call.
#[derive(Clone, Copy, Debug)]
pub(super) struct LostCallHistory {
    /// How many readings of [`REREAD_AFTER`] were made since its last sending.
    pub(super) rereads: usize,
    /// True if it was sent once more after a reading found nothing.
    pub(super) is_resent: bool,
    /// True if the rules for retries allow another sending.
    pub(super) is_repeatable: bool,
}

/// Decides, without IO, after reading number `history.rereads`.
pub(super) fn decide(
    request: &Request<Write>,
    state: CallState,
    history: LostCallHistory,
) -> LossVerdict {
    let retry_safety = request.retry_safety();
    let state = if Bug::LostIsDone.is_planted() { CallState::Applied } else { state };
    let next_reread = REREAD_AFTER.get(history.rereads).copied();
    match (state, retry_safety) {
        (CallState::Applied, _) => LossVerdict::Next,
        (CallState::Other, _) => LossVerdict::Other,
        // Another sending has the same effect.
        (CallState::NotApplied, RetrySafety::Same) if history.is_repeatable => LossVerdict::Resend,
        (CallState::NotApplied, RetrySafety::Refused) if !history.is_resent => LossVerdict::Resend,
        (CallState::NotApplied, RetrySafety::Second)
            if (next_reread.is_none() || Bug::ResendEarly.is_planted()) && !history.is_resent =>
        {
            LossVerdict::Resend
        }
        (state, _) => match (next_reread, state) {
            (Some(later), _) => LossVerdict::Reread(later),
            (None, CallState::Unknown(cause)) => LossVerdict::Unknown(cause),
            (None, _) => LossVerdict::Failed,
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

    const FRESH: LostCallHistory =
        LostCallHistory { rereads: 1, is_resent: false, is_repeatable: false };

    fn unknown() -> CallState {
        CallState::Unknown("unread".into())
    }

    fn after(op: Op<Write>, call_state: CallState, history: LostCallHistory) -> LossVerdict {
        decide(&op.request(), call_state, history)
    }

    /// Remaining steps of other objects do not change the state of a call.
    #[test]
    fn a_step_stands_as_its_own_object_does() {
        let variable = json!({"key": "A", "environment_scope": "*", "value": "x"});
        let declared = json!({"settings": {"description": "new"}, "variables": [variable]});
        let shop = shop(&declared, Unlisted::Report);
        let settings = PlanSettings::for_run(caller(), Arc::default(), &Desired::default());
        let left = |description: &str, variables: Json| {
            let live = json!({"settings": {"description": description}, "variables": variables});
            plan::plan_container(&shop, &live_container(&shop, &live), &settings)
        };
        let before = left("old", json!([]));
        let [first, other] = &before.steps[..] else { panic!("{before:?}") };
        for (now, expected) in [
            (left("old", json!([])), [CallState::NotApplied, CallState::NotApplied]),
            (left("new", json!([])), [CallState::Applied, CallState::NotApplied]),
            (left("old", json!([variable])), [CallState::NotApplied, CallState::Applied]),
        ] {
            assert_eq!([first, other].map(|step| call_state(shop.scope, step, 0, &now)), expected);
        }
    }

    #[test]
    fn the_remaining_step_shows_which_calls_of_a_replacement_succeeded() {
        use CallState::{Applied, NotApplied, Other};
        let shop = shop(&serde_json::json!({}), Unlisted::Report);
        let step = |action, level: &str| {
            let call = |op: Op<Write>| PlannedCall::from(op.request().arg("id", 1));
            let restores = PlannedCall { is_restore: true, ..call(PROTECTED_BRANCH_CREATE) };
            let sends =
                vec![call(PROTECTED_BRANCH_DELETE), call(PROTECTED_BRANCH_CREATE), restores];
            let after = Shown::Value(level.into());
            let change = FieldChange::new("allowed_to_push", Shown::Unknown, after, None);
            let (address, origin) = (shop.address().section("protected_tags"), &shop.origin);
            Step::new(shop.scope, address, action, origin.clone(), vec![change], sends)
        };
        let own = step(Action::Update, "maintainer");
        for (left, removed, added, restored) in [
            (None, Applied, Applied, Applied),
            (Some(step(Action::Create, "maintainer")), Applied, NotApplied, NotApplied),
            (Some(own.clone()), NotApplied, Other, Applied),
            (Some(step(Action::Update, "developer")), Other, Other, Other),
        ] {
            let found = [0, 1, 2].map(|index| replacement_state(&own, index, left.as_ref()));
            assert_eq!(found, [removed, added, restored], "{left:?}");
        }
    }

    /// A container is renamed and then moved.
    #[test]
    fn a_call_of_a_move_was_carried_out_unless_it_is_left() {
        use CallState::{Applied, NotApplied};
        let shop = shop(&json!({}), Unlisted::Report);
        let step = |ops: &[Op<Write>]| {
            let sends = ops.iter().map(|op| PlannedCall::from(op.request().arg("id", 1))).collect();
            let (address, origin) = (shop.address(), shop.origin.clone());
            Step::new(shop.scope, address, Action::Update, origin, Vec::new(), sends)
        };
        let own = step(&[PROJECT_UPDATE, PROJECT_TRANSFER]);
        for (left, renamed, moved) in [
            (Some(own.clone()), NotApplied, NotApplied),
            (Some(step(&[PROJECT_TRANSFER])), Applied, NotApplied),
            (None, Applied, Applied),
        ] {
            let found = [0, 1].map(|index| move_state(&own, index, left.as_ref()));
            assert_eq!(found, [renamed, moved], "{left:?}");
        }
    }

    /// A later reading after a create finds nothing left to do, the same step, or something else.
    #[test]
    fn the_remaining_step_shows_whether_a_create_succeeded() {
        use CallState::{Applied, NotApplied, Other};
        let declared = |value: &str| {
            let variable = json!({"key": "A", "environment_scope": "*", "value": value});
            shop(&json!({"variables": [variable]}), Unlisted::Report)
        };
        let now = |value: &str, live: Json| {
            let declared = declared(value);
            let live = live_container(&declared, &json!({"variables": live}));
            let settings = PlanSettings::for_run(caller(), Arc::default(), &Desired::default());
            plan::plan_container(&declared, &live, &settings)
        };
        let step = now("a", json!([])).findings.steps.remove(0);
        let there = json!([{
            "key": "A", "environment_scope": "*", "value": "a", "variable_type": "env_var",
            "protected": false, "masked": false, "raw": false,
        }]);
        for (value, live, expected) in
            [("a", json!([]), NotApplied), ("b", json!([]), Other), ("a", there, Applied)]
        {
            assert_eq!(
                call_state(Scope::Project, &step, 0, &now(value, live)),
                expected,
                "{value}"
            );
        }
    }

    /// The state of a container does not show whether a call without a body was carried out.
    #[test]
    fn the_outcome_of_a_bodiless_call_after_a_create_is_unknown() {
        let shop = shop(&json!({}), Unlisted::Report);
        let archive = PROJECT_ARCHIVE.request().arg("id", 1);
        let sends = vec![PlannedCall::from(PROJECT_CREATE.request()), PlannedCall::from(archive)];
        let (address, origin) = (shop.address(), shop.origin.clone());
        let step = Step::new(shop.scope, address, Action::Create, origin, Vec::new(), sends);
        let settings = PlanSettings::for_run(caller(), Arc::default(), &Desired::default());
        let now = plan::plan_container(&shop, &live_container(&shop, &json!({})), &settings);
        assert_eq!(creation_state(shop.scope, &step, 0, &now), CallState::Applied);
        let later = creation_state(shop.scope, &step, 1, &now);
        assert!(matches!(later, CallState::Unknown(_)), "{later:?}");
    }

    #[test]
    fn a_project_whose_contents_are_arriving_was_created() {
        let mut shop = shop(&json!({}), Unlisted::Report);
        shop.create = CreationPolicy::Unselected { imports_contents: true };
        let mut live = live_container(&shop, &json!({}));
        let Presence::Here(_, facts) = &mut live.presence else { panic!("it is there") };
        facts.import_state = Some(ImportState::Running);
        let settings = PlanSettings::for_run(caller(), Arc::default(), &Desired::default());
        let now = plan::plan_container(&shop, &live, &settings);
        let edit = PROJECT_UPDATE.request().arg("id", 1);
        let sends = vec![PlannedCall::from(PROJECT_FORK.request()), PlannedCall::from(edit)];
        let (address, origin) = (shop.address(), shop.origin.clone());
        let step = Step::new(shop.scope, address, Action::Create, origin, Vec::new(), sends);
        assert_eq!(call_state(shop.scope, &step, 0, &now), CallState::Applied);
        let later = call_state(shop.scope, &step, 1, &now);
        assert!(matches!(later, CallState::Unknown(_)), "{later:?}");
    }

    /// Otherwise the old object would be removed although no new one is there.
    #[test]
    fn the_outcome_of_an_addition_beside_an_equal_object_is_unknown() {
        let shop = shop(&json!({}), Unlisted::Report);
        let sends = vec![
            PlannedCall::from(HOOK_CREATE.request()),
            PlannedCall::from(HOOK_DELETE.request()),
        ];
        let address = shop.address().section("hooks").entry("x");
        let changes = vec![FieldChange::new("url", Shown::Hidden, Shown::Hidden, None)];
        let step =
            Step::new(shop.scope, address, Action::Update, shop.origin.clone(), changes, sends);
        let settings = PlanSettings::for_run(caller(), Arc::default(), &Desired::default());
        let now = plan::plan_container(&shop, &live_container(&shop, &json!({})), &settings);
        for index in [0, 1] {
            let call_state = call_state(shop.scope, &step, index, &now);
            assert!(matches!(call_state, CallState::Unknown(_)), "{index}: {call_state:?}");
        }
    }

    /// The copy that a plan finds afterwards shows how far a renewal came.
    #[test]
    fn the_copy_shows_which_calls_of_a_renewal_succeeded() {
        let reference = Reference::Env("A".into());
        let mut secrets = Secrets::new("/", [("A".to_owned(), "https://u:secret@h/x".to_owned())]);
        secrets.resolve([&reference]);
        let settings = PlanSettings::for_run(caller(), Arc::new(secrets), &Desired::default());
        let resend = vec![Selector::parse("**").unwrap()];
        let sending = PlanSettings { resend, ..settings.clone() };
        let shop = shop(&json!({"remote_mirrors": [{"url": {"env": "A"}}]}), Unlisted::Report);
        let planned = |ids: &[u64], settings: &PlanSettings| {
            let mirror = |id: &u64| {
                json!({
                    "id": id, "url": "https://*****:*****@h/x", "enabled": true, "only_protected_branches": false,
                    "keep_divergent_refs": false, "auth_method": "password", "mirror_branch_regex": null,
                })
            };
            let live = json!({"remote_mirrors": ids.iter().map(mirror).collect::<Vec<_>>()});
            plan::plan_container(&shop, &live_container(&shop, &live), settings)
        };
        let step = &planned(&[3], &sending).findings.steps[0];
        for (ids, expected) in [
            (&[3][..], [CallState::NotApplied, CallState::NotApplied]),
            (&[3, 4], [CallState::Applied, CallState::NotApplied]),
            (&[4], [CallState::Applied, CallState::Applied]),
        ] {
            let of = |settings| {
                [0, 1].map(|index| call_state(shop.scope, step, index, &planned(ids, settings)))
            };
            assert_eq!(of(&sending), expected, "{ids:?}");
        }
        // The run no longer resends it when it reads again.
        let now = planned(&[3, 4], &settings);
        assert_eq!(
            [0, 1].map(|index| call_state(shop.scope, step, index, &now)),
            [CallState::Applied, CallState::NotApplied]
        );
    }

    #[test]
    fn an_applied_or_replaced_call_is_settled_at_any_look() {
        for op in [HOOK_CREATE, VARIABLE_CREATE, HOOK_UPDATE, PROJECT_FORK] {
            for rereads in 1..=REREAD_AFTER.len() {
                for (resent, repeatable) in [(false, false), (true, false), (false, true)] {
                    let history =
                        LostCallHistory { rereads, is_resent: resent, is_repeatable: repeatable };
                    assert_eq!(after(op, CallState::Applied, history), LossVerdict::Next);
                    assert_eq!(after(op, CallState::Other, history), LossVerdict::Other);
                }
            }
        }
    }

    #[test]
    fn a_create_that_could_duplicate_is_resent_only_after_the_last_look() {
        for (rereads, next) in REREAD_AFTER.into_iter().enumerate().skip(1) {
            let history = LostCallHistory { rereads, ..FRESH };
            assert_eq!(
                after(HOOK_CREATE, CallState::NotApplied, history),
                LossVerdict::Reread(next)
            );
        }
        let last = LostCallHistory { rereads: REREAD_AFTER.len(), ..FRESH };
        assert_eq!(after(HOOK_CREATE, CallState::NotApplied, last), LossVerdict::Resend);
        assert_eq!(
            after(HOOK_CREATE, CallState::NotApplied, LostCallHistory { is_resent: true, ..last }),
            LossVerdict::Failed
        );
        assert_eq!(REREAD_AFTER[REREAD_AFTER.len() - 1], WRITE_TIMEOUT);
    }

    #[test]
    fn a_create_of_a_unique_entry_is_resent_at_the_first_look() {
        assert_eq!(after(VARIABLE_CREATE, CallState::NotApplied, FRESH), LossVerdict::Resend);
        let resent = LostCallHistory { is_resent: true, ..FRESH };
        assert_eq!(
            after(VARIABLE_CREATE, CallState::NotApplied, resent),
            LossVerdict::Reread(REREAD_AFTER[1])
        );
        assert_eq!(
            after(
                VARIABLE_CREATE,
                CallState::NotApplied,
                LostCallHistory { rereads: REREAD_AFTER.len(), ..resent }
            ),
            LossVerdict::Failed
        );
    }

    #[test]
    fn a_repeatable_edit_is_resent_at_the_first_look() {
        let repeatable = LostCallHistory { is_repeatable: true, ..FRESH };
        assert_eq!(after(HOOK_UPDATE, CallState::NotApplied, repeatable), LossVerdict::Resend);
        assert_eq!(after(HOOK_UPDATE, unknown(), repeatable), LossVerdict::Reread(REREAD_AFTER[1]));
        assert_eq!(
            after(HOOK_UPDATE, CallState::NotApplied, FRESH),
            LossVerdict::Reread(REREAD_AFTER[1])
        );
    }

    #[test]
    fn a_fork_is_never_resent() {
        for rereads in 1..=REREAD_AFTER.len() {
            assert_ne!(
                after(
                    PROJECT_FORK,
                    CallState::NotApplied,
                    LostCallHistory { rereads, is_resent: false, is_repeatable: true }
                ),
                LossVerdict::Resend
            );
        }
    }

    #[test]
    fn an_unreadable_object_is_unknown_after_the_last_look() {
        for op in [HOOK_CREATE, VARIABLE_CREATE, HOOK_UPDATE, PROJECT_FORK] {
            assert_eq!(after(op, unknown(), FRESH), LossVerdict::Reread(REREAD_AFTER[1]));
            assert_eq!(
                after(op, unknown(), LostCallHistory { rereads: REREAD_AFTER.len(), ..FRESH }),
                LossVerdict::Unknown("unread".into())
            );
        }
    }
}
