//! What comes next for a step that waits, or was answered: decided from a reading that a test makes up,
//! so that every case can be tried. Nothing is sent.

use serde_json::json;

use super::*;
use crate::{
    api::retry::MAX_RETRIES,
    apply::{
        REREAD_AFTER,
        run::{
            progress::StepProgress,
            testing::{NOW, READ_AT, reading, with_run},
        },
    },
    desired::{Container, Unlisted, testing::shop},
    kind::ImportState,
    live::{
        Live, LiveEntries, Presence,
        testing::{self, live_container},
    },
    observe::is_fatal,
    operation::{
        HOOK_CREATE, HOOK_DELETE, Op, PROJECT_CREATE, PROJECT_FORK, PROJECT_UPDATE, RetrySafety,
        SHARE_DELETE, VARIABLE_CREATE,
    },
};

/// The first step of a section, as it starts.
fn task(reading: &Reading) -> Task {
    Task {
        step: reading.plan.steps[0].clone(),
        read_time: ReadTime::default(),
        next_call: 0,
        attempt: 1,
        is_resent: false,
        may_have_changed: false,
        failure: None,
    }
}

/// How something stands: what is declared of it, what was there, and what may be there after its
/// call was lost.
struct Case {
    container: Container,
    resend: &'static [&'static str],
    before: Json,
    applied: Json,
    other: Json,
    again: RetrySafety,
    goes_stale: bool,
}

fn cases() -> Vec<Case> {
    let variable = |value: &str| json!({"key": "A", "environment_scope": "*", "value": value, "variable_type": "env_var", "protected": false, "masked": false, "raw": false});
    let hook =
        |push: bool| json!({"id": 3, "url": "https://h", "push_events": push, "token": null});
    let description = |text: &str| json!({"settings": {"id": 1, "description": text}});
    let case =
        |declared: Json, before: Json, applied: Json, other: Json, again: RetrySafety, stale| {
            Case {
                container: shop(&declared, Unlisted::Report),
                resend: &[],
                before,
                applied,
                other,
                again,
                goes_stale: stale,
            }
        };
    let one = |name: &str, entry: Json| json!({name: [entry]});
    let declared_hook = json!({"url": "https://h", "push_events": true});
    let declared_variable = json!({"key": "A", "environment_scope": "*", "value": "new"});
    vec![
        case(
            json!({"settings": {"description": "new"}}),
            description("old"),
            description("new"),
            description("third"),
            RetrySafety::Same,
            false,
        ),
        case(
            one("variables", declared_variable.clone()),
            json!({"variables": []}),
            one("variables", variable("new")),
            one("variables", variable("third")),
            RetrySafety::Refused,
            false,
        ),
        case(
            one("variables", declared_variable),
            one("variables", variable("old")),
            one("variables", variable("new")),
            one("variables", variable("third")),
            RetrySafety::Same,
            true,
        ),
        case(
            one("hooks", declared_hook),
            json!({"hooks": []}),
            one("hooks", hook(true)),
            one("hooks", hook(false)),
            RetrySafety::Second,
            true,
        ),
    ]
}

fn error(status: u16) -> ApiError {
    ApiError::answered(HOOK_CREATE.row(), status)
}

/// What a reading after a lost answer finds.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Found {
    Applied,
    NotApplied,
    Other,
    /// The section could not be read.
    Unread,
    /// The reading failed.
    Failed,
    /// The token was revoked.
    Ended,
}

impl Case {
    fn reading(&self, found: Found) -> Result<Reading> {
        let raw = match found {
            Found::Applied => &self.applied,
            Found::Other => &self.other,
            Found::NotApplied | Found::Unread => &self.before,
            Found::Failed => return Err(error(503)),
            Found::Ended => return Err(error(401)),
        };
        let mut live = live_container(&self.container, raw);
        if found == Found::Unread {
            let unread = || LiveEntries::Unreadable(Cause::new("503"));
            live.sections.values_mut().for_each(|section| *section = unread());
        }
        Ok(reading(&self.container, &live, self.resend))
    }
}

