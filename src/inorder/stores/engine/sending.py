"""The operations of a channel's sender, which reads its transmission queue as an application does, with additions (C-1,
C-6).

The open claim of a channel is the batch in transit. The batch number is one more than the number in `SentRow`, which
grows in the transaction that confirms the claim. The number of a released claim is not used again, but a batch has no
final number until it has arrived, so the receiver sees no gap.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import ChannelStopped, Fenced, NotFound, ObjectInUse, QueueCondition, Reason, WrongQueueType
from ...model.message import Message
from ...rules.channels import CHANNEL, COLLECTS, collecting, collects, name_of_sender
from ..seam.channel_records import Carrying, ChannelNow, HomeServerStatus, NextBatch, Sender
from ..seam.damage import only
from ..seam.definitions import manager_row
from ..seam.records import ClaimRequest, Outcome
from ..seam.tables import ChannelRow
from ..seam.telemetry import event, first
from . import claiming
from .bulk import BulkVerbs
from .carriers import RUNS, account_of_channel, channel_now, row_of_channel, runs, sent_of_channel
from .catalog import Catalog
from .claiming import Account
from .objects import find_channel
from .operation import Operation, in_operation
from .process import OpenHandle
from .queue import LocalQueue

LASTS = ("triggered", "stopped")  # states of a home-server queue that outlive the program that collects


def _confirmed(operation: Operation, queue: LocalQueue, channel: str, claim: tuple[int, int]) -> None:
    """Counts one more confirmed batch, with its messages and bytes."""
    _count(operation, queue, channel, *claim, batches=1)
    operation.durable = True


def _count(operation: Operation, queue: LocalQueue, channel: str, messages: int, size: int, *, batches: int) -> None:
    row = sent_of_channel(operation, queue, channel)
    operation.backend.save(
        row._replace(
            number=row.number + batches, messages=row.messages + messages, size=row.size + size, sent_at=operation.now
        )
    )


def _measured(found: NextBatch) -> list[int]:
    """Returns the numbers of messages, and of bytes of bodies, to be sent."""
    messages, size = (0, 0) if found.claim is None else (found.claim.messages, found.claim.size)
    return [messages + len(found.fast), size + sum(one.length for one in found.fast)]


def _open_of(account: Account) -> tuple[int, int]:
    assert account.open is not None, "the caller has seen it"
    return account.open.messages, account.open.size


class SendingVerbs(BulkVerbs):
    """The operations of a channel's sender; `protocol.Store` documents them."""

    # --- the runs of a channel

    @event("take_channel", keys="channel", handle=first, about=lambda _, __, channel, **___: [channel])
    @in_operation(unless_dead=(ObjectInUse,))
    def take_channel(self, operation: Operation, handle: int, channel: str, *, operates: bool = False) -> Carrying:
        one = self.handle(handle)
        row, queue = row_of_channel(operation, channel), operation.queue_of(one)
        if queue.attributes.usage != "transmission":
            raise WrongQueueType(
                f"channel {channel} sends from {queue.attributes.name}, whose usage is not 'transmission'",
                reason=Reason.XMIT_Q_USAGE_ERROR,
                queue=queue.attributes.name,
            )
        _check_leads(operation, one, channel)
        if row.stop and not operates:
            raise ChannelStopped(f"channel {channel} is stopped: start it first", channel=channel)
        if row.carrier != one.connection.id and runs(operation, row):
            raise ObjectInUse(f"another program is running channel {channel}", channel=channel)
        start = claiming.begin_claims(operation, queue, one.connection.program, CHANNEL + channel)
        sent, account = sent_of_channel(operation, queue, channel), account_of_channel(operation, queue, channel)
        operation.backend.save(sent)
        status = row.status if operates else "starting"
        operation.backend.save(
            row._replace(status=status, carrier=one.connection.id, epoch=start.epoch, changed_at=operation.now)
        )
        operation.durable = True
        return Carrying(
            _sender(operation, queue, channel),
            start.epoch,
            sent.number,
            start.settled,
            account.open is not None,
            bool(row.reset),
        )

    @event(
        "note_channel",
        keys="channel status",
        handle=first,
        about=lambda _, __, channel, status, **___: [channel, status],
    )
    @in_operation(alone=False)
    def note_channel(
        self,
        operation: Operation,
        handle: int,
        channel: str,
        status: str,
        *,
        reason: int = 0,
        error: str = "",
        short_retries: int = 0,
        long_retries: int = 0,
    ) -> str:
        row = self._own_row(operation, self.handle(handle), channel)
        is_over = status not in RUNS
        if row.stop:
            status = "stopped" if is_over else "stopping"
        stop = row.stop or ("quiesce" if status == "stopped" else "")  # it stopped by itself, and an operator must act
        changed = row._replace(
            status=status,
            carrier=None if is_over else row.carrier,
            stop=stop,
            reason=reason,
            error=error,
            short_retries=short_retries,
            long_retries=long_retries,
            changed_at=operation.now,
            reset=0 if status == "running" else row.reset,
        )
        operation.backend.save(changed)
        return row.stop

    def _own_row(self, operation: Operation, one: OpenHandle, channel: str) -> ChannelRow:
        row = row_of_channel(operation, channel)
        if row.carrier != one.connection.id:
            raise Fenced(f"this program no longer runs channel {channel}", application=channel)
        return row

    @event("note_home_server", keys="queue status", about=lambda _, __, queue, status, **___: [queue, status])
    @in_operation(alone=False)
    def note_home_server(
        self,
        operation: Operation,
        owner: int,
        queue: str,
        status: HomeServerStatus,
        *,
        reason: int = 0,
        error: str = "",
        goes_on: bool = False,
    ) -> str:
        if Catalog(operation).definition(queue).type != "home_server":
            raise WrongQueueType(f"{queue} is not a home-server queue", queue=queue)
        row = row_of_channel(operation, collecting(queue, operation.manager.name))
        is_running = runs(operation, row)
        if is_running and row.carrier != owner and status != "triggered":
            raise ObjectInUse(f"another program collects messages for {queue}", queue=queue)
        before = row.status if is_running or row.status in LASTS else "inactive"
        if status == "triggered":
            row = row._replace(status=status, reason=0, error="")
        elif status == "inactive":
            row = row._replace(status=before if before in LASTS else status, carrier=None)
        else:
            if status == "waiting" and before == "stopped":
                status, reason, error = "stopped", row.reason, row.error
            begins = status == "running" and not goes_on
            stays = before == "triggered" and not begins  # the trigger came since the last collection began
            row = row._replace(status=before if stays else status, carrier=owner, reason=reason, error=error)
        operation.backend.save(row._replace(changed_at=operation.now))
        operation.durable = True
        return before

    # --- batches

    @event(
        "next_batch",
        "messages bytes",
        "channel",
        handle=lambda request, *_, **__: request.claimer.handle,
        measured=lambda found, *_, **__: _measured(found),
        about=lambda _, __, channel, **___: [channel],
    )
    @in_operation(alone=False)
    def next_batch(self, operation: Operation, request: ClaimRequest, channel: str, *, fast: bool = False) -> NextBatch:
        queue = operation.queue_of(self.handle(request.claimer.handle))
        account = claiming.live_account(operation, queue, request.claimer)
        confirms = request.start > account.settled
        done = _open_of(account) if confirms and account.open is not None else None
        row, claim = row_of_channel(operation, channel), None
        gone: Sequence[Message] = ()
        if row.fast != fast:
            operation.backend.save(row._replace(fast=int(fast)))
        if not row.stop:
            claim, gone = self.take_next(operation, request, fast=fast)
        elif done is not None:
            claiming.settle_claims(operation, queue, request.claimer, request.start)
        if done is not None:
            _confirmed(operation, queue, channel, done)
        if gone:
            _count(operation, queue, channel, len(gone), sum(one.length for one in gone), batches=0)
        return NextBatch(claim, row.stop, gone)

    @event("confirm_batch", "messages", "channel", handle=lambda request, _: request.claimer.handle,
           measured=lambda messages, *_: [messages], about=lambda _, __, channel: [channel])  # fmt: skip
    @in_operation(alone=False)
    def confirm_batch(self, operation: Operation, request: ClaimRequest, channel: str) -> int:
        queue = operation.queue_of(self.handle(request.claimer.handle))
        account = claiming.live_account(operation, queue, request.claimer)
        if account.open is None or request.start <= account.settled:
            return 0
        done = _open_of(account)
        messages = claiming.settle_claims(operation, queue, request.claimer, request.start)
        _confirmed(operation, queue, channel, done)
        return messages

    # --- operators

    @event("stop_channel", keys="channel mode", about=lambda _, __, channel, mode: [channel, mode])
    @in_operation(ends_dead=True)
    def stop_channel(self, operation: Operation, queue: str, channel: str, mode: str) -> None:
        if COLLECTS not in channel:
            find_channel(operation, channel)
        row = row_of_channel(operation, channel)
        is_running = runs(operation, row)
        if mode != "quiesce" and is_running:  # fences the running program at its next call
            known = Catalog(operation).local(queue)
            account = account_of_channel(operation, known, channel)
            account.epoch += 1
            claiming.keep(operation, known, account)
        goes_on = is_running and mode != "terminate"
        operation.backend.save(
            row._replace(
                status="stopping" if goes_on else "stopped",
                carrier=row.carrier if goes_on else None,
                stop=mode,
                changed_at=operation.now,
            )
        )
        operation.durable = True

    @event("start_channel", keys="channel", about=lambda _, channel: [channel])
    @in_operation(ends_dead=True)
    def start_channel(self, operation: Operation, channel: str) -> None:
        row = row_of_channel(operation, channel)
        is_running = runs(operation, row)
        operation.backend.save(
            row._replace(
                status="running" if is_running else "inactive",
                carrier=row.carrier if is_running else None,
                stop="",
                reason=0,
                error="",
                changed_at=operation.now,
            )
        )
        operation.durable = True

    @event("resolve_channel", "messages", "channel outcome", handle=first, measured=lambda messages, *_: [messages],
           about=lambda _, __, channel, outcome: [channel, outcome])  # fmt: skip
    @in_operation()
    def resolve_channel(self, operation: Operation, handle: int, channel: str, outcome: Outcome) -> int:
        one = self.handle(handle)
        self._own_row(operation, one, channel)
        queue = operation.queue_of(one)
        account = account_of_channel(operation, queue, channel)
        if account.open is None:
            raise NotFound(f"channel {channel} has no batch in doubt", channel=channel)
        if outcome == "back_out":
            return claiming.release_claims(operation, queue, CHANNEL + channel)
        done = _open_of(account)
        messages = claiming.finish_claims(operation, queue, CHANNEL + channel, account.settled + 1)
        _confirmed(operation, queue, channel, done)
        return messages

    @event("reset_channel", keys="channel", handle=first, about=lambda _, __, channel, ___: [channel])
    @in_operation()
    def reset_channel(self, operation: Operation, handle: int, channel: str, number: int) -> None:
        one = self.handle(handle)
        row, queue = self._own_row(operation, one, channel), operation.queue_of(one)
        if account_of_channel(operation, queue, channel).open is not None:
            raise QueueCondition(
                f"channel {channel} has a batch in doubt: resolve it before you set its number",
                reason=Reason.CHANNEL_IN_DOUBT,
                channel=channel,
            )
        operation.backend.save(sent_of_channel(operation, queue, channel)._replace(number=number))
        operation.backend.save(row._replace(reset=1))
        operation.durable = True

    @event("channels", "channels", measured=lambda found, _: [len(found)])
    @in_operation(writes=False, ends_dead=True)
    def channels(self, operation: Operation, wanted: Sequence[tuple[str, str]]) -> list[ChannelNow]:
        numbers = {row.id for _, queue in wanted for row in Catalog(operation).rows(queue) if row.type == "local"}
        counts = {
            one: only(operation.backend.overview(operation.now, one), f"the counters of queue {one}")
            for one in sorted(numbers)
        }
        oldest = {one: found.oldest_put_at for one, found in counts.items()}
        return [channel_now(operation, channel, queue, oldest) for channel, queue in wanted]


def _sender(operation: Operation, queue: LocalQueue, channel: str) -> Sender:
    manager = manager_row(operation.backend)
    return Sender(manager.identifier, queue.id, name_of_sender(channel), operation.manager.name)


def _check_leads(operation: Operation, one: OpenHandle, channel: str) -> None:
    """Raises: QueueCondition 2041, the channel now sends from another queue; UnknownObject 2085, it was deleted;
    WrongQueueType 2087, it collects, but not from this queue.
    """
    name, colon, manager = channel.partition(COLLECTS)
    if not colon:
        if find_channel(operation, channel).transmission_queue != one.name:
            raise QueueCondition(f"channel {channel} was altered meanwhile", reason=Reason.OBJECT_CHANGED)
    elif not collects(channel, one.queue_name, Catalog(operation).find):
        raise WrongQueueType(
            f"{name} at queue manager {operation.manager.name} is not a store-and-forward queue for {manager}",
            reason=Reason.UNKNOWN_REMOTE_Q_MGR,
            queue=name,
        )
