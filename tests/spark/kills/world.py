"""The queue, the archive and the checkpoint of a scenario in which drivers are killed, and its checks."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.spark.calls import held
from tests.spark.kills.checker import archived, on_queue, wrong_at_sink, wrong_in_store
from tests.spark.kills.processes import Driver

import inorder
from inorder import Flags, QueueManager
from inorder.spark import finish
from inorder.stores.open import locate
from inorder.testing import ManualClock

APPLICATION = "killed"
SOURCE, TARGET = "Q", "TARGET"
MESSAGES, MESSAGES_EACH, PER_BATCH, PARTITIONS = 300, 120, 60, 2
LINES_OPEN, GROUP_MAX = 4, 9
BATCH_SECONDS = 240.0


class Log(NamedTuple):
    """The last batches in Spark's two logs of a checkpoint, or -1, and the open claim: number, and whether planned."""

    offsets: int
    commits: int
    open: tuple[int, bool] | None


class World:
    """A folder with a store, an archive and checkpoints.

    Args:
        url: of a store elsewhere, for Spark; None: it is a file in the folder.
        store: the same store for the test itself; None: by the URL.
        source: the queue that is drained.
    Attributes:
        plan: the messages that were put, in the checker's form.
    """

    def __init__(
        self,
        folder: Path,
        *,
        messages: int = MESSAGES,
        url: str | None = None,
        store: Path | None = None,
        source: str = SOURCE,
        **attributes: Any,
    ) -> None:
        self.folder, self.url = folder, url or str(folder / "store.db")
        self.store, self.queue = str(store or self.url), source
        self.archive, self.checkpoint = folder / "archive", folder / "checkpoint"
        self.plan: list[list[bytes]] = []
        with inorder.connect(self.store) as qm:
            qm.create_queue(source, **attributes)
            qm.create_queue(TARGET, exist_ok=True)
            self.put(qm, messages)

    def put(self, qm: QueueManager, messages: int, seed: int = 1) -> None:
        """Puts groups of several writers, mixed with messages in no group."""
        mixed = mixture(messages, seed, prefix=f"{len(self.plan)}/")
        with qm.unit_of_work():
            handles = [qm.open(self.queue, output=True) for _ in range(LINES_OPEN)]
            for writer, flags, body in mixed.puts:
                handles[writer].put(body, flags=flags, logical=bool(flags))
        for handle in handles:
            handle.close()
        self.plan += mixed.plan

    def put_more(self, chance: random.Random) -> None:
        """Puts a few more unless many wait: the last driver must process all of them in time."""
        with inorder.connect(self.store) as qm:
            if qm.depth(self.queue) < MESSAGES:
                self.put(qm, MESSAGES_EACH, seed=chance.randrange(10**6))

    # --- orders

    def drains(self, **more: Any) -> dict[str, Any]:
        """The arguments of the job."""
        return {
            "url": str(self.url),
            "queue": self.queue,
            "archive": str(self.archive),
            "application": APPLICATION,
            "checkpoint": str(self.checkpoint),
            "messages_per_batch": PER_BATCH,
            "partitions": PARTITIONS,
        } | more

    def source(self, **more: Any) -> dict[str, str]:
        """The options of a stream that drains in logical order, whole groups only."""
        options = {
            "url": self.url,
            "queue": self.queue,
            "mode": "drain",
            "application": APPLICATION,
            "order": "logical",
            "completeGroups": "true",
            "maxMessagesPerTrigger": PER_BATCH,
            "partitions": PARTITIONS,
        }
        return {name: str(value) for name, value in (options | more).items()}

    def to_queue(self, **more: Any) -> dict[str, Any]:
        """The arguments of a query from the queue to TARGET."""
        return {
            "source": self.source(),
            "sink": "inorder",
            "sink_options": {"url": str(self.url), "queue": TARGET, "orderBy": "delivery_number"},
            "checkpoint": str(self.checkpoint),
        } | more

    def to_files(self, **more: Any) -> dict[str, Any]:
        """The arguments of a query from the queue to the archive, without `finish`."""
        return {
            "source": self.source(),
            "sink": "parquet",
            "sink_options": {"path": str(self.archive)},
            "checkpoint": str(self.checkpoint),
        } | more

    def finish(self) -> int:
        """Finishes, as an operator does when a query has stopped for good."""
        return finish(str(self.url), self.queue, APPLICATION, str(self.checkpoint))

    def let_time_pass(self, seconds: float) -> None:
        """Discards everything that expires within this time."""
        where = locate(self.store)
        store = where.open(where.default_name, clock=ManualClock(time.time() + seconds))
        with inorder.connect(store) as qm:
            qm.admin.discard_expired()
        store.close_store()

    def forget(self, batch: int) -> None:
        """Removes a batch from Spark's commit log."""
        file = self.checkpoint / "commits" / str(batch)
        file.unlink()
        file.with_name(f".{file.name}.crc").unlink()

    # --- views from outside

    def await_batch(self, number: int, one: Driver) -> None:
        """Waits until Spark has logged that batch; fails if the driver ends before."""
        deadline = time.monotonic() + BATCH_SECONDS
        while newest(self.checkpoint / "offsets") < number:
            assert not one.has_ended(0.05), "the driver has ended"
            assert time.monotonic() < deadline, f"batch {number} has not begun"

    def log(self) -> Log:
        """The progress of Spark and of the queue manager."""
        with inorder.connect(self.store) as qm:
            claims = [one.open for one in qm.bulk.claims() if one.open is not None]
        opened = (claims[0].number, claims[0].planned) if claims else None
        return Log(newest(self.checkpoint / "offsets"), newest(self.checkpoint / "commits"), opened)

    def held(self) -> list[int]:
        return held(self.store)

    def check_archive(self, **how: Any) -> None:
        """Checks that all messages put are in the archive, and that nothing is left."""
        complaints = wrong_at_sink(archived(self.archive), self.plan, **how) + wrong_in_store(self.store, self.queue)
        assert not complaints, complaints

    def check_target(self) -> None:
        """Checks that all messages put are on TARGET, and that nothing is left."""
        complaints = wrong_at_sink(on_queue(self.store, TARGET), self.plan) + wrong_in_store(self.store, self.queue)
        assert not complaints, complaints

    def check_so_far(self) -> int:
        """Checks the messages that are in the archive so far; returns their number."""
        rows = archived(self.archive)
        complaints = wrong_at_sink(rows, self.plan, all_there=False)
        assert not complaints, complaints
        return len(rows)


