-- Statements for queues that have fronts (fronts.py): they set fronts, or search from them. The latter correspond to
-- the statements without "behind" in their names, with one step into message_place for each level, in the order of
-- levels.

-- name: index entries read
-- The entries read of the index that gets use, from the server's statistics, which include dead entries.
SELECT pg_stat_get_xact_tuples_returned(CAST('message_place' AS regclass));

-- name: set fronts
-- Sets the fronts of a locked queue: for each kind of head and level the first number that is available or can still
-- arrive.
UPDATE tally SET attention = attention | 256, fronts = ARRAY(
    SELECT coalesce(
        (
            SELECT m.number FROM message m
            WHERE m.queue = ?1 AND m.head = kind.head AND m.available AND m.rank = level.rank AND m.number >= level.front
            ORDER BY m.number LIMIT 1
        ),
        now.counter + 1
    )
    FROM (SELECT counter FROM counted WHERE queue = ?1 ORDER BY serial DESC LIMIT 1) AS now,
        generate_series(0, 2) AS kind(head), levels_of(?1, kind.head) AS level
    ORDER BY kind.head, level.rank
)
WHERE ctid = (SELECT ctid FROM tally WHERE queue = ?1 ORDER BY serial DESC LIMIT 1);

-- name: delete fronts
-- Removes fronts once no dead entries are in the way.
UPDATE tally SET attention = attention & ~256, fronts = NULL WHERE queue = ?1;

-- name: available by place after fronts
-- Levels come in order, and so do the messages of each. An outer ORDER BY would sort all of them.
SELECT * FROM (
    SELECT {narrow} FROM (
        SELECT next.* FROM levels_of(:queue, {head}) AS level CROSS JOIN LATERAL (
            SELECT * FROM message
            WHERE queue = :queue AND head = {head} AND available AND rank = level.rank AND level.rank >= :rank
                AND number >= greatest(level.front, CASE WHEN level.rank = :rank THEN :number ELSE 0 END)
                AND (rank, number, ordinal) > (:rank, :number, :ordinal)
            ORDER BY number, ordinal
        ) AS next
    ) AS m {joins}
    WHERE true{chosen}
    LIMIT :limit
) AS next;

-- name: next available rank after fronts
-- Reads all levels. With EXISTS the planner would make it a join, from either side.
SELECT min(level.rank) FROM levels_of(?1, CAST(?2 AS integer)) AS level
WHERE level.rank > ?3 AND (
    SELECT true FROM message m
    WHERE m.queue = ?1 AND m.head = ?2 AND m.available AND m.rank = level.rank AND m.number >= level.front
    ORDER BY m.number LIMIT 1
);

-- name: get available singles after fronts
-- Takes from each level at most as many as are still needed.
SELECT {got}
FROM (
    SELECT next.* FROM levels_of(?1, 2) AS level CROSS JOIN LATERAL (
        SELECT * FROM message
        WHERE queue = ?1 AND head = 2 AND available AND rank = level.rank AND number >= level.front
        ORDER BY number, ordinal LIMIT ?2
    ) AS next LIMIT ?2
) AS m JOIN content c ON c.id = m.id
ORDER BY m.rank, m.number, m.ordinal;

-- name: get available after fronts
-- The same for all kinds of heads.
SELECT {got}
FROM (
    SELECT * FROM (
        SELECT next.* FROM levels_of(?1, 2) AS level CROSS JOIN LATERAL (
            SELECT * FROM message
            WHERE queue = ?1 AND head = 2 AND available AND rank = level.rank AND number >= level.front
            ORDER BY number, ordinal LIMIT ?2
        ) AS next LIMIT ?2
    ) AS whole
    UNION ALL
    SELECT * FROM (
        SELECT next.* FROM levels_of(?1, 1) AS level CROSS JOIN LATERAL (
            SELECT * FROM message
            WHERE queue = ?1 AND head = 1 AND available AND rank = level.rank AND number >= level.front
            ORDER BY number, ordinal LIMIT ?2
        ) AS next LIMIT ?2
    ) AS unfinished
    UNION ALL
    SELECT * FROM (
        SELECT next.* FROM levels_of(?1, 0) AS level CROSS JOIN LATERAL (
            SELECT * FROM message
            WHERE queue = ?1 AND head = 0 AND available AND rank = level.rank AND number >= level.front
            ORDER BY number, ordinal LIMIT ?2
        ) AS next LIMIT ?2
    ) AS inner_ones
    ORDER BY rank, number, ordinal LIMIT ?2
) AS m JOIN content c ON c.id = m.id
ORDER BY m.rank, m.number, m.ordinal;

