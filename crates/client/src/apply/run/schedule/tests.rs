//! Tests of the next action of a step that waited or failed. Tests supply the readings, and nothing
//! is sent.

use serde_json::json;

use super::*;
use crate::{
    api::retry::MAX_RETRIES,
    apply::{
        REREAD_DELAYS,
        run::{
            progress::StepProgress,
            testing::{NOW, READ_AT, reading, with_run},
        },
    },
    desired::{Container, Unlisted, testing::shop},
    kind::ImportState,
    live::{
        LiveContainer, LiveEntries, Presence,
        testing::{self, live_container},
    },
    observe::is_fatal,
    operation::{
        HOOK_CREATE, HOOK_DELETE, Op, PROJECT_CREATE, PROJECT_FORK, PROJECT_UPDATE, RetrySafety,
        SHARE_DELETE, VARIABLE_CREATE,
    },
};

/// The task of the first planned step, before its first call.
fn first_task(reading: &Reading) -> StepTask {
    StepTask {
        step: reading.plan.steps[0].clone(),
        read_time: ReadTime::default(),
        next_call: 0,
        attempt: 1,
        is_resent: false,
        may_have_changed: false,
        failure: None,
    }
}

/// A declaration, its live state before the call, and the possible live states after a lost
/// response.
struct Case {
    container: Container,
    resend: &'static [&'static str],
    live_before: Json,
    live_applied: Json,
    live_other: Json,
    retry_safety: RetrySafety,
    becomes_stale: bool,
}

fn cases() -> Vec<Case> {
    let variable = |value: &str| json!({"key": "A", "environment_scope": "*", "value": value, "variable_type": "env_var", "protected": false, "masked": false, "raw": false});
    let hook =
        |push: bool| json!({"id": 3, "url": "https://h", "push_events": push, "token": null});
    let description = |text: &str| json!({"settings": {"id": 1, "description": text}});
    let new_case =
        |declared: Json, before: Json, applied: Json, other: Json, safety: RetrySafety, stale| {
            Case {
                container: shop(&declared, Unlisted::Report),
                resend: &[],
                live_before: before,
                live_applied: applied,
                live_other: other,
                retry_safety: safety,
                becomes_stale: stale,
            }
        };
    let single_entry = |name: &str, entry: Json| json!({name: [entry]});
    let declared_hook = json!({"url": "https://h", "push_events": true});
    let declared_variable = json!({"key": "A", "environment_scope": "*", "value": "new"});
    vec![
        new_case(
            json!({"settings": {"description": "new"}}),
            description("old"),
            description("new"),
            description("third"),
            RetrySafety::Idempotent,
            false,
        ),
        new_case(
            single_entry("variables", declared_variable.clone()),
            json!({"variables": []}),
            single_entry("variables", variable("new")),
            single_entry("variables", variable("third")),
            RetrySafety::RefusesDuplicates,
            false,
        ),
        new_case(
            single_entry("variables", declared_variable),
            single_entry("variables", variable("old")),
            single_entry("variables", variable("new")),
            single_entry("variables", variable("third")),
            RetrySafety::Idempotent,
            true,
        ),
        new_case(
            single_entry("hooks", declared_hook),
            json!({"hooks": []}),
            single_entry("hooks", hook(true)),
            single_entry("hooks", hook(false)),
            RetrySafety::MayDuplicate,
            true,
        ),
    ]
}

fn error(status: u16) -> ApiError {
    ApiError::with_status(HOOK_CREATE.row(), status)
}

/// The result of a reading after a lost response.
#[derive(Clone, Copy, Debug, PartialEq)]
enum RereadResult {
    Applied,
    NotApplied,
    Other,
    /// The section could not be read.
    SectionUnread,
    /// The reading failed.
    Failed,
    /// The token was revoked.
    RunEnded,
}

