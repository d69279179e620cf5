-- Whether nobody but the user and administrators sees the lists of the user's projects.
ALTER TABLE users ADD COLUMN private_profile INTEGER NOT NULL DEFAULT 0;
