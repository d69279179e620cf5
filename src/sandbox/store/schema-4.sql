-- What was set of groups and users, JSON objects, and the file name of a group's avatar.
ALTER TABLE namespaces ADD COLUMN settings TEXT NOT NULL DEFAULT '{}';
ALTER TABLE namespaces ADD COLUMN avatar TEXT;
ALTER TABLE users ADD COLUMN settings TEXT NOT NULL DEFAULT '{}';
