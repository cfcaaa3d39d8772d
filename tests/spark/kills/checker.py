"""What reached the sink, against what was put: it sees the sink's files and the store, and nothing of Spark.

A plan says which messages there are: lines of messages, in the order in which their heads were put; a message in no
group is a line of one. A body is there once, so it names its message. Each check returns complaints, in words.
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
SHOWN = 5  # of each kind of complaint

T = TypeVar("T")
Plan = Sequence[Sequence[bytes]]


class Row(NamedTuple):
    """A message at the sink."""

    delivery_number: int
    body: bytes
    sequence_number: int
    group_id: bytes | None


# --- what is there


def files_of(archive: Path) -> list[Path]:
    """The files that Spark's file sink has committed: what its log says, from the last compacted entry on."""
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
    """What an entry says: after the version, a file in each line."""
    version, *lines = path.read_text(encoding="utf-8").splitlines()
    assert version == "v1", version
    for line in lines:
        entry = json.loads(line)
        assert entry["action"] == "add", entry
        yield entry


def archived(*archives: Path) -> list[Row]:
    """What is in archives, by delivery number."""
    rows = []
    for archive in archives:
        for file in files_of(archive):
            columns = pq.ParquetFile(file).read(columns=list(Row._fields)).to_pydict()
            rows += [Row(*values) for values in zip(*(columns[name] for name in Row._fields), strict=True)]
    return sorted(rows, key=lambda row: row.delivery_number)


def on_queue(url: Path | str, queue: str) -> list[Row]:
    """What is on a queue, in the order of the places, numbered from 1."""
    with inorder.connect(url) as qm:
        return [
            Row(number, message.body, message.sequence_number, message.group_id)
            for number, message in enumerate(qm.browse(queue, read_order="relaxed"), 1)
        ]


# --- whether it is right


def wrong_at_sink(rows: Sequence[Row], plan: Plan, *, all_there: bool = True, heads_in_order: bool = True) -> list[str]:
    """Every message once, lines whole and in order, delivery numbers without gap.

    Args:
        rows: in the order of their delivery.
        all_there: False: there may be messages that have not come yet, whole lines of them.
        heads_in_order: lines come in the order of the plan.
    """
    return [
        *wrong_numbers([row.delivery_number for row in rows]),
        *wrong_counts([row.body for row in rows], plan, all_there=all_there),
        *wrong_lines(rows, plan, heads_in_order=heads_in_order),
    ]


def wrong_numbers(numbers: Sequence[int]) -> list[str]:
    """Delivery numbers are 1, 2, 3 ... to the end."""
    return [
        f"delivery number {number} stands where {due} is due"
        for due, number in first_few((due, number) for due, number in enumerate(numbers, 1) if due != number)
    ]


def wrong_counts(bodies: Iterable[bytes], plan: Plan, *, all_there: bool = True) -> list[str]:
    """Each message once; or, unless all are there, no part of a line is missing."""
    came = Counter(bodies)
    due = {body for line in plan for body in line}
    lost = (body for line in plan if all_there or any(one in came for one in line) for body in line if body not in came)
    return [
        *(f"{body!r} is lost" for body in first_few(lost)),
        *(f"{body!r} came {count} times" for body, count in first_few(one for one in came.items() if one[1] > 1)),
        *(f"{body!r} was never put" for body in first_few(came.keys() - due)),
    ]


def wrong_lines(rows: Sequence[Row], plan: Plan, *, heads_in_order: bool = True) -> list[str]:
    """The members of a line follow each other, in their order, and say so."""
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
    """Nothing is left on these queues, nobody holds anything, and the file is sound."""
    with inorder.connect(url) as qm:
        complaints = [f"{depth} messages are left on {queue}" for queue in queues if (depth := qm.depth(queue))]
        complaints += [f"a unit is left: {unit}" for unit in qm.inspect.units()]
        complaints += [f"{one.application} holds {claim}" for one in qm.bulk.claims() for claim in one.held]
        return complaints + qm.admin.check()


def first_few(items: Iterable[T]) -> list[T]:
    """So many that a failure can be read."""
    return list(islice(items, SHOWN))
