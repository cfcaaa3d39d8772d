"""Selectors, as Jakarta Messaging 3.8 and IBM MQ's "Message selector syntax" define them: tables written from there.

Each row is a result (T, F and U are true, false and unknown) and a selector, for the message below.
"""

from __future__ import annotations

import math
import pickle
from typing import Any
from unittest.mock import Mock

import pytest

from inorder.errors import ArgumentError
from inorder.model.fields import LATER
from inorder.model.message import Message
from inorder.rules import selectors
from inorder.rules.selector_fields import FIELDS
from inorder.rules.selectors import LENGTH_MAX, Selector, compile_selector

T, F, U = True, False, None

PROPERTIES: dict[str, Any] = {
    **{"age": 17, "big": 2**53 + 1, "blob": b"\x0a\xfc\x23", "colour": "red", "country": "UK", "empty": ""},
    **{"NumberOfOrders": "2", "lines": "one\ntwo", "low": -3, "no": False, "nothing": None},
    **{"order.customer.city": "Bonn", "percent": "50%", "phone": "12993", "price": 2.5, "quote": "it's"},
    **{"regex": "a.b*c[d]\\", "underscored": "_foo", "urgent": True, "word": "lose", "yes": True, "zero": 0},
    **{"Größe": 1, "$a_1": 1},
}
MESSAGE = Message(
    b"body",
    priority=7,
    persistent=True,
    message_id=bytes.fromhex("414d51"),
    correlation_id=b"order-42",
    expiry=1.5,
    format="MQSTR",
    put_at=1_700_000_000.25,
    user_identifier="anna",
    reply_to_queue="REPLIES",
    flags=8,
    group_id=b"G1",
    sequence_number=3,
)
VALUES = {**dict(MESSAGE.fields()), "backout_count": 2}


def value(text: str) -> bool | None:
    return compile_selector(text).matches(VALUES, PROPERTIES)


def rows(text: str) -> list[Any]:
    """The parameters of each row: a selector and its result. A line may have several rows."""
    lines = [line for line in text.strip().splitlines() if line.strip()[0] != "#"]
    found = [one.strip() for line in lines for one in line.split(" | ")]
    return [pytest.param(one[2:], {"T": T, "F": F, "U": U}[one[0]], id=one) for one in found]


