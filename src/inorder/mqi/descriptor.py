"""MQMD: from its bytes to a message's values, and back.

The descriptor is taken apart into six pieces whose conversions are cached, because a program uses few different ones.
A message that is put with a descriptor of defaults is its body alone, which is the shortest way through a put.

Rules: 1.1 to 1.3, M-10, M-11.
"""

from __future__ import annotations

import math
import struct
import time
from calendar import timegm
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..errors import Reason
from ..model.fields import NO_ID, PUT_AT_MAX, MessageFields
from ..model.kinds import MessageType
from ..model.message import REPLY_NEEDED, Message, Row, check_together, hundredths
from ..model.properties import NO_PROPERTIES, Properties
from ..rules.puts import NOTHING_LATER, NOTHING_SAID, PutResult
from .constants import MQCCSI_INHERIT
from .refusals import Refused

if TYPE_CHECKING:
    from typing_extensions import Buffer

PARTS: Final = struct.Struct("=8s40s24s24s4x96s128s")  # version 1: name, Report to Persistence, ids, replies, context
GOT: Final = struct.Struct("=40s24s24si96s128s")
SAID: Final = struct.Struct("=6i8s2i")
IDS: Final = struct.Struct("=24s24s")
GROUP: Final = struct.Struct("=24s4i")
GROUP_BYTES: Final = struct.Struct("=40s")
NUMBERS: Final = struct.Struct("=24sii")
CONTEXT: Final = struct.Struct("=12s32s32si28s8s8s4s")
MDE: Final = struct.Struct("=4s4i8si24s4i")
IDS_AT, CONTEXT_AT, GROUP_AT = 48, 196, 324
VERSION_1, VERSION_2 = (b"MD  " + struct.pack("=i", version) for version in (1, 2))
NO_GROUP: Final = GROUP.pack(NO_ID, 1, 0, 0, -1)
UNGROUPED: Final[Row] = (NO_ID, 1, 0, 0, -1)
DEFAULT_MD: Final = VERSION_1 + SAID.pack(0, 8, -1, 0, 546, 0, b" " * 8, -1, 2) + bytes(276)

_index = {name: field.index for name, field in MessageFields.FIELDS.items()}
MESSAGE_ID: Final = _index["message_id"]
REPLY_TO: Final = slice(_index["reply_to_queue"], _index["reply_to_queue_manager"] + 1)
CONTEXT_FIELDS: Final = slice(_index["user_identifier"], _index["application_origin_data"] + 1)
GROUP_FIELDS: Final = slice(_index["group_id"], _index["original_length"] + 1)
FLAGS: Final = _index["flags"]
NO_CONTEXT: Final[Row] = NOTHING_SAID[CONTEXT_FIELDS]
AFTER_LENGTH: Final[Row] = (*Message().row[_index["backout_count"] : _index["warning"] + 1], *NOTHING_LATER)
PLAIN: Final[Row] = NOTHING_SAID[:MESSAGE_ID]
MSG_FLAGS_MASK, FLAGS_KNOWN = 0xFFF, 31
NO_DATE: Final = bytes(16).replace(b"\0", b" ")


class Described(NamedTuple):
    """A descriptor that was read.

    Args:
        version: 1 or 2.
        said: the nine values from Report to Persistence, as in a message's row.
        reply_to: the queue and the queue manager of replies.
        context: the bytes of the identity and origin context.
        group: the five values from GroupId to OriginalLength.
    """

    version: int
    said: Row
    message_id: bytes
    correlation_id: bytes
    reply_to: Row
    context: bytes
    group: Row

    def row(
        self,
        body: bytes,
        context: Row = NO_CONTEXT,
        properties: Properties = NO_PROPERTIES,
        transmission: object = None,
    ) -> Row:
        """The row of a message with this descriptor. Raises: ArgumentError 2252."""
        row = (
            *self.said, self.message_id, self.correlation_id, *self.reply_to, *context, *self.group, 0.0, transmission,
            properties, body, len(body), *AFTER_LENGTH,
        )  # fmt: skip
        if self.group[4] != -1 and self.said[1] == MessageType.REPORT:
            check_together(row)
        return row

    @property
    def is_plain(self) -> bool:
        """Whether it has only defaults, so that the body alone is the message."""
        return (
            self.said == PLAIN
            and self.message_id == NO_ID
            and self.correlation_id == NO_ID
            and not self.reply_to[0]
            and not self.reply_to[1]
            and self.group is UNGROUPED
        )


def version_of(md: Buffer) -> int:
    """The version of a descriptor. Raises: Refused 2026."""
    head = bytes(memoryview(md).cast("B")[:8])
    if head == VERSION_2:
        return 2
    if head != VERSION_1:
        raise Refused(Reason.MD_ERROR)
    return 1


def read(md: Buffer) -> Described:
    """Reads the descriptor of a put. Raises: Refused 2026, 2027; as `Message` for the fields."""
    head, said, message_id, correlation_id, reply_to, context = PARTS.unpack_from(md)
    if head == VERSION_2:
        version, group = 2, GROUP_BYTES.unpack_from(md, GROUP_AT)[0]
        numbers = UNGROUPED if group == NO_GROUP else group_of(group)
    elif head == VERSION_1:
        version, numbers = 1, UNGROUPED
    else:
        raise Refused(Reason.MD_ERROR)
    values, needs_reply = _said(said)
    replies = _reply_to(reply_to)
    if needs_reply and not replies[0]:
        raise Refused(Reason.MISSING_REPLY_TO_Q)
    return Described(version, values, message_id, correlation_id, replies, context, numbers)


