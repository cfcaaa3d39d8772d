"""`inorder check` and `inorder backup`."""

from __future__ import annotations

from pathlib import Path

import click

from ..errors import StoreDamaged
from .output import size
from .running import NO, Command, Run, takes_store


@click.command("check", cls=Command, example="inorder check --store orders.db")
@takes_store
def check(run: Run) -> int:
    """Check the store: a file itself, and every invariant of what is in it.

    Others may work meanwhile. Exit status: 0 the store is sound; 1 something is wrong; 3 it cannot be read at all.
    """
    try:
        with run.opened() as qm, run.output.progress("checking", "parts") as advance:
            problems = qm.check(advance)
    except StoreDamaged as error:  # no queue manager can open it
        problems = [str(error.args[0])]
        if isinstance(run.store.given, Path):
            from ..stores.sqlite import problems_in_file  # noqa: PLC0415 - it loads SQLite, which --help does without

            problems += problems_in_file(run.store.given)
    for problem in problems:
        run.output.say(problem)
    verdict = f"{run.store} is sound" if not problems else f"{run.store}: {len(problems)} found"
    run.output.tell({"store": str(run.store), "sound": not problems, "problems": problems}, verdict)
    return NO if problems else 0


@click.command("backup", cls=Command, example="inorder backup copy.db --store orders.db")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--replace", is_flag=True, help="A file that is there is replaced.")
@takes_store
def backup(run: Run, path: Path, replace: bool) -> None:
    """Copy the store to PATH while others use it.

    The copy is the store as it is at one instant; it is a store of its own. Open units of work stay out of it. A store
    in PostgreSQL is backed up by its own means, such as pg_dump.
    """
    with run.opened() as qm, run.output.progress("copying", "bytes") as advance:
        qm.backup(path, replace=replace, progress=advance)
    length = path.stat().st_size
    run.output.tell({"copy": str(path), "bytes": length}, f"copied to {path}, {size(length)}B")
