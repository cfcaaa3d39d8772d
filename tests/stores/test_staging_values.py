"""What is not right in a request to stage or to settle is named: row, column, value, range (spark 3)."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.helpers.staged import IN, KEY, LASTS, Writer, letters
from tests.helpers.support import snapshot

from inorder import (
    ArgumentError,
    CallerError,
    Flags,
    QueueManager,
    Reason,
)
from inorder.stores.seam.records import LedgerKey, Staged, StageRequest
from inorder.testing.stores import RestartableStore

SEGMENT = int(Flags.SEGMENT)
G = b"G".ljust(24, b"\0")


@pytest.fixture
def writer(store: RestartableStore, qm: QueueManager) -> Writer:
    return Writer(store, qm)


# ---- bad values


BAD_VALUES: list[tuple[str, dict[str, list[Any]], Reason, str]] = [
    ("body", {"body": [b"", None]}, Reason.ARGUMENT_ERROR, "row 1: body must be bytes"),
    ("priority", {"priority": [0, -1]}, Reason.PRIORITY_ERROR, "row 1: priority must be an integer from 0 .*not -1"),
    ("priority bool", {"priority": [1, True]}, Reason.PRIORITY_ERROR, "row 1: priority .* not True"),
    ("expiry nan", {"expiry": [1.0, math.nan]}, Reason.EXPIRY_ERROR, "row 1: expiry"),
    ("delay", {"delay": [None, -1.0]}, Reason.ARGUMENT_ERROR, "row 1: delay must be a number of seconds"),
    ("put_at", {"put_at": [0, -1]}, Reason.MD_ERROR, "row 1: put_at"),
    ("request", {"message_type": [8, 1]}, Reason.MISSING_REPLY_TO_Q, "row 1: a request"),
    ("format", {"format": ["", "too long a format"]}, Reason.MD_ERROR, "row 1: format must be a text of at most 8"),
    ("format surrogate", {"format": ["", "\ud800"]}, Reason.MD_ERROR, "row 1: format"),
    ("message_id", {"message_id": [b"x" * 25, None]}, Reason.MD_ERROR, "row 0: message_id must be bytes"),
    ("persistent", {"persistent": [True, 1]}, Reason.PERSISTENCE_ERROR, "row 1: persistent"),
    ("flags", {"flags": [32, 0]}, Reason.MSG_FLAGS_ERROR, "row 0: flags"),
    ("original_length", {"original_length": [-1, 5]}, Reason.ORIGINAL_LENGTH_ERROR, "row 1: original_length"),
    ("empty segment", {"flags": [0, SEGMENT], "body": [b"", b""]}, Reason.SEGMENT_LENGTH_ZERO, "row 1: only the last"),
    (
        "end of a segment",
        {"flags": [SEGMENT, 0], "offset": [999_999_999, 0]},
        Reason.OFFSET_ERROR,
        "row 0: offset must be with the segment's 1 bytes",
    ),
    ("key of another type", {"group_key": [1, (1,)]}, Reason.ARGUMENT_ERROR, "row 1: group_key must be an int of 64"),
    ("key nan", {"order_key": [math.nan, 1]}, Reason.ARGUMENT_ERROR, "row 0: order_key"),
    ("key too large", {"order_key": [2**63, 1]}, Reason.ARGUMENT_ERROR, "row 0: order_key"),
    ("key bool", {"order_key": [1, True]}, Reason.ARGUMENT_ERROR, "row 1: order_key"),
    ("key surrogate", {"group_key": ["\ud800", None]}, Reason.ARGUMENT_ERROR, "row 0: group_key"),
    (
        "both groups",
        {"group_key": [None, 1], "group_id": [G, G]},
        Reason.ARGUMENT_ERROR,
        "row 1: group_id must be None",
    ),
    ("both flags", {"group_key": [1, 1], "flags": [1, IN]}, Reason.ARGUMENT_ERROR, "row 1: flags must be without"),
    ("both numbers", {"group_key": [1, 1], "sequence_number": [1, 2]}, Reason.ARGUMENT_ERROR, "row 1: sequence_number"),
    ("column", {"prioritty": [1, 1]}, Reason.ARGUMENT_ERROR, "did you mean priority"),
    ("length of a column", {"priority": [1]}, Reason.ARGUMENT_ERROR, "priority must be a column of 2 values, not 1"),
]


@pytest.mark.parametrize(("what", "columns", "reason", "text"), BAD_VALUES, ids=[line[0] for line in BAD_VALUES])
def test_a_bad_value_is_named_with_its_row(
    writer: Writer, what: str, columns: dict[str, Any], reason: Reason, text: str
) -> None:
    request = StageRequest(writer.handle(), "one", 2, {"body": letters("ab"), **columns}, LASTS)
    before = snapshot(writer.qm)
    with pytest.raises(CallerError, match=text) as raised:
        writer.store.stage(request)
    assert raised.value.reason == reason
    assert snapshot(writer.qm) == before


BAD_REQUESTS: list[tuple[dict[str, Any], str]] = [
    ({"name": ""}, "name"),
    ({"count": -1}, "count"),
    ({"count": True}, "count"),
    ({"columns": {"priority": [1]}}, "columns"),
    ({"lasts": 0.0}, "lasts"),
]


@pytest.mark.parametrize(("change", "argument"), BAD_REQUESTS, ids=str)
def test_a_bad_request_names_its_argument(writer: Writer, change: dict[str, Any], argument: str) -> None:
    request = StageRequest(writer.handle(), "one", 1, {"body": [b""]}, LASTS)._replace(**change)
    with pytest.raises(ArgumentError) as raised:
        writer.store.stage(request)
    assert raised.value.data["argument"] == argument


BAD_SETTLES: list[tuple[Any, Any, str]] = [
    (LedgerKey("a", "q", 1), [], "batch"),  # type: ignore[arg-type]
    (LedgerKey(None, "q", "1"), [], "application"),  # type: ignore[arg-type]
    (LedgerKey("a", "\ud800", "1"), [], "query"),
    (KEY, [Staged("", 1)], "stagings"),
    (KEY, [Staged("x", -1)], "stagings"),
    (KEY, [Staged("x", 1), Staged("x", 1)], "stagings"),
]


@pytest.mark.parametrize(("key", "stagings", "argument"), BAD_SETTLES, ids=str)
def test_a_bad_settle_names_its_argument(writer: Writer, key: LedgerKey, stagings: list[Staged], argument: str) -> None:
    with pytest.raises(ArgumentError) as raised:
        writer.store.settle_staging(key, stagings)
    assert raised.value.data["argument"] == argument
