"""After a cut, sending a long body to a server continues where it stopped; the body arrives once (between C-1, W-9)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.helpers.channelled import Died, bodies
from tests.helpers.elsewhere import USER, Elsewhere, elsewhere_in, log_in
from tests.helpers.proxy import Proxy

from inorder.errors import StoreError
from inorder.mq import channels
from inorder.stores.remote.store import RemoteStore
from inorder.stores.seam.channel_records import BODY_PIECE_MAX

pytestmark = pytest.mark.gate

EXITS = "tests.helpers.channelled"
LONG = Random(1).randbytes(5 * BODY_PIECE_MAX + 7)
OVERHEAD = 100_000  # bytes besides the bodies, and bytes that a socket had already accepted at a cut


class Cutting(Proxy):
    """Cuts each of the next connections after a number of bytes to the server."""

    every = times = 0

    def begin(self, every: int, times: int) -> None:
        self.every, self.times = every, times
        self.passed["to server"] = 0
        self.cut_after("to server", every)

    def cut(self) -> None:
        super().cut()
        self.times -= 1
        if self.times > 0:
            self.cut_after("to server", self.every)


@pytest.fixture(scope="module")
def between(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Elsewhere, Cutting]]:
    with pytest.MonkeyPatch.context() as patched:
        folder = tmp_path_factory.mktemp("resumed")
        with elsewhere_in(folder, patched, "--exits", EXITS) as made:
            host, _, port = made.at.partition(":")
            proxy = Cutting(int(port))
            with proxy:
                url = made.url.replace(f":{port}", f":{proxy.port}")
                token = made.b.accounts.create_token(USER, "by the proxy")
                log_in(made.credentials, {f"{host}:{proxy.port}": token})
                channels.define_connection(made.a, "THERE", url, user=USER, replace=True)
                made.a.alter_queue("B", max_length=2 * len(LONG))
                made.b.alter_queue("Q", max_length=2 * len(LONG))
                yield made, proxy


def _left(made: Elsewhere) -> list[int]:
    with closing(sqlite3.connect(Path(str(made.credentials)).parent / "b.db")) as store:
        return [store.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("body", "piece")]


def _arrived(made: Elsewhere) -> list[bytes]:
    found = bodies(made.b)
    made.b.admin.clear_queue("Q")
    assert _left(made) == [0, 0]
    return found


@pytest.mark.parametrize("every", [BODY_PIECE_MAX + 500_000, 2 * BODY_PIECE_MAX - 1])
def test_each_cut_repeats_at_most_one_piece(between: tuple[Elsewhere, Cutting], every: int) -> None:
    made, proxy = between
    made.put(b"before", LONG, b"after")
    proxy.begin(every, 4)
    made.run()
    assert proxy.times == 0
    assert proxy.passed["to server"] < len(LONG) + 4 * BODY_PIECE_MAX + OVERHEAD
    assert _arrived(made) == [b"before", LONG, b"after"]


def test_another_run_continues_where_a_dead_one_stopped(
    between: tuple[Elsewhere, Cutting], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, proxy = between
    made.put(LONG)
    calls, call = 0, RemoteStore._call

    def dying(store: RemoteStore, verb: str, *given: Any, **more: Any) -> Any:
        nonlocal calls
        calls += verb == "receive_piece"
        if calls > 4:  # the first call asks, three send a piece each
            raise Died
        return call(store, verb, *given, **more)

    with monkeypatch.context() as patched, suppress(Died):
        patched.setattr(RemoteStore, "_call", dying)
        made.run()
    assert (made.b.depth("Q"), _left(made)) == (0, [1, 3])
    proxy.passed["to server"] = 0
    made.run()
    assert proxy.passed["to server"] < len(LONG) - 3 * BODY_PIECE_MAX + OVERHEAD
    assert _arrived(made) == [LONG]


def test_after_a_lost_answer_the_body_is_not_sent_again(
    between: tuple[Elsewhere, Cutting], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, proxy = between
    made.put(LONG)
    answers, call = [], RemoteStore._call

    def losing(store: RemoteStore, verb: str, *given: Any, **more: Any) -> Any:
        answer = call(store, verb, *given, **more)
        if verb == "receive":
            answers.append(answer)
            if len(answers) == 1:
                raise StoreError("the answer was lost")
        return answer

    proxy.passed["to server"] = 0
    with monkeypatch.context() as patched:
        patched.setattr(RemoteStore, "_call", losing)
        made.run(wait=lambda _: False)
    assert [one.already for one in answers] == [False, True]
    assert proxy.passed["to server"] < len(LONG) + OVERHEAD
    assert _arrived(made) == [LONG]


def test_the_receiver_s_exit_sees_the_whole_body(between: tuple[Elsewhere, Cutting]) -> None:
    made, _ = between
    text = b"a" * (BODY_PIECE_MAX + 1)
    channels.alter_channel(made.b, "TO.B", message_exit=f"{EXITS}:shout")
    try:
        made.put(text, b"b", b"secret" + text)
        made.run()
    finally:
        channels.alter_channel(made.b, "TO.B", message_exit="")
    assert _arrived(made) == [text.upper(), b"B", b""]
