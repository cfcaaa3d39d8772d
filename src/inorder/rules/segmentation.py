"""Splits messages that are too long for their queue into segments, and joins them again.

Splitting (2.6): only where the caller allows it and only where it is needed. Pieces are contiguous, all but the
last are as long as the limit allows, in multiples of 16 bytes, and no MQ header is cut in two: the first piece must
hold all headers at the front of the body (R2.23), and the properties, which MQ also keeps in a header there.

Joining (R3.42 to R3.46): the descriptor is that of the first piece, the flags say "the only segment". If the character
set or the encoding changes, only the pieces before the change are joined, with a warning (R3.45).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..errors import MessageTooBig, Reason
from ..model.kinds import Report
from ..model.message import LAST_SEGMENT, SEGMENT, Message, stored_original_length

SPLIT_UNIT = 16
DATA_BYTES = 100  # in a report "with data"
# For each kind of report: the bit that asks for data, and the bit for full data.
DATA_BITS = tuple(
    (int(data ^ plain), int(full ^ data))
    for plain, data, full in (
        (Report.COA, Report.COA_WITH_DATA, Report.COA_WITH_FULL_DATA),
        (Report.COD, Report.COD_WITH_DATA, Report.COD_WITH_FULL_DATA),
        (Report.EXPIRATION, Report.EXPIRATION_WITH_DATA, Report.EXPIRATION_WITH_FULL_DATA),
        (Report.EXCEPTION, Report.EXCEPTION_WITH_DATA, Report.EXCEPTION_WITH_FULL_DATA),
    )
)
ENCODING_INTEGER_MASK = 0xF
ENCODING_INTEGER_REVERSED = 2
# Headers of a fixed length; the RFH2 has its length at byte 8. Each has the following format at the given byte.
HEADER_LENGTHS = {"MQDEAD": 172, "MQHMDE": 72, "MQXMIT": 428}
NEXT_FORMAT_AT = {"MQDEAD": 108, "MQHMDE": 28, "MQHRF2": 20}


class Piece(NamedTuple):
    """One segment to make: where it begins and ends in the body, and its flags."""

    start: int
    end: int
    flags: int


def headers_length(message: Message) -> int:
    """The length of the MQ headers at the front of the body, which must stay together (R2.23)."""
    body, name, length = message.body, message.format, 0
    reverse = message.encoding & ENCODING_INTEGER_MASK == ENCODING_INTEGER_REVERSED
    while name in HEADER_LENGTHS or name == "MQHRF2":
        one = HEADER_LENGTHS.get(name) or int.from_bytes(body[length + 8 : length + 12], "little" if reverse else "big")
        at = NEXT_FORMAT_AT.get(name)
        if one <= 0 or length + one > len(body):
            return length  # not the header that the format announces, so it is user data
        name = "" if at is None else body[length + at : length + at + 8].decode("ascii", "replace").strip(" \0")
        length += one
    return length


def report_of_piece(report: int, start: int) -> int:
    """The report options of a piece: without data if it has none of the first 100 bytes of the message (R2.25)."""
    for data, full in DATA_BITS if start >= DATA_BYTES else ():
        if report & data and not report & full:
            report ^= data
    return report


def split(message: Message, limit: int, reason: Reason) -> Sequence[Piece]:
    """Cuts a message into pieces of at most `limit` bytes (R2.23, R2.25).

    Args:
        reason: the reason code if the limit is too small to split: 2030 or 2031.

    Raises: MessageTooBig, if the limit is below 16 bytes, or below the length of the headers at the front of the body
    (R2.24).
    """
    size = limit // SPLIT_UNIT * SPLIT_UNIT
    if size < max(SPLIT_UNIT, headers_length(message)):
        raise MessageTooBig(
            f"the message of {message.length:,} bytes cannot be split into pieces of {limit:,}: a piece needs at least "
            f"{max(SPLIT_UNIT, headers_length(message)):,}",
            reason=reason,
        )
    flags = message.flags & ~LAST_SEGMENT | SEGMENT
    ends_message = not message.flags & SEGMENT or message.flags & LAST_SEGMENT
    pieces = [Piece(start, min(start + size, message.length), flags) for start in range(0, message.length, size)]
    if ends_message:
        pieces[-1] = pieces[-1]._replace(flags=flags | LAST_SEGMENT)
    return pieces


class Joined(NamedTuple):
    """A logical message put together from its first `used` pieces."""

    message: Message
    used: int
    warning: Reason | None


def join(pieces: Sequence[Message]) -> Joined:
    """Joins the pieces of a logical message, which are given in order (R3.44, R3.45)."""
    head = pieces[0]
    used, warning = len(pieces), None
    for n, piece in enumerate(pieces):
        if piece.coded_character_set_id != head.coded_character_set_id:
            used, warning = n, Reason.INCONSISTENT_CCSIDS
            break
        if piece.encoding != head.encoding:
            used, warning = n, Reason.INCONSISTENT_ENCODINGS
            break
    if used == 1:
        return Joined(head, 1, warning)
    body = b"".join(piece.body for piece in pieces[:used])
    flags = head.flags | pieces[used - 1].flags & LAST_SEGMENT
    original = stored_original_length(head.message_type, flags, head.original_length, len(body))
    joined = head.with_values(body=body, length=len(body), flags=flags, original_length=original)
    return Joined(joined, used, warning)
