//! Projects: creating, reading, editing and deleting them, and who may.

use serde_json::{Value, json};

use super::client::{ROOT, World, read_reply, usual_seed};
use super::facts::fact;
use undrift_sandbox::{Clock, SandboxConfig, ServiceTier};

const NO: Value = Value::Null;
const SHOP: &str = "/projects/acme%2Fshop";

/// The fields of the full object (reference 1, 2.8), including those that must be requested.
pub(crate) const FULL_FIELDS: &str = "id name name_with_namespace path path_with_namespace description created_at last_activity_at creator_id
    default_branch ssh_url_to_repo http_url_to_repo web_url readme_url avatar_url license_url
    container_registry_image_prefix topics tag_list namespace _links forks_count star_count open_issues_count
    issues_enabled merge_requests_enabled wiki_enabled jobs_enabled snippets_enabled container_registry_enabled
    packages_enabled service_desk_enabled shared_runners_enabled lfs_enabled public_jobs request_access_enabled
    can_create_merge_request_in requirements_enabled security_and_compliance_enabled auto_devops_enabled
    autoclose_referenced_issues keep_latest_artifact empty_repo archived printing_merge_request_link_enabled
    enforce_auth_checks_on_uploads issues_access_level repository_access_level merge_requests_access_level
    forking_access_level wiki_access_level builds_access_level snippets_access_level pages_access_level
    analytics_access_level container_registry_access_level security_and_compliance_access_level
    requirements_access_level merge_method squash_option only_allow_merge_if_pipeline_succeeds
    only_allow_merge_if_all_discussions_are_resolved remove_source_branch_after_merge
    resolve_outdated_diff_discussions allow_merge_on_skipped_pipeline only_allow_merge_if_all_status_checks_passed
    suggestion_commit_message merge_commit_template squash_commit_template issue_branch_template
    approvals_before_merge ci_default_git_depth ci_forward_deployment_enabled
    ci_allow_fork_pipelines_to_run_in_parent_project ci_job_token_scope_enabled ci_separated_caches build_timeout
    auto_cancel_pending_pipelines ci_config_path restrict_user_defined_variables runner_token_expiration_interval
    runners_token auto_devops_deploy_strategy container_expiration_policy visibility import_status import_error
    permissions license shared_with_groups statistics mirror repository_storage import_url
    external_authorization_classification_label compliance_frameworks service_desk_address issues_template
    merge_requests_template marked_for_deletion_at marked_for_deletion_on";

const PATH_ERROR: &str = "can only include non-accented letters, digits, '_', '-' and '.'. It must not start with \
                      '-', '_', or '.', nor end with '-', '_', '.', '.git', or '.atom'.";

async fn group_id(world: &World, path: &str) -> i64 {
    world.get(ROOT, &format!("/groups/{path}")).await.body["id"].as_i64().expect("an id")
}

