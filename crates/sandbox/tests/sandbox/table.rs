//! Each operation of the reference once, by the administrator: its status, the keys in the
//! reference, and its effect.

use std::time::Duration;

use serde_json::{Value, json};
use undrift_sandbox::{Profile, SandboxConfig};

use super::client::{ROOT, Reply, World, contains, leak, read_reply, usual_seed};
use super::operations::operations;
use super::paging::SIMPLE_FIELDS;
use super::projects::FULL_FIELDS;

const NO: Value = Value::Null;

// Shapes by their section in chapter 1 of the reference; where it has none, those of the real
// service.
const VARIABLE: &str = "key value variable_type protected masked raw environment_scope";
const MEMBER: &str = "id username name state avatar_url web_url created_at expires_at access_level";
const SEAT: &str = "id username name state avatar_url web_url last_activity_on membership_type removable created_at last_login_at";
const SEAT_OF: &str =
    "id source_id source_full_name source_members_url created_at expires_at access_level";
const PENDING: &str = "id name username email avatar_url web_url approved invited";
const IMPORT: &str = "id name full_path full_name";
const CANCELED: &str = "id name full_path full_name import_source import_status human_import_status_name provider_link";
const HOOK: &str = "id url project_id push_events push_events_branch_filter issues_events confidential_issues_events \
    merge_requests_events tag_push_events note_events confidential_note_events job_events pipeline_events wiki_page_events \
    deployment_events releases_events enable_ssl_verification created_at";
const RULE: &str = "id project_id commit_message_regex commit_message_negative_regex branch_name_regex author_email_regex \
    file_name_regex deny_delete_tag member_check prevent_secrets commit_committer_check reject_unsigned_commits \
    max_file_size created_at";
const PROTECTION: &str = "id name push_access_levels merge_access_levels unprotect_access_levels \
    allow_force_push code_owner_approval_required";
const TAG: &str = "name create_access_levels";
const COMMITTED: &str = "file_path branch";
const FILE: &str = "file_name file_path size encoding content_sha256 ref blob_id commit_id last_commit_id \
    execute_filemode content";
const BRANCH: &str = "name commit merged protected developers_can_push developers_can_merge can_push default web_url";
const GIT_TAG: &str = "name message target commit release protected";
const REQUEST: &str = "id username name state avatar_url web_url requested_at";
const PROJECT_IMPORT: &str = "id description name name_with_namespace path path_with_namespace created_at import_status \
    import_type correlation_id failed_relations import_error stats";
const LABEL: &str = "id name color text_color description description_html subscribed";
const PROJECT_LABEL: &str =
    "id name color text_color description description_html subscribed priority is_project_label";
const BADGE: &str = "id name link_url image_url rendered_link_url rendered_image_url kind";
const MIRROR: &str = "id url enabled only_protected_branches keep_divergent_refs update_status last_update_at \
    last_update_started_at last_successful_update_at last_error";
const KEY: &str = "id title key fingerprint fingerprint_sha256 created_at expires_at";
const SCHEDULE: &str =
    "id description ref cron cron_timezone next_run_at active created_at updated_at owner";
const MERGE_REQUEST: &str = "id iid project_id title state created_at updated_at source_branch target_branch author \
    discussion_locked user_notes_count web_url";
const NOTE: &str = "id body author created_at updated_at system noteable_id noteable_iid noteable_type resolvable \
    confidential internal commands_changes type attachment";
const PERIOD: &str = "id freeze_start freeze_end cron_timezone created_at updated_at";
const NEWER: &str = "allow_author_approval allow_committer_approval allow_overrides_to_approver_list_per_merge_request \
    require_password_to_approve retain_approvals_on_push";
const APPROVALS: &str = "approvals_before_merge reset_approvals_on_push disable_overriding_approvers_per_merge_request \
    merge_requests_author_approval merge_requests_disable_committers_approval require_password_to_approve approvers \
    approver_groups";
const APPROVAL_RULE: &str = "id name rule_type eligible_approvers approvals_required users groups contains_hidden_groups \
    protected_branches applies_to_all_protected_branches";
const GROUP_HOOK: &str =
    "id url group_id push_events push_events_branch_filter subgroup_events created_at";
const GROUP_RULE: &str = "id commit_message_regex commit_message_negative_regex branch_name_regex author_email_regex \
    file_name_regex deny_delete_tag member_check prevent_secrets commit_committer_check reject_unsigned_commits \
    max_file_size created_at";
const WHOLE_GROUP: &str = "id name path full_name full_path parent_id visibility web_url avatar_url created_at \
    share_with_group_lock default_branch_protection shared_with_groups projects shared_projects";
const USER: &str = "id username name state avatar_url web_url";
const GROUP: &str = "id name avatar_url web_url full_name full_path";
const STARRER: &str = "starred_since user";
const UPLOAD: &str = "alt url full_path markdown";
const SHARE: &str = "id project_id group_id group_access expires_at";

