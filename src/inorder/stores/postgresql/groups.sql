-- The part of the schema for groups of messages, created after the tables and functions.

-- Updates `gathering` and `head` after a statement has changed members of groups, once for all rows. It does not run
-- while the setting inorder.groups is off, and its own updates of `head` do not call it again.
CREATE FUNCTION members_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    queues bigint[];
    group_ids bytea[];
    counts integer[];                     -- how many members more are available
    ends_change boolean[];                -- whether among those that came or went one ends its group
    noted integer;
    known integer := 0;
BEGIN
    IF TG_OP = 'INSERT' THEN
        SELECT array_agg(c.queue), array_agg(c.group_id), array_agg(c.more), array_agg(c.ends)
        INTO queues, group_ids, counts, ends_change
        FROM (
            SELECT queue, group_id, count(*) AS more, bool_or(flags & 16 <> 0) AS ends
            FROM after WHERE group_id IS NOT NULL AND available GROUP BY queue, group_id
        ) AS c;
    ELSIF TG_OP = 'DELETE' THEN
        SELECT array_agg(c.queue), array_agg(c.group_id), array_agg(c.more), array_agg(c.ends)
        INTO queues, group_ids, counts, ends_change
        FROM (
            SELECT queue, group_id, -count(*) AS more, bool_or(flags & 16 <> 0) AS ends
            FROM before WHERE group_id IS NOT NULL AND available GROUP BY queue, group_id
        ) AS c;
        IF EXISTS (SELECT 1 FROM entered) THEN  -- who is inside a group goes with its end
            UPDATE entered SET reader = NULL
            FROM (SELECT DISTINCT queue, group_id FROM before WHERE group_id IS NOT NULL AND is_end(flags) AND state <> 1) AS e
            WHERE entered.queue = e.queue AND entered.group_id = e.group_id;
        END IF;
    ELSE
        SELECT array_agg(c.queue), array_agg(c.group_id), array_agg(c.more), array_agg(c.ends)
        INTO queues, group_ids, counts, ends_change
        FROM (
            SELECT r.queue, r.group_id, sum(r.more) AS more, bool_or(r.ends) AS ends
            FROM (  -- those that came or went: without rows that were available and still are
                SELECT b.queue, b.group_id, b.ends, sum(b.more) AS more
                FROM (
                    SELECT id, queue, group_id, flags & 16 <> 0 AS ends, 1 AS more
                    FROM after WHERE group_id IS NOT NULL AND available
                    UNION ALL
                    SELECT id, queue, group_id, flags & 16 <> 0, -1
                    FROM before WHERE group_id IS NOT NULL AND available
                ) AS b
                GROUP BY b.id, b.queue, b.group_id, b.ends HAVING sum(b.more) <> 0
            ) AS r
            GROUP BY r.queue, r.group_id
        ) AS c;
    END IF;
    IF queues IS NULL THEN
        RETURN NULL;
    END IF;
    IF TG_OP <> 'INSERT' THEN
        DELETE FROM gathering g USING unnest(queues, group_ids, counts) AS c(queue, group_id, more)
        WHERE g.queue = c.queue AND g.group_id = c.group_id AND g.available + c.more = 0;
        GET DIAGNOSTICS known = ROW_COUNT;
    END IF;
    IF known < cardinality(queues) THEN
        UPDATE gathering g SET
            available = g.available + c.more,
            last = CASE WHEN c.ends THEN (
                SELECT min(m.sequence_number) FROM message m
                WHERE m.queue = c.queue AND m.group_id = c.group_id AND m.flags & 16 <> 0 AND m.available
            ) ELSE g.last END
        FROM unnest(queues, group_ids, counts, ends_change) AS c(queue, group_id, more, ends)
        WHERE g.queue = c.queue AND g.group_id = c.group_id;
        GET DIAGNOSTICS noted = ROW_COUNT;
        known := known + noted;
    END IF;
    IF known < cardinality(queues) THEN
        INSERT INTO gathering (queue, group_id, available, last)
        SELECT c.queue, c.group_id, c.more, (
            SELECT min(m.sequence_number) FROM message m
            WHERE m.queue = c.queue AND m.group_id = c.group_id AND m.flags & 16 <> 0 AND m.available
        )
        FROM unnest(queues, group_ids, counts) AS c(queue, group_id, more)
        WHERE c.more > 0 ON CONFLICT DO NOTHING;
    END IF;
    UPDATE message m SET head = w.head
    FROM (
        SELECT c.queue, c.group_id, CASE WHEN g.available >= g.last THEN 2 ELSE 1 END AS head
        FROM unnest(queues, group_ids) AS c(queue, group_id)
        LEFT JOIN gathering g ON g.queue = c.queue AND g.group_id = c.group_id
    ) AS w
    WHERE m.queue = w.queue AND m.group_id = w.group_id AND m.sequence_number = 1 AND m."offset" = 0
        AND m.flags & 24 <> 0 AND m.head <> w.head;
    RETURN NULL;
END $$;

CREATE TRIGGER members_come AFTER INSERT ON message REFERENCING NEW TABLE AS after
FOR EACH STATEMENT WHEN (current_setting('inorder.groups', true) IS DISTINCT FROM 'off')
EXECUTE FUNCTION members_change();

CREATE TRIGGER members_move AFTER UPDATE ON message REFERENCING OLD TABLE AS before NEW TABLE AS after
FOR EACH STATEMENT WHEN (current_setting('inorder.groups', true) IS DISTINCT FROM 'off' AND pg_trigger_depth() = 0)
EXECUTE FUNCTION members_change();

CREATE TRIGGER members_go AFTER DELETE ON message REFERENCING OLD TABLE AS before
FOR EACH STATEMENT WHEN (current_setting('inorder.groups', true) IS DISTINCT FROM 'off')
EXECUTE FUNCTION members_change();
