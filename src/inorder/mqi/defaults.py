"""The initial objects of a queue manager for programs of MQ: MQ's defaults for new queues, and a command queue.

With one exception, NPMCLASS(HIGH): a queue manager of MQ keeps running when its programs end, and keeps messages that
are not persistent. A store without a connection counts as a stopped queue manager.

Rules: M-7 of *mqi*.
"""

from __future__ import annotations

from typing import Final

from ..client.manager import QueueManager
from ..mq.words import COMMAND_QUEUE
from .pcf.serving import make_begun_queue

MAX_DEPTH: Final = 5_000
COMMAND_QUEUE_DEPTH: Final = 3_000
REPLY_MODEL: Final = "SYSTEM.MQEXPLORER.REPLY.MODEL"


def define_defaults(qm: QueueManager) -> None:
    """Gives the default objects MQ's values, which DEFINE copies, and creates the queues for commands."""
    for name in ("SYSTEM.DEFAULT.LOCAL.QUEUE", "SYSTEM.DEFAULT.MODEL.QUEUE"):
        qm.alter_queue(name, default_persistence=False, max_depth=MAX_DEPTH, nonpersistent_class="high")
    for name in ("SYSTEM.DEFAULT.ALIAS.QUEUE", "SYSTEM.DEFAULT.REMOTE.QUEUE"):
        qm.alter_queue(name, default_persistence=False)
    define_queue(qm, COMMAND_QUEUE, COMMAND_QUEUE_DEPTH)
    make_begun_queue(qm)
    qm.create_queue(REPLY_MODEL, type="model", default_persistence=False, max_depth=MAX_DEPTH)


def define_queue(qm: QueueManager, name: str, max_depth: int = MAX_DEPTH) -> None:
    """Creates a local queue with the defaults of MQ."""
    qm.create_queue(name, default_persistence=False, max_depth=max_depth, nonpersistent_class="high")
