//! Plain collections below projects and groups, and small documents of projects.

use serde_json::{Value, json};
use undrift_release::Release;
use undrift_sandbox::{
    Collection, FieldType, OBSERVED_RELEASE, RowField, SandboxConfig, ServiceTier, serves_path,
};

use super::client::{ROOT, World, contains, leak, usual_seed};
use super::facts::fact;

const NO: Value = Value::Null;
const SHOP: &str = "/projects/acme%2Fshop";

async fn at(release: Release) -> World {
    let tier = Some(ServiceTier::Ultimate);
    World::seeded(
        usual_seed(),
        SandboxConfig { release: Some(release), tier, ..SandboxConfig::default() },
    )
    .await
}

fn below(path: &str) -> &'static str {
    leak(format!("{SHOP}/{path}"))
}

#[tokio::test]
async fn milestones_are_closed_and_reopened() {
    let world = World::usual().await;
    let rule = fact("milestones");
    let due = |title: &str, day: &str| json!({"title": title, "due_date": day});
    world
        .check(vec![
            (
                rule,
                "mia",
                "POST",
                below("milestones"),
                due("b", "2001-01-01"),
                201,
                json!({"iid": 1, "state": "active", "expired": true, "start_date": null}),
            ),
            (
                rule,
                "mia",
                "POST",
                below("milestones"),
                json!({"title": "c"}),
                201,
                json!({"iid": 2, "expired": false}),
            ),
            (
                rule,
                "mia",
                "POST",
                below("milestones"),
                due("a", "2001-01-01"),
                201,
                json!({"iid": 3}),
            ),
            (
                rule,
                "mia",
                "POST",
                below("milestones"),
                json!({}),
                400,
                json!({"error": "title is missing"}),
            ),
            (rule, "mia", "POST", below("milestones"), json!({"title": "a"}), 400, NO),
            (
                rule,
                "mia",
                "PUT",
                below("milestones/1"),
                json!({"state_event": "close"}),
                200,
                json!({"state": "closed", "title": "b"}),
            ),
            (
                rule,
                "mia",
                "PUT",
                below("milestones/1"),
                json!({"title": "d"}),
                200,
                json!({"state": "closed", "title": "d"}),
            ),
            (
                rule,
                "gus",
                "GET",
                below("milestones"),
                NO,
                200,
                json!([{"title": "a"}, {"title": "d"}, {"title": "c"}]),
            ),
            (
                rule,
                "gus",
                "GET",
                below("milestones?state=active"),
                NO,
                200,
                json!([{"title": "a"}, {"title": "c"}]),
            ),
            (rule, "gus", "POST", below("milestones"), json!({"title": "e"}), 403, NO),
            (rule, "", "GET", below("milestones"), NO, 401, NO),
            (rule, "mia", "DELETE", below("milestones/1"), NO, 204, NO),
            (
                rule,
                "mia",
                "GET",
                below("milestones/1"),
                NO,
                404,
                json!({"message": "404 Not found"}),
            ),
            (
                rule,
                "mia",
                "POST",
                "/groups/acme/milestones",
                json!({"title": "g"}),
                201,
                json!({"iid": 1}),
            ),
            (
                rule,
                "mia",
                "PUT",
                "/groups/acme/milestones/4",
                json!({"state_event": "activate"}),
                200,
                json!({"state": "active"}),
            ),
        ])
        .await;
}

#[tokio::test]
async fn milestones_are_found_and_have_their_own_title() {
    let world = World::usual().await;
    let rule = fact("milestone-edits");
    let title = |title: &str| json!({"title": title});
    let taken = json!({"message":
        "Failed to create milestone {:title=>[\"already being used for another group or project milestone.\"]}"});
    let of_group = "/groups/acme/milestones";
    let of_site = "/projects/acme%2Fsite/milestones";
    let missing = "title, description, due_date, start_date, state_event are missing, at least one \
                   parameter must be provided";
    world
        .check(vec![
            (rule, "mia", "POST", below("milestones"), title("one"), 201, NO),
            (rule, "mia", "POST", below("milestones"), title("two"), 201, NO),
            (rule, "mia", "POST", of_site, title("one"), 201, NO),
            (
                rule,
                "mia",
                "POST",
                of_site,
                json!({"title": "due", "due_date": "nope"}),
                201,
                json!({"due_date": null}),
            ),
            (rule, "mia", "POST", of_group, title("one"), 400, taken.clone()),
            (rule, "mia", "POST", of_group, title("all"), 201, NO),
            (rule, "mia", "POST", of_site, title("all"), 400, taken.clone()),
            (rule, "mia", "PUT", below("milestones/2"), title("one"), 400, taken),
            (rule, "mia", "PUT", below("milestones/2"), title("two"), 200, NO),
            (
                rule,
                "mia",
                "PUT",
                below("milestones/2"),
                json!({"state": "closed"}),
                400,
                json!({"error": missing}),
            ),
            (rule, "gus", "GET", below("milestones?search=TW"), NO, 200, json!([{"iid": 2}])),
            (rule, "gus", "GET", below("milestones?iids[]=1"), NO, 200, json!([{"iid": 1}])),
        ])
        .await;
}

