"""Rules that `make mutants` could break unnoticed and that no table can express: one test for each.

The language has no empty message, and no table may depend on which of several waiters wakes first. Its clock lets
every waiter look again, so that no table shows whether a call knew when. What a store asks of readers between two
looks, tells observers, keeps over a restart or refuses for lack of room, has no word there either.
"""

from __future__ import annotations

import contextlib
import math
from typing import Literal

import pytest
from tests.support import bodies

from inorder import GetInhibited, Match, Message, NoMessageAvailable, OrderPending, QueueManager, UniqueId, connect
from inorder.errors import CallerError, OrderDeadlock, Reason, UnitTooLarge
from inorder.message import IN_GROUP, LAST_IN_GROUP, LAST_SEGMENT, SEGMENT
from inorder.options import GetOptions, OpenOptions
from inorder.rules.grouping import NOTHING_OPEN
from inorder.rules.ordering import UNSET
from inorder.stores.base import Change, GetOutcome, GetRequest
from inorder.testing import ManualClock, run_scenario
from inorder.testing.language import parse
from inorder.testing.stores import RestartableStore

T74 = """
scenario: of two waiters the one that names the message is served, though it came later
qm queue Q                        -> ok
C get wait=forever                -> waits
D get wait=forever match-id=x     -> waits
P put m1 id=x                     -> ok
D resumes                         -> m1
C resumes                         -> waits
P put m2                          -> ok
C resumes                         -> m2
"""


def test_t74_the_waiter_that_names_the_message_is_preferred(kind: str) -> None:
    """R3.27."""
    [scenario] = parse(T74)
    assert run_scenario(scenario, kind) is None


def test_t17_the_last_segment_of_a_message_may_be_empty(qm: QueueManager) -> None:
    """R2.19, T17: it ends the message at the length that the others have."""
    qm.put("Q", b"0123456789", logical=True, flags=SEGMENT)
    assert qm.put("Q", b"", logical=True, flags=LAST_SEGMENT).offset == 10
    assert qm.get("Q", complete=True).body == b"0123456789"
    assert qm.depth("Q") == 0


def test_t28_no_other_segment_may_be_empty(qm: QueueManager) -> None:
    """R2.19, T28."""
    with pytest.raises(CallerError) as refused:
        qm.put("Q", b"", logical=True, flags=SEGMENT)
    assert refused.value.reason is Reason.SEGMENT_LENGTH_ZERO
    assert qm.depth("Q") == 0


def look(
    qm: QueueManager,
    options: GetOptions,
    *,
    queue: str = "Q",
    opened: OpenOptions = OpenOptions(input="shared"),  # noqa: B008 - a value
    syncpoint: bool = False,
) -> GetOutcome:
    """What the store answers a call that would wait: its first look."""
    handle = qm._store.open(qm.owner, queue, opened).handle
    return qm._store.get(
        GetRequest(handle=handle, options=options, state=NOTHING_OPEN, cursor=UNSET, syncpoint=syncpoint, waits=True)
    )


def test_a_wait_looks_again_when_a_delay_ends(qm: QueueManager, clock: ManualClock) -> None:
    """R3.27, and the rule of delivery times."""
    qm.put("Q", b"1", delay=9)
    qm.put("Q", b"2", delay=5)
    assert look(qm, GetOptions(wait=60)).look_again_at == clock.now() + 5


def test_a_browse_for_unmarked_messages_looks_again_when_a_mark_ends(qm: QueueManager, clock: ManualClock) -> None:
    """R3.74: the interval of the queue manager is 5 seconds."""
    qm.put("Q", b"1")
    set_of = OpenOptions(browse=True, co_op=True)
    with qm.open("Q", browse=True, co_op=True) as handle:
        handle.browse_first(mark_co_op=True)
        clock.advance(2)
        outcome = look(qm, GetOptions(browse="first", unmarked=True, wait=60), opened=set_of)
        assert outcome.messages == []
        assert outcome.look_again_at == clock.now() + 3


def test_b31_who_waits_for_nobody_any_more_is_in_no_circle_before_it_looks_again(qm: QueueManager) -> None:
    """One waits for two, who commits, and asks for what one holds: one need only look."""
    qm.create_queue("R")
    for queue in ("Q", "R"):
        qm.put_many(queue, [b"1", b"2"])
    strictly = GetOptions(read_order="strict", wait=60)
    one, two = qm.connect(), qm.connect()
    one.get("R", syncpoint=True)
    two.get("Q", syncpoint=True)
    assert look(one, strictly, syncpoint=True).messages == []
    with pytest.raises(OrderDeadlock):
        look(two, strictly, queue="R", syncpoint=True)
    two.commit()
    two.put("Q", b"3", syncpoint=True)
    assert look(two, strictly, queue="R", syncpoint=True).messages == []


