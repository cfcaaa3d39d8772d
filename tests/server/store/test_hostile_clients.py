"""Clients with a valid token that send invalid data: they get an error or are closed, and no other client notices.

`tests/stores/remote/test_wire.py` lists invalid frames and payloads; here a server gets some of each kind.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import random
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from tests.helpers.support import until
from tests.server.conftest import Running, Served, Start
from tests.server.store.broken import calls, elsewhere
from tests.server.store.raw import Raw
from tests.tiers import gate, nightly

import inorder
from inorder import QueueManager
from inorder.model.attributes import define_queue
from inorder.model.options import GetOptions, OpenOptions, PutOptions
from inorder.rules.grouping import NOTHING_OPEN
from inorder.rules.ordering import UNSET
from inorder.server.store import connection
from inorder.server.store.connection import CALLS_MAX
from inorder.stores.memory import MemoryStore
from inorder.stores.remote.address import parse
from inorder.stores.remote.frames import HEADER, PIECE_MAX, Flag, FrameKind
from inorder.stores.remote.store import RemoteStore
from inorder.stores.remote.wire import WireError, decode_call, decode_error, encode_call
from inorder.stores.seam.records import GetRequest, PutRequest
from inorder.testing.remote import the_server

NOT_HERE = {"settle", "wait", "alter_manager", "clear_queue", "has_unit", "end_waits"}
PACK = msgspec.msgpack.encode


class Place(SimpleNamespace):
    """A server with a store.

    Attributes:
        qm: another remote program, which must not notice anything.
        store, port, token: of the server.
    """

    qm: QueueManager
    store: MemoryStore
    port: int
    token: str

    def raw(self) -> Raw:
        return Raw(self.port, self.token)


@pytest.fixture
def place(caplog: pytest.LogCaptureFixture) -> Iterator[Place]:
    caplog.set_level(logging.INFO)
    store, server = MemoryStore("QM1"), the_server(os.getpid())
    for name in ("Q", "BYSTANDER"):
        store.create_queue(define_queue(name))
    with server.serving(store) as token:
        far: Any = RemoteStore(parse(server.url, {"token": token}), "bystander")
        qm = inorder.connect(far)
        far.close_store()
        before = len(store.list_connections())
        with qm.unit_of_work():
            qm.put("BYSTANDER", b"of the bystander")
            yield Place(qm=qm, store=store, port=int(server.url.rpartition(":")[2]), token=token)
            qm.put("BYSTANDER", b"and more")
        assert [one.body for one in qm.browse("BYSTANDER")] == [b"of the bystander", b"and more"]
        until(lambda: len(store.list_connections()) == before, "the others have ended")
        qm.close()
    store.stop()
    assert token not in caplog.text
    assert "Traceback" not in caplog.text
    assert not [one for one in caplog.records if one.levelno >= logging.ERROR or one.exc_info]


def test_a_connection_that_does_not_begin_with_a_hello_is_closed(place: Place) -> None:
    acts: list[Callable[[Raw], None]] = [
        lambda raw: raw.call("queues"),
        lambda raw: raw.frame(FrameKind.BYE),
        lambda raw: raw.frame(FrameKind.END_WAITS),
        lambda raw: raw.frame(FrameKind.HELLO, b"\xc1"),
        lambda raw: raw.frame(FrameKind.HELLO, b""),
        lambda raw: raw.frame(FrameKind.HELLO, PACK([1, "0"])),
        lambda raw: raw.frame(FrameKind.HELLO, PACK({"protocol": 1})),
        lambda raw: raw.frame(FrameKind.HELLO, b"\x91" * 100_000 + b"\xc0"),
        lambda raw: raw.hello(protocol=2),
        lambda raw: raw.text(b"hello"),
        lambda raw: raw.binary(b""),
        lambda raw: raw.octets(b"\xff" * 100),
    ]
    for act in acts:
        with place.raw() as raw:
            act(raw)
            assert set(raw.ends()) <= {"WireError", "StoreError", "ArgumentError"}


def test_unusual_hellos_are_accepted(place: Place) -> None:
    for changes in (
        {"program": "x" * 100_000},
        {"program": "\0"},
        {"first_handle": -(2**63)},
        {"first_handle": 2**63 - 1},
        {"resume": b"x" * 24},
        {"resume": bytes(1000)},
        {"fields": [], "features": ["unknown"] * 1000},
    ):
        with place.raw() as raw:
            assert raw.begin(**changes).manager == "QM1"
            raw.call("open", "Q", OpenOptions(output=True))
            assert raw.answer()[0] == FrameKind.ANSWER


HELLO = HEADER.pack(FrameKind.HELLO, 0, 0, 0)
FULL = bytes(PIECE_MAX)


def many_calls(raw: Raw) -> None:
    for number in range(1, 6):
        raw.frame(FrameKind.CALL, FULL, number, Flag.MORE)


ENDING: dict[str, Callable[[Raw], None]] = {
    "a second hello": lambda raw: raw.hello(),
    "an answer": lambda raw: raw.frame(FrameKind.ANSWER),
    "an error": lambda raw: raw.frame(FrameKind.ERROR),
    "an event": lambda raw: raw.frame(FrameKind.EVENT),
    "an unknown kind": lambda raw: raw.frame(77),
    "nothing": lambda raw: raw.binary(b""),
    "text": lambda raw: raw.text(b"\x02"),
    "too many calls in pieces": many_calls,
    "no frame of a WebSocket": lambda raw: raw.octets(b"\xff" * 64),
    "a frame without its mask": lambda raw: raw.octets(b"\x82\x01x"),
    "a frame of 2**60 bytes": lambda raw: raw.octets(b"\x82\xff" + (2**60).to_bytes(8, "big") + bytes(4)),
}


@pytest.mark.parametrize("what", ENDING)
def test_a_frame_that_no_client_sends_ends_the_connection(place: Place, what: str) -> None:
    with place.raw() as raw:
        raw.begin()
        try:
            ENDING[what](raw)
        except ConnectionError:  # the connection ended before everything was sent
            return
        assert set(raw.ends()) <= {"WireError"}


def refused(raw: Raw, kind: int, payload: bytes) -> str:
    """The class of the error that answers a frame without ending the connection."""
    raw.frame(kind, payload, 5)
    found, number, answer = raw.answer()
    assert (found, number) == (FrameKind.ERROR, 5), answer
    raw.call("manager", number=6)
    assert raw.answer()[:2] == (FrameKind.ANSWER, 6)
    return type(decode_error(answer)).__name__


PUTS = OpenOptions(output=True)
GET = GetRequest(99, GetOptions(), NOTHING_OPEN, UNSET, False)
PUT = PutRequest(99, [b"x"], PutOptions(), NOTHING_OPEN, False)
BAD_CALLS: dict[str, tuple[int, bytes]] = {
    "nothing": (FrameKind.CALL, b""),
    "deep": (FrameKind.CALL, b"\x91" * 1_000_000 + b"\xc0"),
    "deep maps": (FrameKind.CALL, b"\x81\xa1x" * 300_000 + b"\xc0"),
    "half a call": (FrameKind.CALL, encode_call("queue", ("Q",), {})[:-1]),
    "more than a call": (FrameKind.CALL, encode_call("queue", ("Q",), {}) + b"\xc0"),
    "a map": (FrameKind.CALL, PACK({"queues": []})),
    "no arguments": (FrameKind.CALL, PACK(["queues"])),
    "no list": (FrameKind.CALL, PACK(["queue", {"name": "Q"}])),
    "a number as verb": (FrameKind.CALL, PACK([7, []])),
    "a verb that stays": (FrameKind.CALL, PACK(["stop", []])),
    "an attribute": (FrameKind.CALL, PACK(["__init__", []])),
    "an unknown handle": (FrameKind.CALL, encode_call("check_handle", (99,), {})),
    "a negative handle": (FrameKind.CALL, encode_call("check_handle", (-1,), {})),
    "a huge handle": (FrameKind.CALL, encode_call("check_handle", (2**63,), {})),
    "a get of an unknown handle": (FrameKind.CALL, encode_call("get", (GET,), {})),
    "a wait of an unknown handle": (FrameKind.CALL, encode_call("wait", (GET,), {})),
    "a put to an unknown handle": (FrameKind.CALL, encode_call("put", (PUT,), {})),
    "a handle that is opened again and was not open": (FrameKind.REOPEN, encode_call("open", ("Q", PUTS), {})),
    "something else that is opened again": (FrameKind.REOPEN, encode_call("queues", (), {})),
    "a wait that is opened again": (FrameKind.REOPEN, encode_call("wait", (GET._replace(handle=1),), {})),
    "a watch of an unknown handle": (FrameKind.WATCH, encode_call("check_handle", (99,), {})),
    "a watch of something else": (FrameKind.WATCH, encode_call("queues", (), {})),
    "a watch of a put": (FrameKind.WATCH, encode_call("put", (PUT._replace(handle=1),), {})),
    "a watch of nothing": (FrameKind.WATCH, b""),
    "a queue of no name": (FrameKind.CALL, encode_call("open", ("\0" * 1000, PUTS), {})),
}


@pytest.mark.parametrize("what", BAD_CALLS)
def test_an_invalid_call_gets_a_specific_error(place: Place, what: str) -> None:
    with place.raw() as raw:
        raw.begin()
        assert refused(raw, *BAD_CALLS[what]) != "InorderError"


def test_calls_after_a_goodbye_are_not_answered(place: Place) -> None:
    with place.raw() as raw:
        raw.begin()
        raw.call("open", "Q", OpenOptions(output=True))
        assert raw.answer()[0] == FrameKind.ANSWER
        raw.frame(FrameKind.BYE, number=8)
        for verb in ("queues", "manager"):
            raw.call(verb, number=9)
        assert raw.answer() == (FrameKind.ANSWER, 8, b"")
        assert raw.answer()[:2] == (0, 1000)


def test_a_forged_resume_secret_ends_no_connection(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """It could be a secret of the server before a restart: the new connection waits for the old one, and is refused."""
    monkeypatch.setattr(connection, "PAUSES", (0.001, 0.001))
    with place.raw() as one:
        old = one.begin()
        made_up = old.resume[:8] + bytes(16)
        with place.raw() as two:
            two.hello(resume=made_up)
            assert two.ends() == ["StoreError"]
        one.call("manager")
        assert one.answer()[0] == FrameKind.ANSWER
        with place.raw() as two:
            assert two.begin(resume=old.resume).connection > old.connection
        assert one.ends() == []
    with place.raw() as three:
        assert three.begin(resume=made_up).manager == "QM1"


def test_a_client_that_reads_no_answers_blocks_no_other_and_is_disconnected(place: Place) -> None:
    for number in range(100):
        place.store.create_queue(define_queue(f"MANY{number}", description="x" * 60))
    with place.raw() as raw:
        owner = raw.begin().connection
        for _ in range(2_000):  # with more than 100 MB of answers
            raw.call("queues")
        until(lambda: owner not in place.store.connections, "it has ended")
        place.qm.put("Q", b"meanwhile", syncpoint=False)
        assert place.qm.get("Q", syncpoint=False).body == b"meanwhile"


def test_calls_beyond_the_limit_get_an_error_and_end_the_connection(place: Place) -> None:
    with place.raw() as raw:
        raw.begin()
        raw.call("open", "Q", OpenOptions(input="shared"), number=1)
        assert raw.answer()[0] == FrameKind.ANSWER
        wait = GetRequest(1, GetOptions(wait=600), NOTHING_OPEN, UNSET, False)
        raw.call("wait", wait, number=2)
        until(lambda: len(place.store.waits()) == 1, "it waits")
        for number in range(3, 3 + CALLS_MAX):
            raw.call("queues", number=number)
        raw.call("queues", number=99)
        kind, number, payload = raw.answer()
        assert (kind, number) == (FrameKind.ERROR, 0)
        assert str(decode_error(payload)).startswith(f"at most {CALLS_MAX} calls")
        assert raw.ends() == []


def test_a_flood_of_end_waits_frames_is_harmless(place: Place) -> None:
    with place.raw() as raw:
        raw.begin()
        for _ in range(2_000):
            raw.frame(FrameKind.END_WAITS)
        raw.call("manager")
        assert raw.answer()[0] == FrameKind.ANSWER


@gate
def test_memory_is_bounded_by_what_clients_send(place: Place) -> None:
    connected = len(place.store.list_connections())
    gc.disable()  # so that the test shows what a connection frees when it ends
    tracemalloc.start()
    try:
        for _ in range(20):
            with place.raw() as raw:
                raw.begin()
                for payload in (b"\xdd\xff\xff\xff\xff", b"\x91" * PIECE_MAX, b"\xc0" * PIECE_MAX):
                    refused(raw, FrameKind.CALL, payload)
                for _ in range(4):
                    raw.frame(FrameKind.CALL, FULL, 7, Flag.MORE)
                # and disconnects without sending the rest
            until(lambda: len(place.store.list_connections()) == connected, "its connection has ended")
        assert tracemalloc.get_traced_memory()[1] < 60 * 2**20
    finally:
        tracemalloc.stop()
        gc.enable()


def _any(draw: random.Random) -> Any:
    """A random msgpack value."""
    kind = draw.randrange(9)
    if kind < 2:
        return [_any(draw) for _ in range(draw.randrange(4))]
    if kind == 2:
        return {str(draw.randrange(9)): _any(draw)}
    return draw.choice(
        [
            None, True, -1, 0, 1, 2**63, -(2**63), 1.5, float("nan"), float("inf"), "", "Q", "\0", b"", b"x" * 24,
            "x" * 300,
        ]
    )  # fmt: skip


def _mutated(draw: random.Random, value: Any) -> Any:
    """The value with one place replaced by a random value."""
    if isinstance(value, list) and value and draw.random() < 0.85:
        at = draw.randrange(len(value))
        return [*value[:at], _mutated(draw, value[at]), *value[at + 1 :]]
    return _any(draw)


@pytest.mark.parametrize(
    "count", [pytest.param(300), pytest.param(5_000, marks=gate), pytest.param(200_000, marks=nightly)]
)
def test_calls_with_random_values_get_answers(place: Place, count: int) -> None:
    """Each call of the matrix with one value replaced gets an answer or an expected error."""
    seed = random.SystemRandom().getrandbits(32)
    draw = random.Random(seed)
    with elsewhere() as at:
        encoded = [encode_call(one.verb, (), one.arguments(at)) for one in calls().values() if one.verb not in NOT_HERE]
        payloads = [msgspec.msgpack.decode(one) for one in encoded]
    with place.raw() as raw:
        raw.begin()
        raw.call("open", "Q", OpenOptions(input="shared", output=True, browse=True))
        raw.answer()
        for _ in range(count):
            verb, arguments = draw.choice(payloads)
            payload = PACK([verb, _mutated(draw, arguments)])
            raw.frame(FrameKind.CALL, payload, 1)
            kind, number, answer = raw.answer()
            assert number == 1, (seed, verb, payload, answer)
            if kind == FrameKind.ERROR:
                assert type(decode_error(answer)).__name__ != "InorderError", (seed, verb, payload)


@pytest.mark.parametrize("name", ["deep", "deep maps"])
def test_no_finalizer_runs_near_the_recursion_limit_while_a_deep_call_is_decoded(name: str) -> None:
    depths: list[int] = []

    def note(phase: str, _: object) -> None:
        depths.append(room(500))

    def room(frames: int) -> int:
        try:
            return 0 if not frames else 1 + room(frames - 1)
        except RecursionError:
            return 0

    thresholds = gc.get_threshold()
    gc.callbacks.append(note)
    gc.set_threshold(1)
    try:
        with pytest.raises(WireError):
            decode_call(BAD_CALLS[name][1])
        gc.collect()
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(note)
    assert min(depths) == 500


CLIENT = """
import sys, inorder
url, what = sys.argv[1:]
qm = inorder.connect(url, program="a client")
if what == "unit":
    qm.put("Q1", b"of the unit", syncpoint=True)
    qm.get("Q1", syncpoint=True)
    print("ready", flush=True)
    sys.stdin.read()
