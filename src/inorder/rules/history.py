"""The history of the queues: samples in three rings, so that a store keeps a bounded number of them.

A sample has the numbers of all queues at one moment. Each ring divides time, counted from 1970, into slots of one
length, and keeps one sample for each of the newest slots. The next slot replaces the oldest one, so that there are
never more than 240 samples.

    ring    slot         slots kept
    hour    1 minute     60
    day     15 minutes   96
    week    2 hours      84

Within a slot a later sample replaces an earlier one, and keeps the highest depth and the highest age of both. A slot
without a sample is a gap.

A sample is stored as JSON, by the numbers of the queues: ``{"7":[5,12,3400,60]}`` for depth, peak, arrived and age. A
queue that is created again under its name has another number, so it does not continue the history of the former one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

_ENTRY: Final = re.compile(r'"(\d+)":\[([^\]]*)\]')
Period = Literal["hour", "day", "week"]


class HistoryRing(NamedTuple):
    """One ring. `seconds`: the length of a slot; `slots`: how many it keeps."""

    seconds: int
    slots: int

    def slot(self, at: float) -> int:
        """The slot of a time, from 0."""
        return int(at // self.seconds) % self.slots

    def distance(self, earlier: float, later: float) -> int:
        """The number of slots from an earlier time to a later one; 0: both are in one slot."""
        return int(later // self.seconds - earlier // self.seconds)


RINGS: Final[Mapping[Period, HistoryRing]] = MappingProxyType(
    {"hour": HistoryRing(60, 60), "day": HistoryRing(900, 96), "week": HistoryRing(7_200, 84)}
)


class QueueCounts(NamedTuple):
    """A queue in a sample.

    Args:
        depth: as in `QueueView`, as `arrived`.
        peak: the highest depth of all samples in its slot.
        age: seconds since the put of the oldest message (`QueueView.oldest_put_at`), the highest of all samples in its
            slot. 0: there was no message.
    """

    depth: int
    peak: int
    arrived: int
    age: int


class HistoryPoint(NamedTuple):
    """A queue at one moment of its history. `at`: seconds since 1970; the others as in `QueueCounts`."""

    at: float
    depth: int
    peak: int
    arrived: int
    age: int


class Activity(NamedTuple):
    """A slot of a queue's history.

    Args:
        at: when its last sample was taken, seconds since 1970.
        depth: the highest depth in a sample.
        put, got: messages per second since the slot before; None if that slot is missing. `got` counts messages that
            left the depth (got, expired, backed out), less those that returned.
        age: the highest age of its oldest message in a sample, in seconds; 0: there was no message.
    """

    at: float
    depth: int
    put: float | None = None
    got: float | None = None
    age: float = 0.0


def text_of(now: Mapping[int, QueueCounts], earlier: Mapping[int, QueueCounts]) -> str:
    """The text of a sample.

    Args:
        now: the counts of each queue, by number.
        earlier: the sample that its slot already has; empty: there is none.
    """
    found = {
        queue: (one.depth, max(one.peak, before.peak), one.arrived, max(one.age, before.age))
        for queue, one in now.items()
        for before in (earlier.get(queue, one),)
    }
    return json.dumps(found, separators=(",", ":"))


def counts_in(text: str) -> dict[int, QueueCounts]:
    """Reads the text of a sample. Raises: ValueError, TypeError, AttributeError, RecursionError, if it is none."""
    return {int(queue): _counts(values) for queue, values in json.loads(text).items()}


def counts_of(queues: Iterable[int | None], text: str) -> dict[int | None, QueueCounts]:
    """Reads some queues from the text of a sample. Raises: ValueError, TypeError, one of them cannot be read."""
    texts = dict(_ENTRY.findall(text))  # several times as fast as parsing the counts of all queues
    return {queue: _counts(map(int, texts[str(queue)].split(","))) for queue in queues if str(queue) in texts}


def _counts(values: Iterable[Any]) -> QueueCounts:
    found = QueueCounts(*values)
    if not all(type(one) is int and one >= 0 for one in found) or found.peak < found.depth:
        raise ValueError(values)
    return found


def activities(points: Sequence[HistoryPoint], ring: HistoryRing) -> list[Activity]:
    """The slots of a queue's history, in the order of the points."""
    found = [Activity(one.at, one.peak, age=one.age) for one in points[:1]]
    for before, one in pairwise(points):
        seconds = one.at - before.at
        if ring.distance(before.at, one.at) != 1 or seconds <= 0:
            found.append(Activity(one.at, one.peak, age=one.age))
            continue
        put = max(0, one.arrived - before.arrived)
        got = max(0, put - (one.depth - before.depth))
        found.append(Activity(one.at, one.peak, put / seconds, got / seconds, one.age))
    return found
