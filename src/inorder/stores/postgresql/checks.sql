-- Conditions that hold for a store whenever no transaction is open, as in sqlite/checks.sql. Each statement returns a
-- text for every violation. They read the whole store and are not meant for daily use.

-- name: references
-- Every reference leads to an existing row, which is not enforced at each statement.
SELECT format('table %s, row %s: what it refers to in %s is missing', r.of, r.id, r.target) FROM (
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
SELECT format('definition %s: %s %s is defined as another', id, type, name) FROM definition
WHERE CAST(attributes AS json) ->> 'name' IS DISTINCT FROM name OR CAST(attributes AS json) ->> 'type' IS DISTINCT FROM type;

-- name: objects
-- The same for channels, processes, connections, addresses, users and tokens; there is no other kind.
SELECT format('%s %s: it is defined as another, or of no kind', type, name) FROM object
WHERE type NOT IN ('channel', 'process', 'connection', 'address', 'user', 'token') OR CAST(attributes AS json) ->> 'name' IS DISTINCT FROM name;

-- name: messages
-- The columns of a message are valid and consistent with each other.
SELECT format('message %s: its row cannot be as it is', id) FROM message WHERE NOT (
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
SELECT format('queue %s: the depth is noted as %s, %s messages are there', t.queue, t.depth, count(m.id))
FROM counted t LEFT JOIN message m ON m.queue = t.queue AND m.away = 0
GROUP BY t.queue, t.depth HAVING t.depth <> count(m.id);

-- name: slots
-- Only queues that keep no order have slots, and their definitions agree.
SELECT format('queue %s: session %s has a slot, and it keeps its order', queue, session) FROM slot
WHERE queue NOT IN (SELECT queue FROM tally WHERE unordered = 1)
UNION ALL
SELECT format('queue %s: it is noted as one that %s order, its definition says %s', t.queue,
    CASE WHEN t.unordered = 1 THEN 'keeps no' ELSE 'keeps its' END, CAST(d.attributes AS json) ->> 'read_order')
FROM tally t JOIN definition d ON d.id = t.queue
WHERE (t.unordered = 1) <> (coalesce(CAST(d.attributes AS json) ->> 'read_order', '') = 'unordered');

-- name: manager
-- The queue manager has a row.
SELECT 'the queue manager is missing' WHERE NOT EXISTS (SELECT 1 FROM manager);

-- name: queue counters
-- Every local queue has counters, no other queue does, and the counters are valid.
SELECT format('queue %s: it is defined and not counted', id) FROM definition
WHERE type = 'local' AND id NOT IN (SELECT queue FROM tally)
UNION ALL
SELECT format('queue %s: it is counted and not defined', queue) FROM tally
WHERE queue NOT IN (SELECT id FROM definition WHERE type = 'local')
UNION ALL
SELECT format('queue %s: its counters cannot be as they are', queue) FROM tally
WHERE NOT (counter BETWEEN 0 AND reserved AND depth BETWEEN 0 AND arrived AND unordered BETWEEN 0 AND 1)
UNION ALL
SELECT format('queue %s: what session %s has counted cannot be', queue, session) FROM slot
WHERE NOT (arrived >= 0 AND arrived >= depth)
UNION ALL
SELECT format('queue %s: it is counted in %s rows', queue, count(*)) FROM tally GROUP BY queue HAVING count(*) > 1;

-- name: fronts
-- No message before a front is available, and each queue records whether it has fronts (fronts.py).
SELECT format('message %s: it is available behind the front of its queue', m.id)
FROM tally t JOIN message m ON m.queue = t.queue
WHERE m.available AND m.number < t.fronts[10 * m.head + m.rank + 10]
UNION ALL
SELECT format('queue %s: it has fronts, and does not say so', queue) FROM tally
WHERE fronts IS NOT NULL AND (attention & 256 = 0 OR cardinality(fronts) <> 30);

-- name: attention
-- The attention bits of a queue cover every condition that verbs must check, and its definition bits are right.
SELECT format('queue %s: there is something to look for, and it says %s', queue, attention) FROM tally t
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
SELECT format('queue %s: it knows the definitions of revision %s, they have %s', queue, t.revision, m.revision)
FROM tally t, manager m WHERE t.revision NOT BETWEEN 1 AND m.revision;

-- name: places
-- A number that was drawn is never drawn again (B-2).
SELECT format('queue %s: number %s has been drawn, the counter says %s', t.queue, max(m.number), t.counter)
FROM counted t JOIN message m ON m.queue = t.queue GROUP BY t.queue, t.counter HAVING max(m.number) > t.counter;

-- name: names
-- Nor is an identifying number.
SELECT format('number %s names something, the counter says %s', used.most, n.last_value)
FROM number n, (
    SELECT max(id) AS most FROM (
        SELECT id FROM definition UNION ALL SELECT id FROM process UNION ALL SELECT id FROM connection
        UNION ALL SELECT id FROM handle UNION ALL SELECT id FROM unit UNION ALL SELECT id FROM message
        UNION ALL SELECT id FROM staged
    ) AS name
) AS used
WHERE used.most > n.last_value;

-- name: unplaced
-- Only an unconfirmed put may lack a number (B-5).
SELECT format('message %s: it is in state %s and has no place', id, state) FROM message
WHERE number IS NULL AND state <> 1;

-- name: away
-- A get in a unit of work reduces the depth at once, a get under a confirm id when it is confirmed (R4.6).
SELECT format('message %s: in state %s, held by a %s unit, it is %s the depth', m.id, m.state, u.kind,
    CASE WHEN m.away = 1 THEN 'not in' ELSE 'in' END)
FROM message m JOIN unit u ON u.id = m.unit
WHERE (m.away = 1) <> (m.state IN (4, 5) AND u.kind IN ('session', 'prepared', 'lease'));

-- name: gathering
-- The record of each group has the right number of available messages and the right end.
SELECT format('queue %s, group %s: %s available and end %s are noted, there are %s and %s',
    queue, encode(group_id, 'hex'), max(noted), coalesce(CAST(max(noted_last) AS text), 'none'), max(available),
    coalesce(CAST(max(last) AS text), 'none'))
FROM (
    SELECT queue, group_id, available AS noted, last AS noted_last, 0 AS available, NULL AS last FROM gathering
    UNION ALL
    SELECT queue, group_id, 0, NULL, count(*), min(CASE WHEN flags & 16 <> 0 THEN sequence_number END) FROM message
    WHERE group_id IS NOT NULL AND available GROUP BY queue, group_id
) AS compared
GROUP BY queue, group_id HAVING max(noted) <> max(available) OR max(noted_last) IS DISTINCT FROM max(last);

-- name: heads
-- A complete group never looks unfinished, or a reader of whole groups would miss it.
SELECT format('message %s: nothing of what it begins is missing, it is marked as unfinished', h.id)
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
-- No confirm id or lock id without messages remains (A-9, A-12).
SELECT format('unit %s: a %s id that holds nothing', id, kind) FROM unit u
WHERE kind IN ('confirm', 'lock')
    AND NOT EXISTS (SELECT 1 FROM message WHERE unit = u.id) AND NOT EXISTS (SELECT 1 FROM message WHERE lock = u.id);

-- name: holders
-- The units and lock ids of a message belong to its own queue (A-15).
SELECT format('message %s: it is held by unit %s, a %s id', m.id, u.id, u.kind) FROM message m JOIN unit u ON u.id = m.unit
WHERE u.kind = 'lock' OR (u.kind IN ('confirm', 'claim') AND u.queue <> m.queue)
UNION ALL
SELECT format('message %s: it is locked by unit %s, of kind %s', m.id, u.id, u.kind) FROM message m JOIN unit u ON u.id = m.lock
WHERE u.kind <> 'lock' OR u.queue <> m.queue
UNION ALL
SELECT format('message %s: it was locked with confirm id %s, and is not', id, lock_confirm) FROM message
WHERE lock_confirm IS NOT NULL AND lock IS NULL;

-- name: claims
-- A claim holds as many messages as it started with, at positions 1, 2, 3 ...; only claims have positions.
SELECT format('claim %s of %s: %s messages are noted, it holds %s, at positions %s to %s', c.number, c.application,
    c.messages, count(m.id), coalesce(CAST(min(m.claimed) AS text), 'none'), coalesce(CAST(max(m.claimed) AS text), 'none'))
FROM claim c LEFT JOIN message m ON m.unit = c.unit
GROUP BY c.unit HAVING count(m.id) <> c.messages OR count(m.claimed) <> c.messages
    OR min(m.claimed) IS DISTINCT FROM 1 OR max(m.claimed) IS DISTINCT FROM c.messages
UNION ALL
SELECT format('unit %s: a claim that nobody has', id) FROM unit WHERE kind = 'claim' AND id NOT IN (SELECT unit FROM claim)
UNION ALL
SELECT format('message %s: it has a position in a claim, and none holds it', m.id)
FROM message m LEFT JOIN unit u ON u.id = m.unit WHERE m.claimed IS NOT NULL AND u.kind IS DISTINCT FROM 'claim'
UNION ALL
SELECT format('claim %s of %s: the last one that is over is %s', c.number, c.application, a.settled)
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
SELECT format('queue %s: channel %s has sent from it, and has never claimed', queue, channel) FROM sent s
WHERE NOT EXISTS (SELECT 1 FROM account a WHERE a.queue = s.queue AND a.application = 'channel ' || s.channel);

-- name: bodies
-- The pieces of a body that arrives for a channel are together as long as is noted.
SELECT format('channel %s, body %s: its pieces have %s octets, %s are noted', channel, position, sum(there), sum(noted))
FROM (
    SELECT identifier, incarnation, channel, position, length(data) AS there, 0 AS noted FROM piece
    UNION ALL
    SELECT identifier, incarnation, channel, position, 0, held FROM body
) AS one GROUP BY identifier, incarnation, channel, position HAVING sum(there) <> sum(noted);

-- name: contents
-- Every message has its content. Contents without a message are marked for removal.
SELECT format('message %s: its content is missing', id) FROM message WHERE id NOT IN (SELECT id FROM content)
UNION ALL
SELECT format('message %s: its body has %s octets, %s are noted', m.id, octet_length(c.body), m.length)
FROM message m JOIN content c ON c.id = m.id WHERE octet_length(c.body) <> m.length
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
SELECT format('staging %s: %s messages of %s bytes are noted, %s of %s are there',
    s.unit, s.messages, s.size, count(r.id), coalesce(sum(r.length), 0))
FROM staging s LEFT JOIN staged r ON r.unit = s.unit
GROUP BY s.unit HAVING s.messages <> count(r.id) OR s.size <> coalesce(sum(r.length), 0)
UNION ALL
SELECT format('staged message %s: its staging is missing', id) FROM staged WHERE unit NOT IN (SELECT unit FROM staging)
UNION ALL
SELECT format('staged message %s: its content is missing', id) FROM staged WHERE id NOT IN (SELECT id FROM content)
UNION ALL
SELECT format('staged message %s: its body has %s octets, %s are noted', r.id, octet_length(c.body), r.length)
FROM staged r JOIN content c ON c.id = r.id WHERE octet_length(c.body) <> r.length
UNION ALL
SELECT format('staged message %s: it is on a queue, too', id) FROM staged WHERE id IN (SELECT id FROM message)
UNION ALL
SELECT format('staged message %s: its content is to be removed', id) FROM staged WHERE id IN (SELECT id FROM leftover)
UNION ALL
SELECT format('staged message %s: whether it asks for reports cannot be %s', id, reports) FROM staged WHERE reports <> 1
UNION ALL
SELECT format('number %s is staged twice', id) FROM staged GROUP BY id HAVING count(*) > 1;

-- name: readers
-- A reader inside a group has a handle or claims, and a reader that marked a message has a handle.
SELECT format('queue %s, group %s: handle %s is inside, and is closed', queue, encode(group_id, 'hex'), substr(reader, 2))
FROM entered WHERE reader LIKE 'h%' AND substr(reader, 2) NOT IN (SELECT CAST(id AS text) FROM handle)
UNION ALL
SELECT format('queue %s, group %s: application %s is inside, and has never claimed',
    queue, encode(group_id, 'hex'), substr(reader, 2))
FROM entered e WHERE reader LIKE 'a%'
    AND NOT EXISTS (SELECT 1 FROM account a WHERE a.queue = e.queue AND a.application = substr(e.reader, 2))
UNION ALL
SELECT format('queue %s, group %s: %s is inside, which is nobody', queue, encode(group_id, 'hex'), reader) FROM entered
WHERE substr(reader, 1, 1) NOT IN ('h', 'a')
UNION ALL
SELECT format('queue %s, group %s: nobody is inside or holds a member, and it is noted', queue, encode(group_id, 'hex'))
FROM entered e WHERE reader IS NULL AND NOT EXISTS (
    SELECT 1 FROM message m WHERE m.queue = e.queue AND m.group_id = e.group_id AND m.state >= 4
)
UNION ALL
SELECT format('message %s: handle %s has marked it, and is closed', message, handle) FROM mark
WHERE handle NOT IN (SELECT id FROM handle);
