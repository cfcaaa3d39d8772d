"""Calls of every kind, and a program that interrupts them.

    python -m tests.helpers.interrupted STORE places|signals|threads COUNT [NAME ...]

Each call, or each named call, is interrupted COUNT times: at random places where an exception may be raised, or
at random times, from another thread or by signals, which raise a burst of exceptions every third time. The program ends
with status 0 if nothing was held after any exception, and each call still works.
"""

from __future__ import annotations

import ctypes
import faulthandler
import functools
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any, Protocol

from tests.helpers.interrupting import OUTSIDE, Interruption
from tests.helpers.support import until
from tests.stores.postgresql.server import sessions

import inorder
from inorder import Match, MessageType, NoMessageAvailable, QueueManager
from inorder.client.bulk import ClaimReader
from inorder.errors import ConnectionBroken, NotFound
from inorder.stores.engine import getting
from inorder.stores.engine.incremental_search import Ahead
from inorder.stores.sqlite.coordination import TURN

HANGS_AFTER_SECONDS = 240
BURST_SECONDS = 0.0001
PROGRAM = f"interrupted {os.getpid()}"
ON_ITS_WAY_SECONDS = 60.0

# ---- calls


def put(qm: QueueManager) -> None:
    qm.put("Q", b"x")


def unit(qm: QueueManager) -> None:
    with qm.unit_of_work():
        qm.put("Q", b"x")
        qm.get("Q")


def given_up(qm: QueueManager) -> None:
    with suppress(ZeroDivisionError), qm.unit_of_work():
        qm.get("Q")
        raise ZeroDivisionError


def group(qm: QueueManager) -> None:
    with qm.group("Q") as writer:
        writer.put(b"1")
        writer.put(b"2")


def lock_and_delete(qm: QueueManager) -> None:
    found = qm.browse_and_lock("Q", most=1)
    uid = found.messages[0].uid
    qm.delete("Q", uid, lock_id=found.lock_id)


def confirm(qm: QueueManager) -> None:
    result = qm.put("Q", b"x", confirm_id=7)
    qm.confirm_put("Q", result.uid, confirm_id=7)


def undo(qm: QueueManager) -> None:
    qm.get("Q", confirm_id=9)
    qm.undo("Q", confirm_id=9)


def at_once(qm: QueueManager) -> None:
    promises = qm.internals.promises()
    promises.at_once(lambda: qm.put("Q", b"x"))
    promises.at_once(lambda: qm.internals.get_if("Q", lambda message: None))
    promises.keep()


opening: list[QueueManager] = []  # an exception at the end of `open`, for instance, leaves a handle open


def handle(qm: QueueManager) -> None:
    with opening[-1].open("Q", input="as_queue", output=True) as queue:
        queue.put(b"x")
        queue.get()


def wait(qm: QueueManager) -> None:
    with suppress(NoMessageAvailable):
        qm.get("EMPTY", wait=0.001)


def definitions(qm: QueueManager) -> None:
    qm.create_queue("NEW")
    qm.alter_queue("NEW", max_depth=10)
    qm.delete_queue("NEW")


def connection(qm: QueueManager) -> None:
    with qm.connect() as other:
        other.put("Q", b"x")


def prepared(qm: QueueManager) -> None:
    with qm.unit_of_work() as one:
        qm.put("Q", b"x")
        one.prepare("order-17")
    qm.settle("order-17", "commit")


def claim(qm: QueueManager) -> None:
    with opening[-1].open("Q", input="as_queue") as queue:
        reader = ClaimReader(queue, "reader")
        settled = reader.begin().settled
        taken = reader.claim(settled, most=1)
        assert taken is not None
        for part in reader.plan(settled, taken.number):
            list(reader.read(part))
        reader.settle(taken.number)


def browse(qm: QueueManager, **options: Any) -> None:
    browsing = qm.browse("Q", **options)
    next(browsing)
    browsing.close()  # an exception raised while an abandoned loop is finalized would be lost


def clear(qm: QueueManager) -> None:
    qm.close_queue("Q")
    qm.admin.clear_queue("Q")


def far_get(qm: QueueManager) -> None:
    getting.NOT_YET = Ahead(asks=0)  # type: ignore[attr-defined]
    qm.get("Q", selector="JMSPriority < 9")


def request(qm: QueueManager) -> None:
    with suppress(NoMessageAvailable):
        qm.request("EMPTY", b"x", timeout=0.001)


