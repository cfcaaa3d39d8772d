"""Home-server queues: collect messages that wait for this queue manager at another one, each once, in order (K-3).

The home server has a store-and-forward queue of the same name, and keeps the messages for this queue manager on a
transmission queue. A collection is the run of a channel with its sender there and its receiver here, begun by the
receiver. `carrying` carries its batches, so its guarantees hold here too::

    claim a batch at the home server, put it here and note its number in one transaction, confirm it there

While the interval is above 0 the connection to the home server stays open, and the store-and-forward queue is checked
after each interval. Otherwise each trigger makes a connection, collects everything, and closes it. If the connection
is lost or cannot be made, the queue is stopped, and only a trigger starts it again (D), or with `retry` the interval.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection
from typing import Final

from ...client.manager import QueueManager
from ...errors import Fenced, InorderError, ObjectInUse
from ...model.attributes import QueueAttributes
from ...stores.seam.channel_records import ChannelNow, HomeServerStatus
from .carrying import LOOK_SECONDS, TROUBLE, ChannelRun, Stopping, Wait
from .sides import Connect, Receiver, collecting_channel, home_server, open_receiver, reach_home

RETRY_SECONDS: Final = 60.0
"""Seconds before `retry` tries again if the interval is 0."""
IN_USE: Final = (ObjectInUse, Fenced)  # another program collects


def trigger_transmission(qm: QueueManager, queue: str) -> None:
    """Makes the program that collects for a home-server queue do so now; if none runs, the next one begins by
    collecting.

    A queue that is stopped, because the connection was lost, starts again.

    Raises UnknownQueue 2085; WrongQueueType 2043, it is not a home-server queue.
    """
    with qm._session:
        qm._store.note_home_server(qm._session.owner, queue, "triggered")


def pull(
    qm: QueueManager,
    queue: str,
    *,
    until_empty: bool = False,
    wait: Wait | None = None,
    exits: Collection[str] = (),
    connects: Connect = open_receiver,
) -> ChannelNow:
    """Collects the messages that wait at the home server of a home-server queue, until the program ends.

    It begins when it is triggered, or at once if the queue has an interval and was not stopped. Trouble with the
    connection, or with a message that cannot be put here, stops the queue until it is triggered, and is in its status.

    Args:
        until_empty: collect now, and end when nothing more can be claimed; trouble is raised.
        wait: as in `run_channel`.
        exits: as in `run_channel`; the exit is the one of the receiver with the queue's name here.
        connects: connects to the home server; default: `inorder.connect` to a store that must exist.

    Returns: the status of the queue.

    Raises UnknownQueue 2085; WrongQueueType 2043, it is not a home-server queue; errors of the store here. With
    `until_empty`: ObjectInUse 2042 and Fenced if another program collects; UnknownObject 2085, its connection is not
    defined; WrongQueueType 2087, another queue manager is at the home server, or it has no such store-and-forward queue
    for this one; NotAuthorized 2035; StoreError and other errors of a connect; as `run_channel`.
    """
    home_server(qm, queue)
    with qm.connect() as own:
        collector = _Collector(own, queue, wait or threading.Event().wait, exits, connects)
        if until_empty:
            collector.collect()
        else:
            collector.run()
        return collector.now()


class _Collector:
    """One call of `pull`.

    Attributes:
        channel: the channel by which it collects; the status of the home-server queue has its name here, too.
    """

    def __init__(self, own: QueueManager, queue: str, wait: Wait, exits: Collection[str], connects: Connect) -> None:
        self._own, self._queue, self._program_waits, self._exits, self._connects = own, queue, wait, exits, connects
        self.channel = collecting_channel(own.admin.manager_attributes().name, queue)
        self._ends = False  # whether the program ends

    def run(self) -> None:
        """Collects whenever it is due, until the program ends."""
        is_due = self._begins()
        if self._ends:
            return
        try:
            while not self._ends:
                is_due = self._waits(self._collects() if is_due else None)
        finally:
            self._note("inactive")

    def collect(self) -> None:
        """Collects once."""
        self._note("running")
        try:
            self._collect(until_empty=True)
        except IN_USE:
            raise
        except InorderError as error:
            self._stopped(error)
            raise
        finally:
            self._note("inactive")

    def _begins(self) -> bool:
        """Takes the queue for this program, when no other one has it; returns whether to collect at once."""
        while not self._ends:
            try:
                before = self._note("waiting")
                return before == "triggered" or (before != "stopped" and bool(self._definition.interval_ms))
            except ObjectInUse:
                self._wait(LOOK_SECONDS)
        return False

    def _collects(self) -> float | None:
        """Collects as long as it can; returns the seconds until the next collection, None: the next trigger begins
        it.
        """
        self._note("running")
        try:
            self._collect(until_empty=False)
        except IN_USE:
            self._note("waiting")
            return LOOK_SECONDS
        except InorderError as error:
            if self._stopped(error) == "triggered":
                return 0.0
            found = self._definition
            return (found.interval_ms / 1000 or RETRY_SECONDS) if found.retry and isinstance(error, TROUBLE) else None
        return 0.0 if self._note("waiting") == "triggered" else None

    def now(self) -> ChannelNow:
        """The status of the home-server queue."""
        with self._own._session:
            return self._own._store.channels([(self.channel.name, self._queue)])[0]

    @property
    def _definition(self) -> QueueAttributes:
        return home_server(self._own, self._queue)

    def _note(self, status: HomeServerStatus, reason: int = 0, error: str = "", *, goes_on: bool = False) -> str:
        """Records the status; returns the one before."""
        with self._own._session:
            note, owner = self._own._store.note_home_server, self._own._session.owner
            return note(owner, self._queue, status, reason=reason, error=error, goes_on=goes_on)

    def _collect(self, *, until_empty: bool) -> None:
        """Collects until everything is here and there is no interval, or the program ends."""
        with contextlib.closing(reach_home(self._own, self._queue, self._connects)) as home:
            run = _Collection(
                home.connection,
                self.channel,
                self._wait,
                self._exits,
                lambda: Receiver(self._own.connect()),
                until_empty=until_empty,
            )
            run.idles, run.pauses = self._idles, self._pauses
            run.run()

    def _pauses(self, error: InorderError | None) -> None:
        """Records here that a message cannot be put yet, or that it was put. A trigger meanwhile stays."""
        if error is not None:
            self._note("paused", int(error.reason), str(error.args[0]))
        elif self.now().status == "paused":
            self._note("running", goes_on=True)

    def _stopped(self, error: InorderError) -> str:
        """Records that the collection failed, unless another one is asked for; returns the status before."""
        return self._note("stopped", int(error.reason), str(error.args[0]))

    def _wait(self, seconds: float) -> bool:
        self._ends = self._program_waits(seconds)
        return self._ends

    def _waits(self, seconds: float | None) -> bool:
        """Waits for a trigger, at most this long; returns whether a collection is due; False: the program ends."""
        while not self._ends and (seconds is None or seconds > 0):
            if self.now().status == "triggered":
                return True
            if self._wait(min(LOOK_SECONDS, LOOK_SECONDS if seconds is None else seconds)):
                return False
            seconds = None if seconds is None else seconds - LOOK_SECONDS
        return not self._ends

    def _idles(self) -> bool:
        """Waits for the next check of the home server; returns whether there is one."""
        seconds = self._definition.interval_ms / 1000
        if not seconds or not self._waits(seconds):
            return False
        if self.now().status == "triggered":
            self._note("running")
        return True


class _Collection(ChannelRun):
    """The run of the channel: it stops at the first trouble, and this side decides when it begins again.

    Attributes:
        idles: waits, and returns whether to look again.
        pauses: called with the error when a message cannot be put yet, and with None when it was put.
    """

    status_of_failure = "inactive"
    idles: Callable[[], bool]
    pauses: Callable[[InorderError | None], None]

    def _note(self, status: str, error: InorderError | None = None) -> str:
        if status in ("paused", "running"):
            self.pauses(error)
        return super()._note(status, error)

    def _retry(self, error: InorderError) -> None:
        raise error

    def _stop(self) -> str:
        return ""

    def _await_messages(self, receiver: Receiver, *, fast: bool) -> bool:
        del receiver, fast
        if not self.idles():
            raise Stopping
        return False
