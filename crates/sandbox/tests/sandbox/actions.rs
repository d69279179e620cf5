//! The rarer operations: stars, forks, invitations, uploads, memberships, imports.

use std::time::Duration;

use serde_json::{Value, json};
use undrift_sandbox::{Profile, SandboxConfig};

use super::client::{ROOT, World, leak, read_reply, usual_seed};
use super::facts::fact;
use super::releases::at;

const NO: Value = Value::Null;
const SHOP: &str = "/projects/acme%2Fshop";

#[tokio::test]
async fn starring_twice_changes_nothing() {
    let world = World::usual().await;
    world
        .check(vec![
            (
                fact("star"),
                "dan",
                "POST",
                leak(format!("{SHOP}/star")),
                NO,
                201,
                json!({"star_count": 1}),
            ),
            (fact("star-twice"), "dan", "POST", leak(format!("{SHOP}/star")), NO, 304, NO),
            (
                fact("starrers"),
                "dan",
                "GET",
                leak(format!("{SHOP}/starrers")),
                NO,
                200,
                json!([{"user": {"username": "dan"}}]),
            ),
            (
                fact("starred-projects"),
                "dan",
                "GET",
                "/users/dan/starred_projects",
                NO,
                200,
                json!([{"path": "shop"}]),
            ),
            (
                fact("starred-projects"),
                "dan",
                "GET",
                "/projects?starred=true",
                NO,
                200,
                json!([{"path": "shop"}]),
            ),
            (
                fact("starred-projects"),
                "stranger",
                "GET",
                "/users/dan/starred_projects",
                NO,
                200,
                json!([]),
            ),
            (
                fact("star"),
                "dan",
                "POST",
                leak(format!("{SHOP}/unstar")),
                NO,
                201,
                json!({"star_count": 0}),
            ),
            (fact("star-twice"), "dan", "POST", leak(format!("{SHOP}/unstar")), NO, 304, NO),
            (fact("authentication"), "", "POST", leak(format!("{SHOP}/star")), NO, 401, NO),
        ])
        .await;
}

#[tokio::test]
async fn forks_are_created_in_the_background() {
    let world = World::usual().await;
    let site = "/projects/acme%2Fsite";
    world
        .check(vec![
            (fact("unseen"), "stranger", "POST", leak(format!("{SHOP}/fork")), NO, 404, json!({"message": "404 Project Not Found"})),
            (fact("project-name-rules"), "stranger", "POST", leak(format!("{site}/fork")), json!({"name": "!"}), 400, NO),
            (
                fact("parameter-type"),
                "stranger",
                "POST",
                leak(format!("{site}/fork")),
                json!({"namespace_id": "acme"}),
                400,
                json!({"error": "namespace_id is invalid"}),
            ),
            (
                fact("fork-target"),
                "stranger",
                "POST",
                leak(format!("{site}/fork")),
                json!({"namespace_path": "acme"}),
                404,
                json!({"message": "404 Target Namespace Not Found"}),
            ),
            (
                fact("fork-target"),
                "stranger",
                "POST",
                leak(format!("{site}/fork")),
                json!({"namespace_path": "dan"}),
                404,
                json!({"message": "404 Target Namespace Not Found"}),
            ),
            (
                fact("fork-target"),
                "stranger",
                "POST",
                leak(format!("{site}/fork")),
                json!({"namespace_path": "nothing"}),
                404,
                json!({"message": "404 Namespace Not Found"}),
            ),
            (
                fact("fork"),
                "stranger",
                "POST",
                leak(format!("{site}/fork")),
                json!({"path": "copy", "name": "copy"}),
                201,
                json!({"import_status": "scheduled", "import_error": null, "visibility": "public",
                       "path_with_namespace": "stranger/copy", "mr_default_target_self": false,
                       "forked_from_project": {"path_with_namespace": "acme/site", "forks_count": 1,
                                               "license_url": null, "license": null}}),
            ),
            (
                fact("fork-clash"),
                "stranger",
                "POST",
                leak(format!("{site}/fork")),
                json!({"path": "copy", "name": "copy"}),
                409,
                json!({"message": {"name": ["has already been taken"], "path": ["has already been taken"]}}),
            ),
            (fact("fork-list"), "", "GET", leak(format!("{site}/forks")), NO, 200, json!([{"path": "copy"}])),
            (
                fact("fork-self-target"),
                "stranger",
                "PUT",
                "/projects/stranger%2Fcopy",
                json!({"mr_default_target_self": true}),
                200,
                json!({"mr_default_target_self": true}),
            ),
            (fact("fork-self-target"), "mia", "PUT", SHOP, json!({"mr_default_target_self": true}), 400, NO),
            (fact("fork-relation"), "stranger", "DELETE", "/projects/stranger%2Fcopy/fork", NO, 204, NO),
            (fact("fork-relation"), "stranger", "DELETE", "/projects/stranger%2Fcopy/fork", NO, 304, NO),
            (
                fact("fork-relation"),
                "stranger",
                "POST",
                "/projects/stranger%2Fcopy/fork/2",
                NO,
                201,
                json!({"forked_from_project": {"id": 2}}),
            ),
            (fact("fork-relation"), "stranger", "POST", "/projects/stranger%2Fcopy/fork/2", NO, 409, NO),
            (fact("fork-relation-right"), "mia", "POST", leak(format!("{SHOP}/fork/2")), NO, 403, NO),
            (fact("fork-relation"), "olive", "POST", leak(format!("{SHOP}/fork/1")), NO, 400, NO),
            (fact("fork-disabled"), "olive", "PUT", site, json!({"forking_access_level": "disabled"}), 200, NO),
            (fact("fork-disabled"), "mia", "POST", leak(format!("{site}/fork")), NO, 404, json!({"message": "404 Not Found"})),
        ])
        .await;
}

