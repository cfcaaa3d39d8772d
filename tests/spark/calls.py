"""Calls that tests of sources and sinks share: of streams as Spark makes them, of queues, and of schemas."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, StructType
from tests.helpers.support import bodies

import inorder
from inorder.model.properties import PropertyValue
from inorder.spark.versions import ReadAllAvailable

ALL = ReadAllAvailable()
SECONDS_MAX = 240
Make = Callable[..., Any]


def with_queues(path: str | Path, *queues: str, **attributes: Any) -> str:
    """Makes queues in a store, which may exist, and returns its path."""
    with inorder.connect(path) as qm:
        for name in queues:
            qm.create_queue(name, exist_ok=True, **attributes)
    return str(path)


def on(url: str, queue: str = "Q") -> list[bytes]:
    """The bodies on a queue; fails if anything is left staged."""
    with inorder.connect(url) as qm:
        assert not qm.inspect.units()
        return bodies(qm, queue)


def schema(**columns: DataType | str) -> StructType:
    made = StructType()
    for name, kind in columns.items():
        made = made.add(name, kind)
    return made


def run_to_end(rows: DataFrame, sink: str, folder: Path, **options: str) -> None:
    """Runs a streaming query once, to its end."""
    writer = rows.writeStream.format(sink).options(checkpointLocation=str(folder / "checkpoint"), **options)
    assert writer.trigger(availableNow=True).start().awaitTermination(SECONDS_MAX)


def checkpoint_at(folder: Path, offset: Any, *, committed: bool = True) -> str:
    """Writes a checkpoint whose logs have batch 0."""
    for name, text in (("offsets", f"v1\n{{}}\n-\n{json.dumps(offset)}"), ("commits", "v1\n{}")):
        (folder / name).mkdir(parents=True)
        if name == "offsets" or committed:
            (folder / name / "0").write_text(text)
    return str(folder)


def put(url: str, *bodies: bytes, **fields: Any) -> None:
    with inorder.connect(url) as qm:
        qm.put_many("Q", bodies, **fields)


def put_group(url: str, *bodies: bytes) -> None:
    with inorder.connect(url) as qm, qm.group("Q") as group:
        for body in bodies:
            group.put(body)


def put_properties(url: str) -> list[str | None]:
    """Puts three messages, and makes a queue COPY; returns the result of `properties_on`."""
    given: dict[str, PropertyValue] = {"colour": "red\n", "key": b"\0\xff", "note": None, "order.count": 2**53 + 1}
    with inorder.connect(url) as qm:
        qm.create_queue("COPY")
        qm.put("Q", b"1", properties=given | {"paid": True, "weight": -0.0})
        qm.put("Q", b"2")
        qm.put("Q", b"3", properties={"colour": "blue", "order.count": 3})
    return properties_on(url, "Q")


def properties_on(url: str, queue: str) -> list[str | None]:
    with inorder.connect(url) as qm:
        return [message.properties.text for message in qm.browse(queue)]


def depth(url: str) -> int:
    with inorder.connect(url) as qm:
        return qm.depth("Q")


def held(url: str) -> list[int]:
    """The numbers of the claims that hold messages."""
    with inorder.connect(url) as qm:
        return [claim.number for one in qm.bulk.claims() for claim in one.held]


def taken(reader: Any, limit: Any = ALL) -> tuple[Any, Any]:
    """The offsets of a query's first batch."""
    start = reader.initialOffset()
    return start, reader.latestOffset(start, limit)


def as_logged(offset: Any) -> Any:
    """An offset as read from Spark's log."""
    return json.loads(json.dumps(offset))


def read(reader: Any, start: Any, end: Any) -> list[list[bytes]]:
    """The bodies that each task reads; like a separate process, it has a copy of the reader."""
    parts = [pickle.loads(pickle.dumps(part)) for part in reader.partitions(as_logged(start), as_logged(end))]
    copy = pickle.loads(pickle.dumps(reader))
    return [[row["body"] for batch in copy.read(part) for row in batch.to_pylist()] for part in parts]
