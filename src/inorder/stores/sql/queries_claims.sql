-- Statements for bulk reads: claims and surveys. Placeholders in {braces} are filled in from fragments.sql
-- (statements.py): {chosen} with the next messages of one level, {columns} with the columns of a bulk row.

-- ===== the next messages of one level

-- name: doubtful groups
-- Heads of groups that look complete but are not plain (messages 1 to n of one piece each, with the last one marked),
-- and whether a member breaks the sequence; the rules judge these. It reads heads up to the limit of messages before
-- them, and one more, which shows whether messages remain beyond the limit.
WITH {chosen},
reached AS MATERIALIZED (
    SELECT id, group_id, number, ordinal, messages FROM (
        SELECT h.*, g.available AS messages, sum(coalesce(g.available, 1)) OVER (
            ORDER BY h.number, h.ordinal ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING
        ) AS messages_earlier
        FROM head h LEFT JOIN gathering g ON g.queue = :queue AND g.group_id = h.group_id
    ) AS running
    WHERE messages_earlier IS NULL OR messages_earlier + 1 < :most
),
doubtful AS MATERIALIZED (
    SELECT * FROM reached h WHERE group_id IS NOT NULL AND (
        SELECT count(*) = h.messages AND max(m.number) <= :horizon
            AND max(CASE WHEN m.flags & 6 <> 0 OR m."offset" <> 0 THEN 1 ELSE 0 END) = 0 AND count(*) <= 32
            AND sum(CAST(1 AS BIGINT) << min(m.sequence_number, 32))
                = (CAST(2 AS BIGINT) << CAST(min(count(*), 32) AS INTEGER)) - 2
            AND min(CASE WHEN m.flags & 16 <> 0 THEN m.sequence_number END) = count(*)
        FROM message m INDEXED BY message_member WHERE m.queue = :queue AND m.group_id = h.group_id AND m.available
    ) IS NOT TRUE
),
member AS (
    SELECT
        h.id, h.group_id, h.number, h.ordinal, m.number AS its_number, m.sequence_number AS sequence, m."offset" AS start,
        m.flags, CASE WHEN m.original_length = -1 THEN m.length ELSE m.original_length END AS length,
        lead(m.sequence_number) OVER w AS next_sequence, lead(m."offset") OVER w AS next_start
    FROM doubtful h CROSS JOIN message m INDEXED BY message_member ON m.queue = :queue
        AND m.group_id = h.group_id AND m.available
    WINDOW w AS (PARTITION BY h.id ORDER BY m.sequence_number, m."offset")
)
SELECT id, group_id, number, ordinal, max(CASE WHEN its_number > :horizon OR NOT CASE
    WHEN flags & 6 <> 0 AND flags & 4 = 0 THEN
        next_sequence IS NOT DISTINCT FROM sequence AND next_start IS NOT DISTINCT FROM start + length AND length > 0
    WHEN flags & 16 <> 0 OR flags & 24 = 0 THEN next_sequence IS NULL
    ELSE next_sequence IS NOT DISTINCT FROM sequence + 1 AND next_start IS NOT DISTINCT FROM 0
END THEN 1 ELSE 0 END) FROM member
GROUP BY id, group_id, number, ordinal ORDER BY number, ordinal;

-- name: claim messages
-- A claim takes the next messages of one level in physical order, in one statement, and records their order.
WITH {chosen}, {numbered}
UPDATE message SET state = :state, unit = :unit, claimed = :base + chosen.nth, co_op_marked_at = NULL
FROM chosen WHERE message.id = chosen.id AND message.state = 2;

-- name: claim plain groups
-- The same in logical order, for whole groups in which the sequence number gives the position of each member.
WITH {chosen}, {running},
place AS MATERIALIZED (
    SELECT id, messages_sum AS nth FROM chosen WHERE group_id IS NULL
    UNION ALL
    SELECT m.id, c.messages_sum - c.messages + m.sequence_number
    FROM chosen c CROSS JOIN message m INDEXED BY message_member
    WHERE m.queue = :queue AND m.group_id = c.group_id AND m.available
)
UPDATE message SET state = :state, unit = :unit, claimed = :base + place.nth, co_op_marked_at = NULL
FROM place WHERE message.id = +place.id AND message.state = 2;

-- name: claim groups
-- Whole groups that may have messages of several pieces, all in order.
WITH {chosen}, {running},
member AS (
    SELECT id, number, ordinal, 1 AS sequence, 0 AS start FROM chosen WHERE group_id IS NULL
    UNION ALL
    SELECT m.id, c.number, c.ordinal, m.sequence_number, m."offset"
    FROM chosen c CROSS JOIN message m INDEXED BY message_member
    WHERE m.queue = :queue AND m.group_id = c.group_id AND m.available
),
place AS MATERIALIZED (SELECT id, row_number() OVER (ORDER BY number, ordinal, sequence, start) AS nth FROM member)
UPDATE message SET state = :state, unit = :unit, claimed = :base + place.nth, co_op_marked_at = NULL
FROM place WHERE message.id = +place.id AND message.state = 2;

-- name: delete gatherings of claim
-- Groups that a claim has taken completely have no available messages left.
DELETE FROM gathering WHERE queue = :queue AND group_id IN (
    SELECT group_id FROM message INDEXED BY message_held
    WHERE queue = :queue AND holder = 2 * :unit AND head = 2 AND rank = :rank AND group_id IS NOT NULL
);