-- name: get and remove after fronts
-- As `get and remove`.
WITH next AS MATERIALIZED (
    SELECT {got}, m.message_at, c.ctid AS content_at FROM (
        SELECT next.* FROM levels_of(?1, 2) AS level CROSS JOIN LATERAL (
            SELECT *, ctid AS message_at FROM message
            WHERE queue = ?1 AND head = 2 AND available AND rank = level.rank AND number >= level.front
            ORDER BY number, ordinal LIMIT ?2
        ) AS next LIMIT ?2
    ) AS m JOIN content c ON c.id = m.id
),
{removed},
{left}
SELECT {taken} FROM next ORDER BY rank, number, ordinal;

-- name: get and remove one after fronts
-- As `get and remove one`.
WITH next AS MATERIALIZED (
    SELECT {got}, m.message_at, c.ctid AS content_at FROM (
        SELECT next.* FROM levels_of(?1, 2) AS level CROSS JOIN LATERAL (
            SELECT *, ctid AS message_at FROM message
            WHERE queue = ?1 AND head = 2 AND available AND rank = level.rank AND number >= level.front
            ORDER BY number, ordinal LIMIT 1
        ) AS next LIMIT 1
    ) AS m JOIN content c ON c.id = m.id
),
{removed one},
{one left}
SELECT {taken} FROM next, counted;

-- name: get available singles together after fronts
-- Skips messages that other verbs are taking.
SELECT {got}
FROM (
    SELECT next.* FROM levels_of(?1, 2) AS level CROSS JOIN LATERAL (
        SELECT * FROM message
        WHERE queue = ?1 AND head = 2 AND available AND rank = level.rank AND number >= level.front
        ORDER BY number, ordinal LIMIT ?2 FOR UPDATE SKIP LOCKED
    ) AS next LIMIT ?2
) AS m JOIN content c ON c.id = m.id
ORDER BY m.rank, m.number, m.ordinal;

-- name: get and remove together after fronts
-- As `get and remove together`.
WITH next AS MATERIALIZED (
    SELECT {got}, m.message_at, c.ctid AS content_at FROM (
        SELECT next.* FROM levels_of(?1, 2) AS level CROSS JOIN LATERAL (
            SELECT *, ctid AS message_at FROM message
            WHERE queue = ?1 AND head = 2 AND available AND rank = level.rank AND number >= level.front
            ORDER BY number, ordinal LIMIT ?2 FOR UPDATE SKIP LOCKED
        ) AS next LIMIT ?2
    ) AS m JOIN content c ON c.id = m.id
),
{removed},
{left together}
SELECT {taken} FROM next ORDER BY rank, number, ordinal;

-- name: get and remove together as known after fronts
-- As `get and remove together as known`.
WITH here AS MATERIALIZED (
    SELECT count(*) AS known FROM tally
    WHERE queue = ?1 AND revision = ?3 AND attention = ?4 AND unordered = 1
        AND NOT EXISTS (SELECT FROM run WHERE id = 1 AND stopped = 1)
),
next AS MATERIALIZED (
    SELECT first.*, here.known FROM here LEFT JOIN LATERAL (
        SELECT {got}, m.message_at, c.ctid AS content_at FROM (
            SELECT next.* FROM levels_of(?1, 2) AS level CROSS JOIN LATERAL (
                SELECT *, ctid AS message_at FROM message
                WHERE queue = ?1 AND head = 2 AND available AND rank = level.rank AND number >= level.front AND here.known = 1
                ORDER BY number, ordinal LIMIT ?2 FOR UPDATE SKIP LOCKED
            ) AS next LIMIT ?2
        ) AS m JOIN content c ON c.id = m.id
    ) AS first ON true
),
{removed},
{left together}
SELECT {taken} FROM next WHERE id IS NOT NULL OR known = 0 ORDER BY rank, number, ordinal;

-- name: get and remove one together as known after fronts
-- As `get and remove one together as known`.
WITH here AS MATERIALIZED (
    SELECT count(*) AS known FROM tally
    WHERE queue = ?1 AND revision = ?2 AND attention = ?3 AND unordered = 1
        AND NOT EXISTS (SELECT FROM run WHERE id = 1 AND stopped = 1)
),
next AS MATERIALIZED (
    SELECT first.*, here.known FROM here LEFT JOIN LATERAL (
        SELECT {got}, m.message_at, c.ctid AS content_at FROM (
            SELECT next.* FROM levels_of(?1, 2) AS level CROSS JOIN LATERAL (
                SELECT *, ctid AS message_at FROM message
                WHERE queue = ?1 AND head = 2 AND available AND rank = level.rank AND number >= level.front AND here.known = 1
                ORDER BY number, ordinal LIMIT 1 FOR UPDATE SKIP LOCKED
            ) AS next LIMIT 1
        ) AS m JOIN content c ON c.id = m.id
    ) AS first ON true
),
{removed one},
{one left together}
SELECT {taken} FROM next LEFT JOIN counted AS gone(one) ON true
WHERE next.known = 0 OR (gone.one = 1 AND (next.persistent = 0 OR set_config('synchronous_commit', ?4, true) <> ''));
