-- Statements that only PostgreSQL needs: locks, living processes, and waiting calls.

-- ===== locks (backend.py)

-- name: queue state locked
-- As `queue state`, for a verb that writes: until it ends no other verb can change the queue. It takes the row lock of
-- an update, because FOR UPDATE would also wait for verbs that run beside the queue. On a queue that keeps no order
-- this lock is not enough, so it returns no row.
SELECT t.counter, t.reserved, t.depth, t.attention, CASE WHEN r.stopped = 1 THEN -1 ELSE t.revision END
FROM tally t LEFT JOIN run r ON r.id = 1 WHERE t.queue = ?1 AND t.unordered = 0
ORDER BY t.serial DESC LIMIT 1 FOR NO KEY UPDATE OF t;

-- name: queue state as known
-- The same if the queue is assumed to be as this session left it (known.py). If it is not, the row begins with NULL.
WITH here AS MATERIALIZED (
    SELECT t.counter, t.reserved, t.depth, t.attention, t.revision, coalesce(r.stopped, 0) AS stopped
    FROM tally t LEFT JOIN run r ON r.id = 1 WHERE t.queue = ?1 AND t.unordered = 0
    ORDER BY t.serial DESC LIMIT 1 FOR NO KEY UPDATE OF t
)
SELECT max(revision) FROM here
WHERE revision = ?2 AND attention = ?3 AND stopped = 0 AND depth = ?4 AND counter = ?5 AND reserved = ?6;

-- name: queue state to append
-- The same for a verb that only appends. It returns the state of the queue.
WITH here AS MATERIALIZED (
    SELECT t.counter, t.reserved, t.depth, t.attention, t.revision, coalesce(r.stopped, 0) AS stopped
    FROM tally t LEFT JOIN run r ON r.id = 1 WHERE t.queue = ?1 AND t.unordered = 0
    ORDER BY t.serial DESC LIMIT 1 FOR NO KEY UPDATE OF t
)
SELECT max(counter), max(reserved), max(depth) FROM here
WHERE revision = ?2 AND attention = ?3 AND stopped = 0 AND depth <= ?4;

-- name: count one arrival
-- `queue state to append` and `update queue counters` in one, for the statement by which a single message arrives
-- (making.py). It may wait for the lock: so it names the row by its serial, which only grows, and not by its place.
UPDATE tally SET counter = counter + 1, depth = depth + 1, arrived = arrived + 1,
    serial = greatest(serial, (2 * arrived - depth + 1) / 64)
WHERE queue = ?1 AND serial >= (SELECT serial FROM tally WHERE queue = ?1 ORDER BY serial DESC LIMIT 1)
    AND revision = ?2 AND attention = ?3 AND depth <= ?4 AND counter < reserved AND unordered = 0
    AND NOT EXISTS (SELECT FROM run WHERE id = 1 AND stopped = 1)
RETURNING counter - 1 AS counter, reserved, depth - 1 AS depth;

-- name: lock queues
-- Locks several queues in the order that all verbs use. It also locks one before `queue state and due work` and
-- `queue state`, because a statement that has waited for a lock sees other rows as they were before the wait.
SELECT lock_queues(CAST(?1 AS bigint[]));

-- name: unordered queues
-- The queues among these that keep no order.
SELECT queue FROM tally WHERE queue = ANY (CAST(?1 AS bigint[])) AND unordered = 1;

-- name: enter unordered queue
-- Enters a queue that keeps no order, together with other such verbs. Until they end no verb can lock the queue.
SELECT pg_advisory_xact_lock_shared(session_key(?1));

-- name: queue state together
-- As `queue state`, after `enter unordered queue` or with the queue locked. It returns no row if the queue keeps
-- its order by now.
SELECT t.counter, t.reserved, t.depth, t.attention, CASE WHEN r.stopped = 1 THEN -1 ELSE t.revision END
FROM counted t LEFT JOIN run r ON r.id = 1 WHERE t.queue = ?1 AND t.unordered = 1 ORDER BY t.serial DESC LIMIT 1;

-- name: queue state together as known
-- The same if the queue is assumed to be as this session left it, as in `queue state as known`.
SELECT max(revision) FROM tally
WHERE queue = ?1 AND revision = ?2 AND attention = ?3 AND unordered = 1
    AND NOT EXISTS (SELECT FROM run WHERE id = 1 AND stopped = 1);

