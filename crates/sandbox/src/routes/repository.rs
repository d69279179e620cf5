//! Branches and tags of a repository. The reference does not describe repositories. This module
//! follows the observed behaviour of the real service. The sandbox has no Git objects: see
//! [`Repository`].

use super::prelude::*;

pub(super) const ROUTES: &[Route] = &[
    get("/projects/{id}/repository/branches", list_branches),
    post("/projects/{id}/repository/branches", |call| create_ref(call, BRANCHES)),
    get("/projects/{id}/repository/branches/{branch}", |call| show_ref(call, BRANCHES)),
    delete("/projects/{id}/repository/branches/{branch}", |call| remove_ref(call, BRANCHES)),
    get("/projects/{id}/repository/tags", list_tags),
    post("/projects/{id}/repository/tags", |call| create_ref(call, TAGS)),
    get("/projects/{id}/repository/tags/{tag_name}", |call| show_ref(call, TAGS)),
    delete("/projects/{id}/repository/tags/{tag_name}", |call| remove_ref(call, TAGS)),
    // The older operations that protect branches.
    put("/projects/{id}/repository/branches/{branch}/protect", protect),
    put("/projects/{id}/repository/branches/{branch}/unprotect", unprotect),
];

/// The project of a call that reads code. Everybody who sees the project may read its code, except
/// guests of a private project.
pub(super) fn readable_project(call: &Call<'_>) -> Result<Project> {
    let project = call.project()?;
    refuse_if(
        !call.may_use_feature(&project, "repository_access_level")?,
        ErrorResponse::forbidden,
    )?;
    Ok(project)
}

/// The commit that a call makes.
pub(super) fn new_commit(call: &Call<'_>, message: &str) -> Commit {
    let author = call.caller.as_ref();
    Commit {
        message: message.to_owned(),
        author_name: author.map_or("undrift", |user| &user.name).to_owned(),
        author_email: author.map_or("", |user| &user.email).to_owned(),
        created_at: call.time_text().to_owned(),
        ..Commit::default()
    }
}

/// The message of the first commit.
const INITIAL_MESSAGE: &str = "Initial commit";

