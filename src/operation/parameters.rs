//! The parameters of the operations, one row each, in lists that operations share.
//!
//! What a manifest can hold too is not here: the fields of settings, variables, hooks and push
//! rules are described once, by the kinds, and an operation refers to them
//! ([`Operation::fields`](super::Operation::fields)).

use super::parameter::{
    Parameter,
    Type::{
        Boolean, File, IdOrName, Integer, Integers, Level, Map, Object, Objects, Text, Time, Word,
        Words,
    },
    body, path, query,
};

type List = &'static [Parameter];

// What a path names.

pub(super) const PROJECT: List = &[path("id", IdOrName, "The project, by id or full path.")];
pub(super) const GROUP: List = &[path("id", IdOrName, "The group, by id or full path.")];
pub(super) const AT_ONCE: List = &[
    query(
        "permanently_remove",
        Boolean,
        "Delete a subgroup at once that is marked for deletion; needs `full_path`.",
    ),
    query("full_path", Text, "The path of the subgroup, so that no other one is meant."),
];
pub(super) const SEARCHED_NAMESPACE: List =
    &[query("search", Text, "A part of the path or of the name.")];
pub(super) const NAMESPACE: List = &[path("id", IdOrName, "The namespace, by id or full path.")];
pub(super) const USER: List = &[path("user_id", Integer, "The id of the user.")];
pub(super) const USER_OR_NAME: List = &[path("user_id", IdOrName, "The user, by id or username.")];
pub(super) const PENDING_MEMBER: List =
    &[path("member_id", Integer, "The id of the pending member.")];
pub(super) const KEY: List = &[path("key", Text, "The key of the variable.")];
pub(super) const HOOK: List = &[path("hook_id", Integer, "The id of the hook.")];
pub(super) const PROTECTED_BRANCH: List =
    &[path("name", Text, "The name of the branch, or the wildcard, as it was protected.")];
pub(super) const PROTECTED_TAG: List =
    &[path("name", Text, "The name of the tag, or the wildcard, as it was protected.")];
pub(super) const APPROVAL_RULE: List =
    &[path("approval_rule_id", Integer, "The id of the approval rule.")];
pub(super) const SCHEDULE: List =
    &[path("pipeline_schedule_id", Integer, "The id of the pipeline schedule.")];
pub(super) const OF_SCHEDULES: List = &[query(
    "scope",
    Word(&["active", "inactive"]),
    "Only those that run, or only those that do not.",
)];
pub(super) const MERGE_REQUEST: List =
    &[path("merge_request_iid", Integer, "The number of the merge request in its project.")];
pub(super) const NOTE: List = &[path("note_id", Integer, "The id of the note.")];
pub(super) const OF_NOTES: List = &[
    query("order_by", Word(&["created_at", "updated_at"]), "What the notes are ordered by."),
    query("sort", Word(&["asc", "desc"]), "Whether the order rises or falls."),
    query(
        "activity_filter",
        Word(&["all_notes", "only_comments", "only_activity"]),
        "Only what people wrote, or only what the service did.",
    ),
];
const BODY: Parameter = body("body", Text, "The text, in Markdown; 1,000,000 characters at most.");
pub(super) const NEW_NOTE: List = &[
    BODY.required(),
    body("internal", Boolean, "Whether only reporters and above see it."),
    body("created_at", Time, "When it shall have been written; owners may say it."),
    body("merge_request_diff_head_sha", Text, "The commit that a command to merge is about."),
];
pub(super) const NOTE_BODY: List = &[BODY];
pub(super) const OTHER_GROUP: List =
    &[path("group_id", Integer, "The id of the group that the project is shared with.")];
pub(super) const SOURCE_PROJECT: List =
    &[path("project_id", IdOrName, "The project whose members are copied, by id or full path.")];
pub(super) const UPSTREAM: List = &[path(
    "forked_from_id",
    IdOrName,
    "The project that this one shall be a fork of, by id or full path.",
)];

// What every list takes (reference 1, 1).

pub(super) const PAGING: List = &[
    query("page", Integer, "Only this page, from 1; without it all are read."),
    query("per_page", Integer, "How many objects the page has, 100 at most; goes with `page`."),
];

// Variables (reference 1, 4.1).

pub(super) const FILTER: List =
    &[query("filter", Object(SCOPE), "Which one is meant if several variables share the key.")];
const SCOPE: List = &[query("environment_scope", Text, "The environment scope of the variable.")];

// Imports (reference 1, 4.2).

pub(super) const EXTERNAL_TOKEN: List =
    &[body("personal_access_token", Text, "The credential for the external host.")
        .required()
        .secret()];