impl Case {
    fn reading(&self, reread: RereadResult) -> Result<Reading> {
        let raw = match reread {
            RereadResult::Applied => &self.live_applied,
            RereadResult::Other => &self.live_other,
            RereadResult::NotApplied | RereadResult::SectionUnread => &self.live_before,
            RereadResult::Failed => return Err(error(503)),
            RereadResult::RunEnded => return Err(error(401)),
        };
        let mut live = live_container(&self.container, raw);
        if reread == RereadResult::SectionUnread {
            let unread = || LiveEntries::Unreadable(Cause::new("503"));
            live.sections.values_mut().for_each(|section| *section = unread());
        }
        Ok(reading(&self.container, &live, self.resend))
    }
}

#[test]
fn the_live_state_decides_after_a_lost_response() {
    use RereadResult::{Applied, Failed, NotApplied, Other, RunEnded, SectionUnread};
    let since = Duration::from_millis(100_200);
    for case in cases() {
        let before = live_container(&case.container, &case.live_before);
        let planned_task = first_task(&reading(&case.container, &before, case.resend));
        let request = &planned_task.step.planned_calls[0].request;
        assert_eq!(
            (request.retry_safety(), request.becomes_stale()),
            (case.retry_safety, case.becomes_stale)
        );
        for reread in [Applied, NotApplied, Other, SectionUnread, Failed, RunEnded] {
            for reread_number in 1..=REREAD_DELAYS.len() {
                for (resent, attempt) in
                    [(false, 1), (true, 2), (false, MAX_RETRIES), (false, MAX_RETRIES + 1)]
                {
                    let context = format!(
                        "{} {reread:?} {reread_number} {resent} {attempt}",
                        planned_task.step.address
                    );
                    let task = StepTask {
                        step: planned_task.step.clone(),
                        is_resent: resent,
                        attempt,
                        ..first_task(&case.reading(NotApplied).unwrap())
                    };
                    let reading = case.reading(reread);
                    let wait_reason = WaitReason::Lost { error: error(502), since, reread_number };
                    let (task, next) = with_run(
                        &case.container,
                        vec![planned_task.step.clone()],
                        &before,
                        |run| run.action_after_reading(task, wait_reason, &reading),
                    );
                    let is_last = reread_number == REREAD_DELAYS.len();
                    let may_resend = reread == NotApplied
                        && match case.retry_safety {
                            RetrySafety::Idempotent => case.becomes_stale && attempt <= MAX_RETRIES,
                            RetrySafety::RefusesDuplicates => !resent,
                            _ => is_last && !resent,
                        };
                    match next {
                        Some(NextAction::Finished(StepOutcome::Done, None)) => {
                            assert_eq!(reread, Applied, "{context}");
                        }
                        Some(NextAction::Finished(StepOutcome::ChangedMeanwhile(cause), None)) => {
                            assert_eq!(reread, Other, "{context}");
                            assert!(
                                cause.message.contains("neither the old nor the new"),
                                "{cause}"
                            );
                        }
                        Some(NextAction::Finished(StepOutcome::Unknown(cause), Some(_))) => {
                            assert_eq!(reread, RunEnded, "{context}");
                            assert!(
                                cause.transient && cause.message.contains("read back"),
                                "{cause}"
                            );
                        }
                        Some(NextAction::Finished(StepOutcome::Unknown(cause), None)) => {
                            assert!(
                                is_last && matches!(reread, SectionUnread | Failed),
                                "{context}"
                            );
                            assert!(cause.transient && cause.message.contains("503"), "{cause}");
                        }
                        Some(NextAction::Finished(StepOutcome::Failed(cause), None)) => {
                            assert!(is_last && reread == NotApplied && !may_resend, "{context}");
                            assert!(cause.transient, "{cause}");
                        }
                        Some(NextAction::WaitUntil(
                            due,
                            WaitReason::Lost {
                                since: next_since, reread_number: next_rereads, ..
                            },
                        )) => {
                            assert!(!is_last && !may_resend, "{context}");
                            assert!(
                                matches!(reread, NotApplied | SectionUnread | Failed),
                                "{context}"
                            );
                            // The reading is due at a whole second, and not before now.
                            let expected = (since
                                + *REREAD_DELAYS.get(reread_number).unwrap()
                                + Duration::from_millis(800))
                            .max(NOW);
                            assert_eq!(
                                (due, next_since, next_rereads),
                                (expected, since, reread_number + 1),
                                "{context}"
                            );
                        }
                        None => {
                            assert!(may_resend, "{context}");
                            assert_eq!(task.attempt, attempt + 1, "{context}");
                            assert_eq!(
                                task.is_resent,
                                resent || case.retry_safety != RetrySafety::Idempotent,
                                "{context}"
                            );
                            // A request that can become stale is built from the last reading.
                            let read_at = if case.becomes_stale { READ_AT } else { Duration::ZERO };
                            assert_eq!(
                                (task.next_call, task.read_time.end),
                                (0, read_at),
                                "{context}"
                            );
                        }
                        _ => panic!("{context}"),
                    }
                }
            }
        }
    }
}

