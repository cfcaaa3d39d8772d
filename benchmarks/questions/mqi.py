"""How much does a program for IBM MQ pay for its calls through the library, and for its first connection?"""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from benchmarks.harness import Bar, Cannot, Contestant, Figures, Question, Ready, Work, percentile, rate
from benchmarks.systems import BODY
from benchmarks.systems.ours import QUEUE, open_queue, settings_of
from inorder.mqi import building, c_headers
from inorder.mqi.connections import abandon_all

DIRECT, THROUGH = "calls of inorder", "ibmmq and the library"
FIRST, MEMORY, EMPTY = "first MQCONN ms", "memory MB", "empty call µs"
PROGRAM = Path(__file__).parents[1] / "first_connection.c"


@contextmanager
def directly(folder: Path) -> Iterator[Ready]:
    """Measures a put and a get, each in a separate unit of work."""
    with open_queue(folder) as qm, qm.open(QUEUE, output=True, input="shared") as queue:

        def put_and_get() -> None:
            queue.put(BODY, syncpoint=True)
            qm.commit()
            queue.get(syncpoint=True)
            qm.commit()

        yield Ready(measure=partial(_rate, put_and_get), settings=settings_of(qm))


@contextmanager
def through_the_library(folder: Path) -> Iterator[Ready]:
    """Measures the same with the package ibmmq."""
    with open_queue(folder) as owner, _in_environment(folder):
        ctypes.CDLL(str(building.build() / "libmqm_r.so"))
        try:
            import ibmmq  # noqa: PLC0415 - after the library
        except ImportError:
            raise Cannot("needs ibmmq") from None
        qm = ibmmq.connect("QM1")
        options = ibmmq.CMQC.MQOO_OUTPUT | ibmmq.CMQC.MQOO_INPUT_SHARED
        queue = ibmmq.Queue(qm, QUEUE, options)
        pmo = ibmmq.PMO(Options=ibmmq.CMQC.MQPMO_SYNCPOINT)
        gmo = ibmmq.GMO(Options=ibmmq.CMQC.MQGMO_SYNCPOINT)

        def put_and_get() -> None:
            queue.put(BODY, ibmmq.MD(), pmo)
            qm.commit()
            queue.get(None, ibmmq.MD(), gmo)
            qm.commit()

        yield Ready(measure=partial(_rate, put_and_get), settings=f"ibmmq {ibmmq.__version__}; {settings_of(owner)}")
        abandon_all()


def _rate(operation: Callable[[], object], seconds: float) -> Figures:
    return {"rate": rate(Work(operation=operation), seconds)}


@contextmanager
def _in_environment(folder: Path) -> Iterator[None]:
    os.environ |= _store(folder)
    try:
        yield
    finally:
        del os.environ["INORDER_STORE"]


def _store(folder: Path) -> dict[str, str]:
    return {"INORDER_STORE": str(folder / "store.db")}


@contextmanager
def in_c(folder: Path) -> Iterator[Ready]:
    """Measures a C program that is started again and again."""
    compiler = building.compiler()
    if compiler is None or building.libpython() is None:
        raise Cannot("needs a C compiler and libpython")
    with open_queue(folder) as qm, tempfile.TemporaryDirectory() as made:
        library, program = building.build(), Path(made) / "program"
        c_headers.write(Path(made))
        flags = [f"-I{made}", f"-L{library}", f"-Wl,-rpath,{library}"]
        subprocess.run([compiler, "-O1", *flags, str(PROGRAM), "-o", str(program), "-lmqm_r"], check=True)
        environment = os.environ | _store(folder)

        def measure(seconds: float) -> Figures:
            told: list[list[float]] = []
            ends = time.perf_counter() + seconds
            while not told or time.perf_counter() < ends:
                done = subprocess.run([program], env=environment, capture_output=True, text=True, check=True)
                told.append([float(number) for number in done.stdout.split()])
            columns = (percentile(sorted(column), 0.5) for column in zip(*told, strict=True))
            return dict(zip((FIRST, MEMORY, EMPTY), columns, strict=True))

        yield Ready(measure=measure, settings=settings_of(qm))


UNIT = Question(
    name="mqi",
    title="a program of IBM MQ: put 1, commit, get 1, commit",
    unit="messages/s",
    contestants=lambda site: [
        Contestant(name=DIRECT, role="ours", open=directly),
        Contestant(name=THROUGH, role="ours", open=through_the_library),
    ],
    bars=[Bar(figure="rate", of=THROUGH, against=DIRECT, first=0.3, goal=0.7)],
)
FIRST_CONNECTION = Question(
    name="mqi_first",
    title="the first connection of a program in C",
    unit="ms, MB and µs a process",
    contestants=lambda site: [Contestant(name="a program in C", role="ours", open=in_c)],
    bars=[],
)
QUESTIONS = (UNIT, FIRST_CONNECTION)
