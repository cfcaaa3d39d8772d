"""What does a store elsewhere cost, compared with one in the process, and with the same calls over HTTP?

All processes are on one machine and use its loopback. "Its round trip" is one to the same server with a dictionary
instead of the queue manager (`benchmarks.http_emptied`). Compared calls take turns of a few dozen, and a figure is the
ratio of one round, in which both met the same load of the machine.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

import inorder
from benchmarks.children import child, orders
from benchmarks.harness import Bar, Cannot, Contestant, Figures, Question, Ready
from benchmarks.questions.over_http import IDLE, MEMORY, Server, _settings, idling, of_store
from benchmarks.systems import BLOCK, BODY
from benchmarks.systems.ours import OURS, QUEUE, open_queue, settings_of
from inorder import GetOptions, OpenOptions
from inorder.rules.grouping import GroupState
from inorder.rules.ordering import Cursor
from inorder.stores.remote.address import parse
from inorder.stores.remote.frames import FrameKind
from inorder.stores.remote.store import RemoteStore
from inorder.stores.remote.wire import encode_call
from inorder.stores.seam.records import GetRequest

ELSEWHERE: Final = f"{OURS}, elsewhere"
IN_PROCESS: Final = f"{OURS}, in the process"
TEXTS: Final = "BENCH.TEXTS"  # HTTP reads only text
TURN: Final = 50  # calls of one kind before those of the next kind
CLIENTS: Final = 16
CONNECTIONS: Final = 1_000
WAITING: Final = 500  # how many of them wait
WAKE_UPS: Final = 20
PAUSE_SECONDS: Final = 0.02  # enough for the waiter to begin its wait
WAIT_SECONDS: Final = 60.0


def connected(server: Server) -> inorder.QueueManager:
    """Returns a connection to the store of a server."""
    host, port = server.address
    return inorder.connect(f"http://{host}:{port}", token=server.token, program="bench")


@contextmanager
def serving(folder: Path, module: str = "inorder") -> Iterator[Server]:
    """Starts a server of a new store with a queue."""
    folder.mkdir(exist_ok=True)
    with open_queue(folder):
        pass
    with contextlib.closing(of_store(folder, module)) as server:
        yield server


def seconds_of(call: Callable[[], object], times: int) -> float:
    """Returns the seconds of one call."""
    began = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - began) / times


# ---- one client


class OverHttp:
    """Puts and gets with Python's own HTTP client, on one connection."""

    def __init__(self, server: Server, manager: str) -> None:
        self._connection = http.client.HTTPConnection(*server.address)
        self._path = f"/ibmmq/rest/v2/messaging/qmgr/{manager}/queue/{TEXTS}/message"
        self._headers = {
            "Authorization": f"Basic {base64.b64encode(f'bench:{server.token}'.encode()).decode()}",
            "Content-Type": "text/plain;charset=utf-8",
            "ibm-mq-md-persistence": "persistent",
            "ibm-mq-rest-csrf-token": "",
        }

    def ask(self, method: str, body: bytes | None = None) -> None:
        self._connection.request(method, self._path, body, self._headers)
        answer = self._connection.getresponse()
        said = answer.read()
        if answer.status >= http.client.BAD_REQUEST:
            raise Cannot(said.decode("utf-8", "replace")[:300])

    def close(self) -> None:
        self._connection.close()


@contextmanager
def beside_its_parts(folder: Path) -> Iterator[Ready]:
    """Compares a put and a get elsewhere with those in the process, a round trip, and those over HTTP."""
    with ExitStack() as stack:
        server = stack.enter_context(serving(folder / "whole"))
        emptied = stack.enter_context(serving(folder / "emptied", "benchmarks.http_emptied"))
        (folder / "local").mkdir()
        local = stack.enter_context(open_queue(folder / "local"))
        whole, round_trip = (stack.enter_context(connected(one)) for one in (server, emptied))
        whole.create_queue(TEXTS)
        web = stack.enter_context(contextlib.closing(OverHttp(server, whole.admin.manager_attributes().name)))
        calls: dict[str, Sequence[Callable[[], object]]] = {
            "put": [partial(one.put, QUEUE, BODY) for one in (whole, local, round_trip)]
            + [partial(web.ask, "POST", BODY)],
            "get": [partial(one.get, QUEUE) for one in (whole, local, round_trip)] + [partial(web.ask, "DELETE")],
        }

        def measure(seconds: float) -> Figures:
            taken: dict[tuple[str, int], list[float]] = {(kind, place): [] for kind in calls for place in range(4)}
            end = time.monotonic() + 2 * seconds
            while not taken["get", 3] or time.monotonic() < end:
                for kind, each in calls.items():
                    for place, call in enumerate(each):
                        taken[kind, place].append(seconds_of(call, TURN))
            found: dict[str, float] = {}
            for kind in calls:
                ours, inside, trip, over_http = (statistics.median(taken[kind, place]) for place in range(4))
                found |= {
                    f"{kind} us": ours * 1e6,
                    f"{kind} / (in the process + its round trip)": ours / (inside + trip),
                    f"{kind} / over HTTP": ours / over_http,
                }
            return found

        yield Ready(measure=measure, settings=settings_of(local))


