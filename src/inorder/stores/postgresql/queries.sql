-- Statements that PostgreSQL needs in another form, each with its reason, in place of those of the same name in
-- stores/sql/. A statement that joins an ordered subquery repeats the order outside: the planner then keeps it without
-- a sort, and guarantees it in no other way.

-- ===== the beginning of every transaction about a queue

-- name: queue state
-- Includes the counts of verbs that were together on the queue.
SELECT counter, reserved, depth, attention, revision FROM counted WHERE queue = ?1 ORDER BY serial DESC LIMIT 1;

-- name: queue state and due work
-- As above, with numbers in place of booleans, and for a verb that writes as `queue state locked`: the revision says
-- whether the queue manager was stopped.
SELECT
    counter, reserved, depth, attention, CASE WHEN r.stopped = 1 THEN -1 ELSE revision END,
    (SELECT min(expires_at) FROM message WHERE queue = ?1 AND expires_at IS NOT NULL AND away = 0 AND claimed IS NULL),
    (SELECT min(due_at) FROM message WHERE queue = ?1 AND due_at IS NOT NULL),
    (SELECT min(lease_ends_at) FROM unit WHERE queue = ?1 AND lease_ends_at IS NOT NULL),
    CAST(EXISTS (SELECT 1 FROM wait WHERE queue = ?1 AND levels IS NOT NULL) AS integer),
    CAST(EXISTS (SELECT 1 FROM mark) AS integer),
    CAST(EXISTS (SELECT 1 FROM entered WHERE queue = ?1) AS integer),
    CAST(EXISTS (SELECT 1 FROM message WHERE queue = ?1 AND reports IS NOT NULL) AS integer),
    CAST(EXISTS (SELECT 1 FROM message WHERE queue = ?1 AND group_id IS NOT NULL) AS integer),
    CAST(EXISTS (SELECT 1 FROM listener WHERE queue = ?1 AND until > clock_timestamp()) AS integer)
FROM counted LEFT JOIN run r ON r.id = 1 WHERE queue = ?1 ORDER BY serial DESC LIMIT 1;

-- name: draw numbers
-- Drawing identifying numbers is not part of a transaction: functions.sql.
SELECT draw(?1);

-- name: set revision of all queues
-- In the order of queues, in which every verb locks them.
UPDATE tally SET revision = (SELECT revision FROM manager)
FROM (SELECT queue FROM tally ORDER BY queue FOR NO KEY UPDATE) AS locked WHERE tally.queue = locked.queue;

-- name: insert queue counters
-- Needs no key against duplicates, because the verb runs alone.
INSERT INTO tally (queue, revision) SELECT ?1, revision FROM manager
WHERE ?2 = 'local' AND NOT EXISTS (SELECT 1 FROM tally WHERE queue = ?1);

-- name: update queue counters
-- For a locked queue, whose row is therefore the newest. It gets a new serial every 64 messages (schema.sql).
UPDATE tally SET
    counter = ?2, reserved = ?3, depth = depth + ?4, arrived = arrived + ?5,
    serial = greatest(serial, (2 * (arrived + ?5) - depth - ?4) / 64)
WHERE ctid = (SELECT ctid FROM tally WHERE queue = ?1 ORDER BY serial DESC LIMIT 1);

-- name: restart unit
-- For a session's unit. A condition on its kind would make the planner use the index of all sessions.
UPDATE unit SET started_at = ?1 WHERE id = ?2 AND connection IS NOT NULL;

-- name: clear attention bits
-- The bit for fronts is kept, because this statement does not check for them.
UPDATE tally SET attention = attention & 256 | ?2 WHERE queue = ?1;

-- ===== the search

-- name: available by place
-- One step into message_place for each kind of head. Each arm is ordered and limited inside, or all arms would be
-- sorted together. The messages are ordered in a subquery, or the planner might read the contents first when the call
-- matches on them.
SELECT * FROM (
    SELECT {narrow} FROM (
        SELECT * FROM message
        WHERE queue = :queue AND head = {head} AND available AND (rank, number, ordinal) > (:rank, :number, :ordinal)
        ORDER BY rank, number, ordinal
    ) AS m {joins}
    WHERE true{chosen}
    ORDER BY m.rank, m.number, m.ordinal LIMIT :limit
) AS next;

-- name: next holder
-- As elsewhere: handles, delayed messages, then units. It starts at the first unit that exists, to skip dead rows of
-- ended ones (fronts.py).
SELECT coalesce(
    (
        SELECT min(message.holder) FROM message
        WHERE queue = ?1 AND NOT available AND number IS NOT NULL AND message.holder > ?2 AND message.holder <= 0
    ),
    (
        SELECT min(message.holder) FROM message
        WHERE queue = ?1 AND NOT available AND number IS NOT NULL
            AND message.holder > ?2 AND message.holder >= (SELECT greatest(1, 2 * min(id)) FROM unit)
    )
);

