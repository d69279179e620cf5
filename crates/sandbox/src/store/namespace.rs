//! Groups and personal namespaces.

use rusqlite::{Connection, OptionalExtension, Result, Row, ToSql, params};
use serde::Serialize;

/// One group or personal namespace. A group's id is its namespace's id.
#[derive(Clone, Debug)]
pub(crate) struct Namespace {
    pub(crate) id: i64,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) path: String,
    pub(crate) parent_id: Option<i64>,
    pub(crate) owner_id: Option<i64>,
    pub(crate) full_path: String,
    pub(crate) full_name: String,
    /// The ids from the root down: `/1/5/9/`.
    pub(crate) traversal: String,
    pub(crate) visibility: String,
    pub(crate) created_at: String,
    /// The day on which a group was marked to be deleted, if it was.
    pub(crate) marked_for_deletion_on: Option<String>,
}

/// A namespace in an answer.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Brief<'a> {
    id: i64,
    name: &'a str,
    path: &'a str,
    kind: &'a str,
    full_path: &'a str,
    parent_id: Option<i64>,
    /// Namespaces have no avatars here.
    avatar_url: Option<()>,
    web_url: String,
}

/// What a new group needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewGroup<'a> {
    pub(crate) name: &'a str,
    pub(crate) path: &'a str,
    pub(crate) parent: Option<&'a Namespace>,
    pub(crate) visibility: &'a str,
}

impl Namespace {
    /// The columns that [`Namespace::from_row`] reads, of a table with the alias `n`.
    pub(crate) const COLUMNS: &str = "n.id, n.kind, n.name, n.path, n.parent_id, n.owner_id, n.full_path, \
         n.full_name, n.traversal, n.visibility, n.created_at, \
         n.marked_for_deletion_on";
    /// How many columns those are.
    pub(crate) const WIDTH: usize = 12;

    /// Reads the columns from the one at `first` on.
    pub(crate) fn from_row(row: &Row<'_>, first: usize) -> Result<Self> {
        Ok(Self {
            id: row.get(first)?,
            kind: row.get(first + 1)?,
            name: row.get(first + 2)?,
            path: row.get(first + 3)?,
            parent_id: row.get(first + 4)?,
            owner_id: row.get(first + 5)?,
            full_path: row.get(first + 6)?,
            full_name: row.get(first + 7)?,
            traversal: row.get(first + 8)?,
            visibility: row.get(first + 9)?,
            created_at: row.get(first + 10)?,
            marked_for_deletion_on: row.get(first + 11)?,
        })
    }

    pub(crate) fn by_id(db: &Connection, id: i64) -> Result<Option<Self>> {
        Self::find(db, "n.id = ?1", &id)
    }

    /// By full path, in any case.
    pub(crate) fn by_path(db: &Connection, path: &str) -> Result<Option<Self>> {
        Self::find(db, "n.full_path = ?1", &path)
    }

    /// By id or by full path, as paths and parameters have it.
    pub(crate) fn by_reference(db: &Connection, text: &str) -> Result<Option<Self>> {
        match text.parse() {
            Ok(id) => Self::by_id(db, id),
            Err(_) => Self::by_path(db, text),
        }
    }

    /// The personal namespace of a user.
    pub(crate) fn of_user(db: &Connection, user: i64) -> Result<Option<Self>> {
        Self::find(db, "n.owner_id = ?1", &user)
    }

    fn find(db: &Connection, condition: &'static str, key: &dyn ToSql) -> Result<Option<Self>> {
        let sql = format!("SELECT {} FROM namespaces n WHERE {condition}", Self::COLUMNS);
        db.prepare_cached(&sql)?.query_row([key], |row| Self::from_row(row, 0)).optional()
    }

    /// Inserts a group below `new.parent`, or as a root.
    pub(crate) fn insert_group(db: &Connection, new: NewGroup<'_>, now: &str) -> Result<i64> {
        let below = |full: Option<&str>, own: &str, join: &str| match full {
            Some(full) => format!("{full}{join}{own}"),
            None => own.to_owned(),
        };
        let full_path = below(new.parent.map(|parent| parent.full_path.as_str()), new.path, "/");
        let full_name = below(new.parent.map(|parent| parent.full_name.as_str()), new.name, " / ");
        let id = db
            .prepare_cached(
                "INSERT INTO namespaces
                     (kind, name, path, parent_id, full_path, full_name, visibility, created_at)
                 VALUES ('group', ?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .insert(params![
                new.name,
                new.path,
                new.parent.map(|parent| parent.id),
                full_path,
                full_name,
                new.visibility,
                now
            ])?;
        let above = new.parent.map_or("/", |parent| parent.traversal.as_str());
        db.execute(
            "UPDATE namespaces SET traversal = ?1 WHERE id = ?2",
            params![format!("{above}{id}/"), id],
        )?;
        Ok(id)
    }

    /// The ends of the range of traversals at and below this namespace: `'0'` follows `'/'`.
    pub(crate) fn range(&self) -> (String, String) {
        let stem = self.traversal.strip_suffix('/').unwrap_or(&self.traversal);
        (self.traversal.clone(), format!("{stem}0"))
    }

    /// The ids of this namespace and of all below it.
    pub(crate) fn subtree(&self, db: &Connection) -> Result<Vec<i64>> {
        let (first, end) = self.range();
        db.prepare_cached("SELECT id FROM namespaces WHERE traversal >= ?1 AND traversal < ?2")?
            .query_map([first, end], |row| row.get(0))?
            .collect()
    }

    pub(crate) fn is_group(&self) -> bool {
        self.kind == "group"
    }

    /// Where people look at it.
    pub(crate) fn web_url(&self, base: &str) -> String {
        let groups = if self.is_group() { "groups/" } else { "" };
        format!("{base}/{groups}{}", self.full_path)
    }

    /// The object in a project (reference 1, 2.8) and in the list of namespaces.
    pub(crate) fn brief(&self, base: &str) -> Brief<'_> {
        Brief {
            id: self.id,
            name: &self.name,
            path: &self.path,
            kind: &self.kind,
            full_path: &self.full_path,
            parent_id: self.parent_id,
            avatar_url: None,
            web_url: self.web_url(base),
        }
    }
}