#[tokio::test]
async fn later_releases_refuse_forks_in_sentences() {
    let world = at("18.9").await;
    let fork = "/projects/acme%2Fsite/fork";
    let plain = "can only include non-accented letters, digits, '_', '-' and '.'. It must not start \
                 with '-', '_', or '.', nor end with '-', '_', '.', '.git', or '.atom'.";
    let path = "can contain only letters, digits, '_', '-' and '.'. Cannot start with '-', end in \
                '.git' or end in '.atom'";
    let sentences = json!({"message": [
        format!("Project namespace path {plain}"), format!("Project namespace path {path}"),
        format!("Path {path}"), format!("Path {plain}"),
    ]});
    let not_found = |what: &str| json!({"message": format!("404 {what} Not Found")});
    let post = |rule, body, status, answer| (rule, "stranger", "POST", fork, body, status, answer);
    world
        .check(vec![
            post(fact("fork-refused"), json!({"path": "bad path"}), 409, sentences),
            post(fact("fork-branch"), json!({"branches": "nope"}), 404, not_found("Source Branch")),
            post(
                fact("fork-target-member"),
                json!({"namespace_path": "acme"}),
                404,
                not_found("Namespace"),
            ),
            (
                fact("fork-target-member"),
                "rita",
                "POST",
                fork,
                json!({"namespace_path": "acme"}),
                404,
                not_found("Target Namespace"),
            ),
        ])
        .await;
}

#[tokio::test]
async fn a_private_project_is_forked_by_those_who_read_its_code() {
    let world = World::usual().await;
    let hidden = json!({"name": "Hidden", "path": "hidden"});
    let fork = "/projects/acme%2Fshop/fork";
    world
        .check(vec![
            (fact("group"), "olive", "POST", "/groups", hidden, 201, NO),
            (
                fact("fork-target"),
                "rita",
                "POST",
                fork,
                json!({"namespace": "hidden"}),
                404,
                json!({"message": "404 Namespace Not Found"}),
            ),
            (fact("fork-guest"), "gus", "POST", fork, NO, 404, json!({"message": "404 Not Found"})),
            (fact("fork-guest"), "gus", "POST", "/projects/acme%2Fsite/fork", NO, 201, NO),
            (fact("fork-guest"), "rita", "POST", fork, NO, 201, NO),
        ])
        .await;
}

#[tokio::test]
async fn a_list_of_forks_shows_their_upstream() {
    let world = World::usual().await;
    let from = json!([{"forked_from_project": {"path_with_namespace": "acme/shop"}, "permissions": {"project_access": {"access_level": 50}}}]);
    world
        .check(vec![
            (
                fact("member-add"),
                "mia",
                "POST",
                "/projects/1/members",
                json!({"user_id": 7, "access_level": 30}),
                201,
                NO,
            ),
            (fact("fork"), "stranger", "POST", "/projects/1/fork", NO, 201, NO),
            (fact("fork-list"), "stranger", "GET", "/projects/1/forks", NO, 200, from),
        ])
        .await;
}

