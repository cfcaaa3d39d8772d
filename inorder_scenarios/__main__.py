"""python -m inorder_scenarios: runs scenario tables, and reports those that fail."""

from __future__ import annotations

import argparse
import sys

from inorder.testing.stores import KINDS, POSTGRESQL_URL, STORES

from .language import Scenario, TableError, read_scenarios
from .runner import run_scenario


def main(arguments: list[str] | None = None, program: str = "python -m inorder_scenarios") -> int:
    """Runs the named files; 0 if every scenario passed, 1 if one failed, 2 if a table cannot be run."""
    parser = argparse.ArgumentParser(
        prog=program,
        description="Runs scenario tables. Prints a line for each failing scenario, then a count.",
        epilog=f"example: {program} my_scenarios.txt --store memory",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="a scenario table")
    parser.add_argument("--store", "--kind", choices=sorted(KINDS), default="memory", help="default: %(default)s")
    options = parser.parse_args(arguments)
    if options.store not in STORES:
        parser.error(f"a store of the kind {options.store} needs {POSTGRESQL_URL}, the URL of a database")
    passed = failed = wrong = 0
    for file in options.files:
        try:
            for scenario in _scenarios(file):
                failure = run_scenario(scenario, options.store)
                passed += failure is None
                failed += failure is not None
                if failure is not None:
                    print(failure)
        except TableError as error:
            print(error, file=sys.stderr)
            wrong += 1
    print(f"{passed} passed, {failed} failed")
    return 2 if wrong else 1 if failed else 0


def _scenarios(file: str) -> list[Scenario]:
    try:
        scenarios = read_scenarios(file)
    except (OSError, UnicodeDecodeError) as error:
        raise TableError(file, 0, f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if not scenarios:
        raise TableError(file, 0, "holds no scenario")
    return scenarios


if __name__ == "__main__":
    sys.exit(main())
