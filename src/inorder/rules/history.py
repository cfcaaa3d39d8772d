"""The history of the queues: samples in three rings, so that a store keeps a bounded number of them.

A sample has the numbers of all queues at one moment. Each ring divides time, counted from 1970, into slots of one
length, and keeps one sample for each of the newest slots. The next slot replaces the oldest one, so that there are
never more than 240 samples.

    ring    slot         slots kept
    hour    1 minute     60
    day     15 minutes   96
    week    2 hours      84

Within a slot a later sample replaces an earlier one, and keeps the highest depth of both. A slot in which nobody took
a sample is a gap.

A sample is stored as JSON, by the numbers of the queues: ``{"7":[5,12,3400]}`` for depth, peak and arrived. A queue
that is created again under its name has another number, so it does not continue the history of the former one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

Period = Literal["hour", "day", "week"]


class HistoryRing(NamedTuple):
    """One ring. `seconds`: the length of a slot; `slots`: how many it keeps."""

    seconds: int
    slots: int

    def slot(self, at: float) -> int:
        """The slot of a time, from 0."""
        return int(at // self.seconds) % self.slots

    def distance(self, earlier: float, later: float) -> int:
        """How many slots one time is after another; 0: both are in the same one."""
        return int(later // self.seconds - earlier // self.seconds)


RINGS: Final[Mapping[Period, HistoryRing]] = MappingProxyType(
    {"hour": HistoryRing(60, 60), "day": HistoryRing(900, 96), "week": HistoryRing(7_200, 84)}
)


class QueueCounts(NamedTuple):
    """A queue in a sample.

    Args:
        depth: as in `QueueView`, as `arrived`.
        peak: the highest depth of all samples in its slot.
    """

    depth: int
    peak: int
    arrived: int


class HistoryPoint(NamedTuple):
    """A queue at one moment of its history. `at`: seconds since 1970; the others as in `QueueCounts`."""

    at: float
    depth: int
    peak: int
    arrived: int


class Activity(NamedTuple):
    """A slot of a queue's history.

    Args:
        at: when its last sample was taken, seconds since 1970.
        depth: the highest depth that a sample has seen.
        put, got: messages a second since the slot before; None if that one is missing. `got` counts messages that
            left the depth (got, expired, backed out), less those that came back.
    """

    at: float
    depth: int
    put: float | None = None
    got: float | None = None


def text_of(now: Mapping[int, tuple[int, int]], earlier: Mapping[int, QueueCounts]) -> str:
    """The text of a sample.

    Args:
        now: depth and arrived of each queue, by number.
        earlier: the sample that its slot already has; empty: there is none.
    """
    found = {
        queue: (depth, max(depth, earlier[queue].peak if queue in earlier else 0), arrived)
        for queue, (depth, arrived) in now.items()
    }
    return json.dumps(found, separators=(",", ":"))


def counts_in(text: str) -> dict[int, QueueCounts]:
    """Reads the text of a sample. Raises: ValueError, TypeError, AttributeError, RecursionError, it is none."""
    return {int(queue): _counts(values) for queue, values in json.loads(text).items()}


def counts_of(queue: int, text: str) -> QueueCounts | None:
    """Reads one queue from the text of a sample, without the others; None: it is not in it.

    Raises: ValueError, TypeError, the text cannot be read there.
    """
    key = f'"{queue}":['
    begin = text.find(key)
    if begin < 0:
        return None
    begin += len(key) - 1
    return _counts(json.loads(text[begin : text.index("]", begin) + 1]))


def _counts(values: Any) -> QueueCounts:
    found = QueueCounts(*values)
    if not all(type(one) is int and one >= 0 for one in found) or found.peak < found.depth:
        raise ValueError(values)
    return found


def activities(points: Sequence[HistoryPoint], ring: HistoryRing) -> list[Activity]:
    """The slots of a queue's history, in the order of the points."""
    found = [Activity(one.at, one.peak) for one in points[:1]]
    for before, one in pairwise(points):
        seconds = one.at - before.at
        if ring.distance(before.at, one.at) != 1 or seconds <= 0:
            found.append(Activity(one.at, one.peak))
            continue
        put = max(0, one.arrived - before.arrived)
        got = max(0, put - (one.depth - before.depth))
        found.append(Activity(one.at, one.peak, put / seconds, got / seconds))
    return found
