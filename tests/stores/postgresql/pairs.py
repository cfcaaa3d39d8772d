"""Two programs on one store: one is held before a statement of its call, while the other makes its own call.

The outcome must be that of the two calls one after the other, in one of the two orders; the memory store says what
these outcomes are. Each program has its own store, connection and thread. Each run uses a new queue.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from threading import Event
from typing import Any, NamedTuple

import psycopg
from tests.helpers.support import LIMIT_SECONDS

from inorder import Flags, Match, NoMessageAvailable, Queue, QueueManager, connect
from inorder.errors import InorderError
from inorder.stores.memory import MemoryStore
from inorder.stores.postgresql import PostgresStore
from inorder.testing import ManualClock

GROUP = b"G".ljust(24, b"\0")
LEFT = b"LEFT".ljust(24, b"\0")
POLL_SECONDS = 0.0005
LOCK = re.compile(r" FOR (NO KEY )?UPDATE( OF t)?| ORDER BY name FOR UPDATE")
EXPIRES_SECONDS = 5
Outcome = tuple[object, object, object]  # the outcome of each call, and the state afterwards


class Side:
    """One of the programs.

    Attributes:
        queue: the name of the queue of this run.
        handle: the handle on the queue, if the preparation of the call has opened one.
        kept: a value that the preparation keeps for the call.
    """

    def __init__(self, store: Any, name: str) -> None:
        self.store, self.name = store, name
        self.qm: QueueManager = connect(store, program=name)
        self._thread = ThreadPoolExecutor(1)
        self.queue, self.handle, self.kept = "", None, None  # type: tuple[str, Queue | None, Any]

    @property
    def body(self) -> bytes:
        return self.name.encode()

    @property
    def opened(self) -> Queue:
        if self.handle is None:
            self.handle = self.qm.open(self.queue, input="shared", output=True, browse=True)
        return self.handle

    def begin(self, act: Callable[[Side], object]) -> Future[object]:
        return self._thread.submit(act, self)

    def do(self, act: Callable[[Side], object]) -> object:
        return self.begin(act).result(LIMIT_SECONDS)

    @property
    def sleeps(self) -> bool:
        """Whether it waits for a message, with nothing left to look at."""
        return bool(self.store.waiting.is_asleep(self.qm.internals.owner))

    def end_run(self) -> None:
        def act(_: Side) -> None:
            self.qm.commit()
            with suppress(InorderError):
                self.qm.close_queue(self.queue)
            if self.handle is not None:
                with suppress(InorderError):
                    self.handle.close()
            self.handle = self.kept = None

        self.do(act)

    def close(self) -> None:
        self.do(lambda _: self.qm.internals.abandon())
        self._thread.shutdown()


Act = Callable[[Side], Any]


class Verb(NamedTuple):
    """A call and its preparation.

    Args:
        tell: the part of its answer that is compared; called when both calls are over.
        is_tight: the queue has room for one more message.
    """

    act: Act
    before: Callable[[Side], object] = lambda side: side.opened
    tell: Callable[[Side, Any], object] = lambda side, answer: None
    is_tight: bool = False


def leave(side: Side) -> None:
    """Puts and gets a message; the second program goes first, so only the first finds the queue as it left it."""
    if side.handle is not None:
        side.handle.put(b"gone", correlation_id=LEFT)
        side.handle.get(match=Match(correlation_id=LEFT))


class Held:
    """Stops a program before the nth statement of its transactions, when the server has executed those before it.

    Attributes:
        count: the number of statements that it has reached.
    """

    def __init__(self, link: Any) -> None:
        self._link, self.count, self._at = link, 0, -1
        self.there, self._goes_on = Event(), Event()
        self._execute, self._begin, self._commit = link.execute, link.begin, link.commit
        link.execute, link.begin, link.commit = self._executing, self._beginning, self._committing

    def at(self, number: int) -> None:
        """Counts from 0 again, and stops before statement `number`; -1: nowhere."""
        self.count, self._at = 0, number
        self.there.clear()
        self._goes_on.clear()

    def go_on(self) -> None:
        self._at = -1
        self._goes_on.set()

    def _step(self) -> None:
        self.count += 1
        if self.count - 1 == self._at:
            self._link.pipeline.wait_for_all()
            self.there.set()
            assert self._goes_on.wait(LIMIT_SECONDS)

    def _executing(self, *given: Any) -> Any:
        self._step()
        return self._execute(*given)

    def _beginning(self, *given: Any) -> None:
        self._step()
        self._begin(*given)

    def _committing(self, *given: Any, **named: Any) -> None:
        self._step()
        self._commit(*given, **named)


class World:
    """Two programs on one store; in each run, each makes a call on the run's queue."""

    def __init__(self, clock: ManualClock, one: Side, another: Side) -> None:
        self.clock, self.sides = clock, (one, another)
        self._runs = 0

    def prepare(self, verbs: tuple[Verb, Verb]) -> None:
        """Makes a queue with three messages and the first of a group of two, then prepares the calls."""
        one, _ = self.sides
        name = f"Q{self._runs}"
        self._runs += 1
        for side in self.sides:
            side.queue = name
        one.qm.create_queue(name)
        one.qm.put_many(name, [b"1", b"2"])
        one.qm.put(name, b"first", group_id=GROUP, sequence_number=1, flags=Flags.IN_GROUP)
        one.qm.put(name, b"3")
        one.qm.close_queue(name)
        for side, verb in zip(self.sides, verbs, strict=True):
            side.do(verb.before)
        for side in reversed(self.sides):
            side.do(leave)
        if any(verb.is_tight for verb in verbs):
            one.qm.alter_queue(name, max_depth=one.qm.depth(name) + 1)
        self.clock.advance(EXPIRES_SECONDS + 1)

    def outcome(self, verbs: tuple[Verb, Verb], answers: tuple[Any, Any]) -> Outcome:
        """The outcomes of the calls and the state that they left; removes all of it."""
        told: list[object] = []
        for side, verb, answer in zip(self.sides, verbs, answers, strict=True):
            failed = isinstance(answer, InorderError)
            told.append(type(answer).__name__ if failed else side.do(lambda s, v=verb, a=answer: v.tell(s, a)))  # type: ignore[misc]
        return told[0], told[1], self._left()

    def _left(self) -> object:
        one, another = self.sides
        name = one.queue
        if name not in [queue.name for queue in one.qm.queues()]:
            one.end_run()
            another.end_run()
            return "no queue", one.qm.admin.check()
        attributes, status = one.qm.attributes(name), one.qm.inspect.status(name)
        seen: list[object] = [attributes.get_allowed, attributes.put_allowed, attributes.max_depth]
        seen += [status.current_depth, status.uncommitted]
        units = [(unit.kind, unit.program.name, unit.puts, unit.gets, unit.locks) for unit in one.qm.inspect.units()]
        seen.append(sorted(units))
        seen.append(sorted((each.application, each.queue == name) for each in one.qm.bulk.claims()))
        if problems := one.qm.admin.check():
            return seen, problems
        for side in self.sides:
            side.end_run()
        one.qm.alter_queue(name, get_allowed=True)
        with one.qm.open(name, input="shared", browse=True) as queue:
            seen.append([message.body for message in one.qm.browse(name)])
            for how in ({"logical": True, "all_messages": True, "read_order": "relaxed"}, {}):
                seen.append([])
                with suppress(NoMessageAvailable):
                    while True:
                        seen[-1].append(queue.get(**how).body)  # type: ignore[attr-defined, arg-type]
        self._give_back(one.qm)
        one.qm.close_queue(name)
        one.qm.delete_queue(name, purge=True)
        return seen

    @staticmethod
    def _give_back(qm: QueueManager) -> None:
        for each in qm.bulk.claims():
            qm.bulk.release_claims(each.queue, each.application)
        for unit in qm.inspect.units():
            if unit.kind == "prepared":
                qm.settle(unit.name, "back_out")
            elif unit.kind == "confirm":
                qm.undo(unit.queue, int(unit.name))
            elif unit.kind == "lock":
                qm.admin.release_lock(unit.queue, int(unit.name))
            elif unit.kind == "staging":
                qm.bulk.undo_staging([unit.name])

    def in_order(self, verbs: tuple[Verb, Verb], order: tuple[int, int]) -> Outcome:
        self.prepare(verbs)
        answers = [None, None]
        for nth in order:
            answers[nth] = self._answer(self.sides[nth].begin(verbs[nth].act))
        return self.outcome(verbs, (answers[0], answers[1]))

    @staticmethod
    def _answer(call: Future[object]) -> Any:
        try:
            return call.result(LIMIT_SECONDS)
        except InorderError as error:
            return error

    def close(self) -> None:
        for side in self.sides:
            side.close()