/// The end of a step: a word for its outcome, the text of its cause, and true if it has an error.
fn describe_end(next: &NextAction) -> (&'static str, String, bool) {
    let NextAction::Finished(outcome, error) = next else { return ("waits", String::new(), false) };
    let word = match outcome {
        StepOutcome::Done => "done",
        StepOutcome::Already => "already",
        StepOutcome::Failed(_) => "failed",
        StepOutcome::ChangedMeanwhile(_) => "changed",
        StepOutcome::Skipped(_) => "skipped",
        StepOutcome::NotStarted => "not started",
        StepOutcome::Unknown(_) => "unknown",
    };
    (
        word,
        outcome.cause().map_or_else(String::new, |cause| cause.message.to_string()),
        error.is_some(),
    )
}

impl Case {
    fn live(&self) -> LiveContainer {
        live_container(&self.container, &self.live_before)
    }

    /// The task of the first step, before its first call.
    fn first_task(&self) -> StepTask {
        first_task(&reading(&self.container, &self.live(), self.resend))
    }

    /// The next action of `task`, which waited because of `wait_reason`, after a reading with this
    /// result.
    fn next_action(
        &self,
        task: StepTask,
        wait_reason: WaitReason,
        reread: RereadResult,
    ) -> (StepTask, Option<NextAction>) {
        let reading = self.reading(reread);
        with_run(&self.container, vec![task.step.clone()], &self.live(), |run| {
            run.action_after_reading(task, wait_reason, &reading)
        })
    }
}

/// A step that resends a write-only field, so its effect is not visible.
fn resend_case() -> Case {
    let hook =
        json!({"id": 3, "url": "https://h", "push_events": true, "alert_status": "executable"});
    let declared = json!({"hooks": [{"url": "https://h", "token": "of-the-hook"}]});
    Case {
        container: shop(&declared, Unlisted::Report),
        resend: &["**#hooks"],
        live_before: json!({"hooks": [hook]}),
        live_applied: json!({"hooks": [hook]}),
        live_other: json!({"hooks": []}),
        retry_safety: RetrySafety::Idempotent,
        becomes_stale: true,
    }
}

#[test]
fn a_write_only_field_is_resent_only_on_request() {
    let case = resend_case();
    let lost_reason = |rereads| WaitReason::Lost {
        error: error(502),
        since: Duration::from_secs(100),
        reread_number: rereads,
    };
    let (task, next) = case.next_action(case.first_task(), lost_reason(1), RereadResult::Applied);
    assert!(next.is_none() && task.attempt == 2, "it is in the new plan");
    // The section could not be read: the next reading may succeed.
    let (_, next) =
        case.next_action(case.first_task(), lost_reason(1), RereadResult::SectionUnread);
    assert_eq!(describe_end(&next.unwrap()).0, "waits");
    // The new plan does not resend the field, so the outcome is unknown.
    let case = Case { resend: &[], ..case };
    let (_, next) = case.next_action(
        resend_case().first_task(),
        lost_reason(REREAD_DELAYS.len()),
        RereadResult::Applied,
    );
    let (word, why, _) = describe_end(&next.unwrap());
    assert!(word == "unknown" && why.contains("does not return `token`"), "{word} {why}");
}

