"""Writes messages to a Parquet file piece by piece; needs pyarrow.

The columns have the names and types of an archive that `inorder pipeline drain` writes, as far as a message on a queue
has values for them. Memory holds one row group, and the index of those before it.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from ..model.message import NO_ID, Message
from .properties import as_pairs
from .schema import CONTENT, DESCRIPTOR, PLACE

ON_A_QUEUE: Final = frozenset({"queue", "rank", "number", "ordinal"})  # of the place; others are a reader's
SCHEMA: Final = pa.schema([*(column for column in PLACE if column[0] in ON_A_QUEUE), *DESCRIPTOR, *CONTENT])
GROUP_ROWS, GROUP_BYTES = 8192, 8 * 2**20  # the most in a row group, except for one longer message
NONE: Final[Mapping[str, bytes]] = {"correlation_id": NO_ID, "group_id": NO_ID, "accounting_token": bytes(32)}


class ParquetFile:
    """A file whose bytes are returned as they are made.

    Args:
        queue: the queue of the messages.
    """

    def __init__(self, queue: str) -> None:
        self._queue, self._made = queue, _Made()
        self._kept: list[Message] = []
        self._size = 0
        self._writer = pq.ParquetWriter(pa.PythonFile(self._made, mode="w"), SCHEMA, compression="zstd")

    def rows(self, messages: Iterable[Message]) -> bytes:
        """Adds messages; returns the bytes of the file that were made since the last call."""
        for one in messages:
            self._kept.append(one)
            self._size += one.length
            if len(self._kept) == GROUP_ROWS or self._size >= GROUP_BYTES:
                self._write()
        return self._made.taken()

    def end(self) -> bytes:
        """The last bytes of the file."""
        self._write()
        self._writer.close()
        return self._made.taken()

    def _write(self) -> None:
        """Makes a row group from the messages added so far."""
        if self._kept:
            columns = {name: [_value(one, name, self._queue) for one in self._kept] for name in SCHEMA.names}
            self._writer.write_table(pa.table(columns, schema=SCHEMA))
        self._kept, self._size = [], 0


class _Made(io.RawIOBase):
    """A sink that keeps the written bytes until they are taken."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[bytes] = []
        self._length = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        piece = bytes(data)
        self._pieces.append(piece)
        self._length += len(piece)
        return len(piece)

    def tell(self) -> int:
        return self._length

    def taken(self) -> bytes:
        found = b"".join(self._pieces)
        self._pieces.clear()
        return found


def _value(message: Message, name: str, queue: str) -> Any:
    """The value of a message in a column."""
    if name == "queue":
        return queue
    if name in ("rank", "number", "ordinal"):
        return None if message.place is None else getattr(message.place, name)
    if name.startswith("uid_"):
        return None if message.uid is None else getattr(message.uid, name.removeprefix("uid_"))
    value = getattr(message, name)
    if name in NONE:
        return None if value == NONE[name] else value
    if name == "expiry":
        return None if value is None or math.isinf(value) else value
    if name == "put_at":
        return round(value * 1e6)
    if name == "properties":
        return as_pairs(value) or None
    return int(value) if name in ("flags", "message_type") else value
