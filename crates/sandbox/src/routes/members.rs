//! Members of groups and projects (reference 1, 4.3).
//!
//! Both have the same operations, so each handler works on a [`Scope`]: the group or project with
//! the members.

use std::collections::BTreeMap;

use rusqlite::{Params as Bound, ToSql};

use super::member_roles::{self, Role};
use super::prelude::*;

pub(super) const ROUTES: &[Route] = &[
    get("/{holder}/members", |call| list(call, &Scope::of(call, [0, 0])?)),
    get("/{holder}/members/all", |call| list_all(call, &Scope::of(call, [0, 0])?)),
    get("/{holder}/members/{user_id}", |call| show(call, &Scope::of(call, [0, 0])?)),
    get("/{holder}/members/all/{user_id}", |call| show_any(call, &Scope::of(call, [0, 0])?)),
    post("/{holder}/members", |call| add(call, &unlocked(call)?)),
    put("/{holder}/members/{user_id}", |call| edit(call, &Scope::of(call, [MAINTAINER, OWNER])?)),
    delete("/{holder}/members/{user_id}", |call| remove(call, &Scope::of(call, [0, 0])?)),
];

/// The first release in which members have custom roles.
const ROLES_SINCE: Release = Release::new(15, 9);

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
    /// The custom role.
    pub(super) role: Option<i64>,
    pub(super) expires_at: Option<String>,
    state: String,
    pub(super) created_at: String,
    created_by: Option<i64>,
}

stored!(Member: members m,
    id, group_id, project_id, access_level, role = "m.member_role_id", expires_at, state, created_at,
    created_by; user);

impl Member {
    /// The memberships that satisfy a condition on `m`.
    pub(super) fn among(call: &Call<'_>, condition: &str, with: impl Bound) -> Result<Vec<Self>> {
        let rest = format!("JOIN users u ON u.id = m.user_id WHERE {condition} ORDER BY m.id");
        Ok(Self::list_with(call.db, User::COLUMNS, &rest, with, |member, row| {
            Ok(Self { user: User::read(row, Self::WIDTH)?, ..member })
        })?)
    }

    /// Those of them that have not expired. The condition is on `?1`.
    fn select(call: &Call<'_>, condition: &str, key: &dyn ToSql) -> Result<Vec<Self>> {
        let condition = format!("{condition} AND (m.expires_at IS NULL OR m.expires_at >= ?2)");
        Self::among(call, &condition, params![key, call.today()])
    }

    fn direct(call: &Call<'_>, scope: &Scope) -> Result<Vec<Self>> {
        Self::select(call, &format!("m.{} = ?1", scope.column()), &scope.id())
    }

    pub(super) fn one(call: &Call<'_>, scope: &Scope, user: i64) -> Result<Option<Self>> {
        Ok(Self::direct(call, scope)?.into_iter().find(|member| member.user.id == user))
    }

    /// The same; 404 without one.
    pub(super) fn existing(call: &Call<'_>, scope: &Scope, user: i64) -> Result<Self> {
        Self::one(call, scope, user)?.ok_or_else(Failure::no_record)
    }

    /// Whether this gives a role; one that waits for approval does not.
    fn is_active(&self) -> bool {
        self.state == "active"
    }

    /// Every member here, once, with the highest role. A membership that waits for approval only
    /// counts without another one.
    fn effective(call: &Call<'_>, scope: &Scope) -> Result<Vec<Self>> {
        let mut best: BTreeMap<i64, Self> = BTreeMap::new();
        let mut take = |members: Vec<Self>, share: Option<(i64, Option<i64>)>| {
            let rank = |member: &Self| (member.is_active(), member.access_level);
            for mut member in members {
                if let Some((cap, role)) = share {
                    member.limit(cap, role);
                }
                if best.get(&member.user.id).is_none_or(|known| rank(known) < rank(&member)) {
                    best.insert(member.user.id, member);
                }
            }
        };
        take(Self::direct(call, scope)?, None);
        let groups = scope.groups();
        for group in &groups {
            take(Self::select(call, "m.group_id = ?1", group)?, None);
        }
        for (invited, cap, role) in Self::invitations(call, scope, &groups)? {
            let Some(group) = Namespace::by_id(call.db, invited)? else {
                continue;
            };
            // Members of an invited group are shown if it is public or the caller is a member too.
            if group.visibility != "public" && call.level_in_group(&group)? == 0 {
                continue;
            }
            for group in ids(&group.traversal) {
                take(Self::select(call, "m.group_id = ?1", &group)?, Some((cap, role)));
            }
        }
        let mut all: Vec<Self> = best.into_values().collect();
        all.sort_unstable_by_key(|member| member.id);
        Ok(all)
    }

