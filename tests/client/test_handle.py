"""Handles with their own cursors, locks, marks and group states; puts and gets, and their limits."""

from __future__ import annotations

import itertools
import math
from typing import Any, Literal

import pytest
from tests.helpers.support import bodies, drained, put_group, waiting

from inorder import FOREVER, GetOptions, Match, Message, NoMessageAvailable, PutOptions, QueueManager, Reason, UniqueId
from inorder.errors import CallerError, InconsistentCall, InorderError, MessageTooBig, ObjectInUse, TooManyHandles
from inorder.model.message import IN_GROUP, LAST_IN_GROUP, LAST_SEGMENT, SEGMENT, SEGMENTATION_ALLOWED, Descriptor
from inorder.model.options import UNMATCHED
from inorder.testing import ManualClock


def opens(qm: QueueManager) -> tuple[int, int]:
    status = qm.inspect.status("Q")
    return status.open_input_count, status.open_output_count


def test_a_handle_opened_without_options_can_put_get_and_browse(qm: QueueManager) -> None:
    with qm.open("Q") as handle:
        handle.put(b"m1")
        assert handle.browse_first().body == b"m1"
        assert handle.get(under_cursor=True).body == b"m1"
        assert opens(qm) == (1, 1)
    assert opens(qm) == (0, 0)
    assert handle.closed


def test_browsing_handles_are_in_neither_open_count(qm: QueueManager) -> None:
    handles = [qm.open("Q", browse=True), qm.open("Q", input="shared"), qm.open("Q", output=True, browse=True)]
    assert opens(qm) == (1, 1)
    for handle in handles:
        handle.close()
    assert opens(qm) == (0, 0)


def test_a_browse_loop_begins_at_the_first_and_moves_the_cursor_of_its_handle(qm: QueueManager) -> None:
    qm.put_many("Q", [b"1", b"2", b"3"])
    handle = qm.open("Q")
    assert [handle.browse_next().body, handle.browse_next().body] == [b"1", b"2"]
    assert next(handle.browse()).body == b"1"
    assert [handle.browse_cursor().body, handle.browse_next().body] == [b"1", b"2"]


def test_the_block_of_a_handle_may_end_after_the_handle_is_closed(qm: QueueManager) -> None:
    with qm.open("Q") as handle:
        handle.close()
    assert repr(qm.open("Q")) == "<queue Q>"


def test_a_connection_opens_at_most_max_handles_handles(qm: QueueManager) -> None:
    qm.admin.alter_manager(max_handles=2)
    first, _ = qm.open("Q"), qm.open("Q")
    with pytest.raises(TooManyHandles) as raised:
        qm.open("Q")
    assert (raised.value.reason, raised.value.limit) == (2017, 2)
    with pytest.raises(TooManyHandles):
        qm.put("Q", b"m1")
    assert qm.connect().put("Q", b"m1").warning is None
    first.close()
    qm.open("Q")


@pytest.mark.parametrize("attributes", [{"default_input": "exclusive"}, {"shareable": False}], ids=str)
def test_r4_4_the_attributes_of_the_queue_determine_how_input_is_opened(
    qm: QueueManager, attributes: dict[str, Any]
) -> None:
    qm.create_queue("N", **attributes)
    qm.open("N", input="as_queue")
    for how in ("as_queue", "exclusive", "shared"):
        with pytest.raises(ObjectInUse):
            qm.open("N", input=how)
    qm.create_queue("S", default_input="exclusive")
    qm.open("S", input="shared")
    qm.open("S", input="shared")  # allowed, because exclusive is only the default


def test_keywords_are_added_to_options_that_are_given(qm: QueueManager) -> None:
    handle = qm.open("Q")
    in_group = PutOptions(logical=True, new_correlation_id=True)
    for flags in (IN_GROUP, LAST_IN_GROUP):
        result = handle.put(b"g", in_group, flags=flags, new_message_id=True, message_id=b"mine")
        assert result.message_id.startswith(b"AMQ ")
        assert result.correlation_id.startswith(b"AMQ ")
    assert result.sequence_number == 2
    with pytest.raises(NoMessageAvailable):
        handle.get(GetOptions(match=Match(priority=7)), logical=True)
    first = handle.get(GetOptions(buffer=0, accept_truncated=True), logical=True, syncpoint=True)
    assert (first.body, first.warning, qm.inspect.units()[0].gets) == (b"", Reason.TRUNCATED_MSG_ACCEPTED, 1)
    assert handle.browse_first(GetOptions(match=Match(sequence_number=2)), buffer=1).body == b"g"
    qm.back_out()


USER_LENGTH = 12


