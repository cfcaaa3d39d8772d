"""A get in a unit of work of its own, which is committed when its task has the message."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from ..client import unit_of_work
from .lanes import Connection

T = TypeVar("T")


class Attempt(Generic[T]):
    """A call in a unit of work of its own, which is still open when the call returns, but not if it fails."""

    def __init__(self, call: Callable[[Connection], T]) -> None:
        self._call = call
        self._unit: unit_of_work.UnitOfWork | None = None

    def take(self, connection: Connection) -> T:
        unit = connection.unit_of_work().__enter__()
        try:
            found = self._call(connection)
        except BaseException as error:
            unit.__exit__(type(error), error, error.__traceback__)
            raise
        self._unit = unit
        return found

    @property
    def unit(self) -> unit_of_work.UnitOfWork:
        """The open unit, after the call."""
        assert self._unit is not None, "the call has failed, or was not made"
        return self._unit

    def commit(self, _: Connection) -> None:
        self.unit.__exit__(None, None, None)

    def back_out(self, _: Connection) -> None:
        """If that fails, the connection's next call does it."""
        self.unit.__exit__(asyncio.CancelledError, asyncio.CancelledError(), None)
