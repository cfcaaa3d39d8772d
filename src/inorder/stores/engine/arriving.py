"""Messages that were planned come to a queue."""

from __future__ import annotations

from collections.abc import Sequence

from ...model.message import Message, Row
from ...rules.lifecycle import Event, State, becomes_visible, step
from ...rules.ordering import Moment, draws_number
from ..seam.queued import number_of
from ..seam.tables import UnitRow
from .operation import Verb
from .queue import LocalQueue

PERSISTENT, TOKEN = Message.FIELDS["persistent"].index, Message.FIELDS["token"].index
AFTER_PUT, AFTER_HELD_PUT = step(State.ABSENT, Event.PUT).to, step(State.ABSENT, Event.PUT_HELD).to


def arrive(verb: Verb, queue: LocalQueue, rows: Sequence[Row], unit: UnitRow | None, put_by: str | None = None) -> bool:
    """Puts them on the queue, held by the unit if there is one; returns whether some of them ask for reports.

    Args:
        put_by: their mark (`authority`).
    """
    state = AFTER_PUT if unit is None else AFTER_HELD_PUT
    assert state is not None
    first, total = None, len(rows)
    if draws_number(queue.attributes.order, Moment.COMMIT if unit is None else Moment.PUT):
        first = queue.draw_number(total)
    asks = verb.backend.arrive(queue, rows, state, first, None if unit is None else unit.id, verb.now)
    if put_by is not None:
        for row in rows:
            verb.backend.sign(number_of(row[TOKEN]), put_by)
    queue.added += total
    queue.arrived += total
    queue.changed = True
    change = verb.touch(queue)
    if unit is not None:
        verb.durable |= unit.kind == "confirm"
    elif not verb.durable:
        for row in rows:
            if row[PERSISTENT]:
                verb.durable = True
                break
    triggers = queue.attributes.trigger_control
    if triggers or verb.store.changes.is_watched:
        messages = list(map(Message.from_row, rows))
        change.put.extend(messages)
        if becomes_visible(State.ABSENT, state):
            change.visible.extend(messages)
            if triggers:
                verb.note_arrivals(queue, messages)
    return asks
