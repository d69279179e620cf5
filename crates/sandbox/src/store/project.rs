//! Projects: one row each, with the attributes as JSON text.

use std::collections::hash_map::Entry;
use std::rc::Rc;

use crate::prelude::*;
use rusqlite::Result;

/// One project with its namespace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Project {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) path: String,
    pub(crate) full_path: String,
    pub(crate) visibility: String,
    pub(crate) archived: bool,
    pub(crate) empty_repo: bool,
    pub(crate) creator_id: i64,
    pub(crate) created_at: String,
    pub(crate) updated_at: String,
    pub(crate) last_activity_at: String,
    pub(crate) runners_token: String,
    /// The file name of the avatar.
    pub(crate) avatar: Option<String>,
    pub(crate) forked_from_id: Option<i64>,
    pub(crate) import_status: String,
    /// The error with which the running import or fork will fail, or has failed.
    pub(crate) import_error: Option<String>,
    /// The origin of the import, if it is shown.
    pub(crate) import_source: Option<String>,
    /// The time at which the running import or fork finishes.
    pub(crate) import_done_at: Option<String>,
    pub(crate) marked_for_deletion_on: Option<String>,
    /// The attributes as JSON text.
    pub(crate) attributes_json: String,
    pub(crate) star_count: i64,
    pub(crate) forks_count: i64,
    /// True if a group is invited to the project.
    pub(crate) shared: bool,
    pub(crate) namespace: Rc<Namespace>,
}

/// The properties of a new project.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewProject<'a> {
    pub(crate) namespace: &'a Namespace,
    pub(crate) name: &'a str,
    pub(crate) path: &'a str,
    pub(crate) visibility: &'a str,
    pub(crate) empty_repo: bool,
    /// True if the first commit has a `README.md`.
    pub(crate) has_readme: bool,
    /// The id of the project whose repository is copied.
    pub(crate) source_project_id: Option<i64>,
    pub(crate) creator_id: i64,
    pub(crate) forked_from_id: Option<i64>,
    /// The background import of the contents; `None` without an import.
    pub(crate) import: Option<Import<'a>>,
    pub(crate) attributes: &'a Object,
}

/// An import or fork in the background.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Import<'a> {
    /// The origin of the import, if it is shown.
    pub(crate) source: Option<&'a str>,
    /// The error with which the import fails; `None` if it succeeds.
    pub(crate) error: Option<&'a str>,
}

stored!(Project: projects p,
    id, name, path, full_path, visibility, archived, empty_repo, creator_id, created_at, updated_at,
    last_activity_at, runners_token, avatar, forked_from_id, import_status, import_error,
    import_source, import_done_at, marked_for_deletion_on, attributes_json = "p.attributes",
    star_count = "(SELECT count(*) FROM stars s WHERE s.project_id = p.id)",
    forks_count = "(SELECT count(*) FROM projects f WHERE f.forked_from_id = p.id)",
    shared = "EXISTS (SELECT 1 FROM shares s WHERE s.project_id = p.id)"; namespace);

impl Project {
    /// The start of a query for [`Project::read_with_namespace`]. In the query, projects are `p`
    /// and their namespaces are `n`.
    pub(crate) fn select_sql() -> String {
        format!(
            "SELECT {}, {} FROM projects p JOIN namespaces n ON n.id = p.namespace_id",
            Self::COLUMNS,
            Namespace::COLUMNS
        )
    }

    /// Reads a row. The projects of a list share namespaces. Namespaces that are known in
    /// `namespaces` are not read again.
    pub(crate) fn read_with_namespace(
        row: &Row<'_>,
        namespaces: &mut HashMap<i64, Rc<Namespace>>,
    ) -> Result<Self> {
        let namespace = match namespaces.entry(row.get(Self::COLUMN_COUNT)?) {
            Entry::Occupied(entry) => Rc::clone(entry.get()),
            Entry::Vacant(entry) => {
                Rc::clone(entry.insert(Rc::new(Namespace::read(row, Self::COLUMN_COUNT)?)))
            }
        };
        Ok(Self { namespace, ..Self::from_row(row)? })
    }

