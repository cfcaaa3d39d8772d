-- version 4
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

-- More tables of the schema: definitions other than queues, and the progress of channels.

CREATE TABLE object (
    type text COLLATE "C" NOT NULL CHECK (type <> ''),
    name text COLLATE "C" NOT NULL CHECK (name <> ''),
    attributes text COLLATE "C" NOT NULL CHECK (attributes::json IS NOT NULL),
    altered_at double precision NOT NULL,
    PRIMARY KEY (type, name)
);

CREATE TABLE channel (
    name text COLLATE "C" PRIMARY KEY,
    status text COLLATE "C" NOT NULL
        CHECK (status IN ('inactive', 'starting', 'running', 'retrying', 'paused', 'stopping', 'stopped', 'triggered',
            'waiting')),
    carrier bigint,
    epoch bigint NOT NULL CHECK (epoch >= 0),
    stop text COLLATE "C" NOT NULL CHECK (stop IN ('', 'quiesce', 'force', 'terminate')),
    short_retries bigint NOT NULL CHECK (short_retries >= 0),
    long_retries bigint NOT NULL CHECK (long_retries >= 0),
    reason bigint NOT NULL,
    error text COLLATE "C" NOT NULL,
    changed_at double precision NOT NULL,
    fast bigint NOT NULL DEFAULT 0 CHECK (fast IN (0, 1)),
    reset bigint NOT NULL DEFAULT 0 CHECK (reset IN (0, 1))
) WITH (fillfactor = 50);

CREATE TABLE sent (
    queue bigint NOT NULL,
    channel text COLLATE "C" NOT NULL,
    number bigint NOT NULL CHECK (number >= 0),
    messages bigint NOT NULL CHECK (messages >= 0),
    size bigint NOT NULL CHECK (size >= 0),
    sent_at double precision,
    PRIMARY KEY (queue, channel)
) WITH (fillfactor = 50);

CREATE TABLE received (
    identifier text COLLATE "C" NOT NULL CHECK (identifier <> ''),
    incarnation bigint NOT NULL,
    channel text COLLATE "C" NOT NULL,
    manager text COLLATE "C" NOT NULL,
    number bigint NOT NULL CHECK (number >= 0),
    epoch bigint NOT NULL CHECK (epoch >= 0),
    messages bigint NOT NULL CHECK (messages >= 0),
    digest bytea NOT NULL,
    received_at double precision NOT NULL,
    PRIMARY KEY (identifier, incarnation, channel)
) WITH (fillfactor = 50);

CREATE TABLE body (
    identifier text COLLATE "C" NOT NULL,
    incarnation bigint NOT NULL,
    channel text COLLATE "C" NOT NULL,
    position bigint NOT NULL CHECK (position >= 0),
    batch bytea NOT NULL,
    digest bytea NOT NULL,
    size bigint NOT NULL CHECK (size > 0),
    held bigint NOT NULL CHECK (held BETWEEN 0 AND size),
    PRIMARY KEY (identifier, incarnation, channel, position)
);

CREATE TABLE piece (
    identifier text COLLATE "C" NOT NULL,
    incarnation bigint NOT NULL,
    channel text COLLATE "C" NOT NULL,
    position bigint NOT NULL,
    first bigint NOT NULL CHECK (first >= 0),
    data bytea NOT NULL,
    PRIMARY KEY (identifier, incarnation, channel, position, first)
);

-- The functions of the schema and their sequences, created after the tables.

-- ===== identifying numbers

CREATE SEQUENCE number;

