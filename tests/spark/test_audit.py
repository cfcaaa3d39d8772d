"""Auditing an archive finds each planted fault once, in its place; a clean archive has none.

One run judges many queues, each with a fault of its own after a random clean history, since a run takes seconds.
"""

from __future__ import annotations

import csv
import json
import random
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as in Spark's documents
from tests.spark.archives import Row, group, in_archive, interleaved, placed, segmented
from tests.tiers import gate

import inorder
from inorder import ArgumentError
from inorder.model.message import IN_GROUP, LAST_IN_GROUP
from inorder.spark.jobs import Audited, audit, lanes
from inorder.spark.jobs.findings import KINDS
from inorder.spark.jobs.report import NO_PICTURES

PICTURES = 6 if find_spec("matplotlib") else 0  # pictures need the extra inorder[report]
Key = tuple[int, ...]


class Found(NamedTuple):
    """The fields of a finding that tests compare."""

    kind: str
    delivery_number: int
    expected: str
    found: str


class Planted(NamedTuple):
    """The end of a queue's history: rows after the clean ones, whose number is `start`, and the expected findings."""

    rows: Callable[[int], list[Row]]
    finds: Callable[[int], list[Found]]


def planted(members: list[Row], *finds: tuple[str, int, object, object], **changed: Any) -> Planted:
    """Rows that follow the clean ones. `finds`: kind, number of the row (from 1), expected, found."""
    return Planted(
        lambda start: [{**values, **changed} for values in placed(members, first=start + 1)],
        lambda start: [Found(kind, start + n, str(expected), str(found)) for kind, n, expected, found in finds],
    )


def without(members: list[Row], *indexes: int) -> list[Row]:
    return [member for n, member in enumerate(members) if n not in indexes]


def changed(members: list[Row], index: int, **values: Any) -> list[Row]:
    return [{**member, **values} if n == index else member for n, member in enumerate(members)]


def swapped(members: list[Row]) -> Callable[[int], list[Row]]:
    """The first two are delivered in reverse order."""

    def make(start: int) -> list[Row]:
        first, second, *others = placed(members, first=start + 1)
        first["delivery_number"], second["delivery_number"] = second["delivery_number"], first["delivery_number"]
        return [first, second, *others]

    return make


def again(start: int) -> list[Row]:
    """A member of a group is delivered a second time, after the whole group."""
    rows = placed(group("TWICE", 3), first=start + 1)
    return [*rows, {**rows[1], "delivery_number": start + 4}]


def one_place(start: int) -> list[Row]:
    first, second = placed([{}, {}], first=start + 1)
    return [first, {**second, "number": first["number"]}]


OVERLAP = changed(segmented("X", 3), 2, offset=24)
AFTER_LAST = changed(segmented("X", 3), 1, flags=segmented("X", 2)[1]["flags"])
FAULTS = {
    "CLEAN": planted([]),
    "GAP": Planted(
        lambda start: placed([{"delivery_number": start + 4}, {"delivery_number": start + 5}], first=start + 1),
        lambda start: [Found("delivery_gap", start + 4, str(start + 1), str(start + 4))],
    ),
    "REPEATED": Planted(
        lambda start: placed([{"delivery_number": start}, {"delivery_number": start + 1}], first=start + 1),
        lambda start: [Found("delivery_repeated", start, str(start + 1), str(start))],
    ),
    "TWICE": Planted(again, lambda start: [Found("message_repeated", start + 4, "one delivery", "copy 2")]),
    "PLACE": Planted(one_place, lambda start: [Found("place_repeated", start + 2, "a unique place", f"{start + 1}.0")]),
    "OVERTAKE": Planted(
        swapped([{}, {}, {}]),
        lambda start: [Found("overtake", start + 2, f"a place from {start + 2}.0", f"{start + 1}.0")],
    ),
    "IN GROUP": Planted(
        swapped(group("X", 3)),
        lambda start: [Found("overtake_in_group", start + 2, f"before delivery {start + 1}", str(start + 2))],
    ),
    "SEQUENCE": planted(without(group("X", 5), 1, 2), ("sequence_gap", 2, 2, 4)),
    "SAME": planted([*group("X", 3)[:2], *group("X", 3)[1:]], ("sequence_repeated", 3, 3, 2)),
    "FIRST": planted(group("X", 3)[1:], ("group_first_missing", 1, 1, 2)),
    "LAST": planted(group("X", 3)[:2], ("group_last_missing", 2, "a last message", 2)),
    "GOES ON": planted(
        changed(group("X", 3), 1, flags=IN_GROUP | LAST_IN_GROUP),
        ("group_after_last", 3, "the end of the group", 3),
    ),
    "HOLE": planted(without(segmented("X", 4), 1), ("segment_gap", 2, 16, 32)),
    "HEAD": planted(segmented("X", 4)[1:], ("segment_gap", 1, 0, 16)),
    "OVERLAP": planted(OVERLAP, ("segment_overlap", 3, 32, 24)),
    "SEGMENT GOES ON": planted(AFTER_LAST, ("segment_after_last", 3, "the end of the message", 32)),
    "NO END": planted(segmented("X", 3)[:2], ("segment_last_missing", 2, "a last segment", 16)),
    "BACK": planted([{"backout_count": 2}], ("redelivered", 1, 0, 2)),
    # A hole in the middle of a group: the segment before it is the last remaining one of its message.
    "BOTH": planted(
        without(group("X", 3, segments=[2]), 3, 4),
        ("segment_last_missing", 3, "a last segment", 16),
        ("group_last_missing", 3, "a last message", 2),
    ),
}


