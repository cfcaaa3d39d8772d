"""How a process of Spark comes to the store: its own connection, for as long as a call needs it.

Every process is a queue manager: the planner beside the driver, and each Python worker of each executor. None uses a
connection that it inherited, for each opens its own; and a task's ends with the task.
"""

from __future__ import annotations

import platform
from pathlib import Path

from ..attributes import QueueAttributes
from ..errors import QueueCondition, Reason, StoreError, WrongQueueType
from ..manager import QueueManager, connect

PROGRAM = "inorder.spark"


def open_store(url: str, application: str = "") -> QueueManager:
    """A connection to the store at a path; it must be there, for a reader or writer makes none.

    Raises: StoreError and its kin: it is not there, or cannot be opened, on which machine, and what to do.
    """
    if not Path(url).exists():
        raise StoreError(
            f"there is no store at {url} on {platform.node()}. If the path is right, make the queue manager first "
            f"with inorder.connect({url!r}). If the file is on another machine: a store is used on one machine, by all "
            "of its processes; run Spark there (master local[*], or a cluster on that machine)",
            path=url,
        )
    return connect(url, program=f"{PROGRAM} {application}".strip())


def check_queue(qm: QueueManager, queue: str) -> QueueAttributes:
    """The local queue behind a name.

    Raises: UnknownQueue with the nearest names; WrongQueueType, a model queue has no messages.
    """
    found = qm.attributes(queue)
    if found.type == "model":
        raise WrongQueueType(f"{queue} is a model queue, which has no messages: name a local queue or an alias")
    return qm.attributes(found.base_queue) if found.type == "alias" else found


def made_at(qm: QueueManager, queue: str) -> int:
    """When a local queue was made, in microseconds since 1970: another one of its name is another queue (B-41)."""
    return round(qm.status(queue).created_at * 1_000_000)


def check_same(qm: QueueManager, queue: str, made: int) -> None:
    """Whether a task has come to the queue for which its work was planned.

    Args:
        made: `made_at` of that queue.

    Raises: QueueCondition 2041, the path leads to another store on this machine, or the queue was made anew meanwhile.
    """
    if made_at(qm, check_queue(qm, queue).name) != made:
        raise QueueCondition(
            f"on {platform.node()} the store's path leads to another queue {queue} than the one for which this "
            "work was planned: it was deleted and made again meanwhile (plan the work anew), or this is another "
            "machine, with another file. A store is used on one machine, by all of its processes: run Spark there "
            "(master local[*], or a cluster on that machine)",
            reason=Reason.OBJECT_CHANGED,
            queue=queue,
        )


__all__ = ["check_queue", "check_same", "made_at", "open_store"]