impl Repository<'_> {
    /// Creates the contents of a new project that is not empty. They are a copy of the repository
    /// of `source_project_id`, or one commit.
    pub(super) fn create_contents(
        self,
        source_project_id: Option<i64>,
        has_readme: bool,
    ) -> Result<()> {
        if let Some(id) = source_project_id {
            return Ok(self.copy_from(id)?);
        }
        let text = format!("# {}\n", self.project.name);
        let file = CommitEdit { path: "README.md", content: Some((text.as_bytes(), false)) };
        let files = &[file][..usize::from(has_readme)];
        let commit = new_commit(self.call, INITIAL_MESSAGE);
        Ok(self.commit(&self.default_branch()?, commit, files)?)
    }

    /// Creates a branch that a seed declares, without protection. The first branch becomes the
    /// default branch.
    pub(crate) fn add_seed_branch(self, branch: &str) -> Result<()> {
        if self.find_ref(BRANCHES, branch)?.is_some() {
            return Ok(());
        }
        if let Some(head) = self.resolve_commit(&self.default_branch()?)? {
            return Ok(self.set_branch(branch, &head.id)?);
        }
        self.commit(branch, new_commit(self.call, INITIAL_MESSAGE), &[])?;
        self.set_first_branch(branch)
    }

    /// Makes the branch of a project's first commit the default branch.
    pub(super) fn set_first_branch(self, branch: &str) -> Result<()> {
        let Self { call, project } = self;
        call.set_column("projects", project.id, "empty_repo", false)?;
        let mut attributes = project.attributes(call.db)?;
        attributes.insert("default_branch".to_owned(), branch.into());
        Ok(project.save_attributes(call.db, &attributes, call.time_text())?)
    }

    /// Refuses a new default branch that does not exist.
    pub(super) fn check_default_branch(self, former_branch: &str, branch: &str) -> Result<()> {
        let exists = branch == former_branch || self.find_ref(BRANCHES, branch)?.is_some();
        refuse_if(!exists, || {
            let text = format!("Could not change HEAD: branch '{branch}' does not exist");
            ErrorResponse::field_error("base", text)
        })
    }

    /// The name of the default branch. An empty project also has such a name, although the branch
    /// does not exist.
    pub(super) fn default_branch(self) -> Result<String> {
        let attributes = self.project.attributes(self.call.db)?;
        let name = attributes.get("default_branch").and_then(Value::as_str);
        Ok(name.unwrap_or("main").to_owned())
    }

    /// True if the caller may push to a branch.
    pub(super) fn may_push(self, branch: &str) -> Result<bool> {
        self.may_perform_any(branch, &[ProtectedAction::Push])
    }

    /// True if the caller may perform one of these actions on a branch. A protected branch needs a
    /// grant. Other branches need the level developer.
    fn may_perform_any(self, branch: &str, actions: &[ProtectedAction]) -> Result<bool> {
        let Some(branch_grants) = self.branch_grants(branch)? else {
            return Ok(self.call.caller_level_in_project(self.project)? >= DEVELOPER);
        };
        let matching_grants = branch_grants.iter().filter(|grant| actions.contains(&grant.action));
        grants::is_granted_to_caller(self.call, self.project, matching_grants)
    }

    /// The grants of all protections that apply to a branch; `None` if the branch is not protected.
    fn branch_grants(self, branch: &str) -> Result<Option<Vec<Grant>>> {
        let protections = self.project.branch_protections(self.call, branch)?;
        let grants = protections.iter().map(|protection| protection.grants(self.call.db));
        let grants = grants.collect::<Result<Vec<_>, _>>()?.concat();
        Ok((!protections.is_empty()).then_some(grants))
    }

    /// The URL of a page of the project.
    fn page_url(self, page: &str, name: &str) -> String {
        format!("{}/{}/-/{page}/{name}", self.call.base_url, self.project.full_path)
    }

    /// A commit as the service shows it.
    fn commit_json(self, commit: &Commit) -> Value {
        json!({
            "id": commit.id,
            "short_id": commit.id.get(..8),
            "created_at": commit.created_at,
            "parent_ids": commit.parent.iter().collect::<Vec<_>>(),
            "title": commit.message.lines().next().unwrap_or_default(),
            "message": commit.message,
            "author_name": commit.author_name,
            "author_email": commit.author_email,
            "authored_date": commit.created_at,
            "committer_name": commit.author_name,
            "committer_email": commit.author_email,
            "committed_date": commit.created_at,
            "trailers": {},
            "web_url": self.page_url("commit", &commit.id),
        })
    }

    /// A branch or tag as the service shows it.
    fn ref_json(self, kind: RefKind, git_ref: &GitRef) -> Result<Value> {
        let commit = self.commit_json(&git_ref.commit);
        if kind == TAGS {
            let is_protected = !self.project.tag_grants(self.call, &git_ref.name)?.is_empty();
            return Ok(json!({
                "name": git_ref.name,
                "message": git_ref.message,
                "target": git_ref.commit.id,
                "commit": commit,
                "release": null,
                "protected": is_protected,
                "created_at": (!git_ref.message.is_empty()).then_some(&git_ref.created_at),
            }));
        }
        let grants = self.branch_grants(&git_ref.name)?;
        let has_developer_grant = |action| {
            let mut grants = grants.iter().flatten().filter(|grant| grant.action == action);
            grants.any(|grant| grant.grantee() == Grantee::Level(DEVELOPER))
        };
        Ok(json!({
            "protected": grants.is_some(),
            "developers_can_push": has_developer_grant(ProtectedAction::Push),
            "developers_can_merge": has_developer_grant(ProtectedAction::Merge),
            "name": git_ref.name,
            "commit": commit,
            "merged": false,
            "default": git_ref.name == self.default_branch()?,
            "can_push": self.may_push(&git_ref.name)?,
            "web_url": self.page_url("tree", &git_ref.name),
        }))
    }

    /// The branch or tag in the path.
    fn requested_ref(self, kind: RefKind) -> Result<GitRef> {
        self.require_ref(kind, self.call.segment(kind.param_name))
    }

    fn require_ref(self, kind: RefKind, name: &str) -> Result<GitRef> {
        self.find_ref(kind, name)?.or_not_found(kind.type_name)
    }
}