def test_r1_1_the_queue_manager_makes_a_message_id_if_none_is_given(qm: QueueManager) -> None:
    results = [qm.put("Q", b"1"), qm.put("Q", Message(b"2")), qm.put("Q", b"3", message_id=bytes(24))]
    ids = [result.message_id for result in results]
    assert len(set(ids)) == 3
    assert all(len(one) == 24 and one.startswith(b"AMQ TEST        ") for one in ids)
    assert [message.message_id for message in qm.get_many("Q", 3)] == ids


def test_the_queue_manager_sets_its_character_set_if_a_message_has_none(qm: QueueManager) -> None:
    qm.admin.alter_manager(coded_character_set_id=819)
    qm.put("Q", b"1")
    qm.put("Q", b"2", coded_character_set_id=437)
    assert [message.coded_character_set_id for message in qm.get_many("Q", 2)] == [819, 437]


CONTEXT: dict[str, Any] = {
    "user_identifier": "someone", "accounting_token": b"t" * 32, "application_identity_data": "identity",
    "put_application_type": 28, "put_application_name": "else", "put_at": 86400.0, "application_origin_data": "orig",
}  # fmt: skip
IDENTITY = ("user_identifier", "accounting_token", "application_identity_data")
NOTHING = {**dict.fromkeys(CONTEXT, ""), "accounting_token": bytes(32), "put_application_type": 0}


def put_context(qm: QueueManager, **options: Any) -> dict[str, Any]:
    qm.put("Q", b"1", **CONTEXT, **options)
    got = qm.get("Q")
    return {name: getattr(got, name) for name in CONTEXT}


def own_context(qm: QueueManager, clock: ManualClock) -> dict[str, Any]:
    qm.put("Q", b"1")
    user = qm.get("Q").user_identifier
    assert 0 < len(user) <= USER_LENGTH
    own = {"user_identifier": user, "put_application_type": 6, "put_application_name": "test", "put_at": clock.now()}
    return {**NOTHING, **own}


def test_r2_2_the_context_option_determines_the_putter_and_time_of_a_message(
    qm: QueueManager, clock: ManualClock
) -> None:
    own = own_context(qm, clock)
    assert put_context(qm) == put_context(qm, context="default") == own
    assert put_context(qm, context="none") == {**NOTHING, "put_at": clock.now()}
    assert put_context(qm, context="set_identity") == {**own, **{name: CONTEXT[name] for name in IDENTITY}}
    assert put_context(qm, context="set_all") == CONTEXT


def test_the_time_of_a_put_is_that_of_the_put_not_of_the_commit(qm: QueueManager, clock: ManualClock) -> None:
    with qm.unit_of_work():
        qm.put("Q", b"1")
        clock.advance(60)
    got = qm.get("Q")
    assert (got.put_at, got.put_date, got.put_time) == (clock.now() - 60, "20010909", "01464000")


@pytest.mark.parametrize(
    ("queues", "reason", "limit"), [(2**22, 2031, 32_768), (32_767, 2030, 32_767), (32_768, 2030, 32_768)]
)
def test_r2_22_the_error_names_the_length_limit_that_was_exceeded(
    qm: QueueManager, queues: int, reason: int, limit: int
) -> None:
    qm.admin.alter_manager(max_length=32_768)
    qm.alter_queue("Q", max_length=queues)
    with pytest.raises(MessageTooBig) as raised:
        qm.put("Q", bytes(limit + 1))
    assert (raised.value.reason, raised.value.length, raised.value.limit) == (reason, limit + 1, limit)
    assert reason == 2031 or raised.value.queue == "Q"
    qm.put("Q", bytes(limit))
    assert qm.get("Q").length == limit


def test_r2_22_the_queue_managers_length_limit_also_segments_messages(qm: QueueManager) -> None:
    qm.admin.alter_manager(max_length=32_768)
    qm.put("Q", bytes(70_000), flags=SEGMENTATION_ALLOWED)
    assert [message.length for message in qm.browse("Q")] == [32_768, 32_768, 70_000 - 65_536]
    assert qm.get("Q", complete=True).body == bytes(70_000)


def test_r2_25_pieces_differ_in_message_id_offset_length_and_flags_only(qm: QueueManager) -> None:
    qm.alter_queue("Q", max_length=100)
    fields: Any = {"priority": 3, "correlation_id": b"c", "format": "MQSTR", "reply_to_queue": "R"}
    result = qm.put("Q", bytes(250), flags=SEGMENTATION_ALLOWED | IN_GROUP, logical=True, **fields)
    pieces = list(qm.browse("Q"))
    assert [piece.offset for piece in pieces] == [0, 96, 192]
    assert [piece.flags for piece in pieces] == [1 + 2 + 8, 1 + 2 + 8, 1 + 2 + 4 + 8]
    assert [piece.original_length for piece in pieces] == [96, 96, 58]
    assert len({piece.message_id for piece in pieces}) == len({piece.token for piece in pieces}) == 3
    own = {"message_id", "offset", "original_length", "flags", "body", "length", "token", "uid", "place"}
    same = [{name: value for name, value in piece.fields() if name not in own} for piece in pieces]
    assert same[0] == same[1] == same[2]
    assert (result.message_id, result.flags) == (pieces[0].message_id, SEGMENTATION_ALLOWED | IN_GROUP)


