"""The library, compiled once in each test process, and programs that use it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from tests.mqi.program import Program

from inorder import QueueManager, connect
from inorder.mqi import building, c_headers
from inorder.testing.mq import MqTest, temporary_mq

PROGRAMS = Path(__file__).parent / "programs"
SOURCES = str(Path(building.__file__).parents[2])

Compile = Callable[[Path], Path]


@pytest.fixture(scope="session", autouse=True)
def cache_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder in which the library is built, instead of the user's cache."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder


@pytest.fixture
def mq() -> Iterator[MqTest]:
    """A queue manager, with the substitute modules in this process."""
    with temporary_mq("DEV.QUEUE.1", "DEV.QUEUE.2", in_python=True) as made:
        yield made


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Compiles a C program against our headers and library."""
    folder = tmp_path_factory.mktemp("programs")
    c_headers.write(folder / "inc")

    @cache
    def make(source: Path) -> Path:
        library, program = building.build(), folder / source.stem
        command = [building.compiler() or "cc", "-Wall", "-Wextra", "-Werror", f"-I{folder / 'inc'}", str(source)]
        command += ["-o", str(program), f"-L{library}", f"-Wl,-rpath,{library}", "-lmqm_r", "-pthread"]
        subprocess.run(command, check=True)
        return program

    return make


def python(program: str, *arguments: str, status: int = 0) -> str:
    """Runs a Python program, which can import the packages of the tests. Returns what it prints."""
    path = os.pathsep.join([SOURCES, *sys.path])
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": path, "MQIPY_NOOTEL": "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stderr
    return done.stdout


@pytest.fixture
def mq_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[QueueManager]:
    """A queue manager QM1 in a file, which programs reach by every name."""
    path = str(tmp_path / "mq.db")
    with connect(path, name="QM1") as qm:
        qm.create_queue("Q")
        monkeypatch.setenv("INORDER_STORE", path)
        monkeypatch.setenv("INORDER_MQI", str(tmp_path))
        monkeypatch.delenv("MQSERVER", raising=False)
        yield qm


@pytest.fixture
def program(mq_store: QueueManager) -> Iterator[Program]:
    one = Program()
    assert one.connected == [0, 0]
    yield one
    one.disconnect()
