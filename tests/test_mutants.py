"""The mutants of `make mutants`: each fits the code as it is, and running them tells the caught from the survivors."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.mutants import MUTANTS, ROOT, SCENARIOS, SOURCE, Bench, Mutant, judge_all, main, read_mutants

MUTANTS_MIN = 300
TABLE = ROOT / SCENARIOS / "put_order.txt"  # one table is enough to show that the tool works

BROKEN = Mutant(
    rule="R2.4",
    name="a put under a unit is seen at once",
    file="rules/lifecycle.py",
    old="Event.PUT_HELD: (_to(PUT_UNCONFIRMED),",
    new="Event.PUT_HELD: (_to(UNLOCKED),",
)
HARMLESS = Mutant(
    rule="R1.4",
    name="no change but to a comment",
    file="rules/policy.py",
    old="from ..errors import Reason\n",
    new="from ..errors import Reason  # nothing more\n",
)
OUTDATED = Mutant(rule="R1.4", name="of code that is gone", file="rules/policy.py", old="no such text", new="")
NOT_CODE = Mutant(
    rule="R1.4",
    name="one whose own names do not exist",
    file="rules/policy.py",
    old="PIECES_KEEP_GIVEN_MESSAGE_ID = True",
    new="PIECES_KEEP_GIVEN_MESSAGE_ID = no_such_name",
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_mutant_fits_the_code_and_compiles(mutant: Mutant) -> None:
    source = (ROOT / SOURCE / mutant.file).read_text(encoding="utf-8")
    broken = mutant.apply(source)
    assert broken != source
    compile(broken, mutant.file, "exec")


def test_there_are_enough_and_each_breaks_something_else() -> None:
    assert len(MUTANTS) >= MUTANTS_MIN
    names = [f"{mutant.rule} {mutant.name}" for mutant in MUTANTS]
    assert len(set(names)) == len(names)
    changes = [(mutant.file, mutant.old, mutant.new) for mutant in MUTANTS]
    assert len(set(changes)) == len(changes)


# The seam says what stores must do and does nothing. Files, processes and what lies between them have crash tests and
# tests with faults of their own: what is broken there shows when somebody is killed or a disk is full, in no table.
WITHOUT_MUTANTS = """
    stores/base.py stores/base_operating.py stores/base_staging.py stores/claims.py
    stores/sqlite/backup.py stores/sqlite/coordination.py stores/sqlite/database.py stores/sqlite/faults.py
    stores/sqlite/log.py stores/sqlite/opening.py stores/sqlite/points.py stores/sqlite/statements.py
    stores/sqlite/handles.py
""".split()


def test_each_module_of_rules_and_of_the_stores_is_broken() -> None:
    files = {mutant.file for mutant in MUTANTS}
    for folder in ("rules", "stores", "stores/memory", "stores/sqlite"):
        modules = {f"{folder}/{path.name}" for path in (ROOT / SOURCE / folder).glob("[!_]*.py")}
        assert modules - files <= set(WITHOUT_MUTANTS), f"no mutant of {sorted(modules - files - set(WITHOUT_MUTANTS))}"


def test_unit_tests_named_by_mutants_are_there() -> None:
    assert all((ROOT / mutant.tests).is_file() for mutant in MUTANTS if mutant.tests)


def test_a_broken_rule_is_caught_and_a_harmless_change_survives(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [TABLE])
    mutants = [BROKEN, HARMLESS, OUTDATED, NOT_CODE]
    assert bench.try_whole(mutants) == ""
    caught, survived, outdated, not_code = judge_all(bench, mutants)
    assert (caught.result, survived.result) == ("caught", "survived")
    assert caught.where.startswith("put_order.txt:") or caught.where.startswith("AssertionError")
    assert str(survived) == "SURVIVED  R1.4   no change but to a comment"
    assert outdated.result == "error"
    assert outdated.where.startswith("the code has changed: mend this mutant")
    assert not_code.result == "error"
    assert not_code.where.startswith("NameError")


def test_a_list_of_mutants_is_read_line_by_line() -> None:
    [mutant] = read_mutants("in a.py\nR1.1 does wrong\n- x = 1\n-     y = 2\n+ x = 2\nby tests/test_a.py\n")
    assert mutant == Mutant(
        rule="R1.1", name="does wrong", file="a.py", old="x = 1\n    y = 2", new="x = 2", tests="tests/test_a.py"
    )


@pytest.mark.parametrize("line", ["R1.1 before any file", "- old text of nothing", "in a.py\nno rule"])
def test_a_line_that_is_no_line_of_a_list_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="is no line of a list of mutants"):
        read_mutants(line)


def test_the_list_can_be_looked_at(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list", "--only", "p12"]) == 0
    assert capsys.readouterr().out.startswith("P12 ")
    assert main(["--only", "nothing has this name"]) == 2
    assert "--list shows them all" in capsys.readouterr().err
