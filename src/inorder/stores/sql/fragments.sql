-- Parts of the statements in queries_claims.sql and queries_bulk.sql. {length} is used only with a limit of bytes,
-- because no index has it.

-- name: messages
-- Messages that can be claimed or shown in physical order on one level.
head AS (
    SELECT * FROM (
        {heads}
        SELECT id, number, ordinal{length} FROM message INDEXED BY message_place
        WHERE queue = :queue AND head = {head} AND available AND rank = :rank
            AND (number, ordinal) > (:number, :ordinal) AND (number, ordinal) < (:stop_number, :stop_ordinal)
            AND number <= :horizon
        {/heads}
        ORDER BY number, ordinal LIMIT :most
    ) AS next
);

-- name: singles
-- The same for both orders if there are no groups.
head AS (
    SELECT id, number, ordinal{length} FROM message INDEXED BY message_place
    WHERE queue = :queue AND head = 2 AND available AND rank = :rank
        AND (number, ordinal) > (:number, :ordinal) AND (number, ordinal) < (:stop_number, :stop_ordinal)
        AND number <= :horizon
    ORDER BY number, ordinal LIMIT :most
);

-- name: numbered
-- As many of them as the limits allow, if each is one message.
chosen AS MATERIALIZED (
    SELECT id, nth, size_sum FROM (
        SELECT id, row_number() OVER w AS nth, sum(length) OVER w AS size_sum FROM head
        WINDOW w AS (ORDER BY number, ordinal ROWS UNBOUNDED PRECEDING)
    ) AS running
    WHERE size_sum <= :most_bytes OR (nth = 1 AND :first = 1)
);

-- name: groups
-- The same in logical order: groups that look complete, by their heads.
head AS MATERIALIZED (
    SELECT id, group_id, number, ordinal, length FROM message INDEXED BY message_place
    WHERE queue = :queue AND head = 2 AND available AND rank = :rank
        AND (number, ordinal) > (:number, :ordinal) AND (number, ordinal) < (:stop_number, :stop_ordinal)
        AND number <= :horizon AND id NOT IN (SELECT value FROM json_each(:excluded))
    ORDER BY number, ordinal LIMIT :most
);

-- name: running
-- As many of them as the limits allow, with running sums. A large group is summed only with a limit of bytes.
sized AS (
    SELECT
        h.*, coalesce(g.available, 1) AS messages,
        CASE WHEN h.group_id IS NULL OR :weighs = 0 THEN h.length ELSE (
            SELECT sum(length) FROM message INDEXED BY message_member
            WHERE queue = :queue AND group_id = h.group_id AND available
        ) END AS size
    FROM head h LEFT JOIN gathering g ON g.queue = :queue AND g.group_id = h.group_id
),
running AS (
    SELECT
        *, sum(messages) OVER w AS messages_sum, CAST(sum(size) OVER w AS BIGINT) AS size_sum,
        row_number() OVER w AS nth
    FROM sized
    WINDOW w AS (ORDER BY number, ordinal ROWS UNBOUNDED PRECEDING)
),
chosen AS MATERIALIZED (
    SELECT * FROM running WHERE (messages_sum <= :most AND size_sum <= :most_bytes) OR (nth = 1 AND :first = 1)
);

-- name: columns
-- Rows in bulk, as `codec.READ_IN_BULK`.
m.rank, m.number, m.ordinal, {delivery}, m.expires_at, m.priority, m.persistent, m.message_id, m.correlation_id, c.put_at,
m.group_id, m.sequence_number, m."offset", m.flags, m.original_length, c.body, m.length, m.backouts, m.uid_origin,
m.uid_number, c.descriptor, c.crc, m.id{later};

-- name: staged
-- Staged rows become messages, in the order of `turn`.
INSERT INTO message (
    id, queue, state, rank, number, ordinal, head, group_id, sequence_number, "offset", length, flags, original_length,
    persistent, priority, message_id, correlation_id, expires_at, due_at, visible_at,
    reports, put_by
)
SELECT
    id, :queue, :state,
    -max(
        CASE WHEN flags & 24 <> 0 AND sequence_number = 1 AND "offset" = 0 THEN CAST(:least_of_head AS INTEGER) ELSE :least END,
        min(:most, priority)
    ),
    :number + turn * :own, :ordinal + turn * (1 - :own),
    CASE WHEN sequence_number <> 1 OR "offset" <> 0 THEN 0 WHEN flags & 24 <> 0 THEN 1 ELSE 2 END,
    group_id, sequence_number, "offset", length, flags, original_length,
    persistent, priority, message_id, correlation_id, :now + expiry, CASE WHEN delay > 0 THEN :now + delay END, :now,
    reports, :put_by;
