"""The command `inorder`: thin, and small in this stage."""

from __future__ import annotations

import argparse
import os
import sys

from .. import __version__, demo
from ..demo import files
from ..testing.__main__ import main as run_scenarios
from . import pipeline


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
    shown = commands.add_parser(
        "demo",
        help="show order on a queue; or the main job: real files through queue and Spark, with kills on the way",
        description="order (the default) shows order on a queue, by several processes on one file in a temporary "
        "folder: physical and logical order, whole groups, relaxed and strict readers, confirm ids and locks, waits "
        "across processes, and processes that are killed. It takes a few seconds, needs no set-up, and leaves nothing "
        "behind. files is the main job: a folder of files is put on a queue by several processes, drained by Spark "
        "exactly once, audited, written back and compared; a loader and Spark's driver are killed on the way. It "
        "needs inorder[spark] and Java 17, and takes a few minutes.",
        epilog="example: inorder demo files ~/src --output report. Exit status: 0 all was as documented; 1 something "
        "was not; 2 a process failed. NO_COLOR is heeded.",
    )
    shown.add_argument("what", nargs="?", choices=("order", "files"), default="order")
    shown.add_argument("folder", nargs="?", metavar="DIR", help="of files; default: Python's standard library")
    shown.add_argument("--output", default="inorder-demo", metavar="DIR", help="of files: where the audit goes")
    pipeline.add_parser(commands)
    scenarios = commands.add_parser("scenarios", help="run scenario tables", add_help=False)
    scenarios.add_argument("rest", nargs=argparse.REMAINDER)
    if given[:1] == ["scenarios"]:
        return run_scenarios(given[1:], program="inorder scenarios")
    chosen = parser.parse_args(given)
    if chosen.command == "pipeline":
        return pipeline.run(chosen)
    if chosen.what == "files":
        return files.main(chosen.folder, chosen.output)
    return demo.main()
