-- Labels of projects and of groups.
CREATE TABLE labels (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    group_id INTEGER REFERENCES namespaces ON DELETE CASCADE,
    project_id INTEGER REFERENCES projects ON DELETE CASCADE,
    title TEXT NOT NULL,
    color TEXT NOT NULL,
    description TEXT,
    updated_at TEXT NOT NULL,
    CHECK ((group_id IS NULL) <> (project_id IS NULL)),
    UNIQUE (project_id, title),
    UNIQUE (group_id, title)
);
-- How important a project holds a label, also one of a group above it.
CREATE TABLE label_priorities (
    project_id INTEGER NOT NULL REFERENCES projects ON DELETE CASCADE,
    label_id INTEGER NOT NULL REFERENCES labels ON DELETE CASCADE,
    priority INTEGER NOT NULL,
    PRIMARY KEY (project_id, label_id)
) WITHOUT ROWID;
CREATE INDEX label_priorities_by_label ON label_priorities (label_id);
