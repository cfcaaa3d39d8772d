"""Statements that are sent without waiting for the answers: errors, exceptions from outside, and values."""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from tests.helpers.support import Call, until

from inorder.stores.postgresql.address import parse
from inorder.stores.postgresql.link import Link
from inorder.stores.postgresql.statement import array


class FromOutsideError(Exception):
    """Stands for an exception that a signal handler raises."""


@contextmanager
def linked(url: str) -> Iterator[Link]:
    link = Link(parse(url), "test")
    try:
        yield link
    finally:
        link.close()


@pytest.fixture
def link(postgresql: str) -> Iterator[Link]:
    """A connection with an empty table."""
    schema = f"pipeline_{secrets.token_hex(8)}"
    with linked(f"{postgresql}?schema={schema}") as link:
        link.execute(f"CREATE SCHEMA {schema}")
        link.execute("CREATE TABLE t (id bigint PRIMARY KEY)")
        yield link
        link.roll_back()
        link.execute(f"DROP SCHEMA {schema} CASCADE")


def kept(link: Link) -> list[int]:
    return [one for (one,) in link.execute("SELECT id FROM t ORDER BY id")]


def test_an_error_surfaces_with_the_commit_at_the_latest_and_nothing_has_happened(link: Link) -> None:
    link.begin("BEGIN")
    for one in (1, 2, 1, 3):
        link.execute("INSERT INTO t VALUES (?)", (one,))
    with pytest.raises(psycopg.errors.UniqueViolation):
        link.commit()
    link.roll_back()
    assert kept(link) == []


def test_a_statement_that_was_skipped_is_prepared_again(link: Link) -> None:
    link.begin("BEGIN")
    link.execute("SELECT 1 / 0")
    link.execute("SELECT 'first prepared after an error'")
    with pytest.raises(psycopg.errors.DivisionByZero):
        link.commit()
    link.roll_back()
    ((said,),) = link.execute("SELECT 'first prepared after an error'")
    assert said == "first prepared after an error"


def interrupt_when_it_waits(link: Link) -> None:
    asked = f"SELECT wait_event_type FROM pg_stat_activity WHERE pid = {link.server_pid}"
    with linked(str(link.address)) as looking:
        until(lambda: looking.execute(asked).fetchall() == [("Lock",)], "the other has the row")
    os.kill(os.getpid(), signal.SIGALRM)


def test_an_interrupted_wait_leaves_the_connection_usable(link: Link) -> None:
    def interrupt(*_: object) -> None:
        raise FromOutsideError

    link.execute("INSERT INTO t VALUES (1)")
    with linked(str(link.address)) as other:
        other.begin("BEGIN")
        other.execute("SELECT id FROM t FOR UPDATE").fetchall()
        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            link.begin("BEGIN")
            link.execute("INSERT INTO t VALUES (2)")
            alarm = Call(lambda: interrupt_when_it_waits(link))
            with pytest.raises(FromOutsideError):
                link.execute("SELECT id FROM t FOR UPDATE").fetchall()
            alarm.result()
        finally:
            signal.signal(signal.SIGALRM, before)
        link.roll_back()
        assert kept(link) == [1], "while the other still has the row"


def test_a_block_interrupted_by_an_exception_commits_nothing(link: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exception comes before BEGIN is sent; all that the transaction did before is rolled back nevertheless."""

    def interrupt(*_: object) -> None:
        raise FromOutsideError

    link.begin()
    link.execute("INSERT INTO t VALUES (1)")
    with monkeypatch.context() as patch:
        patch.setattr(link.pipeline, "execute", interrupt)
        with pytest.raises(FromOutsideError):
            link.block()
    link.roll_back()
    assert kept(link) == []


def test_a_failed_notification_of_waiters_is_logged_and_harmless(link: Link, caplog: pytest.LogCaptureFixture) -> None:
    """It fails at its commit, because of a constraint, or at once, because a channel must have a name."""
    link.execute("CREATE TABLE listener AS SELECT bigint '1' AS queue, 'c' AS channel, timestamptz 'infinity' AS until")
    link.execute("CREATE TABLE full_queue (n bigint PRIMARY KEY DEFERRABLE INITIALLY DEFERRED)")
    link.execute("INSERT INTO full_queue VALUES (1)")
    link.execute(
        "CREATE FUNCTION store_number() RETURNS bigint LANGUAGE sql "
        "AS $$ INSERT INTO full_queue VALUES (1) RETURNING n $$"
    )
    for number in (1, 2):
        link.begin("BEGIN")
        link.execute("INSERT INTO t VALUES (?)", (number,))
        link.commit(flushes=True, wakes=[1])
        link.flush(link.commits)
        assert link.flushed == link.commits
    link.begin("BEGIN")
    link.commit(wakes=[1])
    link.execute("UPDATE listener SET channel = ''")
    link.begin("BEGIN")
    link.commit(wakes=[1])
    assert kept(link) == [1, 2]
    assert caplog.text.count("could not be notified") == 4


@pytest.mark.parametrize("kind", ["bigint", "double precision", "text", "bytea"])
def test_arrays_are_returned_as_they_were_sent(link: Link, kind: str) -> None:
    samples: dict[str, list[object]] = {
        "bigint": [1, None, -(2**63), 2**63 - 1],
        "double precision": [0.5, None, -1e300],
        "text": ["", None, "äöü", "a,b{}"],
        "bytea": [b"", None, bytes(range(256))],
    }
    given = samples[kind]
    found = link.execute("SELECT unnest(?)", (array(given, type(given[0])),)).fetchall()  # type: ignore[arg-type]
    assert [one for (one,) in found] == given
    nothing = link.execute("SELECT unnest(?)", (array([None, None], type(given[0])),)).fetchall()
    assert nothing == [(None,), (None,)]
    assert link.execute("SELECT unnest(?)", (array([], type(given[0])),)).fetchall() == []


def test_null_is_accepted_for_a_parameter_of_any_type(link: Link) -> None:
    assert link.execute("SELECT CAST(?1 AS bigint), CAST(?2 AS text)", (None, "a")).fetchall() == [(None, "a")]
    assert link.execute("SELECT CAST(?1 AS bigint), CAST(?2 AS text)", (7, None)).fetchall() == [(7, None)]
    assert link.execute("SELECT CAST(?1 AS bigint), CAST(?2 AS text)", (None, None)).fetchall() == [(None, None)]


def test_an_error_at_the_commit_of_a_statement_is_raised_and_the_next_statement_succeeds(link: Link) -> None:
    link.execute("CREATE TEMP TABLE late (n bigint, UNIQUE (n) DEFERRABLE INITIALLY DEFERRED)")
    with pytest.raises(psycopg.errors.UniqueViolation):
        link.execute("INSERT INTO late SELECT 1 FROM generate_series(1, 2)")
    assert link.execute("SELECT count(*) FROM late").fetchall() == [(0,)]
    assert not link.is_closed


def test_a_flush_whose_answer_was_discarded_with_an_interrupted_transaction_is_repeated(link: Link) -> None:
    link.begin("BEGIN")
    link.execute("INSERT INTO t VALUES (1)")
    link.commit(flushes=True)
    ticket = link.commits
    link.begin("BEGIN")
    link.roll_back()
    link.flush(ticket)
    assert link.flushed >= ticket
