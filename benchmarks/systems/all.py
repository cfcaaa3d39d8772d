"""All systems, and the contestants of a question that are made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path

from benchmarks.harness import Contestant, Place, Ready, Role, Site, Work, cost
from benchmarks.systems import System

PLACES = {
    "inorder": ("ours", "Ours"),
    "limit": ("limit", "Limit"),
    "bare": ("bare", "Bare"),
    "redis": ("redis_streams", "RedisStreams"),
    "postgresql": ("postgresql", "PostgreSQL"),
    "inorder-on-postgresql": ("ours_on_postgresql", "OursOnPostgreSQL"),
    "inorder-on-many": ("ours_on_postgresql", "OursOnManyQueues"),
    "inorder-unordered": ("ours_on_postgresql", "OursUnordered"),
    "pgmq": ("pgmq", "Pgmq"),
    "nats": ("nats_jetstream", "NatsJetStream"),
    "rabbitmq": ("rabbit_mq", "RabbitMQ"),
    "persist-queue": ("persist_queue", "PersistQueue"),
    "litequeue": ("lite_queue", "LiteQueue"),
}
IN_MEMORY: tuple[Role, ...] = ("ours", "limit")


class ClientMissingError(Exception):
    """The client of a chosen peer is not installed; the message says what to do."""


def systems_named(keys: Sequence[str]) -> list[type[System]]:
    """Returns the systems of these keys, in the order of the list above. Only the clients of these peers are loaded."""
    return [_system(*PLACES[key]) for key in PLACES if key in keys]


def _system(module: str, name: str) -> type[System]:
    try:
        found: type[System] = getattr(import_module(f"benchmarks.systems.{module}"), name)
    except ImportError as error:
        raise ClientMissingError(
            f"{error}: pip install -r benchmarks/peers.txt, or leave it out by --systems"
        ) from error
    return found


def systems_at(site: Site) -> list[type[System]]:
    """Returns the systems that take part: embedded systems, and servers that run."""
    return [system for system in site.systems if not system.is_server or system.name in site.ports]


def rate_contestants(
    site: Site, works: Callable[[System], Work], *, bare: bool = False, memory: bool = False
) -> list[Contestant]:
    """Returns a contestant for every system at the site; all do the same work.

    Args:
        bare: adds the bare statements, the measure of some questions.
        memory: adds us and the limit in memory, too, where no disk hides the processor time.
    """
    systems = [system for system in systems_at(site) if bare or system.role != "bare"]
    places: list[Place] = ["disk", "memory"] if memory else ["disk"]
    return [
        rate_contestant(system, site, works, place)
        for place in places
        for system in systems
        if place == "disk" or system.role in IN_MEMORY
    ]


def in_memory(name: str) -> str:
    """Returns the name of a contestant that runs in memory."""
    return f"{name}, in memory"


def rate_contestant(
    system: type[System], site: Site, works: Callable[[System], Work], place: Place = "disk", server: str = ""
) -> Contestant:
    """Returns one system as a contestant with a measured rate; `server`: the system whose server it uses."""

    @contextmanager
    def opened(folder: Path) -> Iterator[Ready]:
        with closing(system(folder, site.ports.get(server or system.name, 0))) as own:
            own.empty()
            yield Ready(measure=partial(cost, works(own)), settings=own.settings())

    name = system.name if place == "disk" else in_memory(system.name)
    return Contestant(name=name, role=system.role, open=opened, place=place)
