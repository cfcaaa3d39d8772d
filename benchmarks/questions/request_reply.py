"""How long does a request to another process take: put, wait for its reply, get it?"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks.children import child, orders
from benchmarks.harness import Cannot, Figures, Question, Ready
from benchmarks.questions.wake_up import WAIT_SECONDS, bars_against_redis, contestants_of, figures
from benchmarks.systems import BODY
from benchmarks.systems.talking import Talker


def serve(pipe: Connection, talker: type[Talker], folder: Path, port: int) -> None:
    """Runs a process that answers as many requests as each order says."""
    with closing(talker(folder, port)) as own:
        for count in orders(pipe):
            pipe.send(all(own.answer(WAIT_SECONDS) for _ in range(count)))


@contextmanager
def opened(folder: Path, *, talker: type[Talker], port: int) -> Iterator[Ready]:
    """Starts a process that answers; this one asks."""
    with closing(talker(folder, port)) as own, child(serve, talker, folder, port) as server:

        def ask() -> float:
            began = time.perf_counter()
            server.order(1)
            if own.ask(BODY, WAIT_SECONDS) is None:
                raise Cannot(f"another process did not answer within {WAIT_SECONDS:g} s")
            return time.perf_counter() - began

        def measure(seconds: float) -> Figures:
            ends_at, took = time.monotonic() + seconds, list[float]()
            with own.measured():
                while not took or time.monotonic() < ends_at:
                    took.append(ask())
                    server.answer()
            return figures(took)

        yield Ready(measure=measure, settings=own.settings())


QUESTION = Question(
    name="request_reply",
    title="request and reply: a put, the wait for the reply to it, and what answers in another process",
    unit="ms",
    contestants=partial(contestants_of, opened=opened),
    bars=bars_against_redis(),
)
