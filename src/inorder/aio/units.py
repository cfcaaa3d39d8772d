"""A unit of work of a task, as a block."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

from ..client import unit_of_work
from ..errors import CallerError, ConnectionBroken, Reason, UnitNotFound
from .lanes import Connection, Lane, Seat
from .sharing import Sharing

T = TypeVar("T")


class UnitOfWork:
    """A unit of work; made by `QueueManager.unit_of_work`.

    It takes a connection with its first call. Until it has put or got something, a get that waits needs none.
    """

    def __init__(self, shared: Sharing) -> None:
        self._shared = shared
        self._seat: Seat | None = None
        self._lane: Lane | None = None
        self._connection: Connection | None = None
        self._unit: unit_of_work.UnitOfWork | None = None
        self._status: unit_of_work.Status = "new"

    @property
    def status(self) -> unit_of_work.Status:
        """How it is: "new", "open", "committed", "backed out" or "prepared"."""
        return self._status if self._unit is None else self._unit.status

    async def __aenter__(self) -> UnitOfWork:
        """Begins the unit. Raises: CallerError 2128 UOW_IN_PROGRESS, the task has one already."""
        if self.status != "new":
            raise CallerError(f"this unit of work is {self.status}: make another", reason=Reason.UOW_NOT_AVAILABLE)
        seat = self._shared.seat()
        if seat.has_unit:
            raise CallerError(
                "the task has a unit of work already: commit it or back it out first", reason=Reason.UOW_IN_PROGRESS
            )
        seat.block, self._seat, self._status = self, seat, "open"
        self._shared.keep(seat)
        if seat.lane is not None:  # an open queue, say, whose calls are part of the unit
            try:
                await self._shared.run(seat, lambda _: None)
            except BaseException:  # nobody will leave what was not entered
                self._leave()
                raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Commits, or with an exception backs out; see `inorder.UnitOfWork`."""
        unit = self._unit
        self._leave()
        if self.status != "open":
            return
        if unit is None or self._lane is None:
            self._status = "committed" if error is None else "backed out"
        else:
            await self._lane.exit(lambda: unit.__exit__(kind, error, trace))

    async def commit(self) -> None:
        """Makes its puts visible and its gets final (R5.2)."""
        await self._settle("committed", unit_of_work.UnitOfWork.commit)

    async def back_out(self, *, delay: float = 0, error: str = "") -> None:
        """Undoes its puts; what it got returns to its place, with one more back out; see `inorder.UnitOfWork`."""
        unit_of_work.later_of(delay, error)  # what is wrong with them is said before anything is looked at
        await self._settle("backed out", lambda unit: unit.back_out(delay=delay, error=error))

    async def prepare(self, name: str) -> None:
        """Gives the unit a name; it waits, also over a restart, until someone settles it (R5.10).

        Raises: UnitExists, the name is taken; UnitNotFound, the unit holds nothing.
        """
        await self._settle("prepared", lambda unit: unit.prepare(name))

    async def _settle(self, status: unit_of_work.Status, act: Callable[[unit_of_work.UnitOfWork], None]) -> None:
        if self.status != "open":
            raise UnitNotFound(f"this unit of work is {self.status}")
        if self._unit is None and status == "prepared":
            raise UnitNotFound("the unit of work holds nothing that could be prepared")
        if self._unit is None or self._lane is None:
            self._status = status
        else:
            unit = self._unit
            await self._lane.exit(lambda: act(unit))
        self._leave()

    def _leave(self) -> None:
        """Calls of the task stand outside of it from now on."""
        if self._seat is not None and self._seat.block is self:
            self._seat.block = None

    # --- for calls

    @property
    def is_begun(self) -> bool:
        """Whether it has a connection. Raises: ConnectionBroken, it has lost that."""
        if self._lane is not None and self._lane.connection is not self._connection:
            raise ConnectionBroken("the connection of this unit of work was lost, and what it had done is backed out")
        return self._unit is not None

    def begin_with(self, lane: Lane, call: Callable[[Connection], T]) -> Callable[[Connection], T]:
        """A call that begins the unit on a connection first."""

        def begun(connection: Connection) -> T:
            self.adopt(lane, connection.unit_of_work().__enter__(), connection)
            return call(connection)

        return begun

    def adopt(self, lane: Lane, unit: unit_of_work.UnitOfWork, connection: Connection | None) -> None:
        """It has begun on a connection."""
        self._unit, self._lane, self._connection = unit, lane, connection

    def __repr__(self) -> str:
        return f"<unit of work, {self.status}>"
