//! Members of groups and projects (reference 1, 4.3).
//!
//! Groups and projects have the same operations. Each handler works on a [`GroupOrProject`]: the
//! group or project with the members.

use super::prelude::*;

pub(super) const ROUTES: &[Route] = &[
    get("/{holder}/members", |call| list(call, false)),
    get("/{holder}/members/all", |call| list(call, true)),
    get("/{holder}/members/{user_id}", |call| show(call, false)),
    get("/{holder}/members/all/{user_id}", |call| show(call, true)),
    post("/{holder}/members", |call| {
        add_member(call, &GroupOrProject::from_call(call, [MAINTAINER, OWNER])?)
    }),
    put("/{holder}/members/{user_id}", |call| {
        edit_member(call, &GroupOrProject::from_call(call, [MAINTAINER, OWNER])?)
    }),
    delete("/{holder}/members/{user_id}", |call| {
        remove_member(call, &GroupOrProject::from_call(call, [0, 0])?)
    }),
];

/// The states of a membership.
pub(super) const STATES: [&str; 2] = ["awaiting", "active"];

/// One membership with its user, of a group or of a project.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) id: i64,
    pub(super) user: User,
    pub(super) group_id: Option<i64>,
    pub(super) project_id: Option<i64>,
    pub(super) access_level: i64,
    /// The id of the custom role; `None` without a custom role.
    pub(super) role_id: Option<i64>,
    pub(super) expires_at: Option<String>,
    state: String,
    pub(super) created_at: String,
    created_by: Option<i64>,
}

stored!(Member: members m,
    id, group_id, project_id, access_level, role_id = "m.member_role_id", expires_at, state, created_at,
    created_by; user);

impl Member {
    /// True if the membership lets a person act as an owner.
    pub(super) fn is_acting_owner(&self) -> bool {
        self.access_level == OWNER && self.user.state == "active" && !self.user.bot
    }

    /// The memberships that satisfy an SQL condition on the row `m`.
    pub(super) fn list_where(
        call: &Call<'_>,
        condition: &str,
        bound_params: impl rusqlite::Params,
    ) -> Result<Vec<Self>> {
        let clauses = format!("JOIN users u ON u.id = m.user_id WHERE {condition} ORDER BY m.id");
        Ok(Self::list_with(call.db, User::COLUMNS, &clauses, bound_params, |member, row| {
            Ok(Self { user: User::read(row, Self::COLUMN_COUNT)?, ..member })
        })?)
    }

    /// Like [`Self::list_where`], without expired memberships. In the condition, `?1` is `key`.
    fn list_unexpired(call: &Call<'_>, condition: &str, key: &dyn ToSql) -> Result<Vec<Self>> {
        let condition = format!("{condition} AND (m.expires_at IS NULL OR m.expires_at >= ?2)");
        Self::list_where(call, &condition, params![key, call.today()])
    }

    /// True if the membership is active. A membership that waits for approval gives no role.
    fn has_active_state(&self) -> bool {
        self.state == "active"
    }

    /// Limits a member of an invited group to the level `cap` of the invitation. The custom role
    /// comes from the side with the lower level. If the levels are equal, the member keeps its own
    /// role only if the invitation has a role.
    fn cap_level(&mut self, cap: i64, role_id: Option<i64>) {
        if self.access_level > cap {
            (self.access_level, self.role_id) = (cap, role_id);
        } else if self.access_level == cap && role_id.is_none() {
            self.role_id = None;
        }
    }

    /// Changes the level, the expiry date and the custom role.
    pub(super) fn update_terms(&self, call: &Call<'_>, terms: &MembershipTerms) -> Result<()> {
        terms.check_role_level(self.role_id == terms.role_id())?;
        let sql = "UPDATE members SET access_level = ?2, expires_at = ?3, member_role_id = ?4 WHERE id = ?1";
        let row = params![self.id, terms.level, terms.expires_at, terms.role_id()];
        call.execute(sql, row).map(drop)
    }

    /// A member as in the reference (1, 2.3).
    pub(super) fn json(&self, call: &Call<'_>) -> Result<Value> {
        let mut body = self.user.brief_json(call);
        add_fields(&mut body, self.json_columns("access_level created_at expires_at"));
        if let Some(creator) = User::find_by_optional_id(call.db, self.created_by)? {
            body["created_by"] = creator.brief_json(call);
        }
        if call.is_at_least(16, 9) && call.is_administrator() {
            body["email"] = self.user.email.as_str().into();
        }
        let has_state = call.is_observed_release_or_later() && call.is_premium();
        set_field_if(&mut body, has_state, "membership_state", self.state.as_str());
        if let Some(role) = MemberRole::find_by_optional_id(call.db, self.role_id)? {
            body["member_role"] = role.json(call);
        }
        Ok(body)
    }
}

