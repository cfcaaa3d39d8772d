"""Callers: the thread and the asyncio task of a call, so that a unit of work recognises its own calls.

A connection has one unit of work, and any call made while that unit is open is part of it. So a second thread or task
that shares the connection would put into the unit of the first one, and its work could be backed out with that unit.
The session therefore records the opener of the unit, and checks whether each later call may use it:

    its task has not finished                    only that task may use it
    its task has finished, or there was none     only its thread may, with any task
    its thread has ended                         any caller may

Tasks end early in ordinary programs: each cell of a notebook is one, and so is each step of a fixture. asyncio is asked
only if the program has imported it. The references to threads and tasks are weak.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import ref


def _current_task() -> Any:
    """The asyncio task that runs in this thread, or None."""
    current_task = getattr(sys.modules.get("asyncio"), "current_task", None)  # None also during the import of asyncio
    if current_task is None:
        return None
    try:
        return current_task()
    except RuntimeError:  # no loop runs in this thread
        return None


def _no_task() -> None:
    """Stands for a reference to a task if there is none."""


@dataclass(frozen=True, slots=True, eq=False)
class Caller:
    """A thread, and the task in it, if a task made the call."""

    _thread: ref[threading.Thread]
    _task: Callable[[], Any]

    @classmethod
    def now(cls) -> Caller:
        """The present caller."""
        task = _current_task()
        return cls(ref(threading.current_thread()), _no_task if task is None else ref(task))

    def is_calling(self) -> bool:
        """Whether the present call is made by this caller."""
        return self._thread() is threading.current_thread() and self._task() is _current_task()

    @property
    def is_over(self) -> bool:
        """Whether a task made the call and has finished."""
        task = self._task()
        return self._task is not _no_task and (task is None or task.done())

    def admits_caller(self) -> bool:
        """Whether the present caller may use a unit that this caller has opened."""
        thread, task = self._thread(), self._task()
        if thread is None or not thread.is_alive():
            return True
        if task is not None and not task.done():
            return task is _current_task()
        return thread is threading.current_thread()

    @property
    def names(self) -> dict[str, str | None]:
        """The names of the thread, and of the task if it has not finished, for an error's data."""
        thread, task = self._thread(), self._task()
        has_task = task is not None and not task.done()
        return {"thread": thread.name if thread else None, "task": task.get_name() if has_task else None}


class _Anyone(Caller):
    """Stands for all callers of a connection whose unit of work belongs to no thread."""

    __slots__ = ()

    def is_calling(self) -> bool:
        return True

    def admits_caller(self) -> bool:
        return True


_ANYONE = _Anyone(ref(threading.current_thread()), _no_task)


def anyone() -> Caller:
    """The caller of a connection whose unit of work every thread and task may use."""
    return _ANYONE
