-- A grant has a level besides whom it is for, and may be for a deploy key.
DROP TRIGGER members_lose_their_grants;
DROP TRIGGER invited_groups_lose_their_grants;
ALTER TABLE protected_branch_grants RENAME TO former_branch_grants;
CREATE TABLE protected_branch_grants (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    branch_id INTEGER NOT NULL REFERENCES protected_branches ON DELETE CASCADE,
    action TEXT NOT NULL CHECK (action IN ('push', 'merge', 'unprotect')),
    access_level INTEGER NOT NULL,
    user_id INTEGER REFERENCES users ON DELETE CASCADE,
    group_id INTEGER REFERENCES namespaces ON DELETE CASCADE,
    deploy_key_id INTEGER REFERENCES deploy_keys ON DELETE CASCADE
);
INSERT INTO protected_branch_grants (id, branch_id, action, access_level, user_id, group_id)
    SELECT id, branch_id, action, ifnull(access_level, 40), user_id, group_id FROM former_branch_grants;
DROP TABLE former_branch_grants;
ALTER TABLE protected_tag_grants RENAME TO former_tag_grants;
CREATE TABLE protected_tag_grants (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tag_id INTEGER NOT NULL REFERENCES protected_tags ON DELETE CASCADE,
    access_level INTEGER NOT NULL,
    user_id INTEGER REFERENCES users ON DELETE CASCADE,
    group_id INTEGER REFERENCES namespaces ON DELETE CASCADE,
    deploy_key_id INTEGER REFERENCES deploy_keys ON DELETE CASCADE
);
INSERT INTO protected_tag_grants (id, tag_id, access_level, user_id, group_id)
    SELECT id, tag_id, ifnull(access_level, 40), user_id, group_id FROM former_tag_grants;
DROP TABLE former_tag_grants;
CREATE INDEX protected_branch_grants_by_branch ON protected_branch_grants (branch_id);
CREATE INDEX protected_branch_grants_by_user ON protected_branch_grants (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX protected_branch_grants_by_group ON protected_branch_grants (group_id) WHERE group_id IS NOT NULL;
CREATE INDEX protected_branch_grants_by_key ON protected_branch_grants (deploy_key_id) WHERE deploy_key_id IS NOT NULL;
CREATE INDEX protected_tag_grants_by_tag ON protected_tag_grants (tag_id);
CREATE INDEX protected_tag_grants_by_user ON protected_tag_grants (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX protected_tag_grants_by_group ON protected_tag_grants (group_id) WHERE group_id IS NOT NULL;
CREATE INDEX protected_tag_grants_by_key ON protected_tag_grants (deploy_key_id) WHERE deploy_key_id IS NOT NULL;
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