def histories(seed: int, deliver: Callable[[list[Row]], list[Row]]) -> Iterator[tuple[str, list[Row], list[Found]]]:
    """For each fault the name of a queue, its rows, and the expected findings."""
    for n, (name, fault) in enumerate(FAULTS.items()):
        clean = deliver(interleaved(100 * seed + n, groups=5, alone=5))
        start = len(clean)
        rows = [*clean, *fault.rows(start)]
        yield name, [{**values, "queue": name} for values in rows], fault.finds(start)


def as_placed(rows: list[Row]) -> list[Row]:
    return rows


def by_group(rows: list[Row]) -> list[Row]:
    """The same rows, delivered in logical order."""
    heads: dict[Any, int] = {}
    for values in rows:
        heads.setdefault(values["group_id"] or values["uid_number"], values["number"])
    order = sorted(rows, key=lambda values: (heads[values["group_id"] or values["uid_number"]], values["number"]))
    return [{**values, "delivery_number": n} for n, values in enumerate(order, 1)]


def shuffled(seed: int) -> list[Row]:
    """A queue of several ranks, delivered in no order, so that lanes and their borders matter."""
    chance = random.Random(seed)
    rows = [{**values, "queue": "SHUFFLED", "rank": -chance.choice([0, 0, 4, 9])} for values in placed([{}] * 90)]
    deliveries = chance.sample(range(1, 91), 90)
    # Half of them in order, so that some neighbours are right.
    deliveries[:45] = sorted(deliveries[:45])
    return [{**values, "delivery_number": n} for values, n in zip(rows, deliveries, strict=True)]


def overtaken(rows: list[Row], position: Callable[[Row], Key]) -> set[int]:
    """The numbers of deliveries whose place, in their rank, is before that of the previous delivery."""
    last: dict[int, Key] = {}
    found = set()
    for values in sorted(rows, key=lambda values: int(values["delivery_number"])):
        rank, *_ = key = position(values)
        if rank in last and key < last[rank]:
            found.add(values["delivery_number"])
        last[rank] = key
    return found


def read_findings(spark: SparkSession, folder: Path) -> dict[str, list[Found]]:
    found: dict[str, list[Found]] = {}
    for values in spark.read.parquet(str(folder / "findings.parquet")).collect():
        assert values["severity"] == KINDS[values["kind"]].severity
        assert values["text"]
        found.setdefault(values["queue"], []).append(Found(*[values[name] for name in Found._fields]))
    return found


def compare(found: dict[str, list[Found]], wanted: dict[str, list[Found]]) -> None:
    assert {queue: sorted(listed) for queue, listed in found.items()} == {
        queue: sorted(listed) for queue, listed in wanted.items() if listed
    }


