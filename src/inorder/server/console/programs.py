"""Who is connected: programs, their processes and workers, and which queues they have open for what."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ...client.programs import WORKER
from ...rules.puts import Program
from ...stores.seam.views import ConnectionView, Opening, Unit, Wait
from ..watching import PROGRAM


class Running(NamedTuple):
    """A program in a process.

    Args:
        process, host, since: see `ConnectionView`.
        is_worker: `inorder work` has started it.
        is_here: this process of this server.
        connections: how many it has.
        opened: each queue that it has open, for what, and with how many handles, by name.
        units: its units of work that are open, the oldest first.
        waits: how many of its calls wait.
    """

    program: Program
    process: int | None
    host: str
    since: float | None
    is_worker: bool
    is_here: bool
    connections: int
    opened: Sequence[tuple[Opening, int]]
    units: Sequence[Unit]
    waits: int


def running(connections: Sequence[ConnectionView], units: Sequence[Unit], waits: Sequence[Wait]) -> list[Running]:
    """The programs: workers first, then by name; what is not known to be in one process stands by itself.

    In a store on a server each connection of a process has its own time, and the host says whose the number is.
    """
    together: dict[tuple[object, ...], list[ConnectionView]] = {}
    for one in connections:
        whose: object = one.connection
        if one.process is not None:
            whose = (one.host, one.process, None if one.host else one.since)
        together.setdefault((one.program, whose), []).append(one)
    found = [_running(each, units, waits) for each in together.values()]
    return sorted(found, key=lambda one: (not one.is_worker, one.program.name, one.since or 0.0))


def _running(connections: Sequence[ConnectionView], units: Sequence[Unit], waits: Sequence[Wait]) -> Running:
    one = connections[0]
    numbers = {each.connection for each in connections}
    opened = Counter(opening for each in connections for opening in each.opened)
    return Running(
        program=one.program,
        process=one.process,
        host=one.host,
        since=min((each.since for each in connections if each.since is not None), default=None),
        is_worker=one.program.name.startswith(f"{WORKER} "),
        is_here=one.process == os.getpid() and one.program.name == PROGRAM,
        connections=len(connections),
        opened=sorted(opened.items(), key=lambda each: (each[0].name, each[0].uses)),
        units=[unit for unit in units if unit.connection in numbers],
        waits=sum(wait.connection in numbers for wait in waits),
    )


def who_has_open(queue: str, programs: Sequence[Running]) -> list[tuple[Running, Opening, int]]:
    """Who has a queue open, under whatever name, and with how many handles."""
    return [(one, opening, count) for one in programs for opening, count in one.opened if opening.queue == queue]
