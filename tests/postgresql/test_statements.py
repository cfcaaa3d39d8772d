"""The schema and the statements on a server: all can be prepared, go by index, and follow groups as SQLite does."""

from __future__ import annotations

import random
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import apsw
import psycopg
import pytest

from inorder.stores.postgresql.statements import SCHEMA, STATEMENTS, TABLES, checks, own
from inorder.stores.sql import listing, records, selection
from inorder.stores.sql.descriptors import column
from inorder.stores.sql.statements import statements
from inorder.stores.sqlite.statements import SCHEMA as SQLITE_SCHEMA
from inorder.stores.sqlite.statements import STATEMENTS as SQLITE_STATEMENTS
from inorder.stores.sqlite.statements import TABLES as SQLITE_TABLES
from inorder.stores.tables import KEY_LENGTHS, UnitRow

SETTINGS = """
    SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;
    SET max_parallel_workers_per_gather = 0; SET jit = off
"""
MODES = ("force_custom_plan", "force_generic_plan")
MESSAGES = 20_000
OWN = own() | own("queries_sessions.sql") | own("queries_gets.sql") | own("queries_fronts.sql")
Connection: TypeAlias = "psycopg.Connection[Any]"


@contextmanager
def in_a_new_schema(postgresql: str) -> Iterator[Connection]:
    """A session as the store has it."""
    name = f"statements_{secrets.token_hex(4)}"
    with psycopg.connect(postgresql, autocommit=True, prepare_threshold=None) as connection:
        connection.execute(f"CREATE SCHEMA {name}; SET search_path TO {name}; {SETTINGS}".encode())
        connection.execute(SCHEMA.encode())
        try:
            yield connection
        finally:
            connection.execute(f"DROP SCHEMA {name} CASCADE".encode())


@pytest.fixture(scope="module")
def connection(postgresql: str) -> Iterator[Connection]:
    with in_a_new_schema(postgresql) as connection:
        yield connection


# --- statements, prepared


def numbered(text: str) -> tuple[str, list[str]]:
    """A text with $1, $2 ... in place of its parameters, and their names; a question mark alone has none."""
    names: list[str] = []

    def number(found: re.Match[str]) -> str:
        parameter = found[0]
        if parameter.startswith("'"):
            return parameter
        if parameter[1:].isdigit():
            return f"${parameter[1:]}"
        if parameter == "?" or parameter[1:] not in names:
            names.append(parameter[1:])
            return f"${len(names)}"
        return f"${names.index(parameter[1:]) + 1}"

    return re.sub(r"'[^']*'|\?\d*|(?<!:):[a-z_]\w*", number, text), names


def prepared(connection: Connection, text: str) -> tuple[list[str], list[str]]:
    """Prepares a statement as `tried`, whole numbers being bigint, as they are sent; types and names of parameters."""
    sql, names = numbered(text)
    connection.execute("DEALLOCATE ALL")
    connection.execute(f"PREPARE guessed AS {sql}".encode())
    found = connection.execute("SELECT CAST(parameter_types AS text[]) FROM pg_prepared_statements").fetchone()
    assert found is not None
    types = [re.sub("^(smallint|integer)", "bigint", one) for one in found[0]]
    listed = f"({', '.join(types)})" if types else ""
    connection.execute(f"PREPARE tried {listed} AS {sql}".encode())
    return types, names


def texts(name: str) -> list[str]:
    """A statement as it is sent, whatever a call chooses from."""
    text = STATEMENTS[name]
    if "{chosen}" not in text:
        return [text]
    chosen = [
        selection.EVERYTHING,
        selection.Selection(selection.CONTENT_JOIN, f" AND {column('format')} = :format", {}),
        selection.Selection("", " AND NOT EXISTS (SELECT 1 FROM mark WHERE message = m.id AND handle = :reader)", {}),
        selection.Selection("", f" AND {selection.UID_CONDITION}", {}),
    ]
    if "LIMIT :limit" in text and "{head}" not in text:
        return [selection.filled(text, one) for one in chosen]
    return [selection.ordered(text, one, heads) for one in chosen for heads in ((0, 1, 2), (2,))]


@pytest.mark.parametrize("name", sorted(STATEMENTS))
def test_a_statement_can_be_prepared(name: str, connection: Connection) -> None:
    for text in texts(name):
        assert "{" not in text
        prepared(connection, text)


