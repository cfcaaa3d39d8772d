"""A turn that is kept for several transactions, beside other processes that want it."""

from __future__ import annotations

import pytest
from tests.stores.sqlite.programs import Child

from inorder.errors import CallInProgress
from inorder.stores.sqlite.database import Database


def test_who_tries_in_vain_does_not_announce_what_another_process_commits(database: Database, peer: Child) -> None:
    before, committed = database.seen(3), database._coordination.committed
    peer.run("shared = database._coordination; shared.take(coordination.TURN)")
    peer.run("shared.words[coordination.UNANNOUNCED] = 1")
    for _ in range(2):
        assert not database.keep_turn()
        database.give_turn()
    assert (database.seen(3), database._coordination.committed) == (before, committed)


def test_a_turn_that_is_kept_is_one_for_several_transactions(database: Database, peer: Child) -> None:
    assert database.keep_turn()
    assert not database.keep_turn(), "it is kept already"
    for _ in range(2):
        with database.writing():
            pass
        assert not peer.ask("database._coordination.try_take(coordination.TURN)")
        peer.run("database._coordination.give(coordination.TURN)")
    for _ in range(2):
        database.give_turn()
    assert peer.ask("database._coordination.try_take(coordination.TURN)")


def test_the_store_is_not_opened_once_more_inside_of_a_turn(database: Database, peer: Child) -> None:
    assert database.keep_turn()
    with pytest.raises(CallInProgress):
        database.again()
    assert not peer.ask("database._coordination.try_take(coordination.TURN)"), "it is still ours"
    peer.run("database._coordination.give(coordination.TURN)")
    database.give_turn()
    assert peer.ask("database._coordination.try_take(coordination.TURN)")
    peer.run("database._coordination.give(coordination.TURN)")
    database.again().close()


def test_a_commit_that_was_not_announced_is_announced_before_the_next(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exception from outside comes between the two, and who catches it writes on in the same turn."""

    def interrupt(*_: object, **__: object) -> int:
        raise KeyboardInterrupt

    before = database.seen(3)
    assert database.keep_turn()
    database.begin(writes=True)
    with monkeypatch.context() as patched:
        patched.setattr(database._coordination, "after_commit", interrupt)
        with pytest.raises(KeyboardInterrupt) as came:
            database.commit([3])
    database.abort(came.value)
    assert database.has_happened
    with database.writing():
        pass
    database.give_turn()
    assert database.seen(3) > before


def test_a_store_that_was_closed_inside_of_a_turn_has_given_it_back(database: Database, peer: Child) -> None:
    assert database.keep_turn()
    database.close()
    for _ in range(2):
        database.give_turn()
    assert peer.ask("database._coordination.try_take(coordination.TURN)")


def test_a_turn_that_is_tried_tells_what_a_dead_process_could_not(database: Database, peer: Child) -> None:
    before = database.seen(3)
    peer.run("shared = database._coordination; shared.take(coordination.TURN)")
    peer.run("shared.words[coordination.UNANNOUNCED] = 1")
    peer.kill()
    assert database.keep_turn()
    assert database.seen(3) > before
    database.give_turn()
