//! Features of later releases, and their absence before.

use serde_json::{Value, json};
use undrift_release::Release;
use undrift_sandbox::SandboxConfig;

use super::client::{ROOT, World, usual_seed};
use super::facts::fact;

const NO: Value = Value::Null;
const PROJECT: &str = "/projects/1";
const VARIABLES: &str = "/projects/1/variables";
const VARIABLE: &str = "/projects/1/variables/K";
const HOOKS: &str = "/projects/1/hooks";
const RULE: &str = "/projects/1/push_rule";
const SUBGROUP: &str = "/groups/acme%2Fsub";
const MEMBER: &str = "/projects/1/members/7";

pub(crate) async fn at(release: &str) -> World {
    let mut seed = usual_seed();
    seed["groups"].as_array_mut().expect("groups").push(json!({"path": "acme/sub"}));
    seed["release"] = "15.8".into();
    let release: Release = release.parse().expect("a release");
    World::seeded(seed, SandboxConfig { release: Some(release), ..SandboxConfig::default() }).await
}

/// Those of `names` that the answer at `path` has.
async fn shown<'n>(world: &World, path: &str, names: &[&'n str]) -> Vec<&'n str> {
    let body = world.get(ROOT, path).await.body;
    let body = if body.is_array() { body[0].clone() } else { body };
    names.iter().copied().filter(|name| body.get(*name).is_some()).collect()
}

#[tokio::test]
async fn attributes_exist_from_their_release_on() {
    let rule = fact("release-attributes");
    let of_project = [
        "group_runners_enabled",
        "emails_enabled",
        "model_registry_access_level",
        "max_artifacts_size",
    ];
    let of_group = [
        "wiki_access_level",
        "emails_enabled",
        "default_branch",
        "only_allow_merge_if_pipeline_succeeds",
    ];
    for (release, project, group) in
        [("15.8", 0, 0), ("15.9", 1, 0), ("16.6", 2, 2), ("16.11", 3, 3), ("18.9", 4, 4)]
    {
        let world = at(release).await;
        assert_eq!(
            shown(&world, PROJECT, &of_project).await,
            of_project[..project],
            "{rule} {release}"
        );
        assert_eq!(
            shown(&world, "/groups/acme", &of_group).await,
            of_group[..group],
            "{rule} {release}"
        );
        let gone = shown(&world, PROJECT, &["operations_access_level"]).await;
        assert_eq!(gone.is_empty(), release > "16", "{rule} {release}");
        let version = world.get("mia", "/version").await.body;
        assert_eq!(version["version"], format!("{release}.0-ee"), "{}", fact("version"));
    }
    // A feature that does not exist is not a parameter either.
    let world = at("15.8").await;
    let body = json!({"group_runners_enabled": false});
    world.check(vec![(rule, "olive", "PUT", PROJECT, body, 400, NO)]).await;
}

#[tokio::test]
async fn replaced_and_new_attributes_stay_in_sync() {
    let world = at("18.9").await;
    let (twins, owners, packages) =
        (fact("release-twins"), fact("release-owners"), fact("release-packages"));
    let (level, role) =
        ("package_registry_access_level", "ci_pipeline_variables_minimum_override_role");
    let new = |name: &str| json!({"name": name, "namespace_id": 2, level: "disabled"});
    let namespace = world.get(ROOT, PROJECT).await.body["namespace"]["id"].clone();
    let new = |name: &str, off: bool| {
        let mut body = new(name);
        body["namespace_id"] = namespace.clone();
        if off {
            body["packages_enabled"] = false.into();
        }
        body
    };
    world
        .check(vec![
            (
                twins,
                "olive",
                "PUT",
                PROJECT,
                json!({"packages_enabled": false}),
                200,
                json!({level: "disabled"}),
            ),
            (
                packages,
                "olive",
                "PUT",
                PROJECT,
                json!({level: "private"}),
                200,
                json!({"packages_enabled": false, level: "private"}),
            ),
            (
                twins,
                "olive",
                "PUT",
                PROJECT,
                json!({"public_jobs": false}),
                200,
                json!({"public_jobs": false}),
            ),
            (
                twins,
                "olive",
                "PUT",
                PROJECT,
                json!({"restrict_user_defined_variables": true}),
                200,
                json!({role: "maintainer"}),
            ),
            (owners, "mia", "PUT", PROJECT, json!({role: "owner"}), 400, NO),
            (owners, "olive", "PUT", PROJECT, json!({role: "owner"}), 200, json!({role: "owner"})),
            (owners, "mia", "PUT", PROJECT, json!({role: "developer"}), 400, NO),
            (
                owners,
                "mia",
                "PUT",
                PROJECT,
                json!({"ci_delete_pipelines_in_seconds": 86_400}),
                403,
                NO,
            ),
            (
                owners,
                "olive",
                "PUT",
                PROJECT,
                json!({"ci_delete_pipelines_in_seconds": 86_400}),
                200,
                NO,
            ),
            (
                packages,
                "olive",
                "POST",
                "/projects",
                new("one", false),
                201,
                json!({level: "disabled", "packages_enabled": true}),
            ),
            (
                packages,
                "olive",
                "POST",
                "/projects",
                new("two", true),
                201,
                json!({level: "disabled"}),
            ),
        ])
        .await;
}

