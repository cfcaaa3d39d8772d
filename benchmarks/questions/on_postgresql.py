"""How fast is a store in PostgreSQL, compared with the smallest queue there, and with pgmq's statements?

All are on one server. The smallest queue is one table, an INSERT for a put and a DELETE of a row that SKIP LOCKED finds
for a get; it keeps no order among simultaneous puts or gets.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from benchmarks import at_once
from benchmarks.bars import POSTGRESQL
from benchmarks.harness import RATE, Bar, Contestant, Question, Site, Work
from benchmarks.questions import depth, get_many_outside, get_one, put_many, put_one
from benchmarks.systems import System
from benchmarks.systems.all import rate_contestant, systems_named
from benchmarks.systems.ours import OURS_ON_POSTGRESQL as OURS

SYSTEMS = ("postgresql", "inorder-on-postgresql", "inorder-on-many", "inorder-unordered", "pgmq")
PROCESSES = (1, 4, 16)
SINGLE, UNORDERED, BULK = 0.5, 0.6, 0.6
AT_ONCE, AT_ONCE_ON_MANY = 0.25, 0.6  # on one ordered queue; on a queue for each process
DEEP = 0.9
MANY, ANY = f"{OURS}, a queue each", f"{OURS}, unordered"


def systems(site: Site) -> list[type[System]]:
    """Returns us, the smallest queue and pgmq's statements; none if no server runs."""
    return systems_named(SYSTEMS) if POSTGRESQL in site.ports else []


def alone(
    name: str, title: str, work: Callable[[System], Work], least: float, unordered: float | None = None
) -> Question:
    """Returns a question for one client; `unordered`: the required ratio of an unordered queue, if it takes part."""
    left_out = {MANY} if unordered else {MANY, ANY}

    def contestants(site: Site) -> list[Contestant]:
        return [
            rate_contestant(system, site, work, server=POSTGRESQL)
            for system in systems(site)
            if system.name not in left_out
        ]

    required = [(OURS, least), *([(ANY, unordered)] if unordered else [])]

    return Question(
        name=f"{name}_on_postgresql",
        title=f"{title}, on PostgreSQL",
        unit="messages/s",
        contestants=contestants,
        bars=[Bar(figure=RATE, of=one, against=POSTGRESQL, first=bar, goal=bar) for one, bar in required],
    )


def several(processes: int) -> Question:
    """Returns a question for processes that put at once: on one queue, ordered or not, and on one queue each."""

    def contestants(site: Site) -> list[Contestant]:
        return [
            Contestant(
                name=system.name,
                role="peer",
                open=partial(at_once.opened, system=system, port=site.ports[POSTGRESQL], processes=processes),
            )
            for system in systems(site)
        ]

    least, on_many = (AT_ONCE, AT_ONCE_ON_MANY) if processes == PROCESSES[-1] else (SINGLE, SINGLE)
    bars = [
        Bar(figure="rate", of=OURS, against=POSTGRESQL, first=least, goal=least),
        Bar(figure="rate", of=MANY, against=POSTGRESQL, first=on_many, goal=on_many),
    ]
    return Question(
        name=f"{processes}_on_postgresql",
        title=f"put, one by one, client processes at once: {processes}, on PostgreSQL",
        unit="messages/s",
        contestants=contestants,
        bars=bars if processes in PROCESSES[-1:] else [],
    )


def at_depth() -> Question:
    """Returns a question that compares a long queue with a short one."""

    def contestants(site: Site) -> list[Contestant]:
        return [
            Contestant(
                name=depth.named(OURS, count),
                role="peer",
                open=partial(
                    depth.opened,
                    depth=site.scaled(count) if count == depth.DEEP else count,
                    system=system,
                    port=site.ports[POSTGRESQL],
                ),
            )
            for count in (depth.DEEP, depth.SHALLOW)
            for system in systems(site)
            if system.name == OURS
        ]

    return Question(
        name="depth_on_postgresql",
        title=f"any of these at a depth of {depth.DEEP:,} against {depth.SHALLOW}, on PostgreSQL",
        unit="messages/s",
        contestants=contestants,
        bars=[
            Bar(figure=figure, of=depth.named(OURS, depth.DEEP), against=depth.named(OURS, depth.SHALLOW),
                first=DEEP, goal=DEEP)
            for figure in depth.FIGURES
        ],
    )  # fmt: skip


QUESTIONS = (
    alone("put_one", "put, one by one", put_one.work, SINGLE, UNORDERED),
    alone("get_one", "get, one by one", get_one.work, SINGLE, UNORDERED),
    alone("put_many", put_many.QUESTION.title, put_many.work, BULK),
    alone("get_many", get_many_outside.QUESTION.title, get_many_outside.work, BULK),
    *(several(processes) for processes in PROCESSES),
    at_depth(),
)
