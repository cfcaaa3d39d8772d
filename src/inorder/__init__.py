"""inorder: a message queue manager that keeps its promises about order, embedded like SQLite."""

from __future__ import annotations

from .attributes import ManagerAttributes, QueueAttributes, QueueStatus
from .errors import (
    ArgumentError,
    CallerError,
    Completion,
    GetInhibited,
    InconsistentCall,
    InorderError,
    MatchError,
    MessageTooBig,
    NoMessageAvailable,
    NoMessageUnderCursor,
    ObjectExists,
    ObjectInUse,
    OptionsError,
    OrderPending,
    PutInhibited,
    QueueCondition,
    QueueFull,
    QueueNotEmpty,
    Reason,
    StoreError,
    UnitExists,
    UnitNotFound,
    UnitTooLarge,
    UnknownQueue,
)
from .events import Arrival
from .groups import GroupWriter
from .handle import Queue
from .manager import QueueManager, connect
from .message import Flags, Message, MessageType, Place, UniqueId
from .options import FOREVER, GetOptions, Match, OpenOptions, PutOptions
from .rules.puts import PutResult
from .unit_of_work import UnitOfWork

__version__ = "0.1.0.dev0"

__all__ = [
    "FOREVER",
    "ArgumentError",
    "Arrival",
    "CallerError",
    "Completion",
    "Flags",
    "GetInhibited",
    "GetOptions",
    "GroupWriter",
    "InconsistentCall",
    "InorderError",
    "ManagerAttributes",
    "Match",
    "MatchError",
    "Message",
    "MessageTooBig",
    "MessageType",
    "NoMessageAvailable",
    "NoMessageUnderCursor",
    "ObjectExists",
    "ObjectInUse",
    "OpenOptions",
    "OptionsError",
    "OrderPending",
    "Place",
    "PutInhibited",
    "PutOptions",
    "PutResult",
    "Queue",
    "QueueAttributes",
    "QueueCondition",
    "QueueFull",
    "QueueManager",
    "QueueNotEmpty",
    "QueueStatus",
    "Reason",
    "StoreError",
    "UniqueId",
    "UnitExists",
    "UnitNotFound",
    "UnitOfWork",
    "UnitTooLarge",
    "UnknownQueue",
    "connect",
]
