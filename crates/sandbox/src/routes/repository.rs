//! Branches and tags of a repository. The reference does not describe repositories: this is the observed
//! behaviour of the real service. There are no Git objects: see [`Repository`].

use regex::Regex;

use super::prelude::*;
use super::protected_tags::covering_grants;
use super::{grants, protected_branches};

pub(super) const ROUTES: &[Route] = &[
    get("/projects/{id}/repository/branches", list_branches),
    post("/projects/{id}/repository/branches", |call| create(call, BRANCHES)),
    get("/projects/{id}/repository/branches/{branch}", |call| show(call, BRANCHES)),
    delete("/projects/{id}/repository/branches/{branch}", |call| remove(call, BRANCHES)),
    get("/projects/{id}/repository/tags", list_tags),
    post("/projects/{id}/repository/tags", |call| create(call, TAGS)),
    get("/projects/{id}/repository/tags/{tag_name}", |call| show(call, TAGS)),
    delete("/projects/{id}/repository/tags/{tag_name}", |call| remove(call, TAGS)),
    // The old forms of protected branches.
    put("/projects/{id}/repository/branches/{branch}/protect", protect),
    put("/projects/{id}/repository/branches/{branch}/unprotect", unprotect),
];

/// The repository of a project.
pub(super) fn open_repository<'a>(call: &'a Call<'_>, project: &Project) -> Repository<'a> {
    Repository { db: call.db, project: project.id }
}

/// The project of a call that reads code. Everybody who sees the project may read its code, except
/// guests of a private project.
pub(super) fn readable_project(call: &Call<'_>) -> Result<Project> {
    let project = call.project()?;
    refuse_if(!call.may_use(&project, "repository_access_level")?, ErrorResponse::forbidden)?;
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

/// Creates the contents of a new project that is not empty: a copy of the repository of
/// `source_project`, or one commit.
pub(super) fn create_contents(
    call: &Call<'_>,
    project: &Project,
    source_project: Option<i64>,
    has_readme: bool,
) -> Result<()> {
    let repository = open_repository(call, project);
    if let Some(source) = source_project {
        return Ok(repository.copy_from(source)?);
    }
    let branch = default_branch(call, project)?;
    let text = format!("# {}\n", project.name);
    let file = CommitEdit { path: "README.md", content: Some((text.as_bytes(), false)) };
    let files = &[file][..usize::from(has_readme)];
    Ok(repository.commit(&branch, new_commit(call, INITIAL_MESSAGE), files)?)
}

/// Creates a branch that a seed declares, without protection. The first branch becomes the default.
pub(crate) fn add_seed_branch(call: &Call<'_>, project: &Project, branch: &str) -> Result<()> {
    let repository = open_repository(call, project);
    if repository.find(BRANCHES, branch)?.is_some() {
        return Ok(());
    }
    let head = repository.resolve_commit(&default_branch(call, project)?)?;
    if let Some(head) = head {
        return Ok(repository.set_branch(branch, &head.id)?);
    }
    repository.commit(branch, new_commit(call, INITIAL_MESSAGE), &[])?;
    set_first_branch(call, project, branch)
}

/// The first commit of a project makes its branch the default one.
pub(super) fn set_first_branch(call: &Call<'_>, project: &Project, branch: &str) -> Result<()> {
    call.set_column("projects", project.id, "empty_repo", false)?;
    let mut attributes = project.attributes(call.db)?;
    attributes.insert("default_branch".to_owned(), branch.into());
    Ok(project.save_attributes(call.db, &attributes, call.time_text())?)
}

/// Refuses a new default branch that does not exist.
pub(super) fn check_default_branch_exists(
    call: &Call<'_>,
    project: &Project,
    former_branch: &str,
    branch: &str,
) -> Result<()> {
    if branch == former_branch || open_repository(call, project).find(BRANCHES, branch)?.is_some() {
        return Ok(());
    }
    Err(ErrorResponse::field(
        "base",
        format!("Could not change HEAD: branch '{branch}' does not exist"),
    ))
}

/// The name of the default branch. An empty project also has this name, although no such branch exists.
pub(super) fn default_branch(call: &Call<'_>, project: &Project) -> Result<String> {
    let attributes = project.attributes(call.db)?;
    let name = attributes.get("default_branch").and_then(Value::as_str);
    Ok(name.unwrap_or("main").to_owned())
}

/// True if the caller may push to a branch.
pub(super) fn may_push(call: &Call<'_>, project: &Project, branch: &str) -> Result<bool> {
    may_perform_any(call, project, branch, &[ProtectedAction::Push])
}

/// True if the caller may perform one of these actions on a branch. A protected branch needs a grant,
/// others need the level developer.
fn may_perform_any(
    call: &Call<'_>,
    project: &Project,
    branch: &str,
    actions: &[ProtectedAction],
) -> Result<bool> {
    let Some(branch_grants) = list_branch_grants(call, project, branch)? else {
        return Ok(call.level_in(project)? >= DEVELOPER);
    };
    let matching_grants = branch_grants.iter().filter(|grant| actions.contains(&grant.action));
    grants::is_granted_to_caller(call, project, matching_grants)
}

/// The grants of all protections that cover a branch; `None` if it is not protected.
fn list_branch_grants(
    call: &Call<'_>,
    project: &Project,
    branch: &str,
) -> Result<Option<Vec<Grant>>> {
    let protections = Protection::list_covering(call, project, branch)?;
    let grants = protections.iter().map(|protection| protection.grants(call.db));
    let grants = grants.collect::<Result<Vec<_>, _>>()?.concat();
    Ok((!protections.is_empty()).then_some(grants))
}

/// A commit as the service shows it.
fn commit_json(call: &Call<'_>, project: &Project, commit: &Commit) -> Value {
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
        "web_url": format!("{}/{}/-/commit/{}", call.base_url, project.full_path, commit.id),
    })
}