def text_of(field: bytes) -> str:
    """The characters of a field, without the blanks and NULs at its end."""
    field = field.partition(b"\0")[0].rstrip(b" ")
    try:
        return field.decode()
    except UnicodeDecodeError:
        return field.decode("latin-1")


@lru_cache(4_096)
def padded(text: str, length: int) -> bytes:
    """The characters of a field, filled with blanks."""
    return text.encode()[:length].ljust(length)


@lru_cache(1_024)
def _said(said: bytes) -> tuple[Row, bool]:
    """The values from Report to Persistence, checked; also whether the message needs a queue for replies."""
    report, kind, expiry, feedback, encoding, character_set, form, priority, persistence = SAID.unpack(said)
    if persistence not in (0, 1, 2):
        raise Refused(Reason.PERSISTENCE_ERROR)
    needs_reply = kind == MessageType.REQUEST or bool(report & REPLY_NEEDED)
    message = Message(
        report=report,
        message_type=kind,
        expiry=None if expiry == -1 else expiry / 10,
        feedback=feedback,
        encoding=encoding,
        coded_character_set_id=0 if character_set == MQCCSI_INHERIT else character_set,  # 0: the queue manager's
        format=text_of(form),
        priority=None if priority == -1 else priority,
        persistent=(False, True, None)[persistence],
        reply_to_queue="Q",
    )
    return message.row[:MESSAGE_ID], needs_reply


@lru_cache(1_024)
def _reply_to(names: bytes) -> Row:
    return text_of(names[:48]), text_of(names[48:])


def group_of(group: bytes) -> Row:
    """The values from GroupId to OriginalLength, checked."""
    group_id, number, offset, flags, original_length = GROUP.unpack(group)
    if flags & MSG_FLAGS_MASK & ~FLAGS_KNOWN:
        raise Refused(Reason.MSG_FLAGS_ERROR)
    fields = MessageFields.FIELDS
    for name, value in (("sequence_number", number), ("offset", offset), ("original_length", original_length)):
        check = fields[name].check
        assert check is not None
        check(name, value)
    return group_id, number, offset, flags & FLAGS_KNOWN, original_length


# ---- the context


def context_of(context: bytes) -> Row:
    """The context of a put that sets it, as in a message's row. Raises: ArgumentError 2026."""
    user, token, identity, kind, program, date, at, origin = CONTEXT.unpack(context)
    message = Message(
        user_identifier=text_of(user),
        accounting_token=token,
        application_identity_data=text_of(identity),
        put_application_type=kind,
        put_application_name=text_of(program),
        put_at=time_of(date + at),
        application_origin_data=text_of(origin),
    )
    values: Row = message.row[CONTEXT_FIELDS]
    return values


def time_of(digits: bytes) -> float:
    """Seconds since 1970, of PutDate and PutTime; 0 if they are not a time."""
    try:
        hundredths = int(digits[14:16])
        at = timegm(time.strptime(digits[:14].decode("ascii"), "%Y%m%d%H%M%S")) + hundredths / 100
    except ValueError:
        return 0.0
    return at if 0 <= at <= PUT_AT_MAX else 0.0


def context_bytes(row: Row) -> bytes:
    """The bytes of a context, of the seven values in a message's row."""
    user, token, identity, kind, program, at, origin = row
    before = _before_time(user, token, identity, kind, program)
    when = NO_DATE if not kind and not program else _stamp(int(at)) + b"%02d" % hundredths(at)
    return before + when + padded(origin, 4)


@lru_cache(1_024)
def _before_time(user: str, token: bytes, identity: str, kind: int, program: str) -> bytes:
    return padded(user, 12) + token + padded(identity, 32) + struct.pack("=i", kind) + padded(program, 28)


@lru_cache(64)
def _stamp(second: int) -> bytes:
    return time.strftime("%Y%m%d%H%M%S", time.gmtime(second)).encode()


# ---- outputs


def write_put(md: Any, version: int, result: PutResult, context: Row) -> None:
    """Writes the outputs of a put (M-10)."""
    IDS.pack_into(md, IDS_AT, result.message_id, result.correlation_id)
    PIECE_OF_CONTEXT.pack_into(md, CONTEXT_AT, context_bytes(context))
    if version > 1:
        NUMBERS.pack_into(md, GROUP_AT, result.group_id, result.sequence_number, result.offset)


PIECE_OF_CONTEXT: Final = struct.Struct("=128s")


def write_got(md: Any, version: int, row: Row) -> None:
    """Writes the descriptor of a message that was got."""
    GOT.pack_into(
        md,
        8,
        _said_bytes(row[:MESSAGE_ID]),
        row[MESSAGE_ID],
        row[MESSAGE_ID + 1],
        row[BACKOUT_COUNT],
        padded(row[REPLY_TO.start], 48) + padded(row[REPLY_TO.start + 1], 48),
        context_bytes(row[CONTEXT_FIELDS]),
    )
    if version > 1:
        GROUP.pack_into(md, GROUP_AT, *row[GROUP_FIELDS])


BACKOUT_COUNT: Final = _index["backout_count"]


@lru_cache(1_024)
def _said_bytes(said: Row) -> bytes:
    report, kind, expiry, feedback, encoding, character_set, form, priority, persistent = said
    tenths = -1 if expiry is None or math.isinf(expiry) else max(1, math.ceil(expiry * 10))
    return SAID.pack(
        report, kind, tenths, feedback, encoding, character_set, padded(form, 8), priority or 0, bool(persistent)
    )
