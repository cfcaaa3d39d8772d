"""Properties of messages: valid names and values, and a stored text that preserves them bit for bit."""

from __future__ import annotations

import enum
import math
import pickle
import struct
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inorder.errors import ArgumentError, PropertyNotAvailable, Reason
from inorder.model.properties import LENGTH_MAX, NO_PROPERTIES, Properties, PropertyValue, decoded, is_encoded


class Name(str, enum.Enum):
    COLOUR = "colour"


class Number(enum.IntEnum):
    SEVEN = 7


class Half(float):
    pass


def refusal(given: Any) -> ArgumentError:
    with pytest.raises(ArgumentError) as refused:
        Properties(given)
    return refused.value


# ---- names (IBM MQ: "Property names", "Property name restrictions", 2442, 2498, 2513)


@pytest.mark.parametrize(
    "name",
    [
        "a.b.c",
        "e\u0301",  # a letter and an accent
        "€uro",
        "jmsPriority",
        "JMSType",
        "Rooted",
        "Body1",
        "\u0131s",
        "a.null",
        "mq.a",
        "mq_usr.a.b.c",
        "x" * 4_095,
        Name.COLOUR,
    ],
)
def test_valid_property_names_are_accepted(name: str) -> None:
    (kept,) = Properties({name: "x"})
    assert (kept, type(kept)) == (name, str)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", Reason.PROPERTY_NAME_LENGTH_ERR),
        ("x" * 4_096, Reason.PROPERTY_NAME_LENGTH_ERR),
        *(
            (name, Reason.PROPERTY_NAME_ERROR)
            for name in (
                *("1a", "a b", "a-b", "a=b", "a'b", "a\0b", "a\u200bb", "a\ud800", "😀", "a\n", " a", "²"),
                *(".", ".a", "a.", "a..b", "a.1"),
                *("NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE", "Null", "in"),
                *("JMS", "JMSPriority", "JMSXGroupID", "JMS_IBM_Format", "JMSCorrelationID", "JMSTypes"),
                *("usr.JMSType", "usr.a", "usr.null"),
                *("Root", "Body", "Root.a", "Body.a", "Root.MQMD.Priority"),
                *("mq.a.b", "Mqtt.a.b", "mqusr.a.b"),
            )
        ),
        (7, Reason.PROPERTY_NAME_ERROR),
        (None, Reason.PROPERTY_NAME_ERROR),
        (b"a", Reason.PROPERTY_NAME_ERROR),
    ],
)
def test_invalid_property_names_are_refused(name: Any, reason: Reason) -> None:
    error = refusal({name: "x"})
    assert (error.reason, error.value) == (reason, name)
    assert refusal({"a": 1, name: 2, "b": 3}).reason is reason


@pytest.mark.parametrize("names", [("a", "a.b"), ("a.b.c", "a"), ("x", "a.b", "a.b.c.d")])
def test_no_property_name_may_be_continued_by_another(names: tuple[str, ...]) -> None:
    assert refusal(dict.fromkeys(names, 1)).reason is Reason.MIXED_CONTENT_NOT_ALLOWED


def test_the_error_says_which_name_and_what_is_allowed() -> None:
    assert str(refusal({"order no": 1})) == (
        "the name of a property must be parts of letters, digits, _ and $, joined by dots, no part beginning with a "
        "digit, not 'order no' [2442 PROPERTY_NAME_ERROR]"
    )


# ---- values


@pytest.mark.parametrize("value", [None, 0, 2**63 - 1, -(2**63), -0.0, 5e-324, "", "a'b\"\\\n\0é😀", b"", b"\0\xff"])
def test_valid_property_values_are_kept(value: PropertyValue) -> None:
    same(value, Properties.from_text(Properties({"a": value}).text)["a"])


@pytest.mark.parametrize(
    "value",
    [
        *(2**63, -(2**63) - 1, 10**5_000, math.nan, math.inf, -math.inf),
        *(1j, [], {}, (), object(), "\ud800", "x\udfff", Half("nan")),
    ],
    ids=range(14),
)
def test_invalid_property_values_are_refused(value: Any) -> None:
    error = refusal({"colour": value})
    assert error.reason is Reason.PROPERTY_TYPE_ERROR
    assert str(error).startswith("property 'colour' must be ")


def test_a_released_memoryview_and_a_jms_type_that_is_not_a_text_are_refused() -> None:
    view = memoryview(b"x")
    view.release()
    for wrong in ({"a": view}, {"JMSType": 1}):
        assert refusal(wrong).reason is Reason.PROPERTY_TYPE_ERROR
    assert Properties({"JMSType": None})["JMSType"] is None


