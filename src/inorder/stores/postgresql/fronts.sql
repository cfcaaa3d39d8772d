-- The part of the schema for the fronts of queues (fronts.py), created after the tables.

-- The levels of one kind of head in order, with the front of each. The server can inline this function.
CREATE FUNCTION levels_of(number bigint, head integer) RETURNS TABLE (rank integer, front bigint) LANGUAGE sql STABLE AS $$
    SELECT level.rank, coalesce(t.fronts[10 * $2 + level.rank + 10], 0)
    FROM (SELECT fronts FROM tally WHERE queue = $1 ORDER BY serial DESC LIMIT 1) AS t,
        generate_series(-9, 0) AS level(rank)
$$;

-- Moves a front back when a message before it becomes available. It runs while inorder.fronts is on.
CREATE FUNCTION fronts_move_back() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    first record;
BEGIN
    FOR first IN
        SELECT queue, 10 * head + rank + 10 AS nth, min(number) AS number FROM after
        WHERE available GROUP BY queue, head, rank ORDER BY queue
    LOOP
        UPDATE tally SET fronts[first.nth] = first.number
        WHERE ctid = (SELECT ctid FROM tally WHERE queue = first.queue ORDER BY serial DESC LIMIT 1)
            AND fronts[first.nth] > first.number;
    END LOOP;
    RETURN NULL;
END $$;

CREATE TRIGGER fronts_move_back AFTER UPDATE ON message REFERENCING NEW TABLE AS after
FOR EACH STATEMENT WHEN (current_setting('inorder.fronts', true) = 'on')
EXECUTE FUNCTION fronts_move_back();
