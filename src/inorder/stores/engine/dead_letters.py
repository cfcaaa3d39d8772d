"""Discards messages that cannot be delivered, or makes them dead letters with the reason (C-5, R6.8)."""

from __future__ import annotations

from ...errors import REASON_TEXT, InorderError, Reason, Undeliverable
from ...model.kinds import Report
from ...model.message import Message
from ...rules.dead_letters import NO_QUEUE, Buried, WhyDead
from .catalog import Catalog
from .delivering import set_aside
from .operation import Operation
from .reports import report_exception


def move_to_dead_letters(
    operation: Operation,
    message: Message,
    *,
    reason: Reason,
    target: str,
    manager: str = "",
    program: str = "",
    attempts: int = 0,
    error: str = "",
    put_by: str | None = None,
) -> Buried:
    """Makes an undeliverable message a dead letter, or discards it if its report options say so; sends an exception
    report if requested.

    Args:
        message: the whole message, with its remaining expiry.
        reason: why it cannot be delivered.
        target, manager: its destination, as the putter named it.
        program: the program that sets it aside; empty: the queue manager.
        attempts: the number of attempts at delivery.
        error: a description of the error.
        put_by: its mark (`authority`), for the authority to report on it.

    Raises: Undeliverable, if the target requires the order (B-24), or no dead letter can be put. Nothing has changed
    then; the caller stops delivering, and reports the cause.
    """
    if requires_order(operation, target, manager):
        raise Undeliverable(
            f"{target} does not accept the message ({_text(reason)}), and its read order is required: no message "
            "may overtake this one, so it cannot become a dead letter. Correct the queue, then continue",
            reason=reason,
            queue=target,
        )
    if not message.report & Report.DISCARD_MESSAGE:
        why = WhyDead(int(reason), target, manager, operation.now, program or operation.manager.name, attempts, error)
        fault = set_aside(operation, message, why, put_by=put_by)
        if fault is not None:
            name = operation.manager.dead_letter_queue
            lack = f"the dead-letter queue {name} does not accept it ({_text(fault)})" if name else NO_QUEUE
            raise Undeliverable(
                f"{target} does not accept the message ({_text(reason)}), and {lack}", reason=reason, queue=target
            )
    report_exception(operation, message, reason, put_by)
    return "discarded" if message.report & Report.DISCARD_MESSAGE else "buried"


def requires_order(operation: Operation, name: str, manager: str) -> bool:
    """Whether a destination is a queue here that requires the order, so that nothing may overtake its messages."""
    try:
        route = Catalog(operation).route(name, manager)
    except InorderError:  # it has no readers here
        return False
    return route.transmission is None and route.queue.read_order == "required"


def _text(reason: Reason) -> str:
    return f"{reason.value} {reason.name}: {REASON_TEXT[reason]}" if reason in REASON_TEXT else reason.name
