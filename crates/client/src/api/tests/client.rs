//! Tests of how the client judges responses.

use std::time::Duration;

use futures_util::future::join_all;
use proptest::prelude::*;

use super::script::*;
use crate::{
    api::{
        ApiError, ClientSettings, EncodedBody, Freshness, InFlightRange, RequestPhase,
        SendErrorKind, quote::QuoteRedactor, retry::SendOutcome,
    },
    field::Scope,
    operation as op,
    operation::{Method, Operation, ResponseBody, collection},
    page::EntryKeys,
    secret::{Reference, Secrets},
    value::{Fields, Json, Value},
};

fn project_request() -> op::Request<op::Read> {
    op::PROJECT_GET.request().with_argument("id", "acme/shop")
}

/// The error of a single read that gets this reply.
async fn get_error(reply: Reply) -> ApiError {
    read_client(&Script::new([reply]), settings()).get(project_request()).await.unwrap_err()
}

fn variable_create_request() -> op::Request<op::Write> {
    let fields = Fields::from([
        ("key".to_owned(), Value::from("TOKEN")),
        ("value".to_owned(), Value::Secret(canary_reference())),
    ]);
    op::VARIABLE_CREATE.request().with_argument("id", "acme/shop").with_fields(fields)
}

/// All texts of an error, joined.
fn all_texts(error: &crate::api::ApiError) -> String {
    format!("{error} {error:?} {:#} {:?}", anyhow::Error::new(error.clone()), error.hint())
}

