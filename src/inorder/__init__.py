"""inorder: a message queue manager that keeps its promises about order, embedded like SQLite.

Here is what most programs need. All errors are in `inorder.errors`; here are the root of their tree, its three
branches, and the eight that a correct program has to expect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .client.browsing import Browsing
from .client.groups import GroupWriter
from .client.leases import Lease
from .client.listening import Arrival, Listener
from .client.manager import QueueManager, connect
from .client.queue import Queue
from .client.requesting import Replies
from .client.unit_of_work import UnitOfWork
from .client.upgrading import rename, upgrade
from .errors import (
    ArgumentError,
    CallerError,
    ConnectionBroken,
    InorderError,
    NoMessageAvailable,
    ObjectExists,
    OrderPending,
    OutcomeUnknown,
    QueueCondition,
    QueueFull,
    Reason,
    StoreError,
    UnknownQueue,
)
from .model.kinds import Feedback
from .model.message import Flags, Got, Message, MessageType, Place, Report, UniqueId
from .model.options import FOREVER, GetOptions, Match, OpenOptions, PutOptions
from .model.properties import Properties
from .rules.puts import PutResult
from .support import old_paths
from .support.release import __version__ as __version__

old_paths.find()


__all__ = [
    "FOREVER",
    "ArgumentError",
    "Arrival",
    "Browsing",
    "CallerError",
    "ConnectionBroken",
    "Feedback",
    "Flags",
    "GetOptions",
    "Got",
    "GroupWriter",
    "InorderError",
    "Lease",
    "Listener",
    "Match",
    "Message",
    "MessageType",
    "NoMessageAvailable",
    "ObjectExists",
    "OpenOptions",
    "OrderPending",
    "OutcomeUnknown",
    "Place",
    "Properties",
    "PutOptions",
    "PutResult",
    "Queue",
    "QueueCondition",
    "QueueFull",
    "QueueManager",
    "Reason",
    "Replies",
    "Report",
    "StoreError",
    "UniqueId",
    "UnitOfWork",
    "UnknownQueue",
    "connect",
    "rename",
    "upgrade",
]

if not TYPE_CHECKING:  # a type checker would take every name for one that is there
    __getattr__ = old_paths.in_root


def __dir__() -> list[str]:
    """The public names alone: neither modules that happen to be loaded nor what 0.1.0 had here."""
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
