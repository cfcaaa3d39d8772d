"""The table of fields: unique codes and words; agreement with the schemas, the keywords and MQ's reasons."""

from __future__ import annotations

from typing import Any

import pytest

from inorder import Message, Reason
from inorder.arrow.schema import arrow_schema
from inorder.errors import ArgumentError
from inorder.model.fields import GIVEN, LATER, NONE, Descriptor, MessageFields
from inorder.rules.staged_columns import check_columns
from inorder.server.console.putting import message_of
from inorder.stores.postgresql import statements as of_postgresql
from inorder.stores.seam.records import BULK_COLUMNS
from inorder.stores.sqlite import statements as of_sqlite

message: Any = Message  # for calls that are wrong on purpose


def test_programs_may_give_the_fields_that_have_a_kind() -> None:
    assert list(Descriptor.__annotations__) == [
        name for name, field in MessageFields.FIELDS.items() if field.kind and name != "body"
    ]


def test_the_text_of_a_descriptor_has_a_place_for_each_of_its_fields() -> None:
    places = [field.text for field in GIVEN.values() if field.text is not None]
    assert sorted(places) == list(range(len(places)))


@pytest.mark.parametrize("tables", [of_sqlite.TABLES, of_postgresql.TABLES], ids=["sqlite", "postgresql"])
def test_every_other_field_has_a_column(tables: Any) -> None:
    columns = {**tables["message"], **tables["content"]}
    own = {name for name, field in GIVEN.items() if field.text is None}
    assert own - columns.keys() == {"properties"}  # they follow the text of the descriptor
    assert tuple(tables["content"])[7:] == LATER, "a field that comes later has a column at the end of content"
    may_be_null = {name for name in own - {"properties"} if type(None) in columns[name]}
    assert may_be_null == own & NONE.keys(), "NULL stands for one value of those that the table names"


def test_each_code_and_each_word_belongs_to_one_field() -> None:
    codes = [code for field in MessageFields.FIELDS.values() for code in field.code.split()]
    words = [field.word for field in MessageFields.FIELDS.values()]
    assert len(set(codes)) == len(codes)
    assert len(set(words)) == len(words)
    assert all(len(code) == 3 for code in codes)


def test_bulk_rows_and_arrow_columns_have_the_fields_that_a_reader_gets() -> None:
    assert [name for name in GIVEN if name not in BULK_COLUMNS] == ["delay"]
    assert [name for name in GIVEN if name not in arrow_schema().names] == ["delay", "transmission"]


WRONG: dict[str, Any] = {
    "priority": -1, "expiry": 0.0, "delay": -1.0, "format": "x" * 9, "message_id": b"x" * 25, "sequence_number": 0,
    "report": 4, "message_type": 3, "put_at": -1.0,
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_value_is_refused_in_the_same_words_alone_and_in_a_column(name: str) -> None:
    with pytest.raises(ArgumentError) as alone:
        message(b"", **{name: WRONG[name]})
    with pytest.raises(ArgumentError) as in_column:
        check_columns({"body": [b"", b""], name: [None, WRONG[name]]}, 2)
    assert str(in_column.value) == f"row 1: {alone.value}"
    assert f"must be {GIVEN[name].kind.allowed}" in str(alone.value)  # type: ignore[union-attr]
    assert alone.value.reason == in_column.value.reason == GIVEN[name].kind.reason  # type: ignore[union-attr]


def test_a_form_refuses_a_value_in_the_words_of_its_kind() -> None:
    with pytest.raises(ArgumentError, match="delay must be a number of seconds from 0") as told:
        message_of({"body": "", "delay": "-1"})
    assert told.value.reason == Reason.ARGUMENT_ERROR
