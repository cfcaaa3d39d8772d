-- The statements of the store, by name, each with its reason. What stands in {braces} is filled in: {narrow}, {whole},
-- {got}, {preview} and {bare} by the columns of a row (sql/codec.py), {text_kind} by what a text is written in,
-- {joins}, {chosen} and {head} by what a call chooses from (sql/selection.py), {which} by one number or many. Small
-- records (tables.py) need no statements here.

-- ===== the beginning of every transaction about a queue

-- name: here
-- All that most verbs want to know of their queue, from one row: counters, depth, what to look for, definitions.
SELECT counter, reserved, depth, attention, revision FROM tally WHERE queue = ?1;

-- name: look
-- The same where something may be on the queue, with what there is: anything to do first (expired messages, messages
-- whose delivery time has come, leases that are over) or to heed (edges, marks, groups entered, messages that ask for reports, groups at all). Who listens is not in the file.
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

-- name: draw
-- A process draws numbers that name things, many at a time. Where they pass what is reserved, more is: it tells.
UPDATE tally SET
    counter = counter + ?1,
    reserved = CASE WHEN counter + ?1 > reserved THEN counter + ?1 + ?2 ELSE reserved END
WHERE queue = 0 AND counter BETWEEN 0 AND ?3 AND reserved BETWEEN counter AND ?3
RETURNING counter, reserved;

-- name: skip reserved
-- After a loss of power: some of those that were reserved may have been given away.
UPDATE tally SET counter = reserved WHERE queue = 0;

-- name: attend
-- From now on every verb on the queue looks for this, too.
UPDATE tally SET attention = attention | ?2 WHERE queue = ?1;

-- name: calm
-- Nothing but this has been there for some time.
UPDATE tally SET attention = ?2 WHERE queue = ?1;

-- name: queue comes
-- A local queue is counted from its definition on.
INSERT INTO tally (queue, revision) SELECT ?1, revision FROM manager WHERE ?2 = 'local' ON CONFLICT DO NOTHING;

-- name: queue goes
-- And up to its end.
DELETE FROM tally WHERE queue = ?1;

-- name: revised
-- Each verb sees with its queue whether what calls on it go by has changed.
UPDATE tally SET revision = (SELECT revision FROM manager) WHERE queue = ?1;

-- name: all revised
-- The same of all queues.
UPDATE tally SET revision = (SELECT revision FROM manager);

-- name: queue of number
-- On which a message lies that is marked.
SELECT queue FROM message WHERE id = ?;

-- name: counted
-- A counter and a depth, and how many have arrived, once for a transaction.
UPDATE tally SET counter = ?2, reserved = ?3, depth = depth + ?4, arrived = arrived + ?5 WHERE queue = ?1;

-- ===== messages arrive

