"""The main job of this stage: order on a queue, shown on a real queue manager and checked as it is shown.

    inorder demo

Part 1 puts the eight messages of the classic picture (figure 2 of "Logical and physical ordering") and reads
them in physical and in logical order. Part 2 takes complete groups only. Part 3 runs the example of the strict
read order disclosure with its four readers, eager and laid back, getting and browsing, relaxed and strict, in PUT
and in PREPARE order. Part 4 is a tour of confirm ids, lock ids and undo. Whatever is printed was read from the
queue; what differs from the documents ends the program with status 1.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

from .attributes import OrderRule
from .errors import ConnectionBroken, NoMessageAvailable, OrderPending
from .manager import QueueManager, connect
from .message import IN_GROUP, LAST_IN_GROUP, LAST_SEGMENT, SEGMENT, Message
from .options import FOREVER, AskedOrder, Match

QUEUE = "ORDERS"
# Figure 2: name, group, sequence number, offset, flags.
FIGURE_2: Sequence[tuple[str, str, int, int, int]] = (
    ("A", "", 1, 0, 0),
    ("Y1", "Y", 1, 0, IN_GROUP),
    ("Z2", "Z", 2, 0, LAST_IN_GROUP),
    ("Y2", "Y", 2, 0, IN_GROUP),
    ("Y3.1", "Y", 3, 0, LAST_IN_GROUP | SEGMENT),
    ("Y3.2", "Y", 3, 4, LAST_IN_GROUP | LAST_SEGMENT),
    ("Z1", "Z", 1, 0, IN_GROUP),
    ("B", "", 1, 0, 0),
)
PHYSICAL = "A Y1 Z2 Y2 Y3.1 Y3.2 Z1 B".split()
LOGICAL = "A Y1 Y2 Y3.1 Y3.2 Z1 Z2 B".split()
COLOURS = {"Y": "\033[36m", "Z": "\033[35m", "": "\033[0m"}


class Screen:
    """Prints, in colour where somebody looks, and counts what is not as documented."""

    def __init__(self) -> None:
        self.colours = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        self.wrong = 0

    def title(self, text: str) -> None:
        print(f"\n{text}\n{'-' * len(text)}")

    def named(self, name: str, group: str, width: int) -> str:
        padded = name.ljust(width)
        return f"{COLOURS.get(group, '')}{padded}{COLOURS['']}" if self.colours else padded

    def check(self, text: str, got: object, documented: object) -> None:
        same = got == documented
        self.wrong += not same
        wrong = f"NOT AS DOCUMENTED, which is {documented}"
        print(f"  {'as documented' if same else self.alarm(wrong)}: {text}")

    def alarm(self, text: str) -> str:
        return f"\033[1;31m{text}\033[0m" if self.colours else text


def names(messages: Iterable[Message]) -> list[str]:
    """The bodies as text."""
    return [message.body.decode() for message in messages]


def put_figure_2(qm: QueueManager) -> None:
    """Puts the eight messages in their physical order."""
    for name, group, sequence_number, offset, flags in FIGURE_2:
        qm.put(
            QUEUE,
            name.encode(),
            group_id=group.encode(),
            sequence_number=sequence_number,
            offset=offset,
            flags=flags,
        )


def describe(message: Message) -> str:
    """A message in words: group, sequence number, segment."""
    group = message.group_id.rstrip(b"\0").decode()
    if not group:
        return "in no group"
    last = ", last" if message.group_status == "last" else ""
    segment = "" if message.segment_status == "no" else f", offset {message.offset}"
    return f"group {group}, {message.sequence_number}{last}{segment}"


def physical_and_logical(screen: Screen) -> None:
    """Part 1."""
    screen.title("1. One queue, two orders: as they arrived, and as they belong together")
    with connect() as qm:
        qm.create_queue(QUEUE)
        put_figure_2(qm)
        physical, logical = list(qm.browse(QUEUE)), list(qm.browse(QUEUE, logical=True))
        print(f"  {'':2}  {'physical order':32}  logical order")
        for n, (one, other) in enumerate(zip(physical, logical, strict=True), 1):
            left, right = (
                screen.named(message.body.decode(), message.group_id.rstrip(b"\0").decode(), 5)
                + describe(message).ljust(27)
                for message in (one, other)
            )
            print(f"  {n:2}  {left}  {right}".rstrip())
        screen.check("browsing physically is figure 2", names(physical), PHYSICAL)
        screen.check("browsing logically is figure 1", names(logical), LOGICAL)
        got = names(drain(lambda: qm.get(QUEUE, logical=True)))
        screen.check("getting in logical order brings the same", got, LOGICAL)
        screen.check("and leaves the queue empty", qm.depth(QUEUE), 0)


def drain(read: Callable[[], Message]) -> Iterable[Message]:
    """Reads until there is none, or until order withholds the next."""
    while True:
        try:
            yield read()
        except (NoMessageAvailable, OrderPending):
            return


def complete_groups(screen: Screen) -> None:
    """Part 2."""
    screen.title("2. Whole groups or nothing")
    with connect() as qm:
        qm.create_queue(QUEUE)
        put_figure_2(qm)
        with qm.open(QUEUE) as queue:
            physical = [message for message in queue.browse() if message.body == b"Z1"]
            queue.get(match=Match(token=physical[0].token))  # Z1 is lost: group Z will never be complete
        groups = []
        while True:
            try:
                groups.append(names(qm.get_group(QUEUE)))
            except NoMessageAvailable:
                break
        for group in groups:
            print(f"  a group, its segments joined: {' '.join(group)}")
        screen.check("Z1 is missing, so group Z is passed over", groups, [["A"], ["Y1", "Y2", "Y3.1Y3.2"], ["B"]])
        screen.check("and its other message stays", names(qm.browse(QUEUE)), ["Z2"])


# --- the disclosure's example: two writers in units of work, one queue, one priority

STEPS = ("A puts A1", "B puts B1", "A puts A2", "A commits", "B puts B2", "B commits")


def write(qm: QueueManager, after_each: Callable[[int], None]) -> None:
    """The two writers; `after_each` is called after each of their six steps."""
    a, b = qm.connect(program="A"), qm.connect(program="B")
    acts: Sequence[Callable[[], object]] = (
        lambda: a.put(QUEUE, b"A1", syncpoint=True),
        lambda: b.put(QUEUE, b"B1", syncpoint=True),
        lambda: a.put(QUEUE, b"A2", syncpoint=True),
        a.commit,
        lambda: b.put(QUEUE, b"B2", syncpoint=True),
        b.commit,
    )
    for n, act in enumerate(acts):
        act()
        after_each(n)


Seen = list[list[str]]  # what a reader has read after each of the six steps
DOCUMENTED: Mapping[tuple[OrderRule, AskedOrder], tuple[str, ...]] = {
    ("put", "relaxed"): ("A1 B1 A2 B2", "A1 A2 B1 B2", "A1 B1 A2 B2", "A1 A2 B2"),
    ("put", "strict"): ("A1 B1 A2 B2",) * 4,
    ("prepare", "relaxed"): ("A1 A2 B1 B2",) * 4,
    ("prepare", "strict"): ("A1 A2 B1 B2",) * 4,
}
READERS = ("late getter", "eager getter", "late browser", "eager browser")
COLUMN = 14


def four_readers(order: OrderRule, asked: AskedOrder) -> dict[str, Seen]:
    """The example of the disclosure, read by its four readers, each on a queue of its own."""
    return {
        READERS[0]: laid_back(order, lambda qm: drain(lambda: qm.get(QUEUE, read_order=asked))),
        READERS[1]: eager_getter(order, asked),
        READERS[2]: laid_back(order, lambda qm: qm.browse(QUEUE, read_order=asked)),
        READERS[3]: eager_browser(order, asked),
    }


def laid_back(order: OrderRule, read: Callable[[QueueManager], Iterable[Message]]) -> Seen:
    """A reader that comes when all is written."""
    with connect() as qm:
        qm.create_queue(QUEUE, order=order)
        write(qm, lambda n: None)
        return [[] for _ in STEPS[1:]] + [names(read(qm))]


def eager_getter(order: OrderRule, asked: AskedOrder) -> Seen:
    """A reader on a thread of its own that always waits."""
    seen: Seen = [[] for _ in STEPS]
    step = 0
    with connect() as qm:
        qm.create_queue(QUEUE, order=order)
        reader = qm.connect(program="eager")

        def read() -> None:
            try:
                while True:
                    message = reader.get(QUEUE, wait=FOREVER, read_order=asked)
                    seen[step].append(message.body.decode())
            except ConnectionBroken:
                return

        thread = threading.Thread(target=read)
        thread.start()
        qm.room.watch_until(lambda: qm.room.is_asleep(reader.owner))

        def after_each(n: int) -> None:
            nonlocal step
            qm.room.watch_until(lambda: qm.room.is_asleep(reader.owner))
            step = n + 1

        write(qm, after_each)
        reader.abandon()
        thread.join()
    return seen


def eager_browser(order: OrderRule, asked: AskedOrder) -> Seen:
    """A browser that looks after each step, from its cursor on."""
    seen: Seen = []
    with connect() as qm:
        qm.create_queue(QUEUE, order=order)
        with qm.open(QUEUE, browse=True, read_order=asked) as queue:
            write(qm, lambda n: seen.append(names(drain(queue.browse_next))))
    return seen


def table(columns: dict[str, Seen]) -> list[str]:
    """The steps, and what each reader read after them, side by side."""
    lines = ["      " + "".join(text.ljust(COLUMN) for text in ("", *columns))]
    for n, step in enumerate(STEPS):
        cells = "".join(" ".join(seen[n]).ljust(COLUMN) for seen in columns.values())
        lines.append(f"  t{n + 1}  {step:{COLUMN}}{cells}")
    return [line.rstrip() for line in lines]


def readers_side_by_side(screen: Screen) -> None:
    """Part 3."""
    screen.title("3. Four readers, two order rules, relaxed and strict")
    for (order, asked), documented in DOCUMENTED.items():
        columns = four_readers(order, asked)
        print(f"  {order.upper()} order, {asked}")
        print("\n".join(table(columns)))
        got = tuple(" ".join(name for step in seen for name in step) for seen in columns.values())
        screen.check("what each reader reads, over all steps", got, documented)
        print()
    print("  Relaxed, in PUT order: it depends on when you look, and the eager browser")
    print("  misses B1. Strict: all read the same; in PUT order they wait for B's unit.")


def confirmed_life(screen: Screen) -> None:
    """Part 4: what is put, got and locked under an id can be confirmed, or undone, by whoever knows the id."""
    screen.title("4. Confirm, lock and undo")
    with connect() as qm:
        qm.create_queue(QUEUE, order="commit")

        def show(text: str) -> list[str]:
            visible = names(qm.browse(QUEUE))
            print(f"  {text:44} visible: {' '.join(visible) or '-':9} depth: {qm.depth(QUEUE)}")
            return visible

        first = qm.put(QUEUE, b"m1", confirm_id=7)
        second = qm.put(QUEUE, b"m2", confirm_id=8)
        hidden = show("put m1 and m2, with confirm ids 7 and 8")
        qm.confirm_put(QUEUE, second.uid)
        qm.confirm_put(QUEUE, first.uid)
        confirmed = show("confirm m2, then m1")
        screen.check("they are hidden until confirmed", hidden, [])
        screen.check("and stand in the order of their confirms", confirmed, ["m2", "m1"])
        qm.get(QUEUE, confirm_id=9)
        got = show("get m2 with confirm id 9")
        qm.undo(QUEUE, 9)
        screen.check("an undone get is back in its place", [got, show("undo 9")], [["m1"], ["m2", "m1"]])
        locked = qm.browse_and_lock(QUEUE, confirm_id=5)
        qm.put(QUEUE, b"m3")
        show("browse and lock both; put m3")
        qm.get(QUEUE, lock_id=locked.lock_id, confirm_id=6)
        qm.undo(QUEUE, 6)
        show("get m2 by its lock with confirm id 6; undo 6")
        screen.check("it is locked as before", len([unit for unit in qm.units() if unit.kind == "lock"]), 1)
        qm.undo(QUEUE, 5)
        screen.check("undoing the lock frees all", show("undo 5"), ["m2", "m1", "m3"])
        screen.check("the undone gets are counted", [m.backout_count for m in qm.browse(QUEUE)], [2, 0, 0])


def main() -> int:
    """Runs the demonstration; 0 if everything was as documented."""
    screen = Screen()
    print("Checked as it runs against two documents: 'Logical and physical ordering' of")
    print("WebSphere MQ, and the disclosure IPCOM000015719D. docs/order.md explains.")
    physical_and_logical(screen)
    complete_groups(screen)
    readers_side_by_side(screen)
    confirmed_life(screen)
    print(f"\n{'All as documented.' if not screen.wrong else f'{screen.wrong} NOT as documented.'}")
    return 1 if screen.wrong else 0