# ---- many clients, many messages


@contextmanager
def connections_of(folder: Path, place: str, count: int) -> Iterator[Sequence[inorder.QueueManager]]:
    """Opens this many connections to a new store."""
    with ExitStack() as stack:
        if place == ELSEWHERE:
            server = stack.enter_context(serving(folder))
            yield [stack.enter_context(connected(server)) for _ in range(count)]
        else:
            first = stack.enter_context(open_queue(folder))
            yield [first, *(stack.enter_context(first.connect()) for _ in range(count - 1))]


@contextmanager
def sixteen(folder: Path, *, place: str) -> Iterator[Ready]:
    """Measures threads with a connection each, which put, and then get all messages."""
    with connections_of(folder, place, CLIENTS) as own:

        def rate(call: Callable[[inorder.QueueManager], object], times: int) -> float:
            failures: list[BaseException] = []

            def work(one: inorder.QueueManager) -> None:
                try:
                    for _ in range(times):
                        call(one)
                except inorder.InorderError as error:
                    failures.append(error)

            threads = [threading.Thread(target=work, args=(one,)) for one in own]
            began = time.perf_counter()
            for one in threads:
                one.start()
            for one in threads:
                one.join()
            if failures:
                raise failures[0]
            return len(own) * times / (time.perf_counter() - began)

        def measure(seconds: float) -> Figures:
            rates: dict[str, list[float]] = {"put": [], "get": []}
            end = time.monotonic() + seconds
            while not rates["get"] or time.monotonic() < end:
                rates["put"].append(rate(lambda one: one.put(QUEUE, BODY), TURN))
                rates["get"].append(rate(lambda one: one.get(QUEUE), TURN))
            return {kind: statistics.median(each) for kind, each in rates.items()}

        yield Ready(measure=measure, settings=_settings(folder))


@contextmanager
def many(folder: Path, *, place: str) -> Iterator[Ready]:
    """Measures one connection, which puts and gets 100 messages with each call."""
    with connections_of(folder, place, 1) as (own,):
        bodies = [BODY] * BLOCK

        def measure(seconds: float) -> Figures:
            taken: dict[str, list[float]] = {"put_many(100)": [], "get_many(100)": []}
            end = time.monotonic() + seconds
            while not taken["get_many(100)"] or time.monotonic() < end:
                taken["put_many(100)"].append(seconds_of(lambda: own.put_many(QUEUE, bodies), 5))
                taken["get_many(100)"].append(seconds_of(lambda: own.get_many(QUEUE, BLOCK), 5))
            return {kind: BLOCK / statistics.median(each) for kind, each in taken.items()}

        yield Ready(measure=measure, settings=_settings(folder))


# ---- waits


def wait(pipe: Connection, folder: Path, address: tuple[str, str] | None) -> None:
    """Runs a process that waits for a message, and answers the seconds since its put."""
    with open_queue(folder) if address is None else inorder.connect(address[0], token=address[1]) as qm:
        for _ in orders(pipe):
            put_at = int(qm.get(QUEUE, wait=WAIT_SECONDS).body)
            pipe.send((time.monotonic_ns() - put_at) / 1e9)


@contextmanager
def woken(folder: Path) -> Iterator[Ready]:
    """Measures from a put to the return of another process's get, elsewhere and in files."""
    with ExitStack() as stack:
        server = stack.enter_context(serving(folder / "whole"))
        (folder / "local").mkdir()
        local, whole = stack.enter_context(open_queue(folder / "local")), stack.enter_context(connected(server))
        url = "http://{}:{}".format(*server.address)
        waits = [
            (local, stack.enter_context(child(wait, folder / "local", None))),
            (whole, stack.enter_context(child(wait, folder / "whole", (url, server.token)))),
        ]

        def measure(seconds: float) -> Figures:
            taken: tuple[list[float], list[float]] = ([], [])
            trips = []
            for _ in range(max(WAKE_UPS, int(seconds / PAUSE_SECONDS / 4))):
                for (qm, waiter), each in zip(waits, taken, strict=True):
                    waiter.order("wait")
                    time.sleep(PAUSE_SECONDS)
                    qm.put(QUEUE, str(time.monotonic_ns()).encode("ascii"))
                    each.append(waiter.answer(2 * WAIT_SECONDS))
                trips.append(seconds_of(whole.admin.manager_attributes, 1))
            inside, elsewhere, trip = map(statistics.median, (*taken, trips))
            return {
                "ms": elsewhere * 1e3,
                "in files ms": inside * 1e3,
                "round trip ms": trip * 1e3,
                "elsewhere / (in files + 1.5 round trips)": elsewhere / (inside + 1.5 * trip),
            }

        yield Ready(measure=measure, settings=settings_of(local))