    /// Limits a member of an invited group to the level of the invitation. The role of the lower
    /// level counts; among equal ones the member's, if both have one.
    fn limit(&mut self, cap: i64, role: Option<i64>) {
        if self.access_level > cap {
            (self.access_level, self.role) = (cap, role);
        } else if self.access_level == cap && role.is_none() {
            self.role = None;
        }
    }

    /// The groups invited here and above, with the maximum levels and roles of the invitations.
    fn invitations(
        call: &Call<'_>,
        scope: &Scope,
        groups: &[i64],
    ) -> Result<Vec<(i64, i64, Option<i64>)>> {
        let sql = "SELECT invited_id, access_level, member_role_id FROM shares
             WHERE (project_id = ?1 OR group_id IN (SELECT value FROM json_each(?2)))
               AND (expires_at IS NULL OR expires_at >= ?3)";
        call.rows(sql, params![scope.project_id(), Value::from(groups).to_string(), call.today()])
    }

    /// Changes the level, the expiry and the role. The level must be that of the role.
    fn change(
        &self,
        call: &Call<'_>,
        level: i64,
        expires_at: Option<&str>,
        role: Option<&Role>,
    ) -> Result<()> {
        let id = role.map(|role| role.id);
        if let Some(role) = role {
            role.check_level(level, self.role == id)?;
        }
        let sql = "UPDATE members SET access_level = ?2, expires_at = ?3, member_role_id = ?4 WHERE id = ?1";
        call.run(sql, params![self.id, level, expires_at, id]).map(drop)
    }

    /// A member as in the reference (1, 2.3).
    pub(super) fn json(&self, call: &Call<'_>) -> Result<Value> {
        let mut body = self.user.brief(call);
        body["access_level"] = self.access_level.into();
        body["created_at"] = self.created_at.as_str().into();
        body["expires_at"] = self.expires_at.clone().into();
        if let Some(by) = User::by_any(call.db, self.created_by)? {
            body["created_by"] = by.brief(call);
        }
        if call.is_from(16, 9) && call.is_administrator() {
            body["email"] = self.user.email.as_str().into();
        }
        let has_state = call.release() >= OBSERVED && call.tier() >= Tier::Premium;
        set_if(&mut body, has_state, "membership_state", self.state.as_str());
        if let Some(role) = Role::by_any(call.db, self.role)? {
            body["member_role"] = role.json(call);
        }
        Ok(body)
    }
}

/// All users with a role here.
pub(crate) fn users(call: &Call<'_>, scope: &Scope) -> Result<Vec<User>> {
    let members = Member::effective(call, scope)?;
    Ok(members.into_iter().filter(Member::is_active).map(|member| member.user).collect())
}

/// Inserts a membership, checking only that there is none yet; false otherwise. The founder of a
/// group and bots were added by nobody.
pub(crate) fn insert(
    call: &Call<'_>,
    scope: &Scope,
    user: i64,
    level: i64,
    expires_at: Option<&str>,
    by: Option<&User>,
) -> Result<bool> {
    let sql = format!(
        "INSERT INTO members ({}, user_id, access_level, expires_at, created_at, created_by)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING",
        scope.column()
    );
    let by = by.map(|by| by.id);
    Ok(call.run(&sql, params![scope.id(), user, level, expires_at, call.now(), by])? > 0)
}

/// Whether a member may have this level here.
pub(crate) fn valid_level(call: &Call<'_>, level: i64, group: bool) -> bool {
    let is_known = level != PLANNER || call.is_from(17, 7);
    is_known && LEVELS.iter().any(|(value, _)| *value == level && (group || *value >= GUEST))
}

/// The role in a parameter, one of those in the reference (1, 2.1).
pub(crate) fn level(call: &Call<'_>, name: &str) -> Result<Option<i64>> {
    call.params.number_of(name, |level| level == 0 || valid_level(call, level, true))
}

/// Answers a page of a list, filtered by `query`, `user_ids` and `skip_users`. `show_seat_info`
/// adds who uses a seat.
fn filtered(call: &Call<'_>, mut members: Vec<Member>) -> Result<Answer> {
    let query = call.params.text("query")?.unwrap_or_default().to_lowercase();
    let wanted = call.params.integers("user_ids")?;
    let skipped = call.params.integers("skip_users")?.unwrap_or_default();
    let seats = call.params.is_set("show_seat_info")?;
    members.retain(|member| {
        let user = &member.user;
        user.is_found_by(&query, true)
            && wanted.as_ref().is_none_or(|wanted| wanted.contains(&user.id))
            && !skipped.contains(&user.id)
    });
    page::list_of(call, &members, |member| {
        let mut body = member.json(call)?;
        set_if(&mut body, seats, "is_using_seat", member.is_active() && !member.user.bot);
        Ok(body)
    })
}

