"""Source and sink on a store elsewhere, call by call: the authorities they need, and their credentials."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("msgspec", reason="needs the extra inorder[remote]")
pytest.importorskip("uvicorn", reason="needs the extra inorder[server]")

from tests.helpers.support import bodies, drained
from tests.spark.calls import put, read, schema, taken
from tests.spark.serving import BROWSES, READS, WRITES, ServedFile

import inorder
from inorder.errors import LogInRefused, NotAuthorized, StoreError, UnknownQueue
from inorder.spark import opening, release, transaction_time
from inorder.spark.options import sink_options
from inorder.spark.sink import BatchWriter
from inorder.spark.source import InorderSource


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedFile]:
    """A server of a store with the queues Q and BAD."""
    with ServedFile(tmp_path_factory.mktemp("server"), "Q", "BAD") as one:
        yield one


@pytest.fixture
def served(server: ServedFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ServedFile:
    """The same server, with the user's credentials in the file that this process reads."""
    server.log_in(tmp_path / "credentials", monkeypatch)
    return server


Work = Callable[[ServedFile], None]


def source(served: ServedFile, **options: str) -> InorderSource:
    return InorderSource({"url": served.url, "queue": "Q"} | options)


@contextmanager
def stopped(reader: Any) -> Iterator[Any]:
    """Stops a stream's reader at the end of the block."""
    try:
        yield reader
    finally:
        reader.stop()


def browses(served: ServedFile) -> None:
    """Browses as a batch and as a stream; the batch has two tasks."""
    batch = source(served, partitions="2")
    reader = batch.reader(batch.schema())
    pages: Any = (one for part in reader.partitions() for one in reader.read(part))
    found = [row["body"] for page in pages for row in page.to_pylist()]
    with stopped(source(served).streamReader(batch.schema())) as stream:
        start, end = taken(stream)
        assert [body for part in read(stream, start, end) for body in part] == found == [b"1", b"2", b"3"]


def drains(served: ServedFile) -> None:
    """Drains each message once, then returns the open claim to the queue."""
    stream = source(served, mode="drain", application="archive", allowNewCheckpoint="true")
    with stopped(stream.streamReader(stream.schema())) as reader:
        start, end = taken(reader)
        assert read(reader, start, end) == [[b"1", b"2", b"3"]]
        assert reader.reportLatestOffset()["lag"] == 0
    assert release(served.url, "Q", "archive") == 3


def drains_several(served: ServedFile) -> None:
    """Drains both queues in one query."""
    stream = source(served, queue="Q,BAD", mode="drain", application="several", allowNewCheckpoint="true")
    with stopped(stream.streamReader(stream.schema())) as reader:
        start, end = taken(reader)
        assert [body for part in read(reader, start, end) for body in part] == [b"1", b"2", b"3"]
    assert release(served.url, "Q,BAD", "several") == 3


def writes(served: ServedFile) -> None:
    """Writes twice under one name, and aborts a third write."""
    for _ in range(2):
        writer = written(served, transaction="monday")
        writer.commit([writer.write(iter([rows(b"4", b"5")]))])
    assert transaction_time(served.url, "Q", "monday") is not None
    writer = written(served)
    writer.abort([writer.write(iter([rows(b"6")]))])
    with inorder.connect(served.path) as qm:
        assert (bodies(qm)[3:], qm.inspect.units()) == ([b"4", b"5"], [])


def written(served: ServedFile, **options: str) -> BatchWriter:
    given = sink_options({"url": served.url, "queue": "Q"} | options, "batch write")
    return BatchWriter(given, schema(body="binary"))


def rows(*found: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"body": pa.array(found, pa.binary())})


@pytest.fixture
def three(served: ServedFile, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedFile]:
    """The server with three messages on Q. Each task makes a new connection, which has the latest authorities."""
    monkeypatch.setattr(opening, "LIFE_SECONDS", -1.0)
    put(str(served.path), b"1", b"2", b"3")
    yield served
    with inorder.connect(served.path) as qm:
        for name in ("Q", "BAD"):
            drained(qm, name)


@pytest.mark.parametrize(
    ("work", "needed"), [(browses, BROWSES), (drains, READS), (writes, WRITES)], ids=["browse", "drain", "sink"]
)
def test_a_user_needs_exactly_these_authorities_on_the_queue(
    three: ServedFile, work: Work, needed: tuple[str, ...]
) -> None:
    for missing in needed:
        three.grant({"Q": tuple(one for one in needed if one != missing)})
        with pytest.raises(NotAuthorized):
            work(three)
    three.grant({"Q": needed})
    work(three)


def test_a_user_who_drains_several_queues_needs_them_on_each(three: ServedFile) -> None:
    for missing, error in (("get", NotAuthorized), ("inquire", UnknownQueue)):  # it must not see which queues exist
        three.grant({"Q": tuple(one for one in READS if one != missing), "BAD": READS})
        with pytest.raises(error):
            drains_several(three)
    three.grant({"Q": READS, "BAD": READS})
    drains_several(three)


def test_rows_that_are_not_messages_need_put_on_their_queue(three: ServedFile) -> None:
    options = sink_options({"url": three.url, "queue": "Q", "badRows": "queue:BAD"}, "batch write")
    bodies = pa.array([b"4", b"5"], pa.binary())
    given = pa.RecordBatch.from_pydict({"body": bodies, "priority": pa.array([4, -1], pa.int32())})

    def write() -> None:
        writer = BatchWriter(options, schema(body="binary", priority="integer"))
        writer.commit([writer.write(iter([given]))])

    for fewer in (), ("inquire",):
        three.grant({"Q": WRITES} | ({"BAD": fewer} if fewer else {}))
        with pytest.raises(NotAuthorized, match="BAD"):
            write()
    three.grant({"Q": WRITES, "BAD": ("put",)})
    write()
    with inorder.connect(three.path) as qm:
        assert (qm.depth("Q"), qm.depth("BAD")) == (4, 1)


# --- credentials


def test_objects_sent_to_tasks_contain_no_credentials(three: ServedFile) -> None:
    three.grant({"Q": (*READS, *WRITES)})
    drain = source(three, mode="drain", application="archive", allowNewCheckpoint="true")
    writer = written(three)
    staged = writer.write(iter([rows(b"4")]))
    with stopped(drain.streamReader(drain.schema())) as reader:
        start, end = taken(reader)
        travels = pickle.dumps((drain, reader, reader.partitions(start, end), start, end, writer, staged))
    writer.abort([staged])
    release(three.url, "Q", "archive")
    assert three.url.encode() in travels
    assert three.token.encode() not in travels


def test_a_process_without_credentials_is_refused(served: ServedFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INORDER_CREDENTIALS", "")
    with pytest.raises(LogInRefused):
        source(served, application="another").schema()


# --- a server that restarts


def test_a_task_waits_for_a_restarting_server_but_reading_the_schema_does_not(
    served: ServedFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.kill()
    with pytest.raises(StoreError, match="nothing listens there"):
        source(served, application="check").schema()
    waits = SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: served.start())
    monkeypatch.setattr(opening, "time", waits)
    with opening.store_for_task(served.url, "task") as qm:
        assert qm.admin.manager_attributes().name == "store"
