-- Parts of the statements in queries_claims.sql.

-- name: messages
-- What can be claimed or shown in physical order on one level.
head AS MATERIALIZED (
    SELECT id, NULL AS group_id, number, ordinal, length FROM (
        SELECT * FROM message INDEXED BY message_place WHERE queue = :queue AND head = 2 AND available AND rank = :rank
            AND (number, ordinal) > (:number, :ordinal) AND (number, ordinal) < (:stop_number, :stop_ordinal)
            AND number <= :horizon
        UNION ALL
        SELECT * FROM message INDEXED BY message_place WHERE queue = :queue AND head = 1 AND available AND rank = :rank
            AND (number, ordinal) > (:number, :ordinal) AND (number, ordinal) < (:stop_number, :stop_ordinal)
            AND number <= :horizon
        UNION ALL
        SELECT * FROM message INDEXED BY message_place WHERE queue = :queue AND head = 0 AND available AND rank = :rank
            AND (number, ordinal) > (:number, :ordinal) AND (number, ordinal) < (:stop_number, :stop_ordinal)
            AND number <= :horizon
        ORDER BY number, ordinal LIMIT :most
    )
);

-- name: groups
-- The same in logical order: groups that look whole, by their heads.
head AS MATERIALIZED (
    SELECT id, group_id, number, ordinal, length FROM message INDEXED BY message_place
    WHERE queue = :queue AND head = 2 AND available AND rank = :rank
        AND (number, ordinal) > (:number, :ordinal) AND (number, ordinal) < (:stop_number, :stop_ordinal)
        AND number <= :horizon AND id NOT IN (SELECT value FROM json_each(:excluded))
    ORDER BY number, ordinal LIMIT :most
);

-- name: running
-- As many of them as the limits allow, with running sums; a large group is summed only where bytes count.
sized AS (
    SELECT
        h.*, coalesce(g.available, 1) AS messages,
        CASE WHEN h.group_id IS NULL OR NOT :weighs THEN h.length ELSE (
            SELECT sum(length) FROM message INDEXED BY message_member
            WHERE queue = :queue AND group_id = h.group_id AND available
        ) END AS size
    FROM head h LEFT JOIN gathering g ON g.queue = :queue AND g.group_id = h.group_id
),
running AS (
    SELECT *, sum(messages) OVER w AS messages_sum, sum(size) OVER w AS size_sum, row_number() OVER w AS nth FROM sized
    WINDOW w AS (ORDER BY number, ordinal ROWS UNBOUNDED PRECEDING)
),
chosen AS MATERIALIZED (
    SELECT * FROM running WHERE (messages_sum <= :most AND size_sum <= :most_bytes) OR (nth = 1 AND :first)
);

-- name: head
-- Where the group of a row stands: the first of its heads. Of a claim its own alone, for others come and go.
LEFT JOIN message g ON g.id = (
    SELECT id FROM message INDEXED BY message_member
    WHERE queue = m.queue AND group_id = m.group_id AND sequence_number = 1 AND "offset" = 0 AND number IS NOT NULL {among}
    ORDER BY rank, number, ordinal LIMIT 1
);

-- name: columns
-- Rows in bulk, as `codec.READ_IN_BULK`, with what is not stored made from the number.
m.rank, m.number, m.ordinal,
CASE WHEN m.group_id IS NULL THEN m.rank ELSE g.rank END,
CASE WHEN m.group_id IS NULL THEN m.number ELSE g.number END,
CASE WHEN m.group_id IS NULL THEN m.ordinal ELSE g.ordinal END,
{delivery}, CASE WHEN m.expires_at IS NOT NULL THEN max(0.1, m.expires_at - :now) END,
m.priority, m.persistent, coalesce(m.message_id, CAST(:prefix || unhex(format('%016X', m.id)) AS BLOB)),
m.correlation_id, c.put_at, m.group_id, m.sequence_number, m."offset", m.flags, m.original_length, c.body, m.length,
m.backouts, coalesce(m.uid_origin, :name), coalesce(m.uid_number, m.id), c.descriptor, c.crc, m.id;
