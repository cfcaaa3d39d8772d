"""Mutants: the package with one thing broken. This file reads the lists of hand-written mutants.

A *written* mutant describes in words what a rule forbids, and does that. Written mutants are for `rules/` alone, where
each line is a rule. The lists are `mutants_*.txt` beside this file, with a few lines for each mutant:

    in rules/ordering.py                                        a file under src/inorder; its mutants follow
    R3.13 a fifo queue places by the message's own priority     the rule's number, and what the broken code does
    - if queue.delivery == "fifo":                              the old text: it must occur exactly once
    + if queue.delivery == "never":                             the new text
    by tests/rules/test_ordering.py                             only if the tables lack the word for it: the
                                                                unit tests that must fail instead

All others are generated: `mutation.py`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = Path("src/inorder")
STORES = ("memory", "sqlite")
IN_FILE = ("stores/sql/", "stores/sqlite/")  # mutants in these folders are judged on the SQLite store
LISTS = tuple(
    Path(__file__).with_name(f"mutants_{topic}.txt") for topic in ("rules", "lives", "selectors", "between", "users")
)

RULE = re.compile(r"[A-Z]{0,2}-?\d+(\.\d+)?")


class CodeChangedError(Exception):
    """A mutant no longer fits the code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant(ABC):
    """One thing, broken.

    Args:
        file: relative to src/inorder.
        name: the effect of the broken code, or its place and change.
    """

    file: str
    name: str

    @property
    def store(self) -> str:
        """The store that judges the mutant: for shared code the memory store, which is the fastest."""
        return STORES[self.file.startswith(IN_FILE)]

    @property
    @abstractmethod
    def by_tables(self) -> bool:
        """Whether the scenario tables judge it."""

    @property
    @abstractmethod
    def by_tests(self) -> tuple[str, ...]:
        """The files of unit tests that judge it after the tables."""

    @property
    @abstractmethod
    def change(self) -> str:
        """The change in one line, for reports of survivors."""

    @abstractmethod
    def apply(self, source: str) -> str:
        """The file's text, broken. Raises: CodeChangedError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written(Mutant):
    """One rule, broken.

    Args:
        rule: its number: of mq-semantics, or of lifecycle-and-order where it has a letter and a dash.
        old, new: the text to replace, and its replacement.
        tests: unit tests that must fail; "": a table must.
    """

    rule: str
    old: str = ""
    new: str = ""
    tests: str = ""

    def __str__(self) -> str:
        return f"{self.rule:<5}  {self.name}   ({self.file})"

    @property
    def by_tables(self) -> bool:
        return not self.tests

    @property
    def by_tests(self) -> tuple[str, ...]:
        return (self.tests,) if self.tests else ()

    @property
    def change(self) -> str:
        return " ".join(f"{self.old} -> {self.new}".split())

    def apply(self, source: str) -> str:
        times = source.count(self.old)
        if not self.old or times != 1:
            raise CodeChangedError(f"the code has changed: repair this mutant; its old text occurs {times} times")
        return source.replace(self.old, self.new)


def read_written(text: str) -> list[Written]:
    """Returns the mutants of a list, in its order. Raises: ValueError, a malformed line."""
    mutants: list[Written] = []
    file = ""
    for number, line in enumerate(text.splitlines(), 1):
        mark, _, rest = line.partition(" ")
        if not line:
            continue
        if mark == "in":
            file = rest
        elif mark in ("-", "+", "by") and mutants:
            mutants[-1] = _with_line(mutants[-1], mark, rest)
        elif RULE.fullmatch(mark) and rest and file:
            mutants.append(Written(rule=mark, name=rest, file=file))
        else:
            raise ValueError(f"line {number}: {line!r} is not a line of a list of mutants")
    return mutants


def _with_line(mutant: Written, mark: str, line: str) -> Written:
    if mark == "by":
        return replace(mutant, tests=line)
    if mark == "-":
        return replace(mutant, old=f"{mutant.old}\n{line}" if mutant.old else line)
    return replace(mutant, new=f"{mutant.new}\n{line}" if mutant.new else line)


def written() -> list[Written]:
    """Returns all hand-written mutants."""
    return [mutant for path in LISTS for mutant in read_written(path.read_text(encoding="utf-8"))]
