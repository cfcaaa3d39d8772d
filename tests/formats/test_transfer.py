"""Files over queues: one group, one step, and nothing left of a failed transfer."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.formats.conftest import LINES
from tests.helpers.support import bodies

import inorder
from inorder import ArgumentError, Flags, Match, Message, NoMessageAvailable, QueueManager
from inorder.formats import (
    FORMAT,
    FileGot,
    ManifestError,
    RebuildError,
    get_file,
    put_file,
    records,
)
from inorder.formats.manifest import parse

RULE = r"delimiter:\n"


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_file_is_put_as_one_group_whose_first_message_has_the_format_inofile(qm: QueueManager, source: Path) -> None:
    put = put_file(qm, "Q", source, "sub/a.txt", RULE, record_format="MQSTR", priority=7, correlation_id=b"42")
    head, *rest = list(qm.get_group("Q"))
    assert head.format == FORMAT == "INOFILE"
    assert parse(head.body) == put.manifest
    found = [(one.sequence_number, one.body, one.format) for one in rest]
    assert found == [(2, b"one\n", "MQSTR"), (3, b"two\n", "MQSTR"), (4, b"three\n", "MQSTR")]
    assert {one.group_id for one in (head, *rest)} == {put.group_id}
    assert {(one.priority, one.correlation_id[:2]) for one in (head, *rest)} == {(7, b"42")}


@pytest.mark.parametrize(("path", "rule"), [("sub/a.txt", RULE), ("b.bin", "size:100"), ("empty", "whole")])
@pytest.mark.parametrize("in_unit", [False, True])
def test_a_file_is_transferred_through_a_queue(
    qm: QueueManager, source: Path, target: Path, path: str, rule: str, in_unit: bool
) -> None:
    if in_unit:
        with qm.unit_of_work():
            put = put_file(qm, "Q", source, path, rule, chunk=1000)
            assert [unit.puts for unit in qm.inspect.units()] == [qm.depth("Q")]
        with qm.unit_of_work():
            got = get_file(qm, "Q", target)
    else:
        put = put_file(qm, "Q", source, path, rule, chunk=1000)
        got = get_file(qm, "Q", target)
    assert got == FileGot(put.manifest, put.group_id, target / path)
    assert files(target) == {path: (source / path).read_bytes()}
    assert (qm.depth("Q"), qm.inspect.units()) == (0, [])


def test_a_whole_file_is_put_in_segments_that_fit_the_queue(qm: QueueManager, source: Path, target: Path) -> None:
    qm.alter_queue("Q", max_length=300)
    qm.create_queue("ALIAS", type="alias", base_queue="Q")
    put_file(qm, "ALIAS", source, "b.bin", "whole")
    segments = [one for one in qm.browse("Q", logical=True) if one.sequence_number == 2]
    assert [one.length for one in segments] == [300] * 34 + [40]
    assert {one.group_status for one in segments} == {"last"}
    get_file(qm, "Q", target)
    assert files(target) == {"b.bin": (source / "b.bin").read_bytes()}


def test_messages_and_groups_that_are_not_files_are_skipped(qm: QueueManager, source: Path, target: Path) -> None:
    qm.put("Q", b"plain")
    with qm.group("Q") as group:
        group.put(b"a group")
        group.put(b"of others")
    put_file(qm, "Q", source, "empty", "whole", correlation_id=b"1")
    put_file(qm, "Q", source, "sub/a.txt", RULE, correlation_id=b"2")
    assert get_file(qm, "Q", target, match=Match(correlation_id=b"2")).manifest.path == "sub/a.txt"
    assert get_file(qm, "Q", target).manifest.path == "empty"
    with pytest.raises(NoMessageAvailable):
        get_file(qm, "Q", target)
    assert bodies(qm) == [b"plain", b"a group", b"of others"]


def test_an_incomplete_group_is_skipped(qm: QueueManager, source: Path, target: Path) -> None:
    for record in list(records(source, "sub/a.txt", RULE))[:-1]:
        fields: Any = {"format": FORMAT} if record.sequence == 1 else {}
        qm.put("Q", record.body, logical=True, flags=Flags.IN_GROUP, **fields)
    with pytest.raises(NoMessageAvailable):
        get_file(qm, "Q", target)
    assert (qm.depth("Q"), files(target)) == (3, {})


# ---- failures leave nothing behind, and lose nothing


class Changing(Exception):
    """Raised by a test in the middle of a put or a get."""


@pytest.mark.parametrize("in_unit", [False, True])
@pytest.mark.parametrize("rule", ["size:7", "whole"])
def test_a_put_that_fails_leaves_nothing_in_the_unit(
    qm: QueueManager, source: Path, monkeypatch: pytest.MonkeyPatch, in_unit: bool, rule: str
) -> None:
    monkeypatch.setattr("inorder.formats.transfer.BATCH_BYTES", 500)
    real = inorder.Queue.put_many
    calls = 0

    def fails_in_the_third(self: inorder.Queue, *given: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise Changing
        return real(self, *given, **named)

    monkeypatch.setattr(inorder.Queue, "put_many", fails_in_the_third)
    with qm.unit_of_work() if in_unit else nullcontext():
        if in_unit:
            qm.put("Q", b"before")
        with pytest.raises(Changing):
            put_file(qm, "Q", source, "b.bin", rule, chunk=7)
        if in_unit:
            qm.put("Q", b"after")
    assert bodies(qm) == ([b"before", b"after"] if in_unit else [])
    assert qm.inspect.units() == []


def spoil(qm: QueueManager, source: Path, **changes: bytes) -> None:
    """Puts a whole group whose records do not match its manifest."""
    with qm.unit_of_work(), qm.open("Q", output=True) as handle:
        for record in records(source, "sub/a.txt", RULE):
            fields: Any = {"format": FORMAT if record.sequence == 1 else ""}
            handle.put(changes.get(f"n{record.sequence}", record.body), logical=True, flags=record.flags, **fields)


@pytest.mark.parametrize(
    ("changes", "error"), [({"n3": b"tWo\n"}, RebuildError), ({"n1": b"no manifest"}, ManifestError)]
)
@pytest.mark.parametrize("in_unit", [False, True])
def test_a_damaged_group_is_backed_out_and_creates_no_file(
    qm: QueueManager, source: Path, target: Path, changes: dict[str, bytes], error: type[Exception], in_unit: bool
) -> None:
    spoil(qm, source, **changes)
    depth = qm.depth("Q")
    with pytest.raises(error), qm.unit_of_work() if in_unit else nullcontext():
        get_file(qm, "Q", target)
    assert (qm.depth("Q"), files(target), qm.inspect.units()) == (depth, {}, [])
    assert {one.backout_count for one in qm.browse("Q") if one.sequence_number == 1} == {1}


def test_a_file_written_by_a_get_that_was_backed_out_is_accepted_by_the_next_get(
    qm: QueueManager, source: Path, target: Path
) -> None:
    put_file(qm, "Q", source, "sub/a.txt", RULE)
    with suppress(Changing), qm.unit_of_work():
        get_file(qm, "Q", target)
        assert files(target) == {"sub/a.txt": LINES}, "on disk before the commit"
        raise Changing
    assert qm.depth("Q") == 4
    get_file(qm, "Q", target, existing="same")
    assert (qm.depth("Q"), files(target)) == (0, {"sub/a.txt": LINES})


def test_the_file_and_its_name_are_synced_before_the_commit(
    qm: QueueManager, source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_file(qm, "Q", source, "sub/a.txt", RULE)
    (target / "sub").mkdir()
    synced: list[tuple[bool, bool, int]] = []

    def sync(file: int) -> None:
        is_folder = os.path.isdir(f"/proc/self/fd/{file}")  # noqa: PTH112
        synced.append((is_folder, (target / "sub/a.txt").exists(), len(qm.inspect.units())))

    monkeypatch.setattr("inorder.formats.file_group.os.fsync", sync)
    with qm.unit_of_work():
        get_file(qm, "Q", target)
        assert synced[-2:] == [(False, False, 1), (True, True, 1)]


def test_a_message_of_the_format_outside_a_group_is_refused(qm: QueueManager, target: Path) -> None:
    qm.put("Q", b"{}", format=FORMAT)
    with pytest.raises(ManifestError, match="not the first of a group"):
        get_file(qm, "Q", target)
    assert qm.depth("Q") == 1


@pytest.mark.parametrize("field", ["flags", "format", "group_id", "message_id", "offset", "sequence_number"])
def test_fields_that_belong_to_the_group_are_refused(qm: QueueManager, source: Path, field: str) -> None:
    given: Any = {field: Message.FIELDS[field].default}
    with pytest.raises(ArgumentError, match=f"not '{field}'"):
        put_file(qm, "Q", source, "empty", "whole", **given)


def test_a_match_by_format_is_refused(qm: QueueManager, target: Path) -> None:
    with pytest.raises(ArgumentError, match="without a format"):
        get_file(qm, "Q", target, match=Match(format="MQSTR"))
    with pytest.raises(ArgumentError, match="a Match"):
        get_file(qm, "Q", target, match="x")  # type: ignore[arg-type]


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
@pytest.mark.parametrize("rule", ["whole", "size:4096"])
@pytest.mark.usefixtures("traced")
def test_memory_holds_a_batch_not_the_file(qm: QueueManager, source: Path, target: Path, rule: str) -> None:
    (source / "large").touch()
    os.truncate(source / "large", 16 * 2**20)
    put_file(qm, "Q", source, "large", rule)
    assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    tracemalloc.reset_peak()
    get_file(qm, "Q", target)
    assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    assert (target / "large").stat().st_size == 16 * 2**20
