-- The tables of a store, version 4. They have the names and columns of sqlite/schema.sql, which explains them; the
-- comments here are about PostgreSQL. Everything is in one schema, which only the session's search_path names, so a
-- database may have several stores.
--
-- Flags are numbers, 0 or 1, if Python reads and writes them, and booleans if they are made from other columns. In
-- `message` wide columns come first, to avoid padding. References are not enforced, but checked (checks.sql), because
-- each would cost time for every message. Functions and triggers are in functions.sql, groups.sql and fronts.sql.

CREATE TABLE store (
    version integer NOT NULL,             -- of this schema
    made_by text NOT NULL CHECK (made_by = 'inorder')
);

CREATE TABLE manager (
    id smallint PRIMARY KEY CHECK (id = 1),
    attributes text COLLATE "C" NOT NULL CHECK (attributes::json IS NOT NULL),
    revision bigint NOT NULL DEFAULT 1,
    boot text COLLATE "C" NOT NULL DEFAULT '',
    identifier text COLLATE "C" NOT NULL DEFAULT replace(gen_random_uuid()::text, '-', ''),
    created_at double precision NOT NULL DEFAULT 0
);

CREATE TABLE definition (
    id bigint PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    type text COLLATE "C" NOT NULL
        CHECK (type IN ('local', 'alias', 'model', 'remote', 'store_and_forward', 'home_server')),
    attributes text COLLATE "C" NOT NULL CHECK (attributes::json IS NOT NULL),
    created_at double precision NOT NULL,
    altered_at double precision NOT NULL
);

-- A row changes with every verb, but not in an indexed column: with room on its page the change stays there (HOT), and
-- later ones clear it away. A verb that changes a queue has its row locked, or runs together with others on a queue that
-- keeps no order (backend.py). There is no row 0: identifying numbers come from the sequence `number`. The check
-- `queue counters` has the conditions on its columns, for the reason given at `message`.
--
-- While an open transaction prevents vacuum, replaced versions of the row slow down its search (fronts.py). So every 64
-- messages the row gets another serial, and the search begins at the highest one. A key would search all versions; a
-- check ensures that each queue has one row.
CREATE TABLE tally (
    queue bigint NOT NULL,
    serial bigint NOT NULL DEFAULT 0,
    attention integer NOT NULL DEFAULT 0,
    revision bigint NOT NULL DEFAULT 1,
    counter bigint NOT NULL DEFAULT 0,
    reserved bigint NOT NULL DEFAULT 0,
    depth bigint NOT NULL DEFAULT 0,
    arrived bigint NOT NULL DEFAULT 0,
    unordered smallint NOT NULL DEFAULT 0, -- 1 or 0, as its definition says
    fronts int8[]                         -- numbers below which no message is available: fronts.py
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0);

CREATE INDEX tally_newest ON tally (queue, serial DESC);

-- Additions to a queue's row by verbs that run together: each session has its own slot, so that none waits. A verb that
-- locks the queue clears them away.
CREATE TABLE slot (
    queue bigint NOT NULL,
    session integer NOT NULL,             -- the number of the server's process
    depth bigint NOT NULL,
    arrived bigint NOT NULL,
    PRIMARY KEY (queue, session)
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0);

CREATE TABLE process (
    id bigint PRIMARY KEY
);

CREATE TABLE connection (
    id bigint PRIMARY KEY,
    process bigint NOT NULL,
    "user" text COLLATE "C" NOT NULL,
    program text COLLATE "C" NOT NULL
);

CREATE INDEX connection_process ON connection (process);

CREATE TABLE handle (
    id bigint PRIMARY KEY,
    connection bigint NOT NULL,
    queue bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    input smallint NOT NULL CHECK (input IN (0, 1)),
    output smallint NOT NULL CHECK (output IN (0, 1)),
    co_op smallint NOT NULL CHECK (co_op IN (0, 1)),
    exclusive smallint NOT NULL CHECK (exclusive IN (0, 1)),
    made_temporary smallint NOT NULL CHECK (made_temporary IN (0, 1))
);

