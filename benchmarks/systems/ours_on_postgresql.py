"""Our own store in PostgreSQL, through the public calls; also with a queue for each process, or unordered."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import psycopg

import inorder
from benchmarks.systems import FILL_BLOCK
from benchmarks.systems.ours import OURS_ON_POSTGRESQL, Ours
from benchmarks.systems.postgresql import LOOPBACK, settings_of
from inorder.model.attributes import QueueReadOrder


class OursOnPostgreSQL(Ours):
    """`inorder` with the URL of a server. The schema is named after the folder, so each contestant has its own."""

    name = OURS_ON_POSTGRESQL
    is_server = True
    made_for = "BENCH"
    read_order: QueueReadOrder = "relaxed"

    def __init__(self, folder: Path, port: int = 0) -> None:
        schema = f"bench_{folder.parent.name}_{folder.name}".lower()
        self._url = f"postgresql://postgres@{LOOPBACK}:{port}/postgres?schema={schema}"
        self._stack = contextlib.ExitStack()
        self.qm = self._stack.enter_context(inorder.connect(self._url, program="bench"))
        self.queue = self.made_for
        with contextlib.suppress(inorder.ObjectExists):
            self.qm.create_queue(self.queue, read_order=self.read_order)
        self._groups = 0

    def settings(self) -> str:
        with psycopg.connect(self._url.partition("?")[0]) as connection:
            return f"inorder {inorder.__version__}, {settings_of(connection)}"

    def empty(self) -> None:
        for queue in self.qm.queues():
            with contextlib.suppress(inorder.NoMessageAvailable):
                while True:
                    self.qm.get_many(queue.name, FILL_BLOCK)


class OursOnManyQueues(OursOnPostgreSQL):
    """Each process has its own queue."""

    name = f"{OURS_ON_POSTGRESQL}, a queue each"

    def __init__(self, folder: Path, port: int = 0) -> None:
        super().__init__(folder, port)
        self.queue = f"{self.made_for}.{os.getpid()}"
        with contextlib.suppress(inorder.ObjectExists):
            self.qm.create_queue(self.queue)


class OursUnordered(OursOnPostgreSQL):
    """The queue keeps no order."""

    name = f"{OURS_ON_POSTGRESQL}, unordered"
    made_for = "BENCH.UNORDERED"
    read_order = "unordered"