#[tokio::test]
async fn environments_are_filtered_and_protected() {
    let world = at(OBSERVED_RELEASE).await;
    let (rule, protected) = (fact("environment-list"), fact("environment-protected"));
    let new = |name: &str, url: &str| json!({"name": name, "external_url": url});
    let url = |url: Value| json!({ "external_url": url });
    let list = |query: &str| below(&format!("environments?{query}"));
    let level = json!([{"access_level": 40}]);
    let protect = |name: &str| json!({"name": name, "deploy_access_levels": level});
    let names =
        |names: &[&str]| -> Value { names.iter().map(|name| json!({ "name": name })).collect() };
    let address = fact("environment-address");
    let one = below("environments/1");
    world
        .check(vec![
            (
                address,
                "dan",
                "POST",
                below("environments"),
                new("web", "nope"),
                201,
                url("nope".into()),
            ),
            (address, "dan", "POST", below("environments"), new("bad", "javascript:x"), 400, NO),
            (address, "dan", "PUT", one, url("".into()), 200, url(NO)),
            (address, "dan", "PUT", one, url("https://x.example".into()), 200, NO),
            (rule, "dan", "POST", below("environments"), json!({"name": "staging"}), 201, NO),
            (rule, "dan", "POST", below("environments/2/stop"), NO, 200, NO),
            (rule, "rita", "GET", list("states=stopped"), NO, 200, names(&["staging"])),
            (rule, "rita", "GET", list("states=available"), NO, 200, names(&["web"])),
            (rule, "rita", "GET", list("states=gone"), NO, 400, NO),
            (rule, "rita", "GET", list("search=TAG"), NO, 200, names(&["staging"])),
            (rule, "rita", "GET", list("search=st"), NO, 400, NO),
            (rule, "rita", "GET", list("search=web&name=web"), NO, 400, NO),
            (protected, "mia", "POST", below("protected_environments"), protect("web"), 201, NO),
            (protected, "dan", "POST", below("environments/1/stop"), NO, 403, NO),
            (protected, "dan", "PUT", one, json!({"tier": "other"}), 200, NO),
            (protected, "mia", "POST", below("environments/1/stop"), NO, 200, NO),
            (protected, "dan", "DELETE", one, NO, 403, NO),
            (protected, "mia", "DELETE", one, NO, 204, NO),
            (
                protected,
                "olive",
                "POST",
                "/groups/acme/protected_environments",
                protect("staging"),
                201,
                NO,
            ),
            (protected, "dan", "DELETE", below("environments/2"), NO, 403, NO),
            (protected, ROOT, "DELETE", below("environments/2"), NO, 204, NO),
        ])
        .await;
}

