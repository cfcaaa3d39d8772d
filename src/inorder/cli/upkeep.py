"""`inorder create`, `inorder rename`, `inorder check`, `inorder backup` and `inorder upgrade`."""

from __future__ import annotations

from pathlib import Path

import click

from ..client.manager import connect_to
from ..client.upgrading import rename as rename_manager
from ..client.upgrading import upgrade as upgrade_store
from ..errors import StoreDamaged, StoreError
from ..stores.open import Location
from .output import Output
from .places import PlaceType
from .running import NO, PROGRAM, Command, Run, takes_store, tells_json
from .wording import size


@click.command("create", cls=Command, example="inorder create orders.db --name PARIS")
@click.argument("store", type=PlaceType(), metavar="STORE")
@click.option("--name", metavar="NAME", help="Default: derived from the name of the file or PostgreSQL schema.")
@click.option(
    "--for", "purpose", type=click.Choice(["mq"]),
    help="mq: for programs written for IBM MQ. New queues that MQSC or such programs define get the defaults of MQ: "
    "5,000 messages, not persistent; and there is a queue for commands.",
)  # fmt: skip
@tells_json
def create(store: Location, name: str | None, purpose: str | None, as_json: bool) -> None:
    """Make a store, and give its queue manager a name.

    STORE is a path or URL as for --store. The name must be 1 to 48 of the characters A-Z a-z 0-9 . / _ %. Other queue
    managers send messages to that name. Case matters.
    """
    if store.is_there(PROGRAM):
        raise StoreError(f"there is a store or another file at {store} already", path=str(store))
    with connect_to(store, program=PROGRAM, name=name) as qm:
        if purpose == "mq":
            from ..mqi.defaults import define_defaults  # noqa: PLC0415 - it loads the command server, with PCF

            define_defaults(qm)
        called = qm.admin.manager_attributes().name
    made = f"made the store {store}: queue manager {called}"
    Output(as_json=as_json).tell({"store": str(store), "name": called}, made)


@click.command("rename", cls=Command, example="inorder rename LYON --store orders.db")
@click.argument("name")
@takes_store
def rename(run: Run, name: str) -> None:
    """Rename the queue manager to NAME. No program may be connected.

    New message ids still begin with the name that the queue manager was created with. Messages keep the names that they
    carry, and other queue managers still use the old name.
    """
    place = run.store
    before = rename_manager(place.given, name)
    text = (
        f"the queue manager is called {name} already: {place}"
        if name == before
        else f"renamed {before} to {name}: {place}"
    )
    run.output.tell({"store": str(place), "name": name, "before": before}, text)


@click.command("check", cls=Command, example="inorder check --store orders.db")
@takes_store
def check(run: Run) -> int:
    """Check the file of the store and every invariant of its contents.

    Other programs can keep working. Exit status: 0 the store is sound; 1 problems were found; 3 the store cannot be
    read.
    """
    try:
        with run.opened() as qm, run.output.progress("checking", "parts") as advance:
            problems = qm.admin.check(advance)
    except StoreDamaged as error:  # it cannot be opened
        problems = [str(error.args[0]), *run.store.problems()]
    for problem in problems:
        run.output.say(problem)
    verdict = f"{run.store} is sound" if not problems else f"{run.store}: problems found: {len(problems)}"
    run.output.tell({"store": str(run.store), "sound": not problems, "problems": problems}, verdict)
    return NO if problems else 0


@click.command("backup", cls=Command, example="inorder backup copy.db --store orders.db")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--replace", is_flag=True, help="Replace a file that exists.")
@takes_store
def backup(run: Run, path: Path, replace: bool) -> None:
    """Copy the store to PATH while others use it.

    The copy is a complete store as of one instant, without open units of work. Back up a store in PostgreSQL with
    PostgreSQL's own tools, such as pg_dump.
    """
    with run.opened() as qm, run.output.progress("copying", "bytes") as advance:
        qm.admin.backup(path, replace=replace, progress=advance)
    length = path.stat().st_size
    run.output.tell({"copy": str(path), "bytes": length}, f"copied to {path}, {size(length)}B")


@click.command("upgrade", cls=Command, example="inorder upgrade --store orders.db")
@click.option("--backup", type=click.Path(path_type=Path), help="The file for the copy; default: next to the store.")
@click.option(
    "--no-backup", is_flag=True, help="Make no copy. A store in PostgreSQL needs this option: run pg_dump first."
)
@takes_store
def upgrade(run: Run, backup: Path | None, no_backup: bool) -> None:
    """Upgrade a store of an older release.

    The command first copies the store, to orders.db.schema-10 if 10 is the version found, and never overwrites a file.
    Then one transaction changes the tables: after a crash or an error the store is unchanged. No other program may have
    it open. Only the owner of a store in PostgreSQL can upgrade it.
    """
    if backup is not None and no_backup:
        raise click.UsageError("--backup and --no-backup exclude each other.")
    place = run.store
    with run.output.progress("copying", "bytes") as advance:
        done = upgrade_store(place.given, backup=backup or not no_backup, progress=advance)
    copy = None if done.backup is None else str(done.backup)
    said = f"{place} already has the schema of this release (version {done.version})"
    if done.found != done.version:
        said = f"upgraded {place} from schema version {done.found} to {done.version}"
        said += f"; a copy of the old store is in {copy}" if copy else ""
    run.output.tell({"store": str(place), "found": done.found, "version": done.version, "backup": copy}, said)