#[test]
fn the_live_state_decides_after_a_null_response() {
    use RereadResult::{Applied, Failed, NotApplied, Other, RunEnded, SectionUnread};
    for case in cases() {
        for (reread, expected, expected_text, has_error) in [
            (Applied, "done", "", false),
            (NotApplied, "failed", "it saved nothing of the request", false),
            (Other, "failed", "it saved nothing of the request", false),
            (SectionUnread, "failed", "503", false),
            (Failed, "failed", "could not be read again", false),
            (RunEnded, "failed", "could not be read again", true),
        ] {
            let (_, next) = case.next_action(case.first_task(), WaitReason::NullResponse, reread);
            let (actual, why, ended_with_error) = describe_end(&next.unwrap());
            assert_eq!((actual, ended_with_error), (expected, has_error), "{reread:?} {why}");
            assert!(why.contains(expected_text), "{reread:?} {why}");
        }
    }
}

#[test]
fn a_refused_create_may_exist_already() {
    use RereadResult::{Applied, Failed, NotApplied, Other, RunEnded, SectionUnread};
    for case in cases().into_iter().filter(|case| case.retry_safety != RetrySafety::Idempotent) {
        for resent in [false, true] {
            for (reread, expected, has_error) in [
                (Applied, if resent { "done" } else { "already" }, false),
                (NotApplied, "failed", false),
                (Other, "failed", false),
                (SectionUnread, "failed", false),
                (Failed, "failed", false),
                (RunEnded, "failed", true),
            ] {
                let task = StepTask { is_resent: resent, ..case.first_task() };
                let (_, next) = case.next_action(task, WaitReason::Refused(error(409)), reread);
                let (end, why, is_error) = describe_end(&next.unwrap());
                assert_eq!((end, is_error), (expected, has_error), "{reread:?} {resent} {why}");
                assert!(end != "failed" || why.contains("409"), "{why}");
            }
        }
    }
}

/// The service may add entries to a container that the run creates. Only such entries are updated.
#[test]
fn entries_made_by_the_service_in_a_new_container_are_updated() {
    let case = &cases()[1];
    let initial_task = case.first_task();
    for (is_new, reread, is_updated) in [
        (true, RereadResult::Other, true),
        (true, RereadResult::NotApplied, false),
        (false, RereadResult::Other, false),
    ] {
        let reading = case.reading(reread);
        let (task, next) =
            with_run(&case.container, vec![initial_task.step.clone()], &case.live(), |run| {
                if is_new {
                    let create =
                        Step { address: case.container.address(), ..initial_task.step.clone() };
                    let request = PROJECT_CREATE.request();
                    let mut cache = run.cache.borrow_mut();
                    cache.record_response(
                        &case.container,
                        &create,
                        &request,
                        &Json::Null,
                        None,
                        NOW,
                    );
                }
                run.action_after_reading(
                    case.first_task(),
                    WaitReason::Refused(error(400)),
                    &reading,
                )
            });
        assert_eq!(next.is_none(), is_updated, "{is_new} {reread:?}");
        assert_eq!(task.step.action == Action::Update, is_updated, "{is_new} {reread:?}");
    }
}

/// From the response to a fork or an import, only the id of the project is used.
#[test]
fn a_new_container_gets_its_id_from_the_response_to_its_creation() {
    let case = &cases()[0];
    let live =
        LiveContainer::with_presence(Presence::Missing(testing::target(&case.container)), NOW);
    let create_task = |next_call| StepTask {
        step: Step {
            address: case.container.address(),
            action: Action::Create,
            ..case.first_task().step
        },
        next_call,
        ..case.first_task()
    };
    let update_task =
        StepTask { step: Step { action: Action::Update, ..create_task(0).step }, ..create_task(0) };
    let make_response = |name: &str, path: &str| json!({"id": 9, name: path});
    for (task, response, expected) in [
        (create_task(0), make_response("path_with_namespace", "acme/shop"), Some(9)),
        (create_task(0), make_response("full_path", "/Acme/Shop"), Some(9)),
        (create_task(0), make_response("full_path", "acme/other"), None),
        (create_task(0), json!({"id": 9}), None),
        (create_task(0), json!({"path_with_namespace": "acme/shop"}), None),
        (create_task(0), Json::Null, None),
        (create_task(1), make_response("path_with_namespace", "acme/shop"), None),
        (update_task, make_response("path_with_namespace", "acme/shop"), None),
        (case.first_task(), make_response("path_with_namespace", "acme/shop"), None),
    ] {
        let id = with_run(&case.container, vec![task.step.clone()], &live, |run| {
            run.record_response(&task, &PROJECT_FORK.request(), &response);
            run.id.get().copied()
        });
        assert_eq!(id, expected, "{response} to {:?} of {}", task.step.action, task.step.address);
    }
}

