-- A group says how merge requests are approved, too.
ALTER TABLE approval_settings RENAME TO former_approval_settings;
CREATE TABLE approval_settings (
    project_id INTEGER UNIQUE REFERENCES projects ON DELETE CASCADE,
    group_id INTEGER UNIQUE REFERENCES namespaces ON DELETE CASCADE,
    settings TEXT NOT NULL,
    CHECK ((group_id IS NULL) <> (project_id IS NULL))
);
INSERT INTO approval_settings (project_id, settings) SELECT project_id, settings FROM former_approval_settings;
DROP TABLE former_approval_settings;