#[tokio::test]
async fn groups_are_invited_to_projects() {
    let world = World::usual().await;
    let ops = world
        .call("stranger", "POST", "/groups", &json!({"name": "ops", "path": "ops"}))
        .await
        .body["id"]
        .clone();
    world.call("stranger", "PUT", "/groups/ops", &json!({"visibility": "public"})).await;
    let share = leak(format!("{SHOP}/share"));
    let link = leak(format!("{SHOP}/share/{ops}"));
    world
        .check(vec![
            (
                fact("share-level"),
                "mia",
                "POST",
                share,
                json!({"group_id": ops, "group_access": 31}),
                400,
                json!({"error": "group_access does not have a valid value"}),
            ),
            (
                fact("share-unknown"),
                "mia",
                "POST",
                share,
                json!({"group_id": 999, "group_access": 30}),
                404,
                json!({"message": "Not Found"}),
            ),
            (
                fact("share"),
                "mia",
                "POST",
                share,
                json!({"group_id": ops, "group_access": 20, "expires_at": "2999-01-01"}),
                201,
                json!({"project_id": 1, "group_id": ops, "group_access": 20, "expires_at": "2999-01-01"}),
            ),
            (fact("share"), "mia", "POST", share, json!({"group_id": ops, "group_access": 20}), 409, NO),
            (
                fact("shared-with-groups"),
                "mia",
                "GET",
                SHOP,
                NO,
                200,
                json!({"shared_with_groups": [{"group_full_path": "ops", "group_access_level": 20}]}),
            ),
            (fact("share-access"), "stranger", "GET", SHOP, NO, 200, json!({"permissions": {"project_access": null}})),
            (fact("share-access"), "stranger", "PUT", SHOP, json!({"description": "x"}), 403, NO),
            (fact("members-all"), "mia", "GET", leak(format!("{SHOP}/members/all?query=stranger")), NO, 200, json!([{"access_level": 20}])),
            (fact("unshare"), "mia", "DELETE", link, NO, 204, NO),
            (fact("unshare-absent"), "mia", "DELETE", link, NO, 404, json!({"message": "404 Group Link Not Found"})),
            (fact("parameter-type"), "mia", "DELETE", leak(format!("{SHOP}/share/x")), NO, 400, json!({"error": "group_id is invalid"})),
        ])
        .await;
}

#[tokio::test]
async fn uploads_return_links() {
    let world = World::usual().await;
    let upload = async |name: &'static str| {
        let part = reqwest::multipart::Part::bytes(b"x".to_vec()).file_name(name);
        let form = reqwest::multipart::Form::new().part("file", part);
        let request = world.request("gus", "POST", &format!("{SHOP}/uploads")).multipart(form);
        read_reply(request.send().await.expect("an answer")).await
    };
    let image = upload("../../dk.png").await;
    assert_eq!(image.status, 201, "{}", fact("upload"));
    let url = image.body["url"].as_str().expect("an address");
    assert!(
        url.starts_with("/uploads/")
            && url.ends_with("/dk.png")
            && url.len() == "/uploads//dk.png".len() + 32
    );
    assert_eq!(image.body["markdown"], format!("![dk]({url})"), "{}", fact("upload"));
    assert_eq!(image.body["full_path"], format!("/acme/shop{url}"), "{}", fact("upload"));
    assert_eq!(upload("a b](x).txt").await.body["alt"], "a_b__x_.txt", "{}", fact("upload-names"));
    world
        .check(vec![(
            fact("upload-file"),
            "gus",
            "POST",
            leak(format!("{SHOP}/uploads")),
            json!({}),
            400,
            json!({"error": "file is missing"}),
        )])
        .await;
}

