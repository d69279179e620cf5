-- Protected tags, and who may create what they cover: a role, a user or a group.
CREATE TABLE protected_tags (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id INTEGER NOT NULL REFERENCES projects ON DELETE CASCADE,
    name TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    UNIQUE (project_id, name)
);
CREATE TABLE protected_tag_grants (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tag_id INTEGER NOT NULL REFERENCES protected_tags ON DELETE CASCADE,
    access_level INTEGER,
    user_id INTEGER REFERENCES users ON DELETE CASCADE,
    group_id INTEGER REFERENCES namespaces ON DELETE CASCADE,
    CHECK ((access_level IS NOT NULL) + (user_id IS NOT NULL) + (group_id IS NOT NULL) = 1)
);
CREATE INDEX protected_tag_grants_by_tag ON protected_tag_grants (tag_id);
CREATE INDEX protected_tag_grants_by_user ON protected_tag_grants (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX protected_tag_grants_by_group ON protected_tag_grants (group_id) WHERE group_id IS NOT NULL;
