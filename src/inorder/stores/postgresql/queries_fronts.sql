-- Statements for queues that have fronts (fronts.py): they set fronts, or search from them. The latter correspond to
-- the statements without "after fronts" in their names, with one step into message_place for each level, in the order
-- of levels. Those of gets are made from them (statements.py).

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
