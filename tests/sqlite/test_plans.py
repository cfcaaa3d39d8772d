"""The statements of the store go by index: none scans the messages, none sorts where rows come in order already."""

from __future__ import annotations

import re
from pathlib import Path

import apsw
import pytest

from inorder.stores.sqlite import claims, selection, shelf
from inorder.stores.sqlite.statements import SCHEMA, statement, statements

SOURCE = Path(shelf.__file__).parent

# What may be read as a whole: it is small, or the statement is about all of it.
WHOLE = {
    "manager": "one row",
    "definition": "definitions are few",
    "process": "processes are few",
    "connection": "connections are few",
    "unit": "an operator asks for all of them",
    "edge": "waits of strict readers are few",
    "leftover": "any of them will do",
    "mark": "only whether there is any",
    "tally": "one row for each queue",
    "gone": "rows of the statement itself",
    "place": "rows of the statement itself",
    "m": "rows of the statement itself",
    "CONSTANT": "no table at all",
    "chosen": "the stagings that one settle names",
    "h": "rows of the statement itself",
    "c": "rows of the statement itself",
    "head": "rows of the statement itself",
    "sized": "rows of the statement itself",
    "running": "rows of the statement itself",
    "member": "rows of the statement itself",
    "piece": "rows of the statement itself",
    "j": "rows of the statement itself",
    "locked": "rows of the statement itself",
    "held": "what is held, over an index, for an operator",
    "w": "calls that wait are few",
    "json_each": "rows of the statement itself",
    "d": "definitions, for an operator",
    "account": "applications are few",
    "a": "applications are few",
    "u": "units, for an operator who asks for all of them",
}
# Statements that sort: what they sort is small, or they are not on the way of a put or get.
SORTS = {
    "shapes of group": "once for a group that is taken whole",
    "held by unit": "an undo of a confirm id that has locks as well",
    "shares": "one row for each queue and state, over an index",
    "unnumbered": "queues of one unit",
    "locks of unit": "once when a unit is settled",
    "number unit": "the numbering itself",
    "visible of unit": "for listeners alone",
    "units": "for an operator",
    "put in unit": "pieces of one message",
    "queues with expired": "housekeeping",
    "queues of unit": "queues of one unit",
    "put staged in order": "what is put at once, in an order of its own",
    "put staged in groups": "the numbering of groups itself",
    "first wrong number": "the numbers of groups that callers made",
    "visible of stagings": "for listeners alone",
    "take group": "members with the same numbers, which are rare",
    "odd groups": "members of the groups of one claim or survey, over an index",
    "claim groups": "what a claim takes",
    "claim messages": "what a claim takes: running sums",
    "stretches": "what a survey shows: running sums",
    "spans": "the groups of one claim",
    "accounts": "for an operator",
    "shape of group": "members with the same numbers, which are rare",
}


@pytest.fixture(scope="module")
def connection() -> apsw.Connection:
    connection = apsw.Connection(":memory:")
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    connection.execute(SCHEMA)
    return connection


def plan(connection: apsw.Connection, sql: str) -> list[str]:
    names = set(re.findall(r":(\w+)", sql))
    numbered = [int(number) for number in re.findall(r"\?(\d+)", sql)]
    values = dict.fromkeys(names, 1) if names else (1,) * (max(numbered) if numbered else sql.count("?"))
    return [str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)]


def complaints(name: str, steps: list[str]) -> list[str]:
    scans = [step for step in steps if (found := re.match(r"SCAN (\w+)", step)) and found[1] not in WHOLE]
    sorts = [step for step in steps if "TEMP B-TREE" in step and name not in SORTS]
    return scans + sorts


BULK = {"running": claims.RUNNING, "columns": claims.ROW, "head": claims.HEAD}
WHOLE_TEXT = {  # what stands for the braces, where it is not what the search puts there
    name: BULK | {"chosen": claims.GROUPS} for name in "odd groups, claim groups, anything next, stretches".split(", ")
} | {
    name: BULK | {"chosen": claims.MESSAGES}
    for name in "claim messages, read claimed, read messages, read single, read group".split(", ")
}