fn list_branches(call: &Call<'_>) -> Result<Answer> {
    let project = readable_project(call)?;
    let search = call.text("search")?.unwrap_or_default();
    let pattern = call.text("regex")?.map(|pattern| Regex::new(&pattern)).transpose();
    let pattern = pattern.map_err(|_| ErrorResponse::invalid_parameter("regex"))?;
    let repository = Repository { call, project: &project };
    let mut branches = repository.list_refs(BRANCHES)?;
    branches.retain(|branch| {
        matches_search(&branch.name, &search)
            && pattern.as_ref().is_none_or(|pattern| pattern.is_match(&branch.name))
    });
    page::list_objects(call, &branches, |branch| repository.ref_json(BRANCHES, branch))
}

/// True if a name matches a search text. `^text` matches at the start of the name, `text$` matches
/// at its end, and any other text matches anywhere. If a text has both `^` and `$`, only `^` is
/// special.
fn matches_search(name: &str, search: &str) -> bool {
    let name = name.to_lowercase();
    let search = search.to_lowercase();
    match (search.strip_prefix('^'), search.strip_suffix('$')) {
        (Some(start), _) => name.starts_with(start),
        (None, Some(end)) => name.ends_with(end),
        (None, None) => name.contains(&search),
    }
}

fn show_ref(call: &Call<'_>, kind: RefKind) -> Result<Answer> {
    let project = readable_project(call)?;
    let repository = Repository { call, project: &project };
    Answer::ok(&repository.ref_json(kind, &repository.requested_ref(kind)?)?)
}

fn create_ref(call: &Call<'_>, kind: RefKind) -> Result<Answer> {
    let project = call.require_project(DEVELOPER)?;
    call.require(&[kind.param_name, "ref"])?;
    let name = call.text(kind.param_name)?.unwrap_or_default();
    let reference = call.text("ref")?.unwrap_or_default();
    let message = if kind == TAGS { call.text("message")? } else { None };
    let message = message.unwrap_or_default();
    let [invalid_text, taken_text, missing_text, protected_text] = if kind == TAGS {
        [
            "Tag name invalid".to_owned(),
            format!("Tag {name} already exists"),
            format!("Target {reference} is invalid"),
            "You are not allowed to create this tag as it is protected.".to_owned(),
        ]
    } else {
        [
            "Branch name is invalid".to_owned(),
            "Branch already exists".to_owned(),
            format!("Invalid reference name: {reference}"),
            format!(
                "You are not allowed to create protected branches on this project. '{name}' is protected"
            ),
        ]
    };
    refuse_if(!is_valid_ref_name(&name), || invalid_text.into())?;
    let repository = Repository { call, project: &project };
    refuse_if(repository.find_ref(kind, &name)?.is_some(), || taken_text.into())?;
    let commit = repository.resolve_commit(&reference)?.ok_or(missing_text)?;
    let may_create = if kind == TAGS {
        let grant_lists = project.tag_grants(call, &name)?;
        grant_lists.is_empty()
            || grants::is_granted_to_caller(call, &project, grant_lists.iter().flatten())?
    } else {
        repository.may_perform_any(&name, &[ProtectedAction::Push, ProtectedAction::Merge])?
    };
    refuse_if(!may_create, || protected_text.into())?;
    match kind {
        TAGS => repository.add_tag(&name, &message, &commit.id, call.time_text())?,
        _ => repository.set_branch(&name, &commit.id)?,
    }
    Answer::created(&repository.ref_json(kind, &repository.require_ref(kind, &name)?)?)
}

