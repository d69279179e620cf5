//! Custom roles: a level with further permissions. They belong to the whole service, and its
//! administrators make them. Members, shares and links of groups name one by its id, together with
//! its level. The permissions themselves have no effect here.

use super::prelude::*;

pub(super) const ROUTES: &[Route] = &[
    get("/member_roles", list),
    post("/member_roles", create),
    delete("/member_roles/{member_role_id}", remove),
    get("/groups/{id}/member_roles", refuse_group_roles),
    post("/groups/{id}/member_roles", refuse_group_roles),
    delete("/groups/{id}/member_roles/{member_role_id}", refuse_group_roles),
];

/// The field with the id of a role.
pub(super) const ROLE: &str = "member_role_id";
const BASE_LEVEL: &str = "base_access_level";
const MISMATCH: &str =
    "the custom role's base access level does not match the current access level";

/// A custom role.
pub(super) struct Role {
    pub(super) id: i64,
    pub(super) name: String,
    description: Option<String>,
    base_access_level: i64,
    /// The JSON list of its permissions.
    settings: String,
}

stored!(Role: member_roles r, id, name, description, base_access_level, settings);

impl Role {
    pub(super) fn json(&self, call: &Call<'_>) -> Value {
        let granted: Vec<&str> = serde_json::from_str(&self.settings).unwrap_or_default();
        let mut body = self.members("id group_id name description base_access_level");
        for name in permissions(call) {
            body[name] = granted.contains(&name).into();
        }
        body
    }

    /// Refuses another level for a member with this role. `had_role` is true if the member already has
    /// the role.
    pub(super) fn check_level(&self, level: i64, had_role: bool) -> Result<()> {
        let mut complaints = Complaints::default();
        let is_different = level != self.base_access_level;
        let locked = "cannot be changed because of an existing association with a custom role";
        complaints.add_if(is_different, ROLE, MISMATCH);
        complaints.add_if(is_different && had_role, "access_level", locked);
        complaints.into_result()
    }
}

