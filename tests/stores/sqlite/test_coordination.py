"""Turns, owners and counters that processes share beside the database, tested by killing real processes."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.helpers.support import LIMIT_SECONDS, Call, until
from tests.stores.sqlite.inside import count, opened, write
from tests.stores.sqlite.programs import Child

from inorder.errors import CallInProgress, StoreError
from inorder.stores.engine import points
from inorder.stores.sqlite import bell, coordination
from inorder.stores.sqlite.coordination import TURN, Coordination, attach, detach
from inorder.stores.sqlite.database import Database


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Coordination]:
    path, user = tmp_path / "orders.db-lock", object()
    yield attach(path, 0o600, user)
    detach(path, user)


# ---- owners


def test_an_owner_lives_until_it_is_released_its_database_is_closed_or_its_process_dies(
    database: Database, peer: Child
) -> None:
    large = 1 << 61
    peer.run("other, third = opened(database.path), opened(database.path)")
    peer.run(f"database.hold_owner(7); database.hold_owner(8); other.hold_owner(9); third.hold_owner({large})")
    peer.run("database.release_owner(7); other.close()")
    assert [database.shared.is_alive(n) for n in (7, 8, 9, large, large - 1)] == [False, True, False, True, False]
    assert database.shared.any_owner_alive()
    peer.kill()
    assert [database.shared.is_alive(owner) for owner in (8, large)] == [False, False]
    assert not database.shared.any_owner_alive()


def test_two_databases_of_one_process_know_each_others_owners(database: Database, path: Path, peer: Child) -> None:
    second = opened(path)
    second.hold_owner(7)
    assert database.shared.is_alive(7)
    database.hold_owner(8)
    second.close()
    assert not database.shared.is_alive(7)
    assert peer.ask("database.shared.is_alive(8)"), "closing one database dropped the locks of the other"


def test_the_child_of_a_killed_process_keeps_neither_its_owners_alive_nor_its_turn(
    database: Database, peer: Child
) -> None:
    peer.run("database.hold_owner(7)")
    peer.run("database._coordination.take(coordination.TURN)")
    grandchild = peer.ask("left_behind()")
    peer.kill()
    try:
        assert not database.shared.is_alive(7)
        with database.writing():
            pass
    finally:
        os.kill(grandchild, signal.SIGKILL)  # fails if it has ended before


# ---- the turn


def test_one_process_writes_at_a_time_and_the_next_gets_the_turn_when_it_is_killed(
    database: Database, peer: Child
) -> None:
    peer.run("database._coordination.take(coordination.TURN)")
    assert not database._coordination.try_take(TURN)
    database._coordination.give(TURN)
    writes = Call(lambda: write(database))
    peer.kill()
    assert writes.result() == 1
    assert count(database) == 1


def test_a_false_deadlock_reported_by_the_kernel_is_waited_out(
    database: Database, path: Path, monkeypatch: pytest.MonkeyPatch, peer: Child
) -> None:
    """Here a thread tidies and one waits for the turn; in the peer, the reverse. The kernel sees a deadlock."""
    shared, reported, wait = database._coordination, threading.Event(), Coordination._wait
    file = Path(f"{path}-lock").stat().st_ino

    def waits(self: Coordination, at: int) -> None:
        reported.set()
        wait(self, at)

    monkeypatch.setattr(Coordination, "_wait", waits)
    shared.take(coordination.TIDYING)
    peer.run("shared = database._coordination; shared.take(coordination.TURN)")
    peer.run("def tidy(): shared.take(coordination.TIDYING); shared.give(coordination.TIDYING)")
    peer.run("thread = threading.Thread(target=tidy); thread.start()")
    until(lambda: bool(re.search(rf"-> .*:{file} ", Path("/proc/locks").read_text())), "the peer waits")
    waiting = Call(partial(shared.take, TURN))
    assert reported.wait(LIMIT_SECONDS)
    peer.run("shared.give(coordination.TURN)")
    waiting.result()
    shared.give(TURN)
    shared.give(coordination.TIDYING)
    peer.run("thread.join()")


# ---- rounds of syncs


def begin_to_lead(child: Child, ticket: int) -> None:
    """Makes the child lead a round of syncs for this commit, and pause in it until `go_on` is written."""
    child.run("told, leading = os.pipe(); wait, go_on = os.pipe(); shared = database._coordination")
    child.run("def lead(): os.write(leading, b'.'); os.read(wait, 1)")
    child.run(f"thread = threading.Thread(target=lambda: shared.sync({ticket}, lead)); thread.start()")
    child.run("os.read(told, 1)")


def test_a_killed_leader_counts_no_commit_as_synced(database: Database, peer: Child) -> None:
    with database.writing():
        pass
    begin_to_lead(peer, 1)
    done: list[str] = []
    call = Call(lambda: database._coordination.sync(1, lambda: done.append("here")))
    peer.kill()
    call.result()
    assert done == ["here"]


def test_a_stopped_leader_is_passed_over_once(database: Database, monkeypatch: pytest.MonkeyPatch, peer: Child) -> None:
    shared = database._coordination
    monkeypatch.setattr(coordination, "LEADER_SECONDS", 0.05)
    ticket = write(database)
    begin_to_lead(peer, ticket)
    process = peer.process.pid
    assert process is not None
    os.kill(process, signal.SIGSTOP)
    try:
        done: list[str] = []
        shared.sync(ticket, lambda: done.append("instead of it"))
        assert done == ["instead of it"]
        shared.sync(write(database), lambda: done.append("in a round"))
        assert done == ["instead of it", "in a round"]
        monkeypatch.setattr(coordination, "LEADER_SECONDS", 3600.0)  # nobody waits for the old leader any more
        last = write(database)
        shared.sync(last, lambda: done.append("and again"))
        assert shared.words[coordination.SYNCED] == last
    finally:
        os.kill(process, signal.SIGCONT)
    peer.run("os.write(go_on, b'.'); thread.join()")
    assert shared.words[coordination.SYNCED] == last, "what it had synced is less"


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock that delays and measures syncs: it advances only while they sleep."""
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(coordination, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    return now


def test_the_pause_of_a_leader_that_was_passed_over_is_not_counted_as_sync_time(
    database: Database, now: list[float]
) -> None:
    shared = database._coordination

    def stopped_for_an_hour() -> None:
        shared.words[coordination.LEADER] = coordination.NOBODY  # as the process that passed it over has left it
        now[0] += 3600.0

    shared.words[coordination.SYNC_US] = 100
    shared.sync(write(database), stopped_for_an_hour)
    assert shared.words[coordination.SYNC_US] == 100, "others would wait four times as long for the next one stopped"


def test_no_process_waits_for_a_leader_that_an_exception_has_stopped(
    database: Database, monkeypatch: pytest.MonkeyPatch, peer: Child
) -> None:
    monkeypatch.setattr(coordination, "LEADER_SECONDS", 3600.0)
    ticket = write(database)
    peer.run("def fail(): raise InorderError('from outside')")
    assert peer.ask(f"error_of(lambda: database._coordination.sync({ticket}, fail))") == "InorderError"
    done: list[int] = []
    database._coordination.sync(ticket, lambda: done.append(ticket))
    assert done == [ticket]


def test_two_processes_never_share_a_seat(database: Database, path: Path) -> None:
    with Child() as child:  # with the id of this process, as in another container
        child.run(f"os.getpid = lambda: {os.getpid()}; database = opened({str(path)!r})")
        assert child.ask("database._coordination._seat") == database._coordination._seat + 1


def test_a_process_whose_commit_is_synced_continues_although_the_next_round_has_begun(
    database: Database, path: Path, peer: Child
) -> None:
    shared, go_on = database._coordination, threading.Event()
    with Child(path) as covered:
        covered.run("coordination.LEADER_SECONDS = 3600.0; write(database)")
        begin_to_lead(peer, 1)
        write(database)
        next_round = Call(lambda: shared.sync(2, lambda: (go_on.wait(), None)[1]))
        covered.begin("database._coordination.sync(1, None)")  # would fail if it led
        peer.run("os.write(go_on, b'.'); thread.join()")
        covered.answer()
        assert not next_round.done
        go_on.set()
        next_round.result()
        assert shared.words[coordination.SYNCED] == 2


@pytest.mark.skipif(not bell.WAKES, reason="without a futex it is looked for")
def test_a_call_that_waits_for_a_round_of_syncs_is_woken_at_its_end(
    database: Database, monkeypatch: pytest.MonkeyPatch, peer: Child
) -> None:
    """Until then, it asks neither how far the round has come nor whether its leader lives."""
    monkeypatch.setattr(coordination, "LOOK_SECONDS", 3600.0)
    monkeypatch.setattr(coordination, "LEADER_SECONDS", 3600.0)
    asleep, sleep = threading.Event(), bell.sleep

    def sleeps(*what: float) -> None:
        asleep.set()
        sleep(*what)  # type: ignore[arg-type]

    monkeypatch.setattr(bell, "sleep", sleeps)
    ticket = write(database)
    begin_to_lead(peer, ticket)
    covered = Call(lambda: database._coordination.sync(ticket, lambda: pytest.fail("it is covered")))
    assert asleep.wait(LIMIT_SECONDS)
    peer.run("os.write(go_on, b'.'); thread.join()")
    covered.result()


def test_a_thread_whose_commit_is_synced_continues_although_the_next_round_has_begun(shared: Coordination) -> None:
    """The same among threads: the leader of the next round may not delay those that came before it."""
    rounds, may_end = [threading.Event() for _ in range(4)], [threading.Event() for _ in range(4)]
    led = iter(range(4))

    def act() -> None:
        number = next(led)
        rounds[number].set()
        assert may_end[number].wait(LIMIT_SECONDS)

    def committed() -> int:
        shared.words[coordination.UNANNOUNCED] = 1
        return shared.after_commit(())

    def syncs(numbers: list[int]) -> list[Call[None]]:
        return [Call(partial(shared.sync, number, act)) for number in numbers]

    try:
        first = syncs([committed()])
        assert rounds[0].wait(LIMIT_SECONDS)
        early = [committed() for _ in range(8)]
        covered = syncs(early[:4])
        may_end[0].set()
        assert rounds[1].wait(LIMIT_SECONDS)  # it covers all eight
        later = syncs([committed() for _ in range(4)])
        covered += syncs(early[4:])  # after those that it does not cover
        may_end[1].set()
        assert rounds[2].wait(LIMIT_SECONDS)
        for call in (*first, *covered):
            call.ends()
    finally:
        for event in may_end:
            event.set()
    for call in later:
        call.result()


SLOW_US = 1_000_000_000  # after a sync as long as this, the next one may be delayed for half of it


def test_a_slow_sync_is_delayed_until_the_woken_process_has_committed(
    database: Database, monkeypatch: pytest.MonkeyPatch, peer: Child
) -> None:
    monkeypatch.setattr(coordination, "HOLD_SECONDS_MAX", SLOW_US / 2e6)
    number = commit_that_wakes(database, monkeypatch)
    database.shared.words[coordination.SYNC_US] = SLOW_US
    peer.begin("answer = write(database)")
    database.sync(number)
    assert peer.answer() == number + 1
    assert database.shared.words[coordination.SYNCED] == number + 1, "one sync was to do for both commits"


def commit_that_wakes(database: Database, monkeypatch: pytest.MonkeyPatch, *, count: int = 1) -> int:
    """A commit that wakes slot 3, on which `count` calls wait, according to the system."""
    monkeypatch.setattr(bell, "wake", lambda _address, _bits: count)
    with database.writing():
        database.shared.bell.expect(3)
        database.shared.words[coordination.WAITERS] = 0  # not only this process waits
    database.begin(writes=True)
    return database.commit([3])


@pytest.mark.parametrize(("last_us", "wakes"), [(SLOW_US, False), (900, True)], ids=["nobody was woken", "it is quick"])
def test_a_sync_is_not_delayed_if_no_call_was_woken_or_the_disk_is_quick(
    database: Database, monkeypatch: pytest.MonkeyPatch, now: list[float], last_us: int, wakes: bool
) -> None:
    number = commit_that_wakes(database, monkeypatch, count=int(wakes))
    database.shared.words[coordination.SYNC_US] = last_us
    database.sync(number)
    assert database.shared.words[coordination.SYNCED] == number
    assert now == [0.0]


def test_a_sync_is_delayed_until_another_one_covers_it_but_no_longer_than_the_maximum(
    database: Database, monkeypatch: pytest.MonkeyPatch, now: list[float]
) -> None:
    """The calls that were woken may be stopped, or find no message."""
    shared, number = database._coordination, commit_that_wakes(database, monkeypatch)
    shared.words[coordination.SYNC_US] = SLOW_US
    database.sync(number)
    assert 0 < now[0] < 2 * coordination.HOLD_SECONDS_MAX

    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        shared.words[coordination.SYNCED] = number  # another process has synced

    number = commit_that_wakes(database, monkeypatch)
    shared.words[coordination.SYNC_US] = SLOW_US
    monkeypatch.setattr("inorder.stores.sqlite.coordination.time.sleep", sleep)
    database.sync(number)
    assert len(slept) == 1


# ---- changes


def test_a_change_that_was_rolled_back_is_not_announced(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_point: str) -> None:
        raise ZeroDivisionError

    before = database.shared.seen(3)
    database.begin(writes=True)
    with monkeypatch.context() as patched:
        patched.setattr(points, "reached", fail)
        with pytest.raises(ZeroDivisionError) as failed:  # the commit fails before it happens
            database.commit([3])
        database.abort(failed.value)
    with database.writing():
        pass
    assert database.shared.seen(3) == before


@pytest.mark.parametrize("tries", [False, True])
def test_the_next_process_announces_the_commit_of_a_killed_one(database: Database, peer: Child, tries: bool) -> None:
    database.sync(write(database))
    before, commits = database.shared.seen(3), database.shared.commits
    peer.run("shared = database._coordination; shared.take(coordination.TURN)")
    peer.run("shared.words[coordination.UNANNOUNCED] = 1")
    assert (commits is None, database.shared.commits) == (False, None)
    peer.kill()
    if tries:
        assert database.keep_turn()
        assert database.shared.seen(3) > before
        database.give_turn()
    with database.writing():
        assert database.shared.is_reservation_open, "what it reserved is not on disk"
    assert database.shared.seen(3) > before
    assert database.shared.commits != commits
    database.sync(write(database))
    assert not database.shared.is_reservation_open


def test_slot_numbers_are_taken_modulo_the_number_of_slots(database: Database) -> None:
    database.begin(writes=True)
    database.commit([coordination.SLOTS + 5])
    assert database.shared.seen(5) == database.shared.seen(coordination.SLOTS + 5) == 1


# ---- the queue manager's flag, and the first to open


def test_the_first_process_to_open_a_store_resets_the_shared_words(path: Path, peer: Child) -> None:
    peer.run("database.sync(write(database)); database.shared.stopped = True")
    peer.kill()
    database = opened(path)
    assert not database.shared.stopped
    assert database.shared.words[coordination.COMMITTED] == database.shared.words[coordination.SYNCED] == 0
    database.close()


def test_a_sidecar_that_was_removed_is_noticed(database: Database, path: Path) -> None:
    Path(f"{path}-lock").unlink()
    with pytest.raises(StoreError, match="-lock was deleted or replaced"), database.writing():
        pass
    with pytest.raises(StoreError, match="-lock was deleted or replaced"):
        opened(path)


def test_the_second_process_to_create_the_sidecar_keeps_the_words_in_use(
    path: Path, peer: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both processes find it empty, and the first commits before the second goes on."""
    peer.run("database.close()")
    sidecar = Path(f"{path}-lock")
    sidecar.unlink()
    fstat, done = os.fstat, list[int]()

    def early(descriptor: int) -> os.stat_result:
        found = fstat(descriptor)
        if not done:
            assert found.st_size == 0
            done.append(peer.ask(f"write(database := opened({str(path)!r}))"))
        return found

    monkeypatch.setattr(os, "fstat", early)
    database = opened(path)
    assert done[0] > 0
    assert database.shared.words[coordination.COMMITTED] >= done[0]
    database.close()


def test_a_process_that_opens_a_sidecar_just_before_its_removal_opens_the_next_one(
    path: Path, peer: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No process has the old one open when it enters, so only the missing name shows that it is old."""
    peer.run("database.close()")
    sidecar, enter, done = Path(f"{path}-lock"), Coordination._enter, list[int]()

    def late(self: Coordination, database: tuple[int, int] | None) -> None:
        if not done:
            sidecar.unlink()
            done.append(peer.ask(f"write(database := opened({str(path)!r}))"))
        enter(self, database)

    monkeypatch.setattr(Coordination, "_enter", late)
    database = opened(path)
    assert database.shared.words[coordination.COMMITTED] >= done[0]
    write(database)
    database.close()


def test_a_sidecar_that_cannot_be_opened_is_reported(path: Path) -> None:
    Path(f"{path}-lock").mkdir()
    with pytest.raises(StoreError, match="-lock belongs to it, and is a link or not an ordinary file"):
        opened(path)


def test_the_sidecar_has_the_permissions_of_the_store(path: Path) -> None:
    path.touch()
    path.chmod(0o640)
    database = opened(path)
    assert Path(f"{path}-lock").stat().st_mode & 0o777 == 0o640
    database.close()


# ---- a turn that is kept for several transactions


def test_a_failed_try_for_the_turn_does_not_announce_the_commit_of_another_process(
    database: Database, peer: Child
) -> None:
    before, committed = database.shared.seen(3), database.shared.words[coordination.COMMITTED]
    peer.run("shared = database._coordination; shared.take(coordination.TURN)")
    peer.run("shared.words[coordination.UNANNOUNCED] = 1")
    for _ in range(2):
        assert not database.keep_turn()
        database.give_turn()
    assert (database.shared.seen(3), database.shared.words[coordination.COMMITTED]) == (before, committed)


def test_a_kept_turn_lasts_for_several_transactions(database: Database, peer: Child) -> None:
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


def test_opening_the_store_again_inside_a_turn_is_refused(database: Database, peer: Child) -> None:
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
    """An exception comes between the two; the caller catches it, and writes on in the same turn."""

    def interrupt(*_: object, **__: object) -> int:
        raise KeyboardInterrupt

    before = database.shared.seen(3)
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
    assert database.shared.seen(3) > before


def test_closing_a_store_inside_a_turn_releases_the_turn(database: Database, peer: Child) -> None:
    assert database.keep_turn()
    database.close()
    for _ in range(2):
        database.give_turn()
    assert peer.ask("database._coordination.try_take(coordination.TURN)")
