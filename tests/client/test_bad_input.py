"""Bad input: each public call gets its error, which names the argument or the value, and changes nothing.

Here is what calls themselves refuse. Values and options are refused in the same way by every call that takes them:
`client/test_options.py`, `model/test_message.py`, `model/test_attributes.py`;
`client/test_odd_values.py` gives each argument of each call what no table thinks of.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Any, NamedTuple

import pytest
from tests.helpers.bad_calls import HANDLE_CALLS, MANAGER_CALLS, Bad, stream
from tests.helpers.support import Line, check, snapshot

from inorder import Message, OpenOptions, QueueManager, Reason, UniqueId, connect
from inorder.errors import ArgumentError, HandleError, NotOpenFor, UnknownQueue
from inorder.model.message import IN_GROUP, LAST_IN_GROUP
from inorder.testing.stores import RestartableStore

GROUP = b"G"

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


class World(NamedTuple):
    """What the bad calls are made on. `Any`, for the calls are wrong on purpose."""

    qm: Any
    queue: Any
    browser: Any
    getter: Any
    closed: Any
    there: Any


@pytest.fixture
def world(store: RestartableStore) -> Iterator[World]:
    with connect(store, program="test") as qm:
        for name in ("Q", "R", "SHUT", "FULL", "SMALL", "IDLE"):
            qm.create_queue(name)
            # What a call by name may open is not the matter here: its handle is open for everything already.
            qm.put_many(name, [b"1", b"2"])
            qm.get(name)
        qm.close_queue("IDLE")
        qm.create_queue("A", type="alias", base_queue="Q")
        qm.create_queue("DANGLING", type="alias", base_queue="NOWHERE")
        qm.create_queue("M", type="model")
        qm.put_many("Q", [Message(b"a", priority=3), b"b"])
        qm.put("Q", b"g1", flags=IN_GROUP, group_id=GROUP)
        qm.put("Q", b"g2", flags=LAST_IN_GROUP, group_id=GROUP, sequence_number=2)
        qm.alter_queue("FULL", max_depth=1)
        qm.alter_queue("SMALL", max_length=3)
        qm.alter_queue("SHUT", get_allowed=False, put_allowed=False)
        other = qm.connect(program="other")
        other.put("R", b"prepared", syncpoint=True)
        other.prepare("P1")
        other.put("Q", b"uncommitted", syncpoint=True)
        closed = qm.open("Q")
        closed.close()
        browser, getter = qm.open("Q", browse=True), qm.open("Q", input="shared")
        yield World(qm, qm.open("Q"), browser, getter, closed, next(qm.browse("Q")).uid)
        other.internals.abandon()


def named(table: Mapping[str, list[Bad]]) -> list[Any]:
    return [pytest.param(*bad, id=f"{name}-{n}") for name, some in table.items() for n, bad in enumerate(some, 1)]


@pytest.mark.parametrize(("call", "error", "reason", "word"), [*named(MANAGER_CALLS), *named(HANDLE_CALLS)])
def test_a_bad_call_gets_a_clear_error_and_changes_nothing(
    world: World, call: Callable[[Any], object], error: Any, reason: Reason, word: str
) -> None:
    check(Line(call, error, reason, word), world)


GIVEN: Mapping[str, Callable[[], Any]] = {  # arguments that are right, by their names
    "body": bytes, "messages": lambda: [b""], "value": lambda: 1, "count": lambda: 1,
    "uid": lambda: UniqueId("ELSEWHERE", 1), "stream": stream, "confirm_id": lambda: 7, "lock_id": lambda: 7,
    "group_id": lambda: GROUP, "listener": lambda: print, "changed": lambda: print,
    "options": lambda: OpenOptions(output=True),
}  # fmt: skip
BY_NAME = """
    admin.clear_queue admin.release_lock admin.retry_now alter_queue attributes browse browse_and_lock
    confirm_get confirm_put delete delete_queue depth get get_group get_many get_stream group inquire
    inspect.gaps inspect.look inspect.order_view inspect.status inspect.unique_ids
    internals.open_growing internals.watch leave_group listen open put put_json put_many
    put_stream undo unlock
""".split()
ON_A_HANDLE = """
    attributes browse browse_cursor browse_first browse_next close confirm_get delete get get_many leave_group put
    put_many status undo unlock
