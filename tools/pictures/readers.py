"""The disclosure's example: two programs put in units of work, four readers read, early or late, by get or browse."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import inorder
from inorder.attributes import OrderRule
from inorder.demo.readers import READERS, STEPS
from inorder.options import AskedOrder

from .svg import MARGIN, WIDTH, Picture

BOX, HIGH, STEP = 34, 24, 39
AT_FIRST, AT_LAST = 130, 286  # where the columns begin: what is read at t4, and at t6
PANEL = 168
PANELS: tuple[tuple[OrderRule, AskedOrder, str], ...] = (
    ("put", "relaxed", "put order, read relaxed"),
    ("put", "strict", "put order, read strictly"),
    ("commit", "relaxed", "prepare or commit order, read either way"),
)
SAME: tuple[tuple[OrderRule, AskedOrder], ...] = (
    ("commit", "strict"),
    ("prepare", "relaxed"),
    ("prepare", "strict"),
)


class Seen(NamedTuple):
    """What a reader has read when the first unit was committed, and what later."""

    first: list[str]
    last: list[str]

    @property
    def all(self) -> list[str]:
        return self.first + self.last


def read(order: OrderRule, asked: AskedOrder) -> dict[str, Seen]:
    """The example, run; each reader has a queue of its own, and the writers put on all of them."""
    with inorder.connect() as qm:
        for name in READERS:
            qm.create_queue(_queue(name), order=order)
        writers = {name: qm.connect() for name in ("A", "B")}
        late_get, late_browse = qm.connect(), qm.connect()
        eager_getter = qm.connect()
        browser = qm.open(_queue("eager browser"), browse=True, read_order=asked)
        seen = {name: Seen([], []) for name in READERS}
        for n, step in enumerate(STEPS):
            writer = writers[step.writer]
            if step.message:
                for name in READERS:
                    writer.put(_queue(name), step.message.encode(), syncpoint=True)
            else:
                writer.commit()
            now = 1 if n == len(STEPS) - 1 else 0
            seen["eager getter"][now].extend(_all(lambda: eager_getter.get(_queue("eager getter"), read_order=asked)))
            seen["eager browser"][now].extend(_all(browser.browse_next))
        seen["late getter"].last.extend(_all(lambda: late_get.get(_queue("late getter"), read_order=asked)))
        late = late_browse.browse(_queue("late browser"), read_order=asked)
        seen["late browser"].last.extend(message.body.decode() for message in late)
        return seen


def _queue(reader: str) -> str:
    return reader.replace(" ", ".").upper()


def _all(call: Callable[[], inorder.Message]) -> list[str]:
    """What a call gives, until it has no more to give."""
    found = []
    while True:
        try:
            found.append(call().body.decode())
        except (inorder.NoMessageAvailable, inorder.OrderPending):
            return found


def draw() -> str:
    picture = Picture("What four readers read, by the queue's order and by how strictly they read", 132 + 3 * PANEL + 8)
    _writers(picture)
    for n, (order, asked, title) in enumerate(PANELS):
        _panel(picture, 132 + n * PANEL, title, read(order, asked))
    assert all(read(*each) == read("commit", "relaxed") for each in SAME)
    return picture.svg()


def _kind(message: str) -> str:
    return "one" if message.startswith("A") else "two"


def _writers(picture: Picture) -> None:
    """Two lanes: the puts and the commits, t1 to t6."""
    for n, step in enumerate(STEPS):
        x, y = 110 + n * 62, 40 if step.writer == "A" else 80
        picture.text(x + BOX / 2, 28, f"t{n + 1}", "mid small faint")
        if step.message:
            picture.box(x, y, BOX, HIGH, [step.message], _kind(step.message))
        else:
            picture.text(x + BOX / 2, y + 17, "commit", "mid small bold")
    for y, name in ((57, "program A"), (97, "program B")):
        picture.text(MARGIN, y, name)


def _panel(picture: Picture, y: float, title: str, seen: dict[str, Seen]) -> None:
    picture.rectangle(8, y, WIDTH - 16, PANEL - 8, "band")
    picture.text(MARGIN, y + 21, title, "bold")
    for x, text in ((AT_FIRST, "at t4"), (AT_LAST, "at t6")):
        picture.text(x, y + 40, text, "small faint")
    everything = {step.message for step in STEPS if step.message}
    for n, (name, one) in enumerate(seen.items()):
        row = y + 46 + n * (HIGH + 4)
        picture.text(MARGIN, row + 17, name)
        for x, part in ((AT_FIRST, one.first), (AT_LAST, one.last)):
            for place, message in enumerate(part):
                picture.box(x + place * STEP, row, BOX, HIGH, [message], _kind(message))
        for place, message in enumerate(sorted(everything - set(one.all)), len(one.last)):
            picture.box(AT_LAST + place * STEP, row, BOX, HIGH, [message], "ghost")
            picture.text(AT_LAST + (place + 1) * STEP, row + 17, "never seen", "small bad")
