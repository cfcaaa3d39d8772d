"""Limits on the calls of tasks in all processes together: how many at once, and how many in a period."""

from __future__ import annotations

import enum
import threading
from collections import Counter
from typing import Any, cast

import pytest
from tests.helpers.support import LIMIT_SECONDS, until
from tests.helpers.working import Heard, at_work

from inorder import Message, QueueManager
from inorder.errors import ArgumentError
from inorder.testing import ManualClock
from inorder.work import Limit, Outcome, Tasks, limits
from inorder.work.limits import KEY, LIMITS, key_of

pytest.importorskip("msgspec", reason="without inorder[work] tasks have no arguments")


class Mode(enum.Enum):
    FAST = "fast"


class Running:
    """Calls that run until they are released; counts how many of each key ran at once."""

    def __init__(self) -> None:
        self.now, self.most, self.order = Counter[str](), Counter[str](), list[str]()
        self._changed = threading.Condition()
        self._released = 0

    def call(self, key: str) -> None:
        with self._changed:
            self.now[key] += 1
            self.most[key] = max(self.most[key], self.now[key])
            self.order.append(key)
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: self._released > 0, LIMIT_SECONDS)
            self._released -= 1
            self.now[key] -= 1

    def release(self, count: int) -> None:
        with self._changed:
            self._released += count
            self._changed.notify_all()

    def until(self, *keys: str, clock: ManualClock | None = None) -> None:
        """Waits until exactly these calls run, and advances the clock meanwhile."""
        for _ in range(100):
            if clock is not None:
                clock.advance(2)
            with self._changed:
                if self._changed.wait_for(lambda: +self.now == Counter(keys), LIMIT_SECONDS / 100):
                    return
        raise AssertionError(self.now, keys)


@pytest.mark.every_store
def test_calls_of_a_key_at_once_are_limited_and_other_messages_pass_them(qm: QueueManager) -> None:
    tasks, running, plain, heard = Tasks(), Running(), threading.Event(), Heard()

    @tasks.task(limit=Limit(concurrency=1, key="customer"))
    def bill(customer: str) -> None:
        running.call(customer)

    @tasks.task
    def other() -> None:
        plain.set()

    with qm.unit_of_work():
        for customer in ("anna", "anna", "anna", "o'hara", "bert"):
            bill.put(customer)
        other.put()
    with qm.worker(tasks, threads=2, log=heard), qm.worker(tasks, threads=2, log=heard):  # as two processes do
        running.until("anna", "o'hara", "bert")
        assert plain.wait(LIMIT_SECONDS), "a fourth thread passes the messages of anna"
        running.release(5)
        heard.attempts(6)
    assert running.most == {"anna": 1, "o'hara": 1, "bert": 1}
    assert (qm.depth("TASKS"), qm.inspect.units()) == (0, [])


@pytest.mark.every_store
def test_calls_of_a_task_at_once_are_limited_and_a_failed_call_frees_its_permit(qm: QueueManager) -> None:
    tasks, running, heard = Tasks(), Running(), Heard()

    @tasks.task(limit=Limit(concurrency=2), attempts=1)
    def fetch(number: int) -> None:
        running.call("fetch")
        if number % 2:
            raise ValueError(number)

    with qm.unit_of_work():
        for number in range(6):
            fetch.put(number)
    with qm.worker(tasks, threads=4, log=heard):
        running.until("fetch", "fetch")
        running.release(6)
        heard.attempts(6)
    assert running.most["fetch"] == 2
    assert Counter(heard.outcomes) == {Outcome.DONE: 3, Outcome.DEAD: 3}


