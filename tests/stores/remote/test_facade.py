"""Every public call over the network either works, or is refused with advice on what to do instead (W-7)."""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import queue as queues
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.helpers.heard import Heard, check, in_bulk
from tests.helpers.support import LIMIT_SECONDS, Call, Stores, put_group, until

import inorder
from inorder import Feedback, Flags, Match, Message, Queue, QueueManager, Reason, Report
from inorder.client.admin import Admin
from inorder.client.bulk import Bulk
from inorder.client.dead_letters import DeadLetters
from inorder.client.inspection import Inspect
from inorder.client.leases import Lease
from inorder.client.listening import Arrival
from inorder.client.unit_of_work import UnitOfWork
from inorder.client.users import Accounts
from inorder.errors import CallerError, WaitEnded
from inorder.model.message import UniqueId
from inorder.stores.remote.store import INSTEAD, USERS, RemoteStore
from inorder.stores.seam.protocol import LocalStore
from inorder.stores.seam.tables import Branch
from inorder.testing import ManualClock
from inorder.work import Tasks


@contextlib.contextmanager
def connected() -> Iterator[QueueManager]:
    """A connection over the network, with a message on queue Q."""
    with Stores("remote") as stores, inorder.connect(stores.make(ManualClock()), program="test") as manager:
        manager.create_queue("Q")
        manager.put("Q", b"here")
        yield manager


def unit(qm: QueueManager) -> None:
    with qm.unit_of_work() as one:
        qm.put("Q", b"1")
        one.commit()
    with qm.unit_of_work() as one:
        qm.put("Q", b"2")
        one.back_out()
    with qm.unit_of_work() as one:
        qm.put("Q", b"3")
        one.prepare("monday")
    qm.settle("monday", "commit")
    assert qm.depth("Q") == 3


def by_hand(qm: QueueManager) -> None:
    qm.put("Q", b"1", syncpoint=True)
    qm.back_out(delay=5, error="why")
    qm.put("Q", b"1", syncpoint=True)
    qm.commit()
    qm.put("Q", b"2", syncpoint=True)
    qm.prepare("monday")
    assert [one.name for one in qm.inspect.units()] == ["monday"]
    qm.settle("monday", "back_out")
    assert qm.depth("Q") == 2


def in_doubt(qm: QueueManager) -> None:
    assert qm.admin.settle_in_doubt() == []
    name = qm._store.begin_global(qm.internals.owner, [Branch("C", "PARIS")])
    qm._store.settle(qm.internals.owner, "commit", decides=name)
    qm.admin.forget_in_doubt(name)
    assert qm.inspect.units() == []


def lease(qm: QueueManager) -> None:
    leased = qm.lease(seconds=60)
    with leased:
        qm.put("Q", b"1")
        leased.extend(60)
        leased.leave()
    with qm.resume_lease(leased.token) as again:
        qm.put("Q", b"2")
        again.back_out(delay=1)
    with qm.lease() as other:
        qm.put("Q", b"3")
        other.commit()
    qm.admin.end_lease(qm.lease().name)
    assert qm.depth("Q") == 2


def confirmed(qm: QueueManager) -> None:
    with qm.open("Q") as handle:
        both: tuple[Any, Any] = (qm, handle)
        for calls in both:
            on = ("Q",) if calls is qm else ()
            uid = calls.put(*on, b"1", confirm_id=7).uid
            assert uid is not None
            calls.confirm_put(*on, uid)
            got = calls.get(*on, match=Match(uid=uid), confirm_id=8)
            calls.confirm_get(*on, got.uid)
            locked = calls.browse_and_lock(*on)
            calls.unlock(*on, locked.messages[0].uid, lock_id=locked.lock_id)
            calls.delete(*on, calls.put(*on, b"2").uid)
            calls.get(*on, confirm_id=9)
            assert calls.undo(*on, 9) == 1
        locked = handle.browse_and_lock()
        assert handle.unique_ids(lock_id=locked.lock_id) == qm.inspect.unique_ids("Q", lock_id=locked.lock_id)
        assert qm.admin.release_lock("Q", locked.lock_id) == 1


def browsed(qm: QueueManager) -> None:
    qm.put("Q", b"next")
    assert [one.body for one in qm.browse("Q")] == [b"here", b"next"]
    with qm.open("Q", browse=True) as queue:
        queue.browse_first(read_order="strict")
        token = queue.browse_token()
        assert queue.browse_next(read_order="strict").body == b"next"
        queue.browse_cursor()
        queue.resume(token)
        assert queue.browse_next(read_order="strict", lock=True).body == b"next"
        assert queue.unlock() is None
        assert [one.body for one in queue.browse()] == [b"here", b"next"]
        assert not queue.leave_group(browsing=True)


