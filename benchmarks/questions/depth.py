"""Do puts and gets cost more when a million messages are on the queue?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from benchmarks.harness import Bar, Contestant, Figures, Question, Ready, Site, Work, rate
from benchmarks.systems import BLOCK, BODY, System
from benchmarks.systems.ours import OURS, Ours

SHALLOW = 100
DEEP = 1_000_000
GROUPS = 1000
MEMBERS = 10


def works(system: System) -> dict[str, Work]:
    """Returns the work of each figure. Each restores the depth: puts are balanced by untimed gets, and gets by puts."""

    def stock(count: int) -> None:
        system.stock(count * BLOCK)

    put = _Balanced(system)
    return {
        "put": Work(operation=put.one, after=put.level),
        "put_many(100)": Work(operation=put.many, size=BLOCK, after=put.level),
        "get": Work(operation=system.get, before=system.stock),
        "get_many(100), unit": Work(operation=lambda: system.get_many_in_unit(BLOCK), size=BLOCK, before=stock),
        "get_many(100)": Work(operation=lambda: system.get_many(BLOCK), size=BLOCK, before=stock),
        "get, put, commit": Work(operation=lambda: system.get_put(BODY)),
    }


class _Balanced:
    """Puts, with a count of the messages that must be removed again."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._surplus = 0

    def one(self) -> None:
        self._system.put(BODY)
        self._surplus += 1

    def many(self) -> None:
        self._system.put_many(BODIES)
        self._surplus += BLOCK

    def level(self) -> None:
        for start in range(0, self._surplus, BLOCK):
            self._system.get_many(min(BLOCK, self._surplus - start))
        self._surplus = 0


BODIES = [BODY] * BLOCK


@contextmanager
def opened(folder: Path, *, depth: int, system: type[System] = Ours, port: int = 0) -> Iterator[Ready]:
    """Opens a queue with this many messages."""
    with closing(system(folder, port)) as own:
        own.stock(depth)
        work = works(own)

        def measure(seconds: float) -> Figures:
            return {figure: rate(each, seconds / 2) for figure, each in work.items()}

        yield Ready(measure=measure, settings=own.settings())


def contestants(site: Site) -> list[Contestant]:
    """Returns us on a deep queue and on a shallow one."""
    return [
        Contestant(
            name=named(OURS, depth),
            role="ours",
            open=partial(opened, depth=site.scaled(depth) if depth == DEEP else depth),
        )
        for depth in (DEEP, SHALLOW)
    ]


def named(system: str, depth: int) -> str:
    """Returns the name of a contestant."""
    return f"{system}, {'deep' if depth == DEEP else 'shallow'}"


FIGURES = ("put", "put_many(100)", "get", "get_many(100), unit", "get_many(100)", "get, put, commit")
QUESTION = Question(
    name="depth",
    title=f"any of these at a depth of {DEEP:,} against {SHALLOW}",
    unit="messages/s",
    contestants=contestants,
    bars=[
        Bar(figure=figure, of=named(OURS, DEEP), against=named(OURS, SHALLOW), first=0.8, goal=0.95)
        for figure in FIGURES
    ],
)
