"""Selectors against two judges that share nothing with them: an interpreter of trees, written here, and SQLite.

Trees are drawn, and rendered to text with only the brackets that the order of the operators needs. The interpreter
knows logic as numbers (false 0, unknown 1/2, true 1: AND is the least, OR the greatest) and compares numbers as
fractions. SQLite judges where it agrees with the specification: properties of one type each, small integers.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
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
    lambda inner: st.one_of(
        st.tuples(st.sampled_from("+-*/"), inner, inner),
        st.tuples(st.just("minus"), inner),
    ),
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
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["and", "or"]), inner, inner),
        st.tuples(st.just("not"), inner),
    ),
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


# ---- the interpreter

HALF = Fraction(1, 2)


def truth(value: bool | None) -> Fraction:
    return HALF if value is None else Fraction(value)


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def evaluated(tree: Tree, values: dict[str, Any]) -> Any:
    kind, *parts = tree
    if kind == "name":
        return values.get(parts[0])
    if kind == "literal":
        return parts[0]
    if kind == "minus":
        value = evaluated(parts[0], values)
        return -value if is_number(value) else None
    one, other = (evaluated(part, values) for part in parts)
    if not is_number(one) or not is_number(other):
        return None
    if kind == "/":
        if other == 0:
            return None
        if isinstance(one, int) and isinstance(other, int):
            return math.trunc(Fraction(one, other))
        return float(one) / float(other)
    if not (isinstance(one, int) and isinstance(other, int)):
        one, other = float(one), float(other)
    return {"+": one + other, "-": one - other, "*": one * other}[kind]


def kind_of(value: object) -> str:
    return "number" if is_number(value) else type(value).__name__


def compared(sign: str, one: Any, other: Any) -> Fraction:
    if one is None or other is None:
        return HALF
    if kind_of(one) != kind_of(other):
        return Fraction(0)
    if sign in {"=", "<>"}:
        return Fraction((one == other) is (sign == "="))
    if not is_number(one):
        return Fraction(0)
    difference = Fraction(one) - Fraction(other)
    return Fraction({"<": difference < 0, "<=": difference <= 0, ">": difference > 0, ">=": difference >= 0}[sign])


def fits(text: str, pattern: str, escape: str | None) -> bool:
    if not pattern:
        return not text
    first, rest = pattern[0], pattern[1:]
    if first == escape:
        return text[:1] == rest[0] and fits(text[1:], rest[1:], escape)
    if first == "%":
        return any(fits(text[i:], rest, escape) for i in range(len(text) + 1))
    return bool(text) and first in {"_", text[0]} and fits(text[1:], rest, escape)


def judged(tree: Tree, values: dict[str, Any]) -> Fraction:  # noqa: PLR0911 - a case for each operator
    kind, *parts = tree
    if kind.startswith("not ") and kind != "not between":
        return 1 - judged((kind[4:], *parts), values)
    if kind == "not":
        return 1 - judged(parts[0], values)
    if kind in {"and", "or"}:
        return (min if kind == "and" else max)(judged(part, values) for part in parts)
    if kind in {"name", "literal"}:
        value = evaluated(tree, values)
        return truth(value if isinstance(value, bool) else None)
    value = evaluated(parts[0], values)
    if kind == "null":
        return truth(value is None)
    if kind in {"between", "not between"}:
        low, high = (evaluated(part, values) for part in parts[1:])
        if kind == "between":
            return min(compared(">=", value, low), compared("<=", value, high))
        return max(compared("<", value, low), compared(">", value, high))
    if kind == "in":
        return max(compared("=", value, each[1]) for each in parts[1])
    if kind == "like":
        return HALF if value is None else truth(isinstance(value, str) and fits(value, *parts[1]))
    return compared(kind, value, evaluated(parts[1], values))


TYPED: dict[str, st.SearchStrategy[Any]] = {
    **{name: st.one_of(st.none(), st.integers(-50, 50)) for name in NUMBERS[:3]},
    "f": st.one_of(st.none(), st.integers(-100, 100).map(lambda n: n / 4)),
    **{name: st.one_of(st.none(), LETTERS) for name in TEXTS},
    **{name: st.one_of(st.none(), st.booleans()) for name in BOOLEANS},
}
ANYTHING = st.one_of(
    st.none(), st.integers(), st.sampled_from([2**53, 2.0**53, 1e300, 0.5]), LETTERS, st.booleans(), st.binary()
)


@given(conditions, st.dictionaries(st.sampled_from(NAMES), ANYTHING))
def test_the_interpreter_agrees_whatever_the_types(tree: Tree, values: dict[str, Any]) -> None:
    check(tree, values)


@given(conditions, st.fixed_dictionaries(TYPED))
def test_the_interpreter_agrees_on_what_fits(tree: Tree, values: dict[str, Any]) -> None:
    check(tree, values)


def check(tree: Tree, values: dict[str, Any]) -> None:
    text = f"({rendered(tree)}) OR z = 1"  # so that it names something, and may be false of every message
    expected = {0: False, 1: True, HALF: None}[max(judged(tree, values), HALF)]
    assert compile_selector(text).matches({}, values) is expected
    inverse = {0: False, 1: True, HALF: None}[max(1 - judged(tree, values), HALF)]
    assert compile_selector(f"NOT ({rendered(tree)}) OR z = 1").matches({}, values) is inverse


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
