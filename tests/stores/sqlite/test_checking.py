"""The check of a store finds each planted fault, and none in a sound store."""

from __future__ import annotations

import pytest

from inorder import Flags, Match, QueueManager, connect
from inorder.model.options import GetOptions, OpenOptions
from inorder.stores.seam.records import Claimer, ClaimRequest, StageRequest
from inorder.stores.sqlite import SqliteStore, host
from inorder.stores.sqlite.checking import SqliteSource, problems
from inorder.stores.sqlite.statements import checks

G1, G2 = b"whole", b"unfinished"
IN_GROUP, LAST_IN_GROUP = Flags.IN_GROUP, Flags.LAST_IN_GROUP
A_QUEUE = "(SELECT id FROM definition WHERE name = 'Q')"
A_MESSAGE = "(SELECT min(id) FROM message WHERE state = 2)"


@pytest.fixture
def qm(store: SqliteStore) -> QueueManager:
    """A connection, with a message in each kind of hold."""
    qm = connect(store)
    qm.create_queue("Q")
    for group_id, last in ((G1, LAST_IN_GROUP), (G2, IN_GROUP)):
        qm.put("Q", b"1", group_id=group_id, sequence_number=1, flags=IN_GROUP, syncpoint=False)
        qm.put("Q", b"22", group_id=group_id, sequence_number=2, flags=last, syncpoint=False)
    for priority in range(1, 8):
        qm.put("Q", b"x", priority=priority, syncpoint=False)
    qm.browse_and_lock("Q", Match(priority=1), confirm_id=8)
    qm.get("Q", match=Match(priority=2), confirm_id=7)
    qm.get("Q", match=Match(priority=3), syncpoint=True)
    qm.put("Q", b"later", syncpoint=True)
    handle = store.open(qm._session.owner, "Q", OpenOptions(input="shared")).handle
    claimer = Claimer(handle, "app", store.begin_claims(handle, "app").epoch)
    store.claim(ClaimRequest(claimer, 0, GetOptions(), most=2, most_bytes=2))
    qm.lease(seconds=60.0)
    handle = store.open(qm.internals.owner, "Q", OpenOptions(output=True)).handle
    store.stage(StageRequest(handle, "staged", 2, {"body": [b"1", b"333"]}, 60.0))
    return qm


def plant(store: SqliteStore, *statements: str) -> None:
    with store.database.writing():
        store.database.connection.execute("PRAGMA ignore_check_constraints = ON")
        for one in statements:
            store.database.connection.execute(one)
    store.database.connection.execute("PRAGMA ignore_check_constraints = OFF")


def test_a_sound_store_has_no_problems(store: SqliteStore, qm: QueueManager) -> None:
    assert problems(store.database) == []
    qm.commit()
    assert problems(store.database) == []


def test_a_deleted_queue_leaves_no_records_of_its_readers(store: SqliteStore) -> None:
    """A reader is inside a group of a temporary queue, and has locked a message, when the creator closes the queue."""
    with connect(store) as qm, qm.connect() as other:
        qm.create_queue("M", type="model", shareable=True, default_input="shared")
        made = qm.open("M", dynamic_name="T")
        for number, flags in ((1, IN_GROUP), (2, LAST_IN_GROUP)):
            qm.put("T", b"x", group_id=G1, sequence_number=number, flags=flags)
        reader = other.open("T", input="shared", browse=True)
        assert reader.get(logical=True).sequence_number == 1
        reader.browse_first(lock=True)
        made.close()
        reader.close()
        assert problems(store.database) == []


