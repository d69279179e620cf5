//! Protected tags: one row each, with a row for each grant to create matching tags.

use rusqlite::{Connection, Result, params};

use super::protection::{Action, Grant};
use super::stored::{Stored as _, run, stored};

/// One protected tag, or wildcard.
#[derive(Clone, Debug)]
pub(crate) struct ProtectedTag {
    pub(crate) id: i64,
    pub(crate) project_id: i64,
    pub(crate) name: String,
    pub(crate) updated_at: String,
    pub(crate) grants: Vec<Grant>,
}

stored!(ProtectedTag: protected_tags t, id, project_id, name, updated_at; grants);

impl ProtectedTag {
    /// All protected tags of a project, in order of creation.
    pub(crate) fn all(db: &Connection, project: i64) -> Result<Vec<Self>> {
        let mut tags = Self::list(db, "WHERE t.project_id = ?1 ORDER BY t.id", [project])?;
        for tag in &mut tags {
            tag.grants = grants(db, tag.id)?;
        }
        Ok(tags)
    }

    /// The protected tag with this name, case-sensitive.
    pub(crate) fn named(db: &Connection, project: i64, name: &str) -> Result<Option<Self>> {
        Ok(Self::all(db, project)?.into_iter().find(|tag| tag.name == name))
    }

    /// Inserts it as a new one, with its grants. Its name must be free.
    pub(crate) fn insert(&self, db: &Connection) -> Result<()> {
        let id = self.put(db)?;
        let sql = "INSERT INTO protected_tag_grants (tag_id, access_level, user_id, group_id, deploy_key_id)
                   VALUES (?1, ?2, ?3, ?4, ?5)";
        self.grants.iter().try_for_each(|grant| {
            let [level, user, group, key] = grant.columns();
            run(db, sql, params![id, level, user, group, key])
        })
    }
}

fn grants(db: &Connection, tag: i64) -> Result<Vec<Grant>> {
    let columns = Grant::COLUMNS;
    let sql = format!("SELECT {columns} FROM protected_tag_grants WHERE tag_id = ?1 ORDER BY id");
    db.prepare_cached(&sql)?.query_map([tag], |row| Grant::from_row(row, Action::Create))?.collect()
}
