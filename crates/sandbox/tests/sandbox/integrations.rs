//! Integrations of projects and groups.

use serde_json::{Value, json};
use undrift_release::Release;
use undrift_sandbox::SandboxConfig;

use super::client::{ROOT, World, leak, usual_seed};
use super::facts::fact;
use super::keys_and_mirrors::by_mia as mia;

const NO: Value = Value::Null;
const INTEGRATIONS: &str = "/projects/acme%2Fshop/integrations";
const SLACK: &str = "/projects/acme%2Fshop/integrations/slack";
const JENKINS: &str = "/projects/acme%2Fshop/integrations/jenkins";
const WIKI: &str = "/projects/acme%2Fshop/integrations/external-wiki";
const GROUP_SLACK: &str = "/groups/acme/integrations/slack";
const HOOK: &str = "https://chat.example/hook";

async fn at(release: Release) -> World {
    World::seeded(
        usual_seed(),
        SandboxConfig { release: Some(release), ..SandboxConfig::default() },
    )
    .await
}

async fn world() -> World {
    at(Release::new(18, 9)).await
}

fn refused(field: &str, words: &str) -> Value {
    json!({"message": format!("Failed to update integration. {{:{field}=>[\"{words}\"]}}")})
}

fn slack(more: Value) -> Value {
    let mut body = json!({"webhook": HOOK});
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    body
}

#[tokio::test]
async fn integrations_are_for_maintainers_and_owners() {
    let world = world().await;
    let body = slack(json!({}));
    let rule = fact("integration-role");
    world
        .check(vec![
            (rule, "mia", "GET", INTEGRATIONS, NO, 200, json!([])),
            (rule, "", "GET", INTEGRATIONS, NO, 401, NO),
            (rule, "mia", "PUT", GROUP_SLACK, body.clone(), 403, NO),
            (rule, "mia", "GET", "/groups/acme/integrations", NO, 403, NO),
            (rule, "olive", "PUT", GROUP_SLACK, body, 200, NO),
        ])
        .await;
}

#[tokio::test]
async fn a_put_creates_edits_and_activates_an_integration() {
    let world = world().await;
    let cleared = slack(json!({"channel": null, "push_events": null}));
    world
        .check(vec![
            mia(fact("integration-absent"), "GET", SLACK, NO, 404, json!({"message": "404 Integration Not Found"})),
            mia(fact("integration-absent"), "DELETE", SLACK, NO, 404, NO),
            mia(
                fact("integration-absent"),
                "GET",
                leak(format!("{INTEGRATIONS}/slack-notifications")),
                NO,
                400,
                json!({"error": "slug does not have a valid value"}),
            ),
            mia(
                fact("integration-absent"),
                "PUT",
                leak(format!("{INTEGRATIONS}/prometheus")),
                slack(json!({})),
                404,
                json!({"error": "404 Not Found"}),
            ),
            mia(fact("integration-required"), "PUT", SLACK, json!({"channel": "#a"}), 400, json!({"error": "webhook is missing"})),
            mia(
                fact("integration-first"),
                "PUT",
                SLACK,
                slack(json!({"channel": "#a"})),
                200,
                json!({
                    "slug": "slack", "active": true, "inherited": false, "push_events": true,
                    "job_events": true, "alert_events": true, "deployment_events": false,
                    "properties": {
                        "channel": "#a", "username": null, "notify_only_broken_pipelines": true,
                        "branches_to_be_notified": "default",
                    },
                }),
            ),
            mia(
                fact("integration-set"),
                "PUT",
                SLACK,
                slack(json!({"username": "bot", "commit_events": false, "active": false, "other": 1})),
                200,
                json!({"active": true, "commit_events": true, "properties": {"channel": "#a", "username": "bot"}}),
            ),
            mia(fact("integration-null"), "PUT", SLACK, cleared, 200, NO),
            mia(
                fact("integration-null"),
                "PUT",
                SLACK,
                slack(json!({"branches_to_be_notified": "any"})),
                200,
                json!({"properties": {"branches_to_be_notified": "any"}}),
            ),
            mia(
                fact("integration-null"),
                "PUT",
                leak(format!("{INTEGRATIONS}/telegram")),
                json!({"token": "t", "room": "@a", "thread": 7}),
                200,
                json!({"properties": {"thread": "7"}}),
            ),
            mia(
                fact("integration-set"),
                "PUT",
                SLACK,
                slack(json!({"push_events": "maybe"})),
                400,
                json!({"error": "push_events is invalid"}),
            ),
        ])
        .await;
    let answer = world.get("mia", SLACK).await.body;
    assert_eq!((&answer["push_events"], &answer["properties"]["channel"]), (&NO, &NO));
    assert!(answer["properties"].get("webhook").is_none(), "{answer}");
    let listed = world.get("mia", INTEGRATIONS).await;
    assert_eq!(listed.body[0]["slug"], "slack");
    assert!(listed.body[0].get("properties").is_none() && listed.header("x-total").is_empty());
    world
        .check(vec![mia(
            fact("integration-list"),
            "GET",
            leak(format!("{INTEGRATIONS}?per_page=1")),
            NO,
            200,
            json!([{}, {}]),
        )])
        .await;
}

