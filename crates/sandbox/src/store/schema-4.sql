-- What was set of groups and users, JSON objects.
ALTER TABLE namespaces ADD COLUMN settings TEXT NOT NULL DEFAULT '{}';
ALTER TABLE users ADD COLUMN settings TEXT NOT NULL DEFAULT '{}';

-- Groups have variables too.
ALTER TABLE variables RENAME TO project_variables;
CREATE TABLE variables (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    group_id INTEGER REFERENCES namespaces ON DELETE CASCADE,
    project_id INTEGER REFERENCES projects ON DELETE CASCADE,
    key TEXT NOT NULL,
    environment_scope TEXT NOT NULL,
    value TEXT NOT NULL,
    variable_type TEXT NOT NULL,
    protected INTEGER NOT NULL,
    masked INTEGER NOT NULL,
    raw INTEGER NOT NULL,
    CHECK ((group_id IS NULL) <> (project_id IS NULL)),
    UNIQUE (project_id, key, environment_scope),
    UNIQUE (group_id, key, environment_scope)
);
INSERT INTO variables (id, project_id, key, environment_scope, value, variable_type, protected, masked, raw)
    SELECT id, project_id, key, environment_scope, value, variable_type, protected, masked, raw FROM project_variables;
DROP TABLE project_variables;

-- Groups and users have custom attributes too.
ALTER TABLE custom_attributes RENAME TO project_custom_attributes;
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
INSERT INTO custom_attributes (project_id, key, value) SELECT project_id, key, value FROM project_custom_attributes;
DROP TABLE project_custom_attributes;

-- A token that was revoked is still listed.
ALTER TABLE tokens ADD COLUMN revoked INTEGER NOT NULL DEFAULT 0;
