"""Pages of rows that were read in bulk: columns, and the same as a sequence of rows."""

from __future__ import annotations

from typing import Any

import pytest

from inorder.client.bulk import BULK_COLUMNS, BulkPage

BODY, FORMAT = BULK_COLUMNS.index("body"), BULK_COLUMNS.index("format")


def row(body: bytes, format_: str = "MQSTR") -> tuple[Any, ...]:
    values = dict.fromkeys(BULK_COLUMNS, 7) | {"body": body, "format": format_}
    return tuple(values.values())


def test_a_page_is_the_sequence_of_its_rows() -> None:
    rows = [row(b"1"), row(b"2"), row(b"3", "OTHER")]
    page = BulkPage.of_rows(rows)
    assert (len(page), list(page), page[1], page[-1], page[1:]) == (3, rows, rows[1], rows[2], rows[1:])
    with pytest.raises(IndexError):
        page[3]


def test_what_all_rows_share_is_kept_once() -> None:
    page = BulkPage.of_rows([row(b"1"), row(b"2"), row(b"1")])
    assert (page.shared["format"], page.shared["rank"]) == ("MQSTR", 7)
    assert {name: list(values) for name, values in page.columns.items()} == {"body": [b"1", b"2", b"1"]}
    assert (page.column("format"), page.column("body")) == (["MQSTR"] * 3, (b"1", b"2", b"1"))


def test_a_page_may_have_no_row() -> None:
    page = BulkPage.of_rows([])
    assert (len(page), list(page), page[:], list(page.column("body"))) == (0, [], [], [])


def test_columns_take_the_place_of_others_shared_or_not() -> None:
    page = BulkPage.of_rows([row(b"1"), row(b"2")])
    other = page.with_columns({"body": [b"x", b"x"], "format": ["A", "B"]})
    assert [(one[BODY], one[FORMAT]) for one in other] == [(b"x", "A"), (b"x", "B")]
    assert [(one[BODY], one[FORMAT]) for one in page] == [(b"1", "MQSTR"), (b"2", "MQSTR")], "the first is as it was"
