"""Messages as columns, and back.

A generated message id, the unique id and the token all come from the message's number, so they are not stored;
an id of all NUL is stored as NULL. What a search needs is in the table `message`, the rest in `content`.
"""

from __future__ import annotations

import math
from typing import Any

from ...message import ANY_GROUP, NO_ID, Message, Place, UniqueId
from ...rules.lifecycle import State
from ...rules.ordering import effective_priority
from ...rules.puts import NO_ACCOUNTING, make_id
from ..queued import NEVER, NO_PLACE, QueuedMessage

INDEX = {name: index for index, name in enumerate(Message.FIELDS)}

# Fields that are columns of `message` under the same name.
NARROW = frozenset("persistent priority correlation_id group_id sequence_number offset flags original_length".split())

_FLAGS, _GROUP, _SEQUENCE, _OFFSET = INDEX["flags"], INDEX["group_id"], INDEX["sequence_number"], INDEX["offset"]
NULLS = {
    "correlation_id": NO_ID,
    "group_id": NO_ID,
    "accounting_token": NO_ACCOUNTING,
}


def stored_columns(body: str = "c.body") -> str:
    """The columns from which `Codec.full` makes a message; `body`: what is read of the body."""
    return (
        "m.id, c.report, c.message_type, c.expiry, c.feedback, c.encoding, c.coded_character_set_id, c.format, "
        "m.priority, m.persistent, m.message_id, m.correlation_id, c.reply_to_queue, c.reply_to_queue_manager, "
        "c.user_identifier, c.accounting_token, c.application_identity_data, c.put_application_type, "
        'c.put_application_name, c.put_at, c.application_origin_data, m.group_id, m.sequence_number, m."offset", '
        f"m.flags, m.original_length, c.delay, {body}, m.length, m.uid_origin, m.uid_number"
    )


NARROW_COLUMNS = (
    'm.id, m.flags, m.group_id, m.sequence_number, m."offset", m.length, m.original_length, m.persistent, '
    "m.message_id, m.correlation_id, m.uid_origin, m.uid_number, m.queue, m.state, m.rank, m.number, m.ordinal, "
    "m.visible_at, m.expires_at, m.due_at, m.backouts, m.unit, m.away, m.locked_handle, m.locked_at, m.lock, "
    "m.lock_confirm, m.co_op_marked_at, m.forgotten, m.claimed"
)
STATES = tuple(State)
GOT_COLUMNS = f"{stored_columns()}, m.expires_at, m.backouts, m.rank, m.number, m.ordinal"  # for `Codec.got`


def content_columns(row: tuple[Any, ...], number: int) -> tuple[Any, ...]:
    """The values for `content` of a message's row."""
    (report, message_type, expiry, feedback, encoding, ccsid, format_, _, _, _, _, reply_to, reply_to_manager,
     user, accounting, identity, put_type, put_name, put_at, origin, _, _, _, _, _, delay, body, *_) = row  # fmt: skip
    return (
        number, report, message_type, None if expiry == math.inf else expiry, feedback, encoding, ccsid, format_,
        reply_to, reply_to_manager, user, None if accounting == NO_ACCOUNTING else accounting, identity,
        put_type, put_name, put_at, origin, delay, body,
    )  # fmt: skip


