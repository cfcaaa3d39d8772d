"""Gets the group that `group_putter.py` puts, a few in each unit of work. It may be killed at any moment.

    python examples/group_getter.py orders.db
    python examples/group_getter.py orders.db --wait 60          # may be started before the putter

It need not wait for the whole group: it gets the available members, in order, at most four in a unit of work. In the
same unit it puts each result on another queue, and a note about the progress of the group on the status queue. After a
kill nothing is done twice and nothing is left out.

After a restart the handle does not know its place in the group, and in logical order a group can only be entered at its
first message. So the first get names the group and the sequence number (the noted number + 1) by match; from then on it
is logical order again.

If the next member does not come in time, the members so far are committed, and the note records where to continue.

The status queue is open for one getter at a time: a second one gets `ObjectInUse`, unless the first one is dead.

Shown: seed 003; lifecycle C-9, C-10, C-12, C-16.
"""

from __future__ import annotations

import argparse
import contextlib
from typing import NamedTuple

import inorder
from inorder import Match

LINES, DONE, STATUS = "LINES", "DONE", "GETTER.STATUS"


class Place(NamedTuple):
    """The progress of a group, got and committed: the note on the status queue."""

    group_id: bytes
    number: int

    def to_bytes(self) -> bytes:
        """The note as text, readable for a person who browses the status queue."""
        return f"{self.group_id.hex()} {self.number}".encode()

    @classmethod
    def of(cls, message: inorder.Message) -> Place:
        """Reads a note."""
        group_id, number = message.body.decode().split()
        return cls(bytes.fromhex(group_id), int(number))


class Getter:
    """Gets groups member by member, one unit of work at a time."""

    def __init__(
        self, qm: inorder.QueueManager, lines: inorder.Queue, status: inorder.Queue, most: int, wait: float
    ) -> None:
        self._qm, self._lines, self._status, self._most, self._wait = qm, lines, status, most, wait
        self._knows_place = False  # whether the handle `lines` knows its place in the group

    def get_part(self) -> None:
        """Runs one unit of work: some more members, and the new note.

        Raises: NoMessageAvailable, the next member did not come in time.
        """
        with self._qm.unit_of_work():
            saved = self._take_status()
            got = [self._get_line(saved)]
            with contextlib.suppress(inorder.NoMessageAvailable):
                while got[-1].group_status == "in" and len(got) < self._most:
                    got.append(self._get_line(saved))
            for message in got:
                self._qm.put(DONE, b"done: " + message.body)
            last = got[-1]
            if last.group_status == "in":
                self._status.put(Place(last.group_id, last.sequence_number).to_bytes())
        told = ", ".join(f"{message.sequence_number} {message.body.decode()}" for message in got)
        print(f"committed: {told}{', the last' if last.group_status == 'last' else ''}")

    def _take_status(self) -> Place | None:
        """Gets the note of the unfinished group, if there is one."""
        try:
            saved = Place.of(self._status.get())
        except inorder.NoMessageAvailable:
            return None
        if not self._knows_place:
            print(f"a group was not finished: continuing after {saved.number}")
        return saved

    def _get_line(self, saved: Place | None) -> inorder.Message:
        """Gets the next member, with its segments joined."""
        if saved is None or self._knows_place:
            message = self._lines.get(logical=True, complete=True, wait=self._wait)
        else:
            following = Match(group_id=saved.group_id, sequence_number=saved.number + 1)
            message = self._lines.get(match=following, complete=True, wait=self._wait)
        self._knows_place = True
        return message


def create_queues(qm: inorder.QueueManager) -> None:
    """Makes the missing queues. The order of notes matters, so every reader of them is strict."""
    for name in (LINES, DONE):
        with contextlib.suppress(inorder.ObjectExists):
            qm.create_queue(name)
    with contextlib.suppress(inorder.ObjectExists):
        qm.create_queue(STATUS, read_order="required")


def main() -> None:
    """Gets all available groups, and those that arrive in time."""
    parser = argparse.ArgumentParser(description="Gets groups of lines, over several units of work.")
    parser.add_argument("store", help="the file of the queue manager, made if it is missing")
    parser.add_argument("--most", type=int, default=4, help="lines in a unit of work (default: 4)")
    parser.add_argument("--wait", type=float, default=0, help="seconds to wait for the next line (default: 0)")
    arguments = parser.parse_args()
    if arguments.most < 1:
        parser.error(f"--most {arguments.most}: say 1 or more")
    if arguments.wait < 0:
        parser.error(f"--wait {arguments.wait}: say 0 or more seconds")
    with inorder.connect(arguments.store) as qm:
        create_queues(qm)
        with qm.open(LINES, input="shared") as lines, qm.open(STATUS, input="exclusive", output=True) as status:
            getter = Getter(qm, lines, status, arguments.most, arguments.wait)
            with contextlib.suppress(inorder.NoMessageAvailable):
                while True:
                    getter.get_part()
        unfinished = qm.depth(STATUS)
        print("the rest of a group is not there yet" if unfinished else "no group is left")


if __name__ == "__main__":
    main()
