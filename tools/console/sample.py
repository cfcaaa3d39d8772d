"""A sample queue manager with an example of everything that the console shows."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Final

import inorder
from inorder import Flags, QueueManager
from inorder.stores.sqlite import SqliteStore
from inorder.testing import ManualClock

IN, LAST, SEGMENT, END = Flags.IN_GROUP, Flags.LAST_IN_GROUP, Flags.SEGMENT, Flags.LAST_SEGMENT
DAY: Final = 86_400
CUSTOMERS: Final = ("Adler", "Brunner", "Cortez", "Dahl", "Eriksen", "Fontane")


def make(path: Path) -> None:
    with inorder.connect(path, name="SHOP", program="sample") as qm:
        qm.create_queue("ORDERS", description="one group an order: a header, then its lines")
        qm.create_queue("PICKING", description="worked on by the warehouse")
    _live_a_week(path)
    with inorder.connect(path, program="sample") as qm:
        fill(qm)


def _live_a_week(path: Path) -> None:
    """Puts and gets orders as on the days of a week, in the last hour also for the warehouse, and takes the samples of
    a server that was off for some hours.
    """
    now, depths = time.time(), {"ORDERS": 0, "PICKING": 0}
    clock = ManualClock(now - 7 * DAY)
    parts = [(7 * DAY, DAY, 7_200), (DAY, 3_600, 900), (3_600, 0, 60)]
    steps = [(ago, length) for begin, end, length in parts for ago in range(begin, end, -length)]
    with inorder.connect(SqliteStore(path, clock=clock), program="sample") as qm:
        for ago, length in steps:
            clock.advance(max(0.0, now - ago - clock.now()))
            for queue, wave in (("ORDERS", 300), ("PICKING", 700))[: 2 if ago <= 3_600 else 1]:
                busy = max(0.1, 1.1 + math.sin(2 * math.pi * (clock.now() / DAY - 0.3)) + 0.2 * math.sin(ago / wave))
                depths[queue] += len(qm.put_many(queue, [b"an order"] * round(length * busy / 30)))
                left = round(30 * busy * min(1.0, ago / 600 - 0.1))  # none at the end: these orders are for the history
                if depths[queue] > left:
                    depths[queue] -= len(qm.get_many(queue, depths[queue] - left))
            if not 4 * DAY < ago < 4.5 * DAY and not 30_000 < ago < 37_000:
                qm.internals.sample()


def fill(qm: QueueManager) -> None:
    qm.create_queue("PAYMENTS", read_order="required", description="read in strict order")
    qm.create_queue("SCANS", description="pictures of delivery notes, in segments")
    qm.create_queue("ARCHIVE", max_depth=12, description="nearly full")
    qm.create_queue("INBOX", put_allowed=False, description="closed over the weekend")
    qm.create_queue("NOTES", max_depth=1)
    qm.create_queue("DEAD.LETTERS")
    qm.create_queue("SHOP.IN", type="alias", base_queue="ORDERS")
    qm.admin.alter_manager(dead_letter_queue="DEAD.LETTERS")
    _orders(qm)
    _scans(qm)
    _dead(qm)
    qm.put_many("ARCHIVE", [f"closed order {n}".encode() for n in range(11)])
    for number, customer in enumerate(CUSTOMERS[:3]):
        qm.put_json("PAYMENTS", {"customer": customer, "amount": 40 + 7 * number})


def _orders(qm: QueueManager) -> None:
    """Puts four interleaved groups: two are complete, one lacks a line, one its end."""
    orders = [("order-1001", 3, ()), ("order-1002", 5, (3,)), ("order-1003", 4, ()), ("order-1004", 3, (3,))]
    for sequence in range(1, 6):
        for number, (name, lines, lost) in enumerate(orders):
            if sequence <= lines and sequence not in lost:
                line = {"line": sequence - 1, "item": f"A-{17 * sequence + number}"}
                qm.put_json(
                    "ORDERS",
                    _header(number) if sequence == 1 else line,
                    group_id=name.encode(),
                    sequence_number=sequence,
                    flags=LAST if sequence == lines else IN,
                    properties={"customer": CUSTOMERS[number], "urgent": number == 2},
                )
    qm.put("ORDERS", b"a note without a group", format="MQSTR", priority=7)


def _header(number: int) -> dict[str, object]:
    return {"order": 1001 + number, "customer": CUSTOMERS[number], "paid": bool(number % 2)}


def _scans(qm: QueueManager) -> None:
    """Puts a picture in segments, one of which is missing, and a complete one."""
    for name, offsets in ((b"scan-77", (0, 1000, 2000)), (b"scan-78", (0, 2000))):
        for offset in offsets:
            flags = END if offset == 2000 else SEGMENT
            body = bytes((offset // 1000 + n) % 256 for n in range(1000))
            qm.put("SCANS", body, group_id=name, offset=offset, flags=flags, format="JPEG")


def _dead(qm: QueueManager) -> None:
    """Makes reports that could not be delivered, and dead letters of a program."""
    for question in (b"in stock?", b"how long?", b"how much?"):  # the first report fills NOTES
        qm.put("ARCHIVE", question, report=inorder.Report.COA_WITH_DATA, reply_to_queue="NOTES")
        qm.get("ARCHIVE")
    qm.put_json("PICKING", {"item": "moon dust"})
    with qm.unit_of_work():
        qm.dead.add(qm.get("PICKING"), queue="PICKING", error="there is no shelf for moon dust")
