"""Selectors compared with an independent implementation: SQLite.

Trees are drawn, and rendered with only the parentheses that precedence requires. They contain only what SQLite
evaluates as the specification does: properties of one type each, and small integers.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inorder.rules.selectors import compile_selector

Tree = tuple[Any, ...]
NUMBERS, TEXTS, BOOLEANS = ("a", "b", "c", "f"), ("s", "t"), ("p", "q")
NAMES = (*NUMBERS, *TEXTS, *BOOLEANS)

LETTERS = st.text("ab%_'.*\n\\é", max_size=5)
number_literals = st.one_of(st.integers(0, 50), st.integers(0, 200).map(lambda n: n / 4)).map(lambda v: ("literal", v))
text_literals = LETTERS.map(lambda text: ("literal", text))
texts: st.SearchStrategy[Tree] = st.one_of(text_literals, st.sampled_from(TEXTS).map(lambda name: ("name", name)))
numbers: st.SearchStrategy[Tree] = st.recursive(
    st.one_of(number_literals, st.sampled_from(NUMBERS).map(lambda name: ("name", name))),
    lambda inner: st.one_of(st.tuples(st.sampled_from("+-*/"), inner, inner), st.tuples(st.just("minus"), inner)),
    max_leaves=5,
)


@st.composite
def patterns(draw: st.DrawFn) -> tuple[str, str | None]:
    escape = draw(st.sampled_from([None, "\\", "x", "%"]))
    pieces = ["a", "b", "é", ".", "\n", "_", "__", "'", *([] if escape == "%" else ["%", "%%"])]
    escaped = [] if escape is None else [f"{escape}%", f"{escape}_", escape * 2]
    return "".join(draw(st.lists(st.sampled_from([*pieces, *escaped]), max_size=6))), escape


def leaves() -> st.SearchStrategy[Tree]:
    signs = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
    return st.one_of(
        st.tuples(signs, numbers, numbers),
        st.tuples(st.sampled_from(["=", "<>"]), texts, texts),
        st.tuples(st.sampled_from(["between", "not between"]), numbers, numbers, numbers),
        st.tuples(st.sampled_from(["in", "not in"]), texts, st.lists(text_literals, min_size=1, max_size=3)),
        st.tuples(st.sampled_from(["in", "not in"]), numbers, st.lists(number_literals, min_size=1, max_size=3)),
        st.tuples(st.sampled_from(["like", "not like"]), texts, patterns()),
        st.tuples(st.sampled_from(["null", "not null"]), st.sampled_from(NAMES).map(lambda name: ("name", name))),
        st.sampled_from(BOOLEANS).map(lambda name: ("name", name)),
        st.tuples(st.just("literal"), st.booleans()),
    )


conditions: st.SearchStrategy[Tree] = st.recursive(
    leaves(),
    lambda inner: st.one_of(st.tuples(st.sampled_from(["and", "or"]), inner, inner), st.tuples(st.just("not"), inner)),
    max_leaves=6,
)


# ---- text

LEVELS = {
    **dict.fromkeys(("or",), 1),
    **dict.fromkeys(("and",), 2),
    **dict.fromkeys(("not",), 3),
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">=", "between", "not between", "in", "not in"), 4),
    **dict.fromkeys(("like", "not like", "null", "not null"), 4),
    **dict.fromkeys("+-", 5),
    **dict.fromkeys("*/", 6),
    "minus": 7,
    "name": 8,
    "literal": 8,
}


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def rendered(tree: Tree, least: int = 0) -> str:
    text = plain(tree)
    return f"({text})" if LEVELS[tree[0]] < least else text


def plain(tree: Tree) -> str:  # noqa: PLR0911 - a case for each operator
    kind, *parts = tree
    level = LEVELS[kind]
    match kind:
        case "name":
            return str(parts[0])
        case "literal":
            value = parts[0]
            return quoted(value) if isinstance(value, str) else repr(value)
        case "and" | "or" | "+" | "-" | "*" | "/":
            return f"{rendered(parts[0], level)} {kind} {rendered(parts[1], level + 1)}"
        case "not" | "minus":
            return f"{'NOT' if kind == 'not' else '-'} {rendered(parts[0], level)}"
        case "between" | "not between":
            value, low, high = (rendered(part, level + 1) for part in parts)
            return f"{value} {kind} {low} AND {high}"
        case "in" | "not in":
            return f"{rendered(parts[0], level + 1)} {kind} ({', '.join(map(plain, parts[1]))})"
        case "like" | "not like":
            pattern, escape = parts[1]
            behind = "" if escape is None else f" ESCAPE {quoted(escape)}"
            return f"{rendered(parts[0], level + 1)} {kind} {quoted(pattern)}{behind}"
        case "null" | "not null":
            return f"{rendered(parts[0], level + 1)} IS {kind}"
        case _:
            return f"{rendered(parts[0], level + 1)} {kind} {rendered(parts[1], level + 1)}"


# ---- SQLite

TYPED: dict[str, st.SearchStrategy[Any]] = {
    **{name: st.one_of(st.none(), st.integers(-50, 50)) for name in NUMBERS[:3]},
    "f": st.one_of(st.none(), st.integers(-100, 100).map(lambda n: n / 4)),
    **{name: st.one_of(st.none(), LETTERS) for name in TEXTS},
    **{name: st.one_of(st.none(), st.booleans()) for name in BOOLEANS},
}


@pytest.fixture(scope="module")
def sqlite() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("PRAGMA case_sensitive_like = ON")
        yield connection


@given(conditions, st.fixed_dictionaries(TYPED))
def test_sqlite_agrees(sqlite: sqlite3.Connection, tree: Tree, values: dict[str, Any]) -> None:
    text = f"{rendered(tree, 2)} OR z"
    columns = ", ".join(f":{name} AS {name}" for name in (*NAMES, "z"))
    for z in (None, False):
        given_values = {**values, "z": z}
        ((expected,),) = sqlite.execute(f"SELECT {text} FROM (SELECT {columns})", given_values)
        found = compile_selector(text).matches({}, given_values)
        assert found is (None if expected is None else bool(expected)), text
