//! Rules that hold for all operations of the reference.

use serde_json::{Value, json};

use super::client::{ROOT, World};
use super::facts::fact;

const NO: Value = Value::Null;

/// The operations of the reference, each with who may call it: `anyone` who sees the object, also
/// without a token; a `user` who sees it; an `opener` of merge requests: a reporter, or every user
/// if everybody sees it; an `asker`, who sees it and has no role there; a member with at least that
/// role; the owner of a `root` group, with 400 for others; `admin`. This follows chapter 1, section
/// 5 of the reference; where it is silent, the roles are the real service's.
const OPERATIONS: &str = "
    asker      POST   /projects/:id/access_requests
    asker      POST   /groups/:id/access_requests
    maintainer GET    /projects/:id/variables
    maintainer GET    /projects/:id/variables/:key
    maintainer POST   /projects/:id/variables
    maintainer PUT    /projects/:id/variables/:key
    maintainer DELETE /projects/:id/variables/:key
    user       POST   /import/extgit
    user       POST   /import/extgit/cancel
    user       POST   /import/extgit/gists
    anyone     POST   /import/extserver
    user       GET    /groups/:id/members
    user       GET    /groups/:id/members/all
    user       GET    /groups/:id/members/:user_id
    user       GET    /groups/:id/members/all/:user_id
    owner      POST   /groups/:id/members
    owner      PUT    /groups/:id/members/:user_id
    user       DELETE /groups/:id/members/:user_id
    user       GET    /projects/:id/members
    user       GET    /projects/:id/members/all
    user       GET    /projects/:id/members/:user_id
    user       GET    /projects/:id/members/all/:user_id
    maintainer POST   /projects/:id/members
    maintainer PUT    /projects/:id/members/:user_id
    user       DELETE /projects/:id/members/:user_id
    root       GET    /groups/:id/billable_members
    root       GET    /groups/:id/billable_members/:user_id/memberships
    root       DELETE /groups/:id/billable_members/:user_id
    root       PUT    /groups/:id/members/:user_id/state
    owner      POST   /groups/:id/members/:user_id/override
    owner      DELETE /groups/:id/members/:user_id/override
    root       PUT    /groups/:id/members/:member_id/approve
    root       POST   /groups/:id/members/approve_all
    root       GET    /groups/:id/pending_members
    anyone     GET    /projects
    anyone     GET    /users/:user_id/projects
    anyone     GET    /users/:user_id/starred_projects
    anyone     GET    /projects/:id/forks
    anyone     GET    /projects/:id
    anyone     GET    /projects/:id/users
    anyone     GET    /projects/:id/groups
    anyone     GET    /projects/:id/starrers
    anyone     GET    /projects/:id/languages
    owner      GET    /projects/:id/transfer_locations
    user       POST   /projects
    admin      POST   /projects/user/:user_id
    maintainer PUT    /projects/:id
    user       POST   /projects/:id/fork
    user       POST   /projects/:id/star
    user       POST   /projects/:id/unstar
    owner      POST   /projects/:id/archive
    owner      POST   /projects/:id/unarchive
    owner      DELETE /projects/:id
    owner      POST   /projects/:id/restore
    user       POST   /projects/:id/uploads
    maintainer POST   /projects/:id/share
    maintainer DELETE /projects/:id/share/:group_id
    maintainer POST   /projects/:id/import_project_members/:project_id
    owner      POST   /projects/:id/fork/:forked_from_id
    owner      DELETE /projects/:id/fork
    maintainer POST   /projects/:id/housekeeping
    maintainer GET    /projects/:id/hooks
    maintainer GET    /projects/:id/hooks/:hook_id
    maintainer POST   /projects/:id/hooks
    maintainer PUT    /projects/:id/hooks/:hook_id
    maintainer DELETE /projects/:id/hooks/:hook_id
    maintainer GET    /projects/:id/push_rule
    maintainer POST   /projects/:id/push_rule
    maintainer PUT    /projects/:id/push_rule
    maintainer DELETE /projects/:id/push_rule
";

