//! Memberships across a whole hierarchy: billable and pending members, their state, overrides
//! (reference 1, 4.3).
//!
//! Except for overrides, these operations need an owner and a root group. Other calls get 400.

use std::cmp::Reverse;

use super::members::{Member, STATES};
use super::prelude::*;

pub(super) const ROUTES: &[Route] = &[
    get("/groups/{id}/billable_members", list_billable_members),
    get("/groups/{id}/billable_members/{user_id}/memberships", list_billable_memberships),
    get("/groups/{id}/billable_members/{user_id}/indirect", list_indirect_memberships),
    delete("/groups/{id}/billable_members/{user_id}", remove_billable_member),
    put("/groups/{id}/members/{user_id}/state", set_member_state),
    put("/groups/{id}/members/{user_id}/approve", approve_member),
    post("/groups/{id}/members/approve_all", |call| {
        owned_root_group(call)?.set_state(call, None, "active")?;
        Ok(Answer::no_content())
    }),
    get("/groups/{id}/pending_members", |call| {
        page::list_objects(call, PendingMember::list_pending(call)?, |member| member.json(call))
    }),
    post("/groups/{id}/members/{user_id}/override", |call| set_override(call, true)),
    // The reference's example uses PUT, but its declaration uses POST.
    put("/groups/{id}/members/{user_id}/override", |call| set_override(call, true)),
    delete("/groups/{id}/members/{user_id}/override", |call| set_override(call, false)),
];

/// The SQL condition for memberships `m` at and below a group. The traversals of these groups are
/// from `?1` to `?2`.
const IN_HIERARCHY_SQL: &str =
    "(m.group_id IN (SELECT id FROM namespaces WHERE traversal >= ?1 AND traversal < ?2)
     OR m.project_id IN (SELECT p.id FROM projects p JOIN namespaces n ON n.id = p.namespace_id
                         WHERE n.traversal >= ?1 AND n.traversal < ?2))";

impl Namespace {
    /// All memberships at and below a group.
    fn subtree_memberships(&self, call: &Call<'_>) -> Result<Vec<Member>> {
        Member::list_where(call, IN_HIERARCHY_SQL, self.traversal_range())
    }

    /// The number of users who use a seat at and below a group.
    pub(super) fn count_seats(&self, call: &Call<'_>) -> Result<usize> {
        Ok(Seat::list_seats(call, self)?.len())
    }

    /// Changes the state of all memberships in the hierarchy, or only of one user's memberships.
    /// Returns the number of changed memberships.
    fn set_state(&self, call: &Call<'_>, user_id: Option<i64>, state: &str) -> Result<usize> {
        let (range_start, range_end) = self.traversal_range();
        let sql = format!(
            "UPDATE members AS m SET state = ?3 WHERE (?4 IS NULL OR m.user_id = ?4) AND {IN_HIERARCHY_SQL}"
        );
        call.execute(&sql, params![range_start, range_end, state, user_id])
    }

    /// Removes the user's direct memberships in the groups and projects below a group.
    pub(super) fn remove_memberships(&self, call: &Call<'_>, user_id: i64) -> Result<()> {
        let (range_start, range_end) = self.traversal_range();
        let sql = format!("DELETE FROM members AS m WHERE {IN_HIERARCHY_SQL} AND m.user_id = ?3");
        call.execute(&sql, params![range_start, range_end, user_id]).map(drop)
    }
}

/// A membership with its group or project.
fn membership_json(call: &Call<'_>, member: &Member) -> Result<Value> {
    let (source_id, source_name, members_path) =
        match Namespace::find_by_optional_id(call.db, member.group_id)? {
            Some(group) => {
                let members_path = format!("groups/{}/-/group_members", group.full_path);
                (group.id, group.full_name, members_path)
            }
            None => {
                let project = Project::find_by_id(call.db, member.project_id.unwrap_or_default())?;
                let project = project.or_no_record()?;
                let members_path = format!("{}/-/project_members", project.full_path);
                (project.id, project.full_name(), members_path)
            }
        };
    let mut body = member.json_columns(
        "id source_id source_full_name source_members_url created_at expires_at access_level",
    );
    body["source_id"] = source_id.into();
    body["source_full_name"] = source_name.into();
    body["source_members_url"] = format!("{}/{members_path}", call.base_url).into();
    let (level, role_name) = (member.access_level, level_name(member.access_level));
    body["access_level"] = json!({ "string_value": role_name, "integer_value": level });
    if call.is_observed_release_or_later() {
        let role = MemberRole::find_by_optional_id(call.db, member.role_id)?;
        let role = role.map(|role| json!({ "id": role.id, "name": role.name }));
        body["access_level"]["custom_role"] = role.into();
    }
    Ok(body)
}

