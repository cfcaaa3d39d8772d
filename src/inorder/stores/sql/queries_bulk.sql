-- More statements of the store, as in queries.sql: bulk puts, and removal of whole queues. {staged} is in fragments.sql.

-- ===== stagings (spark 3)

-- name: insert staged row
-- Adds one narrow row for each message. Its content is stored in its final table, as in a put.
INSERT INTO staged VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: put staged
-- Puts one staging without group keys and order keys, in the order of its rows.
{staged}
FROM (SELECT *, "row" AS turn FROM staged WHERE unit = :unit) AS place ORDER BY turn;

-- name: put staged in order
-- Puts several stagings at once, in the order of their keys.
{staged}
FROM (
    SELECT staged.*, row_number() OVER (ORDER BY order_key NULLS FIRST, chosen.key, "row") - 1 AS turn
    FROM json_each(:units) AS chosen CROSS JOIN staged ON staged.unit = chosen.value
) AS place;

-- name: put staged in groups
-- The same, where messages with one key become a group: numbered in that order, its last one closed, and with the id
-- of its first message. Pieces of one body share the number.
{staged}
FROM (
    SELECT id, "offset", length, original_length, persistent, priority, message_id, correlation_id, expiry, delay, reports, turn,
        CASE WHEN group_key IS NULL THEN group_id ELSE CAST(:prefix || unhex(printf('%016X', first)) AS BLOB) END AS group_id,
        CASE WHEN group_key IS NULL THEN sequence_number ELSE place END AS sequence_number,
        CASE WHEN group_key IS NULL THEN flags WHEN from_end = 1 THEN flags | 24 ELSE flags | 8 END AS flags
    FROM (
        SELECT staged.*,
            row_number() OVER (ORDER BY order_key NULLS FIRST, chosen.key, "row") - 1 AS turn,
            dense_rank() OVER members AS place,
            first_value(staged.id - "row" + whole) OVER members AS first,
            dense_rank() OVER (
                PARTITION BY group_key ORDER BY order_key DESC NULLS LAST, chosen.key DESC, whole DESC
            ) AS from_end
        FROM json_each(:units) AS chosen CROSS JOIN staged ON staged.unit = chosen.value
        WINDOW members AS (PARTITION BY group_key ORDER BY order_key NULLS FIRST, chosen.key, whole)
    ) AS place
) AS made;

-- name: needs of staged rows
-- Whether any of them expires, is delayed, asks for reports, or is in a group.
SELECT count(expiry) > 0, count(CASE WHEN delay > 0 THEN 1 END) > 0, count(reports) > 0,
    count(CASE WHEN group_id IS NOT NULL OR group_key IS NOT NULL OR sequence_number <> 1 OR "offset" <> 0 THEN 1 END) > 0
FROM json_each(:units) AS chosen CROSS JOIN staged ON staged.unit = chosen.value;

-- name: first wrong number in groups
-- Whether groups that callers numbered have no gaps and repeats; rules/staging.py has the error text.
SELECT group_id, before, before_offset, before_length, sequence_number, "offset"
FROM (
    SELECT group_id, sequence_number, "offset",
        lag(sequence_number) OVER numbers AS before,
        lag("offset") OVER numbers AS before_offset,
        lag(CASE WHEN original_length = -1 THEN length ELSE original_length END) OVER numbers AS before_length
    FROM json_each(:units) AS chosen CROSS JOIN staged ON staged.unit = chosen.value
    WHERE group_id IS NOT NULL
    WINDOW numbers AS (PARTITION BY group_id ORDER BY sequence_number, "offset")
) AS member
WHERE before IS NOT NULL
    AND NOT (sequence_number = before + 1 AND "offset" = 0)
    AND NOT (sequence_number = before AND "offset" = before_offset + before_length AND "offset" > before_offset)
ORDER BY group_id, sequence_number, "offset" LIMIT 1;

-- name: messages of stagings
-- Only for hooks and listeners. A hook receives the whole message.
SELECT {whole}
FROM json_each(:units) AS chosen CROSS JOIN staged ON staged.unit = chosen.value
    CROSS JOIN message m ON m.id = staged.id CROSS JOIN content c ON c.id = m.id
ORDER BY m.number, m.ordinal;

-- name: delete staged rows
-- Removes staged rows that were put or dropped.
DELETE FROM staged WHERE unit = ?;

-- name: delete contents of staging
-- Removes the contents of a small dropped staging at once.
DELETE FROM content WHERE id IN (SELECT id FROM staged WHERE unit = ?);

-- name: leave contents of staging for sweep
-- Leaves the contents of a large one for later steps.
INSERT INTO leftover SELECT id FROM staged WHERE unit = ?;

-- ===== retries by hand

-- name: end retry delays
-- Makes messages available that a back out has hidden, not those in their delivery delay.
UPDATE message SET due_at = NULL
WHERE queue = ?1 AND due_at > ?2 AND state = 2
    AND (backouts > 0 OR EXISTS (SELECT 1 FROM content WHERE content.id = message.id AND content.delay IS NULL))
RETURNING id;

-- name: end retry delays of messages
-- The same for some of them.
UPDATE message SET due_at = NULL
WHERE id IN (SELECT value FROM json_each(?1)) AND due_at > ?2 AND state = 2
    AND (backouts > 0 OR EXISTS (SELECT 1 FROM content WHERE content.id = message.id AND content.delay IS NULL))
RETURNING id;

-- ===== clearing of queues

-- name: first messages not in units
-- A step of a clear, which takes messages under lock ids and delayed ones first.
SELECT id, length, lock FROM (
    SELECT id, length, lock FROM message INDEXED BY message_held
    WHERE queue = ?1 AND holder IS NOT NULL AND number <= ?2 AND unit IS NULL AND locked_handle IS NULL
    UNION ALL SELECT id, length, lock FROM message INDEXED BY message_place
    WHERE queue = ?1 AND available AND number <= ?2
) AS free LIMIT ?3;

-- name: delete messages in any state
-- Removes the narrow rows of such a step.
DELETE FROM message WHERE id {which};

-- name: leave contents of queue for sweep
-- Leaves the contents of a deleted queue for removal in later steps.
INSERT INTO leftover
SELECT id FROM message INDEXED BY message_place WHERE queue = ?1 AND available
UNION ALL SELECT id FROM message INDEXED BY message_held WHERE queue = ?1 AND holder IS NOT NULL
UNION ALL SELECT id FROM message INDEXED BY message_unit WHERE unit IS NOT NULL AND queue = ?1 AND number IS NULL;

-- name: delete messages of queue
-- Removes the narrow rows at once.
DELETE FROM message WHERE id IN (
    SELECT id FROM message INDEXED BY message_place WHERE queue = ?1 AND available
    UNION ALL SELECT id FROM message INDEXED BY message_held WHERE queue = ?1 AND holder IS NOT NULL
    UNION ALL SELECT id FROM message INDEXED BY message_unit WHERE unit IS NOT NULL AND queue = ?1 AND number IS NULL
);