@pytest.mark.parametrize(
    ("selector", "expected"),
    rows(
        r"""
        # comparisons
        T colour = 'red' | F colour = 'Red' | F colour <> 'red' | T colour <> 'blue' | T quote = 'it''s' | T empty = ''
        T age = 17 | T age >= 17 | T age <> 18 | T 17 = age | T 16 < age | T low < price | T age = 17.0
        T urgent = TRUE | T urgent = yes | T urgent <> no | F no = TRUE | T blob = "0x0AFC23" | T blob = "0X0afc23"
        F blob = "0x0AFC2300" | F blob = "0x23FC0A" | T order.customer.city = 'Bonn' | T Größe = 1 | T $a_1 = 1
        # unlike types
        F NumberOfOrders > 1 | F NumberOfOrders = 2 | F NumberOfOrders <> 2 | T NOT NumberOfOrders > 1 | F age = '17'
        F urgent = 1 | F age = TRUE | F colour = age | F colour <> age | F colour > word | F urgent >= no
        F blob = '0x0AFC23' | F blob < blob | F colour BETWEEN 1 AND 2 | F colour NOT BETWEEN 1 AND 2 | F age LIKE '1%'
        F age IN ('17') | U colour + 1 > 1
        # what is not there is unknown
        U missing = 'red' | U missing > 1 | U missing = missing | U nothing = 'red' | U NOT missing = 1
        U missing + 1 > 0 | U -missing = 1 | U missing * 0 = 0 | U missing BETWEEN 1 AND 2
        U missing NOT BETWEEN 1 AND 2 | U age BETWEEN missing AND 20 | F age BETWEEN missing AND 16
        F age BETWEEN 18 AND missing | T age NOT BETWEEN missing AND 16 | U missing IN ('UK') | U missing LIKE 'a%'
        U missing NOT LIKE 'a%' | U missing | U NOT missing | T missing IS NULL | F missing IS NOT NULL
        F colour IS NULL | T colour IS NOT NULL | T missing + 1 IS NULL | U Missing = 1 | U Colour = 'red'
        # conditions
        F NOT age = 17 | T NOT age = 18 | U NOT missing = 1 | T NOT NOT age = 17 | T urgent | F no | T (urgent) = TRUE
        T (age = 17) = (colour = 'red') | U (age = 17) = (missing = 1) | U colour | U age AND urgent | F age AND no
        T age OR urgent
        # precedence
        T age = 17 OR age = 18 AND age = 19 | F (age = 17 OR age = 18) AND age = 19 | T NOT age = 18 AND age = 17
        F NOT (age = 18 OR age = 17) | T NOT age = 18 OR age = 18 | T 1 + 2 * 3 = 7 AND age = 17
        T (1 + 2) * 3 = 9 AND age = 17 | T 10 - 4 - 3 = 3 AND age = 17 | T 20 / 2 * 5 = 50 AND age = 17
        T -2 * -3 = 6 AND age = 17 | T + - + age = -17 | T age - -1 = 18 | T age--1 = 18 | T 2 * age + 1 > age * 2
        T age BETWEEN 1 AND 20 AND urgent | T age BETWEEN 18 AND 20 OR urgent
        T urgent AND age BETWEEN 10 + 5 AND 10 * 2
        # arithmetic
        T age / 2 = 8 | T -age / 2 = -8 | T age / -2 = -8 | T age / 2.0 = 8.5 | T age / 2 * 2 = 16 | U age / 0 = 1
        U age / zero > 1 | U NOT age / 0 = 1 | U age / 0.0 > 1 | T big = 9007199254740993 | F big = 9007199254740992
        F big = 9007199254740992.0 | T big + 0.0 = 9007199254740992 | T big * big * big * big > 1e63
        T big * big - big * big = 0 | T 9223372036854775807 + age - age = 9223372036854775807 | T 1e308 * 10 > age
        U big*big*big*big*big*big*big*big*big*big*big*big*big*big*big*big*big*big*big*big*big*big * 1.0 > 0
        # between and in
        T age BETWEEN 17 AND 19 | T age BETWEEN 15 AND 17 | F age BETWEEN 18 AND 19 | F age BETWEEN 19 AND 15
        F age NOT BETWEEN 17 AND 19 | T age NOT BETWEEN 18 AND 19 | T country IN ('UK', 'US', 'France')
        F country NOT IN ('UK', 'US', 'France') | T age IN (17.0) | T price IN (-1, +2.5) | F urgent IN (1)
        T blob IN ("0x0AFC23", "0x00") | F NumberOfOrders IN (2)
        # like
        T phone LIKE '12%3' | F phone LIKE '12%4' | T phone LIKE '12_9_' | F phone LIKE '12' | T phone LIKE '%'
        T phone LIKE '%2%9%' | F phone LIKE '%3%9%' | T phone LIKE '12993%' | T phone LIKE '%12993'
        F phone LIKE '129%993' | T phone LIKE '129%93' | T word LIKE 'l_se' | F word LIKE 'l_s' | F word LIKE 'L_SE'
        F phone NOT LIKE '12%3' | T underscored LIKE '\_%' ESCAPE '\' | F word LIKE '\_%' ESCAPE '\'
        T underscored LIKE 'x_f%' ESCAPE 'x' | T percent LIKE '50x%' ESCAPE 'x' | F phone LIKE '12993x%' ESCAPE 'x'
        T percent LIKE '50%%' ESCAPE '%' | T percent LIKE '_0_' | T regex LIKE 'a.b*c[d]\'
        T regex LIKE 'a.b*c[d]\\' ESCAPE '\' | F regex LIKE 'a.b*c_d\' | F word LIKE 'l.se' | T lines LIKE 'one%two'
        T lines LIKE 'one_two' | F lines LIKE 'one' | T empty LIKE '' | F empty LIKE '_' | T quote LIKE 'it''_'
        # fields
        T Root.MQMD.Priority = 7 | T Root.MQMD.Persistence = 1 | T Root.MQMD.MsgType = 8 | T Root.MQMD.Expiry = 15
        T Root.MQMD.Format = 'MQSTR' | T Root.MQMD.Format = 'MQSTR   ' | T Root.MQMD.Format LIKE 'MQ%'
        T Root.MQMD.MsgId = "0x414D51" | T Root.MQMD.MsgId = "0x414d51000000000000000000000000000000000000000000"
        F Root.MQMD.MsgId = "0x414D5101" | T Root.MQMD.CorrelId IN ("0x00", "0x6f726465722d3432")
        T Root.MQMD.GroupId <> "0x00" | F Root.MQMD.GroupId IS NULL | T Root.MQMD.MsgSeqNumber = 3
        T Root.MQMD.MsgFlags = 8 | T Root.MQMD.BackoutCount = 2 | T Root.MQMD.PutDate = '20231114'
        T Root.MQMD.PutTime = '22132025' | T Root.MQMD.ReplyToQ = 'REPLIES' | T Root.MQMD.OriginalLength = -1
        T Root.MQMD.AccountingToken = "0x00" | T JMSPriority = 7 | T JMSDeliveryMode = 'PERSISTENT'
        F JMSDeliveryMode = 'NON_PERSISTENT' | T JMSTimestamp = 1700000000250
        T JMSMessageID = 'ID:414d51000000000000000000000000000000000000000000' | T JMSMessageID = 'ID:414D51'
        T JMSMessageID LIKE 'ID:414d51%' | T JMSCorrelationID = 'order-42'
        T JMSCorrelationID IN ('x', 'ID:6F726465722D3432') | T JMSXGroupID = 'G1' | T JMSXGroupSeq = 3
        T JMSXUserID = 'anna' | T JMSXAppID IS NULL | T JMSXDeliveryCount = 3 | U JMSType = 'car'
        """
    ),
)
def test_a_selector_has_the_specified_result_for_the_message(selector: str, expected: bool | None) -> None:
    assert value(selector) is expected