/// A user who uses a seat, with the user's highest level.
struct Seat {
    user: User,
    level: i64,
    /// True if the user is a member only through an invited group.
    is_invited: bool,
}

impl Seat {
    /// All members at and below a group, in the order of joining; members of invited groups come
    /// last.
    fn list_seats(call: &Call<'_>, group: &Namespace) -> Result<Vec<Self>> {
        let direct_seats = group.subtree_memberships(call)?.into_iter().map(|member| Self {
            user: member.user,
            level: member.access_level,
            is_invited: false,
        });
        let mut seats: Vec<Self> = Vec::new();
        for seat in
            direct_seats.chain(Self::list_invited_seats(call, group)?).filter(|seat| !seat.user.bot)
        {
            match seats.iter_mut().find(|other| other.user.id == seat.user.id) {
                Some(other) => other.level = other.level.max(seat.level),
                None => seats.push(seat),
            }
        }
        Ok(seats)
    }

    /// The members of the groups that are invited to a group or below it. Members of the groups
    /// above an invited group are included.
    fn list_invited_seats(call: &Call<'_>, group: &Namespace) -> Result<Vec<Self>> {
        let clauses = format!(
            "JOIN members i ON i.user_id = u.id
             JOIN shares m JOIN namespaces n ON n.id = m.invited_id
             JOIN json_each('[' || replace(trim(n.traversal, '/'), '/', ',') || ']') above ON above.value = i.group_id
             WHERE {IN_HIERARCHY_SQL} ORDER BY i.id"
        );
        let level_column = "min(i.access_level, m.access_level)";
        let read_seat = |user, row: &Row<'_>| {
            Ok(Self { user, level: row.get(User::COLUMN_COUNT)?, is_invited: true })
        };
        let range = group.traversal_range();
        Ok(User::list_with(call.db, level_column, &clauses, range, read_seat)?)
    }

    /// A billable member as in the reference (1, 2.4). `owner_ids` are the ids of the group's
    /// owners. The last login is null, because nobody signs in to the sandbox.
    fn json(&self, call: &Call<'_>, owner_ids: &[i64]) -> Result<Value> {
        let mut body = self.user.brief_json(call);
        body["last_activity_on"] = users::last_activity(call, &self.user)?.into();
        body["membership_type"] =
            if self.is_invited { "group_invite" } else { "group_member" }.into();
        body["removable"] = (!self.is_invited).into();
        body["created_at"] = self.user.created_at.as_str().into();
        body["last_login_at"] = Value::Null;
        if call.is_observed_release_or_later() {
            let email = Some(&self.user.email).filter(|_| call.is_administrator());
            body["email"] = json!(email);
            body["is_last_owner"] = (*owner_ids == [self.user.id]).into();
        }
        Ok(body)
    }
}

/// The root group of a call. Fails with 400 unless the caller owns it.
fn owned_root_group(call: &Call<'_>) -> Result<Namespace> {
    call.require_user()?;
    let group = call.group()?;
    let is_owned = group.parent_id.is_none() && call.caller_level_in_group(&group)? >= OWNER;
    refuse_if(!is_owned, || "400 Bad request".into())?;
    Ok(group)
}

const SEAT_ORDERS: &str = "access_level_asc access_level_desc last_joined name_asc name_desc \
    oldest_joined oldest_sign_in recent_sign_in last_activity_on_asc last_activity_on_desc";

