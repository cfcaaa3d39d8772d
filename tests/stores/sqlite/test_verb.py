"""A verb says what has happened, whatever goes wrong afterwards."""

from __future__ import annotations

import logging
from pathlib import Path

import apsw
import pytest

import inorder
from inorder.errors import MessageTooBig, StoreDamaged
from inorder.stores.engine import points
from inorder.stores.sqlite import SqliteStore, log
from inorder.testing import ManualClock


def test_a_log_that_cannot_be_shortened_fails_no_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tries = []

    def full(self: log.Log, mode: int = 0) -> int:
        if not mode:  # with the reserve it is tried once more
            tries.append(self)
        raise apsw.FullError("database or disk is full")

    with inorder.connect(tmp_path / "orders.db") as qm, monkeypatch.context() as patched:
        patched.setattr(log.Log, "_checkpoint", full)
        qm.create_queue("Q")
        with caplog.at_level(logging.ERROR, "inorder.stores"):
            for _ in range(25):
                qm.put_many("Q", [bytes(10_000)] * 100)
        assert qm.depth("Q") == 2_500
        assert 1 <= len(tries) <= 4, "not at each call"
        assert len(caplog.records) == len(tries)


def test_what_was_defined_in_a_transaction_that_failed_is_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is it taken for what another process has defined since, under the same revision."""

    def fail(point: str) -> None:
        if point == "written":
            raise ZeroDivisionError

    path = tmp_path / "orders.db"
    with inorder.connect(SqliteStore(path)) as qm, inorder.connect(SqliteStore(path)) as other:
        with monkeypatch.context() as patched:
            patched.setattr(points, "reached", fail)
            with pytest.raises(ZeroDivisionError):
                qm.create_queue("Q")
        other.create_queue("R")
        assert [attributes.name for attributes in qm.queues()] == ["R"]


def test_a_step_before_a_call_that_is_refused_may_fail_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has expired is discarded in a step that stays though the call is refused; then its own commit fails."""

    def fail(point: str) -> None:
        if point == "written":
            raise apsw.CorruptError("database disk image is malformed")

    clock = ManualClock()
    with inorder.connect(SqliteStore(tmp_path / "orders.db", clock=clock)) as qm:
        qm.create_queue("Q", max_length=10)
        qm.put("Q", b"x", expiry=1)
        clock.advance(2)
        with monkeypatch.context() as patched:
            patched.setattr(points, "reached", fail)
            with pytest.raises(StoreDamaged):
                qm.put("Q", bytes(11))
        with pytest.raises(MessageTooBig):
            qm.put("Q", bytes(11))
        assert [one.message.body for one in qm.inspect.look("Q")] == []
