-- What our store sends to SQLite, without our Python: the limit of what it can reach.
-- Named statements; bare.py says in which sequence each verb sends them.

-- name: schema
CREATE TABLE IF NOT EXISTS queue (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    ordering TEXT NOT NULL DEFAULT 'put' CHECK (ordering IN ('put', 'prepare', 'commit')),
    depth_max INTEGER NOT NULL DEFAULT 999999999
) STRICT;
-- What every put and get changes, apart from what hardly ever changes: short rows make a short log.
CREATE TABLE IF NOT EXISTS tally (
    queue INTEGER PRIMARY KEY REFERENCES queue,
    depth INTEGER NOT NULL DEFAULT 0 CHECK (depth >= 0),
    next_number INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE TABLE IF NOT EXISTS unit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    owner INTEGER,
    started INTEGER NOT NULL
) STRICT;
-- States: 0 visible, 1 put and not committed, 2 got and not committed.
CREATE TABLE IF NOT EXISTS message (
    id INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL,
    state INTEGER NOT NULL CHECK (state IN (0, 1, 2)),
    unit INTEGER CHECK ((unit IS NULL) = (state = 0)),
    level INTEGER NOT NULL,
    number INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    is_head INTEGER NOT NULL,
    message_id BLOB NOT NULL CHECK (length(message_id) = 24),
    correlation_id BLOB NOT NULL,
    group_id BLOB,
    sequence_number INTEGER NOT NULL,
    offset INTEGER NOT NULL,
    flags INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    persistent INTEGER NOT NULL,
    message_type INTEGER NOT NULL,
    expires INTEGER,
    put_time INTEGER NOT NULL,
    backout_count INTEGER NOT NULL,
    program TEXT NOT NULL,
    length INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS message_place ON message (queue, level, number, ordinal);
CREATE INDEX IF NOT EXISTS message_available ON message (queue, level, number, ordinal) WHERE state = 0;
CREATE INDEX IF NOT EXISTS message_head ON message (queue, level, number, ordinal) WHERE state = 0 AND is_head;
CREATE INDEX IF NOT EXISTS message_in_group ON message (queue, group_id, sequence_number, offset) WHERE group_id NOT NULL;
CREATE INDEX IF NOT EXISTS message_unit ON message (unit) WHERE unit NOT NULL;
CREATE INDEX IF NOT EXISTS message_expires ON message (expires) WHERE expires NOT NULL;
CREATE INDEX IF NOT EXISTS message_by_id ON message (queue, message_id);
CREATE TABLE IF NOT EXISTS content (
    message INTEGER PRIMARY KEY,
    body BLOB NOT NULL
) STRICT;
-- What is known of each group: where its head stands, and whether it is whole.
CREATE TABLE IF NOT EXISTS message_group (
    queue INTEGER NOT NULL,
    id BLOB NOT NULL,
    members INTEGER NOT NULL,
    last INTEGER,
    level INTEGER NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (queue, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS group_whole ON message_group (queue, level, number) WHERE members = last;
INSERT OR IGNORE INTO queue (id, name) VALUES (1, 'BENCH');
INSERT OR IGNORE INTO tally (queue) VALUES (1);

-- name: draw_numbers
UPDATE tally SET depth = depth + :count, next_number = next_number + :count WHERE queue = 1 RETURNING next_number;

-- name: count_down
UPDATE tally SET depth = depth - :count WHERE queue = 1;

-- name: insert_message
INSERT INTO message (id, queue, state, unit, level, number, ordinal, is_head, message_id, correlation_id, group_id,
    sequence_number, offset, flags, priority, persistent, message_type, expires, put_time, backout_count, program,
    length)
VALUES (:number, 1, :state, :unit, 0, :number, 0, :is_head, :message_id, :no_id, :group_id,
    :sequence_number, 0, :flags, 0, 1, 8, NULL, :put_time, 0, 'bench', :length);

-- name: insert_content
INSERT INTO content (message, body) VALUES (:number, :body);

-- name: count_member
INSERT INTO message_group (queue, id, members, last, level, number)
VALUES (1, :group_id, 1, :last, 0, :number)
ON CONFLICT (queue, id) DO UPDATE SET members = members + 1, last = coalesce(excluded.last, last);

-- name: take_first
DELETE FROM message WHERE id IN (
    SELECT id FROM message WHERE queue = 1 AND state = 0 ORDER BY level, number, ordinal LIMIT :count
) RETURNING *;

-- name: take_content
DELETE FROM content WHERE message = ? RETURNING body;

-- name: begin_unit
INSERT INTO unit (kind, owner, started) VALUES ('session', 1, :started) RETURNING id;

-- name: claim_first
UPDATE message SET state = 2, unit = :unit WHERE id IN (
    SELECT id FROM message WHERE queue = 1 AND state = 0 ORDER BY level, number, ordinal LIMIT :count
) RETURNING *;

-- name: first_whole_group
SELECT id FROM message_group WHERE queue = 1 AND members = last ORDER BY level, number LIMIT 1;

-- name: claim_group
UPDATE message SET state = 2, unit = :unit WHERE queue = 1 AND group_id = :group_id AND state = 0 RETURNING *;

-- name: forget_group
DELETE FROM message_group WHERE queue = 1 AND id = :group_id;

-- name: read_content
SELECT body FROM content WHERE message = ?;

-- name: settle_content
DELETE FROM content WHERE message IN (SELECT id FROM message WHERE unit = :unit AND state = 2);

-- name: settle_gets
DELETE FROM message WHERE unit = :unit AND state = 2;

-- name: settle_puts
UPDATE message SET state = 0, unit = NULL WHERE unit = :unit AND state = 1;

-- name: end_unit
DELETE FROM unit WHERE id = :unit;

-- name: forget_everything
DELETE FROM message; DELETE FROM content; DELETE FROM message_group; UPDATE tally SET depth = 0;
