"""Rows staged directly in a store, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.helpers.support import bodies

from inorder import Flags, Message, QueueManager
from inorder.model.options import OpenOptions
from inorder.stores.seam.protocol import Store
from inorder.stores.seam.records import LedgerKey, Settled, Staged, StageRequest

KEY = LedgerKey("app", "query", "0")
LASTS = 3600.0
IN, LAST = int(Flags.IN_GROUP), int(Flags.LAST_IN_GROUP)


class Writer:
    """Stages rows through handles of its own connection, and counts them."""

    def __init__(self, store: Store, qm: QueueManager) -> None:
        self.store, self.qm = store, qm
        self._handles: dict[str, int] = {}
        self.counts: dict[str, int] = {}

    def handle(self, queue: str = "Q") -> int:
        if queue not in self._handles:
            self._handles[queue] = self.store.open(self.qm.internals.owner, queue, OpenOptions(output=True)).handle
        return self._handles[queue]

    def stage(
        self, name: str, bodies: Sequence[bytes], *, queue: str = "Q", lasts: float = LASTS, **columns: Any
    ) -> None:
        """Stages rows; each column of `columns` is a list, or a text with one character for each row, "." for None."""
        given: dict[str, Any] = {"body": list(bodies)}
        for column, values in columns.items():
            given[column] = [None if v == "." else v for v in values] if isinstance(values, str) else values
        self.store.stage(StageRequest(self.handle(queue), name, len(bodies), given, lasts))
        self.counts[name] = self.counts.get(name, 0) + len(bodies)

    def settle(self, *names: str, key: LedgerKey = KEY) -> Settled:
        settled = self.store.settle_staging(key, [Staged(name, self.counts.get(name, 0)) for name in names])
        for name in names:
            self.counts.pop(name, None)
        return settled

    def put(self, bodies: Sequence[bytes], key: LedgerKey = KEY, **columns: Any) -> Settled:
        """Stages rows under one name, and settles them."""
        name = f"of {key}"
        self.stage(name, bodies, **columns)
        return self.settle(name, key=key)

    def browsed(self, queue: str = "Q") -> list[Message]:
        return list(self.qm.browse(queue))


def letters(text: str) -> list[bytes]:
    """One body for each character."""
    return [character.encode() for character in text]


def key(batch: int | str, query: str = "query") -> LedgerKey:
    return LedgerKey("app", query, str(batch))


def joined(writer: Writer) -> str:
    return b"".join(bodies(writer.qm)).decode()


def shape(writer: Writer, queue: str = "Q") -> list[tuple[str, int, int]]:
    """Body, number and flags of the messages in groups, sorted by group and number."""
    found = sorted(writer.browsed(queue), key=lambda one: (one.group_id, one.sequence_number, one.offset))
    return [(one.body.decode(), one.sequence_number, one.flags) for one in found if one.flags & (IN | LAST)]
