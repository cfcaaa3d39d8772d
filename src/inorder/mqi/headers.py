"""The headers of MQ before the data of a message, which inorder keeps as fields of the message instead.

A put takes MQXQH, MQMDE, MQDLH and the properties of an MQRFH2 from the front of the data. A get puts them there: MQXQH
before a message on a transmission queue, MQDLH before a dead letter, MQRFH2 before properties as MQGMO says, and MQMDE
before a grouped message or a segment where the program has a descriptor of version 1.

Rules: R1.15, R6.8, M-12, N-3, N-4.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from ..errors import Reason
from ..model.attribute import NAME_LENGTH_MAX as NAME_LENGTH
from ..model.fields import Transmission
from ..model.message import Message, MessageType, Row, mq_date, mq_time
from ..model.properties import NO_PROPERTIES, Properties
from ..rules.dead_letters import WhyDead, buried, is_dead, revived, why_dead
from ..rules.puts import APPLICATION_TYPE_UNIX
from . import constants as mq
from . import properties as of_properties
from .conversion import UTF_8, Data
from .descriptor import (
    GROUP_FIELDS,
    MDE,
    REPLY_TO,
    UNGROUPED,
    VERSION_1,
    Described,
    context_of,
    group_of,
    padded,
    read,
    text_of,
    time_of,
    write_got,
)
from .refusals import Refused

if TYPE_CHECKING:
    from .handles import MessageHandle

XQH: Final = struct.Struct("=4si48s48s324s")
DLH: Final = struct.Struct("=4s2i48s48s2i8si28s8s8s")
NUMBERS_REVERSED: Final = 2  # of an encoding's four bits about integers
ENCODING, CHARACTER_SET, FORMAT = 4, 5, 6  # in a message's row
TRANSMISSION, PROPERTIES = Message.transmission.index, Message.properties.index
PROGRAM_LENGTH, FORMAT_LENGTH = 28, 8
ORIGINAL_LENGTH: Final = 4  # in `UNGROUPED`
WITH_HEADERS: Final = frozenset(
    text_of(form)
    for form in (mq.MQFMT_XMIT_Q_HEADER, mq.MQFMT_MD_EXTENSION, mq.MQFMT_DEAD_LETTER_HEADER, mq.MQFMT_RF_HEADER_2)
)


class Handles(NamedTuple):
    """The message handles of an MQPMO: original, new and action; 0: none."""

    original: int = 0
    new: int = 0
    action: int = 0


NO_HANDLES: Final = Handles()


# ---- puts


def message_of(
    hconn: int,
    described: Described,
    context: Row,
    body: bytes,
    handles: Handles = NO_HANDLES,
    *,
    is_transmission: bool = False,
) -> tuple[Message, Row]:
    """The message that a put makes of a descriptor and data, and its context.

    Args:
        context: that the program sets or passes; `NO_CONTEXT`: the queue manager makes it.
        is_transmission: whether the queue is a transmission queue.

    Raises: Refused 2260, 2334, 2421, 2460; ArgumentError.
    """
    transmission = why = None
    if described.said[FORMAT] == "MQXMIT" and is_transmission:
        transmission, described, body = _without_transmission(body)
        context = context_of(described.context)
    if described.said[FORMAT] == "MQHMDE":
        described, body = _without_extension(described, body)
    if described.said[FORMAT] == "MQDEAD":
        described, body, why = _without_dead_letter(described, body)
    properties = NO_PROPERTIES
    if described.said[FORMAT] == "MQHRF2" or handles is not NO_HANDLES:
        encoding, character_set, form = described.said[ENCODING : FORMAT + 1]
        given = Data(body, padded(form, FORMAT_LENGTH), encoding, character_set)
        data, properties = of_properties.at_put(hconn, given, *handles)
        if data is not given:
            described, body = _in(described, data.encoding, data.ccsid, data.format), data.body
    message = Message.from_row(described.row(body, context, properties, transmission))
    if why is not None:
        dead = buried(message, why)
        if not isinstance(dead, Message):
            raise Refused(dead)
        message = dead
    return message, context


def _in(described: Described, encoding: int, character_set: int, form: bytes) -> Described:
    """The descriptor with a header's description of the data after it."""
    said = list(described.said)
    said[ENCODING] = encoding
    said[CHARACTER_SET] = character_set if character_set > 0 else said[CHARACTER_SET]
    said[FORMAT] = text_of(form)
    return described._replace(said=tuple(said))


def _order(described: Described) -> str:
    return "<" if described.said[ENCODING] & 0xF == NUMBERS_REVERSED else ">"


def _without_transmission(body: bytes) -> tuple[Transmission, Described, bytes]:
    if len(body) < XQH.size or body[:4] != b"XQH ":
        raise Refused(Reason.XQH_ERROR)
    _, version, queue, manager, md = XQH.unpack_from(body)
    if version != 1 or not md.startswith(VERSION_1):
        raise Refused(Reason.XQH_ERROR)
    return Transmission(text_of(queue), text_of(manager)), read(md), body[XQH.size :]


