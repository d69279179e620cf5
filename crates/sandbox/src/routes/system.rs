//! Information about the service itself. The reference does not describe these operations, but real
//! clients need them.

use super::prelude::*;

pub(super) const ROUTES: &[Route] = &[
    get("/version", show_version),
    get("/metadata", show_version),
    get("/license", show_license),
    post("/license", |call| {
        call.require_administrator()
            .and(Err(ErrorResponse::bad_request("The license key is invalid.")))
    }),
    get("/namespaces", list_namespaces),
    get("/namespaces/{id}", show_namespace),
    get("/namespaces/{id}/exists", check_namespace_path),
    get("/search", search_service),
];

/// Pages that scripts poll until a new service is ready.
pub(super) const PAGE_ROUTES: &[Route] = &[
    get("/-/health", |_| {
        let mut answer = Answer::with_json_text(StatusCode::OK, b"GitLab OK".to_vec());
        answer.headers.push(("content-type", "text/plain; charset=utf-8".to_owned()));
        Ok(answer)
    }),
    get("/-/readiness", |_| {
        Answer::ok(&json!({"status": "ok", "master_check": [{"status": "ok"}]}))
    }),
    get("/-/liveness", |_| Answer::ok(&json!({"status": "ok"}))),
];

fn show_version(call: &Call<'_>) -> Result<Answer> {
    call.require_user()?;
    let release = call.release();
    let is_free = call.tier() == ServiceTier::Free;
    let mut kas = json!({ "enabled": false, "externalUrl": null, "version": null });
    set_field_if(&mut kas, call.is_at_least(17, 6), "externalK8sProxyUrl", Value::Null);
    Answer::ok(&json!({
        "version": format!("{release}.0-{}", if is_free { "ce" } else { "ee" }),
        "revision": "undrift",
        "kas": kas,
        "enterprise": !is_free,
    }))
}

fn show_license(call: &Call<'_>) -> Result<Answer> {
    call.require_administrator()?;
    match call.tier() {
        ServiceTier::Free => Answer::ok(&Value::Null),
        tier => Answer::ok(&json!({
            "id": 1, "plan": tier, "expired": false, "expires_at": null, "user_limit": 0, "active_users": 0, "overage": 0,
        })),
    }
}

fn list_namespaces(call: &Call<'_>) -> Result<Answer> {
    call.require_user()?;
    let search = call.text("search")?.unwrap_or_default().to_lowercase();
    let min_level = if call.is_true("owned_only")? { OWNER } else { 1 };
    let member_namespace_ids = member_namespace_ids(call, min_level)?;
    let shows_all = call.is_administrator() || !call.is_observed_release_or_later();
    let is_top_only = call.is_true("top_level_only")? && call.is_at_least(16, 8);
    let namespaces = Namespace::list(call.db, "ORDER BY n.full_path", [])?;
    let listed_namespaces = try_filter(namespaces, |namespace| {
        let is_listed = shows_all || member_namespace_ids.contains(&namespace.id);
        let is_wanted = !is_top_only || namespace.parent_id.is_none();
        Ok(is_listed
            && is_wanted
            && namespace.full_path.to_lowercase().contains(&search)
            && call.caller_level_in_group(namespace)? >= min_level)
    })?;
    page::list_objects(call, &listed_namespaces, |namespace| namespace_json(call, namespace))
}

/// A namespace in a list. From 18.9 on, it also has counts, some of which only its owners see.
fn namespace_json(call: &Call<'_>, namespace: &Namespace) -> Result<Value> {
    let mut body = namespace.brief_json(&call.base_url);
    if !call.is_observed_release_or_later() || !call.is_premium() {
        return Ok(body);
    }
    let is_owner = call.caller_level_in_group(namespace)? >= OWNER;
    let subtree_sql = "IN (SELECT id FROM namespaces WHERE traversal >= ?1 AND traversal < ?2)";
    if is_owner && namespace.is_group() {
        let members_sql =
            format!("SELECT count(DISTINCT user_id) FROM members WHERE group_id {subtree_sql}");
        let projects_sql =
            format!("SELECT count(*) FROM projects WHERE namespace_id {subtree_sql}");
        let [member_count, project_count] = [members_sql, projects_sql]
            .map(|sql| call.query_value::<i64>(&sql, namespace.traversal_range()));
        body["members_count_with_descendants"] = member_count?.into();
        body["projects_count"] = project_count?.into();
        body["root_repository_size"] = Value::Null;
    }
    let seat_count = match (namespace.is_group(), is_owner) {
        (false, _) => Some(1),
        (true, true) => Some(namespace.count_seats(call)?),
        (true, false) => None,
    };
    body["billable_members_count"] = seat_count.into();
    if is_owner {
        add_fields(&mut body, json!({ "plan": "default", "trial": false, "trial_ends_on": null }));
    }
    Ok(body)
}

/// The ids of the caller's own namespace, and of the groups in which the caller has at least this
/// level by direct membership.
fn member_namespace_ids(call: &Call<'_>, min_level: i64) -> Result<HashSet<i64>> {
    let sql = "SELECT id FROM namespaces WHERE owner_id = ?1 UNION
               SELECT group_id FROM members WHERE user_id = ?1 AND group_id IS NOT NULL
                   AND state = 'active' AND access_level >= ?2
                   AND (expires_at IS NULL OR expires_at >= ?3)";
    Ok(call
        .query_column(sql, params![call.require_user()?.id, min_level, call.today()])?
        .into_iter()
        .collect())
}

fn show_namespace(call: &Call<'_>) -> Result<Answer> {
    call.require_user()?;
    match Namespace::find_by_reference(call.db, call.segment("id"))? {
        Some(namespace) if call.caller_level_in_group(&namespace)? > 0 => {
            Answer::ok(&namespace_json(call, &namespace)?)
        }
        _ => Err(ErrorResponse::not_found("Namespace")),
    }
}

/// Checks if a path is taken, at the top level or below a parent, and suggests another path. The
/// suggestion is simpler than in the real service.
fn check_namespace_path(call: &Call<'_>) -> Result<Answer> {
    call.require_user()?;
    let path = call.segment("id");
    let full_path = match call.integer("parent_id")? {
        None => path.to_owned(),
        Some(id) => format!("{}/{path}", call.visible_group(&id.to_string())?.full_path),
    };
    let exists = Namespace::find_by_path(call.db, &full_path)?.is_some();
    let suggestions = if exists { vec![format!("{path}1")] } else { Vec::new() };
    Answer::ok(&json!({ "exists": exists, "suggests": suggestions }))
}

fn search_service(call: &Call<'_>) -> Result<Answer> {
    call.require_user()?;
    call.require(&["scope", "search"])?;
    match call.allowed_text("scope", &["projects", "users"])?.as_deref() {
        Some("users") => users::list(call),
        _ => project_list::answer_list(call, project_list::ProjectQuery::default()),
    }
}