impl GroupOrProject {
    /// The direct memberships; with `includes_inherited` also the inherited memberships.
    fn list_members(&self, call: &Call<'_>, includes_inherited: bool) -> Result<Vec<Member>> {
        if includes_inherited {
            return self.effective_members(call);
        }
        Member::list_unexpired(call, &format!("m.{} = ?1", self.id_column()), &self.id())
    }

    /// The direct membership of a user.
    pub(super) fn find_member(&self, call: &Call<'_>, user_id: i64) -> Result<Option<Member>> {
        Ok(self.list_members(call, false)?.into_iter().find(|member| member.user.id == user_id))
    }

    /// Like [`Self::find_member`], but fails with 404 if the user is not a direct member.
    pub(super) fn require_member(&self, call: &Call<'_>, user_id: i64) -> Result<Member> {
        self.find_member(call, user_id)?.or_no_record()
    }

    /// Every member once, with the highest role. A membership that waits for approval is used only
    /// if the member has no other membership.
    fn effective_members(&self, call: &Call<'_>) -> Result<Vec<Member>> {
        let mut best_members: BTreeMap<i64, Member> = BTreeMap::new();
        let mut add_best_members = |members: Vec<Member>, share: Option<(i64, Option<i64>)>| {
            let rank = |member: &Member| (member.has_active_state(), member.access_level);
            for mut member in members {
                if let Some((cap, role_id)) = share {
                    member.cap_level(cap, role_id);
                }
                if best_members.get(&member.user.id).is_none_or(|other| rank(other) < rank(&member))
                {
                    best_members.insert(member.user.id, member);
                }
            }
        };
        add_best_members(self.list_members(call, false)?, None);
        let group_ids = self.group_ids();
        for group_id in &group_ids {
            add_best_members(Member::list_unexpired(call, "m.group_id = ?1", group_id)?, None);
        }
        for (invited_id, cap, role_id) in self.invitations(call)? {
            let Some(group) = Namespace::find_by_id(call.db, invited_id)? else { continue };
            // Members of an invited group are shown if the group is public or the caller is a
            // member of it.
            if group.visibility != "public" && call.caller_level_in_group(&group)? == 0 {
                continue;
            }
            for group_id in traversal_ids(&group.traversal) {
                let members = Member::list_unexpired(call, "m.group_id = ?1", &group_id)?;
                add_best_members(members, Some((cap, role_id)));
            }
        }
        let mut members: Vec<Member> = best_members.into_values().collect();
        members.sort_unstable_by_key(|member| member.id);
        Ok(members)
    }

    /// The groups that are invited to this project or group, or to a group above it. Each row has
    /// the id of the group, and the maximum level and the role of the invitation.
    fn invitations(&self, call: &Call<'_>) -> Result<Vec<(i64, i64, Option<i64>)>> {
        let sql = "SELECT invited_id, access_level, member_role_id FROM shares
             WHERE (project_id = ?1 OR group_id IN (SELECT value FROM json_each(?2)))
               AND (expires_at IS NULL OR expires_at >= ?3)";
        let group_ids = Value::from(self.group_ids()).to_string();
        call.query_rows(sql, params![self.project_id(), group_ids, call.today()])
    }

    /// Refuses a direct level below an inherited level. The error names the highest inherited
    /// level.
    pub(super) fn check_inherited_level(
        &self,
        call: &Call<'_>,
        user_id: i64,
        level: i64,
    ) -> Result<()> {
        let group_ids = self.parent_group_ids();
        let condition =
            "m.user_id = ?1 AND m.access_level > ?2 AND (m.expires_at IS NULL OR m.expires_at >= ?3)
                         AND m.group_id IN (SELECT value FROM json_each(?4))";
        let ids_json = Value::from(group_ids.as_slice()).to_string();
        let members =
            Member::list_where(call, condition, params![user_id, level, call.today(), ids_json])?;
        // If several groups give this level, the error names the nearest group.
        let highest_member = members.into_iter().max_by_key(|member| {
            let depth = group_ids.iter().position(|id| Some(*id) == member.group_id);
            (member.access_level, depth)
        });
        let Some(highest) = highest_member else { return Ok(()) };
        let group_name =
            Namespace::find_by_optional_id(call.db, highest.group_id)?.map(|group| group.name);
        let message = format!(
            "should be greater than or equal to {} inherited membership from group {}",
            level_name(highest.access_level),
            group_name.unwrap_or_default()
        );
        Err(ErrorResponse::field_error("access_level", message))
    }
}