/// A branch as the service shows it.
fn branch_json(call: &Call<'_>, project: &Project, branch: &GitRef) -> Result<Value> {
    let grants = list_branch_grants(call, project, &branch.name)?;
    let mut body = protected_branches::branch_flags(grants.is_some(), &grants.unwrap_or_default());
    body["name"] = branch.name.as_str().into();
    body["commit"] = commit_json(call, project, &branch.commit);
    body["merged"] = false.into();
    body["default"] = (branch.name == default_branch(call, project)?).into();
    body["can_push"] = may_push(call, project, &branch.name)?.into();
    body["web_url"] =
        format!("{}/{}/-/tree/{}", call.base_url, project.full_path, branch.name).into();
    Ok(body)
}

fn list_branches(call: &Call<'_>) -> Result<Answer> {
    let project = readable_project(call)?;
    let search = call.params.text("search")?.unwrap_or_default();
    let pattern = call.params.text("regex")?.map(|pattern| Regex::new(&pattern)).transpose();
    let pattern = pattern.map_err(|_| ErrorResponse::invalid("regex"))?;
    let mut branches = open_repository(call, &project).list_refs(BRANCHES)?;
    branches.retain(|branch| {
        matches_search(&branch.name, &search)
            && pattern.as_ref().is_none_or(|pattern| pattern.is_match(&branch.name))
    });
    page::list_objects(call, &branches, |branch| branch_json(call, &project, branch))
}

/// True if a name matches a search text: `^text` matches at the start of the name, `text$` at its end,
/// and any other text anywhere. If it has both `^` and `$`, only `^` is special.
fn matches_search(name: &str, search: &str) -> bool {
    let name = name.to_lowercase();
    let search = search.to_lowercase();
    match (search.strip_prefix('^'), search.strip_suffix('$')) {
        (Some(start), _) => name.starts_with(start),
        (None, Some(end)) => name.ends_with(end),
        (None, None) => name.contains(&search),
    }
}

fn show(call: &Call<'_>, kind: RefKind) -> Result<Answer> {
    let project = readable_project(call)?;
    let git_ref = find_requested_ref(call, &project, kind)?;
    Answer::ok(&ref_json(call, &project, kind, &git_ref)?)
}

fn ref_json(call: &Call<'_>, project: &Project, kind: RefKind, git_ref: &GitRef) -> Result<Value> {
    if kind == TAGS {
        tag_json(call, project, git_ref)
    } else {
        branch_json(call, project, git_ref)
    }
}

/// The branch or tag in the path.
fn find_requested_ref(call: &Call<'_>, project: &Project, kind: RefKind) -> Result<GitRef> {
    find_ref(call, project, kind, call.segment(kind.key))
}

fn find_ref(call: &Call<'_>, project: &Project, kind: RefKind, name: &str) -> Result<GitRef> {
    let git_ref = open_repository(call, project).find(kind, name)?;
    git_ref.ok_or_else(|| ErrorResponse::not_found(kind.noun))
}

fn create(call: &Call<'_>, kind: RefKind) -> Result<Answer> {
    let project = call.project_as(DEVELOPER)?;
    call.params.require(&[kind.key, "ref"])?;
    let name = call.params.text(kind.key)?.unwrap_or_default();
    let reference = call.params.text("ref")?.unwrap_or_default();
    let message = if kind == TAGS { call.params.text("message")? } else { None };
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
    refuse_if(!is_ref_name(&name), || invalid_text.into())?;
    let repository = open_repository(call, &project);
    refuse_if(repository.find(kind, &name)?.is_some(), || taken_text.into())?;
    let commit = repository.resolve_commit(&reference)?.ok_or(missing_text)?;
    let may_create = if kind == TAGS {
        let grant_lists = covering_grants(call, project.id, &name)?;
        grant_lists.is_empty()
            || grants::is_granted_to_caller(call, &project, grant_lists.iter().flatten())?
    } else {
        may_perform_any(call, &project, &name, &[ProtectedAction::Push, ProtectedAction::Merge])?
    };
    refuse_if(!may_create, || protected_text.into())?;
    match kind {
        TAGS => {
            repository.add_tag(
                &name,
                &message.unwrap_or_default(),
                &commit.id,
                call.time_text(),
            )?;
        }
        _ => repository.set_branch(&name, &commit.id)?,
    }
    let created_ref = find_ref(call, &project, kind, &name)?;
    Answer::created(&ref_json(call, &project, kind, &created_ref)?)
}

