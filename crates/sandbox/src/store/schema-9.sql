-- Who has to approve merge requests of a project. `settings` is a JSON object of what was set.
CREATE TABLE approval_settings (
    project_id INTEGER PRIMARY KEY REFERENCES projects ON DELETE CASCADE,
    settings TEXT NOT NULL
);
CREATE TABLE approval_rules (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id INTEGER NOT NULL REFERENCES projects ON DELETE CASCADE,
    name TEXT NOT NULL,
    rule_type TEXT NOT NULL CHECK (rule_type IN ('regular', 'any_approver', 'report_approver')),
    report_type TEXT,
    approvals_required INTEGER NOT NULL,
    all_branches INTEGER NOT NULL,
    updated_at TEXT NOT NULL,
    UNIQUE (project_id, rule_type, name)
);
CREATE TABLE approval_rule_users (
    rule_id INTEGER NOT NULL REFERENCES approval_rules ON DELETE CASCADE,
    user_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    PRIMARY KEY (rule_id, user_id)
) WITHOUT ROWID;
CREATE INDEX approval_rule_users_by_user ON approval_rule_users (user_id);
CREATE TABLE approval_rule_groups (
    rule_id INTEGER NOT NULL REFERENCES approval_rules ON DELETE CASCADE,
    group_id INTEGER NOT NULL REFERENCES namespaces ON DELETE CASCADE,
    PRIMARY KEY (rule_id, group_id)
) WITHOUT ROWID;
CREATE INDEX approval_rule_groups_by_group ON approval_rule_groups (group_id);
CREATE TABLE approval_rule_branches (
    rule_id INTEGER NOT NULL REFERENCES approval_rules ON DELETE CASCADE,
    branch_id INTEGER NOT NULL REFERENCES protected_branches ON DELETE CASCADE,
    PRIMARY KEY (rule_id, branch_id)
) WITHOUT ROWID;
CREATE INDEX approval_rule_branches_by_branch ON approval_rule_branches (branch_id);