pub(super) const EXTGIT: List = &[
    body("repo_id", Integer, "The id of the repository on the external host.").required(),
    body(
        "target_namespace",
        Text,
        "The path of the namespace, which has to exist, that the project goes to.",
    )
    .required(),
    NEW_NAME,
    body(
        "extgit_hostname",
        Text,
        "The host name of an enterprise installation; not for the public host.",
    ),
    body("optional_stages", Object(STAGES), "What else is imported."),
];
const STAGES: List = &[
    body("single_endpoint_issue_events_import", Boolean, "Events of issues and pull requests."),
    body("single_endpoint_notes_import", Boolean, "Comments, in a slower and more thorough way."),
    body("attachments_import", Boolean, "Files attached in Markdown."),
];
pub(super) const IMPORT: List =
    &[body("project_id", Integer, "The id of the project that is being imported.").required()];
pub(super) const EXTSERVER: List = &[
    body("extserver_url", Text, "The address of the external server.").required(),
    body("extserver_username", Text, "The user on the external server.").required(),
    body("extserver_project", Text, "The key of the project there, to find the repository by.")
        .required(),
    body("extserver_repo", Text, "The name of the repository there.").required(),
    NEW_NAME,
    body(
        "target_namespace",
        Text,
        "The path of the namespace that the project goes to; the caller's own if left out.",
    ),
];
const NEW_NAME: Parameter = body("new_name", Text, "The name of the new project.");

// Members (reference 1, 4.3).

pub(super) const MEMBER_SEARCH: List = &[
    query("query", Text, "Only members whose name, username or e-mail address has this."),
    query("user_ids", Integers, "Only users with these ids."),
    query("show_seat_info", Boolean, "Say too whether a member takes a seat."),
];
pub(super) const DIRECT_MEMBERS: List =
    &[query("skip_users", Integers, "Not users with these ids.")];
pub(super) const ALL_MEMBERS: List =
    &[query("state", Word(MEMBER_STATES), "Only members in this state.").premium()];
const MEMBER_STATES: &[&str] = &["awaiting", "active"];
pub(super) const NEW_MEMBER: List = &[
    body("user_id", IdOrName, "The id of the user; several ids with commas in between.").required(),
    body("invite_source", Text, "Where the invitation came from, for statistics."),
    body(
        "tasks_to_be_done",
        Words(&["ci", "code", "issues"]),
        "What the member shall look at first; needs `tasks_project_id`.",
    ),
    body(
        "tasks_project_id",
        Integer,
        "The id of the project that gets these tasks as issues; needs `tasks_to_be_done`.",
    ),
];
pub(super) const REMOVAL: List = &[
    query(
        "skip_subresources",
        Boolean,
        "Keep direct memberships in subgroups and projects; false if left out.",
    ),
    query(
        "unassign_issuables",
        Boolean,
        "Unassign the member from issues and merge requests; false if left out.",
    ),
];
pub(super) const BILLABLE: List = &[
    query("search", Text, "Only members whose name, username or public e-mail address has this."),
    query("sort", Word(BILLABLE_ORDER), "The order."),
];
const BILLABLE_ORDER: &[&str] = &[
    "access_level_asc",
    "access_level_desc",
    "last_joined",
    "name_asc",
    "name_desc",
    "oldest_joined",
    "oldest_sign_in",
    "recent_sign_in",
    "last_activity_on_asc",
    "last_activity_on_desc",
];
pub(super) const NEW_STATE: List =
    &[body("state", Word(MEMBER_STATES), "The new state, in all subgroups and projects too.")
        .required()];

// Lists of projects (reference 2, 4.1): of all, of a user, starred by a user, forks.

