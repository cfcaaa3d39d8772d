"""`inorder serve` as processes: several workers, stops, kills, and connections that misbehave."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from multiprocessing import Pipe
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from tests.helpers.support import LIMIT_SECONDS, until
from tests.server.conftest import TEXT, Served, Start
from tests.server.test_messaging import V1, number_of
from tests.tiers import gate, nightly
from uvicorn import Config, Server
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors.multiprocess import Process

import inorder
from inorder.server import running
from inorder.server.running import ServerSupervisor


def address_of(url: str) -> tuple[str, int]:
    parsed = httpx.URL(url)
    return parsed.host, parsed.port or 0


@pytest.mark.parametrize(
    ("workers", "number"),
    [pytest.param("2", signal.SIGTERM, marks=gate), pytest.param("1", signal.SIGINT, marks=nightly)],
)
def test_a_stopped_server_answers_waiting_requests_and_ends(
    start: Start, served: Served, workers: str, number: int
) -> None:
    running = start("--workers", workers)
    answers: list[httpx.Response] = []

    def wait() -> None:
        with running.client() as client:
            answers.append(client.delete(f"{V1}/message", params={"wait": 600_000}))

    waiting = [threading.Thread(target=wait) for _ in range(5)]
    for one in waiting:
        one.start()
    with inorder.connect(served.store) as qm:
        until(lambda: sum(view.open_input_count for view in qm.inspect.overview()) > 0, "a get waits")
    assert running.stop(number) == 0, running.log.read_text()
    for one in waiting:
        one.join()
    assert [number_of(one) for one in answers] == [(503, "INWB0009E", 0)] * 5
    assert "Traceback" not in running.log.read_text()
    with inorder.connect(served.store) as qm:
        assert qm.inspect.units() == []


@nightly
def test_a_queue_that_several_workers_have_used_can_be_cleared_and_deleted(start: Start, served: Served) -> None:
    """Puts by name leave the queue open in each worker, and a request to one worker cannot reach the others."""
    running = start("--workers", "2")

    def put(number: int) -> None:
        with running.client() as each:
            assert each.post(f"{V1}/message", content=str(number), headers=TEXT).status_code == 201

    def both_have_it_open() -> bool:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(put, range(40)))
        with inorder.connect(served.store) as qm:
            users = {it.process for it in qm.inspect.connections() if any(opened.queue == "Q1" for opened in it.opened)}
        return len(users) == 2

    def run(command: str) -> Any:
        with running.client() as each:
            path = "/ibmmq/rest/v2/admin/action/qmgr/QM1/mqsc"
            answer = each.post(path, json={"type": "runCommand", "parameters": {"command": command}})
        assert answer.status_code == 200, answer.text
        return answer.json()

    for command in ("CLEAR QLOCAL(Q1)", "DELETE QLOCAL(Q1) PURGE"):
        until(both_have_it_open, "both workers have the queue open")
        answer = run(command)
        assert answer["overallCompletionCode"] == 0, answer
    assert running.stop() == 0


@nightly
def test_workers_end_when_their_parent_process_is_killed(start: Start) -> None:
    running = start("--workers", "2")
    with running.client() as client:
        while len(running.workers()) < 2:
            client.get("/health", headers={"Connection": "close"})
    workers = running.workers()
    os.kill(running.process.pid, signal.SIGKILL)
    running.process.wait(60)
    for each in workers:
        until(lambda each=each: has_ended(each), "a worker ends")  # type: ignore[misc]


def has_ended(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def supervising() -> ServerSupervisor:
    supervisor = ServerSupervisor.__new__(ServerSupervisor)  # __init__ would handle the signals of this process
    supervisor.config, supervisor.should_exit = Config(str, log_config=None), threading.Event()
    supervisor.sockets, supervisor.status, supervisor._was_ready, supervisor._places = [], 0, False, []
    return supervisor


class Worker:
    """A worker as the supervisor sees it; `ready`: it has started."""

    def __init__(self, *, ready: bool = False) -> None:
        self.child_conn, self.pid, self.exitcode = Pipe()[1], 1, STARTUP_FAILURE
        self.is_ready = self.is_alive = lambda timeout: ready
        self.kill = self.join = lambda: None


def test_workers_that_cannot_start_are_retried_with_increasing_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    """For example, if a database cannot be reached; workers serve again when it can."""
    supervisor, now, begun = supervising(), 1000.0, list[float]()
    monkeypatch.setattr("inorder.server.running.time.monotonic", lambda: now)

    def begin(config: Config, sockets: list[socket.socket]) -> Any:
        begun.append(now)
        return SimpleNamespace(**vars(Worker()), start=lambda: None)

    monkeypatch.setattr(running, "Process", begin)
    supervisor.processes = [cast("Any", Worker(ready=True))]
    supervisor.keep_subprocess_alive()
    supervisor.processes = [cast("Any", Worker())]
    for _ in range(1_000):
        supervisor.keep_subprocess_alive()
        now += 0.5
    waits = [round(after - before, 1) for before, after in pairwise([1000.0, *begun])]
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (0.0, 30.5), "a death is seen half a second later"
    assert (supervisor.status, supervisor.should_exit.is_set()) == (0, False)


def test_a_server_without_any_ready_worker_ends_with_status_3() -> None:
    supervisor = supervising()
    supervisor.processes = [cast("Any", Worker())]
    supervisor.keep_subprocess_alive()
    assert (supervisor.status, supervisor.should_exit.is_set()) == (3, True)


@gate
def test_a_killed_server_can_be_restarted_immediately_on_its_port(start: Start) -> None:
    first = start("--workers", "2")
    port = address_of(first.record["url"])[1]
    with first.client() as client:
        while len(first.workers()) < 2:
            client.get("/health", headers={"Connection": "close"})
    os.kill(first.process.pid, signal.SIGKILL)
    second = start("--workers", "2", "--port", str(port))
    with second.client() as client:
        until(lambda: client.get("/ready").status_code == 200, "the server answers")
    assert address_of(second.record["url"])[1] == port


@gate
def test_workers_whose_store_was_replaced_end_and_a_single_worker_with_status_3(start: Start, served: Served) -> None:
    several, one = start("--workers", "2"), start()
    with several.client() as client:
        while len(several.workers()) < 2:
            client.get("/health", headers={"Connection": "close"})
        before = set(several.workers())
        backup = served.folder / "backup.db"
        with inorder.connect(served.store) as qm:
            qm.admin.backup(backup)
        Path(served.store).rename(served.folder / "before.db")
        for beside in ("-wal", "-shm"):
            Path(f"{served.store}{beside}").unlink(missing_ok=True)
        backup.rename(served.store)
        assert one.process.wait(LIMIT_SECONDS) == 3
        for each in before:
            until(lambda each=each: has_ended(each), "a worker ends")  # type: ignore[misc]
        until(lambda: asked(client) == 200, "others have taken their places")
    assert several.stop() == 0


def asked(client: httpx.Client) -> int:
    try:
        return client.get("/ready", headers={"Connection": "close"}).status_code
    except httpx.TransportError:
        return 0


def test_the_supervisor_does_not_wait_for_the_answer_of_a_worker_that_is_dead() -> None:
    """If a worker was killed after it was seen alive, the supervisor would wait for a minute, deaf to signals."""
    supervisor = supervising()
    worker = Process.__new__(Process)
    asking, worker.child_conn = Pipe()
    worker.parent_conn = cast(
        "Any",
        SimpleNamespace(
            send=asking.send, poll=lambda seconds: pytest.fail("it waits for the dead"), close=asking.close
        ),
    )
    ended = supervisor.should_exit.set  # so that no other worker is started
    worker.process = cast(
        "Any", SimpleNamespace(is_alive=lambda: True, kill=ended, join=lambda: None, exitcode=-9, pid=1)
    )
    supervisor.processes = [worker]
    supervisor.keep_subprocess_alive()
    assert supervisor.should_exit.is_set(), "it was given up"
    assert supervisor.processes == [worker], "a server that ends begins no other"


def talk(address: tuple[str, int], data: bytes) -> bytes:
    """Sends data. Returns everything received until the end of the connection."""
    with socket.create_connection(address, timeout=60) as one:
        one.sendall(data)
        one.shutdown(socket.SHUT_WR)
        pieces = []
        while piece := one.recv(65_536):
            pieces.append(piece)
    return b"".join(pieces)


NO_HTTP = [
    (b"NONSENSE\r\n\r\n", b"400"),
    (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000 + b"\r\n\r\n", b"431"),
    (b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"431"),
    (b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", b"400"),
    (b"GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", b"421"),
    (b"GET / HTTP/1.1\r\nHost: a\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"400"),
    (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: x\r\n\r\n", b"400"),
    (b"\0" * 100 + b"\r\n\r\n", b"400"),
]


@gate
def test_input_that_is_not_http_gets_an_error_response(start: Start) -> None:
    running = start()
    for data, status in NO_HTTP:
        answer = talk(address_of(running.record["url"]), data)
        assert answer.startswith(b"HTTP/1.1 "), answer
        assert answer.split()[1] == status, data[:100]
        body = answer.partition(b"\r\n\r\n")[2]
        assert json.loads(body)["error"][0]["messageId"]
    assert "Traceback" not in running.log.read_text()


LOGS = """
import logging.config
from inorder.server.logs import CONFIGURATION
logging.config.dictConfig(CONFIGURATION)
for name in ("asyncio", "inorder.telemetry", "of.another.library"):
    logging.getLogger(name).warning("%s", name)
