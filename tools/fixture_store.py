"""Keeps a store of the next release, for the upgrade tests of later releases.

    python -m tools.fixture_store 0.1.0        writes tests/releases/0.1.0: run it once, with the release's own code

It writes the store as a file (`orders.db.gz`), and the tables and rows of one in PostgreSQL (`postgresql.sql`,
`postgresql.json.gz`). After the upgrade, `missing` looks for the objects that `filled` creates;
`tests/stores/test_releases.py` and `tests/stores/postgresql/test_upgrading.py` do that with every release that the
changelog names. The store of 0.1.0 was kept a second time, with more in it, by the code of 0.1.0 and this module with
the names of that release.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.stores.postgresql.server import Server, administrating

import inorder
from inorder import Flags, Got, NoMessageAvailable, QueueManager
from inorder.client.bulk import ClaimReader, LedgerKey, Stager
from inorder.model.message import Transmission
from inorder.mq import channels
from inorder.stores.postgresql.statements import SCHEMA, VERSION

ROOT: Final = Path(__file__).parents[1]
RELEASES: Final = ROOT / "tests/releases"
FILE, TABLES, ROWS = "orders.db", "postgresql.sql", "postgresql.json.gz"
TABLE_NAMES: Final = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1"
SEQUENCES: Final = """
    SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = current_schema() AND last_value IS NOT NULL
"""
COLUMNS: Final = """
    SELECT column_name FROM information_schema.columns
    WHERE table_schema = current_schema() AND table_name = %s AND is_generated = 'NEVER' ORDER BY ordinal_position
