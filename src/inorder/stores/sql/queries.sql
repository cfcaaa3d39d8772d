-- The statements of the store by name, each with its reason. Placeholders in {braces} are filled in: {narrow}, {whole},
-- {got}, {preview} and {bare} with the columns of a row (sql/codec.py), {text_kind} with the type of a text, {joins},
-- {chosen} and {head} with the selection of a call (sql/selection.py), {which} with one number or many; a text between
-- {heads} and {/heads} is written once for each kind of head. Small records (tables.py) need no statements here.

-- ===== the beginning of every transaction about a queue

-- name: queue state
-- Everything that most verbs need about their queue, in one row: counters, depth, attention bits, definitions.
SELECT counter, reserved, depth, attention, revision FROM tally WHERE queue = ?1;

-- name: queue state and due work
-- The same if attention bits are set, with the actual state: work to do first (expired messages, messages whose
-- delivery time has come, ended leases) and conditions to observe (edges, marks, entered groups, messages that ask for
-- reports, any groups). Listeners are not recorded in the file.
SELECT
    counter, reserved, depth, attention, revision,
    (SELECT min(expires_at) FROM message WHERE queue = ?1 AND expires_at IS NOT NULL AND away = 0 AND claimed IS NULL),
    (SELECT min(due_at) FROM message WHERE queue = ?1 AND due_at IS NOT NULL),
    (SELECT min(lease_ends_at) FROM unit WHERE queue = ?1 AND lease_ends_at IS NOT NULL),
    EXISTS (SELECT 1 FROM wait WHERE queue = ?1 AND levels IS NOT NULL),
    EXISTS (SELECT 1 FROM mark),
    EXISTS (SELECT 1 FROM entered WHERE queue = ?1),
    EXISTS (SELECT 1 FROM message INDEXED BY message_reports WHERE queue = ?1 AND reports IS NOT NULL),
    EXISTS (SELECT 1 FROM message INDEXED BY message_member WHERE queue = ?1 AND group_id IS NOT NULL),
    0
FROM tally WHERE queue = ?1;

-- name: draw numbers
-- A process draws identifying numbers in bulk. If they exceed the reserved range, it is extended and returned.
UPDATE tally SET
    counter = counter + ?1,
    reserved = CASE WHEN counter + ?1 > reserved THEN counter + ?1 + ?2 ELSE reserved END
WHERE queue = 0 AND counter BETWEEN 0 AND ?3 AND reserved BETWEEN counter AND ?3
RETURNING counter, reserved;

-- name: skip reserved numbers
-- After a loss of power, because some of the reserved numbers may already have been used.
UPDATE tally SET counter = reserved WHERE queue = 0;

-- name: set attention bits
-- From now on every verb on the queue checks for this too.
UPDATE tally SET attention = attention | ?2 WHERE queue = ?1;

-- name: clear attention bits
-- Clears attention bits that have been unnecessary for some time.
UPDATE tally SET attention = ?2 WHERE queue = ?1;

-- name: insert queue counters
-- A local queue has counters from its definition on.
INSERT INTO tally (queue, revision) SELECT ?1, revision FROM manager WHERE ?2 = 'local' ON CONFLICT DO NOTHING;

-- name: delete queue counters
-- A deleted queue loses its counters.
DELETE FROM tally WHERE queue = ?1;

-- name: set revision of queue
-- Each verb sees with its queue whether the definitions that it uses have changed.
UPDATE tally SET revision = (SELECT revision FROM manager) WHERE queue = ?1;

-- name: set revision of all queues
-- The same for all queues.
UPDATE tally SET revision = (SELECT revision FROM manager);

-- name: queue of marked message
-- The queue of a marked message.
SELECT queue FROM message WHERE id = ?;

-- name: update queue counters
-- Updates counter, depth and number of arrivals once in a transaction.
UPDATE tally SET counter = ?2, reserved = ?3, depth = depth + ?4, arrived = arrived + ?5 WHERE queue = ?1;

-- ===== messages arrive