#[tokio::test]
async fn small_actions_succeed() {
    let world = World::usual().await;
    let copy = leak(format!("{SHOP}/import_project_members/2"));
    world
        .check(vec![
            (fact("import-members"), "mia", "POST", copy, NO, 200, json!({"status": "success"})),
            (
                fact("import-members-unknown"),
                "mia",
                "POST",
                leak(format!("{SHOP}/import_project_members/9")),
                NO,
                404,
                json!({"message": "404 Project Not Found"}),
            ),
            (fact("role"), "dan", "POST", copy, NO, 403, NO),
            (
                fact("housekeeping"),
                "mia",
                "POST",
                leak(format!("{SHOP}/housekeeping")),
                NO,
                201,
                NO,
            ),
            (fact("role"), "dan", "POST", leak(format!("{SHOP}/housekeeping")), NO, 403, NO),
            (
                fact("restore-unmarked"),
                "olive",
                "POST",
                leak(format!("{SHOP}/restore")),
                NO,
                400,
                NO,
            ),
            (
                fact("languages"),
                "dan",
                "GET",
                leak(format!("{SHOP}/languages")),
                NO,
                200,
                json!({}),
            ),
            (
                fact("project-groups"),
                "dan",
                "GET",
                leak(format!("{SHOP}/groups")),
                NO,
                200,
                json!([{"full_path": "acme"}]),
            ),
            (
                fact("project-users"),
                "dan",
                "GET",
                leak(format!("{SHOP}/users?search=MIA")),
                NO,
                200,
                json!([{"username": "mia"}]),
            ),
            (
                fact("transfer-locations"),
                "olive",
                "GET",
                leak(format!("{SHOP}/transfer_locations")),
                NO,
                200,
                json!([]),
            ),
            (fact("unseen"), "", "GET", leak(format!("{SHOP}/users")), NO, 404, NO),
            (
                fact("group"),
                "olive",
                "POST",
                "/groups",
                json!({"name": "new", "path": "new"}),
                201,
                NO,
            ),
            (
                fact("transfer-locations"),
                "olive",
                "GET",
                leak(format!("{SHOP}/transfer_locations")),
                NO,
                200,
                json!([{"full_path": "new"}]),
            ),
            (
                fact("transfer"),
                "olive",
                "PUT",
                leak(format!("{SHOP}/transfer")),
                json!({"namespace": "new"}),
                200,
                json!({"path_with_namespace": "new/shop"}),
            ),
            (
                fact("transfer-to-group"),
                "olive",
                "POST",
                "/groups/acme/projects/new%2Fshop",
                NO,
                403,
                NO,
            ),
            (
                fact("transfer-to-group"),
                ROOT,
                "POST",
                "/groups/acme/projects/new%2Fshop",
                NO,
                201,
                json!({"full_path": "acme"}),
            ),
            (
                fact("transfer-to-group"),
                ROOT,
                "POST",
                "/groups/acme/projects/acme%2Fshop",
                NO,
                400,
                NO,
            ),
            (
                fact("transfer-to-group"),
                ROOT,
                "POST",
                "/groups/new/projects/acme%2Fshop",
                NO,
                201,
                NO,
            ),
            (
                fact("repository-file"),
                "olive",
                "POST",
                "/projects/new%2Fshop/repository/files/README.md",
                json!({"branch": "trunk", "content": "x", "commit_message": "x"}),
                201,
                NO,
            ),
            (
                fact("repository-file"),
                "olive",
                "GET",
                "/projects/new%2Fshop",
                NO,
                200,
                json!({"default_branch": "trunk", "empty_repo": false}),
            ),
        ])
        .await;
}

#[tokio::test]
async fn a_project_is_transferred_only_to_an_allowed_namespace() {
    let world = World::usual().await;
    let transfer = || leak(format!("{SHOP}/transfer"));
    let to = |namespace: &str| json!({"namespace": namespace});
    let group = |path: &str| json!({"name": path, "path": path, "visibility": "private"});
    world
        .check(vec![
            (fact("group"), "olive", "POST", "/groups", group("one"), 201, NO),
            (fact("group"), "olive", "POST", "/groups", group("two"), 201, NO),
            (fact("group"), "stranger", "POST", "/groups", group("foreign"), 201, NO),
            (fact("transfer"), "mia", "PUT", transfer(), to("one"), 403, NO),
            (fact("transfer"), "olive", "PUT", transfer(), json!({}), 400, NO),
            (fact("transfer"), "olive", "PUT", transfer(), to("nowhere"), 404, NO),
            (fact("transfer"), "olive", "PUT", transfer(), to("foreign"), 404, NO),
            (fact("transfer"), "olive", "PUT", transfer(), to("acme"), 400, NO),
            (
                fact("transfer"),
                "olive",
                "PUT",
                transfer(),
                to("one"),
                200,
                json!({"path_with_namespace": "one/shop", "namespace": {"full_path": "one"}}),
            ),
            // The former path redirects to the id, but accepts no changes, and is free for another
            // project.
            (fact("project-moved"), "olive", "GET", SHOP, NO, 301, NO),
            (fact("project-moved"), "olive", "PUT", transfer(), to("two"), 405, NO),
            (
                fact("transfer"),
                "olive",
                "PUT",
                "/projects/one%2Fshop/transfer",
                to("acme"),
                200,
                json!({"path_with_namespace": "acme/shop"}),
            ),
            (fact("project-moved"), "olive", "GET", SHOP, NO, 200, NO),
        ])
        .await;
}