def got(qm: QueueManager) -> None:
    with qm.open("Q") as queue:
        queue.put_many([b"1", b"2"])
        assert len(queue.get_many(9)) == 3
        with qm.unit_of_work():
            queue.put(Message(b"g"), logical=True, flags=Flags.IN_GROUP)
            queue.end_group()
        assert queue.get(logical=True).body == b"g"
        assert not queue.leave_group()
        queue.set(put_allowed=False)
        assert not queue.attributes().put_allowed
        assert queue.status().current_depth == 0


def streamed(qm: QueueManager) -> None:
    qm.create_queue("S")
    qm.put_json("S", {"a": 1})
    assert qm.get("S").json() == {"a": 1}
    qm.put_many("S", [b"1", b"2"])
    assert len(qm.get_many("S", 2)) == 2
    qm.put_stream("S", io.BytesIO(b"x" * 100_000))
    qm.get_stream("S", into := io.BytesIO())
    assert into.getvalue() == b"x" * 100_000
    put_group(qm, b"1", b"2", queue="S")
    assert [one.body for one in qm.get_group("S")] == [b"1", b"2"]
    assert not qm.leave_group("S")
    qm.close_queue("S")
    qm.delete_queue("S")


def asked(qm: QueueManager) -> None:
    qm.create_queue("ASKED")
    with qm.connect() as server, qm.connect() as asks:
        call = Call(lambda: server.serve("ASKED", lambda request: request.body + b"!"))
        assert asks.request("ASKED", b"what", timeout=LIMIT_SECONDS).body == b"what!"
        assert [one.body for one in asks.replies("ASKED", b"how", timeout=LIMIT_SECONDS, count=1)] == [b"how!"]
        until(server.end_waits, "the server waits")
        assert isinstance(call.error(), WaitEnded)
        asks.put("ASKED", b"why", reply_to_queue="Q", report=Report.PAN)
        request = server.get("ASKED")
        server.reply(request, b"because")
        server.report(request, Feedback.PAN)
    assert qm.depth("Q") == 3


def listened(qm: QueueManager) -> None:
    arrived = queues.SimpleQueue[Arrival]()
    listener = qm.listen("Q", arrived.put)
    qm.put("Q", b"there")
    assert [arrived.get(timeout=LIMIT_SECONDS).queue for _ in range(2)] == ["Q", "Q"]
    listener.cancel()


def worked(qm: QueueManager) -> None:
    tasks, seen = Tasks(), list[bytes]()
    tasks.task("Q", name="see")(lambda message: seen.append(message.body))
    with qm.worker(tasks):
        until(lambda: seen == [b"here"], "the task has run")


def administered(qm: QueueManager) -> None:
    admin = qm.admin
    admin.create_process("P", application_id="/bin/true")
    admin.alter_process("P", user_data="fast")
    assert [admin.process("P")] == admin.processes()
    admin.delete_process("P")
    admin.alter_manager(description="ours")
    assert admin.manager_attributes().description == "ours"
    qm.alter_queue("Q", description="ours")
    assert qm.attributes("Q") in qm.queues()
    assert qm.inquire("Q", "description") == {"description": "ours"}
    qm.close_queue("Q")
    assert (admin.retry_now("Q"), admin.retry_now("Q", UniqueId("Q", 7)), admin.clear_queue("Q")) == (0, 0, 1)
    assert (admin.discard_expired(), admin.check()) == (0, [])
    admin.check_store()


def buried(qm: QueueManager) -> None:
    dead, place = qm.dead, qm.dead.place()
    dead.add(qm.get("Q"), queue="Q")
    assert [one.why.queue for one in dead.letters()] == ["Q"]
    assert dead.replay().messages == 1
    dead.add(qm.get("Q"), queue="Q")
    assert (dead.discard(), qm.depth(place)) == (1, 0)


