//! Approval rules of projects: one row each, with a row for each user, group and protected branch.

use rusqlite::{Connection, Result};

use super::stored::{Stored as _, stored};

/// The type of a rule that everybody can fulfil.
pub(crate) const ANY: &str = "any_approver";

/// One approval rule.
#[derive(Clone, Debug, Default)]
pub(crate) struct ApprovalRule {
    /// 0 before it is stored.
    pub(crate) id: i64,
    pub(crate) project_id: i64,
    pub(crate) name: String,
    pub(crate) rule_type: String,
    /// The report, for a rule about reports.
    pub(crate) report_type: Option<String>,
    pub(crate) approvals_required: i64,
    /// Whether it is for all protected branches.
    pub(crate) all_branches: bool,
    pub(crate) updated_at: String,
    pub(crate) users: Vec<i64>,
    pub(crate) groups: Vec<i64>,
    /// Its protected branches.
    pub(crate) branches: Vec<i64>,
}

/// The tables for what a rule names, with their columns.
const USERS: (&str, &str) = ("approval_rule_users", "user_id");
const GROUPS: (&str, &str) = ("approval_rule_groups", "group_id");
const BRANCHES: (&str, &str) = ("approval_rule_branches", "branch_id");

stored!(ApprovalRule: approval_rules r,
    id, project_id, name, rule_type, report_type, approvals_required, all_branches, updated_at;
    users, groups, branches);

impl ApprovalRule {
    /// All rules of a project: the one for anybody first, those about reports last, the others in
    /// order of creation.
    pub(crate) fn all(db: &Connection, project: i64) -> Result<Vec<Self>> {
        let rest = "WHERE r.project_id = ?1
             ORDER BY r.rule_type <> 'any_approver', r.rule_type = 'report_approver', r.id";
        let mut rules = Self::list(db, rest, [project])?;
        for rule in &mut rules {
            rule.users = named(db, USERS, rule.id)?;
            rule.groups = named(db, GROUPS, rule.id)?;
            rule.branches = named(db, BRANCHES, rule.id)?;
        }
        Ok(rules)
    }

    /// Stores the rule, and gives a new one its id. Its name must be free.
    pub(crate) fn save(&mut self, db: &Connection) -> Result<()> {
        self.id = self.put(db)?;
        for (table, ids) in
            [(USERS, &self.users), (GROUPS, &self.groups), (BRANCHES, &self.branches)]
        {
            replace(db, table, self.id, ids)?;
        }
        Ok(())
    }
}

fn named(db: &Connection, (table, column): (&str, &str), rule: i64) -> Result<Vec<i64>> {
    let sql = format!("SELECT {column} FROM {table} WHERE rule_id = ?1 ORDER BY {column}");
    db.prepare_cached(&sql)?.query_map([rule], |row| row.get(0))?.collect()
}

fn replace(db: &Connection, (table, column): (&str, &str), rule: i64, ids: &[i64]) -> Result<()> {
    db.prepare_cached(&format!("DELETE FROM {table} WHERE rule_id = ?1"))?.execute([rule])?;
    let sql = format!("INSERT OR IGNORE INTO {table} (rule_id, {column}) VALUES (?1, ?2)");
    ids.iter().try_for_each(|id| db.prepare_cached(&sql)?.execute([rule, *id]).map(drop))
}
