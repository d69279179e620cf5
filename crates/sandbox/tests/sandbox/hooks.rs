//! Hooks as in the service's own code: their keys, refusals, and secrets.

use serde_json::{Value, json};

use super::client::{ROOT, World};
use super::facts::fact;

const NO: Value = Value::Null;
const HOOKS: &str = "/projects/acme%2Fshop/hooks";
const HOOK: &str = "/projects/acme%2Fshop/hooks/1";
const GROUP: &str = "/groups/acme/hooks";
const URL: &str = "https://ci.example.org/x";

/// The status of creating a hook with this URL.
async fn create_status(world: &World, url: &Value) -> u16 {
    world.call("mia", "POST", HOOKS, &json!({"url": url})).await.status
}

#[tokio::test]
async fn urls_of_hooks_are_external_with_a_lower_case_scheme() {
    let world = World::usual().await;
    let long = |length: usize| json!(format!("https://a.example/{}", "x".repeat(length - 18)));
    let own = format!("{}/hook", world.running.url());
    for (url, status) in [
        (json!("https://ci.example.org/x y"), 201),
        (json!("https://münchen.example.org/ä"), 201),
        (json!("https://user:pw@ci.example.org:8443/?a=b#c"), 201),
        (long(8_192), 201),
        (long(8_193), 422),
        (json!("HTTPS://ci.example.org"), 422),
        (json!("https://"), 422),
        (json!("http://192.168.0.1/"), 422),
        (json!("http://127.0.0.1:1/hook"), 422),
        (json!(own), 201),
        (json!(""), 422),
        (NO, 422),
    ] {
        assert_eq!(create_status(&world, &url).await, status, "{} {url}", fact("hook-url"));
    }
    let of_group = world.call("olive", "POST", GROUP, &json!({"url": own})).await;
    assert_eq!(of_group.status, 201, "{} {own}", fact("hook-url"));
    let allowed = json!({"allow_local_requests_from_web_hooks_and_services": true});
    assert_eq!(world.call(ROOT, "PUT", "/application/settings", &allowed).await.status, 200);
    assert_eq!(
        create_status(&world, &json!("http://192.168.0.1/")).await,
        201,
        "{}",
        fact("hook-url")
    );
    let padded = json!({"url": format!(" {URL} ")});
    world
        .check(vec![(fact("hook-url"), "mia", "POST", HOOKS, padded, 201, json!({"url": URL}))])
        .await;
}

#[tokio::test]
async fn fields_of_hooks_are_saved_as_sent() {
    let world = World::at("18.9").await;
    let blank =
        json!({"url": URL, "name": "", "description": " d ", "push_events_branch_filter": ""});
    let unset = json!({
        "name": null, "push_events_branch_filter": null, "confidential_note_events": null,
        "branch_filter_strategy": "wildcard", "alert_status": "executable", "disabled_until": null,
        "url_variables": [], "custom_headers": [], "repository_update_events": false,
    });
    let kept = json!({"name": "", "description": " d ", "push_events_branch_filter": ""});
    let refused = |words: &str| json!({"error": words});
    let long = json!({"url": URL, "name": "x".repeat(256)});
    let too_long = "Name is too long (maximum is 255 characters)";
    let with = |name: &str, value: Value| json!({"url": URL, name: value});
    world
        .check(vec![
            (
                fact("hook-shape"),
                "mia",
                "POST",
                HOOKS,
                json!({"url": URL, "repository_update_events": true}),
                201,
                unset,
            ),
            (fact("hook-texts"), "mia", "PUT", HOOK, blank, 200, kept),
            (fact("hook-refused"), "mia", "PUT", HOOK, long, 422, refused(too_long)),
            (
                fact("hook-refused"),
                "mia",
                "PUT",
                HOOK,
                with("token", "a\nb".into()),
                422,
                refused("Token is invalid"),
            ),
            (fact("hook-null"), "mia", "PUT", HOOK, with("push_events", NO), 500, NO),
            (
                fact("hook-null"),
                "mia",
                "PUT",
                HOOK,
                with("enable_ssl_verification", NO),
                200,
                json!({"enable_ssl_verification": null}),
            ),
            (
                fact("hook-put-url"),
                "mia",
                "PUT",
                HOOK,
                json!({"issues_events": true}),
                200,
                json!({"url": URL, "issues_events": true}),
            ),
            (
                fact("hook-put-url"),
                "mia",
                "PUT",
                HOOK,
                json!({"custom_headers": []}),
                400,
                refused("No parameters provided"),
            ),
            (
                fact("hook-delete-late"),
                "mia",
                "DELETE",
                "/projects/acme%2Fshop/hooks/9",
                NO,
                404,
                json!({"message": "404 Not found"}),
            ),
        ])
        .await;
    let listed = world.get("mia", HOOKS).await.body;
    assert!(listed[0].get("custom_headers").is_none(), "{}", fact("hook-shape"));
    world.call("olive", "POST", GROUP, &json!({"url": URL})).await;
    let listed = world.get("olive", GROUP).await.body;
    assert_eq!(listed[0]["custom_headers"], json!([]), "{}", fact("hook-shape"));
    assert_eq!(listed[0]["member_events"], false, "{}", fact("group-hook-shape"));
}

