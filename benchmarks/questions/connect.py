"""What does a connection for each request cost, if no process has the file open, and if this process has it open?"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import inorder
from benchmarks.harness import Bar, Contestant, Figures, Question, Ready, percentile
from benchmarks.systems import BODY
from benchmarks.systems.ours import QUEUE, open_queue, open_store, settings_of

OPENED, KEPT = "a file that is opened each time", "a file that the process has open"
NOTHING, PUT, GET = "connection ms", "with a put ms", "with a get ms"
QUEUES = 50  # the most that a program may have: each opening reads their definitions

Request = Callable[[inorder.QueueManager], object]
REQUESTS: dict[str, Request] = {
    NOTHING: lambda qm: None,
    PUT: lambda qm: qm.put(QUEUE, BODY),
    GET: lambda qm: qm.get(QUEUE),
}


def request(folder: Path, act: Request) -> float:
    """Returns the seconds of a connection, from the first call to the last."""
    began = time.perf_counter()
    with open_store(folder) as qm:
        act(qm)
    return time.perf_counter() - began


def measure(folder: Path, seconds: float) -> Figures:
    """Runs the requests in turn, so that each get has a message. Returns the medians."""
    times: dict[str, list[float]] = {name: [] for name in REQUESTS}
    ends = time.perf_counter() + seconds
    while not times[GET] or time.perf_counter() < ends:
        for name, act in REQUESTS.items():
            times[name].append(request(folder, act))
    return {name: 1e3 * percentile(sorted(each), 0.5) for name, each in times.items()}


@contextmanager
def opened(folder: Path, *, keeps: bool) -> Iterator[Ready]:
    """Makes many queues, of which one is used."""
    with open_queue(folder) as qm:
        for number in range(QUEUES - 1):
            qm.create_queue(f"OTHER.{number}", exist_ok=True)
        settings = settings_of(qm)
        if keeps:
            yield Ready(measure=partial(measure, folder), settings=settings)
    if not keeps:
        yield Ready(measure=partial(measure, folder), settings=settings)


QUESTION = Question(
    name="connect",
    title="a connection for each request",
    unit="ms a request",
    contestants=lambda site: [
        Contestant(name=name, role="ours", open=partial(opened, keeps=keeps))
        for name, keeps in ((OPENED, False), (KEPT, True))
    ],
    bars=[Bar(figure=NOTHING, of=name, first=2, goal=1) for name in (OPENED, KEPT)],
)
