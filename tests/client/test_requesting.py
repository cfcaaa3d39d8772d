"""Requests and replies: reply queues, matching, lifetimes, serving, and bad requests."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.helpers.support import Call, Make, bodies, waiting
from tests.tiers import ON_BOTH

from inorder import Flags, Got, Message, MessageType, QueueManager, Reason, connect, errors
from inorder.client.requesting import MODEL
from inorder.testing import ManualClock

UNKNOWN = Reason.UNKNOWN_OBJECT_NAME
ID = b"mine".ljust(24, b"\0")


@pytest.fixture
def server(qm: QueueManager) -> Iterator[QueueManager]:
    with qm.connect(program="server") as own:
        yield own


def asked(qm: QueueManager, server: QueueManager, **fields: Any) -> tuple[Call[Got], Got]:
    """Sends a request; returns the call that waits for the reply, and the message that the server got."""
    call = waiting(qm, lambda: qm.request("Q", b"question", timeout=10, **fields))
    return call, server.get("Q")


def names(qm: QueueManager) -> list[str]:
    return [queue.name for queue in qm.queues() if queue.type == "local"]


def test_a_temporary_queue_serves_all_requests_of_its_connection(qm: QueueManager, server: QueueManager) -> None:
    qm.create_queue("MODEL", type="model", max_depth=7)
    requester, queues = qm.connect(), list[str]()
    for model in ({}, {}, {"reply_to_queue": "MODEL"}, {"reply_to_queue": "MODEL"}):
        call, request = asked(requester, server, **model)
        assert not request.persistent, "its reply could not be put"
        server.reply(request, b"")
        call.result()
        queues.append(request.reply_to_queue)
    assert queues[0] == queues[1] != queues[2] == queues[3]
    assert {*queues, "Q"} == {*names(qm)}
    assert qm.attributes(queues[2]).max_depth == 7
    requester.close()
    assert names(qm) == ["Q"]
    with pytest.raises((errors.UnknownQueue, errors.QueueDeleted)):
        server.reply(request, b"too late")


def test_a_request_is_not_part_of_the_open_unit_of_work(qm: QueueManager, server: QueueManager) -> None:
    qm.create_queue("R")
    call = Call(lambda: server.reply(server.get("Q", wait=600), b"answer"))
    with qm.unit_of_work() as unit:
        qm.put("R", b"1")
        reply = qm.request("Q", b"", timeout=600)
        unit.back_out()
    call.ends()
    assert reply.body == b"answer"
    assert bodies(qm, "R") == []


def test_a_request_and_its_reply_keep_the_fields_that_were_given(qm: QueueManager, server: QueueManager) -> None:
    qm.create_queue("R")
    message = Message(b"question", reply_to_queue="R", expiry=50, persistent=False, priority=7, format="MQSTR")
    call = waiting(qm, lambda: qm.request("Q", message, timeout=10, correlation_id=ID))
    request = server.get("Q")
    assert (request.expiry, request.persistent, request.priority, request.format) == (50, False, 7, "MQSTR")
    assert (request.correlation_id, request.message_type) == (ID, MessageType.REQUEST)
    server.reply(request, Message(b"a", format="X", priority=2), expiry=math.inf, application_identity_data="")
    reply = call.result()
    assert (reply.priority, reply.persistent, reply.expiry, reply.format) == (2, False, math.inf, "X")


def test_a_forwarded_request_has_a_new_message_id(qm: QueueManager, server: QueueManager) -> None:
    call, request = asked(qm, server)
    server.create_queue("NEXT")
    forwarded = Call(lambda: server.request("NEXT", request, timeout=5, reply_to_queue="", persistent=False))
    with qm.connect() as last:
        again = last.get("NEXT", wait=600)
        assert again.message_id != request.message_id
        last.reply(again, b"from the last")
    server.reply(request, forwarded.result().body)
    assert call.result().body == b"from the last"


def test_a_request_without_a_reply_fails_at_its_timeout_and_expires(qm: QueueManager, clock: ManualClock) -> None:
    call = waiting(qm, lambda: qm.request("Q", b"question", timeout=10))
    [request] = qm.connect().browse("Q")
    clock.advance(10)
    error = call.error()
    assert isinstance(error, errors.NoMessageAvailable)
    assert error.reason == Reason.NO_MSG_AVAILABLE
    assert f"no reply within 10 s to the request {request.message_id.hex()} on Q" in str(error)
    assert error.data == {
        "queue": "Q",
        "message_id": request.message_id,
        "reply_to_queue": request.reply_to_queue,
        "timeout": 10,
    }
    assert qm.depth("Q") == 0


def test_a_late_reply_expires(qm: QueueManager, server: QueueManager, clock: ManualClock) -> None:
    qm.create_queue("R")
    qm.create_queue("A", type="alias", base_queue="R")
    call, request = asked(qm, server, reply_to_queue="A")
    clock.advance(4)
    got = request.expiry
    server.reply(request, b"")
    reply = call.result()
    assert (got, reply.expiry) == (10, 10)
    assert (request.persistent, request.reply_to_queue, reply.persistent) == (True, "A", True)
    call, request = asked(qm, server, reply_to_queue="R", expiry=20)
    clock.advance(15)
    assert isinstance(call.error(), errors.NoMessageAvailable)
    server.reply(request, b"late")
    assert qm.depth("R") == 1
    clock.advance(20)
    assert qm.depth("R") == 0


@pytest.mark.parametrize(("timeout", "life"), [(0.01, 0.1), (math.inf, math.inf), (1e9, 99_999_999.9), (3, 3)])
def test_the_expiry_of_a_request_is_its_timeout(
    qm: QueueManager, server: QueueManager, timeout: float, life: float
) -> None:
    call = waiting(qm, lambda: qm.request("Q", b"", timeout=timeout))
    request = server.get("Q")
    assert request.expiry == pytest.approx(life)
    server.reply(request, b"")
    call.result()


def test_replies_are_yielded_one_by_one_until_the_timeout(
    qm: QueueManager, server: QueueManager, clock: ManualClock
) -> None:
    replies = qm.replies("Q", b"", timeout=10)
    request = server.get("Q")
    assert replies.message_id == request.message_id
    server.reply(request, b"1")
    server.reply(request, b"2")
    assert [next(replies).body, next(replies).body] == [b"1", b"2"]
    clock.advance(6)
    call = waiting(qm, lambda: list(replies))
    clock.advance(4)
    assert call.result() == []
    server.reply(request, b"too late", expiry=100)
    assert [message.body for message in replies] == [b"too late"], "what has come all the same is not hidden"


def test_replies_end_after_the_given_count_or_fail_at_the_timeout(
    qm: QueueManager, server: QueueManager, clock: ManualClock
) -> None:
    replies = qm.replies("Q", b"", timeout=10, count=2)
    request = server.get("Q")
    for body in (b"1", b"2", b"3"):
        server.reply(request, body)
    assert [message.body for message in replies] == [b"1", b"2"]
    assert list(replies) == []
    replies = qm.replies("Q", b"", timeout=10, count=2)
    server.reply(server.get("Q"), b"1")
    assert next(replies).body == b"1"
    call = waiting(qm, lambda: next(replies))
    clock.advance(10)
    error = call.error()
    assert isinstance(error, errors.NoMessageAvailable)
    assert "1 of 2 replies within 10 s" in str(error)


REFUSED: dict[str, tuple[Callable[[QueueManager], object], type[Exception], Reason]] = {
    "no queue for replies": (
        lambda qm: qm.request("Q", b"", timeout=1, reply_to_queue="GONE"), errors.UnknownQueue, UNKNOWN),
    "no queue for requests": (lambda qm: qm.request("GONE", b"", timeout=1), errors.UnknownQueue, UNKNOWN),
    "a model for requests": (lambda qm: qm.request("PERM", b"", timeout=1), errors.WrongQueueType, Reason.Q_TYPE_ERROR),
    "a model of queues that stay": (
        lambda qm: qm.request("Q", b"", timeout=1, reply_to_queue="PERM"), errors.ArgumentError, Reason.Q_TYPE_ERROR),
    "a queue that another reads alone": (
        lambda qm: qm.request("Q", b"", timeout=1, reply_to_queue="ALONE"), errors.ObjectInUse, Reason.OBJECT_IN_USE),
    "no time": (lambda qm: qm.request("Q", b"", timeout=0), errors.ArgumentError, Reason.WAIT_INTERVAL_ERROR),
    "time before": (lambda qm: qm.replies("Q", b"", timeout=-1), errors.ArgumentError, Reason.WAIT_INTERVAL_ERROR),
    "no number": (
        lambda qm: qm.request("Q", b"", timeout=None), errors.ArgumentError, Reason.WAIT_INTERVAL_ERROR),  # type: ignore[arg-type]
    "no reply": (lambda qm: qm.replies("Q", b"", timeout=1, count=0), errors.ArgumentError, Reason.ARGUMENT_ERROR),
    "in a unit of work": (
        lambda qm: qm.request("Q", b"", timeout=1, syncpoint=True), errors.ArgumentError, Reason.ARGUMENT_ERROR),  # type: ignore[call-arg]
    "a bad field": (
        lambda qm: qm.request("Q", b"", timeout=1, expiry=0), errors.ArgumentError, Reason.EXPIRY_ERROR),
    "a reply to what asks for none": (
        lambda qm: qm.reply(Message(b""), b""), errors.CallerError, Reason.MISSING_REPLY_TO_Q),
    "a reply to nothing": (lambda qm: qm.reply(b"", b""), errors.ArgumentError, Reason.ARGUMENT_ERROR),  # type: ignore[arg-type]
    "a reply to elsewhere": (
        lambda qm: qm.reply(Message(b"", reply_to_queue="Q", reply_to_queue_manager="QM2"), b""),
        errors.CallerError, Reason.UNKNOWN_REMOTE_Q_MGR),
    "no function": (lambda qm: qm.serve("Q", "answer"), errors.ArgumentError, Reason.OPTIONS_ERROR),  # type: ignore[arg-type]
}  # fmt: skip


def test_a_refused_request_puts_nothing(qm: QueueManager) -> None:
    qm.create_queue("PERM", type="model", definition_type="permanent_dynamic")
    qm.create_queue("ALONE")
    with qm.connect() as other, other.open("ALONE", input="exclusive"):
        for name, (call, error, reason) in REFUSED.items():
            with pytest.raises(error) as raised:
                call(qm)
            assert raised.value.reason == reason, name  # type: ignore[attr-defined]
            assert qm.depth("Q") == 0, name


def test_a_request_is_refused_if_a_local_queue_has_the_name_of_the_model(qm: QueueManager) -> None:
    qm.create_queue(MODEL)
    with pytest.raises(errors.ArgumentError, match=MODEL):
        qm.request("Q", b"", timeout=1)


def test_a_persistent_request_may_have_a_nonpersistent_reply(qm: QueueManager, server: QueueManager) -> None:
    call, request = asked(qm, server, persistent=True)
    assert request.persistent
    with pytest.raises(errors.ArgumentError) as raised:
        server.reply(request, b"", persistent=True)
    assert raised.value.reason == Reason.PERSISTENT_NOT_ALLOWED
    server.reply(request, b"")
    assert call.result().persistent is False


def test_requests_are_served_until_none_is_left(qm: QueueManager, server: QueueManager, clock: ManualClock) -> None:
    qm.create_queue("LOG")

    def answer(request: Message) -> bytes:
        server.put("LOG", request.body)
        return request.body.upper()

    serving = waiting(server, lambda: server.serve("Q", answer, wait=5))
    assert [qm.request("Q", body, timeout=600).body for body in (b"a", b"b")] == [b"A", b"B"]
    serving.sleeps(server)
    clock.advance(5)
    assert serving.result() == 2
    assert bodies(qm, "LOG") == [b"a", b"b"]


def test_a_message_that_does_not_ask_for_a_reply_cannot_be_answered(qm: QueueManager) -> None:
    qm.put("Q", b"1")
    assert qm.serve("Q", lambda request: None, wait=0) == 1
    qm.put("Q", b"2")
    with pytest.raises(errors.CallerError, match="does not ask for a reply"):
        qm.serve("Q", lambda request: b"all the same", wait=0)
    assert bodies(qm) == [b"2"]


def test_serving_continues_if_the_reply_queue_does_not_exist(qm: QueueManager, server: QueueManager) -> None:
    with qm.connect() as gone:
        gone.replies("Q", b"1", timeout=1000)
    qm.put("Q", b"2", reply_to_queue="NOWHERE")
    assert server.serve("Q", lambda request: b"", wait=0) == 2
    assert qm.depth("Q") == 0


def test_an_error_of_the_function_ends_serving_and_backs_the_request_out(qm: QueueManager) -> None:
    qm.create_queue("R")
    qm.put("Q", b"1", reply_to_queue="R")

    def fails(request: Message) -> bytes:
        qm.put("R", b"half done")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        qm.serve("Q", fails, wait=0)
    assert bodies(qm, "R") == []
    assert [message.backout_count for message in qm.browse("Q")] == [1]
    assert qm.inspect.units() == []


def test_a_request_that_fails_repeatedly_is_moved_to_the_backout_requeue_queue(
    qm: QueueManager, server: QueueManager
) -> None:
    qm.create_queue("ASIDE")
    qm.create_queue("A", type="alias", base_queue="Q")
    qm.alter_queue("Q", backout_threshold=3, backout_requeue_queue="ASIDE")
    qm.put("Q", b"bad", reply_to_queue="R", message_id=ID, flags=Flags.IN_GROUP, group_id=ID, user_identifier="who")
    qm.put("Q", b"good", reply_to_queue="R")
    qm.create_queue("R")
    tried = []

    def answer(request: Message) -> bytes:
        tried.append(request.body)
        if request.body == b"bad":
            raise ZeroDivisionError
        return b"done"

    assert server.serve("A", answer, wait=0) == 5
    assert tried == [b"bad"] * 3 + [b"good"]
    [aside] = qm.browse("ASIDE")
    assert (aside.body, aside.message_id, aside.group_id, aside.reply_to_queue) == (b"bad", ID, ID, "R")
    assert (bodies(qm, "R"), qm.depth("Q")) == ([b"done"], 0)


def test_serving_needs_a_connection_without_a_unit_of_work(qm: QueueManager) -> None:
    with qm.unit_of_work(), pytest.raises(errors.CallerError) as raised:
        qm.serve("Q", lambda request: None, wait=0)
    assert raised.value.reason == Reason.UOW_IN_PROGRESS


SERVER = """
import sys, inorder
with inorder.connect(sys.argv[1], program="server") as qm:
    print("there", flush=True)
    qm.serve("Q", lambda request: b"%d " % request.message_type + request.body.upper())
"""


@pytest.mark.parametrize("place", ON_BOTH)
def test_another_process_answers_requests(place: str, make: Make) -> None:
    where = make(place)
    with connect(where) as qm:
        qm.create_queue("Q")
        qm.create_queue("R")
        with subprocess.Popen([sys.executable, "-c", SERVER, where], stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            assert server.stdout.readline() == "there\n"
            for reply_to in ("", "R"):
                replies = (qm.request("Q", b"a%d" % n, timeout=600, reply_to_queue=reply_to) for n in range(20))
                assert [reply.body for reply in replies] == [b"1 A%d" % n for n in range(20)]
            server.kill()
        for reply_to in ("", "R"):
            with pytest.raises(errors.NoMessageAvailable):
                qm.request("Q", b"nobody is there", timeout=0.1, reply_to_queue=reply_to)
        assert qm.depth("R") == 0
