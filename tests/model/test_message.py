"""Message: its fields, their ranges and MQ's names, and its immutability."""

from __future__ import annotations

import copy
import math
import pickle
import sys
from typing import Any
from uuid import UUID

import pytest

from inorder import Flags, Match, Message, MessageType, Place, Reason, UniqueId
from inorder.errors import ArgumentError, CallerError, QueueCondition
from inorder.model.fields import GIVEN, LATER
from inorder.model.message import IN_GROUP, LAST_IN_GROUP, LAST_SEGMENT, SEGMENT, SEGMENTATION_ALLOWED, Transmission

NUMBER_MAX = 999_999_999
BITS_MAX = 2**31 - 1
message: Any = Message  # for calls that are wrong on purpose

# MQMD (mq-semantics 1.1) without its StrucId and Version, in its order.
MQMD = """Report MsgType Expiry Feedback Encoding CodedCharSetId Format Priority Persistence MsgId CorrelId BackoutCount
    ReplyToQ ReplyToQMgr UserIdentifier AccountingToken ApplIdentityData PutApplType PutApplName PutDate PutTime
    ApplOriginData GroupId MsgSeqNumber Offset MsgFlags OriginalLength""".split()

# ---- fields


def test_every_field_of_the_mqmd_exists_and_is_named_once() -> None:
    names = [name for field in Message.FIELDS.values() for name in field.mq_name.split(", ")]
    assert set(MQMD) <= set(names)
    assert len(set(names)) == len(names)


NONE_UNLESS_GIVEN = "expiry priority persistent transmission uid place earlier_pending warning".split()


def test_a_new_message_has_the_defaults_of_mq() -> None:
    new = dict(Message().fields())
    differ = {"message_type": 8, "encoding": 546 if sys.byteorder == "little" else 273}
    differ |= {"sequence_number": 1, "original_length": -1}
    assert {name: new[name] for name in differ} == differ
    assert [name for name, value in new.items() if value is None] == NONE_UNLESS_GIVEN
    zeros = {name: value for name, value in new.items() if value is not None and name not in differ}
    assert not any(bytes(value).strip(b"\0") if isinstance(value, bytes) else value for value in zeros.values())
    assert {name: len(value) for name, value in zeros.items() if isinstance(value, bytes) and value} == {
        **dict.fromkeys(["message_id", "correlation_id", "group_id"], 24),
        **{"accounting_token": 32, "token": 16},
    }


def test_a_body_is_a_copy_of_any_bytes() -> None:
    data = bytearray(b"data")
    for body in (b"data", data, memoryview(data)):
        made = Message(body)
        assert type(made.body) is bytes
        assert (made.body, made.length) == (b"data", 4)
    made = Message(data)
    data[:] = b"gone"
    assert made.body == b"data"


def test_short_ids_are_padded_with_nul() -> None:
    made = Message(b"", message_id=b"m", accounting_token=b"a")
    assert made.message_id == b"m" + bytes(23)
    assert made.accounting_token == b"a" + bytes(31)


def test_an_id_may_be_a_text_or_a_uuid() -> None:
    one = UUID("12345678-1234-5678-1234-567812345678")
    made = Message(b"", message_id="ä" * 12, correlation_id="order-17", group_id=one)
    assert made.message_id == "ä".encode() * 12
    assert made.correlation_id == b"order-17" + bytes(16)
    assert made.group_id == one.bytes + bytes(8)
    assert Match(correlation_id="order-17", group_id=one).accepts(made)
    assert not Match(correlation_id="order-1").accepts(made)


def test_texts_lose_their_padding() -> None:
    made = Message(b"", format="MQSTR   ", reply_to_queue="REPLIES\0\0", put_application_name="  indented ")
    assert (made.format, made.reply_to_queue, made.put_application_name) == ("MQSTR", "REPLIES", "  indented")


# ---- JSON


@pytest.mark.parametrize("value", [None, True, 2**70, 1.5, "ä \n", [], {"a": [1, {"b": None}]}])
def test_a_value_can_be_stored_in_a_body_as_json_and_read_back(value: Any) -> None:
    made = Message.of_json(value, priority=3)
    assert (made.format, made.coded_character_set_id, made.priority) == ("MQSTR", 1208, 3)
    assert made.json() == value
    assert Message.of_json(value, format="JSON", coded_character_set_id=1209).format == "JSON"


