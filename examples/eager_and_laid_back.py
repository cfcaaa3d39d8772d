"""Two programs write in units of work, and four read: eager or laid back, getting or browsing, relaxed or strict.

    python examples/eager_and_laid_back.py

A laid-back reader begins when everything is written. An eager one reads all it can after every step, like a program
that always waits on the queue. Two things decide whether both see the same order:

* the queue's order rule: a message gets its place at its put, or when its unit of work is prepared;
* the reader's choice: it keeps to that order (strict), or takes the available messages (relaxed).

In PUT order a relaxed reader's order depends on its timing, and the eager browser never sees B1: it has browsed past
B1's place when B commits. A strict reader waits after A1, because B1 is next and its outcome is still open. In PREPARE
order a message gets its place when it becomes visible, so all read the same without waiting.

At the end a strict reader really waits, on a thread, and is woken by B's commit.

`inorder.connect()` keeps everything in memory; with the path of a file the results are the same.

Shown: seed 002, its example; lifecycle B.0 to B.2.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Literal

import inorder

Order = Literal["put", "prepare"]
Asked = Literal["relaxed", "strict"]

STEPS = ("A puts A1", "B puts B1", "A puts A2", "A commits", "B puts B2", "B commits")
READERS = ("laid-back getter", "eager getter", "laid-back browser", "eager browser")


class Reader:
    """A reader with its own queue, and the messages that it has read after each step."""

    def __init__(self, name: str, read: Callable[[], inorder.Message]) -> None:
        self.name, self._read = name, read
        self._seen: list[list[str]] = []
        self._eager = name.startswith("eager")

    def after(self, step: int) -> None:
        """Reads all it can: an eager reader after each step, a laid-back one after the last."""
        now = self._eager or step == len(STEPS)
        self._seen.append(list(self._all()) if now else [])

    def _all(self) -> list[str]:
        seen: list[str] = []
        while True:
            try:
                seen.append(self._read().body.decode())
            except (inorder.NoMessageAvailable, inorder.OrderPending):  # none available, or none in its turn
                return seen

    def __str__(self) -> str:
        told = [f"{' '.join(names)} at t{step}" for step, names in enumerate(self._seen, 1) if names]
        return f"{self.name:18} {', then '.join(told)}"


def write(program: inorder.QueueManager, step: str, queues: Sequence[str]) -> None:
    """Does one step of a writer: a put on the queue of each reader, or a commit."""
    if step.endswith("commits"):
        program.commit()
    else:
        for queue in queues:
            program.put(queue, step.removeprefix(f"{step[0]} puts ").encode(), syncpoint=True)


def four_readers(qm: inorder.QueueManager, order: Order, asked: Asked) -> None:
    """Runs the six steps with all four readers."""
    queues = [f"{order}.{asked}.{number}".upper() for number in range(1, 5)]
    for name in queues:
        qm.create_queue(name, order=order)
    handles = [qm.open(name, input="shared", browse=True, read_order=asked) for name in queues]
    readers = [
        Reader(name, handle.get if name.endswith("getter") else handle.browse_next)
        for name, handle in zip(READERS, handles, strict=True)
    ]
    writers = {"A": qm.connect(program="A"), "B": qm.connect(program="B")}
    for number, step in enumerate(STEPS, 1):
        write(writers[step[0]], step, queues)
        for reader in readers:
            reader.after(number)
    print(f"{order.upper()} order, {asked} readers")
    for reader in readers:
        print(f"  {reader}")
    print()
    for handle in handles:
        handle.close()
    for writer in writers.values():
        writer.close()


def waiting_reader(qm: inorder.QueueManager) -> None:
    """Runs a strict reader that waits for B's outcome, on a thread with its own connection."""
    qm.create_queue("WAITED.FOR", order="put")
    a, b = qm.connect(program="A"), qm.connect(program="B")
    b.put("WAITED.FOR", b"B1", syncpoint=True)
    a.put("WAITED.FOR", b"A2")
    try:
        qm.get("WAITED.FOR", read_order="strict")
    except inorder.OrderPending as pending:
        print(f"A2 is withheld: an earlier message of {pending.by} is pending, kind {pending.kind!r}")

    def read() -> None:
        with qm.connect(program="reader") as own:
            for _ in range(2):
                message = own.get("WAITED.FOR", read_order="strict", wait=inorder.FOREVER)
                print(f"the reader that waited is given {message.body.decode()}")

    reader = threading.Thread(target=read)
    reader.start()
    while qm.inspect.order_view("WAITED.FOR").strict_waiters == 0:
        time.sleep(0.01)
    print("a strict reader waits; B commits")
    b.commit()
    reader.join()
    a.close()
    b.close()


def main() -> None:
    """Runs the example in two orders, read in two ways."""
    for number, step in enumerate(STEPS, 1):
        print(f"t{number}  {step}")
    print()
    with inorder.connect() as qm:
        for order in ("put", "prepare"):
            for asked in ("relaxed", "strict"):
                four_readers(qm, order, asked)
        waiting_reader(qm)


if __name__ == "__main__":
    main()
