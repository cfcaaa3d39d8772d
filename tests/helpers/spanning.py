"""Units of work over three queue managers that are killed, and the bodies that they leave (K-2).

A unit puts one body at each of three places: here, and at two owners. If units are atomic, all places have the same
bodies.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest.mock import patch

import pytest

import inorder
from inorder import ConnectionBroken, QueueManager, StoreError
from inorder.client import two_phases
from inorder.mq import channels

OWNERS = ("PARIS", "ROME")
PLACES = ("L", "Q.PARIS", "Q.ROME")


def act_at(monkeypatch: pytest.MonkeyPatch, point: str, act: Callable[[], object]) -> None:
    """Acts once, when a commit of this process first reaches a point."""
    left = [point]

    def reached(name: str) -> None:
        assert name in two_phases.POINTS
        if left == [name]:
            left.clear()
            act()

    monkeypatch.setattr(two_phases, "reached", reached)


def paths(folder: Path) -> list[str]:
    """The store files of LONDON and the owners."""
    return [str(folder / f"{name.lower()}.db") for name in ("LONDON", *OWNERS)]


def create(stores: Sequence[str], locations: Sequence[str] = ()) -> None:
    """Makes LONDON and the owners at these paths or URLs.

    Args:
        locations: of the owners, as LONDON reaches them; default: where they are made.
    """
    home, *owners = stores
    for name, one in zip(OWNERS, owners, strict=True):
        with inorder.connect(one, name=name) as owner:
            owner.create_queue("Q")
    with inorder.connect(home, name="LONDON") as london:
        london.create_queue("L")
        for name, location in zip(OWNERS, locations or owners, strict=True):
            channels.define_connection(london, name, location)
            london.create_queue(
                f"Q.{name}", type="remote", mode="synchronous", remote_queue="Q", remote_manager=name, connection=name
            )


def work(home: str, first: str, units: str = "1", acknowledged: str = "") -> None:
    """Commits units, whose bodies are numbers from `first`.

    Args:
        home: the store of LONDON.
        acknowledged: the file that each body is appended to after its commit.
    """
    with inorder.connect(home) as london:
        for number in range(int(first), int(first) + int(units)):
            body = b"%d" % number
            put(london, body)
            if acknowledged:
                note(acknowledged, body)


def put(london: QueueManager, body: bytes) -> None:
    """Puts at each place, in one unit of work."""
    with london.unit_of_work():
        for place in PLACES:
            london.put(place, body)


def note(file: str, body: bytes) -> None:
    number = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(number, body + b"\n")
    finally:
        os.close(number)


def settled(home: str) -> list[list[bytes]]:
    """Settles the units in doubt, and returns the bodies at each place.

    Tries again while a server is still starting. Raises: AssertionError, a unit is still in doubt.
    """
    for is_last in (False, False, False, True):
        try:
            return _settled(home)
        except (AssertionError, StoreError, ConnectionBroken):
            if is_last:
                raise
    raise AssertionError("the last attempt returns or raises")


def _settled(home: str) -> list[list[bytes]]:
    # Nothing that a killed process prepared is still on its way.
    with patch.object(two_phases, "IN_FLIGHT_SECONDS", 0.0), inorder.connect(home) as london:
        errors = london.admin.settle_in_doubt()
        assert errors == [], errors
        assert _in_doubt(london) == []
        found = [_bodies(london, "L")]
        for manager in OWNERS:
            with inorder.connect(channels.connection(london, manager).location) as owner:
                assert _in_doubt(owner) == []
                found.append(_bodies(owner, "Q"))
    return found


def _in_doubt(qm: QueueManager) -> list[str]:
    return [f"{one.kind} {one.name} {one.outcome}" for one in qm.inspect.units()]


def _bodies(qm: QueueManager, queue: str) -> list[bytes]:
    return sorted(message.body for message in qm.browse(queue))
