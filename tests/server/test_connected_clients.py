"""Who of those that listen may go on: one look for any number of streams, and nothing left when they have gone."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

import pytest

from inorder.errors import StoreError
from inorder.server import connected_clients
from inorder.server.connected_clients import ConnectedClients
from inorder.server.identity import Identity

ANNA = Identity(name="anna", roles=frozenset({"reader"}), session="1", token="t1")
turns = asyncio.sleep


class Looks:
    """The answers to looks, which come when the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[Identity] = []
        self.answers: dict[str, Identity | Exception | None] = {}
        self._due = asyncio.Event()
        monkeypatch.setattr(connected_clients, "pause", self._pause)

    async def _pause(self, seconds: float) -> None:
        assert seconds == connected_clients.EVERY_SECONDS
        await self._due.wait()

    async def again(self, identity: Identity) -> Identity | None:
        self.asked.append(identity)
        found = self.answers.get(identity.token, identity)
        if isinstance(found, Exception):
            raise found
        return found

    async def look(self) -> None:
        """Each watch looks once."""
        await _settled()
        due, self._due = self._due, asyncio.Event()
        due.set()
        await _settled()


async def _settled() -> None:
    for _ in range(10):
        await turns(0)


def is_reader(identity: Identity) -> bool:
    return "reader" in identity.roles


async def test_streams_of_one_are_looked_up_once_and_all_end(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Looks(monkeypatch)
    watching = ConnectedClients(looks.again)
    with ExitStack() as held:
        outs = [held.enter_context(watching.watched(ANNA)) for _ in range(100)]
        await looks.look()
        assert looks.asked == [ANNA]
        assert not any(one.is_set() for one in outs)
        looks.answers["t1"] = None
        await looks.look()
        assert len(looks.asked) == 2
        assert all(one.is_set() for one in outs)


async def test_who_came_in_by_something_else_is_looked_up_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Looks(monkeypatch)
    watching = ConnectedClients(looks.again)
    other = Identity(name="anna", roles=ANNA.roles, session="1", token="t2")
    with watching.watched(ANNA) as one, watching.watched(other) as two:
        looks.answers["t2"] = None
        await looks.look()
        assert (one.is_set(), two.is_set()) == (False, True)


async def test_a_lost_authority_ends_the_streams_that_need_it(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Looks(monkeypatch)
    watching = ConnectedClients(looks.again)
    with watching.watched(ANNA, is_reader) as one, watching.watched(ANNA) as two:
        looks.answers["t1"] = Identity(name="anna", roles=frozenset({"operator"}), session="1", token="t1")
        await looks.look()
        assert (one.is_set(), two.is_set()) == (True, False)


@pytest.mark.parametrize("error", [StoreError, OSError, KeyError])
async def test_a_store_that_cannot_be_asked_ends_nothing_and_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: type[Exception]
) -> None:
    looks = Looks(monkeypatch)
    watching = ConnectedClients(looks.again)
    with watching.watched(ANNA) as out:
        looks.answers["t1"] = error("the store is busy")
        await looks.look()
        assert not out.is_set()
        assert "the store is busy" in caplog.text
        looks.answers["t1"] = None
        await looks.look()
        assert out.is_set()


async def test_a_stream_ends_with_its_own_session(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, now = Looks(monkeypatch), [100.0]
    watching = ConnectedClients(looks.again, lambda: now[0])
    with watching.watched(ANNA, until=200.0) as one, watching.watched(ANNA, until=300.0) as two:
        await looks.look()
        assert (one.is_set(), two.is_set()) == (False, False)
        now[0] = 200.0
        await looks.look()
        assert (one.is_set(), two.is_set()) == (True, False)
        now[0] = 300.0
        looks.answers["t1"] = StoreError("the store is busy")
        await looks.look()
        assert two.is_set(), "to know the time needs no store"


async def test_nothing_is_left_when_the_last_stream_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Looks(monkeypatch)
    watching = ConnectedClients(looks.again)
    before = asyncio.all_tasks()
    with watching.watched(ANNA):
        with watching.watched(ANNA):
            await looks.look()
        await looks.look()
        assert len(looks.asked) == 2, "one is still there"
    await looks.look()
    assert len(looks.asked) == 2
    assert asyncio.all_tasks() == before
