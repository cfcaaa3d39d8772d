"""The operations of a channel's receiver: they put a batch once and update the record of the channel (C-1, C-5).

One transaction on all queues of the batch puts the messages, discards them or makes them dead letters, and advances the
record by one. The ledger of a queue would not suffice: a batch goes to several queues, and between two tries some may
fill up, be deleted, or be deleted and defined again.
"""

from __future__ import annotations

from typing import NamedTuple

from ...errors import (
    CallerError,
    InorderError,
    NotAuthorized,
    Reason,
    StoreError,
    Undeliverable,
    bad_argument,
)
from ...model.attribute import is_name
from ...model.channel_attributes import IDENTIFIER_LENGTH_MAX
from ...model.message import Message, Row, Transmission
from ...model.options import PutOptions
from ...model.parameters import is_storable
from ...model.properties import Properties
from ...rules import channels as rules
from ...rules.channels import Last
from ...rules.grouping import NOTHING_OPEN
from ...rules.naming import Route
from ...rules.puts import Program, PutCircumstances, PutPlan
from ..seam.channel_records import BodyPiece, ChannelBatch, Receipt, Received, Sender
from ..seam.tables import ReceivedRow
from ..seam.telemetry import event
from . import arriving_bodies, authority, points
from .catalog import Catalog
from .dead_letters import move_to_dead_letters, requires_order
from .delivering import count_dropped
from .operation import Operation, in_operation
from .process import OpenStore
from .queue import LocalQueue
from .reports import report_arrivals, report_exception
from .settling import discard

DIGEST_LENGTH_MAX = 64
AS_IT_IS = PutOptions(context="set_all")


def _row(operation: Operation, sender: Sender) -> ReceivedRow:
    """Returns the record of a sender; for a new one, an empty record."""
    found = operation.backend.select(
        ReceivedRow, identifier=sender.identifier, incarnation=sender.incarnation, channel=sender.channel
    )
    return found[0] if found else ReceivedRow(*sender, 0, 0, 0, b"", operation.now)


def _last(row: ReceivedRow) -> Last:
    return Last(row.number, row.epoch, row.digest)


def _shown(row: ReceivedRow) -> Received:
    return Received(Sender(*row[:4]), *row[4:])


def receive(operation: Operation, batch: ChannelBatch, user: str | None) -> Receipt:
    """Puts a batch: `Store.receive`."""
    row, channel = _row(operation, batch.sender), batch.sender.channel
    if not batch.number:
        rules.check_epoch(_last(row), batch.epoch, channel)
        return _Delivery(operation, batch, user).run()
    if rules.was_done(_last(row), batch.number, batch.epoch, batch.digest, channel):
        return Receipt(True)
    receipt = _Delivery(operation, batch, user).run()
    if points.reached:
        points.reached("delivered")
    operation.backend.save(
        row._replace(
            manager=batch.sender.manager,
            number=batch.number,
            epoch=batch.epoch,
            messages=len(batch.messages),
            digest=batch.digest,
            received_at=operation.now,
        )
    )
    operation.durable = True
    return receipt


def _arrived(message: Message, *, goes_on: bool) -> Message:
    """Returns the message after one hop, without its count of hops if it ends here, on its queue or as a dead letter.

    Raises: CallerError 9033, after too many.
    """
    text = message.properties.text
    counted = text is not None and rules.HOPS in text
    if not (counted or goes_on):
        return message.with_values(transmission=None)
    properties = dict(message.properties)
    hops = properties.pop(rules.HOPS, 0)
    if goes_on:
        before = hops if isinstance(hops, int) else 0
        if before >= rules.HOPS_MAX:
            raise CallerError(
                f"the message has passed through {before} queue managers, which send it in a circle",
                reason=Reason.TOO_MANY_HOPS,
            )
        properties[rules.HOPS] = before + 1
    return message.with_values(transmission=None, properties=Properties(properties))


class _TargetQueue(NamedTuple):
    """A destination of a batch's messages. Each name of a queue is a separate target, because defaults may differ.

    Args:
        goes_on: it is a transmission queue, from which the messages go to another queue manager.
    """

    queue: LocalQueue
    plan: PutPlan
    goes_on: bool
    rows: list[Row]  # for the queue, under all of its names

    def add(self, message: Message, at: PutCircumstances) -> None:
        """Adds one message. Raises: QueueFull 2053, and the errors of a put; the message is not added then."""
        planned = self.plan.puts([_arrived(message, goes_on=self.goes_on)], NOTHING_OPEN, at)
        depth = self.queue.depth + len(self.rows)
        if depth >= self.queue.attributes.max_depth:
            raise self.queue.full(depth)
        self.rows.extend(planned.arriving)