#[tokio::test]
async fn environments_are_stopped_before_they_are_deleted() {
    let world = at(OBSERVED_RELEASE).await;
    let rule = fact("environments");
    let protected = fact("protected-environments");
    let approvals = fact("protected-approvals");
    let levels = json!([{"access_level": 40}]);
    let one =
        json!({"name": "live", "deploy_access_levels": levels, "approval_rules": [{"user_id": 4}]});
    let shown = json!({"name": "live", "required_approval_count": 0,
        "deploy_access_levels": [{"id": 1, "access_level": 40, "access_level_description": "Maintainers", "group_inheritance_type": 0}],
        "approval_rules": [{"id": 2, "user_id": 4, "required_approvals": 1}]});
    let swap = json!({"deploy_access_levels": [{"id": 1, "_destroy": true}, {"access_level": 30}]});
    let tier = |name: &str| json!({"name": name, "deploy_access_levels": [{"access_level": 40}]});
    let tiers = fact("protected-tiers");
    world
        .check(vec![
            (rule, "dan", "POST", below("environments"), json!({"name": "live"}), 201, json!({"id": 1, "slug": "live", "tier": "production", "state": "available"})),
            (rule, "dan", "POST", below("environments"), json!({"name": "live"}), 400, json!({"message": ["Name has already been taken", "Slug has already been taken"]})),
            (rule, "dan", "PUT", below("environments/1"), json!({"name": "x", "tier": "other"}), 200, json!({"name": "live", "tier": "other"})),
            (rule, "dan", "DELETE", below("environments/1"), NO, 403, NO),
            (rule, "dan", "POST", below("environments/1/stop"), NO, 200, json!({"state": "stopped"})),
            (rule, "dan", "DELETE", below("environments/1"), NO, 204, NO),
            (rule, "gus", "POST", below("environments"), json!({"name": "x"}), 403, NO),
            (rule, "dan", "POST", below("environments"), json!({"name": "job", "auto_stop_setting": "with_action"}), 201, json!({"id": 2})),
            (rule, "dan", "POST", below("environments/2/stop"), NO, 400, json!({"message": "400 Bad request - Attempted to stop the environment but failed to change the status"})),
            (rule, "dan", "POST", below("environments/2/stop?force=true"), NO, 200, json!({"state": "stopped"})),
            (rule, "dan", "POST", below("environments/2/stop"), NO, 200, NO),
            (rule, "dan", "DELETE", below("environments/2"), NO, 204, NO),
            (protected, "mia", "POST", below("protected_environments"), json!({"name": "live"}), 400, NO),
            (protected, "mia", "POST", below("protected_environments"), one.clone(), 201, shown.clone()),
            (protected, "mia", "POST", below("protected_environments"), one, 409, json!({"message": "Environment 'live' is already protected"})),
            (protected, "mia", "GET", below("protected_environments/live"), NO, 200, shown),
            (protected, "mia", "PUT", below("protected_environments/live"), swap, 200, json!({"deploy_access_levels": [{"id": 3, "access_level": 30}], "approval_rules": [{"id": 2}]})),
            (protected, "mia", "PUT", below("protected_environments/live"), json!({"deploy_access_levels": [{"id": 3, "_destroy": true}]}), 422, NO),
            (protected, "mia", "PUT", below("protected_environments/live"), json!({"deploy_access_levels": [{"access_level": 30, "user_id": 4}]}), 422, json!({"message": ["Deploy access levels Exactly one of access_level, group_id, user_id must be present"]})),
            (approvals, "mia", "PUT", below("protected_environments/live"), json!({"approval_rules": [{"id": 2, "_destroy": true}]}), 400, NO),
            (approvals, "mia", "PUT", below("protected_environments/live"), json!({"approval_rules": [{"id": 2, "user_id": 4, "required_approvals": 0}]}), 422, NO),
            (approvals, "mia", "PUT", below("protected_environments/live"), json!({"approval_rules": [{"id": 2, "user_id": 4, "required_approvals": 3}]}), 200, json!({"approval_rules": [{"id": 2, "user_id": 4, "required_approvals": 3}]})),
            (approvals, "mia", "PUT", below("protected_environments/live"), json!({"approval_rules": [{"id": 2, "user_id": 4}]}), 200, json!({"approval_rules": [{"id": 2, "required_approvals": 1}]})),
            (approvals, "mia", "PUT", below("protected_environments/live"), json!({"approval_rules": [{"id": 2, "access_level": 30}]}), 422, NO),
            (approvals, "mia", "PUT", below("protected_environments/live"), json!({"approval_rules": [{"id": 2, "_destroy": true, "user_id": 4}]}), 200, json!({"approval_rules": []})),
            (fact("approval-count"), "mia", "PUT", below("protected_environments/live"), json!({"required_approval_count": 2}), 422, NO),
            (protected, "dan", "GET", below("protected_environments"), NO, 403, NO),
            (protected, "mia", "DELETE", below("protected_environments/live"), NO, 204, NO),
            (tiers, "olive", "POST", "/groups/acme/protected_environments", tier("live"), 422, json!({"message": ["Name must be one of environment tiers: production, staging, testing, development, other"]})),
            (tiers, "olive", "POST", "/groups/acme/protected_environments", tier("staging"), 201, json!({"deploy_access_levels": [{"access_level": 40}]})),
            (tiers, "olive", "POST", "/groups/acme/protected_environments", tier("staging"), 409, json!({"message": "Protected environment 'staging' already exists"})),
            (tiers, "mia", "GET", "/groups/acme/protected_environments", NO, 403, NO),
        ])
        .await;
    let before = at(Release::new(15, 8)).await;
    let body = json!({"name": "live", "deploy_access_levels": [{"access_level": 40}], "required_approval_count": 2});
    let count = json!({"required_approval_count": 2});
    before
        .check(vec![(protected, "mia", "POST", below("protected_environments"), body, 201, count)])
        .await;
}

#[tokio::test]
async fn deploy_tokens_show_their_secret_once() {
    let world = World::usual().await;
    let rule = fact("deploy-tokens");
    let body = json!({"name": "d", "scopes": ["read_registry", "read_repository"], "expires_at": "2000-01-01"});
    let shown = json!({"id": 1, "username": "gitlab+deploy-token-1", "scopes": ["read_repository", "read_registry"], "expires_at": "2000-01-01T00:00:00.000Z", "expired": true});
    world
        .check(vec![
            (rule, "mia", "POST", below("deploy_tokens"), body.clone(), 201, shown.clone()),
            (
                rule,
                "mia",
                "POST",
                below("deploy_tokens"),
                json!({}),
                400,
                json!({"error": "name is missing, scopes is missing"}),
            ),
            (
                rule,
                "mia",
                "POST",
                below("deploy_tokens"),
                json!({"name": "d", "scopes": ["x"]}),
                400,
                json!({"error": "scopes does not have a valid value"}),
            ),
            (rule, "mia", "PUT", below("deploy_tokens/1"), body.clone(), 404, NO),
            (rule, "mia", "GET", below("deploy_tokens"), NO, 200, json!([shown])),
            (rule, "", "GET", below("deploy_tokens"), NO, 404, NO),
            (rule, "mia", "POST", "/groups/acme/deploy_tokens", body.clone(), 403, NO),
            (rule, ROOT, "POST", "/groups/acme/deploy_tokens", body, 201, NO),
            (rule, ROOT, "GET", "/deploy_tokens", NO, 200, json!([{"id": 1}, {"id": 2}])),
            (rule, "mia", "DELETE", below("deploy_tokens/1"), NO, 204, NO),
            (
                rule,
                "mia",
                "DELETE",
                below("deploy_tokens/1"),
                NO,
                404,
                json!({"message": "404 Not found"}),
            ),
        ])
        .await;
    assert!(world.get(ROOT, "/groups/acme/deploy_tokens/2").await.body.get("token").is_none());
}

