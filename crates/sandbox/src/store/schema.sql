-- The tables of the sandbox. AUTOINCREMENT everywhere: the service never reuses an id. Times are RFC 3339 texts
-- in UTC with milliseconds, dates are `YYYY-MM-DD`: both can be compared as texts. `settings` is a JSON object of the
-- explicitly set values.

CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE users (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    username TEXT NOT NULL COLLATE NOCASE UNIQUE,
    name TEXT NOT NULL,
    email TEXT NOT NULL COLLATE NOCASE UNIQUE,
    state TEXT NOT NULL DEFAULT 'active',
    admin INTEGER NOT NULL DEFAULT 0,
    bot INTEGER NOT NULL DEFAULT 0,
    created_at TEXT NOT NULL,
    -- True if only the user and administrators see the lists of the user's projects.
    private_profile INTEGER NOT NULL DEFAULT 0,
    settings TEXT NOT NULL DEFAULT '{}'
);

-- A token is stored as its SHA-256. The row is found by the first eight bytes (`prefix`); the whole digest is compared
-- in constant time. Revoked tokens stay in lists.
CREATE TABLE tokens (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    prefix BLOB NOT NULL,
    digest BLOB NOT NULL UNIQUE,
    name TEXT NOT NULL,
    scopes TEXT NOT NULL DEFAULT 'api',
    expires_at TEXT,
    created_at TEXT NOT NULL,
    revoked INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX tokens_by_prefix ON tokens (prefix);
CREATE INDEX tokens_by_user ON tokens (user_id);

-- Groups and the personal namespaces of users. `traversal` contains the ids from the root down, `/1/5/9/`: a subtree
-- is one range of its index, and the row itself contains its ancestors.
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
    created_at TEXT NOT NULL,
    settings TEXT NOT NULL DEFAULT '{}',
    marked_for_deletion_on TEXT
);
CREATE INDEX namespaces_by_parent ON namespaces (parent_id);
CREATE INDEX namespaces_by_owner ON namespaces (owner_id);
CREATE INDEX namespaces_by_traversal ON namespaces (traversal);

-- `attributes` is a JSON object of all attributes, including those that answers never show.
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
    attributes TEXT NOT NULL
);
CREATE INDEX projects_by_namespace ON projects (namespace_id, path COLLATE NOCASE);
CREATE UNIQUE INDEX projects_by_name ON projects (namespace_id, name);
CREATE INDEX projects_by_fork ON projects (forked_from_id);
CREATE INDEX projects_by_visibility ON projects (visibility);
CREATE INDEX projects_by_creation ON projects (created_at, id);
CREATE TRIGGER projects_leave_a_trace AFTER UPDATE OF full_path ON projects
WHEN old.full_path <> new.full_path COLLATE NOCASE
BEGIN
    DELETE FROM former_paths WHERE full_path = new.full_path;
    INSERT OR REPLACE INTO former_paths (full_path, project_id) VALUES (old.full_path, old.id);
END;
-- Finds pages far down a list by reading only this index; the rows are large.
CREATE INDEX projects_by_id ON projects (id);

-- Full paths of projects before they were renamed or moved.
CREATE TABLE former_paths (
    full_path TEXT PRIMARY KEY COLLATE NOCASE,
    project_id INTEGER NOT NULL REFERENCES projects ON DELETE CASCADE
) WITHOUT ROWID;
CREATE INDEX former_paths_by_project ON former_paths (project_id);

-- Uploaded files.
CREATE TABLE files (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id INTEGER NOT NULL REFERENCES projects ON DELETE CASCADE,
    secret TEXT NOT NULL,
    name TEXT NOT NULL,
    content BLOB NOT NULL
);
CREATE INDEX files_by_project ON files (project_id);

-- Custom roles; `settings` is the list of their permissions.
CREATE TABLE member_roles (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    description TEXT,
    base_access_level INTEGER NOT NULL,
    settings TEXT NOT NULL
);

