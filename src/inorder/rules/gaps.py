"""Finds the missing parts of a group, or of a message in segments, from the parts that have arrived.

A group is whole if it has its logical messages 1 to n with all their segments, and n is marked as the last
(R3.51); a message in segments outside a group, if it has all its segments (R3.43). The members are given one by
one in logical order: by sequence number, then by offset. Of several with the same numbers the first counts; a
segment that overlaps the one before it is ignored. So only the gaps found are kept in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, groupby
from typing import NamedTuple, TypeVar

from ..model.message import ANY_GROUP, ANY_SEGMENT, LAST_IN_GROUP, LAST_SEGMENT, Message
from .grouping import data_length

GAPS_MAX = 100
T = TypeVar("T")


class Member(NamedTuple):
    """The relevant values of a message; `length` is the step to the next offset."""

    sequence_number: int
    offset: int
    length: int
    flags: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """The missing parts. The first 100 of each kind are listed.

    Args:
        sequences: ranges of missing sequence numbers, first and last.
        segments: missing bytes of incomplete logical messages: the sequence number, and the range from an offset up to
            another one, which is not missing.
        unended: sequence numbers of logical messages whose last segment is missing.
        last: no member is marked as the last of the group.
        more: more parts are missing than are listed.
    """

    sequences: tuple[tuple[int, int], ...] = ()
    segments: tuple[tuple[int, int, int], ...] = ()
    unended: tuple[int, ...] = ()
    last: bool = False
    more: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether nothing is missing."""
        return self == NO_GAPS


NO_GAPS = Gaps()


def member_of(message: Message) -> Member:
    """The relevant values of a message."""
    return Member(message.sequence_number, message.offset, data_length(message), message.flags)


def gaps(members: Iterable[Member]) -> Gaps:
    """Finds the missing parts of one group, whose members come in logical order; without members nothing is missing."""
    sequences: list[tuple[int, int]] = []
    segments: list[tuple[int, int, int]] = []
    unended: list[int] = []
    before, in_group, last = 0, False, False
    for number, pieces in groupby(members, key=lambda one: one.sequence_number):
        if number > before + 1:
            _note(sequences, (before + 1, number - 1))
        before = number
        first = next(pieces)
        for start, end in _holes(chain([first], pieces)):
            if end is None:
                _note(unended, number)
            else:
                _note(segments, (number, start, end))
        in_group |= bool(first.flags & ANY_GROUP)
        last = bool(first.flags & LAST_IN_GROUP)
        if last:
            break
    return Gaps(
        sequences=tuple(sequences[:GAPS_MAX]),
        segments=tuple(segments[:GAPS_MAX]),
        unended=tuple(unended[:GAPS_MAX]),
        last=in_group and not last,
        more=any(len(found) > GAPS_MAX for found in (sequences, segments, unended)),
    )


def _note(found: list[T], one: T) -> None:
    """Keeps as many entries as are listed, and one more."""
    if len(found) <= GAPS_MAX:
        found.append(one)


def _holes(pieces: Iterable[Member]) -> Iterator[tuple[int, int | None]]:
    """The missing ranges of a logical message, from an offset up to another; None: up to its end."""
    expected, seen = 0, -1
    for piece in pieces:
        if piece.offset < expected or piece.offset == seen:
            continue
        if piece.offset > expected:
            yield expected, piece.offset
        seen, expected = piece.offset, piece.offset + piece.length
        if not piece.flags & ANY_SEGMENT or piece.flags & LAST_SEGMENT:
            return
    yield expected, None
