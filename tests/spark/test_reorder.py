"""Reordering an archive, compared with the rules in plain Python on random archives, and tested in edge cases."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession
from tests.spark.archives import Row, as_message, in_archive, interleaved, placed
from tests.tiers import gate

from inorder import ArgumentError
from inorder.errors import OptionsError
from inorder.model.message import ANY_GROUP, ANY_SEGMENT, SEGMENT
from inorder.rules.grouping import Members
from inorder.rules.segmentation import join
from inorder.spark.jobs import lanes, reorder

SHOWN = ("queue", "uid_number", "sequence_number", "offset", "flags", "body", "length", "original_length", "group_id")
Shown = tuple[Any, ...]


def place(values: Row) -> tuple[int, int, int]:
    return values["rank"], values["number"], values["ordinal"]


def naive(rows: list[Row], *, joins: bool = False) -> tuple[list[Row], list[Row]]:
    """The result by the rules: the messages in logical order, and those of incomplete groups."""
    units: dict[Any, list[Row]] = defaultdict(list)
    for values in sorted(rows, key=place):
        is_member = values["flags"] & (ANY_GROUP | ANY_SEGMENT)
        units[values["queue"], values["group_id"] if is_member else values["uid_number"]].append(values)
    whole: list[tuple[Any, list[Row]]] = []
    aside: list[Row] = []
    for (queue, _), members in units.items():
        members.sort(key=lambda values: (values["sequence_number"], values["offset"], place(values)))
        if is_whole(members):
            whole.append(((queue, place(members[0])), joined(members) if joins else members))
        else:
            aside += members
    return [values for _, members in sorted(whole, key=lambda unit: unit[0]) for values in members], aside


def is_whole(rows: list[Row]) -> bool:
    """Whether the members are complete by the rules, without superfluous ones."""
    if not rows[0]["flags"] & (ANY_GROUP | ANY_SEGMENT):
        return True
    members = Members(map(as_message, rows))
    numbers = sorted({values["sequence_number"] for values in rows})
    pieces = [members.logical_message(number) for number in numbers]
    is_grouped = any(values["flags"] & ANY_GROUP for values in rows)
    if numbers != list(range(1, len(numbers) + 1)) or (is_grouped and not members.group_is_complete()):
        return False
    # The message that ends the group is the last one.
    if is_grouped and any(message[0].flags & 16 for message in pieces[:-1] if message):
        return False
    return all(pieces) and sum(map(len, pieces)) == len(rows)


def joined(rows: list[Row]) -> list[Row]:
    """Joins the segments of each logical message by segmentation.join; whole messages are segments no more."""
    made: list[Row] = []
    for number in sorted({values["sequence_number"] for values in rows}):
        pieces = [values for values in rows if values["sequence_number"] == number]
        result = join([as_message(values) for values in pieces])
        changed = ("body", "length", "original_length", "flags")
        first = {**pieces[0], **{name: getattr(result.message, name) for name in changed}}
        if result.used == len(pieces):
            first["flags"] &= ~ANY_SEGMENT
            first["original_length"] = -1
            first["group_id"] = first["group_id"] if first["flags"] & ANY_GROUP else None
        made += [first, *pieces[result.used :]]
    return made


def shown(rows: list[Row]) -> list[Shown]:
    return [tuple(values[name] for name in SHOWN) for values in rows]


def read_in_file_order(folder: Path) -> list[Row]:
    """The rows in the files, sorted by name, as any reader of Parquet finds them."""
    files = sorted(str(path) for path in folder.glob("*.parquet"))
    rows: list[Row] = ds.dataset(files, format="parquet").to_table().to_pylist()
    return rows


def damaged(seed: int) -> list[Row]:
    """An archive in which members are lost, repeated and changed."""
    chance = random.Random(seed)
    rows = interleaved(seed)
    for values in chance.sample(rows, 8):
        what = chance.choice(["lose", "repeat", "last", "sequence", "offset", "not last", "code", "code"])
        if what == "lose":
            rows.remove(values)
        elif what == "repeat":
            number = 1000 + len(rows)
            rows.append({**values, "number": number, "uid_number": number})
        elif what == "last" and values["flags"] & ANY_GROUP:
            values["flags"] |= 16
        elif what == "not last":
            values["flags"] &= ~16
        elif what == "sequence":
            values["sequence_number"] += 1
        elif what == "code" and values["flags"] & SEGMENT:
            values["coded_character_set_id"] = 500
        elif what == "offset" and values["flags"] & SEGMENT:
            values["offset"] += chance.choice([-8, 16])
            values["offset"] = max(0, values["offset"])
    return rows


@pytest.fixture(autouse=True)
def many_small_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes lanes so small that archives of a few dozen messages go to several files."""
    monkeypatch.setattr(lanes, "LANE_BYTES", 10_000)
    monkeypatch.setattr(lanes, "SAMPLES_PER_LANE", 10)


