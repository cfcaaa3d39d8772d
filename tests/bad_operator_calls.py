"""Bad calls of an operator, for `tests/test_bad_input.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.support import Line

from inorder import Reason
from inorder.errors import ArgumentError, ObjectInUse, UnitNotFound, UnknownQueue, WrongQueueType

OPERATOR_CALLS: Mapping[str, Sequence[Line]] = {
    "settle": [
        Line(lambda w: w.qm.settle("P1", "maybe"), ArgumentError, Reason.ARGUMENT_ERROR, "outcome"),
        Line(lambda w: w.qm.settle("P1", None), ArgumentError, Reason.ARGUMENT_ERROR, "outcome"),
        Line(lambda w: w.qm.settle("P2", "commit"), UnitNotFound, Reason.UNIT_NOT_FOUND, "'P2'"),
        Line(lambda w: w.qm.settle(["P1"], "commit"), UnitNotFound, Reason.UNIT_NOT_FOUND, "['P1']"),
    ],
    "order_view": [
        Line(lambda w: w.qm.order_view("ORDERS"), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "'ORDERS'"),
        Line(lambda w: w.qm.order_view("M"), WrongQueueType, Reason.OBJECT_TYPE_ERROR, "M"),
    ],
    "clear_queue": [
        Line(lambda w: w.qm.clear_queue("ORDERS"), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "'ORDERS'"),
        Line(lambda w: w.qm.clear_queue("M"), WrongQueueType, Reason.OBJECT_TYPE_ERROR, "M"),
        Line(lambda w: w.qm.clear_queue("Q"), ObjectInUse, Reason.OBJECT_IN_USE, "Q"),
    ],
    "watch": [
        Line(lambda w: w.qm.watch("Q", 5), ArgumentError, Reason.OPTIONS_ERROR, "callback"),
        Line(lambda w: w.qm.watch("ORDERS", print), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "'ORDERS'"),
        Line(lambda w: w.qm.watch("M", print), WrongQueueType, Reason.Q_TYPE_ERROR, "M"),
    ],
    "observe": [
        Line(lambda w: w.qm.observe(5), ArgumentError, Reason.OPTIONS_ERROR, "observer"),
    ],
    "look": [
        Line(lambda w: w.qm.look("ORDERS"), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "'ORDERS'"),
        Line(lambda w: w.qm.look("M"), WrongQueueType, Reason.OBJECT_TYPE_ERROR, "M"),
        Line(lambda w: w.qm.look("Q", order="any"), ArgumentError, Reason.ARGUMENT_ERROR, "'any'"),
        Line(lambda w: w.qm.look("Q", order=["physical"]), ArgumentError, Reason.ARGUMENT_ERROR, "order"),
        Line(lambda w: w.qm.look("Q", match={"priority": 5}), ArgumentError, Reason.ARGUMENT_ERROR, "match"),
        Line(lambda w: w.qm.look("Q", unit="P1"), ArgumentError, Reason.ARGUMENT_ERROR, "'P1'"),
        Line(lambda w: w.qm.look("Q", preview=-1), ArgumentError, Reason.ARGUMENT_ERROR, "preview"),
        Line(lambda w: w.qm.look("Q", preview=2**30), ArgumentError, Reason.ARGUMENT_ERROR, "preview"),
        Line(lambda w: w.qm.look("Q", most=-1), ArgumentError, Reason.ARGUMENT_ERROR, "most"),
        Line(lambda w: w.qm.look("Q", most=True), ArgumentError, Reason.ARGUMENT_ERROR, "most"),
        Line(lambda w: w.qm.look("Q", after=(0, 1, 0)), ArgumentError, Reason.ARGUMENT_ERROR, "after"),
        Line(lambda w: w.qm.look("Q", numbered_after="5"), ArgumentError, Reason.ARGUMENT_ERROR, "numbered_after"),
        Line(
            lambda w: w.qm.look("Q", order="logical", numbered_after=5),
            ArgumentError,
            Reason.ARGUMENT_ERROR,
            "numbered_after",
        ),
    ],
    "gaps": [
        Line(lambda w: w.qm.gaps("ORDERS", b"G"), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "'ORDERS'"),
        Line(lambda w: w.qm.gaps("Q", "G"), ArgumentError, Reason.ARGUMENT_ERROR, "group_id"),
        Line(lambda w: w.qm.gaps("Q", bytes(24)), ArgumentError, Reason.ARGUMENT_ERROR, "group_id"),
        Line(lambda w: w.qm.gaps("Q", b"x" * 25), ArgumentError, Reason.ARGUMENT_ERROR, "group_id"),
    ],
    "check": [
        Line(lambda w: w.qm.check("loudly"), ArgumentError, Reason.ARGUMENT_ERROR, "progress"),
    ],
    "discard_expired": [
        Line(lambda w: w.qm.discard_expired(0), ArgumentError, Reason.ARGUMENT_ERROR, "limit"),
        Line(lambda w: w.qm.discard_expired(True), ArgumentError, Reason.ARGUMENT_ERROR, "limit"),
        Line(lambda w: w.qm.discard_expired("all"), ArgumentError, Reason.ARGUMENT_ERROR, "'all'"),
    ],
    "backup": [
        Line(lambda w: w.qm.backup(5), ArgumentError, Reason.ARGUMENT_ERROR, "path"),
        Line(lambda w: w.qm.backup(""), ArgumentError, Reason.ARGUMENT_ERROR, "path"),
        Line(lambda w: w.qm.backup("a\0b"), ArgumentError, Reason.ARGUMENT_ERROR, "path"),
        Line(lambda w: w.qm.backup("copy.db", replace=1), ArgumentError, Reason.OPTIONS_ERROR, "replace"),
        Line(lambda w: w.qm.backup("copy.db", progress=5), ArgumentError, Reason.ARGUMENT_ERROR, "progress"),
    ],
}
OPERATOR_EXEMPT: Mapping[str, str] = {
    "units": "takes no argument",
    "overview": "takes no argument",
    "dropped": "takes no argument",
    "waits": "takes no argument",
    "locks": "takes no argument",
    "connections": "takes no argument",
}
