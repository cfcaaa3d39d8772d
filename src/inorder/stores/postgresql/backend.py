"""Rows and transactions in PostgreSQL: what differs from other SQL databases, which is who may change what when.

Many transactions run at once. What belongs to a queue changes under the lock of its tally row alone, and a writing verb
takes that lock with the statement by which it comes to the queue: numbers of a queue become visible in the order in
which they were drawn (B-5), and all that a verb has seen of the queue stays true until it ends. Staging is no change of
a queue: it shares a lock of the row that only a removal waits for, and holds its own unit's row. Verbs that are alone
(`backend.Kind`) hold the queue manager's row before; who waits for whom is looked at under a lock of its own.

On a queue that keeps no order plain puts and gets are *together* (together.py): any number of them share an advisory
lock, and none locks the row. Whoever locks such a queue locks its row, then has that advisory lock for himself
(lock_queues in schema.sql): those who are together have gone, nobody comes, and what they have counted is in the row.
From there on all is as on any other queue.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Final

from psycopg import errors

from ...errors import InorderError, QueueManagerStopping
from ...message import Row
from ...rules.lifecycle import State
from ..backend import Kind, Passing, QueueState, SearchedQueue, Share, Tally
from ..definitions import queue_of
from ..sql.attention import GROUPS, GROUPS_LOOKED_FOR
from ..sql.backend import SqlBackend
from ..tables import DefinitionRow, ManagerRow, WaitRow
from .known import Guess, Known
from .making import APPENDED, ARRIVALS, counted, in_arrays
from .statement import array
from .together import GRANTED, STATEMENTS_TOGETHER, Together

if TYPE_CHECKING:
    from .engine import PostgresEngine

INSERTED_MAX: Final = 1000  # rows by one statement
INSERTED_BYTES: Final = 1 << 24  # by one, where there is more than one row
DRAWN: Final = 1000  # numbers that name things drawn at once: their transaction is synchronous
SKIPPED: Final = 100_000  # of these numbers, where a server has lost some
STOPPED: Final = -1  # the revision of a queue whose queue manager was stopped


class PostgresBackend(SqlBackend):
    """See the module, and `SqlBackend`.

    Attributes:
        stopped: whether the queue manager was stopped, as far as this process has seen.
    """

    stopped = _appends = False
    _was_refused = False  # a lock that was out of order

    def __init__(self, engine: PostgresEngine, name: str, *, shortcuts: bool = True) -> None:
        super().__init__(engine, name, shortcuts=shortcuts)
        self._known, self._together, self._restrict = Known(), Together(), engine.restrict

    def begin(self, kind: Kind) -> None:
        self._kind, self._locked, self._has_all, self._together.queue = kind, set[int](), False, None
        self._known.begin(may_guess=kind.writes and not kind.alone and not kind.beside, may_append=kind.appends)
        self.here = "here beside" if kind.beside else "here"
        super().begin(kind)
        if kind.writes and kind.alone:
            ((stopped,),) = self.engine.run(self.sql["alone"]).fetchall()
            self._heed_stop(bool(stopped))
        if self._was_refused:
            self._was_refused, self._has_all = False, True
            self.engine.run(self.sql["lock all"])

    def _heed_stop(self, stopped: bool) -> None:
        self.stopped = stopped
        if stopped and not self._kind.though_stopped:
            raise QueueManagerStopping(f"queue manager {self.codec.name} has been stopped")

    def stop(self, stopped: bool) -> None:
        """Inside a verb: the queue manager was stopped, or is not any more."""
        self.engine.execute(self.sql["stop"], (stopped,))
        self.stopped = stopped

    # --- numbers

    def draw(self, count: int, reserve: int) -> tuple[range, bool]:
        count = max(count, DRAWN)
        first: int = self.value(self.sql["draw"], count)
        return range(first, first + count), True

    def skip_reserved(self) -> None:
        self.engine.execute(self.sql["draw"], (SKIPPED,))

    # --- transactions

    def commit(self, tallies: Sequence[Tally], changed: Collection[int], *, reserves: bool, durable: bool) -> int:
        quiet = sorted(set(changed) - {tally.queue for tally in tallies})
        if quiet:  # the row of a queue tells those who wait that it has changed, should nobody else (watch.py)
            self.engine.run(self.sql["touched"], (self.engine.array(quiet),))
        self._count(tallies)
        commits = super().commit((), changed, reserves=reserves, durable=durable)
        if self._kind.writes and self._kind.alone:  # it may have changed the catalog
            self._known.forget()
        elif self._writes and self._together.queue is None:
            self._known.commit(tallies, self.noted)
        return commits

    def keep(self, tallies: Sequence[Tally]) -> None:
        self._count(tallies)
        super().keep(())
        self._known.keep()

    def _count(self, tallies: Sequence[Tally]) -> None:
        """The counters of queues, where this verb has left them."""
        for queue, counter, reserved, added, arrived in tallies:
            if self._together.queue is not None:
                self.engine.run(self.sql["counted together"], (queue, added, arrived))
            elif not self._known.appends(queue):
                self.engine.run(self.sql["counted"], (queue, counter, reserved, added, arrived))
            elif counter == self._known.placed(queue):
                self.engine.run(self.sql["appended"], (queue, counter, added, arrived))
            else:
                raise Passing("numbers were drawn for more than what arrives")

    def abort(self, error: BaseException, *, keeps: bool = False) -> bool:
        self._was_refused = isinstance(error, errors.LockNotAvailable)
        if isinstance(error, Passing):
            self._together.refused(feeds=self._kind.feeds)
        guessed_wrong = self._known.abort()
        kept = super().abort(error, keeps=keeps and not guessed_wrong)
        if guessed_wrong and isinstance(error, InorderError) and not self.has_happened:
            raise Passing("what the call took for granted was not yet known to be so")
        return kept

    def sweep(self) -> None:
        self.engine.run(self.sql["lock leftovers"])
        super().sweep()

    # --- guarded changes

    def change(self, sql: str, values: Any, expected: int = 1) -> None:
        """The server counts, and fails if there are more or less: nobody has to wait for the answer."""
        self.engine.run(counted(sql, len(values) + 1), (*values, expected))

    def insert(self, name: str, values: Sequence[Any]) -> None:
        """As arrays, one for each column: a statement with few values is soon read, however many rows there are."""
        into, width, kinds = in_arrays(self.sql[name], appends=self._appends and name in ARRIVALS)
        step = INSERTED_MAX * width
        for begin in range(0, len(values), step):
            self._insert(into, width, kinds, values[begin : begin + step])

    def _insert(self, into: str, width: int, kinds: Sequence[type], values: Sequence[Any]) -> None:
        arrays = [array(values[column::width], kind) for column, kind in enumerate(kinds)]
        half = len(values) // width // 2 * width
        if half and sum(map(len, arrays)) > INSERTED_BYTES:
            self._insert(into, width, kinds, values[:half])
            self._insert(into, width, kinds, values[half:])
        else:
            self.engine.run(into, arrays)

    def restart_unit(self, unit: int, now: float) -> None:
        self.change(self.sql["restart unit"], (now, unit))

    # --- locks

    def state(self, queue: int) -> QueueState | None:
        kind = self._kind
        if kind.writes and queue not in self._locked and self._is_out_of_order(queue):
            self.engine.run(self.sql["lock queues at once"], (self.engine.array([queue]),))
        guess = None if queue in self._in_vain else self._known.guess(queue, looks=self._is_look_due())
        if guess is not None:
            return self._taken(queue, guess)
        if not kind.writes:
            found = super().state(queue)
        elif kind.beside:
            if queue in self._in_vain:  # what looks for more sees the state before a wait for the lock
                self.engine.run(self.sql["lock queue beside"], (queue,))
            found = super().state(queue)
        elif kind.together and self._together.may_come(queue, feeds=kind.feeds):
            found = self._come_together(queue)
        else:
            found = self._lock(queue)
        if found is not None:
            self._heed_stop(found.revision == STOPPED)
        return found

    def _is_look_due(self) -> bool:
        """Whether the next verb that comes to a queue where groups may be looks for them (`SqlBackend.state`)."""
        return not (self._looks + 1) % GROUPS_LOOKED_FOR

    def _taken(self, queue: int, guess: Guess) -> QueueState:
        """What a queue is taken to be; the server is going to say whether it is so."""
        state, attention, appends = guess
        self._looks += attention != 0
        self._locked.add(queue)
        given = (queue, state.revision, attention, state.depth)
        if appends:
            answer = self.engine.run(self.sql["here to append"], given)
        else:
            answer = self.engine.run(self.sql["here as known"], (*given, state.counter, state.reserved))
        self._known.told(queue, answer)
        self.noted[queue] = attention
        if attention & GROUPS and not self.engine.has_triggers:
            self.engine.follow_groups()
        return state

    def _come_together(self, queue: int) -> QueueState:
        """The queue, which nobody has locked, and nobody locks until the verb ends; a put has drawn a number."""
        run, feeds = self.engine.run, self._kind.feeds
        self._together.queue = queue
        run(self.sql["come together"], (queue,))
        self._restrict(STATEMENTS_TOGETHER)
        if feeds:
            answer = run(self.sql["draw places"], (queue, 1))
        else:
            answer = run(self.sql["keeps no order"], (self.engine.array([queue]),))
        self.here = "here together"
        found, answers = super().state(queue), answer.fetchall()
        if found is None or not answers:
            self._together.forget(queue)
            raise Passing("the queue keeps its order now, or is gone")
        if self.noted[queue] & ~GRANTED:
            raise Passing("there is more on the queue than plain puts and gets may meet")
        if feeds:
            ((first, reserved),) = answers
            found = found._replace(counter=first - 1, reserved=reserved)
        return found

    def _lock(self, queue: int) -> QueueState | None:
        """The queue, which nobody else changes until the verb ends."""
        if queue in self._in_vain:
            self._lock_queues([queue])
            unordered = self.engine.run(self.sql["keeps no order"], (self.engine.array([queue]),))
            found, keeps_order = super().state(queue), not unordered.fetchall()
        else:
            keeps_order, found = self._together.knows(queue), None
            for _ in range(3):  # it may have changed until it was locked as the other kind, and then not again
                if found is None:
                    keeps_order = not keeps_order
                    found = self._locked_as(queue, keeps_order=keeps_order)
        if found is None or keeps_order:
            self._together.forget(queue)
            if found is not None:
                self._known.see(queue, found, self.noted[queue])
        else:
            self._together.learn(queue, feeds=self._kind.feeds, is_granted=not self.noted[queue] & ~GRANTED)
        return found

    def _locked_as(self, queue: int, *, keeps_order: bool) -> QueueState | None:
        """The queue, locked, if it keeps its order, or keeps none."""
        self.here = "here locked"
        if not keeps_order:
            self._lock_queues([queue])
            self.here = "here together"
        found = super().state(queue)
        if found is not None:
            self._locked.add(queue)
        return found

    def shares(self, unit: int, *, locked: bool = False) -> Sequence[Share]:
        if self._kind.writes:
            self._lock_queues([queue for (queue,) in self.engine.run(self.sql["queues of unit"], (unit,))])
        return super().shares(unit, locked=locked)

    def _lock_queues(self, queues: Sequence[int]) -> None:
        missing = sorted(set(queues) - self._locked)
        if missing:
            named = (self.engine.array(missing),)
            if self._is_out_of_order(missing[0]):
                self.engine.run(self.sql["lock queues at once"], named)
            self.engine.run(self.sql["lock queues"], named)  # who is together on one of them waits for nobody
            self._locked.update(missing)

    def _is_out_of_order(self, queue: int) -> bool:
        """Whether a queue behind it is locked already.

        In the order of their numbers two transactions never wait for each other. Out of order nobody is waited for: if
        another one has the lock, the verb is run again, and locks all queues first.
        """
        return not (self._has_all or self._kind.beside) and max(self._locked, default=queue) > queue

    def clear(self, queue: int) -> None:
        self.engine.run(self.sql["lock queue alone"], (queue,))  # the queue may be about to go
        super().clear(queue)

    def hold_stagings(self, names: Collection[str], *, begins: bool) -> None:
        held = self.value(self.sql["hold stagings"], self.engine.array(list(names)))
        if begins and held < len(names):
            for name in names:
                self.engine.run(self.sql["begin staging"], (name,))
            self.value(self.sql["hold stagings"], self.engine.array(list(names)))

    def arrive(
        self,
        queue: SearchedQueue,
        rows: Sequence[Row],
        state: State,
        first_number: int | None,
        unit: int | None,
        now: float,
    ) -> None:
        if self._together.queue is not None and first_number:
            reserved = queue.state.reserved
            if len(rows) > 1:
                ((first_number, reserved),) = self.engine.run(self.sql["draw places"], (queue.id, len(rows))).fetchall()
            if first_number + len(rows) > reserved + 1:
                self._together.lock_next(queue.id)
                raise Passing("more numbers are to be reserved")
        self._appends = self._known.appends(queue.id)
        self.arrivals = APPENDED if self._appends else ARRIVALS
        if first_number is not None:
            self._known.place(queue.id, len(rows))
        super().arrive(queue, rows, state, first_number, unit, now)
        self._appends = False

    def save(self, record: Any) -> None:
        if type(record) is WaitRow and record.levels is not None:
            self.engine.run(self.sql["lock waits"])
        if type(record) is ManagerRow and self._locked and not self._has_all:  # all queues are told
            self.engine.run(self.sql["lock all at once"])
        super().save(record)
        if type(record) is DefinitionRow and record.type == "local":
            self._note_order(record.id, keeps_order=queue_of(record.attributes).read_order != "unordered")

    def _note_order(self, queue: int, *, keeps_order: bool) -> None:
        """Nobody is on the queue while this changes. All are locked, in their order: the new revision comes to all."""
        kept_order = not self.engine.run(self.sql["keeps no order"], (self.engine.array([queue]),)).fetchall()
        if kept_order is not keeps_order:
            self._lock_queues([one for (one,) in self.engine.run(self.sql["counted queues"])])
            self.change(self.sql["keep no order"], (queue, int(not keeps_order)))
