//! Groups: creating, reading, changing and moving them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::{Value, json};
use undrift_sandbox::{Clock, OBSERVED_RELEASE, Profile, SandboxConfig, ServiceTier};

use super::client::{ROOT, World, leak};
use super::facts::fact;

const NO: Value = Value::Null;

/// The keys of a group in lists.
const LISTED_KEYS: &str = "id web_url name path description visibility avatar_url full_name full_path created_at parent_id \
    share_with_group_lock require_two_factor_authentication two_factor_grace_period project_creation_level \
    subgroup_creation_level auto_devops_enabled emails_disabled mentions_disabled lfs_enabled \
    default_branch_protection request_access_enabled";
/// Further keys with a licence.
const LISTED_LICENSED: &str = "ldap_cn ldap_access marked_for_deletion_on";
/// Further keys of a group alone.
const SINGLE_KEYS: &str = "shared_with_groups prevent_sharing_groups_outside_hierarchy";
const ALONE_LICENSED: &str = "membership_lock shared_runners_minutes_limit extra_shared_runners_minutes_limit \
    prevent_forking_outside_group ip_restriction_ranges";
/// Keys that only owners see.
const OWNER_KEYS: &str = "runners_token";
const WITH_PROJECTS: &str = "projects shared_projects";

fn seed() -> Value {
    let member = |user: &str, level: &str| json!({"user": user, "access_level": level});
    let user = |name: &str| json!({"username": name, "token": name});
    json!({
        "users": [user("ann"), user("max"), user("dev"), user("eve")],
        "groups": [
            {"path": "acme", "members": [member("ann", "owner"), member("max", "maintainer"), member("dev", "developer")]},
            {"path": "acme/deep", "visibility": "private"},
            {"path": "acme/deep/down"},
            {"path": "open", "visibility": "public", "members": [member("eve", "owner")]},
            {"path": "open/below", "visibility": "public"},
        ],
        "projects": [
            {"path": "acme/deep/thing"},
            {"path": "open/thing", "settings": {"visibility": "public"}},
        ],
    })
}

async fn world_on_tier(tier: ServiceTier) -> World {
    World::seeded(seed(), SandboxConfig { tier: Some(tier), ..SandboxConfig::default() }).await
}

async fn world() -> World {
    world_on_tier(ServiceTier::Premium).await
}

fn keys(body: &Value) -> BTreeSet<&str> {
    body.as_object().expect("an object").keys().map(String::as_str).collect()
}

fn words<'a>(texts: &[&'a str]) -> BTreeSet<&'a str> {
    texts.iter().flat_map(|text| text.split_whitespace()).collect()
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array()
        .expect("a list")
        .iter()
        .filter_map(|group| group["full_path"].as_str())
        .collect()
}

#[tokio::test]
async fn lists_show_groups_in_a_short_form() {
    const NEW: &str = "/groups";
    for (tier, listed, alone) in
        [(ServiceTier::Premium, LISTED_LICENSED, ALONE_LICENSED), (ServiceTier::Free, "", "")]
    {
        let world = world_on_tier(tier).await;
        let expected = words(&[LISTED_KEYS, listed]);
        let rule = fact("group-forms");
        for list in ["/groups", "/groups/open/subgroups", "/groups/open/descendant_groups"] {
            let answer = world.get("eve", list).await.body;
            assert_eq!(keys(&answer[0]), expected, "{rule}: {list}");
        }
        let whole = words(&[LISTED_KEYS, listed, SINGLE_KEYS, alone]);
        let owned: BTreeSet<_> = whole.union(&words(&[OWNER_KEYS])).copied().collect();
        let all: BTreeSet<_> = owned.union(&words(&[WITH_PROJECTS])).copied().collect();
        let without = "/groups/open?with_projects=false";
        assert_eq!(keys(&world.get("ann", without).await.body), whole, "{rule}");
        assert_eq!(keys(&world.get("eve", without).await.body), owned, "{rule}");
        assert_eq!(keys(&world.get("eve", "/groups/open").await.body), all, "{rule}");
        let edited = world.call("eve", "PUT", "/groups/open", &json!({})).await;
        assert_eq!((edited.status, keys(&edited.body)), (200, all), "{rule}");
        let made =
            world.call("eve", "POST", NEW, &json!({"name": "new", "path": "new"})).await.body;
        assert_eq!(keys(&made), whole, "{rule}: who makes one is no owner yet");
        let to = json!({"group_id": world.group_id("open").await});
        let moved = world.call("eve", "POST", "/groups/new/transfer", &to).await.body;
        let mut expected = whole.clone();
        expected.remove("prevent_sharing_groups_outside_hierarchy");
        assert_eq!(keys(&moved), expected, "{rule}: {moved}");
    }
}

