"""Selectors in calls: what a search finds is what the evaluator says of each message, however far and in steps."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.test_scenarios import SCENARIOS, label

import inorder
from inorder import ArgumentError, GetOptions, Match, NoMessageAvailable, OptionsError, OrderPending, QueueManager
from inorder.keywords import get_options
from inorder.message import Message
from inorder.options import DEFAULT_GET
from inorder.rules.selectors import compile_selector
from inorder.stores import ahead, getting
from inorder.stores.ahead import Ahead
from inorder.stores.queue import LocalQueue
from inorder.stores.store import QueueStore
from inorder.testing import STORES, Scenario, run_scenario
from inorder.testing.clock import ManualClock

OF_SELECTORS = [one for one in SCENARIOS if one.file.endswith("selectors.txt")]
KINDS = sorted(STORES)


@contextmanager
def connected(kind: str) -> Iterator[QueueManager]:
    store = STORES[kind](ManualClock())
    try:
        with inorder.connect(store) as connection:
            yield connection
    finally:
        store.close_store()


@pytest.fixture
def qm(request: pytest.FixtureRequest) -> Iterator[QueueManager]:
    with connected(request.param) as connection:
        connection.create_queue("Q")
        yield connection


@pytest.fixture
def in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every search goes far at its second message, and each step looks at two."""
    monkeypatch.setattr(getting, "NOT_YET", Ahead(asks=1))
    monkeypatch.setattr(ahead, "STEP", 2)


on_all_stores = pytest.mark.parametrize("qm", KINDS, indirect=True)


@pytest.mark.parametrize("store", KINDS)
@pytest.mark.parametrize("scenario", OF_SELECTORS, ids=label)
@pytest.mark.usefixtures("in_steps")
def test_the_table_holds_in_steps(scenario: Scenario, store: str) -> None:
    failure = run_scenario(scenario, store)
    assert failure is None, str(failure)


# --- what fits

SELECTORS = [
    "n = 1",
    "n <> 1",
    "n > 0 AND s LIKE 'a%'",
    "n IS NULL OR s IN ('a', 'B')",
    "s > 5",
    "s = 'ABC'",
    "NOT (b OR n = 2.0)",
    "n / 0 = 1 OR JMSPriority BETWEEN 3 AND 5",
    "Root.MQMD.Persistence = 1 AND Root.MQMD.Priority > n",
    "JMSCorrelationID = 'c'",
]
VALUES = {
    "n": st.sampled_from([0, 1, 2, 2.0, "1", None]),
    "s": st.sampled_from(["a", "abc", "ABC", "B", 7]),
    "b": st.sampled_from([True, False, b"\1"]),
}
fields = st.fixed_dictionaries(
    {"properties": st.fixed_dictionaries({}, optional=VALUES)},
    optional={
        "priority": st.integers(0, 9),
        "persistent": st.booleans(),
        "correlation_id": st.sampled_from([b"c", b"d"]),
    },
)


@pytest.mark.parametrize("kind", KINDS)
@given(messages=st.lists(fields, max_size=8), text=st.sampled_from(SELECTORS), strict=st.booleans(), far=st.booleans())
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_browse_shows_what_fits_and_gets_take_the_same(
    kind: str, messages: list[dict[str, Any]], text: str, strict: bool, far: bool
) -> None:
    with pytest.MonkeyPatch.context() as patched, connected(kind) as qm:
        if far:
            patched.setattr(getting, "NOT_YET", Ahead(asks=1))
            patched.setattr(ahead, "STEP", 2)
        qm.create_queue("Q", read_order="strict" if strict else "relaxed")
        for number, one in enumerate(messages):
            qm.put("Q", str(number).encode(), **one)
        selector = compile_selector(text)
        all_ = list(qm.browse("Q"))
        fitting = [
            one.body
            for one in all_
            if selector.matches({name: getattr(one, name) for name in selector.fields}, one.properties) is True
        ]
        assert [one.body for one in qm.browse("Q", selector=text)] == fitting
        assert [one.message.body for one in qm.look("Q", match=Match(selector=text))] == fitting
        assert got(qm, selector=text) == fitting
        assert sorted(one.body for one in qm.browse("Q")) == sorted({one.body for one in all_} - set(fitting))


def got(qm: QueueManager, **options: Any) -> list[bytes]:
    bodies = []
    while True:
        try:
            bodies.append(qm.get("Q", **options).body)
        except NoMessageAvailable:
            return bodies


# --- in steps, and others meanwhile


