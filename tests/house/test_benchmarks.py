"""The benchmarks: their arithmetic, the turns of contestants, and pages written from one run. Nothing is timed."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from benchmarks import __main__ as command
from benchmarks import group_commit, pages, servers
from benchmarks.bars import PEERS, TO_THE_LIMIT
from benchmarks.harness import (
    RATE,
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
    percentile,
    ratio,
    run,
    spread,
    verdict,
)
from benchmarks.questions.all import BESIDE_THE_LIMIT, QUESTIONS
from benchmarks.systems.bare import Bare
from benchmarks.systems.limit import Limit
from benchmarks.systems.ours import Ours

pytestmark = pytest.mark.nightly


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


def test_a_spread_is_the_median_with_the_quartiles_and_a_percentile_a_value() -> None:
    assert spread([3, 9, 1, 2, 5]) == Spread(median=3, lower=2, upper=5)
    assert spread([]) is None
    found = {share: percentile(range(1, 101), share) for share in (0, 0.01, 0.5, 0.99, 0.999, 1)}
    assert found == {0: 1, 0.01: 1, 0.5: 50, 0.99: 99, 0.999: 100, 1: 100}


def test_a_ratio_is_taken_within_rounds() -> None:
    assert ratio(PLAYED, "rate", "ours", "peer") == Spread(median=1.6, lower=1.4, upper=3.8)
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
    found = Spread(median=value, lower=0, upper=2)
    assert verdict(OURS_AT_LEAST, found) == at_least
    assert verdict(Bar(figure="MB", of="ours", first=0.8, goal=0.5), found) == at_most
    assert verdict(Bar(figure="ms", of="ours", against="peer", most=True, first=0.8, goal=0.5), found) == at_most
    assert verdict(OURS_AT_LEAST, None) == "not measured"


def contestant(
    name: str, diary: list[str], *, cannot: str = "", gives_up: Exception | None = None, role: Role = "peer"
) -> Contestant:
    @contextmanager
    def opened(folder: Path) -> Iterator[Ready]:
        def measure(seconds: float) -> Figures:
            diary.append(name)
            if gives_up and diary.count(name) > 2:
                raise gives_up
            return {"rate": 1.0}

        if cannot:
            raise Cannot(cannot)
        assert list(folder.iterdir()) == []
        yield Ready(measure=measure, settings="synced")
        diary.append(f"{name} closed")

    return Contestant(name=name, role=role, open=opened)


def test_contestants_take_turns_and_each_round_begins_with_another(tmp_path: Path) -> None:
    diary: list[str] = []
    players = [contestant("A", diary), contestant("B", diary), contestant("C", diary, cannot="has no door")]
    question = Question(name="q", title="?", unit="", contestants=lambda site: players)
    found = run(question, Site(folder=tmp_path), rounds=3, seconds=0)
    assert diary == ["A", "B", *"ABBAAB", "B closed", "A closed"]
    seen = [(each.name, len(each.rounds), each.cannot) for each in found.entries]
    assert seen == [("A", 3, None), ("B", 3, None), ("C", 0, "has no door")]


@pytest.mark.parametrize(
    ("error", "reason"),
    [(Cannot("went away"), "went away"), (TimeoutError("no answer"), "it failed: TimeoutError: no answer")],
    ids=["refuses", "fails"],
)
def test_a_peer_that_fails_is_dropped_and_the_others_continue(tmp_path: Path, error: Exception, reason: str) -> None:
    diary: list[str] = []
    players = [contestant("A", diary, gives_up=error), contestant("B", diary)]
    question = Question(name="q", title="?", unit="", contestants=lambda site: players)
    found = run(question, Site(folder=tmp_path), rounds=3, seconds=0)
    assert [(each.cannot, len(each.rounds)) for each in found.entries] == [(reason, 0), (None, 3)]


@pytest.mark.parametrize(
    ("name", "figures"),
    [("wake_up", ["p50 ms"]), ("request_reply", ["p50 ms"]), ("http", ["put", "get"]), ("http_arrow", ["put", "get"])],
)
def test_questions_with_other_processes_or_servers_are_measured(name: str, figures: list[str], tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="needs the extra inorder[arrow]")
    entries = run(QUESTIONS[name], Site(folder=tmp_path), rounds=1, seconds=0.001).entries
    assert entries
    for entry in entries:
        assert [len(entry.values(figure)) for figure in figures] == [1] * len(figures), entry.cannot


def test_programs_of_mq_are_measured(tmp_path: Path) -> None:
    for name, figures in (("mqi", ["rate"]), ("mqi_first", ["first MQCONN ms", "memory MB", "empty call µs"])):
        entries = run(QUESTIONS[name], Site(folder=tmp_path / name), rounds=1, seconds=0.001).entries
        assert entries
        for entry in entries:
            if entry.cannot:
                assert entry.cannot in ("needs ibmmq", "needs a C compiler and libpython")
            else:
                assert all(entry.values(figure)[0] > 0 for figure in figures)


# Questions that need neither thousands of messages at any scale nor seconds for other processes.
SMALL = sorted({*PEERS, *TO_THE_LIMIT} - {"eight_processes"})


@pytest.mark.parametrize("name", SMALL)
def test_a_question_measures_inorder_and_the_limit(name: str, tmp_path: Path) -> None:
    site = Site(folder=tmp_path / "disk", memory=tmp_path / "memory", systems=[Ours, Limit, Bare], scale=0.001)
    told: list[str] = []
    found = run(QUESTIONS[name], site, rounds=1, seconds=0.001, tell=told.append)
    expected = ["inorder", "the limit"]
    if name in BESIDE_THE_LIMIT:
        expected += ["inorder, in memory", "the limit, in memory"]
    assert [entry.name for entry in found.entries] == expected
    assert all(entry.values("rate") for entry in found.entries), found
    assert told == ["opening", "round 1 of 1"]


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes as Linux lists them")
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_run_and_its_servers_without_waiting_for_a_measurement(end: signal.Signals) -> None:
    if servers.SERVERS["postgresql"].program() is None:
        pytest.skip("needs PostgreSQL's server")
    parent = servers.temporary_folder(Path("/var/tmp"))
    try:
        words = ["eight_processes", "--seconds", "3600", "--systems", "inorder", "postgresql", "--parent", str(parent)]
        heeds = ["env", "--default-signal=HUP"]  # under nohup it would be ignored
        command = [*heeds, sys.executable, "-m", "benchmarks", *words, "--memory", str(parent / "none")]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
            try:
                assert process.stderr is not None
                assert any("round 1 of" in line for line in process.stderr), "it has not begun to measure"
                assert running_in(parent)
                process.send_signal(end)
                assert process.wait(60) == 128 + end
            finally:
                process.kill()
        assert (list(parent.iterdir()), running_in(parent)) == ([], [])
    finally:
        shutil.rmtree(parent)


IN_A_CALLBACK = """
import os, signal, time, weakref
from tools.ending import ended_by_signals