"""
HELD: Final = (b"locked", b"under a confirm id", b"got by a prepared unit", b"dead", b"got by a killed program")
FIRST: Final = LedgerKey("load", "", "first")
WAY: Final = Transmission("NEAR", "THERE")
ROLES: Final = {"anna": ["operator"], "shop": ["application"]}


def filled(qm: QueueManager) -> None:
    """Fills an empty store with one object of every kind."""
    qm.create_queue("ORDERS", order="commit", read_order="strict", description="what came in")
    qm.create_queue("OTHERS", max_depth=10)
    qm.create_queue("ALIAS", type="alias", base_queue="ORDERS")
    qm.create_queue("TO.THERE", usage="transmission")
    qm.create_queue("FAR", type="remote", remote_queue="NEAR", remote_manager="THERE", transmission_queue="TO.THERE")
    qm.admin.create_process("WORK", application_id="echo")
    channels.define_channel(qm, "HERE.THERE", transmission_queue="TO.THERE", connection="there.db")
    qm.accounts.create_user("anna", roles=["operator"], description="looks after it")
    qm.accounts.create_user("shop", roles=["application"], queues={"ORDERS": ["put"]})
    qm.put("FAR", b"on its way")
    for priority in (1, 7, 4):
        qm.put("ORDERS", f"priority {priority}".encode(), priority=priority, properties={"colour": "red"})
    with qm.unit_of_work(), qm.group("ORDERS") as group:
        group.put(b"header")
        group.put(b"line 1")
    qm.put("ORDERS", b"part", group_id=b"half", sequence_number=2, flags=Flags.IN_GROUP)
    qm.put("OTHERS", b"long " * 20_000)
    qm.put("OTHERS", b"waits to be confirmed", confirm_id=7)
    qm.put("OTHERS", b"prepared", syncpoint=True)
    qm.prepare("monday")
    _held(qm)


def _held(qm: QueueManager) -> None:
    """Messages in the states of a message, each with its holder, and other records that an upgrade must keep."""
    qm.create_queue("HELD", order="put")
    qm.create_queue("HALF")
    qm.admin.alter_manager(dead_letter_queue="SYSTEM.DEAD.LETTER.QUEUE")
    with qm.unit_of_work(), qm.group("HALF") as group:
        group.put(b"first")
        group.put(b"second")
    qm.put_many("HELD", HELD)
    qm.browse_and_lock("HELD", most=1)
    qm.get("HELD", confirm_id=8)
    qm.get("HELD", syncpoint=True)
    qm.prepare("tuesday")
    with qm.unit_of_work():
        qm.dead.add(qm.get("HELD"), queue="HELD", reason=70_000, error="it broke")
    qm.put("HELD", b"once", deduplicate="key")
    qm.put("HELD", b"later", delay=0.01)  # due before any reader looks
    qm.accounts.create_token("shop", "the laptop")
    with qm.lease(seconds=1.0):  # it ends before the upgrade, so the put is backed out
        qm.put("HELD", b"leased")
    qm.create_queue("BULK")
    qm.put_many("BULK", [b"claimed", b"free"])
    with qm.open("BULK", input="shared", output=True) as queue:
        reader = ClaimReader(queue, "archive")
        reader.begin()
        reader.claim(0, most=1)
        stager = Stager(queue, "rows", lasts=60.0)
        stager.stage(1, {"body": [b"staged"]})
        qm.bulk.settle_staging(FIRST, [stager.staged])


def killed(store: str) -> None:
    """Leaves the state of a program that was killed in a unit of work, and inside a group."""
    qm = inorder.connect(store)
    qm.get("HALF", logical=True)
    unit = qm.unit_of_work()
    unit.__enter__()
    qm.get("HELD")
    qm.put("HELD", b"never committed")
    os._exit(0)


def missing(qm: QueueManager) -> list[str]:
    """Returns the differences from `filled`, in sentences; it removes the messages that it finds."""
    found = []

    def compare(what: str, is_there: object, was_put: object) -> None:
        if is_there != was_put:
            found.append(f"{what}: {is_there!r}, and it was {was_put!r}")

    found.extend(qm.admin.check())
    names = sorted(queue.name for queue in qm.queues() if not queue.name.startswith("SYSTEM."))
    compare("queues", names, ["ALIAS", "BULK", "FAR", "HALF", "HELD", "ORDERS", "OTHERS", "TO.THERE"])
    compare("a remote queue", qm.attributes("FAR").remote_manager, "THERE")
    compare("a process definition", qm.admin.process("WORK").application_id, "echo")
    compare("a channel", channels.channel(qm, "HERE.THERE").transmission_queue, "TO.THERE")
    compare("roles", {user.name: sorted(user.roles) for user in qm.accounts.users()}, ROLES)
    compare("a grant", qm.accounts.user("shop").may("put", "ORDERS"), True)
    compare("a message on its way", [one.transmission for one in _all(qm, "TO.THERE")], [WAY])
    compare("description", qm.attributes("ORDERS").description, "what came in")
    compare("maximal depth", qm.attributes("OTHERS").max_depth, 10)
    bodies = [message.body for message in qm.browse("ALIAS")]
    whole = [b"priority 7", b"priority 4", b"priority 1"]
    compare("by priority", [body for body in bodies if body.startswith(b"priority")], whole)
    compare("a property", next(qm.browse("ORDERS")).properties.get("colour"), "red")
    chosen = inorder.Match(group_id=next((m.group_id for m in qm.browse("ORDERS") if m.body == b"header"), b"none"))
    compare("the group", [one.body for one in qm.get_group("ORDERS", match=chosen)], [b"header", b"line 1"])
    compare("a long body", [one.body for one in _all(qm, "OTHERS")], [b"long " * 20_000])
    named = {"7", "8", "monday", "tuesday"}  # the lock and the claim have units, too
    compare("named units", named & {unit.name for unit in qm.inspect.units()}, named)
    qm.settle("monday", "commit")
    compare("the prepared put", [one.body for one in _all(qm, "OTHERS")], [b"prepared"])
    compare("the rest of a group", [one.body for one in _all(qm, "HALF")], [b"second"])
    compare("dead letters", [(one.why.reason, one.message.body) for one in qm.dead.letters()], [(70_000, b"dead")])
    compare("claims", [(one.queue, one.application) for one in qm.bulk.claims()], [("BULK", "archive")])
    compare("claimed", qm.bulk.release_claims("BULK", "archive"), 1)
    compare("settled", (noted := qm.bulk.in_ledger("BULK", FIRST)) and noted.messages, 1)
    compare("rows in bulk", sorted(one.body for one in _all(qm, "BULK")), [b"claimed", b"free", b"staged"])
    compare("under a confirm id", qm.undo("HELD", 8), 1)
    compare("locked", [qm.admin.release_lock("HELD", one.lock_id or 0) for one in qm.inspect.locks()], [1])
    qm.settle("tuesday", "back_out")
    there = [*(body for body in HELD if body != b"dead"), b"once", b"later"]
    compare("messages that were held", sorted(one.body for one in _all(qm, "HELD")), sorted(there))
    return found


def _all(qm: QueueManager, queue: str) -> Sequence[Got]:
    try:
        return qm.get_many(queue, 100)
    except NoMessageAvailable:
        return []


def keep(version: str, releases: Path = RELEASES, url: str = "") -> Path:
    """Writes the folder of a release; `url` is an empty schema, whose rows are kept, too.

    Raises: FileExistsError, the folder exists: a release is kept once.
    """
    folder = releases / version
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as made:
        store = Path(made) / FILE
        _make(str(store))
        with contextlib.closing(sqlite3.connect(store)) as connection:  # the killed program has left its log
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (folder / f"{FILE}.gz").write_bytes(gzip.compress(store.read_bytes(), mtime=0))
    (folder / TABLES).write_text(f"-- version {VERSION}\n{SCHEMA}", encoding="utf-8")
    if url:
        _make(url)
        (folder / ROWS).write_bytes(gzip.compress(rows(url).encode(), mtime=0))
    return folder


def _make(store: str) -> None:
    with inorder.connect(store, name="KEPT") as qm:
        filled(qm)
    program = "import sys; from tools.fixture_store import killed; killed(sys.argv[1])"
    subprocess.run([sys.executable, "-c", program, store], cwd=ROOT, check=True)


def rows(url: str) -> str:
    """Returns all rows of a store in PostgreSQL, as JSON: a list for each table; and the value of each sequence."""
    with administrating(url) as connection:
        names = connection.execute(TABLE_NAMES).fetchall()
        found = {name: connection.execute(f'SELECT json_agg(t) FROM "{name}" t').fetchone()[0] for (name,) in names}
        sequences = dict(connection.execute(SEQUENCES).fetchall())
    return json.dumps({"rows": {name: kept for name, kept in found.items() if kept}, "sequences": sequences})


def put_rows(folder: Path, connection: Any) -> None:
    """Inserts the rows of a release into the empty tables of that release, in a superuser's transaction."""
    connection.execute("SET LOCAL session_replication_role = replica")  # the rows of groups' counters are kept, too
    data = json.loads(gzip.decompress((folder / ROWS).read_bytes()))
    for name, value in data["sequences"].items():
        connection.execute("SELECT setval(%s::regclass, %s)", [name, value])
    for name, kept in data["rows"].items():
        columns = ", ".join(f'"{column}"' for (column,) in connection.execute(COLUMNS, [name]).fetchall())
        connection.execute(
            f'INSERT INTO "{name}" ({columns}) SELECT {columns} FROM json_populate_recordset(NULL::"{name}", %s)',
            [json.dumps(kept)],
        )


def taken_out(folder: Path, store: Path) -> None:
    """Writes the store of a release to a path."""
    store.write_bytes(gzip.decompress((folder / f"{FILE}.gz").read_bytes()))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("version", help="the version of the release, as in the changelog")
    version = parser.parse_args().version
    with Server() as server:
        print(f"kept in {keep(version, url=f'{server.url()}?schema=kept')}")


if __name__ == "__main__":
    main()
