"""Kinds of parameters: the values that each takes, and the errors of other values."""

from __future__ import annotations

import math
from enum import IntEnum
from typing import Any
from uuid import UUID

import pytest
from inorder_scenarios.actors import MATCHES
from inorder_scenarios.language import READ_KEYS

from inorder import ArgumentError, UniqueId
from inorder.model.options import FOREVER, MATCHABLE, UniqueIds
from inorder.model.parameters import NONE, Choice, Integer, Octets, ParameterKind, Seconds, Switch, Text


class Number(IntEnum):
    FIVE = 5


TEN = Integer(1, 10)
WAIT = Seconds(0, 3_600)
ABOVE = Seconds(0, 9.5, above=True, also=NONE)
UNLIMITED = Seconds(0.1, 60, also={"unlimited": math.inf})
EVER = Seconds(also={"inorder.FOREVER": FOREVER})
ORDER = Choice(("strict", "relaxed"), also=NONE)
PYTHON, YES = Switch(), Switch(("yes", "no"))
MAYBE = Switch(also=NONE)
KEY = Text(5, least=1)
TOKEN, NAMED, SHORT = Octets(4), Octets(4, named=True), Octets(4, least=0)
UID = UniqueIds()


@pytest.mark.parametrize(
    ("kind", "value", "kept"),
    [
        (TEN, 1, 1),
        (TEN, Number.FIVE, 5),
        (WAIT, 3_600, 3_600.0),
        (ABOVE, 9.5, 9.5),
        (ABOVE, None, None),
        (EVER, math.inf, math.inf),
        (EVER, 1e300, 1e300),
        (ORDER, "strict", "strict"),
        (ORDER, None, None),
        (PYTHON, False, False),
        (MAYBE, None, None),
        (KEY, "abcde", "abcde"),
        (Text(5, trimmed=True), "ab \0", "ab"),
        (TOKEN, bytearray(b"ab"), b"ab\0\0"),
        (NAMED, "\u00e9", b"\xc3\xa9\0\0"),
        (Octets(16, named=True), UUID(int=1), UUID(int=1).bytes),
        (UID, UniqueId("A", 1), UniqueId("A", 1)),
    ],
)
def test_a_good_value_is_kept_in_its_plain_form(kind: ParameterKind[Any], value: Any, kept: Any) -> None:
    found = kind.check("x", value)
    assert (found, type(found)) == (kept, type(kept))


