"""Failed work is delayed, keeps its error, and can be retried by hand; or its message becomes a dead letter."""

from __future__ import annotations

from typing import Any

import pytest
from tests.helpers.support import put_group

from inorder import Got, Match, NoMessageAvailable, OrderPending, QueueManager, Reason, Report, connect
from inorder.errors import ArgumentError, ConnectionClosed, Undeliverable, UnknownQueue, WrongQueueType
from inorder.rules.retries import Failure, Later, failure_of
from inorder.testing import ManualClock
from inorder.testing.stores import RestartableStore

from ..helpers.working import dead_letter_queue


def clock_of(qm: QueueManager) -> ManualClock:
    clock = qm.internals.clock
    assert isinstance(clock, ManualClock)
    return clock


def fail(qm: QueueManager, *, delay: float = 10, error: str = "KeyError: 'price'", **options: Any) -> Got:
    """Gets one message and backs it out as failed work."""
    with qm.unit_of_work() as unit:
        message = qm.get("Q", **options)
        unit.back_out(delay=delay, error=error)
    return message


@pytest.mark.parametrize("restarts", [False, True])
def test_failed_work_keeps_its_place_and_error_and_withholds_strict_readers(
    store: RestartableStore, restarts: bool
) -> None:
    qm = connect(store)
    qm.create_queue("Q")
    qm.put("Q", b"1")
    qm.put("Q", b"2")
    place = fail(qm, read_order="strict").place
    if restarts:
        store.restart()
        qm = connect(store)
    with pytest.raises(OrderPending):
        qm.get("Q", read_order="strict")
    clock_of(qm).advance(10)
    got = [qm.get("Q", read_order="strict") for _ in range(2)]
    assert [(one.body, one.backout_count) for one in got] == [(b"1", 1), (b"2", 0)]
    assert (got[0].place, got[0].properties["retry.error"]) == (place, "KeyError: 'price'")


def test_the_last_error_of_failed_work_is_kept_and_visible_to_readers(qm: QueueManager) -> None:
    qm.put("Q", b"1", properties={"colour": "red"})
    began = clock_of(qm).now()
    fail(qm, delay=0)
    fail(qm, delay=0, error="ValueError: 3")
    (seen,) = qm.browse("Q")
    assert seen.properties["colour"] == "red"
    assert failure_of(seen) == Failure("ValueError: 3", began, 2)
    assert qm.get("Q", match=Match(selector="retry.attempt = 2 AND retry.error LIKE 'Value%'")).body == b"1"


def test_a_failed_group_is_delayed_whole_and_its_first_message_has_the_error(qm: QueueManager) -> None:
    put_group(qm, b"1", b"2", b"3")
    qm.put("Q", b"alone")
    with qm.unit_of_work() as unit:
        assert len(list(qm.get_group("Q"))) == 3
        unit.back_out(delay=10, error="half")
    assert [one.body for one in qm.get_group("Q")] == [b"alone"]
    with pytest.raises(NoMessageAvailable):
        list(qm.get_group("Q"))
    assert [failure_of(one) is not None for one in qm.browse("Q", logical=True)] == []  # no member can be read yet
    clock_of(qm).advance(10)
    got = list(qm.get_group("Q"))
    assert [(one.body, one.backout_count) for one in got] == [(b"1", 1), (b"2", 1), (b"3", 1)]
    assert [failure_of(one) is not None for one in got] == [True, False, False]
    assert qm.admin.check() == []


def test_a_failed_unit_keeps_its_error_in_the_first_message_of_each_queue(qm: QueueManager) -> None:
    qm.create_queue("R")
    for queue in ("Q", "R"):
        qm.put_many(queue, [b"1", b"2"])
    with qm.unit_of_work() as unit:
        for queue in ("Q", "R"):
            qm.get_many(queue, 2)
        unit.back_out(error="both")
    for queue in ("Q", "R"):
        assert [failure_of(one) is not None for one in qm.browse(queue)] == [True, False], queue


def test_a_bad_delay_or_error_is_refused_and_changes_nothing(qm: QueueManager) -> None:
    qm.back_out(delay=1, error="no")  # without a unit it does nothing
    qm.put("Q", b"1")
    qm.get("Q", syncpoint=True)
    wrong: list[dict[str, Any]] = [{"delay": -1}, {"delay": 1e9}, {"delay": "1"}, {"error": 3}, {"error": "\ud800"}]
    for named in wrong:
        for call in (qm.back_out, qm.internals.give_up):
            with pytest.raises(ArgumentError, match=next(iter(named))):
                call(**named)
        with qm.connect() as other, other.unit_of_work() as unit, pytest.raises(ArgumentError, match=next(iter(named))):
            unit.back_out(**named)
    assert qm.inspect.has_unit


