"""A queue's row says what may be there: any call notes it with the first row of a kind; later it is cleared."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.claiming import PHYSICAL, Application
from tests.helpers.staged import Writer

from inorder import Flags, NoMessageAvailable, QueueManager, connect
from inorder.stores.seam.backend import OperationKind
from inorder.stores.seam.tables import DefinitionRow, WaitRow
from inorder.stores.sql.attention import DUE, EDGES, ENTERED, EXPIRES, GROUPS, IN_VAIN_MAX, LEASES, MARKS
from inorder.stores.sqlite import SqliteStore
from inorder.testing import ManualClock

IN, LAST = Flags.IN_GROUP, Flags.LAST_IN_GROUP


@pytest.fixture
def qm(store: SqliteStore) -> QueueManager:
    qm = connect(store)
    qm.create_queue("Q")
    qm.create_queue("OTHER")
    return qm


def attention(store: SqliteStore, queue: str = "Q") -> int:
    with store.database.reading():
        sql = "SELECT attention FROM tally WHERE queue = (SELECT id FROM definition WHERE name = ?)"
        return int(store.database.connection.execute(sql, (queue,)).get)


def group(qm: QueueManager) -> None:
    qm.put("Q", b"1", group_id=b"g", sequence_number=1, flags=IN)
    qm.put("Q", b"2", group_id=b"g", sequence_number=2, flags=LAST)


def entered(qm: QueueManager) -> None:
    group(qm)
    qm.get("Q", logical=True)


def marked(qm: QueueManager) -> None:
    qm.put("Q", b"x")
    qm.open("Q", browse=True).browse_first(mark_handle=True)


def leased(qm: QueueManager) -> None:
    qm.put("Q", b"x")
    qm.browse_and_lock("Q", lease=60.0)


def staged(**columns: Any) -> Callable[[QueueManager], None]:
    def call(qm: QueueManager) -> None:
        writer = Writer(qm._session.store, qm)
        writer.stage("s", [b"a", b"b"], **columns)
        writer.settle("s")

    return call


NOTED: dict[str, tuple[Callable[[QueueManager], object], int]] = {
    "a plain put": (lambda qm: qm.put("Q", b"x"), 0),
    "an expiry": (lambda qm: qm.put("Q", b"x", expiry=5.0), EXPIRES),
    "no expiry": (lambda qm: qm.put("Q", b"x", expiry=float("inf")), 0),
    "an expiry in a unit": (lambda qm: qm.put("Q", b"x", expiry=5.0, syncpoint=True), EXPIRES),
    "a delay": (lambda qm: qm.put("Q", b"x", delay=5.0), DUE),
    "both": (lambda qm: qm.put("Q", b"x", delay=5.0, expiry=9.0), DUE | EXPIRES),
    "a lease": (leased, LEASES),
    "a mark": (marked, MARKS),
    "a group": (group, GROUPS),
    "a reader inside a group": (entered, GROUPS | ENTERED),
    "staged, expiring": (staged(expiry=[5.0, None]), EXPIRES),
    "staged, delayed": (staged(delay=[None, 5.0]), DUE),
    "staged, in groups": (staged(group_key=["a", None]), GROUPS),
    "staged, plain": (staged(), 0),
}


@pytest.mark.parametrize("case", NOTED)
def test_the_attention_bits_of_a_queue_show_which_kinds_of_rows_it_has(
    case: str, store: SqliteStore, qm: QueueManager
) -> None:
    call, bits = NOTED[case]
    call(qm)
    assert (attention(store), attention(store, "OTHER")) == (bits, 0)
    for bit in (1 << n for n in range(7) if bits & 1 << n):
        with store.database.writing():
            store.database.connection.execute("UPDATE tally SET attention = attention & ~?", (bit,))
        assert any("which does not fit its rows" in text for text in qm.admin.check()), bit
        with store.database.writing():
            store.database.connection.execute("UPDATE tally SET attention = attention | ?", (bit,))
    assert qm.admin.check() == []
    qm.back_out()


def test_the_record_of_a_reader_inside_a_group_is_deleted_at_the_end_of_the_group(
    store: SqliteStore, qm: QueueManager
) -> None:
    def entries() -> int:
        with store.database.reading():
            return int(store.database.connection.execute("SELECT count(*) FROM entered").get)

    entered(qm)
    assert entries() == 1
    qm.get("Q", logical=True)
    assert entries() == 0


def got_in_a_unit(_: SqliteStore, qm: QueueManager) -> Callable[[], object]:
    qm.get("Q", syncpoint=True)
    return qm.back_out


def got_under_a_confirm_id(_: SqliteStore, qm: QueueManager) -> Callable[[], object]:
    qm.get("Q", confirm_id=7)
    return lambda: qm.undo("Q", 7)


def claimed(store: SqliteStore, qm: QueueManager) -> Callable[[], object]:
    app = Application(store)
    app.claim(0, PHYSICAL, most=2)
    return lambda: qm.bulk.release_claims("Q", "app")


RETURNING: dict[str, Callable[[SqliteStore, QueueManager], Callable[[], object]]] = {
    "a back out": got_in_a_unit,
    "an undo": got_under_a_confirm_id,
    "a claim": claimed,
}


@pytest.mark.parametrize("case", RETURNING)
def test_a_message_that_returns_to_its_queue_can_still_expire(
    case: str, store: SqliteStore, qm: QueueManager, clock: ManualClock
) -> None:
    qm.put("Q", b"x", expiry=5.0)
    give_back = RETURNING[case](store, qm)
    for _ in range(2 * IN_VAIN_MAX):
        qm.put("OTHER", b"y")
        qm.put("Q", b"y", priority=9)
        qm.get("Q")
    give_back()
    assert attention(store) == EXPIRES
    clock.advance(10.0)
    with pytest.raises(NoMessageAvailable):
        qm.get("Q")
    assert qm.admin.check() == []


@pytest.mark.parametrize("case", ["an expiry", "a delay", "a group", "a reader inside a group", "a lease"])
def test_attention_bits_are_cleared_when_no_row_needs_them(
    case: str, store: SqliteStore, qm: QueueManager, clock: ManualClock
) -> None:
    NOTED[case][0](qm)
    assert attention(store)
    clock.advance(100.0)
    while qm.depth("Q"):
        with contextlib.suppress(NoMessageAvailable):
            qm.get("Q")
    for _ in range(2 * IN_VAIN_MAX):
        qm.put("Q", b"x")
        qm.get("Q")
    assert attention(store) == 0
    assert qm.admin.check() == []


def test_the_recorded_reasons_for_a_wait_are_noted_in_the_attention_bits(store: SqliteStore, qm: QueueManager) -> None:
    backend = store.backend
    backend.begin(OperationKind())
    (queue,) = (row.id for row in backend.select(DefinitionRow) if row.name == "Q")
    for levels in (None, "[[1]]"):
        backend.save(WaitRow(store.connections[qm.internals.owner].id, queue, None, 0, levels))
    backend.commit((), (), reserves=False, durable=False)
    assert attention(store) == EDGES
    qm.put("Q", b"x")  # the reasons for the waits may be gone
    assert qm.admin.check() == []


def test_groups_are_followed_across_two_stores_on_one_file(store: SqliteStore, qm: QueueManager, path: Path) -> None:
    another = SqliteStore(path, clock=store.clock)
    with connect(another) as theirs:
        qm.put("Q", b"plain")
        theirs.get("Q")
        group(qm)
        assert [theirs.get("Q", logical=True).body for _ in range(2)] == [b"1", b"2"]
        theirs.put("Q", b"1", group_id=b"h", sequence_number=1, flags=IN)
        qm.put("Q", b"2", group_id=b"h", sequence_number=2, flags=LAST)
        assert len(list(theirs.get_group("Q"))) == 2
        theirs.commit()
        assert theirs.admin.check() == []
    another.close_store()


def test_only_local_queues_have_counters_and_only_affected_ones_get_a_new_revision(
    store: SqliteStore, qm: QueueManager
) -> None:
    def revised() -> list[str]:
        """The queues that have the newest revision."""
        newest = "SELECT name FROM tally JOIN definition ON id = queue WHERE revision = (SELECT revision FROM manager)"
        with store.database.reading():
            return sorted(name for (name,) in store.database.connection.execute(newest))

    qm.create_queue("A", type="alias", base_queue="Q")
    qm.create_queue("M", type="model")
    qm.put("OTHER", b"x")
    qm.alter_queue("OTHER", description="altered")
    assert revised() == ["OTHER"]
    qm.alter_queue("A", description="altered")
    assert revised() == ["OTHER", "Q"]
    assert qm.admin.check() == []
    qm.delete_queue("Q", purge=True)
    with store.database.reading():
        found = store.database.connection.execute("SELECT depth FROM tally WHERE queue > 0").fetchall()
    assert found == [(1,)]
    assert qm.admin.check() == []
