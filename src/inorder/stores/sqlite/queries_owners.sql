-- More statements of the store, as in queries.sql: owners, handles and waits, definitions, and what an operator sees.

-- ===== owners, handles, waits

-- name: locker
-- Whose browse lock it is, for the rules and the errors.
SELECT h.connection, c.program FROM handle h JOIN connection c ON c.id = h.connection WHERE h.id = ?;

-- name: locked by handle
-- A browse that moves on frees what it locked before (R3.70).
SELECT {columns} FROM message m INDEXED BY message_locked_handle WHERE m.locked_handle = ?;

-- name: forget edges
-- What was in the way on this queue is found anew by who waits: it will be woken, and looks.
DELETE FROM edge WHERE queue = ? AND connection <> ?;

-- name: processes
-- The others that may have died.
SELECT id FROM process WHERE id <> ?;

-- name: begin process
-- From now on this process's lock tells whether it lives.
INSERT INTO process VALUES (?);

-- name: end process
-- It has gone, by itself or found dead.
DELETE FROM process WHERE id = ?;

-- name: end other processes
-- A start: nobody else was there.
DELETE FROM process WHERE id <> ?;

-- name: boot
-- Whether the machine has run on since the last start.
SELECT boot FROM manager;

-- name: set boot
-- This run of the machine.
UPDATE manager SET boot = ?;

-- name: connections of process
-- What a dead process leaves to be ended.
SELECT id, user, program FROM connection WHERE process = ?;

-- name: all connections
-- At a start all are dead.
SELECT id, user, program FROM connection;

-- name: begin connection
-- So that others see whose units and handles there are.
INSERT INTO connection VALUES (?, ?, ?, ?);

-- name: end connection
-- After its unit and its handles.
DELETE FROM connection WHERE id = ?;

-- name: begin handle
-- So that others see that the queue is open, and how.
INSERT INTO handle VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: extend handle
-- Opened for more, or exclusively.
UPDATE handle SET input = ?, output = ?, co_op = ?, exclusive = ? WHERE id = ?;

-- name: end handle
-- After its locks and marks.
DELETE FROM handle WHERE id = ?;

-- name: handles of connection
-- They end with it.
SELECT id, queue, name, made_temporary FROM handle WHERE connection = ?;

-- name: handles of queue
-- Open counts, and who is in the way of an exclusive open (R4.4).
SELECT id, name, input, output, exclusive FROM handle WHERE queue = ? ORDER BY id;

-- name: handles by name
-- An alias that is open cannot be deleted.
SELECT count(*) FROM handle WHERE name = ?;

-- name: co-operating
-- The marks of a cooperating set end with the last of it.
SELECT 1 FROM handle WHERE queue = ? AND co_op AND id <> ? LIMIT 1;

-- name: end marks
-- Of a handle that is gone.
DELETE FROM mark WHERE handle = ?;

-- name: end marks for all
-- The last of the set has gone.
UPDATE message SET co_op_marked_at = NULL WHERE queue = ? AND co_op_marked_at IS NOT NULL;

-- name: wait
-- A call waits: an operator sees it.
INSERT OR REPLACE INTO wait VALUES (?, ?, ?, ?);

-- name: end wait
-- It has something, or has given up.
DELETE FROM wait WHERE connection = ?;

-- name: waiting
-- For an operator.
SELECT count(*) FROM wait WHERE queue = ?;

-- name: add edge
-- Who must act before this waiter can go on: so that circles are found (B-31).
INSERT OR IGNORE INTO edge VALUES (?, ?, ?, ?);

-- name: end edges
-- Of a call that waits no more, or looks again.
DELETE FROM edge WHERE connection = ?;

-- name: edges
-- The whole of who waits for whom: strict readers that hold something and wait are few.
SELECT connection, level, holder FROM edge;

-- ===== definitions

-- name: definitions
-- Read as a whole when the revision is another one, and kept by the process.
SELECT id, attributes, created_at, altered_at FROM definition;

-- name: define
-- A queue, an alias or a model.
INSERT INTO definition VALUES (?, ?, ?, ?, ?, ?);

-- name: begin tally
-- A queue's counters, with the queue.
INSERT INTO tally (queue) VALUES (?);

-- name: end tally
-- And its end: handles that are left see by it that the queue is gone (2052).
DELETE FROM tally WHERE queue = ?;

-- name: redefine
-- Attributes change; messages keep their places (R4.10).
UPDATE definition SET attributes = ?, altered_at = ? WHERE id = ?;

-- name: undefine
-- A definition goes.
DELETE FROM definition WHERE id = ?;

-- name: revise
-- Whatever processes keep of definitions is old from now on.
UPDATE manager SET revision = revision + 1;

-- name: manager
-- The queue manager's own attributes, with the revision that they are of.
SELECT attributes, revision FROM manager;

