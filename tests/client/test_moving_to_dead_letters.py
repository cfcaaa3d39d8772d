"""A message that was got becomes a dead letter, in the unit of work of its get: on every store."""

from __future__ import annotations

from typing import Any

import pytest

from inorder import Got, QueueManager, Reason, Report
from inorder.errors import ArgumentError, Undeliverable, UnknownQueue

from ..helpers.working import dead_letter_queue


def got(qm: QueueManager, queue: str = "Q", **fields: Any) -> Got:
    """A message of a queue, in the unit of work that is open."""
    qm.put(queue, b"1", syncpoint=False, **fields)
    return qm.get(queue)


@pytest.mark.every_store
def test_it_leaves_its_queue_with_the_reason_or_stays(qm: QueueManager) -> None:
    dead_letter_queue(qm)
    for commits in (False, True):
        with qm.unit_of_work() as unit:
            message = qm.get("Q") if commits else got(qm, message_id=b"m", priority=3)
            assert qm.dead.add(message, queue="Q", reason=70_000, error="torn", attempts=2) == "buried"
            if not commits:
                unit.back_out()
        assert (qm.depth("Q"), qm.depth("DEAD")) == ((0, 1) if commits else (1, 0))
    (letter,) = qm.dead.letters()
    assert letter.why == (70_000, "Q", "", qm.internals.clock.now(), "test", 2, "torn")
    assert (letter.message.message_id[:1], letter.message.priority) == (b"m", 3)


def test_its_queue_may_say_where_it_goes(qm: QueueManager) -> None:
    qm.create_queue("ASIDE")
    qm.create_queue("W", backout_requeue_queue="ASIDE")
    qm.create_queue("ALIAS", type="alias", base_queue="W")
    with qm.unit_of_work():
        qm.dead.add(got(qm, "ALIAS"), queue="ALIAS")
    (letter,) = qm.dead.letters(dead_letter_queue="ASIDE")
    assert (letter.why.reason, letter.why.queue) == (Reason.BACKOUT_THRESHOLD_REACHED, "ALIAS")


def test_the_report_has_the_data_that_is_asked_for_and_goes_with_the_unit(qm: QueueManager) -> None:
    """Where it cannot be put it is a dead letter itself, and the message becomes one all the same."""
    dead_letter_queue(qm)
    qm.create_queue("REPORTS")
    asks: Any = {"report": Report.EXCEPTION_WITH_FULL_DATA, "reply_to_queue": "REPORTS"}
    for commits in (False, True):
        with qm.unit_of_work() as unit:
            qm.dead.add(qm.get("Q") if commits else got(qm, **asks), queue="Q")
            assert not list(qm.browse("REPORTS"))
            if not commits:
                unit.back_out()
    (report,) = qm.browse("REPORTS")
    assert (report.body, report.put_application_type) == (b"1", 7)
    with qm.unit_of_work():
        qm.dead.add(got(qm, **asks | {"reply_to_queue": "NONE"}), queue="Q")
    assert [one.why.queue for one in qm.dead.letters()] == ["Q", "NONE", "Q"]


def test_where_the_order_is_required_nothing_is_diverted(qm: QueueManager) -> None:
    dead_letter_queue(qm)
    qm.create_queue("S", read_order="required")
    with pytest.raises(Undeliverable, match="requires strict order"), qm.unit_of_work():
        qm.dead.add(got(qm, "S"), queue="S")
    assert (qm.depth("S"), qm.depth("DEAD")) == (1, 0)


@pytest.mark.parametrize(
    ("given", "argument"),
    [
        ({"message": b"1"}, "message"),
        ({"reason": "2033"}, "reason"),
        ({"error": 3}, "error"),
        ({"error": "\ud800"}, "error"),
        ({"attempts": -1}, "attempts"),
    ],
)
def test_what_it_cannot_be_is_refused(qm: QueueManager, given: dict[str, Any], argument: str) -> None:
    dead_letter_queue(qm)
    with qm.unit_of_work():
        message = got(qm)
        with pytest.raises(ArgumentError, match=argument):
            qm.dead.add(**{"message": message, "queue": "Q", **given})
        with pytest.raises(UnknownQueue):
            qm.dead.add(message, queue="NOWHERE")
    assert qm.depth("DEAD") == 0
