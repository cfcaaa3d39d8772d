"""A queue manager that the verbs find, and a program that is connected to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.mqi.program import OK, Program

from inorder import QueueManager, connect


@pytest.fixture
def mq_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[QueueManager]:
    """A queue manager QM1 in a file, which is that of every name."""
    path = str(tmp_path / "mq.db")
    with connect(path, name="QM1") as qm:
        qm.create_queue("Q")
        monkeypatch.setenv("INORDER_STORE", path)
        monkeypatch.setenv("INORDER_MQI", str(tmp_path))
        monkeypatch.delenv("MQSERVER", raising=False)
        yield qm


@pytest.fixture
def program(mq_store: QueueManager) -> Iterator[Program]:
    one = Program()
    assert one.connected == [0, 0]
    yield one
    one.disconnect()


__all__ = ["OK"]
