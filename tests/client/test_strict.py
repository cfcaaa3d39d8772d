"""Rules of strict reading that the scenario tables cannot express."""

from __future__ import annotations

import pytest
from tests.helpers.support import Call, looks_once

from inorder import FOREVER, Match, Message, OrderPending, Place, QueueCondition, QueueManager, Reason
from inorder.errors import ArgumentError, CallerError, OptionsError
from inorder.model.options import GetOptions, OpenOptions
from inorder.rules.grouping import NOTHING_OPEN
from inorder.rules.ordering import UNSET, PendingKind
from inorder.stores.seam.records import GetRequest
from inorder.testing import ManualClock


def test_b26_a_withheld_call_reports_kind_holder_age_and_place(qm: QueueManager, clock: ManualClock) -> None:
    writer = qm.connect(program="writer")
    writer.put("Q", b"1", syncpoint=True)
    qm.put("Q", b"2")
    clock.advance(3)
    with pytest.raises(OrderPending) as raised:
        qm.get("Q", read_order="strict")
    pending = raised.value
    assert (pending.kind, pending.by, pending.age, pending.place) == ("in", "writer", 3.0, Place(0, 1, 0))
    assert pending.reason is Reason.ORDER_PENDING
    assert "writer" in str(pending)


def test_b16_a_notify_call_reports_how_many_are_pending_which_is_first_and_why(qm: QueueManager) -> None:
    writer = qm.connect()
    writer.put("Q", b"1", syncpoint=True)
    writer.put("Q", b"2", syncpoint=True)
    qm.put("Q", b"3")
    with qm.open("Q", browse=True, read_order="notify") as queue:
        message = queue.browse_first()
    assert message.earlier_pending == (2, Place(0, 1, 0), "in")
    writer.back_out()
    assert qm.get("Q", read_order="notify").earlier_pending is None


@pytest.mark.every_store
def test_b33_the_operator_sees_what_is_pending_and_how_long(qm: QueueManager, clock: ManualClock) -> None:
    qm.put_many("Q", [b"1", b"2", b"3"])
    reader, writer = qm.connect(program="reader"), qm.connect(program="writer")
    reader.get("Q", syncpoint=True)
    clock.advance(5)
    writer.put("Q", b"4", syncpoint=True)
    qm.put("Q", b"5")
    view = qm.inspect.order_view("Q")
    assert (view.unresolved_puts, view.pending_out, view.withheld, view.strict_waiters) == (1, 1, 3, 0)
    assert view.oldest_put is not None
    assert view.oldest_out is not None
    assert (view.oldest_put.by, view.oldest_put.kind) == ("writer", PendingKind.IN)
    assert (view.oldest_out.by, view.oldest_out.since) == ("reader", clock.now() - 5)


@pytest.mark.every_store
def test_b41_a_token_resumes_its_browse_and_is_invalid_after_its_queue_is_deleted(qm: QueueManager) -> None:
    qm.put_many("Q", [b"1", b"2", b"3"])
    with qm.open("Q", browse=True, read_order="strict") as queue:
        start = queue.browse_token()
        queue.browse_first()
        token = queue.browse_token()
    with qm.open("Q", browse=True, read_order="strict") as queue:
        queue.resume(token)
        assert queue.browse_next().body == b"2"
        queue.resume(start)
        assert queue.browse_next().body == b"1"
    qm.close_queue("Q")
    qm.delete_queue("Q", purge=True)
    qm.create_queue("Q")
    with qm.open("Q", browse=True) as queue, pytest.raises(QueueCondition) as raised:
        queue.resume(token)
    assert raised.value.reason is Reason.OBJECT_CHANGED


@pytest.mark.parametrize("token", ["", "text", "e30=", "bnVsbA==", 5, None])
def test_a_bad_browse_token_is_refused(qm: QueueManager, token: object) -> None:
    with qm.open("Q", browse=True) as queue, pytest.raises(ArgumentError) as raised:
        queue.resume(token)  # type: ignore[arg-type]
    assert raised.value.argument == "token"


def test_a_relaxed_browse_has_no_token(qm: QueueManager) -> None:
    qm.put("Q", b"1")
    with qm.open("Q", browse=True) as queue:
        queue.browse_first()
        with pytest.raises(CallerError) as raised:
            queue.browse_token()
    assert raised.value.reason is Reason.ORDER_UNSUPPORTED


@pytest.mark.every_store
def test_b31_a_reader_that_can_proceed_again_is_in_no_deadlock(qm: QueueManager) -> None:
    """One waits for two. Two commits and then waits for one: no deadlock, even if one has not looked again yet."""
    qm.create_queue("R")
    for n in range(4):
        for queue in ("Q", "R"):
            qm.put_many(queue, [b"1", b"2"])
        one, two = qm.connect(), qm.connect()
        two.get("Q", syncpoint=True)

        def go_on(one: QueueManager = one) -> bytes:
            one.get("R", syncpoint=True)
            body = one.get("Q", syncpoint=True, read_order="strict", wait=FOREVER).body
            one.commit()
            return body

        call = Call(go_on)
        call.sleeps(one)
        two.commit()
        assert two.get("R", syncpoint=True, read_order="strict", wait=FOREVER).body == b"2", n
        assert call.result() == b"2"
        two.commit()


def test_a_browse_loop_with_a_buffer_is_refused_without_accept_truncated(qm: QueueManager) -> None:
    with pytest.raises(OptionsError, match="accept_truncated"):
        list(qm.browse("Q", buffer=3))