#[tokio::test]
async fn branches_are_filtered_by_name_or_expression() {
    let world = World::at("18.9").await;
    let rule = fact("hook-branch-filter");
    let filter = |filter: &str, strategy: &str| json!({"url": URL, "push_events_branch_filter": filter, "branch_filter_strategy": strategy});
    for (body, status, kept) in [
        (filter(" feature/* ", "wildcard"), 201, json!("feature/*")),
        (filter("a b", "wildcard"), 422, NO),
        (filter("..", "wildcard"), 422, NO),
        (filter("^(a|b) ", "regex"), 201, json!("^(a|b) ")),
        (filter("^(", "regex"), 422, NO),
        (filter("main", "all_branches"), 201, NO),
        (filter("main", "none"), 400, NO),
    ] {
        let reply = world.call("mia", "POST", HOOKS, &body).await;
        assert_eq!(reply.status, status, "{rule} {body}");
        if status == 201 {
            assert_eq!(reply.body["push_events_branch_filter"], kept, "{rule} {body}");
        }
    }
}

#[tokio::test]
async fn secrets_of_hooks_are_shown_by_key() {
    const HEADER: &str = "/projects/acme%2Fshop/hooks/1/custom_headers/X-B";
    const VARIABLE: &str = "/projects/acme%2Fshop/hooks/1/url_variables/b";
    let world = World::at("18.9").await;
    let (shape, routes) = (fact("hook-secrets"), fact("hook-secret-routes"));
    let url = "https://ci.example.org/{a}";
    let one = |key: &str| json!([{"key": key, "value": "v"}]);
    let new = json!({"url": url, "url_variables": one("a"), "custom_headers": one("X-A")});
    let more = json!({"custom_headers": one("X-B")});
    let both = json!({"custom_headers": [{"key": "X-A"}, {"key": "X-B"}]});
    let refused = |words: &str| json!({"error": words});
    let sent = |value: Value| json!({"url": URL, "custom_headers": value});
    let text = "Custom headers must be a valid json schema";
    let illegal = refused("Illegal key or value");
    let none = |what: &str| json!({"message": format!("404 {what} Not Found")});
    world
        .check(vec![
            (shape, "mia", "POST", HOOKS, json!({"url": url}), 422, refused("Invalid url given")),
            (shape, "mia", "POST", HOOKS, new, 201, json!({"url": url, "url_variables": [{"key": "a"}], "custom_headers": [{"key": "X-A"}]})),
            (shape, "mia", "PUT", HOOK, more, 200, both.clone()),
            (shape, "mia", "PUT", HOOK, json!({"url": url, "custom_headers": null}), 200, both),
            (shape, "mia", "POST", HOOKS, sent(one("1x")), 422, refused(text)),
            (shape, "mia", "POST", HOOKS, sent(json!([{"key": "X", "value": ""}])), 422, refused(text)),
            (shape, "mia", "POST", HOOKS, sent(json!([{}])), 400, refused("custom_headers[0][key] is missing, custom_headers[0][value] is missing")),
            (shape, "mia", "POST", HOOKS, sent(json!({"X-A": "v"})), 400, refused("custom_headers is invalid")),
            (routes, "mia", "PUT", HEADER, json!({"value": "w"}), 204, NO),
            (routes, "mia", "PUT", VARIABLE, json!({"value": "w"}), 204, NO),
            (routes, "mia", "PUT", VARIABLE, json!({"value": ""}), 422, illegal),
            (routes, "mia", "PUT", VARIABLE, json!({}), 400, refused("value is missing")),
            (routes, "mia", "DELETE", HEADER, NO, 204, NO),
            (routes, "mia", "DELETE", HEADER, NO, 404, none("Custom header")),
            (routes, "mia", "DELETE", VARIABLE, NO, 204, NO),
            (routes, "mia", "DELETE", VARIABLE, NO, 404, none("URL variable")),
            (
                fact("hook-secrets-reset"),
                "mia",
                "PUT",
                HOOK,
                json!({"url": "https://ci.example.org/{a}/", "custom_headers": one("X-C")}),
                422,
                refused("Invalid url given"),
            ),
            (
                fact("hook-secrets-reset"),
                "mia",
                "PUT",
                HOOK,
                json!({"url": URL, "custom_headers": one("X-C")}),
                200,
                json!({"url_variables": [], "custom_headers": []}),
            ),
            (fact("hook-test"), "mia", "POST", "/projects/acme%2Fshop/hooks/1/test/push_events", NO, 201, NO),
            (fact("hook-test"), "mia", "POST", "/projects/acme%2Fshop/hooks/1/test/lunch", NO, 400, NO),
            (fact("hook-test"), "mia", "POST", "/projects/acme%2Fshop/hooks/9/test/push_events", NO, 404, NO),
        ])
        .await;
    let old = World::usual().await;
    old.call("mia", "POST", HOOKS, &json!({"url": URL})).await;
    old.check(vec![(routes, "mia", "PUT", HEADER, json!({"value": "w"}), 404, NO)]).await;
}
