-- Conditions of a store in PostgreSQL, as in sql/checks.sql.

-- name: references
-- Every reference leads to an existing row, which is not enforced at each statement.
SELECT format('table %s, row %s: the row in %s to which it refers is missing', r.of, r.id, r.target) FROM (
    SELECT 'connection' AS of, id, 'process' AS target FROM connection WHERE process NOT IN (SELECT id FROM process)
    UNION ALL SELECT 'handle', id, 'connection' FROM handle WHERE connection NOT IN (SELECT id FROM connection)
    UNION ALL SELECT 'unit', id, 'connection' FROM unit
        WHERE connection IS NOT NULL AND connection NOT IN (SELECT id FROM connection)
    UNION ALL SELECT 'unit', id, 'definition' FROM unit
        WHERE queue IS NOT NULL AND queue NOT IN (SELECT id FROM definition)
    UNION ALL SELECT 'message', id, 'definition' FROM message WHERE queue NOT IN (SELECT id FROM definition)
    UNION ALL SELECT 'message', id, 'unit' FROM message
        WHERE (unit IS NOT NULL AND unit NOT IN (SELECT id FROM unit))
            OR (lock IS NOT NULL AND lock NOT IN (SELECT id FROM unit))
    UNION ALL SELECT 'message', id, 'handle' FROM message
        WHERE locked_handle IS NOT NULL AND locked_handle NOT IN (SELECT id FROM handle)
    UNION ALL SELECT 'account', queue, 'definition' FROM account WHERE queue NOT IN (SELECT id FROM definition)
    UNION ALL SELECT 'claim', unit, 'unit' FROM claim WHERE unit NOT IN (SELECT id FROM unit)
    UNION ALL SELECT 'claim', unit, 'account' FROM claim c WHERE NOT EXISTS (
        SELECT 1 FROM account a WHERE a.queue = c.queue AND a.application = c.application
    )
    UNION ALL SELECT 'lease', unit, 'unit' FROM lease WHERE unit NOT IN (SELECT id FROM unit)
    UNION ALL SELECT 'staging', unit, 'unit' FROM staging WHERE unit NOT IN (SELECT id FROM unit)
    UNION ALL SELECT 'staged', id, 'unit' FROM staged WHERE unit NOT IN (SELECT id FROM unit)
    UNION ALL SELECT 'triggered', queue, 'definition' FROM triggered WHERE queue NOT IN (SELECT id FROM definition)
    UNION ALL SELECT 'sent', queue, 'definition' FROM sent WHERE queue NOT IN (SELECT id FROM definition)
    UNION ALL SELECT 'putkey', queue, 'definition' FROM putkey WHERE queue NOT IN (SELECT id FROM definition)
    UNION ALL SELECT 'putkey', queue, 'unit' FROM putkey WHERE unit IS NOT NULL AND unit NOT IN (SELECT id FROM unit)
    UNION ALL SELECT 'ledger', id, 'definition' FROM ledger WHERE queue NOT IN (SELECT id FROM definition)
    UNION ALL SELECT 'entered', id, 'unit' FROM entered
        WHERE (entered_in IS NOT NULL AND entered_in NOT IN (SELECT id FROM unit))
            OR (left_in IS NOT NULL AND left_in NOT IN (SELECT id FROM unit))
    UNION ALL SELECT 'wait', connection, 'connection' FROM wait WHERE connection NOT IN (SELECT id FROM connection)
) AS r;

-- name: definitions
-- The name and type inside a definition equal those of its row.
SELECT format('definition %s: its text has another name or type than %s %s', id, type, name) FROM definition
WHERE CAST(attributes AS json) ->> 'name' IS DISTINCT FROM name OR CAST(attributes AS json) ->> 'type' IS DISTINCT FROM type;

-- name: objects
-- The same for channels, processes, connections, addresses, users and tokens; there is no other kind.
SELECT format('%s %s: its text has another name, or its kind does not exist', type, name) FROM object
WHERE type NOT IN ('channel', 'process', 'connection', 'address', 'user', 'token') OR CAST(attributes AS json) ->> 'name' IS DISTINCT FROM name;

-- name: messages
-- The columns of a message are valid and consistent with each other.
SELECT format('message %s: the columns of its row are not valid', id) FROM message WHERE NOT (
    state BETWEEN 1 AND 5 AND rank BETWEEN -9 AND 0 AND priority >= 0 AND persistent BETWEEN 0 AND 1
    AND forgotten BETWEEN 0 AND 1 AND length >= 0 AND "offset" >= 0 AND sequence_number > 0
    AND head BETWEEN 0 AND 2 AND (head > 0) = (sequence_number = 1 AND "offset" = 0)
    AND coalesce(number > 0, true)
    AND (unit IS NOT NULL) = (state = 1 OR state > 3)
    AND (state = 3 OR state = 5) = (lock IS NOT NULL OR locked_handle IS NOT NULL)
    AND (lock IS NULL OR locked_handle IS NULL)
    AND (away = 0 OR (away = 1 AND state > 3))
    AND (claimed IS NULL OR (claimed > 0 AND state = 4))
    AND (uid_number IS NULL) = (uid_origin IS NULL)
    AND coalesce(length(group_id) = 24, true) AND coalesce(length(message_id) = 24, true)
    AND coalesce(length(correlation_id) = 24, true)
);