-- name: set manager
-- Everyone reads them anew.
UPDATE manager SET attributes = ?, revision = revision + 1;

-- name: any messages
-- A message is available, held, or has no place yet because its unit has it.
SELECT EXISTS (SELECT 1 FROM message INDEXED BY message_place WHERE queue = ?1 AND available)
    OR EXISTS (SELECT 1 FROM message INDEXED BY message_held WHERE queue = ?1 AND holder IS NOT NULL)
    OR EXISTS (SELECT 1 FROM message INDEXED BY message_unit WHERE unit IS NOT NULL AND queue = ?1);

-- name: unsettled
-- How many messages of a queue are put or got and not settled, and how many of them are puts.
SELECT count(*), coalesce(sum(state = 1), 0) FROM message INDEXED BY message_unit
WHERE unit IS NOT NULL AND queue = ? AND state IN (1, 4, 5);

-- name: leave contents of queue
-- All that goes with a queue; its contents are removed afterwards, in steps.
INSERT INTO leftover
SELECT id FROM message INDEXED BY message_place WHERE queue = ?1 AND available
UNION ALL SELECT id FROM message INDEXED BY message_held WHERE queue = ?1 AND holder IS NOT NULL
UNION ALL SELECT id FROM message INDEXED BY message_unit WHERE unit IS NOT NULL AND queue = ?1 AND number IS NULL;

-- name: remove messages of queue
-- The narrow rows go at once.
DELETE FROM message WHERE id IN (
    SELECT id FROM message INDEXED BY message_place WHERE queue = ?1 AND available
    UNION ALL SELECT id FROM message INDEXED BY message_held WHERE queue = ?1 AND holder IS NOT NULL
    UNION ALL SELECT id FROM message INDEXED BY message_unit WHERE unit IS NOT NULL AND queue = ?1 AND number IS NULL
);

-- name: end units of queue
-- Confirm ids and lock ids live and end with their queue.
DELETE FROM unit WHERE queue = ?;

-- name: end locks of queue
-- A lock id that locks nothing is forgotten.
DELETE FROM unit WHERE queue = ? AND kind = 'lock';

-- name: end entries of queue
-- And who was inside groups on it.
DELETE FROM entered WHERE queue = ?;

-- name: nonpersistent of queue
-- What a start discards, unless a named unit has it (R1.5, R5.11).
SELECT id, state, unit IS NOT NULL OR lock IS NOT NULL FROM message INDEXED BY message_nonpersistent
WHERE queue = ? AND NOT persistent;

-- name: forget message
-- It goes when the unit that has it is undone.
UPDATE message SET forgotten = 1 WHERE id = ?;

-- name: local queues
-- A start and a stop concern all of them.
SELECT id FROM definition WHERE type = 'local';

-- name: queues with expired
-- Housekeeping: what lies on queues that nobody touches.
SELECT id FROM definition WHERE type = 'local' AND EXISTS (
    SELECT 1 FROM message INDEXED BY message_expiry
    WHERE queue = definition.id AND expires_at <= ? AND expires_at IS NOT NULL AND NOT away AND claimed IS NULL
) ORDER BY id;

-- name: queues with leases over
-- The same of lock ids that end by themselves.
SELECT DISTINCT queue FROM unit WHERE lease_ends_at <= ? AND lease_ends_at IS NOT NULL ORDER BY queue;

-- name: units
-- What an operator sees: all units, with what each holds.
SELECT
    u.id, u.kind, u.name, coalesce(d.name, ''), u.user, u.program, u.started_at,
    (SELECT count(*) FROM message m INDEXED BY message_unit WHERE m.unit = u.id AND m.state = 1)
        + coalesce((SELECT s.messages FROM staging s WHERE s.unit = u.id), 0),
    (SELECT count(*) FROM message m INDEXED BY message_unit WHERE m.unit = u.id AND m.state IN (4, 5)),
    (SELECT count(*) FROM message m INDEXED BY message_lock WHERE m.lock = u.id), u.connection
FROM unit u LEFT JOIN definition d ON d.id = u.queue
ORDER BY u.started_at, u.id;

-- name: queues of unit
-- Who is told of a prepare.
SELECT DISTINCT queue FROM message INDEXED BY message_unit WHERE unit = ?;

-- name: pending
-- What is pending on a queue, for its operator.
SELECT {columns} FROM message m INDEXED BY message_held WHERE m.queue = ? AND m.holder IS NOT NULL;

-- name: withheld
-- Available messages behind the first pending one of their level.
SELECT count(*) FROM message INDEXED BY message_place
WHERE queue = ? AND head = ? AND available AND rank = ? AND (number, ordinal) > (?, ?);

-- name: exists
-- Whether a handle's queue was deleted under it.
SELECT 1 FROM tally WHERE queue = ?;

-- name: skip reserved
-- After the machine may have lost what was not synced: no number returns that may have been told.
UPDATE tally SET counter = reserved;
