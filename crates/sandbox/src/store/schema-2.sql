-- Texts that administrators attach to projects.
CREATE TABLE custom_attributes (
    project_id INTEGER NOT NULL REFERENCES projects ON DELETE CASCADE,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (project_id, key)
) WITHOUT ROWID;

-- A page far down a list is found by walking this index instead of the rows, which are large.
CREATE INDEX projects_by_id ON projects (id);
