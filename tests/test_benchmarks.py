"""The harness of the benchmarks: what it computes, whom it lets play when, and what it writes. No server, no timing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from benchmarks import report
from benchmarks.harness import (
    Bar,
    Cannot,
    Contestant,
    Entry,
    Figures,
    Question,
    Ready,
    Result,
    Role,
    Site,
    Spread,
    Work,
    measured,
    percentile,
    rate,
    ratio,
    run,
    spread,
    verdict,
)
from benchmarks.machine import file_system
from benchmarks.systems.bare import Bare
from benchmarks.systems.ours import Ours

import inorder


def entry(name: str, rates: Sequence[float], role: Role = "peer") -> Entry:
    return Entry(name=name, role=role, settings=f"settings of {name}", rounds=[{"rate": each} for each in rates])


OURS_AT_LEAST = Bar(figure="rate", of="ours", against="bare", first=0.5, goal=0.9)
CANNOT = Entry(name="other", role="peer", cannot="no message groups")


def result(*entries: Entry, bars: Sequence[Bar] = (OURS_AT_LEAST,)) -> Result:
    question = Question(name="put", title="put, one by one", unit="messages/s", contestants=lambda site: [], bars=bars)
    return Result(question=question, entries=entries)


PLAYED = result(
    entry("ours", [60, 300, 80], "ours"), entry("bare", [100, 400, 100], "bare"), entry("peer", [50] * 3), CANNOT
)


def test_a_spread_is_the_median_with_the_lowest_and_the_highest() -> None:
    assert spread([3, 1, 2]) == Spread(median=2, low=1, high=3)
    assert spread([]) is None


@pytest.mark.parametrize(("share", "value"), [(0, 1), (0.01, 1), (0.5, 50), (0.99, 99), (0.999, 100), (1, 100)])
def test_a_percentile_is_the_smallest_value_that_the_share_does_not_exceed(share: float, value: float) -> None:
    assert percentile(range(1, 101), share) == value


def test_a_ratio_is_taken_within_rounds() -> None:
    assert ratio(PLAYED, "rate", "ours", "bare") == Spread(median=0.75, low=0.6, high=0.8)
    assert ratio(PLAYED, "rate", "ours", "other") is None
    assert ratio(PLAYED, "rate", "ours", "nobody") is None


@pytest.mark.parametrize(
    ("value", "at_least", "at_most"),
    [
        (1.0, "goal", "missed"),
        (0.9, "goal", "missed"),
        (0.7, "bar", "bar"),
        (0.5, "bar", "goal"),
        (0.4, "missed", "goal"),
    ],
)
def test_a_ratio_must_reach_its_bar_and_a_figure_must_stay_below(value: float, at_least: str, at_most: str) -> None:
    found = Spread(median=value, low=0, high=2)
    assert verdict(OURS_AT_LEAST, found) == at_least
    assert verdict(Bar(figure="MB", of="ours", first=0.8, goal=0.5), found) == at_most


def test_what_was_not_measured_has_no_verdict() -> None:
    bar = Bar(figure="rate", of="ours", against="other", first=1, goal=1)
    assert verdict(bar, measured(PLAYED, bar)) == "not measured"


def test_a_rate_counts_messages_and_has_its_stock_put_before_each_slice() -> None:
    stocked: list[int] = []
    done: list[str] = []
    work = Work(operation=lambda: done.append("get"), size=10, before=stocked.append, slice=7)
    assert rate(work, 1e-9) > 0
    assert (stocked, len(done)) == ([7], 7)


def contestant(name: str, diary: list[str], *, cannot: str = "", gives_up: bool = False) -> Contestant:
    @contextmanager
    def opened(folder: Path) -> Iterator[Ready]:
        def measure(seconds: float) -> Figures:
            diary.append(name)
            if gives_up and diary.count(name) > 2:
                raise Cannot("went away")
            return {"rate": 1.0}

        if cannot:
            raise Cannot(cannot)
        assert list(folder.iterdir()) == []
        yield Ready(measure=measure, settings="synced")
        diary.append(f"{name} closed")

    return Contestant(name=name, role="peer", open=opened)


def test_contestants_play_in_turn_each_round_beginning_with_another(tmp_path: Path) -> None:
    diary: list[str] = []
    players = [contestant("A", diary), contestant("B", diary), contestant("C", diary, cannot="has no door")]
    question = Question(name="q", title="?", unit="", contestants=lambda site: players)
    found = run(question, Site(folder=tmp_path), rounds=3, seconds=0)
    assert diary == ["A", "B", *"ABBAAB", "B closed", "A closed"]
    assert [(each.name, len(each.rounds), each.cannot) for each in found.entries] == [
        ("A", 3, None),
        ("B", 3, None),
        ("C", 0, "has no door"),
    ]


def test_who_cannot_go_on_leaves_the_others_playing(tmp_path: Path) -> None:
    diary: list[str] = []
    players = [contestant("A", diary, gives_up=True), contestant("B", diary)]
    question = Question(name="q", title="?", unit="", contestants=lambda site: players)
    found = run(question, Site(folder=tmp_path), rounds=3, seconds=0)
    assert [(each.cannot, len(each.rounds)) for each in found.entries] == [("went away", 0), (None, 3)]


def run_of(*results: Result) -> report.Run:
    facts = {"kernel": "Linux 6"}
    return report.Run(started="2026-01-01T00:00:00", facts=facts, rounds=3, seconds=1, scale=1, results=results)


def test_the_json_has_every_figure_of_every_round() -> None:
    content = json.loads(report.as_json(run_of(PLAYED)))
    assert content.keys() == {"started", "facts", "rounds", "seconds", "scale", "questions"}
    (question,) = content["questions"]
    assert question.keys() == {"name", "title", "unit", "contestants", "bars", "ahead_of_peers"}
    ours, *_, other = question["contestants"]
    assert ours == {
        "name": "ours",
        "role": "ours",
        "settings": "settings of ours",
        "cannot": None,
        "rounds": [{"rate": 60}, {"rate": 300}, {"rate": 80}],
        "figures": {"rate": {"median": 80, "low": 60, "high": 300}},
    }
    assert (other["cannot"], other["figures"]) == ("no message groups", {})
    (bar,) = question["bars"]
    assert (bar["value"]["median"], bar["verdict"]) == (0.75, "bar")
    assert question["ahead_of_peers"] == {"peer": 1.6}


def test_the_page_has_a_line_for_each_figure_and_says_who_cannot() -> None:
    page = report.as_markdown(run_of(PLAYED))
    for line in (
        "| kernel | Linux 6 |",
        "| ours | messages/s | 80 | 60 to 300 |  |",
        "| bare | messages/s | 100 | 100 to 400 | 0.75 |",
        "| other |  | cannot: no message groups |  |  |",
        "| put, one by one | ours: rate / bare | 0.75 (0.6 to 0.8) | at least 0.5 | 0.9 | passes |",
        "Ahead of every peer: yes; against the best, peer: 1.60.",
        "* bare: settings of bare",
    ):
        assert line in page.splitlines(), page


@pytest.mark.parametrize(("value", "text"), [(12345.6, "12,346"), (999.4, "999"), (0.01234, "0.0123"), (0, "0")])
def test_figures_are_written_for_people(value: float, text: str) -> None:
    assert report.number(value) == text


@pytest.mark.parametrize("system", [Ours, Bare])
def test_every_verb_works(system: type[Ours] | type[Bare], tmp_path: Path) -> None:
    own = system(tmp_path, 0)
    own.stock_groups(groups=2, members=3)
    own.get_group()
    own.empty()
    own.stock(20)
    for verb in (own.get, partial(own.get_many, 5), partial(own.get_many_in_unit, 5), partial(own.get_put, b"body")):
        verb()
    own.put(b"body")
    own.put_many([b"body"] * 2)
    assert own.settings()
    own.close()


def test_the_file_system_is_told(tmp_path: Path) -> None:
    assert " on " in file_system(tmp_path)


def test_the_bare_spark_source_reads_what_is_stored(tmp_path: Path) -> None:
    bare = pytest.importorskip("benchmarks.spark_bare", reason="needs the extra inorder[spark]", exc_type=ImportError)
    path = tmp_path / "q.db"
    with inorder.connect(path) as qm:
        qm.create_queue("Q")
        qm.put_many("Q", [b"1", b"2", b"3"], priority=7)
        reader = bare.BareReader({"path": str(path)})
        rows = [row for part in reader.partitions() for page in reader.read(part) for row in page.to_pylist()]
    assert [(row["body"], row["priority"]) for row in rows] == [(b"1", 7), (b"2", 7), (b"3", 7)]