@pytest.mark.parametrize("name", sorted(checks()))
def test_a_check_runs_and_finds_nothing_in_a_new_store(name: str, connection: Connection) -> None:
    found = connection.execute(checks()[name].encode()).fetchall()
    assert [text for (text,) in found if "the queue manager is missing" not in text] == []


@pytest.mark.parametrize("kind", KEY_LENGTHS, ids=records.table_of)
def test_small_records_can_be_kept(kind: Any, connection: Connection) -> None:
    """Their statements are made of their fields; what is read back is what was saved, also of `user`."""
    types = TABLES[records.table_of(kind)]
    samples: dict[Any, Any] = {str: "x", bytes: b"x" * 24, int: 1, float: 1.0}
    values = [next(samples[one] for one in samples if one in types[name]) for name in kind._fields]
    said = {"kind": "session", "type": "local", "queue": None if kind is UnitRow else 1, "attributes": "{}"}
    said |= dict.fromkeys(("state", "pending", "levels"), "{}") | {
        "lease_ends_at": None,
        "status": "running",
        "stop": "",
        "outcome": "begun",
    }
    if str in TABLES[records.table_of(kind)].get("queue", ()):  # a name
        del said["queue"]
    row = [said.get(name, value) for name, value in zip(kind._fields, values, strict=True)]
    before, after = records.selecting(kind)
    with connection.transaction(force_rollback=True):
        for _ in range(2):
            connection.execute(records.saving(kind).replace("?", "%s").encode(), row)
        assert connection.execute(f"{before} true {after}".encode()).fetchall()[-1] == tuple(row)


@pytest.mark.parametrize("name", ["available", "held", "members in order", "unplaced of unit"])
def test_what_operators_choose_from_can_be_prepared(name: str, connection: Connection) -> None:
    held_by = " AND (m.unit = :held_by OR (m.lock = :held_by AND m.unit IS NULL))"
    condition = f"{listing.THERE}{listing.IS_FIRST} AND (m.flags & 30 <> 0 OR (true{held_by}))"
    chosen = selection.Selection("", condition, {})
    text = selection.ordered(STATEMENTS[name], chosen, (1, 2)) if "{head}" in STATEMENTS[name] else ""
    prepared(connection, text or selection.filled(STATEMENTS[name], chosen))


def test_every_statement_of_sqlite_is_there() -> None:
    assert SQLITE_STATEMENTS.keys() <= STATEMENTS.keys()


def test_every_table_of_sqlite_is_there_with_its_columns() -> None:
    generated, more = {"message": {"available"}}, {"tally": {"unordered", "serial", "fronts"}}
    expressions = {"message": {"ends", "is_end", "holder"}}  # of PostgreSQL: a generated column costs every statement
    for table, columns in SQLITE_TABLES.items():
        shared = columns.keys() - expressions.get(table, set())
        assert shared == TABLES[table].keys() - more.get(table, set()), table
        others = shared - generated.get(table, set()) - {"group_key", "order_key"}
        assert {name: columns[name] for name in others} == {name: TABLES[table][name] for name in others}, table


@pytest.mark.parametrize("name", sorted(OWN))
def test_a_statement_says_why_it_is_there(name: str) -> None:
    assert OWN[name].startswith("-- ")


def test_no_text_is_the_same_in_both_places() -> None:
    plain = {name: text.partition("\n")[2] for name, text in statements().items()}
    assert [name for name, text in own().items() if text.partition("\n")[2] == plain.get(name)] == []


def test_nothing_is_made_outside_of_the_schema(connection: Connection, postgresql: str) -> None:
    made = """
        SELECT count(*) FILTER (WHERE n.nspname = current_schema()), count(*) FILTER (WHERE n.nspname = 'public')
        FROM (SELECT relnamespace AS of FROM pg_class UNION ALL SELECT pronamespace FROM pg_proc
            UNION ALL SELECT oprnamespace FROM pg_operator) AS o JOIN pg_namespace n ON n.oid = o.of
    """
    with psycopg.connect(postgresql, autocommit=True) as other:
        other.execute(f"SET search_path TO {connection.execute('SELECT current_schema()').fetchall()[0][0]}".encode())
        ((_, before),) = other.execute(made.encode()).fetchall()
    ((ours, public),) = connection.execute(made.encode()).fetchall()
    assert ours > len(TABLES)
    assert public == before
    assert "public" not in SCHEMA


# --- numbers


def draw(connection: Connection, count: int) -> int:
    ((first,),) = connection.execute("SELECT draw(%s)", (count,)).fetchall()
    return int(first)


@pytest.fixture
def undrawn(connection: Connection) -> Connection:
    connection.execute("SELECT setval('number', 1, false)")
    return connection


