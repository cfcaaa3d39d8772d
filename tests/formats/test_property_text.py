"""Properties as words: written words are read again, and invalid ones are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from tests.rules.test_message_properties import NAMES, VALUES

from inorder import ArgumentError
from inorder.formats.property_text import read_property, write_property
from inorder.model.properties import Properties, PropertyValue


@given(NAMES, VALUES)
def test_a_written_property_is_read_back(name: str, value: PropertyValue) -> None:
    again, found = read_property(write_property(name, value))
    assert again == name
    assert Properties({"a": found}).text == Properties({"a": value}).text


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("colour=red", "red"),
        ("colour:text=a=b:c", "a=b:c"),
        ("colour=", ""),
        ("count:int=-3", -3),
        ("weight:float=2", 2.0),
        ("paid:bool=false", False),
        ("key:bytes=00FF", b"\0\xff"),
        ("note:none=", None),
    ],
)
def test_a_word_is_read_as_a_property_of_its_type(word: str, value: PropertyValue) -> None:
    found = read_property(word)[1]
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("colour", "NAME=VALUE or NAME:TYPE=VALUE, not 'colour'"),
        ("count:long=3", "the type of the property count must be one of: text, int, float, bool, bytes, none"),
        ("count:=3", "the type of the property count must be one of"),
        ("count:int=3.5", "the property count must be an integer"),
        ("weight:float=heavy", "the property weight must be a number"),
        ("paid:bool=yes", "the property paid must be true or false"),
        ("key:bytes=0", "the property key must be hexadecimal digits, two for each byte"),
        ("note:none=x", "the property note must be nothing"),
    ],
)
def test_a_word_that_is_not_a_property_is_refused_with_the_reason(word: str, says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        read_property(word)
