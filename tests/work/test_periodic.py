"""Messages that are put when they are due, each once, by any of several processes (decisions 332 to 335)."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.helpers.support import LIMIT_SECONDS, Call, Stores, bodies, examples
from tests.tiers import every_store

from inorder import Message, QueueManager, connect
from inorder.client.bulk import LedgerKey, Stager
from inorder.errors import ArgumentError, StoreDamaged, UnknownQueue
from inorder.testing import ManualClock
from inorder.work.due import Missed
from inorder.work.periodic import (
    APPLICATION,
    LOOK_SECONDS_MAX,
    RETRY_SECONDS,
    Periodic,
    Schedule,
    ScheduledRun,
    checked,
    restart,
    standings,
)

pytest.importorskip("cronsim", reason="without inorder[work] there are no schedules")
HOUR = 3600.0
HOURLY = Schedule(name="hourly", cron="0 * * * *", queue="Q", body=lambda due: due.strftime("%d %H:%M").encode())
BEGIN = datetime(2026, 3, 1, 0, 30, tzinfo=timezone.utc).timestamp()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(BEGIN)


def instant(due: datetime) -> bytes:
    return due.isoformat().encode()


def standing(qm: QueueManager, schedule: Schedule) -> tuple[float | None, float | None, bool]:
    (one,) = standings(qm, [schedule])
    return one.last, one.next, one.overdue


# ---- one process


def test_a_run_is_put_once_when_it_is_due(qm: QueueManager, clock: ManualClock) -> None:
    runs: list[ScheduledRun] = []
    periodic = Periodic(qm, [HOURLY], on_put=runs.append)
    assert standing(qm, HOURLY) == (None, BEGIN + HOUR / 2, False)
    assert periodic.put_due() == []  # the schedule is seen for the first time: earlier instants are not made up for
    assert standing(qm, HOURLY) == (None, BEGIN + HOUR / 2, False), "it has not run yet"
    assert periodic.next_due() == BEGIN + HOUR / 2
    clock.advance(HOUR / 2 - 1)
    assert periodic.put_due() == []
    clock.advance(1.0)
    assert standing(qm, HOURLY) == (None, BEGIN + HOUR / 2, True)
    assert [(run.schedule, run.due, run.put_at) for run in periodic.put_due()] == [(HOURLY, clock.now(), clock.now())]
    assert standing(qm, HOURLY) == (BEGIN + HOUR / 2, BEGIN + 1.5 * HOUR, False)
    assert periodic.put_due() == []
    assert periodic.next_due() == clock.now() + HOUR
    assert [run.due for run in runs] == [clock.now()]
    clock.advance(HOUR / 2)
    quarterly = Schedule(name="hourly", cron="*/15 * * * *", queue="Q", body=HOURLY.body, missed="all")
    Periodic(qm, [quarterly]).put_due()
    assert bodies(qm) == [b"01 01:00", b"01 01:15", b"01 01:30"], "one that is altered goes on after its last run"


@pytest.mark.parametrize("missed", ["one", "all"])
def test_a_schedule_whose_clock_was_ahead_is_reported_overdue_until_it_is_restarted(
    qm: QueueManager, clock: ManualClock, missed: Missed
) -> None:
    hourly = Schedule(name="hourly", cron="0 * * * *", queue="Q", body=HOURLY.body, missed=missed)
    failures = list[str]()
    periodic = Periodic(qm, [hourly], on_failure=lambda _, error: failures.append(str(error)))
    periodic.put_due()
    clock.advance(5 * HOUR)
    periodic.look()
    put = len(bodies(qm))
    clock._time = BEGIN
    assert periodic.look() == RETRY_SECONDS
    assert standing(qm, hourly) == (BEGIN + 4.5 * HOUR, BEGIN + HOUR / 2, True)
    assert "--restart hourly" in failures[0]
    restart(qm, hourly)
    assert standing(qm, hourly) == (None, BEGIN + HOUR / 2, False), "it begins anew"
    assert qm.bulk.last_settled("Q", "inorder periodic", "hourly") == "2026-03-01T00:30:00.001000+00:00 begins"
    assert periodic.look() == LOOK_SECONDS_MAX
    clock.advance(8 * HOUR)
    periodic.look()
    assert periodic.look() == LOOK_SECONDS_MAX
    assert len(failures) == 1
    # Instants that were put while the clock was ahead are not put again.
    assert bodies(qm)[put:] == ([b"01 08:00"] if missed == "one" else [b"01 06:00", b"01 07:00", b"01 08:00"])


def test_a_clock_set_back_a_little_causes_no_failure(qm: QueueManager, clock: ManualClock) -> None:
    periodic = Periodic(qm, [HOURLY], on_failure=lambda _, error: pytest.fail(str(error)))
    periodic.put_due()
    clock.advance(HOUR / 2)
    periodic.look()
    clock._time = clock.now() - 59.0
    Periodic(qm, [HOURLY]).put_due()
    periodic.look()
    assert not standing(qm, HOURLY)[2]


def test_the_message_has_the_fields_of_the_schedule_and_else_the_defaults_of_the_queue(
    qm: QueueManager, clock: ManualClock
) -> None:
    qm.alter_queue("Q", default_priority=3, expiry=HOUR)
    said = Message(b"said", priority=7, correlation_id=b"c", format="MQSTR", persistent=False, properties={"n": 1})
    for name, body in (("plain", b"plain"), ("said", said)):
        periodic = Periodic(qm, [Schedule(name=name, cron="* * * * *", queue="Q", body=body)])
        periodic.put_due()
        clock.advance(60.0)
        periodic.put_due()
    qm.put("Q", b"put")
    found = {message.body: message for message in qm.browse("Q")}
    assert [found[b"plain"].priority, found[b"plain"].persistent] == [3, True]
    same = ("priority", "persistent", "put_application_name", "user_identifier", "format", "report", "message_type")
    assert [getattr(found[b"plain"], name) for name in same] == [getattr(found[b"put"], name) for name in same]
    of_said = found[b"said"]
    assert (of_said.priority, of_said.persistent, of_said.format, of_said.properties["n"]) == (7, False, "MQSTR", 1)
    assert of_said.correlation_id == b"c".ljust(24, b"\0")


def test_the_object_that_makes_the_body_need_not_be_hashable(qm: QueueManager, clock: ManualClock) -> None:
    @dataclass
    class Report:
        title: str

        def __call__(self, due: datetime) -> bytes:
            return self.title.encode()

    schedule = Schedule(name="sales", cron="0 * * * *", queue="Q", body=Report("sales"))
    periodic = Periodic(qm, [schedule])
    periodic.put_due()
    clock.advance(HOUR)
    assert len(periodic.put_due()) == 1
    assert [one.body for one in qm.browse("Q")] == [b"sales"]
    assert schedule != Schedule(name="sales", cron="0 * * * *", queue="Q", body=Report("stock"))


def test_a_clock_that_is_set_back_puts_nothing_twice(qm: QueueManager, clock: ManualClock) -> None:
    Periodic(qm, [HOURLY]).put_due()
    clock.advance(2 * HOUR)
    Periodic(qm, [HOURLY]).put_due()
    clock._time -= 2 * HOUR  # as an operator sets the clock back
    for _ in range(5):
        Periodic(qm, [HOURLY], on_failure=lambda *_: None).look()
        clock.advance(HOUR / 2)
    assert bodies(qm) == [b"01 02:00"]


# ---- failures stay due


def test_a_run_that_cannot_be_put_stays_due_and_the_other_schedules_continue(
    qm: QueueManager, clock: ManualClock
) -> None:
    qm.create_queue("OTHER")
    other = Schedule(name="hourly", cron="0 * * * *", queue="OTHER")
    periodic = Periodic(qm, [HOURLY, other])
    periodic.put_due()
    qm.alter_queue("Q", put_allowed=False)
    clock.advance(HOUR)
    assert periodic.look() == RETRY_SECONDS
    assert (qm.depth("OTHER"), qm.depth("Q")) == (1, 0)
    assert [one.overdue for one in standings(qm, [other, HOURLY])] == [False, True]
    qm.alter_queue("Q", put_allowed=True)
    assert periodic.look() == LOOK_SECONDS_MAX
    assert (qm.depth("OTHER"), bodies(qm)) == (1, [b"01 01:00"])


@pytest.mark.parametrize("raises", [RuntimeError, SystemExit])
def test_a_body_that_fails_is_logged_and_the_run_stays_due(
    qm: QueueManager, clock: ManualClock, caplog: pytest.LogCaptureFixture, raises: type[BaseException]
) -> None:
    made: list[bytes | BaseException] = [raises("no body today"), b"made"]

    def body(_: datetime) -> bytes:
        if isinstance(one := made.pop(0), BaseException):
            raise one
        return one

    periodic = Periodic(qm, [Schedule(name="s", cron="0 * * * *", queue="Q", body=body)])
    periodic.look()
    clock.advance(HOUR)
    periodic.look()
    assert "no body today" in caplog.text
    periodic.look()
    assert bodies(qm) == [b"made"]
    wrong = Periodic(qm, [Schedule(name="wrong", cron="* * * * *", queue="Q", body=lambda _: "text")])  # type: ignore[arg-type,return-value]
    wrong.put_due()
    clock.advance(60.0)
    with pytest.raises(ArgumentError, match="returns bytes"):
        wrong.put_due()
    with pytest.raises(UnknownQueue):
        Periodic(qm, [Schedule(name="s", cron="* * * * *", queue="NONE")]).put_due()


def test_an_entry_of_the_ledger_that_is_not_a_time_is_reported_as_damage(qm: QueueManager) -> None:
    with qm.open("Q", output=True) as queue:
        stager = Stager(queue, "s", lasts=60.0)
        stager.stage(0, {"body": []})
        qm.bulk.settle_staging(LedgerKey(APPLICATION, "hourly", "yesterday"), [stager.staged])
    with pytest.raises(StoreDamaged, match="yesterday"):
        standings(qm, [HOURLY])


def test_run_ends_when_its_stop_event_is_set(qm: QueueManager, clock: ManualClock) -> None:
    stop = threading.Event()
    Periodic(qm, [HOURLY]).put_due()
    clock.advance(HOUR)
    Periodic(qm, [HOURLY], on_put=lambda _: stop.set()).run(stop)
    assert bodies(qm) == [b"01 01:00"]


# ---- reports


def test_two_schedules_of_a_queue_have_different_names() -> None:
    other = Schedule(name="other", cron="* * * * *", queue="Q")
    assert checked([other, HOURLY]) == [HOURLY, other]
    with pytest.raises(ArgumentError, match="names that differ for schedules of Q"):
        checked([other, HOURLY, Schedule(name="other", cron="0 0 * * *", queue="Q")])
    with pytest.raises(ArgumentError, match="schedules"):
        checked(["nightly"])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"name": ""}, "name"),
        ({"name": "n" * 201}, "name"),
        ({"cron": "60 * * * *"}, "bad minute"),
        ({"zone": None}, "zone"),
        ({"queue": 5}, "queue"),
        ({"body": "text"}, "body"),
        ({"missed": "some"}, "one, all, none"),
    ],
)
def test_bad_schedules_are_refused(wrong: dict[str, object], words: str) -> None:
    good = {"name": "n", "cron": "* * * * *", "queue": "Q"}
    with pytest.raises(ArgumentError, match=words):
        Schedule(**{**good, **wrong})  # type: ignore[arg-type]


# ---- several processes: each instant is put once, in any order of their looks


def test_any_number_of_processes_put_each_instant_once(kind: str) -> None:
    """Clocks change for summer or winter time, and processes start, look at any time, and end."""

    @examples(kind)
    @given(
        st.sampled_from(["30 2 * * *", "*/30 * * * *", "0 1,2,3 * * *"]),
        st.sampled_from([datetime(2026, *day, 20, tzinfo=timezone.utc) for day in ((3, 28), (10, 24))]),
        st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2 * 3600)), min_size=1, max_size=20),
    )
    def judge(cron: str, begin: datetime, looks: list[tuple[int, int]]) -> None:
        schedule = Schedule(name="s", cron=cron, zone="Europe/Berlin", queue="Q", missed="all", body=instant)
        clock = ManualClock(begin.timestamp())
        with Stores(kind) as stores:
            store = stores.make(clock)
            managers = [connect(store, program=f"p{n}") for n in range(4)]
            managers[0].create_queue("Q")
            periodics = [Periodic(qm, [schedule]) for qm in managers]
            periodics[0].put_due()
            for who, seconds in looks:
                clock.advance(seconds)
                periodics[who].put_due()
            expected = list(schedule.times.between(begin.timestamp(), clock.now()))
            found = [datetime.fromisoformat(body.decode()).timestamp() for body in bodies(managers[0])]
            assert found == expected
            for qm in managers:
                qm.close()

    judge()


@every_store
def test_threads_that_try_at_once_put_each_instant_once(qm: QueueManager, clock: ManualClock) -> None:
    schedule = Schedule(name="s", cron="* * * * *", queue="Q", missed="all", body=instant)
    Periodic(qm, [schedule]).put_due()
    begins = threading.Barrier(4)

    def work() -> None:
        with qm.connect(program="thread") as mine:
            periodic = Periodic(mine, [schedule])
            for _ in range(5):
                begins.wait(LIMIT_SECONDS)
                periodic.put_due()
                if begins.wait(LIMIT_SECONDS) == 0:
                    clock.advance(180.0)

    clock.advance(180.0)
    for call in [Call(work) for _ in range(4)]:
        call.result()
    found = Counter(bodies(qm))
    assert (len(found), set(found.values())) == (15, {1})
    assert qm.inspect.units() == []
