"""Schedule independence (lifecycle B-53, D 70): a strict reader reads the same whenever it looks.

A schedule is a random history of writers that put, commit, back out, prepare and settle, with a strict reader
looking at random moments in between. The same history is run again with a reader that looks only at the end.
For each priority both must have read the same sequence. `test_logical_schedules` has several readers, and units that
get.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.helpers.support import Call, examples, fresh_manager
from tests.tiers import EVERY

from inorder import FOREVER, Message, NoMessageAvailable, OrderPending, QueueManager
from inorder.errors import ConnectionBroken

ORDERS = ["put", "prepare", "commit"]
WRITERS = 3
Step = tuple[str, int, int]

writes = st.tuples(
    st.sampled_from(["put", "put", "put", "put outside"]), st.integers(0, WRITERS - 1), st.integers(0, 2)
)
ends = st.tuples(st.sampled_from(["commit", "back out", "prepare"]), st.integers(0, WRITERS - 1), st.just(0))
settles = st.tuples(st.sampled_from(["settle commit", "settle back out"]), st.integers(0, 5), st.just(0))
looks = st.tuples(st.sampled_from(["look", "drain"]), st.just(0), st.just(0))
schedules = st.lists(st.one_of(writes, writes, ends, settles, looks), min_size=4, max_size=40)


@dataclass
class Writers:
    """Three connections that write, and their prepared units."""

    qm: QueueManager
    connections: list[QueueManager] = field(default_factory=list)
    prepared: list[str] = field(default_factory=list)
    names: Any = field(default_factory=count)

    def __post_init__(self) -> None:
        self.connections = [self.qm.connect(program=f"writer {n}") for n in range(WRITERS)]

    def do(self, what: str, who: int, priority: int) -> None:
        if what in ("put", "put outside"):
            body = f"m{next(self.names)}".encode()
            self.connections[who].put("Q", body, priority=priority, syncpoint=what == "put")
        elif what == "commit":
            self.connections[who].commit()
        elif what == "back out":
            self.connections[who].back_out()
        elif what == "prepare" and any(unit.program.name == f"writer {who}" for unit in self._open()):
            self.prepared.append(f"u{next(self.names)}")
            self.connections[who].prepare(self.prepared[-1])
        elif what.startswith("settle") and who < len(self.prepared):
            self._settle(self.prepared.pop(who), commit=what == "settle commit")

    def _open(self) -> list[Any]:
        return [unit for unit in self.qm.inspect.units() if unit.kind == "session"]

    def _settle(self, unit: str, *, commit: bool) -> None:
        self.qm.settle(unit, "commit" if commit else "back_out")

    def resolve_all(self) -> None:
        for unit in self.prepared:
            self._settle(unit, commit=True)
        for connection in self.connections:
            connection.commit()


def levels(messages: list[Message]) -> dict[int, list[str]]:
    """The bodies that were read, by priority (B-34)."""
    found: dict[int, list[str]] = defaultdict(list)
    for message in messages:
        found[message.priority or 0].append(message.body.decode())
    return dict(found)


class Getter:
    """Gets strictly."""

    def __init__(self, qm: QueueManager) -> None:
        self.connection = qm.connect()
        self.queue = self.connection.open("Q")
        self.read: list[Message] = []

    def look(self) -> bool:
        try:
            self.read.append(self.queue.get(read_order="strict"))
        except (NoMessageAvailable, OrderPending):
            return False
        return True


class Browser(Getter):
    """Browses strictly, always onwards from its cursor."""

    def look(self) -> bool:
        try:
            self.read.append(self.queue.browse_next(read_order="strict"))
        except (NoMessageAvailable, OrderPending):
            return False
        return True


def run(steps: list[Step], order: Any, kind: type[Getter], store: str, *, eager: bool) -> dict[int, list[str]]:
    with fresh_manager(store) as qm:
        qm.create_queue("Q", order=order)
        writers, reader = Writers(qm), kind(qm)
        for what, who, priority in steps:
            if what not in ("look", "drain"):
                writers.do(what, who, priority)
            elif eager:
                while reader.look() and what == "drain":
                    pass
        writers.resolve_all()
        while reader.look():
            pass
        return levels(reader.read)


@pytest.mark.parametrize("kind", [Getter, Browser])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("store", EVERY)
def test_a_strict_reader_reads_the_same_during_a_history_as_at_its_end(
    order: str, kind: type[Getter], store: str
) -> None:
    @examples(store)
    @given(steps=schedules)
    def holds(steps: list[Step]) -> None:
        assert run(steps, order, kind, store, eager=True) == run(steps, order, kind, store, eager=False)

    holds()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("store", EVERY)
def test_no_waiter_is_left_once_all_units_are_resolved(order: Any, store: str) -> None:
    """A strict getter that always waits, on a thread of its own, has read everything at the end."""

    @examples(store)
    @given(steps=schedules)
    def holds(steps: list[Step]) -> None:
        with fresh_manager(store) as qm:
            qm.create_queue("Q", order=order)
            writers, reader, read = Writers(qm), qm.connect(program="reader"), list[Message]()

            def wait_for_messages() -> None:
                try:
                    while True:
                        read.append(reader.get("Q", read_order="strict", wait=FOREVER))
                except ConnectionBroken:
                    return

            call = Call(wait_for_messages)
            for what, who, priority in steps:
                writers.do(what, who, priority)
            writers.resolve_all()
            call.sleeps(reader)
            assert qm.depth("Q") == 0
            assert levels(read) == run(steps, order, Getter, store, eager=False)
            reader.internals.abandon()
            call.result()

    holds()
