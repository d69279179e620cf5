//! Groups and personal namespaces.

use crate::prelude::*;
use rusqlite::Result;

/// One group or personal namespace. A group's id is its namespace's id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Namespace {
    pub(crate) id: i64,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) path: String,
    pub(crate) parent_id: Option<i64>,
    pub(crate) owner_id: Option<i64>,
    pub(crate) full_path: String,
    pub(crate) full_name: String,
    /// The ids of the groups from the root to this one, such as `/1/5/9/`.
    pub(crate) traversal: String,
    pub(crate) visibility: String,
    pub(crate) created_at: String,
    /// The day on which a group was marked for deletion; `None` if it is not marked.
    pub(crate) marked_for_deletion_on: Option<String>,
}

/// The properties of a new group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewGroup<'a> {
    pub(crate) name: &'a str,
    pub(crate) path: &'a str,
    pub(crate) parent: Option<&'a Namespace>,
    pub(crate) visibility: &'a str,
}

stored!(Namespace: namespaces n,
    id, kind, name, path, parent_id, owner_id, full_path, full_name, traversal, visibility, created_at,
    marked_for_deletion_on);

impl Namespace {
    /// Finds a namespace by its full path, ignoring case.
    pub(crate) fn find_by_path(db: &Connection, path: &str) -> Result<Option<Self>> {
        Self::find_first(db, "WHERE n.full_path = ?1", [path])
    }

    /// Finds a namespace by its id or full path, as in paths and parameters.
    pub(crate) fn find_by_reference(db: &Connection, reference: &str) -> Result<Option<Self>> {
        match reference.parse() {
            Ok(id) => Self::find_by_id(db, id),
            Err(_) => Self::find_by_path(db, reference),
        }
    }

    /// The personal namespace of a user.
    pub(crate) fn find_personal(db: &Connection, user_id: i64) -> Result<Option<Self>> {
        Self::find_first(db, "WHERE n.owner_id = ?1", [user_id])
    }

    /// Inserts a group below `new_group.parent`, or at the top level. Returns the id of the group.
    pub(crate) fn insert_group(db: &Connection, new_group: NewGroup<'_>, now: &str) -> Result<i64> {
        let NewGroup { name, path, parent, visibility } = new_group;
        let (full_path, full_name) = match parent {
            Some(parent) => {
                (format!("{}/{path}", parent.full_path), format!("{} / {name}", parent.full_name))
            }
            None => (path.to_owned(), name.to_owned()),
        };
        let parent_id = parent.map(|parent| parent.id);
        let sql = "INSERT INTO namespaces
                       (kind, name, path, parent_id, full_path, full_name, visibility, created_at)
                   VALUES ('group', ?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let group = params![name, path, parent_id, full_path, full_name, visibility, now];
        let id = db.prepare_cached(sql)?.insert(group)?;
        let parent_traversal = parent.map_or("/", |parent| parent.traversal.as_str());
        let sql = "UPDATE namespaces SET traversal = ?1 WHERE id = ?2";
        execute(db, sql, params![format!("{parent_traversal}{id}/"), id]).map(|()| id)
    }

    /// The range of the traversals at and below this namespace, such as `/1/5/` and `/1/50`. The
    /// second value is the excluded end: `0` is the character after `/`.
    pub(crate) fn traversal_range(&self) -> (String, String) {
        let range_prefix = self.traversal.strip_suffix('/').unwrap_or(&self.traversal);
        (self.traversal.clone(), format!("{range_prefix}0"))
    }

    /// The ids of this namespace and of all namespaces below it.
    pub(crate) fn subtree_ids(&self, db: &Connection) -> Result<Vec<i64>> {
        let (range_start, range_end) = self.traversal_range();
        db.prepare_cached("SELECT id FROM namespaces WHERE traversal >= ?1 AND traversal < ?2")?
            .query_map([range_start, range_end], |row| row.get(0))?
            .collect()
    }

    pub(crate) fn is_group(&self) -> bool {
        self.kind == "group"
    }

    /// The URL of the namespace's web page.
    pub(crate) fn web_url(&self, base: &str) -> String {
        let prefix = if self.is_group() { "groups/" } else { "" };
        format!("{base}/{prefix}{}", self.full_path)
    }

    /// The form of a namespace in projects (reference 1, 2.8) and in the list of namespaces.
    pub(crate) fn brief_json(&self, base_url: &str) -> Value {
        // The avatar is always null in this form.
        let mut body = self.json_columns("id name path kind full_path parent_id avatar_url");
        body["web_url"] = self.web_url(base_url).into();
        body
    }
}