FAULTS = {
    "definitions": ("UPDATE definition SET name = 'OTHER'", "its text has another name or type than local OTHER"),
    "objects": ("INSERT INTO object VALUES ('process', 'P', '{}', 0)", "process P: its text has another name"),
    "objects, kind": (
        """INSERT INTO object VALUES ('thing', 'P', '{"name": "P"}', 0)""",
        "thing P: its text has another name, or its kind does not exist",
    ),
    "depth": ("UPDATE tally SET depth = depth + 1 WHERE queue > 0", "the recorded depth is 12, but it has 11"),
    "manager": ("DELETE FROM manager", "the queue manager is missing"),
    "manager, counter": ("DELETE FROM tally WHERE queue = 0", "the counter of identifying numbers is missing"),
    "queue counters": ("INSERT INTO tally (queue) VALUES (999)", "queue 999: it has counters, but is not defined"),
    "attention": ("UPDATE tally SET attention = 0", "its attention bits are 0, which does not fit its rows"),
    "attention, revision": (
        "UPDATE tally SET revision = 77",
        "its definitions have revision 77, but the queue manager's have 2",
    ),
    "places": ("UPDATE tally SET counter = 3 WHERE queue > 0", "has been drawn, but the counter is 3"),
    "names": ("UPDATE tally SET counter = 3 WHERE queue = 0", "is in use, but the counter is 3"),
    "unplaced": (f"UPDATE message SET number = NULL WHERE id = {A_MESSAGE}", "has no place"),
    "away": ("UPDATE message SET away = 0 WHERE away", "held by a session unit, it is counted in the depth"),
    "gathering": (
        "UPDATE gathering SET available = 1 WHERE last IS NULL",
        "1 available members and end none are recorded",
    ),
    "gathering, none": ("DELETE FROM gathering", "but it has 2 and 2"),
    "heads": ("UPDATE message SET head = 1 WHERE head = 2 AND group_id IS NOT NULL", "marked as unfinished"),
    "heads, no group": ("UPDATE message SET head = 1 WHERE head = 2 AND group_id IS NULL", "marked as unfinished"),
    "idle units": (f"INSERT INTO unit VALUES (999, 'confirm', '9', {A_QUEUE}, NULL, '', '', 0, NULL)", "holds nothing"),
    "holders": ("UPDATE message SET lock_confirm = '8' WHERE lock IS NULL", "but is not locked"),
    "holders, kinds": ("UPDATE unit SET kind = 'lock' WHERE kind = 'confirm'", "a lock id"),
    "claims": ("UPDATE claim SET messages = 7", "claim 1 of app: 7 messages are recorded, but it holds 2"),
    "claims, positions": ("UPDATE message SET claimed = claimed + 1 WHERE claimed = 2", "at positions 1 to 3"),
    "claims, nobody's": ("DELETE FROM claim", "a claim without an application"),
    "claims, position": (
        "UPDATE message SET claimed = 1 WHERE unit IN (SELECT id FROM unit WHERE kind = 'session') AND state = 4",
        "a position in a claim, but no claim holds it",
    ),
    "claims, number": ("UPDATE account SET settled = 5", "the last settled claim is 5"),
    "channels": (
        f"INSERT INTO sent VALUES ({A_QUEUE}, 'C', 0, 0, 0, NULL)",
        "channel C has sent from it, but has never claimed",
    ),
    "bodies": (
        "INSERT INTO piece VALUES ('f', 1, 'C', 0, 0, x'0102')",
        "channel C, body 0: its pieces have 2 bytes, but 0 are recorded",
    ),
    "contents": ("DELETE FROM content", "its content is missing"),
    "contents, length": ("UPDATE content SET body = x'00' WHERE length(body) = 2", "1 bytes, but 2 are recorded"),
    "contents, without": (f"DELETE FROM message WHERE id = {A_MESSAGE}", "its message is gone"),
    "contents, leftover": ("INSERT INTO leftover SELECT id FROM message", "is to be removed"),
    "stagings": (
        "UPDATE staging SET messages = messages + 1",
        "3 messages of 4 bytes are recorded, but it has 2 of 4 bytes",
    ),
    "stagings, unit": ("DELETE FROM staging", "stages nothing"),
    "stagings, rows": ("UPDATE staged SET unit = 1", "its staging is missing"),
    "stagings, contents": ("DELETE FROM content WHERE id IN (SELECT id FROM staged)", "staged message 25: its content"),
    "stagings, length": ("UPDATE content SET body = x'00' WHERE length(body) = 3", "1 bytes, but 3 are recorded"),
    "stagings, message": (f"UPDATE staged SET id = {A_MESSAGE} WHERE row = 0", "it is also on a queue"),
    "leases": ("DELETE FROM lease", "it has no deadline"),
    "leases, another kind": (
        "INSERT INTO lease SELECT id, 1.0, 1.0, 0 FROM unit WHERE kind = 'session'",
        "of kind session, it has a deadline",
    ),
    "stagings, leftover": ("INSERT INTO leftover SELECT id FROM staged", "its content is to be removed"),
    "stagings, reports": ("UPDATE staged SET reports = 2 WHERE row = 0", "its mark for reports cannot be 2"),
    "stagings, twice": ("UPDATE staged SET id = 999", "number 999 is staged twice"),
    "readers": (f"INSERT INTO entered VALUES (1, {A_QUEUE}, x'41', 'h999', NULL, NULL, '')", "handle 999 is inside"),
    "readers, application": (
        f"INSERT INTO entered VALUES (1, {A_QUEUE}, x'41', 'aghost', NULL, NULL, '')",
        "application ghost is inside, but has never claimed",
    ),
    "readers, neither": (
        f"INSERT INTO entered VALUES (1, {A_QUEUE}, x'41', 'ghost', NULL, NULL, '')",
        "ghost is inside, but is neither a handle nor an application",
    ),
    "readers, nobody": (
        f"INSERT INTO entered VALUES (1, {A_QUEUE}, x'41', NULL, NULL, NULL, '')",
        "group 41: it is recorded, but no reader is inside",
    ),
    "readers, marks": (f"INSERT INTO mark VALUES ({A_MESSAGE}, 999)", "handle 999 has marked it, but is closed"),
    "references": ("DELETE FROM unit WHERE kind = 'session'", "the row in unit to which it refers is missing"),
    "references, waits": (
        f"INSERT INTO wait VALUES (999, {A_QUEUE}, NULL, 0, '[]')",
        "the row in connection to which it refers is missing",
    ),
    "a CHECK": ("UPDATE message SET state = 9 WHERE state = 2", "CHECK constraint failed in message"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_named(store: SqliteStore, qm: QueueManager, fault: str) -> None:
    planted, expected = FAULTS[fault]
    plant(store, planted)
    found = problems(store.database)
    assert any(expected in one for one in found), found


def test_every_check_has_a_fault() -> None:
    assert {fault.split(",")[0] for fault in FAULTS} >= checks().keys()


def test_other_calls_of_the_process_continue_while_a_check_reads_the_file(
    qm: QueueManager, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def part(source: SqliteSource) -> list[str]:
        with source.reading():
            list(source.query("SELECT 1 FROM message LIMIT 1"))
            qm.connect().put("Q", b"meanwhile")
        return []

    before = qm.depth("Q")
    monkeypatch.setattr(host, "parts", lambda: [part])
    assert store.check(0) == ([], 1)
    assert qm.depth("Q") == before + 1
