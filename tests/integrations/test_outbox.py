"""An outbox in an application's database: each message once and in order despite kills, and queues that refuse."""

from __future__ import annotations

import contextlib
import math
import os
import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session
from tests.cli.conftest import Command, run, store  # noqa: F401 - fixtures
from tests.helpers import forked
from tests.helpers.carried import values
from tests.helpers.support import Make, bodies, until
from tests.tiers import gate, nightly

import inorder
from inorder import ArgumentError, Flags, Message, QueueFull, QueueManager, UnknownQueue
from inorder.errors import Fenced, MessageTooBig, PutInhibited, StoreError
from inorder.formats.errors import FormatError
from inorder.integrations import outbox as implementation
from inorder.integrations.outbox import Moved, Outbox
from inorder.reasons import Reason
from inorder.testing.remote import the_server
from inorder.work import Tasks


class Shop(SimpleNamespace):
    """An application's database with an outbox, and a queue manager with queue Q.

    Attributes:
        database: its name for the mover.
        open: makes a connection of the application.
        box: the outbox, whose table no other test uses.
    """

    database: str
    open: Callable[[], Any]
    box: Outbox
    qm: QueueManager

    def put(self, *messages: Message | bytes, queue: str = "Q", **fields: Any) -> None:
        with closing(self.open()) as connection:
            for message in messages:
                self.box.put(connection, queue, message, **fields)
            connection.commit()

    def execute(self, statement: str) -> None:
        with closing(self.open()) as connection:
            connection.execute(statement)
            connection.commit()

    def rows(self) -> int:
        with closing(self.open()) as connection:
            [[number]] = connection.execute(f"SELECT count(*) FROM {self.box.table}").fetchall()
            assert isinstance(number, int)
            return number

    def move(self, **options: Any) -> list[Moved]:
        return list(self.box.move(self.database, self.qm, **options))


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=gate)])
def shop(request: pytest.FixtureRequest, tmp_path: Path, qm: QueueManager) -> Iterator[Shop]:
    box = Outbox(f"outbox_{uuid.uuid4().hex[:12]}")
    if request.param == "postgresql":
        database = request.getfixturevalue("postgresql")
        one = Shop(database=database, open=lambda: psycopg.connect(database), box=box, qm=qm)
    else:
        path = tmp_path / "shop.db"
        sqlite3.connect(path).close()
        one = Shop(database=str(path), open=lambda: sqlite3.connect(path), box=box, qm=qm)
    box.create(one.database)
    yield one
    one.execute(f"DROP TABLE {box.table}")


# --- messages


def test_a_message_is_moved_only_if_its_transaction_commits(shop: Shop) -> None:
    with closing(shop.open()) as connection:
        shop.box.put(connection, "Q", b"backed out")
        connection.rollback()
        shop.box.put(connection, "Q", b"open")
        assert shop.move() == []
        connection.commit()
    assert shop.move() == [Moved("Q", 1)]
    assert (bodies(shop.qm), shop.rows(), shop.move()) == ([b"open"], 0, [])


def test_a_moved_message_is_like_one_that_was_put_directly(shop: Shop) -> None:
    given: dict[str, Any] = {"text": "Zürich", "count": 3, "bytes": b"\0x", "none": None, "share": 0.5}
    messages = [
        Message(b"\xff\0", priority=7, persistent=False, correlation_id=b"42", expiry=900),
        Message("Grüße".encode(), format="MQSTR", properties=given, reply_to_queue="R", report=1, user_identifier="me"),
        Message(b"2", group_id=b"G", sequence_number=2, flags=Flags.LAST_IN_GROUP),
        Message(b"", message_id=b"mine"),
    ]
    with closing(shop.open()) as connection:
        for message in messages:
            shop.box.put(connection, "Q", message)
        shop.box.put(connection, "Q")
        connection.commit()
    shop.move()
    shop.qm.create_queue("DIRECT")
    for message in [*messages, Message()]:
        shop.qm.put("DIRECT", message)
    moved, direct = ([values(one) for one in shop.qm.browse(queue)] for queue in ("Q", "DIRECT"))
    for one, other in zip(moved, direct, strict=True):
        if other["message_id"] != b"mine".ljust(24, b"\0"):
            assert one.pop("message_id") != other.pop("message_id")
        assert one.pop("put_at") <= other.pop("put_at")
        assert one == other