/// Removes a branch or a tag. The default branch cannot be removed. Only maintainers can remove
/// protected branches and tags.
fn remove_ref(call: &Call<'_>, kind: RefKind) -> Result<Answer> {
    let project = call.require_project(DEVELOPER)?;
    let repository = Repository { call, project: &project };
    let git_ref = repository.requested_ref(kind)?;
    call.check_unmodified(&git_ref.commit.created_at)?;
    let is_default = kind == BRANCHES && git_ref.name == repository.default_branch()?;
    let text = "Cannot remove HEAD branch";
    refuse_if(is_default, || ErrorResponse::message(StatusCode::METHOD_NOT_ALLOWED, text))?;
    let is_protected = match kind {
        TAGS => !project.tag_grants(call, &git_ref.name)?.is_empty(),
        _ => !project.branch_protections(call, &git_ref.name)?.is_empty(),
    };
    refuse_if(is_protected && call.caller_level_in_project(&project)? < MAINTAINER, || {
        format!(
            "You are not allowed to delete protected {} from this project. \
             Only a project maintainer or owner can delete a protected {}.",
            kind.table,
            kind.type_name.to_lowercase()
        )
        .into()
    })?;
    repository.remove_ref(kind, &git_ref.name)?;
    Ok(Answer::no_content())
}

/// Protects a branch. Two flags of the call allow developers to push and to merge. If
/// the branch is already protected, flags that the call omits stay unchanged.
fn protect(call: &Call<'_>) -> Result<Answer> {
    let project = call.require_writable_project(MAINTAINER)?;
    let repository = Repository { call, project: &project };
    let branch = repository.requested_ref(BRANCHES)?;
    let stored_rule = Holder::Project(project.id).find_protection(call, &branch.name)?;
    let default_flag = stored_rule.is_none().then_some(false);
    let mut protection = stored_rule.unwrap_or_else(|| Protection {
        project_id: Some(project.id),
        name: branch.name.clone(),
        updated_at: call.time_text().to_owned(),
        ..Protection::default()
    });
    let mut grants = protection.grants(call.db)?;
    for (action, flag) in [
        (ProtectedAction::Push, "developers_can_push"),
        (ProtectedAction::Merge, "developers_can_merge"),
    ] {
        if let Some(allows_developers) = call.flag(flag)?.or(default_flag) {
            let level = if allows_developers { DEVELOPER } else { MAINTAINER };
            grants.retain(|grant| grant.action != action);
            grants.push(Grant::new(action, level));
        }
    }
    protection.save_with_grants(call.db, &grants)?;
    Answer::ok(&repository.ref_json(BRANCHES, &branch)?)
}

/// Removes the protection with the name of a branch, if the protection exists.
fn unprotect(call: &Call<'_>) -> Result<Answer> {
    let project = call.require_writable_project(MAINTAINER)?;
    let repository = Repository { call, project: &project };
    let branch = repository.requested_ref(BRANCHES)?;
    if let Some(protection) = Holder::Project(project.id).find_protection(call, &branch.name)? {
        protection.remove(call.db)?;
    }
    Answer::ok(&repository.ref_json(BRANCHES, &branch)?)
}

fn list_tags(call: &Call<'_>) -> Result<Answer> {
    let project = readable_project(call)?;
    let search = call.text("search")?.unwrap_or_default();
    let is_by_name =
        call.allowed_text("order_by", &["name", "updated"])?.is_some_and(|order| order == "name");
    let is_ascending =
        call.allowed_text("sort", &["asc", "desc"])?.is_some_and(|direction| direction == "asc");
    let repository = Repository { call, project: &project };
    let mut tags = repository.list_refs(TAGS)?;
    if !is_by_name {
        tags.sort_by(|one, other| one.commit.created_at.cmp(&other.commit.created_at));
    }
    if !is_ascending {
        tags.reverse();
    }
    tags.retain(|tag| matches_search(&tag.name, &search));
    page::list_objects(call, &tags, |tag| repository.ref_json(TAGS, tag))
}
