//! Operations on users that clients need in addition to the operations in the reference.

use super::identities;
use super::prelude::*;
use super::user_rules::{self, RequestedUser};

pub(super) const ROUTES: &[Route] = &[
    get("/user", |call| Answer::ok(&full_json(call, call.require_user()?)?)),
    get("/users", list),
    post("/users", create),
    get("/users/{user_id}", show),
    put("/users/{user_id}", update),
    delete("/users/{user_id}", remove),
    post("/users/{user_id}/block", |call| change_state(call, "block")),
    post("/users/{user_id}/unblock", |call| change_state(call, "unblock")),
    post("/users/{user_id}/ban", |call| change_state(call, "ban")),
    post("/users/{user_id}/unban", |call| change_state(call, "unban")),
    post("/users/{user_id}/deactivate", |call| change_state(call, "deactivate")),
    post("/users/{user_id}/activate", |call| change_state(call, "activate")),
    get("/users/{user_id}/memberships", list_memberships),
];

/// The states of a user. Only an active user may make calls.
const ACTIVE: &str = "active";
const BLOCKED: &str = "blocked";
const BANNED: &str = "banned";
const DEACTIVATED: &str = "deactivated";

/// A user with all fields, as the user and administrators see them.
fn full_json(call: &Call<'_>, user: &User) -> Result<Value> {
    let mut body = public_json(call, user, false)?;
    let is_private: bool =
        call.query_value("SELECT private_profile FROM users WHERE id = ?1", [user.id])?;
    let extra_fields = json!({
        "email": user.email,
        "commit_email": user.email,
        "identities": identities::list_identities(call, user.id)?,
        "can_create_group": may_create_groups(call, user)?,
        "can_create_project": may_create_project(call, user)?,
        "two_factor_enabled": false,
        "private_profile": is_private,
        "preferred_language": "en",
        "last_sign_in_at": null,
        "current_sign_in_at": null,
        "confirmed_at": read_stored_setting(call, user, UNCONFIRMED)?.is_null().then_some(&user.created_at),
        "last_activity_on": last_activity(call, user)?,
        "scim_identities": [],
    });
    add_fields(&mut body, extra_fields);
    if call.is_administrator() {
        add_fields(&mut body, administrator_json(call, user)?);
    }
    Ok(body)
}

/// The additional fields for administrators.
fn administrator_json(call: &Call<'_>, user: &User) -> Result<Value> {
    let created_by =
        User::find_by_optional_id(call.db, read_stored_setting(call, user, CREATOR_ID)?.as_i64())?;
    let mut body = json!({
        "is_admin": user.admin,
        "namespace_id": Namespace::find_personal(call.db, user.id)?.map(|namespace| namespace.id),
        "note": read_stored_setting(call, user, "note")?,
        "created_by": created_by.map(|creator| creator.brief_json(call)),
    });
    if call.is_premium() {
        // Guests take no seat in the highest tier.
        let min_level = if call.tier() >= ServiceTier::Ultimate { GUEST } else { -1 };
        let has_seat =
            user.state == ACTIVE && !user.bot && max_level(call, user)?.unwrap_or(0) > min_level;
        body["using_license_seat"] = has_seat.into();
        body["is_auditor"] = (read_stored_setting(call, user, AUDITOR)? == true).into();
        let group_fields =
            "provisioned_by_group_id enterprise_group_id enterprise_group_associated_at";
        add_fields(&mut body, user.json_columns(group_fields));
    }
    Ok(body)
}

/// The highest level of a user in any group or project; `None` without a membership.
fn max_level(call: &Call<'_>, user: &User) -> Result<Option<i64>> {
    call.query_value("SELECT max(access_level) FROM members WHERE user_id = ?1", [user.id])
}

/// The day of the user's last activity. The sandbox does not record activity. For an active user
/// with a token, it is the day on which the account was created.
pub(super) fn last_activity(call: &Call<'_>, user: &User) -> Result<Option<String>> {
    let sql = "SELECT 1 FROM tokens WHERE user_id = ?1";
    let is_active = user.state == ACTIVE && call.db.prepare_cached(sql)?.exists([user.id])?;
    Ok(user.created_at.get(..10).filter(|_| is_active).map(str::to_owned))
}

