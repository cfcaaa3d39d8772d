"""Messages that an operator moves or copies within a store, on every store: they neither arrive nor are delivered."""

from __future__ import annotations

import pytest

from inorder import Feedback, QueueManager, Report
from inorder.client import store_transfer

BOTH = Report.COA | Report.COD


def feedbacks(qm: QueueManager) -> list[int]:
    """What has been reported; it is taken away."""
    return [one.feedback for one in qm.get_many("R", qm.depth("R"))] if qm.depth("R") else []


def prepare(qm: QueueManager) -> None:
    for name in ("R", "TO"):
        qm.create_queue(name)
    qm.put("Q", b"1", report=BOTH, reply_to_queue="R")
    assert feedbacks(qm) == [Feedback.COA]


@pytest.mark.every_store
def test_what_is_moved_is_delivered_where_it_is_got(qm: QueueManager) -> None:
    prepare(qm)
    with store_transfer.moving(qm):
        qm.put("TO", qm.get("Q"), context="set_all")
    assert (qm.depth("Q"), qm.depth("TO"), feedbacks(qm)) == (0, 1, [])
    got = qm.get("TO")
    assert (got.body, got.report, feedbacks(qm)) == (b"1", BOTH, [Feedback.COD])


def test_a_unit_of_work_behind_a_move_reports_as_ever(qm: QueueManager) -> None:
    prepare(qm)
    with store_transfer.moving(qm):
        qm.put("TO", qm.get("Q"), context="set_all")
    with qm.unit_of_work():
        qm.put("Q", b"2", report=BOTH, reply_to_queue="R")
        qm.get("TO")
    assert sorted(feedbacks(qm)) == [Feedback.COA, Feedback.COD]


def test_what_is_moved_triggers_where_it_comes(qm: QueueManager) -> None:
    prepare(qm)
    qm.create_queue("INIT")
    qm.admin.create_process("SERVE")
    qm.alter_queue("TO", trigger_control=True, trigger_type="first", initiation_queue="INIT", process="SERVE")
    with store_transfer.moving(qm):
        qm.put("TO", qm.get("Q"), context="set_all")
    qm.close_queue("TO")
    assert qm.depth("INIT") == 1
