"""Immediate calls without a store, and hooks around calls."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.helpers.working import worked

from inorder import Message, QueueManager
from inorder.errors import ArgumentError, CallerError
from inorder.work import JobFailed, Outcome, Tasks

pytest.importorskip("msgspec", reason="without inorder[work] tasks have no arguments")


def test_each_put_calls_its_task_at_once_and_the_tasks_that_it_sends() -> None:
    tasks, seen = Tasks(), list[object]()

    @tasks.task(keep=60)
    def first(number: int) -> int:
        second.put(number)
        if number < 0:
            raise ValueError(number)
        return number + 1

    @tasks.task
    async def second(number: int) -> None:
        seen.append(number)

    with tasks.eager() as qm:
        assert first.put(1).result() == 2
        assert seen == [1]
        with qm.unit_of_work():
            second.put(2)
            assert seen == [1]
        assert [one.outcome for one in tasks.drain(qm)] == [Outcome.DONE]
        first.put(3, delay=60)
        with pytest.raises(JobFailed, match=r"(?s)Traceback.*ValueError: -1"):
            first.put(-1)
        assert seen == [1, 2]
        with pytest.raises(CallerError, match="needs qm="):
            asyncio.run(second.put_async(5))
    with pytest.raises(CallerError, match="here is none of these"):
        first.put(4)


def test_hooks_are_around_each_call_and_see_its_exception(qm: QueueManager) -> None:
    tasks, seen = Tasks(), list[object]()

    @tasks.around
    @contextmanager
    def outer(task: str, message: Message) -> Iterator[None]:
        seen.append(f"begin {task} {message.body.decode()}")
        try:
            yield
        except ValueError as error:
            seen.append(error.args)
            raise
        seen.append("end")

    @tasks.task(name="add", dead_on=ValueError)
    def add(number: int) -> None:
        seen.append(number)
        if number < 0:
            raise ValueError("no")

    @tasks.task("Q", name="see")
    def see(message: Message) -> None:
        seen.append(message.body)

    @tasks.around
    @contextmanager
    def inner(task: str, message: Message) -> Iterator[None]:
        seen.append("inner")
        yield

    for number in (1, -1):
        add.put(number, qm=qm)
        worked(qm, tasks)
    qm.put("Q", b"plain")
    worked(qm, tasks)
    assert seen == [
        *('begin add {"number":1}', "inner", 1, "end"),
        *('begin add {"number":-1}', "inner", -1, ("no",)),
        *("begin see plain", "inner", b"plain", "end"),
    ]
    with pytest.raises(ArgumentError, match="hook must be"):
        tasks.around("no")  # type: ignore[type-var]


def test_a_hook_of_an_async_function_is_in_its_asyncio_task(qm: QueueManager) -> None:
    tasks, seen = Tasks(), list[object]()

    @tasks.around
    @contextmanager
    def noted(task: str, message: Message) -> Iterator[None]:
        seen.append(asyncio.current_task())
        yield

    @tasks.task
    async def add() -> None:
        seen.append(asyncio.current_task())

    add.put(qm=qm)
    worked(qm, tasks)
    assert seen[0] is seen[1] is not None