#[tokio::test]
async fn a_missing_name_or_path_is_derived_from_the_other() {
    let world = World::usual().await;
    let group = group_id(&world, "acme").await;
    let taken = json!({"message": {"name": ["has already been taken"], "path": ["has already been taken"],
                                   "project_namespace.name": ["has already been taken"]}});
    world
        .check(vec![
            (
                fact("project-names"),
                "dan",
                "POST",
                "/projects",
                json!({"name": "My App", "namespace_id": group}),
                201,
                json!({"name": "My App", "path": "my-app", "path_with_namespace": "acme/my-app", "visibility": "private",
                       "name_with_namespace": "acme / My App", "empty_repo": true, "default_branch": "main"}),
            ),
            (
                fact("project-names"),
                "dan",
                "POST",
                "/projects",
                json!({"path": "other"}),
                201,
                json!({"name": "other", "path_with_namespace": "dan/other", "owner": {"name": "dan"}}),
            ),
            (
                fact("permissions"),
                "dan",
                "GET",
                "/projects/dan%2Fother",
                NO,
                200,
                json!({"permissions": {"project_access": {"access_level": 50}, "group_access": null}}),
            ),
            (fact("project-taken"), "dan", "POST", "/projects", json!({"path": "other"}), 400, taken),
            (
                fact("project-name-or-path"),
                "dan",
                "POST",
                "/projects",
                json!({"description": "x"}),
                400,
                json!({"error": "name, path are missing, at least one parameter must be provided"}),
            ),
            (
                fact("project-path-rules"),
                "dan",
                "POST",
                "/projects",
                json!({"path": "x--y"}),
                400,
                json!({"message": {"path": [PATH_ERROR], "project_namespace.path": [PATH_ERROR]}}),
            ),
            (
                fact("project-path-rules"),
                "dan",
                "POST",
                "/projects",
                json!({"path": "badges"}),
                400,
                json!({"message": {"path": ["badges is a reserved name"], "project_namespace.path": ["badges is a reserved name"]}}),
            ),
            (fact("project-path-rules"), "dan", "POST", "/projects", json!({"path": "x..y"}), 400, NO),
            (fact("project-namespace"), "gus", "POST", "/projects", json!({"path": "x", "namespace_id": group}), 400, NO),
            (fact("authentication"), "", "POST", "/projects", json!({"path": "x"}), 401, json!({"message": "401 Unauthorized"})),
            (
                fact("project-readme"),
                "dan",
                "POST",
                "/projects",
                json!({"path": "readme", "initialize_with_readme": "true", "default_branch": "trunk"}),
                201,
                json!({"empty_repo": false, "default_branch": "trunk"}),
            ),
            (
                fact("project-create-more"),
                "dan",
                "POST",
                "/projects",
                json!({
                    "path": "more", "ci_default_git_depth": 5, "enforce_auth_checks_on_uploads": false,
                    "keep_latest_artifact": false, "merge_commit_template": "a", "squash_commit_template": "b",
                    "service_desk_enabled": true, "suggestion_commit_message": "c",
                }),
                201,
                json!({
                    "ci_default_git_depth": 5, "enforce_auth_checks_on_uploads": false, "keep_latest_artifact": false,
                    "merge_commit_template": "a", "squash_commit_template": "b", "service_desk_enabled": true,
                    "suggestion_commit_message": "c",
                }),
            ),
            (
                fact("project-storage"),
                ROOT,
                "POST",
                "/projects",
                json!({"path": "stored", "repository_storage": "elsewhere"}),
                400,
                json!({"message": {"repository_storage": ["is invalid"]}}),
            ),
            (
                fact("project-storage"),
                ROOT,
                "POST",
                "/projects",
                json!({"path": "stored", "repository_storage": null}),
                400,
                json!({"message": {"repository_storage": ["can't be blank", "is not included in the list"]}}),
            ),
            (
                fact("create-null"),
                "dan",
                "POST",
                "/projects",
                json!({"path": "stored", "auto_cancel_pending_pipelines": null}),
                400,
                NO,
            ),
            (
                fact("import-unreachable"),
                "dan",
                "POST",
                "/projects",
                json!({"path": "stored", "import_url": "nope"}),
                422,
                json!({"message": "Unable to access repository with the URL and credentials provided"}),
            ),
            (
                fact("fork-self-target"),
                "dan",
                "POST",
                "/projects",
                json!({"path": "stored", "mr_default_target_self": true}),
                400,
                NO,
            ),
            (
                fact("project-storage"),
                ROOT,
                "PUT",
                "/projects/dan%2Freadme",
                json!({"repository_storage": "elsewhere"}),
                400,
                json!({"message": {"repository_storage_moves": ["is invalid"]}}),
            ),
            (
                fact("project-default-branch"),
                "dan",
                "PUT",
                "/projects/dan%2Freadme",
                json!({"default_branch": null, "description": "x"}),
                200,
                json!({"default_branch": "trunk"}),
            ),
            (
                fact("project-default-branch"),
                "dan",
                "PUT",
                "/projects/dan%2Freadme",
                json!({"default_branch": ""}),
                200,
                json!({"default_branch": "trunk"}),
            ),
            (
                fact("project-readme-import"),
                "dan",
                "POST",
                "/projects",
                json!({"path": "both", "initialize_with_readme": true, "import_url": "https://x.example/a.git"}),
                400,
                json!({"message": {"base": ["not a git repository"]}}),
            ),
            (
                fact("project-import-url"),
                "dan",
                "POST",
                "/projects",
                json!({"path": "git", "import_url": "https://u:p@x.example/a"}),
                201,
                json!({"empty_repo": false, "import_status": "scheduled"}),
            ),
            (
                fact("import-url-read"),
                "dan",
                "POST",
                "/projects",
                json!({"path": "git2", "import_url": "https://git:p@x.example/a"}),
                201,
                json!({"import_url": "https://x.example/a"}),
            ),
            (
                fact("project-template"),
                "dan",
                "POST",
                "/projects",
                json!({"path": "t", "template_name": "nothing"}),
                400,
                json!({"message": {"template_name": ["'nothing' is unknown or invalid"]}}),
            ),
            (
                fact("create-for-user"),
                ROOT,
                "POST",
                "/projects/user/4",
                json!({"name": "gift", "merge_commit_template": "x"}),
                201,
                json!({"path_with_namespace": "dan/gift", "merge_commit_template": "x"}),
            ),
            (fact("create-for-user-right"), "mia", "POST", "/projects/user/4", json!({"name": "gift"}), 403, NO),
            (fact("create-for-user"), ROOT, "POST", "/projects/user/4", json!({"path": "gift2"}), 400, json!({"error": "name is missing"})),
        ])
        .await;
}