def test_a_connection_that_is_given_up_is_closed_and_its_work_delayed(qm: QueueManager) -> None:
    qm.put("Q", b"1")
    own = qm.connect()
    own.get("Q", syncpoint=True)
    own.put("Q", b"2", syncpoint=True)
    own.internals.give_up(delay=5, error="too long")
    with pytest.raises(ConnectionClosed):
        own.put("Q", b"3")
    own.internals.give_up()
    (sight,) = qm.inspect.look("Q")
    assert sight.due_at == clock_of(qm).now() + 5
    assert failure_of(sight.message) == Failure("too long", clock_of(qm).now(), 1)


@pytest.mark.every_store
def test_retry_now_ends_the_delay_of_failed_work_and_of_nothing_else(qm: QueueManager) -> None:
    qm.put_many("Q", [b"1", b"2", b"3"])
    places = [fail(qm).place, fail(qm, delay=20, error="").place]
    with qm.unit_of_work() as unit:  # delays the message, though nothing failed
        qm.get("Q")
        unit._put_off(Later(30, counts=False))
    qm.put("Q", b"later", delay=1000)
    assert qm.admin.retry_now("Q") == 3
    assert qm.admin.retry_now("Q") == 0
    got = qm.get_many("Q", 9)
    assert [(one.body, one.backout_count) for one in got] == [(b"1", 1), (b"2", 1), (b"3", 0)]
    assert [one.place for one in got[:2]] == places
    assert [one.due_at is None for one in qm.inspect.look("Q")] == [False]
    assert qm.admin.check() == []


@pytest.mark.every_store
def test_retry_now_reaches_a_message_that_was_put_with_a_delivery_delay_and_failed_later(qm: QueueManager) -> None:
    qm.create_queue("A", type="alias", base_queue="Q")
    qm.put("Q", b"1", delay=5)
    clock_of(qm).advance(5)
    fail(qm)
    assert (qm.admin.retry_now("A"), qm.get("Q").body) == (1, b"1")


@pytest.mark.every_store
def test_retry_now_reaches_one_message_alone(qm: QueueManager) -> None:
    qm.put_many("Q", [b"1", b"2", b"3"])
    one, other = fail(qm), fail(qm)
    assert one.uid is not None
    [free] = [view.message.uid for view in qm.inspect.look("Q") if view.state == "available"]
    assert free is not None
    assert qm.admin.retry_now("Q", free) == 0
    assert qm.admin.retry_now("Q", one.uid) == 1
    assert qm.admin.retry_now("Q", one.uid) == 0
    assert qm.admin.retry_now("Q", free._replace(number=free.number + 1000)) == 0
    assert [view.message.uid for view in qm.inspect.look("Q") if view.state == "delayed"] == [other.uid]
    with pytest.raises(ArgumentError, match="uid"):
        qm.admin.retry_now("Q", one.uid._replace(number=-1))
    assert qm.admin.check() == []


@pytest.mark.every_store
def test_retry_now_makes_a_group_whole_again(qm: QueueManager) -> None:
    put_group(qm, b"1", b"2", b"3")
    with qm.unit_of_work() as unit:
        assert len(list(qm.get_group("Q"))) == 3
        unit.back_out(delay=10, error="half")
    assert qm.admin.retry_now("Q") == 3
    assert [one.body for one in qm.get_group("Q")] == [b"1", b"2", b"3"]
    assert qm.admin.check() == []


@pytest.mark.every_store
def test_retry_now_of_one_message_reaches_those_of_its_group_that_failed_with_it(qm: QueueManager) -> None:
    for _ in range(2):
        put_group(qm, b"1", b"2", b"3")
    with qm.unit_of_work() as unit:  # both groups wait for their next attempt
        assert len(list(qm.get_group("Q"))) == 3
        unit.back_out(delay=20, error="first")
    with qm.unit_of_work() as unit:
        assert len(list(qm.get_group("Q"))) == 3
        unit.back_out(delay=20, error="second")
    second = list(qm.inspect.look("Q"))[4].message.uid
    assert second is not None
    assert qm.admin.retry_now("Q", second) == 3
    assert [view.state for view in qm.inspect.look("Q")] == ["delayed"] * 3 + ["available"] * 3
    assert [one.body for one in qm.get_group("Q")] == [b"1", b"2", b"3"]
    assert qm.admin.check() == []


