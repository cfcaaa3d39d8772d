"""Several connections put in one unit: a put that is answered before another begins comes first (B-5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, cast

import pytest
from tests.helpers.support import bodies, drained, drawing_apart
from tests.stores.sqlite.programs import programs
from tests.tiers import gate

import inorder
from inorder import Message, QueueManager, Report, connect
from inorder.stores.engine.operation import WRITING, run
from inorder.stores.engine.process import NO_NUMBERS, OpenStore
from inorder.testing import ManualClock
from inorder.testing.stores import RestartableStore

Order = Literal["commit", "prepare"]
ORDERS: list[Order] = ["commit", "prepare"]
TURNS = [0, 1, 2, 0, 1, 2, 2, 0]
PUT = [b"0", b"1", b"2", b"3", b"4", b"5", b"6", b"7"]


@pytest.fixture
def three(store: RestartableStore) -> Iterator[list[QueueManager]]:
    """Connections that draw their numbers separately, as three processes do."""
    drawing_apart(store)
    with connect(store) as one, connect(store) as two, connect(store) as three:
        yield [one, two, three]


@pytest.mark.every_store
@pytest.mark.parametrize("order", ORDERS)
def test_puts_of_a_lease_keep_their_order(three: list[QueueManager], order: Order) -> None:
    qm = three[0]
    qm.create_queue("Q", order=order)
    lease = qm.lease(seconds=60)
    for turn, body in zip(TURNS, PUT, strict=True):
        with three[turn].resume_lease(lease.token):
            three[turn].put("Q", body)
    assert [sight.message.body for sight in qm.inspect.look("Q", preview=9)] == PUT, "as an operator lists them"
    three[1].resume_lease(lease.token).commit()
    assert (bodies(qm), drained(qm)) == (PUT, PUT)


def test_puts_of_many_messages_and_of_groups_keep_their_order_in_a_lease(three: list[QueueManager]) -> None:
    qm = three[0]
    qm.create_queue("Q", order="commit")
    lease = qm.lease(seconds=60)
    for turn in TURNS:
        with three[turn].resume_lease(lease.token):
            three[turn].put_many("Q", [b"%d" % turn] * 2)
            with three[turn].group("Q") as group:
                group.put(b"g1")
                group.put(b"g2")
    lease.commit()
    assert bodies(qm) == [body for turn in TURNS for body in [b"%d" % turn, b"%d" % turn, b"g1", b"g2"]]


@pytest.mark.every_store
def test_messages_under_a_confirm_id_are_listed_in_the_order_of_their_puts(three: list[QueueManager]) -> None:
    qm = three[0]
    qm.create_queue("Q", order="commit")
    uids = [three[turn].put("Q", body, confirm_id=7).uid for turn, body in zip(TURNS, PUT, strict=True)]
    listed = qm.inspect.unique_ids("Q", confirm_id=7)
    assert listed == uids
    for uid in listed:
        qm.confirm_put("Q", uid)
    assert bodies(qm) == PUT


def test_a_repeated_put_is_listed_at_the_position_of_its_repeat(three: list[QueueManager]) -> None:
    one, two, _ = three
    one.create_queue("Q", order="commit")
    two.put("Q", b"other", confirm_id=7)
    first = two.put("Q", b"a", confirm_id=7).uid
    second = one.put("Q", b"b", confirm_id=7).uid
    two.put("Q", b"a again", confirm_id=7, uid=first, resend=True)
    assert one.inspect.unique_ids("Q", confirm_id=7)[1:] == [second, first]


@pytest.mark.parametrize("unit", ["prepared", "lease"])
def test_a_report_added_to_a_unit_by_another_connection_follows_the_puts_of_the_unit(
    three: list[QueueManager], clock: ManualClock, unit: str
) -> None:
    one, two, _ = three
    one.create_queue("Q")
    one.create_queue("R", order="commit")
    two.put("R", b"first")
    opened = cast("OpenStore", one._store)
    run(opened, WRITING, lambda _, verb: verb.number())
    drawn, opened.numbers = opened.numbers, NO_NUMBERS  # the older numbers, for the discard below
    asks = Message(b"short", expiry=5, report=Report.EXPIRATION_WITH_FULL_DATA, reply_to_queue="R")
    lease = one.lease(seconds=60) if unit == "lease" else None
    if lease is None:
        with one.unit_of_work():
            one.put("Q", asks)
            one.put("R", b"second")
            one.prepare("unit")
    else:
        with lease:
            one.put("Q", asks)
            one.put("R", b"second")
    clock.advance(5)
    opened.numbers = drawn
    two.admin.discard_expired()
    if lease is None:
        two.settle("unit", "commit")
    else:
        lease.commit()
    assert bodies(one, "R") == [b"first", b"second", b"short"]


@gate
@pytest.mark.parametrize("where", ["sqlite", "postgresql"])
def test_puts_of_three_processes_in_turn_in_one_lease_keep_their_order(make: Callable[[str], str], where: str) -> None:
    path = make(where)
    with inorder.connect(path) as qm:
        for order in ORDERS:
            qm.create_queue(order, order=order)
        lease = qm.lease(seconds=600)
        with programs(path, 3) as each:
            for one in each:
                one.run(f"lease = qm.resume_lease({lease.token!r})")
            for turn, body in zip(TURNS, PUT, strict=True):
                each[turn].run(f"with lease: [qm.put(name, {body!r}) for name in {ORDERS}]")
            each[1].run("lease.commit()")
        assert [bodies(qm, order) for order in ORDERS] == [PUT, PUT]
