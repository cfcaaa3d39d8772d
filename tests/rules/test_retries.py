"""The record of a failure, and the delay of the next attempt: rules without a store."""

from __future__ import annotations

from typing import Any

import pytest

from inorder import Message, UniqueId
from inorder.errors import ArgumentError
from inorder.rules.retries import (
    ERROR_CHARACTERS_MAX,
    Backoff,
    Failure,
    GivenUp,
    Later,
    failed,
    failed_attempts,
    failure_of,
    given_up,
    noted,
    without,
)


def test_properties_without_the_failure_are_those_of_the_putter() -> None:
    message = Message(b"", properties={"a": 1})
    kept = message.with_values(properties=noted(message, Failure("no", 1.0, 1)))
    assert dict(kept.properties) == {"a": 1, "retry.error": "no", "retry.time": 1.0, "retry.attempt": 1}
    assert without(kept) == message.properties
    assert failure_of(message) is None
    said: dict[str, Any] = {"retry.error": "no", "retry.time": 1.0, "retry.attempt": 1}
    for other in (
        ("retry.error", 3),
        ("retry.work", 3),
        ("retry.tries", "many"),
        ("retry.attempt", "1"),
        ("retry.given_up", 0),
    ):
        assert failure_of(Message(b"", properties=said | dict([other]))) is None, "anybody wrote it"


def test_a_long_error_is_truncated_and_the_next_one_replaces_it() -> None:
    message = Message(b"", properties={"a": 1})
    for error in ("x" * 2_000, "no"):
        message = message.with_values(properties=noted(message, Failure(error, 2.0, 7)))
        assert message.properties["retry.error"] == error[:ERROR_CHARACTERS_MAX]
    assert failure_of(message) == Failure("no", 2.0, 7)


def test_only_consecutive_tries_of_the_same_work_are_counted() -> None:
    message, found = Message(b"", properties={"a": 1}), []
    for work in ("one", "one", "two", "one", "", "one"):
        failure = failed(message, Later(error="no", work=work), 0.0, 1)
        message = message.with_values(properties=noted(message, failure))
        assert failure_of(message) == failure
        found.append(failure.tries)
    assert found == [1, 2, 1, 1, 0, 1]
    assert dict(without(message)) == {"a": 1}


def test_only_counted_failures_are_listed_as_attempts() -> None:
    message = Message(b"", properties={"job.keep": 60.0})
    records = [("full", 0), ("full", 0), ("one", 1), ("full", 1), ("full", 1), ("two", 2), ("four", 4), ("full", 4)]
    seen = []
    for at, (error, attempt) in enumerate(records):
        message = message.with_values(properties=noted(message, Failure(error, float(at), attempt)))
        assert failure_of(message) == Failure(error, float(at), attempt)
        seen.append([number for number, _, _ in failed_attempts(message)])
    assert seen == [[], [], [1], [1], [1], [1, 2], [1, 2, 4], [1, 2, 4]]
    assert failed_attempts(message) == [(1, 2.0, "one"), (2, 5.0, "two"), (4, 6.0, "four")]
    plain = Message(b"").with_values(properties=noted(Message(b""), Failure("no", 1.0, 3)))
    assert failed_attempts(plain) == [(3, 1.0, "no")]


@pytest.mark.parametrize(
    ("error", "kept"),
    [
        ("x" * 201, "x" * 200),
        ("Error: " + "x" * 300 + " (a.py:1 in f)", "Error: " + "x" * 179 + " (a.py:1 in f)"),
        ("Error: x (" + "y" * 200 + ")", "Error: x (" + "y" * 190),
        ("Error: " + "x" * 200 + " (a.py:1 in f", "Error: " + "x" * 193),
    ],
)
def test_a_long_error_of_an_earlier_attempt_is_truncated_but_keeps_its_location(error: str, kept: str) -> None:
    message = Message(b"", properties={"job.keep": 60.0})
    for attempt in (1, 2):
        message = message.with_values(properties=noted(message, Failure(error, 1.0, attempt)))
    assert [text for _, _, text in failed_attempts(message)] == [kept, error]


@pytest.mark.parametrize("own", [{"retry": 1}, {f"a{n}": "x" * 914 for n in range(71)}])
def test_a_failure_that_does_not_fit_beside_the_properties_is_not_noted(own: dict[str, Any]) -> None:
    message = Message(b"", properties=own)
    assert noted(message, Failure("no", 1.0, 1)) is message.properties


# --- messages that are given up

HERE = UniqueId("QM1", 17)


@pytest.mark.parametrize("reason", [0, 2362, 70_000, 2**31 - 1])
def test_a_message_that_was_given_up_stays_so_until_its_next_failure(reason: int) -> None:
    message = Message(b"").with_values(uid=HERE)
    final = GivenUp(HERE, reason)
    for later, kept in ((Later(error="no", given_up=final), final), (Later(error="busy"), None)):
        failure = failed(message, later, 1.0, 3)
        message = message.with_values(properties=noted(message, failure), backout_count=3)
        assert given_up(message) == kept
        again = message.with_values(backout_count=5)  # later it was got again, and its program was killed
        assert given_up(again) == kept


def test_other_messages_of_the_unit_are_not_given_up() -> None:
    message = Message(b"").with_values(uid=UniqueId("QM1", 18))
    assert failed(message, Later(error="no", given_up=GivenUp(HERE)), 1.0, 1) == Failure("no", 1.0, 1)


@pytest.mark.parametrize(
    ("text", "attempt", "backouts", "uid"),
    [
        ("0 17 QM1", 1, 0, HERE),  # it came from another store of that name
        ("0 17 QM1", 0, 0, HERE),
        ("0 17 QM1", -1, 1, HERE),
        ("0 17 QM1", 1, 1, UniqueId("QM1", 18)),
        ("0 17 QM1", 1, 1, UniqueId("QM2", 17)),
        ("0 17 QM1", 1, 1, None),
        ("00 17 QM1", 1, 1, HERE),
        ("-1 17 QM1", 1, 1, HERE),
        ("x 17 QM1", 1, 1, HERE),
        ("17 QM1", 1, 1, HERE),
        ("\u0663 17 QM1", 1, 1, HERE),  # an Arabic digit
        ("1" * 5_000 + " 17 QM1", 1, 1, HERE),  # more digits than Python reads
        ("", 1, 1, HERE),
    ],
)
def test_forged_properties_and_those_of_another_message_give_nothing_up(
    text: str, attempt: int, backouts: int, uid: UniqueId | None
) -> None:
    said: dict[str, Any] = {"retry.error": "no", "retry.time": 1.0, "retry.attempt": attempt, "retry.given_up": text}
    assert given_up(Message(b"", properties=said).with_values(backout_count=backouts, uid=uid)) is None


# --- delays


@pytest.mark.parametrize(
    ("attempt", "luck", "seconds"),
    [(1, 0.5, 1), (2, 0.5, 2), (3, 0.5, 4), (11, 0.5, 600), (5_000, 0.5, 600), (1, 0.0, 0.9), (2, 1.0, 2.2)],
)
def test_each_wait_is_longer_up_to_a_limit(attempt: int, luck: float, seconds: float) -> None:
    assert Backoff().after(attempt, luck) == pytest.approx(seconds)
    assert Backoff(first=0).after(attempt, luck) == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [("first", -1), ("factor", 0.5), ("most", 0.5), ("jitter", 2), ("first", float("nan")), ("factor", "2"),
     ("most", 1e9), ("jitter", True)],
)  # fmt: skip
def test_a_back_off_out_of_its_range_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ArgumentError, match=name):
        Backoff(**{name: value})
