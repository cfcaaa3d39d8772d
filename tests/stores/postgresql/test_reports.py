"""Messages that a put makes beside its own: their numbers follow each other, whoever has put meanwhile."""

from __future__ import annotations

import pytest

from inorder import Message, QueueManager
from inorder.model.kinds import Report


def asking(count: int, reply_to: str) -> list[Message]:
    return [Message(b"x", report=Report.COA, reply_to_queue=reply_to) for _ in range(count)]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_reports_on_several_messages_of_one_put_leave_their_queue_in_order(qm: QueueManager, count: int) -> None:
    qm.create_queue("REPLIES")
    for _ in range(3):
        sent = qm.put_many("Q", asking(count, "REPLIES"))
        qm.put("REPLIES", b"between")
        got = [qm.get("REPLIES") for _ in range(count + 1)]
        assert [one.correlation_id for one in got[:-1]] == [one.message_id for one in sent]
        assert got[-1].body == b"between"
    assert list(qm.admin.check()) == []


def test_reports_on_a_put_go_to_the_queue_that_it_is_on(qm: QueueManager) -> None:
    for _ in range(4):
        qm.put("Q", asking(1, "Q")[0])
    assert qm.inspect.status("Q").current_depth == 8
    assert list(qm.admin.check()) == []
