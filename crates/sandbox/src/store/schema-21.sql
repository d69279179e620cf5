-- Variables may have no value, and know when they were changed; deploy keys may expire.
ALTER TABLE variables RENAME TO former_variables;
CREATE TABLE variables (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    group_id INTEGER REFERENCES namespaces ON DELETE CASCADE,
    project_id INTEGER REFERENCES projects ON DELETE CASCADE,
    key TEXT NOT NULL,
    environment_scope TEXT NOT NULL,
    value TEXT,
    variable_type TEXT NOT NULL,
    protected INTEGER NOT NULL,
    masked INTEGER NOT NULL,
    raw INTEGER NOT NULL,
    description TEXT,
    hidden INTEGER NOT NULL DEFAULT 0,
    updated_at TEXT NOT NULL DEFAULT '',
    CHECK ((group_id IS NULL) <> (project_id IS NULL)),
    UNIQUE (project_id, key, environment_scope),
    UNIQUE (group_id, key, environment_scope)
);
INSERT INTO variables (id, group_id, project_id, key, environment_scope, value, variable_type, protected, masked, raw,
                       description, hidden)
    SELECT id, group_id, project_id, key, environment_scope, value, variable_type, protected, masked, raw, description,
           hidden FROM former_variables;
-- The service never uses an id twice, also of variables that are gone.
DELETE FROM sqlite_sequence WHERE name = 'variables';
INSERT INTO sqlite_sequence (name, seq) SELECT 'variables', seq FROM sqlite_sequence WHERE name = 'former_variables';
DROP TABLE former_variables;

ALTER TABLE deploy_keys ADD COLUMN expires_at TEXT;
