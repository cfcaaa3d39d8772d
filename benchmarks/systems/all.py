"""All systems, and how they become the contestants of a question."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from benchmarks.harness import Contestant, Figures, Ready, Site, Work, rate
from benchmarks.systems import System
from benchmarks.systems.bare import Bare
from benchmarks.systems.lite_queue import LiteQueue
from benchmarks.systems.nats_jetstream import NatsJetStream
from benchmarks.systems.ours import Ours
from benchmarks.systems.persist_queue import PersistQueue
from benchmarks.systems.postgresql import PostgreSQL
from benchmarks.systems.rabbit_mq import RabbitMQ
from benchmarks.systems.redis_streams import RedisStreams

SYSTEMS: tuple[type[System], ...] = (
    Ours,
    Bare,
    RedisStreams,
    PostgreSQL,
    NatsJetStream,
    RabbitMQ,
    PersistQueue,
    LiteQueue,
)


def systems_at(site: Site) -> list[type[System]]:
    """The systems that take part: embedded ones always, servers if they run."""
    return [system for system in SYSTEMS if not system.is_server or system.name in site.ports]


def rate_contestants(site: Site, works: Callable[[System], Work]) -> list[Contestant]:
    """Every system at the site, doing the same work."""
    return [rate_contestant(system, site, works) for system in systems_at(site)]


def rate_contestant(system: type[System], site: Site, works: Callable[[System], Work]) -> Contestant:
    """One system, whose rate at this work is measured."""

    @contextmanager
    def opened(folder: Path) -> Iterator[Ready]:
        with closing(system(folder, site.ports.get(system.name, 0))) as own:
            own.empty()
            yield Ready(measure=partial(_rate_figures, works(own)), settings=own.settings())

    return Contestant(name=system.name, role=system.role, open=opened)


def _rate_figures(work: Work, seconds: float) -> Figures:
    return {"rate": rate(work, seconds)}
