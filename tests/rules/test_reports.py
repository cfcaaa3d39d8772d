"""The rules of reports, as tables written from the specification (mq-semantics R6.4 to R6.7, R2.25)."""

from __future__ import annotations

import math

import pytest

from inorder.model.kinds import Feedback, MessageType, Report
from inorder.model.message import Flags, Message
from inorder.rules.dead_letters import WhyDead, buried
from inorder.rules.puts import make_id
from inorder.rules.reports import COA, COD, EXCEPTION, EXPIRATION, ReportKind, asks, bytes_of, report
from inorder.rules.segmentation import report_of_piece

ALL = "x" * 250
KINDS = {"coa": COA, "cod": COD, "expiration": EXPIRATION, "exception": EXCEPTION}
# MQRO values, as IBM lists them: plain, with data, with full data.
VALUES = {
    "coa": (256, 768, 1792),
    "cod": (2048, 6144, 14336),
    "expiration": (2097152, 6291456, 14680064),
    "exception": (16777216, 50331648, 117440512),
}


def message(report: int, **fields: object) -> Message:
    values = {"message_id": b"id", "correlation_id": b"correlation", "reply_to_queue": "R", "priority": 7}
    return Message(ALL.encode(), report=report, **(values | {"persistent": False, "format": "MQSTR"} | fields))  # type: ignore[arg-type]


def about(original: Message, kind: ReportKind, feedback: int = 259, left: float = math.inf) -> Message:
    return report(original, kind, feedback, manager="QM1", new_id=make_id("QM1", 7), now=1000.0, left=left)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(("nth", "carried"), [(0, 0), (1, 100), (2, None)])
def test_r6_5_each_report_option_asks_for_its_kind_of_report_and_amount_of_data(
    name: str, nth: int, carried: int | None
) -> None:
    asking = message(VALUES[name][nth])
    assert [one for one, kind in KINDS.items() if asks(asking, kind)] == [name]
    assert bytes_of(asking, KINDS[name]) == carried
    assert int(Report[name.upper() + ("", "_WITH_DATA", "_WITH_FULL_DATA")[nth]]) == VALUES[name][nth]


def test_no_report_is_asked_for_without_a_reply_queue_or_a_report_option() -> None:
    assert not any(asks(message(report), kind) for kind in KINDS.values() for report in (0, 1, 2, 64, 128, 16384))
    assert not asks(message(256).with_values(reply_to_queue=""), COA)


def test_r6_6_a_dead_letter_is_reported_by_neither_arrival_nor_delivery() -> None:
    dead = buried(message(256 | 2048 | 2097152), WhyDead(2053, "Q"))
    assert isinstance(dead, Message)
    assert [name for name, kind in KINDS.items() if asks(dead, kind)] == ["expiration"]


# field: its value in a report without other options (R6.5)
FIELDS = {
    "report": 0,
    "message_type": MessageType.REPORT,
    "expiry": math.inf,
    "feedback": Feedback.COA,
    "format": "",
    "priority": 7,
    "persistent": False,
    "message_id": b"AMQ QM1         " + (7).to_bytes(8, "big"),
    "correlation_id": b"id".ljust(24, b"\0"),
    "reply_to_queue": "",
    "reply_to_queue_manager": "QM1",
    "user_identifier": "ann",
    "put_application_type": 7,
    "put_application_name": "QM1",
    "put_at": 1000.0,
    "group_id": b"G".ljust(24, b"\0"),
    "sequence_number": 3,
    "offset": 50,
    "flags": Flags.IN_GROUP | Flags.SEGMENT,
    "original_length": 250,
    "properties": {},
    "body": b"",
    "length": 0,
}
ORIGINAL = {
    "user_identifier": "ann",
    "group_id": b"G",
    "sequence_number": 3,
    "offset": 50,
    "flags": Flags.IN_GROUP | Flags.SEGMENT,
    "properties": {"colour": "red"},
    "delay": 3.0,
    "expiry": 9.0,
}


def test_r6_5_a_report_has_the_specified_fields() -> None:
    made = about(message(256, **ORIGINAL), COA)
    assert {name: getattr(made, name) for name in FIELDS} == FIELDS
    assert about(message(16777216), EXCEPTION, 2053).feedback == 2053
    of_a_report = message(256, message_type=MessageType.REPORT, original_length=999)
    assert about(of_a_report, COA).original_length == 999


# options of the message: the fields of the report that they change
@pytest.mark.parametrize(
    ("options", "fields"),
    [
        (128, {"message_id": b"id".ljust(24, b"\0"), "correlation_id": b"id".ljust(24, b"\0")}),
        (64, {"correlation_id": b"correlation".ljust(24, b"\0")}),
        (512, {"body": ALL[:100].encode(), "length": 100, "format": "MQSTR", "properties": {}}),
        (1536, {"body": ALL.encode(), "length": 250, "format": "MQSTR", "properties": {"colour": "red"}}),
        (16384, {"expiry": 5.0, "report": 0}),
        (16384 | 134217728, {"expiry": 5.0, "report": 134217728}),
        (134217728, {"expiry": math.inf, "report": 0}),
    ],
)
def test_r6_4_r6_5_the_options_change_the_specified_fields_of_a_report(options: int, fields: dict[str, object]) -> None:
    made = about(message(256 | options, **ORIGINAL), COA, left=5.0)
    assert {name: getattr(made, name) for name in fields} == fields


def test_r6_4_an_expiration_report_that_inherits_the_expiry_has_one_of_60_seconds() -> None:
    assert about(message(2097152 | 16384, expiry=1.0), EXPIRATION, 258, left=0.1).expiry == 60.0
    assert about(message(2097152, expiry=1.0), EXPIRATION, 258, left=0.1).expiry == math.inf


@pytest.mark.parametrize(
    ("report", "start", "of_piece"),
    [
        (768, 0, 768),
        (768, 96, 768),
        (768, 112, 256),
        (6144 | 50331648 | 64, 100, 2048 | 16777216 | 64),
        (1792 | 14680064, 5000, 1792 | 14680064),
        (256, 5000, 256),
    ],
)
def test_r2_25_segments_after_the_first_100_bytes_do_not_ask_for_those_bytes(
    report: int, start: int, of_piece: int
) -> None:
    assert report_of_piece(report, start) == of_piece