/// The same for operations that the reference leaves out and clients need. An operation with
/// unusual refusals is listed for a `user` here and tested elsewhere. A `mirrorer` is a maintainer,
/// with 401 for others; a `keeper` is a maintainer, and anonymous callers get the same answer as
/// users without that role.
const EXTRA_OPERATIONS: &str = "
    keeper     GET    /projects/:id/protected_branches
    keeper     GET    /projects/:id/protected_branches/:name
    keeper     POST   /projects/:id/protected_branches
    keeper     PATCH  /projects/:id/protected_branches/:name
    keeper     DELETE /projects/:id/protected_branches/:name
    maintainer GET    /projects/:id/approvals
    maintainer GET    /projects/:id/merge_request_approval_setting
    maintainer PUT    /projects/:id/merge_request_approval_setting
    owner      GET    /groups/:id/merge_request_approval_setting
    owner      PUT    /groups/:id/merge_request_approval_setting
    maintainer POST   /projects/:id/approvals
    opener     GET    /projects/:id/approval_rules
    opener     GET    /projects/:id/approval_rules/:rule_id
    maintainer POST   /projects/:id/approval_rules
    maintainer PUT    /projects/:id/approval_rules/:rule_id
    maintainer DELETE /projects/:id/approval_rules/:rule_id
    keeper     GET    /projects/:id/protected_tags
    keeper     GET    /projects/:id/protected_tags/:name
    keeper     POST   /projects/:id/protected_tags
    keeper     DELETE /projects/:id/protected_tags/:name
    user       GET    /projects/:id/labels
    user       GET    /projects/:id/labels/:name
    reporter   POST   /projects/:id/labels
    reporter   PUT    /projects/:id/labels/:name
    user       DELETE /projects/:id/labels/:name
    reporter   PUT    /projects/:id/labels
    user       DELETE /projects/:id/labels
    user       GET    /groups/:id/labels
    user       GET    /groups/:id/labels/:name
    reporter   POST   /groups/:id/labels
    reporter   PUT    /groups/:id/labels/:name
    user       DELETE /groups/:id/labels/:name
    reporter   PUT    /groups/:id/labels
    user       DELETE /groups/:id/labels
    anyone     GET    /projects/:id/badges
    anyone     GET    /projects/:id/badges/render
    anyone     GET    /projects/:id/badges/:badge_id
    maintainer POST   /projects/:id/badges
    maintainer PUT    /projects/:id/badges/:badge_id
    maintainer DELETE /projects/:id/badges/:badge_id
    anyone     GET    /groups/:id/badges
    anyone     GET    /groups/:id/badges/render
    anyone     GET    /groups/:id/badges/:badge_id
    owner      POST   /groups/:id/badges
    owner      PUT    /groups/:id/badges/:badge_id
    owner      DELETE /groups/:id/badges/:badge_id
    mirrorer   GET    /projects/:id/remote_mirrors
    mirrorer   GET    /projects/:id/remote_mirrors/:mirror_id
    mirrorer   POST   /projects/:id/remote_mirrors
    mirrorer   PUT    /projects/:id/remote_mirrors/:mirror_id
    mirrorer   DELETE /projects/:id/remote_mirrors/:mirror_id
    admin      GET    /deploy_keys
    maintainer GET    /projects/:id/deploy_keys
    maintainer GET    /projects/:id/deploy_keys/:deploy_key
    maintainer POST   /projects/:id/deploy_keys
    maintainer PUT    /projects/:id/deploy_keys/:deploy_key
    maintainer DELETE /projects/:id/deploy_keys/:deploy_key
    maintainer POST   /projects/:id/deploy_keys/:deploy_key/enable
    user       GET    /projects/:id/pipeline_schedules
    user       GET    /projects/:id/pipeline_schedules/:schedule_id
    developer  POST   /projects/:id/pipeline_schedules
    user       PUT    /projects/:id/pipeline_schedules/:schedule_id
    user       DELETE /projects/:id/pipeline_schedules/:schedule_id
    maintainer POST   /projects/:id/pipeline_schedules/:schedule_id/take_ownership
    user       POST   /projects/:id/pipeline_schedules/:schedule_id/variables
    user       PUT    /projects/:id/pipeline_schedules/:schedule_id/variables/:key
    user       DELETE /projects/:id/pipeline_schedules/:schedule_id/variables/:key
    anyone     GET    /projects/:id/merge_requests/:merge_request_iid
    anyone     GET    /projects/:id/merge_requests/:merge_request_iid/notes
    anyone     GET    /projects/:id/merge_requests/:merge_request_iid/notes/:note_id
    user       POST   /projects/:id/merge_requests/:merge_request_iid/notes
    user       PUT    /projects/:id/merge_requests/:merge_request_iid/notes/:note_id
    user       DELETE /projects/:id/merge_requests/:merge_request_iid/notes/:note_id
    reporter   GET    /projects/:id/freeze_periods
    reporter   GET    /projects/:id/freeze_periods/:period_id
    maintainer POST   /projects/:id/freeze_periods
    maintainer PUT    /projects/:id/freeze_periods/:period_id
    maintainer DELETE /projects/:id/freeze_periods/:period_id
    coder      GET    /projects/:id/repository/branches
    coder      GET    /projects/:id/repository/branches/:branch
    developer  POST   /projects/:id/repository/branches
    maintainer PUT    /projects/:id/repository/branches/:branch/protect
    maintainer PUT    /projects/:id/repository/branches/:branch/unprotect
    developer  DELETE /projects/:id/repository/branches/:branch
    coder      GET    /projects/:id/repository/tags
    coder      GET    /projects/:id/repository/tags/:tag_name
    developer  POST   /projects/:id/repository/tags
    developer  DELETE /projects/:id/repository/tags/:tag_name
    coder      GET    /projects/:id/repository/tree
    coder      GET    /projects/:id/repository/files/:path
    coder      GET    /projects/:id/repository/files/:path/raw
    developer  POST   /projects/:id/repository/files/:path
    developer  PUT    /projects/:id/repository/files/:path
    developer  DELETE /projects/:id/repository/files/:path
    user       GET    /projects/:id/import
    developer  GET    /projects/:id/statistics
    maintainer GET    /projects/:id/access_requests
    maintainer PUT    /projects/:id/access_requests/:user_id/approve
    maintainer DELETE /projects/:id/access_requests/:user_id
    owner      GET    /groups/:id/access_requests
    owner      PUT    /groups/:id/access_requests/:user_id/approve
    owner      DELETE /groups/:id/access_requests/:user_id
    anyone     GET    /groups
    user       POST   /groups
    anyone     GET    /groups/:id
    owner      PUT    /groups/:id
    owner      DELETE /groups/:id
    owner      POST   /groups/:id/restore
    anyone     GET    /groups/:id/subgroups
    anyone     GET    /groups/:id/descendant_groups
    anyone     GET    /groups/:id/projects
    owner      POST   /groups/:id/transfer
    owner      GET    /groups/:id/variables
    owner      GET    /groups/:id/variables/:key
    owner      POST   /groups/:id/variables
    owner      PUT    /groups/:id/variables/:key
    owner      DELETE /groups/:id/variables/:key
    owner      GET    /groups/:id/hooks
    owner      GET    /groups/:id/hooks/:hook_id
    owner      POST   /groups/:id/hooks
    owner      PUT    /groups/:id/hooks/:hook_id
    owner      DELETE /groups/:id/hooks/:hook_id
    user       GET    /groups/:id/push_rule
    user       POST   /groups/:id/push_rule
    user       PUT    /groups/:id/push_rule
    user       DELETE /groups/:id/push_rule
    user       POST   /groups/:id/share
    user       DELETE /groups/:id/share/:group_id