-- Memberships. An invitation of a person without an account has an e-mail address instead of a user.
CREATE TABLE members (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    group_id INTEGER REFERENCES namespaces ON DELETE CASCADE,
    project_id INTEGER REFERENCES projects ON DELETE CASCADE,
    user_id INTEGER REFERENCES users ON DELETE CASCADE,
    email TEXT COLLATE NOCASE,
    access_level INTEGER NOT NULL,
    member_role_id INTEGER REFERENCES member_roles,
    expires_at TEXT,
    state TEXT NOT NULL DEFAULT 'active',
    override INTEGER NOT NULL DEFAULT 0,
    created_at TEXT NOT NULL,
    created_by INTEGER REFERENCES users ON DELETE SET NULL,
    CHECK ((group_id IS NULL) <> (project_id IS NULL)),
    CHECK ((user_id IS NULL) <> (email IS NULL)),
    UNIQUE (group_id, user_id),
    UNIQUE (project_id, user_id),
    UNIQUE (group_id, email),
    UNIQUE (project_id, email)
);
CREATE INDEX members_by_user ON members (user_id);
CREATE INDEX members_by_email ON members (email) WHERE email IS NOT NULL;
CREATE TRIGGER members_lose_their_grants AFTER DELETE ON members WHEN old.project_id IS NOT NULL
BEGIN
    DELETE FROM protected_branch_grants WHERE user_id = old.user_id AND action <> 'unprotect'
        AND branch_id IN (SELECT id FROM protected_branches WHERE project_id = old.project_id);
END;

-- Groups invited to a project or to another group.
CREATE TABLE shares (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    group_id INTEGER REFERENCES namespaces ON DELETE CASCADE,
    project_id INTEGER REFERENCES projects ON DELETE CASCADE,
    invited_id INTEGER NOT NULL REFERENCES namespaces ON DELETE CASCADE,
    access_level INTEGER NOT NULL,
    member_role_id INTEGER REFERENCES member_roles ON DELETE SET NULL,
    expires_at TEXT,
    CHECK ((group_id IS NULL) <> (project_id IS NULL)),
    UNIQUE (group_id, invited_id),
    UNIQUE (project_id, invited_id)
);
CREATE INDEX shares_by_invited ON shares (invited_id);
CREATE TRIGGER invited_groups_lose_their_grants AFTER DELETE ON shares WHEN old.project_id IS NOT NULL
BEGIN
    DELETE FROM protected_branch_grants WHERE group_id = old.invited_id AND action <> 'unprotect'
        AND branch_id IN (SELECT id FROM protected_branches WHERE project_id = old.project_id);
END;

CREATE TABLE stars (
    project_id INTEGER NOT NULL REFERENCES projects ON DELETE CASCADE,
    user_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    starred_since TEXT NOT NULL,
    PRIMARY KEY (project_id, user_id)
) WITHOUT ROWID;
CREATE INDEX stars_by_user ON stars (user_id);

-- Custom attributes: texts that administrators attach to projects, groups and users.
CREATE TABLE custom_attributes (
    project_id INTEGER REFERENCES projects ON DELETE CASCADE,
    group_id INTEGER REFERENCES namespaces ON DELETE CASCADE,
    user_id INTEGER REFERENCES users ON DELETE CASCADE,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    UNIQUE (project_id, key),
    UNIQUE (group_id, key),
    UNIQUE (user_id, key)
);

-- Avatars.
CREATE TABLE avatars (
    project_id INTEGER UNIQUE REFERENCES projects ON DELETE CASCADE,
    group_id INTEGER UNIQUE REFERENCES namespaces ON DELETE CASCADE,
    user_id INTEGER UNIQUE REFERENCES users ON DELETE CASCADE,
    name TEXT NOT NULL,
    content BLOB NOT NULL
);

-- Protected branches of a project, or of all projects in a group. `due_at` is the time at which an automatic
-- protection takes effect; until then nobody sees it.
CREATE TABLE protected_branches (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id INTEGER REFERENCES projects ON DELETE CASCADE,
    namespace_id INTEGER REFERENCES namespaces ON DELETE CASCADE,
    name TEXT NOT NULL,
    allow_force_push INTEGER NOT NULL,
    code_owner_approval_required INTEGER NOT NULL,
    updated_at TEXT NOT NULL,
    due_at TEXT,
    UNIQUE (project_id, name),
    UNIQUE (namespace_id, name),
    CHECK ((project_id IS NULL) <> (namespace_id IS NULL))
);

