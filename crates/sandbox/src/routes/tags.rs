//! Tags of a repository. The reference leaves them out; all of this is the real service's
//! behaviour.

use super::grants;
use super::prelude::*;
use super::protected_tags::covering;
use super::repository::{commit_json, is_found, of, readable};

pub(super) const ROUTES: &[Route] = &[
    get("/projects/{id}/repository/tags", list),
    post("/projects/{id}/repository/tags", create),
    get("/projects/{id}/repository/tags/{tag_name}", show),
    delete("/projects/{id}/repository/tags/{tag_name}", remove),
];

fn json(call: &Call<'_>, project: &Project, tag: &GitRef) -> Result<Value> {
    Ok(json!({
        "name": tag.name,
        "message": tag.message,
        "target": tag.commit.id,
        "commit": commit_json(call, project, &tag.commit),
        "release": null,
        "protected": !covering(call, project.id, &tag.name)?.is_empty(),
        "created_at": (!tag.message.is_empty()).then_some(&tag.created_at),
    }))
}

fn list(call: &Call<'_>) -> Result<Answer> {
    let project = readable(call)?;
    let search = call.params.text("search")?.unwrap_or_default();
    let by_name =
        call.params.one_of("order_by", &["name", "updated"])?.is_some_and(|by| by == "name");
    let upwards = call.params.one_of("sort", &["asc", "desc"])?.is_some_and(|way| way == "asc");
    let mut tags = of(call, &project).all(TAGS)?;
    if !by_name {
        tags.sort_by(|one, other| one.commit.created_at.cmp(&other.commit.created_at));
    }
    if !upwards {
        tags.reverse();
    }
    let all =
        tags.iter().filter(|tag| is_found(&tag.name, &search)).map(|tag| json(call, &project, tag));
    page::each(call, all)
}

fn named(call: &Call<'_>, project: &Project, name: &str) -> Result<GitRef> {
    of(call, project).find(TAGS, name)?.ok_or_else(|| Failure::not_found("Tag"))
}

fn show(call: &Call<'_>) -> Result<Answer> {
    let project = readable(call)?;
    Answer::ok(&json(call, &project, &named(call, &project, call.segment("tag_name"))?)?)
}

fn create(call: &Call<'_>) -> Result<Answer> {
    let project = call.project_as(DEVELOPER)?;
    call.params.require(&["tag_name", "ref"])?;
    let name = call.params.text("tag_name")?.unwrap_or_default();
    let reference = call.params.text("ref")?.unwrap_or_default();
    let message = call.params.text("message")?.unwrap_or_default();
    refuse_if(!is_ref_name(&name), || Failure::refused("Tag name invalid"))?;
    let repository = of(call, &project);
    refuse_if(repository.find(TAGS, &name)?.is_some(), || {
        Failure::refused(format!("Tag {name} already exists"))
    })?;
    let Some(commit) = repository.resolve(&reference)? else {
        return Err(Failure::refused(format!("Target {reference} is invalid")));
    };
    let protections = covering(call, project.id, &name)?;
    if !protections.is_empty() && !grants::is_granted(call, &project, protections.iter().flatten())?
    {
        return Err(Failure::refused("You are not allowed to create this tag as it is protected."));
    }
    repository.add_tag(&name, &message, &commit.id, call.now())?;
    Answer::created(&json(call, &project, &named(call, &project, &name)?)?)
}

fn remove(call: &Call<'_>) -> Result<Answer> {
    let project = call.project_as(DEVELOPER)?;
    let tag = named(call, &project, call.segment("tag_name"))?;
    call.check_unmodified(&tag.commit.created_at)?;
    let is_protected = !covering(call, project.id, &tag.name)?.is_empty();
    if is_protected && call.level_in(&project)? < MAINTAINER {
        return Err(Failure::refused(
            "You are not allowed to delete protected tags from this project. \
             Only a project maintainer or owner can delete a protected tag.",
        ));
    }
    of(call, &project).remove(TAGS, &tag.name)?;
    Ok(Answer::no_content())
}
