-- Conditions that hold for a store whenever no transaction is open. Each statement returns a text for every violation.
-- They read the whole store and are not meant for daily use.

-- name: definitions
-- The name and type inside a definition equal those of its row.
SELECT format('definition %d: %s %s is defined as another', id, type, name) FROM definition
WHERE json_valid(attributes)
    AND (attributes ->> '$.name' IS NOT name OR attributes ->> '$.type' IS NOT type);

-- name: objects
-- The same for channels, processes, connections, addresses, users and tokens; there is no other kind.
SELECT format('%s %s: it is defined as another, or of no kind', type, name) FROM object
WHERE type NOT IN ('channel', 'process', 'connection', 'address', 'user', 'token') OR (json_valid(attributes) AND attributes ->> '$.name' IS NOT name);

-- name: depth
-- The depth counts every message except those that units of work have got (R4.6).
SELECT format('queue %d: the depth is noted as %d, %d messages are there', t.queue, t.depth, count(m.id))
FROM tally t LEFT JOIN message m ON m.queue = t.queue AND NOT m.away
WHERE t.queue <> 0 GROUP BY t.queue HAVING t.depth <> count(m.id);

-- name: manager
-- The queue manager has a row, and so does the counter of identifying numbers.
SELECT 'the queue manager is missing' WHERE NOT EXISTS (SELECT 1 FROM manager)
UNION ALL
SELECT 'the counter of the numbers that name things is missing' WHERE NOT EXISTS (SELECT 1 FROM tally WHERE queue = 0);

-- name: queue counters
-- Every local queue has counters, and no other queue does.
SELECT format('queue %d: it is defined and not counted', id) FROM definition
WHERE type = 'local' AND id NOT IN (SELECT queue FROM tally)
UNION ALL
SELECT format('queue %d: it is counted and not defined', queue) FROM tally
WHERE queue <> 0 AND queue NOT IN (SELECT id FROM definition WHERE type = 'local');

-- name: attention
-- The attention bits of a queue cover every condition that verbs must check, and its definition bits are right.
SELECT format('queue %d: there is something to look for, and it says %d', queue, attention) FROM tally t
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
SELECT format('queue %d: it knows the definitions of revision %d, they have %d', queue, t.revision, m.revision)
FROM tally t, manager m WHERE t.revision NOT BETWEEN 1 AND m.revision;

-- name: places
-- A number that was drawn is never drawn again (B-2).
SELECT format('queue %d: number %d has been drawn, the counter says %d', t.queue, max(m.number), t.counter)
FROM tally t JOIN message m ON m.queue = t.queue GROUP BY t.queue HAVING max(m.number) > t.counter;

-- name: names
-- Nor is an identifying number.
SELECT format('number %d names something, the counter says %d', max(used.id), t.counter)
FROM tally t, (
    SELECT id FROM definition UNION ALL SELECT id FROM process UNION ALL SELECT id FROM connection
    UNION ALL SELECT id FROM handle UNION ALL SELECT id FROM unit UNION ALL SELECT id FROM message
    UNION ALL SELECT id FROM staged
) AS used
WHERE t.queue = 0 HAVING max(used.id) > t.counter;

-- name: unplaced
-- Only an unconfirmed put may lack a number (B-5).
SELECT format('message %d: it is in state %d and has no place', id, state) FROM message
WHERE number IS NULL AND state <> 1;

-- name: away
-- A get in a unit of work reduces the depth at once, a get under a confirm id when it is confirmed (R4.6).
SELECT format('message %d: in state %d, held by a %s unit, it is %s the depth', m.id, m.state, u.kind,
    CASE WHEN m.away THEN 'not in' ELSE 'in' END)
FROM message m JOIN unit u ON u.id = m.unit
WHERE m.away <> (m.state IN (4, 5) AND u.kind IN ('session', 'prepared', 'lease'));

-- name: gathering
-- The record of each group has the right number of available messages and the right end.
SELECT format('queue %d, group %s: %d available and end %s are noted, there are %d and %s',
    queue, hex(group_id), max(noted), coalesce(max(noted_last), 'none'), max(available), coalesce(max(last), 'none'))
FROM (
    SELECT queue, group_id, available AS noted, last AS noted_last, 0 AS available, NULL AS last FROM gathering
    UNION ALL
    SELECT queue, group_id, 0, NULL, count(*), min(CASE WHEN ends THEN sequence_number END) FROM message
    WHERE group_id IS NOT NULL AND available GROUP BY queue, group_id
)
GROUP BY queue, group_id HAVING max(noted) <> max(available) OR max(noted_last) IS NOT max(last);

