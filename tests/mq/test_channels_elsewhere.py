"""Channels to a store elsewhere: rights, credentials, and the side that runs an exit (W-9)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.helpers.channelled import bodies, link, manager, numbers
from tests.helpers.elsewhere import RIGHTS, USER, Elsewhere, elsewhere_in, proxied

from inorder import CallerError, Feedback, Message, Report, connect
from inorder.errors import ArgumentError, LogInRefused, NotAuthorized, ObjectExists, Reason, StoreError, UnknownObject
from inorder.mq import channels
from inorder.rules.dead_letters import why_dead

EXITS = "tests.helpers.channelled"


@pytest.fixture(scope="module")
def between(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Elsewhere]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("INORDER_TOKEN", "of another server, it must not be sent there")
        with elsewhere_in(tmp_path_factory.mktemp("elsewhere"), patched, "--exits", EXITS) as made:
            yield made


@pytest.fixture
def world(between: Elsewhere) -> Iterator[Elsewhere]:
    """Two connected queue managers; afterwards their messages are cleared and their definitions restored."""
    here, there = channels.channel(between.a, "TO.B"), channels.channel(between.b, "TO.B")
    credentials = between.credentials.read_text()
    yield between
    for qm, queues in ((between.a, ["B"]), (between.b, ["Q", "DEAD"])):
        if qm is between.a and channels.status(qm)[0].in_doubt:
            channels.resolve_channel(qm, "TO.B", "back_out", force=True)
        for queue in queues:
            qm.admin.clear_queue(queue)
    between.credentials.write_text(credentials)
    channels.alter_channel(between.a, "TO.B", connection=here.connection, message_exit="")
    channels.alter_channel(between.b, "TO.B", message_exit="", user=there.user, sender=there.sender)
    between.b.accounts.alter_user(USER, roles=["application"], queues=RIGHTS)
    channels.start_channel(between.a, "TO.B")


def test_a_user_with_put_on_the_target_queue_alone_can_run_a_channel(world: Elsewhere) -> None:
    world.put(b"1", b"2", b"3", b"4", b"5")
    now = world.run()
    assert (now.status, now.waiting, bodies(world.b)) == ("inactive", 0, [b"1", b"2", b"3", b"4", b"5"])
    assert channels.ping_channel(world.a, "TO.B") == "B"


def test_a_message_that_the_user_may_not_put_becomes_a_dead_letter(world: Elsewhere) -> None:
    world.put(b"mine")
    world.put(b"not mine", queue="R")
    world.b.create_queue("R")
    try:
        assert world.run().waiting == 0
        (dead,) = world.b.browse("DEAD")
        assert (dead.body, why_dead(dead).reason, bodies(world.b)) == (b"not mine", Reason.NOT_AUTHORIZED, [b"mine"])
        assert USER in why_dead(dead).error
    finally:
        world.b.delete_queue("R")


def test_a_report_goes_only_where_its_user_may_put(world: Elsewhere) -> None:
    """Otherwise a report could carry a body to a queue where its user may not put."""
    report = int(Report.COA_WITH_FULL_DATA)
    for body, queue in ((b"1", "R"), (b"2", "Q")):
        message = Message(body, report=report, reply_to_queue=queue, reply_to_queue_manager="B")
        world.a.put("Q", message, manager="B")
    world.b.create_queue("R")
    try:
        assert world.run().waiting == 0
        assert world.b.depth("R") == 0
        (dead,) = world.b.browse("DEAD")
        assert (dead.body, dead.feedback, why_dead(dead).reason) == (b"", Feedback.COA, Reason.NOT_AUTHORIZED)
        assert bodies(world.b) == [b"1", b"2", b"2"]
    finally:
        world.b.delete_queue("R")


def _as_admin(world: Elsewhere) -> None:
    world.log_in(world.server.token)
    channels.alter_channel(world.a, "TO.B", connection=world.url)


def _of_another_store(world: Elsewhere) -> None:
    channels.alter_channel(world.b, "TO.B", sender="f" * 32)


def _without_a_definition(world: Elsewhere) -> None:
    channels.alter_channel(world.b, "TO.B", user="", sender="")


def _as_another_user(world: Elsewhere) -> None:
    world.b.accounts.create_user("rome", roles=["operator"])
    world.log_in(world.b.accounts.create_token("rome", "channel"))
    channels.alter_channel(world.a, "TO.B", connection=world.url)


@pytest.mark.parametrize("change", [_as_admin, _of_another_store, _without_a_definition, _as_another_user])
def test_only_the_defined_user_and_store_may_bind_receive_or_reset(
    world: Elsewhere, change: Callable[[Elsewhere], None]
) -> None:
    change(world)
    world.put(b"1")
    with pytest.raises(NotAuthorized):
        world.run()
    now = channels.status(world.a)[0]
    assert (now.status, now.reason, world.b.depth("Q")) == ("stopped", Reason.NOT_AUTHORIZED, 0)
    before = channels.received(world.b)
    channels.reset_channel(world.a, "TO.B", 7)
    channels.start_channel(world.a, "TO.B")
    with pytest.raises(NotAuthorized):
        world.run()
    assert channels.received(world.b) == before


def test_the_server_must_know_this_side_as_the_user_of_the_connection(world: Elsewhere) -> None:
    channels.define_connection(world.a, "AS.ROME", world.url, user="rome")
    channels.alter_channel(world.a, "TO.B", connection="AS.ROME")
    with pytest.raises(NotAuthorized, match=r"for user rome, but .* knows this side as london"):
        channels.ping_channel(world.a, "TO.B")
    channels.delete_connection(world.a, "AS.ROME")


def test_no_other_credentials_are_sent_to_a_server_that_a_definition_names(world: Elsewhere) -> None:
    """Not even INORDER_TOKEN, which is set."""
    world.credentials.write_text("")
    with pytest.raises(LogInRefused):
        channels.ping_channel(world.a, "TO.B")


# --- exits


def test_the_receiver_s_exit_runs_in_its_server(world: Elsewhere) -> None:
    """This process allows no exit; the server allows this one."""
    channels.alter_channel(world.b, "TO.B", message_exit=f"{EXITS}:shout")
    world.put(b"a", b"vetoed")
    world.run()
    assert (bodies(world.b), bodies(world.b, "DEAD")) == ([b"A"], [b"vetoed"])
    world.put(b"raises")
    with pytest.raises(CallerError, match="raised") as failed:
        world.run()
    assert (failed.value.reason, channels.status(world.a)[0].status) == (Reason.EXIT_FAILED, "stopped")


@pytest.mark.parametrize(
    ("side", "name", "why"),
    [
        ("sender", "antigravity:fly", "does not allow the module antigravity"),
        ("sender", f"{EXITS}:shutil", "does not define a function shutil"),
        ("sender", f"{EXITS}:connect", "does not define a function connect"),
        ("receiver", "antigravity:fly", "does not allow the module antigravity"),
        ("receiver", f"{EXITS}:nothing", "does not define a function nothing"),
    ],
)
def test_only_functions_of_allowed_modules_are_exits(world: Elsewhere, side: str, name: str, why: str) -> None:
    """A definition cannot make the server import a module, nor call a function that a module has imported."""
    channels.alter_channel(world.a if side == "sender" else world.b, "TO.B", message_exit=name)
    world.put(b"1")
    with pytest.raises(ArgumentError, match=why):
        world.run(exits=[EXITS])
    status = channels.status(world.a)[0].status
    assert (status, world.b.depth("Q")) == ("inactive" if side == "sender" else "stopped", 0)


def test_an_exit_of_a_local_receiver_needs_the_permission_of_the_process_too(tmp_path: Path) -> None:
    with connect(tmp_path / "a.db", name="A") as a, connect(tmp_path / "b.db", name="B") as b:
        a.create_queue("B", usage="transmission")
        b.create_queue("Q")
        channels.define_channel(a, "TO.B", transmission_queue="B", connection=str(tmp_path / "b.db"))
        channels.define_channel(b, "TO.B", "receiver", message_exit=f"{EXITS}:shout")
        a.put("Q", b"1", manager="B")
        with pytest.raises(ArgumentError, match="this process does not allow the module"):
            channels.run_channel(a, "TO.B", until_empty=True)
        assert b.depth("Q") == 0


# --- a sender elsewhere


@pytest.mark.parametrize("at", ["taken", "received"])
def test_a_run_continues_after_a_cut_and_an_error_at_the_other_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """The run has reconnected to the sender's store, so it cannot record its status."""
    monkeypatch.delenv("INORDER_TOKEN", raising=False)
    here, there = str(tmp_path / "a.db"), str(tmp_path / "b.db")
    manager(here, "A")
    manager(there, "B")
    link(here, "B", there, short_retry_interval=0)
    with connect(here) as a, connect(there) as b, proxied(monkeypatch, tmp_path / "credentials", a) as [proxy]:
        a.put_many("Q", numbers(0, 8), manager="B")

        def fails(point: str) -> None:
            if point == at:
                monkeypatch.setattr(channels.points, "reached", None)
                proxy.cut()
                raise StoreError("the other side has trouble")

        monkeypatch.setattr(channels.points, "reached", fails)
        far = connect(f"http://127.0.0.1:{proxy.port}")
        try:
            assert channels.run_channel(far, "TO.B", until_empty=True, wait=lambda _: False).number == 2
        finally:
            far.internals.abandon()
        assert bodies(b) == numbers(0, 8)


