//! Custom roles: levels with additional permissions. Custom roles belong to the whole service, and
//! administrators create them. Members, shares and links of groups refer to a role by its id,
//! together with its level. In the sandbox, the permissions have no effect.

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
pub(super) const ROLE_ID: &str = "member_role_id";
const BASE_LEVEL: &str = "base_access_level";
const MISMATCH_TEXT: &str =
    "the custom role's base access level does not match the current access level";

/// A custom role.
pub(super) struct MemberRole {
    pub(super) id: i64,
    pub(super) name: String,
    description: Option<String>,
    base_access_level: i64,
    /// The names of the role's permissions, as a JSON list.
    settings: String,
}

stored!(MemberRole: member_roles r, id, name, description, base_access_level, settings);

impl MemberRole {
    pub(super) fn json(&self, call: &Call<'_>) -> Value {
        let granted_names: Vec<&str> = serde_json::from_str(&self.settings).unwrap_or_default();
        let mut body = self.json_columns("id group_id name description base_access_level");
        for name in permissions(call) {
            body[name] = granted_names.contains(&name).into();
        }
        body
    }

    /// Refuses a level that differs from the level of the role. `had_role` is true if the member already has
    /// the role.
    pub(super) fn check_level(&self, level: i64, had_role: bool) -> Result<()> {
        let mut errors = FieldErrors::default();
        let is_different = level != self.base_access_level;
        let locked_message =
            "cannot be changed because of an existing association with a custom role";
        errors.add_if(is_different, ROLE_ID, MISMATCH_TEXT);
        errors.add_if(is_different && had_role, "access_level", locked_message);
        errors.into_result()
    }
}

