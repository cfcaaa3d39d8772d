"""Puts under a caller's key (decision 330): one message per key, even if others put, back out or die.

`tools/proof/working.py` kills programs that put under the same keys at once.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.helpers.support import bodies

from inorder import QueueManager, Reason, connect
from inorder.errors import ArgumentError, DuplicatePending, OptionsError
from inorder.stores.seam.backend import OperationKind
from inorder.stores.seam.tables import PutKeyRow
from inorder.testing import ManualClock
from inorder.testing.stores import RestartableStore


def keys(store: Any) -> int:
    """The number of keys that the store remembers."""
    store.backend.begin(OperationKind(writes=False))
    try:
        return len(store.backend.select(PutKeyRow))
    finally:
        store.backend.commit((), (), reserves=False, durable=False)


def test_a_repeated_put_with_the_same_key_puts_nothing_and_reports_the_duplicate(qm: QueueManager) -> None:
    first = qm.put("Q", b"one", deduplicate="order-17", message_id=b"mine")
    assert (first.duplicate_of, first.warning) == (None, None)
    again = qm.put("Q", b"two", deduplicate="order-17")
    assert (again.duplicate_of, again.uid, again.message_id) == (first.uid, first.uid, first.message_id)
    assert again.warning is Reason.DUPLICATE_PUT
    assert bodies(qm) == [b"one"]


def test_a_key_put_while_the_clock_was_ahead_is_kept_for_its_period_from_the_next_put(
    qm: QueueManager, clock: ManualClock
) -> None:
    begin = clock.now()
    clock.advance(365 * 86_400.0)
    qm.put("Q", b"1", deduplicate="a", deduplicate_for=60.0)
    clock._time = begin
    assert qm.put("Q", b"2", deduplicate="a", deduplicate_for=60.0).duplicate_of is not None
    clock.advance(59.0)
    assert qm.put("Q", b"2", deduplicate="a", deduplicate_for=60.0).duplicate_of is not None
    clock.advance(1.0)
    assert qm.put("Q", b"2", deduplicate="a", deduplicate_for=60.0).duplicate_of is None


@pytest.mark.every_store
def test_a_key_repeated_while_the_clock_was_behind_is_kept_for_its_period_from_the_first_put(
    qm: QueueManager, clock: ManualClock
) -> None:
    """A machine without a clock battery starts in the past, repeats its puts, and then sets its clock."""
    begin = clock.now()
    qm.put("Q", b"1", deduplicate="a", deduplicate_for=600.0)
    clock._time = begin - 86_400.0
    assert qm.put("Q", b"2", deduplicate="a").duplicate_of is not None
    clock._time = begin + 599.0
    assert qm.put("Q", b"2", deduplicate="a").duplicate_of is not None
    clock.advance(1.0)
    assert qm.put("Q", b"2", deduplicate="a").duplicate_of is None


@pytest.mark.every_store
def test_puts_with_other_keys_or_without_a_key_are_not_duplicates(qm: QueueManager) -> None:
    for key in ("a", "b", None, None, "A", "a ", "ä"):
        assert qm.put("Q", b"x", deduplicate=key).duplicate_of is None
    assert len(bodies(qm)) == 7


@pytest.mark.every_store
def test_the_messages_of_one_call_share_its_key(qm: QueueManager) -> None:
    first = qm.put_many("Q", [b"1", b"2"], deduplicate="k")
    again = qm.put_many("Q", [b"1", b"2", b"3"], deduplicate="k")
    assert [one.duplicate_of for one in again] == [first[0].uid] * 3
    assert qm.put("Q", b"4", deduplicate="k").duplicate_of == first[0].uid
    assert bodies(qm) == [b"1", b"2"]


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"deduplicate": ""}, ArgumentError, "1 to 200 characters"),
        ({"deduplicate": "k", "deduplicate_for": 366 * 86400.0 + 1}, ArgumentError, "above 0 and up to 31,622,400"),
        ({"deduplicate": "k", "confirm_id": 7}, OptionsError, "do not go together"),
    ],
)
def test_bad_keys_are_refused(qm: QueueManager, wrong: dict[str, object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        qm.put("Q", b"x", **wrong)  # type: ignore[arg-type]
    assert bodies(qm) == []


@pytest.mark.every_store
def test_a_long_unit_of_work_keeps_its_keys_after_their_period(
    qm: QueueManager, store: RestartableStore, clock: ManualClock
) -> None:
    qm.put("Q", b"one", deduplicate="k", deduplicate_for=10.0, syncpoint=True)
    clock.advance(1000.0)
    qm.admin.discard_expired()
    told = "a unit of work of test, which is not settled"
    with connect(store, program="other") as other, pytest.raises(DuplicatePending, match=told) as refused:
        other.put("Q", b"two", deduplicate="k")
    assert (refused.value.data["key"], refused.value.data["by"]) == ("k", "test")
    qm.commit()
    assert qm.put("Q", b"three", deduplicate="k").duplicate_of is not None


@pytest.mark.every_store
def test_a_unit_of_work_does_not_inherit_the_keys_of_the_previous_one(qm: QueueManager) -> None:
    """Depending on the store, the units of a connection have consecutive numbers or all the same one."""
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


@pytest.mark.every_store
def test_keys_are_forgotten_in_bounded_steps(qm: QueueManager, store: RestartableStore, clock: ManualClock) -> None:
    for n in range(40):
        qm.put("Q", b"x", deduplicate=str(n), deduplicate_for=1.0 + n / 100)
    clock.advance(10.0)
    qm.put("Q", b"x", deduplicate="one more")
    assert keys(store) == 39
    qm.admin.discard_expired(30)
    assert keys(store) == 9
    qm.admin.discard_expired()
    assert keys(store) == 1
