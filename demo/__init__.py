"""The tour of order: order on a queue, shown on a real queue manager and checked while it is shown.

    make order

A file is made in a temporary folder, and several processes work on it at once. Part 1 puts the eight messages of the
classic picture (figure 2 of "Logical and physical ordering") and reads them in physical and in logical order. Part 2
takes complete groups only. Part 3 runs the example of the strict read order disclosure with its two writers and four
readers, eager and laid back, getting and browsing, relaxed and strict, in PUT and in PREPARE order. Part 4 is a tour of
confirm ids, lock ids and undo. Part 5 wakes processes that wait, and kills some. Everything printed was read from the
queue. A difference from the documents ends the program with status 1, a process that fails with status 2.
"""

from __future__ import annotations

import sys

from inorder.errors import InorderError

from .lives import confirmed_life, waits_and_deaths
from .pictures import READER, WRITERS, complete_groups, physical_and_logical
from .processes import Cast, ProcessFailed
from .readers import READERS, readers_side_by_side
from .readers import WRITERS as UNIT_WRITERS
from .screen import Screen

PARTS = (physical_and_logical, complete_groups, readers_side_by_side, confirmed_life, waits_and_deaths)
EARLY = (READER, *WRITERS.values(), *READERS, *UNIT_WRITERS)


def main() -> int:
    """Runs the demonstration; returns 0 if all results are as documented."""
    screen = Screen()
    print("Checked as it runs against two documents: 'Logical and physical ordering' of")
    print("WebSphere MQ, and the disclosure IPCOM000015719D. docs/explanation/order.md explains.")
    try:
        with Cast(EARLY) as cast:
            print(f"Several processes work on one file, {cast.path}.", flush=True)
            for part in PARTS:
                part(screen, cast)
            size = cast.size
    except (ProcessFailed, InorderError) as error:
        print(f"\n{screen.alarm('The demonstration failed')}: {error}", file=sys.stderr)
        return 2
    print(f"\nShown with {size} processes on one file, which is removed: one order for all strict readers,")
    print("whole groups, units of work, ids that outlive their process, waits across processes,")
    print("and a unit of work that ends with its process.")
    right = f"All {screen.right} as documented."
    print(right if not screen.wrong else f"{screen.alarm(f'{screen.wrong} NOT as documented')}, {screen.right} are.")
    return 1 if screen.wrong else 0
