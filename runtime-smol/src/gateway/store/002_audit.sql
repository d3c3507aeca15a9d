-- Version 2: the audit log, what a person has seen, and the unmasked text of a question.

-- One row a record; `hash` chains it to the one before (zcode_mail_core::audit).
CREATE TABLE audit (
    number  INTEGER PRIMARY KEY NOT NULL,
    at      INTEGER NOT NULL,
    event   TEXT NOT NULL,
    who     TEXT NOT NULL,
    how     TEXT NOT NULL,
    subject TEXT NOT NULL,
    -- Hexadecimal, empty where there is none.
    digest  TEXT NOT NULL,
    detail  TEXT NOT NULL,
    hash    BLOB NOT NULL
) STRICT;
CREATE INDEX audit_by_subject ON audit (subject, event);
CREATE TRIGGER audit_is_append_only_1 BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_is_append_only_2 BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;

-- How many records there are and how the last one hashes, so that a cut-off end is noticed.
CREATE TABLE audit_head (
    one    INTEGER PRIMARY KEY CHECK (one = 1),
    number INTEGER NOT NULL,
    hash   BLOB NOT NULL
) STRICT;
INSERT INTO audit_head VALUES (1, 0, zeroblob(32));

-- `context` has its secrets masked; the text as it was asked stands here until a day after the end.
-- NULL when nothing was masked, and when it has been erased.
ALTER TABLE permission_requests ADD COLUMN original TEXT;
CREATE INDEX permission_requests_with_original ON permission_requests (ended_at)
    WHERE original IS NOT NULL;

-- What proves that a person was shown the last page of a long request.
CREATE TABLE permission_views (
    request_id TEXT NOT NULL REFERENCES permission_requests(id),
    viewer     TEXT NOT NULL REFERENCES users(name),
    token      TEXT NOT NULL,
    PRIMARY KEY (request_id, viewer)
) STRICT, WITHOUT ROWID;