def test_a_message_is_as_old_as_its_confirm(qm: QueueManager, clock: ManualClock) -> None:
    """B-26: how long it has been pending is counted from when it could first be seen."""
    put = qm.put("Q", b"1", delay=100, confirm_id=7)
    qm.put("Q", b"2")
    clock.advance(5)
    qm.confirm_put("Q", put.uid)
    clock.advance(3)
    with pytest.raises(OrderPending) as raised:
        qm.get("Q", read_order="strict")
    assert (raised.value.kind, raised.value.age) == ("delayed", 3.0)


def test_b33_the_operator_is_told_of_what_has_been_pending_longest(qm: QueueManager, clock: ManualClock) -> None:
    """Not of what stands first: the later ones are more urgent."""
    qm.put_many("Q", [Message(b"1", priority=1), Message(b"2", priority=2)])
    programs = [[qm.connect(program=f"{role} {number}") for role in ("reader", "writer")] for number in (1, 2)]
    for priority, (reader, writer) in enumerate(programs, 1):
        reader.get("Q", match=Match(priority=priority), syncpoint=True)
        writer.put("Q", b"3", priority=priority, syncpoint=True)
        clock.advance(1)
    view = qm.order_view("Q")
    assert view.oldest_put is not None
    assert view.oldest_out is not None
    assert (view.oldest_put.by, view.oldest_out.by) == ("writer 1", "reader 1")


def test_a9_a_confirm_id_that_is_used_again_begins_anew(qm: QueueManager, clock: ManualClock) -> None:
    qm.confirm_put("Q", qm.put("Q", b"1", confirm_id=7).uid)
    assert qm.get("Q").body == b"1"
    clock.advance(10)
    qm.put("Q", b"2", confirm_id=7)
    qm.put("Q", b"3")
    clock.advance(1)
    with pytest.raises(OrderPending) as raised:
        qm.get("Q", read_order="strict")
    assert (raised.value.by, raised.value.age) == ("7", 1.0)


@pytest.mark.parametrize("how", ["commit", "prepare"])
def test_r6_3_what_expired_before_its_commit_was_never_visible(
    store: RestartableStore, qm: QueueManager, clock: ManualClock, how: str
) -> None:
    changes: list[Change] = []
    qm.put("Q", b"old", priority=1, expiry=10, syncpoint=True)
    qm.put("Q", b"1", priority=2, syncpoint=True)
    if how == "prepare":
        qm.prepare("U")
    clock.advance(10)
    store.observe(changes.append, lambda: True)
    if how == "prepare":
        qm.settle("U", "commit")
    else:
        qm.commit()
    assert [message.priority for change in changes for message in change.visible] == [2]
    assert [message.priority for change in changes for message in change.expired] == [1]


def test_r6_2_what_has_expired_is_gone_though_the_call_that_found_it_is_refused(
    store: RestartableStore, qm: QueueManager, clock: ManualClock
) -> None:
    changes: list[Change] = []
    qm.put("Q", b"old", expiry=10)
    qm.alter_queue("Q", get_allowed=False)
    clock.advance(10)
    store.observe(changes.append, lambda: True)
    with pytest.raises(GetInhibited):
        qm.get("Q")
    assert [message.body for change in changes for message in change.expired] == [b"old"]


def test_b21_a_confirm_id_is_no_lock_id_though_it_has_its_number(qm: QueueManager) -> None:
    """What a reader of locked messages has got under a confirm id is its own where the call names that one."""
    qm.put_many("Q", [b"1", b"2"])
    lock_id = qm.browse_and_lock("Q").lock_id
    assert qm.get("Q", lock_id=lock_id, confirm_id=lock_id).body == b"1"
    with pytest.raises(OrderPending):
        qm.get("Q", lock_id=lock_id, read_order="strict")
    assert qm.get("Q", lock_id=lock_id, confirm_id=lock_id, read_order="strict").body == b"2"


