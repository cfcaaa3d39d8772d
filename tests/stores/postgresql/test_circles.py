"""Strict readers of two programs that come to wait for each other at any two moments: one is refused at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import wait

import pytest
from tests.helpers.support import LIMIT_SECONDS
from tests.stores.postgresql.pairs import Server, Side, on_server

from inorder.errors import OrderDeadlock
from inorder.stores.postgresql import watch
from inorder.stores.postgresql.statements import STATEMENTS

TRIES = 5


@pytest.fixture
def world(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Two programs, of which none looks again by itself."""
    monkeypatch.setattr(watch, "LOOK_SECONDS", 1e6)
    monkeypatch.setattr(watch, "KEPT_SECONDS", 1e6)
    with on_server(url) as one:
        yield one


def waits_for(queue: str) -> Callable[[Side], object]:
    return lambda side: side.qm.get(queue, syncpoint=True, read_order="strict", wait=60).body


def refused(world: Server, at: int, seconds: float) -> tuple[bool, int]:
    """Whether the first of them came to that statement, and how many were refused in time; the other has its message.

    Args:
        seconds: so long is waited for a refusal.
    """
    queues = [f"{side.name}{at}" for side in world.sides]
    for side, queue in zip(world.sides, queues, strict=True):
        side.qm.create_queue(queue)
        side.qm.put_many(queue, [b"1", b"2"])
        side.do(lambda side, queue=queue: side.qm.get(queue, syncpoint=True))  # type: ignore[misc]
    calls = world.meet((waits_for(queues[1]), waits_for(queues[0])), at)
    is_late = not wait(calls, seconds, "FIRST_COMPLETED").done
    if is_late:  # both waits end; one may be refused then by its last look
        world.clock.advance(60)
        wait(calls, LIMIT_SECONDS)
    errors = [call.done() and isinstance(call.exception(), OrderDeadlock) for call in calls]
    for side, is_refused in zip(world.sides, errors, strict=True):
        if is_refused:
            side.do(lambda side: side.qm.back_out())
    if sum(errors) == 1 and not is_late:
        assert calls[errors.index(False)].result(LIMIT_SECONDS) == b"1"
    wait(calls, LIMIT_SECONDS)
    for side in world.sides:
        side.do(lambda side: side.qm.back_out())
    return world.was_held, 0 if is_late else sum(errors)


def refusals(world: Server, seconds: float = LIMIT_SECONDS) -> Iterator[int]:
    """How many were refused, for each statement at which the first is held."""
    was_held, at = True, 0
    while was_held:
        was_held, found = refused(world, at, seconds)
        at += 1
        yield found


def test_one_of_two_is_refused_wherever_the_other_is(world: Server) -> None:
    found = list(refusals(world))
    assert len(found) > 10
    assert set(found) == {1}


@pytest.mark.nightly
def test_it_is_seen_if_they_do_not_look_one_after_the_other(world: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STATEMENTS, "lock waits", "SELECT 1")
    tries = (found for _ in range(TRIES) for found in refusals(world, seconds=2))  # a busy machine may miss it
    assert any(found != 1 for found in tries)
