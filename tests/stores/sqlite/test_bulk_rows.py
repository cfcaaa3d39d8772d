"""Rows in bulk from a file: defaults for values that are not stored, pages over many groups, damage in a page."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import apsw
import pytest

from inorder import Flags, GetOptions, Message, QueueManager
from inorder.client.bulk import BULK_COLUMNS, BulkBrowser, ClaimReader
from inorder.errors import StoreDamaged

LOGICAL = GetOptions(logical=True, all_messages=True)


def pages(qm: QueueManager, options: GetOptions = GetOptions()) -> list[list[dict[str, Any]]]:  # noqa: B008
    with qm.open("Q", browse=True) as queue:
        browser = BulkBrowser(queue)
        found = [page for one in browser.survey(options).stretches for page in browser.read(one)]
    return [[dict(zip(BULK_COLUMNS, row, strict=True)) for row in page] for page in found]


def rows(qm: QueueManager, options: GetOptions = GetOptions()) -> list[dict[str, Any]]:  # noqa: B008
    return [row for page in pages(qm, options) for row in page]


def put_groups(qm: QueueManager, *sizes: int) -> list[bytes]:
    """Puts groups a, b, ... of these sizes, first members first; 0: no group. Returns the bodies in logical order."""
    names = [b"%c" % (ord("a") + nth) for nth in range(len(sizes))]
    for number in range(1, max(sizes) + 1):
        for name, size in zip(names, sizes, strict=True):
            if not size and number == 1:
                qm.put("Q", name)
            elif number <= size:
                flags = Flags.IN_GROUP | (Flags.LAST_IN_GROUP if number == size else Flags.NONE)
                qm.put("Q", b"%s%d" % (name, number), group_id=name, sequence_number=number, flags=flags)
    return [
        b"%s%d" % (name, number) if size else name
        for name, size in zip(names, sizes, strict=True)
        for number in range(1, (size or 1) + 1)
    ]


def test_values_that_are_not_stored_are_filled_in_next_to_stored_ones(qm: QueueManager) -> None:
    qm.put("Q", b"own")
    qm.put("Q", b"given", message_id=b"m" * 24, correlation_id=b"c" * 24, expiry=60, format="MQSTR", priority=0)
    qm.put("Q", b"own again", format="OTHER", accounting_token=b"t" * 32)
    messages = list(qm.browse("Q"))
    for row, message in zip(rows(qm), messages, strict=True):
        assert row["message_id"] == message.message_id
        assert row["correlation_id"] == (message.correlation_id if message.body == b"given" else None)
        assert (row["uid_origin"], row["uid_number"]) == message.uid
        found = (row["format"], row["accounting_token"])
        assert found == (message.format, message.accounting_token.strip(b"\0") or None)
        assert (row["expiry"] is None) == (message.body != b"given")


def test_each_row_has_the_place_of_the_head_of_its_group(qm: QueueManager) -> None:
    put_groups(qm, 2, 0, 2)
    qm.put("Q", b"lost", group_id=b"z", sequence_number=2, flags=Flags.IN_GROUP)
    by_body = {row["body"]: row for row in rows(qm)}

    def place(body: bytes, prefix: str = "") -> list[Any]:
        return [by_body[body][prefix + name] for name in ("rank", "number", "ordinal")]

    for body, head in ((b"a1", b"a1"), (b"a2", b"a1"), (b"b", b"b"), (b"c2", b"c1")):
        assert place(body, "group_") == place(head)
    assert place(b"lost", "group_") == [None, None, None]


@pytest.mark.parametrize(
    ("page_rows", "page_bytes"), [(1, None), (2, None), (5, None), (100, None), (None, 1), (None, 5), (None, 100)]
)
@pytest.mark.parametrize("heads", [1, 2, 1024])
def test_groups_of_all_sizes_are_read_once_and_in_order_for_any_page_size(
    qm: QueueManager, monkeypatch: pytest.MonkeyPatch, page_rows: int | None, page_bytes: int | None, heads: int
) -> None:
    expected = put_groups(qm, 3, 0, 1, 6, 0, 2, 2)
    for name, value in (("PAGE_ROWS", page_rows), ("PAGE_BYTES", page_bytes), ("HEADS_AT_ONCE", heads)):
        if value is not None:
            monkeypatch.setattr(f"inorder.stores.sql.bulk.{name}", value)
    found = pages(qm, LOGICAL)
    assert [row["body"] for page in found for row in page] == expected
    assert [row["delivery"] for page in found for row in page] == list(range(1, len(expected) + 1))
    if page_rows is not None:
        assert all(len(page) == page_rows for page in found[:-1]), "every page but the last one is full"
        assert len(found[-1]) <= page_rows
    if page_bytes is not None:
        assert all(sum(row["length"] for row in page) <= page_bytes for page in found if len(page) > 1)


@pytest.mark.parametrize("page_rows", [1, 2, 3])
def test_members_with_duplicate_numbers_are_read_in_browse_order_for_any_page_size(
    qm: QueueManager, monkeypatch: pytest.MonkeyPatch, page_rows: int
) -> None:
    qm.put("Q", b"alone", group_id=b"a", flags=Flags.SEGMENTATION_ALLOWED)
    put_groups(qm, 3, 0, 2)
    qm.put("Q", b"again", group_id=b"a", sequence_number=1, flags=Flags.IN_GROUP)
    monkeypatch.setattr("inorder.stores.sql.bulk.PAGE_ROWS", page_rows)
    shown = [message.body for message in qm.browse("Q", logical=True, all_messages=True)]
    assert shown == [b"alone", b"a1", b"a2", b"a3", b"b", b"c1", b"c2", b"again", b"a2", b"a3"]
    assert [row["body"] for row in rows(qm, LOGICAL)] == shown


@pytest.mark.parametrize(
    ("damage", "wrong"),
    [
        ("UPDATE content SET body = x'00' WHERE id = ?", "its body is not the one that was put"),
        ("UPDATE content SET descriptor = '[7]' WHERE id = ?", "its descriptor cannot be"),
        ("UPDATE message SET length = length + 1 WHERE id = ?", "its body has 2 bytes, not 3"),
        ("UPDATE content SET put_at = 1e300 WHERE id = ?", r"put_at cannot be 1e\+300"),
    ],
)
def test_the_error_names_the_damaged_row_among_many(path: Path, qm: QueueManager, damage: str, wrong: str) -> None:
    qm.put_many("Q", [Message(b"%02d" % number) for number in range(99)])
    (bad,) = [message for message in qm.browse("Q") if message.body == b"77"]
    assert bad.uid is not None
    with contextlib.closing(apsw.Connection(str(path))) as raw:
        raw.execute(damage, (bad.uid.number,))
    with pytest.raises(StoreDamaged, match=f"message {bad.uid.number} on queue Q: {wrong}"):
        rows(qm)
    with qm.open("Q", input="shared") as queue:
        reader = ClaimReader(queue, "app")
        reader.begin()
        claim = reader.claim(0)
        assert claim is not None
        (part,) = reader.plan(0, 1)
        with pytest.raises(StoreDamaged, match=f"message {bad.uid.number} on queue Q: {wrong}"):
            list(reader.read(part))