class Server(World):
    """Two programs on PostgreSQL; the first can be held."""

    def __init__(self, url: str) -> None:
        clock = ManualClock()
        self._stores = PostgresStore(url, "TEST", clock), PostgresStore(url, "TEST", clock)
        super().__init__(clock, *(Side(store, name) for store, name in zip(self._stores, "AB", strict=True)))
        links: list[Any] = [store.host._link for store in self._stores]  # type: ignore[attr-defined]
        self._held = Held(links[0])
        self._other = links[1].server_pid
        self._witness = psycopg.connect(url.partition("?")[0], autocommit=True)

    def statements(self, verb: Verb) -> int:
        """The number of statements that a call reaches by itself."""
        pair = verb, Verb(lambda side: None)
        self.prepare(pair)
        self._held.at(-1)
        answer = self._answer(self.sides[0].begin(verb.act))
        count = self._held.count
        self.outcome(pair, (answer, None))
        return count

    def interleaved(self, verbs: tuple[Verb, Verb], at: int) -> Outcome | None:
        """The outcome if the first call is held at this statement during the other; None: it did not reach it."""
        self.prepare(verbs)
        first, second = self.meet((verbs[0].act, verbs[1].act), at)
        outcome = self.outcome(verbs, (self._answer(first), self._answer(second)))
        return outcome if self.was_held else None

    @property
    def was_held(self) -> bool:
        return self._held.there.is_set()

    def meet(self, acts: tuple[Act, Act], at: int) -> tuple[Future[object], Future[object]]:
        """Holds the first program here until the second has ended, waits for it, or waits for a message."""
        held, (one, another) = self._held, self.sides
        held.at(at)
        first = one.begin(acts[0])
        while not held.there.wait(POLL_SECONDS) and not first.done():
            if one.sleeps:
                break
        second = another.begin(acts[1])
        deadline = time.monotonic() + LIMIT_SECONDS
        while held.there.is_set() and not (second.done() or another.sleeps or self._waits()):
            assert time.monotonic() < deadline
            time.sleep(POLL_SECONDS)
        held.go_on()
        return first, second

    def _waits(self) -> bool:
        ((blocked,),) = self._witness.execute("SELECT cardinality(pg_blocking_pids(%s)) > 0", (self._other,)).fetchall()
        return bool(blocked)

    def close(self) -> None:
        super().close()
        self._witness.close()
        for store in self._stores:
            store.close_store()


