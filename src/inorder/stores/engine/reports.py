"""The queue manager's reports about messages on queues: when each is made, and where it goes (P-1, R6.4 to R6.7).

    COA         in the transaction in which a message becomes visible on its queue
    COD         in the transaction that removes a got message for good: the get, or its commit or confirm
    expiration  when the message is discarded; if it was never visible, in the unit that put it
    exception   when the message cannot be delivered (`dead_letters`)

So a report exists if and only if its event has happened, even if any process dies at any moment. Arrivals on a
transmission queue and deliveries from it are not reported (R6.6). Only queues with messages that ask for reports bear
the cost: `QueueState.has_reports` marks them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...model.fields import EXPIRY_SECONDS_MIN
from ...model.kinds import Feedback
from ...model.message import Message, Row
from ...rules import reports as rules
from ...rules.lifecycle import Event, State, becomes_visible
from ...rules.puts import make_id
from ...rules.reports import COA, COD, EXCEPTION, EXPIRATION, ReportKind
from ..seam.damage import only
from ..seam.queued import QueuedMessage
from ..seam.tables import UnitRow
from .delivering import send
from .operation import Operation
from .queue import LocalQueue

PUT = State.PUT_UNCONFIRMED
# The events that deliver a message to a reader.
DELIVERIES = frozenset({Event.GET, Event.CONFIRM_GET, Event.CONFIRM, Event.DELETE})


def report_arrivals(operation: Operation, queue: LocalQueue, arrived: Sequence[Row], put_by: str | None) -> None:
    """Reports messages that have arrived on a queue and are visible: COA.

    Args:
        put_by: their mark (`authority`).
    """
    if _is_final(queue):
        for message in map(Message.from_row, arrived):
            if rules.asks(message, COA):
                _send(operation, message, COA, Feedback.COA, _left(message), queue.id, put_by)


def report_placed(operation: Operation, queue: LocalQueue, first: int) -> None:
    """Reports the arrival of everything whose place has this number or a higher one."""
    if _is_final(queue):
        rows = operation.backend.rows(queue=queue.id, reporting_from=first)
        for row in sorted(rows, key=lambda row: row.place[1:]):  # in order of arrival
            _about(operation, queue, row, COA, Feedback.COA)


def report_settled(operation: Operation, unit: int, queue: LocalQueue, state: State) -> None:
    """Reports messages of a unit, in one state on one queue, just before they are confirmed: COA for puts, COD for
    gets.
    """
    if _is_final(queue):
        kind, feedback = (COA, Feedback.COA) if state is PUT else (COD, Feedback.COD)
        for row in operation.backend.rows(unit=unit, reporting_on=queue.id):
            if row.state is state:
                _about(operation, queue, row, kind, feedback)


def report_step(operation: Operation, queue: LocalQueue, row: QueuedMessage, event: Event, after: State) -> None:
    """Reports one message just before an event makes it visible or delivers it."""
    if becomes_visible(row.state, after) and _is_final(queue):
        _about(operation, queue, row, COA, Feedback.COA)
    elif after is State.ABSENT and row.state is not PUT and event in DELIVERIES and _is_final(queue):
        _about(operation, queue, row, COD, Feedback.COD)


def report_expired(operation: Operation, queue: LocalQueue, rows: Sequence[QueuedMessage]) -> None:
    """Reports expired messages that are about to be discarded.

    If the message was never visible and a unit of work holds it, the report is put in that unit. A message held by a
    confirm id is not reported, as if it had been undone.
    """
    for row in rows:
        unit = None if row.unit is None or row.state is not PUT else operation.unit(row.unit)
        if unit is None or unit.kind != "confirm":
            _about(operation, queue, row, EXPIRATION, Feedback.EXPIRATION, unit)


def report_exception(
    operation: Operation, message: Message, reason: int, put_by: str | None, unit: UnitRow | None = None
) -> None:
    """Reports that a message cannot be delivered (R6.7).

    Args:
        message: the whole message, with its remaining expiry.
        put_by: its mark (`authority`).
        unit: the unit in which to put the report; None: at once.
    """
    if rules.asks(message, EXCEPTION):
        _send(operation, message, EXCEPTION, int(reason), _left(message), 0, put_by, unit=unit)


def _left(message: Message) -> float:
    return math.inf if message.expiry is None else message.expiry


def _is_final(queue: LocalQueue) -> bool:
    """Whether messages on the queue have reached their destination."""
    return queue.attributes.usage == "normal"


def _about(
    operation: Operation,
    queue: LocalQueue,
    row: QueuedMessage,
    kind: ReportKind,
    feedback: Feedback,
    unit: UnitRow | None = None,
) -> None:
    """Sends a report about a message on a queue, if the message asks for it."""
    (row,) = operation.backend.read([row], 0)
    if not rules.asks(row.message, kind):
        return
    most = rules.bytes_of(row.message, kind)
    if most != 0:
        (row,) = operation.backend.read([row], most)
    put_by = only(operation.backend.signed(row.number), f"message {row.number}")
    _send(operation, row.message, kind, feedback, row.expires_at - operation.now, queue.id, put_by, unit=unit)


def _send(
    operation: Operation,
    message: Message,
    kind: ReportKind,
    feedback: int,
    left: float,
    cause: int,
    put_by: str | None,
    *,
    unit: UnitRow | None = None,
) -> None:
    manager = operation.manager
    new_id = make_id(manager.origin, operation.number())
    left = left if left == math.inf else max(EXPIRY_SECONDS_MIN, left)
    made = rules.report(message, kind, feedback, manager=manager.name, new_id=new_id, now=operation.now, left=left)
    send(operation, made, message.reply_to_queue, message.reply_to_queue_manager, cause, unit=unit, of=put_by)