#[tokio::test]
async fn model_errors_of_integrations_are_a_ruby_hash() {
    let world = world().await;
    let jenkins = |url: &str| json!({"jenkins_url": url, "project_name": "shop", "username": "u"});
    let tracker = json!({"project_url": "https://a.example", "issues_url": "https://a.example/:id", "new_issue_url": "https://a.example/new"});
    let jira = json!({"url": "https://j.example", "password": "p", "username": "u"});
    let harbor = json!({"url": "https://h.example", "project_name": "p", "username": "u", "password": "short"});
    let blocked = "is blocked: Only allowed schemes are http, https";
    world
        .check(vec![
            mia(
                fact("integration-refused"),
                "PUT",
                SLACK,
                json!({"webhook": "ftp://a"}),
                400,
                refused("webhook", blocked),
            ),
            mia(
                fact("integration-refused"),
                "PUT",
                JENKINS,
                jenkins("https://a.example"),
                200,
                json!({"push_events": false}),
            ),
            mia(
                fact("integration-refused"),
                "PUT",
                JENKINS,
                jenkins("https://b.example"),
                400,
                refused("password", "can't be blank"),
            ),
            mia(
                fact("integration-refused"),
                "PUT",
                leak(format!("{INTEGRATIONS}/jira")),
                json!({"url": "https://j.example", "password": "p"}),
                400,
                refused("username", "can't be blank"),
            ),
            mia(
                fact("integration-refused"),
                "PUT",
                leak(format!("{INTEGRATIONS}/harbor")),
                harbor,
                400,
                refused("password", "is invalid"),
            ),
            mia(
                fact("integration-refused"),
                "PUT",
                leak(format!("{INTEGRATIONS}/irker")),
                json!({"recipients": "#ops"}),
                400,
                refused("recipients", "are all invalid"),
            ),
            mia(
                fact("integration-refused"),
                "PUT",
                leak(format!("{INTEGRATIONS}/irker")),
                json!({"recipients": "#ops", "default_irc_uri": "irc://h.example/"}),
                200,
                NO,
            ),
            mia(
                fact("integration-tracker"),
                "PUT",
                leak(format!("{INTEGRATIONS}/jira")),
                jira,
                200,
                NO,
            ),
            mia(
                fact("integration-tracker"),
                "PUT",
                leak(format!("{INTEGRATIONS}/custom-issue-tracker")),
                tracker,
                400,
                NO,
            ),
        ])
        .await;
    let answer = world.get("mia", JENKINS).await.body;
    assert_eq!(answer["properties"]["jenkins_url"], "https://a.example");
}

#[tokio::test]
async fn a_removed_integration_keeps_its_events() {
    let world = world().await;
    world
        .check(vec![
            mia(
                fact("integration-removed"),
                "PUT",
                SLACK,
                slack(json!({"push_events": false})),
                200,
                NO,
            ),
            mia(fact("integration-removed"), "DELETE", SLACK, NO, 204, NO),
            mia(fact("integration-removed"), "DELETE", SLACK, NO, 204, NO),
            mia(
                fact("integration-removed"),
                "GET",
                SLACK,
                NO,
                200,
                json!({"active": false, "push_events": false}),
            ),
            mia(fact("integration-removed"), "GET", INTEGRATIONS, NO, 200, json!([])),
            mia(
                fact("integration-removed"),
                "PUT",
                SLACK,
                slack(json!({})),
                200,
                json!({"active": true, "push_events": false}),
            ),
        ])
        .await;
    let answer = world.get("mia", SLACK).await.body;
    assert_eq!(answer["properties"]["branches_to_be_notified"], NO);
}

