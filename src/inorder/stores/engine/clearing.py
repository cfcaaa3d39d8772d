"""The verbs that empty a queue: clear, delete, and a close that deletes.

They remove messages in steps. Each step is a separate verb, so that other programs can work between two steps of a
large queue.
"""

from __future__ import annotations

from typing import Final

from ...errors import ObjectInUse, QueueNotEmpty
from ..seam.telemetry import count, event, first
from . import connections, settling
from .catalog import Catalog
from .operation import Verb, in_verb
from .process import OpenStore
from .queue import LocalQueue
from .settling import tidied

STEP: Final = 500  # messages of one transaction: they take less than a turn of the processor, a busy one too


class ClearingVerbs(OpenStore):
    """The part of a store that empties queues; `protocol.Store` says what the verbs guarantee."""

    @event("close", handle=first)
    def close(self, handle: int, *, delete: bool = False, purge: bool = False) -> None:
        if not self.host.is_closed:  # with it the handle was closed
            while not self._close(handle, delete=delete or purge, purge=purge):
                pass

    @in_verb(unless_dead=(ObjectInUse, QueueNotEmpty))
    def _close(self, verb: Verb, handle: int, *, delete: bool, purge: bool) -> bool:
        """Whether it is closed; else some messages of the queue are gone."""
        one = self.handle(handle)
        queue = tidied(verb, one) if delete else None
        if queue is not None:
            Catalog(verb).check_delete_at_close(one.name, queue.attributes, purge=purge)
            if queue.depth > STEP and _clear(verb, queue, queue.counter):
                return False
        connections.close_handle(verb, one)
        if queue is not None and self.backend.state(queue.id) is not None:
            connections.vanish(verb, verb.queue(queue.id))
        return True

    @event("delete_queue", keys="queue", about=lambda _, name, **__: [name])
    def delete_queue(self, name: str, *, purge: bool) -> None:
        while not self._delete_queue(name, purge=purge):
            pass

    @in_verb(unless_dead=(ObjectInUse, QueueNotEmpty))
    def _delete_queue(self, verb: Verb, name: str, *, purge: bool) -> bool:
        """Whether it is gone; else some of its messages are."""
        catalog = Catalog(verb)
        queue = _without_expired(verb, catalog, name)
        catalog.check_delete(name, purge=purge)
        if queue is None:
            catalog.remove(name)
        elif queue.depth > STEP and _clear(verb, queue, queue.counter):
            return False
        else:
            connections.vanish(verb, queue)
        return True

    @event("clear_queue", "messages", "queue", measured=count, about=lambda _, name: [name])
    def clear_queue(self, name: str) -> int:
        number, upto, gone = self._begin_clear(name)
        total = gone
        while gone == STEP:
            gone = self._clear_more(number, upto)
            total += gone
        return total

    @in_verb(unless_dead=(ObjectInUse, QueueNotEmpty))
    def _begin_clear(self, verb: Verb, name: str) -> tuple[int, int, int]:
        """The queue, the last number on it, and how many messages are gone."""
        catalog = Catalog(verb)
        queue = _without_expired(verb, catalog, name)
        catalog.check_clear(name)
        assert queue is not None
        return queue.id, queue.counter, _clear(verb, queue, queue.counter)

    @in_verb(alone=False)
    def _clear_more(self, verb: Verb, number: int, upto: int) -> int:
        """How many messages are gone; none where the queue is."""
        return 0 if self.backend.state(number) is None else _clear(verb, verb.queue(number), upto)


def _clear(verb: Verb, queue: LocalQueue, upto: int) -> int:
    """Messages with numbers up to this one go, and lock ids that lock nothing any more; how many."""
    gone = verb.backend.clear_some(queue.id, upto, STEP)
    verb.idle.update(gone.units)
    if gone.total:
        verb.touch(queue)
        queue.count(-gone.total)
    return gone.total


def _without_expired(verb: Verb, catalog: Catalog, name: str) -> LocalQueue | None:
    """A local queue, what has expired discarded; None: an alias or a model. Raises: UnknownQueue."""
    if catalog.made(name).type != "local":
        return None
    queue = verb.queue(catalog.number(name), name)
    settling.discard(verb, queue)
    return queue
