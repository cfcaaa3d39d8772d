-- The statements of the store, by name, each with its reason. What stands in {braces} is filled in: {columns} by the
-- columns of a row, narrow (shelf.py) or whole (codec.py), {joins} and {chosen} by what a call chooses from (its match,
-- and marks that it passes over).

-- ===== the beginning of every transaction about a queue

-- name: here
-- All that every verb wants to know of its queue, in one step: counters, depth, and whether there is anything to do
-- first (expired messages, messages whose delivery time has come, leases that are over) or to heed (edges, marks,
-- groups entered).
SELECT
    counter, reserved, depth,
    (SELECT min(expires_at) FROM message WHERE queue = ?1 AND expires_at IS NOT NULL AND NOT away AND claimed IS NULL),
    (SELECT min(due_at) FROM message WHERE queue = ?1 AND due_at IS NOT NULL),
    (SELECT min(lease_ends_at) FROM unit WHERE queue = ?1 AND lease_ends_at IS NOT NULL),
    EXISTS (SELECT 1 FROM edge WHERE queue = ?1),
    EXISTS (SELECT 1 FROM mark),
    EXISTS (SELECT 1 FROM entered WHERE queue = ?1),
    (SELECT revision FROM manager)
FROM tally WHERE queue = ?1;

-- name: draw
-- The counter of numbers that name things, for verbs that make some.
SELECT counter, reserved FROM tally WHERE queue = 0;

-- name: drawn
-- What the verb drew of the numbers that name things, once, at its end.
UPDATE tally SET counter = ?2, reserved = ?3 WHERE queue = ?1;

-- name: counted
-- A queue's counter and depth, and how many have arrived, once for a transaction.
UPDATE tally SET counter = ?2, reserved = ?3, depth = depth + ?4, arrived = arrived + ?5 WHERE queue = ?1;

-- ===== messages arrive

