"""Messages of a queue as rows, in one order; in logical order each group stands together, with its gaps."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final, NamedTuple

from ...client.incomplete_groups import group_of
from ...client.labels import in_words, name_of, place_of, text_of
from ...model.message import ANY_GROUP, ANY_SEGMENT, LAST_IN_GROUP, LAST_SEGMENT, NO_ID, Message, UniqueId
from ...rules.gaps import Gaps
from ...stores.seam.views import Holder, MessageView
from .labels import one_line

SHADES: Final = 16
PREVIEW: Final = 96
HEX_SHOWN: Final = 24

COLUMNS: Final[Mapping[str, str]] = {
    "group": "group",
    "state": "state",
    "priority": "priority",
    "age": "age",
    "length": "length",
    "body": "body",
    "properties": "properties",
    "id": "message id",
    "correlation": "correlation id",
    "format": "format",
}
"""The columns that a visitor may choose; every list has the place."""

USUAL: Final = ("group", "state", "age", "length", "body")


class MessageRow(NamedTuple):
    """A message. `shade`: the colour of its group, the same on every page."""

    sight: MessageView
    uid: str
    place: str
    group: str
    shade: int
    number: str
    segment: str
    held: str
    body: str
    is_text: bool
    properties: str
    message_id: str
    correlation_id: str


class Block(NamedTuple):
    """Messages that stand together in logical order: a group, or messages in no group.

    Args:
        name: the name of the group; empty: these messages are in none.
        begun, goes_on: whether the previous page has some of its messages, and the next page has more.
        missing: the gaps of the group, in words; empty: it has none.
        held: the holders of its messages, each once.
        since: when its oldest message was put.
    """

    name: str
    anchor: str
    shade: int
    rows: Sequence[MessageRow]
    begun: bool
    goes_on: bool
    missing: str
    held: Sequence[str]
    states: Sequence[str]
    segments: int
    length: int
    since: float


def blocks(
    sights: Sequence[MessageView], missing: Mapping[bytes, Gaps], before: bytes = b"", following: bytes = b""
) -> list[Block]:
    """The blocks of messages in logical order.

    Args:
        missing: the gaps of each group.
        before, following: the groups of the messages directly before and after these.
    """
    found = [_block(group_id, list(members), missing) for group_id, members in groupby(sights, _group_of)]
    if found and found[0].anchor and found[0].anchor == _anchor(before):
        found[0] = found[0]._replace(begun=True)
    if found and found[-1].anchor and found[-1].anchor == _anchor(following):
        found[-1] = found[-1]._replace(goes_on=True)
    return found


def groups_in(sights: Sequence[MessageView]) -> set[bytes]:
    """The ids of the groups of these messages."""
    return {name for name in map(_group_of, sights) if name}


def _block(group_id: bytes, sights: Sequence[MessageView], missing: Mapping[bytes, Gaps]) -> Block:
    found = [row(one) for one in sights]
    lacks = missing.get(group_id)
    return Block(
        name=name_of(group_id) if group_id else "",
        anchor=_anchor(group_id),
        shade=shade_of(group_id),
        rows=found,
        begun=False,
        goes_on=False,
        missing="" if lacks is None or lacks.is_complete else in_words(lacks),
        held=list(dict.fromkeys(one.held for one in found if one.held)),
        states=list(dict.fromkeys(one.sight.state for one in found)),
        segments=sum(1 for one in found if one.segment),
        length=sum(one.sight.length for one in found),
        since=min(one.sight.put_at for one in found),
    )


def without_holders(sights: Sequence[MessageView]) -> Sequence[MessageView]:
    """The messages without their holders, for visitors without the authority to see holders."""
    return [replace(one, holder=None) for one in sights]


def row(sight: MessageView) -> MessageRow:
    """A message as a row."""
    message, group_id = sight.message, group_of(sight.message)
    text = text_of(message)
    return MessageRow(
        sight=sight,
        uid=uid_text(uid_in(message)),
        place=place_of(sight) or "none",
        group=name_of(group_id) if group_id else "",
        shade=shade_of(group_id),
        number=_number(message),
        segment=_segment(message),
        held="" if sight.holder is None else by_whom(sight.holder),
        body=_body(message, text),
        is_text=text is not None,
        properties=", ".join(f"{name}={value!r}" for name, value in list(message.properties.items())[:4]),
        message_id=id_text(message.message_id),
        correlation_id=id_text(message.correlation_id),
    )


def _body(message: Message, text: str | None) -> str:
    """The beginning of a body in one line; in hex if it is not text."""
    if text is None:
        return f"{message.body[:HEX_SHOWN].hex(' ')}{' …' if message.length > HEX_SHOWN else ''}"
    return f"{one_line(text)}{'…' if message.length > len(message.body) else ''}"


def by_whom(holder: Holder) -> str:
    """The holder of a message, in the words of the page of held messages."""
    process = "" if holder.process is None else f" ({holder.process})"
    if holder.kind == "session":
        return f"unit of {holder.program.name}{process}"
    if holder.kind == "handle":
        return f"browse lock of {holder.program.name}{process}"
    kinds = {"prepared": "prepared unit", "confirm": "confirm id", "lock": "lock id"}
    return f"{kinds.get(holder.kind, holder.kind)} {holder.name} of {holder.program.name}"


def uid_in(message: Message) -> UniqueId:
    """The unique id of a message on a queue. Every such message has one."""
    assert message.uid is not None, "every message on a queue has a unique id"
    return message.uid


def uid_text(uid: UniqueId) -> str:
    """A unique id in addresses and forms."""
    return f"{uid.number}-{uid.origin}"


def uid_of(text: str) -> UniqueId | None:
    """Reads the text of `uid_text`; None: it is not a unique id."""
    number, separator, origin = text.partition("-")
    is_one = (
        separator and origin.isprintable() and origin and number.isascii() and number.isdecimal() and len(number) < 20
    )
    return UniqueId(origin, int(number)) if is_one else None


def id_text(value: bytes) -> str:
    """An id in hex; empty if it has only NULs."""
    return "" if value == NO_ID else value.rstrip(b"\0").hex()


def shade_of(group_id: bytes) -> int:
    """The colour of a group; 0 for messages in none."""
    return 1 + zlib.crc32(group_id) % SHADES if group_id else 0


def _anchor(group_id: bytes) -> str:
    return group_id.rstrip(b"\0").hex()


def _group_of(sight: MessageView) -> bytes:
    return group_of(sight.message)


def _number(message: Message) -> str:
    if not message.flags & ANY_GROUP:
        return ""
    return f"{message.sequence_number}{' last' if message.flags & LAST_IN_GROUP else ''}"


def _segment(message: Message) -> str:
    if not message.flags & ANY_SEGMENT:
        return ""
    return f"+{message.offset}{' last' if message.flags & LAST_SEGMENT else ''}"


def chosen(names: Sequence[str]) -> Sequence[str]:
    """The chosen columns in their order; the usual ones if none is chosen."""
    return [name for name in COLUMNS if name in (names or USUAL)]


def fitting(columns: Sequence[str], sights: Sequence[MessageView]) -> Sequence[str]:
    """The columns for these messages: without the group if none is in one, with the priority where they differ."""
    names = set(columns) - (set() if groups_in(sights) else {"group"})
    if len({one.message.priority for one in sights}) > 1:
        names.add("priority")
    return [name for name in COLUMNS if name in names]


def fields(order: str, chosen_columns: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The columns of a table. In logical order the group has no column, because its name stands above its messages."""
    for name in chosen_columns:
        if not (order == "logical" and name == "group"):
            yield name, COLUMNS[name]
