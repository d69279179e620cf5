//! Every operation, one row each: `EFFECT CONSTANT = "id" METHOD PATH, purpose, source, answer,
//! [parameters] and what is special`.
//!
//! The source is the chapter and section of the reference, or `supporting` for what the reference
//! leaves out and undrift needs.

use super::{Again, Answer, AnyOp, Method, Op, Operation, Read, Write, parameters::*};
use crate::field::{Route, Scope};

macro_rules! operations {
    ($($effect:ident $name:ident = $id:literal $method:ident $path:literal, $purpose:literal, $source:literal,
        $answer:ident, [$($list:ident),*] $(.$special:ident($($argument:expr),*))*;)*) => {
        $(
            #[doc = concat!("`", $id, "`: ", $purpose, " (", $source, ").")]
            pub const $name: Op<$effect> = {
                static ROW: Operation =
                    Operation::new($id, Method::$method, $path, $purpose, $source, Answer::$answer, &[$($list),*])$(.$special($($argument),*))*;
                Op::new(&ROW)
            };
        )*
        /// Every operation that undrift knows, in the order of the reference.
        pub static OPERATIONS: &[AnyOp] = &[$(AnyOp::$effect($name)),*];
    };
}

operations! {
    Read VARIABLE_LIST = "variable-list" Get "/projects/:id/variables", "list variables", "1, 4.1", List, [PROJECT, PAGING];
    Read VARIABLE_GET = "variable-get" Get "/projects/:id/variables/:key", "get a variable", "1, 4.1", One, [PROJECT, KEY, FILTER];
    Write VARIABLE_CREATE = "variable-create" Post "/projects/:id/variables", "create a variable", "1, 4.1", One,
        [PROJECT].fields("variables", Route::Create).again(Again::Refused).shows();
    Write VARIABLE_UPDATE = "variable-update" Put "/projects/:id/variables/:key", "update a variable", "1, 4.1", One,
        [PROJECT, KEY, FILTER].fields("variables", Route::Edit).shows();
    Write VARIABLE_DELETE = "variable-delete" Delete "/projects/:id/variables/:key", "delete a variable", "1, 4.1", Unsaid,
        [PROJECT, KEY, FILTER];

    Read GROUP_VARIABLE_LIST = "group-variable-list" Get "/groups/:id/variables", "list a group's variables", "supporting", List, [GROUP, PAGING];
    Read GROUP_VARIABLE_GET = "group-variable-get" Get "/groups/:id/variables/:key", "get a group's variable", "supporting", One, [GROUP, KEY, FILTER];
    Write GROUP_VARIABLE_CREATE = "group-variable-create" Post "/groups/:id/variables", "create a variable of a group", "supporting", One,
        [GROUP].fields_of(Scope::Group, "variables", Route::Create).again(Again::Refused).shows();
    Write GROUP_VARIABLE_UPDATE = "group-variable-update" Put "/groups/:id/variables/:key", "update a variable of a group", "supporting", One,
        [GROUP, KEY, FILTER].fields_of(Scope::Group, "variables", Route::Edit).shows();
    Write GROUP_VARIABLE_DELETE = "group-variable-delete" Delete "/groups/:id/variables/:key", "delete a variable of a group", "supporting", Nothing,
        [GROUP, KEY, FILTER].conditional();

    Write IMPORT_EXTGIT = "import-extgit" Post "/import/extgit", "import a repository from a hosted external service", "1, 4.2", One,
        [EXTERNAL_TOKEN, EXTGIT].again(Again::Never);
    Write IMPORT_EXTGIT_CANCEL = "import-extgit-cancel" Post "/import/extgit/cancel", "cancel an import", "1, 4.2", One, [IMPORT].again(Again::Never);
    Write IMPORT_EXTGIT_GISTS = "import-extgit-gists" Post "/import/extgit/gists", "import the caller's gists as snippets", "1, 4.2",
        Unsaid, [EXTERNAL_TOKEN].again(Again::Never);
    Write IMPORT_EXTSERVER = "import-extserver" Post "/import/extserver", "import a repository from a self-hosted external server",
        "1, 4.2", Unsaid, [EXTERNAL_TOKEN, EXTSERVER].again(Again::Never);

    Read GROUP_MEMBER_LIST = "group-member-list" Get "/groups/:id/members", "list a group's direct members", "1, 4.3", List,
        [GROUP, MEMBER_SEARCH, DIRECT_MEMBERS, PAGING];
    Read GROUP_MEMBER_LIST_ALL = "group-member-list-all" Get "/groups/:id/members/all",
        "list a group's members, inherited and invited ones too", "1, 4.3", List, [GROUP, MEMBER_SEARCH, ALL_MEMBERS, PAGING];
    Read GROUP_MEMBER_GET = "group-member-get" Get "/groups/:id/members/:user_id", "get a group's direct member", "1, 4.3", One,
        [GROUP, USER];
    Read GROUP_MEMBER_GET_ALL = "group-member-get-all" Get "/groups/:id/members/all/:user_id",
        "get a group's member, also an inherited or invited one", "1, 4.3", One, [GROUP, USER];
    Write GROUP_MEMBER_CREATE = "group-member-add" Post "/groups/:id/members", "add a member to a group", "1, 4.3", One,
        [GROUP, NEW_MEMBER].fields_of(Scope::Group, "members", Route::Create).again(Again::Refused).shows();
    Write GROUP_MEMBER_UPDATE = "group-member-edit" Put "/groups/:id/members/:user_id", "edit a group's member", "1, 4.3", One,
        [GROUP, USER].fields_of(Scope::Group, "members", Route::Edit).shows();
    Write GROUP_MEMBER_DELETE = "group-member-remove" Delete "/groups/:id/members/:user_id", "remove a member from a group", "1, 4.3",
        Unsaid, [GROUP, USER, REMOVAL].conditional().at_most(60);

    Read MEMBER_LIST = "project-member-list" Get "/projects/:id/members", "list a project's direct members", "1, 4.3", List,
        [PROJECT, MEMBER_SEARCH, DIRECT_MEMBERS, PAGING];
    Read MEMBER_LIST_ALL = "project-member-list-all" Get "/projects/:id/members/all",
        "list a project's members, inherited and invited ones too", "1, 4.3", List, [PROJECT, MEMBER_SEARCH, ALL_MEMBERS, PAGING];
    Read MEMBER_GET = "project-member-get" Get "/projects/:id/members/:user_id", "get a project's direct member", "1, 4.3", One,
        [PROJECT, USER];
    Read MEMBER_GET_ALL = "project-member-get-all" Get "/projects/:id/members/all/:user_id",
        "get a project's member, also an inherited or invited one", "1, 4.3", One, [PROJECT, USER];
    Write MEMBER_CREATE = "project-member-add" Post "/projects/:id/members", "add a member to a project", "1, 4.3", One,
        [PROJECT, NEW_MEMBER].fields("members", Route::Create).again(Again::Refused).shows();
    Write MEMBER_UPDATE = "project-member-edit" Put "/projects/:id/members/:user_id", "edit a project's member", "1, 4.3", One,
        [PROJECT, USER].fields("members", Route::Edit).shows();
    Write MEMBER_DELETE = "project-member-remove" Delete "/projects/:id/members/:user_id", "remove a member from a project", "1, 4.3",
        Unsaid, [PROJECT, USER, REMOVAL].conditional().at_most(60);

    Read BILLABLE_MEMBER_LIST = "billable-member-list" Get "/groups/:id/billable_members", "list a top-level group's billable members",
        "1, 4.3", List, [GROUP, BILLABLE, PAGING];
    Read BILLABLE_MEMBERSHIPS = "billable-member-memberships" Get "/groups/:id/billable_members/:user_id/memberships",
        "list where below a top-level group a billable member is a member", "1, 4.3", List, [GROUP, USER, PAGING];
    Write BILLABLE_MEMBER_DELETE = "billable-member-remove" Delete "/groups/:id/billable_members/:user_id",
        "remove a billable member from a top-level group and all below", "1, 4.3", Unsaid, [GROUP, USER];
    Write GROUP_MEMBER_STATE = "group-member-state" Put "/groups/:id/members/:user_id/state", "change the state of a membership",
        "1, 4.3", One, [GROUP, USER, NEW_STATE];
    Write GROUP_MEMBER_OVERRIDE = "group-member-override" Post "/groups/:id/members/:user_id/override",
        "let a member's level differ from the directory's", "1, 4.3", One, [GROUP, USER].again(Again::Same);
    Write GROUP_MEMBER_OVERRIDE_DELETE = "group-member-override-remove" Delete "/groups/:id/members/:user_id/override",
        "let a member's level follow the directory again", "1, 4.3", One, [GROUP, USER];
    Write GROUP_MEMBER_APPROVE = "group-member-approve" Put "/groups/:id/members/:member_id/approve",
        "approve a pending member of a top-level group", "1, 4.3", Unsaid, [GROUP, PENDING_MEMBER];
    Write GROUP_MEMBER_APPROVE_ALL = "group-member-approve-all" Post "/groups/:id/members/approve_all",
        "approve all pending members of a top-level group", "1, 4.3", Unsaid, [GROUP].again(Again::Same);
    Read PENDING_MEMBER_LIST = "pending-member-list" Get "/groups/:id/pending_members", "list a top-level group's pending members",
        "1, 4.3", List, [GROUP, PAGING];

    Read PROJECT_LIST = "project-list" Get "/projects", "list projects", "2, 4.1", List,
        [LISTING, ORDER_OF_ALL, OF_ALL_OR_A_USER, OF_ALL, PAGING].by_keyset();
    Read USER_PROJECTS = "user-project-list" Get "/users/:user_id/projects", "list the projects in a user's own namespace", "2, 4.1", List,
        [USER_OR_NAME, LISTING, ORDER, OF_ALL_OR_A_USER, PAGING];
    Read STARRED_PROJECTS = "starred-project-list" Get "/users/:user_id/starred_projects", "list the projects that a user has starred",
        "2, 4.1", List, [USER_OR_NAME, LISTING, ORDER, PAGING];
    Read FORK_LIST = "fork-list" Get "/projects/:id/forks", "list the forks of a project", "2, 4.1", List,
        [PROJECT, LISTING, ORDER, PAGING];

    Read PROJECT_GET = "project-get" Get "/projects/:id", "get a project", "2, 4.2", One, [PROJECT, DETAILS].at_most(400);
    Read PROJECT_USERS_LIST = "project-user-list" Get "/projects/:id/users", "list the users of a project", "2, 4.2", List,
        [PROJECT, PROJECT_USERS, PAGING];
    Read PROJECT_GROUPS_LIST = "project-group-list" Get "/projects/:id/groups", "list the groups above a project", "2, 4.2", List,
        [PROJECT, PROJECT_GROUPS, PAGING];
    Read STARRER_LIST = "project-starrer-list" Get "/projects/:id/starrers", "list the users who have starred a project", "2, 4.2", List,
        [PROJECT, STARRERS, PAGING];
    Read PROJECT_LANGUAGES = "project-languages" Get "/projects/:id/languages", "get the share of each programming language", "2, 4.2", Map,
        [PROJECT];
    Read TRANSFER_LOCATIONS = "project-transfer-location-list" Get "/projects/:id/transfer_locations",
        "list the groups that a project can be transferred to", "2, 4.2", List, [PROJECT, LOCATIONS, PAGING].since(15, 4);

    Write PROJECT_CREATE = "project-create" Post "/projects", "create a project", "2, 4.3", One,
        [PROJECT_PATH, NAMESPACE_ID].fields("settings", Route::Create).one_of(&["name", "path"]).again(Again::Refused).shows();
    Write PROJECT_CREATE_FOR_USER = "project-create-for-user" Post "/projects/user/:user_id", "create a project for a user", "2, 4.3", One,
        [USER, PROJECT_NAME, PROJECT_PATH, NAMESPACE_ID].fields("settings", Route::CreateForUser).administrators().again(Again::Refused).shows();
    Write PROJECT_UPDATE = "project-edit" Put "/projects/:id", "edit a project, or upload its avatar", "2, 4.3", One,
        [PROJECT, PROJECT_PATH].fields("settings", Route::Edit).shows();

    // The reference names it as a gap (2, 4.7).
    Write PROJECT_TRANSFER = "project-transfer" Put "/projects/:id/transfer", "move a project to another namespace", "supporting", One,
        [PROJECT, NEW_NAMESPACE].again(Again::Refused).shows();

    Write PROJECT_FORK = "project-fork" Post "/projects/:id/fork", "fork a project, in the background", "2, 4.4", Unsaid, [PROJECT, FORK].again(Again::Never);
    Write PROJECT_STAR = "project-star" Post "/projects/:id/star", "star a project", "2, 4.4", One, [PROJECT].again(Again::Same).shows().may_be_done();
    Write PROJECT_UNSTAR = "project-unstar" Post "/projects/:id/unstar", "take a star away", "2, 4.4", One, [PROJECT].again(Again::Same).shows().may_be_done();
    Write PROJECT_ARCHIVE = "project-archive" Post "/projects/:id/archive", "archive a project", "2, 4.4", One, [PROJECT].again(Again::Same).shows();
    Write PROJECT_UNARCHIVE = "project-unarchive" Post "/projects/:id/unarchive", "unarchive a project", "2, 4.4", One, [PROJECT].again(Again::Same).shows();
    Write PROJECT_DELETE = "project-delete" Delete "/projects/:id", "delete a project and all that is in it", "2, 4.4", Unsaid,
        [PROJECT].conditional().again(Again::Never);
    Write PROJECT_RESTORE = "project-restore" Post "/projects/:id/restore", "restore a project that is marked for deletion", "2, 4.4",
        Unsaid, [PROJECT].premium().again(Again::Never);
    Write PROJECT_UPLOAD = "project-upload" Post "/projects/:id/uploads", "upload a file to link to in texts", "2, 4.4", One,
        [PROJECT, UPLOAD];
    Write SHARE_CREATE = "project-share" Post "/projects/:id/share", "share a project with a group", "2, 4.4", Unsaid, [PROJECT].fields("shares", Route::Create).again(Again::Refused);
    Write SHARE_DELETE = "project-unshare" Delete "/projects/:id/share/:group_id", "stop sharing a project with a group", "2, 4.4",
        Nothing, [PROJECT, OTHER_GROUP];
    Write IMPORT_MEMBERS = "project-import-members" Post "/projects/:id/import_project_members/:project_id",
        "copy the members of another project", "2, 4.4", Unsaid, [PROJECT, SOURCE_PROJECT].again(Again::Same);
    Write FORK_RELATION_CREATE = "fork-relation-create" Post "/projects/:id/fork/:forked_from_id", "make a project a fork of another",
        "2, 4.4", Unsaid, [PROJECT, UPSTREAM].again(Again::Refused);
    Write FORK_RELATION_DELETE = "fork-relation-delete" Delete "/projects/:id/fork", "make a fork a project of its own", "2, 4.4", Unsaid,
        [PROJECT];
    Write PROJECT_HOUSEKEEPING = "project-housekeeping" Post "/projects/:id/housekeeping", "start the clean-up of a repository", "2, 4.4",
        Unsaid, [PROJECT].again(Again::Never);

    Read HOOK_LIST = "hook-list" Get "/projects/:id/hooks", "list hooks", "2, 4.5", List, [PROJECT, PAGING];
    Read HOOK_GET = "hook-get" Get "/projects/:id/hooks/:hook_id", "get a hook", "2, 4.5", One, [PROJECT, HOOK];
    Write HOOK_CREATE = "hook-add" Post "/projects/:id/hooks", "add a hook", "2, 4.5", Unsaid, [PROJECT].fields("hooks", Route::Create).shows();
    Write HOOK_UPDATE = "hook-edit" Put "/projects/:id/hooks/:hook_id", "edit a hook", "2, 4.5", Unsaid,
        [PROJECT, HOOK].fields("hooks", Route::Edit).shows();
    Write HOOK_DELETE = "hook-delete" Delete "/projects/:id/hooks/:hook_id", "delete a hook", "2, 4.5", Unsaid,
        [PROJECT, HOOK].conditional();

    Read PUSH_RULE_GET = "push-rule-get" Get "/projects/:id/push_rule", "get the push rule", "2, 4.6", One, [PROJECT].premium();
    Write PUSH_RULE_CREATE = "push-rule-add" Post "/projects/:id/push_rule", "add the push rule", "2, 4.6", Unsaid,
        [PROJECT].fields("push_rule", Route::Create).premium().again(Again::Refused).shows();
    Write PUSH_RULE_UPDATE = "push-rule-edit" Put "/projects/:id/push_rule", "edit the push rule", "2, 4.6", Unsaid,
        [PROJECT].fields("push_rule", Route::Edit).premium().shows();
    Write PUSH_RULE_DELETE = "push-rule-delete" Delete "/projects/:id/push_rule", "delete the push rule", "2, 4.6", Unsaid,
        [PROJECT].premium();

    Read PROTECTED_BRANCH_LIST = "protected-branch-list" Get "/projects/:id/protected_branches", "list protected branches",
        "supporting", List, [PROJECT, BRANCH_SEARCH, PAGING];
    Read PROTECTED_BRANCH_GET = "protected-branch-get" Get "/projects/:id/protected_branches/:name",
        "get a protected branch or wildcard", "supporting", One, [PROJECT, PROTECTED_BRANCH];
    Write PROTECTED_BRANCH_CREATE = "protected-branch-add" Post "/projects/:id/protected_branches", "protect a branch or wildcard",
        "supporting", One, [PROJECT, NEW_PROTECTION].again(Again::Refused).shows();
    // A grant that is there already is refused, and so is an id that has gone.
    Write PROTECTED_BRANCH_UPDATE = "protected-branch-edit" Patch "/projects/:id/protected_branches/:name",
        "edit a protected branch or wildcard", "supporting", One,
        [PROJECT, PROTECTED_BRANCH, CHANGED_PROTECTION].since(15, 6).again(Again::Refused).shows();
    Write PROTECTED_BRANCH_DELETE = "protected-branch-delete" Delete "/projects/:id/protected_branches/:name",
        "unprotect a branch or wildcard", "supporting", Nothing, [PROJECT, PROTECTED_BRANCH];

    Read PROTECTED_TAG_LIST = "protected-tag-list" Get "/projects/:id/protected_tags", "list protected tags", "supporting", List,
        [PROJECT, PAGING];
    Read PROTECTED_TAG_GET = "protected-tag-get" Get "/projects/:id/protected_tags/:name", "get a protected tag or wildcard", "supporting",
        One, [PROJECT, PROTECTED_TAG];
    Write PROTECTED_TAG_CREATE = "protected-tag-add" Post "/projects/:id/protected_tags", "protect a tag or wildcard", "supporting", One,
        [PROJECT, NEW_TAG_PROTECTION].again(Again::Refused).shows();
    Write PROTECTED_TAG_DELETE = "protected-tag-delete" Delete "/projects/:id/protected_tags/:name", "unprotect a tag or wildcard",
        "supporting", Nothing, [PROJECT, PROTECTED_TAG];
    Read APPROVALS_GET = "approvals-get" Get "/projects/:id/approvals", "get how merge requests are approved", "supporting", One,
        [PROJECT].premium();
    Write APPROVALS_UPDATE = "approvals-edit" Post "/projects/:id/approvals", "edit how merge requests are approved", "supporting", One,
        [PROJECT].fields("approvals", Route::Edit).premium().again(Again::Same).shows();
    Read APPROVAL_RULE_LIST = "approval-rule-list" Get "/projects/:id/approval_rules", "list approval rules", "supporting", List,
        [PROJECT, PAGING].premium();
    Read APPROVAL_RULE_GET = "approval-rule-get" Get "/projects/:id/approval_rules/:approval_rule_id", "get an approval rule", "supporting",
        One, [PROJECT, APPROVAL_RULE].premium();
    Write APPROVAL_RULE_CREATE = "approval-rule-add" Post "/projects/:id/approval_rules", "add an approval rule", "supporting", One,
        [PROJECT].fields("approval_rules", Route::Create).premium().again(Again::Refused).shows();
    Write APPROVAL_RULE_UPDATE = "approval-rule-edit" Put "/projects/:id/approval_rules/:approval_rule_id", "edit an approval rule",
        "supporting", One, [PROJECT, APPROVAL_RULE].fields("approval_rules", Route::Edit).premium().shows();
    Write APPROVAL_RULE_DELETE = "approval-rule-delete" Delete "/projects/:id/approval_rules/:approval_rule_id", "delete an approval rule",
        "supporting", Nothing, [PROJECT, APPROVAL_RULE].premium();
    Read SCHEDULE_LIST = "pipeline-schedule-list" Get "/projects/:id/pipeline_schedules", "list pipeline schedules", "supporting", List,
        [PROJECT, OF_SCHEDULES, PAGING];
    Read SCHEDULE_GET = "pipeline-schedule-get" Get "/projects/:id/pipeline_schedules/:pipeline_schedule_id", "get a pipeline schedule",
        "supporting", One, [PROJECT, SCHEDULE];
    Write SCHEDULE_CREATE = "pipeline-schedule-create" Post "/projects/:id/pipeline_schedules", "create a pipeline schedule", "supporting",
        One, [PROJECT].fields("pipeline_schedules", Route::Create).shows();
    Write SCHEDULE_UPDATE = "pipeline-schedule-edit" Put "/projects/:id/pipeline_schedules/:pipeline_schedule_id",
        "edit a pipeline schedule", "supporting", One, [PROJECT, SCHEDULE].fields("pipeline_schedules", Route::Edit).shows();
    Write SCHEDULE_TAKE = "pipeline-schedule-take" Post "/projects/:id/pipeline_schedules/:pipeline_schedule_id/take_ownership",
        "become the owner of a pipeline schedule", "supporting", One, [PROJECT, SCHEDULE].again(Again::Same);
    Write SCHEDULE_DELETE = "pipeline-schedule-delete" Delete "/projects/:id/pipeline_schedules/:pipeline_schedule_id",
        "delete a pipeline schedule", "supporting", Nothing, [PROJECT, SCHEDULE];

    Read MERGE_REQUEST_GET = "merge-request-get" Get "/projects/:id/merge_requests/:merge_request_iid", "get a merge request",
        "supporting", One, [PROJECT, MERGE_REQUEST];
    Read NOTE_LIST = "merge-request-note-list" Get "/projects/:id/merge_requests/:merge_request_iid/notes",
        "list the notes of a merge request", "supporting", List, [PROJECT, MERGE_REQUEST, OF_NOTES, PAGING].filtered_after_paging();
    Read NOTE_GET = "merge-request-note-get" Get "/projects/:id/merge_requests/:merge_request_iid/notes/:note_id",
        "get a note of a merge request", "supporting", One, [PROJECT, MERGE_REQUEST, NOTE];
    Write NOTE_CREATE = "merge-request-note-create" Post "/projects/:id/merge_requests/:merge_request_iid/notes",
        "write a note on a merge request", "supporting", One, [PROJECT, MERGE_REQUEST, NEW_NOTE].shows();
    Write NOTE_UPDATE = "merge-request-note-edit" Put "/projects/:id/merge_requests/:merge_request_iid/notes/:note_id",
        "edit a note of a merge request", "supporting", One, [PROJECT, MERGE_REQUEST, NOTE, NOTE_BODY].shows();
    Write NOTE_DELETE = "merge-request-note-delete" Delete "/projects/:id/merge_requests/:merge_request_iid/notes/:note_id",
        "delete a note of a merge request", "supporting", Nothing, [PROJECT, MERGE_REQUEST, NOTE];

    Read OWN_TOKEN = "own-token" Get "/personal_access_tokens/self", "get the token that is used", "supporting", One, [];
    Read CURRENT_USER = "current-user" Get "/user", "get the user that the token belongs to", "supporting", One, [];
    Read VERSION_GET = "version" Get "/version", "get the release of the service", "supporting", One, [];
    Read USER_FIND = "user-find" Get "/users", "find a user by name", "supporting", List, [USERNAME, PAGING];
    Read USER_GET = "user-get" Get "/users/:user_id", "get a user", "supporting", One, [USER];
    Read NAMESPACE_GET = "namespace-get" Get "/namespaces/:id", "get a namespace", "supporting", One, [NAMESPACE];
    Read NAMESPACE_FIND = "namespace-find" Get "/namespaces", "find namespaces by a part of their path", "supporting", List,
        [SEARCHED_NAMESPACE, PAGING];
    Read GROUP_LIST = "group-list" Get "/groups", "list groups", "supporting", List, [OF_GROUPS, TOP_LEVEL, PAGING];
    Read GROUP_DESCENDANTS = "group-descendant-list" Get "/groups/:id/descendant_groups", "list all groups below a group", "supporting",
        List, [GROUP, OF_GROUPS, PAGING];
    Read GROUP_GET = "group-get" Get "/groups/:id", "get a group", "supporting", One, [GROUP, WITH_PROJECTS];
    Write GROUP_CREATE = "group-create" Post "/groups", "create a group, in another one or by itself", "supporting", One,
        [GROUP_PATH, PARENT].fields_of(Scope::Group, "settings", Route::Create).again(Again::Refused).shows();
    Write GROUP_UPDATE = "group-edit" Put "/groups/:id", "edit a group, or upload its avatar", "supporting", One,
        [GROUP].fields_of(Scope::Group, "settings", Route::Edit).shows();
    Write GROUP_TRANSFER = "group-transfer" Post "/groups/:id/transfer", "move a group below another one, or to the top", "supporting",
        One, [GROUP, NEW_PARENT].again(Again::Refused).shows();
    Write GROUP_DELETE = "group-delete" Delete "/groups/:id", "delete a group and all that is in it", "supporting", Unsaid,
        [GROUP, AT_ONCE].again(Again::Never);
    Write GROUP_RESTORE = "group-restore" Post "/groups/:id/restore", "restore a group that is marked for deletion", "supporting",
        One, [GROUP].premium().again(Again::Never);
    Write GROUP_SHARE_CREATE = "group-share" Post "/groups/:id/share", "share a group with another group", "supporting", One,
        [GROUP].fields_of(Scope::Group, "shares", Route::Create).again(Again::Refused);
    Write GROUP_SHARE_DELETE = "group-unshare" Delete "/groups/:id/share/:group_id", "stop sharing a group with another one",
        "supporting", Nothing, [GROUP, OTHER_GROUP];
    Read GROUP_HOOK_LIST = "group-hook-list" Get "/groups/:id/hooks", "list a group's hooks", "supporting", List, [GROUP, PAGING].premium();
    Read GROUP_HOOK_GET = "group-hook-get" Get "/groups/:id/hooks/:hook_id", "get a group's hook", "supporting", One, [GROUP, HOOK].premium();
    Write GROUP_HOOK_CREATE = "group-hook-add" Post "/groups/:id/hooks", "add a hook to a group", "supporting", One,
        [GROUP].fields_of(Scope::Group, "hooks", Route::Create).premium().shows();
    Write GROUP_HOOK_UPDATE = "group-hook-edit" Put "/groups/:id/hooks/:hook_id", "edit a group's hook", "supporting", One,
        [GROUP, HOOK].fields_of(Scope::Group, "hooks", Route::Edit).premium().shows();
    Write GROUP_HOOK_DELETE = "group-hook-delete" Delete "/groups/:id/hooks/:hook_id", "delete a group's hook", "supporting", Nothing,
        [GROUP, HOOK].conditional().premium();
    Read GROUP_PUSH_RULE_GET = "group-push-rule-get" Get "/groups/:id/push_rule", "get a group's push rule", "supporting", One, [GROUP].premium();
    Write GROUP_PUSH_RULE_CREATE = "group-push-rule-add" Post "/groups/:id/push_rule", "add a push rule to a group", "supporting", One,
        [GROUP].fields_of(Scope::Group, "push_rule", Route::Create).premium().again(Again::Refused).shows();
    Write GROUP_PUSH_RULE_UPDATE = "group-push-rule-edit" Put "/groups/:id/push_rule", "edit a group's push rule", "supporting", One,
        [GROUP].fields_of(Scope::Group, "push_rule", Route::Edit).premium().shows();
    Write GROUP_PUSH_RULE_DELETE = "group-push-rule-delete" Delete "/groups/:id/push_rule", "delete a group's push rule", "supporting",
        Nothing, [GROUP].premium();
    Read GROUP_PROJECTS = "group-project-list" Get "/groups/:id/projects", "list a group's projects", "supporting", List,
        [GROUP, OF_SUBGROUPS, LISTING, ORDER, PAGING];
}
