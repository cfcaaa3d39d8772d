"""Calls of every kind, to be interrupted; as a program, which does it.

    python -m tests.interrupted STORE places|signals|threads COUNT [NAME ...]

Each call, or those that are named, is interrupted so often: at so many of the places where an exception may come, by
chance; or at random times, by signals or from another thread, every third time by a burst of exceptions. The program
ends with status 0 if nothing was held after any of them, and each call still works.
"""

from __future__ import annotations

import ctypes
import faulthandler
import functools
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import FrameType, SimpleNamespace
from typing import Any

from tests.interrupting import OUTSIDE, Interruption

import inorder
from inorder import NoMessageAvailable, NotFound, QueueManager
from inorder.bulk import ClaimReader
from inorder.stores.sqlite.coordination import TURN

HANGS_AFTER_SECONDS = 60
BURST_SECONDS = 0.0001

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
    assert uid is not None
    qm.delete("Q", uid, lock_id=found.lock_id)


def confirm(qm: QueueManager) -> None:
    result = qm.put("Q", b"x", confirm_id=7)
    qm.confirm_put("Q", result.uid, confirm_id=7)


def undo(qm: QueueManager) -> None:
    qm.get("Q", confirm_id=9)
    qm.undo("Q", confirm_id=9)


opening: list[QueueManager] = []  # an exception at the end of `open`, say, leaves a handle open that nobody knows


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
    browsing.close()  # what comes into a loop that is dropped is lost


def clear(qm: QueueManager) -> None:
    qm.close_queue("Q")
    qm.clear_queue("Q")


CALLS: dict[str, Callable[[QueueManager], object]] = {
    "put": put,
    "put_many": lambda qm: qm.put_many("Q", [b"x"] * 3),
    "get": lambda qm: qm.get("Q"),
    "get_many": lambda qm: qm.get_many("Q", 2),
    "strict get": lambda qm: qm.get("Q", read_order="strict"),
    "get of a group": lambda qm: list(qm.get_group("Q")),
    "get that waits": wait,
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
    "status": lambda qm: qm.status("Q"),
    "overview": lambda qm: qm.overview(),
    "look": lambda qm: list(qm.look("Q", most=2)),
    "clear": clear,
}


def ready(qm: QueueManager) -> None:
    """What each call finds: some messages, none of them held, and no unit."""
    qm.back_out()
    while opening:
        opening.pop().close()
    opening.append(qm.connect())
    if "NEW" in [one.name for one in qm.queues()]:
        qm.delete_queue("NEW", purge=True)
    for unit in qm.units():
        if unit.kind == "prepared":
            qm.settle(unit.name, "back_out")
        elif unit.kind == "confirm":
            qm.undo("Q", confirm_id=int(unit.name))
        elif unit.kind == "lock":
            qm.release_lock("Q", lock_id=int(unit.name))
    with suppress(NotFound):
        qm.release_claims("Q", "reader")
    depth = qm.status("Q").current_depth
    if depth > 3:
        qm.get_many("Q", depth - 3, complete=False)
    qm.put_many("Q", [b"x"] * (3 - depth))


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


class Probe:
    """Another process, which sees whether this one keeps writers from the store."""

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


class Meter:
    """How long a call takes, so that exceptions come into it."""

    def __init__(self, qm: QueueManager) -> None:
        self.seconds = dict.fromkeys(CALLS, 0.0)
        for name, call in CALLS.items():
            ready(qm)
            began = time.perf_counter()
            call(qm)
            self.seconds[name] = time.perf_counter() - began


