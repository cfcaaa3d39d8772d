"""A full disk, and limits of the system that come and go: some calls still work, and nothing is lost."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest
from tests.helpers.interrupting import IS_KNOWN, OUTSIDE, Interruption
from tests.helpers.support import bodies
from tests.helpers.working import at_work
from tests.stores.sqlite.disks import Disk, counted, mounted
from tests.stores.sqlite.inside import opened
from tests.stores.sqlite.programs import Program, Told, programs
from tests.tiers import gate, nightly

import inorder
from inorder import Got, QueueManager
from inorder.errors import StoreError, StoreFull
from inorder.stores.sqlite import SqliteStore, coordination
from inorder.stores.sqlite.faults import store_error
from inorder.stores.sqlite.host import SqliteHost
from inorder.stores.sqlite.log import FRAME_BYTES, RESERVE_BYTES
from inorder.work import Backoff, Outcome, Tasks, lane

SIZE = 6 << 20
LENGTH = 3000


@pytest.fixture(params=[counted, pytest.param(mounted, marks=nightly)])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    with request.param(tmp_path / "disk", SIZE) as disk:
        yield disk


@pytest.fixture
def real(tmp_path: Path) -> Iterator[Disk]:
    """A mounted disk, for several processes."""
    with mounted(tmp_path / "disk", SIZE) as disk:
        yield disk


def body(number: int) -> bytes:
    return number.to_bytes(LENGTH, "big")


def put_until_full(qm: QueueManager, start: int = 0) -> int:
    """Puts until the disk is full. Returns the number of the first message that could not be put."""
    for number in range(start, start + 100_000):
        try:
            qm.put("Q", body(number))
        except StoreFull:
            return number
    raise AssertionError("the disk is never full")


def drained(qm: QueueManager) -> list[int]:
    """Gets all messages, the first ones one by one. Returns their numbers."""
    found = [qm.get("Q") for _ in range(min(50, qm.depth("Q")))]
    while qm.depth("Q"):
        found += qm.get_many("Q", 20)
    return [int.from_bytes(one.body, "big") for one in found]


@gate
def test_everything_but_puts_works_on_a_full_disk(disk: Disk) -> None:
    with inorder.connect(disk.store) as qm:
        qm.create_queue("Q")
        put = put_until_full(qm)
        assert disk.store.stat().st_size > SIZE * 2 // 3, "the messages fill it, and not their log"
        with pytest.raises(StoreFull, match="Get or delete messages"):
            qm.put("Q", bytes(100_000))
        with qm.connect() as other:
            assert (
                len(bodies(other))
                == len(list(other.inspect.look("Q")))
                == other.inspect.status("Q").current_depth
                == put
            )
            assert other.admin.check() == []
            with other.unit_of_work():
                assert other.get("Q").body == body(0)
            other.get("Q", syncpoint=True)
            other.back_out()
            with other.open("Q", browse=True) as queue:
                queue.browse_first(lock=True)
                queue.unlock()
        assert len(qm.get_many("Q", 100)) == 100
        for number in range(put, put + 80):
            qm.put("Q", body(number))
        assert drained(qm) == list(range(101, put + 80))
        assert qm.admin.check() == []


@gate
def test_a_worker_uses_up_no_attempt_on_a_full_disk(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane, "TROUBLE", Backoff(first=0.01, most=0.01, jitter=0))
    tasks, calls = Tasks(), list[int]()

    @tasks.task("Q", attempts=1)
    def carry(message: Got, own: QueueManager) -> None:
        calls.append(message.backout_count)
        if len(calls) == 4:
            disk.clear()
        for _ in range(15):  # more than the log has room for
            own.put("NEXT", bytes(100_000))

    with inorder.connect(disk.store) as qm:
        for queue in ("Q", "NEXT"):
            qm.create_queue(queue)
        qm.put("Q", b"1")
        disk.fill()
        with at_work(qm, tasks) as (_, heard):
            heard.attempts(1)
        assert (heard.outcomes, calls, qm.depth("NEXT")) == ([Outcome.DONE], [0, 0, 0, 0], 15)


def test_a_store_can_be_opened_and_closed_on_a_full_disk(disk: Disk) -> None:
    with inorder.connect(disk.store) as qm:
        qm.create_queue("Q")
        qm.put_many("Q", [body(number) for number in range(100)])
    for number in range(3):
        disk.fill()
        with inorder.connect(disk.store) as qm:
            assert len(bodies(qm)) == 100 - number
            assert qm.get("Q").body == body(number)


def test_a_call_that_would_leave_no_room_for_its_own_copy_is_refused(disk: Disk) -> None:
    """It would fit into the log, but could never be copied from there into the file."""
    with inorder.connect(disk.store) as qm:
        qm.create_queue("Q")
        with pytest.raises(StoreFull):
            qm.put_many("Q", [bytes(LENGTH)] * (SIZE * 6 // 10 // LENGTH))
        assert qm.depth("Q") == 0
        qm.put_many("Q", [bytes(LENGTH)] * (SIZE // 5 // LENGTH))
        disk.fill()
        assert len(drained(qm)) == SIZE // 5 // LENGTH


@nightly
def test_the_reserve_is_never_shorter_than_the_log(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "orders.db")
    reserves = []
    with inorder.connect(store) as qm:
        qm.create_queue("Q")
        for number in range(20):
            qm.put_many("Q", [bytes(LENGTH)] * (500 if number else 10_000))
            reserves.append(Path(f"{store.path}-lock").stat().st_size)
            assert reserves[-1] > store.database.log._pages * FRAME_BYTES
            qm.get_many("Q", 10_000)
    store.close_store()
    assert reserves[0] > 40 << 20
    assert reserves[-1] < 20 << 20, "it is not given back when the log is started anew"
    assert Path(f"{store.path}-lock").stat().st_size < 3 << 20, "it is kept when nobody has the store open"


@gate
def test_an_exceeded_disk_quota_is_reported_as_a_full_disk(tmp_path: Path) -> None:
    with counted(tmp_path / "disk", SIZE) as disk, inorder.connect(disk.store) as qm:
        disk.quota = True
        qm.create_queue("Q")
        put = put_until_full(qm)
        assert drained(qm) == list(range(put))
        qm.put("Q", b"more")


def test_a_call_that_failed_for_lack_of_room_can_be_repeated(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Units, handles and connections are as before the failed call."""
    qm = inorder.connect(disk.store)
    qm.create_queue("Q")
    qm.put_many("Q", [b"1", b"2"])
    qm.get("Q", syncpoint=True)
    queue = qm.open("Q", browse=True)
    queue.browse_first(lock=True)
    monkeypatch.setattr(SqliteHost, "make_room", lambda *_, **__: None)
    disk.fill()
    calls: list[Callable[[], object]] = [lambda: qm.connect().close(), queue.unlock, queue.close, qm.commit]
    failed = []
    for call in calls:
        try:
            call()
        except StoreFull:
            failed.append(call)
    assert failed, "nothing needed room"
    disk.clear()
    for call in failed:
        call()
    assert qm.depth("Q") == 1
    qm.close()
    with inorder.connect(disk.store) as again:
        assert (again.depth("Q"), again.inspect.units(), again.inspect.status("Q").open_input_count) == (1, [], 0)
        assert again.get("Q").body == b"2"


