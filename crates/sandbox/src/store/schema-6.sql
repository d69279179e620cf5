-- Protected branches. `due_at` is when the service makes one by itself, if that is yet to come: until then nobody
-- sees it.
CREATE TABLE protected_branches (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id INTEGER NOT NULL REFERENCES projects ON DELETE CASCADE,
    name TEXT NOT NULL,
    allow_force_push INTEGER NOT NULL,
    code_owner_approval_required INTEGER NOT NULL,
    updated_at TEXT NOT NULL,
    due_at TEXT,
    UNIQUE (project_id, name)
);

-- Who may do what with a protected branch: a role, a user or a group.
CREATE TABLE protected_branch_grants (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    branch_id INTEGER NOT NULL REFERENCES protected_branches ON DELETE CASCADE,
    action TEXT NOT NULL CHECK (action IN ('push', 'merge', 'unprotect')),
    access_level INTEGER,
    user_id INTEGER REFERENCES users ON DELETE CASCADE,
    group_id INTEGER REFERENCES namespaces ON DELETE CASCADE,
    CHECK ((access_level IS NOT NULL) + (user_id IS NOT NULL) + (group_id IS NOT NULL) = 1)
);
CREATE INDEX protected_branch_grants_by_branch ON protected_branch_grants (branch_id);
CREATE INDEX protected_branch_grants_by_user ON protected_branch_grants (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX protected_branch_grants_by_group ON protected_branch_grants (group_id) WHERE group_id IS NOT NULL;

-- Who leaves a project loses the right to push and merge that was granted by name; so does a group.
CREATE TRIGGER members_lose_their_grants AFTER DELETE ON members WHEN old.project_id IS NOT NULL
BEGIN
    DELETE FROM protected_branch_grants WHERE user_id = old.user_id AND action <> 'unprotect'
        AND branch_id IN (SELECT id FROM protected_branches WHERE project_id = old.project_id);
END;
CREATE TRIGGER invited_groups_lose_their_grants AFTER DELETE ON shares WHEN old.project_id IS NOT NULL
BEGIN
    DELETE FROM protected_branch_grants WHERE group_id = old.invited_id AND action <> 'unprotect'
        AND branch_id IN (SELECT id FROM protected_branches WHERE project_id = old.project_id);
END;
