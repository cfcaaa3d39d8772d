-- Conditions that hold for a store in any database whenever no transaction is open. Each statement returns a text for
-- every violation. They read the whole store and are not meant for daily use.

-- name: unplaced
-- Only an unconfirmed put may lack a number (B-5).
SELECT format('message %s: it is in state %s and has no place', id, state) FROM message
WHERE number IS NULL AND state <> 1;

-- name: away
-- A get in a unit of work reduces the depth at once, a get under a confirm id when it is confirmed (R4.6).
SELECT format('message %s: in state %s, held by a %s unit, it is %s in the depth', m.id, m.state, u.kind,
    CASE WHEN m.away = 1 THEN 'not counted' ELSE 'counted' END)
FROM message m JOIN unit u ON u.id = m.unit
WHERE (m.away = 1) <> (m.state IN (4, 5) AND u.kind IN ('session', 'prepared', 'lease'));

-- name: gathering
-- The record of each group has the right number of available messages and the right end.
SELECT format('queue %s, group %s: %s available members and end %s are recorded, but it has %s and %s',
    queue, hex(group_id), max(noted), coalesce(CAST(max(noted_last) AS TEXT), 'none'), max(available),
    coalesce(CAST(max(last) AS TEXT), 'none'))
FROM (
    SELECT queue, group_id, available AS noted, last AS noted_last, 0 AS available, NULL AS last FROM gathering
    UNION ALL
    SELECT queue, group_id, 0, NULL, count(*), min(CASE WHEN flags & 16 <> 0 THEN sequence_number END) FROM message
    WHERE group_id IS NOT NULL AND available GROUP BY queue, group_id
) AS compared
GROUP BY queue, group_id HAVING max(noted) <> max(available) OR max(noted_last) IS DISTINCT FROM max(last);

