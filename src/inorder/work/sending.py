"""A task as its module sees it: a function to call, or to put on its queue with arguments.

    pack.put(order_id=17, delay=60)
    await pack.put_async(order_id=17)

A put joins the unit of work that this thread or asyncio task has open, on any connection. So a message that
a task puts is sent if and only if the task is done. Without a unit of work the tasks' own store is used, with a
connection for each thread, and one of asyncio's for each loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, Generic, ParamSpec, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from ..client.manager import QueueManager, connect
from ..client.unit_of_work import current_unit
from ..errors import (
    IN_MEMORY,
    CallerError,
    ConnectionBroken,
    ConnectionClosed,
    NotAuthorized,
    OutcomeUnknown,
    UnknownQueue,
    bad_argument,
)
from ..model.fields import EXPIRY_SECONDS_MAX
from ..model.kinds import Report
from ..model.message import Message, MessageType
from ..model.parameters import Seconds
from ..rules.puts import PutResult
from ..rules.retries import KEEP
from ..support import forks
from ..support.advice import check_store_name
from .arguments import TaskArguments
from .creating import DEFAULT_QUEUE, create_queue, put_made
from .job import Job
from .limits import KEY, Limit, key_of
from .results import RESULTS

if TYPE_CHECKING:
    from .. import aio

P = ParamSpec("P")
R = TypeVar("R")
TASK: Final = "task"  # the property of a message with the name of its task
KEPT: Final = Seconds(0.1, EXPIRY_SECONDS_MAX)  # how long a result may be kept
ABOUT_EXPIRY: Final = Report.EXPIRATION | Report.PASS_DISCARD_AND_EXPIRY  # a report of it, which expires too
LOST: Final = (ConnectionBroken, ConnectionClosed, OutcomeUnknown)
ELSEWHERE: Final = ("delay", "apply_async", "send", "send_with_options", "enqueue", "insert")


class OwnConnections:
    """The connections to the store that a `Tasks` names.

    Args:
        store: as for `inorder.connect`; None: there is none.
    """

    def __init__(self, store: str | os.PathLike[str] | None) -> None:
        if store is not None:
            check_store_name(store)
            if not isinstance(store, str | os.PathLike) or store == IN_MEMORY:
                raise bad_argument("store", store, "a path or a URL; a store in memory has no second connection")
        self._store, self._here = store, threading.local()
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, aio.QueueManager] = WeakKeyDictionary()
        self._eager: tuple[QueueManager, Callable[[], object]] | None = None

    @contextlib.contextmanager
    def eagerly(self, qm: QueueManager, drain: Callable[[], object]) -> Iterator[None]:
        """In the block, this is the connection, and each put outside of a unit of work is followed by `drain`."""
        before, self._eager = self._eager, (qm, drain)
        try:
            yield
        finally:
            self._eager = before

    def sent(self, qm: object) -> None:
        """Notes that a message was put, outside of any unit of work."""
        if self._eager is not None and qm is self._eager[0]:
            self._eager[1]()

    def here(self) -> QueueManager:
        """This thread's connection. Raises CallerError without a store; as `inorder.connect`."""
        if self._eager is not None:
            return self._eager[0]
        qm: QueueManager | None = getattr(self._here, "qm", None)
        if qm is None or self._here.life is not forks.current:
            qm = self._here.qm = self._connect()
            self._here.life = forks.current
        return qm

    def drop(self) -> None:
        """Forgets this thread's connection, which is lost: the next call makes another one."""
        self._here.qm = None

    def in_loop(self) -> aio.QueueManager:
        """The connections of the running loop. Raises CallerError without a store, and in `eagerly`."""
        from .. import aio  # noqa: PLC0415 - only programs with asyncio load it

        if self._eager is not None:  # the store must not get the messages of a test
            raise CallerError("in tasks.eager() a call of asyncio needs qm=QUEUE_MANAGER, or a unit of work")
        if self._store is None:
            raise self._without_store()
        loop = asyncio.get_running_loop()
        qm = self._loops.get(loop)
        if qm is None:
            qm = self._loops[loop] = aio.QueueManager(self._connect, aio.manager.CONNECTIONS)
        return qm

    def _connect(self) -> QueueManager:
        if self._store is None:
            raise self._without_store()
        return connect(self._store)

    def _without_store(self) -> CallerError:
        return CallerError(
            "a task is put in a unit of work (with qm.unit_of_work(): ...), with qm=QUEUE_MANAGER, or to the store of "
            'its tasks, as Tasks("shop.db") names it: here is none of these'
        )