/// The permissions that the release has.
fn permissions(call: &Call<'_>) -> impl Iterator<Item = &'static str> {
    let edition = call.edition();
    ATTRIBUTE_TABLE.permissions.iter().filter(move |row| row.exists_in(edition)).map(|row| row.name)
}

/// True if the service has custom roles in this place, which exist there from a release on.
pub(super) fn are_available(call: &Call<'_>, since: Release) -> bool {
    call.release() >= since && call.tier() >= AttributeTier::Ultimate
}

/// The role in a call, from a release on: `None` if it has no such field, `Some(None)` if the field
/// is null or blank. An unknown role is refused.
pub(super) fn sent_role(
    call: &Call<'_>,
    since: Release,
    unknown_role: impl FnOnce() -> ErrorResponse,
) -> Result<Option<Option<Role>>> {
    if !are_available(call, since) || !call.params.has(ROLE) {
        return Ok(None);
    }
    let Some(id) = call.params.integer(ROLE)? else { return Ok(Some(None)) };
    Role::by_id(call.db, id)?.map(|role| Some(Some(role))).ok_or_else(unknown_role)
}

/// The role of a new membership, share or link. An unknown role is 500, as in the real service.
pub(super) fn new_role(call: &Call<'_>, since: Release) -> Result<Option<Role>> {
    Ok(sent_role(call, since, || ErrorResponse::internal(&"an unknown custom role"))?.flatten())
}

/// The id of the role for a new share or link with this level. `refusal` makes the answer for a
/// role with another level.
pub(super) fn role_id(
    call: &Call<'_>,
    since: Release,
    level: Option<i64>,
    refusal: impl FnOnce(&str) -> ErrorResponse,
) -> Result<Option<i64>> {
    let role = new_role(call, since)?;
    let is_matching = role.as_ref().is_none_or(|role| level == Some(role.base_access_level));
    refuse_if(!is_matching, || refusal(&format!("Member role {MISMATCH}")))?;
    Ok(role.map(|role| role.id))
}

/// The id of a link's role; null if that was deleted.
pub(super) fn link_role_json(call: &Call<'_>, link: &Record) -> Result<Value> {
    let role = Role::by_any(call.db, link.value(ROLE).as_i64())?;
    Ok(role.map(|role| role.id).into())
}

/// The routes exist from 16.9 on, for signed-in callers.
fn check_access(call: &Call<'_>) -> Result<()> {
    refuse_if(!call.is_at_least(16, 9), ErrorResponse::no_route)?;
    call.user()?;
    call.require_tier(AttributeTier::Premium)
}

/// Checked after the parameters; the answer for a tier without roles is the same.
fn check_administrator(call: &Call<'_>) -> Result<()> {
    call.administrator()?;
    refuse_if(call.tier() < AttributeTier::Ultimate, ErrorResponse::forbidden)
}

/// Lists the roles, the newest first, without pages.
fn list(call: &Call<'_>) -> Result<Answer> {
    check_access(call)?;
    check_administrator(call)?;
    let roles = Role::list(call.db, "ORDER BY r.id DESC", [])?;
    Answer::ok(&roles.iter().map(|role| role.json(call)).collect::<Vec<_>>())
}

fn create(call: &Call<'_>) -> Result<Answer> {
    check_access(call)?;
    call.params.require_all(&[Need::Listed(BASE_LEVEL)])?;
    let level = call
        .params
        .allowed_integer(BASE_LEVEL, |level| terms::is_valid_level(call, level, true))?;
    let level = level.unwrap_or_default();
    let mut granted = Vec::new();
    for name in permissions(call) {
        granted.extend(call.params.is_set(name)?.then_some(name));
    }
    let name = call.params.text("name")?.filter(|name| !name.trim().is_empty());
    let mut role = Role {
        id: 0,
        name: name.unwrap_or_else(|| format!("{} - custom", level_name(level))),
        description: call.params.text("description")?,
        base_access_level: level,
        settings: json!(granted).to_string(),
    };
    check_administrator(call)?;
    let is_taken = Role::first(call.db, "WHERE r.name = ?1", [&role.name])?.is_some();
    let complaints = [
        granted.is_empty().then_some("Cannot create a member role with no enabled permissions"),
        is_taken.then_some("Name has already been taken"),
        (level == OWNER).then_some("Base access level is not included in the list"),
    ];
    let wrong: Vec<&str> = complaints.into_iter().flatten().collect();
    refuse_if(!wrong.is_empty(), || ErrorResponse::bad_request_message(wrong.join(", ")))?;
    role.id = role.put(call.db)?;
    Answer::created(&role.json(call))
}

fn remove(call: &Call<'_>) -> Result<Answer> {
    check_access(call)?;
    let id = call.segment_id(ROLE)?;
    check_administrator(call)?;
    let role = Role::by_id(call.db, id)?.ok_or_else(|| ErrorResponse::not_found("Member Role"))?;
    let is_used = "SELECT EXISTS (SELECT 1 FROM members WHERE member_role_id = ?1)";
    refuse_if(call.query_value(is_used, [id])?, || {
        ErrorResponse::bad_request_message(
            "Role is assigned to one or more group members. Remove role from all group members, then delete role.",
        )
    })?;
    role.remove(call.db)?;
    Ok(Answer::no_content())
}

/// Only the hosted service has roles of groups, from 17.0 on. Neither group nor parameters are
/// checked.
fn refuse_group_roles(call: &Call<'_>) -> Result<Answer> {
    refuse_if(!call.is_at_least(17, 0), ErrorResponse::no_route)?;
    call.user()?;
    call.require_tier(AttributeTier::Premium)?;
    let page = "help/update/deprecations.md#deprecate-custom-role-creation-for-group-owners-on-self-managed";
    let text = "Group-level custom roles are deprecated on self-managed instances.";
    Err(ErrorResponse::bad_request(&format!("{text} See {}/{page}", call.base_url)))
}