/// Further keys of 18.9, in lists and alone.
const LATER_KEYS: &str = "archived default_branch default_branch_protection_defaults emails_enabled \
    lock_math_rendering_limits_enabled math_rendering_limits_enabled max_artifacts_size organization_id \
    shared_runners_setting show_diff_preview_in_email wiki_access_level";
const LATER_ALONE: &str = "allow_merge_on_skipped_pipeline allowed_email_domains_list \
    only_allow_merge_if_all_discussions_are_resolved only_allow_merge_if_pipeline_succeeds";
const LATER_OWNED: &str =
    "duo_core_features_enabled duo_features_enabled lock_duo_features_enabled";
/// Keys of top-level groups only, and those that only owners see.
const LATER_TOP: &str =
    "prevent_sharing_groups_outside_hierarchy service_access_tokens_expiration_enforced";
const LATER_TOP_OWNED: &str = "auto_ban_user_on_excessive_projects_download duo_namespace_access_rules \
    enabled_git_access_protocol unique_project_download_limit unique_project_download_limit_alertlist \
    unique_project_download_limit_allowlist unique_project_download_limit_interval_in_seconds";

#[tokio::test]
async fn a_group_of_a_later_release_shows_more_to_its_owners() {
    let rule = fact("group-keys");
    let profile = Profile::default().with_release(OBSERVED_RELEASE);
    let config =
        SandboxConfig { profile, tier: Some(ServiceTier::Ultimate), ..SandboxConfig::default() };
    let world = World::seeded(seed(), config).await;
    let listed = words(&[LISTED_KEYS, LISTED_LICENSED, LATER_KEYS]);
    let mut alone = words(&[LATER_ALONE, "shared_with_groups", ALONE_LICENSED]);
    alone.extend(listed.clone());
    let with = |base: &BTreeSet<&'static str>, more: &[&'static str]| -> BTreeSet<_> {
        base.union(&words(more)).copied().collect()
    };
    let of = async |token: &str, path: &str| {
        world.get(token, &format!("/groups/{path}?with_projects=false")).await.body
    };
    let listed_to = async |token: &str| {
        world.get(token, "/groups?search=open&top_level_only=true&all_available=true").await.body
    };
    assert_eq!(keys(&listed_to("ann").await[0]), listed, "{rule}");
    let owned = with(&listed, &[LATER_OWNED, "duo_namespace_access_rules"]);
    assert_eq!(keys(&listed_to("eve").await[0]), owned, "{rule}");
    let storage = with(&owned, &["repository_storage"]);
    assert_eq!(keys(&listed_to(ROOT).await[0]), storage, "{rule}");
    let below = "open%2Fbelow";
    assert_eq!(keys(&of("ann", below).await), alone, "{rule}");
    assert_eq!(keys(&of("eve", below).await), with(&alone, &[LATER_OWNED, OWNER_KEYS]), "{rule}");
    assert_eq!(keys(&of("ann", "open").await), with(&alone, &[LATER_TOP]), "{rule}");
    let all = with(&alone, &[LATER_TOP, LATER_OWNED, LATER_TOP_OWNED, OWNER_KEYS]);
    assert_eq!(keys(&of("eve", "open").await), all, "{rule}");
}

#[tokio::test]
async fn administrators_can_request_custom_attributes() {
    let world = world().await;
    let attribute = "/groups/open/custom_attributes/tier";
    world.call(ROOT, "PUT", attribute, &json!({"value": "gold"})).await;
    let shown = json!([{"key": "tier", "value": "gold"}]);
    let query = "with_custom_attributes=true&statistics=true&top_level_only=true&search=open";
    let list = world.get(ROOT, &format!("/groups?{query}")).await.body;
    assert_eq!(list[0]["custom_attributes"], shown, "{}", fact("group-administrators"));
    assert_eq!(list[0]["statistics"]["storage_size"], 0, "{}", fact("group-administrators"));
    let answer = world.get(ROOT, &format!("/groups/open?{query}")).await.body;
    assert_eq!(answer["custom_attributes"], shown, "{}", fact("group-administrators"));
    assert_eq!(answer.get("statistics"), None, "{}: in lists only", fact("group-administrators"));
    let other = world.get("eve", &format!("/groups?{query}")).await.body;
    let seen = keys(&other[0]);
    assert!(
        !seen.contains("custom_attributes") && !seen.contains("statistics"),
        "{}",
        fact("group-administrators")
    );
}

