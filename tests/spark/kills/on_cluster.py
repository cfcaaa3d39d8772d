"""A run on a standalone cluster: from one queue to another, and from there to an archive, while processes are killed.

Master, workers and driver have folders of their own, and nothing in common but the store. Checkpoints and archives must
be in a place that all reach: one local folder stands for the object store that a cluster has.
"""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from tests.spark.kills.cluster import SPECULATION, Cluster, cluster
from tests.spark.kills.processes import Driver, driver
from tests.spark.kills.world import SOURCE, TARGET, World, newest

import inorder
from inorder.spark.options import DAY_SECONDS

ROUNDS = 10
BATCH_SECONDS = 240.0
CREDENTIALS = "credentials"  # the name of the files that may have the secret


class Run:
    """A run.

    Args:
        secret: what no file may have.
        store: as of `World`.
        own: as of `cluster`, for the driver as well.
    """

    def __init__(
        self,
        folder: Path,
        url: str,
        messages: int,
        *,
        secret: str,
        store: Path | None = None,
        own: Callable[[Path], Mapping[str, str]] = lambda _: {},
    ) -> None:
        self._secret, self._own = secret.encode(), own
        self.world = World(folder, url=url, store=store, messages=messages)
        self.events = folder / "events"
        self.events.mkdir()
        self.settings = SPECULATION | {"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file://{self.events}"}

    def cluster(self, folder: Path) -> AbstractContextManager[Cluster]:
        return cluster(folder, own=self._own)

    def driver(self, of: Cluster) -> AbstractContextManager[Driver]:
        folder = self.world.folder
        return driver(folder, master=of.master, settings=self.settings, environment=self._own(folder / "driver"))

    def query(self) -> dict[str, object]:
        return self.world.to_queue(source=self.world.source(partitions=4))

    def await_batch(self, number: int, one: Driver) -> None:
        """Until Spark has logged that batch; fails if the driver ends before."""
        deadline = time.monotonic() + BATCH_SECONDS
        while newest(self.world.checkpoint / "offsets") < number:
            assert not one.has_ended(0.05), "the driver has ended"
            assert time.monotonic() < deadline, f"batch {number} has not begun"

    def end(self, one: Driver) -> None:
        """A driver goes on to the end, and drains the other queue into an archive; each message is there once."""
        world, archive = self.world, self.world.folder / "archive of target"
        one.ask("run", name="copy", **self.query())
        world.finish()
        world.let_time_pass(2 * DAY_SECONDS)  # what the dead have staged
        world.check_target()
        arguments = world.drains(queue=TARGET, archive=str(archive), checkpoint=None, messages_per_batch=10_000)
        messages = one.ask("drain", **arguments)["messages"]
        found = one.ask("audit", archive=str(archive), output=str(world.folder / "findings"))
        groups = sum(len(line) > 1 for line in world.plan)
        due = sum(map(len, world.plan))
        assert (messages, found) == (due, {"messages": due, "groups": groups, "errors": 0})
        with inorder.connect(world.store) as qm:
            assert (qm.depth(SOURCE), qm.depth(TARGET), qm.inspect.units(), qm.admin.check()) == (0, 0, [], [])

    def with_secret(self) -> list[Path]:
        """Files of this run that hold the secret."""
        files = (path for path in self.world.folder.rglob("*") if path.is_file() and path.name != CREDENTIALS)
        return [path for path in files if self._secret in path.read_bytes()]

    def kill_at_random(self, seed: str, kill_server: Callable[[], object] = lambda: None) -> None:
        """Clusters, one after the other, whose processes are killed at random moments; the last one goes on to the end.

        The moments are the same again for a seed; what happens then is not.
        """
        folder, chance = self.world.folder, random.Random(seed)
        for number in range(ROUNDS):
            with self.cluster(folder / str(number)) as of_two, self.driver(of_two) as one:
                one.ready()
                one.order("run", name="copy", **self.query())
                for _ in range(3):
                    one.has_ended(chance.uniform(0.5, 4.0))
                    if chance.random() < 0.5:
                        of_two.kill_executor()
                    if chance.random() < 0.5:
                        kill_server()
                of_two.kill_worker()
                one.has_ended(chance.uniform(0.5, 6.0))
                one.kill()
            shutil.rmtree(folder / str(number))
            with inorder.connect(self.world.store) as qm:
                self.world.put(qm, 300, seed=chance.randrange(10**6))
        with self.cluster(folder / "last") as of_two, self.driver(of_two) as last:
            self.end(last)


def a_seed() -> str:
    """That of INORDER_SEED, or a new one, which a failure shows."""
    seed = os.environ.get("INORDER_SEED") or str(random.randrange(10**9))
    print(f"INORDER_SEED={seed}")
    return seed