def test_retry_now_of_one_message_leaves_those_of_its_group_that_failed_at_another_time(qm: QueueManager) -> None:
    put_group(qm, b"1", b"2")
    one = fail(qm)
    clock_of(qm).advance(1)
    fail(qm)
    assert one.uid is not None
    assert qm.admin.retry_now("Q", one.uid) == 1
    assert [view.state for view in qm.inspect.look("Q")] == ["available", "delayed"]


def test_retry_now_lets_strict_readers_continue_in_order(qm: QueueManager) -> None:
    qm.put_many("Q", [b"1", b"2"])
    fail(qm, read_order="strict")
    with pytest.raises(OrderPending):
        qm.get("Q", read_order="strict")
    qm.admin.retry_now("Q")
    assert [qm.get("Q", read_order="strict").body for _ in range(2)] == [b"1", b"2"]


@pytest.mark.every_store
def test_retry_now_starts_the_program_of_a_queue_with_a_trigger(qm: QueueManager) -> None:
    qm.create_queue("START")
    qm.admin.create_process("P", application_id="program")
    qm.alter_queue("Q", trigger_type="first", process="P", initiation_queue="START")
    qm.put("Q", b"1")
    fail(qm)
    qm.close_queue("Q")
    qm.alter_queue("Q", trigger_control=True)
    assert qm.depth("START") == 0
    assert (qm.admin.retry_now("Q"), qm.depth("START")) == (1, 1)


def test_retry_now_survives_a_restart(store: RestartableStore) -> None:
    qm = connect(store)
    qm.create_queue("Q")
    qm.put("Q", b"1")
    fail(qm)
    qm.admin.retry_now("Q")
    store.restart()
    assert connect(store).get("Q").body == b"1"


def test_retry_now_accepts_an_unused_queue_and_refuses_a_model(qm: QueueManager) -> None:
    assert qm.admin.retry_now("SYSTEM.DEAD.LETTER.QUEUE") == 0
    qm.create_queue("M", type="model")
    with pytest.raises(WrongQueueType):
        qm.admin.retry_now("M")


def got(qm: QueueManager, queue: str = "Q", **fields: Any) -> Got:
    """Puts a message and gets it in the open unit of work."""
    qm.put(queue, b"1", syncpoint=False, **fields)
    return qm.get(queue)


@pytest.mark.every_store
def test_a_message_becomes_a_dead_letter_with_the_reason_only_if_the_unit_commits(qm: QueueManager) -> None:
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


def test_a_dead_letter_is_put_on_the_backout_requeue_queue_of_its_queue(qm: QueueManager) -> None:
    qm.create_queue("ASIDE")
    qm.create_queue("W", backout_requeue_queue="ASIDE")
    qm.create_queue("ALIAS", type="alias", base_queue="W")
    with qm.unit_of_work():
        qm.dead.add(got(qm, "ALIAS"), queue="ALIAS")
    (letter,) = qm.dead.letters(dead_letter_queue="ASIDE")
    assert (letter.why.reason, letter.why.queue) == (Reason.BACKOUT_THRESHOLD_REACHED, "ALIAS")


def test_the_exception_report_has_the_requested_data_and_is_committed_with_the_unit(qm: QueueManager) -> None:
    """A report that cannot be put becomes a dead letter, too, as its message does."""
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
    assert [one.why.queue for one in qm.dead.letters()] == ["Q", "Q", "NONE"]


def test_a_message_of_a_queue_with_required_order_cannot_become_a_dead_letter(qm: QueueManager) -> None:
    dead_letter_queue(qm)
    qm.create_queue("S", read_order="required")
    with pytest.raises(Undeliverable, match="requires strict order"), qm.unit_of_work():
        qm.dead.add(got(qm, "S"), queue="S")
    assert (qm.depth("S"), qm.depth("DEAD")) == (1, 0)


NO_REASON = "^reason must be an integer from 0 to 999,999,999"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"message": b"1"}, "message"),
        ({"error": 3}, "error"),
        ({"error": "\ud800"}, "error"),
        ({"attempts": -1}, "attempts"),
        *(({"reason": reason}, NO_REASON) for reason in (-1, 1_000_000_000, True, "2053")),
    ],
)
def test_bad_arguments_for_a_dead_letter_are_refused(qm: QueueManager, given: dict[str, Any], said: str) -> None:
    dead_letter_queue(qm)
    with qm.unit_of_work():
        message = got(qm)
        with pytest.raises(ArgumentError, match=said):
            qm.dead.add(**{"message": message, "queue": "Q", **given})
        with pytest.raises(UnknownQueue):
            qm.dead.add(message, queue="NOWHERE")
    assert qm.depth("DEAD") == 0
