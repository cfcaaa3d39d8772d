"""The objects of a new queue manager of MQ that do not exist here, each with the reason.

Those that do are in `inorder.model`: `SYSTEM_QUEUES`, `SYSTEM_CHANNELS`, `SYSTEM_PROCESS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from .unsupported import UNSUPPORTED_CHANNEL_TYPES

_EVENTS: Final = "there are no event messages; events of the program are in inorder.client.events"
_RECORDS: Final = "there are no accounting, statistics and trace messages"
_CLUSTERS: Final = "there are no clusters"
_PUBLISH: Final = "there is no publish/subscribe"
_COMMANDS: Final = "commands do not come as messages"
_OWN: Final = "the store keeps this outside queues"

# Names, or their beginnings if they end with a dot.
QUEUES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "SYSTEM.ADMIN.ACCOUNTING.QUEUE": _RECORDS,
        "SYSTEM.ADMIN.ACTIVITY.QUEUE": _RECORDS,
        "SYSTEM.ADMIN.STATISTICS.QUEUE": _RECORDS,
        "SYSTEM.ADMIN.TRACE.": _RECORDS,
        "SYSTEM.ADMIN.COMMAND.QUEUE": _COMMANDS,
        "SYSTEM.ADMIN.": _EVENTS,
        "SYSTEM.AMQP.": "there are no AMQP channels",
        "SYSTEM.AUTH.DATA.QUEUE": _OWN,
        "SYSTEM.BROKER.": _PUBLISH,
        "SYSTEM.CHANNEL.SYNCQ": _OWN,
        "SYSTEM.CHLAUTH.DATA.QUEUE": _OWN,
        "SYSTEM.CLUSTER.": _CLUSTERS,
        "SYSTEM.DDELAY.LOCAL.QUEUE": "delayed messages wait on their own queue",
        "SYSTEM.DURABLE.": _PUBLISH,
        "SYSTEM.HIERARCHY.STATE": _PUBLISH,
        "SYSTEM.INTER.QMGR.": _PUBLISH,
        "SYSTEM.INTERNAL.": _OWN,
        "SYSTEM.JMS.": "there are no JMS clients",
        "SYSTEM.MQEXPLORER.REPLY.MODEL": _COMMANDS,
        "SYSTEM.MQSC.REPLY.QUEUE": _COMMANDS,
        "SYSTEM.NDURABLE.MODEL.QUEUE": _PUBLISH,
        "SYSTEM.PENDING.DATA.QUEUE": _OWN,
        "SYSTEM.PROTECTION.": "there are no security policies",
        "SYSTEM.REST.REPLY.QUEUE": _COMMANDS,
        "SYSTEM.RESYNC.QUEUE": _OWN,
        "SYSTEM.RETAINED.PUB.QUEUE": _PUBLISH,
        "SYSTEM.SELECTION.": _OWN,
    }
)
CHANNELS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "SYSTEM.AUTO.RECEIVER": "a receiver needs no definition",
    }
    | {
        f"SYSTEM.{name}": UNSUPPORTED_CHANNEL_TYPES[kind]
        for name, kind in (
            ("DEF.SERVER", "SVR"),
            ("DEF.REQUESTER", "RQSTR"),
            ("DEF.SVRCONN", "SVRCONN"),
            ("DEF.CLNTCONN", "CLNTCONN"),
            ("DEF.AMQP", "AMQP"),
            ("DEF.CLUSSDR", "CLUSSDR"),
            ("DEF.CLUSRCVR", "CLUSRCVR"),
            ("AUTO.SVRCONN", "SVRCONN"),
        )
    }
)


def why_missing(name: str) -> str | None:
    """Why an object that every queue manager of MQ has does not exist here; None: MQ has none of this name."""
    for known, why in {**CHANNELS, **QUEUES}.items():
        if name == known or (known.endswith(".") and name.startswith(known)):
            return why
    return None
