"""Cases in which stores once answered differently; `tests/histories/test_state_machine.py` found them."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from tests.helpers.claiming import Application, put_all, store_of
from tests.helpers.support import Call, told, until

from inorder import Flags, QueueManager
from inorder.client.bulk import LedgerKey, Stager
from inorder.errors import QueueDeleted
from inorder.stores.seam.changes import Changes, Subscription
from inorder.support.locks import Lock
from inorder.testing import ManualClock

pytestmark = pytest.mark.every_store


def test_r4_3_a_close_cannot_delete_a_queue_that_is_already_deleted(qm: QueueManager) -> None:
    qm.create_queue("MODEL", type="model", shareable=True, default_input="shared")
    maker = qm.open("MODEL")
    user = qm.open(maker.name)
    maker.close()
    for purge in (False, True):
        with pytest.raises(QueueDeleted):
            user.close(delete=True, purge=purge)
    user.close()


def put_group(qm: QueueManager, group_id: bytes) -> None:
    qm.put("Q", b"first", group_id=group_id, flags=Flags.IN_GROUP, sequence_number=1)
    qm.put("Q", b"last", group_id=group_id, flags=Flags.LAST_IN_GROUP, sequence_number=2)


def test_r6_2_the_hook_receives_expired_messages_in_the_order_of_their_expiry(
    qm: QueueManager, clock: ManualClock
) -> None:
    qm.alter_queue("Q", delivery="fifo")
    heard: list[bytes] = []
    qm.inspect.hook("expired", lambda queue, message: heard.append(message.body))
    for body, expiry in ((b"1", 3.0), (b"2", 1.0), (b"3", 2.0), (b"4", 1.0)):
        qm.put("Q", body, expiry=expiry)
    clock.advance(5.0)
    assert qm.inspect.status("Q").current_depth == 0
    told(qm)
    assert heard == [b"2", b"4", b"3", b"1"]


def test_a_9_a_confirm_id_starts_again_after_its_last_message_has_expired(qm: QueueManager, clock: ManualClock) -> None:
    qm.put("Q", b"short", expiry=5.0, confirm_id=1)
    qm.put("Q", b"long")
    clock.advance(5.0)
    assert qm.get("Q", confirm_id=1).body == b"long"
    assert [unit.started_at for unit in qm.inspect.units()] == [clock.now()]


def test_a_hook_is_called_for_several_queues_in_the_order_of_their_names(qm: QueueManager) -> None:
    heard: list[str] = []
    for name in ("B", "A"):
        qm.create_queue(name)
    qm.inspect.hook("visible", lambda queue, message: heard.append(queue))
    for name in ("A", "B", "A"):
        qm.put(name, b"", syncpoint=True)
    qm.commit()
    told(qm)
    assert heard == ["A", "A", "B", "SENTINEL"]


def test_a_hook_receives_the_bodies_of_staged_messages(qm: QueueManager) -> None:
    heard: list[bytes] = []
    qm.inspect.hook("put", lambda queue, message: heard.append(message.body) if queue == "Q" else None)
    with qm.open("Q", output=True) as queue:
        stager = Stager(queue, "one", lasts=60.0)
        stager.stage(2, {"body": [b"a", b"b"]})
    qm.bulk.settle_staging(LedgerKey("app", "", "1"), [stager.staged])
    told(qm)
    assert heard == [b"a", b"b"]


def test_a_withdraw_does_not_touch_messages_that_the_unit_got_from_the_same_group(qm: QueueManager) -> None:
    put_group(qm, b"G")
    queue = qm.open("Q", input="shared", output=True)
    with qm.unit_of_work():
        got = queue.get()
        before = queue.internals.put_state
        queue.put(b"another", flags=Flags.IN_GROUP, group_id=got.group_id, sequence_number=1)
        queue.internals.withdraw(before, whole_group=True)
    assert [message.body for message in qm.browse("Q")] == [b"last"]


def test_the_rest_of_a_large_group_has_only_the_members_that_were_got(qm: QueueManager) -> None:
    bodies = [str(number).encode() for number in range(600)]
    with qm.unit_of_work(), qm.group("Q") as group:
        for body in bodies:
            group.put(body)
    group_id = next(iter(qm.browse("Q"))).group_id
    with qm.unit_of_work() as unit:
        messages = qm.get_group("Q")
        got = [next(messages).body]
        for number in (300, 400):
            qm.put("Q", b"x", flags=Flags.IN_GROUP, group_id=group_id, sequence_number=number)
        got += [message.body for message in messages]
        unit.back_out()
    assert got == bodies


def test_a_finished_claim_is_held_until_more_is_claimed_ahead(qm: QueueManager) -> None:
    put_all(qm, [b"1", b"2", b"3"])
    app = Application(store_of(qm))
    app.claim(0, most=1)

    def held() -> list[int]:
        (account,) = store_of(qm).claims()
        return [one.number for one in account.held]

    for number in (1, 2):
        app.plan(number - 1, number)
        app.claim(number, most=1, ahead=True)
        assert held() == [number, number + 1]
        app.claim(number)
        assert held() == [number, number + 1]


def test_a_subscription_turned_on_while_another_is_turned_off_is_not_forgotten() -> None:
    """`one` begins to heed changes after `other` has already seen that nobody else wants them."""
    changes, calls = Changes(), list[Call[None]]()
    begun, asked = threading.Event(), threading.Event()
    one, other = (changes.subscribe(lambda _: None) for _ in range(2))

    class Turning(Lock):
        def __enter__(self) -> object:
            if begun.is_set():
                asked.set()
            return super().__enter__()

    class LookedAt(list[Subscription]):
        def __iter__(self) -> Iterator[Subscription]:
            yield one
            if not begun.is_set():
                begun.set()
                calls.append(Call(lambda: one.turn(heeds=True)))
                until(lambda: asked.is_set() or calls[0].done, "it waits, or has turned")
            yield other

    changes.turning, changes._subscriptions = Turning(), LookedAt()
    other.turn(heeds=False)
    calls[0].result()
    assert changes.is_heard
