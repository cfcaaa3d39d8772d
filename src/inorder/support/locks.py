"""Locks that an exception from outside cannot leave held, and a bell.

An exception from outside is raised by a signal handler (Ctrl-C, a time-out by SIGALRM) or by another thread
(`PyThreadState_SetAsyncExc`), in the middle of any call. CPython raises it when a function written in Python begins,
when a call returns, and when a loop repeats; a function written in C is not interrupted. So there are three rules:

* A lock is released at the end of a `with` block whose exit is written in C, like that of the locks here.
* If more must be released, a function that may be repeated does it, at the end of two blocks (`AtEnd`): after an
  exception inside its first call there is the second.
* Everything is acquired inside the block that releases it, which first checks whether it is held.
"""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self

    class RLock:
        """The methods of `_thread.RLock`."""

        def acquire(self, blocking: bool = True, timeout: float = -1) -> bool: ...
        def release(self) -> None: ...
        def _is_owned(self) -> bool: ...
        def __enter__(self) -> object: ...
        def __exit__(self, *_: object) -> None: ...

else:
    from _thread import RLock


class Lock(RLock):
    """A lock for threads. Its holder may take it again, because a finalizer may run in the middle of any line."""

    def __new__(cls, *_: object, **__: object) -> Self:
        return super().__new__(cls)  # it accepts no arguments of a subclass

    @property
    def is_mine(self) -> bool:
        """Whether this thread holds it."""
        return self._is_owned()


class AtEnd:
    """Makes a call at the end of a `with` block: `with AtEnd(give_back, it) as again, again:` makes it twice."""

    def __init__(self, call: Callable[..., object], *given: object) -> None:
        self._call, self._given = call, given

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._call(*self._given)


class LockTaken(Exception):
    """The lock is held, perhaps by this thread itself."""


class TryLock(Lock):
    """A lock that is not waited for: `with` raises `LockTaken` if it is held."""

    def __enter__(self) -> None:
        if self._is_owned():
            raise LockTaken
        try:
            is_free = self.acquire(False)
        except BaseException:
            try:  # noqa: SIM105 - `suppress` is not a block that is written in C
                self.release()
            except RuntimeError:  # it was not free
                pass
            raise
        if not is_free:
            raise LockTaken


class Bell:
    """Wakes a thread, also if it is rung before the wait begins."""

    def __init__(self) -> None:
        self._rings: SimpleQueue[None] = SimpleQueue()

    def ring(self) -> None:
        """Ends the present wait, or the next one."""
        self._rings.put(None)

    def wait(self, seconds: float | None) -> None:
        """Returns when the bell has been rung, or after this many seconds; None: only when rung."""
        try:
            self._rings.get(timeout=seconds)
            while True:
                self._rings.get_nowait()
        except Empty:
            return


def may_have_happened(error: BaseException, call: str) -> None:
    """Adds a note to an exception from outside (Ctrl-C, a time-out) that the interrupted call may have happened."""
    note = f"inorder: {call} was interrupted. It has happened as a whole or not at all; look to find out which."
    notes = [*getattr(error, "__notes__", ()), note]
    setattr(error, "__notes__", notes)  # noqa: B010 - as `add_note` does, which Python 3.10 lacks
