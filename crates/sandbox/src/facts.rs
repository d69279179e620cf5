//! What the sandbox holds to be true of the service, and how it knows.
//!
//! One row a rule: a name, the source, a statement of one line. The contract tests refer to rules
//! by these names, and a test holds that each rule is tested. Where a rule is inferred, or the
//! reference and the real service disagree, the row names the dialect switch that makes the sandbox
//! answer the other way: a field of [`Profile`](super::Profile), see
//! [`Profile::dialects`](super::Profile::dialects).

use std::fmt;
use std::fmt::Write as _;

/// How a rule is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactSource {
    /// The reference says so: chapter and section.
    Reference(&'static str),
    /// The reference is silent; the real service does so.
    Service,
    /// The service's own code answered so, at release 18.9. It outranks the reference for that
    /// release; where the reference says otherwise, the rule names the release from which it holds.
    Code,
    /// Neither says; the sandbox chose.
    Inferred,
}

impl fmt::Display for FactSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reference(section) => write!(formatter, "reference {section}"),
            Self::Service => formatter.write_str("service"),
            Self::Code => formatter.write_str("code of 18.9"),
            Self::Inferred => formatter.write_str("inferred"),
        }
    }
}

/// One rule.
#[derive(Clone, Copy, Debug)]
pub struct Fact {
    /// What tests call it.
    pub name: &'static str,
    /// How it is known.
    pub source: FactSource,
    /// The rule, in one line.
    pub says: &'static str,
    /// The dialect that answers the other way.
    pub switch: Option<&'static str>,
}

impl fmt::Display for Fact {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({}): {}", self.name, self.source, self.says)
    }
}

impl Fact {
    const fn or(mut self, switch: &'static str) -> Self {
        self.switch = Some(switch);
        self
    }
}

const fn reference(name: &'static str, section: &'static str, says: &'static str) -> Fact {
    Fact { name, source: FactSource::Reference(section), says, switch: None }
}

const fn service(name: &'static str, says: &'static str) -> Fact {
    Fact { name, source: FactSource::Service, says, switch: None }
}

const fn code(name: &'static str, says: &'static str) -> Fact {
    Fact { name, source: FactSource::Code, says, switch: None }
}

const fn inferred(name: &'static str, says: &'static str, switch: &'static str) -> Fact {
    Fact { name, source: FactSource::Inferred, says, switch: Some(switch) }
}

/// All rules, as `undrift sandbox --facts` prints them: a line each, then the counts by source.
#[must_use]
pub fn table() -> String {
    let name_width = FACTS.iter().map(|fact| fact.name.len()).max().unwrap_or(0);
    let source_width = FACTS.iter().map(|fact| fact.source.to_string().len()).max().unwrap_or(0);
    let mut text = String::new();
    let mut counts = [0; 4];
    for fact in FACTS {
        counts[match fact.source {
            FactSource::Reference(_) => 0,
            FactSource::Service => 1,
            FactSource::Code => 2,
            FactSource::Inferred => 3,
        }] += 1;
        let switch = fact.switch.map(|switch| format!(" [dialect {switch}]")).unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:name_width$}  {:source_width$}  {}{switch}",
            fact.name,
            fact.source.to_string(),
            fact.says
        );
    }
    let disputed = FACTS.iter().filter(|fact| fact.switch.is_some()).count();
    let [reference, service, code, inferred] = counts;
    let _ = writeln!(
        text,
        "\n{} rules: {reference} from the reference, {service} from the real service, {code} from its code at 18.9, {inferred} inferred; {disputed} have a dialect switch",
        FACTS.len()
    );
    text
}

