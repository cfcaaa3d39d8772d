"""Processes that put, carry and read between two queue managers until they are killed, and a final one.

    python -m tools.proof.carried FOLDER

The stores are HERE and THERE. Messages go from HERE to queue Q at THERE, by channel TO.THERE; the reports that they ask
for come back to R, by TO.HERE. Each message that becomes visible on Q makes a trigger message on INIT. `carried_round`
plans the lives and judges their histories.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import inorder
from inorder import Feedback, InorderError, Message, NoMessageAvailable, PutResult, QueueManager, Report
from inorder.errors import Fenced, ObjectInUse
from inorder.mq import channels

from .history import History, Told, is_loss
from .labels import Label, text_of
from .limits import make_small

HERE, THERE = "HERE", "THERE"
URLS = ".url"  # replaces the store if it is on a server
ROLES = ("putter", "carrier", "reader", "carrier")
PRIORITIES = (0, 0, 5)
EXPIRY_SECONDS = (0.1, 0.3)
REPORTS = int(Report.COA_WITH_FULL_DATA | Report.COD_WITH_FULL_DATA | Report.EXPIRATION_WITH_FULL_DATA)
ASKED = (0, 0, REPORTS)
BUSY_SECONDS = 0.01
LOST_STATUS = 3
DRAIN = "drain"


def place(folder: Path, name: str) -> str:
    """The location of one of the two stores."""
    url = folder / f"{name}{URLS}"
    return url.read_text() if url.exists() else str(folder / f"{name}.db")


def create(folder: Path, **attributes: Any) -> None:
    """Makes both queue managers.

    Args:
        attributes: the attributes of the channels.
    """
    for own, other in ((HERE, THERE), (THERE, HERE)):
        with inorder.connect(place(folder, own), name=own) as qm:
            qm.create_queue(other, usage="transmission", order="put")
            qm.create_queue("R")
            qm.create_queue("INIT")
            qm.admin.create_process("SERVE")
            qm.create_queue("DEAD")
            qm.admin.alter_manager(dead_letter_queue="DEAD")
            qm.create_queue(
                "Q", order="put", trigger_control=True, trigger_type="every", initiation_queue="INIT", process="SERVE"
            )  # fmt: skip
            channels.define_channel(
                qm,
                f"TO.{other}",
                transmission_queue=other,
                connection=place(folder, other),
                batch_size=3,
                **attributes,
            )
            channels.define_channel(qm, f"TO.{own}", "receiver", message_retry_count=0)


# ---- the workers


class Putter:
    """Puts at HERE for Q at THERE: single messages and units, some with reports, some that expire."""

    def __init__(self, folder: Path, history: History, chance: random.Random, name: str) -> None:
        self._qm = inorder.connect(place(folder, HERE), program=name)
        self._history, self._chance, self._name = history, chance, name
        self._serial = self._units = 0

    def step(self) -> None:
        if self._chance.random() < 0.5:
            self._put(0)
            return
        self._units += 1
        unit = self._units
        for _ in range(self._chance.randint(1, 4)):
            self._put(unit)
        if self._chance.random() < 0.75:
            self._history.do("commit", self._qm.commit, unit=unit)
        else:
            self._history.do("back_out", self._qm.back_out, unit=unit)

    def _put(self, unit: int) -> None:
        self._serial += 1
        label, chance = Label(self._name, self._serial), self._chance
        report, priority = chance.choice(ASKED), chance.choice(PRIORITIES)
        expiry = chance.uniform(*EXPIRY_SECONDS) if report and chance.random() < 0.3 else None
        body = label.body(chance.randrange(8_000) if chance.random() < 0.1 else chance.randrange(200))
        message = Message(body, priority=priority, expiry=expiry, report=report, reply_to_queue="R" if report else "")

        def put() -> PutResult:
            return self._qm.put("Q", message, manager=THERE, syncpoint=bool(unit))

        self._history.do(
            "put",
            put,
            label=str(label),
            unit=unit,
            priority=priority,
            reports=bool(report),
            expires=expiry is not None,
        )


class Reader:
    """Gets from Q at THERE, in units of work."""

    def __init__(self, folder: Path, history: History, chance: random.Random, name: str) -> None:
        self._qm = inorder.connect(place(folder, THERE), program=name)
        self._history, self._chance = history, chance
        self._units = 0

    def step(self) -> None:
        self._units += 1
        unit, count = self._units, self._chance.randint(1, 3)
        told = self._history.do("get", lambda: self._get(count), dict, unit=unit)
        if told is None:
            return
        if self._chance.random() < 0.75:
            self._history.do("commit", self._qm.commit, unit=unit)
        else:
            self._history.do("back_out", self._qm.back_out, unit=unit)

    def _get(self, count: int) -> Told:
        """The values for the history's line about a get."""
        found = [self._qm.get("Q", syncpoint=True, read_order="strict", wait=0.05)]
        with suppress(NoMessageAvailable):
            while len(found) < count:
                found.append(self._qm.get("Q", syncpoint=True, read_order="strict"))
        return told_messages(found)


