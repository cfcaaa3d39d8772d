"""Options: valid combinations (mq-semantics 3.1), valid values, immutability; bad values of callers."""

from __future__ import annotations

import asyncio
import io
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from inorder import (
    FOREVER,
    ArgumentError,
    GetOptions,
    Match,
    Message,
    NoMessageAvailable,
    OpenOptions,
    PutOptions,
    QueueManager,
    Reason,
    UniqueId,
    aio,
)
from inorder.client import keywords
from inorder.errors import InorderError, MatchError, OptionsError
from inorder.model.options import BROWSES, DEFAULT_GET, BrowseKeywords, GetKeywords, PutKeywords
from inorder.testing import ManualClock

get_options: Any = GetOptions
MARKS = ("mark_handle", "mark_co_op", "unmarked", "unmark_handle", "unmark_co_op")
TOKEN = bytes(range(16))


def excluded() -> list[Any]:
    """The combinations that mq-semantics 3.1 rules out, with their rules."""
    cases: list[tuple[str, dict[str, Any]]] = [
        ("R3.1", {"syncpoint": True, "syncpoint_if_persistent": True}),
        ("R3.1", {"syncpoint": False, "syncpoint_if_persistent": True}),
        ("R3.4", {"complete": True, "syncpoint_if_persistent": True}),
        ("R3.6", {"lock": True}),
        ("R3.6", {"lock": True, "under_cursor": True}),
    ]
    for browse in BROWSES:
        cases.append(("R3.2", {"browse": browse, "under_cursor": True}))
        cases.append(("R3.3", {"browse": browse, "syncpoint": True}))
        cases.append(("R3.3", {"browse": browse, "syncpoint": True, "lock": True}))
        cases.append(("R3.4", {"browse": browse, "syncpoint_if_persistent": True}))
    for mark in MARKS:
        cases.append(("R3.10", {mark: True}))
        cases.append(("R3.10", {mark: True, "under_cursor": True}))
        cases.append(("R3.10", {mark: True, "lock": True, "browse": "first"}))
    cases.append(("R3.10", {"browse": "first", "mark_handle": True, "unmark_handle": True}))
    cases.append(("R3.10", {"browse": "first", "mark_co_op": True, "unmark_co_op": True}))
    return [pytest.param(options, id=f"{rule} {' '.join(options)}") for rule, options in cases]


@pytest.mark.parametrize("options", excluded())
def test_options_that_exclude_each_other_are_refused_with_2046(options: dict[str, Any]) -> None:
    with pytest.raises(OptionsError) as raised:
        get_options(**options)
    assert raised.value.reason == 2046
    said = str(raised.value)
    assert any(name in said or (name in MARKS and "marks" in said) for name in options)


@pytest.mark.parametrize(
    "options",
    [
        {"syncpoint": True, "under_cursor": True},
        {"syncpoint": True, "complete": True},
        {"syncpoint_if_persistent": True, "all_messages": True},
        {"syncpoint": False, "browse": "first"},
        {"browse": "cursor", "lock": True},
        {"browse": "first", "lock": True, "complete": True},
        {"browse": "first", "mark_handle": True, "mark_co_op": True, "unmarked": True},
        {"browse": "next", "unmark_handle": True, "mark_co_op": True},
        {"browse": "cursor", "wait": FOREVER},
        {"wait": FOREVER},
        {"wait": 0.5},
        {"buffer": 0},
    ],
    ids=str,
)
def test_options_that_go_together_are_accepted(options: dict[str, Any]) -> None:
    made = get_options(**options)
    assert all(getattr(made, name) == value for name, value in options.items())


NO_WAIT: Any = None


@pytest.mark.parametrize(
    "call",
    [
        lambda qm: qm.get("EMPTY", wait=NO_WAIT),
        lambda qm: qm.get("EMPTY", GetOptions(wait=NO_WAIT)),
        lambda qm: qm.open("EMPTY", browse=True).browse_first(wait=NO_WAIT),
        lambda qm: list(qm.get_group("EMPTY", wait=NO_WAIT)),
        lambda qm: qm.get_stream("EMPTY", io.BytesIO(), wait=NO_WAIT),
    ],
    ids=["get", "options", "browse", "group", "stream"],
)
def test_a_wait_of_none_still_does_not_wait_and_warns_at_the_line_of_the_caller(
    call: Callable[[QueueManager], object], qm: QueueManager
) -> None:
    qm.create_queue("EMPTY")
    text = "wait=None is now wait=0, which is the default (to wait for ever is inorder.FOREVER); the old value"
    with pytest.warns(DeprecationWarning, match=re.escape(text)) as warned, pytest.raises(NoMessageAvailable):
        call(qm)
    assert [one.filename for one in warned] == [__file__]


async def _get_without_a_wait() -> None:
    async with aio.connect() as qm:
        await qm.create_queue("Q")
        await qm.get("Q", wait=NO_WAIT)


def test_a_wait_of_none_in_a_task_warns_at_the_line_of_the_task() -> None:
    with pytest.warns(DeprecationWarning, match="wait=None is now") as warned, pytest.raises(NoMessageAvailable):
        asyncio.run(_get_without_a_wait())
    assert {one.filename for one in warned} == {__file__}


