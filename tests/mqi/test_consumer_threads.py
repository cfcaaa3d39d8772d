"""MQCTL called by several threads: a start, a stop, a suspension and a resumption at the same time (M-13)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from queue import SimpleQueue

import pytest
from tests.helpers.support import until
from tests.mqi.consuming import OK, RESUME, START, STOP, SUSPEND, WAIT_SECONDS, Call
from tests.mqi.consuming import ConsumingProgram as Program

from inorder import QueueManager
from inorder.mqi import verbs
from inorder.mqi.connections import MqiConnection, connection_of
from inorder.mqi.consumers import of_connection


@pytest.fixture
def program(qm: QueueManager) -> Iterator[Program]:
    made = Program(qm.connect())
    yield made
    verbs.mqdisc(made.hconn)


def test_only_one_thread_calls_functions_although_another_stops_and_starts(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    program.register(program.open())
    end_of_call, answers = MqiConnection.__exit__, list[tuple[int, int]]()

    def stop_and_start() -> None:
        answers.extend((program.control(STOP), program.control(START)))

    def end_first_call(connection: MqiConnection, *raised: object) -> None:
        monkeypatch.setattr(MqiConnection, "__exit__", end_of_call)
        end_of_call(connection, *raised)
        other = threading.Thread(target=stop_and_start)
        other.start()
        other.join()

    monkeypatch.setattr(MqiConnection, "__exit__", end_first_call)
    answers.append(program.control(START))
    assert answers == [OK] * 3
    assert [one.name for one in threading.enumerate()].count("inorder consumers") == 1
    assert program.control(STOP) == OK


@pytest.mark.parametrize(("end", "begin"), [(STOP, START), (SUSPEND, RESUME)])
def test_a_stop_or_suspension_by_another_thread_returns_when_the_function_reverses_it(
    program: Program, end: int, begin: int
) -> None:
    hobj, entered, answers = program.open(), threading.Event(), SimpleQueue[tuple[int, int]]()
    consumers = of_connection(connection_of(program.hconn))

    def act(call: Call) -> None:
        if call.data == b"1":
            entered.set()
            until(lambda: consumers._state == end, "the other thread waits for this function")
            assert program.control(begin) == OK

    program.put(hobj, b"1", b"2")
    program.register(hobj, then=act)
    program.control(START)
    assert entered.wait(WAIT_SECONDS)
    ending = threading.Thread(target=lambda: answers.put(program.control(end)), daemon=True)
    ending.start()
    assert program.bodies(2) == [b"1", b"2"]
    assert answers.get(timeout=WAIT_SECONDS) == OK


def test_another_thread_resumes_before_the_function_returns(program: Program) -> None:
    """The binding for Node does this for each message: its consumer suspends, and the main thread resumes."""
    hobj, go, done = program.open(), threading.Event(), threading.Event()

    def act(call: Call) -> None:
        if call.data == b"1":
            program.control(SUSPEND)
            go.set()
            assert done.wait(WAIT_SECONDS)

    program.put(hobj, b"1", b"2")
    program.register(hobj, then=act)
    program.control(START)
    assert go.wait(WAIT_SECONDS)
    assert program.control(RESUME) == OK
    done.set()
    assert program.bodies(2) == [b"1", b"2"]
