//! The terms of a membership: a level, the day of its end, and a custom role.

use super::prelude::*;
use crate::access::SECURITY_MANAGER;

/// The first release in which members have custom roles.
pub(super) const ROLES_SINCE: Release = Release::new(15, 9);

/// The terms of a membership.
#[derive(Default)]
pub(crate) struct MembershipTerms {
    pub(super) level: i64,
    pub(crate) expires_at: Option<String>,
    pub(super) role: Option<MemberRole>,
    /// The user who grants the membership; `None` for bots and for the first owner of a group.
    pub(super) granted_by: Option<i64>,
}

impl MembershipTerms {
    pub(crate) fn with_level(level: i64) -> Self {
        Self { level, ..Self::default() }
    }

    pub(crate) fn granted_by_caller(call: &Call<'_>, level: i64) -> Self {
        let granted_by = call.caller.as_ref().map(|caller| caller.id);
        Self { granted_by, ..Self::with_level(level) }
    }

    /// The level and the expiry in a call. Fails if the caller may not grant them.
    pub(super) fn from_call(call: &Call<'_>, scope: &GroupOrProject) -> Result<Self> {
        let level = requested_level(call, scope)?;
        let expires_at = requested_expiry(call)?.flatten();
        Ok(Self { expires_at, ..Self::granted_by_caller(call, level) })
    }

    /// Like [`Self::from_call`], with the custom role.
    pub(super) fn from_call_with_role(call: &Call<'_>, scope: &GroupOrProject) -> Result<Self> {
        let terms = Self::from_call(call, scope)?;
        Ok(Self { role: member_roles::read_new_role(call, ROLES_SINCE)?, ..terms })
    }

    /// Inserts a membership without checks, unless the user already has a membership.
    pub(crate) fn insert(
        &self,
        call: &Call<'_>,
        scope: &GroupOrProject,
        user_id: i64,
    ) -> Result<()> {
        let sql = format!(
            "INSERT INTO members ({}, user_id, access_level, expires_at, member_role_id, created_at, created_by)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING",
            scope.id_column()
        );
        let (role_id, now) = (self.role_id(), call.time_text());
        let Self { level, expires_at, granted_by, .. } = self;
        let row = params![scope.id(), user_id, level, expires_at, role_id, now, granted_by];
        call.execute(&sql, row).map(drop)
    }

    /// Adds a member, or changes the membership of an existing member.
    pub(super) fn grant(&self, call: &Call<'_>, scope: &GroupOrProject, user: &User) -> Result<()> {
        let text = "project bots cannot be added to other groups / projects";
        refuse_if(user.bot, || ErrorResponse::field_error("user", text))?;
        scope.check_inherited_level(call, user.id, self.level)?;
        if let Some(member) = scope.find_member(call, user.id)? {
            return member.update_terms(call, self);
        }
        self.check_role_level(false)?;
        // The row of an expired membership still exists.
        let sql = format!("DELETE FROM members WHERE {} = ?1 AND user_id = ?2", scope.id_column());
        call.execute(&sql, [scope.id(), user.id])?;
        self.insert(call, scope, user.id)
    }

    /// Invites an e-mail address without an account.
    pub(super) fn invite(
        &self,
        call: &Call<'_>,
        scope: &GroupOrProject,
        email: &str,
    ) -> Result<()> {
        let sql = format!(
            "INSERT INTO members ({0}, email, access_level, expires_at, created_at, created_by, state)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'awaiting')
             ON CONFLICT ({0}, email) DO UPDATE SET access_level = ?3, expires_at = ?4",
            scope.id_column()
        );
        let Self { level, expires_at, granted_by, .. } = self;
        let row = params![scope.id(), email, level, expires_at, call.time_text(), granted_by];
        call.execute(&sql, row).map(drop)
    }

    pub(super) fn role_id(&self) -> Option<i64> {
        self.role.as_ref().map(|role| role.id)
    }

    /// Refuses a level other than the base level of the custom role. `had_role` is true if the member
    /// already has the role.
    pub(super) fn check_role_level(&self, had_role: bool) -> Result<()> {
        self.role.as_ref().map_or(Ok(()), |role| role.check_level(self.level, had_role))
    }
}

/// True if a member may have this level in this release. Levels below guest need `allows_minimal`.
pub(crate) fn is_valid_level(call: &Call<'_>, level: i64, allows_minimal: bool) -> bool {
    let exists = match level {
        PLANNER => call.is_at_least(17, 7),
        // From 18.7 on, this role needs a flag. The tested release 18.9 refuses the role.
        SECURITY_MANAGER => call.is_at_least(19, 0),
        _ => true,
    };
    exists
        && ROLE_LEVELS
            .iter()
            .any(|(value, _)| *value == level && (allows_minimal || *value >= GUEST))
}

/// The access level in the parameter `name`. Refuses levels that are not in the reference (1, 2.1).
pub(crate) fn read_level(call: &Call<'_>, name: &str) -> Result<Option<i64>> {
    call.allowed_integer(name, |level| level == 0 || is_valid_level(call, level, true))
}

/// The requested level. Fails if the caller may not grant it.
pub(super) fn requested_level(call: &Call<'_>, scope: &GroupOrProject) -> Result<i64> {
    let level = call.integer("access_level")?.unwrap_or(0);
    let is_subgroup = matches!(scope, GroupOrProject::Group(group) if group.parent_id.is_some());
    let mut errors = vec!["is not included in the list"];
    if level == MINIMAL && is_subgroup {
        errors.push("supported on top level groups only");
    } else if is_valid_level(call, level, scope.choose(false, true)) {
        errors.clear();
    }
    refuse_if(!errors.is_empty(), || ErrorResponse::field_errors("access_level", &errors))?;
    let caller_level = scope.caller_level(call)?;
    let can_maintainer_grant = call.profile().maintainer_grants_owner && caller_level >= MAINTAINER;
    let can_grant_owner = scope.choose(can_maintainer_grant, false);
    // Two roles are outside the order of levels. Only owners can grant these roles.
    let is_outside_order = [PLANNER, SECURITY_MANAGER].contains(&level);
    let is_not_grantable =
        level > caller_level && !can_grant_owner || is_outside_order && caller_level < OWNER;
    refuse_if(is_not_grantable, ErrorResponse::forbidden).map(|()| level)
}

/// The requested expiry: `None` if the call omits it, `Some(None)` if the call clears it.
pub(super) fn requested_expiry(call: &Call<'_>) -> Result<Option<Option<String>>> {
    let date = call.date("expires_at")?;
    let is_past = matches!(date, Some(Some(day)) if day < clock::utc_day(call.time));
    refuse_if(is_past, || {
        ErrorResponse::field_error("expires_at", "cannot be a date in the past")
    })?;
    Ok(date.map(|day| day.map(|day| day.to_string())))
}
