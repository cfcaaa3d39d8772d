"""The attributes of channels, declared and checked like those of queues (C-6).

A sender channel is defined in the sending queue manager. The receiving one may have a channel of the same name, of type
"receiver", that says how to treat messages that cannot be put, and names an exit; without it the defaults apply. Where
the store of the receiver is elsewhere, the definition also names the user and the sending store that may act for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

from ..errors import ArgumentError
from .attribute import COUNT_MAX, NAME_LENGTH_MAX, Table, checked, table_of

ChannelType = Literal["sender", "receiver"]
ChannelReadOrder = Literal["strict", "relaxed"]
NonpersistentSpeed = Literal["normal", "fast"]

CHANNEL_NAME_LENGTH_MAX: Final = 20
CONNECTION_LENGTH_MAX: Final = 264
USER_LENGTH_MAX: Final = 64
IDENTIFIER_LENGTH: Final = 32  # of a store's identifier
IDENTIFIER_LENGTH_MAX: Final = 64  # in a batch that arrives
BOTH, SENDER, RECEIVER = frozenset(("sender", "receiver")), frozenset(("sender",)), frozenset(("receiver",))


def _about(kind: str, mqsc: str, doc: str, of: frozenset[str] = SENDER, **more: object) -> dict[str, Any]:
    return {"kind": kind, "mqsc": mqsc, "doc": doc, "applies_to": of, **more}


def _count(mqsc: str, doc: str, least: int = 0, most: int = COUNT_MAX, of: frozenset[str] = SENDER) -> dict[str, Any]:
    return _about("integer", mqsc, doc, of, minimum=least, maximum=most)


# fmt: off


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelAttributes:
    """The attributes of one channel; `define` and `altered` make and check them."""

    name: str = field(metadata=_about(
        "name", "CHANNEL", "The name of the channel, on both sides.", BOTH, minimum=1,
        max_length=CHANNEL_NAME_LENGTH_MAX, changed_by="create"))
    type: ChannelType = field(default="sender", metadata=_about(
        "choice", "CHLTYPE", "Whether this queue manager sends or receives.", BOTH, choices=get_args(ChannelType),
        mqsc_words=("SDR", "RCVR"), changed_by="create"))
    description: str = field(default="", metadata=_about(
        "text", "DESCR", "A description of the channel.", BOTH, max_length=64))
    transmission_queue: str = field(default="", metadata=_about(
        "name", "XMITQ", "The queue whose messages it sends.", max_length=NAME_LENGTH_MAX))
    connection: str = field(default="", metadata=_about(
        "text", "CONNAME", "The other queue manager's store: the name of a connection, an address of MQ that is "
        "mapped to one, the path of a file, or a URL.",
        max_length=CONNECTION_LENGTH_MAX))
    batch_size: int = field(default=50, metadata=_count(
        "BATCHSZ", "The most messages in one batch.", 1, 9999))
    batch_kilobytes: int = field(default=5000, metadata=_count(
        "BATCHLIM", "The most kilobytes of bodies in one batch; a single message may be larger.", 1, 999_999))
    batch_interval: float | None = field(default=None, metadata=_about(
        "seconds", "BATCHINT", "How long a batch that is not full waits for more messages; None: not at all.",
        maximum=COUNT_MAX / 1000, mqsc_per_second=1000, mqsc_none="0"))
    read_order: ChannelReadOrder = field(default="strict", metadata=_about(
        "choice", "READORDER", "Whether it waits for pending messages on the transmission queue, or skips them (C-2).",
        choices=get_args(ChannelReadOrder), mqsc_words=("STRICT", "RELAXED")))
    nonpersistent_speed: NonpersistentSpeed = field(default="normal", metadata=_about(
        "choice", "NPMSPEED", "Whether non-persistent messages travel outside the batches, where both sides say fast; "
        "they may then overtake others and be lost (C-4).",
        BOTH, choices=get_args(NonpersistentSpeed), mqsc_words=("NORMAL", "FAST")))
    short_retry_count: int = field(default=10, metadata=_count(
        "SHORTRTY", "How often it retries after a short time if the other side cannot be reached."))
    short_retry_interval: int = field(default=60, metadata=_count("SHORTTMR", "Seconds between these retries."))
    long_retry_count: int = field(default=COUNT_MAX, metadata=_count(
        "LONGRTY", "How often it retries after those; then it stops."))
    long_retry_interval: int = field(default=1200, metadata=_count("LONGTMR", "Seconds between these retries."))
    heartbeat_interval: int = field(default=300, metadata=_count(
        "HBINT", "Seconds after which an idle channel checks that the other side answers.", 1, 999_999))
    disconnect_interval: int = field(default=0, metadata=_count(
        "DISCINT", "Seconds without a message after which the channel ends; 0: never.", 0, 999_999))
    message_exit: str = field(default="", metadata=_about(
        "text", "MSGEXIT", "The function that is called with each message, module:function "
        "(C-7).", BOTH, max_length=128))
    message_retry_count: int = field(default=10, metadata=_count(
        "MRRTY", "How often a message that cannot be put is retried before it becomes a dead letter.",
        of=RECEIVER))
    message_retry_interval: float | None = field(default=1.0, metadata=_about(
        "seconds", "MRTMR", "Seconds between these tries; None: no time.", RECEIVER,
        maximum=COUNT_MAX / 1000, mqsc_per_second=1000, mqsc_none="0"))
    user: str = field(default="", metadata=_about(
        "text", "MCAUSER", "The only user of the server who may act for the channel, and whose authority its messages "
        "need (W-9); empty: users with the authority to administer.", RECEIVER, max_length=USER_LENGTH_MAX))
    sender: str = field(default="", metadata=_about(
        "text", "SENDER", "The identifier of the sending store, for which this user may act.", RECEIVER,
        max_length=IDENTIFIER_LENGTH, hexadecimal=True))


# fmt: on


CHANNEL_ATTRIBUTES: Final[Table] = table_of(ChannelAttributes, BOTH)


# Channels that exist without a definition, as in MQ: a DEFINE in MQSC takes its defaults from them.
SYSTEM_CHANNELS: Final[Mapping[str, ChannelAttributes]] = MappingProxyType(
    {
        each.name: each
        for each in (
            ChannelAttributes(name="SYSTEM.DEF.SENDER", type="sender"),
            ChannelAttributes(name="SYSTEM.DEF.RECEIVER", type="receiver"),
        )
    }
)


def define(name: str, type: ChannelType = "sender", **given: object) -> ChannelAttributes:
    """Makes the attributes of a new channel. Raises ArgumentError."""
    kind = CHANNEL_ATTRIBUTES["type"].check(type)
    made = ChannelAttributes(type=kind, **checked(CHANNEL_ATTRIBUTES, kind, "create", {"name": name, **given}))
    if kind == "sender" and name not in SYSTEM_CHANNELS:
        for needed in ("transmission_queue", "connection"):
            if not getattr(made, needed):
                raise ArgumentError(f"a sender channel needs a {needed}", argument=needed, value="", allowed="a name")
    return _consistent(made)


def altered(attributes: ChannelAttributes, **changes: object) -> ChannelAttributes:
    """The attributes after a change. Raises: ArgumentError."""
    return _consistent(replace(attributes, **checked(CHANNEL_ATTRIBUTES, attributes.type, "alter", changes)))


def _consistent(made: ChannelAttributes) -> ChannelAttributes:
    if bool(made.user) != bool(made.sender):
        missing = "sender" if made.user else "user"
        allowed = "given if the other is: the user, and the identifier of the store for which the user may act"
        raise ArgumentError(f"user and sender must be {allowed}", argument=missing, value="", allowed=allowed)
    return made
