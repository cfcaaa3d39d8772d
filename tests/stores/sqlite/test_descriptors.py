"""The text of a descriptor: what is written is read, in one way only, and what nobody wrote is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rules.test_message_properties import NAMES, VALUES

from inorder import Match, Message, connect
from inorder.errors import StoreDamaged
from inorder.model.fields import NO_ACCOUNTING
from inorder.model.message import Transmission
from inorder.model.properties import NO_PROPERTIES, Properties
from inorder.stores.seam.damage import DECODING
from inorder.stores.sql.descriptors import (
    FIELDS,
    KEPT,
    PROPERTIES,
    as_text,
    begun_text,
    check,
    parts_of,
    values_of,
    with_properties,
)
from inorder.stores.sqlite import SqliteStore

DEFAULTS = tuple(KEPT[name] for name in FIELDS)


def values(**given: Any) -> tuple[Any, ...]:
    return tuple(given.get(name, KEPT[name]) for name in FIELDS)


def test_the_fields_are_those_of_a_message() -> None:
    assert set(FIELDS) == KEPT.keys() <= Message.FIELDS.keys()


def test_the_usual_text_is_short() -> None:
    assert as_text(DEFAULTS) == as_text(values(accounting_token=NO_ACCOUNTING)) == "[]"
    assert with_properties(DEFAULTS, NO_PROPERTIES) == with_properties(DEFAULTS, Properties({})) == "[]"
    assert parts_of("[]") == ("[]", None)
    assert as_text(values(put_application_name="app", user_identifier="me")) == '["app","me"]'


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "report": st.just(64),
            "message_type": st.integers(65536, 999_999_999),
            "feedback": st.integers(0, 999_999_999),
            "encoding": st.integers(0, 2**31 - 1),
            "coded_character_set_id": st.integers(-4, 2**31 - 1),
            "format": st.text(st.characters(codec="utf-8"), max_size=8).map(lambda text: text.rstrip(" \0")),
            "user_identifier": st.text(st.characters(codec="utf-8"), max_size=12).map(lambda text: text.rstrip(" \0")),
            "transmission": st.none() | st.builds(Transmission, st.text("AB", max_size=48), st.text("AB", max_size=48)),
            "accounting_token": st.none() | st.binary(min_size=32, max_size=32).filter(any),
        },
    )
)
def test_what_is_written_is_read(given: dict[str, Any]) -> None:
    assert values_of(as_text(values(**given))) == values(**given)


WRONG = {
    "no JSON": "x",
    "an object": "{}",
    "too many": json.dumps([*KEPT.values(), None]),
    "a number for a text": "[7]",
    "a text that is too long": json.dumps(["x" * 29]),
    "a text with a blank at its end": '["x "]',
    "a number out of its range": '["","",0,9999999999]',
    "a number with a point": '["","",6.0]',
    "a truth": '["","",true]',
    "a token that is too short": json.dumps([*list(KEPT.values())[:-1], "00"]),
    "a token of NULs": json.dumps([*list(KEPT.values())[:-1], "00" * 32]),
    "a transmission of one name": json.dumps([*list(KEPT.values())[:-2], ["Q"]]),
    "a transmission that is a text": json.dumps([*list(KEPT.values())[:-2], "QM"]),
    "half of a character": '["\\ud800"]',
    "deep": "[" * 3000 + "]" * 3000,
    "long": "[" + " " * 5000 + "]",
    "with blanks": '["app", "me"]',
    "with a character written as its number": '["\\u0061pp"]',
    "with a default at its end": '["app",""]',
}


BEGUN = begun_text(values(put_application_name="app"))
WRONG_PROPERTIES = {
    "properties behind fewer values": '["app",\n{"a":1}]',
    "properties that are none": f"{BEGUN},\n{{}}]",
    "properties without an end": f'{BEGUN},\n{{"a":1}}',
    "properties with a blank": f'{BEGUN},\n{{"a": 1}}]',
    "properties of a list": f"{BEGUN},\n[1]]",
    "properties and more": f'{BEGUN},\n{{"a":1}},1]',
    "a value that is none": f'{BEGUN},\n{{"a":[1]}}]',
    "a number that is none": f'{BEGUN},\n{{"a":1.e}}]',
    "an odd number of hex digits": f'{BEGUN},\n{{"a":["0"]}}]',
    "a line in a text": f'{BEGUN},\n{{"a":"\n"}}]',
    "half of a character in a property": f'{BEGUN},\n{{"a":"\\ud800"}}]',
    "properties that are too long": f'{BEGUN},\n{{"a":"{"x" * 65536}"}}]',
    "all values and no properties": f"{BEGUN},\n]",
}
# Whoever looks at the form alone cannot see these.
WRONG_TO_THE_CHECK = {
    "a name that is none": f'{BEGUN},\n{{"1":1}}]',
    "names out of their order": f'{BEGUN},\n{{"b":1,"a":1}}]',
    "a number that has no end": f'{BEGUN},\n{{"a":1e+999}}]',
}
WRONG |= WRONG_PROPERTIES


@pytest.mark.parametrize("wrong", WRONG)
def test_what_nobody_wrote_is_refused(wrong: str) -> None:
    with pytest.raises(DECODING):
        values_of(parts_of(WRONG[wrong])[0])
    with pytest.raises(DECODING):
        check(WRONG[wrong])


def test_the_check_looks_at_all_of_the_properties(store: SqliteStore) -> None:
    with connect(store) as qm:
        qm.create_queue("Q")
        qm.put("Q", b"x", properties={"a": 1})
        for text in WRONG_TO_THE_CHECK.values():
            with store.database.writing():
                store.database.connection.execute("UPDATE content SET descriptor = ?", (text,))
            assert any("its descriptor cannot be" in one for one in qm.admin.check()), text


@given(st.dictionaries(NAMES, VALUES, min_size=1))
def test_properties_stand_behind_all_values(given: dict[str, Any]) -> None:
    properties = Properties(given)
    text = with_properties(values(put_application_name="app"), properties)
    begun, found = parts_of(text)
    assert (begun, found) == (BEGUN, properties.text)
    assert values_of(begun) == values(put_application_name="app")
    assert len(json.loads(text)) == len(KEPT) + 1
    check(text)


def test_a_statement_finds_them(store: SqliteStore) -> None:
    with connect(store) as qm:
        qm.create_queue("Q")
        qm.put("Q", b"x")
        qm.put("Q", b"x", properties={"a": "\n\0,]", "b": 2**60})
        found = store.database.connection.execute(f"SELECT {PROPERTIES} FROM content c ORDER BY id").fetchall()
    assert found == [(None,), (Properties({"a": "\n\0,]", "b": 2**60}).text,)]


def test_a_message_with_a_wrong_one_is_named_by_whoever_reads_it(store: SqliteStore) -> None:
    with connect(store) as qm:
        qm.create_queue("Q")
        qm.put("Q", b"x", correlation_id=b"c")
        calls: dict[str, Callable[[], object]] = {
            "get": lambda: qm.get("Q"),
            "get by id": lambda: qm.get("Q", match=Match(correlation_id=b"c")),
            "browse": lambda: next(qm.browse("Q")),
            "look": lambda: list(qm.inspect.look("Q")),
        }
        for wrong in ("no JSON", "deep", "a value that is none", "properties without an end"):
            with store.database.writing():
                store.database.connection.execute("UPDATE content SET descriptor = ?", (WRONG[wrong],))
            for name, call in calls.items():
                with pytest.raises(StoreDamaged, match="descriptor"):
                    print(wrong, name, call())
            assert any("its descriptor cannot be" in text for text in qm.admin.check()), wrong


def test_a_match_finds_what_has_the_value_and_nothing_else(store: SqliteStore) -> None:
    wanted: list[dict[str, Any]] = [
        {"format": "A\0B"}, {"format": 'A"\\B'}, {"format": "Ä"}, {"encoding": 273}, {"accounting_token": b"t" * 32},
        {"application_identity_data": "id"}, {"feedback": 7}, {"put_application_name": "app"},
    ]  # fmt: skip
    with connect(store) as qm:
        qm.create_queue("Q")
        handle = qm.open("Q", output=True)
        for fields in [{"format": "A"}, *wanted]:
            handle.put(repr(fields).encode(), context="set_all", **fields)
        for fields in wanted:
            found = [message.body for message in qm.browse("Q", match=Match(**fields))]
            assert found == [repr(fields).encode()]
            default = {name: Message.FIELDS[name].default for name in fields}
            others = [message.body for message in qm.browse("Q", match=Match(**default))]
            assert others == [repr(it).encode() for it in [{"format": "A"}, *wanted] if not fields.keys() & it.keys()]