def test_t17_t28_only_the_last_segment_of_a_message_may_be_empty(qm: QueueManager) -> None:
    """R2.19: it ends the message at the length of the others. The scenario tables cannot express an empty message."""
    with pytest.raises(CallerError) as refused:
        qm.put("Q", b"", logical=True, flags=SEGMENT)
    assert refused.value.reason is Reason.SEGMENT_LENGTH_ZERO
    assert qm.depth("Q") == 0
    qm.put("Q", b"0123456789", logical=True, flags=SEGMENT)
    assert qm.put("Q", b"", logical=True, flags=LAST_SEGMENT).offset == 10
    assert qm.get("Q", complete=True).body == b"0123456789"
    assert qm.depth("Q") == 0


GROUP = b"G".ljust(24, b"\0")


FIELDS = sorted(Descriptor.__annotations__.keys() - UNMATCHED - {"transmission"} | {"token"})


@pytest.mark.every_store
@pytest.mark.parametrize("read_order", ["relaxed", "strict"])
def test_a5_a_match_on_any_field_finds_the_messages_with_its_value(qm: QueueManager, read_order: Any) -> None:
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
def test_a_given_message_id_that_looks_generated_is_matched_like_any_other(qm: QueueManager, number: int) -> None:
    message_id = qm.put("Q", b"1").message_id[:16] + number.to_bytes(8, "big")
    for read_order in ("relaxed", "strict"):
        with pytest.raises(NoMessageAvailable):
            qm.get("Q", match=Match(message_id=message_id), read_order=read_order)
    qm.put("Q", b"2", message_id=message_id)
    assert qm.get("Q", match=Match(message_id=message_id)).body == b"2"


@pytest.mark.every_store
def test_b34_a_get_shows_the_same_place_as_a_browse(qm: QueueManager) -> None:
    qm.put_many("Q", [b"1", b"2"])
    qm.put("Q", b"3", priority=5)
    places = [message.place for message in qm.browse("Q")]
    assert [message.place for message in qm.get_many("Q", 3)] == places
    assert len(set(places)) == 3


@pytest.mark.every_store
def test_r6_1_a_message_shows_its_remaining_expiry(qm: QueueManager, clock: ManualClock) -> None:
    qm.put("Q", b"1", expiry=10)
    qm.put("Q", b"2", delay=2)
    qm.put("Q", b"3", expiry=math.inf)
    clock.advance(4)
    assert [(message.expiry, message.delay) for message in qm.browse("Q")] == [(6, 0), (math.inf, 0), (math.inf, 0)]
    clock.advance(5.95)
    assert qm.get("Q").expiry == pytest.approx(0.1)
    clock.advance(1)
    assert drained(qm) == [b"2", b"3"]


def test_a_message_that_was_got_can_be_put_again(qm: QueueManager, clock: ManualClock) -> None:
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


def test_a_truncated_message_that_is_put_again_has_its_truncated_length(qm: QueueManager) -> None:
    qm.create_queue("R")
    qm.put("Q", b"0123456789")
    cut = qm.get("Q", buffer=4, accept_truncated=True)
    assert (cut.body, cut.length, cut.warning) == (b"0123", 10, 2079)
    qm.put("R", cut)
    again = qm.get("R", buffer=4)
    assert (again.body, again.length, again.warning) == (b"0123", 4, None)


@pytest.mark.parametrize("body", [b"", b"long"])
def test_r3_58_a_get_with_a_buffer_of_0_shows_the_length_of_the_message(qm: QueueManager, body: bytes) -> None:
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
def test_a_match_on_a_text_with_a_nul_compares_the_whole_text(qm: QueueManager, field: str) -> None:
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


def test_get_many_in_logical_order_with_a_selector_continues_inside_a_group(qm: QueueManager) -> None:
    put_group(qm, b"1", b"2", b"3")
    queue = qm.open("Q", input="shared")
    assert queue.get(logical=True).body == b"1"
    found = queue.get_many(3, logical=True, match=Match(selector="Root.MQMD.Expiry > 0"))
    assert [one.body for one in found] == [b"2", b"3"]
