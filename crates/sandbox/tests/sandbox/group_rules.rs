//! Groups at 18.9, as in the service's own code.

use serde_json::{Value, json};
use undrift_sandbox::{Fact, OBSERVED_RELEASE, Profile, SandboxConfig, ServiceTier};

use super::client::{ROOT, Row, World};
use super::facts::fact;

const NO: Value = Value::Null;
const TOP: &str = "/groups/acme";
const BELOW: &str = "/groups/acme%2Fdeep";

async fn world() -> World {
    let member = |user: &str, level: &str| json!({"user": user, "access_level": level});
    let user = |name: &str| json!({"username": name, "token": name});
    let seed = json!({
        "users": [user("ann"), user("max")],
        "groups": [
            {"path": "acme", "members": [member("ann", "owner"), member("max", "maintainer")]},
            {"path": "acme/deep"},
        ],
        "projects": [{"path": "acme/thing"}],
    });
    World::seeded(
        seed,
        SandboxConfig {
            profile: Profile::default().with_release(OBSERVED_RELEASE),
            tier: Some(ServiceTier::Ultimate),
            ..SandboxConfig::default()
        },
    )
    .await
}

fn put(rule: &'static Fact, path: &'static str, body: Value, status: u16, answer: Value) -> Row {
    (rule, "ann", "PUT", path, body, status, answer)
}

#[tokio::test]
async fn invalid_and_empty_values_of_groups_are_refused() {
    let levels = |value: i64| json!([{"access_level": value}]);
    let blank = |field: &str, texts: &[&str]| json!({"message": {field: texts}});
    let (number, defaults) = ("default_branch_protection", "default_branch_protection_defaults");
    let same = |rule, body: Value| put(rule, TOP, body.clone(), 200, body);
    let refused = |rule, body: Value| put(rule, TOP, body, 400, NO);
    let skipped = "400 Bad request - allow_merge_on_skipped_pipeline can only be enabled when \
                   only_allow_merge_if_pipeline_succeeds is true";
    let rows = vec![
        same(fact("group-words"), json!({"project_creation_level": "owner"})),
        same(fact("group-words"), json!({"project_creation_level": "administrator"})),
        refused(fact("group-words"), json!({"shared_runners_setting": "disabled_with_override"})),
        put(
            fact("group-null"),
            TOP,
            json!({"two_factor_grace_period": null}),
            400,
            blank("two_factor_grace_period", &["can't be blank", "is not a number"]),
        ),
        put(
            fact("group-null"),
            TOP,
            json!({"unique_project_download_limit": null}),
            400,
            blank(
                "namespace_settings.unique_project_download_limit",
                &["is not a number", "can't be blank"],
            ),
        ),
        same(fact("group-null"), json!({"share_with_group_lock": null})),
        put(
            fact("group-null"),
            TOP,
            json!({"lfs_enabled": false}),
            200,
            json!({"lfs_enabled": false}),
        ),
        put(
            fact("group-null"),
            TOP,
            json!({"lfs_enabled": null}),
            200,
            json!({"lfs_enabled": true}),
        ),
        same(fact("group-null"), json!({"default_branch": "trunk"})),
        put(
            fact("group-null"),
            TOP,
            json!({"default_branch": "a b"}),
            200,
            json!({"default_branch": null}),
        ),
        put(
            fact("group-protection"),
            TOP,
            json!({number: 0}),
            200,
            json!({number: 0, defaults: {"allowed_to_push": levels(30), "allow_force_push": true}}),
        ),
        put(
            fact("group-protection"),
            TOP,
            json!({defaults: {"allowed_to_push": levels(40)}}),
            200,
            json!({number: 0, defaults: {"allowed_to_push": levels(40)}}),
        ),
        put(
            fact("group-protection"),
            TOP,
            json!({defaults: {"allowed_to_push": levels(50)}}),
            400,
            NO,
        ),
        put(
            fact("group-merge-checks"),
            TOP,
            json!({"allow_merge_on_skipped_pipeline": true}),
            400,
            json!({"message": skipped}),
        ),
        put(fact("group-domains"), TOP, json!({"allowed_email_domains_list": "x"}), 400, NO),
        same(fact("group-domains"), json!({"allowed_email_domains_list": "example.org"})),
        put(
            fact("group-domains"),
            BELOW,
            json!({"allowed_email_domains_list": "example.org"}),
            400,
            NO,
        ),
    ];
    world().await.check(rows).await;
}

