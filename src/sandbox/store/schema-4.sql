-- What was set of a group, a JSON object, and the file name of its avatar.
ALTER TABLE namespaces ADD COLUMN settings TEXT NOT NULL DEFAULT '{}';
ALTER TABLE namespaces ADD COLUMN avatar TEXT;