fn list(call: &Call<'_>, scope: &Scope) -> Result<Answer> {
    filtered(call, Member::direct(call, scope)?)
}

fn list_all(call: &Call<'_>, scope: &Scope) -> Result<Answer> {
    let state = call.params.one_of("state", &STATES)?.filter(|_| call.tier() >= Tier::Premium);
    let mut members = Member::effective(call, scope)?;
    members.retain(|member| state.as_ref().is_none_or(|state| *state == member.state));
    filtered(call, members)
}

fn show(call: &Call<'_>, scope: &Scope) -> Result<Answer> {
    Answer::ok(&Member::existing(call, scope, call.segment_id("user_id")?)?.json(call)?)
}

fn show_any(call: &Call<'_>, scope: &Scope) -> Result<Answer> {
    let user = call.segment_id("user_id")?;
    let all = Member::effective(call, scope)?;
    let member =
        all.into_iter().find(|member| member.user.id == user).ok_or_else(Failure::no_record)?;
    Answer::ok(&member.json(call)?)
}

/// The requested level, if the caller may grant it.
pub(super) fn wanted_level(call: &Call<'_>, scope: &Scope) -> Result<i64> {
    let level = call.params.integer("access_level")?.unwrap_or(0);
    const UNLISTED: &str = "is not included in the list";
    match scope {
        Scope::Group(group) if level == MINIMAL && group.parent_id.is_some() => {
            let texts = [UNLISTED, "supported on top level groups only"];
            return Err(Failure::models("access_level", &texts));
        }
        _ if !valid_level(call, level, matches!(scope, Scope::Group(_))) => {
            return Err(Failure::model("access_level", UNLISTED));
        }
        _ => {}
    }
    let own = scope.level(call)?;
    let grants_owner = call.service.profile.maintainer_grants_owner
        && own >= MAINTAINER
        && matches!(scope, Scope::Project(_));
    // Planners are outside the order of roles: only owners grant that one.
    if (level > own && !grants_owner) || (level == PLANNER && own < OWNER) {
        return Err(Failure::forbidden());
    }
    Ok(level)
}

/// The requested expiry: whether it was sent, and the day.
pub(super) fn wanted_expiry(call: &Call<'_>) -> Result<Option<Option<String>>> {
    let date = call.params.date("expires_at")?;
    if let Some(Some(day)) = date
        && day < clock::day(call.time)
    {
        return Err(Failure::model("expires_at", "cannot be a date in the past"));
    }
    Ok(date.map(|day| day.map(|day| day.to_string())))
}

/// Refuses a direct level below an inherited one; the complaint names the highest.
fn check_inherited(call: &Call<'_>, scope: &Scope, user: i64, level: i64) -> Result<()> {
    let above = scope.groups();
    let above =
        above.iter().filter(|group| !matches!(scope, Scope::Group(own) if own.id == **group));
    let mut highest: Option<(i64, i64)> = None;
    for group in above {
        let members = Member::select(call, "m.group_id = ?1", group)?;
        let inherited = members.iter().find(|member| member.user.id == user);
        let inherited = inherited.map(|member| (member.access_level, *group));
        // Among equal ones, the nearest group counts.
        if inherited.is_some_and(|(level, _)| highest.is_none_or(|(best, _)| level >= best)) {
            highest = inherited;
        }
    }
    match highest {
        Some((inherited, group)) if inherited > level => {
            let group = Namespace::by_id(call.db, group)?.map(|group| group.name);
            let text = format!(
                "should be greater than or equal to {} inherited membership from group {}",
                level_name(inherited),
                group.unwrap_or_default()
            );
            Err(Failure::model("access_level", text))
        }
        _ => Ok(()),
    }
}

/// Checks the first tasks of a new member, as before release 16.5. They are behind a flag that is
/// off (reference 1, 9), so nothing is stored.
fn check_tasks(call: &Call<'_>) -> Result<()> {
    if call.is_from(16, 5) {
        return Ok(());
    }
    let tasks = call.params.texts("tasks_to_be_done")?.unwrap_or_default();
    if tasks.iter().any(|task| !["ci", "code", "issues"].contains(&task.as_str())) {
        return Err(Failure::no_valid_value("tasks_to_be_done"));
    }
    match (tasks.is_empty(), call.params.integer("tasks_project_id")?) {
        (false, None) => Err(Failure::parameter("tasks_project_id", "is missing")),
        (true, Some(_)) => Err(Failure::parameter("tasks_to_be_done", "is missing")),
        _ => Ok(()),
    }
}

