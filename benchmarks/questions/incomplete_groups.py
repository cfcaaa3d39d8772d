"""Does a get of a group cost more when a hundred thousand incomplete groups are before it?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from benchmarks.harness import Bar, Contestant, Figures, Question, Ready, Site, rate
from benchmarks.questions.get_group import work
from benchmarks.systems.ours import Ours, group_ids, interleaved, put_all, settings_of

INCOMPLETE = 100_000
FIRST_ID = 2**64  # beyond the ids of the complete groups
WITH, WITHOUT = "incomplete groups in front", "nothing in front"


@contextmanager
def opened(folder: Path, *, incomplete: int) -> Iterator[Ready]:
    """Opens a queue that begins with the first two messages of this many groups."""
    with closing(Ours(folder)) as own:
        put_all(own.qm, interleaved(group_ids(incomplete, FIRST_ID), (1, 2), None))
        getting = work(own)

        def measure(seconds: float) -> Figures:
            return {"rate": rate(getting, seconds)}

        yield Ready(measure=measure, settings=settings_of(own.qm))


def contestants(site: Site) -> list[Contestant]:
    """Returns two contestants: the same complete groups, with and without incomplete ones before them."""
    counts = {WITH: site.scaled(INCOMPLETE), WITHOUT: 0}
    return [
        Contestant(name=name, role="ours", open=partial(opened, incomplete=count)) for name, count in counts.items()
    ]


QUESTION = Question(
    name="incomplete_groups",
    title=f"get_group with {INCOMPLETE:,} incomplete groups in front",
    unit="messages/s",
    contestants=contestants,
    bars=[Bar(figure="rate", of=WITH, against=WITHOUT, first=0.8, goal=0.95)],
)