/// Further values in the settings of a user: the id of the creator, and true for an unconfirmed
/// e-mail address.
const CREATOR_ID: &str = "created_by";
const UNCONFIRMED: &str = "unconfirmed";
/// The right to read everything.
const AUDITOR: &str = "auditor";

/// Reads and checks the fields for a new or a stored user.
fn read_requested_user(call: &Call<'_>, stored_user: Option<&User>) -> Result<RequestedUser> {
    let auditor = call.flag(AUDITOR)?.filter(|_| call.is_premium());
    let auditor = match stored_user {
        Some(user) if auditor.is_none() => Some(read_stored_setting(call, user, AUDITOR)? == true),
        _ => auditor,
    };
    let empty_user = User::default();
    let current_user = stored_user.unwrap_or(&empty_user);
    let requested_user = RequestedUser {
        email: call.text("email")?.unwrap_or_else(|| current_user.email.clone()),
        username: call.text("username")?.unwrap_or_else(|| current_user.username.clone()),
        name: call.text_or_unchanged("name", &current_user.name)?,
        admin: call.flag("admin")?.unwrap_or(current_user.admin),
        auditor,
    };
    user_rules::check_user(call, &requested_user, stored_user)?;
    Ok(requested_user)
}

/// User settings that depend on each other and on settings of the service.
const EXTERNAL: &str = "external";
const PROJECTS_LIMIT: &str = "projects_limit";
const CAN_CREATE_GROUP: &str = "can_create_group";

/// True if a user may have one more personal project.
pub(super) fn may_create_project(call: &Call<'_>, user: &User) -> Result<bool> {
    let limit =
        USER_SETTINGS.stored_values(call.db, user.id)?.get(PROJECTS_LIMIT).and_then(Value::as_i64);
    let sql = "SELECT count(*) FROM projects p JOIN namespaces n ON n.id = p.namespace_id
               WHERE n.owner_id = ?1";
    let count: i64 = call.query_value(sql, [user.id])?;
    Ok(limit.is_none_or(|limit| count < limit))
}

/// True if a user may create top-level groups: settings of the service and of the user must allow
/// the creation.
pub(super) fn may_create_groups(call: &Call<'_>, user: &User) -> Result<bool> {
    let may_create = instance::read_setting(call, CAN_CREATE_GROUP)? != Value::Bool(false);
    Ok(may_create && USER_SETTINGS.is_on(call.db, user.id, CAN_CREATE_GROUP)?)
}

/// Applies a change of `external`, also for a new user. External users cannot create projects and
/// groups. Other users get the service's defaults, unless the call has other values.
fn apply_external(call: &Call<'_>, user_id: i64, was_external: Option<bool>) -> Result<()> {
    let is_external = USER_SETTINGS.is_on(call.db, user_id, EXTERNAL)?;
    if was_external == Some(is_external) {
        return Ok(());
    }
    let defaults = if is_external {
        [(PROJECTS_LIMIT, 0.into()), (CAN_CREATE_GROUP, false.into())]
    } else {
        [
            (PROJECTS_LIMIT, instance::read_setting(call, "default_projects_limit")?),
            (CAN_CREATE_GROUP, instance::read_setting(call, CAN_CREATE_GROUP)?),
        ]
    };
    for (name, default_value) in defaults {
        if is_external || !call.has(name) {
            USER_SETTINGS.put_value(call.db, user_id, name, default_value)?;
        }
    }
    Ok(())
}

fn read_stored_setting(call: &Call<'_>, user: &User, name: &str) -> Result<Value> {
    Ok(USER_SETTINGS.stored_values(call.db, user.id)?.get(name).cloned().unwrap_or_default())
}

/// The fields that everybody may read. A blocked or banned user has fewer such fields.
fn public_json(call: &Call<'_>, user: &User, is_brief: bool) -> Result<Value> {
    let mut body = user.brief_json(call);
    let settings =
        USER_SETTINGS.visible_values(call, user.id, |row| !is_brief || row.is_in_lists())?;
    add_fields(&mut body, Value::Object(settings));
    add_fields(&mut body, user.json_columns("bot job_title work_information local_time"));
    body["job_title"] = "".into();
    let is_caller = call.caller.as_ref().is_some_and(|caller| caller.id == user.id);
    let is_visible = user.state == ACTIVE || call.is_administrator();
    set_field_if(&mut body, is_caller || is_visible, "created_at", user.created_at.as_str());
    if is_visible && !is_caller {
        add_fields(&mut body, json!({ "followers": 0, "following": 0, "is_followed": false }));
    }
    Ok(body)
}