#[test]
fn the_live_state_decides_after_a_lost_answer() {
    use Found::{Applied, Ended, Failed, NotApplied, Other, Unread};
    let since = Duration::from_millis(100_200);
    for case in cases() {
        let before = live_container(&case.container, &case.before);
        let first = task(&reading(&case.container, &before, case.resend));
        let request = &first.step.sends[0].request;
        assert_eq!(
            (request.retry_safety(), request.becomes_stale()),
            (case.again, case.goes_stale)
        );
        for found in [Applied, NotApplied, Other, Unread, Failed, Ended] {
            for rereads in 1..=REREAD_AFTER.len() {
                for (resent, attempt) in
                    [(false, 1), (true, 2), (false, MAX_RETRIES), (false, MAX_RETRIES + 1)]
                {
                    let about =
                        format!("{} {found:?} {rereads} {resent} {attempt}", first.step.address);
                    let task = Task {
                        step: first.step.clone(),
                        is_resent: resent,
                        attempt,
                        ..task(&case.reading(NotApplied).unwrap())
                    };
                    let reading = case.reading(found);
                    let wait = WaitReason::Lost { error: error(502), since, rereads };
                    let (task, next) =
                        with_run(&case.container, vec![first.step.clone()], &before, |run| {
                            run.after_reading(task, wait, &reading)
                        });
                    let last = rereads == REREAD_AFTER.len();
                    let again = found == NotApplied
                        && match case.again {
                            RetrySafety::Same => case.goes_stale && attempt <= MAX_RETRIES,
                            RetrySafety::Refused => !resent,
                            _ => last && !resent,
                        };
                    match next {
                        Some(NextAction::Finished(StepOutcome::Done, None)) => {
                            assert_eq!(found, Applied, "{about}");
                        }
                        Some(NextAction::Finished(StepOutcome::ChangedMeanwhile(why), None)) => {
                            assert_eq!(found, Other, "{about}");
                            assert!(why.message.contains("neither the old nor the new"), "{why}");
                        }
                        Some(NextAction::Finished(StepOutcome::Unknown(why), Some(_))) => {
                            assert_eq!(found, Ended, "{about}");
                            assert!(why.transient && why.message.contains("read back"), "{why}");
                        }
                        Some(NextAction::Finished(StepOutcome::Unknown(why), None)) => {
                            assert!(last && matches!(found, Unread | Failed), "{about}");
                            assert!(why.transient && why.message.contains("503"), "{why}");
                        }
                        Some(NextAction::Finished(StepOutcome::Failed(why), None)) => {
                            assert!(last && found == NotApplied && !again, "{about}");
                            assert!(why.transient, "{why}");
                        }
                        Some(NextAction::Waits(
                            due,
                            WaitReason::Lost { since: began, rereads: taken, .. },
                        )) => {
                            assert!(!last && !again, "{about}");
                            assert!(matches!(found, NotApplied | Unread | Failed), "{about}");
                            // Not before now, and on a whole second.
                            let expected = (since
                                + *REREAD_AFTER.get(rereads).unwrap()
                                + Duration::from_millis(800))
                            .max(NOW);
                            assert_eq!(
                                (due, began, taken),
                                (expected, since, rereads + 1),
                                "{about}"
                            );
                        }
                        None => {
                            assert!(again, "{about}");
                            assert_eq!(task.attempt, attempt + 1, "{about}");
                            assert_eq!(
                                task.is_resent,
                                resent || case.again != RetrySafety::Same,
                                "{about}"
                            );
                            // What it repeats, or would create a second of, is as it was read last.
                            let read = if case.goes_stale { READ_AT } else { Duration::ZERO };
                            assert_eq!(
                                (task.next_call, task.read_time.ended),
                                (0, read),
                                "{about}"
                            );
                        }
                        _ => panic!("{about}"),
                    }
                }
            }
        }
    }
}

