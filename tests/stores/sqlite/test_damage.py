"""Rows that nobody wrote: every call works, or says that the store is damaged; and the check finds them.

INORDER_LONG=1 tries every value in every column, and many more files with flipped bytes.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from tests.helpers.damaging import damage, fill, found_by_check, troubles
from tests.tiers import gate, nightly

from inorder.cli import main
from inorder.stores.sqlite.statements import SCHEMA, TABLES

LONG = "INORDER_LONG" in os.environ
GENERATED = {"available", "holder", "ends", "is_end"}
VALUES = (
    "NULL", "'x'", "2.5", "-1", "9223372036854775807", "x'ff'", "CAST(x'ff' AS TEXT)", "'[]'", "-9223372036854775808",
    "0",
)  # fmt: skip
COLUMNS = [(table, column) for table, columns in TABLES.items() for column in columns if column not in GENERATED]
CASES = [
    pytest.param(table, column, value, marks=nightly if index % 8 else gate)
    for index, (table, column) in enumerate(COLUMNS)
    for nth, value in enumerate(VALUES)
    if LONG or nth == index % len(VALUES)
]
# Columns in which any value of the right type may be valid: the check accepts it, and so do readers.
TEXTS_OF_USERS = {
    "manager.boot", "connection.user", "connection.program", "handle.name", "unit.user", "unit.program", "unit.name",
    "account.user", "account.program", "channel.name", "channel.error",
    "received.identifier", "received.channel", "received.manager",
    "ledger.application", "ledger.query", "ledger.batch", "message.uid_origin",
    "putkey.target", "putkey.key", "putkey.uid_origin", "attempt.key",
    "act.user", "act.address", "act.act", "act.queue", "act.error",
    "message.lock_confirm", "body.identifier", "body.channel", "piece.identifier", "piece.channel",
    "globalunit.name", "globalunit.user", "globalunit.program",
}  # fmt: skip
TIMES = {
    "definition.created_at", "definition.altered_at", "unit.started_at", "unit.lease_ends_at", "message.expires_at",
    "message.due_at", "message.visible_at", "message.locked_at", "message.co_op_marked_at", "content.expiry",
    "content.put_at", "content.delay", "staging.expires_at", "staged.expiry", "staged.delay", "ledger.committed_at",
    "putkey.put_at", "putkey.expires_at", "lease.ends_at", "attempt.at", "attempt.empty_at", "act.at",
    "sample.at",
    "object.altered_at", "channel.changed_at", "sent.sent_at", "received.received_at", "triggered.at",
    "dropped.last_at", "globalunit.started_at", "manager.created_at",
}  # fmt: skip
ANY_NUMBER = {
    # Chosen by the program that put the message.
    "message.original_length", "message.priority", "message.persistent",
    "staged.original_length", "staged.priority", "staged.persistent", "staged.offset", "staged.flags", "staged.whole",
    "message.uid_number", "message.rank", "putkey.uid_number",
    # Counts, which nothing else confirms.
    "manager.revision", "tally.arrived", "tally.reserved", "message.backouts", "message.ordinal", "message.forgotten",
    "account.epoch", "account.settled", "account.delivered", "claim.size", "claim.planned", "staging.given",
    "ledger.messages", "ledger.id", "entered.id", "leftover.id", "wait.withheld", "staging.has_keys",
    "staging.has_order", "staging.has_numbers", "handle.input", "handle.output", "handle.co_op", "handle.exclusive",
    "handle.made_temporary", "channel.epoch", "channel.short_retries", "channel.long_retries", "channel.reason",
    "sent.number", "sent.messages", "sent.size", "received.number", "received.epoch", "received.messages",
    "dropped.messages", "dropped.reason", "lease.seconds", "lease.calls", "attempt.level", "act.id", "act.messages",
    "sample.slot",
    # The queue or message that it names may be deleted.
    "handle.queue", "entered.queue", "wait.queue", "mark.message", "channel.carrier", "dropped.queue",
    "received.incarnation", "globalunit.connection",
    # Parts of what has not arrived whole: the sender replaces them when it sends the rest.
    "body.incarnation", "body.position", "body.size", "body.held", "piece.incarnation", "piece.position", "piece.first",
    "channel.fast",
}  # fmt: skip
ANYTHING = {"staged.group_key", "staged.order_key"}  # chosen by the caller
BYTES = {"content.accounting_token", "entered.group_id", "received.digest", "body.batch", "body.digest", "piece.data"}


def may_be(table: str, column: str, value: str) -> bool:
    """Whether nothing shows that the value is wrong: the column may be empty, or have any value of the type."""
    name, types = f"{table}.{column}", TABLES[table][column]
    if value == "NULL":
        return type(None) in types
    if name in ANYTHING:
        return "CAST" not in value
    fits = {
        name in TEXTS_OF_USERS: value in ("'x'", "'[]'"),
        name in TIMES: value in ("2.5", "0", "-1") or value.lstrip("-").startswith("92"),
        name in ANY_NUMBER: value.lstrip("-").isdecimal() or (value == "2.5" and float in types),
        name in BYTES: value == "x'ff'",
    }
    return fits.get(True, False)


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "store.db"
    fill(path)
    return path


@pytest.fixture
def path(sound: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(shutil.copy(sound, Path(folder) / "store.db"))


def test_the_store_is_sound_before_it_is_damaged(path: Path) -> None:
    assert found_by_check(path) == []
    assert list(troubles(path)) == []


@pytest.mark.parametrize(("table", "column", "value"), CASES)
def test_a_corrupted_value_is_found_by_the_check_and_causes_no_unexpected_error(
    path: Path, table: str, column: str, value: str
) -> None:
    if not damage(path, f'UPDATE {table} SET "{column}" = {value} WHERE "{column}" IS NOT {value}'):
        pytest.skip("the file cannot hold it: a key of the table, or of an index")
    found = found_by_check(path)
    assert found or may_be(table, column, value), "the check finds nothing"
    assert list(troubles(path)) == []


PLANTED = {
    "bodies exchanged": (
        "CREATE TEMP TABLE kept AS SELECT id, crc, body FROM content WHERE length(body) = 6 LIMIT 2",
        "UPDATE content SET (crc, body) = (SELECT crc, body FROM kept WHERE kept.id <> content.id) "
        "WHERE id IN (SELECT id FROM kept)",
    ),
    "one place for two messages": (
        "DROP INDEX message_place",
        "UPDATE message SET rank = 0, number = 1, ordinal = 0, head = 2",
    ),
    "a queue under another number": ("UPDATE definition SET id = 777 WHERE name = 'Q'",),
    "a unit that is another's": ("UPDATE unit SET queue = 777 WHERE queue IS NOT NULL",),
    "states exchanged": ("UPDATE message SET state = 6 - state",),
    "a group that is one message many times": (f"UPDATE message SET group_id = x'{'41' * 24}'",),
    "a deep text": (f"UPDATE entered SET entry = '{'[' * 900}{']' * 900}'",),
    "an entry of another shape": ("UPDATE entered SET entry = '[[0, 1, \"x\"], [], 1, 2, 3]'",),
    "attributes of another shape": ("UPDATE definition SET attributes = '{\"name\": 7}'",),
}
LEFT = [table for table in TABLES if table != "leftover"]
NONE_LEFT = {f"no row of {table}": (f"DELETE FROM {table}",) for table in LEFT}
ONE_LESS = {
    f"one row less in {table}": (f"DELETE FROM {table} WHERE {key} IN (SELECT max({key}) FROM {table})",)
    for table, key in ((table, next(iter(TABLES[table]))) for table in LEFT)
}
ROWS = {**PLANTED, **NONE_LEFT, **ONE_LESS}
# Nothing refers to rows of the last ten: definitions and counts may be deleted.
HARMLESS = {
    f"no row of {table}"
    for table in """wait mark entered ledger putkey handle
        object channel sent received triggered attempt act sample dropped globalunit""".split()
}


@pytest.mark.parametrize(
    "case",
    [
        *PLANTED,
        *(pytest.param(one, marks=gate) for one in NONE_LEFT),
        *(pytest.param(one, marks=nightly) for one in ONE_LESS),
    ],
)
def test_corrupted_rows_are_found_by_the_check_and_cause_no_unexpected_error(path: Path, case: str) -> None:
    if not damage(path, *ROWS[case]):
        pytest.skip("the file cannot hold it")
    found = found_by_check(path)
    assert found or case.replace("one row less in", "no row of") in HARMLESS, "the check finds nothing"
    assert list(troubles(path)) == []


def flipped(path: Path, seed: int) -> str:
    """Flips bits in a file, or exchanges two pages. Returns what it did."""
    chance, content = random.Random(seed), bytearray(path.read_bytes())
    size = int.from_bytes(content[16:18], "big")
    if seed % 4 == 0:
        one, another = (size * chance.randrange(1, len(content) // size) for _ in range(2))
        content[one : one + size], content[another : another + size] = (
            content[another : another + size],
            content[one : one + size],
        )
        what = f"pages {one // size} and {another // size} exchanged"
    else:
        places = [chance.randrange(100, len(content)) for _ in range(chance.choice((1, 8, 64)))]
        for place in places:
            content[place] ^= 1 << chance.randrange(8)
        what = f"bits flipped at {places}"
    path.write_bytes(content)
    return what


@pytest.mark.parametrize(
    "seed",
    [*range(4), *(pytest.param(seed, marks=gate if seed < 12 else nightly) for seed in range(4, 2000 if LONG else 48))],
)
def test_flipped_bytes_cause_no_unexpected_error_in_calls_or_in_the_check(
    path: Path, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    what = flipped(path, seed)
    another = shutil.copy(path, path.with_name("another.db"))
    assert list(troubles(path)) == [], what
    for arguments in (["check"], ["check", "--json"]):
        assert main([*arguments, "--store", str(another)]) in (0, 1, 3), what
    assert "Traceback" not in capsys.readouterr().err


def test_the_declared_types_of_columns_match_the_schema() -> None:
    names = {"INTEGER": int, "REAL": float, "TEXT": str, "BLOB": bytes}
    with contextlib.closing(apsw.Connection(":memory:")) as connection:
        connection.execute(SCHEMA).fetchall()
        for table, columns in TABLES.items():
            found = {
                name: (kind, bool(not_null or key))
                for _, name, kind, not_null, _, key, _ in connection.execute(f"PRAGMA table_xinfo({table})")
            }
            assert columns.keys() == found.keys(), table
            for name, (kind, never_null) in found.items():
                assert (type(None) in columns[name]) == (not never_null), (table, name)
                assert kind == "ANY" or names[str(kind)] in columns[name], (table, name)
