"""A cancel at any step of a call of `inorder.aio`: the call has happened and says so, or has not happened.

Each piece of work is cancelled at its first step, its second, and so on until it ends before that step, in the three
moments of `tests.helpers.cutting`. Then the queue shows what has happened, and everything else must still work. This
is done with free connections, and with one connection that another task uses. Tasks that were cancelled while they
waited for a connection used to occupy it forever.

Below, the effect of each call of units of work, groups and open queues is compared, with a call of another task before
it and one after it, in one of these situations:

    busy      nothing more
    unit      the call is in a unit of work that has put a message
    closing   the manager is closed as the task is cancelled
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import inspect
import io
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final, Literal, NamedTuple

import pytest
from tests.helpers.cutting import MOMENTS, Cut, Moment, cut, ended
from tests.helpers.support import LIMIT_SECONDS, Stores, bodies, room_of
from tests.tiers import nightly

from inorder import InorderError, NoMessageAvailable, QueueManager, aio, connect
from inorder.aio.jobs import finished
from inorder.aio.lanes import Lane
from inorder.aio.sharing import JOINING
from inorder.client.queue import Queue
from inorder.errors import ConnectionClosed, HandleError, NotFound
from inorder.stores.seam.protocol import LocalStore

STEPS_MAX: Final = 60
CONFIRM_ID = 1


class Piece(NamedTuple):
    """Work to be cancelled.

    Args:
        work: what the task does.
        before: the bodies on the queue; `done`: those on it after the work.
        comes: whether a message is put while the work waits.
    """

    work: Callable[[aio.QueueManager], Awaitable[object]]
    before: list[bytes]
    done: list[bytes]
    comes: bool = False


async def unit(qm: aio.QueueManager) -> None:
    async with qm.unit_of_work():
        await qm.get("Q")
        await qm.put("Q", b"2")


async def waiting_unit(qm: aio.QueueManager) -> None:
    async with qm.unit_of_work():
        await qm.get("Q", wait=600)
        await qm.put("Q", b"2")


async def unit_that_waits_for_a_second(qm: aio.QueueManager) -> None:
    async with qm.unit_of_work():
        await qm.put("Q", b"3")
        await qm.get("Q", wait=600)


async def group(qm: aio.QueueManager) -> None:
    async with qm.group("Q") as one:
        await one.put(b"1")
        await one.put(b"2")


async def got_group(qm: aio.QueueManager) -> None:
    assert [message.body async for message in qm.get_group("Q", wait=600)] == [b"1"]


async def handle(qm: aio.QueueManager) -> None:
    async with qm.open("Q") as queue:
        await queue.get(wait=600)


async def brief_put(qm: aio.QueueManager) -> None:
    await qm.run(lambda one: None, is_brief=True)  # connects, so that the next call can be made at once
    await qm.run(lambda one: one.put("Q", b"1"), is_brief=True)


async def brief_get(qm: aio.QueueManager) -> None:
    await qm.run(lambda one: None, is_brief=True)
    await qm.run(lambda one: one.internals.get_if("Q", lambda message: None), is_brief=True)


async def browse(qm: aio.QueueManager) -> None:
    assert [message.body async for message in qm.browse("Q")] == [b"1"]


async def stream(qm: aio.QueueManager) -> None:
    await qm.put_stream("Q", io.BytesIO(b"12"), chunk=1)


async def got_stream(qm: aio.QueueManager) -> None:
    await qm.get_stream("Q", io.BytesIO(), wait=600)


PIECES = {
    "put": Piece(lambda qm: qm.put("Q", b"1"), [], [b"1"]),
    "get": Piece(lambda qm: qm.get("Q"), [b"1"], []),
    "get that waits": Piece(lambda qm: qm.get("Q", wait=600), [], [], comes=True),
    "get outside of units": Piece(lambda qm: qm.get("Q", syncpoint=False, wait=600), [b"1"], []),
    "get of many": Piece(lambda qm: qm.get_many("Q", 2, wait=600), [b"1", b"2"], []),
    "get under a confirm id": Piece(lambda qm: qm.get("Q", confirm_id=CONFIRM_ID, wait=600), [b"1"], []),
    "unit": Piece(unit, [b"1"], [b"2"]),
    "unit whose get waits": Piece(waiting_unit, [], [b"2"], comes=True),
    "unit that waits amid": Piece(unit_that_waits_for_a_second, [], [b"3"], comes=True),
    "group": Piece(group, [], [b"1", b"2"]),
    "get of a group": Piece(got_group, [b"1"], []),
    "handle": Piece(handle, [b"1"], []),
    "brief put": Piece(brief_put, [], [b"1"]),
    "brief get": Piece(brief_get, [b"1"], []),
    "browse": Piece(browse, [b"1"], [b"1"]),
    "stream": Piece(stream, [], [b"1", b"2"]),
    "get of a stream": Piece(got_stream, [b"1"], []),
}


@pytest.mark.parametrize("connections", ["free", "busy"])
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("what", PIECES)
def test_a_call_that_is_cancelled_has_happened_and_says_so_or_has_not(
    stores: Stores, what: str, moment: Moment, connections: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = stores.make()
    with connect(store) as onlooker:
        onlooker.create_queue("Q")
        for step in range(1, STEPS_MAX):
            with contextlib.suppress(NotFound):
                onlooker.undo("Q", CONFIRM_ID)
            onlooker.admin.clear_queue("Q")
            for body in PIECES[what].before:
                onlooker.put("Q", body)
            with cut(monkeypatch, step, moment) as one:
                has_ended = ended(_cancelled(store, onlooker, PIECES[what], one, is_busy=connections == "busy"))
            if has_ended:
                assert step > 1, "it was never cancelled"
                return
    raise AssertionError(f"{what} has {STEPS_MAX} steps, or does not come to its end")


@contextlib.asynccontextmanager
async def used(lane: Lane) -> AsyncIterator[None]:
    """Occupies a lane with another task's call until the tasks that the block starts have had time to wait for it."""
    go_on = threading.Event()

    async def use() -> None:
        async with lane:
            await finished(lane.submit(lambda _: go_on.wait(LIMIT_SECONDS), is_revocable=False))

    other = asyncio.create_task(use())
    try:
        await asyncio.sleep(0)
        yield
        for _ in range(5):  # turns for those tasks
            await asyncio.sleep(0)
    finally:
        go_on.set()
        await other


