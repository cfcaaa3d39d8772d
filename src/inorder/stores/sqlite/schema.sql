-- The tables of a store, version 11. Each invariant of the rules is also a CHECK or a unique index here.
--
-- Identifying numbers (of messages, units, connections, handles, lock ids) come from one counter, `tally` row 0, and
-- are used only once. Times are seconds since 1970. References are not enforced at each statement; `inorder` checks
-- them with PRAGMA foreign_key_check where it checks a store.

CREATE TABLE manager (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    attributes TEXT NOT NULL CHECK (json_valid(attributes)),
    revision INTEGER NOT NULL DEFAULT 1,  -- grows with every change of a definition: processes then read them again
    boot TEXT NOT NULL DEFAULT '',        -- the boot id of the machine at the last start of the store
    identifier TEXT NOT NULL DEFAULT (lower(hex(randomblob(16)))), -- of this store; a backup has the same
    created_at REAL NOT NULL DEFAULT 0    -- set by the first start
) STRICT;

-- Queues, aliases and models. The id belongs to one queue: a later one of its name has another (B-41).
CREATE TABLE definition (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    type TEXT NOT NULL
        CHECK (type IN ('local', 'alias', 'model', 'remote', 'store_and_forward', 'home_server')),
    attributes TEXT NOT NULL CHECK (json_valid(attributes)),
    created_at REAL NOT NULL,
    altered_at REAL NOT NULL
) STRICT;

-- Everything that changes with every message, on one page, and everything that most verbs read besides messages. Row 0
-- counts identifying numbers; a queue's row counts the numbers of places (B-2) and its depth (R4.6). Numbers up to
-- `reserved` may already have been used.
CREATE TABLE tally (
    queue INTEGER PRIMARY KEY,
    -- Conditions that every verb must check, as bits: sql/attention.py. A bit is set with the first row of its kind, and
    -- stays as long as such a row exists.
    attention INTEGER NOT NULL DEFAULT 0,
    revision INTEGER NOT NULL DEFAULT 1,  -- of the last change of the definitions that calls on the queue use
    counter INTEGER NOT NULL DEFAULT 0 CHECK (counter >= 0),
    reserved INTEGER NOT NULL DEFAULT 0,
    depth INTEGER NOT NULL DEFAULT 0 CHECK (depth >= 0),
    arrived INTEGER NOT NULL DEFAULT 0 CHECK (arrived >= depth), -- messages ever put here
    CHECK (counter <= reserved)
) STRICT;

-- Processes that have the store open. A process is dead if no file lock holds its number.
CREATE TABLE process (
    id INTEGER PRIMARY KEY
) STRICT;

CREATE TABLE connection (
    id INTEGER PRIMARY KEY,
    process INTEGER NOT NULL REFERENCES process,
    user TEXT NOT NULL,
    program TEXT NOT NULL
) STRICT;

CREATE INDEX connection_process ON connection (process);

CREATE TABLE handle (
    id INTEGER PRIMARY KEY,
    connection INTEGER NOT NULL REFERENCES connection,
    queue INTEGER NOT NULL,               -- no reference: a queue may be deleted under its handles (2052)
    name TEXT NOT NULL,
    input INTEGER NOT NULL CHECK (input IN (0, 1)),
    output INTEGER NOT NULL CHECK (output IN (0, 1)),
    co_op INTEGER NOT NULL CHECK (co_op IN (0, 1)),
    exclusive INTEGER NOT NULL CHECK (exclusive IN (0, 1)),
    made_temporary INTEGER NOT NULL CHECK (made_temporary IN (0, 1))
) STRICT;

CREATE INDEX handle_connection ON handle (connection);
CREATE INDEX handle_queue ON handle (queue);
CREATE INDEX handle_name ON handle (name);