@pytest.mark.every_store
def test_a_connection_can_work_after_a_queue_is_deleted_under_its_browse_lock(qm: QueueManager) -> None:
    qm.create_queue("M", type="model", shareable=True, default_input="shared")
    creator, other = qm.connect(), qm.connect()
    made = creator.open("M", dynamic_name="T")
    made.put(b"1")
    handle = other.open("T", browse=True)
    handle.browse_first(lock=True)
    made.close()
    handle.close()
    other.put("Q", b"work", syncpoint=True)
    other.close()
    assert [message.body for message in qm.browse("Q")] == [b"work"]


def test_b41_a_token_of_an_alias_is_a_token_of_the_queue_it_named(qm: QueueManager) -> None:
    qm.put_many("Q", [b"1", b"2"])
    qm.create_queue("A", type="alias", base_queue="Q")
    with qm.open("A", browse=True, read_order="strict") as queue:
        queue.browse_first()
        token = queue.browse_token()
    with qm.open("Q", browse=True, read_order="strict") as queue:
        queue.resume(token)
        assert queue.browse_next().body == b"2"
    qm.create_queue("R")
    qm.alter_queue("A", base_queue="R")
    with qm.open("A", browse=True, read_order="strict") as queue, pytest.raises(QueueCondition):
        queue.resume(token)


def test_b33_a_waiter_is_counted_on_its_queue_alone(qm: QueueManager) -> None:
    qm.create_queue("R")
    reader = qm.connect()
    reader.put("R", b"1")
    call = Call(lambda: reader.get("Q", read_order="strict", wait=FOREVER).body)
    call.sleeps(reader)
    assert (qm.inspect.order_view("Q").strict_waiters, qm.inspect.order_view("R").strict_waiters) == (1, 0)
    qm.put("Q", b"1")
    assert call.result() == b"1"


def strict_look(qm: QueueManager) -> float | None:
    """The time at which a waiting strict get looks again."""
    options = GetOptions(read_order="strict", wait=600)
    store = qm._store
    opened = store.open(qm.internals.owner, "Q", OpenOptions(input="shared"))
    request = GetRequest(handle=opened.handle, options=options, state=NOTHING_OPEN, cursor=UNSET, syncpoint=False)
    return looks_once(qm, request)[1]


@pytest.mark.every_store
def test_b28_a_strict_wait_looks_again_when_a_blocker_expires_or_is_due(qm: QueueManager, clock: ManualClock) -> None:
    writer = qm.connect()
    writer.put("Q", b"1", syncpoint=True, expiry=7)
    qm.put("Q", b"2")
    assert strict_look(qm) == clock.now() + 7
    writer.back_out()
    qm.get("Q")
    qm.put("Q", b"3", delay=5)
    qm.put("Q", b"4")
    assert strict_look(qm) == clock.now() + 5


@pytest.mark.every_store
def test_b33_messages_before_every_pending_message_are_not_withheld(qm: QueueManager) -> None:
    qm.put("Q", b"1")
    qm.connect().put("Q", b"2", syncpoint=True)
    keep = qm.connect()
    keep.put("Q", b"3", syncpoint=True)
    qm.put("Q", b"4")
    qm.put("Q", b"urgent", priority=9)
    assert qm.inspect.order_view("Q").withheld == 1


@pytest.mark.every_store
def test_the_pending_age_of_a_message_counts_from_its_confirmation(qm: QueueManager, clock: ManualClock) -> None:
    """B-26: the time for which a message has been pending counts from when it became visible."""
    put = qm.put("Q", b"1", delay=100, confirm_id=7)
    qm.put("Q", b"2")
    clock.advance(5)
    qm.confirm_put("Q", put.uid)
    clock.advance(3)
    with pytest.raises(OrderPending) as raised:
        qm.get("Q", read_order="strict")
    assert (raised.value.kind, raised.value.age) == ("delayed", 3.0)


@pytest.mark.every_store
def test_b33_the_order_view_shows_what_has_been_pending_longest(qm: QueueManager, clock: ManualClock) -> None:
    """They are not first in the queue: the later ones have a higher priority."""
    qm.put_many("Q", [Message(b"1", priority=1), Message(b"2", priority=2)])
    programs = [[qm.connect(program=f"{role} {number}") for role in ("reader", "writer")] for number in (1, 2)]
    for priority, (reader, writer) in enumerate(programs, 1):
        reader.get("Q", match=Match(priority=priority), syncpoint=True)
        writer.put("Q", b"3", priority=priority, syncpoint=True)
        clock.advance(1)
    view = qm.inspect.order_view("Q")
    assert view.oldest_put is not None
    assert view.oldest_out is not None
    assert (view.oldest_put.by, view.oldest_out.by) == ("writer 1", "reader 1")


def test_b21_a_confirm_id_is_not_confused_with_a_lock_id_of_the_same_number(qm: QueueManager) -> None:
    """Messages that a reader got under a lock id and a confirm id are its own only if the call names both."""
    qm.put_many("Q", [b"1", b"2"])
    lock_id = qm.browse_and_lock("Q").lock_id
    assert qm.get("Q", lock_id=lock_id, confirm_id=lock_id).body == b"1"
    with pytest.raises(OrderPending):
        qm.get("Q", lock_id=lock_id, read_order="strict")
    assert qm.get("Q", lock_id=lock_id, confirm_id=lock_id, read_order="strict").body == b"2"
