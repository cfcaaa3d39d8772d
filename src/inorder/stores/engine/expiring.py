"""Ends expired messages, locks, stagings, leases and keys of puts."""

from __future__ import annotations

from collections.abc import Sequence

from ..seam.tables import UnitRow
from ..seam.telemetry import count, event
from . import putkeys, settling, staging
from .connections import end_lease, leases_over
from .operation import Verb, in_verb
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

    @in_verb(writes=False)
    def _what_is_over(self, verb: Verb) -> tuple[list[int], list[int], list[int], bool]:
        """By what time it is: queues with something to do, stagings, leases, whether there are keys of puts."""
        queues = [number for number in verb.backend.timed_queues() if verb.queue(number).has_work(verb.now)]
        return queues, staging.that_are_over(verb), leases_over(verb), putkeys.are_over(verb)

    @in_verb()
    def _drop_staging(self, verb: Verb, unit: int) -> None:
        """Drops a staging whose time is over."""
        names = [one.name for one in verb.backend.select(UnitRow, id=unit)]
        for _, one in staging.found_all(verb, names).values():
            if one.expires_at <= verb.now:
                staging.drop(verb, one)

    @in_verb(alone=False)
    def _forget_keys(self, verb: Verb, limit: int) -> None:
        putkeys.forget(verb, limit)

    @in_verb(alone=False)
    def _discard_expired(self, verb: Verb, queues: Sequence[int], limit: int) -> int:
        room = limit
        for number in queues:
            if self.backend.state(number) is not None:
                queue = verb.queue(number)
                room -= settling.discard(verb, queue, room)
                settling.end_leases(verb, queue)
        return limit - room
