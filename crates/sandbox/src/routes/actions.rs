//! Actions on a project and related reads: stars, users, uploads, housekeeping
//! (reference 2, 4.2 and 4.4).

use super::prelude::*;

pub(super) const ROUTES: &[Route] = &[
    get("/projects/{id}/users", list_users),
    get("/projects/{id}/starrers", list_starrers),
    get("/projects/{id}/transfer_locations", list_transfer_locations),
    post("/projects/{id}/star", |call| set_star(call, true)),
    post("/projects/{id}/unstar", |call| set_star(call, false)),
    post("/projects/{id}/uploads", upload_file),
    post("/projects/{id}/housekeeping", start_housekeeping),
    get("/projects/{id}/storage", show_storage),
    get("/projects/{id}/security_settings", show_security_settings),
    put("/projects/{id}/security_settings", change_security_settings),
];

const IMAGE_EXTENSIONS: [&str; 6] = ["png", "jpg", "jpeg", "gif", "bmp", "webp"];

fn list_users(call: &Call<'_>) -> Result<Answer> {
    let project = call.project()?;
    let search = call.text("search")?.unwrap_or_default().to_lowercase();
    let skipped_ids = call.integers("skip_users")?.unwrap_or_default();
    let mut users = members::list_users(call, &GroupOrProject::from(project))?;
    users.retain(|user| user.name_contains(&search) && !skipped_ids.contains(&user.id));
    page::list_page(call, users.iter().map(|user| user.brief_json(call)))
}

fn list_starrers(call: &Call<'_>) -> Result<Answer> {
    let project = call.project()?;
    let search = call.text("search")?.unwrap_or_default().to_lowercase();
    let clauses =
        "JOIN stars s ON s.user_id = u.id WHERE s.project_id = ?1 ORDER BY s.starred_since, u.id";
    let read_starrer = |user, row: &Row<'_>| Ok((user, row.get::<_, String>(User::COLUMN_COUNT)?));
    let mut starrers =
        User::list_with(call.db, "s.starred_since", clauses, [project.id], read_starrer)?;
    starrers.retain(|(user, _)| user.name_contains(&search));
    page::list_objects(call, &starrers, |(user, starred_since)| {
        Ok(json!({ "starred_since": starred_since, "user": user.brief_json(call) }))
    })
}

/// The groups to which the caller may move the project.
fn list_transfer_locations(call: &Call<'_>) -> Result<Answer> {
    let project = call.require_project(OWNER)?;
    list_locations(call, MAINTAINER, |group| group.id != project.namespace.id)
}

/// Answers with a list of groups (reference 1, 2.11). `accepts` must be true for a group, the
/// caller must have at least `min_level` in it, and its name must contain the parameter `search`.
pub(super) fn list_locations(
    call: &Call<'_>,
    min_level: i64,
    accepts: impl Fn(&Namespace) -> bool,
) -> Result<Answer> {
    let search = call.text("search")?.unwrap_or_default().to_lowercase();
    let groups = Namespace::list(call.db, "WHERE n.kind = 'group' ORDER BY n.full_path", [])?;
    let shown_groups = try_filter(groups, |group| {
        Ok(accepts(group)
            && group.name.to_lowercase().contains(&search)
            && call.caller_level_in_group(group)? >= min_level
            && call.may_see_group(group)?)
    })?;
    page::list_objects(call, &shown_groups, |group| Ok(location_json(call, group)))
}

/// A group in a list of locations.
pub(super) fn location_json(call: &Call<'_>, group: &Namespace) -> Value {
    let mut body = group.json_columns("id web_url name avatar_url full_name full_path");
    body["web_url"] = group.web_url(&call.base_url).into();
    body
}

/// Stars or unstars a project; 304 if nothing changes.
fn set_star(call: &Call<'_>, is_starred: bool) -> Result<Answer> {
    let user_id = call.require_user()?.id;
    let project_id = call.project()?.id;
    let changed_rows = if is_starred {
        call.execute(
            "INSERT INTO stars (project_id, user_id, starred_since) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
            params![project_id, user_id, call.time_text()],
        )?
    } else {
        call.execute(
            "DELETE FROM stars WHERE project_id = ?1 AND user_id = ?2",
            [project_id, user_id],
        )?
    };
    if changed_rows == 0 {
        return Ok(Answer::without_body(StatusCode::NOT_MODIFIED));
    }
    let answers_ok = call.profile().star_answers_ok;
    let status = if answers_ok { StatusCode::OK } else { StatusCode::CREATED };
    projects::project_answer(call, status, project_id, ExtraFields::default())
}