#[tokio::test]
async fn unavailable_integrations_are_refused() {
    let world = world().await;
    let jenkins = json!({"jenkins_url": "https://a.example", "project_name": "shop"});
    let unavailable = json!({"message": "400 Integration not available"});
    let old = "/projects/acme%2Fshop/services/external-wiki";
    let wiki = json!({"external_wiki_url": "https://w.example"});
    world
        .check(vec![
            (
                fact("integration-unavailable"),
                "olive",
                "PUT",
                "/groups/acme/integrations/jenkins",
                jenkins,
                400,
                unavailable.clone(),
            ),
            mia(
                fact("integration-unavailable"),
                "PUT",
                leak(format!("{INTEGRATIONS}/gitlab-slack-application")),
                json!({}),
                400,
                unavailable,
            ),
            mia(fact("integration-services"), "PUT", old, wiki.clone(), 200, NO),
            mia(fact("integration-services"), "GET", WIKI, NO, 200, json!({"active": true})),
            mia(
                fact("integration-services"),
                "GET",
                "/projects/acme%2Fshop/services",
                NO,
                200,
                json!([{"slug": "external-wiki"}]),
            ),
            mia(fact("integration-services"), "DELETE", old, NO, 204, NO),
            (fact("integration-services"), "olive", "GET", "/groups/acme/services", NO, 404, NO),
        ])
        .await;
}

#[tokio::test]
async fn projects_and_subgroups_inherit_integrations() {
    let world = world().await;
    let olive = |rule, method, path, body, status, answer| {
        (rule, "olive", method, path, body, status, answer)
    };
    let of_group = |channel: &str| slack(json!({"channel": channel}));
    let shows = |inherited: bool, channel: &str| json!({"active": true, "inherited": inherited, "properties": {"channel": channel}});
    let own = slack(json!({"username": "bot", "use_inherited_settings": false}));
    let again = slack(json!({"username": "x", "use_inherited_settings": true}));
    let site = "/projects/acme%2Fsite/integrations/slack";
    let group_id = world.get("olive", "/groups/acme").await.body["id"].clone();
    world
        .check(vec![
            mia(
                fact("integration-own"),
                "PUT",
                SLACK,
                again.clone(),
                400,
                json!({"message": "Default integration not found."}),
            ),
            olive(fact("integration-inherited"), "PUT", GROUP_SLACK, of_group("#a"), 200, NO),
            mia(fact("integration-inherited"), "GET", SLACK, NO, 200, shows(true, "#a")),
            mia(
                fact("integration-inherited"),
                "GET",
                INTEGRATIONS,
                NO,
                200,
                json!([{"slug": "slack", "inherited": true}]),
            ),
            mia(
                fact("integration-own"),
                "PUT",
                SLACK,
                slack(json!({"channel": "#b"})),
                200,
                shows(true, "#a"),
            ),
            mia(fact("integration-own"), "PUT", SLACK, own, 200, shows(false, "#a")),
            olive(fact("integration-inherited"), "PUT", GROUP_SLACK, of_group("#c"), 200, NO),
            mia(fact("integration-own"), "GET", SLACK, NO, 200, shows(false, "#a")),
            mia(fact("integration-inherited"), "GET", site, NO, 200, shows(true, "#c")),
            mia(fact("integration-own"), "PUT", SLACK, again, 200, shows(true, "#c")),
            mia(fact("integration-below"), "DELETE", SLACK, NO, 204, NO),
            mia(
                fact("integration-below"),
                "GET",
                SLACK,
                NO,
                200,
                json!({"active": false, "inherited": true}),
            ),
            mia(
                fact("integration-below"),
                "PUT",
                SLACK,
                slack(json!({})),
                200,
                json!({"active": false}),
            ),
            olive(fact("integration-below"), "PUT", GROUP_SLACK, of_group("#d"), 200, NO),
            mia(fact("integration-below"), "GET", SLACK, NO, 200, shows(true, "#d")),
            olive(
                fact("integration-inherited"),
                "POST",
                "/projects",
                json!({"path": "fresh", "namespace_id": group_id}),
                201,
                NO,
            ),
            mia(
                fact("integration-inherited"),
                "GET",
                "/projects/acme%2Ffresh/integrations/slack",
                NO,
                200,
                shows(true, "#d"),
            ),
            olive(fact("integration-below"), "DELETE", GROUP_SLACK, NO, 204, NO),
            mia(fact("integration-below"), "GET", site, NO, 200, shows(true, "#d")),
        ])
        .await;
}

