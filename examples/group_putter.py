"""Puts the lines of a document as one group, a few in each unit of work. It may be killed at any moment.

    python examples/group_putter.py orders.db --hand-in flour sugar butter eggs milk salt yeast
    python examples/group_putter.py orders.db          # again: continues where it was stopped, if it was

A long group need not wait for its last member: each unit of work puts three members, and puts a note about the progress
of the group on a status queue. Both are committed, or neither, so the note is always true. Every unit begins like a
restart, by getting the note. A note exists only while a group is unfinished.

After a restart the handle does not know its place in the group. So its first put names the group and the sequence
number itself (the noted number + 1), and is not in logical order; from then on the queue manager counts again.

The document stays on its queue until the last unit of work. So a start after the end of a group finds nothing to do.

The status queue is open for one putter at a time: a second one gets `ObjectInUse`, unless the first one is dead.

Shown: seed 003; lifecycle C-6, C-7, C-8, C-12, C-16.
"""

from __future__ import annotations

import argparse
import contextlib
from typing import NamedTuple

import inorder
from inorder import Flags, Match

DOCUMENTS, LINES, STATUS = "DOCUMENTS", "LINES", "PUTTER.STATUS"


class Place(NamedTuple):
    """The progress of a group, put and committed: the note on the status queue."""

    document: bytes  # the message id of the document
    group_id: bytes
    number: int

    def to_message(self) -> inorder.Message:
        """The note as text, readable for a person who browses the status queue."""
        return inorder.Message(f"{self.group_id.hex()} {self.number}".encode(), correlation_id=self.document)

    @classmethod
    def of(cls, message: inorder.Message) -> Place:
        """Reads a note."""
        group_id, number = message.body.decode().split()
        return cls(message.correlation_id, bytes.fromhex(group_id), int(number))


class Putter:
    """Puts documents as groups, one unit of work at a time."""

    def __init__(self, qm: inorder.QueueManager, lines: inorder.Queue, status: inorder.Queue, most: int) -> None:
        self._qm, self._lines, self._status, self._most = qm, lines, status, most
        self._knows_place = False  # whether the handle `lines` knows its place in the group

    def put_part(self) -> bool:
        """Runs one unit of work: some more lines, and the new note. Returns False if there is no document."""
        with self._qm.unit_of_work():
            saved = self._take_status()
            document = self._look_at_document(saved)
            if document is None:
                return False
            done = saved.number if saved is not None else 0
            texts = document.body.decode().split("\n")
            part = list(enumerate(texts, 1))[done : done + self._most]
            put = [self._put_line(saved, number, text, last=number == len(texts)) for number, text in part][-1]
            if put.sequence_number < len(texts):
                self._status.put(Place(document.message_id, put.group_id, put.sequence_number).to_message())
            else:
                self._qm.get(DOCUMENTS, match=Match(message_id=document.message_id))
        told = ", ".join(f"{number} {text}" for number, text in part)
        print(f"committed: {told}{', the last' if put.flags == Flags.LAST_IN_GROUP else ''}")
        return True

    def _take_status(self) -> Place | None:
        """Gets the note of the unfinished group, if there is one."""
        try:
            saved = Place.of(self._status.get())
        except inorder.NoMessageAvailable:
            return None
        if not self._knows_place:
            print(f"a group was not finished: continuing after {saved.number}")
        return saved

    def _look_at_document(self, saved: Place | None) -> inorder.Message | None:
        """Returns the document that the note names, or the first one; the document stays on its queue."""
        match = Match(message_id=saved.document) if saved is not None else Match()
        return next(self._qm.browse(DOCUMENTS, match=match), None)

    def _put_line(self, saved: Place | None, number: int, text: str, *, last: bool) -> inorder.PutResult:
        flags = Flags.LAST_IN_GROUP if last else Flags.IN_GROUP
        if saved is None or self._knows_place:
            put = self._lines.put(text.encode(), flags=flags, logical=True)
        else:
            put = self._lines.put(text.encode(), flags=flags, group_id=saved.group_id, sequence_number=number)
        self._knows_place = True
        return put


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
        with qm.open(LINES, output=True) as lines, qm.open(STATUS, input="exclusive", output=True) as status:
            putter = Putter(qm, lines, status, arguments.most)
            while putter.put_part():
                pass
        print("no document is left")


if __name__ == "__main__":
    main()
