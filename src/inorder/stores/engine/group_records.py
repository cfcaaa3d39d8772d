"""Reads the group and the reader in an `EnteredRow` (B-45)."""

from __future__ import annotations

import json
from typing import NamedTuple

from ...model.fields import LATER
from ...model.message import Message, Place, Transmission, UniqueId
from ...model.properties import NO_PROPERTIES, Properties, is_readable
from ..seam.damage import decodes

_NOTHING = Message().row
_EARLIER = len(_NOTHING) - len(LATER)
_UID, _PROPERTIES = Message.FIELDS["uid"].index, Message.FIELDS["properties"].index
_TRANSMISSION = Message.FIELDS["transmission"].index


class Entry(NamedTuple):
    """The contents of an entry: the group and its reader.

    Args:
        place: the place of its first message, which the group keeps.
        head: that message, without its body.
        connection: the reader's; None for an application.
        by: the name of the reader's program, or of the application.
    """

    place: Place
    head: Message
    connection: int | None
    by: str
    since: float

    def as_text(self) -> str:
        """Returns a JSON array; the properties of the head, if it has any, are its last item."""
        head = [value.hex() if isinstance(value, bytes) else value for value in self.head.row]
        del head[_PROPERTIES]
        text = self.head.properties.text
        return json.dumps([self.place, head, self.connection, self.by, self.since, *([] if text is None else [text])])


@decodes("an entry of a group")
def entry_of(text: str) -> Entry:
    """The reverse of `Entry.as_text`."""
    place, values, connection, by, since, *properties = json.loads(text)
    values.insert(_PROPERTIES, _properties_of(*properties))
    values += _NOTHING[max(len(values), _EARLIER) :]  # an earlier release wrote it
    row = [
        bytes.fromhex(value) if isinstance(usual, bytes) else value
        for value, usual in zip(values, _NOTHING, strict=True)
    ]
    row[_UID] = UniqueId(*row[_UID])
    if row[_TRANSMISSION] is not None:
        row[_TRANSMISSION] = Transmission(*row[_TRANSMISSION])
    return Entry(Place(*place), Message.from_row(tuple(row)), connection, by, since)


def _properties_of(text: str | None = None) -> Properties:
    if text is None:
        return NO_PROPERTIES
    if not is_readable(text):
        raise ValueError("its properties cannot be read")
    return Properties.from_text(text)