class Mixture(NamedTuple):
    """Messages in the order of their puts, as writer, flags and body; and the lines expected in logical order."""

    puts: list[tuple[int, Flags, bytes]]
    plan: list[list[bytes]]


def mixture(messages: int, seed: int, prefix: str = "") -> Mixture:
    """Groups that several writers put at the same time."""
    chance = random.Random(seed)
    puts: list[tuple[int, Flags, bytes]] = []
    plan: list[list[bytes]] = []
    lines: list[list[bytes]] = [[] for _ in range(LINES_OPEN)]
    sizes = [0] * LINES_OPEN
    left = messages
    while left or any(sizes):
        writer = chance.randrange(LINES_OPEN)
        line = lines[writer]
        if not sizes[writer]:
            if not left:
                continue
            sizes[writer] = min(left, chance.randint(1, GROUP_MAX))
            left -= sizes[writer]
            line = lines[writer] = []
            plan.append(line)
            alone = sizes[writer] == 1
        else:
            alone = False
        line.append(f"{prefix}{plan.index(line)}.{len(line) + 1}".encode())
        ends = len(line) == sizes[writer]
        flags = Flags(0) if alone else Flags.LAST_IN_GROUP if ends else Flags.IN_GROUP
        puts.append((writer, flags, line[-1]))
        if ends:
            sizes[writer] = 0
    return Mixture(puts, plan)


def seeded() -> random.Random:
    """A generator from a seed, which is printed; it repeats the chosen moments, not the state of processes then."""
    seed = os.environ.get("INORDER_SEED") or str(random.randrange(10**9))
    print(f"INORDER_SEED={seed}")
    return random.Random(seed)


def newest(log: Path) -> int:
    """The last batch of one of Spark's logs, -1: none."""
    return max((int(path.name) for path in log.glob("*") if path.name.isdigit()), default=-1)


@contextmanager
def killed_at(world: World, point: str, do: str, **order: Any) -> Iterator[Driver]:
    """Holds a driver at a point ("POINT:NTH") during the block, and kills it at the end."""
    one = Driver(world.folder, hold=point)
    try:
        one.order(do, **order)
        one.held()
        yield one
    finally:
        one.kill()
        one.end()
