"""What a call of `inorder.aio` has done when it is cancelled: all of it if it says so, and otherwise nothing.

`aio/test_cancel.py` cancels every call at each of its suspensions on a connection that others use, and asks whether the
connection is free again. Here each call has an effect that is compared, calls of units of work and groups are among
them, and the situation is one of these, with another task's call before it and one after it:

    busy      no more than that
    unit      the call stands in a unit of work that has put a message
    closing   the manager is closed at that place as the task is cancelled
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import io
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from typing import Any, Final, Literal, NamedTuple

import pytest
from tests.helpers.cutting import LIMIT_SECONDS, MOMENTS, Cut, Moment, cut, ended
from tests.helpers.support import Stores, bodies
from tests.tiers import nightly

from inorder import InorderError, NoMessageAvailable, QueueManager, aio, connect
from inorder.aio.sharing import JOINING
from inorder.errors import ConnectionClosed, HandleError
from inorder.stores.seam.protocol import LocalStore

Situation = Literal["busy", "unit", "closing"]
Rival = Callable[[], Coroutine[Any, Any, object]]
STEPS_MAX: Final = 60
NEVER: Final = 0
NO_CALL_FOLLOWS = {"close"}  # the situation `closing` is about these
OF_A_UNIT = {"commit", "back_out", "prepare"}  # they end the unit that they stand in
TWO_STEPS = {"request"}  # the put of the request stands if the wait for the reply is cancelled


async def looked() -> str:
    """A look that finds something."""
    return "found"


def given(onlooker: QueueManager) -> Mapping[str, object]:
    """Arguments by name. Some are refused; a call that is refused is a call, too."""
    first = next(onlooker.browse("Q"))
    return {
        **dict.fromkeys(("name", "queue"), "Q"),
        **{"request": first, "count": 1, "token": "A"},
        **{"body": b"2", "value": 2, "messages": [b"2", b"3"], "stream": io.BytesIO(b"23")},
        **{"work": lambda one: one.put("Q", b"2"), "look": looked, "timeout": 0.001},
    }


def calls_of(kind: type) -> list[str]:
    """Of the calls that `awaited` makes, all in one way, only those that concern units, and one more."""
    calls = [(name, call) for name, call in inspect.getmembers(kind, inspect.iscoroutinefunction) if name[0] != "_"]
    chosen = JOINING | OF_A_UNIT | {"close", "depth"}
    names = [name for name, call in calls if not hasattr(call, "__wrapped__") or name in chosen]
    return [f"{kind.__name__}.{name}" for name in names if kind is aio.Queue or name not in NO_CALL_FOLLOWS]


CALLS = [call for kind in (aio.QueueManager, aio.Queue, aio.GroupWriter, aio.UnitOfWork) for call in calls_of(kind)]
A_FEW = ["QueueManager.put", "QueueManager.get", "QueueManager.depth", "Queue.get", "GroupWriter.put"]


@contextlib.asynccontextmanager
async def owner_of(qm: aio.QueueManager, kind: str, situation: Situation) -> AsyncIterator[tuple[Any, Rival]]:
    """An instance of the class of a call, and a call of another task that is in its way."""
    async with contextlib.AsyncExitStack() as stack:
        unit = (
            await stack.enter_async_context(qm.unit_of_work()) if situation == "unit" or kind == "UnitOfWork" else None
        )
        if unit is not None:
            await qm.put("U", b"u")
        if kind == "Queue":
            queue = await stack.enter_async_context(qm.open("Q", input="shared", browse=True, output=True))
            yield queue, queue.status
        elif kind == "GroupWriter":
            yield await stack.enter_async_context(qm.group("U")), lambda: qm.depth("R")
        else:
            yield unit if kind == "UnitOfWork" else qm, lambda: qm.depth("R")


class Attempt(NamedTuple):
    """A call that is cancelled once.

    Args:
        call: class and name.
    """

    call: str
    situation: Situation
    one: Cut

    async def make(self, store: LocalStore, arguments: Mapping[str, object]) -> bool:
        """Whether the call has said that it has happened, for good."""
        kind, name = self.call.split(".")
        is_final_at_end = self.situation == "unit" or kind == "GroupWriter"
        has_said, rivals, closing = False, list[asyncio.Task[object]](), list[asyncio.Task[None]]()

        async def work() -> None:
            nonlocal has_said
            async with owner_of(qm, kind, self.situation) as (owner, rival):
                method = getattr(owner, name)
                parameters = inspect.signature(method).parameters.values()
                needed = [one for one in parameters if one.default is one.empty and one.name in arguments]
                positional = [arguments[one.name] for one in needed if one.kind is not one.KEYWORD_ONLY]
                named = {one.name: arguments[one.name] for one in needed if one.kind is one.KEYWORD_ONLY}
                rivals.append(asyncio.create_task(rival()))
                await asyncio.sleep(0)  # it has its turn now
                rivals.append(asyncio.create_task(rival()))  # behind this call
                try:
                    await method(*positional, **named)
                except ConnectionClosed:  # it has not happened
                    raise
                except InorderError:  # it was refused, and that is its answer
                    pass
                has_said = not is_final_at_end
            has_said = True

        def close() -> None:
            closing.append(asyncio.create_task(qm.close()))
            Cut.cancel(self.one)

        if self.situation == "closing":
            self.one.cancel = close  # type: ignore[method-assign]
        async with aio.connect(store, connections=1) as qm:
            task = asyncio.create_task(self.one.cutting(work()))
            with contextlib.suppress(asyncio.CancelledError, *([InorderError] if self.situation == "closing" else [])):
                await task
            for answer in await asyncio.gather(*rivals, *closing, return_exceptions=True):
                is_closed = closing or (kind == "Queue" and isinstance(answer, HandleError))
                assert is_closed or not isinstance(answer, BaseException), answer
            if not closing:
                await self._goes_on(qm)
        return has_said

    async def _goes_on(self, qm: aio.QueueManager) -> None:
        while qm.connections_in_use:  # what the task has left is closed in the thread
            await asyncio.sleep(0.001)
        lanes = qm._shared.lanes
        assert lanes.free == [lane for lane in lanes.all if lane in lanes.free], "a connection is free twice"
        await qm.put("R", b"goes on")
        assert (await qm.get("R")).body == b"goes on"


def state(onlooker: QueueManager, *, of_all: bool) -> object:
    """What there is now; of the unit of work alone, or of all."""
    queues = [one.name for one in onlooker.queues()]
    messages = {name: bodies(onlooker, name) for name in ("Q", "R", "U") if name in queues and (of_all or name == "U")}
    return messages, len(onlooker.inspect.units()), queues if of_all else None


def tried(call: str, situation: Situation, moment: Moment, step: int, patched: pytest.MonkeyPatch) -> tuple[Any, ...]:
    """Whether the cancel came, whether the call said that it had happened; the state before, and after."""
    name = call.split(".")[1]
    of_all = situation != "unit" or name in JOINING  # other calls are no part of the unit
    with Stores("memory") as stores, connect(store := stores.make()) as onlooker:
        for queue in ("Q", "R", "U"):
            onlooker.create_queue(queue)
        onlooker.put("Q", b"1")
        before = state(onlooker, of_all=of_all)
        with cut(patched, step, moment) as one:
            has_said = ended(Attempt(call, situation, one).make(store, given(onlooker)))
        return one.came, has_said, before, state(onlooker, of_all=of_all)


def cancelled_everywhere(call: str, situation: Situation, moment: Moment, patched: pytest.MonkeyPatch) -> None:
    _, has_said, _, done = tried(call, situation, moment, NEVER, patched)
    assert has_said, "it does not come to its end"
    for step in range(1, STEPS_MAX):
        came, has_said, before, after = tried(call, situation, moment, step, patched)
        if call.split(".")[1] not in TWO_STEPS:
            assert after == (done if has_said else before), f"{'done' if has_said else 'cancelled'} at {step}"
        if not came:
            assert step > 1 or moment == "begun", "it was never cancelled"  # for some calls no thread begins anything
            return
    raise AssertionError(f"{call} has {STEPS_MAX} steps, or does not come to its end")


def is_apart(call: str, situation: Situation) -> bool:
    """Whether a call ends the unit of work that it would stand in."""
    kind, name = call.split(".")
    return situation == "unit" and (kind == "UnitOfWork" or name in OF_A_UNIT)


@pytest.mark.parametrize(
    ("call", "situation", "moment"),
    [
        pytest.param(call, situation, moment, marks=[] if call in A_FEW and situation == "closing" else nightly)
        for call in CALLS
        for situation in ("busy", "unit", "closing")
        for moment in MOMENTS
        if not is_apart(call, situation)
    ],
)
def test_a_call_that_is_cancelled_has_had_its_effect_and_says_so_or_has_had_none(
    call: str, situation: Situation, moment: Moment, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancelled_everywhere(call, situation, moment, monkeypatch)


def test_a_cancel_while_the_watch_of_a_queue_ends_leaves_no_error_in_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that wants the queue closed everywhere ends the thread that watched it for gets, and waits for its end."""

    async def main(one: Cut) -> bool:
        errors: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
        async with aio.connect(connections=1) as qm:
            await qm.create_queue("Q")
            with contextlib.suppress(NoMessageAvailable):
                await qm.get("Q", wait=0.001)
            watch = qm._shared._watches["Q"]
            task = asyncio.create_task(one.cutting(qm._shared.let_go("Q")))
            with contextlib.suppress(asyncio.CancelledError):
                await task
            assert watch._lane.is_over
        await asyncio.sleep(0)
        assert errors == []
        return one.came

    for moment in MOMENTS:
        step = 1
        while True:
            with cut(monkeypatch, step, moment) as one:
                if not ended(main(one)):
                    break
            step += 1
        assert step > 1 or moment == "begun"


async def test_a_queue_is_not_closed_on_a_connection_that_a_task_has_taken_meanwhile() -> None:
    async with aio.connect(connections=2) as qm:
        await qm.create_queue("Q")
        await asyncio.gather(qm.put("Q", b"1"), qm.put("Q", b"2"))
        first, second = qm._shared.lanes.all
        go_on = threading.Event()
        first.post(lambda: go_on.wait(LIMIT_SECONDS))
        await asyncio.sleep(0)
        closing = asyncio.create_task(qm._shared.let_go("Q"))
        await asyncio.sleep(0)  # it waits for the first connection now
        qm._shared.lanes.free.remove(second)  # the next task gets it
        qm._shared.lanes.free.append(second)
        async with qm.unit_of_work():
            await qm.get("Q")
            assert second.has_unit
            go_on.set()
            await closing
            assert second.has_queues
