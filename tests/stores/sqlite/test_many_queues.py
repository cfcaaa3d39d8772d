"""What the number of queues costs a call that is about one of them, counted in steps of SQLite's machine: nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from tests.stores.sqlite.test_cost import RATIO_MAX, counted

import inorder
from inorder import QueueManager
from inorder.stores.sqlite import SqliteStore
from inorder.testing import ManualClock

FEW, MANY = 5, 200

Call = Callable[[QueueManager], object]


def after_another_was_altered(call: Call) -> Call:
    def both(qm: QueueManager) -> None:
        qm.alter_queue("Q1", max_depth=7)
        call(qm)

    return both


CALLS: dict[str, Call] = {
    "create": lambda qm: qm.create_queue("NEW"),
    "alter": lambda qm: qm.alter_queue("Q1", description="another"),
    "delete": lambda qm: qm.delete_queue("Q1"),
    "an open after another queue was altered": after_another_was_altered(lambda qm: qm.open("Q2", output=True)),
    "one queue at one moment": lambda qm: qm.inspect.overview("Q1"),
    "stop": lambda qm: qm.admin.stop(),
}


def steps(path: Path, queues: int, call: Call) -> int:
    store = SqliteStore(path, clock=ManualClock())
    with inorder.connect(store) as qm:
        qm.create_queue("Q")
        for number in range(queues):
            qm.create_queue(f"Q{number}")
        qm.put("Q", b"1")
        with counted(store) as found:
            call(qm)
    store.close_store()
    return sum(found)


@pytest.mark.parametrize("name", CALLS)
def test_a_call_costs_the_same_among_many_queues(name: str, tmp_path: Path) -> None:
    few = steps(tmp_path / "few.db", FEW, CALLS[name])
    many = steps(tmp_path / "many.db", MANY, CALLS[name])
    assert many <= RATIO_MAX * few, f"{few} steps among {FEW} queues, {many} among {MANY}"


def test_a_store_of_many_queues_is_opened_and_closed_with_as_many_statements(tmp_path: Path) -> None:
    def statements(queues: int) -> int:
        path = tmp_path / f"{queues}.db"
        with inorder.connect(path) as qm:
            for number in range(queues):
                qm.create_queue(f"Q{number}")
            qm.put("Q0", b"lost with the last process", persistent=False)
        found: list[str] = []

        def note(_: object, text: str, __: object) -> bool:
            found.append(text)
            return True

        apsw.connection_hooks.append(lambda made: made.set_exec_trace(note))
        try:
            with inorder.connect(path) as qm:
                assert qm.depth("Q0") == 0
        finally:
            apsw.connection_hooks.pop()
        return len(found)

    assert statements(MANY) == statements(FEW)


def test_the_overview_asks_nothing_of_empty_queues(tmp_path: Path) -> None:
    def statements(queues: int) -> int:
        store = SqliteStore(tmp_path / f"{queues}.db", clock=ManualClock())
        with inorder.connect(store) as qm:
            for number in range(queues):
                qm.create_queue(f"Q{number}")
            qm.put("Q0", b"1")
            with counted(store) as found:
                assert len(qm.inspect.overview()) == queues
        store.close_store()
        return len(found)

    assert statements(MANY) == statements(FEW)
