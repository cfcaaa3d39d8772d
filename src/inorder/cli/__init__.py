"""The command `inorder`: thin, and small in this stage."""

from __future__ import annotations

import argparse
import os
import sys

from .. import __version__, demo
from ..testing.__main__ import main as run_scenarios


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    try:
        return _run(sys.argv[1:] if arguments is None else arguments)
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _run(given: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="inorder",
        description="A message queue manager that keeps its promises about order.",
        epilog="example: inorder scenarios my_scenarios.txt",
    )
    parser.add_argument("--version", action="version", version=f"inorder {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser(
        "demo", help="show order on a queue: physical, logical, relaxed, strict; confirm, lock and undo"
    )
    scenarios = commands.add_parser("scenarios", help="run scenario tables", add_help=False)
    scenarios.add_argument("rest", nargs=argparse.REMAINDER)
    if given[:1] == ["scenarios"]:
        return run_scenarios(given[1:], program="inorder scenarios")
    parser.parse_args(given)
    return demo.main()
