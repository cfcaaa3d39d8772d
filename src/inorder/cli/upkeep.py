"""`inorder create`, `inorder rename`, `inorder check`, `inorder backup` and `inorder upgrade`."""

from __future__ import annotations

from pathlib import Path

import click

from ..client.manager import connect
from ..client.upgrading import rename as rename_manager
from ..client.upgrading import upgrade as upgrade_store
from ..errors import StoreDamaged, StoreError
from ..stores.open import Location
from .output import Output, size
from .places import PlaceType
from .running import NO, PROGRAM, Command, Run, takes_store, tells_json


@click.command("create", cls=Command, example="inorder create orders.db --name PARIS")
@click.argument("store", type=PlaceType(), metavar="STORE")
@click.option("--name", help="Default: made from the file's name, or the name of the PostgreSQL schema.")
@tells_json
def create(store: Location, name: str | None, as_json: bool) -> None:
    """Make a store, and give its queue manager a name.

    STORE is a path or URL as --store takes it. The name is 1 to 48 characters out of A-Z a-z 0-9 . / _ %. Other queue
    managers send messages to that name, and case counts.
    """
    if store.is_there(PROGRAM):
        raise StoreError(f"there is a store or another file at {store} already", path=str(store))
    with connect(store.given, program=PROGRAM, name=name) as qm:
        called = qm.manager_attributes().name
    made = f"made the store {store}: queue manager {called}"
    Output(as_json=as_json).tell({"store": str(store), "name": called}, made)


@click.command("rename", cls=Command, example="inorder rename LYON --store orders.db")
@click.argument("name")
@takes_store
def rename(run: Run, name: str) -> None:
    """Give the queue manager another NAME, while nobody is connected.

    Ids keep their beginning: the name that the queue manager was created with. Messages keep the names that they carry,
    and other queue managers know the old name.
    """
    place = run.store
    before = rename_manager(place.given, name)
    run.output.tell({"store": str(place), "name": name, "before": before}, f"renamed {before} to {name}: {place}")


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
        problems = [str(error.args[0]), *run.store.problems()]
    for problem in problems:
        run.output.say(problem)
    verdict = f"{run.store} is sound" if not problems else f"{run.store}: {len(problems)} found"
    run.output.tell({"store": str(run.store), "sound": not problems, "problems": problems}, verdict)
    return NO if problems else 0


@click.command("backup", cls=Command, example="inorder backup copy.db --store orders.db")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--replace", is_flag=True, help="Replace a file that exists.")
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


@click.command("upgrade", cls=Command, example="inorder upgrade --store orders.db")
@click.option("--backup", type=click.Path(path_type=Path), help="Where the copy goes; default: beside the store.")
@click.option("--no-backup", is_flag=True, help="Make no copy. Needed for a store in PostgreSQL: run pg_dump first.")
@takes_store
def upgrade(run: Run, backup: Path | None, no_backup: bool) -> None:
    """Upgrade a store that an older release made.

    First a copy is made, as orders.db.schema-10 if 10 is the version found; it is never written over a file. Then one
    transaction changes the tables: a crash or an error leaves the store as it was. Nobody else may have it open. A
    store in PostgreSQL is upgraded by the role that owns it.
    """
    if backup is not None and no_backup:
        raise click.UsageError("--backup and --no-backup exclude each other.")
    place = run.store
    with run.output.progress("copying", "bytes") as advance:
        done = upgrade_store(place.given, backup=backup or not no_backup, progress=advance)
    copy = None if done.backup is None else str(done.backup)
    said = f"{place} is of this release already (schema version {done.version})"
    if done.found != done.version:
        said = f"upgraded {place} from schema version {done.found} to {done.version}"
        said += f"; the store as it was is in {copy}" if copy else ""
    run.output.tell({"store": str(place), "found": done.found, "version": done.version, "backup": copy}, said)
