-- Somebody without an account can be invited: a membership with an e-mail address instead of a user.
ALTER TABLE members RENAME TO members_with_accounts;
CREATE TABLE members (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    group_id INTEGER REFERENCES namespaces ON DELETE CASCADE,
    project_id INTEGER REFERENCES projects ON DELETE CASCADE,
    user_id INTEGER REFERENCES users ON DELETE CASCADE,
    email TEXT COLLATE NOCASE,
    access_level INTEGER NOT NULL,
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
INSERT INTO members (id, group_id, project_id, user_id, access_level, expires_at, state, override, created_at, created_by)
    SELECT id, group_id, project_id, user_id, access_level, expires_at, state, override, created_at, created_by
    FROM members_with_accounts;
DROP TABLE members_with_accounts;
CREATE INDEX members_by_user ON members (user_id);
CREATE INDEX members_by_email ON members (email) WHERE email IS NOT NULL;

-- Groups and users have pictures too.
CREATE TABLE avatars (
    project_id INTEGER UNIQUE REFERENCES projects ON DELETE CASCADE,
    group_id INTEGER UNIQUE REFERENCES namespaces ON DELETE CASCADE,
    user_id INTEGER UNIQUE REFERENCES users ON DELETE CASCADE,
    name TEXT NOT NULL,
    content BLOB NOT NULL
);
INSERT INTO avatars (project_id, name, content) SELECT project_id, name, content FROM files WHERE purpose = 'avatar';
DELETE FROM files WHERE purpose = 'avatar';
