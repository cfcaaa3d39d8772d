-- More statements of the store, as in queries.sql: views for operators.

-- name: newest acts
-- The log, newest first.
SELECT id, at, "user", address, act, queue, outcome, messages, error FROM act INDEXED BY act_at
WHERE (at, id) < (?1, ?2) ORDER BY at DESC, id DESC LIMIT ?3 OFFSET ?4;

-- name: place of first group member
-- The place of a group in logical order, which is that of its first present member.
SELECT m.sequence_number, m."offset", m.rank, m.number, m.ordinal FROM message m INDEXED BY message_member
WHERE m.queue = :queue AND m.group_id = :group AND m.number IS NOT NULL AND m.flags & 30 <> 0
    AND (m.expires_at IS NULL OR m.expires_at > :now OR m.away = 1 OR m.claimed IS NOT NULL)
ORDER BY m.sequence_number, m."offset", m.rank, m.number, m.ordinal LIMIT 1;

-- name: units with unplaced puts
-- Units whose messages may have no place yet, without prepared ones if a prepare draws the number.
SELECT id FROM unit INDEXED BY unit_session WHERE kind = 'session'
UNION ALL SELECT id FROM unit INDEXED BY unit_prepared WHERE kind = 'prepared' AND ?2 = 1
UNION ALL SELECT id FROM unit INDEXED BY unit_leased WHERE kind = 'lease'
UNION ALL SELECT id FROM unit INDEXED BY unit_named WHERE queue = ?1 AND kind = 'confirm';

-- name: places and put times
-- A value in a damaged store is compared as a number, too.
SELECT m.id, m.rank, m.number, m.ordinal, CAST(c.put_at AS double precision)
FROM json_each(?1) AS j CROSS JOIN message m ON m.id = j.value CROSS JOIN content c ON c.id = m.id;

-- name: group members by logical place
-- A page of a group in logical order, after one of its members.
SELECT {narrow} FROM message m INDEXED BY message_member {joins}
WHERE m.queue = :queue AND m.group_id = :group AND m.number IS NOT NULL AND m.flags & 30 <> 0
    AND (m.sequence_number, m."offset", m.rank, m.number, m.ordinal) > (:sequence, :start, :rank, :number, :ordinal){chosen}
ORDER BY m.sequence_number, m."offset", m.rank, m.number, m.ordinal LIMIT :limit;

-- name: unplaced puts of unit
-- Puts of a unit that have no place yet, in order of arrival.
SELECT {narrow} FROM message m INDEXED BY message_unit {joins}
WHERE m.unit = :unit AND m.queue = :queue AND m.state = 1 AND m.claimed IS NULL AND m.id > :after AND m.number IS NULL{chosen}
ORDER BY m.id LIMIT :limit;

-- name: message previews
-- The descriptors of a page with short bodies. Parts of longer bodies are read separately.
SELECT {preview} FROM json_each(?1) AS j CROSS JOIN message m ON m.id = j.value CROSS JOIN content c ON c.id = m.id;

-- name: queue counters
-- All queues, or one, with their counters.
SELECT queue, depth, arrived, counter FROM tally
WHERE queue BETWEEN coalesce(?1, 1) AND coalesce(?1, 9223372036854775807) ORDER BY queue;

-- name: held by units
-- The messages of units, counted over the index, with the oldest of each.
SELECT queue, state, count(*), min(id) FROM message AS held INDEXED BY message_unit
WHERE unit IS NOT NULL AND queue = coalesce(?1, queue) GROUP BY unit, queue, state;

-- name: locked by handles
-- Messages that browses have locked and no unit has got.
SELECT min(queue), count(*), min(id) FROM message AS held INDEXED BY message_locked_handle
WHERE locked_handle IS NOT NULL AND state = 3 GROUP BY locked_handle;

-- name: locked by ids
-- The same for lock ids.
SELECT min(queue), count(*), min(id) FROM message AS held INDEXED BY message_lock
WHERE lock IS NOT NULL AND state = 3 GROUP BY lock;

-- name: count delayed messages
-- Messages that cannot be read yet, of each queue, or of one.
SELECT queue, count(*) FROM message INDEXED BY message_due
WHERE queue BETWEEN coalesce(?1, 1) AND coalesce(?1, 9223372036854775807) AND due_at > ?2 AND state = 2 GROUP BY queue;

-- name: firsts of levels
-- Steps from level to level of each of some queues among its available messages, to the first of each. Two lookups a
-- step, so that no database reads all messages to join them.
WITH RECURSIVE level(queue, head, id) AS (
    SELECT j.value, h.value, CAST(0 AS bigint) FROM json_each(?1) AS j CROSS JOIN json_each('[0, 1, 2]') AS h
    UNION ALL
    SELECT level.queue, level.head, (
        SELECT m.id FROM message m INDEXED BY message_place
        WHERE m.queue = level.queue AND m.head = level.head AND m.available
            AND m.rank > coalesce((SELECT former.rank FROM message AS former WHERE former.id = level.id), -10)
        ORDER BY m.rank, m.number, m.ordinal LIMIT 1
    ) FROM level WHERE level.id IS NOT NULL
)
SELECT queue, id FROM level WHERE id > 0;

-- name: delayed firsts of levels
-- The same among messages that are delayed, or were until now.
WITH RECURSIVE level(queue, head, id) AS (
    SELECT j.value, h.value, CAST(0 AS bigint) FROM json_each(?1) AS j CROSS JOIN json_each('[0, 1, 2]') AS h
    UNION ALL
    SELECT level.queue, level.head, (
        SELECT m.id FROM message m INDEXED BY message_held
        WHERE m.queue = level.queue AND m.holder = 0 AND m.head = level.head
            AND m.rank > coalesce((SELECT former.rank FROM message AS former WHERE former.id = level.id), -10)
        ORDER BY m.rank, m.number, m.ordinal LIMIT 1
    ) FROM level WHERE level.id IS NOT NULL
)
SELECT queue, id FROM level WHERE id > 0;

-- name: pending messages
-- Pending messages of a queue, for its operator.
SELECT {narrow} FROM message m INDEXED BY message_held WHERE m.queue = ? AND m.holder IS NOT NULL;

-- name: count withheld messages
-- Available messages after the first pending one of their level.
SELECT count(*) FROM message INDEXED BY message_place
WHERE queue = ? AND head = ? AND available AND rank = ? AND (number, ordinal) > (?, ?);
