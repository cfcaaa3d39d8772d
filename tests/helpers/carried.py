"""Messages that tests of `inorder.client.store_transfer` move between stores, and a view of them afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from inorder import Flags, Message, QueueManager, connect
from inorder.client import store_transfer

# Fields that depend on the store, on the time, or on earlier deliveries.
ITS_OWN = {"token", "uid", "place", "expiry", "backout_count", "delivery"}
SAME = [name for name in Message.FIELDS if name not in ITS_OWN]


def fill(qm: QueueManager, queue: str = "Q") -> None:
    """Puts twelve messages that differ in every transferred field, and one that soon expires."""
    qm.put(queue, b"first", priority=3, correlation_id=b"k", format="MQSTR", reply_to_queue="R")
    group = b"g".ljust(24, b"\0")
    for number in (1, 3, 4):  # the second one was taken out earlier
        member = Message(
            b"member %d" % number, group_id=group, sequence_number=number, flags=Flags.IN_GROUP, priority=3
        )
        qm.put(queue, member)
        qm.put(queue, b"between %d" % number, priority=number, expiry=900, user_identifier="me", context="set_all")
    with qm.group(queue) as other:
        other.put(b"a", persistent=False)
        other.put(b"b", persistent=False)
    qm.put(queue, b"0123456789", flags=Flags.SEGMENT, offset=10, group_id=b"s")
    qm.put(queue, b"", flags=Flags.LAST_SEGMENT, offset=20, group_id=b"s", coded_character_set_id=819)
    given: dict[str, Any] = {"colour": "r\0d", "size": 3, "share": 0.5, "bytes": b"\0x", "flag": True, "none": None}
    qm.put(queue, b"last", put_at=5.0, application_identity_data="i", context="set_all", properties=given)
    qm.put(queue, b"dead", expiry=0.1)


def values(message: Message) -> dict[str, Any]:
    """Returns the fields of a message that do not depend on its store."""
    return {name: getattr(message, name) for name in SAME} | {"expires": message.expiry is not None}


def seen(qm: QueueManager, queue: str = "Q") -> list[dict[str, Any]]:
    """Returns the transferred fields of the messages on a queue, in its order."""
    return [values(message) for message in qm.browse(queue, read_order="relaxed")]


CARRY: dict[str, Callable[..., Any]] = {"move": store_transfer.move, "copy": store_transfer.copy}


def work(command: str, source: str, target: str, begun: Callable[[], None] = lambda: None) -> int:
    """Runs the command once, and returns the number of messages.

    Args:
        begun: called when both stores are open.
    """
    with connect(source, program="carrier") as one, connect(target, program="carrier") as other:
        begun()
        return sum(CARRY[command](one, "Q", other, "Q", unit=4))