pub(super) const LISTING: List = &[
    query("archived", Boolean, "Only projects that are archived, or only those that are not."),
    query("membership", Boolean, "Only projects that the caller is a member of."),
    query("min_access_level", Level, "Only projects in which the caller has at least this level."),
    query("owned", Boolean, "Only projects that the caller owns."),
    query("search", Text, "Only projects that match this."),
    query("simple", Boolean, "Only a few fields of each project."),
    query("sort", Word(&["asc", "desc"]), "The direction of the order; `desc` if left out."),
    query("starred", Boolean, "Only projects that the caller has starred."),
    query("statistics", Boolean, "With statistics, to callers who are at least reporters."),
    query("visibility", Word(VISIBILITIES), "Only projects of this visibility."),
    query("with_custom_attributes", Boolean, "With custom attributes.").administrators(),
    query("with_issues_enabled", Boolean, "Only projects that have issues."),
    query("with_merge_requests_enabled", Boolean, "Only projects that have merge requests."),
];
const VISIBILITIES: &[&str] = &["public", "internal", "private"];
pub(super) const ORDER: List = &[query(
    "order_by",
    Word(&["id", "name", "path", "created_at", "updated_at", "last_activity_at"]),
    "What the order goes by; `created_at` if left out.",
)];
pub(super) const ORDER_OF_ALL: List = &[query(
    "order_by",
    Word(&[
        "id",
        "name",
        "path",
        "created_at",
        "updated_at",
        "last_activity_at",
        "similarity",
        "repository_size",
        "storage_size",
        "packages_size",
        "wiki_size",
    ]),
    "What the order goes by; `created_at` if left out; `similarity` needs `search`; sizes are for administrators.",
)];
pub(super) const OF_ALL_OR_A_USER: List = &[
    query("id_after", Integer, "Only projects with a greater id."),
    query("id_before", Integer, "Only projects with a smaller id."),
    query("with_programming_language", Text, "Only projects that use this language."),
];
pub(super) const OF_ALL: List = &[
    query("imported", Boolean, "Only projects that the caller imported."),
    query("last_activity_after", Time, "Only projects that were active after this."),
    query("last_activity_before", Time, "Only projects that were active before this."),
    query(
        "repository_checksum_failed",
        Boolean,
        "Only projects whose repository has a wrong checksum.",
    )
    .premium(),
    query("repository_storage", Text, "Only projects on this storage.").administrators(),
    query(
        "search_namespaces",
        Boolean,
        "Match `search` with the namespaces above too; false if left out.",
    ),
    query("topic", Text, "Only projects that have all of these topics, with commas in between."),
    query("topic_id", Integer, "Only projects that have the topic with this id."),
    query("wiki_checksum_failed", Boolean, "Only projects whose wiki has a wrong checksum.")
        .premium(),
    query(
        "custom_attributes",
        Map,
        "Only projects whose custom attribute of this key has this value.",
    ),
];
pub(super) const OF_SUBGROUPS: List = &[
    query("include_subgroups", Boolean, "Projects of subgroups too."),
    query("with_shared", Boolean, "Also projects shared with the group; true if left out."),
];
pub(super) const USERNAME: List =
    &[query("username", Text, "The username, in any case.").required()];

// One project and what hangs on it (reference 2, 4.2).

pub(super) const DETAILS: List = &[
    query("license", Boolean, "With the license."),
    query("statistics", Boolean, "With statistics, to callers who are at least reporters."),
    query("with_custom_attributes", Boolean, "With custom attributes.").administrators(),
];
pub(super) const PROJECT_USERS: List = &[
    query("search", Text, "Only users who match this."),
    query("skip_users", Integers, "Not users with these ids."),
];
pub(super) const PROJECT_GROUPS: List = &[
    query("search", Text, "Only groups that match this."),
    query("shared_min_access_level", Level, "Only shared groups that have at least this level."),
    query("shared_visible_only", Boolean, "Only shared groups that the caller can see."),
    query("skip_groups", Integers, "Not groups with these ids."),
    query("with_shared", Boolean, "Groups that the project is shared with too; false if left out."),
];
pub(super) const STARRERS: List = &[query("search", Text, "Only users who match this.")];
pub(super) const LOCATIONS: List = &[query("search", Text, "Only groups whose name matches this.")];

// Projects that are made and what is done to them (reference 2, 4.3 and 4.4).

pub(super) const PROJECT_PATH: List =
    &[body("path", Text, "The last part of the full path; follows from the name if left out.")];
pub(super) const PROJECT_NAME: List = &[body("name", Text, "The name that people see.").required()];
pub(super) const NAMESPACE_ID: List =
    &[body("namespace_id", Integer, "The id of the namespace; the owner's own if left out.")];
pub(super) const NEW_NAMESPACE: List =
    &[body("namespace", Text, "The id or the full path of the namespace to move to.").required()];
pub(super) const NEW_PARENT: List =
    &[body("group_id", Integer, "The id of the group to move to; the top if left out.")];
pub(super) const GROUP_PATH: List =
    &[body("path", Text, "The last part of the full path.").required()];
pub(super) const PARENT: List =
    &[body("parent_id", Integer, "The id of the group that it is in; none if left out.")];
pub(super) const FORK: List = &[
    body("name", Text, "The name of the fork."),
    body("path", Text, "The last part of the fork's full path."),
    body("description", Text, "What the fork is about."),
    body("visibility", Word(VISIBILITIES), "Who can see the fork."),
    body(
        "mr_default_target_self",
        Boolean,
        "Whether merge requests of the fork aim at the fork itself.",
    ),
    body(
        "namespace_id",
        Integer,
        "The id of the namespace that the fork goes to; the caller's own if left out.",
    ),
    body("namespace_path", Text, "The path of the namespace that the fork goes to."),
    body("namespace", IdOrName, "The namespace that the fork goes to.").use_instead("namespace_id"),
];
pub(super) const UPLOAD: List = &[body("file", File, "The file.").required()];
// Groups (not in the reference).