def test_a_value_that_json_cannot_express_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    for value in (b"bytes", {1, 2}, math.nan, "\udc80", loop, object()):
        with pytest.raises(ArgumentError, match="value must be a value that JSON can express"):
            Message.of_json(value)


TOO_DEEP = "overflow" if sys.version_info >= (3, 14) else "recur"


@pytest.mark.parametrize(
    ("body", "says"),
    [(b"{", "Expecting"), (b"\xff", "invalid start byte"), (b"", "Expecting"), (b"[" * 99999, TOO_DEEP)],
)
def test_a_body_that_is_not_json_is_reported(body: bytes, says: str) -> None:
    with pytest.raises(QueueCondition, match=f"not JSON in UTF-8: .*{says}.*its format is 'X'") as raised:
        Message(body, format="X").json()
    assert raised.value.reason == Reason.FORMAT_ERROR


def test_reading_json_from_a_truncated_body_reports_that_it_is_truncated() -> None:
    with pytest.raises(QueueCondition, match="1 of 9 bytes are here"):
        Message(b"[").with_values(length=9).json()


# ---- ranges

# field: the reason, values that are just allowed, values that just are not
RANGES: dict[str, tuple[Reason, list[object], list[object]]] = {
    "report": (Reason.REPORT_OPTIONS_ERROR, [0, 64, 128], [-1, 2**31, 270270464, 4, "0", True]),
    "message_type": (Reason.MSG_TYPE_ERROR, [2, 4, 8, 65536, NUMBER_MAX], [0, 3, 65535, NUMBER_MAX + 1, "8", True]),
    "expiry": (
        Reason.EXPIRY_ERROR,
        [0.1, 1, 99_999_999.9, math.inf, None],
        [0, 0.05, -1, 100_000_000, -math.inf, math.nan, "1", True],
    ),
    "feedback": (Reason.FEEDBACK_ERROR, [0, 258, NUMBER_MAX], [-1, NUMBER_MAX + 1, None]),
    "encoding": (Reason.MD_ERROR, [0, 273, BITS_MAX], [-1, BITS_MAX + 1, "546"]),
    "coded_character_set_id": (Reason.MD_ERROR, [0, 1208, BITS_MAX], [-5, BITS_MAX + 1, "utf-8"]),
    "format": (Reason.MD_ERROR, ["", "x" * 8], ["x" * 9, b"MQSTR", None]),
    "priority": (Reason.PRIORITY_ERROR, [0, 9, 10, None], [-1, -2, 1.5, "9", True]),
    "persistent": (Reason.PERSISTENCE_ERROR, [True, False, None], [0, 1, 2, "yes"]),
    "message_id": (Reason.MD_ERROR, [b"", b"x" * 24], [b"x" * 25, "ä" * 13, "\udc80", None, 24]),
    "correlation_id": (Reason.MD_ERROR, [b"", b"x" * 24], [b"x" * 25, "x" * 25, None]),
    "reply_to_queue": (Reason.MD_ERROR, ["", "x" * 48], ["x" * 49, b"x", None]),
    "reply_to_queue_manager": (Reason.MD_ERROR, ["", "x" * 48], ["x" * 49, b"x", None]),
    "user_identifier": (Reason.MD_ERROR, ["", "x" * 12], ["x" * 13, b"x"]),
    "accounting_token": (Reason.MD_ERROR, [b"", b"x" * 32], [b"x" * 33, "x"]),
    "application_identity_data": (Reason.MD_ERROR, ["", "x" * 32], ["x" * 33, b"x"]),
    "put_application_type": (Reason.MD_ERROR, [-1, 0, BITS_MAX], [-2, BITS_MAX + 1, "6"]),
    "put_application_name": (Reason.MD_ERROR, ["", "x" * 28], ["x" * 29, b"x"]),
    "put_at": (Reason.MD_ERROR, [0, 1.5, 253402300799], [-1, 253402300800, math.nan, "now", True]),
    "application_origin_data": (Reason.MD_ERROR, ["", "x" * 4], ["x" * 5, b"x"]),
    "group_id": (Reason.MD_ERROR, [b"", b"x" * 24], [b"x" * 25, "x" * 25, None]),
    "sequence_number": (Reason.MSG_SEQ_NUMBER_ERROR, [1, NUMBER_MAX], [0, -1, NUMBER_MAX + 1, 1.0, True]),
    "offset": (Reason.OFFSET_ERROR, [0, NUMBER_MAX], [-1, NUMBER_MAX + 1, 1.0, False]),
    "flags": (Reason.MSG_FLAGS_ERROR, [0, 31, Flags.SEGMENT], [-1, 32, 64, "8", None, True]),
    "original_length": (Reason.ORIGINAL_LENGTH_ERROR, [-1], [-2, NUMBER_MAX + 1, "1", None]),
    "delay": (Reason.ARGUMENT_ERROR, [0, 0.5, 99_999_999.9], [-0.5, 100_000_000, math.inf, math.nan, "1", True]),
    "transmission": (
        Reason.XQH_ERROR,
        [None, Transmission("Q", "QM2"), Transmission("", "")],
        ["Q", ("Q",), ("Q", 5), ("Q", "x" * 49)],
    ),
    "properties": (Reason.ARGUMENT_ERROR, [{}, {"a": 1, "b.c": None}], [None, 5, "a", [("a", 1)]]),
}
ALLOWED = [(name, value) for name, (_, allowed, _) in RANGES.items() for value in allowed]