#[tokio::test]
async fn memberships_are_managed_for_a_whole_hierarchy() {
    let world = World::usual().await;
    let acme = world.get(ROOT, "/groups/acme").await.body["id"].clone();
    world
        .call("olive", "POST", "/groups", &json!({"name": "sub", "path": "sub", "parent_id": acme}))
        .await;
    world
        .check(vec![
            (
                fact("billable"),
                "olive",
                "GET",
                "/groups/acme/billable_members?sort=name_desc&search=a",
                NO,
                200,
                json!([{"username": "rita"}, {"username": "mia"}, {"username": "dan"}]),
            ),
            (
                fact("billable-memberships"),
                "olive",
                "GET",
                "/groups/acme/billable_members/4/memberships",
                NO,
                200,
                json!([{"source_full_name": "acme", "access_level": {"string_value": "Developer", "integer_value": 30}}]),
            ),
            (fact("hierarchy"), "mia", "GET", "/groups/acme/billable_members", NO, 400, json!({"message": "400 Bad request"})),
            (fact("hierarchy"), "olive", "GET", "/groups/acme%2Fsub/billable_members", NO, 400, NO),
            (
                fact("member-state"),
                "olive",
                "PUT",
                "/groups/acme/members/4/state",
                json!({"state": "awaiting"}),
                200,
                json!({"success": true}),
            ),
            (fact("member-state"), "dan", "GET", SHOP, NO, 404, NO),
            (
                fact("pending"),
                "olive",
                "GET",
                "/groups/acme/pending_members",
                NO,
                200,
                json!([{"username": "dan", "approved": false, "invited": false}]),
            ),
            (fact("approve"), "olive", "PUT", "/groups/acme/members/4/approve", NO, 204, NO),
            (fact("member-state"), "dan", "GET", SHOP, NO, 200, NO),
            (fact("approve"), "olive", "POST", "/groups/acme/members/approve_all", NO, 204, NO),
            (fact("member-add"), "olive", "POST", "/projects/acme%2Fshop/members", json!({"user_id": 7, "access_level": 10}), 201, NO),
            (fact("member-state"), "olive", "PUT", "/groups/acme/members/7/state", json!({"state": "awaiting"}), 200, NO),
            (fact("member-state"), "stranger", "GET", SHOP, NO, 404, NO),
            (fact("member-state"), "stranger", "GET", "/projects?membership=true", NO, 200, json!([])),
            (fact("override"), "olive", "POST", "/groups/acme/members/4/override", NO, 201, json!({"override": true})),
            (fact("override"), "olive", "DELETE", "/groups/acme/members/4/override", NO, 200, json!({"override": false})),
            (fact("billable-remove"), "olive", "DELETE", "/groups/acme/billable_members/4", NO, 204, NO),
            (fact("billable-remove"), "olive", "GET", "/groups/acme/members/4", NO, 404, NO),
            (fact("last-owner"), "olive", "DELETE", "/groups/acme/billable_members/2", NO, 403, NO),
            // Without an active owner, none is the last one.
            (fact("user-change"), ROOT, "POST", "/users/2/block", NO, 201, NO),
            (fact("billable-remove"), ROOT, "DELETE", "/groups/acme/billable_members/2", NO, 204, NO),
        ])
        .await;
}

