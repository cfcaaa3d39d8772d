"""Units of work over three queue managers in databases (K-2)."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.helpers import spanning
from tests.helpers.support import until
from tests.stores.postgresql.server import sessions as sessions_of

import inorder
from inorder import InorderError
from inorder.client import two_phases
from inorder.stores.postgresql import drop, parse

POINTS = tuple(two_phases.POINTS)


@pytest.fixture
def stores(postgresql: str) -> Iterator[list[str]]:
    """LONDON, and both owners."""
    made = [f"{postgresql}?schema=inorder_{uuid.uuid4().hex}" for _ in range(3)]
    spanning.create(made)
    yield made
    for one in made:
        drop(parse(one))


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[[], object]], None]:
    """Acts once when a commit reaches a point."""

    def act_at(point: str, act: Callable[[], object]) -> None:
        left = [point]

        def reached(name: str) -> None:
            if left == [name]:
                left.clear()
                act()

        monkeypatch.setattr(two_phases, "reached", reached)

    return act_at


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("place", ["LONDON", "PARIS"])
def test_a_session_that_the_server_ends_leaves_the_unit_whole_or_nowhere(
    stores: list[str], at: Callable[[str, Callable[[], object]], None], point: str, place: str
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

    at(point, end)
    is_committed = False
    with contextlib.suppress(InorderError):
        spanning.put(program, b"1")
        is_committed = True
    program.internals.abandon()
    here, *owners = spanning.settled(stores[0])
    assert owners == [here, here]
    assert not is_committed or here == [b"0", b"1"]
