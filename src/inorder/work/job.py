"""A job as its sender sees it: its id, its status, its result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from ..client.manager import QueueManager
from ..errors import bad_argument
from ..model.options import Match
from ..model.parameters import ID_LENGTH, Seconds
from ..rules.puts import PutResult
from .creating import create_queue
from .results import JobPlace, JobStatus, result_of, status_of

if TYPE_CHECKING:
    from .. import aio

WAIT: Final = Seconds(0, 99_999_999.9)


class Connections(Protocol):
    """The connections for a job that was put without one."""

    def here(self) -> QueueManager: ...
    def in_loop(self) -> aio.QueueManager: ...


class Job:
    """A call of a task that was sent; made by `put` and `put_async` of a task, and by its `job`.

    Any program whose connection may browse the queues of the job and of the results can ask for them. A job that was
    put in a unit of work exists once that is committed.

    Attributes:
        message_id: the id of its message; `id` is the same as hexadecimal digits.
        queue: the queue of its task.
        put_result: the result of the put; None: made from an id.
    """

    def __init__(
        self,
        message_id: bytes | str,
        queue: str,
        own: Connections,
        *,
        manager: QueueManager | aio.QueueManager | None = None,
        put: PutResult | None = None,
        expires_at: float | None = None,
    ) -> None:
        self.message_id, self.queue, self.put_result = id_of(message_id), queue, put
        self._own, self._manager = own, manager
        self._place = JobPlace(self.message_id, queue, expires_at=expires_at)

    @property
    def id(self) -> str:
        """The id of its message, as 48 hexadecimal digits."""
        return self.message_id.hex()

    def status(self, *, qm: QueueManager | None = None) -> JobStatus:
        """Returns the present state of the job.

        Args:
            qm: a connection; None: the connection of the put, otherwise the store of the tasks.

        Raises: CallerError without a connection; as `Inspect.look`.
        """
        return status_of(self._connection(qm), self._place)

    def result(self, wait: float = 0, *, qm: QueueManager | None = None) -> Any:
        """Returns the function's result, as values of JSON: a tuple as a list, a dataclass as a dictionary.

        The result stays on its queue for the time of `keep`.

        Args:
            wait: seconds to wait for it, 0 to 99,999,999.9.
            qm: as in `status`.

        Raises: NoMessageAvailable 2033, if there is no result within that time: the text has the state. JobFailed 9082,
        if the job is dead, discarded or expired, or is done without a result: see `JobStatus.error`. As `status`.
        """
        WAIT.check("wait", wait)
        return result_of(self._connection(qm), self._place, wait)

    async def status_async(self, *, qm: aio.QueueManager | None = None) -> JobStatus:
        """As `status`, without blocking the loop."""
        return await self._loops(qm).run(lambda one: status_of(one, self._place))

    async def result_async(self, wait: float = 0, *, qm: aio.QueueManager | None = None) -> Any:
        """As `result`, without blocking the loop. While it waits, it uses no connection."""
        WAIT.check("wait", wait)
        there, place = self._loops(qm), self._place
        await there.run(lambda one: create_queue(one, place.results))
        match = Match(correlation_id=place.message_id)
        return await there.awaited(
            place.results, lambda: there.run(lambda one: result_of(one, place, 0)), wait=wait, match=match
        )

    def _connection(self, qm: QueueManager | None) -> QueueManager:
        if qm is not None:
            return qm
        return self._manager if isinstance(self._manager, QueueManager) else self._own.here()

    def _loops(self, qm: aio.QueueManager | None) -> aio.QueueManager:
        if qm is not None:
            return qm
        there = self._manager
        return self._own.in_loop() if there is None or isinstance(there, QueueManager) else there

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and (self.message_id, self.queue) == (other.message_id, other.queue)

    def __hash__(self) -> int:
        return hash((self.message_id, self.queue))

    def __repr__(self) -> str:
        return f"<job {self.id} of {self.queue}>"


def id_of(given: object) -> bytes:
    """A message id. Raises ArgumentError if it is not one."""
    try:
        found = bytes.fromhex(given) if isinstance(given, str) else given
    except ValueError:
        found = None
    if not isinstance(found, bytes) or len(found) != ID_LENGTH or not any(found):
        raise bad_argument(
            "message_id", given, "the id of a message: 24 bytes that are not all NUL, or 48 hexadecimal digits"
        )
    return found
