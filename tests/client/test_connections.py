"""The end of connections: closed, left by an exception, forgotten, forked; and one call at a time."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.public_calls import BY_NAME, ON_A_HANDLE, called
from tests.helpers.support import Call, Stores, bodies, memory_alone, waiting

from inorder import FOREVER, Queue, QueueManager, connect, errors
from inorder.client import services
from inorder.client.services import Services
from inorder.stores.engine.operation import Operation
from inorder.stores.memory import MemoryStore
from inorder.testing import ManualClock
from inorder.testing.remote import the_server
from inorder.testing.stores import RestartableStore, make_store


@pytest.fixture
def qm(qm: QueueManager) -> QueueManager:
    qm.put_many("Q", [b"1", b"2"])
    return qm


def work(manager: QueueManager) -> None:
    """Opens a unit of work with a get and a put, a lock, and a queue exclusively."""
    manager.get("Q", syncpoint=True)
    manager.put("Q", b"3", syncpoint=True)
    manager.close_queue("Q")
    manager.open("Q", input="exclusive", browse=True).browse_first(lock=True)


def seen(qm: QueueManager) -> list[tuple[bytes, int]]:
    """The bodies and backout counts on Q."""
    return [(message.body, message.backout_count) for message in qm.browse("Q")]


BACKED_OUT = [(b"1", 1), (b"2", 0)]


def leave(other: QueueManager) -> None:
    with pytest.raises(ZeroDivisionError), other:
        raise ZeroDivisionError


def abandon(other: QueueManager) -> None:
    other.internals.abandon()
    other.internals.abandon()
    other.close()


def forget(other: Any) -> None:
    other.itself = other


@pytest.mark.parametrize("end", [leave, abandon, forget])
def test_the_open_work_of_a_connection_is_backed_out_when_it_ends(qm: QueueManager, end: Callable[[Any], None]) -> None:
    other = qm.connect()
    work(other)
    end(other)
    del other
    gc.collect()
    assert (seen(qm), qm.inspect.units(), qm.inspect.status("Q").open_input_count) == (BACKED_OUT, [], 0)


def test_an_exception_from_outside_cannot_interrupt_the_finalizer_of_a_connection(qm: QueueManager) -> None:
    """Python discards an exception that arrives in a finalizer, so the finalizer runs no Python function."""
    other, ran = qm.connect(), list[str]()
    work(other)
    gc.disable()
    sys.setprofile(lambda frame, event, _: ran.append(frame.f_code.co_name) if event == "call" else None)
    del other
    sys.setprofile(None)
    gc.enable()
    assert ran == []
    assert (seen(qm), qm.inspect.units()) == (BACKED_OUT, [])


AT_EXIT = """
import atexit
atexit.register(lambda: print(store.units(), store.status("Q").current_depth))
import inorder
from inorder.stores.{kind} import {name} as Store
store = Store({path})
qm = inorder.connect(store)
qm.create_queue("Q")
qm.put("Q", b"1", syncpoint=True)
"""


@pytest.mark.parametrize(("kind", "name", "path"), [("memory", "MemoryStore", ""), ("sqlite", "SqliteStore", "'file'")])
def test_the_exit_of_the_interpreter_backs_out_open_units(
    kind: str, name: str, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    program = AT_EXIT.format(kind=kind, name=name, path=path)
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["[]", "0"]


def test_a_program_read_from_standard_input_is_named_after_its_interpreter() -> None:
    typed = "from inorder.client.programs import running_script\nprint(running_script())"
    done = subprocess.run([sys.executable], input=typed, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == Path(sys.executable).name


def test_closing_a_connection_inside_a_unit_commits_it(qm: QueueManager) -> None:
    with qm.connect() as other, other.unit_of_work() as unit:
        other.put("Q", b"3")
        other.close()
    assert (unit.status, bodies(qm)) == ("committed", [b"1", b"2", b"3"])


REFUSED_BEFORE = {"inspect.unique_ids"}  # it needs a confirm id or a lock id
CALLS: list[Callable[[QueueManager], object]] = [
    *(lambda qm, name=name: called(attrgetter(name)(qm), "Q") for name in BY_NAME if name not in REFUSED_BEFORE),
    lambda qm: qm.create_queue("N"),
    lambda qm: qm.alter_queue("Q", max_depth=5),
    lambda qm: qm.get("Q", wait=5),
    lambda qm: qm.queues(),
    lambda qm: qm.admin.manager_attributes(),
    lambda qm: qm.admin.alter_manager(max_uncommitted=5),
    lambda qm: qm.admin.discard_expired(),
    lambda qm: qm.unit_of_work().__enter__(),
    lambda qm: qm.commit(),
    lambda qm: qm.back_out(),
    lambda qm: qm.prepare("P"),
    lambda qm: qm.settle("P", "commit"),
    lambda qm: qm.inspect.units(),
    lambda qm: qm.inspect.hook("put", print),
    lambda qm: qm.close_queue("Q"),
]
HANDLE_CALLS: list[Callable[[Queue], object]] = [
    *(lambda handle, name=name: called(getattr(handle, name)) for name in ON_A_HANDLE),
    lambda handle: handle.set(get_allowed=False),
]


@pytest.mark.parametrize("handle_was_open", [True, False])
def test_a_closed_connection_refuses_every_call(qm: QueueManager, handle_was_open: bool) -> None:
    for nth, call in enumerate([lambda qm: qm.admin.stop(), *CALLS]):
        other = qm.connect()
        if handle_was_open or call is CALLS[-1]:  # `close_queue` needs an open handle
            other.put("Q", other.get("Q"))
        before = bodies(qm)
        other.close()
        with pytest.raises(errors.ConnectionClosed) as raised:
            call(other)
        assert raised.value.reason == 2018, nth
        assert (bodies(qm), [queue.name for queue in qm.queues()]) == (before, ["Q"]), nth


def test_a_handle_of_a_closed_connection_refuses_every_call(qm: QueueManager) -> None:
    other = qm.connect()
    handle = other.open("Q")
    other.close()
    for call in HANDLE_CALLS:
        with pytest.raises(errors.ConnectionClosed):
            call(handle)
    assert bodies(qm) == [b"1", b"2"]


def test_the_block_of_a_handle_may_end_after_its_connection_is_closed(qm: QueueManager) -> None:
    other = qm.connect()
    with other.open("Q") as handle:
        other.close()
    assert not handle.closed


def test_after_a_restart_a_connection_is_broken(store: RestartableStore) -> None:
    qm = connect(store)
    qm.create_queue("Q")
    handle = qm.open("Q")
    store.restart()
    calls: list[Callable[[], object]] = [lambda: qm.put("Q", b"1"), qm.commit, handle.get, lambda: qm.open("Q")]
    for call in calls:
        with pytest.raises(errors.ConnectionBroken) as raised:
            call()
        assert raised.value.reason == 2009
    qm.internals.abandon()


def test_a_call_of_a_second_thread_during_a_wait_is_refused_with_2219(qm: QueueManager) -> None:
    other = qm.connect()
    other.put("Q", other.get("Q"))
    qm.get_many("Q", 2)
    handle = other.open("Q")
    wait = waiting(other, lambda: other.get("Q", wait=FOREVER).body)
    calls = [partial(call, other) for call in (*CALLS, QueueManager.close)]
    for call in [*calls, *(partial(call, handle) for call in HANDLE_CALLS)]:
        error = Call(call).error()
        assert isinstance(error, errors.CallInProgress), call
        assert error.reason == 2219
        assert "qm.connect()" in str(error), "the remedy"
    qm.put("Q", b"3")
    assert wait.result() == b"3"
    assert [queue.name for queue in qm.queues()] == ["Q"]
    other.put("Q", b"4")
    other.close()


def test_a_browse_loop_dropped_during_a_call_is_closed_by_the_next_call(
    stores: Stores, qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = Operation.commit
    with connect(stores.make()) as other, other.connect() as looks_on:
        looks_on.create_queue("Q")
        looks_on.put("Q", b"1")
        loops = [other.browse("Q")]
        next(loops[0])

        def drop(operation: Operation) -> None:
            monkeypatch.undo()
            loops.clear()
            commit(operation)

        monkeypatch.setattr(Operation, "commit", drop)
        qm.put("Q", b"2")
        assert not loops
        with pytest.raises(errors.ObjectInUse):
            looks_on.delete_queue("Q", purge=True)
        assert len(other.queues()) == 1
        looks_on.delete_queue("Q", purge=True)


def test_a_default_handle_whose_close_was_refused_can_be_closed_later(qm: QueueManager) -> None:
    qm.create_queue("R")
    other = qm.connect()
    other.put("Q", b"3")
    wait = waiting(other, lambda: other.get("R", wait=FOREVER).body)
    assert isinstance(Call(lambda: other.close_queue("Q")).error(), errors.CallInProgress)
    qm.put("R", b"r")
    assert wait.result() == b"r"
    other.close_queue("Q")
    assert qm.inspect.status("Q").open_output_count == 1  # the handle of qm


def in_child(act: Callable[[], None]) -> int:
    """Runs `act` in a forked child; returns the exit code: 0 if `act` returned, 1 if it raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about threads, which this child never uses
        child = os.fork()
    if child == 0:
        code = 1
        try:
            act()
            code = 0
        finally:
            os._exit(code)
    _, status = Call(lambda: os.waitpid(child, 0)).result()
    return os.waitstatus_to_exitcode(status)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_connection_and_its_handle_refuse_every_call(qm: QueueManager) -> None:
    qm.put("Q", b"3", syncpoint=True)
    handle = qm.open("Q")

    def act() -> None:
        for call in (*CALLS, QueueManager.close):
            with pytest.raises(errors.ForkedConnection):
                call(qm)
        for use in HANDLE_CALLS:
            with pytest.raises(errors.ForkedConnection):
                use(handle)

    assert in_child(act) == 0
    qm.commit()
    assert handle.get().body == b"1"
    assert bodies(qm) == [b"2", b"3"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_that_abandons_a_connection_does_not_end_it(qm: QueueManager) -> None:
    qm.put("Q", b"3", syncpoint=True)

    assert in_child(qm.internals.abandon) == 0
    qm.commit()
    assert bodies(qm) == [b"1", b"2", b"3"]


@memory_alone  # a child has no copy of a store in a file
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_that_abandons_a_connection_does_not_change_its_copy_of_the_memory(qm: QueueManager) -> None:
    qm.put("Q", b"3", syncpoint=True)

    def act() -> None:
        store: Any = qm._store  # its operations are refused in a child
        before = store.backend.overview(0.0)
        qm.internals.abandon()
        assert store.backend.overview(0.0) == before

    assert in_child(act) == 0


def test_a_call_after_a_stop_reports_the_stop_even_if_the_store_is_already_closed(kind: str) -> None:
    """A call that the stop wakes may run only after the store is closed."""
    store = make_store(kind, ManualClock())
    qm = connect(store, program="test")
    store.stop()
    store.close_store()
    with pytest.raises(errors.QueueManagerStopping):
        qm.queues()


@pytest.mark.parametrize("place", [":memory:", "orders.db"])
def test_daemon_threads_that_the_interpreter_ends_print_no_error(tmp_path: Path, place: str) -> None:
    code = """
import sys, threading
import inorder
qm = inorder.connect(sys.argv[1])
qm.create_queue("Q")
begun = threading.Semaphore(0)
def work():
    with qm.connect() as mine:
        while True:
            mine.put("Q", b"1")
            begun.release()
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
for _ in range(30):
    begun.acquire()
"""
    ended = subprocess.run([sys.executable, "-c", code, place], cwd=tmp_path, capture_output=True, check=True)
    assert ended.stderr == b""


class Disturbed(weakref.WeakSet[Services]):
    """Adds a member to itself during its first iteration, as another thread could."""

    latecomer: Services | None = None

    def __iter__(self) -> Iterator[Services]:
        for one in super().__iter__():
            if self.latecomer is not None:
                self.add(self.latecomer)
                self.latecomer = None
            yield one


def test_a_connection_can_be_made_while_another_thread_makes_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each connection over the network has its own store object, and connecting looks through those of all others."""
    first, second = Services(MemoryStore("A")), Services(MemoryStore("B"))
    disturbed = Disturbed([first])
    disturbed.latecomer = second
    monkeypatch.setattr(services, "_all_services", disturbed)
    server = the_server(os.getpid())
    with server.serving(MemoryStore("C")) as token, connect(server.url, token=token):
        assert second in disturbed