class IdleConnection:
    """A connection with an open queue, without its own thread."""

    def __init__(self, server: Server) -> None:
        host, port = server.address
        self._store = RemoteStore(parse(f"http://{host}:{port}", {"token": server.token}), "bench")
        self._handle = self._store.open(0, QUEUE, OpenOptions(input="shared")).handle

    def begin_to_wait(self) -> None:
        """Sends a get that waits; its answer is never read."""
        options = GetOptions(wait=WAIT_SECONDS * 60)
        request = GetRequest(self._handle, options, GroupState(), Cursor(), syncpoint=False)
        self._store._link._send(FrameKind.CALL, 1_000_000, encode_call("wait", (request,), {}))

    def close(self) -> None:
        self._store._link.drop()


@contextmanager
def idle(folder: Path) -> Iterator[Ready]:
    """Opens many connections, some of which wait for a message."""
    with serving(folder) as server, ExitStack() as stack:
        before = server.memory_mb()
        for number in range(CONNECTIONS):
            one = stack.enter_context(contextlib.closing(IdleConnection(server)))
            if number < WAITING:
                one.begin_to_wait()
        yield Ready(measure=idling(server, before), settings=_settings(folder))


def _both(opened: Callable[..., contextlib.AbstractContextManager[Ready]]) -> list[Contestant]:
    return [
        Contestant(name=IN_PROCESS, role="bare", open=partial(opened, place=IN_PROCESS)),
        Contestant(name=ELSEWHERE, role="ours", open=partial(opened, place=ELSEWHERE)),
    ]


PARTS: Final = ("put", "get")
QUESTIONS = (
    Question(
        name="elsewhere",
        title="put and get of a store elsewhere, one client: its time as a part of others",
        unit="ratio",
        contestants=lambda site: [Contestant(name=ELSEWHERE, role="ours", open=beside_its_parts)],
        bars=[
            *(
                Bar(figure=f"{kind} / (in the process + its round trip)", of=ELSEWHERE, first=1.2, goal=1.2)
                for kind in PARTS
            ),
            *(Bar(figure=f"{kind} / over HTTP", of=ELSEWHERE, first=1 / 3, goal=1 / 3) for kind in PARTS),
        ],
    ),
    Question(
        name="elsewhere_sixteen",
        title=f"put and get of a store elsewhere, {CLIENTS} clients beside as many threads in the process",
        unit="messages/s",
        contestants=lambda site: _both(sixteen),
        bars=[Bar(figure=kind, of=ELSEWHERE, against=IN_PROCESS, first=0.8, goal=0.8) for kind in PARTS],
    ),
    Question(
        name="elsewhere_many",
        title="100 messages a call of a store elsewhere",
        unit="messages/s",
        contestants=lambda site: _both(many),
        bars=[
            Bar(figure=f"{kind}_many({BLOCK})", of=ELSEWHERE, against=IN_PROCESS, first=0.6, goal=0.6) for kind in PARTS
        ],
    ),
    Question(
        name="elsewhere_wake_up",
        title="wake-up of a waiting process by a store elsewhere, beside one in files",
        unit="ms, ratio",
        rounds_max=3,
        contestants=lambda site: [Contestant(name=ELSEWHERE, role="ours", open=woken)],
        bars=[Bar(figure="elsewhere / (in files + 1.5 round trips)", of=ELSEWHERE, first=1, goal=1)],
    ),
    Question(
        name="elsewhere_idle",
        title=f"{CONNECTIONS:,} idle connections to a store elsewhere, of which {WAITING} wait for a message",
        unit="MB, % of a core",
        rounds_max=2,
        contestants=lambda site: [Contestant(name=ELSEWHERE, role="ours", open=idle)],
        bars=[
            Bar(figure=IDLE, of=ELSEWHERE, first=1, goal=1),
            Bar(figure=MEMORY, of=ELSEWHERE, first=150, goal=150),
        ],
    ),
)
