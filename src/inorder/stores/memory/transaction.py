"""One transaction of the memory store: its time, the steps it makes in the lives of rows, what it will tell."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from ...message import Message
from ...rules.lifecycle import Answer, Event, State, adds_backout, becomes_visible, step
from ...rules.ordering import Moment, draws_number
from ..base import Change, Outcome, Unit
from .handles import Handle
from .queue import GOT, HeldUnit, MemoryQueue, Row, lock_presented


@dataclass(slots=True)
class Transaction:
    """What one verb does. Every change of a row's state is made here, by the life-cycle table."""

    now: float
    put: list[tuple[str, Message]] = field(default_factory=list)
    visible: list[tuple[str, Message]] = field(default_factory=list)
    expired: list[tuple[str, Message]] = field(default_factory=list)
    touched: dict[str, None] = field(default_factory=dict)

    def changes(self) -> list[Change]:
        """What observers are told when it is over."""

        def of(queue: str, told: list[tuple[str, Message]]) -> list[Message]:
            return [message for name, message in told if name == queue]

        return [
            Change(queue, of(queue, self.put), of(queue, self.visible), of(queue, self.expired))
            for queue in self.touched
        ]

    def step(
        self,
        queue: MemoryQueue,
        row: Row,
        event: Event,
        unit: HeldUnit | None = None,
        *,
        locked_by: Handle | None = None,
    ) -> None:
        """One event happens to one row.

        Args:
            unit: what comes to hold the row, if the event is a held one.
            locked_by: the handle that acts: its browse lock is the lock presented, or the one to be set.
        """
        lock = lock_presented(row, locked_by.id if locked_by else 0)
        before, (answer, after) = row.state, step(row.state, event, lock)
        assert answer is Answer.DONE, (before, event, answer)
        if after is None:
            return
        row.state = after
        row.locked_by = locked_by.id if after is State.LOCKED and locked_by else None
        row.backouts += adds_backout(before, after)
        queue.away += (after in GOT) - (before in GOT)
        if unit is not None:
            row.unit = unit
            unit.rows.append((queue, row))
        if becomes_visible(before, after):
            self.visible.append((queue.attributes.name, row.message))
        if after is State.ABSENT:
            queue.remove(row)
        self.touched[queue.attributes.name] = None

    def settle(self, unit: HeldUnit, outcome: Outcome) -> None:
        """Confirms or backs out everything that the unit holds (R5.2, R5.3)."""
        if outcome == "commit":
            number_unit(unit, Moment.COMMIT)
        event = Event.CONFIRM if outcome == "commit" else Event.BACK_OUT
        for queue, row in unit.rows:
            self.touched[queue.attributes.name] = None
            if row.state is State.ABSENT:  # it expired, or its queue was deleted
                continue
            row.unit = None
            returns = row.state in GOT and outcome == "back_out"
            self.step(queue, row, event)
            if returns and row.forgotten:
                self.remove(queue, row)

    def discard(self, queue: MemoryQueue, limit: int | None = None) -> int:
        """Discards what has expired; how many (R6.2)."""
        expired = queue.expired(self.now)[:limit]
        for row in expired:
            self.step(queue, row, Event.EXPIRE)
            self.expired.append((queue.attributes.name, row.message))
        return len(expired)

    def remove(self, queue: MemoryQueue, row: Row) -> None:
        """The row goes without an event of its own: with its queue, or at a restart."""
        queue.away -= row.state in GOT
        queue.remove(row)
        row.state = State.ABSENT

    def forget(self, queue: MemoryQueue, row: Row) -> None:
        """A restart takes a non-persistent row; one that a prepared unit got goes when that is undone."""
        if row.unit is None:
            self.remove(queue, row)
        else:
            row.forgotten = True


def number_unit(unit: HeldUnit, moment: Moment) -> None:
    """Draws one number for the unit on each queue whose rule says now; put order within (B-5)."""
    drawn: dict[int, tuple[int, Iterator[int]]] = {}
    for queue, row in unit.rows:
        if row.placed or row.state is State.ABSENT or not draws_number(queue.attributes.order, moment):
            continue
        if id(queue) not in drawn:
            drawn[id(queue)] = queue.draw_number(), itertools.count()
        number, ordinals = drawn[id(queue)]
        queue.give_place(row, number, next(ordinals))


def as_got(row: Row, now: float) -> Message:
    """The message as a get returns it: what is left of its time, its back outs, its place."""
    left = None if row.expires_at == math.inf else max(0.1, row.expires_at - now)
    return row.message.with_values(expiry=left, backout_count=row.backouts, place=row.place)


def as_seen(unit: HeldUnit) -> Unit:
    """A unit as an operator sees it."""
    states = [row.state for _, row in unit.rows]
    return Unit(
        name=unit.name,
        state=unit.state,
        program=unit.program,
        started_at=unit.started_at,
        puts=states.count(State.PUT_UNCONFIRMED),
        gets=sum(state in GOT for state in states),
    )