""".split()


def called(method: Callable[..., Any], *first: object) -> None:
    """A call with what it requires; an iterator is asked for its first message."""
    required = [
        one
        for one in inspect.signature(method).parameters.values()
        if one.default is one.empty and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
    ]
    more = {one.name: GIVEN[one.name]() for one in required[len(first) :]}
    result = method(*first, **more)
    if hasattr(result, "__next__"):
        next(result)


def test_a_queue_that_is_not_there_is_unknown_to_every_call(world: World) -> None:
    before = snapshot(world.qm)
    for name in BY_NAME:
        for queue in ("ORDERS", 5, None, ["Q"]):
            with pytest.raises(UnknownQueue) as raised:
                called(attrgetter(name)(world.qm), queue)
            assert raised.value.reason == Reason.UNKNOWN_OBJECT_NAME, name
            assert repr(queue) in str(raised.value), name
    assert snapshot(world.qm) == before
    with pytest.raises(UnknownQueue, match="did you mean SMALL"):
        world.qm.attributes("SMALLL")


def test_a_closed_handle_refuses_every_call(world: World) -> None:
    before = snapshot(world.qm)
    for name in ON_A_HANDLE:
        with pytest.raises(HandleError, match="Q") as raised:
            called(getattr(world.closed, name))
        assert raised.value.reason == Reason.HOBJ_ERROR, name
    assert snapshot(world.qm) == before


NOT_OPEN: list[tuple[Callable[[Any], object], Reason]] = [
    (lambda w: w.browser.put(b""), Reason.NOT_OPEN_FOR_OUTPUT),
    (lambda w: w.getter.put_many([b""]), Reason.NOT_OPEN_FOR_OUTPUT),
    (lambda w: w.browser.internals.opened_for("output"), Reason.NOT_OPEN_FOR_OUTPUT),
    (lambda w: w.browser.get(), Reason.NOT_OPEN_FOR_INPUT),
    (lambda w: w.browser.get_many(2), Reason.NOT_OPEN_FOR_INPUT),
    (lambda w: w.browser.browse_and_lock(), Reason.NOT_OPEN_FOR_INPUT),
    (lambda w: w.browser.internals.checked_for("input"), Reason.NOT_OPEN_FOR_INPUT),
    (lambda w: w.getter.get(under_cursor=True), Reason.NOT_OPEN_FOR_BROWSE),
    (lambda w: w.getter.browse_first(), Reason.NOT_OPEN_FOR_BROWSE),
    (lambda w: w.getter.browse_next(), Reason.NOT_OPEN_FOR_BROWSE),
    (lambda w: w.getter.browse_cursor(), Reason.NOT_OPEN_FOR_BROWSE),
    (lambda w: list(w.getter.browse()), Reason.NOT_OPEN_FOR_BROWSE),
    (lambda w: w.getter.unlock(), Reason.NOT_OPEN_FOR_BROWSE),
    (lambda w: w.getter.resume("e30="), Reason.NOT_OPEN_FOR_BROWSE),
    (lambda w: w.getter.browse_token(), Reason.NOT_OPEN_FOR_BROWSE),
]


def test_a_handle_refuses_what_it_is_not_open_for(world: World) -> None:
    before = snapshot(world.qm)
    for number, (call, reason) in enumerate(NOT_OPEN):
        with pytest.raises(NotOpenFor) as raised:
            call(world)
        assert raised.value.reason == reason, number
    assert snapshot(world.qm) == before


FIRST_CALLS: Mapping[str, Callable[[Any], object]] = {
    "put": lambda qm: qm.put("NEW", "text"),
    "put_many": lambda qm: qm.put_many("NEW", b"one"),
    "get": lambda qm: qm.get("NEW", wait=-1),
    "get_many": lambda qm: qm.get_many("NEW", 0),
    "get_group": lambda qm: list(qm.get_group("NEW", wait=-1)),
    "put_stream": lambda qm: qm.put_stream("NEW", stream(), chunk=0),
    "get_stream": lambda qm: qm.get_stream("NEW", stream(), wait=-1),
}


@pytest.mark.parametrize("call", FIRST_CALLS.values(), ids=FIRST_CALLS)
def test_a_first_call_that_is_refused_leaves_no_queue_open(qm: QueueManager, call: Callable[[Any], object]) -> None:
    qm.create_queue("NEW")
    with pytest.raises(ArgumentError):
        call(qm)
    status = qm.inspect.status("NEW")
    assert (status.open_input_count, status.open_output_count) == (0, 0)
    qm.delete_queue("NEW")
