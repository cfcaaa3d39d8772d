"""Finds what can be broken in a file of named SQL statements: conditions, orders, minimum and maximum.

The statements are read as text, without their comments and quoted words. A dropped condition stays in its place and is
made true, because its parameters must stay; if a statement needs it for its index, SQLite may refuse the statement,
which counts as caught.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .mutation_tree import Change

NAMED = re.compile(r"^-- name: (?P<name>[^\n]+)\n(?P<text>.*?)(?=^-- name: |\Z)", re.MULTILINE | re.DOTALL)
OUT_OF_SIGHT = re.compile(r"--[^\n]*|'[^']*'|\"[^\"]*\"")
# Ends the conditions of a WHERE, or the terms of an ORDER BY, on the same level of parentheses.
ENDS = re.compile(r"\b(?:ORDER BY|GROUP BY|LIMIT|UNION|RETURNING|WINDOW|HAVING|ROWS|WHERE|FROM)\b|;")
# A part that a call adds after the last condition, and that does not belong to it.
ADDED = re.compile(r"(?<=\w|\))\s*\{\w+\}$")
LIMITS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
LIMIT = re.compile(r"(?<![<>=-])(?:<=|>=|<(?!>|<)|>(?!>))")
EXTREME = re.compile(r"\b(min|max)(?=\()")
SWAPPED = {"min": "max", "max": "min"}


def changes(source: str) -> Iterator[Change]:
    """All changes to the statements that are looked for, in the order of the file."""
    seen = OUT_OF_SIGHT.sub(lambda found: (" " if found[0].startswith("--") else "_") * len(found[0]), source)
    for found in NAMED.finditer(source):
        yield from _of_statement(source, seen, found["name"], *found.span("text"))


def _of_statement(source: str, seen: str, name: str, start: int, end: int) -> Iterator[Change]:
    for word in re.finditer(r"\bWHERE\b", seen[start:end]):
        for first, last in _conditions(seen, start + word.end(), end):
            condition = source[first:last]
            yield Change(name, "condition", "dropped", first, last, f"({condition} OR TRUE)")
            yield Change(name, "condition", "turned", first, last, _turned(condition, seen[first:last]))
    for word in re.finditer(r"\bORDER BY\b", seen[start:end]):
        for first, last in _split(seen, start + word.end(), end, ","):
            term = source[first:last]
            turned = term.removesuffix(" DESC") if term.endswith(" DESC") else f"{term} DESC"
            yield Change(name, "order", "turned", first, last, turned)
    for word in EXTREME.finditer(seen, start, end):
        yield Change(name, "min or max", "swapped", *word.span(), SWAPPED[word[0]])


def _turned(condition: str, seen: str) -> str:
    """Moves a limit by one step, or negates any other condition."""
    limits = [found for found in LIMIT.finditer(seen) if _depth(seen[: found.start()]) == 0]
    if len(limits) == 1 and not re.search(r"\bOR\b", seen):
        first, last = limits[0].span()
        return condition[:first] + LIMITS[limits[0][0]] + condition[last:]
    return f"NOT ({condition})"


def _conditions(seen: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The places of the conditions of a WHERE. Alternatives with OR on this level are one condition."""
    parts = list(_split(seen, start, end, " AND "))
    whole = seen[parts[0][0] : parts[-1][1]]
    if any(_depth(whole[: found.start()]) == 0 for found in re.finditer(r"\bOR\b", whole)):
        yield parts[0][0], parts[-1][1]
        return
    while parts:
        first, last = parts.pop(0)
        if re.search(r"\bBETWEEN\b(?!.*\bAND\b)", seen[first:last], re.DOTALL) and parts:
            last = parts.pop(0)[1]
        if added := ADDED.search(seen[first:last]):
            last = _without_added(seen, first, first + added.start(), last)
        yield first, last


def _without_added(seen: str, first: int, shorter: int, last: int) -> int:
    """The end of a condition before a part that is filled in, unless that part is the condition's own."""
    return shorter if re.search(r"[=<>]|\bIS\b|\bIN\b", seen[first:shorter]) else last


def _split(seen: str, start: int, end: int, separator: str) -> Iterator[tuple[int, int]]:
    """The parts of a clause on its own level of parentheses, without the blanks around them."""
    flat = _flat(seen[start:end])
    if found := ENDS.search(flat):
        flat = flat[: found.start()]
    here = 0
    for part in flat.split(separator):
        trimmed = part.strip()
        if trimmed:
            first = start + here + len(part) - len(part.lstrip())
            yield first, first + len(trimmed)
        here += len(part) + len(separator)


def _flat(text: str) -> str:
    """The text up to the end of its own level of parentheses, with the contents of other parentheses blanked."""
    depth, flat = 0, []
    for character in text:
        depth -= character == ")"
        if depth < 0:
            break
        blotted = depth > 0 and character != "\n"
        flat.append("_" if blotted else " " if character == "\n" else character)
        depth += character == "("
    return "".join(flat)


def _depth(text: str) -> int:
    return text.count("(") - text.count(")")
