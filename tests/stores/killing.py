"""Kills a program at any step of a call: the call has taken effect wholly or not at all.

A step is a statement or a commit on a server, and a point of `inorder.stores.engine.points` on a file. Messages that a
unit of work held are released, claimed messages stay claimed, staged rows stay staged. A queue's trigger messages
belong to the call that made them due.
"""

from __future__ import annotations

import itertools
import signal
import sys
from collections.abc import Callable, Iterable
from typing import Any

from tests.helpers import forked
from tests.helpers.claiming import GROUPS, Application, store_of
from tests.helpers.staged import KEY, Writer
from tests.helpers.support import bodies
from tools.proof import crash_points

import inorder
from inorder import Flags, QueueManager
from inorder.stores.postgresql import PostgresStore
from inorder.stores.seam.protocol import LocalStore
from inorder.stores.seam.records import Staged
from inorder.stores.sqlite import SqliteStore

NEVER = -1
GROUP = b"G".ljust(24, b"\0")
CHILD = "from tests.stores.killing import live; live(*arguments)"

Act = Callable[[], object]


class Program:
    """The store and the connection of a program, and the preparation of its act."""

    def __init__(self, store: LocalStore, queue: str) -> None:
        self.store, self.queue = store, queue
        self.qm = inorder.connect(store, program="child")

    def reader(self, act: Callable[[Application], object], *, holds: int = 0) -> Act:
        """Settles claim 1, and opens claim 2 with `holds` messages, if any. Returns the act."""
        app = Application(self.store, queue=self.queue)
        app.claim(0, most=1)
        app.settle(1)
        if holds:
            app.claim(1, most=holds)
        return lambda: act(app)

    def writer(self, act: Callable[[Writer], object], staged: int = 0) -> Act:
        writer = Writer(self.store, self.qm)
        writer.handle(self.queue)
        if staged:
            writer.stage(self.queue, [b"s%d" % number for number in range(staged)], queue=self.queue)
        return lambda: act(writer)

    def unit(self, act: Act) -> Act:
        self.qm.put(self.queue, b"unit", syncpoint=True)
        self.qm.get(self.queue, syncpoint=True)
        return act

    def settle(self, writer: Writer) -> object:
        return self.store.settle_staging(key_of(self.queue), [Staged(self.queue, writer.counts[self.queue])])


ACTS: dict[str, Callable[[Program], Act]] = {
    "put": lambda one: lambda: one.qm.put(one.queue, b"put"),
    "put of a group's last": lambda one: (
        lambda: one.qm.put(one.queue, b"last", group_id=GROUP, sequence_number=3, flags=Flags.LAST_IN_GROUP)
    ),
    "get": lambda one: lambda: one.qm.get(one.queue),
    "commit": lambda one: one.unit(one.qm.commit),
    "back out": lambda one: one.unit(one.qm.back_out),
    "prepare": lambda one: one.unit(lambda: one.qm.prepare(one.queue)),
    "begin of claims": lambda one: lambda: Application(one.store, queue=one.queue),
    "claim": lambda one: one.reader(lambda app: app.claim(1, most=2)),
    "claim of groups": lambda one: one.reader(lambda app: app.claim(1, GROUPS, most=4)),
    "plan": lambda one: one.reader(lambda app: app.plan(1, 2), holds=2),
    "confirm and claim": lambda one: one.reader(lambda app: app.claim(2, most=2), holds=2),
    "settle of a claim": lambda one: one.reader(lambda app: app.settle(2), holds=2),
    "finish of claims": lambda one: one.reader(lambda _: one.store.finish_claims(one.queue, "app", 2), holds=2),
    "release of claims": lambda one: one.reader(lambda _: one.store.release_claims(one.queue, "app"), holds=2),
    "stage": lambda one: one.writer(lambda writer: writer.stage(one.queue, [b"s0", b"s1"], queue=one.queue)),
    "stage more": lambda one: one.writer(lambda writer: writer.stage(one.queue, [b"s2"], queue=one.queue), staged=2),
    "settle of a staging": lambda one: one.writer(one.settle, staged=3),
    "undo of a staging": lambda one: one.writer(lambda _: one.store.undo_staging([one.queue]), staged=3),
}
UNSEEN = ("back out", "begin of claims")  # the death has the same effect, or the effect is not visible