def test_a_message_that_never_expires_does_not_get_the_expiry_of_its_queue(shop: Shop) -> None:
    shop.qm.alter_queue("Q", expiry=60)
    shop.put(b"for ever", expiry=math.inf)
    shop.move()
    assert shop.qm.get("Q").expiry == math.inf


def test_a_delayed_message_is_still_delayed_when_it_has_been_moved(shop: Shop) -> None:
    shop.put(b"later", delay=3_600)
    shop.move()
    assert (bodies(shop.qm), shop.qm.depth("Q")) == ([], 1)


def test_rows_that_another_language_inserts_are_moved(shop: Shop) -> None:
    shop.execute(
        f"""INSERT INTO {shop.box.table} (queue, message) VALUES ('Q', '{{"body": "plain", "priority": 3}}')"""
    )
    shop.move()
    assert [(one.body, one.priority) for one in shop.qm.browse("Q")] == [(b"plain", 3)]


def test_a_call_of_a_task_is_sent_as_its_message(shop: Shop) -> None:
    tasks, done = Tasks(), threading.Event()

    @tasks.task("Q", name="pack")
    def pack(order_id: int) -> None:
        if order_id == 17:
            done.set()

    shop.put(pack.message(order_id=17), queue=pack.queue)
    shop.move()
    with shop.qm.worker(tasks):
        until(done.is_set, "it has been called")


def test_batches_keep_the_order_of_the_rows(shop: Shop) -> None:
    expected = [b"%d" % number for number in range(25)]
    shop.put(*expected)
    assert shop.move(unit=10) == [Moved("Q", 10), Moved("Q", 10), Moved("Q", 5)]
    assert bodies(shop.qm) == expected


