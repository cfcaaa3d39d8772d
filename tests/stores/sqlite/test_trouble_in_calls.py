"""A call that meets trouble at the worst moment leaves the process and the file in agreement."""

from __future__ import annotations

from typing import Any

import pytest

from inorder import QueueManager
from inorder.errors import StoreFull
from inorder.stores.sql.backend import SqlBackend
from inorder.stores.sqlite import SqliteStore
from inorder.stores.sqlite.checking import problems
from inorder.stores.sqlite.host import SqliteHost


@pytest.fixture
def file(qm: QueueManager) -> SqliteStore:
    store = qm._store
    assert isinstance(store, SqliteStore)
    return store


def interrupt_after_commit(file: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next commit is made, and Ctrl-C is noticed just then."""
    coordination = file.database._coordination
    announced = coordination.after_commit

    def interrupted(*_: Any, **__: Any) -> int:
        monkeypatch.setattr(coordination, "after_commit", announced)
        raise KeyboardInterrupt

    monkeypatch.setattr(coordination, "after_commit", interrupted)


def test_a_unit_whose_first_call_failed_leaves_no_number_behind(
    qm: QueueManager, file: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SqliteHost, "make_room", lambda *_, **__: None)
    connection = file.database.connection
    pages = connection.execute("PRAGMA page_count").get
    connection.execute(f"PRAGMA max_page_count = {pages}").fetchall()
    with pytest.raises(StoreFull):
        qm.put("Q", b"y" * 200_000, syncpoint=True)
    connection.execute("PRAGMA max_page_count = 1073741823").fetchall()
    first = qm.put("Q", b"z", confirm_id=7)
    qm.put("Q", b"z2", confirm_id=7)
    assert [unit.kind for unit in qm.inspect.units()] == ["confirm"]
    assert qm.confirm_put("Q", first.uid) is None
    assert problems(file.database) == []


@pytest.mark.parametrize("call", ["put", "commit"])
def test_what_was_committed_when_ctrl_c_came_is_committed(
    call: str, qm: QueueManager, file: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = qm.open("Q")
    if call == "commit":
        queue.put(b"a", syncpoint=True)
    act = {"put": lambda: queue.put(b"a", syncpoint=True), "commit": qm.commit}[call]
    interrupt_after_commit(file, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        act()
    queue.put(b"b", syncpoint=True)
    qm.commit()
    assert [message.body for message in qm.browse("Q", read_order="strict")] == [b"a", b"b"]
    assert qm.inspect.units() == []
    assert problems(file.database) == []


def test_a_commit_whose_contents_cannot_be_removed_yet_has_happened(
    qm: QueueManager, file: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    qm.put_many("Q", [b"x"] * 1500)
    qm.get_many("Q", 1500, syncpoint=True)

    def full(_: object) -> bool:
        raise StoreFull("the disk is full")

    with monkeypatch.context() as trouble:
        trouble.setattr(SqlBackend, "sweep", full)
        qm.commit()
    assert (qm.depth("Q"), qm.inspect.units()) == (0, [])
    qm.admin.discard_expired()
    assert file.database.connection.execute("SELECT count(*) FROM content").get == 0


def test_no_number_is_told_of_a_reservation_that_is_not_on_disk(qm: QueueManager, file: SqliteStore) -> None:
    qm.put("Q", b"x", persistent=False)
    # As if another process had died between the commit of a reservation and its sync.
    file.database._coordination.after_commit((), reserves=True)
    opened = [file.database.is_reservation_open]
    qm.put("Q", b"y", persistent=False)
    assert [*opened, file.database.is_reservation_open] == [True, False]
