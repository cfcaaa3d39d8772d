"""Home-server queues: when they collect, what stops them, and who may collect (between K-3).

`tests/scenarios/store_and_forward.txt` tests how messages travel.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.channelled import bodies, manager
from tests.helpers.elsewhere import log_in, proxied
from tests.server.conftest import Running

import inorder
from inorder import QueueManager, Reason, StoreError
from inorder.client.store_transfer import move
from inorder.errors import ChannelStopped, InorderError, NotAuthorized, ObjectInUse, UnknownQueue, WrongQueueType
from inorder.mq import channels
from inorder.mq.channels.collecting import _Collector
from inorder.mq.channels.sides import Receiver
from inorder.mq.mqsc import export_queue, run_script
from inorder.testing import ManualClock

Step = Callable[[], object]


class World:
    """The home server TEST, and PARIS, which collects its messages from TEST.

    Attributes:
        reaches: whether the home server can be reached.
        connects: the number of connections to the home server that were asked for.
        seen: the status of the queue and the seconds, at each wait except those between two batches.
    """

    def __init__(self, home: QueueManager, paris: QueueManager) -> None:
        self.home, self.paris = home, paris
        self.reaches, self.connects = True, 0
        self.seen: list[tuple[str, float]] = []

    def put(self, *bodies: bytes) -> None:
        self.home.put_many("Q", bodies, manager="PARIS")

    @property
    def status(self) -> channels.ChannelNow:
        (found,) = channels.status(self.paris)
        return found

    def connect(self, location: str) -> Receiver:
        del location
        self.connects += 1
        if not self.reaches:
            raise StoreError("nobody answers", path="home")
        return Receiver(self.home.connect())

    def pull(self, *steps: Step, until_empty: bool = False) -> channels.ChannelNow:
        """Collects as a program that performs one of these steps at each wait and then ends."""
        left = list(steps)
        self.seen = []

        def waits(seconds: float) -> bool:
            if not seconds:  # between two batches
                return False
            self.seen.append((self.status.status, seconds))
            if not left:
                return True
            left.pop(0)()
            return False

        return channels.pull(self.paris, "HUB", until_empty=until_empty, wait=waits, connects=self.connect)

    def trigger(self) -> None:
        channels.trigger_transmission(self.paris, "HUB")


@pytest.fixture
def world() -> Iterator[World]:
    with inorder.connect(name="TEST") as home, inorder.connect(name="PARIS") as paris:
        home.create_queue("HUB", type="store_and_forward", targets="PARIS")
        paris.create_queue("Q")
        channels.define_connection(paris, "TEST", "home.db")
        paris.create_queue("HUB", type="home_server", remote_manager="TEST")
        yield World(home, paris)


def idle() -> None: ...


# ---- when it collects


def test_without_an_interval_messages_are_collected_only_after_a_trigger(world: World) -> None:
    world.put(b"1", b"2")
    now = world.pull(idle, idle)
    assert (world.connects, bodies(world.paris), now.status) == (0, [], "inactive")
    assert {status for status, _ in world.seen} == {"waiting"}
    now = world.pull(world.trigger, idle, lambda: world.put(b"3"), world.trigger, idle)
    assert (world.connects, bodies(world.paris), now.status) == (2, [b"1", b"2", b"3"], "inactive")


def test_a_trigger_before_the_program_starts_is_not_forgotten(world: World) -> None:
    world.put(b"1")
    world.trigger()
    assert world.status.status == "triggered"
    world.pull()
    assert (bodies(world.paris), world.status.status) == ([b"1"], "inactive")


def test_a_trigger_during_a_collection_causes_another_one(world: World) -> None:
    world.trigger()
    connect = world.connect

    def connects(location: str) -> Receiver:
        if not world.connects:
            world.trigger()
        return connect(location)

    world.connect = connects  # type: ignore[method-assign]
    world.pull()
    assert world.connects == 2


def test_a_trigger_during_a_collection_that_fails_causes_another_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The home server cannot be reached. Before the program gives up, an operator triggers a collection."""
    world.put(b"1")
    world.trigger()
    connect = world.connect

    def connects(location: str) -> Receiver:
        world.reaches = world.connects > 0
        if not world.reaches:
            world.trigger()
        return connect(location)

    monkeypatch.setattr(world, "connect", connects)
    world.pull(idle)
    assert (world.connects, bodies(world.paris)) == (2, [b"1"])


