"""The operations that empty a queue: clear, delete, and a close that deletes.

They remove messages in steps. Each step is a separate operation, so that other programs can work between two steps of a
large queue.
"""

from __future__ import annotations

from typing import Final

from ...errors import ObjectInUse, QueueNotEmpty
from ..seam.telemetry import count, event, first
from . import connections, settling
from .catalog import Catalog
from .operation import Operation, in_operation
from .process import OpenStore
from .queue import LocalQueue
from .settling import tidied

STEP: Final = 500  # messages in one transaction, which takes less than a time slice even on a busy machine


class ClearingVerbs(OpenStore):
    """The operations that empty queues; `protocol.Store` documents them."""

    @event("close", handle=first)
    def close(self, handle: int, *, delete: bool = False, purge: bool = False) -> None:
        if not self.host.is_closed:  # the handle was closed with it
            while not self._close(handle, delete=delete or purge, purge=purge):
                pass

    @in_operation(unless_dead=(ObjectInUse, QueueNotEmpty))
    def _close(self, operation: Operation, handle: int, *, delete: bool, purge: bool) -> bool:
        """Returns whether the handle is closed; if not, some messages have been removed."""
        one = self.handle(handle)
        queue = tidied(operation, one) if delete else None
        if queue is not None:
            Catalog(operation).check_delete_at_close(one, queue.attributes, purge=purge)
            if queue.depth > STEP and _clear(operation, queue, queue.counter):
                return False
        connections.close_handle(operation, one)
        if queue is not None and self.backend.state(queue.id) is not None:
            connections.vanish(operation, operation.queue(queue.id))
        return True

    @event("delete_queue", keys="queue", about=lambda _, name, **__: [name])
    def delete_queue(self, name: str, *, purge: bool) -> None:
        while not self._delete_queue(name, purge=purge):
            pass

    @in_operation(unless_dead=(ObjectInUse, QueueNotEmpty))
    def _delete_queue(self, operation: Operation, name: str, *, purge: bool) -> bool:
        """Returns whether the queue is deleted; if not, some messages have been removed."""
        catalog = Catalog(operation)
        queue = _without_expired(operation, catalog, name)
        catalog.check_delete(name, purge=purge)
        if queue is None:
            catalog.remove(name)
        elif queue.depth > STEP and _clear(operation, queue, queue.counter):
            return False
        else:
            connections.vanish(operation, queue)
        return True

    @event("clear_queue", "messages", "queue", measured=count, about=lambda _, name: [name])
    def clear_queue(self, name: str) -> int:
        number, upto, gone = self._begin_clear(name)
        total = gone
        while gone == STEP:
            gone = self._clear_more(number, upto)
            total += gone
        return total

    @in_operation(unless_dead=(ObjectInUse, QueueNotEmpty))
    def _begin_clear(self, operation: Operation, name: str) -> tuple[int, int, int]:
        """Returns the queue's number, the last number drawn on it, and the number of removed messages."""
        catalog = Catalog(operation)
        queue = _without_expired(operation, catalog, name)
        catalog.check_clear(name)
        assert queue is not None
        return queue.id, queue.counter, _clear(operation, queue, queue.counter)

    @in_operation(alone=False)
    def _clear_more(self, operation: Operation, number: int, upto: int) -> int:
        """Returns the number of removed messages; 0 if the queue is gone."""
        return 0 if self.backend.state(number) is None else _clear(operation, operation.queue(number), upto)


def _clear(operation: Operation, queue: LocalQueue, upto: int) -> int:
    """Removes messages with numbers up to this one, and lock ids that then lock nothing. Returns their number."""
    gone = operation.backend.clear_some(queue.id, upto, STEP)
    operation.idle.update(gone.units)
    if gone.total:
        operation.touch(queue)
        queue.count(-gone.total)
    return gone.total


def _without_expired(operation: Operation, catalog: Catalog, name: str) -> LocalQueue | None:
    """Discards a local queue's expired messages and returns the queue; None: an alias or a model. Raises:
    UnknownQueue.
    """
    if catalog.made(name).type != "local":
        return None
    queue = operation.queue(catalog.number(name), name)
    settling.discard(operation, queue)
    return queue
