"""Bad puts through a connection: lines of the table of `test_bad_input.py`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tests.support import Line

from inorder import GetOptions, Message, Reason
from inorder.errors import (
    ArgumentError,
    CallerError,
    MessageTooBig,
    PutInhibited,
    QueueFull,
    UnknownQueue,
    WrongQueueType,
)
from inorder.message import SEGMENT

PUT_CALLS: dict[str, Sequence[Line]] = {
    "put": [
        Line(lambda w: w.qm.put("ORDERS", b""), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "'ORDERS'"),
        Line(lambda w: w.qm.put(5, b""), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "5"),
        Line(lambda w: w.qm.put(["Q"], b""), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "['Q']"),
        Line(lambda w: w.qm.put("M", b""), WrongQueueType, Reason.Q_TYPE_ERROR, "M"),
        Line(lambda w: w.qm.put("Q", b"", manager="a b"), ArgumentError, Reason.Q_MGR_NAME_ERROR, "manager"),
        Line(lambda w: w.qm.put("Q", b"", manager="QM9"), WrongQueueType, Reason.UNKNOWN_REMOTE_Q_MGR, "QM9"),
        Line(lambda w: w.qm.put("Q", "text"), ArgumentError, Reason.ARGUMENT_ERROR, "body"),
        Line(lambda w: w.qm.put("Q", None), ArgumentError, Reason.ARGUMENT_ERROR, "body"),
        Line(lambda w: w.qm.put("Q", b"", colour="red"), ArgumentError, Reason.ARGUMENT_ERROR, "colour"),
        Line(lambda w: w.qm.put("Q", b"", backout_count=1), ArgumentError, Reason.ARGUMENT_ERROR, "backout_count"),
        Line(lambda w: w.qm.put("Q", b"", priority=-2), ArgumentError, Reason.PRIORITY_ERROR, "priority"),
        Line(lambda w: w.qm.put("Q", Message(b""), expiry=0), ArgumentError, Reason.EXPIRY_ERROR, "expiry"),
        Line(lambda w: w.qm.put("Q", b"", persistent="yes"), ArgumentError, Reason.PERSISTENCE_ERROR, "persistent"),
        Line(lambda w: w.qm.put("Q", b"", flags=32), ArgumentError, Reason.MSG_FLAGS_ERROR, "flags"),
        Line(lambda w: w.qm.put("Q", b"", message_id="ä" * 13), ArgumentError, Reason.MD_ERROR, "message_id"),
        Line(lambda w: w.qm.put("Q", b"", properties=5), ArgumentError, Reason.ARGUMENT_ERROR, "properties"),
        Line(lambda w: w.qm.put("Q", b"", properties={"1": 1}), ArgumentError, Reason.PROPERTY_NAME_ERROR, "'1'"),
        Line(lambda w: w.qm.put("Q", b"", properties={"a": []}), ArgumentError, Reason.PROPERTY_TYPE_ERROR, "'a'"),
        Line(
            lambda w: w.qm.put("Q", b"", properties={"a": "x" * 2**16}), ArgumentError, Reason.PROPERTIES_TOO_BIG, "65"
        ),
        Line(
            lambda w: w.qm.put("Q", b"", properties={"a": 1, "a.b": 1}),
            ArgumentError,
            Reason.MIXED_CONTENT_NOT_ALLOWED,
            "'a.b'",
        ),
        Line(
            lambda w: w.qm.put("Q", b"", properties={"a" * 4096: 1}),
            ArgumentError,
            Reason.PROPERTY_NAME_LENGTH_ERR,
            "4,095",
        ),
        Line(lambda w: w.qm.put("Q", b"", message_type=1), CallerError, Reason.MISSING_REPLY_TO_Q, "reply_to_queue"),
        Line(lambda w: w.qm.put("Q", b"", syncpoint="yes"), ArgumentError, Reason.OPTIONS_ERROR, "syncpoint"),
        Line(lambda w: w.qm.put("Q", b"", logical=1), ArgumentError, Reason.OPTIONS_ERROR, "logical"),
        Line(lambda w: w.qm.put("Q", b"", context="all"), ArgumentError, Reason.OPTIONS_ERROR, "context"),
        Line(lambda w: w.qm.put("Q", b"", deduplicate=17), ArgumentError, Reason.OPTIONS_ERROR, "deduplicate"),
        Line(lambda w: w.qm.put("Q", b"", deduplicate_for=0), ArgumentError, Reason.OPTIONS_ERROR, "deduplicate_for"),
        Line(lambda w: w.qm.put("Q", b"", 5), ArgumentError, Reason.OPTIONS_ERROR, "options"),
        Line(lambda w: w.qm.put("Q", b"", GetOptions()), ArgumentError, Reason.OPTIONS_ERROR, "options"),
        Line(lambda w: w.qm.put("Q", b"", {"syncpoint": True}), ArgumentError, Reason.OPTIONS_ERROR, "options"),
        Line(lambda w: w.qm.put("Q", b"", {}), ArgumentError, Reason.OPTIONS_ERROR, "options"),
        Line(lambda w: w.qm.put("Q", b"", 5, syncpoint=True), ArgumentError, Reason.OPTIONS_ERROR, "options"),
        Line(lambda w: w.qm.put("Q", b"", flags=SEGMENT), CallerError, Reason.SEGMENT_LENGTH_ZERO, "segment"),
        Line(lambda w: w.qm.put("SMALL", b"long"), MessageTooBig, Reason.MSG_TOO_BIG_FOR_Q, "3"),
        Line(lambda w: w.qm.put("FULL", b""), QueueFull, Reason.Q_FULL, "FULL"),
        Line(lambda w: w.qm.put("SHUT", b""), PutInhibited, Reason.PUT_INHIBITED, "SHUT"),
    ],
    "put_json": [
        Line(lambda w: w.qm.put_json("ORDERS", 1), UnknownQueue, Reason.UNKNOWN_OBJECT_NAME, "'ORDERS'"),
        Line(lambda w: w.qm.put_json("Q", {1, 2}), ArgumentError, Reason.ARGUMENT_ERROR, "value"),
        Line(lambda w: w.qm.put_json("Q", math.nan), ArgumentError, Reason.ARGUMENT_ERROR, "value"),
        Line(lambda w: w.qm.put_json("Q", "\udc80"), ArgumentError, Reason.ARGUMENT_ERROR, "value"),
        Line(lambda w: w.qm.put_json("Q", 1, colour="red"), ArgumentError, Reason.ARGUMENT_ERROR, "colour"),
        Line(lambda w: w.qm.put_json("Q", 1, 5), ArgumentError, Reason.OPTIONS_ERROR, "options"),
    ],
}
