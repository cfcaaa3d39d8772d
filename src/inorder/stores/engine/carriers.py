"""The records and the present status of channels that send from this queue manager (C-6)."""

from __future__ import annotations

from collections.abc import Mapping

from ...errors import UnknownQueue, WrongQueueType
from ...rules.channels import CHANNEL
from ...rules.puts import Program
from ..seam.channel_records import ChannelNow
from ..seam.tables import ChannelRow, ConnectionRow, SentRow
from .catalog import Catalog
from .claiming import Account, account_of
from .operation import Operation
from .queue import LocalQueue

RUNS = ("starting", "running", "retrying", "paused", "stopping", "waiting")


def row_of_channel(operation: Operation, channel: str) -> ChannelRow:
    """Returns the status of a channel; for one that never ran, the initial status."""
    found = operation.backend.select(ChannelRow, name=channel)
    return found[0] if found else ChannelRow(channel, "inactive", None, 0, "", 0, 0, 0, "", operation.now)


def sent_of_channel(operation: Operation, queue: LocalQueue, channel: str) -> SentRow:
    """Returns the record of the batches and messages that a channel has sent from a queue."""
    found = operation.backend.select(SentRow, queue=queue.id, channel=channel)
    return found[0] if found else SentRow(queue.id, channel, 0, 0, 0, None)


def runs(operation: Operation, row: ChannelRow) -> bool:
    """Whether a living connection runs the channel."""
    return row.carrier is not None and bool(operation.backend.select(ConnectionRow, id=row.carrier))


def account_of_channel(operation: Operation, queue: LocalQueue, channel: str) -> Account:
    """Returns the account of a channel's claims."""
    known = account_of(operation, queue, CHANNEL + channel)
    return known or Account(CHANNEL + channel, Program())


def channel_now(operation: Operation, channel: str, name: str, oldest: Mapping[int, float | None]) -> ChannelNow:
    """Returns the state of a channel.

    Args:
        name: its transmission queue.
        oldest: for queues by number, when the oldest message was put.
    """
    row = row_of_channel(operation, channel)
    status = row.status
    if status in RUNS and not runs(operation, row):
        status = "stopped" if row.stop else "inactive"
    sent, in_doubt, waiting, number = SentRow(0, channel, 0, 0, 0, None), 0, 0, 0
    try:
        queue = Catalog(operation).local(name)
    except (UnknownQueue, WrongQueueType):
        pass  # it was deleted; the channel reports that when it runs
    else:
        sent, waiting, number = sent_of_channel(operation, queue, channel), queue.depth, queue.id
        known = account_of_channel(operation, queue, channel).open
        in_doubt = 0 if known is None else known.messages
    return ChannelNow(
        name=channel,
        queue=name,
        status=status,
        stop=row.stop,
        number=sent.number,
        in_doubt=in_doubt,
        waiting=waiting,
        oldest_put_at=oldest.get(number),
        messages=sent.messages,
        size=sent.size,
        sent_at=sent.sent_at,
        short_retries=row.short_retries,
        long_retries=row.long_retries,
        reason=row.reason,
        error=row.error,
        changed_at=row.changed_at,
        nonpersistent_speed="fast" if row.fast else "normal",
    )
