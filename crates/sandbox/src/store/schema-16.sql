-- A group's description is one of its settings, so that none differs from a blank one.
UPDATE namespaces SET settings = json_set(settings, '$.description', description) WHERE description <> '';
