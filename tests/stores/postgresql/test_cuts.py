"""A connection is cut anywhere in a call: the caller learns what has happened, or that nobody can know it.

INORDER_LONG=1 cuts after every byte; otherwise, after some.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from typing import Literal

import pytest
from tests.helpers.interrupted import PORTIONS, disturbs_nobody, leaves_nothing_held
from tests.helpers.interrupting import IS_KNOWN
from tests.helpers.proxy import Proxy, Way
from tests.helpers.support import until
from tests.stores.postgresql.server import port_of, sessions
from tests.tiers import nightly

import inorder
from inorder import QueueManager
from inorder.errors import ConnectionBroken, OutcomeUnknown

LONG = bool(os.environ.get("INORDER_LONG"))
CUTS = 12  # of each exchange and direction, unless all are tried
Outcome = Literal["done", "broken", "unknown"]


POSSIBLE: dict[Outcome, list[list[bytes]]] = {"done": [[b"put"]], "broken": [[]], "unknown": [[], [b"put"]]}


def outcome_of(call: Callable[[], object]) -> Outcome:
    try:
        call()
    except ConnectionBroken:
        return "broken"
    except OutcomeUnknown:
        return "unknown"
    return "done"


def cuts(total: int) -> list[int]:
    return list(range(total)) if LONG else sorted({total * nth // CUTS for nth in range(CUTS)} | {total - 1})


def put(qm: QueueManager) -> Outcome:
    return outcome_of(lambda: qm.put("Q", b"put"))


def commit(qm: QueueManager) -> Outcome:
    return outcome_of(qm.commit)


def get(qm: QueueManager) -> Outcome:
    return outcome_of(lambda: qm.get("Q"))


class Exchange:
    """A call whose connection is cut, and its preparation."""

    def __init__(self, act: Callable[[QueueManager], Outcome], *, in_unit: bool = False) -> None:
        self.act, self.in_unit = act, in_unit

    def run(self, url: str, proxy: Proxy, way: Way | None, count: int) -> tuple[Outcome, dict[Way, int]]:
        qm = inorder.connect(url.replace(f":{port_of(url)}/", f":{proxy.port}/"), program="cut")
        try:
            qm.put("Q", b"warm")  # opens the handle, prepares the statements
            qm.get("Q")
            if self.in_unit:
                qm.unit_of_work().__enter__()
                qm.put("Q", b"put")
            before = dict(proxy.passed)
            if way is not None:
                proxy.cut_after(way, count)
            outcome = self.act(qm)
            passed: dict[Way, int] = {one: proxy.passed[one] - before[one] for one in proxy.passed}
        finally:
            proxy.cut()
            qm.internals.abandon()  # a close would commit
            until(lambda: not sessions(url, "cut"), "the server has come to the end of what it was sent")
        return outcome, passed


EXCHANGES = {"put": Exchange(put), "commit": Exchange(commit, in_unit=True)}


@pytest.mark.parametrize("name", ["commit", pytest.param("put", marks=nightly)])
@pytest.mark.parametrize("way", ["to server", "to client"])
def test_the_outcome_reported_after_a_cut_connection_is_true(
    url: str, qm: QueueManager, proxy: Proxy, name: str, way: Way
) -> None:
    exchange, told = EXCHANGES[name], set[Outcome]()
    outcome, passed = exchange.run(url, proxy, None, 0)
    assert outcome == "done"
    assert qm.get("Q").body == b"put"
    for count in cuts(passed[way]):
        outcome, _ = exchange.run(url, proxy, way, count)
        told.add(outcome)
        qm.inspect.units()  # cleans up after the connection that was cut
        found = [message.body for message in qm.browse("Q")]
        assert found in POSSIBLE[outcome], (count, outcome)
        for _ in found:
            qm.get("Q")
    if exchange.in_unit:  # a plain put is sent together with its commit, so its loss is never certain
        assert "broken" in told
    assert "unknown" in told
    assert list(qm.admin.check()) == []


@nightly
@pytest.mark.parametrize("way", ["to server", "to client"])
def test_a_put_repeated_with_its_unique_id_after_a_cut_leaves_one_message(
    url: str, qm: QueueManager, proxy: Proxy, way: Way
) -> None:
    exchange = EXCHANGES["put"]
    _, passed = exchange.run(url, proxy, None, 0)
    qm.get("Q")
    for count in cuts(passed[way]):
        uid = inorder.UniqueId(uuid.uuid4().hex[:8], count + 1)
        exchange = Exchange(lambda one, uid=uid: outcome_of(lambda: one.put("Q", b"put", uid=uid)))  # type: ignore[misc]
        outcome, _ = exchange.run(url, proxy, way, count)
        if outcome != "done":
            qm.put("Q", b"put", uid=uid, resend=True)
        assert [message.uid for message in qm.browse("Q")] == [uid], (count, outcome)
        qm.get("Q")
    assert list(qm.admin.check()) == []


# ---- an exception from outside, at any place of any call: nothing stays held

IS_LONG = bool(os.environ.get("INORDER_LONG"))
PLACES = 10**9 if IS_LONG else 12
RANDOM_PLACES = 100


@pytest.mark.skipif(not IS_KNOWN, reason="where exceptions come is written down for CPython 3.11")
@pytest.mark.parametrize("portion", [0, *(pytest.param(one, marks=nightly) for one in range(1, PORTIONS))])
def test_an_exception_at_any_place_leaves_nothing_held(url: str, portion: int) -> None:
    leaves_nothing_held(url, PLACES, portion)


@nightly
@pytest.mark.skipif(not IS_LONG, reason="it makes many connections: INORDER_LONG=1")
@pytest.mark.parametrize("how", ["signals", "threads"])
def test_exceptions_at_random_times_and_in_bursts_disturb_no_other_connection(url: str, how: str) -> None:
    disturbs_nobody(url, how, RANDOM_PLACES)