-- name: depth
-- The depth counts every message except those that units of work have got (R4.6).
SELECT format('queue %s: the recorded depth is %s, but it has %s messages', t.queue, t.depth, count(m.id))
FROM counted t LEFT JOIN message m ON m.queue = t.queue AND m.away = 0
GROUP BY t.queue, t.depth HAVING t.depth <> count(m.id);

-- name: slots
-- Only queues that keep no order have slots, and their definitions agree.
SELECT format('queue %s: session %s has a slot, but the queue keeps its order', queue, session) FROM slot
WHERE queue NOT IN (SELECT queue FROM tally WHERE unordered = 1)
UNION ALL
SELECT format('queue %s: it is recorded as one that %s order, but its definition says %s', t.queue,
    CASE WHEN t.unordered = 1 THEN 'keeps no' ELSE 'keeps its' END, CAST(d.attributes AS json) ->> 'read_order')
FROM tally t JOIN definition d ON d.id = t.queue
WHERE (t.unordered = 1) <> (coalesce(CAST(d.attributes AS json) ->> 'read_order', '') = 'unordered');

-- name: manager
-- The queue manager has a row.
SELECT 'the queue manager is missing' WHERE NOT EXISTS (SELECT 1 FROM manager);

-- name: queue counters
-- Every local queue has counters, no other queue does, and the counters are valid.
SELECT format('queue %s: it is defined, but has no counters', id) FROM definition
WHERE type = 'local' AND id NOT IN (SELECT queue FROM tally)
UNION ALL
SELECT format('queue %s: it has counters, but is not defined', queue) FROM tally
WHERE queue NOT IN (SELECT id FROM definition WHERE type = 'local')
UNION ALL
SELECT format('queue %s: its counters are not valid', queue) FROM tally
WHERE NOT (counter BETWEEN 0 AND reserved AND depth BETWEEN 0 AND arrived AND unordered BETWEEN 0 AND 1)
UNION ALL
SELECT format('queue %s: the counters of session %s are not valid', queue, session) FROM slot
WHERE NOT (arrived >= 0 AND arrived >= depth)
UNION ALL
SELECT format('queue %s: it has %s rows of counters', queue, count(*)) FROM tally GROUP BY queue HAVING count(*) > 1;

-- name: fronts
-- No message before a front is available, and each queue records whether it has fronts (fronts.py).
SELECT format('message %s: it is available before the front of its queue', m.id)
FROM tally t JOIN message m ON m.queue = t.queue
WHERE m.available AND m.number < t.fronts[10 * m.head + m.rank + 10]
UNION ALL
SELECT format('queue %s: it has fronts, but its attention bits lack them', queue) FROM tally
WHERE fronts IS NOT NULL AND (attention & 256 = 0 OR cardinality(fronts) <> 30);

-- name: attention
-- The attention bits of a queue cover every condition that verbs must check, and its definition bits are right.
SELECT format('queue %s: its attention bits are %s, which does not fit its rows', queue, attention) FROM tally t
WHERE attention NOT BETWEEN 0 AND 1023
    OR attention & 1 = 0 AND EXISTS (SELECT 1 FROM message WHERE queue = t.queue AND expires_at IS NOT NULL
        AND away = 0 AND claimed IS NULL)
    OR attention & 2 = 0 AND EXISTS (SELECT 1 FROM message WHERE queue = t.queue AND due_at IS NOT NULL)
    OR attention & 4 = 0 AND EXISTS (SELECT 1 FROM unit WHERE queue = t.queue AND lease_ends_at IS NOT NULL)
    OR attention & 8 = 0 AND EXISTS (SELECT 1 FROM wait WHERE queue = t.queue AND levels IS NOT NULL)
    OR attention & 16 = 0 AND EXISTS (SELECT 1 FROM mark JOIN message m ON m.id = mark.message WHERE m.queue = t.queue)
    OR attention & 32 = 0 AND EXISTS (SELECT 1 FROM entered WHERE queue = t.queue)
    OR attention & 64 = 0 AND EXISTS (SELECT 1 FROM message WHERE queue = t.queue AND group_id IS NOT NULL)
    OR attention & 128 = 0 AND EXISTS (SELECT 1 FROM message WHERE queue = t.queue AND reports IS NOT NULL)
    OR attention & 512 = 0 AND EXISTS (SELECT 1 FROM listener WHERE queue = t.queue AND until > clock_timestamp())
UNION ALL
SELECT format('queue %s: its definitions have revision %s, but the queue manager''s have %s',
    queue, t.revision, m.revision)
FROM tally t, manager m WHERE t.revision NOT BETWEEN 1 AND m.revision;

-- name: places
-- A number that was drawn is never drawn again (B-2).
SELECT format('queue %s: number %s has been drawn, but the counter is %s', t.queue, max(m.number), t.counter)
FROM counted t JOIN message m ON m.queue = t.queue GROUP BY t.queue, t.counter HAVING max(m.number) > t.counter;

-- name: names
-- Nor is an identifying number.
SELECT format('number %s is in use, but the counter is %s', used.most, n.last_value)
FROM number n, (
    SELECT max(id) AS most FROM (
        SELECT id FROM definition UNION ALL SELECT id FROM process UNION ALL SELECT id FROM connection
        UNION ALL SELECT id FROM handle UNION ALL SELECT id FROM unit UNION ALL SELECT id FROM message
        UNION ALL SELECT id FROM staged
    ) AS name
) AS used
WHERE used.most > n.last_value;
