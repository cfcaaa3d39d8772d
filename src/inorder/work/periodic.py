"""Periodic puts: messages that are put at the times of a cron expression, each once, by any number of processes.

    NIGHTLY = Schedule(name="nightly", cron="30 2 * * *", zone="Europe/Berlin", queue="REPORTS", body=b"nightly")

    Periodic(qm.connect(), [NIGHTLY]).run(stop)

`Tasks.periodic` and `Tasks.add` hand schedules to a worker, which runs them in a separate thread.

Every process may run the same schedules. There is no leader: the message is put together with a line in the ledger of
its queue, under the schedule's name and the instant at which it is due. The line names the one before it, and only
one put can follow that one. The other processes find the line and go on to the next instant. A killed process loses
nothing either: an instant without a line is put by the next process that looks, as a missed run.

The last line also shows a starting process which runs were missed. A schedule that is new to its queue begins when it
is first seen; earlier runs are not made up for. `missed` decides about the others:

    "one"   the default: only the last of them is put, with the instant at which it was due
    "all"   each is put, in order
    "none"  a run that is late by more than `ON_TIME_SECONDS` is left out

If the last run lies in the future, a clock was ahead when it was put, or this machine's clock is behind now. The two
cases cannot be told apart, and in the second one to continue from now would put runs twice. So the schedule fails,
with the remedy (`restart`), and counts as overdue.

For changes of a zone's clocks see `due.py`.
"""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Final, NamedTuple

from ..client.bulk import NAME, LedgerKey, Stager
from ..client.manager import QueueManager
from ..errors import (
    ConnectionBroken,
    ConnectionClosed,
    Fenced,
    ForkedConnection,
    InorderError,
    QueueCondition,
    QueueManagerStopping,
    Reason,
    StoreError,
    bad_argument,
)
from ..model.message import NO_ID, Message
from ..model.options import check_instance
from ..rules.staged_columns import KEYS, STAGED_COLUMNS
from ..stores.seam.clocks import is_ahead
from ..stores.seam.damage import damaged
from ..support.old_paths import renamed
from .due import MISSED, OF_ZONE, Cron, Missed, check_cron, to_put, zone_of

APPLICATION: Final = "inorder periodic"  # in the ledger; the names of schedules take the place of queries
BEGINNING: Final = " begins"  # ends the line of an instant at which a schedule was first seen, or restarted
ON_TIME_SECONDS: Final = 60.0  # a run that is put within this time does not count as missed
LOOK_SECONDS_MAX: Final = 10.0  # a clock may be set, a machine may sleep: `run` checks at least this often
RETRY_SECONDS: Final = 1.0  # before a run that could not be put is tried again
PUTS_MAX: Final = 1000  # for one schedule in one call of `put_due`
STAGING_SECONDS: Final = 600.0
COLUMNS: Final = tuple(name for name in STAGED_COLUMNS if name not in KEYS and name != "body")

# After these errors the next try could not use the connection, or the store, either.
ENDS: Final = (ConnectionBroken, ConnectionClosed, ForkedConnection, QueueManagerStopping, StoreError)