-- name: heads
-- A complete group never looks unfinished, or a reader of whole groups would miss it.
SELECT format('message %d: nothing of what it begins is missing, it is marked as unfinished', h.id)
FROM message h LEFT JOIN (
    SELECT queue, group_id, min(CASE WHEN ends THEN sequence_number END) AS last FROM message
    WHERE group_id IS NOT NULL AND available GROUP BY queue, group_id
) AS g ON g.queue = h.queue AND g.group_id = h.group_id
WHERE h.head = 1 AND h.available AND (
    h.flags & 24 = 0
    OR g.last <= (
        SELECT count(DISTINCT m.sequence_number) FROM message m
        WHERE m.queue = h.queue AND m.group_id = h.group_id AND m.sequence_number <= g.last AND m.available
    )
);

-- name: idle units
-- No confirm id or lock id without messages remains (A-9, A-12).
SELECT format('unit %d: a %s id that holds nothing', id, kind) FROM unit u
WHERE kind IN ('confirm', 'lock')
    AND NOT EXISTS (SELECT 1 FROM message WHERE unit = u.id) AND NOT EXISTS (SELECT 1 FROM message WHERE lock = u.id);

-- name: holders
-- The units and lock ids of a message belong to its own queue (A-15).
SELECT format('message %d: it is held by unit %d, a %s id', m.id, u.id, u.kind) FROM message m JOIN unit u ON u.id = m.unit
WHERE u.kind = 'lock' OR (u.kind IN ('confirm', 'claim') AND u.queue <> m.queue)
UNION ALL
SELECT format('message %d: it is locked by unit %d, of kind %s', m.id, u.id, u.kind) FROM message m JOIN unit u ON u.id = m.lock
WHERE u.kind <> 'lock' OR u.queue <> m.queue
UNION ALL
SELECT format('message %d: it was locked with confirm id %s, and is not', id, lock_confirm) FROM message
WHERE lock_confirm IS NOT NULL AND lock IS NULL;

-- name: claims
-- A claim holds as many messages as it started with, at positions 1, 2, 3 ...; only claims have positions.
SELECT format('claim %d of %s: %d messages are noted, it holds %d, at positions %s to %s',
    c.number, c.application, c.messages, count(m.id), coalesce(min(m.claimed), 'none'), coalesce(max(m.claimed), 'none'))
FROM claim c LEFT JOIN message m ON m.unit = c.unit
GROUP BY c.unit HAVING count(m.id) <> c.messages OR count(m.claimed) <> c.messages
    OR min(m.claimed) IS NOT 1 OR max(m.claimed) IS NOT c.messages
UNION ALL
SELECT format('unit %d: a claim that nobody has', id) FROM unit WHERE kind = 'claim' AND id NOT IN (SELECT unit FROM claim)
UNION ALL
SELECT format('message %d: it has a position in a claim, and none holds it', m.id)
FROM message m LEFT JOIN unit u ON u.id = m.unit WHERE m.claimed IS NOT NULL AND u.kind IS NOT 'claim'
UNION ALL
SELECT format('claim %d of %s: the last one that is over is %d', c.number, c.application, a.settled)
FROM claim c JOIN account a ON a.queue = c.queue AND a.application = c.application
WHERE c.number NOT BETWEEN a.settled AND a.settled + 2
UNION ALL
SELECT format('claim %d of %s: it was taken ahead of a claim that is not planned', c.number, c.application)
FROM claim c JOIN account a ON a.queue = c.queue AND a.application = c.application
WHERE c.number = a.settled + 2 AND (c.planned OR NOT EXISTS (
    SELECT 1 FROM claim WHERE queue = c.queue AND application = c.application AND number = a.settled + 1 AND planned
));

-- name: channels
-- A channel has claimed every batch that it has sent (C-1).
SELECT format('queue %d: channel %s has sent from it, and has never claimed', queue, channel) FROM sent s
WHERE NOT EXISTS (SELECT 1 FROM account a WHERE a.queue = s.queue AND a.application = 'channel ' || s.channel);

-- name: bodies
-- The pieces of a body that arrives for a channel are together as long as is noted.
SELECT format('channel %s, body %d: its pieces have %d octets, %d are noted', channel, position, sum(there), sum(noted))
FROM (
    SELECT identifier, incarnation, channel, position, length(data) AS there, 0 AS noted FROM piece
    UNION ALL
    SELECT identifier, incarnation, channel, position, 0, held FROM body
) AS one GROUP BY identifier, incarnation, channel, position HAVING sum(there) <> sum(noted);