def serve(qm: QueueManager) -> None:
    qm.put("EMPTY", b"x", message_type=MessageType.REQUEST, reply_to_queue="Q", expiry=60)
    qm.serve("EMPTY", lambda asked: b"y", wait=0)


CALLS: dict[str, Callable[[QueueManager], object]] = {
    "put": put,
    "put_many": lambda qm: qm.put_many("Q", [b"x"] * 3),
    "get": lambda qm: qm.get("Q"),
    "get_many": lambda qm: qm.get_many("Q", 2),
    "strict get": lambda qm: qm.get("Q", read_order="strict"),
    "get of a group": lambda qm: list(qm.get_group("Q")),
    "get that waits": wait,
    "get that looks ahead": far_get,
    "browse_and_lock that looks ahead": lambda qm: qm.browse_and_lock("Q", Match(selector="JMSPriority < 9")),
    "request": request,
    "serve": serve,
    "unit that commits": unit,
    "unit that backs out": given_up,
    "prepared unit": prepared,
    "group": group,
    "browse": browse,
    "strict browse": lambda qm: browse(qm, read_order="strict"),
    "browse_and_lock and delete": lock_and_delete,
    "put with a confirm id": confirm,
    "undo of a confirm id": undo,
    "handle": handle,
    "definitions": definitions,
    "connection": connection,
    "claim": claim,
    "status": lambda qm: qm.inspect.status("Q"),
    "overview": lambda qm: qm.inspect.overview(),
    "look": lambda qm: list(qm.inspect.look("Q", most=2)),
    "clear": clear,
    "retry now": lambda qm: qm.admin.retry_now("Q"),
    "calls that are made at once": at_once,
    "get that may be refused": lambda qm: qm.internals.get_if("Q", lambda message: None),
}


def ready(qm: QueueManager) -> None:
    """Restores the state that each call expects: three messages, none of them held, and no unit."""
    qm.back_out()
    while opening:
        opening.pop().close()
    opening.append(inorder.connect(qm._services.store))
    if "NEW" in [one.name for one in qm.queues()]:
        qm.delete_queue("NEW", purge=True)
    for unit in qm.inspect.units():
        if unit.kind == "prepared":
            qm.settle(unit.name, "back_out")
        elif unit.kind == "confirm":
            qm.undo("Q", confirm_id=int(unit.name))
        elif unit.kind == "lock":
            qm.admin.release_lock("Q", lock_id=int(unit.name))
    with suppress(NotFound):
        qm.bulk.release_claims("Q", "reader")
    depth = qm.inspect.status("Q").current_depth
    if depth > 3:
        qm.get_many("Q", depth - 3, complete=False)
    qm.put_many("Q", [b"x"] * (3 - depth))


# ---- for tests

PORTIONS = 4  # each of them is a test
ALL_HAVE = 100  # every call has at least this number of places


def program_on(store: Path | str, qm: QueueManager, how: str, count: int, *names: str) -> subprocess.Popen[str]:
    """Starts the program in a process of its own, since CPython miscounts its recursion when a trace raises."""
    for name in ("Q", "OTHER", "EMPTY"):
        qm.create_queue(name)
    arguments = [sys.executable, "-m", "tests.helpers.interrupted", str(store), how, str(count), *names]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


def disturbs_nobody(store: Path | str, how: str, count: int) -> None:
    """Interrupts each call `count` times, while a writer in this process puts and gets without an error."""
    with inorder.connect(store) as qm:
        program = program_on(store, qm, how, count)
        puts = gets = 0
        while program.poll() is None:
            qm.put("OTHER", b"%d" % puts)
            puts += 1
            assert qm.get("OTHER").body == b"%d" % gets
            gets += 1
        assert program.stdout is not None
        with program.stdout as output:
            said = output.read()
        assert program.returncode == 0, f"{how}: see what it printed, and {said!r}"
        came, problems = said.split(maxsplit=1)
        assert int(came) > count, "hardly any exception came into a call"
        assert problems.strip() == "[]"


def leaves_nothing_held(store: Path | str, places: int, portion: int) -> None:
    """Interrupts each call of a portion at `places` places, and checks that nothing is held afterwards."""
    with inorder.connect(store) as qm:
        program = program_on(store, qm, "places", places, *list(CALLS)[portion::PORTIONS])
        said, _ = program.communicate()
        assert program.returncode == 0, f"see what it printed, and {said!r}"
        came, problems = said.split(maxsplit=1)
        assert int(came) > min(places, ALL_HAVE) // 2, "hardly any exception came into a call"
        assert problems.strip() == "[]"


# ---- the program