#[tokio::test]
async fn status_checks_and_single_objects_are_read_and_changed() {
    let world = at(OBSERVED_RELEASE).await;
    let (rule, settings) = (fact("status-checks"), fact("security-settings"));
    let body = json!({"name": "c", "external_url": "https://c.example"});
    let on = |on| json!({"secret_push_protection_enabled": on});
    world
        .check(vec![
            (rule, "mia", "POST", below("external_status_checks"), body.clone(), 201, json!({"id": 1, "protected_branches": [], "hmac": false})),
            (rule, "mia", "POST", below("external_status_checks"), body.clone(), 422, json!({"message": ["Name has already been taken", "External url has already been taken"]})),
            (rule, "mia", "PUT", below("external_status_checks/1"), json!({"name": "d"}), 200, json!({"name": "d"})),
            (rule, "mia", "PUT", below("external_status_checks/1"), json!({"protected_branch_ids": [99]}), 404, NO),
            (rule, "mia", "PUT", below("external_status_checks/1"), json!({"protected_branch_ids": []}), 200, NO),
            (rule, "dan", "POST", below("external_status_checks"), body, 401, NO),
            (rule, "mia", "DELETE", below("external_status_checks/1"), NO, 204, NO),
            (settings, "dan", "GET", below("security_settings"), NO, 200, on(false)),
            (settings, "dan", "PUT", below("security_settings"), on(true), 401, NO),
            (settings, "mia", "PUT", below("security_settings"), on(true), 200, on(true)),
            (settings, "mia", "GET", SHOP, NO, 200, on(true)),
            (fact("storage"), "mia", "GET", below("storage"), NO, 403, NO),
            (fact("storage"), ROOT, "GET", below("storage"), NO, 200, json!({"repository_storage": "default"})),
            (fact("licenses"), "gus", "GET", below("templates/licenses?per_page=1"), NO, 200, json!([{"key": "0bsd"}])),
            (fact("import-archive"), "mia", "POST", "/projects/import", json!({}), 400, json!({"error": "path is missing, file is missing"})),
            (fact("import-archive"), "mia", "POST", "/projects/remote-import", json!({"path": "made", "url": "https://a.example/x.tar.gz"}), 201, json!({"path": "made"})),
        ])
        .await;
    let job = world.call("mia", "POST", below("housekeeping"), &NO).await;
    assert_eq!(job.body.as_str().map(str::len), Some(24), "{}", fact("housekeeping-job"));
    let before = at(Release::new(16, 10)).await;
    assert_eq!(before.get("mia", below("security_settings")).await.status, 404, "{settings}");
}

#[tokio::test]
async fn rules_for_packages_and_repositories_have_a_level() {
    let (world, rule) = (at(OBSERVED_RELEASE).await, fact("protection-rules"));
    let (packages, one) = ("packages/protection/rules", "packages/protection/rules/1");
    let registry = "registry/protection/repository/rules";
    let new = json!({"package_name_pattern": "@a/*", "package_type": "npm"});
    let (push, delete) = ("minimum_access_level_for_push", "minimum_access_level_for_delete");
    let mut with = new.clone();
    with[push] = "maintainer".into();
    let taken = json!({"error": ["Package name pattern has already been taken"]});
    world
        .check(vec![
            (rule, "mia", "POST", below(packages), new, 422, NO),
            (
                rule,
                "mia",
                "POST",
                below(packages),
                with.clone(),
                201,
                json!({push: "maintainer", delete: null}),
            ),
            (rule, "mia", "POST", below(packages), with, 422, json!({ "message": taken })),
            (rule, "mia", "PATCH", below(one), json!({delete: "maintainer"}), 400, NO),
            (rule, "mia", "PATCH", below(one), json!({push: null}), 422, NO),
            (
                rule,
                "mia",
                "PATCH",
                below(one),
                json!({delete: "owner"}),
                200,
                json!({push: "maintainer", delete: "owner"}),
            ),
            (rule, "mia", "PUT", below(one), json!({push: "owner"}), 404, NO),
            (rule, "mia", "GET", below(one), NO, 404, NO),
            (
                rule,
                "mia",
                "GET",
                below("packages/protection/rules?per_page=0"),
                NO,
                200,
                json!([{"id": 1}]),
            ),
            (rule, "dan", "GET", below(packages), NO, 403, NO),
            (
                rule,
                "mia",
                "POST",
                below(registry),
                json!({"repository_path_pattern": "other/*", push: "owner"}),
                422,
                NO,
            ),
            (
                rule,
                "mia",
                "POST",
                below(registry),
                json!({"repository_path_pattern": "acme/shop/*", push: "owner"}),
                201,
                NO,
            ),
            (rule, "mia", "DELETE", below(one), NO, 204, NO),
        ])
        .await;
    for (release, path) in [(Release::new(17, 5), packages), (Release::new(17, 7), registry)] {
        assert_eq!(at(release).await.get("mia", below(path)).await.status, 404, "{rule}");
    }
}

