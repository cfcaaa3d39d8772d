"""Tasks with arguments: calls are sent by task name, and both the sender and the worker check the arguments."""

from __future__ import annotations

import asyncio
import datetime
import functools
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pydantic
import pytest
from tests.helpers.support import LIMIT_SECONDS, bodies
from tests.helpers.working import at_work, worked

import inorder
from inorder import Got, Match, Message, QueueManager, Reason, aio
from inorder.errors import ArgumentError, CallerError, UnitOfAnother
from inorder.testing import ManualClock
from inorder.work import Outcome, Schedule, TaskFunction, Tasks
from inorder.work.creating import DEFAULT_QUEUE
from inorder.work.periodic import Periodic

pytest.importorskip("msgspec", reason="without inorder[work] tasks have no arguments")
DONE, RETRIED, DEAD, UNKNOWN = Outcome.DONE, Outcome.RETRIED, Outcome.DEAD, Outcome.UNKNOWN


@dataclass
class Line:
    item: str
    count: int = 1


class Address(pydantic.BaseModel):
    street: str
    since: datetime.date


class Shop:
    def __init__(self, tasks: Tasks, **options: Any) -> None:
        self.tasks, self.calls = tasks, list[tuple[Any, ...]]()

        @tasks.task(name="pack", **options)
        def pack(order_id: int, lines: list[Line], note: str = "none", *, qm: QueueManager) -> None:
            self.calls.append(("pack", order_id, lines, note))
            self.mail.put(to="me")
            if order_id < 0:
                raise ValueError("no such order")

        @tasks.task(name="mail", **options)
        def mail(to: str, message: Message) -> None:
            self.calls.append(("mail", to, message.properties["task"]))

        self.pack: TaskFunction[..., None] = pack
        self.mail = mail


@pytest.fixture
def shop() -> Shop:
    return Shop(Tasks())


# --- sending and calling


@pytest.mark.every_store
def test_tasks_of_a_queue_are_called_by_name_and_their_puts_are_part_of_their_units(
    qm: QueueManager, shop: Shop
) -> None:
    with qm.unit_of_work():
        shop.pack.put(17, lines=[Line("flour", 2)])
    with qm.unit_of_work():
        shop.pack.put(-1, [Line("dust")], note="fails")
    with qm.unit_of_work() as unit:
        shop.pack.put(18, [])
        unit.back_out()
    assert qm.depth(DEFAULT_QUEUE) == 2, "what is backed out was never sent"
    heard = worked(qm, shop.tasks, 3)
    assert sorted(heard.outcomes, key=str) == [DONE, DONE, RETRIED]
    assert shop.calls[:2] == [("pack", 17, [Line("flour", 2)], "none"), ("pack", -1, [Line("dust")], "fails")]
    assert shop.calls[2:] == [("mail", "me", "mail")], "the task that failed has sent nothing"


def test_the_message_is_json_with_the_name_as_a_property(qm: QueueManager, shop: Shop) -> None:
    put = shop.pack.put(17, [Line("flour")], qm=qm, priority=7, expiry=60, deduplicate="order-17")
    again = shop.pack.put(17, [], qm=qm, deduplicate="order-17")
    assert again == put
    assert again.put_result is not None
    assert again.put_result.warning == Reason.DUPLICATE_PUT
    (message,) = qm.browse(DEFAULT_QUEUE)
    assert message.message_id == put.message_id
    assert message.json() == {"order_id": 17, "lines": [{"item": "flour", "count": 1}]}
    assert (message.format, message.properties["task"], message.priority) == ("MQSTR", "pack", 7)
    assert message.expiry == pytest.approx(60, abs=59)


def test_any_program_may_send_a_call_as_json_and_an_older_one_gets_the_defaults(qm: QueueManager, shop: Shop) -> None:
    qm.create_queue(DEFAULT_QUEUE)
    qm.put_json(DEFAULT_QUEUE, {"order_id": 3, "lines": []}, properties={"task": "pack"})
    worked(qm, shop.tasks, 2)
    assert shop.calls == [("pack", 3, [], "none"), ("mail", "me", "mail")]


def test_a_delayed_call_begins_later(qm: QueueManager, shop: Shop, clock: ManualClock) -> None:
    shop.mail.put("later", qm=qm, delay=60)
    shop.mail.put("now", qm=qm)
    worked(qm, shop.tasks)
    clock.advance(60)
    worked(qm, shop.tasks)
    assert [to for _, to, _ in shop.calls] == ["now", "later"]


def test_a_task_can_still_be_called_as_a_function(shop: Shop) -> None:
    @shop.tasks.task
    def double(number: int) -> int:
        """Doubles it."""
        return 2 * number

    assert (double(4), double.__doc__) == (8, "Doubles it.")
    assert double.name == f"{__name__}.test_a_task_can_still_be_called_as_a_function.<locals>.double"
    for word in ("delay", "apply_async", "send"):
        with pytest.raises(AttributeError, match=rf"no attribute {word}: send it with TASK\.put"):
            getattr(double, word)