def between(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Does something once, behind the first step of a search."""
    step, acts = QueueStore._step_ahead, iter([act])

    def then(store: QueueStore, *given: Any) -> Ahead:
        found = step(store, *given)
        next(acts, lambda: None)()
        return found

    monkeypatch.setattr(QueueStore, "_step_ahead", then)


@on_all_stores
@pytest.mark.usefixtures("in_steps")
def test_what_another_takes_meanwhile_is_not_got(qm: QueueManager, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in (0, 0, 0, 0, 1, 0, 0, 1):
        qm.put("Q", b"", properties={"n": n})
    first = next(one.token for one in qm.browse("Q") if one.properties["n"])
    with qm.connect() as other:
        between(monkeypatch, lambda: other.get("Q", match=Match(token=first)))
        assert qm.get("Q", selector="n = 1").token != first
    assert qm.depth("Q") == 6


@on_all_stores
@pytest.mark.usefixtures("in_steps")
def test_strictly_what_is_held_meanwhile_withholds(qm: QueueManager, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in (0, 0, 0, 0, 1, 0, 0, 1):
        qm.put("Q", b"", properties={"n": n})
    first = next(one.token for one in qm.browse("Q") if one.properties["n"])
    with qm.connect() as other:
        between(monkeypatch, lambda: other.get("Q", match=Match(token=first), syncpoint=True))
        with pytest.raises(OrderPending):
            qm.get("Q", selector="n = 1", read_order="strict")
        other.back_out()
    assert qm.get("Q", selector="n = 1", read_order="strict").token == first


@on_all_stores
@pytest.mark.usefixtures("in_steps")
def test_strictly_what_comes_back_meanwhile_is_got_first(qm: QueueManager, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in (0, 0, 1, 0, 0, 0, 0, 1):
        qm.put("Q", b"", properties={"n": n})
    with qm.connect() as other:
        held = other.get("Q", selector="n = 1", syncpoint=True)
        between(monkeypatch, other.back_out)
        assert qm.get("Q", selector="n = 1", read_order="strict").token == held.token


@pytest.mark.parametrize("qm", sorted(STORES.keys() - {"memory"}), indirect=True)
@pytest.mark.parametrize("order", ["relaxed", "strict"])
def test_no_verb_asks_a_selector_often(qm: QueueManager, order: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever writes waits for one verb at most."""
    asked, selects = [], LocalQueue.selects

    def counted(queue: LocalQueue, *given: Any) -> bool:
        found = selects(queue, *given)
        asked.append(queue.asked)
        return found

    monkeypatch.setattr(LocalQueue, "selects", counted)
    qm.alter_queue("Q", max_depth=9_000)
    qm.put_many("Q", [Message(b"", properties={"n": n}) for n in range(3_000)])
    assert qm.get("Q", selector="n = 2999", read_order=order).properties["n"] == 2999
    assert list(qm.browse("Q", selector="n = 2999", read_order=order)) == []
    assert len(asked) > 6_000
    assert max(asked) <= ahead.STEP


# --- what is refused


def group_of(qm: QueueManager, match: Match) -> object:
    return list(qm.get_group("Q", match=match))


CALLS: dict[str, Callable[[QueueManager, str], object]] = {
    "get": lambda qm, text: qm.get("Q", selector=text),
    "get, as an option": lambda qm, text: qm.get("Q", GetOptions(match=Match(selector=text))),
    "get_many": lambda qm, text: qm.get_many("Q", 3, selector=text, syncpoint=True),
    "get that waits": lambda qm, text: qm.get("Q", selector=text, wait=60),
    "browse": lambda qm, text: list(qm.browse("Q", selector=text)),
    "browse_first": lambda qm, text: qm.open("Q", browse=True).browse_first(selector=text, mark_handle=True),
    "browse_and_lock": lambda qm, text: qm.browse_and_lock("Q", Match(selector=text)),
    "look": lambda qm, text: qm.look("Q", match=Match(selector=text)),
    "get_group": lambda qm, text: group_of(qm, Match(selector=text)),
    "get_stream": lambda qm, text: qm.get_stream("Q", io.BytesIO(), match=Match(selector=text)),
}


@on_all_stores
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("text", "reason"),
    [("n =", 2459), ("'a' > 3", 2459), ("Root.MQMD.Nope = 1", 2459), ("1 = 2", 2504), ("", 2519), (7, 2519)],
)
def test_a_bad_selector_is_refused_and_nothing_is_changed(qm: QueueManager, call: str, text: Any, reason: int) -> None:
    qm.put("Q", b"x", properties={"n": 1})
    with pytest.raises(ArgumentError) as refused:
        CALLS[call](qm, text)
    assert refused.value.reason == reason
    assert (qm.depth("Q"), [one.state for one in qm.look("Q")]) == (1, ["available"])
    assert not qm.units()


def test_a_put_selects_nothing() -> None:
    with inorder.connect() as qm:
        qm.create_queue("Q")
        with pytest.raises(OptionsError) as refused:
            qm.put("Q", b"", selector="n = 1")  # type: ignore[call-arg]
        assert refused.value.reason == 2516
        assert qm.depth("Q") == 0


def test_the_keyword_is_the_selector_of_the_match() -> None:
    both = GetOptions(match=Match(priority=3, selector="n = 1"))
    assert get_options({"selector": "n = 1", "match": Match(priority=3)}, None, DEFAULT_GET) == both
    assert get_options({"selector": "n = 1"}, GetOptions(match=Match(priority=3)), DEFAULT_GET) == both
    assert get_options({"selector": None}, both, DEFAULT_GET) == GetOptions(match=Match(priority=3))
    with pytest.raises(ArgumentError, match="match"):
        get_options({"selector": "n = 1", "match": 3}, None, DEFAULT_GET)


def test_a_match_with_a_selector_is_a_value() -> None:
    match = Match(priority=3, selector="n = 1")
    assert match
    assert Match(selector="n = 1")
    assert match == Match(selector="n = 1", priority=3) != Match(priority=3)
    assert copy.copy(match) == pickle.loads(pickle.dumps(match)) == match
    assert match.selecting(None) == Match(priority=3)
    assert repr(match) == "Match(priority=3, selector='n = 1')"