def key_of(queue: str) -> Any:
    return KEY._replace(batch=queue)


def live(kind: str, where: str, queue: str, act: str, at: str) -> None:
    """Runs in the program: it dies at step `at`, or exits with the number of the last step."""
    steps = itertools.count()
    passed = 0

    def step(*_: object) -> None:
        nonlocal passed
        passed = next(steps)
        if passed == int(at):
            if kind == "postgresql":
                link.pipeline.wait_for_all()
            crash_points.die()

    def stepping(call: Callable[..., Any], *, behind: bool = False) -> Callable[..., Any]:
        def made(*given: Any, **named: Any) -> Any:
            step()
            answer = call(*given, **named)
            if behind:
                step()
            return answer

        return made

    if kind == "postgresql":
        store: Any = PostgresStore(where, program=queue)
        prepared = ACTS[act](Program(store, queue))
        link: Any = store.host._link
        link.begin, link.execute = stepping(link.begin), stepping(link.execute)
        link.commit = stepping(link.commit, behind=True)
    else:
        prepared = ACTS[act](Program(SqliteStore(where), queue))
        crash_points.reach(step)
    prepared()
    sys.exit(passed)


def initiation(queue: str) -> str:
    return f"{queue}.INIT"


def fill(qm: QueueManager, queue: str) -> None:
    qm.admin.create_process("SERVE", exist_ok=True)
    qm.create_queue(initiation(queue))
    qm.create_queue(
        queue, trigger_control=True, trigger_type="group", initiation_queue=initiation(queue), process="SERVE"
    )
    qm.put_many(queue, [b"1", b"2", b"3"])
    for number in (1, 2):
        qm.put(queue, b"g%d" % number, group_id=GROUP, sequence_number=number, flags=Flags.IN_GROUP)
    qm.put(queue, b"4")
    qm.close_queue(queue)


def seen(qm: QueueManager, queue: str) -> tuple[object, ...]:
    """The state of a queue, without its numbers; the last element is the list of problems of the store."""
    units = [
        unit for unit in qm.inspect.units() if queue in (unit.name, unit.queue) or unit.kind == "session"
    ]  # also cleans up after dead processes
    held = sorted((unit.kind, unit.puts, unit.gets) for unit in units)
    accounts = [one for one in qm.bulk.claims() if one.queue == queue]
    claims = [(c.settled, c.delivered, c.open and (c.open.number, c.open.messages, c.open.planned)) for c in accounts]
    status = qm.inspect.status(queue)
    backouts = [message.backout_count for message in qm.browse(queue)]
    noted = qm.bulk.in_ledger(queue, key_of(queue))
    there = (
        bodies(qm, queue), backouts, status.current_depth, status.uncommitted, held, claims, noted and noted.messages,
        qm.depth(initiation(queue)),
    )  # fmt: skip
    claimed = [Application(store_of(qm), queue=queue).bodies(one.open.number) for one in accounts if one.open]
    return *there, claimed, qm.admin.check()


def check_kills(
    kind: str, where: str, act: str, among: Callable[[int], Iterable[int]], gone: Callable[[str], None]
) -> None:
    """Kills programs at the first and the last step of a call, and at some between.

    Args:
        among: given the number of the last step, returns further steps at which a program is killed.
        gone: returns when the store has noticed that a program is dead.
    """
    names = (f"{act.replace(' ', '.').replace(chr(39), '')}.{number}" for number in itertools.count())

    def after(at: int) -> tuple[int, tuple[object, ...]]:
        queue = next(names)
        with inorder.connect(where, program="test") as qm:
            fill(qm, queue)
        ended = forked.run(CHILD, kind, where, queue, act, str(at))
        gone(queue)
        with inorder.connect(where, program="test") as qm:
            return ended, seen(qm, queue)

    count, whole = after(NEVER)
    assert count >= 2
    ended, untouched = after(0)
    assert ended == -signal.SIGKILL
    assert after(count) == (-signal.SIGKILL, whole)
    assert whole != untouched or act in UNSEEN
    for at in among(count):
        ended, found = after(at)
        assert ended == -signal.SIGKILL
        assert found in (untouched, whole), f"killed at step {at} of {count}"
    assert whole[-1] == untouched[-1] == []
