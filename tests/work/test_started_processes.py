"""Processes of `inorder work` are killed, replaced and stopped; nothing is lost, and every attempt counts."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from tests.cli.test_json import keys_below
from tests.helpers.support import LIMIT_SECONDS, Make, until
from tests.helpers.working import dead_letter_queue
from tests.tiers import gate, nightly
from tools.proof.working import seen_first

import inorder
from inorder import QueueManager
from inorder.client.programs import WORKER
from inorder.work import Schedule, Tasks, Worker
from inorder.work.processes import CANNOT_GO_ON, HAD_STOPPED, Happened, Supervisor, serve

on_sqlite = pytest.mark.parametrize("place", [pytest.param("sqlite", marks=nightly)], indirect=True)
in_gate = pytest.mark.parametrize("place", [pytest.param("sqlite", marks=gate)], indirect=True)
ROOT = Path(__file__).parents[2]
TASKS = """
import os, signal, time
from inorder.work import Backoff, Tasks, Worker

tasks = Tasks()

@tasks.task("Q", attempts=3, backoff=Backoff(first=0, most=0))
def work(message, qm):
    qm.put("NEXT", message.body)
    if message.body == b"kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if message.body == b"fail":
        raise KeyError("price")
    if message.body.startswith(b"once") and not message.backout_count:
        os.kill(os.getpid(), signal.SIGKILL)
    if message.body == b"slow":
        open("began", "w").close()
        while not os.path.exists("goes on"):
            time.sleep(0.01)

def stop(self, grace, stop=Worker.stop):
    self.ends.set()
    open("takes no more", "w").close()
    return stop(self, grace)

Worker.stop = stop

limited = Tasks()

@limited.task("Q", attempts=2, timeout=2, backoff=Backoff(first=0, most=0))
def endless(message):
    while True:
        time.sleep(1)

@limited.task("NEXT")
def brief(message):
    pass

stopping = Tasks()

@stopping.task("S", name="fails", attempts=1)
def fails(message):
    raise ValueError("torn")

@stopping.task("Q", name="goes on")
def goes_on(message):
    pass
"""

CLOCK = """
from inorder.work import Tasks

tasks = Tasks()

@tasks.periodic("* * * * *", queue="NEXT", name="minutely", missed="all")
def minutely(due):
    return due.isoformat().encode()
"""
CLEAN = """
import multiprocessing, os, signal, subprocess, sys, time
from inorder.work import Tasks

tasks = Tasks()

@tasks.task("FORKS")
def forks(message):
    process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(1e6,))
    process.start()
    process.terminate()
    process.join()
    assert process.exitcode == -signal.SIGTERM, process.exitcode

@tasks.task("READS")
def reads(message):
    subprocess.run(["cat"], check=True)
    assert sys.stdin.read() == ""

@tasks.task("LEAVES")
def leaves(message):
    if not message.backout_count:
        subprocess.Popen(["sleep", "1000000"])
        if message.body == b"kill":
            os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(params=[pytest.param("sqlite", marks=nightly), pytest.param("postgresql", marks=nightly)])
def place(request: pytest.FixtureRequest, make: Make) -> str:
    """The place of the store."""
    return make(request.param)


@pytest.fixture
def qm(place: str) -> Iterator[QueueManager]:
    with inorder.connect(place, name="QM1") as made:
        for queue in ("Q", "NEXT", "FORKS", "READS", "LEAVES"):
            made.create_queue(queue)
        made.create_queue("S", read_order="required")
        dead_letter_queue(made)
        yield made


