"""Archives for tests: plain messages, made explicitly or at random, as rows with the columns of an archive."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from inorder.model.message import IN_GROUP, LAST_IN_GROUP, LAST_SEGMENT, SEGMENT, Message, Place, UniqueId
from inorder.spark.schema import arrow_schema

START = datetime(2024, 5, 1, 8, 0, tzinfo=timezone.utc)
Row = dict[str, Any]


def row(number: int, **values: Any) -> Row:
    """A message in no group, with `number` as its place, delivery and put; `values` replace its columns."""
    body = values.pop("body", f"message {number}".encode())
    nothing = dict.fromkeys("rank ordinal report feedback priority offset flags backout_count".split(), 0)
    made: Row = {
        **dict.fromkeys(arrow_schema().names),
        **nothing,
        "queue": "Q",
        "number": number,
        "delivery_number": number,
        "message_type": 8,
        "encoding": 546,
        "coded_character_set_id": 1208,
        "format": "MQSTR",
        "persistent": True,
        "message_id": number.to_bytes(24, "big"),
        "put_at": START + timedelta(milliseconds=number),
        "sequence_number": 1,
        "original_length": -1,
        "body": body,
        "length": len(body),
        "uid_origin": "QM",
        "uid_number": number,
    }
    return {**made, **values}


def group(name: str, size: int, *, segments: Sequence[int] = ()) -> list[Row]:
    """Members without a place: `size` messages, those of the given sequence numbers in three segments each."""
    members: list[Row] = []
    for sequence_number in range(1, size + 1):
        flags = IN_GROUP | (LAST_IN_GROUP if sequence_number == size else 0)
        members += _pieces(name, sequence_number, flags, 3 if sequence_number in segments else 1)
    return members


def segmented(name: str, pieces: int) -> list[Row]:
    """One message in no group, in segments."""
    return _pieces(name, 1, 0, pieces)


def _pieces(name: str, sequence_number: int, flags: int, count: int) -> list[Row]:
    identity: Row = {"group_id": name.encode().ljust(24, b"\0"), "sequence_number": sequence_number}
    if count == 1:
        return [{**identity, "flags": flags}]
    body = bytes(range(65, 65 + 16))
    return [
        {
            **identity,
            "flags": flags | SEGMENT | (LAST_SEGMENT if n == count - 1 else 0),
            "offset": 16 * n,
            "body": body,
            "original_length": len(body),
        }
        for n in range(count)
    ]


def placed(members: Iterable[Row], *, first: int = 1) -> list[Row]:
    """Rows in this order, numbered from `first`."""
    return [row(number, **member) for number, member in enumerate(members, first)]


def interleaved(seed: int, *, groups: int = 12, alone: int = 15) -> list[Row]:
    """A sound archive: whole groups, some with segments, mixed at random with messages in no group."""
    chance = random.Random(seed)
    lines: list[list[Row]] = [[{}] for _ in range(alone)]
    for n in range(groups):
        size = chance.randint(1, 6)
        lines.append(group(f"G{n}", size, segments=[s for s in range(1, size + 1) if chance.random() < 0.3]))
    lines += [segmented(f"S{n}", chance.randint(2, 4)) for n in range(3)]
    order = [n for n, line in enumerate(lines) for _ in line]
    chance.shuffle(order)
    waiting = [iter(line) for line in lines]
    return placed(next(waiting[n]) for n in order)


def in_archive(spark: SparkSession, rows: Sequence[Row], *, slices: int = 3) -> DataFrame:
    """The rows as a DataFrame, in no order."""
    mixed = list(rows)
    random.Random(len(mixed)).shuffle(mixed)
    return spark.createDataFrame(pa.Table.from_pylist(mixed, schema=arrow_schema())).repartition(slices)


def as_message(values: Row) -> Message:
    """A row as a message for the rules."""
    return Message(
        values["body"],
        **{
            name: values[name]
            for name in ("group_id", "sequence_number", "offset", "flags", "encoding", "coded_character_set_id")
            if values[name] is not None
        },
    ).with_values(
        place=Place(values["rank"], values["number"], values["ordinal"]),
        uid=UniqueId(values["uid_origin"], values["uid_number"]),
        length=values["length"],
        original_length=values["original_length"],
    )
