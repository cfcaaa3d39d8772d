"""Puts under a key of the caller's (decision 330): one message for one key, whoever else puts, backs out or dies."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from inorder import Message, OptionsError, QueueManager, Reason, connect
from inorder.errors import ArgumentError, DuplicatePending, InconsistentCall, PutInhibited, QueueFull
from inorder.stores.backend import Kind
from inorder.stores.tables import PutKeyRow
from inorder.testing import ManualClock
from inorder.testing.stores import RestartableStore


def bodies(qm: QueueManager, queue: str = "Q") -> list[bytes]:
    return [message.body for message in qm.browse(queue)]


def keys(store: Any) -> int:
    """How many keys the store remembers."""
    store.backend.begin(Kind(writes=False))
    try:
        return len(store.backend.select(PutKeyRow))
    finally:
        store.backend.commit((), (), reserves=False, durable=False)


# ---- outside of units of work


def test_what_is_put_once_more_under_a_key_is_not_put_and_says_so(qm: QueueManager) -> None:
    first = qm.put("Q", b"one", deduplicate="order-17", message_id=b"mine")
    assert (first.duplicate_of, first.warning) == (None, None)
    again = qm.put("Q", b"two", deduplicate="order-17")
    assert (again.duplicate_of, again.uid, again.message_id) == (first.uid, first.uid, first.message_id)
    assert again.warning is Reason.DUPLICATE_PUT
    assert bodies(qm) == [b"one"]


def test_a_key_is_kept_though_the_message_is_gone(qm: QueueManager) -> None:
    first = qm.put("Q", b"one", deduplicate="k")
    qm.get("Q")
    assert qm.put("Q", b"two", deduplicate="k").duplicate_of == first.uid
    assert bodies(qm) == []


def test_other_keys_and_no_key_are_not_concerned(qm: QueueManager) -> None:
    for key in ("a", "b", None, None, "A", "a ", "ä"):
        assert qm.put("Q", b"x", deduplicate=key).duplicate_of is None
    assert len(bodies(qm)) == 7


def test_a_key_belongs_to_its_queue_by_whatever_name_that_is_opened(qm: QueueManager) -> None:
    qm.create_queue("OTHER")
    qm.create_alias("ALIAS", base_queue="Q")
    first = qm.put("Q", b"q", deduplicate="k")
    assert qm.put("OTHER", b"other", deduplicate="k").duplicate_of is None
    assert qm.put("ALIAS", b"alias", deduplicate="k").duplicate_of == first.uid
    assert (bodies(qm), bodies(qm, "OTHER")) == ([b"q"], [b"other"])


def test_what_goes_to_different_queues_elsewhere_has_different_keys(qm: QueueManager) -> None:
    qm.create_queue("THERE", usage="transmission")
    for name in ("A", "B"):
        qm.create_remote_queue(f"R{name}", remote_queue=name, remote_manager="THERE")
    found = [qm.put(name, b"x", deduplicate="k").duplicate_of is None for name in ("RA", "RB", "RA", "RB")]
    assert found == [True, True, False, False]


def test_a_queue_that_is_made_anew_knows_no_keys(qm: QueueManager) -> None:
    qm.put("Q", b"one", deduplicate="k")
    qm.delete_queue("Q", purge=True)
    qm.create_queue("Q")
    assert qm.put("Q", b"two", deduplicate="k").duplicate_of is None


@pytest.mark.parametrize("lasts", [0.5, 3600.0, 366 * 86400.0])
def test_a_key_is_free_again_when_its_time_is_over(qm: QueueManager, clock: ManualClock, lasts: float) -> None:
    qm.put("Q", b"one", deduplicate="k", deduplicate_for=lasts)
    clock.advance(lasts - 0.25)
    assert qm.put("Q", b"two", deduplicate="k", deduplicate_for=9.0).duplicate_of is not None
    clock.advance(0.25)
    second = qm.put("Q", b"three", deduplicate="k", deduplicate_for=lasts)
    assert second.duplicate_of is None
    assert qm.put("Q", b"four", deduplicate="k").duplicate_of == second.uid
    assert bodies(qm) == [b"one", b"three"]


def test_by_default_a_key_is_kept_for_an_hour(qm: QueueManager, clock: ManualClock) -> None:
    qm.put("Q", b"one", deduplicate="k")
    clock.advance(3599.0)
    assert qm.put("Q", b"two", deduplicate="k").duplicate_of is not None
    clock.advance(1.0)
    assert qm.put("Q", b"three", deduplicate="k").duplicate_of is None


def test_a_put_that_fails_takes_no_key(qm: QueueManager) -> None:
    qm.create_queue("SMALL", max_depth=1)
    qm.put("SMALL", b"there")
    with pytest.raises(QueueFull):
        qm.put("SMALL", b"x", deduplicate="k")
    qm.get("SMALL")
    assert qm.put("SMALL", b"y", deduplicate="k").duplicate_of is None
    assert qm.put("SMALL", b"a full queue does not matter where nothing is put", deduplicate="k").duplicate_of
    qm.alter_queue("SMALL", put_allowed=False)
    with pytest.raises(PutInhibited):
        qm.put("SMALL", b"z", deduplicate="k")


def test_several_messages_of_one_call_have_one_key(qm: QueueManager) -> None:
    first = qm.put_many("Q", [b"1", b"2"], deduplicate="k")
    again = qm.put_many("Q", [b"1", b"2", b"3"], deduplicate="k")
    assert [one.duplicate_of for one in again] == [first[0].uid] * 3
    assert qm.put("Q", b"4", deduplicate="k").duplicate_of == first[0].uid
    assert bodies(qm) == [b"1", b"2"]


def test_a_whole_group_has_a_key(qm: QueueManager) -> None:
    group = [Message(b"1", flags=8), Message(b"2", flags=8), Message(b"3", flags=16)]
    for _ in range(2):
        qm.put_many("Q", group, logical=True, deduplicate="k")
    with qm.unit_of_work():
        assert [one.body for one in qm.get_group("Q")] == [b"1", b"2", b"3"]
    assert bodies(qm) == []
    with pytest.raises(InconsistentCall, match="whole groups"):
        qm.put_many("Q", group[:2], logical=True, deduplicate="other")
    assert bodies(qm) == []
    with qm.open("Q", output=True) as queue:
        queue.put(group[0], logical=True)
        with pytest.raises(InconsistentCall, match="whole groups"):
            queue.put(group[2], logical=True, deduplicate="other")
        queue.put(group[2], logical=True)
    assert bodies(qm) == [b"1", b"3"]


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"deduplicate": ""}, ArgumentError, "1 to 200 characters"),
        ({"deduplicate": "k" * 201}, ArgumentError, "1 to 200 characters"),
        ({"deduplicate": b"k"}, ArgumentError, "1 to 200 characters"),
        ({"deduplicate": "\ud800"}, ArgumentError, "1 to 200 characters"),
        ({"deduplicate": "k", "deduplicate_for": 0}, ArgumentError, "above 0 and at most 31,622,400"),
        ({"deduplicate": "k", "deduplicate_for": 366 * 86400.0 + 1}, ArgumentError, "above 0 and at most 31,622,400"),
        ({"deduplicate": "k", "deduplicate_for": float("nan")}, ArgumentError, "above 0"),
        ({"deduplicate": "k", "deduplicate_for": True}, ArgumentError, "above 0"),
        ({"deduplicate": "k", "confirm_id": 7}, OptionsError, "do not go together"),
    ],
)
def test_bad_keys(qm: QueueManager, wrong: dict[str, object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        qm.put("Q", b"x", **wrong)  # type: ignore[arg-type]
    uid = qm.put("Q", b"x").uid
    with pytest.raises(OptionsError, match="do not go together"):
        qm.put("Q", b"x", deduplicate="k", uid=uid, resend=True)
    assert bodies(qm) == [b"x"]


# ---- in units of work


def test_a_key_is_taken_with_the_commit_and_free_again_after_a_back_out(qm: QueueManager) -> None:
    with qm.unit_of_work():
        first = qm.put("Q", b"one", deduplicate="k")
        assert qm.put("Q", b"again", deduplicate="k").duplicate_of == first.uid
    assert qm.put("Q", b"two", deduplicate="k").duplicate_of == first.uid
    qm.put("Q", b"three", deduplicate="m", syncpoint=True)
    qm.back_out()
    assert qm.put("Q", b"four", deduplicate="m").duplicate_of is None
    assert bodies(qm) == [b"one", b"four"]


def test_while_a_unit_of_work_has_a_key_others_are_refused(qm: QueueManager, store: RestartableStore) -> None:
    with connect(store, program="other") as other:
        qm.put("Q", b"one", deduplicate="k", syncpoint=True)
        for syncpoint in (False, True):
            with pytest.raises(DuplicatePending, match="a unit of work of test, not settled") as refused:
                other.put("Q", b"two", deduplicate="k", syncpoint=syncpoint)
            assert refused.value.reason is Reason.DUPLICATE_PENDING
            assert (refused.value.data["key"], refused.value.data["by"]) == ("k", "test")
        with pytest.raises(DuplicatePending):  # its own unit of work, from outside: that one may be backed out, too
            qm.put("Q", b"three", deduplicate="k", syncpoint=False)
        qm.back_out()
        assert other.put("Q", b"four", deduplicate="k").duplicate_of is None
        assert bodies(qm) == [b"four"]


def test_the_time_of_a_key_begins_with_the_commit(qm: QueueManager, clock: ManualClock) -> None:
    with qm.unit_of_work():
        qm.put("Q", b"one", deduplicate="k", deduplicate_for=10.0)
        clock.advance(60.0)
    clock.advance(9.5)
    assert qm.put("Q", b"two", deduplicate="k").duplicate_of is not None
    clock.advance(0.5)
    assert qm.put("Q", b"three", deduplicate="k").duplicate_of is None


def test_a_unit_that_takes_long_keeps_its_keys_beyond_their_time(
    qm: QueueManager, store: RestartableStore, clock: ManualClock
) -> None:
    qm.put("Q", b"one", deduplicate="k", deduplicate_for=10.0, syncpoint=True)
    clock.advance(1000.0)
    qm.discard_expired()
    with connect(store, program="other") as other, pytest.raises(DuplicatePending):
        other.put("Q", b"two", deduplicate="k")
    qm.commit()
    assert qm.put("Q", b"three", deduplicate="k").duplicate_of is not None


def test_a_prepared_unit_has_its_keys_until_it_is_settled(qm: QueueManager, store: RestartableStore) -> None:
    for outcome, is_put in (("commit", False), ("back_out", True)):
        qm.put("Q", b"one", deduplicate=outcome, syncpoint=True)
        qm.prepare(outcome)
        with pytest.raises(DuplicatePending, match=f"the prepared unit '{outcome}'"):
            qm.put("Q", b"two", deduplicate=outcome)
        qm.settle(outcome, outcome)  # type: ignore[arg-type]
        assert (qm.put("Q", b"two", deduplicate=outcome).duplicate_of is None) == is_put


def test_the_next_unit_of_work_has_nothing_of_the_last_ones_keys(qm: QueueManager) -> None:
    """Units of a connection have one number after the other in the store, or the same."""
    for n in range(5):
        qm.put("Q", b"x", deduplicate=f"committed {n}", syncpoint=True)
        qm.commit()
        qm.put("Q", b"x", syncpoint=True)
        qm.back_out()
        qm.put("Q", b"x", deduplicate=f"backed out {n}", syncpoint=True)
        qm.back_out()
        qm.put("Q", b"x", syncpoint=True)
        qm.commit()
    assert all(qm.put("Q", b"y", deduplicate=f"committed {n}").duplicate_of for n in range(5))
    assert not any(qm.put("Q", b"y", deduplicate=f"backed out {n}").duplicate_of for n in range(5))


def test_a_message_that_expires_in_the_unit_leaves_its_key_to_the_unit(qm: QueueManager, clock: ManualClock) -> None:
    qm.put("Q", b"one", deduplicate="k", expiry=5.0, syncpoint=True)
    clock.advance(10.0)
    qm.discard_expired()
    qm.back_out()
    assert qm.put("Q", b"two", deduplicate="k").duplicate_of is None


def test_a_restart_backs_out_what_was_open_with_its_keys(store: RestartableStore) -> None:
    qm = connect(store, program="test")
    qm.create_queue("Q")
    first = qm.put("Q", b"one", deduplicate="a")
    qm.put("Q", b"two", deduplicate="b", syncpoint=True)
    store.restart()
    with connect(store, program="later") as later:
        assert later.put("Q", b"x", deduplicate="a").duplicate_of == first.uid
        assert later.put("Q", b"y", deduplicate="b").duplicate_of is None
    qm.abandon()


# ---- keys do not pile up


def test_puts_and_housekeeping_forget_keys_in_bounded_steps(
    qm: QueueManager, store: RestartableStore, clock: ManualClock
) -> None:
    for n in range(40):
        qm.put("Q", b"x", deduplicate=str(n), deduplicate_for=1.0 + n / 100)
    clock.advance(10.0)
    qm.put("Q", b"x", deduplicate="one more")
    assert keys(store) == 39
    qm.discard_expired(30)
    assert keys(store) == 9
    qm.discard_expired()
    assert keys(store) == 1


def test_keys_of_a_program_that_puts_for_ever_stay_as_many_as_its_time_wants(
    qm: QueueManager, store: RestartableStore, clock: ManualClock
) -> None:
    for n in range(200):
        qm.put("Q", b"x", deduplicate=str(n), deduplicate_for=5.0)
        clock.advance(1.0)
    assert keys(store) <= 6


# ---- every history of two units of work


@pytest.mark.parametrize("ends", list(itertools.product(("commit", "back_out"), repeat=2)))
def test_two_units_with_one_key_leave_one_message_unless_both_are_backed_out(
    qm: QueueManager, store: RestartableStore, ends: tuple[str, str]
) -> None:
    """The second tries until it is not refused, as a program would."""
    with connect(store, program="other") as other:
        qm.put("Q", b"1", deduplicate="k", syncpoint=True)
        with pytest.raises(DuplicatePending):
            other.put("Q", b"2", deduplicate="k", syncpoint=True)
        getattr(qm, ends[0])()
        other.put("Q", b"2", deduplicate="k", syncpoint=True)
        getattr(other, ends[1])()
        assert len(bodies(qm)) == ("commit" in ends)
