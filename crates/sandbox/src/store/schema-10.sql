-- Groups have hooks and a push rule too.
ALTER TABLE hooks RENAME TO project_hooks;
CREATE TABLE hooks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    group_id INTEGER REFERENCES namespaces ON DELETE CASCADE,
    project_id INTEGER REFERENCES projects ON DELETE CASCADE,
    settings TEXT NOT NULL,
    token TEXT,
    created_at TEXT NOT NULL,
    CHECK ((group_id IS NULL) <> (project_id IS NULL))
);
INSERT INTO hooks (id, project_id, settings, token, created_at)
    SELECT id, project_id, settings, token, created_at FROM project_hooks;
-- The service never uses an id twice, also of hooks that are gone.
DELETE FROM sqlite_sequence WHERE name = 'hooks';
INSERT INTO sqlite_sequence (name, seq) SELECT 'hooks', seq FROM sqlite_sequence WHERE name = 'project_hooks';
DROP TABLE project_hooks;
CREATE INDEX hooks_by_project ON hooks (project_id);
CREATE INDEX hooks_by_group ON hooks (group_id) WHERE group_id IS NOT NULL;

ALTER TABLE push_rules RENAME TO project_push_rules;
CREATE TABLE push_rules (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    group_id INTEGER UNIQUE REFERENCES namespaces ON DELETE CASCADE,
    project_id INTEGER UNIQUE REFERENCES projects ON DELETE CASCADE,
    settings TEXT NOT NULL,
    created_at TEXT NOT NULL,
    CHECK ((group_id IS NULL) <> (project_id IS NULL))
);
INSERT INTO push_rules (id, project_id, settings, created_at)
    SELECT id, project_id, settings, created_at FROM project_push_rules;
DELETE FROM sqlite_sequence WHERE name = 'push_rules';
INSERT INTO sqlite_sequence (name, seq) SELECT 'push_rules', seq FROM sqlite_sequence WHERE name = 'project_push_rules';
DROP TABLE project_push_rules;