#[test]
fn a_step_planned_again_is_sent_only_as_shown() {
    use RereadResult::{Applied, Failed, NotApplied, Other, RunEnded, SectionUnread};
    for case in cases() {
        for (reread, expected, has_error) in [
            (NotApplied, "", false),
            (Applied, "already", false),
            (Other, "changed", false),
            (SectionUnread, "failed", false),
            (Failed, "failed", false),
            (RunEnded, "failed", true),
        ] {
            let (task, next) = case.next_action(case.first_task(), WaitReason::Rebuild, reread);
            let Some(next) = next else {
                assert_eq!((reread, task.read_time.end), (NotApplied, READ_AT));
                continue;
            };
            let (actual, why, ended_with_error) = describe_end(&next);
            assert_eq!((actual, ended_with_error), (expected, has_error), "{reread:?} {why}");
            assert!(actual != "failed" || why.contains("could not be read again"), "{why}");
        }
    }
}

/// A step is rebuilt if another step of the same run did a part of it, but not if another user did
/// a part.
#[test]
fn a_step_partly_done_by_this_run_is_rebuilt() {
    let sections = json!({"settings": {"description": "new", "merge_method": "ff"}});
    let container = shop(&sections, Unlisted::Report);
    let live_with_description = |description: &str| {
        live_container(
            &container,
            &json!({"settings": {"description": description, "merge_method": "merge"}}),
        )
    };
    let initial_task = first_task(&reading(&container, &live_with_description("old"), &[]));
    for is_affected in [false, true] {
        let reading = Ok(reading(&container, &live_with_description("new"), &[]));
        let task = StepTask {
            step: initial_task.step.clone(),
            may_have_changed: is_affected,
            ..first_task(reading.as_ref().unwrap())
        };
        let (task, next) = with_run(
            &container,
            vec![initial_task.step.clone()],
            &live_with_description("old"),
            |run| run.action_after_reading(task, WaitReason::Rebuild, &reading),
        );
        assert_eq!(next.is_none(), is_affected);
        let fields: Vec<_> = task.step.planned_calls[0].request.body_names().collect();
        assert_eq!(fields.len(), if is_affected { 1 } else { 2 }, "{fields:?}");
    }
}

#[test]
fn waiting_steps_end_with_the_run() {
    let case = &cases()[0];
    let since = Duration::from_secs(100);
    for (wait_reason, next_call, expected, expected_text) in [
        (
            WaitReason::Lost { error: error(502), since, reread_number: 1 },
            0,
            "unknown",
            "the run ended before this could be read back",
        ),
        (WaitReason::Refused(error(409)), 0, "failed", "409"),
        (WaitReason::Arrival { since }, 1, "unknown", "before its contents were imported"),
        (WaitReason::NullResponse, 0, "unknown", "`null`"),
        (WaitReason::Rebuild, 0, "not started", ""),
        (WaitReason::Rebuild, 1, "failed", "the run ended before its last call"),
    ] {
        let initial_task = case.first_task();
        let address = initial_task.step.address.clone();
        let outcome =
            with_run(&case.container, vec![initial_task.step.clone()], &case.live(), |run| {
                let mut ended =
                    RunState { progress: StepProgress::new(run.steps), ..RunState::default() };
                run.end_waiting_tasks(
                    vec![(NOW, StepTask { next_call, ..initial_task }, wait_reason)],
                    &mut ended,
                );
                ended.results.remove(&address).unwrap().outcome
            });
        let (end, why, _) = describe_end(&NextAction::Finished(outcome, None));
        assert!(end == expected && why.contains(expected_text), "{end} {why}");
    }
}

