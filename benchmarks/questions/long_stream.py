"""Does a stream of 999,999,999 bytes pass through a queue in bounded memory?"""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.children import child, memory_mb, orders
from benchmarks.harness import Bar, Cannot, Contestant, Figures, Question, Ready, Site
from benchmarks.systems.ours import OURS, QUEUE, open_queue, settings_of

if TYPE_CHECKING:
    from typing_extensions import Buffer

LENGTH = 999_999_999


class Source(io.BytesIO):
    """A binary stream of this many bytes that needs no memory for them."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self._left = length

    def read(self, size: int | None = -1) -> bytes:
        size = self._left if size is None or size < 0 else min(size, self._left)
        self._left -= size
        return bytes(size)


class Sink(io.BytesIO):
    """A binary stream that counts the bytes written to it."""

    length = 0

    def write(self, data: Buffer) -> int:
        written = memoryview(data).nbytes
        self.length += written
        return written


def serve(pipe: Connection, folder: Path, length: int) -> None:
    """Runs a process that puts and gets the stream once for each order."""
    with open_queue(folder) as qm:
        for _ in orders(pipe):
            start = time.monotonic()
            qm.put_stream(QUEUE, Source(length))
            between = time.monotonic()
            sink = Sink()
            qm.get_stream(QUEUE, sink)
            if sink.length != length:
                raise ValueError(f"{sink.length} bytes came out of {length}")
            ended = time.monotonic()
            pipe.send({"most MB": memory_mb("VmHWM"), "put s": between - start, "get s": ended - between})


@contextmanager
def opened(folder: Path, *, site: Site) -> Iterator[Ready]:
    """Starts a child that moves the stream; it is measured once, for all rounds."""
    if not site.full:
        raise Cannot("takes gigabytes: asked for with --full")
    with child(serve, folder, site.scaled(LENGTH)) as worker, open_queue(folder) as qm:
        worker.order("move")
        once: Figures = worker.answer()
        yield Ready(measure=lambda seconds: once, settings=settings_of(qm))


QUESTION = Question(
    name="long_stream",
    title=f"put_stream and get_stream of {LENGTH:,} bytes",
    unit="MB",
    contestants=lambda site: [Contestant(name=OURS, role="ours", open=partial(opened, site=site))],
    bars=[Bar(figure="most MB", of=OURS, first=100, goal=100)],
)
