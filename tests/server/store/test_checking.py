"""Every remote verb, checked for every role and every single grant, on the user's own things and on those of others."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from inorder.errors import ArgumentError, ConnectionBroken, LeaseOver, NotAuthorized, UnitExists, UnitNotFound
from inorder.model.attributes import define_queue
from inorder.model.options import GetOptions, OpenOptions, PutOptions
from inorder.rules.grouping import NOTHING_OPEN
from inorder.rules.ordering import UNSET
from inorder.rules.puts import Program
from inorder.rules.store_verbs import ACTS, STAYS, VERBS
from inorder.server.identity import Identity
from inorder.server.store.checking import ActToLog, Checker, OpenedFor
from inorder.stores.memory import MemoryStore
from inorder.stores.seam.records import GetRequest, LedgerKey, PutRequest, StageRequest
from inorder.stores.seam.views import LookRequest

from .matrix import CHANNEL, MADE, MATRIX, SENDER, SUBJECTS, TITLES, World, identity_of, new_world, put

REFUSED = (NotAuthorized, LeaseOver, UnitNotFound)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    one = new_world()
    yield one
    one.store.close_store()


def test_the_matrix_has_every_verb() -> None:
    assert {case[0] for case in MATRIX + MADE} == set(VERBS)
    assert {word for case in MATRIX + MADE for word in case[3].split()} <= set(SUBJECTS)


@pytest.mark.parametrize(("verb", "title", "arguments", "allowed"), MATRIX, ids=TITLES)
def test_each_verb_is_allowed_to_exactly_the_subjects_in_the_matrix(
    world: World, verb: str, title: str, arguments: Callable[[World], Any], allowed: str
) -> None:
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
def test_units_and_leases_are_found_by_exactly_the_subjects_in_the_matrix(
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


WITH_HANDLE = sorted(verb for verb, row in VERBS.items() if row.of.endswith("handle"))


@pytest.mark.parametrize("verb", WITH_HANDLE)
def test_the_handle_of_another_connection_is_unknown(world: World, verb: str) -> None:
    arguments = next(case[2] for case in MATRIX if case[0] == verb)(world)
    checker = Checker(world.store, world.me.owner)  # it has opened nothing
    with pytest.raises(ConnectionBroken):
        checker.check(verb, arguments, identity_of("admin"))


def test_a_handle_belongs_to_its_connection_from_open_to_close() -> None:
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


def test_authority_is_checked_for_the_opened_name_or_for_the_queue_to_which_a_manager_leads() -> None:
    store = MemoryStore("QM1")
    store.create_queue(define_queue("Q"))
    store.create_queue(define_queue("LIKE.Q", "alias", base_queue="Q"))
    store.create_queue(define_queue("PARIS", usage="transmission"))
    store.create_queue(define_queue("BACK", "remote", remote_manager="QM1"))
    owner = store.connect(Program("me", "test"))
    for name, manager, asked in (
        ("LIKE.Q", "", "LIKE.Q"),
        ("LIKE.Q", "QM1", "LIKE.Q"),
        ("FAR", "PARIS", "PARIS"),
        ("LIKE.Q", "BACK", "Q"),  # where the message goes, so nobody reaches a queue without a right on it
    ):
        checker = Checker(store, owner)
        given: dict[str, Any] = {"queue": name, "options": OpenOptions(output=True), "manager": manager}
        queues = {one: ["put"] for one in {"Q", "LIKE.Q", "FAR", "PARIS", "BACK"} - {asked}}
        other = Identity(name="me", roles=frozenset({"application"}), queues=queues)
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
def test_a_model_queue_creates_only_queues_whose_names_the_user_may_use(
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
    again = {"queue": answer.name, "options": OpenOptions(input="shared")}
    checker.check("open", again, identity)
    checker.note("open", again, answer._replace(handle=99))
    assert checker.handles[99] == OpenedFor("MODEL", answer.name, made=False)
    checker.check("close", {"handle": answer.handle, "delete": True}, identity)


def test_the_server_fills_in_the_connection_and_the_user_of_a_call(world: World) -> None:
    checker, shop = world.me.checker(), identity_of("put")
    operator = identity_of("operator")
    found = checker.filled("settle", {"outcome": "commit"}, shop, leases_max=9)
    assert found == {"outcome": "commit", "owner": world.me.owner}
    lease = {"name": "n", "seconds": 1.0}
    for identity in (shop, operator):
        found = checker.filled("begin_lease", lease, identity, leases_max=9)
        assert found == {**lease, "owner": world.me.owner, "user": "me", "most": 9}
    assert checker.filled("lease", {"name": "n"}, shop, leases_max=9)["user"] == "me"
    assert checker.filled("lease", {"name": "n"}, operator, leases_max=9)["user"] is None
    key = {"key": LedgerKey("a", "", ""), "stagings": []}
    assert checker.filled("settle_staging", key, shop, leases_max=9)["owner"] == world.me.owner


@pytest.mark.parametrize("context", ["none", "set_identity", "set_all"])
def test_the_context_of_a_message_is_dropped_unless_the_user_has_control_authority(world: World, context: str) -> None:
    checker, given = world.me.checker(), put(world, context=context)
    assert checker.filled("put", given, identity_of("put"), leases_max=1)["request"].options == PutOptions()
    assert checker.filled("put", given, identity_of("operator"), leases_max=1) == given
    columns: dict[str, list[Any]] = {"body": [b"x"], "user_identifier": ["root"], "put_at": [1.0], "priority": [1]}
    rows = {"request": StageRequest(world.me.handle, "s", 1, columns, 60.0, is_bounded=True)}
    found = checker.filled("stage", rows, identity_of("put"), leases_max=1)["request"].columns
    assert found == {"body": [b"x"], "priority": [1]}
    assert checker.filled("stage", rows, identity_of("operator"), leases_max=1) == rows


def test_a_lease_with_the_name_of_another_is_refused(world: World) -> None:
    with pytest.raises(UnitExists):
        world.me.checker().check("begin_lease", {"name": world.other.lease, "seconds": 1.0}, identity_of("admin"))


def test_an_id_that_was_reserved_for_the_connection_may_be_used(world: World) -> None:
    checker, uid = world.me.checker(), world.me.held._replace(number=10**12)
    checker.note("reserve_numbers", {"count": 10}, uid)
    checker.check("put", put(world, uid=uid), identity_of("put"))
    with pytest.raises(NotAuthorized):
        checker.check("put", put(world, uid=uid._replace(number=10**12 + 10)), identity_of("put"))


@pytest.mark.parametrize(
    "verb",
    [*STAYS, "begin_act", "acts", "try_log_in", "set_user", "backup", "promises", "watch", "get_if", "no such verb"],
)
def test_a_verb_without_a_row_in_the_table_cannot_be_called(world: World, verb: str) -> None:
    with pytest.raises(NotAuthorized):
        world.me.checker().check(verb, {}, identity_of("admin"))


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        ("define_object", {"kind": "channel", "name": "C", "attributes": "{}"}),
        ("define_object", {"kind": "channel", "name": "C", "attributes": "not JSON"}),
        ("define_object", {"kind": "process", "name": "C", "attributes": CHANNEL}),
        ("define_object", {"kind": "channel", "name": "D", "attributes": CHANNEL}),
        ("alter_object", {"kind": "channel", "name": "C", "before": CHANNEL, "attributes": '{"name": 5}'}),
        ("create_queue", {"attributes": dataclasses.replace(define_queue("Q"), max_depth=-1)}),
        ("create_queue", {"attributes": dataclasses.replace(define_queue("Q"), name="a b")}),
    ],
)
def test_invalid_attributes_of_a_definition_are_refused(world: World, verb: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="attributes must be those of"):
        world.me.checker().check(verb, arguments, identity_of("admin"))


def test_lists_show_what_the_user_may_see(world: World) -> None:
    me = world.me

    def seen(verb: str, subject: str, **arguments: Any) -> list[Any]:
        answer = getattr(world.store, verb)(**arguments)
        return me.checker().shown(verb, arguments, answer, identity_of(subject))  # type: ignore[no-any-return]

    assert [one.name for one in seen("queues", "inquire")] == ["Q"]
    assert [one.name for one in seen("queues", "reader")] == ["HOME", "MODEL", "OTHER.Q", "Q"]
    assert seen("queues", "put") == []
    assert [one.name for one in seen("overview", "inquire")] == ["Q"]
    assert seen("overview", "get", name="Q") == []
    for verb in ("units", "claims", "locks"):
        names = {one.program.user for one in seen(verb, "nobody")}
        assert names == {"me"}, verb
        assert {one.program.user for one in seen(verb, "display")} == {"me", "other"}, verb
        answer = getattr(world.store, verb)()
        assert me.checker().shown(verb, {}, answer, identity_of("reader")) == list(answer), verb
    assert [one.connection for one in seen("list_connections", "display")] == [me.owner]
    assert len(seen("list_connections", "reader")) == 2
    assert seen("waits", "reader") == []
    assert seen("dropped", "reader") == []


def test_holders_other_than_the_user_are_shown_only_with_display_authority(world: World) -> None:
    request = LookRequest(queue="Q", order="physical", after=None, most=100, preview=0)
    views = world.store.look(request)

    def holders(subject: str) -> set[str]:
        shown = world.me.checker().shown("look", {"request": request}, views, identity_of(subject))
        assert len(shown) == len(views)
        return {one.holder.program.user for one in shown if one.holder is not None}

    assert holders("browse") == {"me"}
    assert holders("reader") >= {"me", "other"}


# What only operators may do on these queues, or with objects of others, and which the log of acts does not have.
NOT_LOGGED = set(
    "open put get wait browse_and_lock one_message unique_ids settle begin_claims claim plan_claims read_claim "
    "settle_claims return_ahead stage settle_staging lease extend_lease enter_lease "  # messages
    "take_channel note_channel next_batch confirm_batch note_home_server receive bind_channel receive_piece "
    "note_worker check".split()
)


def test_all_acts_of_operators_but_these_are_logged(world: World) -> None:
    without = set()
    for verb, _, arguments, allowed in MATRIX + MADE:
        if set(allowed.split()) in ({"admin"}, {"admin", "operator"}):
            act = world.me.checker().check(verb, arguments(world), identity_of("admin"))
            if act is None:
                without.add(verb)
    assert without == NOT_LOGGED


def test_acts_are_logged_unless_they_end_only_what_the_user_holds(world: World) -> None:
    checker, operator = world.me.checker(), identity_of("admin")

    def act(verb: str, **arguments: Any) -> ActToLog | None:
        return checker.check(verb, arguments, operator)

    me, other = world.me, world.other
    assert act("clear_queue", name="Q") == ActToLog("clear", "Q")
    assert act("retry_now", name="Q") == ActToLog("retry", "Q")
    assert act("alter_queue", name="Q", by="set", changes={}) == ActToLog("set", "Q")
    assert act("create_queue", attributes=define_queue("NEW")) == ActToLog("define", "NEW")
    assert act("define_object", kind="channel", name="C", attributes=CHANNEL) == ActToLog("define channel C", "")
    assert act("reset_received", sender=SENDER, epoch=1, number=0) == ActToLog("reset channel TO.QM1", "")
    assert act("undo", handle=me.handle, confirm_id=other.confirm_id) == ActToLog("undo", "Q")
    assert act("undo", handle=me.handle, confirm_id=me.confirm_id) is None
    assert act("release_claims", queue="Q", application=other.application) == ActToLog("release claims", "Q")
    assert act("release_claims", queue="Q", application=me.application) is None
    assert act("close", handle=me.handle, delete=True) == ActToLog("delete", "Q")
    assert act("close", handle=me.handle, purge=True) == ActToLog("delete", "Q")
    assert act("close", handle=me.handle) is None
    assert act("undo_staging", names=[me.staging]) is None
    assert act("settle_prepared", name="n", outcome="commit") == ActToLog("commit prepared:n", "")
    assert checker.check("settle_prepared", {"name": "n", "outcome": "commit"}, identity_of("put")) is None
    assert set(ACTS) <= set(VERBS)