-- Draws a range of numbers and returns the first. Neither the draw nor its lock is part of the transaction: the inner
-- block is undone, which releases the lock, while the value of a sequence stays.
CREATE FUNCTION draw(count bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    first bigint;
BEGIN
    BEGIN
        PERFORM pg_advisory_xact_lock(session_key(-1));
        SELECT CASE WHEN is_called THEN last_value + 1 ELSE last_value END INTO first FROM number;
        PERFORM setval('number', first + count - 1);
        RAISE EXCEPTION USING ERRCODE = 'IO001';
    EXCEPTION WHEN SQLSTATE 'IO001' THEN NULL;
    END;
    RETURN first;
END $$;

-- ===== sessions

-- A number that distinguishes the stores of one database.
CREATE FUNCTION store_number() RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT CAST(CAST(CAST('message' AS regclass) AS oid) AS bigint)
$$;

-- The key of the advisory lock of a process, by its number. Numbers up to 0 are for locks of the whole store.
CREATE FUNCTION session_key(process bigint) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT hashtextextended('inorder ' || store_number(), process)
$$;

-- ===== queues

-- Locks queues in the order that all verbs use. On a queue that keeps no order, verbs that were together have then
-- ended and new ones wait, so their counts are added to its row. Each statement here sees the state after the wait.
CREATE FUNCTION lock_queues(numbers bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    one bigint;
    is_unordered boolean;
BEGIN
    FOR one IN SELECT number FROM unnest(numbers) AS given(number) ORDER BY number LOOP
        SELECT unordered = 1 INTO is_unordered FROM tally
        WHERE queue = one ORDER BY serial DESC LIMIT 1 FOR NO KEY UPDATE;
        CONTINUE WHEN is_unordered IS NOT TRUE;
        PERFORM pg_advisory_xact_lock(session_key(one));
        WITH gone AS (DELETE FROM slot WHERE queue = one RETURNING slot.depth, slot.arrived)
        UPDATE tally SET depth = tally.depth + counted.depth, arrived = tally.arrived + counted.arrived,
            serial = tally.serial + 1
        FROM (SELECT sum(depth) AS depth, sum(arrived) AS arrived FROM gone HAVING count(*) > 0) AS counted
        WHERE queue = one;
    END LOOP;
END $$;

-- The numbers of places on queues that keep no order. One sequence serves all, because each queue takes numbers above
-- its own.
CREATE SEQUENCE place;

-- The rows with the counts in slots and the numbers drawn from the sequence `place`, all of which count as drawn on a
-- queue that keeps no order. If few reserved numbers are left, it reports none, so that the next verb reserves more.
CREATE VIEW counted AS
SELECT
    t.queue, t.serial, t.attention, t.revision, t.unordered, greatest(t.counter, p.drawn) AS counter,
    CASE
        WHEN t.reserved >= greatest(t.counter, p.drawn) + 100 THEN t.reserved
        WHEN p.drawn IS NULL THEN t.reserved
        ELSE greatest(t.counter, p.drawn)
    END AS reserved,
    t.depth + coalesce(s.depth, 0) AS depth, t.arrived + coalesce(s.arrived, 0) AS arrived
FROM tally t
LEFT JOIN LATERAL (SELECT pg_sequence_last_value('place') AS drawn WHERE t.unordered = 1) AS p ON true
LEFT JOIN LATERAL (
    SELECT CAST(sum(slot.depth) AS bigint) AS depth, CAST(sum(slot.arrived) AS bigint) AS arrived
    FROM slot WHERE slot.queue = t.queue
) AS s ON true;

-- Draws a range of them above a queue's counter and returns the first, as `draw numbers` does.
CREATE FUNCTION draw_places(above bigint, count bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    first bigint;
BEGIN
    BEGIN
        PERFORM pg_advisory_xact_lock(session_key(-3));
        SELECT greatest(above, CASE WHEN is_called THEN last_value ELSE 0 END) + 1 INTO first FROM place;
        PERFORM setval('place', first + count - 1);
        RAISE EXCEPTION USING ERRCODE = 'IO001';
    EXCEPTION WHEN SQLSTATE 'IO001' THEN NULL;
    END;
    RETURN first;
END $$;

-- A text that differs after each change of a queue.
CREATE FUNCTION change_of(number bigint) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT concat_ws(' ', t.xmin, (SELECT string_agg(CAST(s.xmin AS text), ' ' ORDER BY s.session) FROM slot s WHERE s.queue = t.queue))
    FROM tally t WHERE t.queue = number
$$;

-- Notifies changes of a queue on a channel for a time; returns a text that differs after each change. A verb that
-- changes the queue without a notification has it locked, or runs together with others on it, and has not seen the
-- bit `HEARD` (512, sql/attention.py). So the bit is set with the queue locked: a verb that did not see it has ended,
-- and the look that follows sees its changes. If the bit is already set, no verb clears it while the row is shared,
-- and later it finds the listener.
CREATE FUNCTION listen(number bigint, called text, seconds double precision) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO listener (queue, channel, until)
    VALUES (number, called, clock_timestamp() + seconds * interval '1 second')
    ON CONFLICT (queue, channel) DO UPDATE SET until = excluded.until;
    BEGIN
        PERFORM FROM tally WHERE queue = number AND attention & 512 <> 0 FOR SHARE;
        IF NOT FOUND THEN
            RAISE EXCEPTION USING ERRCODE = 'IO001';
        END IF;
    EXCEPTION WHEN SQLSTATE 'IO001' THEN -- and what was locked is free again
        PERFORM lock_queues(ARRAY[number]);
        UPDATE tally SET attention = attention | 512 WHERE queue = number;
    END;
    RETURN change_of(number);
END $$;

-- ===== guarded changes

-- The changed rows are those that were read before, or the verb fails.
CREATE FUNCTION expect(changed bigint, expected bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF changed <> expected THEN
        RAISE EXCEPTION 'of % rows that were read % are in the state that they had', expected, changed
        USING ERRCODE = 'data_corrupted';
    END IF;
END $$;

-- ===== functions of SQLite, for shared statements

-- The values of a JSON array of numbers, with their positions from 0 on.
CREATE FUNCTION numbers_in(numbers text) RETURNS TABLE (value bigint, key bigint) LANGUAGE sql IMMUTABLE AS $$
    SELECT CAST(one.value AS bigint), one.position - 1
    FROM json_array_elements_text(CAST(numbers AS json)) WITH ORDINALITY AS one(value, position)
$$;

-- An element of a descriptor, as JSON, by a path like $[3]. The properties, on a separate line, are cut off and not
-- parsed: a text in them may contain a NUL, which PostgreSQL refuses when it converts JSON to text, also with ->; other
-- ways that leave the elements unchanged take longer.
CREATE FUNCTION element(array_ text, path text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN path = '$[15]' THEN nullif(left(split_part(array_, E',\n', 2), -1), '')
        WHEN strpos(array_, '\u0000') > 0 THEN (
            SELECT CAST(one.value AS text) FROM json_array_elements(
                CAST(split_part(array_, E',\n', 1) || CASE WHEN strpos(array_, E',\n') > 0 THEN ']' ELSE '' END AS json)
            ) WITH ORDINALITY AS one(value, nth)
            WHERE one.nth = CAST(substr(path, 3, length(path) - 3) AS integer) + 1
        )
        ELSE CAST(
            CAST(split_part(array_, E',\n', 1) || CASE WHEN strpos(array_, E',\n') > 0 THEN ']' ELSE '' END AS json)
            -> CAST(substr(path, 3, length(path) - 3) AS integer) AS text
        )
    END
$$;

CREATE OPERATOR -> (LEFTARG = text, RIGHTARG = text, FUNCTION = element);

-- Whether a message with these flags ends its group or its message in segments: rules.grouping.is_end.
CREATE FUNCTION is_end(flags integer) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN flags & 24 <> 0 THEN flags & 16 <> 0 AND (flags & 4 <> 0 OR flags & 6 = 0) ELSE flags & 4 <> 0 END
$$;

-- The part of the schema for groups of messages, created after the tables and functions.

-- Updates `gathering` and `head` after a statement has changed members of groups, once for all rows. It does not run
-- while the setting inorder.groups is off, and its own updates of `head` do not call it again.
CREATE FUNCTION members_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    queues bigint[];
    group_ids bytea[];
    counts integer[];                     -- how many members more are available
    ends_change boolean[];                -- whether among those that came or went one ends its group
    noted integer;
    known integer := 0;
BEGIN
    IF TG_OP = 'INSERT' THEN
        SELECT array_agg(c.queue), array_agg(c.group_id), array_agg(c.more), array_agg(c.ends)
        INTO queues, group_ids, counts, ends_change
        FROM (
            SELECT queue, group_id, count(*) AS more, bool_or(flags & 16 <> 0) AS ends
            FROM after WHERE group_id IS NOT NULL AND available GROUP BY queue, group_id
        ) AS c;
    ELSIF TG_OP = 'DELETE' THEN
        SELECT array_agg(c.queue), array_agg(c.group_id), array_agg(c.more), array_agg(c.ends)
        INTO queues, group_ids, counts, ends_change
        FROM (
            SELECT queue, group_id, -count(*) AS more, bool_or(flags & 16 <> 0) AS ends
            FROM before WHERE group_id IS NOT NULL AND available GROUP BY queue, group_id
        ) AS c;
        IF EXISTS (SELECT 1 FROM entered) THEN  -- who is inside a group goes with its end
            UPDATE entered SET reader = NULL
            FROM (SELECT DISTINCT queue, group_id FROM before WHERE group_id IS NOT NULL AND is_end(flags) AND state <> 1) AS e
            WHERE entered.queue = e.queue AND entered.group_id = e.group_id;
        END IF;
    ELSE
        SELECT array_agg(c.queue), array_agg(c.group_id), array_agg(c.more), array_agg(c.ends)
        INTO queues, group_ids, counts, ends_change
        FROM (
            SELECT r.queue, r.group_id, sum(r.more) AS more, bool_or(r.ends) AS ends
            FROM (  -- those that came or went: without rows that were available and still are
                SELECT b.queue, b.group_id, b.ends, sum(b.more) AS more
                FROM (
                    SELECT id, queue, group_id, flags & 16 <> 0 AS ends, 1 AS more
                    FROM after WHERE group_id IS NOT NULL AND available
                    UNION ALL
                    SELECT id, queue, group_id, flags & 16 <> 0, -1
                    FROM before WHERE group_id IS NOT NULL AND available
                ) AS b
                GROUP BY b.id, b.queue, b.group_id, b.ends HAVING sum(b.more) <> 0
            ) AS r
            GROUP BY r.queue, r.group_id
        ) AS c;
    END IF;
    IF queues IS NULL THEN
        RETURN NULL;
    END IF;
    IF TG_OP <> 'INSERT' THEN
        DELETE FROM gathering g USING unnest(queues, group_ids, counts) AS c(queue, group_id, more)
        WHERE g.queue = c.queue AND g.group_id = c.group_id AND g.available + c.more = 0;
        GET DIAGNOSTICS known = ROW_COUNT;
    END IF;
    IF known < cardinality(queues) THEN
        UPDATE gathering g SET
            available = g.available + c.more,
            last = CASE WHEN c.ends THEN (
                SELECT min(m.sequence_number) FROM message m
                WHERE m.queue = c.queue AND m.group_id = c.group_id AND m.flags & 16 <> 0 AND m.available
            ) ELSE g.last END
        FROM unnest(queues, group_ids, counts, ends_change) AS c(queue, group_id, more, ends)
        WHERE g.queue = c.queue AND g.group_id = c.group_id;
        GET DIAGNOSTICS noted = ROW_COUNT;
        known := known + noted;
    END IF;
    IF known < cardinality(queues) THEN
        INSERT INTO gathering (queue, group_id, available, last)
        SELECT c.queue, c.group_id, c.more, (
            SELECT min(m.sequence_number) FROM message m
            WHERE m.queue = c.queue AND m.group_id = c.group_id AND m.flags & 16 <> 0 AND m.available
        )
        FROM unnest(queues, group_ids, counts) AS c(queue, group_id, more)
        WHERE c.more > 0 ON CONFLICT DO NOTHING;
    END IF;
    UPDATE message m SET head = w.head
    FROM (
        SELECT c.queue, c.group_id, CASE WHEN g.available >= g.last THEN 2 ELSE 1 END AS head
        FROM unnest(queues, group_ids) AS c(queue, group_id)
        LEFT JOIN gathering g ON g.queue = c.queue AND g.group_id = c.group_id
    ) AS w
    WHERE m.queue = w.queue AND m.group_id = w.group_id AND m.sequence_number = 1 AND m."offset" = 0
        AND m.flags & 24 <> 0 AND m.head <> w.head;
    RETURN NULL;
END $$;

CREATE TRIGGER members_come AFTER INSERT ON message REFERENCING NEW TABLE AS after
FOR EACH STATEMENT WHEN (current_setting('inorder.groups', true) IS DISTINCT FROM 'off')
EXECUTE FUNCTION members_change();

CREATE TRIGGER members_move AFTER UPDATE ON message REFERENCING OLD TABLE AS before NEW TABLE AS after
FOR EACH STATEMENT WHEN (current_setting('inorder.groups', true) IS DISTINCT FROM 'off' AND pg_trigger_depth() = 0)
EXECUTE FUNCTION members_change();

CREATE TRIGGER members_go AFTER DELETE ON message REFERENCING OLD TABLE AS before
FOR EACH STATEMENT WHEN (current_setting('inorder.groups', true) IS DISTINCT FROM 'off')
EXECUTE FUNCTION members_change();

-- The part of the schema for the fronts of queues (fronts.py), created after the tables.

-- The levels of one kind of head in order, with the front of each. The server can inline this function.
CREATE FUNCTION levels_of(number bigint, head integer) RETURNS TABLE (rank integer, front bigint) LANGUAGE sql STABLE AS $$
    SELECT level.rank, coalesce(t.fronts[10 * $2 + level.rank + 10], 0)
    FROM (SELECT fronts FROM tally WHERE queue = $1 ORDER BY serial DESC LIMIT 1) AS t,
        generate_series(-9, 0) AS level(rank)
$$;

-- Moves a front back when a message before it becomes available. It runs while inorder.fronts is on.
CREATE FUNCTION fronts_move_back() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    first record;
BEGIN
    FOR first IN
        SELECT queue, 10 * head + rank + 10 AS nth, min(number) AS number FROM after
        WHERE available GROUP BY queue, head, rank ORDER BY queue
    LOOP
        UPDATE tally SET fronts[first.nth] = first.number
        WHERE ctid = (SELECT ctid FROM tally WHERE queue = first.queue ORDER BY serial DESC LIMIT 1)
            AND fronts[first.nth] > first.number;
    END LOOP;
    RETURN NULL;
END $$;

CREATE TRIGGER fronts_move_back AFTER UPDATE ON message REFERENCING NEW TABLE AS after
FOR EACH STATEMENT WHEN (current_setting('inorder.fronts', true) = 'on')
EXECUTE FUNCTION fronts_move_back();