/// All users with a direct or inherited role in `scope`.
pub(crate) fn list_users(call: &Call<'_>, scope: &GroupOrProject) -> Result<Vec<User>> {
    let members = scope.effective_members(call)?;
    Ok(members.into_iter().filter(Member::has_active_state).map(|member| member.user).collect())
}

/// Lists members. With `show_seat_info`, each member has a flag: true if the member uses a seat.
fn list(call: &Call<'_>, includes_inherited: bool) -> Result<Answer> {
    let (params, scope) = (&call.params, GroupOrProject::from_call(call, [0, 0])?);
    let state = if includes_inherited {
        params.allowed_text("state", &STATES)?.filter(|_| call.is_premium())
    } else {
        None
    };
    let mut members = scope.list_members(call, includes_inherited)?;
    let query = params.text("query")?.unwrap_or_default().to_lowercase();
    let user_ids = params.integers("user_ids")?;
    let skipped_ids = params.integers("skip_users")?.unwrap_or_default();
    let shows_seats = params.is_true("show_seat_info")?;
    members.retain(|member| {
        let user = &member.user;
        state.as_ref().is_none_or(|state| *state == member.state)
            && user.matches_search(&query, true)
            && user_ids.as_ref().is_none_or(|ids| ids.contains(&user.id))
            && !skipped_ids.contains(&user.id)
    });
    page::list_objects(call, &members, |member| {
        let mut body = member.json(call)?;
        let has_seat = member.has_active_state() && !member.user.bot;
        set_field_if(&mut body, shows_seats, "is_using_seat", has_seat);
        Ok(body)
    })
}

fn show(call: &Call<'_>, includes_inherited: bool) -> Result<Answer> {
    let scope = GroupOrProject::from_call(call, [0, 0])?;
    let user_id = call.segment_id("user_id")?;
    let mut members = scope.list_members(call, includes_inherited)?.into_iter();
    let member = members.find(|member| member.user.id == user_id).or_no_record()?;
    Answer::ok(&member.json(call)?)
}

/// Checks the parameters for the first tasks of a new member, which existed until release 16.4.
/// Nothing is stored, because the flag for this feature is off (reference 1, 9).
fn check_tasks(call: &Call<'_>) -> Result<()> {
    if call.is_at_least(16, 5) {
        return Ok(());
    }
    let tasks = call.allowed_texts("tasks_to_be_done", &["ci", "code", "issues"])?;
    match (tasks.is_none_or(|tasks| tasks.is_empty()), call.integer("tasks_project_id")?) {
        (false, None) => Err(ErrorResponse::parameter_error("tasks_project_id", "is missing")),
        (true, Some(_)) => Err(ErrorResponse::parameter_error("tasks_to_be_done", "is missing")),
        _ => Ok(()),
    }
}

/// Returns the new members in a call, separated by commas, and a flag. The flag is true for
/// usernames, which are possible from 17.1 on, and false for ids.
fn read_user_references(call: &Call<'_>) -> Result<(String, bool)> {
    let selectors = ["user_id", "username"];
    let is_by_name = if call.is_at_least(17, 1) {
        call.require_all(&[
            ParamRequirement::Present("access_level"),
            ParamRequirement::AnyOf(&selectors),
        ])?;
        call.refuse_both(selectors)?;
        !call.has(selectors[0])
    } else {
        call.require(&["user_id", "access_level"]).map(|()| false)?
    };
    let text = call.text(selectors[usize::from(is_by_name)])?;
    Ok((text.unwrap_or_default(), is_by_name))
}

