"""Dead letters: when a message becomes one, and how it is replayed (C-5, B-24, R6.8); reports of programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.helpers.support import bodies

import inorder
from inorder import QueueManager, Reason, Report
from inorder.errors import Undeliverable
from inorder.model.message import Message
from inorder.stores.engine import dead_letters
from inorder.stores.engine.operation import WRITING, Operation, run
from inorder.stores.engine.store import QueueStore
from inorder.testing.stores import RestartableStore


@pytest.fixture
def qm(store: RestartableStore) -> Iterator[QueueManager]:
    with inorder.connect(store) as made:
        for name in ("ORDERS", "DEAD", "REPORTS"):
            made.create_queue(name)
        made.admin.alter_manager(dead_letter_queue="DEAD")
        yield made


def bury(qm: QueueManager, message: Message, target: str, reason: Reason = Reason.Q_FULL, **more: object) -> str:
    """Moves a message to the dead letters within an operation, as code that delivers messages does."""

    def act(_: QueueStore, verb: Operation) -> str:
        return dead_letters.move_to_dead_letters(verb, message, reason=reason, target=target, **more)  # type: ignore[arg-type]

    store = qm._session.services.store
    assert isinstance(store, QueueStore)
    return run(store, WRITING, act)


def set_aside(qm: QueueManager, *bodies: bytes, target: str = "ORDERS", **fields: object) -> None:
    for body in bodies:
        qm.put("REPORTS", body, **fields)  # type: ignore[arg-type]
        assert bury(qm, qm.get("REPORTS"), target, attempts=3, error="no room", program="mover") == "buried"


def test_r6_8_a_dead_letter_is_the_message_with_the_reason(qm: QueueManager) -> None:
    put = qm.put("REPORTS", b"m1", priority=7, correlation_id=b"c", properties={"colour": "red"}, expiry=99.0)
    got = qm.get("REPORTS")
    assert bury(qm, got, "ORDERS", attempts=3, error="no room", program="mover") == "buried"
    (letter,) = qm.dead.letters()
    assert letter.why._replace(time=0.0) == (2053, "ORDERS", "", 0.0, "mover", 3, "no room")
    message = letter.message
    assert (message.message_id, message.uid, message.priority) == (put.message_id, put.uid, 7)
    assert (message.properties["colour"], message.properties["dlh.reason"]) == ("red", 2053)
    assert message.put_at == got.put_at
    assert 0 < message.expiry <= 99.0


def test_a_replayed_letter_has_the_fields_of_the_original_message(qm: QueueManager) -> None:
    set_aside(qm, b"m1", properties={"colour": "red"}, message_id=b"id", group_id=b"G", flags=8, sequence_number=3)
    assert qm.dead.replay() == (1, [])
    message = qm.get("ORDERS")
    assert dict(message.properties) == {"colour": "red"}
    found = (message.body, message.message_id[:2], message.group_id[:1], message.sequence_number)
    assert found == (b"m1", b"id", b"G", 3)
    assert qm.depth("DEAD") == 0


def test_a_letter_that_cannot_be_replayed_stays_and_the_others_are_replayed(qm: QueueManager) -> None:
    set_aside(qm, b"m1", target="GONE")
    set_aside(qm, b"m2", b"m3")
    replayed = qm.dead.replay()
    assert replayed.messages == 2
    assert [(one.letter.message.body, one.error.reason) for one in replayed.stayed] == [(b"m1", 2085)]
    assert (bodies(qm, "ORDERS"), bodies(qm, "DEAD")) == ([b"m2", b"m3"], [b"m1"])
    assert qm.dead.replay(to="REPORTS").messages == 1
    assert bodies(qm, "REPORTS") == [b"m1"]


@pytest.mark.every_store
def test_letters_are_chosen_by_reason_queue_and_selector(qm: QueueManager) -> None:
    set_aside(qm, b"m1", target="GONE")
    set_aside(qm, b"m2", b"m3", properties={"size": 3})
    seen: list[int] = []
    assert [letter.message.body for letter in qm.dead.letters(queue="GONE")] == [b"m1"]
    assert not list(qm.dead.letters(reason=2085))
    chosen = inorder.Match(selector="size > 2 AND dlh.attempts = 3")
    assert qm.dead.replay(match=chosen, most=1, progress=seen.append) == (1, [])
    assert seen == [1]
    assert qm.dead.discard(match=chosen) == 1
    assert bodies(qm, "DEAD") == [b"m1"]


def test_b_24_a_message_for_a_queue_with_required_order_does_not_become_a_dead_letter(qm: QueueManager) -> None:
    qm.create_queue("LEDGER", read_order="required")
    qm.put("ORDERS", b"m1", report=Report.DISCARD_MESSAGE)
    with pytest.raises(Undeliverable) as raised:
        bury(qm, qm.get("ORDERS"), "LEDGER")
    assert (raised.value.reason, raised.value.queue) == (2053, "LEDGER")
    assert qm.depth("DEAD") == 0


@pytest.mark.parametrize(("change", "why"), [("", "no dead-letter queue"), ("NONE", "2085"), ("SMALL", "2030")])
def test_c_5_delivery_stops_if_the_dead_letter_queue_cannot_take_the_message(
    qm: QueueManager, change: str, why: str
) -> None:
    qm.create_queue("SMALL", max_length=1)
    qm.admin.alter_manager(dead_letter_queue=change)
    qm.put("ORDERS", b"m1")
    with pytest.raises(Undeliverable, match=why):
        bury(qm, qm.get("ORDERS"), "GONE", Reason.UNKNOWN_OBJECT_NAME)


@pytest.mark.parametrize("discards", [False, True])
def test_r6_7_an_exception_report_has_the_reason_whether_the_message_is_kept_or_discarded(
    qm: QueueManager, discards: bool
) -> None:
    options = Report.EXCEPTION_WITH_FULL_DATA | (Report.DISCARD_MESSAGE if discards else 0)
    put = qm.put("ORDERS", b"m1", report=options, reply_to_queue="REPORTS")
    assert bury(qm, qm.get("ORDERS"), "GONE", Reason.UNKNOWN_OBJECT_NAME) == ("discarded" if discards else "buried")
    report = qm.get("REPORTS")
    assert (report.feedback, report.body, report.correlation_id) == (2085, b"m1", put.message_id)
    assert qm.depth("DEAD") == (not discards)


def test_r6_7_a_message_that_cannot_become_a_dead_letter_is_not_reported(qm: QueueManager) -> None:
    qm.alter_queue("DEAD", put_allowed=False)
    qm.put("ORDERS", b"m1", report=Report.EXCEPTION, reply_to_queue="REPORTS")
    with qm.unit_of_work() as unit:
        message = qm.get("ORDERS")
        with pytest.raises(Undeliverable, match="2051"):
            qm.dead.add(message, queue="ORDERS")
        unit.commit()
    assert qm.depth("REPORTS") == 0


def test_a_dead_letter_that_fails_again_is_one_letter_with_the_new_reason(qm: QueueManager) -> None:
    set_aside(qm, b"m1")
    assert bury(qm, qm.get("DEAD"), "OTHER", Reason.UNKNOWN_OBJECT_NAME) == "buried"
    (letter,) = qm.dead.letters()
    assert (letter.why.reason, letter.why.queue, letter.why.attempts) == (2085, "OTHER", 0)


def test_a_message_put_directly_on_the_dead_letter_queue_needs_a_replay_target(qm: QueueManager) -> None:
    qm.put("DEAD", b"m1", properties={"dlh.reason": "none", "dlh.queue": 3})
    (letter,) = qm.dead.letters()
    assert (letter.why.reason, letter.why.queue) == (0, "")
    assert [one.error.reason for one in qm.dead.replay().stayed] == [2085]
    assert qm.dead.replay(to="ORDERS").messages == 1


def test_a_replay_to_the_dead_letter_queue_itself_ends(qm: QueueManager) -> None:
    qm.create_queue("ALIAS", type="alias", base_queue="DEAD")
    set_aside(qm, b"1", b"2")
    for to in ("DEAD", "ALIAS"):
        assert qm.dead.replay(to=to, most=9).messages == 2
        assert bodies(qm, "DEAD") == [b"1", b"2"]
    set_aside(qm, b"3", priority=7)
    assert qm.dead.replay(to="DEAD", match=inorder.Match(priority=7)).messages == 1


def test_a_replay_is_refused_inside_an_open_unit(qm: QueueManager) -> None:
    set_aside(qm, b"m1")
    with qm.unit_of_work(), pytest.raises(inorder.CallerError) as raised:
        qm.dead.replay()
    assert raised.value.reason == Reason.UOW_IN_PROGRESS
    assert qm.depth("DEAD") == 1


@pytest.mark.every_store
def test_reports_that_can_be_put_nowhere_are_counted_for_the_queue_of_their_message(qm: QueueManager) -> None:
    qm.admin.alter_manager(dead_letter_queue="NONE")
    for _ in range(3):
        qm.put("ORDERS", b"m1", report=Report.COA, reply_to_queue="NOWHERE")
    assert {view.name: view.dropped for view in qm.inspect.overview()} == {"DEAD": 0, "ORDERS": 3, "REPORTS": 0}
    (dropped,) = qm.inspect.dropped()
    assert (dropped.queue, dropped.messages, dropped.reason) == ("ORDERS", 3, Reason.UNKNOWN_OBJECT_NAME)


@pytest.mark.parametrize(
    ("named", "argument"),
    [
        ({"reason": "2053"}, "reason"),
        ({"reason": True}, "reason"),
        ({"queue": 5}, "queue"),
        ({"match": "a = 1"}, "match"),
    ],
)
def test_bad_criteria_for_dead_letters_are_refused(qm: QueueManager, named: dict[str, Any], argument: str) -> None:
    set_aside(qm, b"m1")
    for call in (qm.dead.letters, qm.dead.replay, qm.dead.discard):
        with pytest.raises(inorder.ArgumentError) as raised:
            call(**named)
        assert raised.value.argument == argument
    assert qm.depth("DEAD") == 1


@pytest.mark.parametrize("feedback", ["PAN", True, None, -1])
def test_a_bad_feedback_is_refused(qm: QueueManager, feedback: Any) -> None:
    qm.put("ORDERS", b"m1", reply_to_queue="REPORTS")
    message = qm.get("ORDERS")
    with pytest.raises(inorder.ArgumentError) as raised:
        qm.report(message, feedback)
    assert raised.value.reason == Reason.FEEDBACK_ERROR
    assert qm.depth("REPORTS") == 0


@pytest.mark.parametrize(
    ("asked", "feedback", "is_put"), [(1, 275, True), (1, 276, False), (2, 276, True), (2, 65536, True)]
)
def test_pan_and_nan_are_put_if_they_are_asked_for(qm: QueueManager, asked: int, feedback: int, is_put: bool) -> None:
    put = qm.put("ORDERS", b"m1", report=asked | Report.PASS_MESSAGE_ID, reply_to_queue="REPORTS", priority=7)
    result = qm.report(qm.get("ORDERS"), feedback, b"why")
    assert (result is not None) is is_put
    if is_put:
        report = qm.get("REPORTS")
        assert (report.message_type, report.feedback, report.body, report.priority) == (4, feedback, b"why", 7)
        assert (report.message_id, report.correlation_id) == (put.message_id, put.message_id)
