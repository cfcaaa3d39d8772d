"""`ibm-mq-usr`, both ways."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inorder.model.properties import INTEGER_MAX, INTEGER_MIN, PropertyValue
from inorder.server.user_properties import read, written

# The header, and the properties that it is.
READ: list[tuple[list[str], dict[str, PropertyValue]]] = [
    (["myProp1;5;i1", 'myProp2;"My String";string'], {"myProp1": 5, "myProp2": "My String"}),
    (['myProp1;5;i1, myProp2;"My String";string'], {"myProp1": 5, "myProp2": "My String"}),
    (["a;TRUE;boolean,b;false;boolean"], {"a": True, "b": False}),
    (["a;-128;i1,b;-32768;i2,c;-2147483648;i4,d;-9223372036854775808;i8"],
     {"a": -128, "b": -32768, "c": -(2**31), "d": -(2**63)}),
    (["a;1;byte,b;1;short,c;1;integer,d;1;long,e;1.5;float,f;2;double"],
     {"a": 1, "b": 1, "c": 1, "d": 1, "e": 1.5, "f": 2.0}),
    (["a;-1.5e3;r8"], {"a": -1500.0}),
    (['a;"";string'], {"a": ""}),
    (["a;bare words;string"], {"a": "bare words"}),
    (['a;"1;2,3";string'], {"a": "1;2,3"}),
    ([r'a;"say \"no\" to C:\temp \\ \u00e9";string'], {"a": 'say "no" to C:\\temp \\ é'}),
    ([r'a;"\ud83d\ude00";string'], {"a": "😀"}),
    (["a;00ff;bin.hex"], {"a": b"\0\xff"}),
    (["a;;null"], {"a": None}),
    (["", " "], {}),
]  # fmt: skip


@pytest.mark.parametrize(("headers", "properties"), READ)
def test_a_header_is_properties(headers: list[str], properties: dict[str, PropertyValue]) -> None:
    assert read([one for one in headers if one.strip()]) == properties


@pytest.mark.parametrize(
    "header",
    ["a", "a;1", "a;1;i3", "a;x;i1", "a;128;i1", "a;1e400;r8", "a;nan;r8", "a;maybe;boolean", 'a;"open;string',
     "a;0;bin.hex",
     "a;1;null", "a;1;i1,a;2;i1", ";1;i1", "a;1;i1 b;2;i1", r'a;"\ud83d";string', "a;1_0;r8",
     "a;" + "9" * 5000 + ";i8"],
)  # fmt: skip
def test_what_is_not_properties_is_refused(header: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read([header])


NAMES = st.from_regex(r"[A-Za-z_$][A-Za-z0-9_$]{0,8}", fullmatch=True)
VALUES: st.SearchStrategy[PropertyValue] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(INTEGER_MIN, INTEGER_MAX),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.binary(max_size=10),
)


@given(st.dictionaries(NAMES, VALUES, max_size=6))
def test_what_is_written_is_read_again(properties: dict[str, PropertyValue]) -> None:
    header = written(properties)
    assert header.isascii()
    assert header.isprintable()
    again = read([header]) if header else {}
    assert again == properties
    assert [type(one) for one in again.values()] == [type(one) for one in properties.values()]


@given(st.text(max_size=60))
def test_any_text_is_properties_or_refused(header: str) -> None:
    try:
        read([header])
    except ValueError as error:
        assert str(error)  # noqa: PT017 - either way is right, and an error says something
