"""The claim that a stream takes ahead, call by call: during reads, at stops, at deaths and at restarts."""

from __future__ import annotations

import atexit
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows
from tests.helpers.support import LIMIT_SECONDS, until
from tests.spark.calls import ALL, Make, as_logged, depth, held, put, put_group, read, taken

import inorder
import inorder.spark.drain
from inorder.client.bulk import ClaimReader
from inorder.errors import Fenced
from inorder.spark import planning
from inorder.spark.drain import DrainReader


def free(url: str) -> list[tuple[bytes, int]]:
    """The messages that could be got now, with their backout counts."""
    with inorder.connect(url) as qm:
        return [(message.body, message.backout_count) for message in qm.browse("Q")]


ONE, TWO = ReadMaxRows(1), ReadMaxRows(2)


def one_ahead(url: str, reader: Any) -> tuple[Any, Any]:
    """Puts three messages; the reader plans claim 1 and takes claim 2 ahead. Returns the offsets of claim 1."""
    put(url, b"1", b"2", b"3")
    start, end = taken(reader, ONE)
    reader.partitions(start, end)
    until(lambda: held(url) == [1, 2], "claim 2 is taken ahead")
    return start, end


def test_the_next_claim_is_taken_while_one_is_read(url: str, drain: Make) -> None:
    put(url, *[b"%d" % n for n in range(5)])
    reader = drain()
    offset, found = reader.initialOffset(), []
    for claims in ([1, 2], [2, 3], [3]):
        following = reader.latestOffset(offset, TWO)
        found += read(reader, offset, following)
        until(lambda claims=claims: held(url) == claims, f"claims {claims} hold messages")  # type: ignore[misc]
        if offset["claim"]:
            reader.commit(as_logged(offset))
        offset = following
    assert found == [[b"0", b"1"], [b"2", b"3"], [b"4"]]
    assert reader.latestOffset(offset, TWO) == offset
    assert read(reader, offset, offset) == []
    assert (depth(url), held(url)) == (0, [])


@pytest.mark.parametrize("comes", ["before", "as stop begins", "while it stops"])
def test_messages_taken_ahead_are_returned_whenever_the_planner_is_terminated(
    url: str, drain: Make, monkeypatch: pytest.MonkeyPatch, comes: str
) -> None:
    """Spark closes the planner's connection, which ends in `stop`, and sends SIGTERM: either may come first."""
    before, at_exit = signal.getsignal(signal.SIGTERM), list[Callable[[], object]]()
    monkeypatch.setattr(planning, "_is_planner", lambda: True)
    monkeypatch.setattr(atexit, "register", at_exit.append)

    def terminated() -> None:
        signal.raise_signal(signal.SIGTERM)

    try:
        reader = drain()
        one_ahead(url, reader)
        if comes == "before":
            with pytest.raises(SystemExit):
                terminated()
        if comes == "as stop begins":
            with monkeypatch.context() as patch:
                patch.setattr(inorder.spark.drain, "stop_though_terminated", terminated)
                with pytest.raises(SystemExit):
                    reader.stop()
            for stop in reversed(at_exit):
                stop()
        else:
            waits = reader._wait_for_thread

            def interrupted() -> None:
                terminated()
                waits()

            monkeypatch.setattr(reader, "_wait_for_thread", interrupted)
            reader.stop()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert held(url) == [1]


def test_messages_taken_ahead_are_withheld_from_others_until_the_query_stops(url: str, drain: Make) -> None:
    reader = drain()
    reader.stop()
    start, end = one_ahead(url, reader)
    assert (free(url), depth(url)) == ([(b"3", 0)], 3)
    reader.stop()
    reader.stop()
    assert (free(url), depth(url)) == ([(b"2", 0), (b"3", 0)], 3)
    assert read(drain(), start, end) == [[b"1"]]


def test_a_query_that_stops_removes_the_messages_of_finished_claims(url: str, drain: Make) -> None:
    reader = drain()
    _, end = one_ahead(url, reader)
    reader.latestOffset(end, ONE)
    assert held(url) == [1, 2]
    reader.stop()
    assert (held(url), depth(url)) == ([2], 2)


def test_another_limit_returns_the_messages_taken_ahead(url: str, drain: Make) -> None:
    put(url, *[b"%d" % n for n in range(6)])
    reader = drain()
    start, first = taken(reader, TWO)
    assert read(reader, start, first) == [[b"0", b"1"]]
    until(lambda: held(url) == [1, 2], "claim 2 is taken ahead")
    second = reader.latestOffset(first, ReadMaxRows(3))
    assert read(reader, first, second) == [[b"2", b"3", b"4"]]


