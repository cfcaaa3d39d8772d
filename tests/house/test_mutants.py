"""The mutants of `make mutants` fit the code, and running them separates the caught ones from the survivors."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from tools.mutant import LISTS, ROOT, SOURCE, Written, written
from tools.mutants import SCENARIOS, Bench, judge_all
from tools.mutation import (
    EQUIVALENT,
    JUDGES,
    PLUMBING,
    broken_files,
    generated,
    of_text,
    read_equivalent,
    sample,
    without_equivalent,
)

TABLE = ROOT / SCENARIOS / "put_order.txt"  # one table is enough to test the tool
COMPILED = 100  # generated mutants to compile; each takes some milliseconds

WRITTEN = written()
GENERATED = generated()


# --- written mutants


def test_each_written_mutant_fits_the_code_and_compiles() -> None:
    texts = {mutant.file: (ROOT / SOURCE / mutant.file).read_text(encoding="utf-8") for mutant in WRITTEN}
    for mutant in WRITTEN:
        broken = mutant.apply(texts[mutant.file])
        assert broken != texts[mutant.file], mutant
        compile(broken, mutant.file, "exec")


def test_written_mutants_break_each_module_of_rules_and_no_other() -> None:
    modules = {f"rules/{path.name}" for path in (ROOT / SOURCE / "rules").glob("[!_]*.py")}
    assert {mutant.file for mutant in WRITTEN} == modules


def test_every_list_is_read_and_no_mutant_is_listed_twice() -> None:
    assert {*LISTS, EQUIVALENT} == set(EQUIVALENT.parent.glob("mutants_*.txt"))
    assert len({f"{mutant.rule} {mutant.name}" for mutant in WRITTEN}) == len(WRITTEN)
    assert len({(mutant.file, mutant.old, mutant.new) for mutant in WRITTEN}) == len(WRITTEN)


# --- generated mutants


def test_generated_mutants_differ_from_the_code_and_compile() -> None:
    texts = {file: (ROOT / SOURCE / file).read_text(encoding="utf-8") for file in broken_files()}
    for mutant in sample([mutant for mutant in GENERATED if mutant.file.endswith(".py")], COMPILED, seed=0):
        ast.parse(mutant.apply(texts[mutant.file]), mutant.name)
    assert all(mutant.apply(texts[mutant.file]) != texts[mutant.file] for mutant in GENERATED)


def test_names_of_mutants_are_unique_and_reproducible() -> None:
    names = [mutant.name for mutant in GENERATED]
    assert len(set(names)) == len(names)
    files = dict.fromkeys(mutant.file for mutant in GENERATED)
    texts = {file: (ROOT / SOURCE / file).read_text(encoding="utf-8") for file in files}
    assert [mutant.name for file, text in texts.items() for mutant in of_text(file, text)] == names


def told(file: str, source: str) -> list[str]:
    """The mutants of a text, each with the old and the new code."""
    made = list(of_text(file, source))
    return [f"{one.name.removeprefix(f'{file} ')}: {one.old.strip()} -> {one.new.strip()}" for one in made]


OF_EACH_KIND = '''
class Box:
    """Not a call()."""

    open: bool = False

    def fits(self, most: int, *, near: bool = True) -> bool:
        if not self.open and most >= 1:
            self.tell(most)
        assert most == 2, "our own"
        return min(most, 7) in self.sizes

    def first(self) -> int | None:
        return next((one for one in self.sizes if one), None) if (self.sizes) is None else 7
'''
BROKEN_SO = """
Box: default 1 flipped: False -> True
Box.fits: default 1 flipped: True -> False
Box.fits: condition 1 negated: not self.open and most >= 1 -> not (not self.open and most >= 1)
Box.fits: condition 1 always true: not self.open and most >= 1 -> True
Box.fits: choice 1 and to or: not self.open and most >= 1 -> not self.open or most >= 1
Box.fits: not 1 dropped: not self.open -> (self.open)
Box.fits: comparison 1 >= to >: >= -> >
Box.fits: constant 1 off by one: 1 -> 2
Box.fits: call 1 dropped: self.tell(most) -> pass
Box.fits: comparison 2 in to not in: in -> not in
Box.fits: min or max 1 swapped: min -> max
Box.first: return 1 to None: next((one for one in self.sizes if one), None) if (self.sizes) is None else 7 -> None
Box.first: comparison 1 is to is not: ) is -> ) is not
Box.first: condition 1 negated: one -> not (one)
"""


def test_mutants_break_each_kind_of_decision() -> None:
    assert told("box.py", OF_EACH_KIND) == BROKEN_SO.split("\n")[1:-1]


STATEMENTS = """
-- name: next of unit
-- It isn't read: WHERE a = b.
SELECT min(id) FROM message m {joins}
WHERE unit = ? AND kind IN ('a AND b', 'c') AND id BETWEEN ? AND ? AND (rank, id) > (?, ?){chosen}
ORDER BY rank, id DESC LIMIT 1;

