"""What an `EnteredRow` says of its group and its reader (B-45)."""

from __future__ import annotations

import json
from typing import NamedTuple

from ..message import Message, Place, UniqueId
from .damage import decodes

_NOTHING = Message().row
_UID = Message.FIELDS["uid"].index


class Entry(NamedTuple):
    """What an entry says of the group and its reader.

    Args:
        place: where its first message stood; the group still stands there.
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
        head = [value.hex() if isinstance(value, bytes) else value for value in self.head.row]
        return json.dumps([self.place, head, self.connection, self.by, self.since])


@decodes("an entry of a group")
def entry_of(text: str) -> Entry:
    """The reverse of `Entry.as_text`."""
    place, values, connection, by, since = json.loads(text)
    row = [
        bytes.fromhex(value) if isinstance(usual, bytes) else value
        for value, usual in zip(values, _NOTHING, strict=True)
    ]
    row[_UID] = UniqueId(*row[_UID])
    return Entry(Place(*place), Message.from_row(tuple(row)), connection, by, since)
