"""Selectors in calls: a search, long or in steps, finds the messages that the evaluator accepts."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from inorder_scenarios import Scenario, run_scenario
from tests.helpers.support import waiting
from tests.histories.test_scenarios import SCENARIOS, label
from tests.tiers import EVERY, every_store, nightly

import inorder
from inorder import ArgumentError, GetOptions, Match, NoMessageAvailable, OrderPending, QueueManager
from inorder.client.keywords import get_options
from inorder.errors import OptionsError
from inorder.model.message import Message
from inorder.model.options import DEFAULT_GET
from inorder.rules import selectors
from inorder.rules.selectors import Selector, compile_selector
from inorder.stores.engine import getting, incremental_search
from inorder.stores.engine.incremental_search import Ahead
from inorder.stores.engine.operation import Operation
from inorder.stores.engine.store import QueueStore
from inorder.stores.seam.queued import ASKS_MAX, STEP
from inorder.testing import STORES
from inorder.testing.clock import ManualClock

OF_SELECTORS = [one for one in SCENARIOS if one.file.endswith("selectors.txt")]


@contextmanager
def connected(kind: str) -> Iterator[QueueManager]:
    store = STORES[kind](ManualClock())
    try:
        with inorder.connect(store) as connection:
            yield connection
    finally:
        store.close_store()


@pytest.fixture
def in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes every search continue in steps from its second message, with two messages per step."""
    monkeypatch.setattr(getting, "NOT_YET", Ahead(asks=1))
    monkeypatch.setattr(incremental_search, "STEP", 2)


@pytest.mark.parametrize("store", EVERY)
@pytest.mark.parametrize("scenario", OF_SELECTORS, ids=label)
@pytest.mark.usefixtures("in_steps")
def test_the_selector_scenarios_hold_if_a_search_is_made_in_steps(scenario: Scenario, store: str) -> None:
    failure = run_scenario(scenario, store)
    assert failure is None, str(failure)


# --- messages that match

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


@pytest.mark.parametrize("kind", EVERY)
@given(messages=st.lists(fields, max_size=8), text=st.sampled_from(SELECTORS), strict=st.booleans(), far=st.booleans())
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_browse_shows_the_matching_messages_and_gets_take_the_same_ones(
    kind: str, messages: list[dict[str, Any]], text: str, strict: bool, far: bool
) -> None:
    with pytest.MonkeyPatch.context() as patched, connected(kind) as qm:
        if far:
            patched.setattr(getting, "NOT_YET", Ahead(asks=1))
            patched.setattr(incremental_search, "STEP", 2)
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
        assert [one.message.body for one in qm.inspect.look("Q", match=Match(selector=text))] == fitting
        assert got(qm, selector=text) == fitting
        assert sorted(one.body for one in qm.browse("Q")) == sorted({one.body for one in all_} - set(fitting))


def got(qm: QueueManager, **options: Any) -> list[bytes]:
    bodies = []
    while True:
        try:
            bodies.append(qm.get("Q", **options).body)
        except NoMessageAvailable:
            return bodies


# --- changes by others between the steps


def between(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object], step: str = "_step_ahead") -> None:
    """Calls `act` once, after the first step of a search."""
    original, acts = getattr(QueueStore, step), iter([act])

    def then(store: QueueStore, *given: Any) -> Ahead:
        found: Ahead = original(store, *given)
        next(acts, lambda: None)()
        return found

    monkeypatch.setattr(QueueStore, step, then)


def numbered(qm: QueueManager, *numbers: int, **fields: Any) -> None:
    """Puts a message for each number, with the number as its property `n`."""
    for n in numbers:
        qm.put("Q", b"", properties={"n": n}, **fields)


