"""Ends expired messages, locks, stagings, leases and keys of puts."""

from __future__ import annotations

from collections.abc import Sequence

from ..seam.tables import UnitRow
from ..seam.telemetry import count, event
from . import putkeys, settling, staging
from .connections import end_lease, leases_over
from .operation import Operation, in_operation
from .process import OpenStore


class ExpiringVerbs(OpenStore):
    """The part of a store for housekeeping; `protocol.Store` says what the verb guarantees."""

    @event("discard_expired", "messages", measured=count)
    def discard_expired(self, limit: int) -> int:
        queues, stagings, leases, has_keys = self._what_is_over()
        discarded = self._discard_expired(queues, limit) if queues else 0
        for unit in stagings:  # a verb for each; contents of large ones go in steps
            self._drop_staging(unit)
        if has_keys:
            self._forget_keys(limit)
        for unit in leases:
            end_lease(self, unit)
        return discarded

    @in_operation(writes=False)
    def _what_is_over(self, operation: Operation) -> tuple[list[int], list[int], list[int], bool]:
        """By what time it is: queues with something to do, stagings, leases, whether there are keys of puts."""
        queues = [
            number for number in operation.backend.timed_queues() if operation.queue(number).has_work(operation.now)
        ]
        return queues, staging.that_are_over(operation), leases_over(operation), putkeys.are_over(operation)

    @in_operation()
    def _drop_staging(self, operation: Operation, unit: int) -> None:
        """Drops a staging whose time is over."""
        names = [one.name for one in operation.backend.select(UnitRow, id=unit)]
        for _, one in staging.found_all(operation, names).values():
            if one.expires_at <= operation.now:
                staging.drop(operation, one)

    @in_operation(alone=False)
    def _forget_keys(self, operation: Operation, limit: int) -> None:
        putkeys.forget(operation, limit)

    @in_operation(alone=False)
    def _discard_expired(self, operation: Operation, queues: Sequence[int], limit: int) -> int:
        room = limit
        for number in queues:
            if self.backend.state(number) is not None:
                queue = operation.queue(number)
                room -= settling.discard(operation, queue, room)
                settling.end_leases(operation, queue)
        return limit - room
