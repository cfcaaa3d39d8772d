"""How a process of Spark comes to the store: its own connection, for as long as a call needs it.

Every process is a queue manager: the planner beside the driver, and each Python worker of each executor. None uses a
connection that it inherited, for each opens its own; and a task's ends with the task.
"""

from __future__ import annotations

import socket
from pathlib import Path

from ..attributes import QueueAttributes
from ..errors import StoreError, WrongQueueType
from ..manager import QueueManager, connect

PROGRAM = "inorder.spark"


def open_store(url: str, application: str = "") -> QueueManager:
    """A connection to the store at a path; it must be there, for a reader or writer makes none.

    Raises: StoreError and its kin: it is not there, or cannot be opened, on which machine, and what to do.
    """
    if not Path(url).exists():
        raise StoreError(
            f"there is no store at {url} on {socket.gethostname()}. If the path is right, make the queue manager first "
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


__all__ = ["check_queue", "open_store"]