-- name: arrive
-- One row for each message; many are one statement with many rows of values.
INSERT INTO message (
    id, queue, state, rank, number, head, group_id, sequence_number, "offset", length, flags, original_length,
    persistent, priority, message_id, correlation_id, uid_origin, uid_number, expires_at, due_at, visible_at, unit,
    reports
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: arrive plain
-- The same for messages in no group that have only what all have: less to hand over.
INSERT INTO message (
    id, queue, state, rank, number, head, sequence_number, "offset", length, flags, original_length, persistent,
    priority, visible_at, unit
) VALUES (?, ?, ?, ?, ?, 2, 1, 0, ?, 0, -1, ?, ?, ?, ?);

-- name: arrive content
-- The wide part of the same messages, on pages of their own, so that a search reads narrow rows.
INSERT INTO content VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: sign
-- Whose authority counts for a message that has just arrived: few have a mark, so it is no column of `arrive`.
UPDATE message SET put_by = ?2 WHERE id = ?1;

-- name: signed
-- The same, read where a report is made, and for a message that may be a trigger message.
SELECT put_by FROM message WHERE id = ?;

-- ===== the search: rows in order of place, by index

-- name: available
-- Steps into message_place, one for each kind of head, merged: a page is read in order, nothing is sorted.
SELECT {narrow} FROM message m INDEXED BY message_place {joins}
WHERE m.queue = :queue AND m.head = {head} AND m.available
    AND (m.rank, m.number, m.ordinal) > (:rank, :number, :ordinal){chosen};

-- name: available by message id
-- For those who name a message id that a program made; ids made here lead to the number.
SELECT {narrow} FROM message m INDEXED BY message_message_id {joins}
WHERE m.queue = :queue AND m.message_id = :wanted AND m.available
    AND (m.rank, m.number, m.ordinal) > (:rank, :number, :ordinal){chosen};

-- name: available by correlation id
-- For those who name a correlation id: replies, mostly.
SELECT {narrow} FROM message m INDEXED BY message_correlation_id {joins}
WHERE m.queue = :queue AND m.correlation_id = :wanted AND m.available
    AND (m.rank, m.number, m.ordinal) > (:rank, :number, :ordinal){chosen};

-- name: available by own priority
-- For those who name a priority: what has it and does not stand at it, for the queue is in order of arrival, say.
SELECT {narrow} FROM message m INDEXED BY message_own_priority {joins}
WHERE m.queue = :queue AND m.priority = :wanted AND m.priority <> -m.rank AND m.available
    AND (m.rank, m.number, m.ordinal) > (:rank, :number, :ordinal){chosen};

-- name: by unique id
-- For those who name a unique id: one made here is the number itself, one that a program brought has an index. Whether
-- it is available, or held by whom, is in what is chosen.
SELECT {narrow} FROM message m {joins}
WHERE m.id = :own_uid AND m.queue = :queue AND m.uid_number IS NULL
    AND (m.rank, m.number, m.ordinal) > (:rank, :number, :ordinal){chosen}
UNION ALL
SELECT {narrow} FROM message m INDEXED BY message_uid {joins}
WHERE m.queue = :queue AND m.uid_number = :uid_number AND m.uid_origin = :uid_origin
    AND (m.rank, m.number, m.ordinal) > (:rank, :number, :ordinal){chosen};

-- name: available by number
-- For those who name a token, or a message id that was made here: both are the number.
SELECT {narrow} FROM message m {joins}
WHERE m.id = :wanted AND m.queue = :queue AND m.available
    AND (m.rank, m.number, m.ordinal) > (:rank, :number, :ordinal){chosen};

-- name: held
-- What one holder keeps from others, in order: a strict reader wants the first, its own lock's reader all.
SELECT {narrow} FROM message m INDEXED BY message_held {joins}
WHERE m.queue = :queue AND m.holder = :wanted AND m.head = {head}
    AND (m.rank, m.number, m.ordinal) > (:rank, :number, :ordinal){chosen};

-- name: next holder
-- Steps from holder to holder, however much each holds.
SELECT min(holder) FROM message INDEXED BY message_held WHERE queue = ?1 AND holder > ?2;

-- name: next available rank
-- Steps from level to level, however much stands on each.
SELECT min(rank) FROM message INDEXED BY message_place WHERE queue = ?1 AND head = ?2 AND rank > ?3 AND available;

-- name: next held rank
-- The same among what one holder keeps.
SELECT min(rank) FROM message INDEXED BY message_held WHERE queue = ?1 AND holder = ?2 AND head = ?3 AND rank > ?4;

-- ===== rows by what keeps them together; the first :most of them

-- name: rows by queue, number
-- The message under a browse cursor, by the number that the cursor keeps.
SELECT {narrow} FROM message m
WHERE m.id = :number AND m.queue = :queue
ORDER BY m.id LIMIT :most;

-- name: rows by queue, uid
-- A unique id made here is the number itself; one that a program brought has an index.
SELECT {narrow} FROM message m WHERE m.id = :own AND m.queue = :queue AND m.uid_number IS NULL
UNION ALL
SELECT {narrow} FROM message m INDEXED BY message_uid
WHERE m.queue = :queue AND m.uid_number = :number AND m.uid_origin = :origin LIMIT :most;

-- name: rows by unit
-- What a unit holds, as it came.
SELECT {narrow} FROM message m INDEXED BY message_unit
WHERE m.unit = :unit
ORDER BY m.id LIMIT :most;

-- name: rows by queue, group_id
-- A group: to see whether it is complete, or what of it is pending.
SELECT {narrow} FROM message m INDEXED BY message_member
WHERE m.queue = :queue AND m.group_id = :group_id AND m.number IS NOT NULL
ORDER BY m.rank, m.number, m.ordinal LIMIT :most;

-- name: rows by queue, everything_of
-- A group, also what has no place yet: to say what is missing.
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
-- What a unit has put, or got, of a group, from a member on.
SELECT {narrow} FROM message m INDEXED BY message_member
WHERE m.queue = :queue AND m.group_id = :group_id AND m.sequence_number >= :first AND m.unit = :unit
    AND m.state = :state
ORDER BY m.sequence_number, m."offset" LIMIT :most;

-- name: rows by lock
-- What a lock id locks, and what was got under it: for its release, its end, and listings of the unique ids (A-19).
SELECT {narrow} FROM message m INDEXED BY message_lock
WHERE m.lock = :lock
ORDER BY m.rank, m.number, m.ordinal LIMIT :most;

-- name: rows by queue, lock_confirm
-- What a confirm id was given for at a browse and lock: its undo unlocks it (A-16).
SELECT {narrow} FROM message m INDEXED BY message_lock_confirm
WHERE m.queue = :queue AND m.lock_confirm = :lock_confirm
ORDER BY m.rank, m.number, m.ordinal LIMIT :most;

-- name: rows by locked_handle
-- A browse that moves on frees what it locked before (R3.70).
SELECT {narrow} FROM message m INDEXED BY message_locked_handle
WHERE m.locked_handle = :locked_handle
ORDER BY m.rank, m.number, m.ordinal LIMIT :most;

-- name: rows by queue, forgotten
-- What a restart had lost and a back out returned: it goes.
SELECT {narrow} FROM message m INDEXED BY message_forgotten
WHERE m.queue = :queue AND m.forgotten = 1 AND m.state = 2
ORDER BY m.rank, m.number, m.ordinal LIMIT :most;

-- name: rows by queue, volatile
-- What a start discards, unless a named unit has it (R1.5, R5.11).
SELECT {narrow} FROM message m INDEXED BY message_nonpersistent
WHERE m.queue = :queue AND m.persistent = 0
ORDER BY m.rank, m.number NULLS FIRST, m.ordinal LIMIT :most;

-- name: next volatile queue
-- A step of the index for each queue that has such messages, however many there are.
SELECT queue FROM message INDEXED BY message_nonpersistent
WHERE persistent = 0 AND queue > ?1 ORDER BY queue LIMIT 1;

-- name: timed queues
-- Where every verb looks for what time ends.
SELECT queue FROM tally WHERE attention & ?1 <> 0 AND queue > 0 ORDER BY queue;

-- name: rows by queue, co_op_marked
-- The marks of a cooperating set end with the last of it.
SELECT {narrow} FROM message m INDEXED BY message_co_op
WHERE m.queue = :queue AND m.co_op_marked_at IS NOT NULL
ORDER BY m.rank, m.number, m.ordinal LIMIT :most;

-- name: rows by queue, over
-- What is going to be discarded, for reports and for listeners.
SELECT {narrow} FROM message m INDEXED BY message_expiry
WHERE m.queue = :queue AND m.expires_at <= :over AND m.expires_at IS NOT NULL AND m.away = 0 AND m.claimed IS NULL
ORDER BY m.expires_at, m.id LIMIT :most;

-- name: rows by queue, reporting_from
-- What has just come and asks for reports.
SELECT {narrow} FROM message m INDEXED BY message_reports
WHERE m.queue = :queue AND m.unit IS NULL AND m.reports IS NOT NULL AND m.number >= :reporting_from
ORDER BY m.id LIMIT :most;

-- name: rows by unit, reporting_on
-- What a unit holds and what asks for reports.
SELECT {narrow} FROM message m INDEXED BY message_reports
WHERE m.queue = :reporting_on AND m.unit = :unit AND m.reports IS NOT NULL
ORDER BY m.id LIMIT :most;

-- name: shapes of group
-- How many gets take a group: by logical messages, or by pieces where they cannot be joined.
SELECT count(DISTINCT sequence_number), count(*), count(DISTINCT {text_kind})
FROM message m INDEXED BY message_member JOIN content c ON c.id = m.id
WHERE m.queue = ? AND m.group_id = ?;

-- name: read
-- The whole of one message, for the call that returns it.
SELECT {whole}
FROM message m JOIN content c ON c.id = m.id WHERE m.id = ?1;

-- name: queue of message
-- For an error about it.
SELECT d.name FROM message m JOIN definition d ON d.id = m.queue WHERE m.id = ?;

-- name: read apart
-- The same with a body that was read apart: the beginning of a long one.
SELECT {bare}
FROM message m JOIN content c ON c.id = m.id WHERE m.id = ?1;

-- ===== plain gets: many at a time

-- name: take
-- The first messages of all that are available, with their contents; the columns as `Codec.got` takes them.
SELECT {got}
FROM (
    SELECT * FROM message INDEXED BY message_place WHERE queue = ?1 AND head = 2 AND available
    UNION ALL
    SELECT * FROM message INDEXED BY message_place WHERE queue = ?1 AND head = 1 AND available
    UNION ALL
    SELECT * FROM message INDEXED BY message_place WHERE queue = ?1 AND head = 0 AND available
    ORDER BY rank, number, ordinal LIMIT ?2
) AS m CROSS JOIN content c ON c.id = m.id;

-- name: take single
-- The same where no groups are on the queue: one step into the index.
SELECT {got}
FROM message m INDEXED BY message_place CROSS JOIN content c ON c.id = m.id
WHERE m.queue = ?1 AND m.head = 2 AND m.available
ORDER BY m.rank, m.number, m.ordinal LIMIT ?2;

-- name: take group
-- A group's available members in logical order, with their contents.
SELECT {got}
FROM message m INDEXED BY message_member CROSS JOIN content c ON c.id = m.id
WHERE m.queue = ?1 AND m.group_id = ?2 AND m.available
ORDER BY m.sequence_number, m."offset", m.rank, m.number, m.ordinal;

-- name: numbers of group
-- What is needed to take a large group: no contents.
SELECT m.id, m.length, m.sequence_number, m.flags FROM message m INDEXED BY message_member
WHERE m.queue = ?1 AND m.group_id = ?2 AND m.available
ORDER BY m.sequence_number, m."offset", m.rank, m.number, m.ordinal;

-- name: hold group
-- A whole group is got at once, however large.
UPDATE message INDEXED BY message_member SET state = ?3, unit = ?4, away = 1, co_op_marked_at = NULL
WHERE queue = ?1 AND group_id = ?2 AND available;

-- name: hold
-- Plain gets in a unit of work.
UPDATE message SET state = ?3, unit = ?4, away = 1, co_op_marked_at = NULL WHERE id {which} AND state = ?2;

-- ===== time

-- name: remove expired
-- What held or locked them may be idle now.
DELETE FROM message WHERE id IN (
    SELECT id FROM message INDEXED BY message_expiry
    WHERE queue = ? AND expires_at <= ? AND expires_at IS NOT NULL AND away = 0 AND claimed IS NULL ORDER BY expires_at, id LIMIT ?
) RETURNING id, length, unit, lock, CASE WHEN state = 1 AND is_end THEN group_id END;

-- name: ripen
-- Delayed messages whose time has come stand among the available ones from now on.
UPDATE message SET due_at = NULL WHERE queue = ? AND due_at <= ?;

-- name: next delivery
-- When a waiter looks again because a delayed message can be read.
SELECT min(due_at) FROM message WHERE queue = ? AND due_at > ? AND state = 2;

-- name: next expiry
-- When a strict waiter looks again because a pending message is over (B-28). What units have got is in the index of
-- pending ones alone.
SELECT min(expires_at) FROM (
    SELECT min(expires_at) AS expires_at FROM message INDEXED BY message_expiry
    WHERE queue = ?1 AND expires_at > ?2 AND expires_at IS NOT NULL AND away = 0 AND claimed IS NULL AND number IS NOT NULL
    UNION ALL
    SELECT min(expires_at) FROM message INDEXED BY message_held
    WHERE queue = ?1 AND holder IS NOT NULL AND expires_at > ?2 AND (away = 1 OR claimed IS NOT NULL)
) AS next;

-- name: next due
-- When a strict waiter looks again because a delay is over (B-28).
SELECT min(due_at) FROM message WHERE queue = ? AND due_at > ? AND number IS NOT NULL;

-- name: next lease end
-- When a waiter looks again because a lock id ends by itself (A-19).
SELECT min(lease_ends_at) FROM unit INDEXED BY unit_lease WHERE queue = ? AND lease_ends_at > ?;

-- name: next unmarking
-- When an unmarked browse looks again because a cooperative mark ends by itself (R3.74).
SELECT min(co_op_marked_at) FROM message WHERE queue = ? AND co_op_marked_at > ? AND number IS NOT NULL;

-- ===== messages leave

-- name: remove
-- Messages leave for good.
DELETE FROM message WHERE id {which} AND state = ?2;

-- name: remove content
-- And their contents with them, or in a step afterwards.
DELETE FROM content WHERE id {which};

-- ===== units

-- name: is idle
-- A confirm id or lock id that holds nothing is forgotten; the first message of many says that it does.
SELECT NOT EXISTS (SELECT 1 FROM message INDEXED BY message_unit WHERE unit = ?1)
    AND NOT EXISTS (SELECT 1 FROM message INDEXED BY message_lock WHERE lock = ?1);

-- name: shares
-- What a unit holds, counted: by queue and state.
SELECT
    queue, state, max(away), count(*), sum(length), max(CASE WHEN expires_at IS NULL THEN 0 ELSE 1 END), max(forgotten),
    max(persistent), count(*) - count(number)
FROM message INDEXED BY message_unit WHERE unit = ? GROUP BY queue, state ORDER BY queue, state;

-- name: shares of lock
-- The same of what a lock id locks.
SELECT
    queue, state, away, count(*), sum(length), max(CASE WHEN expires_at IS NULL THEN 0 ELSE 1 END), max(forgotten),
    max(persistent), count(*) - count(number)
FROM message INDEXED BY message_lock WHERE lock = ? GROUP BY queue, state, away ORDER BY queue, state, away;

-- name: restart unit
-- The record of a connection's unit of work stays for the next one: its row alone changes, and no index.
UPDATE unit SET started_at = ?1 WHERE id = ?2 AND kind = 'session';

-- name: number unit
-- One number for all that a unit puts on a queue; put order within (B-5).
UPDATE message SET number = ?3, ordinal = place.ordinal
FROM (
    SELECT id, row_number() OVER (ORDER BY id) - 1 AS ordinal FROM message INDEXED BY message_unit
    WHERE unit = ?1 AND queue = ?2 AND state = 1 AND claimed IS NULL AND number IS NULL
) AS place
WHERE message.id = place.id;

-- name: show puts
-- A commit shows what the unit put.
UPDATE message SET state = ?3, unit = NULL, visible_at = ?4, forgotten = 0
WHERE unit = ?1 AND queue = ?2 AND state = 1;

-- name: return gets
-- A back out returns what the unit got to its place.
UPDATE message SET state = ?4, unit = NULL, away = 0, claimed = NULL, backouts = backouts + ?5
WHERE unit = ?1 AND queue = ?2 AND state = ?3;

-- name: delay gets
-- What a unit got, and is about to give back, is not to be read before a time.
UPDATE message SET due_at = ?4 WHERE unit = ?1 AND queue = ?2 AND state = ?3;

-- name: describe
-- What is kept with a message of an attempt that failed.
UPDATE content SET descriptor = ?2 WHERE id = ?1;

-- name: remove contents of unit
-- Of a small unit at once, with the rows.
DELETE FROM content WHERE id IN (
    SELECT id FROM message INDEXED BY message_unit WHERE unit = ? AND queue = ? AND state = ?
);

-- name: leave contents of unit
-- Of a large unit the contents are removed later, in steps.
INSERT INTO leftover SELECT id FROM message INDEXED BY message_unit WHERE unit = ? AND queue = ? AND state = ?;

-- name: remove of unit
-- What a commit removes for good, or a back out makes unput: one statement for a unit of any size.
DELETE FROM message WHERE unit = ? AND queue = ? AND state = ?;

-- name: locks of unit
-- Lock ids that may lock nothing when the unit is settled.
SELECT DISTINCT lock FROM message INDEXED BY message_unit
WHERE unit = ? AND queue = ? AND state = ? AND lock IS NOT NULL;

-- name: remove contents between
-- Of messages that came one behind the other, all of which are gone: one step behind the other.
DELETE FROM content WHERE id BETWEEN ? AND ?;

-- name: leave content
-- Contents for later; of a unit see above.
INSERT INTO leftover SELECT id FROM content WHERE id {which};

-- name: some leftovers
-- The length of a body is in front of it: none is read.
SELECT leftover.id, coalesce(length(c.body), 0) FROM leftover LEFT JOIN content c ON c.id = leftover.id
ORDER BY leftover.id LIMIT ?;

-- name: any leftovers
-- Who opens the store asks, in case somebody died before removing them.
SELECT EXISTS (SELECT 1 FROM leftover);

-- name: forget leftovers
-- The step's contents are gone.
DELETE FROM leftover WHERE id {which};

-- ===== calls that wait

-- name: forget edges
-- What was in the way of those who wait may be gone: they find out when they look. No row is written that is not there.
UPDATE wait SET levels = NULL WHERE queue = ?1 AND connection <> ?2 AND levels IS NOT NULL;

-- ===== groups that readers are inside (B-45)

-- name: next taker
-- Steps from unit to unit among those that have got members of a group, however many; with a time, but for members whose
-- time is over.
SELECT min(unit) FROM message INDEXED BY message_taken_member
WHERE queue = ?1 AND group_id = ?2 AND unit > ?3 AND state >= 4
    AND claimed IS NULL AND (CAST(?4 AS DOUBLE PRECISION) IS NULL OR expires_at IS NULL OR expires_at > ?4);

-- name: claiming takers
-- Those that have claimed some: claims are few, and where there is none the group is not looked at.
SELECT DISTINCT unit FROM message INDEXED BY message_member
WHERE queue = ?1 AND group_id = ?2 AND claimed IS NOT NULL
    AND EXISTS (SELECT 1 FROM unit INDEXED BY unit_named WHERE queue = ?1 AND kind = 'claim');

-- name: end group
-- The last member has expired before anybody could see it. (With any other the trigger end_goes does it.)
UPDATE entered SET reader = NULL WHERE queue = ? AND group_id = ?;

-- ===== queues that go

-- ===== what an operator sees

-- name: newest acts
-- The log, the newest first.
SELECT id, at, "user", address, act, queue, outcome, messages, error FROM act INDEXED BY act_at
WHERE (at, id) < (?1, ?2) ORDER BY at DESC, id DESC LIMIT ?3 OFFSET ?4;

-- name: first member
-- Where a group stands in logical order: at the first of its members that is there.
SELECT m.sequence_number, m."offset", m.rank, m.number, m.ordinal FROM message m INDEXED BY message_member
WHERE m.queue = :queue AND m.group_id = :group AND m.number IS NOT NULL AND m.flags & 30 <> 0
    AND (m.expires_at IS NULL OR m.expires_at > :now OR m.away = 1 OR m.claimed IS NOT NULL)
ORDER BY m.sequence_number, m."offset", m.rank, m.number, m.ordinal LIMIT 1;

-- name: units that put
-- Those of which messages may have no place yet: without the prepared ones where a prepare draws the number.
SELECT id FROM unit INDEXED BY unit_session WHERE kind = 'session'
UNION ALL SELECT id FROM unit INDEXED BY unit_prepared WHERE kind = 'prepared' AND ?2 = 1
UNION ALL SELECT id FROM unit INDEXED BY unit_leased WHERE kind = 'lease'
UNION ALL SELECT id FROM unit INDEXED BY unit_named WHERE queue = ?1 AND kind = 'confirm';

-- name: put at
-- When the oldest of some was put.
SELECT min(c.put_at) FROM json_each(?1) AS j CROSS JOIN content c ON c.id = j.value;

-- name: members in order
-- A page of a group, in logical order, behind one of its members.
SELECT {narrow} FROM message m INDEXED BY message_member {joins}
WHERE m.queue = :queue AND m.group_id = :group AND m.number IS NOT NULL AND m.flags & 30 <> 0
    AND (m.sequence_number, m."offset", m.rank, m.number, m.ordinal) > (:sequence, :start, :rank, :number, :ordinal){chosen}
ORDER BY m.sequence_number, m."offset", m.rank, m.number, m.ordinal LIMIT :limit;

-- name: unplaced of unit
-- What a unit has put and what has no place yet, as it came.
SELECT {narrow} FROM message m INDEXED BY message_unit {joins}
WHERE m.unit = :unit AND m.queue = :queue AND m.state = 1 AND m.claimed IS NULL AND m.id > :after AND m.number IS NULL{chosen}
ORDER BY m.id LIMIT :limit;

-- name: previews
-- The descriptors of a page, with the bodies that are short; what is longer is read apart, and in part.
SELECT {preview} FROM json_each(?1) AS j CROSS JOIN message m ON m.id = j.value CROSS JOIN content c ON c.id = m.id;

-- name: tallies
-- All queues, or one, with what is counted of each.
SELECT queue, depth, arrived, counter FROM tally
WHERE queue BETWEEN coalesce(?1, 1) AND coalesce(?1, 9223372036854775807) ORDER BY queue;

-- name: held by units
-- What units hold, counted over the index, with the oldest of each.
SELECT queue, state, count(*), min(id) FROM message AS held INDEXED BY message_unit
WHERE unit IS NOT NULL AND queue = coalesce(?1, queue) GROUP BY unit, queue, state;

-- name: locked by handles
-- What browses have locked, and nobody has got.
SELECT min(queue), count(*), min(id) FROM message AS held INDEXED BY message_locked_handle
WHERE locked_handle IS NOT NULL AND state = 3 GROUP BY locked_handle;

-- name: locked by ids
-- The same of lock ids.
SELECT min(queue), count(*), min(id) FROM message AS held INDEXED BY message_lock
WHERE lock IS NOT NULL AND state = 3 GROUP BY lock;

-- name: delayed
-- What nobody may read yet.
SELECT count(*) FROM message INDEXED BY message_due WHERE queue = ? AND due_at > ? AND state = 2;

-- name: first of next rank
-- Steps from level to level among what is available: the first of each.
SELECT rank, number, ordinal, id FROM message INDEXED BY message_place
WHERE queue = ?1 AND head = ?2 AND rank > ?3 AND available ORDER BY rank, number, ordinal LIMIT 1;

-- name: first delayed of next rank
-- The same among what is delayed, or was and has not been looked at since.
SELECT rank, number, ordinal, id FROM message INDEXED BY message_held
WHERE queue = ?1 AND holder = 0 AND head = ?2 AND rank > ?3 ORDER BY rank, number, ordinal LIMIT 1;

-- name: pending
-- What is pending on a queue, for its operator.
SELECT {narrow} FROM message m INDEXED BY message_held WHERE m.queue = ? AND m.holder IS NOT NULL;

-- name: withheld
-- Available messages behind the first pending one of their level.
SELECT count(*) FROM message INDEXED BY message_place
WHERE queue = ? AND head = ? AND available AND rank = ? AND (number, ordinal) > (?, ?);