-- name: insert message
-- One row for each message; many are one statement with many rows of values.
INSERT INTO message (
    id, queue, state, rank, number, head, group_id, sequence_number, "offset", length, flags, original_length,
    persistent, priority, message_id, correlation_id, uid_origin, uid_number, expires_at, due_at, visible_at, unit,
    reports
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: insert plain message
-- The same for messages in no group with only the common columns, because fewer values are passed.
INSERT INTO message (
    id, queue, state, rank, number, head, sequence_number, "offset", length, flags, original_length, persistent,
    priority, visible_at, unit
) VALUES (?, ?, ?, ?, ?, 2, 1, 0, ?, 0, -1, ?, ?, ?, ?);

-- name: insert content
-- The wide part of the same messages, on separate pages, so that a search reads narrow rows.
INSERT INTO content VALUES (?, ?, ?, ?, ?, ?, ?{later});

-- name: set user of message
-- Marks a message that has just arrived with the user whose authority counts. Few messages have a mark, so it is not a
-- column of `insert message`.
UPDATE message SET put_by = ?2 WHERE id = ?1;

-- name: user of message
-- Reads the mark, for a report or for a message that may be a trigger message.
SELECT put_by FROM message WHERE id = ?;

-- ===== the search: rows in order of place, by index

-- name: available by place
-- Steps into message_place, one for each kind of head, merged: a page is read in order, nothing is sorted.
SELECT {narrow} FROM message m INDEXED BY message_place {joins}
WHERE m.queue = :queue AND m.head = {head} AND m.available
    AND (m.rank, m.number, m.ordinal) > (:rank, :number, :ordinal){chosen};

-- name: available by message id
-- For calls that match a message id from a program. Ids generated here lead to the number.
SELECT {narrow} FROM message m INDEXED BY message_message_id {joins}
WHERE m.queue = :queue AND m.message_id = :wanted AND m.available
    AND (m.rank, m.number, m.ordinal) > (:rank, :number, :ordinal){chosen};

-- name: available by correlation id
-- For calls that match a correlation id, mostly to get replies.
SELECT {narrow} FROM message m INDEXED BY message_correlation_id {joins}
WHERE m.queue = :queue AND m.correlation_id = :wanted AND m.available
    AND (m.rank, m.number, m.ordinal) > (:rank, :number, :ordinal){chosen};

-- name: available by own priority
-- For calls that match a priority: messages with this priority at another place, for example on a queue in order of
-- arrival.
SELECT {narrow} FROM message m INDEXED BY message_own_priority {joins}
WHERE m.queue = :queue AND m.priority = :wanted AND m.priority <> -m.rank AND m.available
    AND (m.rank, m.number, m.ordinal) > (:rank, :number, :ordinal){chosen};

-- name: messages by unique id
-- For calls that match a unique id. An id generated here is the number itself; an id from a program has an index. The
-- chosen columns show whether the message is available, and its holder.
SELECT {narrow} FROM message m {joins}
WHERE m.id = :own_uid AND m.queue = :queue AND m.uid_number IS NULL
    AND (m.rank, m.number, m.ordinal) > (:rank, :number, :ordinal){chosen}
UNION ALL
SELECT {narrow} FROM message m INDEXED BY message_uid {joins}
WHERE m.queue = :queue AND m.uid_number = :uid_number AND m.uid_origin = :uid_origin
    AND (m.rank, m.number, m.ordinal) > (:rank, :number, :ordinal){chosen};

-- name: available by number
-- For calls that match a token or a message id generated here, because both are the number.
SELECT {narrow} FROM message m {joins}
WHERE m.id = :wanted AND m.queue = :queue AND m.available
    AND (m.rank, m.number, m.ordinal) > (:rank, :number, :ordinal){chosen};

-- name: messages of holder by place
-- Messages of one holder in order. A strict reader needs the first, a reader with the lock id all.
SELECT {narrow} FROM message m INDEXED BY message_held {joins}
WHERE m.queue = :queue AND m.holder = :wanted AND m.head = {head}
    AND (m.rank, m.number, m.ordinal) > (:rank, :number, :ordinal){chosen};

-- name: next holder
-- Steps from holder to holder, without reading all messages of each.
SELECT min(holder) FROM message INDEXED BY message_held WHERE queue = ?1 AND holder > ?2;

-- name: next available rank
-- Steps from level to level, without reading all of each.
SELECT min(rank) FROM message INDEXED BY message_place WHERE queue = ?1 AND head = ?2 AND rank > ?3 AND available;

-- name: next held rank
-- The same among the messages of one holder.
SELECT min(rank) FROM message INDEXED BY message_held WHERE queue = ?1 AND holder = ?2 AND head = ?3 AND rank > ?4;

-- ===== rows by a common key; the first :most of them

-- name: rows by queue, number
-- The message under a browse cursor, by the number that the cursor keeps.
SELECT {narrow} FROM message m
WHERE m.id = :number AND m.queue = :queue
ORDER BY m.id LIMIT :most;

-- name: rows by queue, numbers
-- Messages whose delay a retry by hand has ended.
SELECT {narrow} FROM message m
WHERE m.id IN (SELECT value FROM json_each(:numbers)) AND m.queue = :queue
ORDER BY m.id LIMIT :most;

-- name: rows by queue, uid
-- A unique id made here is the number itself; an id from a program has an index.
SELECT {narrow} FROM message m WHERE m.id = :own AND m.queue = :queue AND m.uid_number IS NULL
UNION ALL
SELECT {narrow} FROM message m INDEXED BY message_uid
WHERE m.queue = :queue AND m.uid_number = :number AND m.uid_origin = :origin LIMIT :most;

-- name: rows by queue, uids
-- Only ids that a put supplied, because a number that is reserved for an id is no message's number.
SELECT {narrow} FROM message m INDEXED BY message_uid
WHERE m.queue = :queue AND m.uid_number BETWEEN :first AND :last AND m.uid_origin = :origin LIMIT :most;

-- name: rows by unit
-- The messages of a unit in order of arrival.
SELECT {narrow} FROM message m INDEXED BY message_unit
WHERE m.unit = :unit
ORDER BY m.id LIMIT :most;

-- name: rows by queue, group_id
-- A group, to check whether it is complete and which of its messages are pending.
SELECT {narrow} FROM message m INDEXED BY message_member
WHERE m.queue = :queue AND m.group_id = :group_id AND m.number IS NOT NULL
ORDER BY m.rank, m.number, m.ordinal LIMIT :most;

-- name: rows by queue, everything_of
-- A group including messages without a place, to list the missing ones.
SELECT {narrow} FROM message m INDEXED BY message_member
WHERE m.queue = :queue AND m.group_id = :everything_of
ORDER BY m.rank, m.number NULLS FIRST, m.ordinal LIMIT :most;

-- name: rows by queue, member
-- The next member of a group for a reader inside it: its numbers lead to it, however large the group.
SELECT {narrow} FROM message m INDEXED BY message_member
WHERE m.queue = :queue AND m.group_id = :group AND m.sequence_number = :sequence AND m."offset" = :start
    AND m.number IS NOT NULL
ORDER BY m.rank, m.number, m.ordinal LIMIT :most;

-- name: rows by queue, group_id, unit, first, state
-- The members of a group that a unit has put or got, from one member on.
SELECT {narrow} FROM message m INDEXED BY message_member
WHERE m.queue = :queue AND m.group_id = :group_id AND m.sequence_number >= :first AND m.unit = :unit
    AND m.state = :state
ORDER BY m.sequence_number, m."offset" LIMIT :most;

-- name: rows by lock
-- Messages locked or got under a lock id, for its release, its end, and lists of unique ids (A-19).
SELECT {narrow} FROM message m INDEXED BY message_lock
WHERE m.lock = :lock
ORDER BY m.rank, m.number, m.ordinal LIMIT :most;

-- name: rows by queue, group_id, lock
-- Whether a lock id holds messages of a group that another reader is inside: one is enough.
SELECT {narrow} FROM message m INDEXED BY message_lock
WHERE m.lock = :lock AND m.queue = :queue AND m.group_id = :group_id LIMIT :most;

-- name: rows by queue, lock_confirm
-- Messages that a browse with lock locked under a confirm id, which its undo unlocks (A-16).
SELECT {narrow} FROM message m INDEXED BY message_lock_confirm
WHERE m.queue = :queue AND m.lock_confirm = :lock_confirm
ORDER BY m.rank, m.number, m.ordinal LIMIT :most;

-- name: rows by locked_handle
-- A browse that moves on unlocks its previous messages (R3.70).
SELECT {narrow} FROM message m INDEXED BY message_locked_handle
WHERE m.locked_handle = :locked_handle
ORDER BY m.rank, m.number, m.ordinal LIMIT :most;

-- name: rows by queue, forgotten
-- Messages that a restart lost and a back out returned, which are removed now.
SELECT {narrow} FROM message m INDEXED BY message_forgotten
WHERE m.queue = :queue AND m.forgotten = 1 AND m.state = 2
ORDER BY m.rank, m.number, m.ordinal LIMIT :most;

-- name: rows by queue, volatile
-- Messages that a start discards, unless a named unit holds them (R1.5, R5.11).
SELECT {narrow} FROM message m INDEXED BY message_nonpersistent
WHERE m.queue = :queue AND m.persistent = 0
ORDER BY m.rank, m.number NULLS FIRST, m.ordinal LIMIT :most;

-- name: next volatile queue
-- A step of the index for each queue that has such messages, however many there are.
SELECT queue FROM message INDEXED BY message_nonpersistent
WHERE persistent = 0 AND queue > ?1 ORDER BY queue LIMIT 1;

-- name: queues with timed work
-- Queues on which every verb checks for expired messages and the like.
SELECT queue FROM tally WHERE attention & ?1 <> 0 AND queue > 0 ORDER BY queue;

-- name: rows by queue, co_op_marked
-- The marks of a cooperating set end with the last of it.
SELECT {narrow} FROM message m INDEXED BY message_co_op
WHERE m.queue = :queue AND m.co_op_marked_at IS NOT NULL
ORDER BY m.rank, m.number, m.ordinal LIMIT :most;

-- name: rows by queue, over
-- Messages about to be discarded, for reports and listeners.
SELECT {narrow} FROM message m INDEXED BY message_expiry
WHERE m.queue = :queue AND m.expires_at <= :over AND m.expires_at IS NOT NULL AND m.away = 0 AND m.claimed IS NULL
ORDER BY m.expires_at, m.id LIMIT :most;

-- name: rows by queue, reporting_from
-- Messages that have just arrived and ask for reports.
SELECT {narrow} FROM message m INDEXED BY message_reports
WHERE m.queue = :queue AND m.unit IS NULL AND m.reports IS NOT NULL AND m.number >= :reporting_from
ORDER BY m.id LIMIT :most;

-- name: rows by unit, reporting_on
-- Messages of a unit that ask for reports.
SELECT {narrow} FROM message m INDEXED BY message_reports
WHERE m.queue = :reporting_on AND m.unit = :unit AND m.reports IS NOT NULL
ORDER BY m.id LIMIT :most;

-- name: count gets for group
-- The number of gets that a group needs: one for each logical message, or for each piece that cannot be joined.
SELECT count(DISTINCT sequence_number), count(*), count(DISTINCT {text_kind})
FROM message m INDEXED BY message_member JOIN content c ON c.id = m.id
WHERE m.queue = ? AND m.group_id = ?;

-- name: message by number
-- The whole of one message, for the call that returns it.
SELECT {whole}
FROM message m JOIN content c ON c.id = m.id WHERE m.id = ?1;

-- name: queue of message
-- The queue of a message, for an error text.
SELECT d.name FROM message m JOIN definition d ON d.id = m.queue WHERE m.id = ?;

-- name: message by number without body
-- The same with a separately read body: the beginning of a long one.
SELECT {bare}
FROM message m JOIN content c ON c.id = m.id WHERE m.id = ?1;

-- ===== plain gets: many at a time

-- name: get available
-- The first messages of all that are available, with their contents; the columns as `Codec.got` takes them.
SELECT {got}
FROM (
    {heads}
    SELECT * FROM message INDEXED BY message_place WHERE queue = ?1 AND head = {head} AND available
    {/heads}
    ORDER BY rank, number, ordinal LIMIT ?2
) AS m CROSS JOIN content c ON c.id = m.id;

-- name: get available singles
-- The same where no groups are on the queue: one step into the index.
SELECT {got}
FROM message m INDEXED BY message_place CROSS JOIN content c ON c.id = m.id
WHERE m.queue = ?1 AND m.head = 2 AND m.available
ORDER BY m.rank, m.number, m.ordinal LIMIT ?2;

-- name: get available of group
-- A group's available members in logical order, with their contents.
SELECT {got}
FROM message m INDEXED BY message_member CROSS JOIN content c ON c.id = m.id
WHERE m.queue = ?1 AND m.group_id = ?2 AND m.available
ORDER BY m.sequence_number, m."offset", m.rank, m.number, m.ordinal;

-- name: numbers of group
-- The numbers for taking a large group, without contents.
SELECT m.id, m.length, m.sequence_number, m.flags FROM message m INDEXED BY message_member
WHERE m.queue = ?1 AND m.group_id = ?2 AND m.available
ORDER BY m.sequence_number, m."offset", m.rank, m.number, m.ordinal;

-- name: hold group for unit
-- A whole group is got at once, however large.
UPDATE message INDEXED BY message_member SET state = ?3, unit = ?4, away = 1, co_op_marked_at = NULL
WHERE queue = ?1 AND group_id = ?2 AND available;

-- name: hold messages for unit
-- Plain gets in a unit of work.
UPDATE message SET state = ?3, unit = ?4, away = 1, co_op_marked_at = NULL WHERE id {which} AND state = ?2;

-- ===== time

-- name: delete expired messages
-- Their holders and locks may be idle afterwards, so it returns them.
DELETE FROM message WHERE id IN (
    SELECT id FROM message INDEXED BY message_expiry
    WHERE queue = ? AND expires_at <= ? AND expires_at IS NOT NULL AND away = 0 AND claimed IS NULL ORDER BY expires_at, id LIMIT ?
) RETURNING id, length, unit, lock, CASE WHEN state = 1 AND is_end THEN group_id END;

-- name: end delays
-- Makes delayed messages available whose time has come.
UPDATE message SET due_at = NULL WHERE queue = ? AND due_at <= ?;

-- name: next delivery
-- When a waiter looks again because a delayed message can be read.
SELECT min(due_at) FROM message WHERE queue = ? AND due_at > ? AND state = 2;

-- name: next expiry
-- When a strict waiter looks again because a pending message ends (B-28). Got messages are only in the index of pending
-- ones.
SELECT min(expires_at) FROM (
    SELECT min(expires_at) AS expires_at FROM message INDEXED BY message_expiry
    WHERE queue = ?1 AND expires_at > ?2 AND expires_at IS NOT NULL AND away = 0 AND claimed IS NULL AND number IS NOT NULL
    UNION ALL
    SELECT min(expires_at) FROM message INDEXED BY message_held
    WHERE queue = ?1 AND holder IS NOT NULL AND expires_at > ?2 AND (away = 1 OR claimed IS NOT NULL)
) AS next;

-- name: next due
-- When a strict waiter looks again because a delay ends (B-28).
SELECT min(due_at) FROM message WHERE queue = ? AND due_at > ? AND number IS NOT NULL;

-- name: next lease end
-- When a waiter looks again because a lock id expires (A-19).
SELECT min(lease_ends_at) FROM unit INDEXED BY unit_lease WHERE queue = ? AND lease_ends_at > ?;

-- name: next unmarking
-- When an unmarked browse looks again because a cooperative mark expires (R3.74).
SELECT min(co_op_marked_at) FROM message WHERE queue = ? AND co_op_marked_at > ? AND number IS NOT NULL;

-- ===== messages leave

-- name: delete messages
-- Removes messages for good.
DELETE FROM message WHERE id {which} AND state = ?2;

-- name: delete content
-- Removes their contents, at once or in a later step.
DELETE FROM content WHERE id {which};

-- ===== units

-- name: is idle
-- A confirm id or lock id without messages is removed. The first message found shows that it still has some.
SELECT NOT EXISTS (SELECT 1 FROM message INDEXED BY message_unit WHERE unit = ?1)
    AND NOT EXISTS (SELECT 1 FROM message INDEXED BY message_lock WHERE lock = ?1);

-- name: shares of unit
-- Counts the messages of a unit by queue and state.
SELECT
    queue, state, max(away), count(*), sum(length), max(CASE WHEN expires_at IS NULL THEN 0 ELSE 1 END), max(forgotten),
    max(persistent), count(*) - count(number)
FROM message INDEXED BY message_unit WHERE unit = ? GROUP BY queue, state ORDER BY queue, state;

-- name: shares of lock
-- The same for a lock id.
SELECT
    queue, state, away, count(*), sum(length), max(CASE WHEN expires_at IS NULL THEN 0 ELSE 1 END), max(forgotten),
    max(persistent), count(*) - count(number)
FROM message INDEXED BY message_lock WHERE lock = ? GROUP BY queue, state, away ORDER BY queue, state, away;

-- name: restart unit
-- Reuses the record of a connection's unit of work for the next one, so that only its row changes, and no index.
UPDATE unit SET started_at = ?1 WHERE id = ?2 AND kind = 'session';

-- name: number puts of unit
-- All puts of a unit on a queue get one number, and keep their order within it (B-5).
UPDATE message SET number = ?3, ordinal = place.ordinal
FROM (
    SELECT id, row_number() OVER (ORDER BY id) - 1 AS ordinal FROM message INDEXED BY message_unit
    WHERE unit = ?1 AND queue = ?2 AND state = 1 AND claimed IS NULL AND number IS NULL
) AS place
WHERE message.id = place.id;

-- name: show puts
-- A commit makes the unit's puts visible.
UPDATE message SET state = ?3, unit = NULL, visible_at = ?4, forgotten = 0
WHERE unit = ?1 AND queue = ?2 AND state = 1;

-- name: return gets
-- A back out returns the unit's gets to their places.
UPDATE message SET state = ?4, unit = NULL, away = 0, claimed = NULL, backouts = backouts + ?5
WHERE unit = ?1 AND queue = ?2 AND state = ?3;

-- name: delay gets
-- Delays the gets of a unit that is about to be backed out.
UPDATE message SET due_at = ?4 WHERE unit = ?1 AND queue = ?2 AND state = ?3;

-- name: update descriptor
-- Records a failed attempt in its message.
UPDATE content SET descriptor = ?2 WHERE id = ?1;

-- name: delete contents of unit
-- Removes the contents of a small unit at once, together with the rows.
DELETE FROM content WHERE id IN (
    SELECT id FROM message INDEXED BY message_unit WHERE unit = ? AND queue = ? AND state = ?
);

-- name: leave contents of unit for sweep
-- Leaves the contents of a large unit for removal in later steps.
INSERT INTO leftover SELECT id FROM message INDEXED BY message_unit WHERE unit = ? AND queue = ? AND state = ?;

-- name: delete messages of unit
-- Removes the gets of a commit or the puts of a back out, in one statement for a unit of any size.
DELETE FROM message WHERE unit = ? AND queue = ? AND state = ?;

-- name: locks of unit
-- Lock ids that may have no messages left once the unit is settled.
SELECT DISTINCT lock FROM message INDEXED BY message_unit
WHERE unit = ? AND queue = ? AND state = ? AND lock IS NOT NULL;

-- name: delete contents between
-- For consecutive messages that are all removed, because it is one walk over the table.
DELETE FROM content WHERE id BETWEEN ? AND ?;

-- name: leave content for sweep
-- Leaves contents for later removal; for a unit see above.
INSERT INTO leftover SELECT id FROM content WHERE id {which};

-- name: first leftovers
-- The length is stored before the body, so no body is read.
SELECT leftover.id, coalesce(length(c.body), 0) FROM leftover LEFT JOIN content c ON c.id = leftover.id
ORDER BY leftover.id LIMIT ?;

-- name: any leftovers
-- Asked when a store is opened, in case a process died before removing them.
SELECT EXISTS (SELECT 1 FROM leftover);

-- name: delete leftovers
-- The step's contents are gone.
DELETE FROM leftover WHERE id {which};

-- ===== calls that wait

-- name: clear edges of waits
-- Removes edges of waiting calls that may be outdated; each call records its edges at its next look. It writes only
-- existing rows.
UPDATE wait SET levels = NULL WHERE queue = ?1 AND connection <> ?2 AND levels IS NOT NULL;

-- ===== groups that readers are inside (B-45)

-- name: next unit inside group
-- Steps from unit to unit among those that have got members of a group, however many. With a time, expired members are
-- left out.
SELECT min(unit) FROM message INDEXED BY message_taken_member
WHERE queue = ?1 AND group_id = ?2 AND unit > ?4 AND state >= 4
    AND claimed IS NULL AND (CAST(?3 AS DOUBLE PRECISION) IS NULL OR expires_at IS NULL OR expires_at > ?3);

-- name: claims inside group
-- Claims that hold members. Claims are few, and without any the group is not read.
SELECT DISTINCT unit FROM message INDEXED BY message_member
WHERE queue = ?1 AND group_id = ?2 AND claimed IS NOT NULL
    AND EXISTS (SELECT 1 FROM unit INDEXED BY unit_named WHERE queue = ?1 AND kind = 'claim');

-- name: end reader's group
-- For a last member that expired before it was visible. (In all other cases the trigger end_goes does it.)
UPDATE entered SET reader = NULL WHERE queue = ? AND group_id = ?;
