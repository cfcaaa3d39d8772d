"""Arrow IPC streams, as clients of the server send and read them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import httpx
import pyarrow as pa
from pyarrow import ipc

ARROW = {"Content-Type": "application/vnd.apache.arrow.stream"}


def stream_of(*batches: pa.RecordBatch, schema: pa.Schema | None = None, **options: Any) -> bytes:
    sink = io.BytesIO()
    with ipc.new_stream(sink, schema or batches[0].schema, options=ipc.IpcWriteOptions(**options)) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue()


def batch_of(bodies: Sequence[bytes], **columns: Any) -> pa.RecordBatch:
    return pa.record_batch({"body": pa.array(bodies, pa.binary()), **columns})


def keyed(key: str) -> dict[str, str]:
    """The headers of a put with this idempotency key."""
    return ARROW | {"Idempotency-Key": key}


def rows_in(answer: httpx.Response) -> list[dict[str, Any]]:
    """The rows of a stream, which must be complete."""
    assert answer.status_code == 200, answer.text
    assert answer.content.endswith(b"\xff\xff\xff\xff\0\0\0\0"), "the stream has no end"
    rows: list[dict[str, Any]] = ipc.open_stream(answer.content).read_all().to_pylist()
    return rows


def bodies_in(answer: httpx.Response) -> list[bytes]:
    return [row["body"] for row in rows_in(answer)]