class Work:
    """`inorder work` as a program, and the lines that it has printed."""

    def __init__(self, folder: Path, place: str, *arguments: str) -> None:
        for name, text in {"tasks": TASKS, "clock": CLOCK, "clean": CLEAN}.items():
            (folder / f"shop_{name}.py").write_text(text)
        self.folder, self.told, self._changed = folder, list[dict[str, Any]](), threading.Condition()
        self._is_silent = False  # the last process has closed the pipe
        self.process = subprocess.Popen(
            [sys.executable, "-m", "inorder", "work", *arguments, "--json"],
            cwd=folder,
            env={
                **os.environ,
                "INORDER_STORE": place,
                "PYTHONPATH": os.pathsep.join(map(str, [ROOT / "src", ROOT, *sys.path])),
            },
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                with self._changed:
                    self.told.append(json.loads(line))
                    self._changed.notify_all()
        with self._changed:
            self._is_silent = True
            self._changed.notify_all()

    def until(self, so: Callable[[list[dict[str, Any]]], bool]) -> None:
        """Waits until the printed lines meet this condition; fails at once if no more can come."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_silent or so(self.told), 3 * LIMIT_SECONDS)
            how = "has ended, and" if self._is_silent else "runs, and"
            assert so(self.told), f"inorder work {how} has said: {self.told}"

    def outcomes(self) -> Counter[str]:
        return Counter(one["outcome"] for one in self.told if one["event"] == "attempt")

    def has_ended(self, count: int) -> None:
        """Waits until this many messages are done, dead or discarded."""
        self.until(lambda _: sum(self.outcomes()[name] for name in ("done", "dead", "discarded")) >= count)

    def end(self, *signals: signal.Signals) -> int:
        """Sends these signals and waits for the end. Returns the exit status."""
        for one in signals:
            self.process.send_signal(one)
        status = self.process.wait(3 * LIMIT_SECONDS)
        self._reader.join(LIMIT_SECONDS)
        return status

    def __enter__(self) -> Work:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def test_no_attempt_and_no_reason_is_lost_when_processes_are_killed(
    qm: QueueManager, place: str, tmp_path: Path
) -> None:
    good = [f"{number}".encode() for number in range(30)]
    qm.put_many("Q", [*good[:10], b"kill", b"once 1", *good[10:20], b"fail", b"once 2", *good[20:]])
    with Work(tmp_path, place, "shop_tasks", "--processes", "2") as work:
        work.has_ended(34)
        assert work.end(signal.SIGTERM) == 0
    assert sorted(one.body for one in qm.browse("NEXT")) == sorted([*good, b"once 1", b"once 2"])
    letters = {one.message.body: one.why for one in qm.dead.letters()}
    assert {body: why.attempts for body, why in letters.items()} == {b"kill": 3, b"fail": 3}
    assert letters[b"kill"].error == "the program ended, or backed out, in the middle of 3 attempts"
    assert letters[b"fail"].error.startswith("KeyError: 'price' (shop_tasks.py:")
    assert all(why.reason == inorder.Reason.BACKOUT_THRESHOLD_REACHED and why.time and why.queue == "Q"
               for why in letters.values())  # fmt: skip
    assert (qm.depth("Q"), qm.inspect.units()) == (0, [])
    assert {key for one in work.told for key in one} == keys_below("Work")
    deaths = [one for one in work.told if one["event"] == "died"]
    assert [one["status"] for one in deaths] == [-signal.SIGKILL] * 5  # three for "kill", one for each "once"


def test_connections_of_workers_are_listed_and_those_of_killed_ones_are_not(
    qm: QueueManager, place: str, tmp_path: Path
) -> None:
    began = tmp_path / "began"
    qm.put("Q", b"slow")
    with Work(tmp_path, place, "shop_tasks") as work:
        await_file(began)
        [unit] = qm.inspect.units()
        [worker] = {one.process for one in qm.inspect.connections() if one.program.name == "inorder work shop_tasks"}
        assert worker is not None
        assert worker == unit.process == next(one["pid"] for one in work.told if one["event"] == "started")
        uses = [each for one in qm.inspect.connections() if one.process == worker for each in one.opened]
        assert ("Q", "get") in {(one.queue, one.uses) for one in uses}
        began.unlink()
        os.kill(worker, signal.SIGKILL)
        work.until(lambda told: any(one["event"] == "died" for one in told))
        await_file(began)  # made by the replacement
        until(lambda: worker not in [one.process for one in qm.inspect.connections()], "the dead one is not shown")
        [other] = {one.process for one in qm.inspect.connections() if one.program.name.startswith(WORKER)}
        assert other == [one["pid"] for one in work.told if one["event"] == "started"][-1]
        (tmp_path / "goes on").touch()
        work.has_ended(1)
        assert work.end(signal.SIGTERM) == 0
    until(lambda: not any(one.program.name.startswith(WORKER) for one in qm.inspect.connections()), "none is shown")


@on_sqlite
def test_a_stop_lets_calls_end_and_a_second_signal_does_not(qm: QueueManager, place: str, tmp_path: Path) -> None:
    began, goes_on = tmp_path / "began", tmp_path / "goes on"
    qm.put_many("Q", [b"slow", b"next"])
    with Work(tmp_path, place, "shop_tasks") as work:
        await_file(began)
        assert work.end(signal.SIGTERM, signal.SIGINT) == 0
    assert work.told[-1]["event"] == "killed"
    qm.inspect.overview()  # backs out the units of dead processes
    assert [(one.body, one.backout_count) for one in qm.browse("Q")] == [(b"slow", 1), (b"next", 0)]
    began.unlink()
    takes_no_more = tmp_path / "takes no more"
    takes_no_more.unlink(missing_ok=True)
    with Work(tmp_path, place, "shop_tasks") as work:
        await_file(began)
        work.process.send_signal(signal.SIGINT)
        await_file(takes_no_more)  # otherwise the call may end before its process gets the signal
        goes_on.touch()
        assert work.end() == 0
    assert (work.outcomes(), [one.body for one in qm.browse("Q")]) == (Counter(done=1), [b"next"])


@on_sqlite
def test_processes_end_when_their_supervisor_is_killed(qm: QueueManager, place: str, tmp_path: Path) -> None:
    qm.put("Q", b"1")
    with Work(tmp_path, place, "shop_tasks", "--processes", "2") as work:
        work.has_ended(1)
        work.process.kill()
        work.process.wait()
        work._reader.join(LIMIT_SECONDS)  # the reader ends when the last process has closed the pipe
        assert not work._reader.is_alive(), "a process goes on though the one that sees to it has died"


@in_gate
def test_processes_are_replaced_when_their_source_changes(qm: QueueManager, place: str, tmp_path: Path) -> None:
    qm.put("Q", b"1")
    with Work(tmp_path, place, "shop_tasks", "--reload") as work:
        work.has_ended(1)
        changed = TASKS.replace('qm.put("NEXT", message.body)', 'qm.put("NEXT", b"new")')
        (tmp_path / "shop_tasks.py").write_text("broken = (")
        work.until(lambda told: any(one["event"] == "died" for one in told))
        (tmp_path / "shop_tasks.py").write_text(changed)
        qm.put("Q", b"2")
        work.has_ended(2)
        assert work.end(signal.SIGTERM) == 0
    assert [message.body for message in qm.browse("NEXT")] == [b"1", b"new"]
    assert [one["event"] for one in work.told][:4] == ["started", "attempt", "reloaded", "started"]


@on_sqlite
def test_a_process_ended_by_a_signal_is_reported_and_replaced(qm: QueueManager, place: str, tmp_path: Path) -> None:
    qm.put("Q", b"1")
    with Work(tmp_path, place, "shop_tasks") as work:
        work.has_ended(1)  # its signal handlers are set by now
        os.kill(work.told[0]["pid"], signal.SIGTERM)
        work.until(lambda told: [one["event"] for one in told].count("started") == 2)
        qm.put("Q", b"2")
        work.has_ended(2)
        assert work.end(signal.SIGTERM) == 0
    of_processes = [one for one in work.told if one["event"] != "attempt"]
    assert [(one["event"], one["process"], one["status"]) for one in of_processes] == [
        ("started", 1, None), ("died", 1, 0), ("started", 1, None),
    ], "the end of the supervisor, and it alone, ends processes without a report"  # fmt: skip
    assert of_processes[1]["delay"] == 0, "only if the next one ends soon, too, its successor starts later"


@on_sqlite
def test_an_endless_call_ends_its_process_and_loses_no_other_message(
    qm: QueueManager, place: str, tmp_path: Path
) -> None:
    qm.put("Q", b"1")
    qm.put_many("NEXT", [b"2", b"3"])
    with Work(tmp_path, place, "shop_tasks:limited") as work:
        work.has_ended(3)
        assert work.end(signal.SIGTERM) == 0
    assert work.outcomes() == Counter(overdue=2, done=2, dead=1)
    (letter,) = qm.dead.letters()
    assert (letter.why.attempts, letter.why.error) == (2, "the call took longer than 2 s")
    assert [one["status"] for one in work.told if one["event"] == "died"] == [75, 75]


@on_sqlite
def test_a_required_order_ends_the_command_with_status_1(qm: QueueManager, place: str, tmp_path: Path) -> None:
    qm.alter_queue("Q", read_order="required")
    qm.put_many("Q", [b"1", b"fail", b"2"])
    with Work(tmp_path, place, "shop_tasks", "--processes", "2") as work:
        assert work.end() == 1
    assert {one["event"] for one in work.told} == {"started", "attempt", "stopped"}
    assert [(one.body, one.backout_count >= 3) for one in qm.browse("Q")] == [(b"fail", True), (b"2", False)]


@on_sqlite
def test_metrics_of_all_processes_are_at_one_address(
    request: pytest.FixtureRequest, qm: QueueManager, place: str, tmp_path: Path
) -> None:
    pytest.importorskip("prometheus_client", reason="without inorder[prometheus] there are no metrics")
    port = reserved_port(request)
    qm.put_many("Q", [b"1", b"once 2", b"fail", *[f"{number}".encode() for number in range(3, 20)]])

    def value(name: str, page: str) -> float:
        return sum(float(line.rpartition(" ")[2]) for line in page.splitlines() if line.startswith(name))

    with Work(tmp_path, place, "shop_tasks", "--processes", "2", "--metrics", str(port)) as work:
        work.has_ended(20)
        until(
            lambda: value('inorder_attempts_total{outcome="done"', asked(port, "metrics")) == 19,
            "all that is done is counted",
        )
        page = asked(port, "metrics")
        outcomes = work.outcomes()
        assert value('inorder_attempts_total{outcome="done"', page) == outcomes["done"] == 19
        assert value('inorder_attempts_total{outcome="dead"', page) == 1  # attempts of the killed process count, too
        assert value('inorder_queue_depth{queue="NEXT"}', page) == 19
        assert value("inorder_up", page) == 1
        assert work.end(signal.SIGTERM) == 0
    with pytest.raises(OSError, match="refused"):
        asked(port, "metrics")


@on_sqlite
def test_several_processes_put_each_run_once_and_report_it(qm: QueueManager, place: str, tmp_path: Path) -> None:
    """Two hours were missed, so all processes try at once. `test_crashes.py` kills them."""
    pytest.importorskip("cronsim", reason="without inorder[work] there are no schedules")
    begin = time.time() - 7200.0
    seen_first(place, Schedule(name="minutely", cron="* * * * *", queue="NEXT", missed="all"), begin)
    with Work(tmp_path, place, "shop_clock", "--processes", "3") as work:
        work.until(lambda told: len([one for one in told if one["event"] == "put"]) >= 120)
        assert work.end(signal.SIGTERM) == 0
    puts = [one for one in work.told if one["event"] == "put"]
    found = [one.body.decode()[:19] for one in qm.browse("NEXT")]
    assert found == sorted(one["due"][:19] for one in puts)
    assert len(set(found)) == len(found) >= 120
    assert {key for one in puts for key in one} == keys_below("Work by the clock")


@in_gate
def test_a_function_may_fork_and_read_standard_input(qm: QueueManager, place: str, tmp_path: Path) -> None:
    qm.put("FORKS", b"")
    qm.put("READS", b"")
    with Work(tmp_path, place, "shop_clean") as work:
        work.has_ended(2)
        assert work.end(signal.SIGTERM) == 0
    assert work.outcomes() == {"done": 2}, work.told


@on_sqlite
@pytest.mark.parametrize("ends", ["asked", "killed", "its supervisor killed"])
def test_processes_started_by_a_function_end_with_its_process(
    qm: QueueManager, place: str, tmp_path: Path, ends: str
) -> None:
    qm.put("LEAVES", b"kill" if ends == "killed" else b"")
    with Work(tmp_path, place, "shop_clean") as work:
        work.has_ended(1)
        work.end(signal.SIGKILL if ends == "its supervisor killed" else signal.SIGTERM)
        work._reader.join(LIMIT_SECONDS)  # the reader ends when the last process has closed the pipe
        is_left = work._reader.is_alive()
    if is_left:
        for one in work.told:
            if one["event"] == "started":
                os.killpg(one["pid"], signal.SIGKILL)
    assert not is_left, "a process that a function has started goes on"


@in_gate
def test_a_stopped_task_shows_in_the_metrics_at_ready_and_in_the_exit_status(
    request: pytest.FixtureRequest, qm: QueueManager, place: str, tmp_path: Path
) -> None:
    pytest.importorskip("prometheus_client", reason="without inorder[prometheus] there are no metrics")
    port = reserved_port(request)

    with Work(tmp_path, place, "shop_tasks:stopping", "--metrics", str(port)) as work:
        qm.put("Q", b"1")
        work.has_ended(1)
        assert json.loads(asked(port, "ready")) == {"status": "ready"}
        qm.put("S", b"1")
        work.until(lambda told: any(one["event"] == "stopped" for one in told))
        with pytest.raises(urllib.error.HTTPError) as refused:
            asked(port, "ready")
        assert refused.value.code == 503
        assert json.loads(refused.value.read()) == {
            "status": "not ready", "error": "fails has stopped by itself: the log says why",
        }  # fmt: skip
        assert 'inorder_worker_stops_total{name="fails",queue="S"} 1.0' in asked(port, "metrics")
        assert work.end(signal.SIGTERM) == 1


def reserved_port(request: pytest.FixtureRequest) -> int:
    """A port of the loopback that no other process is given during the test, and that the command can listen on."""
    kept = socket.socket()
    request.addfinalizer(kept.close)
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server sets it; bound, without a listener
    kept.bind(("127.0.0.1", 0))
    return int(kept.getsockname()[1])


def await_file(path: Path) -> None:
    """Waits until a program has made this file."""
    until(path.exists, f"{path} has come into being")


def asked(port: int, page: str) -> str:
    """The page of this name at the address of metrics."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=LIMIT_SECONDS) as answer:
        return str(answer.read(), "utf-8")


# ---- the supervisor, with processes that end when the test wants


def test_a_late_process_is_killed_and_reported_once() -> None:
    """A process may take long to die, for example if its memory is large or it waits for a disk."""
    said, process = list[Happened](), Mock(pid=4711, poll=Mock(return_value=None))
    supervisor = Supervisor(lambda *_: [], environment={}, count=1, grace=0, log=said.append)
    (child,) = supervisor._children
    child.process, child.starts_at = process, None
    supervisor._ends_at = 0.0
    assert supervisor._time_left() == 0
    supervisor._kill_late()
    assert supervisor._time_left() is None, "it must wait for the end of the process, and not ask over and over"
    supervisor._kill_late()
    assert (process.kill.call_count, [one.event for one in said]) == (1, ["killed"])


def test_a_process_that_the_system_cannot_start_is_tried_again() -> None:
    """At first its program does not exist."""
    said, commands = list[Happened](), [[os.devnull + "/none"], [sys.executable, "-c", "import signal; signal.pause()"]]

    def log(happened: Happened) -> None:
        said.append(happened)
        if happened.event == "started":
            signal.raise_signal(signal.SIGTERM)

    supervisor = Supervisor(lambda *_: commands.pop(0), environment={}, count=1, grace=60, log=log)
    assert supervisor.run()
    failed, started = said
    assert (failed.event, failed.process, failed.pid) == ("failed", 1, None)
    assert failed.error == os.strerror(errno.ENOTDIR), "the reason of the system, in its words"
    assert (started.event, started.process) == ("started", 1)


@pytest.mark.parametrize(("others", "status"), [(False, CANNOT_GO_ON), (True, HAD_STOPPED)])
def test_the_status_of_a_process_says_that_a_task_has_stopped(qm: QueueManager, others: bool, status: int) -> None:
    tasks = Tasks()
    tasks.task("NOWHERE", name="lost")(lambda message: None)
    if others:
        tasks.task("Q", name="see")(lambda message: signal.raise_signal(signal.SIGTERM))
    worker = Worker(qm, tasks, log=lambda event: qm.put("Q", b"1") if event.kind == "stopped" and others else None)
    assert serve(worker, LIMIT_SECONDS) == status
    assert list(worker.stopped) == ["lost"]
