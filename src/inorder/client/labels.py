"""Short labels for messages in lists: group, place, beginning of the body, missing parts."""

from __future__ import annotations

import codecs
from typing import Final

from ..model.message import Message
from .inspection import Gaps, MessageView

GENERATED_ID: Final = b"AMQ "
NAME_WIDTH: Final = 24


def name_of(group_id: bytes) -> str:
    """Returns a short form of a group id: its number if a queue manager generated it, its text, or hex."""
    if group_id.startswith(GENERATED_ID):
        return f"#{int.from_bytes(group_id[16:], 'big')}"
    short = group_id.rstrip(b"\0")
    text = short.decode("ascii", "replace")
    if text.isprintable() and "\ufffd" not in text:
        return _cut(text)
    return _cut(short.hex())


def _cut(text: str) -> str:
    return text if len(text) <= NAME_WIDTH else f"{text[: NAME_WIDTH - 1]}…"


def place_of(sight: MessageView) -> str:
    """Returns the number of a place; after the first message of a unit, also the message's number in the unit."""
    place = sight.place
    if place is None:
        return ""
    return f"{place.number}.{place.ordinal}" if place.ordinal else str(place.number)


def text_of(message: Message) -> str | None:
    """Returns the beginning of a body as text, without a character that the cut has split; None: it is not text."""
    return text_in(message.body, is_whole=message.length <= len(message.body))


def text_in(data: bytes, *, is_whole: bool) -> str | None:
    """Returns the text in UTF-8, without a last character that was cut in two; None: the bytes are not text."""
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(data, final=is_whole)
    except UnicodeDecodeError:
        return None


def in_words(missing: Gaps) -> str:
    """Lists the missing parts: "sequence 3, 5-7, bytes 0-99 of 2 and the last"; outside a group "bytes 0-99"."""
    found = []
    alone = not (missing.sequences or missing.last) and {one[0] for one in missing.segments} | {*missing.unended} == {1}
    if missing.sequences:
        found.append(f"sequence {', '.join(_range(*one) for one in missing.sequences[:5])}")
    holes, ends = missing.segments[:3], missing.unended[:3]
    found += [f"bytes {start}-{end - 1}{'' if alone else f' of {number}'}" for number, start, end in holes]
    found += [f"the last segment{'' if alone else f' of {number}'}" for number in ends]
    told = missing.more or len(missing.sequences) > 5 or len(missing.segments) > 3 or len(missing.unended) > 3
    if told:
        found.append("more")
    if missing.last:
        found.append("the last")
    return " and ".join(filter(None, (", ".join(found[:-1]), *found[-1:])))


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"