#[tokio::test]
async fn lists_of_groups_are_those_of_the_caller() {
    let world = world().await;
    let deep_id = world.group_id("acme/deep").await;
    world
        .call(
            ROOT,
            "POST",
            "/projects/acme%2Fdeep%2Fthing/members",
            &json!({"user_id": 5, "access_level": 30}),
        )
        .await;
    let all = ["acme", "acme/deep", "acme/deep/down", "open", "open/below"];
    let [acme, in_deep, down, open, below] = all;
    for (caller, path, expected) in [
        ("max", "/groups", vec![acme, in_deep, down]),
        ("max", "/groups?all_available=true", vec![acme, below, in_deep, down, open]),
        ("max", "/groups?owned=true&all_available=true", vec![]),
        ("ann", "/groups?owned=true", vec![acme, in_deep, down]),
        ("max", "/groups?min_access_level=50&all_available=true", vec![]),
        ("max", "/groups?top_level_only=true", vec![acme]),
        ("max", leak(format!("/groups?skip_groups={deep_id}")), vec![acme, down]),
        ("max", "/groups?search=acme/deep", vec![in_deep, down]),
        ("max", "/groups?order_by=similarity&search=acme", vec![acme, in_deep, down]),
        ("max", "/groups?order_by=path&sort=desc", vec![down, in_deep, acme]),
        ("", "/groups", vec![below, open]),
        (ROOT, "/groups", vec![acme, below, in_deep, down, open]),
        (ROOT, "/groups?all_available=false", vec![]),
        ("eve", "/groups", vec![below, open]),
        ("max", "/groups/acme/subgroups", vec![in_deep]),
        ("max", "/groups/acme/descendant_groups", vec![in_deep, down]),
        ("max", "/groups/acme/descendant_groups?search=acme/deep", vec![]),
        ("max", "/groups/acme/subgroups?top_level_only=true", vec![acme]),
        ("max", "/groups/open/subgroups", vec![]),
        ("max", "/groups/open/subgroups?all_available=true", vec![below]),
        ("", "/groups/open/subgroups", vec![below]),
    ] {
        let reply = world.get(caller, path).await;
        let mut found = names(&reply.body);
        if !path.contains("order_by") {
            found.sort_by_key(|path| path.rsplit('/').next());
        }
        assert_eq!(found, expected, "{}: {caller} {path}", fact("group-list"));
    }
    world
        .check(vec![
            (fact("unseen"), "", "GET", "/groups/acme/subgroups", NO, 404, NO),
            (
                fact("parameter-values"),
                "max",
                "GET",
                "/groups?order_by=size",
                NO,
                400,
                json!({"error": "order_by does not have a valid value"}),
            ),
        ])
        .await;
}

#[tokio::test]
async fn groups_are_created_only_by_allowed_callers() {
    let world = world().await;
    let (acme, deep) = (world.group_id("acme").await, world.group_id("acme/deep").await);
    let group = |path: &str, parent: i64| json!({"name": path, "path": path, "parent_id": parent});
    let post =
        |rule, token, body, status, answer| (rule, token, "POST", "/groups", body, status, answer);
    let unknown = json!({"message": "404 Group Not Found"});
    let rule = fact("group-create-right");
    world
        .check(vec![
            post(rule, "", json!({"name": "new", "path": "new"}), 401, NO),
            post(rule, "dev", group("new", acme), 403, json!({"message": "403 Forbidden"})),
            post(rule, "eve", group("new", acme), 404, unknown.clone()),
            post(rule, "ann", group("new", 999), 404, unknown),
            post(rule, "max", group("by-max", acme), 201, json!({"full_path": "acme/by-max"})),
            (
                fact("group"),
                "max",
                "GET",
                "/groups/acme%2Fby-max/members/3",
                NO,
                200,
                json!({"access_level": 50}),
            ),
            (
                rule,
                "ann",
                "PUT",
                "/groups/acme%2Fdeep",
                json!({"subgroup_creation_level": "owner"}),
                200,
                NO,
            ),
            post(rule, "max", group("by-max", deep), 403, NO),
            post(rule, "ann", group("by-ann", deep), 201, NO),
            (rule, ROOT, "PUT", "/users/4", json!({"can_create_group": false}), 200, NO),
            post(rule, "dev", json!({"name": "new", "path": "new"}), 403, NO),
            post(
                rule,
                "max",
                json!({"name": "new", "path": "new", "shared_runners_minutes_limit": 5}),
                403,
                NO,
            ),
            (
                fact("group-create-projects"),
                "dev",
                "POST",
                "/projects",
                json!({"name": "p", "namespace_id": acme}),
                201,
                NO,
            ),
            (
                fact("group-create-projects"),
                "ann",
                "PUT",
                "/groups/acme",
                json!({"project_creation_level": "maintainer"}),
                200,
                NO,
            ),
            (
                fact("group-create-projects"),
                "dev",
                "POST",
                "/projects",
                json!({"name": "q", "namespace_id": acme}),
                400,
                NO,
            ),
        ])
        .await;
}

