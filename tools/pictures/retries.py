"""One message fails once and waits for its back-off: what readers do meanwhile, by how strictly they read."""

from __future__ import annotations

from typing import NamedTuple

import inorder
from inorder.options import AskedOrder
from inorder.stores.memory import MemoryStore
from inorder.testing import ManualClock

from .svg import MARGIN, WIDTH, Picture

MESSAGES = ("1", "2", "3", "4")
FAILS, DELAY_SECONDS, SECONDS = "2", 3, 7
BOX, HIGH, STEP, LEFT = 40, 26, 50, 122
PANEL, TOP = 96, 44
PANELS: tuple[tuple[AskedOrder, str], ...] = (("relaxed", "read relaxed"), ("strict", "read strictly"))


class Second(NamedTuple):
    """What a reader did in one second; no message: it had none."""

    message: str = ""
    failed: bool = False


def read(asked: AskedOrder) -> list[Second]:
    """The example, run: one message a second; the second one fails at its first attempt."""
    clock = ManualClock()
    seconds = []
    with inorder.connect(MemoryStore("QM1", clock=clock)) as qm:
        qm.create_queue("Q")
        qm.put_many("Q", [name.encode() for name in MESSAGES])
        for _ in range(SECONDS):
            seconds.append(_one(qm, asked))
            clock.advance(1)
    return seconds


def _one(qm: inorder.QueueManager, asked: AskedOrder) -> Second:
    with qm.unit_of_work() as unit:
        try:
            message = qm.get("Q", read_order=asked)
        except (inorder.NoMessageAvailable, inorder.OrderPending):
            return Second()
        fails = message.body.decode() == FAILS and not message.backout_count
        if fails:
            unit.back_out(delay=DELAY_SECONDS, error="it failed")
    return Second(message.body.decode(), fails)


def draw() -> str:
    title = (
        f"Message {FAILS} fails once and waits {DELAY_SECONDS} seconds: everyone behind it waits, if the order is kept"
    )
    picture = Picture(title, TOP + len(PANELS) * PANEL + 34)
    for n in range(SECONDS):
        picture.text(LEFT + n * STEP + BOX / 2, 28, f"{n + 1} s", "mid small faint")
    for n, (asked, name) in enumerate(PANELS):
        _panel(picture, TOP + n * PANEL, name, read(asked))
    y = TOP + len(PANELS) * PANEL + 16
    picture.text(MARGIN, y, "dashed: the attempt that fails; dots: nothing may be read", "small faint")
    return picture.svg()


def _panel(picture: Picture, y: float, name: str, seconds: list[Second]) -> None:
    picture.rectangle(8, y, WIDTH - 16, PANEL - 12, "band")
    picture.text(MARGIN, y + 46, name, "bold")
    done = [one.message for one in seconds if one.message and not one.failed]
    for n, one in enumerate(seconds):
        x = LEFT + n * STEP
        if one.message:
            kind = "ghost" if one.failed else "two" if one.message == FAILS else "one"
            picture.box(x, y + 28, BOX, HIGH, [one.message], kind)
        elif len(done) > sum(1 for other in seconds[:n] if other.message and not other.failed):
            picture.text(x + BOX / 2, y + 46, "...", "mid faint")
    picture.text(LEFT, y + 72, f"done: {', '.join(done)}", "small faint")