class Codec:
    """Translates for one queue manager, whose name is part of what is not stored."""

    def __init__(self, manager_name: str) -> None:
        self.name_after(manager_name)

    def name_after(self, manager_name: str) -> None:
        """The name of the queue manager, as its store knows it."""
        self.name = manager_name
        self.prefix = make_id(manager_name, 0)[:16]

    def number_in(self, message_id: bytes) -> int | None:
        """The number from which this message id was made, if this queue manager made it."""
        number = int.from_bytes(message_id[16:], "big")
        return number if message_id[:16] == self.prefix and number < 2**63 else None

    def arrival(
        self,
        message: Message,
        queue: int,
        attributes: Any,
        state: State,
        place_number: int | None,
        unit: int | None,
        now: float,
    ) -> tuple[Any, ...]:
        """The values for `message` of one that arrives; where a group begins something is missing until it is seen."""
        row = message.row
        (_, _, expiry, _, _, _, _, priority, persistent, message_id, correlation_id, _, _, _, _, _, _, _, _, _,
         group_id, sequence_number, offset, flags, original_length, delay, _, length, _, token, uid,
         *_) = row  # fmt: skip
        number = int.from_bytes(token, "big")
        own_id = message_id == self.prefix + token[8:]
        own_uid = uid[1] == number and uid[0] == self.name
        return (
            number,
            queue,
            state,
            -effective_priority(attributes, message),
            place_number,
            0 if sequence_number != 1 or offset else 1 if flags & ANY_GROUP else 2,
            None if group_id == NO_ID else group_id,
            sequence_number,
            offset,
            length,
            flags,
            original_length,
            persistent,
            priority,
            None if own_id else message_id,
            None if correlation_id == NO_ID else correlation_id,
            None if own_uid else uid[0],
            None if own_uid else uid[1],
            None if expiry is None or expiry == math.inf else now + expiry,
            now + delay if delay else None,
            None if unit else now,
            unit,
        )

    def row(self, columns: tuple[Any, ...]) -> QueuedMessage:
        """A message on a queue, with the fields that a search needs; columns as NARROW_COLUMNS."""
        (*narrow, queue, state, rank_, number, ordinal, visible_at, expires_at, due_at, backouts, unit, away,
         locked_handle, locked_at, lock, lock_confirm, co_op_marked_at, forgotten, claimed) = columns  # fmt: skip
        return QueuedMessage(
            self.narrow(tuple(narrow)),
            narrow[0],
            queue,
            rank_,
            STATES[state],
            NO_PLACE if number is None else Place(rank_, number, ordinal),
            NEVER if visible_at is None else visible_at,
            math.inf if expires_at is None else expires_at,
            NEVER if due_at is None else due_at,
            backouts,
            unit,
            bool(away),
            locked_handle,
            locked_at,
            lock,
            int(lock_confirm or 0),
            NEVER if co_op_marked_at is None else co_op_marked_at,
            bool(forgotten),
            claimed or 0,
        )

    def narrow(self, columns: tuple[Any, ...]) -> Message:
        """A message with the fields that a search needs; the others are as in an empty one."""
        (number, flags, group_id, sequence_number, offset, length, original_length, persistent, message_id,
         correlation_id, uid_origin, uid_number) = columns  # fmt: skip
        row = list(_EMPTY)
        row[_FLAGS], row[_GROUP], row[_SEQUENCE], row[_OFFSET] = flags, group_id or NO_ID, sequence_number, offset
        row[_LENGTH], row[_ORIGINAL_LENGTH], row[_PERSISTENT] = length, original_length, bool(persistent)
        row[_MESSAGE_ID] = message_id or self.prefix + number.to_bytes(8, "big")
        row[_CORRELATION_ID] = correlation_id or NO_ID
        row[_TOKEN] = number.to_bytes(16, "big")
        row[_UID] = UniqueId(self.name, number) if uid_origin is None else UniqueId(uid_origin, uid_number)
        return Message.from_row(tuple(row))

    def full(self, columns: tuple[Any, ...]) -> Message:
        """A whole message as it was put; `columns` as the statement `read` brings them."""
        (number, report, message_type, expiry, feedback, encoding, ccsid, format_, priority, persistent, message_id,
         correlation_id, reply_to, reply_to_manager, user, accounting, identity, put_type, put_name, put_at, origin,
         group_id, sequence_number, offset, flags, original_length, delay, body, length, uid_origin,
         uid_number) = columns  # fmt: skip
        return Message.from_row((
            report, message_type, math.inf if expiry is None else expiry, feedback, encoding, ccsid, format_, priority,
            bool(persistent), message_id or self.prefix + number.to_bytes(8, "big"), correlation_id or NO_ID, reply_to,
            reply_to_manager, user, accounting or NO_ACCOUNTING, identity, put_type, put_name, put_at, origin,
            group_id or NO_ID, sequence_number, offset, flags, original_length, delay, body, length, 0,
            number.to_bytes(16, "big"),
            UniqueId(self.name, number) if uid_origin is None else UniqueId(uid_origin, uid_number), None, None, None,
        ))  # fmt: skip

    def got(self, columns: tuple[Any, ...], now: float) -> Message:
        """A message as a get returns it (`queued.as_got`); `columns` as the statement `take` brings them."""
        (number, report, message_type, _, feedback, encoding, ccsid, format_, priority, persistent, message_id,
         correlation_id, reply_to, reply_to_manager, user, accounting, identity, put_type, put_name, put_at, origin,
         group_id, sequence_number, offset, flags, original_length, _, body, length, uid_origin,
         uid_number, expires_at, backouts, rank_, place_number, ordinal) = columns  # fmt: skip
        return Message.from_row((
            report, message_type, math.inf if expires_at is None else max(0.1, expires_at - now), feedback, encoding,
            ccsid, format_, priority, bool(persistent), message_id or self.prefix + number.to_bytes(8, "big"),
            correlation_id or NO_ID, reply_to, reply_to_manager, user, accounting or NO_ACCOUNTING, identity, put_type,
            put_name, put_at, origin, group_id or NO_ID, sequence_number, offset, flags, original_length, 0.0, body,
            length, backouts, number.to_bytes(16, "big"),
            UniqueId(self.name, number) if uid_origin is None else UniqueId(uid_origin, uid_number),
            Place(rank_, place_number, ordinal), None, None,
        ))  # fmt: skip


_EMPTY = Message().row
_LENGTH, _ORIGINAL_LENGTH, _PERSISTENT = INDEX["length"], INDEX["original_length"], INDEX["persistent"]
_MESSAGE_ID, _CORRELATION_ID, _TOKEN, _UID = (
    INDEX["message_id"],
    INDEX["correlation_id"],
    INDEX["token"],
    INDEX["uid"],
)