@pytest.mark.parametrize("name", sorted(statements()))
def test_a_statement_goes_by_index(name: str, connection: apsw.Connection) -> None:
    ordinary = {
        "columns": shelf.NARROW_COLUMNS,
        "joins": "",
        "chosen": "",
        "head": "2",
        "body": "c.body",
        "which": "= ?1",
    }
    sql = statement(name, **WHOLE_TEXT.get(name, ordinary))
    assert complaints(name, plan(connection, sql)) == [], f"give {name!r} in queries.sql an index, or say here why not"


@pytest.mark.parametrize("name", sorted(statements()))
def test_a_statement_says_why_it_is_there_and_is_sent(name: str) -> None:
    assert statements()[name].startswith("-- "), f"say in a comment why {name!r} is needed"
    users = [
        path
        for path in SOURCE.glob("*.py")
        if re.search(rf'(statement|by_id)\("{name}"', path.read_text(encoding="utf-8"))
    ]
    assert users, f"nobody sends {name!r}: remove it"


CHOICES = {
    "anything": selection.EVERYTHING,
    "a format": selection.Selection(selection.CONTENT_JOIN, ' AND c."format" IS :format', {}),
    "unmarked ones": selection.Selection("", " AND NOT EXISTS (SELECT 1 FROM mark WHERE message = m.id)", {}),
}


@pytest.mark.parametrize("heads", [(0, 1, 2), (1, 2), (2,)], ids=str)
@pytest.mark.parametrize("choice", sorted(CHOICES))
@pytest.mark.parametrize("of", ["available", "held"])
def test_the_search_steps_through_the_index_and_merges(
    of: str, choice: str, heads: tuple[int, ...], connection: apsw.Connection
) -> None:
    text = {"available": shelf.AVAILABLE, "held": shelf.HELD}[of]
    steps = plan(connection, selection.ordered(text, CHOICES[choice], heads))
    assert complaints("", steps) == []
    index = {"available": "message_place", "held": "message_held"}[of]
    assert sum(index in step for step in steps) == len(heads), "one step into the index for each kind of head"


AT_LEVEL = selection.Selection("", ' AND m."priority" IS :priority', {}).such(" AND m.rank <= :level", level=0)
ONE = selection.Selection("", f" AND {selection.UID_CONDITION}", {}, one=True)


@pytest.mark.parametrize("heads", [(0, 1, 2), (1, 2), (2,)], ids=str)
def test_a_match_on_priority_steps_to_its_level_and_ends_behind_it(
    heads: tuple[int, ...], connection: apsw.Connection
) -> None:
    steps = plan(connection, selection.ordered(shelf.AVAILABLE, AT_LEVEL, heads))
    assert complaints("", steps) == []
    bounds = "message_place (queue=? AND head=? AND (rank,number,ordinal)>(?,?,?) AND rank<?)"
    assert sum(bounds in step for step in steps) == len(heads)
    (step,) = plan(connection, selection.ordered(shelf.BY_OWN_PRIORITY, selection.EVERYTHING))
    assert "message_own_priority (queue=? AND priority=? AND (rank,number,ordinal)>(?,?,?))" in step


@pytest.mark.parametrize("such", [selection.OPEN, selection.HELD_BY])
def test_a_match_on_a_unique_id_is_a_step_whoever_holds_the_message(such: str, connection: apsw.Connection) -> None:
    steps = plan(connection, selection.ordered(shelf.BY_UID, ONE.such(such)))
    assert complaints("", steps) == []
    searches = [step for step in steps if step.startswith("SEARCH")]
    assert ["PRIMARY KEY" in searches[0], "message_uid" in searches[1], len(searches)] == [True, True, 2]


def test_a_scan_and_a_sort_are_noticed(connection: apsw.Connection) -> None:
    assert complaints("", plan(connection, "SELECT * FROM message WHERE backouts > 1"))
    assert complaints("", plan(connection, "SELECT * FROM message WHERE queue = 1 AND available ORDER BY length"))
