-- Plain gets that remove messages at once, or that run together with others. Those for queues with fronts are in
-- queries_fronts.sql.

-- name: get and remove
-- As `get available singles`, for gets that remove at once: one statement reads the messages, removes them by
-- position, and counts.
WITH next AS MATERIALIZED (
    SELECT {got}, m.message_at, c.ctid AS content_at FROM (
        SELECT *, ctid AS message_at FROM message WHERE queue = ?1 AND head = 2 AND available
        ORDER BY rank, number, ordinal
    ) AS m JOIN content c ON c.id = m.id
    ORDER BY m.rank, m.number, m.ordinal LIMIT ?2
),
{removed},
{left}
SELECT {taken} FROM next ORDER BY rank, number, ordinal;

-- name: get and remove one
-- The same for one message. It needs no ordering, and returns the message only if every part was removed and counted.
WITH next AS MATERIALIZED (
    SELECT {got}, m.message_at, c.ctid AS content_at FROM (
        SELECT *, ctid AS message_at FROM message WHERE queue = ?1 AND head = 2 AND available
        ORDER BY rank, number, ordinal
    ) AS m JOIN content c ON c.id = m.id
    ORDER BY m.rank, m.number, m.ordinal LIMIT 1
),
{removed one},
{one left}
SELECT {taken} FROM next, counted;

-- name: get and remove one as known
-- The same with `queue state as known` and `update queue counters` in one statement, if the queue seems to have
-- messages. A statement sees the state at its start, so the rows of the queue and of the message must not have changed
-- since. Otherwise, or if no message is available at any depth, it returns a row without an id and the verb starts
-- again.
WITH here AS MATERIALIZED (
    UPDATE tally SET depth = depth - 1, serial = greatest(serial, (2 * arrived - depth + 1) / 64)
    FROM (SELECT ctid AS at, xmin AS made_by FROM tally WHERE queue = ?1 ORDER BY serial DESC LIMIT 1) AS seen
    WHERE ctid = seen.at AND xmin = seen.made_by
        AND revision = ?2 AND attention = ?3 AND depth = ?4 AND counter = ?5 AND reserved = ?6 AND unordered = 0
        AND NOT EXISTS (SELECT FROM run WHERE id = 1 AND stopped = 1)
    RETURNING 1
),
next AS MATERIALIZED (
    SELECT first.* FROM here CROSS JOIN LATERAL (
        SELECT {got}, m.message_at, m.made_by, c.ctid AS content_at FROM (
            SELECT *, ctid AS message_at, xmin AS made_by FROM message WHERE queue = ?1 AND head = 2 AND available
            ORDER BY rank, number, ordinal LIMIT 1
        ) AS m JOIN content c ON c.id = m.id
    ) AS first
),
m AS (
    DELETE FROM message
    WHERE ctid = (SELECT message_at FROM next) AND xmin = (SELECT made_by FROM next) RETURNING 1
),
c AS (DELETE FROM content WHERE ctid = (SELECT content_at FROM next) RETURNING 1)
SELECT {taken} FROM (SELECT 1) AS always LEFT JOIN (
    SELECT next.* FROM next, m, c WHERE next.persistent = 0 OR set_config('synchronous_commit', ?7, true) <> ''
) AS taken ON true;

-- name: get available singles together
-- As `get available singles`, but skips messages that other verbs are taking, and locks its own until the verb ends. The
-- limit stands where rows are locked: PostgreSQL does not keep the order of locked rows, and would lock all to sort.
SELECT {got}
FROM (
    SELECT * FROM message WHERE queue = ?1 AND head = 2 AND available
    ORDER BY rank, number, ordinal LIMIT ?2 FOR UPDATE SKIP LOCKED
) AS m JOIN content c ON c.id = m.id
ORDER BY m.rank, m.number, m.ordinal;

-- name: get and remove together
-- As `get and remove`, in the same way.
WITH next AS MATERIALIZED (
    SELECT {got}, m.message_at, c.ctid AS content_at FROM (
        SELECT *, ctid AS message_at FROM message WHERE queue = ?1 AND head = 2 AND available
        ORDER BY rank, number, ordinal LIMIT ?2 FOR UPDATE SKIP LOCKED
    ) AS m JOIN content c ON c.id = m.id
),
{removed},
{left together}
SELECT {taken} FROM next ORDER BY rank, number, ordinal;

-- name: get and remove together as known
-- `queue state together as known` and `get and remove together` in one. It reads the queue first, even if that is
-- empty. If the queue is not in the assumed state, it returns a row without an id.
WITH here AS MATERIALIZED (
    SELECT count(*) AS known FROM tally
    WHERE queue = ?1 AND revision = ?3 AND attention = ?4 AND unordered = 1
        AND NOT EXISTS (SELECT FROM run WHERE id = 1 AND stopped = 1)
),
next AS MATERIALIZED (
    SELECT first.*, here.known FROM here LEFT JOIN LATERAL (
        SELECT {got}, m.message_at, c.ctid AS content_at FROM (
            SELECT *, ctid AS message_at FROM message WHERE queue = ?1 AND head = 2 AND available AND here.known = 1
            ORDER BY rank, number, ordinal LIMIT ?2 FOR UPDATE SKIP LOCKED
        ) AS m JOIN content c ON c.id = m.id
    ) AS first ON true
),
{removed},
{left together}
SELECT {taken} FROM next WHERE id IS NOT NULL OR known = 0 ORDER BY rank, number, ordinal;

-- name: get and remove one together as known
-- The same for one, as `get and remove one`.
WITH here AS MATERIALIZED (
    SELECT count(*) AS known FROM tally
    WHERE queue = ?1 AND revision = ?2 AND attention = ?3 AND unordered = 1
        AND NOT EXISTS (SELECT FROM run WHERE id = 1 AND stopped = 1)
),
next AS MATERIALIZED (
    SELECT first.*, here.known FROM here LEFT JOIN LATERAL (
        SELECT {got}, m.message_at, c.ctid AS content_at FROM (
            SELECT *, ctid AS message_at FROM message WHERE queue = ?1 AND head = 2 AND available AND here.known = 1
            ORDER BY rank, number, ordinal LIMIT 1 FOR UPDATE SKIP LOCKED
        ) AS m JOIN content c ON c.id = m.id
    ) AS first ON true
),
{removed one},
{one left together}
SELECT {taken} FROM next LEFT JOIN counted AS gone(one) ON true
WHERE next.known = 0 OR (gone.one = 1 AND (next.persistent = 0 OR set_config('synchronous_commit', ?4, true) <> ''));
