"""`inorder demo` and `inorder scenarios`: the demonstrations, and the runner of scenario tables.

Nothing else imports the demonstrations. Each is loaded when its command runs.
"""

from __future__ import annotations

from pathlib import Path

import click

from ..testing.__main__ import main as run_tables
from ..testing.stores import KINDS
from .running import Command, CommandGroup


@click.group("demo", cls=CommandGroup, epilog="Example: inorder demo order")
def demo() -> None:
    """Run a demonstration: order on a queue, or files through a queue and Spark."""


@demo.command("order", example="inorder demo order")
def order() -> int:
    """Show order on a queue, with a dozen processes on one file.

    It shows physical and logical order, whole groups, relaxed and strict readers, confirm ids and locks, waits across
    processes, and killed processes. It takes a few seconds, needs no set-up, and leaves no files.

    Exit status: 0 all results were as documented; 1 some were not; 2 a process failed.
    """
    from .. import demo as tour  # noqa: PLC0415 - no other command needs it

    return tour.main()


@demo.command("files", example="inorder demo files ~/src --output report")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option("--output", default="inorder-demo", show_default=True, metavar="DIR", help="The folder for the audit.")
def files(folder: Path | None, output: str) -> int:
    """Send files through a queue and Spark, with kills.

    Several processes put the files of FOLDER (default: Python's standard library) on a queue. Spark drains it exactly
    once, audits the archive and writes the files back. The demonstration compares them byte by byte. It kills a loader
    and Spark's driver on the way. It takes a few minutes, and needs inorder[spark] and Java 17. Pictures in the report
    need inorder[report].

    Exit status: 0 all results were as documented; 1 some were not; 2 a process failed.
    """
    from ..demo import files as main_job  # noqa: PLC0415 - no other command needs it

    return main_job.main(None if folder is None else str(folder), output)


@click.command("scenarios", cls=Command, example="inorder scenarios my_scenarios.txt --kind sqlite")
@click.argument("tables", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--kind", type=click.Choice(sorted(KINDS)), default="memory", show_default=True, help="The kind of store."
)
def scenarios(tables: tuple[str, ...], kind: str) -> int:
    """Run scenario tables.

    A table lists calls and their outcomes, one step per line. The command prints a line for each scenario that fails,
    then the totals.

    Exit status: 0 all passed; 1 at least one failed; 2 a table is not valid.
    """
    return run_tables([*tables, "--store", kind], program="inorder scenarios")
