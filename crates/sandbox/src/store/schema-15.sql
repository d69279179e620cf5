-- Merge requests, as far as there is something to comment on, and their notes.
CREATE TABLE merge_requests (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id INTEGER NOT NULL REFERENCES projects ON DELETE CASCADE,
    iid INTEGER NOT NULL,
    title TEXT NOT NULL,
    state TEXT NOT NULL,
    discussion_locked INTEGER NOT NULL,
    author_id INTEGER REFERENCES users ON DELETE SET NULL,
    source_branch TEXT NOT NULL,
    target_branch TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    UNIQUE (project_id, iid)
);

CREATE TABLE notes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    merge_request_id INTEGER NOT NULL REFERENCES merge_requests ON DELETE CASCADE,
    author_id INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    body TEXT NOT NULL,
    system INTEGER NOT NULL,
    internal INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
);
CREATE INDEX notes_by_merge_request ON notes (merge_request_id, created_at);