-- Everything that will later be confirmed or undone. A session unit ends with its connection; the others outlive it.
CREATE TABLE unit (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('session', 'prepared', 'confirm', 'lock', 'claim', 'staging', 'lease')),
    name TEXT NOT NULL,
    queue INTEGER CHECK ((queue IS NOT NULL) = (kind IN ('confirm', 'lock', 'claim', 'staging'))),
    connection INTEGER REFERENCES connection CHECK ((connection IS NOT NULL) = (kind = 'session')),
    user TEXT NOT NULL,
    program TEXT NOT NULL,
    started_at REAL NOT NULL,
    lease_ends_at REAL CHECK (lease_ends_at IS NULL OR kind = 'lock')  -- the lock id ends by itself then (A-19)
) STRICT;

CREATE INDEX unit_lease ON unit (queue, lease_ends_at) WHERE lease_ends_at IS NOT NULL;
CREATE UNIQUE INDEX unit_session ON unit (connection) WHERE kind = 'session';                -- one each (R5.1)
CREATE UNIQUE INDEX unit_leased ON unit (name) WHERE kind = 'lease';
CREATE UNIQUE INDEX unit_prepared ON unit (name) WHERE kind = 'prepared';
CREATE UNIQUE INDEX unit_named ON unit (queue, kind, name) WHERE queue IS NOT NULL;          -- per queue (A-15)
CREATE UNIQUE INDEX unit_staging ON unit (name) WHERE kind = 'staging';                      -- in the store (spark 3)

-- A message on a queue: the narrow row that the search and the rules need. Its text is in `content`. Its CHECKs use OR
-- in place of IN, because SQLite would fill a table for the list at each row.
CREATE TABLE message (
    id INTEGER PRIMARY KEY,               -- its token, and for most messages its unique id
    queue INTEGER NOT NULL REFERENCES definition,
    state INTEGER NOT NULL CHECK (state BETWEEN 1 AND 5),        -- rules.lifecycle.State
    rank INTEGER NOT NULL CHECK (rank BETWEEN -9 AND 0),
    number INTEGER CHECK (number > 0),    -- NULL: not drawn yet (B-5)
    ordinal INTEGER NOT NULL DEFAULT 0,
    -- 0: not the beginning of a group or message; 1: a group begins, and is incomplete; 2: it seems complete.
    head INTEGER NOT NULL CHECK ((head > 0) = (sequence_number = 1 AND "offset" = 0) AND head BETWEEN 0 AND 2),
    group_id BLOB CHECK (length(group_id) = 24),
    sequence_number INTEGER NOT NULL CHECK (sequence_number > 0),
    "offset" INTEGER NOT NULL CHECK ("offset" >= 0),
    length INTEGER NOT NULL CHECK (length >= 0),
    flags INTEGER NOT NULL,
    original_length INTEGER NOT NULL,
    persistent INTEGER NOT NULL CHECK (persistent BETWEEN 0 AND 1),
    priority INTEGER NOT NULL CHECK (priority >= 0),             -- its own; -rank unless it arrived under another rule
    message_id BLOB CHECK (length(message_id) = 24),             -- NULL: made from the id
    correlation_id BLOB CHECK (length(correlation_id) = 24),     -- NULL: none
    uid_origin TEXT,                      -- NULL: this queue manager's, and the number is the id
    uid_number INTEGER CHECK ((uid_number IS NULL) = (uid_origin IS NULL)),
    expires_at REAL,
    due_at REAL,                          -- NULL: not delayed, or the time has come
    visible_at REAL,
    backouts INTEGER NOT NULL DEFAULT 0,
    unit INTEGER REFERENCES unit CHECK ((unit IS NOT NULL) = (state = 1 OR state > 3)),
    away INTEGER NOT NULL DEFAULT 0 CHECK (away = 0 OR (away = 1 AND state > 3)),  -- left the depth
    locked_handle INTEGER REFERENCES handle,                     -- the handle whose browse lock holds it
    locked_at REAL,
    lock INTEGER REFERENCES unit,         -- the lock id that holds it
    lock_confirm TEXT,                    -- the confirm id of the call that locked it
    co_op_marked_at REAL,
    forgotten INTEGER NOT NULL DEFAULT 0, -- a restart has lost it, except for the prepared unit that got it
    claimed INTEGER CHECK (claimed IS NULL OR (claimed > 0 AND state = 4)),           -- its position in the claim that holds it
    reports INTEGER CHECK (reports IS NULL OR reports = 1),      -- it asks the queue manager for some (P-1)
    available INTEGER AS (state = 2 AND due_at IS NULL AND number IS NOT NULL) VIRTUAL,
    -- Its holder, if it has a place: twice the unit (one more for a put), minus the handle, 0: time.
    holder INTEGER AS (
        CASE
            WHEN number IS NULL OR (state = 2 AND due_at IS NULL) THEN NULL
            WHEN unit IS NOT NULL THEN 2 * unit + (state = 1)
            WHEN locked_handle IS NOT NULL THEN -locked_handle
            WHEN lock IS NOT NULL THEN 2 * lock
            ELSE 0
        END
    ) VIRTUAL,
    ends INTEGER AS (flags & 16 <> 0) VIRTUAL,                   -- its group
    -- Whether it is the end of its group, or of its message in segments: rules.grouping.is_end.
    is_end INTEGER AS (
        CASE WHEN flags & 24 THEN flags & 16 AND (flags & 4 OR NOT flags & 6) ELSE flags & 4 <> 0 END
    ) VIRTUAL,
    put_by TEXT,                          -- whose authority counts for its reports (authority.py); NULL: a program's
    CHECK ((state = 3 OR state = 5) = (lock IS NOT NULL OR locked_handle IS NOT NULL)),
    CHECK (lock IS NULL OR locked_handle IS NULL)
) STRICT;

