"""Queue: handles with cursors, locks, marks and group states of their own; what they are open for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.support import bodies

from inorder import (
    GetOptions,
    Match,
    Message,
    NoMessageAvailable,
    NoMessageUnderCursor,
    PutOptions,
    Queue,
    QueueManager,
)
from inorder.errors import (
    GetInhibited,
    HandleError,
    InconsistentCall,
    NotOpenFor,
    ObjectInUse,
    PutInhibited,
    QueueCondition,
    Reason,
    TooManyHandles,
)
from inorder.message import IN_GROUP, LAST_IN_GROUP, SEGMENT


def opens(qm: QueueManager) -> tuple[int, int]:
    status = qm.status("Q")
    return status.open_input_count, status.open_output_count


# ---- opening and closing


def test_a_handle_is_open_for_everything_unless_it_says_for_what(qm: QueueManager) -> None:
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


CALLS: dict[str, tuple[Callable[[Queue], object], set[str]]] = {
    "put": (lambda queue: queue.put(b"m"), {"output"}),
    "put_many": (lambda queue: queue.put_many([b"m"]), {"output"}),
    "get": (lambda queue: queue.get(), {"input"}),
    "get_many": (lambda queue: queue.get_many(2), {"input"}),
    "browse_first": (lambda queue: queue.browse_first(), {"browse"}),
    "browse_next": (lambda queue: queue.browse_next(), {"browse"}),
    "browse_cursor": (lambda queue: queue.browse_cursor(), {"browse"}),
    "browse": (lambda queue: list(queue.browse()), {"browse"}),
    "unlock": (lambda queue: queue.unlock(), {"browse"}),
    "get under_cursor": (lambda queue: queue.get(under_cursor=True), {"browse", "input"}),
}
NOT_OPEN = {"output": 2039, "input": 2037, "browse": 2036}
OPENS: list[dict[str, Any]] = [
    {"input": "shared"},
    {"output": True},
    {"browse": True},
    {"input": "as_queue", "browse": True},
]


@pytest.mark.parametrize("options", OPENS, ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_a_handle_does_what_it_was_opened_for(qm: QueueManager, name: str, options: dict[str, Any]) -> None:
    qm.put("Q", b"m1")
    handle = qm.open("Q", **options)
    if "browse" in options and name in ("browse_cursor", "get under_cursor"):
        handle.browse_first()
    call, needed = CALLS[name]
    missing = needed - options.keys()
    if not missing:
        call(handle)
        return
    with pytest.raises(NotOpenFor) as raised:
        call(handle)
    assert raised.value.reason in {NOT_OPEN[one] for one in missing}
    assert bodies(qm) == [b"m1"]


ANY_CALL: dict[str, Callable[[Queue], object]] = {
    **{name: call for name, (call, _) in CALLS.items()},
    "close": lambda queue: queue.close(),
    "attributes": lambda queue: queue.attributes(),
    "status": lambda queue: queue.status(),
    "set": lambda queue: queue.set(get_allowed=False),
}


@pytest.mark.parametrize("call", ANY_CALL.values(), ids=ANY_CALL)
def test_a_closed_handle_takes_no_call(qm: QueueManager, call: Callable[[Queue], object]) -> None:
    qm.put("Q", b"m1")
    handle = qm.open("Q")
    handle.close()
    with pytest.raises(HandleError) as raised:
        call(handle)
    assert raised.value.reason == 2019
    assert bodies(qm) == [b"m1"]
    assert "closed" in repr(handle)


def test_leaving_the_block_of_a_closed_handle_is_fine(qm: QueueManager) -> None:
    with qm.open("Q") as handle:
        handle.close()
    assert repr(qm.open("Q")) == "<queue Q>"


def test_a_connection_opens_so_many_handles_and_no_more(qm: QueueManager) -> None:
    qm.alter_manager(max_handles=2)
    first, _ = qm.open("Q"), qm.open("Q")
    with pytest.raises(TooManyHandles) as raised:
        qm.open("Q")
    assert (raised.value.reason, raised.value.limit) == (2017, 2)
    with pytest.raises(TooManyHandles):
        qm.put("Q", b"m1")
    assert qm.connect().put("Q", b"m1").warning is None
    first.close()
    qm.open("Q")


@pytest.mark.parametrize(
    ("first", "second", "conflict"),
    [
        ("shared", "shared", False),
        ("shared", "exclusive", True),
        ("exclusive", "shared", True),
        ("exclusive", "exclusive", True),
        ("exclusive", "as_queue", True),
        ("as_queue", "shared", False),
    ],
)
@pytest.mark.parametrize("one_connection", [True, False])
def test_r4_4_exclusive_input_conflicts_with_any_other(
    qm: QueueManager, first: Any, second: Any, conflict: bool, one_connection: bool
) -> None:
    handle = qm.open("Q", input=first)
    other = qm if one_connection else qm.connect()
    if conflict:
        with pytest.raises(ObjectInUse) as raised:
            other.open("Q", input=second)
        assert raised.value.reason == 2042
        handle.close()
    other.open("Q", input=second)


def test_t73_browsing_and_putting_never_conflict(qm: QueueManager) -> None:
    handle = qm.open("Q", input="exclusive")
    with pytest.raises(ObjectInUse):
        qm.open("Q")
    qm.open("Q", browse=True, output=True).put(b"m1")
    assert handle.get().body == b"m1"


@pytest.mark.parametrize("attributes", [{"default_input": "exclusive"}, {"shareable": False}], ids=str)
def test_r4_4_the_queue_says_how_input_is_opened(qm: QueueManager, attributes: dict[str, Any]) -> None:
    qm.create_queue("N", **attributes)
    qm.open("N", input="as_queue")
    for how in ("as_queue", "exclusive", "shared"):
        with pytest.raises(ObjectInUse):
            qm.open("N", input=how)


def test_r4_4_shared_may_be_asked_where_exclusive_is_only_the_default(qm: QueueManager) -> None:
    qm.create_queue("N", default_input="exclusive")
    qm.open("N", input="shared")
    qm.open("N", input="shared")


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
    assert (first.body, first.warning, qm.units()[0].gets) == (b"", Reason.TRUNCATED_MSG_ACCEPTED, 1)
    assert handle.browse_first(GetOptions(match=Match(sequence_number=2)), buffer=1).body == b"g"
    qm.back_out()


# ---- each for itself


def test_every_handle_has_a_cursor_of_its_own(qm: QueueManager) -> None:
    qm.put_many("Q", [b"1", b"2", b"3"])
    one, other = qm.open("Q"), qm.open("Q")
    assert [one.browse_next().body, one.browse_next().body] == [b"1", b"2"]
    assert other.browse_next().body == b"1"
    assert one.browse_cursor().body == b"2"
    assert other.get(under_cursor=True).body == b"1"
    assert one.browse_next().body == b"3"


def test_every_handle_has_a_put_state_of_its_own(qm: QueueManager) -> None:
    one, other = qm.open("Q"), qm.open("Q")
    first = one.put(b"1", flags=IN_GROUP, logical=True)
    assert other.put(b"x", logical=True).warning is None
    second = one.put(b"2", flags=LAST_IN_GROUP, logical=True)
    assert (first.sequence_number, second.sequence_number) == (1, 2)
    assert first.group_id == second.group_id != bytes(24)


def test_every_handle_has_a_get_state_of_its_own(qm: QueueManager) -> None:
    with qm.group("Q") as group:
        group.put(b"g1")
        group.put(b"g2")
    qm.put("Q", b"x")
    one, other = qm.open("Q"), qm.open("Q")
    assert one.get(logical=True).body == b"g1"
    assert other.get(logical=True).body == b"x"
    assert one.get(logical=True).body == b"g2"


def test_puts_gets_and_browses_have_states_of_their_own(qm: QueueManager) -> None:
    handle = qm.open("Q")
    for body, flags in ((b"g1", IN_GROUP), (b"g2", IN_GROUP), (b"g3", IN_GROUP)):
        handle.put(body, flags=flags, logical=True)
    assert handle.browse_next(logical=True).body == b"g1"
    assert handle.get(logical=True).body == b"g1"
    assert handle.browse_next(logical=True).body == b"g2"
    assert handle.browse_next(logical=True).body == b"g3"
    assert handle.get(logical=True).body == b"g2"
    assert handle.put(b"g4", flags=LAST_IN_GROUP, logical=True).sequence_number == 4


@pytest.mark.parametrize(
    ("flags", "warning"),
    [(IN_GROUP, 2241), (SEGMENT, 2242), (IN_GROUP | SEGMENT, 2242), (LAST_IN_GROUP, None), (0, None)],
)
def test_t16_t19_closing_warns_of_what_is_unfinished_and_closes(
    qm: QueueManager, flags: int, warning: int | None
) -> None:
    handle = qm.open("Q")
    handle.put(b"1", flags=flags, logical=True)
    assert handle.close() == warning
    assert handle.closed
    assert bodies(qm) == [b"1"]


def test_t34_closing_warns_of_an_unfinished_get_but_not_of_a_browse(qm: QueueManager) -> None:
    qm.put_many("Q", [Message(b"1"), Message(b"2")], flags=IN_GROUP, logical=True)
    browser = qm.open("Q", browse=True)
    browser.browse_first(logical=True)
    assert browser.close() is None
    getter = qm.open("Q", input="shared")
    getter.get(logical=True)
    assert getter.close() == Reason.INCOMPLETE_GROUP


def test_r5_7_closing_a_handle_leaves_the_unit_of_work_open(qm: QueueManager) -> None:
    handle = qm.open("Q")
    handle.put(b"1", syncpoint=True)
    handle.close()
    assert bodies(qm) == []
    qm.commit()
    assert bodies(qm) == [b"1"]


# ---- browsing


def test_a_browse_loop_moves_the_cursor_of_its_handle(qm: QueueManager) -> None:
    qm.put_many("Q", [b"1", b"2"])
    handle = qm.open("Q")
    assert handle.browse_next().body == b"1"
    assert [message.body for message in handle.browse()] == [b"1", b"2"]
    assert handle.browse_cursor().body == b"2"
    with pytest.raises(NoMessageAvailable):
        handle.browse_next()
    qm.put("Q", b"3")
    assert handle.browse_next().body == b"3"


def test_t39_a_browse_goes_on_in_the_order_in_which_it_began(qm: QueueManager) -> None:
    qm.put_many("Q", [b"1", b"2"])
    handle = qm.open("Q")
    handle.browse_first()
    with pytest.raises(InconsistentCall) as raised:
        handle.browse_next(logical=True)
    assert raised.value.reason == 2259
    assert handle.browse_cursor().body == b"1"
    assert handle.browse_first(logical=True).body == b"1"
    assert handle.browse_next(logical=True).body == b"2"


def test_unlocking_without_a_lock_is_a_warning(qm: QueueManager) -> None:
    qm.put_many("Q", [b"1", b"2"])
    handle = qm.open("Q")
    assert handle.unlock() == 2209
    handle.browse_first(lock=True)
    assert qm.get("Q").body == b"2"
    assert handle.unlock() is None
    assert qm.get("Q").body == b"1"
    assert handle.unlock() == 2209


def test_a_locked_message_is_free_when_its_handle_closes(qm: QueueManager) -> None:
    qm.put("Q", b"1")
    with qm.open("Q") as handle:
        handle.browse_first(lock=True)
        with pytest.raises(NoMessageAvailable):
            qm.get("Q")
    assert qm.get("Q").body == b"1"


def test_a_message_under_the_cursor_that_is_gone_is_2034(qm: QueueManager) -> None:
    qm.put_many("Q", [b"1", b"2"])
    handle = qm.open("Q")
    handle.browse_first()
    assert qm.get("Q").body == b"1"
    calls: list[Callable[[], object]] = [handle.browse_cursor, lambda: handle.get(under_cursor=True)]
    for call in calls:
        with pytest.raises(NoMessageUnderCursor) as raised:
            call()
        assert raised.value.reason == 2034
    assert handle.browse_next().body == b"2"


# ---- aliases


def test_r4_8_a_handle_of_an_alias_that_stands_for_another_queue_now_is_2041(qm: QueueManager) -> None:
    qm.create_queue("R")
    qm.create_alias("A", base_queue="Q")
    handle = qm.open("A")
    handle.put(b"1")
    qm.alter_queue("A", base_queue="R")
    calls: list[Callable[[], object]] = [lambda: handle.put(b"2"), handle.get, handle.browse_first]
    for call in calls:
        with pytest.raises(QueueCondition, match="open it again") as raised:
            call()
        assert raised.value.reason == 2041
    assert (bodies(qm, "Q"), bodies(qm, "R")) == ([b"1"], [])
    handle.close()
    qm.open("A").put(b"2")
    assert bodies(qm, "R") == [b"2"]


def test_r4_8_changes_that_do_not_change_the_queue_leave_the_handle_usable(qm: QueueManager) -> None:
    qm.create_alias("A", base_queue="Q")
    handle = qm.open("A")
    qm.alter_queue("A", default_priority=5)
    handle.put(b"1")
    assert handle.get().priority == 5


def test_an_alias_can_be_inhibited_by_itself(qm: QueueManager) -> None:
    qm.create_alias("A", base_queue="Q")
    handle = qm.open("A")
    handle.set(get_allowed=False)
    assert handle.attributes().get_allowed is False
    assert qm.attributes("Q").get_allowed is True
    handle.put(b"1")
    with pytest.raises(GetInhibited):
        handle.get()
    assert qm.get("Q").body == b"1"
    qm.alter_queue("Q", put_allowed=False)
    with pytest.raises(PutInhibited):
        handle.put(b"2")


def test_opens_through_an_alias_count_for_its_queue(qm: QueueManager) -> None:
    qm.create_alias("A", base_queue="Q")
    handle = qm.open("A", input="exclusive")
    assert (opens(qm), handle.status().open_input_count) == ((1, 0), 1)
    with pytest.raises(ObjectInUse):
        qm.get("Q")
