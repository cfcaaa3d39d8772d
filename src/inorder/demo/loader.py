"""A process of the main job: it puts its share of the files on the queue, each as a group in a unit of work of its own.

In the same unit it notes the file on a second queue, so whoever goes on behind it knows what is done. What it has done
it tells on its output, a line for each file. It may be told to back out one file and do it again, or to die in the
middle of one.
"""

from __future__ import annotations

import json
import os
import signal
import sys

from ..formats import put_file
from ..manager import QueueManager, connect


class Planted(Exception):
    """A failure that was ordered."""


def load(qm: QueueManager, order: dict[str, object]) -> None:
    """Does what an order says.

    Args:
        order: queue, noted (the second queue), root, rule, paths; dies_in and backs_out: at which file, from 0, None:
            at none.
    """
    queue, noted, root, rule = (str(order[name]) for name in ("queue", "noted", "root", "rule"))
    paths = order["paths"]
    assert isinstance(paths, list)
    done = {message.body.decode(errors="surrogateescape") for message in qm.browse(noted)}
    for number, path in enumerate(paths):
        if path in done:
            continue
        if number == order["backs_out"]:
            try:
                put_one(qm, queue, noted, root, path, rule, fails=True)
            except Planted:
                tell("backed out", path, 0)
        if number == order["dies_in"]:
            with qm.unit_of_work():
                put_file(qm, queue, root, path, rule)
                tell("dies", path, 0)
                os.kill(os.getpid(), signal.SIGKILL)
        tell("put", path, put_one(qm, queue, noted, root, path, rule))


def put_one(
    qm: QueueManager, queue: str, noted: str, root: str, path: str, rule: str, *, fails: bool = False
) -> int:
    """One file in one unit of work; how many messages it became."""
    with qm.unit_of_work():
        manifest = put_file(qm, queue, root, path, rule).manifest
        qm.put(noted, path.encode(errors="surrogateescape"))
        if fails:
            raise Planted
    return manifest.messages + 1


def tell(what: str, path: str, messages: int) -> None:
    """A line for the process that conducts."""
    print(json.dumps([what, path, messages]), flush=True)


if __name__ == "__main__":
    with connect(sys.argv[1], program="loader") as manager:
        load(manager, json.loads(sys.stdin.readline()))
