"""Gets: buffers, many at once, wildcards, what is left of a life."""

from __future__ import annotations

import itertools
import math
from typing import Any, Literal

import pytest
from tests.helpers.support import bodies, drained, put_group, waiting

from inorder import FOREVER, Match, Message, NoMessageAvailable, QueueManager, Reason, UniqueId
from inorder.errors import InconsistentCall, InorderError
from inorder.model.message import IN_GROUP, LAST_IN_GROUP, Descriptor
from inorder.model.options import UNMATCHED
from inorder.testing import ManualClock

GROUP = b"G".ljust(24, b"\0")


FIELDS = sorted(Descriptor.__annotations__.keys() - UNMATCHED - {"transmission"} | {"token"})


@pytest.mark.every_store
@pytest.mark.parametrize("read_order", ["relaxed", "strict"])
def test_a5_every_field_finds_those_who_have_its_value(qm: QueueManager, read_order: Any) -> None:
    qm.put("Q", b"1", message_id=b"M", correlation_id=b"C", format="MQSTR", persistent=True)
    qm.put("Q", b"2", flags=IN_GROUP, group_id=b"G", priority=3, reply_to_queue="R", report=0, feedback=5)
    qm.put("Q", b"3", user_identifier="", message_type=65536, encoding=273, coded_character_set_id=819)
    messages = list(qm.browse("Q"))
    for one, name in itertools.product(messages, FIELDS):
        wanted: Any = {name: getattr(one, name)}
        same = [other.body for other in messages if getattr(other, name) == wanted[name] or not Match(**wanted)]
        assert bodies(qm, match=Match(**wanted), read_order=read_order) == same, name


@pytest.mark.every_store
@pytest.mark.parametrize("number", [0, 2**63 - 1, 2**64 - 1])
def test_a_message_id_that_looks_like_one_made_here_is_any_other(qm: QueueManager, number: int) -> None:
    message_id = qm.put("Q", b"1").message_id[:16] + number.to_bytes(8, "big")
    for read_order in ("relaxed", "strict"):
        with pytest.raises(NoMessageAvailable):
            qm.get("Q", match=Match(message_id=message_id), read_order=read_order)
    qm.put("Q", b"2", message_id=message_id)
    assert qm.get("Q", match=Match(message_id=message_id)).body == b"2"


@pytest.mark.every_store
def test_b34_a_get_tells_the_place_that_a_browse_has_told(qm: QueueManager) -> None:
    qm.put_many("Q", [b"1", b"2"])
    qm.put("Q", b"3", priority=5)
    places = [message.place for message in qm.browse("Q")]
    assert [message.place for message in qm.get_many("Q", 3)] == places
    assert len(set(places)) == 3


@pytest.mark.every_store
def test_r6_1_a_message_tells_what_is_left_of_its_life(qm: QueueManager, clock: ManualClock) -> None:
    qm.put("Q", b"1", expiry=10)
    qm.put("Q", b"2", delay=2)
    qm.put("Q", b"3", expiry=math.inf)
    clock.advance(4)
    assert [(message.expiry, message.delay) for message in qm.browse("Q")] == [(6, 0), (math.inf, 0), (math.inf, 0)]
    clock.advance(5.95)
    assert qm.get("Q").expiry == pytest.approx(0.1)
    clock.advance(1)
    assert drained(qm) == [b"2", b"3"]


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
    elsewhere = UniqueId("ELSEWHERE", 5)
    assert qm.put("R", b"2", uid=elsewhere).uid == qm.get("R").uid == elsewhere


def test_a_truncated_message_that_is_put_again_is_as_long_as_what_came(qm: QueueManager) -> None:
    qm.create_queue("R")
    qm.put("Q", b"0123456789")
    cut = qm.get("Q", buffer=4, accept_truncated=True)
    assert (cut.body, cut.length, cut.warning) == (b"0123", 10, 2079)
    qm.put("R", cut)
    again = qm.get("R", buffer=4)
    assert (again.body, again.length, again.warning) == (b"0123", 4, None)


@pytest.mark.parametrize("body", [b"", b"long"])
def test_r3_58_a_buffer_of_0_tells_how_long_the_message_is(qm: QueueManager, body: bytes) -> None:
    qm.put("Q", body)
    peeked = qm.get("Q", buffer=0)
    assert (peeked.body, peeked.length) == (b"", len(body))
    assert peeked.warning == (Reason.TRUNCATED_MSG_FAILED if body else None)
    assert qm.depth("Q") == (1 if body else 0)


@pytest.mark.parametrize(("accepts", "warning", "left"), [(True, 2079, [b"3"]), (False, 2080, [b"long", b"3"])])
def test_get_many_ends_with_a_warning(qm: QueueManager, accepts: bool, warning: int, left: list[bytes]) -> None:
    qm.put_many("Q", [b"1", b"long", b"3"])
    got = qm.get_many("Q", 3, buffer=2, accept_truncated=accepts)
    assert [(message.body, message.warning) for message in got] == [(b"1", None), (b"lo", warning)]
    assert bodies(qm) == left


def test_get_many_ends_before_an_error_and_the_next_call_raises_it(qm: QueueManager) -> None:
    handle = qm.open("Q")
    handle.put(b"x")
    qm.put("Q", b"g1", flags=IN_GROUP, group_id=GROUP, persistent=False)
    qm.put("Q", b"g2", flags=LAST_IN_GROUP, group_id=GROUP, sequence_number=2, persistent=True)
    options: dict[str, Any] = {"logical": True, "syncpoint_if_persistent": True}
    assert [message.body for message in handle.get_many(5, **options)] == [b"x", b"g1"]
    with pytest.raises(InconsistentCall, match="2245"):
        handle.get_many(5, **options)


@pytest.mark.parametrize("how", ["get_many", "gets"])
def test_get_many_ends_at_the_units_limit_and_loses_nothing(qm: QueueManager, how: Literal["get_many", "gets"]) -> None:
    qm.put_many("Q", [b"1", b"2", b"3", b"4"])
    qm.admin.alter_manager(max_uncommitted=2)
    got: list[bytes] = []
    with qm.unit_of_work():
        if how == "get_many":
            got += [message.body for message in qm.get_many("Q", 4)]
        else:
            got += [qm.get("Q").body, qm.get("Q").body]
        with pytest.raises(InorderError, match="2024"):
            qm.get_many("Q", 4)
    assert got == [b"1", b"2"]
    assert bodies(qm) == [b"3", b"4"]


def test_get_many_that_waits_returns_as_soon_as_it_has_one(qm: QueueManager) -> None:
    other = qm.connect()
    call = waiting(other, lambda: [message.body for message in other.get_many("Q", 5, wait=FOREVER)])
    qm.put("Q", b"1")
    assert call.result() == [b"1"]


@pytest.mark.every_store
@pytest.mark.parametrize("field", ["format", "user_identifier"])
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


def test_many_in_logical_order_with_a_selector_go_on_inside_a_group(qm: QueueManager) -> None:
    put_group(qm, b"1", b"2", b"3")
    queue = qm.open("Q", input="shared")
    assert queue.get(logical=True).body == b"1"
    found = queue.get_many(3, logical=True, match=Match(selector="Root.MQMD.Expiry > 0"))
    assert [one.body for one in found] == [b"2", b"3"]
