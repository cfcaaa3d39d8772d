"""Keeps the import paths, names and arguments of 0.1.0 working until 0.3, with a warning that gives the new ones.

Import paths lead to where modules and names are now. A module is loaded once, under both names: `inorder.bulk` *is*
`inorder.client.bulk`. So objects that were pickled under an old path can be read.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
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
    "inorder.operating": "inorder.client.inspection",
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


# Names that were in the root of `inorder`, by the module that has them now.
LEFT_THE_ROOT: Final = {
    name: module
    for module, names in {
        "inorder.client.confirming": "Locked",
        "inorder.client.listening": "Observation Registration StoreEvent",
        "inorder.client.inspection": "OrderView Unit",
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

# Calls of `QueueManager` and `Queue` that are now elsewhere: the namespace, and where it has them under another name.
MOVED_CALLS: Final = {
    namespace: {old: now or old for old, _, now in (one.partition(":") for one in calls.split())}
    for namespace, calls in {
        "admin": """
            alter_manager alter_process backup check check_store clear_queue create_process delete_process
            discard_expired end_lease manager_attributes process processes release_lock stop
        """,
        "accounts": """
            acting acts alter_user create_token create_user delete_user identify on_behalf_of revoke_token token tokens
            user users
        """,
        "bulk": """
            claims finish_claims in_ledger last_settled leave_claimed_group release_claims settle_staging undo_staging
        """,
        "dead": "bury:add dead_letters:letters discard_dead:discard replay",
        "inspect": """
            connections dropped gaps has_unit hook locks look observe order_view overview path program
            status unique_ids units waits
        """,
        "internals": """
            abandon browse_on checked_for clock close_unused_queues get_if get_state give_up given go_on
            has_queues incarnation is_idle is_observed number open_growing opened_for owner promises put_state
            release_lock session standing take_group tell watch withdraw
        """,
    }.items()
}
CREATED: Final = {"create_alias": "alias", "create_model": "model", "create_remote_queue": "remote"}


def member(owner: object, name: str) -> Any:
    """`__getattr__` of `QueueManager` and `Queue`: finds their calls of 0.1.0 that have moved, with a warning."""
    if name in CREATED and hasattr(owner, "create_queue"):
        _warn(f"{name}(...) is now create_queue(..., type={CREATED[name]!r}); the old name ends with 0.3")
        return partial(owner.create_queue, type=CREATED[name])
    for namespace, calls in MOVED_CALLS.items():
        there = getattr(owner, namespace, None) if name in calls and hasattr(type(owner), namespace) else None
        if hasattr(there, calls.get(name, "")):  # asyncio's namespaces lack calls that it never had
            place = "qm.admin" if namespace == "internals" and name in MOVED_CALLS["admin"] else namespace
            _warn(f"{name} is now {place}.{calls[name]}; the old name ends with 0.3")
            return getattr(there, calls[name])
    raise AttributeError(f"{type(owner).__name__!r} object has no attribute {name!r}", name=name, obj=owner)


def warn(text: str) -> None:
    """Raises a DeprecationWarning about an argument."""
    _warn(f"{text}; the old value ends with 0.3")


def _warn(text: str) -> None:
    """Raises a DeprecationWarning at the line of the program that makes the call."""
    level, frame = 1, sys._getframe()
    while frame.f_back and str(frame.f_globals.get("__name__")).partition(".")[0] in ("inorder", "dataclasses"):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, DeprecationWarning, stacklevel=level)


def in_root(name: str) -> Any:
    """`__getattr__` of `inorder`: finds names that have left its root since 0.1.0, with a warning.

    `from inorder import NotFound` asks twice, first whether the name exists: that call gives no warning.
    """
    asks_whether = sys._getframe(1).f_code.co_name == "_handle_fromlist"
    if f"inorder.{name}" in MOVED and not asks_whether:  # in 0.1.0 `import inorder` had loaded most of these
        now = MOVED[f"inorder.{name}"]
        warnings.warn(_moved(f"inorder.{name}", now), DeprecationWarning, stacklevel=2)
        return import_module(now)
    if name not in LEFT_THE_ROOT:
        raise AttributeError(f"module 'inorder' has no attribute {name!r}")
    module = LEFT_THE_ROOT[name]
    if not asks_whether:
        warnings.warn(
            f"inorder.{name} is now {module}.{name}; the old name ends with 0.3", DeprecationWarning, stacklevel=2
        )
    return getattr(import_module(module), name)


def renamed(module: str, **names: str) -> Callable[[str], Any]:
    """`__getattr__` of a module: `names` has the names of 0.1.0, each with its name now, in full if it is elsewhere."""

    def found(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        if sys._getframe(1).f_code.co_name != "_handle_fromlist":  # see `in_root`
            text = f"{module}.{name} is now {names[name]}; the old name ends with 0.3"
            warnings.warn(text, DeprecationWarning, stacklevel=2)
        place, _, now = names[name].rpartition(".")
        return getattr(import_module(place or module), now)

    return found


def _moved(old: str, now: str) -> str:
    return f"{old} has moved to {now}; the old path ends with 0.3"


class _Old:
    """Finds an old path, and loads the module that has moved.

    It has no base class, because `importlib.abc` would load twenty modules.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, cast(Any, self)) if _now(fullname) else None

    def create_module(self, spec: ModuleSpec) -> None:
        """Makes an empty module, which `exec_module` replaces."""

    def exec_module(self, module: ModuleType) -> None:
        old = module.__name__
        now = _now(old)
        assert now
        warnings.warn(_moved(old, now), DeprecationWarning, stacklevel=2)
        sys.modules[old] = import_module(now)


def _now(name: str) -> str | None:
    """The new path of an old module, or of a module in a package that has moved."""
    package, _, inside = name.rpartition(".")
    if name not in MOVED and package in MOVED:
        return f"{MOVED[package]}.{inside}"
    return MOVED.get(name)


def find() -> None:
    """Installs the finder for old paths in first place; otherwise the files of a moved package would be loaded a second
    time.
    """
    sys.meta_path.insert(0, _Old())