def test_the_range_of_every_field_is_tested() -> None:
    assert list(RANGES) == [name for name in GIVEN if name not in LATER]  # later fields have the kinds of others


def test_values_within_their_range_are_kept() -> None:
    for name, value in ALLOWED:
        kept = getattr(message(b"", **{name: value}), name)
        assert (kept.rstrip(b"\0") if isinstance(kept, bytes) else kept) == value, name


@pytest.mark.parametrize("name", RANGES)
def test_values_out_of_range_are_refused_with_their_reason(name: str) -> None:
    reason, _, refused = RANGES[name]
    for value in refused:
        for build in (message, message(b"").replace):
            with pytest.raises(ArgumentError, match=name) as raised:
                build(**{name: value})
            assert (raised.value.reason, raised.value.argument) == (reason, name), value


# ---- rules between fields


@pytest.mark.parametrize("report", [1, 2, 256, 2048, 2097152, 117440512])
def test_reports_need_a_reply_queue(report: int) -> None:
    with pytest.raises(CallerError) as raised:
        Message(b"", report=report)
    assert raised.value.reason == 2027
    assert Message(b"", report=report, reply_to_queue="REPLIES").report == report


def test_a_request_needs_a_queue_for_the_reply() -> None:
    with pytest.raises(CallerError, match="reply_to_queue") as raised:
        Message(b"", message_type=MessageType.REQUEST)
    assert raised.value.reason == 2027
    request = Message(b"", message_type=MessageType.REQUEST, reply_to_queue="REPLIES")
    with pytest.raises(CallerError):
        request.replace(reply_to_queue="  ")
    assert request.replace(message_type=MessageType.REPLY, reply_to_queue="").message_type == 2


def test_r1_12_r6_5_the_original_length_of_a_report_segment_is_at_least_its_length() -> None:
    report: dict[str, Any] = {"message_type": MessageType.REPORT}
    for flags, body, length in ((SEGMENT, b"", 0), (SEGMENT, b"12345", 4), (LAST_SEGMENT, b"12345", 4)):
        with pytest.raises(ArgumentError) as raised:
            Message(body, flags=flags, original_length=length, **report)
        assert raised.value.reason == 2252
    for flags, body, lengths in (
        (SEGMENT, b"", (1, -1)),
        (SEGMENT, b"12345", (5,)),
        (LAST_SEGMENT, b"", (0,)),
        (SEGMENT | LAST_SEGMENT, b"1", (99,)),
        (0, b"", (0,)),
        (IN_GROUP, b"12345", (100,)),
    ):
        for length in lengths:
            assert Message(body, flags=flags, original_length=length, **report).original_length == length
    for flags in (SEGMENT, 0, IN_GROUP):
        assert Message(b"12345", original_length=3, flags=flags).original_length == 3  # a put ignores it