@pytest.mark.every_store
def test_the_rate_of_calls_is_limited_and_spread_over_the_period(qm: QueueManager, clock: ManualClock) -> None:
    tasks = Tasks()

    @tasks.task(limit=Limit(rate="20/min"), attempts=1)
    def call(number: int) -> None:
        if number == 0:
            raise ValueError("this call has spent its permit, too")

    @tasks.task
    def free() -> None: ...

    with qm.unit_of_work():
        for number in range(25):
            call.put(number)
        free.put()
    ended = [Counter(one.outcome for one in tasks.drain(qm, threads=2))]
    for _ in range(3):
        clock.advance(29.9)
        ended.append(Counter(one.outcome for one in tasks.drain(qm)))
        clock.advance(0.2)
        ended.append(Counter(one.outcome for one in tasks.drain(qm)))
    done = [one.total() for one in ended]
    assert done == [11, 0, 10, 0, 5, 0, 0], "10 at a time, every 30 s"
    assert (ended[0][Outcome.DEAD], qm.depth("TASKS")) == (1, 0)


def test_keys_take_turns(qm: QueueManager) -> None:
    tasks, order = Tasks(), list[str]()

    @tasks.task(limit=Limit(concurrency=5, key="customer"))
    def bill(customer: str) -> None:
        order.append(customer)

    with qm.unit_of_work():
        for customer in "aaaaabc":
            bill.put(customer)
    tasks.drain(qm)
    assert "".join(order[:3]) == "abc", "those with few jobs need not wait for those with many"
    assert sorted(order) == sorted("aaaaabc")


def test_a_task_may_have_several_limits(qm: QueueManager) -> None:
    tasks, running = Tasks(), Running()

    @tasks.task(limit=(Limit(concurrency=1, key="customer"), Limit(concurrency=2)))
    def bill(customer: str) -> None:
        running.call("a call")

    with qm.unit_of_work():
        for customer in "abcabc":
            bill.put(customer)
    with at_work(qm, tasks, threads=4) as (_, heard):
        running.until("a call", "a call")
        running.release(6)
        heard.attempts(6)
    assert running.most["a call"] == 2


def test_a_call_that_may_not_run_spends_no_permit_of_a_rate(qm: QueueManager, clock: ManualClock) -> None:
    tasks, running = Tasks(), Running()

    @tasks.task(limit=(Limit(rate="1/min"), Limit(concurrency=1)))
    def call() -> None:
        running.call("a call")

    call.put(qm=qm)
    with at_work(qm, tasks) as (_, heard):
        running.until("a call")
        clock.advance(61)
        call.put(qm=qm)
        assert tasks.drain(qm) == []
        running.release(2)
        heard.attempts(2)


def test_a_default_argument_has_the_key_of_the_same_given_value(qm: QueueManager) -> None:
    tasks = Tasks()

    @tasks.task(limit=Limit(concurrency=1, key="mode"))
    def call(mode: Mode = Mode.FAST) -> None: ...

    assert call.message().properties[KEY] == call.message(Mode.FAST).properties[KEY] == "fast"


def test_a_plain_message_has_its_key_in_its_arguments(qm: QueueManager, clock: ManualClock) -> None:
    tasks, running = Tasks(), Running()

    @tasks.task(name="bill", limit=Limit(concurrency=1, key="customer"))
    def bill(customer: int = 17) -> None:
        running.call(str(customer))

    qm.create_queue("TASKS")
    for body in ({}, {"customer": 17}, {"customer": 17}):
        qm.put_json("TASKS", body, properties={"task": "bill"})
    with at_work(qm, tasks, threads=3) as (_, heard):
        for number in range(1, 4):
            running.until("17", clock=clock)  # those without a permit are hidden: no selector could skip them
            running.release(1)
            heard.attempts(number)
    assert running.most["17"] == 1


@pytest.mark.parametrize("body", [b"no json", b"[]", b'{"customer":[1]}', b"[" * 100_000])
def test_a_message_without_arguments_is_a_dead_letter(qm: QueueManager, body: bytes) -> None:
    tasks = Tasks()

    @tasks.task(name="bill", limit=Limit(concurrency=1, key="customer"))
    def bill(customer: str) -> None: ...

    qm.create_queue("TASKS")
    qm.put("TASKS", body, properties={"task": "bill"})
    assert [one.outcome for one in tasks.drain(qm)] == [Outcome.DEAD]