/// Sorts seats, which are in the order of joining. From 18.9 on, orders by membership have no effect. Nobody
/// signs in here, so sorting by last activity means sorting by creation.
fn sort_seats(seats: &mut [Seat], order: &str, is_observed_release_or_later: bool) {
    match order {
        "access_level_asc" if !is_observed_release_or_later => seats.sort_by_key(|seat| seat.level),
        "access_level_desc" if !is_observed_release_or_later => {
            seats.sort_by_key(|seat| Reverse(seat.level));
        }
        "last_joined" if !is_observed_release_or_later => seats.reverse(),
        "name_asc" => seats.sort_by_key(|seat| seat.user.name.to_lowercase()),
        "name_desc" => seats.sort_by_key(|seat| Reverse(seat.user.name.to_lowercase())),
        "oldest_sign_in" | "last_activity_on_asc" => seats.sort_by_key(|seat| seat.user.id),
        "recent_sign_in" | "last_activity_on_desc" => {
            seats.sort_by_key(|seat| Reverse(seat.user.id));
        }
        _ => {}
    }
}

fn list_billable_members(call: &Call<'_>) -> Result<Answer> {
    let group = owned_root_group(call)?;
    let orders: Vec<&str> = SEAT_ORDERS.split(' ').collect();
    let order = call.allowed_text("sort", &orders)?.unwrap_or_default();
    let search = call.text("search")?.unwrap_or_default().to_lowercase();
    let mut seats = Seat::list_seats(call, &group)?;
    seats.retain(|seat| seat.user.matches_search(&search, true));
    sort_seats(&mut seats, &order, call.is_observed_release_or_later());
    let mut owners = group.subtree_memberships(call)?;
    owners.retain(|member| member.group_id == Some(group.id) && member.access_level == OWNER);
    let owner_ids: Vec<i64> = owners.into_iter().map(|member| member.user.id).collect();
    page::list_objects(call, &seats, |seat| seat.json(call, &owner_ids))
}

fn list_billable_memberships(call: &Call<'_>) -> Result<Answer> {
    let group = owned_root_group(call)?;
    let user_id = existing_user_id(call)?;
    let mut memberships = group.subtree_memberships(call)?;
    memberships.retain(|membership| membership.user.id == user_id);
    refuse_if(memberships.is_empty(), || ErrorResponse::not_found("User"))?;
    page::list_objects(call, &memberships, |membership| membership_json(call, membership))
}

/// The user's memberships in groups that are invited anywhere in the hierarchy.
fn list_indirect_memberships(call: &Call<'_>) -> Result<Answer> {
    refuse_if(!call.is_observed_release_or_later(), ErrorResponse::route_not_found)?;
    let (range_start, range_end) = owned_root_group(call)?.traversal_range();
    let user_id = existing_user_id(call)?;
    let condition = format!(
        "m.user_id = ?3 AND m.group_id IN (SELECT m.invited_id FROM shares m WHERE {IN_HIERARCHY_SQL})"
    );
    let mut memberships =
        Member::list_where(call, &condition, params![range_start, range_end, user_id])?;
    memberships.sort_by_key(|member| member.group_id);
    page::list_objects(call, &memberships, |member| membership_json(call, member))
}

/// The id of the user in the path; 404 for an unknown user.
fn existing_user_id(call: &Call<'_>) -> Result<i64> {
    let user = User::find_by_id(call.db, call.segment_id("user_id")?)?;
    Ok(user.or_no_record()?.id)
}

