"""Messages on a server: reports that a put adds, texts that it cannot keep, properties, keys of rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.stores.postgresql.server import administrating

from inorder import Match, Message, QueueManager
from inorder.errors import ArgumentError
from inorder.model.kinds import Report
from inorder.model.properties import Properties, PropertyValue
from inorder.rules.staging import Key, sort_key
from inorder.stores.postgresql.keys import encoded
from inorder.stores.sql.descriptors import PROPERTIES


def asking(count: int, reply_to: str) -> list[Message]:
    return [Message(b"x", report=Report.COA, reply_to_queue=reply_to) for _ in range(count)]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_reports_on_several_messages_of_one_put_leave_their_queue_in_order(qm: QueueManager, count: int) -> None:
    qm.create_queue("REPLIES")
    for _ in range(3):
        sent = qm.put_many("Q", asking(count, "REPLIES"))
        qm.put("REPLIES", b"between")
        got = [qm.get("REPLIES") for _ in range(count + 1)]
        assert [one.correlation_id for one in got[:-1]] == [one.message_id for one in sent]
        assert got[-1].body == b"between"
    assert list(qm.admin.check()) == []


def test_reports_can_go_to_the_same_queue_as_their_messages(qm: QueueManager) -> None:
    for _ in range(4):
        qm.put("Q", asking(1, "Q")[0])
    assert qm.inspect.status("Q").current_depth == 8
    assert list(qm.admin.check()) == []


CALLS: dict[str, Callable[[QueueManager], object]] = {
    "prepare": lambda qm: qm.prepare("a\0b"),
    "settle": lambda qm: qm.settle("a\0b", "commit"),
    "end_lease": lambda qm: qm.admin.end_lease("a\0b"),
    "undo_staging": lambda qm: qm.bulk.undo_staging(["a\0b"]),
    "deduplicate": lambda qm: qm.put("Q", b"2", deduplicate="a\0b"),
    "user": lambda qm: qm.accounts.user("a\0b"),
    "process": lambda qm: qm.admin.process("a\0b"),
    "program": lambda qm: qm.connect(program="a\0b").put("Q", b"2"),
}


def test_a_text_with_a_nul_character_raises_an_argument_error(qm: QueueManager) -> None:
    for call in CALLS.values():
        with qm.unit_of_work():
            qm.put("Q", b"1")
            with pytest.raises(ArgumentError, match="NUL"):
                call(qm)
    assert [one.body for one in qm.browse("Q")] == [b"1"] * len(CALLS)
    assert qm.admin.check() == []


def test_an_sql_statement_finds_the_properties_of_messages(url: str, qm: QueueManager) -> None:
    given: dict[str, PropertyValue] = {"a": "\n\0,]", "b": 2**60, "c": "\U0001f600"}
    qm.put("Q", b"x", format="MQSTR")
    qm.put("Q", b"x", format="MQSTR", properties=given)
    with administrating(url) as connection:
        found = connection.execute(f"SELECT {PROPERTIES} FROM content c ORDER BY id").fetchall()
    assert found == [(None,), (Properties(given).text,)]
    assert len(list(qm.browse("Q", match=Match(format="MQSTR")))) == 2


ASCENDING: list[list[Key]] = [  # each list is one key, in all its spellings
    [-math.inf], [-1e308], [-(2**63), -(2.0**63)], [-(2**63) + 1], [-(2**53) - 1], [-(2**53), -(2.0**53)], [-1.5],
    [-1, -1.0], [-5e-324], [0, 0.0, -0.0, False], [5e-324], [1, 1.0, True], [1.5], [2**53, 2.0**53], [2**53 + 1],
    [2**53 + 2, 2.0**53 + 2], [2**63 - 1025], [2**63 - 1024, 2.0**63 - 1024], [2**63 - 1023], [2**63 - 513],
    [2**63 - 512], [2**63 - 1], [2.0**63], [math.inf], [""], ["\0"], ["a"], ["a\0"], ["aa"], ["b"], ["é"], ["\uffff"],
    ["\U00010000"], [b""], [b"\0"], [b"a"], [b"\xff"],
]  # fmt: skip


def test_equal_keys_have_the_same_bytes_and_greater_ones_greater_bytes() -> None:
    found = [set(encoded(same)) for same in ASCENDING]
    assert [same for same, keys in zip(ASCENDING, found, strict=True) if len(keys) != 1] == []
    in_order = [key for (key,) in found]
    assert [(less, more) for less, more in pairwise(in_order) if not less < more] == []  # type: ignore[operator]
    assert encoded([None]) == [None]


KEYS = (
    st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=3)
    | st.binary(max_size=3)
)
# A number and its neighbours: integers and floats meet where floats have gaps.
CLOSE = st.builds(
    lambda bits, more: max(-(2**63), min(2**63 - 1, (1 << bits) + more)), st.integers(50, 62), st.integers(-2050, 2050)
).flatmap(lambda number: st.sampled_from([number, -number, float(number), -float(number)]))


@given(KEYS | CLOSE, KEYS | CLOSE)
def test_any_two_keys_sort_as_in_sqlite_and_in_the_rules(one: Key, another: Key) -> None:
    with apsw.Connection(":memory:") as connection:
        ((less, same),) = connection.execute("SELECT ?1 < ?2, ?1 = ?2", (one, another))
    ours, others = encoded([one, another])
    assert ours is not None
    assert others is not None
    assert (ours < others, ours == others) == (bool(less), bool(same))
    assert (ours < others) == (sort_key(one) < sort_key(another))
