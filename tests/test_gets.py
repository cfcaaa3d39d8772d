"""Gets: buffers, many at once, wildcards, what is left of a life, pieces that cannot be joined."""

from __future__ import annotations

import math
from typing import Any, Literal

import pytest
from tests.support import bodies, drained, waiting

from inorder import FOREVER, Match, Message, NoMessageAvailable, QueueManager, Reason, UniqueId
from inorder.errors import InconsistentCall, InorderError
from inorder.message import IN_GROUP, LAST_IN_GROUP, LAST_SEGMENT, SEGMENT, Descriptor
from inorder.options import UNMATCHED
from inorder.testing import ManualClock

GROUP = b"G".ljust(24, b"\0")
BIG, LITTLE = 273, 546


# ---- what to match


@pytest.mark.parametrize("name", ["message_id", "correlation_id", "group_id"])
def test_r3_18_an_id_that_is_all_zero_is_a_wildcard(qm: QueueManager, name: str) -> None:
    fields: Any = {name: b"x"}
    qm.put("Q", b"1", flags=IN_GROUP, **fields)
    zero: Any = {name: bytes(24)}
    other: Any = {name: b"y"}
    with pytest.raises(NoMessageAvailable):
        qm.get("Q", match=Match(**other))
    assert qm.get("Q", match=Match(**zero)).body == b"1"


def test_r3_18_all_of_a_match_must_hold(qm: QueueManager) -> None:
    qm.put("Q", b"1", correlation_id=b"c", message_id=b"1")
    qm.put("Q", b"2", correlation_id=b"c", message_id=b"2")
    qm.put("Q", b"3", correlation_id=b"d", message_id=b"2")
    assert qm.get("Q", match=Match(correlation_id=b"c", message_id=b"2")).body == b"2"
    with pytest.raises(NoMessageAvailable):
        qm.get("Q", match=Match(correlation_id=b"d", message_id=b"1"))


@pytest.mark.parametrize(
    "fields",
    [
        {"format": "MQSTR"},
        {"priority": 7},
        {"persistent": False},
        {"message_type": 65536},
        {"reply_to_queue": "R"},
        {"coded_character_set_id": 819},
        {"feedback": 258},
    ],
    ids=str,
)
def test_a5_any_field_can_be_matched(qm: QueueManager, fields: dict[str, Any]) -> None:
    qm.put("Q", b"other", priority=9)
    qm.put("Q", b"wanted", **fields)
    assert qm.get("Q", match=Match(**fields)).body == b"wanted"


@pytest.mark.parametrize("read_order", ["relaxed", "strict"])
@pytest.mark.parametrize("name", sorted(Descriptor.__annotations__.keys() - UNMATCHED - {"transmission"} | {"token"}))
def test_a5_every_field_finds_those_who_have_its_value(qm: QueueManager, name: str, read_order: Any) -> None:
    qm.put("Q", b"1", message_id=b"M", correlation_id=b"C", format="MQSTR", persistent=True)
    qm.put("Q", b"2", flags=IN_GROUP, group_id=b"G", priority=3, reply_to_queue="R", report=0, feedback=5)
    qm.put("Q", b"3", user_identifier="", message_type=65536, encoding=273, coded_character_set_id=819)
    messages = list(qm.browse("Q"))
    for one in messages:
        wanted: Any = {name: getattr(one, name)}
        same = [other.body for other in messages if getattr(other, name) == wanted[name] or not Match(**wanted)]
        assert bodies(qm, match=Match(**wanted), read_order=read_order) == same


@pytest.mark.parametrize("number", [0, 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1])
def test_a_message_id_that_looks_like_one_made_here_is_any_other(qm: QueueManager, number: int) -> None:
    message_id = qm.put("Q", b"1").message_id[:16] + number.to_bytes(8, "big")
    for read_order in ("relaxed", "strict"):
        with pytest.raises(NoMessageAvailable):
            qm.get("Q", match=Match(message_id=message_id), read_order=read_order)
    qm.put("Q", b"2", message_id=message_id)
    assert qm.get("Q", match=Match(message_id=message_id)).body == b"2"


def test_b34_a_get_tells_the_place_that_a_browse_has_told(qm: QueueManager) -> None:
    qm.put_many("Q", [b"1", b"2"])
    qm.put("Q", b"3", priority=5)
    places = [message.place for message in qm.browse("Q")]
    assert [message.place for message in qm.get_many("Q", 3)] == places
    assert len(set(places)) == 3


# ---- time


def test_r6_1_a_message_tells_what_is_left_of_its_life(qm: QueueManager, clock: ManualClock) -> None:
    qm.put("Q", b"1", expiry=10)
    qm.put("Q", b"2")
    qm.put("Q", b"3", expiry=math.inf)
    clock.advance(4)
    assert [message.expiry for message in qm.browse("Q")] == [6, math.inf, math.inf]
    clock.advance(5.95)
    assert qm.get("Q").expiry == pytest.approx(0.1)
    clock.advance(1)
    assert drained(qm) == [b"2", b"3"]