@contextlib.asynccontextmanager
async def only_lane_used(qm: aio.QueueManager) -> AsyncIterator[None]:
    async with used(await qm._shared.lanes.borrow()):
        yield


async def _cancelled(store: LocalStore, onlooker: QueueManager, piece: Piece, one: Cut, *, is_busy: bool) -> bool:
    """Cancels the work; returns whether it had ended before."""
    has_said = False

    async def work() -> None:
        nonlocal has_said
        await piece.work(qm)
        has_said = True
        await asyncio.sleep(60)  # a cancel that was too late for the call arrives here

    async with aio.connect(store, connections=1 if is_busy else 2) as qm:
        async with only_lane_used(qm) if is_busy else contextlib.nullcontext():
            task = asyncio.create_task(one.cutting(work()))
        if piece.comes:
            while not (task.done() or qm._shared._watches or _waits(qm, onlooker)):
                await asyncio.sleep(0.001)
            onlooker.put("Q", b"1")
        while not (task.done() or (has_said and not one.came)):
            await asyncio.sleep(0.001)
        was_earlier = not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while qm.connections_in_use:  # the thread closes what the task left open
            await asyncio.sleep(0.001)
        found = bodies(onlooker)
        left = [b"1"] if piece.comes else piece.before
        assert found == (piece.done if has_said else left), f"{'done' if has_said else 'cancelled'}: {found}"
        assert not onlooker.inspect.units() or "confirm" in {unit.kind for unit in onlooker.inspect.units()}
        await qm.put("Q", b"goes on", priority=9)  # the manager still works
        assert (await qm.get("Q", wait=600)).body == b"goes on"
    return was_earlier


def _waits(qm: aio.QueueManager, onlooker: QueueManager) -> bool:
    """Whether a call waits in its thread."""
    owners = {lane.connection.internals.owner for lane in qm._shared.lanes.all if lane.connection is not None}
    return any(room_of(onlooker).is_asleep(owner) for owner in owners)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="asyncio.timeout is of Python 3.11")