# --- definitions


def test_a_receiver_has_both_a_user_and_a_sender_or_neither() -> None:
    with connect() as qm:
        channels.define_channel(qm, "R", "receiver", user="london", sender="f" * 32)
        for given in ({"user": ""}, {"sender": ""}):
            with pytest.raises(ArgumentError, match="user and sender must be given if the other is"):
                channels.alter_channel(qm, "R", **given)


@pytest.mark.parametrize(
    ("location", "user", "argument"),
    [
        ("https://me:secret@paris.example", "", "store"),
        ("postgresql://me:secret@paris.example/shop", "", "location"),
        ("paris.example(1414)", "", "location"),
        (":memory:", "", "location"),
        ("paris.db", "london", "user"),
        ("https://paris.example", "l" * 65, "user"),
    ],
)
def test_an_invalid_connection_is_refused_without_its_password(location: str, user: str, argument: str) -> None:
    with connect() as qm, pytest.raises(ArgumentError) as refused:
        channels.define_connection(qm, "PARIS", location, user=user)
    assert refused.value.data["argument"] == argument
    assert "secret" not in str(refused.value)


def test_an_address_of_mq_leads_to_the_connection_of_the_table_and_to_no_file(tmp_path: Path) -> None:
    with connect(tmp_path / "a.db", name="A") as a, connect(tmp_path / "b(1414)", name="B"):
        a.create_queue("B", usage="transmission")
        channels.define_channel(a, "TO.B", transmission_queue="B", connection="b(1414)")
        with pytest.raises(
            UnknownObject, match=r"TO.B leads to b\(1414\), an address of MQ, for which there is no conn"
        ):
            channels.ping_channel(a, "TO.B")
        with pytest.raises(UnknownObject):
            channels.map_address(a, "b(1414)", "B")
        channels.define_connection(a, "B", str(tmp_path / "b(1414)"))
        with pytest.raises(ObjectExists):
            channels.define_connection(a, "B", str(tmp_path / "b.db"))
        channels.map_address(a, "b(1414)", "B")
        assert channels.addresses(a) == {"b(1414)": "B"}
        assert channels.ping_channel(a, "TO.B") == "B"
        channels.define_connection(a, "B", str(tmp_path / "nothing.db"), replace=True)
        assert [one.location for one in channels.connections(a)] == [str(tmp_path / "nothing.db")]
        channels.delete_connection(a, "B")
        with pytest.raises(UnknownObject, match=r"b\(1414\)"):
            channels.run_channel(a, "TO.B", until_empty=True)
        now = channels.status(a)[0]
        assert (now.status, now.reason) == ("stopped", Reason.UNKNOWN_OBJECT_NAME)
        channels.unmap_address(a, "b(1414)")
        assert channels.addresses(a) == {}
        for address in ("b", "b(1414", "b(1414),", "/b(1414)"):
            with pytest.raises(ArgumentError, match="an address of MQ"):
                channels.map_address(a, address, "B")
