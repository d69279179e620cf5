-- What is read back of a project depends on who reads, so no parts of answers are prepared. A policy of the registry
-- has one expression for what is removed.

ALTER TABLE projects DROP COLUMN brief;
ALTER TABLE projects DROP COLUMN shown;
UPDATE projects SET attributes = json_remove(attributes, '$.container_expiration_policy_attributes.name_regex_delete')
    WHERE json_valid(attributes);
