"""Every verb that travels, tried by every role and every single grant, with things of one's own and of others.

The matrix is written from docs/explanation/remote-authority.md. A case says who may make the call: roles, "nobody" (a
user of the role application without a grant), and the grants on the queue Q that suffice alone, or together (get+put).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from inorder.errors import ConnectionBroken, LeaseOver, NotAuthorized, UnitExists, UnitNotFound
from inorder.model.attributes import define_queue
from inorder.model.message import Message, UniqueId
from inorder.model.options import EVERYTHING, GetOptions, OpenOptions, PutOptions
from inorder.rules.authorities import GRANTABLE, ROLES
from inorder.rules.grouping import NOTHING_OPEN
from inorder.rules.lifecycle import Event
from inorder.rules.ordering import UNSET
from inorder.rules.puts import Program
from inorder.rules.store_verbs import ACTS, STAYS, VERBS
from inorder.server.identity import Identity
from inorder.server.store.checking import ActToLog, Checker, OpenedFor
from inorder.stores.memory import MemoryStore
from inorder.stores.seam.records import (
    ChannelBatch,
    Claimer,
    ClaimRequest,
    GetRequest,
    LedgerKey,
    LockRequest,
    OneMessage,
    PutRequest,
    Sender,
    Slice,
    Staged,
    StageRequest,
    Stretch,
    SurveyRequest,
)
from inorder.stores.seam.views import LookRequest

ALL = OpenOptions(input="shared", output=True, browse=True)
SENDER = Sender("S", 1, "TO.QM1", "LONDON")
TOGETHER = ("get+put", "browse+get")
REFUSED = (NotAuthorized, LeaseOver, UnitNotFound)


def identity_of(subject: str, name: str = "me") -> Identity:
    """A user with a role, or of the role application with these grants on Q."""
    if subject in ROLES and subject != "application":
        return Identity(name=name, roles=frozenset({subject}))
    grants = [] if subject == "nobody" else subject.split("+")
    return Identity(name=name, roles=frozenset({"application"}), queues={"Q": grants})


class Side:
    """A connection of a user, who has one thing of each kind on the queue Q."""

    def __init__(self, store: MemoryStore, user: str, number: int) -> None:
        self.store, self.user = store, user
        self.owner = self._connected()
        self.handle = store.open(self.owner, "Q", ALL).handle
        self.confirm_id, self.locking_id = number, number + 1
        self.application, self.staging, self.prepared, self.lease = (
            f"{user} {kind}" for kind in ("application", "staging", "prepared", "lease")
        )
        self._put(confirm_id=self.confirm_id)
        self.held = self.put(confirm_id=self.confirm_id)
        self.put()
        request = LockRequest(handle=self.handle, match=EVERYTHING, confirm_id=self.locking_id, most=1)
        self.lock_id = store.browse_and_lock(request).lock_id
        self.epoch = store.begin_claims(self.handle, self.application).epoch
        self.stage(self.staging)
        self._put(in_unit=True)
        store.prepare(self.owner, self.prepared)
        store.begin_lease(self.owner, self.lease, user, 60.0, None)

    def _connected(self) -> int:
        owner = self.store.connect(Program("program's", "test"))
        self.store.set_user(owner, self.user)
        return owner

    def _put(self, *, in_unit: bool = False, **options: Any) -> UniqueId:
        request = PutRequest(self.handle, [b"x"], PutOptions(**options), NOTHING_OPEN, in_unit)
        return self.store.put(request).results[0].uid

    def put(self, **options: Any) -> UniqueId:
        """Puts a message on Q."""
        return self._put(**options)

    def stage(self, name: str) -> None:
        """Stages a row for Q."""
        self.store.stage(StageRequest(self.handle, name, 1, {"body": [b"x"]}, 60.0))

    def checker(self) -> Checker:
        """The checker of the connection, which has one handle open for everything."""
        found = Checker(self.store, self.owner)
        found.handles[self.handle] = OpenedFor("Q", "Q", made=False)
        return found


class World(NamedTuple):
    """A store with two users."""

    store: MemoryStore
    me: Side
    other: Side


def new_world() -> World:
    store = MemoryStore("QM1")
    store.create_queue(define_queue("Q"))
    store.create_queue(define_queue("OTHER.Q"))
    store.create_queue(define_queue("MODEL", "model"))
    return World(store, Side(store, "me", 71), Side(store, "other", 81))


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    one = new_world()
    yield one
    one.store.close_store()


# --- the calls


def put(at: World, **options: Any) -> Any:
    return {"request": PutRequest(at.me.handle, [b"x"], PutOptions(**options), NOTHING_OPEN, False)}


def get(at: World, **options: Any) -> Any:
    return {"request": GetRequest(at.me.handle, GetOptions(**options), NOTHING_OPEN, UNSET, False)}


def lock(at: World, confirm_id: int) -> Any:
    return {"request": LockRequest(handle=at.me.handle, match=EVERYTHING, confirm_id=confirm_id)}


def one(at: World, event: Event, uid: UniqueId, **ids: int) -> Any:
    return {"request": OneMessage(handle=at.me.handle, event=event, uid=uid, **ids)}


def claimer(at: World, of: Side, epoch: int | None = None) -> Claimer:
    return Claimer(at.me.handle, of.application, of.epoch if epoch is None else epoch)


def claim(at: World, of: Side, application: str = "") -> Any:
    by = claimer(at, of)._replace(application=application or of.application)
    return {"request": ClaimRequest(by, 0, GetOptions(), 1, 1000)}


def stage(at: World, name: str) -> Any:
    return {"request": StageRequest(at.me.handle, name, 1, {"body": [b"x"]}, 60.0)}


def settled(name: str) -> Any:
    return {"key": LedgerKey("a", "", "b"), "stagings": [Staged(name, 1)]}


def handle(at: World) -> Any:
    return {"handle": at.me.handle}


def opened(name: str, **how: Any) -> Callable[[World], Any]:
    rest = {key: how.pop(key) for key in ("dynamic_name", "manager") if key in how}
    return lambda at: {"queue": name, "options": OpenOptions(**how), **rest}


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

# verb, case: the arguments, and who may.
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
    ("close", "a queue that others made", of_handle(delete=True, purge=True), ADMIN),
    ("keep_handles", "of the connection", of(handles=[]), EVERYBODY),
    ("check_handle", "of the connection", handle, EVERYBODY),
    ("create_queue", "any", of(attributes=define_queue("NEW")), ADMIN),
    ("alter_queue", "by alter", of(name="Q", by="alter", changes={}), f"{RUNNING} alter"),
    ("alter_queue", "by set", of(name="Q", by="set", changes={}), f"{RUNNING} set"),
    ("delete_queue", "any", of(name="Q", purge=False), ADMIN),
    ("clear_queue", "any", of(name="Q"), f"{RUNNING} clear"),
    ("queues", "a list", of(), EVERYBODY),
    ("queue", "the queue", of(name="Q"), USERS),
    ("queue", "another queue", of(name="OTHER.Q"), LOOKING),
    ("status", "any", of(name="Q"), INQUIRERS),
    ("manager", "any", of(), EVERYBODY),
    ("alter_manager", "any", of(changes={}), ADMIN),
    ("define_object", "a channel", of(kind="channel", name="C", attributes="{}"), ADMIN),
    ("define_object", "a user", of(kind="user", name="me", attributes="{}"), ""),
    ("alter_object", "a process", of(kind="process", name="P", before="", attributes="{}"), ADMIN),
    ("alter_object", "a user", of(kind="user", name="me", before="", attributes="{}"), ""),
    ("delete_object", "a channel", of(kind="channel", name="C"), ADMIN),
    ("delete_object", "a token", of(kind="token", name="T"), ""),
    ("object", "a channel", of(kind="channel", name="C"), LOOKING),
    ("object", "a user", of(kind="user", name="me"), ""),
    ("objects", "processes", of(kind="process"), LOOKING),
    ("objects", "tokens", of(kind="token"), ""),
    ("reserve_numbers", "any", of(count=10), EVERYBODY),
    ("put", "a message", put, PUTTERS),
    ("put", "under a new confirm id", lambda at: put(at, confirm_id=5), PUTTERS),
    ("put", "under an own confirm id", lambda at: put(at, confirm_id=at.me.confirm_id), PUTTERS),
    ("put", "under another's confirm id", lambda at: put(at, confirm_id=at.other.confirm_id), RUNNING),
    ("put", "a message that is there, again", lambda at: put(at, uid=at.me.held), PUTTERS),
    ("put", "with an id of the future", lambda at: put(at, uid=at.me.held._replace(number=10**12)), ""),
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
    ("lease", "a list", of(name="me lease"), EVERYBODY),
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
    ("read_claim", "own", lambda at: {"claimer": claimer(at, at.me), "part": Slice(1, 1, 1, 0)}, GETTERS),
    ("read_claim", "another's", lambda at: {"claimer": claimer(at, at.other), "part": Slice(1, 1, 1, 0)}, RUNNING),
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
    ("survey", "any", lambda at: {"request": SurveyRequest(at.me.handle, GetOptions(), UNSET, 1, 1, 1)}, BROWSERS),
    ("read_stretch", "any", of_handle(stretch=Stretch(False, 0, (0, 0), (0, 0), 0)), BROWSERS),
    ("stage", "a new staging", lambda at: stage(at, "new"), PUTTERS),
    ("stage", "an own staging", lambda at: stage(at, at.me.staging), PUTTERS),
    ("stage", "another's staging", lambda at: stage(at, at.other.staging), RUNNING),
    ("settle_staging", "an own one", of(**settled("me staging")), EVERYBODY),
    ("settle_staging", "another's", of(**settled("other staging")), RUNNING),
    ("undo_staging", "an own one", of(names=["me staging", "unknown"]), EVERYBODY),
    ("undo_staging", "another's too", of(names=["me staging", "other staging"]), RUNNING),
    ("in_ledger", "any", of(queue="Q", key=LedgerKey("a", "", "b")), PUTTERS),
    ("last_settled", "any", of(queue="Q", application="a", query="q"), PUTTERS),
    ("take_channel", "any", of_handle(channel="TO.PARIS"), RUNNING),
    ("note_channel", "any", of_handle(channel="TO.PARIS", status="running"), RUNNING),
    ("next_batch", "any", lambda at: {**claim(at, at.me, "channel C"), "channel": "C"}, RUNNING),
    ("confirm_batch", "any", lambda at: {**claim(at, at.me, "channel C"), "channel": "C"}, RUNNING),
    ("stop_channel", "any", of(queue="Q", channel="TO.PARIS", mode="force"), RUNNING),
    ("start_channel", "any", of(channel="TO.PARIS"), RUNNING),
    ("resolve_channel", "any", of_handle(channel="TO.PARIS", outcome="commit"), RUNNING),
    ("reset_channel", "any", of_handle(channel="TO.PARIS", number=0), RUNNING),
    ("channels", "any", of(wanted=[("TO.PARIS", "Q")]), LOOKING),
    ("receive", "any", of(batch=ChannelBatch(SENDER, 1, 1, b"", [])), ADMIN),
    ("bind_channel", "any", of(sender=SENDER, epoch=1), ADMIN),
    ("reset_received", "any", of(sender=SENDER, epoch=1, number=0), ADMIN),
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
# The calls that a check lets pass, because the store itself looks for the user's things only.
MADE: list[Case] = [
    ("settle_prepared", "own", of(name="me prepared", outcome="commit"), EVERYBODY),
    ("settle_prepared", "another's", of(name="other prepared", outcome="back_out"), RUNNING),
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


def test_the_matrix_has_every_verb() -> None:
    assert {case[0] for case in MATRIX + MADE} == set(VERBS)
    assert {word for case in MATRIX + MADE for word in case[3].split()} <= set(SUBJECTS)


@pytest.mark.parametrize(("verb", "title", "arguments", "allowed"), MATRIX, ids=TITLES)
def test_who_may(world: World, verb: str, title: str, arguments: Callable[[World], Any], allowed: str) -> None:
    del title
    may, refusals = set(), list[NotAuthorized]()
    for subject in SUBJECTS:
        try:
            world.me.checker().check(verb, arguments(world), identity_of(subject))
        except NotAuthorized as error:
            refusals.append(error)
        else:
            may.add(subject)
    assert may == set(allowed.split())
    assert all(one.data["user"] == "me" and "is not authorized to" in str(one) for one in refusals)


@pytest.mark.parametrize(("verb", "title", "arguments", "allowed"), MADE, ids=[f"{one[0]}: {one[1]}" for one in MADE])
def test_whose_units_and_leases_are_found(
    verb: str, title: str, arguments: Callable[[World], Any], allowed: str
) -> None:
    del title
    may = set()
    for subject in SUBJECTS:
        at = new_world()
        checker, identity = at.me.checker(), identity_of(subject)
        try:
            checker.check(verb, arguments(at), identity)
            getattr(at.store, verb)(**checker.filled(verb, arguments(at), identity, leases_max=100))
        except REFUSED:
            pass
        else:
            may.add(subject)
        at.store.close_store()
    assert may == set(allowed.split())


# --- handles


WITH_HANDLE = sorted(verb for verb, row in VERBS.items() if row.of.endswith("handle"))


@pytest.mark.parametrize("verb", WITH_HANDLE)
def test_the_handle_of_another_connection_is_unknown_here(world: World, verb: str) -> None:
    arguments = next(case[2] for case in MATRIX if case[0] == verb)(world)
    checker = Checker(world.store, world.me.owner)  # it has opened nothing
    with pytest.raises(ConnectionBroken):
        checker.check(verb, arguments, identity_of("admin"))


def test_a_handle_is_the_connection_s_from_its_open_to_its_close() -> None:
    store = MemoryStore("QM1")
    store.create_queue(define_queue("Q"))
    owner, identity = store.connect(Program("me", "test")), identity_of("put")
    checker, given = Checker(store, owner), {"queue": "Q", "options": OpenOptions(output=True)}
    numbers = []
    for _ in range(3):
        checker.check("open", given, identity)
        answer = store.open(**checker.filled("open", given, identity, leases_max=1))
        checker.note("open", given, answer)
        numbers.append(answer.handle)
    checker.note("close", {"handle": numbers[0]}, None)
    checker.note("keep_handles", {"handles": numbers[2:]}, None)
    assert checker.handles == {numbers[2]: OpenedFor("Q", "Q", made=False)}


def test_authority_is_asked_of_the_name_that_was_opened() -> None:
    store = MemoryStore("QM1")
    store.create_queue(define_queue("Q"))
    store.create_queue(define_queue("LIKE.Q", "alias", base_queue="Q"))
    store.create_queue(define_queue("PARIS", usage="transmission"))
    store.create_queue(define_queue("BACK", "remote", remote_manager="QM1"))
    owner = store.connect(Program("me", "test"))
    for name, manager, asked in (
        ("LIKE.Q", "", "LIKE.Q"),
        ("Q", "QM1", "Q"),
        ("FAR", "PARIS", "PARIS"),
        ("LIKE.Q", "BACK", "Q"),
    ):
        checker = Checker(store, owner)
        given: dict[str, Any] = {"queue": name, "options": OpenOptions(output=True), "manager": manager}
        other = Identity(name="me", roles=frozenset({"application"}), queues={"NONE": ["put"]})
        with pytest.raises(NotAuthorized) as refused:
            checker.check("open", given, other)
        assert refused.value.data["queue"] == asked
        one = Identity(name="me", roles=frozenset({"application"}), queues={asked: ["put"]})
        checker.check("open", given, one)
        answer = store.open(owner, **given)
        checker.note("open", given, answer)
        request = PutRequest(answer.handle, [b"x"], PutOptions(), NOTHING_OPEN, False)
        checker.check("put", {"request": request}, one)
        with pytest.raises(NotAuthorized):
            checker.check("put", {"request": request}, other)


@pytest.mark.parametrize(
    ("dynamic_name", "grants", "may"),
    [
        ("*", {"MODEL": ["get"]}, True),
        ("AMQ.MINE.*", {"MODEL": ["get"]}, True),
        ("AMQ.MINE", {"MODEL": ["get"]}, False),
        ("REPLIES", {"MODEL": ["get"]}, False),
        ("REPLIES", {"MODEL": ["get"], "REPLIES": ["get"]}, True),
        ("REPLIES.*", {"MODEL": ["get"], "REPLIES.OTHER*": ["get"]}, False),
        ("REPLIES.*", {"MODEL": ["get"], "REPLIES*": ["get"]}, True),
        ("REPLIES.*", {"REPLIES*": ["get"]}, False),
    ],
)
def test_a_model_makes_only_queues_whose_name_is_free_to_the_user(
    dynamic_name: str, grants: dict[str, list[str]], may: bool
) -> None:
    store = MemoryStore("QM1")
    store.create_queue(define_queue("MODEL", "model"))
    identity = Identity(name="me", roles=frozenset({"application"}), queues=grants)
    checker = Checker(store, owner := store.connect(Program("me", "test")))
    given: dict[str, Any] = {"queue": "MODEL", "options": OpenOptions(input="shared"), "dynamic_name": dynamic_name}
    if not may:
        with pytest.raises(NotAuthorized):
            checker.check("open", given, identity)
        return
    checker.check("open", given, identity)
    answer = store.open(owner, **given)
    checker.note("open", given, answer)
    checker.check("get", {"request": GetRequest(answer.handle, GetOptions(), NOTHING_OPEN, UNSET, False)}, identity)
    checker.check("queue", {"name": answer.name}, identity)
    checker.check("close", {"handle": answer.handle, "delete": True}, identity)


# --- what the server says in place of the client


def test_the_server_says_who_acts(world: World) -> None:
    checker, shop = world.me.checker(), identity_of("put")
    operator = identity_of("operator")
    assert checker.filled("settle", {"outcome": "commit"}, shop, leases_max=9) == {
        "outcome": "commit",
        "owner": world.me.owner,
    }
    lease = {"name": "n", "seconds": 1.0}
    for identity in (shop, operator):
        assert checker.filled("begin_lease", lease, identity, leases_max=9) == {
            **lease,
            "owner": world.me.owner,
            "user": "me",
            "most": 9,
        }
    assert checker.filled("lease", {"name": "n"}, shop, leases_max=9)["user"] == "me"
    assert checker.filled("lease", {"name": "n"}, operator, leases_max=9)["user"] is None
    key = {"key": LedgerKey("a", "", ""), "stagings": []}
    assert checker.filled("settle_staging", key, shop, leases_max=9)["owner"] == world.me.owner


@pytest.mark.parametrize("context", ["none", "set_identity", "set_all"])
def test_only_control_keeps_another_name_in_a_message(world: World, context: str) -> None:
    checker, given = world.me.checker(), put(world, context=context)
    assert checker.filled("put", given, identity_of("put"), leases_max=1)["request"].options == PutOptions()
    assert checker.filled("put", given, identity_of("operator"), leases_max=1) == given
    columns: dict[str, list[Any]] = {"body": [b"x"], "user_identifier": ["root"], "put_at": [1.0], "priority": [1]}
    rows = {"request": StageRequest(world.me.handle, "s", 1, columns, 60.0)}
    assert checker.filled("stage", rows, identity_of("put"), leases_max=1)["request"].columns == {
        "body": [b"x"],
        "priority": [1],
    }
    assert checker.filled("stage", rows, identity_of("operator"), leases_max=1) == rows


def test_a_lease_is_begun_under_a_name_of_its_own(world: World) -> None:
    with pytest.raises(UnitExists):
        world.me.checker().check("begin_lease", {"name": world.other.lease, "seconds": 1.0}, identity_of("admin"))


def test_an_id_that_was_reserved_for_the_connection_may_be_used(world: World) -> None:
    checker, uid = world.me.checker(), world.me.held._replace(number=10**12)
    checker.note("reserve_numbers", {"count": 10}, range(10**12, 10**12 + 10))
    checker.check("put", put(world, uid=uid), identity_of("put"))
    with pytest.raises(NotAuthorized):
        checker.check("put", put(world, uid=uid._replace(number=10**12 + 10)), identity_of("put"))


@pytest.mark.parametrize("verb", [*STAYS, "set_user", "backup", "promises", "watch", "get_if", "no such verb"])
def test_what_has_no_row_cannot_be_called(world: World, verb: str) -> None:
    with pytest.raises(NotAuthorized):
        world.me.checker().check(verb, {}, identity_of("admin"))


# --- answers


def test_lists_show_what_the_user_may_see(world: World) -> None:
    me = world.me

    def seen(verb: str, subject: str, **arguments: Any) -> list[Any]:
        answer = getattr(world.store, verb)(**arguments)
        return me.checker().shown(verb, arguments, answer, identity_of(subject))  # type: ignore[no-any-return]

    assert [one.name for one in seen("queues", "inquire")] == ["Q"]
    assert [one.name for one in seen("queues", "reader")] == ["MODEL", "OTHER.Q", "Q"]
    assert seen("queues", "put") == []
    assert [one.name for one in seen("overview", "inquire")] == ["Q"]
    assert seen("overview", "get", name="Q") == []
    for verb in ("units", "claims", "locks"):
        names = {one.program.user for one in seen(verb, "nobody")}
        assert names == {"me"}, verb
        assert {one.program.user for one in seen(verb, "display")} == {"me", "other"}, verb
        assert seen(verb, "reader") == list(getattr(world.store, verb)()), verb
    assert [one.connection for one in seen("list_connections", "display")] == [me.owner]
    assert len(seen("list_connections", "reader")) == 2
    assert seen("waits", "reader") == []
    assert seen("dropped", "reader") == []


def test_only_display_shows_who_holds_another_s_message(world: World) -> None:
    request = LookRequest(queue="Q", order="physical", after=None, most=100, preview=0)
    views = world.store.look(request)

    def holders(subject: str) -> set[str]:
        shown = world.me.checker().shown("look", {"request": request}, views, identity_of(subject))
        assert len(shown) == len(views)
        return {one.holder.program.user for one in shown if one.holder is not None}

    assert holders("browse") == {"me"}
    assert holders("reader") >= {"me", "other"}


# --- the log of acts


def test_acts_are_logged_and_what_is_one_s_own_is_not(world: World) -> None:
    checker, operator = world.me.checker(), identity_of("admin")

    def act(verb: str, **arguments: Any) -> ActToLog | None:
        return checker.check(verb, arguments, operator)

    me, other = world.me, world.other
    assert act("clear_queue", name="Q") == ActToLog("clear", "Q")
    assert act("alter_queue", name="Q", by="set", changes={}) == ActToLog("set", "Q")
    assert act("create_queue", attributes=define_queue("NEW")) == ActToLog("define", "NEW")
    assert act("define_object", kind="channel", name="C", attributes="{}") == ActToLog("define channel C", "")
    assert act("reset_received", sender=SENDER, epoch=1, number=0) == ActToLog("reset channel TO.QM1", "")
    assert act("undo", handle=me.handle, confirm_id=other.confirm_id) == ActToLog("undo", "Q")
    assert act("undo", handle=me.handle, confirm_id=me.confirm_id) is None
    assert act("release_claims", queue="Q", application=other.application) == ActToLog("release claims", "Q")
    assert act("release_claims", queue="Q", application=me.application) is None
    assert act("undo_staging", names=[me.staging]) is None
    assert act("settle_prepared", name="n", outcome="commit") == ActToLog("commit prepared:n", "")
    assert checker.check("settle_prepared", {"name": "n", "outcome": "commit"}, identity_of("put")) is None
    assert set(ACTS) <= set(VERBS)
