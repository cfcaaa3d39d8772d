"""Jobs on queues and archives: plain functions that take a Spark session (`inorder pipeline` runs them as commands)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...support.old_paths import renamed
from .audit import audit as audit
from .drain import Drained as Drained
from .drain import drain as drain
from .load import Loaded as Loaded
from .load import load as load
from .progress import Progress as Progress
from .reorder import Reordered as Reordered
from .reorder import reorder as reorder
from .replay import ReplayResult as ReplayResult
from .replay import replay as replay
from .sessions import session as session
from .summary import Audited as Audited
from .unload import Unloaded as Unloaded
from .unload import dump as dump
from .unload import unload as unload
from .unload import unload_queue as unload_queue

if not TYPE_CHECKING:  # otherwise a type checker would accept any name
    __getattr__ = renamed(__name__, Replayed="ReplayResult")

__all__ = [
    "Audited",
    "Drained",
    "Loaded",
    "Progress",
    "Reordered",
    "ReplayResult",
    "Unloaded",
    "audit",
    "drain",
    "dump",
    "load",
    "reorder",
    "replay",
    "session",
    "unload",
    "unload_queue",
]