class Carrier:
    """Carries one of the two channels, in runs that do not end by themselves."""

    def __init__(self, folder: Path, history: History, chance: random.Random, name: str) -> None:
        own, other = chance.choice(((HERE, THERE), (HERE, THERE), (THERE, HERE)))
        self._qm, self._channel = inorder.connect(place(folder, own), program=name), f"TO.{other}"
        self._history = history

    def step(self) -> None:
        try:
            channels.run_channel(self._qm, self._channel)
        except (ObjectInUse, Fenced):
            time.sleep(BUSY_SECONDS)  # another worker carries it


def told_messages(messages: list[Any]) -> Told:
    return {"messages": [[text_of(one.body), list(one.place), one.priority, one.feedback] for one in messages]}


WORKERS: dict[str, type[Putter | Reader | Carrier]] = {"putter": Putter, "reader": Reader, "carrier": Carrier}


def work(folder: Path, history: Path, seed: int, role: str, at_work: Callable[[], object]) -> int:
    """Runs the process of a worker; returns the exit status after the loss of its connection, and otherwise never."""
    make_small()
    try:
        worker = WORKERS[role](folder, History(history), random.Random(seed), history.stem)
        at_work()
        while True:
            worker.step()
    except InorderError as error:
        if not is_loss(error):
            raise
        return LOST_STATUS


# ---- the end


def drain(folder: Path, history: History) -> None:
    """After the work: carries the rest, waits for messages to expire, and records everything that remains."""
    time.sleep(EXPIRY_SECONDS[1])
    with (
        inorder.connect(place(folder, HERE), program=DRAIN) as here,
        inorder.connect(place(folder, THERE), program=DRAIN) as there,
    ):
        channels.run_channel(here, "TO.THERE", until_empty=True)
        there.admin.discard_expired()
        history.do("drained", lambda: everything(there, "Q"), dict, queue="Q")
        channels.run_channel(there, "TO.HERE", until_empty=True)
        history.do("drained", lambda: everything(here, "R"), dict, queue="R")
        for name, qm in ((HERE, here), (THERE, there)):
            history.do("left", lambda qm=qm: left(qm), dict, store=name)  # type: ignore[misc]


def everything(qm: QueueManager, queue: str) -> Told:
    """All available messages of a queue."""
    found = []
    with suppress(NoMessageAvailable):
        while True:
            found.append(qm.get(queue, read_order="strict"))
    return told_messages(found)


def left(qm: QueueManager) -> Told:
    """The remaining messages: after a good proof only trigger messages."""
    (sent,), came = channels.status(qm), channels.received(qm)
    depths = {queue.name: qm.depth(queue.name) for queue in qm.queues() if queue.type == "local"}
    return {
        "depths": depths,
        "units": len(qm.inspect.units()),
        "in_doubt": sent.in_doubt,
        "sent": sent.number,
        "came": came[0].number if came else 0,
        "check": qm.admin.check(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    asked = parser.parse_args()
    drain(asked.folder, History(asked.folder / f"{DRAIN}.jsonl"))


FEEDBACKS = {int(Feedback.COA): "coa", int(Feedback.COD): "cod", int(Feedback.EXPIRATION): "expiration"}

if __name__ == "__main__":
    main()
