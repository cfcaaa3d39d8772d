"""What is missing of a group, or of a message in segments, seen from what is there.

A group is whole if its logical messages 1 to n are there with all their segments, and n says that it is the last
(R3.51); a message in segments that is in no group, if its segments are (R3.43). The members are given one after
another, in logical order: by sequence number, then by offset; of several with the same numbers the first counts, and a
segment that overlaps the one before does not. So no more is kept than what is found to be missing.
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
    """A message as far as it matters here; `length` as the next offset counts it."""

    sequence_number: int
    offset: int
    length: int
    flags: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """What is missing. Of each kind the first 100 are named.

    Args:
        sequences: sequence numbers that are not there, from the first of a range to its last.
        segments: of logical messages that are there in part: the sequence number, and the bytes from an offset up to
            another one, which is not missing.
        unended: sequence numbers of logical messages whose last segment is not there.
        last: no member says that the group ends with it.
        more: there are more than are named.
    """

    sequences: tuple[tuple[int, int], ...] = ()
    segments: tuple[tuple[int, int, int], ...] = ()
    unended: tuple[int, ...] = ()
    last: bool = False
    more: bool = False

    @property
    def is_complete(self) -> bool:
        """Nothing is missing."""
        return self == NO_GAPS


NO_GAPS = Gaps()


def member_of(message: Message) -> Member:
    """What a message is within its group."""
    return Member(message.sequence_number, message.offset, data_length(message), message.flags)


def gaps(members: Iterable[Member]) -> Gaps:
    """What is missing of one group, whose members come in logical order; nothing of none."""
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
    """As many are kept as are named, and one more."""
    if len(found) <= GAPS_MAX:
        found.append(one)


def _holes(pieces: Iterable[Member]) -> Iterator[tuple[int, int | None]]:
    """What is missing of a logical message, from an offset up to another; None: its end."""
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