def test_the_bytes_of_a_batch_are_limited(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(implementation, "UNIT_BYTES", 500)
    shop.put(*[b"x" * 200] * 7)
    assert [step.messages for step in shop.move()] == [3, 3, 1]


# --- connections of other libraries


@pytest.mark.parametrize("kind", ["connection", "session"])
def test_the_outbox_puts_in_a_transaction_of_sqlalchemy(shop: Shop, kind: str) -> None:
    url = shop.database.replace("postgresql://", "postgresql+psycopg://") if "://" in shop.database else ""
    engine = sqlalchemy.create_engine(url or f"sqlite:///{shop.database}")
    with engine.connect() if kind == "connection" else Session(engine) as connection:
        shop.box.put(connection, "Q", b"100 % ?")
        connection.commit()
        shop.box.put(connection, "Q", b"backed out")
        connection.rollback()
    engine.dispose()
    shop.move()
    assert bodies(shop.qm) == [b"100 % ?"]


@gate
async def test_the_outbox_puts_in_an_asynchronous_session(postgresql: str, qm: QueueManager) -> None:
    box = Outbox(f"outbox_{uuid.uuid4().hex[:12]}")
    box.create(postgresql)

    engine = create_async_engine(postgresql.replace("postgresql://", "postgresql+psycopg://"))
    async with AsyncSession(engine) as session, session.begin():
        await session.run_sync(box.put, "Q", b"1", priority=4)
        with pytest.raises(ArgumentError, match="connection must be synchronous"):
            box.put(session, "Q", b"2")
    await engine.dispose()
    assert list(box.move(postgresql, qm)) == [Moved("Q", 1)]
    with psycopg.connect(postgresql) as connection:
        connection.execute(f"DROP TABLE {box.table}".encode())


class Cursor(sqlite3.Cursor):
    """As Django's for SQLite: %s marks a value."""

    def execute(self, statement: str, values: Any = ()) -> Any:
        return super().execute(statement.replace("%s", "?"), values)


def test_it_puts_in_a_transaction_of_django(shop: Shop) -> None:
    """Django's connection has an attribute `connection`, for SQLite a connection of sqlite3, which is callable."""
    with closing(shop.open()) as inner:
        factory = Cursor if isinstance(inner, sqlite3.Connection) else None
        made = SimpleNamespace(connection=inner, cursor=lambda: inner.cursor(factory) if factory else inner.cursor())
        shop.box.put(made, "Q", b"100 % ?")
        inner.commit()
    shop.move()
    assert bodies(shop.qm) == [b"100 % ?"]


@pytest.mark.parametrize(
    ("style", "marks"),
    [("pyformat", "%s, %s"), ("format", "%s, %s"), ("numeric_dollar", "$1, $2"), ("qmark", "?, ?")],
)
def test_a_statement_has_the_marks_of_the_driver_below_sqlalchemy(style: str, marks: str) -> None:
    asked: list[str] = []
    connection = SimpleNamespace(
        dialect=SimpleNamespace(paramstyle=style), exec_driver_sql=lambda statement, _: asked.append(statement)
    )
    Outbox().put(connection, "Q", b"1")
    assert asked == [f"INSERT INTO inorder_outbox (queue, message) VALUES ({marks})"]


# --- a mover that keeps running


def test_a_running_mover_moves_messages_that_are_committed_meanwhile(shop: Shop) -> None:
    ended, moved = threading.Event(), list[Moved]()
    thread = threading.Thread(
        target=lambda: moved.extend(shop.box.move(shop.database, shop.qm, ends=ended.is_set)), name="mover"
    )
    thread.start()
    for number in range(3):
        shop.put(b"%d" % number)
        until(lambda: not shop.rows(), "it has been moved")
    ended.set()
    thread.join()
    assert (bodies(shop.qm), sum(step.messages for step in moved)) == ([b"0", b"1", b"2"], 3)


@gate
def test_a_commit_wakes_the_mover(postgresql: str, qm: QueueManager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(implementation.LOOK_SECONDS, "postgresql", 3_600.0)
    box, ended = Outbox(f"outbox_{uuid.uuid4().hex[:12]}"), threading.Event()
    box.create(postgresql)
    moved = box.move(postgresql, qm, ends=ended.is_set)
    thread = threading.Thread(target=next, args=(moved,))
    thread.start()
    with psycopg.connect(postgresql, autocommit=True) as connection:
        until(lambda: is_listening(connection), "the mover waits")
        box.put(connection, "Q", b"1")
        thread.join()
        moved.close()
        connection.execute(f"DROP TABLE {box.table}".encode())
    assert bodies(qm) == [b"1"]


def is_listening(connection: psycopg.Connection[Any]) -> bool:
    found = connection.execute(
        "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'SELECT queue, batch FROM outbox_%'"
    ).fetchall()
    return bool(found)


def test_a_step_reads_no_more_of_an_sqlite_file_if_more_rows_wait(
    tmp_path: Path, qm: QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    box, path, rows, read = Outbox(), tmp_path / "shop.db", implementation._SQLite.rows, list[int]()
    sqlite3.connect(path).close()
    box.create(path)

    def counting(source: Any, statement: str, values: Any) -> list[Any]:
        source._connection.set_progress_handler(lambda: read.append(1), 10)
        return rows(source, statement, values)

    monkeypatch.setattr(implementation._SQLite, "rows", counting)
    costs = []
    for waiting in (20, 2_000):
        with closing(sqlite3.connect(path)) as connection:
            connection.executemany(
                f"INSERT INTO {box.table} (queue, message) VALUES ('Q', ?)", [('{"body": "x"}',)] * waiting
            )
            connection.commit()
        read.clear()
        with closing(box.move(path, qm, unit=10)) as mover:
            assert next(mover) == Moved("Q", 10)
        costs.append(len(read))
    assert costs[0] > 0
    assert costs[1] < 2 * costs[0]


# --- two movers


@pytest.mark.parametrize("at", range(1, 9))
def test_two_movers_at_once_move_in_order_and_each_message_once(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """After a statement of the first mover a second one marks or moves a batch, and ends."""
    expected = [b"%d" % number for number in range(6)]
    shop.put(*expected)
    rows, statements = implementation._Mover._rows, iter(range(at))
    with shop.qm.connect() as own:

        def stepping(mover: Any, statement: str, *given: object) -> list[Any]:
            found = rows(mover, statement, *given)
            if mover._qm is own and next(statements, None) == at - 1:
                with closing(shop.box.move(shop.database, shop.qm, unit=2)) as second:
                    next(second, None)
            return found

        monkeypatch.setattr(implementation._Mover, "_rows", stepping)
        with contextlib.suppress(Fenced):
            list(shop.box.move(shop.database, own, unit=3))
    shop.move()
    assert (bodies(shop.qm), shop.rows()) == (expected, 0)


# --- refusals


def test_a_queue_that_refuses_messages_delays_no_other_and_is_retried(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.qm.create_queue("FULL", max_depth=1)
    shop.put(b"1", b"2", queue="FULL")
    shop.put(b"3", queue="MISSING")
    shop.put(b"4")
    steps = shop.move()
    found = [(step.queue, step.messages, type(step.error)) for step in steps]
    assert found == [
        ("FULL", 1, type(None)), ("FULL", 0, QueueFull), ("MISSING", 0, UnknownQueue), ("Q", 1, type(None)),
    ]  # fmt: skip
    assert shop.rows() == 2
    monkeypatch.setattr(implementation, "RETRY_SECONDS", 0.0)
    moved = shop.box.move(shop.database, shop.qm, ends=lambda: False)
    assert {next(moved).queue, next(moved).queue} <= {"FULL", "MISSING"}
    shop.qm.alter_queue("FULL", max_depth=9)
    shop.qm.create_queue("MISSING")
    done = [next(moved) for _ in range(2)]
    moved.close()
    assert sorted(done) == [Moved("FULL", 1), Moved("MISSING", 1)]
    assert (bodies(shop.qm, "FULL"), bodies(shop.qm, "MISSING"), shop.rows()) == ([b"1", b"2"], [b"3"], 0)


def test_a_mover_needs_no_authority_but_to_put(tmp_path: Path) -> None:
    server, path, box = the_server(os.getpid()), tmp_path / "shop.db", Outbox()
    with inorder.connect(tmp_path / "queues.db") as qm, closing(sqlite3.connect(path)) as connection:
        qm.create_queue("Q")
        qm.accounts.create_user("mover", roles=["application"], queues={"Q": ["put"]})
        token = qm.accounts.create_token("mover", "test")
        for statement in box.statements("sqlite"):
            connection.execute(statement)
        box.put(connection, "Q", b"1")
        connection.commit()
        with server.serving(str(tmp_path / "queues.db"), qm) as administrators:
            server.admit(token, administrators)
            with inorder.connect(server.url, token=token) as there:
                assert list(box.move(path, there)) == [Moved("Q", 1)]


def test_a_queue_that_is_retried_has_at_most_one_handle(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(implementation, "RETRY_SECONDS", 0.0)
    shop.qm.alter_queue("Q", put_allowed=False)
    shop.put(b"1")
    moved = shop.box.move(shop.database, shop.qm, ends=lambda: False)
    for _ in range(5):
        assert isinstance(next(moved).error, PutInhibited)
    assert shop.qm.inspect.status("Q").open_output_count <= 1
    moved.close()
    assert shop.qm.inspect.status("Q").open_output_count == 0


def test_a_file_that_is_not_a_database_is_a_store_error(tmp_path: Path, qm: QueueManager) -> None:
    path = tmp_path / "text"
    path.write_text("no database" * 100)
    with pytest.raises(StoreError, match="the database of the outbox: file is not a database"):
        list(Outbox().move(path, qm))


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("torn", "not JSON"),
        ('{"bodi": "x"}', "there is no key 'bodi'; did you mean body?"),
        ('{"body": "", "message_type": 1}', "a request, or a message that asks for reports, needs"),
    ],
)
def test_an_invalid_row_is_named_and_holds_up_only_the_later_rows_of_its_queue(shop: Shop, row: str, why: str) -> None:
    shop.put(b"1", b"2", b"3", b"4")
    shop.execute(f"UPDATE {shop.box.table} SET message = '{row}' WHERE id = 3")
    moved, held_up = shop.move()
    assert moved == Moved("Q", 2)
    assert (held_up.queue, type(held_up.error), shop.rows()) == ("Q", FormatError, 2)
    assert str(held_up.error).startswith(f"{shop.box.table}, id 3: {why}")
    shop.execute(f"""UPDATE {shop.box.table} SET message = '{{"body": "mended"}}' WHERE id = 3""")
    assert shop.move() == [Moved("Q", 2)]
    assert (bodies(shop.qm), shop.rows()) == ([b"1", b"2", b"mended", b"4"], 0)


def test_a_message_that_is_too_long_for_its_queue_stays(shop: Shop) -> None:
    shop.qm.alter_queue("Q", max_length=3)
    shop.put(b"123", b"1234")
    [step] = shop.move()
    assert isinstance(step.error, MessageTooBig)
    assert (bodies(shop.qm), shop.rows()) == ([], 2)


def test_an_empty_segment_that_is_not_the_last_holds_up_no_other_queue(shop: Shop) -> None:
    shop.qm.create_queue("OTHER")
    shop.put(b"", flags=Flags.SEGMENT)
    shop.put(b"other", queue="OTHER")
    refused, moved = shop.move()
    assert refused.error is not None
    assert refused.error.reason is Reason.SEGMENT_LENGTH_ZERO
    assert moved == Moved("OTHER", 1)


def test_two_databases_under_one_name_never_put_twice_and_one_of_them_is_fenced(shop: Shop, tmp_path: Path) -> None:
    other, box = tmp_path / "other.db", Outbox()
    with closing(sqlite3.connect(other)) as connection:
        for statement in box.statements("sqlite"):
            connection.execute(statement)
        box.put(connection, "Q", b"other")
        connection.commit()
        first = box.move(other, shop.qm, ends=lambda: False)
        next(first)  # it keeps running
        shop.put(b"mine")
        shop.move()
        box.put(connection, "Q", b"late")
        connection.commit()
        with pytest.raises(Fenced):
            next(first)
    assert [one.messages for one in box.move(other, shop.qm, application="other")] == [1]
    assert bodies(shop.qm) == [b"other", b"mine", b"late"]


def _put_in_memory(*arguments: Any, **fields: Any) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        Outbox().put(connection, *arguments, **fields)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: Outbox("Robert'); --"), "table must be up to 41 lower-case letters"),
        (lambda: Outbox().statements("oracle"), "database must be postgresql or sqlite, not 'oracle'"),  # type: ignore[arg-type]
        (lambda: Outbox().put(object(), "Q"), "connection must be a connection to the application's database"),
        (lambda: _put_in_memory(""), "queue must be the name of a queue, not ''"),
        (lambda: _put_in_memory("Q", b"", expiry=-1), "expiry must be"),
        (lambda: next(Outbox().move("mysql://here", object())), "database must be the path of an SQLite file"),  # type: ignore[arg-type]
        (lambda: next(Outbox().move("none.db", object())), "database must be a file that exists"),  # type: ignore[arg-type]
        (lambda: next(Outbox().move("none.db", object(), unit=0)), "unit must be"),  # type: ignore[arg-type]
    ],
)
def test_wrong_arguments_are_named(call: Callable[[], object], text: str) -> None:
    with pytest.raises(ArgumentError, match=text.replace("(", r"\(")):
        call()


def test_an_error_of_the_database_is_a_store_error(shop: Shop) -> None:
    with pytest.raises(StoreError, match=r"the database of the outbox: .*no_such_table"):
        list(Outbox("no_such_table").move(shop.database, shop.qm))


# --- kills

KILLED = """
import sqlite3
import inorder
from inorder.integrations import outbox
from tools.proof import crash_points

step = crash_points.kill_at_step(int(arguments[0]))
rows = outbox._SQLite.rows

def stepping(self, statement, values):
    found = rows(self, statement, values)
    step(statement)
    return found

outbox._SQLite.rows = stepping
with inorder.connect(arguments[2], program="mover") as qm:
    crash_points.reach(step)
    for moved in outbox.Outbox().move(arguments[1], qm, unit=2):
        pass
"""


@pytest.mark.parametrize(
    "first", [pytest.param(1, marks=gate), *[pytest.param(n, marks=nightly) for n in range(2, 30)]]
)
def test_a_mover_killed_at_each_point_puts_each_message_once_and_in_order(
    make: Make, tmp_path: Path, first: int
) -> None:
    """After each kill the next mover is killed, too, one point later; the last one ends."""
    path, url, box = tmp_path / "shop.db", make("sqlite"), Outbox()
    expected = [b"%d" % number for number in range(5)]
    with closing(sqlite3.connect(path)) as connection, inorder.connect(url) as qm:
        for statement in box.statements("sqlite"):
            connection.execute(statement)
        for queue in ("Q", "OTHER"):
            qm.create_queue(queue)
            for body in expected:
                box.put(connection, queue, body)
        qm.create_queue("TORN")
        box.put(connection, "TORN", b"0")
        connection.execute(f"INSERT INTO {box.table} (queue, message) VALUES ('TORN', 'torn')")
        connection.commit()
        deaths = 0
        while forked.run(KILLED, str(first + deaths), str(path), url):
            deaths += 1
        assert (bodies(qm), bodies(qm, "OTHER")) == (expected, expected), f"after {deaths} kills"
        assert bodies(qm, "TORN") == [b"0"], f"after {deaths} kills"
        assert connection.execute(f"SELECT message FROM {box.table}").fetchall() == [("torn",)]
        assert deaths


# --- the command


def test_the_command_creates_the_table_and_moves_messages(run: Command, store: Path, tmp_path: Path) -> None:  # noqa: F811
    path, box = tmp_path / "shop.db", Outbox("mail")
    with closing(sqlite3.connect(path)) as connection:
        assert run("queue", "create", "ORDERS").status == 0
        assert run("outbox", str(path), "--create", "--table", "mail", "--until-empty").out == ""
        box.put(connection, "ORDERS", b"1")
        box.put(connection, "MISSING", b"2")
        connection.commit()
    ended = run("outbox", str(path), "--table", "mail", "--until-empty")
    assert ended.status == 2
    assert ended.out.splitlines() == [
        "moved 1 message to ORDERS",
        "MISSING takes no messages now: there is no queue 'MISSING' [2085 UNKNOWN_OBJECT_NAME]",
    ]
    [record] = run("outbox", str(path), "--table", "mail", "--until-empty", "--json").records
    assert (record["queue"], record["messages"], record["reason_name"]) == ("MISSING", 0, "UNKNOWN_OBJECT_NAME")
    with inorder.connect(store) as qm:
        assert bodies(qm, "ORDERS") == [b"1"]


def test_the_command_names_the_row_that_holds_up_its_queue(run: Command, store: Path, tmp_path: Path) -> None:  # noqa: F811
    path, box = tmp_path / "shop.db", Outbox()
    assert run("queue", "create", "ORDERS").status == 0
    path.touch()
    box.create(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"INSERT INTO {box.table} (queue, message) VALUES ('ORDERS', 'torn')")
        connection.commit()
    ended = run("outbox", str(path), "--until-empty")
    assert ended.out.startswith("ORDERS is held up by a row: inorder_outbox, id 1: not JSON")


def test_the_command_names_a_missing_database(run: Command, store: Path) -> None:  # noqa: F811
    inorder.connect(store).close()
    assert run("outbox", "--help").out.startswith("Usage: inorder outbox [OPTIONS] DATABASE\n")
    ended = run("outbox", "none.db")
    assert ended.status == 2
    assert ended.err.startswith("inorder: DATABASE must be a file that exists, or postgresql://..., not 'none.db'")
