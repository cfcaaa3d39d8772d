"""Messages written as Parquet in pieces: the fields keep their values, and row groups are bounded."""

from __future__ import annotations

import io
import math

import pytest

from inorder import Message

pytest.importorskip("pyarrow")

import pyarrow as pa
import pyarrow.parquet as pq

from inorder.arrow import parquet

MADE = Message(b"\x00\xff", expiry=3.5, priority=7, properties={"a": "x", "b": 1, "c": b"y", "d": None})


def written(messages: list[Message], size: int) -> bytes:
    file = parquet.ParquetFile("Q")
    pieces = [file.rows(messages[at : at + size]) for at in range(0, len(messages), size)]
    return b"".join([*pieces, file.end()])


@pytest.mark.parametrize("size", [1, 2, 100])
def test_messages_written_in_pieces_make_one_file(size: int) -> None:
    messages = [MADE.replace(correlation_id=b"%d" % n) for n in range(5)]
    table = pq.read_table(io.BytesIO(written(messages, size)))
    assert table.column("correlation_id").to_pylist() == [one.correlation_id for one in messages]
    assert table.schema.equals(parquet.SCHEMA)


def test_values_keep_their_types_and_missing_values_are_null() -> None:
    plain = Message(b"", expiry=math.inf)
    first, second = pq.read_table(io.BytesIO(written([MADE, plain], 2))).to_pylist()
    assert (first["body"], first["expiry"], first["priority"]) == (b"\x00\xff", 3.5, 7)
    none = dict.fromkeys(("string", "long", "double", "boolean", "binary"))
    assert dict(first["properties"]) == {
        "a": none | {"string": "x"}, "b": none | {"long": 1}, "c": none | {"binary": b"y"}, "d": None,
    }  # fmt: skip
    for name in ("expiry", "correlation_id", "group_id", "accounting_token", "properties", "number"):
        assert second[name] is None, name


def test_row_groups_are_bounded_by_rows_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "GROUP_ROWS", 3)
    monkeypatch.setattr(parquet, "GROUP_BYTES", 100)
    messages = [Message(b"x" * size) for size in (1, 1, 1, 1, 200, 1, 99, 1)]
    made = pq.ParquetFile(io.BytesIO(written(messages, 8)))
    groups = [made.metadata.row_group(n).num_rows for n in range(made.num_row_groups)]
    assert groups == [3, 2, 2, 1]


def test_the_columns_are_those_of_an_archive() -> None:
    schema = pytest.importorskip("inorder.spark.schema")
    archive: pa.Schema = schema.arrow_schema()
    for field in parquet.SCHEMA:
        assert archive.field(field.name).type == field.type, field.name