log = logging.getLogger(__name__)
Body = bytes | Message | Callable[[datetime], bytes | Message]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A message to put, its queue, and its times.

    Args:
        name: 1 to 200 characters; with the queue it identifies the schedule to all processes.
        cron: minute, hour, day of the month, month, day of the week; or six fields, the first for seconds.
        queue: where the messages are put: a queue of this queue manager, or an alias of one.
        body: the body, the message, or a function that makes one: called with the instant at which it is due, in the
            time zone.
        zone: the name of the time zone of `cron`.
        missed: which missed runs are put: "one", only the last of them; "all"; "none", not those that are late by more
            than a minute.

    Raises:
        ArgumentError: if a value is not allowed.
        CallerError: if the library for cron expressions is not installed (`inorder[work]`).
    """

    name: str
    cron: str
    queue: str
    body: Body = field(default=b"", hash=False)  # a function need not have a hash
    zone: str = "UTC"
    missed: Missed = "one"

    def __post_init__(self) -> None:
        NAME.check("name", self.name)
        check_cron(self.cron)
        check_instance("zone", self.zone, str, OF_ZONE)
        zone_of(self.zone)
        check_instance("queue", self.queue, str, "the name of a queue")
        if not (isinstance(self.body, bytes | Message) or callable(self.body)):
            raise bad_argument("body", self.body, "bytes, a Message, or a function that makes one from the instant")
        if self.missed not in MISSED:
            raise bad_argument("missed", self.missed, f"one of: {', '.join(MISSED)}")

    @property
    def times(self) -> Cron:
        """The times at which it is due."""
        return Cron(self.cron, self.zone)

    def message(self, due: float) -> Message:
        """Makes the message for one instant, seconds since 1970. Raises ArgumentError if `body` made something else."""
        made = self.body
        if callable(made):
            made = made(datetime.fromtimestamp(due, zone_of(self.zone)))
        if not isinstance(made, bytes | Message):
            raise bad_argument("body", made, "a function that returns bytes or a Message")
        return made if isinstance(made, Message) else Message(made)


class ScheduledRun(NamedTuple):
    """A message that was put for a schedule.

    Args:
        due, put_at: when it was due, and when it was put; seconds since 1970.
    """

    schedule: Schedule
    due: float
    put_at: float


class Standing(NamedTuple):
    """How far a schedule has run; instants are seconds since 1970.

    Args:
        last: the instant of the last run that was put or left out; None: there was none since it was first seen, or
            restarted.
        next: the next instant; None: there is none in 50 years.
        overdue: whether the next instant has passed and its message was not put; or the last run lies in the future,
            and nothing is put until that time, or until `restart`.
    """

    schedule: Schedule
    last: float | None
    next: float | None
    overdue: bool


def checked(schedules: Iterable[Schedule]) -> list[Schedule]:
    """Checks schedules that run together. Raises ArgumentError if two of one queue have the same name."""
    named: dict[tuple[str, str], Schedule] = {}
    for one in schedules:
        check_instance("schedules", one, Schedule, "schedules")
        if named.setdefault((one.queue, one.name), one) is not one:
            raise bad_argument("schedules", one.name, f"names that differ for schedules of {one.queue}")
    return [named[key] for key in sorted(named)]


def standings(qm: QueueManager, schedules: Iterable[Schedule]) -> list[Standing]:
    """Returns how far schedules have run; changes nothing. Raises UnknownQueue 2085 if a queue does not exist."""
    now = qm.internals.clock.now()
    found = []
    for one in checked(schedules):
        noted = qm.bulk.last_settled(one.queue, APPLICATION, one.name)
        since = _instant(noted)
        due = one.times.next(now if since is None else min(since, now))
        is_late = since is not None and (is_ahead(since, now) or (due is not None and due <= now))
        found.append(Standing(one, None if noted.endswith(BEGINNING) else since, due, is_late))
    return found


def restart(qm: QueueManager, schedule: Schedule) -> None:
    """Restarts a schedule from now, as if it were new: for one whose last run lies in the future.

    Raises UnknownQueue 2085.
    """
    periodic, now = Periodic(qm, [schedule]), qm.internals.clock.now()
    while not periodic._note(
        schedule, qm.bulk.last_settled(schedule.queue, APPLICATION, schedule.name), now, [], BEGINNING
    ):
        now += 0.001  # the ledger has a line with this instant, or another process was first


class Periodic:
    """Puts the messages of schedules in this process; any number of processes may run the same schedules.

    Args:
        qm: a separate connection (`qm.connect()`) with no unit of work open.
        schedules: the schedules to run.
        on_put: called with each `ScheduledRun` that this process has put, once it is on disk.
        on_failure: called by `look` and `run` with each schedule that failed, and its exception. None: they are logged.

    Attributes:
        failing: the schedules that failed in their last try.

    Raises ArgumentError if two schedules of one queue have the same name.
    """

    def __init__(
        self,
        qm: QueueManager,
        schedules: Iterable[Schedule],
        *,
        on_put: Callable[[ScheduledRun], object] | None = None,
        on_failure: Callable[[Schedule, BaseException], object] | None = None,
    ) -> None:
        check_instance("qm", qm, QueueManager, "a QueueManager")
        self._qm, self._on_put, self._on_failure = qm, on_put, on_failure or _log_failure
        self.failing: dict[Schedule, BaseException] = {}
        self.schedules: Sequence[Schedule] = checked(schedules)
        self._last: dict[Schedule, float] = {}  # as last seen: others may have put later ones

    # --- one round

    def put_due(self) -> list[ScheduledRun]:
        """Puts everything that is due now, and returns the runs that this process has put.

        Each message is on disk, and its line in the ledger, before the next one is tried. A run whose put fails
        stays due.

        Raises as a put, and UnknownQueue 2085: the other schedules have been tried by then.
        """
        runs = self._put_all()
        for failure in self.failing.values():
            raise failure
        return runs

    def _put_all(self) -> list[ScheduledRun]:
        """Tries each schedule, even if others fail. Raises `ENDS`."""
        runs: list[ScheduledRun] = []
        self.failing = {}
        for one in self.schedules:
            try:
                self._put_due_of(one, runs)
            except (*ENDS, KeyboardInterrupt):
                raise
            except BaseException as error:  # noqa: BLE001 - the others have their turn before it is raised
                self.failing[one] = error
        return runs

    def next_due(self) -> float | None:
        """The next due time that this process knows, in seconds since 1970; None: there is none."""
        dues = [one.times.next(self._last.get(one, self._qm.internals.clock.now())) for one in self.schedules]
        return min((due for due in dues if due is not None), default=None)

    def _put_due_of(self, schedule: Schedule, runs: list[ScheduledRun]) -> None:
        for _ in range(PUTS_MAX):
            now, seen = self._qm.internals.clock.now(), self._last.get(schedule, -math.inf)
            if seen > -math.inf and not is_ahead(seen, now) and (schedule.times.next(seen) or now + 1) > now:
                return
            noted = self._qm.bulk.last_settled(schedule.queue, APPLICATION, schedule.name)
            last = _instant(noted)
            if last is None:
                self._note(schedule, noted, float(int(now)), [], BEGINNING)
                continue
            if is_ahead(last, now):
                raise _ahead(schedule, last)
            if last < seen <= now:  # put before the schedule was restarted
                last = seen
            self._last[schedule] = last
            due = next(to_put(schedule.times, schedule.missed, last, now, ON_TIME_SECONDS), None)
            if due is not None:
                if self._note(schedule, noted, due, [schedule.message(due)]):
                    runs.append(ScheduledRun(schedule, due, now))
                    if self._on_put is not None:
                        self._on_put(runs[-1])
            elif (left_out := schedule.times.latest(last, now)) is not None:
                self._note(schedule, noted, left_out, [])
            else:
                return

    def _note(
        self, schedule: Schedule, after: str, due: float, messages: Sequence[Message], beginning: str = ""
    ) -> bool:
        """Puts messages with the line in the ledger that follows `after`; returns whether this process has done it.

        Args:
            beginning: BEGINNING if the line is no run.
        """
        qm = self._qm
        with qm.open(schedule.queue, output=True) as queue:
            stager = Stager(queue, f"periodic {uuid.uuid4()}", lasts=STAGING_SECONDS)
            try:
                stager.stage(len(messages), _columns(messages))
                key = LedgerKey(APPLICATION, schedule.name, _text(due) + beginning)
                settled = qm.bulk.settle_staging(key, [stager.staged], after=after)
            except Fenced:  # another process has put it meanwhile, or a later one
                qm.bulk.undo_staging([stager.name])
                return False
            except BaseException:
                with contextlib.suppress(InorderError):  # otherwise it expires
                    qm.bulk.undo_staging([stager.name])
                raise
        self._last[schedule] = due
        return not settled.already

    # --- until it is stopped

    def run(self, stop: threading.Event) -> None:
        """Puts runs as they become due until `stop` is set; a worker calls it in a separate thread.

        Failures, such as a full, inhibited or missing queue, or an error in `body`, go to `on_failure`, and the run is
        tried again each second: it stays due.

        Raises ConnectionBroken 2009, QueueManagerStopping 2162, and errors of the store.
        """
        while not stop.is_set():
            stop.wait(self.look())

    def look(self) -> float:
        """One round of `run`: puts everything that is due; returns the seconds until the next round."""
        self._put_all()
        for one, error in self.failing.items():
            self._on_failure(one, error)
        if self.failing:
            return RETRY_SECONDS
        due = self.next_due()
        return (
            LOOK_SECONDS_MAX if due is None else min(max(0.0, due - self._qm.internals.clock.now()), LOOK_SECONDS_MAX)
        )


def _ahead(schedule: Schedule, last: float) -> QueueCondition:
    return QueueCondition(
        f"the ledger has schedule {schedule.name!r} on {schedule.queue} at {_text(last)}, which is in the "
        "future: a clock was ahead then, or this machine's is behind. Nothing is put until that time. Set the "
        f"clock right; then inorder work MODULE --restart {schedule.name} continues the schedule from now",
        reason=Reason.ENVIRONMENT_ERROR,
        schedule=schedule.name,
        last=last,
    )


def _log_failure(schedule: Schedule, error: BaseException) -> None:
    shown = None if isinstance(error, InorderError) else error  # for an error of the program, where it was raised
    log.warning("schedule %s failed and will be tried again: %s", schedule.name, error, exc_info=shown)


def _columns(messages: Sequence[Message]) -> dict[str, list[object]]:
    """The given fields of messages, as columns to stage; the queue's defaults apply to the others."""
    columns: dict[str, list[object]] = {"body": [one.body for one in messages]}
    for name in COLUMNS:
        values = [getattr(one, name) for one in messages]
        usual = Message.FIELDS[name].default
        if any(value not in (usual, NO_ID) for value in values):
            columns[name] = values
    return columns


def _text(instant: float) -> str:
    """An instant as the ledger writes it."""
    return datetime.fromtimestamp(instant, timezone.utc).isoformat()


def _instant(text: str) -> float | None:
    """The instant of a line in the ledger; None without a line. Raises StoreDamaged if it is not an instant."""
    if not text:
        return None
    try:
        return datetime.fromisoformat(text.removesuffix(BEGINNING)).timestamp()
    except ValueError:
        raise damaged("the ledger", f"a periodic put was due at {text!r:.60}") from None


if not TYPE_CHECKING:  # otherwise a type checker would accept any name
    __getattr__ = renamed(__name__, Run="ScheduledRun")
