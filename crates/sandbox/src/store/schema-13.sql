-- What is around a project besides: badges, push mirrors, deploy keys, pipeline schedules, freeze
-- periods. `settings` is a JSON object of what was set.
CREATE TABLE badges (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    group_id INTEGER REFERENCES namespaces ON DELETE CASCADE,
    project_id INTEGER REFERENCES projects ON DELETE CASCADE,
    settings TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    CHECK ((group_id IS NULL) <> (project_id IS NULL))
);
CREATE INDEX badges_by_project ON badges (project_id) WHERE project_id IS NOT NULL;
CREATE INDEX badges_by_group ON badges (group_id) WHERE group_id IS NOT NULL;

CREATE TABLE remote_mirrors (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id INTEGER NOT NULL REFERENCES projects ON DELETE CASCADE,
    settings TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
);
CREATE INDEX remote_mirrors_by_project ON remote_mirrors (project_id);

CREATE TABLE deploy_keys (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    title TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint TEXT NOT NULL UNIQUE,
    created_at TEXT NOT NULL
);
CREATE TABLE deploy_key_projects (
    key_id INTEGER NOT NULL REFERENCES deploy_keys ON DELETE CASCADE,
    project_id INTEGER NOT NULL REFERENCES projects ON DELETE CASCADE,
    can_push INTEGER NOT NULL,
    PRIMARY KEY (project_id, key_id)
) WITHOUT ROWID;
CREATE INDEX deploy_key_projects_by_key ON deploy_key_projects (key_id);
-- A key goes with the last project that uses it.
CREATE TRIGGER deploy_keys_without_project AFTER DELETE ON deploy_key_projects BEGIN
    DELETE FROM deploy_keys WHERE id = OLD.key_id
        AND NOT EXISTS (SELECT 1 FROM deploy_key_projects WHERE key_id = OLD.key_id);
END;

CREATE TABLE pipeline_schedules (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id INTEGER NOT NULL REFERENCES projects ON DELETE CASCADE,
    settings TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
);
CREATE INDEX pipeline_schedules_by_project ON pipeline_schedules (project_id);

CREATE TABLE freeze_periods (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id INTEGER NOT NULL REFERENCES projects ON DELETE CASCADE,
    settings TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
);
CREATE INDEX freeze_periods_by_project ON freeze_periods (project_id);