TRUTH = {"T": "age = 17", "F": "age = 18", "U": "missing = 1"}


@pytest.mark.parametrize(
    ("operator", "results"),
    [
        ("AND", {"TT": T, "TF": F, "TU": U, "FF": F, "FU": F, "UU": U}),
        ("OR", {"TT": T, "TF": T, "TU": T, "FF": F, "FU": U, "UU": U}),
    ],
)
def test_the_tables_of_and_and_or(operator: str, results: dict[str, bool | None]) -> None:
    for pair, expected in results.items():
        one, other = TRUTH[pair[0]], TRUTH[pair[1]]
        assert value(f"{one} {operator} {other}") is expected
        assert value(f"{other} {operator} {one}") is expected
        assert value(f"({other}) {operator} ({one}) {operator} ({one})") is expected


@pytest.mark.parametrize(
    ("literal", "number"),
    [
        *[("57", 57), ("-957", -957), ("+62", 62), ("0", 0), ("1L", 1), ("1l", 1), ("-0", 0)],
        *[("0xA", 10), ("0xAF", 175), ("0X2020", 8224), ("0xffL", 255), ("0177", 127), ("0713", 459), ("00", 0)],
        *[("9223372036854775807", 2**63 - 1), ("-9223372036854775808", -(2**63)), ("0x7fffffffffffffff", 2**63 - 1)],
        *[("7E3", 7000.0), ("-57.9E2", -5790.0), ("7.", 7.0), ("-95.7", -95.7), ("+6.2", 6.2), (".5", 0.5)],
        *[("7e3", 7000.0), ("7E+3", 7000.0), ("7E-3", 0.007), ("7.E1", 70.0), (".5e1", 5.0), ("1D", 1.0), ("1d", 1.0)],
        *[("1F", 1.0), ("1.5f", 1.5), ("1e2D", 100.0), ("09.5", 9.5), ("1.7e308", 1.7e308), ("1e-400", 0.0)],
    ],
)
def test_literal_numbers_have_the_specified_values(literal: str, number: float) -> None:
    assert compile_selector(f"n = {literal}").matches({}, {"n": number}) is True
    assert compile_selector(f"n = {literal}").matches({}, {"n": number + 1e300}) is False
    assert compile_selector(f"n IN ({literal})").matches({}, {"n": number}) is True
    # An exact literal is an integer, so 1 / 2 is 0.
    halved = compile_selector(f"({literal}) / 2 * 2 = n").matches({}, {"n": number})
    assert halved is (type(number) is float or number % 2 == 0)


def test_fields_without_a_value_are_null_or_have_the_specified_value() -> None:
    none = {**dict(Message().fields()), "persistent": False, "expiry": math.inf}
    for selector in (
        "JMSMessageID IS NULL AND JMSCorrelationID IS NULL AND JMSXGroupID IS NULL",
        "JMSXUserID IS NULL AND JMSDeliveryMode = 'NON_PERSISTENT' AND Root.MQMD.Persistence = 0",
        'Root.MQMD.Expiry = -1 AND Root.MQMD.CorrelId = "0x00" AND Root.MQMD.CorrelId IS NOT NULL',
        "Root.MQMD.UserIdentifier = '' AND JMSXDeliveryCount = 1",
    ):
        assert compile_selector(selector).matches(none, {}) is True
    as_queue = {**none, "persistent": None, "expiry": None, "priority": None}
    for name in ("Root.MQMD.Persistence", "Root.MQMD.Expiry", "Root.MQMD.Priority", "JMSDeliveryMode"):
        assert compile_selector(f"{name} IS NULL").matches(as_queue, {}) is True


