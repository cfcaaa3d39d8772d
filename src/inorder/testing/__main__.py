"""python -m inorder.testing: runs scenario tables and says which fail."""

from __future__ import annotations

import argparse
import sys

from .language import TableError, read_scenarios
from .runner import run_scenario
from .stores import STORES


def main(arguments: list[str] | None = None) -> int:
    """Runs the files named; 0 if every scenario passed, 1 if one failed, 2 if a file cannot be read."""
    parser = argparse.ArgumentParser(
        prog="python -m inorder.testing",
        description="Runs scenario tables. Prints a line for each failing scenario, then a count.",
        epilog="example: python -m inorder.testing tests/scenarios/*.txt --store memory",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="a scenario table")
    parser.add_argument("--store", choices=sorted(STORES), default="memory", help="default: %(default)s")
    options = parser.parse_args(arguments)
    passed = failed = 0
    try:
        for scenario in [scenario for file in options.files for scenario in read_scenarios(file)]:
            failure = run_scenario(scenario, options.store)
            passed += failure is None
            failed += failure is not None
            if failure is not None:
                print(failure)
    except (TableError, OSError, UnicodeDecodeError) as wrong:
        print(wrong, file=sys.stderr)
        return 2
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
