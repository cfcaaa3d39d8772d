"""Runs a channel: sends batches from the transmission queue to the other store, each once, in order (C-1, C-6).

::

    take the channel, bind the receiver      earlier runs are fenced on both sides; both agree on the next batch
    claim a batch, confirm the one before    one transaction here
    receive fast messages                    non-persistent ones, which that transaction has removed
    read it, pass it through this exit       nothing changes
    pass it through the receiver's exit      where the receiver's store is open: here, or in its server
    receive                                  one transaction there, which advances its record by one
    ... and so on; the last batch that was received is confirmed with the next claim

On a fast channel (C-4) the claim leaves non-persistent messages out. They are removed before they are sent, and are
never sent again: they may be lost, but do not arrive twice.

If a run dies, the next one reads the open claim and the receiver's record, and sends the batch again; the receiver
reports a batch that it already has. After trouble with a store the run retries, first at short intervals and then
at long ones. Errors that need an operator (a sequence error, a message that cannot be put, an exit that raises, a store
that is damaged, or not ours) stop the channel. If a store was replaced, or a sync to its disk has failed, only another
process can continue: the run ends, and the channel is inactive.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from ...client.manager import QueueManager
from ...errors import (
    ChannelStopped,
    ConnectionBroken,
    Fenced,
    GetInhibited,
    InorderError,
    NoMessageAvailable,
    ObjectInUse,
    OrderPending,
    OutcomeUnknown,
    QueueManagerStopping,
    StoreDamaged,
    StoreError,
    StoreForeign,
    StoreNewer,
    Undeliverable,
    bad_argument,
)
from ...model.channel_attributes import ChannelAttributes
from ...model.message import Message
from ...rules.channels import check_agreement
from ...stores.seam.channel_records import Carrying, ChannelBatch, ChannelNow, Receipt
from ...stores.seam.records import Claim
from . import points
from .defining import channel, now_of
from .exits import load, passed
from .sides import Connect, Receiver, Sending, aged, bound, digest, open_receiver, reach, reset

LOOK_SECONDS = 1.0  # how soon an idle run notices that it was stopped
BUSY_SECONDS = 0.1  # between checks for messages that cannot be claimed yet
LASTING = (StoreDamaged, StoreForeign, StoreNewer)  # does not pass by itself
TROUBLE = (StoreError, ConnectionBroken, OutcomeUnknown, QueueManagerStopping, GetInhibited)  # may pass by itself

Wait = Callable[[float], bool]
"""Waits this many seconds; returns True if the program that runs the channel ends."""


class Stopping(Exception):
    """The run is to end: an operator has stopped the channel, or the program of the run ends."""


class Retries(NamedTuple):
    """The failed tries of a run since its last success."""

    short: int = 0
    long: int = 0

    def next(self, definition: ChannelAttributes) -> tuple[Retries, int] | None:
        """The next try, and the seconds before it; None if no try is left."""
        if self.short < definition.short_retry_count:
            return self._replace(short=self.short + 1), definition.short_retry_interval
        if self.long < definition.long_retry_count:
            return self._replace(long=self.long + 1), definition.long_retry_interval
        return None


def run_channel(
    qm: QueueManager,
    name: str,
    *,
    until_empty: bool = False,
    wait: Wait | None = None,
    exits: Collection[str] = (),
    connects: Connect = open_receiver,
) -> ChannelNow:
    """Runs a channel until it is stopped, or its `disconnect_interval` is over.

    Args:
        until_empty: end when nothing more can be claimed.
        wait: called to wait; returns True if the run is to end after its batch. Default: sleeps, and never ends the
            run.
        exits: the modules whose functions this process may call as exits; no other module is imported.
        connects: connects to the other side; default: `inorder.connect` to a store that must exist.

    Returns: the status of the channel.

    Raises ArgumentError if the channel's exit is not among `exits`; nothing has changed then. Raises ChannelStopped
    if an operator has stopped it: start it; ObjectInUse 2042 if another program runs it; Fenced if another one has
    taken over; UnknownObject 2085, also if its address of MQ has no connection. SequenceError 9030, Undeliverable,
    NotAuthorized 2035 of the server at the other side, exceptions of exits,
    StoreDamaged, StoreForeign and StoreNewer have stopped the channel. StoreError with `must_reopen` if a store was
    replaced or could not be synced: this process must end, or close it; another one can continue.
    """
    definition = channel(qm, name)
    if definition.type != "sender":
        raise bad_argument("name", name, "a sender channel: a receiver is run from its sender's side")
    load(definition, exits)
    with qm.connect() as own:
        ChannelRun(
            own,
            definition,
            wait or threading.Event().wait,
            exits,
            lambda: reach(own, definition, connects),
            until_empty=until_empty,
        ).run()
    return now_of(qm, definition)


class ChannelRun:
    """One run of a channel that sends, or by which a queue manager collects (`collecting`).

    Args:
        own: a connection to the sender's side, for this run alone.
        reach: connects to the receiver's side.
    """

    status_of_failure = "stopped"

    def __init__(
        self,
        own: QueueManager,
        definition: ChannelAttributes,
        wait: Wait,
        exits: Collection[str],
        reach: Callable[[], Receiver],
        *,
        until_empty: bool,
    ) -> None:
        self._definition, self._wait, self._exits, self._reach = definition, wait, exits, reach
        self._until_empty = until_empty
        self._sending = Sending(own, definition)
        self._carrying: Carrying | None = None
        self._retries = Retries()
        self._idle = 0.0  # seconds since the last message

    def run(self) -> None:
        try:
            while True:
                try:
                    with self._outliving_cuts():
                        self._carry()
                        return
                except TROUBLE as error:
                    if isinstance(error, LASTING) or error.data.get("must_reopen"):
                        raise
                    self._retry(error)
        except Stopping:
            self._ends("inactive")
        except Fenced:
            if not self._stop():  # another program runs it
                raise
            self._ends("inactive")
        except (ChannelStopped, ObjectInUse):
            raise
        except InorderError as error:
            self._ends("inactive" if error.data.get("must_reopen") else self.status_of_failure, error)
            raise

    @contextlib.contextmanager
    def _outliving_cuts(self) -> Iterator[None]:
        """Goes on after Fenced if the channel is not stopped, and no other run has begun: the store is then elsewhere,
        and the connection was made again.
        """
        try:
            yield
        except Fenced:
            if self._stop() or not self._is_latest():
                raise

    def _is_latest(self) -> bool:
        """Whether no other run has begun since."""
        if self._carrying is None:
            return False
        try:
            self._sending.check(self._carrying)
        except Fenced:
            return False
        return True

    def _stop(self) -> str:
        """The mode in which an operator has stopped it; "" if it is not stopped."""
        return now_of(self._sending.manager, self._definition).stop

    def _ends(self, status: str, error: InorderError | None = None) -> None:
        """Records the end of the run; if another run has fenced it, that one records the status."""
        with contextlib.suppress(Fenced, *TROUBLE):  # if this store is in trouble, only the error says so
            self._note(status, error)

    def _note(self, status: str, error: InorderError | None = None) -> str:
        """Records the status of the channel; returns how an operator has stopped it, or ""."""
        reason, text = (0, "") if error is None else (int(error.reason), str(error.args[0]))
        short, long = self._retries
        return self._sending.note(status, reason=reason, error=text, short=short, long=long)

    def _carry(self) -> None:
        """Runs from the take to the end. Raises Stopping, and the errors that `run` handles."""
        self._carrying = carrying = self._sending.take()
        points.at("taken")
        with contextlib.closing(self._reach()) as receiver:
            if carrying.is_reset:
                reset(self._sending, carrying, receiver)
            else:
                last = bound(self._sending, carrying, receiver)
                points.at("bound")
                check_agreement(last, carrying.number, is_open=carrying.is_open, channel=self._definition.name)
            self._retries = Retries()
            self._heed(self._note("running"))
            self._batches(carrying, receiver)

    def _batches(self, carrying: Carrying, receiver: Receiver) -> None:
        sending, done, number = self._sending, carrying.settled, carrying.number
        there, was_there = receiver.definition(carrying.sender.channel), False
        fast = self._definition.nonpersistent_speed == there.nonpersistent_speed == "fast"
        while True:
            asked_at = sending.now()
            try:
                found = sending.next(carrying, done, fast=fast)
            except GetInhibited:
                sending.confirm(carrying, done)  # batches that the receiver has are not sent again
                raise
            claim = found.claim
            if found.fast:
                points.at("removed")
                self._send_fast(carrying, found.fast, receiver, there, asked_at)
                points.at("passed")
                self._idle, was_there = 0.0, False
                if claim is None:
                    if self._wait(0.0):
                        raise Stopping
                    continue
            if claim is None:
                points.at("confirmed")
                self._heed(found.stop)
                if self._until_empty:
                    raise Stopping
                if was_there and self._wait(BUSY_SECONDS):  # messages that cannot be claimed yet
                    raise Stopping
                was_there = self._await_messages(receiver, fast=fast)
                continue
            points.at("claimed")
            read_at = sending.now()
            batch = self._batch(carrying, claim, number + 1, receiver, there)
            self._deliver(batch, receiver, there, read_at)
            points.at("received")
            done, number, self._idle, was_there = claim.number, number + 1, 0.0, False
            if self._wait(0.0):
                sending.confirm(carrying, done)
                raise Stopping

    def _send_fast(
        self,
        carrying: Carrying,
        messages: Sequence[Message],
        receiver: Receiver,
        there: ChannelAttributes,
        read_at: float,
    ) -> None:
        """Sends messages that were removed from the transmission queue: once, whether or not they arrive."""
        batch = self._passed(ChannelBatch(carrying.sender, 0, carrying.epoch, b"", messages), receiver, there)
        try:
            self._deliver(batch, receiver, there, read_at)
        except Stopping:  # while it waited for the next try
            left = aged(batch.messages, self._sending.now() - read_at)
            receiver.call(lambda store: store.receive(batch._replace(messages=left, to_dead_letters=True)))
            raise

    def _heed(self, stop: str) -> None:
        if stop:
            raise Stopping

    def _batch(
        self, carrying: Carrying, claim: Claim, number: int, receiver: Receiver, there: ChannelAttributes
    ) -> ChannelBatch:
        """The batch to send for a claim."""
        messages = self._sending.read(carrying, claim)
        batch = ChannelBatch(carrying.sender, number, carrying.epoch, digest(messages), messages)
        batch = self._passed(batch, receiver, there)
        points.at("sending")
        return batch

    def _passed(self, batch: ChannelBatch, receiver: Receiver, there: ChannelAttributes) -> ChannelBatch:
        """The batch after the exits that this process calls: the receiver's too, if it has that store open."""
        batch = passed(batch, self._definition, self._exits)
        return passed(batch, there, self._exits) if receiver.user is None else batch

    def _deliver(self, batch: ChannelBatch, receiver: Receiver, there: ChannelAttributes, read_at: float) -> Receipt:
        """Sends a batch, as often as the receiver's definition says (C-5), and returns the receipt.

        Its messages have aged since they were read, because of exits and earlier tries.
        """
        tries = there.message_retry_count
        for attempt in range(tries + 1):
            messages = aged(batch.messages, self._sending.now() - read_at)
            now = batch._replace(messages=messages, attempts=attempt, to_dead_letters=attempt == tries)
            try:
                receipt = receiver.call(lambda store: store.receive(now))  # noqa: B023 - called at once
            except Undeliverable as error:
                if attempt == tries:
                    raise
                self._pause(error, there.message_retry_interval or 0.0)
            else:
                if attempt:
                    self._note("running")
                return receipt
        raise AssertionError("the last try ends it")

    def _pause(self, error: Undeliverable, seconds: float) -> None:
        self._heed(self._note("paused", error))
        self._wait_heeding(seconds)

    def _await_messages(self, receiver: Receiver, *, fast: bool) -> bool:
        """Waits at most a second for a message; returns whether there is one."""
        definition = self._definition
        if definition.disconnect_interval and self._idle >= definition.disconnect_interval:
            raise Stopping
        try:
            found = self._sending.queue.browse_first(wait=LOOK_SECONDS, read_order=definition.read_order)
        except (NoMessageAvailable, OrderPending):
            self._idle += LOOK_SECONDS
            self._sending.manager.admin.check_store()
            if self._idle % definition.heartbeat_interval < LOOK_SECONDS:
                receiver.check()
            is_there, waits = False, False
        else:
            is_there, waits = True, bool(found.persistent) or not fast
        if self._wait((definition.batch_interval or 0.0) if waits else 0.0):
            raise Stopping
        return is_there

    def _retry(self, error: InorderError) -> None:
        """Waits for the next try. Raises the error if no try is left."""
        following = self._retries.next(self._definition)
        if following is None:
            raise error
        self._retries, seconds = following
        # If this side cannot be reached, or could not, the status cannot be recorded.
        with contextlib.suppress(*TROUBLE), self._outliving_cuts():
            self._heed(self._note("retrying", error))
        self._wait_heeding(seconds)

    def _wait_heeding(self, seconds: float) -> None:
        """Waits, and looks each second whether the run is to end."""
        while True:
            if self._wait(min(seconds, LOOK_SECONDS)):
                raise Stopping
            seconds -= LOOK_SECONDS
            if seconds <= 0:
                return
            with contextlib.suppress(*TROUBLE):
                self._heed(self._stop())