#[tokio::test]
async fn a_group_inherits_values_of_its_parent_groups() {
    let (math, runners) = ("math_rendering_limits_enabled", "shared_runners_setting");
    let forbidden = "cannot be enabled because parent group does not allow it";
    let rows = vec![
        put(fact("group-cascade"), TOP, json!({math: false}), 200, json!({math: false})),
        put(fact("group-cascade"), BELOW, json!({}), 200, json!({math: false})),
        put(fact("group-cascade"), BELOW, json!({math: true}), 200, json!({math: true})),
        put(fact("group-cascade"), BELOW, json!({math: null}), 200, json!({math: null})),
        put(fact("group-cascade"), BELOW, json!({}), 200, json!({math: false})),
        put(fact("group-runners"), TOP, json!({runners: "disabled_and_unoverridable"}), 200, NO),
        put(
            fact("group-runners"),
            BELOW,
            json!({runners: "disabled_and_overridable"}),
            400,
            json!({"message": {"allow_descendants_override_disabled_shared_runners": [forbidden]}}),
        ),
    ];
    world().await.check(rows).await;
}

#[tokio::test]
async fn paths_of_groups_have_only_plain_characters() {
    let world = world().await;
    let rule = fact("group-path");
    for path in ["a-", "_a", "a--b", "a__b", "a..b", ".a", "\u{e4}b"] {
        let got = world.call("ann", "POST", "/groups", &json!({"name": "new", "path": path})).await;
        let text = got.body["message"].as_str().unwrap_or_default();
        assert_eq!(got.status, 400, "{rule}: {path}");
        assert!(text.contains("can only include non-accented letters"), "{rule}: {text}");
    }
    let named = json!({"name": null, "path": "new"});
    let got = world.call("ann", "POST", "/groups", &named).await;
    assert_eq!((got.status, &got.body["name"]), (201, &json!("new")), "{rule}");
}

#[tokio::test]
async fn groups_are_archived() {
    let world = world().await;
    let post = |token, path: &'static str, status, answer: Value| {
        (fact("group-archive"), token, "POST", path, NO, status, answer)
    };
    let thing = |path: &'static str, answer: Value| {
        (fact("group-archive"), "ann", "GET", path, NO, 200, answer)
    };
    let (on, off) = (json!({"archived": true}), json!({"archived": false}));
    let text = |text: &str| json!({"message": text});
    let rows = vec![
        post("max", "/groups/acme/archive", 403, NO),
        post("ann", "/groups/acme/archive", 200, on.clone()),
        post("ann", "/groups/acme/archive", 422, text("Group is already archived!")),
        thing(BELOW, on),
        post("ann", "/groups/acme%2Fdeep/archive", 422, NO),
        post("ann", "/groups/acme/unarchive", 200, off.clone()),
        post("ann", "/groups/acme/unarchive", 422, text("Group is already unarchived!")),
        thing(BELOW, off),
    ];
    world.check(rows).await;
    world.call("ann", "POST", "/groups/acme/archive", &NO).await;
    let id = world.get(ROOT, TOP).await.body["id"].clone();
    let new = json!({"name": "new", "namespace_id": id});
    let reply = world.call("ann", "POST", "/projects", &new).await;
    assert_eq!(
        (reply.status, reply.body),
        (400, json!({"message": {"namespace": ["is not valid"]}})),
        "{}",
        fact("group-archive")
    );
    let earlier = World::usual().await;
    let reply = earlier.call(ROOT, "POST", "/groups/acme/archive", &NO).await;
    assert_eq!(reply.status, 404, "{}: not before 18.9", fact("group-archive"));
}

