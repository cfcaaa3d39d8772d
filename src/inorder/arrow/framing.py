"""Cuts an Arrow IPC stream, which arrives in pieces, into its messages.

pyarrow reads a stream from a file, and waits in a thread for more of it. A server has neither the file nor a thread for
each client, so it cuts the stream itself: each message is ::

    FF FF FF FF    length of the head    head: a flatbuffer, which has the length of the body    body

and a head of length 0 ends the stream. This code only checks the type of the head, and whether the buffers are
compressed, because few compressed bytes can expand to very many. pyarrow checks everything else, and only gets whole
messages.
"""

from __future__ import annotations

import struct
from typing import Final, Literal, NamedTuple

CONTINUATION: Final = b"\xff\xff\xff\xff"
END: Final = CONTINUATION + bytes(4)
HEAD_MAX: Final = 1_048_576
SCHEMA, DICTIONARY, BATCH = 1, 2, 3
PREFIX: Final = len(END)

# The numbers of fields in Arrow's tables `Message` and `RecordBatch`.
HEADER_TYPE, HEADER, BODY_LENGTH = 1, 2, 3
COMPRESSION: Final = 3


class Broken(ValueError):
    """The bytes are not a stream of record batches that is accepted here."""


class TooLong(ValueError):
    """A message has more bytes than are accepted."""


class Frame(NamedTuple):
    """One whole message of a stream, as pyarrow reads it."""

    kind: Literal["schema", "batch"]
    data: bytes


class Frames:
    """Cuts one stream.

    Args:
        most: the most bytes that a message may have.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = bytearray()
        self._wanted = PREFIX
        self._kind: Literal["schema", "batch"] | None = None  # of the message whose head has been read
        self._has_schema = self.is_over = False

    @property
    def held(self) -> int:
        """The number of bytes of the message that is still incomplete."""
        return len(self._held)

    def feed(self, data: bytes) -> list[Frame]:
        """Takes bytes, and returns the messages that are now complete. Raises Broken, TooLong; then the stream is
        unusable.
        """
        self._held += data
        found = []
        while len(self._held) >= self._wanted and not self.is_over:
            if self._wanted == PREFIX:
                self._begin()
            elif self._kind is None:
                self._read_head()
            else:
                found.append(Frame(self._kind, bytes(memoryview(self._held)[: self._wanted])))
                self._next()
        if self.is_over and self._held:
            raise Broken("there are bytes after the end of the stream")
        return found

    def end(self) -> None:
        """Notes that no more bytes come. Raises Broken if the stream has not ended."""
        if not self.is_over:
            raise Broken("the stream is incomplete: close its writer, which writes the end")

    def _begin(self) -> None:
        if self._held[:4] != CONTINUATION:
            raise Broken("this is not a message of Arrow: send an IPC stream, not a file and not Feather")
        (length,) = struct.unpack_from("<i", self._held, 4)
        if length == 0:
            if not self._has_schema:
                raise Broken("the stream has no schema")
            self._next()
            self.is_over = True
            return
        if not 8 <= length <= HEAD_MAX:
            raise Broken(f"the head of a message has {length:,} bytes; it must have 8 to {HEAD_MAX:,}")
        self._wanted = PREFIX + length

    def _read_head(self) -> None:
        head = bytes(memoryview(self._held)[PREFIX : self._wanted])
        self._kind, length = judged(head, has_schema=self._has_schema)
        self._has_schema = True
        if self._wanted + length > self._most:
            raise TooLong(f"a record batch has {length:,} bytes")
        self._wanted += length

    def _next(self) -> None:
        del self._held[: self._wanted]
        self._wanted, self._kind = PREFIX, None


def judged(head: bytes, *, has_schema: bool) -> tuple[Literal["schema", "batch"], int]:
    """The type of a message, and the length of its body in bytes. Raises Broken."""
    try:
        message = FlatTable(head, struct.unpack_from("<I", head)[0])
        kind, length = message.number(HEADER_TYPE, "<B"), message.number(BODY_LENGTH, "<q")
        is_compressed = kind == BATCH and message.table(HEADER).has(COMPRESSION)
    except struct.error:
        raise Broken("the head of a message points outside the message") from None
    if kind == DICTIONARY:
        raise Broken("it has dictionaries: cast such columns to the type of their values")
    if kind != (BATCH if has_schema else SCHEMA):
        raise Broken("only record batches may follow the schema")
    if is_compressed:
        raise Broken("a record batch is compressed: write it without compression")
    if length < 0 or (kind == SCHEMA and length):
        raise Broken(f"a body of {length:,} bytes")
    return ("batch" if kind == BATCH else "schema"), length


class FlatTable:
    """A table in a flatbuffer. Its methods raise struct.error for positions outside the bytes."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at
        (back,) = struct.unpack_from("<i", data, at)
        self._fields = at - back
        (self._size,) = self._unpacked("<H", self._fields)

    def _unpacked(self, form: str, at: int) -> tuple[int, ...]:
        if at < 0:  # a negative position would count from the end
            raise struct.error
        return struct.unpack_from(form, self._data, at)

    def _place(self, field: int) -> int:
        """The position of a field; 0 if it is missing."""
        entry = 4 + 2 * field
        (offset,) = self._unpacked("<H", self._fields + entry) if entry + 2 <= self._size else (0,)
        return offset and self._at + offset

    def has(self, field: int) -> bool:
        return self._place(field) != 0

    def number(self, field: int, form: str) -> int:
        """A number; 0 if it is missing."""
        place = self._place(field)
        return self._unpacked(form, place)[0] if place else 0

    def table(self, field: int) -> FlatTable:
        """The table that a field points to."""
        place = self._place(field)
        if not place:
            raise struct.error
        return FlatTable(self._data, place + self._unpacked("<I", place)[0])
