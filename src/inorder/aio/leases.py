"""A lease for tasks: each act under it is a call on whichever connection is free."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ..client import leases
from .lanes import Connection
from .sharing import Sharing

T = TypeVar("T")


class Lease:
    """A lease; made by `QueueManager.lease` and `QueueManager.resume_lease`.

    Attributes:
        token, name, user, ends_at: as of an `inorder.Lease`.
    """

    def __init__(self, shared: Sharing, lease: leases.Lease, user: str | None) -> None:
        self._shared, self._as = shared, user
        self.token, self.name, self.user, self.ends_at = lease.token, lease.name, lease.user, lease.ends_at

    async def run(self, call: Callable[[Connection], T]) -> T:
        """What `call` makes of a connection inside the lease, on the connection's thread: `lambda qm: qm.get("Q")`.

        Raises: LeaseOver 9060; what `call` raises, and then the lease goes on.
        """
        return await self._on(lambda lease, connection: _inside(lease, connection, call))

    async def commit(self) -> None:
        """Makes its puts visible and its gets final, all at once. Raises: LeaseOver 9060."""
        await self._on(lambda lease, _: lease.commit())

    async def back_out(self) -> None:
        """Undoes its puts; what it got returns to its place. Raises: LeaseOver 9060."""
        await self._on(lambda lease, _: lease.back_out())

    async def extend(self, seconds: float) -> float:
        """Sets the deadline to so many seconds from now; the new one. Raises: LeaseOver 9060; ArgumentError."""
        self.ends_at = await self._on(lambda lease, _: lease.extend(seconds))
        return self.ends_at

    async def _on(self, act: Callable[[leases.Lease, Connection], T]) -> T:
        def call(connection: Connection) -> T:
            return act(connection.resume_lease(self.token, user=self._as), connection)

        return await self._shared.run(self._shared.seat(), call)

    def __repr__(self) -> str:
        return f"<lease {self.name}>"


def _inside(lease: leases.Lease, connection: Connection, call: Callable[[Connection], T]) -> T:
    with lease:
        return call(connection)