#[tokio::test]
async fn a_parent_group_can_switch_emails_off() {
    let rule = fact("release-emails");
    let world = at("18.9").await;
    let both = |disabled: bool, enabled: bool| json!({"emails_disabled": disabled, "emails_enabled": enabled});
    let set = |on: bool| json!({"emails_enabled": on});
    world
        .check(vec![
            (
                rule,
                "olive",
                "PUT",
                PROJECT,
                json!({"emails_disabled": true}),
                200,
                both(true, false),
            ),
            (rule, "mia", "PUT", PROJECT, set(true), 200, both(true, false)),
            (rule, "olive", "PUT", PROJECT, set(true), 200, both(false, true)),
            (rule, "olive", "PUT", "/groups/acme", set(false), 200, both(true, false)),
            (rule, "olive", "GET", PROJECT, NO, 200, both(true, true)),
            (rule, "olive", "GET", SUBGROUP, NO, 200, both(true, true)),
            (
                rule,
                "olive",
                "PUT",
                "/groups/acme",
                json!({"emails_disabled": null}),
                200,
                both(false, true),
            ),
        ])
        .await;
    let world = at("15.8").await;
    let off = json!({"emails_disabled": true});
    world.check(vec![(rule, "olive", "PUT", "/groups/acme", off, 200, NO)]).await;
    let answer = world.get("olive", PROJECT).await.body;
    assert!(answer["emails_disabled"].is_null(), "{rule}: {answer}");
}

#[tokio::test]
async fn variables_are_described_and_hidden() {
    let (rule, hidden) = (fact("release-variables"), fact("release-hidden"));
    let names = ["description", "hidden"];
    for (release, count) in [("16.1", 0), ("16.2", 1), ("17.4", 2)] {
        let world = at(release).await;
        let new = json!({"key": "K", "value": "a-plain-value", "description": "x", "masked_and_hidden": true});
        let masked = count == 2;
        world
            .check(vec![(rule, "mia", "POST", VARIABLES, new, 201, json!({"masked": masked}))])
            .await;
        assert_eq!(shown(&world, VARIABLES, &names).await, names[..count], "{rule} {release}");
    }
    let world = at("17.4").await;
    let new = json!({"key": "K", "value": "a-plain-value", "masked_and_hidden": true});
    let is = |described: Value| json!({"value": null, "masked": true, "hidden": true, "description": described});
    let short = json!({"key": "L", "value": "short", "masked_and_hidden": true});
    world
        .check(vec![
            (hidden, "mia", "POST", VARIABLES, short, 400, NO),
            (hidden, "mia", "POST", VARIABLES, new, 201, is(NO)),
            (hidden, "mia", "GET", VARIABLE, NO, 200, is(NO)),
            (hidden, "mia", "PUT", VARIABLE, json!({"description": "x"}), 200, is("x".into())),
            (
                hidden,
                "mia",
                "PUT",
                VARIABLE,
                json!({"value": "another-value"}),
                200,
                is("x".into()),
            ),
            (hidden, "mia", "PUT", VARIABLE, json!({"masked": false}), 400, NO),
            (
                hidden,
                "mia",
                "PUT",
                VARIABLE,
                json!({"masked_and_hidden": false}),
                200,
                is("x".into()),
            ),
        ])
        .await;
}

