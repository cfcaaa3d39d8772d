"""Who has a store open: a start of the queue manager is one only if nobody has."""

from __future__ import annotations

from pathlib import Path

import inorder
from inorder.stores.sqlite import SqliteStore


def test_a_second_store_object_of_a_process_is_no_start(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with inorder.connect(SqliteStore(path)) as first:
        first.create_queue("Q")
        first.put("Q", b"in a unit", syncpoint=True)
        first.put("Q", inorder.Message(b"light", persistent=False))
        with inorder.connect(SqliteStore(path)) as second:
            assert second.depth("Q") == 2
            first.commit()
            assert [message.body for message in second.browse("Q")] == [b"in a unit", b"light"]
