"""A browse loop that reads pages ahead returns the messages that one without pages would: each once, none missed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.helpers.support import examples, fresh_manager
from tests.tiers import ONCE

from inorder import Match, Message, NoMessageAvailable, OrderPending, QueueManager
from inorder.client.browsing import PAGE_SECONDS
from inorder.errors import HandleError
from inorder.stores.engine.process import OpenStore
from inorder.testing import ManualClock

STEPS = st.one_of(
    st.tuples(st.just("next"), st.integers(1, 6)),
    st.tuples(st.just("put"), st.integers(0, 9)),
    st.tuples(st.just("put in unit"), st.integers(0, 9)),
    st.tuples(st.sampled_from(["get in unit", "get", "commit", "back out", "second"]), st.just(0)),
)


@pytest.fixture(autouse=True)
def pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes every store return pages."""
    monkeypatch.setattr(OpenStore, "page_messages", 256)


def names(messages: Iterator[Message]) -> list[str]:
    return [message.body.decode() for message in messages]


def clock_of(qm: QueueManager) -> ManualClock:
    clock = qm._session.services.store.clock
    assert isinstance(clock, ManualClock)
    return clock


def fill(qm: QueueManager, count: int = 40) -> list[str]:
    """Puts messages of many priorities; returns their names in queue order."""
    put = [(-(n * 7 % 10), n) for n in range(count)]
    qm.put_many("Q", [Message(f"m{n}".encode(), priority=-rank) for rank, n in put])
    return [f"m{n}" for _, n in sorted(put)]


@pytest.mark.every_store
@pytest.mark.parametrize("read_order", ["strict", "relaxed"])
def test_a_paged_browse_shows_all_messages_in_order(qm: QueueManager, read_order: Literal["strict", "relaxed"]) -> None:
    expected = fill(qm)
    assert names(qm.browse("Q", read_order=read_order)) == expected
    high = Match(selector="JMSPriority > 4")
    assert names(qm.browse("Q", read_order=read_order, match=high)) == expected[:20]


@pytest.mark.every_store
def test_a_strict_browse_shows_no_page_beyond_a_pending_message_of_the_level(qm: QueueManager) -> None:
    expected = fill(qm)
    shown: list[str] = []
    with qm.connect() as other, other.unit_of_work() as unit:
        other.get("Q", match=Match(token=next(m.token for m in other.browse("Q") if m.body == expected[21].encode())))
        browsing = qm.browse("Q", read_order="strict")
        with pytest.raises(OrderPending):
            shown.extend(message.body.decode() for message in browsing)
        unit.back_out()
    assert shown == expected[:21] + expected[24:], "the rest of the level waits"
    assert names(qm.browse("Q", read_order="strict", after=browsing.token)) == expected[21:24]


def test_a_browse_loop_sees_the_changes_of_its_own_connection_at_once(qm: QueueManager) -> None:
    fill(qm, 30)
    shown = []
    for message in qm.browse("Q"):
        shown.append(message.body)
        qm.get("Q", read_order="relaxed")  # the message just shown, as it is the first
        if len(shown) == 10:
            qm.put("Q", b"urgent", priority=0)
    assert len(shown) == len(set(shown)) == 31


def test_the_cursor_is_at_the_last_message_shown(qm: QueueManager) -> None:
    expected = fill(qm)
    with qm.open("Q", browse=True, input="shared") as queue:
        browsing = queue.browse()
        for _ in range(12):
            shown = next(browsing)
        assert queue.browse_cursor().body == shown.body
        assert queue.get(under_cursor=True).body == shown.body == expected[11].encode()
        assert names(browsing) == expected[12:]


def test_a_browse_loop_continues_from_a_cursor_that_was_moved(qm: QueueManager) -> None:
    expected = fill(qm)
    with qm.open("Q", browse=True) as queue:
        browsing = queue.browse()
        for _ in range(12):
            next(browsing)
        queue.browse_first()
        assert names(browsing) == expected[1:]


def test_a_browse_loop_fails_after_its_handle_is_closed(qm: QueueManager) -> None:
    fill(qm)
    queue = qm.open("Q", browse=True)
    browsing = queue.browse()
    for _ in range(3):
        next(browsing)
    queue.close()
    with pytest.raises(HandleError):
        next(browsing)


@pytest.mark.parametrize("waits", [True, False])
def test_messages_that_others_removed_a_second_ago_are_not_shown(qm: QueueManager, *, waits: bool) -> None:
    fill(qm)
    browsing = qm.browse("Q")
    for _ in range(3):
        next(browsing)
    with qm.connect() as other:
        other.get_many("Q", 40)
    if waits:
        clock_of(qm).advance(PAGE_SECONDS)
    assert bool(names(browsing)) is not waits


@pytest.mark.parametrize("kind", ONCE)
def test_a_strict_loop_misses_nothing_and_repeats_nothing_whatever_others_do(kind: str) -> None:
    @examples(kind)
    @given(st.sampled_from(["put", "commit"]), st.lists(STEPS, max_size=40))
    def holds(order: Literal["put", "commit"], steps: list[tuple[str, int]]) -> None:
        with fresh_manager(kind) as qm, qm.connect() as other:
            qm.create_queue("Q", order=order)
            for n in range(12):
                qm.put("Q", f"first{n}".encode(), priority=n % 3)
            shown: list[Message] = []
            browsing = qm.browse("Q", read_order="strict")
            for n, (what, value) in enumerate(steps):
                if what == "next":
                    for _ in range(value):
                        try:
                            shown.append(next(browsing))
                        except (StopIteration, OrderPending):
                            browsing = qm.browse("Q", read_order="strict", after=browsing.token)
                            break
                elif what.startswith("put"):
                    other.put("Q", f"p{n}".encode(), priority=value, syncpoint=what.endswith("unit"))
                elif what.startswith("get"):
                    with contextlib.suppress(NoMessageAvailable):
                        other.get("Q", syncpoint=what.endswith("unit"))
                elif what == "commit":
                    other.commit()
                elif what == "back out":
                    other.back_out()
                elif what == "second":
                    clock_of(qm).advance(PAGE_SECONDS)
            other.back_out()
            shown += browsing
            bodies = [message.body for message in shown]
            assert len(bodies) == len(set(bodies))
            there = {message.body for message in qm.browse("Q")}
            assert there <= set(bodies)
            for level in {message.priority for message in shown}:
                places = [message.place for message in shown if message.priority == level and message.place]
                assert places == sorted(places)

    holds()