PROBE = f"""
import fcntl, os, sys
import apsw
path = sys.argv[1]
sidecar = os.open(path + "-lock", os.O_RDWR)
connection = apsw.Connection(path)
for _ in sys.stdin:
    try:
        fcntl.lockf(sidecar, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, {TURN})
    except OSError:
        print("the turn is held", flush=True)
        continue
    fcntl.lockf(sidecar, fcntl.LOCK_UN, 1, {TURN})
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    except apsw.BusyError:
        print("a transaction is open", flush=True)
        continue
    print("free", flush=True)
"""


class Probe(Protocol):
    """Returns whether this process blocks others from the store: "free", or the reason."""

    def __call__(self) -> str: ...

    def end(self) -> None: ...


class ProcessProbe:
    """For a file: another process, since file locks belong to a process."""

    def __init__(self, path: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROBE, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(file=self.process.stdin, flush=True)
        return self.process.stdout.readline().strip()

    def end(self) -> None:
        self.process.communicate(timeout=HANGS_AFTER_SECONDS)


SESSIONS = """
SELECT 'a session is ' || state FROM pg_stat_activity WHERE application_name = %s AND state LIKE '%%in transaction%%'
UNION ALL
SELECT 'a session holds ' || l.mode FROM pg_stat_activity a JOIN pg_locks l ON l.pid = a.pid
WHERE a.application_name = %s AND l.granted AND l.virtualtransaction <> '-1/0' AND l.locktype = 'transactionid'
"""


class ServerProbe:
    """For a server: a session that examines the sessions of this process."""

    def __init__(self, url: str) -> None:
        import psycopg

        self._connection = psycopg.connect(url.partition("?")[0], autocommit=True)
        self._name = f"inorder {os.getpid()}: {PROGRAM}"

    def __call__(self) -> str:
        """Waits for transactions that are about to end: nothing waits for the end of one that has changed nothing."""
        until = time.monotonic() + ON_ITS_WAY_SECONDS
        while found := self._connection.execute(SESSIONS, (self._name, self._name)).fetchall():
            if time.monotonic() > until:
                return str(found[0][0])
        return "free"

    def end(self) -> None:
        self._connection.close()


def probe_of(store: str) -> Probe:
    return ServerProbe(store) if "://" in store else ProcessProbe(store)


def comes_from_outside(error: BaseException | None) -> bool:
    """Whether an exception from outside was the first cause."""
    while error is not None and not isinstance(error, OUTSIDE):
        error = error.__context__
    return error is not None


class Session:
    """A connection to the store, made again when it is lost.

    Attributes:
        losses: how often it was lost.
    """

    def __init__(self, store: str) -> None:
        self._store, self.losses = store, 0
        self.qm = inorder.connect(store, program=PROGRAM)

    def end(self) -> None:
        opening.clear()
        self.qm.internals.abandon()
        if "://" in self._store:
            until(lambda: not sessions(self._store, PROGRAM), "the server has noticed")

    def begin_anew(self) -> None:
        """Makes another connection: an exception at the end of `open` leaves a handle that no code knows."""
        self.end()
        self.qm = inorder.connect(self._store, program=PROGRAM)

    def is_ready(self) -> QueueManager:
        """Returns a connection whose queues have the state that calls expect."""
        try:
            ready(self.qm)
        except ConnectionBroken:
            self.losses += 1
            self.begin_anew()
            ready(self.qm)
        return self.qm


class Meter:
    """Measures how long each call takes, so that exceptions are raised during it."""

    def __init__(self, qm: QueueManager) -> None:
        self.seconds = dict.fromkeys(CALLS, 0.0)
        for name, call in CALLS.items():
            ready(qm)
            began = time.perf_counter()
            call(qm)
            self.seconds[name] = time.perf_counter() - began


class Alarm:
    def __init__(self) -> None:
        self.came = self._left = 0
        signal.signal(signal.SIGALRM, self._ring)

    def _ring(self, _number: int, _frame: FrameType | None) -> None:
        if self._left:
            self._left -= 1
            self.came += 1
            raise random.choice(OUTSIDE)

    def during(self, call: Callable[[], object], after_seconds: float, exceptions: int) -> None:
        """Makes the call, and raises exceptions during it, in quick succession."""
        try:
            try:
                self._left = exceptions
                signal.setitimer(signal.ITIMER_REAL, after_seconds, BURST_SECONDS)
                call()
            finally:
                self._left = 0  # no exception is raised after this
        except OUTSIDE:
            pass
        signal.setitimer(signal.ITIMER_REAL, 0)


def by_signals(session: Session, count: int, names: Sequence[str]) -> int:
    """Interrupts by SIGALRM; returns the number of exceptions."""
    meter, alarm = Meter(session.is_ready()), Alarm()
    for name in names:
        session.begin_anew()
        for nth in range(count):
            qm = session.is_ready()
            after = 1e-6 + random.random() * meter.seconds[name]
            with suppress(ConnectionBroken):  # a call that makes several calls, on a connection lost between them
                alarm.during(functools.partial(CALLS[name], qm), after, 3 if nth % 3 == 0 else 1)
            faulthandler.dump_traceback_later(HANGS_AFTER_SECONDS, exit=True)
    return alarm.came


def in_peace(act: Callable[[], object]) -> None:
    """Repeats the act until no exception interrupts it: a late one may still arrive."""
    while True:
        with suppress(*OUTSIDE):
            act()
            return


def by_another_thread(session: Session, count: int, names: Sequence[str]) -> int:
    """Interrupts a thread by `PyThreadState_SetAsyncExc`; returns the number of exceptions."""
    meter, state = Meter(session.is_ready()), SimpleNamespace(inside=False, came=0, done=False, seconds=0.0)
    turns = iter([(name, number) for name in names for number in range(count)])

    def calls() -> None:
        for name, number in turns:
            if number == 0:
                in_peace(session.begin_anew)
            in_peace(session.is_ready)
            state.seconds = meter.seconds[name]
            try:
                state.inside = True
                CALLS[name](session.qm)
                state.inside = False
            except (*OUTSIDE, ConnectionBroken):
                state.inside = False
                state.came += 1
            faulthandler.dump_traceback_later(HANGS_AFTER_SECONDS, exit=True)

    def surely() -> None:
        while not state.done:
            try:
                calls()
                state.done = True
            except OUTSIDE:  # it arrived late, after the call
                state.inside = False
            except BaseException:
                state.done = True
                raise

    thread = threading.Thread(target=surely)
    thread.start()
    while not state.done:
        if state.inside:
            time.sleep(random.random() * state.seconds)
            if state.inside:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(thread.ident or 0), ctypes.py_object(random.choice(OUTSIDE))
                )
        time.sleep(0.0001)
    thread.join()
    return int(state.came)