#[tokio::test]
async fn later_releases_have_more_integrations() {
    let rule = fact("integration-releases");
    let world = at(Release::new(17, 2)).await;
    world.check(vec![mia(rule, "PUT", SLACK, slack(json!({})), 200, NO)]).await;
    assert!(world.get("mia", SLACK).await.body.get("inherited").is_none());
    let row = (rule, "olive", "PUT", GROUP_SLACK, slack(json!({})), 404, NO);
    world.check(vec![row]).await;
}

const TRACKER: [(&str, &str); 3] = [
    ("project_url", "https://t.example/shop"),
    ("issues_url", "https://t.example/:id"),
    ("new_issue_url", "https://t.example/new"),
];

/// The first URLs of an issue tracker.
fn tracker(count: usize) -> Value {
    TRACKER.into_iter().take(count).collect()
}

#[tokio::test]
async fn redmine_youtrack_and_matrix_are_known() {
    let world = world().await;
    let rule = fact("integration-more");
    let matrix = json!({
        "hostname": "https://matrix.org", "token": "secret", "room": "!abc:matrix.org", "push_events": false,
    });
    let shown = json!({
        "hostname": "https://matrix.org", "room": "!abc:matrix.org", "branches_to_be_notified": "default",
        "notify_only_broken_pipelines": true, "notify_only_when_pipeline_status_changes": false,
    });
    for (slug, title, body, properties) in [
        ("redmine", "Redmine", tracker(3), tracker(3)),
        ("youtrack", "JetBrains YouTrack", tracker(2), tracker(2)),
        ("matrix", "Matrix notifications", matrix, shown),
    ] {
        let of_project = leak(format!("{INTEGRATIONS}/{slug}"));
        let of_group = leak(format!("/groups/acme/integrations/{slug}"));
        let needed = json!({"use_inherited_settings": false});
        let answer =
            json!({"slug": slug, "title": title, "active": true, "properties": properties});
        world
            .check(vec![
                mia(
                    rule,
                    "GET",
                    of_project,
                    NO,
                    404,
                    json!({"message": "404 Integration Not Found"}),
                ),
                mia(rule, "PUT", of_project, needed, 400, NO),
                mia(rule, "PUT", of_project, body.clone(), 200, answer.clone()),
                mia(rule, "GET", of_project, NO, 200, answer.clone()),
                mia(rule, "DELETE", of_project, NO, 204, NO),
                mia(rule, "GET", of_project, NO, 200, json!({"active": false})),
                (rule, "olive", "PUT", of_group, body, 200, answer),
                (rule, "olive", "DELETE", of_group, NO, 204, NO),
            ])
            .await;
    }
    let properties =
        &world.get("olive", "/groups/acme/integrations/matrix").await.body["properties"];
    assert!(properties.get("token").is_none(), "{rule}: {properties}");
    let group = |slug: &str| leak(format!("/groups/acme/integrations/{slug}"));
    world
        .check(vec![
            mia(
                fact("integration-tracker"),
                "PUT",
                leak(format!("{INTEGRATIONS}/redmine")),
                tracker(3),
                200,
                NO,
            ),
            mia(
                fact("integration-tracker"),
                "PUT",
                leak(format!("{INTEGRATIONS}/youtrack")),
                tracker(2),
                400,
                NO,
            ),
            (fact("integration-tracker"), "olive", "PUT", group("redmine"), tracker(3), 200, NO),
            (fact("integration-tracker"), "olive", "PUT", group("youtrack"), tracker(2), 200, NO),
        ])
        .await;
}

#[tokio::test]
async fn jira_has_a_numeric_auth_type_and_defaults() {
    let world = world().await;
    let rule = fact("integration-jira");
    let jira = leak(format!("{INTEGRATIONS}/jira"));
    let basic = json!({"url": "https://j.example", "username": "u", "password": "p"});
    let token = json!({"url": "https://j.example", "password": "p", "jira_auth_type": 1});
    let own = json!({"jira_auth_type": 0, "issues_enabled": false, "project_keys": []});
    world
        .check(vec![
            mia(rule, "PUT", jira, basic, 200, json!({"properties": own})),
            mia(rule, "PUT", jira, token, 200, json!({"properties": {"jira_auth_type": 1}})),
            mia(rule, "GET", jira, NO, 200, json!({"properties": {"jira_auth_type": 1}})),
        ])
        .await;
}