-- name: queue state together to append
-- The same for a verb that only appends. It returns the state of the queue.
SELECT max(counter), max(reserved), max(depth) FROM counted
WHERE queue = ?1 AND revision = ?2 AND attention = ?3 AND depth <= ?4 AND unordered = 1
    AND NOT EXISTS (SELECT FROM run WHERE id = 1 AND stopped = 1);

-- name: count one arrival together
-- As `count one arrival`: `queue state together to append` and `draw places`.
SELECT counter, reserved, depth FROM (
    SELECT draw_places(t.counter, 1) - 1 AS counter, t.reserved, t.depth + s.depth AS depth
    FROM tally t CROSS JOIN (SELECT CAST(coalesce(sum(depth), 0) AS bigint) AS depth FROM slot WHERE queue = ?1) AS s
    WHERE t.queue = ?1 AND t.revision = ?2 AND t.attention = ?3 AND t.depth + s.depth <= ?4 AND t.unordered = 1
        AND NOT EXISTS (SELECT FROM run WHERE id = 1 AND stopped = 1)
) AS drawn WHERE counter < reserved;

-- name: draw places
-- Draws numbers for puts to a queue that keeps no order. It returns the first one and the end of the reserved range.
SELECT draw_places(counter, ?2), reserved FROM tally WHERE queue = ?1 AND unordered = 1;

-- name: update queue counters together
-- As `update queue counters`, for verbs that are together on a queue.
INSERT INTO slot AS own (queue, session, depth, arrived) VALUES (?1, pg_backend_pid(), ?2, ?3)
ON CONFLICT (queue, session) DO UPDATE SET depth = own.depth + excluded.depth, arrived = own.arrived + excluded.arrived;

-- name: set order of queue
-- Records whether a queue keeps its order. If it does so again, its numbers continue after those drawn meanwhile.
UPDATE tally SET fronts = NULL, unordered = ?2, counter = now.counter, reserved = greatest(tally.reserved, now.counter)
FROM counted AS now WHERE tally.queue = ?1 AND now.queue = ?1;

-- name: lock queues at once
-- Locks queues without waiting, if later queues are already locked. It returns the number that others have locked;
-- NOWAIT would raise an error, which the server would log.
WITH locked AS MATERIALIZED (
    SELECT queue FROM tally WHERE queue = ANY (CAST(?1 AS bigint[])) FOR NO KEY UPDATE SKIP LOCKED
)
SELECT count(*) - (SELECT count(*) FROM locked) FROM tally WHERE queue = ANY (CAST(?1 AS bigint[]));

-- name: lock all
-- Locks all queues in that order.
SELECT queue FROM tally ORDER BY queue FOR NO KEY UPDATE;

-- name: lock all at once
-- The same if some queues are already locked.
WITH locked AS MATERIALIZED (SELECT queue FROM tally FOR NO KEY UPDATE SKIP LOCKED)
SELECT count(*) - (SELECT count(*) FROM locked) FROM tally;

-- name: queue state beside
-- As `queue state`, for a verb that works beside the queue. Until it ends no verb can remove the queue.
SELECT t.counter, t.reserved, t.depth, t.attention, CASE WHEN r.stopped = 1 THEN -1 ELSE t.revision END
FROM tally t LEFT JOIN run r ON r.id = 1 WHERE t.queue = ?1 FOR KEY SHARE OF t;

-- name: lock queue beside
-- The same before `queue state and due work`.
SELECT 1 FROM tally WHERE queue = ?1 FOR KEY SHARE;

-- name: lock queue alone
-- Waits until verbs beside the queue have ended.
SELECT 1 FROM tally WHERE queue = ?1 FOR UPDATE;

-- name: lock stagings
-- Locks stagings in the order of their names, as all verbs do, and returns how many exist.
SELECT count(*) FROM (
    SELECT id FROM unit
    WHERE kind = 'staging' AND name = ANY (CAST(?1 AS text[])) ORDER BY name FOR UPDATE
) AS held;

-- name: lock staging name
-- There is no row to lock yet. If two verbs begin under one name, the second finds the staging of the first.
SELECT pg_advisory_xact_lock(session_key(hashtextextended(?1, 0)));