CREATE INDEX handle_connection ON handle (connection);
CREATE INDEX handle_queue ON handle (queue);
CREATE INDEX handle_name ON handle (name);

-- With room for the unit of work of a connection, whose row is reused again and again.
CREATE TABLE unit (
    id bigint PRIMARY KEY,
    kind text COLLATE "C" NOT NULL CHECK (kind IN ('session', 'prepared', 'confirm', 'lock', 'claim', 'staging', 'lease')),
    name text COLLATE "C" NOT NULL,
    queue bigint CHECK ((queue IS NOT NULL) = (kind IN ('confirm', 'lock', 'claim', 'staging'))),
    connection bigint CHECK ((connection IS NOT NULL) = (kind = 'session')),
    "user" text COLLATE "C" NOT NULL,
    program text COLLATE "C" NOT NULL,
    started_at double precision NOT NULL,
    lease_ends_at double precision CHECK (lease_ends_at IS NULL OR kind = 'lock')
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0);

CREATE INDEX unit_lease ON unit (queue, lease_ends_at) WHERE lease_ends_at IS NOT NULL;
CREATE UNIQUE INDEX unit_session ON unit (connection) WHERE kind = 'session';
CREATE UNIQUE INDEX unit_leased ON unit (name) WHERE kind = 'lease';
CREATE UNIQUE INDEX unit_prepared ON unit (name) WHERE kind = 'prepared';
CREATE UNIQUE INDEX unit_named ON unit (queue, kind, name) WHERE queue IS NOT NULL;
CREATE UNIQUE INDEX unit_staging ON unit (name) WHERE kind = 'staging';

-- The check `messages` (checks.sql) has the conditions on its columns: the server would parse each constraint, as it
-- does each generated column, again for every statement. Each change of a state changes an index, so it never stays on its
-- page, and free room there would be wasted. Vacuum runs by the number of dead rows, not by their share, because dead
-- rows at the front of a long queue slow down every get.
CREATE TABLE message (
    id bigint PRIMARY KEY,
    queue bigint NOT NULL,
    number bigint,
    unit bigint,
    lock bigint,
    locked_handle bigint,
    uid_number bigint,
    expires_at double precision,
    due_at double precision,
    visible_at double precision,
    locked_at double precision,
    co_op_marked_at double precision,
    ordinal integer NOT NULL DEFAULT 0,
    sequence_number integer NOT NULL,
    "offset" integer NOT NULL,
    length integer NOT NULL,
    flags integer NOT NULL,
    original_length integer NOT NULL,
    backouts integer NOT NULL DEFAULT 0,
    claimed integer,
    reports integer,
    state smallint NOT NULL,
    rank smallint NOT NULL,
    head smallint NOT NULL,
    priority smallint NOT NULL,
    persistent smallint NOT NULL,
    away smallint NOT NULL DEFAULT 0,
    forgotten smallint NOT NULL DEFAULT 0,
    available boolean GENERATED ALWAYS AS (state = 2 AND due_at IS NULL AND number IS NOT NULL) STORED,
    group_id bytea,
    message_id bytea,
    correlation_id bytea,
    uid_origin text COLLATE "C",
    lock_confirm text COLLATE "C",
    put_by text COLLATE "C"
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);

-- `message.holder` is this function of the row; other stores have a column.
CREATE FUNCTION holder(message) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN $1.number IS NULL OR ($1.state = 2 AND $1.due_at IS NULL) THEN NULL
        WHEN $1.unit IS NOT NULL THEN 2 * $1.unit + CASE WHEN $1.state = 1 THEN 1 ELSE 0 END
        WHEN $1.locked_handle IS NOT NULL THEN -$1.locked_handle
        WHEN $1.lock IS NOT NULL THEN 2 * $1.lock
        ELSE 0
    END