/// Adds one or several members. A group above can forbid new members of projects. For a single
/// user, an unknown user and an existing member are errors. Among several users, unknown users are
/// ignored, and existing members get the new level.
fn add_member(call: &Call<'_>, scope: &GroupOrProject) -> Result<Answer> {
    if let GroupOrProject::Project(project) = scope {
        let is_locked = call.is_set_in_hierarchy(&project.namespace, "membership_lock", true)?;
        let message = "405 Method Not Allowed";
        refuse_if(is_locked, || ErrorResponse::message(StatusCode::METHOD_NOT_ALLOWED, message))?;
    }
    let (references, is_by_name) = read_user_references(call)?;
    check_tasks(call)?;
    call.integer("access_level")?;
    let find_user = |user_reference: &str| {
        Ok::<_, ErrorResponse>(match is_by_name {
            // Usernames are case-sensitive in this operation.
            true => User::find_by_username(call.db, user_reference)?
                .filter(|user| user.username == user_reference),
            false => User::find_by_optional_id(call.db, user_reference.parse().ok())?,
        })
    };
    if !references.contains(',') {
        let user = find_user(&references)?.or_not_found("User")?;
        let text = "Member already exists";
        refuse_if(scope.find_member(call, user.id)?.is_some(), || ErrorResponse::conflict(text))?;
        MembershipTerms::from_call_with_role(call, scope)?.grant(call, scope, &user)?;
        return Answer::created(&scope.require_member(call, user.id)?.json(call)?);
    }
    let terms = MembershipTerms::from_call_with_role(call, scope)?;
    let mut user_results = Vec::new();
    for reference in references.split(',').map(str::trim) {
        if let Some(user) = find_user(reference)? {
            let result = terms.grant(call, scope, &user);
            user_results.push((user.username, result));
        }
    }
    answer_user_results(user_results)
}

/// Answers a call for several users: success, or the error of each user by name.
pub(super) fn answer_user_results(results: Vec<(String, Result<()>)>) -> Result<Answer> {
    let failures = results.into_iter().filter_map(|(name, result)| Some((name, result.err()?)));
    let reasons: Object =
        failures.map(|(name, mut failure)| (name, failure.body["message"].take())).collect();
    if reasons.is_empty() {
        Answer::created(&json!({ "status": "success" }))
    } else {
        Answer::created(&json!({ "status": "error", "message": reasons }))
    }
}

fn edit_member(call: &Call<'_>, scope: &GroupOrProject) -> Result<Answer> {
    let user_id = call.segment_id("user_id")?;
    call.require(&["access_level"])?;
    let member = scope.require_member(call, user_id)?;
    let level = terms::requested_level(call, scope)?;
    refuse_if(member.access_level > scope.caller_level(call)?, ErrorResponse::forbidden)?;
    refuse_if(is_last_owner(call, scope, &member)?, || call.last_owner_error())?;
    let role = match member_roles::read_role(call, terms::ROLES_SINCE, || {
        ErrorResponse::field_error("member_role", "not found")
    })? {
        Some(role) => role,
        None => MemberRole::find_by_optional_id(call.db, member.role_id)?,
    };
    let expires_at = terms::requested_expiry(call)?
        .unwrap_or_else(|| member.expires_at.clone().filter(|_| !call.profile().put_clears_expiry));
    scope.check_inherited_level(call, user_id, level)?;
    let terms = MembershipTerms { expires_at, role, ..MembershipTerms::with_level(level) };
    member.update_terms(call, &terms)?;
    Answer::ok(&scope.require_member(call, user_id)?.json(call)?)
}

/// True if the removal of this member leaves a group without an owner, or a personal project
/// without its user. Owners of the groups above count as owners of the group.
fn is_last_owner(call: &Call<'_>, scope: &GroupOrProject, member: &Member) -> Result<bool> {
    match scope {
        GroupOrProject::Project(project) => Ok(project.namespace.owner_id == Some(member.user.id)),
        GroupOrProject::Group(_) => {
            for group_id in scope.group_ids() {
                let members = Member::list_unexpired(call, "m.group_id = ?1", &group_id)?;
                if members.iter().any(|other| other.id != member.id && other.is_acting_owner()) {
                    return Ok(false);
                }
            }
            Ok(member.access_level == OWNER)
        }
    }
}

fn remove_member(call: &Call<'_>, scope: &GroupOrProject) -> Result<Answer> {
    let caller = call.require_user()?;
    let user_id = call.segment_id("user_id")?;
    let keeps_subresources = call.is_true("skip_subresources")?;
    // The sandbox has no issues and no merge requests to unassign.
    call.flag("unassign_issuables")?;
    let level = scope.caller_level(call)?;
    if let GroupOrProject::Project(project) = scope {
        call.check_writable(project)?;
    }
    // A missing member is reported before missing rights.
    let member = scope.require_member(call, user_id)?;
    let is_leaving = caller.id == user_id;
    let may_remove =
        level >= member.access_level && (is_leaving || level >= scope.level_to_manage_members());
    refuse_if(!may_remove || member.user.bot, ErrorResponse::forbidden)?;
    refuse_if(is_last_owner(call, scope, &member)?, || call.last_owner_error())?;
    call.check_unmodified(&member.created_at)?;
    member.remove(call.db)?;
    if let GroupOrProject::Group(group) = scope
        && !keeps_subresources
    {
        group.remove_memberships(call, user_id)?;
    }
    Ok(Answer::no_content())
}