def test_arguments_of_python_types_are_sent_as_json(qm: QueueManager) -> None:
    tasks, calls = Tasks(), list[Any]()
    day = datetime.date(2026, 11, 28)

    @tasks.task("Q")
    def move(day: datetime.date, to: Address, data: bytes, anything: Any = None) -> None:
        calls.append((day, to, data, anything))

    move.put(day, to=Address(street="Elm", since=day), data=b"\x00\xff", anything=[1, {"a": None}], qm=qm)
    worked(qm, tasks)
    assert calls == [(day, Address(street="Elm", since=day), b"\x00\xff", [1, {"a": None}])]


def test_a_schedule_may_send_a_call(qm: QueueManager, shop: Shop, clock: ManualClock) -> None:
    qm.create_queue(DEFAULT_QUEUE)
    body = shop.mail.message("clock")
    periodic = Periodic(qm, [Schedule(name="minute", cron="* * * * *", queue=DEFAULT_QUEUE, body=body)])
    periodic.put_due()
    clock.advance(60)
    assert len(periodic.put_due()) == 1
    worked(qm, shop.tasks)
    assert shop.calls == [("mail", "clock", "mail")]


# --- arguments that do not match


@pytest.mark.parametrize(
    ("given", "named", "why"),
    [
        (("x", []), {}, "expected `int`, got `str` - at `$.order_id`"),
        ((1, [{"item": 3}]), {}, r"expected `str`, got `int` - at `$.lines[0].item`"),
        ((1,), {}, "missing a required argument: 'lines'"),
        ((1, []), {"colour": "red"}, "unexpected keyword argument 'colour'; the parameters are order_id, lines, note"),
        ((1, [object()]), {}, "cannot express an object of type object"),
    ],
)
def test_the_sender_gets_an_error_for_arguments_that_do_not_match(
    qm: QueueManager, shop: Shop, given: Any, named: Any, why: str
) -> None:
    with pytest.raises(ArgumentError) as refused:
        shop.pack.put(*given, **named, qm=qm)
    assert why in str(refused.value)
    assert DEFAULT_QUEUE not in [one.name for one in qm.queues()]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b'{"to": 3}', "expected `str`, got `int` - at `$.to`"),
        (b"{}", "missing required field `to`"),
        (b'{"to": "me", "copy": "you"}', "unknown field `copy`"),
        (b"[]", "expected `object`, got `array`"),
        (b"\xff", "malformed"),
        (b"", "truncated"),
    ],
)
def test_arguments_that_do_not_match_make_a_dead_letter_without_a_call(
    qm: QueueManager, shop: Shop, body: bytes, why: str
) -> None:
    qm.create_queue(DEFAULT_QUEUE)
    qm.put(DEFAULT_QUEUE, body, properties={"task": "mail"})
    heard = worked(qm, shop.tasks)
    (letter,) = qm.dead.letters()
    assert (heard.outcomes, shop.calls, letter.why.reason) == ([DEAD], [], Reason.TASK_ARGUMENTS)
    assert why in letter.why.error


# --- messages that no task takes


@pytest.mark.every_store
def test_a_message_of_an_unknown_task_is_reported_and_left_to_a_worker_that_knows_it(
    qm: QueueManager, shop: Shop, clock: ManualClock
) -> None:
    other, calls = Tasks(), list[int]()

    @other.task(name="bill")
    def bill(number: int) -> None:
        calls.append(number)

    with at_work(qm, shop.tasks) as (_, heard):
        bill.put(5, qm=qm)
        heard.attempts(1)
        shop.mail.put("me", qm=qm)
        heard.attempts(2)
    (unknown,) = (one for one in heard.told if one.ended is not None and one.ended.outcome is UNKNOWN)
    assert unknown.ended is not None
    assert (unknown.task, unknown.ended.attempt, unknown.ended.delay) == ("tasks of TASKS", 0, 1.0)
    assert "is named 'bill'" in unknown.text
    assert heard.outcomes == [UNKNOWN, DONE], "it stands in nobody's way"
    clock.advance(1)
    assert worked(qm, other).outcomes == [DONE]
    assert calls == [5]