-- name: contents
-- Every message has its content. Contents without a message are marked for removal.
SELECT format('message %d: its content is missing', id) FROM message WHERE id NOT IN (SELECT id FROM content)
UNION ALL
SELECT format('message %d: its body has %d octets, %d are noted', m.id, length(c.body), m.length)
FROM message m JOIN content c ON c.id = m.id WHERE length(c.body) <> m.length
UNION ALL
SELECT format('content %d: its message is gone', id) FROM content
WHERE id NOT IN (SELECT id FROM message) AND id NOT IN (SELECT id FROM leftover) AND id NOT IN (SELECT id FROM staged)
UNION ALL
SELECT format('message %d: its content is to be removed', id) FROM leftover WHERE id IN (SELECT id FROM message);

-- name: leases
-- Exactly the leases have a deadline (rules.leases).
SELECT format('unit %d: of kind %s, it has %s deadline', u.id, u.kind, CASE WHEN l.unit IS NULL THEN 'no' ELSE 'a' END)
FROM unit u LEFT JOIN lease l ON l.unit = u.id WHERE (u.kind = 'lease') <> (l.unit IS NOT NULL);

-- name: stagings
-- A staged row belongs to a staging, is counted there, has its content, and is not a message yet (spark 3).
SELECT format('unit %d: of kind %s, it %s', u.id, u.kind, iif(s.unit IS NULL, 'stages nothing', 'has a staging'))
FROM unit u LEFT JOIN staging s ON s.unit = u.id WHERE (u.kind = 'staging') <> (s.unit IS NOT NULL)
UNION ALL
SELECT format('staging %d: %d messages of %d bytes are noted, %d of %d are there',
    s.unit, s.messages, s.size, count(r.id), total(r.length))
FROM staging s LEFT JOIN staged r ON r.unit = s.unit
GROUP BY s.unit HAVING s.messages <> count(r.id) OR s.size <> total(r.length)
UNION ALL
SELECT format('staged message %d: its staging is missing', id) FROM staged WHERE unit NOT IN (SELECT unit FROM staging)
UNION ALL
SELECT format('staged message %d: its content is missing', id) FROM staged WHERE id NOT IN (SELECT id FROM content)
UNION ALL
SELECT format('staged message %d: its body has %d octets, %d are noted', r.id, length(c.body), r.length)
FROM staged r JOIN content c ON c.id = r.id WHERE length(c.body) <> r.length
UNION ALL
SELECT format('staged message %d: it is on a queue, too', id) FROM staged WHERE id IN (SELECT id FROM message)
UNION ALL
SELECT format('staged message %d: its content is to be removed', id) FROM staged WHERE id IN (SELECT id FROM leftover)
UNION ALL
SELECT format('staged message %d: whether it asks for reports cannot be %d', id, reports) FROM staged WHERE reports <> 1
UNION ALL
SELECT format('number %d is staged twice', id) FROM staged GROUP BY id HAVING count(*) > 1;

-- name: readers
-- A reader inside a group has a handle or claims, and a reader that marked a message has a handle.
SELECT format('queue %d, group %s: handle %s is inside, and is closed', queue, hex(group_id), substr(reader, 2)) FROM entered
WHERE substr(reader, 1, 1) = 'h' AND substr(reader, 2) NOT IN (SELECT CAST(id AS TEXT) FROM handle)
UNION ALL
SELECT format('queue %d, group %s: application %s is inside, and has never claimed', queue, hex(group_id), substr(reader, 2))
FROM entered e WHERE substr(reader, 1, 1) = 'a'
    AND NOT EXISTS (SELECT 1 FROM account a WHERE a.queue = e.queue AND a.application = substr(e.reader, 2))
UNION ALL
SELECT format('queue %d, group %s: %s is inside, which is nobody', queue, hex(group_id), reader) FROM entered
WHERE substr(reader, 1, 1) NOT IN ('h', 'a')
UNION ALL
SELECT format('queue %d, group %s: nobody is inside or holds a member, and it is noted', queue, hex(group_id))
FROM entered e WHERE reader IS NULL AND NOT EXISTS (
    SELECT 1 FROM message m WHERE m.queue = e.queue AND m.group_id = e.group_id AND m.state >= 4
)
UNION ALL
SELECT format('message %d: handle %d has marked it, and is closed', message, handle) FROM mark
WHERE handle NOT IN (SELECT id FROM handle);