def inspected(qm: QueueManager) -> None:
    look, heard = qm.inspect, Heard()
    observation = look.observe(heard.append)
    with qm.connect() as other:
        call = Call(lambda: other.get("Q", match=Match(message_id=b"none"), wait=LIMIT_SECONDS))
        until(lambda: bool(look.waits()), "the call waits")
        other.end_waits()
        assert isinstance(call.error(), WaitEnded)
    qm.browse_and_lock("Q")
    assert len(list(look.look("Q"))) == 1
    assert ([one.queue for one in look.locks()], look.order_view("Q").pending_out) == (["Q"], 1)
    assert [(one.name, one.depth) for one in look.overview("Q")] == [("Q", look.status("Q").current_depth)]
    assert (look.dropped(), look.has_unit) == ([], False)
    look.gaps("Q", b"none")
    assert "test" in {one.program.name for one in look.connections()}
    assert (look.path, look.program) == (qm._services.store.path, "test")
    assert {"inorder.look", "inorder.browse_and_lock", "inorder.waits"} <= {one.name for one in heard}
    observation.cancel()


REFUSED: dict[str, tuple[Callable[[QueueManager], object], str]] = {
    "hook": (lambda qm: qm.inspect.hook("put", print), "use listen"),
    "backup": (lambda qm: qm.admin.backup("copy.db"), INSTEAD["backup"]),
    "create_user": (lambda qm: qm.accounts.create_user("ada"), USERS),
    "alter_user": (lambda qm: qm.accounts.alter_user("ada", enabled=False), USERS),
    "delete_user": (lambda qm: qm.accounts.delete_user("ada"), USERS),
    "user": (lambda qm: qm.accounts.user("ada"), USERS),
    "users": (lambda qm: qm.accounts.users(), USERS),
    "create_token": (lambda qm: qm.accounts.create_token("ada", "ci"), USERS),
    "token": (lambda qm: qm.accounts.token("none"), USERS),
    "tokens": (lambda qm: qm.accounts.tokens(), USERS),
    "revoke_token": (lambda qm: qm.accounts.revoke_token("none"), USERS),
    "acts": (lambda qm: [*qm.accounts.acts()], INSTEAD["acts"]),
    "acting": (lambda qm: qm.accounts.acting("clear", user="ada").__enter__(), INSTEAD["begin_act"]),
    "on_behalf_of": (lambda qm: qm.accounts.on_behalf_of("ada").__enter__(), INSTEAD["set_user"]),
    "identify": (lambda qm: qm.accounts.identify(token="a.b", address="here"), USERS),
}
STORIES = (
    unit, by_hand, in_doubt, lease, confirmed, browsed, got, streamed, asked, listened, worked, administered, in_bulk,
    buried, inspected,
)  # fmt: skip
KINDS = (QueueManager, Queue, Admin, Accounts, Bulk, DeadLetters, Inspect, Lease, UnitOfWork)


def test_every_public_call_works_or_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    called, calls = set[tuple[str, str]](), set[tuple[str, str]]()
    for kind in KINDS:
        for name, function in inspect.getmembers(kind, inspect.isfunction):
            if not name.startswith("_"):
                calls.add((kind.__name__, name))
                monkeypatch.setattr(kind, name, noted(function, (kind.__name__, name), called))
    heard = Heard()
    for story in STORIES:
        with connected() as qm:
            qm.inspect.observe(heard.append)
            story(qm)
    for one in heard:
        check(one)
    with connected() as qm:
        for name, (call, instead) in REFUSED.items():
            with pytest.raises(CallerError, match=re.escape(instead)) as refused:
                call(qm)
            assert refused.value.reason is Reason.FUNCTION_NOT_SUPPORTED, name
    assert calls - called == {("Admin", "stop")}


def noted(call: Callable[..., Any], name: tuple[str, str], called: set[tuple[str, str]]) -> Callable[..., Any]:
    @functools.wraps(call)
    def made(*arguments: Any, **keywords: Any) -> Any:
        called.add(name)
        return call(*arguments, **keywords)

    return made


def test_stopping_a_server_over_the_network_is_refused() -> None:
    with connected() as qm:
        store: Any = qm._services.store
        with pytest.raises(CallerError, match=re.escape(INSTEAD["stop"])):
            RemoteStore.__getattr__(store, "stop")


def test_each_verb_that_a_remote_store_lacks_has_advice_on_what_to_do_instead() -> None:
    parts = [part for part in LocalStore.__mro__ if part.__module__.startswith("inorder.stores")]
    verbs = {name for part in parts for name in vars(part) if not name.startswith("_") and callable(vars(part)[name])}
    assert {"put", "backup"} <= verbs
    assert {name for name in verbs if not hasattr(RemoteStore, name)} == INSTEAD.keys()
