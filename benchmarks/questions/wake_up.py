"""How soon does a waiting process get a message that another one puts, and what does the wait cost?

Measured from the call of the put to the return of the other's get, on the clock that all processes of the machine
share.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks.children import child, orders
from benchmarks.harness import Bar, Cannot, Contestant, Figures, Question, Ready, Site, percentile
from benchmarks.systems.talking import TALKERS, Ours, OursNotPersistent, Redis, RedisWithoutSyncs, Talker

PAUSE_SECONDS = 0.02  # enough for the waiter to begin its wait
WAIT_SECONDS = 60.0  # a busy machine may be slow
PUTS_MIN = 10
IDLE_TIMES = 10  # the idle wait is this much longer, so that its beginning and end do not matter
P50, P99, IDLE = "p50 ms", "p99 ms", "idle % of a core"


def talkers_at(site: Site) -> list[type[Talker]]:
    """Returns the talkers that take part: embedded systems, and servers that run."""
    return [talker for talker in TALKERS if talker.server is None or talker.server in site.ports]


def contestants_of(site: Site, opened: Callable[..., AbstractContextManager[Ready]]) -> list[Contestant]:
    """Returns a contestant for each talker."""
    return [
        Contestant(
            name=talker.name,
            role=talker.role,
            open=partial(opened, talker=talker, port=site.ports.get(talker.server or "", 0)),
        )
        for talker in talkers_at(site)
    ]


def figures(latencies: list[float]) -> dict[str, float]:
    """Returns the figures of these seconds."""
    ordered = sorted(latencies)
    return {
        P50: percentile(ordered, 0.5) * 1e3,
        P99: percentile(ordered, 0.99) * 1e3,
        "max ms": ordered[-1] * 1e3,
    }


def bars_against_redis(*figures_max: Bar) -> list[Bar]:
    """Returns the bars for durable messages, and for others."""
    pairs = ((Ours, Redis, 1.2), (OursNotPersistent, RedisWithoutSyncs, 1.5))
    return [
        *(
            Bar(figure=P50, of=own.name, against=other.name, first=most, goal=1.0, most=True)
            for own, other, most in pairs
        ),
        *figures_max,
    ]


def serve(pipe: Connection, talker: type[Talker], folder: Path, port: int) -> None:
    """Runs a process that waits. For "wake" it answers the seconds from the put of a message to its arrival; for a
    number it waits that many seconds in vain and answers its share of a core.
    """
    with closing(talker(folder, port)) as own:
        for told in orders(pipe):
            if told == "wake":
                body = own.receive(WAIT_SECONDS)
                pipe.send(None if body is None else (time.monotonic_ns() - int(body)) / 1e9)
            else:
                start, used = time.monotonic(), time.process_time()
                own.receive(told)
                pipe.send((time.process_time() - used) / (time.monotonic() - start))


@contextmanager
def opened(folder: Path, *, talker: type[Talker], port: int) -> Iterator[Ready]:
    """Starts a process that waits; this one puts."""
    with closing(talker(folder, port)) as own, child(serve, talker, folder, port) as waiter:

        def latency() -> float:
            waiter.order("wake")
            time.sleep(PAUSE_SECONDS)
            own.send(str(time.monotonic_ns()).encode("ascii"))
            waited = waiter.answer(2 * WAIT_SECONDS)
            if waited is None:
                raise Cannot(f"another process did not notice a put within {WAIT_SECONDS:g} s")
            return float(waited)

        def measure(seconds: float) -> Figures:
            with own.measured():
                found = figures([latency() for _ in range(max(PUTS_MIN, int(seconds / PAUSE_SECONDS / 2)))])
                waiter.order(IDLE_TIMES * seconds)
                return {**found, IDLE: waiter.answer() * 100}

        yield Ready(measure=measure, settings=own.settings())


QUESTION = Question(
    name="wake_up",
    title="wake-up of a waiting process, and the CPU time of one that waits",
    unit="ms",
    rounds_max=3,
    contestants=partial(contestants_of, opened=opened),
    bars=bars_against_redis(
        Bar(figure=P99, of=Ours.name, first=5, goal=2),
        Bar(figure=P99, of=OursNotPersistent.name, first=5, goal=2),
        Bar(figure=IDLE, of=Ours.name, first=0.05, goal=0.02),
    ),
)