#[tokio::test]
async fn groups_and_users_have_custom_attributes_too() {
    let world = World::usual().await;
    for (list, one, other) in [("/groups", "/groups/acme", "olive"), ("/users", "/users/4", "dan")]
    {
        let place = leak(format!("{one}/custom_attributes"));
        let team = leak(format!("{place}/team"));
        let found = leak(format!("{list}?custom_attributes[team]=x"));
        let id = world.get(ROOT, one).await.body["id"].clone();
        world
            .check(vec![
                (fact("role"), other, "PUT", team, json!({"value": "x"}), 403, NO),
                (fact("custom-attributes"), ROOT, "GET", place, NO, 200, json!([])),
                (fact("custom-attributes"), ROOT, "GET", found, NO, 200, json!([])),
                (
                    fact("custom-attributes"),
                    ROOT,
                    "PUT",
                    team,
                    json!({"value": "y"}),
                    200,
                    json!({"key": "team", "value": "y"}),
                ),
                (
                    fact("custom-attributes"),
                    ROOT,
                    "PUT",
                    team,
                    json!({"value": "x"}),
                    200,
                    json!({"value": "x"}),
                ),
                (
                    fact("custom-attributes"),
                    ROOT,
                    "GET",
                    place,
                    NO,
                    200,
                    json!([{"key": "team", "value": "x"}]),
                ),
                (fact("custom-attributes"), ROOT, "GET", found, NO, 200, json!([{"id": id}])),
                (
                    fact("custom-attribute-blank"),
                    ROOT,
                    "PUT",
                    team,
                    json!({"value": ""}),
                    400,
                    json!({"message": {"value": ["can't be blank"]}}),
                ),
                (fact("custom-attributes"), ROOT, "DELETE", team, NO, 204, NO),
                (fact("custom-attributes"), ROOT, "GET", team, NO, 404, NO),
            ])
            .await;
    }
}

#[tokio::test]
async fn a_group_shows_custom_attributes_of_its_projects_from_18_9_on() {
    let rule = fact("custom-attributes-of-group");
    for (release, shown) in [("18.8", Value::Null), ("18.9", json!([]))] {
        let world = World::at(release).await;
        let group = world.get(ROOT, "/groups/acme?with_custom_attributes=true").await.body;
        assert_eq!(group["projects"][0]["custom_attributes"], shown, "{rule} {release}");
        let group = world.get("olive", "/groups/acme?with_custom_attributes=true").await.body;
        assert!(group["projects"][0].get("custom_attributes").is_none(), "{rule} {release}");
    }
}

#[tokio::test]
async fn a_changed_feature_level_keeps_updated_at_from_18_9_on() {
    let rule = fact("project-updated");
    for (release, settings, keeps_time) in [
        ("18.8", json!({"issues_access_level": "disabled"}), false),
        ("18.9", json!({"issues_access_level": "disabled"}), true),
        ("18.9", json!({"issues_access_level": "disabled", "description": "new"}), false),
        ("18.9", json!({"issues_access_level": "disabled", "path": "new"}), false),
    ] {
        let world = World::at(release).await;
        let updated_at = |project: &Value| project["updated_at"].clone();
        let former = world.get(ROOT, "/projects/1").await.body;
        let edited = world.call(ROOT, "PUT", "/projects/1", &settings).await.body;
        let is_same = updated_at(&former) == updated_at(&edited);
        // Before 18.9 projects do not show it.
        let is_shown = !updated_at(&former).is_null();
        assert_eq!(is_same, keeps_time || !is_shown, "{rule} {release} {settings}");
    }
}

#[tokio::test]
async fn custom_attributes_are_for_administrators() {
    let world = World::usual().await;
    let place = "/projects/acme%2Fshop/custom_attributes/cost";
    let list = "/projects?with_custom_attributes=true&custom_attributes[cost]=high";
    world
        .check(vec![
            (fact("role"), "olive", "PUT", place, json!({"value": "high"}), 403, NO),
            (
                fact("custom-attributes"),
                ROOT,
                "PUT",
                place,
                json!({"value": "high"}),
                200,
                json!({"key": "cost", "value": "high"}),
            ),
            (fact("custom-attributes"), ROOT, "GET", place, NO, 200, json!({"value": "high"})),
            (
                fact("custom-attributes"),
                ROOT,
                "GET",
                list,
                NO,
                200,
                json!([{"id": 1, "custom_attributes": [{"value": "high"}]}]),
            ),
            (
                fact("custom-attributes"),
                ROOT,
                "GET",
                "/projects?custom_attributes[cost]=low",
                NO,
                200,
                json!([]),
            ),
            (
                fact("custom-attributes"),
                "olive",
                "GET",
                "/projects?custom_attributes[cost]=low&sort=asc",
                NO,
                200,
                json!([{"id": 1}, {"id": 2}]),
            ),
            (fact("custom-attributes"), ROOT, "DELETE", place, NO, 204, NO),
            (fact("custom-attributes"), ROOT, "GET", place, NO, 404, NO),
        ])
        .await;
    let answer = world.get("olive", "/projects/1?with_custom_attributes=true").await.body;
    assert!(answer.get("custom_attributes").is_none(), "{}", fact("custom-attributes"));
}

