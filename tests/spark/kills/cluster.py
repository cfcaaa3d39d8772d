"""A standalone cluster of Spark on this machine: a master and workers, each with its own address and folders."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark
from tests.helpers.support import until
from tests.spark.jvm import SHORT_LIFE
from tests.spark.kills.processes import kill_and_wait, kill_session, members_of

STARTED = re.compile(r"Starting Spark master at (spark://\S+)|Successfully registered with master")
EXECUTOR = b"org.apache.spark.executor.CoarseGrainedExecutorBackend"
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.minTaskRuntime": "1s",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running cluster.

    Args:
        master: its address.
        workers: the processes, each the leader of a session that contains its executors.
    """

    master: str
    workers: list[int]

    def executors(self) -> list[int]:
        """The ids of the JVMs that run tasks."""
        return [pid for worker in self.workers for pid in members_of(worker) if _runs(pid, EXECUTOR)]

    def kill_executor(self) -> None:
        """Kills an executor with SIGKILL, as soon as there is one."""
        until(lambda: bool(self.executors()), "an executor has come")
        kill_and_wait(self.executors()[0])

    def kill_worker(self) -> None:
        """Kills a worker and all its children with SIGKILL, as a loss of power would."""
        kill_session(self.workers.pop(0))


def _runs(pid: int, what: bytes) -> bool:
    try:
        return what in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it has just ended
        return False


@contextmanager
def cluster(
    folder: Path,
    workers: int = 2,
    environment: Mapping[str, str] | None = None,
    own: Callable[[Path], Mapping[str, str]] = lambda _: {},
) -> Iterator[Cluster]:
    """Starts a master, and workers of one core.

    Args:
        environment: of all of them, in addition to this process's own.
        own: fills a worker's folder, and returns the environment that refers to it.
    """
    given = dict(os.environ) | dict(environment or {})
    with ExitStack() as stack:
        master, _ = stack.enter_context(daemon(folder / "master", given, "Master", "--host", "127.0.0.1"))
        leaders = []
        for number in range(2, 2 + workers):
            place, host = folder / f"worker-{number}", f"127.0.0.{number}"
            asked = ("--host", host, "--cores", "1", "--memory", "1g", "-d", str(place / "work"), master)
            leaders.append(stack.enter_context(daemon(place, given | dict(own(place)), "Worker", *asked))[1])
        yield Cluster(master, leaders)


@contextmanager
def daemon(place: Path, environment: Mapping[str, str], name: str, *arguments: str) -> Iterator[tuple[str, int]]:
    """Starts a process of the cluster; yields its address and id when it has told the address or found its master."""
    home = Path(pyspark.__file__).parent
    java = Path(os.environ.get("JAVA_HOME", "/usr"), "bin", "java")
    options = [*SHORT_LIFE.split(), "-Xmx256m", "-cp", str(home / "jars" / "*")]
    command = [str(java), *options, f"org.apache.spark.deploy.{name.lower()}.{name}"]
    place.mkdir(parents=True, exist_ok=True)
    own = {"SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.13", "SPARK_LOCAL_DIRS": str(place)}
    with subprocess.Popen(
        [*command, "--port", "0", "--webui-port", "0", *arguments],
        cwd=place,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**environment, **own},
        start_new_session=True,
    ) as process:
        assert process.stderr is not None
        try:
            told = next((found for line in process.stderr if (found := STARTED.search(line))), None)
            assert told is not None, f"the {name} has ended with {process.wait()}"
            listener = threading.Thread(target=process.stderr.read)
            listener.start()
            yield told[1] or "", process.pid
        finally:
            kill_session(process.pid)
        listener.join()
