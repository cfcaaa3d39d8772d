"""Each call is held before its statements during another: the outcome is as if one came after the other.

INORDER_LONG=1 holds at every statement; otherwise at some of them. Then a lock is removed, which the tests must notice.
Strict readers of two programs begin to wait for each other at any two moments: one is refused at once.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from typing import Any

import pytest
from tests.helpers.support import LIMIT_SECONDS
from tests.stores.postgresql.pairs import EXPIRES_SECONDS, GROUP, Server, Side, Verb, on_server, without_lock, wrong
from tests.tiers import nightly

from inorder import Flags, Match, UniqueId
from inorder.client.bulk import ClaimReader, LedgerKey, Staged, Stager
from inorder.errors import OrderDeadlock
from inorder.model.options import GetOptions
from inorder.stores.postgresql import watch
from inorder.stores.postgresql.statements import STATEMENTS

IS_LONG = bool(os.environ.get("INORDER_LONG"))
OTHERS = 10  # calls that are made while a call is held, unless all are
MORE = 5  # statements than by itself: a call that has waited may look again
SHOWN = 4
IN_GATE = ("put that opens", "get in a unit", "commit of the last", "claim of groups", "settle of a staging")
LAST: dict[str, Any] = {"group_id": GROUP, "sequence_number": 2, "flags": Flags.LAST_IN_GROUP}
WHOLE: dict[str, Any] = {"logical": True, "all_messages": True}
OF_GROUP = Match(group_id=GROUP)


def body(_: Side, message: Any) -> object:
    return message.body


def bodies(_: Side, messages: Any) -> object:
    return [message.body for message in messages]


def answer(_: Side, said: Any) -> object:
    return said


def nothing(_: Side) -> None:
    pass


def a_unit(side: Side) -> None:
    side.opened.put(b"unit " + side.body, syncpoint=True)
    side.opened.get(syncpoint=True)


def a_unit_with_the_last(side: Side) -> None:
    side.opened.put(b"last " + side.body, syncpoint=True, **LAST)


def a_lock(side: Side) -> None:
    side.kept = side.qm.browse_and_lock(side.queue, most=1)


def a_confirmed_get(side: Side) -> None:
    side.kept = side.qm.get(side.queue, confirm_id=ord(side.name))


def a_confirmed_put(side: Side) -> None:
    side.kept = side.qm.put(side.queue, b"confirmed " + side.body, confirm_id=ord(side.name))


def a_reader(side: Side) -> None:
    reader = ClaimReader(side.opened, f"reader {side.name}")
    side.kept = reader, reader.begin().settled


def a_claim(side: Side) -> None:
    a_reader(side)
    reader, settled = side.kept
    taken = reader.claim(settled, most=1)
    assert taken is not None
    reader.plan(settled, taken.number)
    side.kept = reader, taken.number


def one_that_expires(side: Side) -> None:
    side.opened.put(b"old " + side.body, expiry=EXPIRES_SECONDS)


def one_that_expires_later(side: Side) -> None:
    """Makes each call look for expired messages."""
    side.opened.put(b"short " + side.body, expiry=1000)


def a_prepared_unit(side: Side) -> None:
    """Prepares one unit for both programs; the second finds it prepared."""
    if not any(unit.name == f"both {side.queue}" for unit in side.qm.inspect.units()):
        a_unit(side)
        side.qm.prepare(f"both {side.queue}")


def staging(side: Side, name: str) -> Stager:
    return Stager(side.opened, f"{name} {side.queue}", lasts=600)


def staged(side: Side) -> None:
    side.kept = staging(side, side.name)
    side.kept.stage(2, {"body": [b"s1 " + side.body, b"s2 " + side.body]})


def staged_for_both(side: Side) -> None:
    """Makes one staging for both programs; the second finds it made."""
    if not [unit for unit in side.qm.inspect.units() if unit.kind == "staging" and unit.name == f"both {side.queue}"]:
        staging(side, "both").stage(2, {"body": [b"b1", b"b2"]})
    side.opened  # noqa: B018 - the call itself opens nothing


def settles_own(side: Side) -> object:
    return side.qm.bulk.settle_staging(LedgerKey(side.queue, side.name, "batch"), [side.kept.staged])


def settles_both(side: Side) -> object:
    return side.qm.bulk.settle_staging(LedgerKey(side.queue, "", "batch"), [Staged(f"both {side.queue}", 2)])


def claims(**options: Any) -> Callable[[Side], object]:
    def act(side: Side) -> object:
        reader, settled = side.kept
        return settled, reader.claim(settled, GetOptions(**options), most=2)

    return act


def of_claim(side: Side, found: Any) -> object:
    settled, taken = found
    if taken is None:
        return None
    reader, _ = side.kept
    return [
        one for part in reader.plan(settled, taken.number) for page in reader.read(part) for one in page.column("body")
    ]


VERBS: dict[str, Verb] = {
    "put": Verb(lambda side: side.opened.put(b"put " + side.body)),
    "put into what is left": Verb(lambda side: side.opened.put(b"put " + side.body), is_tight=True),
    "put of many": Verb(lambda side: side.opened.put_many([b"m1 " + side.body, b"m2 " + side.body]), is_tight=True),
    "put of two": Verb(lambda side: side.opened.put_many([b"p1 " + side.body, b"p2 " + side.body])),
    "put of the last": Verb(lambda side: side.opened.put(b"last " + side.body, **LAST)),
    "put in a unit": Verb(lambda side: side.opened.put(b"put " + side.body, syncpoint=True)),
    "put of an id": Verb(
        lambda side: side.opened.put(b"put " + side.body, uid=UniqueId("PAIR", int(side.queue[1:]) + 1))
    ),
    "put that opens": Verb(lambda side: side.qm.put(side.queue, b"put " + side.body), nothing),
    "get": Verb(lambda side: side.opened.get(), tell=body),
    "get in a unit": Verb(lambda side: side.opened.get(syncpoint=True), tell=body),
    "strict get": Verb(lambda side: side.opened.get(read_order="strict"), tell=body),
    "get of a whole group": Verb(lambda side: side.opened.get(**WHOLE, match=OF_GROUP), tell=body),
    "get of many": Verb(lambda side: side.opened.get_many(2, complete=False), tell=bodies),
    "get that opens": Verb(lambda side: side.qm.get(side.queue), nothing, body),
    "commit": Verb(lambda side: side.qm.commit(), a_unit),
    "commit of the last": Verb(lambda side: side.qm.commit(), a_unit_with_the_last),
    "back out": Verb(lambda side: side.qm.back_out(), a_unit),
    "prepare": Verb(lambda side: side.qm.prepare(f"{side.name} {side.queue}"), a_unit),
    "commit of one unit": Verb(lambda side: side.qm.settle(f"both {side.queue}", "commit"), a_prepared_unit),
    "back out of one unit": Verb(lambda side: side.qm.settle(f"both {side.queue}", "back_out"), a_prepared_unit),
    "claim": Verb(claims(), a_reader, of_claim),
    "claim of groups": Verb(claims(**WHOLE), a_reader, of_claim),
    "settle of a claim": Verb(lambda side: side.kept[0].settle(side.kept[1]), a_claim, answer),
    "release of claims": Verb(lambda side: side.qm.bulk.release_claims(side.queue, f"reader {side.name}"), a_claim),
    "stage": Verb(lambda side: staging(side, side.name).stage(2, {"body": [b"1", b"2"]})),
    "stage under one name": Verb(lambda side: staging(side, "one").stage(1, {"body": [side.body]})),
    "stage what is settled": Verb(lambda side: staging(side, "both").stage(1, {"body": [side.body]}), staged_for_both),
    "settle of a staging": Verb(settles_own, staged, answer),
    "settle of one batch": Verb(settles_both, staged_for_both, answer),
    "undo of a staging": Verb(lambda side: side.qm.bulk.undo_staging([f"both {side.queue}"]), staged_for_both, answer),
    "alter for puts": Verb(lambda side: side.qm.alter_queue(side.queue, put_allowed=False)),
    "alter for gets": Verb(lambda side: side.qm.alter_queue(side.queue, get_allowed=False)),
    "alter to no order": Verb(lambda side: side.qm.alter_queue(side.queue, read_order="unordered"), nothing),
    "alter of the depth": Verb(lambda side: side.qm.alter_queue(side.queue, max_depth=4), nothing),
    "delete of the queue": Verb(lambda side: side.qm.delete_queue(side.queue, purge=True), nothing),
    "clear of the queue": Verb(lambda side: side.qm.admin.clear_queue(side.queue), nothing, answer),
    "open alone": Verb(lambda side: setattr(side, "handle", side.qm.open(side.queue, input="exclusive")), nothing),
    "close": Verb(lambda side: side.opened.close()),
    "expiry": Verb(lambda side: side.qm.admin.discard_expired(), one_that_expires),
    "put beside what expires": Verb(lambda side: side.opened.put(b"put " + side.body), one_that_expires_later),
    "get beside what expires": Verb(lambda side: side.opened.get(), one_that_expires_later, body),
    "browse with lock": Verb(lambda side: side.opened.browse_first(lock=True), tell=body),
    "browse and lock": Verb(
        lambda side: side.qm.browse_and_lock(side.queue, most=2), tell=lambda side, found: bodies(side, found.messages)
    ),
    "delete of what is locked": Verb(
        lambda side: side.qm.delete(side.queue, side.kept.messages[0].uid, lock_id=side.kept.lock_id), a_lock
    ),
    "release of a lock": Verb(lambda side: side.qm.admin.release_lock(side.queue, side.kept.lock_id), a_lock, answer),
    "confirmed get": Verb(lambda side: side.qm.get(side.queue, confirm_id=5), tell=body),
    "confirm of a get": Verb(lambda side: side.qm.confirm_get(side.queue, side.kept.uid), a_confirmed_get),
    "confirm of a put": Verb(lambda side: side.qm.confirm_put(side.queue, side.kept.uid), a_confirmed_put),
    "undo of a get": Verb(lambda side: side.qm.undo(side.queue, ord(side.name)), a_confirmed_get, answer),
    "status": Verb(
        lambda side: side.qm.inspect.status(side.queue), tell=lambda _, found: (found.current_depth, found.uncommitted)
    ),
}


@pytest.fixture
def world(url: str) -> Iterator[Server]:
    with on_server(url) as one:
        yield one


@pytest.mark.parametrize("one", [one if one in IN_GATE else pytest.param(one, marks=nightly) for one in VERBS])
def test_two_overlapping_calls_have_the_effect_of_one_after_the_other(world: Server, one: str) -> None:
    chance, count = random.Random(one), world.statements(VERBS[one])
    found: list[str] = []
    for another in VERBS if IS_LONG else chance.sample(list(VERBS), OTHERS):
        places = range(count + MORE) if IS_LONG else chance.sample(range(count), 1)
        found += (f"{one}, and {another}: {line}" for line in wrong(world, (VERBS[one], VERBS[another]), places))
    assert not found, "\n".join(found[:SHOWN])


MISSED = [
    ("queue state locked", "put that opens", "put that opens"),
    ("queue state locked", "get that opens", "get that opens"),
    ("queue state to append", "put of two", "put of two"),
    ("queue state as known", "get", "claim"),
    ("lock queues", "put beside what expires", "put beside what expires"),
    ("lock queue manager", "open alone", "open alone"),
    ("lock stagings", "settle of one batch", "stage what is settled"),
    ("lock staging name", "stage under one name", "stage under one name"),
]


@nightly
@pytest.mark.parametrize(("lock", "one", "another"), MISSED)
def test_the_test_of_overlapping_calls_notices_a_missing_lock(
    world: Server, monkeypatch: pytest.MonkeyPatch, lock: str, one: str, another: str
) -> None:
    monkeypatch.setitem(STATEMENTS, lock, without_lock(STATEMENTS[lock]))
    count = world.statements(VERBS[one])
    assert any(wrong(world, (VERBS[one], VERBS[another]), range(count)))


TRIES = 5


@pytest.fixture
def two(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Two programs that do not look for changes by themselves."""
    monkeypatch.setattr(watch, "LOOK_SECONDS", 1e6)
    monkeypatch.setattr(watch, "KEPT_SECONDS", 1e6)
    with on_server(url) as one:
        yield one


