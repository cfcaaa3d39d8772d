"""Calls of every kind, to be interrupted; as a program, by signals and from another thread at random times.

    python -m tests.interrupted STORE signals|threads COUNT

Each call is interrupted that often, every third time by a burst of exceptions. The program ends with status 0 if each
call still works after it, nobody got a message twice, and nothing is missing that an interrupted get has not taken.
"""

from __future__ import annotations

import ctypes
import faulthandler
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType, SimpleNamespace
from typing import Any

from tests.interrupting import Outside

import inorder
from inorder import NoMessageAvailable, NotFound, QueueManager
from inorder.bulk import ClaimReader

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


def handle(qm: QueueManager) -> None:
    with qm.open("Q", input="as_queue", output=True) as queue:
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
    with qm.open("Q", input="as_queue") as queue:
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
            raise Outside

    def during(self, call: Callable[[], object], after_seconds: float, exceptions: int) -> None:
        """Makes the call; so many exceptions come into it, close together."""
        try:
            try:
                self._left = exceptions
                signal.setitimer(signal.ITIMER_REAL, after_seconds, BURST_SECONDS)
                call()
            finally:
                self._left = 0  # no exception can come before this
        except Outside:
            pass
        signal.setitimer(signal.ITIMER_REAL, 0)


def by_signals(qm: QueueManager, count: int) -> int:
    """Interrupts by SIGALRM; how many exceptions came."""
    meter, alarm = Meter(qm), Alarm()
    for name, call in CALLS.items():
        for nth in range(count):
            ready(qm)
            after = 1e-6 + random.random() * meter.seconds[name]
            alarm.during(lambda call=call: call(qm), after, 3 if nth % 3 == 0 else 1)  # type: ignore[misc]
            faulthandler.dump_traceback_later(HANGS_AFTER_SECONDS, exit=True)
    return alarm.came


def in_peace(act: Callable[[], object]) -> None:
    """Does it at last without an exception: one may still be on its way."""
    while True:
        with suppress(Outside):
            act()
            return


def by_another_thread(qm: QueueManager, count: int) -> int:
    """Interrupts a thread by `PyThreadState_SetAsyncExc`; how many exceptions came."""
    meter, state = Meter(qm), SimpleNamespace(inside=False, came=0, done=False, seconds=0.0)

    def calls() -> None:
        for name, call in CALLS.items():
            for _ in range(count):
                in_peace(lambda: ready(qm))
                state.seconds = meter.seconds[name]
                try:
                    state.inside = True
                    call(qm)
                    state.inside = False
                except Outside:
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
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(Outside))
        time.sleep(0.0001)
    thread.join()
    return int(state.came)


def main(path: str, how: str, count: str) -> None:
    faulthandler.dump_traceback_later(HANGS_AFTER_SECONDS, exit=True)
    with inorder.connect(path) as qm:
        came = (by_signals if how == "signals" else by_another_thread)(qm, int(count))
        ready(qm)
        for call in CALLS.values():
            call(qm)
            ready(qm)
        print(came, qm.check())


if __name__ == "__main__":
    main(*sys.argv[1:])
