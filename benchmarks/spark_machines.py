"""A drain on more machines than one: a simulation of how rates add up, and of the first bottleneck.

    python -m benchmarks.spark_machines [--picture docs/pictures/machines.svg]

Nothing is measured here. The costs of a message are those that docs/explanation/scale.md gives for the job `drain` on
one machine; each piece of work takes that long, give or take some, from a seeded generator. A machine has two cores and
at most one store, which has one writer. The limit of a micro-batch grows with the number of stores. Three layouts:

* `one store`: one query on one queue. The next claim is taken while tasks read, as `prefetch` does.
* `one query`: a store on each machine, all read by one query. It asks eight stores at a time, and claims nothing ahead.
* `a query each`: a store on each machine, each with its own query, whose tasks run there.

Left out: the network, the driver, Spark's fixed cost of a micro-batch, and disks that are slower than the processor.
"""

from __future__ import annotations

import argparse
import heapq
import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from inorder.spark.opening import THREADS_MAX

CLAIM_US, READ_US, WRITE_US = 11.0, 9.5, 17.0  # for each message: claim and confirm; reading; Spark's JVM with Parquet
CORES = 2
MACHINES = (1, 2, 4, 8, 16, 32)
MESSAGES = 100_000  # of each store in a micro-batch
BATCHES = 100
TASKS = 4  # for each core
SPREAD = 0.1  # part of the time that a piece of work takes
SEED = 44


class Found(NamedTuple):
    """The result for one layout: messages a second, and the resource that limits it."""

    rate: float
    waits_for: str


class Work:
    """Draws the durations of pieces of work."""

    def __init__(self) -> None:
        self._random = random.Random(SEED)

    def seconds(self, messages: float, cost_us: float) -> float:
        return messages * cost_us / 1e6 * self._random.lognormvariate(0, SPREAD)

    def claims(self, stores: int) -> list[float]:
        return [self.seconds(MESSAGES, CLAIM_US) for _ in range(stores)]

    def tasks(self, stores: int, cores: int) -> list[float]:
        count = cores * TASKS
        return [self.seconds(MESSAGES * stores / count, READ_US + WRITE_US) for _ in range(count)]


def makespan(durations: Iterable[float], lanes: int) -> float:
    """Returns the time after which all pieces are done, if each lane takes the next one as soon as it is free."""
    free = [0.0] * lanes
    for duration in durations:
        heapq.heapreplace(free, free[0] + duration)
    return max(free)


def one_store(machines: int, work: Work) -> Found:
    """Simulates machines that all read one store."""
    cores = machines * CORES
    total = writer = 0.0
    for _ in range(BATCHES):
        (claim,) = work.claims(1)
        total += makespan([claim, *work.tasks(1, cores)], cores)
        writer += claim
    return Found(BATCHES * MESSAGES / total, "the store's writer" if writer > 0.9 * total else "cores")


def one_query(machines: int, work: Work) -> Found:
    """Simulates one query that reads a store on each machine."""
    claiming = reading = 0.0
    for _ in range(BATCHES):
        claiming += makespan(work.claims(machines), min(machines, THREADS_MAX))
        reading += makespan(work.tasks(machines, machines * CORES), machines * CORES)
    waits_for = f"claims, {THREADS_MAX} stores at a time" if claiming > reading else "cores"
    return Found(BATCHES * MESSAGES * machines / (claiming + reading), waits_for)


def a_query_each(machines: int, work: Work) -> Found:
    """Simulates machines that each read their own store."""
    found = [one_store(1, work) for _ in range(machines)]
    return Found(sum(one.rate for one in found), found[0].waits_for)


LAYOUTS: Final[Mapping[str, Callable[[int, Work], Found]]] = {
    "one store": one_store,
    "one query": one_query,
    "a query each": a_query_each,
}


def simulate() -> dict[str, list[Found]]:
    """Returns the results of all layouts, for each number of machines."""
    return {name: [layout(machines, Work()) for machines in MACHINES] for name, layout in LAYOUTS.items()}


def table(found: Mapping[str, Sequence[Found]]) -> str:
    """Returns the table of the page, as ratios to one store on one machine."""
    unit = found["one store"][0].rate
    lines = ["| machines | " + " | ".join(f"{name} | waits for" for name in found) + " |"]
    lines.append("|---" * (1 + 2 * len(found)) + "|")
    for index, machines in enumerate(MACHINES):
        cells = [f"{each[index].rate / unit:.1f} | {each[index].waits_for}" for each in found.values()]
        lines.append(f"| {machines} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


# --- the picture

LEFT, RIGHT, TOP, BOTTOM = 56, 350, 44, 262
KINDS = {"one store": "three-line", "one query": "two-line", "a query each": "one-line"}
HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 480 326" width="480" height="326" role="img">
<title>Simulated rates of a drain on 1 to 32 machines, as multiples of one machine, for three layouts</title>
<style>
text { font: 14px "Helvetica Neue", Helvetica, Arial, sans-serif; fill: #1c2430 }
.small { font-size: 13px } .mid { text-anchor: middle } .end { text-anchor: end } .faint { fill: #566070 }
.ground { fill: #fcfcfd; stroke: #d5d9e0 } .grid { stroke: #d5d9e0 } polyline { fill: none; stroke-width: 2.5 }
.one-line { stroke: #3f8f67 } .two-line { stroke: #b5711a } .three-line { stroke: #3f74b8 }
@media (prefers-color-scheme: dark) {
text { fill: #e6e9ee } .faint { fill: #a9b2bf } .ground { fill: #1a1e25; stroke: #363d48 } .grid { stroke: #363d48 }
.one-line { stroke: #62b78d } .two-line { stroke: #e0a24c } .three-line { stroke: #7fabe3 }
}
</style>
<rect class="ground" x="0.5" y="0.5" width="479" height="325" rx="8"/>
<text x="14" y="26">Rate of a drain, simulated, as a multiple of one machine</text>"""


def place(index: float, level: float) -> tuple[float, float]:
    """Returns the coordinates of a point, given as doublings of the machines and of the rate."""
    last = len(MACHINES) - 1
    return LEFT + (RIGHT - LEFT) * index / last, BOTTOM - (BOTTOM - TOP) * level / last


def drawn(found: Mapping[str, Sequence[Found]]) -> str:
    """Returns the picture, with logarithmic axes."""
    unit = found["one store"][0].rate
    lines = [HEAD]
    for index, machines in enumerate(MACHINES):
        x, y = place(index, index)
        lines.append(f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{RIGHT}" y2="{y:.1f}"/>')
        lines.append(f'<text x="{LEFT - 10}" y="{y + 4:.1f}" class="end small faint">{machines}</text>')
        lines.append(f'<text x="{x:.1f}" y="{BOTTOM + 34}" class="mid small faint">{machines}</text>')
    lines.append(f'<text x="{(LEFT + RIGHT) / 2:.1f}" y="{BOTTOM + 52}" class="mid small faint">machines</text>')
    for name, each in found.items():
        points = [place(index, math.log2(one.rate / unit)) for index, one in enumerate(each)]
        shown = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        lines.append(f'<polyline class="{KINDS[name]}" points="{shown}"/>')
        lines.append(f'<text x="{RIGHT + 8}" y="{points[-1][1] + 4:.1f}">{name}</text>')
    return "\n".join([*lines, "</svg>", ""])


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--picture", type=Path, metavar="FILE.svg")
    given = parser.parse_args()
    found = simulate()
    print(table(found))
    if given.picture:
        given.picture.write_text(drawn(found), encoding="utf-8")


if __name__ == "__main__":
    main()
