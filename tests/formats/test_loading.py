"""Loading a folder with several processes: every file once, despite kills and back-outs."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import Counter
from multiprocessing import resource_tracker
from pathlib import Path

import pytest

import inorder
from inorder import ArgumentError, UnknownQueue
from inorder.errors import ObjectInUse
from inorder.formats import get_file
from inorder.formats.loading import LoadEvent, LoadResult, load_folder

RULE = r"delimiter:\n"
FILES = {f"{n % 3}/{n:02d}.txt": b"".join(b"%d of %d\n" % (line, n) for line in range(n)) for n in range(12)}
MESSAGES = sum(n + 1 for n in range(12))
WHOLE = LoadResult(files=12, messages=MESSAGES, size=sum(map(len, FILES.values())))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for name, data in FILES.items():
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_bytes(data)
    return tmp_path / "in"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with inorder.connect(tmp_path / "store.db") as qm:
        qm.create_queue("FILES")
    return tmp_path / "store.db"


def every_file_is_there_once(store: Path) -> None:
    target = store.parent / "out"
    target.mkdir()
    with inorder.connect(store) as qm:
        assert qm.depth("FILES") == MESSAGES
        for _ in FILES:
            get_file(qm, "FILES", target)  # a file that was there twice would be refused
        assert (qm.depth("FILES"), qm.depth("FILES.TICKETS"), qm.inspect.units()) == (0, 0, [])
    assert {str(path.relative_to(target)): path.read_bytes() for path in target.rglob("*.txt")} == FILES


class Planted(Exception):
    """An error that a test plants."""


def first_attempt_of_five_is_killed_and_of_seven_backed_out(path: str, attempt: int) -> None:
    if path.endswith("/05.txt") and attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if path.endswith("/07.txt") and attempt == 1:
        raise Planted(f"of {path}")


def three_always_fails_and_four_always_kills(path: str, attempt: int) -> None:
    if path.endswith("/03.txt"):
        raise Planted(f"attempt {attempt}")
    if path.endswith("/04.txt"):
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_folder_is_loaded_despite_a_killed_process_and_a_back_out(store: Path, source: Path) -> None:
    events: list[LoadEvent] = []
    trouble = first_attempt_of_five_is_killed_and_of_seven_backed_out
    result = load_folder(store, "FILES", source, RULE, processes=2, progress=events.append, before_commit=trouble)
    assert result == WHOLE
    kinds = Counter(event.kind for event in events)
    assert kinds == {"begun": 14, "loaded": 12, "backed out": 1, "lost": 1}
    assert {event.path for event in events if event.kind == "loaded"} == FILES.keys()
    (lost,) = (event for event in events if event.kind == "lost")
    (backed_out,) = (event for event in events if event.kind == "backed out")
    assert (lost.path, backed_out.path) == ("2/05.txt", "1/07.txt")
    assert backed_out.error == "Planted: of 1/07.txt"
    assert load_folder(store, "FILES", source, RULE) == WHOLE, "there is nothing left to do"
    every_file_is_there_once(store)


@pytest.mark.nightly
def test_a_file_that_always_fails_is_given_up_and_retried_by_the_next_call(store: Path, source: Path) -> None:
    result = load_folder(
        store, "FILES", source, RULE, processes=1, attempts=2, before_commit=three_always_fails_and_four_always_kills
    )
    assert result.files == 10
    assert result.given_up == {"0/03.txt": "Planted: attempt 2", "1/04.txt": "its process was lost, 2 times"}
    assert load_folder(store, "FILES", source, RULE, processes=1) == WHOLE
    every_file_is_there_once(store)


def test_a_load_that_fails_midway_is_continued_by_the_next_call(store: Path, source: Path) -> None:
    def enough(event: LoadEvent) -> None:
        if event.kind == "loaded" and event.path.startswith("1/"):
            raise Planted

    with pytest.raises(Planted):
        load_folder(store, "FILES", source, RULE, processes=2, progress=enough)
    assert load_folder(store, "FILES", source, RULE, processes=1) == WHOLE
    every_file_is_there_once(store)


def test_the_processes_of_a_load_ignore_ctrl_c(store: Path, source: Path) -> None:
    """Each process would print its own traceback beside the end of the call. The very first one ignores it, too."""
    resource_tracker._resource_tracker._stop()  # type: ignore[attr-defined] # so that it starts with the first process
    kinds = []

    def interrupt(event: LoadEvent) -> None:
        kinds.append(event.kind)
        if event.kind == "begun":
            os.kill(event.process, signal.SIGINT)

    assert load_folder(store, "FILES", source, RULE, processes=2, progress=interrupt) == WHOLE
    assert "lost" not in kinds
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def dies_after_three(store: Path, source: Path) -> None:
    """Loads until three files are loaded, then kills this process; its own processes stay behind, and end."""
    loaded = 0

    def count(event: LoadEvent) -> None:
        nonlocal loaded
        loaded += event.kind == "loaded"
        if loaded == 3:
            os.kill(os.getpid(), signal.SIGKILL)

    load_folder(store, "FILES", source, RULE, processes=2, progress=count)


@pytest.mark.nightly
def test_a_killed_load_is_continued_by_the_next_call(store: Path, source: Path) -> None:
    load = multiprocessing.get_context("spawn").Process(target=dies_after_three, args=(store, source))
    load.start()
    load.join()
    assert load.exitcode == -signal.SIGKILL
    assert load_folder(store, "FILES", source, RULE, processes=2) == WHOLE
    every_file_is_there_once(store)


def test_patterns_select_files_and_the_next_load_adds_the_others(store: Path, source: Path) -> None:
    assert load_folder(store, "FILES", source, RULE, processes=1, patterns=["1/*"]).files == 4
    assert load_folder(store, "FILES", source, RULE, processes=1) == WHOLE
    every_file_is_there_once(store)


def test_a_load_is_refused_while_another_one_is_at_work(store: Path, source: Path) -> None:
    with inorder.connect(store) as qm:
        qm.create_queue("FILES.TICKETS")
        with qm.open("FILES.TICKETS", input="shared"), pytest.raises(ObjectInUse):
            load_folder(store, "FILES", source, RULE, wait_others=0)
        assert qm.depth("FILES.TICKETS") == 0


def test_bad_arguments_are_refused_before_anything_is_done(store: Path, source: Path) -> None:
    for given, word in (({"processes": 0}, "processes"), ({"attempts": True}, "attempts"), ({"rule": "lines"}, "rule")):
        arguments = {"rule": RULE, **given}
        with pytest.raises(ArgumentError, match=word):
            load_folder(store, "FILES", source, **arguments)  # type: ignore[arg-type]
    with pytest.raises(UnknownQueue):
        load_folder(store, "NOWHERE", source, RULE)
    with inorder.connect(store) as qm:
        assert [queue.name for queue in qm.queues()] == ["FILES"]


def test_a_pipe_in_the_folder_is_skipped_and_a_store_in_it_is_given_up_unread(source: Path, store: Path) -> None:
    """Opening and closing a file of the store would release the locks of the process that loads."""
    os.mkfifo(source / "pipe")
    with inorder.connect(source / "store.db") as qm:
        qm.create_queue("FILES")
        result = load_folder(source / "store.db", "FILES", source, RULE, processes=1, attempts=1)
        assert (result.files, result.messages) == (WHOLE.files, WHOLE.messages)
        assert result.given_up.keys() == {f"store.db{suffix}" for suffix in ("", "-lock", "-shm", "-wal")}
        assert all("it must not be read" in why for why in result.given_up.values())
        assert not qm.admin.check()
