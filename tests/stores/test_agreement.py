"""What stores once answered differently, each case by itself: found by `tests/histories/test_state_machine.py`."""

from __future__ import annotations

import pytest
from tests.helpers.support import told

from inorder import Flags, GetOptions, QueueManager
from inorder.client.bulk import BulkBrowser, LedgerKey, Stager
from inorder.errors import QueueDeleted
from inorder.testing import ManualClock

pytestmark = pytest.mark.every_store


def test_r4_3_a_queue_that_is_gone_is_not_deleted_again_at_close(qm: QueueManager) -> None:
    qm.create_queue("MODEL", type="model", shareable=True, default_input="shared")
    maker = qm.open("MODEL")
    user = qm.open(maker.name)
    maker.close()
    for purge in (False, True):
        with pytest.raises(QueueDeleted):
            user.close(delete=True, purge=purge)
    user.close()


def put_group(qm: QueueManager, group_id: bytes) -> None:
    qm.put("Q", b"first", group_id=group_id, flags=Flags.IN_GROUP, sequence_number=1)
    qm.put("Q", b"last", group_id=group_id, flags=Flags.LAST_IN_GROUP, sequence_number=2)


def test_r6_2_the_hook_is_told_first_of_what_expired_first(qm: QueueManager, clock: ManualClock) -> None:
    qm.alter_queue("Q", delivery="fifo")
    heard: list[bytes] = []
    qm.inspect.hook("expired", lambda queue, message: heard.append(message.body))
    for body, expiry in ((b"1", 3.0), (b"2", 1.0), (b"3", 2.0), (b"4", 1.0)):
        qm.put("Q", body, expiry=expiry)
    clock.advance(5.0)
    assert qm.inspect.status("Q").current_depth == 0
    told(qm)
    assert heard == [b"2", b"4", b"3", b"1"]


def test_a_9_a_confirm_id_whose_last_message_expired_begins_anew(qm: QueueManager, clock: ManualClock) -> None:
    qm.put("Q", b"short", expiry=5.0, confirm_id=1)
    qm.put("Q", b"long")
    clock.advance(5.0)
    assert qm.get("Q", confirm_id=1).body == b"long"
    assert [unit.started_at for unit in qm.inspect.units()] == [clock.now()]


def test_a_hook_is_told_of_several_queues_by_their_names(qm: QueueManager) -> None:
    heard: list[str] = []
    for name in ("B", "A"):
        qm.create_queue(name)
    qm.inspect.hook("visible", lambda queue, message: heard.append(queue))
    for name in ("A", "B", "A"):
        qm.put(name, b"", syncpoint=True)
    qm.commit()
    told(qm)
    assert heard == ["A", "A", "B", "SENTINEL"]


ALONE, BEGINS, ENDS, ENDS_AT_ONCE = (
    (Flags.SEGMENTATION_ALLOWED, 1), (Flags.IN_GROUP, 1), (Flags.LAST_IN_GROUP, 2), (Flags.LAST_IN_GROUP, 1)
)  # fmt: skip


@pytest.mark.parametrize(
    ("put", "shown"),
    [
        ([ALONE, ENDS_AT_ONCE], [0]),
        ([ALONE, BEGINS, ENDS], [0, 1, 2]),
        ([BEGINS, ENDS, ALONE], [0, 1, 2]),
        ([ALONE, ALONE], [0, 1]),
        ([BEGINS, BEGINS, ENDS], [0, 2, 1, 2]),
    ],
)
def test_r3_22_a_survey_shows_what_a_browse_shows_of_messages_with_one_group_id(
    qm: QueueManager, put: list[tuple[Flags, int]], shown: list[int]
) -> None:
    """A message in no group may have a group's id (R2.13), and two members the same numbers."""
    for number, (flags, sequence_number) in enumerate(put):
        qm.put("Q", bytes([number]), group_id=b"G", flags=flags, sequence_number=sequence_number)
    qm.put("Q", b"\xff")
    with qm.open("Q", browse=True) as queue:
        browser = BulkBrowser(queue)
        survey = browser.survey(GetOptions(logical=True, all_messages=True))
        read = [body for one in survey.stretches for page in browser.read(one) for body in page.column("body")]
        browsed = [one.body for one in queue.browse(logical=True, all_messages=True, read_order="relaxed")]
    assert browsed == read == [bytes([number]) for number in [*shown, 0xFF]]
    assert survey.messages == sum(one.messages for one in survey.stretches) == len(read)
    with qm.open("Q", browse=True) as queue:
        first = BulkBrowser(queue).survey(GetOptions(logical=True, all_messages=True), most=len(shown), most_bytes=4)
    assert first.messages == len(shown)


def test_a_hook_has_the_bodies_of_what_was_staged(qm: QueueManager) -> None:
    heard: list[bytes] = []
    qm.inspect.hook("put", lambda queue, message: heard.append(message.body) if queue == "Q" else None)
    with qm.open("Q", output=True) as queue:
        stager = Stager(queue, "one", lasts=60.0)
        stager.stage(2, {"body": [b"a", b"b"]})
    qm.bulk.settle_staging(LedgerKey("app", "", "1"), [stager.staged])
    told(qm)
    assert heard == [b"a", b"b"]


def test_a_withdraw_leaves_alone_what_the_unit_has_got_of_the_same_group(qm: QueueManager) -> None:
    put_group(qm, b"G")
    queue = qm.open("Q", input="shared", output=True)
    with qm.unit_of_work():
        got = queue.get()
        before = queue.internals.put_state
        queue.put(b"another", flags=Flags.IN_GROUP, group_id=got.group_id, sequence_number=1)
        queue.internals.withdraw(before, whole_group=True)
    assert [message.body for message in qm.browse("Q")] == [b"last"]


def test_the_rest_of_a_large_group_is_what_was_got_of_it(qm: QueueManager) -> None:
    bodies = [str(number).encode() for number in range(600)]
    with qm.unit_of_work(), qm.group("Q") as group:
        for body in bodies:
            group.put(body)
    group_id = next(iter(qm.browse("Q"))).group_id
    with qm.unit_of_work() as unit:
        messages = qm.get_group("Q")
        got = [next(messages).body]
        for number in (300, 400):
            qm.put("Q", b"x", flags=Flags.IN_GROUP, group_id=group_id, sequence_number=number)
        got += [message.body for message in messages]
        unit.back_out()
    assert got == bodies
