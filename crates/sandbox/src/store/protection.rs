//! Protected branches: one row each, with a row for each grant. Protected tags use the same grants.

use crate::prelude::*;
use rusqlite::Result;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, ValueRef};

/// The actions that can be granted on a protected branch or tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ProtectedAction {
    Push,
    Merge,
    Unprotect,
    /// The creation of a tag.
    Create,
}

impl ProtectedAction {
    /// The actions on a branch.
    pub(crate) const BRANCH_ACTIONS: [Self; 3] = [Self::Push, Self::Merge, Self::Unprotect];

    /// The name of the action in the database and in the names of parameters.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Push => "push",
            Self::Merge => "merge",
            Self::Unprotect => "unprotect",
            Self::Create => "create",
        }
    }
}

impl ToSql for ProtectedAction {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        Ok(self.name().into())
    }
}

impl FromSql for ProtectedAction {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let action_name = value.as_str()?;
        let action = Self::BRANCH_ACTIONS.into_iter().find(|action| action.name() == action_name);
        action.ok_or(FromSqlError::InvalidType)
    }
}

/// The receiver of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grantee {
    /// Everybody with this level or a higher level.
    Level(i64),
    /// The user with this id.
    User(i64),
    /// The members of the group with this id.
    Group(i64),
    /// Every owner of the deploy key with this id.
    Key(i64),
}

/// One grant. The level counts only if the grant names no user, group or deploy key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Grant {
    /// The id; 0 before the grant is stored.
    pub(crate) id: i64,
    /// The id of the protected branch; 0 for a tag.
    pub(crate) branch_id: i64,
    pub(crate) action: ProtectedAction,
    #[serde(rename = "level")]
    pub(crate) access_level: i64,
    pub(crate) user_id: Option<i64>,
    pub(crate) group_id: Option<i64>,
    pub(crate) deploy_key_id: Option<i64>,
}

stored!(Grant: protected_branch_grants g,
    id, branch_id, action, access_level, user_id, group_id, deploy_key_id);

impl Grant {
    /// A new grant for a level.
    pub(crate) fn new(action: ProtectedAction, access_level: i64) -> Self {
        let [user_id, group_id, deploy_key_id] = [None; 3];
        Self { id: 0, branch_id: 0, action, access_level, user_id, group_id, deploy_key_id }
    }

    pub(crate) fn grantee(&self) -> Grantee {
        let user = self.user_id.map(Grantee::User);
        let user_or_group = user.or(self.group_id.map(Grantee::Group));
        let named_grantee = user_or_group.or(self.deploy_key_id.map(Grantee::Key));
        named_grantee.unwrap_or(Grantee::Level(self.access_level))
    }
}

/// The protection of one branch, or of all branches that match a wildcard.
#[derive(Clone, Debug, Default)]
pub(crate) struct Protection {
    pub(crate) id: i64,
    /// The id of the project; `None` if the protection belongs to a group.
    pub(crate) project_id: Option<i64>,
    /// The id of the top-level group; `None` if the protection belongs to a project. The protection
    /// of a group applies to all its projects.
    pub(crate) namespace_id: Option<i64>,
    pub(crate) name: String,
    pub(crate) allow_force_push: bool,
    pub(crate) code_owner_approval_required: bool,
    pub(crate) updated_at: String,
    /// The time at which a pending protection takes effect; `None` means at its creation.
    pub(crate) due_at: Option<String>,
}

stored!(Protection: protected_branches b,
    id, project_id, namespace_id, name, allow_force_push, code_owner_approval_required, updated_at, due_at);

impl Holder {
    /// The protections of a project or group that are in effect, in order of creation.
    pub(crate) fn protections(self, call: &Call<'_>) -> Result<Vec<Protection>> {
        self.active_protections(call, None)
    }

    /// Finds the protection with exactly this name. Case matters.
    pub(crate) fn find_protection(self, call: &Call<'_>, name: &str) -> Result<Option<Protection>> {
        Ok(self.active_protections(call, Some(name))?.pop())
    }