-- name: heads
-- A complete group never looks unfinished, or a reader of whole groups would miss it.
SELECT format('message %s: it begins a complete group or message, but is marked as unfinished', h.id)
FROM message h LEFT JOIN (
    SELECT queue, group_id, min(CASE WHEN flags & 16 <> 0 THEN sequence_number END) AS last FROM message
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
-- No confirm id or lock id remains without messages (A-9, A-12).
SELECT format('unit %s: a %s id that holds nothing', id, kind) FROM unit u
WHERE kind IN ('confirm', 'lock')
    AND NOT EXISTS (SELECT 1 FROM message WHERE unit = u.id) AND NOT EXISTS (SELECT 1 FROM message WHERE lock = u.id);

-- name: holders
-- The units and lock ids of a message belong to its own queue (A-15).
SELECT format('message %s: it is held by unit %s, a %s id',
    m.id, u.id, u.kind) FROM message m JOIN unit u ON u.id = m.unit
WHERE u.kind = 'lock' OR (u.kind IN ('confirm', 'claim') AND u.queue <> m.queue)
UNION ALL
SELECT format('message %s: it is locked by unit %s, of kind %s',
    m.id, u.id, u.kind) FROM message m JOIN unit u ON u.id = m.lock
WHERE u.kind <> 'lock' OR u.queue <> m.queue
UNION ALL
SELECT format('message %s: it has the confirm id %s of a lock, but is not locked', id, lock_confirm) FROM message
WHERE lock_confirm IS NOT NULL AND lock IS NULL;

-- name: claims
-- A claim holds as many messages as it started with, at positions 1, 2, 3 ...; only claims have positions.
SELECT format('claim %s of %s: %s messages are recorded, but it holds %s, at positions %s to %s',
    c.number, c.application,
    c.messages, count(m.id), coalesce(CAST(min(m.claimed) AS TEXT), 'none'), coalesce(CAST(max(m.claimed) AS TEXT), 'none'))
FROM claim c LEFT JOIN message m ON m.unit = c.unit
GROUP BY c.unit HAVING count(m.id) <> c.messages OR count(m.claimed) <> c.messages
    OR min(m.claimed) IS DISTINCT FROM 1 OR max(m.claimed) IS DISTINCT FROM c.messages
UNION ALL
SELECT format('unit %s: a claim without an application',
    id) FROM unit WHERE kind = 'claim' AND id NOT IN (SELECT unit FROM claim)
UNION ALL
SELECT format('message %s: it has a position in a claim, but no claim holds it', m.id)
FROM message m LEFT JOIN unit u ON u.id = m.unit WHERE m.claimed IS NOT NULL AND u.kind IS DISTINCT FROM 'claim'
UNION ALL
SELECT format('claim %s of %s: the last settled claim is %s', c.number, c.application, a.settled)
FROM claim c JOIN account a ON a.queue = c.queue AND a.application = c.application
WHERE c.number NOT BETWEEN a.settled AND a.settled + 2
UNION ALL
SELECT format('claim %s of %s: it was taken ahead of a claim that is not planned', c.number, c.application)
FROM claim c JOIN account a ON a.queue = c.queue AND a.application = c.application
WHERE c.number = a.settled + 2 AND (c.planned = 1 OR NOT EXISTS (
    SELECT 1 FROM claim p
    WHERE p.queue = c.queue AND p.application = c.application AND p.number = a.settled + 1 AND p.planned = 1
));

-- name: channels
-- A channel has claimed every batch that it has sent (C-1).
SELECT format('queue %s: channel %s has sent from it, but has never claimed', queue, channel) FROM sent s
WHERE NOT EXISTS (SELECT 1 FROM account a WHERE a.queue = s.queue AND a.application = 'channel ' || s.channel);

-- name: bodies
-- The pieces of a body that arrives for a channel have together the recorded length.
SELECT format('channel %s, body %s: its pieces have %s bytes, but %s are recorded',
    channel, position, sum(there), sum(noted))
FROM (
    SELECT identifier, incarnation, channel, position, length(data) AS there, 0 AS noted FROM piece
    UNION ALL
    SELECT identifier, incarnation, channel, position, 0, held FROM body
) AS one GROUP BY identifier, incarnation, channel, position HAVING sum(there) <> sum(noted);

-- name: contents
-- Every message has its content. Contents without a message are marked for removal.
SELECT format('message %s: its content is missing', id) FROM message WHERE id NOT IN (SELECT id FROM content)
UNION ALL
SELECT format('message %s: its body has %s bytes, but %s are recorded', m.id, length(c.body), m.length)
FROM message m JOIN content c ON c.id = m.id WHERE length(c.body) <> m.length
UNION ALL
SELECT format('content %s: its message is gone', id) FROM content
WHERE id NOT IN (SELECT id FROM message) AND id NOT IN (SELECT id FROM leftover) AND id NOT IN (SELECT id FROM staged)
UNION ALL
SELECT format('message %s: its content is to be removed', id) FROM leftover WHERE id IN (SELECT id FROM message);

-- name: leases
-- Exactly the leases have a deadline (rules.leases).
SELECT format('unit %s: of kind %s, it has %s deadline', u.id, u.kind, CASE WHEN l.unit IS NULL THEN 'no' ELSE 'a' END)
FROM unit u LEFT JOIN lease l ON l.unit = u.id WHERE (u.kind = 'lease') <> (l.unit IS NOT NULL);

-- name: stagings
-- A staged row belongs to a staging, is counted there, has its content, and is not a message yet (spark 3).
SELECT format('unit %s: of kind %s, it %s', u.id, u.kind,
    CASE WHEN s.unit IS NULL THEN 'stages nothing' ELSE 'has a staging' END)
FROM unit u LEFT JOIN staging s ON s.unit = u.id WHERE (u.kind = 'staging') <> (s.unit IS NOT NULL)
UNION ALL
SELECT format('staging %s: %s messages of %s bytes are recorded, but it has %s of %s bytes',
    s.unit, s.messages, s.size, count(r.id), coalesce(sum(r.length), 0))
FROM staging s LEFT JOIN staged r ON r.unit = s.unit
GROUP BY s.unit HAVING s.messages <> count(r.id) OR s.size <> coalesce(sum(r.length), 0)
UNION ALL
SELECT format('staged message %s: its staging is missing', id) FROM staged WHERE unit NOT IN (SELECT unit FROM staging)
UNION ALL
SELECT format('staged message %s: its content is missing', id) FROM staged WHERE id NOT IN (SELECT id FROM content)
UNION ALL
SELECT format('staged message %s: its body has %s bytes, but %s are recorded', r.id, length(c.body), r.length)
FROM staged r JOIN content c ON c.id = r.id WHERE length(c.body) <> r.length
UNION ALL
SELECT format('staged message %s: it is also on a queue', id) FROM staged WHERE id IN (SELECT id FROM message)
UNION ALL
SELECT format('staged message %s: its content is to be removed', id) FROM staged WHERE id IN (SELECT id FROM leftover)
UNION ALL
SELECT format('staged message %s: its mark for reports cannot be %s', id, reports) FROM staged WHERE reports <> 1
UNION ALL
SELECT format('number %s is staged twice', id) FROM staged GROUP BY id HAVING count(*) > 1;

-- name: readers
-- A reader inside a group has a handle or claims, and a reader that marked a message has a handle.
SELECT format('queue %s, group %s: handle %s is inside, but is closed', queue, hex(group_id), substr(reader, 2))
FROM entered WHERE substr(reader, 1, 1) = 'h' AND substr(reader, 2) NOT IN (SELECT CAST(id AS TEXT) FROM handle)
UNION ALL
SELECT format('queue %s, group %s: application %s is inside, but has never claimed',
    queue, hex(group_id), substr(reader, 2))
FROM entered e WHERE substr(reader, 1, 1) = 'a'
    AND NOT EXISTS (SELECT 1 FROM account a WHERE a.queue = e.queue AND a.application = substr(e.reader, 2))
UNION ALL
SELECT format('queue %s, group %s: %s is inside, but is neither a handle nor an application',
    queue, hex(group_id), reader) FROM entered
WHERE substr(reader, 1, 1) NOT IN ('h', 'a')
UNION ALL
SELECT format('queue %s, group %s: it is recorded, but no reader is inside and no unit holds a member',
    queue, hex(group_id))
FROM entered e WHERE reader IS NULL AND NOT EXISTS (
    SELECT 1 FROM message m WHERE m.queue = e.queue AND m.group_id = e.group_id AND m.state >= 4
)
UNION ALL
SELECT format('message %s: handle %s has marked it, but is closed', message, handle) FROM mark
WHERE handle NOT IN (SELECT id FROM handle);