class Alarm:
    """Exceptions by SIGALRM."""

    def __init__(self) -> None:
        self.came = self._left = 0
        signal.signal(signal.SIGALRM, self._ring)

    def _ring(self, _number: int, _frame: FrameType | None) -> None:
        if self._left:
            self._left -= 1
            self.came += 1
            raise random.choice(OUTSIDE)

    def during(self, call: Callable[[], object], after_seconds: float, exceptions: int) -> None:
        """Makes the call; so many exceptions come into it, close together."""
        try:
            try:
                self._left = exceptions
                signal.setitimer(signal.ITIMER_REAL, after_seconds, BURST_SECONDS)
                call()
            finally:
                self._left = 0  # no exception can come before this
        except OUTSIDE:
            pass
        signal.setitimer(signal.ITIMER_REAL, 0)


def by_signals(qm: QueueManager, count: int, names: Sequence[str]) -> int:
    """Interrupts by SIGALRM; how many exceptions came."""
    meter, alarm = Meter(qm), Alarm()
    for name in names:
        call = functools.partial(CALLS[name], qm)
        for nth in range(count):
            ready(qm)
            after = 1e-6 + random.random() * meter.seconds[name]
            alarm.during(call, after, 3 if nth % 3 == 0 else 1)
            faulthandler.dump_traceback_later(HANGS_AFTER_SECONDS, exit=True)
    return alarm.came


def in_peace(act: Callable[[], object]) -> None:
    """Does it at last without an exception: one may still be on its way."""
    while True:
        with suppress(*OUTSIDE):
            act()
            return


def by_another_thread(qm: QueueManager, count: int, names: Sequence[str]) -> int:
    """Interrupts a thread by `PyThreadState_SetAsyncExc`; how many exceptions came."""
    meter, state = Meter(qm), SimpleNamespace(inside=False, came=0, done=False, seconds=0.0)

    def calls() -> None:
        for name in names:
            call = CALLS[name]
            for _ in range(count):
                in_peace(lambda: ready(qm))
                state.seconds = meter.seconds[name]
                try:
                    state.inside = True
                    call(qm)
                    state.inside = False
                except OUTSIDE:
                    state.inside = False
                    state.came += 1
                faulthandler.dump_traceback_later(HANGS_AFTER_SECONDS, exit=True)

    def surely() -> None:
        try:
            calls()
        finally:
            state.done = True

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


def at_places(qm: QueueManager, count: int, names: Sequence[str]) -> int:
    """Interrupts at so many places of each call; how many exceptions came."""
    came, probe = 0, Probe(qm._store.path)  # type: ignore[attr-defined]
    with qm.connect() as other, ThreadPoolExecutor(1) as thread:
        for name in names:
            call = functools.partial(CALLS[name], qm)
            ready(qm)
            call()
            ready(qm)
            counting = Interruption()
            counting.during(call)
            every = range(counting.places)
            for at in sorted(random.Random(name).sample(every, min(count, len(every)))):
                ready(qm)
                interruption = Interruption(at)
                try:
                    interruption.during(call)
                except OUTSIDE:
                    came += 1
                else:
                    assert not interruption.where, f"{name}: the caller has not got it, {interruption.where}"
                about = f"{name}: after an exception at place {at}, {interruption.where}"
                assert probe() == "free", about
                try:
                    thread.submit(other.put, "OTHER", b"x").result(timeout=HANGS_AFTER_SECONDS / 2)
                    ready(qm)
                    call()
                except BaseException as error:
                    raise AssertionError(about) from error
                faulthandler.dump_traceback_later(HANGS_AFTER_SECONDS, exit=True)
    probe.end()
    return came


def main(path: str, how: str, count: str, *names: str) -> None:
    faulthandler.dump_traceback_later(HANGS_AFTER_SECONDS, exit=True)
    chosen = names or tuple(CALLS)
    with inorder.connect(path) as qm:
        if how == "places":
            came = at_places(qm, int(count), chosen)
        elif how == "signals":
            came = by_signals(qm, int(count), chosen)
        else:
            came = by_another_thread(qm, int(count), chosen)
        ready(qm)
        for name in chosen:
            CALLS[name](qm)
            ready(qm)
        print(came, qm.check())


if __name__ == "__main__":
    main(*sys.argv[1:])