def test_the_keywords_of_puts_gets_and_browses_are_the_fields_of_their_options() -> None:
    assert get_type_hints(PutKeywords) == get_type_hints(PutOptions)
    hints = {**get_type_hints(GetOptions), "selector": str | None}  # it becomes a part of the match
    browse_only = {"lock", *MARKS}
    remove_only = {"syncpoint", "syncpoint_if_persistent", "under_cursor", "confirm_id", "lock_id"}
    assert get_type_hints(GetKeywords) == {n: h for n, h in hints.items() if n not in browse_only | {"browse"}}
    assert get_type_hints(BrowseKeywords) == {n: h for n, h in hints.items() if n not in remove_only | {"browse"}}


def test_a_match_never_changes() -> None:
    match: Any = Match(priority=3)
    with pytest.raises(AttributeError):
        match.fields = {}
    with pytest.raises(AttributeError):
        del match.fields
    with pytest.raises(TypeError):
        match.fields["priority"] = 4
    assert match == Match(priority=3)


def test_r3_18_an_id_that_is_all_zero_matches_anything() -> None:
    assert Match(message_id=b"x") == Match(message_id=b"x".ljust(24, b"\0"))
    match = Match(message_id=bytes(24), correlation_id=b"", group_id=b"\0")
    assert match == Match()
    assert not match
    assert match.accepts(Message(b"", message_id=b"x", correlation_id=b"y", group_id=b"z"))


def test_without_returns_a_match_without_the_named_fields() -> None:
    match = Match(priority=3, offset=0, token=TOKEN)
    assert match.without("offset", "token", "format") == Match(priority=3)
    assert match == Match(priority=3, offset=0, token=TOKEN)


def test_only_matches_by_message_unique_and_correlation_id_are_specific() -> None:
    assert Match(message_id=b"x").specific
    assert Match(uid=UniqueId("Q", 1), priority=3).specific
    assert Match(correlation_id=b"x").specific
    for match in (Match(), Match(message_id=b""), Match(group_id=b"g"), Match(token=TOKEN), Match(priority=1)):
        assert not match.specific


def test_equal_matches_have_one_hash_whatever_the_order_of_their_fields() -> None:
    one, other = Match(priority=1, format="A"), Match(format="A", priority=1)
    assert one == other
    assert hash(one) == hash(other)
    assert one != Match(priority=1)
    assert one != "Match"


def test_joining_keeps_how_input_was_opened() -> None:
    exclusive = OpenOptions(input="exclusive")
    assert exclusive.joined(OpenOptions(input="as_queue", browse=True)) == OpenOptions(input="exclusive", browse=True)
    assert OpenOptions(browse=True, co_op=True).joined(exclusive).co_op


Bad = tuple[Callable[[], object], type[InorderError], Reason, str]

# `Any`, because these calls have wrong types on purpose.
message: Any = Message
match: Any = Match
put_options: Any = PutOptions
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
    (
        lambda: get_options(wait=-0.001),
        ArgumentError,
        Reason.WAIT_INTERVAL_ERROR,
        "wait must be a number of seconds from 0, or inorder.FOREVER, not -0.001",
    ),
    (lambda: get_options(complete=True, match=Match(offset=0)), MatchError, Reason.MATCH_OPTIONS_ERROR, ""),  # R3.9
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
    (lambda: open_options(input="shared", output=True, co_op=True), OptionsError, Reason.OPTIONS_ERROR, ""),  # R3.11
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
def test_a_manual_clock_refuses_to_advance_by_a_bad_number_of_seconds(seconds: object) -> None:
    manual = clock()
    before = manual.now()
    with pytest.raises(ArgumentError, match="seconds") as raised:
        manual.advance(seconds)
    assert raised.value.argument == "seconds"
    assert manual.now() == before


def test_a_clock_file_without_a_time_is_refused_and_left_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "clock"
    path.write_text("noon")
    with pytest.raises(ArgumentError, match="clock"):
        ManualClock(path=path).now()
    assert path.read_text() == "noon"


def test_the_same_keywords_give_the_same_options() -> None:
    asked: dict[str, Any] = {"wait": 30, "match": Match(priority=3)}
    assert keywords.get_options(asked, None, DEFAULT_GET) is keywords.get_options(dict(asked), None, DEFAULT_GET)
    assert keywords.get_options(asked, None, DEFAULT_GET) == GetOptions(**asked)


def test_keywords_change_the_options_that_were_given() -> None:
    assert keywords.get_options({"wait": 30}, GetOptions(logical=True), DEFAULT_GET) == GetOptions(
        wait=30, logical=True
    )
    assert keywords.get_options({"wait": 30}, None, keywords.BROWSE_NEXT) == GetOptions(wait=30, browse="next")
    given = PutOptions(logical=True)
    found = keywords.split_put({"priority": 3, "syncpoint": True}, given)
    assert found == ({"priority": 3}, PutOptions(logical=True, syncpoint=True))
    assert keywords.split_put({"priority": 3}, given) == ({"priority": 3}, given)


@pytest.mark.parametrize(("good", "bad"), [(True, 1), (False, 0), (True, 1.0)])
def test_a_bad_value_is_refused_after_an_equal_good_one_was_accepted(good: bool, bad: Any) -> None:
    keywords.get_options({"logical": good}, None, DEFAULT_GET)
    with pytest.raises(ArgumentError, match="logical"):
        keywords.get_options({"logical": bad}, None, DEFAULT_GET)


def test_an_unhashable_bad_value_is_reported_like_any_other() -> None:
    with pytest.raises((ArgumentError, MatchError), match="match"):
        keywords.get_options({"match": {"priority": 3}}, None, DEFAULT_GET)