#[tokio::test]
async fn a_custom_template_is_a_project_or_any_name() {
    let rule = fact("project-custom-template");
    let unknown = |name: &str| json!({"message": {"template_name": [format!("'{name}' is unknown or invalid")]}});
    let invalid = |name: &str| json!({"error": format!("{name} is invalid")});
    let no_repository = json!({"message": {"base": ["not a git repository"]}});
    let premium = [
        (
            json!({"template_project_id": 2, "template_name": "preferred less"}),
            201,
            json!({"empty_repo": false, "default_branch": "main"}),
        ),
        (json!({"template_name": "ours"}), 201, json!({"empty_repo": false})),
        (
            json!({}),
            400,
            json!({"message": {"use_custom_template": ["must be used with template_name or template_project_id"]}}),
        ),
        (json!({"template_project_id": 1}), 400, unknown("1")),
        (json!({"template_project_id": 99}), 400, unknown("99")),
        (json!({"template_project_id": 2, "initialize_with_readme": true}), 400, no_repository),
        (json!({"template_project_id": "x"}), 400, invalid("template_project_id")),
        (
            json!({"group_with_project_templates_id": "x"}),
            400,
            invalid("group_with_project_templates_id"),
        ),
    ];
    let free = [
        (json!({"template_project_id": 2}), 201, json!({"empty_repo": true})),
        (json!({"template_name": "ours"}), 400, unknown("ours")),
    ];
    for (tier, rows) in
        [(ServiceTier::Premium, premium.to_vec()), (ServiceTier::Free, free.to_vec())]
    {
        let world = World::seeded(
            usual_seed(),
            SandboxConfig { tier: Some(tier), ..SandboxConfig::default() },
        )
        .await;
        let rows = rows.into_iter().enumerate().map(|(number, (mut body, status, expected))| {
            body["path"] = format!("t{number}").into();
            body["use_custom_template"] = true.into();
            // Project 1 is private: this caller does not see it.
            (rule, "stranger", "POST", "/projects", body, status, expected)
        });
        world.check(rows.collect()).await;
    }
}

#[tokio::test]
async fn roles_decide_who_sees_and_changes_a_project() {
    let world = World::usual().await;
    let unseen = json!({"message": "404 Project Not Found"});
    world
        .check(vec![
            (fact("unseen"), "stranger", "GET", SHOP, NO, 404, unseen.clone()),
            (
                fact("unseen"),
                "stranger",
                "PUT",
                SHOP,
                json!({"description": "x"}),
                404,
                unseen.clone(),
            ),
            (fact("unseen"), "", "GET", SHOP, NO, 404, unseen.clone()),
            (fact("path-case"), "mia", "GET", "/projects/ACME%2fShop", NO, 200, json!({"id": 1})),
            (fact("unseen"), "mia", "GET", "/projects/999", NO, 404, unseen.clone()),
            (
                fact("unknown-route"),
                "mia",
                "GET",
                "/projects/acme/shop",
                NO,
                404,
                json!({"error": "404 Not Found"}),
            ),
            (
                fact("unknown-method"),
                "mia",
                "PATCH",
                SHOP,
                json!({"name": "x"}),
                404,
                json!({"error": "404 Not Found"}),
            ),
            (fact("unknown-method"), "mia", "OPTIONS", SHOP, NO, 204, NO),
            (fact("route-format"), "mia", "GET", "/projects/acme%2Fshop/labels.json", NO, 200, NO),
            (fact("route-format"), "mia", "GET", "/projects/1.json", NO, 404, NO),
            (
                fact("authentication"),
                "nobody",
                "GET",
                SHOP,
                NO,
                401,
                json!({"message": "401 Unauthorized"}),
            ),
            (fact("blocked-user"), "blocked", "GET", SHOP, NO, 403, NO),
            (
                fact("project-public"),
                "",
                "GET",
                "/projects/acme%2Fsite",
                NO,
                200,
                json!({"name": "site", "visibility": "public", "merge_method": "merge"}),
            ),
            (
                fact("role"),
                "dan",
                "PUT",
                SHOP,
                json!({"description": "x"}),
                403,
                json!({"message": "403 Forbidden"}),
            ),
            (
                fact("project-edit"),
                "mia",
                "PUT",
                SHOP,
                json!({"description": "x"}),
                200,
                json!({"description": "x"}),
            ),
            (
                fact("visibility-right"),
                "mia",
                "PUT",
                SHOP,
                json!({"visibility": "internal"}),
                403,
                NO,
            ),
            (
                fact("visibility-right"),
                "olive",
                "PUT",
                SHOP,
                json!({"visibility": "internal"}),
                200,
                json!({"visibility": "internal"}),
            ),
            (
                fact("permissions"),
                "stranger",
                "GET",
                SHOP,
                NO,
                200,
                json!({"permissions": {"project_access": null}}),
            ),
            (fact("project-edit-nothing"), "mia", "PUT", SHOP, json!({"unknown": 1}), 400, NO),
            (fact("role"), "mia", "DELETE", SHOP, NO, 403, NO),
            (
                fact("project-delete"),
                "olive",
                "DELETE",
                SHOP,
                NO,
                202,
                json!({"message": "202 Accepted"}),
            ),
            (fact("project-delete"), "olive", "GET", SHOP, NO, 404, unseen),
        ])
        .await;
}

