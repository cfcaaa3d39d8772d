"""Bad input: for each public call a table of bad arguments and the error each gets; nothing changes after any.

A line is the call, the class of its error, the reason, and a word that the text must hold: the argument's name
or the value that was given. A public method without a line, or a reason why it needs none, fails a test here.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pytest
from tests.bad_inner_calls import INNER_CALLS
from tests.bad_input_exempt import HANDLE_EXEMPT, MANAGER_EXEMPT
from tests.bad_operator_calls import OPERATOR_CALLS
from tests.bad_put_calls import PUT_CALLS
from tests.support import Line, check, snapshot

from inorder import GetOptions, Match, Message, OpenOptions, PutOptions, QueueManager, Reason, UniqueId, connect
from inorder.errors import (
    ArgumentError,
    GetInhibited,
    HandleError,
    MatchError,
    MessageTooBig,
    NoMessageUnderCursor,
    NotFound,
    NotOpenFor,
    ObjectExists,
    ObjectInUse,
    OptionsError,
    QueueNotEmpty,
    UnitNotFound,
    UnknownQueue,
    WrongQueueType,
    WrongState,
)
from inorder.handle import Queue
from inorder.message import IN_GROUP, LAST_IN_GROUP
from inorder.testing.stores import RestartableStore

GROUP = b"G"
UID = UniqueId("ELSEWHERE", 1)
UNKNOWN = Reason.UNKNOWN_OBJECT_NAME


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
        qm.create_alias("A", base_queue="Q")
        qm.create_alias("DANGLING", base_queue="NOWHERE")
        qm.create_model("M")
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
        other.abandon()


MANAGER_CALLS: dict[str, Sequence[Line]] = {
    "connect": [
        Line(lambda w: connect(""), ArgumentError, Reason.ARGUMENT_ERROR, "store"),
        Line(lambda w: connect("a\0b"), ArgumentError, Reason.ARGUMENT_ERROR, "store"),
        Line(lambda w: connect(name="a b"), ArgumentError, Reason.Q_MGR_NAME_ERROR, "name"),
        Line(lambda w: connect(program="\ud800"), ArgumentError, Reason.ARGUMENT_ERROR, "program"),
        Line(lambda w: connect(5), ArgumentError, Reason.ARGUMENT_ERROR, "store"),  # type: ignore[arg-type]
        Line(lambda w: connect(program=5), ArgumentError, Reason.ARGUMENT_ERROR, "program"),  # type: ignore[arg-type]
        Line(lambda w: w.qm.connect(program=5), ArgumentError, Reason.ARGUMENT_ERROR, "program"),
    ],
    "create_queue": [
        Line(lambda w: w.qm.create_queue(""), ArgumentError, Reason.ARGUMENT_ERROR, "name"),
        Line(lambda w: w.qm.create_queue("A B"), ArgumentError, Reason.ARGUMENT_ERROR, "A B"),
        Line(lambda w: w.qm.create_queue("N" * 49), ArgumentError, Reason.ARGUMENT_ERROR, "name"),
        Line(lambda w: w.qm.create_queue(5), ArgumentError, Reason.ARGUMENT_ERROR, "name"),
        Line(lambda w: w.qm.create_queue("Q"), ObjectExists, Reason.OBJECT_ALREADY_EXISTS, "'Q'"),
        Line(lambda w: w.qm.create_queue("M"), ObjectExists, Reason.OBJECT_ALREADY_EXISTS, "'M'"),
        Line(lambda w: w.qm.create_queue("N", colour="red"), ArgumentError, Reason.SELECTOR_ERROR, "colour"),
        Line(lambda w: w.qm.create_queue("N", max_deph=5), ArgumentError, Reason.SELECTOR_ERROR, "nearest: max_depth"),
        Line(lambda w: w.qm.create_queue("N", type="alias"), ArgumentError, Reason.SELECTOR_ERROR, "type"),
        Line(lambda w: w.qm.create_queue("N", base_queue="Q"), ArgumentError, Reason.SELECTOR_NOT_FOR_TYPE, "base_q"),
        Line(lambda w: w.qm.create_queue("N", max_depth=-1), ArgumentError, Reason.ARGUMENT_ERROR, "max_depth"),
        Line(lambda w: w.qm.create_queue("N", max_depth="many"), ArgumentError, Reason.ARGUMENT_ERROR, "'many'"),
        Line(lambda w: w.qm.create_queue("N", default_priority=10), ArgumentError, Reason.PRIORITY_ERROR, "10"),
        Line(lambda w: w.qm.create_queue("N", get_allowed="yes"), ArgumentError, Reason.INHIBIT_VALUE_ERROR, "'yes'"),
        Line(lambda w: w.qm.create_queue("N", order="late"), ArgumentError, Reason.ARGUMENT_ERROR, "'late'"),
        Line(lambda w: w.qm.create_queue("N", expiry=0), ArgumentError, Reason.ARGUMENT_ERROR, "expiry"),
        Line(lambda w: w.qm.create_queue("N", read_order=["x"]), ArgumentError, Reason.ARGUMENT_ERROR, "read_order"),
    ],
    "create_alias": [
        Line(lambda w: w.qm.create_alias("A"), ObjectExists, Reason.OBJECT_ALREADY_EXISTS, "'A'"),
        Line(lambda w: w.qm.create_alias("N", base_queue="A"), WrongQueueType, Reason.ALIAS_BASE_Q_TYPE_ERROR, "'A'"),
        Line(lambda w: w.qm.create_alias("N", base_queue="N"), WrongQueueType, Reason.ALIAS_BASE_Q_TYPE_ERROR, "'N'"),
        Line(lambda w: w.qm.create_alias("N", base_queue="M"), WrongQueueType, Reason.ALIAS_BASE_Q_TYPE_ERROR, "'M'"),
        Line(lambda w: w.qm.create_alias("N", base_queue="a b"), ArgumentError, Reason.ARGUMENT_ERROR, "base_queue"),
        Line(lambda w: w.qm.create_alias("N", max_depth=5), ArgumentError, Reason.SELECTOR_NOT_FOR_TYPE, "max_depth"),
        Line(lambda w: w.qm.create_alias("a b"), ArgumentError, Reason.ARGUMENT_ERROR, "name"),
    ],
    "create_remote_queue": [
        Line(lambda w: w.qm.create_remote_queue("Q"), ObjectExists, Reason.OBJECT_ALREADY_EXISTS, "'Q'"),
        Line(lambda w: w.qm.create_remote_queue("a b"), ArgumentError, Reason.ARGUMENT_ERROR, "name"),
        Line(lambda w: w.qm.create_remote_queue("N", remote_queue="a b"), ArgumentError, Reason.ARGUMENT_ERROR, "a b"),
        Line(lambda w: w.qm.create_remote_queue("N", max_depth=5), ArgumentError, Reason.SELECTOR_NOT_FOR_TYPE, "max"),
        Line(
            lambda w: w.qm.create_remote_queue("N", remote_manager="N"),
            ArgumentError,
            Reason.ARGUMENT_ERROR,
            "transmission_queue",
        ),
        Line(
            lambda w: w.qm.create_remote_queue("N", transmission_queue="N"),
            ArgumentError,
            Reason.ARGUMENT_ERROR,
            "transmission_queue",
        ),
    ],
    "create_model": [
        Line(lambda w: w.qm.create_model("Q"), ObjectExists, Reason.OBJECT_ALREADY_EXISTS, "'Q'"),
        Line(lambda w: w.qm.create_model("N", base_queue="Q"), ArgumentError, Reason.SELECTOR_NOT_FOR_TYPE, "base_q"),
        Line(
            lambda w: w.qm.create_model("N", definition_type="predefined"), ArgumentError, Reason.ARGUMENT_ERROR, "mo"
        ),
        Line(
            lambda w: w.qm.create_model("N", default_persistence=True),
            ArgumentError,
            Reason.PERSISTENT_NOT_ALLOWED,
            "default_persistence",
        ),
    ],
    "alter_queue": [
        Line(lambda w: w.qm.alter_queue("ORDERS"), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "'ORDERS'"),
        Line(lambda w: w.qm.alter_queue(5), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "5"),
        Line(lambda w: w.qm.alter_queue("Q", colour="red"), ArgumentError, Reason.SELECTOR_ERROR, "colour"),
        Line(lambda w: w.qm.alter_queue("Q", type="alias"), ArgumentError, Reason.SELECTOR_ERROR, "type"),
        Line(lambda w: w.qm.alter_queue("Q", max_length=-1), ArgumentError, Reason.ARGUMENT_ERROR, "max_length"),
        Line(lambda w: w.qm.alter_queue("Q", max_depth=1, delivery="x"), ArgumentError, Reason.ARGUMENT_ERROR, "deli"),
        Line(lambda w: w.qm.alter_queue("Q", put_allowed=1), ArgumentError, Reason.INHIBIT_VALUE_ERROR, "put_allowed"),
        Line(lambda w: w.qm.alter_queue("Q", order="commit"), ObjectInUse, Reason.OBJECT_IN_USE, "Q"),
        Line(lambda w: w.qm.alter_queue("A", base_queue="A"), WrongQueueType, Reason.ALIAS_BASE_Q_TYPE_ERROR, "'A'"),
    ],
    "delete_queue": [
        Line(lambda w: w.qm.delete_queue("ORDERS"), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "'ORDERS'"),
        Line(lambda w: w.qm.delete_queue(5), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "5"),
        Line(lambda w: w.qm.delete_queue("Q", purge=True), ObjectInUse, Reason.OBJECT_IN_USE, "Q"),
        Line(lambda w: w.qm.delete_queue("IDLE", purge="no"), ArgumentError, Reason.OPTIONS_ERROR, "purge"),
    ],
    "attributes": [
        Line(lambda w: w.qm.attributes("ORDERS"), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "'ORDERS'"),
        Line(lambda w: w.qm.attributes("SMALLL"), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "did you mean SMALL"),
        Line(lambda w: w.qm.attributes(5), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "5"),
        Line(lambda w: w.qm.attributes(["Q"]), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "['Q']"),
    ],
    "status": [
        Line(lambda w: w.qm.status("ORDERS"), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "'ORDERS'"),
        Line(lambda w: w.qm.status("M"), WrongQueueType, Reason.OBJECT_TYPE_ERROR, "M"),
        Line(lambda w: w.qm.status("DANGLING"), WrongQueueType, Reason.UNKNOWN_ALIAS_BASE_Q, "'NOWHERE'"),
    ],
    "depth": [Line(lambda w: w.qm.depth("ORDERS"), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "'ORDERS'")],
    "inquire": [
        Line(lambda w: w.qm.inquire("ORDERS"), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "'ORDERS'"),
        Line(lambda w: w.qm.inquire("Q", "max_depth", "colour"), ArgumentError, Reason.SELECTOR_ERROR, "colour"),
        Line(lambda w: w.qm.inquire("Q", 99), ArgumentError, Reason.SELECTOR_ERROR, "99"),
        Line(lambda w: w.qm.inquire("Q", True), ArgumentError, Reason.SELECTOR_ERROR, "True"),
        Line(lambda w: w.qm.inquire("Q", 15.0), ArgumentError, Reason.SELECTOR_ERROR, "15.0"),
        Line(lambda w: w.qm.inquire("Q", "MaxDepth"), ArgumentError, Reason.SELECTOR_ERROR, "did you mean MaxQDepth"),
        Line(lambda w: w.qm.inquire("Q", ["max_depth"]), ArgumentError, Reason.SELECTOR_ERROR, "selector"),
    ],
    "alter_manager": [
        Line(lambda w: w.qm.alter_manager(colour=1), ArgumentError, Reason.SELECTOR_ERROR, "colour"),
        Line(lambda w: w.qm.alter_manager(name="X"), ArgumentError, Reason.SELECTOR_ERROR, "name"),
        Line(lambda w: w.qm.alter_manager(max_uncommitted=0), ArgumentError, Reason.ARGUMENT_ERROR, "max_uncommitted"),
        Line(lambda w: w.qm.alter_manager(max_handles=5, mark_interval=0), ArgumentError, Reason.ARGUMENT_ERROR, "mar"),
        Line(lambda w: w.qm.alter_manager(max_length=1), ArgumentError, Reason.ARGUMENT_ERROR, "max_length"),
    ],
    "open": [
        Line(lambda w: w.qm.open("ORDERS"), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "'ORDERS'"),
        Line(lambda w: w.qm.open(5), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "5"),
        Line(lambda w: w.qm.open("Q", colour=1), ArgumentError, Reason.OPTIONS_ERROR, "colour"),
        Line(lambda w: w.qm.open("Q", input="often"), ArgumentError, Reason.OPTIONS_ERROR, "input"),
        Line(lambda w: w.qm.open("Q", output=1), ArgumentError, Reason.OPTIONS_ERROR, "output"),
        Line(lambda w: w.qm.open("Q", output=True, co_op=True), OptionsError, Reason.OPTIONS_ERROR, "co_op"),
        Line(lambda w: w.qm.open("Q", browse=False), OptionsError, Reason.OPTIONS_ERROR, "browse"),
        Line(lambda w: w.qm.open("Q", input="exclusive"), ObjectInUse, Reason.OBJECT_IN_USE, "Q"),
        Line(lambda w: w.qm.open("DANGLING"), WrongQueueType, Reason.UNKNOWN_ALIAS_BASE_Q, "'NOWHERE'"),
        Line(lambda w: w.qm.open("M", dynamic_name="a b*"), ArgumentError, Reason.DYNAMIC_Q_NAME_ERROR, "dynamic_name"),
        Line(lambda w: w.qm.open("M", dynamic_name=5), ArgumentError, Reason.DYNAMIC_Q_NAME_ERROR, "dynamic_name"),
        Line(lambda w: w.qm.open("M", dynamic_name="Q"), ObjectExists, Reason.OBJECT_ALREADY_EXISTS, "'Q'"),
    ],
    "open_growing": [
        Line(lambda w: w.qm.open_growing("ORDERS", OpenOptions(output=True)), UnknownQueue, UNKNOWN, "'ORDERS'"),
        Line(lambda w: w.qm.open_growing("Q", {"output": True}), ArgumentError, Reason.ARGUMENT_ERROR, "options"),
        Line(lambda w: w.qm.open_growing("Q", None), ArgumentError, Reason.ARGUMENT_ERROR, "OpenOptions"),
    ],
    **PUT_CALLS,
    "put_many": [
        Line(lambda w: w.qm.put_many("ORDERS", [b""]), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "'ORDERS'"),
        Line(lambda w: w.qm.put_many("Q", 5), ArgumentError, Reason.ARGUMENT_ERROR, "messages"),
        Line(lambda w: w.qm.put_many("Q", b"one"), ArgumentError, Reason.ARGUMENT_ERROR, "messages"),
        Line(lambda w: w.qm.put_many("Q", "text"), ArgumentError, Reason.ARGUMENT_ERROR, "b"),
        Line(lambda w: w.qm.put_many("Q", [b"good", "bad"]), ArgumentError, Reason.ARGUMENT_ERROR, "'bad'"),
        Line(lambda w: w.qm.put_many("Q", [b"good"], priority=-2), ArgumentError, Reason.PRIORITY_ERROR, "priority"),
        Line(lambda w: w.qm.put_many("Q", [b"good"], 5), ArgumentError, Reason.OPTIONS_ERROR, "options"),
        Line(lambda w: w.qm.put_many("SMALL", [b"s", b"long"]), MessageTooBig, Reason.MSG_TOO_BIG_FOR_Q, "3"),
    ],
    "get": [
        Line(lambda w: w.qm.get("ORDERS"), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "'ORDERS'"),
        Line(lambda w: w.qm.get(None), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "None"),
        Line(lambda w: w.qm.get("Q", colour=1), ArgumentError, Reason.OPTIONS_ERROR, "colour"),
        Line(lambda w: w.qm.get("Q", lock=True), ArgumentError, Reason.OPTIONS_ERROR, "lock"),
        Line(lambda w: w.qm.get("Q", wait=-1), ArgumentError, Reason.WAIT_INTERVAL_ERROR, "wait"),
        Line(lambda w: w.qm.get("Q", wait="long"), ArgumentError, Reason.WAIT_INTERVAL_ERROR, "'long'"),
        Line(lambda w: w.qm.get("Q", buffer=-1), ArgumentError, Reason.BUFFER_LENGTH_ERROR, "buffer"),
        Line(lambda w: w.qm.get("Q", match="x"), ArgumentError, Reason.MATCH_OPTIONS_ERROR, "match"),
        Line(lambda w: w.qm.get("Q", syncpoint=1), ArgumentError, Reason.OPTIONS_ERROR, "syncpoint"),
        Line(lambda w: w.qm.get("Q", 5), ArgumentError, Reason.OPTIONS_ERROR, "options"),
        Line(lambda w: w.qm.get("Q", PutOptions()), ArgumentError, Reason.OPTIONS_ERROR, "options"),
        Line(lambda w: w.qm.get("Q", 5, logical=True), ArgumentError, Reason.OPTIONS_ERROR, "options"),
        Line(
            lambda w: w.qm.get("Q", syncpoint=True, syncpoint_if_persistent=True),
            OptionsError,
            Reason.OPTIONS_ERROR,
            "syncpoint_if_persistent",
        ),
        Line(
            lambda w: w.qm.get("Q", complete=True, match=Match(offset=0)),
            MatchError,
            Reason.MATCH_OPTIONS_ERROR,
            "offset",
        ),
        Line(
            lambda w: w.qm.get("Q", logical=True, match=Match(sequence_number=2)),
            MatchError,
            Reason.MATCH_OPTIONS_ERROR,
            "sequence_number",
        ),
        Line(lambda w: w.qm.get("SHUT"), GetInhibited, Reason.GET_INHIBITED, "SHUT"),
    ],
    "get_many": [
        Line(lambda w: w.qm.get_many("ORDERS", 1), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "'ORDERS'"),
        Line(lambda w: w.qm.get_many("Q", 0), ArgumentError, Reason.ARGUMENT_ERROR, "count"),
        Line(lambda w: w.qm.get_many("Q", True), ArgumentError, Reason.ARGUMENT_ERROR, "count"),
        Line(lambda w: w.qm.get_many("Q", math.inf), ArgumentError, Reason.ARGUMENT_ERROR, "count"),
        Line(lambda w: w.qm.get_many("Q", 2, wait=-1), ArgumentError, Reason.WAIT_INTERVAL_ERROR, "wait"),
        Line(lambda w: w.qm.get_many("Q", 2, 5), ArgumentError, Reason.OPTIONS_ERROR, "options"),
    ],
    "browse": [
        Line(lambda w: list(w.qm.browse("ORDERS")), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "'ORDERS'"),
        Line(lambda w: list(w.qm.browse("Q", colour=1)), ArgumentError, Reason.OPTIONS_ERROR, "colour"),
        Line(lambda w: list(w.qm.browse("Q", syncpoint=True)), ArgumentError, Reason.OPTIONS_ERROR, "syncpoint"),
        Line(lambda w: list(w.qm.browse("Q", wait=-1)), ArgumentError, Reason.WAIT_INTERVAL_ERROR, "wait"),
        Line(lambda w: list(w.qm.browse("Q", mark_co_op=True)), OptionsError, Reason.OPTIONS_ERROR, "co_op"),
        Line(lambda w: list(w.qm.browse("Q", lock=1)), ArgumentError, Reason.OPTIONS_ERROR, "lock"),
    ],
    "group": [
        Line(lambda w: w.qm.group("ORDERS"), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "'ORDERS'"),
        Line(lambda w: w.qm.group("M"), WrongQueueType, Reason.Q_TYPE_ERROR, "M"),
    ],
    "get_group": [
        Line(lambda w: list(w.qm.get_group("ORDERS")), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "'ORDERS'"),
        Line(lambda w: list(w.qm.get_group("Q", wait=-1)), ArgumentError, Reason.WAIT_INTERVAL_ERROR, "wait"),
        Line(lambda w: list(w.qm.get_group("Q", match="x")), ArgumentError, Reason.MATCH_OPTIONS_ERROR, "match"),
    ],
    "put_stream": [
        Line(lambda w: w.qm.put_stream("ORDERS", stream()), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "'ORDERS'"),
        Line(lambda w: w.qm.put_stream("Q", 5), ArgumentError, Reason.ARGUMENT_ERROR, "stream"),
        Line(lambda w: w.qm.put_stream("Q", io.StringIO("text")), ArgumentError, Reason.ARGUMENT_ERROR, "bytes"),
        Line(lambda w: w.qm.put_stream("Q", stream(), chunk=0), ArgumentError, Reason.ARGUMENT_ERROR, "chunk"),
        Line(lambda w: w.qm.put_stream("Q", stream(), chunk=True), ArgumentError, Reason.ARGUMENT_ERROR, "chunk"),
        Line(lambda w: w.qm.put_stream("Q", stream(), most=0), ArgumentError, Reason.ARGUMENT_ERROR, "999,999,999"),
        Line(lambda w: w.qm.put_stream("Q", stream(), most=10**9), ArgumentError, Reason.ARGUMENT_ERROR, "most"),
        Line(lambda w: w.qm.put_stream("Q", stream(), most=9, chunk=4), ArgumentError, Reason.OFFSET_ERROR, "stream"),
        Line(lambda w: w.qm.put_stream("Q", stream(), as_group=1), ArgumentError, Reason.OPTIONS_ERROR, "as_group"),
        Line(lambda w: w.qm.put_stream("Q", stream(), colour=1), ArgumentError, Reason.ARGUMENT_ERROR, "colour"),
        Line(lambda w: w.qm.put_stream("Q", stream(), body=b""), ArgumentError, Reason.ARGUMENT_ERROR, "body"),
        Line(lambda w: w.qm.put_stream("Q", stream(), logical=False), ArgumentError, Reason.ARGUMENT_ERROR, "logical"),
        Line(lambda w: w.qm.put_stream("Q", stream(), flags="x"), ArgumentError, Reason.MSG_FLAGS_ERROR, "flags"),
        Line(lambda w: w.qm.put_stream("Q", stream(), priority=-2), ArgumentError, Reason.PRIORITY_ERROR, "priority"),
        Line(lambda w: w.qm.put_stream("SMALL", stream(), chunk=4), MessageTooBig, Reason.MSG_TOO_BIG_FOR_Q, "SMALL"),
    ],
    "get_stream": [
        Line(lambda w: w.qm.get_stream("ORDERS", stream()), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "'ORDERS'"),
        Line(lambda w: w.qm.get_stream("Q", 5), ArgumentError, Reason.ARGUMENT_ERROR, "stream"),
        Line(lambda w: w.qm.get_stream("Q", stream(), as_group=1), ArgumentError, Reason.OPTIONS_ERROR, "as_group"),
        Line(lambda w: w.qm.get_stream("Q", stream(), wait=-1), ArgumentError, Reason.WAIT_INTERVAL_ERROR, "wait"),
        Line(lambda w: w.qm.get_stream("Q", stream(), match=5), ArgumentError, Reason.MATCH_OPTIONS_ERROR, "match"),
    ],
    "prepare": [
        Line(lambda w: w.qm.prepare(""), ArgumentError, Reason.ARGUMENT_ERROR, "name"),
        Line(lambda w: w.qm.prepare(5), ArgumentError, Reason.ARGUMENT_ERROR, "5"),
        Line(lambda w: w.qm.prepare("nothing"), UnitNotFound, Reason.UNIT_NOT_FOUND, "unit of work"),
    ],
    "confirm_put": [
        Line(lambda w: w.qm.confirm_put("ORDERS", UID), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "'ORDERS'"),
        Line(lambda w: w.qm.confirm_put("Q", "uid"), ArgumentError, Reason.ARGUMENT_ERROR, "uid"),
        *(
            Line(lambda w, uid=uid: w.qm.confirm_put("Q", uid), ArgumentError, Reason.ARGUMENT_ERROR, "uid")  # type: ignore[misc]
            for uid in (UniqueId("X", 0), UniqueId("X", -1), UniqueId("X", 2**63), UniqueId("\ud800", 5))
        ),
        Line(lambda w: w.qm.confirm_put("Q", UID, confirm_id=-1), ArgumentError, Reason.OPTIONS_ERROR, "confirm_id"),
    ],
    "confirm_get": [
        Line(lambda w: w.qm.confirm_get("ORDERS", UID), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "'ORDERS'"),
        Line(lambda w: w.qm.confirm_get("Q", None), ArgumentError, Reason.ARGUMENT_ERROR, "uid"),
        Line(lambda w: w.qm.confirm_get("Q", UID, confirm_id="7"), ArgumentError, Reason.OPTIONS_ERROR, "confirm_id"),
        Line(lambda w: w.qm.confirm_get("Q", w.there), WrongState, Reason.WRONG_STATE, "UniqueId"),
    ],
    "browse_and_lock": [
        Line(lambda w: w.qm.browse_and_lock("ORDERS"), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "'ORDERS'"),
        Line(lambda w: w.qm.browse_and_lock("Q", "x"), ArgumentError, Reason.MATCH_OPTIONS_ERROR, "match"),
        Line(lambda w: w.qm.browse_and_lock("Q", confirm_id=1.5), ArgumentError, Reason.OPTIONS_ERROR, "confirm_id"),
        Line(lambda w: w.qm.browse_and_lock("SHUT"), GetInhibited, Reason.GET_INHIBITED, "SHUT"),
        Line(
            lambda w: w.qm.browse_and_lock("Q", most=0),
            ArgumentError,
            Reason.ARGUMENT_ERROR,
            "most must be an integer from 1 to",
        ),
        Line(lambda w: w.qm.browse_and_lock("Q", most="2"), ArgumentError, Reason.ARGUMENT_ERROR, "most"),
        Line(
            lambda w: w.qm.browse_and_lock("Q", lease=0),
            ArgumentError,
            Reason.ARGUMENT_ERROR,
            "lease must be seconds above 0",
        ),
        Line(lambda w: w.qm.browse_and_lock("Q", lease="5"), ArgumentError, Reason.ARGUMENT_ERROR, "lease"),
    ],
    "leave_group": [
        Line(lambda w: w.qm.leave_group("ORDERS"), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "'ORDERS'"),
    ],
    "unlock": [
        Line(lambda w: w.qm.unlock("ORDERS", UID, lock_id=1), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "'ORDERS'"),
        Line(lambda w: w.qm.unlock("Q", "uid", lock_id=1), ArgumentError, Reason.ARGUMENT_ERROR, "uid"),
        Line(lambda w: w.qm.unlock("Q", UID, lock_id=-1), ArgumentError, Reason.OPTIONS_ERROR, "lock_id"),
        Line(lambda w: w.qm.unlock("Q", UID, lock_id=1), NotFound, Reason.NOT_FOUND, "UniqueId"),
        Line(lambda w: w.qm.unlock("Q", w.there, lock_id=1), WrongState, Reason.WRONG_STATE, "UniqueId"),
    ],
    "delete": [
        Line(lambda w: w.qm.delete("ORDERS", UID), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "'ORDERS'"),
        Line(lambda w: w.qm.delete("Q", 5), ArgumentError, Reason.ARGUMENT_ERROR, "uid"),
        Line(lambda w: w.qm.delete("Q", UID), NotFound, Reason.NOT_FOUND, "UniqueId"),
        Line(lambda w: w.qm.delete("Q", w.there, lock_id=99), WrongState, Reason.WRONG_STATE, "UniqueId"),
    ],
    "undo": [
        Line(lambda w: w.qm.undo("ORDERS", 7), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "'ORDERS'"),
        Line(lambda w: w.qm.undo("Q", 2**64), ArgumentError, Reason.OPTIONS_ERROR, "confirm_id"),
        Line(lambda w: w.qm.undo("Q", 7), NotFound, Reason.NOT_FOUND, "7"),
    ],
    "release_lock": [
        Line(lambda w: w.qm.release_lock("ORDERS", 7), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "'ORDERS'"),
        Line(lambda w: w.qm.release_lock("Q", "7"), ArgumentError, Reason.OPTIONS_ERROR, "lock_id"),
        Line(lambda w: w.qm.release_lock("Q", 7), NotFound, Reason.NOT_FOUND, "7"),
    ],
    "unique_ids": [
        Line(lambda w: w.qm.unique_ids("ORDERS", lock_id=7), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "'ORDERS'"),
        Line(lambda w: w.qm.unique_ids("Q"), OptionsError, Reason.OPTIONS_ERROR, "either"),
        Line(lambda w: w.qm.unique_ids("Q", confirm_id=1, lock_id=2), OptionsError, Reason.OPTIONS_ERROR, "either"),
        Line(lambda w: w.qm.unique_ids("Q", confirm_id=-1), ArgumentError, Reason.OPTIONS_ERROR, "confirm_id"),
        Line(lambda w: w.qm.unique_ids("Q", lock_id=7), NotFound, Reason.NOT_FOUND, "7"),
    ],
    "listen": [
        Line(lambda w: w.qm.listen("ORDERS", print), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "'ORDERS'"),
        Line(lambda w: w.qm.listen("A", print), ArgumentError, Reason.OBJECT_TYPE_ERROR, "queue"),
        Line(lambda w: w.qm.listen("Q", 5), ArgumentError, Reason.OPTIONS_ERROR, "5"),
        Line(lambda w: w.qm.listen("Q", print, "x"), MatchError, Reason.MATCH_OPTIONS_ERROR, "match"),
    ],
    "hook": [
        Line(lambda w: w.qm.hook("get", print), ArgumentError, Reason.OPTIONS_ERROR, "'get'"),
        Line(lambda w: w.qm.hook(["put"], print), ArgumentError, Reason.OPTIONS_ERROR, "hook"),
        Line(lambda w: w.qm.hook("put", 5), ArgumentError, Reason.OPTIONS_ERROR, "5"),
    ],
} | dict(OPERATOR_CALLS)

HANDLE_CALLS: Mapping[str, Sequence[Line]] = {
    "put": [
        Line(lambda w: w.queue.put("text"), ArgumentError, Reason.ARGUMENT_ERROR, "body"),
        Line(lambda w: w.queue.put(b"", colour=1), ArgumentError, Reason.ARGUMENT_ERROR, "colour"),
        Line(lambda w: w.queue.put(b"", sequence_number=0), ArgumentError, Reason.MSG_SEQ_NUMBER_ERROR, "sequence_n"),
        Line(lambda w: w.queue.put(b"", 5), ArgumentError, Reason.OPTIONS_ERROR, "options"),
        Line(lambda w: w.browser.put(b""), NotOpenFor, Reason.NOT_OPEN_FOR_OUTPUT, "output"),
        Line(lambda w: w.closed.put(b""), HandleError, Reason.HOBJ_ERROR, "Q"),
    ],
    "put_many": [
        Line(lambda w: w.queue.put_many(5), ArgumentError, Reason.ARGUMENT_ERROR, "messages"),
        Line(lambda w: w.queue.put_many(Message(b"one")), ArgumentError, Reason.ARGUMENT_ERROR, "messages"),
        Line(lambda w: w.queue.put_many([b"good", None]), ArgumentError, Reason.ARGUMENT_ERROR, "None"),
        Line(lambda w: w.getter.put_many([b""]), NotOpenFor, Reason.NOT_OPEN_FOR_OUTPUT, "output"),
        Line(lambda w: w.closed.put_many([b""]), HandleError, Reason.HOBJ_ERROR, "Q"),
    ],
    "get": [
        Line(lambda w: w.queue.get(wait=math.nan), ArgumentError, Reason.WAIT_INTERVAL_ERROR, "wait"),
        Line(lambda w: w.queue.get(buffer=1.5), ArgumentError, Reason.BUFFER_LENGTH_ERROR, "buffer"),
        Line(lambda w: w.queue.get(browse="first"), ArgumentError, Reason.OPTIONS_ERROR, "browse"),
        Line(lambda w: w.queue.get("first"), ArgumentError, Reason.OPTIONS_ERROR, "options"),
        Line(lambda w: w.queue.get(under_cursor=True), NoMessageUnderCursor, Reason.NO_MSG_UNDER_CURSOR, "cursor"),
        Line(lambda w: w.getter.get(under_cursor=True), NotOpenFor, Reason.NOT_OPEN_FOR_BROWSE, "browse"),
        Line(lambda w: w.browser.get(), NotOpenFor, Reason.NOT_OPEN_FOR_INPUT, "input"),
        Line(lambda w: w.closed.get(), HandleError, Reason.HOBJ_ERROR, "Q"),
    ],
    "get_many": [
        Line(lambda w: w.queue.get_many(2**63), ArgumentError, Reason.ARGUMENT_ERROR, "count"),
        Line(lambda w: w.queue.get_many(-1), ArgumentError, Reason.ARGUMENT_ERROR, "count"),
        Line(lambda w: w.queue.get_many("2"), ArgumentError, Reason.ARGUMENT_ERROR, "count"),
        Line(lambda w: w.queue.get_many(2, colour=1), ArgumentError, Reason.OPTIONS_ERROR, "colour"),
        Line(lambda w: w.browser.get_many(2), NotOpenFor, Reason.NOT_OPEN_FOR_INPUT, "input"),
        Line(lambda w: w.closed.get_many(2), HandleError, Reason.HOBJ_ERROR, "Q"),
    ],
    "browse_first": [
        Line(lambda w: w.queue.browse_first(syncpoint=True), ArgumentError, Reason.OPTIONS_ERROR, "syncpoint"),
        Line(lambda w: w.queue.browse_first(GetOptions(syncpoint=True)), OptionsError, Reason.OPTIONS_ERROR, "syncpoi"),
        Line(lambda w: w.queue.browse_first(mark_co_op=True), OptionsError, Reason.OPTIONS_ERROR, "co_op"),
        Line(lambda w: w.queue.browse_first(5), ArgumentError, Reason.OPTIONS_ERROR, "options"),
        Line(lambda w: w.getter.browse_first(), NotOpenFor, Reason.NOT_OPEN_FOR_BROWSE, "browse"),
        Line(lambda w: w.closed.browse_first(), HandleError, Reason.HOBJ_ERROR, "Q"),
    ],
    "browse_next": [
        Line(lambda w: w.queue.browse_next(lock=True, unmarked=True), OptionsError, Reason.OPTIONS_ERROR, "lock"),
        Line(lambda w: w.queue.browse_next(match=5), ArgumentError, Reason.MATCH_OPTIONS_ERROR, "match"),
        Line(lambda w: w.getter.browse_next(), NotOpenFor, Reason.NOT_OPEN_FOR_BROWSE, "browse"),
        Line(lambda w: w.closed.browse_next(), HandleError, Reason.HOBJ_ERROR, "Q"),
    ],
    "browse_cursor": [
        Line(lambda w: w.queue.browse_cursor(), NoMessageUnderCursor, Reason.NO_MSG_UNDER_CURSOR, "cursor"),
        Line(lambda w: w.queue.browse_cursor(wait="x"), ArgumentError, Reason.WAIT_INTERVAL_ERROR, "wait"),
        Line(lambda w: w.getter.browse_cursor(), NotOpenFor, Reason.NOT_OPEN_FOR_BROWSE, "browse"),
        Line(lambda w: w.closed.browse_cursor(), HandleError, Reason.HOBJ_ERROR, "Q"),
    ],
    "browse": [
        Line(lambda w: list(w.queue.browse(colour=1)), ArgumentError, Reason.OPTIONS_ERROR, "colour"),
        Line(lambda w: list(w.queue.browse(5)), ArgumentError, Reason.OPTIONS_ERROR, "options"),
        Line(lambda w: list(w.getter.browse()), NotOpenFor, Reason.NOT_OPEN_FOR_BROWSE, "browse"),
        Line(lambda w: list(w.closed.browse()), HandleError, Reason.HOBJ_ERROR, "Q"),
    ],
    **INNER_CALLS,
    "leave_group": [
        Line(lambda w: w.queue.leave_group(browsing="yes"), ArgumentError, Reason.OPTIONS_ERROR, "browsing"),
        Line(lambda w: w.closed.leave_group(), HandleError, Reason.HOBJ_ERROR, "Q"),
    ],
    "unlock": [
        Line(lambda w: w.getter.unlock(), NotOpenFor, Reason.NOT_OPEN_FOR_BROWSE, "browse"),
        Line(lambda w: w.closed.unlock(), HandleError, Reason.HOBJ_ERROR, "Q"),
    ],
    "attributes": [Line(lambda w: w.closed.attributes(), HandleError, Reason.HOBJ_ERROR, "Q")],
    "status": [Line(lambda w: w.closed.status(), HandleError, Reason.HOBJ_ERROR, "Q")],
    "set": [
        Line(lambda w: w.queue.set(max_depth=5), ArgumentError, Reason.SELECTOR_ERROR, "max_depth"),
        Line(lambda w: w.queue.set(colour=5), ArgumentError, Reason.SELECTOR_ERROR, "colour"),
        Line(lambda w: w.queue.set(get_allowed=0), ArgumentError, Reason.INHIBIT_VALUE_ERROR, "get_allowed"),
        Line(lambda w: w.queue.set(put_allowed=False, delivery="fifo"), ArgumentError, Reason.SELECTOR_ERROR, "deliv"),
        Line(lambda w: w.closed.set(get_allowed=False), HandleError, Reason.HOBJ_ERROR, "Q"),
    ],
    "confirm_put": [Line(lambda w: w.queue.confirm_put(5), ArgumentError, Reason.ARGUMENT_ERROR, "uid")],
    "confirm_get": [
        Line(lambda w: w.queue.confirm_get("uid"), ArgumentError, Reason.ARGUMENT_ERROR, "uid"),
        Line(lambda w: w.closed.confirm_get(UID), HandleError, Reason.HOBJ_ERROR, "Q"),
    ],
    "browse_and_lock": [
        Line(lambda w: w.queue.browse_and_lock(5), ArgumentError, Reason.MATCH_OPTIONS_ERROR, "match"),
        Line(lambda w: w.browser.browse_and_lock(), NotOpenFor, Reason.NOT_OPEN_FOR_INPUT, "Q"),
    ],
    "delete": [
        Line(lambda w: w.queue.delete(UID, lock_id=True), ArgumentError, Reason.OPTIONS_ERROR, "lock_id"),
        Line(lambda w: w.closed.delete(UID), HandleError, Reason.HOBJ_ERROR, "Q"),
    ],
    "undo": [
        Line(lambda w: w.queue.undo(None), ArgumentError, Reason.OPTIONS_ERROR, "confirm_id"),
        Line(lambda w: w.closed.undo(7), HandleError, Reason.HOBJ_ERROR, "Q"),
    ],
    "release_lock": [
        Line(lambda w: w.queue.release_lock(None), ArgumentError, Reason.OPTIONS_ERROR, "lock_id"),
        Line(lambda w: w.queue.release_lock(7), NotFound, Reason.NOT_FOUND, "7"),
    ],
    "unique_ids": [
        Line(lambda w: w.queue.unique_ids(lock_id=None), ArgumentError, Reason.OPTIONS_ERROR, "lock_id"),
        Line(lambda w: w.queue.unique_ids(confirm_id=7), NotFound, Reason.NOT_FOUND, "7"),
        Line(lambda w: w.closed.unique_ids(confirm_id=7), HandleError, Reason.HOBJ_ERROR, "Q"),
    ],
    "resume": [
        Line(lambda w: w.queue.resume("token"), ArgumentError, Reason.ARGUMENT_ERROR, "token"),
        Line(lambda w: w.getter.resume("e30="), NotOpenFor, Reason.NOT_OPEN_FOR_BROWSE, "Q"),
    ],
    "browse_token": [Line(lambda w: w.getter.browse_token(), NotOpenFor, Reason.NOT_OPEN_FOR_BROWSE, "Q")],
    "close": [
        Line(lambda w: w.queue.close(delete=True), WrongQueueType, Reason.OPTION_NOT_VALID_FOR_TYPE, "Q"),
        Line(lambda w: w.queue.close(purge=True), WrongQueueType, Reason.OPTION_NOT_VALID_FOR_TYPE, "Q"),
        Line(lambda w: w.queue.close(delete="no"), ArgumentError, Reason.OPTIONS_ERROR, "delete"),
        Line(lambda w: w.closed.close(), HandleError, Reason.HOBJ_ERROR, "Q"),
    ],
}


def stream() -> io.BytesIO:
    return io.BytesIO(b"0123456789")


def lines(table: Mapping[str, Sequence[Line]]) -> list[Any]:
    return [pytest.param(line, id=f"{name}-{n}") for name, some in table.items() for n, line in enumerate(some, 1)]


@pytest.mark.parametrize("line", lines(MANAGER_CALLS))
def test_a_bad_call_of_a_connection_gets_a_clear_error_and_changes_nothing(world: World, line: Line) -> None:
    check(line, world)


@pytest.mark.parametrize("line", lines(HANDLE_CALLS))
def test_a_bad_call_of_a_handle_gets_a_clear_error_and_changes_nothing(world: World, line: Line) -> None:
    check(line, world)


def methods_of(kind: type[object]) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name))}


@pytest.mark.parametrize(
    ("kind", "table", "exempt"),
    [(QueueManager, MANAGER_CALLS, MANAGER_EXEMPT), (Queue, HANDLE_CALLS, HANDLE_EXEMPT)],
)
def test_every_public_method_has_a_line_or_a_reason_to_have_none(
    kind: type[object], table: Mapping[str, Sequence[Line]], exempt: Mapping[str, str]
) -> None:
    assert methods_of(kind) == table.keys() | exempt.keys()
    assert not table.keys() & exempt.keys()
    assert all(table.values())


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
def test_a_first_call_that_is_refused_does_not_leave_the_queue_open(
    qm: QueueManager, call: Callable[[Any], object]
) -> None:
    qm.create_queue("NEW")
    with pytest.raises(ArgumentError):
        call(qm)
    status = qm.status("NEW")
    assert (status.open_input_count, status.open_output_count) == (0, 0)
    qm.delete_queue("NEW")


def test_a_queue_with_messages_is_deleted_only_with_purge(qm: QueueManager) -> None:
    qm.put("Q", b"m1")
    qm.close_queue("Q")
    before = snapshot(qm)
    with pytest.raises(QueueNotEmpty, match="Q has messages") as raised:
        qm.delete_queue("Q")
    assert raised.value.reason == Reason.Q_NOT_EMPTY
    assert snapshot(qm) == before
