"""A call that fails changes nothing, wherever in the call the error occurs.

A call is repeated, with an error planted at its first change of the store's backend, then at its second, and so on,
commits included, until the call succeeds. After each failure everything visible is as before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from tests.helpers.support import told
from tests.tiers import ONCE, gate

from inorder import Flags, GetOptions, Match, QueueManager, connect, errors
from inorder.client.bulk import ClaimReader, LedgerKey, Staged, Stager
from inorder.model.message import NO_ID
from inorder.stores.engine.operation import run
from inorder.stores.seam.backend import OperationKind
from inorder.stores.seam.tables import StagingRow
from inorder.testing import ManualClock
from inorder.testing.stores import RestartableStore

G = b"G".ljust(24, b"\0")
NO_SUCH = Match(message_id=b"none")
BATCH = LedgerKey("app", "query", "1")
POINTS_MAX = 200


class Planted(errors.StoreError):
    """An error that no rule raises."""


# The methods by which a backend changes. If the backend is a database, each writing statement is a change, too.
CHANGES = (
    "arrive", "write", "remove", "move", "restart_unit", "number_unit", "expire", "clear", "save", "remove_records",
    "stage", "put_staged", "end_staging",
)  # fmt: skip
WRITES = re.compile(r"\b(INSERT|UPDATE|DELETE)\b")


class Changes:
    """Records the names of a store's changes, and raises an error at one of them, counted from 1."""

    def __init__(self, store: Any, point: int, error: type[errors.StoreError]) -> None:
        self.made: list[str] = []
        self.error = error
        self._backend, self._point = store.backend, point
        self._sweeps = False

    def beginning(self, begin: Callable[..., Any], *, sweeps: bool) -> Callable[..., Any]:
        """Sweeps do not count: they delete leftover contents after the call, in operations of their own, unseen."""

        def begun(*given: Any, **named: Any) -> Any:
            self._sweeps = sweeps
            return begin(*given, **named)

        return begun

    def note(self, name: str) -> None:
        if self._sweeps:
            return
        self.made.append(name)
        if len(self.made) == self._point:
            raise self.error(f"planted at {name}")

    def failing(self, name: str, change: Callable[..., Any]) -> Callable[..., Any]:
        def changing(*given: Any, **named: Any) -> Any:
            self.note(name)
            return change(*given, **named)

        return changing

    def committing(self, commit: Callable[..., Any]) -> Callable[..., Any]:
        """A commit that fails has backed out the operation."""

        def committed(tallies: Any, changed: Any, **named: Any) -> Any:
            try:
                self.note("commit")
            except self.error as error:
                self._backend.abort(error)
                raise
            return commit(tallies, changed, **named)

        return committed

    def writing(self, execute: Callable[..., Any]) -> Callable[..., Any]:
        def executed(sql: str, *values: Any) -> Any:
            if WRITES.search(sql):
                self.note(sql)
            return execute(sql, *values)

        return executed


@contextmanager
def failing_at(store: Any, point: int, error: type[errors.StoreError] = Planted) -> Iterator[Changes]:
    """Raises an error at the change of this number, counted from 1."""
    backend, changes = store.backend, Changes(store, point, error)
    with ExitStack() as stack:
        for name in CHANGES:
            stack.enter_context(mock.patch.object(backend, name, changes.failing(name, getattr(backend, name))))
        stack.enter_context(mock.patch.object(backend, "commit", changes.committing(backend.commit)))
        for name in ("execute", "run"):
            if hasattr(backend, "engine"):
                execute = changes.writing(getattr(backend.engine, name))
                stack.enter_context(mock.patch.object(backend.engine, name, execute))
        for name in ("begin", "sweep"):
            if hasattr(backend, name):
                begin = changes.beginning(getattr(backend, name), sweeps=name == "sweep")
                stack.enter_context(mock.patch.object(backend, name, begin))
        yield changes


def everything(world: SimpleNamespace) -> list[Any]:
    """Everything visible of a queue manager except its open handles, which a call opens before it begins."""
    qm: QueueManager = world.watcher
    definitions = qm.queues()
    names = [one.name for one in definitions]
    messages = [
        (it.position, it.state, it.holder, it.message.row, it.due_at) for n in names for it in qm.inspect.look(n)
    ]
    views = [replace(one, open_input_count=0, open_output_count=0) for one in qm.inspect.overview()]
    orders = [qm.inspect.order_view(name) for name in names]
    noted = [qm.bulk.in_ledger(one.name, BATCH) for one in definitions]
    staged = run(world.store, OperationKind(writes=False), lambda _, verb: verb.backend.select(StagingRow))
    return [
        definitions, messages, qm.inspect.units(), qm.bulk.claims(), qm.inspect.locks(), views, orders, noted, staged,
    ]  # fmt: skip


