//! Repositories: commits, each with the complete tree of its files, and the branches and tags that
//! point to them. No Git objects are stored; the ids only look like ids of Git.

use crate::prelude::*;
use rusqlite::Result;

/// One commit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Commit {
    pub(crate) id: String,
    pub(crate) parent: Option<String>,
    pub(crate) message: String,
    pub(crate) author_name: String,
    pub(crate) author_email: String,
    pub(crate) created_at: String,
}

/// A file at a commit.
#[derive(Clone, Debug)]
pub(crate) struct RepositoryFile {
    pub(crate) blob_id: String,
    pub(crate) content: Vec<u8>,
    pub(crate) executable: bool,
    /// The id of the commit that last changed the file.
    pub(crate) last_commit_id: String,
}

/// A branch or a tag.
#[derive(Clone, Debug)]
pub(crate) struct GitRef {
    pub(crate) name: String,
    /// The message of a tag; empty for a branch and for a lightweight tag.
    pub(crate) message: String,
    pub(crate) created_at: String,
    pub(crate) commit: Commit,
}

/// The kind of a ref: branches or tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RefKind {
    pub(crate) table: &'static str,
    /// The columns for the message and the time.
    columns: &'static str,
    /// The parameter, and the path segment, with the name of a branch or tag.
    pub(crate) param_name: &'static str,
    pub(crate) type_name: &'static str,
}

pub(crate) const BRANCHES: RefKind =
    RefKind { table: "branches", columns: "'', ''", param_name: "branch", type_name: "Branch" };
pub(crate) const TAGS: RefKind = RefKind {
    table: "tags",
    columns: "r.message, r.created_at",
    param_name: "tag_name",
    type_name: "Tag",
};

/// The minimum length of an id that Git accepts.
const MIN_ID_LENGTH: usize = 4;

/// An edit of one file in a commit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommitEdit<'a> {
    pub(crate) path: &'a str,
    /// The new content, and true if the file is executable; `None` removes the file.
    pub(crate) content: Option<(&'a [u8], bool)>,
}

/// The repository of a project, for a call.
#[derive(Clone, Copy)]
pub(crate) struct Repository<'a> {
    pub(crate) call: &'a Call<'a>,
    pub(crate) project: &'a Project,
}

stored!(Commit: commits c, id, parent, message, author_name, author_email, created_at);

/// An id of 40 hexadecimal digits that identifies `parts`.
pub(crate) fn digest_id(parts: &[&[u8]]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    digest.finalize().iter().take(20).map(|byte| format!("{byte:02x}")).collect()
}

