"""One put request in one verb: plan it, check the room, add the messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...errors import DuplicateMessage, OptionsError, WrongState, bad_argument
from ...model.message import Message, UniqueId
from ...model.options import PutOptions
from ...rules.lifecycle import Event, StepAnswer, step
from ...rules.puts import Planned, PutCircumstances, PutPlan, PutResult
from ..seam.queued import QueuedMessage
from ..seam.records import PutOutcome, PutRequest
from . import authority, putkeys
from .catalog import Catalog
from .operation import Operation
from .process import OpenConnection, OpenHandle
from .queue import LocalQueue
from .reports import report_arrivals
from .settling import happen

_tuple = tuple.__new__  # makes a named tuple without an extra call: each put makes some


def put(operation: Operation, handle: OpenHandle, queue: LocalQueue, request: PutRequest) -> PutOutcome:
    """Puts all messages of a request or, if it fails, none."""
    messages, options, in_unit = request.messages, request.options, request.in_unit
    connection, state, new_number = handle.connection, request.state, operation.number
    if len(messages) != 1 or options.confirm_id or connection.is_leased:
        if not messages:
            return PutOutcome([], state)
        new_number = _numbers(operation, connection, request)
    plan = _plan(operation, handle, queue, options)
    new_uid = _reserved(operation, connection, queue, request) if request.uid_number else None
    at = _tuple(PutCircumstances, (in_unit, connection.unit is not None, operation.now, new_number, new_uid))
    planned = plan.puts(messages, state, at)
    earlier = None
    if options.uid is not None or options.confirm_id:
        again = Repeat(operation, queue, request)
        earlier = again.earlier_copy()
        if earlier is not None and not again.replaces(earlier, planned):
            return PutOutcome([_as_stored(earlier, planned.results[0])], state)  # it is already there
        again.check_one_piece(planned)
    if options.deduplicate is not None:
        told = putkeys.duplicates(operation, connection, queue, request, planned)
        if told is not None:
            return PutOutcome(told, state)
    depth = queue.state.depth + queue.added - (earlier is not None)
    if depth + len(planned.arriving) > queue.attributes.max_depth:
        _check_room(queue, depth, planned)
    put_by = None if connection.user is None else authority.mark_asked(operation, connection.user, planned.arriving)
    unit = None
    if in_unit:
        unit = operation.enlist(connection, len(messages), operation.manager.max_uncommitted)
    elif options.confirm_id:
        unit = operation.confirm_unit(connection.holder, queue, options.confirm_id)
    if earlier is not None:
        happen(operation, queue, earlier, Event.BACK_OUT)
    if operation.arrive(queue, planned.arriving, unit, put_by) and unit is None:
        report_arrivals(operation, queue, planned.arriving, put_by)
    if options.deduplicate is not None:
        putkeys.take(operation, connection, queue, request, planned, unit)
    return _tuple(PutOutcome, (planned.results, planned.state))


def _numbers(operation: Operation, connection: OpenConnection, request: PutRequest) -> Callable[[], int]:
    """Returns a source of numbers for several messages, or for one in a unit that several connections may use."""
    if request.options.confirm_id or (request.in_unit and connection.is_leased):
        operation.pass_others()
    return operation.source(len(request.messages))


def _reserved(
    operation: Operation, connection: OpenConnection, queue: LocalQueue, request: PutRequest
) -> Callable[[], UniqueId]:
    """Returns a source of the reserved unique ids of the request, which are used up with the operation.

    Raises: ArgumentError, if not all are reserved; DuplicateMessage, if another connection has put one with
    `PutOptions.uid` meanwhile, because it took this put for lost.
    """
    first, count, reserved = request.uid_number, len(request.messages), connection.reserved
    origin = operation.manager.origin
    if request.options.uid is not None:
        raise bad_argument("uid_number", first, "0 with the option uid")
    if not reserved:
        raise bad_argument("uid_number", first, "0, because this connection has no reserved ids left")
    if not reserved.start <= first <= reserved.stop - count:
        last = reserved.stop - 1
        raise bad_argument("uid_number", first, f"the first of {count:,} ids in the rest of this connection's block, "
                           f"{reserved.start} to {last}")  # fmt: skip
    uids = [_tuple(UniqueId, (origin, number)) for number in range(first, first + count)]
    for row in operation.backend.rows(1, queue=queue.id, uids=uids):
        uid = row.message.uid
        raise DuplicateMessage(f"{uid} is already on {queue.attributes.name}", uid=uid)
    operation.remember(connection, "reserved")
    connection.reserved = range(first + count, reserved.stop)
    return iter(uids).__next__


def _plan(operation: Operation, handle: OpenHandle, queue: LocalQueue, options: PutOptions) -> PutPlan:
    """Returns the shared part of this handle's puts; the last put's is reused while it is valid."""
    plan, manager, attributes = handle.plan, operation.store.definitions.manager, queue.attributes
    if plan is None or plan.manager is not manager or not (plan.options is options or plan.options == options):
        if not handle.is_direct:
            attributes = Catalog(operation).resolved_for_put(handle, attributes)
        plan = handle.plan = PutPlan(
            options,
            attributes,
            manager,
            handle.connection.program,
            transmission=handle.transmission,
            reply_to=operation.store.definitions.names.reply_to,
        )
    return plan


def _check_room(queue: LocalQueue, depth: int, planned: Planned) -> None:
    """Refuses a put that finds the queue at its limit; the segments of one message may exceed it (R4.7, R2.27)."""
    for nth in range(len(planned.results)):
        if depth >= queue.attributes.max_depth:
            raise queue.full(depth)
        depth += planned.split.get(nth, 1)


class Repeat(NamedTuple):
    """A put that may repeat an earlier one (A-3, A-22)."""

    operation: Operation
    queue: LocalQueue
    request: PutRequest

    def earlier_copy(self) -> QueuedMessage | None:
        """Returns the message with this unique id that is on the queue, if any."""
        uid = self.request.options.uid
        return None if uid is None else self.queue.by_uid(uid)

    def replaces(self, earlier: QueuedMessage, planned: Planned) -> bool:
        """Whether this put replaces an earlier copy that is still hidden; a visible copy stays.

        Raises: DuplicateMessage, if the put is not marked as a repeat; WrongState, if a unit of work holds the copy.
        """
        options = self.request.options
        held = bool(options.confirm_id or self.request.in_unit)
        if options.resend:
            event = Event.RESEND_HELD if held else Event.RESEND
        else:
            event = Event.PUT_HELD if held else Event.PUT
        answer, to = step(earlier.state, event)
        if answer is StepAnswer.DUPLICATE:
            self.operation.refuse(self.queue, Message.from_row(planned.arriving[0]))
            name = self.queue.attributes.name
            raise DuplicateMessage(f"{options.uid} is already on {name}; to repeat a put, use resend", uid=options.uid)
        if to is not None and earlier.unit is not None and self.operation.unit(earlier.unit).kind != "confirm":
            raise WrongState(f"{options.uid} was put in a unit of work", uid=options.uid)
        return to is not None

    def check_one_piece(self, planned: Planned) -> None:
        """A put with a confirm id or a unique id must be one message, because a confirm names one message (A-10)."""
        options = self.request.options
        if (options.confirm_id or options.uid) and planned.split:
            raise OptionsError("a put with a confirm id or unique id cannot be split: raise max_length")


def _as_stored(row: QueuedMessage, result: PutResult) -> PutResult:
    """The answer to a repeated put that changes nothing, with the ids and numbers of the earlier copy."""
    message = row.message
    return result._replace(
        message_id=message.message_id,
        correlation_id=message.correlation_id,
        group_id=message.group_id,
        sequence_number=message.sequence_number,
        offset=message.offset,
    )
