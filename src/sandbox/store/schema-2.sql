-- Texts that administrators attach to projects.
CREATE TABLE custom_attributes (
    project_id INTEGER NOT NULL REFERENCES projects ON DELETE CASCADE,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (project_id, key)
) WITHOUT ROWID;