def test_a_message_that_no_task_takes_is_hidden_for_longer_each_time(
    qm: QueueManager, shop: Shop, clock: ManualClock
) -> None:
    qm.create_queue(DEFAULT_QUEUE)
    qm.put(DEFAULT_QUEUE, b"plain")
    delays = []
    for seconds in (1, 10, 10_000):
        (event,) = (one.ended for one in worked(qm, shop.tasks).told if one.ended is not None)
        delays.append(event.delay)
        clock.advance(seconds)
    assert delays == [1.0, 1.0, 11.0]
    assert [one.ended.delay for one in worked(qm, shop.tasks).told if one.ended is not None] == [600.0]
    clock.advance(600)
    (message,) = qm.browse(DEFAULT_QUEUE)
    assert message.backout_count == 0, "none of these is an attempt"
    assert "has no property task" in str(message.properties["retry.error"])


@pytest.mark.parametrize("name", ["os.system", "tests.work.test_arguments.Line", "builtins.print", 17, "mail "])
def test_only_registered_names_are_called_and_others_become_dead_letters_if_asked(qm: QueueManager, name: Any) -> None:
    shop = Shop(Tasks(unknown="dead"))
    qm.create_queue(DEFAULT_QUEUE)
    qm.put_json(DEFAULT_QUEUE, {"to": "echo"}, properties={"task": name})
    heard = worked(qm, shop.tasks)
    (letter,) = qm.dead.letters()
    assert (heard.outcomes, shop.calls, letter.why.reason) == ([DEAD], [], Reason.TASK_UNKNOWN)
    assert repr(name) in letter.why.error


def test_plain_messages_go_to_the_function_of_messages_beside_the_tasks(qm: QueueManager) -> None:
    tasks, calls = Tasks(), list[object]()

    @tasks.task("Q")
    def see(message: Got) -> None:
        calls.append(message.body)

    @tasks.task("Q", name="add")
    def add(number: int) -> None:
        calls.append(number)

    qm.put("Q", b"plain")
    add.put(3, qm=qm)
    worked(qm, tasks, 2)
    assert calls == [b"plain", 3]


def test_the_only_function_of_a_queue_gets_messages_with_any_properties(qm: QueueManager) -> None:
    tasks, calls = Tasks(), list[object]()
    tasks.task("Q", name="see")(lambda message: calls.append(message.body))
    qm.put("Q", b"1", properties={"task": "theirs"})
    assert worked(qm, tasks).outcomes == [DONE]
    assert calls == [b"1"]


# --- registering


def _see(message: Message) -> None: ...


def _groups(messages: list[Message]) -> None: ...


def _add(number: int) -> None: ...


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((_see, {}), (lambda message: None, {})),
        ((_see, {}), (_groups, {"group": "list"})),
        ((_see, {}), (lambda message: None, {"match": Match(selector="a = 1")})),
        ((_see, {"match": Match(selector="a = 1")}), (_see, {"match": Match(selector="a = 1")})),
        ((_add, {}), (_see, {"logical": True})),
        ((_see, {"read_order": "strict"}), (_add, {})),
    ],
)
def test_two_functions_for_the_same_messages_are_refused(first: Any, second: Any) -> None:
    tasks = Tasks()
    tasks.task("Q", name="first", **first[1])(first[0])
    with pytest.raises(ArgumentError, match=r"second and first both take messages of Q"):
        tasks.task("Q", name="second", **second[1])(second[0])
    assert [one.name for one in tasks] == ["first"]
    tasks.task("R", name="second", **second[1])(second[0])
    assert len(tasks) == 2


@pytest.mark.parametrize("group", [None, "list"])
def test_functions_with_different_matches_share_a_queue(qm: QueueManager, group: Literal["list"] | None) -> None:
    tasks, calls = Tasks(), list[tuple[str, bytes]]()

    def register(colour: str) -> None:
        @tasks.task("Q", name=colour, group=group, match=Match(selector=f"colour = '{colour}'"))
        def see(given: Any) -> None:
            calls.extend((colour, one.body) for one in (given if group else [given]))

    for colour in ("red", "blue"):
        register(colour)
        qm.put("Q", colour.encode(), properties={"colour": colour})
    worked(qm, tasks, 2)
    assert sorted(calls) == [("blue", b"blue"), ("red", b"red")]


def _rest(*numbers: int) -> None: ...


def _named(**numbers: int) -> None: ...


def _delayed(number: int, delay: float) -> None: ...


def _of_elsewhere(number: int, own: aio.QueueManager) -> None: ...


async def _of_threads(number: int, own: QueueManager) -> None: ...


def _unions(given: Line | Address | dict[str, int]) -> None: ...


def _later(number: Missing) -> None: ...  # type: ignore[name-defined] # noqa: F821


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (_rest, r"takes \*numbers"),
        (_named, r"takes \*\*numbers"),
        (_delayed, "without a parameter delay"),
        (_of_elsewhere, r"inorder\.QueueManager at own"),
        (_of_threads, r"inorder\.aio\.QueueManager at own"),
        (_unions, "types that JSON can express"),
        (_later, "defined above it .*Missing"),
    ],
)
def test_a_function_whose_arguments_could_not_be_sent_is_refused(function: Any, why: str) -> None:
    tasks = Tasks()
    with pytest.raises(ArgumentError, match=why):
        tasks.task(function)
    with pytest.raises(ArgumentError, match="one of messages"):
        tasks.task("Q", logical=True)(function)
    assert len(tasks) == 0