@pytest.mark.parametrize(
    ("value", "plain"),
    [(Number.SEVEN, 7), (Half(0.5), 0.5), (Name.COLOUR, "colour"), (bytearray(b"x"), b"x"), (memoryview(b"x"), b"x")],
)
def test_a_value_of_another_class_is_converted_to_a_plain_one(value: Any, plain: PropertyValue) -> None:
    same(Properties({"a": value})["a"], plain)


# ---- size


def test_the_total_length_of_names_and_values_is_limited() -> None:
    room = LENGTH_MAX - len('{"a":""}')
    assert Properties({"a": "x" * room})
    assert refusal({"a": "x" * (room + 1)}).reason is Reason.PROPERTIES_TOO_BIG
    assert refusal({"a": "é" * (room // 2), "b": 1}).reason is Reason.PROPERTIES_TOO_BIG
    assert refusal({"x" * 4_000 + str(i): None for i in range(17)}).reason is Reason.PROPERTIES_TOO_BIG


# ---- the stored text


def test_values_of_each_type_have_their_form_in_the_stored_text() -> None:
    values: dict[str, PropertyValue] = {"b": True, "a": 1, "f": 1.0, "s": "x'", "o": b"\x01\xff", "n.a": None, "n.b": 1}
    assert Properties(values).text == '{"a":1,"b":true,"f":1.0,"n.a":null,"n.b":1,"o":["01ff"],"s":"x\'"}'
    assert Properties({}).text is None
    assert Properties.from_text(None) is NO_PROPERTIES
    assert (bool(NO_PROPERTIES), len(NO_PROPERTIES)) == (False, 0)


NAMES = st.from_regex(r"\A[A-Zb-z_$][A-Za-z0-9_]{5,9}\Z").filter(lambda name: not name.startswith(("JMS", "ESCAPE")))
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.binary(),
)


def same(one: PropertyValue, other: PropertyValue) -> None:
    assert type(one) is type(other)
    if isinstance(one, float) and isinstance(other, float):
        assert struct.pack("d", one) == struct.pack("d", other)
    else:
        assert one == other


@given(st.dictionaries(NAMES, VALUES))
def test_stored_properties_are_read_back_bit_for_bit_and_have_only_one_form(values: dict[str, PropertyValue]) -> None:
    made = Properties(values)
    again = Properties.from_text(made.text)
    assert list(again) == sorted(values)
    for name, value in values.items():
        same(again[name], value)
    assert Properties(dict(reversed(values.items()))).text == made.text
    assert (again, hash(again)) == (made, hash(made))
    if made.text is not None:
        assert is_encoded(made.text)
        assert "\0" not in made.text  # PostgreSQL cannot store it


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "[]", "1", '{"a":NaN}', '{"a":1', '{"a":1} ', '{"a":[]}', '{"a":[1]}', '{"a":["x"]}', '{"a":[[]]}'),
        *('{"a":["00","00"]}', '{"a":' * 100_000),
    ],
    ids=range(13),
)
def test_a_text_that_no_store_has_written_is_refused(text: str) -> None:
    assert not is_encoded(text)
    with pytest.raises(ValueError, match=r"\S"):
        decoded(text)


@pytest.mark.parametrize(
    "text", ['{"b":1,"a":2}', '{"a": 1}', '{"a":1.50}', '{"a":["AB"]}', '{"a":{}}', '{"a b":1}', "{}"]
)
def test_a_stored_text_in_another_form_is_recognized_as_changed(text: str) -> None:
    assert not is_encoded(text)


# ---- as a mapping


def test_properties_are_an_immutable_mapping() -> None:
    given = {"b": 1, "a": 2}
    properties = Properties(MappingProxyType(given))
    given["c"] = 3
    assert properties == {"a": 2, "b": 1}
    assert pickle.loads(pickle.dumps(properties)) == properties
    assert {**properties} == {"a": 2, "b": 1}
    assert properties.get("c") is None
    assert properties.get("c", 3) == 3
    assert ("a" in properties, "c" in properties) == (True, False)
    assert repr(properties) == "Properties({'a': 2, 'b': 1})"
    assert not hasattr(properties, "__setitem__")


def test_reading_a_missing_property_raises_an_error_with_the_nearest_name() -> None:
    with pytest.raises(PropertyNotAvailable, match="no property 'color': did you mean colour") as missing:
        _ = Properties({"colour": 1})["color"]
    assert (missing.value.reason, missing.value.nearest) == (2471, ["colour"])
    with pytest.raises(KeyError):
        _ = NO_PROPERTIES["x"]
