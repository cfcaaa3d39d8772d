"""Part 3: the disclosure's example. Two processes write in units of work, four read: early or late, get or browse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from inorder.errors import NoMessageAvailable, OrderPending
from inorder.model.attributes import OrderRule
from inorder.model.options import AskedOrder

from .processes import Cast, Process
from .screen import Screen
from .worker import END


class WriterStep(NamedTuple):
    """A step of a writer: a put, or without a message a commit."""

    writer: str
    message: str = ""

    def __str__(self) -> str:
        return f"{self.writer} puts {self.message}" if self.message else f"{self.writer} commits"


STEPS: Sequence[WriterStep] = (
    WriterStep("A", "A1"),
    WriterStep("B", "B1"),
    WriterStep("A", "A2"),
    WriterStep("A"),
    WriterStep("B", "B2"),
    WriterStep("B"),
)
WRITERS = ("A", "B")
READERS = ("late getter", "eager getter", "late browser", "eager browser")
COLUMN = 14

Seen = list[list[str]]  # the messages that a reader has read after each of the six steps
DOCUMENTED: Mapping[tuple[OrderRule, AskedOrder], tuple[str, ...]] = {
    ("put", "relaxed"): ("A1 B1 A2 B2", "A1 A2 B1 B2", "A1 B1 A2 B2", "A1 A2 B2"),
    ("put", "strict"): ("A1 B1 A2 B2",) * 4,
    ("prepare", "relaxed"): ("A1 A2 B1 B2",) * 4,
    ("prepare", "strict"): ("A1 A2 B1 B2",) * 4,
}


class EagerGetter:
    """A process that always waits for messages, and its output."""

    def __init__(self, cast: Cast, process: Process, queue: str, asked: AskedOrder) -> None:
        self._cast, self._process, self._queue = cast, process, queue
        self._looking = cast.qm.open(queue, browse=True, read_order=asked)
        self._told = 0
        process.begin("follow", queue=queue, read_order=asked)

    def _has_all(self) -> bool:
        """Whether it has read every message that it can read."""
        try:
            self._looking.browse_first()
        except (NoMessageAvailable, OrderPending):
            return True
        return False

    def catch_up(self, put: int) -> list[str]:
        """Waits until it has read all that it can; returns the messages since the last call.

        Args:
            put: how many messages have been put, committed or not.
        """
        self._cast.wait_until(self._has_all, f"{self._process.name} does not read all that it can")
        gone = put - self._cast.qm.depth(self._queue) - self._told
        self._told += gone
        return [self._process.answer() for _ in range(gone)]

    def end(self) -> None:
        """Ends the reader after the last write."""
        self._looking.close()
        self._cast.qm.put(self._queue, END.encode())
        assert self._process.answer() == END


def four_readers(cast: Cast, order: OrderRule, asked: AskedOrder) -> dict[str, Seen]:
    """Runs the example with its four readers. Each has its own queue, and the writers put on all four."""
    queues = [cast.new_queue(order) for _ in READERS]
    late_getter, eager_getter, late_browser, eager_browser = (cast.process(name) for name in READERS)
    eager = EagerGetter(cast, eager_getter, queues[1], asked)
    got, browsed, put = [], [], 0
    for step in STEPS:
        writer = cast.process(step.writer)
        if step.message:
            writer.do("put", queues=queues, name=step.message, syncpoint=True)
            put += 1
        else:
            writer.do("commit")
        got.append(eager.catch_up(put))
        browsed.append(eager_browser.do("browse_on", queue=queues[3], read_order=asked))
    eager.end()
    late: list[Seen] = [[[] for _ in STEPS[1:]] for _ in range(2)]
    late[0].append(late_getter.do("drain", queue=queues[0], read_order=asked))
    late[1].append([name for name, *_ in late_browser.do("browse", queue=queues[2], read_order=asked)])
    return dict(zip(READERS, (late[0], got, late[1], browsed), strict=True))


def table(columns: dict[str, Seen]) -> list[str]:
    """Shows the steps and the messages that each reader read after them, side by side."""
    lines = ["      " + "".join(text.ljust(COLUMN) for text in ("", *columns))]
    for n, step in enumerate(STEPS):
        cells = "".join(" ".join(seen[n]).ljust(COLUMN) for seen in columns.values())
        lines.append(f"  t{n + 1}  {step!s:{COLUMN}}{cells}")
    return [line.rstrip() for line in lines]


def readers_side_by_side(screen: Screen, cast: Cast) -> None:
    """Shows part 3: four readers of the same writers."""
    screen.title("3. Four readers, two order rules, relaxed and strict")
    for (order, asked), documented in DOCUMENTED.items():
        columns = four_readers(cast, order, asked)
        print(f"  {order.upper()} order, {asked}")
        print("\n".join(table(columns)))
        got = tuple(" ".join(name for step in seen for name in step) for seen in columns.values())
        screen.check("the messages of each reader, over all steps", got, documented)
        print()
    print("  Relaxed, in PUT order: it depends on when you look, and the eager browser")
    print("  misses B1. Strict: all read the same; in PUT order they wait for B's unit.")