-- Available messages in order; heads of whole groups, heads of unfinished groups, and other messages separately. A
-- reader merges.
CREATE UNIQUE INDEX message_place ON message (queue, head, rank, number, ordinal) WHERE available;
-- Pending messages of each holder, in order: a strict reader asks each holder for its first.
CREATE UNIQUE INDEX message_held ON message (queue, holder, head, rank, number, ordinal) WHERE holder IS NOT NULL;
CREATE INDEX message_member ON message (queue, group_id, sequence_number, "offset", rank, number, ordinal)
    WHERE group_id IS NOT NULL;
-- Without claimed messages, which are many, and are not searched here as long as no reader is inside a group.
CREATE INDEX message_taken_member ON message (queue, group_id, unit)
    WHERE group_id IS NOT NULL AND state >= 4 AND claimed IS NULL;
CREATE INDEX message_end ON message (queue, group_id, sequence_number) WHERE group_id IS NOT NULL AND ends;
CREATE INDEX message_message_id ON message (queue, message_id, rank, number, ordinal) WHERE message_id IS NOT NULL;
CREATE INDEX message_correlation_id ON message (queue, correlation_id, rank, number, ordinal)
    WHERE correlation_id IS NOT NULL;
-- A match on priority steps into message_place where a message's own priority is its place, and here for the others.
CREATE INDEX message_own_priority ON message (queue, priority, rank, number, ordinal) WHERE priority <> -rank;
CREATE UNIQUE INDEX message_uid ON message (queue, uid_number, uid_origin) WHERE uid_number IS NOT NULL;
-- The messages of a claim in its order.
CREATE UNIQUE INDEX message_unit ON message (unit, queue, state, claimed) WHERE unit IS NOT NULL;
CREATE INDEX message_lock ON message (lock) WHERE lock IS NOT NULL;
CREATE INDEX message_lock_confirm ON message (queue, lock_confirm) WHERE lock_confirm IS NOT NULL;
CREATE INDEX message_locked_handle ON message (locked_handle) WHERE locked_handle IS NOT NULL;
CREATE INDEX message_expiry ON message (queue, expires_at) WHERE expires_at IS NOT NULL AND away = 0 AND claimed IS NULL;
CREATE INDEX message_due ON message (queue, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX message_co_op ON message (queue, co_op_marked_at) WHERE co_op_marked_at IS NOT NULL;
CREATE INDEX message_forgotten ON message (queue) WHERE forgotten = 1;
CREATE INDEX message_nonpersistent ON message (queue) WHERE persistent = 0;
CREATE INDEX message_reports ON message (queue, unit) WHERE reports IS NOT NULL;

-- The rest of the descriptor and the body, read only for a message that is returned.
CREATE TABLE content (
    id INTEGER PRIMARY KEY,
    put_at REAL NOT NULL,
    expiry REAL,                          -- NULL: unlimited
    delay REAL,                           -- NULL: none
    descriptor TEXT NOT NULL,             -- a JSON array: sql/descriptors.py
    crc INTEGER NOT NULL,                 -- CRC-32 of the body, begun with the id
    body BLOB NOT NULL
) STRICT;

-- Applications that read a queue in claims, with their last start and progress (rules.claims).
CREATE TABLE account (
    queue INTEGER NOT NULL REFERENCES definition,
    application TEXT NOT NULL,
    user TEXT NOT NULL,
    program TEXT NOT NULL,
    epoch INTEGER NOT NULL CHECK (epoch > 0),
    settled INTEGER NOT NULL CHECK (settled >= 0),
    delivered INTEGER NOT NULL CHECK (delivered >= 0),
    state TEXT NOT NULL CHECK (json_valid(state)),               -- the reader's position in a group
    PRIMARY KEY (queue, application)
) STRICT, WITHOUT ROWID;

-- Claims of applications, at most two of each. The messages of a claim are in `message`.
CREATE TABLE claim (
    unit INTEGER PRIMARY KEY REFERENCES unit,
    queue INTEGER NOT NULL,
    application TEXT NOT NULL,
    number INTEGER NOT NULL CHECK (number > 0),
    messages INTEGER NOT NULL CHECK (messages > 0),
    size INTEGER NOT NULL CHECK (size >= 0),
    state TEXT NOT NULL CHECK (json_valid(state)),               -- the reader's position after its confirmation
    more INTEGER NOT NULL CHECK (more IN (0, 1)),                -- its limits have left messages on the queue
    planned INTEGER NOT NULL CHECK (planned IN (0, 1)),
    UNIQUE (queue, application, number),
    FOREIGN KEY (queue, application) REFERENCES account
) STRICT;

-- Definitions other than queues: channels, processes, users, tokens.
CREATE TABLE object (
    type TEXT NOT NULL CHECK (type <> ''),
    name TEXT NOT NULL CHECK (name <> ''),
    attributes TEXT NOT NULL CHECK (json_valid(attributes)),
    altered_at REAL NOT NULL,
    PRIMARY KEY (type, name)
) STRICT, WITHOUT ROWID;

-- A sending channel, or a home-server queue: its status, the connection that runs it, and the request of an operator.
CREATE TABLE channel (
    name TEXT PRIMARY KEY,
    status TEXT NOT NULL
        CHECK (status IN ('inactive', 'starting', 'running', 'retrying', 'paused', 'stopping', 'stopped', 'triggered',
            'waiting')),
    carrier INTEGER,                      -- the connection that runs it; no reference: it may have gone
    epoch INTEGER NOT NULL CHECK (epoch >= 0),
    stop TEXT NOT NULL CHECK (stop IN ('', 'quiesce', 'force', 'terminate')),
    short_retries INTEGER NOT NULL CHECK (short_retries >= 0),
    long_retries INTEGER NOT NULL CHECK (long_retries >= 0),
    reason INTEGER NOT NULL,
    error TEXT NOT NULL,
    changed_at REAL NOT NULL,
    fast INTEGER NOT NULL DEFAULT 0 CHECK (fast IN (0, 1)),  -- whether it sends non-persistent messages outside batches
    reset INTEGER NOT NULL DEFAULT 0 CHECK (reset IN (0, 1)) -- whether the receiver has yet to take the number
) STRICT, WITHOUT ROWID;

-- The progress of a channel on a transmission queue: its confirmed batches.
CREATE TABLE sent (
    queue INTEGER NOT NULL REFERENCES definition,
    channel TEXT NOT NULL,
    number INTEGER NOT NULL CHECK (number >= 0),
    messages INTEGER NOT NULL CHECK (messages >= 0),
    size INTEGER NOT NULL CHECK (size >= 0),
    sent_at REAL,
    PRIMARY KEY (queue, channel)
) STRICT, WITHOUT ROWID;

-- The last batch of each receiving channel (C-1).
CREATE TABLE received (
    identifier TEXT NOT NULL CHECK (identifier <> ''),             -- of the sending store
    incarnation INTEGER NOT NULL,                                  -- of its transmission queue
    channel TEXT NOT NULL,
    manager TEXT NOT NULL,                                         -- the name of the sending queue manager
    number INTEGER NOT NULL CHECK (number >= 0),
    epoch INTEGER NOT NULL CHECK (epoch >= 0),
    messages INTEGER NOT NULL CHECK (messages >= 0),
    digest BLOB NOT NULL,                                          -- of the batch
    received_at REAL NOT NULL,
    PRIMARY KEY (identifier, incarnation, channel)
) STRICT, WITHOUT ROWID;

-- Long bodies of the next batch of each sender, as far as they have arrived.
CREATE TABLE body (
    identifier TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    channel TEXT NOT NULL,
    position INTEGER NOT NULL CHECK (position >= 0),               -- of the message in the batch
    batch BLOB NOT NULL,                                           -- the digest of the batch
    digest BLOB NOT NULL,                                          -- of the whole body
    size INTEGER NOT NULL CHECK (size > 0),
    held INTEGER NOT NULL CHECK (held BETWEEN 0 AND size),
    PRIMARY KEY (identifier, incarnation, channel, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE piece (
    identifier TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    channel TEXT NOT NULL,
    position INTEGER NOT NULL,
    first INTEGER NOT NULL CHECK (first >= 0),
    data BLOB NOT NULL,
    PRIMARY KEY (identifier, incarnation, channel, position, first)
) STRICT;

-- Contents whose messages are gone. They are removed in steps after the transaction that settled a large unit.
CREATE TABLE leftover (
    id INTEGER PRIMARY KEY
) STRICT;

-- A unit of kind 'staging': the counts of its rows, and its expiry.
CREATE TABLE staging (
    unit INTEGER PRIMARY KEY REFERENCES unit,
    expires_at REAL NOT NULL,
    given INTEGER NOT NULL CHECK (given >= 0),                   -- rows as the caller counts
    messages INTEGER NOT NULL CHECK (messages >= given),         -- a body that was split counts more than once
    size INTEGER NOT NULL CHECK (size >= 0),                     -- bytes of bodies
    has_keys INTEGER NOT NULL CHECK (has_keys IN (0, 1)),        -- some rows have a group key,
    has_order INTEGER NOT NULL CHECK (has_order IN (0, 1)),      -- an order key,
    has_numbers INTEGER NOT NULL CHECK (has_numbers IN (0, 1)),  -- a group id that the caller gave,
    has_reports INTEGER NOT NULL CHECK (has_reports IN (0, 1))   -- report options
) STRICT;

CREATE INDEX staging_expiry ON staging (expires_at);

-- Messages outside of queues, with their future rows in `message`. Their contents are already in `content`.
CREATE TABLE staged (
    unit INTEGER NOT NULL REFERENCES unit,
    row INTEGER NOT NULL CHECK (row >= 0),                       -- position in its staging, pieces counted
    whole INTEGER NOT NULL CHECK (whole BETWEEN 0 AND row),      -- the row of the first piece of its body
    id INTEGER NOT NULL,                  -- of its content, and later of the message
    priority INTEGER NOT NULL CHECK (priority >= 0),
    persistent INTEGER NOT NULL CHECK (persistent IN (0, 1)),
    message_id BLOB CHECK (length(message_id) = 24),             -- NULL: made from the id
    correlation_id BLOB CHECK (length(correlation_id) = 24),     -- NULL: none
    expiry REAL,                          -- seconds from the settle; NULL: unlimited
    delay REAL NOT NULL,                  -- the same
    group_id BLOB CHECK (length(group_id) = 24),
    sequence_number INTEGER NOT NULL CHECK (sequence_number > 0),
    "offset" INTEGER NOT NULL CHECK ("offset" >= 0),
    length INTEGER NOT NULL CHECK (length >= 0),
    flags INTEGER NOT NULL,
    original_length INTEGER NOT NULL,
    reports INTEGER,                      -- as in `message`
    group_key ANY CHECK (group_key IS NULL OR group_id IS NULL), -- rows with the same key become a group at the settle
    order_key ANY,
    PRIMARY KEY (unit, row)
) STRICT, WITHOUT ROWID;

-- A unit of kind 'lease': the deadline for its use, at which it is backed out (rules.leases).
CREATE TABLE lease (
    unit INTEGER PRIMARY KEY REFERENCES unit,
    ends_at REAL NOT NULL,
    seconds REAL NOT NULL CHECK (seconds > 0),
    calls INTEGER NOT NULL CHECK (calls >= 0)                     -- puts and gets under it (R5.8)
) STRICT;

-- Recent failed log-ins of a user or from an address (rules.log_ins).
CREATE TABLE attempt (
    key TEXT PRIMARY KEY CHECK (key <> ''),
    level REAL NOT NULL CHECK (level >= 0),
    at REAL NOT NULL,
    empty_at REAL NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX attempt_empty ON attempt (empty_at);

-- Irreversible operations through a door: the newest, up to `acts_kept`.
CREATE TABLE act (
    id INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    user TEXT NOT NULL,
    address TEXT NOT NULL,
    act TEXT NOT NULL CHECK (act <> ''),
    queue TEXT NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('begun', 'done', 'failed')),
    messages INTEGER CHECK (messages >= 0),             -- NULL: not known
    error TEXT NOT NULL
) STRICT;

CREATE INDEX act_at ON act (at, id);

-- The history of queues in three rings of slots, and in each slot the counts of all queues (rules.history).
CREATE TABLE sample (
    seconds INTEGER NOT NULL,            -- the length of a slot
    slot INTEGER NOT NULL
        CHECK (slot BETWEEN 0 AND CASE seconds WHEN 60 THEN 59 WHEN 900 THEN 95 WHEN 7200 THEN 83 ELSE -1 END),
    at REAL NOT NULL,
    queues TEXT NOT NULL CHECK (json_valid(queues)), -- depth, peak, arrived and age by the numbers of the queues
    PRIMARY KEY (seconds, slot)
) STRICT;

-- The settled batches of each queue, so that a repeated batch is put only once.
CREATE TABLE ledger (
    id INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL REFERENCES definition,
    application TEXT NOT NULL,
    query TEXT NOT NULL,                  -- empty: a transaction, kept forever
    batch TEXT NOT NULL CHECK (batch <> ''),
    messages INTEGER NOT NULL CHECK (messages >= 0),
    committed_at REAL NOT NULL
) STRICT;

CREATE UNIQUE INDEX ledger_key ON ledger (queue, application, query, batch);
CREATE INDEX ledger_age ON ledger (queue, application, query, id);

-- Keys of callers under which messages were put, so that a repeated put does nothing.
CREATE TABLE putkey (
    queue INTEGER NOT NULL REFERENCES definition,
    target TEXT NOT NULL,                 -- on a transmission queue: the destination of the messages; otherwise empty
    key TEXT NOT NULL CHECK (key <> ''),
    unit INTEGER REFERENCES unit,         -- the unsettled unit that has put them
    put_at REAL NOT NULL,
    expires_at REAL NOT NULL,             -- when the key is free again
    message_id BLOB NOT NULL CHECK (length(message_id) = 24), -- of the message, the first if there were several
    uid_origin TEXT NOT NULL,
    uid_number INTEGER NOT NULL,
    met_at REAL,                          -- when a put first found it whose clock says that put_at lies in the future
    PRIMARY KEY (queue, target, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX putkey_unit ON putkey (unit) WHERE unit IS NOT NULL;
CREATE INDEX putkey_expiry ON putkey (expires_at) WHERE unit IS NULL;

-- When a trigger message was last put for a queue (R4.9).
CREATE TABLE triggered (
    queue INTEGER PRIMARY KEY REFERENCES definition,
    at REAL NOT NULL
) STRICT;

-- Dropped reports and trigger messages, counted for the queue of their original messages; 0 if it is not in this store.
CREATE TABLE dropped (
    queue INTEGER PRIMARY KEY,            -- no reference: the queue may have been deleted since
    messages INTEGER NOT NULL CHECK (messages > 0),
    last_at REAL NOT NULL,
    reason INTEGER NOT NULL               -- why the last one could not be put
) STRICT;

-- Units of work that also have parts at other queue managers (K-2).
CREATE TABLE globalunit (
    name TEXT PRIMARY KEY,
    connection INTEGER NOT NULL,          -- no reference: the unit may outlive it
    user TEXT NOT NULL,
    program TEXT NOT NULL,
    started_at REAL NOT NULL,
    branches TEXT NOT NULL,               -- parts at owners that are not known to be settled, as JSON
    outcome TEXT NOT NULL CHECK (outcome IN ('', 'commit', 'back_out'))
) STRICT, WITHOUT ROWID;

-- Browse marks of handles (3.11).
CREATE TABLE mark (
    message INTEGER NOT NULL,
    handle INTEGER NOT NULL,
    PRIMARY KEY (message, handle)
) STRICT, WITHOUT ROWID;

CREATE INDEX mark_handle ON mark (handle);

-- Groups, and messages in segments, that readers have entered and not finished (B-45): the place of the head, and its
-- kind. The reader's mark is removed with the last member. An entry is removed when no reader is inside any more, unless
-- an unsettled unit has got a member.
CREATE TABLE entered (
    id INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL,
    group_id BLOB NOT NULL,
    reader TEXT,                          -- a handle, or an application that claims (tables.py)
    entered_in INTEGER REFERENCES unit,   -- its back out removes the entry
    left_in INTEGER REFERENCES unit,      -- the reader has left the group in it; this counts after its commit
    entry TEXT NOT NULL
) STRICT;

CREATE INDEX entered_group ON entered (queue, group_id);
CREATE INDEX entered_reader ON entered (reader, queue, left_in) WHERE reader IS NOT NULL;
CREATE INDEX entered_left ON entered (left_in) WHERE left_in IS NOT NULL;

-- All triggers concern groups. A connection keeps them off until it uses a queue whose `attention` says that it may
-- have groups, because every inserted, deleted or changed row would pay for them.

CREATE TRIGGER end_goes AFTER DELETE ON message WHEN OLD.is_end AND OLD.group_id IS NOT NULL AND OLD.state <> 1
BEGIN
    UPDATE entered SET reader = NULL WHERE queue = OLD.queue AND group_id = OLD.group_id;
END;

-- Waiting calls: for each level at which a strict one waits, the connections that block it (B-31). These are valid for
-- one state of the queue: each change of the queue removes them, and the waiting call looks again.
CREATE TABLE wait (
    connection INTEGER PRIMARY KEY REFERENCES connection,
    queue INTEGER NOT NULL,
    pending TEXT CHECK (json_valid(pending)),                    -- the pending message that it found last
    withheld INTEGER NOT NULL CHECK (withheld IN (0, 1)),        -- whether a message after that is withheld
    levels TEXT CHECK (json_valid(levels))
) STRICT;

CREATE INDEX wait_queue ON wait (queue);

-- How much of each group is available, and its end; `head` of its first message follows from this. It is a hint: it
-- never shows a complete group as incomplete, and a call that takes a group checks.
CREATE TABLE gathering (
    queue INTEGER NOT NULL,
    group_id BLOB NOT NULL,
    available INTEGER NOT NULL CHECK (available >= 0),
    last INTEGER,                         -- the smallest sequence number of an available message that ends it
    PRIMARY KEY (queue, group_id)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER member_comes AFTER INSERT ON message WHEN NEW.group_id IS NOT NULL AND NEW.available
BEGIN
    INSERT INTO gathering VALUES (NEW.queue, NEW.group_id, 1, CASE WHEN NEW.ends THEN NEW.sequence_number END)
    ON CONFLICT DO UPDATE SET
        available = available + 1,
        last = min(coalesce(last, excluded.last), coalesce(excluded.last, last));
    UPDATE message SET head = (
        SELECT 1 + (last IS NOT NULL AND available >= last) FROM gathering
        WHERE queue = NEW.queue AND group_id = NEW.group_id
    ) WHERE id = NEW.id AND NEW.head > 0 AND NEW.flags & 24;
END;

CREATE TRIGGER member_returns AFTER UPDATE OF state, due_at, number ON message
WHEN NEW.group_id IS NOT NULL AND NEW.available AND NOT OLD.available
BEGIN
    INSERT INTO gathering VALUES (NEW.queue, NEW.group_id, 1, CASE WHEN NEW.ends THEN NEW.sequence_number END)
    ON CONFLICT DO UPDATE SET
        available = available + 1,
        last = min(coalesce(last, excluded.last), coalesce(excluded.last, last));
    UPDATE message SET head = (
        SELECT 1 + (last IS NOT NULL AND available >= last) FROM gathering
        WHERE queue = NEW.queue AND group_id = NEW.group_id
    ) WHERE id = NEW.id AND NEW.head > 0 AND NEW.flags & 24;
END;

CREATE TRIGGER member_is_held AFTER UPDATE OF state, due_at, number ON message
WHEN OLD.group_id IS NOT NULL AND OLD.available AND NOT NEW.available
BEGIN
    UPDATE gathering SET
        available = available - 1,
        last = CASE WHEN OLD.ends THEN (
            SELECT min(sequence_number) FROM message
            WHERE queue = OLD.queue AND group_id = OLD.group_id AND ends AND available
        ) ELSE last END
    WHERE queue = OLD.queue AND group_id = OLD.group_id;
    DELETE FROM gathering WHERE queue = OLD.queue AND group_id = OLD.group_id AND available = 0;
END;

CREATE TRIGGER member_goes AFTER DELETE ON message WHEN OLD.group_id IS NOT NULL AND OLD.available
BEGIN
    UPDATE gathering SET
        available = available - 1,
        last = CASE WHEN OLD.ends THEN (
            SELECT min(sequence_number) FROM message
            WHERE queue = OLD.queue AND group_id = OLD.group_id AND ends AND available
        ) ELSE last END
    WHERE queue = OLD.queue AND group_id = OLD.group_id;
    DELETE FROM gathering WHERE queue = OLD.queue AND group_id = OLD.group_id AND available = 0;
END;

CREATE TRIGGER group_becomes_whole AFTER UPDATE ON gathering
WHEN (NEW.last IS NOT NULL AND NEW.available >= NEW.last) <> (OLD.last IS NOT NULL AND OLD.available >= OLD.last)
BEGIN
    UPDATE message SET head = 1 + (NEW.last IS NOT NULL AND NEW.available >= NEW.last)
    WHERE queue = NEW.queue AND group_id = NEW.group_id AND sequence_number = 1 AND "offset" = 0 AND flags & 24;
END;

INSERT INTO tally (queue) VALUES (0);
