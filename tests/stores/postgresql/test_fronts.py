"""Gets while a transaction elsewhere keeps deleted rows: they begin after those, and miss no message."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import pytest
from tests.stores.postgresql.server import administrating

import inorder
from inorder import Match, NoMessageAvailable, QueueManager
from inorder.stores.postgresql.fronts import GETS_A_LOOK, LOOKS_WITHOUT
from inorder.stores.postgresql.link import SETTINGS
from inorder.stores.postgresql.statement import statement
from inorder.stores.postgresql.statements import STATEMENTS
from inorder.stores.sql.attention import FRONTS

MESSAGES, EACH = 20_000, 10
BUFFERS_MAX = 100  # for any statement of a get
PRIORITIES = (0, 5, 9)


@pytest.fixture
def url(url: str) -> str:
    """The URL of a store whose tables are never vacuumed or analyzed: dead rows stay, and so do plans."""
    inorder.connect(url).close()
    with administrating(url) as connection:
        for table in ("message", "content", "tally"):
            connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
    return url


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inorder.stores.postgresql.backend.GETS_A_LOOK", 1)
    monkeypatch.setattr("inorder.stores.postgresql.backend.TOGETHER_A_LOOK", 1)
    monkeypatch.setattr("inorder.stores.postgresql.backend.ENTRIES_MAX", -(10**9))


@contextmanager
def idle(url: str) -> Iterator[None]:
    """A block in which a transaction is open that can see all present rows."""
    with administrating(url) as connection:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT 1")
        yield


def buffers(url: str, name: str, *values: Any) -> int:
    """The number of pages that a statement reads, in a transaction that is rolled back."""
    text, _ = statement(STATEMENTS[name])
    with administrating(url) as connection:
        for setting, chosen in SETTINGS.items():
            if setting.startswith(("enable_", "plan_")):
                connection.execute(f"SET {setting} = {chosen}")
        connection.execute("BEGIN")
        connection.execute(f"PREPARE one AS {text}")
        given = ", ".join(map(str, values))
        ((found,),) = connection.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE one ({given})").fetchall()
        connection.execute("ROLLBACK")
    plan = (json.loads(found) if isinstance(found, str) else found)[0]["Plan"]
    read: int = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    return read


def number_of(url: str, queue: str) -> int:
    return int(asked(url, "SELECT id FROM definition WHERE name = %s", queue))


def asked(url: str, sql: str, *values: Any) -> Any:
    with administrating(url) as connection:
        ((found,),) = connection.execute(sql, values).fetchall()
    return found


def has_fronts(url: str) -> bool:
    return bool(asked(url, "SELECT bool_or(fronts IS NOT NULL) FROM tally"))


def fill(qm: QueueManager, queue: str, messages: int) -> None:
    for begin in range(0, messages, 1000):
        qm.put_many(queue, [b"%06d" % n for n in range(begin, begin + 1000)])


@pytest.mark.parametrize("read_order", ["relaxed", "strict", "unordered"])
def test_gets_read_few_pages_however_many_rows_are_dead(
    url: str, read_order: Literal["relaxed", "strict", "unordered"]
) -> None:
    with inorder.connect(url) as qm:
        qm.create_queue("Q", read_order=read_order)
        fill(qm, "Q", MESSAGES + 1000)
        number = number_of(url, "Q")
        with idle(url):
            found = [one.body for _ in range(MESSAGES // EACH) for one in qm.get_many("Q", EACH)]
            assert found == [b"%06d" % n for n in range(MESSAGES)]
            assert buffers(url, "get and remove", number, 1) > 3 * BUFFERS_MAX, "or this shows nothing"
            known = asked(url, "SELECT revision FROM tally"), FRONTS
            come: list[tuple[Any, ...]]
            if read_order == "unordered":
                come = [("queue state together", number), ("queue state together as known", number, *known),
                        ("get available singles together after fronts", number, 1),
                        ("get and remove together after fronts", number, 1),
                        ("get and remove together as known after fronts", number, 1, *known),
                        ("get and remove one together as known after fronts", number, *known, "'on'")]  # fmt: skip
            else:
                come = [("queue state locked", number), ("count one arrival", number, *known, MESSAGES),
                        ("get and remove after fronts", number, 1), ("get and remove one after fronts", number),
                        ("get available singles after fronts", number, 1), ("get available after fronts", number, 1),
                        ("update queue counters", number, MESSAGES + 1000, 2 * MESSAGES, -1, 0)]  # fmt: skip
            for name, *values in (*come, ("next available rank after fronts", number, 2, -10),
                                  ("next holder", number, -(2**62))):  # fmt: skip
                assert buffers(url, name, *values) < BUFFERS_MAX, name
        assert not qm.admin.check()


def test_units_of_work_read_few_pages_despite_many_dead_rows(url: str) -> None:
    with inorder.connect(url) as qm:
        qm.create_queue("Q", read_order="strict")
        fill(qm, "Q", 3000)
        number = number_of(url, "Q")
        with idle(url):
            for _ in range(2000 // EACH):
                with qm.unit_of_work():
                    qm.get_many("Q", EACH)
            unit = asked(url, "SELECT id FROM unit")
            for name, *values in (("shares of unit", unit), ("queues of unit", unit), ("next holder", number, -(2**62)),
                                  ("restart unit", 0.0, unit)):  # fmt: skip
                assert buffers(url, name, *values) < BUFFERS_MAX, name


def test_fronts_are_removed_after_a_vacuum_of_the_dead_rows(url: str) -> None:
    with inorder.connect(url) as qm:
        qm.create_queue("Q")
        fill(qm, "Q", 5000)
        with idle(url):
            for _ in range(200):
                qm.get_many("Q", EACH)
            assert has_fronts(url)
        asked(url, "SELECT count(*) FROM message")
        with administrating(url) as connection:
            connection.execute("VACUUM message")
        gets = 0
        while has_fronts(url):
            qm.get("Q")
            gets += 1
            assert gets <= GETS_A_LOOK * (2 * LOOKS_WITHOUT + 1)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("read_order", ["relaxed", "strict", "unordered"])
def test_messages_returned_by_a_back_out_are_got_first(
    url: str, read_order: Literal["relaxed", "strict", "unordered"]
) -> None:
    with inorder.connect(url) as qm, inorder.connect(url) as other:
        qm.create_queue("Q", read_order=read_order)
        for n in range(4):
            qm.put_many("Q", [b"%d%d" % (priority, n) for priority in PRIORITIES])
        for priority in PRIORITIES:
            qm.put_many("Q", [b"%d" % priority] * 3, priority=priority)
        with other.unit_of_work() as unit:
            first = [one.body for one in other.get_many("Q", 4)]
            if read_order != "strict":
                qm.get_many("Q", 5)
            unit.back_out()
        assert has_fronts(url)
        assert [one.body for one in qm.get_many("Q", 4)] == first
        assert not qm.admin.check()


@pytest.mark.usefixtures("always")
def test_puts_of_a_unit_are_ordered_by_their_numbers_despite_fronts(url: str) -> None:
    with inorder.connect(url) as qm, inorder.connect(url) as other:
        qm.create_queue("Q", order="put")
        with other.unit_of_work():
            other.put("Q", b"early")
            qm.put_many("Q", [b"late", b"later", b"last"])
            assert qm.get("Q").body == b"late"
        assert has_fronts(url)
        assert [one.body for one in qm.browse("Q")] == [b"early", b"later", b"last"]
        assert [qm.get("Q").body for _ in range(3)] == [b"early", b"later", b"last"]
        with pytest.raises(NoMessageAvailable):
            qm.get("Q")


@pytest.mark.usefixtures("always")
def test_a_match_on_a_queue_with_fronts_finds_messages_in_order(url: str) -> None:
    """The statement that searches after fronts does not state an order; this test shows that it keeps it."""
    with inorder.connect(url) as qm:
        qm.create_queue("Q")
        for n in range(300):
            qm.put("Q", b"%03d" % n, priority=n % 10, format="EVEN" if n % 2 == 0 else "ODD")
        expected = [b"%03d" % n for n in sorted(range(300), key=lambda n: (-(n % 10), n))]
        for n in range(10):
            assert qm.get("Q").body == expected[n]
        assert has_fronts(url)
        assert [one.body for one in qm.browse("Q")] == expected[10:]
        even = [body for body in expected[10:] if int(body) % 2 == 0]
        assert [one.body for one in qm.browse("Q", match=Match(format="EVEN"))] == even


@pytest.mark.usefixtures("always")
def test_a_get_that_looks_without_fronts_moves_them_back_too(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with inorder.connect(url) as qm:
        qm.create_queue("Q")
        qm.put_many("Q", [b"0", b"1", b"2"])
        qm.get("Q")
        monkeypatch.setattr("inorder.stores.postgresql.fronts.LOOKS_WITHOUT", 1)
        with qm.unit_of_work() as unit:
            qm.get("Q")
            unit.back_out()
        assert qm.get("Q").body == b"1"
        assert not qm.admin.check()


def test_clearing_other_attention_bits_keeps_the_bit_of_the_fronts(url: str) -> None:
    """Calls that clear bits after looking in vain leave the bit of the fronts."""
    with inorder.connect(url) as qm:
        qm.create_queue("Q")
        fill(qm, "Q", 2000)
        with idle(url):
            for _ in range(100):
                qm.get_many("Q", EACH)
        assert has_fronts(url)
        qm.put("Q", b"soon over", expiry=3600)
        qm.get("Q", match=Match(uid=qm.put("Q", b"x").uid))
        for _ in range(40):
            qm.get("Q")
        assert not qm.admin.check()