/// Removes a branch or a tag. The default branch cannot be removed. Only maintainers remove protected
/// branches and tags.
fn remove(call: &Call<'_>, kind: RefKind) -> Result<Answer> {
    let project = call.project_as(DEVELOPER)?;
    let git_ref = find_requested_ref(call, &project, kind)?;
    call.check_unmodified(&git_ref.commit.created_at)?;
    if kind == BRANCHES && git_ref.name == default_branch(call, &project)? {
        return Err(ErrorResponse::message(
            StatusCode::METHOD_NOT_ALLOWED,
            "Cannot remove HEAD branch",
        ));
    }
    let is_protected = match kind {
        TAGS => !covering_grants(call, project.id, &git_ref.name)?.is_empty(),
        _ => !Protection::list_covering(call, &project, &git_ref.name)?.is_empty(),
    };
    refuse_if(is_protected && call.level_in(&project)? < MAINTAINER, || {
        format!(
            "You are not allowed to delete protected {} from this project. \
             Only a project maintainer or owner can delete a protected {}.",
            kind.table,
            kind.noun.to_lowercase()
        )
        .into()
    })?;
    open_repository(call, &project).remove(kind, &git_ref.name)?;
    Ok(Answer::no_content())
}

/// Protects a branch. Two flags decide whether developers or only maintainers may push and merge. If
/// the branch is already protected, flags that the call omits stay unchanged.
fn protect(call: &Call<'_>) -> Result<Answer> {
    let project = call.writable_project_as(MAINTAINER)?;
    let branch = find_requested_ref(call, &project, BRANCHES)?;
    let stored_protection =
        Protection::find_by_name(call, Holder::Project(project.id), &branch.name)?;
    let default_flag = stored_protection.is_none().then_some(false);
    let mut protection = stored_protection.unwrap_or_else(|| Protection {
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
        if let Some(are_developers_allowed) = call.params.flag(flag)?.or(default_flag) {
            let level = if are_developers_allowed { DEVELOPER } else { MAINTAINER };
            grants.retain(|grant| grant.action != action);
            grants.push(Grant::new(action, level));
        }
    }
    protection.save_with_grants(call.db, &grants)?;
    Answer::ok(&branch_json(call, &project, &branch)?)
}

/// Removes the protection with the name of a branch, if there is one.
fn unprotect(call: &Call<'_>) -> Result<Answer> {
    let project = call.writable_project_as(MAINTAINER)?;
    let branch = find_requested_ref(call, &project, BRANCHES)?;
    if let Some(protection) =
        Protection::find_by_name(call, Holder::Project(project.id), &branch.name)?
    {
        protection.remove(call.db)?;
    }
    Answer::ok(&branch_json(call, &project, &branch)?)
}

/// A tag as the service shows it.
fn tag_json(call: &Call<'_>, project: &Project, tag: &GitRef) -> Result<Value> {
    Ok(json!({
        "name": tag.name,
        "message": tag.message,
        "target": tag.commit.id,
        "commit": commit_json(call, project, &tag.commit),
        "release": null,
        "protected": !covering_grants(call, project.id, &tag.name)?.is_empty(),
        "created_at": (!tag.message.is_empty()).then_some(&tag.created_at),
    }))
}

fn list_tags(call: &Call<'_>) -> Result<Answer> {
    let project = readable_project(call)?;
    let search = call.params.text("search")?.unwrap_or_default();
    let is_by_name = call
        .params
        .allowed_text("order_by", &["name", "updated"])?
        .is_some_and(|order| order == "name");
    let is_ascending = call
        .params
        .allowed_text("sort", &["asc", "desc"])?
        .is_some_and(|direction| direction == "asc");
    let mut tags = open_repository(call, &project).list_refs(TAGS)?;
    if !is_by_name {
        tags.sort_by(|one, other| one.commit.created_at.cmp(&other.commit.created_at));
    }
    if !is_ascending {
        tags.reverse();
    }
    tags.retain(|tag| matches_search(&tag.name, &search));
    page::list_objects(call, &tags, |tag| tag_json(call, &project, tag))
}