/// Removes a user from the whole hierarchy. The last owner cannot be removed. From 18.9 on, a user
/// without memberships is no error.
fn remove_billable_member(call: &Call<'_>) -> Result<Answer> {
    let is_below =
        call.is_observed_release_or_later() && call.require_group(OWNER)?.parent_id.is_some();
    refuse_if(is_below, || ErrorResponse::bad_request("Must be a root namespace"))?;
    let group = owned_root_group(call)?;
    let user_id = call.segment_id("user_id")?;
    let is_unknown =
        call.is_observed_release_or_later() && User::find_by_id(call.db, user_id)?.is_none();
    refuse_if(is_unknown, || ErrorResponse::bad_request(r#"["User must exist"]"#))?;
    let memberships = group.subtree_memberships(call)?;
    let is_member = memberships.iter().any(|membership| membership.user.id == user_id);
    refuse_if(!call.is_observed_release_or_later() && !is_member, || {
        ErrorResponse::not_found("User")
    })?;
    let mut owners = memberships
        .iter()
        .filter(|membership| membership.group_id == Some(group.id) && membership.is_acting_owner());
    let is_last_owner = owners.next().is_some_and(|owner| owner.user.id == user_id)
        && owners.all(|owner| owner.user.id == user_id);
    refuse_if(is_last_owner, || call.last_owner_error())?;
    group.remove_memberships(call, user_id)?;
    Ok(Answer::no_content())
}

fn set_member_state(call: &Call<'_>) -> Result<Answer> {
    let group = owned_root_group(call)?;
    call.require_all(&[ParamRequirement::AllowedValue("state")])?;
    let state = call.allowed_text("state", &STATES)?.unwrap_or_default();
    let user = User::find_by_id(call.db, call.segment_id("user_id")?)?.or_not_found("User")?;
    match group.set_state(call, Some(user.id), &state)? {
        0 => Err(ErrorResponse::invalid_record("No memberships found")),
        _ => Answer::ok(&json!({ "success": true })),
    }
}

/// Approves a pending member. The path contains the id of the membership, as in the list of pending
/// members, or the id of the user.
fn approve_member(call: &Call<'_>) -> Result<Answer> {
    let group = owned_root_group(call)?;
    let id: i64 = call
        .segment("user_id")
        .parse()
        .map_err(|_| ErrorResponse::invalid_parameter("member_id"))?;
    let mut pending_members = PendingMember::list_pending(call)?;
    pending_members.retain(|pending_member| {
        !pending_member.approved && (pending_member.id == id || pending_member.user_id == Some(id))
    });
    let member = pending_members
        .iter()
        .min_by_key(|pending_member| pending_member.id != id)
        .ok_or_else(ErrorResponse::not_found_hidden)?;
    match member.user_id {
        Some(user_id) => drop(group.set_state(call, Some(user_id), "active")?),
        None => call.set_column("members", member.id, "state", "active")?,
    }
    Ok(Answer::no_content())
}

/// A membership that waits for approval, or for the account of an invited person.
struct PendingMember {
    id: i64,
    user_id: Option<i64>,
    /// The invited address, for a user without an account.
    email: Option<String>,
    approved: bool,
}

stored!(PendingMember: members m, id, user_id, email, approved = "m.state = 'active'");

impl PendingMember {
    /// The pending memberships at and below the root group.
    fn list_pending(call: &Call<'_>) -> Result<Vec<Self>> {
        let clauses = format!(
            "WHERE (m.state = 'awaiting' OR m.user_id IS NULL) AND {IN_HIERARCHY_SQL} ORDER BY m.id"
        );
        Ok(Self::list(call.db, &clauses, owned_root_group(call)?.traversal_range())?)
    }

    /// A pending member as in the reference (1, 2.6).
    fn json(&self, call: &Call<'_>) -> Result<Value> {
        let base = &call.base_url;
        let mut body = match User::find_by_optional_id(call.db, self.user_id)? {
            Some(user) => {
                let mut body = user.json_columns("id name username email avatar_url");
                body["avatar_url"] = user.avatar_url(base).into();
                body["web_url"] = format!("{base}/{}", user.username).into();
                body
            }
            None => json!({
                "id": null, "email": self.email, "avatar_url": format!("{base}/assets/no_avatar.png"),
            }),
        };
        body["id"] = self.id.into();
        body["approved"] = self.approved.into();
        body["invited"] = self.user_id.is_none().into();
        Ok(body)
    }
}

fn set_override(call: &Call<'_>, is_overridden: bool) -> Result<Answer> {
    let group = call.require_group(OWNER)?;
    let user_id = call.segment_id("user_id")?;
    refuse_if(call.profile().override_needs_directory, ErrorResponse::forbidden)?;
    let sql = "UPDATE members SET override = ?3 WHERE group_id = ?1 AND user_id = ?2";
    let changed_count = call.execute(sql, params![group.id, user_id, is_overridden])?;
    refuse_if(changed_count == 0, ErrorResponse::record_not_found)?;
    let mut body = GroupOrProject::from(group).require_member(call, user_id)?.json(call)?;
    body["override"] = is_overridden.into();
    if call.method == Method::POST { Answer::created(&body) } else { Answer::ok(&body) }
}
