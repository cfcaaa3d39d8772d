"""The claim that is taken ahead: while an application works on one, the next is held for it already (spark.md 2)."""

from __future__ import annotations

import pytest
from tests.helpers.claiming import STRICT_GROUPS, Application, interleaved, put_all, store_of

from inorder import QueueManager


@pytest.mark.every_store
def test_at_most_two_claims_hold_messages(qm: QueueManager) -> None:
    put_all(qm, [b"%d" % number for number in range(6)])
    app = Application(store_of(qm))
    app.claim(0, most=1)
    for number in range(1, 5):
        app.plan(number - 1, number)
        app.claim(number, most=1, ahead=True)
        app.claim(number)
        (account,) = store_of(qm).claims()
        assert [one.number for one in account.held] == [number, number + 1]
    app.plan(4, 5)
    app.claim(5, most=1, ahead=True)
    (account,) = store_of(qm).claims()
    assert [one.number for one in account.held] == [5, 6], "what is over goes before more is taken"


@pytest.mark.every_store
def test_a_claim_that_is_done_goes_with_the_next_start(qm: QueueManager) -> None:
    for ends in ("begin", "release", "finish", "claim"):
        qm.create_queue(ends)
        for body in (b"a", b"b"):
            qm.put(ends, body)
        app = Application(store_of(qm), queue=ends)
        app.claim(0, most=1)
        app.plan(0, 1)
        app.claim(1, most=1, ahead=True)
        app.claim(1)
        assert qm.inspect.status(ends).current_depth == 2
        if ends == "begin":
            app = Application(store_of(qm), queue=ends)
            assert app.settled == 1
            assert app.bodies(2) == [b"b"]
        elif ends == "release":
            assert store_of(qm).release_claims(ends, "app") == 1
        elif ends == "finish":
            assert store_of(qm).finish_claims(ends, "app", 1) == 1
        else:
            assert app.claim(2) is None
        assert qm.inspect.status(ends).current_depth == (0 if ends == "claim" else 1), ends


def test_strict_groups_ahead(qm: QueueManager) -> None:
    groups = interleaved(qm, {b"x": 3, b"y": 2, b"z": 2}, without=[(b"z", 2)])
    app = Application(store_of(qm))
    app.claim(0, STRICT_GROUPS, most=3)
    app.plan(0, 1)
    ahead = app.claim(1, STRICT_GROUPS, most=9, ahead=True)
    assert ahead is not None
    assert (ahead.messages, ahead.more) == (2, False)
    app.claim(1)
    assert app.bodies(2) == groups[b"y"]
