-- More statements of the store, as in queries.sql: what an operator sees. None of them writes.

-- name: connection
-- Whose a unit of work or a browse lock is.
SELECT user, program, process FROM connection WHERE id = ?;

-- name: first member
-- Where a group stands in logical order: at the first of its members that is there.
SELECT m.sequence_number, m."offset", m.rank, m.number, m.ordinal FROM message m INDEXED BY message_member
WHERE m.queue = :queue AND m.group_id = :group AND m.number IS NOT NULL AND m.flags & 30
    AND (m.expires_at IS NULL OR m.expires_at > :now OR m.away OR m.claimed IS NOT NULL)
ORDER BY m.sequence_number, m."offset", m.rank, m.number, m.ordinal LIMIT 1;

-- name: members in order
-- A page of a group, in logical order, behind one of its members.
SELECT {columns} FROM message m INDEXED BY message_member {joins}
WHERE m.queue = :queue AND m.group_id = :group AND m.number IS NOT NULL AND m.flags & 30
    AND (m.sequence_number, m."offset", m.rank, m.number, m.ordinal) > (:sequence, :start, :rank, :number, :ordinal){chosen}
ORDER BY m.sequence_number, m."offset", m.rank, m.number, m.ordinal LIMIT :limit;

-- name: units that put
-- Those of which messages may have no place yet: without the prepared ones where a prepare draws the number.
SELECT id FROM unit WHERE kind = 'session' OR (kind = 'prepared' AND ?2) OR (kind = 'confirm' AND queue = ?1);

-- name: unplaced of unit
-- What a unit has put and what has no place yet, as it came.
SELECT {columns} FROM message m INDEXED BY message_unit {joins}
WHERE m.unit = :unit AND m.queue = :queue AND m.state = 1 AND m.id > :after AND m.number IS NULL{chosen}
ORDER BY m.id LIMIT :limit;

-- name: previews
-- The descriptors of a page, with the bodies that are short; what is longer is read apart, and in part.
SELECT {columns} FROM json_each(?1) AS j CROSS JOIN message m ON m.id = j.value CROSS JOIN content c ON c.id = m.id;

-- name: shape of group
-- What is there of a group, in whatever state, with or without a place: for what is missing.
SELECT m.sequence_number, m."offset", iif(m.original_length = -1, m.length, m.original_length), m.flags
FROM message m INDEXED BY message_member
WHERE m.queue = ?1 AND m.group_id = ?2 AND m.flags & 30
    AND (m.expires_at IS NULL OR m.expires_at > ?3 OR m.away OR m.claimed IS NOT NULL)
ORDER BY m.sequence_number, m."offset", m.number IS NULL, m.rank, m.number, m.ordinal, m.id;

-- name: next queue of unit
-- Steps from queue to queue, however much a unit holds on each.
SELECT min(queue) FROM message INDEXED BY message_unit WHERE unit = ?1 AND queue > ?2;

-- name: waits
-- For an operator: who waits, and for what by its last look.
SELECT d.name, w.connection, c.user, c.program, c.process, w.pending, w.withheld
FROM wait w JOIN connection c ON c.id = w.connection JOIN definition d ON d.id = w.queue ORDER BY w.connection;

-- name: handle locks
-- Browse locks, each handle's counted.
SELECT d.name, h.connection, c.user, c.program, c.process, locked.since, locked.messages
FROM (
    SELECT locked_handle, min(locked_at) AS since, count(*) AS messages
    FROM message AS held INDEXED BY message_locked_handle WHERE locked_handle IS NOT NULL GROUP BY locked_handle
) AS locked
JOIN handle h ON h.id = locked.locked_handle JOIN connection c ON c.id = h.connection JOIN definition d ON d.id = h.queue;

-- name: lock ids
-- Lock ids, with what each locks.
SELECT d.name, u.name, u.user, u.program, u.started_at,
    (SELECT count(*) FROM message m INDEXED BY message_lock WHERE m.lock = u.id), u.lease_ends_at
FROM unit u JOIN definition d ON d.id = u.queue WHERE u.kind = 'lock';

-- name: tallies
-- All queues, with what is counted of each.
SELECT t.queue, d.name, d.created_at, t.depth, t.arrived, t.counter
FROM tally t JOIN definition d ON d.id = t.queue ORDER BY d.name;

-- name: held by units
-- What units hold, counted over the index, with the oldest of each.
SELECT queue, state, count(*), min(id) FROM message AS held INDEXED BY message_unit
WHERE unit IS NOT NULL GROUP BY unit, queue, state;

-- name: locked by handles
-- What browses have locked, and nobody has got.
SELECT queue, count(*), min(id) FROM message AS held INDEXED BY message_locked_handle
WHERE locked_handle IS NOT NULL AND state = 3 GROUP BY locked_handle;

-- name: locked by ids
-- The same of lock ids.
SELECT queue, count(*), min(id) FROM message AS held INDEXED BY message_lock
WHERE lock IS NOT NULL AND state = 3 GROUP BY lock;

-- name: delayed
-- What nobody may read yet.
SELECT count(*) FROM message INDEXED BY message_due WHERE queue = ? AND due_at > ? AND state = 2;

-- name: first of next rank
-- Steps from level to level among what is available: the first of each.
SELECT rank, number, ordinal, id FROM message INDEXED BY message_place
WHERE queue = ?1 AND head = ?2 AND rank > ?3 AND available ORDER BY rank, number, ordinal LIMIT 1;

-- name: first delayed of next rank
-- The same among what is delayed, or was and has not been looked at since.
SELECT rank, number, ordinal, id FROM message INDEXED BY message_held
WHERE queue = ?1 AND holder = 0 AND head = ?2 AND rank > ?3 ORDER BY rank, number, ordinal LIMIT 1;

-- name: put at
-- When the oldest of some was put.
SELECT min(c.put_at) FROM json_each(?1) AS j CROSS JOIN content c ON c.id = j.value;

-- name: opens
-- Handles, for the open counts.
SELECT queue, sum(input), sum(output) FROM handle AS h GROUP BY queue;

-- name: waiters
-- Calls that wait.
SELECT queue, count(*) FROM wait AS w GROUP BY queue;