fn upload_file(call: &Call<'_>) -> Result<Answer> {
    call.require_user()?;
    call.project()?;
    let Some(file) = call.file("file") else {
        call.require(&["file"])?;
        return Err(ErrorResponse::invalid_parameter("file"));
    };
    let project = call.require_project(GUEST)?;
    let secret = call.random_hex();
    let sql = "INSERT INTO files (project_id, secret, name, content) VALUES (?1, ?2, ?3, ?4)";
    call.execute(sql, params![project.id, secret, file.file_name, &file.bytes[..]])?;
    let (stem, extension) = file.file_name.rsplit_once('.').unwrap_or((&file.file_name, ""));
    let is_image = IMAGE_EXTENSIONS.contains(&extension.to_ascii_lowercase().as_str());
    let alt = if is_image { stem } else { file.file_name.as_str() };
    let url = format!("/uploads/{secret}/{}", file.file_name);
    Answer::created(&json!({
        "alt": alt,
        "url": url,
        "full_path": format!("/{}{url}", project.full_path),
        "markdown": format!("{}[{alt}]({url})", if is_image { "!" } else { "" }),
    }))
}

/// Accepts a call, and refuses further calls until its lease ends. Nothing else happens, because
/// the sandbox has no Git repositories.
fn start_housekeeping(call: &Call<'_>) -> Result<Answer> {
    call.require_user()?;
    call.allowed_text("task", &["eager", "prune"])?;
    let project = call.require_writable_project(MAINTAINER)?;
    let lease = format!("housekeeping of project {}", project.id);
    let has_lease = call.acquire_lease(&lease, call.profile().housekeeping_lease)?;
    let text = "Somebody already triggered housekeeping for this resource in the past 1440 minutes";
    refuse_if(!has_lease, || ErrorResponse::conflict(text))?;
    match call.is_observed_release_or_later() {
        // The body is the id of a job.
        true => Answer::created(&call.random_hex().get(..24)),
        false => Answer::created(&json!({ "message": "201 Created" })),
    }
}

/// The storage of the repository, for administrators.
fn show_storage(call: &Call<'_>) -> Result<Answer> {
    call.require_administrator()?;
    let project = call.project()?;
    let name = format!("{:x}", Sha256::digest(project.id.to_string()));
    Answer::ok(&json!({
        "disk_path": format!("@hashed/{}/{}/{name}", &name[..2], &name[2..4]),
        "project_id": project.id,
        "repository_storage": project.attributes(call.db)?.get("repository_storage"),
        "created_at": project.created_at,
    }))
}

/// The project of a call for security settings. Reads need the level developer, changes need the level
/// maintainer; other callers get 401. The settings exist from 16.11 on.
fn security_project(call: &Call<'_>) -> Result<Project> {
    refuse_if(!call.is_at_least(16, 11), ErrorResponse::route_not_found)?;
    let min_level = if call.is_write { MAINTAINER } else { DEVELOPER };
    let project =
        call.require_project(min_level).map_err(ErrorResponse::forbidden_as_unauthorized)?;
    call.require_tier(ServiceTier::Ultimate).map(|()| project)
}

/// The only security setting that can be changed, by its newer and its older name.
const PUSH_PROTECTION_NAMES: [&str; 2] =
    ["secret_push_protection_enabled", "pre_receive_secret_detection_enabled"];

fn show_security_settings(call: &Call<'_>) -> Result<Answer> {
    let project = security_project(call)?;
    let is_push_protected =
        project.attributes(call.db)?.remove(PUSH_PROTECTION_NAMES[0]) == Some(true.into());
    let mut body = json!({
        "project_id": project.id,
        "created_at": project.created_at,
        "updated_at": project.updated_at,
        "auto_fix_container_scanning": true,
        "auto_fix_dast": true,
        "auto_fix_dependency_scanning": true,
        "auto_fix_sast": true,
        "continuous_vulnerability_scans_enabled": false,
        "container_scanning_for_registry_enabled": false,
    });
    body[PUSH_PROTECTION_NAMES[usize::from(!call.is_at_least(17, 11))]] = is_push_protected.into();
    if call.is_observed_release_or_later() {
        body["validity_checks_enabled"] = false.into();
        body["license_configuration_source"] = "sbom".into();
    }
    Answer::ok(&body)
}

fn change_security_settings(call: &Call<'_>) -> Result<Answer> {
    let project = security_project(call)?;
    let name = PUSH_PROTECTION_NAMES[usize::from(!call.is_at_least(17, 11))];
    call.require_any(&[name])?;
    if let Some(is_push_protected) = call.flag(name)? {
        let mut attributes = project.attributes(call.db)?;
        for name in PUSH_PROTECTION_NAMES {
            attributes.insert(name.to_owned(), is_push_protected.into());
        }
        project.save_attributes(call.db, &attributes, call.time_text())?;
    }
    show_security_settings(call)
}
