//! What the client makes of answers.

use std::{sync::Arc, time::Duration};

use super::script::*;
use crate::{
    api::{Failure, Phase, Settings},
    operation as op,
    value::{Fields, Value},
};

fn get() -> op::Request<op::Read> {
    op::PROJECT_GET.request().arg("id", "acme/shop")
}

fn create() -> op::Request<op::Write> {
    let fields = Fields::from([("key".to_owned(), Value::from("TOKEN")), ("value".to_owned(), Value::Secret(canary()))]);
    op::VARIABLE_CREATE.request().arg("id", "acme/shop").fields(fields)
}

/// Everything that could be shown of an error.
fn shown(error: &crate::api::ApiError) -> String {
    format!("{error} {error:?} {:#} {:?}", anyhow::Error::new(error.clone()), error.hint())
}

#[tokio::test(start_paused = true)]
async fn a_secret_enters_the_body_and_nothing_else() {
    let echo = format!(r#"{{"message":{{"value":["{CANARY} is invalid"]}}}}"#);
    for reply in [json(400, &echo), json(500, &echo), html(200), lost(Phase::MaybeSent, Failure::Network)] {
        let script = Script::new([reply]);
        let client = writes(&script);
        let error = client.send(create()).await.unwrap_err();
        assert_eq!(script.first_json(), format!(r#"{{"key":"TOKEN","value":"{CANARY}"}}"#));
        let sent = script.sent.lock().unwrap()[0].request.clone();
        let all = format!("{} {client:?} {sent:?}", shown(&error));
        assert!(!all.contains("canary-5up"), "{all}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_create_whose_answer_was_lost_is_not_sent_again() {
    let ambiguous = [lost(Phase::MaybeSent, Failure::Timeout), json(500, "{}"), json(502, ""), html(200), html(201), cut(201), empty(201)];
    for reply in ambiguous {
        let script = Script::new([reply.clone(), json(201, "{}")]);
        let error = writes(&script).send(create()).await.unwrap_err();
        assert!(error.maybe_applied(), "{reply:?}");
        assert_eq!(script.times().len(), 1, "{reply:?}");
    }
    for reply in [lost(Phase::NotSent, Failure::Network), json(429, "{}"), json(409, r#"{"message":"409 Resource lock"}"#)] {
        let script = Script::new([reply.clone(), json(201, "{}")]);
        assert_eq!(writes(&script).send(create()).await.unwrap().status, 201, "{reply:?}");
        assert_eq!(script.times().len(), 2, "{reply:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_answer_of_the_service_is_neither_a_list_nor_absence() {
    let replies =
        [html(200), cut(200), empty(200), json(200, "{}"), json(200, "[1]"), json(200, "[{}"), empty(302), html(404), json(206, "[]")];
    for reply in replies {
        let script = Script::new([reply.clone()]);
        let error = reads(&script, settings()).list(op::HOOK_LIST.request().arg("id", 1)).await.unwrap_err();
        assert!(!error.is_project_not_found(), "{reply:?}");
        let script = Script::new([reply.clone()]);
        let error = reads(&script, settings()).get_optional(op::PUSH_RULE_GET.request().arg("id", 1)).await;
        assert!(
            error.is_err_and(|e| !e.is_project_not_found())
                || reply.as_ref().is_ok_and(|r| r.body.as_deref() == Ok(b"{}") || r.body.as_deref() == Ok(b"[1]"))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_before_the_service_allows_it() {
    let busy = with(429, &[("retry-after", "17")], "Retry later\n");
    let script = Script::new([busy, json(200, "{}")]);
    let client = reads(&script, settings());
    let (first, second) = tokio::join!(client.get(get()), client.get(get()));
    assert!(first.is_ok() && second.is_ok());
    let times = script.times();
    assert!(times.iter().skip(2).all(|at| *at >= Duration::from_secs(17)), "{times:?}");
    assert_eq!(client.counts()["project-get"].retries, 1);
}

#[tokio::test(start_paused = true)]
async fn after_a_401_nothing_more_is_sent() {
    let script = Script::new([json(401, r#"{"message":"401 Unauthorized"}"#), json(200, "{}")]);
    let client = reads(&script, settings());
    let first = client.get(get()).await.unwrap_err();
    assert!(first.is_unauthorized() && !first.is_stopped());
    let second = client.clone().get(get()).await.unwrap_err();
    assert!(second.is_unauthorized() && second.is_stopped());
    assert_eq!(script.times().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_budget_of_requests_and_of_time_ends_the_run() {
    let script = Script::new([json(200, "{}")]);
    let client = reads(&script, Settings { max_requests: Some(2), ..settings() });
    assert!(client.get(get()).await.is_ok() && client.get(get()).await.is_ok());
    assert!(client.get(get()).await.unwrap_err().is_over_budget());
    assert_eq!(script.times().len(), 2);

    let script = Script::new([with(429, &[("retry-after", "60")], ""), json(200, "{}")]);
    let client = reads(&script, Settings { deadline: Some(Duration::from_secs(59)), ..settings() });
    assert!(client.get(get()).await.unwrap_err().is_over_budget());
    assert_eq!(script.times(), [Duration::ZERO]);
    let _ = Arc::clone(&script);
}