@pytest.mark.parametrize(
    ("seed", "joins"), [pytest.param(0, True, marks=gate), (0, False), (1, True), (1, False), (2, True)]
)
def test_a_damaged_archive_is_ordered_as_the_rules_say(
    spark: SparkSession, tmp_path: Path, seed: int, joins: bool
) -> None:
    rows = damaged(seed)
    wanted, aside = naive(rows, joins=joins)

    told = reorder(spark, in_archive(spark, rows), tmp_path / "out", join_segments=joins, incomplete=tmp_path / "aside")

    found = read_in_file_order(tmp_path / "out")
    assert shown(found) == shown(wanted)
    assert [values["logical_position"] for values in found] == list(range(1, len(wanted) + 1))
    assert sorted(shown(read_in_file_order(tmp_path / "aside")), key=str) == sorted(shown(aside), key=str)
    assert (told.messages, told.incomplete_messages) == (len(wanted), len(aside))
    assert told.files > 1
    assert aside, "the seed damages nothing"


def test_an_undamaged_archive_has_no_incomplete_group(spark: SparkSession, tmp_path: Path) -> None:
    """On several queues and ranks: no message is incomplete, and heads are in the order of their places."""
    rows = [
        {
            **values,
            "queue": f"Q{values['number'] % 2}" if not values["group_id"] else "Q0",
            "rank": -(values["number"] % 3),
        }
        for values in interleaved(4)
    ]
    heads: dict[bytes, int] = {}
    for values in rows:
        if values["group_id"]:
            values["rank"] = heads.setdefault(values["group_id"], values["rank"])
    wanted, aside = naive(rows)

    told = reorder(spark, in_archive(spark, rows), tmp_path / "out")

    assert shown(read_in_file_order(tmp_path / "out")) == shown(wanted)
    assert not aside
    assert (told.groups, told.incomplete_groups, told.incomplete_messages) == (len(heads), 0, 0)


def test_in_physical_order_groups_are_not_checked_for_completeness(spark: SparkSession, tmp_path: Path) -> None:
    rows = [{**values, "rank": -(values["number"] % 2)} for values in damaged(1)]

    told = reorder(spark, in_archive(spark, rows), tmp_path / "out", order="physical")

    found = read_in_file_order(tmp_path / "out")
    assert [place(values) for values in found] == sorted(place(values) for values in rows)
    assert [values["logical_position"] for values in found] == list(range(1, told.messages + 1))


def test_lanes_hold_about_the_same_number_of_rows(spark: SparkSession) -> None:
    """Each key is in the lane that the borders give."""
    rows = in_archive(spark, placed([{}] * 200), slices=2)
    dealt = lanes.make_lanes(rows, ("queue", "number"), row_count=200, rows_per_lane=50)

    found = rows.select("queue", "number", dealt.lane().alias("lane")).collect()

    assert dealt.total == 4
    assert all(values["lane"] == bisect_right(dealt.borders, (values["queue"], values["number"])) for values in found)
    sizes = [sum(values["lane"] == lane for values in found) for lane in range(4)]
    assert min(sizes) >= 10


@pytest.mark.parametrize(("rows", "parts"), [(0, 2), (10, 2), (1_000, 2), (3_000, 3)])
def test_a_shuffle_leaves_no_core_without_work(spark: SparkSession, rows: int, parts: int) -> None:
    """The session has two cores."""
    assert lanes.partitions(spark, rows, 1_000) == parts


@gate
@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"order": "random"}, ArgumentError, "order must be one of: logical, physical, not 'random'"),
        ({"order": "physical", "join_segments": True}, OptionsError, "join_segments and incomplete need"),
        ({"order": "physical", "incomplete": "aside"}, OptionsError, "join_segments and incomplete need"),
    ],
)
def test_bad_arguments_are_named_in_the_error(
    spark: SparkSession, tmp_path: Path, options: dict[str, Any], error: type[Exception], says: str
) -> None:
    archive = in_archive(spark, placed([{}]), slices=1)
    with pytest.raises(error, match=says):
        reorder(spark, archive, tmp_path / "out", **options)
    with pytest.raises(ArgumentError, match="target must be a folder that does not exist yet, unless overwrite=True"):
        reorder(spark, archive, tmp_path)
    assert not (tmp_path / "out").exists()


def test_an_empty_archive_stays_empty(spark: SparkSession, tmp_path: Path) -> None:
    told = reorder(spark, in_archive(spark, [], slices=1), tmp_path / "out", incomplete=tmp_path / "aside")

    assert (told.messages, told.incomplete_messages, told.files) == (0, 0, 1)
    assert spark.read.parquet(str(tmp_path / "out")).count() == 0
