"""When cron expressions are due: cases by hand, and an oracle that knows the wall clock (decision 333)."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, timezone
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from inorder.errors import ArgumentError, CallerError
from inorder.support.advice import how_to_install
from inorder.work import due as due_module
from inorder.work.due import Cron, Missed, check_cron, to_put, zone_of

pytest.importorskip("cronsim", reason="without inorder[work] there are no schedules")
UTC = timezone.utc
BERLIN, NEW_YORK, KATHMANDU, LORD_HOWE = "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe"


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def told(instants: list[float]) -> list[str]:
    return [datetime.fromtimestamp(one, UTC).strftime("%m-%d %H:%M") for one in instants]


# ---- by hand: in Berlin in 2026 the hour from 2 to 3 is missing on 29 March and comes twice on 25 October


@pytest.mark.parametrize(
    ("cron", "after", "expected"),
    [
        # In a skipped hour: due at the end of the gap. 3:00 in Berlin is 1:00 in UTC.
        ("30 2 * * *", "2026-03-28", ["03-28 01:30", "03-29 01:00", "03-30 00:30"]),
        ("0 3 * * *", "2026-03-28", ["03-28 02:00", "03-29 01:00", "03-30 01:00"]),
        ("0,30 2 * * *", "2026-03-28 01:10", ["03-28 01:30", "03-29 01:00", "03-30 00:00", "03-30 00:30"]),
        ("0 2,3 * * *", "2026-03-28 02:00", ["03-29 01:00", "03-30 00:00", "03-30 01:00"]),
        # In an hour that comes twice: due the first time.
        ("30 2 * * *", "2026-10-24", ["10-24 00:30", "10-25 00:30", "10-26 01:30"]),
        ("30 2 * * *", "2026-10-25 00:45", ["10-26 01:30"]),
        # Expressions that follow elapsed time: due each half hour, once.
        ("*/30 * * * *", "2026-03-29 00:00", ["03-29 00:30", "03-29 01:00", "03-29 01:30"]),
        ("*/30 * * * *", "2026-10-25 00:00", ["10-25 00:30", "10-25 01:00", "10-25 01:30", "10-25 02:00"]),
        ("15 * * * *", "2026-10-24 23:30", ["10-25 00:15", "10-25 01:15", "10-25 02:15"]),
        ("0 12 * * MON", "2026-10-20", ["10-26 11:00", "11-02 11:00"]),
        ("0 0 L * *", "2026-01-01", ["01-30 23:00", "02-27 23:00"]),
        ("*/20 * * * * *", "2026-01-01 00:00:30", ["01-01 00:00", "01-01 00:01", "01-01 00:01"]),
    ],
)
def test_cron_expressions_are_due_at_these_times_in_berlin(cron: str, after: str, expected: list[str]) -> None:
    assert told(list(islice(Cron(cron, BERLIN).behind(at(after)), len(expected)))) == expected


# ---- by an oracle: it knows only the wanted minutes of the wall clock, and no cron

ZONES = (BERLIN, NEW_YORK, KATHMANDU, LORD_HOWE, "UTC")
MINUTES = st.lists(st.integers(0, 59), min_size=1, max_size=3, unique=True)
HOURS = st.lists(st.integers(0, 5), min_size=1, max_size=3, unique=True)
CHANGES = {
    BERLIN: (date(2026, 3, 29), date(2026, 10, 25)),
    NEW_YORK: (date(2026, 3, 8), date(2026, 11, 1)),
    LORD_HOWE: (date(2026, 4, 5), date(2026, 10, 4)),  # the clock moves by half an hour
    KATHMANDU: (date(2026, 3, 29), date(2026, 10, 25)),
    "UTC": (date(2026, 3, 29), date(2026, 10, 25)),
}


def named_times(zone: str, days: list[date], hours: list[int], minutes: list[int]) -> list[float]:
    """Each named time of each day: the first if it comes twice, the end of the gap if it is missing."""
    found = set()
    for day in days:
        for hour in hours:
            for minute in minutes:
                wall = datetime(day.year, day.month, day.day, hour, minute)
                while (
                    wall.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None)
                    != wall
                ):
                    wall += timedelta(minutes=1)
                found.add(wall.replace(tzinfo=ZoneInfo(zone), fold=0).timestamp())
    return sorted(found)


def passing_times(zone: str, first: float, last: float, minutes: list[int]) -> list[float]:
    """Each elapsed minute at which the wall clock shows one of these minutes."""
    instants = range(int(first) - int(first) % 60, int(last) + 1, 60)
    return [float(one) for one in instants if datetime.fromtimestamp(one, ZoneInfo(zone)).minute in minutes]


def around(zone: str, nth: int) -> list[date]:
    return [CHANGES[zone][nth] + timedelta(days=n) for n in (-1, 0, 1)]


@given(st.sampled_from(ZONES), st.integers(0, 1), HOURS, MINUTES, st.integers(0, 3 * 24 * 60))
def test_times_of_named_hours_agree_with_the_oracle_from_any_minute(
    zone: str, nth: int, hours: list[int], minutes: list[int], begin: int
) -> None:
    days = around(zone, nth)
    first = datetime(days[0].year, days[0].month, days[0].day, tzinfo=ZoneInfo(zone)).timestamp() + 60 * begin
    last = datetime(days[-1].year, days[-1].month, days[-1].day, 12, tzinfo=ZoneInfo(zone)).timestamp()
    expected = [one for one in named_times(zone, days, hours, minutes) if first < one <= last]
    cron = Cron(f"{','.join(map(str, minutes))} {','.join(map(str, hours))} * * *", zone)
    assert list(cron.between(first, last)) == expected
    assert cron.latest(first, last) == (expected[-1] if expected else None)


@example(LORD_HOWE, 0, [30], 0)  # half past one comes twice, half an hour apart
@given(st.sampled_from(ZONES), st.integers(0, 1), MINUTES, st.integers(0, 24 * 60 * 60))
def test_times_in_every_hour_agree_with_the_oracle_from_any_second(
    zone: str, nth: int, minutes: list[int], begin: int
) -> None:
    days = around(zone, nth)
    first = datetime(days[0].year, days[0].month, days[0].day, tzinfo=ZoneInfo(zone)).timestamp() + begin
    last = first + 36 * 3600
    expected = [one for one in passing_times(zone, first, last, minutes) if first < one <= last]
    assert list(Cron(f"{','.join(map(str, minutes))} * * * *", zone).between(first, last)) == expected


# ---- missed runs

DAILY = Cron("0 3 * * *")


@pytest.mark.parametrize(
    ("missed", "now", "expected"),
    [
        ("one", "2026-01-01 02:59:59", []),
        ("one", "2026-01-01 03:00", ["01-01 03:00"]),
        ("one", "2026-01-04 12:00", ["01-04 03:00"]),
        ("all", "2026-01-04 12:00", ["01-01 03:00", "01-02 03:00", "01-03 03:00", "01-04 03:00"]),
        ("none", "2026-01-01 03:00", ["01-01 03:00"]),
        ("none", "2026-01-01 03:01", ["01-01 03:00"]),
        ("none", "2026-01-01 03:01:01", []),
        ("none", "2026-01-04 03:00:30", ["01-04 03:00"]),
        ("none", "2026-01-04 12:00", []),
    ],
)
def test_the_option_missed_decides_which_missed_times_are_put(missed: Missed, now: str, expected: list[str]) -> None:
    assert told(list(to_put(DAILY, missed, at("2026-01-01"), at(now), 60.0))) == expected


@pytest.mark.parametrize("years", [0.001, 20.0])
def test_the_latest_due_time_is_found_after_a_short_and_after_a_long_gap(years: float) -> None:
    now = at("2046-01-01 12:00:30")
    for cron, latest in (("* * * * *", "2046-01-01 12:00"), ("0 0 1 1 *", "2046-01-01")):
        after = now - years * 366 * 86400
        expected = at(latest)
        assert Cron(cron).latest(after, now) == (expected if expected > after else None)


# ---- wrong expressions and zones


@pytest.mark.parametrize("wrong", ["", "* * * *", "60 * * * *", "* * * * * * *", "@daily", "0 0 31 2 *", 5])
def test_bad_cron_expressions_are_refused(wrong: object) -> None:
    with pytest.raises(ArgumentError, match="cron"):
        check_cron(wrong)


@pytest.mark.parametrize("wrong", ["", "Europe/Berlim", "../../etc/passwd", "a\0b"])
def test_bad_time_zones_are_refused(wrong: str) -> None:
    with pytest.raises(ArgumentError, match="zone"):
        zone_of(wrong)


def test_without_the_library_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> object:
        raise ModuleNotFoundError("no", name="cronsim")

    monkeypatch.setattr(due_module, "import_module", missing)
    with pytest.raises(CallerError, match=re.escape(how_to_install("work"))):
        check_cron("* * * * *")


def test_a_system_without_time_zones_is_told_apart_from_a_wrong_name(monkeypatch: pytest.MonkeyPatch) -> None:
    zone_of.cache_clear()
    with pytest.raises(ArgumentError, match="zone must be the name of a time zone"):
        zone_of("Europe/Nowhere")
    monkeypatch.setattr(due_module, "available_timezones", set)
    with pytest.raises(CallerError, match="this system has no time-zone data: pip install tzdata"):
        zone_of("Europe/Nowhere")