-- name: arrive
-- One row for each message; many are one statement with many rows of values.
INSERT INTO message (
    id, queue, state, rank, number, head, group_id, sequence_number, "offset", length, flags, original_length,
    persistent, priority, message_id, correlation_id, uid_origin, uid_number, expires_at, due_at, visible_at, unit
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: arrive content
-- The wide part of the same messages, on pages of their own, so that a search reads narrow rows.
INSERT INTO content VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- ===== the search: rows in order of place, by index

-- name: available
-- Steps into message_place, one for each kind of head, merged: a page is read in order, nothing is sorted.
SELECT {columns} FROM message m INDEXED BY message_place {joins}
WHERE m.queue = :queue AND m.head = {head} AND m.available
    AND (m.rank, m.number, m.ordinal) > (:rank, :number, :ordinal){chosen};

-- name: available by message id
-- For those who name a message id that a program made; ids made here lead to the number.
SELECT {columns} FROM message m INDEXED BY message_message_id {joins}
WHERE m.queue = :queue AND m.message_id = :wanted AND m.available
    AND (m.rank, m.number, m.ordinal) > (:rank, :number, :ordinal){chosen};

-- name: available by correlation id
-- For those who name a correlation id: replies, mostly.
SELECT {columns} FROM message m INDEXED BY message_correlation_id {joins}
WHERE m.queue = :queue AND m.correlation_id = :wanted AND m.available
    AND (m.rank, m.number, m.ordinal) > (:rank, :number, :ordinal){chosen};

-- name: available by own priority
-- For those who name a priority: what has it and does not stand at it, for the queue is in order of arrival, say.
SELECT {columns} FROM message m INDEXED BY message_own_priority {joins}
WHERE m.queue = :queue AND m.priority = :wanted AND m.priority <> -m.rank AND m.available
    AND (m.rank, m.number, m.ordinal) > (:rank, :number, :ordinal){chosen};

-- name: by unique id
-- For those who name a unique id: one made here is the number itself, one that a program brought has an index. Whether
-- it is available, or held by whom, is in what is chosen.
SELECT {columns} FROM message m {joins}
WHERE m.id = :own_uid AND m.queue = :queue AND m.uid_number IS NULL
    AND (m.rank, m.number, m.ordinal) > (:rank, :number, :ordinal){chosen}
UNION ALL
SELECT {columns} FROM message m INDEXED BY message_uid {joins}
WHERE m.queue = :queue AND m.uid_number = :uid_number AND m.uid_origin = :uid_origin
    AND (m.rank, m.number, m.ordinal) > (:rank, :number, :ordinal){chosen};

-- name: available by number
-- For those who name a token, or a message id that was made here: both are the number.
SELECT {columns} FROM message m {joins}
WHERE m.id = :wanted AND m.queue = :queue AND m.available
    AND (m.rank, m.number, m.ordinal) > (:rank, :number, :ordinal){chosen};

-- name: held
-- What one holder keeps from others, in order: a strict reader wants the first, its own lock's reader all.
SELECT {columns} FROM message m INDEXED BY message_held {joins}
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

-- name: member
-- The next member of a group for a reader inside it: its numbers lead to it, however large the group.
SELECT {columns} FROM message m INDEXED BY message_member {joins}
WHERE m.queue = :queue AND m.group_id = :group AND m.sequence_number = :sequence AND m."offset" = :start
    AND m.number IS NOT NULL{chosen}
ORDER BY m.rank, m.number, m.ordinal;

-- name: members
-- A whole group: to see whether it is complete, or what of it is pending.
SELECT {columns} FROM message m INDEXED BY message_member
WHERE m.queue = ? AND m.group_id = ? AND m.number IS NOT NULL;

-- name: shapes of group
-- How many gets take a group: by logical messages, or by pieces where they cannot be joined.
SELECT count(DISTINCT sequence_number), count(*), count(DISTINCT (c.coded_character_set_id << 32) + c.encoding)
FROM message m INDEXED BY message_member JOIN content c ON c.id = m.id
WHERE m.queue = ? AND m.group_id = ?;

-- name: row
-- The message under a browse cursor, by the number that the cursor keeps.
SELECT {columns} FROM message m WHERE m.id = ? AND m.queue = ?;

-- name: row by unique id
-- A unique id made here is the number itself; one that a program brought has an index.
SELECT {columns} FROM message m WHERE m.id = ? AND m.queue = ? AND m.uid_number IS NULL
UNION ALL
SELECT {columns} FROM message m INDEXED BY message_uid
WHERE m.queue = ? AND m.uid_number = ? AND m.uid_origin = ?;

-- name: held by unit
-- An undo of a confirm id with locks goes row by row, in the order of the puts.
SELECT {columns} FROM message m INDEXED BY message_unit WHERE m.unit = ? ORDER BY m.id;

-- name: locked with
-- What a confirm id was given for at a browse and lock: its undo unlocks it (A-16).
SELECT {columns} FROM message m INDEXED BY message_lock_confirm WHERE m.queue = ? AND m.lock_confirm = ?;

-- name: locked under
-- What a lock id locks, and what was got under it: for its release, its end, and who asks for the unique ids (A-19).
SELECT {columns} FROM message m INDEXED BY message_lock WHERE m.lock = ?;

-- name: read
-- The whole of one message, for the call that returns it, or with only the beginning of its body.
SELECT {columns}
FROM message m JOIN content c ON c.id = m.id WHERE m.id = ?1;

-- ===== plain gets: many at a time

-- name: take
-- The first messages of all that are available, with their contents; the columns as `Codec.got` takes them.
SELECT {columns}
FROM (
    SELECT * FROM message INDEXED BY message_place WHERE queue = ?1 AND head = 2 AND available
    UNION ALL
    SELECT * FROM message INDEXED BY message_place WHERE queue = ?1 AND head = 1 AND available
    UNION ALL
    SELECT * FROM message INDEXED BY message_place WHERE queue = ?1 AND head = 0 AND available
    ORDER BY rank, number, ordinal LIMIT ?2
) AS m CROSS JOIN content c ON c.id = m.id;

-- name: take group
-- A group's available members in logical order, with their contents.
SELECT {columns}
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

-- name: read taken
-- A message that a unit has got, with its content.
SELECT {columns}
FROM message m CROSS JOIN content c ON c.id = m.id WHERE m.id = ?1 AND m.unit = ?2;

-- name: hold
-- Plain gets in a unit of work.
UPDATE message SET state = ?3, unit = ?4, away = 1, co_op_marked_at = NULL WHERE id {which} AND state = ?2;

-- ===== time

-- name: expired
-- For those who are told of expired messages.
SELECT id FROM message INDEXED BY message_expiry
WHERE queue = ? AND expires_at <= ? AND expires_at IS NOT NULL AND NOT away AND claimed IS NULL ORDER BY expires_at, id LIMIT ?;

-- name: remove expired
-- What held or locked them may be idle now.
DELETE FROM message WHERE id IN (
    SELECT id FROM message INDEXED BY message_expiry
    WHERE queue = ? AND expires_at <= ? AND expires_at IS NOT NULL AND NOT away AND claimed IS NULL ORDER BY expires_at, id LIMIT ?
) RETURNING id, length, unit, lock, CASE WHEN state = 1 AND is_end THEN group_id END;

-- name: ripen
-- Delayed messages whose time has come stand among the available ones from now on.
UPDATE message SET due_at = NULL WHERE queue = ? AND due_at <= ?;

-- name: next delivery
-- When a waiter looks again because a delayed message can be read.
SELECT min(due_at) FROM message WHERE queue = ? AND due_at > ? AND state = 2;

-- name: next expiry
-- When a strict waiter looks again because a pending message is over (B-28).
SELECT min(expires_at) FROM message WHERE queue = ? AND expires_at > ? AND number IS NOT NULL;

-- name: next due
-- When a strict waiter looks again because a delay is over (B-28).
SELECT min(due_at) FROM message WHERE queue = ? AND due_at > ? AND number IS NOT NULL;

-- name: next lease end
-- When a waiter looks again because a lock id ends by itself (A-19).
SELECT min(lease_ends_at) FROM unit INDEXED BY unit_lease WHERE queue = ? AND lease_ends_at > ?;

-- name: leases over
-- Lock ids that end by themselves (A-19).
SELECT id FROM unit INDEXED BY unit_lease WHERE queue = ? AND lease_ends_at <= ? ORDER BY lease_ends_at;

-- name: next unmarking
-- When an unmarked browse looks again because a cooperative mark ends by itself (R3.74).
SELECT min(co_op_marked_at) FROM message WHERE queue = ? AND co_op_marked_at > ? AND number IS NOT NULL;

-- ===== single steps

-- name: step
-- Everything that an event can change, for one message; places and contents stay.
UPDATE message SET
    state = ?, unit = ?, away = ?, locked_handle = ?, locked_at = ?, lock = ?, lock_confirm = ?, visible_at = ?,
    backouts = ?
WHERE id = ? AND state = ?;

-- name: remove
-- Messages leave for good.
DELETE FROM message WHERE id {which} AND state = ?2;

-- name: remove content
-- And their contents with them, or in a step afterwards.
DELETE FROM content WHERE id {which};

-- name: give place
-- A single message is confirmed and gets its place now (A-26).
UPDATE message SET number = ?, ordinal = ? WHERE id = ? AND state = 1 AND number IS NULL;

-- name: mark
-- A handle's browse mark (R3.72); a second one is no other.
INSERT OR IGNORE INTO mark VALUES (?, ?);

-- name: unmark
-- The handle takes its mark off.
DELETE FROM mark WHERE message = ? AND handle = ?;

-- name: mark for all
-- The mark of the cooperating set, or its end: it is one, with its time (R3.74).
UPDATE message SET co_op_marked_at = ? WHERE id = ?;

-- name: unmark for all
-- Who gets a message ends all marks on it.
DELETE FROM mark WHERE message = ?;

-- name: mark last
-- The pieces put last become the last of their group while nobody sees them.
UPDATE message SET flags = ? WHERE id = ? AND state = 1;

-- name: put in unit
-- The pieces of the logical message, or of some, that a handle's unit has put last.
SELECT {columns} FROM message m INDEXED BY message_member
WHERE m.queue = ? AND m.group_id = ? AND m.sequence_number BETWEEN ? AND ? AND m.unit = ? AND m.state = 1
ORDER BY m.sequence_number, m."offset";

-- ===== units

-- name: begin unit
-- At the first message of a unit: an empty unit of work has no row.
INSERT INTO unit VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: unit
-- Who holds a message, for the rules and the errors.
SELECT id, kind, name, connection, user, program, started_at FROM unit WHERE id = ?;

-- name: unit of connection
-- What is backed out when its connection ends.
SELECT id, kind, name, connection, user, program, started_at FROM unit WHERE connection = ? AND kind = 'session';

-- name: prepared unit
-- Anyone may settle it by its name (R5.10).
SELECT id, kind, name, connection, user, program, started_at FROM unit WHERE name = ? AND kind = 'prepared';

-- name: named unit
-- A confirm id or lock id, on its queue (A-15).
SELECT id, kind, name, connection, user, program, started_at FROM unit
WHERE queue = ? AND kind = ? AND name = ?;

-- name: end unit
-- It is settled: edges to it are void, for its number never returns.
DELETE FROM unit WHERE id = ?;

-- name: prepare unit
-- From here on it outlives its connection (R5.10).
UPDATE unit SET kind = 'prepared', name = ?, connection = NULL WHERE id = ?;

-- name: end idle
-- A confirm id or lock id that holds nothing is forgotten.
DELETE FROM unit WHERE id = ?1 AND kind IN ('confirm', 'lock')
    AND NOT EXISTS (SELECT 1 FROM message WHERE unit = ?1) AND NOT EXISTS (SELECT 1 FROM message WHERE lock = ?1);

-- name: shares
-- What a unit holds, counted: by queue and state.
SELECT
    queue, state, away, count(*), sum(length), max(expires_at IS NOT NULL), max(forgotten), max(persistent)
FROM message INDEXED BY message_unit WHERE unit = ? GROUP BY queue, state, away;

-- name: unnumbered
-- On which queues the settling of a unit draws a number.
SELECT DISTINCT queue FROM message INDEXED BY message_unit WHERE unit = ? AND number IS NULL;

-- name: number unit
-- One number for all that a unit puts on a queue; put order within (B-5).
UPDATE message SET number = ?3, ordinal = place.ordinal
FROM (
    SELECT id, row_number() OVER (ORDER BY id) - 1 AS ordinal FROM message INDEXED BY message_unit
    WHERE unit = ?1 AND queue = ?2 AND state = 1 AND number IS NULL
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

-- name: expired puts of unit
-- Puts whose time was over before anybody could see them are discarded, and told as such.
SELECT 1 FROM message INDEXED BY message_unit
WHERE unit = ? AND queue = ? AND state = 1 AND expires_at <= ? LIMIT 1;

-- name: any locked with
-- Without locks an undo of a confirm id is the back out of a unit, at once.
SELECT 1 FROM message INDEXED BY message_lock_confirm WHERE queue = ? AND lock_confirm = ? LIMIT 1;

-- name: locks of unit
-- Lock ids that may lock nothing when the unit is settled.
SELECT DISTINCT lock FROM message INDEXED BY message_unit
WHERE unit = ? AND queue = ? AND state = ? AND lock IS NOT NULL;

-- name: visible of unit
-- For listeners alone, who are told of no body.
SELECT {columns}
FROM message m INDEXED BY message_unit JOIN content c ON c.id = m.id
WHERE m.unit = ? AND m.queue = ? AND m.state = 1 ORDER BY m.id;

-- name: forgotten of queue
-- What a restart had lost and a back out returned: it goes.
SELECT id FROM message INDEXED BY message_forgotten WHERE queue = ? AND forgotten AND state = 2;

-- name: leave content
-- Contents for later; of a unit see above.
INSERT INTO leftover SELECT id FROM content WHERE id {which};

-- name: some leftovers
-- The length of a body is in front of it: none is read.
SELECT leftover.id, coalesce(length(c.body), 0) FROM leftover LEFT JOIN content c ON c.id = leftover.id LIMIT ?;

-- name: forget leftovers
-- The step's contents are gone.
DELETE FROM leftover WHERE id {which};

-- ===== groups that readers are inside (B-45)

-- name: entered
-- Groups that others are inside hold strict readers back.
SELECT reader, entry FROM entered WHERE queue = ? ORDER BY group_id, id;

-- name: next taker
-- Steps from unit to unit among those that have got members of a group, however many, but for those whose time is over.
SELECT min(unit) FROM message INDEXED BY message_taken_member
WHERE queue = ?1 AND group_id = ?2 AND unit > ?3 AND state >= 4
    AND (expires_at IS NULL OR expires_at > ?4 OR claimed IS NOT NULL);

-- name: enter
-- A reader enters.
INSERT INTO entered (queue, group_id, reader, entered_in, entry) VALUES (?, ?, ?, ?, ?);

-- name: leave
-- A reader is inside one group at a time (R3.30); in a unit it leaves the others when that is committed.
UPDATE entered SET left_in = ?3, reader = CASE WHEN ?3 IS NOT NULL THEN reader END
WHERE queue = ?1 AND reader = ?2 AND left_in IS NULL AND group_id IS NOT ?4;

-- name: leave with unit
-- A group of which the reader's open unit of work holds a member is left when that is committed (C-12).
UPDATE entered SET left_in = ?3
WHERE queue = ?1 AND reader = ?2 AND left_in IS NULL AND group_id IS NOT ?4 AND EXISTS (
    SELECT 1 FROM message INDEXED BY message_taken_member
    WHERE queue = ?1 AND group_id = entered.group_id AND unit = ?3 AND state >= 4
);

-- name: leave all
-- The handle is gone, or its program wants out.
UPDATE entered SET reader = NULL WHERE queue = ? AND reader = ?;

-- name: end group
-- The last member has expired before anybody could see it. (With any other the trigger end_goes does it.)
UPDATE entered SET reader = NULL WHERE queue = ? AND group_id = ?;

-- name: commit entries
-- Who left a group in the unit has left it.
UPDATE entered SET
    reader = CASE WHEN left_in IS NOT ?2 THEN reader END, left_in = nullif(left_in, ?2),
    entered_in = nullif(entered_in, ?2)
WHERE queue = ?1 AND ?2 IN (left_in, entered_in);

-- name: back out entries
-- Who entered a group in the unit has not.
DELETE FROM entered WHERE queue = ? AND entered_in = ?;

-- name: return readers
-- Who left a group in the unit is inside as before.
UPDATE entered SET left_in = NULL WHERE queue = ? AND left_in = ?;

-- name: keep entries
-- The unit is prepared, for handles that is a commit: who has entered in it is inside (R5.10, B-19).
UPDATE entered SET entered_in = NULL WHERE queue = ? AND entered_in = ?;

-- name: commit entries of idle
-- A confirm id that holds nothing any more has been confirmed.
UPDATE entered SET reader = NULL, left_in = NULL WHERE left_in = ?1 AND NOT EXISTS (SELECT 1 FROM unit WHERE id = ?1);

-- name: forget entries
-- Where nobody is inside, and no unit holds a member, the group holds nobody back.
DELETE FROM entered WHERE queue = ?1 AND reader IS NULL AND NOT EXISTS (
    SELECT 1 FROM message INDEXED BY message_taken_member
    WHERE queue = ?1 AND group_id = entered.group_id AND state >= 4
);