/// How a call names the new members: by ids, or from 17.1 on by names, separated by commas.
enum Named {
    Ids(String),
    Names(String),
}

impl Named {
    fn of(call: &Call<'_>) -> Result<Self> {
        if !call.is_from(17, 1) {
            call.params.require(&["user_id", "access_level"])?;
            return Ok(Self::Ids(call.params.text("user_id")?.unwrap_or_default()));
        }
        let either = ["user_id", "username"];
        call.params.require_all(&[Need::Sent("access_level"), Need::OneOf(&either)])?;
        match either.map(|name| call.params.has(name)) {
            [true, true] => Err(Failure::parameter(&either.join(", "), "are mutually exclusive")),
            [false, _] => Ok(Self::Names(call.params.text("username")?.unwrap_or_default())),
            _ => Ok(Self::Ids(call.params.text("user_id")?.unwrap_or_default())),
        }
    }

    /// Each of several, with the user if there is one; a single one is looked up later.
    fn several(&self) -> Option<Vec<&str>> {
        let (Self::Ids(text) | Self::Names(text)) = self;
        text.contains(',').then(|| text.split(',').map(str::trim).collect())
    }

    /// The user; names are case-sensitive.
    fn find(&self, call: &Call<'_>, one: &str) -> Result<Option<User>> {
        Ok(match self {
            Self::Ids(_) => User::by_any(call.db, one.parse().ok())?,
            Self::Names(_) => User::by_username(call.db, one)?.filter(|user| user.username == one),
        })
    }
}

/// The project or group of a call that adds members; a group above can forbid that for projects.
fn unlocked(call: &Call<'_>) -> Result<Scope> {
    let scope = Scope::of(call, [MAINTAINER, OWNER])?;
    if let Scope::Project(project) = &scope
        && call.is_set_above(&project.namespace, "membership_lock", true)?
    {
        let text = "405 Method Not Allowed";
        return Err(Failure::message(StatusCode::METHOD_NOT_ALLOWED, text));
    }
    Ok(scope)
}

/// A single user gets a refusal. Among several, unknown users are left out, and existing members
/// get the level.
fn add(call: &Call<'_>, scope: &Scope) -> Result<Answer> {
    let named = Named::of(call)?;
    check_tasks(call)?;
    call.params.integer("access_level")?;
    let Some(several) = named.several() else {
        let (Named::Ids(one) | Named::Names(one)) = &named;
        let user = named.find(call, one)?.ok_or_else(|| Failure::not_found("User"))?;
        refuse_if(Member::one(call, scope, user.id)?.is_some(), || {
            Failure::conflict("Member already exists")
        })?;
        let (level, expires_at, role) = wanted(call, scope)?;
        set_one(call, scope, &user, level, expires_at.as_deref(), role.as_ref())?;
        return Answer::created(&Member::existing(call, scope, user.id)?.json(call)?);
    };
    let (level, expires_at, role) = wanted(call, scope)?;
    let mut reasons = Map::new();
    for one in several {
        if let Some(user) = named.find(call, one)?
            && let Err(failure) =
                set_one(call, scope, &user, level, expires_at.as_deref(), role.as_ref())
        {
            let reason = failure.body.get("message").cloned().unwrap_or_default();
            reasons.insert(user.username, reason);
        }
    }
    each_succeeded(reasons)
}

/// The level, the expiry and the role of new members.
fn wanted(call: &Call<'_>, scope: &Scope) -> Result<(i64, Option<String>, Option<Role>)> {
    let (level, expires_at) = (wanted_level(call, scope)?, wanted_expiry(call)?.flatten());
    Ok((level, expires_at, member_roles::given(call, ROLES_SINCE)?))
}

/// The answer for several users: success, or the failures.
pub(super) fn each_succeeded(reasons: Map<String, Value>) -> Result<Answer> {
    match reasons.is_empty() {
        true => Answer::created(&json!({ "status": "success" })),
        false => Answer::created(&json!({ "status": "error", "message": reasons })),
    }
}

