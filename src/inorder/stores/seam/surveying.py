"""Surveys: the messages that a browse would show next, level by level, cut into stretches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ...model.message import Place
from ...rules.grouping import Members, Wanted
from ...rules.ordering import UNSET, Cursor
from .queued import QueuedMessage
from .records import Stretch


class Shown(NamedTuple):
    """A message, or the head of a group, that a survey shows: its place, number of messages and size."""

    place: Place
    messages: int
    size: int


class Cut(NamedTuple):
    """A future stretch of a survey: the places of its first and last message or head, and its number of messages."""

    first: Place
    last: Place
    messages: int


def looked_for(*, logical: bool) -> Wanted:
    """The search of bulk reads: messages, or in logical order the heads of whole groups."""
    return Wanted(heads=True, needs="group") if logical else Wanted()


def members_from(head: QueuedMessage, there: Iterable[QueuedMessage]) -> list[QueuedMessage]:
    """Returns the members of the group that begins with this head; `there` are the readable rows with its group id."""
    rows = {id(one.message): one for one in (head, *there)}
    found = Members(one.message for one in rows.values()).beginning_with(head.message)
    return [rows[id(message)] for message in found]


def within(shown: Iterable[Shown], most: int, most_bytes: int) -> list[Shown]:
    """Returns as many as the limits allow, at least one."""
    taken: list[Shown] = []
    messages = size = 0
    for one in shown:
        messages, size = messages + one.messages, size + one.size
        if taken and (messages > most or size > most_bytes):
            break
        taken.append(one)
    return taken


def cut(shown: Sequence[Shown], slices: int) -> list[Cut]:
    """Cuts into about `slices` stretches of similar size, each within one level."""
    size = max(1, -(-sum(one.messages for one in shown) // max(1, slices)))
    cuts: list[Cut] = []
    for one in shown:
        last = cuts[-1] if cuts else None
        if last is not None and last.last.rank == one.place.rank and last.messages < size:
            cuts[-1] = Cut(last.first, one.place, last.messages + one.messages)
        else:
            cuts.append(Cut(one.place, one.place, one.messages))
    return cuts


def stretches(cuts: Iterable[Cut], *, logical: bool) -> list[Stretch]:
    """Converts cuts to the stretches of an answer."""
    return [
        Stretch(
            logical, one.first.rank, (one.first.number, one.first.ordinal), (one.last.number, one.last.ordinal),
            one.messages,
        )
        for one in cuts
    ]  # fmt: skip


def moved(cursor: Cursor, cuts: Iterable[Cut], *, logical: bool) -> Cursor:
    """The cursor of a strict browse that has shown everything: on each level it is at the last cut's end (B-38)."""
    levels: Mapping[int, Place] = dict(cursor.levels) | {one.last.rank: one.last for one in cuts}
    return UNSET._replace(logical=logical, strict=True, levels=tuple(sorted(levels.items())))
