"""Puts groups as `group_putter.py` does, with a cheaper note: no get in each unit of work.

    python examples/group_putter_cheaper.py orders.db --hand-in flour sugar butter eggs milk salt yeast
    python examples/group_putter_cheaper.py orders.db          # again: continues where it was stopped, if it was

Instead of getting the old note and putting a new one, each unit of work adds its note to the status queue as one more
segment of one logical message. The unit that ends the group adds the last segment. Then one get of the complete message
removes all notes at once.

After a restart the putter browses the notes in logical order up to the last one. If that is a last segment, the group
is finished, and only the notes must be removed. Otherwise it continues after the noted number, and gives its first note
the offset after the last segment.

The status queue is open for one putter at a time: a second one gets `ObjectInUse`, unless the first one is dead.

Shown: seed 003, the note at the end of its putter; lifecycle C-11.
"""

from __future__ import annotations

import argparse
import contextlib
from typing import NamedTuple

import inorder
from inorder import Flags, Match, Message

DOCUMENTS, LINES, STATUS = "DOCUMENTS", "LINES", "CHEAPER.STATUS"


class Place(NamedTuple):
    """The progress of a group, put and committed, as a note records it."""

    document: bytes  # the message id of the document
    group_id: bytes
    number: int

    def to_message(self) -> Message:
        """The note as text, readable for a person who browses the status queue."""
        return Message(f"{self.group_id.hex()} {self.number}; ".encode(), correlation_id=self.document)

    @classmethod
    def of(cls, note: Message) -> Place:
        """Reads a note."""
        group_id, number = note.body.decode().rstrip("; ").split()
        return cls(note.correlation_id, bytes.fromhex(group_id), int(number))


class Putter:
    """Puts documents as groups, one unit of work at a time; begins where an earlier start was stopped."""

    def __init__(self, qm: inorder.QueueManager, lines: inorder.Queue, status: inorder.Queue, most: int) -> None:
        self._qm, self._lines, self._status, self._most = qm, lines, status, most
        self._place: Place | None = None  # of the unfinished group
        self._found: Message | None = None  # the last note of an earlier start, until a put continues after it
        note = self._last_note()
        if note is None:
            return
        if note.segment_status == "last":
            self._remove_notes()
            return
        self._place, self._found = Place.of(note), note
        print(f"a group was not finished: continuing after {self._place.number}")

    def _last_note(self) -> Message | None:
        notes = list(self._status.browse(logical=True))
        return notes[-1] if notes else None

    def _remove_notes(self) -> None:
        self._status.get(complete=True)

    def put_part(self) -> bool:
        """Runs one unit of work: some more lines, and one more note. Returns False if there is no document."""
        with self._qm.unit_of_work():
            document = self._look_at_document()
            if document is None:
                return False
            done = self._place.number if self._place is not None else 0
            texts = document.body.decode().split("\n")
            part = list(enumerate(texts, 1))[done : done + self._most]
            puts = [
                self._put_line(number, text, last=number == len(texts), first=number == done + 1)
                for number, text in part
            ]
            put = puts[-1]
            place = Place(document.message_id, put.group_id, put.sequence_number)
            ends = put.sequence_number == len(texts)
            self._put_note(place, last=ends)
            if ends:
                self._qm.get(DOCUMENTS, match=Match(message_id=document.message_id))
        self._place, self._found = (None if ends else place), None
        told = ", ".join(f"{number} {text}" for number, text in part)
        print(f"committed: {told}{', the last' if ends else ''}")
        if ends:
            self._remove_notes()
        return True

    def _look_at_document(self) -> Message | None:
        """Returns the document that the note names, or the first one; the document stays on its queue."""
        match = Match(message_id=self._place.document) if self._place is not None else Match()
        return next(self._qm.browse(DOCUMENTS, match=match), None)

    def _put_line(self, number: int, text: str, *, last: bool, first: bool) -> inorder.PutResult:
        flags = Flags.LAST_IN_GROUP if last else Flags.IN_GROUP
        if self._found is None or not first:
            return self._lines.put(text.encode(), flags=flags, logical=True)
        group_id = Place.of(self._found).group_id
        return self._lines.put(text.encode(), flags=flags, group_id=group_id, sequence_number=number)

    def _put_note(self, place: Place, *, last: bool) -> None:
        flags = Flags.LAST_SEGMENT if last else Flags.SEGMENT
        if self._found is None:
            self._status.put(place.to_message(), flags=flags, logical=True)
        else:
            behind = self._found.offset + self._found.length
            self._status.put(place.to_message(), flags=flags, group_id=self._found.group_id, offset=behind)


def create_queues(qm: inorder.QueueManager) -> None:
    """Makes the missing queues. The order of notes matters, so every reader of them is strict."""
    for name in (DOCUMENTS, LINES):
        with contextlib.suppress(inorder.ObjectExists):
            qm.create_queue(name)
    with contextlib.suppress(inorder.ObjectExists):
        qm.create_queue(STATUS, read_order="required")


def main() -> None:
    """Puts all documents."""
    parser = argparse.ArgumentParser(description="Puts documents as groups of lines, over several units of work.")
    parser.add_argument("store", help="the file of the queue manager, made if it is missing")
    parser.add_argument("--hand-in", nargs="+", metavar="LINE", help="first hand in a document of these lines")
    parser.add_argument("--most", type=int, default=3, help="lines in a unit of work (default: 3)")
    arguments = parser.parse_args()
    if arguments.most < 1:
        parser.error(f"--most {arguments.most}: say 1 or more")
    with inorder.connect(arguments.store) as qm:
        create_queues(qm)
        if arguments.hand_in:
            qm.put(DOCUMENTS, "\n".join(arguments.hand_in).encode())
        with (
            qm.open(LINES, output=True) as lines,
            qm.open(STATUS, input="exclusive", output=True, browse=True) as status,
        ):
            putter = Putter(qm, lines, status, arguments.most)
            while putter.put_part():
                pass
        print("no document is left")


if __name__ == "__main__":
    main()