def test_with_an_interval_messages_are_collected_regularly_over_one_connection(world: World) -> None:
    world.paris.alter_queue("HUB", interval_ms=2500)
    world.put(b"1")
    world.pull(idle, idle, lambda: world.put(b"2"), idle, idle)
    assert (world.connects, bodies(world.paris)) == (1, [b"1", b"2"])
    assert world.seen == [("running", 1.0), ("running", 1.0), ("running", 0.5)] * 2


def test_a_trigger_cuts_the_interval_short(world: World) -> None:
    world.paris.alter_queue("HUB", interval_ms=3_600_000)
    world.pull(idle, lambda: world.put(b"1"), world.trigger)
    assert (world.connects, bodies(world.paris)) == (1, [b"1"])


def test_a_changed_interval_takes_effect_at_the_next_collection(world: World) -> None:
    world.paris.alter_queue("HUB", interval_ms=1000)
    world.pull(lambda: world.paris.alter_queue("HUB", interval_ms=0), idle)
    assert [status for status, _ in world.seen] == ["running", "waiting", "waiting"]


# ---- troubles that stop it


def test_an_unreachable_home_server_is_not_tried_again_before_a_trigger(world: World) -> None:
    world.paris.alter_queue("HUB", interval_ms=1000)
    world.put(b"1")
    world.reaches = False
    now = world.pull(*[idle] * 100)
    assert (world.connects, now.status, now.reason, now.error) == (1, "stopped", StoreError.reason, "nobody answers")
    world.reaches = True
    assert world.pull(*[idle] * 100).status == "stopped"  # as if the program had been started again
    assert world.connects == 1
    now = world.pull(world.trigger, idle)
    assert (world.connects, now.status, now.reason, bodies(world.paris)) == (2, "inactive", 0, [b"1"])


def test_a_lost_connection_stops_the_collection(world: World) -> None:
    world.paris.alter_queue("HUB", interval_ms=1000)
    lost: list[Receiver] = []
    connect = world.connect

    def connects(location: str) -> Receiver:
        lost.append(connect(location))
        return lost[0]

    def lost_now() -> None:
        lost[0].close()

    world.connect = connects  # type: ignore[method-assign]
    world.put(b"1")
    now = world.pull(idle, lost_now, *[idle] * 20)
    assert (now.status, len(lost), bodies(world.paris)) == ("stopped", 1, [b"1"])


@pytest.mark.parametrize(("interval_ms", "seconds"), [(0, 60), (5000, 5)])
def test_with_retry_the_collection_continues_by_itself(world: World, interval_ms: int, seconds: int) -> None:
    world.paris.alter_queue("HUB", interval_ms=interval_ms, retry=True)
    world.put(b"1")
    world.reaches = False
    world.trigger()

    def answers() -> None:
        world.reaches = True

    world.pull(*[idle] * seconds, answers, *[idle] * seconds)
    assert world.connects == 3
    assert world.seen[: 2 * seconds] == [("stopped", 1.0)] * (2 * seconds)
    assert bodies(world.paris) == [b"1"]


def test_an_error_that_an_operator_must_correct_is_not_retried(world: World) -> None:
    world.paris.alter_queue("HUB", retry=True)
    world.home.alter_queue("HUB", targets="LYON")
    world.trigger()
    now = world.pull(*[idle] * 200)
    assert (world.connects, now.status, now.reason) == (1, "stopped", Reason.UNKNOWN_REMOTE_Q_MGR)