def test_messages_taken_ahead_by_a_dead_query_return_at_the_next_start(url: str, drain: Make) -> None:
    dead = drain()
    start, end = one_ahead(url, dead)
    successor = drain()
    assert read(successor, start, end) == [[b"1"]]
    assert free(url) == [(b"2", 0), (b"3", 0)]
    dead.stop()
    assert held(url) == [1], "the later start sees to it"
    assert read(successor, end, successor.latestOffset(end, ALL)) == [[b"2", b"3"]]


def test_a_confirm_waits_until_the_next_claim_is_taken_ahead(
    url: str, drain: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(url, b"1", b"2", b"3")
    reader = drain()
    waited_for, waits = threading.Event(), DrainReader._wait_for_thread

    def wait(self: DrainReader) -> None:
        waited_for.set()
        waits(self)

    monkeypatch.setattr("inorder.spark.points.reached", lambda at: at != "confirmed" or waited_for.wait(LIMIT_SECONDS))
    start, first = taken(reader, ONE)
    monkeypatch.setattr(DrainReader, "_wait_for_thread", wait)
    reader.partitions(start, first)
    assert held(url) == [1], "nothing is taken ahead before the confirm waits for it"
    reader.commit(as_logged(first))
    assert read(reader, first, reader.latestOffset(first, ONE)) == [[b"2"]]


@pytest.mark.parametrize(
    ("options", "limit", "bodies"),
    [({"prefetch": "false"}, 1, 3), ({}, 3, 3), ({}, None, 3), ({"order": "logical"}, 1, "group")],
    ids=["not wanted", "nothing left behind", "no limit", "inside a group"],
)
def test_no_claim_is_taken_ahead_without_need_or_limit_or_inside_a_group(
    url: str, drain: Make, monkeypatch: pytest.MonkeyPatch, options: dict[str, str], limit: int | None, bodies: Any
) -> None:
    put_group(url, b"1", b"2", b"3") if bodies == "group" else put(url, *[b"x"] * bodies)
    reader = drain(**options)
    start, end = taken(reader, ALL if limit is None else ReadMaxRows(limit))
    begun: list[str] = []
    claimed: list[list[int]] = []
    monkeypatch.setattr("inorder.spark.points.reached", begun.append)
    reader.partitions(start, end)
    until(lambda: "confirmed" in begun, "the thread has begun")
    monkeypatch.setattr(ClaimReader, "return_ahead", lambda _: claimed.append(held(url)))
    reader.stop()
    assert claimed == [[1]]


def test_messages_put_after_an_available_now_run_began_are_not_taken_ahead(url: str, drain: Make) -> None:
    put(url, b"1", b"2")
    reader = drain()
    reader.prepareForTriggerAvailableNow()
    put(url, b"3")
    start, first = taken(reader, ONE)
    reader.partitions(start, first)
    until(lambda: held(url) == [1, 2], "claim 2 is taken ahead")
    second = reader.latestOffset(first, ONE)
    assert read(reader, first, second) == [[b"2"]]
    assert reader.latestOffset(second, ONE) == second
    assert free(url) == [(b"3", 0)]


def test_an_error_of_the_thread_is_raised_by_the_next_call(url: str, drain: Make) -> None:
    old = drain()
    start, end = one_ahead(url, old)
    drain().partitions(start, end)
    with pytest.raises(Fenced):
        old.latestOffset(end, ONE)
    old.stop()


def test_each_claim_has_one_background_thread_although_spark_plans_twice(
    url: str, drain: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(url, b"1", b"2", b"3")
    reader = drain()
    start, end = taken(reader, ONE)
    begun: list[str] = []
    both_planned = threading.Event()

    def reached(point: str) -> None:
        if point == "confirming":
            begun.append(point)
            both_planned.wait(LIMIT_SECONDS)

    monkeypatch.setattr("inorder.spark.points.reached", reached)
    for _ in range(2):  # as for a query that reads the stream in two places
        reader.partitions(start, end)
    both_planned.set()
    second = reader.latestOffset(end, ONE)
    assert read(reader, end, second) == [[b"2"]]
    reader.stop()
    assert len(begun) == 2, "one thread for each claim: a connection has one call in progress at a time"
