"""DISPLAY QSTATUS and CHSTATUS of ages: how long the oldest message has been there."""

from __future__ import annotations

from inorder import QueueManager
from inorder.mq import channels
from inorder.mq.mqsc import run_script
from inorder.testing import ManualClock


def ages(qm: QueueManager, command: str, word: str) -> list[object]:
    (answer,) = run_script([command], qm)
    return [row[word] for row in answer.rows]


def test_the_age_is_that_of_the_oldest_message_and_0_of_none(qm: QueueManager, clock: ManualClock) -> None:
    qm.create_queue("OLD")
    qm.create_queue("NEW")
    qm.create_queue("NONE")
    qm.put("OLD", b"1", priority=1)
    clock.advance(60)
    qm.put("OLD", b"2", priority=9)
    qm.put("NEW", b"3")
    clock.advance(5.9)
    assert ages(qm, "DIS QSTATUS(*) MSGAGE WHERE(QUEUE NL 'S*')", "MSGAGE") == [5, 0, 65, 0]
    assert ages(qm, "DIS QS(*) WHERE(MSGAGE GE 5)", "QUEUE") == ["NEW", "OLD"]
    qm.get("OLD")
    qm.get("OLD")
    assert ages(qm, "DIS QS(OLD)", "MSGAGE") == [0]


def test_a_channel_shows_how_long_the_oldest_message_waits(qm: QueueManager, clock: ManualClock) -> None:
    qm.create_queue("B", usage="transmission")
    channels.define_channel(qm, "TO.B", transmission_queue="B", connection="b.db")
    assert ages(qm, "DIS CHS(TO.B)", "XQMSGAGE") == [0]
    qm.put("Q", b"1", manager="B")
    clock.advance(90)
    (now,) = channels.status(qm)
    assert (now.waiting, now.oldest_put_at) == (1, clock.now() - 90)
    assert ages(qm, "DIS CHS(TO.B)", "XQMSGAGE") == [90]
    assert {one.name: one.channels for one in qm.inspect.overview() if one.channels} == {"B": (now,)}
