"""A store that only another process can use again: long-running programs end with an exit status of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.helpers.channelled import link, manager
from tests.helpers.support import LIMIT_SECONDS
from tests.helpers.working import Heard

from inorder import QueueManager, connect
from inorder.errors import StoreError
from inorder.mq import channels
from inorder.mq.dead_letter_handler import handle_dead_letters, read_rules
from inorder.mq.trigger_monitor import run_trigger_monitor
from inorder.stores.sqlite import log
from inorder.work import Tasks, Worker
from inorder.work.processes import STORE_LOST, serve

Lose = Callable[[], None]


@pytest.fixture
def qm(tmp_path: Path) -> Iterator[QueueManager]:
    qm = connect(tmp_path / "shop.db", name="QM1")
    qm.create_queue("Q")
    yield qm
    with suppress(StoreError):
        qm.close()


@pytest.fixture(params=["replaced", "not synced"])
def lose(request: pytest.FixtureRequest, qm: QueueManager, monkeypatch: pytest.MonkeyPatch) -> Lose:
    """Replaces the store, or has another connection's sync fail."""
    path = Path(qm.inspect.path)

    def replace() -> None:
        path.rename(path.with_name("before.db"))
        path.touch()

    def fail() -> None:
        def sync(descriptor: int) -> None:
            raise OSError(5, "Input/output error")

        with monkeypatch.context() as patched, qm.connect() as other:
            patched.setattr(log, "sync_data", sync)
            with pytest.raises(StoreError, match=r"could not be synced|an earlier sync"):  # a worker's may fail first
                other.put("OTHER", b"1")

    qm.create_queue("OTHER")
    return replace if request.param == "replaced" else fail


def registered() -> Tasks:
    tasks = Tasks()
    tasks.task("Q", name="work")(lambda message: None)
    tasks.periodic("0 0 1 1 *", queue="Q", name="yearly")(lambda due: b"1")
    return tasks


def test_a_worker_whose_threads_all_wait_stops_with_the_status_of_a_lost_store(qm: QueueManager, lose: Lose) -> None:
    heard = Heard()
    worker = Worker(qm, registered(), log=heard)
    lose_soon = threading.Timer(0, lose)
    lose_soon.start()
    assert serve(worker, LIMIT_SECONDS) == STORE_LOST
    lose_soon.join()
    assert worker.lost is not None
    assert worker.lost.must_reopen
    assert worker.stopped == {"work": str(worker.lost), "yearly": str(worker.lost)}
    assert "trouble" not in heard.events


def test_a_channel_that_ends_after_a_failed_sync_is_inactive_and_not_stopped(qm: QueueManager) -> None:
    """The program that replaces this one carries on with the channel."""
    failed = StoreError("a sync has failed", must_reopen=True)

    def fail(seconds: float) -> bool:
        raise failed

    name = link(qm.inspect.path, "THERE", there(qm))
    with pytest.raises(StoreError, match="a sync has failed"):
        channels.run_channel(qm, name, wait=fail)
    (now,) = channels.status(qm)
    assert (now.status, now.stop, now.error) == ("inactive", "", "a sync has failed")


def there(qm: QueueManager) -> str:
    place = str(Path(qm.inspect.path).with_name("there.db"))
    manager(place, "THERE")
    return place


def monitor(qm: QueueManager, goes_on: Callable[[], bool]) -> None:
    run_trigger_monitor(qm, "Q", ends=goes_on)


def handler(qm: QueueManager, goes_on: Callable[[], bool]) -> None:
    rules = read_rules(["WAIT(YES)", "ACTION(IGNORE)"])
    handle_dead_letters(qm, rules, queue="Q", wait=lambda _: goes_on())


def channel(qm: QueueManager, goes_on: Callable[[], bool]) -> None:
    name = link(qm.inspect.path, "THERE", there(qm))
    channels.run_channel(qm, name, wait=lambda _: goes_on())


@pytest.mark.parametrize("run", [monitor, handler, channel])
def test_a_program_that_waits_in_a_loop_ends_when_the_store_is_lost(
    qm: QueueManager, lose: Lose, run: Callable[[QueueManager, Callable[[], bool]], None]
) -> None:
    looks = 0

    def look() -> bool:
        nonlocal looks
        looks += 1
        if looks == 1:
            lose()
        return looks > 20

    with pytest.raises(StoreError) as raised:
        run(qm, look)
    assert raised.value.must_reopen