/// What a step ends with, in a word and the text of its cause.
fn ended(next: &NextAction) -> (&'static str, String, bool) {
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
    fn live(&self) -> Live {
        live_container(&self.container, &self.before)
    }

    /// The step, before anything was sent.
    fn first(&self) -> Task {
        task(&reading(&self.container, &self.live(), self.resend))
    }

    /// What comes next for `task`, which waited for `wait`, once this was found.
    fn after(&self, task: Task, wait: WaitReason, found: Found) -> (Task, Option<NextAction>) {
        let reading = self.reading(found);
        with_run(&self.container, vec![task.step.clone()], &self.live(), |run| {
            run.after_reading(task, wait, &reading)
        })
    }
}

/// A step that somebody asked for, and of which nothing can be seen to differ.
fn resent() -> Case {
    let hook =
        json!({"id": 3, "url": "https://h", "push_events": true, "alert_status": "executable"});
    let declared = json!({"hooks": [{"url": "https://h", "token": "of-the-hook"}]});
    Case {
        container: shop(&declared, Unlisted::Report),
        resend: &["**#hooks"],
        before: json!({"hooks": [hook]}),
        applied: json!({"hooks": [hook]}),
        other: json!({"hooks": []}),
        again: RetrySafety::Same,
        goes_stale: true,
    }
}

#[test]
fn a_write_only_field_is_resent_only_on_request() {
    let case = resent();
    let lost =
        |rereads| WaitReason::Lost { error: error(502), since: Duration::from_secs(100), rereads };
    let (task, next) = case.after(case.first(), lost(1), Found::Applied);
    assert!(next.is_none() && task.attempt == 2, "it is in the new plan");
    // Nothing is known of the section: the next reading may show it.
    let (_, next) = case.after(case.first(), lost(1), Found::Unread);
    assert_eq!(ended(&next.unwrap()).0, "waits");
    // Nobody asks for it any more: nothing can be found out.
    let case = Case { resend: &[], ..case };
    let (_, next) = case.after(resent().first(), lost(REREAD_AFTER.len()), Found::Applied);
    let (word, why, _) = ended(&next.unwrap());
    assert!(word == "unknown" && why.contains("does not return `token`"), "{word} {why}");
}

#[test]
fn the_live_state_decides_after_a_null_answer() {
    use Found::{Applied, Ended, Failed, NotApplied, Other, Unread};
    for case in cases() {
        for (found, word, part, ends) in [
            (Applied, "done", "", false),
            (NotApplied, "failed", "it saved nothing of the request", false),
            (Other, "failed", "it saved nothing of the request", false),
            (Unread, "failed", "503", false),
            (Failed, "failed", "could not be read again", false),
            (Ended, "failed", "could not be read again", true),
        ] {
            let (_, next) = case.after(case.first(), WaitReason::NullAnswer, found);
            let (is, why, ended) = ended(&next.unwrap());
            assert_eq!((is, ended), (word, ends), "{found:?} {why}");
            assert!(why.contains(part), "{found:?} {why}");
        }
    }
}

#[test]
fn a_refused_create_may_exist_already() {
    use Found::{Applied, Ended, Failed, NotApplied, Other, Unread};
    for case in cases().into_iter().filter(|case| case.again != RetrySafety::Same) {
        for resent in [false, true] {
            for (found, word, ends) in [
                (Applied, if resent { "done" } else { "already" }, false),
                (NotApplied, "failed", false),
                (Other, "failed", false),
                (Unread, "failed", false),
                (Failed, "failed", false),
                (Ended, "failed", true),
            ] {
                let task = Task { is_resent: resent, ..case.first() };
                let (_, next) = case.after(task, WaitReason::Refused(error(409)), found);
                let (is, why, ended) = ended(&next.unwrap());
                assert_eq!((is, ended), (word, ends), "{found:?} {resent} {why}");
                assert!(is != "failed" || why.contains("409"), "{why}");
            }
        }
    }
}

