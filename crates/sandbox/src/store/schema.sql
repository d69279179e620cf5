-- The tables of the embedded service. AUTOINCREMENT everywhere: the service never uses an id twice.
-- Times are RFC 3339 texts in UTC with milliseconds, dates are `YYYY-MM-DD`: both compare as texts.

CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE users (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    username TEXT NOT NULL COLLATE NOCASE UNIQUE,
    name TEXT NOT NULL,
    email TEXT NOT NULL COLLATE NOCASE UNIQUE,
    state TEXT NOT NULL DEFAULT 'active',
    admin INTEGER NOT NULL DEFAULT 0,
    bot INTEGER NOT NULL DEFAULT 0,
    created_at TEXT NOT NULL
);

-- A token is kept as its SHA-256. The first eight bytes find the row; the whole is compared in constant time.
CREATE TABLE tokens (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    prefix BLOB NOT NULL,
    digest BLOB NOT NULL UNIQUE,
    name TEXT NOT NULL,
    scopes TEXT NOT NULL DEFAULT 'api',
    expires_at TEXT,
    created_at TEXT NOT NULL
);
CREATE INDEX tokens_by_prefix ON tokens (prefix);
CREATE INDEX tokens_by_user ON tokens (user_id);

-- Groups and the personal namespaces of users. `traversal` is the ids from the root down, `/1/5/9/`, so that a
-- subtree is one range of the index and the ancestors are in the row itself.
CREATE TABLE namespaces (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL CHECK (kind IN ('user', 'group')),
    name TEXT NOT NULL,
    path TEXT NOT NULL,
    parent_id INTEGER REFERENCES namespaces ON DELETE CASCADE,
    owner_id INTEGER REFERENCES users ON DELETE CASCADE,
    full_path TEXT NOT NULL COLLATE NOCASE UNIQUE,
    full_name TEXT NOT NULL,
    traversal TEXT NOT NULL DEFAULT '',
    visibility TEXT NOT NULL DEFAULT 'private',
    description TEXT NOT NULL DEFAULT '',
    created_at TEXT NOT NULL
);
CREATE INDEX namespaces_by_parent ON namespaces (parent_id);
CREATE INDEX namespaces_by_owner ON namespaces (owner_id);
CREATE INDEX namespaces_by_traversal ON namespaces (traversal);

-- `attributes` is a JSON object of all that was set, also of what cannot be read back; `brief` and `shown` are the
-- parts of the simple and the full answer that follow from it, as JSON text, so that reading a project parses
-- nothing.
CREATE TABLE projects (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace_id INTEGER NOT NULL REFERENCES namespaces ON DELETE CASCADE,
    name TEXT NOT NULL,
    path TEXT NOT NULL,
    full_path TEXT NOT NULL COLLATE NOCASE UNIQUE,
    visibility TEXT NOT NULL,
    archived INTEGER NOT NULL DEFAULT 0,
    empty_repo INTEGER NOT NULL DEFAULT 1,
    creator_id INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    last_activity_at TEXT NOT NULL,
    runners_token TEXT NOT NULL,
    avatar TEXT,
    forked_from_id INTEGER REFERENCES projects ON DELETE SET NULL,
    import_status TEXT NOT NULL DEFAULT 'none',
    import_error TEXT,
    import_source TEXT,
    import_done_at TEXT,
    marked_for_deletion_on TEXT,
    attributes TEXT NOT NULL,
    brief TEXT NOT NULL,
    shown TEXT NOT NULL
);
CREATE INDEX projects_by_namespace ON projects (namespace_id, path COLLATE NOCASE);
CREATE UNIQUE INDEX projects_by_name ON projects (namespace_id, name);
CREATE INDEX projects_by_fork ON projects (forked_from_id);
CREATE INDEX projects_by_visibility ON projects (visibility);
CREATE INDEX projects_by_creation ON projects (created_at, id);

-- Where projects were before they were renamed or moved.
CREATE TABLE former_paths (
    full_path TEXT PRIMARY KEY COLLATE NOCASE,
    project_id INTEGER NOT NULL REFERENCES projects ON DELETE CASCADE
) WITHOUT ROWID;
CREATE INDEX former_paths_by_project ON former_paths (project_id);
CREATE TRIGGER projects_leave_a_trace AFTER UPDATE OF full_path ON projects
WHEN old.full_path <> new.full_path COLLATE NOCASE
BEGIN
    DELETE FROM former_paths WHERE full_path = new.full_path;
    INSERT OR REPLACE INTO former_paths (full_path, project_id) VALUES (old.full_path, old.id);
END;

CREATE TABLE files (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id INTEGER NOT NULL REFERENCES projects ON DELETE CASCADE,
    purpose TEXT NOT NULL CHECK (purpose IN ('avatar', 'upload', 'repository')),
    secret TEXT NOT NULL,
    name TEXT NOT NULL,
    content BLOB NOT NULL
);
CREATE INDEX files_by_project ON files (project_id, purpose);

CREATE TABLE members (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    group_id INTEGER REFERENCES namespaces ON DELETE CASCADE,
    project_id INTEGER REFERENCES projects ON DELETE CASCADE,
    user_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    access_level INTEGER NOT NULL,
    expires_at TEXT,
    state TEXT NOT NULL DEFAULT 'active',
    override INTEGER NOT NULL DEFAULT 0,
    created_at TEXT NOT NULL,
    created_by INTEGER REFERENCES users ON DELETE SET NULL,
    CHECK ((group_id IS NULL) <> (project_id IS NULL)),
    UNIQUE (group_id, user_id),
    UNIQUE (project_id, user_id)
);
CREATE INDEX members_by_user ON members (user_id);

-- Groups invited to a project or to another group.
CREATE TABLE shares (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    group_id INTEGER REFERENCES namespaces ON DELETE CASCADE,
    project_id INTEGER REFERENCES projects ON DELETE CASCADE,
    invited_id INTEGER NOT NULL REFERENCES namespaces ON DELETE CASCADE,
    access_level INTEGER NOT NULL,
    expires_at TEXT,
    CHECK ((group_id IS NULL) <> (project_id IS NULL)),
    UNIQUE (group_id, invited_id),
    UNIQUE (project_id, invited_id)
);
CREATE INDEX shares_by_invited ON shares (invited_id);

CREATE TABLE variables (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id INTEGER NOT NULL REFERENCES projects ON DELETE CASCADE,
    key TEXT NOT NULL,
    environment_scope TEXT NOT NULL,
    value TEXT NOT NULL,
    variable_type TEXT NOT NULL,
    protected INTEGER NOT NULL,
    masked INTEGER NOT NULL,
    raw INTEGER NOT NULL,
    UNIQUE (project_id, key, environment_scope)
);

-- `settings` is a JSON object of the fields that are read back.
CREATE TABLE hooks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id INTEGER NOT NULL REFERENCES projects ON DELETE CASCADE,
    settings TEXT NOT NULL,
    token TEXT,
    created_at TEXT NOT NULL
);
CREATE INDEX hooks_by_project ON hooks (project_id);

CREATE TABLE push_rules (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id INTEGER NOT NULL UNIQUE REFERENCES projects ON DELETE CASCADE,
    settings TEXT NOT NULL,
    created_at TEXT NOT NULL
);

CREATE TABLE stars (
    project_id INTEGER NOT NULL REFERENCES projects ON DELETE CASCADE,
    user_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    starred_since TEXT NOT NULL,
    PRIMARY KEY (project_id, user_id)
) WITHOUT ROWID;
CREATE INDEX stars_by_user ON stars (user_id);
