"""The schema and the statements on a server: all can be prepared, and use indexes."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import psycopg
import pytest

from inorder.stores.postgresql.statements import SCHEMA, STATEMENTS, TABLES, checks, own
from inorder.stores.sql import listing, selection
from inorder.stores.sql.descriptors import column
from inorder.stores.sqlite.statements import STATEMENTS as SQLITE_STATEMENTS
from inorder.stores.sqlite.statements import TABLES as SQLITE_TABLES

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
    """A session with the settings of the store, in a schema of its own."""
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


def numbered(text: str) -> tuple[str, list[str]]:
    """A text with $1, $2 ... in place of its parameters, and their names; a bare question mark has none."""
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
    """Prepares a statement as `tried`, with bigint for integers. Returns the types and names of the parameters."""
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
    """The forms in which a statement is sent, for each selection of messages."""
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


def test_the_checks_find_nothing_in_a_new_store(postgresql: str) -> None:
    with in_a_new_schema(postgresql) as connection:
        found = [text for check in checks().values() for (text,) in connection.execute(check.encode())]
    assert [text for text in found if "the queue manager is missing" not in text] == []


@pytest.mark.parametrize(
    "name",
    ["available by place", "messages of holder by place", "group members by logical place", "unplaced puts of unit"],
)
def test_the_statements_that_list_messages_for_operators_can_be_prepared(name: str, connection: Connection) -> None:
    held_by = " AND (m.unit = :held_by OR (m.lock = :held_by AND m.unit IS NULL))"
    condition = f"{listing.THERE}{listing.IS_FIRST} AND (m.flags & 30 <> 0 OR (true{held_by}))"
    chosen = selection.Selection("", condition, {})
    text = selection.ordered(STATEMENTS[name], chosen, (1, 2)) if "{head}" in STATEMENTS[name] else ""
    prepared(connection, text or selection.filled(STATEMENTS[name], chosen))


def test_every_statement_for_sqlite_exists_for_postgresql() -> None:
    assert SQLITE_STATEMENTS.keys() <= STATEMENTS.keys()


def test_every_table_of_sqlite_exists_in_postgresql_with_its_columns() -> None:
    generated, more = {"message": {"available"}}, {"tally": {"unordered", "serial", "fronts"}}
    expressions = {"message": {"ends", "is_end", "holder"}}  # a generated column costs every statement in PostgreSQL
    for table, columns in SQLITE_TABLES.items():
        shared = columns.keys() - expressions.get(table, set())
        assert shared == TABLES[table].keys() - more.get(table, set()), table
        others = shared - generated.get(table, set()) - {"group_key", "order_key"}
        assert {name: columns[name] for name in others} == {name: TABLES[table][name] for name in others}, table


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


def test_drawing_a_number_waits_for_no_other_transaction(undrawn: Connection, postgresql: str) -> None:
    with psycopg.connect(postgresql) as other, undrawn.transaction():
        other.execute(f"SET search_path TO {undrawn.execute('SELECT current_schema()').fetchall()[0][0]}".encode())
        other.execute("SET lock_timeout = '60s'")
        assert [draw(undrawn, 1), draw(other, 1), draw(undrawn, 1)] == [1, 2, 3]


@pytest.fixture(scope="module")
def filled(connection: Connection) -> Connection:
    fill(connection)
    return connection


def fill(connection: Connection) -> None:
    """Two queues with many messages: in no group, in whole and unfinished groups, claimed, held by units, locked."""
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


# The indexes that each uses. Where three kinds of heads are asked for, the rows are merged in order.
HOT = {
    "queue state": {"tally_newest", "slot_pkey"},
    "queue state locked": {"tally_newest", "run_pkey"},
    "queue state together": {"tally_newest", "slot_pkey", "run_pkey"},
    "available by place": {"message_place"},
    "messages of holder by place": {"message_held"},
    "next holder": {"message_held", "unit_pkey"},
    "next available rank": {"message_place"},
    "next held rank": {"message_held"},
    "get available": {"message_place"},
    "get available singles": {"message_place"},
    "get available within": {"message_place"},
    "get available of group": {"message_member"},
    "hold messages for unit": {"message_pkey"},
    "hold messages for unit many": {"message_pkey"},
    "hold group for unit": {"message_member"},
    "delete messages": {"message_pkey"},
    "delete messages many": {"message_pkey"},
    "delete content": set(),
    "claim messages of singles": {"message_place", "message_pkey"},
    "claim messages of messages": {"message_place", "message_pkey"},
    "exists next of singles": {"message_place"},
    "messages of claim": {"message_unit"},
    "messages of stretch": {"message_place", "message_pkey"},
    "messages of group": {"message_member"},
    "heads of stretch": {"message_place", "gathering_pkey"},
    "size of claim": {"message_unit"},
    "shares of unit": {"message_unit"},
    "delete messages of unit": {"message_unit"},
    "rows by queue, member": {"message_member"},
    "next expiry": {"message_expiry", "message_held"},
    "next due": {"message_due"},
    "count withheld messages": {"message_place"},
}


def complaints(steps: str) -> list[str]:
    return re.findall(r"(?:Seq Scan on|Gather|Bitmap).*|(?<!Incremental )\bSort$", steps, re.MULTILINE)


@pytest.mark.parametrize("mode", MODES)
def test_a_statement_uses_its_indexes_and_sorts_nothing(mode: str, planning: Connection) -> None:
    sent = {
        name: texts(name)[:4] if name in ("available by place", "messages of holder by place") else [STATEMENTS[name]]
        for name in HOT
    }
    for name, text in [(name, text) for name, each in sent.items() for text in each]:
        steps = plan(planning, text, mode)
        assert complaints(steps) == [], steps
        found = set(re.findall(r"using (\w+)", steps)) - {"mark_pkey"}
        assert found - {"content_pkey"} == HOT[name], steps
        assert ("Merge Append" in steps) == (text.count("UNION ALL") == 2), steps


@pytest.fixture(scope="module")
def emptied(postgresql: str) -> Iterator[Connection]:
    """Deleted and vacuumed tables: the plan of this moment is kept while many messages arrive."""
    with in_a_new_schema(postgresql) as connection:
        fill(connection)
        for table in ("message", "content", "gathering"):
            connection.execute(f"DELETE FROM {table}".encode())
            connection.execute(f"VACUUM (ANALYZE) {table}".encode())
        yield connection


def test_gets_find_messages_by_index_even_with_plans_made_for_empty_tables(emptied: Connection) -> None:
    names = [name for name in STATEMENTS if name.startswith("get ") and "group" not in name]
    assert len(names) > 5
    for name in names:
        steps = plan(emptied, STATEMENTS[name], "force_generic_plan")
        assert "using message_place" in steps, steps
        assert "using message_pkey" not in steps, steps


# A statement that also reads the queue searches nothing unless the queue is as known.
GATE = r"(?:Result\s+One-Time Filter: \(here.known = 1\)\s+->  )?"
TAKING = rf"Limit\s+->  LockRows\s+->  {GATE}Index Scan using message_place"


@pytest.mark.parametrize("mode", MODES)
def test_gets_from_unordered_queues_find_messages_by_index(mode: str, planning: Connection) -> None:
    """Only the rows that were found are sorted."""
    names = [name for name in STATEMENTS if re.match("get .*together", name)]
    assert len(names) > 2
    for name in names:
        steps = plan(planning, STATEMENTS[name], mode)
        assert re.search(TAKING, steps), steps
        assert len(complaints(steps)) == (" one " not in name), steps


@pytest.mark.parametrize("mode", MODES)
def test_no_statement_reads_all_messages(mode: str, planning: Connection) -> None:
    for text in [text for name in STATEMENTS for text in texts(name)]:
        assert "{" not in text
        steps = plan(planning, text, mode)
        assert re.findall(r"Seq Scan on (?:message|content|staged|unit|gathering).*", steps) == [], f"{text}\n{steps}"


def test_a_scan_and_a_sort_are_noticed(planning: Connection) -> None:
    assert complaints(plan(planning, "SELECT * FROM message WHERE backouts > 1", MODES[0]))
    assert complaints(plan(planning, "SELECT * FROM message WHERE queue = 1 AND available ORDER BY length", MODES[0]))