$$;

CREATE UNIQUE INDEX message_place ON message (queue, head, rank, number, ordinal) WHERE available;
CREATE UNIQUE INDEX message_held ON message (queue, holder(message), head, rank, number, ordinal)
    WHERE NOT available AND number IS NOT NULL;
CREATE INDEX message_member ON message (queue, group_id, sequence_number, "offset", rank, number, ordinal)
    WHERE group_id IS NOT NULL;
CREATE INDEX message_taken_member ON message (queue, group_id, unit)
    WHERE group_id IS NOT NULL AND state >= 4 AND claimed IS NULL;
CREATE INDEX message_end ON message (queue, group_id, sequence_number) WHERE group_id IS NOT NULL AND flags & 16 <> 0;
CREATE INDEX message_message_id ON message (queue, message_id, rank, number, ordinal) WHERE message_id IS NOT NULL;
CREATE INDEX message_correlation_id ON message (queue, correlation_id, rank, number, ordinal)
    WHERE correlation_id IS NOT NULL;
CREATE INDEX message_own_priority ON message (queue, priority, rank, number, ordinal) WHERE priority <> -rank;
CREATE UNIQUE INDEX message_uid ON message (queue, uid_number, uid_origin) WHERE uid_number IS NOT NULL;
CREATE UNIQUE INDEX message_unit ON message (unit, queue, state, claimed) WHERE unit IS NOT NULL;
CREATE INDEX message_lock ON message (lock) WHERE lock IS NOT NULL;
CREATE INDEX message_lock_confirm ON message (queue, lock_confirm) WHERE lock_confirm IS NOT NULL;
CREATE INDEX message_locked_handle ON message (locked_handle) WHERE locked_handle IS NOT NULL;
CREATE INDEX message_expiry ON message (queue, expires_at)
    WHERE expires_at IS NOT NULL AND away = 0 AND claimed IS NULL;
