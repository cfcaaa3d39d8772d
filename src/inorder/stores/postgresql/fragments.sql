-- Parts of statements that PostgreSQL has in words of its own, as queries.sql.

-- name: messages
-- What can be claimed or shown in physical order on one level. Each arm has its order and its limit: so they are merged.
head AS (
    SELECT * FROM (
        SELECT * FROM (
            SELECT id, number, ordinal{length} FROM message
            WHERE queue = :queue AND head = 2 AND available AND rank = :rank
                AND (number, ordinal) > (:number, :ordinal) AND (number, ordinal) < (:stop_number, :stop_ordinal)
                AND number <= :horizon
            ORDER BY number, ordinal LIMIT :most
        ) AS whole
        UNION ALL
        SELECT * FROM (
            SELECT id, number, ordinal{length} FROM message
            WHERE queue = :queue AND head = 1 AND available AND rank = :rank
                AND (number, ordinal) > (:number, :ordinal) AND (number, ordinal) < (:stop_number, :stop_ordinal)
                AND number <= :horizon
            ORDER BY number, ordinal LIMIT :most
        ) AS unfinished
        UNION ALL
        SELECT * FROM (
            SELECT id, number, ordinal{length} FROM message
            WHERE queue = :queue AND head = 0 AND available AND rank = :rank
                AND (number, ordinal) > (:number, :ordinal) AND (number, ordinal) < (:stop_number, :stop_ordinal)
                AND number <= :horizon
            ORDER BY number, ordinal LIMIT :most
        ) AS inner_ones
        ORDER BY number, ordinal LIMIT :most
    ) AS next
);
