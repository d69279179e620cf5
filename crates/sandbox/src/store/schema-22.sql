-- More of what is around projects and groups. `settings` is a JSON object of what was set.
CREATE TABLE milestones (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    group_id INTEGER REFERENCES namespaces ON DELETE CASCADE,
    project_id INTEGER REFERENCES projects ON DELETE CASCADE,
    settings TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    CHECK ((group_id IS NULL) <> (project_id IS NULL))
);
CREATE INDEX milestones_by_project ON milestones (project_id) WHERE project_id IS NOT NULL;
CREATE INDEX milestones_by_group ON milestones (group_id) WHERE group_id IS NOT NULL;

CREATE TABLE deploy_tokens (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    group_id INTEGER REFERENCES namespaces ON DELETE CASCADE,
    project_id INTEGER REFERENCES projects ON DELETE CASCADE,
    settings TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    CHECK ((group_id IS NULL) <> (project_id IS NULL))
);
CREATE INDEX deploy_tokens_by_project ON deploy_tokens (project_id) WHERE project_id IS NOT NULL;
CREATE INDEX deploy_tokens_by_group ON deploy_tokens (group_id) WHERE group_id IS NOT NULL;

CREATE TABLE environments (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    group_id INTEGER REFERENCES namespaces ON DELETE CASCADE,
    project_id INTEGER REFERENCES projects ON DELETE CASCADE,
    settings TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    CHECK ((group_id IS NULL) <> (project_id IS NULL))
);
CREATE INDEX environments_by_project ON environments (project_id) WHERE project_id IS NOT NULL;
CREATE INDEX environments_by_group ON environments (group_id) WHERE group_id IS NOT NULL;

CREATE TABLE protected_environments (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    group_id INTEGER REFERENCES namespaces ON DELETE CASCADE,
    project_id INTEGER REFERENCES projects ON DELETE CASCADE,
    settings TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    CHECK ((group_id IS NULL) <> (project_id IS NULL))
);
CREATE INDEX protected_environments_by_project ON protected_environments (project_id) WHERE project_id IS NOT NULL;
CREATE INDEX protected_environments_by_group ON protected_environments (group_id) WHERE group_id IS NOT NULL;

CREATE TABLE external_status_checks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    group_id INTEGER REFERENCES namespaces ON DELETE CASCADE,
    project_id INTEGER REFERENCES projects ON DELETE CASCADE,
    settings TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    CHECK ((group_id IS NULL) <> (project_id IS NULL))
);
CREATE INDEX external_status_checks_by_project ON external_status_checks (project_id) WHERE project_id IS NOT NULL;
CREATE INDEX external_status_checks_by_group ON external_status_checks (group_id) WHERE group_id IS NOT NULL;
