"""One put request in one verb: plan, check the room, let the messages arrive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..attributes import ManagerAttributes, QueueAttributes
from ..errors import DuplicateMessage, OptionsError, QueueFull, WrongState
from ..rules.lifecycle import Answer, Event, step
from ..rules.puts import Planned, PutCircumstances, PutResult, plan_puts
from .process import OpenHandle
from .queue import LocalQueue
from .queued import QueuedMessage
from .records import PutOutcome, PutRequest
from .settling import arrive, happen
from .tables import UnitRow
from .verb import Verb

_tuple = tuple.__new__  # makes a named tuple without the call in between: each put makes some


@dataclass(slots=True)
class Putting:
    """A put request, and where it meets the queue."""

    verb: Verb
    handle: OpenHandle
    queue: LocalQueue
    request: PutRequest
    queue_attributes: QueueAttributes
    manager: ManagerAttributes

    def run(self) -> PutOutcome:
        options, queue = self.request.options, self.queue
        plans = self._plan()
        results = [plan.result for plan in plans]
        outcome = _tuple(PutOutcome, (results, plans[-1].state if plans else self.request.state))
        earlier = None
        if options.uid is not None or options.confirm_id:
            earlier = self._earlier_copy()
            if earlier is not None and not self._replaces(earlier, plans):
                return PutOutcome([_as_stored(earlier, results[0])], self.request.state)  # it is where it should be
            self._check_one_piece(plans)
        self._check_room(plans, freed=earlier is not None)
        unit = None
        if self.request.in_unit or options.confirm_id:
            unit = self._unit(len(plans))
        if earlier is not None:
            happen(self.verb, queue, earlier, Event.BACK_OUT)
        arrive(self.verb, queue, [message for plan in plans for message in plan.arriving], unit)
        return outcome

    def _plan(self) -> Sequence[Planned]:
        connection = self.handle.connection
        circumstances = _tuple(
            PutCircumstances,
            (
                self.queue_attributes,
                self.manager,
                connection.program,
                self.request.in_unit,
                connection.unit is not None,
                self.verb.now,
                self.verb.numbers.__next__,
            ),
        )
        return plan_puts(self.request.messages, self.request.options, self.request.state, circumstances)

    # --- repeated puts

    def _earlier_copy(self) -> QueuedMessage | None:
        uid = self.request.options.uid
        return None if uid is None else self.queue.by_uid(uid)

    def _replaces(self, earlier: QueuedMessage, plans: Sequence[Planned]) -> bool:
        """Whether this put takes the place of a hidden copy; a copy that has been seen stands.

        Raises: DuplicateMessage, it is not said to be a repeat; WrongState, a unit of work holds the copy.
        """
        options = self.request.options
        held = bool(options.confirm_id or self.request.in_unit)
        if options.resend:
            event = Event.RESEND_HELD if held else Event.RESEND
        else:
            event = Event.PUT_HELD if held else Event.PUT
        answer, to = step(earlier.state, event)
        if answer is Answer.DUPLICATE:
            self.verb.refuse(self.queue, plans[0].arriving[0])
            name = self.queue.attributes.name
            raise DuplicateMessage(f"{options.uid} is on {name} already; a repeat says resend", uid=options.uid)
        if to is not None and earlier.unit is not None and self.verb.unit(earlier.unit).kind != "confirm":
            raise WrongState(f"{options.uid} was put in a unit of work", uid=options.uid)
        return to is not None

    def _check_one_piece(self, plans: Sequence[Planned]) -> None:
        """A confirm names one message by its unique id, so what is confirmed or repeated must be one (A-10)."""
        options = self.request.options
        if (options.confirm_id or options.uid) and any(len(plan.arriving) > 1 for plan in plans):
            raise OptionsError("a put with a confirm id or unique id cannot be split: raise max_length")

    # --- room and place

    def _check_room(self, plans: Sequence[Planned], *, freed: bool) -> None:
        """Each put must find the queue below its limit; the pieces it is split into may pass it (R4.7, R2.27)."""
        queue = self.queue
        depth = queue.state.depth + queue.added - freed
        for plan in plans:
            if depth >= queue.attributes.max_depth:
                raise QueueFull(
                    f"{queue.attributes.name} has {depth:,} messages, its limit",
                    queue=queue.attributes.name,
                    depth=depth,
                )
            depth += len(plan.arriving)

    def _unit(self, calls: int) -> UnitRow | None:
        if self.request.in_unit and calls:
            return self.verb.enlist(self.handle.connection, calls, self.manager.max_uncommitted)
        if self.request.options.confirm_id:
            return self.verb.confirm_unit(self.handle.connection.program, self.queue, self.request.options.confirm_id)
        return None


def _as_stored(row: QueuedMessage, result: PutResult) -> PutResult:
    """The answer to a repeated put that changes nothing: the ids and numbers of the copy that stands."""
    message = row.message
    return result._replace(
        message_id=message.message_id,
        correlation_id=message.correlation_id,
        group_id=message.group_id,
        sequence_number=message.sequence_number,
        offset=message.offset,
    )