#[tokio::test]
async fn permissions_are_those_of_a_caller() {
    let world = World::usual().await;
    let anonymous = world.get("", "/projects/acme%2Fsite").await.body;
    assert_eq!(anonymous.get("permissions"), None, "{}", fact("permissions-anonymous"));
    let none = json!({"permissions": {"project_access": null, "group_access": null}});
    world
        .check(vec![(
            fact("permissions"),
            "stranger",
            "GET",
            "/projects/acme%2Fsite",
            NO,
            200,
            none,
        )])
        .await;
}

#[tokio::test]
async fn nothing_is_more_visible_than_its_group() {
    let world =
        World::from_seed(json!({"groups": [{"path": "inner"}], "projects": [{"path": "inner/a"}]}))
            .await;
    world
        .check(vec![(
            fact("visibility-group"),
            ROOT,
            "PUT",
            "/projects/inner%2Fa",
            json!({"visibility": "public"}),
            400,
            json!({"message": {"visibility_level": ["public is not allowed in a private group."]}}),
        )])
        .await;
}

#[tokio::test]
async fn parameters_are_accepted_in_every_encoding() {
    let world = World::usual().await;
    let send = async |request: reqwest::RequestBuilder| {
        read_reply(request.send().await.expect("an answer")).await
    };
    let form = world
        .request("mia", "PUT", SHOP)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(
            "topics[]=b&topics[]=a&lfs_enabled=0&container_expiration_policy_attributes[keep_n]=5",
        );
    let answer = send(form).await;
    assert_eq!(answer.status, 200, "{}\n{}", fact("parameter-forms"), answer.body);
    assert_eq!(answer.body["topics"], json!(["a", "b"]), "{}", fact("topics-sorted"));
    assert_eq!(answer.body["tag_list"], json!(["a", "b"]));
    assert_eq!(answer.body["lfs_enabled"], json!(false));
    assert_eq!(answer.body["container_expiration_policy"]["keep_n"], json!(5));

    let query =
        send(world.request("mia", "PUT", &format!("{SHOP}?topics=x,y&description=d"))).await;
    assert_eq!(query.body["topics"], json!(["x", "y"]), "{}", fact("parameter-forms"));

    let part = reqwest::multipart::Part::bytes(b"not really".to_vec()).file_name("../logo.png");
    let upload = reqwest::multipart::Form::new().part("avatar", part);
    let answer = send(world.request("mia", "PUT", SHOP).multipart(upload)).await;
    let address = format!("{}/uploads/-/system/project/avatar/1/logo.png", world.running.url());
    assert_eq!(answer.body["avatar_url"], json!(address), "{}", fact("avatar"));
    assert_eq!(
        answer.body["path"],
        "shop",
        "{}: clients replace what they hold with the answer",
        fact("avatar")
    );
    let answer = world.call("mia", "PUT", SHOP, &json!({"avatar": ""})).await;
    assert_eq!(answer.body["avatar_url"], Value::Null, "{}", fact("avatar"));

    let other = world.request("mia", "PUT", SHOP).header("content-type", "text/plain").body("x");
    assert_eq!(send(other).await.status, 415, "{}", fact("parameter-media-type"));
    let broken = world.request("mia", "PUT", SHOP).header("content-type", "application/json");
    let broken = send(broken.body("{\"name\": ")).await;
    let expected = json!({"error": "Invalid JSON format"});
    assert_eq!((broken.status, broken.body), (400, expected), "{}", fact("parameter-json"));
    let bearer = world.request("", "GET", SHOP).header("authorization", "Bearer mia");
    assert_eq!(send(bearer).await.status, 200, "{}", fact("token-spellings"));
    let blank = |path| send(world.request("", "GET", path).header("private-token", ""));
    assert_eq!(
        blank("/projects").await.body,
        world.get("", "/projects").await.body,
        "{}",
        fact("token-blank")
    );
    assert_eq!(blank("/user").await.status, 401, "{}", fact("token-blank"));
    let sudo = send(world.request(ROOT, "GET", "/user?sudo=dan")).await;
    assert_eq!(sudo.body["username"], "dan", "{}", fact("sudo"));
    assert_eq!(
        send(world.request("mia", "GET", "/user?sudo=dan")).await.status,
        403,
        "{}",
        fact("sudo")
    );
}

