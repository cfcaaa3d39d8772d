"""A verb says what has happened, whatever goes wrong afterwards."""

from __future__ import annotations

import logging
from pathlib import Path

import apsw
import pytest

import inorder
from inorder.stores.sqlite import log


def test_a_log_that_cannot_be_shortened_fails_no_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tries = []

    def full(self: log.Log) -> int:
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
