-- The functions of the schema and their sequences, created after the tables.

-- ===== identifying numbers

CREATE SEQUENCE number;

-- Draws a range of numbers and returns the first. Neither the draw nor its lock is part of the transaction: the inner
-- block is undone, which releases the lock, while the value of a sequence stays.
CREATE FUNCTION draw(count bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    first bigint;
BEGIN
    BEGIN
        PERFORM pg_advisory_xact_lock(session_key(-1));
        SELECT CASE WHEN is_called THEN last_value + 1 ELSE last_value END INTO first FROM number;
        PERFORM setval('number', first + count - 1);
        RAISE EXCEPTION USING ERRCODE = 'IO001';
    EXCEPTION WHEN SQLSTATE 'IO001' THEN NULL;
    END;
    RETURN first;
END $$;

-- ===== sessions

-- A number that distinguishes the stores of one database.
CREATE FUNCTION store_number() RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT CAST(CAST(CAST('message' AS regclass) AS oid) AS bigint)
$$;

-- The key of the advisory lock of a process, by its number. Numbers up to 0 are for locks of the whole store.
CREATE FUNCTION session_key(process bigint) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT hashtextextended('inorder ' || store_number(), process)
$$;

-- ===== queues

-- Locks queues in the order that all verbs use. On a queue that keeps no order, verbs that were together have then
-- ended and new ones wait, so their counts are added to its row. Each statement here sees the state after the wait.
CREATE FUNCTION lock_queues(numbers bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    one bigint;
    is_unordered boolean;
BEGIN
    FOR one IN SELECT number FROM unnest(numbers) AS given(number) ORDER BY number LOOP
        SELECT unordered = 1 INTO is_unordered FROM tally
        WHERE queue = one ORDER BY serial DESC LIMIT 1 FOR NO KEY UPDATE;
        CONTINUE WHEN is_unordered IS NOT TRUE;
        PERFORM pg_advisory_xact_lock(session_key(one));
        WITH gone AS (DELETE FROM slot WHERE queue = one RETURNING slot.depth, slot.arrived)
        UPDATE tally SET depth = tally.depth + counted.depth, arrived = tally.arrived + counted.arrived,
            serial = tally.serial + 1
        FROM (SELECT sum(depth) AS depth, sum(arrived) AS arrived FROM gone HAVING count(*) > 0) AS counted
        WHERE queue = one;
    END LOOP;
END $$;

-- The numbers of places on queues that keep no order. One sequence serves all, because each queue takes numbers above
-- its own.
CREATE SEQUENCE place;

-- The rows with the counts in slots and the numbers drawn from the sequence `place`, all of which count as drawn on a
-- queue that keeps no order. If few reserved numbers are left, it reports none, so that the next verb reserves more.
CREATE VIEW counted AS
SELECT
    t.queue, t.serial, t.attention, t.revision, t.unordered, greatest(t.counter, p.drawn) AS counter,
    CASE
        WHEN t.reserved >= greatest(t.counter, p.drawn) + 100 THEN t.reserved
        WHEN p.drawn IS NULL THEN t.reserved
        ELSE greatest(t.counter, p.drawn)
    END AS reserved,
    t.depth + coalesce(s.depth, 0) AS depth, t.arrived + coalesce(s.arrived, 0) AS arrived
FROM tally t
LEFT JOIN LATERAL (SELECT pg_sequence_last_value('place') AS drawn WHERE t.unordered = 1) AS p ON true
LEFT JOIN LATERAL (
    SELECT CAST(sum(slot.depth) AS bigint) AS depth, CAST(sum(slot.arrived) AS bigint) AS arrived
    FROM slot WHERE slot.queue = t.queue
) AS s ON true;

-- Draws a range of them above a queue's counter and returns the first, as `draw numbers` does.
CREATE FUNCTION draw_places(above bigint, count bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    first bigint;
BEGIN
    BEGIN
        PERFORM pg_advisory_xact_lock(session_key(-3));
        SELECT greatest(above, CASE WHEN is_called THEN last_value ELSE 0 END) + 1 INTO first FROM place;
        PERFORM setval('place', first + count - 1);
        RAISE EXCEPTION USING ERRCODE = 'IO001';
    EXCEPTION WHEN SQLSTATE 'IO001' THEN NULL;
    END;
    RETURN first;
END $$;

-- A text that differs after each change of a queue.
CREATE FUNCTION change_of(number bigint) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT concat_ws(' ', t.xmin, (SELECT string_agg(CAST(s.xmin AS text), ' ' ORDER BY s.session) FROM slot s WHERE s.queue = t.queue))
    FROM tally t WHERE t.queue = number
$$;

-- Notifies changes of a queue on a channel for a time; returns a text that differs after each change. A verb that
-- changes the queue without a notification has it locked, or runs together with others on it, and has not seen the
-- bit `HEARD` (512, sql/attention.py). So the bit is set with the queue locked: a verb that did not see it has ended,
-- and the look that follows sees its changes. If the bit is already set, no verb clears it while the row is shared,
-- and later it finds the listener.
CREATE FUNCTION listen(number bigint, called text, seconds double precision) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO listener (queue, channel, until)
    VALUES (number, called, clock_timestamp() + seconds * interval '1 second')
    ON CONFLICT (queue, channel) DO UPDATE SET until = excluded.until;
    BEGIN
        PERFORM FROM tally WHERE queue = number AND attention & 512 <> 0 FOR SHARE;
        IF NOT FOUND THEN
            RAISE EXCEPTION USING ERRCODE = 'IO001';
        END IF;
    EXCEPTION WHEN SQLSTATE 'IO001' THEN -- and what was locked is free again
        PERFORM lock_queues(ARRAY[number]);
        UPDATE tally SET attention = attention | 512 WHERE queue = number;
    END;
    RETURN change_of(number);
END $$;

-- ===== guarded changes

-- The changed rows are those that were read before, or the verb fails.
CREATE FUNCTION expect(changed bigint, expected bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF changed <> expected THEN
        RAISE EXCEPTION 'of % rows that were read % are in the state that they had', expected, changed
        USING ERRCODE = 'data_corrupted';
    END IF;
END $$;

-- ===== functions of SQLite, for shared statements

-- The values of a JSON array of numbers, with their positions from 0 on.
CREATE FUNCTION numbers_in(numbers text) RETURNS TABLE (value bigint, key bigint) LANGUAGE sql IMMUTABLE AS $$
    SELECT CAST(one.value AS bigint), one.position - 1
    FROM json_array_elements_text(CAST(numbers AS json)) WITH ORDINALITY AS one(value, position)
$$;

-- An element of a descriptor, as JSON, by a path like $[3]. The properties, on a separate line, are cut off and not
-- parsed: a text in them may contain a NUL, which PostgreSQL refuses when it converts JSON to text, also with ->; other
-- ways that leave the elements unchanged take longer.
CREATE FUNCTION element(array_ text, path text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN path = '$[15]' THEN nullif(left(split_part(array_, E',\n', 2), -1), '')
        WHEN strpos(array_, '\u0000') > 0 THEN (
            SELECT CAST(one.value AS text) FROM json_array_elements(
                CAST(split_part(array_, E',\n', 1) || CASE WHEN strpos(array_, E',\n') > 0 THEN ']' ELSE '' END AS json)
            ) WITH ORDINALITY AS one(value, nth)
            WHERE one.nth = CAST(substr(path, 3, length(path) - 3) AS integer) + 1
        )
        ELSE CAST(
            CAST(split_part(array_, E',\n', 1) || CASE WHEN strpos(array_, E',\n') > 0 THEN ']' ELSE '' END AS json)
            -> CAST(substr(path, 3, length(path) - 3) AS integer) AS text
        )
    END
$$;

CREATE OPERATOR -> (LEFTARG = text, RIGHTARG = text, FUNCTION = element);

-- Whether a message with these flags ends its group or its message in segments: rules.grouping.is_end.
CREATE FUNCTION is_end(flags integer) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN flags & 24 <> 0 THEN flags & 16 <> 0 AND (flags & 4 <> 0 OR flags & 6 = 0) ELSE flags & 4 <> 0 END
$$;