elif what == "wait":
    print("ready", flush=True)
    qm.get("Q1", wait=600)
else:
    print("ready", flush=True)
    for nth in range(10**9):
        qm.put("Q1", b"%d" % nth)
        print(nth, flush=True)
"""


@contextlib.contextmanager
def client_of(running: Running, what: str) -> Iterator[subprocess.Popen[str]]:
    """A remote program in a separate process, entered when the program is ready."""
    one = subprocess.Popen(
        [sys.executable, "-c", CLIENT, running.url, what],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"INORDER_TOKEN": running.token},
    )
    try:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
        yield one
    finally:
        one.kill()
        one.communicate()


@gate
@pytest.mark.parametrize("what", ["unit", "wait", "puts"])
def test_the_connection_of_a_killed_client_ends(start: Start, served: Served, what: str) -> None:
    running = start()
    with inorder.connect(served.store) as qm:

        def is_connected() -> bool:
            return any(one.program.name == "a client" for one in qm.inspect.connections())

        if what == "unit":
            qm.put("Q1", b"first")
        with client_of(running, what) as client:
            assert client.stdout is not None
            until(is_connected, "it is connected")
            if what == "wait":
                until(lambda: bool(qm.inspect.waits()), "it waits")
            acknowledged = [client.stdout.readline().strip() for _ in range(3 if what == "puts" else 0)]
            client.kill()
            acknowledged += client.stdout.read().split()
        until(lambda: not is_connected(), "its connection has ended")
        until(lambda: not qm.inspect.units() and not qm.inspect.waits(), "its unit and its wait have ended")
        bodies = [one.body.decode() for one in qm.browse("Q1")]
        if what == "unit":
            assert bodies == ["first"]
        elif what == "puts":
            assert bodies[: len(acknowledged)] == acknowledged
            assert len(bodies) <= len(acknowledged) + 1
            assert len(set(bodies)) == len(bodies)
