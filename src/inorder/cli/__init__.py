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
        "demo",
        help="show order on a queue: physical, logical, relaxed, strict; several processes on one file",
        description="Shows order on a queue, by several processes on one file in a temporary folder: physical and "
        "logical order, whole groups, relaxed and strict readers, confirm ids and locks, waits across processes, and "
        "processes that are killed. It takes a few seconds, needs no set-up, and leaves nothing behind.",
        epilog="exit status: 0 all was as documented; 1 something was not; 2 a process failed. NO_COLOR is heeded.",
    )
    scenarios = commands.add_parser("scenarios", help="run scenario tables", add_help=False)
    scenarios.add_argument("rest", nargs=argparse.REMAINDER)
    if given[:1] == ["scenarios"]:
        return run_scenarios(given[1:], program="inorder scenarios")
    parser.parse_args(given)
    return demo.main()