class _Delivery:
    """The delivery of one batch, in one operation."""

    def __init__(self, operation: Operation, batch: ChannelBatch, user: str | None) -> None:
        self._operation, self._batch, self._catalog = operation, batch, Catalog(operation)
        self._user, self._mark = user, authority.mark_of(operation, user)
        self._at = PutCircumstances(False, False, operation.now, operation.source(len(batch.messages)))
        self._buried = self._discarded = 0

    def run(self) -> Receipt:
        """Puts the batch. Raises: Undeliverable; nothing has happened then."""
        targets, arriving = self._targets()
        refused = list[tuple[Message, Transmission, InorderError]]()
        for position, message in enumerate(self._batch.messages):
            going = message.transmission
            assert going is not None, "messages of a channel name their destination"
            found = targets[going]
            try:
                if position in self._batch.vetoed:
                    raise CallerError("an exit of the channel rejected it", reason=Reason.VETOED)
                if isinstance(found, InorderError):
                    raise found
                found.add(message, self._at)
            except (StoreError, AssertionError):
                raise
            except InorderError as error:
                self._check_may_refuse(going, error)
                refused.append((message, going, error))
        for queue, rows in arriving:
            put_by = self._mark if self._mark and any(map(authority.asks_for_reports, rows)) else None
            if rows and self._operation.arrive(queue, rows, None, put_by):
                report_arrivals(self._operation, queue, rows, put_by)
        for message, going, why in refused:  # only now, as their dead letters and reports may go to the same queues
            self._refuse(message, going, why)
        put = len(self._batch.messages) - self._buried - self._discarded
        return Receipt(False, put, self._buried, self._discarded)

    def _targets(self) -> tuple[dict[Transmission, _TargetQueue | InorderError], list[tuple[LocalQueue, list[Row]]]]:
        """Returns each destination's target, or the error of its name; and the queues in the order of their numbers."""
        found: dict[Transmission, _TargetQueue | InorderError] = {}
        routes: dict[Transmission, tuple[int, Route]] = {}
        names = self._operation.store.definitions.names
        for going in dict.fromkeys(one.transmission for one in self._batch.messages):
            assert going is not None
            try:
                route = names.route(going.queue, going.manager)
                self._demand_put(going)
                routes[going] = self._catalog.number(route.queue.name), route
            except InorderError as error:
                found[going] = error
        queues = {
            number: (self._come_to(number), list[Row]()) for number in sorted({one for one, _ in routes.values()})
        }
        program = Program("", self._batch.sender.channel)
        for going, (number, route) in routes.items():
            queue, rows = queues[number]
            try:
                plan = PutPlan(
                    AS_IT_IS,
                    route.attributes,
                    self._operation.manager,
                    program,
                    transmission=route.transmission,
                    reply_to=names.reply_to,
                )
                found[going] = _TargetQueue(queue, plan, route.transmission is not None, rows)
            except InorderError as error:
                found[going] = error
        return found, list(queues.values())

    def _demand_put(self, going: Transmission) -> None:
        """Raises: NotAuthorized 2035, the channel's user may not put there."""
        if not authority.may_put(self._operation, self._mark, going.queue, going.manager):
            text = f"the channel's user {self._user} may not put there"
            raise NotAuthorized(text, user=self._user, authority="put", queue=going.queue)

    def _come_to(self, number: int) -> LocalQueue:
        queue = self._operation.queue(number)
        if queue.has_work(self._operation.now):
            discard(self._operation, queue)
        return queue

    def _check_may_refuse(self, going: Transmission, error: InorderError) -> None:
        """Raises: Undeliverable, the whole batch fails because of a message that cannot be put."""
        batch = self._batch
        if not batch.to_dead_letters or (batch.number and requires_order(self._operation, going.queue, going.manager)):
            raise Undeliverable(
                f"channel {batch.sender.channel}: {going.queue} does not accept a message of batch {batch.number}: "
                f"{error.args[0]}",
                reason=error.reason,
                queue=going.queue,
            )

    def _refuse(self, message: Message, going: Transmission, error: InorderError) -> None:
        """Makes a message that cannot be put a dead letter, or discards it. Raises: Undeliverable."""
        batch = self._batch
        dead = _arrived(message, goes_on=False)
        put_by = self._mark if authority.asks_for_reports(message.row) else None
        try:
            done = move_to_dead_letters(
                self._operation,
                dead,
                reason=error.reason,
                target=going.queue,
                manager=going.manager,
                program=batch.sender.channel,
                attempts=batch.attempts + 1,
                error=str(error.args[0]),
                put_by=put_by,
            )
        except Undeliverable:
            if batch.number:
                raise
            report_exception(self._operation, dead, error.reason, put_by)  # the sender no longer has the message
            count_dropped(self._operation, 0, error.reason)
            done = "discarded"
        self._buried += done == "buried"
        self._discarded += done == "discarded"