";

/// The caller, method and path of each operation.
pub(crate) fn operations() -> Vec<(&'static str, &'static str, &'static str)> {
    let words = |line: &'static str| {
        let mut words = line.split_whitespace();
        Some((words.next()?, words.next()?, words.next()?))
    };
    assert_eq!(OPERATIONS.trim().lines().count(), 70);
    OPERATIONS.lines().chain(EXTRA_OPERATIONS.lines()).filter_map(words).collect()
}

/// The number of operations for one project or group.
pub(crate) fn below_an_id() -> usize {
    operations().iter().filter(|(_, _, path)| path.contains("/:id")).count()
}

/// Reads and writes of an object that the caller may not see are 404, with the text for a missing
/// object.
#[tokio::test]
async fn a_stranger_gets_404_from_every_operation() {
    let world = World::from_seed(json!({
        "tier": "ultimate",
        "users": [{"username": "stranger", "token": "stranger"}],
        "projects": [{"path": "secret/thing", "variables": [{"key": "K", "value": "v"}], "hooks": [{"url": "https://x.example"}]}],
    }))
    .await;
    let mut tried = 0;
    for (_, method, path) in operations() {
        let (path, expected) = match path.split_once("/:id") {
            Some(("/projects", rest)) => {
                (format!("/projects/secret%2Fthing{rest}"), "404 Project Not Found")
            }
            Some(("/groups", rest)) => (format!("/groups/secret{rest}"), "404 Group Not Found"),
            _ => continue,
        };
        let path = path
            .replace(":key", "K")
            .replace(":hook_id", "1")
            .replace(":user_id", "1")
            .replace(":rule_id", "1")
            .replace(":member_id", "1");
        let path = path
            .replace(":group_id", "1")
            .replace(":project_id", "1")
            .replace(":forked_from_id", "1");
        let body = json!({"value": "v", "url": "https://x.example", "name": "n", "state": "active", "access_level": 10});
        let body = if method == "GET" { NO } else { body };
        for token in ["stranger", ""] {
            let reply = world.call(token, method, &path, &body).await;
            let refused = reply.status == 404 && reply.body == json!({"message": expected});
            // Without a token, the missing token may be reported first.
            let anonymous = token.is_empty()
                && reply.status == 401
                && reply.body == json!({"message": "401 Unauthorized"});
            assert!(
                refused || anonymous,
                "{}: {token} {method} {path}: {} {}",
                fact("unseen"),
                reply.status,
                reply.body
            );
        }
        tried += 1;
    }
    assert_eq!(tried, below_an_id());
    assert_eq!(world.get(ROOT, "/projects/1/hooks").await.body.as_array().map(Vec::len), Some(1));
}

