"""The picture of this queue manager, the others, and the ways between them.

A way is a channel, the collection of a store-and-forward queue, or the connection of synchronous remote queues.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from ...client.manager import QueueManager
from ...mq.channels import channels, connections, other_ends, received, status
from ...rules.channels import collecting
from ...stores.seam.channel_records import ChannelNow
from .overview import WRONG_CHANNELS


class Way(NamedTuple):
    """A way between this queue manager and another one.

    Args:
        manager: the name of the other queue manager, or of the connection if only its place is known.
        name: the name of the channel, of the store-and-forward queue, or of the connection.
        kind: how its messages travel.
        state: "good", it is in use; "bad", it has trouble; "idle".
        text: its status.
        waiting, oldest_put_at: the messages that wait to be sent here.
        in_doubt: messages of a batch, or units of work, whose outcome the other side is still to learn.
    """

    manager: str
    name: str
    kind: Literal["channel", "collection", "synchronous"]
    state: Literal["good", "bad", "idle"]
    text: str
    waiting: int = 0
    oldest_put_at: float | None = None
    in_doubt: int = 0


class Ways(NamedTuple):
    """The ways by which messages arrive, and the ways by which they leave or are read elsewhere."""

    come: list[Way]
    go: list[Way]


def ways(qm: QueueManager) -> Ways:
    """Reads the ways of a queue manager."""
    me, queues = qm.admin.manager_attributes().name, qm.queues()
    now, ends = {one.name: one for one in status(qm)}, other_ends(qm)
    homes = {collecting(one.name, me): one for one in queues if one.type == "home_server"}
    come = [_way(homes[name].remote_manager, one, homes[name].name) for name, one in now.items() if name in homes]
    collected = {one.name for one in come}
    come += [
        Way(one.sender.manager, one.sender.channel, "channel", "idle", f"batch {one.number} has arrived")
        for one in received(qm)
        if one.sender.channel.partition(":")[0] not in collected
    ]
    senders = {one.name for one in channels(qm)}
    go = [
        _way(ends.get(one.queue) or one.queue, one, name if name in senders else name.partition(":")[0])
        for name, one in now.items()
        if name not in homes and one.queue
    ]
    return Ways(come, [*go, *_synchronous(qm)])


def _way(manager: str, one: ChannelNow, name: str) -> Way:
    state: Literal["good", "bad", "idle"] = "bad" if one.status in WRONG_CHANNELS or one.reason else "idle"
    if one.status in ("running", "waiting"):
        state = "good"
    kind: Literal["channel", "collection"] = "channel" if name == one.name else "collection"
    return Way(manager, name, kind, state, one.status, one.waiting, one.oldest_put_at, one.in_doubt)


def _synchronous(qm: QueueManager) -> Iterator[Way]:
    """The connections that synchronous remote queues use, and the units of work in doubt there."""
    units, places = qm.inspect.units(), {one.name: one.location for one in connections(qm)}
    found = [one for one in qm.queues() if one.mode == "synchronous"]
    for connection in sorted({one.connection for one in found}):
        doubt = sum(branch.connection == connection for unit in units for branch in unit.branches)
        queues = [one for one in found if one.connection == connection]
        state: Literal["bad", "idle"] = "bad" if doubt or connection not in places else "idle"
        text = f"{len(queues)} queue{'s' * (len(queues) > 1)}" if connection in places else "not defined"
        manager = next((one.remote_manager for one in queues if one.remote_manager), connection)
        yield Way(manager, connection, "synchronous", state, text, in_doubt=doubt)