    fn active_protections(self, call: &Call<'_>, name: Option<&str>) -> Result<Vec<Protection>> {
        let (column, id) = match self {
            Self::Group(id) => ("namespace_id", id),
            other => other.column_and_id(),
        };
        let clauses = format!(
            "WHERE b.{column} = ?1 AND (b.due_at IS NULL OR b.due_at <= ?2)
             AND (?3 IS NULL OR b.name = ?3) ORDER BY b.id"
        );
        Protection::list(call.db, &clauses, params![id, call.time_text(), name])
    }
}

impl Project {
    /// The protections of the project and of its top-level group that apply to a branch.
    pub(crate) fn branch_protections(
        &self,
        call: &Call<'_>,
        branch: &str,
    ) -> Result<Vec<Protection>> {
        let mut protections = Holder::Project(self.id).protections(call)?;
        protections.extend(Holder::Group(root_group_id(&self.namespace)).protections(call)?);
        protections.retain(|protection| matches_pattern(&protection.name, branch));
        Ok(protections)
    }
}

impl Protection {
    /// The grants of the protection.
    pub(crate) fn grants(&self, db: &Connection) -> Result<Vec<Grant>> {
        Grant::list(db, "WHERE g.branch_id = ?1 ORDER BY g.id", [self.id])
    }

    /// Stores the protection and replaces its grants. A new protection must have an unused name.
    pub(crate) fn save_with_grants(&mut self, db: &Connection, grants: &[Grant]) -> Result<()> {
        self.id = self.upsert(db)?;
        let ids = grants.iter().map(|grant| Grant { branch_id: self.id, ..*grant }.upsert(db));
        let ids = serde_json::Value::from(ids.collect::<Result<Vec<i64>>>()?);
        let sql = "DELETE FROM protected_branch_grants
                   WHERE branch_id = ?1 AND id NOT IN (SELECT value FROM json_each(?2))";
        execute(db, sql, params![self.id, ids.to_string()])
    }
}

/// The id of the top-level group of a namespace.
pub(crate) fn root_group_id(namespace: &Namespace) -> i64 {
    traversal_ids(&namespace.traversal).next().unwrap_or(namespace.id)
}

/// Removes protections that the service added and that are not in effect yet, of branches that match `pattern`.
pub(crate) fn remove_pending_protections(
    db: &Connection,
    project_id: i64,
    pattern: &str,
    now: &str,
) -> Result<()> {
    let clauses = "WHERE b.project_id = ?1 AND b.due_at > ?2";
    let pending_rows = Protection::list(db, clauses, params![project_id, now])?;
    pending_rows
        .iter()
        .filter(|protection| matches_pattern(pattern, &protection.name))
        .try_for_each(|protection| protection.remove(db))
}

/// True if a pattern matches a branch. In a pattern, `*` matches any text.
pub(crate) fn matches_pattern(pattern: &str, branch: &str) -> bool {
    let mut parts: Vec<&str> = pattern.split('*').collect();
    let first_part = parts.remove(0);
    let Some(mut unmatched_text) = branch.strip_prefix(first_part) else { return false };
    let Some(last_part) = parts.pop() else { return unmatched_text.is_empty() };
    for part in parts {
        let Some((_, suffix)) = unmatched_text.split_once(part) else { return false };
        unmatched_text = suffix;
    }
    unmatched_text.ends_with(last_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_matches_any_text() {
        for (pattern, branch, is_covered) in [
            ("main", "main", true),
            ("main", "Main", false),
            ("main", "main2", false),
            ("*", "any/thing", true),
            ("release/*", "release/1/2", true),
            ("release/*", "release", false),
            ("*-stable", "1-stable", true),
            ("*-stable", "1-stable-2", false),
            ("a*b*c", "axbyc", true),
            ("a*b*c", "axc", false),
            ("a*a", "a", false),
            ("a**c", "abc", true),
        ] {
            assert_eq!(matches_pattern(pattern, branch), is_covered, "{pattern} {branch}");
        }
    }
}
