"""Limits of the system that come and go: of open files, of their length, of the disk, and of rights on the folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from tests.helpers.interrupting import IS_KNOWN, OUTSIDE, Interruption
from tests.helpers.support import bodies
from tests.stores.sqlite.inside import opened
from tests.stores.sqlite.programs import Program, Told
from tests.tiers import gate

import inorder
from inorder import QueueManager
from inorder.errors import StoreError
from inorder.stores.sqlite import coordination
from inorder.stores.sqlite.faults import store_error

DESCRIPTORS = Path("/proc/self/fd")

# How many more files the process may open; a limit that is low ends nothing that is open.
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
def test_a_process_without_free_descriptors_syncs_and_stops_nobody(child: Program, qm: QueueManager) -> None:
    child.run(BOUNDS)
    child.run("with spare(0): qm.put('Q', b'1')")
    qm.put("Q", b"2")
    child.run("forked(lambda: None)\nwith spare(0): answer = error_of(lambda: qm.put('Q', b'lost'))")
    qm.put("Q", b"3")
    child.run("qm.put('Q', b'4')")
    assert bodies(qm) == [b"1", b"2", b"3", b"4"]


@gate
def test_what_cannot_be_opened_is_an_error_of_ours_and_leaves_nothing(child: Program, qm: QueueManager) -> None:
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
    monkeypatch.setattr(os, "access", lambda asked, mode: asked != folder or not mode & os.R_OK)  # root reads all
    with pytest.raises(StoreError, match="cannot be read"):
        inorder.connect(path)
    assert not list(folder.iterdir())


@pytest.fixture
def file(path: Path) -> Iterator[Path]:
    """A store that another one of this process does not keep open."""
    opened(path).close()
    yield path
    assert Path(f"{path}-lock") not in coordination.attached()


@pytest.mark.skipif(not IS_KNOWN, reason="it is not known where exceptions may come")
def test_an_exception_into_a_close_comes_out_as_it_is_and_the_next_close_leaves_nothing(file: Path) -> None:
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
def test_limits_that_come_and_go_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """Of open files, of their length, of SQLite's memory, and of the disk, which is full for one program alone.

    A put that found no room has changed nothing. What failed otherwise may be there: its sync was not seen to succeed.
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


def test_too_little_memory_is_an_error_of_ours(path: Path) -> None:
    """SQLite's own, which no caller can catch by a name of ours."""
    assert isinstance(store_error(path, apsw.NoMemError("out of memory")), StoreError)
