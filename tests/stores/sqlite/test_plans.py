"""The statements of the store use indexes: none scans the messages, none sorts rows that are in order already."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Iterator
from itertools import chain, product
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest

from inorder import stores
from inorder.stores import sql
from inorder.stores.seam import tables
from inorder.stores.seam.channel_records import Sender
from inorder.stores.seam.records import LedgerKey
from inorder.stores.seam.tables import (
    BodyRow,
    ClaimRow,
    DefinitionRow,
    DroppedRow,
    EnteredRow,
    HandleRow,
    LedgerRow,
    PieceRow,
    UnitRow,
    UpTo,
    WaitRow,
)
from inorder.stores.sql import selection
from inorder.stores.sql.descriptors import column
from inorder.stores.sql.records import SqlRecords
from inorder.stores.sql.statements import statements
from inorder.stores.sqlite.statements import SCHEMA, STATEMENTS

VERBS = Path(stores.__path__[0])
SQL = Path(sql.__path__[0])

# Tables that may be read as a whole: they are small, or the statement is about all rows.
WHOLE = {
    "manager": "one row",
    "leftover": "any of them will do",
    "tally": "one row for each queue, when a definition changes",
    "mark": "only whether there is any",
    "carray": "numbers that are given",
    **dict.fromkeys("m place h c head level running member next".split(), "rows of the statement itself"),
    "CONSTANT": "no table at all",
    "chosen": "the stagings that one settle names, or rows of the statement itself",
    "wanted": "numbers or group ids that are given",
    "j": "numbers that are given",
    "json_each": "numbers that are given",
}
# Statements that scan an index with nothing but the rows that they are about.
INDEXES = {"units with unplaced puts": {"unit_session", "unit_prepared", "unit_leased"}}
# Statements that sort: the rows are few, or the statement is not part of a put or get.
SORTS = {
    "rows by unit": "all that one unit holds, row by row: an undo of a confirm id that has locks as well",
    "rows by queue, group_id": "one group, to see whether it is complete",
    "rows by queue, everything_of": "one group, for an operator",
    "rows by lock": "all that one lock id locks, row by row",
    "rows by queue, lock_confirm": "all that one call has locked, row by row",
    "rows by locked_handle": "what one browse has locked",
    "rows by queue, forgotten": "once after a restart, when a prepared unit is backed out",
    "rows by queue, volatile": "once when a store is opened",
    "rows by queue, co_op_marked": "when the last of a cooperating set closes",
    "count gets for group": "once for a group that is taken whole",
    "shares of unit": "one row for each queue and state, over an index",
    "shares of lock": "the same",
    "locks of unit": "once when a unit is settled",
    "number puts of unit": "the numbering itself",
    "put staged in order": "what is put at once, in an order of its own",
    "put staged in groups": "the numbering of groups itself",
    "first wrong number in groups": "the numbers of groups that callers made",
    "messages of stagings": "for listeners alone",
    "doubtful groups": "members of the unusual groups of one claim or survey, over an index",
    "claim groups": "what a claim takes",
    "messages of groups": "the members of a page's groups, without what they contain",
    "claim messages of messages": "what a claim takes: running sums",
    "claims inside group": "the claims that hold members of one group",
    "count next messages by bytes of messages": "what a survey shows: running sums",
    "stretches of groups": "what a survey shows: running sums",
    "group bounds in claim": "the groups of one claim",
}


@pytest.fixture(scope="module")
def connection() -> apsw.Connection:
    connection = apsw.Connection(":memory:")
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    connection.execute(SCHEMA)
    return connection


def plan(connection: apsw.Connection, text: str) -> list[str]:
    names = set(re.findall(r":(\w+)", text))
    numbered = [int(number) for number in re.findall(r"\?(\d+)", text)]
    values = dict.fromkeys(names, 1) if names else (1,) * (max(numbered) if numbered else text.count("?"))
    return [str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", values)]


def complaints(name: str, steps: list[str]) -> list[str]:
    scans = [step for step in steps if (found := re.match(r"SCAN (\w+)", step)) and found[1] not in WHOLE]
    sorts = [step for step in steps if "TEMP B-TREE" in step and name not in SORTS]
    return [step for step in scans if step.split()[-1] not in INDEXES.get(name, ())] + sorts


@pytest.mark.parametrize("name", sorted(STATEMENTS))
def test_a_statement_uses_an_index(name: str, connection: apsw.Connection) -> None:
    text = selection.filled(STATEMENTS[name], selection.EVERYTHING).replace("{head}", "2")
    assert "{" not in text
    assert complaints(name, plan(connection, text)) == [], f"give {name!r} an index, or say here why not"


def test_every_statement_begins_with_a_comment() -> None:
    assert [name for name, text in statements().items() if not re.match(r"-- \w", text)] == []


@functools.cache
def trees(folder: Path) -> list[ast.Module]:
    """The modules below a folder, without the backend that has no SQL."""
    return [
        ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(folder.rglob("*.py"))
        if "memory" not in path.relative_to(folder).parts
    ]


def row_selections() -> set[str]:
    """The fields by which the package selects rows of messages, as `rows` names its statements."""
    found = set()
    for tree in trees(VERBS):
        nodes = list(ast.walk(tree))
        known = {
            ast.unparse(node.targets[0]): [str(key.value) for key in node.value.keys if isinstance(key, ast.Constant)]
            for node in nodes
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict)
        }
        for node in nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "rows":
                words = [known[ast.unparse(word.value)] if word.arg is None else [word.arg] for word in node.keywords]
                found.add(", ".join(chain.from_iterable(words)))
    return found - {""}


def sent() -> set[str]:
    """The strings in modules of `sql`; where a part is inserted into a name, every string that they know is tried."""
    nodes = [node for tree in trees(SQL) for node in ast.walk(tree)]
    words = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    made = [
        [[part.value] if isinstance(part, ast.Constant) else sorted(words | row_selections()) for part in node.values]
        for node in nodes
        if isinstance(node, ast.JoinedStr) and len(node.values) == 2
    ]
    return words | {"".join(map(str, parts)) for one in made for parts in product(*one)}


@pytest.mark.nightly
def test_every_statement_is_sent() -> None:
    assert STATEMENTS.keys() - sent() == set(), "nobody sends these: remove them"


def test_every_selection_of_rows_has_a_statement() -> None:
    wanted = {f"rows by {one}" for one in row_selections()}
    assert len(wanted) > 10
    assert wanted <= STATEMENTS.keys()


CHOICES = {
    "anything": selection.EVERYTHING,
    "a format": selection.Selection(selection.CONTENT_JOIN, f" AND {column('format')} IS :format", {}),
    "unmarked ones": selection.Selection("", " AND NOT EXISTS (SELECT 1 FROM mark WHERE message = m.id)", {}),
}


@pytest.mark.parametrize("heads", [(0, 1, 2), (1, 2), (2,)], ids=str)
@pytest.mark.parametrize("choice", sorted(CHOICES))
def test_a_search_uses_the_index_once_for_each_kind_of_head(
    choice: str, heads: tuple[int, ...], connection: apsw.Connection
) -> None:
    for of, index in {"available by place": "message_place", "messages of holder by place": "message_held"}.items():
        steps = plan(connection, selection.ordered(STATEMENTS[of], CHOICES[choice], heads))
        assert complaints("", steps) == []
        assert sum(index in step for step in steps) == len(heads), "one step into the index for each kind of head"


NAMED = {
    "available by message id": "message_message_id (queue=? AND message_id=? AND (rank,number,ordinal)>(?,?,?))",
    "available by correlation id": (
        "message_correlation_id (queue=? AND correlation_id=? AND (rank,number,ordinal)>(?,?,?))"
    ),
    "available by own priority": "message_own_priority (queue=? AND priority=? AND (rank,number,ordinal)>(?,?,?))",
    "available by number": "INTEGER PRIMARY KEY (rowid=?)",
}


@pytest.mark.parametrize("name", NAMED)
def test_a_search_by_id_number_or_priority_is_one_index_step(name: str, connection: apsw.Connection) -> None:
    (step,) = plan(connection, selection.ordered(STATEMENTS[name], selection.EVERYTHING))
    assert NAMED[name] in step


AT_LEVEL = selection.Selection("", ' AND m."priority" IS :priority', {}).such(" AND m.rank <= :level", level=0)
ONE = selection.Selection("", f" AND {selection.UID_CONDITION}", {}, one=True)


@pytest.mark.parametrize("heads", [(0, 1, 2), (1, 2), (2,)], ids=str)
def test_a_match_on_priority_reads_only_its_level_of_the_index(
    heads: tuple[int, ...], connection: apsw.Connection
) -> None:
    steps = plan(connection, selection.ordered(STATEMENTS["available by place"], AT_LEVEL, heads))
    assert complaints("", steps) == []
    bounds = "message_place (queue=? AND head=? AND (rank,number,ordinal)>(?,?,?) AND rank<?)"
    assert sum(bounds in step for step in steps) == len(heads)


@pytest.mark.parametrize("such", [selection.OPEN, selection.HELD_BY])
def test_a_match_on_a_unique_id_uses_an_index_for_available_and_for_held_messages(
    such: str, connection: apsw.Connection
) -> None:
    steps = plan(connection, selection.ordered(STATEMENTS["messages by unique id"], ONE.such(such)))
    assert complaints("", steps) == []
    searches = [step for step in steps if step.startswith("SEARCH")]
    assert ["PRIMARY KEY" in searches[0], "message_uid" in searches[1], len(searches)] == [True, True, 2]


class Asked(NamedTuple):
    """A selection of records; `where`: how each field is compared: "=", "IS NULL", "<=", or a kind of unit."""

    verb: str
    kind: str
    where: frozenset[tuple[str, str]]

    def __str__(self) -> str:
        return f"{self.verb} {self.kind} by {', '.join(sorted(' '.join(one) for one in self.where)) or 'nothing'}"


def asked(verb: str, kind: type[Any], /, **where: str) -> Asked:
    return Asked(verb, kind.__name__, frozenset(where.items()))


UNIT_KINDS = ("confirm", "lock", "claim")  # their units are named by a queue and a name
# Selections that scan, besides those of all records of a kind: an operator asks for them, or they are rare.
SCANS = {
    asked("select", UnitRow, kind="lock"): "an operator asks for all lock ids",
    asked("select", UnitRow, kind="lease"): "a lease begins whose user may have so many",
}
# Selections whose records are sorted by key afterwards: few records, of one queue or at its end.
SORTED_RECORDS = {
    asked("select", UnitRow, queue="="): "the end of a queue",
    asked("select", UnitRow, queue="=", kind="staging"): "what is staged for a queue whose usage is to change",
    asked("select", ClaimRow, queue="=", application="="): "the claims of an application, two at most",
    asked("select", EnteredRow, queue="="): "groups that readers are inside",
    asked("select", EnteredRow, queue="=", reader="="): "groups of a reader that goes",
    asked("select", EnteredRow, queue="=", reader="IS NULL"): "groups that readers have left",
}


class Planning:
    """An engine that runs nothing, and records the plans of the statements that it receives."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self.steps: list[str] = []

    def execute(self, text: str, values: Any) -> Iterator[Any]:
        self.steps += [str(row[3]) for row in self._connection.execute(f"EXPLAIN QUERY PLAN {text}", tuple(values))]
        return iter(())

    run = execute

    def changes(self) -> int:
        return 0


