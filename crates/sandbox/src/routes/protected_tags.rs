//! Protected tags of a project. The reference leaves them out; all of this is the real service's
//! behaviour. There is no update: to change one, remove it and protect the tag again.

use super::grants::{self, Plan};
use super::prelude::*;

pub(super) const ROUTES: &[Route] = &[
    get("/projects/{id}/protected_tags", list),
    post("/projects/{id}/protected_tags", create),
    get("/projects/{id}/protected_tags/{name}", show),
    delete("/projects/{id}/protected_tags/{name}", remove),
];

/// Answers show no id of a protected tag.
fn json(call: &Call<'_>, tag: &ProtectedTag) -> Result<Value> {
    let grants: Vec<Value> =
        tag.grants.iter().map(|grant| grants::json(call, grant)).collect::<Result<_, _>>()?;
    Ok(json!({ "name": tag.name, "create_access_levels": grants }))
}

fn named(call: &Call<'_>, project: i64) -> Result<ProtectedTag> {
    ProtectedTag::named(call.db, project, call.segment("name"))?.ok_or_else(Failure::no_record)
}

fn list(call: &Call<'_>) -> Result<Answer> {
    let project = call.project_with(MAINTAINER)?;
    let all = ProtectedTag::all(call.db, project.id)?;
    page::each(call, all.iter().map(|tag| json(call, tag)))
}

fn show(call: &Call<'_>) -> Result<Answer> {
    let project = call.project_with(MAINTAINER)?;
    Answer::ok(&json(call, &named(call, project.id)?)?)
}

/// The project of a write.
fn writable(call: &Call<'_>) -> Result<Project> {
    let project = call.project_with(MAINTAINER)?;
    call.check_writable(&project)?;
    Ok(project)
}

fn create(call: &Call<'_>) -> Result<Answer> {
    let project = writable(call)?;
    call.params.require(&["name"])?;
    let name = call.params.text("name")?.unwrap_or_default();
    let tier = if call.service.profile.tag_lists_ignored { Tier::Free } else { call.tier() };
    let changes = grants::of_new(call, tier, &call.params, &[Action::Create])?;
    let mut plan = Plan::new(call, Some(&project), &[], &changes)?;
    if name.trim().is_empty() {
        plan.complaints.insert(0, "Name can't be blank".to_owned());
    }
    if ProtectedTag::named(call.db, project.id, &name)?.is_some() {
        plan.complaints.insert(0, "Name has already been taken".to_owned());
    }
    plan.check_faults()?;
    let new = ProtectedTag {
        id: 0,
        project_id: project.id,
        name: name.clone(),
        updated_at: call.now().to_owned(),
        grants: plan.added,
    };
    new.insert(call.db)?;
    let tag = ProtectedTag::named(call.db, project.id, &name)?.ok_or_else(Failure::no_record)?;
    Answer::created(&json(call, &tag)?)
}

fn remove(call: &Call<'_>) -> Result<Answer> {
    let project = writable(call)?;
    let tag = named(call, project.id)?;
    call.remove(&tag, &tag.updated_at)
}