#[tokio::test]
async fn the_free_tier_ignores_licensed_attributes() {
    let world = World::seeded(
        usual_seed(),
        SandboxConfig { tier: Some(ServiceTier::Free), ..SandboxConfig::default() },
    )
    .await;
    world
        .check(vec![(
            fact("tier-attributes"),
            "mia",
            "PUT",
            SHOP,
            json!({"mirror": true, "description": "x"}),
            200,
            json!({"description": "x"}),
        )])
        .await;
    let project = world.get("mia", SHOP).await.body;
    for name in [
        "mirror",
        "approvals_before_merge",
        "marked_for_deletion_at",
        "marked_for_deletion_on",
        "only_allow_merge_if_all_status_checks_passed",
    ] {
        assert!(project.get(name).is_none(), "{}: {name}", fact("tier-attributes"));
    }
    let list = world
        .get("mia", "/projects?repository_checksum_failed=true&wiki_checksum_failed=true")
        .await
        .body;
    assert_ne!(list, json!([]), "{}: filters above the tier too", fact("tier-attributes"));
    let rule = world.get("mia", &format!("{SHOP}/push_rule")).await;
    assert_eq!(
        (rule.status, rule.body),
        (404, json!({"message": "404 Not Found"})),
        "{}",
        fact("push-rule-tier")
    );
    let restored = world.call("olive", "POST", &format!("{SHOP}/restore"), &NO).await;
    assert_eq!(
        (restored.status, restored.body),
        (404, json!({"message": "404 Not Found"})),
        "{}",
        fact("hidden")
    );
}

#[tokio::test]
async fn the_full_object_has_every_field_of_the_reference() {
    let world = World::usual().await;
    let project = world.get(ROOT, &format!("{SHOP}?statistics=true&license=true")).await.body;
    for field in FULL_FIELDS.split_whitespace() {
        assert!(project.get(field).is_some(), "{}: {field}", fact("project-fields"));
    }
    for field in ["mr_default_target_self", "forked_from_project", "public_builds"] {
        assert!(project.get(field).is_none(), "{}: {field}", fact("project-fields"));
    }
}

/// The keys of an answer depend on the caller and on the operation.
#[tokio::test]
async fn keys_of_a_project_depend_on_the_caller() {
    let world = World::usual().await;
    let project = async |who, path: &str| world.get(who, path).await.body;
    let has = |body: &Value, name: &str| body.get(name).is_some();
    for (who, maintains) in [("olive", true), ("mia", true), ("dan", false), ("gus", false)] {
        let body = project(who, SHOP).await;
        for key in
            ["build_timeout", "auto_devops_enabled", "runners_token", "import_url", "import_error"]
        {
            assert_eq!(has(&body, key), maintains, "{}: {who} {key}", fact("project-ci-settings"));
        }
        for key in ["default_branch", "forks_count", "ci_config_path", "merge_requests_template"] {
            assert_eq!(
                has(&body, key),
                who != "gus",
                "{}: {who} {key}",
                fact("project-code-fields")
            );
        }
        assert!(!has(&body, "repository_storage"), "{}: {who}", fact("project-storage-read"));
        assert!(!has(&body, "mirror_trigger_builds"), "{}: {who}", fact("project-mirror-fields"));
    }
    assert!(
        has(&project("gus", SHOP).await, "keep_latest_artifact"),
        "{}",
        fact("project-ci-settings")
    );
    let body = project(ROOT, SHOP).await;
    assert!(has(&body, "repository_storage"), "{}", fact("project-storage-read"));
    let open = project("stranger", "/projects/acme%2Fsite").await;
    assert_eq!(
        open["security_and_compliance_enabled"],
        false,
        "{}",
        fact("project-feature-access")
    );
    assert!(has(&open, "default_branch"), "{}", fact("project-code-fields"));

    // Answers to writes have no permissions, and lists no import_error.
    let edited = world
        .call(
            "olive",
            "PUT",
            SHOP,
            &json!({"issues_enabled": false, "merge_requests_enabled": false}),
        )
        .await
        .body;
    assert!(
        !has(&edited, "permissions") && has(&edited, "import_error"),
        "{}",
        fact("permissions-read")
    );
    for key in
        ["issues_template", "open_issues_count", "merge_requests_template", "service_desk_address"]
    {
        assert!(!has(&edited, key), "{}: {key}", fact("project-feature-fields"));
    }
    assert_eq!(edited["_links"].get("issues"), None, "{}", fact("project-feature-fields"));
    let list = project("olive", "/groups/acme/projects").await;
    assert!(!has(&list[0], "permissions"), "{}", fact("permissions-read"));
    let list = project("olive", "/projects").await;
    assert!(
        has(&list[0], "permissions") && !has(&list[0], "import_error"),
        "{}",
        fact("permissions-read")
    );
}