def test_a_timeout_too_late_for_a_call_raises_no_error_in_or_after_its_block(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is returned, no TimeoutError is raised, and no cancel arrives after the block."""
    store = stores.make()
    with connect(store) as onlooker:
        onlooker.create_queue("Q")
        onlooker.put("Q", b"1")

        async def work() -> bytes:
            async with aio.connect(store) as qm, asyncio.timeout(None) as limit:  # type: ignore[attr-defined]
                one.cancel = lambda: limit.reschedule(0)  # type: ignore[method-assign]
                message = await qm.get("Q")
            assert limit.expired()
            for _ in range(5):  # a pending cancel would arrive now
                await asyncio.sleep(0)
            return message.body

        with cut(monkeypatch, COMMIT, "begun") as one:
            assert ended(one.cutting(work())) == b"1"
        assert one.came is False
        assert bodies(onlooker) == []


COMMIT = 3  # the third step of the thread, for a task that connects and gets


Situation = Literal["busy", "unit", "closing"]
Rival = Callable[[], Coroutine[Any, Any, object]]
NEVER: Final = 0
NO_CALL_FOLLOWS = {"close"}  # the situation `closing` covers it
OF_A_UNIT = {"commit", "back_out", "prepare"}  # they end their unit
TWO_STEPS = {"request"}  # the put of the request stands if the wait for the reply is cancelled


async def looked() -> str:
    """A look that finds something."""
    return "found"


def given(onlooker: QueueManager) -> Mapping[str, object]:
    """Arguments by name. Some calls refuse theirs, which is an answer, too."""
    first = next(onlooker.browse("Q"))
    return {
        **dict.fromkeys(("name", "queue"), "Q"),
        **{"request": first, "count": 1, "token": "A"},
        **{"body": b"2", "value": 2, "messages": [b"2", b"3"], "stream": io.BytesIO(b"23")},
        **{"work": lambda one: one.put("Q", b"2"), "look": looked, "timeout": 0.001},
    }


def calls_of(kind: type) -> list[str]:
    """The calls of a class. Those made through `awaited` work alike: of them, only those of units, and one more."""
    calls = [(name, call) for name, call in inspect.getmembers(kind, inspect.iscoroutinefunction) if name[0] != "_"]
    chosen = JOINING | OF_A_UNIT | {"close", "depth"}
    names = [name for name, call in calls if not hasattr(call, "__wrapped__") or name in chosen]
    return [f"{kind.__name__}.{name}" for name in names if kind is aio.Queue or name not in NO_CALL_FOLLOWS]


CALLS = [call for kind in (aio.QueueManager, aio.Queue, aio.GroupWriter, aio.UnitOfWork) for call in calls_of(kind)]
A_FEW = ["QueueManager.put", "QueueManager.get", "QueueManager.depth", "Queue.get", "GroupWriter.put"]


@contextlib.asynccontextmanager
async def owner_of(qm: aio.QueueManager, kind: str, situation: Situation) -> AsyncIterator[tuple[Any, Rival]]:
    """An object of the call's class, and a call for another task that needs the same connection."""
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
        call: its class and name.
    """

    call: str
    situation: Situation
    one: Cut

    async def make(self, store: LocalStore, arguments: Mapping[str, object]) -> bool:
        """Makes the call; returns whether it has finally said that it happened."""
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
                await asyncio.sleep(0)  # it gets its turn
                rivals.append(asyncio.create_task(rival()))  # after this call
                try:
                    await method(*positional, **named)
                except ConnectionClosed:  # it has not happened
                    raise
                except InorderError:  # its answer is a refusal
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
        while qm.connections_in_use:  # the thread closes what the task left open
            await asyncio.sleep(0.001)
        lanes = qm._shared.lanes
        assert lanes.free == [lane for lane in lanes.all if lane in lanes.free], "a connection is free twice"
        await qm.put("R", b"goes on")
        assert (await qm.get("R")).body == b"goes on"


def state(onlooker: QueueManager, *, of_all: bool) -> object:
    """The messages, the number of units, the queues; without `of_all` only what a unit of work changes."""
    queues = [one.name for one in onlooker.queues()]
    messages = {name: bodies(onlooker, name) for name in ("Q", "R", "U") if name in queues and (of_all or name == "U")}
    return messages, len(onlooker.inspect.units()), queues if of_all else None


def tried(call: str, situation: Situation, moment: Moment, step: int, patched: pytest.MonkeyPatch) -> tuple[Any, ...]:
    """Whether the cancel came; whether the call said that it had happened; the state before; the state after."""
    name = call.split(".")[1]
    of_all = situation != "unit" or name in JOINING  # other calls are not part of the unit
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
    """Whether a call ends the unit of work in which it would be made."""
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
    """A call that needs the queue closed everywhere ends the thread that watches it for gets, and waits for that."""

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


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("options", [{}, {"syncpoint": False}, {"wait": 600}], ids=["own unit", "no unit", "in a unit"])
def test_a_queue_that_a_cancelled_task_has_left_open_gives_its_connection_back_without_the_garbage_collector(
    is_there: bool, options: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def get(self: Queue, *given: Any, get: Any = Queue.get) -> Any:
        begun.set()
        assert go_on.wait(LIMIT_SECONDS)
        return get(self, *given)

    async def work(qm: aio.QueueManager) -> None:
        queue = await qm.open("Q", input="shared")
        async with qm.unit_of_work() if "wait" in options else contextlib.nullcontext():
            await queue.get(**options)
        await asyncio.sleep(60)  # here the cancel comes that was too late for the call

    async def main() -> None:
        async with aio.connect(connections=1) as qm:
            await qm.create_queue("Q")
            await qm.put_many("Q", [b"1"] * is_there)
            task = asyncio.create_task(work(qm))
            assert await asyncio.to_thread(begun.wait, LIMIT_SECONDS)
            task.cancel()
            await asyncio.sleep(0)  # it waits for the end of the call
            go_on.set()
            with contextlib.suppress(asyncio.CancelledError, NoMessageAvailable):
                await task
            del task
            while qm.connections_in_use:
                await asyncio.sleep(0.001)

    monkeypatch.setattr(Queue, "get", get)
    gc.disable()
    try:
        ended(main())
    finally:
        gc.enable()


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
        qm._shared.lanes.free.remove(second)  # so that the next task gets the second one
        qm._shared.lanes.free.append(second)
        async with qm.unit_of_work():
            await qm.get("Q")
            assert second.has_unit
            go_on.set()
            await closing
            assert second.has_queues