#[tokio::test]
async fn gist_imports_need_a_feature_flag() {
    let world = World::usual().await;
    let body = json!({"personal_access_token": "s"});
    world
        .check(vec![(
            fact("gists-flag"),
            "dan",
            "POST",
            "/import/extgit/gists",
            body,
            404,
            json!({"message": "404 Not Found"}),
        )])
        .await;
}

#[tokio::test]
async fn imports_accept_the_real_names_of_hosts() {
    let world = World::usual().await;
    let hosted = json!({"personal_access_token": "s", "repo_id": 7, "target_namespace": "acme", "new_name": "in", "github_hostname": "h"});
    let server = json!({"bitbucket_server_url": "https://x.example", "bitbucket_server_username": "u", "personal_access_token": "s",
                        "bitbucket_server_project": "K", "bitbucket_server_repo": "repo"});
    world
        .check(vec![
            (
                fact("import-names"),
                "dan",
                "POST",
                "/import/github",
                hosted,
                201,
                json!({"full_path": "acme/in"}),
            ),
            (
                fact("import-names"),
                "dan",
                "POST",
                "/import/github/cancel",
                json!({"project_id": 99}),
                404,
                json!({"message": "404 Not found"}),
            ),
            (
                fact("import-names"),
                "dan",
                "POST",
                "/import/bitbucket_server",
                server,
                201,
                json!({"full_path": "dan/repo"}),
            ),
        ])
        .await;
}

#[tokio::test]
async fn imports_can_be_canceled_while_they_run() {
    let world = World::seeded(
        usual_seed(),
        SandboxConfig {
            profile: Profile {
                import_delay: Duration::from_secs(3600),
                housekeeping_lease: Duration::from_secs(3600),
                gists: true,
                ..Profile::default()
            },
            ..SandboxConfig::default()
        },
    )
    .await;
    let wanted = json!({"personal_access_token": "s", "repo_id": 7, "target_namespace": "acme", "new_name": "in"});
    let blank = json!({"personal_access_token": "s", "repo_id": 7, "target_namespace": ""});
    world
        .check(vec![
            (fact("import-target"), "dan", "POST", "/import/extgit", blank, 400, json!({"error": "target_namespace is empty"})),
            (fact("import-right"), "stranger", "POST", "/import/extgit", wanted.clone(), 422, NO),
            (
                fact("import"),
                "dan",
                "POST",
                "/import/extgit",
                wanted,
                201,
                json!({"id": 3, "name": "in", "full_path": "acme/in", "full_name": "acme / in"}),
            ),
            (
                fact("import-cancel"),
                "dan",
                "POST",
                "/import/extgit/cancel",
                json!({"project_id": 3}),
                200,
                json!({"import_status": "canceled", "human_import_status_name": "canceled"}),
            ),
            (
                fact("import-cancel-late"),
                "dan",
                "POST",
                "/import/extgit/cancel",
                json!({"project_id": 3}),
                400,
                json!({"errors": "The import cannot be canceled because it is canceled"}),
            ),
            (fact("import-cancel-unknown"), "dan", "POST", "/import/extgit/cancel", json!({"project_id": 99}), 404, NO),
            (fact("housekeeping"), "mia", "POST", "/projects/1/housekeeping", NO, 201, NO),
            (fact("housekeeping"), "mia", "POST", "/projects/1/housekeeping", NO, 409, NO),
            (fact("housekeeping"), "mia", "POST", "/projects/2/housekeeping", NO, 201, NO),
            (fact("gists"), "dan", "POST", "/import/extgit/gists", json!({"personal_access_token": "s"}), 202, NO),
            (
                fact("gists"),
                "dan",
                "POST",
                "/import/extgit/gists",
                json!({"personal_access_token": "s"}),
                422,
                json!({"errors": "Import already in progress"}),
            ),
            (
                fact("import-server"),
                "dan",
                "POST",
                "/import/extserver",
                json!({"extserver_url": "https://x.example", "extserver_username": "u", "personal_access_token": "s",
                       "extserver_project": "K", "extserver_repo": "repo"}),
                201,
                json!({"full_path": "dan/repo"}),
            ),
        ])
        .await;
}
