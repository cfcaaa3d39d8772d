"""Tasks that run more than once: one that raises, and one that is overtaken by its twin."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyspark
import pytest
from tests.spark.kills.processes import Driver, driver, kill_session
from tests.spark.kills.world import World

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
    assert flag.exists()
    check(sink, world)


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """A standalone master with two workers, each on an address of its own; the master's."""
    with ExitStack() as stack:

        def begin(name: str, *arguments: str) -> str:
            """Starts one, and waits until it tells its address."""
            jars = Path(pyspark.__file__).parent / "jars" / "*"
            main = f"org.apache.spark.deploy.{name.lower()}.{name}"
            java = Path(os.environ.get("JAVA_HOME", "/usr"), "bin", "java")
            process = subprocess.Popen(
                [str(java), "-Xmx256m", "-cp", str(jars), main, "--port", "0", "--webui-port", "0", *arguments],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                env=os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_DIRS": str(folder)},
                start_new_session=True,
            )
            stack.callback(end, process)
            assert process.stderr is not None
            for line in process.stderr:
                if found := STARTED.search(line):
                    return found[1] or ""
            raise AssertionError(f"the {name} has ended with {process.wait()}")

        master = begin("Master", "--host", "127.0.0.1")
        for number in (2, 3):
            place = folder / f"worker-{number}"
            begin("Worker", "--host", f"127.0.0.{number}", "--cores", "1", "--memory", "1g", "-d", str(place), master)
        yield master


def end(process: subprocess.Popen[str]) -> None:
    kill_session(process.pid)
    process.wait()
    assert process.stderr is not None
    process.stderr.close()