#[tokio::test]
async fn job_tokens_of_listed_projects_and_groups_reach_a_project() {
    let (world, rule, list) =
        (at(OBSERVED_RELEASE).await, fact("job-token-scope"), fact("job-token-list"));
    let itself = fact("job-token-itself");
    let scope = below("job_token_scope");
    let id_of = async |path| world.get("mia", path).await.body["id"].clone();
    let (shop, acme) = (id_of(SHOP).await, id_of("/groups/acme").await);
    let by_id = |rest: &str| leak(format!("/projects/{shop}/job_token_scope/{rest}"));
    let (projects, groups) = (by_id("allowlist"), by_id("groups_allowlist"));
    let entry = |id: Value| json!({"target_project_id": id});
    let group = |id: Value| json!({"target_group_id": id});
    let says = |text: &str| json!({ "message": text });
    let invalid = json!({"error": "id is invalid"});
    let by_path = below("job_token_scope/allowlist");
    let enforced = "enforce_ci_inbound_job_token_scope_enabled";
    world
        .check(vec![
            (
                rule,
                "mia",
                "GET",
                scope,
                NO,
                200,
                json!({"inbound_enabled": true, "outbound_enabled": false}),
            ),
            (rule, "mia", "PATCH", scope, json!({}), 400, {
                json!({"error": "enabled is missing, enabled is empty"})
            }),
            (rule, "mia", "PATCH", scope, json!({"enabled": false}), 400, {
                says("Job token scope cannot be disabled for this project because it is enforced for the instance.")
            }),
            (rule, ROOT, "PUT", "/application/settings", json!({enforced: false}), 200, NO),
            (rule, "mia", "PATCH", scope, json!({"enabled": false}), 204, NO),
            (rule, "mia", "GET", scope, NO, 200, json!({"inbound_enabled": false})),
            (rule, "dan", "GET", scope, NO, 403, NO),
            (list, "mia", "POST", projects, entry(json!(2)), 201, {
                json!({"source_project_id": shop, "target_project_id": 2})
            }),
            (list, "mia", "POST", projects, entry(json!(2)), 400, {
                says("This project is already in the job token allowlist.")
            }),
            (list, "mia", "POST", projects, entry(json!(99)), 404, {
                says("404 target_project_id not found Not Found")
            }),
            (list, "mia", "POST", by_path, entry(json!(2)), 400, invalid),
            (list, "mia", "GET", by_path, NO, 200, json!([{"id": shop}, {"id": 2}])),
            (itself, "mia", "POST", projects, entry(shop.clone()), 201, NO),
            (itself, "mia", "DELETE", by_id(&format!("allowlist/{shop}")), NO, 400, {
                says("Source project cannot be removed from the job token scope")
            }),
            (list, "mia", "DELETE", by_id("allowlist/2"), NO, 204, NO),
            (list, "mia", "DELETE", by_id("allowlist/2"), NO, 400, {
                says("Target project is not in the job token scope")
            }),
            (itself, "mia", "GET", projects, NO, 200, json!([{"id": shop}])),
            (list, "mia", "POST", groups, group(acme.clone()), 201, {
                json!({"source_project_id": shop, "target_group_id": acme})
            }),
            (list, "mia", "POST", groups, group(acme.clone()), 400, {
                says("This group is already in the job token allowlist.")
            }),
            (list, "mia", "POST", groups, group(json!(99)), 404, {
                says("404 target_group_id not found Not Found")
            }),
            (list, "mia", "GET", groups, NO, 200, json!([{"id": acme, "name": "acme"}])),
            (list, "dan", "GET", groups, NO, 403, NO),
            (list, "mia", "DELETE", by_id(&format!("groups_allowlist/{acme}")), NO, 204, NO),
            (list, "mia", "DELETE", by_id(&format!("groups_allowlist/{acme}")), NO, 400, {
                says("Target group is not in the job token scope")
            }),
            (list, "mia", "GET", groups, NO, 200, json!([])),
        ])
        .await;
    let before = at(Release::new(17, 5)).await;
    let settings = before.get(ROOT, "/application/settings").await.body;
    assert_eq!(settings.get(enforced), None, "{rule}");
    let off = json!({"enabled": false});
    assert_eq!(before.call("mia", "PATCH", scope, &off).await.status, 204, "{rule}");
}

#[tokio::test]
async fn a_project_that_no_longer_exists_is_in_no_list() {
    // Nothing delays a deletion there.
    let (release, tier) = (Some(Release::new(17, 0)), Some(ServiceTier::Free));
    let config = SandboxConfig { release, tier, ..SandboxConfig::default() };
    let world = World::seeded(usual_seed(), config).await;
    let new = world.call("mia", "POST", "/projects", &json!({"path": "gone"})).await.body;
    let list = "/projects/1/job_token_scope/allowlist";
    let entry = json!({"target_project_id": new["id"]});
    assert_eq!(world.call("mia", "POST", list, &entry).await.status, 201);
    let project = leak(format!("/projects/{}", new["id"]));
    assert_eq!(world.call("mia", "DELETE", project, &NO).await.status, 202);
    assert_eq!(world.get("mia", project).await.status, 404);
    let reply = world.get("mia", list).await;
    assert_eq!(reply.body.as_array().map(Vec::len), Some(1), "{}", fact("job-token-list"));
}

#[tokio::test]
async fn only_personal_tokens_show_addresses() {
    let world = at(OBSERVED_RELEASE).await;
    let body = json!({"name": "a", "scopes": ["api"], "access_level": 30});
    let reply = world.call("mia", "POST", below("access_tokens"), &body).await;
    let bot = world.get("mia", leak(format!("{SHOP}/access_tokens/{}", reply.body["id"]))).await;
    assert!(bot.status == 200 && bot.body.get("last_used_ips").is_none(), "{}", bot.body);
    let own = world.get("mia", "/personal_access_tokens/self").await;
    assert!(own.body.get("last_used_ips").is_some(), "{}: {}", fact("bot-addresses"), own.body);
}