pub(super) const OF_GROUPS: List = &[
    query(
        "all_available",
        Boolean,
        "Also groups that the caller sees and is no member of; true if left out by an administrator.",
    ),
    query("min_access_level", Level, "Only groups in which the caller has at least this level."),
    query("order_by", Word(&["id", "name", "path", "similarity"]), "What the order goes by."),
    query("owned", Boolean, "Only groups that the caller owns."),
    query("search", Text, "Only groups that match this."),
    query("sort", Word(&["asc", "desc"]), "The direction of the order; `asc` if left out."),
];
pub(super) const TOP_LEVEL: List =
    &[query("top_level_only", Boolean, "Only groups that are in no other.")];
pub(super) const WITH_PROJECTS: List = &[query(
    "with_projects",
    Boolean,
    "With up to 100 projects of the group, and as many shared with it; true if left out.",
)];

// Protected branches (not in the reference).

pub(super) const BRANCH_SEARCH: List =
    &[query("search", Text, "Only names that have this as a part.")];
pub(super) const NEW_PROTECTION: List = &[
    body("name", Text, "The name of a branch, or a wildcard such as `release/*`.").required(),
    body(
        "push_access_level",
        Integer,
        "Who may push: 0 no one, 30 developers, 40 maintainers, 60 administrators; 40 if neither \
         this nor `allowed_to_push` is given.",
    ),
    body(
        "merge_access_level",
        Integer,
        "Who may merge: 0 no one, 30 developers, 40 maintainers, 60 administrators; 40 if neither \
         this nor `allowed_to_merge` is given.",
    ),
    body(
        "unprotect_access_level",
        Integer,
        "Who may unprotect: 30 developers, 40 maintainers, 60 administrators; 40 if neither this \
         nor `allowed_to_unprotect` is given.",
    )
    .premium(),
    body("allowed_to_push", Objects(NEW_GRANT), "Who else may push.").premium(),
    body("allowed_to_merge", Objects(NEW_GRANT), "Who else may merge.").premium(),
    body("allowed_to_unprotect", Objects(NEW_GRANT), "Who else may unprotect.").premium(),
    ALLOW_FORCE_PUSH,
    CODE_OWNERS,
];
pub(super) const NEW_TAG_PROTECTION: List = &[
    body("name", Text, "The name of a tag, or a wildcard such as `v*`.").required(),
    body(
        "create_access_level",
        Integer,
        "Who may create it: 0 no one, 30 developers, 40 maintainers; 40 if neither this nor \
         `allowed_to_create` is given.",
    ),
    body("allowed_to_create", Objects(NEW_GRANT), "Who else may create it.").premium(),
];
pub(super) const CHANGED_PROTECTION: List = &[
    body("allowed_to_push", Objects(CHANGED_GRANT), "Changes of who may push.").premium(),
    body("allowed_to_merge", Objects(CHANGED_GRANT), "Changes of who may merge.").premium(),
    body("allowed_to_unprotect", Objects(CHANGED_GRANT), "Changes of who may unprotect.").premium(),
    ALLOW_FORCE_PUSH,
    CODE_OWNERS,
];
const ALLOW_FORCE_PUSH: Parameter =
    body("allow_force_push", Boolean, "Whether those who may push may force-push.");
const CODE_OWNERS: Parameter = body(
    "code_owner_approval_required",
    Boolean,
    "Whether code owners have to approve changes of their files; false if left out, also of an edit.",
)
.premium();
const NEW_GRANT: List = &[LEVEL_OF_GRANT, USER_OF_GRANT, GROUP_OF_GRANT];
const CHANGED_GRANT: List = &[
    body("id", Integer, "The id of the grant to change; a new one is added if left out."),
    LEVEL_OF_GRANT,
    USER_OF_GRANT,
    GROUP_OF_GRANT,
    body("_destroy", Boolean, "Whether to remove the grant with this id."),
];
const LEVEL_OF_GRANT: Parameter = body(
    "access_level",
    Integer,
    "Everybody with this level or a higher one: 0 no one, 30, 40, or 60 for administrators.",
);
const USER_OF_GRANT: Parameter =
    body("user_id", Integer, "The id of a user, who has to be a member of the project.");
const GROUP_OF_GRANT: Parameter = body(
    "group_id",
    Integer,
    "The id of a group that the project itself is shared with, as developers or higher.",
);
