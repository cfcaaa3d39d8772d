"""Two users who own one thing of each kind, and the matrix: every remote verb, and who may call it.

The matrix is written from docs/explanation/remote-authority.md. A case lists who may make the call: roles, "nobody" (a
user of the role application without a grant), and grants on the queue Q, single or combined (get+put).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from inorder.model.attributes import define_queue
from inorder.model.channel_attributes import define
from inorder.model.message import Message, UniqueId
from inorder.model.options import EVERYTHING, GetOptions, OpenOptions, PutOptions
from inorder.model.process_attributes import define_process
from inorder.rules.authorities import GRANTABLE, ROLES
from inorder.rules.grouping import NOTHING_OPEN
from inorder.rules.lifecycle import Event
from inorder.rules.ordering import UNSET
from inorder.rules.puts import Program
from inorder.server.identity import Identity
from inorder.server.store.checking import Checker, OpenedFor
from inorder.stores.memory import MemoryStore
from inorder.stores.seam import records
from inorder.stores.seam.channel_records import BodyPiece, ChannelBatch, Sender
from inorder.stores.seam.definitions import as_text
from inorder.stores.seam.tables import Branch
from inorder.stores.seam.views import LookRequest, ScheduleRecord, TaskRecord, WorkerRecord

ALL = OpenOptions(input="shared", output=True, browse=True)
CHANNEL, PROCESS = as_text(define("C", "receiver")), as_text(define_process("P"))
SENDER = Sender("5" * 32, 1, "TO.QM1", "LONDON")
MINE, OTHERS = (SENDER._replace(channel=name) for name in ("TO.MINE", "TO.OTHERS"))
PIECE = BodyPiece(b"batch", 0, b"d" * 32, 9, 0, b"x")
CONNECTION = '{"name": "P", "location": "https://paris.example", "user": "me"}'
ADDRESS = '{"name": "p(1)", "connection": "P"}'
TOGETHER = ("get+put", "browse+get")


def identity_of(subject: str, name: str = "me") -> Identity:
    """A user with this role, or of the role application with these grants on Q."""
    if subject in ROLES and subject != "application":
        return Identity(name=name, roles=frozenset({subject}))
    grants = [] if subject == "nobody" else subject.split("+")
    return Identity(name=name, roles=frozenset({"application"}), queues={"Q": grants})


class Side:
    """A connection of a user who owns one thing of each kind on the queue Q."""

    def __init__(self, store: MemoryStore, user: str, number: int) -> None:
        self.store, self.user = store, user
        self.owner = self._connected()
        self.handle = store.open(self.owner, "Q", ALL).handle
        self.confirm_id, self.locking_id = number, number + 1
        self.application, self.staging, self.prepared, self.lease = (
            f"{user} {kind}" for kind in ("application", "staging", "prepared", "lease")
        )
        self.put(confirm_id=self.confirm_id)
        self.held = self.put(confirm_id=self.confirm_id)
        self.put()
        request = records.LockRequest(handle=self.handle, match=EVERYTHING, confirm_id=self.locking_id, most=1)
        self.lock_id = store.browse_and_lock(request).lock_id
        self.epoch = store.begin_claims(self.handle, self.application).epoch
        self.stage(self.staging)
        self.put(in_unit=True)
        store.prepare(self.owner, self.prepared)
        store.begin_lease(self.owner, self.lease, user, 60.0, None)

    def _connected(self) -> int:
        owner = self.store.connect(Program("program's", "test"))
        self.store.set_user(owner, self.user)
        return owner

    def put(self, *, in_unit: bool = False, **options: Any) -> UniqueId:
        request = records.PutRequest(self.handle, [b"x"], PutOptions(**options), NOTHING_OPEN, in_unit)
        return self.store.put(request).results[0].uid

    def stage(self, name: str) -> None:
        self.store.stage(records.StageRequest(self.handle, name, 1, {"body": [b"x"]}, 60.0))

    def checker(self) -> Checker:
        """A checker for the connection, which knows its one handle."""
        found = Checker(self.store, self.owner)
        found.handles[self.handle] = OpenedFor("Q", "Q", made=False)
        return found


class World(NamedTuple):
    store: MemoryStore
    me: Side
    other: Side


def new_world() -> World:
    store = MemoryStore("QM1")
    store.create_queue(define_queue("Q"))
    store.create_queue(define_queue("OTHER.Q"))
    store.create_queue(define_queue("MODEL", "model"))
    store.create_queue(define_queue("HOME", "home_server", remote_manager="HUB"))
    for name, user in (("TO.MINE", "me"), ("TO.OTHERS", "other")):
        made = define(name, "receiver", user=user, sender=SENDER.identifier)
        store.define_object("channel", name, as_text(made))
    return World(store, Side(store, "me", 71), Side(store, "other", 81))


# --- the calls


def put(at: World, **options: Any) -> Any:
    return {"request": records.PutRequest(at.me.handle, [b"x"], PutOptions(**options), NOTHING_OPEN, False)}


def get(at: World, **options: Any) -> Any:
    return {"request": records.GetRequest(at.me.handle, GetOptions(**options), NOTHING_OPEN, UNSET, False)}


def lock(at: World, confirm_id: int) -> Any:
    return {"request": records.LockRequest(handle=at.me.handle, match=EVERYTHING, confirm_id=confirm_id)}


def one(at: World, event: Event, uid: UniqueId, **ids: int) -> Any:
    return {"request": records.OneMessage(handle=at.me.handle, event=event, uid=uid, **ids)}


def claimer(at: World, of: Side, epoch: int | None = None) -> records.Claimer:
    return records.Claimer(at.me.handle, of.application, of.epoch if epoch is None else epoch)


def claim(at: World, of: Side, application: str = "") -> Any:
    by = claimer(at, of)._replace(application=application or of.application)
    return {"request": records.ClaimRequest(by, 0, GetOptions(), 1, 1000)}


def stage(at: World, name: str) -> Any:
    return {"request": records.StageRequest(at.me.handle, name, 1, {"body": [b"x"]}, 60.0)}


def settled(name: str) -> Any:
    return {"key": records.LedgerKey("a", "", "b"), "stagings": [records.Staged(name, 1)]}


def handle(at: World) -> Any:
    return {"handle": at.me.handle}


def opened(name: str, **how: Any) -> Callable[[World], Any]:
    rest = {key: how.pop(key) for key in ("dynamic_name", "manager") if key in how}
    return lambda at: {"queue": name, "options": OpenOptions(**how), **rest}


def worker(tasks: Sequence[str] = (), schedules: Sequence[str] = ()) -> WorkerRecord:
    """The record of a worker with a task or a schedule on each of these queues."""
    of_schedules = [ScheduleRecord("s", one, "* * * * *", "UTC", None, None, False, "") for one in schedules]
    return WorkerRecord(0, "p", 1, 0.0, 0.0, [TaskRecord("t", one) for one in tasks], of_schedules)


def of(**arguments: Any) -> Callable[[World], Any]:
    return lambda at: arguments


def of_handle(**arguments: Any) -> Callable[[World], Any]:
    return lambda at: {"handle": at.me.handle, **arguments}


EVERYBODY = "admin operator reader nobody put get browse inquire set display alter clear get+put browse+get"
RUNNING, LOOKING, ADMIN = "admin operator", "admin operator reader", "admin"
PUTTERS, GETTERS = f"{RUNNING} put get+put", f"{RUNNING} get get+put browse+get"
BROWSERS, BOTH = f"{LOOKING} browse browse+get", f"{RUNNING} get+put"
INQUIRERS, DISPLAYERS = f"{LOOKING} inquire", f"{LOOKING} display"
USERS = f"{LOOKING} put get browse inquire display get+put browse+get"

# Verb, case, arguments, and the subjects that may make the call.
# fmt: off
Case = tuple[str, str, Callable[[World], Any], str]
MATRIX: list[Case] = [
    ("open", "for output", opened("Q", output=True), PUTTERS),
    ("open", "for input", opened("Q", input="shared"), GETTERS),
    ("open", "for browse", opened("Q", browse=True), BROWSERS),
    ("open", "for input and output", opened("Q", input="shared", output=True), BOTH),
    ("open", "another queue", opened("OTHER.Q", output=True), RUNNING),
    ("open", "a queue manager that nothing leads to", opened("Q", output=True, manager="ROME"), RUNNING),
    ("open", "a model", opened("MODEL", input="shared"), RUNNING),
    ("open", "a model, with a name", opened("MODEL", input="shared", dynamic_name="Q"), RUNNING),
    ("extend", "for output", of_handle(options=OpenOptions(output=True)), PUTTERS),
    ("extend", "for browse", of_handle(options=OpenOptions(browse=True)), BROWSERS),
    ("close", "a queue", handle, EVERYBODY),
    ("close", "a queue that others made", of_handle(delete=True), ADMIN),
    ("close", "a queue that others made, with its messages", of_handle(purge=True), ADMIN),
    ("keep_handles", "of the connection", of(handles=[]), EVERYBODY),
    ("check_handle", "of the connection", handle, EVERYBODY),
    ("create_queue", "any", of(attributes=define_queue("NEW")), ADMIN),
    ("alter_queue", "by alter", of(name="Q", by="alter", changes={}), f"{RUNNING} alter"),
    ("alter_queue", "by set", of(name="Q", by="set", changes={}), f"{RUNNING} set"),
    ("delete_queue", "any", of(name="Q", purge=False), ADMIN),
    ("clear_queue", "any", of(name="Q"), f"{RUNNING} clear"),
    ("retry_now", "any", of(name="Q"), GETTERS),
    ("queues", "a list", of(), EVERYBODY),
    ("queue", "the queue", of(name="Q"), USERS),
    ("queue", "another queue", of(name="OTHER.Q"), LOOKING),
    ("status", "any", of(name="Q"), INQUIRERS),
    ("manager", "any", of(), EVERYBODY),
    ("alter_manager", "any", of(changes={}), ADMIN),
    ("define_object", "a channel", of(kind="channel", name="C", attributes=CHANNEL), ADMIN),
    ("define_object", "a user", of(kind="user", name="me", attributes="{}"), ""),
    ("alter_object", "a process", of(kind="process", name="P", before="", attributes=PROCESS), ADMIN),
    ("alter_object", "a user", of(kind="user", name="me", before="", attributes="{}"), ""),
    ("delete_object", "a channel", of(kind="channel", name="C"), ADMIN),
    ("delete_object", "a token", of(kind="token", name="T"), ""),
    ("object", "a channel", of(kind="channel", name="C"), LOOKING),
    ("define_object", "a connection", of(kind="connection", name="P", attributes=CONNECTION), ADMIN),
    ("define_object", "an address", of(kind="address", name="p(1)", attributes=ADDRESS), ADMIN),
    ("object", "a connection", of(kind="connection", name="P"), LOOKING),
    ("object", "a receiver for me", of(kind="channel", name="TO.MINE"), EVERYBODY),
    ("object", "a receiver for another", of(kind="channel", name="TO.OTHERS"), LOOKING),
    ("object", "a user", of(kind="user", name="me"), ""),
    ("objects", "processes", of(kind="process"), LOOKING),
    ("objects", "tokens", of(kind="token"), ""),
    ("note_worker", "none", of(record=None), EVERYBODY),
    ("note_worker", "tasks", of(record=worker(tasks=["Q"])), GETTERS),
    ("note_worker", "a schedule", of(record=worker(schedules=["Q"])), PUTTERS),
    ("note_worker", "tasks and a schedule", of(record=worker(tasks=["Q"], schedules=["Q"])), BOTH),
    ("note_worker", "tasks of another queue, too", of(record=worker(tasks=["Q", "OTHER.Q"])), RUNNING),
    ("reserve_numbers", "any", of(count=10), EVERYBODY),
    ("put", "a message", put, PUTTERS),
    ("put", "under a new confirm id", lambda at: put(at, confirm_id=5), PUTTERS),
    ("put", "under an own confirm id", lambda at: put(at, confirm_id=at.me.confirm_id), PUTTERS),
    ("put", "under another's confirm id", lambda at: put(at, confirm_id=at.other.confirm_id), RUNNING),
    ("put", "a message that is there, again", lambda at: put(at, uid=at.me.held), PUTTERS),
    ("put", "with an id of the future", lambda at: put(at, uid=at.me.held._replace(number=10**12)), RUNNING),
    ("put", "with an id of another store", lambda at: put(at, uid=UniqueId("PARIS", 5)), PUTTERS),
    ("end_group", "own", of_handle(state=NOTHING_OPEN), PUTTERS),
    ("withdraw", "own", of_handle(state=NOTHING_OPEN, whole_group=True), PUTTERS),
    ("get", "a message", get, GETTERS),
    ("get", "a browse", lambda at: get(at, browse="next"), BROWSERS),
    ("get", "a browse that locks", lambda at: get(at, browse="next", lock=True), f"{RUNNING} browse+get"),
    ("get", "under another's confirm id", lambda at: get(at, confirm_id=at.other.confirm_id), RUNNING),
    ("get", "under an own lock id", lambda at: get(at, lock_id=at.me.lock_id), GETTERS),
    ("get", "under another's lock id", lambda at: get(at, lock_id=at.other.lock_id), RUNNING),
    ("wait", "for a message", get, GETTERS),
    ("wait", "in a browse", lambda at: get(at, browse="first"), BROWSERS),
    ("wait", "under another's confirm id", lambda at: get(at, confirm_id=at.other.confirm_id), RUNNING),
    ("browse_page", "any", lambda at: {**get(at, browse="next"), "most": 10}, BROWSERS),
    ("browse_page", "not a browse", lambda at: {**get(at), "most": 10}, GETTERS),
    ("read_rest", "any", of_handle(rest=None), GETTERS),
    ("unlock", "own", handle, EVERYBODY),
    ("leave_group", "own", handle, EVERYBODY),
    ("end_waits", "own", of(), EVERYBODY),
    ("browse_and_lock", "under a new id", lambda at: lock(at, 0), GETTERS),
    ("browse_and_lock", "under an own id", lambda at: lock(at, at.me.locking_id), GETTERS),
    ("browse_and_lock", "under another's id", lambda at: lock(at, at.other.locking_id), RUNNING),
    ("one_message", "confirm an own put", lambda at: one(at, Event.CONFIRM_PUT, at.me.held), PUTTERS),
    ("one_message", "confirm another's put", lambda at: one(at, Event.CONFIRM_PUT, at.other.held), RUNNING),
    ("one_message", "confirm another's put by its id", lambda at: one(
        at, Event.CONFIRM_PUT, at.other.held, confirm_id=at.other.confirm_id), RUNNING),
    ("one_message", "confirm another's get", lambda at: one(at, Event.CONFIRM_GET, at.other.held), RUNNING),
    ("one_message", "delete", lambda at: one(at, Event.DELETE, at.me.held), GETTERS),
    ("one_message", "unlock what is another's", lambda at: one(
        at, Event.UNLOCK, at.other.held, lock_id=at.other.lock_id), RUNNING),
    ("undo", "an own confirm id", lambda at: {**handle(at), "confirm_id": at.me.confirm_id}, BOTH),
    ("undo", "another's confirm id", lambda at: {**handle(at), "confirm_id": at.other.confirm_id}, RUNNING),
    ("undo", "another's locks", lambda at: {**handle(at), "confirm_id": at.other.locking_id}, RUNNING),
    ("release_lock", "an own one", lambda at: {**handle(at), "lock_id": at.me.lock_id}, GETTERS),
    ("release_lock", "another's", lambda at: {**handle(at), "lock_id": at.other.lock_id}, RUNNING),
    ("unique_ids", "own", lambda at: {**handle(at), "confirm_id": at.me.confirm_id, "lock_id": 0}, BROWSERS),
    ("unique_ids", "another's", lambda at: {**handle(at), "confirm_id": 0, "lock_id": at.other.lock_id}, RUNNING),
    ("settle", "own", of(outcome="commit"), EVERYBODY),
    ("settle", "an operator's move", of(outcome="commit", moves=True), RUNNING),
    ("prepare", "own", of(name="new"), EVERYBODY),
    ("units", "a list", of(), EVERYBODY),
    ("has_unit", "own", of(), EVERYBODY),
    ("begin_global", "own", of(branches=[Branch("C", "PARIS")]), EVERYBODY),
    ("begin_lease", "a new one", of(name="new", seconds=60.0), EVERYBODY),
    ("leave_lease", "own", of(), EVERYBODY),
    ("begin_claims", "a new application", of_handle(application="new"), GETTERS),
    ("begin_claims", "own", lambda at: {**handle(at), "application": at.me.application}, GETTERS),
    ("begin_claims", "another's", lambda at: {**handle(at), "application": at.other.application}, RUNNING),
    ("begin_claims", "a channel's", of_handle(application="channel TO.PARIS"), RUNNING),
    ("claim", "own", lambda at: claim(at, at.me), GETTERS),
    ("claim", "another's", lambda at: claim(at, at.other), RUNNING),
    ("claim", "a channel's", lambda at: claim(at, at.me, "channel TO.PARIS"), RUNNING),
    ("plan_claims", "own", lambda at: {"claimer": claimer(at, at.me)}, GETTERS),
    ("plan_claims", "another's", lambda at: {"claimer": claimer(at, at.other)}, RUNNING),
    ("read_claim", "own", lambda at: {"claimer": claimer(at, at.me), "part": records.Slice(1, 1, 1, 0)}, GETTERS),
    ("read_claim", "another's", lambda at: {
        "claimer": claimer(at, at.other), "part": records.Slice(1, 1, 1, 0)}, RUNNING),
    ("settle_claims", "own", lambda at: {"claimer": claimer(at, at.me), "upto": 1}, GETTERS),
    ("settle_claims", "own, of an epoch to come", lambda at: {"claimer": claimer(at, at.me, 9), "upto": 1}, RUNNING),
    ("settle_claims", "another's", lambda at: {"claimer": claimer(at, at.other), "upto": 1}, RUNNING),
    ("return_ahead", "own", lambda at: {"claimer": claimer(at, at.me)}, GETTERS),
    ("return_ahead", "another's", lambda at: {"claimer": claimer(at, at.other)}, RUNNING),
    ("finish_claims", "own", of(queue="Q", application="me application", upto=1), GETTERS),
    ("finish_claims", "another's", of(queue="Q", application="other application", upto=1), RUNNING),
    ("leave_claimed_group", "own", of(queue="Q", application="me application"), GETTERS),
    ("leave_claimed_group", "another's", of(queue="Q", application="other application"), RUNNING),
    ("release_claims", "own", of(queue="Q", application="me application"), GETTERS),
    ("release_claims", "another's", of(queue="Q", application="other application"), RUNNING),
    ("release_claims", "a channel's", of(queue="Q", application="channel TO.PARIS"), RUNNING),
    ("claims", "a list", of(), EVERYBODY),
    ("survey", "any", lambda at: {
        "request": records.SurveyRequest(at.me.handle, GetOptions(), UNSET, 1, 1, 1)}, BROWSERS),
    ("read_stretch", "any", of_handle(stretch=records.Stretch(False, 0, (0, 0), (0, 0), 0)), BROWSERS),
    ("stage", "a new staging", lambda at: stage(at, "new"), PUTTERS),
    ("stage", "an own staging", lambda at: stage(at, at.me.staging), PUTTERS),
    ("stage", "another's staging", lambda at: stage(at, at.other.staging), RUNNING),
    ("settle_staging", "an own one", of(**settled("me staging")), EVERYBODY),
    ("settle_staging", "another's", of(**settled("other staging")), RUNNING),
    ("undo_staging", "an own one", of(names=["me staging", "unknown"]), EVERYBODY),
    ("undo_staging", "another's too", of(names=["me staging", "other staging"]), RUNNING),
    ("in_ledger", "any", of(queue="Q", key=records.LedgerKey("a", "", "b")), PUTTERS),
    ("last_settled", "any", of(queue="Q", application="a", query="q"), PUTTERS),
    ("take_channel", "any", of_handle(channel="TO.PARIS"), RUNNING),
    ("note_channel", "any", of_handle(channel="TO.PARIS", status="running"), RUNNING),
    ("next_batch", "any", lambda at: {**claim(at, at.me, "channel C"), "channel": "C"}, RUNNING),
    ("confirm_batch", "any", lambda at: {**claim(at, at.me, "channel C"), "channel": "C"}, RUNNING),
    ("note_home_server", "any", of(queue="HOME", status="triggered"), RUNNING),
    ("stop_channel", "any", of(queue="Q", channel="TO.PARIS", mode="force"), RUNNING),
    ("start_channel", "any", of(channel="TO.PARIS"), RUNNING),
    ("resolve_channel", "any", of_handle(channel="TO.PARIS", outcome="commit"), RUNNING),
    ("reset_channel", "any", of_handle(channel="TO.PARIS", number=0), RUNNING),
    ("channels", "any", of(wanted=[("TO.PARIS", "Q")]), LOOKING),
    ("receive", "any", of(batch=ChannelBatch(SENDER, 1, 1, b"", [])), ADMIN),
    ("bind_channel", "any", of(sender=SENDER, epoch=1), ADMIN),
    ("receive_piece", "any", of(sender=SENDER, epoch=1, piece=PIECE), ADMIN),
    ("receive_piece", "of a receiver for me", of(sender=MINE, epoch=1, piece=PIECE), EVERYBODY),
    ("receive_piece", "of a receiver for another", of(sender=OTHERS, epoch=1, piece=PIECE), ""),
    ("receive_piece", "from another store", of(sender=MINE._replace(identifier="T"), epoch=1, piece=PIECE), ""),
    ("reset_received", "any", of(sender=SENDER, epoch=1, number=0), ADMIN),
    ("receive", "of a receiver for me", of(batch=ChannelBatch(MINE, 1, 1, b"", [])), EVERYBODY),
    ("receive", "of a receiver for another", of(batch=ChannelBatch(OTHERS, 1, 1, b"", [])), ""),
    ("bind_channel", "of a receiver for me", of(sender=MINE, epoch=1), EVERYBODY),
    ("bind_channel", "of a receiver for another", of(sender=OTHERS, epoch=1), ""),
    ("bind_channel", "from another store", of(sender=MINE._replace(identifier="T"), epoch=1), ""),
    ("reset_received", "of a receiver for me", of(sender=MINE, epoch=1, number=0), EVERYBODY),
    ("reset_received", "of a receiver for another", of(sender=OTHERS, epoch=1, number=0), ""),
    ("received", "any", of(), LOOKING),
    ("is_own", "any", of(token=b"1"), LOOKING),
    ("report_exception", "any", of(message=Message(b"x"), reason=2030, in_unit=False), EVERYBODY),
    ("look", "any", of(request=LookRequest(queue="Q", order="physical", after=None, most=1, preview=0)), BROWSERS),
    ("gaps", "any", of(queue="Q", group_id=b"g"), BROWSERS),
    ("order_view", "any", of(queue="Q"), DISPLAYERS),
    ("waits", "a list", of(), EVERYBODY),
    ("locks", "a list", of(), EVERYBODY),
    ("list_connections", "a list", of(), EVERYBODY),
    ("overview", "a list", of(name=None), EVERYBODY),
    ("dropped", "a list", of(), EVERYBODY),
    ("discard_expired", "any", of(limit=1), EVERYBODY),
    ("check", "any", of(part=None), RUNNING),
]
# Calls that the checker lets pass, because the store itself finds only the user's own things.
MADE: list[Case] = [
    ("settle_prepared", "own", of(name="me prepared", outcome="commit"), EVERYBODY),
    ("settle_prepared", "another's", of(name="other prepared", outcome="back_out"), RUNNING),
    ("end_global", "any", of(name="nobody's", connections=["C"]), EVERYBODY),
    ("lease", "own", of(name="me lease"), EVERYBODY),
    ("lease", "another's", of(name="other lease"), RUNNING),
    ("extend_lease", "own", of(name="me lease", seconds=60.0), EVERYBODY),
    ("extend_lease", "another's", of(name="other lease", seconds=60.0), RUNNING),
    ("enter_lease", "own", of(name="me lease"), EVERYBODY),
    ("enter_lease", "another's", of(name="other lease"), RUNNING),
    ("end_lease", "own", of(name="me lease"), EVERYBODY),
    ("end_lease", "another's", of(name="other lease"), RUNNING),
]
# fmt: on
SUBJECTS = ("admin", "operator", "reader", "nobody", *GRANTABLE, *TOGETHER)
TITLES = [f"{verb}: {title}" for verb, title, _, _ in MATRIX]
