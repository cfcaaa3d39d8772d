"""Bytes written whole, and lines read in bounds.

A stream without a buffer may take a part, and says so only by what its `write` returns.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import IO

from ..errors import bad_argument


def write_whole(stream: IO[bytes], data: bytes) -> None:
    """Writes all of the bytes to a binary stream, or raises.

    A file, a pipe or a socket that was opened with ``buffering=0`` is an `io.RawIOBase`: a disk that fills up, a reader
    that goes away or a signal ends its write in the middle without an error. Every other stream takes all, or raises.

    Raises: OSError, of the stream; ArgumentError, it does not block and has no room now, or takes nothing.
    """
    while data:
        write = stream.write  # once more each time: a stream may be one that a cancelled task ends
        taken = write(data)
        # A temporary file with a name wraps its stream, and each method of it.
        if not isinstance(getattr(getattr(write, "__wrapped__", write), "__self__", None), io.RawIOBase):
            return
        if not taken:
            raise bad_argument(
                "stream", stream, "a binary stream that blocks: one whose writes return a number above 0"
            )
        data = data[taken:]


def lines_up_to(stream: IO[bytes], most: int) -> Iterator[bytes]:
    """The lines of a binary stream with their ends; one that is longer comes in parts of so many bytes."""
    return iter(lambda: stream.readline(most), b"")


def flush(stream: IO[bytes]) -> None:
    """Empties the stream's buffer, if it has one. Raises: OSError, of the stream."""
    empty = getattr(stream, "flush", None)
    if callable(empty):
        empty()
