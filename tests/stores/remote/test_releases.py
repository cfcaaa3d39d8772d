"""Releases that talk to each other (W-2): this release understands the recorded calls and answers of each release.

`python -m tests.stores.remote.test_releases` records the session of the present release. A release that changes the
messages between client and server keeps the recordings of earlier releases.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.support import put_group

import inorder
from inorder import Message, QueueManager
from inorder.stores.remote.frames import FrameKind
from inorder.stores.remote.link import RemoteLink
from inorder.stores.remote.wire import decode_answer, decode_call, decode_error
from inorder.support.release import __version__
from inorder.testing import ManualClock
from inorder.testing.stores import make_store

FOLDER = Path(__file__).parent / "sessions"
RELEASES = sorted(one.stem for one in FOLDER.glob("*.json"))
Exchange = tuple[bytes, int, bytes]
"""A call, and the kind and the payload of its answer."""


def session(qm: QueueManager) -> None:
    qm.create_queue("Q", order="put", description="each kind of call")
    qm.create_queue("COPY", type="alias", base_queue="Q")
    qm.put("Q", b"a", priority=3)
    qm.put("Q", Message(b"b", correlation_id=b"c" * 24, properties={"n": 1, "t": "x", "f": 1.5, "b": True}))
    qm.put_many("COPY", [b"d", b"e"])
    with qm.unit_of_work():
        qm.get("Q")
        qm.put("Q", b"f")
    put_group(qm, b"1", b"2")
    list(qm.browse("Q"))
    qm.get("Q", selector="n = 1")
    with pytest.raises(inorder.NoMessageAvailable):
        qm.get("Q", match=inorder.Match(correlation_id=b"z" * 24))
    with pytest.raises(inorder.UnknownQueue):
        qm.put("NONE", b"")
    qm.put("Q", b"once", deduplicate="key")
    qm.put("Q", b"once", deduplicate="key")
    qm.inspect.overview()
    qm.alter_queue("Q", max_depth=10)
    qm.queues()


def recorded(monkeypatch: pytest.MonkeyPatch) -> list[Exchange]:
    exchanges = list[Exchange]()
    call = RemoteLink.call

    def heard(link: RemoteLink, payload: bytes, *given: Any, **more: Any) -> tuple[int, bytes]:
        kind, answer = call(link, payload, *given, **more)
        exchanges.append((payload, kind, answer))
        return kind, answer

    with monkeypatch.context() as patched:
        patched.setattr(RemoteLink, "call", heard)
        with inorder.connect(make_store("remote", ManualClock()), program="test") as qm:
            session(qm)
    return exchanges


def load(release: str) -> list[Exchange]:
    kept = json.loads((FOLDER / f"{release}.json").read_text(encoding="utf-8"))
    return [(bytes.fromhex(call), kind, bytes.fromhex(answer)) for call, kind, answer in kept]


def answered(verb: str, kind: int, answer: bytes) -> Any:
    if kind == FrameKind.ERROR:
        error = decode_error(answer)
        return type(error), error.reason, sorted(error.data)
    return decode_answer(verb, answer)


@pytest.mark.parametrize("release", RELEASES)
def test_this_release_answers_the_recorded_calls_of_each_release(release: str) -> None:
    store: Any = make_store("remote", ManualClock())
    other = store.again()  # a new connection, as a program makes it
    link = other._link
    try:
        verbs = set()
        for call, kind, answer in load(release):
            verb = decode_call(call)[0]
            verbs.add(verb)
            found = link.call(call)
            assert answered(verb, *found) == answered(verb, kind, answer), verb
        assert verbs >= {"open", "put", "get", "settle", "end_group", "queues", "close"}
    finally:
        other.close_store()
        store.close_store()
        store.inner.close_store()


def test_this_release_has_a_recording() -> None:
    assert __version__ in RELEASES


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    found = [(call.hex(), kind, answer.hex()) for call, kind, answer in recorded(pytest.MonkeyPatch())]
    (FOLDER / f"{__version__}.json").write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")
