-- Repositories, as far as clients look at them: commits, each with the whole tree of its files,
-- branches, tags. Nothing of Git is kept.
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

-- What there was: files by branch, and a default branch that was there without any.
INSERT INTO commits (project_id, id, message, author_name, author_email, created_at)
    SELECT id, lower(hex(randomblob(20))), 'Initial commit', '', '', created_at FROM projects WHERE NOT empty_repo;
INSERT INTO branches (project_id, name, commit_id)
    SELECT c.project_id, coalesce(json_extract(p.attributes, '$.default_branch'), 'main'), c.id
    FROM commits c JOIN projects p ON p.id = c.project_id;
INSERT OR IGNORE INTO branches (project_id, name, commit_id)
    SELECT f.project_id, f.secret, c.id FROM files f JOIN commits c USING (project_id)
    WHERE f.purpose = 'repository';
INSERT OR IGNORE INTO blobs (project_id, id, content)
    SELECT f.project_id, f.id, f.content FROM files f WHERE f.purpose = 'repository' AND f.name <> '';
INSERT OR REPLACE INTO trees (project_id, commit_id, path, blob_id, executable, last_commit_id)
    SELECT f.project_id, c.id, f.name, f.id, 0, c.id FROM files f JOIN commits c USING (project_id)
    WHERE f.purpose = 'repository' AND f.name <> '';
DELETE FROM files WHERE purpose = 'repository';

-- Who has asked to become a member.
CREATE TABLE access_requests (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    group_id INTEGER REFERENCES namespaces ON DELETE CASCADE,
    project_id INTEGER REFERENCES projects ON DELETE CASCADE,
    user_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    requested_at TEXT NOT NULL,
    CHECK ((group_id IS NULL) <> (project_id IS NULL))
);
CREATE UNIQUE INDEX access_requests_of_projects ON access_requests (project_id, user_id) WHERE project_id IS NOT NULL;
CREATE UNIQUE INDEX access_requests_of_groups ON access_requests (group_id, user_id) WHERE group_id IS NOT NULL;