-- name: exists next
-- Whether a level has more messages than were taken, which means that a limit was reached.
WITH {chosen}
SELECT EXISTS (SELECT 1 FROM head);

-- name: count next messages
-- The number of messages of a level within the limit.
WITH {places}
SELECT count(*), 0 FROM head;

-- name: count next messages by bytes
-- The same with a limit of bytes, and their total size.
WITH {chosen}, {numbered}
SELECT count(*), coalesce(max(size_sum), 0) FROM chosen;

-- name: place of nth message
-- The place of the message that has a given number of messages before it on its level.
WITH {places}
SELECT number, ordinal FROM head LIMIT 1 OFFSET :before;

-- name: stretches of groups
-- The bounds of stretches of about equal numbers of messages.
WITH {chosen}, {running},
piece AS (SELECT number, ordinal, messages, messages_sum, size_sum, (messages_sum - messages) / :chunk AS nth FROM chosen)
SELECT number, ordinal, messages_sum - messages, messages_sum, size_sum, begins, ends FROM (
    SELECT *, lag(nth) OVER w IS DISTINCT FROM nth AS begins, lead(nth) OVER w IS DISTINCT FROM nth AS ends FROM piece
    WINDOW w AS (ORDER BY number, ordinal)
) AS place
WHERE begins OR ends ORDER BY number, ordinal;

-- name: delete marks of claim
-- A get ends all marks on its message.
DELETE FROM mark WHERE message IN (SELECT id FROM message INDEXED BY message_unit WHERE unit = ?1 AND queue = ?2 AND state = 4);

-- name: size of claim
-- The size of a claim.
SELECT count(*), coalesce(sum(length), 0) FROM message INDEXED BY message_unit WHERE unit = ?1 AND queue = ?2 AND state = 4;

-- name: group bounds in claim
-- The bounds of groups in a claim, which is never cut inside a group.
SELECT min(claimed), max(claimed) FROM message INDEXED BY message_unit
WHERE unit = ?1 AND queue = ?2 AND state = 4 AND group_id IS NOT NULL GROUP BY group_id;

-- ===== rows, with all their columns

-- name: messages of claim
-- A part of a claim in its order, which does not change until the claim ends.
SELECT {columns}
FROM message m INDEXED BY message_unit CROSS JOIN content c ON c.id = m.id
WHERE m.unit = :unit AND m.queue = :queue AND m.state = 4 AND m.claimed BETWEEN :first AND :last ORDER BY m.claimed;

-- name: messages of stretch
-- A stretch in physical order, from where the page before ended. Without the limit its inner order would be dropped.
SELECT {columns}
FROM (
    {heads}
    SELECT id, number, ordinal FROM message INDEXED BY message_place
    WHERE queue = :queue AND head = {head} AND available AND rank = :rank
        AND (number, ordinal) BETWEEN (:number, :ordinal) AND (:last_number, :last_ordinal)
    {/heads}
    ORDER BY number, ordinal LIMIT :limit
) AS next CROSS JOIN message m ON m.id = next.id CROSS JOIN content c ON c.id = m.id;

-- name: heads of stretch
-- The groups of a stretch in logical order, some at a time, with the apparent number of messages of each.
SELECT h.id, h.group_id, h.number, h.ordinal, max(1, CAST(coalesce(g.available, 1) AS BIGINT))
FROM message h INDEXED BY message_place LEFT JOIN gathering g ON g.queue = :queue AND g.group_id = h.group_id
WHERE h.queue = :queue AND h.head = 2 AND h.available AND h.rank = :rank
    AND (h.number, h.ordinal) BETWEEN (:number, :ordinal) AND (:last_number, :last_ordinal)
ORDER BY h.number, h.ordinal;

-- name: messages of groups
-- Some groups, or messages in none, by their heads, one after the other; each row with its head, in place of the delivery.
SELECT {columns}
FROM (
    SELECT h.id AS head, coalesce(m.id, h.id) AS id
    FROM carray(:heads) AS wanted CROSS JOIN message h ON h.id = wanted.value
        LEFT JOIN message m INDEXED BY message_member
        ON m.queue = :queue AND m.group_id = h.group_id AND m.available
    WHERE h.group_id IS NULL OR m.id IS NOT NULL
    ORDER BY h.number, h.ordinal, m.sequence_number, m."offset", m.rank, m.number, m.ordinal LIMIT :most
) AS next CROSS JOIN message m ON m.id = next.id CROSS JOIN content c ON c.id = m.id;

-- name: messages of group
-- The members of one group in logical order, from where the page before ended.
SELECT {columns}
FROM message m INDEXED BY message_member CROSS JOIN content c ON c.id = m.id
WHERE m.queue = :queue AND m.group_id = :group AND m.available
    AND (m.sequence_number, m."offset", m.rank, m.number, m.ordinal) > (:sequence, :start, :rank, :number, :ordinal)
ORDER BY m.sequence_number, m."offset", m.rank, m.number, m.ordinal;

-- name: places of groups
-- The places of groups, each that of its first head. For a claim only its own heads count, because others come and go.
SELECT wanted.value, h.rank, h.number, h.ordinal
FROM carray(:groups) AS wanted LEFT JOIN message h ON h.id = (
    SELECT id FROM message INDEXED BY message_member
    WHERE queue = :queue AND group_id = wanted.value AND sequence_number = 1 AND "offset" = 0 AND number IS NOT NULL
        AND (CAST(:claim AS BIGINT) IS NULL OR unit = :claim)
    ORDER BY rank, number, ordinal LIMIT 1
);
