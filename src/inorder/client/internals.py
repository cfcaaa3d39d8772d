"""`qm.internals`: calls of a connection for other parts of this package.

Programs do not use them: they may change in any release. Workers, the server, Spark and `inorder.aio` do.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from ..model.message import Got
from ..model.options import (
    GetOptions,
    OpenOptions,
    check_instance,
)
from ..model.parameters import Choice
from ..stores.seam.protocol import Promises
from ..support.callers import anyone
from ..support.clock import Clock
from .by_name import by_name
from .events import check_callable
from .namespace import Namespace
from .queue import Queue
from .session import Session
from .unit_of_work import later_of

if TYPE_CHECKING:
    from ..rules.history import HistoryPoint, Period


class Internals(Namespace):
    """Calls of a connection for other parts of this package, `qm.internals`."""

    # --- the connection

    @property
    def owner(self) -> int:
        """The connection's number in the store."""
        return self._session.owner

    def abandon(self) -> None:
        """Ends the connection as if the program had died: an open unit of work is backed out."""
        self._session.end()

    def stay_here(self) -> None:
        """Makes calls on synchronous remote queues raise SynchronousQueue 2045 from now on.

        A server works for its users, who must not act at other queue managers with the rights of its account (P-3).
        """
        self._session.stays_here = True

    def shared(self) -> Session:
        """Makes the unit of work belong to the connection, whichever thread or task calls; returns the session.

        The calls must take turns: a second one at the same time still gets CallInProgress 2219.
        """
        self._session.caller = anyone
        return self._session

    def end_with(self, one: object) -> None:
        """Ends the connection when `one` is dropped."""
        self._session.services.forget_with(one, self._session.owner)

    def give_up(self, *, delay: float = 0, error: str = "") -> None:
        """Ends the connection of a function that has run for too long; another thread calls this.

        It backs out the unit of work as `back_out` does with this delay and error. Later calls through the connection
        raise ConnectionClosed 2018.

        Raises: ArgumentError, as `back_out`.
        """
        self._session.end(later_of(delay, error))

    @property
    def is_over(self) -> bool:
        """Whether the connection has ended."""
        return self._session.closed

    @property
    def is_idle(self) -> bool:
        """Whether another caller may use the connection: it has no unit of work, queue, group or cursor open.

        Idle default handles and queues for replies do not count.
        """
        if self._session.closed:
            return True
        return not self.has_unit and not self._open_handles()

    @property
    def has_unit(self) -> bool:
        """Whether it has a unit of work, or the open block of one that holds nothing yet."""
        return self._session.block is not None or self._session.has_unit

    def _open_handles(self) -> Collection[Queue]:
        by_name, replies = (set(map(id, one.values())) for one in (self._manager._queues, self._manager._reply_queues))
        handles = [one for one in self._session.handles() if id(one) not in replies]
        return [one for one in handles if one.internals.number and not (id(one) in by_name and one.internals.is_idle)]

    def close_all_but(self, kept: Collection[Queue]) -> None:
        """Closes all open queues but these and unused default handles, and so ends loops and groups."""
        for one in self._open_handles():
            if one not in kept:
                one.close()

    @property
    def has_queues(self) -> bool:
        """Whether calls by name have left queues open."""
        return bool(self._manager._queues)

    def close_unused_queues(self) -> None:
        """Closes idle default handles that were not used since the previous call of `close_unused_queues`.

        A server uses it so that it does not keep unused queues open. The next call by name opens them again.
        """
        for name, queue in list(self._manager._queues.items()):
            if queue.internals.is_idle and not queue.was_used:
                self._manager._close_default(name)
            queue.was_used = False

    def open_growing(self, name: str, options: OpenOptions, *, manager: str = "") -> Queue:
        """Opens a handle that later calls may extend to further uses, as default handles."""
        check_instance("options", options, OpenOptions, "OpenOptions")
        return self._manager._open(name, options, grows=True, manager=manager).internals.given()

    # --- the history of queues

    def sample(self) -> int:
        """Adds the counts of all queues to the store's history; see `LocalStore.sample`."""
        with self._session:
            return self._session.services.store.sample()

    def history(self, queue: str, period: Period) -> list[HistoryPoint]:
        """The samples of a queue in the last hour, day or week; see `LocalStore.history`. Raises: ArgumentError."""
        (found,) = self.histories([queue], period)
        return found

    def histories(self, queues: Sequence[str], period: Period) -> list[list[HistoryPoint]]:
        """The same of several queues at once."""
        from ..rules.history import RINGS  # noqa: PLC0415 - few programs need it

        Choice(RINGS).check("period", period)
        with self._session:
            return self._session.services.store.history(queues, period)

    # --- calls

    @by_name
    def get_if(self, queue: str, accepts: Callable[[Got], object], options: GetOptions | None = None) -> Got:
        """Gets a message, unless `accepts` raises: then the message stays in place and its counts do not change.

        Args:
            accepts: called with the message just before the get takes effect, and again if the get has to be repeated.
                No other call can put or get meanwhile, so it must be quick, must not wait, and must not call this queue
                manager.
            options: as in `get`.

        Returns: the message, removed or in the unit of work as in `get`.

        Raises: the exception of `accepts`; as `get`. ArgumentError, `accepts` is not callable.
        """
        return self._manager._default(queue).internals.get_if(accepts, options)

    def watch(self, queue: str, changed: Callable[[], object]) -> None:
        """Calls `changed` whenever a get that found nothing may find a message now; see `LocalStore.watch`.

        It uses the connection until `end_waits`, the end of the connection, or an exception from `changed`.

        Raises: UnknownQueue 2085, WrongQueueType 2057; ArgumentError, `changed` is not callable. WaitEnded;
        ConnectionBroken; QueueDeleted 2052, the queue was deleted.
        """
        check_callable(changed)
        self._manager._check_no_model(queue)
        with self._manager.open(queue, browse=True) as handle, (session := handle.internals.session):
            session.services.store.watch(handle.internals.number, changed)

    def promises(self) -> Promises:
        """Lets one sync serve several calls that a thread makes for others.

        Inside `with promises:` calls of this thread on this store return before their effect is on disk.
        `promises.keep()` then writes it to disk. Pass no result on before that.
        """
        return self._session.services.store.promises()

    def tell(self, event: str, measurements: Mapping[str, float], metadata: Mapping[str, object]) -> None:
        """Reports to the observers of this store an event that is not a call on it."""
        self._session.services.telemetry.report(event, measurements, metadata)

    @property
    def is_observed(self) -> bool:
        """Whether `tell` has an observer."""
        return self._session.services.telemetry.is_observed

    @property
    def clock(self) -> Clock:
        """The clock that waits use."""
        return self._session.services.store.clock