def at_places(store: str, count: int, names: Sequence[str]) -> int:
    """Interrupts each call at `count` of its places; returns the number of exceptions."""
    came, probe, session = 0, probe_of(store), Session(store)
    with inorder.connect(store) as other, ThreadPoolExecutor(1) as thread:
        for name in names:
            call = CALLS[name]
            call(session.is_ready())
            qm, counting = session.is_ready(), Interruption()
            counting.during(functools.partial(call, qm))
            every = range(counting.places)
            for at in sorted(random.Random(name).sample(every, min(count, len(every)))):
                qm, interruption = session.is_ready(), Interruption(at)
                try:
                    interruption.during(functools.partial(call, qm))
                except OUTSIDE:
                    came += 1
                except ConnectionBroken as error:  # the end of a unit or of a handle, on a connection that was lost
                    if not comes_from_outside(error):
                        raise
                    came += 1
                else:
                    assert not interruption.where, f"{name}: the caller has not got it, {interruption.where}"
                about = f"{name}: after an exception at place {at}, {interruption.where}"
                assert (found := probe()) == "free", f"{about}: {found}"
                try:
                    thread.submit(other.put, "OTHER", b"x").result(timeout=HANGS_AFTER_SECONDS / 2)
                    call(session.is_ready())
                except BaseException as error:
                    raise AssertionError(about) from error
                faulthandler.dump_traceback_later(HANGS_AFTER_SECONDS, exit=True)
    probe.end()
    session.end()
    assert session.losses <= came / 4, f"{session.losses} connections were lost after {came} exceptions"
    return came


def main(store: str, how: str, count: str, *names: str) -> None:
    faulthandler.dump_traceback_later(HANGS_AFTER_SECONDS, exit=True)
    chosen, came = names or tuple(CALLS), 0
    if how == "places":
        came = at_places(store, int(count), chosen)
    elif how == "signals":
        came = by_signals(session := Session(store), int(count), chosen)
        session.end()
    else:
        came = by_another_thread(session := Session(store), int(count), chosen)
        session.end()
    with inorder.connect(store) as qm:
        ready(qm)
        for name in chosen:
            CALLS[name](qm)
            ready(qm)
        print(came, qm.admin.check())


if __name__ == "__main__":
    main(*sys.argv[1:])
