"""Computes when a cron expression is due, in order, even when the clocks of its time zone change.

Nothing here asks for the time. The instants do not depend on where the count begins, so programs that look at different
times agree on them, and an instant can be used as a key.

When the clocks change, local times are treated as in Debian's cron, by the library cronsim:

    an expression that names hour and minute    a skipped time: at the end of the gap
                                                a repeated time: the first time
    one whose hour or minute begins with *      follows elapsed time: nothing in a gap, and both of the hours
                                                that the clock shows twice
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from importlib import import_module
from typing import Any, Final, Literal, NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from ..errors import CallerError, Reason, bad_argument
from ..support.advice import not_installed

Missed = Literal["one", "all", "none"]
MISSED: Final[tuple[Missed, ...]] = ("one", "all", "none")
# How far back `latest` searches, step by step: most expressions are due within an hour, a day, a month.
LOOK_BACK_SECONDS: Final = (3600.0, 86400.0, 31 * 86400.0, 366 * 86400.0)
HOUR: Final = timedelta(hours=1)
NO_MINUTE: Final = 60
OF_ZONE: Final = "the name of a time zone, such as 'UTC' or 'Europe/Berlin'"


def check_library() -> Any:
    """Imports the library that reads cron expressions. Raises CallerError if it is not installed."""
    try:
        return import_module("cronsim")
    except ModuleNotFoundError as missing:
        raise not_installed("schedules need a library", "work", missing) from missing


@lru_cache(maxsize=256)
def zone_of(name: str) -> tzinfo:
    """Finds a time zone by its name. Raises ArgumentError for an unknown name; CallerError without time-zone data."""
    if name == "UTC":
        return timezone.utc
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError):  # not found; a folder; not a possible file name
        if not available_timezones():
            raise CallerError(
                f"zone {name!r} cannot be read, because this system has no time-zone data: pip install tzdata, or "
                "install the system's package tzdata",
                reason=Reason.ENVIRONMENT_ERROR,
            ) from None
        raise bad_argument("zone", name, OF_ZONE) from None


def check_cron(expression: object) -> None:
    """Checks that an expression can be due. Raises ArgumentError; CallerError if the library is missing."""
    library = check_library()
    allowed = "a cron expression: minute, hour, day of the month, month, day of the week"
    if not isinstance(expression, str):
        raise bad_argument("cron", expression, allowed)
    try:
        if expression.startswith("@"):
            raise library.CronSimError("names such as @daily are not known")
        next(library.CronSim(expression, datetime(2000, 1, 1)))
    except library.CronSimError as wrong:
        raise bad_argument("cron", expression, f"{allowed} ({str(wrong)[:1].lower()}{str(wrong)[1:]})") from None
    except StopIteration:
        raise bad_argument("cron", expression, f"{allowed}, and be due at least once in 50 years") from None


class Cron(NamedTuple):
    """A checked expression and its time zone.

    Args:
        zone: the name of a time zone.
    """

    expression: str
    zone: str = "UTC"

    def behind(self, after: float) -> Iterator[float]:
        """The instants after `after`, in order; seconds since 1970."""
        last, zone = after, zone_of(self.zone)
        begin = datetime.fromtimestamp(after, zone)
        cron = check_library().CronSim(self.expression, begin)
        if not _changes_by_hours(begin):
            # With a single minute the library steps by hours, and would miss a repeated half hour.
            cron.minutes = {*cron.minutes, NO_MINUTE}
        for local in cron:
            due = local.timestamp()
            if due > last:  # all times in a gap are due at its end, and the first of two equal hours may be over
                yield due
                last = due

    def between(self, after: float, upto: float) -> Iterator[float]:
        """The instants after `after` that are not later than `upto`."""
        for due in self.behind(after):
            if due > upto:
                return
            yield due

    def next(self, after: float) -> float | None:
        """The first instant after `after`; None if there is none in 50 years."""
        return next(self.behind(after), None)

    def latest(self, after: float, upto: float) -> float | None:
        """The last instant after `after` that is not later than `upto`; None if there is none."""
        for seconds in (*LOOK_BACK_SECONDS, upto - after):
            found = None
            for found in self.between(max(after, upto - seconds), upto):  # noqa: B007 - the last one is wanted
                pass
            if found is not None or upto - seconds <= after:
                return found
        return None


def _changes_by_hours(local: datetime) -> bool:
    """Whether the zone's clocks change by whole hours in that year, or not at all; on Lord Howe they change by half an
    hour.
    """
    first, other = (local.replace(month=month, day=1).utcoffset() or HOUR for month in (1, 7))
    return not (first - other) % HOUR


def to_put(cron: Cron, missed: Missed, last: float, now: float, on_time: float) -> Iterator[float]:
    """The due times after `last` whose messages are to be put now, in order.

    Args:
        missed: which missed times are put: "one", the last of them; "all"; "none", not those that are more than
            `on_time` seconds late.
    """
    if missed == "all":
        yield from cron.between(last, now)
        return
    due = cron.latest(last, now)
    if due is not None and (missed == "one" or now - due <= on_time):
        yield due
