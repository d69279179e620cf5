//! Labels of projects and groups.

use rusqlite::{Connection, OptionalExtension, Result, params};
use serde_json::Value;

use super::stored::{Stored as _, run, stored};

/// One label.
#[derive(Clone, Debug)]
pub(crate) struct Label {
    pub(crate) id: i64,
    /// The project that has it, if no group does.
    pub(crate) project_id: Option<i64>,
    /// Its group, if it belongs to none of the projects.
    pub(crate) group_id: Option<i64>,
    pub(crate) title: String,
    pub(crate) color: String,
    pub(crate) description: Option<String>,
    pub(crate) updated_at: String,
}

stored!(Label: labels l, id, project_id, group_id, title, color, description, updated_at);

impl Label {
    /// The labels of some projects and groups, by title.
    pub(crate) fn of(db: &Connection, projects: &[i64], groups: &[i64]) -> Result<Vec<Self>> {
        let list = |ids: &[i64]| Value::from(ids).to_string();
        let rest = "WHERE l.project_id IN (SELECT value FROM json_each(?1))
             OR l.group_id IN (SELECT value FROM json_each(?2)) ORDER BY l.title, l.id";
        Self::list(db, rest, [list(projects), list(groups)])
    }

    /// Moves it to a group; it replaces the labels with this title in the group's projects. If the
    /// group has a label with this title, that one stays instead.
    pub(crate) fn promote(&mut self, db: &Connection, group: i64) -> Result<()> {
        let groups = Self::of(db, &[], &[group])?;
        if let Some(label) = groups.into_iter().find(|label| label.title == self.title) {
            *self = label;
        }
        let sql = "DELETE FROM labels WHERE title = ?1 AND id <> ?2
                       AND project_id IN (SELECT id FROM projects WHERE namespace_id = ?3)";
        run(db, sql, params![self.title, self.id, group])?;
        (self.project_id, self.group_id) = (None, Some(group));
        self.put(db).map(drop)
    }

    /// Its priority in a project.
    pub(crate) fn priority(&self, db: &Connection, project: i64) -> Result<Option<i64>> {
        let sql = "SELECT priority FROM label_priorities WHERE project_id = ?1 AND label_id = ?2";
        db.prepare_cached(sql)?.query_row([project, self.id], |row| row.get(0)).optional()
    }

    pub(crate) fn set_priority(
        &self,
        db: &Connection,
        project: i64,
        priority: Option<i64>,
    ) -> Result<()> {
        let sql = "DELETE FROM label_priorities WHERE project_id = ?1 AND label_id = ?2";
        run(db, sql, [project, self.id])?;
        let sql =
            "INSERT INTO label_priorities (project_id, label_id, priority) VALUES (?1, ?2, ?3)";
        priority.map_or(Ok(()), |priority| run(db, sql, [project, self.id, priority]))
    }
}
