"""Counts the output of a job's tasks: each writes its count into a small file, and the driver adds them up.

The driver makes a folder and names it in a local property, which Spark sends with each task. A file is named after its
partition, so that a repeated task is not counted twice. Its size is constant, and it is removed with the folder when
the job ends.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

from pyspark import TaskContext

FOLDER = "inorder.tally"  # a local property; empty or missing if no driver asks
FIGURES = struct.Struct("<qq")


class Tally:
    """The counts of one task; does nothing if no driver asks, or the driver's folder is out of reach."""

    def __init__(self) -> None:
        self._path: Path | None = None
        context = TaskContext.get()
        folder = None if context is None else context.getLocalProperty(FOLDER)
        if context is not None and folder and os.access(folder, os.W_OK | os.X_OK):
            self._path = Path(folder, str(context.partitionId()))
            self.note(0, 0)  # the counts of an earlier attempt are void

    def note(self, messages: int, size: int) -> None:
        """Records how many messages and bytes this task has written so far."""
        if self._path is not None:
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.pwrite(file, FIGURES.pack(messages, size), 0)
            finally:
                os.close(file)


def added_up(folder: str) -> tuple[int, int]:
    """Adds up the messages and bytes of all tasks that have recorded any."""
    noted = [path.read_bytes() for path in Path(folder).iterdir()]
    figures = [FIGURES.unpack(one) for one in noted if len(one) == FIGURES.size]  # a task that begins has an empty one
    return sum(messages for messages, _ in figures), sum(size for _, size in figures)
