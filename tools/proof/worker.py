"""A process that does random work on a store until it is killed, or has made its steps.

The name of the history's file is the name of the process; each life has another name. The work follows from the seed,
and from the messages that the other processes leave.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import inorder
from inorder import Got, InorderError, Match, Message, PutResult, QueueManager

from .history import History, Told, is_loss
from .labels import Label, text_of
from .limits import make_small

# The queues of a proof and their order rules. From GROUPS only whole groups are got.
QUEUES = {"BY_PUT": "put", "BY_PREPARE": "prepare", "BY_COMMIT": "commit", "GROUPS": "put"}
SINGLES = ("BY_PUT", "BY_PREPARE", "BY_COMMIT")
LOCKED_PRIORITY = 7
LOST_STATUS = 3  # the exit status of a worker whose connection was lost
PRIORITIES = (0, 0, 0, 4, LOCKED_PRIORITY)


def told_message(message: Message) -> list[Any]:
    """A message as histories record it: label, unique id, place, whether persistent."""
    return [text_of(message.body), message.uid, message.place, message.persistent]


def told_messages(messages: Sequence[Message]) -> Told:
    return {"messages": [told_message(message) for message in messages]}


def told_puts(results: list[PutResult]) -> Told:
    return {"uids": [result.uid for result in results]}


class Worker:
    """One process of a proof, at work through one connection.

    Args:
        name: the name of this process in this life, which its messages have.
        persistent_share: the share of its messages that are persistent, 0 to 1.
    """

    def __init__(
        self, qm: QueueManager, history: History, chance: random.Random, name: str, persistent_share: float = 0.85
    ) -> None:
        self.qm, self.history, self.chance, self.name = qm, history, chance, name
        self._persistent_share = persistent_share
        self._serial = self._groups = self._units = 0
        self._durable = False  # whether the open unit of work has put or got a persistent message
        self._acts: list[Callable[[], None]] = [
            *[self.put] * 6,
            *[self.get] * 8,
            *[self.unit_of_work] * 8,
            *[self.put_group] * 2,
            *[self.confirmed_put] * 2,
            *[self.confirmed_get] * 2,
            *[self.settle_prepared] * 2,
            self.lock,
        ]

    def step(self) -> None:
        """Does one thing, from a single call to a whole unit of work."""
        self.chance.choice(self._acts)()

    # --- puts

    def _label(self, group: int = 0, place: int = 1, size: int = 1) -> Label:
        self._serial += 1
        return Label(self.name, self._serial, group, place, size)

    def _message(self, label: Label, **fields: Any) -> Message:
        length = self.chance.randrange(4_000, 20_000) if self.chance.random() < 0.05 else self.chance.randrange(200)
        return Message(label.body(length), **fields)

    def _persistent(self) -> bool:
        return self.chance.random() < self._persistent_share

    def put(self, unit: int = 0) -> None:
        """Puts one message, or a few in one call."""
        queue, priority = self.chance.choice(SINGLES), self.chance.choice(PRIORITIES)
        persistent, count = self._persistent(), self.chance.choice((1, 1, 1, 4))
        labels = [self._label() for _ in range(count)]
        messages = [self._message(label, priority=priority, persistent=persistent) for label in labels]
        self._put(queue, labels, lambda: self.qm.put_many(queue, messages), unit, priority, persistent)

    def put_group(self, unit: int = 0) -> None:
        """Puts a whole group, in the open unit of work or in a separate one."""
        self._groups += 1
        size = self.chance.randint(2, 4)
        labels = [self._label(self._groups, place, size) for place in range(1, size + 1)]
        persistent = self._persistent()

        def put() -> list[PutResult]:
            with self.qm.group("GROUPS") as group:
                return [group.put(self._message(label, persistent=persistent)) for label in labels]

        self._put("GROUPS", labels, put, unit, 0, persistent)

    def _put(
        self,
        queue: str,
        labels: list[Label],
        put: Callable[[], list[PutResult]],
        unit: int,
        priority: int,
        persistent: bool,
        **intent: Any,
    ) -> Told | None:
        self._durable |= persistent
        return self.history.do(
            "put",
            put,
            lambda results: {**told_puts(results), "durable": bool(intent) or (persistent and not unit)},
            queue=queue,
            labels=[str(label) for label in labels],
            unit=unit,
            priority=priority,
            persistent=persistent,
            **intent,
        )

    # --- gets

    def get(self, unit: int = 0) -> None:
        """Gets one message, or a few in one call, strictly or as they come; sometimes waits."""
        count, wait = self.chance.choice((1, 1, 1, 4)), self.chance.choice((0, 0, 0, 0.02))
        self._get(self.chance.choice(SINGLES), unit, count, wait=wait)

    def _get(self, queue: str, unit: int = 0, count: int = 1, **options: Any) -> Told | None:
        order: Any = self.chance.choice(("strict", "relaxed"))
        held = {name: options[name] for name in ("confirm_id", "lock_id") if name in options}
        return self.history.do(
            "get",
            lambda: self.qm.get_many(queue, count, read_order=order, **options),
            lambda messages: self._got(messages, unit, held=bool(held)),
            queue=queue,
            unit=unit,
            count=count,
            strict=order == "strict",
            **held,
        )

    def get_group(self, unit: int) -> None:
        """Gets a whole group in the open unit of work."""
        self.history.do(
            "get",
            lambda: list(self.qm.get_group("GROUPS")),
            lambda messages: self._got(messages, unit),
            queue="GROUPS",
            unit=unit,
            group=True,
        )

    def _got(self, messages: list[Got], unit: int, *, held: bool = False) -> Told:
        persistent = any(message.persistent for message in messages)
        self._durable |= persistent
        return {**told_messages(messages), "durable": held or (persistent and not unit)}

    # --- units of work

    def unit_of_work(self) -> None:
        """Several puts and gets on several queues, then an end: commit, back out or prepare."""
        self._units += 1
        unit, self._durable = self._units, False
        acts = (self.put, self.put, self.get, self.get, self.get, self.put_group, self.get_group, self.get_group)
        with self.qm.unit_of_work() as block:
            for _ in range(self.chance.randint(1, 5)):
                self.chance.choice(acts)(unit)
            end = self.chance.choice(("commit", "commit", "commit", "back_out", "prepare"))
            if end == "prepare" and self._prepare(unit):
                return
            if end == "back_out":
                self.history.do("back_out", block.back_out, unit=unit)
            else:
                durable = self._durable
                self.history.do("commit", block.commit, lambda _: {"durable": durable}, unit=unit)

    def _prepare(self, unit: int) -> bool:
        """Prepares the open unit, unless it holds nothing. Then it is settled here, or left to the others."""
        name = f"{self.name}-{unit}"
        told = self.history.do("prepare", lambda: self.qm.prepare(name), _durable, unit=unit, name=name)
        if told is not None and self.chance.random() < 0.5:
            self._settle(name)
        return told is not None

    def settle_prepared(self) -> None:
        """Settles a prepared unit of any process."""
        names = sorted(unit.name for unit in self.qm.inspect.units() if unit.kind == "prepared")
        if names:
            self._settle(self.chance.choice(names))

    def _settle(self, name: str) -> None:
        outcome: Any = self.chance.choice(("commit", "back_out"))
        self.history.do("settle", lambda: self.qm.settle(name, outcome), _durable, name=name, outcome=outcome)

    # --- confirmed calls

    def _confirm_id(self) -> int:
        return self.chance.getrandbits(63) | 1

    def confirmed_put(self) -> None:
        """Puts under a confirm id; then confirms, undoes, or abandons it."""
        queue, priority = self.chance.choice(SINGLES), self.chance.choice(PRIORITIES)
        label, persistent, confirm_id = self._label(), self._persistent(), self._confirm_id()
        message = self._message(label, priority=priority, persistent=persistent)
        told = self._put(
            queue,
            [label],
            lambda: [self.qm.put(queue, message, confirm_id=confirm_id)],
            0,
            priority,
            persistent,
            confirm_id=confirm_id,
        )
        if told is not None:
            uid = told["uids"][0]
            self._end_held(queue, confirm_id, "confirm_put", lambda: self.qm.confirm_put(queue, uid))

    def confirmed_get(self) -> None:
        """Gets under a confirm id; then confirms, undoes, or abandons it."""
        queue, confirm_id = self.chance.choice(SINGLES), self._confirm_id()
        told = self._get(queue, confirm_id=confirm_id)
        if told is not None:
            uid = told["messages"][0][1]
            self._end_held(queue, confirm_id, "confirm_get", lambda: self.qm.confirm_get(queue, uid))

    def _end_held(self, queue: str, confirm_id: int, what: str, confirm: Callable[[], object]) -> None:
        end = self.chance.choice((what, what, "undo", "forget"))
        if end == what:
            self.history.do(what, confirm, _warned, queue=queue, confirm_id=confirm_id)
        elif end == "undo":
            self.history.do(
                "undo", lambda: self.qm.undo(queue, confirm_id), _durable, queue=queue, confirm_id=confirm_id
            )

    def lock(self) -> None:
        """Locks all messages of one priority; takes, removes and frees some; frees the rest, or abandons it."""
        queue, match = self.chance.choice(SINGLES), Match(priority=LOCKED_PRIORITY)
        told = self.history.do(
            "lock",
            lambda: self.qm.browse_and_lock(queue, match),
            lambda locked: {
                **told_messages(locked.messages),
                "lock_id": locked.lock_id,
                "durable": bool(locked.messages),
            },
            queue=queue,
        )
        if told is None or not told["messages"]:
            return
        lock_id, (label, uid, *_) = told["lock_id"], told["messages"][-1]
        self._get(queue, lock_id=lock_id)
        if len(told["messages"]) > 1:
            self.history.do(
                "delete", lambda: self.qm.delete(queue, uid, lock_id=lock_id), _durable, queue=queue, label=label
            )
        if self.chance.random() < 0.8:
            self.history.do("release", lambda: self.qm.admin.release_lock(queue, lock_id), _durable, queue=queue)


def _durable(_result: object) -> Told:
    return {"durable": True}


def _warned(warning: object) -> Told:
    return {"warned": warning is not None, "durable": True}


def create_queues(qm: QueueManager) -> None:
    """Makes the missing queues of a proof."""
    there = {queue.name for queue in qm.queues()}
    for name, order in QUEUES.items():
        if name not in there:
            qm.create_queue(name, order=order)  # type: ignore[arg-type]


def work(store: str, history: Path, seed: int, steps: int, at_work: Callable[[], object]) -> int:
    """Runs the process of a worker; returns its exit status."""
    make_small()
    try:
        with inorder.connect(store, program=history.stem) as qm:
            worker = Worker(qm, History(history), random.Random(seed), history.stem)
            at_work()
            for _ in range(steps):
                worker.step()
    except InorderError as error:
        if not is_loss(error):
            raise
        return LOST_STATUS
    return 0
