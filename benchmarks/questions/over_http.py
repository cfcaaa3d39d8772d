"""What does HTTP cost: messages one by one compared with a server that answers from a dictionary, Arrow streams
compared with calls in the process, and a thousand requests that wait?

The client is a socket: it sends prepared bytes and looks for the end of the answer, so it costs little. With one
client, the client and the server work in turn, and the client's own cost is subtracted. Sixteen clients are sixteen
threads, and the server always has work.

"The same server answering from a dictionary" is our server with its routes, guard, log-in and log, but with a
dictionary instead of the queue manager. The bars compare with this server, both for the messages that IBM's interface
makes by default (not persistent) and for persistent ones. uvicorn with h11 and Starlette alone is a further contestant,
which shows the cost of the whole of `inorder serve`.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from benchmarks.harness import Bar, Cannot, Contestant, Figures, Question, Ready, Role
from benchmarks.systems import BODY
from benchmarks.systems.ours import OURS, QUEUE, open_queue, settings_of

DICTIONARY: Final = "a dictionary"
EMPTIED: Final = f"{OURS}, a dictionary behind it"
NOT_PERSISTENT: Final = f"{OURS}, not persistent"
PUT, GET, PUT_COST, GET_COST = "put", "get", "put: server us", "get: server us"
STOCK: Final = 200  # messages that are put, and then got, in one round
CLIENTS: Final = 16
LENGTH = re.compile(rb"\r\ncontent-length: (\d+)\r\n", re.IGNORECASE)
TICKS = os.sysconf("SC_CLK_TCK")


class Server:
    """A server process, and the resources that it has used."""

    def __init__(self, words: Sequence[str], token_file: Path | None = None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert self._process.stdout is not None
        try:
            line = self._process.stdout.readline()
            if not line:
                raise Cannot(f"python -m {words[0]} did not start")
        except BaseException:  # also for a signal
            self.close()
            raise
        parts = urlsplit(json.loads(line)["url"])
        self.address = parts.hostname or "", parts.port or 0
        self.token = "" if token_file is None else token_file.read_text(encoding="utf-8").strip()

    def seconds(self) -> float:
        """Its processor seconds so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory_mb(self) -> float:
        """Its resident memory in MB (10^6 bytes)."""
        text = Path(f"/proc/{self._process.pid}/status").read_text(encoding="utf-8")
        return int(re.findall(r"VmRSS:\s+(\d+)", text)[0]) * 1024 / 1e6

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def of_store(folder: Path, module: str = "inorder") -> Server:
    """Starts `inorder serve` on the store in a folder, or a module with the same arguments."""
    token_file = folder / "token"
    words = [module, "serve", str(folder / "store.db"), "--port", "0", "--json", "--token-file", str(token_file)]
    return Server(words, token_file)


class Client:
    """One connection to a server."""

    def __init__(self, server: Server) -> None:
        self._socket = socket.create_connection(server.address)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, request: bytes) -> None:
        self._socket.sendall(request)

    def answer(self) -> bytes:
        """Returns the head and the body of an answer that has a length, or no body."""
        held = self._more()
        while (end := held.find(b"\r\n\r\n")) < 0:
            held += self._more()
        found = LENGTH.search(held, 0, end + 2)
        whole = end + 4 + (int(found[1]) if found else 0)
        while len(held) < whole:
            held += self._more()
        return held

    def _more(self) -> bytes:
        piece = self._socket.recv(65_536)
        if not piece:
            raise Cannot("the server has closed the connection")
        return piece

    def ask(self, request: bytes) -> bytes:
        """Sends a request and returns its answer. Raises: Cannot, if it is an error."""
        self.send(request)
        answer = self.answer()
        if answer[9:10] != b"2":
            raise Cannot(answer.decode("utf-8", "replace")[:300])
        return answer

    def close(self) -> None:
        self._socket.close()


