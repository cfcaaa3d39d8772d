"""What a call costs, counted and not in time: in steps of SQLite's machine, and a put in calls of Python functions.

Steps do not depend on what lies in front: each case makes the same call twice, in front of few and of many messages
that must not matter.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import apsw
import pytest

import inorder
from inorder import Flags, Match, Message, QueueManager, UniqueId
from inorder.stores.sqlite import SqliteStore

FEW, MANY = 20, 4000
RATIO_MAX = 1.3
PUT_CALLS_MAX = 100
GROUP = b"G".ljust(24, b"\0")


@contextlib.contextmanager
def counted(store: SqliteStore) -> Iterator[list[int]]:
    """Counts the steps of the statements that run in the block."""
    steps: list[int] = []

    def profiled(event: dict[str, object]) -> None:
        status = event["stmt_status"]
        assert isinstance(status, dict)
        steps.append(status["SQLITE_STMTSTATUS_VM_STEP"])

    tracing = store.database.connection
    tracing.trace_v2(apsw.SQLITE_TRACE_PROFILE, profiled)
    try:
        yield steps
    finally:
        tracing.trace_v2(0, None)


def singles(qm: QueueManager, number: int) -> None:
    """That many messages in no group."""
    for start in range(0, number, 500):
        qm.put_many("Q", [b"x"] * min(500, number - start))


def unfinished_groups(qm: QueueManager, number: int) -> None:
    """That many groups of which only the first message is there."""
    for start in range(0, number, 500):
        heads = [
            Message(b"h", group_id=b"%024d" % n, flags=Flags.IN_GROUP) for n in range(start, min(start + 500, number))
        ]
        qm.put_many("Q", heads)


def long_group(qm: QueueManager, number: int) -> None:
    """One group of that many messages."""
    members = [Message(b"m", group_id=GROUP, sequence_number=n, flags=Flags.IN_GROUP) for n in range(1, number)]
    members.append(Message(b"m", group_id=GROUP, sequence_number=number, flags=Flags.LAST_IN_GROUP))
    qm.put_many("Q", members)


def held_by_another(qm: QueueManager, number: int) -> None:
    """That many messages of a higher priority, got by a unit of work that is not settled."""
    other = qm.connect()
    other.put_many("Q", [Message(b"h", priority=9)] * number)
    other.get_many("Q", number, syncpoint=True)


def held_by_itself(qm: QueueManager, number: int) -> None:
    """That many messages of the same level, got by the call's own unit of work."""
    singles(qm, number)
    assert len(qm.get_many("Q", number, syncpoint=True)) == number


def of_higher_priority(qm: QueueManager, number: int) -> None:
    """That many messages in front, of another priority."""
    for start in range(0, number, 500):
        qm.put_many("Q", [Message(b"x", priority=9)] * min(500, number - start))


def of_other_priorities_in_order_of_arrival(qm: QueueManager, number: int) -> None:
    """That many messages in front, of another priority and at the same level."""
    qm.alter_queue("Q", delivery="fifo", default_priority=5)
    of_higher_priority(qm, number)
    qm.put("Q", b"wanted", priority=1)


def get_by_unique_id(qm: QueueManager, **options: Any) -> Message:
    """The message that can be told by its correlation id, by its unique id."""
    (wanted,) = qm.browse("Q", match=Match(correlation_id=b"c"))
    assert wanted.uid is not None
    return qm.get("Q", match=Match(uid=wanted.uid), **options)


def whole_group(qm: QueueManager) -> None:
    with qm.group("Q") as group:
        group.put(b"a")
        group.put(b"b")


Prepare = Callable[[QueueManager, int], None]
CASES: dict[str, tuple[Prepare, Callable[[QueueManager], object]]] = {
    "get, at a depth": (singles, lambda qm: qm.get("Q")),
    "strict get, at a depth": (singles, lambda qm: qm.get("Q", read_order="strict")),
    "get of a correlation id, at a depth": (singles, lambda qm: qm.get("Q", match=Match(correlation_id=b"c"))),
    "get of a unique id, at a depth": (singles, get_by_unique_id),
    "get of a unique id, behind what another unit holds": (
        held_by_another,
        lambda qm: get_by_unique_id(qm, read_order="strict"),
    ),
    "get of a priority, behind others": (of_higher_priority, lambda qm: qm.get("Q", match=Match(priority=0))),
    "strict get of a priority, behind others": (
        of_higher_priority,
        lambda qm: qm.get("Q", match=Match(priority=0), read_order="strict"),
    ),
    "browse of a priority, behind others": (
        of_higher_priority,
        lambda qm: next(qm.browse("Q", match=Match(priority=0))),
    ),
    "get of a priority, in order of arrival": (
        of_other_priorities_in_order_of_arrival,
        lambda qm: qm.get("Q", match=Match(priority=1)),
    ),
    "browse and lock of one, at a depth": (singles, lambda qm: qm.browse_and_lock("Q", most=1)),
    "get in logical order, at a depth": (singles, lambda qm: qm.get("Q", logical=True)),
    "put, at a depth": (singles, lambda qm: qm.put("Q", b"x")),
    "browse, at a depth": (singles, lambda qm: next(qm.browse("Q"))),
    "strict browse, at a depth": (singles, lambda qm: next(qm.browse("Q", read_order="strict"))),
    "get in logical order, behind unfinished groups": (unfinished_groups, lambda qm: qm.get("Q", logical=True)),
    "get of a whole group, behind unfinished groups": (unfinished_groups, lambda qm: list(qm.get_group("Q"))),
    "the next member of a group": (long_group, lambda qm: [qm.get("Q", logical=True) for _ in range(3)]),
    "a put into a group": (
        long_group,
        lambda qm: qm.put("Q", b"x", group_id=GROUP, sequence_number=99_999, flags=Flags.IN_GROUP),
    ),
    "get, behind what another unit holds": (held_by_another, lambda qm: qm.get("Q")),
    "strict get, behind what another unit holds": (held_by_another, lambda qm: qm.get("Q", read_order="strict")),
    "strict get, behind what its own unit holds": (
        held_by_itself,
        lambda qm: qm.get("Q", read_order="strict", syncpoint=True),
    ),
    "all queues at once, at a depth": (singles, lambda qm: qm.overview()),
    "all queues at once, with unfinished groups": (unfinished_groups, lambda qm: qm.overview()),
    "the first of a listing, at a depth": (singles, lambda qm: list(qm.look("Q", most=1))),
    "the first of a listing, behind what another unit holds": (held_by_another, lambda qm: list(qm.look("Q", most=1))),
    "what has arrived, at a depth": (singles, lambda qm: list(qm.look("Q", numbered_after=qm.overview()[0].numbered))),
    "strict logical get, behind what its own unit holds": (
        held_by_itself,
        lambda qm: qm.get("Q", logical=True, read_order="strict", syncpoint=True),
    ),
}


