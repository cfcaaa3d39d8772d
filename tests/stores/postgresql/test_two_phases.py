"""Units of work over three queue managers in databases (K-2)."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from tests.helpers import spanning
from tests.helpers.support import Make, until
from tests.stores.postgresql.server import sessions as sessions_of

import inorder
from inorder import InorderError
from inorder.client import two_phases

POINTS = tuple(two_phases.POINTS)


@pytest.fixture
def stores(postgresql: str, make: Make) -> list[str]:
    """LONDON, and both owners."""
    made = [make("postgresql") for _ in range(3)]
    spanning.create(made)
    return made


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("place", ["LONDON", "PARIS"])
def test_a_session_that_the_server_ends_leaves_the_unit_whole_or_nowhere(
    stores: list[str], monkeypatch: pytest.MonkeyPatch, point: str, place: str
) -> None:
    program = inorder.connect(stores[0], program="unit")
    spanning.put(program, b"0")
    owners: Any = program._session.owners.values()
    sessions = {"LONDON": program._session, **{one.of.manager: one for one in owners}}
    store: Any = sessions[place].store
    pid = store.host._link.server_pid

    def end() -> None:
        assert sessions_of(stores[0], "unit", "pg_terminate_backend(pid)", f"pid = {pid}") == 1
        until(lambda: not sessions_of(stores[0], "unit", where=f"pid = {pid}"), "the server has ended the session")

    spanning.act_at(monkeypatch, point, end)
    is_committed = False
    with contextlib.suppress(InorderError):
        spanning.put(program, b"1")
        is_committed = True
    program.internals.abandon()
    here, *owners = spanning.settled(stores[0])
    assert owners == [here, here]
    assert not is_committed or here == [b"0", b"1"]
