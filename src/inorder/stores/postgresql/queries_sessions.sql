-- Statements that other databases do not need: who may change what when, who lives, and who waits.

-- ===== locks (backend.py)

-- name: here locked
-- As `here`, by which a verb that writes comes to a queue: until it ends nobody else changes what belongs to the queue.
-- Of PostgreSQL's locks it is the one for updates; FOR UPDATE itself waits for whoever works beside the queue, too.
SELECT t.counter, t.reserved, t.depth, t.attention, CASE WHEN r.stopped = 1 THEN -1 ELSE t.revision END
FROM tally t LEFT JOIN run r ON r.id = 1 WHERE t.queue = ?1 FOR NO KEY UPDATE OF t;

-- name: lock queue
-- The same before `look`: a statement that has waited for a lock sees the rest as it was before.
SELECT coalesce((SELECT stopped FROM run), 0) FROM tally WHERE queue = ?1 FOR NO KEY UPDATE;

-- name: lock queues
-- Several, in the order in which everybody locks them.
SELECT queue FROM tally WHERE queue = ANY (CAST(?1 AS bigint[])) ORDER BY queue FOR NO KEY UPDATE;

-- name: here beside
-- As `here`, for a verb that works beside the queue: until it ends nobody removes the queue.
SELECT t.counter, t.reserved, t.depth, t.attention, CASE WHEN r.stopped = 1 THEN -1 ELSE t.revision END
FROM tally t LEFT JOIN run r ON r.id = 1 WHERE t.queue = ?1 FOR KEY SHARE OF t;

-- name: lock queue beside
-- The same before `look`.
SELECT coalesce((SELECT stopped FROM run), 0) FROM tally WHERE queue = ?1 FOR KEY SHARE;

-- name: lock queue alone
-- Whoever works beside the queue has ended.
SELECT coalesce((SELECT stopped FROM run), 0) FROM tally WHERE queue = ?1 FOR UPDATE;

-- name: hold stagings
-- In the order of their names, as everybody takes them; how many there are.
SELECT count(*) FROM (
    SELECT id FROM unit
    WHERE kind = 'staging' AND name = ANY (CAST(?1 AS text[])) ORDER BY name FOR UPDATE
) AS held;

-- name: begin staging
-- There is no row to hold yet: of two that begin under one name the second finds what the first has begun.
SELECT pg_advisory_xact_lock(session_key(hashtextextended(?1, 0)));

-- name: queues of unit
-- Where a unit holds or locks something: steps from queue to queue, however much there is.
WITH RECURSIVE held AS (
    (SELECT queue FROM message WHERE unit = ?1 ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (SELECT m.queue FROM message m WHERE m.unit = ?1 AND m.queue > held.queue ORDER BY m.queue LIMIT 1)
    FROM held WHERE held.queue IS NOT NULL
)
SELECT queue FROM held WHERE queue IS NOT NULL
UNION
SELECT queue FROM unit WHERE id = ?1 AND queue IS NOT NULL;

-- name: alone
-- A verb that is alone waits for others that are.
SELECT coalesce((SELECT stopped FROM run), 0) FROM manager FOR UPDATE;

-- name: lock waits
-- Two that come to wait for each other see that one after the other.
SELECT pg_advisory_xact_lock(session_key(0));

-- name: lock leftovers
-- One sweeps at a time: another would find the same ones.
SELECT pg_advisory_xact_lock(session_key(-2));

-- name: touched
-- A change of a queue that changes no counter.
UPDATE tally SET depth = depth WHERE queue = ANY (CAST(?1 AS bigint[]));

-- ===== the queue manager as a whole

-- name: stop
-- For all processes, until all have gone.
UPDATE run SET stopped = ?1;

-- name: is running
-- Whether the server has run on since the first process came: PostgreSQL empties the table after a crash and a promotion.
SELECT 1 FROM run;

-- name: runs
-- From now on.
INSERT INTO run (stopped) VALUES (0);

-- ===== who lives: a session holds the lock of its process row

-- name: processes
-- All that have not said goodbye.
SELECT id FROM process ORDER BY id;

-- name: own
-- From now on this session lives as that process.
SELECT pg_advisory_lock(session_key(?1));

-- name: disown
-- It does not any more.
SELECT pg_advisory_unlock(session_key(?1));

-- name: is dead
-- Whether nobody has the lock. Shared, so that several who ask at once get the same answer.
SELECT pg_try_advisory_xact_lock_shared(session_key(?1));

-- name: pid of
-- The process on its own machine: the session says so in its name.
SELECT CAST(substring(a.application_name FROM '^inorder (\d+):') AS bigint)
FROM (SELECT session_key(?1) AS key) k, pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND l.classid = CAST((k.key >> 32) & 4294967295 AS oid) AND l.objid = CAST(k.key & 4294967295 AS oid);

-- ===== who waits (watch.py)

-- name: listen
-- Before a call looks that may wait: the queue's changes are notified on the channel for some seconds.
WITH found AS (SELECT id FROM definition WHERE name = :name AND type = 'local'),
gone AS (
    DELETE FROM listener WHERE (queue, channel) IN (
        SELECT queue, channel FROM listener WHERE until < clock_timestamp() - interval '1 minute' AND channel <> :channel
        FOR UPDATE SKIP LOCKED
    )
),
added AS (
    INSERT INTO listener (queue, channel, until)
    SELECT id, :channel, clock_timestamp() + CAST(:seconds AS double precision) * interval '1 second' FROM found
    ON CONFLICT (queue, channel) DO UPDATE SET until = excluded.until
)
SELECT id, store_number() FROM found;

-- name: listens on
-- While calls wait, now and then; and whether something has changed on their queues.
WITH kept AS (
    UPDATE listener SET until = clock_timestamp() + CAST(:seconds AS double precision) * interval '1 second'
    WHERE channel = :channel AND queue = ANY (CAST(:queues AS bigint[]))
)
SELECT queue, CAST(xmin AS text) FROM tally WHERE queue = ANY (CAST(:queues AS bigint[])) ORDER BY queue;

-- name: wake
-- After a commit, in a transaction of its own: a commit with a notification holds a lock of the whole server.
SELECT count(pg_notify(channel, store_number() || ' ' || queue))
FROM listener WHERE queue = ANY (CAST(?1 AS bigint[])) AND until > clock_timestamp();

-- ===== plain gets

-- name: take away
-- As `take single`, where the messages leave at once: who reads them removes them.
WITH next AS MATERIALIZED (
    SELECT m.id FROM message m JOIN content c ON c.id = m.id
    WHERE m.queue = ?1 AND m.head = 2 AND m.available
    ORDER BY m.rank, m.number, m.ordinal LIMIT ?2
),
m AS (DELETE FROM message USING next WHERE message.id = next.id RETURNING message.*),
got AS (DELETE FROM content c USING m WHERE c.id = m.id RETURNING {got})
SELECT * FROM got ORDER BY rank, number, ordinal;

-- ===== bodies

-- name: beginning
-- The first bytes of a body; the others are not sent.
SELECT substring(body FROM 1 FOR CAST(?2 AS integer)) FROM content WHERE id = ?1;