#[tokio::test]
async fn null_in_an_edit_depends_on_the_attribute() {
    let world = World::usual().await;
    let unsaved = fact("edit-unsaved");
    let edit = |rule, body: Value, shown: Value| (rule, "olive", "PUT", SHOP, body, 200, shown);
    let rows = vec![
        edit(unsaved, json!({"description": "kept"}), json!({"description": "kept"})),
        edit(fact("edit-null"), json!({"squash_option": null}), json!({"squash_option": null})),
        edit(
            fact("edit-null"),
            json!({"ci_default_git_depth": ""}),
            json!({"ci_default_git_depth": null}),
        ),
        edit(fact("edit-null"), json!({"autoclose_referenced_issues": false}), NO),
        edit(
            fact("edit-null"),
            json!({"autoclose_referenced_issues": null}),
            json!({"autoclose_referenced_issues": true}),
        ),
        edit(
            fact("edit-null"),
            json!({"packages_enabled": ""}),
            json!({"packages_enabled": false}),
        ),
        edit(fact("edit-null"), json!({"merge_method": "ff"}), NO),
        edit(fact("edit-null"), json!({"merge_method": null}), json!({"merge_method": "ff"})),
        edit(
            fact("edit-visibility"),
            json!({"visibility": null}),
            json!({"visibility": "private"}),
        ),
        (fact("edit-visibility"), "mia", "PUT", SHOP, json!({"visibility": "private"}), 403, NO),
        (
            fact("edit-null"),
            "olive",
            "PUT",
            SHOP,
            json!({"approvals_before_merge": null}),
            400,
            json!({"error": "approvals_before_merge is empty"}),
        ),
    ];
    world.check(rows).await;
    for body in [
        json!({"build_timeout": null}),
        json!({"keep_latest_artifact": ""}),
        json!({"auto_cancel_pending_pipelines": null}),
        json!({"public_jobs": null, "public_builds": null}),
        json!({"topics": ["\u{fc}"]}),
        json!({"topics": ["x".repeat(256)]}),
    ] {
        let mut both = body.clone();
        both["description"] = "lost".into();
        let reply = world.call("olive", "PUT", SHOP, &both).await;
        assert_eq!((reply.status, reply.body), (200, NO), "{unsaved}: {body}");
        assert_eq!(world.get("olive", SHOP).await.body["description"], "kept", "{unsaved}: {body}");
    }
}