def test_numbers_are_drawn_in_a_row(undrawn: Connection) -> None:
    assert [draw(undrawn, count) for count in (100, 950, 1, 1)] == [1, 101, 1051, 1052]


def test_numbers_are_never_drawn_again_after_a_back_out(undrawn: Connection) -> None:
    with undrawn.transaction(force_rollback=True):
        assert draw(undrawn, 10) == 1
    assert draw(undrawn, 10) == 11


def test_who_draws_waits_for_no_transaction(undrawn: Connection, postgresql: str) -> None:
    with psycopg.connect(postgresql) as other, undrawn.transaction():
        other.execute(f"SET search_path TO {undrawn.execute('SELECT current_schema()').fetchall()[0][0]}".encode())
        other.execute("SET lock_timeout = '5s'")
        assert [draw(undrawn, 1), draw(other, 1), draw(undrawn, 1)] == [1, 2, 3]


# --- groups

GROUPS = [bytes([number]) * 24 for number in range(3)]
COLUMNS = (
    'id, queue, state, rank, number, head, group_id, sequence_number, "offset", length, flags, original_length, '
    "persistent, priority, unit"
)
AVAILABLE_HEADS = "SELECT id, head FROM message WHERE available ORDER BY id"
GATHERED = "SELECT queue, group_id, available, last FROM gathering ORDER BY queue, group_id"
INSIDE = "SELECT id, reader FROM entered ORDER BY id"


class Both:
    """One history on both databases, each statement with the same numbers in it."""

    def __init__(self, connection: Connection) -> None:
        self.server = connection
        self.file = apsw.Connection(":memory:")
        self.file.execute(SQLITE_SCHEMA)
        connection.execute("TRUNCATE message, gathering, entered")

    def run(self, sql: str, rows: list[tuple[Any, ...]] | None = None) -> None:
        if rows is None:
            self.server.execute(sql.encode())
            self.file.execute(sql)
            return
        values = [value for row in rows for value in row]
        marks = ", ".join(f"({', '.join('?' * len(row))})" for row in rows)
        self.server.execute(f"{sql} VALUES {marks.replace('?', '%s')}".encode(), values)
        self.file.execute(f"{sql} VALUES {marks}", values)

    def numbers(self) -> list[int]:
        return [number for (number,) in self.file.execute("SELECT id FROM message ORDER BY id")]

    def agree(self) -> None:
        for sql in (GATHERED, AVAILABLE_HEADS, INSIDE):
            assert self.server.execute(sql.encode()).fetchall() == self.file.execute(sql).fetchall(), sql


@pytest.fixture
def both(connection: Connection) -> Both:
    return Both(connection)


def member(chance: random.Random, number: int) -> tuple[Any, ...]:
    flags = chance.choice([0, 2, 6, 8, 8, 8, 10, 14, 24, 24, 30])
    sequence, offset = chance.choice([(1, 0), (1, 0), (1, 10), (2, 0), (2, 10), (3, 0)])
    head = 0 if (sequence, offset) != (1, 0) else 1 if flags & 24 else 2
    state, unit = chance.choice([(2, None), (2, None), (1, 7)])
    placed = state == 2 or chance.random() < 0.5
    group_id = chance.choice([*GROUPS, None])
    place = number if placed else None
    return (number, chance.choice([1, 2]), state, 0, place, head, group_id, sequence, offset, 10, flags, -1, 1, 0, unit)


HOLD = "UPDATE message SET state = 4, unit = 8, away = 1 WHERE state = 2 AND id IN ({some})"
SHOW = "UPDATE message SET state = 2, unit = NULL, away = 0, number = id WHERE state IN (1, 4) AND id IN ({some})"
DELAY = "UPDATE message SET due_at = 9 WHERE state = 2 AND id IN ({some})"
RIPEN = "UPDATE message SET due_at = NULL WHERE id IN ({some})"
SWAP = """UPDATE message SET
    unit = CASE WHEN state = 2 THEN 8 END, state = CASE WHEN state = 2 THEN 4 ELSE 2 END
    WHERE state IN (2, 4) AND away = 0 AND id IN ({some})"""
TOUCH = "UPDATE message SET backouts = backouts + 1 WHERE id IN ({some})"
GO = "DELETE FROM message WHERE id IN ({some})"
EMPTY = "DELETE FROM message WHERE group_id IN (SELECT group_id FROM message WHERE id IN ({some}))"
CHANGES = [HOLD, HOLD, SHOW, SHOW, DELAY, RIPEN, SWAP, TOUCH, GO, EMPTY]


