"""The streams as Spark calls them: what tests of their readers share."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

from pyspark.sql.streaming.datasource import ReadAllAvailable

import inorder

ALL = ReadAllAvailable()
Make = Callable[..., Any]


def put(url: str, *bodies: bytes, **fields: Any) -> None:
    with inorder.connect(url) as qm:
        qm.put_many("Q", bodies, **fields)


def put_group(url: str, *bodies: bytes) -> None:
    with inorder.connect(url) as qm, qm.group("Q") as group:
        for body in bodies:
            group.put(body)


def depth(url: str) -> int:
    with inorder.connect(url) as qm:
        return qm.depth("Q")


def taken(reader: Any, limit: Any = ALL) -> tuple[Any, Any]:
    """The offsets of a query's first batch."""
    start = reader.initialOffset()
    return start, reader.latestOffset(start, limit)


def as_logged(offset: Any) -> Any:
    """An offset as it comes back from Spark's log."""
    return json.loads(json.dumps(offset))


def read(reader: Any, start: Any, end: Any) -> list[list[bytes]]:
    """What the tasks read, each in a process of its own: with a copy of the reader."""
    parts = [pickle.loads(pickle.dumps(part)) for part in reader.partitions(as_logged(start), as_logged(end))]
    copy = pickle.loads(pickle.dumps(reader))
    return [[row["body"] for batch in copy.read(part) for row in batch.to_pylist()] for part in parts]
