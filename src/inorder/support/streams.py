"""Writes bytes completely, and reads lines with a limit.

A stream without a buffer may write only a part, and reports that only in the result of `write`.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import IO

from ..errors import bad_argument


def write_whole(stream: IO[bytes], data: bytes) -> None:
    """Writes all of the bytes to a binary stream, or raises.

    A file, a pipe or a socket that was opened with ``buffering=0`` is an `io.RawIOBase`: if the disk fills up, the
    reader goes away or a signal arrives, its write ends early without an error. Every other stream writes everything,
    or raises.

    Raises OSError of the stream; ArgumentError if the stream does not block and has no room now, or writes nothing.
    """
    while data:
        write = stream.write  # looked up each time: a cancelled task may end the stream
        taken = write(data)
        # A named temporary file wraps its stream, and each of its methods.
        if not isinstance(getattr(getattr(write, "__wrapped__", write), "__self__", None), io.RawIOBase):
            return
        if not taken:
            raise bad_argument(
                "stream", stream, "a binary stream that blocks: one whose writes return a number above 0"
            )
        data = data[taken:]


def lines_up_to(stream: IO[bytes], most: int) -> Iterator[bytes]:
    """The lines of a binary stream with their ends; longer ones come in parts of this many bytes."""
    return iter(lambda: stream.readline(most), b"")


def flush(stream: IO[bytes]) -> None:
    """Empties the stream's buffer, if it has one. Raises OSError of the stream."""
    empty = getattr(stream, "flush", None)
    if callable(empty):
        empty()