/// The service puts something into what the run creates; only then it is changed to what was planned.
#[test]
fn entries_made_by_the_service_in_a_new_container_are_updated() {
    let case = &cases()[1];
    let first = case.first();
    for (is_new, found, goes_on) in
        [(true, Found::Other, true), (true, Found::NotApplied, false), (false, Found::Other, false)]
    {
        let reading = case.reading(found);
        let (task, next) =
            with_run(&case.container, vec![first.step.clone()], &case.live(), |run| {
                if is_new {
                    let create = Step { address: case.container.address(), ..first.step.clone() };
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
                run.after_reading(case.first(), WaitReason::Refused(error(400)), &reading)
            });
        assert_eq!(next.is_none(), goes_on, "{is_new} {found:?}");
        assert_eq!(task.step.action == Action::Update, goes_on, "{is_new} {found:?}");
    }
}

/// The answer to a fork or an import shows the id of the project, and nothing else of it.
#[test]
fn a_new_container_gets_its_id_from_the_answer_to_its_creation() {
    let case = &cases()[0];
    let live = Live::with_presence(Presence::Missing(testing::target(&case.container)), NOW);
    let create = |next_call| Task {
        step: Step {
            address: case.container.address(),
            action: Action::Create,
            ..case.first().step
        },
        next_call,
        ..case.first()
    };
    let update = Task { step: Step { action: Action::Update, ..create(0).step }, ..create(0) };
    let answer = |name: &str, path: &str| json!({"id": 9, name: path});
    for (task, answer, expected) in [
        (create(0), answer("path_with_namespace", "acme/shop"), Some(9)),
        (create(0), answer("full_path", "/Acme/Shop"), Some(9)),
        (create(0), answer("full_path", "acme/other"), None),
        (create(0), json!({"id": 9}), None),
        (create(0), json!({"path_with_namespace": "acme/shop"}), None),
        (create(0), Json::Null, None),
        (create(1), answer("path_with_namespace", "acme/shop"), None),
        (update, answer("path_with_namespace", "acme/shop"), None),
        (case.first(), answer("path_with_namespace", "acme/shop"), None),
    ] {
        let id = with_run(&case.container, vec![task.step.clone()], &live, |run| {
            run.record_response(&task, &PROJECT_FORK.request(), &answer);
            run.id.get().copied()
        });
        assert_eq!(id, expected, "{answer} to {:?} of {}", task.step.action, task.step.address);
    }
}

#[test]
fn a_step_planned_again_is_sent_only_as_shown() {
    use Found::{Applied, Ended, Failed, NotApplied, Other, Unread};
    for case in cases() {
        for (found, word, ends) in [
            (NotApplied, "", false),
            (Applied, "already", false),
            (Other, "changed", false),
            (Unread, "failed", false),
            (Failed, "failed", false),
            (Ended, "failed", true),
        ] {
            let (task, next) = case.after(case.first(), WaitReason::Rebuild, found);
            let Some(next) = next else {
                assert_eq!((found, task.read_time.ended), (NotApplied, READ_AT));
                continue;
            };
            let (is, why, ended) = ended(&next);
            assert_eq!((is, ended), (word, ends), "{found:?} {why}");
            assert!(is != "failed" || why.contains("could not be read again"), "{why}");
        }
    }
}

/// A step of the same run may have done a part of it; somebody else may not.
#[test]
fn a_step_partly_done_by_this_run_is_rebuilt() {
    let both = json!({"settings": {"description": "new", "merge_method": "ff"}});
    let container = shop(&both, Unlisted::Report);
    let live = |description: &str| {
        live_container(
            &container,
            &json!({"settings": {"description": description, "merge_method": "merge"}}),
        )
    };
    let first = task(&reading(&container, &live("old"), &[]));
    for is_affected in [false, true] {
        let reading = Ok(reading(&container, &live("new"), &[]));
        let task = Task {
            step: first.step.clone(),
            may_have_changed: is_affected,
            ..task(reading.as_ref().unwrap())
        };
        let (task, next) = with_run(&container, vec![first.step.clone()], &live("old"), |run| {
            run.after_reading(task, WaitReason::Rebuild, &reading)
        });
        assert_eq!(next.is_none(), is_affected);
        let fields: Vec<_> = task.step.sends[0].request.names().collect();
        assert_eq!(fields.len(), if is_affected { 1 } else { 2 }, "{fields:?}");
    }
}

#[test]
fn waiting_steps_end_with_the_run() {
    let case = &cases()[0];
    let since = Duration::from_secs(100);
    for (wait, next_call, word, part) in [
        (
            WaitReason::Lost { error: error(502), since, rereads: 1 },
            0,
            "unknown",
            "the run ended before this could be read back",
        ),
        (WaitReason::Refused(error(409)), 0, "failed", "409"),
        (WaitReason::Contents { since }, 1, "unknown", "before its contents were imported"),
        (WaitReason::NullAnswer, 0, "unknown", "`null`"),
        (WaitReason::Rebuild, 0, "not started", ""),
        (WaitReason::Rebuild, 1, "failed", "the run ended before its last call"),
    ] {
        let first = case.first();
        let address = first.step.address.clone();
        let outcome = with_run(&case.container, vec![first.step.clone()], &case.live(), |run| {
            let mut ended =
                RunState { progress: StepProgress::new(run.steps), ..RunState::default() };
            run.end_waiting(vec![(NOW, Task { next_call, ..first }, wait)], &mut ended);
            ended.results.remove(&address).unwrap().outcome
        });
        let (is, why, _) = ended(&NextAction::Finished(outcome, None));
        assert!(is == word && why.contains(part), "{is} {why}");
    }
}

/// A tag's protection: removed and added anew, or put back if that fails.
fn replaced() -> Case {
    let tag = |level: u8| json!({"protected_tags": [{"name": "v*", "create_access_levels": [{"id": 1, "access_level": level, "access_level_description": "x"}]}]});
    let developers = json!([{"access_level": "developer"}]);
    let declared = json!({"protected_tags": [{"name": "v*", "allowed_to_create": developers}]});
    Case {
        container: shop(&declared, Unlisted::Report),
        resend: &[],
        before: tag(40),
        applied: tag(30),
        other: tag(0),
        again: RetrySafety::Second,
        goes_stale: true,
    }
}

#[test]
fn each_call_of_a_replacement_has_its_own_outcome() {
    use Found::{Applied, NotApplied, Other};
    let case = replaced();
    let gone = Case { before: json!({"protected_tags": []}), ..replaced() };
    let lost =
        |rereads| WaitReason::Lost { error: error(502), since: Duration::from_secs(100), rereads };
    let last = REREAD_AFTER.len();
    // The call, the live state, and the expected next action; "next" is the call after it.
    for (next_call, is_gone, found, rereads, word) in [
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
        let reading = if is_gone { gone.reading(found) } else { case.reading(found) };
        let task = Task { next_call, ..case.first() };
        assert_eq!(task.step.sends.len(), 3);
        let (task, next) =
            with_run(&case.container, vec![task.step.clone()], &case.live(), |run| {
                run.after_reading(task, lost(rereads), &reading)
            });
        let is = match next {
            None if task.next_call == next_call => "again",
            None => "next",
            Some(next) => ended(&next).0,
        };
        assert_eq!(is, word, "{next_call} {is_gone} {found:?} {rereads}");
    }
}

#[test]
fn a_refused_call_of_a_replacement_follows_the_live_state() {
    use Found::{Applied, NotApplied};
    let case = replaced();
    for (next_call, found, word, part) in [
        // Nothing was removed, although the service reported it.
        (1, NotApplied, "failed", "the old entry was not removed"),
        // What is there by now is not this run's.
        (1, Applied, "failed", "400"),
        (2, Applied, "already", ""),
        (2, NotApplied, "done", ""),
    ] {
        let (task, next) =
            case.after(Task { next_call, ..case.first() }, WaitReason::Refused(error(400)), found);
        let (is, why, _) = ended(&next.unwrap());
        assert!(is == word && why.contains(part), "{next_call} {found:?}: {is} {why}");
        assert_eq!(task.next_call == 3, found == NotApplied, "{next_call} {found:?}");
    }
}

/// How a step ends that did not succeed, and whether it puts back what it removed.
#[test]
fn a_failed_step_takes_back_its_changes_once() {
    let refused = || StepOutcome::Failed(Cause::new("refused"));
    let unknown = || StepOutcome::Unknown(Cause::new("lost"));
    let failed = || Some(Cause::new("refused"));
    let limited = json!({"hooks": [{"url": "https://h", "push_events": true, "push_events_branch_filter": "main"}]});
    let limited = Case {
        container: shop(&limited, Unlisted::Report),
        before: json!({"hooks": [{"id": 3, "url": "https://h", "push_events": false, "alert_status": "executable"}]}),
        ..resent()
    };
    let (tag, hook) = (replaced(), Case { resend: &[], ..limited });
    for (case, next_call, earlier, outcome, word, part) in [
        (&tag, 1, None, refused(), "goes on", ""),
        (&tag, 0, None, refused(), "failed", "refused"),
        (&tag, 1, None, unknown(), "unknown", "lost"),
        (&tag, 1, None, StepOutcome::Done, "done", ""),
        (&tag, 2, failed(), StepOutcome::Done, "failed", "what was there was put back: refused"),
        (&tag, 2, failed(), StepOutcome::Already, "failed", "someone else added it again"),
        (&tag, 2, failed(), unknown(), "failed", "putting it back failed (lost): refused"),
        (&hook, 0, None, refused(), "failed", "refused"),
        (&hook, 1, failed(), StepOutcome::Done, "failed", "refused; it was turned off again"),
        (&hook, 1, failed(), StepOutcome::Already, "failed", "refused; it was turned off again"),
        (&hook, 1, failed(), unknown(), "failed", "refused; turning it off again failed (lost)"),
    ] {
        for (is_over, has_error) in [(false, false), (true, false), (false, true)] {
            let mut task = Task { next_call, failure: earlier.clone(), ..case.first() };
            let taken = with_run(&case.container, vec![task.step.clone()], &case.live(), |run| {
                if is_over {
                    run.apply.writer.read_client().interrupt();
                }
                let error = has_error.then(|| error(401));
                run.restore_after_failure(
                    &mut task,
                    outcome.clone(),
                    &RunState { error, ..RunState::default() },
                )
            });
            let about = format!("{next_call} {earlier:?} {outcome:?} {is_over} {has_error}");
            match taken {
                None => {
                    assert!(word == "goes on" && !is_over && !has_error, "{about}");
                    assert_eq!((task.next_call, task.failure), (2, failed()), "{about}");
                }
                Some(outcome) => {
                    let (is, why, _) = ended(&NextAction::Finished(outcome, None));
                    let word = if word == "goes on" { "failed" } else { word };
                    assert!(is == word && why.contains(part), "{about}: {is} {why}");
                }
            }
        }
    }
}

#[test]
fn the_error_decides_after_a_failed_call() {
    let seconds = Duration::from_secs;
    let on = |op: Op<Write>| (op.request().arg("id", 1), op.row());
    let (edit, create) = (on(PROJECT_UPDATE), on(VARIABLE_CREATE));
    let (removal, label) = (on(HOOK_DELETE), on(SHARE_DELETE));
    let answered = |of: &(Request<Write>, _), status| ApiError::answered(of.1, status);
    let unsent = |of: &(Request<Write>, _), is_stale| ApiError::not_sent(of.1, is_stale);
    // A call, its error, at which call it is, whether it was sent again, and what comes next; "waits" for
    // a reading at that second.
    for (of, error, next_call, resent, word, due) in [
        (&edit, answered(&edit, 502).with_times(Some(seconds(102)), None), 0, false, "lost", 104),
        (
            &edit,
            answered(&edit, 502).with_times(Some(seconds(102)), Some(seconds(110))),
            0,
            false,
            "lost",
            110,
        ),
        (&edit, unsent(&edit, false).with_times(Some(seconds(102)), None), 0, false, "unknown", 0),
        (
            &edit,
            answered(&edit, 502).with_times(None, Some(seconds(110))),
            0,
            false,
            "rebuild",
            110,
        ),
        (&edit, unsent(&edit, true), 0, false, "rebuild", 5),
        (&edit, unsent(&edit, false), 0, false, "not started", 0),
        (&edit, unsent(&edit, false), 1, false, "failed", 0),
        (&edit, unsent(&edit, false), 0, true, "failed", 0),
        (&removal, answered(&removal, 412), 0, false, "changed", 0),
        (&label, answered(&label, 412), 0, false, "failed", 0),
        (&removal, answered(&removal, 403), 0, false, "failed", 0),
        (&create, answered(&create, 400), 0, false, "refused", 103),
        (&create, answered(&create, 409), 0, false, "refused", 103),
        (&create, answered(&create, 422), 0, false, "refused", 103),
        (&create, answered(&create, 403), 0, false, "failed", 0),
        (&create, answered(&create, 401), 0, false, "failed", 0),
        (&edit, answered(&edit, 400), 0, false, "failed", 0),
    ] {
        let case = &cases()[0];
        let mut task = Task { next_call, is_resent: resent, ..case.first() };
        let about = format!("{error} {next_call} {resent}");
        let ends = is_fatal(&error);
        let next = with_run(&case.container, vec![task.step.clone()], &case.live(), |run| {
            run.after_error(&mut task, &of.0, error.clone())
        });
        assert_eq!(task.attempt, 1 + u32::from(word == "rebuild" && due == 110), "{about}");
        match next {
            NextAction::Waits(at, wait) => {
                let is = match wait {
                    WaitReason::Lost { since, rereads: 1, .. } => {
                        assert_eq!(since, seconds(102), "{about}");
                        "lost"
                    }
                    WaitReason::Rebuild => "rebuild",
                    WaitReason::Refused(_) => "refused",
                    _ => "something else",
                };
                assert_eq!((is, at), (word, seconds(due)), "{about}");
            }
            next => {
                let (is, _, has_error) = ended(&next);
                assert_eq!((is, has_error), (word, ends), "{about}");
            }
        }
    }
}

#[test]
fn imported_contents_are_awaited_while_they_can_be_read() {
    let case = &cases()[0];
    let first = case.first();
    let running = || Some(ImportState::Running);
    for (arrival, next_call, status, word) in [
        (None, 1, None, "done"),
        (None, 0, None, "next"),
        (running(), 1, None, "waits"),
        (Some(ImportState::Failed(None)), 1, None, "failed"),
        (running(), 1, Some(503), "waits"),
        (None, 1, Some(503), "waits"),
        (running(), 1, Some(401), "unknown"),
    ] {
        let about = format!("{arrival:?} {next_call} {status:?}");
        let mut live = case.live();
        if let Presence::Here(_, facts) = &mut live.presence {
            facts.import_state = arrival;
        }
        let reading =
            status.map_or_else(|| case.reading(Found::NotApplied), |status| Err(error(status)));
        let task = Task { next_call, ..case.first() };
        let wait = WaitReason::Contents { since: Duration::from_secs(100) };
        let (_, next) = with_run(&case.container, vec![first.step.clone()], &live, |run| {
            run.after_reading(task, wait, &reading)
        });
        match next {
            None => assert_eq!("next", word, "{about}"),
            Some(NextAction::Waits(due, WaitReason::Contents { since })) => {
                // After three seconds it is looked for in two more.
                assert_eq!((word, due, since.as_secs()), ("waits", Duration::from_secs(105), 100));
            }
            Some(next) => {
                let (is, _, has_error) = ended(&next);
                assert_eq!((is, has_error), (word, status == Some(401)), "{about}");
            }
        }
    }
}