@pytest.mark.parametrize("seed", range(25))
def test_groups_are_followed_as_in_sqlite(seed: int, both: Both) -> None:
    chance = random.Random(seed)
    last = entries = 0
    for _ in range(60):
        numbers = both.numbers()
        if len(numbers) < 3 or chance.random() < 0.35:
            rows = [member(chance, last + number) for number in range(1, chance.randint(2, 9))]
            last = rows[-1][0]
            both.run(f"INSERT INTO message ({COLUMNS})", rows)
        elif chance.random() < 0.1:
            entries += 1
            row = (entries, chance.choice([1, 2]), chance.choice(GROUPS), "h1", "[]")
            both.run("INSERT INTO entered (id, queue, group_id, reader, entry)", [row])
        else:
            some = chance.sample(numbers, chance.randint(1, min(len(numbers), 8)))
            both.run(chance.choice(CHANGES).format(some=", ".join(map(str, some))))
        both.agree()


def test_nothing_is_followed_while_groups_are_ignored(both: Both) -> None:
    chance = random.Random(0)
    both.server.execute("SET inorder.groups = 'off'")
    try:
        both.run(f"INSERT INTO message ({COLUMNS})", [member(chance, number) for number in range(1, 20)])
        assert both.server.execute(GATHERED.encode()).fetchall() == []
    finally:
        both.server.execute("SET inorder.groups = 'on'")
    assert both.file.execute(GATHERED).fetchall()


# --- plans


@pytest.fixture(scope="module")
def filled(connection: Connection) -> Connection:
    fill(connection)
    return connection


def fill(connection: Connection) -> None:
    """Two queues with many messages: in no group, in whole and in unfinished groups, claimed, held by units, locked."""
    connection.execute(
        f"""
        TRUNCATE message, gathering, entered, content;
        INSERT INTO message (id, queue, state, rank, number, head, sequence_number, "offset", length, flags,
            original_length, persistent, priority)
        SELECT n, 1 + n % 2, 2, -(n % 10), n, 2, 1, 0, 9, 0, -1, 1, n % 10
        FROM generate_series(1, {MESSAGES // 2}) AS n;
        INSERT INTO message (id, queue, state, rank, number, head, sequence_number, "offset", length, flags,
            original_length, persistent, priority, group_id)
        SELECT n, 1 + n % 2, 2, -4, n, CASE WHEN n / 2 % 10 = 0 THEN 1 ELSE 0 END, n / 2 % 10 + 1, 0, 9,
            CASE WHEN n / 2 % 10 = 9 AND n % 3 > 0 THEN 24 ELSE 8 END, -1, 1, 4,
            decode(lpad(to_hex(n / 20), 48, '0'), 'hex')
        FROM generate_series({MESSAGES // 2 + 1}, {MESSAGES}) AS n;
        UPDATE message SET state = 4, unit = 99, claimed = id WHERE id < {MESSAGES // 10} AND queue = 1;
        UPDATE message SET state = 4, unit = 98, away = 1 WHERE id BETWEEN {MESSAGES // 10} AND {MESSAGES // 9};
        INSERT INTO content SELECT id, 1, NULL, NULL, '[]', 0, '' FROM message;
    """.encode()
    )


@pytest.fixture(scope="module", params=["without statistics", "with statistics"])
def planning(request: pytest.FixtureRequest, filled: Connection) -> Connection:
    if request.param == "with statistics":
        filled.execute("ANALYZE message; ANALYZE content; ANALYZE gathering")
    return filled


NAMED = {
    "queue": 1, "rank": -5, "number": 0, "ordinal": -1, "limit": 64, "stop_number": 2**62, "stop_ordinal": 0,
    "horizon": 2**62, "most": 100, "most_bytes": 2**62, "first": 1, "last": 200, "weighs": 0, "excluded": "[]",
    "state": 4, "unit": 99, "base": 0, "wanted": 198, "last_number": 2**62, "last_ordinal": 0,
}  # fmt: skip


def plan(connection: Connection, text: str, mode: str) -> str:
    types, names = prepared(connection, text)
    values = []
    for at, kind in enumerate(types):
        value = NAMED.get(names[at] if at < len(names) else "", 1)
        if kind.endswith("[]"):
            value = f"'{{{'' if kind == 'bytea[]' else '1, 2'}}}'::{kind}"
        elif kind == "bytea":
            value = f"'\\x{'0' * 45}300'::bytea"
        elif kind == "text":
            value = f"'{value}'"
        values.append(str(value))
    connection.execute(f"SET plan_cache_mode = {mode}".encode())
    given = f"({', '.join(values)})" if values else ""
    return "\n".join(step for (step,) in connection.execute(f"EXPLAIN (COSTS OFF) EXECUTE tried{given}".encode()))


