"""MQCB and MQCTL: consumers are called with messages and events (M-13)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any

import pytest
from tests.helpers.support import Stores
from tests.mqi.consuming import (
    DEREGISTER,
    EVERY_CALL,
    OK,
    REGISTER,
    RESUME,
    START,
    START_WAIT,
    STOP,
    SUSPEND,
    WAIT_SECONDS,
    Call,
)
from tests.mqi.consuming import ConsumingProgram as Program

from inorder import Match, QueueManager, connect
from inorder.client.internals import Internals
from inorder.mqi import constants as mq
from inorder.mqi import verbs
from inorder.mqi.connections import connection_of
from inorder.mqi.layouts import layout
from inorder.testing import ManualClock


@pytest.fixture
def program(qm: QueueManager) -> Iterator[Program]:
    qm.create_queue("Q2")
    made = Program(qm.connect())
    yield made
    verbs.mqdisc(made.hconn)


def test_present_and_later_messages_are_passed_to_the_function_in_order(qm: QueueManager, program: Program) -> None:
    hobj = program.open()
    program.put(hobj, b"1", b"2")
    assert program.register(hobj, CallbackArea=17) == OK
    assert program.calls.empty()
    assert program.control(START, area=18) == OK
    qm.put("Q", b"3", format="MQSTR", correlation_id=b"c" * 24)
    calls = [program.next() for _ in range(3)]
    assert [one.brief for one in calls] == [(mq.MQCBCT_MSG_REMOVED, body) for body in (b"1", b"2", b"3")]
    context, last = calls[2].context, calls[2]
    assert (context.Hobj, context.CallbackArea, context.ConnectionArea) == (hobj, 17, 18)
    assert (context.CompCode, context.Reason, context.State, context.Flags) == (0, 0, mq.MQCS_NONE, 0)
    assert (context.DataLength, context.BufferLength) == (1, 1)
    assert (last.md.Format, last.md.CorrelId, last.gmo.ReturnedLength) == (mq.MQFMT_STRING, b"c" * 24, 1)
    assert program.control(STOP) == OK
    qm.put("Q", b"4")
    assert qm.get("Q").body == b"4"


def test_two_queues_take_turns_on_one_thread(program: Program) -> None:
    threads = set()

    def note(_: Call) -> None:
        threads.add(threading.get_ident())

    first, second = program.open("Q"), program.open("Q2")
    program.put(first, b"a1", b"a2", b"a3")
    program.put(second, b"b1", b"b2", b"b3")
    program.register(first, then=note)
    program.register(second, then=note)
    program.control(START)
    assert program.bodies(6) == [b"a1", b"b1", b"a2", b"b2", b"a3", b"b3"]
    assert len(threads) == 1
    assert threading.get_ident() not in threads


def test_while_consumption_is_started_other_threads_may_only_stop_or_suspend_it(program: Program) -> None:
    hobj = program.open()
    program.register(hobj)
    program.control(START)
    refused = (mq.MQCC_FAILED, mq.MQRC_HCONN_ASYNC_ACTIVE)
    assert verbs.mqput(program.hconn, hobj, None, None, b"x") == refused
    assert verbs.mqcmit(program.hconn) == refused
    assert program.register(hobj) == refused
    assert program.control(START) == refused
    assert program.control(SUSPEND) == OK
    program.put(hobj, b"x")
    assert program.calls.empty()
    assert program.control(RESUME) == OK
    assert program.next().data == b"x"
    assert program.control(STOP) == OK
    assert verbs.mqcmit(program.hconn) == OK


def test_a_function_uses_the_connection_and_its_unit_of_work(qm: QueueManager, program: Program) -> None:
    hobj = program.open()

    def answer(call: Call) -> None:
        program.put(second, b"re " + (call.data or b""))
        verbs.mqback(program.hconn) if call.md.BackoutCount == 0 else verbs.mqcmit(program.hconn)

    second = program.open("Q2")
    program.put(hobj, b"1")
    program.register(hobj, mq.MQGMO_SYNCPOINT, then=answer)
    program.control(START)
    assert program.bodies(2) == [b"1", b"1"]
    program.control(STOP)
    assert [message.body for message in qm.browse("Q2")] == [b"re 1", b"re 1"]
    assert qm.depth("Q") == 0


def test_control_calls_are_made_if_the_description_asks_for_them(program: Program) -> None:
    hobj = program.open()
    program.register(hobj, Options=EVERY_CALL)
    program.control(START)
    program.control(SUSPEND)
    program.put(hobj, b"x")
    program.control(RESUME)
    found = [program.next().context.CallType for _ in range(3)]
    assert found == [mq.MQCBCT_REGISTER_CALL, mq.MQCBCT_START_CALL, mq.MQCBCT_MSG_REMOVED]
    program.control(STOP)
    stop = program.next().context
    assert (stop.CallType, stop.State) == (mq.MQCBCT_STOP_CALL, mq.MQCS_STOPPED)
    program.control(START)
    program.control(STOP)
    assert verbs.mqclose(program.hconn, hobj, 0) == OK
    assert [program.next().context.CallType for _ in range(2)] == [mq.MQCBCT_START_CALL, mq.MQCBCT_STOP_CALL]
    end = program.next().context
    assert (end.CallType, end.Hobj) == (mq.MQCBCT_DEREGISTER_CALL, mq.MQHO_UNUSABLE_HOBJ)


def test_a_function_that_is_replaced_gets_no_further_calls(program: Program) -> None:
    hobj = program.open()
    program.register(hobj, Options=EVERY_CALL, CallbackArea=1)
    assert program.next().context.CallType == mq.MQCBCT_REGISTER_CALL
    program.register(hobj, Options=EVERY_CALL, CallbackArea=2)
    program.put(hobj, b"x")
    program.control(START)
    found = [(one.context.CallType, one.context.CallbackArea) for one in (program.next(), program.next())]
    assert found == [(mq.MQCBCT_START_CALL, 2), (mq.MQCBCT_MSG_REMOVED, 2)]


@pytest.mark.parametrize("operation", [STOP, SUSPEND])
def test_a_control_inside_a_function_takes_effect_when_it_returns(program: Program, operation: int) -> None:
    hobj = program.open()
    answers = []

    def act(call: Call) -> None:
        if call.data == b"1":
            answers.append(program.control(operation))
            program.put(hobj, b"3")  # the connection still belongs to the consumer

    program.put(hobj, b"1", b"2")
    program.register(hobj, then=act)
    program.control(START)
    assert program.next().data == b"1"
    assert answers == [OK]
    assert verbs.mqcmit(program.hconn) == OK  # waits until the consumer has returned
    assert program.calls.empty()
    assert program.control(RESUME if operation == SUSPEND else START) == OK
    assert program.bodies(2) == [b"2", b"3"]


def test_a_stop_and_a_suspension_can_be_reversed_inside_the_function(program: Program) -> None:
    hobj = program.open()

    def act(call: Call) -> None:
        end, begin = (STOP, START) if call.data == b"1" else (SUSPEND, RESUME)
        assert program.control(end) == program.control(begin) == OK

    program.put(hobj, b"1", b"2", b"3")
    program.register(hobj, then=act)
    program.control(START)
    assert program.bodies(3) == [b"1", b"2", b"3"]


def test_functions_are_registered_and_deregistered_inside_functions(program: Program) -> None:
    first, second = program.open("Q"), program.open("Q2")

    def act(call: Call) -> None:
        if call.context.CallType == mq.MQCBCT_MSG_REMOVED:
            assert program.register(second, Options=EVERY_CALL) == OK
            assert verbs.mqcb(program.hconn, DEREGISTER, None, first, None, None) == OK
            assert program.calls.empty()

    program.put(first, b"1", b"2")
    program.put(second, b"3")
    program.register(first, then=act, Options=mq.MQCBDO_STOP_CALL | mq.MQCBDO_DEREGISTER_CALL)
    program.control(START)
    calls = [program.next() for _ in range(6)]
    assert [(one.context.Hobj, one.context.CallType) for one in calls] == [
        (first, mq.MQCBCT_MSG_REMOVED),
        (second, mq.MQCBCT_REGISTER_CALL),
        (second, mq.MQCBCT_START_CALL),
        (first, mq.MQCBCT_STOP_CALL),
        (first, mq.MQCBCT_DEREGISTER_CALL),
        (second, mq.MQCBCT_MSG_REMOVED),
    ]


def test_a_consumer_is_suspended_and_resumed_alone(program: Program) -> None:
    first, second = program.open("Q"), program.open("Q2")
    program.put(first, b"1")
    program.put(second, b"2")
    assert program.register(first, operation=REGISTER | SUSPEND) == OK
    program.register(second)
    program.control(START)
    assert program.next().data == b"2"
    program.control(SUSPEND)
    assert program.calls.empty()
    assert verbs.mqcb(program.hconn, RESUME, None, first, None, None) == OK
    assert verbs.mqcb(program.hconn, SUSPEND, None, second, None, None) == OK
    program.put(second, b"3")
    program.control(RESUME)
    assert program.next().data == b"1"
    program.control(STOP)
    assert program.calls.empty()


def test_start_wait_calls_on_the_callers_thread_until_it_is_ended(program: Program) -> None:
    hobj = program.open()
    threads = []

    def act(call: Call) -> None:
        threads.append(threading.get_ident())
        if call.data == b"1":
            assert program.control(START_WAIT) == (mq.MQCC_FAILED, mq.MQRC_ENVIRONMENT_ERROR)
            program.control(SUSPEND)
        elif call.data == b"2":
            program.control(STOP)
        else:
            verbs.mqcb(program.hconn, DEREGISTER, None, hobj, None, None)

    program.put(hobj, b"1", b"2", b"3")
    program.register(hobj, then=act)
    assert program.control(START_WAIT) == (mq.MQCC_WARNING, mq.MQRC_CONNECTION_SUSPENDED)
    assert program.control(RESUME) == OK
    assert program.bodies(2) == [b"1", b"2"]
    assert program.control(START_WAIT) == (mq.MQCC_FAILED, mq.MQRC_NO_CALLBACKS_ACTIVE)
    assert program.bodies(1) == [b"3"]
    assert program.control(START_WAIT) == (mq.MQCC_FAILED, mq.MQRC_NO_CALLBACKS_ACTIVE)
    assert set(threads) == {threading.get_ident()}


def test_a_stop_by_another_thread_ends_start_wait(program: Program) -> None:
    program.register(program.open(), Options=mq.MQCBDO_START_CALL)
    stopped = SimpleQueue[tuple[int, int]]()

    def stop() -> None:
        program.next()
        stopped.put(program.control(STOP))

    thread = threading.Thread(target=stop)
    thread.start()
    assert program.control(START_WAIT) == OK
    assert stopped.get(timeout=WAIT_SECONDS) == OK
    thread.join()


def test_a_stop_call_cannot_start_again(program: Program) -> None:
    answers = []
    program.register(program.open(), Options=mq.MQCBDO_STOP_CALL, then=lambda _: answers.append(program.control(START)))
    program.control(START)
    assert program.control(STOP) == OK
    assert answers == [(mq.MQCC_FAILED, mq.MQRC_OPERATION_NOT_ALLOWED)]
    assert program.control(START) == OK


def test_another_thread_resumes_start_wait(program: Program) -> None:
    hobj, ended = program.open(), SimpleQueue[tuple[int, int]]()
    program.put(hobj, b"1", b"2")
    program.register(hobj, then=lambda call: program.control(SUSPEND if call.data == b"1" else STOP))
    assert program.control(START_WAIT) == (mq.MQCC_WARNING, mq.MQRC_CONNECTION_SUSPENDED)
    thread = threading.Thread(target=lambda: ended.put(program.control(RESUME)))
    thread.start()
    assert ended.get(timeout=WAIT_SECONDS) == OK
    thread.join()
    assert program.bodies(2) == [b"1", b"2"]


def test_a_start_stopped_by_its_start_call_fails_with_connection_stopped(program: Program) -> None:
    program.register(program.open(), Options=mq.MQCBDO_START_CALL, then=lambda _: program.control(STOP))
    assert program.control(START) == (mq.MQCC_FAILED, mq.MQRC_CONNECTION_STOPPED)


# ---- gets


def test_browsing_consumers_leave_messages_on_the_queue(qm: QueueManager, program: Program) -> None:
    hobj = program.open()
    program.put(hobj, b"1", b"2")
    program.register(hobj, mq.MQGMO_BROWSE_FIRST | mq.MQGMO_BROWSE_NEXT)
    program.control(START)
    calls = [program.next(), program.next()]
    qm.put("Q", b"3")
    assert [one.brief for one in [*calls, program.next()]] == [
        (mq.MQCBCT_MSG_NOT_REMOVED, body) for body in (b"1", b"2", b"3")
    ]
    program.control(STOP)
    assert qm.depth("Q") == 3


def test_messages_are_chosen_by_the_descriptor(qm: QueueManager, program: Program) -> None:
    for body in (b"a", b"b"):
        qm.put("Q", body, correlation_id=body * 24)
    chosen = {"MatchOptions": mq.MQMO_MATCH_CORREL_ID}
    program.register(program.open(), md={"CorrelId": b"b" * 24, "Version": 2}, gmo=chosen)
    program.control(START)
    assert program.next().data == b"b"
    qm.put("Q", b"c", correlation_id=b"b" * 24)
    assert program.next().data == b"c"


def test_a_long_message_is_passed_whole_and_an_empty_one_without_data(qm: QueueManager, program: Program) -> None:
    long = bytes(200_000)
    program.register(program.open())
    program.control(START)
    qm.put("Q", long)
    assert program.next().data == long
    qm.put("Q", b"")
    call = program.next()
    assert (call.brief, call.context.DataLength) == ((mq.MQCBCT_MSG_REMOVED, None), 0)


@pytest.mark.parametrize("length", [50_000, 100_000])
def test_a_message_is_passed_whole_even_if_its_conversion_makes_it_longer(
    qm: QueueManager, program: Program, length: int
) -> None:
    qm.put("Q", b"\xe9" * length, format="MQSTR", coded_character_set_id=819)
    converts = mq.MQGMO_NO_SYNCPOINT | mq.MQGMO_CONVERT
    assert program.register(program.open(), converts, md={"CodedCharSetId": 1208}) == OK
    assert program.control(START) == OK
    call = program.next()
    assert (call.context.Reason, call.data) == (0, ("é" * length).encode())
    assert program.control(STOP) == OK


def test_a_message_that_is_too_long_is_passed_once_and_stays_on_the_queue(qm: QueueManager, program: Program) -> None:
    program.register(program.open(), MaxMsgLength=3)
    program.control(START)
    qm.put("Q", b"12345")
    call = program.next()
    assert call.brief == (mq.MQCBCT_MSG_NOT_REMOVED, b"123")
    assert (call.context.CompCode, call.context.Reason) == (mq.MQCC_WARNING, mq.MQRC_TRUNCATED_MSG_FAILED)
    assert call.context.DataLength == 5
    qm.put("Q", b"6")
    assert qm.get("Q", match=Match(token=call.gmo.MsgToken)).body == b"12345"
    assert program.next().data == b"6"


def test_a_message_that_may_be_truncated_is_removed(qm: QueueManager, program: Program) -> None:
    program.register(program.open(), mq.MQGMO_ACCEPT_TRUNCATED_MSG, MaxMsgLength=3)
    program.control(START)
    qm.put("Q", b"12345")
    call = program.next()
    assert call.brief == (mq.MQCBCT_MSG_REMOVED, b"123")
    assert call.context.Reason == mq.MQRC_TRUNCATED_MSG_ACCEPTED


def test_consumers_of_a_remote_store_get_messages_and_their_watches_end() -> None:
    with Stores("remote") as stores, connect(stores.make(ManualClock())) as qm:
        qm.create_queue("Q")
        qm.create_queue("Q2")
        program = Program(qm.connect())
        first, second = program.open(), program.open("Q2")
        program.register(first)
        program.register(second)
        for _ in range(2):
            assert program.control(START) == OK
            qm.put("Q", b"1")
            assert program.next().data == b"1"
            qm.put("Q2", b"2")
            assert program.next().data == b"2"
            assert program.control(STOP) == OK
        assert verbs.mqdisc(program.hconn) == OK
        for watch in [one for one in threading.enumerate() if one.name.startswith("inorder consumer ")]:
            watch.join(WAIT_SECONDS)
            assert not watch.is_alive()


def test_a_watch_of_a_server_that_begins_after_its_stop_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on, watch = threading.Event(), Internals.watch

    def late(self: Internals, name: str, changed: Callable[[], None]) -> None:
        assert goes_on.wait(WAIT_SECONDS)
        watch(self, name, changed)

    monkeypatch.setattr(Internals, "watch", late)
    with Stores("remote") as stores, connect(stores.make(ManualClock())) as qm:
        qm.create_queue("Q")
        program = Program(qm.connect())
        program.register(program.open())
        for operation in (START, STOP, START):
            assert program.control(operation) == OK
        goes_on.set()
        qm.put("Q", b"1")
        assert program.next().data == b"1"
        assert verbs.mqdisc(program.hconn) == OK
        for thread in [one for one in threading.enumerate() if one.name.startswith("inorder consumer ")]:
            thread.join(WAIT_SECONDS)
            assert not thread.is_alive()


# ---- events


@pytest.mark.parametrize(("options", "wait"), [(mq.MQGMO_NO_WAIT, 0), (mq.MQGMO_WAIT, mq.MQWI_UNLIMITED)])
def test_without_a_wait_interval_an_empty_queue_causes_no_event(
    qm: QueueManager, program: Program, options: int, wait: int
) -> None:
    program.register(program.open(), options, wait=wait)
    program.control(START)
    qm.put("Q", b"1")
    assert program.next().data == b"1"
    program.control(STOP)
    assert program.calls.empty()


def test_a_wait_interval_of_zero_reports_each_time_that_the_queue_becomes_empty(
    qm: QueueManager, program: Program
) -> None:
    program.register(program.open(), mq.MQGMO_WAIT)
    program.control(START)
    for _ in range(2):
        event = program.next()
        assert event.brief == (mq.MQCBCT_EVENT_CALL, None)
        assert (event.context.CompCode, event.context.Reason) == (mq.MQCC_FAILED, mq.MQRC_NO_MSG_AVAILABLE)
        qm.put("Q", b"1")
        assert program.next().data == b"1"
    assert program.next().context.Reason == mq.MQRC_NO_MSG_AVAILABLE
    program.control(STOP)
    assert program.calls.empty()


def test_each_elapsed_wait_interval_reports_that_there_is_no_message(clock: ManualClock, program: Program) -> None:
    program.register(program.open(), mq.MQGMO_WAIT, wait=5_000)
    program.control(START)
    clock.advance(4)
    assert program.control(SUSPEND) == OK
    assert program.calls.empty()
    program.control(RESUME)
    for _ in range(2):
        clock.advance(5)
        assert program.next().context.Reason == mq.MQRC_NO_MSG_AVAILABLE
    program.control(STOP)


def test_inhibited_gets_are_reported_once_and_consumption_resumes_by_itself(
    qm: QueueManager, clock: ManualClock, program: Program
) -> None:
    program.register(program.open())
    program.control(START)
    qm.alter_queue("Q", get_allowed=False)
    qm.put("Q", b"1")
    event = program.next().context
    found = (event.CallType, event.Reason, event.State)
    assert found == (mq.MQCBCT_EVENT_CALL, mq.MQRC_GET_INHIBITED, mq.MQCS_SUSPENDED_TEMPORARY)
    qm.alter_queue("Q", get_allowed=True)
    clock.advance(1)
    assert program.next().data == b"1"


def test_an_error_suspends_its_consumer_alone(qm: QueueManager, program: Program) -> None:
    hobj, second = program.open(), program.open("Q2")
    program.register(hobj)
    program.register(second)
    queue = connection_of(program.hconn).objects[hobj].queue
    assert queue is not None
    queue.close()
    program.control(START)
    event = program.next().context
    found = (event.CallType, event.Hobj, event.Reason, event.State)
    assert found == (mq.MQCBCT_EVENT_CALL, hobj, mq.MQRC_HOBJ_ERROR, mq.MQCS_SUSPENDED)
    qm.put("Q2", b"1")
    assert program.next().data == b"1"


def test_a_broken_connection_is_reported_to_the_event_handler_and_stops(qm: QueueManager) -> None:
    own = qm.connect()
    program = Program(own)
    program.register(mq.MQHO_NONE, CallbackType=mq.MQCBT_EVENT_HANDLER, CallbackArea=9)
    program.register(program.open())
    program.control(START)
    own.internals.abandon()
    calls = [program.next() for _ in range(2)]
    found = {(one.context.Hobj == 0, one.context.Reason, one.context.State) for one in calls}
    assert found == {(True, mq.MQRC_HCONN_ERROR, mq.MQCS_STOPPED), (False, mq.MQRC_HCONN_ERROR, mq.MQCS_STOPPED)}
    assert program.control(STOP) == OK


def test_a_function_that_fails_does_not_stop_consumption(program: Program, caplog: pytest.LogCaptureFixture) -> None:
    hobj = program.open()

    def act(call: Call) -> None:
        if call.data == b"1":
            raise ValueError("no")

    program.put(hobj, b"1", b"2")
    program.register(hobj, then=act)
    program.control(START)
    assert program.next().data == b"2"
    assert "ValueError: no" in caplog.text


# ---- refusals


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"operation": 0}, mq.MQRC_OPERATION_ERROR),
        ({"operation": REGISTER | DEREGISTER}, mq.MQRC_OPERATION_ERROR),
        ({"operation": START}, mq.MQRC_OPERATION_ERROR),
        ({"operation": SUSPEND}, mq.MQRC_CALLBACK_NOT_REGISTERED),
        ({"operation": DEREGISTER}, mq.MQRC_CALLBACK_NOT_REGISTERED),
        ({"CallbackType": 3}, mq.MQRC_CALLBACK_TYPE_ERROR),
        ({"Options": 2}, mq.MQRC_CBD_OPTIONS_ERROR),
        ({"MaxMsgLength": -2}, mq.MQRC_MAX_MSG_LENGTH_ERROR),
        ({"options": mq.MQGMO_MSG_UNDER_CURSOR}, mq.MQRC_OPTIONS_ERROR),
        ({"options": mq.MQGMO_BROWSE_FIRST | mq.MQGMO_LOCK}, mq.MQRC_OPTIONS_ERROR),
        ({"options": mq.MQGMO_SYNCPOINT | mq.MQGMO_NO_SYNCPOINT}, mq.MQRC_OPTIONS_ERROR),
        ({"options": mq.MQGMO_WAIT, "wait": -2}, mq.MQRC_WAIT_INTERVAL_ERROR),
    ],
)
def test_mqcb_refuses_invalid_operations_options_and_types(
    program: Program, given: dict[str, Any], reason: int
) -> None:
    assert program.register(program.open(), **given) == (mq.MQCC_FAILED, reason)


def test_mqcb_refuses_handles_and_missing_descriptions(program: Program) -> None:
    out, browse = program.open(options=mq.MQOO_OUTPUT), program.open(options=mq.MQOO_BROWSE)
    failed = mq.MQCC_FAILED
    assert program.register(99_999) == (failed, mq.MQRC_HOBJ_ERROR)
    assert program.register(out) == (failed, mq.MQRC_NOT_OPEN_FOR_INPUT)
    assert program.register(browse) == (failed, mq.MQRC_NOT_OPEN_FOR_INPUT)
    assert program.register(out, mq.MQGMO_BROWSE_NEXT) == (failed, mq.MQRC_NOT_OPEN_FOR_BROWSE)
    assert verbs.mqcb(program.hconn, REGISTER, None, browse, None, None) == (failed, mq.MQRC_CBD_ERROR)
    described = layout("CBD").new()
    found = verbs.mqcb(program.hconn, REGISTER, described, browse, None, None)
    assert found == (failed, mq.MQRC_CALLBACK_ROUTINE_ERROR)
    assert verbs.mqcb(program.hconn, REGISTER, bytes(168), browse, None, None) == (failed, mq.MQRC_CBD_ERROR)


@pytest.mark.parametrize(
    ("operation", "codes"),
    [
        (0, (mq.MQCC_FAILED, mq.MQRC_OPERATION_ERROR)),
        (START | STOP, (mq.MQCC_FAILED, mq.MQRC_OPERATION_ERROR)),
        (SUSPEND, (mq.MQCC_FAILED, mq.MQRC_OPERATION_NOT_ALLOWED)),
        (RESUME, (mq.MQCC_FAILED, mq.MQRC_OPERATION_NOT_ALLOWED)),
        (STOP, OK),
    ],
)
def test_mqctl_before_a_start_allows_only_a_stop(program: Program, operation: int, codes: tuple[int, int]) -> None:
    assert program.control(operation) == codes


def test_mqdisc_stops_and_deregisters(qm: QueueManager, program: Program) -> None:
    program.register(program.open(), Options=EVERY_CALL)
    program.control(START)
    assert verbs.mqdisc(program.hconn) == OK
    found = [program.next().context.CallType for _ in range(4)]
    assert found == [mq.MQCBCT_REGISTER_CALL, mq.MQCBCT_START_CALL, mq.MQCBCT_STOP_CALL, mq.MQCBCT_DEREGISTER_CALL]
    assert program.control(STOP) == (mq.MQCC_FAILED, mq.MQRC_HCONN_ERROR)


def test_mqdisc_inside_a_function_ends_the_connection(qm: QueueManager, program: Program) -> None:
    program.register(program.open(), then=lambda _: verbs.mqdisc(program.hconn))
    program.control(START)
    qm.put("Q", b"1")
    assert program.next().data == b"1"
    assert program.control(STOP) == (mq.MQCC_FAILED, mq.MQRC_HCONN_ERROR)
