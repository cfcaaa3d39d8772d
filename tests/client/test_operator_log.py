"""The log of what was done through a door and cannot be taken back."""

from __future__ import annotations

from typing import Any

import pytest
from tests.helpers.support import Stores

from inorder import QueueManager, connect
from inorder.errors import ArgumentError
from inorder.testing import ManualClock


def test_an_act_is_noted_with_who_when_where_what_and_how_many(qm: QueueManager, clock: ManualClock) -> None:
    qm.put_many("Q", [b"1", b"2"])
    clock.advance(5)
    with qm.accounts.acting("clear", "Q", user="alice", address="10.0.0.1") as act:
        [begun] = qm.connect().accounts.acts()
        assert (begun.outcome, begun.messages) == ("begun", None), "before it is done"
        act.messages = qm.admin.clear_queue("Q")
    [noted] = qm.accounts.acts()
    assert noted[1:] == (clock.now(), "alice", "10.0.0.1", "clear", "Q", "done", 2, "")


def test_an_act_that_fails_is_noted_with_its_error(qm: QueueManager) -> None:
    with pytest.raises(ZeroDivisionError), qm.accounts.acting("divide", user="alice"):
        raise ZeroDivisionError("nothing to divide by")
    [noted] = qm.accounts.acts()
    assert (noted.outcome, noted.error) == ("failed", "ZeroDivisionError: nothing to divide by")


def test_a_back_out_leaves_the_note(qm: QueueManager) -> None:
    with qm.accounts.acting("discard", "Q", user="alice"):
        qm.put("Q", b"1", syncpoint=True)
    qm.back_out()
    assert [(one.outcome, one.messages) for one in qm.accounts.acts()] == [("done", None)]


@pytest.mark.every_store
def test_the_log_keeps_the_newest(qm: QueueManager, clock: ManualClock) -> None:
    qm.admin.alter_manager(acts_kept=3)
    for number in range(7):
        with qm.accounts.acting(f"act {number}", user="alice"):
            clock.advance(1)
    assert [one.act for one in qm.accounts.acts()] == ["act 6", "act 5", "act 4"]
    qm.admin.alter_manager(acts_kept=1)
    with qm.accounts.acting("last", user="alice"):
        pass
    assert [one.act for one in qm.accounts.acts()] == ["last"]


def test_an_act_that_goes_on_while_others_take_its_place_is_forgotten(qm: QueueManager) -> None:
    qm.admin.alter_manager(acts_kept=1)
    with qm.accounts.acting("long", user="alice"), qm.accounts.acting("short", user="bob"):
        pass
    assert [one.act for one in qm.accounts.acts()] == ["short"]


@pytest.mark.every_store
def test_the_log_is_read_in_parts_and_chosen_from(qm: QueueManager, clock: ManualClock) -> None:
    for number in range(1203):
        qm._services.store.begin_act(("alice", "bob")[number % 2], "", f"{number}", ("Q", "")[number % 3 == 0])
        clock.advance(1 if number % 5 == 0 else 0)
    acts = [one.act for one in qm.accounts.acts()]
    assert sorted(acts, key=int, reverse=True) == [str(number) for number in reversed(range(1203))]
    at = [one.at for one in qm.accounts.acts()]
    assert at == sorted(at, reverse=True)
    assert [one.act for one in qm.accounts.acts(most=2)] == acts[:2]
    assert {one.user for one in qm.accounts.acts(user="bob")} == {"bob"}
    assert len(list(qm.accounts.acts(queue=""))) == 401
    assert list(qm.accounts.acts(most=0)) == []
    since = clock.now() - 10
    assert list(qm.accounts.acts(since=since)) == [one for one in qm.accounts.acts() if one.at >= since]


@pytest.mark.every_store
def test_the_log_is_there_after_a_restart(stores: Stores) -> None:
    store = stores.make()
    with connect(store) as qm, qm.accounts.acting("clear", "Q", user="alice"):
        pass
    store.restart()
    with connect(store) as qm:
        assert [(one.act, one.outcome) for one in qm.accounts.acts()] == [("clear", "done")]


@pytest.mark.parametrize(
    "bad",
    [{"act": ""}, {"act": 5}, {"act": "x" * 257}, {"queue": None}, {"user": ""}, {"user": None}, {"address": 5}],
    ids=repr,
)
def test_bad_acts_are_refused_and_not_done(qm: QueueManager, bad: dict[str, Any]) -> None:
    given = {"act": "clear", "queue": "Q", "user": "alice", **bad}
    with pytest.raises(ArgumentError, match=f"{next(iter(bad))} must be a text"), qm.accounts.acting(**given):
        raise AssertionError("it was done all the same")
    assert list(qm.accounts.acts()) == []


@pytest.mark.parametrize("bad", [{"most": -1}, {"most": "x"}, {"user": 5}, {"queue": b"Q"}, {"since": "now"}], ids=repr)
def test_bad_questions_are_refused(qm: QueueManager, bad: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=next(iter(bad))):
        qm.accounts.acts(**bad)
