"""The shards of the night agree with the page for contributors, and omit no test."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from tools import flaky, nightly
from tools.nightly import CLAIMED, ROOT, SHARDS, Outcome, table, touched


def test_the_page_for_contributors_shows_the_shards() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for number, shard in enumerate(SHARDS, 1):
        assert f"| {number} | {shard.name} | {', '.join(f'`{one}`' for one in shard.folders)} |\n" in page
    assert f"SHARD=3/{len(SHARDS)}" in page


def test_each_shard_has_work_and_names_only_files_that_exist() -> None:
    for shard in SHARDS:
        assert bool(shard.pytest) != bool(shard.commands), shard.name
        assert all((ROOT / folder).exists() for folder in shard.folders), shard.name
    assert all((ROOT / place).exists() for place in CLAIMED)


def test_each_claimed_place_is_in_one_shard_and_left_out_of_the_shard_for_the_rest() -> None:
    (rest,) = [shard.pytest for shard in SHARDS if any(word.startswith("--ignore=") for word in shard.pytest)]
    assert {word.removeprefix("--ignore=") for word in rest if word.startswith("--ignore=")} == set(CLAIMED)
    words = [word for shard in SHARDS for word in shard.pytest]
    assert {place: words.count(place) for place in CLAIMED} == dict.fromkeys(CLAIMED, 1)


def test_a_change_asks_for_the_shards_of_its_folder() -> None:
    names = {SHARDS[number - 1].name for number in touched(["src/inorder/spark/sink.py"])}
    assert "Spark" in names
    assert "tables on unordered queues" not in names
    assert touched(["CHANGELOG.md"]) == []


@pytest.mark.parametrize("wrong", ["0", str(len(SHARDS) + 1), f"1/{len(SHARDS) + 1}", "one", "/", "-1"])
def test_a_shard_that_does_not_exist_is_refused(wrong: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=rf"1 to {len(SHARDS)}"):
        nightly._numbers(wrong)


def test_the_table_shows_counts_times_and_results() -> None:
    outcome = Outcome(shard=SHARDS[0], status=1, seconds=90, processor_seconds=150, tests=1200, failed=1, skipped=0)
    assert table({1: outcome}).splitlines()[-1] == f"| 1 | {SHARDS[0].name} | 1,200 | 1 | 0 | 1.5 | 2.5 | status 1 |"


def test_failures_are_read_from_a_report(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    assert flaky.failures(report) == []
    report.write_text(
        '<testsuites><testsuite><testcase classname="tests.test_a" name="one"/>'
        '<testcase classname="tests.test_a" name="two[x]"><failure/></testcase>'
        '<testcase classname="tests.test_b" name="three"><error/></testcase></testsuite></testsuites>',
        encoding="utf-8",
    )
    assert flaky.failures(report) == ["tests/test_a.py::two[x]", "tests/test_b.py::three"]
