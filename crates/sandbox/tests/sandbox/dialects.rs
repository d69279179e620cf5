//! Each dialect answers the other way. Other tests check that the faithful service answers
//! according to its rule.

use serde_json::{Value, json};
use undrift_sandbox::{Profile, SandboxConfig, ServiceTier};

use super::client::{ROOT, Row, World, usual_seed};
use super::facts::fact;
use super::hostile::hostile;
use super::switches::{Switch, halves, switches};

const NO: Value = Value::Null;
const SHOP: &str = "/projects/acme%2Fshop";
const HOOKS: &str = "/projects/acme%2Fshop/hooks";
const HOOK: &str = "/projects/acme%2Fshop/hooks/1";
const RULE: &str = "/projects/acme%2Fshop/push_rule";
const VARIABLES: &str = "/projects/acme%2Fshop/variables";
const VARIABLE: &str = "/projects/acme%2Fshop/variables/A";
const BRANCHES: &str = "/projects/acme%2Fshop/protected_branches";
const BRANCH: &str = "/projects/acme%2Fshop/protected_branches/main";
const KEYS: &str = "/projects/acme%2Fshop/deploy_keys";
const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB";
const STRANGER: &str = "/projects/acme%2Fshop/members/7";

/// Calls that end with the answer of a dialect.
fn calls(switch: &str) -> Vec<Row> {
    let member = json!({"user_id": 7, "access_level": 20, "expires_at": "2999-01-31"});
    match switch {
        "absent_delete" => vec![
            (
                fact("hook-delete-absent"),
                "mia",
                "DELETE",
                HOOK,
                NO,
                404,
                json!({"message": "404 Not found"}),
            ),
            (
                fact("push-rule-delete-absent"),
                "mia",
                "DELETE",
                RULE,
                NO,
                404,
                json!({"message": "404 Push Rule Not Found"}),
            ),
        ],
        "archive_twice_refused" => vec![
            (fact("archive"), "olive", "POST", "/projects/1/archive", NO, 201, NO),
            (
                fact("archive-twice"),
                "olive",
                "POST",
                "/projects/1/archive",
                NO,
                400,
                json!({"message": "Project is already archived."}),
            ),
        ],
        "accepts_only_reference_attributes" => vec![(
            fact("project-create-more"),
            "olive",
            "POST",
            "/projects",
            json!({"path": "more", "ci_default_git_depth": 5}),
            201,
            json!({"ci_default_git_depth": 20}),
        )],
        "empty_has_no_branch" => vec![(
            fact("default-branch-of-empty"),
            "olive",
            "GET",
            SHOP,
            NO,
            200,
            json!({"empty_repo": true, "default_branch": null}),
        )],
        "archived_read_only" => vec![
            (fact("archive"), "olive", "POST", "/projects/1/archive", NO, 201, NO),
            (fact("archived-writable"), "olive", "PUT", SHOP, json!({"description": "x"}), 403, NO),
            (
                fact("archived-writable"),
                "olive",
                "POST",
                HOOKS,
                json!({"url": "https://x.example"}),
                403,
                NO,
            ),
            (fact("archived-writable"), "olive", "DELETE", "/projects/1/members/4", NO, 403, NO),
        ],
        "code_owner_approval_kept" => vec![
            (
                fact("protected-branch-defaults"),
                "mia",
                "POST",
                BRANCHES,
                json!({"name": "main", "code_owner_approval_required": true}),
                201,
                NO,
            ),
            (
                fact("protected-branch-code-owners"),
                "mia",
                "PATCH",
                BRANCH,
                json!({"allow_force_push": true}),
                200,
                json!({"code_owner_approval_required": true}),
            ),
        ],
        "developers_read_protections" => vec![
            (fact("protected-branch-read"), "dan", "GET", BRANCHES, NO, 200, json!([])),
            (fact("protected-branch-read"), "dan", "GET", BRANCH, NO, 404, NO),
            (fact("protected-branch-read"), "rita", "GET", BRANCHES, NO, 403, NO),
        ],
        "former_paths_answer" => vec![
            (fact("project-edit"), "mia", "PUT", SHOP, json!({"path": "store"}), 200, NO),
            (fact("project-moved"), "mia", "GET", SHOP, NO, 200, json!({"path": "store"})),
        ],
        "group_variable_filter" => {
            let list = "/groups/acme/variables";
            let variable =
                |scope: &str| json!({"key": "K", "value": "v", "environment_scope": scope});
            let in_scope =
                |scope: &str| json!({"value": "w", "filter": {"environment_scope": scope}});
            let put = |scope: &str, changed: &str| {
                (
                    fact("group-variable-update"),
                    "olive",
                    "PUT",
                    "/groups/acme/variables/K",
                    in_scope(scope),
                    200,
                    json!({"environment_scope": changed}),
                )
            };
            vec![
                (fact("group-variables"), "olive", "POST", list, variable("*"), 201, NO),
                (fact("group-variables"), "olive", "POST", list, variable("prod"), 201, NO),
                put("prod", "prod"),
                put("elsewhere", "*"),
            ]
        }
        "runners_setting_shown" => {
            let shown = |word: &str| json!({"shared_runners_setting": word});
            let runners = fact("group-runners");
            vec![
                (runners, "olive", "GET", "/groups/acme", NO, 200, shown("enabled")),
                (
                    runners,
                    "olive",
                    "PUT",
                    "/groups/acme",
                    shown("disabled_with_override"),
                    200,
                    shown("disabled_and_overridable"),
                ),
            ]
        }
        "tag_allowed_to_create_ignored" => vec![(
            fact("protected-tag-list"),
            "mia",
            "POST",
            "/projects/acme%2Fshop/protected_tags",
            json!({"name": "v*", "allowed_to_create": [{"user_id": 4}]}),
            201,
            json!({"create_access_levels": [{"access_level": 40, "user_id": null}]}),
        )],
        "import_members_created" => {
            vec![(
                fact("import-members"),
                "mia",
                "POST",
                "/projects/1/import_project_members/2",
                NO,
                201,
                json!({"status": "success"}),
            )]
        }
        "last_owner_bad_request" => vec![
            (fact("last-owner"), "olive", "DELETE", "/groups/acme/members/2", NO, 400, NO),
            (
                fact("last-owner"),
                "olive",
                "PUT",
                "/groups/acme/members/2",
                json!({"access_level": 30}),
                400,
                NO,
            ),
            (fact("last-owner"), "olive", "DELETE", "/groups/acme/billable_members/2", NO, 400, NO),
        ],
        "errors_as_after_16" => vec![
            (
                fact("fork-clash"),
                "dan",
                "POST",
                "/projects/2/fork",
                json!({"namespace_path": "acme"}),
                409,
                json!({"message": ["Project namespace name has already been taken", "Name has already been taken", "Path has already been taken"]}),
            ),
            (
                fact("deploy-key-shape"),
                "mia",
                "POST",
                KEYS,
                json!({"title": "a", "key": KEY}),
                201,
                NO,
            ),
            (
                fact("deploy-key-taken"),
                "mia",
                "POST",
                KEYS,
                json!({"title": "a", "key": format!("{KEY} of ci")}),
                400,
                json!({"message": {"deploy_key.fingerprint_sha256": ["has already been taken"]}}),
            ),
            (
                fact("push-rule-update-absent"),
                "mia",
                "PUT",
                RULE,
                json!({"member_check": true}),
                404,
                json!({"message": "404 Push rule Not Found"}),
            ),
            (
                fact("push-rule-defaults"),
                "mia",
                "POST",
                RULE,
                json!({"member_check": true}),
                201,
                NO,
            ),
            (
                fact("push-rule-exists"),
                "mia",
                "POST",
                RULE,
                json!({"member_check": true}),
                422,
                json!({"message": "Project push rule exists"}),
            ),
        ],
        "maintainer_grants_owner" => vec![(
            fact("member-owner-grant"),
            "mia",
            "POST",
            "/projects/1/members",
            json!({"user_id": 7, "access_level": 50}),
            201,
            json!({"access_level": 50}),
        )],
        "maintainer_relates_forks" => vec![
            (fact("fork-relation-right"), "mia", "POST", "/projects/1/fork/2", NO, 201, NO),
            (fact("fork-relation-right"), "mia", "DELETE", "/projects/1/fork", NO, 204, NO),
        ],
        "override_needs_directory" => vec![(
            fact("override"),
            "olive",
            "POST",
            "/groups/acme/members/4/override",
            NO,
            403,
            NO,
        )],
        "owner_has_three_fields" => {
            vec![(
                fact("project-owner"),
                "dan",
                "POST",
                "/projects",
                json!({"path": "mine"}),
                201,
                json!({"owner": {"id": 4}}),
            )]
        }
        "optional_variable_value" => vec![
            (
                fact("variable-shape"),
                "mia",
                "POST",
                VARIABLES,
                json!({"key": "A", "value": "v"}),
                201,
                NO,
            ),
            (
                fact("variable-value-required"),
                "mia",
                "PUT",
                VARIABLE,
                json!({"raw": true}),
                200,
                json!({"value": "v", "raw": true}),
            ),
        ],
        "put_clears_expiry" => vec![
            (fact("member-add"), "mia", "POST", "/projects/1/members", member, 201, NO),
            (
                fact("member-expiry-kept"),
                "mia",
                "PUT",
                STRANGER,
                json!({"access_level": 20}),
                200,
                json!({"expires_at": null}),
            ),
        ],
        "put_resets_omitted_flags" => vec![
            (
                fact("variable-shape"),
                "mia",
                "POST",
                VARIABLES,
                json!({"key": "A", "value": "v", "raw": true}),
                201,
                NO,
            ),
            (
                fact("variable-update"),
                "mia",
                "PUT",
                VARIABLE,
                json!({"value": "v"}),
                200,
                json!({"raw": false}),
            ),
            (
                fact("hook-defaults"),
                "mia",
                "POST",
                HOOKS,
                json!({"url": "https://x.example", "issues_events": true}),
                201,
                NO,
            ),
            (
                fact("hook-update"),
                "mia",
                "PUT",
                HOOK,
                json!({"url": "https://x.example"}),
                200,
                json!({"issues_events": false}),
            ),
        ],
        "raw_values_need_plain_alphabet" => {
            let variable = json!({"key": "M", "value": "$expanded", "masked": true, "raw": true});
            vec![(
                fact("variable-masked-raw"),
                "mia",
                "POST",
                VARIABLES,
                variable,
                400,
                json!({"message": {"value": ["is invalid"]}}),
            )]
        }
        "requirements_never_public" => {
            let body = json!({"requirements_access_level": "public"});
            vec![(fact("requirements-public"), "mia", "PUT", SHOP, body, 400, NO)]
        }
        "star_answers_ok" => vec![(
            fact("star"),
            "mia",
            "POST",
            "/projects/1/star",
            NO,
            200,
            json!({"star_count": 1}),
        )],
        "unlisted_attributes_hidden" => {
            vec![(
                fact("project-unlisted"),
                "mia",
                "PUT",
                SHOP,
                json!({"monitor_access_level": "private"}),
                200,
                NO,
            )]
        }
        "unlicensed_forbidden" => vec![(fact("push-rule-tier"), "mia", "GET", RULE, NO, 403, NO)],
        other => panic!("the dialect {other} has no test"),
    }
}

