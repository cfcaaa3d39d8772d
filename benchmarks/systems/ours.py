"""Our own store, through the public calls."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import apsw

import inorder
from benchmarks.systems import BODY, FILL_BLOCK, System
from inorder import Flags, Message

QUEUE = "BENCH"
OURS = "inorder"
OURS_ON_POSTGRESQL = f"{OURS} on PostgreSQL"


def open_store(folder: Path) -> inorder.QueueManager:
    """Opens a connection to the store in this folder, made at first use. Only this function knows how to open it."""
    return inorder.connect(folder / "store.db", program="bench")


def settings_of(qm: inorder.QueueManager) -> str:
    """Returns the version and durability of the store that `open_store` opens."""
    return (
        f"inorder {inorder.__version__}, SQLite {apsw.sqlite_lib_version()}, APSW {apsw.apsw_version()}, log (WAL), "
        "fdatasync of the log before each promise, shared by those who wait"
    )


@contextlib.contextmanager
def open_queue(folder: Path, queue: str = QUEUE) -> Iterator[inorder.QueueManager]:
    """Yields a connection to a store with this queue, which is made if it is missing."""
    with open_store(folder) as qm:
        with contextlib.suppress(inorder.ObjectExists):
            qm.create_queue(queue)
        yield qm


def interleaved(groups: Sequence[bytes], sequence_numbers: Iterable[int], last: int | None) -> Iterator[Message]:
    """Yields members of groups, interleaved; `last` is the sequence number that ends each of them."""
    for number in sequence_numbers:
        flags = Flags.LAST_IN_GROUP if number == last else Flags.IN_GROUP
        for group in groups:
            yield Message(BODY, group_id=group, sequence_number=number, flags=flags)


def group_ids(count: int, first: int = 0) -> list[bytes]:
    """Returns ascending group ids of 24 bytes each."""
    return [number.to_bytes(24, "big") for number in range(first + 1, first + count + 1)]


def put_all(qm: inorder.QueueManager, messages: Iterable[Message], queue: str = QUEUE) -> None:
    """Puts any number of messages, one block in each transaction."""
    block: list[Message] = []
    for message in messages:
        block.append(message)
        if len(block) == FILL_BLOCK:
            qm.put_many(queue, block)
            block = []
    if block:
        qm.put_many(queue, block)


class Ours(System):
    """`inorder` with a store in a file."""

    name = OURS
    role = "ours"

    def __init__(self, folder: Path, port: int = 0) -> None:
        self.queue = QUEUE
        self._stack = contextlib.ExitStack()
        self.qm = self._stack.enter_context(open_queue(folder))
        self._groups = 0

    def settings(self) -> str:
        return settings_of(self.qm)

    def close(self) -> None:
        self._stack.close()

    def put(self, body: bytes) -> None:
        self.qm.put(self.queue, body)

    def get(self) -> None:
        self.qm.get(self.queue)

    def put_many(self, bodies: Sequence[bytes]) -> None:
        self.qm.put_many(self.queue, bodies)

    def get_many(self, count: int) -> None:
        self.qm.get_many(self.queue, count)

    def get_many_in_unit(self, count: int) -> None:
        with self.qm.unit_of_work():
            self.qm.get_many(self.queue, count)

    def get_put(self, body: bytes) -> None:
        with self.qm.unit_of_work():
            self.qm.get(self.queue)
            self.qm.put(self.queue, body)

    def stock_groups(self, groups: int, members: int) -> None:
        put_all(self.qm, interleaved(group_ids(groups, self._groups), range(1, members + 1), members), self.queue)
        self._groups += groups

    def get_group(self) -> None:
        with self.qm.unit_of_work():
            for _ in self.qm.get_group(self.queue):
                pass

    def empty(self) -> None:
        with contextlib.suppress(inorder.NoMessageAvailable):
            while True:
                self.qm.get_many(self.queue, FILL_BLOCK)
