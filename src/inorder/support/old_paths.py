"""What 0.1.0 had elsewhere or otherwise: it goes on until 0.2, with a warning that says what to write.

Import paths lead to where modules and names are now. A module comes once, under both names: `inorder.bulk` *is*
`inorder.client.bulk`. So what was pickled under an old path is read, too.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final, cast

MOVED: Final = {
    "inorder.across": "inorder.client.store_transfer",
    "inorder.acts": "inorder.client.operator_log",
    "inorder.attributes": "inorder.model.attributes",
    "inorder.bulk": "inorder.client.bulk",
    "inorder.channels": "inorder.mq.channels",
    "inorder.dead": "inorder.client.dead_letters",
    "inorder.dead_letter_handler": "inorder.mq.dead_letter_handler",
    "inorder.kinds": "inorder.model.kinds",
    "inorder.message": "inorder.model.message",
    "inorder.mqsc": "inorder.mq.mqsc",
    "inorder.operating": "inorder.client.operating",
    "inorder.options": "inorder.model.options",
    "inorder.passwords": "inorder.support.passwords",
    "inorder.process_attributes": "inorder.model.process_attributes",
    "inorder.properties": "inorder.model.properties",
    "inorder.stores.migrations": "inorder.stores.seam.migrations",
    "inorder.stores.records": "inorder.stores.seam.records",
    "inorder.stores.telemetry": "inorder.stores.seam.telemetry",
    "inorder.stores.views": "inorder.stores.seam.views",
    "inorder.testing.language": "inorder_scenarios.language",
    "inorder.testing.runner": "inorder_scenarios.runner",
    "inorder.trigger_monitor": "inorder.mq.trigger_monitor",
    "inorder.users": "inorder.client.users",
}


# What `inorder` had in its root, by the module that has it now.
LEFT_THE_ROOT: Final = {
    name: module
    for module, names in {
        "inorder.client.confirming": "Locked",
        "inorder.client.listening": "Observation Registration StoreEvent",
        "inorder.client.operating": "OrderView Unit",
        "inorder.client.upgrading": "Upgraded",
        "inorder.errors": """
            CallInProgress ChannelStopped CheckpointLost CheckpointTooOld Completion ConfirmIdMismatch
            ConnectionClosed DuplicateMessage DuplicatePending Fenced ForkedConnection GetInhibited HandleError
            InconsistentCall LeaseOver LockMismatch LogInRefused MatchError MessageTooBig NoMessageUnderCursor
            NotAuthorized NotFound NotOpenFor ObjectInUse OptionsError OrderDeadlock OrderSelfBlocked
            OrderUnsupported PropertyNotAvailable PutInhibited QueueDeleted QueueManagerStopping QueueNotEmpty
            SequenceError StagingGone StoreDamaged StoreForeign StoreFull StoreNewer StoreOlder TooManyHandles
            TooManyLogIns Undeliverable UnitExists UnitNotAvailable UnitNotFound UnitOfAnother UnitTooLarge
            UnknownObject WaitEnded WrongQueueType WrongState
        """,
        "inorder.model.attributes": "ManagerAttributes QueueAttributes QueueStatus",
        "inorder.model.message": "EarlierPending Transmission",
        "inorder.model.process_attributes": "ProcessAttributes",
        "inorder.model.properties": "PropertyValue",
        "inorder.mq.trigger_monitor": "TriggerMessage",
    }.items()
    for name in names.split()
}
LEFT_TESTING: Final = dict.fromkeys(
    ("Failure", "Scenario", "TableError", "read_scenarios", "run_scenario"), "inorder_scenarios"
)


def warn(text: str) -> None:
    """A DeprecationWarning about an argument, on the line of the program whose call has it."""
    level, frame = 1, sys._getframe()
    while frame.f_back and str(frame.f_globals.get("__name__")).partition(".")[0] in ("inorder", "dataclasses"):
        level, frame = level + 1, frame.f_back
    warnings.warn(f"{text}; the old value ends with 0.2", DeprecationWarning, stacklevel=level)


def in_root(name: str) -> Any:
    """`__getattr__` of `inorder`: what has left its root since 0.1.0, with a warning."""
    old = f"inorder.{name}"
    if old not in MOVED:
        return _elsewhere("inorder", name, LEFT_THE_ROOT)
    if not _asks_whether(2):  # in 0.1.0 `import inorder` had loaded most of these
        warnings.warn(_moved(old, MOVED[old]), DeprecationWarning, stacklevel=2)
    return import_module(MOVED[old])


def in_testing(name: str) -> Any:
    """`__getattr__` of `inorder.testing`: the runner of scenario tables, with a warning."""
    return _elsewhere("inorder.testing", name, LEFT_TESTING)


def _elsewhere(package: str, name: str, now: Mapping[str, str]) -> Any:
    if name not in now:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    if not _asks_whether(3):
        warnings.warn(
            f"{package}.{name} is now {now[name]}.{name}; the old name ends with 0.2", DeprecationWarning, stacklevel=3
        )
    return getattr(import_module(now[name]), name)


def _asks_whether(depth: int) -> bool:
    """`from inorder import NotFound` asks twice, first whether the name is there: that one has no warning.

    Args:
        depth: of the frame that asks.
    """
    return sys._getframe(depth).f_code.co_name == "_handle_fromlist"


def _moved(old: str, now: str) -> str:
    return f"{old} has moved to {now}; the old path ends with 0.2"


class _Old:
    """Finds an old path, and loads what has moved.

    It has no base class, for `importlib.abc` would load twenty modules.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, cast(Any, self)) if _now(fullname) else None

    def create_module(self, spec: ModuleSpec) -> None:
        """An empty module, which `exec_module` replaces."""

    def exec_module(self, module: ModuleType) -> None:
        old = module.__name__
        now = _now(old)
        assert now
        warnings.warn(_moved(old, now), DeprecationWarning, stacklevel=2)
        sys.modules[old] = import_module(now)


def _now(name: str) -> str | None:
    """Where the module of an old path is, or the module in a package that had it."""
    package, _, inside = name.rpartition(".")
    if name not in MOVED and package in MOVED:
        return f"{MOVED[package]}.{inside}"
    return MOVED.get(name)


def find() -> None:
    """Makes Python find old paths, and look here first: the files of a moved package would give a second copy."""
    sys.meta_path.insert(0, _Old())
