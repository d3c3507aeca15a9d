-- Version 3: approvals that last, kept where no agent can write.

CREATE TABLE grants (
    id         TEXT PRIMARY KEY NOT NULL,
    giver      TEXT NOT NULL REFERENCES users(name),
    agent_name TEXT NOT NULL REFERENCES agents(name),
    session_id TEXT NOT NULL REFERENCES sessions(id),
    -- The request that it was read in; its text is what the scope was made of.
    request_id TEXT NOT NULL REFERENCES permission_requests(id),
    -- The text itself: requests may lose theirs.
    shown      TEXT NOT NULL,
    -- The words that a command must begin with, as a JSON list; NULL for every call of the tool.
    prefix     TEXT,
    -- A refusal that lasts.
    denies     INTEGER NOT NULL CHECK (denies IN (0, 1)),
    until      INTEGER,
    uses_left  INTEGER,
    used       INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    ended_at   INTEGER,
    ended_why  TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;
CREATE INDEX grants_in_force ON grants (session_id, agent_name) WHERE ended_at IS NULL;