def test_on_a_queue_with_strict_order_a_message_without_a_permit_holds_up_the_others(
    qm: QueueManager, clock: ManualClock
) -> None:
    tasks, order = Tasks(), list[str]()
    qm.create_queue("STRICT", read_order="strict")

    @tasks.task("STRICT", limit=Limit(concurrency=1, key="customer"))
    def bill(customer: str) -> None:
        order.append(customer)

    with qm.unit_of_work():
        for customer in "aabab":
            bill.put(customer)
    tasks.drain(qm, threads=3)
    assert "".join(order) == "aabab"


def test_messages_of_more_keys_than_one_selector_names_are_hidden(
    qm: QueueManager, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "PASSED_MAX", 5)
    tasks, running = Tasks(), Running()
    keys = [f"customer {number}" for number in range(8)]

    @tasks.task(limit=Limit(concurrency=1, key="customer"))
    def bill(customer: str) -> None:
        running.call(customer)

    with qm.unit_of_work():
        for key in keys * 2:
            bill.put(key)
    with at_work(qm, tasks, threads=9) as (_, heard):
        running.until(*keys)
        until(lambda: sum(one.delayed for one in qm.inspect.overview()) == 3, "three messages to be hidden")
        running.release(16)
        heard.attempts(13)
        clock.advance(2)
        heard.attempts(16)
    assert set(running.most.values()) == {1}


def test_no_permit_stays_on_the_queue_of_limits(qm: QueueManager, clock: ManualClock) -> None:
    tasks = Tasks()

    @tasks.task(limit=Limit(concurrency=3, rate="1000/s"))
    def call() -> None: ...

    for _ in range(3):
        call.put(qm=qm)
    tasks.drain(qm)
    clock.advance(1)
    assert qm.depth(LIMITS) == 0


@pytest.mark.parametrize(
    ("body", "key"),
    [
        (b'{"k":"anna"}', "anna"),
        (b'{"k":7}', "7"),
        (b'{"k":{"b":1,"a":[2]}}', '{"a": [2], "b": 1}'),
        (b"{}", '"other"'[1:-1]),
        (b'{"k":"o\'hara"}', None),
        (b'{"k":"' + 61 * b"x" + b'"}', None),
    ],
)
def test_a_key_is_the_text_of_its_argument_or_a_hash_of_it(body: bytes, key: str | None) -> None:
    found = key_of("k", body, "other")
    assert found == key if key is not None else len(found or "") == 64


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda tasks: Limit(), "concurrency must be given, unless rate is given"),
        (lambda tasks: Limit(concurrency=0), "concurrency must be"),
        (lambda tasks: Limit(rate="100"), 'rate must be a text such as "100/min"'),
        (lambda tasks: Limit(rate="0/s"), 'rate must be a text such as "100/min"'),
        (lambda tasks: Limit(rate="1/s", **{"key": cast(Any, 3)}), "key must be the name of a parameter"),
        (lambda tasks: tasks.task(limit="1/s"), "limit must be a Limit, or a tuple of them"),
        (
            lambda tasks: tasks.task(limit=(Limit(rate="1/s", key="a"), Limit(rate="1/s", key="b"))),
            "Limits with the same key",
        ),
        (lambda tasks: tasks.task(limit=Limit(rate="1/s", key="no"))(_bill), "key must be a parameter of the function"),
        (lambda tasks: tasks.task("Q", limit=Limit(rate="1/s"))(_see), "limit must be left out for a function of"),
    ],
)
def test_limits_that_cannot_work_are_refused(make: Any, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        make(Tasks())


def _bill(customer: str) -> None:
    raise AssertionError(customer)


def _see(message: Message) -> None:
    raise AssertionError(message)