@pytest.fixture(autouse=True)
def many_small_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes lanes so small that archives of a thousand messages have many."""
    monkeypatch.setattr(lanes, "LANE_ROWS", 400)
    monkeypatch.setattr(lanes, "SAMPLES_PER_LANE", 10)


@pytest.mark.parametrize(
    "lane_rows", [pytest.param(400, marks=gate, id="many lanes"), pytest.param(100_000, id="one lane")]
)
def test_in_physical_order_each_planted_fault_is_found_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lane_rows: int
) -> None:
    monkeypatch.setattr(lanes, "LANE_ROWS", lane_rows)
    queues = list(histories(1, as_placed))
    rows = [values for _, listed, _ in queues for values in listed]
    mixed = shuffled(3)
    wanted = {name: finds for name, _, finds in queues}

    told = audit(spark, in_archive(spark, rows + mixed), tmp_path / "out")

    found = read_findings(spark, tmp_path / "out")
    of_shuffled = found.pop("SHUFFLED")
    compare(found, wanted)
    naive = overtaken(mixed, lambda values: (values["rank"], values["number"]))
    assert {each.delivery_number for each in of_shuffled} == naive
    assert {each.kind for each in of_shuffled} == {"overtake"}
    assert len(of_shuffled) == len(naive) > 20
    check_conditions(in_archive(spark, rows + mixed), tmp_path / "out")
    check_outputs(tmp_path / "out", told, [each for listed in (*found.values(), of_shuffled) for each in listed])
    assert told.messages == len(rows) + len(mixed)
    assert told.incomplete_groups == sum(
        any(each.kind.startswith(("group", "sequence", "segment")) for each in finds) for finds in wanted.values()
    )


def check_conditions(archive: DataFrame, folder: Path) -> None:
    """Checks that the condition of each kind of finding selects its message."""
    frame = archive.sparkSession.read.parquet(str(folder / "findings.parquet"))
    kinds = {one["kind"]: one for one in frame.collect()}
    assert len(kinds) > 10
    for one in kinds.values():
        found = archive.where(one["condition"]).select("queue", "delivery_number").collect()
        assert (one["queue"], one["delivery_number"]) in [tuple(row) for row in found], one
        assert 1 <= len(found) < 10, one


def check_outputs(folder: Path, told: Audited, found: list[Found]) -> None:
    """Checks that CSV, summary and report agree with the Parquet file."""
    counts = Counter(each.kind for each in found)
    lines = list(csv.DictReader((folder / "findings.csv").read_text().splitlines()))
    assert not (folder / "findings.csv.parts").exists()
    assert Counter(line["kind"] for line in lines) == counts
    assert {
        kind: count for kind, count in (told.errors | {"redelivered": told.notes["redelivered"]}).items() if count
    } == counts
    assert json.loads((folder / "summary.json").read_text()) == json.loads(told.as_json())
    assert all(kind in told.as_text() for kind in counts)
    page = (folder / "report.html").read_text()
    assert page.count("<svg ") == PICTURES
    assert "nan" not in page.lower().split("<svg")[0]


def test_in_logical_order_groups_have_the_places_of_their_first_messages(spark: SparkSession, tmp_path: Path) -> None:
    queues = list(histories(2, by_group))
    rows = [values for _, listed, _ in queues for values in listed]
    physical = [{**values, "queue": "PHYSICAL"} for values in interleaved(7)]
    wanted = {name: finds for name, _, finds in queues}
    archive = in_archive(spark, rows + physical).withColumn("taken_at", F.col("put_at") + F.expr("INTERVAL 5 SECONDS"))

    told = audit(spark, archive, tmp_path / "out", order="logical", delivered_at="taken_at")

    found = read_findings(spark, tmp_path / "out")
    of_physical = found.pop("PHYSICAL")
    compare(found, wanted)
    heads: dict[Any, int] = {}
    for values in physical:
        heads.setdefault(values["group_id"] or values["uid_number"], values["number"])
    naive = overtaken(physical, lambda values: (values["rank"], heads[values["group_id"] or values["uid_number"]]))
    assert {each.delivery_number for each in of_physical} == naive
    assert {each.kind for each in of_physical} == {"overtake"}
    assert ("Age at delivery" in (tmp_path / "out/report.html").read_text()) == bool(PICTURES)
    assert told.error_count == sum(map(len, found.values())) + len(naive) - told.note_count


@pytest.mark.parametrize("order", ["physical", "logical"])
def test_a_small_archive_is_audited_by_few_tasks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: Any
) -> None:
    """Planning and compiling a job takes longer than its rows, and a shuffle would add jobs."""
    monkeypatch.setattr(lanes, "LANE_ROWS", 100_000)
    in_archive(spark, placed([{}] * 50 + group("X", 30)), slices=1).write.parquet(str(tmp_path / "archive"))

    def jobs() -> list[Any]:
        listed = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
        return [listed.apply(n) for n in range(listed.size())]

    before = {job.jobId() for job in jobs()}
    audit(spark, tmp_path / "archive", tmp_path / "out", order=order)
    ran = [job for job in jobs() if job.jobId() not in before]

    assert len(ran) <= 16, "\n".join(f"{job.numTasks()} tasks: {job.name()}" for job in ran)
    assert max(job.numTasks() for job in ran) <= 12, "a session's 200 partitions are for a large archive"


def test_where_no_order_was_promised_overtakes_are_notes(spark: SparkSession, tmp_path: Path) -> None:
    """A queue numbered at the commit can have messages that were put before their predecessors."""
    rows = placed([{}] * 4 + group("X", 3))
    rows[1]["put_at"], rows[2]["put_at"] = rows[2]["put_at"], rows[1]["put_at"]
    rows[0]["delivery_number"], rows[3]["delivery_number"] = 4, 1
    rows[4]["delivery_number"], rows[6]["delivery_number"] = 7, 5

    told = audit(spark, in_archive(spark, rows), tmp_path / "out", order="none")

    assert told.error_count == 0
    assert {kind: count for kind, count in told.notes.items() if count} == {"overtake_in_group": 2}
    assert told.put_earlier == 1


def test_without_matplotlib_only_the_pictures_are_missing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = placed([{}] * 3)
    archive = in_archive(spark, [rows[0], rows[2]], slices=1)
    drawn = audit(spark, archive, tmp_path / "drawn")
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # makes its import fail
    monkeypatch.delitem(sys.modules, "inorder.spark.jobs.charts", raising=False)
    said: list[str] = []

    told = audit(spark, archive, tmp_path / "out", progress=said.append)

    assert said[:2] == [NO_PICTURES, "counting"], "it is told before the work begins"
    assert said.count(NO_PICTURES) == 1
    assert "drawing" not in said
    assert told == drawn
    assert told.errors["delivery_gap"] == 1
    assert read_findings(spark, tmp_path / "out") == read_findings(spark, tmp_path / "drawn")
    page = (tmp_path / "out/report.html").read_text()
    assert NO_PICTURES in page
    assert told.verdict() in page
    assert "<svg" not in page


def test_a_queue_whose_first_delivery_is_missing_has_a_gap(spark: SparkSession, tmp_path: Path) -> None:
    late = audit(spark, in_archive(spark, placed([{}] * 3)[1:]), tmp_path / "late")

    assert read_findings(spark, tmp_path / "late") == {"Q": [Found("delivery_gap", 2, "1", "2")]}
    assert late.verdict() == "1 missing in 2 messages: the order is not what was promised."


@gate
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"order": "random"}, "order must be one of: physical, logical, none, not 'random'"),
        ({"delivered_at": "nowhere"}, "delivered_at must be a column of the archive: .*not 'nowhere'"),
        ({"archive": "lacks"}, "archive.*'ordinal'"),
    ],
)
def test_bad_arguments_are_named_in_the_error(
    spark: SparkSession, tmp_path: Path, options: dict[str, Any], says: str
) -> None:
    archive: DataFrame = in_archive(spark, placed([{}]), slices=1)
    if options.pop("archive", None):
        archive = archive.drop("ordinal")
    with pytest.raises(ArgumentError, match=f"(?s){says}"):
        audit(spark, archive, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()
    with pytest.raises(ArgumentError, match="a folder that does not exist yet, unless overwrite=True"):
        audit(spark, archive, tmp_path)


def test_an_empty_archive_has_no_faults(spark: SparkSession, tmp_path: Path) -> None:
    told = audit(spark, in_archive(spark, [], slices=1), tmp_path / "out")

    assert (told.messages, told.error_count, told.note_count) == (0, 0, 0)
    page = (tmp_path / "out/report.html").read_text()
    assert "<svg" not in page
    assert "Command</b> <code>jobs.audit(spark, archive, " in page
    assert (tmp_path / "out/findings.csv").read_text().startswith("kind,severity,queue,")


def test_a_folder_of_csv_from_an_earlier_release_becomes_one_file_unless_it_holds_a_store(
    spark: SparkSession, tmp_path: Path
) -> None:
    archive, old = in_archive(spark, placed([{}] * 2), slices=1), tmp_path / "out/findings.csv"
    old.mkdir(parents=True)
    (old / "part-0.csv").write_text("kind\n")
    with inorder.connect(old / "store.db") as qm:
        qm.create_queue("Q")
    for name in "findings.csv", "findings.parquet":
        with pytest.raises(ArgumentError, match=r"output must be a folder without a store, but .*store\.db"):
            audit(spark, archive, tmp_path / "out", overwrite=True)
        (tmp_path / "out" / name).rename(tmp_path / "out/findings.parquet")
    shutil.rmtree(tmp_path / "out")
    old.mkdir(parents=True)
    audit(spark, archive, tmp_path / "out", overwrite=True)
    assert old.read_text().count("\n") == 1
    audit(spark, archive, tmp_path / "out", overwrite=True)
    assert old.is_file()