/// The protection of a tag is removed and created again. If the creation fails, the old protection
/// is restored.
fn replacement_case() -> Case {
    let tag = |level: u8| json!({"protected_tags": [{"name": "v*", "create_access_levels": [{"id": 1, "access_level": level, "access_level_description": "x"}]}]});
    let developers = json!([{"access_level": "developer"}]);
    let declared = json!({"protected_tags": [{"name": "v*", "allowed_to_create": developers}]});
    Case {
        container: shop(&declared, Unlisted::Report),
        resend: &[],
        live_before: tag(40),
        live_applied: tag(30),
        live_other: tag(0),
        retry_safety: RetrySafety::MayDuplicate,
        becomes_stale: true,
    }
}

#[test]
fn each_call_of_a_replacement_has_its_own_outcome() {
    use RereadResult::{Applied, NotApplied, Other};
    let case = replacement_case();
    let removed_case = Case { live_before: json!({"protected_tags": []}), ..replacement_case() };
    let lost_reason = |rereads| WaitReason::Lost {
        error: error(502),
        since: Duration::from_secs(100),
        reread_number: rereads,
    };
    let last = REREAD_DELAYS.len();
    // A row has the index of the call, and true if the old object is removed. Then follow the live
    // state, the number of the reading, and the expected next action. "next" means that the next
    // call is sent.
    for (next_call, is_removed, reread, rereads, expected) in [
        (0, false, NotApplied, 1, "waits"),
        (0, false, NotApplied, last, "again"),
        (0, true, NotApplied, 1, "next"),
        (0, false, Other, 1, "changed"),
        (1, true, NotApplied, 1, "again"),
        (1, false, Applied, 1, "done"),
        (1, false, Other, 1, "changed"),
        (2, true, NotApplied, 1, "again"),
        (2, false, NotApplied, 1, "done"),
    ] {
        let reading = if is_removed { removed_case.reading(reread) } else { case.reading(reread) };
        let task = StepTask { next_call, ..case.first_task() };
        assert_eq!(task.step.planned_calls.len(), 3);
        let (task, next) =
            with_run(&case.container, vec![task.step.clone()], &case.live(), |run| {
                run.action_after_reading(task, lost_reason(rereads), &reading)
            });
        let actual = match next {
            None if task.next_call == next_call => "again",
            None => "next",
            Some(next) => describe_end(&next).0,
        };
        assert_eq!(actual, expected, "{next_call} {is_removed} {reread:?} {rereads}");
    }
}

#[test]
fn a_refused_call_of_a_replacement_follows_the_live_state() {
    use RereadResult::{Applied, NotApplied};
    let case = replacement_case();
    for (next_call, reread, expected, expected_text) in [
        // Nothing was removed, although the service reported success.
        (1, NotApplied, "failed", "the old entry was not removed"),
        // The present object was not created by this run.
        (1, Applied, "failed", "400"),
        (2, Applied, "already", ""),
        (2, NotApplied, "done", ""),
    ] {
        let (task, next) = case.next_action(
            StepTask { next_call, ..case.first_task() },
            WaitReason::Refused(error(400)),
            reread,
        );
        let (end, why, _) = describe_end(&next.unwrap());
        assert!(
            end == expected && why.contains(expected_text),
            "{next_call} {reread:?}: {end} {why}"
        );
        assert_eq!(task.next_call == 3, reread == NotApplied, "{next_call} {reread:?}");
    }
}