def value_for(field: str, how: str) -> Any:
    if field == "kind":
        return how
    return {"=": 1, "IS NULL": None, "<=": UpTo(1.0)}[how]


def how_compared(field: str, value: ast.expr) -> list[str]:
    if field == "kind":
        return [str(value.value)] if isinstance(value, ast.Constant) else list(UNIT_KINDS)
    if isinstance(value, ast.Constant) and value.value is None:
        return ["IS NULL"]
    return ["<="] if isinstance(value, ast.Call) and ast.unparse(value.func) == UpTo.__name__ else ["="]


def asked_by_the_package() -> Iterator[Asked]:
    """Every selection of records in the source of the package."""
    for tree in trees(VERBS):
        nodes = list(ast.walk(tree))
        each = {
            node.target.id: [ast.unparse(one) for one in node.iter.elts]
            for node in nodes
            if isinstance(node, ast.For) and isinstance(node.target, ast.Name) and isinstance(node.iter, ast.Tuple)
        }
        for node in nodes:
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
                continue
            is_handed_on = ast.unparse(node.func.value) == "super()"
            if node.func.attr in ("select", "remove_records") and not is_handed_on:
                kind = ast.unparse(node.args[0])
                for name in each.get(kind, [kind]):
                    yield from selections(node.func.attr, name, node.keywords)


