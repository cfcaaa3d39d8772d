-- Conditions of a store in a file, as in sql/checks.sql.

-- name: definitions
-- The name and type inside a definition equal those of its row.
SELECT format('definition %d: its text has another name or type than %s %s', id, type, name) FROM definition
WHERE json_valid(attributes)
    AND (attributes ->> '$.name' IS NOT name OR attributes ->> '$.type' IS NOT type);

-- name: objects
-- The same for channels, processes, connections, addresses, users and tokens; there is no other kind.
SELECT format('%s %s: its text has another name, or its kind does not exist', type, name) FROM object
WHERE type NOT IN ('channel', 'process', 'connection', 'address', 'user', 'token') OR (json_valid(attributes) AND attributes ->> '$.name' IS NOT name);

-- name: depth
-- The depth counts every message except those that units of work have got (R4.6).
SELECT format('queue %d: the recorded depth is %d, but it has %d messages', t.queue, t.depth, count(m.id))
FROM tally t LEFT JOIN message m ON m.queue = t.queue AND NOT m.away
WHERE t.queue <> 0 GROUP BY t.queue HAVING t.depth <> count(m.id);

-- name: manager
-- The queue manager has a row, and so does the counter of identifying numbers.
SELECT 'the queue manager is missing' WHERE NOT EXISTS (SELECT 1 FROM manager)
UNION ALL
SELECT 'the counter of identifying numbers is missing' WHERE NOT EXISTS (SELECT 1 FROM tally WHERE queue = 0);

-- name: queue counters
-- Every local queue has counters, and no other queue does.
SELECT format('queue %d: it is defined, but has no counters', id) FROM definition
WHERE type = 'local' AND id NOT IN (SELECT queue FROM tally)
UNION ALL
SELECT format('queue %d: it has counters, but is not defined', queue) FROM tally
WHERE queue <> 0 AND queue NOT IN (SELECT id FROM definition WHERE type = 'local');

-- name: attention
-- The attention bits of a queue cover every condition that verbs must check, and its definition bits are right.
SELECT format('queue %d: its attention bits are %d, which does not fit its rows', queue, attention) FROM tally t
WHERE attention NOT BETWEEN 0 AND 255
    OR attention & 1 = 0 AND EXISTS (SELECT 1 FROM message WHERE queue = t.queue AND expires_at IS NOT NULL
        AND NOT away AND claimed IS NULL)
    OR attention & 2 = 0 AND EXISTS (SELECT 1 FROM message WHERE queue = t.queue AND due_at IS NOT NULL)
    OR attention & 4 = 0 AND EXISTS (SELECT 1 FROM unit WHERE queue = t.queue AND lease_ends_at IS NOT NULL)
    OR attention & 8 = 0 AND EXISTS (SELECT 1 FROM wait WHERE queue = t.queue AND levels IS NOT NULL)
    OR attention & 16 = 0 AND EXISTS (SELECT 1 FROM mark JOIN message m ON m.id = mark.message WHERE m.queue = t.queue)
    OR attention & 32 = 0 AND EXISTS (SELECT 1 FROM entered WHERE queue = t.queue)
    OR attention & 64 = 0 AND EXISTS (SELECT 1 FROM message INDEXED BY message_member
        WHERE queue = t.queue AND group_id IS NOT NULL)
    OR attention & 128 = 0 AND EXISTS (SELECT 1 FROM message INDEXED BY message_reports
        WHERE queue = t.queue AND reports IS NOT NULL)
UNION ALL
SELECT format('queue %d: its definitions have revision %d, but the queue manager''s have %d',
    queue, t.revision, m.revision)
FROM tally t, manager m WHERE t.revision NOT BETWEEN 1 AND m.revision;

-- name: places
-- A number that was drawn is never drawn again (B-2).
SELECT format('queue %d: number %d has been drawn, but the counter is %d', t.queue, max(m.number), t.counter)
FROM tally t JOIN message m ON m.queue = t.queue GROUP BY t.queue HAVING max(m.number) > t.counter;

-- name: names
-- Nor is an identifying number.
SELECT format('number %d is in use, but the counter is %d', max(used.id), t.counter)
FROM tally t, (
    SELECT id FROM definition UNION ALL SELECT id FROM process UNION ALL SELECT id FROM connection
    UNION ALL SELECT id FROM handle UNION ALL SELECT id FROM unit UNION ALL SELECT id FROM message
    UNION ALL SELECT id FROM staged
) AS used
WHERE t.queue = 0 HAVING max(used.id) > t.counter;
