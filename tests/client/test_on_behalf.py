"""What a door begins to hold for one of its users is listed under that user."""

from __future__ import annotations

from typing import Any

import pytest

import inorder
from inorder import QueueManager


def holders(qm: QueueManager) -> dict[str, str]:
    """The users of confirm ids and lock ids, by kind and name."""
    return {f"{one.kind} {one.name}": one.program.user for one in qm.inspect.units() if one.kind in ("confirm", "lock")}


def test_ids_that_begin_inside_are_listed_under_the_user(qm: QueueManager) -> None:
    qm.put_many("Q", [b"1", b"2", b"3"])
    with qm.accounts.on_behalf_of("ada"):
        qm.get("Q", confirm_id=7)
        lock_id = qm.browse_and_lock("Q", most=1).lock_id
        with qm.accounts.on_behalf_of("bob"):
            qm.put("Q", b"4", confirm_id=8)
        qm.put("Q", b"5", confirm_id=9)
    assert holders(qm) == {"confirm 7": "ada", f"lock {lock_id}": "ada", "confirm 8": "bob", "confirm 9": "ada"}
    (lock,) = qm.inspect.locks()
    assert (lock.program.user, lock.program.name) == ("ada", "test")


def test_after_the_block_and_in_units_of_work_it_is_the_program(qm: QueueManager) -> None:
    qm.put_many("Q", [b"1", b"2"])
    own = {one.program.user for one in qm.inspect.connections()}
    with qm.accounts.on_behalf_of("ada"), qm.unit_of_work():
        qm.get("Q")
        assert {one.program.user for one in qm.inspect.units()} == own
    qm.get("Q", confirm_id=7)
    assert set(holders(qm).values()) == own


def test_an_id_keeps_the_user_who_began_it(qm: QueueManager) -> None:
    qm.put_many("Q", [b"1", b"2"])
    for user in ("ada", "bob"):
        with qm.accounts.on_behalf_of(user):
            qm.get("Q", confirm_id=7)
    assert holders(qm) == {"confirm 7": "ada"}


def test_what_is_not_a_user_is_refused(qm: QueueManager) -> None:
    wrong: list[Any] = ["", "x" * 257, None, b"ada", "\ud800"]
    for user in wrong:
        with (
            pytest.raises(inorder.ArgumentError, match="user must be a text of 1 to 256"),
            qm.accounts.on_behalf_of(user),
        ):
            raise AssertionError("the block has begun")
