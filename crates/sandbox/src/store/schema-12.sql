-- What later releases brought: what a variable is for, and whether its value is never shown.
ALTER TABLE variables ADD COLUMN description TEXT;
ALTER TABLE variables ADD COLUMN hidden INTEGER NOT NULL DEFAULT 0;