# What each goes by. Where three kinds of heads are asked for rows come merged, in order.
HOT = {
    "here": {"tally_newest", "slot_pkey"},
    "here locked": {"tally_newest", "run_pkey"},
    "here together": {"tally_newest", "slot_pkey", "run_pkey"},
    "available": {"message_place"},
    "held": {"message_held"},
    "next holder": {"message_held", "unit_pkey"},
    "next available rank": {"message_place"},
    "next held rank": {"message_held"},
    "take": {"message_place"},
    "take single": {"message_place"},
    "take group": {"message_member"},
    "hold": {"message_pkey"},
    "hold many": {"message_pkey"},
    "hold group": {"message_member"},
    "remove": {"message_pkey"},
    "remove many": {"message_pkey"},
    "remove content": set(),
    "claim of singles": {"message_place", "message_pkey"},
    "claim of messages": {"message_place", "message_pkey"},
    "anything next of singles": {"message_place"},
    "read claimed": {"message_unit"},
    "read messages": {"message_place", "message_pkey"},
    "read group": {"message_member"},
    "heads of stretch": {"message_place", "gathering_pkey"},
    "claimed": {"message_unit"},
    "shares": {"message_unit"},
    "remove of unit": {"message_unit"},
    "rows by queue, member": {"message_member"},
    "next expiry": {"message_expiry", "message_held"},
    "next due": {"message_due"},
    "withheld": {"message_place"},
}


def complaints(steps: str) -> list[str]:
    return re.findall(r"(?:Seq Scan on|Gather|Bitmap).*|(?<!Incremental )\bSort$", steps, re.MULTILINE)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", HOT)
def test_a_statement_goes_by_index_and_sorts_nothing(name: str, mode: str, planning: Connection) -> None:
    sent = [STATEMENTS[name]] if name not in ("available", "held") else texts(name)[:4]
    for text in sent:
        steps = plan(planning, text, mode)
        assert complaints(steps) == [], steps
        found = set(re.findall(r"using (\w+)", steps)) - {"mark_pkey"}
        assert found - {"content_pkey"} == HOT[name], steps
        assert ("Merge Append" in steps) == (text.count("UNION ALL") == 2), steps


@pytest.fixture(scope="module")
def emptied(postgresql: str) -> Iterator[Connection]:
    """What was there has gone, and vacuum came: a plan of now is kept while many messages come."""
    with in_a_new_schema(postgresql) as connection:
        fill(connection)
        for table in ("message", "content", "gathering"):
            connection.execute(f"DELETE FROM {table}".encode())
            connection.execute(f"VACUUM (ANALYZE) {table}".encode())
        yield connection


@pytest.mark.parametrize("name", [name for name in STATEMENTS if name.startswith("take ") and "group" not in name])
def test_what_is_taken_is_found_by_index_whatever_the_table_was_like_before(name: str, emptied: Connection) -> None:
    steps = plan(emptied, STATEMENTS[name], "force_generic_plan")
    assert "using message_place" in steps, steps
    assert "using message_pkey" not in steps, steps


TAKING = r"Limit\s+->  LockRows\s+->  Index Scan using message_place"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", [name for name in STATEMENTS if re.match("take .*together", name)])
def test_what_is_taken_together_is_found_by_index(name: str, mode: str, planning: Connection) -> None:
    """Only what was found is sorted."""
    steps = plan(planning, STATEMENTS[name], mode)
    assert re.search(TAKING, steps), steps
    assert len(complaints(steps)) == (" one " not in name), steps


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", sorted(STATEMENTS))
def test_no_statement_reads_all_messages(name: str, mode: str, planning: Connection) -> None:
    for text in texts(name):
        steps = plan(planning, text, mode)
        assert re.findall(r"Seq Scan on (?:message|content|staged|unit|gathering).*", steps) == [], steps


def test_a_scan_and_a_sort_are_noticed(planning: Connection) -> None:
    assert complaints(plan(planning, "SELECT * FROM message WHERE backouts > 1", MODES[0]))
    assert complaints(plan(planning, "SELECT * FROM message WHERE queue = 1 AND available ORDER BY length", MODES[0]))
