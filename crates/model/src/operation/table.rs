//! Every operation, one row each: `EFFECT CONSTANT = "id" METHOD PATH, purpose, source, answer,
//! [parameters] and other properties`.
//!
//! The parameters are lists of `parameters.yaml`. The source is the chapter and section of the
//! reference, or `supporting` for operations that undrift needs and the reference does not contain.

use super::{Again, Answer, AnyOp, List, Method, Op, Operation, Read, Write};
use crate::field::{Route, Scope};

macro_rules! operations {
    ($($effect:ident $name:ident = $id:literal $method:ident $path:literal, $purpose:literal, $source:literal,
        $answer:ident, [$($list:ident),*] $(.$special:ident($($argument:expr),*))*;)*) => {
        $(
            #[doc = concat!("`", $id, "`: ", $purpose, " (", $source, ").")]
            pub const $name: Op<$effect> = {
                static ROW: Operation =
                    Operation::new($id, Method::$method, $path, $purpose, $source, Answer::$answer, &[$(List::Named(stringify!($list))),*])$(.$special($($argument),*))*;
                Op::new(&ROW)
            };
        )*
        /// Every operation that undrift knows, in the order of the reference.
        pub static OPERATIONS: &[AnyOp] = &[$(AnyOp::$effect($name)),*];
    };
}