def request_of(server: Server, method: str, path: str, body: bytes = b"", **headers: str) -> bytes:
    """Returns the bytes of a request."""
    credentials = base64.b64encode(f"bench:{server.token}".encode()).decode()
    named = {
        "Host": "localhost",
        "Authorization": f"Basic {credentials}",
        "ibm-mq-rest-csrf-token": "",
        "Content-Length": str(len(body)),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body


# ---- one by one


@contextmanager
def served(folder: Path, *, name: str, clients: int) -> Iterator[Ready]:
    """Opens a server and its clients, which put and get in turn."""
    with ExitStack() as stack:
        if name == DICTIONARY:
            path, settings = "/message", "uvicorn, h11, Starlette: nothing behind them"
            server = Server(["benchmarks.http_dictionary"])
        else:
            path = f"/ibmmq/rest/v2/messaging/qmgr/{_made(folder)}/queue/{QUEUE}/message"
            is_emptied = name == EMPTIED
            server = of_store(folder, "benchmarks.http_emptied") if is_emptied else of_store(folder)
            settings = "inorder serve: its puts and gets go to a dictionary" if is_emptied else _settings(folder)
        stack.enter_context(contextlib.closing(server))
        persistence = "nonPersistent" if name == NOT_PERSISTENT else "persistent"
        more = {"Content-Type": "text/plain;charset=utf-8", "ibm-mq-md-persistence": persistence}
        put, get = request_of(server, "POST", path, BODY, **more), request_of(server, "DELETE", path)

        def measure(seconds: float) -> Figures:
            with ExitStack() as open_now:  # a server closes connections that are idle between two rounds
                own = [open_now.enter_context(contextlib.closing(Client(server))) for _ in range(clients)]
                return measured(own, seconds)

        def measured(own: Sequence[Client], seconds: float) -> Figures:
            spent = {PUT: [0.0, 0.0], GET: [0.0, 0.0]}
            done = 0
            while done == 0 or sum(each[0] for each in spent.values()) < seconds:
                for kind, request in ((PUT, put), (GET, get)):
                    took, cost = _round(server, own, request)
                    spent[kind][0] += took
                    spent[kind][1] += cost
                done += STOCK
            rates = {kind: done / each[0] for kind, each in spent.items()}
            return {**rates, PUT_COST: spent[PUT][1] / done * 1e6, GET_COST: spent[GET][1] / done * 1e6}

        yield Ready(measure=measure, settings=settings)


def _round(server: Server, clients: Sequence[Client], request: bytes) -> tuple[float, float]:
    """Sends a share of the requests by each client. Returns the seconds without the client's own, and the server's."""
    share = STOCK // len(clients)
    used, own, began = server.seconds(), time.process_time(), time.perf_counter()
    if len(clients) == 1:
        for _ in range(share):
            clients[0].ask(request)
        took = time.perf_counter() - began - (time.process_time() - own)
    else:
        failures: list[Cannot] = []
        threads = [threading.Thread(target=_repeat, args=(one, request, share, failures)) for one in clients]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        took = time.perf_counter() - began
        if failures:
            raise failures[0]
    return took * STOCK / (share * len(clients)), server.seconds() - used


def _repeat(client: Client, request: bytes, times: int, failures: list[Cannot]) -> None:
    try:
        for _ in range(times):
            client.ask(request)
    except Cannot as failure:
        failures.append(failure)


def _made(folder: Path) -> str:
    with open_queue(folder) as qm:
        return qm.admin.manager_attributes().name


def _settings(folder: Path) -> str:
    with open_queue(folder) as qm:
        return settings_of(qm)


def one_by_one(clients: int) -> Question:
    """Returns a question with this many clients at once."""
    contestants: list[tuple[str, Role]] = [
        (OURS, "ours"),
        (NOT_PERSISTENT, "ours"),
        (EMPTIED, "bare"),
        (DICTIONARY, "bare"),
    ]
    return Question(
        name="http" if clients == 1 else "http_sixteen",
        title=f"put and get over loopback HTTP/1.1, {clients} client{'s' if clients > 1 else ''}",
        unit="messages/s",
        rounds_max=5,
        contestants=lambda site: [
            Contestant(name=name, role=role, open=partial(served, name=name, clients=clients))
            for name, role in contestants
        ],
        bars=[
            Bar(figure=figure, of=one, against=EMPTIED, first=0.5, goal=0.5)
            for one in (OURS, NOT_PERSISTENT)
            for figure in (PUT, GET)
        ],
    )


# ---- Arrow

IN_PROCESS, ARROW = "put_many, get_many in the process", "Arrow over HTTP"
MANY, BATCH = 20_000, 1_000


@contextmanager
def in_process(folder: Path) -> Iterator[Ready]:
    """Measures calls with 1,000 messages each."""
    bodies = [BODY] * BATCH
    with open_queue(folder) as qm:

        def put() -> None:
            for _ in range(MANY // BATCH):
                qm.put_many(QUEUE, bodies)

        def get() -> None:
            for _ in range(MANY // BATCH):
                qm.get_many(QUEUE, BATCH)

        yield Ready(measure=partial(_measured, put, get), settings=settings_of(qm))


@contextmanager
def over_arrow(folder: Path) -> Iterator[Ready]:
    """Measures a stream with the messages of a round, and one claim of all of them, confirmed."""
    stream = _stream()
    _made(folder)
    with contextlib.closing(of_store(folder)) as server:
        base = f"/inorder/v1/queues/{QUEUE}"
        with contextlib.closing(Client(server)) as first:
            first.ask(request_of(server, "POST", f"{base}/readers/bench"))
        media, claims = "application/vnd.apache.arrow.stream", iter(range(10**9))

        def put() -> None:
            headers = {"Content-Type": media, "Idempotency-Key": str(time.monotonic_ns())}
            with contextlib.closing(Client(server)) as client:
                client.ask(request_of(server, "POST", f"{base}/arrow", stream, **headers))

        def get() -> None:
            number = next(claims)
            query = f"epoch=1&after={number}&messages={MANY}"
            with contextlib.closing(Client(server)) as client:
                client.send(request_of(server, "POST", f"{base}/readers/bench/arrow?{query}"))
                _to_the_end(client)
                client.ask(request_of(server, "POST", f"{base}/readers/bench/settle?epoch=1&upto={number + 1}"))

        yield Ready(measure=partial(_measured, put, get), settings=_settings(folder))


def _stream() -> bytes:
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra
    except ImportError:
        raise Cannot("pyarrow is not installed") from None
    batch = pa.record_batch({"body": pa.array([BODY] * BATCH, pa.binary())})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        for _ in range(MANY // BATCH):
            writer.write_batch(batch)
    return sink.getvalue()


def _to_the_end(client: Client) -> None:
    """Reads and discards an answer in chunks."""
    tail = b""
    while not tail.endswith(b"\r\n0\r\n\r\n"):
        piece = client._socket.recv(1 << 20)
        if not piece:
            raise Cannot("the server has cut off the stream")
        tail = (tail + piece)[-16:]


def _measured(put: Callable[[], None], get: Callable[[], None], seconds: float) -> Figures:
    took, done = {PUT: 0.0, GET: 0.0}, 0
    while done == 0 or sum(took.values()) < seconds:
        for kind, work in ((PUT, put), (GET, get)):
            began = time.perf_counter()
            work()
            took[kind] += time.perf_counter() - began
        done += MANY
    return {kind: done / each for kind, each in took.items()}


# ---- waits

POLLS: Final = 1_000
IDLE, MEMORY = "idle % of a core", "memory MB"
IDLE_TIMES: Final = 10


def idling(server: Server, before: float) -> Callable[[float], Figures]:
    """Waits until all clients of a server wait. Returns a function that measures its cost from then on."""
    rest, last = server.seconds(), -1.0
    while rest - last > 0.01:  # until all of them wait
        time.sleep(0.5)
        last, rest = rest, server.seconds()

    def measure(seconds: float) -> Figures:
        used, began = server.seconds(), time.monotonic()
        time.sleep(IDLE_TIMES * seconds)
        share = (server.seconds() - used) / (time.monotonic() - began)
        return {IDLE: share * 100, MEMORY: server.memory_mb() - before}

    return measure


@contextmanager
def polled(folder: Path) -> Iterator[Ready]:
    """Opens many requests that wait for a message on one queue."""
    path = f"/ibmmq/rest/v2/messaging/qmgr/{_made(folder)}/queue/{QUEUE}/message?wait=3600000"
    with ExitStack() as stack:
        server = stack.enter_context(contextlib.closing(of_store(folder)))
        request = request_of(server, "DELETE", path)
        before = server.memory_mb()
        for _ in range(POLLS):
            client = stack.enter_context(contextlib.closing(Client(server)))
            client.send(request)
        yield Ready(measure=idling(server, before), settings=_settings(folder))


QUESTIONS = (
    one_by_one(1),
    one_by_one(CLIENTS),
    Question(
        name="http_arrow",
        title=f"{MANY:,} messages as Arrow over HTTP, beside put_many and get_many in the process",
        unit="messages/s",
        rounds_max=3,
        contestants=lambda site: [
            Contestant(name=IN_PROCESS, role="bare", open=in_process),
            Contestant(name=ARROW, role="ours", open=over_arrow),
        ],
        bars=[Bar(figure=figure, of=ARROW, against=IN_PROCESS, first=0.5, goal=0.5) for figure in (PUT, GET)],
    ),
    Question(
        name="http_waits",
        title=f"{POLLS:,} gets that wait over HTTP",
        unit="MB, % of a core",
        rounds_max=2,
        contestants=lambda site: [Contestant(name=OURS, role="ours", open=polled)],
        bars=[
            Bar(figure=IDLE, of=OURS, first=2, goal=2),
            Bar(figure=MEMORY, of=OURS, first=150, goal=150),
        ],
    ),
)