/// The service knows nothing about a described collection except its description.
#[tokio::test]
async fn a_described_collection_is_served() {
    let mut toys = Collection::new("/projects/{id}/play/toys");
    toys.answer_key = "code";
    toys.required_params = &["name"];
    toys.unique_fields = &["name"];
    toys.extra_fields = vec![("owner", json!("project"))].leak();
    toys.fields = vec![
        RowField {
            is_create_only: true,
            is_trimmed: true,
            ..RowField::new("name", FieldType::Text)
        },
        RowField {
            answer_name: Some("toy_size"),
            default: Box::leak(Box::new(json!(3))),
            ..RowField::new("size", FieldType::Integer)
        },
        RowField {
            is_reset_by_edit: true,
            default: &Value::Bool(false),
            ..RowField::new("loud", FieldType::Flag)
        },
        RowField { answer_name: Some(""), ..RowField::new("note", FieldType::Text) },
        RowField::new("colours", FieldType::Texts),
        RowField { since: Some(OBSERVED_RELEASE), ..RowField::new("late", FieldType::Text) },
        RowField { tier: ServiceTier::Ultimate, ..RowField::new("dear", FieldType::Text) },
    ]
    .leak();
    let mut named = Collection::new("/groups/{id}/gates");
    (named.answer_key, named.has_update, named.fields) =
        ("name", false, const { &[RowField::new("name", FieldType::Text)] });
    // The sandbox has this one itself.
    let known = Collection::new("/projects/{id}/milestones");
    let collections = vec![toys, named, known];
    let tier = Some(ServiceTier::Premium);
    let world = World::seeded(
        usual_seed(),
        SandboxConfig { tier, collections, ..SandboxConfig::default() },
    )
    .await;
    let toy = json!({"name": " ball ", "loud": true, "note": "x", "late": "x", "dear": "x"});
    let shown =
        json!({"code": "1", "name": "ball", "toy_size": 3, "loud": true, "owner": "project"});
    let reply = world.call(ROOT, "POST", below("play/toys"), &toy).await;
    assert_eq!(reply.status, 201, "{}", reply.body);
    for (name, value) in shown.as_object().expect("an object") {
        assert_eq!(reply.body[name], *value, "{name}");
    }
    assert!(["note", "late", "dear", "size"].iter().all(|name| reply.body.get(name).is_none()));
    let one = below("play/toys/1");
    for (who, method, path, body, status, expected) in [
        (ROOT, "POST", below("play/toys"), json!({}), 400, NO),
        (ROOT, "POST", below("play/toys"), json!({"name": "ball"}), 400, NO),
        (
            ROOT,
            "PUT",
            one,
            json!({"name": "x", "size": 4}),
            200,
            json!({"name": "ball", "toy_size": 4, "loud": false}),
        ),
        (
            ROOT,
            "PUT",
            one,
            json!({"colours": ["red"]}),
            200,
            json!({"toy_size": 4, "colours": ["red"]}),
        ),
        (ROOT, "GET", one, NO, 200, json!({"code": "1"})),
        (ROOT, "GET", below("play/toys"), NO, 200, json!([{"code": "1"}])),
        (ROOT, "PUT", one, json!({"size": "x"}), 400, NO),
        (ROOT, "PATCH", one, NO, 404, NO),
        ("stranger", "GET", one, NO, 404, NO),
        (ROOT, "DELETE", one, NO, 204, NO),
        (ROOT, "GET", one, NO, 404, NO),
        (ROOT, "POST", "/groups/acme/gates", json!({"name": "east"}), 201, json!({"name": "east"})),
        (ROOT, "GET", "/groups/acme/gates/east", NO, 200, json!({"name": "east"})),
        (ROOT, "PUT", "/groups/acme/gates/east", json!({"name": "x"}), 404, NO),
        (ROOT, "POST", below("milestones"), json!({"title": "1"}), 201, json!({"iid": 1})),
    ] {
        let got = world.call(who, method, path, &body).await;
        assert_eq!(got.status, status, "{method} {path} {body}\n{}", got.body);
        assert!(contains(&got.body, &expected), "{method} {path}: {}", got.body);
    }
    assert!(serves_path("/projects/:id/milestones") && !serves_path("/projects/:id/play/toys"));
    let others = World::usual().await;
    assert_eq!(others.get(ROOT, below("play/toys")).await.status, 404);
}

#[tokio::test]
async fn the_instance_enforces_the_scope_of_job_tokens_from_18_0_on() {
    let rule = fact("job-token-scope");
    let name = "enforce_ci_inbound_job_token_scope_enabled";
    for (release, preset, status) in [
        (Release::new(17, 5), None, 204),
        (Release::new(17, 6), Some(&json!(false)), 204),
        (Release::new(18, 0), Some(&json!(true)), 400),
    ] {
        let world = at(release).await;
        let settings = world.get(ROOT, "/application/settings").await.body;
        assert_eq!(settings.get(name), preset, "{rule} {release}");
        let off = json!({"enabled": false});
        let reply = world.call("mia", "PATCH", below("job_token_scope"), &off).await;
        assert_eq!(reply.status, status, "{rule} {release} {}", reply.body);
    }
}

