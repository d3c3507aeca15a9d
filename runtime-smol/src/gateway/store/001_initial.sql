-- Version 1. Times are milliseconds since 1970-01-01T00:00:00Z; ids are random UUIDs as text.

-- One namespace for people and agents (W-2): a name is registered here before anything owns it.
CREATE TABLE names (
    name TEXT PRIMARY KEY NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('user', 'agent'))
) STRICT, WITHOUT ROWID;

CREATE TABLE users (
    name          TEXT PRIMARY KEY NOT NULL REFERENCES names(name),
    password_hash TEXT,
    is_admin      INTEGER NOT NULL DEFAULT 0,
    created_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE agents (
    name             TEXT PRIMARY KEY NOT NULL REFERENCES names(name),
    platform         TEXT NOT NULL DEFAULT '',
    mode_enforcement TEXT NOT NULL DEFAULT 'advisory',
    default_rounds   INTEGER NOT NULL DEFAULT 20,
    sent_total       INTEGER NOT NULL DEFAULT 0,
    -- 0: any model the platform has; 1: only the rows of agent_allowed_models.
    models_restricted INTEGER NOT NULL DEFAULT 0,
    last_seen_at     INTEGER,
    created_at       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE agent_workspaces (
    agent_name TEXT NOT NULL REFERENCES agents(name),
    name       TEXT NOT NULL,
    path       TEXT NOT NULL,
    PRIMARY KEY (agent_name, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE agent_model_catalog (
    agent_name   TEXT NOT NULL REFERENCES agents(name),
    position     INTEGER NOT NULL,
    provider     TEXT NOT NULL,
    model        TEXT NOT NULL,
    display_name TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (agent_name, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE agent_allowed_models (
    agent_name TEXT NOT NULL REFERENCES agents(name),
    position   INTEGER NOT NULL,
    provider   TEXT NOT NULL,
    model      TEXT NOT NULL,
    PRIMARY KEY (agent_name, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE agent_platform_sessions (
    agent_name  TEXT NOT NULL REFERENCES agents(name),
    platform_id TEXT NOT NULL,
    workspace   TEXT NOT NULL,
    slug        TEXT NOT NULL,
    title       TEXT NOT NULL,
    mail_driven INTEGER NOT NULL,
    updated_at  TEXT NOT NULL,
    PRIMARY KEY (agent_name, platform_id),
    UNIQUE (agent_name, slug)
) STRICT, WITHOUT ROWID;

-- Agent and user keys. Only the SHA-256 is kept; `lookup` is its first eight bytes.
CREATE TABLE keys (
    id          TEXT PRIMARY KEY NOT NULL,
    kind        TEXT NOT NULL CHECK (kind IN ('agent', 'user')),
    subject     TEXT NOT NULL REFERENCES names(name),
    owner       TEXT NOT NULL REFERENCES users(name),
    lookup      BLOB NOT NULL,
    hash        BLOB NOT NULL UNIQUE,
    lifetime    TEXT NOT NULL CHECK (lifetime IN ('permanent', 'one_time', 'timed')),
    expires_at  INTEGER,
    used_at     INTEGER,
    revoked_at  INTEGER,
    created_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX keys_by_lookup ON keys (lookup);

-- Browser sessions and one-time login codes, also as SHA-256 only.
CREATE TABLE logins (
    hash       BLOB PRIMARY KEY NOT NULL,
    user_name  TEXT NOT NULL REFERENCES users(name),
    kind       TEXT NOT NULL CHECK (kind IN ('cookie', 'code')),
    expires_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX logins_by_expiry ON logins (expires_at);

-- A mail session: the third part of an address.
CREATE TABLE sessions (
    id              TEXT PRIMARY KEY NOT NULL,
    alias           TEXT NOT NULL UNIQUE,
    alias_source    TEXT NOT NULL CHECK (alias_source IN ('subject', 'requested', 'platform', 'manual')),
    subject         TEXT NOT NULL,
    -- The agent that works in this session, NULL between people.
    agent_name      TEXT REFERENCES agents(name),
    workspace       TEXT NOT NULL DEFAULT '',
    platform_id     TEXT NOT NULL DEFAULT '',
    owner           TEXT NOT NULL REFERENCES names(name),
    permission_mode TEXT NOT NULL DEFAULT 'workspace'
        CHECK (permission_mode IN ('plan', 'workspace', 'full')),
    used_rounds     INTEGER NOT NULL DEFAULT 0,
    -- 0: unlimited.
    max_rounds      INTEGER NOT NULL DEFAULT 20,
    created_by      TEXT NOT NULL REFERENCES names(name),
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    archived_at     INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_creator ON sessions (created_by, created_at);
CREATE UNIQUE INDEX sessions_by_platform ON sessions (agent_name, platform_id) WHERE platform_id <> '';

-- Who takes part in a session, each with the path part of the own address.
CREATE TABLE session_participants (
    session_id TEXT NOT NULL REFERENCES sessions(id),
    name       TEXT NOT NULL REFERENCES names(name),
    workspace  TEXT NOT NULL,
    role       TEXT NOT NULL CHECK (role IN ('from', 'to', 'cc')),
    joined_at  INTEGER NOT NULL,
    PRIMARY KEY (session_id, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX session_participants_by_name ON session_participants (name);

-- An interactive permission request has no session: session_id is NULL.
CREATE TABLE mails (
    id            TEXT PRIMARY KEY NOT NULL,
    -- Arrival order, so that two mails of one millisecond keep theirs.
    number        INTEGER NOT NULL UNIQUE,
    session_id    TEXT REFERENCES sessions(id),
    parent_id     TEXT REFERENCES mails(id),
    from_name     TEXT NOT NULL REFERENCES names(name),
    to_name       TEXT NOT NULL REFERENCES names(name),
    subject       TEXT NOT NULL,
    body          TEXT NOT NULL,
    mail_type     TEXT NOT NULL,
    -- Agent-to-agent mails since a person last wrote in the thread.
    hops          INTEGER NOT NULL DEFAULT 0,
    rename_alias  TEXT,
    rename_reason TEXT,
    rename_state  TEXT CHECK (rename_state IN ('proposed', 'accepted', 'rejected')),
    created_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX mails_by_session ON mails (session_id, number);
CREATE INDEX mails_by_parent ON mails (parent_id);

-- One row per reader; read state is per reader (T-1.4).
CREATE TABLE mail_recipients (
    name        TEXT NOT NULL REFERENCES names(name),
    mail_number INTEGER NOT NULL,
    mail_id     TEXT NOT NULL REFERENCES mails(id),
    role        TEXT NOT NULL CHECK (role IN ('to', 'cc')),
    position    INTEGER NOT NULL,
    workspace   TEXT NOT NULL,
    read_at     INTEGER,
    PRIMARY KEY (name, mail_number)
) STRICT, WITHOUT ROWID;
-- Both columns, so that nobody looks a mail up by walking through a reader's mailbox.
CREATE UNIQUE INDEX mail_recipients_by_mail ON mail_recipients (mail_id, name);
CREATE INDEX mail_recipients_unread ON mail_recipients (name, mail_number) WHERE read_at IS NULL;

-- How many mails each reader has, so that listings and heartbeats cost the same however many.
CREATE TABLE mailbox_counts (
    name   TEXT PRIMARY KEY NOT NULL REFERENCES names(name),
    total  INTEGER NOT NULL,
    unread INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TRIGGER mail_received AFTER INSERT ON mail_recipients BEGIN
    INSERT INTO mailbox_counts (name, total, unread)
    VALUES (new.name, 1, new.read_at IS NULL)
    ON CONFLICT DO UPDATE SET total = total + 1, unread = unread + (new.read_at IS NULL);
END;
CREATE TRIGGER mail_marked AFTER UPDATE OF read_at ON mail_recipients BEGIN
    UPDATE mailbox_counts
    SET unread = unread + (new.read_at IS NULL) - (old.read_at IS NULL) WHERE name = new.name;
END;

-- What bridges forwarded, by their key (W-5.2). Rows go with their session, and the oldest of an
-- agent above a bound.
CREATE TABLE relayed_mails (
    agent_name TEXT NOT NULL REFERENCES agents(name),
    relay_key  TEXT NOT NULL,
    relay_kind TEXT NOT NULL CHECK (relay_kind IN ('permission', 'summary')),
    mail_id    TEXT NOT NULL REFERENCES mails(id),
    created_at INTEGER NOT NULL,
    PRIMARY KEY (agent_name, relay_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX relayed_mails_by_age ON relayed_mails (agent_name, created_at);
CREATE INDEX relayed_mails_by_mail ON relayed_mails (mail_id);

CREATE TABLE attachments (
    id           TEXT PRIMARY KEY NOT NULL,
    uploader     TEXT NOT NULL REFERENCES names(name),
    filename     TEXT NOT NULL,
    content_type TEXT NOT NULL,
    size         INTEGER NOT NULL,
    sha256       TEXT NOT NULL,
    created_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX attachments_by_content ON attachments (sha256);

CREATE TABLE mail_attachments (
    mail_id       TEXT NOT NULL REFERENCES mails(id),
    position      INTEGER NOT NULL,
    attachment_id TEXT NOT NULL REFERENCES attachments(id),
    PRIMARY KEY (mail_id, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX mail_attachments_by_attachment ON mail_attachments (attachment_id);

CREATE TABLE permission_requests (
    id               TEXT PRIMARY KEY NOT NULL,
    agent_name       TEXT NOT NULL REFERENCES agents(name),
    -- NULL when the client sent none; such requests are never repeats of each other.
    relay_key        TEXT,
    session_id       TEXT REFERENCES sessions(id),
    mail_id          TEXT NOT NULL REFERENCES mails(id),
    decider          TEXT NOT NULL REFERENCES users(name),
    question         TEXT NOT NULL,
    options          TEXT NOT NULL,
    context          TEXT NOT NULL,
    -- What set the agent to work and who asked for it (B-8.4); empty for interactive requests.
    task             TEXT NOT NULL DEFAULT '',
    task_from        TEXT NOT NULL DEFAULT '',
    status           TEXT NOT NULL DEFAULT 'pending'
        CHECK (status IN ('pending', 'decided', 'withdrawn', 'expired')),
    decision         TEXT,
    note             TEXT,
    decided_by       TEXT REFERENCES users(name),
    decision_mail_id TEXT REFERENCES mails(id),
    created_at       INTEGER NOT NULL,
    ended_at         INTEGER,
    UNIQUE (agent_name, relay_key),
    CHECK ((status = 'decided') = (decision IS NOT NULL)),
    CHECK ((status = 'decided') = (decided_by IS NOT NULL)),
    CHECK ((status = 'pending') = (ended_at IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX permission_requests_by_decider
    ON permission_requests (decider, status, created_at);
CREATE INDEX permission_requests_by_session ON permission_requests (session_id);

-- What the event streams announce. AUTOINCREMENT: an id is never used twice, also after pruning.
CREATE TABLE events (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    recipient  TEXT NOT NULL REFERENCES names(name),
    name       TEXT NOT NULL,
    data       TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX events_by_recipient ON events (recipient, id);