#[tokio::test]
async fn integrations_have_titles() {
    let world = world().await;
    let rule = fact("integration-title");
    let mail = leak(format!("{INTEGRATIONS}/pipelines-email"));
    let wiki = json!({"external_wiki_url": "https://w.example"});
    world
        .check(vec![
            mia(rule, "PUT", SLACK, slack(json!({})), 200, json!({"title": "Slack notifications"})),
            mia(rule, "PUT", WIKI, wiki, 200, json!({"title": "External wiki"})),
            mia(
                rule,
                "PUT",
                mail,
                json!({"recipients": "a@example.com"}),
                200,
                json!({"title": "Pipeline status emails"}),
            ),
            mia(
                rule,
                "GET",
                INTEGRATIONS,
                NO,
                200,
                json!([
                    {"title": "Slack notifications"}, {"title": "External wiki"}, {"title": "Pipeline status emails"},
                ]),
            ),
        ])
        .await;
}

#[tokio::test]
async fn chats_have_presets_and_channels() {
    let world = world().await;
    let rule = fact("integration-chat");
    let preset = json!({
        "labels_to_be_notified_behavior": "match_any", "notify_only_when_pipeline_status_changes": false,
        "confidential_issue_channel": null,
    });
    let channels =
        json!({"issue_channel": "#a", "confidential_issue_channel": "", "note_channel": "#n"});
    let shown = json!({
        "issue_channel": "#a", "confidential_issue_channel": "#a", "confidential_note_channel": "#n",
    });
    let own = json!({"confidential_issue_channel": "#b"});
    world
        .check(vec![
            mia(rule, "PUT", SLACK, slack(json!({})), 200, json!({"properties": preset})),
            mia(rule, "PUT", SLACK, slack(channels), 200, json!({"properties": shown})),
            mia(rule, "PUT", SLACK, slack(own.clone()), 200, json!({"properties": own})),
        ])
        .await;
}

#[tokio::test]
async fn values_that_the_model_does_not_know_are_refused() {
    let world = world().await;
    let rule = fact("integration-invalid");
    let schemes = "is blocked: Only allowed schemes are http, https";
    let local = "is blocked: Requests to localhost are not allowed";
    let wiki = |url: &str| json!({"external_wiki_url": url});
    let own = format!("{}/wiki", world.running.url());
    let mut invalid_tracker = tracker(3);
    invalid_tracker["issues_url"] = "t.example/:id".into();
    let behavior = |word: &str| slack(json!({"labels_to_be_notified_behavior": word}));
    let unlisted = refused("labels_to_be_notified_behavior", "is not included in the list");
    let matrix = json!({"token": "t", "room": "r", "hostname": "matrix.org"});
    let telegram = json!({"token": "t", "room": "@a", "thread": "x"});
    world
        .check(vec![
            mia(rule, "PUT", WIKI, wiki("nourl"), 400, refused("external_wiki_url", schemes)),
            mia(
                rule,
                "PUT",
                WIKI,
                wiki("http://127.0.0.1:1/"),
                400,
                refused("external_wiki_url", local),
            ),
            mia(rule, "PUT", WIKI, wiki(&own), 200, NO),
            mia(
                rule,
                "PUT",
                leak(format!("{INTEGRATIONS}/redmine")),
                invalid_tracker,
                400,
                refused("issues_url", schemes),
            ),
            mia(rule, "PUT", SLACK, behavior("nonsense"), 400, unlisted),
            mia(rule, "PUT", SLACK, behavior(""), 200, NO),
            mia(rule, "PUT", SLACK, behavior("match_all"), 200, NO),
            mia(
                rule,
                "PUT",
                leak(format!("{INTEGRATIONS}/matrix")),
                matrix,
                400,
                refused("webhook", schemes),
            ),
            mia(
                rule,
                "PUT",
                leak(format!("{INTEGRATIONS}/telegram")),
                telegram,
                400,
                refused("thread", "is not a number"),
            ),
        ])
        .await;
    let allowed = json!({"allow_local_requests_from_web_hooks_and_services": true});
    world.call(ROOT, "PUT", "/application/settings", &allowed).await;
    world.check(vec![mia(rule, "PUT", WIKI, wiki("http://127.0.0.1:1/"), 200, NO)]).await;
}