pub(super) fn list(call: &Call<'_>) -> Result<Answer> {
    let order =
        call.allowed_text("order_by", &["id", "name", "username", "created_at", "updated_at"])?;
    let sort_direction = call.allowed_text("sort", &["asc", "desc"])?;
    let search = call.text("search")?.unwrap_or_default().to_lowercase();
    let conditions = list_conditions(call)?;
    if call.is_at_least(17, 0) {
        page::Page::from_call(call)?.check_offset("User")?;
    }
    let column = match order.as_deref() {
        Some("name") => "u.name",
        Some("username") => "u.username",
        _ => "u.id",
    };
    let direction = if sort_direction.as_deref() == Some("asc") { "ASC" } else { "DESC" };
    // The results of a search are ordered by name, unless the call has an order.
    let is_ordered = search.is_empty() || order.is_some() || sort_direction.is_some();
    let search_order = if is_ordered { "" } else { "u.name COLLATE NOCASE, " };
    let clause = conditions.clause();
    let clauses = format!("{clause} ORDER BY {search_order}{column} {direction}, u.id {direction}");
    let sees_all = call.is_administrator();
    let mut users = User::list(call.db, &clauses, &*conditions.bound_params())?;
    users.retain(|user| user.matches_search(&search, sees_all));
    let user_json = |user: &User| {
        if sees_all { full_json(call, user) } else { Ok(user.brief_json(call)) }
    };
    if call.is_observed_release_or_later() && page::requests_keyset(call)? {
        return page::list_keyset_page(call, &users, |user| user.id, user_json);
    }
    page::list_objects(call, &users, user_json)
}

/// The conditions of the filters in a call for users. Some filters have an effect only for
/// administrators.
fn list_conditions(call: &Call<'_>) -> Result<SqlConditions> {
    let (params, sees_all) = (&call.params, call.is_administrator());
    let mut conditions = SqlConditions::default();
    let username = params.text("username")?;
    let is_refused = call.caller.is_none() && username.as_deref().is_none_or(str::is_empty);
    let text = "Not authorized to access /api/v4/users";
    refuse_if(is_refused, || ErrorResponse::forbidden_because(text))?;
    conditions.add_with_value("u.username = :username", username);
    if let Some([provider, name]) = identities::read_identity(call)? {
        refuse_if(!sees_all, ErrorResponse::forbidden)?;
        let identity_sql = "EXISTS (SELECT 1 FROM json_each(u.settings, '$.identities') i
                       WHERE i.value ->> 'provider' = :provider AND i.value ->> 'extern_uid' = :name)";
        conditions.add_with_value(identity_sql, Some(provider));
        conditions.bind(":name", name);
    }
    let external_filter = if params.is_true("external")? {
        Some(true)
    } else {
        params.is_true("exclude_external")?.then_some(false)
    };
    let external_sql = "coalesce(json_extract(u.settings, '$.external'), FALSE) = :external";
    conditions.add_with_value(external_sql, external_filter);
    let excludes_active = params.is_true("exclude_active")? && call.is_observed_release_or_later();
    conditions.add_if(excludes_active, "u.state <> 'active'");
    conditions.add_if(params.is_true("admins")? && sees_all, "u.admin");
    let (only_blocked, only_active) = (params.is_true("blocked")?, params.is_true("active")?);
    conditions.add_if(only_blocked, "u.state = 'blocked'");
    conditions.add_if(only_active && !only_blocked, "u.state = 'active'");
    conditions.add_if(!sees_all, "u.state NOT IN ('blocked', 'banned')");
    let read_time = |name| {
        Ok::<_, ErrorResponse>(params.time(name)?.filter(|_| sees_all).map(clock::format_time))
    };
    conditions.add_with_value("u.created_at > :after", read_time("created_after")?);
    conditions.add_with_value("u.created_at < :before", read_time("created_before")?);
    custom_attributes::add_filter(call, &mut conditions, "c.user_id = u.id");
    Ok(conditions)
}

