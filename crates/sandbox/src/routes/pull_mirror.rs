//! The pull mirror of a project (from release 17.6 on). An edit of the project can also set the
//! mirror. The sandbox stores the mirror's URL, with a mask instead of the credentials. A pull
//! transfers nothing, but a pull can fail.

use super::prelude::*;
use super::remote_mirrors::{check_url, mask_credentials};

pub(super) const ROUTES: &[Route] = &[
    get("/projects/{id}/mirror/pull", show),
    put("/projects/{id}/mirror/pull", update),
    post("/projects/{id}/mirror/pull", start_pull),
];

const PROTECTED_ONLY: &str = "only_mirror_protected_branches";
const BRANCH_REGEX: &str = "mirror_branch_regex";
/// A branch pattern and "all protected branches" exclude each other.
pub(super) const BRANCH_SELECTORS: [&str; 2] = [PROTECTED_ONLY, BRANCH_REGEX];
/// The number of successive failed pulls. Responses never show this attribute.
const FAILURE_COUNT: &str = "mirror_failures";
/// The maximum number of successive failures. After more failures, the mirror is paused.
const MAX_FAILURES: u64 = 14;
/// A change must contain at least one of these parameters.
const MIRROR_PARAMETERS: &str = "enabled url auth_user auth_password \
    mirror_overwrites_diverged_branches mirror_trigger_builds only_mirror_protected_branches \
    mirror_branch_regex";

fn licensed_project(call: &Call<'_>) -> Result<Project> {
    let project = call.require_project(MAINTAINER)?;
    call.require_tier(ServiceTier::Premium).map(|()| project)
}

/// The project, which must be a mirror, and its attributes.
fn active_mirror(call: &Call<'_>) -> Result<(Project, Object)> {
    let project = licensed_project(call)?;
    let attributes = project.attributes(call.db)?;
    let is_mirror = attributes.get("mirror") == Some(&Value::Bool(true));
    refuse_if(!is_mirror, || "The project is not mirrored".into())?;
    Ok((project, attributes))
}

fn show(call: &Call<'_>) -> Result<Answer> {
    refuse_if(!call.is_at_least(17, 6), ErrorResponse::route_not_found)?;
    let (project, attributes) = active_mirror(call)?;
    Answer::ok(&mirror_json(&project, &attributes))
}

/// Starts a pull. The pull fails if the profile lets imports fail. After too many failures in a
/// row, the mirror is on pause until it is enabled again. The body of the response is the number
/// 200.
fn start_pull(call: &Call<'_>) -> Result<Answer> {
    let (project, mut attributes) = active_mirror(call)?;
    let failure_count = attributes.get(FAILURE_COUNT).and_then(Value::as_u64).unwrap_or(0);
    let text = "Mirroring for the project is on pause";
    refuse_if(failure_count > MAX_FAILURES, || ErrorResponse::forbidden_message(text))?;
    if call.profile().import_failure.is_some() {
        attributes.insert(FAILURE_COUNT.to_owned(), (failure_count + 1).into());
        project.save_attributes(call.db, &attributes, call.time_text())?;
    }
    Answer::ok(&200)
}

fn mirror_json(project: &Project, attributes: &Object) -> Value {
    let mut body = json!({
        "id": project.id,
        "update_status": "none",
        "url": attributes.get("import_url"),
        "last_error": null,
        "last_update_at": null,
        "last_update_started_at": null,
        "last_successful_update_at": null,
        "enabled": attributes.get("mirror"),
    });
    for name in [
        "mirror_trigger_builds",
        PROTECTED_ONLY,
        "mirror_overwrites_diverged_branches",
        BRANCH_REGEX,
    ] {
        body[name] = attributes.get(name).cloned().unwrap_or_default();
    }
    body
}

fn update(call: &Call<'_>) -> Result<Answer> {
    call.require_user()?;
    let params = &call.params;
    params.require_any(&MIRROR_PARAMETERS.split(' ').collect::<Vec<_>>())?;
    params.refuse_both(BRANCH_SELECTORS)?;
    refuse_if(!call.is_at_least(17, 6), ErrorResponse::route_not_found)?;
    let project = licensed_project(call)?;
    let mut attributes = project.attributes(call.db)?;
    if let Some(url) = params.text("url")? {
        check_url(call, "unsafe_import_url", &url)?;
        attributes.insert("import_url".to_owned(), mask_credentials(&url).into());
    }
    let [has_user, has_password] = ["auth_user", "auth_password"].map(|name| params.has(name));
    if let (Some(Value::String(url)), true) =
        (attributes.get_mut("import_url"), has_user || has_password)
    {
        *url = mask_credentials(&url.replacen("://", "://u:p@", 1));
    }
    for (parameter, name) in [
        ("enabled", "mirror"),
        ("mirror_trigger_builds", "mirror_trigger_builds"),
        (PROTECTED_ONLY, PROTECTED_ONLY),
        ("mirror_overwrites_diverged_branches", "mirror_overwrites_diverged_branches"),
    ] {
        if let Some(is_on) = params.flag(parameter)? {
            attributes.insert(name.to_owned(), is_on.into());
        }
    }
    if let Some(pattern) = params.text(BRANCH_REGEX)? {
        refuse_field(BRANCH_REGEX, re2::syntax_error(&pattern))?;
        attributes.insert(BRANCH_REGEX.to_owned(), pattern.into());
    }
    check_mirror_url(&attributes)?;
    if params.is_true("enabled")? {
        attributes.remove(FAILURE_COUNT);
    }
    apply_side_effects(call, params, &mut attributes)?;
    project.save_attributes(call.db, &attributes, call.time_text())?;
    Answer::ok(&mirror_json(&project, &attributes))
}

/// Refuses a mirror without a URL to pull from.
pub(super) fn check_mirror_url(attributes: &Object) -> Result<()> {
    let has_url =
        attributes.get("import_url").and_then(Value::as_str).is_some_and(|url| !url.is_empty());
    let is_mirror = attributes.get("mirror") == Some(&Value::Bool(true));
    refuse_if(is_mirror && !has_url, || ErrorResponse::field_error("import_url", BLANK_TEXT))
}

/// Makes the follow-up changes of a change of a mirror. A pattern and "all protected branches"
/// replace each other. A caller who turns the mirror on or changes it becomes its user, unless the
/// call names another user.
pub(super) fn apply_side_effects(
    call: &Call<'_>,
    params: &Params,
    attributes: &mut Object,
) -> Result<()> {
    if params.is_true(PROTECTED_ONLY)? {
        attributes.insert(BRANCH_REGEX.to_owned(), Value::Null);
    } else if params.text(BRANCH_REGEX)?.is_some() {
        attributes.insert(PROTECTED_ONLY.to_owned(), false.into());
    }
    let changes_mirror =
        ["enabled", "mirror", "mirror_trigger_builds"].iter().any(|name| params.has(name));
    let has_no_user = !params.has("mirror_user_id") || !call.is_administrator();
    if let Some(user) = call.caller.as_ref().filter(|_| changes_mirror && has_no_user) {
        attributes.insert("mirror_user_id".to_owned(), user.id.into());
    }
    Ok(())
}