def test_b45_a_group_that_another_reader_is_inside_holds_back_groups_behind_it(qm: QueueManager) -> None:
    qm.alter_queue("Q", read_order="strict")
    for group_id in (b"first", b"second"):
        for number, flags in ((1, IN_GROUP), (2, LAST_IN_GROUP)):
            qm.put("Q", b"x", group_id=group_id, sequence_number=number, flags=flags)
    other = qm.connect()
    reader = other.open("Q", input="shared")
    assert reader.get(logical=True).sequence_number == 1
    with pytest.raises(OrderPending):
        next(qm.get_group("Q"))
    assert reader.get(logical=True).sequence_number == 2
    assert len(list(qm.get_group("Q"))) == 2


GROUPS = {
    "one twice, one missing": ([(1, IN_GROUP), (1, IN_GROUP), (3, LAST_IN_GROUP)], []),
    "no first": ([(2, IN_GROUP), (3, IN_GROUP), (3, LAST_IN_GROUP)], []),
    "a segment missing": ([(1, IN_GROUP), (2, LAST_IN_GROUP | SEGMENT)], []),
    "the last twice": ([(1, IN_GROUP), (2, LAST_IN_GROUP), (2, LAST_IN_GROUP)], [1, 2]),
    "one behind the last": ([(1, IN_GROUP), (2, LAST_IN_GROUP), (3, IN_GROUP)], [1, 2]),
    "two that say they are the last": ([(1, IN_GROUP), (2, LAST_IN_GROUP), (3, LAST_IN_GROUP)], [1, 2]),
}


@pytest.mark.parametrize("case", GROUPS)
def test_r3_51_a_group_is_whole_by_its_numbers_not_by_how_many_it_has(qm: QueueManager, case: str) -> None:
    members, whole = GROUPS[case]
    for number, flags in members:
        qm.put("Q", b"x", group_id=b"G", sequence_number=number, flags=flags)
    with contextlib.nullcontext() if whole else pytest.raises(NoMessageAvailable):
        assert [message.sequence_number for message in qm.get_group("Q")] == whole
    assert qm.depth("Q") == len(members) - len(whole)


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


@pytest.mark.parametrize("size", [1, 2, 300])
def test_an_observer_is_told_of_gets(store: RestartableStore, qm: QueueManager, size: int) -> None:
    """Of one message, of a group, of one so large that the SQLite store brings it in pages."""
    changes: list[Change] = []
    flags = [IN_GROUP] * (size - 1) + [LAST_IN_GROUP]
    with qm.unit_of_work(), qm.open("Q", output=True) as handle:
        handle.put_many([Message(b"x", flags=flag if size > 1 else 0) for flag in flags], logical=True)
    store.observe(changes.append)
    if size == 1:
        qm.get("Q")
    else:
        members = qm.get_group("Q")
        next(members)
    assert [change.queue for change in changes] == ["Q"]


@pytest.mark.parametrize(("kept", "left"), [("high", [b"light", b"lasting"]), ("normal", [b"lasting"])])
def test_r1_5_a_restart_discards_what_its_queue_does_not_keep(
    store: RestartableStore, kept: Literal["high", "normal"], left: list[bytes]
) -> None:
    qm = connect(store)
    qm.create_queue("Q", nonpersistent_class=kept)
    qm.put("Q", Message(b"light", persistent=False))
    qm.put("Q", Message(b"lasting", persistent=True))
    store.restart()
    qm = connect(store)
    assert (bodies(qm), qm.depth("Q")) == (left, len(left))


def test_r5_8_gets_outside_of_units_of_work_have_no_limit(qm: QueueManager) -> None:
    qm.put_many("Q", [b"1", b"2", b"3"])
    qm.alter_manager(max_uncommitted=2)
    assert [message.body for message in qm.get_many("Q", 5)] == [b"1", b"2", b"3"]


@pytest.mark.parametrize("limit", [1, 2])
def test_r5_8_a_unit_that_holds_more_than_a_limit_that_was_lowered_takes_nothing(qm: QueueManager, limit: int) -> None:
    qm.put_many("Q", [b"1", b"2", b"3", b"4"])
    qm.get_many("Q", 2, syncpoint=True)
    qm.alter_manager(max_uncommitted=limit)
    with pytest.raises(UnitTooLarge):
        qm.get_many("Q", 2, syncpoint=True)
    assert qm.depth("Q") == 2
    qm.back_out()
    assert bodies(qm) == [b"1", b"2", b"3", b"4"]