#[tokio::test(start_paused = true)]
async fn a_secret_enters_the_body_and_nothing_else() {
    let echo = format!(r#"{{"message":{{"value":["{CANARY} is invalid"]}}}}"#);
    for reply in [
        json_response(400, &echo),
        json_response(500, &echo),
        html_response(200),
        send_failure(RequestPhase::MaybeSent, SendErrorKind::Network),
    ] {
        let script = Script::new([reply]);
        let client = write_client(&script);
        let error = client.send(variable_create_request()).await.unwrap_err();
        assert_eq!(script.first_json(), format!(r#"{{"key":"TOKEN","value":"{CANARY}"}}"#));
        let sent_request = script.sent.lock().unwrap()[0].request.clone();
        let texts = format!("{} {client:?} {sent_request:?}", all_texts(&error));
        assert!(!texts.contains("canary-5up"), "{texts}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_create_whose_response_was_lost_is_not_sent_again() {
    let ambiguous_replies = [
        send_failure(RequestPhase::MaybeSent, SendErrorKind::Timeout),
        json_response(500, "{}"),
        json_response(502, ""),
        html_response(200),
        html_response(201),
        truncated_response(201),
        empty_response(201),
    ];
    for reply in ambiguous_replies {
        let script = Script::new([reply.clone(), json_response(201, "{}")]);
        let error = write_client(&script).send(variable_create_request()).await.unwrap_err();
        assert!(error.in_doubt_since().is_some(), "{reply:?}");
        assert_eq!(script.sent_times().len(), 1, "{reply:?}");
    }
    for reply in [
        send_failure(RequestPhase::NotSent, SendErrorKind::Network),
        json_response(429, "{}"),
        json_response(409, r#"{"message":"409 Resource lock"}"#),
        // Another request has just created the same topic.
        json_response(
            400,
            r#"{"message":{"base":["PG::UniqueViolation: ERROR: duplicate key value violates unique constraint \"index_topics_on_organization_id_and_name\""]}}"#,
        ),
    ] {
        let script = Script::new([reply.clone(), json_response(201, "{}")]);
        assert_eq!(
            write_client(&script).send(variable_create_request()).await.unwrap().status,
            201,
            "{reply:?}"
        );
        assert_eq!(script.sent_times().len(), 2, "{reply:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_idempotent_write_is_sent_again_and_may_end_in_doubt() {
    let update_request = || {
        op::PROJECT_UPDATE
            .request()
            .with_argument("id", 1)
            .with_fields(Fields::from([("name".to_owned(), Value::from("x"))]))
    };
    let lost = send_failure(RequestPhase::MaybeSent, SendErrorKind::Network);
    let table = [
        (vec![lost.clone(), json_response(200, "{}")], 2, Ok(())),
        (vec![lost.clone()], 6, Err(true)),
        (vec![json_response(503, "{}")], 6, Err(true)),
        (vec![html_response(200)], 6, Err(true)),
        (vec![lost, json_response(400, "{}")], 2, Err(true)),
        (vec![send_failure(RequestPhase::NotSent, SendErrorKind::Network)], 6, Err(false)),
        (
            vec![
                send_failure(RequestPhase::NotSent, SendErrorKind::Network),
                json_response(400, "{}"),
            ],
            2,
            Err(false),
        ),
        (vec![send_failure(RequestPhase::NotSent, SendErrorKind::Tls)], 1, Err(false)),
        (vec![json_response(400, "{}")], 1, Err(false)),
        (vec![json_response(304, "")], 1, Err(false)),
        (vec![json_response(429, "{}")], 6, Err(false)),
    ];
    for (replies, sent_count, result) in table {
        let script = Script::new(replies.clone());
        let actual = write_client(&script)
            .send(update_request())
            .await
            .map(drop)
            .map_err(|e| e.in_doubt_since().is_some());
        assert_eq!((script.sent_times().len(), actual), (sent_count, result), "{replies:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn deleting_an_absent_object_succeeds_unless_the_project_or_the_route_is_absent() {
    let table = [
        (empty_response(204), Some(204)),
        (json_response(202, r#"{"message":"202 Accepted"}"#), Some(202)),
        (json_response(404, r#"{"message":"404 Not found"}"#), Some(404)),
        (json_response(404, r#"{"message":"404 Variable Not Found"}"#), Some(404)),
        (json_response(404, r#"{"message":"404 Project Not Found"}"#), None),
        (json_response(404, r#"{"error":"404 Not Found"}"#), None),
        (json_response(404, r#"{"message":"404 Not Found"}"#), None),
        (html_response(404), None),
    ];
    for (reply, status) in table {
        let client = write_client(&Script::new([reply.clone()]));
        let response = client
            .send(op::HOOK_DELETE.request().with_argument("id", 1).with_argument("hook_id", 2))
            .await;
        assert_eq!(response.ok().map(|a| a.status), status, "{reply:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_of_a_proxy_is_neither_a_list_nor_absence() {
    let proxy_replies = [
        html_response(200),
        truncated_response(200),
        empty_response(200),
        json_response(200, "[{}"),
        json_response(206, "[]"),
        empty_response(302),
        html_response(404),
        json_response(500, "[]"),
        json_response(403, "[]"),
    ];
    for reply in proxy_replies {
        let client = read_client(&Script::new([reply.clone()]), settings());
        let list_error =
            client.list(op::HOOK_LIST.request().with_argument("id", 1)).await.unwrap_err();
        let client = read_client(&Script::new([reply.clone()]), settings());
        let rule_error = client
            .get_optional(op::PUSH_RULE_GET.request().with_argument("id", 1), &[])
            .await
            .unwrap_err();
        assert!(
            !list_error.is_container_not_found() && !rule_error.is_container_not_found(),
            "{reply:?}"
        );
    }
    for body in ["{}", "[1]", "null", "7"] {
        let client = read_client(&Script::new([json_response(200, body)]), settings());
        assert!(
            client.list(op::HOOK_LIST.request().with_argument("id", 1)).await.is_err(),
            "{body}"
        );
    }
    for body in ["[]", "[{}]", "7", "true", r#""acme/shop""#] {
        let client = read_client(&Script::new([json_response(200, body)]), settings());
        assert!(
            client.get(project_request()).await.is_err()
                && client.get_optional(project_request(), &[]).await.is_err(),
            "{body}"
        );
    }
    for (body, is_accepted) in [
        ("{}", false),
        (r#"{"id":1}"#, false),
        (r#"{"id":1,"path":null}"#, false),
        (r#"{"id":1,"path":"x"}"#, true),
    ] {
        let client = read_client(&Script::new([json_response(200, body)]), settings());
        assert_eq!(
            client.get_object(project_request(), &["id", "path"]).await.is_ok(),
            is_accepted,
            "{body}"
        );
    }
    for (requested_id, is_valid) in [("1", true), ("2", false), ("acme/shop", true)] {
        let client = read_client(&Script::new([json_response(200, r#"{"id":1}"#)]), settings());
        let request = op::PROJECT_GET.request().with_argument("id", requested_id);
        assert_eq!(client.get_object(request, &["id"]).await.is_ok(), is_valid, "{requested_id}");
    }
    let rule = || op::PUSH_RULE_GET.request().with_argument("id", 1);
    for (reply, is_absent) in [(json_response(200, "null"), true), (empty_response(204), false)] {
        let client = read_client(&Script::new([reply.clone()]), settings());
        let object = client.get_optional(rule(), &[]).await;
        assert_eq!(object.is_ok_and(|found| found.is_none()), is_absent);
        let client = read_client(&Script::new([reply]), settings());
        assert!(client.get(rule()).await.is_err());
    }
}

fn hook_list_request() -> op::Request<op::Read> {
    op::HOOK_LIST.request().with_argument("id", 1)
}

/// A page with one hook, in a list of `total` hooks. `next` is the number of the next page.
fn hook_page(hook: &str, next: &str, total: u32) -> Reply {
    let total = total.to_string();
    json_with_headers(
        200,
        &[("x-next-page", next), ("x-per-page", "1"), ("x-total", &total)],
        &format!("[{hook}]"),
    )
}

#[tokio::test(start_paused = true)]
async fn a_response_has_the_kept_and_the_checked_keys() {
    let body = r#"{"id":1,"path_with_namespace":"acme/shop","a":{"b":1},"x":2}"#;
    let keep_only_a =
        |request: op::Request<op::Read>| request.with_key_filter(op::KeyFilter::keys(["a"]));
    let script = Script::new([json_response(200, body)]);
    let client = read_client(&script, settings());
    let response = client.get_object(keep_only_a(project_request()), &["id"]).await.unwrap();
    assert_eq!(response.body, serde_json::json!({"id": 1, "a": {"b": 1}}));
    assert!(client.get_object(keep_only_a(project_request()), &["id", "z"]).await.is_err());

    let page =
        json_with_headers(200, &[("x-total", "1"), ("x-next-page", "")], &format!("[{body}]"));
    let script = Script::new([page]);
    let filtered_hook_list = || keep_only_a(op::HOOK_LIST.request().with_argument("id", 1));
    let client = read_client(&script, settings());
    let list = client
        .list_with_keys(
            filtered_hook_list(),
            EntryKeys { identity_keys: &["id"], other_keys: &["x"] },
        )
        .await
        .unwrap();
    assert_eq!(Json::from(list[0].clone()), serde_json::json!({"id": 1, "a": {"b": 1}, "x": 2}));
    // This read requires no keys of entries. Then the filter is not used, and entries keep all
    // keys.
    assert_eq!(
        Json::from(client.list(filtered_hook_list()).await.unwrap()[0].clone()).to_string(),
        body
    );

    for (body, expected_text) in [
        ("{\"x\":1}", "something other than a list"),
        ("[1]", "something other than a list"),
        ("[{\"id\":1,\"x\":nul}]", "broken JSON"),
    ] {
        let client = read_client(&Script::new([json_response(200, body)]), settings());
        let error =
            client.list_with_keys(filtered_hook_list(), EntryKeys::with_id(&[])).await.unwrap_err();
        assert!(error.to_string().contains(expected_text), "{error}");
    }
    let script = Script::new([json_response(404, r#"{"message":"404 Project Not Found"}"#)]);
    let error =
        read_client(&script, settings()).get(keep_only_a(project_request())).await.unwrap_err();
    assert!(error.is_container_not_found_in(Scope::Project), "an error is read whole: {error}");
}

#[tokio::test(start_paused = true)]
async fn a_list_is_complete_or_failed() {
    let pages = [(1, "2"), (2, "3"), (3, "")]
        .map(|(id, next)| hook_page(&format!(r#"{{"id":{id}}}"#), next, 3));
    let script = Script::new(pages.clone());
    assert_eq!(read_client(&script, settings()).list(hook_list_request()).await.unwrap().len(), 3);
    assert_eq!(
        script.targets(),
        [1, 2, 3].map(|n| format!("/projects/1/hooks?per_page=100&page={n}"))
    );
    for failed_page in 0..3 {
        let mut replies = pages.to_vec();
        replies.splice(failed_page.., [json_response(403, "{}")]);
        assert!(
            read_client(&Script::new(replies), settings())
                .list(hook_list_request())
                .await
                .unwrap_err()
                .is_forbidden()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_whose_responses_contradict_each_other_is_read_again_twice() {
    let page = |id: u32, next: &str| hook_page(&format!(r#"{{"id":{id}}}"#), next, 2);
    for broken_pages in
        [vec![page(1, "2"), page(1, "")], vec![page(1, "")], vec![page(1, "2"), page(2, "3")]]
    {
        for broken_count in 0..4 {
            let replies = (0..broken_count)
                .flat_map(|_| broken_pages.clone())
                .chain([page(1, "2"), page(2, "")]);
            let script = Script::new(replies);
            let list = read_client(&script, settings()).list(hook_list_request()).await;
            assert_eq!(
                list.as_ref().map(|all| all.len()).ok(),
                (broken_count < 3).then_some(2),
                "{broken_count} {list:?}"
            );
            assert_eq!(
                script.sent_times().len(),
                broken_count.min(3) * broken_pages.len() + if broken_count < 3 { 2 } else { 0 }
            );
        }
    }
    let short =
        json_with_headers(200, &[("x-total", "20"), ("x-next-page", "")], r#"[{"id":1},{"id":2}]"#);
    let error =
        read_client(&Script::new([short]), settings()).list(hook_list_request()).await.unwrap_err();
    assert_eq!(
        format!("{:#}", anyhow::Error::new(error.clone())),
        "hook-list: `GET /projects/1/hooks` returned an incomplete list: the service announced 20 entries and sent 2"
    );
    assert!(
        error.page_error().is_some() && error.hint().is_some_and(|hint| hint.contains("try again")),
        "{error:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_entry_without_a_required_key_fails_the_list() {
    let list_script = |body: &str| Script::new([json_with_headers(200, &[("x-total", "1")], body)]);
    for (body, is_accepted) in [
        (r#"[{"id":1}]"#, true),
        ("[{}]", false),
        (r#"[{"id":null}]"#, false),
        (r#"[{"name":"x"}]"#, false),
    ] {
        let script = list_script(body);
        let list_with_keys = read_client(&script, settings())
            .list_with_keys(hook_list_request(), crate::page::EntryKeys::with_id(&[]))
            .await;
        assert_eq!(list_with_keys.is_ok(), is_accepted, "{body}");
        assert_eq!(script.sent_times().len(), 1, "reading again brings nothing: {body}");
        assert!(
            read_client(&list_script(body), settings()).list(hook_list_request()).await.is_ok(),
            "{body}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_above_the_size_limit_is_refused() {
    let padded_page = |id: u32| {
        let headers = [("x-next-page", (id + 1).to_string()), ("x-per-page", "1".to_owned())];
        let body = format!(r#"[{{"id":{id},"url":"{}"}}]"#, "x".repeat(22 << 20));
        json_with_headers(
            200,
            &headers.each_ref().map(|(name, value)| (*name, value.as_str())),
            &body,
        )
    };
    let script = Script::new((1..9).map(padded_page));
    let error = read_client(&script, settings()).list(hook_list_request()).await.unwrap_err();
    assert_eq!(error.page_error().unwrap().to_string(), "the list has more than 64 MiB of JSON");
    assert_eq!(script.sent_times().len(), 3, "not read again");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_filtered_after_paging_is_never_complete() {
    let script =
        Script::new([json_with_headers(200, &[("x-total", "0"), ("x-next-page", "")], "[]")]);
    let error = read_client(&script, settings())
        .list(op::NOTE_LIST.request().with_argument("id", 1))
        .await
        .unwrap_err();
    assert!(matches!(error.page_error(), Some(crate::page::PageError::Filtered)), "{error}");
    assert_eq!(script.sent_times().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_project_that_has_moved_is_known_by_its_id() {
    let redirect_to = |to| json_with_headers(301, &[("location", to)], "");
    let same_origin = get_error(redirect_to("https://example.org/api/v4/projects/7")).await;
    assert_eq!((same_origin.is_moved(), same_origin.moved_to()), (true, Some(7)));
    let other_origin =
        get_error(redirect_to("https://evil.example/api/v4/projects/7?x=canary")).await;
    assert_eq!((other_origin.is_moved(), other_origin.moved_to()), (true, Some(7)));
    assert!(!all_texts(&other_origin).contains("canary"));
    let moved = json_response(
        405,
        r#"{"message":"405 Non GET methods are not allowed for moved projects"}"#,
    );
    assert!(
        write_client(&Script::new([moved]))
            .send(variable_create_request())
            .await
            .unwrap_err()
            .is_moved()
    );
}

#[tokio::test(start_paused = true)]
async fn a_caller_without_any_access_ends_the_run() {
    let project = |id: u32| op::PROJECT_GET.request().with_argument("id", id);
    let script = Script::new([json_response(403, "{}")]);
    let client = read_client(&script, settings());
    for id in [1, 1, 1, 2, 3] {
        assert!(!client.get(project(id)).await.unwrap_err().is_after_run_end());
    }
    let blocked = client.get(project(4)).await.unwrap_err();
    assert!(blocked.is_after_run_end() && blocked.is_forbidden() && script.sent_times().len() == 5);

    let client =
        read_client(&Script::new([json_response(200, "{}"), json_response(403, "{}")]), settings());
    client.get(project(0)).await.unwrap();
    for id in 1..9 {
        assert!(!client.get(project(id)).await.unwrap_err().is_after_run_end());
    }
}

#[tokio::test(start_paused = true)]
async fn a_file_makes_the_body_a_form() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("logo.png"), b"\x89PNG").unwrap();
    let mut secrets = Secrets::new(folder.path(), [("CANARY".to_owned(), CANARY.to_owned())]);
    secrets.resolve([&canary_reference()]);
    let script = Script::new([json_response(200, "{}")]);
    let client = write_client_with(&script, secrets);
    let nested_values = serde_json::json!({"topics": ["a", "b"], "policy": {"enabled": true, "cadence": "1d"}, "name": null});
    let mut fields: Fields = nested_values
        .as_object()
        .unwrap()
        .iter()
        .map(|(n, v)| (n.clone(), v.clone().into()))
        .collect();
    fields.insert("avatar".into(), Value::File("logo.png".into()));
    fields.insert("token".into(), Value::Secret(canary_reference()));
    client
        .send(op::PROJECT_UPDATE.request().with_argument("id", 1).with_fields(fields.clone()))
        .await
        .unwrap();
    let sent_request = script.sent.lock().unwrap()[0].request.clone();
    let EncodedBody::Form(parts) = &sent_request.body else { panic!("not a form") };
    let part_values: Vec<_> =
        parts.iter().map(|p| (p.name.as_str(), p.file_name.as_deref(), p.value.as_ref())).collect();
    let expected: [(&str, Option<&str>, &[u8]); 7] = [
        ("avatar", Some("logo.png"), b"\x89PNG"),
        ("name", None, b""),
        ("policy[enabled]", None, b"true"),
        ("policy[cadence]", None, b"1d"),
        ("token", None, CANARY.as_bytes()),
        ("topics[]", None, b"a"),
        ("topics[]", None, b"b"),
    ];
    assert_eq!(part_values, expected);
    assert!(!format!("{sent_request:?}").contains(CANARY));

    for missing in
        [Value::File("absent.png".into()), Value::Secret(Reference::Env("ABSENT".into()))]
    {
        fields.insert("avatar".into(), missing);
        let error = client
            .send(op::PROJECT_UPDATE.request().with_argument("id", 1).with_fields(fields.clone()))
            .await
            .unwrap_err();
        assert!(
            error.to_string().contains("was not sent") && error.in_doubt_since().is_none(),
            "{error}"
        );
    }
    assert_eq!(script.sent_times().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_before_the_service_allows_it() {
    let throttled_reply = json_with_headers(429, &[("retry-after", "17")], "Retry later\n");
    let script = Script::new([throttled_reply, json_response(200, "{}")]);
    let client = read_client(&script, settings());
    let (first, second) =
        tokio::join!(client.get(project_request()), client.get(project_request()));
    assert!(first.is_ok() && second.is_ok());
    let times = script.sent_times();
    assert!(times.iter().skip(2).all(|at| *at >= Duration::from_secs(17)), "{times:?}");
    assert_eq!(client.counts()["project-get"].retries, 1);
}

#[tokio::test(start_paused = true)]
async fn after_a_401_nothing_more_is_sent() {
    let script = Script::new([
        json_response(401, r#"{"message":"401 Unauthorized"}"#),
        json_response(200, "{}"),
    ]);
    let client = read_client(&script, settings());
    let first = client.get(project_request()).await.unwrap_err();
    assert!(first.is_unauthorized() && !first.is_after_run_end());
    let second = client.clone().get(project_request()).await.unwrap_err();
    assert!(second.is_unauthorized() && second.is_after_run_end());
    assert_eq!(script.sent_times().len(), 1);
}

/// The operation that lists the links of a group.
fn link_list_operation() -> op::Op<op::Read> {
    let row = Operation::with_defaults(Method::Get);
    let (id, path, response) = ("link-list", "/groups/:id/links", ResponseBody::List);
    let empty_as = Some("No links found");
    collection::make_read_op(Operation {
        id,
        path,
        response,
        denies_with_401: true,
        empty_as,
        ..row
    })
}

/// Some collections answer 401 if their feature is switched off.
#[tokio::test(start_paused = true)]
async fn a_401_of_a_switched_off_collection_does_not_end_the_run() {
    let links = link_list_operation().request().with_argument("id", 7);
    let script = Script::new([
        json_response(401, r#"{"message":"401 Unauthorized"}"#),
        json_response(200, "{}"),
    ]);
    let client = read_client(&script, settings());
    let denied = client.get(links).await.unwrap_err();
    assert!(denied.is_forbidden() && !denied.is_unauthorized(), "{denied}");
    client.get(project_request()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_budget_of_requests_and_of_time_ends_the_run() {
    let script = Script::new([json_response(200, "{}")]);
    let client = read_client(&script, ClientSettings { max_requests: Some(2), ..settings() });
    assert!(
        client.get(project_request()).await.is_ok() && client.get(project_request()).await.is_ok()
    );
    let error = client.get(project_request()).await.unwrap_err();
    assert!(error.is_over_budget() && error.hint().unwrap().contains("--max-requests"), "{error}");
    assert_eq!(script.sent_times().len(), 2);

    let script = Script::new([
        json_with_headers(429, &[("retry-after", "60")], ""),
        json_response(200, "{}"),
    ]);
    let client = read_client(
        &script,
        ClientSettings { deadline: Some(Duration::from_secs(59)), ..settings() },
    );
    let error = client.get(project_request()).await.unwrap_err();
    assert!(error.is_over_budget() && error.hint().unwrap().contains("--deadline"), "{error}");
    assert!(
        error.to_string().ends_with("has used up its time; the attempt before answered 429"),
        "{error}"
    );
    assert_eq!(script.sent_times(), [Duration::ZERO]);
}

#[tokio::test(start_paused = true)]
async fn too_long_a_wait_is_an_error_and_not_a_shorter_wait() {
    for after in ["86400", "99999999999999999999999"] {
        let script = Script::new([
            json_with_headers(429, &[("retry-after", after)], ""),
            json_response(200, "{}"),
        ]);
        let client = read_client(&script, settings());
        let not_sent = "was not sent: the service asks to wait for ";
        for expected in ["answered 429", not_sent, not_sent] {
            let error = client.get(project_request()).await.unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert_eq!(script.sent_times(), [Duration::ZERO], "{after}");
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_requests_end_with_the_run() {
    let script = Script::new([
        json_with_headers(429, &[("retry-after", "3000")], ""),
        json_response(401, "{}"),
    ]);
    let client = read_client(&script, settings());
    let start = tokio::time::Instant::now();
    let (waiting, refused) =
        tokio::join!(client.get(project_request()), client.get(op::CURRENT_USER.request()));
    assert!(waiting.unwrap_err().is_after_run_end() && refused.unwrap_err().is_unauthorized());
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn an_error_names_operation_path_status_and_request_and_nothing_twice() {
    let reply = json_with_headers(
        404,
        &[("x-request-id", "01HX-y")],
        r#"{"message":"404 Project Not Found"}"#,
    );
    let error = get_error(reply).await;
    assert_eq!(
        error.to_string(),
        "project-get: `GET /projects/acme%2Fshop` answered 404: Project Not Found (request 01HX-y)"
    );
    assert!(error.is_container_not_found());
    let error = get_error(send_failure(RequestPhase::NotSent, SendErrorKind::Network)).await;
    assert_eq!(
        format!("{:#}", anyhow::Error::new(error)),
        "project-get: `GET /projects/acme%2Fshop` got no answer: connection reset"
    );
    let error = get_error(html_response(200)).await;
    assert_eq!(
        error.to_string(),
        "project-get: `GET /projects/acme%2Fshop` answered 200 with an HTML page"
    );
}

#[tokio::test(start_paused = true)]
async fn no_more_requests_are_in_flight_than_allowed() {
    for concurrency in [1, 3, 16] {
        let script = Script::new([json_response(200, "{}")]);
        let client = read_client(
            &script,
            ClientSettings { in_flight: InFlightRange::fixed(concurrency), ..settings() },
        );
        let answers = join_all(
            (0..40).map(|id| client.get(op::PROJECT_GET.request().with_argument("id", id))),
        )
        .await;
        assert!(answers.iter().all(Result::is_ok));
        assert_eq!(*script.in_flight_counts.lock().unwrap(), (0, concurrency));
    }
}

proptest! {
    #[test]
    fn no_wait_is_ever_cut_short(
        answers in proptest::collection::vec((proptest::sample::select(vec![429u16, 503]), 0u64..200, any::<bool>()), 1..12),
        concurrency in 1usize..4,
    ) {
        let status_and_retry_after = |(status, after, ok): (u16, u64, bool)| if ok { (200, 0) } else { (status, after) };
        let replies: Vec<_> = answers.into_iter().map(status_and_retry_after).chain([(200, 0)]).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let sent_times = runtime.block_on(async {
            let script = Script::new(replies.iter().map(|(status, after)| match status {
                200 => json_response(200, "{}"),
                _ => json_with_headers(*status, &[("retry-after", &after.to_string())], ""),
            }));
            let client = read_client(&script, ClientSettings { in_flight: InFlightRange::fixed(concurrency), ..settings() });
            join_all((0..6).map(|id| client.get(op::PROJECT_GET.request().with_argument("id", id)))).await;
            script.sent_times()
        });
        for (i, sent_at) in sent_times.iter().enumerate() {
            let retry_after = replies.get(i).map_or(0, |(_, after)| *after);
            // Requests that were already in flight do not count.
            for later_time in sent_times.iter().skip(i + concurrency) {
                prop_assert!(*later_time >= *sent_at + Duration::from_secs(retry_after), "{sent_times:?} {replies:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn not_modified_is_success_for_stars_and_deletes_only() {
    let client = read_client(&Script::new([]), settings());
    let table = [
        (op::PROJECT_STAR, SendOutcome::Success),
        (op::PROJECT_UNSTAR, SendOutcome::Success),
        (op::FORK_RELATION_DELETE, SendOutcome::Success),
        (op::PROJECT_FORK, SendOutcome::Refused),
        (op::PROJECT_ARCHIVE, SendOutcome::Refused),
    ];
    for (operation, outcome) in table.map(|(op, outcome)| (op.row(), outcome)) {
        let verdict = client.core.classify_response(
            operation,
            empty_response(304).unwrap(),
            &op::KeyFilter::All,
            &QuoteRedactor::default(),
        );
        assert_eq!(verdict.outcome, outcome, "{}", operation.id);
    }
}

#[tokio::test(start_paused = true)]
async fn workers_on_any_thread_share_a_client() {
    let script = Script::new([json_response(200, "[]")]);
    let client = write_client(&script);
    let (reader, writer) = (client.read_client().clone(), client.clone());
    let read_task =
        tokio::spawn(
            async move { reader.list(op::HOOK_LIST.request().with_argument("id", 1)).await },
        );
    let write_task = tokio::spawn(async move {
        writer.send(op::PROJECT_ARCHIVE.request().with_argument("id", 1)).await
    });
    assert!(read_task.await.unwrap().is_ok() && write_task.await.unwrap().is_ok());
    let method_and_timeouts = |s: &SentRequest| {
        (s.request.method, s.request.timeout.as_secs(), s.request.idle_timeout.as_secs())
    };
    let requests: Vec<_> = script.sent.lock().unwrap().iter().map(method_and_timeouts).collect();
    // The service may take 60 s for a write without sending a byte.
    assert_eq!(requests, [(op::Method::Get, 30, 20), (op::Method::Post, 75, 75)]);
    assert_eq!(client.read_client().counts().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn each_error_has_a_hint() {
    let offset_limit_body = r#"{"error":"Offset pagination has a maximum allowed offset of 50000 for requests that return objects of type Project."}"#;
    let table = [
        (json_response(401, "{}"), "the token is wrong"),
        (json_response(403, r#"{"error":"insufficient_scope","scope":"api"}"#), "scope `api`"),
        (json_response(403, r#"{"message":"403 Forbidden"}"#), "needs a higher role"),
        (json_response(404, r#"{"error":"404 Not Found"}"#), "`%2F`"),
        (json_response(404, r#"{"message":"404 Not Found"}"#), "flag or setting"),
        (json_response(405, offset_limit_body), "does not number the pages"),
        (
            json_with_headers(302, &[("location", "https://sso.example/")], ""),
            "does not follow redirects",
        ),
        (html_response(200), "answered instead"),
        (send_failure(RequestPhase::NotSent, SendErrorKind::Network), "check the address"),
        (json_with_headers(429, &[("retry-after", "86400")], ""), "try again later"),
    ];
    for (reply, hint) in table {
        let error = get_error(reply.clone()).await;
        assert!(error.hint().is_some_and(|h| h.contains(hint)), "{error}: {:?}", error.hint());
    }
    let rule = op::PUSH_RULE_GET.request().with_argument("id", "acme/shop");
    let error = read_client(
        &Script::new([json_response(404, r#"{"message":"404 Not Found"}"#)]),
        settings(),
    )
    .get(rule)
    .await
    .unwrap_err();
    assert!(
        error.hint().is_some_and(|hint| hint.contains("licence")),
        "{error}: {:?}",
        error.hint()
    );
}

/// An edit of a variable that repeats the live values of its other fields.
fn variable_edit() -> op::Request<op::Write> {
    let live = serde_json::json!({"value": "live-canary-77", "masked": false});
    let request = op::VARIABLE_UPDATE.request().with_argument("id", 1).with_argument("key", "A");
    let request =
        request.with_fields(Fields::from([("protected".to_owned(), Value::Plain(true.into()))]));
    request
        .with_repeated_values(live.as_object().unwrap().clone())
        .with_sensitive_fields(["value".to_owned()])
}

fn freshness() -> Freshness {
    Freshness { expires_at: Duration::from_secs(5), attempt: 1, read_at: Duration::ZERO }
}

#[tokio::test(start_paused = true)]
async fn repeated_values_are_sent_as_they_were_read() {
    let script = Script::new([json_response(200, "{}")]);
    write_client(&script).send_fresh(variable_edit(), freshness()).await.unwrap();
    assert_eq!(
        script.first_json(),
        r#"{"protected":true,"value":"live-canary-77","masked":false}"#
    );
}

#[tokio::test(start_paused = true)]
async fn repeated_values_are_not_sent_after_a_wait() {
    let throttled_reply = || json_with_headers(429, &[("retry-after", "2")], "");
    // If the service makes the edit itself wait, the client does not send the edit again. The
    // caller must rebuild it, and the error contains the time from which a new attempt is possible.
    let script = Script::new([throttled_reply(), json_response(200, "{}")]);
    let error = write_client(&script).send_fresh(variable_edit(), freshness()).await.unwrap_err();
    assert!(
        error.retry_at() >= Some(Duration::from_secs(2)) && error.in_doubt_since().is_none(),
        "{error:?}"
    );
    assert_eq!(script.sent_times().len(), 1);
    // The edit is also not sent if another request made it wait, or if its values have become too
    // old.
    let script = Script::new([throttled_reply(), json_response(200, "{}")]);
    let client = write_client(&script);
    let (other, edit_result) = tokio::join!(client.send(variable_create_request()), async {
        tokio::task::yield_now().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        client.send_fresh(variable_edit(), freshness()).await
    });
    assert!(other.is_ok() && edit_result.unwrap_err().is_stale());
    let expired = Freshness { expires_at: Duration::ZERO, attempt: 1, read_at: Duration::ZERO };
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(client.send_fresh(variable_edit(), expired).await.unwrap_err().is_stale());
    // A request that cannot become stale may wait.
    assert!(client.send_fresh(variable_create_request(), expired).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn the_client_does_not_resend_an_edit_with_repeated_values() {
    for reply in [
        send_failure(RequestPhase::MaybeSent, SendErrorKind::Network),
        json_response(502, ""),
        html_response(200),
    ] {
        let script = Script::new([reply.clone(), json_response(200, "{}")]);
        let error =
            write_client(&script).send_fresh(variable_edit(), freshness()).await.unwrap_err();
        assert_eq!(
            (error.in_doubt_since(), script.sent_times().len()),
            (Some(Duration::ZERO), 1),
            "{reply:?}"
        );
        assert!(error.retry_at().is_some(), "{reply:?}");
    }
    // After the last attempt, the error contains no time for another attempt.
    let last_attempt =
        Freshness { expires_at: Duration::from_secs(5), attempt: 6, read_at: Duration::ZERO };
    let error = write_client(&Script::new([json_response(429, "")]))
        .send_fresh(variable_edit(), last_attempt)
        .await
        .unwrap_err();
    assert_eq!(error.retry_at(), None);
}

#[tokio::test(start_paused = true)]
async fn sensitive_values_of_a_body_are_not_quoted() {
    let refusal = r#"{"message":{"value":["'live-canary-77' is invalid"],"url":["https://u:canary@h is blocked"]}}"#;
    let error = write_client(&Script::new([json_response(400, refusal)]))
        .send_fresh(variable_edit(), freshness())
        .await
        .unwrap_err();
    assert_eq!(
        error.message(),
        Some("value: '[secret]' is invalid; url: https://***@h is blocked")
    );
    assert!(!all_texts(&error).contains("canary"), "{error:?}");
    let edit_with_short_value = variable_edit()
        .with_repeated_values(serde_json::json!({"value": "abc"}).as_object().unwrap().clone());
    let refusal = json_response(400, r#"{"message":{"value":["'abc' is invalid"]}}"#);
    let error = write_client(&Script::new([refusal]))
        .send_fresh(edit_with_short_value, freshness())
        .await
        .unwrap_err();
    assert!(
        !all_texts(&error).contains("abc") && error.message().unwrap().contains("not quoted"),
        "{error:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_doubt_begins_with_the_last_ambiguous_attempt() {
    let update_request = || {
        op::PROJECT_UPDATE
            .request()
            .with_argument("id", 1)
            .with_fields(Fields::from([("name".to_owned(), Value::from("x"))]))
    };
    let throttled_reply = json_with_headers(429, &[("retry-after", "7")], "");
    let script = Script::new([throttled_reply, json_response(502, ""), json_response(400, "{}")]);
    let error = write_client(&script).send(update_request()).await.unwrap_err();
    assert_eq!(error.in_doubt_since(), Some(script.sent_times()[1]));
    assert!(script.sent_times()[1] >= Duration::from_secs(7));
}

#[tokio::test(start_paused = true)]
async fn the_deadline_cuts_reads_and_leaves_writes_in_doubt() {
    let settings_with_deadline =
        || ClientSettings { deadline: Some(Duration::from_secs(3)), ..settings() };
    let script = Script::new([slow_json(200, 1_000, "{}")]);
    let error =
        read_client(&script, settings_with_deadline()).get(project_request()).await.unwrap_err();
    assert!(error.is_over_budget() && error.in_doubt_since().is_none(), "{error}");
    let script = Script::new([slow_json(201, 1_000, "{}")]);
    let client = crate::api::WriteClient::new(read_client(&script, settings_with_deadline()));
    for request in [
        variable_create_request(),
        op::PROJECT_UPDATE.request().with_argument("id", 1).with_fields(Fields::new()),
    ] {
        let start = tokio::time::Instant::now();
        let error = client.send(request).await.unwrap_err();
        assert!(error.is_over_budget(), "{error}");
        assert_eq!(error.in_doubt_since().is_some(), start.elapsed() > Duration::ZERO, "{error}");
    }
    assert_eq!(script.sent_times().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn after_an_interruption_nothing_starts_and_only_writes_are_waited_for() {
    let script = Script::new([
        slow_json(201, 30, "{}"),
        slow_json(200, 30, "{}"),
        json_with_headers(429, &[("retry-after", "60")], ""),
    ]);
    let client = crate::api::WriteClient::new(read_client(
        &script,
        ClientSettings { in_flight: InFlightRange::fixed(3), ..settings() },
    ));
    let reader = client.read_client().clone();
    let start = tokio::time::Instant::now();
    let interrupt = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        reader.interrupt();
        start.elapsed()
    };
    let send_and_time = async |is_read: bool| {
        let is_interrupted = match is_read {
            true => client
                .read_client()
                .get(project_request())
                .await
                .is_err_and(|error| error.is_interrupted()),
            false => client
                .send(variable_create_request())
                .await
                .is_err_and(|error| error.is_interrupted()),
        };
        (is_interrupted, start.elapsed().as_secs())
    };
    // In this order: a write and a read in flight, a throttled request, and a queued request.
    let (write, read, throttled, queued, _) = tokio::join!(
        send_and_time(false),
        send_and_time(true),
        send_and_time(false),
        send_and_time(false),
        interrupt
    );
    assert_eq!([write, read, throttled, queued], [(false, 30), (true, 1), (true, 1), (true, 1)]);
    assert_eq!(script.sent_times().len(), 3);
    assert!(client.read_client().is_interrupted() && client.read_client().has_ended());
    assert!(
        !client.read_client().wait_until(Duration::from_secs(1_000)).await
            && start.elapsed().as_secs() == 30
    );
}

#[tokio::test(start_paused = true)]
async fn a_caller_with_one_success_continues() {
    let variables = |id: u32| op::VARIABLE_LIST.request().with_argument("id", id);
    let list = op::GROUP_PROJECTS.request().with_argument("id", "acme");
    let script = Script::new([json_response(200, "[]"), json_response(403, "{}")]);
    let client = read_client(&script, settings());
    client.list(list.clone()).await.unwrap();
    for id in 1..9 {
        assert!(
            !client.list(variables(id)).await.unwrap_err().is_after_run_end(),
            "a list was answered"
        );
    }
    // A successful read of the token's user does not count, because a token without any right can
    // read it too.
    let script =
        Script::new([json_response(200, r#"{"id":1,"username":"a"}"#), json_response(403, "{}")]);
    let client = read_client(&script, settings());
    client.get(op::CURRENT_USER.request()).await.unwrap();
    for id in 1..=3 {
        assert!(!client.list(variables(id)).await.unwrap_err().is_after_run_end());
    }
    assert!(client.list(list).await.unwrap_err().is_after_run_end());
}

#[tokio::test(start_paused = true)]
async fn an_optional_object_has_its_keys_or_is_absent() {
    let rule = || op::PUSH_RULE_GET.request().with_argument("id", 1);
    for (body, is_present) in
        [("null", Some(false)), (r#"{"id":7}"#, Some(true)), ("{}", None), (r#"{"id":null}"#, None)]
    {
        let found = read_client(&Script::new([json_response(200, body)]), settings())
            .get_optional(rule(), &["id"])
            .await;
        assert_eq!(found.ok().map(|found| found.is_some()), is_present, "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cause_has_the_operation_status_and_request_id() {
    let reply =
        json_with_headers(403, &[("x-request-id", "01HX-y")], r#"{"message":"403 Forbidden"}"#);
    let error = get_error(reply).await;
    let cause = crate::cause::Cause::from(&error);
    assert_eq!(
        (cause.operation, cause.status, cause.request_id.as_deref()),
        (Some("project-get"), Some(403), Some("01HX-y"))
    );
    assert!(
        !cause.transient && cause.help.is_some() && !cause.message.contains("01HX-y"),
        "{cause:?}"
    );
    let error = get_error(send_failure(RequestPhase::NotSent, SendErrorKind::Network)).await;
    let cause = crate::cause::Cause::from(&error);
    assert!(
        cause.transient && cause.message.ends_with("got no answer: connection reset"),
        "{cause:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_delete_sends_the_time_of_reading_by_the_clock_of_the_service() {
    let dated_reply = |date: &str| json_with_headers(200, &[("date", date)], r#"{"id":1}"#);
    let delete_request =
        || op::HOOK_DELETE.request().with_argument("id", 1).with_argument("hook_id", 2);
    let freshness =
        Freshness { expires_at: Duration::MAX, attempt: 1, read_at: Duration::from_secs(3) };
    let send_and_read_header = async |replies: Vec<Reply>, request: op::Request<op::Write>| {
        let script = Script::new(replies);
        let client = write_client(&script);
        for _ in 0..2 {
            let user = op::CURRENT_USER.request();
            client.read_client().get(user).await.unwrap();
        }
        client.send_fresh(request, freshness).await.unwrap();
        let sent = script.sent.lock().unwrap();
        sent.last().unwrap().request.if_unmodified_since.map(httpdate::fmt_http_date)
    };
    let (noon, earlier) = ("Sun, 22 Nov 2026 12:00:00 GMT", "Sun, 22 Nov 2026 11:59:58 GMT");
    // The object was read three seconds after noon by the service's clock. Two seconds are added
    // because dates are truncated and arrive late. Of several dates, the latest is the most
    // precise.
    let expected = Some("Sun, 22 Nov 2026 12:00:05 GMT".to_owned());
    for dates in [[noon, noon], [earlier, noon], [noon, earlier]] {
        let replies = vec![dated_reply(dates[0]), dated_reply(dates[1]), json_response(204, "")];
        assert_eq!(send_and_read_header(replies, delete_request()).await, expected, "{dates:?}");
    }
    // The header is not sent without a known date, and not for an operation that ignores the
    // header.
    let undated = vec![json_response(200, r#"{"id":1}"#)];
    assert_eq!(send_and_read_header(undated, delete_request()).await, None);
    let other = op::VARIABLE_DELETE.request().with_argument("id", 1).with_argument("key", "A");
    assert_eq!(send_and_read_header(vec![dated_reply(noon)], other).await, None);
}

/// Only a 404 with the message for an empty list means that the list is empty.
#[tokio::test(start_paused = true)]
async fn an_empty_list_may_be_a_404() {
    let list = link_list_operation();
    for (body, is_empty) in [
        (r#"{"message":"404 No links found"}"#, true),
        (r#"{"message":"404 Group Not Found"}"#, false),
        (r#"{"error":"404 Not Found"}"#, false),
    ] {
        let script = Script::new([json_with_headers(404, &[], body)]);
        let list_result =
            read_client(&script, settings()).list(list.request().with_argument("id", 1)).await;
        assert_eq!(list_result.map(|found| found.len()).ok(), is_empty.then_some(0), "{body}");
    }
}
