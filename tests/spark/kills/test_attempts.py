"""Tasks that run more than once: one that raises, and one that is overtaken by its twin."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyspark
import pytest
from tests.spark.kills.processes import Driver, driver, kill_session
from tests.spark.kills.world import World

from inorder.spark.options import DAY_SECONDS

LONG = "INORDER_LONG" in os.environ
STARTED = re.compile(r"Starting Spark master at (spark://\S+)|Successfully registered with master")
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


def to(sink: str, world: World) -> dict[str, Any]:
    return world.to_files() if sink == "files" else world.to_queue()


def check(sink: str, world: World) -> None:
    world.finish()
    if sink == "files":
        world.check_archive()
    else:
        world.check_target()


@pytest.mark.parametrize("sink", ["files", "queue"])
def test_a_task_that_raises_is_run_again(world: World, successor: Driver, sink: str) -> None:
    flag = world.folder / "raised"
    successor.ask("run", name=sink, fault="raise once", flag=str(flag), **to(sink, world))
    assert flag.exists()
    check(sink, world)


@pytest.mark.skipif(not LONG, reason="five JVMs; INORDER_LONG=1 runs it")
@pytest.mark.parametrize("sink", ["files", "queue"])
def test_a_slow_task_is_overtaken_by_its_twin(world: World, sink: str) -> None:
    flag = world.folder / "slow"
    with cluster(world.folder) as master, driver(world.folder, master=master, settings=SPECULATION) as one:
        one.ask("run", name=sink, fault="slow once", flag=str(flag), **to(sink, world))
    assert sorted(path.name for path in world.folder.glob("slow.*")) == ["slow.0", "slow.1"]
    world.let_time_pass(2 * DAY_SECONDS)  # what the slow one may have staged
    check(sink, world)


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """A standalone master with two workers, each on an address of its own; the master's."""
    with ExitStack() as stack:
        master = stack.enter_context(daemon(folder, "Master", "--host", "127.0.0.1"))
        for number in (2, 3):
            place = str(folder / f"worker-{number}")
            host = f"127.0.0.{number}"
            stack.enter_context(
                daemon(folder, "Worker", "--host", host, "--cores", "1", "--memory", "1g", "-d", place, master)
            )
        yield master


@contextmanager
def daemon(folder: Path, name: str, *arguments: str) -> Iterator[str]:
    """A process of the cluster, from the moment on when it has told its address, or found its master."""
    home = Path(pyspark.__file__).parent
    java = Path(os.environ.get("JAVA_HOME", "/usr"), "bin", "java")
    command = [str(java), "-Xmx256m", "-cp", str(home / "jars" / "*"), f"org.apache.spark.deploy.{name.lower()}.{name}"]
    with subprocess.Popen(
        [*command, "--port", "0", "--webui-port", "0", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.13", "SPARK_LOCAL_DIRS": str(folder)},
        start_new_session=True,
    ) as process:
        assert process.stderr is not None
        try:
            told = next((found for line in process.stderr if (found := STARTED.search(line))), None)
            assert told is not None, f"the {name} has ended with {process.wait()}"
            listener = threading.Thread(target=process.stderr.read)
            listener.start()
            yield told[1] or ""
        finally:
            kill_session(process.pid)
        listener.join()
