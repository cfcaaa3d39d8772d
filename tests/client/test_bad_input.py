"""Bad input: each public call raises an error that names the argument or the value, and changes nothing.

Values and options that every call refuses in the same way: `client/test_options.py`, `model/test_message.py`,
`model/test_attributes.py`. `client/test_odd_values.py` gives each argument of each call values that no table lists.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Any, NamedTuple

import pytest
from tests.helpers.public_calls import BY_NAME, ON_A_HANDLE, called
from tests.helpers.support import Line, check, snapshot

from inorder import GetOptions, Match, Message, PutOptions, QueueManager, Reason, UniqueId, connect, errors
from inorder.model.message import IN_GROUP, LAST_IN_GROUP
from inorder.testing.stores import RestartableStore

GROUP = b"G"

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


class World(NamedTuple):
    """The objects on which the bad calls are made; `Any`, because the calls have wrong types on purpose."""

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
            # These calls open the default handles, so that the bad calls need not open them.
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
        qm.admin.create_process("THERE")
        other = qm.connect(program="other")
        other.put("R", b"prepared", syncpoint=True)
        other.prepare("P1")
        other.put("Q", b"uncommitted", syncpoint=True)
        closed = qm.open("Q")
        closed.close()
        browser, getter = qm.open("Q", browse=True), qm.open("Q", input="shared")
        yield World(qm, qm.open("Q"), browser, getter, closed, next(qm.browse("Q")).uid)
        other.internals.abandon()


# --- the calls; the class and reason of each error, and a word of its text


Wrong = Callable[[Any], object]
Bad = tuple[Wrong, type[errors.InorderError], Reason, str]
UID = UniqueId("ELSEWHERE", 1)
connect_to: Any = connect
FIRST, SECOND = GetOptions(browse="first"), Match(sequence_number=2)


def stream() -> io.BytesIO:
    return io.BytesIO(b"0123456789")


def argument(call: Wrong, word: str, reason: Reason = Reason.ARGUMENT_ERROR) -> Bad:
    return call, errors.ArgumentError, reason, word


def option(call: Wrong, word: str) -> Bad:
    return argument(call, word, Reason.OPTIONS_ERROR)


def clash(call: Wrong, word: str) -> Bad:
    return call, errors.OptionsError, Reason.OPTIONS_ERROR, word


def exists(call: Wrong, word: str) -> Bad:
    return call, errors.ObjectExists, Reason.OBJECT_ALREADY_EXISTS, word


def in_use(call: Wrong) -> Bad:
    return call, errors.ObjectInUse, Reason.OBJECT_IN_USE, "Q"


def wrong_type(call: Wrong, word: str = "M", reason: Reason = Reason.OBJECT_TYPE_ERROR) -> Bad:
    return call, errors.WrongQueueType, reason, word


def not_found(call: Wrong, word: str) -> Bad:
    return call, errors.NotFound, Reason.NOT_FOUND, word


def no_process(call: Wrong, word: str) -> Bad:
    return call, errors.UnknownObject, Reason.UNKNOWN_OBJECT_NAME, word


def wrong_state(call: Wrong, word: str = "UniqueId") -> Bad:
    return call, errors.WrongState, Reason.WRONG_STATE, word


BASE_TYPE, NO_BASE = Reason.ALIAS_BASE_Q_TYPE_ERROR, Reason.UNKNOWN_ALIAS_BASE_Q
TOO_BIG = Reason.MSG_TOO_BIG_FOR_Q
NO_ATTRIBUTE, WAIT, MATCH = Reason.SELECTOR_ERROR, Reason.WAIT_INTERVAL_ERROR, Reason.MATCH_OPTIONS_ERROR

MANAGER_CALLS: dict[str, list[Bad]] = {
    "connect": [
        argument(lambda w: connect(name="a b"), "name", Reason.Q_MGR_NAME_ERROR),
        argument(lambda w: connect(program="\ud800"), "program"),
        argument(lambda w: connect_to(program=5), "program"),
        argument(lambda w: w.qm.connect(program=5), "program"),
    ],
    "create_queue": [
        argument(lambda w: w.qm.create_queue("A B"), "A B"),
        argument(lambda w: w.qm.create_queue("N", colour="red"), "colour", NO_ATTRIBUTE),
        argument(lambda w: w.qm.create_queue("N", type="queue"), "'queue'"),
        argument(lambda w: w.qm.create_queue("N", max_depth="many"), "'many'"),
        exists(lambda w: w.qm.create_queue("Q"), "'Q'"),
        exists(lambda w: w.qm.create_queue("M"), "'M'"),
    ],
    "create_alias": [
        exists(lambda w: w.qm.create_queue("A", type="alias"), "'A'"),
        wrong_type(lambda w: w.qm.create_queue("N", type="alias", base_queue="A"), "'A'", BASE_TYPE),
        wrong_type(lambda w: w.qm.create_queue("N", type="alias", base_queue="N"), "'N'", BASE_TYPE),
        argument(
            lambda w: w.qm.create_queue("N", type="alias", max_depth=5), "max_depth", Reason.SELECTOR_NOT_FOR_TYPE
        ),
    ],
    "create_remote_queue": [
        exists(lambda w: w.qm.create_queue("Q", type="remote"), "'Q'"),
        argument(lambda w: w.qm.create_queue("N", type="remote", remote_manager="N"), "transmission_queue"),
        argument(lambda w: w.qm.create_queue("N", type="remote", transmission_queue="N"), "transmission_queue"),
    ],
    "create_model": [exists(lambda w: w.qm.create_queue("Q", type="model"), "'Q'")],
    "alter_queue": [
        argument(lambda w: w.qm.alter_queue("Q", max_depth=1, delivery="x"), "deli"),
        in_use(lambda w: w.qm.alter_queue("Q", order="commit")),
        wrong_type(lambda w: w.qm.alter_queue("A", base_queue="A"), "'A'", BASE_TYPE),
    ],
    "delete_queue": [
        in_use(lambda w: w.qm.delete_queue("Q", purge=True)),
        option(lambda w: w.qm.delete_queue("IDLE", purge="no"), "purge"),
    ],
    "status": [
        wrong_type(lambda w: w.qm.inspect.status("M")),
        wrong_type(lambda w: w.qm.inspect.status("DANGLING"), "'NOWHERE'", NO_BASE),
    ],
    "inquire": [
        argument(lambda w: w.qm.inquire("Q", "max_depth", "colour"), "colour", NO_ATTRIBUTE),
        argument(lambda w: w.qm.inquire("Q", 99), "99", NO_ATTRIBUTE),
        argument(lambda w: w.qm.inquire("Q", "MaxDepth"), "did you mean MaxQDepth", NO_ATTRIBUTE),
    ],
    "alter_manager": [
        argument(lambda w: w.qm.admin.alter_manager(colour=1), "colour", NO_ATTRIBUTE),
        argument(lambda w: w.qm.admin.alter_manager(max_handles=5, mark_interval=0), "mark_interval"),
    ],
    "open": [
        option(lambda w: w.qm.open("Q", colour=1), "colour"),
        clash(lambda w: w.qm.open("Q", browse=False), "browse"),
        in_use(lambda w: w.qm.open("Q", input="exclusive")),
        wrong_type(lambda w: w.qm.open("DANGLING"), "'NOWHERE'", NO_BASE),
        argument(lambda w: w.qm.open("M", dynamic_name="a b*"), "dynamic_name", Reason.DYNAMIC_Q_NAME_ERROR),
        argument(lambda w: w.qm.open("M", dynamic_name=5), "dynamic_name", Reason.DYNAMIC_Q_NAME_ERROR),
        argument(lambda w: w.qm.open("M", dynamic_name="N" * 49), "dynamic_name", Reason.DYNAMIC_Q_NAME_ERROR),
        argument(lambda w: w.qm.open("M", dynamic_name="P" * 34 + "*"), "dynamic_name", Reason.DYNAMIC_Q_NAME_ERROR),
        argument(lambda w: w.qm.open("M", dynamic_name="A*B"), "dynamic_name", Reason.DYNAMIC_Q_NAME_ERROR),
        exists(lambda w: w.qm.open("M", dynamic_name="Q"), "'Q'"),
        argument(lambda w: w.qm.internals.open_growing("Q", {"output": True}), "options must be"),
    ],
    "put": [
        wrong_type(lambda w: w.qm.put("M", b""), "M", Reason.Q_TYPE_ERROR),
        argument(lambda w: w.qm.put("Q", b"", manager="a b"), "manager", Reason.Q_MGR_NAME_ERROR),
        wrong_type(lambda w: w.qm.put("Q", b"", manager="QM9"), "QM9", Reason.UNKNOWN_REMOTE_Q_MGR),
        argument(lambda w: w.qm.put("Q", "text"), "body"),
        argument(lambda w: w.qm.put("Q", b"", colour="red"), "colour"),
        argument(lambda w: w.qm.put("Q", Message(b""), expiry=0), "expiry", Reason.EXPIRY_ERROR),
        argument(lambda w: w.qm.put("Q", b"", properties={"1": 1}), "'1'", Reason.PROPERTY_NAME_ERROR),
        option(lambda w: w.qm.put("Q", b"", GetOptions()), "options"),
        option(lambda w: w.qm.put("Q", b"", {}), "options"),
        option(lambda w: w.qm.put("Q", b"", 5, syncpoint=True), "options"),
        (lambda w: w.qm.put("SMALL", b"long"), errors.MessageTooBig, TOO_BIG, "3"),
        (lambda w: w.qm.put("FULL", b""), errors.QueueFull, Reason.Q_FULL, "FULL"),
        (lambda w: w.qm.put("SHUT", b""), errors.PutInhibited, Reason.PUT_INHIBITED, "SHUT"),
        argument(lambda w: w.qm.put_json("Q", math.nan), "value"),
        option(lambda w: w.qm.put_json("Q", 1, 5), "options"),
    ],
    "put_many": [
        argument(lambda w: w.qm.put_many("Q", 5), "messages"),
        argument(lambda w: w.qm.put_many("Q", b"one"), "messages"),
        argument(lambda w: w.qm.put_many("Q", "text"), "b"),
        argument(lambda w: w.qm.put_many("Q", [b"good", "bad"]), "'bad'"),
        option(lambda w: w.qm.put_many("Q", [b"good"], 5), "options"),
        (lambda w: w.qm.put_many("SMALL", [b"s", b"long"]), errors.MessageTooBig, TOO_BIG, "3"),
    ],
    "get": [
        option(lambda w: w.qm.get("Q", colour=1), "colour"),
        option(lambda w: w.qm.get("Q", lock=True), "lock"),
        argument(lambda w: w.qm.get("Q", wait=-1), "wait", WAIT),
        option(lambda w: w.qm.get("Q", PutOptions()), "options"),
        option(lambda w: w.qm.get("Q", 5, logical=True), "options"),
        (
            lambda w: w.qm.get("Q", logical=True, match=Match(sequence_number=2)),
            errors.MatchError,
            MATCH,
            "sequence_number",
        ),
        (lambda w: w.qm.get("SHUT"), errors.GetInhibited, Reason.GET_INHIBITED, "SHUT"),
    ],
    "get_many": [
        argument(lambda w: w.qm.get_many("Q", 0), "count"),
        option(lambda w: w.qm.get_many("Q", 2, 5), "options"),
    ],
    "browse": [
        option(lambda w: list(w.qm.browse("Q", syncpoint=True)), "syncpoint"),
        clash(lambda w: list(w.qm.browse("Q", mark_co_op=True)), "co_op"),
    ],
    "groups": [
        wrong_type(lambda w: w.qm.group("M"), "M", Reason.Q_TYPE_ERROR),
        argument(lambda w: list(w.qm.get_group("Q", wait=-1)), "wait", WAIT),
        argument(lambda w: list(w.qm.get_group("Q", match="x")), "match", MATCH),
    ],
    "streams": [
        argument(lambda w: w.qm.put_stream("Q", 5), "stream"),
        argument(lambda w: w.qm.put_stream("Q", io.StringIO("text")), "bytes"),
        argument(lambda w: w.qm.put_stream("Q", stream(), chunk=0), "chunk"),
        argument(lambda w: w.qm.put_stream("Q", stream(), most=0), "999,999,999"),
        argument(lambda w: w.qm.put_stream("Q", stream(), most=9, chunk=4), "stream", Reason.OFFSET_ERROR),
        option(lambda w: w.qm.put_stream("Q", stream(), as_group=1), "as_group"),
        argument(lambda w: w.qm.put_stream("Q", stream(), colour=1), "colour"),
        argument(lambda w: w.qm.put_stream("Q", stream(), body=b""), "body"),
        argument(lambda w: w.qm.put_stream("Q", stream(), logical=False), "logical"),
        argument(lambda w: w.qm.put_stream("Q", stream(), flags="x"), "flags", Reason.MSG_FLAGS_ERROR),
        (
            lambda w: w.qm.put_stream("SMALL", stream(), chunk=4),
            errors.MessageTooBig,
            Reason.MSG_TOO_BIG_FOR_Q,
            "SMALL",
        ),
        argument(lambda w: w.qm.get_stream("Q", 5), "stream"),
        option(lambda w: w.qm.get_stream("Q", stream(), as_group=1), "as_group"),
        argument(lambda w: w.qm.get_stream("Q", stream(), wait=-1), "wait", WAIT),
    ],
    "units": [
        argument(lambda w: w.qm.prepare(""), "name"),
        (lambda w: w.qm.prepare("nothing"), errors.UnitNotFound, Reason.UNIT_NOT_FOUND, "unit of work"),
        argument(lambda w: w.qm.settle("P1", "maybe"), "outcome"),
        (lambda w: w.qm.settle("P2", "commit"), errors.UnitNotFound, Reason.UNIT_NOT_FOUND, "'P2'"),
        (lambda w: w.qm.settle(["P1"], "commit"), errors.UnitNotFound, Reason.UNIT_NOT_FOUND, "['P1']"),
    ],
    "confirm": [
        argument(lambda w: w.qm.confirm_put("Q", "uid"), "uid"),
        option(lambda w: w.qm.confirm_put("Q", UID, confirm_id=-1), "confirm_id"),
        argument(lambda w: w.qm.confirm_get("Q", None), "uid"),
        wrong_state(lambda w: w.qm.confirm_get("Q", w.there)),
    ],
    "browse_and_lock": [
        argument(lambda w: w.qm.browse_and_lock("Q", "x"), "match", MATCH),
        option(lambda w: w.qm.browse_and_lock("Q", confirm_id=1.5), "confirm_id"),
        argument(lambda w: w.qm.browse_and_lock("Q", most=0), "most must be an integer from 1 to"),
        argument(lambda w: w.qm.browse_and_lock("Q", lease=0), "lease must be a number of seconds"),
        (lambda w: w.qm.browse_and_lock("SHUT"), errors.GetInhibited, Reason.GET_INHIBITED, "SHUT"),
    ],
    "locks": [
        argument(lambda w: w.qm.unlock("Q", "uid", lock_id=1), "uid"),
        option(lambda w: w.qm.unlock("Q", UID, lock_id=-1), "lock_id"),
        not_found(lambda w: w.qm.unlock("Q", UID, lock_id=1), "UniqueId"),
        wrong_state(lambda w: w.qm.unlock("Q", w.there, lock_id=1)),
        argument(lambda w: w.qm.delete("Q", 5), "uid"),
        not_found(lambda w: w.qm.delete("Q", UID), "UniqueId"),
        wrong_state(lambda w: w.qm.delete("Q", w.there, lock_id=99)),
        option(lambda w: w.qm.undo("Q", 2**64), "confirm_id"),
        not_found(lambda w: w.qm.undo("Q", 7), "7"),
        option(lambda w: w.qm.admin.release_lock("Q", "7"), "lock_id"),
        not_found(lambda w: w.qm.admin.release_lock("Q", 7), "7"),
        clash(lambda w: w.qm.inspect.unique_ids("Q"), "exactly one of"),
        clash(lambda w: w.qm.inspect.unique_ids("Q", confirm_id=1, lock_id=2), "exactly one of"),
        option(lambda w: w.qm.inspect.unique_ids("Q", confirm_id=-1), "confirm_id"),
        not_found(lambda w: w.qm.inspect.unique_ids("Q", lock_id=7), "7"),
    ],
    "listening": [
        argument(lambda w: w.qm.listen("A", print), "queue", Reason.OBJECT_TYPE_ERROR),
        option(lambda w: w.qm.listen("Q", 5), "5"),
        (lambda w: w.qm.listen("Q", print, "x"), errors.MatchError, MATCH, "match"),
        option(lambda w: w.qm.inspect.hook("get", print), "'get'"),
        option(lambda w: w.qm.inspect.hook(["put"], print), "hook"),
        option(lambda w: w.qm.inspect.hook("put", 5), "5"),
        option(lambda w: w.qm.internals.watch("Q", 5), "callback"),
        wrong_type(lambda w: w.qm.internals.watch("M", print), "M", Reason.Q_TYPE_ERROR),
        option(lambda w: w.qm.inspect.observe(5), "observer"),
    ],
    "looking": [
        wrong_type(lambda w: w.qm.inspect.order_view("M")),
        wrong_type(lambda w: w.qm.inspect.look("M")),
        argument(lambda w: w.qm.inspect.look("Q", order=["physical"]), "order"),
        argument(lambda w: w.qm.inspect.look("Q", match={"priority": 5}), "match"),
        argument(lambda w: w.qm.inspect.look("Q", unit="P1"), "'P1'"),
        argument(lambda w: w.qm.inspect.look("Q", preview=-1), "preview"),
        argument(lambda w: w.qm.inspect.look("Q", most=True), "most"),
        argument(lambda w: w.qm.inspect.look("Q", after=(0, 1, 0)), "after"),
        argument(lambda w: w.qm.inspect.look("Q", numbered_after="5"), "numbered_after"),
        argument(lambda w: w.qm.inspect.look("Q", order="logical", numbered_after=5), "numbered_after"),
        argument(lambda w: w.qm.inspect.gaps("Q", "G"), "group_id"),
        argument(lambda w: w.qm.inspect.gaps("Q", bytes(24)), "group_id"),
        argument(lambda w: w.qm.inspect.gaps("Q", b"x" * 25), "group_id"),
    ],
    "operating": [
        wrong_type(lambda w: w.qm.admin.clear_queue("M")),
        in_use(lambda w: w.qm.admin.clear_queue("Q")),
        argument(lambda w: w.qm.admin.check("loudly"), "progress"),
        argument(lambda w: w.qm.admin.discard_expired(0), "limit"),
        argument(lambda w: w.qm.admin.backup(5), "path"),
        argument(lambda w: w.qm.admin.backup(""), "path"),
        argument(lambda w: w.qm.admin.backup("a\0b"), "path"),
        option(lambda w: w.qm.admin.backup("copy.db", replace=1), "replace"),
        argument(lambda w: w.qm.admin.backup("copy.db", progress=5), "progress"),
    ],
    "processes": [
        argument(lambda w: w.qm.admin.create_process("a b"), "name must be 1 to 48 characters"),
        option(lambda w: w.qm.admin.create_process("P", exist_ok=1), "exist_ok must be True or False"),
        argument(
            lambda w: w.qm.admin.create_process("P", colour="red"), "there is no attribute 'colour'", NO_ATTRIBUTE
        ),
        argument(lambda w: w.qm.admin.create_process("P", application_type=-1), "an integer from 0"),
        argument(lambda w: w.qm.admin.create_process("P", application_id="x" * 257), "at most 256 characters"),
        exists(lambda w: w.qm.admin.create_process("THERE"), "process 'THERE' already exists"),
        no_process(lambda w: w.qm.admin.alter_process("P"), "there is no process 'P'"),
        argument(lambda w: w.qm.admin.alter_process("THERE", user_data=5), "a text of at most 128"),
        no_process(lambda w: w.qm.admin.delete_process("P"), "there is no process 'P'"),
        no_process(lambda w: w.qm.admin.process("THEIR"), "did you mean THERE"),
    ],
}

HANDLE_CALLS: dict[str, list[Bad]] = {
    "get": [
        option(lambda w: w.queue.get(browse="first"), "browse"),
        (lambda w: w.queue.get(under_cursor=True), errors.NoMessageUnderCursor, Reason.NO_MSG_UNDER_CURSOR, "cursor"),
    ],
    "browse": [
        option(lambda w: w.queue.browse_first(syncpoint=True), "syncpoint"),
        clash(lambda w: w.queue.browse_first(GetOptions(syncpoint=True)), "syncpoi"),
        clash(lambda w: w.queue.browse_first(mark_co_op=True), "co_op"),
        clash(lambda w: w.queue.browse_next(lock=True, unmarked=True), "lock"),
        (lambda w: w.queue.browse_cursor(), errors.NoMessageUnderCursor, Reason.NO_MSG_UNDER_CURSOR, "cursor"),
        option(lambda w: list(w.queue.browse(5)), "options"),
    ],
    "take_group": [
        argument(lambda w: list(w.queue.internals.take_group({"wait": 1})), "GetOptions"),
        clash(lambda w: list(w.queue.internals.take_group(FIRST)), "browse"),
    ],
    "opened_for": [
        argument(lambda w: w.queue.internals.checked_for([]), "one of: input, output, browse"),
        argument(lambda w: w.queue.internals.opened_for("often"), "'often'"),
    ],
    "withdraw": [
        argument(lambda w: w.queue.internals.withdraw(None), "before"),
        option(lambda w: w.queue.internals.withdraw(w.queue.internals.put_state, whole_group=1), "whole_group"),
        wrong_state(lambda w: w.queue.internals.withdraw(w.queue.internals.put_state), "no group or message open"),
    ],
    "set": [
        argument(lambda w: w.queue.set(max_depth=5), "max_depth", NO_ATTRIBUTE),
        argument(lambda w: w.queue.set(get_allowed=0), "get_allowed", Reason.INHIBIT_VALUE_ERROR),
        argument(lambda w: w.queue.set(put_allowed=False, delivery="fifo"), "deliv", NO_ATTRIBUTE),
    ],
    "confirm": [
        option(lambda w: w.queue.leave_group(browsing="yes"), "browsing"),
        option(lambda w: w.queue.delete(UID, lock_id=True), "lock_id"),
        option(lambda w: w.queue.unique_ids(lock_id=None), "lock_id"),
    ],
    "close": [
        wrong_type(lambda w: w.queue.close(delete=True), "Q", Reason.OPTION_NOT_VALID_FOR_TYPE),
        wrong_type(lambda w: w.queue.close(purge=True), "Q", Reason.OPTION_NOT_VALID_FOR_TYPE),
        option(lambda w: w.queue.close(delete="no"), "delete"),
    ],
}


def named(table: Mapping[str, list[Bad]]) -> list[Any]:
    return [pytest.param(*bad, id=f"{name}-{n}") for name, some in table.items() for n, bad in enumerate(some, 1)]


@pytest.mark.parametrize(("call", "error", "reason", "word"), [*named(MANAGER_CALLS), *named(HANDLE_CALLS)])
def test_a_bad_call_gets_a_clear_error_and_changes_nothing(
    world: World, call: Callable[[Any], object], error: Any, reason: Reason, word: str
) -> None:
    check(Line(call, error, reason, word), world)


def test_every_call_refuses_a_queue_that_does_not_exist(world: World) -> None:
    before = snapshot(world.qm)
    for name in BY_NAME:
        for queue in ("ORDERS", 5, None, ["Q"]):
            with pytest.raises(errors.UnknownQueue) as raised:
                called(attrgetter(name)(world.qm), queue)
            assert raised.value.reason == Reason.UNKNOWN_OBJECT_NAME, name
            assert repr(queue) in str(raised.value), name
    assert snapshot(world.qm) == before
    with pytest.raises(errors.UnknownQueue, match="did you mean SMALL"):
        world.qm.attributes("SMALLL")


def test_a_closed_handle_refuses_every_call(world: World) -> None:
    before = snapshot(world.qm)
    for name in ON_A_HANDLE:
        with pytest.raises(errors.HandleError, match="Q") as raised:
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


def test_a_handle_refuses_calls_that_it_is_not_open_for(world: World) -> None:
    before = snapshot(world.qm)
    for number, (call, reason) in enumerate(NOT_OPEN):
        with pytest.raises(errors.NotOpenFor) as raised:
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
    with pytest.raises(errors.ArgumentError):
        call(qm)
    status = qm.inspect.status("NEW")
    assert (status.open_input_count, status.open_output_count) == (0, 0)
    qm.delete_queue("NEW")
