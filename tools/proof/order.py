"""Numbers, unique ids and order: the rules for the places at which messages were seen.

Two calls of which one ended before the other began are in order, in any two processes: the clock of the histories is
one for all processes of the machine. So a number drawn by the later call is greater, and a message of a later strict
get is after those of an earlier one. Priorities are separate sequences (lifecycle B-34).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from .acts import Finding, Put, Reading, Sighting
from .fates import Fates

Uid = tuple[str, int]
Position = tuple[int, int]
FIRST: Position = (-1, -1)


@dataclass
class Known:
    """The state after the rounds so far: the messages, and the ids and numbers that must not be reused.

    Attributes:
        visible: the messages on the queues, by label.
        uids: the label with each unique id.
        numbers: for each queue the highest number seen.
        read: for each queue and rank the last position that a strict get was given.
    """

    visible: dict[str, Put] = field(default_factory=dict)
    uids: dict[Uid, str] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    read: dict[tuple[str, int], Position] = field(default_factory=dict)


class Timed(NamedTuple):
    """A position with the time at which it was drawn or read."""

    position: Position
    begun_at: float
    ended_at: float
    label: str


def order_findings(reading: Reading, fates: Fates, known: Known) -> Iterator[Finding]:
    """All faults of ids, numbers and order in one round. `known` learns the round's unique ids and numbers."""
    puts = {**known.visible, **reading.puts}
    facts = {sighting.label: sighting for sighting in reading.sightings if sighting.label in puts}
    yield from _changed(reading, facts, puts)
    yield from _repeated_uids(reading, known)
    yield from _repeated_numbers(facts)
    yield from _drawn_in_order(reading, facts, known)
    yield from _read_in_order(reading, fates, known)
    yield from _held_by_two(reading)
    yield from _read_too_early(reading, fates)


def _changed(reading: Reading, facts: dict[str, Sighting], puts: dict[str, Put]) -> Iterator[Finding]:
    """Finds messages that changed their place or unique id, or have another rank than their priority."""
    for sighting in reading.sightings:
        if (fact := facts.get(sighting.label)) is None:
            continue
        if (sighting.uid, sighting.place, sighting.queue) != (fact.uid, fact.place, fact.queue):
            yield Finding("moved", f"{sighting.label} was at {sighting[1:4]} in {sighting.call}, then at {fact[1:4]}")
    for label, fact in facts.items():
        put = puts[label]
        if put.uid is not None and put.uid != fact.uid:
            yield Finding("moved", f"{label} was put as {put.uid}, and seen as {fact.uid}")
        if fact.place[0] != -put.priority:
            yield Finding("moved", f"{label} was put with priority {put.priority}, and stands at rank {fact.place[0]}")


def _repeated_uids(reading: Reading, known: Known) -> Iterator[Finding]:
    told = [(put.uid, put.label) for put in reading.puts.values() if put.uid is not None]
    for uid, label in told + [(sighting.uid, sighting.label) for sighting in reading.sightings]:
        owner = known.uids.setdefault(uid, label)
        if owner != label:
            yield Finding("uid-repeated", f"{label} has the unique id {uid} of {owner}")


def _repeated_numbers(facts: dict[str, Sighting]) -> Iterator[Finding]:
    owners: dict[tuple[str, int, int], str] = {}
    for label, fact in sorted(facts.items()):
        owner = owners.setdefault((fact.queue, *fact.place[1:]), label)
        if owner != label:
            yield Finding("number-repeated", f"{label} and {owner} have both {fact.place[1:]} on {fact.queue}")


