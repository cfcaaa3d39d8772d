"""Pictures of a queue over an hour, a day and a week: axes, values, gaps, and the samples of the server."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Sequence
from html import unescape

import httpx
import pytest
from tests.server.conftest import Served, serving, somebody
from tests.server.described import Described, refusal
from tests.server.test_console_pages import seen, words

from inorder import QueueManager, connect
from inorder.rules.history import RINGS, Activity, HistoryPoint, Period
from inorder.server import app
from inorder.server.console import watching
from inorder.server.console.history import of_recent, pictures, short
from inorder.server.console.watching import Recent
from inorder.stores.sqlite import SqliteStore
from inorder.testing import ManualClock

NOON = 1_764_417_600.0  # 2025-11-29 12:00:00 UTC, a Saturday


def texts(picture: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", picture)


def lived(served: Served, *counts: int, every: float, ago: float) -> None:
    """Puts this many messages before each sample, and gets one; the first sample is `ago` seconds old."""
    clock = ManualClock(time.time() - ago)
    with connect(SqliteStore(served.store, clock=clock)) as qm:
        for count in counts:
            qm.put_many("Q1", [b"x"] * count)
            qm.get("Q1")
            qm.internals.sample()
            clock.advance(every)


# --- a picture


def test_a_picture_has_axes_with_values_and_times() -> None:
    run = [Activity(NOON - 900, 120, age=0.5), Activity(NOON - 840, 300, 3.0, 0.5, age=125)]
    found = pictures("Q1", "hour", [run], NOON)
    assert texts(found.depth) == ["0", "200", "400", "11:15", "11:30", "11:45"]  # at 12:00 there is no room
    assert texts(found.rates) == ["0", "2", "4", "11:15", "11:30", "11:45"]
    assert 'aria-label="Depth of Q1, the last hour: 300 messages at the end, at most 300."' in found.depth
    assert 'aria-label="Messages a second on Q1, the last hour: at most 3 put, 0.5 got."' in found.rates
    assert texts(found.ages) == ["0", "2 min", "4 min", "11:15", "11:30", "11:45"]
    assert (
        'aria-label="Age of the oldest message on Q1, the last hour: 2 min 5 s at the end, at most 2 min 5 s."'
        in found.ages
    )
    seen = found.table
    assert seen == [(NOON - 840, "11:46", "300", "3", "0.5", "2 min 5 s"), (NOON - 900, "11:45", "120", "-", "-", "-")]


def test_a_line_goes_through_its_values() -> None:
    run = [Activity(NOON - 3_600, 0), Activity(NOON - 1_800, 100, 1.0, 1.0), Activity(NOON, 50, 1.0, 0.0)]
    found = pictures("Q1", "hour", [run], NOON)
    assert '<polyline class="line1" points="38.0,100.0 166.0,8.0 294.0,54.0"/>' in found.depth
    assert '<polygon points="38.0,100 38.0,100.0 166.0,8.0 294.0,54.0 294.0,100"/>' in found.depth
    assert '<polyline class="line1" points="166.0,8.0 294.0,8.0"/>' in found.rates
    assert '<polyline class="line2" points="166.0,8.0 294.0,100.0"/>' in found.rates


def test_a_gap_interrupts_the_line_and_a_single_value_is_a_dot() -> None:
    runs = [[Activity(NOON - 900, 1), Activity(NOON - 840, 2, 1.0, 1.0)], [Activity(NOON, 2)]]
    depth = pictures("Q1", "hour", runs, NOON).depth
    assert depth.count("<polyline") == 1
    assert '<circle class="line1" cx="294.0" cy="8.0" r="2"/>' in depth


@pytest.mark.parametrize(
    ("over", "times"),
    [
        ("minutes", ["11:56", "11:57", "11:58", "11:59"]),
        ("day", ["18:00", "00:00", "06:00"]),
        ("week", ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]),
    ],
)
def test_times_fit_the_period(over: str, times: list[str]) -> None:
    assert texts(pictures("Q1", over, [[Activity(NOON - 1, 1), Activity(NOON, 1)]], NOON).depth)[3:] == times


def test_fewer_than_two_values_have_no_picture() -> None:
    none, one = pictures("Q1", "day", [], NOON), pictures("Q1", "hour", [[Activity(NOON, 7, age=60)]], NOON)
    assert (none.depth, none.rates, none.ages, none.table) == ("", "", "", [])
    assert (one.depth, one.rates, one.ages) == ("", "", "")
    assert one.table == [(NOON, "12:00", "7", "-", "-", "1 min")]


@pytest.mark.parametrize(
    ("age", "labels"),
    [
        (0, ["0", "30 s", "1 min"]), (300, ["0", "3 min", "6 min"]), (3_599, ["0", "30 min", "1 h"]),
        (3_600, ["0", "30 min", "1 h"]), (50_000, ["0", "10 h", "20 h"]), (900_000, ["0", "10 d", "20 d"]),
    ],
)  # fmt: skip
def test_the_axis_of_ages_is_labelled_with_durations(age: float, labels: list[str]) -> None:
    run = [Activity(NOON - 60, 1, age=age), Activity(NOON, 1, 0.0, 0.0)]
    assert texts(pictures("Q1", "hour", [run], NOON).ages)[:3] == labels


def test_the_axes_of_an_idle_queue_have_a_height() -> None:
    run = [Activity(NOON - 60, 0), Activity(NOON, 0, 0.0, 0.0)]
    found = pictures("Q1", "hour", [run], NOON)
    assert texts(found.depth)[:3] == ["0", "1", "2"]
    assert texts(found.rates)[:3] == ["0", "0.5", "1"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"), (0.0, "0"), (1 / 60, "0.0167"), (0.5, "0.5"), (99.6, "99.6"), (100.4, "100"), (9_999, "9,999"),
        (12_500, "12.5k"), (1e6, "1M"), (2.5e9, "2.5G"),
    ],
)  # fmt: skip
def test_values_are_short(value: float | None, text: str) -> None:
    assert short(value) == text


def test_the_last_minutes_are_drawn_like_the_others() -> None:
    recent = Recent(
        put=1.0, got=0.0, puts=[1.0, 2.0], gets=[0.0, 0.5], depths=[3.0, 4.0, 6.0], ages=[0, 1, 2], seconds=2.0
    )
    assert of_recent(recent, NOON) == [
        [Activity(NOON - 2, 3), Activity(NOON - 1, 4, 1.0, 0.0, 1), Activity(NOON, 6, 2.0, 0.5, 2)]
    ]
    assert of_recent(Recent(), NOON) == []


# --- the page


def test_the_page_shows_the_hour_and_links_to_the_others(served: Served) -> None:
    lived(served, 4, 7, 1, every=60, ago=1_800)
    (page,) = seen(served, "queue/Q1?selector=x+%3D+1&order=physical")
    text = words(page)
    assert "Over time UTC 5 minutes hour day week Depth, the highest of each minute" in text
    assert 'aria-label="Depth of Q1, the last hour: 9 messages at the end, at most 9."' in page
    assert "Values time depth put/s got/s oldest" in text
    assert re.search(r"\d\d:\d\d 9 0\.0167 0\.0167 2 min \d\d:\d\d 9 0\.117 0\.0167 1 min \d\d:\d\d 3 - - - ", text)
    links = [unescape(one) for one in re.findall(r'href="([^"]*)#history"', page)]
    assert links == [
        f"/console/queue/Q1?selector=x+%3D+1&order=physical&over={over}" for over in ("minutes", "hour", "day", "week")
    ]
    assert '&amp;over=hour#history" aria-current="true">hour</a>' in page
    assert "<script" not in page.partition("<main")[2]


@pytest.mark.parametrize(("every", "shown"), [(900, "hour"), (7_200, "day"), (90_000, "week")])
def test_the_page_opens_on_the_first_period_that_has_two_values(served: Served, every: float, shown: str) -> None:
    lived(served, 4, 7, every=every, ago=2 * every)  # the server adds a current value
    (page,) = seen(served, "queue/Q1?order=physical")
    assert f'&amp;over={shown}#history" aria-current="true">{shown}</a>' in page
    assert f'aria-label="Depth of Q1, the last {shown}' in page
    assert '<input type="hidden" name="over"' not in page


async def test_the_page_opens_on_the_last_minutes_while_the_history_is_short(
    client: httpx.AsyncClient, qm: QueueManager
) -> None:
    await until_sampled(qm)
    page = words((await client.get("/console/queue/Q1?over=hour")).text)
    assert re.search(r"There is one value, a depth of 0 at \d\d:\d\d \. The pictures begin with the second; ", page)
    assert "there is one for each minute." in page
    while 'aria-current="true">5 minutes</a>' not in (page := (await client.get("/console/queue/Q1")).text):
        await asyncio.sleep(0.05)
    assert 'aria-label="Depth of Q1, the last 5 minutes: 0 messages at the end, at most 0."' in page


def test_the_overview_draws_the_depth_of_the_last_hour(served: Served, qm: QueueManager) -> None:
    qm.create_queue("NEW")
    lived(served, 4, 7, 1, every=60, ago=1_800)
    with connect(served.store) as one:
        one.delete_queue("NEW")
        one.create_queue("NEW")
    (page,) = seen(served, "")
    assert 'aria-label="depth of Q1 in the last hour, at most 9"' in page
    assert page.count('<polyline class="line1"') == len(re.findall('aria-label="depth of', page))
    assert "depth of NEW" not in page


def test_several_visits_read_the_last_hour_once(
    served: Served, qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "HOUR_READ_SECONDS", 1e6)
    monkeypatch.setattr(app, "_keep_history", asyncio.sleep)
    read, found = SqliteStore.history, list[int]()

    def counted(store: SqliteStore, queues: Sequence[str], period: Period) -> list[list[HistoryPoint]]:
        found.append(len(queues))
        return read(store, queues, period)

    monkeypatch.setattr(SqliteStore, "history", counted)
    seen(served, "", "", "")
    assert found == [len(qm.inspect.overview())]


@pytest.mark.parametrize("over", ["day", "week"])
def test_the_page_shows_a_longer_period(served: Served, over: str) -> None:
    lived(served, 2, 2, every=RINGS[over].seconds, ago=RINGS[over].seconds * 10)  # type: ignore[index]
    (page,) = seen(served, f"queue/Q1?over={over}&order=physical")
    assert f'aria-label="Depth of Q1, the last {over}: 2 messages at the end, at most 2."' in page
    assert f'<input type="hidden" name="over" value="{over}">' in page  # so that the selector keeps it


async def test_the_first_value_is_announced(client: httpx.AsyncClient, qm: QueueManager) -> None:
    await until_sampled(qm)
    qm.create_queue("NEW")
    page = (await client.get("/console/queue/NEW")).text
    assert "There is no value yet. The first appears within two minutes." in words(page)
    assert "<figure" not in page


def test_an_unknown_period_is_refused(served: Served) -> None:
    (page,) = seen(served, "queue/Q1?over=year", status=400)
    assert "'over' must be one of: minutes, hour, day, week, or left out" in words(page)


@serving(somebody("ada", "browse"))
async def test_a_user_who_may_browse_sees_the_history(client: httpx.AsyncClient, served: Served) -> None:
    lived(served, 3, 3, every=60, ago=300)

    assert "at most 4." in (await client.get("/console/queue/Q1")).text


# --- the interface


async def test_the_http_interface_returns_the_values_of_the_history(served: Served, ours: Described) -> None:
    lived(served, 4, 7, every=900, ago=9_000)
    answer = (await ours("history", over="day")).json()
    assert answer["slot_seconds"] == 900
    found = [(one["depth"], one["put"], one["got"]) for one in answer["values"][:2]]
    assert found == [(3, None, None), (9, 7 / 900, 1 / 900)]
    assert [one["age"] for one in answer["values"][:2]] == [0, 900]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", answer["values"][0]["at"])
    assert refusal(await ours("history", over="year"))[:2] == (400, "INWB0003E")
    assert refusal(await ours("history", queue="A/B")) == (404, "INWB0014E", 2085)


# --- the server


async def until_sampled(qm: QueueManager) -> None:
    while not qm.internals.history("Q1", "hour"):
        await asyncio.sleep(0.01)


def test_a_server_takes_a_sample_when_it_starts(served: Served, qm: QueueManager) -> None:
    async def work(client: httpx.AsyncClient) -> None:
        del client
        await until_sampled(qm)

    assert qm.internals.history("Q1", "hour") == []
    qm.put("Q1", b"x")
    served.run(work)
    assert {len(qm.internals.history("Q1", period)) for period in RINGS} == {1}


def test_a_sample_that_fails_is_logged_and_the_next_one_is_taken(
    served: Served, qm: QueueManager, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(app, "HISTORY_SECONDS", 0.01)
    monkeypatch.setattr(app, "HISTORY_SPREAD_SECONDS", 0.0)
    sample, errors = SqliteStore.sample, [OSError("broken"), RuntimeError("broken")]

    def failing(store: SqliteStore) -> int:
        if errors:
            raise errors.pop()
        return sample(store)

    monkeypatch.setattr(SqliteStore, "sample", failing)

    async def work(client: httpx.AsyncClient) -> None:
        await until_sampled(qm)
        assert (await client.get("/health")).status_code == 200

    with caplog.at_level(logging.WARNING):
        served.run(work)
    assert [one.getMessage() for one in caplog.records].count("the history of the queues has a gap") == 2