def waits_for(queue: str) -> Callable[[Side], object]:
    return lambda side: side.qm.get(queue, syncpoint=True, read_order="strict", wait=600).body


def refused(two: Server, at: int, seconds: float) -> tuple[bool, int]:
    """Whether the first reached that statement, and how many were refused in time; the other then has its message.

    Args:
        seconds: how long to wait for a refusal.
    """
    queues = [f"{side.name}{at}" for side in two.sides]
    for side, queue in zip(two.sides, queues, strict=True):
        side.qm.create_queue(queue)
        side.qm.put_many(queue, [b"1", b"2"])
        side.do(lambda side, queue=queue: side.qm.get(queue, syncpoint=True))  # type: ignore[misc]
    calls = two.meet((waits_for(queues[1]), waits_for(queues[0])), at)
    is_late = not wait(calls, seconds, "FIRST_COMPLETED").done
    if is_late:  # both waits end; the last look may still refuse one
        two.clock.advance(60)
        wait(calls, LIMIT_SECONDS)
    errors = [call.done() and isinstance(call.exception(), OrderDeadlock) for call in calls]
    for side, is_refused in zip(two.sides, errors, strict=True):
        if is_refused:
            side.do(lambda side: side.qm.back_out())
    if sum(errors) == 1 and not is_late:
        assert calls[errors.index(False)].result(LIMIT_SECONDS) == b"1"
    wait(calls, LIMIT_SECONDS)
    for side in two.sides:
        side.do(lambda side: side.qm.back_out())
    return two.was_held, 0 if is_late else sum(errors)


def refusals(two: Server, seconds: float = LIMIT_SECONDS) -> Iterator[int]:
    """The number of refusals, for each statement at which the first is held."""
    was_held, at = True, 0
    while was_held:
        was_held, found = refused(two, at, seconds)
        at += 1
        yield found


def test_exactly_one_of_two_strict_readers_that_wait_for_each_other_is_refused(two: Server) -> None:
    found = list(refusals(two))
    assert len(found) > 10
    assert set(found) == {1}


@pytest.mark.nightly
def test_the_test_of_strict_readers_notices_a_missing_lock_on_waits(
    two: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(STATEMENTS, "lock waits", "SELECT 1")
    tries = (found for _ in range(TRIES) for found in refusals(two, seconds=2))  # a busy machine may hide it
    assert any(found != 1 for found in tries)
