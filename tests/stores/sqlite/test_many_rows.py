"""Many messages in one statement: all arrive in order, however many and of any kinds, with few texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import apsw
import pytest

from inorder import Flags, Message, QueueManager, connect
from inorder.stores.sql.records import INSERTED_MAX
from inorder.stores.sqlite import SqliteStore

SIZES = (1, 3, INSERTED_MAX, 3 * INSERTED_MAX + 5)


@pytest.fixture
def qm(store: SqliteStore) -> Iterator[QueueManager]:
    with connect(store) as qm:
        qm.create_queue("Q")
        yield qm


def plain(number: int) -> Message:
    return Message(b"%d" % number)


def with_more(number: int) -> Message:
    """Some are in a group, or have their own id, expiry, format, delay or report options."""
    kinds: tuple[dict[str, Any], ...] = (
        {}, {}, {"correlation_id": b"c%d" % number}, {}, {}, {"expiry": 60.0, "format": f"F{number % 7}"}, {}, {},
        {"group_id": b"g%d" % number, "sequence_number": 1, "flags": Flags.LAST_IN_GROUP},
        {"message_id": b"m%d" % number}, {"delay": 0.0, "report": 64},
    )  # fmt: skip
    return Message(b"%d" % number, **kinds[number % len(kinds)])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", [plain, with_more])
def test_all_messages_of_one_put_arrive_in_order(kind: Callable[[int], Message], size: int, qm: QueueManager) -> None:
    given = [kind(number) for number in range(size)]
    told = qm.put_many("Q", given)
    got = qm.get_many("Q", size)
    assert [one.body for one in got] == [one.body for one in given]
    assert [(one.message_id, one.uid) for one in got] == [(one.message_id, one.uid) for one in told]
    for name in ("correlation_id", "format", "report", "flags" if kind is plain else "sequence_number"):
        assert [getattr(one, name) for one in got] == [getattr(one, name) for one in given], name
    assert qm.admin.check() == []


def test_few_statement_texts_insert_any_number_of_messages(store: SqliteStore, qm: QueueManager) -> None:
    texts: set[str] = set()

    def traced(event: dict[str, object]) -> None:
        if str(event["sql"]).startswith(("INSERT INTO message", "INSERT INTO content")):
            texts.add(str(event["sql"]))

    tracing = store.database.connection
    tracing.trace_v2(apsw.SQLITE_TRACE_STMT, traced)
    for size in range(2, 2 * INSERTED_MAX + 2, 3):
        qm.put_many("Q", [b"x"] * size)
    tracing.trace_v2(0, None)
    lengths = INSERTED_MAX.bit_length()  # 64, 32, 16 ... 1 rows
    assert len(texts) == 2 * lengths, "one text for each power of two, of messages and of contents"