def test_every_field_of_the_descriptor_has_its_name() -> None:
    not_of_mqmd = {"delay", "properties", "transmission", "body", "length", "token", "uid", "place"}
    not_of_mqmd |= {"earlier_pending", "warning", *LATER}
    expected = {
        f"Root.MQMD.{name}"
        for field in Message.FIELDS.values()
        if field.name not in not_of_mqmd
        for name in field.mq_name.split(", ")
    }
    assert {name for name in FIELDS if name.startswith("Root.")} == expected
    assert len(expected) == 27


def test_jms_type_is_a_property() -> None:
    selector = compile_selector("JMSType = 'car' AND color = 'blue' AND weight > 2500")
    assert selector.names == {"JMSType", "color", "weight"}
    assert selector.matches({}, {"JMSType": "car", "color": "blue", "weight": 2501}) is True


@pytest.mark.parametrize(
    "selector",
    [
        "age=17 and colour='red'",
        "\tage\n=\r17\fAnD(colour)='red'",
        "not age in(1,2)",
        "colour like 'R%' or age iS nOt NuLl",
    ],
)
def test_keywords_may_have_any_case_and_blanks_may_be_of_any_kind(selector: str) -> None:
    assert value(selector) is True


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("JMSExpiration", "Root.MQMD.Expiry"),
        ("JMSReplyTo", "Root.MQMD.ReplyToQ"),
        ("JMSDestination", "its destination"),
        ("JMSRedelivered", "JMSXDeliveryCount"),
    ],
)
def test_an_unsupported_jms_field_is_refused_with_the_name_to_use_instead(name: str, instead: str) -> None:
    with pytest.raises(ArgumentError, match=f"there is no field {name}: .*{instead}"):
        compile_selector(f"{name} = 1")


# ---- the object


def test_a_selector_lists_the_names_and_fields_that_it_uses() -> None:
    selector = compile_selector("colour = 'red' AND Root.MQMD.Priority > 3 AND (JMSPriority < 9 OR a.b IS NULL)")
    assert selector.names == {"colour", "a.b"}
    assert selector.fields == {"priority"}
    assert repr(selector) == f"Selector({selector.text!r})"


def test_a_selector_reads_properties_only_if_it_needs_them() -> None:
    selector = compile_selector("Root.MQMD.Priority > 3 AND colour = 'red'")
    assert selector.matches({"priority": 3}, None) is False  # type: ignore[arg-type]


def test_a_compiled_selector_is_cached() -> None:
    assert compile_selector("age = 17") is compile_selector("age = 17")
    one, other = compile_selector("age = 17"), compile_selector("age  = 17")
    assert one != other
    assert one != "age = 17"
    assert {one, Selector("age = 17", frozenset(), frozenset(), one.matches)} == {one}


def test_a_selector_survives_pickling() -> None:
    selector = compile_selector("age = 17")
    assert pickle.loads(pickle.dumps(selector)) == selector


# ---- bounds


def test_the_longest_selectors_are_accepted() -> None:
    parts = (LENGTH_MAX - 5) // 9
    for text, expected in [
        (" OR ".join(["a = 1"] * parts), True),
        (" AND ".join(["a=1"] * 1_280), True),
        ("+".join(["a"] * 5_000) + " = 5000", True),
        ("*".join(["a"] * 5_000) + " = 1", True),
        (f"a IN ({','.join(['1'] * 5_000)})", True),
        ("(" * 5_000 + "a=1" + ")" * 5_000, True),
        ("-" * 98 + "a = 1", True),
        ("NOT " * 98 + "a = 1", True),
    ]:
        assert compile_selector(text).matches({}, {"a": 1}) is expected


def test_a_result_of_more_bits_than_a_float_can_hold_is_unknown() -> None:
    most = {"a": 2**62}
    for text, expected in [
        ("*".join(["a"] * 16) + " > 0", True),
        ("*".join(["a"] * 17) + " > 0", None),
        ("*".join(["-a"] * 17) + " < 0", None),
        ("*".join(["a"] * 17) + "/".join(["", *["a"] * 17]) + " = 1", None),
        ("*".join(["a"] * 5_000) + " IS NULL", True),
    ]:
        assert compile_selector(text).matches({}, most) is expected, text


def test_a_pattern_searches_the_text_for_each_of_its_pieces_at_most_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made, expression = list[Mock](), selectors._expression

    def counted(piece: list[str | None]) -> Mock:
        made.append(Mock(wraps=expression(piece)))
        return made[-1]

    monkeypatch.setattr(selectors, "_expression", counted)
    is_like = compile_selector(f"text LIKE '{'%a' * 1_000}%b'").matches
    assert is_like({}, {"text": "a" * 20_000}) is False  # backtracking would take for ever
    assert [len(one.method_calls) for one in made] == [1] * 1_002