GIVEN_AS_A_WHOLE: dict[str, list[tuple[str, ...]]] = {  # `**where`: the fields that each may have
    LedgerRow.__name__: [LedgerKey._fields],
    DefinitionRow.__name__: [("name",), ("id",)],
    **{row.__name__: [Sender._fields[:3], (*Sender._fields[:3], "position")] for row in (BodyRow, PieceRow)},
    **{row.__name__: [("queue",)] for row in (HandleRow, WaitRow, DroppedRow)},
}


def selections(verb: str, kind: str, words: list[ast.keyword]) -> Iterator[Asked]:
    assert hasattr(tables, kind), kind
    fields = {word.arg: how_compared(word.arg, word.value) for word in words if word.arg is not None}
    for whole in GIVEN_AS_A_WHOLE[kind] if len(fields) < len(words) else [()]:
        compared = fields | {part: ["="] for part in whole}
        for how in product(*compared.values()):
            yield Asked(verb, kind, frozenset(zip(compared, how, strict=True)))


def test_a_selection_of_records_uses_an_index(connection: apsw.Connection) -> None:
    found = set(asked_by_the_package())
    assert len(found) > 80
    assert SCANS.keys() | SORTED_RECORDS.keys() <= found, "nobody asks for these any more"
    for one in sorted(found, key=str):
        records, engine = SqlRecords(), Planning(connection)
        records.engine = engine  # type: ignore[assignment]
        call: Callable[..., object] = getattr(records, one.verb)
        call(getattr(tables, one.kind), **{field: value_for(field, how) for field, how in one.where})
        assert engine.steps, one
        scans = [step for step in engine.steps if step.startswith("SCAN")]
        sorts = [step for step in engine.steps if "TEMP B-TREE" in step]
        assert bool(scans) == (one in SCANS or (one.verb == "select" and not one.where)), (str(one), engine.steps)
        assert bool(sorts) == (one in SORTED_RECORDS), (str(one), engine.steps)


def test_a_scan_and_a_sort_are_noticed(connection: apsw.Connection) -> None:
    assert complaints("", plan(connection, "SELECT * FROM message WHERE backouts > 1"))
    assert complaints("", plan(connection, "SELECT * FROM message WHERE queue = 1 AND available ORDER BY length"))
