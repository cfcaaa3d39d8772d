-- Parts of statements that PostgreSQL needs in another form, as in queries.sql.

-- name: messages
-- Messages that can be claimed or shown in physical order on one level. Each arm has its own order and limit, so that
-- they can be merged.
head AS (
    SELECT * FROM (
        {heads}
        SELECT * FROM (
            SELECT id, number, ordinal{length} FROM message
            WHERE queue = :queue AND head = {head} AND available AND rank = :rank
                AND (number, ordinal) > (:number, :ordinal) AND (number, ordinal) < (:stop_number, :stop_ordinal)
                AND number <= :horizon
            ORDER BY number, ordinal LIMIT :most
        ) AS arm
        {/heads}
        ORDER BY number, ordinal LIMIT :most
    ) AS next
);

-- name: removed
-- A get removes its messages by their physical position, because no other transaction can have moved them.
m AS (DELETE FROM message WHERE ctid = ANY (ARRAY(SELECT message_at FROM next)) RETURNING 1),
c AS (DELETE FROM content WHERE ctid = ANY (ARRAY(SELECT content_at FROM next)) RETURNING 1),
gone AS MATERIALIZED (
    SELECT messages, CASE WHEN least(rows, contents) <> messages THEN expect(least(rows, contents), messages) END FROM
        (SELECT count(id) AS messages FROM next) AS found, (SELECT count(*) AS rows FROM m) AS ms,
        (SELECT count(*) AS contents FROM c) AS cs
    WHERE messages > 0
)

-- name: removed one
m AS (DELETE FROM message WHERE ctid = (SELECT message_at FROM next) RETURNING 1),
c AS (DELETE FROM content WHERE ctid = (SELECT content_at FROM next) RETURNING 1)

-- name: left
-- As `update queue counters`.
counted AS (
    UPDATE tally SET depth = tally.depth - gone.messages,
        serial = greatest(serial, (2 * arrived - tally.depth + gone.messages) / 64)
    FROM gone WHERE tally.ctid = (SELECT ctid FROM tally WHERE queue = ?1 ORDER BY serial DESC LIMIT 1)
)

-- name: one left
counted AS (
    UPDATE tally SET depth = depth - 1, serial = greatest(serial, (2 * arrived - depth + 1) / 64)
    FROM m, c WHERE tally.ctid = (SELECT ctid FROM tally WHERE queue = ?1 ORDER BY serial DESC LIMIT 1) RETURNING 1
)

-- name: left together
-- As `update queue counters together`.
counted AS (
    INSERT INTO slot AS own (queue, session, depth, arrived)
    SELECT ?1, pg_backend_pid(), -gone.messages, 0 FROM gone
    ON CONFLICT (queue, session) DO UPDATE SET depth = own.depth + excluded.depth
)

-- name: one left together
counted AS (
    INSERT INTO slot AS own (queue, session, depth, arrived) SELECT ?1, pg_backend_pid(), -1, 0 FROM m, c
    ON CONFLICT (queue, session) DO UPDATE SET depth = own.depth - 1 RETURNING 1
)

-- name: first available
-- The first messages of all that are available.
{heads}
SELECT * FROM (
    SELECT * FROM message WHERE queue = ?1 AND head = {head} AND available ORDER BY rank, number, ordinal LIMIT ?2
) AS arm
{/heads}
ORDER BY rank, number, ordinal LIMIT ?2