def cost(folder: Path, prepare: Prepare, call: Callable[[QueueManager], object], number: int) -> int:
    store = SqliteStore(folder / f"{number}.db")
    with inorder.connect(store) as qm:
        qm.create_queue("Q")
        prepare(qm, number)
        qm.put("Q", b"wanted", correlation_id=b"c")
        whole_group(qm)
        for _ in range(3):
            qm.put("Q", b"more")
        with counted(store) as steps:
            call(qm)
        qm.back_out()
    store.close_store()
    return sum(steps)


@pytest.mark.parametrize("case", CASES)
def test_what_lies_in_front_costs_nothing(case: str, tmp_path: Path) -> None:
    prepare, call = CASES[case]
    few, many = cost(tmp_path, prepare, call, FEW), cost(tmp_path, prepare, call, MANY)
    assert many <= RATIO_MAX * few, f"{case}: {few:,} steps with {FEW}, {many:,} with {MANY:,}: see the query plans"


def locked(qm: QueueManager, number: int) -> tuple[UniqueId, int]:
    """That many messages that one lock id locks: the last one, and the lock id."""
    singles(qm, number)
    found = qm.browse_and_lock("Q")
    assert found.messages[-1].uid is not None
    return found.messages[-1].uid, found.lock_id


def put_under_a_confirm_id(qm: QueueManager, number: int) -> tuple[UniqueId, int]:
    """That many messages that one confirm id has put: the last one, and the confirm id."""
    return qm.put_many("Q", [b"x"] * number, confirm_id=7)[-1].uid, 7


def got_under_a_confirm_id(qm: QueueManager, number: int) -> tuple[UniqueId, int]:
    """That many messages that one confirm id has got: the last one, and the confirm id."""
    singles(qm, number)
    uid = qm.get_many("Q", number, confirm_id=7)[-1].uid
    assert uid is not None
    return uid, 7


Hold = Callable[[QueueManager, int], tuple[UniqueId, int]]
OF_MANY: dict[str, tuple[Hold, Callable[[QueueManager, UniqueId, int], object]]] = {
    "get with its lock id": (locked, lambda qm, uid, held: qm.get("Q", match=Match(uid=uid), lock_id=held)),
    "unlock": (locked, lambda qm, uid, held: qm.unlock("Q", uid, lock_id=held)),
    "delete": (locked, lambda qm, uid, held: qm.delete("Q", uid, lock_id=held)),
    "confirm of a put": (put_under_a_confirm_id, lambda qm, uid, held: qm.confirm_put("Q", uid, confirm_id=held)),
    "one put more": (put_under_a_confirm_id, lambda qm, _, held: qm.put("Q", b"x", confirm_id=held)),
    "confirm of a get": (got_under_a_confirm_id, lambda qm, uid, held: qm.confirm_get("Q", uid, confirm_id=held)),
}


@pytest.mark.parametrize("case", OF_MANY)
def test_one_of_many_that_one_id_holds_is_a_step(case: str, tmp_path: Path) -> None:
    hold, call = OF_MANY[case]
    costs = []
    for number in (FEW, MANY):
        store = SqliteStore(tmp_path / f"{number}.db")
        with inorder.connect(store) as qm:
            qm.create_queue("Q")
            uid, held = hold(qm, number)
            with counted(store) as steps:
                call(qm, uid, held)
        store.close_store()
        costs.append(sum(steps))
    few, many = costs
    assert many <= RATIO_MAX * few, f"{case}: {few:,} steps with {FEW}, {many:,} with {MANY:,}"


def calls_of(call: Callable[[], object]) -> int:
    """How many calls of Python functions it makes, but for its own."""
    calls = 0

    def profiled(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(profiled)
    try:
        call()
    finally:
        sys.setprofile(before)
    return calls - 1


def test_a_plain_put_makes_few_calls(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    with inorder.connect(store) as qm:
        qm.create_queue("Q")
        for _ in range(10):
            qm.put("Q", b"x")
        calls = min(calls_of(lambda: qm.put("Q", b"x")) for _ in range(3))
    store.close_store()
    assert calls <= PUT_CALLS_MAX
