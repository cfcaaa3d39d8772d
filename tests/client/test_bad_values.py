"""Bad values: for each value that callers build a table of bad arguments and the error each gets."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inorder import GetOptions, Match, Message, OpenOptions, PutOptions, Reason
from inorder.errors import ArgumentError, InorderError, OptionsError
from inorder.testing import ManualClock

Bad = tuple[Callable[[], object], type[InorderError], Reason, str]

# `Any`, for these calls are wrong on purpose.
message: Any = Message
match: Any = Match
put_options: Any = PutOptions
get_options: Any = GetOptions
open_options: Any = OpenOptions
clock: Any = ManualClock

MESSAGE: list[Bad] = [
    (lambda: message("text"), ArgumentError, Reason.ARGUMENT_ERROR, "encode"),
    (lambda: message([1, 2]), ArgumentError, Reason.ARGUMENT_ERROR, "[1, 2]"),
    (lambda: message(b"", colour="red"), ArgumentError, Reason.ARGUMENT_ERROR, "colour"),
    (lambda: message(b"", length=3), ArgumentError, Reason.ARGUMENT_ERROR, "length"),
    (lambda: message(b"", token=bytes(16)), ArgumentError, Reason.ARGUMENT_ERROR, "token"),
    (lambda: message(b"", place=(0, 1, 0)), ArgumentError, Reason.ARGUMENT_ERROR, "place"),
    (lambda: message(b"", warning=2079), ArgumentError, Reason.ARGUMENT_ERROR, "warning"),
    (lambda: message(b"").replace(colour="red"), ArgumentError, Reason.ARGUMENT_ERROR, "colour"),
    (lambda: message(b"").replace(body="text"), ArgumentError, Reason.ARGUMENT_ERROR, "body"),
]
MATCH: list[Bad] = [
    (lambda: match(colour="red"), ArgumentError, Reason.MATCH_OPTIONS_ERROR, "colour"),
    (lambda: match(body=b"x"), ArgumentError, Reason.MATCH_OPTIONS_ERROR, "body"),
    (lambda: match(message_id="of a text more than 24 by"), ArgumentError, Reason.MD_ERROR, "message_id"),
    (lambda: match(properties={"colour": "red"}), ArgumentError, Reason.MATCH_OPTIONS_ERROR, "properties"),
    (lambda: match(priority=-1), ArgumentError, Reason.PRIORITY_ERROR, "priority"),
    (lambda: match(token="text"), ArgumentError, Reason.MATCH_OPTIONS_ERROR, "token"),
    (lambda: match(uid=("Q", 1)), ArgumentError, Reason.MATCH_OPTIONS_ERROR, "uid"),
    (lambda: match(uid=None), ArgumentError, Reason.MATCH_OPTIONS_ERROR, "uid"),
]
PUT_OPTIONS: list[Bad] = [
    (lambda: put_options(syncpoint=1), ArgumentError, Reason.OPTIONS_ERROR, "syncpoint"),
    (lambda: put_options(logical=None), ArgumentError, Reason.OPTIONS_ERROR, "logical"),
    (lambda: put_options(new_message_id=1), ArgumentError, Reason.OPTIONS_ERROR, "new_message_id"),
    (lambda: put_options(new_correlation_id="x"), ArgumentError, Reason.OPTIONS_ERROR, "new_correlation_id"),
    (lambda: put_options(context="pass_all"), ArgumentError, Reason.OPTIONS_ERROR, "context"),
    (lambda: put_options(confirm_id=-1), ArgumentError, Reason.OPTIONS_ERROR, "confirm_id"),
    (lambda: put_options(confirm_id=7, syncpoint=True), OptionsError, Reason.OPTIONS_ERROR, "confirm_id"),
    (lambda: put_options(uid="TEST"), ArgumentError, Reason.OPTIONS_ERROR, "uid"),
]
FLAGS = """syncpoint_if_persistent logical complete all_segments all_messages under_cursor lock mark_handle mark_co_op
    unmarked unmark_handle unmark_co_op accept_truncated""".split()
GET_OPTIONS: list[Bad] = [
    (lambda: get_options(browse="last"), ArgumentError, Reason.OPTIONS_ERROR, "browse"),
    (lambda: get_options(syncpoint=0), ArgumentError, Reason.OPTIONS_ERROR, "syncpoint"),
    (lambda: get_options(wait=-0.001), ArgumentError, Reason.WAIT_INTERVAL_ERROR, "-0.001"),
    (lambda: get_options(buffer=-1), ArgumentError, Reason.BUFFER_LENGTH_ERROR, "buffer"),
    (lambda: get_options(match={"priority": 1}), ArgumentError, Reason.MATCH_OPTIONS_ERROR, "match"),
    (lambda: get_options(confirm_id="7"), ArgumentError, Reason.OPTIONS_ERROR, "confirm_id"),
    (lambda: get_options(lock_id=True), ArgumentError, Reason.OPTIONS_ERROR, "lock_id"),
    (lambda: get_options(confirm_id=7, syncpoint=True), OptionsError, Reason.OPTIONS_ERROR, "confirm_id"),
    (lambda: get_options(read_order="often"), ArgumentError, Reason.OPTIONS_ERROR, "read_order"),
]
OPEN_OPTIONS: list[Bad] = [
    (open_options, OptionsError, Reason.OPTIONS_ERROR, "input, output or browse"),
    (lambda: open_options(input="often"), ArgumentError, Reason.OPTIONS_ERROR, "'often'"),
    (lambda: open_options(output="yes"), ArgumentError, Reason.OPTIONS_ERROR, "output"),
    (lambda: open_options(output=True, browse=None), ArgumentError, Reason.OPTIONS_ERROR, "browse"),
    (lambda: open_options(browse=True, co_op=1), ArgumentError, Reason.OPTIONS_ERROR, "co_op"),
]
CLOCK: list[Bad] = [
    (lambda: clock("noon"), ArgumentError, Reason.ARGUMENT_ERROR, "start"),
    (lambda: clock(math.nan), ArgumentError, Reason.ARGUMENT_ERROR, "start"),
    (lambda: clock(path=5), ArgumentError, Reason.ARGUMENT_ERROR, "path"),
]
SECONDS = [-1, -0.5, math.nan, math.inf, True, "5", None]


@pytest.mark.parametrize(
    ("call", "error", "reason", "word"), [*MESSAGE, *MATCH, *PUT_OPTIONS, *GET_OPTIONS, *OPEN_OPTIONS, *CLOCK]
)
def test_a_bad_value_is_refused_with_its_reason(
    call: Callable[[], object], error: type[InorderError], reason: Reason, word: str
) -> None:
    with pytest.raises(InorderError) as raised:
        call()
    assert isinstance(raised.value, error)
    assert raised.value.reason == reason
    assert word in str(raised.value)
    if isinstance(raised.value, ArgumentError):
        assert {"argument", "value", "allowed"} <= raised.value.data.keys()


@pytest.mark.parametrize("flag", FLAGS)
def test_a_flag_of_a_get_is_true_or_false_and_nothing_else(flag: str) -> None:
    for value in (1, None, "yes"):
        with pytest.raises(ArgumentError, match=flag) as raised:
            get_options(browse="first", **{flag: value})
        assert raised.value.reason == Reason.OPTIONS_ERROR


@pytest.mark.parametrize("seconds", SECONDS)
def test_a_clock_advances_by_a_finite_number_from_0_and_otherwise_stands_still(seconds: object) -> None:
    manual = clock()
    before = manual.now()
    with pytest.raises(ArgumentError, match="seconds") as raised:
        manual.advance(seconds)
    assert raised.value.argument == "seconds"
    assert manual.now() == before


def test_a_file_that_holds_no_time_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "clock"
    path.write_text("noon")
    with pytest.raises(ArgumentError, match="clock"):
        ManualClock(path=path).now()
    assert path.read_text() == "noon"