#[tokio::test]
async fn every_dialect_answers_differently() {
    for (switch, turn_on) in switches() {
        let mut profile = Profile::default();
        turn_on(&mut profile);
        let tier = if switch == "unlicensed_forbidden" {
            ServiceTier::Free
        } else {
            ServiceTier::Ultimate
        };
        let world = World::seeded(
            usual_seed(),
            SandboxConfig { profile, tier: Some(tier), ..SandboxConfig::default() },
        )
        .await;
        world.check(calls(switch)).await;
    }
}

#[tokio::test]
async fn a_dialect_hides_unlisted_attributes() {
    let profile = Profile { unlisted_attributes_hidden: true, ..Profile::default() };
    let world =
        World::seeded(usual_seed(), SandboxConfig { profile, ..SandboxConfig::default() }).await;
    let project = world
        .call("mia", "PUT", SHOP, &json!({"monitor_access_level": "private", "lfs_enabled": false}))
        .await
        .body;
    assert_eq!(project["lfs_enabled"], false);
    assert_eq!(project.get("monitor_access_level"), None, "{}", fact("project-unlisted"));
}

#[tokio::test]
async fn the_default_profile_answers_as_documented() {
    let world = World::usual().await;
    let created = world.get(ROOT, "/users/4").await.body["created_at"].clone();
    world
        .check(vec![
            (fact("project-names"), "dan", "POST", "/projects", json!({"path": "mine"}), 201, NO),
            (
                fact("project-edit"),
                "mia",
                "PUT",
                SHOP,
                json!({"requirements_access_level": "public"}),
                200,
                json!({"requirements_access_level": "public"}),
            ),
            (
                fact("requirements-public"),
                "mia",
                "GET",
                SHOP,
                NO,
                200,
                json!({"requirements_access_level": "public"}),
            ),
        ])
        .await;
    let owner = world.get("dan", "/projects/dan%2Fmine").await.body["owner"].clone();
    let url = world.running.url();
    let avatar = world.get("dan", "/user").await.body["avatar_url"].clone();
    let expected = json!({
        "id": 4, "username": "dan", "name": "dan", "state": "active", "created_at": created,
        "avatar_url": avatar, "web_url": format!("{url}/dan"),
    });
    assert_eq!(owner, expected, "{}", fact("project-owner"));
}

#[tokio::test]
async fn a_dialect_shows_three_fields_of_the_owner() {
    let profile = Profile { owner_has_three_fields: true, ..Profile::default() };
    let world =
        World::seeded(usual_seed(), SandboxConfig { profile, ..SandboxConfig::default() }).await;
    let created = world.get(ROOT, "/users/4").await.body["created_at"].clone();
    let project = world.call("dan", "POST", "/projects", &json!({"path": "mine"})).await.body;
    assert_eq!(
        project["owner"],
        json!({"id": 4, "name": "dan", "created_at": created}),
        "{}",
        fact("project-owner")
    );
}

#[test]
fn any_two_switches_are_also_tested_apart() {
    let all = [switches(), hostile()].concat();
    let is_on = |(_, turn_on): &Switch, profile: &Profile| {
        let mut with = profile.clone();
        turn_on(&mut with);
        format!("{with:?}") == format!("{profile:?}")
    };
    let halves = halves(&all);
    for own in &all {
        for other in all.iter().filter(|other| other.0 != own.0) {
            let mut profiles = halves.iter().map(|(_, profile)| profile);
            let found = profiles.any(|p| is_on(own, p) && !is_on(other, p));
            assert!(found, "{} without {}", own.0, other.0);
        }
    }
}