#[tokio::test]
async fn edits_are_refused_by_the_model() {
    let world = World::usual().await;
    let path = json!({"message": {"ci_config_path": ["cannot include leading slash or directory traversal."]}});
    let higher = json!(["cannot have higher visibility level than repository access level"]);
    let policy = |body: Value| json!({"container_expiration_policy_attributes": body});
    let refused = |key: &str, texts: Value| json!({"message": {key: texts}});
    let edit = |rule, body: Value, shown: Value| (rule, "olive", "PUT", SHOP, body, 400, shown);
    let all = json!({"repository_access_level": "private", "merge_requests_access_level": "private", "builds_access_level": "private"});
    let blank = refused("container_expiration_policy.name_regex", json!(["can't be blank"]));
    let rows = vec![
        edit(fact("ci-config-path"), json!({"ci_config_path": "/x.yml"}), path.clone()),
        edit(fact("ci-config-path"), json!({"ci_config_path": "a/../b"}), path),
        edit(
            fact("edit-words"),
            json!({"merge_commit_template": "x".repeat(501)}),
            refused(
                "project_setting.merge_commit_template",
                json!(["is too long (maximum is 500 characters)"]),
            ),
        ),
        edit(
            fact("edit-words"),
            json!({"ci_default_git_depth": 1001}),
            refused(
                "ci_cd_settings.default_git_depth",
                json!(["must be less than or equal to 1000"]),
            ),
        ),
        edit(
            fact("levels-repository"),
            json!({"repository_access_level": "private"}),
            json!({"message": {"project_feature.merge_requests_access_level": higher, "project_feature.builds_access_level": higher}}),
        ),
        (fact("levels-repository"), "olive", "PUT", SHOP, all.clone(), 200, all),
        (
            fact("cleanup-refused"),
            "olive",
            "PUT",
            SHOP,
            policy(json!({"enabled": true, "name_regex_keep": "a"})),
            200,
            NO,
        ),
        edit(fact("cleanup-refused"), policy(json!({"name_regex": ""})), blank.clone()),
        edit(fact("cleanup-refused"), policy(json!({"name_regex": null})), blank),
        edit(
            fact("cleanup-refused"),
            policy(json!({"name_regex": "("})),
            refused(
                "container_expiration_policy.name_regex",
                json!(["not valid RE2 syntax: missing ): ("]),
            ),
        ),
        edit(
            fact("cleanup-refused"),
            policy(json!({"enabled": null})),
            refused("container_expiration_policy.enabled", json!(["is not included in the list"])),
        ),
        edit(
            fact("cleanup-refused"),
            policy(json!({"cadence": null})),
            refused(
                "container_expiration_policy.cadence",
                json!(["can't be blank", "is not included in the list"]),
            ),
        ),
        (
            fact("cleanup-expression"),
            "olive",
            "PUT",
            SHOP,
            policy(json!({"name_regex_delete": "d", "keep_n": 25})),
            200,
            json!({"container_expiration_policy": {"name_regex": ".*", "keep_n": 25}}),
        ),
        (
            fact("merge-trains"),
            "olive",
            "PUT",
            SHOP,
            json!({"merge_trains_enabled": true}),
            200,
            json!({"merge_trains_enabled": false}),
        ),
        (
            fact("merge-trains"),
            "olive",
            "PUT",
            SHOP,
            json!({"merge_pipelines_enabled": true}),
            200,
            json!({"merge_trains_enabled": true}),
        ),
        (
            fact("topics-shared"),
            "olive",
            "PUT",
            "/projects/acme%2Fsite",
            json!({"topics": ["rust"]}),
            200,
            NO,
        ),
        (
            fact("topics-shared"),
            "olive",
            "PUT",
            SHOP,
            json!({"topics": [" Rust ", "a,b"]}),
            200,
            json!({"topics": ["a", "b", "rust"]}),
        ),
        (
            fact("topics-shared"),
            "olive",
            "PUT",
            SHOP,
            json!({"topics": null}),
            200,
            json!({"topics": []}),
        ),
    ];
    world.check(rows).await;
    let policy = world.get("olive", SHOP).await.body["container_expiration_policy"].clone();
    assert_eq!(policy.get("name_regex_delete"), None, "{}", fact("cleanup-expression"));
    for who in ["olive", "dan"] {
        let reply = world.call(who, "PUT", SHOP, &json!({"mirror_trigger_builds": true})).await;
        let text = reply.body["error"].as_str().expect("a text").to_owned();
        assert_eq!(reply.status, 400, "{}", fact("edit-enough"));
        assert!(text.starts_with("allow_merge_on_skipped_pipeline, analytics"), "{text}");
        assert!(text.ends_with(" are missing, at least one parameter must be provided"), "{text}");
    }
}

#[tokio::test]
async fn attributes_that_the_reference_does_not_list_are_shown_too() {
    let world = World::usual().await;
    world
        .check(vec![(
            fact("project-unlisted"),
            "olive",
            "PUT",
            SHOP,
            json!({"monitor_access_level": "private", "emails_disabled": true}),
            200,
            json!({"monitor_access_level": "private", "emails_disabled": true, "build_git_strategy": "fetch"}),
        )])
        .await;
}

#[tokio::test]
async fn a_cleanup_runs_one_cadence_after_its_policy_was_set() {
    let clock = Clock::new(|| "2030-01-31T12:00:00Z".parse().expect("a time"));
    let world = World::start(SandboxConfig { clock, ..SandboxConfig::default() }).await;
    let answer = world.call(ROOT, "POST", "/projects", &json!({"name": "p"})).await.body;
    assert_eq!(
        answer["container_expiration_policy"]["next_run_at"],
        "2030-02-01T12:00:00.000Z",
        "{}",
        fact("cleanup-next-run")
    );
    for (cadence, next) in [
        ("7d", "2030-02-07"),
        ("14d", "2030-02-14"),
        ("1month", "2030-03-02"),
        ("3month", "2030-05-01"),
    ] {
        let body = json!({"container_expiration_policy_attributes": {"cadence": cadence}});
        let edited = world.call(ROOT, "PUT", "/projects/1", &body).await.body;
        let expected = format!("{next}T12:00:00.000Z");
        assert_eq!(
            edited["container_expiration_policy"]["next_run_at"],
            json!(expected),
            "{}",
            fact("cleanup-next-run")
        );
    }
}

