"""A queue manager in PostgreSQL is renamed while nobody is connected."""

from __future__ import annotations

import pytest

import inorder


def test_it_is_renamed_while_nobody_is_connected_and_ids_stay(url: str) -> None:
    with pytest.raises(inorder.StoreError, match="there is no store at"):
        inorder.rename(url, "LYON")
    with inorder.connect(url, program="worker.py", name="PARIS") as qm:
        qm.create_queue("Q")
        before = qm.put("Q", b"before")
        with pytest.raises(inorder.errors.ObjectInUse, match=r"worker\.py"):
            inorder.rename(url, "LYON")
    assert inorder.rename(url, "LYON") == "PARIS"
    with inorder.connect(url) as qm:
        assert qm.admin.manager_attributes().name == "LYON"
        after = qm.put("Q", b"after")
        found = list(qm.browse("Q"))
        assert [(one.message_id, one.uid) for one in found] == [(one.message_id, one.uid) for one in (before, after)]
        assert {one.uid and one.uid.origin for one in found} == {"PARIS"}
