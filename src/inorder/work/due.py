"""When a cron expression is due: instants, in order, whatever the clocks of a time zone do meanwhile.

Nothing here asks for the time. The instants behind a moment are the same from whichever moment before it one begins to
count, so that programs that look at different times agree on them; that is what makes an instant a key.

When the clocks change, local times are treated as in Debian's cron, by the library cronsim:

    an expression that names hour and minute    a time that is skipped: at the end of the gap
                                                a time that comes twice: the first time
    one whose hour or minute begins with *      goes by the time that passes: nothing in a gap, and each of the hours
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
# How far back the last due time is looked for, in steps: most expressions are due within an hour, a day, a month.
LOOK_BACK_SECONDS: Final = (3600.0, 86400.0, 31 * 86400.0, 366 * 86400.0)
HOUR: Final = timedelta(hours=1)
NO_MINUTE: Final = 60


def check_library() -> Any:
    """The library that reads cron expressions. Raises: CallerError, it is not installed."""
    try:
        return import_module("cronsim")
    except ModuleNotFoundError as missing:
        raise not_installed("schedules need a library", "work", missing) from missing


@lru_cache(maxsize=256)
def zone_of(name: str) -> tzinfo:
    """A time zone by its name. Raises: ArgumentError, there is none of that name; CallerError, no data."""
    if name == "UTC":
        return timezone.utc
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError):  # not found; a folder; not a name that a file can have
        if not available_timezones():
            raise CallerError(
                f"zone {name!r} cannot be read, for this system has no time-zone data: pip install tzdata, or install "
                "the system's package tzdata",
                reason=Reason.ENVIRONMENT_ERROR,
            ) from None
        raise bad_argument("zone", name, "the name of a time zone, such as 'UTC' or 'Europe/Berlin'") from None


def check_cron(expression: object) -> str:
    """An expression that can be due. Raises: ArgumentError; CallerError, the library is missing."""
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
        raise bad_argument("cron", expression, f"{allowed}, that is due at least once in 50 years") from None
    return expression


class Cron(NamedTuple):
    """An expression and the time zone whose wall clock it goes by; both are checked.

    Args:
        zone: the name of a time zone.
    """

    expression: str
    zone: str = "UTC"

    def behind(self, after: float) -> Iterator[float]:
        """The instants behind `after`, each later than the one before; seconds since 1970."""
        last, zone = after, zone_of(self.zone)
        begin = datetime.fromtimestamp(after, zone)
        cron = check_library().CronSim(self.expression, begin)
        if not _changes_by_hours(begin):
            # With one minute alone the library goes by the hour, and would pass over half an hour that repeats.
            cron.minutes = {*cron.minutes, NO_MINUTE}
        for local in cron:
            due = local.timestamp()
            if due > last:  # times in a gap fall together at its end, and the first of two hours may be over
                yield due
                last = due

    def between(self, after: float, upto: float) -> Iterator[float]:
        """Those behind `after` that are not later than `upto`."""
        for due in self.behind(after):
            if due > upto:
                return
            yield due

    def next(self, after: float) -> float | None:
        """The first instant behind `after`; None: there is none in 50 years."""
        return next(self.behind(after), None)

    def latest(self, after: float, upto: float) -> float | None:
        """The last instant behind `after` that is not later than `upto`; None: there is none."""
        for seconds in (*LOOK_BACK_SECONDS, upto - after):
            found = None
            for found in self.between(max(after, upto - seconds), upto):  # noqa: B007 - the last one is wanted
                pass
            if found is not None or upto - seconds <= after:
                return found
        return None


def _changes_by_hours(local: datetime) -> bool:
    """Whether the zone's clocks change by whole hours in that year, or not at all; on Lord Howe it is half an hour."""
    first, other = (local.replace(month=month, day=1).utcoffset() or HOUR for month in (1, 7))
    return not (first - other) % HOUR


def to_put(cron: Cron, missed: Missed, last: float, now: float, on_time: float) -> Iterator[float]:
    """The due times behind `last` whose messages are to be put now, the first one first.

    Args:
        missed: what becomes of those that nobody put when they were due: "one", the last of them is put; "all", each;
            "none", what is due for longer than `on_time` seconds is not put.
    """
    if missed == "all":
        yield from cron.between(last, now)
        return
    due = cron.latest(last, now)
    if due is not None and (missed == "one" or now - due <= on_time):
        yield due
