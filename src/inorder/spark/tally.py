"""What the tasks of a job have written so far: each notes it in a small file, and the driver adds them up.

The driver makes a folder and names it in a local property, which Spark sends with each task. A file is named by its
partition, so that a task which Spark repeats is not counted twice. It has a size that never grows, and goes with the
folder when the job ends.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

from pyspark import TaskContext

FOLDER = "inorder.tally"  # a local property; empty or not there: nobody asks
FIGURES = struct.Struct("<qq")


class Tally:
    """The figures of one task; nothing where nobody asked for them, or where the driver's folder is out of reach."""

    def __init__(self) -> None:
        self._path: Path | None = None
        context = TaskContext.get()
        folder = None if context is None else context.getLocalProperty(FOLDER)
        if context is not None and folder and os.access(folder, os.W_OK | os.X_OK):
            self._path = Path(folder, str(context.partitionId()))
            self.note(0, 0)  # what an attempt before this one has noted is void

    def note(self, messages: int, size: int) -> None:
        """Notes how many messages, and bytes, this task has written so far."""
        if self._path is not None:
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.pwrite(file, FIGURES.pack(messages, size), 0)
            finally:
                os.close(file)


def added_up(folder: str) -> tuple[int, int]:
    """The messages and bytes of all tasks that have noted any."""
    noted = [path.read_bytes() for path in Path(folder).iterdir()]
    figures = [FIGURES.unpack(one) for one in noted if len(one) == FIGURES.size]  # one that begins is empty
    return sum(messages for messages, _ in figures), sum(size for _, size in figures)


__all__ = ["FOLDER", "Tally", "added_up"]
