"""Parts of the console that need no server: samples and rates, pictures, cursors, labels, bodies."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.helpers.support import StillClock

import inorder
import inorder.aio
from inorder.model.message import NO_ID, Place
from inorder.rules.puts import Program
from inorder.server.console import labels, listing
from inorder.server.console.held_messages import running
from inorder.server.console.labels import POINTS_MAX, WIDTH, sparkline
from inorder.server.console.queue import cursor_of, position_in
from inorder.server.console.watching import KEPT_SECONDS, Watching
from inorder.server.problems import Problem
from inorder.server.sampling import SampledQueues
from inorder.server.sessions import encoded
from inorder.stores.seam.views import ConnectionView, Position, QueueView


async def nothing() -> SampledQueues:
    return SampledQueues(0.0, [])


def view_of_a_queue() -> QueueView:
    with inorder.connect() as qm:
        qm.create_queue("Q1")
        return qm.inspect.overview()[0]


async def test_rates_are_taken_over_the_last_seconds() -> None:
    clock, one = StillClock(), view_of_a_queue()
    watching = Watching(nothing, clock)
    assert watching.recent(one).put is None
    for depth, arrived in ((0, 0), (10, 10), (5, 20)):
        await watching.see(SampledQueues(clock(), [replace(one, depth=depth, arrived=arrived)]))
        clock.now += 2
    recent = watching.recent(one)
    assert (recent.put, recent.got) == (5.0, 3.75)  # 20 put in 4 seconds, and 15 of them gone
    assert recent.puts == [5.0, 5.0]
    assert recent.gets == [0.0, 7.5]
    assert recent.depths == [0.0, 10.0, 5.0]
    assert recent.ages == [0.0, 0.0, 0.0]


async def test_a_recreated_queue_starts_without_samples_and_old_samples_are_dropped() -> None:
    clock, one = StillClock(), view_of_a_queue()
    watching = Watching(nothing, clock)
    for _ in range(3):
        await watching.see(SampledQueues(clock(), [one]))
        clock.now += KEPT_SECONDS / 2 + 1
    assert len(watching.recent(one).depths) == 2
    await watching.see(SampledQueues(clock(), [replace(one, created_at=one.created_at + 1)]))
    assert watching.recent(one).depths == ()


async def test_a_listener_is_notified_only_of_changes() -> None:
    one = view_of_a_queue()
    there: list[QueueView] = []

    clock = StillClock()

    async def look() -> SampledQueues:
        return SampledQueues(clock(), list(there))

    watching, stopping = Watching(look, clock), asyncio.Event()

    async def becomes(view: QueueView) -> None:
        there[:] = [view]
        await watching.see(SampledQueues(clock(), there))

    heard = watching.changes(stopping)
    await anext(heard)  # at once
    await becomes(one)
    await anext(heard)
    following = asyncio.ensure_future(anext(heard, "the end"))
    await becomes(one)
    for _ in range(10):
        await asyncio.sleep(0)
    assert not following.done(), "a look that is like the one before is no change"
    await becomes(replace(one, depth=1))
    assert await following is None
    stopping.set()
    assert await anext(heard, "the end") == "the end"
    await watching.close()


async def test_sampling_ends_a_minute_after_the_last_request() -> None:
    clock, looks = StillClock(), 0

    async def look() -> SampledQueues:
        nonlocal looks
        looks += 1
        clock.now += 45
        return SampledQueues(clock(), [])

    watching = Watching(look, clock, every=0)
    watching.want()
    assert watching.task is not None
    await watching.task
    assert looks == 2  # at 0 and at 45 seconds; at 90 nobody has asked for a minute


def test_a_picture_has_few_points_and_keeps_the_peak() -> None:
    picture = str(sparkline("<depth>", [0.0] * 500 + [9.0] + [0.0] * 500))
    assert 'aria-label="&lt;depth&gt;"' in picture
    line = picture.partition('class="line1" points="')[2].partition('"')[0].split()
    assert len(line) <= POINTS_MAX
    assert min(float(point.partition(",")[2]) for point in line) == 2.0


def test_a_level_stretch_of_a_picture_has_two_points() -> None:
    picture = str(sparkline("depth", [0.0, 0.0, 0.0, 0.0, 2.0, 2.0, 2.0, 0.0]))
    [points] = re.findall(r'polyline class="line1" points="([^"]*)"', picture)
    assert [round(float(one.partition(",")[0]) / WIDTH * 7) for one in points.split()] == [0, 3, 4, 6, 7]


def test_a_gap_interrupts_the_line_of_a_picture() -> None:
    picture = str(sparkline("depth", [None, 1.0, 3.0, None, 4.0, None, 2.0, 2.0]))
    lines = re.findall(r'polyline class="line1" points="([^"]*)"', picture)
    found = [[round(float(one.partition(",")[0]) / WIDTH * 7) for one in line.split()] for line in lines]
    assert found == [[1, 2], [6, 7]]


def test_a_picture_of_nothing_is_empty() -> None:
    assert "poly" not in sparkline("nothing", [], [1.0])


NUMBERS = st.integers(0, 2**63 - 1)
PLACES = st.builds(Place, st.integers(-(2**31), 0), NUMBERS, NUMBERS)
IDS = st.binary(min_size=len(NO_ID), max_size=len(NO_ID))


@given(st.builds(Position, st.integers(0, 2), PLACES, IDS, NUMBERS, NUMBERS, PLACES, NUMBERS))
def test_a_cursor_is_decoded_to_the_same_position(position: Position) -> None:
    assert position_in("physical", cursor_of(position)) == position


VALUES: list[Any] = [0, [0, 0, 0], "00" * len(NO_ID), 0, 0, [0, 0, 0], 0]  # in a valid cursor
ANY = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers())


@pytest.mark.parametrize(
    ("at", "value"), [(0, 3), (1, [0, 0]), (1, [0, 0, 2**64]), (2, "00"), (2, "zz"), (3, -1), (4, True), (6, 0.5)]
)
def test_a_cursor_with_one_wrong_value_is_refused(at: int, value: Any) -> None:
    assert position_in("physical", encoded(json.dumps(VALUES).encode())) is not None
    with pytest.raises(Problem) as refused:
        position_in("physical", encoded(json.dumps([*VALUES[:at], value, *VALUES[at + 1 :]]).encode()))
    assert refused.value.code == 400


@given(st.text() | st.lists(ANY, min_size=7, max_size=7).map(lambda values: encoded(json.dumps(values).encode())))
def test_any_text_is_refused_or_read_as_a_consistent_cursor(text: str) -> None:
    with contextlib.suppress(Problem):
        found = position_in("physical", text)
        assert found is None or position_in("physical", cursor_of(found)) == found


SPANS = {None: "", -3: "now", 0.9: "now", 1: "1 s", 61: "1 min 1 s", 3600: "1 h", 90_061: "1 d 1 h"}
SIZES = {1_023: "1023 B", 1_536: "1.5 KiB", 104_857_600: "100 MiB", 3 * 2**40: "3,072 GiB"}


def test_durations_and_sizes_have_short_labels() -> None:
    assert {seconds: labels.span(seconds) for seconds in SPANS} == SPANS
    assert {count: labels.size(count) for count in SIZES} == SIZES


@pytest.mark.parametrize(
    ("data", "views"),
    [
        (b"", ("text", "hex")),
        (b"[1]", ("json", "text", "hex")),
        (b"[1", ("text", "hex")),
        (b"[" * 100_000, ("text", "hex")),
        (b"[" + b"9" * 10_000 + b"]", ("text", "hex")),
        (b"\xff", ("hex",)),
        (b"a\0b", ("hex",)),
    ],
)
def test_the_views_of_a_body_depend_on_its_content(data: bytes, views: tuple[str, ...]) -> None:
    found = labels.shown_body(data, len(data))
    assert (found.views, found.view) == (views, views[0])


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (rb'["\u202e"]', r'"\u202e"'),  # it would reverse the text
        (rb'["\ud800"]', r'"\ud800"'),  # half a surrogate pair, which UTF-8 cannot encode
        (rb'["\u0007"]', r'"\u0007"'),
        ('["ü"]'.encode(), '"ü"'),
    ],
)
def test_json_escapes_of_characters_that_cannot_be_shown_stay_escapes(data: bytes, shown: str) -> None:
    text = labels.shown_body(data, len(data), "json").text
    assert shown in text
    text.encode()


@given(st.binary(max_size=200), st.integers(0, 200))
def test_every_body_has_a_view(data: bytes, more: int) -> None:
    found = labels.shown_body(data, len(data) + more, "json")
    assert found.view in found.views
    assert (found.cut > 0) == (more > 0 and len(data) > 0)


def test_connections_of_a_process_are_listed_together() -> None:
    """In a store on a server, each connection has the time at which it opened the store."""
    program = Program(name="shop", user="anna")

    def connected(number: int, process: int | None, host: str, since: float) -> ConnectionView:
        return ConnectionView(connection=number, program=program, process=process, host=host, since=since, opened=())

    there = [
        connected(1, 7, "10.0.0.1", 5.0),
        connected(2, 7, "10.0.0.1", 3.0),
        connected(3, 7, "10.0.0.2", 3.0),
        connected(4, 8, "", 1.0),
        connected(5, 8, "", 1.0),
        connected(6, 8, "", 2.0),  # another process that had the same number
        connected(7, None, "", 1.0),
        connected(8, None, "", 1.0),
    ]
    found = [(one.process, one.host, one.since, one.connections) for one in running(there, [], [])]
    assert sorted(found, key=str) == sorted(
        [
            (7, "10.0.0.1", 3.0, 2),
            (7, "10.0.0.2", 3.0, 1),
            (8, "", 1.0, 2),
            (8, "", 2.0, 1),
            (None, "", 1.0, 1),
            (None, "", 1.0, 1),
        ],
        key=str,
    )


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"a\nb", "a↵b"),
        (b"\xff\xfe", "ff fe"),
        (b"\xff" * listing.HEX_SHOWN, "ff " * (listing.HEX_SHOWN - 1) + "ff"),
        (b"\xff" * (listing.HEX_SHOWN + 1), "ff " * listing.HEX_SHOWN + "…"),
    ],
)
def test_a_row_has_an_ellipsis_only_if_its_body_is_truncated(body: bytes, text: str) -> None:
    with inorder.connect() as qm:
        qm.create_queue("Q1")
        qm.put("Q1", body)
        (sight,) = qm.inspect.look("Q1", preview=listing.PREVIEW)
        assert listing.row(sight).body == text


# Each time names its zone; test_console_acting_held.py checks all pages.
TEMPLATES = Path(labels.__file__).parent / "templates"


@pytest.mark.parametrize("zone", ["Pacific/Auckland", "America/New_York", "UTC"])
def test_a_time_is_in_utc_and_says_so_in_every_time_zone_of_the_server(
    zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        with monkeypatch.context() as changed:
            changed.setenv("TZ", zone)
            time.tzset()
            assert labels.clock(1_795_476_548.25) == "2026-11-23 23:29:08 UTC"
            assert labels.iso(1_795_476_548.25) == "2026-11-23T23:29:08.250Z"
            assert (labels.clock(None), labels.iso(None)) == ("", "")
    finally:
        time.tzset()


def test_templates_have_one_way_to_write_a_time() -> None:
    others = [one.name for one in TEMPLATES.iterdir() if one.name != "parts.html" and "| clock" in one.read_text()]
    assert others == [], "use the macros `when`, `moment` and `age` of parts.html"