/// Gives a user this level and role: adds a membership, or changes it.
pub(super) fn set_one(
    call: &Call<'_>,
    scope: &Scope,
    user: &User,
    level: i64,
    expires_at: Option<&str>,
    role: Option<&Role>,
) -> Result<()> {
    refuse_if(user.bot, || {
        Failure::model("user", "project bots cannot be added to other groups / projects")
    })?;
    check_inherited(call, scope, user.id, level)?;
    if let Some(member) = Member::one(call, scope, user.id)? {
        return member.change(call, level, expires_at, role);
    }
    if let Some(role) = role {
        role.check_level(level, false)?;
    }
    // An expired membership still has its row.
    let sql = format!("DELETE FROM members WHERE {} = ?1 AND user_id = ?2", scope.column());
    call.run(&sql, [scope.id(), user.id])?;
    insert(call, scope, user.id, level, expires_at, call.caller.as_ref())?;
    match role {
        Some(role) => call.set("members", call.db.last_insert_rowid(), member_roles::ROLE, role.id),
        None => Ok(()),
    }
}

fn edit(call: &Call<'_>, scope: &Scope) -> Result<Answer> {
    let user = call.segment_id("user_id")?;
    call.params.require(&["access_level"])?;
    let member = Member::existing(call, scope, user)?;
    let level = wanted_level(call, scope)?;
    refuse_if(member.access_level > scope.level(call)?, Failure::forbidden)?;
    refuse_if(is_last_owner(call, scope, &member)?, || call.last_owner())?;
    let unknown = || Failure::model("member_role", "not found");
    let role = match member_roles::sent(call, ROLES_SINCE, unknown)? {
        Some(role) => role,
        None => Role::by_any(call.db, member.role)?,
    };
    let kept = || member.expires_at.clone().filter(|_| !call.service.profile.put_clears_expiry);
    let expires_at = wanted_expiry(call)?.unwrap_or_else(kept);
    check_inherited(call, scope, user, level)?;
    member.change(call, level, expires_at.as_deref(), role.as_ref())?;
    Answer::ok(&Member::existing(call, scope, user)?.json(call)?)
}

/// Whether removing this member leaves a group without an owner, or a personal project without its
/// user.
fn is_last_owner(call: &Call<'_>, scope: &Scope, member: &Member) -> Result<bool> {
    match scope {
        Scope::Project(project) => Ok(project.namespace.owner_id == Some(member.user.id)),
        Scope::Group(_) => {
            let others = Member::direct(call, scope)?.into_iter().filter(|other| {
                other.user.id != member.user.id
                    && other.access_level == OWNER
                    && other.user.state == "active"
                    && !other.user.bot
            });
            Ok(member.access_level == OWNER && others.count() == 0)
        }
    }
}

fn remove(call: &Call<'_>, scope: &Scope) -> Result<Answer> {
    let caller = call.user()?;
    let user = call.segment_id("user_id")?;
    let keeps_below = call.params.is_set("skip_subresources")?;
    // There are no issues and merge requests to assign here.
    call.params.flag("unassign_issuables")?;
    let level = scope.level(call)?;
    if let Scope::Project(project) = scope {
        call.check_writable(project)?;
    }
    // A missing member is reported first, to everybody who sees the group or project.
    let member = Member::existing(call, scope, user)?;
    let leaves = caller.id == user;
    if (!leaves && level < scope.manager()) || member.user.bot || member.access_level > level {
        return Err(Failure::forbidden());
    }
    refuse_if(is_last_owner(call, scope, &member)?, || call.last_owner())?;
    call.check_unmodified(&member.created_at)?;
    member.remove(call.db)?;
    if let Scope::Group(group) = scope
        && !keeps_below
    {
        remove_below(call, group, user)?;
    }
    Ok(Answer::no_content())
}

/// Removes the user's direct memberships in the groups and projects below a group.
pub(crate) fn remove_below(call: &Call<'_>, group: &Namespace, user: i64) -> Result<()> {
    let (first, end) = group.range();
    let sql = "DELETE FROM members WHERE user_id = ?1 AND (
             group_id IN (SELECT id FROM namespaces WHERE traversal >= ?2 AND traversal < ?3)
             OR project_id IN (SELECT p.id FROM projects p JOIN namespaces n ON n.id = p.namespace_id
                               WHERE n.traversal >= ?2 AND n.traversal < ?3))";
    call.run(sql, params![user, first, end]).map(drop)
}

/// Adds a member of a seed; an existing one stays unchanged.
pub(crate) fn plant(call: &Call<'_>, scope: &Scope, user: &User, params: &Params) -> Result<()> {
    let level = params.integer("access_level")?.unwrap_or(0);
    let expires_at = params.date("expires_at")?.flatten().map(|day| day.to_string());
    insert(call, scope, user.id, level, expires_at.as_deref(), call.caller.as_ref())?;
    Ok(())
}