/// A path to read after the operation, with the status and a part of the body that show the effect.
type Effect = (&'static str, u16, Value);

/// No effect to check: the operation reads, or its effect is only in its answer.
const NO_EFFECT: Effect = ("", 0, Value::Null);

/// One call: its operation (empty for one that only prepares another), its path and body; the
/// status, keys and part of the body of its answer; and its effect.
type Step = (&'static str, &'static str, Value, u16, &'static str, Value, Effect);

/// Projects 1 and 2 exist at first; users 2 to 8, of whom 7 is not a member of anything.
fn steps() -> Vec<Step> {
    [
        variables(),
        hooks_and_push_rule(),
        hooks_and_push_rule_of_a_group(),
        protected_branches(),
        protected_tags(),
        labels(),
        approvals(),
        badges(),
        mirrors_and_keys(),
        schedules(),
        notes(),
        members_of_a_project(),
        members_of_a_group(),
        hierarchy(),
        reads(),
        actions(),
        links(),
        life(),
        groups(),
        imports(),
        repository(),
        access_requests(),
    ]
    .concat()
}

fn variables() -> Vec<Step> {
    let (one, of_group) = ("/projects/1/variables/K", "/groups/acme/variables/K");
    vec![
        (
            "POST /groups/:id/variables",
            "/groups/acme/variables",
            json!({"key": "K", "value": "v"}),
            201,
            VARIABLE,
            json!({"masked": false}),
            (of_group, 200, json!({"value": "v"})),
        ),
        (
            "GET /groups/:id/variables",
            "/groups/acme/variables",
            NO,
            200,
            VARIABLE,
            json!([{"key": "K"}]),
            NO_EFFECT,
        ),
        (
            "GET /groups/:id/variables/:key",
            of_group,
            NO,
            200,
            VARIABLE,
            json!({"environment_scope": "*"}),
            NO_EFFECT,
        ),
        (
            "PUT /groups/:id/variables/:key",
            of_group,
            json!({"protected": true}),
            200,
            VARIABLE,
            json!({"value": "v"}),
            (of_group, 200, json!({"protected": true})),
        ),
        ("DELETE /groups/:id/variables/:key", of_group, NO, 204, "", NO, (of_group, 404, NO)),
        (
            "POST /projects/:id/variables",
            "/projects/1/variables",
            json!({"key": "K", "value": "v"}),
            201,
            VARIABLE,
            json!({"masked": false}),
            (one, 200, json!({"value": "v"})),
        ),
        (
            "GET /projects/:id/variables",
            "/projects/1/variables",
            NO,
            200,
            VARIABLE,
            json!([{"key": "K"}]),
            NO_EFFECT,
        ),
        (
            "GET /projects/:id/variables/:key",
            one,
            NO,
            200,
            VARIABLE,
            json!({"environment_scope": "*"}),
            NO_EFFECT,
        ),
        (
            "PUT /projects/:id/variables/:key",
            one,
            json!({"value": "w"}),
            200,
            VARIABLE,
            json!({"value": "w"}),
            (one, 200, json!({"value": "w"})),
        ),
        ("DELETE /projects/:id/variables/:key", one, NO, 204, "", NO, (one, 404, NO)),
    ]
}

fn hooks_and_push_rule() -> Vec<Step> {
    let (hook, rule) = ("/projects/1/hooks/1", "/projects/1/push_rule");
    let (url, other) = (json!({"url": "https://a.example"}), json!({"url": "https://b.example"}));
    vec![
        (
            "POST /projects/:id/hooks",
            "/projects/1/hooks",
            url.clone(),
            201,
            HOOK,
            url.clone(),
            (hook, 200, url.clone()),
        ),
        ("GET /projects/:id/hooks", "/projects/1/hooks", NO, 200, HOOK, json!([url]), NO_EFFECT),
        ("GET /projects/:id/hooks/:hook_id", hook, NO, 200, HOOK, url, NO_EFFECT),
        (
            "PUT /projects/:id/hooks/:hook_id",
            hook,
            other.clone(),
            200,
            HOOK,
            other.clone(),
            (hook, 200, other),
        ),
        ("DELETE /projects/:id/hooks/:hook_id", hook, NO, 204, "", NO, (hook, 404, NO)),
        (
            "POST /projects/:id/push_rule",
            rule,
            json!({"member_check": true}),
            201,
            RULE,
            NO,
            (rule, 200, json!({"member_check": true})),
        ),
        ("GET /projects/:id/push_rule", rule, NO, 200, RULE, json!({"project_id": 1}), NO_EFFECT),
        (
            "PUT /projects/:id/push_rule",
            rule,
            json!({"max_file_size": 5}),
            200,
            RULE,
            NO,
            (rule, 200, json!({"max_file_size": 5, "member_check": true})),
        ),
        ("DELETE /projects/:id/push_rule", rule, NO, 204, "", NO, NO_EFFECT),
    ]
}

fn protected_branches() -> Vec<Step> {
    let (all, one) = ("/projects/1/protected_branches", "/projects/1/protected_branches/a%2Fb");
    vec![
        (
            "POST /projects/:id/protected_branches",
            all,
            json!({"name": "a/b"}),
            201,
            PROTECTION,
            json!({"name": "a/b"}),
            (one, 200, json!({"allow_force_push": false})),
        ),
        (
            "GET /projects/:id/protected_branches",
            all,
            NO,
            200,
            PROTECTION,
            json!([{"name": "a/b"}]),
            NO_EFFECT,
        ),
        (
            "GET /projects/:id/protected_branches/:name",
            one,
            NO,
            200,
            PROTECTION,
            json!({"id": 1}),
            NO_EFFECT,
        ),
        (
            "PATCH /projects/:id/protected_branches/:name",
            one,
            json!({"allow_force_push": true}),
            200,
            PROTECTION,
            NO,
            (one, 200, json!({"allow_force_push": true})),
        ),
        ("DELETE /projects/:id/protected_branches/:name", one, NO, 204, "", NO, (one, 404, NO)),
    ]
}

fn protected_tags() -> Vec<Step> {
    let (all, one) = ("/projects/1/protected_tags", "/projects/1/protected_tags/v%2A");
    let tag = json!({"name": "v*"});
    vec![
        (
            "POST /projects/:id/protected_tags",
            all,
            tag.clone(),
            201,
            TAG,
            tag.clone(),
            (one, 200, json!({"create_access_levels": [{"access_level": 40}]})),
        ),
        ("GET /projects/:id/protected_tags", all, NO, 200, TAG, json!([tag]), NO_EFFECT),
        ("GET /projects/:id/protected_tags/:name", one, NO, 200, TAG, tag, NO_EFFECT),
        ("DELETE /projects/:id/protected_tags/:name", one, NO, 204, "", NO, (one, 404, NO)),
    ]
}

fn approvals() -> Vec<Step> {
    let (settings, all) = ("/projects/1/approvals", "/projects/1/approval_rules");
    let one = "/projects/1/approval_rules/1";
    let password = json!({"require_password_to_approve": true});
    let newer = "/projects/1/merge_request_approval_setting";
    let group = "/groups/acme/merge_request_approval_setting";
    let author = json!({"allow_author_approval": true});
    let shown = json!({"allow_author_approval": {"value": true}});
    let all_on = json!({"allow_author_approval": true, "allow_committer_approval": true,
                        "allow_overrides_to_approver_list_per_merge_request": true, "retain_approvals_on_push": true});
    vec![
        (
            "POST /projects/:id/approvals",
            settings,
            password.clone(),
            201,
            APPROVALS,
            password.clone(),
            (settings, 200, password.clone()),
        ),
        ("GET /projects/:id/approvals", settings, NO, 200, APPROVALS, password, NO_EFFECT),
        (
            "PUT /projects/:id/merge_request_approval_setting",
            newer,
            author.clone(),
            200,
            NEWER,
            shown.clone(),
            (newer, 200, shown.clone()),
        ),
        (
            "GET /projects/:id/merge_request_approval_setting",
            newer,
            NO,
            200,
            NEWER,
            shown.clone(),
            NO_EFFECT,
        ),
        (
            "PUT /groups/:id/merge_request_approval_setting",
            group,
            all_on,
            200,
            NEWER,
            shown.clone(),
            (group, 200, shown.clone()),
        ),
        ("GET /groups/:id/merge_request_approval_setting", group, NO, 200, NEWER, shown, NO_EFFECT),
        (
            "POST /projects/:id/approval_rules",
            all,
            json!({"name": "dan", "approvals_required": 1, "user_ids": [4]}),
            201,
            APPROVAL_RULE,
            json!({"users": [{"id": 4}]}),
            (one, 200, json!({"rule_type": "regular"})),
        ),
        (
            "GET /projects/:id/approval_rules",
            all,
            NO,
            200,
            APPROVAL_RULE,
            json!([{"name": "dan"}]),
            NO_EFFECT,
        ),
        (
            "GET /projects/:id/approval_rules/:rule_id",
            one,
            NO,
            200,
            APPROVAL_RULE,
            json!({"id": 1}),
            NO_EFFECT,
        ),
        (
            "PUT /projects/:id/approval_rules/:rule_id",
            one,
            json!({"approvals_required": 2}),
            200,
            APPROVAL_RULE,
            NO,
            (one, 200, json!({"approvals_required": 2, "users": [{"id": 4}]})),
        ),
        ("DELETE /projects/:id/approval_rules/:rule_id", one, NO, 204, "", NO, (one, 404, NO)),
    ]
}

fn hooks_and_push_rule_of_a_group() -> Vec<Step> {
    let (hooks, hook, rule) =
        ("/groups/acme/hooks", "/groups/acme/hooks/2", "/groups/acme/push_rule");
    let url = json!({"url": "https://a.example"});
    let events = json!({"subgroup_events": true});
    vec![
        (
            "POST /groups/:id/hooks",
            hooks,
            url.clone(),
            201,
            GROUP_HOOK,
            url.clone(),
            (hook, 200, url.clone()),
        ),
        ("GET /groups/:id/hooks", hooks, NO, 200, GROUP_HOOK, json!([url]), NO_EFFECT),
        ("GET /groups/:id/hooks/:hook_id", hook, NO, 200, GROUP_HOOK, url.clone(), NO_EFFECT),
        (
            "PUT /groups/:id/hooks/:hook_id",
            hook,
            events.clone(),
            200,
            GROUP_HOOK,
            url,
            (hook, 200, events),
        ),
        ("DELETE /groups/:id/hooks/:hook_id", hook, NO, 204, "", NO, (hook, 404, NO)),
        (
            "POST /groups/:id/push_rule",
            rule,
            json!({"member_check": true}),
            201,
            GROUP_RULE,
            NO,
            (rule, 200, json!({"member_check": true})),
        ),
        ("GET /groups/:id/push_rule", rule, NO, 200, GROUP_RULE, NO, NO_EFFECT),
        (
            "PUT /groups/:id/push_rule",
            rule,
            json!({"max_file_size": 5}),
            200,
            GROUP_RULE,
            NO,
            (rule, 200, json!({"max_file_size": 5, "member_check": true})),
        ),
        ("DELETE /groups/:id/push_rule", rule, NO, 204, "", NO, (rule, 404, NO)),
    ]
}

fn labels() -> Vec<Step> {
    let rows = |place: &str, all: &'static str, one: &'static str, keys: &'static str| {
        let operation = |method: &str, rest: &str| leak(format!("{method} {place}/labels{rest}"));
        vec![
            (
                operation("POST", ""),
                all,
                json!({"name": "a b", "color": "#fff"}),
                201,
                keys,
                json!({"name": "a b"}),
                (one, 200, json!({"color": "#fff"})),
            ),
            (operation("GET", ""), all, NO, 200, keys, json!([{"name": "a b"}]), NO_EFFECT),
            (operation("GET", "/:name"), one, NO, 200, keys, json!({"name": "a b"}), NO_EFFECT),
            (
                operation("PUT", "/:name"),
                one,
                json!({"description": "text"}),
                200,
                keys,
                NO,
                (one, 200, json!({"description": "text"})),
            ),
            (operation("DELETE", "/:name"), one, NO, 204, "", NO, (one, 404, NO)),
            ("", all, json!({"name": "a b", "color": "#fff"}), 201, keys, NO, (one, 200, NO)),
            (
                operation("PUT", ""),
                all,
                json!({"name": "a b", "color": "#000"}),
                200,
                keys,
                json!({"color": "#000"}),
                (one, 200, json!({"color": "#000"})),
            ),
            (operation("DELETE", ""), all, json!({"name": "a b"}), 204, "", NO, (one, 404, NO)),
        ]
    };
    [
        rows("/projects/:id", "/projects/1/labels", "/projects/1/labels/a%20b", PROJECT_LABEL),
        rows("/groups/:id", "/groups/acme/labels", "/groups/acme/labels/a%20b", LABEL),
    ]
    .concat()
}

/// The five operations of a collection whose first entry is `one`: its path and the end of an
/// entry's path in the list of operations, the bodies of create and change, and the keys of an
/// answer.
fn collection(
    [place, end]: [&str; 2],
    [all, one]: [&'static str; 2],
    [new, change]: [Value; 2],
    keys: &'static str,
) -> Vec<Step> {
    let operation = |method: &str, end: &str| leak(format!("{method} {place}{end}"));
    vec![
        (operation("POST", ""), all, new, 201, keys, NO, (one, 200, NO)),
        (operation("GET", ""), all, NO, 200, keys, json!([{"id": 1}]), NO_EFFECT),
        (operation("PUT", end), one, change.clone(), 200, keys, change.clone(), NO_EFFECT),
        (operation("GET", end), one, NO, 200, keys, change, NO_EFFECT),
        (operation("DELETE", end), one, NO, 204, "", NO, (one, 404, NO)),
    ]
}

fn badges() -> Vec<Step> {
    let new = json!({"link_url": "https://a.example", "image_url": "https://b.example"});
    let change = json!({"name": "ci"});
    let of_project = collection(
        ["/projects/:id/badges", "/:badge_id"],
        ["/projects/1/badges", "/projects/1/badges/1"],
        [new.clone(), change.clone()],
        BADGE,
    );
    let mut of_group = collection(
        ["/groups/:id/badges", "/:badge_id"],
        ["/groups/acme/badges", "/groups/acme/badges/2"],
        [new, change],
        BADGE,
    );
    // Ids are never reused.
    of_group[1].5 = json!([{"id": 2}]);
    let render = |operation, place: &str| -> Step {
        let urls = "link_url=https://a.example/%25{project_id}&image_url=https://b.example";
        let keys = "link_url image_url rendered_link_url rendered_image_url";
        let path = leak(format!("{place}/badges/render?{urls}"));
        (operation, path, NO, 200, keys, NO, NO_EFFECT)
    };
    let renders = vec![
        render("GET /projects/:id/badges/render", "/projects/1"),
        render("GET /groups/:id/badges/render", "/groups/acme"),
    ];
    [of_project, of_group, renders].concat()
}

fn mirrors_and_keys() -> Vec<Step> {
    const TEXT: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB";
    let mirrors = collection(
        ["/projects/:id/remote_mirrors", "/:mirror_id"],
        ["/projects/1/remote_mirrors", "/projects/1/remote_mirrors/1"],
        [json!({"url": "https://a.example"}), json!({"enabled": true})],
        MIRROR,
    );
    let mut keys = collection(
        ["/projects/:id/deploy_keys", "/:deploy_key"],
        ["/projects/1/deploy_keys", "/projects/1/deploy_keys/1"],
        [json!({"title": "a", "key": TEXT}), json!({"can_push": true})],
        KEY,
    );
    let enable: Step = (
        "POST /projects/:id/deploy_keys/:deploy_key/enable",
        "/projects/1/deploy_keys/1/enable",
        NO,
        201,
        KEY,
        json!({"title": "a"}),
        NO_EFFECT,
    );
    keys.insert(1, enable);
    let of_all: Step = (
        "GET /deploy_keys",
        "/deploy_keys",
        NO,
        200,
        leak(format!("{KEY} projects_with_write_access")),
        json!([{"title": "a", "projects_with_write_access": []}]),
        NO_EFFECT,
    );
    keys.insert(1, of_all);
    let periods = collection(
        ["/projects/:id/freeze_periods", "/:period_id"],
        ["/projects/1/freeze_periods", "/projects/1/freeze_periods/1"],
        [
            json!({"freeze_start": "0 4 * * *", "freeze_end": "0 5 * * *", "cron_timezone": "UTC"}),
            json!({"cron_timezone": "Europe/Berlin"}),
        ],
        PERIOD,
    );
    [mirrors, keys, periods].concat()
}

fn notes() -> Vec<Step> {
    let merge_request = "/projects/1/merge_requests/1";
    let mut steps = collection(
        ["/projects/:id/merge_requests/:merge_request_iid/notes", "/:note_id"],
        ["/projects/1/merge_requests/1/notes", "/projects/1/merge_requests/1/notes/1"],
        [json!({"body": "a comment"}), json!({"body": "another"})],
        NOTE,
    );
    steps.insert(
        1,
        (
            "GET /projects/:id/merge_requests/:merge_request_iid",
            merge_request,
            NO,
            200,
            MERGE_REQUEST,
            json!({"iid": 1, "user_notes_count": 1}),
            NO_EFFECT,
        ),
    );
    steps
}

fn schedules() -> Vec<Step> {
    let (one, variable) =
        ("/projects/1/pipeline_schedules/1", "/projects/1/pipeline_schedules/1/variables/K");
    let mut steps = collection(
        ["/projects/:id/pipeline_schedules", "/:schedule_id"],
        ["/projects/1/pipeline_schedules", one],
        [
            json!({"description": "nightly", "ref": "main", "cron": "0 4 * * *"}),
            json!({"active": false}),
        ],
        SCHEDULE,
    );
    let variables = |value: Value| (one, 200, json!({"variables": value}));
    let keys = "key value variable_type raw";
    let between: [Step; 4] = [
        (
            "POST /projects/:id/pipeline_schedules/:schedule_id/take_ownership",
            "/projects/1/pipeline_schedules/1/take_ownership",
            NO,
            200,
            SCHEDULE,
            json!({"owner": {"username": "root"}}),
            NO_EFFECT,
        ),
        (
            "POST /projects/:id/pipeline_schedules/:schedule_id/variables",
            "/projects/1/pipeline_schedules/1/variables",
            json!({"key": "K", "value": "v"}),
            201,
            keys,
            NO,
            variables(json!([{"key": "K"}])),
        ),
        (
            "PUT /projects/:id/pipeline_schedules/:schedule_id/variables/:key",
            variable,
            json!({"value": "w"}),
            200,
            keys,
            NO,
            variables(json!([{"value": "w"}])),
        ),
        (
            "DELETE /projects/:id/pipeline_schedules/:schedule_id/variables/:key",
            variable,
            NO,
            202,
            keys,
            NO,
            variables(json!([])),
        ),
    ];
    steps.splice(4..4, between);
    steps
}

fn members_of_a_project() -> Vec<Step> {
    let one = "/projects/1/members/7";
    vec![
        (
            "POST /projects/:id/members",
            "/projects/1/members",
            json!({"user_id": 7, "access_level": 20}),
            201,
            MEMBER,
            NO,
            (one, 200, json!({"access_level": 20})),
        ),
        (
            "GET /projects/:id/members",
            "/projects/1/members",
            NO,
            200,
            MEMBER,
            json!([{"id": 7}]),
            NO_EFFECT,
        ),
        (
            "GET /projects/:id/members/all",
            "/projects/1/members/all?user_ids=2,7",
            NO,
            200,
            MEMBER,
            json!([{"id": 2}, {"id": 7}]),
            NO_EFFECT,
        ),
        (
            "GET /projects/:id/members/:user_id",
            one,
            NO,
            200,
            MEMBER,
            json!({"username": "stranger"}),
            NO_EFFECT,
        ),
        (
            "GET /projects/:id/members/all/:user_id",
            "/projects/1/members/all/3",
            NO,
            200,
            MEMBER,
            json!({"access_level": 40}),
            NO_EFFECT,
        ),
        (
            "PUT /projects/:id/members/:user_id",
            one,
            json!({"access_level": 30}),
            200,
            MEMBER,
            NO,
            (one, 200, json!({"access_level": 30})),
        ),
        ("DELETE /projects/:id/members/:user_id", one, NO, 204, "", NO, (one, 404, NO)),
    ]
}

fn members_of_a_group() -> Vec<Step> {
    let one = "/groups/acme/members/7";
    vec![
        (
            "POST /groups/:id/members",
            "/groups/acme/members",
            json!({"user_id": 7, "access_level": 20}),
            201,
            MEMBER,
            NO,
            ("/projects/1/members/all/7", 200, json!({"access_level": 20})),
        ),
        (
            "GET /groups/:id/members",
            "/groups/acme/members?query=stranger",
            NO,
            200,
            MEMBER,
            json!([{"id": 7}]),
            NO_EFFECT,
        ),
        (
            "GET /groups/:id/members/all",
            "/groups/acme/members/all?user_ids=2,7",
            NO,
            200,
            MEMBER,
            json!([{"id": 2}, {"id": 7}]),
            NO_EFFECT,
        ),
        (
            "GET /groups/:id/members/:user_id",
            one,
            NO,
            200,
            MEMBER,
            json!({"username": "stranger"}),
            NO_EFFECT,
        ),
        (
            "GET /groups/:id/members/all/:user_id",
            "/groups/acme/members/all/3",
            NO,
            200,
            MEMBER,
            json!({"access_level": 40}),
            NO_EFFECT,
        ),
        (
            "PUT /groups/:id/members/:user_id",
            one,
            json!({"access_level": 30}),
            200,
            MEMBER,
            NO,
            (one, 200, json!({"access_level": 30})),
        ),
        (
            "POST /groups/:id/members/:user_id/override",
            "/groups/acme/members/7/override",
            NO,
            201,
            MEMBER,
            json!({"override": true}),
            NO_EFFECT,
        ),
        (
            "DELETE /groups/:id/members/:user_id/override",
            "/groups/acme/members/7/override",
            NO,
            200,
            MEMBER,
            json!({"override": false}),
            NO_EFFECT,
        ),
        ("DELETE /groups/:id/members/:user_id", one, NO, 204, "", NO, (one, 404, NO)),
    ]
}

fn hierarchy() -> Vec<Step> {
    let (pending, state) = ("/groups/acme/pending_members", "/groups/acme/members/4/state");
    let seats = "/groups/acme/billable_members?search=rita";
    vec![
        (
            "PUT /groups/:id/members/:user_id/state",
            state,
            json!({"state": "awaiting"}),
            200,
            "success",
            json!({"success": true}),
            (pending, 200, json!([{"username": "dan"}])),
        ),
        (
            "GET /groups/:id/pending_members",
            pending,
            NO,
            200,
            PENDING,
            json!([{"approved": false, "invited": false}]),
            NO_EFFECT,
        ),
        (
            "PUT /groups/:id/members/:member_id/approve",
            "/groups/acme/members/4/approve",
            NO,
            204,
            "",
            NO,
            (pending, 200, json!([])),
        ),
        (
            "",
            state,
            json!({"state": "awaiting"}),
            200,
            "",
            NO,
            (pending, 200, json!([{"username": "dan"}])),
        ),
        (
            "POST /groups/:id/members/approve_all",
            "/groups/acme/members/approve_all",
            NO,
            204,
            "",
            NO,
            (pending, 200, json!([])),
        ),
        ("GET /groups/:id/billable_members", seats, NO, 200, SEAT, json!([{"id": 5}]), NO_EFFECT),
        (
            "GET /groups/:id/billable_members/:user_id/memberships",
            "/groups/acme/billable_members/5/memberships",
            NO,
            200,
            SEAT_OF,
            json!([{"access_level": {"string_value": "Reporter", "integer_value": 20}}]),
            NO_EFFECT,
        ),
        (
            "DELETE /groups/:id/billable_members/:user_id",
            "/groups/acme/billable_members/5",
            NO,
            204,
            "",
            NO,
            (seats, 200, json!([])),
        ),
    ]
}

fn groups() -> Vec<Step> {
    let one = "/groups/new-team";
    vec![
        (
            "POST /groups",
            "/groups",
            json!({"name": "New", "path": "new-team"}),
            201,
            GROUP,
            json!({"visibility": "private"}),
            (one, 200, json!({"full_path": "new-team"})),
        ),
        (
            "GET /groups",
            "/groups?search=new",
            NO,
            200,
            GROUP,
            json!([{"path": "new-team"}]),
            NO_EFFECT,
        ),
        (
            "PUT /groups/:id",
            one,
            json!({"description": "all of it"}),
            200,
            WHOLE_GROUP,
            NO,
            (one, 200, json!({"description": "all of it"})),
        ),
        (
            "GET /groups/:id/projects",
            "/groups/acme/projects",
            NO,
            200,
            SIMPLE_FIELDS,
            NO,
            NO_EFFECT,
        ),
        (
            "POST /groups/:id/transfer",
            "/groups/new-team/transfer",
            json!({"group_id": 9}),
            201,
            GROUP,
            json!({"full_path": "acme/new-team"}),
            (one, 404, NO),
        ),
        (
            "POST /groups/:id/share",
            "/groups/acme%2Fnew-team/share",
            json!({"group_id": 9, "group_access": 30}),
            201,
            "shared_with_groups",
            NO,
            (
                "/groups/acme%2Fnew-team",
                200,
                json!({"shared_with_groups": [{"group_id": 9, "group_access_level": 30}]}),
            ),
        ),
        (
            "DELETE /groups/:id/share/:group_id",
            "/groups/acme%2Fnew-team/share/9",
            NO,
            204,
            "",
            NO,
            ("/groups/acme%2Fnew-team", 200, json!({"shared_with_groups": []})),
        ),
        (
            "DELETE /groups/:id",
            "/groups/acme%2Fnew-team",
            NO,
            202,
            "message",
            json!({"message": "202 Accepted"}),
            ("/groups/acme%2Fnew-team", 200, json!({"marked_for_deletion_on": "2030-01-01"})),
        ),
        (
            "POST /groups/:id/restore",
            "/groups/acme%2Fnew-team/restore",
            NO,
            201,
            GROUP,
            json!({"marked_for_deletion_on": null}),
            ("/groups/acme%2Fnew-team", 200, json!({"marked_for_deletion_on": null})),
        ),
        (
            "GET /groups/:id/subgroups",
            "/groups/acme/subgroups",
            NO,
            200,
            GROUP,
            json!([{"path": "new-team"}]),
            NO_EFFECT,
        ),
        (
            "GET /groups/:id/descendant_groups",
            "/groups/acme/descendant_groups",
            NO,
            200,
            GROUP,
            json!([{"path": "new-team"}]),
            NO_EFFECT,
        ),
    ]
}

fn reads() -> Vec<Step> {
    vec![
        (
            "GET /projects",
            "/projects?search=shop",
            NO,
            200,
            SIMPLE_FIELDS,
            json!([{"id": 1}]),
            NO_EFFECT,
        ),
        (
            "GET /projects/:id",
            "/projects/1?statistics=true&license=true",
            NO,
            200,
            FULL_FIELDS,
            json!({"path_with_namespace": "acme/shop"}),
            NO_EFFECT,
        ),
        (
            "GET /projects/:id/users",
            "/projects/1/users?search=mia",
            NO,
            200,
            USER,
            json!([{"username": "mia"}]),
            NO_EFFECT,
        ),
        (
            "GET /projects/:id/groups",
            "/projects/1/groups",
            NO,
            200,
            GROUP,
            json!([{"full_path": "acme"}]),
            NO_EFFECT,
        ),
        ("GET /projects/:id/languages", "/projects/1/languages", NO, 200, "", json!({}), NO_EFFECT),
    ]
}

fn actions() -> Vec<Step> {
    let one = "/projects/1";
    let starred = "/users/root/starred_projects";
    vec![
        (
            "POST /projects/:id/star",
            "/projects/1/star",
            NO,
            201,
            SIMPLE_FIELDS,
            json!({"star_count": 1}),
            (starred, 200, json!([{"id": 1}])),
        ),
        (
            "GET /users/:user_id/starred_projects",
            starred,
            NO,
            200,
            SIMPLE_FIELDS,
            json!([{"id": 1}]),
            NO_EFFECT,
        ),
        (
            "GET /projects/:id/starrers",
            "/projects/1/starrers",
            NO,
            200,
            STARRER,
            json!([{"user": {"username": "root"}}]),
            NO_EFFECT,
        ),
        (
            "POST /projects/:id/unstar",
            "/projects/1/unstar",
            NO,
            201,
            SIMPLE_FIELDS,
            json!({"star_count": 0}),
            (starred, 200, json!([])),
        ),
        (
            "POST /projects/:id/archive",
            "/projects/1/archive",
            NO,
            201,
            SIMPLE_FIELDS,
            NO,
            (one, 200, json!({"archived": true})),
        ),
        (
            "POST /projects/:id/unarchive",
            "/projects/1/unarchive",
            NO,
            201,
            SIMPLE_FIELDS,
            NO,
            (one, 200, json!({"archived": false})),
        ),
        (
            "POST /projects/:id/uploads",
            "/projects/1/uploads",
            NO,
            201,
            UPLOAD,
            json!({"alt": "note.txt"}),
            NO_EFFECT,
        ),
        ("POST /projects/:id/housekeeping", "/projects/1/housekeeping", NO, 201, "", NO, NO_EFFECT),
        (
            "PUT /projects/:id",
            one,
            json!({"description": "d"}),
            200,
            SIMPLE_FIELDS,
            NO,
            (one, 200, json!({"description": "d"})),
        ),
    ]
}

fn links() -> Vec<Step> {
    let forks = "/projects/1/forks";
    let shared = |with: Value| ("/projects/1", 200, json!({"shared_with_groups": with}));
    vec![
        ("", "/groups", json!({"name": "ops", "path": "ops"}), 201, "", NO, NO_EFFECT),
        (
            "POST /projects/:id/share",
            "/projects/1/share",
            json!({"group_id": 10, "group_access": 30}),
            201,
            SHARE,
            NO,
            shared(json!([{"group_id": 10}])),
        ),
        (
            "DELETE /projects/:id/share/:group_id",
            "/projects/1/share/10",
            NO,
            204,
            "",
            NO,
            shared(json!([])),
        ),
        (
            "GET /groups/:id",
            "/groups/acme",
            NO,
            200,
            WHOLE_GROUP,
            json!({"full_path": "acme", "shared_with_groups": []}),
            NO_EFFECT,
        ),
        (
            "GET /projects/:id/transfer_locations",
            "/projects/1/transfer_locations",
            NO,
            200,
            GROUP,
            json!([{"full_path": "ops"}]),
            NO_EFFECT,
        ),
        (
            "POST /projects/:id/fork",
            "/projects/1/fork",
            json!({"path": "copy"}),
            201,
            SIMPLE_FIELDS,
            json!({"import_status": "scheduled"}),
            (forks, 200, json!([{"id": 3}])),
        ),
        (
            "GET /projects/:id/forks",
            forks,
            NO,
            200,
            SIMPLE_FIELDS,
            json!([{"forked_from_project": {"id": 1}}]),
            NO_EFFECT,
        ),
        ("DELETE /projects/:id/fork", "/projects/3/fork", NO, 204, "", NO, (forks, 200, json!([]))),
        (
            "POST /projects/:id/fork/:forked_from_id",
            "/projects/3/fork/1",
            NO,
            201,
            SIMPLE_FIELDS,
            NO,
            (forks, 200, json!([{"id": 3}])),
        ),
        (
            "",
            "/projects/2/members",
            json!({"user_id": 7, "access_level": 20}),
            201,
            "",
            NO,
            NO_EFFECT,
        ),
        (
            "POST /projects/:id/import_project_members/:project_id",
            "/projects/1/import_project_members/2",
            NO,
            200,
            "status",
            json!({"status": "success"}),
            ("/projects/1/members/7", 200, json!({"access_level": 20})),
        ),
    ]
}

fn life() -> Vec<Step> {
    let one = "/projects/root%2Fnewer";
    vec![
        (
            "POST /projects",
            "/projects",
            json!({"name": "Newer"}),
            201,
            SIMPLE_FIELDS,
            json!({"path": "newer"}),
            (one, 200, json!({"visibility": "private"})),
        ),
        (
            "POST /projects/user/:user_id",
            "/projects/user/4",
            json!({"name": "Own"}),
            201,
            SIMPLE_FIELDS,
            NO,
            ("/projects/dan%2Fown", 200, json!({"owner": {"id": 4}})),
        ),
        (
            "GET /users/:user_id/projects",
            "/users/dan/projects",
            NO,
            200,
            SIMPLE_FIELDS,
            json!([{"path": "own"}]),
            NO_EFFECT,
        ),
        (
            "DELETE /projects/:id",
            one,
            NO,
            202,
            "message",
            json!({"message": "202 Accepted"}),
            ("/projects/4", 200, json!({"marked_for_deletion_at": "2030-01-01"})),
        ),
        (
            "POST /projects/:id/restore",
            "/projects/4/restore",
            NO,
            201,
            SIMPLE_FIELDS,
            NO,
            (one, 200, json!({"path": "newer"})),
        ),
    ]
}

fn imports() -> Vec<Step> {
    let extgit = json!({"personal_access_token": "x", "repo_id": 5, "target_namespace": "acme", "new_name": "one"});
    let extserver = json!({"extserver_url": "https://h.example", "extserver_username": "u", "personal_access_token": "x",
                           "extserver_project": "P", "extserver_repo": "two"});
    let one = "/projects/acme%2Fone";
    vec![
        (
            "POST /import/extgit",
            "/import/extgit",
            extgit,
            201,
            IMPORT,
            json!({"id": 6, "full_path": "acme/one"}),
            (one, 200, json!({"import_status": "scheduled"})),
        ),
        (
            "POST /import/extgit/cancel",
            "/import/extgit/cancel",
            json!({"project_id": 6}),
            200,
            CANCELED,
            NO,
            (one, 200, json!({"import_status": "canceled"})),
        ),
        (
            "POST /import/extgit/gists",
            "/import/extgit/gists",
            json!({"personal_access_token": "x"}),
            202,
            "",
            NO,
            NO_EFFECT,
        ),
        (
            "POST /import/extserver",
            "/import/extserver",
            extserver,
            201,
            IMPORT,
            json!({"full_path": "root/two"}),
            ("/projects/root%2Ftwo", 200, NO),
        ),
    ]
}

fn repository() -> Vec<Step> {
    let file = "/projects/2/repository/files/a.txt";
    let shown = "/projects/2/repository/files/a.txt?ref=main";
    let (branch, tag) = ("/projects/2/repository/branches/next", "/projects/2/repository/tags/v1");
    let text = |content: &str| json!({"branch": "main", "content": content, "commit_message": "m"});
    let operation =
        |method: &str, rest: &str| leak(format!("{method} /projects/:id/repository/{rest}"));
    let new_branch = json!({"branch": "next", "ref": "main"});
    let new_tag = json!({"tag_name": "v1", "ref": "next"});
    vec![
        (
            operation("POST", "files/:path"),
            file,
            text("x"),
            201,
            COMMITTED,
            NO,
            (shown, 200, json!({"content": "eA=="})),
        ),
        (
            operation("PUT", "files/:path"),
            file,
            text("y"),
            200,
            COMMITTED,
            NO,
            (shown, 200, json!({"content": "eQ=="})),
        ),
        (
            operation("GET", "tree"),
            "/projects/2/repository/tree",
            NO,
            200,
            "id name type path mode",
            json!([{"name": "a.txt", "type": "blob"}]),
            NO_EFFECT,
        ),
        (operation("GET", "files/:path"), shown, NO, 200, FILE, json!({"size": 1}), NO_EFFECT),
        (
            operation("GET", "files/:path/raw"),
            "/projects/2/repository/files/a.txt/raw",
            NO,
            200,
            "",
            NO,
            NO_EFFECT,
        ),
        (
            operation("POST", "branches"),
            "/projects/2/repository/branches",
            new_branch,
            201,
            BRANCH,
            json!({"name": "next"}),
            (branch, 200, NO),
        ),
        (
            operation("GET", "branches"),
            "/projects/2/repository/branches",
            NO,
            200,
            BRANCH,
            json!([{"name": "main"}, {"name": "next"}]),
            NO_EFFECT,
        ),
        (operation("GET", "branches/:branch"), branch, NO, 200, BRANCH, NO, NO_EFFECT),
        (
            operation("PUT", "branches/:branch/protect"),
            leak(format!("{branch}/protect")),
            json!({"developers_can_push": true}),
            200,
            BRANCH,
            json!({"protected": true, "developers_can_push": true}),
            (branch, 200, json!({"protected": true, "developers_can_merge": false})),
        ),
        (
            operation("PUT", "branches/:branch/unprotect"),
            leak(format!("{branch}/unprotect")),
            NO,
            200,
            BRANCH,
            json!({"protected": false}),
            (branch, 200, json!({"protected": false})),
        ),
        (
            operation("POST", "tags"),
            "/projects/2/repository/tags",
            new_tag,
            201,
            GIT_TAG,
            json!({"name": "v1"}),
            (tag, 200, NO),
        ),
        (
            operation("GET", "tags"),
            "/projects/2/repository/tags",
            NO,
            200,
            GIT_TAG,
            json!([{"name": "v1"}]),
            NO_EFFECT,
        ),
        (operation("GET", "tags/:tag_name"), tag, NO, 200, GIT_TAG, NO, NO_EFFECT),
        (operation("DELETE", "tags/:tag_name"), tag, NO, 204, "", NO, (tag, 404, NO)),
        (operation("DELETE", "branches/:branch"), branch, NO, 204, "", NO, (branch, 404, NO)),
        (
            operation("DELETE", "files/:path"),
            file,
            json!({"branch": "main", "commit_message": "m"}),
            204,
            "",
            NO,
            (shown, 404, NO),
        ),
        ("GET /projects/:id/import", "/projects/2/import", NO, 200, PROJECT_IMPORT, NO, NO_EFFECT),
        (
            "GET /projects/:id/statistics",
            "/projects/2/statistics",
            NO,
            200,
            "fetches",
            json!({"fetches": {"total": 0}}),
            NO_EFFECT,
        ),
    ]
}

/// User 7, for whom the calls are made with `sudo`, is not a member of anything.
fn access_requests() -> Vec<Step> {
    let rows = |place: &str, all: &'static str| {
        let operation =
            |method: &str, rest: &str| leak(format!("{method} {place}/access_requests{rest}"));
        let (one, approve) = (leak(format!("{all}/7")), leak(format!("{all}/7/approve")));
        let ask: Step = (
            operation("POST", ""),
            all,
            json!({"sudo": "stranger"}),
            201,
            REQUEST,
            json!({"id": 7}),
            (all, 200, json!([{"id": 7}])),
        );
        let again: Step = ("", ask.1, ask.2.clone(), ask.3, ask.4, ask.5.clone(), ask.6.clone());
        vec![
            ask,
            (operation("GET", ""), all, NO, 200, REQUEST, json!([{"id": 7}]), NO_EFFECT),
            (operation("DELETE", "/:user_id"), one, NO, 204, "", NO, (all, 200, json!([]))),
            again,
            (
                operation("PUT", "/:user_id/approve"),
                approve,
                json!({"access_level": 20}),
                201,
                "id access_level",
                json!({"access_level": 20}),
                (all, 200, json!([])),
            ),
        ]
    };
    // A group and a project without members.
    let group = json!({"name": "asked", "path": "asked", "visibility": "public"});
    let project = json!({"path": "asked", "visibility": "public"});
    let places: Vec<Step> = vec![
        ("", "/groups", group, 201, "id", NO, NO_EFFECT),
        ("", "/projects", project, 201, "id", NO, NO_EFFECT),
    ];
    [
        places,
        rows("/projects/:id", "/projects/root%2Fasked/access_requests"),
        rows("/groups/:id", "/groups/asked/access_requests"),
    ]
    .concat()
}

#[tokio::test]
async fn each_operation_does_what_the_reference_says() {
    let steps = steps();
    let mut covered: Vec<&str> =
        steps.iter().map(|step| step.0).filter(|operation| !operation.is_empty()).collect();
    let mut expected: Vec<String> =
        operations().into_iter().map(|(_, method, path)| format!("{method} {path}")).collect();
    covered.sort_unstable();
    expected.sort_unstable();
    assert_eq!(covered, expected, "each operation has one row");

    let time = "2030-01-01T00:00:00Z".parse().expect("a time");
    let world = World::seeded(
        usual_seed(),
        SandboxConfig {
            profile: Profile {
                gists: true,
                deletion_delay: Some(7),
                import_delay: Duration::from_secs(60),
                ..Profile::default()
            },
            clock: undrift_sandbox::Clock::new(move || time),
            ..SandboxConfig::default()
        },
    )
    .await;
    for (operation, path, body, status, keys, part, (shown, shown_status, effect)) in steps {
        let answer = call(&world, operation, path, &body).await;
        assert_eq!(answer.status, status, "{operation} {path} {body}\n{}", answer.body);
        let item = answer.body.get(0).unwrap_or(&answer.body);
        let missing: Vec<&str> =
            keys.split_whitespace().filter(|key| item.get(key).is_none()).collect();
        assert!(missing.is_empty(), "{operation}: {missing:?} are missing in {}", answer.body);
        assert!(contains(&answer.body, &part), "{operation}: expected {part}\ngot {}", answer.body);
        if status == 204 {
            assert_eq!(answer.body, NO, "{operation}: no content");
        }
        if !shown.is_empty() {
            let after = world.get(ROOT, shown).await;
            assert_eq!(after.status, shown_status, "{operation}, then {shown}\n{}", after.body);
            assert!(
                contains(&after.body, &effect),
                "{operation}, then {shown}: expected {effect}\ngot {}",
                after.body
            );
        }
    }
    assert_eq!(world.get(ROOT, "/projects/1/push_rule").await.body, NO, "the push rule is gone");
}

/// Makes the call; a step without an operation is a POST or, on a state, a PUT.
async fn call(world: &World, operation: &str, path: &str, body: &Value) -> Reply {
    let method = match operation.split_once(' ') {
        Some((method, _)) => method,
        None if path.ends_with("/state") => "PUT",
        None => "POST",
    };
    if path.ends_with("/uploads") {
        let part = reqwest::multipart::Part::bytes(b"x".to_vec()).file_name("note.txt");
        let form = reqwest::multipart::Form::new().part("file", part);
        return read_reply(
            world.request(ROOT, method, path).multipart(form).send().await.expect("an answer"),
        )
        .await;
    }
    world.call(ROOT, method, path, body).await
}
