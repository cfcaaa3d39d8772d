"""Messages that no function's match takes."""

from __future__ import annotations

import pytest
from tests.helpers.working import Heard, at_work

from inorder import Match, Message, QueueManager, Reason
from inorder.errors import StoreFull
from inorder.testing import ManualClock
from inorder.work import Outcome, Tasks
from inorder.work.leftovers import Leftovers


def registered(tasks: Tasks) -> Tasks:
    for colour in ("red", "blue"):

        @tasks.task("Q", name=colour, match=Match(selector=f"colour = '{colour}'"))
        def see(message: Message) -> None: ...

    return tasks


class Reporting:
    """A worker that does nothing but report."""

    def __init__(self, qm: QueueManager) -> None:
        self.qm, self.heard = qm, Heard()

    def report(self, event: object, *, is_repeated: bool = False) -> None:
        self.heard(event)  # type: ignore[arg-type]

    ends = None


def test_a_worker_reports_messages_that_match_no_function_and_leaves_them(qm: QueueManager) -> None:
    for colour in ("red", "green", "blue"):
        qm.put("Q", colour.encode(), properties={"colour": colour})
    qm.put("Q", b"plain")
    with at_work(qm, registered(Tasks())) as (_, heard):
        heard.attempts(4)
    unknown = [one.ended.message_id for one in heard.told if one.ended and one.ended.outcome is Outcome.UNKNOWN]
    assert unknown == [one.message_id for one in qm.browse("Q")]
    assert [one.body for one in qm.browse("Q")] == [b"green", b"plain"]


@pytest.mark.every_store
def test_an_available_unmatched_message_is_reported_once_and_becomes_dead_if_asked(
    qm: QueueManager, clock: ManualClock
) -> None:
    for unknown, outcome in (("retry", Outcome.UNKNOWN), ("dead", Outcome.DEAD)):
        worker = Reporting(qm)
        tasks = registered(Tasks(unknown=unknown))  # type: ignore[arg-type]
        leftovers = Leftovers(worker, tasks)  # type: ignore[arg-type]
        qm.put("Q", b"1", properties={"colour": "green"})
        qm.put("Q", b"2", properties={"colour": "red"})
        qm.put("Q", b"3", delay=60)
        with qm.connect() as other, other.unit_of_work() as unit:
            other.put("Q", b"undone")
            leftovers.look(qm)
            unit.back_out()
        for _ in range(2):
            leftovers.look(qm)
            leftovers.look(qm)
            clock.advance(61)
        qm.put("Q", b"4")
        leftovers.look(qm)
        assert worker.heard.outcomes == [outcome] * 3
        left = [one.body for one in qm.browse("Q")]
        assert left == ([b"1", b"2", b"3", b"4"] if unknown == "retry" else [b"2"])
        qm.admin.clear_queue("Q")
    assert {letter.why.reason for letter in qm.dead.letters()} == {Reason.TASK_UNKNOWN}


def test_after_an_error_no_unmatched_message_is_forgotten(qm: QueueManager, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Reporting(qm)
    leftovers = Leftovers(worker, registered(Tasks(unknown="dead")))  # type: ignore[arg-type]
    for body in (b"1", b"2"):
        qm.put("Q", body)

    def fails(*given: object, **named: object) -> None:
        raise StoreFull("the disk is full")

    with monkeypatch.context() as full:
        full.setattr(type(qm.dead), "add", fails)
        with pytest.raises(StoreFull):
            leftovers.look(qm)
    leftovers.look(qm)
    assert (worker.heard.outcomes, qm.depth("Q")) == ([Outcome.DEAD] * 2, 0)


def test_unmatched_messages_of_a_queue_with_required_order_are_only_reported(qm: QueueManager) -> None:
    qm.alter_queue("Q", read_order="required")
    worker, tasks = Reporting(qm), registered(Tasks(unknown="dead"))
    qm.put("Q", b"1")
    Leftovers(worker, tasks).look(qm)  # type: ignore[arg-type]
    assert (worker.heard.outcomes, qm.depth("Q")) == ([Outcome.UNKNOWN], 1)


def test_a_queue_with_a_function_for_every_message_has_no_unmatched_messages(qm: QueueManager) -> None:
    tasks = Tasks()

    @tasks.task("Q")
    def see(message: Message) -> None: ...

    assert not Leftovers(Reporting(qm), tasks)  # type: ignore[arg-type]
    assert Leftovers(Reporting(qm), registered(Tasks()))  # type: ignore[arg-type]
