"""Rows and transactions in PostgreSQL: the differences from other SQL databases, mainly the locks.

Many transactions run at once. The rows of a queue change only under the lock of its tally row, and a writing operation
takes that lock with the statement that reads the queue. So numbers of a queue become visible in the order in which they
were drawn (B-5), and everything that an operation has seen of the queue stays true until it ends. Staging does not
change a queue: it takes a shared lock of the row, which only blocks a removal, and locks its unit's row. Operations
that are alone (`backend.OperationKind`) lock the queue manager's row first; deadlocks of readers are detected under a
separate lock.

On a queue that keeps no order, plain puts and gets are *together* (together.py): any number of them share an advisory
lock, and none locks the row. To lock such a queue, an operation locks its row and then takes that advisory lock
exclusively (lock_queues in functions.sql): operations that were together have then ended, no others begin, and their
counts are in the row. After that, everything is as on any other queue.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from psycopg import errors

from ...errors import InorderError, QueueManagerStopping
from ...model.message import Message, Place, Row
from ...rules.lifecycle import State
from ..seam.backend import OperationKind, Passing, QueueCounters, QueueState, SearchedQueue, Share
from ..seam.definitions import queue_of
from ..seam.queued import QueuedMessage
from ..seam.tables import DefinitionRow, WaitRow
from ..sql.attention import FRONTS, GROUPS, HEARD, LOOKED_FOR
from ..sql.backend import SqlBackend
from ..sql.codec import GOT_COLUMNS
from ..sql.selection import Heads, Selection, ordered
from ..sql.shapes import COUNTED_MAX
from .fronts import AFTER_FRONTS, ENTRIES_MAX, GETS_A_LOOK, TOGETHER_A_LOOK, Fronts
from .known import Guess, Known
from .making import APPENDED, ARRIVALS, PUTS, PUTS_TOGETHER, RowsInsert, alike_in, counted, in_arrays
from .pipeline import StatementResult
from .statement import array
from .together import GRANTED, STATEMENTS_TOGETHER, TOGETHER_AFTER_FRONTS, Together

if TYPE_CHECKING:
    from .engine import PostgresEngine

INSERTED_MAX: Final = 1000  # rows in one statement
INSERTED_BYTES: Final = 1 << 24  # in one statement with more than one row
# Numbers are drawn, or a queue's reserved, for this many verbs at once, because that transaction is synchronous.
AHEAD: Final = 100
DRAWN_MIN: Final = 10_000
DRAWN_MAX: Final = 100_000
SKIPPED: Final = 1_000_000  # identifying numbers and places to skip when a server has lost some
PERSISTENT: Final = Message.FIELDS["persistent"].index
GOT_PERSISTENT: Final = GOT_COLUMNS.split(", ").index("m.persistent")
STOPPED: Final = -1  # the revision of a queue whose queue manager was stopped
_queue_of_counters = attrgetter("queue")


class PostgresBackend(SqlBackend):
    """See the module, and `SqlBackend`.

    Attributes:
        stopped: whether the queue manager was stopped, as far as this process knows.
    """

    engine: PostgresEngine
    # When a standby takes over it may lack a reservation, if somebody cancelled the wait for it (link.py).
    reserved_unseen = SKIPPED
    stopped = _appends = _is_whole = _is_kept = False
    _was_refused = False  # a lock that was taken out of order
    _is_first = False  # nothing had run before the operation guessed its queue
    _only: StatementResult | None = (
        None  # the put that may be the whole operation; if the guess is wrong, it does nothing
    )
    _restarts: tuple[float, int] | None = None  # start and number of a unit of work, once its put has been sent
    _asked: dict[int, StatementResult]  # the states of queues locked in advance
    _given: Sequence[int] = ()  # the guess about the queue on which a message may arrive
    has_own_clock = False  # the store was given a clock, which decides deadlines
    _whole: set[int]  # queues locked and counted by the statement that inserted a message
    _gone: Mapping[int, int]  # messages already counted by the statements that removed them, by queue

    def __init__(self, engine: PostgresEngine, name: str, *, shortcuts: bool = True) -> None:
        super().__init__(engine, name, shortcuts=shortcuts)
        self._known, self._together, self._fronts = Known(), Together(), Fronts()
        self._from_fronts: set[int] = set()  # queues whose search begins at their fronts
        self._look: tuple[int, StatementResult] | None = None  # the queue, and the index entries read before

    def begin(self, kind: OperationKind) -> None:
        self._kind, self._locked, self._has_all, self._together.queue = kind, set[int](), False, None
        self._whole, self._gone, self._from_fronts, self._look = set(), {}, set(), None
        self._only, self._asked, self.asked, self._restarts = None, {}, None, None
        self._known.begin(may_guess=kind.writes and not kind.alone and not kind.beside, may_append=kind.appends)
        self.here = "queue state beside" if kind.beside else "queue state"
        super().begin(kind)
        if kind.writes and kind.alone:
            ((stopped,),) = self.engine.run(self.sql["lock queue manager"]).fetchall()
            self._heed_stop(bool(stopped))
        if self._was_refused:
            self._was_refused, self._has_all = False, True
            self.engine.run(self.sql["lock all"])

    def _heed_stop(self, stopped: bool) -> None:
        self.stopped = stopped
        if stopped and not self._kind.though_stopped:
            raise QueueManagerStopping(f"queue manager {self.codec.name} has been stopped")

    def common_time(self, now: float) -> float:
        """The server's time, because the clocks of machines differ; if the store was given a clock, that clock's."""
        if self.has_own_clock:
            return now
        time: float = self.value("SELECT extract(epoch FROM clock_timestamp())::double precision")
        return time

    def stop(self, stopped: bool) -> None:
        """Inside an operation: records that the queue manager was stopped, or started again."""
        self.engine.execute(self.sql["set stopped"], (stopped,))
        self.stopped = stopped

    # --- numbers

    def draw(self, count: int, reserve: int) -> tuple[range, bool]:
        count = max(count, min(AHEAD * count, DRAWN_MAX), DRAWN_MIN)
        first: int = self.value(self.sql["draw numbers"], count)
        return range(first, first + count), True

    def skip_reserved(self) -> None:
        self.engine.execute(self.sql["draw numbers"], (SKIPPED,))

    # --- transactions

    def commit(
        self, counts: Sequence[QueueCounters], changed: Collection[int], *, reserves: bool, durable: bool
    ) -> int:
        quiet = set(changed)
        quiet.difference_update(map(_queue_of_counters, counts))
        if quiet:  # the row of a queue shows waiting calls the change if no notification does (watch.py)
            self.engine.run(self.sql["touch queues"], (self.engine.array(sorted(quiet)),))
        if reserves:
            counts = [self._reserved_ahead(each) for each in counts]
        self._count(counts)
        self._hear()
        if self._look is not None:
            self._end_look(*self._look, taken=sum(abs(each.added) for each in counts))
        # An operation that blocks no other waits for the disk in the commit itself, which saves a transaction.
        at_once = durable and (self.engine.link.is_durable or self._is_in_nobodys_way())
        heard = [queue for queue in changed if self.noted.get(queue, HEARD) & HEARD]
        commits = super().commit((), heard, reserves=reserves or at_once, durable=durable)
        if self._kind.writes and self._kind.alone:  # the catalog may have changed
            self._known.forget()
        elif self._writes:
            self._known.commit(counts, self.noted)
        return commits

    def _hear(self) -> None:
        """Checks that the guesses were right, unless nothing else depends on them. Raises: SerializationFailure."""
        self._restart()
        last = self.engine.link.last
        if last is not None and last is not self._only:
            self.engine.run_held_back()
            self._known.hear()

    def keep(self, counts: Sequence[QueueCounters]) -> None:
        self._count(counts)
        self._asked.clear()
        self.engine.link.block()
        super().keep(())
        self._known.keep()

    def _reserved_ahead(self, each: QueueCounters) -> QueueCounters:
        more = min(AHEAD * self._known.placed(each.queue), DRAWN_MAX)
        return each._replace(reserved=min(each.reserved + more, COUNTED_MAX))

    def _is_in_nobodys_way(self) -> bool:
        """Whether no other operation waits for the locks of this one."""
        return self._together.queue is not None or (bool(self._locked) and self._known.is_alone(self._locked))

    def _count(self, counts: Sequence[QueueCounters]) -> None:
        """Writes the counters of queues, except those that other statements have already counted."""
        for queue, counter, reserved, difference, arrived in counts:
            done = queue in self._whole
            added, arriving = difference - done + self._gone.get(queue, 0), arrived - done
            if self._together.queue is not None:
                if (added, arriving) != (0, 0):
                    self.engine.run(self.sql["update queue counters together"], (queue, added, arriving))
            elif not self._known.appends(queue):
                if (counter, reserved, added, arriving) != (*self._known.counters(queue), 0, 0):
                    self.engine.run(self.sql["update queue counters"], (queue, counter, reserved, added, arriving))
            elif counter != self._known.placed(queue):
                raise Passing("more numbers were drawn than messages arrive")
            elif (counter - done, added, arriving) != (0, 0, 0):
                before, upto, _ = self._known.found(queue)
                if before + counter > upto:
                    raise Passing("more numbers are to be reserved")
                self.engine.run(self.sql["update queue counters"], (queue, before + counter, upto, added, arriving))
        self._whole, self._gone = set(), {}

    def abort(self, error: BaseException, *, keeps: bool = False) -> bool:
        self._was_refused = isinstance(error, errors.LockNotAvailable)
        if isinstance(error, Passing):
            self._together.refused(feeds=self._kind.feeds)
        guessed_wrong = self._known.abort()
        kept = super().abort(error, keeps=keeps and not guessed_wrong)
        if guessed_wrong and isinstance(error, InorderError) and not self.has_happened:
            raise Passing("an assumption of the call was not yet confirmed")
        return kept

    def sweep(self) -> None:
        self.engine.run(self.sql["lock leftovers"])
        super().sweep()

    # --- guarded changes

    def take_away(self, queue: int, count: int) -> Sequence[tuple[Any, ...]]:
        run = self.engine.run
        found: Sequence[tuple[Any, ...]]
        if self._together.queue == queue and self.engine.withdraw():
            if count == 1:
                found = self._take_one("get and remove one together as known", synchronously=True)
            else:
                found = self._found_as_known("get and remove together as known", (queue, count, *self._given[1:]))
        elif count == 1 and self._together.queue is None:
            is_known = self.engine.holds_back and self._given[0] == queue and self._given[3]
            if is_known and not self.noted[queue] & FRONTS and self.engine.withdraw():
                found = self._take_one("get and remove one as known", synchronously=self._is_in_nobodys_way())
            else:
                found = run(self.sql["get and remove one"], (queue,)).fetchall()
        else:
            found = super().take_away(queue, count)
        self._gone = {**self._gone, queue: self._gone.get(queue, 0) + len(found)}
        return found

    def _take_one(self, name: str, *, synchronously: bool) -> Sequence[tuple[Any, ...]]:
        """Takes a message by a statement that also does the held-back work, and makes the commit synchronous if the
        message is persistent.
        """
        level = self.engine.commits_at(synchronously)
        found = self._found_as_known(name, (*self._given, level))
        if not (found and found[0][GOT_PERSISTENT]):
            self.engine.commits_at(False)
        return found

    def _found_as_known(self, name: str, values: Sequence[Any]) -> Sequence[tuple[Any, ...]]:
        """Raises: SerializationFailure, if the queue is not as it was guessed."""
        answer = self.engine.run(self.sql[name], values)
        self._known.told(self._given[0], answer)
        return answer.fetchall()

    def change(self, sql: str, values: Any, expected: int = 1) -> None:
        """The server checks the number of rows and fails if it is wrong, so the answer is not awaited."""
        self.engine.run(counted(sql, len(values) + 1), (*values, expected))

    def insert(self, name: str, values: Sequence[Any]) -> None:
        """Inserts arrays, one for each column: a statement with few parameters is parsed fast, however many rows there
        are.
        """
        sql = self.sql[name]
        width = len(in_arrays(sql).kinds)
        columns = [values[column::width] for column in range(width)]
        count = len(columns[0])
        alike = all(columns[nth].count(columns[nth][0]) == count for nth in alike_in(sql)) if count else False
        block = in_arrays(sql, appends=self._appends and name in ARRIVALS, alike=alike)
        for begin in range(0, count, INSERTED_MAX):
            self._insert(block, [column[begin : begin + INSERTED_MAX] for column in columns])
            self.engine.link.pipeline.send()  # the server works on these while the next are packed

    def _insert(self, block: RowsInsert, columns: Sequence[Sequence[Any]]) -> None:
        given = [
            column[0] if kind is None else array(column, kind)
            for column, kind in zip(columns, block.kinds, strict=True)
        ]
        half = len(columns[0]) // 2
        if half and sum(len(one) for one, kind in zip(given, block.kinds, strict=True) if kind) > INSERTED_BYTES:
            self._insert(block, [column[:half] for column in columns])
            self._insert(block, [column[half:] for column in columns])
        else:
            self.engine.run(block.text, given)

    def restart_unit(self, unit: int, now: float) -> None:
        """Harmless if the record is missing, so it can follow the held-back statement, which may become a put."""
        self._restarts = now, unit
        if not self.engine.holds_back:
            self._restart()

    def _restart(self) -> StatementResult | None:
        values, self._restarts = self._restarts, None
        return None if values is None else self.engine.run(counted(self.sql["restart unit"], 3), (*values, 1))

    # --- locks

    def state(self, queue: int) -> QueueState | None:
        found = self._come(queue)
        gets = self._kind.together and not self._kind.feeds
        if found is not None and (gets or self.noted[queue] & FRONTS):
            self._search_from_front(queue, gets=gets)
        return found

    def _come(self, queue: int) -> QueueState | None:
        kind = self._kind
        if self._locked and kind.writes and queue not in self._locked and self._is_out_of_order(queue):
            self._lock_at_once("lock queues at once", self.engine.array([queue]))
        may_share = partial(self._may_share, queue)
        if queue not in self._in_vain and queue not in self._asked:
            looks = not (self._looks + 1) % LOOKED_FOR  # as the next operation does, in `SqlBackend.state`
            guess = self._known.guess(queue, looks=looks, may_share=may_share)
            if guess is not None:
                return self._taken(queue, guess)
        if not kind.writes:
            found = super().state(queue)
        elif kind.beside:
            if queue in self._in_vain:  # a statement that looks for more sees the state before the wait for the lock
                self.engine.run(self.sql["lock queue beside"], (queue,))
            found = super().state(queue)
        elif may_share():
            found = self._come_together(queue)
        else:
            found = self._lock(queue)
        if found is not None:
            self._heed_stop(found.revision == STOPPED)
        return found

    def check_certain(self, queue: int) -> None:
        if self._known.appends(queue):
            raise Passing("an assumption of the verb is not confirmed")

    def _search_from_front(self, queue: int, *, gets: bool) -> None:
        """Decides how an operation searches a queue, and whether it measures how far the search goes."""
        has_fronts, goes_without = self.noted[queue] & FRONTS, False
        if self._together.queue is not None:
            if has_fronts:
                self.engine.restrict(TOGETHER_AFTER_FRONTS)
            if gets and self._fronts.count(queue) >= TOGETHER_A_LOOK:
                self._together.lock_next(queue, feeds=False)
            return
        if gets and self._fronts.count(queue) >= GETS_A_LOOK:
            goes_without = self._fronts.look(queue)
            self._look = queue, self.engine.run(self.sql["index entries read"])
        if has_fronts:
            if self._kind.writes:
                self.engine.follow_fronts()
            if not goes_without:
                self._from_fronts.add(queue)
                self.engine.substitute(AFTER_FRONTS)

    def _end_look(self, queue: int, before: StatementResult, taken: int) -> None:
        """Measures how many index entries a get has read, and sets or deletes the queue's fronts."""
        ((after,),) = self.engine.run(self.sql["index entries read"]).fetchall()
        is_far = after - before.fetchall()[0][0] > ENTRIES_MAX + 2 * taken
        if is_far:
            self.engine.run(self.sql["set fronts"], (queue,))
            self.noted[queue] |= FRONTS
        elif self.noted[queue] & FRONTS and queue not in self._from_fronts:
            self.engine.run(self.sql["delete fronts"], (queue,))
            self.noted[queue] &= ~FRONTS

    def open(self, queue: int, after: Place, chosen: Selection, heads: Heads) -> Iterator[QueuedMessage]:
        if queue not in self._from_fronts or chosen.one:
            return super().open(queue, after, chosen, heads)
        sql = ordered(self.sql["available by place after fronts"], chosen, self._there(queue, heads))
        return self.paged(queue, sql, chosen, after)

    def read(self, rows: Sequence[QueuedMessage], most: int | None = None) -> Sequence[QueuedMessage]:
        if most is not None or len(rows) < 2:
            return super().read(rows, most)
        asked = [self.engine.run(self.sql["message by number"], (row.number,)) for row in rows]  # all in one round trip
        return [row._replace(message=self.full(row.number, one)) for row, one in zip(rows, asked, strict=True)]

    def _may_share(self, queue: int) -> bool:
        return self._kind.together and self._together.may_come(queue, feeds=self._kind.feeds)

    def _taken(self, queue: int, guess: Guess) -> QueueState:
        """Returns the guess about a queue, which the server will confirm or refuse."""
        state, attention, _, is_shared, appends = guess
        self._looks += attention & ~FRONTS != 0
        self._is_first = self.engine.link.last is None and not self.engine.holds_back
        given: Sequence[int] = (queue, state.revision, attention, state.depth)
        self.noted[queue] = attention
        if is_shared:
            self._together.queue = queue
            self.engine.run(self.sql["enter unordered queue"], (queue,))
            self.engine.restrict(STATEMENTS_TOGETHER)
        else:
            self._locked.add(queue)
        name = "queue state together" if is_shared else "queue state"
        if not appends:
            given = given[:3] if is_shared else (*given, state.counter, state.reserved)
        self._given = given
        asked = f"{name} to append" if appends else f"{name} as known"
        self.engine.hold_back(partial(self._ask, queue, asked, given))
        if attention & GROUPS and not self.engine.has_triggers:
            self.engine.follow_groups()
        return state

    def _ask(self, queue: int, name: str, given: Sequence[Any]) -> None:
        """Asks the server whether a queue is as guessed."""
        self._known.told(queue, self.engine.run(self.sql[name], given))
        self._restart()

    def arrive_whole(self, name: str, values: Sequence[Any]) -> None:
        if self._is_whole and self.engine.withdraw():
            queue = self._given[0]
            self._whole.add(queue)
            puts = PUTS if self._together.queue is None else PUTS_TOGETHER
            level = self.engine.commits_at(self._is_kept and self._is_in_nobodys_way())
            answer = self.engine.run(puts[name], (*self._given, *values, level))
            self._known.told(queue, answer)
            self._only = (self._restart() or answer) if self._is_first else None
        else:
            super().arrive_whole(name, values)

    def _come_together(self, queue: int) -> QueueState:
        """Reads the queue without locking it. No operation locks it until this one ends. A put also draws a number."""
        run, feeds = self.engine.run, self._kind.feeds
        self._together.queue = queue
        run(self.sql["enter unordered queue"], (queue,))
        self.engine.restrict(STATEMENTS_TOGETHER)
        if feeds:
            answer = run(self.sql["draw places"], (queue, 1))
        else:
            answer = run(self.sql["unordered queues"], (self.engine.array([queue]),))
        self.here = "queue state together"
        found, answers = super().state(queue), answer.fetchall()
        if found is None or not answers:
            self._together.forget(queue)
            raise Passing("the queue keeps its order now, or is gone")
        if self.noted[queue] & ~GRANTED:
            raise Passing("the queue has messages or conditions that plain puts and gets do not support")
        if not self.noted[queue] & ~(FRONTS | HEARD):
            self._known.see(queue, found, self.noted[queue], is_shared=True)
        if feeds:
            ((first, reserved),) = answers
            found = found._replace(counter=first - 1, reserved=reserved)
        return found

    def _lock(self, queue: int) -> QueueState | None:
        """Reads and locks the queue; no other operation changes it until this one ends."""
        if queue in self._in_vain:
            self._lock_queues([queue])
            unordered = self.engine.run(self.sql["unordered queues"], (self.engine.array([queue]),))
            found, keeps_order = super().state(queue), not unordered.fetchall()
        else:
            keeps_order, found = self._together.knows(queue), None
            for _ in range(3):  # its kind may change before the lock, but not after it
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
        """Locks the queue as one that keeps its order, or as one that keeps none."""
        self.here = "queue state locked"
        if not keeps_order:
            self._lock_queues([queue])
            self.here = "queue state together"
        self.asked = self._asked.pop(queue, None)
        found = super().state(queue)
        self.asked = None
        if found is not None:
            self._locked.add(queue)
        return found

    def shares(self, unit: int, *, locked: bool = False) -> Sequence[Share]:
        if self._kind.writes:
            queues = [queue for (queue,) in self.engine.run(self.sql["queues of unit"], (unit,))]
            self._lock_queues(queues)
            for queue in queues:  # sent with the next statement, without a separate round trip
                if queue not in self.noted and queue not in self._in_vain:
                    name = "queue state together" if self._together.knows(queue) else "queue state locked"
                    self._asked[queue] = self.engine.run(self.sql[name], (queue,))
        return super().shares(unit, locked=locked)

    def _lock_queues(self, queues: Sequence[int]) -> None:
        missing = sorted(set(queues) - self._locked)
        if missing:
            named = (self.engine.array(missing),)
            if self._is_out_of_order(missing[0]):
                self._lock_at_once("lock queues at once", *named)
            self.engine.run(self.sql["lock queues"], named)  # operations that are together wait for no others
            self._locked.update(missing)

    def _lock_at_once(self, name: str, *values: Any) -> None:
        """Raises: LockNotAvailable, if another transaction has one of the locks."""
        if self.value(self.sql[name], *values):
            raise errors.LockNotAvailable("a queue is locked by others, and was to be locked out of order")

    def _is_out_of_order(self, queue: int) -> bool:
        """Whether a queue with a higher number is already locked.

        In the order of their numbers, two transactions never wait for each other. Out of order an operation does not
        wait: if another has the lock, the operation is run again, and locks all queues first.
        """
        return not (self._has_all or self._kind.beside) and max(self._locked, default=queue) > queue

    def clear(self, queue: int) -> None:
        self.engine.run(self.sql["lock queue alone"], (queue,))  # the queue may be about to be deleted
        super().clear(queue)

    def hold_stagings(self, names: Collection[str], *, begins: bool) -> None:
        held = self.value(self.sql["lock stagings"], self.engine.array(list(names)))
        if begins and held < len(names):
            for name in names:
                self.engine.run(self.sql["lock staging name"], (name,))
            self.value(self.sql["lock stagings"], self.engine.array(list(names)))

    def arrive(
        self,
        queue: SearchedQueue,
        rows: Sequence[Row],
        state: State,
        first_number: int | None,
        unit: int | None,
        now: float,
    ) -> bool:
        is_shared, appends = self._together.queue is not None, self._known.appends(queue.id)
        is_held = appends and self.engine.holds_back and self._given[0] == queue.id
        self._is_whole = is_held and len(rows) == 1 and first_number is not None
        if is_shared and first_number and not self._is_whole:
            reserved = queue.state.reserved
            if len(rows) > 1 or appends:
                ((first_number, reserved),) = self.engine.run(self.sql["draw places"], (queue.id, len(rows))).fetchall()
            if first_number + len(rows) > reserved + 1:
                self._together.lock_next(queue.id, feeds=True)
                raise Passing("more numbers are to be reserved")
        self._appends = appends and not is_shared
        if self._appends and is_held and len(rows) > 1 and self._known.is_alone([queue.id]):
            self.engine.run_held_back()  # the server works while rows are packed; with others active
            self._known.ask(queue.id, self.engine.link.pipeline)  # that would hold the lock as long
        if self._appends and first_number is not None:
            first_number -= queue.id in self._whole  # the server adds a counter that already includes that message
        self._is_kept = bool(rows[0][PERSISTENT]) and unit is None
        self.arrivals = APPENDED if self._appends else ARRIVALS
        if first_number is not None:
            self._known.place(queue.id, len(rows))
        asks = super().arrive(queue, rows, state, first_number, unit, now)
        self._appends = False
        return asks

    def save(self, record: Any) -> None:
        if type(record) is WaitRow and record.levels is not None:
            self.engine.run(self.sql["lock waits"])
        super().save(record)
        if type(record) is DefinitionRow and record.type == "local":
            self._note_order(record.id, keeps_order=queue_of(record.attributes).read_order != "unordered")

    def revise(self, queues: Collection[int] | None) -> None:
        if queues is not None:
            self._lock_queues(list(queues))
        elif self._locked and not self._has_all:
            self._lock_at_once("lock all at once")
        super().revise(queues)

    def _note_order(self, queue: int, *, keeps_order: bool) -> None:
        """Records whether the queue keeps its order; no other operation uses the queue while this changes."""
        kept_order = not self.engine.run(self.sql["unordered queues"], (self.engine.array([queue]),)).fetchall()
        if kept_order is not keeps_order:
            self._lock_queues([queue])
            self.change(self.sql["set order of queue"], (queue, int(not keeps_order)))
