-- Topics belong to the whole service and stay when no project has them any more.
CREATE TABLE topics (name TEXT PRIMARY KEY COLLATE NOCASE) WITHOUT ROWID;
INSERT OR IGNORE INTO topics (name)
    SELECT topic.value FROM projects, json_each(projects.attributes, '$.topics') topic
    WHERE json_valid(projects.attributes) ORDER BY projects.id;