/// The names of the permissions that exist in this release and tier.
fn permissions(call: &Call<'_>) -> impl Iterator<Item = &'static str> {
    call.edition().filter_existing(&ATTRIBUTE_TABLE.permissions).map(|attribute| attribute.name)
}

/// True if this service has custom roles for a type of object. `since` is the first release in
/// which objects of this type can have a role.
pub(super) fn are_roles_available(call: &Call<'_>, since: Release) -> bool {
    call.release() >= since && call.tier() >= ServiceTier::Ultimate
}

/// Reads the role from a call, from the release `since` on. `None` if the call has no such field;
/// `Some(None)` if the field is null or blank. `make_error` makes the error for an unknown role.
pub(super) fn read_role(
    call: &Call<'_>,
    since: Release,
    make_error: impl FnOnce() -> ErrorResponse,
) -> Result<Option<Option<MemberRole>>> {
    if !are_roles_available(call, since) || !call.has(ROLE_ID) {
        return Ok(None);
    }
    let Some(id) = call.integer(ROLE_ID)? else { return Ok(Some(None)) };
    MemberRole::find_by_id(call.db, id)?.map(|role| Some(Some(role))).ok_or_else(make_error)
}

/// The role of a new membership, share or link. An unknown role results in 500, as in the real
/// service.
pub(super) fn read_new_role(call: &Call<'_>, since: Release) -> Result<Option<MemberRole>> {
    Ok(read_role(call, since, || ErrorResponse::internal(&"an unknown custom role"))?.flatten())
}

/// Reads the id of the role for a new share or link with this level. `make_error` makes the error for a
/// role with another level.
pub(super) fn read_role_id(
    call: &Call<'_>,
    since: Release,
    level: Option<i64>,
    make_error: impl FnOnce(&str) -> ErrorResponse,
) -> Result<Option<i64>> {
    let role = read_new_role(call, since)?;
    let is_matching = role.as_ref().is_none_or(|role| level == Some(role.base_access_level));
    refuse_if(!is_matching, || make_error(&format!("Member role {MISMATCH_TEXT}")))?;
    Ok(role.map(|role| role.id))
}

/// The id of a link's role; null if the role was deleted.
pub(super) fn link_role_json(call: &Call<'_>, link: &Record) -> Result<Value> {
    let role = MemberRole::find_by_optional_id(call.db, link.value(ROLE_ID).as_i64())?;
    Ok(role.map(|role| role.id).into())
}

/// Refuses calls before release 16.9, anonymous callers, and licences below Premium.
fn check_access(call: &Call<'_>) -> Result<()> {
    refuse_if(!call.is_at_least(16, 9), ErrorResponse::route_not_found)?;
    call.require_user()?;
    call.require_tier(ServiceTier::Premium)
}

/// Refuses callers who are not administrators, and tiers without roles. This check must come after
/// the checks of the parameters.
fn check_administrator(call: &Call<'_>) -> Result<()> {
    call.require_administrator()?;
    refuse_if(call.tier() < ServiceTier::Ultimate, ErrorResponse::forbidden)
}

/// Lists the roles, the newest first, without pages.
fn list(call: &Call<'_>) -> Result<Answer> {
    check_access(call)?;
    check_administrator(call)?;
    let roles = MemberRole::list(call.db, "ORDER BY r.id DESC", [])?;
    Answer::ok(&roles.iter().map(|role| role.json(call)).collect::<Vec<_>>())
}

fn create(call: &Call<'_>) -> Result<Answer> {
    check_access(call)?;
    call.require_all(&[ParamRequirement::AllowedValue(BASE_LEVEL)])?;
    let level =
        call.allowed_integer(BASE_LEVEL, |level| terms::is_valid_level(call, level, true))?;
    let level = level.unwrap_or_default();
    let mut granted_names = Vec::new();
    for name in permissions(call) {
        granted_names.extend(call.is_true(name)?.then_some(name));
    }
    let name = call.text("name")?.filter(|name| !name.trim().is_empty());
    let mut role = MemberRole {
        id: 0,
        name: name.unwrap_or_else(|| format!("{} - custom", level_name(level))),
        description: call.text("description")?,
        base_access_level: level,
        settings: json!(granted_names).to_string(),
    };
    check_administrator(call)?;
    let is_taken = MemberRole::find_first(call.db, "WHERE r.name = ?1", [&role.name])?.is_some();
    let errors = [
        granted_names
            .is_empty()
            .then_some("Cannot create a member role with no enabled permissions"),
        is_taken.then_some("Name has already been taken"),
        (level == OWNER).then_some("Base access level is not included in the list"),
    ];
    let error_texts: Vec<&str> = errors.into_iter().flatten().collect();
    refuse_if(!error_texts.is_empty(), || {
        ErrorResponse::bad_request_message(error_texts.join(", "))
    })?;
    role.id = role.upsert(call.db)?;
    Answer::created(&role.json(call))
}

fn remove(call: &Call<'_>) -> Result<Answer> {
    check_access(call)?;
    let id = call.segment_id(ROLE_ID)?;
    check_administrator(call)?;
    let role = MemberRole::find_by_id(call.db, id)?.or_not_found("Member Role")?;
    let usage_sql = "SELECT EXISTS (SELECT 1 FROM members WHERE member_role_id = ?1)";
    refuse_if(call.query_value(usage_sql, [id])?, || {
        "Role is assigned to one or more group members. Remove role from all group members, then delete role.".into()
    })?;
    role.remove(call.db)?;
    Ok(Answer::no_content())
}

/// Refuses the operations for roles of groups. Only the hosted service has such roles, from 17.0
/// on. The group and the parameters are not checked.
fn refuse_group_roles(call: &Call<'_>) -> Result<Answer> {
    refuse_if(!call.is_at_least(17, 0), ErrorResponse::route_not_found)?;
    call.require_user()?;
    call.require_tier(ServiceTier::Premium)?;
    let help_page = "help/update/deprecations.md#deprecate-custom-role-creation-for-group-owners-on-self-managed";
    let message = "Group-level custom roles are deprecated on self-managed instances.";
    Err(ErrorResponse::bad_request(&format!("{message} See {}/{help_page}", call.base_url)))
}
