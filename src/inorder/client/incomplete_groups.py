"""Finds incomplete groups on queues: in the first messages of each, within a time limit, and again only after changes.

The console and the metrics use it. Groups far back on a deep queue are not found: that would cost too much.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ..model.message import ANY_GROUP, ANY_SEGMENT, Message
from ..rules.gaps import Gaps, gaps, member_of
from ..stores.seam.views import MessageView, QueueView

if TYPE_CHECKING:
    from .manager import QueueManager

LOOKED_MAX: Final = 500
KNOWN_MAX: Final = 5_000
AGAIN_SECONDS: Final = 5.0
BUDGET_SECONDS: Final = 0.25


class IncompleteGroup(NamedTuple):
    """An incomplete group."""

    group_id: bytes
    missing: Gaps
    put_at: float


class Wholeness(NamedTuple):
    """The result of a search. `is_all`: it covered the whole queue."""

    lacking: tuple[IncompleteGroup, ...] = ()
    is_all: bool = True


class GroupSearches:
    """Search results, kept while the queue does not change, and for some seconds while it does."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[str, tuple[object, float, Wholeness]] = {}

    def of_all(self, qm: QueueManager, views: Iterable[QueueView]) -> Mapping[str, Wholeness]:
        """The groups of many queues, as far as time allows. The next call continues with the others."""
        end, found = self._clock() + BUDGET_SECONDS, {}
        for view in views:
            if self._clock() < end:
                found[view.name] = self.of(qm, view)
            elif view.name in self._known:
                found[view.name] = self._known[view.name][2]
        return found

    def of(self, qm: QueueManager, view: QueueView) -> Wholeness:
        """The groups of a queue. Raises: InorderError."""
        if not view.depth + view.puts + view.gets:
            self._known.pop(view.name, None)
            return Wholeness()
        sign = (view.created_at, view.arrived, view.depth, view.puts, view.gets, view.locked)
        known = self._known.get(view.name)
        if known is not None and (known[0] == sign or self._clock() - known[1] < AGAIN_SECONDS):
            return known[2]
        found = wholeness(list(qm.inspect.look(view.name, order="logical", preview=0, most=LOOKED_MAX)), LOOKED_MAX)
        self._known[view.name] = (sign, self._clock(), found)
        for oldest in list(self._known)[:-KNOWN_MAX]:  # queues come and go
            self._known.pop(oldest, None)
        return found


def wholeness(sights: Sequence[MessageView], most: int) -> Wholeness:
    """The gaps in a listing in logical order, up to a limit."""
    found = by_group(one.message for one in sights)
    is_all = len(sights) < most
    if not is_all and sights:
        found = {name: members for name, members in found.items() if name != group_of(sights[-1].message)}
    lacking = []
    for group_id, members in found.items():
        missing = gaps(member_of(one) for one in sorted(members, key=lambda one: (one.sequence_number, one.offset)))
        if not missing.is_complete:
            lacking.append(IncompleteGroup(group_id, missing, min(one.put_at for one in members)))
    return Wholeness(tuple(lacking), is_all)


def by_group(messages: Iterable[Message]) -> Mapping[bytes, list[Message]]:
    """The messages in groups or segments, by group id."""
    found: dict[bytes, list[Message]] = {}
    for one in messages:
        if group_of(one):
            found.setdefault(group_of(one), []).append(one)
    return found


def group_of(message: Message) -> bytes:
    """The group id of a message in a group or segments; empty for others."""
    return message.group_id if message.flags & (ANY_GROUP | ANY_SEGMENT) else b""