logging.getLogger("python_multipart.multipart").warning("bytes of a body")
"""


@gate
def test_log_records_of_libraries_are_json_and_contain_no_bodies() -> None:
    done = subprocess.run([sys.executable, "-c", LOGS], capture_output=True, text=True, check=True)
    found = [json.loads(line)["event"] for line in done.stderr.splitlines()]
    assert found == ["asyncio", "inorder.telemetry", "of.another.library"]


@gate
@pytest.mark.parametrize("arguments", [(), ("--self-signed",), ("--workers", "2")])
def test_idle_connections_take_no_descriptors_that_the_store_needs(
    start: Start, served: Served, arguments: tuple[str, ...]
) -> None:
    """The clients of these connections have not logged in; the server closes those that it cannot take."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
        running = start(*arguments)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    with contextlib.ExitStack() as held, inorder.connect(served.store) as qm:
        honest = held.enter_context(running.client())
        assert honest.get("/health").status_code == 200
        idle = [held.enter_context(socket.create_connection(address_of(running.record["url"]))) for _ in range(600)]
        for number in range(5):
            answer = honest.post(f"{V1}/message", content=str(number), headers=TEXT)
            assert answer.status_code == 201, answer.text
            qm.put("Q1", b"x")
        open_ones = len(list(Path(f"/proc/{running.process.pid}/fd").iterdir()))
        assert open_ones < 256 - 32, "a reserve is left"
        for one in idle:
            one.close()

        def is_taken() -> bool:
            with running.client() as another, contextlib.suppress(httpx.TransportError):
                return another.get("/health").status_code == 200
            return False

        until(is_taken, "another client is taken")
    assert "Traceback" not in running.log.read_text()


def test_a_signal_just_before_the_server_runs_is_not_lost(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command has announced the address, but uvicorn does not handle signals yet."""
    run = Server.run

    def signalled(self: Server, sockets: list[socket.socket] | None = None) -> None:
        signal.raise_signal(signal.SIGTERM)
        assert self.should_exit, "the server would run on"
        run(self, sockets or [])

    monkeypatch.setattr(running, "CONFIGURATION", None)  # keeps the log as the tests have configured it
    monkeypatch.setattr(Server, "run", signalled)
    assert running.serve(served.settings, running.listening("127.0.0.1", 0)) == 0