@pytest.fixture
def world(store: RestartableStore, clock: ManualClock) -> Iterator[SimpleNamespace]:
    with connect(store, program="A") as a, connect(store, program="B") as b, connect(store, program="W") as watcher:
        a.create_queue("Q")
        a.create_queue("R", order="commit")
        for body in ("g1", "g2", "x", "y", "z"):
            in_group = body.startswith("g")
            flags = (Flags.LAST_IN_GROUP if body == "g2" else Flags.IN_GROUP) if in_group else Flags.NONE
            a.put("Q", body.encode(), group_id=G if in_group else NO_ID, flags=flags,
                  sequence_number=int(body[1]) if in_group else 1, priority=0)  # fmt: skip
        a.put_many("R", [b"r1", b"r2", b"r3"])
        for name in ("Q", "R"):  # opens the queue, so that planted errors occur in the call itself
            a.browse_and_lock(name, NO_SUCH)
            with pytest.raises(errors.NoMessageAvailable):
                a.get(name, match=NO_SUCH)
        yield SimpleNamespace(a=a, b=b, watcher=watcher, clock=clock, queue=a.open("Q"), store=store)


def _in_unit(world: SimpleNamespace) -> None:
    world.a.put("Q", b"new", syncpoint=True)
    world.a.put_many("R", [b"n1", b"n2"], syncpoint=True)
    world.a.get("R", syncpoint=True)
    world.queue.get(logical=True, syncpoint=True)


def _claimed(world: SimpleNamespace) -> None:
    world.reader = ClaimReader(world.queue, "app")
    world.reader.begin()
    world.reader.claim(0, most=2)
    world.reader.plan(0, 1)


def _confirmed(world: SimpleNamespace) -> None:
    world.a.put("R", b"n1", confirm_id=7)
    world.a.put("R", b"n2", confirm_id=7)
    world.a.get("R", confirm_id=7)
    world.locked = world.a.browse_and_lock("R", confirm_id=7)


def _prepared(world: SimpleNamespace) -> None:
    _in_unit(world)
    world.a.prepare("u")


def _locked(world: SimpleNamespace) -> None:
    world.queue.browse_first(lock=True)


def _staged(world: SimpleNamespace) -> None:
    world.stager = Stager(world.a.open("R", output=True), "staging", lasts=60.0)
    world.stager.stage(3, {"body": [b"s1", b"s2", b"s3"], "group_key": [1, None, 1]})


def _begun(world: SimpleNamespace) -> None:
    world.reader = ClaimReader(world.queue, "app")
    world.reader.begin()


def _closed(world: SimpleNamespace) -> None:
    world.queue.close()
    for queue in ("Q", "R"):
        world.a.close_queue(queue)


CALLS: dict[str, tuple[Callable[[SimpleNamespace], object], Callable[[SimpleNamespace], object]]] = {
    "put": (lambda w: None, lambda w: w.a.put("Q", b"new")),
    "put many in a unit": (lambda w: None, lambda w: w.a.put_many("R", [b"1", b"2", b"3"], syncpoint=True)),
    "get": (lambda w: None, lambda w: w.a.get("Q")),
    "get many in a unit": (lambda w: None, lambda w: w.a.get_many("Q", 4, syncpoint=True)),
    "get logically": (lambda w: None, lambda w: w.queue.get(logical=True)),
    "get a group": (lambda w: w.a.put("R", b"new", syncpoint=True), lambda w: list(w.a.get_group("Q"))),
    "get under a confirm id": (lambda w: None, lambda w: w.a.get("Q", confirm_id=9)),
    "browse and lock": (lambda w: None, lambda w: w.queue.browse_first(lock=True)),
    "browse on from a lock": (_locked, lambda w: w.queue.browse_next()),
    "get what is locked": (_locked, lambda w: w.queue.get(under_cursor=True)),
    "lock under an id": (lambda w: None, lambda w: w.a.browse_and_lock("Q")),
    "undo": (_confirmed, lambda w: w.a.undo("R", 7)),
    "release a lock id": (_confirmed, lambda w: w.a.admin.release_lock("R", w.locked.lock_id)),
    "commit": (_in_unit, lambda w: w.a.commit()),
    "back out": (_in_unit, lambda w: w.a.back_out()),
    "prepare": (_in_unit, lambda w: w.a.prepare("u")),
    "settle a prepared unit": (_prepared, lambda w: w.b.settle("u", "commit")),
    "undo a prepared unit": (_prepared, lambda w: w.b.settle("u", "back_out")),
    "claim": (_begun, lambda w: w.reader.claim(0, most=2)),
    "claim in parts of groups": (_begun, lambda w: w.reader.claim(0, GetOptions(logical=True), most=3)),
    "claim the next": (_claimed, lambda w: w.reader.claim(1, most=2)),
    "settle a claim": (_claimed, lambda w: w.reader.settle(1)),
    "release a claim": (_claimed, lambda w: w.b.bulk.release_claims("Q", "app")),
    "finish claims": (_claimed, lambda w: w.b.bulk.finish_claims("Q", "app", 1)),
    "stage more": (_staged, lambda w: w.stager.stage(1, {"body": [b"s4"]})),
    "settle what is staged": (_staged, lambda w: w.b.bulk.settle_staging(BATCH, [Staged("staging", 3)])),
    "undo what is staged": (_staged, lambda w: w.b.bulk.undo_staging(["staging"])),
    "close a handle that locks": (_locked, lambda w: w.queue.close()),
    "clear a queue": (_closed, lambda w: w.b.admin.clear_queue("Q")),
    "delete a queue": (_closed, lambda w: w.b.delete_queue("R", purge=True)),
    "alter a queue": (lambda w: None, lambda w: w.a.alter_queue("Q", max_depth=77)),
}


