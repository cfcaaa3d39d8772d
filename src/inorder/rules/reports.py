"""Reports: which ones a message asks for, and their fields (mq-semantics R6.4 to R6.7, R2.25).

A report is made from its subject, the original message:

    message type          REPORT
    feedback              its meaning: `Feedback`, a reason, or a number of the reporting program
    message id            new; PASS_MESSAGE_ID: that of the message
    correlation id        the message id of the message; PASS_CORRELATION_ID: its correlation id
    priority, persistent  as the message has them
    group and segment     id, sequence number, offset, flags of the message
    original length       its length
    body                  nothing; with data the first 100 bytes; with full data all, and the properties
    format                of the message, if there is a body
    expiry, report        never, and nothing; PASS_DISCARD_AND_EXPIRY: the message's remaining expiry, for an
                          expiration report 60 seconds, and DISCARD_MESSAGE if the message has that
    context               the identity of the message; the origin is the reporting program: the queue manager, except
                          for PAN and NAN
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ..model.kinds import Feedback, MessageType, Report
from ..model.message import Message
from ..model.properties import NO_PROPERTIES
from .dead_letters import is_dead
from .segmentation import DATA_BITS, DATA_BYTES

EXPIRATION_REPORT_SECONDS = 60.0
APPLICATION_TYPE_QUEUE_MANAGER = 7
PROGRAM_NAME_LENGTH = 28
COPIED = (
    "encoding coded_character_set_id user_identifier accounting_token application_identity_data "
    "group_id sequence_number offset flags"
).split()


class ReportKind(NamedTuple):
    """A kind of report: the bit that asks for it, the bit for data, and the bit for full data."""

    asked: int
    data: int
    full: int


_PLAIN = Report.COA, Report.COD, Report.EXPIRATION, Report.EXCEPTION
COA, COD, EXPIRATION, EXCEPTION = (ReportKind(int(plain), *bits) for plain, bits in zip(_PLAIN, DATA_BITS, strict=True))
ACTIONS = {int(Feedback.PAN): Report.PAN, int(Feedback.NAN): Report.NAN}


def asks(message: Message, kind: ReportKind) -> bool:
    """Whether the message asks for such a report; a dead letter asks for none of its arrival or delivery (R6.6)."""
    if not message.report & kind.asked or not message.reply_to_queue:
        return False
    return kind not in (COA, COD) or not is_dead(message)


def bytes_of(message: Message, kind: ReportKind) -> int | None:
    """The number of bytes of the body that a report includes; None: all."""
    if not message.report & kind.data:
        return 0
    return None if message.report & kind.full else DATA_BYTES


def fields_of_report(about: Message, left: float) -> dict[str, Any]:
    """The fields that every report copies from its original message, wherever the report is made.

    Args:
        left: the remaining seconds of the original message's expiry.
    """
    passes = about.report & Report.PASS_DISCARD_AND_EXPIRY
    by_correlation = about.report & Report.PASS_CORRELATION_ID
    said: dict[str, Any] = {
        "message_type": int(MessageType.REPORT),
        "report": about.report & Report.DISCARD_MESSAGE if passes else 0,
        "expiry": left if passes else math.inf,
        "correlation_id": about.correlation_id if by_correlation else about.message_id,
        "priority": about.priority,
        "persistent": about.persistent,
    }
    if about.report & Report.PASS_MESSAGE_ID:
        said["message_id"] = about.message_id
    return said


def report(
    about: Message, kind: ReportKind, feedback: int, *, manager: str, new_id: bytes, now: float, left: float
) -> Message:
    """Makes a report of the queue manager about a message whose body was read as far as `bytes_of` says.

    Args:
        manager: the name of the queue manager.
        new_id: the report's message id, unless `about` asks for its own.
        left: the remaining seconds of the original message's expiry.
    """
    most = bytes_of(about, kind)
    body = about.body if most is None else about.body[:most]
    said = fields_of_report(about, EXPIRATION_REPORT_SECONDS if kind is EXPIRATION else left)
    return Message().with_values(
        **{name: getattr(about, name) for name in COPIED},
        **{"message_id": new_id} | said,
        feedback=int(feedback),
        format=about.format if body else "",
        reply_to_queue_manager=manager,
        put_application_type=APPLICATION_TYPE_QUEUE_MANAGER,
        put_application_name=manager[:PROGRAM_NAME_LENGTH],
        put_at=now,
        original_length=about.length if about.original_length == -1 else about.original_length,
        properties=about.properties if most is None else NO_PROPERTIES,
        body=body,
        length=len(body),
    )
