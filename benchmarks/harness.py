"""The harness: contestants answer a question in turn, round after round, on a shared and noisy machine.

    round 1    A  B  C
    round 2    B  C  A      each in turn, for some seconds
    round 3    C  A  B

A figure is the median of its rounds, given with the quartiles. Two contestants are compared within each round, in which
both met the same load of the machine; the ratio is the median of those ratios, never the ratio of two medians.

A contestant is opened once for all rounds. Opening returns the function that measures it, from seconds to named
figures. Most measure a rate; such a contestant only defines its unit of work (`Work`), and `cost` measures it.
"""

from __future__ import annotations

import gc
import math
import resource
import statistics
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from benchmarks.systems import System

Figures = Mapping[str, float]
Measure = Callable[[float], Figures]
Role = Literal["ours", "limit", "bare", "peer", "volatile"]  # volatile: compared only in bars
Place = Literal["disk", "memory"]
Verdict = Literal["goal", "bar", "missed", "not measured"]

RATE, USER, SYSTEM = "rate", "user us", "system us"
SLICES = 5  # about this many slices per cell, with fresh stock before each
WARM_UP_SECONDS = 0.05


class Cannot(Exception):
    """A contestant cannot do this work; the message says why. Shown in the report instead of a figure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The surroundings of a run: folders, servers and the size of deep stores.

    Args:
        folder: an empty folder on the measured disk; each contestant makes its own under it.
        memory: an empty folder in memory for contestants that run there, or None.
        systems: the systems that take part; servers only if they run.
        ports: loopback ports of the running servers, by the name of the system.
        scale: 1 for the full size of everything large; 0.01 for a quick run.
        full: also measures cases that take minutes and gigabytes.
    """

    folder: Path
    memory: Path | None = None
    systems: Sequence[type[System]] = ()
    ports: Mapping[str, int] = field(default_factory=dict)
    scale: float = 1
    full: bool = False

    def scaled(self, count: int) -> int:
        """A large number of messages at the scale of this run."""
        return max(1, int(count * self.scale))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """An open contestant: the function that measures it, and the version and fsync settings that it runs with."""

    measure: Measure
    settings: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    """A system that answers a question: `open` takes an empty folder; it, and the first measure, may raise Cannot.

    Contestants in memory are compared only with each other.
    """

    name: str
    role: Role
    open: Callable[[Path], AbstractContextManager[Ready]]
    place: Place = "disk"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """The required value of a figure, and our goal for it.

    With `against` it is the smallest ratio to the same figure of that contestant, or with `most` the largest. Without
    `against` it is the largest value of the figure itself.
    """

    figure: str
    of: str
    first: float
    goal: float
    against: str | None = None
    most: bool = False

    @property
    def words(self) -> str:
        """The side of the bar on which the value must be."""
        return "at most" if self.most or self.against is None else "at least"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question: its contestants at a site, and its bars; `rounds_max` is set if a round is long."""

    name: str
    title: str
    unit: str
    contestants: Callable[[Site], Sequence[Contestant]]
    bars: Sequence[Bar] = ()
    rounds_max: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Median and quartiles of several rounds: half of them lie between the quartiles."""

    median: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One contestant's answer: its figures in each round, or the reason why it cannot do the work."""

    name: str
    role: Role
    place: Place = "disk"
    settings: str = ""
    rounds: Sequence[Figures] = ()
    cannot: str | None = None

    def values(self, figure: str) -> list[float]:
        return [figures[figure] for figures in self.rounds if figure in figures]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The answers to one question."""

    question: Question
    entries: Sequence[Entry]

    def entry(self, name: str) -> Entry | None:
        return next((entry for entry in self.entries if entry.name == name), None)

    def first(self, role: Role, place: Place = "disk") -> Entry | None:
        """The first entry with this role at this place."""
        return next((entry for entry in self.entries if (entry.role, entry.place) == (role, place)), None)


def spread(values: Sequence[float]) -> Spread | None:
    """The median and quartiles of the values, or None without values."""
    if not values:
        return None
    several = values if len(values) > 1 else [*values, *values]
    lower, median, upper = statistics.quantiles(several, n=4, method="inclusive")
    return Spread(median=median, lower=lower, upper=upper)


def percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that at least this share (0 to 1) of the values does not exceed; the values are sorted."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def ratio(result: Result, figure: str, of: str, against: str) -> Spread | None:
    """The ratio of two contestants' figures, compared within each round."""
    above, below = result.entry(of), result.entry(against)
    if above is None or below is None:
        return None
    pairs = zip(above.values(figure), below.values(figure), strict=True) if above.rounds and below.rounds else ()
    return spread([one / other for one, other in pairs if other])


def measured(result: Result, bar: Bar) -> Spread | None:
    """The value to compare with a bar."""
    if bar.against is not None:
        return ratio(result, bar.figure, bar.of, bar.against)
    entry = result.entry(bar.of)
    return spread(entry.values(bar.figure)) if entry is not None else None