-- name: gone
DELETE FROM message WHERE id {which} OR (NOT away AND state = 2);
"""
STATEMENTS_BROKEN = """
next of unit: condition 1 dropped: unit = ? -> (unit = ? OR TRUE)
next of unit: condition 1 turned: unit = ? -> NOT (unit = ?)
next of unit: condition 2 dropped: kind IN ('a AND b', 'c') -> (kind IN ('a AND b', 'c') OR TRUE)
next of unit: condition 2 turned: kind IN ('a AND b', 'c') -> NOT (kind IN ('a AND b', 'c'))
next of unit: condition 3 dropped: id BETWEEN ? AND ? -> (id BETWEEN ? AND ? OR TRUE)
next of unit: condition 3 turned: id BETWEEN ? AND ? -> NOT (id BETWEEN ? AND ?)
next of unit: condition 4 dropped: (rank, id) > (?, ?) -> ((rank, id) > (?, ?) OR TRUE)
next of unit: condition 4 turned: (rank, id) > (?, ?) -> (rank, id) >= (?, ?)
next of unit: order 1 turned: rank -> rank DESC
next of unit: order 2 turned: id DESC -> id
next of unit: min or max 1 swapped: min -> max
gone: condition 1 dropped: id {which} OR (NOT away AND state = 2) -> (id {which} OR (NOT away AND state = 2) OR TRUE)
gone: condition 1 turned: id {which} OR (NOT away AND state = 2) -> NOT (id {which} OR (NOT away AND state = 2))
"""


def test_mutants_break_each_kind_of_clause() -> None:
    assert told("q.sql", STATEMENTS) == STATEMENTS_BROKEN.split("\n")[1:-1]


def test_files_and_tests_named_in_the_tables_exist() -> None:
    assert all((ROOT / SOURCE / path).is_file() for path in PLUMBING)
    named = {test for mutant in [*WRITTEN, *GENERATED] for test in mutant.by_tests}
    assert [test for test in sorted(named) if not (ROOT / test).exists()] == []
    first = {file: next(path for path in JUDGES if file.startswith(path)) for file in broken_files()}
    assert set(JUDGES) == set(first.values()), "a line of JUDGES that is never the first to fit"


# --- mutants that do the same as the code


def test_only_mutants_that_exist_are_listed_as_equivalent() -> None:
    reasons = read_equivalent(EQUIVALENT.read_text(encoding="utf-8"))
    assert len(without_equivalent(GENERATED, reasons)) == len(GENERATED) - len(reasons)


# --- runs


def broken(name: str, old: str, new: str, file: str = "rules/policy.py") -> Written:
    return Written(rule="R1.4", name=name, file=file, old=old, new=new)


CAUGHT = broken(
    "a put under a unit is seen at once",
    "Event.PUT_HELD: (_to(PUT_UNCONFIRMED),",
    "Event.PUT_HELD: (_to(UNLOCKED),",
    "rules/lifecycle.py",
)
IMPORT = "from ..errors import Reason"
HARMLESS = broken("no change but to a comment", f"{IMPORT}\n", f"{IMPORT}  # nothing more\n")
OUTDATED = broken("of code that is gone", "no such text", "")
NAMES = "PIECES_KEEP_GIVEN_MESSAGE_ID = "
NOT_CODE = broken("one whose own names do not exist", f"{NAMES}True", f"{NAMES}no_such_name")


@pytest.mark.nightly
def test_a_broken_rule_is_caught_and_a_harmless_change_survives(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [TABLE])
    caught, survived, outdated, not_code = judge_all(bench, [CAUGHT, HARMLESS, OUTDATED, NOT_CODE])
    assert (caught.result, survived.result) == ("caught", "survived")
    assert caught.where.startswith("put_order.txt:") or caught.where.startswith("AssertionError")
    assert str(survived).startswith("SURVIVED  R1.4   no change but to a comment   (rules/policy.py)   (from ..errors")
    assert outdated.result == "error"
    assert outdated.where.startswith("the code has changed: repair this mutant")
    assert not_code.result == "error"
    assert not_code.where.startswith("NameError")