def test_r6_1_a_life_counts_from_the_put_not_from_the_commit(qm: QueueManager, clock: ManualClock) -> None:
    with qm.unit_of_work():
        qm.put("Q", b"1", expiry=10)
        clock.advance(9)
    assert qm.get("Q").expiry == 1


def test_what_was_got_can_be_put_again(qm: QueueManager, clock: ManualClock) -> None:
    qm.create_queue("R")
    qm.put("Q", b"1", priority=4, correlation_id=b"c", format="MQSTR", expiry=10)
    with qm.unit_of_work() as unit:
        qm.get("Q")
        unit.back_out()
    clock.advance(3)
    got = qm.get("Q")
    assert got.backout_count == 1
    qm.put("R", got)
    again = qm.get("R")
    assert (again.body, again.priority, again.correlation_id, again.format) == (b"1", 4, got.correlation_id, "MQSTR")
    assert (again.message_id, again.expiry, again.backout_count) == (got.message_id, 7, 0)
    assert again.uid != got.uid


def test_a_truncated_message_that_is_put_again_is_as_long_as_what_came(qm: QueueManager) -> None:
    qm.create_queue("R")
    qm.put("Q", b"0123456789")
    cut = qm.get("Q", buffer=4, accept_truncated=True)
    assert (cut.body, cut.length, cut.warning) == (b"0123", 10, 2079)
    qm.put("R", cut)
    again = qm.get("R", buffer=4)
    assert (again.body, again.length, again.warning) == (b"0123", 4, None)


# ---- pieces that differ (R3.45)


def put_pieces(qm: QueueManager, **fields_of_the_last: Any) -> None:
    for n, body in enumerate((b"one", b"two", b"three")):
        last = n == 2
        qm.put(
            "Q",
            body,
            group_id=GROUP,
            offset=3 * n,
            flags=LAST_SEGMENT if last else SEGMENT,
            encoding=BIG if last else LITTLE,
            persistent=False,
            coded_character_set_id=1208,
            **(fields_of_the_last if last else {}),
        )


@pytest.mark.parametrize("syncpoint", [True, False])
def test_r3_45_pieces_of_one_encoding_are_joined_and_the_others_stay(qm: QueueManager, syncpoint: bool) -> None:
    put_pieces(qm)
    got = qm.get("Q", complete=True, syncpoint=syncpoint)
    assert (got.body, got.length, got.offset, got.warning) == (b"onetwo", 6, 0, Reason.INCONSISTENT_ENCODINGS)
    assert got.segment_status == "in"
    qm.commit()
    assert bodies(qm) == [b"three"]
    with pytest.raises(NoMessageAvailable):
        qm.get("Q", complete=True)


def test_r3_45_the_rest_comes_singly_in_logical_order(qm: QueueManager) -> None:
    put_pieces(qm)
    assert qm.get("Q", complete=True, logical=True).body == b"onetwo"
    with pytest.raises(NoMessageAvailable):
        qm.get("Q", complete=True, logical=True)
    rest = qm.get("Q", logical=True)
    assert (rest.body, rest.offset, rest.segment_status, rest.warning) == (b"three", 6, "last", None)


def test_r3_45_a_browse_leaves_all_pieces(qm: QueueManager) -> None:
    put_pieces(qm)
    handle = qm.open("Q")
    assert handle.browse_first(complete=True).warning == 2244
    assert bodies(qm) == [b"one", b"two", b"three"]


def test_r3_45_a_character_set_that_differs_is_2243(qm: QueueManager) -> None:
    for n, ccsid in enumerate((1208, 819)):
        flags = LAST_SEGMENT if n else SEGMENT
        qm.put("Q", b"123", group_id=GROUP, offset=3 * n, flags=flags, coded_character_set_id=ccsid)
    got = qm.get("Q", complete=True)
    assert (got.body, got.warning) == (b"123", Reason.INCONSISTENT_CCSIDS)


def test_pieces_that_agree_are_joined_without_a_warning(qm: QueueManager) -> None:
    put_pieces(qm)
    qm.get("Q", match=Match(encoding=BIG))
    qm.put("Q", b"three", group_id=GROUP, offset=6, flags=LAST_SEGMENT, encoding=LITTLE, coded_character_set_id=1208)
    got = qm.get("Q", complete=True)
    assert (got.body, got.warning, got.segment_status) == (b"onetwothree", None, "last")
    assert qm.depth("Q") == 0


# ---- buffers


@pytest.mark.parametrize("body", [b"", b"long"])
def test_r3_58_a_buffer_of_0_tells_how_long_the_message_is(qm: QueueManager, body: bytes) -> None:
    qm.put("Q", body)
    peeked = qm.get("Q", buffer=0)
    assert (peeked.body, peeked.length) == (b"", len(body))
    assert peeked.warning == (Reason.TRUNCATED_MSG_FAILED if body else None)
    assert qm.depth("Q") == (1 if body else 0)


