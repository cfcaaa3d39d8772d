"""Messages that the queue manager itself puts: reports, trigger messages, dead letters.

Such a put never makes its operation fail. If the message cannot be put on its destination, it goes to the dead-letter
queue. If that does not accept it, it is dropped and counted (C-5).
"""

from __future__ import annotations

from ...errors import InorderError, QueueDeleted, Reason
from ...model.message import Message, Row, UniqueId
from ...model.properties import NO_PROPERTIES
from ...rules.dead_letters import WhyDead, buried
from ...rules.naming import Route
from ..seam.backend import Alone
from ..seam.tables import DroppedRow, UnitRow
from . import authority
from .catalog import Catalog
from .operation import Operation
from .queue import LocalQueue


def as_put(operation: Operation, queue: LocalQueue | None, message: Message, number: int) -> Row:
    """Returns the row of a message that arrives on a queue, with a new number and its unique id.

    Args:
        queue: the queue, if the message is put again: it keeps its unique id unless the queue already has it. None: it
            is new.
    """
    uid = message.uid
    if uid is None or queue is None or queue.by_uid(uid) is not None:
        uid = UniqueId(operation.manager.origin, number)
    row: Row = message.with_values(
        backout_count=0, token=number.to_bytes(16, "big"), uid=uid, place=None, earlier_pending=None, warning=None
    ).row
    return row


def target_of(catalog: Catalog, name: str, manager: str) -> Route | Reason:
    """Resolves a name (N-1). Returns the reason instead if that fails, or if puts are not allowed there: on a
    transmission queue a message needs a destination (N-3).
    """
    try:
        route = catalog.route(name, manager)
    except InorderError as error:
        return error.reason
    if route.transmission is None and route.queue.usage == "transmission":
        return Reason.XQH_ERROR
    return route if route.attributes.put_allowed else Reason.PUT_INHIBITED


def fault_of(operation: Operation, queue: LocalQueue, message: Message) -> Reason | None:
    """Returns the reason why a queue does not accept a message now, or None (C-5)."""
    attributes, manager = queue.attributes, operation.manager
    if message.length > attributes.max_length:
        return Reason.MSG_TOO_BIG_FOR_Q
    if message.length > manager.max_length:
        return Reason.MSG_TOO_BIG_FOR_Q_MGR
    if message.persistent and attributes.definition_type == "temporary_dynamic":
        return Reason.PERSISTENT_NOT_ALLOWED
    if queue.depth >= attributes.max_depth:
        operation.backend.check_certain(queue.id)
        return Reason.Q_FULL
    return None


def deliver(
    operation: Operation,
    message: Message,
    name: str,
    manager: str = "",
    *,
    is_new: bool = True,
    unit: UnitRow | None = None,
    put_by: str | None = None,
) -> Reason | None:
    """Puts a complete message on a queue, at once or in a unit. Returns None, or the reason why it cannot.

    Args:
        put_by: its mark (`authority`).
    """
    catalog = Catalog(operation)
    target = target_of(catalog, name, manager)
    if isinstance(target, Reason):
        return target
    if catalog.find(target.queue.name) is None and not operation.kind.alone:
        raise Alone  # the queue's definition must be stored first
    try:
        queue = operation.queue(catalog.number(catalog.made(target.queue.name).name))
    except QueueDeleted:  # just now, by an operation that runs beside this one
        return Reason.UNKNOWN_OBJECT_NAME
    fault = fault_of(operation, queue, message)
    if fault is None:
        going = message.with_values(transmission=target.transmission)
        if unit is not None:  # the unit may be another connection's
            operation.pass_others()
        operation.arrive(queue, [as_put(operation, None if is_new else queue, going, operation.number())], unit, put_by)
    return fault


def set_aside(
    operation: Operation, message: Message, why: WhyDead, unit: UnitRow | None = None, put_by: str | None = None
) -> Reason | None:
    """Puts a message on the dead-letter queue. Returns None, or the reason why it cannot: the queue is missing, or
    refuses it.

    Args:
        put_by: its mark (`authority`).
    """
    name = operation.manager.dead_letter_queue
    if not name:
        return Reason.UNKNOWN_OBJECT_NAME
    dead = buried(message, why)
    return dead if isinstance(dead, Reason) else deliver(operation, dead, name, is_new=False, unit=unit, put_by=put_by)


def send(
    operation: Operation,
    message: Message,
    name: str,
    manager: str,
    cause: int = 0,
    *,
    unit: UnitRow | None = None,
    of: str | None = authority.OWN,
) -> None:
    """Puts a message that the queue manager has made on its destination, or on the dead-letter queue; else counts it.

    Args:
        cause: the queue of the message that caused it, which counts drops; 0: no local queue.
        unit: the unit in which to put it; None: at once.
        of: the mark on whose authority it is put. Without authority for the destination it becomes a dead letter;
            without authority for the dead-letter queue, a dead letter without body and properties (P-3).
    """
    reason: Reason | None = Reason.NOT_AUTHORIZED
    if authority.may_put(operation, of, name, manager):
        put_by = authority.OWN if of == authority.OWN else None
        reason = deliver(operation, message, name, manager, unit=unit, put_by=put_by)
    if reason is None:
        return
    if not authority.may_put(operation, of, operation.manager.dead_letter_queue):
        message = message.with_values(body=b"", length=0, format="", properties=NO_PROPERTIES)
    why = WhyDead(int(reason), name, manager, operation.now, operation.manager.name)
    if set_aside(operation, message, why, unit) is not None:
        count_dropped(operation, cause, reason)


def count_dropped(operation: Operation, cause: int, reason: Reason) -> None:
    """Counts a message that the queue manager could not put, for this reason."""
    found = operation.backend.select(DroppedRow, queue=cause)
    before = found[0].messages if found else 0
    operation.backend.save(DroppedRow(cause, before + 1, operation.now, int(reason)))
