"""Puts trigger messages in the transaction that makes them due (`rules.triggers`).

A trigger message that cannot be put becomes a dead letter, or is dropped and counted. It never makes the operation fail
(P-2). Trigger messages do not trigger others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice

from ...errors import QueueDeleted
from ...model.attributes import QueueAttributes, altered
from ...model.message import ANY_GROUP, ANY_SEGMENT, Message
from ...model.options import Match
from ...model.process_attributes import NO_PROCESS, ProcessAttributes
from ...rules.grouping import ANYTHING, Wanted
from ...rules.puts import make_id
from ...rules.triggers import SeenQueue, TriggerMessage, due, needed, trigger_message
from ..seam.backend import Alone
from ..seam.clocks import is_ahead
from ..seam.definitions import process_of
from ..seam.queued import available, onlooker
from ..seam.tables import HandleRow, ObjectRow, TriggeredRow
from .catalog import Catalog
from .delivering import send
from .operation import Operation
from .queue import LocalQueue


def judge(operation: Operation) -> None:
    """Puts the trigger messages that are due at the end of an operation, from the operation's notes."""
    newcomers, returned, released = operation.newcomers, operation.returned, operation.released
    for number in sorted({*newcomers, *returned, *released}):
        try:
            queue = operation.queue(number)
        except QueueDeleted:
            continue
        least = queue.attributes.trigger_priority
        heard = [one for one in newcomers.get(number, ()) if (one.priority or 0) >= least]
        back = returned.get(number, 0)
        if queue.attributes.trigger_control and (heard or back or number in released):
            _judge(operation, queue, heard, back, was_released=number in released)
    operation.newcomers, operation.returned, operation.released = {}, {}, set()


def _judge(operation: Operation, queue: LocalQueue, heard: Sequence[Message], back: int, *, was_released: bool) -> None:
    attributes = queue.attributes
    process = _process(operation, attributes)
    if process is None or Catalog(operation).found(attributes.initiation_queue) is None:
        return
    seen = SeenQueue(
        came=len(heard),
        back=back,
        groups=_groups(operation, queue, heard) if attributes.trigger_type == "group" else 0,
        there=_there(operation, queue, needed(attributes, len(heard) + back)),
        has_reader=any(one.input for one in operation.backend.select(HandleRow, queue=queue.id)),
        quiet=_quiet(operation, queue),
        was_released=was_released,
    )
    interval = operation.manager.trigger_interval
    count = due(attributes, math.inf if interval is None else interval, seen)
    if count:
        _trigger(operation, queue, process, count)


def _there(operation: Operation, queue: LocalQueue, most: int) -> int:
    """Returns how many messages of sufficient priority can be got, counting up to `most`."""
    if queue.depth < most and queue.attributes.trigger_type == "depth":
        return queue.depth
    reader, least = onlooker(operation.now), queue.attributes.trigger_priority
    rows = (row for row in operation.backend.candidates(queue, ANYTHING, reader, None) if available(row, reader))
    if least:
        rows = (row for row in rows if (operation.backend.read([row], 0)[0].message.priority or 0) >= least)
    return sum(1 for _ in islice(rows, most))


def _groups(operation: Operation, queue: LocalQueue, heard: Sequence[Message]) -> int:
    """Returns how many groups these messages complete; a message in no group counts as one."""
    singles = sum(not one.flags & (ANY_GROUP | ANY_SEGMENT) for one in heard)
    groups = {one.group_id for one in heard if one.flags & (ANY_GROUP | ANY_SEGMENT)}
    whole = (Wanted(heads=True, match=Match(group_id=each), needs="group") for each in sorted(groups))
    return singles + sum(bool(queue.find(wanted, onlooker(operation.now), None)) for wanted in whole)


def _quiet(operation: Operation, queue: LocalQueue) -> float:
    """Returns the seconds since the queue's last trigger message; infinite if the clock was ahead then."""
    known = operation.backend.select(TriggeredRow, queue=queue.id)
    return operation.now - known[0].at if known and not is_ahead(known[0].at, operation.now) else math.inf


def _process(operation: Operation, queue: QueueAttributes) -> ProcessAttributes | None:
    """Returns the process definition of a queue, an empty one for a transmission queue that names none; None: it is
    not defined.
    """
    if not queue.process:
        return NO_PROCESS if queue.usage == "transmission" else None
    found = operation.backend.select(ObjectRow, type="process", name=queue.process)
    return process_of(found[0].attributes) if found else None


def _trigger(operation: Operation, queue: LocalQueue, process: ProcessAttributes, count: int) -> None:
    attributes = queue.attributes
    said = TriggerMessage(
        queue=attributes.name,
        process=attributes.process,
        trigger_data=attributes.trigger_data,
        application_type=process.application_type,
        application_id=process.application_id,
        environment_data=process.environment_data,
        user_data=process.user_data,
    )
    for _ in range(count):
        _put(operation, queue, said)
    operation.backend.save(TriggeredRow(queue.id, operation.now))
    if attributes.trigger_type == "depth":
        if not operation.kind.alone:
            raise Alone
        queue.attributes = altered(attributes, "alter", trigger_control=False)
        Catalog(operation).change(queue.attributes)


def _put(operation: Operation, queue: LocalQueue, said: TriggerMessage) -> None:
    initiation_queue = queue.attributes.initiation_queue
    known = Catalog(operation).find(initiation_queue)
    manager = operation.manager
    new_id = make_id(manager.origin, operation.number())
    message = trigger_message(said, manager.name, new_id, operation.now).with_values(
        priority=known.default_priority if known else 0, persistent=known.default_persistence if known else True
    )
    send(operation, message, initiation_queue, "", queue.id)