#[tokio::test]
async fn a_former_path_redirects_to_the_moved_project() {
    let world = World::usual().await;
    world
        .check(vec![
            (
                fact("project-edit"),
                "mia",
                "PUT",
                SHOP,
                json!({"path": "store"}),
                200,
                json!({"path_with_namespace": "acme/store"}),
            ),
            (
                fact("project-moved"),
                "mia",
                "PUT",
                SHOP,
                json!({"path": "x"}),
                405,
                json!({"message": "Non GET methods are not allowed for moved projects"}),
            ),
            (
                fact("unseen"),
                "stranger",
                "GET",
                SHOP,
                NO,
                404,
                json!({"message": "404 Project Not Found"}),
            ),
            (
                fact("group-rename"),
                "olive",
                "PUT",
                "/groups/acme",
                json!({"path": "apex"}),
                200,
                NO,
            ),
        ])
        .await;
    for (old, new) in [
        (SHOP, "/projects/1"),
        ("/projects/acme%2Fstore/hooks?per_page=5", "/projects/1/hooks?per_page=5"),
        ("/projects/acme%2Fsite", "/projects/2"),
    ] {
        let reply = world.get("mia", old).await;
        let place = format!("{}/api/v4{new}", world.running.url());
        assert_eq!(
            (reply.status, reply.header("location")),
            (301, place.as_str()),
            "{}: {old}",
            fact("project-moved")
        );
        let text = format!("This resource has been moved permanently to {place}");
        assert_eq!(
            (reply.header("content-type"), &reply.body),
            ("text/plain", &json!(text)),
            "{}",
            fact("project-moved-text")
        );
    }
    let again = world
        .call(ROOT, "POST", "/groups", &json!({"name": "acme", "path": "acme"}))
        .await
        .body["id"]
        .clone();
    let made = world
        .call(ROOT, "POST", "/projects", &json!({"path": "shop", "namespace_id": again}))
        .await;
    assert_eq!(
        world.get(ROOT, SHOP).await.body["id"],
        made.body["id"],
        "{}",
        fact("project-moved")
    );
}

#[tokio::test]
async fn the_default_branch_must_exist() {
    let world = World::usual().await;
    let group_id = world.get("mia", "/groups/acme").await.body["id"].clone();
    let made = json!({"path": "read", "namespace_id": group_id, "initialize_with_readme": true});
    let empty = json!({"path": "empty", "namespace_id": group_id, "default_branch": "next"});
    let hollow = "/projects/acme%2Fempty";
    let both = json!({"default_branch": "next", "description": "x"});
    let place = "/projects/acme%2Fread";
    let branches = "/projects/acme%2Fread/repository/branches";
    let next = json!({"branch": "next", "ref": "main"});
    let missing =
        json!({"message": {"base": ["Could not change HEAD: branch 'next' does not exist"]}});
    let to = |branch: &str| json!({ "default_branch": branch });
    world
        .check(vec![
            (fact("default-branch-of-empty"), "mia", "POST", "/projects", empty, 201, to("main")),
            (fact("default-branch-of-empty"), "mia", "PUT", hollow, to("main"), 200, to("main")),
            (fact("default-branch-of-empty"), "mia", "PUT", hollow, both, 400, missing.clone()),
            (
                fact("default-branch-of-empty"),
                "mia",
                "GET",
                hollow,
                NO,
                200,
                json!({"description": null}),
            ),
            (fact("default-branch"), "mia", "POST", "/projects", made, 201, to("main")),
            (fact("default-branch"), "mia", "PUT", place, to("main"), 200, to("main")),
            (fact("default-branch"), "mia", "PUT", place, to("next"), 400, missing),
            (fact("branch-create"), "mia", "POST", branches, next, 201, json!({"name": "next"})),
            (fact("default-branch"), "mia", "PUT", place, to("next"), 200, to("next")),
            (
                fact("branches"),
                "mia",
                "GET",
                branches,
                NO,
                200,
                json!([{"name": "main", "default": false}, {"name": "next", "default": true}]),
            ),
            (
                fact("branches"),
                "mia",
                "GET",
                "/projects/acme%2Fread/repository/branches/next",
                NO,
                200,
                json!({"default": true}),
            ),
            (
                fact("branches"),
                "mia",
                "GET",
                "/projects/acme%2Fread/repository/branches/other",
                NO,
                404,
                json!({"message": "404 Branch Not Found"}),
            ),
            (
                fact("branches"),
                "mia",
                "GET",
                "/projects/acme%2Fshop/repository/branches",
                NO,
                200,
                json!([]),
            ),
            (fact("default-branch"), "mia", "PUT", place, to("main"), 200, to("main")),
        ])
        .await;
}

#[tokio::test]
async fn a_seed_has_branches_of_which_none_is_protected() {
    let seed = json!({
        "groups": [{"path": "acme"}],
        "projects": [{"path": "acme/shop", "branches": ["trunk", "next"]}],
    });
    let world = World::from_seed(seed).await;
    let shop = world.get(ROOT, "/projects/acme%2Fshop").await.body;
    assert_eq!((&shop["default_branch"], &shop["empty_repo"]), (&json!("trunk"), &json!(false)));
    let branches = world.get(ROOT, "/projects/acme%2Fshop/repository/branches").await.body;
    let names: Vec<_> = branches.as_array().unwrap().iter().map(|branch| &branch["name"]).collect();
    assert_eq!(names, ["next", "trunk"]);
    assert_eq!(world.get(ROOT, "/projects/acme%2Fshop/protected_branches").await.body, json!([]));
}
