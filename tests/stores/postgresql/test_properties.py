"""Properties in the descriptor's text: a statement finds them there, and what PostgreSQL cannot hold it holds."""

from __future__ import annotations

from tests.stores.postgresql.server import administrating

from inorder import Match, QueueManager
from inorder.model.properties import Properties, PropertyValue
from inorder.stores.sql.descriptors import PROPERTIES


def test_a_statement_finds_them(url: str, qm: QueueManager) -> None:
    given: dict[str, PropertyValue] = {"a": "\n\0,]", "b": 2**60, "c": "\U0001f600"}
    qm.put("Q", b"x", format="MQSTR")
    qm.put("Q", b"x", format="MQSTR", properties=given)
    with administrating(url) as connection:
        found = connection.execute(f"SELECT {PROPERTIES} FROM content c ORDER BY id").fetchall()
    assert found == [(None,), (Properties(given).text,)]
    assert len(list(qm.browse("Q", match=Match(format="MQSTR")))) == 2