-- name: queues of unit
-- The queues on which a unit holds or locks messages, in steps from queue to queue.
WITH RECURSIVE held AS (
    (SELECT queue FROM message WHERE unit = ?1 ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (SELECT m.queue FROM message m WHERE m.unit = ?1 AND m.queue > held.queue ORDER BY m.queue LIMIT 1)
    FROM held WHERE held.queue IS NOT NULL
)
SELECT queue FROM held WHERE queue IS NOT NULL
UNION
SELECT queue FROM unit WHERE id = ?1 AND queue IS NOT NULL;

-- name: lock queue manager
-- A verb that must run alone waits for others of this kind.
SELECT coalesce((SELECT stopped FROM run), 0) FROM manager FOR UPDATE;

-- name: lock waits
-- Readers that are about to wait for each other notice it one after the other.
SELECT pg_advisory_xact_lock(session_key(0));

-- name: lock leftovers
-- Only one verb sweeps at a time, because another would find the same leftovers.
SELECT pg_advisory_xact_lock(session_key(-2));

-- name: touch queues
-- A change of a queue that changes no counter.
UPDATE tally SET depth = depth WHERE ctid = ANY (ARRAY(
    SELECT (SELECT ctid FROM tally WHERE queue = one ORDER BY serial DESC LIMIT 1) FROM unnest(CAST(?1 AS bigint[])) AS one
));

-- ===== the queue manager as a whole

-- name: set stopped
-- Stops the queue manager for all processes until they have left.
UPDATE run SET stopped = ?1;

-- name: server has lost changes
-- Whether the server has crashed or was promoted since the first process connected: PostgreSQL then empties the table.
-- Also the number of the store.
SELECT NOT EXISTS (SELECT FROM run), store_number();

-- name: insert run
-- Records that the server runs without a break from now on.
INSERT INTO run (stopped) VALUES (0);

-- ===== living processes: a session holds the lock of its process row

-- name: all processes
-- All processes that have not signed off.
SELECT id FROM process ORDER BY id;

-- name: lock own process
-- This session now represents that process, unless another session does. It returns the store.
SELECT pg_try_advisory_lock(session_key(?1)), store_number();

-- name: store at this address
-- As `store_number`; NULL, if there is none.
SELECT CAST(CAST(to_regclass('message') AS oid) AS bigint);

-- name: unlock own process
-- This session no longer represents a process.
SELECT pg_advisory_unlock(session_key(?1));

-- name: process is dead
-- Whether no session has the lock. The lock is shared, so that several askers at once get the same answer.
SELECT pg_try_advisory_xact_lock_shared(session_key(?1));

-- name: session of process
-- The process on its own machine, from the name of the session. Sessions of other roles show this only to their own
-- role and to members of pg_read_all_stats. A local socket has no address.
SELECT CAST(substring(a.application_name FROM '^inorder (\d+):') AS bigint), coalesce(host(a.client_addr), ''),
    CAST(extract(epoch FROM a.backend_start) AS double precision)
FROM (SELECT session_key(?1) AS key) k, pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND l.classid = CAST((k.key >> 32) & 4294967295 AS oid) AND l.objid = CAST(k.key & 4294967295 AS oid);

-- ===== waiting calls (watch.py)

-- name: listen to queues
-- Runs before the look of a call that may wait, and from time to time while it waits: changes of these queues are
-- notified on the channel for some seconds. Returns their state; in the order in which all verbs lock them.
WITH found AS MATERIALIZED (
    SELECT id, name FROM definition WHERE name = ANY (CAST(:names AS text[])) AND type = 'local' ORDER BY id
)
SELECT name, id, listen(id, :channel, CAST(:seconds AS double precision)), store_number() FROM found;

-- name: any process is dead
-- Runs from time to time while calls wait; also removes listeners that have not renewed themselves for a minute.
WITH gone AS (
    DELETE FROM listener WHERE (queue, channel) IN (
        SELECT queue, channel FROM listener WHERE until < clock_timestamp() - interval '1 minute'
        FOR UPDATE SKIP LOCKED
    )
)
SELECT EXISTS (SELECT FROM process WHERE id <> ?1 AND pg_try_advisory_xact_lock_shared(session_key(id)));

-- name: notify listeners
-- Runs after a commit in a separate transaction, because a commit with a notification holds a lock of the whole server.
SELECT count(pg_notify(channel, store_number() || ' ' || queue))
FROM listener WHERE queue = ANY (CAST(?1 AS bigint[])) AND until > clock_timestamp();

-- name: flush commits
-- Writes a record, because a transaction without writes would not flush.
SELECT true, set_config('synchronous_commit', ?1, true), pg_logical_emit_message(true, 'inorder', '');

-- ===== bodies

-- name: beginning of body
-- The first bytes of a body; the rest is not transmitted.
SELECT substring(body FROM 1 FOR CAST(?2 AS integer)) FROM content WHERE id = ?1;
