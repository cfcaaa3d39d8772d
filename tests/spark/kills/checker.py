"""Compares the messages at the sink with those put; it reads the sink's files and the store, and nothing of Spark.

A plan lists the messages in lines, in the order in which their heads were put; a line is a group, or one message in
no group. Each body occurs once, so it names its message. Each check returns complaints as texts.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote, urlparse

import pyarrow.parquet as pq

import inorder

METADATA = "_spark_metadata"
SHOWN = 5  # complaints of each kind

T = TypeVar("T")
Plan = Sequence[Sequence[bytes]]


class Row(NamedTuple):
    """A message at the sink."""

    delivery_number: int
    body: bytes
    sequence_number: int
    group_id: bytes | None


# --- messages at the sink


def files_of(archive: Path) -> list[Path]:
    """The files that Spark's file sink has committed, by its log from the last compacted entry on."""
    log = archive / METADATA
    if not log.is_dir():
        return []
    entries = {path for path in log.iterdir() if path.name.partition(".")[0].isdigit()}
    compact = max((number_of(path) for path in entries if path.suffix == ".compact"), default=-1)
    wanted = [
        path
        for path in sorted(entries, key=number_of)
        if (path.suffix == ".compact" and number_of(path) == compact) or number_of(path) > compact
    ]
    return [Path(unquote(urlparse(entry["path"]).path)) for path in wanted for entry in entries_of(path)]


def number_of(entry: Path) -> int:
    """The batch of an entry of the log."""
    return int(entry.name.partition(".")[0])


def entries_of(path: Path) -> Iterator[dict[str, Any]]:
    """The files in an entry, one a line after the version."""
    version, *lines = path.read_text(encoding="utf-8").splitlines()
    assert version == "v1", version
    for line in lines:
        entry = json.loads(line)
        assert entry["action"] == "add", entry
        yield entry


def archived(*archives: Path) -> list[Row]:
    """The messages in archives, by delivery number."""
    rows = []
    for archive in archives:
        for file in files_of(archive):
            columns = pq.ParquetFile(file).read(columns=list(Row._fields)).to_pydict()
            rows += [Row(*values) for values in zip(*(columns[name] for name in Row._fields), strict=True)]
    return sorted(rows, key=lambda row: row.delivery_number)


def on_queue(url: Path | str, queue: str) -> list[Row]:
    """The messages on a queue, in the order of their places, numbered from 1."""
    with inorder.connect(url) as qm:
        return [
            Row(number, message.body, message.sequence_number, message.group_id)
            for number, message in enumerate(qm.browse(queue, read_order="relaxed"), 1)
        ]


# --- checks


def wrong_at_sink(rows: Sequence[Row], plan: Plan, *, all_there: bool = True, heads_in_order: bool = True) -> list[str]:
    """Checks that every message is there once, lines are whole and in order, and delivery numbers have no gap.

    Args:
        rows: in the order of their delivery.
        all_there: False: whole lines may not have arrived yet.
        heads_in_order: the lines are in the order of the plan.
    """
    return [
        *wrong_numbers([row.delivery_number for row in rows]),
        *wrong_counts([row.body for row in rows], plan, all_there=all_there),
        *wrong_lines(rows, plan, heads_in_order=heads_in_order),
    ]


def wrong_numbers(numbers: Sequence[int]) -> list[str]:
    """Checks that the delivery numbers are 1, 2, 3 and so on."""
    return [
        f"delivery number {number} stands where {due} is due"
        for due, number in first_few((due, number) for due, number in enumerate(numbers, 1) if due != number)
    ]


def wrong_counts(bodies: Iterable[bytes], plan: Plan, *, all_there: bool = True) -> list[str]:
    """Checks that each message came once; unless all are there, only that no line is there in part."""
    came = Counter(bodies)
    due = {body for line in plan for body in line}
    lost = (body for line in plan if all_there or any(one in came for one in line) for body in line if body not in came)
    return [
        *(f"{body!r} is lost" for body in first_few(lost)),
        *(f"{body!r} came {count} times" for body, count in first_few(one for one in came.items() if one[1] > 1)),
        *(f"{body!r} was never put" for body in first_few(came.keys() - due)),
    ]


def wrong_lines(rows: Sequence[Row], plan: Plan, *, heads_in_order: bool = True) -> list[str]:
    """Checks that the members of a line are adjacent, in order, and have the right sequence numbers."""
    line_of = {body: (number, place) for number, line in enumerate(plan) for place, body in enumerate(line)}
    came = [(row, *line_of[row.body]) for row in rows if row.body in line_of]
    complaints, highest = [], -1
    for (_, line, place), (row, next_line, next_place) in pairwise(came):
        if line == next_line and next_place != place + 1:
            complaints.append(f"{row.body!r} comes out of order in its group")
        elif line != next_line and (place != len(plan[line]) - 1 or next_place != 0):
            complaints.append(f"{row.body!r} comes in the middle of another group, or its group in its middle")
        if heads_in_order and next_line < (highest := max(highest, line)):
            complaints.append(f"{row.body!r} comes after a later group")
    grouped = ((row, line, place) for row, line, place in came if len(plan[line]) > 1)
    complaints += [
        f"{row.body!r} has sequence number {row.sequence_number}, and is member {place + 1}"
        for row, _, place in grouped
        if row.sequence_number != place + 1
    ]
    return first_few(complaints)


def wrong_in_store(url: Path | str, *queues: str) -> list[str]:
    """Checks that nothing is left on these queues, no unit or claim holds anything, and the file is sound."""
    with inorder.connect(url) as qm:
        complaints = [f"{depth} messages are left on {queue}" for queue in queues if (depth := qm.depth(queue))]
        complaints += [f"a unit is left: {unit}" for unit in qm.inspect.units()]
        complaints += [f"{one.application} holds {claim}" for one in qm.bulk.claims() for claim in one.held]
        return complaints + qm.admin.check()


def first_few(items: Iterable[T]) -> list[T]:
    """The first complaints: a failure with all of them could not be read."""
    return list(islice(items, SHOWN))
