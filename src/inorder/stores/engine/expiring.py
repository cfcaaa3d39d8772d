"""Ends expired messages, locks, stagings, leases and put keys; and, on request, the delays before retries."""

from __future__ import annotations

from collections.abc import Sequence

from ...model.message import NO_ID, UniqueId
from ..seam.tables import UnitRow
from ..seam.telemetry import count, event
from . import putkeys, settling, staging
from .catalog import Catalog
from .connections import end_lease, leases_over
from .operation import Operation, in_operation
from .process import OpenStore


class ExpiringVerbs(OpenStore):
    """Housekeeping; `protocol.Store` documents the operation."""

    @event("discard_expired", "messages", measured=count)
    def discard_expired(self, limit: int) -> int:
        queues, stagings, leases, has_keys = self._what_is_over()
        discarded = self._discard_expired(queues, limit) if queues else 0
        for unit in stagings:  # one operation each; the rows of large ones are removed in steps
            self._drop_staging(unit)
        if has_keys:
            self._forget_keys(limit)
        for unit in leases:
            end_lease(self, unit)
        return discarded

    @event("retry_now", "messages", "queue", measured=count, about=lambda _, name, *__: [name])
    @in_operation()
    def retry_now(self, operation: Operation, name: str, uid: UniqueId | None = None) -> int:
        catalog = Catalog(operation)
        if catalog.is_unused(name):
            return 0
        queue = catalog.local(name)
        settling.discard(operation, queue)
        wanted = None if uid is None else _delayed_together(operation, queue.id, uid)
        if wanted is not None and not wanted:
            return 0
        numbers = operation.backend.end_retry_delays(queue.id, operation.now, wanted)
        if numbers:
            operation.touch(queue)
            operation.durable = True
            if queue.attributes.trigger_control:
                operation.note_returns(queue, operation.backend.rows(queue=queue.id, numbers=frozenset(numbers)))
        return len(numbers)

    @in_operation(writes=False)
    def _what_is_over(self, operation: Operation) -> tuple[list[int], list[int], list[int], bool]:
        """Returns queues with work to do, expired stagings and leases, and whether there are expired put keys."""
        queues = [
            number for number in operation.backend.timed_queues() if operation.queue(number).has_work(operation.now)
        ]
        return queues, staging.that_are_over(operation), leases_over(operation), putkeys.are_over(operation)

    @in_operation()
    def _drop_staging(self, operation: Operation, unit: int) -> None:
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


def _delayed_together(operation: Operation, queue: int, uid: UniqueId) -> Sequence[int]:
    """The numbers of a message and of those of its group that the same back out delayed: one attempt got them."""
    row = next(iter(operation.backend.rows(queue=queue, uid=uid)), None)
    if row is None:
        return []
    if row.message.group_id == NO_ID:
        return [row.number]
    members = operation.backend.rows(queue=queue, group_id=row.message.group_id)
    return [one.number for one in members if one.due_at == row.due_at]
