"""Does a strict getter slow down when its own unit of work already holds a hundred thousand earlier messages?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from benchmarks.harness import Bar, Contestant, Figures, Question, Ready, Site, Work, rate
from benchmarks.systems import FILL_BLOCK
from benchmarks.systems.ours import QUEUE, Ours, settings_of

HELD = 100_000
SLICE = 1000  # operations between two untimed commits of the small unit
WITH, WITHOUT = "holds many", "holds few"


@contextmanager
def opened(folder: Path, *, held: int) -> Iterator[Ready]:
    """Opens a strict getter whose unit of work holds this many messages; 0: it commits after each slice."""
    with closing(Ours(folder)) as own, own.qm.connect() as reader:

        def get(count: int) -> None:
            reader.get_many(QUEUE, count, syncpoint=True, read_order="strict")

        for _ in range(0, held, FILL_BLOCK):
            own.stock(FILL_BLOCK)
            get(FILL_BLOCK)
        work = Work(
            operation=lambda: reader.get(QUEUE, syncpoint=True, read_order="strict"),
            before=own.stock,
            after=reader.commit if not held else lambda: None,
            slice=SLICE,
        )

        def measure(seconds: float) -> Figures:
            return {"rate": rate(work, seconds)}

        yield Ready(measure=measure, settings=settings_of(own.qm))
        reader.back_out()


def contestants(site: Site) -> list[Contestant]:
    """Returns two contestants: the same gets in a large unit of work, and in a small one."""
    held = {WITH: site.scaled(HELD), WITHOUT: 0}
    return [Contestant(name=name, role="ours", open=partial(opened, held=count)) for name, count in held.items()]


QUESTION = Question(
    name="own_unit",
    title=f"a strict getter whose own unit already holds {HELD:,} in front",
    unit="messages/s",
    contestants=contestants,
    bars=[Bar(figure="rate", of=WITH, against=WITHOUT, first=0.8, goal=0.95)],
)