/// Every rule, grouped by what it is about.
pub const FACTS: &[Fact] = &[
    // Callers and calls
    service("authentication", "no token where one is needed, or a wrong one, is 401"),
    service("token-spellings", "a token comes as PRIVATE-TOKEN or as Authorization: Bearer"),
    service("token-blank", "a blank token is none: the caller is anonymous"),
    service("token-scope", "a token whose scope is too small gets 403 insufficient_scope"),
    service("blocked-user", "a blocked user gets 403 everywhere"),
    service("sudo", "administrators act for others with sudo; anybody else gets 403"),
    service("unseen", "what the caller may not see is 404 for every method, with the words for what is not there"),
    service("role", "who sees a thing but has too low a role gets 403"),
    service("unknown-route", "an unknown route is 404 under `error`"),
    code("unknown-method", "a method that a route does not have is 404, as an unknown route; OPTIONS is 204 with Allow"),
    code("route-format", "a format may follow a path that ends in a word: variables.json; an id takes it as its own"),
    service("hidden", "what a flag or the tier hides is 404 Not Found under `message`, not under `error` as an unknown route"),
    service("path-case", "full paths are found in any case"),
    service("parameter-forms", "parameters come in the query, as a form, as JSON or as multipart"),
    service("parameter-media-type", "a body of another media type is 415"),
    service("parameter-missing", "all missing parameters are named in one 400 under `error`; null counts as sent"),
    service("parameter-values", "a value outside its list is 400: does not have a valid value; if none may be missing, so is one that is"),
    service("parameter-type", "a value of the wrong type is 400: is invalid; if it also has a list: x is invalid, x does not have a valid value"),
    code("parameter-json", "JSON that cannot be read is 400: Invalid JSON format"),
    code("parameter-integer", "a JSON number with a fraction loses it where an integer is wanted"),
    service("rate-limit", "above the allowance of a user requests are 429 in plain text, with Retry-After"),
    service("rate-limit-headers", "answers tell the allowance of the user: RateLimit-Limit, -Observed, -Remaining, -Reset, -Name"),
    service("rate-limit-routes", "the largest hosted service answers 400 reads of single projects and 60 removals of members a minute and user"),
    service("rate-limit-operation", "above the allowance of an operation requests are 429 in JSON, with Retry-After"),
    service("conditional-delete", "DELETE with an If-Unmodified-Since that has passed is 412"),
    // Lists
    service("page-headers", "a page carries X-Page, X-Per-Page, X-Next-Page, X-Prev-Page, X-Total, X-Total-Pages and Link"),
    service("page-link-host", "addresses in Link have the host that the client used"),
    service("page-parameters", "page and per_page are integers; per_page is 20 unless said or negative, 100 at most, and not 0"),
    service("head", "HEAD answers with the headers of GET"),
    reference("keyset-id", "1, 8", "keyset paging works for order_by=id only"),
    service("keyset-end", "keyset pages are not counted, and end with an empty page without a link"),
    reference("offset-limit", "1, 8", "offset paging of projects ends at 50,000"),
    reference(
        "project-list-parameters",
        "2, 4.1",
        "each list takes its own parameters and orders: another order is 400, other parameters are ignored",
    ),
    reference("project-list", "2, 4.1", "lists of projects show what the caller may see, narrowed by each parameter"),
    reference("simple-form", "1, 2.8", "lists have the simple form for anonymous callers and with simple=true"),
    reference("user-projects", "2, 4.1", "a user's projects are those in the own namespace"),
    reference("private-profile", "2, 4.1", "others find no projects of a user whose profile is private"),
    reference("starred-projects", "2, 4.1", "starred projects are listed as far as the caller sees them"),
    reference("custom-attributes", "2, 4.1", "with_custom_attributes shows custom attributes to administrators only"),
    service("user-unknown", "lists of an unknown user are 404 User Not Found"),
    // Projects
    reference("project-fields", "1, 2.8", "the full object has every field that the reference lists"),
    service("project-unlisted", "it also has the settings that can be sent and that the list leaves out").or("unlisted_attributes_hidden"),
    service("project-owner", "`owner` of a personal project has id, name and created_at (reference 1, 2.8), and what every user has; from 16.5 on, what every user has")
        .or("owner_in_brief"),
    code("project-public", "a public project is readable without a token, in the simple form from 18.9 on"),
    code("project-ci-settings", "settings of CI/CD, the token of runners and how it was imported are read by Maintainers; keep_latest_artifact by everybody before 17.1"),
    code("project-code-fields", "default_branch, ci_config_path, forks_count, readme_url and merge_requests_template are read by who reads the code"),
    code("project-feature-fields", "templates, counts and links of issues and merge requests, and service_desk_address, are missing to who cannot use the feature"),
    code("project-feature-access", "the deprecated boolean of a feature says whether the caller can use it; private merge requests and registries are for Reporters"),
    code("project-mirror-fields", "settings of a pull mirror are read while mirror is true"),
    code("project-storage-read", "repository_storage is read by administrators"),
    code("permissions-read", "permissions are told where projects are read, but not in lists of groups; import_error of single projects that are read, made or edited"),
    reference("permissions", "1, 2.8", "permissions tell the direct and the inherited role, each null without one"),
    service("permissions-anonymous", "without a caller there are no permissions"),
    reference("tier-attributes", "1, 2.8", "attributes above the tier are dropped and not shown"),
    reference("project-names", "2, 4.3", "name and path default from each other; a path is made in lower case with dashes"),
    service("project-name-rules", "a name begins with a letter, digit, emoji or `_`, and has no other marks than . + - and blanks"),
    reference("project-path-rules", "1, 8", "a path has no leading, trailing or consecutive special characters; pages of a project are reserved"),
    service("project-taken", "a taken name or path is 400 with a list a field"),
    service("project-name-or-path", "creating with neither name nor path is 400"),
    service("project-namespace", "creating in a group without the right is 400"),
    reference("project-readme", "2, 4.3", "default_branch on create needs initialize_with_readme"),
    service("project-create-more", "POST also takes ci_default_git_depth, enforce_auth_checks_on_uploads, keep_latest_artifact (both before 18.9), issue_branch_template, merge_commit_template, squash_commit_template, service_desk_enabled and suggestion_commit_message")
        .or("create_as_the_reference"),
    service("project-storage", "an unknown repository_storage is 400 on create and edit, for who may set it; an edit names repository_storage_moves"),
    service("project-default-branch", "a default branch that is null or blank leaves the one that is there"),
    reference("project-readme-import", "1, 7", "initialize_with_readme with an import URL fails: not a git repository"),
    service("project-import-url", "a project with an import URL is imported in the background"),
    service("project-import-contents", "a public project that is imported from its own service, and one that is a template, brings its repository along"),
    service("project-template", "an unknown template is 400"),
    code("import-unreachable", "an import URL of no scheme that can be fetched from is 422"),
    code("create-null", "a create that sends auto_cancel_pending_pipelines or auto_devops_deploy_strategy as null is 400, in the words of the database"),
    reference("project-custom-template", "2, 4.3", "with use_custom_template a project starts as another one, or by any name, of which it needs one; Premium"),
    reference("create-for-user", "2, 4.3", "administrators create projects for users; name is required"),
    reference("create-for-user-right", "1, 5", "nobody else creates projects for users"),
    reference("project-edit", "2, 4.3", "PUT changes the attributes that it names"),
    service("project-edit-nothing", "PUT without any known attribute is 400"),
    service("branches", "the branches of a repository are listed, searched and read, each with its commit"),
    service("branch-create", "a branch starts at a branch, tag or commit; a taken name, one that Git refuses, or an unknown start is 400"),
    service("branch-delete", "a branch is removed, but not the default one: 405"),
    service("branch-protect", "PUT of a branch with /protect, with developers_can_push and developers_can_merge, and with /unprotect, are old forms of its protection"),
    service("branch-protected", "who may not push to a protected branch can neither make it nor write to it; only maintainers remove it"),
    service("code-read", "code is read by who sees the project, in a private one from Reporter on"),
    service("tags", "tags are made of a branch, tag or commit, listed, read and removed"),
    service("tag-order", "tags are listed by the time of their commit, the newest first; order_by and sort change that"),
    service("tag-refused", "a taken tag, a name that Git refuses, or an unknown target is 400"),
    service("tag-protected", "a protected tag is made by who is granted it, and removed by maintainers"),
    service("project-import-status", "clients poll how an import stands; without one it is none"),
    service("project-statistics", "how often a project was fetched is shown from Developer on"),
    service("access-request", "whoever sees a group or project may ask for access, once, and takes it back; who asks is no member"),
    code("access-request-refused", "no request where they are off, or by a member (403), or twice (400)"),
    code("access-request-level", "approving with a level that there is not is 201, and keeps nothing"),
    service("access-request-decide", "who manages members lists, approves (201, as Developer unless said otherwise) and denies requests"),
    service("default-branch-of-empty", "an empty project has the default branch that its group, or the topmost one, prefers when it is made, else main; to another one it is 400")
        .or("empty_has_no_branch"),
    service("default-branch", "the default branch of a repository changes to branches that are there; to others it is 400"),
    service("visibility-right", "only owners change the visibility"),
    service("visibility-group", "nothing is more visible than its group"),
    service("twin-fields", "an access level and its deprecated boolean follow each other"),
    code("edit-unsaved", "PUT of null where there has to be a value, or of a topic that is too long or not ASCII, is 200 with the body null, and nothing is saved"),
    code("edit-null", "null clears some settings, sets others back or to false, and leaves the merge method alone; a blank flag or number is null"),
    code("edit-enough", "settings of the pull mirror alone are no edit: 400 with a list of those of which one is needed, before rights are looked at"),
    code("edit-visibility", "a Maintainer who sends the visibility, even unchanged, gets 403; null is private"),
    code("mirror-pull", "from 17.6 on a pull mirror is read and set for itself, with credentials that no answer has; a project that is none is 400"),
    code("mirror-address", "mirror: true needs an import_url, but where a project is created; who turns it on pulls"),
    code("import-url-read", "import_url is read without its credentials"),
    code("edit-words", "what a model refuses is named with its part: project_setting, ci_cd_settings, project_feature or container_expiration_policy"),
    code("levels-repository", "merge requests and CI/CD are not open to more people than the repository: 400"),
    code("ci-config-path", "ci_config_path with a leading slash or .. is 400"),
    code("title-regex", "an expression for titles of merge requests that RE2 does not know is 400"),
    code("merge-trains", "merge_trains_enabled reads false while merge_pipelines_enabled is; from 18.9 on a create takes neither"),
    code("topics-shared", "a topic that is there in another spelling, anywhere, is taken in that; a comma parts two, null empties the list"),
    code("cleanup-expression", "a policy of the registry has name_regex alone: name_regex_delete is dropped, and the rest of the policy is saved"),
    code("cleanup-refused", "an enabled policy needs name_regex; null for enabled or cadence, and what RE2 does not know, are 400"),
    service("cleanup-next-run", "the cleanup of the registry runs next one cadence after its policy was set"),
    service("topics-sorted", "topics are answered sorted, each once, also as tag_list"),
    reference("avatar", "2, 4.3", "an avatar is sent as multipart and answered with its address; a blank value removes it"),
    service("avatar-served", "the picture of a project, group or user is at its address, for everybody"),
    reference("requirements-public", "2, 4.3", "requirements_access_level may be public, before 18.9").or("requirements_never_public"),
    service("project-delete", "DELETE is 202, and the project is gone"),
    reference("project-restore", "1, 3", "where deletion waits, a project is marked and can be restored"),
    service("project-delete-path", "a mark appends -deleted-ID to name and path and archives; -deletion_scheduled-ID from 18.0 on, and at 18.9 it no longer archives"),
    code("project-delete-marked", "deleting or archiving what is marked for deletion is 400, and so is restoring what is not"),
    code("project-delete-permanently", "from 15.11 on a marked project is removed at once with permanently_remove and its full path, which has the suffix"),
    code("delete-below", "deleting what is in a group that is marked is 202 and changes nothing"),
    code("restore-taken", "where its path was taken meanwhile, what is restored gets five characters more; where only its name was, it is 400"),
    service("deletion-waits", "deletion waits with Premium from 16.0 on, with every licence from 18.0 on"),
    code("list-updated", "from 15.10 on lists of all projects narrow by updated_after and updated_before, with order_by=updated_at alone: else 400"),
    code("empty-lists", "what the sandbox never has is an empty list to who may read it, such as issues and pipelines"),
    code("group-lists", "lists of groups narrow by visibility (16.10), marked_for_deletion_on (17.1), active (18.0) and archived (18.2)"),
    code("member-tokens", "tokens of a project or group are 401 to who may not read them"),
    service("list-active", "from 18.0 on lists of projects narrow by `active`: neither archived nor marked, nor in a group that is marked"),
    service("restore-unmarked", "restoring what is not marked is 400"),
    service("project-moved", "a former path redirects reads to the id and refuses writes with 405").or("former_paths_answer"),
    reference("archive", "2, 4.4", "archive and unarchive answer with the project"),
    reference("archive-twice", "2, 4.4", "archiving what is archived changes nothing").or("archive_twice_refused"),
    reference("archive-right", "1, 5", "only owners and administrators archive"),
    service("archived-refuses", "an archived project refuses contents with 403: uploads and files, these with words of their own"),
    service("archived-writable", "settings, hooks, members and push rules of an archived project can be changed").or("archived_read_only"),
    service("archived-readable", "settings and hooks of an archived project are readable"),
    service("archived-variables", "before 18.9, variables of an archived project are closed, also for reading"),
    code("archived-variables-open", "from 18.9 on, variables of an archived project are as those of others"),
    code("archived-schedules", "pipeline schedules of an archived project are read, not changed: 403"),
    code("ci-disabled", "variables and pipeline schedules are closed while CI/CD is disabled, also for reading"),
    code("archived-closed", "an archived project refuses to everybody, with 403, its transfer (from 18.4 on) and changes of labels and approvals (from 18.9 on)"),
    service("star", "star and unstar answer 201 with the project").or("star_answers_ok"),
    reference("star-twice", "1, 7", "starring and unstarring what is so already is 304"),
    reference("starrers", "1, 2.11", "starrers are listed with the time"),
    reference("languages", "2, 4.2", "languages are an object, empty without contents"),
    reference("project-groups", "2, 4.2", "the groups of a project are its ancestors"),
    reference("project-users", "2, 4.2", "the users of a project can be searched"),
    reference("transfer-locations", "2, 4.2", "transfer locations are the groups that would take the project"),
    service("transfer", "PUT transfer moves the project to a namespace"),
    service("transfer-to-group", "administrators also move a project through the group that takes it"),
    service("repository-file", "the first file makes a repository, whose branch becomes the default"),
    service("repository-file-read", "a file is read at a branch, tag or commit, in JSON and in the headers of GET and HEAD"),
    service("repository-file-raw", "the bytes of a file, of the default branch unless a ref is named"),
    service("repository-file-base64", "content in base64 is read as far as it is base64; nothing of it is refused"),
    service("repository-tree", "the files and folders at a branch, tag or commit are listed, also those below a folder"),
    service("repository-file-change", "each change of a file is a commit to a branch that is there; last_commit_id guards it"),
    service("repository-file-start", "start_branch of a change of a file makes its branch, which must be new; author_name and author_email say whose the commit is"),
    service("repository-file-refused", "a file that is there is not made, one that is not is neither changed nor removed: 400"),
    service("repository-readme", "a project that is created with a readme has it, and a fork has what its upstream has"),
    reference("upload", "1, 2.11", "an upload answers alt, url, full_path and markdown"),
    reference("upload-file", "2, 4.4", "an upload needs the field `file`"),
    service("upload-names", "file names are made plain: no folders, no special characters"),
    service("housekeeping", "housekeeping is 201, and 409 while a lease is held"),
    code("housekeeping-job", "housekeeping answers the id of its job"),
    code("storage", "administrators see where the repository of a project is"),
    code("security-settings", "security settings are there from 16.11 on: developers see them, maintainers switch the protection of pushes, others get 401"),
    code("licenses", "the licences that a project can start with are for who sees it"),
    code("import-archive", "a project is imported from an archive with its path, and a file or URL"),
    // More around projects and groups
    code("milestones", "milestones are read by every user who sees the project or group, and written by reporters; state_event closes and opens one"),
    code("environments", "environments are written by developers; the tier follows from the name, and only one that has stopped is removed"),
    code("protected-environments", "the protection of an environment goes by its name, is for maintainers, and says who deploys and approves"),
    code("approval-count", "required_approval_count of a protected environment is refused: 422"),
    code("deploy-tokens", "a deploy token shows its secret once, is not edited, and has scopes out of a list; those of a group are made by its owners"),
    code("status-checks", "external status checks are for maintainers, others get 401; names and addresses are unique: 422"),
    code("bot-addresses", "a token of a bot has no addresses from which it was used, a personal one has"),
    // Forks
    reference("fork", "1, 3", "a fork is there at once and imported in the background"),
    service(
        "fork-target",
        "an unknown target, or one that the caller does not see, is 404 Namespace Not Found; one without right Target Namespace Not Found",
    ),
    code("fork-copies", "a fork takes the description, the access levels, the templates of commits and a few settings of CI; with the others it starts as a new project does"),
    code("fork-right", "from 16.0 on a fork into a group is for its maintainers: 409"),
    service("fork-guest", "a private project is forked by its Reporters and above; for others it is 404"),
    service("fork-clash", "a taken name or path of a fork is 409").or("later_errors"),
    reference("fork-list", "2, 4.1", "forks are listed"),
    service("fork-disabled", "where forking is disabled a fork is 404"),
    code("fork-self-target", "mr_default_target_self is for forks only: 400, but false is taken"),
    service("fork-relation", "relating is 201, again 409, to itself 400; removing is 204, again 304"),
    reference("fork-relation-right", "2, 4.4", "fork relations are for owners and administrators").or("maintainer_relates_forks"),
    // Invited groups
    service("share", "sharing a project or group is 201, with the link or the group; again 409"),
    service("share-unknown", "sharing a project with a group that is not there, or not seen, is 404 Not Found without a number"),
    service("share-own", "a project is not shared with a group above it: 409"),
    service("share-lock", "where the group has share_with_group_lock its projects are not shared: 400"),
    service(
        "share-lock-below",
        "the lock reaches all groups below; only an owner of the locked parent takes it away there",
    ),
    service(
        "share-hierarchy",
        "prevent_sharing_groups_outside_hierarchy of the top group hides groups of other hierarchies: 404 Not Found",
    ),
    service("share-owner", "only owners share a project as owner, or end that: 403"),
    code("share-role", "from 17.7 on the invitation of a group names a member_role_id: of a project when it is made, of a group in its list"),
    service("share-expired", "an invitation that has ended is gone, and can be made again"),
    service("share-group-right", "sharing a group without being its owner is 404 Not Found"),
    service("unshare-group-right", "ending the invitation of a group without being its owner is 204, and the invitation stays"),
    service("shared-with-groups-seen", "invited groups are listed to who sees them, in single answers and in lists"),
    service("share-level", "a level outside the list is 400"),
    reference("shared-with-groups", "1, 2.8", "a project lists the groups that it is shared with"),
    service("share-access", "members of an invited group have access, capped by the invitation"),
    reference("unshare", "2, 4.4", "ending it is 204"),
    service("unshare-absent", "ending what is not shared is 404 Group Link Not Found"),
    reference("import-members", "2, 4.4", "importing members is 200; from 18.9 on it is 201").or("import_members_created"),
    reference("import-members-unknown", "2, 4.4", "importing members from a project that is not there is 404"),
    // Protected branches
    service("protected-branch-read", "protected branches are read by maintainers, from 16.0 on by whoever reads the code, as far as there is a repository").or("developers_read_protections"),
    code("protected-branch-search", "search finds a part of the name, in any case; fewer than three characters have to be all of it"),
    service("protected-branch-absent", "a name that is not protected is 404 Not found; names are compared with their case"),
    service("protected-branch-name", "a name may be a wildcard, may have slashes, and need not be a branch"),
    service("protected-branch-missing", "protecting without a name is 400, with a blank one 422 in sentences"),
    service("protected-branch-taken", "protecting again is 409 with the name"),
    service("protected-branch-levels", "levels are 0, 30, 40 or 60, to unprotect not 0: else 400"),
    service("protected-branch-defaults", "what is not said is for maintainers, without force pushes"),
    service("protected-branch-lists", "single levels and the lists add up; an empty list is none"),
    service("protected-branch-free", "without a licence the lists are ignored, and no answer has users, groups or code owners"),
    service("protected-branch-shape", "users, groups and deploy keys read back with a level, too"),
    service("protected-branch-user", "a user who is not a member of the project, in any way, is 422"),
    service("protected-branch-group", "a group that is not invited to the project itself as a developer or higher is 422"),
    service("protected-branch-list-type", "lists that are not arrays of objects are 400, all in one text"),
    code("protected-branch-rows", "an element without a grantee is for a level, 40 unless it says another; rows that one call gives twice are kept twice"),
    code("protected-branch-keys", "from 17.5 on pushing, and creating tags, can be granted to a deploy key that pushes to the project; else 422"),
    code("protected-branch-order", "what is not protected is 404, also to who may not change protections; only then 403"),
    code("protected-branch-archived", "from 18.9 on nobody changes the protected branches of an archived project: 403"),
    service("protected-branch-update", "PATCH changes what it names: elements without id are added, with id changed, with _destroy removed"),
    service("protected-branch-update-levels", "PATCH does not know the single levels: 200 without effect"),
    service("protected-branch-update-twice", "PATCH with a grant that is stored already is 422, also if the same call removes that"),
    service("protected-branch-update-null", "PATCH with null is 400: is empty"),
    service("protected-branch-row-absent", "PATCH of a grant that is not there is 404 Not found"),
    service("protected-branch-code-owners", "PATCH without code_owner_approval_required sets it to false")
        .or("code_owner_approval_kept"),
    code("protected-branch-unprotect", "who may unprotect, may also change; nobody else does, no administrator either, nor protects what they could not unprotect: 403"),
    service("protected-branch-delete", "DELETE of a protected branch is 204"),
    service("protected-branch-default", "the first branch of a project is protected by the service, as its group, else the service, says"),
    service("protected-branch-default-late", "it does so after the request, and not where there is a protection by then"),
    service("protected-branch-leaving", "a member or group that leaves a project loses its grants to push and merge"),
    // Protected tags
    service("protected-tag-role", "protected tags are for maintainers, also to read; 403 without a token"),
    service("protected-tag-shape", "a protected tag has a name and who may create it, and no id"),
    code("protected-tag-level", "the level to create is 0, 30, 40 or 60; 40 unless a level or a list says otherwise"),
    service("protected-tag-list", "users and groups may create what allowed_to_create names; Premium, ignored below").or("tag_lists_ignored"),
    service("protected-tag-refused", "a taken or blank name, and somebody without access, are 422 in sentences"),
    service("protected-tag-update", "there is no route that changes a protected tag"),
    service("protected-tag-absent", "a name that is not protected is 404 Not found"),
    service("protected-tag-delete", "DELETE of a protected tag is 204"),
    // Approvals
    service("approval-tier", "approvals are Premium: 404 below"),
    code("approval-read", "maintainers read how to approve; who may open merge requests reads rules, in a project that is archived or has none maintainers"),
    service("approval-settings", "how merge requests are approved is one object: POST changes what it names, 201; nothing is 400"),
    code("approval-before-merge", "approvals_before_merge is that of the project, also a negative one; null is 400"),
    code("approval-before-merge-rule", "approvals_before_merge, when it changes, is the number of the rule All Members, for anybody; beside another such rule POST approvals is 201 null, with the number saved"),
    code("approval-null", "null sets a flag of approvals to false, merge_requests_author_approval to true; selective_code_owner_removals is 500"),
    code("approval-twins", "require_password_to_approve and require_reauthentication_to_approve are one flag"),
    code("approval-selective", "selective_code_owner_removals beside reset_approvals_on_push is 400"),
    code("approval-newer-form", "merge_request_approval_setting is the same object in a newer form, which allows what the older one prevents"),
    code("approval-archived", "from 18.9 on POST approvals of an archived project is 403"),
    service("approval-locked", "what the service locks is dropped and shows the service's value; administrators store it; rules are 403 then"),
    service("approval-rule-shape", "a rule shows users, groups and protected branches as objects, and who is eligible"),
    service("approval-rule-any", "a rule for which no id of a user or group is sent, from 18.9 on nor a name of a user, is any_approver unless it says its type; a project has one"),
    code("approval-rule-report", "a rule that is called License-Check or Coverage-Check is about reports, from 18.9 on only one that says so; Coverage-Check is reserved for it"),
    service("approval-rule-refused", "a taken or blank name, and less than 0 or more than 100 approvals, are 400 by field, all at once"),
    code("approval-rule-order", "the rule for anybody comes first in a list, those about reports last"),
    service("approval-rule-dropped", "users who are not members, groups that the caller does not see and branches of other projects are dropped"),
    service("approval-rule-spellings", "users and groups are sent with or without _ids, users also by usernames"),
    code("approval-rule-update", "PUT keeps the lists that it does not name; one that is sent empty, or as null, is emptied"),
    service("approval-rule-hidden", "groups that the caller does not see stay, unless remove_hidden_groups is sent with others"),
    code("approval-rule-all-branches", "before 18.9, PUT without applies_to_all_protected_branches sets it to false; where it is true all branches are shown"),
    service("approval-rule-branch-gone", "a rule loses a branch whose protection ends"),
    service("approval-rule-absent", "an unknown rule is 404 Not found"),
    service("approval-rule-delete", "DELETE of a rule is 204"),
    // Labels
    service("label-read", "labels are read by every user who sees the project or group"),
    code("label-off", "a project that has neither issues nor merge requests lists no labels, and takes none: 403"),
    service("label-write", "labels are written by reporters and above"),
    service("label-shape", "a label has the fields of its place: in a project also priority and is_project_label"),
    service("label-list", "the labels of a project are its own and those of all groups above, by title; include_ancestor_groups=false leaves its own group"),
    service("label-list-group", "the labels of a group are its own and those above; include_descendant_groups and only_group_labels=false add what is below"),
    service("label-found", "a label is found by its id, else by its title, also one of a group above"),
    service("label-absent", "a label that is not there is 404 Label Not Found, for DELETE also to who may not remove labels"),
    service("label-taken", "a title that the project or group has, or a group above, is 409; renaming to a taken one is 400"),
    service("label-title", "a title is not blank and has no comma: 400 under `title`, for a blank one with both complaints"),
    service("label-color", "a colour is #RGB or #RRGGBB, which stay as sent, or a name of CSS, which becomes digits in capitals; null is that of a label without one"),
    code("label-promote", "PUT promote makes a project's label one of its group, in place of those with its title in the group's projects; one that the group has stays"),
    service("label-update", "PUT of a label changes what it names; nothing is 400; null takes a priority or a description away"),
    service("label-inherited", "through a project the labels of its own group are changed and removed, with a role in the group; through a group only its own"),
    service("label-old-form", "PUT and DELETE of the list of labels change and remove the one that label_id or name says; not exactly one of them is 400"),
    service("label-delete", "DELETE of a label is 204"),
    // Badges
    service("badge-read", "badges are read by everybody who sees the project or group, also without a token; name narrows the list"),
    service("badge-write", "badges of a project are written by maintainers, those of a group by owners"),
    service("badge-shape", "a badge has a name or null, two URLs, what they come to in a project, and its kind"),
    service("badge-list", "a project shows the badges of all groups above among its own, in the order in which they were made, by their kind"),
    service("method-override", "a POST with X-HTTP-Method-Override is what that says"),
    service("badge-preview", "a badge that is not kept is shown with its placeholders filled in"),
    service("badge-inherited", "a badge of a group is not changed or removed through a project: 404"),
    service("badge-same", "badges may be alike: nothing of one is taken"),
    code("badge-url", "a URL of a badge that is not http(s) is 400, with its field; blanks at its ends go"),
    service("badge-update", "PUT of a badge changes what it names"),
    service("badge-absent", "an unknown badge is 404 Not found"),
    service("badge-delete", "DELETE of a badge is 204"),
    // Push mirrors
    service("mirror-role", "push mirrors are for maintainers, also to read; who else sees the project gets 401"),
    code("mirror-shape", "a mirror has its URL, two flags that are false and keep_divergent_refs that is null unless said otherwise, and how its last update went"),
    code("mirror-url", "the credentials in a URL are replaced in every answer, but not the user git; a scheme that no mirror has, also one in capitals, and what is local are 400"),
    service("mirror-url-fixed", "a URL in PUT of a mirror is ignored"),
    service("mirror-same", "two mirrors may have one URL"),
    code("mirror-flags", "PUT of a mirror changes what it names; a null flag is false, keep_divergent_refs null"),
    service("mirror-method", "from 16.10 on, a mirror has auth_method: password or ssh_public_key"),
    code("mirror-branches", "from 16.2 on, with Premium, mirror_branch_regex picks branches, instead of only_protected_branches: both in one call are 400, also as false and blank, and so is what is no RE2 syntax"),
    service("mirror-absent", "an unknown mirror is 404 Not found"),
    service("mirror-delete", "DELETE of a mirror is 204"),
    // Deploy keys
    service("deploy-key-role", "deploy keys are for maintainers, also to read"),
    code("deploy-key-shape", "a key has a title, its text with one word of the comment, two fingerprints, an end or null, and whether it can push"),
    service("deploy-key-again", "POST of a key that the project uses is 201 with the key as it is"),
    service("deploy-key-joined", "POST of a key that another project of the caller uses joins it: with its title, and the can_push of the call"),
    service("deploy-key-taken", "POST of another text of a known key, or of one out of sight, is 400: its fingerprint is taken").or("later_errors"),
    code("deploy-key-wrong", "what is no key is 400 with three texts, and so are a blank title and an end that has passed"),
    service("deploy-key-enable", "a key that the caller can see is enabled by id; the answer does not tell can_push"),
    code("deploy-key-update", "PUT of a key changes title and can_push, at least one; null for can_push is 500; the title of a key that others use stays, except for administrators"),
    service("deploy-key-instance", "administrators list the keys of all projects, each with the projects that it may push to"),
    code("deploy-key-absent", "an unknown key is 404 Not found, to DELETE and enable 404 Deploy key Not Found"),
    service("deploy-key-delete", "DELETE of a key is 204; the key ends with the last project that uses it"),
    // Pipeline schedules
    code("schedule-read", "schedules are read by everybody who sees the project, with a token; scope narrows the list to active or inactive ones"),
    code("schedule-write", "schedules are created by developers, who is less gets 403; an unknown one is 404 also to them"),
    service("schedule-shape", "a schedule is active and in UTC unless said otherwise; it tells its owner and when it runs next; description, ref and cron are required"),
    service("schedule-same", "two schedules may have one description"),
    code("schedule-ref", "ref reads back as sent; from 17.0 on a short one has to be that of one branch or tag, else 400 is ambiguous, and reads back whole"),
    code("schedule-limit", "a project has at most ten schedules: 400"),
    code("schedule-null", "null leaves the time zone and active of a new schedule as they are; in PUT the time zone cannot be blank, and active is null"),
    code("schedule-inputs", "from 17.11 on, inputs of a schedule are set by name, removed with destroy, and shown to its owner and to maintainers"),
    code("schedule-cron", "a cron that is none, or never comes, and an unknown time zone are 400 with their fields; six fields begin with seconds; blanks at the ends of a cron go"),
    code("schedule-owner", "only its owner and administrators change a schedule: 403 also to maintainers"),
    service("schedule-take", "a maintainer becomes the owner: 201, or 200 when it is so already"),
    service("schedule-update", "PUT of a schedule changes what it names"),
    service("schedule-delete", "its owner and maintainers remove a schedule: 204"),
    service("schedule-absent", "an unknown schedule is 404 Pipeline Schedule Not Found, an unknown variable 404 Pipeline Schedule Variable Not Found"),
    service("schedule-variables", "variables stand in a schedule that is read alone, for its owner and maintainers"),
    service("schedule-variable-write", "variables are set one by one, by the owner: 201, 200, and 202 with what was removed; a taken or odd key is 400"),
    // Freeze periods
    code("freeze-role", "freeze periods are read by reporters, while CI/CD is disabled by maintainers, and written by maintainers"),
    code("freeze-shape", "a freeze period has a start and an end in the form of cron, without blanks at their ends, and a time zone, which must be sent"),
    service("freeze-cron", "a start, end or time zone that is none is 400 with its field"),
    service("freeze-update", "PUT of a freeze period changes what it names"),
    service("freeze-absent", "an unknown freeze period is 404 Not found"),
    service("freeze-delete", "DELETE of a freeze period is 204"),
    // Variables
    reference("variable-shape", "1, 2.2", "a variable has seven fields; type env_var, flags false, scope * unless said otherwise"),
    reference("variable-list", "1, 4.1", "variables are listed"),
    reference("variable-scopes", "1, 4.1", "variables of one key differ in their scope"),
    service(
        "variable-taken",
        "a taken pair of key and scope is 400 under `key`, with the key in parentheses (reference 1, 7 has the form without)",
    ),
    service("variable-ambiguous", "a key of several variables without a filter is 409"),
    reference("variable-filter", "1, 4.1", "filter[environment_scope] picks one of several variables"),
    service("variable-absent", "a key, or a filter, that fits nothing is 404 Variable Not Found"),
    reference("variable-value-required", "1, 4.1", "PUT of a variable needs its value").or("optional_variable_value"),
    inferred("variable-update", "PUT of a variable keeps the flags that it does not name", "put_resets_omitted_flags"),
    service("variable-delete", "DELETE of a variable is 204"),
    code("variable-conditional", "DELETE of a variable of a group, not of a project, heeds If-Unmodified-Since"),
    code("variable-blanks", "a key and a scope lose the blanks at their ends, and must not be blank; a description stays blank, a value null"),
    code("variable-null", "null for masked and raw is 400, for protected and variable_type 500"),
    reference("variable-key", "1, 2.2", "a key has letters, digits and _ only"),
    reference("variable-key-length", "1, 8", "a key has at most 255 characters"),
    service("variable-masked", "a masked value has eight characters or more of a plain alphabet, in one line"),
    inferred("variable-masked-raw", "a masked raw value may have any characters but blanks", "raw_masks_plainly"),
    // Hooks
    reference("hook-list", "2, 4.5", "hooks are listed"),
    reference("hook-url-required", "2, 4.5", "POST and PUT of a hook need its URL"),
    code("hook-url", "a URL of a hook whose scheme is not http or https in lower case, with more than 8192 characters, or local, is 422; blanks at its ends go"),
    code("hook-branch-filter", "an invalid branch filter is 422: a name or wildcard, from 17.2 on, as branch_filter_strategy says, an expression, or nothing for all branches"),
    code("hook-shape", "unset texts and confidential_note_events of a hook are null; repository_update_events is no parameter; lists of projects leave out url_variables (from 16.7 on) and custom_headers"),
    code("hook-texts", "texts of a hook stay as sent, also blank ones"),
    code("hook-refused", "what is wrong with a hook is 422 with one text under `error`"),
    code("hook-null", "a null flag of a hook is 500, but for tag_push_events, confidential_note_events and enable_ssl_verification"),
    code("hook-put-url", "from 18.9 on, PUT of a project's hook needs no URL, but something: 400 No parameters provided"),
    code("hook-delete-late", "from 18.9 on, DELETE of a project's hook that is not there is 404 Not found"),
    code("hook-secrets", "url_variables and custom_headers of a hook are shown by key; PUT adds to those that are there; an odd key, a blank value or more than 20 are 422"),
    code("hook-secrets-reset", "a hook that calls another URL loses its headers, those of the same call too, and its variables if one of them stays"),
    code("hook-secret-routes", "one header or variable of a hook is set and removed: 204, one that is not there 404"),
    service("hook-test", "a hook can be tested, by the event that its last segment names"),
    service("hook-defaults", "a hook is for pushes, with verification, unless said otherwise"),
    inferred("hook-update", "PUT of a hook keeps the flags that it does not name", "put_resets_omitted_flags"),
    service("hook-absent", "an unknown hook is 404 Not found"),
    service("hook-delete", "DELETE of a hook is 204"),
    reference("hook-delete-absent", "2, 4.5", "DELETE of a hook is idempotent").or("absent_delete"),
    reference("hook-token-hidden", "1, 2.9", "the token of a hook is never returned"),
    reference("hook-token-reset", "2, 4.5", "a changed URL resets the token of a hook"),
    service("ids-once", "ids are never used again"),
    // Push rules
    reference("push-rule-tier", "2, 4.6", "push rules are Premium: 404 below").or("unlicensed_forbidden"),
    code("push-rule-none", "no push rule is 200 null"),
    service("push-rule-nothing", "a push rule of no parameter is 400"),
    service("push-rule-defaults", "what is not said is null, false or 0"),
    code("push-rule-unset", "deny_delete_tag, commit_committer_check, reject_unsigned_commits and reject_non_dco_commits are null until they are set; in a project the last three also while they are off"),
    code("push-rule-null", "the other flags are not null: 500; a size that is null or blank is 400"),
    code("push-rule-regex", "from 18.2 on an expression that is not RE2 syntax is 400 with the fault"),
    service("push-rule-limits", "a size that is negative or above 2147483647 and a regex above 511 characters are 400, together"),
    service("push-rule-exists", "a second push rule is 422").or("later_errors"),
    service("push-rule-update", "PUT changes what it names"),
    service("push-rule-update-absent", "PUT without a push rule is 404").or("later_errors"),
    service("push-rule-delete", "DELETE of a push rule is 204"),
    reference("push-rule-delete-absent", "2, 4.6", "DELETE of a push rule is idempotent").or("absent_delete"),
    // Hooks and push rules of groups
    service("group-hook-tier", "hooks of groups are Premium: 404 below"),
    service("group-hook-role", "hooks of groups are for owners, also to read"),
    service("group-hook-shape", "a hook of a group has group_id and more events: of subgroups, from 18.2 on of projects, from 18.9 on of members"),
    service("group-hook-update", "PUT of a group's hook needs no URL, but something: 400 No parameters provided"),
    service("group-hook-absent", "an unknown hook of a group is 404 Not found, also to DELETE"),
    service("group-hook-limit", "a group has at most fifty hooks: 422"),
    service("group-push-rule-none", "no push rule of a group is 404, and so is one for which the tier or the role is too low"),
    code("group-push-rule-role", "maintainers of a group read and change its push rule"),
    service("group-push-rule-shape", "a push rule of a group does not say whose it is"),
    service("group-push-rule-exists", "a second push rule of a group is 422").or("later_errors"),
    service("group-push-rule-delete", "DELETE of a group's push rule is 204, without one 404"),
    service("group-push-rule-copied", "a new project gets a copy of the push rule of the next group above"),
    // Members
    service("member-anonymous", "members are read with a token only, also those of what is public: else 401"),
    reference("member-list", "1, 4.3", "members are the direct ones; query narrows them"),
    reference("member-get", "1, 4.3", "a direct member can be read"),
    reference("members-all", "1, 4.3", "all members are each once, with the highest level, invited ones capped"),
    reference("member-state-filter", "1, 4.3", "from Premium on, state narrows the list of all members"),
    reference("member-fields", "1, 2.3", "a member has the fields that the reference lists, and no other"),
    code("member-later-fields", "administrators are shown a member's address from 16.9 on; the state of the membership is there from 18.9 on"),
    code("member-created-by", "a member says who added it, also itself; who came with a new group, and a bot, was added by nobody"),
    service("member-seats", "show_seat_info tells who uses a seat"),
    reference("member-add", "1, 4.3", "adding answers the member"),
    reference("member-tasks", "1, 4.3", "tasks and their project need each other; their flag is off, so they are only checked"),
    code("member-add-list", "several ids are added with one status for all, and reasons by user; unknown ones are left out, and who is a member gets the level"),
    service("member-unknown-user", "adding an unknown user is 404 User Not Found"),
    service("member-level", "a level outside the list is 400"),
    service("member-owner-grant", "maintainers grant no owner: 403").or("maintainer_grants_owner"),
    service("member-higher", "nobody changes a member above the own level"),
    service("member-past", "an expiry in the past is 400"),
    code("member-expired", "a membership ends with its last day, and that may be today"),
    service("member-twice", "adding a member again is 409"),
    reference("member-level-required", "1, 4.3", "PUT of a member needs the level"),
    inferred("member-expiry-kept", "PUT of a member without expires_at keeps it", "put_clears_expiry"),
    service("member-expiry-cleared", "a blank expires_at clears it"),
    service("member-inherited", "a direct level below the highest inherited one is 400, with that level and its group"),
    service("member-leaves", "a member may leave"),
    code("member-absent", "who is not a direct member is 404 Not found, also to who could not remove it"),
    code("member-username", "from 17.1 on a member is added by username too, as it is spelled; with user_id besides it is 400"),
    code("member-minimal", "the level 5 is for groups at the top only: 400 with two reasons"),
    code("member-order", "members come in the order in which they were added"),
    code("member-role-unknown", "from 15.9 on PUT of a member with a role that is not there is 400"),
    code("expiry-spellings", "an expiry is a text, year first or last, whatever divides it; a number is 400"),
    reference("member-remove", "1, 4.3", "removing from a group removes from what is below it"),
    inferred("last-owner", "the last owner of a group stays as it is, also when only its expiry would change, and so does the owner of a personal project: 403", "last_owner_bad_request"),
    reference("personal-owner", "1, 2.1", "the owner of a personal project has level 50"),
    reference("billable", "1, 4.3", "billable members are those of the whole hierarchy"),
    reference("billable-invited", "1, 2.4", "members of invited groups are billable too, as group_invite, and not removable"),
    code("billable-activity", "billable members have a last activity, and no login where nobody signs in; from 18.9 on they say who is the last owner, and to administrators the address"),
    reference("billable-memberships", "1, 4.3", "their direct memberships are listed"),
    code("billable-indirect", "from 18.9 on their memberships of invited groups are listed apart"),
    reference("billable-remove", "1, 4.3", "removing one removes every membership in the hierarchy"),
    service("hierarchy", "hierarchy operations on a subgroup, or without right, are 400"),
    reference("member-state", "1, 3", "an awaiting member has no access until made active"),
    service("member-state-unknown", "a state for an unknown user is 404, for somebody without memberships 422"),
    reference("pending", "1, 2.6", "awaiting members are listed as pending, and so are people invited without an account"),
    code("invitations", "people are invited by e-mail; whoever gets an account with that address is a member; another invitation changes the first"),
    code("invitation-edit", "PUT changes the level and the expiry of an invitation; one that is not there is 404 Not Found"),
    code("invitation-refused", "an invitation needs a level, and an address that could be one, or ids as a text"),
    service("approve", "approve and approve_all are 204"),
    reference("override", "1, 4.3", "the override is set and removed, by POST, PUT and DELETE; from 18.9 on it needs a directory").or("override_needs_directory"),
    // Imports
    reference("import", "1, 4.2", "an import answers id, name, full_path and full_name at once"),
    service("import-target", "a blank target_namespace, or anything else that is required, is 400"),
    reference("import-stages", "1, 4.2", "optional stages are an object of booleans"),
    service("import-taken", "a taken name or path is 422, under `errors`"),
    service("import-right", "a target without right is 422, for extserver 401, under `errors`"),
    service("import-failed", "what fails in the background has the status failed and says why in import_error"),
    reference("import-cancel", "1, 4.2", "a running import is canceled"),
    reference("import-cancel-late", "1, 7", "what is not running is not canceled: 400"),
    reference("import-cancel-unknown", "1, 7", "an unknown import is 404"),
    reference("gists", "1, 7", "gists are imported in the background: 202, meanwhile 422"),
    reference("gists-refused", "1, 7", "a token that is blank or starts with `invalid` is 401, one that starts with `rate-limited` 429"),
    reference("gists-flag", "1, 9", "importing gists is behind a flag that is off by default"),
    reference("import-server", "1, 4.2", "an import from a server goes to the personal namespace unless said otherwise"),
    code("import-address", "an import from a server is not from this host, and its parameters are checked before the caller: 400"),
    code("import-right-later", "from 16.0 on importing into a group is for its maintainers"),
    code("import-strategy", "from 16.5 on timeout_strategy is optimistic or pessimistic"),
    service("import-names", "clients know imports by the real names of the two hosts"),
    // Merge requests
    service("merge-request", "a merge request is seen by who sees the project, in a private one by reporters; others, and without one, 404 Merge request Not Found"),
    service("merge-request-level", "merge_requests_access_level: disabled hides merge requests from all, private from who is no member"),
    service("note-shape", "a note says whose it is, what of, and whether the service wrote it"),
    service("note-list", "notes come the newest first; order_by, sort and activity_filter change that"),
    service("note-hidden", "notes that the caller may not read are taken out of a list after it was cut into pages: pages are short, and the total counts them"),
    service("note-internal", "an internal note is for reporters: nobody else reads or writes one"),
    service("note-write", "who reads a merge request comments on it, with a token; DELETE is 204"),
    service("note-locked", "where a discussion is locked, or the project archived, nobody writes notes but, in a locked one, members: 403"),
    service("note-own", "a note is changed and removed by its author and by maintainers; one that the service wrote by nobody"),
    service("note-body", "a body is not blank and has at most 1,000,000 characters: 400 with Note {…}; PUT with a blank one 400 body is empty"),
    service("note-commands", "a line that is a command is not kept; a body of commands alone is 202 and makes no note"),
    service("note-time", "owners say when a note was made; from others that is ignored"),
    service("note-limit", "a merge request has at most 5,000 notes"),
    service("note-absent", "an unknown note is 404 Not found, one that the caller may not read 404 Note Not Found"),
    // Around the reference
    service("group", "groups are created, found, listed and removed; the creator is owner"),
    service("group-forms", "lists have a short form of groups; alone they have more, and the answers to creating, sharing and moving have no projects"),
    code("group-keys", "a group shows more from later releases on; what concerns its owners, the top of a hierarchy or administrators only there"),
    service("group-delete", "DELETE of a group is 202; where deletion waits it is marked and can be restored, and until 18.0 keeps its path"),
    code("group-delete-path", "from 18.0 on a mark appends -deletion_scheduled-ID to name and path of a group: its former path is 404, and free"),
    service("group-delete-marked", "deleting a group that is marked is 400, and so is restoring one that is not"),
    service("group-delete-permanently", "a marked subgroup is removed at once with permanently_remove and its full path"),
    service("group-administrators", "administrators ask for the custom attributes of groups, and in lists for statistics"),
    service("group-list", "lists show the groups that the caller belongs to and those above; all_available, owned, min_access_level and top_level_only change that"),
    service("group-create-right", "owners create groups below, maintainers too unless subgroup_creation_level is owner; at the top whoever may create groups"),
    service("group-create-projects", "project_creation_level says who creates projects in a group"),
    service("group-create-refused", "what is wrong with a new group is 400 with one text: Failed to save group {:path=>[...]}"),
    code("group-words", "from 17.7 on project_creation_level may be owner and administrator; 18.9 has no disabled_with_override"),
    code("group-null", "null and a blank value unset flags of a group and a default branch, and so does a name that Git refuses; two_factor_grace_period and limits of downloads must have a value"),
    code("group-protection", "PUT of default_branch_protection sets the whole default_branch_protection_defaults, which itself leaves the number; POST does not"),
    code("group-merge-checks", "allow_merge_on_skipped_pipeline of a group takes only_allow_merge_if_pipeline_succeeds, when it is changed"),
    code("group-domains", "allowed_email_domains_list is of the top group only, and has domains that not everybody is in"),
    code("group-cascade", "math_rendering_limits_enabled and duo_features_enabled of a group that does not say so are those of the next group above; only the call that unsets one shows null"),
    code("group-path", "from 18.9 on a path of a group has letters and digits with single special characters in between; null for a name makes it the path"),
    code("group-settles", "a project without lfs_enabled and auto_devops_enabled of its own has those of its groups; show_diff_preview_in_email is off where a group has it off"),
    code("group-first-branch", "a new project starts with the default_branch of its groups; an empty one shows what they say now"),
    code("group-runners-project", "where the runners of a group are not enabled, new projects have none; where they are disabled_and_unoverridable, shared_runners_enabled is 400"),
    code("group-visibility-lowered", "a project that is created more visible than its group is as visible as that"),
    code("group-membership-lock", "below a group with membership_lock, adding a member to a project is 405 to everybody"),
    code("group-approvals", "merge_request_approval_setting of a project is what it and the group at the top allow together; the first change of a group sets what it does not name to false; only top groups have one"),
    code("group-invited", "from 17.2 and 17.4 on, invitations are listed from both ends"),
    code("group-archive", "from 18.9 on owners archive a group with all below it, where nobody creates projects then; twice is 422"),
    service("group-restricted", "a restricted visibility is 400 to anybody but administrators"),
    service("group-defaults", "a new group has the visibility that the service says, and no description"),
    service("group-depth", "a group has at most twenty levels above it"),
    service("group-edit", "PUT changes what it names, also nothing; null clears what has no value unless it is set"),
    service("group-edit-refused", "what is wrong with a changed group is 400 with a list a field; it is no less visible than what is in it"),
    service("group-dropped", "settings above the tier, the role or the place of a group are dropped, some when it is created"),
    service("group-addresses", "ip_restriction_ranges are of the top group only; a blank text clears them, null leaves them"),
    service("group-templates", "file_template_project_id is shown to who sees the project, unless there is none; a blank value removes it, and so does the end of the project"),
    service("group-runners", "shared_runners_setting is not readable, and reaches all groups and projects below")
        .or("runners_setting_shown"),
    service(
        "group-projects",
        "a group that is read or changed shows its projects and those shared with it; with_projects=false hides them",
    ),
    service("group-settings", "the settings of a group are kept, as far as the tier has them; so is its avatar"),
    service("group-default-protection", "a group without a default_branch_protection of its own shows that of the service"),
    service("group-runners-token", "only owners of a group are shown its runners_token, when it is read or edited"),
    service("group-variables", "a group has variables as a project has, for its owners; PUT needs no value"),
    service("group-variable-absent", "a key, or a filter, that fits nothing is 404 GroupVariable Not Found"),
    service("group-variable-scopes", "scopes of a group's variables are Premium: below, they are dropped, and a second variable of a key is taken"),
    service("group-variable-update", "PUT of a group's variable finds it by its key alone: of several, any one is changed").or("group_variable_filter"),
    service("group-taken", "a taken path of a group is 400; at the top a name may be there twice"),
    service("group-rename", "what is below a renamed group follows it; its former path is 404"),
    service("namespace", "namespaces are found by id; others are 404 Namespace Not Found"),
    service("user", "callers learn who they are"),
    reference("user-avatar", "1, 2.3", "the address of a user's avatar is a text: of a picture that was sent, or of one drawn elsewhere from the e-mail address"),
    code("user-brief", "the short form of a user tells from 16.5 on whether it is locked, from 18.9 on its public address"),
    code("user-profile", "others are shown the profile of a user, without what only the user and administrators see; of one who is blocked not even when it was created"),
    code("user-for-administrators", "administrators alone are shown is_admin, who made a user, and whether it takes a seat; of a single one its highest role too"),
    code("user-unconfirmed", "who is made without skip_confirmation has no confirmed_at, and is active"),
    service("user-anonymous", "users are read by id with a token only: else 403"),
    code("user-create", "administrators create and remove users, with a password or a way to one; a taken e-mail is 409, one that is none 400"),
    code("user-change", "administrators change, filter, block and ban users; who was active lately is not deactivated: 403"),
    code("user-acts", "an act that changes nothing answers false, null or true; one that the state of the user forbids is 403; nobody blocks themselves"),
    code("user-search", "others than administrators find nobody who is blocked or banned, and addresses only if they are public; what a search finds comes by name"),
    service("user-settings", "the settings of a user are kept"),
    service("user-administrators", "administrators are shown the id of a user's namespace, and a note"),
    code("token-scopes", "a token has scopes out of a list (400), and not none (422)"),
    service("token-manage", "tokens are listed without their secret, and revoked, after which they are inactive"),
    service("bot-tokens", "a token of a project or group is of a bot, which is a member there until the token is revoked"),
    service("group-transfer", "a group moves below another, or to the top, with all below it; what does not go is 400 with the reason"),
    service("group-transfer-visibility", "what moves below a less visible group becomes so"),
    service("group-transfer-owner", "a group that comes to the top without an owner gets the caller"),
    service("look-up", "groups are searched, also for shared projects; whether a namespace exists can be asked"),
    service("user-memberships", "administrators list the memberships of a user"),
    service("health", "/-/health, /-/readiness and /-/liveness tell whoever waits that the service is up"),
    service("version", "version, licence and the own token can be read"),
    service("application-settings", "administrators read and change the settings of the service"),
    service("background-jobs", "administrators see that no background job is busy"),
    service("release-attributes", "an attribute of a project or group that is newer than the release is neither taken nor shown"),
    service("release-twins", "where a later release replaced an attribute, each write of one sets the other, and the new one wins"),
    service("release-emails", "from 16.3 on (groups: 16.6), emails_disabled shows what holds together with the groups above, emails_enabled the own value; only owners change them"),
    service("release-owners", "the role that may override variables becomes, or stops to be, owner by an owner only; so does the removal of pipelines"),
    code("release-packages", "the level of packages follows packages_enabled when an edit changes it, by the visibility; nothing follows the level"),
    service("release-variables", "variables have a description from 16.2 on, and can be hidden when they are created from 17.4 on"),
    service("release-hidden", "a hidden variable is masked, its value is null in every answer, and it stays both"),
    service("release-hooks", "hooks have a name and a description from 17.1 on, a template from 16.10 on, and more events"),
    service("release-planner", "the level 15 is there from 17.7 on, and only owners give it"),
    service("release-push-rules", "push rules have more flags from 16.7 and 17.1 on; one that is off is null"),
    service("nothing-there", "what is not made here is listed as nothing"),
    service("templates", "templates of pipelines are listed and read without a token"),
    service("conditional-read", "a GET that names the ETag of its answer is 304"),
    service("slashes", "doubled and trailing slashes of a path do not count"),
    service("bare-body", "a body without a type is a form, and null has no parameters"),
    service("response-headers", "every answer has X-Request-Id, X-Runtime, Cache-Control, and nosniff"),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::Profile;

    #[test]
    fn names_are_unique_and_switches_are_those_of_the_profile() {
        let names: BTreeSet<_> = FACTS.iter().map(|fact| fact.name).collect();
        assert_eq!(names.len(), FACTS.len());
        let named: BTreeSet<_> = FACTS.iter().filter_map(|fact| fact.switch).collect();
        let switches: BTreeSet<_> = Profile::dialects().into_iter().map(|(name, _)| name).collect();
        assert_eq!(named, switches);
        for fact in FACTS {
            assert!(
                fact.source != FactSource::Inferred || fact.switch.is_some(),
                "{fact} has no other way"
            );
        }
    }

    #[test]
    fn the_table_ends_with_its_counts() {
        let text = table();
        assert_eq!(text.lines().count(), FACTS.len() + 2);
        let counts = text.lines().last().unwrap_or_default();
        assert!(counts.starts_with(&format!("{} rules: ", FACTS.len())), "{counts}");
    }
}