CREATE INDEX message_due ON message (queue, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX message_co_op ON message (queue, co_op_marked_at) WHERE co_op_marked_at IS NOT NULL;
CREATE INDEX message_forgotten ON message (queue) WHERE forgotten = 1;
CREATE INDEX message_nonpersistent ON message (queue) WHERE persistent = 0;
CREATE INDEX message_reports ON message (queue, unit) WHERE reports IS NOT NULL;

-- A row is written once and removed once; a short body is stored in it, a long one in pieces elsewhere.
CREATE TABLE content (
    id bigint PRIMARY KEY,
    put_at double precision NOT NULL,
    expiry double precision,
    delay double precision,
    descriptor text COLLATE "C" NOT NULL,
    crc bigint NOT NULL,
    body bytea NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);

-- Bodies are not compressed, because calls read only the beginning, and compression would cost the caller time.
ALTER TABLE content ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE account (
    queue bigint NOT NULL,
    application text COLLATE "C" NOT NULL,
    "user" text COLLATE "C" NOT NULL,
    program text COLLATE "C" NOT NULL,
    epoch bigint NOT NULL CHECK (epoch > 0),
    settled bigint NOT NULL CHECK (settled >= 0),
    delivered bigint NOT NULL CHECK (delivered >= 0),
    state text COLLATE "C" NOT NULL CHECK (state::json IS NOT NULL),
    PRIMARY KEY (queue, application)
) WITH (fillfactor = 50);

CREATE TABLE claim (
    unit bigint PRIMARY KEY,
    queue bigint NOT NULL,
    application text COLLATE "C" NOT NULL,
    number bigint NOT NULL CHECK (number > 0),
    messages bigint NOT NULL CHECK (messages > 0),
    size bigint NOT NULL CHECK (size >= 0),
    state text COLLATE "C" NOT NULL CHECK (state::json IS NOT NULL),
    more smallint NOT NULL CHECK (more IN (0, 1)),
    planned smallint NOT NULL CHECK (planned IN (0, 1)),
    UNIQUE (queue, application, number)
);

CREATE TABLE leftover (
    id bigint PRIMARY KEY
);

CREATE TABLE staging (
    unit bigint PRIMARY KEY,
    expires_at double precision NOT NULL,
    given bigint NOT NULL CHECK (given >= 0),
    messages bigint NOT NULL CHECK (messages >= given),
    size bigint NOT NULL CHECK (size >= 0),
    has_keys smallint NOT NULL CHECK (has_keys IN (0, 1)),
    has_order smallint NOT NULL CHECK (has_order IN (0, 1)),
    has_numbers smallint NOT NULL CHECK (has_numbers IN (0, 1)),
    has_reports smallint NOT NULL CHECK (has_reports IN (0, 1))
);

CREATE INDEX staging_expiry ON staging (expires_at);

CREATE TABLE staged (
    unit bigint NOT NULL,
    "row" bigint NOT NULL CHECK ("row" >= 0),
    whole bigint NOT NULL CHECK (whole BETWEEN 0 AND "row"),
    id bigint NOT NULL,
    priority smallint NOT NULL CHECK (priority >= 0),
    persistent smallint NOT NULL CHECK (persistent IN (0, 1)),
    message_id bytea CHECK (length(message_id) = 24),
    correlation_id bytea CHECK (length(correlation_id) = 24),
    expiry double precision,
    delay double precision NOT NULL,
    group_id bytea CHECK (length(group_id) = 24),
    sequence_number integer NOT NULL CHECK (sequence_number > 0),
    "offset" integer NOT NULL CHECK ("offset" >= 0),
    length integer NOT NULL CHECK (length >= 0),
    flags integer NOT NULL,
    original_length integer NOT NULL,
    reports integer,
    group_key bytea CHECK (group_key IS NULL OR group_id IS NULL), -- as keys.py encodes it
    order_key bytea,                                               -- the same
    PRIMARY KEY (unit, "row")
);

CREATE TABLE lease (
    unit bigint PRIMARY KEY,
    ends_at double precision NOT NULL,
    seconds double precision NOT NULL CHECK (seconds > 0),
    calls bigint NOT NULL CHECK (calls >= 0)
);

CREATE TABLE attempt (
    key text COLLATE "C" PRIMARY KEY CHECK (key <> ''),
    level double precision NOT NULL CHECK (level >= 0),
    at double precision NOT NULL,
    empty_at double precision NOT NULL
);

CREATE INDEX attempt_empty ON attempt (empty_at);

CREATE TABLE act (
    id bigint PRIMARY KEY,
    at double precision NOT NULL,
    "user" text COLLATE "C" NOT NULL,
    address text COLLATE "C" NOT NULL,
    act text COLLATE "C" NOT NULL CHECK (act <> ''),
    queue text COLLATE "C" NOT NULL,
    outcome text COLLATE "C" NOT NULL CHECK (outcome IN ('begun', 'done', 'failed')),
    messages bigint CHECK (messages >= 0),
    error text COLLATE "C" NOT NULL
);

CREATE INDEX act_at ON act (at, id);

CREATE TABLE sample (
    seconds bigint NOT NULL,
    slot bigint NOT NULL
        CHECK (slot BETWEEN 0 AND CASE seconds WHEN 60 THEN 59 WHEN 900 THEN 95 WHEN 7200 THEN 83 ELSE -1 END),
    at double precision NOT NULL,
    queues text COLLATE "C" NOT NULL CHECK (queues::json IS NOT NULL),
    PRIMARY KEY (seconds, slot)
);

CREATE TABLE ledger (
    id bigint PRIMARY KEY,
    queue bigint NOT NULL,
    application text COLLATE "C" NOT NULL,
    query text COLLATE "C" NOT NULL,
    batch text COLLATE "C" NOT NULL CHECK (batch <> ''),
    messages bigint NOT NULL CHECK (messages >= 0),
    committed_at double precision NOT NULL
);

CREATE UNIQUE INDEX ledger_key ON ledger (queue, application, query, batch);
CREATE INDEX ledger_age ON ledger (queue, application, query, id);

CREATE TABLE putkey (
    queue bigint NOT NULL,
    target text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL CHECK (key <> ''),
    unit bigint,
    put_at double precision NOT NULL,
    expires_at double precision NOT NULL,
    message_id bytea NOT NULL CHECK (length(message_id) = 24),
    uid_origin text COLLATE "C" NOT NULL,
    uid_number bigint NOT NULL,
    met_at double precision,
    PRIMARY KEY (queue, target, key)
);

CREATE INDEX putkey_unit ON putkey (unit) WHERE unit IS NOT NULL;
CREATE INDEX putkey_expiry ON putkey (expires_at) WHERE unit IS NULL;

CREATE TABLE triggered (
    queue bigint PRIMARY KEY,
    at double precision NOT NULL
);

CREATE TABLE dropped (
    queue bigint PRIMARY KEY,
    messages bigint NOT NULL CHECK (messages > 0),
    last_at double precision NOT NULL,
    reason bigint NOT NULL
);

CREATE TABLE globalunit (
    name text COLLATE "C" PRIMARY KEY,
    connection bigint NOT NULL,
    "user" text COLLATE "C" NOT NULL,
    program text COLLATE "C" NOT NULL,
    started_at double precision NOT NULL,
    branches text COLLATE "C" NOT NULL,
    outcome text COLLATE "C" NOT NULL CHECK (outcome IN ('', 'commit', 'back_out'))
);

CREATE TABLE mark (
    message bigint NOT NULL,
    handle bigint NOT NULL,
    PRIMARY KEY (message, handle)
);

CREATE INDEX mark_handle ON mark (handle);

CREATE TABLE entered (
    id bigint PRIMARY KEY,
    queue bigint NOT NULL,
    group_id bytea NOT NULL,
    reader text COLLATE "C",
    entered_in bigint,
    left_in bigint,
    entry text COLLATE "C" NOT NULL
);

CREATE INDEX entered_group ON entered (queue, group_id);
CREATE INDEX entered_reader ON entered (reader, queue, left_in) WHERE reader IS NOT NULL;
CREATE INDEX entered_left ON entered (left_in) WHERE left_in IS NOT NULL;

-- No waiting call outlives the server.
CREATE UNLOGGED TABLE wait (
    connection bigint PRIMARY KEY,
    queue bigint NOT NULL,
    pending text COLLATE "C" CHECK (pending IS NULL OR pending::json IS NOT NULL),
    withheld smallint NOT NULL CHECK (withheld IN (0, 1)),
    levels text COLLATE "C" CHECK (levels IS NULL OR levels::json IS NOT NULL)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

CREATE INDEX wait_queue ON wait (queue);

-- A row changes with each member, in no indexed column.
CREATE TABLE gathering (
    queue bigint NOT NULL,
    available integer NOT NULL CHECK (available >= 0),
    last integer,
    group_id bytea NOT NULL,
    PRIMARY KEY (queue, group_id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0);

-- The processes that listen for changes of a queue, each on its own channel, and for how long at least.
CREATE UNLOGGED TABLE listener (
    queue bigint NOT NULL,
    channel text COLLATE "C" NOT NULL,
    until timestamptz NOT NULL,
    PRIMARY KEY (queue, channel)
) WITH (fillfactor = 50);

-- One row as long as no committed transaction may be lost: it is empty after a crash of the server, and on a standby
-- that takes over. Then used numbers may be missing from the tables, and counters jump over all reserved ones.
CREATE UNLOGGED TABLE run (
    id smallint PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    stopped smallint NOT NULL DEFAULT 0 CHECK (stopped IN (0, 1))
);
