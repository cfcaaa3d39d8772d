"""Who is inside which group (B-45): what verbs do to the `EnteredRow`s of a queue, and whom they hold back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal, NamedTuple

from ..message import Message, Place, UniqueId
from ..rules.grouping import Wanted
from ..rules.ordering import Kind, Pending, Standing
from .queued import QueuedMessage, Reader, pending_under
from .tables import EnteredRow, ReaderId

if TYPE_CHECKING:
    from .queue import LocalQueue
    from .verb import Verb

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


def entry_of(text: str) -> Entry:
    """The reverse of `Entry.as_text`."""
    place, values, connection, by, since = json.loads(text)
    row = [
        bytes.fromhex(value) if isinstance(usual, bytes) else value
        for value, usual in zip(values, _NOTHING, strict=True)
    ]
    row[_UID] = UniqueId(*row[_UID])
    return Entry(Place(*place), Message.from_row(tuple(row)), connection, by, since)


def held_back(verb: Verb, queue: LocalQueue, wanted: Wanted, reader: Reader) -> list[Standing[QueuedMessage]]:
    """Groups that the call would choose were nobody else inside them, in order of place."""
    if not queue.has_entries:
        return []
    found: list[Standing[QueuedMessage]] = []
    for one in verb.backend.select(EnteredRow, queue=queue.id):
        entry = entry_of(one.entry)
        if wanted.match.accepts(entry.head):
            found += [Standing(entry.place, None, pending) for pending in _pending(verb, one, entry, reader)]
    return sorted(found, key=lambda one: one.place)


def _pending(verb: Verb, one: EnteredRow, entry: Entry, reader: Reader) -> list[Pending]:
    """Who holds this reader back at the place of a group that was entered."""
    takers = verb.backend.takers(one.queue, one.group_id, reader.now)
    found = [pending_under(verb.unit(unit), Kind.OUT, entry.place) for unit in takers if unit != reader.unit]
    if one.reader is not None and one.reader != reader.id:
        found.append(Pending(Kind.OUT, entry.place, entry.connection, entry.by, entry.since))
    return found


def enter(verb: Verb, queue: LocalQueue, reader: ReaderId, group_id: bytes, entry: Entry, unit: int | None) -> None:
    """A reader enters a group; the entry is taken back if the unit is backed out."""
    number = next(verb.numbers)
    verb.backend.save(EnteredRow(number, queue.id, group_id, reader, unit, None, entry.as_text()))
    queue.has_entries = True


def leave(
    verb: Verb,
    queue: LocalQueue,
    reader: ReaderId,
    unit: int | None,
    open_unit: int | None,
    *,
    but: bytes | None = None,
) -> None:
    """The reader is inside no group any more, or none but one (R3.30); in a unit, when that is committed.

    Args:
        open_unit: its connection's unit of work. A group of which that holds a member is left when it is committed,
            however the reader went: a back out puts its handle back inside (C-12).
    """
    if not queue.has_entries:
        return
    for one in verb.backend.select(EnteredRow, queue=queue.id, reader=reader):
        if one.left_in is None and one.group_id != but:
            held = open_unit is not None and open_unit in verb.backend.takers(queue.id, one.group_id, None)
            left_in = open_unit if held else unit
            verb.backend.save(one._replace(left_in=left_in, reader=None if left_in is None else reader))


def leave_all(verb: Verb, queue: LocalQueue, reader: ReaderId) -> None:
    """The reader is inside no group any more, whatever becomes of units in which it entered or left some."""
    if queue.has_entries:
        verb.touch(queue)
        for one in verb.backend.select(EnteredRow, queue=queue.id, reader=reader):
            verb.backend.save(one._replace(reader=None))


def settle(verb: Verb, queue: LocalQueue, unit: int, outcome: Literal["commit", "back_out", "prepare"]) -> None:
    """What the unit has done to the groups that readers are inside counts, or is taken back.

    To prepare it is a commit for handles: who has entered in it is inside, and who has left stays away if it is
    backed out; but the groups stay theirs until then (R5.10, B-19).
    """
    if not queue.has_entries:
        return
    for one in verb.backend.select(EnteredRow, queue=queue.id):
        if unit not in (one.entered_in, one.left_in):
            continue
        if outcome == "back_out" and one.entered_in == unit:
            verb.backend.remove_records(EnteredRow, id=one.id)
            continue
        changed = one._replace(entered_in=None if one.entered_in == unit else one.entered_in)
        if one.left_in == unit and outcome != "prepare":
            changed = changed._replace(left_in=None, reader=None if outcome == "commit" else one.reader)
        verb.backend.save(changed)


def commit_idle(verb: Verb, unit: int) -> None:
    """A confirm id that holds nothing any more has been confirmed."""
    for one in verb.backend.select(EnteredRow, left_in=unit):
        verb.backend.save(one._replace(reader=None, left_in=None))


def forget(verb: Verb, queue: LocalQueue) -> None:
    """Where nobody is inside and no unit holds a member the group holds nobody back."""
    for one in verb.backend.select(EnteredRow, queue=queue.id, reader=None):
        if not verb.backend.takers(queue.id, one.group_id, None):
            verb.backend.remove_records(EnteredRow, id=one.id)
