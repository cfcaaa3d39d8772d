"""A unit of work as a block, which commits at its end and backs out on an exception.

A connection has one unit of work at a time (R5.1). Every put and get inside the block is part of it, except with
`syncpoint=False` and in confirmed calls, which act at once (lifecycle A-3). The object can be used once; its `status`
says how it ended. A commit, back out or prepare inside the block ends the unit; later calls are outside any unit.

The unit belongs to the thread and asyncio task that began it: see `callers`. Puts and gets of others in it are refused.
Any thread may settle it, because a block may end in another thread, for example by a finalizer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Literal, Protocol
from weakref import ref

from ..errors import CallerError, InorderError, Reason, UnitNotFound, bad_argument
from ..model.fields import EXPIRY_SECONDS_MAX
from ..model.parameters import Seconds, is_storable
from ..rules.retries import Later
from .session import Session

log = logging.getLogger("inorder.unit_of_work")

DELAY = Seconds(0, EXPIRY_SECONDS_MAX)
Status = Literal["new", "open", "committed", "backed out", "prepared"]


class CurrentUnit(Protocol):
    """A unit of work that is or was the current one of a thread or asyncio task.

    Attributes:
        manager: the queue manager with which its block was begun, one of threads or of asyncio.
        outer: finds the unit around it, of another connection.
    """

    manager: Any
    outer: Callable[[], CurrentUnit | None]

    @property
    def status(self) -> Status: ...


def nothing() -> None:
    """Finds no unit."""


_current: ContextVar[Callable[[], CurrentUnit | None]] = ContextVar("inorder.unit", default=nothing)


def current_unit() -> CurrentUnit | None:
    """Returns the innermost open unit of work whose block this thread or asyncio task is in; None: it is in none.

    A task that was started in the block finds it too, and is refused there.
    """
    unit = _current.get()()
    while unit is not None and unit.status != "open":
        unit = unit.outer()
    return unit


def enter(unit: CurrentUnit) -> None:
    """Makes a unit that has begun the current one, without keeping it alive."""
    outer = current_unit()
    unit.outer = nothing if outer is None else ref(outer)
    _current.set(ref(unit))


def leave(unit: CurrentUnit) -> None:
    """Makes the unit around this one the current one; a block that ends elsewhere leaves that to `current_unit`."""
    if _current.get()() is unit:
        _current.set(unit.outer)


class UnitOfWork:
    """A unit of work; made by `QueueManager.unit_of_work`, or by `store_transfer.moving`.

    Attributes:
        status: "new", "open", "committed", "backed out" or "prepared".
        task: in a worker's unit, the name of the task whose function runs.
        warning: OUTCOME_PENDING 2124 after a commit that an owner elsewhere has still to carry out; otherwise None.
    """

    task = ""
    warning: Reason | None = None

    def __init__(self, session: Session, manager: Any = None, *, moves: bool = False) -> None:
        self._session, self._moves = session, moves
        self.spans = not moves  # a prepared part would count its messages as delivered and arrived
        self.manager = manager
        self.outer: Callable[[], CurrentUnit | None] = nothing
        self.status: Status = "new"

    def __enter__(self) -> UnitOfWork:
        """Begins the unit.

        Raises: CallerError 2128 UOW_IN_PROGRESS, the connection already has one; it is a `UnitOfAnother` if another
        thread or task has it.
        """
        if self.status != "new":
            raise CallerError(
                f"this unit of work is {self.status} and cannot be used again: create another",
                reason=Reason.UOW_NOT_AVAILABLE,
            )
        try:
            self._session.begin(self)
            self.status = "open"
            if self.manager is not None:
                enter(self)
        except BaseException:
            if self._session.block is self:  # an exception from outside came after `begin`: the unit is empty
                self._session.block = None
            raise
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Commits, or backs out after an exception; if the back out fails too, the first exception is raised.

        If the unit could not be settled, the connection's next call first backs it out.
        """
        leave(self)
        if self.status != "open":
            return
        if self._session.closed:
            self.status = "backed out"
            return
        try:
            if error is None:
                self.commit()
            else:
                self.back_out()
        except BaseException as failure:
            self._session.give_up("commit" if error is None else "back_out")
            self.status = "backed out"
            if error is None or not isinstance(failure, InorderError):
                raise
            log.warning("a unit of work could not be backed out now and will be backed out later: %s", failure)

    def commit(self) -> Reason | None:
        """Makes its puts visible and its gets final. Returns the `warning`.

        Raises: QueueCondition 2003, it had to be backed out: a queue manager could not commit.
        """
        self._check_open()
        self.warning = self._session.settle("commit", moves=self._moves)
        self.status = "committed"
        return self.warning

    def back_out(self, *, delay: float = 0, error: str = "") -> None:
        """Undoes the puts and returns messages got to their places; see `QueueManager.back_out`."""
        self._put_off(later_of(delay, error))

    def _put_off(self, later: Later | None) -> None:
        """Backs out with the retry data that a part of this package gives."""
        self._check_open()
        self._session.settle("back_out", later)
        self.status = "backed out"

    def prepare(self, name: str) -> None:
        """Prepares the unit under a name; it then waits, even across a restart, until someone settles it.

        Args:
            name: 1 to 256 characters.

        Raises: ArgumentError; UnitExists, the name is taken; UnitNotFound, the unit holds nothing.

        Rules: R5.10.
        """
        self._check_open()
        self._session.prepare(name)
        self.status = "prepared"

    def _check_open(self) -> None:
        if self.status != "open":
            raise UnitNotFound(f"this unit of work is {self.status}")

    def __repr__(self) -> str:
        return f"<unit of work, {self.status}>"


def later_of(delay: object, error: object) -> Later | None:
    """Returns delay and error of a back out; None: it has neither. Raises: ArgumentError."""
    seconds = DELAY.check("delay", delay)
    if not isinstance(error, str) or not is_storable(error):
        raise bad_argument("error", error, "a text")
    return Later(seconds, error) if seconds or error else None
