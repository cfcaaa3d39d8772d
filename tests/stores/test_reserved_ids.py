"""Unique ids that a connection reserves before it puts: no other connection gets them, and each is used once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from inorder import Flags, Match, Message, QueueManager, UniqueId, connect
from inorder.errors import ArgumentError, DuplicateMessage, QueueFull
from inorder.model.options import OpenOptions, PutOptions
from inorder.rules.grouping import NOTHING_OPEN
from inorder.rules.puts import Program, PutResult
from inorder.stores.seam.protocol import Store
from inorder.stores.seam.records import PutRequest
from inorder.testing.stores import RestartableStore

pytestmark = pytest.mark.every_store


class Putter:
    """A connection that puts on a queue, under ids that it reserves."""

    def __init__(self, store: Store, queue: str = "Q") -> None:
        self.store, self.state = store, NOTHING_OPEN
        self.owner = store.connect(Program("tester", "putter"))
        self.handle = store.open(self.owner, queue, OpenOptions(output=True)).handle

    def put(
        self, number: int, *messages: Message | bytes, in_unit: bool = False, **options: Any
    ) -> Sequence[PutResult]:
        request = PutRequest(self.handle, messages, PutOptions(**options), self.state, in_unit, number)
        results, self.state = self.store.put(request)
        return results


def uids(qm: QueueManager, queue: str = "Q") -> list[UniqueId | None]:
    return [message.uid for message in qm.browse(queue)]


def block(first: UniqueId, count: int, start: int = 0) -> list[UniqueId | None]:
    return [UniqueId(first.origin, first.number + n) for n in range(start, start + count)]


def test_messages_have_the_reserved_ids_in_order(qm: QueueManager, store: RestartableStore) -> None:
    putter = Putter(store)
    first = store.reserve_numbers(putter.owner, 5)
    (one,) = putter.put(first.number, b"0")
    more = putter.put(first.number + 1, b"1", Message(b"2", correlation_id=b"c" * 24), b"3")
    drawn = putter.put(0, b"drawn")
    (last,) = putter.put(first.number + 4, b"4")
    told = [one.uid, *(each.uid for each in more), last.uid]
    assert told == block(first, 5)
    assert uids(qm) == [*told[:4], drawn[0].uid, told[4]], "the order is that of the puts"
    found = [message.body for uid in told for message in qm.browse("Q", match=Match(uid=uid))]
    assert found == [b"0", b"1", b"2", b"3", b"4"]
    assert list(qm.admin.check()) == []


def test_only_unused_ids_of_the_own_block_are_accepted(qm: QueueManager, store: RestartableStore) -> None:
    one, two = Putter(store), Putter(store)
    mine, others = store.reserve_numbers(one.owner, 4).number, store.reserve_numbers(two.owner, 4).number
    (drawn,) = one.put(0, b"drawn")
    for forged in (others, mine - 1, mine + 4, drawn.uid.number, -1, 2**63):
        with pytest.raises(ArgumentError, match=f"the first of 1 ids in .* block, {mine} to {mine + 3}"):
            one.put(forged, b"x")
    with pytest.raises(ArgumentError, match="uid_number must be"):
        one.put(mine + 2, b"x", b"y", b"beyond the block")
    with pytest.raises(ArgumentError, match="uid_number must be 0 with the option uid"):
        one.put(mine, b"x", uid=UniqueId("ELSEWHERE", 1))
    one.put(mine + 1, b"skips one")
    for used in (mine + 1, mine):
        with pytest.raises(ArgumentError, match="uid_number"):
            one.put(used, b"x")
    one.put(mine + 2, b"up to", b"the end")
    with pytest.raises(ArgumentError, match=r"uid_number must be 0, because .* no reserved ids left"):
        one.put(mine + 3, b"x")
    two.put(others, b"of the other one")
    assert [message.body for message in qm.browse("Q")] == [
        b"drawn", b"skips one", b"up to", b"the end", b"of the other one"
    ]  # fmt: skip


@pytest.mark.parametrize("count", [0, -1, 10_001])
def test_a_block_has_1_to_10000_ids(store: RestartableStore, qm: QueueManager, count: int) -> None:
    with pytest.raises(ArgumentError, match="count must be a whole number from 1 to 10,000"):
        store.reserve_numbers(Putter(store).owner, count)


def test_blocks_overlap_neither_each_other_nor_drawn_numbers(qm: QueueManager, store: RestartableStore) -> None:
    one, two = Putter(store), Putter(store)
    taken: list[int] = []
    for count in (1, 250, 10_000, 3):
        for putter in (one, two):
            first = store.reserve_numbers(putter.owner, count).number
            taken += range(first, first + count)
            taken.append(putter.put(0, b"drawn")[0].uid.number)
    assert len(set(taken)) == len(taken)


def test_another_block_replaces_the_first(store: RestartableStore, qm: QueueManager) -> None:
    putter = Putter(store)
    first = store.reserve_numbers(putter.owner, 10).number
    again = store.reserve_numbers(putter.owner, 2).number
    assert again >= first + 10
    with pytest.raises(ArgumentError, match="uid_number"):
        putter.put(first, b"x")
    assert putter.put(again, b"y")[0].uid.number == again


def test_a_put_that_fails_uses_up_no_ids(qm: QueueManager, store: RestartableStore) -> None:
    qm.create_queue("SMALL", max_depth=1)
    putter = Putter(store, "SMALL")
    first = store.reserve_numbers(putter.owner, 2).number
    with pytest.raises(QueueFull):
        putter.put(first, b"a", b"b")
    assert putter.put(first, b"a")[0].uid.number == first


def test_ids_of_a_unit_that_is_backed_out_stay_used(qm: QueueManager, store: RestartableStore) -> None:
    putter = Putter(store)
    first = store.reserve_numbers(putter.owner, 3)
    putter.put(first.number, b"a", b"b", in_unit=True)
    store.settle(putter.owner, "back_out")
    with pytest.raises(ArgumentError, match="uid_number"):
        putter.put(first.number, b"a")
    putter.put(first.number + 2, b"c", in_unit=True)
    store.settle(putter.owner, "commit")
    assert uids(qm) == block(first, 1, 2)


@pytest.mark.parametrize("order", ["commit", "put"])
def test_a_unit_keeps_the_order_of_its_puts(qm: QueueManager, store: RestartableStore, order: Any) -> None:
    qm.create_queue("OTHER", order=order, max_length=16)
    putter = Putter(store, "OTHER")
    first = store.reserve_numbers(putter.owner, 9).number
    putter.put(0, b"0", in_unit=True)
    long = Message(b"a" * 16 + b"b" * 16 + b"c", flags=Flags.SEGMENTATION_ALLOWED)
    results = putter.put(first, b"1", long, b"2", in_unit=True)
    putter.put(0, b"3", in_unit=True)
    putter.put(first + 3, b"4", in_unit=True)
    store.settle(putter.owner, "commit")
    found = list(qm.browse("OTHER"))
    assert [one.body for one in found] == [b"0", b"1", b"a" * 16, b"b" * 16, b"c", b"2", b"3", b"4"]
    assert [one.uid for one in results] == block(UniqueId(results[0].uid.origin, first), 3)
    assert [found[n].uid for n in (1, 2, 5, 7)] == block(UniqueId(results[0].uid.origin, first), 4)
    pieces = {found[3].uid.number, found[4].uid.number}
    assert not pieces & set(range(first, first + 9)), "further segments have other ids"


def test_messages_on_a_queue_that_keeps_no_order_have_their_reserved_ids(
    qm: QueueManager, store: RestartableStore
) -> None:
    qm.create_queue("OTHER", read_order="unordered")
    putter = Putter(store, "OTHER")
    first = store.reserve_numbers(putter.owner, 3)
    putter.put(first.number, b"a")
    putter.put(first.number + 1, b"b", b"c")
    assert sorted(uids(qm, "OTHER"), key=str) == block(first, 3)


def test_members_of_a_group_whose_id_is_generated_have_their_reserved_ids(
    qm: QueueManager, store: RestartableStore
) -> None:
    putter = Putter(store)
    first = store.reserve_numbers(putter.owner, 2)
    members = Message(b"a", flags=Flags.IN_GROUP), Message(b"b", flags=Flags.LAST_IN_GROUP)
    results = putter.put(first.number, *members, logical=True, new_correlation_id=True)
    assert uids(qm) == block(first, 2) == [one.uid for one in results]
    assert [message.body for message in qm.get_group("Q")] == [b"a", b"b"]


def test_a_repeat_under_a_key_names_the_id_of_the_first_put(store: RestartableStore, qm: QueueManager) -> None:
    one, two = Putter(store), Putter(store)
    first, other = store.reserve_numbers(one.owner, 1), store.reserve_numbers(two.owner, 1)
    (put,) = one.put(first.number, b"a", deduplicate="key")
    (again,) = two.put(other.number, b"a", deduplicate="key")
    assert (put.duplicate_of, again.duplicate_of, again.uid) == (None, first, first)
    assert uids(qm) == [first]


def test_a_late_put_that_was_already_repeated_puts_nothing(qm: QueueManager, store: RestartableStore) -> None:
    putter = Putter(store)
    first = store.reserve_numbers(putter.owner, 3)
    qm.put("Q", b"b", uid=UniqueId(first.origin, first.number + 1), resend=True)
    with pytest.raises(DuplicateMessage, match="is already on Q"):
        putter.put(first.number, b"a", b"b", b"c")
    assert uids(qm) == block(first, 1, 1)
    putter.put(first.number, b"a")
    qm.put("Q", b"a", uid=first, resend=True)
    assert uids(qm) == [*block(first, 1, 1), first], "and the other way round"


def test_a_put_under_a_confirm_id_can_be_repeated_with_its_reserved_id(
    qm: QueueManager, store: RestartableStore
) -> None:
    putter = Putter(store)
    first = store.reserve_numbers(putter.owner, 1)
    putter.put(first.number, b"a", confirm_id=7)
    qm.put("Q", b"a", uid=first, confirm_id=7, resend=True)
    qm.confirm_put("Q", first, confirm_id=7)
    assert uids(qm) == [first]


def test_reserved_ids_are_not_given_again_after_a_restart(store: RestartableStore, qm: QueueManager) -> None:
    putter = Putter(store)
    first = store.reserve_numbers(putter.owner, 500)
    putter.put(first.number, b"a")
    store.restart()
    putter = Putter(store)
    with pytest.raises(ArgumentError, match="no reserved ids left"):
        putter.put(first.number + 1, b"b")
    again = store.reserve_numbers(putter.owner, 1)
    assert again.number >= first.number + 500
    putter.put(again.number, b"b")
    with connect(store) as other:
        assert uids(other) == [first, again]