class Thing:
    pass

with ended_by_signals():
    thing = Thing()
    noted = weakref.ref(thing, lambda _: os.kill(os.getpid(), signal.SIGTERM))
    del thing
    time.sleep(3600)
"""


def test_a_signal_ends_a_tool_even_if_python_ignores_its_exception() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", IN_A_CALLBACK],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ended.returncode, "Exception ignored in" in ended.stderr) == (128 + signal.SIGTERM, True), ended.stderr


def running_in(folder: Path) -> list[int]:
    """The processes with this folder in their command, except the benchmark itself."""
    found = []
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has just ended
            words = one.read_bytes()
            if bytes(folder) in words and b"--parent" not in words:
                found.append(int(one.parent.name))
    return found


def test_every_question_has_its_name_and_bars_on_its_own_contestants(tmp_path: Path) -> None:
    site = Site(folder=tmp_path, memory=tmp_path, systems=[Ours, Limit, Bare], ports={"PostgreSQL": 5432})
    peers = "Redis Streams;Redis lists;PostgreSQL;NATS JetStream;RabbitMQ;persist-queue;litequeue;Celery on Redis"
    for name, question in QUESTIONS.items():
        assert question.name == name
        names = {contestant.name for contestant in question.contestants(site)}
        for bar in question.bars:
            assert bar.of in names, f"{name}: nobody is called {bar.of!r}"
            against = bar.against or bar.of
            assert against in names or against.startswith(tuple(peers.split(";"))), (
                f"{name}: nobody is called {against!r}"
            )


# --- pages


def test_the_text_around_the_generated_part_of_a_page_is_kept(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{pages.BEGIN}\nold\n{pages.END}\nafter\n", encoding="utf-8")
    pages.rewrite(page, "new")
    text = f"before\n{pages.BEGIN}\n\nnew\n\n{pages.END}\nafter\n"
    assert page.read_text(encoding="utf-8") == text
    pages.rewrite(page, "new")
    assert page.read_text(encoding="utf-8") == text
    with pytest.raises(pages.PageError, match="has no two lines"):
        pages.replaced("nothing\n", "new")


@pytest.mark.parametrize("page", [pages.FIRST_PAGE, pages.PAGE, pages.DURABILITY], ids=lambda page: page.name)
def test_each_page_has_the_two_lines_that_mark_its_generated_part(page: Path) -> None:
    assert "new part" in pages.replaced(page.read_text(encoding="utf-8"), "new part")


def cells(text: str, after: str = "") -> dict[str, dict[str, str]]:
    """The first table after a heading: the cells of each row by system, without bold type and noise."""
    behind = itertools.dropwhile(lambda line: not line.startswith("|"), text[text.index(after) :].splitlines())
    lines = itertools.takewhile(lambda line: line.startswith("|"), behind)
    (_, *names), _, *rows = (
        [re.sub(r"\*\*| ±.*", "", cell.strip()) for cell in line.strip("|").split("|")] for line in lines
    )
    return {name: dict(zip(names, row, strict=True)) for name, *row in rows}


def test_both_pages_show_figures_of_the_same_run() -> None:
    first, page = (
        each.read_text(encoding="utf-8").partition(pages.BEGIN)[2].partition(pages.END)[0]
        for each in (pages.FIRST_PAGE, pages.PAGE)
    )
    shown, measured = cells(first), cells(page, "### Beside the others")
    rates = [(label, QUESTIONS[name].title) for name, figure, label in pages.FIRST_ROWS if figure == RATE]
    assert [label for label, _ in rates] == list(shown)[: len(rates)]
    for label, title in rates:
        there = measured[f"{title}, messages/s"]
        assert {name: cell for name, cell in shown[label].items() if cell} == there, f"{label}: run `make bench` again"
    assert "****" not in page  # a cell without a figure is not bold
    behind = re.findall(r"\(([^,()]+), (\d+\.\d+) times\)", " ".join(first.split()))
    assert bool(behind) is ("Others are ahead" in first)
    for name, times in behind:
        assert times in re.findall(rf"{re.escape(name)} is (\d+\.\d+) times", page), f"{name}: run `make bench` again"
    day = page.partition("Started ")[2][:10]
    assert f"{day}, medians of" in " ".join(first.split())


# --- command


def test_the_command_measures_inorder_and_the_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    places = ["--parent", str(tmp_path), "--memory", str(tmp_path), "--json", str(tmp_path / "found.json")]
    assert command.main(["limit", "--rounds", "1", "--seconds", "0.001", *places]) == 0
    shown = capsys.readouterr()
    assert shown.out.count("| memory |") == shown.out.count("| disk |") == len(BESIDE_THE_LIMIT)
    assert shown.out.count("rate / the limit") == 2 * len(BESIDE_THE_LIMIT)
    assert "rate / Redis Streams" not in shown.out, "a bar that nobody could measure is shown as judged"
    assert "1 of 6, put_one: round 1 of 1" in shown.err
    found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert [question["name"] for question in found["questions"]] == list(BESIDE_THE_LIMIT)
    assert [path.name for path in tmp_path.iterdir()] == ["found.json"]


def test_pages_are_written_only_after_a_whole_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A whole run of one small question writes them; a run of a part does not."""
    written = {"FIRST_PAGE": "README.md", "PAGE": "benchmarks.md", "DURABILITY": "durability.md"}
    for name, file in written.items():
        shutil.copy(getattr(pages, name), tmp_path / file)
        monkeypatch.setattr(pages, name, tmp_path / file)
    before = {file: (tmp_path / file).read_text(encoding="utf-8") for file in written.values()}
    monkeypatch.setattr(command, "QUESTIONS", {"put_one": QUESTIONS["put_one"]})
    monkeypatch.setattr(command, "PLACES", ("inorder", "limit"))
    monkeypatch.setattr(group_commit, "measure", lambda *_: [[0.001]])
    short = ["--pages", "--rounds", "1", "--seconds", "0.001", "--parent", str(tmp_path), "--memory", str(tmp_path)]
    command.main(["put_one", *short])
    assert {file: (tmp_path / file).read_text(encoding="utf-8") for file in written.values()} == before
    assert "stay as they are" in capsys.readouterr().err
    command.main(short)
    assert all((tmp_path / file).read_text(encoding="utf-8") != text for file, text in before.items())
