"""Units of work over several queue managers: they commit in two phases, despite failures and kills (K-2)."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.helpers.elsewhere import proxied
from tests.helpers.proxy import Proxy, Way
from tests.helpers.spanning import act_at
from tests.helpers.support import error_of, until

import inorder
from inorder import InorderError, QueueManager, Reason, StoreError, errors
from inorder.aio import connect as aio_connect
from inorder.client import two_phases
from inorder.client.owners import OwnerSession
from inorder.client.unit_names import coordinator_of
from inorder.mq import channels
from inorder.stores.seam.tables import Branch

OWNERS = ("PARIS", "ROME")
PLACES = ("L", "Q.PARIS", "Q.ROME")
POINTS = tuple(two_phases.POINTS)
BEFORE = POINTS[:2]  # the points before the decision


class Sites(NamedTuple):
    """LONDON, with a queue L and names for the queues Q of PARIS and ROME."""

    london: QueueManager
    paris: QueueManager
    rome: QueueManager

    def bodies(self) -> list[list[bytes]]:
        """The visible messages at each place."""
        return [seen(self.london, "L"), seen(self.paris), seen(self.rome)]

    def in_doubt(self) -> list[tuple[str, str]]:
        """The kind and outcome of each unit in doubt, by place."""
        return [(one.kind, one.outcome) for qm in self for one in qm.inspect.units()]

    def settle(self) -> None:
        """Settles all units, once the servers have noticed lost connections."""
        until(lambda: not self.london.admin.settle_in_doubt() and not self.in_doubt(), "nothing is in doubt")

    def put(self, qm: QueueManager | None = None) -> Reason | None:
        for place in PLACES:
            (qm or self.london).put(place, b"1", syncpoint=True)
        return (qm or self.london).commit()


def seen(qm: QueueManager, queue: str = "Q") -> list[bytes]:
    return [message.body for message in qm.browse(queue)]


def define(london: QueueManager, manager: str, location: str) -> None:
    channels.define_connection(london, manager, location)
    london.create_queue(
        f"Q.{manager}", type="remote", mode="synchronous", remote_queue="Q", remote_manager=manager, connection=manager
    )


At = Callable[[str, Callable[[], object]], None]


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[Sites]:
    made = [inorder.connect(tmp_path / f"{name}.db", name=name.upper()) for name in ("london", "paris", "rome")]
    made[0].create_queue("L")
    for name, one in zip(OWNERS, made[1:], strict=True):
        one.create_queue("Q")
        define(made[0], name, str(tmp_path / f"{name.lower()}.db"))
    yield Sites(*made)
    for one in made:
        one.internals.abandon()


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> At:
    """Calls a function once, when a commit reaches a point."""
    return partial(act_at, monkeypatch)


def fails(error: BaseException) -> Callable[..., Any]:
    def failing(*_: object, **__: object) -> Any:
        raise error

    return failing


def part_at(qm: QueueManager, manager: str) -> OwnerSession:
    for one in qm._session.owners.values():
        assert isinstance(one, OwnerSession)
        if one.of.manager == manager:
            return one
    raise AssertionError(manager)


def unreachable(qm: QueueManager, manager: str, verb: str = "settle_prepared") -> None:
    """Makes this connection to an owner fail at this operation."""
    store: Any = part_at(qm, manager).store
    setattr(store, verb, fails(StoreError("no line", reason=Reason.Q_MGR_NOT_AVAILABLE)))


def heal(qm: QueueManager, manager: str, verb: str = "settle_prepared") -> None:
    delattr(part_at(qm, manager).store, verb)


def test_the_record_of_a_global_unit_is_written_before_the_first_prepare(
    sites: Sites, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: dict[str, list[tuple[str, str]]] = {}

    def look(name: str) -> None:
        found.setdefault(name, sites.in_doubt())

    monkeypatch.setattr(two_phases, "reached", look)
    assert sites.put(sites.london.connect()) is None
    assert found == {
        "unit-recorded": [("session", ""), ("global", ""), ("session", ""), ("session", "")],
        "part-prepared": [("session", ""), ("global", ""), ("prepared", ""), ("session", "")],
        "unit-decided": [("global", "commit"), ("prepared", ""), ("prepared", "")],
        "part-settled": [("global", "commit"), ("prepared", "")],
        "unit-ended": [],
    }
    assert sites.bodies() == [[b"1"]] * 3


def test_a_part_is_named_after_its_unit_and_a_withheld_strict_reader_sees_the_name(sites: Sites, at: At) -> None:
    program, told = sites.london.connect(), list[str]()

    def look() -> None:
        (unit,) = [one for one in sites.london.inspect.units() if one.kind == "global"]
        (part,) = sites.paris.inspect.units()
        assert part.name == f"{unit.name}/PARIS"
        assert coordinator_of(part) == channels.identifier(sites.london) == unit.name.partition("/")[0]
        found = (unit.branches, unit.connection)
        assert found == ((Branch("PARIS", "PARIS"), Branch("ROME", "ROME")), program.internals.owner)
        sites.paris.put("Q", b"2")
        withheld = error_of(sites.paris.get, "Q", read_order="strict")
        assert isinstance(withheld, errors.OrderPending)
        told.append(str(withheld))
        assert part.name in told[0]

    sites.paris.alter_queue("Q", order="put")
    at("unit-decided", look)
    sites.put(program)
    assert told


def test_a_unit_at_only_one_queue_manager_has_no_record(sites: Sites, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(two_phases, "reached", fails(AssertionError("two phases")))
    london = sites.london
    with london.unit_of_work():
        london.put("Q.ROME", b"1")
        assert next(london.browse("Q.PARIS"), None) is None
        with pytest.raises(inorder.NoMessageAvailable):
            london.get("Q.PARIS")
    with london.unit_of_work():
        london.put("L", b"1")
    assert sites.bodies() == [[b"1"], [], [b"1"]]


@pytest.mark.parametrize("place", ["PARIS", "ROME"])
def test_an_owner_that_cannot_prepare_backs_the_unit_out_everywhere(sites: Sites, place: str) -> None:
    london = sites.london
    for one in PLACES:
        london.put(one, b"0", syncpoint=False)
    unit = london.unit_of_work()

    def work() -> None:
        with unit:
            for one in PLACES:
                assert london.get(one).body == b"0"
                london.put(one, b"1")
            unreachable(london, place, "prepare")

    error = error_of(work)
    assert (error.reason, error.data["owner"], unit.status) == (2003, place, "backed out")
    assert isinstance(error.__cause__, StoreError)
    heal(london, place, "prepare")
    assert (sites.bodies(), sites.in_doubt()) == ([[b"0"]] * 3, [])
    assert [london.get(one).backout_count for one in PLACES] == [1, 1, 1]
    assert sites.put() is None


def test_a_local_commit_that_fails_backs_the_unit_out_everywhere(sites: Sites, at: At) -> None:
    store: Any = sites.london._store

    def fill() -> None:
        settle = store.settle

        def full(owner: int, outcome: str, *given: Any, **named: Any) -> Any:
            if outcome == "commit":
                raise errors.StoreFull("full")
            return settle(owner, outcome, *given, **named)

        store.settle = full

    at("part-prepared", fill)
    assert error_of(sites.put).reason == 2003
    del store.settle
    assert (sites.bodies(), sites.in_doubt()) == ([[], [], []], [])


def test_a_commit_warns_of_an_owner_that_cannot_settle(sites: Sites, at: At, caplog: pytest.LogCaptureFixture) -> None:
    london = sites.london
    at("unit-decided", lambda: unreachable(london, "PARIS"))
    with london.unit_of_work() as unit:
        for place in PLACES:
            london.put(place, b"1")
    assert (unit.status, unit.warning) == ("committed", Reason.OUTCOME_PENDING)
    assert "at queue manager PARIS" in caplog.text
    assert sites.bodies() == [[b"1"], [], [b"1"]]
    assert sites.in_doubt() == [("global", "commit"), ("prepared", "")]
    assert london.inspect.units()[0].branches == (Branch("PARIS", "PARIS"),)
    assert london.depth("Q.PARIS") == 1, "the call itself is not held up"
    assert [error.reason for error in london.admin.settle_in_doubt()] == [2059]
    heal(london, "PARIS")
    london.depth("Q.PARIS")
    assert (sites.bodies(), sites.in_doubt()) == ([[b"1"]] * 3, [])


def test_a_program_that_reaches_the_owner_settles_the_unit_of_an_ended_program(sites: Sites, at: At) -> None:
    program = sites.london.connect()
    at("unit-decided", lambda: unreachable(program, "PARIS"))
    assert sites.put(program) is Reason.OUTCOME_PENDING
    heal(program, "PARIS")
    program.close()
    sites.london.depth("Q.ROME")
    assert sites.in_doubt() == [("global", "commit"), ("prepared", "")]
    sites.london.depth("Q.PARIS")
    assert (sites.bodies(), sites.in_doubt()) == ([[b"1"]] * 3, [])


@pytest.mark.parametrize("point", POINTS)
def test_the_unit_of_a_program_that_dies_is_committed_everywhere_or_nowhere(sites: Sites, at: At, point: str) -> None:
    program = sites.london.connect()
    at(point, fails(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        sites.put(program)
    assert sites.london.admin.settle_in_doubt() == []
    if point in BEFORE:
        assert ("global", "") in sites.in_doubt(), "nobody backs out while its connection lives"
    program.internals.abandon()
    assert sites.london.admin.settle_in_doubt() == []
    assert sites.bodies() == ([[]] * 3 if point in BEFORE else [[b"1"]] * 3)
    assert sites.in_doubt() == []


@pytest.mark.parametrize("point", POINTS)
def test_after_an_interrupt_the_next_call_ends_the_unit(sites: Sites, at: At, point: str) -> None:
    at(point, fails(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        sites.put()
    sites.london.depth("L")
    assert sites.bodies() == ([[]] * 3 if point in BEFORE else [[b"1"]] * 3)
    assert sites.in_doubt() == []
    assert sites.put() is None


def test_a_program_whose_record_has_gone_before_it_prepares_backs_out_itself(sites: Sites, at: At) -> None:
    """It has stalled, its connection was lost, and another program has found no part to back out."""
    program = sites.london.connect()

    def stall() -> None:
        program._store.disconnect(program.internals.owner)
        assert sites.london.admin.settle_in_doubt() == []
        assert ("global", "back_out") not in sites.in_doubt()

    at("unit-recorded", stall)
    assert isinstance(error_of(sites.put, program), errors.ConnectionBroken)
    assert (sites.bodies(), sites.in_doubt()) == ([[], [], []], [])


def test_a_lost_part_backs_the_rest_out(sites: Sites) -> None:
    london = sites.london
    london.put("L", b"1", syncpoint=True)
    london.put("Q.PARIS", b"1", syncpoint=True)
    london.put("Q.ROME", b"1", syncpoint=True)
    part = part_at(london, "PARIS")
    part.is_lost = True
    london._session.leave_owner(part)
    assert isinstance(error_of(london.put, "L", b"2", syncpoint=True), errors.ConnectionBroken)
    assert isinstance(error_of(london.commit), errors.ConnectionBroken)
    assert (sites.bodies(), sites.in_doubt()) == ([[], [], []], [])


def test_an_operator_can_forget_a_unit_in_doubt_and_settle_its_part_by_hand(sites: Sites, at: At) -> None:
    london, paris = sites.london, sites.paris
    at("unit-decided", lambda: unreachable(london, "PARIS"))
    sites.put()
    (unit,) = london.inspect.units()
    heal(london, "PARIS")
    london.admin.forget_in_doubt(unit.name)
    assert isinstance(error_of(london.admin.forget_in_doubt, unit.name), errors.UnitNotFound)
    assert sites.in_doubt() == [("prepared", "")]
    paris.settle(paris.inspect.units()[0].name, "commit")
    assert sites.bodies() == [[b"1"]] * 3

    other, refused = london.connect(), list[InorderError]()
    at("unit-recorded", lambda: refused.append(error_of(london.admin.forget_in_doubt, name_of(london))))
    sites.put(other)
    assert [type(one) for one in refused] == [errors.WrongState]


def name_of(qm: QueueManager) -> str:
    return next(one.name for one in qm.inspect.units() if one.kind == "global")


def test_a_coordinator_restored_from_a_backup_does_not_settle_later_units(sites: Sites, at: At, tmp_path: Path) -> None:
    """It has no record of its decision, reuses no name, and leaves the part to an operator."""
    london = sites.london
    london.admin.backup(tmp_path / "backup.db")
    at("unit-decided", lambda: unreachable(london, "PARIS"))
    sites.put()
    heal(london, "PARIS")
    (part,) = sites.paris.inspect.units()
    with inorder.connect(tmp_path / "backup.db") as restored:
        restored.put("Q.PARIS", b"2", syncpoint=True)
        restored.put("L", b"2", syncpoint=True)
        assert restored.commit() is None
        assert restored.admin.settle_in_doubt() == []
    assert [one.name for one in sites.paris.inspect.units()] == [part.name]
    assert seen(sites.paris) == [b"2"]
    sites.paris.settle(part.name, "back_out")
    assert sites.in_doubt() == [("global", "commit")]


def test_a_part_of_another_user_at_the_owner_is_left_unsettled(
    sites: Sites, at: At, monkeypatch: pytest.MonkeyPatch
) -> None:
    london = sites.london
    monkeypatch.setattr(OwnerSession, "branch", property(lambda one: Branch(one.of.connection, one.of.manager, "ann")))
    at("unit-decided", lambda: unreachable(london, "PARIS"))
    sites.put()
    heal(london, "PARIS")
    monkeypatch.setattr(OwnerSession, "branch", property(lambda one: Branch(one.of.connection, one.of.manager, "bob")))
    monkeypatch.setattr(part_at(london, "PARIS").store, "settle_prepared", fails(errors.UnitNotFound("not bob's")))
    assert london.admin.settle_in_doubt() == []
    assert sites.in_doubt() == [("global", "commit"), ("prepared", "")]


def test_the_store_refuses_bad_global_units_and_those_of_another_connection(sites: Sites) -> None:
    store, owner = sites.london._store, sites.london.internals.owner
    branches = [Branch("PARIS", "PARIS")]
    for wrong in ([], branches * 101, [Branch("x" * 257, "")], [Branch("\ud800", "")]):
        with pytest.raises(errors.ArgumentError):
            store.begin_global(owner, wrong)
    name = store.begin_global(owner, branches)
    with pytest.raises(errors.WrongState):
        store.begin_global(owner, branches)
    with pytest.raises(errors.WrongState):
        store.end_global(name, ["PARIS"])
    other = sites.london.connect()
    for bad in ("nobody's", name):
        with pytest.raises(errors.ConnectionBroken):
            store.settle(other.internals.owner, "commit", decides=bad)
    assert store.settle(owner, "commit", decides=name) is False
    with pytest.raises(errors.ConnectionBroken):
        store.settle(owner, "back_out", decides=name)
    store.end_global(name, ["PARIS"], "somebody else")
    assert sites.in_doubt() == [("global", "commit")]
    store.end_global(name, ["PARIS"])
    store.end_global(name, ["PARIS"])
    assert sites.in_doubt() == []


def test_the_number_of_units_in_doubt_of_a_user_is_limited(sites: Sites, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inorder.stores.engine.global_units.UNITS_MAX", 1)
    store, owner = sites.london._store, sites.london.internals.owner
    store.settle(owner, "commit", decides=store.begin_global(owner, [Branch("PARIS", "PARIS")]))
    with pytest.raises(errors.UnitNotAvailable):
        store.begin_global(owner, [Branch("PARIS", "PARIS")])


def test_two_connections_to_one_owner_are_two_parts(sites: Sites, tmp_path: Path) -> None:
    london = sites.london
    channels.define_connection(london, "PARIS.2", str(tmp_path / "paris.db"))
    london.create_queue(
        "AGAIN", type="remote", mode="synchronous", remote_queue="Q", remote_manager="PARIS", connection="PARIS.2"
    )
    with london.unit_of_work():
        london.put("Q.PARIS", b"1")
        london.put("AGAIN", b"2")
    assert (sites.bodies()[1], sites.in_doubt()) == ([b"1", b"2"], [])


def test_a_move_refuses_a_put_at_another_queue_manager(sites: Sites) -> None:
    from inorder.client import store_transfer

    with store_transfer.moving(sites.london):
        sites.london.put("L", b"1")
        assert error_of(sites.london.put, "Q.PARIS", b"1").reason == 2298
        sites.london.put("L", b"2")
    assert sites.bodies() == [[b"1", b"2"], [], []]


async def test_asyncio_commits_everywhere_and_reports_a_pending_outcome(
    sites: Sites, at: At, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: OwnerSession) -> Branch:
        raise StoreError("no line")

    async with aio_connect(tmp_path / "london.db") as qm:
        async with qm.unit_of_work() as unit:
            for place in PLACES:
                await qm.put(place, b"1")
        assert (unit.warning, sites.bodies(), sites.in_doubt()) == (None, [[b"1"]] * 3, [])
        at("unit-decided", lambda: monkeypatch.setattr(OwnerSession, "branch", property(broken)))
        for place in PLACES:
            await qm.put(place, b"2", syncpoint=True)
        assert (await qm.commit(), unit.warning) == (Reason.OUTCOME_PENDING, None)
    monkeypatch.undo()
    assert sites.london.admin.settle_in_doubt() == []
    assert sites.bodies() == [[b"1", b"2"]] * 3


class Served(NamedTuple):
    """The sites, with PARIS behind a proxy and a server of this process."""

    sites: Sites
    proxy: Proxy


@pytest.fixture
def served(sites: Sites, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    with proxied(monkeypatch, tmp_path / "credentials", sites.paris) as [proxy]:
        channels.define_connection(sites.london, "PARIS", f"http://127.0.0.1:{proxy.port}", replace=True)
        yield Served(sites, proxy)
        for one in sites.london._session.owners.copy().values():
            sites.london._session.leave_owner(one)


@pytest.mark.parametrize("way", ["to server", "to client"])
@pytest.mark.parametrize("verb", ["prepare", "settle_prepared"])
def test_a_lost_answer_of_a_server_leaves_the_unit_committed_everywhere_or_nowhere(
    served: Served, monkeypatch: pytest.MonkeyPatch, verb: str, way: Way
) -> None:
    sites, proxy = served
    sites.put()
    store: Any = part_at(sites.london, "PARIS").store
    made = getattr(store, verb)

    def cut(*given: Any) -> Any:
        delattr(store, verb)
        proxy.cut_after(way, 0)
        return made(*given)

    setattr(store, verb, cut)
    if verb == "prepare":
        assert error_of(sites.put).reason == 2003
    else:
        assert sites.put() is None
    monkeypatch.setattr(two_phases, "IN_FLIGHT_SECONDS", 0.0)
    sites.settle()
    assert sites.bodies() == [[b"1"] * (1 if verb == "prepare" else 2)] * 3


@pytest.mark.parametrize("ahead", [-3_600, 0, 3_600])
def test_the_record_is_kept_while_a_prepare_may_still_be_in_flight(
    served: Served, monkeypatch: pytest.MonkeyPatch, ahead: int
) -> None:
    """The clock of the program that settles it makes no difference."""
    sites, proxy = served
    monkeypatch.setattr(sites.london._session.services, "now", lambda: time.time() + ahead)
    sites.put()
    store: Any = part_at(sites.london, "PARIS").store
    made = store.prepare

    def cut(*given: Any) -> Any:
        del store.prepare
        proxy.cut_after("to server", 0)
        return made(*given)

    store.prepare = cut
    assert error_of(sites.put).reason == 2003
    assert sites.in_doubt() == [("global", "back_out")]
    assert sites.london.admin.settle_in_doubt() == []
    assert sites.in_doubt() == [("global", "back_out")]
    monkeypatch.setattr(two_phases, "IN_FLIGHT_SECONDS", 0.0)
    sites.london.depth("Q.PARIS")
    assert sites.in_doubt() == []


@pytest.fixture
def far(sites: Sites, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[QueueManager, Proxy]]:
    """A connection to LONDON through a proxy and a server; the owners are reached in the same way."""
    with proxied(monkeypatch, tmp_path / "credentials", *sites) as proxies:
        at = [f"http://127.0.0.1:{one.port}" for one in proxies]
        for name, place in zip(OWNERS, at[1:], strict=True):
            channels.define_connection(sites.london, name, place, replace=True)
        with contextlib.ExitStack() as ends:
            program = inorder.connect(at[0])
            ends.callback(program.internals.abandon)
            yield program, proxies[0]
        for one in sites.london._session.owners.copy().values():
            sites.london._session.leave_owner(one)


@pytest.mark.parametrize("way", ["to server", "to client"])
@pytest.mark.parametrize("verb", ["begin_global", "settle", "end_global"])
def test_a_lost_answer_of_the_deciding_store_leaves_the_unit_committed_everywhere_or_nowhere(
    sites: Sites, far: tuple[QueueManager, Proxy], monkeypatch: pytest.MonkeyPatch, verb: str, way: Way
) -> None:
    program, proxy = far
    assert sites.put(program) is None
    store: Any = program._store
    made = getattr(store, verb)

    def cut(*given: Any, **named: Any) -> Any:
        setattr(store, verb, made)
        proxy.cut_after(way, 0)
        return made(*given, **named)

    setattr(store, verb, cut)
    failed = False
    try:
        sites.put(program)
    except InorderError:
        failed = True
    monkeypatch.setattr(two_phases, "IN_FLIGHT_SECONDS", 0.0)
    program.internals.abandon()
    sites.settle()
    happened = verb == "end_global" or (verb, way) == ("settle", "to client")
    assert sites.bodies() == [[b"1"] * (1 + happened)] * 3
    assert failed is not happened


def test_a_program_that_stalls_while_its_line_is_cut_backs_out_itself(
    sites: Sites, far: tuple[QueueManager, Proxy], monkeypatch: pytest.MonkeyPatch, at: At
) -> None:
    """For so long that another program no longer waits for its requests."""
    program, proxy = far
    monkeypatch.setattr(two_phases, "IN_FLIGHT_SECONDS", 0.0)

    def stall() -> None:
        proxy.cut()
        until(lambda: not sites.london.admin.settle_in_doubt() and not sites.london.inspect.units(), "the record goes")

    at("unit-recorded", stall)
    assert isinstance(error_of(sites.put, program), errors.ConnectionBroken)
    assert (sites.bodies(), sites.in_doubt()) == ([[], [], []], [])