#[tokio::test]
async fn environments_show_the_agent_of_their_cluster() {
    let (world, rule) = (at(OBSERVED_RELEASE).await, fact("environment-agent"));
    let agents = below("cluster_agents");
    let (list, one) = (below("environments"), below("environments/1"));
    let unknown = json!({"message": "400 Bad request - cluster agent doesn't exist or cannot be associated with this environment"});
    let lacks = |name: &str, what: &str| json!({"message": {name: [format!("cannot be set without a {what}")]}});
    let no_agent = lacks("kubernetes_namespace", "cluster agent");
    let no_namespace = lacks("flux_resource_path", "kubernetes namespace");
    let whole = json!({"name": "live", "cluster_agent_id": 1, "kubernetes_namespace": "shop", "flux_resource_path": "some/path"});
    let shown = json!({"cluster_agent": {"id": 1, "name": "a"}, "kubernetes_namespace": "shop", "flux_resource_path": "some/path"});
    let with = |more: &str, value: Value| {
        let mut body = json!({"name": "next"});
        body[more] = value;
        body
    };
    let none =
        json!({"cluster_agent_id": null, "kubernetes_namespace": null, "flux_resource_path": null});
    world
        .check(vec![
            (rule, "mia", "POST", agents, json!({"name": "a"}), 201, json!({"id": 1})),
            (rule, "mia", "POST", agents, json!({"name": "b"}), 201, json!({"id": 2})),
            (
                rule,
                "mia",
                "POST",
                "/projects/acme%2Fsite/cluster_agents",
                json!({"name": "c"}),
                201,
                json!({"id": 3}),
            ),
            (rule, "dan", "POST", list, with("cluster_agent_id", json!(3)), 400, unknown.clone()),
            (
                rule,
                "dan",
                "POST",
                list,
                with("kubernetes_namespace", json!("shop")),
                400,
                json!({"message": ["Kubernetes namespace cannot be set without a cluster agent"]}),
            ),
            (
                rule,
                "dan",
                "POST",
                list,
                with("flux_resource_path", json!("a/b")),
                400,
                json!({"message": ["Flux resource path cannot be set without a kubernetes namespace"]}),
            ),
            (rule, "dan", "POST", list, whole, 201, shown.clone()),
            (rule, "dan", "GET", list, NO, 200, json!([shown])),
            (rule, "dan", "PUT", one, json!({"cluster_agent_id": 9}), 400, unknown),
            (rule, "dan", "PUT", one, json!({"cluster_agent_id": null}), 400, no_agent),
            (rule, "dan", "PUT", one, json!({"kubernetes_namespace": null}), 400, no_namespace),
            (
                rule,
                "dan",
                "PUT",
                one,
                json!({"cluster_agent_id": 2}),
                200,
                json!({"cluster_agent": {"id": 2}, "kubernetes_namespace": "shop"}),
            ),
            (rule, "dan", "GET", one, NO, 200, json!({"cluster_agent": {"id": 2}})),
        ])
        .await;
    let names = ["cluster_agent", "kubernetes_namespace", "flux_resource_path"];
    let absent = |body: &Value| names.iter().all(|name| body.get(*name).is_none());
    let answer = world.get("gus", one).await.body;
    assert!(absent(&answer), "{rule} {answer}");
    let cleared = world.call("dan", "PUT", one, &none).await;
    assert!(cleared.status == 200 && absent(&cleared.body), "{rule} {}", cleared.body);
    // An agent that was removed takes nothing with it, and blocks no edit.
    world
        .call("dan", "PUT", one, &json!({"cluster_agent_id": 2, "kubernetes_namespace": "x"}))
        .await;
    world.call("mia", "DELETE", below("cluster_agents/2"), &NO).await;
    let edited = world.call("dan", "PUT", one, &json!({"tier": "other"})).await;
    assert!(edited.status == 200 && absent(&edited.body), "{rule} {}", edited.body);
    let before = at(Release::new(17, 4)).await;
    let reply = before.call("dan", "POST", list, &with("cluster_agent_id", json!(9))).await;
    assert_eq!(reply.status, 201, "{rule} {}", reply.body);
}

#[tokio::test]
async fn only_jobs_create_resource_groups() {
    let rule = fact("resource-groups");
    let (list, one) = (below("resource_groups"), below("resource_groups/staging%2Feu"));
    let mut seed = usual_seed();
    shop_of(&mut seed)["resource_groups"] = json!(["production", "staging/eu"]);
    let world = World::from_seed(seed.clone()).await;
    let shown = |key: &str, mode: &str| json!({"key": key, "process_mode": mode});
    let mode = |mode: &str| json!({"process_mode": mode});
    let both = json!([shown("production", "unordered"), shown("staging/eu", "unordered")]);
    let unknown = json!({"message": "404 Not found"});
    let other = below("resource_groups/other");
    let no_word = json!({"error": "process_mode does not have a valid value"});
    let edited = json!({"id": 2, "key": "staging/eu", "process_mode": "newest_first"});
    let renames = json!({"process_mode": "newest_first", "key": "other"});
    world
        .check(vec![
            (rule, "dan", "GET", list, NO, 200, both),
            (rule, "gus", "GET", list, NO, 403, NO),
            (rule, "gus", "PUT", one, mode("newest_first"), 403, NO),
            (rule, "dan", "PUT", one, renames, 200, edited.clone()),
            (rule, "dan", "PUT", one, mode("any"), 400, no_word),
            (rule, "dan", "GET", one, NO, 200, edited),
            (rule, "dan", "GET", other, NO, 404, unknown.clone()),
            (rule, "dan", "PUT", other, mode("newest_first"), 404, unknown),
            (rule, "mia", "POST", list, shown("other", "unordered"), 404, NO),
            (rule, "mia", "DELETE", one, NO, 404, NO),
        ])
        .await;
    shop_of(&mut seed)["settings"]["resource_group_default_process_mode"] = "oldest_first".into();
    for (release, expected) in
        [(Release::new(18, 3), "unordered"), (Release::new(18, 4), "oldest_first")]
    {
        let world = World::seeded(
            seed.clone(),
            SandboxConfig { release: Some(release), ..SandboxConfig::default() },
        )
        .await;
        let answer = world.get("dan", one).await.body;
        assert_eq!(answer["process_mode"], expected, "{rule} {release}");
    }
}