def test_r3_58_a_buffer_of_0_that_accepts_removes_the_message(qm: QueueManager) -> None:
    qm.put("Q", b"long")
    got = qm.get("Q", buffer=0, accept_truncated=True)
    assert (got.body, got.length, got.warning) == (b"", 4, Reason.TRUNCATED_MSG_ACCEPTED)
    assert qm.depth("Q") == 0


# ---- get many


def test_get_many_ends_after_a_message_with_a_warning(qm: QueueManager) -> None:
    qm.put_many("Q", [b"1", b"long", b"3"])
    got = qm.get_many("Q", 3, buffer=2, accept_truncated=True)
    assert [(message.body, message.warning) for message in got] == [(b"1", None), (b"lo", 2079)]
    assert bodies(qm) == [b"3"]


def test_get_many_ends_at_a_message_that_the_buffer_is_too_small_for(qm: QueueManager) -> None:
    qm.put_many("Q", [b"1", b"long", b"3"])
    got = qm.get_many("Q", 3, buffer=2)
    assert [(message.body, message.warning) for message in got] == [(b"1", None), (b"lo", 2080)]
    assert bodies(qm) == [b"long", b"3"]


def test_get_many_ends_before_an_error_and_the_next_call_raises_it(qm: QueueManager) -> None:
    handle = qm.open("Q")
    handle.put(b"x")
    qm.put("Q", b"g1", flags=IN_GROUP, group_id=GROUP, persistent=False)
    qm.put("Q", b"g2", flags=LAST_IN_GROUP, group_id=GROUP, sequence_number=2, persistent=True)
    options: dict[str, Any] = {"logical": True, "syncpoint_if_persistent": True}
    assert [message.body for message in handle.get_many(5, **options)] == [b"x", b"g1"]
    with pytest.raises(InconsistentCall) as raised:
        handle.get_many(5, **options)
    assert raised.value.reason == 2245


@pytest.mark.parametrize("how", ["get_many", "gets"])
def test_get_many_ends_at_the_limit_of_the_unit_and_loses_nothing(
    qm: QueueManager, how: Literal["get_many", "gets"]
) -> None:
    qm.put_many("Q", [b"1", b"2", b"3", b"4"])
    qm.alter_manager(max_uncommitted=2)
    got: list[bytes] = []
    with qm.unit_of_work():
        if how == "get_many":
            got += [message.body for message in qm.get_many("Q", 4)]
        else:
            got += [qm.get("Q").body, qm.get("Q").body]
        with pytest.raises(InorderError) as raised:
            qm.get_many("Q", 4)
        assert raised.value.reason == 2024
    assert got == [b"1", b"2"]
    assert bodies(qm) == [b"3", b"4"]


def test_get_many_that_waits_returns_as_soon_as_it_has_one(qm: QueueManager) -> None:
    other = qm.connect()
    call = waiting(other, lambda: [message.body for message in other.get_many("Q", 5, wait=FOREVER)])
    qm.put("Q", b"1")
    assert call.result() == [b"1"]


@pytest.mark.parametrize("syncpoint", [False, True])
def test_a_get_tells_what_is_left_of_a_messages_time_and_its_place(
    qm: QueueManager, clock: ManualClock, syncpoint: bool
) -> None:
    """R6.2, R3.14, B-5."""
    qm.create_queue("C", order="commit")
    qm.put("C", b"1", syncpoint=True)
    qm.put("C", b"2", expiry=10, delay=2, syncpoint=True)
    qm.commit()
    clock.advance(4)
    first, second = qm.get_many("C", 2, syncpoint=syncpoint)
    assert (first.expiry, second.expiry, second.delay) == (math.inf, 6.0, 0.0)
    assert first.place is not None
    assert second.place is not None
    assert first.place < second.place


def test_a1_a_get_tells_the_unique_id_that_the_program_gave(qm: QueueManager) -> None:
    uid = UniqueId("ELSEWHERE", 5)
    assert qm.put("Q", b"1", uid=uid).uid == uid
    assert qm.get("Q").uid == uid


@pytest.mark.parametrize("field", ["format", "reply_to_queue", "user_identifier"])
def test_a_match_on_a_text_with_a_nul_finds_what_has_it(qm: QueueManager, field: str) -> None:
    qm.create_queue("NUL")
    fields: dict[str, Any] = {field: "A\0B"}
    qm.put("NUL", b"without", properties={"is_it": "\0"})
    qm.put("NUL", Message(b"with", **fields), context="set_all")
    for other in ("A", "A\0C"):
        with_another: dict[str, Any] = {field: other}
        with pytest.raises(NoMessageAvailable):
            qm.get("NUL", match=Match(**with_another))
    assert qm.get("NUL", match=Match(**fields)).body == b"with"
    with pytest.raises(NoMessageAvailable):
        qm.get("NUL", match=Match(**fields))
    assert qm.get("NUL").body == b"without"