fn show(call: &Call<'_>) -> Result<Answer> {
    let id = call.segment_id("user_id")?;
    refuse_if(call.caller.is_none(), || ErrorResponse::forbidden_because("Not authorized!"))?;
    let user = User::find_by_id(call.db, id)?.or_not_found("User")?;
    let is_caller = call.caller.as_ref().is_some_and(|caller| caller.id == user.id);
    let sees_all = call.is_administrator() || is_caller && !call.is_observed_release_or_later();
    if !sees_all {
        return Answer::ok(&public_json(call, &user, true)?);
    }
    let mut body = full_json(call, &user)?;
    if call.is_administrator() {
        body["highest_role"] = max_level(call, &user)?.unwrap_or(0).into();
        let names = "current_sign_in_ip last_sign_in_ip sign_in_count plan";
        add_fields(&mut body, user.json_columns(names));
        body["sign_in_count"] = 0.into();
        body["trial"] = false.into();
    }
    Answer::ok(&body)
}

fn create(call: &Call<'_>) -> Result<Answer> {
    call.require_administrator()?;
    call.require_all(&[
        ParamRequirement::Present("email"),
        ParamRequirement::AnyOf(&["password", "reset_password", "force_random_password"]),
        ParamRequirement::Present("name"),
        ParamRequirement::Present("username"),
    ])?;
    identities::read_identity(call)?;
    let requested_user = read_requested_user(call, None)?;
    let RequestedUser { username, name, email, admin, .. } = &requested_user;
    let new_user = User { admin: *admin, ..User::new_active(username, name, email) };
    let id = new_user.insert(call.db, call.time_text())?;
    if instance::read_setting(call, "user_default_external")? == true {
        USER_SETTINGS.put_value(call.db, id, EXTERNAL, true)?;
    }
    USER_SETTINGS.put_value(call.db, id, CREATOR_ID, call.require_user()?.id)?;
    if !call.is_true("skip_confirmation")? {
        USER_SETTINGS.put_value(call.db, id, UNCONFIRMED, true)?;
    }
    Answer::created(&store_user_params(call, id, &requested_user, None)?)
}

/// Stores the remaining fields of a call for a user. `was_external` is the user's external state
/// before the call; `None` means a new user.
fn store_user_params(
    call: &Call<'_>,
    id: i64,
    requested_user: &RequestedUser,
    was_external: Option<bool>,
) -> Result<Value> {
    let ignored_names: &[&str] = if call.is_observed_release_or_later() && was_external.is_none() {
        &["organization"]
    } else {
        &[]
    };
    USER_SETTINGS.store_params(call, id, WriteRoute::Edit, ignored_names)?;
    if call.is_observed_release_or_later() && call.get(EXTERNAL).is_some_and(Value::is_null) {
        USER_SETTINGS.put_value(call.db, id, EXTERNAL, Value::Null)?;
    }
    apply_external(call, id, was_external)?;
    identities::store_identity(call, id)?;
    if let Some(auditor) = requested_user.auditor {
        USER_SETTINGS.put_value(call.db, id, AUDITOR, auditor)?;
    }
    avatars::store_avatar(call, Holder::User(id), &call.params)?;
    full_json(call, &User::find_by_id(call.db, id)?.or_not_found("User")?)
}

/// Edits a user. A new username also renames the personal namespace and everything in it. A new
/// e-mail address only has an effect with `skip_reconfirmation`, because nobody can confirm an
/// address in the sandbox.
fn update(call: &Call<'_>) -> Result<Answer> {
    call.require_administrator()?;
    identities::read_identity(call)?;
    let user = call.segment_user()?;
    let requested_user = read_requested_user(call, Some(&user))?;
    let RequestedUser { username, name, email, admin, .. } = &requested_user;
    let email = if call.is_true("skip_reconfirmation")? { email } else { &user.email };
    let is_private = call.flag("private_profile")?;
    let sql = "UPDATE users SET name = ?2, email = ?3, username = ?4, admin = ?5,
                   private_profile = coalesce(?6, private_profile)
               WHERE id = ?1";
    call.execute(sql, params![user.id, name, email, username, admin, is_private])?;
    if let Some(namespace) = Namespace::find_personal(call.db, user.id)? {
        let sql = "UPDATE namespaces SET name = ?2, path = ?3 WHERE id = ?1";
        call.execute(sql, params![namespace.id, name, username])?;
        group_moves::update_full_paths(call, &namespace)?;
    }
    let was_external = USER_SETTINGS.is_on(call.db, user.id, EXTERNAL)?;
    Answer::ok(&store_user_params(call, user.id, &requested_user, Some(was_external))?)
}