def test_an_expiry_before_the_end_of_the_delay_is_2013() -> None:
    with pytest.raises(ArgumentError, match="at least the delay of 5 seconds") as raised:
        Message(b"", expiry=4.9, delay=5)
    assert raised.value.reason == 2013
    with pytest.raises(ArgumentError):
        Message(b"", expiry=4.9).replace(delay=5)
    assert Message(b"", expiry=5, delay=5).delay == Message(b"", expiry=math.inf, delay=5).delay == 5


# ---- derived values


@pytest.mark.parametrize(
    ("flags", "group", "segment", "allowed"),
    [
        (IN_GROUP | LAST_IN_GROUP, "last", "no", False),
        (SEGMENT | LAST_SEGMENT, "no", "last", False),
        (LAST_IN_GROUP | SEGMENT, "last", "in", False),
        (SEGMENTATION_ALLOWED, "no", "no", True),
        (SEGMENTATION_ALLOWED | IN_GROUP | SEGMENT, "in", "in", True),
    ],
)
def test_r1_11_the_flags_give_the_group_and_segment_statuses(
    flags: int, group: str, segment: str, allowed: bool
) -> None:
    made = Message(b"", flags=flags)
    assert (made.group_status, made.segment_status, made.segmentation_allowed) == (group, segment, allowed)


def test_put_date_and_time_have_mqs_format_in_utc() -> None:
    for put_at, date, time in (
        (0.0, "19700101", "00000000"),
        (1_000_000_000.25, "20010909", "01464025"),
        (951_782_400.0, "20000229", "00000000"),
        (59.999, "19700101", "00005999"),
    ):
        made = Message(b"", put_at=put_at)
        assert (made.put_date, made.put_time) == (date, time)


# ---- immutability


def test_no_attribute_of_a_message_can_be_set_or_deleted() -> None:
    made: Any = Message(b"body", priority=3)
    for name in (*Message.FIELDS, "group_status", "put_date", "_row", "colour"):
        with pytest.raises(AttributeError, match="never changes"):
            setattr(made, name, 5)
        with pytest.raises(AttributeError, match="never changes"):
            delattr(made, name)
    assert made == Message(b"body", priority=3)
    assert not hasattr(made, "__dict__")


def test_replace_makes_a_changed_copy() -> None:
    made = Message(b"body", priority=3, format="MQSTR")
    other = made.replace(priority=4, body=b"longer body")
    assert (other.priority, other.format, other.body, other.length) == (4, "MQSTR", b"longer body", 11)
    assert made == Message(b"body", priority=3, format="MQSTR")
    assert made.replace() == made


def test_replace_keeps_what_a_get_has_added() -> None:
    got = Message(b"body").with_values(backout_count=2, uid=UniqueId("QM", 7), place=Place(0, 1, 0))
    copied = got.replace(priority=5)
    assert (copied.backout_count, copied.uid, copied.place) == (2, UniqueId("QM", 7), Place(0, 1, 0))


def test_messages_are_equal_if_all_their_fields_are() -> None:
    assert Message(b"body", priority=3) == Message(b"body", priority=3)
    assert hash(Message(b"body", priority=3)) == hash(Message(b"body", priority=3))
    assert Message(b"body", priority=3) != Message(b"body", priority=4)
    assert Message(b"body") != Message(b"BODY")
    assert Message(b"body") != Message(b"body").with_values(backout_count=1)
    assert Message(b"body") != b"body"


def test_a_message_can_be_copied_and_pickled() -> None:
    got = Message(b"body", priority=3, expiry=math.inf).with_values(
        uid=UniqueId("QM", 7), place=Place(-3, 1, 0), warning=Reason.TRUNCATED_MSG_ACCEPTED
    )
    for copied in (copy.copy(got), copy.deepcopy(got), pickle.loads(pickle.dumps(got))):
        assert copied == got
        assert type(copied.place) is Place
        assert copied.warning is Reason.TRUNCATED_MSG_ACCEPTED


# ---- repr


def test_repr_shows_the_fields_that_are_not_default_and_the_beginning_of_a_long_body() -> None:
    assert repr(Message(b"body", priority=3)) == "Message(b'body', priority=3)"
    assert repr(Message()) == "Message(b'')"
    assert repr(Message(b"x" * 40)) == f"Message({b'x' * 40!r})"
    for length in (41, 1_000_000):
        assert repr(Message(b"x" * length)) == f"Message({b'x' * 32!r}... {length:,} bytes)"