-- name: messages of holder by place
-- The same with message_held.
SELECT * FROM (
    SELECT {narrow} FROM (
        SELECT * FROM message
        WHERE queue = :queue AND NOT available AND number IS NOT NULL AND message.holder = :wanted AND head = {head}
            AND (rank, number, ordinal) > (:rank, :number, :ordinal)
        ORDER BY rank, number, ordinal
    ) AS m {joins}
    WHERE true{chosen}
    ORDER BY m.rank, m.number, m.ordinal LIMIT :limit
) AS next;

-- name: get available
-- The first messages of all that are available, with their contents.
SELECT {got}
FROM ({first available}) AS m JOIN content c ON c.id = m.id
ORDER BY m.rank, m.number, m.ordinal;

-- name: get available singles
-- As `available by place`, with the messages ordered in a subquery. With a direct join by id, a plan made on an empty
-- table could read all of them by that index, and sort.
SELECT {got}
FROM (
    SELECT * FROM message WHERE queue = ?1 AND head = 2 AND available ORDER BY rank, number, ordinal
) AS m JOIN content c ON c.id = m.id
ORDER BY m.rank, m.number, m.ordinal LIMIT ?2;

-- name: get available within
-- The same up to the message at which their bodies have ?3 bytes, so that the database sends no more of them.
SELECT {got}
FROM (
    SELECT first_ones.*, sum(length) OVER (ORDER BY rank, number, ordinal) - length AS earlier
    FROM ({first available}) AS first_ones
) AS m JOIN content c ON c.id = m.id
WHERE m.earlier < ?3
ORDER BY m.rank, m.number, m.ordinal;

-- name: queue counters
-- As `queue state`.
SELECT queue, depth, arrived, counter FROM counted
WHERE queue BETWEEN coalesce(?1, 1) AND coalesce(?1, 9223372036854775807) ORDER BY queue;

-- ===== claims and surveys

-- name: place of nth message
-- The place of the message that has a given number of messages before it on its level.
WITH {places}
SELECT number, ordinal FROM head ORDER BY number, ordinal LIMIT 1 OFFSET :before;

-- name: messages of stretch
-- A stretch in physical order, from the end of the previous page.
SELECT {columns}
FROM (
    {heads}
    SELECT * FROM (
        SELECT id, number, ordinal FROM message
        WHERE queue = :queue AND head = {head} AND available AND rank = :rank
            AND (number, ordinal) >= (:number, :ordinal) AND (number, ordinal) <= (:last_number, :last_ordinal)
        ORDER BY number, ordinal LIMIT :limit
    ) AS arm
    {/heads}
    ORDER BY number, ordinal LIMIT :limit
) AS next JOIN message m ON m.id = next.id JOIN content c ON c.id = m.id
ORDER BY next.number, next.ordinal;

-- name: messages of groups
-- Some groups, or messages in none, by their heads, one after the other; each row with its head.
SELECT {columns}
FROM (
    SELECT h.id AS head, coalesce(m.id, h.id) AS id, row_number() OVER (
        ORDER BY h.number, h.ordinal, m.sequence_number, m."offset", m.rank, m.number, m.ordinal
    ) AS nth
    FROM unnest(CAST(:heads AS bigint[])) AS wanted(value) JOIN message h ON h.id = wanted.value
        LEFT JOIN message m ON m.queue = :queue AND m.group_id = h.group_id AND m.available
    WHERE h.group_id IS NULL OR m.id IS NOT NULL
    ORDER BY nth LIMIT :most
) AS next JOIN message m ON m.id = next.id JOIN content c ON c.id = m.id
ORDER BY next.nth;

-- name: places of groups
-- The places of groups, each that of its first head. For a claim only its own heads count, because others come and go,
-- and its other messages are not read.
SELECT wanted.value, h.rank, h.number, h.ordinal
FROM unnest(CAST(:groups AS bytea[])) AS wanted(value) LEFT JOIN LATERAL (
    SELECT rank, number, ordinal FROM message
    WHERE queue = :queue AND group_id = wanted.value AND sequence_number = 1 AND "offset" = 0 AND number IS NOT NULL
        AND (CAST(:claim AS bigint) IS NULL OR unit + 0 = :claim)
    ORDER BY rank, number, ordinal LIMIT 1
) AS h ON true;