fn remove(call: &Call<'_>) -> Result<Answer> {
    let caller = call.require_administrator()?;
    let user = call.segment_user()?;
    refuse_if(user.id == caller.id, || ErrorResponse::bad_request("the caller cannot be deleted"))?;
    let sql = "SELECT EXISTS (SELECT 1 FROM members m WHERE m.user_id = ?1 AND m.access_level = ?2
                   AND m.group_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM members o
                   WHERE o.group_id = m.group_id AND o.access_level = ?2 AND o.user_id <> ?1))";
    let is_sole_owner = !call.is_true("hard_delete")? && call.query_value(sql, [user.id, OWNER])?;
    let text = "User cannot be removed while is the sole-owner of a group";
    refuse_if(is_sole_owner, || ErrorResponse::conflict(text))?;
    call.check_unmodified(&user.created_at)?;
    call.execute("DELETE FROM users WHERE id = ?1", [user.id])?;
    Ok(Answer::no_content())
}

fn change_state(call: &Call<'_>, action: &str) -> Result<Answer> {
    let caller = call.require_administrator()?;
    let user = call.segment_user()?;
    let text = "The API initiating user cannot be blocked by the API";
    let is_self = action == "block" && user.id == caller.id;
    refuse_if(is_self, || ErrorResponse::forbidden_because(text))?;
    let is_active =
        action == "deactivate" && user.state == ACTIVE && last_activity(call, &user)?.is_some();
    let message = "The user you are trying to deactivate has been active in the past 90 days and cannot be deactivated";
    refuse_if(is_active, || ErrorResponse::forbidden_message(message))?;
    let refuse = |text: &str| Err(ErrorResponse::forbidden_message(text));
    let state = match (action, user.state.as_str()) {
        ("block", ACTIVE | DEACTIVATED) => BLOCKED,
        ("ban", ACTIVE) => BANNED,
        ("deactivate", ACTIVE) => DEACTIVATED,
        ("unblock", BLOCKED | BANNED) | ("unban", BANNED) | ("activate", DEACTIVATED) => ACTIVE,
        // Nothing changes.
        ("activate", ACTIVE) => return Answer::created(&true),
        ("unblock", ACTIVE) => return Answer::created(&false),
        ("block", _) | ("deactivate", DEACTIVATED) => return Answer::created(&Value::Null),
        ("unblock", _) => {
            return refuse("403 Forbidden - Deactivated users cannot be unblocked by the API");
        }
        ("activate", _) => {
            return refuse("Error occurred. A blocked user must be unblocked to be activated");
        }
        ("deactivate", _) => return refuse("Error occurred. A blocked user cannot be deactivated"),
        (_, state) => return refuse(&format!("You cannot {action} {state} users.")),
    };
    call.set_column("users", user.id, "state", state)?;
    Answer::created(&true)
}

fn list_memberships(call: &Call<'_>) -> Result<Answer> {
    call.require_administrator()?;
    let user = call.segment_user()?;
    let source_type = call.allowed_text("type", &["Namespace", "Project"])?;
    let sql = "SELECT json_object('source_id', coalesce(m.group_id, m.project_id),
                'source_name', coalesce(n.name, p.name),
                'source_type', iif(m.group_id IS NULL, 'Project', 'Namespace'),
                'access_level', m.access_level)
         FROM members m LEFT JOIN namespaces n ON n.id = m.group_id LEFT JOIN projects p ON p.id = m.project_id
         WHERE m.user_id = ?1 AND (?2 IS NULL OR ?2 = iif(m.group_id IS NULL, 'Project', 'Namespace'))
         ORDER BY m.id";
    page::list_page(call, call.query_objects(sql, params![user.id, source_type])?)
}
