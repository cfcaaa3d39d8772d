"""The checker complains of each fault, and of nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.kills.checker import METADATA, Row, archived, on_queue, wrong_at_sink, wrong_in_store

import inorder

PLAN = [[b"a1", b"a2", b"a3"], [b"b"], [b"c1", b"c2"], [b"d"]]


def delivered(*bodies: bytes) -> list[Row]:
    member = {body: place for line in PLAN for place, body in enumerate(line, 1)}
    return [Row(number, body, member.get(body, 1), None) for number, body in enumerate(bodies, 1)]


ALL = [body for line in PLAN for body in line]


def test_correct_deliveries_give_no_complaint() -> None:
    assert wrong_at_sink(delivered(*ALL), PLAN) == []
    assert wrong_at_sink(delivered(*ALL[:4]), PLAN, all_there=False) == []
    assert wrong_at_sink(delivered(*ALL[3:], *ALL[:3]), PLAN, heads_in_order=False) == []


@pytest.mark.parametrize(
    ("bodies", "complaint"),
    [
        (ALL[:-1], "b'd' is lost"),
        ([*ALL, b"b"], "b'b' came 2 times"),
        ([*ALL, b"x"], "b'x' was never put"),
        ([b"a1", b"a3", b"a2", *ALL[3:]], "b'a3' comes out of order in its group"),
        ([b"a1", b"b", b"a2", b"a3", *ALL[4:]], "b'b' comes in the middle of another group"),
        ([b"b", *ALL[:3], *ALL[4:]], "b'a1' comes after a later group"),
    ],
)
def test_a_lost_doubled_or_reordered_message_is_reported(bodies: list[bytes], complaint: str) -> None:
    assert any(one.startswith(complaint) for one in wrong_at_sink(delivered(*bodies), PLAN))


def test_a_part_of_a_group_and_a_wrong_number_are_reported() -> None:
    assert wrong_at_sink(delivered(*ALL[:2]), PLAN, all_there=False) == ["b'a3' is lost"]
    rows = delivered(*ALL)
    rows[1] = rows[1]._replace(sequence_number=3)
    assert wrong_at_sink(rows, PLAN) == ["b'a2' has sequence number 3, and is member 2"]
    for numbers in ([1, 2, 2, 3, 4, 5, 6], [1, 2, 4, 5, 6, 7, 8], [2, 3, 4, 5, 6, 7, 8]):
        rows = [row._replace(delivery_number=n) for row, n in zip(delivered(*ALL), numbers, strict=True)]
        assert any("is due" in one for one in wrong_at_sink(rows, PLAN))


def archive(folder: Path, batches: dict[str, list[str]]) -> Path:
    """An archive with a file of one row for each name; the log's entries name some of them."""
    (folder / METADATA).mkdir(parents=True)
    for entry, names in batches.items():
        lines = []
        for name in names:
            file = folder / f"queue=Q%2F1/{name}.parquet"
            file.parent.mkdir(exist_ok=True)
            row = {"delivery_number": [int(name)], "body": [name.encode()], "sequence_number": [1], "group_id": [None]}
            pq.write_table(pa.table(row), file)
            lines.append(json.dumps({"path": file.as_uri(), "action": "add"}))
        (folder / METADATA / entry).write_text("\n".join(["v1", *lines]))
    return folder


def test_only_the_files_that_the_log_of_an_archive_names_are_read(tmp_path: Path) -> None:
    place = archive(tmp_path / "archive", {"0": ["1"], "1.compact": ["1", "2"], "2": ["3"], ".3.crc": ["4"]})
    assert [row.body for row in archived(place)] == [b"1", b"2", b"3"]
    assert archived(tmp_path / "none") == []


def test_messages_and_units_left_in_the_store_are_reported(tmp_path: Path) -> None:
    url = tmp_path / "store.db"
    with inorder.connect(url) as qm:
        qm.create_queue("Q")
        assert wrong_in_store(url, "Q") == []
        qm.put("Q", b"1")
        qm.put("Q", b"2", syncpoint=True)
        found = [one.partition(":")[0] for one in wrong_in_store(url, "Q")]
        assert found == ["2 messages are left on Q", "a unit is left"]
        assert [row.body for row in on_queue(url, "Q")] == [b"1"]
