"""What the server refuses, in our words."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from inorder import QueueManager
from inorder.errors import ArgumentError

CALLS: dict[str, Callable[[QueueManager], object]] = {
    "prepare": lambda qm: qm.prepare("a\0b"),
    "settle": lambda qm: qm.settle("a\0b", "commit"),
    "end_lease": lambda qm: qm.admin.end_lease("a\0b"),
    "undo_staging": lambda qm: qm.bulk.undo_staging(["a\0b"]),
    "deduplicate": lambda qm: qm.put("Q", b"2", deduplicate="a\0b"),
    "user": lambda qm: qm.accounts.user("a\0b"),
    "process": lambda qm: qm.admin.process("a\0b"),
    "program": lambda qm: qm.connect(program="a\0b").put("Q", b"2"),
}


def test_a_text_that_the_server_cannot_keep_is_the_callers_mistake(qm: QueueManager) -> None:
    for call in CALLS.values():
        with qm.unit_of_work():
            qm.put("Q", b"1")
            with pytest.raises(ArgumentError, match="NUL"):
                call(qm)
    assert [one.body for one in qm.browse("Q")] == [b"1"] * len(CALLS)
    assert qm.admin.check() == []
