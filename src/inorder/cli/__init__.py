"""The command `inorder`: thin, and small in this stage."""

from __future__ import annotations

import argparse
import sys

from .. import __version__, demo
from ..testing.__main__ import main as run_scenarios


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="inorder",
        description="A message queue manager that keeps its promises about order.",
        epilog="example: inorder scenarios tests/scenarios/put_order.txt",
    )
    parser.add_argument("--version", action="version", version=f"inorder {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("demo", help="show physical and logical order, and what relaxed readers see")
    scenarios = commands.add_parser("scenarios", help="run scenario tables", add_help=False)
    scenarios.add_argument("rest", nargs=argparse.REMAINDER)
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["scenarios"]:
        return run_scenarios(given[1:])
    parser.parse_args(given)
    return demo.main()


if __name__ == "__main__":
    sys.exit(main())