#[tokio::test]
async fn errors_of_a_new_group_are_one_text() {
    let world = world().await;
    let (acme, open) = (world.group_id("acme").await, world.group_id("open").await);
    let path_rule = "can contain only letters, digits, '_', '-' and '.'. Cannot start with '-' or end in '.', '.git' or '.atom'.";
    let name_rule = "can contain only letters, digits, emoji, '_', '.', dash, space, parenthesis. It must start with letter, digit, emoji or '_'.";
    let new = |name: &str, path: &str| json!({"name": name, "path": path});
    let below = |parent: i64, name: &str, path: &str| json!({"name": name, "path": path, "parent_id": parent});
    let visible = |visibility: &str, parent: Value| json!({"name": "new", "path": "next", "visibility": visibility, "parent_id": parent});
    let rows = [
        (new("x", "acme"), r#"{:path=>["has already been taken"]}"#.to_owned()),
        (new("x", "ACME"), r#"{:path=>["has already been taken"]}"#.to_owned()),
        (new("x", "ann"), r#"{:path=>["has already been taken"]}"#.to_owned()),
        (below(open, "x", "thing"), r#"{:path=>["has already been taken"]}"#.to_owned()),
        (below(acme, "deep", "other"), r#"{:name=>["has already been taken"]}"#.to_owned()),
        (new("x", "-a"), format!(r#"{{:path=>["{path_rule}"]}}"#)),
        (new("x", "a.git"), format!(r#"{{:path=>["{path_rule}"]}}"#)),
        (new("x", "api"), r#"{:path=>["api is a reserved name"]}"#.to_owned()),
        (below(acme, "x", "tree"), r#"{:path=>["tree is a reserved name"]}"#.to_owned()),
        (new("x", "a"), r#"{:path=>["is too short (minimum is 2 characters)"]}"#.to_owned()),
        (new("+x", "new"), format!(r#"{{:name=>["{name_rule}"]}}"#)),
        (
            visible("public", acme.into()),
            r#"{:visibility_level=>["public is not allowed since the parent group has a private visibility."]}"#
                .to_owned(),
        ),
    ];
    let rule = fact("group-create-refused");
    for (body, why) in rows {
        let got = world.call("ann", "POST", "/groups", &body).await;
        // A group that the caller does not see is refused in another way.
        let got =
            if got.status == 403 { world.call(ROOT, "POST", "/groups", &body).await } else { got };
        assert_eq!(
            (got.status, got.body),
            (400, json!({"message": format!("Failed to save group {why}")})),
            "{rule}: {body}"
        );
    }
    let both = world.call("ann", "POST", "/groups", &new("", "acme")).await.body["message"].clone();
    let text = both.as_str().unwrap_or_default();
    assert!(
        text.contains(r#":name=>["can't be blank", "can contain"#) && text.contains(":path=>["),
        "{rule}: {both}"
    );
    world
        .check(vec![
            (
                fact("parameter-missing"),
                "ann",
                "POST",
                "/groups",
                json!({}),
                400,
                json!({"error": "name is missing, path is missing"}),
            ),
            (
                fact("parameter-values"),
                "ann",
                "POST",
                "/groups",
                visible("secret", NO),
                400,
                json!({"error": "visibility does not have a valid value"}),
            ),
            (
                fact("group-restricted"),
                ROOT,
                "PUT",
                "/application/settings",
                json!({"restricted_visibility_levels": ["internal"], "default_group_visibility": "public"}),
                200,
                NO,
            ),
            (
                fact("group-restricted"),
                "ann",
                "POST",
                "/groups",
                visible("internal", NO),
                400,
                json!({"message": "Failed to save group {:visibility_level=>[\"internal has been restricted by your GitLab administrator\"]}"}),
            ),
            (fact("group-restricted"), ROOT, "POST", "/groups", visible("internal", NO), 201, NO),
            (
                fact("group-defaults"),
                "ann",
                "POST",
                "/groups",
                new("two names", "free"),
                201,
                json!({"visibility": "public", "description": null}),
            ),
            // At the top level two groups may have the same name.
            (fact("group-taken"), "ann", "POST", "/groups", new("two names", "free2"), 201, NO),
        ])
        .await;
}

#[tokio::test]
async fn the_depth_of_nested_groups_is_limited() {
    let world = world().await;
    let mut parent = world.group_id("acme").await;
    let mut made = Vec::new();
    for number in 0..25 {
        let body = json!({"name": format!("g{number}"), "path": format!("g{number}"), "parent_id": parent});
        let reply = world.call("ann", "POST", "/groups", &body).await;
        made.push(reply.status);
        let text = r#"Failed to save group {:parent_id=>["has too deep level of nesting"]}"#;
        match reply.body["id"].as_i64() {
            Some(id) => parent = id,
            None => assert_eq!(reply.body["message"], text, "{}", fact("group-depth")),
        }
    }
    assert_eq!(made.iter().filter(|status| **status == 201).count(), 20, "{}", fact("group-depth"));
}

#[tokio::test]
async fn errors_of_a_changed_group_are_an_object() {
    let world = world().await;
    let refused = |token, path: &'static str, body: Value, field: &str, text: &str| {
        (
            fact("group-edit-refused"),
            token,
            "PUT",
            path,
            body,
            400,
            json!({"message": {field: [text]}}),
        )
    };
    let visible = |word: &str| json!({"visibility": word});
    world
        .check(vec![
            (fact("role"), "max", "PUT", "/groups/acme", json!({}), 403, NO),
            (fact("unseen"), "eve", "PUT", "/groups/acme", json!({}), 404, NO),
            refused(
                "eve",
                "/groups/open%2Fbelow",
                json!({"path": "thing"}),
                "path",
                "has already been taken",
            ),
            refused("ann", "/groups/acme", json!({"two_factor_grace_period": -1}), "two_factor_grace_period", "must be greater than or equal to 0"),
            refused(
                "ann",
                "/groups/acme%2Fdeep",
                visible("public"),
                "visibility_level",
                "public is not allowed since the parent group has a private visibility.",
            ),
            (
                fact("group-edit-refused"),
                "eve",
                "PUT",
                "/groups/open",
                visible("private"),
                400,
                json!({"message": {"visibility_level": [
                    "private is not allowed since this group contains projects with higher visibility.",
                    "private is not allowed since there are sub-groups with higher visibility.",
                ]}}),
            ),
            (
                fact("group-edit-refused"),
                "eve",
                "PUT",
                "/projects/open%2Fthing",
                visible("private"),
                200,
                NO,
            ),
            refused(
                "eve",
                "/groups/open",
                visible("internal"),
                "visibility_level",
                "internal is not allowed since there are sub-groups with higher visibility.",
            ),
            (fact("group-edit"), "eve", "PUT", "/groups/open%2Fbelow", visible("internal"), 200, NO),
            (fact("group-edit"), "eve", "PUT", "/groups/open", visible("internal"), 200, visible("internal")),
            (
                fact("parameter-values"),
                "ann",
                "PUT",
                "/groups/acme",
                json!({"default_branch_protection": 9}),
                400,
                json!({"error": "default_branch_protection does not have a valid value"}),
            ),
        ])
        .await;
}

#[tokio::test]
async fn omitted_settings_are_unchanged() {
    let world = world().await;
    let put = |body: Value, answer: Value| {
        (fact("group-edit"), "ann", "PUT", "/groups/acme", body, 200, answer)
    };
    world
        .check(vec![
            put(
                json!({"description": "text", "lfs_enabled": false, "two_factor_grace_period": 8}),
                NO,
            ),
            put(
                json!({}),
                json!({"description": "text", "lfs_enabled": false, "two_factor_grace_period": 8}),
            ),
            put(
                json!({"unknown": 1, "name": "Acme (2)"}),
                json!({"name": "Acme (2)", "path": "acme"}),
            ),
            put(json!({"description": null}), json!({"description": null})),
            put(json!({"description": ""}), json!({"description": ""})),
            // Three states.
            put(json!({"auto_devops_enabled": false}), json!({"auto_devops_enabled": false})),
            put(json!({"auto_devops_enabled": null}), json!({"auto_devops_enabled": null})),
            put(json!({"parent_id": 9}), json!({"parent_id": null})),
        ])
        .await;
}

#[tokio::test]
async fn settings_not_allowed_by_tier_role_or_place_are_ignored() {
    let world = world().await;
    let put = |token, path: &'static str, body: Value, answer: Value| {
        (fact("group-dropped"), token, "PUT", path, body, 200, answer)
    };
    let closed = json!({"prevent_forking_outside_group": true, "prevent_sharing_groups_outside_hierarchy": true});
    let minutes =
        json!({"shared_runners_minutes_limit": 5, "extra_shared_runners_minutes_limit": 6});
    let none =
        json!({"shared_runners_minutes_limit": null, "extra_shared_runners_minutes_limit": null});
    world
        .check(vec![
            put("ann", "/groups/acme", closed.clone(), closed.clone()),
            put("ann", "/groups/acme%2Fdeep", json!({"prevent_forking_outside_group": false}), json!({"prevent_forking_outside_group": true})),
            put("ann", "/groups/acme", minutes.clone(), none),
            put(ROOT, "/groups/acme", minutes.clone(), minutes),
            (
                fact("group-dropped"),
                "ann",
                "POST",
                "/groups",
                json!({"name": "new", "path": "new", "prevent_forking_outside_group": true,
                       "prevent_sharing_groups_outside_hierarchy": true, "ip_restriction_ranges": "10.0.0.0/8",
                       "extra_shared_runners_minutes_limit": 1}),
                201,
                json!({"prevent_forking_outside_group": false, "prevent_sharing_groups_outside_hierarchy": false,
                       "ip_restriction_ranges": null, "extra_shared_runners_minutes_limit": null}),
            ),
            put("ann", "/groups/acme", json!({"default_branch_protection": 0}), json!({"default_branch_protection": 0})),
            (
                fact("group-dropped"),
                ROOT,
                "PUT",
                "/application/settings",
                json!({"group_owners_can_manage_default_branch_protection": false}),
                200,
                NO,
            ),
            put("ann", "/groups/acme", json!({"default_branch_protection": 1}), json!({"default_branch_protection": 0})),
            put(ROOT, "/groups/acme", json!({"default_branch_protection": 1}), json!({"default_branch_protection": 1})),
            put("ann", "/groups/acme", json!({"unique_project_download_limit": 1}), NO),
        ])
        .await;
    let free = world_on_tier(ServiceTier::Free).await;
    let licensed = json!({"membership_lock": true, "ip_restriction_ranges": "nonsense", "file_template_project_id": 999});
    let reply = free.call("ann", "PUT", "/groups/acme", &licensed).await;
    assert_eq!(reply.status, 200, "{}: {}", fact("group-dropped"), reply.body);
    let shown = keys(&reply.body).intersection(&words(&[LISTED_LICENSED, ALONE_LICENSED])).count();
    assert_eq!(shown, 0, "{}", fact("group-dropped"));
}

#[tokio::test]
async fn ip_ranges_and_templates_are_validated() {
    let world = world().await;
    let ranges = |text: Value| json!({"ip_restriction_ranges": text});
    let template = |project: Value| json!({"file_template_project_id": project});
    let put = |path: &'static str, body: Value, status, answer: Value| {
        (fact("group-addresses"), "ann", "PUT", path, body, status, answer)
    };
    let of_templates = |token, body: Value, status, answer: Value| {
        (fact("group-templates"), token, "PUT", "/groups/acme", body, status, answer)
    };
    let wrong = |field: &str, text: &str| json!({"message": {field: [text]}});
    world
        .check(vec![
            put(
                "/groups/acme",
                ranges(json!("10.0.0.0/8, 192.168.1.1")),
                200,
                ranges(json!("10.0.0.0/8,192.168.1.1")),
            ),
            put("/groups/acme", ranges(NO), 200, ranges(json!("10.0.0.0/8,192.168.1.1"))),
            put(
                "/groups/acme",
                ranges(json!("10.0.0.0/99")),
                400,
                wrong("ip_restrictions.range", "is an invalid IP address range"),
            ),
            put(
                "/groups/acme%2Fdeep",
                ranges(json!("10.0.0.0/8")),
                400,
                wrong(
                    "ip_restrictions.base",
                    "IP subnet restriction only allowed for top-level groups",
                ),
            ),
            put("/groups/acme", ranges(json!("")), 200, ranges(NO)),
            of_templates(
                "ann",
                template(json!(999)),
                400,
                wrong("file_template_project_id", "is invalid"),
            ),
            of_templates("ann", template(json!(1)), 200, template(json!(1))),
            of_templates("ann", template(json!("")), 200, json!({})),
            of_templates("ann", template(json!(1)), 200, template(json!(1))),
        ])
        .await;
    world.call(ROOT, "PUT", "/groups/acme", &json!({"visibility": "public"})).await;
    let seen = world.get("eve", "/groups/acme").await.body;
    assert_eq!(
        seen.get("file_template_project_id"),
        None,
        "{}: who does not see the project sees nothing of it",
        fact("group-templates")
    );
    world.call("ann", "DELETE", "/projects/1", &NO).await;
    let gone = world.get("ann", "/groups/acme").await.body;
    assert_eq!(gone.get("file_template_project_id"), None, "{}", fact("group-templates"));
}

#[tokio::test]
async fn the_runners_setting_applies_to_everything_below() {
    let world = world().await;
    let thing = "/projects/acme%2Fdeep%2Fthing";
    let put = |path: &'static str, word: &str, status| {
        (
            fact("group-runners"),
            "ann",
            "PUT",
            path,
            json!({"shared_runners_setting": word}),
            status,
            NO,
        )
    };
    let project = |on: bool| {
        (fact("group-runners"), "ann", "GET", thing, NO, 200, json!({"shared_runners_enabled": on}))
    };
    let text = "Validation failed: Shared runners enabled cannot be enabled because parent group has shared Runners disabled";
    world
        .check(vec![
            project(true),
            put("/groups/acme", "disabled_and_unoverridable", 200),
            project(false),
            (
                fact("group-runners"),
                "ann",
                "PUT",
                "/groups/acme%2Fdeep",
                json!({"shared_runners_setting": "enabled"}),
                400,
                json!({"message": {"update_shared_runners": [text]}}),
            ),
            put("/groups/acme", "disabled_with_override", 200),
            put("/groups/acme%2Fdeep", "enabled", 200),
            project(true),
            put("/groups/acme", "enabled", 200),
            project(true),
            put("/groups/acme", "on", 400),
        ])
        .await;
    let group = world.get("ann", "/groups/acme").await.body;
    assert_eq!(
        group.get("shared_runners_setting"),
        None,
        "{}: not readable",
        fact("group-runners")
    );
}

#[tokio::test]
async fn a_renamed_group_renames_its_contents_without_redirects() {
    let world = world().await;
    let rule = fact("group-rename");
    world
        .check(vec![
            (
                rule,
                "ann",
                "PUT",
                "/groups/acme",
                json!({"path": "apex"}),
                200,
                json!({"full_path": "apex", "name": "acme"}),
            ),
            (
                rule,
                "ann",
                "GET",
                "/groups/acme",
                NO,
                404,
                json!({"message": "404 Group Not Found"}),
            ),
            (rule, "ann", "GET", "/groups/apex%2Fdeep%2Fdown", NO, 200, NO),
            (rule, "ann", "GET", "/projects/apex%2Fdeep%2Fthing", NO, 200, NO),
            (fact("project-moved"), "ann", "GET", "/projects/acme%2Fdeep%2Fthing", NO, 301, NO),
            (
                rule,
                "ann",
                "PUT",
                "/groups/apex%2Fdeep",
                json!({"name": "Deeper"}),
                200,
                json!({"full_name": "acme / Deeper"}),
            ),
            (
                rule,
                "ann",
                "PUT",
                "/groups/apex",
                json!({"path": "Apex"}),
                200,
                json!({"full_path": "Apex"}),
            ),
            // The path is free again.
            (rule, "eve", "POST", "/groups", json!({"name": "acme", "path": "acme"}), 201, NO),
        ])
        .await;
}

#[tokio::test]
async fn a_group_is_transferred_only_to_an_allowed_group() {
    let world = world().await;
    let group = async |token: &'static str, name: &str, path: &str, more: Value| {
        let mut body = json!({"name": name, "path": path});
        if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
            body.extend(more);
        }
        world.call(token, "POST", "/groups", &body).await.body["id"].clone()
    };
    let public = json!({"visibility": "public"});
    let team = group("ann", "team", "team", public.clone()).await;
    let acme = world.group_id("acme").await;
    group("ann", "inner", "inner", json!({"parent_id": team, "visibility": "public"})).await;
    world
        .call(
            "ann",
            "POST",
            "/projects",
            &json!({"name": "p", "namespace_id": team, "visibility": "public"}),
        )
        .await;
    let deep = group("ann", "deep", "deep", public).await;
    let to = |group: &Value| json!({"group_id": group});
    let (acme, open) = (Value::from(acme), Value::from(world.group_id("open").await));
    let inner_id = world.group_id("team/inner").await.into();
    let refused = |path: &'static str, body: Value, why: &str| {
        let answer = json!({"message": format!("Transfer failed: {why}")});
        (fact("group-transfer"), "ann", "POST", path, body, 400, answer)
    };
    const TEAM: &str = "/groups/team/transfer";
    let passes = |rule, path, body, answer| (rule, "ann", "POST", path, body, 201, answer);
    let _ = deep;
    world
        .check(vec![
            (fact("group-transfer"), "max", "POST", TEAM, to(&acme), 403, NO),
            (fact("group-transfer"), "ann", "POST", TEAM, to(&json!(999)), 404, NO),
            refused(TEAM, json!({}), "Group is already a root group."),
            refused(TEAM, to(&open), "You don't have enough permissions."),
            refused(TEAM, to(&inner_id), "Cannot transfer group to one of its subgroup."),
            refused(
                "/groups/deep/transfer",
                to(&acme),
                "The parent group already has a subgroup or a project with the same path.",
            ),
            passes(
                fact("group-transfer"),
                TEAM,
                to(&acme),
                json!({"full_path": "acme/team", "visibility": "private"}),
            ),
            (
                fact("group-transfer-visibility"),
                "ann",
                "GET",
                "/groups/acme%2Fteam%2Finner",
                NO,
                200,
                json!({"visibility": "private"}),
            ),
            (
                fact("group-transfer-visibility"),
                "ann",
                "GET",
                "/projects/acme%2Fteam%2Fp",
                NO,
                200,
                json!({"visibility": "private"}),
            ),
            refused(
                "/groups/acme%2Fteam/transfer",
                to(&acme),
                "Group is already associated to the parent group.",
            ),
            // This group has an owner only in acme.
            passes(
                fact("group-transfer-owner"),
                "/groups/acme%2Fdeep%2Fdown/transfer",
                json!({"group_id": ""}),
                json!({"parent_id": null}),
            ),
            (
                fact("group-transfer-owner"),
                "ann",
                "GET",
                "/groups/down/members",
                NO,
                200,
                json!([{"username": "ann", "access_level": 50}]),
            ),
        ])
        .await;
}

#[tokio::test]
async fn the_deletion_of_a_group_may_be_delayed() {
    const DAY: i64 = 86_400;
    const DEEP: &str = "/groups/acme%2Fdeep";
    const DOWN: &str = "/groups/acme%2Fdeep%2Fdown";
    const RESTORE: &str = "/groups/acme%2Fdeep/restore";
    let clock_seconds = Arc::new(AtomicI64::new(1_900_000_000));
    let seen = Arc::clone(&clock_seconds);
    let clock = Clock::new(move || {
        jiff::Timestamp::from_second(seen.load(Ordering::Relaxed)).expect("a time")
    });
    let world = World::seeded(
        seed(),
        SandboxConfig {
            profile: Profile { deletion_delay: Some(7), ..Profile::default() },
            clock,
            ..SandboxConfig::default()
        },
    )
    .await;
    let refused = |rule, method, path, body, text: &str| {
        (rule, "ann", method, path, body, 400, json!({"message": text}))
    };
    let marked = json!({"marked_for_deletion_on": "2030-03-17"});
    let acme_id = world.group_id("acme").await;
    let taken = json!({"name": "again", "path": "deep", "parent_id": acme_id});
    let at_once = |path: &str| json!({"permanently_remove": true, "full_path": path});
    let permanently = fact("group-delete-permanently");
    world
        .check(vec![
            (fact("role"), "max", "DELETE", DEEP, NO, 403, NO),
            refused(
                fact("group-delete-marked"),
                "POST",
                RESTORE,
                NO,
                "Group has not been marked for deletion",
            ),
            refused(
                permanently,
                "DELETE",
                DEEP,
                at_once("acme/deep"),
                "Group must be marked for deletion first.",
            ),
            (
                fact("group-delete"),
                "ann",
                "DELETE",
                DEEP,
                NO,
                202,
                json!({"message": "202 Accepted"}),
            ),
            (fact("group-delete"), "ann", "GET", DEEP, NO, 200, marked.clone()),
            (
                fact("group-delete"),
                "ann",
                "GET",
                "/groups/acme/subgroups",
                NO,
                200,
                json!([marked]),
            ),
            (fact("group-delete"), "ann", "POST", "/groups", taken, 400, NO),
            refused(
                fact("group-delete-marked"),
                "DELETE",
                DEEP,
                NO,
                "Group has already been marked for deletion",
            ),
            (fact("role"), "max", "POST", RESTORE, NO, 403, NO),
            (
                fact("group-delete"),
                "ann",
                "POST",
                RESTORE,
                NO,
                201,
                json!({"marked_for_deletion_on": null}),
            ),
            (
                fact("group-delete"),
                "ann",
                "GET",
                DEEP,
                NO,
                200,
                json!({"marked_for_deletion_on": null}),
            ),
            (fact("group-delete"), "ann", "DELETE", DEEP, NO, 202, NO),
            refused(
                permanently,
                "DELETE",
                DEEP,
                at_once("deep"),
                "`full_path` is incorrect. You must enter the complete path for the subgroup.",
            ),
            (fact("delete-below"), "ann", "DELETE", DOWN, NO, 202, NO),
            (
                fact("delete-below"),
                "ann",
                "GET",
                DOWN,
                NO,
                200,
                json!({"marked_for_deletion_on": null}),
            ),
            (fact("group-delete"), "ann", "POST", RESTORE, NO, 201, NO),
            (fact("group-delete"), "ann", "DELETE", DOWN, NO, 202, NO),
            (permanently, "ann", "DELETE", DOWN, at_once("acme/deep/down"), 202, NO),
            (permanently, "ann", "GET", DOWN, NO, 404, NO),
            (fact("group-delete"), "ann", "DELETE", DEEP, NO, 202, NO),
            refused(
                permanently,
                "DELETE",
                "/groups/acme",
                at_once("acme"),
                "`permanently_remove` option is only available for subgroups.",
            ),
        ])
        .await;
    clock_seconds.fetch_add(8 * DAY, Ordering::Relaxed);
    world
        .check(vec![
            (fact("group-delete"), "ann", "GET", DEEP, NO, 404, NO),
            (fact("group-delete"), "ann", "GET", "/groups/acme", NO, 200, NO),
        ])
        .await;
    let free = world_on_tier(ServiceTier::Free).await;
    let unlicensed = json!({"message": "404 Not Found"});
    free.check(vec![
        (fact("group-delete"), "ann", "POST", RESTORE, NO, 404, unlicensed),
        (fact("group-delete"), "ann", "DELETE", DEEP, NO, 202, NO),
        (fact("group-delete"), "ann", "GET", DEEP, NO, 404, NO),
    ])
    .await;
}