/// A failed step restores a removed object, or turns off a switch again, exactly once.
#[test]
fn a_failed_step_restores_or_undoes_once() {
    let refused_outcome = || StepOutcome::Failed(Cause::new("refused"));
    let unknown_outcome = || StepOutcome::Unknown(Cause::new("lost"));
    let failure_cause = || Some(Cause::new("refused"));
    let declared = json!({"hooks": [{"url": "https://h", "push_events": true, "push_events_branch_filter": "main"}]});
    let limited_case = Case {
        container: shop(&declared, Unlisted::Report),
        live_before: json!({"hooks": [{"id": 3, "url": "https://h", "push_events": false, "alert_status": "executable"}]}),
        ..resend_case()
    };
    let (tag_case, hook_case) = (replacement_case(), Case { resend: &[], ..limited_case });
    for (case, next_call, earlier_failure, outcome, expected, expected_text) in [
        (&tag_case, 1, None, refused_outcome(), "goes on", ""),
        (&tag_case, 0, None, refused_outcome(), "failed", "refused"),
        (&tag_case, 1, None, unknown_outcome(), "unknown", "lost"),
        (&tag_case, 1, None, StepOutcome::Done, "done", ""),
        (
            &tag_case,
            2,
            failure_cause(),
            StepOutcome::Done,
            "failed",
            "the old object was restored: refused",
        ),
        (
            &tag_case,
            2,
            failure_cause(),
            StepOutcome::Already,
            "failed",
            "someone else added it again",
        ),
        (
            &tag_case,
            2,
            failure_cause(),
            unknown_outcome(),
            "failed",
            "restoring it failed (lost): refused",
        ),
        (&hook_case, 0, None, refused_outcome(), "failed", "refused"),
        (
            &hook_case,
            1,
            failure_cause(),
            StepOutcome::Done,
            "failed",
            "refused; it was turned off again",
        ),
        (
            &hook_case,
            1,
            failure_cause(),
            StepOutcome::Already,
            "failed",
            "refused; it was turned off again",
        ),
        (
            &hook_case,
            1,
            failure_cause(),
            unknown_outcome(),
            "failed",
            "refused; turning it off again failed (lost)",
        ),
    ] {
        for (is_run_over, has_error) in [(false, false), (true, false), (false, true)] {
            let mut task =
                StepTask { next_call, failure: earlier_failure.clone(), ..case.first_task() };
            let final_outcome =
                with_run(&case.container, vec![task.step.clone()], &case.live(), |run| {
                    if is_run_over {
                        run.apply.writer.read_client().interrupt();
                    }
                    let error = has_error.then(|| error(401));
                    run.restore_after_failure(
                        &mut task,
                        outcome.clone(),
                        &RunState { error, ..RunState::default() },
                    )
                });
            let label =
                format!("{next_call} {earlier_failure:?} {outcome:?} {is_run_over} {has_error}");
            match final_outcome {
                None => {
                    assert!(expected == "goes on" && !is_run_over && !has_error, "{label}");
                    assert_eq!((task.next_call, task.failure), (2, failure_cause()), "{label}");
                }
                Some(outcome) => {
                    let (end, why, _) = describe_end(&NextAction::Finished(outcome, None));
                    let expected = if expected == "goes on" { "failed" } else { expected };
                    assert!(end == expected && why.contains(expected_text), "{label}: {end} {why}");
                }
            }
        }
    }
}