# The memory store undoes its changes itself; the SQL stores share their statements and rely on transactions.
@pytest.mark.parametrize("kind", [*ONCE, pytest.param("memory", marks=gate)], indirect=True)
@pytest.mark.parametrize("name", CALLS)
def test_an_error_anywhere_in_a_call_leaves_everything_unchanged(name: str, world: SimpleNamespace) -> None:
    begin, call = CALLS[name]
    begin(world)
    before = everything(world)
    made: list[str] = []
    for point in range(1, POINTS_MAX):
        with failing_at(world.store, point) as changes:
            try:
                call(world)
            except Planted:
                assert changes.made[:-1] == made, "the call did not come as far in the same way"
                made = changes.made
            else:
                assert changes.made == made, "an error was swallowed"
                break
        assert everything(world) == before, f"not taken back: {changes.made}"
    assert point > 1, "the call changes nothing"
    assert everything(world) != before


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_finds_the_disk_full_once_does_its_work_once(name: str, world: SimpleNamespace) -> None:
    """The disk is full at the commit of its first operation that writes; the store makes room and repeats that."""
    begin, call = CALLS[name]
    begin(world)
    before = everything(world)
    made: list[str] = []
    verb: list[str] = []
    while len(verb) < 2 or verb[-1] != "commit":  # an operation that only reads has no change but its commit
        with failing_at(world.store, len(made) + 1) as changes, pytest.raises(Planted):
            call(world)
        verb = changes.made[-1:] if verb[-1:] == ["commit"] else [*verb, changes.made[-1]]
        made = changes.made
    with failing_at(world.store, len(made), errors.StoreFull) as changes:
        call(world)
    assert changes.made[len(made) :][: len(verb)] == verb
    assert everything(world) != before


def test_a_refused_claim_does_not_confirm_the_previous_one(world: SimpleNamespace) -> None:
    world.reader = ClaimReader(world.queue, "app")
    world.reader.begin()
    world.reader.claim(0, most=2)
    world.reader.plan(0, 1)
    world.a.alter_queue("Q", read_order="unordered")
    with pytest.raises(errors.OrderUnsupported):
        world.reader.claim(1, GetOptions(read_order="strict"), most=2)
    assert world.a.depth("Q") == 5
    assert [(one.settled, one.open and one.open.number) for one in world.a.bulk.claims()] == [(0, 1)]


def test_a_browse_that_would_wait_for_itself_keeps_its_lock(world: SimpleNamespace) -> None:
    for _ in range(4):
        world.a.get("Q")
    with world.a.open("Q") as queue:
        queue.browse_first(lock=True, read_order="strict")
        world.a.put("Q", b"own", syncpoint=True)
        world.b.put("Q", b"behind")
        with pytest.raises(errors.OrderSelfBlocked):
            queue.browse_next(lock=True, read_order="strict")
        assert [one.messages for one in world.a.inspect.locks()] == [1]


@pytest.mark.every_store
@pytest.mark.parametrize("fails", [True, False])
def test_a_call_discards_and_reports_expired_messages_even_if_it_fails(world: SimpleNamespace, fails: bool) -> None:
    heard: list[bytes] = []
    world.a.put("Q", b"short", expiry=5)
    world.a.inspect.hook("expired", lambda queue, message: heard.append(message.body))
    world.a.alter_queue("Q", max_depth=5 if fails else 6)
    world.clock.advance(5)
    if fails:
        with pytest.raises(errors.QueueFull):
            world.a.put("Q", b"one too many")
    else:
        world.a.put("Q", b"one more")
    told(world.a)
    assert heard == [b"short"]


@pytest.mark.every_store
def test_withheld_calls_change_nothing(world: SimpleNamespace) -> None:
    world.a.get("Q", syncpoint=True)
    before = everything(world)
    with pytest.raises(errors.OrderPending):
        world.b.get("Q", read_order="strict")
    assert everything(world) == before
