"""An observer that records events, and a program that makes every call that one process can make on a store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.helpers.support import waiting

from inorder import Match, Message, NoMessageAvailable, QueueManager, Report
from inorder.client.bulk import BulkBrowser, ClaimReader, Stager
from inorder.client.listening import StoreEvent
from inorder.errors import CallerError
from inorder.model.message import IN_GROUP, LAST_IN_GROUP
from inorder.mq import channels
from inorder.mq.channels.sides import Receiver, Sending
from inorder.stores.seam.channel_records import BodyPiece
from inorder.stores.seam.records import LedgerKey
from inorder.stores.seam.tables import Branch
from inorder.stores.seam.telemetry import CALL_KEYS, COMMON_KEYS, EVENTS, PREFIX, REPORTERS
from inorder.stores.seam.views import TaskRecord, WorkerRecord
from inorder.stores.sqlite import SqliteStore
from inorder.testing import ManualClock


class Heard(list[StoreEvent]):
    def named(self, name: str) -> list[StoreEvent]:
        return [event for event in self if event.name == PREFIX + name]

    def last(self, name: str) -> StoreEvent:
        return self.named(name)[-1]


@pytest.fixture
def heard(qm: QueueManager) -> Heard:
    told = Heard()
    qm.inspect.observe(told.append)
    return told


def check(told: StoreEvent) -> None:
    """Checks that the event has exactly the fields of the table."""
    name = told.name.removeprefix(PREFIX)
    (measurements, keys), is_call = EVENTS[name], name in REPORTERS
    assert told.metadata.keys() == {*keys, *COMMON_KEYS, *(CALL_KEYS if is_call else ())}, told
    if told.metadata.get("completion") == "failed":
        assert told.measurements.keys() == {"seconds"}, told
    else:
        assert told.measurements.keys() == {*measurements, *(("seconds",) if is_call else ())}, told


def gives_pages(qm: QueueManager) -> bool:
    """Whether a large group is returned a page at a time, not whole."""
    store: Any = qm._store
    return store.shortcuts is not None


def is_in_file(qm: QueueManager) -> bool:
    store: Any = qm._store
    return isinstance(store, SqliteStore)


def everything(qm: QueueManager, folder: Path, clock: ManualClock) -> None:
    """Makes every call that one process can make, except `stop`."""
    other = qm.connect()
    qm.alter_queue("Q", description="altered")
    qm.create_queue("GONE")
    qm.admin.clear_queue("GONE")
    qm.admin.retry_now("GONE")
    qm.delete_queue("GONE")
    look = qm.inspect
    _ = look.waits(), look.locks(), look.overview(), look.dropped(), [*look.look("Q")], look.gaps("Q", b"none")
    _ = (look.connections(), look.units(), look.order_view("Q"), qm.admin.check(), qm.queues(), qm.depth("Q"),
         qm.admin.manager_attributes())  # fmt: skip
    qm.admin.alter_manager(max_handles=100)
    with qm.unit_of_work(), qm.group("Q") as group:
        group.put(b"1")
        group.put(b"2")
    large_group(qm)
    handle = qm.open("Q", output=True, browse=True)
    handle.put(b"3", logical=True, syncpoint=True, flags=8)
    handle.internals.withdraw(handle.internals.put_state, whole_group=True)
    qm.put("Q", b"4", syncpoint=True)
    qm.prepare("named")
    qm.settle("named", "back_out")
    through_a_door(qm)
    handle.browse_next(read_order="strict", lock=True)
    handle.browse_token()
    handle.unlock()
    handle.attributes()
    handle.close()
    confirmed(qm)
    call = waiting(qm, lambda: qm.get("Q", match=Match(message_id=b"none"), wait=1))
    clock.advance(2)
    assert isinstance(call.error(), NoMessageAvailable)
    in_bulk(qm)
    channelled(qm)
    qm.admin.discard_expired()
    if is_in_file(qm):
        qm.admin.backup(folder / "copy.db")
    else:
        with pytest.raises(CallerError):
            qm.admin.backup(folder / "copy.db")
    other.close()


def through_a_door(qm: QueueManager) -> None:
    lease = qm.lease()
    with qm.resume_lease(lease.token):
        qm.put("Q", b"leased")
    lease.extend(10)
    qm.admin.end_lease(lease.name)
    spanning = qm._store.begin_global(qm.internals.owner, [Branch("THERE", "PARIS")])
    qm._store.settle(qm.internals.owner, "back_out", decides=spanning)
    qm._store.end_global(spanning, ["THERE"])
    qm.accounts.create_user("alice", password_hash="$")
    qm.accounts.identify(name="alice", verify=lambda kept: kept == "$", address="here")
    qm.accounts.revoke_token(qm.accounts.create_token("alice", "ci"))
    qm.accounts.alter_user("alice", enabled=False)
    qm.accounts.delete_user("alice")
    with qm.accounts.acting("clear", "Q", user="alice"):
        list(qm.accounts.acts())
    qm.internals.sample()
    qm.internals.history("Q", "hour")
    qm.admin.alter_manager(dead_letter_queue="Q")
    asks: Any = Message(b"", report=Report.EXCEPTION, reply_to_queue="Q")
    qm.dead.add(asks, queue="Q")
    qm._store.is_own(asks.token)
    qm._store.note_worker(
        qm.internals.owner, WorkerRecord(0, "inorder work shop", 1, 0.0, 0.0, [TaskRecord("pack", "Q")], [])
    )


def large_group(qm: QueueManager, size: int = 600) -> list[bytes]:
    """Puts a group and gets it whole, by pages on some stores; returns its bodies."""
    qm.create_queue("GROUPS")
    with qm.unit_of_work(), qm.open("GROUPS", output=True) as handle:
        flags = [IN_GROUP] * (size - 1) + [LAST_IN_GROUP]
        handle.put_many([Message(b"12", flags=flag) for flag in flags], logical=True)
    return [message.body for message in qm.get_group("GROUPS")]


def confirmed(qm: QueueManager) -> None:
    uid = qm.put("Q", b"5", confirm_id=7).uid
    assert uid is not None
    qm.confirm_put("Q", uid)
    locked = qm.browse_and_lock("Q")
    qm.inspect.unique_ids("Q", lock_id=locked.lock_id)
    qm.admin.release_lock("Q", locked.lock_id)
    qm.get("Q", confirm_id=8)
    qm.undo("Q", 8)


def in_bulk(qm: QueueManager) -> None:
    key = LedgerKey("loader", "", "1")
    with qm.open("Q", output=True, input="as_queue", browse=True) as handle:
        stager = Stager(handle, "staged", lasts=60)
        stager.stage(2, {"body": [b"6", b"7"]})
        qm.bulk.settle_staging(key, [stager.staged])
        assert qm.bulk.in_ledger("Q", key) is not None
        assert (qm.bulk.last_settled("Q", "loader", ""), qm.bulk.undo_staging(["nothing"])) == ("1", 0)
        browser = BulkBrowser(handle)
        found = browser.survey()
        for stretch in found.stretches:
            list(browser.read(stretch))
        reader = ClaimReader(handle, "app")
        reader.begin()
        claim = reader.claim(0, most=1)
        assert claim is not None
        assert [page.messages for part in reader.plan(0, claim.number) for page in reader.read(part)] == [1]
        reader.claim(claim.number, most=1, ahead=True)
        reader.return_ahead()
        reader.settle(claim.number)
        reader.claim(claim.number, most=1)
        qm.bulk.release_claims("Q", "app")
        qm.bulk.finish_claims("Q", "app", claim.number)
        qm.bulk.leave_claimed_group("Q", "app")
        handle.leave_group()
        assert [one.application for one in qm.bulk.claims()] == ["app"]


def channelled(qm: QueueManager) -> None:
    """A channel from this queue manager to itself sends a message, after its batch was in doubt and was backed out."""

    def connects(_: str) -> Receiver:
        return Receiver(qm.connect())

    qm.create_queue("AWAY", usage="transmission")
    channels.define_channel(qm, "BACK", transmission_queue="AWAY", connection="itself")
    channels.alter_channel(qm, "BACK", description="altered")
    qm.put("AWAY", Message(b"8").replace(transmission=("Q", "TEST")))
    with Sending(qm, channels.channel(qm, "BACK")) as sending:
        assert sending.next(sending.take(), 0).claim is not None
        sending.note("inactive")
    assert channels.resolve_channel(qm, "BACK", connects=connects) == "back_out"
    channels.stop_channel(qm, "BACK")
    channels.reset_channel(qm, "BACK", 3)
    channels.start_channel(qm, "BACK")
    ended = channels.run_channel(qm, "BACK", until_empty=True, wait=lambda _: True, connects=connects)
    assert (ended.status, ended.number, ended.messages) == ("inactive", 3, 1)
    (received,) = channels.received(qm)
    assert received.number == 3
    piece = BodyPiece(b"next", 0, b"d" * 32, 9, 0, b"x")
    with qm._session:
        assert qm._store.receive_piece(received.sender, received.epoch, piece) == 1
    channels.delete_channel(qm, "BACK")
    qm.create_queue("HOME", type="home_server", remote_manager="FAR")
    channels.trigger_transmission(qm, "HOME")