impl Repository<'_> {
    /// All branches or tags, sorted by name.
    pub(crate) fn list_refs(self, kind: RefKind) -> Result<Vec<GitRef>> {
        self.find_refs(kind, None)
    }

    /// The branch or tag with this name.
    pub(crate) fn find_ref(self, kind: RefKind, name: &str) -> Result<Option<GitRef>> {
        Ok(self.find_refs(kind, Some(name))?.pop())
    }

    fn find_refs(self, kind: RefKind, name: Option<&str>) -> Result<Vec<GitRef>> {
        let RefKind { table, columns, .. } = kind;
        // The two cases have separate conditions, because a condition with OR could not use the
        // index.
        let condition = if name.is_some() { "r.name = ?2" } else { "?2 IS NULL" };
        let clauses = format!(
            "JOIN {table} r ON r.project_id = c.project_id AND r.commit_id = c.id
             WHERE r.project_id = ?1 AND {condition} ORDER BY r.name"
        );
        let (extra_columns, values) =
            (format!("r.name, {columns}"), params![self.project.id, name]);
        Commit::list_with(self.call.db, &extra_columns, &clauses, values, |commit, row| {
            let [name, message, created_at] =
                [0, 1, 2].map(|column| row.get(Commit::COLUMN_COUNT + column));
            Ok(GitRef { name: name?, message: message?, created_at: created_at?, commit })
        })
    }

    pub(crate) fn remove_ref(self, RefKind { table, .. }: RefKind, name: &str) -> Result<()> {
        let sql = format!("DELETE FROM {table} WHERE project_id = ?1 AND name = ?2");
        execute(self.call.db, &sql, params![self.project.id, name])
    }

    /// The commit that a branch, a tag, an id or a unique prefix of an id names.
    pub(crate) fn resolve_commit(self, reference: &str) -> Result<Option<Commit>> {
        for kind in [BRANCHES, TAGS] {
            if let Some(git_ref) = self.find_ref(kind, reference)? {
                return Ok(Some(git_ref.commit));
            }
        }
        if reference.len() < MIN_ID_LENGTH
            || !reference.bytes().all(|byte| byte.is_ascii_hexdigit())
        {
            return Ok(None);
        }
        let clauses = "WHERE c.project_id = ?1 AND c.id LIKE ?2 || '%' LIMIT 2";
        let mut commits = Commit::list(self.call.db, clauses, params![self.project.id, reference])?;
        Ok(commits.pop().filter(|_| commits.is_empty()))
    }

    /// A file at a commit.
    pub(crate) fn find_file(self, commit_id: &str, path: &str) -> Result<Option<RepositoryFile>> {
        let mut statement = self.call.db.prepare_cached(
            "SELECT t.blob_id, b.content, t.executable, t.last_commit_id FROM trees t JOIN blobs b
                 ON b.project_id = t.project_id AND b.id = t.blob_id
             WHERE t.project_id = ?1 AND t.commit_id = ?2 AND t.path = ?3",
        )?;
        let file = statement.query_row(params![self.project.id, commit_id, path], |row| {
            Ok(RepositoryFile {
                blob_id: row.get(0)?,
                content: row.get(1)?,
                executable: row.get(2)?,
                last_commit_id: row.get(3)?,
            })
        });
        file.optional()
    }

    /// The paths of all files at a commit, in order, each with its blob id and its
    /// executable flag.
    pub(crate) fn list_files(self, commit_id: &str) -> Result<Vec<(String, String, bool)>> {
        let sql = "SELECT path, blob_id, executable FROM trees
                   WHERE project_id = ?1 AND commit_id = ?2 ORDER BY path";
        query_rows(self.call.db, sql, params![self.project.id, commit_id])
    }

    /// Commits `edits` to a branch, which is created if missing. This function sets the id and the
    /// parent of the commit.
    pub(crate) fn commit(
        self,
        branch: &str,
        commit: Commit,
        edits: &[CommitEdit<'_>],
    ) -> Result<()> {
        let Commit { message, author_name, author_email, created_at, .. } = commit;
        let parent = self.find_ref(BRANCHES, branch)?.map(|branch| branch.commit.id);
        let mut digest_parts = vec![message.as_bytes(), created_at.as_bytes(), branch.as_bytes()];
        digest_parts.push(parent.as_deref().unwrap_or_default().as_bytes());
        for edit in edits {
            digest_parts.push(edit.path.as_bytes());
            digest_parts.extend(edit.content.map(|(content, _)| content));
        }
        let commit_id = digest_id(&digest_parts);
        let sql = "INSERT OR IGNORE INTO commits VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let id = self.project.id;
        let row = params![id, commit_id, parent, message, author_name, author_email, created_at];
        execute(self.call.db, sql, row)?;
        if let Some(parent) = &parent {
            let sql = "INSERT OR IGNORE INTO trees
                       SELECT project_id, ?3, path, blob_id, executable, last_commit_id FROM trees
                       WHERE project_id = ?1 AND commit_id = ?2";
            execute(self.call.db, sql, params![self.project.id, parent, commit_id])?;
        }
        for edit in edits {
            self.apply_edit(&commit_id, edit)?;
        }
        self.set_branch(branch, &commit_id)
    }

    fn apply_edit(self, commit_id: &str, edit: &CommitEdit<'_>) -> Result<()> {
        let Some((content, executable)) = edit.content else {
            let sql = "DELETE FROM trees WHERE project_id = ?1 AND commit_id = ?2 AND path = ?3";
            return execute(self.call.db, sql, params![self.project.id, commit_id, edit.path]);
        };
        let blob = digest_id(&[content]);
        let sql = "INSERT OR IGNORE INTO blobs VALUES (?1, ?2, ?3)";
        execute(self.call.db, sql, params![self.project.id, blob, content])?;
        let sql = "INSERT OR REPLACE INTO trees VALUES (?1, ?2, ?3, ?4, ?5, ?2)";
        execute(self.call.db, sql, params![self.project.id, commit_id, edit.path, blob, executable])
    }

    /// Points a branch, which is created if missing, to a commit.
    pub(crate) fn set_branch(self, branch: &str, commit_id: &str) -> Result<()> {
        let sql = "INSERT OR REPLACE INTO branches VALUES (?1, ?2, ?3)";
        execute(self.call.db, sql, params![self.project.id, branch, commit_id])
    }

    /// Creates a tag. Its name must be free.
    pub(crate) fn add_tag(
        self,
        name: &str,
        message: &str,
        commit_id: &str,
        now: &str,
    ) -> Result<()> {
        let sql = "INSERT INTO tags VALUES (?1, ?2, ?3, ?4, ?5)";
        execute(self.call.db, sql, params![self.project.id, name, message, commit_id, now])
    }

    /// Copies the commits, files, branches and tags of another project.
    pub(crate) fn copy_from(self, upstream_id: i64) -> Result<()> {
        for (table, columns) in [
            ("commits", "id, parent, message, author_name, author_email, created_at"),
            ("blobs", "id, content"),
            ("trees", "commit_id, path, blob_id, executable, last_commit_id"),
            ("branches", "name, commit_id"),
            ("tags", "name, message, commit_id, created_at"),
        ] {
            let sql = format!(
                "INSERT INTO {table} (project_id, {columns}) SELECT ?1, {columns} FROM {table} WHERE project_id = ?2"
            );
            self.call.db.execute(&sql, [self.project.id, upstream_id])?;
        }
        Ok(())
    }
}

/// True if Git accepts a name for a branch or a tag (`git check-ref-format`).
pub(crate) fn is_valid_ref_name(name: &str) -> bool {
    name.len() <= 255
        && name.split('/').all(|segment| {
            !segment.is_empty()
                && !segment.starts_with('.')
                && !segment.to_ascii_lowercase().ends_with(".lock")
        })
        && !name.starts_with('-')
        && !name.ends_with('.')
        && name != "@"
        && name != "HEAD"
        && !name.contains("..")
        && !name.contains("@{")
        && !name.contains(|c: char| c.is_ascii_control() || " ~^:?*[\\".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_git_refuses_are_refused() {
        for name in ["main", "feature/a-b", "v1.0", "é", "a@b", "x.locked"] {
            assert!(is_valid_ref_name(name), "{name}");
        }
        let long_name = "a".repeat(256);
        for bad in [
            "", "/", "a/", "/a", "a//b", ".a", "a/.b", "a.lock", "a.lock/b", "a..b", "a b", "a~1",
            "a^", "a:b", "a?", "a*", "a[", "a\\b", "-a", "a.", "@", "a@{1}", "HEAD", "a\tb",
            "a\u{7f}", &long_name,
        ] {
            assert!(!is_valid_ref_name(bad), "{bad:?}");
        }
    }
}