fn shop_of(seed: &mut Value) -> &mut Value {
    let projects = seed["projects"].as_array_mut().expect("projects");
    projects.iter_mut().find(|project| project["path"] == "acme/shop").expect("shop")
}

#[tokio::test]
async fn ldap_links_are_addressed_by_cn_or_filter() {
    let (world, rule) = (at(OBSERVED_RELEASE).await, fact("ldap-links"));
    let links = "/groups/acme/ldap_group_links";
    let link = |level: u8| json!({"provider": "ldapmain", "cn": "ops", "group_access": level});
    let shown = json!({"cn": "ops", "filter": null, "provider": "ldapmain", "group_access": 30});
    let none = json!({"message": "No linked LDAP groups found"});
    let both = json!({"provider": "ldapmain", "cn": "a", "filter": "(b)", "group_access": 30});
    let taken = json!({"message": "Cn has already been taken"});
    let gone = json!({"message": "Linked LDAP group not found"});
    let one = "/groups/acme/ldap_group_links?provider=ldapmain&cn=ops";
    let older = fact("ldap-links-older");
    let below = |rest: &str| leak(format!("{links}/{rest}"));
    world
        .check(vec![
            (rule, "olive", "GET", links, NO, 404, none),
            (rule, "olive", "POST", links, both, 400, NO),
            (rule, "olive", "POST", links, json!({"provider": "x", "group_access": 30}), 400, NO),
            (rule, "olive", "POST", links, link(7), 400, NO),
            (rule, "olive", "POST", links, link(30), 201, shown.clone()),
            (rule, "olive", "POST", links, link(20), 409, taken),
            (rule, "olive", "GET", links, NO, 200, json!([shown])),
            (rule, "mia", "GET", links, NO, 403, NO),
            (rule, "olive", "DELETE", one, NO, 204, NO),
            (rule, "olive", "DELETE", one, NO, 404, gone.clone()),
            (older, "olive", "POST", links, link(30), 201, NO),
            (older, "mia", "DELETE", below("ops"), NO, 403, NO),
            (older, "olive", "DELETE", below("other"), NO, 404, gone.clone()),
            (older, "olive", "DELETE", below("ops"), NO, 204, NO),
            (older, "olive", "POST", links, link(30), 201, NO),
            (older, "olive", "DELETE", below("other/ops"), NO, 404, gone),
            (older, "olive", "DELETE", below("ldapmain/ops"), NO, 204, NO),
        ])
        .await;
}

#[tokio::test]
async fn runners_are_added_to_projects_and_stay_with_their_owner() {
    let mut seed = usual_seed();
    seed["runners"] = json!([
        {"description": "own", "projects": ["acme/shop"]},
        {"description": "all"},
        {"description": "of the group", "group": "acme"},
        {"description": "of another", "projects": ["mia/own"]},
        {"description": "locked", "projects": ["mia/own"], "locked": true},
    ]);
    seed["projects"].as_array_mut().expect("projects").push(json!({"path": "mia/own"}));
    let (world, rule) = (World::from_seed(seed).await, fact("runners"));
    let (list, add) = (below("runners"), |id: u8| json!({"runner_id": id}));
    let one = |id: u8| below(&format!("runners/{id}"));
    let own = json!({"id": 1, "description": "own", "runner_type": "project_type"});
    let says = |text: &str| json!({"message": text});
    let taken = "Validation failed: Runner projects runner has already been taken - runner_error";
    let kept = "You cannot unassign a runner from the owner project. Delete the runner instead";
    world
        .check(vec![
            (rule, "mia", "GET", list, NO, 200, json!([{"id": 1}, {"id": 2}, {"id": 3}])),
            (rule, "mia", "GET", below("runners?type=project_type"), NO, 200, json!([own])),
            (rule, "dan", "GET", list, NO, 403, NO),
            (
                rule,
                "mia",
                "GET",
                "/runners?type=project_type",
                NO,
                200,
                json!([{"id": 1}, {"id": 4}, {"id": 5}]),
            ),
            (rule, "mia", "GET", "/runners/all", NO, 403, NO),
            (rule, "mia", "POST", list, add(1), 400, says(taken)),
            (rule, "mia", "POST", list, add(2), 500, NO),
            (rule, "mia", "POST", list, add(3), 403, says("Runner is a group runner")),
            (rule, "mia", "POST", list, add(5), 403, says("Runner is locked")),
            (rule, "mia", "POST", list, add(9), 404, NO),
            (rule, "mia", "POST", list, add(4), 201, json!({"id": 4})),
            (rule, "mia", "DELETE", one(4), NO, 204, NO),
            (rule, "mia", "DELETE", one(4), NO, 404, says("404 Runner Not Found")),
            (rule, "mia", "DELETE", one(1), NO, 403, says(kept)),
        ])
        .await;
}