class _Callable:
    def __call__(self, message: Message) -> None: ...


def _typed(message: Unknown) -> None: ...  # type: ignore[name-defined] # noqa: F821


def _typed_got(message: unknown.Got) -> None: ...  # type: ignore[name-defined] # noqa: F821


class _Read(_Callable):
    """An instance shows the annotations of its class, which are an empty dictionary once something has read them."""

    def __call__(self, message: Message) -> None: ...


assert _Read.__annotations__ == {}


@pytest.mark.parametrize(
    "function", [_Callable(), _Read(), functools.partial(_see), _typed_got, lambda one, qm: None, print]
)
def test_functions_of_messages_are_registered_unchanged(function: Any) -> None:
    tasks = Tasks()
    assert tasks.task("Q", name="see")(function) is function
    assert [one.arguments for one in tasks] == [None]
    with pytest.raises(ArgumentError, match="Unknown"):
        tasks.task("R", name="typed")(_typed)


def test_without_msgspec_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = Tasks()
    monkeypatch.setitem(sys.modules, "msgspec", None)
    tasks.task("Q")(_see)
    with pytest.raises(CallerError, match=r"need a library: .*\[work\]"):
        tasks.task("Q")(_add)


# --- the connection of a put


def test_without_any_connection_a_put_says_what_is_missing(shop: Shop) -> None:
    with pytest.raises(CallerError, match=r'Tasks\("shop.db"\)'):
        shop.mail.put("me")
    with pytest.raises(CallerError, match=r'Tasks\("shop.db"\)'):
        asyncio.run(shop.mail.put_async("me"))
    for store in (":memory:", "sqlite:///shop.db", 3):
        with pytest.raises(ArgumentError, match="store"):
            Tasks(store)  # type: ignore[arg-type]


def test_outside_of_units_the_store_of_the_tasks_is_used_in_any_thread_and_loop(tmp_path: Path) -> None:
    shop = Shop(Tasks(tmp_path / "shop.db"))

    async def main() -> None:
        await asyncio.gather(*(shop.mail.put_async("loop") for _ in range(3)))

    threads = [threading.Thread(target=shop.mail.put, args=["thread"]) for _ in range(3)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(LIMIT_SECONDS)
    asyncio.run(main())
    shop.mail.put("here")
    shop.mail.put("here")
    with inorder.connect(tmp_path / "shop.db") as qm:
        assert sorted(body.decode() for body in bodies(qm, DEFAULT_QUEUE)) == sorted(
            ['{"to":"here"}'] * 2 + ['{"to":"loop"}'] * 3 + ['{"to":"thread"}'] * 3
        )


@pytest.fixture
def places(tmp_path: Path) -> Iterator[Callable[[str], QueueManager]]:
    made = dict[str, QueueManager]()

    def place(name: str) -> QueueManager:
        made[name] = inorder.connect(tmp_path / name)
        return made[name]

    yield place
    for one in made.values():
        one.close()


def test_a_put_joins_the_innermost_open_unit(shop: Shop, places: Callable[[str], QueueManager]) -> None:
    outer, inner = places("outer"), places("inner")
    with outer.unit_of_work():
        with inner.unit_of_work() as unit:
            shop.mail.put("inner")
            unit.commit()
            shop.mail.put("outer")
        shop.mail.put("outer")
    assert [len(bodies(one, DEFAULT_QUEUE)) for one in (outer, inner)] == [2, 1]
    with pytest.raises(CallerError, match="a unit of work"):
        shop.mail.put("nowhere")


async def test_a_put_in_a_unit_of_asyncio_is_awaited(tmp_path: Path, shop: Shop) -> None:
    async with aio.connect(tmp_path / "shop.db") as qm:
        async with qm.unit_of_work():
            await shop.mail.put_async("me", delay=0)
            with pytest.raises(CallerError, match=r"await mail\.put_async"):
                shop.mail.put("me")
            with pytest.raises(UnitOfAnother):
                await asyncio.create_task(shop.mail.put_async("another"))
            assert [one.body async for one in qm.browse(DEFAULT_QUEUE)] == []
        async with qm.unit_of_work() as unit:
            await shop.mail.put_async("nobody")
            await unit.back_out()
        await shop.mail.put_async("you", qm=qm)
        assert [one.body async for one in qm.browse(DEFAULT_QUEUE)] == [b'{"to":"me"}', b'{"to":"you"}']
