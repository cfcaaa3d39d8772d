"""Opens the store in a process of Spark: its own connection, for as long as a call needs it.

Every process opens the store itself: the planner beside the driver, and each Python worker of each executor. None uses
an inherited connection, and a task's connection ends with the task. Connecting to a server takes some 50 ms, longer
than a small task, so an idle worker keeps that connection for the next task, for some seconds at most.

Work that has begun waits for a server of inorder that restarts, as an open connection does. Checks of options do not
wait: a wrong address is an error at once.
"""

from __future__ import annotations

import os
import platform
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import NamedTuple, TypeVar

from ..client.manager import QueueManager, connect
from ..errors import InorderError, OptionsError, QueueCondition, Reason, StoreError, WrongQueueType
from ..model.attributes import QueueAttributes
from ..stores.open import OverNetwork, locate

PROGRAM = "inorder.spark"
ON_ONE_MACHINE = (
    "a store in a file is used on one machine, by all of its processes; run Spark there (master local[*], or a cluster "
    "on that machine), or start inorder serve there and give its URL, or have the store in PostgreSQL"
)
IDLE_SECONDS = 3.0
LIFE_SECONDS = 60.0  # then it is closed, which tidies the store, and the next task opens another
RESTART_SECONDS = 30.0  # for a server to listen again, while work waits
AGAIN_SECONDS = 0.25  # between two attempts
THREADS_MAX = 8  # stores that are asked at the same time: each waits for its own disk or server

T = TypeVar("T")


def open_store(url: str, application: str = "") -> QueueManager:
    """Opens a connection to a store, which must exist: readers and writers do not create one.

    Raises StoreError and its subclasses if it does not exist, or cannot be opened: on which machine, and what to do.
    """
    where = locate(url)
    if not where.is_there(PROGRAM):
        kind, seen, elsewhere = "path", " on", f". If the file is on another machine: {ON_ONE_MACHINE}"
        if where.path is None:
            kind, seen, elsewhere = "URL", ", seen from", ""
        raise StoreError(
            f"there is no store at {where}{seen} {platform.node()}. If the {kind} is right, create the queue manager "
            f"first with inorder.connect({str(where)!r}){elsewhere}",
            path=str(where),
        )
    return connect(url, program=f"{PROGRAM} {application}".strip())


def open_though_restarting(url: str, application: str) -> QueueManager:
    """As `open_store`, but waits up to 30 s for a server of inorder that cannot be reached."""
    until = time.monotonic() + RESTART_SECONDS
    while True:
        try:
            return open_store(url, application)
        except StoreError:
            if not OverNetwork.is_named_by(url) or time.monotonic() >= until:
                raise
        time.sleep(AGAIN_SECONDS)


def side_by_side(urls: Sequence[str], work: Callable[[str], T]) -> dict[str, T]:
    """Does the same at several stores, each in a separate thread. Raises the first error when all have ended."""
    if len(urls) < 2:
        return {url: work(url) for url in urls}
    with ThreadPoolExecutor(min(len(urls), THREADS_MAX), thread_name_prefix="inorder-stores") as pool:
        return dict(zip(urls, pool.map(work, urls), strict=True))


class Idle(NamedTuple):
    """An unused connection, and the timer that will close it."""

    qm: QueueManager
    opened_at: float
    closing: threading.Timer


_idle: dict[tuple[int, str, str], Idle] = {}  # by process (a child inherits this), url and application
_idle_lock = threading.Lock()


@contextmanager
def store_for_task(url: str, application: str = "", *, is_check: bool = False) -> Iterator[QueueManager]:
    """A connection for one piece of work, which closes everything opened there. Raises as `open_store`.

    Args:
        is_check: the work checks options before any other begins, so it does not wait for a server that restarts.
    """
    if locate(url).path is not None:
        with open_store(url, application) as qm:
            yield qm
        return
    key = os.getpid(), url, application
    opens = open_store if is_check else open_though_restarting
    qm, opened_at = _taken(key) or (opens(url, application), time.monotonic())
    try:
        yield qm
    except BaseException:
        qm.internals.abandon()
        raise
    if time.monotonic() - opened_at > LIFE_SECONDS:
        qm.close()
        return
    closing = threading.Timer(IDLE_SECONDS, _close, (key, qm))
    closing.daemon = True
    with _idle_lock:
        replaced, _idle[key] = _idle.get(key), Idle(qm, opened_at, closing)
    closing.start()
    if replaced is not None:  # two pieces of work at the same time, in threads
        replaced.qm.close()


def _taken(key: tuple[int, str, str]) -> tuple[QueueManager, float] | None:
    """The connection that was kept, if it still works."""
    with _idle_lock:
        kept = _idle.pop(key, None)
    if kept is None:
        return None
    kept.closing.cancel()
    try:
        kept.qm.admin.manager_attributes()
    except InorderError:  # the server has ended it meanwhile
        with suppress(InorderError):
            kept.qm.internals.abandon()
        return None
    return kept.qm, kept.opened_at


def _close(key: tuple[int, str, str], qm: QueueManager) -> None:
    """Closes a connection that was not used in time."""
    with _idle_lock:
        if key not in _idle or _idle[key].qm is not qm:
            return
        del _idle[key]
    with suppress(InorderError):
        qm.close()


def check_queue(qm: QueueManager, queue: str) -> QueueAttributes:
    """The local queue that a name leads to.

    Raises UnknownQueue with the most similar names; WrongQueueType for a model queue, which has no messages.
    """
    found = qm.attributes(queue)
    if found.type == "model":
        raise WrongQueueType(f"{queue} is a model queue, which has no messages: name a local queue or an alias")
    return qm.attributes(found.base_queue) if found.type == "alias" else found


def made_at(qm: QueueManager, queue: str) -> int:
    """The creation time of a local queue, in microseconds since 1970; it distinguishes queues of one name (B-41)."""
    return round(qm.inspect.status(queue).created_at * 1_000_000)


def two_copies(queue: str, one: str, other: str) -> OptionsError:
    """The error if the queues of one name in two stores have the same `made_at`."""
    return OptionsError(
        f"the queue {queue} of {one} and that of {other} were created at the same moment: option url names one store "
        "twice, or a store and its copy. Name each store once"
    )


def check_same(qm: QueueManager, queue: str, made: int) -> None:
    """Checks that a task has reached the queue for which its work was planned.

    Args:
        made: `made_at` of that queue.

    Raises QueueCondition 2041 if the path or URL leads to another store here, or the queue was created again meanwhile.
    """
    if made_at(qm, check_queue(qm, queue).name) != made:
        raise QueueCondition(
            f"on {platform.node()} the store's path or URL leads to another queue {queue} than the one for which this "
            "work was planned: it was deleted and created again meanwhile (plan the work again), or this is another "
            f"machine, with another file or another service of that name. If it is a file: {ON_ONE_MACHINE}",
            reason=Reason.OBJECT_CHANGED,
            queue=queue,
        )