#[test]
fn the_error_decides_after_a_failed_call() {
    let seconds = Duration::from_secs;
    let make_call = |op: Op<Write>| (op.request().with_argument("id", 1), op.row());
    let (edit, create) = (make_call(PROJECT_UPDATE), make_call(VARIABLE_CREATE));
    let (removal, unshare) = (make_call(HOOK_DELETE), make_call(SHARE_DELETE));
    let answered_error = |call: &(Request<Write>, _), status| ApiError::with_status(call.1, status);
    let unsent_error = |call: &(Request<Write>, _), is_stale| ApiError::not_sent(call.1, is_stale);
    // A row has a call, its error, the index of the call, and true if the call was resent. Then
    // follow the expected next action, and the second of its reading.
    for (call, error, next_call, resent, expected, due) in [
        (
            &edit,
            answered_error(&edit, 502).with_times(Some(seconds(102)), None),
            0,
            false,
            "lost",
            104,
        ),
        (
            &edit,
            answered_error(&edit, 502).with_times(Some(seconds(102)), Some(seconds(110))),
            0,
            false,
            "lost",
            110,
        ),
        (
            &edit,
            unsent_error(&edit, false).with_times(Some(seconds(102)), None),
            0,
            false,
            "unknown",
            0,
        ),
        (
            &edit,
            answered_error(&edit, 502).with_times(None, Some(seconds(110))),
            0,
            false,
            "rebuild",
            110,
        ),
        (&edit, unsent_error(&edit, true), 0, false, "rebuild", 5),
        (&edit, unsent_error(&edit, false), 0, false, "not started", 0),
        (&edit, unsent_error(&edit, false), 1, false, "failed", 0),
        (&edit, unsent_error(&edit, false), 0, true, "failed", 0),
        (&removal, answered_error(&removal, 412), 0, false, "changed", 0),
        (&unshare, answered_error(&unshare, 412), 0, false, "failed", 0),
        (&removal, answered_error(&removal, 403), 0, false, "failed", 0),
        (&create, answered_error(&create, 400), 0, false, "refused", 103),
        (&create, answered_error(&create, 409), 0, false, "refused", 103),
        (&create, answered_error(&create, 422), 0, false, "refused", 103),
        (&create, answered_error(&create, 403), 0, false, "failed", 0),
        (&create, answered_error(&create, 401), 0, false, "failed", 0),
        (&edit, answered_error(&edit, 400), 0, false, "failed", 0),
    ] {
        let case = &cases()[0];
        let mut task = StepTask { next_call, is_resent: resent, ..case.first_task() };
        let label = format!("{error} {next_call} {resent}");
        let is_fatal_error = is_fatal(&error);
        let next = with_run(&case.container, vec![task.step.clone()], &case.live(), |run| {
            run.action_after_error(&mut task, &call.0, error.clone())
        });
        assert_eq!(task.attempt, 1 + u32::from(expected == "rebuild" && due == 110), "{label}");
        match next {
            NextAction::WaitUntil(instant, wait_reason) => {
                let actual = match wait_reason {
                    WaitReason::Lost { since, reread_number: 1, .. } => {
                        assert_eq!(since, seconds(102), "{label}");
                        "lost"
                    }
                    WaitReason::Rebuild => "rebuild",
                    WaitReason::Refused(_) => "refused",
                    _ => "something else",
                };
                assert_eq!((actual, instant), (expected, seconds(due)), "{label}");
            }
            next => {
                let (end, _, has_error) = describe_end(&next);
                assert_eq!((end, has_error), (expected, is_fatal_error), "{label}");
            }
        }
    }
}

#[test]
fn imported_contents_are_awaited_while_they_can_be_read() {
    let case = &cases()[0];
    let initial_task = case.first_task();
    let running_import = || Some(ImportState::Running);
    for (import_state, next_call, status, expected) in [
        (None, 1, None, "done"),
        (None, 0, None, "next"),
        (running_import(), 1, None, "waits"),
        (Some(ImportState::Failed(None)), 1, None, "failed"),
        (running_import(), 1, Some(503), "waits"),
        (None, 1, Some(503), "waits"),
        (running_import(), 1, Some(401), "unknown"),
    ] {
        let label = format!("{import_state:?} {next_call} {status:?}");
        let mut live = case.live();
        if let Presence::Existing(_, facts) = &mut live.presence {
            facts.import_state = import_state;
        }
        let reading = status
            .map_or_else(|| case.reading(RereadResult::NotApplied), |status| Err(error(status)));
        let task = StepTask { next_call, ..case.first_task() };
        let wait_reason = WaitReason::Arrival { since: Duration::from_secs(100) };
        let (_, next) = with_run(&case.container, vec![initial_task.step.clone()], &live, |run| {
            run.action_after_reading(task, wait_reason, &reading)
        });
        match next {
            None => assert_eq!("next", expected, "{label}"),
            Some(NextAction::WaitUntil(due, WaitReason::Arrival { since })) => {
                // Three seconds have passed. The next reading is due two seconds later.
                assert_eq!(
                    (expected, due, since.as_secs()),
                    ("waits", Duration::from_secs(105), 100)
                );
            }
            Some(next) => {
                let (end, _, has_error) = describe_end(&next);
                assert_eq!((end, has_error), (expected, status == Some(401)), "{label}");
            }
        }
    }
}