def verdict(bar: Bar, value: Spread | None) -> Verdict:
    """The verdict on the median."""
    if value is None:
        return "not measured"
    sign = -1 if bar.words == "at most" else 1
    if sign * value.median >= sign * bar.goal:
        return "goal"
    return "bar" if sign * value.median >= sign * bar.first else "missed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A unit of work whose rate is measured.

    Args:
        operation: the unit of work, timed.
        size: how many messages it moves.
        before: called with a number of operations, untimed, before as many of them.
        after: called untimed after them.
        end: called untimed at the end.
        slice: the number of operations at a time; None: as many as fill a slice of the time.
        most: the largest number of messages of such a slice, so that all queues have a similar depth; None: any.
    """

    operation: Callable[[], object]
    size: int = 1
    before: Callable[[int], object] = lambda count: None
    after: Callable[[], object] = lambda: None
    end: Callable[[], object] = lambda: None
    slice: int | None = None
    most: int | None = None


def cost(work: Work, seconds: float) -> Figures:
    """Measures messages per second of timed operations over at least `seconds`, and the cost of a message.

    The cost is processor time of this process, in microseconds: the whole cost of a library, the client's share for a
    server.
    """
    done, spent, count = 0, Spent(), work.slice or 1
    most = math.inf if work.most is None else work.most // work.size
    while spent.seconds < seconds:
        work.before(count)
        taken = timed(work.operation, count)
        work.after()
        done += count * work.size
        spent += taken
        if work.slice is None:
            wanted = int(count * seconds / SLICES / max(taken.seconds, 1e-9))
            count = max(1, int(min(wanted, count * 8, most)))
    work.end()
    return {RATE: done / spent.seconds, USER: spent.user / done * 1e6, SYSTEM: spent.system / done * 1e6}


def rate(work: Work, seconds: float) -> float:
    """Measures messages per second of timed operations."""
    return cost(work, seconds)[RATE]


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds by the clock, and of the processor for this process."""

    seconds: float = 0.0
    user: float = 0.0
    system: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.seconds + other.seconds, self.user + other.user, self.system + other.system)


def timed(operation: Callable[[], object], count: int) -> Spent:
    """Measures the time of `count` operations."""
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    for _ in range(count):
        operation()
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    return Spent(seconds, after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime)


def silent(words: str) -> None:
    """Shows no progress."""


def run(
    question: Question, site: Site, *, rounds: int, seconds: float, tell: Callable[[str], object] = silent
) -> Result:
    """Answers one question: opens all contestants and measures them in turn; each round begins with another one.

    `tell` is called with the progress in words.
    """
    with ExitStack() as stack:
        tell("opening")
        contestants = question.contestants(site)
        refusals: dict[str, str] = {}
        ready: dict[str, Ready] = {}
        for number, contestant in enumerate(contestants):
            with _refusal(contestant, refusals):
                own = _folder(site, contestant.place) / question.name / str(number)
                own.mkdir(parents=True)
                opened = stack.enter_context(contestant.open(own))
                opened.measure(WARM_UP_SECONDS)
                ready[contestant.name] = opened
        played = []
        most = min(rounds, question.rounds_max or rounds)
        for number in range(most):
            tell(f"round {number + 1} of {most}")
            played.append(_play(contestants, ready, refusals, number, seconds))
    entries = [_entry(contestant, ready.get(contestant.name), played, refusals) for contestant in contestants]
    return Result(question=question, entries=entries)


def _folder(site: Site, place: Place) -> Path:
    folder = site.memory if place == "memory" else site.folder
    if folder is None:
        raise Cannot("there is no folder in memory")
    return folder


def _play(
    contestants: Sequence[Contestant],
    ready: Mapping[str, Ready],
    refusals: dict[str, str],
    number: int,
    seconds: float,
) -> dict[str, Figures]:
    """Runs one round. A contestant that fails takes no part in later rounds."""
    there = [one for one in contestants if one.name in ready and one.name not in refusals]
    first = number % len(there) if there else 0
    figures = {}
    for one in there[first:] + there[:first]:
        gc.collect()  # no contestant pays for another one's garbage
        with _refusal(one, refusals):
            figures[one.name] = ready[one.name].measure(seconds)
    return figures


@contextmanager
def _refusal(contestant: Contestant, refusals: dict[str, str]) -> Iterator[None]:
    """Notes the failure of a contestant. A failure of a peer is shown in the report, and the run continues."""
    try:
        yield
    except Cannot as reason:
        refusals[contestant.name] = str(reason)
    except Exception as error:
        if contestant.role not in ("peer", "volatile"):
            raise
        traceback.print_exc()
        refusals[contestant.name] = f"it failed: {type(error).__name__}: {error}"


def _entry(
    contestant: Contestant, ready: Ready | None, played: Sequence[Mapping[str, Figures]], refusals: Mapping[str, str]
) -> Entry:
    settings = ready.settings if ready is not None else ""
    cannot = refusals.get(contestant.name)
    rounds = [figures[contestant.name] for figures in played] if cannot is None else []
    return Entry(
        name=contestant.name,
        role=contestant.role,
        place=contestant.place,
        settings=settings,
        cannot=cannot,
        rounds=rounds,
    )