operations! {
    Read VARIABLE_LIST = "variable-list" Get "/projects/:id/variables", "list variables", "1, 4.1", List, [project, paging];
    Read VARIABLE_GET = "variable-get" Get "/projects/:id/variables/:key", "get a variable", "1, 4.1", One, [project, key, filter];
    Write VARIABLE_CREATE = "variable-create" Post "/projects/:id/variables", "create a variable", "1, 4.1", One,
        [project].fields("variables", Route::Create).again(Again::Refused).shows();
    Write VARIABLE_UPDATE = "variable-update" Put "/projects/:id/variables/:key", "update a variable", "1, 4.1", One,
        [project, key, filter].fields("variables", Route::Edit).shows();
    Write VARIABLE_DELETE = "variable-delete" Delete "/projects/:id/variables/:key", "delete a variable", "1, 4.1", Unsaid,
        [project, key, filter];

    Read GROUP_VARIABLE_LIST = "group-variable-list" Get "/groups/:id/variables", "list a group's variables", "supporting", List, [group, paging];
    Read GROUP_VARIABLE_GET = "group-variable-get" Get "/groups/:id/variables/:key", "get a group's variable", "supporting", One, [group, key, filter];
    Write GROUP_VARIABLE_CREATE = "group-variable-create" Post "/groups/:id/variables", "create a variable of a group", "supporting", One,
        [group].fields_of(Scope::Group, "variables", Route::Create).again(Again::Refused).shows();
    Write GROUP_VARIABLE_UPDATE = "group-variable-update" Put "/groups/:id/variables/:key", "update a variable of a group", "supporting", One,
        [group, key, filter].fields_of(Scope::Group, "variables", Route::Edit).shows();
    Write GROUP_VARIABLE_DELETE = "group-variable-delete" Delete "/groups/:id/variables/:key", "delete a variable of a group", "supporting", Nothing,
        [group, key, filter].conditional();

    Write IMPORT_EXTGIT = "import-extgit" Post "/import/extgit", "import a repository from a hosted external service", "1, 4.2", One,
        [external_token, extgit].again(Again::Never);
    Write IMPORT_EXTGIT_CANCEL = "import-extgit-cancel" Post "/import/extgit/cancel", "cancel an import", "1, 4.2", One, [import].again(Again::Never);
    Write IMPORT_EXTGIT_GISTS = "import-extgit-gists" Post "/import/extgit/gists", "import the caller's gists as snippets", "1, 4.2",
        Unsaid, [external_token].again(Again::Never);
    Write IMPORT_EXTSERVER = "import-extserver" Post "/import/extserver", "import a repository from a self-hosted external server",
        "1, 4.2", Unsaid, [external_token, extserver].again(Again::Never);

    Read GROUP_MEMBER_LIST = "group-member-list" Get "/groups/:id/members", "list a group's direct members", "1, 4.3", List,
        [group, member_search, direct_members, paging];
    Read GROUP_MEMBER_LIST_ALL = "group-member-list-all" Get "/groups/:id/members/all",
        "list a group's members, inherited and invited ones too", "1, 4.3", List, [group, member_search, all_members, paging];
    Read GROUP_MEMBER_GET = "group-member-get" Get "/groups/:id/members/:user_id", "get a group's direct member", "1, 4.3", One,
        [group, user];
    Read GROUP_MEMBER_GET_ALL = "group-member-get-all" Get "/groups/:id/members/all/:user_id",
        "get a group's member, also an inherited or invited one", "1, 4.3", One, [group, user];
    Write GROUP_MEMBER_CREATE = "group-member-add" Post "/groups/:id/members", "add a member to a group", "1, 4.3", One,
        [group, new_member].fields_of(Scope::Group, "members", Route::Create).again(Again::Refused).shows();
    Write GROUP_MEMBER_UPDATE = "group-member-edit" Put "/groups/:id/members/:user_id", "edit a group's member", "1, 4.3", One,
        [group, user].fields_of(Scope::Group, "members", Route::Edit).shows();
    Write GROUP_MEMBER_DELETE = "group-member-remove" Delete "/groups/:id/members/:user_id", "remove a member from a group", "1, 4.3",
        Unsaid, [group, user, removal].conditional().at_most(60);

    Read MEMBER_LIST = "project-member-list" Get "/projects/:id/members", "list a project's direct members", "1, 4.3", List,
        [project, member_search, direct_members, paging];
    Read MEMBER_LIST_ALL = "project-member-list-all" Get "/projects/:id/members/all",
        "list a project's members, inherited and invited ones too", "1, 4.3", List, [project, member_search, all_members, paging];
    Read MEMBER_GET = "project-member-get" Get "/projects/:id/members/:user_id", "get a project's direct member", "1, 4.3", One,
        [project, user];
    Read MEMBER_GET_ALL = "project-member-get-all" Get "/projects/:id/members/all/:user_id",
        "get a project's member, also an inherited or invited one", "1, 4.3", One, [project, user];
    Write MEMBER_CREATE = "project-member-add" Post "/projects/:id/members", "add a member to a project", "1, 4.3", One,
        [project, new_member].fields("members", Route::Create).again(Again::Refused).shows();
    Write MEMBER_UPDATE = "project-member-edit" Put "/projects/:id/members/:user_id", "edit a project's member", "1, 4.3", One,
        [project, user].fields("members", Route::Edit).shows();
    Write MEMBER_DELETE = "project-member-remove" Delete "/projects/:id/members/:user_id", "remove a member from a project", "1, 4.3",
        Unsaid, [project, user, removal].conditional().at_most(60);

    Read BILLABLE_MEMBER_LIST = "billable-member-list" Get "/groups/:id/billable_members", "list a top-level group's billable members",
        "1, 4.3", List, [group, billable, paging];
    Read BILLABLE_MEMBERSHIPS = "billable-member-memberships" Get "/groups/:id/billable_members/:user_id/memberships",
        "list where below a top-level group a billable member is a member", "1, 4.3", List, [group, user, paging];
    Write BILLABLE_MEMBER_DELETE = "billable-member-remove" Delete "/groups/:id/billable_members/:user_id",
        "remove a billable member from a top-level group and all below", "1, 4.3", Unsaid, [group, user];
    Write GROUP_MEMBER_STATE = "group-member-state" Put "/groups/:id/members/:user_id/state", "change the state of a membership",
        "1, 4.3", One, [group, user, new_state];
    Write GROUP_MEMBER_OVERRIDE = "group-member-override" Post "/groups/:id/members/:user_id/override",
        "let a member's level differ from the directory's", "1, 4.3", One, [group, user].again(Again::Same);
    Write GROUP_MEMBER_OVERRIDE_DELETE = "group-member-override-remove" Delete "/groups/:id/members/:user_id/override",
        "let a member's level follow the directory again", "1, 4.3", One, [group, user];
    Write GROUP_MEMBER_APPROVE = "group-member-approve" Put "/groups/:id/members/:member_id/approve",
        "approve a pending member of a top-level group", "1, 4.3", Unsaid, [group, pending_member];
    Write GROUP_MEMBER_APPROVE_ALL = "group-member-approve-all" Post "/groups/:id/members/approve_all",
        "approve all pending members of a top-level group", "1, 4.3", Unsaid, [group].again(Again::Same);
    Read PENDING_MEMBER_LIST = "pending-member-list" Get "/groups/:id/pending_members", "list a top-level group's pending members",
        "1, 4.3", List, [group, paging];

    Read PROJECT_LIST = "project-list" Get "/projects", "list projects", "2, 4.1", List,
        [listing, order_of_all, of_all_or_a_user, of_all, paging].by_keyset();
    Read USER_PROJECTS = "user-project-list" Get "/users/:user_id/projects", "list the projects in a user's own namespace", "2, 4.1", List,
        [user_or_name, listing, order, of_all_or_a_user, paging];
    Read STARRED_PROJECTS = "starred-project-list" Get "/users/:user_id/starred_projects", "list the projects that a user has starred",
        "2, 4.1", List, [user_or_name, listing, order, paging];
    Read FORK_LIST = "fork-list" Get "/projects/:id/forks", "list the forks of a project", "2, 4.1", List,
        [project, listing, order, paging];

    Read PROJECT_GET = "project-get" Get "/projects/:id", "get a project", "2, 4.2", One, [project, details].at_most(400);
    Read PROJECT_USERS_LIST = "project-user-list" Get "/projects/:id/users", "list the users of a project", "2, 4.2", List,
        [project, project_users, paging];
    Read PROJECT_GROUPS_LIST = "project-group-list" Get "/projects/:id/groups", "list the groups above a project", "2, 4.2", List,
        [project, project_groups, paging];
    Read STARRER_LIST = "project-starrer-list" Get "/projects/:id/starrers", "list the users who have starred a project", "2, 4.2", List,
        [project, starrers, paging];
    Read PROJECT_LANGUAGES = "project-languages" Get "/projects/:id/languages", "get the share of each programming language", "2, 4.2", Map,
        [project];
    Read TRANSFER_LOCATIONS = "project-transfer-location-list" Get "/projects/:id/transfer_locations",
        "list the groups that a project can be transferred to", "2, 4.2", List, [project, locations, paging].since(15, 4);

    Write PROJECT_CREATE = "project-create" Post "/projects", "create a project", "2, 4.3", One,
        [project_path, namespace_id].fields("settings", Route::Create).one_of(&["name", "path"]).again(Again::Refused).shows();
    Write PROJECT_CREATE_FOR_USER = "project-create-for-user" Post "/projects/user/:user_id", "create a project for a user", "2, 4.3", One,
        [user, project_name, project_path, namespace_id].fields("settings", Route::CreateForUser).administrators().again(Again::Refused).shows();
    Write PROJECT_UPDATE = "project-edit" Put "/projects/:id", "edit a project, or upload its avatar", "2, 4.3", One,
        [project, project_path].fields("settings", Route::Edit).shows();

    // The reference calls this a gap (2, 4.7).
    Write PROJECT_TRANSFER = "project-transfer" Put "/projects/:id/transfer", "move a project to another namespace", "supporting", One,
        [project, new_namespace].again(Again::Refused).shows();

    Write PROJECT_FORK = "project-fork" Post "/projects/:id/fork", "fork a project, in the background", "2, 4.4", Unsaid, [project, fork].again(Again::Never);
    Write PROJECT_STAR = "project-star" Post "/projects/:id/star", "star a project", "2, 4.4", One, [project].again(Again::Same).shows().may_be_done();
    Write PROJECT_UNSTAR = "project-unstar" Post "/projects/:id/unstar", "take a star away", "2, 4.4", One, [project].again(Again::Same).shows().may_be_done();
    Write PROJECT_ARCHIVE = "project-archive" Post "/projects/:id/archive", "archive a project", "2, 4.4", One, [project].again(Again::Same).shows();
    Write PROJECT_UNARCHIVE = "project-unarchive" Post "/projects/:id/unarchive", "unarchive a project", "2, 4.4", One, [project].again(Again::Same).shows();
    Write PROJECT_DELETE = "project-delete" Delete "/projects/:id", "delete a project and all that is in it", "2, 4.4", Unsaid,
        [project].conditional().again(Again::Never);
    Write PROJECT_RESTORE = "project-restore" Post "/projects/:id/restore", "restore a project that is marked for deletion", "2, 4.4",
        Unsaid, [project].premium().again(Again::Never);
    Write PROJECT_UPLOAD = "project-upload" Post "/projects/:id/uploads", "upload a file to link to in texts", "2, 4.4", One,
        [project, upload];
    Write SHARE_CREATE = "project-share" Post "/projects/:id/share", "share a project with a group", "2, 4.4", Unsaid, [project].fields("shares", Route::Create).again(Again::Refused);
    Write SHARE_DELETE = "project-unshare" Delete "/projects/:id/share/:group_id", "stop sharing a project with a group", "2, 4.4",
        Nothing, [project, other_group];
    Write IMPORT_MEMBERS = "project-import-members" Post "/projects/:id/import_project_members/:project_id",
        "copy the members of another project", "2, 4.4", Unsaid, [project, source_project].again(Again::Same);
    Write FORK_RELATION_CREATE = "fork-relation-create" Post "/projects/:id/fork/:forked_from_id", "make a project a fork of another",
        "2, 4.4", Unsaid, [project, upstream].again(Again::Refused);
    Write FORK_RELATION_DELETE = "fork-relation-delete" Delete "/projects/:id/fork", "make a fork a project of its own", "2, 4.4", Unsaid,
        [project];
    Write PROJECT_HOUSEKEEPING = "project-housekeeping" Post "/projects/:id/housekeeping", "start the clean-up of a repository", "2, 4.4",
        Unsaid, [project].again(Again::Never);

    Read HOOK_LIST = "hook-list" Get "/projects/:id/hooks", "list hooks", "2, 4.5", List, [project, paging];
    Read HOOK_GET = "hook-get" Get "/projects/:id/hooks/:hook_id", "get a hook", "2, 4.5", One, [project, hook];
    Write HOOK_CREATE = "hook-add" Post "/projects/:id/hooks", "add a hook", "2, 4.5", Unsaid, [project].fields("hooks", Route::Create).shows();
    Write HOOK_UPDATE = "hook-edit" Put "/projects/:id/hooks/:hook_id", "edit a hook", "2, 4.5", Unsaid,
        [project, hook].fields("hooks", Route::Edit).shows();
    Write HOOK_DELETE = "hook-delete" Delete "/projects/:id/hooks/:hook_id", "delete a hook", "2, 4.5", Unsaid,
        [project, hook].conditional();
    Write HOOK_HEADER_DELETE = "hook-header-delete" Delete "/projects/:id/hooks/:hook_id/custom_headers/:key",
        "remove a header of a hook", "supporting", Nothing, [project, hook, header].since(17, 1);
    Write HOOK_VARIABLE_DELETE = "hook-variable-delete" Delete "/projects/:id/hooks/:hook_id/url_variables/:key",
        "remove a variable of a hook's URL", "supporting", Nothing, [project, hook, url_variable];

    Read INTEGRATION_LIST = "integration-list" Get "/projects/:id/integrations", "list active integrations", "supporting", List,
        [project].unpaged();
    Read INTEGRATION_GET = "integration-get" Get "/projects/:id/integrations/:slug", "get an integration", "supporting", One,
        [project, integration];
    // It also creates one.
    Write INTEGRATION_SET = "integration-set" Put "/projects/:id/integrations/:slug", "set up or edit an integration", "supporting", One,
        [project, integration, inheritance].fields("integrations", Route::Create);
    Write INTEGRATION_DELETE = "integration-delete" Delete "/projects/:id/integrations/:slug", "disable an integration", "supporting",
        Nothing, [project, integration];

    Read PUSH_RULE_GET = "push-rule-get" Get "/projects/:id/push_rule", "get the push rule", "2, 4.6", One, [project].premium();
    Write PUSH_RULE_CREATE = "push-rule-add" Post "/projects/:id/push_rule", "add the push rule", "2, 4.6", Unsaid,
        [project].fields("push_rule", Route::Create).premium().again(Again::Refused).shows();
    Write PUSH_RULE_UPDATE = "push-rule-edit" Put "/projects/:id/push_rule", "edit the push rule", "2, 4.6", Unsaid,
        [project].fields("push_rule", Route::Edit).premium().shows();
    Write PUSH_RULE_DELETE = "push-rule-delete" Delete "/projects/:id/push_rule", "delete the push rule", "2, 4.6", Unsaid,
        [project].premium();

    Read PROTECTED_BRANCH_LIST = "protected-branch-list" Get "/projects/:id/protected_branches", "list protected branches",
        "supporting", List, [project, branch_search, paging];
    Read PROTECTED_BRANCH_GET = "protected-branch-get" Get "/projects/:id/protected_branches/:name",
        "get a protected branch or wildcard", "supporting", One, [project, protected_branch];
    Write PROTECTED_BRANCH_CREATE = "protected-branch-add" Post "/projects/:id/protected_branches", "protect a branch or wildcard",
        "supporting", One, [project, new_protection].again(Again::Refused).shows();
    // The service refuses a grant that exists already, and an id that does not exist.
    Write PROTECTED_BRANCH_UPDATE = "protected-branch-edit" Patch "/projects/:id/protected_branches/:name",
        "edit a protected branch or wildcard", "supporting", One,
        [project, protected_branch, changed_protection].since(15, 6).again(Again::Refused).shows();
    Write PROTECTED_BRANCH_DELETE = "protected-branch-delete" Delete "/projects/:id/protected_branches/:name",
        "unprotect a branch or wildcard", "supporting", Nothing, [project, protected_branch];

    Read APPROVALS_GET = "approvals-get" Get "/projects/:id/approvals", "get how merge requests are approved", "supporting", One,
        [project].premium();
    Write APPROVALS_UPDATE = "approvals-edit" Post "/projects/:id/approvals", "edit how merge requests are approved", "supporting", One,
        [project].fields("approvals", Route::Edit).premium().again(Again::Same).shows();
    Read APPROVAL_RULE_LIST = "approval-rule-list" Get "/projects/:id/approval_rules", "list approval rules", "supporting", List,
        [project, paging].premium();
    Read APPROVAL_RULE_GET = "approval-rule-get" Get "/projects/:id/approval_rules/:approval_rule_id", "get an approval rule", "supporting",
        One, [project, approval_rule].premium();
    Write APPROVAL_RULE_CREATE = "approval-rule-add" Post "/projects/:id/approval_rules", "add an approval rule", "supporting", One,
        [project].fields("approval_rules", Route::Create).premium().again(Again::Refused).shows();
    Write APPROVAL_RULE_UPDATE = "approval-rule-edit" Put "/projects/:id/approval_rules/:approval_rule_id", "edit an approval rule",
        "supporting", One, [project, approval_rule].fields("approval_rules", Route::Edit).premium().shows();
    Write APPROVAL_RULE_DELETE = "approval-rule-delete" Delete "/projects/:id/approval_rules/:approval_rule_id", "delete an approval rule",
        "supporting", Nothing, [project, approval_rule].premium();
    Read SCHEDULE_LIST = "pipeline-schedule-list" Get "/projects/:id/pipeline_schedules", "list pipeline schedules", "supporting", List,
        [project, of_schedules, paging];
    Read SCHEDULE_GET = "pipeline-schedule-get" Get "/projects/:id/pipeline_schedules/:pipeline_schedule_id", "get a pipeline schedule",
        "supporting", One, [project, schedule];
    Write SCHEDULE_CREATE = "pipeline-schedule-create" Post "/projects/:id/pipeline_schedules", "create a pipeline schedule", "supporting",
        One, [project].fields("pipeline_schedules", Route::Create).shows();
    Write SCHEDULE_UPDATE = "pipeline-schedule-edit" Put "/projects/:id/pipeline_schedules/:pipeline_schedule_id",
        "edit a pipeline schedule", "supporting", One, [project, schedule].fields("pipeline_schedules", Route::Edit).shows();
    Write SCHEDULE_TAKE = "pipeline-schedule-take" Post "/projects/:id/pipeline_schedules/:pipeline_schedule_id/take_ownership",
        "become the owner of a pipeline schedule", "supporting", One, [project, schedule].again(Again::Same);
    Write SCHEDULE_DELETE = "pipeline-schedule-delete" Delete "/projects/:id/pipeline_schedules/:pipeline_schedule_id",
        "delete a pipeline schedule", "supporting", Nothing, [project, schedule];

    Read MERGE_REQUEST_GET = "merge-request-get" Get "/projects/:id/merge_requests/:merge_request_iid", "get a merge request",
        "supporting", One, [project, merge_request];
    Read NOTE_LIST = "merge-request-note-list" Get "/projects/:id/merge_requests/:merge_request_iid/notes",
        "list the notes of a merge request", "supporting", List, [project, merge_request, of_notes, paging].filtered_after_paging();
    Read NOTE_GET = "merge-request-note-get" Get "/projects/:id/merge_requests/:merge_request_iid/notes/:note_id",
        "get a note of a merge request", "supporting", One, [project, merge_request, note];
    Write NOTE_CREATE = "merge-request-note-create" Post "/projects/:id/merge_requests/:merge_request_iid/notes",
        "write a note on a merge request", "supporting", One, [project, merge_request, new_note].shows();
    Write NOTE_UPDATE = "merge-request-note-edit" Put "/projects/:id/merge_requests/:merge_request_iid/notes/:note_id",
        "edit a note of a merge request", "supporting", One, [project, merge_request, note, note_body].shows();
    Write NOTE_DELETE = "merge-request-note-delete" Delete "/projects/:id/merge_requests/:merge_request_iid/notes/:note_id",
        "delete a note of a merge request", "supporting", Nothing, [project, merge_request, note];

    Read OWN_TOKEN = "own-token" Get "/personal_access_tokens/self", "get the token that is used", "supporting", One, [];
    Read CURRENT_USER = "current-user" Get "/user", "get the user that the token belongs to", "supporting", One, [];
    Read VERSION_GET = "version" Get "/version", "get the release of the service", "supporting", One, [];
    Read USER_FIND = "user-find" Get "/users", "find a user by name", "supporting", List, [username, paging];
    Read USER_GET = "user-get" Get "/users/:user_id", "get a user", "supporting", One, [user];
    Read NAMESPACE_GET = "namespace-get" Get "/namespaces/:id", "get a namespace", "supporting", One, [namespace];
    Read NAMESPACE_FIND = "namespace-find" Get "/namespaces", "find namespaces by a part of their path", "supporting", List,
        [searched_namespace, paging];
    Read GROUP_LIST = "group-list" Get "/groups", "list groups", "supporting", List, [of_groups, top_level, paging];
    Read GROUP_DESCENDANTS = "group-descendant-list" Get "/groups/:id/descendant_groups", "list all groups below a group", "supporting",
        List, [group, of_groups, paging];
    Read GROUP_GET = "group-get" Get "/groups/:id", "get a group", "supporting", One, [group, with_projects];
    Write GROUP_CREATE = "group-create" Post "/groups", "create a group, in another one or by itself", "supporting", One,
        [group_path, parent].fields_of(Scope::Group, "settings", Route::Create).again(Again::Refused).shows();
    Write GROUP_UPDATE = "group-edit" Put "/groups/:id", "edit a group, or upload its avatar", "supporting", One,
        [group].fields_of(Scope::Group, "settings", Route::Edit).shows();
    Write GROUP_TRANSFER = "group-transfer" Post "/groups/:id/transfer", "move a group below another one, or to the top", "supporting",
        One, [group, new_parent].again(Again::Refused).shows();
    Write GROUP_DELETE = "group-delete" Delete "/groups/:id", "delete a group and all that is in it", "supporting", Unsaid,
        [group, at_once].again(Again::Never);
    Write GROUP_RESTORE = "group-restore" Post "/groups/:id/restore", "restore a group that is marked for deletion", "supporting",
        One, [group].premium().again(Again::Never);
    Write GROUP_SHARE_CREATE = "group-share" Post "/groups/:id/share", "share a group with another group", "supporting", One,
        [group].fields_of(Scope::Group, "shares", Route::Create).again(Again::Refused);
    Write GROUP_SHARE_DELETE = "group-unshare" Delete "/groups/:id/share/:group_id", "stop sharing a group with another one",
        "supporting", Nothing, [group, other_group];
    Read GROUP_HOOK_LIST = "group-hook-list" Get "/groups/:id/hooks", "list a group's hooks", "supporting", List, [group, paging].premium();
    Read GROUP_HOOK_GET = "group-hook-get" Get "/groups/:id/hooks/:hook_id", "get a group's hook", "supporting", One, [group, hook].premium();
    Write GROUP_HOOK_CREATE = "group-hook-add" Post "/groups/:id/hooks", "add a hook to a group", "supporting", One,
        [group].fields_of(Scope::Group, "hooks", Route::Create).premium().shows();
    Write GROUP_HOOK_UPDATE = "group-hook-edit" Put "/groups/:id/hooks/:hook_id", "edit a group's hook", "supporting", One,
        [group, hook].fields_of(Scope::Group, "hooks", Route::Edit).premium().shows();
    Write GROUP_HOOK_DELETE = "group-hook-delete" Delete "/groups/:id/hooks/:hook_id", "delete a group's hook", "supporting", Nothing,
        [group, hook].conditional().premium();
    Write GROUP_HOOK_HEADER_DELETE = "group-hook-header-delete" Delete "/groups/:id/hooks/:hook_id/custom_headers/:key",
        "remove a header of a group's hook", "supporting", Nothing, [group, hook, header].premium().since(17, 1);
    Write GROUP_HOOK_VARIABLE_DELETE = "group-hook-variable-delete" Delete "/groups/:id/hooks/:hook_id/url_variables/:key",
        "remove a variable of the URL of a group's hook", "supporting", Nothing, [group, hook, url_variable].premium();
    Read GROUP_INTEGRATION_LIST = "group-integration-list" Get "/groups/:id/integrations", "list a group's active integrations",
        "supporting", List, [group].since(17, 9).unpaged();
    Read GROUP_INTEGRATION_GET = "group-integration-get" Get "/groups/:id/integrations/:slug", "get a group's integration",
        "supporting", One, [group, integration].since(17, 9);
    Write GROUP_INTEGRATION_SET = "group-integration-set" Put "/groups/:id/integrations/:slug",
        "set up or edit an integration of a group", "supporting", One,
        [group, integration, inheritance].fields_of(Scope::Group, "integrations", Route::Create).since(17, 9);
    Write GROUP_INTEGRATION_DELETE = "group-integration-delete" Delete "/groups/:id/integrations/:slug",
        "disable an integration of a group", "supporting", Nothing, [group, integration].since(17, 9);
    Read GROUP_PUSH_RULE_GET = "group-push-rule-get" Get "/groups/:id/push_rule", "get a group's push rule", "supporting", One, [group].premium();
    Write GROUP_PUSH_RULE_CREATE = "group-push-rule-add" Post "/groups/:id/push_rule", "add a push rule to a group", "supporting", One,
        [group].fields_of(Scope::Group, "push_rule", Route::Create).premium().again(Again::Refused).shows();
    Write GROUP_PUSH_RULE_UPDATE = "group-push-rule-edit" Put "/groups/:id/push_rule", "edit a group's push rule", "supporting", One,
        [group].fields_of(Scope::Group, "push_rule", Route::Edit).premium().shows();
    Write GROUP_PUSH_RULE_DELETE = "group-push-rule-delete" Delete "/groups/:id/push_rule", "delete a group's push rule", "supporting",
        Nothing, [group].premium();
    Read GROUP_PROTECTED_BRANCH_LIST = "group-protected-branch-list" Get "/groups/:id/protected_branches",
        "list the branches that a top-level group protects", "supporting", List, [group, branch_search, paging].premium().since(17, 6);
    Write GROUP_PROTECTED_BRANCH_CREATE = "group-protected-branch-add" Post "/groups/:id/protected_branches",
        "protect a branch or wildcard in all projects of a top-level group", "supporting", One,
        [group, new_protection].premium().since(17, 6).again(Again::Refused).shows();
    Write GROUP_PROTECTED_BRANCH_UPDATE = "group-protected-branch-edit" Patch "/groups/:id/protected_branches/:name",
        "edit a branch or wildcard that a top-level group protects", "supporting", One,
        [group, protected_branch, changed_protection].premium().since(17, 6).again(Again::Refused).shows();
    Write GROUP_PROTECTED_BRANCH_DELETE = "group-protected-branch-delete" Delete "/groups/:id/protected_branches/:name",
        "unprotect a branch or wildcard in the projects of a top-level group", "supporting", Unsaid,
        [group, protected_branch].premium().since(17, 6);
    Read GROUP_PROJECTS = "group-project-list" Get "/groups/:id/projects", "list a group's projects", "supporting", List,
        [group, of_subgroups, listing, order, paging];
    Read RUNNER_LIST = "runner-list-own" Get "/runners", "list the runners of the token's user", "supporting", List, [runner_filter, paging];
    Read RUNNER_LIST_ALL = "runner-list-all" Get "/runners/all", "list all runners, for administrators", "supporting", List,
        [runner_filter, paging];
    Read MEMBER_ROLE_LIST = "member-role-list" Get "/member_roles", "list the custom roles, for administrators", "supporting", List,
        [].unpaged();
    Read GROUP_MEMBER_ROLE_LIST = "group-member-role-list" Get "/groups/:id/member_roles", "list a top-level group's custom roles",
        "supporting", List, [group].unpaged();
}