def test_another_program_waits_and_takes_over(world: World) -> None:
    """The second program waits; if it is to collect at once, it is refused."""
    world.paris.alter_queue("HUB", interval_ms=1000)
    others: list[str] = []

    def other() -> None:
        with pytest.raises(ObjectInUse, match="another program collects messages for HUB"):
            channels.pull(world.paris, "HUB", until_empty=True, connects=world.connect)
        waits = iter([False, True])
        channels.pull(world.paris, "HUB", wait=lambda _: next(waits), connects=world.connect)
        others.append(world.status.status)

    world.pull(other)
    assert (others, world.connects) == (["running"], 1)
    world.pull(until_empty=True)
    assert world.connects == 2


def test_a_program_that_stalls_at_its_start_does_not_stop_a_queue_that_another_has_started(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.paris.alter_queue("HUB", interval_ms=1000)
    world.reaches = False
    world.pull()
    assert world.status.status == "stopped"
    world.reaches = True
    note = _Collector._note

    def stalls(collector: _Collector, status: Any, *given: Any, **named: Any) -> str:
        monkeypatch.undo()
        world.trigger()
        world.pull()
        assert world.status.status == "inactive"
        world.put(b"1")
        return note(collector, status, *given, **named)

    monkeypatch.setattr(_Collector, "_note", stalls)
    now = world.pull(idle)
    assert (now.status, now.error, bodies(world.paris)) == ("inactive", "", [b"1"])


def test_a_message_that_cannot_be_put_yet_pauses_the_collection(world: World) -> None:
    def mended() -> None:
        assert (world.status.status, world.status.reason) == ("paused", Reason.PUT_INHIBITED)
        world.paris.alter_queue("Q", put_allowed=True)

    world.put(b"1")
    world.paris.alter_queue("Q", put_allowed=False)
    world.pull(mended, until_empty=True)
    assert world.seen == [("paused", 1.0)]
    assert (world.status.status, world.status.reason, bodies(world.paris)) == ("inactive", 0, [b"1"])


def test_a_trigger_just_before_a_pause_is_not_forgotten(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    note = _Collector._note

    def triggered(collector: _Collector, status: Any, *given: Any) -> str:
        if status == "paused":
            world.trigger()
        return note(collector, status, *given)

    monkeypatch.setattr(_Collector, "_note", triggered)
    world.put(b"1")
    world.paris.alter_queue("Q", put_allowed=False)
    world.pull(idle, until_empty=True)
    assert world.seen[0] == ("triggered", 1.0)


def test_a_trigger_just_before_it_goes_on_is_not_forgotten(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The collection then fails, so the trigger causes another one."""
    note = _Collector._note

    def triggered(collector: _Collector, status: Any, *given: Any, **named: Any) -> str:
        if status == "running" and world.status.status == "paused":
            world.trigger()
            note(collector, status, *given, **named)
            raise StoreError("lost")
        return note(collector, status, *given, **named)

    monkeypatch.setattr(_Collector, "_note", triggered)
    world.put(b"1")
    world.paris.alter_queue("Q", put_allowed=False)
    world.trigger()
    world.pull(lambda: world.paris.alter_queue("Q", put_allowed=True), *[idle] * 2)
    assert (world.connects, bodies(world.paris)) == (2, [b"1"])


def test_a_trigger_during_a_collection_outlives_the_program(world: World) -> None:
    world.put(b"1")
    world.trigger()

    def ends(seconds: float) -> bool:
        if not seconds:  # the batch is here
            world.trigger()
        return True

    channels.pull(world.paris, "HUB", wait=ends, connects=world.connect)
    assert (world.status.status, bodies(world.paris)) == ("triggered", [b"1"])


# ---- operators


def test_a_side_that_was_restored_is_reset_from_the_collecting_side(world: World) -> None:
    world.put(b"1")
    world.pull(until_empty=True)
    channels.reset_channel(world.paris, "HUB", 7, connects=world.connect)
    assert channels.status(world.home)[0].number == 6
    channels.define_channel(world.paris, "HUB", "receiver")  # tells how often to retry, and is not reset
    channels.reset_channel(world.paris, "HUB", 7, connects=world.connect)
    world.put(b"2")
    world.pull(until_empty=True)
    assert (bodies(world.paris), channels.received(world.paris)[0].number) == ([b"1", b"2"], 7)


def test_a_batch_in_doubt_is_resolved_from_the_collecting_side(world: World) -> None:
    world.put(b"1")
    channels.define_channel(world.paris, "HUB", "receiver", message_retry_count=0)
    world.paris.alter_queue("Q", put_allowed=False)
    with pytest.raises(InorderError):
        world.pull(until_empty=True)
    assert channels.status(world.home)[0].in_doubt == 1
    channels.delete_channel(world.paris, "HUB")
    assert channels.resolve_channel(world.paris, "HUB", connects=world.connect) == "back_out"
    assert channels.status(world.home)[0].in_doubt == 0


def test_the_home_server_can_stop_a_queue_manager_that_collects(world: World) -> None:
    world.put(b"1")
    channels.stop_channel(world.home, "HUB:PARIS")
    with pytest.raises(ChannelStopped):
        world.pull(until_empty=True)
    assert (channels.status(world.home)[0].status, world.status.reason) == ("stopped", Reason.CHANNEL_STOPPED)
    channels.start_channel(world.home, "HUB:PARIS")
    world.pull(until_empty=True)
    assert bodies(world.paris) == [b"1"]
    for name in ("HUB:LYON", "Q:PARIS"):
        with pytest.raises(UnknownQueue):
            channels.stop_channel(world.home, name)


def test_a_queue_manager_is_not_renamed_to_its_home_server(world: World, tmp_path: Path) -> None:
    path = str(tmp_path / "nice.db")
    with inorder.connect(path, name="NICE") as nice:
        nice.create_queue("HUB", type="home_server", remote_manager="TEST")
    with pytest.raises(InorderError, match="HUB leads to another queue manager of this name"):
        inorder.rename(path, "TEST")


def test_the_state_of_a_collection_is_deleted_with_its_queue(world: World) -> None:
    world.trigger()
    world.paris.delete_queue("HUB")
    world.paris.create_queue("HUB", type="home_server", remote_manager="TEST")
    assert world.status.status == "inactive"


def test_mqsc_defines_triggers_and_exports_home_server_and_store_and_forward_queues(world: World) -> None:
    script = """
        DEFINE QFORWARD(SPOKES) TARGETS('LYON,NICE') DESCR('for the south')
        DEFINE QHOME(NORTH) RQMNAME(OSLO) CONNECTION(TO.OSLO) INTERVAL(5000) RETRY(YES)
        TRIGGER QHOME(NORTH)
        ALTER QFORWARD(SPOKES) TARGETS('LYON,NICE,PAU')
    """
    assert [one.outcome for one in run_script(script.splitlines(), world.paris)] == ["done"] * 4
    made = {one.name: one for one in world.paris.queues()}
    assert {"LYON", "NICE", "PAU"} == {one.name for one in made.values() if one.usage == "transmission"}
    assert (made["NORTH"].interval_ms, made["NORTH"].retry, made["NORTH"].connection) == (5000, True, "TO.OSLO")
    states = {one.name: one.status for one in channels.status(world.paris)}
    assert states["NORTH:PARIS"] == "triggered"
    with inorder.connect() as other:
        for name in ("SPOKES", "NORTH"):
            (answer,) = run_script(export_queue(made[name]).splitlines(), other)
            assert (answer.outcome, other.attributes(name)) == ("done", made[name])
    (refused,) = run_script(["TRIGGER QHOME(SPOKES)"], world.paris)
    assert isinstance(refused.error, WrongQueueType)


@pytest.mark.parametrize("behind", [3600, -3600])
def test_clocks_that_differ_do_not_change_how_long_a_message_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behind: int
) -> None:
    """A claim is dated by the home server's clock, which differs from this machine's by an hour."""
    home, paris = inorder.connect(name="TEST"), inorder.connect(name="PARIS")
    home._session.services.store.clock = ManualClock(time.time() - behind)
    home.create_queue("HUB", type="store_and_forward", targets="PARIS")
    home.create_queue("KEPT")
    paris.create_queue("Q")
    home.put("Q", b"collected", manager="PARIS", expiry=1000)
    home.put("KEPT", b"moved", expiry=1000)
    with home, paris, proxied(monkeypatch, tmp_path / "credentials", home) as (proxy,):
        location = f"http://127.0.0.1:{proxy.port}"
        channels.define_connection(paris, "TEST", location)
        paris.create_queue("HUB", type="home_server", remote_manager="TEST")
        channels.pull(paris, "HUB", until_empty=True)
        with inorder.connect(location) as there:
            assert list(move(there, "KEPT", paris, "Q")) == [1]
        left = {one.body: one.expiry for one in paris.browse("Q")}
    assert left.keys() == {b"collected", b"moved"}
    assert all(900 < seconds <= 1000 for seconds in left.values() if seconds is not None)


# ---- rights to collect

USER = "paris"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[QueueManager, QueueManager]]:
    """The home server B behind a server, and PARIS, whose user there may get only from its own queue."""
    folder = tmp_path_factory.mktemp("served")
    manager(str(folder / "b.db"), "B")
    with contextlib.ExitStack() as stack:
        patched = stack.enter_context(pytest.MonkeyPatch.context())
        patched.setenv("INORDER_CREDENTIALS", str(folder / "credentials"))
        server = Running(folder / "b.db")
        stack.callback(server.kill)
        home = stack.enter_context(inorder.connect(str(folder / "b.db")))
        paris = stack.enter_context(inorder.connect(str(folder / "paris.db"), name="PARIS"))
        home.create_queue("HUB", type="store_and_forward", targets="PARIS,LYON")
        home.accounts.create_user(USER, roles=["application"], queues={"PARIS": ("get", "browse")})
        url = str(server.record["url"]).partition("?")[0].rstrip("/")
        log_in(folder / "credentials", {url.partition("://")[2]: home.accounts.create_token(USER, "collects")})
        channels.define_connection(paris, "B", url, user=USER)
        paris.create_queue("Q")
        paris.create_queue("HUB", type="home_server", remote_manager="B")
        yield home, paris


def test_a_user_who_may_get_from_its_own_queue_alone_collects(served: tuple[QueueManager, QueueManager]) -> None:
    home, paris = served
    home.put_many("Q", [b"1", b"2", b"3"], manager="PARIS")
    home.put("Q", b"of another", manager="LYON")
    channels.pull(paris, "HUB", until_empty=True)
    assert bodies(paris) == [b"1", b"2", b"3"]
    channels.reset_channel(paris, "HUB", 5)
    home.put("Q", b"4", manager="PARIS")
    channels.pull(paris, "HUB", until_empty=True)
    assert bodies(paris) == [b"1", b"2", b"3", b"4"]
    assert channels.received(paris)[0].number == 5


def test_a_user_of_one_queue_can_neither_collect_for_others_nor_run_channels(
    served: tuple[QueueManager, QueueManager], tmp_path: Path
) -> None:
    home, paris = served
    before = home.depth("LYON")
    home.put("Q", b"of another", manager="LYON")
    with inorder.connect(str(tmp_path / "lyon.db"), name="LYON") as lyon:
        channels.define_connection(lyon, "B", channels.connection(paris, "B").location)
        lyon.create_queue("HUB", type="home_server", remote_manager="B")
        with pytest.raises(NotAuthorized):
            channels.pull(lyon, "HUB", until_empty=True)
    assert home.depth("LYON") == before + 1
    with inorder.connect(channels.connection(paris, "B").location) as there:
        queue = there.open("PARIS", input="shared", browse=True)
        store, handle = queue.internals.opened_for("input")
        for name in ("TO.PARIS", "HUB:LYON", "NONE:PARIS"):
            with there._session, pytest.raises(NotAuthorized):
                store.take_channel(handle, name)