/// No value causes a server error, and the sandbox goes on.
#[tokio::test]
async fn hostile_values_cause_no_server_error() {
    const NAMES: &str = "access_level archived avatar cadence container_expiration_policy_attributes description expires_at \
        extserver_project extserver_repo extserver_url extserver_username filter group_access group_id id_after key \
        min_access_level name namespace namespace_id namespace_path order_by page path per_page personal_access_token \
        project_id push_events push_events_branch_filter query repo_id search sort state tag_list target_namespace \
        link_url image_url only_protected_branches enabled title can_push ref cron cron_timezone active freeze_start \
        body internal activity_filter created_at approvals_required applies_to_all_protected_branches group_ids protected_branch_ids rule_type usernames \
        subgroup_events commit_message_regex color priority new_name create_access_level allowed_to_create environment_scope ip_restriction_ranges \
        file_template_project_id parent_id shared_runners_setting \
        branch content encoding tag_name message last_commit_id execute_filemode \
        token topic topics url allow_force_push allowed_to_merge push_access_level user_id user_ids value variable_type visibility max_file_size build_timeout merge_method";
    let values = [
        json!("'; DROP TABLE projects; --"),
        json!("%00\u{0}\u{202e}"),
        json!("x".repeat(5_000)),
        json!(-1),
        json!(9_223_372_036_854_775_807_i64),
        json!(1e300),
        json!([]),
        json!([[1], {"a": null}]),
        json!({"environment_scope": ["x"], "enabled": {}}),
        json!(true),
        json!(""),
    ];
    // Everything except the hostile value is valid, so that the value itself is checked.
    let good = json!({
        "key": "K", "value": "v", "url": "https://x.example", "path": "p", "name": "n", "user_id": 7, "access_level": 30,
        "group_id": 9, "group_access": 30, "member_check": true, "personal_access_token": "x", "repo_id": 1,
        "target_namespace": "acme", "extserver_url": "https://h.example", "extserver_username": "x", "extserver_project": "x",
        "extserver_repo": "x", "state": "active", "project_id": 2, "color": "red", "approvals_required": 1,
        "link_url": "https://x.example", "image_url": "https://x.example", "title": "t", "description": "d", "ref": "main",
        "branch": "b", "content": "c", "commit_message": "m", "tag_name": "t",
        "cron": "0 4 * * *", "freeze_start": "0 4 * * *", "freeze_end": "0 5 * * *", "body": "a comment",
    });
    let world = World::usual().await;
    let operations = operations();
    let mut turn = 0;
    let step = if crate::sample::plays_all() { 19 } else { 61 };
    for value in &values {
        let sudo = world.call(ROOT, "GET", "/user", &json!({"sudo": value})).await;
        assert!(sudo.status < 500, "{value}: {}", sudo.body);
        for name in NAMES.split_whitespace() {
            let mut body = good.clone();
            body[name] = value.clone();
            for (_, method, path) in &operations {
                // All combinations would take minutes. These still cover each operation, and each
                // parameter with many values.
                turn += 1;
                let is_delete = *method == "DELETE" && path.ends_with("/:id");
                if turn % step != 0 || is_delete {
                    continue;
                }
                let there = path
                    .replace("/projects/:id", "/projects/2")
                    .replace("/groups/:id", "/groups/9")
                    .replace(":merge_request_iid", "1");
                let hostile_path = path
                    .split('/')
                    .map(|part| if part.starts_with(':') { "%27%00%2e%2e%2f%F0%9F" } else { part });
                for path in [hostile_path.collect::<Vec<_>>().join("/"), there] {
                    let reply = world.call(ROOT, method, &path, &body).await;
                    assert!(reply.status < 500, "{method} {path} {body}: {}", reply.body);
                }
            }
        }
    }
    // By id, since the path of its group may have changed.
    let text = json!({"description": "'; DROP TABLE projects; --"});
    let one = world.call(ROOT, "PUT", "/projects/1", &text).await;
    assert_eq!(one.body["description"], "'; DROP TABLE projects; --", "{}", one.body);
}
