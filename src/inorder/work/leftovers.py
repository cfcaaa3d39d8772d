"""Messages that no function's `match` takes: a thread of a worker reports them, or makes dead letters of them if asked.

It looks at the start, and every ten seconds at the messages that have come since, on queues all of whose functions have
a match. On any other queue a thread gets every message, and reports those that it cannot use.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from typing import Final

from ..client.defining import local_attributes
from ..client.manager import QueueManager
from ..errors import InorderError, QueueCondition, Reason
from ..model.message import UniqueId
from ..model.options import EVERYTHING, Match
from .outcomes import Ended, Outcome
from .reporting import WorkerEvent, WorkerOfThreads
from .tasks import Tasks

LOOK_SECONDS: Final = 10.0
WHY: Final = "the message matches no function here that takes messages of the queue"


def matches_of(tasks: Tasks) -> Mapping[str, list[Match]]:
    """The matches of the functions, by queue, of queues all of whose functions have one."""
    found: dict[str, list[Match]] = {}
    for one in tasks:
        found.setdefault(one.queue, []).append(one.options.match)
    return {queue: matches for queue, matches in found.items() if EVERYTHING not in matches}


class Leftovers:
    """Looks for messages that no function takes.

    Attributes:
        thread: looks until the worker ends.
    """

    def __init__(self, worker: WorkerOfThreads, tasks: Tasks) -> None:
        self._worker, self._buries = worker, tasks.unknown == "dead"
        self._matches = matches_of(tasks)
        self._seen = dict.fromkeys(self._matches, 0)  # the number of the last message that was looked at
        self._later: dict[UniqueId, str] = {}  # still to be handled, with their queues
        self.thread = threading.Thread(target=self._run, name="inorder work: leftovers", daemon=True)

    def __bool__(self) -> bool:
        """Whether there is a queue to look at."""
        return bool(self._matches)

    def _run(self) -> None:
        while True:
            try:
                with self._worker.qm.connect() as qm:
                    while True:
                        self.look(qm)
                        if self._worker.ends.wait(LOOK_SECONDS):
                            return
            except InorderError as error:  # tried again; the tasks of a queue report its faults, too
                for queue in self._matches:
                    self._worker.report(WorkerEvent("trouble", queue, task=f"tasks of {queue}", text=str(error)))
            if self._worker.ends.wait(LOOK_SECONDS):
                return

    def end(self, seconds: float) -> None:
        """After the end of the worker: waits so long for the end of the thread."""
        if self.thread.ident is not None:
            self.thread.join(seconds)

    def look(self, qm: QueueManager) -> None:
        """Reports the messages that arrived since the last look. Raises as `Inspect.look`."""
        for queue in self._matches:
            self._later |= dict.fromkeys(self._left(qm, queue), queue)
        for uid, queue in list(self._later.items()):
            if self._handle(qm, queue, uid):
                del self._later[uid]

    def _left(self, qm: QueueManager, queue: str) -> Iterable[UniqueId]:
        """The messages that arrived since the last look and match nothing."""
        after = self._seen[queue]
        found = {one.message.uid: one for one in qm.inspect.look(queue, numbered_after=after, preview=0)}
        self._seen[queue] = max([after, *(one.place.number for one in found.values() if one.place)])
        for match in self._matches[queue]:
            for view in qm.inspect.look(queue, match=match, numbered_after=after, preview=0):
                found.pop(view.message.uid, None)
        return [uid for uid in found if uid is not None]

    def _handle(self, qm: QueueManager, queue: str, uid: UniqueId) -> bool:
        """Reports a message, or makes a dead letter of it, if it is still on the queue.

        Returns: whether that is done; otherwise it is handled again at the next look.
        """
        began = time.monotonic()
        view = next(iter(qm.inspect.look(queue, match=Match(uid=uid), most=1, preview=0)), None)
        if view is None:
            return True
        message, buries = view.message, self._buries and local_attributes(qm, queue).read_order != "required"
        if view.state == "put" or (buries and not _is_buried(qm, queue, uid)):
            return False
        outcome, reason = (Outcome.DEAD, Reason.TASK_UNKNOWN) if buries else (Outcome.UNKNOWN, 0)
        ended = Ended(outcome, message.message_id, message.group_id, 0, error=WHY, reason=reason)
        seconds = time.monotonic() - began
        event = WorkerEvent("attempt", queue, task=f"tasks of {queue}", text=WHY, ended=ended, seconds=seconds)
        self._worker.report(event)
        return True


def _is_buried(qm: QueueManager, queue: str, uid: UniqueId) -> bool:
    """Makes a dead letter of a message, unless a program holds it, it is delayed, or no queue takes the letter now."""
    try:
        with qm.unit_of_work():
            message = qm.get(queue, match=Match(uid=uid), wait=0)
            qm.dead.add(message, queue=queue, reason=Reason.TASK_UNKNOWN, error=WHY)
    except QueueCondition:
        return False
    return True
