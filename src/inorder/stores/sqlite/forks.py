"""Handles forks for all databases that this process has open; `database.py` says why."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from ...support.locks import Lock
from .coordination import forget_all


class Forking(Protocol):
    """An open database."""

    def before_fork(self) -> None:
        """Waits for the transactions of other threads, and closes the connections."""

    def after_fork(self) -> None:
        """Continues, in the parent. Harmless when repeated."""

    def after_fork_in_child(self) -> None:
        """Refuses every call from now on. Harmless when repeated."""


opening = Lock()  # held while a database is opened or closed, and while the process forks
databases: weakref.WeakSet[Forking] = weakref.WeakSet()
inherited: set[Path] = set()  # in a forked child: files whose connection could not be closed before
_forking: list[Forking] = []


# If an exception from outside comes in one of these, Python reports it and forks nevertheless.


def _before_fork() -> None:
    opening.acquire()
    _forking.extend(databases)
    for database in _forking:
        database.before_fork()


def _after_fork_in_parent() -> None:
    _end_fork(lambda one: one.after_fork())


def _after_fork_in_child() -> None:
    _end_fork(lambda one: one.after_fork_in_child())
    databases.clear()
    forget_all()


def _end_fork(end: Callable[[Forking], None]) -> None:
    _forking.extend(databases)  # again: it may have been interrupted before
    try:
        for database in _forking:
            end(database)
    finally:
        try:
            for database in _forking:
                end(database)
        finally:
            try:  # noqa: SIM105 - `suppress` is not written in C
                opening.release()
            except RuntimeError:  # an exception came during the wait for it
                pass
            _forking.clear()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
