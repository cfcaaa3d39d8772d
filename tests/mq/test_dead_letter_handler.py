"""The dead-letter handler: actions, retries, waits, and no loss when it is killed."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.helpers import forked

from inorder import ArgumentError, CallerError, Message, QueueManager, Report, UnknownQueue, connect
from inorder.mq.dead_letter_handler import DeadEvent, Handled, handle_dead_letters
from inorder.rules.dead_letters import WhyDead, buried
from inorder.rules.dead_rules import DeadRules
from inorder.rules.dead_rules_syntax import read_rules
from inorder.rules.retries import failure_of
from inorder.testing import ManualClock

HANDLE: Any = handle_dead_letters  # untyped, so that tests can pass wrong arguments


class Desk:
    """A queue manager with dead letters, and the events of a handler."""

    def __init__(self, qm: QueueManager, clock: ManualClock | None = None) -> None:
        self.qm, self.clock = qm, clock
        self.events: list[DeadEvent] = []
        self.naps: list[float] = []
        qm.create_queue("DEAD")
        qm.create_queue("ORDERS")
        qm.create_queue("REPAIR")
        qm.admin.alter_manager(dead_letter_queue="DEAD")

    def die(self, body: bytes, reason: int = 2053, queue: str = "ORDERS", **fields: Any) -> None:
        letter = buried(Message(body, **fields), WhyDead(reason, queue, "", 5.0, "test"))
        assert isinstance(letter, Message)
        self.qm.put("DEAD", letter)

    def nap(self, seconds: float) -> bool:
        assert self.clock is not None
        assert len(self.naps) < 1000, "it waits for ever"
        self.naps.append(seconds)
        self.clock.advance(seconds)
        return False

    def run(self, *lines: str, control: str = "WAIT(NO)", **options: Any) -> Handled:
        table = read_rules([control, *lines])
        return handle_dead_letters(self.qm, table, report=self.events.append, **{"wait": self.nap, **options})

    def bodies(self, queue: str) -> list[bytes]:
        return [one.body for one in self.qm.browse(queue)]

    def told(self) -> list[tuple[str, int, str]]:
        return [(one.event, one.line, one.queue) for one in self.events]


@pytest.fixture
def desk(qm: QueueManager, clock: ManualClock) -> Desk:
    return Desk(qm, clock)


def test_each_action_does_what_it_says_and_the_first_rule_that_fits_counts(desk: Desk) -> None:
    desk.die(b"retry", priority=7, correlation_id="c", reply_to_queue="REPAIR")
    desk.die(b"drop", 2085, queue="GONE")
    desk.die(b"leave", 2051)
    desk.die(b"with", 2030)
    desk.die(b"without", 2031)
    desk.die(b"reply", 2035, reply_to_queue="REPAIR")
    handled = desk.run(
        "REASON(MQRC_Q_FULL) ACTION(RETRY)",
        "REASON(2085) ACTION(DISCARD)",
        "REASON(2051) ACTION(IGNORE)",
        "REASON(2030) ACTION(FWD) FWDQ(REPAIR)",
        "REASON(2031) ACTION(FWD) FWDQ(REPAIR) HEADER(NO)",
        "ACTION(FWD) FWDQ(&REPLYQ) HEADER(NO)",
    )
    assert handled == Handled(discarded=1, retried=1, forwarded=3, ignored=1)
    assert desk.told() == [
        ("retried", 2, "ORDERS"), ("discarded", 3, ""), ("ignored", 4, ""), ("forwarded", 5, "REPAIR"),
        ("forwarded", 6, "REPAIR"), ("forwarded", 7, "REPAIR"),
    ]  # fmt: skip
    assert desk.bodies("DEAD") == [b"leave"]
    (order,) = desk.qm.browse("ORDERS")
    assert (order.body, order.priority, order.correlation_id.rstrip(b"\0")) == (b"retry", 7, b"c")
    assert (order.reply_to_queue, dict(order.properties)) == ("REPAIR", {})
    repaired = {one.body: "dlh.reason" in one.properties for one in desk.qm.browse("REPAIR")}
    assert repaired == {b"with": True, b"without": False, b"reply": False}


def test_a_failed_action_is_retried_at_its_interval_and_then_the_next_rule_applies(desk: Desk) -> None:
    desk.qm.alter_queue("ORDERS", put_allowed=False)
    desk.die(b"1")
    handled = desk.run(
        "ACTION(RETRY) RETRY(3)", "DESTQ(ORD*) ACTION(FWD) FWDQ(REPAIR)", control="WAIT(NO) RETRYINT(30)"
    )
    assert handled == Handled(forwarded=1, failed=3)
    assert [one.event for one in desk.events] == ["failed"] * 3 + ["forwarded"]
    assert all(one.error is not None and one.error.reason == 2051 for one in desk.events[:3])
    assert sum(desk.naps) == pytest.approx(60)  # twice the interval; the next rule is tried at once
    assert desk.bodies("REPAIR") == [b"1"]


THRICE = ("ACTION(RETRY) RETRY(3)", "DESTQ(ORD*) ACTION(FWD) FWDQ(REPAIR)")


def ends_after(naps: int, desk: Desk) -> Callable[[float], bool]:
    """A wait that ends the run at the nap with this number."""
    left = iter(range(naps, 0, -1))

    def nap(seconds: float) -> bool:
        desk.nap(seconds)
        return next(left) == 1

    return nap


def test_the_next_run_continues_the_retries_where_the_last_one_stopped(desk: Desk) -> None:
    desk.qm.alter_queue("ORDERS", put_allowed=False)
    desk.die(b"1", properties={"mine": 1})
    control = "WAIT(NO) RETRYINT(30)"
    assert desk.run(*THRICE, control=control, wait=ends_after(1, desk)) == Handled(failed=1)
    assert sum(desk.naps) == 1
    assert desk.run(*THRICE, control=control, wait=ends_after(31, desk)) == Handled(failed=1)
    assert desk.run(*THRICE, control=control) == Handled(failed=1, forwarded=1)
    assert sum(desk.naps) == pytest.approx(2 * 30, abs=2)  # the retries keep to the interval, too
    (repaired,) = desk.qm.browse("REPAIR")
    assert (repaired.properties["mine"], "dlh.reason" in repaired.properties) == (1, True)
    assert not any(name.startswith("retry.") for name in repaired.properties)


def test_a_letter_whose_tries_are_used_up_stays_in_the_next_run_too(desk: Desk) -> None:
    desk.qm.alter_queue("ORDERS", put_allowed=False)
    desk.die(b"1")
    assert desk.run(THRICE[0]) == Handled(failed=3, ignored=1)
    assert desk.run(THRICE[0]) == Handled(ignored=1)
    (letter,) = desk.qm.browse("DEAD")
    assert failure_of(letter) is not None
    assert (failure_of(letter).tries, letter.backout_count) == (3, 3)  # type: ignore[union-attr]


def test_a_letter_without_a_further_rule_stays_and_is_reported_once(desk: Desk) -> None:
    desk.die(b"1", queue="GONE")
    desk.die(b"2", 2051)
    handled = desk.run("REASON(2053) ACTION(RETRY)", control="WAIT(20)")
    assert handled == Handled(failed=1, ignored=2)
    assert desk.told() == [("failed", 2, "GONE"), ("ignored", 0, ""), ("ignored", 0, "")]
    assert desk.bodies("DEAD") == [b"1", b"2"]


def test_a_message_without_a_reason_for_being_a_dead_letter_stays(desk: Desk) -> None:
    desk.qm.put("DEAD", b"mine")
    assert desk.run("ACTION(DISCARD)") == Handled(ignored=1)
    (event,) = desk.events
    assert "has no reason for being a dead letter" in str(event.error)
    assert desk.bodies("DEAD") == [b"mine"]


@pytest.mark.parametrize(("control", "seconds"), [("WAIT(NO)", 0), ("WAIT(20)", 20)])
def test_the_handler_waits_for_more_letters_as_long_as_the_table_says(desk: Desk, control: str, seconds: float) -> None:
    assert desk.run("ACTION(DISCARD)", control=control) == Handled()
    assert sum(desk.naps) == seconds


def test_a_letter_that_arrives_during_the_wait_is_handled_and_restarts_the_wait(desk: Desk) -> None:
    def nap(seconds: float) -> bool:
        if len(desk.naps) in (5, 12):
            desk.die(b"late", 2085)
        return desk.nap(seconds)

    assert desk.run("ACTION(DISCARD)", control="WAIT(10)", wait=nap) == Handled(discarded=2)
    assert sum(desk.naps) == pytest.approx(13 + 10)


def test_a_letter_held_by_another_unit_is_handled_after_its_back_out(desk: Desk) -> None:
    desk.die(b"1")
    other = desk.qm.connect()
    other.get("DEAD", syncpoint=True)

    def nap(seconds: float) -> bool:
        if len(desk.naps) == 3:
            other.back_out()
        return desk.nap(seconds)

    assert desk.run("ACTION(RETRY)", control="WAIT(9)", wait=nap) == Handled(retried=1)
    assert desk.bodies("ORDERS") == [b"1"]


def test_a_dry_run_says_what_it_would_do_and_changes_nothing(desk: Desk) -> None:
    for body, reason in ((b"1", 2053), (b"2", 2051), (b"3", 2085)):
        desk.die(body, reason)
    before = list(desk.qm.inspect.look("DEAD"))
    handled = desk.run("REASON(2053) ACTION(RETRY)", "REASON(2051) ACTION(DISCARD)", dry_run=True)
    assert handled == Handled(discarded=1, retried=1, ignored=1)
    assert desk.told() == [("retried", 2, "ORDERS"), ("discarded", 3, ""), ("ignored", 0, "")]
    assert list(desk.qm.inspect.look("DEAD")) == before
    assert desk.bodies("ORDERS") == []


@pytest.mark.parametrize("rule", ["ACTION(FWD) FWDQ(DEAD)", "ACTION(FWD) FWDQ(AGAIN)", "ACTION(RETRY)"])
def test_a_letter_that_would_return_to_its_own_queue_stays(desk: Desk, rule: str) -> None:
    desk.qm.create_queue("AGAIN", type="alias", base_queue="DEAD")
    desk.die(b"1", queue="DEAD")
    assert desk.run(rule) == Handled(failed=1, ignored=1)
    assert desk.bodies("DEAD") == [b"1"]


def test_a_letter_that_names_no_queue_stays(desk: Desk) -> None:
    desk.die(b"1")
    assert desk.run("ACTION(FWD) FWDQ(&REPLYQ)") == Handled(failed=1, ignored=1)


def test_the_queue_of_the_call_takes_precedence_over_that_of_the_table(desk: Desk) -> None:
    desk.qm.create_queue("OTHER")
    desk.die(b"dead")
    letter = desk.qm.get("DEAD")
    desk.qm.put("OTHER", letter)
    assert desk.run("ACTION(DISCARD)") == Handled()
    assert desk.run("ACTION(RETRY)", control="WAIT(NO) INPUTQ(OTHER)") == Handled(retried=1)
    assert desk.run("ACTION(RETRY)", control="WAIT(NO) INPUTQ(OTHER)", queue="DEAD") == Handled()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda d: d.run("ACTION(IGNORE)", control="INPUTQM(ELSE)"), ArgumentError, "rules must be for queue manager"),
        (lambda d: d.run("ACTION(IGNORE)", queue="NONE"), UnknownQueue, "NONE"),
        (lambda d: d.run("ACTION(IGNORE)", dry_run=1), ArgumentError, "dry_run must be True or False"),
        (lambda d: d.run("ACTION(IGNORE)", wait=5), ArgumentError, "wait must be"),
        (lambda d: HANDLE(d.qm, ["ACTION(IGNORE)"]), ArgumentError, "rules must be"),
        (lambda d: HANDLE(d.qm, DeadRules(rules=()), report=5), ArgumentError, "report must be"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_named_in_the_error(
    desk: Desk, call: Callable[[Desk], Any], error: type[CallerError], text: str
) -> None:
    with pytest.raises(error, match=text):
        call(desk)


def test_a_delivery_report_is_made_at_the_final_queue_and_not_at_the_dead_letter_queue(desk: Desk) -> None:
    desk.die(b"1", report=Report.COD, reply_to_queue="REPAIR")
    desk.run("ACTION(RETRY)")
    assert desk.qm.depth("REPAIR") == 0  # its removal from the dead letters is no delivery
    desk.qm.get("ORDERS")
    assert desk.qm.depth("REPAIR") == 1


KILLED = """
import os
from inorder import connect
from inorder.mq.dead_letter_handler import handle_dead_letters
from inorder.rules.dead_rules_syntax import read_rules

with connect(arguments[0]) as qm:
    left = int(arguments[1])

    def told(event):
        global left
        left -= 1
        if not left:
            os.kill(os.getpid(), 9)

    table = arguments[2] if len(arguments) > 2 else "WAIT(NO)\\nACTION(RETRY)"
    handle_dead_letters(qm, read_rules(table.splitlines()), report=told)
"""


@pytest.mark.gate
def test_a_handler_killed_in_the_middle_loses_no_letter(tmp_path: Path) -> None:
    path = str(tmp_path / "shop.db")
    with connect(path) as qm:
        desk = Desk(qm)
        for number in range(6):
            desk.die(b"%d" % number)
        assert forked.run(KILLED, path, "3") == -signal.SIGKILL
        assert (desk.bodies("ORDERS"), desk.bodies("DEAD")) == ([b"0", b"1", b"2"], [b"3", b"4", b"5"])
        handled = handle_dead_letters(qm, read_rules(["WAIT(NO)", "ACTION(RETRY)"]))
        assert (handled.retried, desk.bodies("ORDERS")) == (3, [b"%d" % number for number in range(6)])