@pytest.mark.parametrize(
    ("kind", "value", "allowed"),
    [
        (TEN, 0, "an integer from 1 to 10"),
        (TEN, 11, "an integer from 1 to 10"),
        (TEN, True, "an integer from 1 to 10"),
        (TEN, 5.0, "an integer from 1 to 10"),
        (TEN, "5", "an integer from 1 to 10"),
        (TEN, None, "an integer from 1 to 10"),
        (Integer(9, 9), 8, "9"),
        (Integer(), -1, "an integer from 0 to 2**63 - 1"),
        (Integer(-(2**63), 2**64 - 1), 2**64, "an integer from -2**63 to 2**64 - 1"),
        (Integer(0, 5, what="a number of bytes", also=NONE), 6, "a number of bytes from 0 to 5, or None"),
        (Integer(0, 5, words="five at most"), 6, "five at most"),
        (WAIT, -0.1, "a number of seconds from 0 to 3,600"),
        (WAIT, math.nan, "a number of seconds from 0 to 3,600"),
        (WAIT, math.inf, "a number of seconds from 0 to 3,600"),
        (WAIT, True, "a number of seconds from 0 to 3,600"),
        (WAIT, "1", "a number of seconds from 0 to 3,600"),
        (ABOVE, 0, "a number of seconds above 0 and up to 9.5, or None"),
        (ABOVE, 9.6, "a number of seconds above 0 and up to 9.5, or None"),
        (EVER, -1, "a number of seconds from 0, or inorder.FOREVER"),
        (EVER, 10**400, "a number of seconds from 0, or inorder.FOREVER"),
        (ORDER, "loose", "one of: strict, relaxed, or None"),
        (ORDER, ["strict"], "one of: strict, relaxed, or None"),
        (PYTHON, 1, "True or False"),
        (PYTHON, None, "True or False"),
        (MAYBE, 0, "True, False, or None"),
        (KEY, "", "a text of 1 to 5 characters"),
        (KEY, "abcdef", "a text of 1 to 5 characters"),
        (KEY, "\ud800", "a text of 1 to 5 characters"),
        (KEY, b"a", "a text of 1 to 5 characters"),
        (Text(1_000), 0, "a text of at most 1,000 characters"),
        (TOKEN, b"abcde", "bytes (at most 4)"),
        (TOKEN, "ab", "bytes (at most 4)"),
        (NAMED, "abcde", "bytes (at most 4), a text of at most as many bytes in UTF-8, or a uuid.UUID"),
        (NAMED, "\ud800", "bytes (at most 4), a text of at most as many bytes in UTF-8, or a uuid.UUID"),
        (UID, ("A", 1), "a UniqueId, as a put returned it: its number is from 1 to 2**63 - 1"),
        (UID, UniqueId("A", 0), "a UniqueId, as a put returned it: its number is from 1 to 2**63 - 1"),
    ],
)
def test_a_value_is_refused_with_what_it_must_be(kind: ParameterKind[Any], value: Any, allowed: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        kind.check("x", value)
    data = refused.value.data
    assert (data["argument"], data["allowed"], refused.value.reason) == ("x", allowed, kind.reason)
    assert str(refused.value).startswith(f"x must be {allowed}, not ")


@pytest.mark.parametrize(
    ("kind", "text", "meant"),
    [
        (TEN, "10", 10),
        (Integer(-5, 5), "-5", -5),
        (WAIT, "0.25", 0.25),
        (WAIT, "1e3", 1_000.0),
        (WAIT, ".5", 0.5),
        (UNLIMITED, "unlimited", math.inf),
        (ORDER, "relaxed", "relaxed"),
        (YES, "yes", True),
        (YES, "no", False),
        (KEY, "abc", "abc"),
        (TOKEN, "00Ff", b"\0\xff\0\0"),
        (NAMED, "text:\u00e9", b"\xc3\xa9\0\0"),
        (NAMED, "61", b"a\0\0\0"),
        (SHORT, "", bytes(4)),
        (UID, "A:B:7", UniqueId("A:B", 7)),
    ],
)
def test_a_good_text_is_read_as_its_value(kind: ParameterKind[Any], text: str, meant: Any) -> None:
    assert kind.read("x", text) == meant


@pytest.mark.parametrize(
    ("kind", "text", "allowed"),
    [
        (TEN, "0", "an integer from 1 to 10"),
        (TEN, "1.0", "an integer from 1 to 10"),
        (TEN, " 1", "an integer from 1 to 10"),
        (TEN, "\u0661", "an integer from 1 to 10"),
        (TEN, "1" * 5_000, "an integer from 1 to 10"),
        (WAIT, "3600.1", "a number of seconds from 0 to 3,600"),
        (WAIT, "-1", "a number of seconds from 0 to 3,600"),
        (WAIT, "inf", "a number of seconds from 0 to 3,600"),
        (WAIT, "soon", "a number of seconds from 0 to 3,600"),
        (WAIT, "1e999", "a number of seconds from 0 to 3,600"),
        (UNLIMITED, "0", "a number of seconds from 0.1 to 60, or unlimited"),
        (ORDER, "Strict", "one of: strict, relaxed, or None"),
        (YES, "true", "yes or no"),
        (KEY, "", "a text of 1 to 5 characters"),
        (TOKEN, "text:a", "2 to 8 hexadecimal digits, two for each byte"),
        (TOKEN, "0", "2 to 8 hexadecimal digits, two for each byte"),
        (TOKEN, "00 ff", "2 to 8 hexadecimal digits, two for each byte"),
        (SHORT, "0011223344", "at most 8 hexadecimal digits, two for each byte"),
        (NAMED, "text:", "2 to 8 hexadecimal digits, two for each byte, or text: and a text of 1 to 4 bytes"),
        (NAMED, "text:\ud800", "2 to 8 hexadecimal digits, two for each byte, or text: and a text of 1 to 4 bytes"),
        (UID, "A", "ORIGIN:NUMBER, as in QM1:17"),
        (UID, ":1", "ORIGIN:NUMBER, as in QM1:17"),
        (UID, "A:-1", "ORIGIN:NUMBER, as in QM1:17"),
    ],
)
def test_a_text_is_refused_with_what_it_must_be(kind: ParameterKind[Any], text: str, allowed: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        kind.read("x", text)
    assert refused.value.data["allowed"] == allowed
    assert str(refused.value).startswith(f"x must be {allowed}, not ")


def test_an_interface_may_have_its_own_words_for_special_values() -> None:
    plain = ABOVE.taking()
    found = (plain.allowed, ABOVE.allowed)
    assert found == ("a number of seconds above 0 and up to 9.5", "a number of seconds above 0 and up to 9.5, or None")
    assert ABOVE.taking({"none": None}).read("x", "none") is None
    with pytest.raises(ArgumentError):
        plain.read("x", "None")


def test_a_get_can_match_exactly_the_listed_fields() -> None:
    assert [(one.name, one.mq_name) for one in MATCHABLE] == [
        ("message_id", "MsgId"),
        ("correlation_id", "CorrelId"),
        ("group_id", "GroupId"),
        ("sequence_number", "MsgSeqNumber"),
        ("offset", "Offset"),
        ("priority", "Priority"),
        ("token", "MsgToken"),
        ("uid", "(unique id)"),
    ]


def test_scenarios_can_match_the_same_fields() -> None:
    keys = {word for word in READ_KEYS.split() if word.startswith("match-")}
    assert len(keys) == len(MATCHABLE)
    assert {*MATCHES.values(), "token", "uid"} == {one.name for one in MATCHABLE}