#[tokio::test]
async fn projects_inherit_values_of_their_groups() {
    let world = world().await;
    let thing = "/projects/acme%2Fthing";
    let id = world.get(ROOT, TOP).await.body["id"].clone();
    let new = |name: &str, more: Value| {
        let mut body = json!({"name": name, "namespace_id": id});
        for (key, value) in more.as_object().expect("an object") {
            body[key] = value.clone();
        }
        body
    };
    let shows = |rule, key: &'static str, value: Value| {
        (rule, "ann", "GET", thing, NO, 200, json!({key: value}))
    };
    let changes = |rule, body: Value| put(rule, TOP, body, 200, NO);
    let makes = |rule, body: Value, status, answer: Value| {
        (rule, "ann", "POST", "/projects", body, status, answer)
    };
    let forbidden = "cannot be enabled because parent group does not allow it";
    let forbidden = json!({"message": {"shared_runners_enabled": [forbidden]}});
    let runners = json!({"shared_runners_enabled": true});
    let (settles, branch) = (fact("group-settles"), fact("group-first-branch"));
    let rows = vec![
        changes(settles, json!({"lfs_enabled": false, "show_diff_preview_in_email": false})),
        shows(settles, "lfs_enabled", json!(false)),
        shows(settles, "show_diff_preview_in_email", json!(false)),
        put(settles, thing, json!({"lfs_enabled": true}), 200, json!({"lfs_enabled": true})),
        changes(settles, json!({"auto_devops_enabled": false})),
        shows(settles, "auto_devops_enabled", json!(false)),
        changes(settles, json!({"auto_devops_enabled": null})),
        shows(settles, "auto_devops_enabled", json!(true)),
        changes(branch, json!({"default_branch": "trunk"})),
        makes(
            branch,
            new("with", json!({"initialize_with_readme": true})),
            201,
            json!({"default_branch": "trunk"}),
        ),
        makes(branch, new("empty", json!({})), 201, json!({"default_branch": "trunk"})),
        changes(branch, json!({"default_branch": "other"})),
        (
            branch,
            "ann",
            "GET",
            "/projects/acme%2Fempty",
            NO,
            200,
            json!({"default_branch": "other"}),
        ),
        makes(
            fact("group-visibility-lowered"),
            new("seen", json!({"visibility": "public"})),
            201,
            json!({"visibility": "private"}),
        ),
        changes(
            fact("group-runners-project"),
            json!({"shared_runners_setting": "disabled_and_unoverridable"}),
        ),
        put(fact("group-runners-project"), thing, runners.clone(), 400, forbidden.clone()),
        makes(fact("group-runners-project"), new("run", runners), 400, forbidden),
        makes(
            fact("group-runners-project"),
            new("run", json!({})),
            201,
            json!({"shared_runners_enabled": false}),
        ),
        changes(fact("group-membership-lock"), json!({"membership_lock": true})),
        (
            fact("group-membership-lock"),
            ROOT,
            "POST",
            "/projects/acme%2Fthing/members",
            json!({"user_id": 1, "access_level": 30}),
            405,
            json!({"message": "405 Method Not Allowed"}),
        ),
    ];
    world.check(rows).await;
}

#[tokio::test]
async fn approval_settings_of_a_group_limit_those_of_its_projects() {
    let rule = fact("group-approvals");
    let (author, committer) = ("allow_author_approval", "allow_committer_approval");
    let (of_group, of_project) = (
        "/groups/acme/merge_request_approval_setting",
        "/projects/acme%2Fthing/merge_request_approval_setting",
    );
    let reads = |path: &'static str, answer: Value| (rule, "ann", "GET", path, NO, 200, answer);
    let open = json!({"value": true, "locked": false, "inherited_from": null});
    let shut = json!({"value": false, "locked": true, "inherited_from": "group"});
    let rows = vec![
        (rule, "max", "GET", of_group, NO, 403, NO),
        (rule, "ann", "PUT", of_group, json!({}), 400, NO),
        reads(of_group, json!({author: open, committer: open})),
        put(rule, of_project, json!({author: true}), 200, json!({author: open, committer: open})),
        put(rule, of_group, json!({author: true}), 200, json!({committer: {"value": false}})),
        reads(of_project, json!({author: open, committer: shut})),
        (
            rule,
            "ann",
            "GET",
            "/projects/acme%2Fthing/approvals",
            NO,
            200,
            json!({
                "merge_requests_author_approval": true,
                "merge_requests_disable_committers_approval": true,
            }),
        ),
    ];
    world().await.check(rows).await;
}

#[tokio::test]
async fn shares_are_listed_for_both_groups() {
    let world = world().await;
    let rule = fact("group-invited");
    let other =
        world.call(ROOT, "POST", "/groups", &json!({"name": "other", "path": "other"})).await.body
            ["id"]
            .clone();
    let share = json!({"group_id": other, "group_access": 30});
    world.call(ROOT, "POST", "/groups/acme/share", &share).await;
    for (path, names) in [
        ("/groups/acme/invited_groups", vec!["other"]),
        ("/groups/acme%2Fdeep/invited_groups", vec!["other"]),
        ("/groups/acme%2Fdeep/invited_groups?relation=direct", vec![]),
        ("/groups/other/groups/shared", vec!["acme"]),
        ("/projects/acme%2Fthing/invited_groups", vec!["other"]),
        ("/projects/acme%2Fthing/share_locations", vec!["acme/deep"]),
    ] {
        let token = if path.ends_with("locations") { "ann" } else { ROOT };
        let answer = world.get(token, path).await.body;
        let listed: Vec<&str> = answer
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|group| group["full_path"].as_str())
            .collect();
        assert_eq!(listed, names, "{rule}: {path}");
    }
}