class ReceivingVerbs(OpenStore):
    """The operations of a channel's receiver; `protocol.Store` documents them."""

    @event(
        "receive",
        "messages",
        "channel already",
        measured=lambda receipt, *_, **__: [receipt.put],
        about=lambda receipt, batch, **_: [batch.sender.channel, receipt is not None and receipt.already],
    )
    def receive(self, batch: ChannelBatch, *, user: str | None = None) -> Receipt:
        whole = self.with_bodies(batch)
        return Receipt(True) if whole is None else self._receive(whole, user)

    @in_operation(feeds=True, unless_dead=(Undeliverable,))
    def _receive(self, operation: Operation, batch: ChannelBatch, user: str | None) -> Receipt:
        receipt = receive(operation, batch, user)
        if batch.held:
            arriving_bodies.forget(operation, batch.sender)
        return receipt

    def with_bodies(self, batch: ChannelBatch) -> ChannelBatch | None:
        check_batch(batch)
        held = [batch.messages[position] for position in batch.held]
        lacks = any(len(one.body) < one.length for one in held)  # otherwise an exit may have made a body empty
        return self._with_bodies(batch) if lacks else batch

    @in_operation(writes=False)
    def _with_bodies(self, operation: Operation, batch: ChannelBatch) -> ChannelBatch | None:
        last, channel = _last(_row(operation, batch.sender)), batch.sender.channel
        if rules.was_done(last, batch.number, batch.epoch, batch.digest, channel):
            return None
        return arriving_bodies.filled(operation, batch)

    @event(
        "receive_piece",
        "bytes",
        "channel",
        measured=lambda _, __, ___, piece: [len(piece.data)],
        about=lambda _, sender, *__: [sender.channel],
    )
    def receive_piece(self, sender: Sender, epoch: int, piece: BodyPiece) -> int:
        check_sender(sender)
        arriving_bodies.check_piece(piece)
        return self._receive_piece(sender, epoch, piece)

    @in_operation()
    def _receive_piece(self, operation: Operation, sender: Sender, epoch: int, piece: BodyPiece) -> int:
        last = _last(_row(operation, sender))
        rules.check_epoch(last, epoch, sender.channel)
        if last.digest and piece.batch == last.digest:  # the answer was lost
            return piece.size
        return arriving_bodies.keep(operation, sender, piece)

    @event("bind_channel", keys="channel", about=lambda _, sender, *__, **___: [sender.channel])
    @in_operation()
    def bind_channel(self, operation: Operation, sender: Sender, epoch: int, *, resets: bool = False) -> Received:
        check_sender(sender)
        row = _row(operation, sender)
        if resets:
            return _shown(row)
        rules.check_epoch(_last(row), epoch, sender.channel)
        row = row._replace(epoch=epoch, manager=sender.manager)
        operation.backend.save(row)
        operation.durable = True
        return _shown(row)

    @event("reset_received", keys="channel", about=lambda _, sender, *__: [sender.channel])
    @in_operation()
    def reset_received(
        self, operation: Operation, sender: Sender, epoch: int, number: int, seen: Last | None = None
    ) -> None:
        check_sender(sender)
        row = _row(operation, sender)
        if seen is not None:
            rules.check_unchanged(_last(row), seen, Last(number, epoch), sender.channel)
        operation.backend.save(
            row._replace(number=number, epoch=epoch, messages=0, digest=b"", received_at=operation.now)
        )
        arriving_bodies.forget(operation, sender)
        operation.durable = True

    @event("received")
    @in_operation(writes=False)
    def received(self, operation: Operation) -> list[Received]:
        return [_shown(row) for row in operation.backend.select(ReceivedRow)]


def check_sender(sender: Sender) -> None:
    """Raises: ArgumentError."""
    is_identifier = is_storable(sender.identifier) and 0 < len(sender.identifier) <= IDENTIFIER_LENGTH_MAX
    if not (is_identifier and is_name(sender.channel) and is_name(sender.manager)):
        raise bad_argument(
            "sender", sender, "the identifier of a store, and the names of a channel and a queue manager"
        )


def check_batch(batch: ChannelBatch) -> None:
    """Raises: ArgumentError."""
    check_sender(batch.sender)
    if len(batch.digest) > DIGEST_LENGTH_MAX:
        raise bad_argument("batch", len(batch.digest), f"a digest of at most {DIGEST_LENGTH_MAX} bytes")
    if batch.number < 0 or batch.epoch < 1:
        raise bad_argument("batch", (batch.number, batch.epoch), "a batch with a number from 0 and an epoch from 1")
    if any(not 0 <= position < len(batch.messages) for position in batch.held):
        raise bad_argument("batch", len(batch.held), "bodies held for positions of its messages")
    if not batch.messages or any(one.transmission is None for one in batch.messages):
        raise bad_argument("batch", len(batch.messages), "messages that name their destination")