@every_store
@pytest.mark.usefixtures("in_steps")
def test_a_message_that_another_takes_during_a_search_is_not_got(
    qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbered(qm, 0, 0, 0, 0, 1, 0, 0, 1)
    first = next(one.token for one in qm.browse("Q") if one.properties["n"])
    with qm.connect() as other:
        between(monkeypatch, lambda: other.get("Q", match=Match(token=first)))
        assert qm.get("Q", selector="n = 1").token != first
    assert qm.depth("Q") == 6


@every_store
@pytest.mark.usefixtures("in_steps")
def test_a_message_that_another_gets_during_a_strict_search_withholds_the_call(
    qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbered(qm, 0, 0, 0, 0, 1, 0, 0, 1)
    first = next(one.token for one in qm.browse("Q") if one.properties["n"])
    with qm.connect() as other:
        between(monkeypatch, lambda: other.get("Q", match=Match(token=first), syncpoint=True))
        with pytest.raises(OrderPending):
            qm.get("Q", selector="n = 1", read_order="strict")
        other.back_out()
    assert qm.get("Q", selector="n = 1", read_order="strict").token == first


@every_store
@pytest.mark.usefixtures("in_steps")
def test_a_message_that_is_backed_out_during_a_strict_search_is_got_first(
    qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbered(qm, 0, 0, 1, 0, 0, 0, 0, 1)
    with qm.connect() as other:
        held = other.get("Q", selector="n = 1", syncpoint=True)
        between(monkeypatch, other.back_out)
        assert qm.get("Q", selector="n = 1", read_order="strict").token == held.token


@every_store
@pytest.mark.usefixtures("in_steps")
@pytest.mark.parametrize("order", ["relaxed", "strict"])
def test_a_message_of_higher_priority_that_is_put_during_a_search_is_got_first(
    qm: QueueManager, order: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only priority decides, not the messages that the search has passed (B-11, R3.14)."""
    numbered(qm, 0, 0, 0, 0, 1, priority=4)
    with qm.connect() as other:
        between(monkeypatch, lambda: other.put("Q", b"", priority=5, properties={"n": 1}))
        assert qm.get("Q", selector="n = 1", read_order=order).priority == 5
    assert qm.get("Q", selector="n = 1", read_order=order).priority == 4


@every_store
@pytest.mark.usefixtures("in_steps")
def test_get_many_keeps_the_order_if_a_message_is_taken_during_its_search(
    qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbered(qm, *range(12))
    with qm.connect() as other:
        between(monkeypatch, lambda: other.get("Q", selector="n = 0"))
        found = qm.get_many("Q", 3, selector="n = 0 OR n = 3 OR n > 7")
    assert [one.properties["n"] for one in found] == [3, 8, 9]


@every_store
@pytest.mark.usefixtures("in_steps")
def test_a_matching_message_that_is_backed_out_during_a_search_is_locked_too(
    qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbered(qm, 1, 0, 1, 0, 0, 1, 0, 1)
    with qm.connect() as other:
        other.get("Q", selector="n = 1", syncpoint=True)
        between(monkeypatch, other.back_out, "_step_to_lock")
        locked = qm.browse_and_lock("Q", Match(selector="n = 1"), most=3)
    assert [one.place.number for one in locked.messages if one.place] == [1, 3, 6]
    assert [one.state for one in qm.inspect.look("Q")].count("locked") == 3


FAR = 3_000
MANY: dict[str, Callable[[QueueManager, str], object]] = {
    "get": lambda qm, text: qm.get("Q", selector=text),
    "strict get": lambda qm, text: qm.get("Q", selector=text, read_order="strict"),
    "strict get by what changes with time": lambda qm, text: qm.get(
        "Q", selector=f"{text} AND Root.MQMD.Expiry = -1", read_order="strict"
    ),
    "get by what others change": lambda qm, text: qm.get("Q", selector=f"{text} AND JMSXDeliveryCount = 1"),
    "get with notice": lambda qm, text: qm.get("Q", selector=text, read_order="notify"),
    "get_many": lambda qm, text: qm.get_many("Q", 2, selector=text),
    "get by a lock id": lambda qm, text: qm.get("Q", selector=text, lock_id=qm.browse_and_lock("Q").lock_id),
    "browse": lambda qm, text: list(qm.browse("Q", selector=text)),
    "strict browse": lambda qm, text: list(qm.browse("Q", selector=text, read_order="strict")),
    "browse_and_lock": lambda qm, text: qm.browse_and_lock("Q", Match(selector=text)),
    "look": lambda qm, text: list(qm.inspect.look("Q", match=Match(selector=text))),
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts the evaluations of selectors in each operation."""
    counts = [0]
    begin, compiled = Operation.begin, selectors._compiled

    def begins(verb: Operation) -> None:
        begin(verb)
        counts.append(0)

    def counted(text: str) -> Selector:
        one = compiled(text)

        def matches(*given: Any) -> bool | None:
            counts[-1] += 1
            return one.matches(*given)

        return Selector(text, one.names, one.fields, matches)

    monkeypatch.setattr(Operation, "begin", begins)
    monkeypatch.setattr(selectors, "_compiled", counted)
    return counts


NAIVE = {"look", "get with notice"}  # calls that the memory store makes in one operation


@nightly
@pytest.mark.parametrize(
    ("kind", "call"),
    [
        pytest.param(*kind.values, call, marks=kind.marks)
        for kind in EVERY
        for call in MANY
        if kind.values != ("memory",) or call not in NAIVE
    ],
    indirect=["kind"],
)
def test_no_operation_evaluates_a_selector_more_often_than_a_limit(
    qm: QueueManager, call: str, asked: list[int]
) -> None:
    """So a writer waits for one short operation at most, during any kind of search."""
    qm.alter_queue("Q", max_depth=9_000)
    qm.put_many("Q", [Message(b"", properties={"n": n}) for n in range(FAR)])
    MANY[call](qm, f"n = {FAR - 1}")
    assert sum(asked) >= FAR
    assert max(asked) <= STEP + ASKS_MAX


@every_store
def test_an_operation_evaluates_fewer_messages_if_their_properties_are_long(qm: QueueManager, asked: list[int]) -> None:
    qm.put_many("Q", [Message(b"", properties={"n": n, "s": "x" * 32_000}) for n in range(100)])
    assert next(iter(qm.browse("Q", selector="n = 99"))).properties["n"] == 99
    assert max(asked) <= STEP // 32 + 1


@every_store
def test_an_operation_evaluates_fewer_messages_if_the_selector_is_long(qm: QueueManager, asked: list[int]) -> None:
    qm.put_many("Q", [Message(b"", properties={"n": n}) for n in range(100)])
    text = " OR ".join(["n = -1"] * 1_000) + " OR n = 99"
    assert qm.get("Q", selector=text).properties["n"] == 99
    assert sum(asked) >= 100
    assert max(asked) <= STEP * selectors.WEIGHING // len(text) + 1


@every_store
@pytest.mark.parametrize("order", ["relaxed", "strict"])
def test_a_waiting_call_resumes_after_the_messages_it_has_seen(qm: QueueManager, order: Any, asked: list[int]) -> None:
    """Also past matching messages that others hold; it returns to them when they are free."""
    qm.put_many("Q", [Message(b"", properties={"n": n}) for n in range(FAR)])
    with qm.connect() as other, qm.connect() as reader:
        held = other.get("Q", selector="n = 5", syncpoint=True)
        if order == "relaxed":
            taken = other.get("Q", selector=f"n = {FAR - 5}", syncpoint=True)
        text = f"n IN (5, {FAR - 5}, -1)" if order == "relaxed" else "n IN (5, -1)"
        call = waiting(reader, lambda: reader.get("Q", selector=text, wait=600, read_order=order))
        before = sum(asked)
        for n in range(10):
            qm.put("Q", b"", properties={"n": -2 - n})
            call.sleeps(reader)
        assert sum(asked) - before < FAR // 4
        other.back_out()
        assert call.result().token == held.token
    if order == "relaxed":
        assert qm.get("Q", selector=f"n = {FAR - 5}").token == taken.token


@every_store
def test_a_waiting_call_searches_again_from_the_start_for_fields_that_others_can_change(qm: QueueManager) -> None:
    qm.put_many("Q", [Message(b"", properties={"n": n}) for n in range(2 * ASKS_MAX)])
    with qm.connect() as other, qm.connect() as reader:
        text = "JMSXDeliveryCount = 2 AND n = 5"
        call = waiting(reader, lambda: reader.get("Q", selector=text, wait=600))
        other.get("Q", selector="n = 5", syncpoint=True)
        call.sleeps(reader)
        other.back_out()
        assert call.result().backout_count == 1


@every_store
@pytest.mark.usefixtures("in_steps")
def test_a_waiting_call_searches_again_from_the_start_if_it_could_not_note_all_held_messages(
    qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incremental_search, "NOTED_MAX", 1)
    numbered(qm, 0, 1, 0, 1, 0, 1)
    with qm.connect() as other, qm.connect() as reader:
        kept = [other.get("Q", selector="n = 1", confirm_id=number) for number in (1, 2, 3)]
        call = waiting(reader, lambda: reader.get("Q", selector="n = 1", wait=600))
        other.undo("Q", confirm_id=3)
        assert call.result().token == kept[2].token


@pytest.mark.usefixtures("in_steps")
def test_a_strict_search_computes_the_remaining_expiry_at_its_beginning(
    qm: QueueManager, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a message that was passed could match before the call decides."""
    for expiry in (900, 900, 900, 900, 410, 300):
        qm.put("Q", b"%d" % expiry, expiry=expiry)
    between(monkeypatch, lambda: clock.advance(20))
    assert qm.get("Q", selector="Root.MQMD.Expiry < 4000", read_order="strict").body == b"300"


@every_store
@pytest.mark.usefixtures("in_steps")
def test_a_pending_message_withholds_matching_messages_far_behind_it_in_strict_order(qm: QueueManager) -> None:
    """Only a pending message that matches, on the same level, withholds it (B-11, B-34)."""
    numbered(qm, 0, 1, 0, 0, 0, 0, 0, 1, priority=5)
    with qm.connect() as other:
        other.get("Q", selector="n = 1", syncpoint=True)
        with pytest.raises(OrderPending):
            qm.get("Q", selector="n = 1", read_order="strict")
        assert qm.get("Q", selector="n = 0", read_order="strict").place is not None
        qm.put("Q", b"", properties={"n": 1}, priority=3)
        assert qm.get("Q", selector="n = 1", read_order="strict").priority == 3
        other.back_out()
    assert [one.place.number for one in qm.get_many("Q", 9, selector="n = 1", read_order="strict")] == [2, 8]


# --- refusals


def test_a_put_refuses_a_selector(qm: QueueManager) -> None:
    with pytest.raises(OptionsError) as refused:
        qm.put("Q", b"", selector="n = 1")  # type: ignore[call-arg]
    assert refused.value.reason == 2516
    assert qm.depth("Q") == 0


def test_the_selector_keyword_is_the_selector_of_the_match() -> None:
    both = GetOptions(match=Match(priority=3, selector="n = 1"))
    assert get_options({"selector": "n = 1", "match": Match(priority=3)}, None, DEFAULT_GET) == both
    assert get_options({"selector": "n = 1"}, GetOptions(match=Match(priority=3)), DEFAULT_GET) == both
    assert get_options({"selector": None}, both, DEFAULT_GET) == GetOptions(match=Match(priority=3))
    with pytest.raises(ArgumentError, match="match"):
        get_options({"selector": "n = 1", "match": 3}, None, DEFAULT_GET)


def test_a_match_with_a_selector_can_be_compared_copied_and_pickled() -> None:
    match = Match(priority=3, selector="n = 1")
    assert match
    assert Match(selector="n = 1")
    assert match == Match(selector="n = 1", priority=3) != Match(priority=3)
    assert copy.copy(match) == pickle.loads(pickle.dumps(match)) == match
    assert match.selecting(None) == Match(priority=3)
    assert repr(match) == "Match(priority=3, selector='n = 1')"