#[tokio::test]
async fn hooks_have_names_and_more_events() {
    let rule = fact("release-hooks");
    let names = [
        "emoji_events",
        "custom_webhook_template",
        "name",
        "description",
        "vulnerability_events",
        "milestone_events",
    ];
    for (release, count) in
        [("15.8", 0), ("16.2", 1), ("16.10", 2), ("17.1", 4), ("17.7", 5), ("18.9", 6)]
    {
        let world = at(release).await;
        let new = json!({"url": "https://h.example.org", "name": "ci", "description": "x"});
        world.check(vec![(rule, "mia", "POST", HOOKS, new, 201, NO)]).await;
        assert_eq!(shown(&world, HOOKS, &names).await, names[..count], "{rule} {release}");
    }
    let world = at("18.9").await;
    let url = "https://h.example.org";
    world
        .check(vec![
            (
                rule,
                "mia",
                "POST",
                HOOKS,
                json!({"url": url, "name": "ci"}),
                201,
                json!({"name": "ci", "description": null}),
            ),
            (
                rule,
                "mia",
                "PUT",
                "/projects/1/hooks/1",
                json!({"url": url, "emoji_events": true}),
                200,
                json!({"name": "ci", "emoji_events": true}),
            ),
        ])
        .await;
}

#[tokio::test]
async fn only_owners_add_planners() {
    let rule = fact("release-planner");
    let planner = json!({"user_id": 7, "access_level": 15});
    let world = at("17.6").await;
    world
        .check(vec![(rule, "olive", "POST", "/projects/1/members", planner.clone(), 400, NO)])
        .await;
    let world = at("17.7").await;
    world
        .check(vec![
            (rule, "mia", "POST", "/projects/1/members", planner.clone(), 403, NO),
            (
                rule,
                "olive",
                "POST",
                "/projects/1/members",
                planner,
                201,
                json!({"access_level": 15}),
            ),
            (rule, "olive", "GET", MEMBER, NO, 200, json!({"access_level": 15})),
        ])
        .await;
}

#[tokio::test]
async fn push_rules_have_more_flags() {
    let rule = fact("release-push-rules");
    let names = ["commit_committer_name_check", "reject_non_dco_commits"];
    for (release, count) in [("15.8", 0), ("16.7", 1), ("17.1", 2)] {
        let world = at(release).await;
        world
            .check(vec![(rule, "mia", "POST", RULE, json!({"member_check": true}), 201, NO)])
            .await;
        assert_eq!(shown(&world, RULE, &names).await, names[..count], "{rule} {release}");
    }
    let world = at("17.1").await;
    let dco = |on: bool| json!({"reject_non_dco_commits": on});
    let long = json!({"commit_message_negative_regex": "x".repeat(2_047)});
    world
        .check(vec![
            (rule, "mia", "POST", RULE, dco(true), 201, dco(true)),
            (rule, "mia", "PUT", RULE, dco(false), 200, json!({"reject_non_dco_commits": null})),
            (rule, "mia", "PUT", RULE, long.clone(), 200, NO),
        ])
        .await;
    let world = at("16.3").await;
    world.check(vec![(rule, "mia", "POST", RULE, long, 400, NO)]).await;
    let syntax = fact("push-rule-regex");
    let wrong = json!({"branch_name_regex": "a("});
    let fault = json!({"branch_name_regex": ["not valid RE2 syntax: missing ): a("]});
    for (release, status, answer) in
        [("18.1", 201, wrong.clone()), ("18.2", 400, json!({"message": fault}))]
    {
        let row = (syntax, "mia", "POST", RULE, wrong.clone(), status, answer);
        at(release).await.check(vec![row]).await;
    }
    let absent = fact("push-rule-delete-absent");
    at("18.9").await.check(vec![(absent, "mia", "DELETE", RULE, NO, 404, NO)]).await;
}

#[tokio::test]
async fn attributes_that_the_code_of_18_9_accepts() {
    let world = at("18.9").await;
    let trains = json!({"merge_pipelines_enabled": false, "merge_trains_enabled": false});
    let made =
        json!({"path": "trained", "merge_pipelines_enabled": true, "merge_trains_enabled": true});
    let regex = json!({"merge_request_title_regex": "("});
    let refusal = json!({"message": {"project_setting.merge_request_title_regex": ["not valid RE2 syntax: missing ): ("]}});
    let requirements = json!({"requirements_access_level": "public"});
    world
        .check(vec![
            (fact("merge-trains"), "olive", "POST", "/projects", made.clone(), 201, trains),
            (fact("title-regex"), "olive", "PUT", PROJECT, regex, 400, refusal),
            (fact("requirements-public"), "olive", "PUT", PROJECT, requirements, 400, NO),
        ])
        .await;
    let simple = world.get("", "/projects/acme%2Fsite").await.body;
    let has = |name: &str| simple.get(name).is_some();
    let rule = fact("project-public");
    assert!(has("visibility") && has("forks_count") && !has("merge_method"), "{rule}");
    let earlier = at("15.8").await.call("olive", "POST", "/projects", &made).await.body;
    assert_eq!(earlier["merge_trains_enabled"], true, "{}", fact("merge-trains"));
}
