"""Channels send messages of a transmission queue to another queue manager, each once, in order (C-1 to C-7).

A channel is defined in the sending queue manager, with the transmission queue and the location of the other store.
`run_channel` runs it; any number of processes may call this, and one at a time runs the channel.
"""

from __future__ import annotations

from ...model.channel_attributes import ChannelAttributes
from ...stores.seam.channel_records import ChannelNow, Received
from .carrying import run_channel
from .collecting import pull, trigger_transmission
from .connecting import (
    Connection,
    addresses,
    connection,
    connections,
    define_connection,
    delete_connection,
    map_address,
    unmap_address,
)
from .defining import (
    alter_channel,
    channel,
    channels,
    define_channel,
    delete_channel,
    identifier,
    other_ends,
    ping_channel,
    received,
    reset_channel,
    resolve_channel,
    start_channel,
    status,
    stop_channel,
)
from .exits import Exit

__all__ = [
    "ChannelAttributes",
    "ChannelNow",
    "Connection",
    "Exit",
    "Received",
    "addresses",
    "alter_channel",
    "channel",
    "channels",
    "connection",
    "connections",
    "define_channel",
    "define_connection",
    "delete_channel",
    "delete_connection",
    "identifier",
    "map_address",
    "other_ends",
    "ping_channel",
    "pull",
    "received",
    "reset_channel",
    "resolve_channel",
    "run_channel",
    "start_channel",
    "status",
    "stop_channel",
    "trigger_transmission",
    "unmap_address",
]
