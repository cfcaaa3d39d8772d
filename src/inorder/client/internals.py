"""`qm.internals`: what other parts of this package need of a connection.

Programs do not call these: they may change with any version. They serve the doors: workers, the server, Spark, and
`inorder.aio`, whose tasks share a few connections.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from ..model.message import Got
from ..model.options import (
    GetOptions,
    OpenOptions,
    check_instance,
)
from ..stores.seam.protocol import Promises
from ..support.clock import Clock
from .by_name import by_name
from .events import check_callable
from .namespace import Namespace
from .queue import Queue
from .unit_of_work import later_of


class Internals(Namespace):
    """What other parts of this package need of a connection, `qm.internals`."""

    # --- the connection

    @property
    def owner(self) -> int:
        """The connection's number in the store."""
        return self._session.owner

    def abandon(self) -> None:
        """Ends the connection as if the program had died: an open unit of work is backed out."""
        self._session.end()

    def end_with(self, one: object) -> None:
        """When `one` is dropped the connection is forgotten, unless it has ended by then."""
        self._session.services.forget_with(one, self._session.owner)

    def give_up(self, *, delay: float = 0, error: str = "") -> None:
        """Ends the connection for a program that does not come to an end with its work; for another thread.

        Its unit of work is backed out as `back_out` does with this delay and error. Whatever the program does through
        the connection from then on raises ConnectionClosed 2018.

        Raises: ArgumentError, as `back_out`.
        """
        self._session.end(later_of(delay, error))

    @property
    def is_idle(self) -> bool:
        """Whether the next call may be another caller's: no unit of work, queue, group or cursor is open.

        Queues that calls by name have opened are left open, and so is one for replies.
        """
        if self._session.closed:
            return True
        has_unit = self._store.has_unit(self._session.owner)
        return self._session.block is None and not has_unit and not self._open_handles()

    def _open_handles(self) -> Collection[Queue]:
        by_name, replies = (set(map(id, one.values())) for one in (self._manager._queues, self._manager._reply_queues))
        handles = [one for one in self._session.handles() if id(one) not in replies]
        return [one for one in handles if one.internals.number and not (id(one) in by_name and one.internals.is_idle)]

    @property
    def has_queues(self) -> bool:
        """Whether calls by name have left queues open."""
        return bool(self._manager._queues)

    def close_unused_queues(self) -> None:
        """Closes the default handles that no call has used since this was called last, and that nobody would miss.

        So a program that serves many keeps no queue in use that nobody uses. The next call by name opens it again.
        """
        for name, queue in list(self._manager._queues.items()):
            if queue.internals.is_idle and not queue.was_used:
                self._manager._close_default(name)
            queue.was_used = False

    def open_growing(self, name: str, options: OpenOptions, *, manager: str = "") -> Queue:
        """A handle that is opened for more whenever a call needs it, as the default handles are."""
        check_instance("options", options, OpenOptions, "OpenOptions")
        return self._manager._open(name, options, grows=True, manager=manager).internals.given()

    # --- calls

    @by_name
    def get_if(self, queue: str, accepts: Callable[[Got], object], options: GetOptions | None = None) -> Got:
        """Gets a message, unless `accepts` refuses it: what that raises leaves the message where it was, uncounted.

        Args:
            accepts: called with the message just before the get has happened, and once more with what is found then if
                that has to be tried again. Nobody else can put or get meanwhile, so it must be quick, must not wait,
                and must make no call of this queue manager.
            options: as of `get`.

        Returns: the message. It is gone, or in the unit of work, as `get` says.

        Raises: what `accepts` raises; as `get`. ArgumentError, it cannot be called.
        """
        return self._manager._default(queue).internals.get_if(accepts, options)

    def watch(self, queue: str, changed: Callable[[], object]) -> None:
        """Calls `changed` whenever a get that found nothing on a queue may find something now; see `LocalStore.watch`.

        It occupies the connection until `end_waits`, the end of the connection, or what `changed` raises.

        Raises: UnknownQueue 2085, WrongQueueType 2057; ArgumentError, `changed` cannot be called. WaitEnded;
        ConnectionBroken; QueueDeleted 2052, the queue has gone.
        """
        check_callable(changed)
        self._manager._check_no_model(queue)
        with self._manager.open(queue, browse=True) as handle, self._session:
            self._session.services.store.watch(handle.internals.number, changed)

    def promises(self) -> Promises:
        """For calls that a thread makes for several others: what they promise goes to disk at once.

        Calls of this thread on this store return inside `with promises:` before what they promise is on disk, and
        `promises.keep()` brings it there. Nobody may be given an answer of theirs before.
        """
        return self._session.services.store.promises()

    def tell(self, event: str, measurements: Mapping[str, float], metadata: Mapping[str, object]) -> None:
        """Tells the observers of this store something that happened beside its calls."""
        self._session.services.telemetry.report(event, measurements, metadata)

    @property
    def is_observed(self) -> bool:
        """Whether anybody hears what `tell` says."""
        return self._session.services.telemetry.is_observed

    @property
    def clock(self) -> Clock:
        """The time that waits go by."""
        return self._session.services.store.clock
