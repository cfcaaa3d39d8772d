"""Rules of confirmed calls that the scenario tables cannot express."""

from __future__ import annotations

import pytest
from tests.helpers.support import told as told_of_all

from inorder import Arrival, QueueManager, UniqueId
from inorder.errors import ArgumentError, DuplicateMessage, OptionsError
from inorder.stores.sql.backend import DRAWN_MAX
from inorder.testing import ManualClock


@pytest.fixture
def qm(qm: QueueManager) -> QueueManager:
    qm.alter_queue("Q", order="commit")
    return qm


def test_d25_a_listener_is_notified_of_a_put_when_it_is_confirmed(qm: QueueManager) -> None:
    told: list[Arrival] = []
    qm.listen("Q", told.append)
    put = qm.put("Q", b"1", confirm_id=7)
    told_of_all(qm)
    assert told == []
    qm.confirm_put("Q", put.uid)
    qm.put("Q", b"2")
    told_of_all(qm)
    assert [event.uid for event in told] == [put.uid, UniqueId("TEST", told[1].uid.number)]  # type: ignore[union-attr]


def test_the_duplicate_hook_is_called_once_for_each_repeated_put(qm: QueueManager) -> None:
    seen: list[bytes] = []
    qm.inspect.hook("duplicate", lambda _, message: seen.append(message.body))
    with qm.open("Q", output=True) as queue:
        uid = queue.put(b"1").uid
        for nth in range(8):
            queue.put(b"between")
            with pytest.raises(DuplicateMessage) as raised:
                queue.put(b"%d" % nth, uid=uid)
            assert raised.value.uid == uid
    told_of_all(qm)
    assert seen == [b"%d" % nth for nth in range(8)]


@pytest.mark.every_store
def test_message_ids_that_the_duplicate_hook_has_seen_are_not_reused(qm: QueueManager) -> None:
    seen: list[bytes] = []
    qm.inspect.hook("duplicate", lambda _, message: seen.append(message.message_id))
    put = qm.put("Q", b"1")
    for _ in range(DRAWN_MAX + 2):  # enough for refused puts to draw numbers, too
        with pytest.raises(DuplicateMessage):
            qm.put("Q", b"1", uid=put.uid)
    told_of_all(qm)
    ids = [put.message_id, *seen, qm.put("Q", b"2").message_id]
    assert len(set(ids)) == len(ids) == DRAWN_MAX + 4


@pytest.mark.every_store
def test_a9_confirm_ids_are_64_bit_numbers(qm: QueueManager) -> None:
    put = qm.put("Q", b"1", confirm_id=2**64 - 1)
    assert qm.confirm_put("Q", put.uid, confirm_id=2**64 - 1) is None
    for call in (lambda: qm.put("Q", b"1", confirm_id=2**64), lambda: qm.undo("Q", 2**64)):
        with pytest.raises(ArgumentError):
            call()


@pytest.mark.every_store
def test_confirm_ids_that_hold_nothing_are_forgotten(qm: QueueManager, clock: ManualClock) -> None:
    for number in range(1, 50):
        put = qm.put("Q", b"1", confirm_id=number)
        qm.confirm_put("Q", put.uid)
        got = qm.get("Q", confirm_id=number)
        assert got.uid is not None
        qm.confirm_get("Q", got.uid)
    assert qm.inspect.units() == []
    clock.advance(100)
    qm.put("Q", b"1", confirm_id=1)
    [unit] = qm.inspect.units()
    assert unit.started_at == clock.now()
    qm.undo("Q", 1)
    qm.put("Q", b"1")
    for _ in range(3):
        qm.get("Q", confirm_id=5)
        qm.undo("Q", 5)
    qm.get("Q", confirm_id=5)
    [unit] = qm.inspect.units()
    assert (unit.gets, unit.puts, unit.locks) == (1, 0, 0)


def test_a_resend_of_a_confirmed_put_returns_the_ids_of_the_existing_copy(qm: QueueManager) -> None:
    put = qm.put("Q", b"1", confirm_id=7, correlation_id=b"c")
    qm.confirm_put("Q", put.uid)
    again = qm.put("Q", b"1", confirm_id=7, uid=put.uid, resend=True)
    assert (again.message_id, again.correlation_id, again.uid) == (put.message_id, put.correlation_id, put.uid)
    assert qm.depth("Q") == 1


def test_resend_needs_the_unique_id_of_the_message_it_repeats(qm: QueueManager) -> None:
    with pytest.raises(OptionsError, match="uid"):
        qm.put("Q", b"1", resend=True)
    with pytest.raises(OptionsError, match="names one message"):
        qm.put_many("Q", [b"1", b"2"], uid=UniqueId("TEST", 1))