def _drawn_in_order(reading: Reading, facts: dict[str, Sighting], known: Known) -> Iterator[Finding]:
    """Finds numbers that do not ascend from call to call, within a call from message to message, or over the rounds."""
    drawn: dict[str, list[Timed]] = defaultdict(list)
    for act in reading.acts:
        of_call: dict[tuple[str, object], Timed] = {}
        for put in [reading.puts[label] for label in act.puts if label in facts]:
            calls, place = put.drawn_by(), facts[put.label].place
            begun = min((call.begun_at for call in calls), default=-math.inf)
            ended = max((call.ended_at for call in calls), default=math.inf)
            timed = Timed(place[1:], begun, ended, put.label)
            drawn[put.queue].append(timed)
            before = of_call.get(key := (put.queue, tuple(map(id, calls))))
            if before is not None and before.position >= timed.position:
                yield Finding("order", f"{put.label} stands before {before.label}, which one call placed before it")
            of_call[key] = timed
    for queue, found in drawn.items():
        for earlier, later in overtaken(found, by_number=True):
            yield Finding(
                "order", f"{later.label} stands before {earlier.label} on {queue}, which had its place before"
            )
        lowest = min(found)
        if lowest.position[0] <= known.numbers.get(queue, 0):
            highest = known.numbers[queue]
            text = f"{lowest.label} was given {lowest.position[0]} on {queue}, where {highest} was drawn before"
            yield Finding("number-repeated", text)
    for queue, found in drawn.items():
        known.numbers[queue] = max(known.numbers.get(queue, 0), *(timed.position[0] for timed in found))


def overtaken(found: Iterable[Timed], *, by_number: bool = False) -> Iterator[tuple[Timed, Timed]]:
    """Pairs of which the later, by its time, is before the earlier, or at the same position.

    Args:
        by_number: messages of one number are of one act; they are judged elsewhere.
    """
    by_end = sorted(found, key=lambda timed: timed.ended_at)
    highest, at = None, 0
    for timed in sorted(by_end, key=lambda timed: timed.begun_at):
        while by_end[at].ended_at < timed.begun_at:
            highest = max(highest or by_end[at], by_end[at])
            at += 1
        if highest is None or (by_number and timed.position[0] == highest.position[0]):
            continue
        if timed.position <= highest.position:
            yield highest, timed


def _read_in_order(reading: Reading, fates: Fates, known: Known) -> Iterator[Finding]:
    """Finds strict gets that do not ascend, or have left a message behind (B-11, B-53). Undone gets do not count."""
    read: dict[tuple[str, int], list[Timed]] = defaultdict(list)
    for sighting in reading.strict:
        if sighting.act is not None and fates[sighting.act]:
            call, (rank, *position) = sighting.call, sighting.place
            timed = Timed((position[0], position[1]), call.begun_at, call.ended_at, sighting.label)
            read[sighting.queue, rank].append(timed)
    for (queue, rank), found in read.items():
        before = Timed(known.read.get((queue, rank), FIRST), -math.inf, -math.inf, "a message of an earlier round")
        for earlier, later in overtaken([before, *found]):
            yield Finding("strict", f"{later.label} was read from {queue} after {earlier.label}, and stands before it")
        known.read[queue, rank] = max([before, *found]).position
    for queue, left in reading.seen.items():
        for sighting in left:
            if sighting.place[1:] <= known.read.get((queue, sighting.place[0]), FIRST):
                yield Finding("strict", f"{sighting.label} is still on {queue}, though strict reading has passed it")


def _held_by_two(reading: Reading) -> Iterator[Finding]:
    """Finds messages that an open unit or a confirm id had got, and that another call received, too."""
    by_label: dict[str, list[Sighting]] = defaultdict(list)
    for sighting in reading.sightings:
        by_label[sighting.label].append(sighting)
    for label, sightings in by_label.items():
        for held in sightings:
            for other in sightings:
                if held.act is None or other is held or other.act is held.act:
                    continue
                if held.call.ended_at < other.call.begun_at and other.call.ended_at < held.act.released_at:
                    yield Finding("two-holders", f"{label} was given to {other.call} while {held.act.title} held it")


def _read_too_early(reading: Reading, fates: Fates) -> Iterator[Finding]:
    """Finds messages of a unit that were seen before its commit was called."""
    for sighting in reading.sightings:
        put = reading.puts.get(sighting.label)
        if put is None or not fates[put.act]:
            continue
        begun_at = min((call.begun_at for call in put.act.commits()), default=-math.inf)
        if sighting.call.ended_at < begun_at:
            yield Finding(
                "uncommitted", f"{sighting.label} was given to {sighting.call} before its commit was asked for"
            )