@contextmanager
def on_server(url: str) -> Iterator[Server]:
    world = Server(url)
    try:
        yield world
    finally:
        world.close()


def possible(verbs: tuple[Verb, Verb]) -> list[Outcome]:
    """The outcomes of two calls in memory, in either order."""
    found = []
    for order in ((0, 1), (1, 0)):
        clock = ManualClock()
        store = MemoryStore("TEST", clock)
        world = World(clock, Side(store, "A"), Side(store, "B"))
        found.append(world.in_order(verbs, order))
        world.close()
    return found


def wrong(world: Server, pair: tuple[Verb, Verb], places: Iterable[int]) -> Iterator[str]:
    """The outcomes, with the first call held at one of these statements, that neither order of the calls produces."""
    due = possible(pair)
    for at in places:
        outcome = world.interleaved(pair, at)
        if outcome is not None and outcome not in due:
            yield f"held at statement {at}:\n    {outcome}\nis none of\n    " + "\n    ".join(map(str, due))


def without_lock(statement: str) -> str:
    """A statement that takes a lock, changed so that it takes none."""
    free = LOCK.sub("", statement).replace("pg_advisory_xact_lock(session_key", "length(text(session_key")
    free = free.replace("lock_queues(", "cardinality(")
    assert free != statement
    return free + ")" * (free.count("(") - free.count(")"))