def test_a_connection_kept_by_a_full_disk_is_ended_later(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    qm = inorder.connect(disk.store)
    qm.create_queue("Q")
    qm.put_many("Q", [b"1"])
    other = qm.connect()
    other.get("Q", syncpoint=True)
    monkeypatch.setattr(SqliteHost, "make_room", lambda *_, **__: None)
    disk.fill()
    with pytest.raises(StoreFull):
        other.internals.abandon()
    disk.clear()
    del other
    assert qm.get("Q").body == b"1"
    qm.close()
    assert sorted(one.name for one in disk.folder.iterdir()) == ["orders.db", "orders.db-lock"]


PUTS = """
answer = 0
while answer < 100:
    answer += error_of(lambda: qm.put('Q', bytes(3000))) is None
"""


@gate
def test_gets_succeed_on_a_full_disk_while_others_put_as_much_as_they_can(real: Disk) -> None:
    with inorder.connect(real.store) as qm, programs(real.store, 2) as putters:
        qm.create_queue("Q")
        put = put_until_full(qm)
        for one in putters:
            one.begin(PUTS)
        for _ in range(put + 2 * 100):
            qm.get("Q", wait=600)
        assert [one.answer() for one in putters] == [100, 100]
        assert (qm.depth("Q"), qm.admin.check()) == (0, [])


DIE_WITH_THE_RESERVE = """
from inorder.stores.engine import points
def die(point):
    if point == 'written' and os.path.getsize(path + '-lock') < 10_000:
        os.kill(os.getpid(), signal.SIGKILL)
points.reached = die
"""


@gate
def test_a_process_killed_while_it_holds_the_reserve_loses_nothing(real: Disk) -> None:
    with inorder.connect(real.store) as qm:
        qm.create_queue("Q")
        with programs(real.store, 1) as [child]:
            put = put_until_full(qm)
            real.fill()
            child.run(DIE_WITH_THE_RESERVE)
            child.begin("while True: qm.get('Q', syncpoint=True)")
            child.process.join()
            assert child.process.exitcode == -signal.SIGKILL
        assert drained(qm) == list(range(put))
        assert qm.admin.check() == []
        assert Path(f"{real.store}-lock").stat().st_size > RESERVE_BYTES


DESCRIPTORS = Path("/proc/self/fd")

# The number of files that the process may still open; a low limit closes none that is open.
BOUNDS = """
import contextlib, resource
@contextlib.contextmanager
def spare(number):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = []
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        with contextlib.suppress(OSError):
            while True:
                held.append(os.open('/dev/null', os.O_RDONLY))
        for _ in range(number):
            os.close(held.pop())
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for one in held:
            os.close(one)
def open_files():
    own = [f'/proc/self/fd/{one}' for one in os.listdir('/proc/self/fd')]
    return sorted(os.readlink(one) for one in own if os.path.islink(one))
"""
EVERY_CALL = """
def every_call():
    with inorder.connect(path) as one:
        one.put('Q', b'x')
        one.get('Q')
        one.put('Q', b'x' * 100_000)
        one.browse_and_lock('Q')
        one.inspect.connections(); one.inspect.status('Q'); one.admin.check()
        one.admin.backup(path + '.copy', replace=True)
every_call()  # which loads modules
"""
BOUNDED = """
answer = []
for number in range(16):
    with spare(number):
        answer.append(error_of(every_call))
"""


@gate
def test_a_process_without_free_descriptors_can_sync_and_blocks_no_other_process(
    child: Program, qm: QueueManager
) -> None:
    child.run(BOUNDS)
    child.run("with spare(0): qm.put('Q', b'1')")
    qm.put("Q", b"2")
    child.run("forked(lambda: None)\nwith spare(0): answer = error_of(lambda: qm.put('Q', b'lost'))")
    qm.put("Q", b"3")
    child.run("qm.put('Q', b'4')")
    assert bodies(qm) == [b"1", b"2", b"3", b"4"]


@gate
def test_a_file_that_cannot_be_opened_raises_our_own_error_and_leaves_no_file_open(
    child: Program, qm: QueueManager
) -> None:
    child.run(BOUNDS)
    before = child.run(f"{EVERY_CALL}\nanswer = open_files()")
    errors = child.run(BOUNDED)
    assert errors[0] == "StoreError"
    assert errors[-1] is None
    assert set(errors) == {"StoreError", None}
    assert child.ask("open_files()") == before
    child.run("qm.put('Q', b'1')")
    qm.put("Q", b"2")


def test_a_folder_that_cannot_be_read_is_refused_before_any_write(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = path.parent
    monkeypatch.setattr(os, "access", lambda asked, mode: asked != folder or not mode & os.R_OK)  # root may read all
    with pytest.raises(StoreError, match="cannot be read"):
        inorder.connect(path)
    assert not list(folder.iterdir())


@pytest.fixture
def file(path: Path) -> Iterator[Path]:
    """A store that this process does not have open otherwise."""
    opened(path).close()
    yield path
    assert Path(f"{path}-lock") not in coordination.attached()


@pytest.mark.skipif(not IS_KNOWN, reason="it is not known where exceptions may come")
def test_a_close_interrupted_by_an_exception_is_completed_by_the_next_close(file: Path) -> None:
    gc.collect()  # else files of an earlier test may be closed meanwhile
    before, at = len(list(DESCRIPTORS.iterdir())), 0
    while True:
        one = opened(file)
        one.hold_owner(7)
        interruption = Interruption(at)
        try:
            interruption.during(one.close)
        except OUTSIDE:
            one.close()
        else:
            break
        assert Path(f"{file}-lock") not in coordination.attached(), interruption.where
        assert len(list(DESCRIPTORS.iterdir())) == before, interruption.where
        at += 1
    assert at > 20


ON_A_SMALL_DISK = """
from tests.stores.sqlite.disks import counted
block = counted(Path({folder!r}), 64 << 20)
disk = block.__enter__()
disk.heeded = False
path = str(disk.store)
qm = inorder.connect(path)
qm.create_queue('Q')
"""
COMING_AND_GOING = """
import random
import apsw
chance, done, refused, lacking = random.Random(7), [], [], []
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
longest = max(os.path.getsize(path + one) for one in ('', '-wal', '-lock'))
for number in range(120):
    kind = chance.choice(('descriptors', 'size', 'disk', 'memory', 'fork', 'none'))
    def act(length=20_000):
        qm.put('Q', b'%d ' % number + bytes(length))
        done.append(number)
    if kind == 'descriptors':
        with spare(chance.randrange(4)):
            error_of(act)
    elif kind == 'size':
        resource.setrlimit(resource.RLIMIT_FSIZE, (longest + chance.randrange(400_000), hard))
        try:
            error_of(act)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    elif kind == 'disk':
        disk.heeded = True
        disk.fill()
        if error_of(lambda: act(chance.choice((20_000, 400_000)))) == 'StoreFull':
            refused.append(number)
        disk.clear()
        disk.heeded = False
    elif kind == 'memory':
        apsw.hard_heap_limit(apsw.memory_used() + chance.randrange(400_000))
        try:
            lacking.append(error_of(lambda: act(200_000)))
        finally:
            apsw.hard_heap_limit(0)
    else:
        if kind == 'fork':
            forked(lambda: None)
        act()
answer = done, refused, lacking
"""


@gate
def test_temporary_limits_of_resources_lose_no_acknowledged_message(tmp_path: Path) -> None:
    """Limits on open files, their length and SQLite's memory, and a disk that is full for one program only.

    A put that found no room has changed nothing. One that failed otherwise may have happened: only its sync was not
    seen to succeed.
    """
    folder = tmp_path / "disk"
    with Told() as child:
        child.run(ON_A_SMALL_DISK.format(folder=str(folder)))
        child.run(BOUNDS)
        with inorder.connect(folder / "orders.db") as qm:
            child.begin(COMING_AND_GOING)
            for _ in range(60):
                qm.put("Q", b"ours")
            acknowledged, refused, lacking = child.answer()
            assert 60 < len(acknowledged) < 120, "no limit was met, or each call failed"
            assert refused, "the disk was never full"
            assert "StoreError" in lacking, f"there was always memory: {lacking}"
            found = [int(body.split()[0]) for body in bodies(qm) if body != b"ours"]
            assert found == sorted(set(found))
            assert set(acknowledged) <= set(found)
            assert not set(refused) & set(found)
            assert bodies(qm).count(b"ours") == 60
            assert qm.admin.check() == []
            child.run("qm.put('Q', b'ours')")


def test_an_out_of_memory_error_of_sqlite_becomes_a_store_error(path: Path) -> None:
    """Callers could not catch SQLite's own error by a name of ours."""
    assert isinstance(store_error(path, apsw.NoMemError("out of memory")), StoreError)
