-- Where deletion waits, a group is marked with the day.
ALTER TABLE namespaces ADD COLUMN marked_for_deletion_on TEXT;