    pub(crate) fn find_by_id(db: &Connection, id: i64) -> Result<Option<Self>> {
        Self::find(db, "p.id = ?1", &id)
    }

    /// Finds a project by its full path, ignoring case.
    pub(crate) fn find_by_path(db: &Connection, path: &str) -> Result<Option<Self>> {
        Self::find(db, "p.full_path = ?1", &path)
    }

    /// Finds a project by its id or full path. A path always has a slash. A text of digits is
    /// therefore an id.
    pub(crate) fn find_by_reference(db: &Connection, reference: &str) -> Result<Option<Self>> {
        match reference.parse() {
            Ok(id) => Self::find_by_id(db, id),
            Err(_) => Self::find_by_path(db, reference),
        }
    }

    /// The project that had this full path before it was moved or renamed.
    pub(crate) fn find_by_former_path(db: &Connection, path: &str) -> Result<Option<Self>> {
        Self::find(db, "p.id = (SELECT project_id FROM former_paths WHERE full_path = ?1)", &path)
    }

    fn find(db: &Connection, condition: &'static str, key: &dyn ToSql) -> Result<Option<Self>> {
        let sql = format!("{} WHERE {condition}", Self::select_sql());
        db.prepare_cached(&sql)?
            .query_row([key], |row| Self::read_with_namespace(row, &mut HashMap::new()))
            .optional()
    }

    /// Inserts a project. Its name and path must be free.
    pub(crate) fn insert(call: &Call<'_>, new_project: NewProject<'_>) -> Result<i64> {
        let import_status = if new_project.import.is_some() { "scheduled" } else { "none" };
        let NewProject { namespace, name, path, visibility, empty_repo, creator_id, .. } =
            new_project;
        let full_path = format!("{}/{path}", namespace.full_path);
        let attributes = Value::Object(new_project.attributes.clone()).to_string();
        let sql = "INSERT INTO projects
                 (namespace_id, name, path, full_path, visibility, empty_repo, creator_id, created_at, updated_at,
                  last_activity_at, runners_token, forked_from_id, import_status, attributes,
                  import_source, import_done_at, import_error)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";
        let row_values = params![
            namespace.id,
            name,
            path,
            full_path,
            visibility,
            empty_repo,
            creator_id,
            call.time_text(),
            call.random_hex(),
            new_project.forked_from_id,
            import_status,
            attributes,
            new_project.import.and_then(|import| import.source),
            new_project.import.map(|_| call.import_finish_time()),
            new_project.import.and_then(|import| import.error),
        ];
        call.db.prepare_cached(sql)?.insert(row_values)
    }

    /// The full name: the names of the groups above, then the name of the project.
    pub(crate) fn full_name(&self) -> String {
        format!("{} / {}", self.namespace.full_name, self.name)
    }

    /// The value of `import_status` at a time.
    pub(crate) fn import_status_at(&self, now: &str) -> &str {
        match &self.import_done_at {
            Some(finish_time)
                if self.import_status == "scheduled" && finish_time.as_str() <= now =>
            {
                if self.import_error.is_some() { "failed" } else { "finished" }
            }
            _ => &self.import_status,
        }
    }

    /// The value of `import_error` at a time.
    pub(crate) fn import_error_at(&self, now: &str) -> Option<&str> {
        let has_failed = self.import_status_at(now) == "failed";
        self.import_error.as_deref().filter(|_| has_failed)
    }

    /// All attributes in their stored form.
    pub(crate) fn attributes(&self, db: &Connection) -> Result<Object> {
        let text: String = db
            .prepare_cached("SELECT attributes FROM projects WHERE id = ?1")?
            .query_row([self.id], |row| row.get(0))?;
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }

    /// Stores the attributes.
    pub(crate) fn save_attributes(
        &self,
        db: &Connection,
        attributes: &Object,
        now: &str,
    ) -> Result<()> {
        let text = serde_json::to_string(attributes).unwrap_or_default();
        let sql = "UPDATE projects SET attributes = ?2, updated_at = ?3 WHERE id = ?1";
        execute(db, sql, params![self.id, text, now])
    }
}
