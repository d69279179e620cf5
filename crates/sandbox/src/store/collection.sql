-- The table of a collection; `NAME` stands for its name. Each row belongs to one project or group.
CREATE TABLE IF NOT EXISTS NAME (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    group_id INTEGER REFERENCES namespaces ON DELETE CASCADE,
    project_id INTEGER REFERENCES projects ON DELETE CASCADE,
    settings TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    CHECK ((group_id IS NULL) <> (project_id IS NULL))
);
CREATE INDEX IF NOT EXISTS NAME_by_project ON NAME (project_id) WHERE project_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS NAME_by_group ON NAME (group_id) WHERE group_id IS NOT NULL;