-- Grants of actions on a protected branch: to a level, or to a user, a group or a deploy key.
CREATE TABLE protected_branch_grants (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    branch_id INTEGER NOT NULL REFERENCES protected_branches ON DELETE CASCADE,
    action TEXT NOT NULL CHECK (action IN ('push', 'merge', 'unprotect')),
    access_level INTEGER NOT NULL,
    user_id INTEGER REFERENCES users ON DELETE CASCADE,
    group_id INTEGER REFERENCES namespaces ON DELETE CASCADE,
    deploy_key_id INTEGER REFERENCES deploy_keys ON DELETE CASCADE
);
CREATE INDEX protected_branch_grants_by_branch ON protected_branch_grants (branch_id);
CREATE INDEX protected_branch_grants_by_user ON protected_branch_grants (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX protected_branch_grants_by_group ON protected_branch_grants (group_id) WHERE group_id IS NOT NULL;
CREATE INDEX protected_branch_grants_by_key ON protected_branch_grants (deploy_key_id) WHERE deploy_key_id IS NOT NULL;

-- Deploy keys. The tables of plain collections are created by `routes/registry.rs`.
CREATE TABLE deploy_keys (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    title TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint TEXT NOT NULL UNIQUE,
    created_at TEXT NOT NULL,
    expires_at TEXT
);

CREATE TABLE deploy_key_projects (
    key_id INTEGER NOT NULL REFERENCES deploy_keys ON DELETE CASCADE,
    project_id INTEGER NOT NULL REFERENCES projects ON DELETE CASCADE,
    can_push INTEGER NOT NULL,
    PRIMARY KEY (project_id, key_id)
) WITHOUT ROWID;
CREATE INDEX deploy_key_projects_by_key ON deploy_key_projects (key_id);
-- A key is removed with the last project that uses it.
CREATE TRIGGER deploy_keys_without_project AFTER DELETE ON deploy_key_projects BEGIN
    DELETE FROM deploy_keys WHERE id = OLD.key_id
        AND NOT EXISTS (SELECT 1 FROM deploy_key_projects WHERE key_id = OLD.key_id);
END;

CREATE TABLE runners (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    description TEXT,
    runner_type TEXT NOT NULL,
    locked INTEGER NOT NULL,
    group_id INTEGER REFERENCES namespaces ON DELETE CASCADE
);

CREATE TABLE runner_projects (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    runner_id INTEGER NOT NULL REFERENCES runners ON DELETE CASCADE,
    project_id INTEGER NOT NULL REFERENCES projects ON DELETE CASCADE,
    UNIQUE (runner_id, project_id)
);
CREATE INDEX runner_projects_by_project ON runner_projects (project_id);

-- Repositories: commits, each with the complete tree of its files, branches and tags. Nothing of Git is stored.
CREATE TABLE commits (
    project_id INTEGER NOT NULL REFERENCES projects ON DELETE CASCADE,
    id TEXT NOT NULL,
    parent TEXT,
    message TEXT NOT NULL,
    author_name TEXT NOT NULL,
    author_email TEXT NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (project_id, id)
) WITHOUT ROWID;

CREATE TABLE blobs (
    project_id INTEGER NOT NULL REFERENCES projects ON DELETE CASCADE,
    id TEXT NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (project_id, id)
);

CREATE TABLE trees (
    project_id INTEGER NOT NULL REFERENCES projects ON DELETE CASCADE,
    commit_id TEXT NOT NULL,
    path TEXT NOT NULL,
    blob_id TEXT NOT NULL,
    executable INTEGER NOT NULL,
    last_commit_id TEXT NOT NULL,
    PRIMARY KEY (project_id, commit_id, path)
) WITHOUT ROWID;

CREATE TABLE branches (
    project_id INTEGER NOT NULL REFERENCES projects ON DELETE CASCADE,
    name TEXT NOT NULL,
    commit_id TEXT NOT NULL,
    PRIMARY KEY (project_id, name)
) WITHOUT ROWID;

CREATE TABLE tags (
    project_id INTEGER NOT NULL REFERENCES projects ON DELETE CASCADE,
    name TEXT NOT NULL,
    message TEXT NOT NULL,
    commit_id TEXT NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (project_id, name)
) WITHOUT ROWID;

-- Merge requests, with only the fields that notes need, and their notes.
CREATE TABLE merge_requests (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id INTEGER NOT NULL REFERENCES projects ON DELETE CASCADE,
    iid INTEGER NOT NULL,
    title TEXT NOT NULL,
    state TEXT NOT NULL,
    discussion_locked INTEGER NOT NULL,
    author_id INTEGER REFERENCES users ON DELETE SET NULL,
    source_branch TEXT NOT NULL,
    target_branch TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    UNIQUE (project_id, iid)
);

CREATE TABLE notes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    merge_request_id INTEGER NOT NULL REFERENCES merge_requests ON DELETE CASCADE,
    author_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    body TEXT NOT NULL,
    system INTEGER NOT NULL,
    internal INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
);
CREATE INDEX notes_by_merge_request ON notes (merge_request_id, created_at);

-- Topics belong to the whole service, and stay when no project uses them any more.
CREATE TABLE topics (name TEXT PRIMARY KEY COLLATE NOCASE) WITHOUT ROWID;