def _without_extension(described: Described, body: bytes) -> tuple[Described, bytes]:
    """Reads an MQMDE; one that is wrong, or whose fields the descriptor has itself, stays as data."""
    form = struct.Struct(_order(described) + MDE.format[1:])
    if described.group is not UNGROUPED or len(body) < form.size or body[:4] != b"MDE ":
        return described, body
    _, version, length, encoding, character_set, data_format, _, *group = form.unpack_from(body)
    if version != 2 or length != form.size:
        return described, body
    numbers = group_of(struct.pack("=24s4i", *group))
    return _in(described, encoding, character_set, data_format)._replace(group=numbers), body[form.size :]


def _without_dead_letter(described: Described, body: bytes) -> tuple[Described, bytes, WhyDead | None]:
    """Reads an MQDLH; one that is wrong stays as data."""
    form = struct.Struct(_order(described) + DLH.format[1:])
    if len(body) < form.size or body[:4] != b"DLH ":
        return described, body, None
    _, version, reason, queue, manager, *data, _, program, date, time = form.unpack_from(body)
    if version != 1:
        return described, body, None
    why = WhyDead(reason, text_of(queue), text_of(manager), time_of(date + time), text_of(program))
    return _in(described, *data), body[form.size :], why


# ---- gets


class RowAndBody(NamedTuple):
    """A message as a get returns it: the row for the descriptor, and the data with its headers."""

    row: Row
    body: bytes


def has_headers(row: Row, md_version: int) -> bool:
    """Whether a get may have to put something before the data."""
    return (
        row[PROPERTIES].text is not None or row[TRANSMISSION] is not None or (md_version == 1 and _needs_extension(row))
    )


def presented(message: Message, md_version: int, headers: int, handle: MessageHandle | None) -> RowAndBody:
    """The message with its headers.

    Args:
        headers: MQGMO's bits about the form of properties.
        handle: gets the properties; None: none does.
    """
    why = None
    if is_dead(message):
        why, message = why_dead(message), revived(message)
    row, body = message.row, message.body
    properties: Properties = row[PROPERTIES]
    if handle is not None or properties.text is not None:
        before = Data(body, padded(row[FORMAT], FORMAT_LENGTH), row[ENCODING], row[CHARACTER_SET])
        data = of_properties.at_get(before, properties, headers, handle)
        if data is not before:
            row, body = _described(row, data.format, data.encoding, data.ccsid), data.body
    if why is not None:
        row, body = _as_dead_letter(row, body, why)
    if row[TRANSMISSION] is not None:
        row, body = _for_transmission(*_extended(row, body))
    if md_version == 1:
        row, body = _extended(row, body)
    return RowAndBody(row, body)


def _described(row: Row, form: bytes, encoding: int = mq.MQENC_NATIVE, character_set: int = UTF_8) -> Row:
    """The row with a description of the beginning of its data, which is a header made here unless it says otherwise."""
    return (*row[:ENCODING], encoding, character_set, text_of(form), *row[FORMAT + 1 :])


def _as_dead_letter(row: Row, body: bytes, why: WhyDead) -> tuple[Row, bytes]:
    date, time = (mq_date(why.time), mq_time(why.time)) if why.time else ("", "")
    header = DLH.pack(
        b"DLH ", 1, why.reason, padded(why.queue, NAME_LENGTH), padded(why.manager, NAME_LENGTH),
        row[ENCODING], row[CHARACTER_SET], padded(row[FORMAT], FORMAT_LENGTH),
        APPLICATION_TYPE_UNIX, padded(why.program, PROGRAM_LENGTH), padded(date, 8), padded(time, 8),
    )  # fmt: skip
    return _described(row, mq.MQFMT_DEAD_LETTER_HEADER), header + body


def _needs_extension(row: Row) -> bool:
    """Whether a message is in a group or a segment. The OriginalLength of a report about another says nothing new."""
    return row[GROUP_FIELDS][:ORIGINAL_LENGTH] != UNGROUPED[:ORIGINAL_LENGTH]


def _extended(row: Row, body: bytes) -> tuple[Row, bytes]:
    """With an MQMDE before a grouped message or a segment; the group is then in it alone."""
    if not _needs_extension(row):
        return row, body
    encoding, character_set, form = row[ENCODING : FORMAT + 1]
    header = MDE.pack(b"MDE ", 2, MDE.size, encoding, character_set, padded(form, FORMAT_LENGTH), 0, *row[GROUP_FIELDS])
    return _described(row, mq.MQFMT_MD_EXTENSION), header + body


def _for_transmission(row: Row, body: bytes) -> tuple[Row, bytes]:
    """With an MQXQH, which has the message's descriptor; its own has the fields needed on the way."""
    queue, manager = row[TRANSMISSION]
    md = bytearray(VERSION_1 + bytes(316))
    write_got(md, 1, row)
    header = XQH.pack(b"XQH ", 1, padded(queue, NAME_LENGTH), padded(manager, NAME_LENGTH), bytes(md))
    outer = list(_described(row, mq.MQFMT_XMIT_Q_HEADER))
    outer[0], outer[1], outer[3] = 0, int(MessageType.DATAGRAM), 0
    outer[REPLY_TO] = "", ""
    outer[GROUP_FIELDS] = UNGROUPED
    return tuple(outer), header + body