class TaskFunction(Generic[P, R]):
    """A function with arguments that was registered as a task; made by `Tasks.task`.

    Calling it calls the function, here and now. `put` and `put_async` send it to a worker.

    Attributes:
        name: the name of the task, which its messages have in the property `task`.
        queue: the queue of its messages.
        function: the function itself.
    """

    def __init__(
        self,
        function: Callable[P, R],
        name: str,
        queue: str,
        arguments: TaskArguments,
        own: OwnConnections,
        *,
        keep: float | None = None,
        limits: tuple[Limit, ...] = (),
    ) -> None:
        functools.update_wrapper(self, function)
        self.name, self.queue, self.function = name, queue, function
        self._arguments, self._own, self._keep = arguments, own, keep
        self._key = next((one.key for one in limits if one.key is not None), None)

    def __call__(self, *given: P.args, **named: P.kwargs) -> R:
        return self.function(*given, **named)

    def message(self, *given: Any, **named: Any) -> Message:
        """Makes the message of a call: for `put_many`, for groups, and for schedules.

        Its body is a JSON object with the arguments by name; its format is MQSTR. The property `task` has the name.

        Raises ArgumentError if the arguments do not match the annotations of the function.
        """
        return self._message(given, named, self._keep)

    def _message(self, given: tuple[Any, ...], named: dict[str, Any], keep: float | None) -> Message:
        body, properties = self._arguments.encode(given, named), dict[str, Any]({TASK: self.name})
        if self._key is not None:
            properties[KEY] = key_of(self._key, body, self._arguments.default_of(self._key))
        if keep is None:
            return Message(body, format="MQSTR", coded_character_set_id=1208, properties=properties)
        return Message(
            body,
            format="MQSTR",
            coded_character_set_id=1208,
            message_type=MessageType.REQUEST,
            reply_to_queue=RESULTS,
            report=ABOUT_EXPIRY,
            properties={**properties, KEEP: KEPT.check("keep", keep)},
        )

    def put(
        self,
        *given: Any,
        qm: QueueManager | None = None,
        delay: float | None = None,
        expiry: float | None = None,
        priority: int | None = None,
        deduplicate: str | None = None,
        keep: float | None = None,
        **named: Any,
    ) -> Job:
        """Sends a call to a worker: puts a message with the arguments on the task's queue.

        Args:
            *given, **named: the arguments of the function.
            qm: the connection; None: the connection of the unit of work which this thread or asyncio task has open,
                otherwise the store of the tasks.
            delay: seconds before the call may begin.
            expiry: seconds after which the message is discarded if the call has not begun.
            priority: 0 to 9.
            deduplicate: a key; a second put under it puts nothing.
            keep: seconds for which the result, or the errors, can be asked for after the end, 0.1 to 99,999,999.9;
                None: as the task says, which by default keeps nothing.

        Returns: the job; its `id` is the id of its message, which is in the worker's log.

        Raises ArgumentError if the arguments do not match the annotations of the function; CallerError without a
        connection; otherwise as `QueueManager.put`.
        """
        message = self._message(given, named, self._keep if keep is None else keep)
        options = _given(delay, expiry, priority, deduplicate)
        unit = None if qm is not None else current_unit()
        manager = qm or (self._own.here() if unit is None else unit.manager)
        if not isinstance(manager, QueueManager):
            raise CallerError(f"the open unit of work is one of asyncio: await {self.name}.put_async(...)")
        try:
            put = self._put(manager, message, options)
        except LOST:
            if qm is None and unit is None:
                self._own.drop()
            raise
        if unit is None:
            self._own.sent(manager)
        return self._job(put, manager if qm is not None or unit is not None else None, expiry)

    def job(self, message_id: bytes | str) -> Job:
        """The job with this id, the id of its message: bytes, or `Job.id`. Nothing is looked up yet."""
        return Job(message_id, self.queue, self._own)

    def _job(self, put: PutResult, manager: QueueManager | aio.QueueManager | None, expiry: float | None) -> Job:
        expires_at = None if expiry is None or expiry == math.inf else time.time() + expiry
        return Job(put.message_id, self.queue, self._own, manager=manager, put=put, expires_at=expires_at)

    def _put(self, qm: QueueManager, message: Message, options: dict[str, Any]) -> PutResult:
        if _lacks_results(qm, message, options):
            _create_results(qm)
            _with_results.add(qm)
        if self.queue == DEFAULT_QUEUE:
            return put_made(qm, self.queue, message, **options)
        return qm.put(self.queue, message, **options)

    async def put_async(
        self,
        *given: Any,
        qm: aio.QueueManager | None = None,
        delay: float | None = None,
        expiry: float | None = None,
        priority: int | None = None,
        deduplicate: str | None = None,
        keep: float | None = None,
        **named: Any,
    ) -> Job:
        """Sends a call to a worker, as `put`, without blocking the loop. Args, Returns, Raises: as `put`.

        A cancel before the put has begun revokes it; otherwise the put is finished.
        """
        message = self._message(given, named, self._keep if keep is None else keep)
        options = _given(delay, expiry, priority, deduplicate)
        unit = None if qm is not None else current_unit()
        manager = qm or (self._own.in_loop() if unit is None else unit.manager)
        there = manager if qm is not None or unit is not None else None
        if isinstance(manager, QueueManager):  # the task has opened a unit of work that blocks
            return self._job(self._put(manager, message, options), there, expiry)
        if _lacks_results(manager, message, options):
            await manager.run(_create_results)
            _with_results.add(manager)
        try:
            put: PutResult = await manager.put(self.queue, message, **options)
        except UnknownQueue:
            if self.queue != DEFAULT_QUEUE:
                raise
            await manager.run(create_queue)
            put = await manager.put(self.queue, message, **options)
        return self._job(put, there, expiry)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            advice = ": send it with TASK.put(...), which takes delay= and priority=, too" if name in ELSEWHERE else ""
            raise AttributeError(f"a task has no attribute {name}{advice}")

    def __repr__(self) -> str:
        return f"<task {self.name} of {self.queue}>"


_with_results: WeakSet[object] = WeakSet()  # connections that have looked for RESULTS


def _lacks_results(manager: object, message: Message, options: dict[str, Any]) -> bool:
    """Whether to look for RESULTS: a report is put there if the message expires, perhaps before a worker has made that
    queue.
    """
    return "expiry" in options and message.reply_to_queue == RESULTS and manager not in _with_results


def _create_results(qm: QueueManager) -> None:
    """Creates RESULTS if it does not exist and the user may create queues."""
    with contextlib.suppress(NotAuthorized):
        create_queue(qm, RESULTS)


def _given(delay: float | None, expiry: float | None, priority: int | None, deduplicate: str | None) -> dict[str, Any]:
    options = {"delay": delay, "expiry": expiry, "priority": priority, "deduplicate": deduplicate}
    return {name: value for name, value in options.items() if value is not None}
