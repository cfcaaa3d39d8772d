"""The master property end to end (B-53, B-49): a strict reader at the target reads a schedule of the puts.

Three programs put for another queue manager, in units of work or outside, single messages and groups of several
priorities; units are committed, backed out, prepared and settled. Meanwhile a channel sends, and dies at a named
point; either queue manager restarts; a reader at the target reads, and backs out. The oracle uses no code of the
rules, only three sentences:

    each committed message is read once, and nothing else is read
    messages of one priority are read in the order of the puts, of the prepares (or the commits of units that were not
    prepared), or of the commits
    messages of one unit are read in the order of its puts
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from inorder_scenarios.channelling import ChannelRun
from inorder_scenarios.sites import Sites

from inorder import Flags, NoMessageAvailable, Queue, QueueManager
from inorder.model.attributes import Delivery, OrderRule
from inorder.mq import channels

ORDERS: list[OrderRule] = ["put", "prepare", "commit"]
ACTORS = range(3)
PRIORITIES = range(3)
POINTS = tuple(channels.points.POINTS)

actors = st.sampled_from(ACTORS)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), actors, st.booleans(), st.sampled_from(PRIORITIES), st.integers(1, 3)),
        st.tuples(st.just("put"), actors, st.just(True), st.sampled_from(PRIORITIES), st.integers(1, 3)),
        st.tuples(st.sampled_from(["commit", "back_out", "prepare", "settle", "refuse"]), actors),
        st.tuples(st.just("carry"), st.sampled_from(POINTS), st.integers(1, 3), st.booleans()),
        st.tuples(st.just("carry"), st.just(""), st.just(1), st.just(False)),
        st.tuples(st.just("read"), st.integers(1, 4), st.booleans()),
        st.tuples(st.just("restart"), st.sampled_from(["qm", "qm2"])),
    ),
    min_size=10,
    max_size=60,
)


@dataclass
class Unit:
    """The puts of a program since its last commit, and the time of its prepare."""

    puts: list[tuple[int, int, bytes]] = field(default_factory=list)  # time, priority, body
    prepared: int | None = None


@dataclass
class Oracle:
    """The messages that the reader must get, and their order."""

    order: OrderRule
    time: int = 0
    units: dict[int, Unit] = field(default_factory=lambda: {actor: Unit() for actor in ACTORS})
    prepared: dict[str, Unit] = field(default_factory=dict)
    committed: list[tuple[tuple[int, int], int, bytes]] = field(default_factory=list)  # place, priority, body

    def put(self, actor: int, priority: int, body: bytes, *, in_unit: bool) -> None:
        self.time += 1
        if in_unit:
            self.units[actor].puts.append((self.time, priority, body))
        else:
            self.committed.append(((self.time, 0), priority, body))

    def commit(self, unit: Unit) -> None:
        self.time += 1
        ended = self.time if unit.prepared is None or self.order == "commit" else unit.prepared
        for place, (put_at, priority, body) in enumerate(unit.puts):
            self.committed.append(((put_at, 0) if self.order == "put" else (ended, place), priority, body))

    def levels(self) -> dict[int, list[bytes]]:
        """The bodies that must be read, by priority."""
        ordered = sorted(self.committed)
        return {level: [body for _, priority, body in ordered if priority == level] for level in PRIORITIES}


class World:
    """Two queue managers, a channel, three programs and a reader."""

    def __init__(self, kind: str, order: OrderRule, delivery: Delivery, *, logical: bool) -> None:
        self.sites, self.oracle, self.logical = Sites(kind), Oracle(order), logical
        self.read: list[tuple[int, bytes, bytes, int]] = []  # priority, body, group, number in the group
        here, there = self.sites["qm"].operator, self.sites["qm2"].operator
        here.create_queue("QM2", usage="transmission", order=order, delivery=delivery)
        channels.define_channel(
            here, "TO.QM2", transmission_queue="QM2", connection="qm2", batch_size=2, short_retry_count=0,
            long_retry_count=0,
        )  # fmt: skip
        there.create_queue("Q", order=order, delivery=delivery)
        self.programs: dict[int, QueueManager] = {}
        self.reader: QueueManager | None = None

    def program(self, actor: int) -> QueueManager:
        if actor not in self.programs:
            self.programs[actor] = self.sites["qm"].reach(f"program {actor}")
        return self.programs[actor]

    # --- steps

    def step(self, name: str, *words: Any) -> None:
        getattr(self, f"_{name}")(*words)

    def _put(self, actor: int, in_unit: bool, priority: int, count: int) -> None:
        """Puts one message, or a group."""
        qm, oracle = self.program(actor), self.oracle
        with qm.open("Q", manager="QM2", output=True) as queue:
            for number in range(1, count + 1):
                body = b"%d" % (oracle.time + 1)
                if count == 1:
                    queue.put(body, priority=priority, syncpoint=in_unit)
                else:
                    flag = Flags.LAST_IN_GROUP if number == count else Flags.IN_GROUP
                    queue.put(body, priority=priority, flags=flag, logical=True, syncpoint=in_unit)
                oracle.put(actor, priority, body, in_unit=in_unit)

    def _commit(self, actor: int) -> None:
        self.program(actor).commit()
        self.oracle.commit(self._ended(actor))

    def _back_out(self, actor: int) -> None:
        self.program(actor).back_out()
        self._ended(actor)

    def _ended(self, actor: int) -> Unit:
        unit, self.oracle.units[actor] = self.oracle.units[actor], Unit()
        return unit

    def _prepare(self, actor: int) -> None:
        if not self.oracle.units[actor].puts:
            return
        self.oracle.time += 1
        name = f"unit {self.oracle.time}"
        self.program(actor).prepare(name)
        unit = self.oracle.prepared[name] = self._ended(actor)
        unit.prepared = self.oracle.time

    def _settle(self, at: int) -> None:
        self._end_prepared(at, "commit")

    def _refuse(self, at: int) -> None:
        self._end_prepared(at, "back_out")

    def _end_prepared(self, at: int, outcome: Any) -> None:
        if not self.oracle.prepared:
            return
        name = sorted(self.oracle.prepared)[at % len(self.oracle.prepared)]
        self.sites["qm"].operator.settle(name, outcome)
        unit = self.oracle.prepared.pop(name)
        if outcome == "commit":
            self.oracle.commit(unit)

    def _carry(self, point: str, nth: int, dies: bool) -> None:
        """Runs the channel to its end, or to a point where it dies, or where it is held while the reader reads."""
        run = ChannelRun(self.sites, self.sites["qm"], "TO.QM2", (point, nth), dies=dies)
        outcome = run.begin()
        if outcome.kind == "held":
            self._read(2, True)
            outcome = run.resume()
        assert outcome.kind in ("ok", "killed"), str(outcome)

    def _read(self, most: int, keeps: bool) -> bool:
        """Gets messages strictly, in a unit that is committed or backed out; returns whether `most` were found."""
        if self.reader is None:
            self.reader = self.sites["qm2"].reach("reader")
        queue, found = self.reader.open("Q", input="shared", read_order="strict"), list[Any]()
        with queue:
            try:
                while len(found) < most or (self.logical and found[-1].group_status == "in"):
                    found.append(self._get(queue))
            except NoMessageAvailable:
                assert not (self.logical and found and found[-1].group_status == "in"), "a group that was left open"
            if keeps:
                self.reader.commit()
                self.read += [(one.priority, one.body, one.group_id, one.sequence_number) for one in found]
            else:
                self.reader.back_out()
        return len(found) >= most

    def _get(self, queue: Queue) -> Any:
        return queue.get(syncpoint=True, logical=self.logical, all_messages=self.logical)

    def _restart(self, name: str) -> None:
        site = self.sites[name]
        site.store.restart()
        site.connect()
        if name == "qm":
            for connection in self.programs.values():
                connection.internals.abandon()
            self.programs.clear()
            self.oracle.units = {actor: Unit() for actor in ACTORS}
        elif self.reader is not None:
            self.reader.internals.abandon()
            self.reader = None

    # --- the end

    def finish(self) -> None:
        for actor in ACTORS:
            self._commit(actor)
        while self.oracle.prepared:
            self._settle(0)
        self._carry("", 1, False)
        while self._read(50, True):
            pass

    def judge(self, *, in_fifo: bool) -> None:
        assert sorted(body for _, body, _, _ in self.read) == sorted(body for _, _, body in self.oracle.committed)
        if self.logical:
            self._judge_groups()
            return
        got = {level: [body for priority, body, _, _ in self.read if priority == level] for level in PRIORITIES}
        assert got == self.oracle.levels()
        if in_fifo:
            assert [body for _, body, _, _ in self.read] == [body for _, _, body in sorted(self.oracle.committed)]

    def _judge_groups(self) -> None:
        """Checks that each group is whole and in order, and its first message in place among single ones."""
        firsts: dict[int, list[bytes]] = {level: [] for level in PRIORITIES}
        expected = self.oracle.levels()
        before: tuple[bytes, int] = b"", 0
        for priority, body, group, number in self.read:
            if number == 1:
                firsts[priority].append(body)
            else:
                assert before == (group, number - 1), "a group was torn apart"
            before = group, number
        for level, bodies in expected.items():
            assert firsts[level] == [body for body in bodies if body in firsts[level]]


@contextmanager
def world(*words: Any, **more: Any) -> Iterator[World]:
    made = World(*words, **more)
    try:
        yield made
    finally:
        for site in made.sites.values():
            site.store.stop()
            site.store.close_store()


def check(kind: str, order: OrderRule, delivery: Delivery, steps: list[tuple[Any, ...]], *, logical: bool) -> None:
    with world(kind, order, delivery, logical=logical) as made:
        for step in steps:
            made.step(*step)
        made.finish()
        made.judge(in_fifo=delivery == "fifo")


@pytest.mark.nightly
@pytest.mark.parametrize("logical", [False, True], ids=["physical", "logical"])
@pytest.mark.parametrize("delivery", ["priority", "fifo"])
@pytest.mark.parametrize("order", ORDERS)
@settings(suppress_health_check=list(HealthCheck))
@given(steps=STEPS)
def test_a_strict_reader_at_the_target_reads_a_schedule_of_the_puts(
    order: OrderRule, delivery: Delivery, logical: bool, steps: list[tuple[Any, ...]]
) -> None:
    check("memory", order, delivery, steps, logical=logical)


@pytest.mark.nightly
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(steps=STEPS)
def test_a_strict_reader_at_the_target_reads_a_schedule_in_files_and_in_schemas_of_a_server(
    kind: str, order: OrderRule, steps: list[tuple[Any, ...]]
) -> None:
    check(kind, order, "priority", steps, logical=False)


def test_the_oracle_detects_a_message_that_overtook_another() -> None:
    """A channel that reads relaxed passes uncommitted messages, so the property does not hold for it."""
    with world("memory", "put", "fifo", logical=False) as made:
        channels.alter_channel(made.sites["qm"].operator, "TO.QM2", read_order="relaxed")
        made.step("put", 0, True, 0, 1)
        made.step("put", 1, False, 0, 1)
        made.step("carry", "", 1, False)
        made.finish()
        with pytest.raises(AssertionError):
            made.judge(in_fifo=True)
