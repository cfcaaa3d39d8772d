-- Statements that PostgreSQL needs in another form, each with its reason, in place of those of the same name in
-- stores/sql/. A statement that joins an ordered subquery repeats the order outside: the planner then keeps it without
-- a sort, and guarantees it in no other way.

-- ===== the beginning of every transaction about a queue

-- name: queue state
-- Includes the counts of verbs that were together on the queue.
SELECT counter, reserved, depth, attention, revision FROM counted WHERE queue = ?1 ORDER BY serial DESC LIMIT 1;

-- name: queue state and due work
-- As above, and with numbers in place of booleans.
SELECT
    counter, reserved, depth, attention, revision,
    (SELECT min(expires_at) FROM message WHERE queue = ?1 AND expires_at IS NOT NULL AND away = 0 AND claimed IS NULL),
    (SELECT min(due_at) FROM message WHERE queue = ?1 AND due_at IS NOT NULL),
    (SELECT min(lease_ends_at) FROM unit WHERE queue = ?1 AND lease_ends_at IS NOT NULL),
    CAST(EXISTS (SELECT 1 FROM wait WHERE queue = ?1 AND levels IS NOT NULL) AS integer),
    CAST(EXISTS (SELECT 1 FROM mark) AS integer),
    CAST(EXISTS (SELECT 1 FROM entered WHERE queue = ?1) AS integer),
    CAST(EXISTS (SELECT 1 FROM message WHERE queue = ?1 AND reports IS NOT NULL) AS integer),
    CAST(EXISTS (SELECT 1 FROM message WHERE queue = ?1 AND group_id IS NOT NULL) AS integer),
    CAST(EXISTS (SELECT 1 FROM listener WHERE queue = ?1 AND until > clock_timestamp()) AS integer)
FROM counted WHERE queue = ?1 ORDER BY serial DESC LIMIT 1;

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

-- name: doubtful groups
-- Heads of groups that look complete but are not plain, and whether a member breaks the sequence.
WITH {chosen},
reached AS MATERIALIZED (
    SELECT id, group_id, number, ordinal, messages FROM (
        SELECT h.*, g.available AS messages, sum(coalesce(g.available, 1)) OVER (
            ORDER BY h.number, h.ordinal ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING
        ) AS messages_earlier
        FROM head h LEFT JOIN gathering g ON g.queue = :queue AND g.group_id = h.group_id
    ) AS counted
    WHERE messages_earlier IS NULL OR messages_earlier + 1 < :most
),
doubtful AS MATERIALIZED (
    SELECT * FROM reached h WHERE group_id IS NOT NULL AND (
        SELECT count(*) = h.messages AND max(m.number) <= :horizon AND NOT bool_or(m.flags & 6 <> 0 OR m."offset" <> 0)
            AND count(*) <= 32
            AND sum(CAST(1 AS bigint) << least(m.sequence_number, 32)) =
                (CAST(2 AS bigint) << CAST(least(count(*), 32) AS integer)) - 2
            AND min(CASE WHEN m.flags & 16 <> 0 THEN m.sequence_number END) = count(*)
        FROM message m WHERE m.queue = :queue AND m.group_id = h.group_id AND m.available
    ) IS NOT TRUE
),
member AS (
    SELECT
        h.id, h.group_id, h.number, h.ordinal, m.number AS its_number, m.sequence_number AS sequence, m."offset" AS start,
        m.flags, CASE WHEN m.original_length = -1 THEN m.length ELSE m.original_length END AS length,
        lead(m.sequence_number) OVER w AS next_sequence, lead(m."offset") OVER w AS next_start
    FROM doubtful h JOIN message m ON m.queue = :queue AND m.group_id = h.group_id AND m.available
    WINDOW w AS (PARTITION BY h.id ORDER BY m.sequence_number, m."offset")
)
SELECT id, group_id, number, ordinal, bool_or(its_number > :horizon OR NOT CASE
    WHEN flags & 6 <> 0 AND flags & 4 = 0 THEN
        next_sequence IS NOT DISTINCT FROM sequence AND next_start IS NOT DISTINCT FROM start + length AND length > 0
    WHEN flags & 16 <> 0 OR flags & 24 = 0 THEN next_sequence IS NULL
    ELSE next_sequence IS NOT DISTINCT FROM sequence + 1 AND next_start IS NOT DISTINCT FROM 0
END) FROM member
GROUP BY id, group_id, number, ordinal ORDER BY number, ordinal;

-- name: place of nth message
-- The place of the message that has a given number of messages before it on its level.
WITH {places}
SELECT number, ordinal FROM head ORDER BY number, ordinal LIMIT 1 OFFSET :before;

-- name: messages of stretch
-- A stretch in physical order, from the end of the previous page.
SELECT {columns}
FROM (
    SELECT * FROM (
        SELECT id, number, ordinal FROM message
        WHERE queue = :queue AND head = 2 AND available AND rank = :rank
            AND (number, ordinal) >= (:number, :ordinal) AND (number, ordinal) <= (:last_number, :last_ordinal)
        ORDER BY number, ordinal LIMIT :limit
    ) AS whole
    UNION ALL
    SELECT * FROM (
        SELECT id, number, ordinal FROM message
        WHERE queue = :queue AND head = 1 AND available AND rank = :rank
            AND (number, ordinal) >= (:number, :ordinal) AND (number, ordinal) <= (:last_number, :last_ordinal)
        ORDER BY number, ordinal LIMIT :limit
    ) AS unfinished
    UNION ALL
    SELECT * FROM (
        SELECT id, number, ordinal FROM message
        WHERE queue = :queue AND head = 0 AND available AND rank = :rank
            AND (number, ordinal) >= (:number, :ordinal) AND (number, ordinal) <= (:last_number, :last_ordinal)
        ORDER BY number, ordinal LIMIT :limit
    ) AS inner_ones
    ORDER BY number, ordinal LIMIT :limit
) AS next JOIN message m ON m.id = next.id JOIN content c ON c.id = m.id
ORDER BY next.number, next.ordinal;

-- name: heads of stretch
-- The groups of a stretch in logical order, some at a time, with the apparent number of messages of each.
SELECT h.id, h.group_id, h.number, h.ordinal, greatest(1, coalesce(g.available, 1))
FROM message h LEFT JOIN gathering g ON g.queue = :queue AND g.group_id = h.group_id
WHERE h.queue = :queue AND h.head = 2 AND h.available AND h.rank = :rank
    AND (h.number, h.ordinal) >= (:number, :ordinal) AND (h.number, h.ordinal) <= (:last_number, :last_ordinal)
ORDER BY h.number, h.ordinal;

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
