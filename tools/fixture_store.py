"""Keeps a store of the next release, for the upgrade tests of later releases.

    python -m tools.fixture_store 0.1.0        writes tests/releases/0.1.0: run it once, with the release's own code

It writes the store as a file (`orders.db.gz`), and the tables of one in PostgreSQL (`postgresql.sql`). What `filled`
puts in, `missing` looks for after the upgrade; `tests/stores/test_releases.py` does that with every release that the
changelog names.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import tempfile
from pathlib import Path
from typing import Final

import inorder
from inorder import Flags, NoMessageAvailable, QueueManager
from inorder.model.message import Transmission
from inorder.mq import channels
from inorder.stores.postgresql.statements import SCHEMA, VERSION

ROOT: Final = Path(__file__).parents[1]
RELEASES: Final = ROOT / "tests/releases"
FILE, TABLES = "orders.db", "postgresql.sql"
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


def missing(qm: QueueManager) -> list[str]:
    """Returns the differences from `filled`, in sentences; it removes the messages that it finds."""
    found = []

    def compare(what: str, is_there: object, was_put: object) -> None:
        if is_there != was_put:
            found.append(f"{what}: {is_there!r}, and it was {was_put!r}")

    found.extend(qm.admin.check())
    names = sorted(queue.name for queue in qm.queues() if not queue.name.startswith("SYSTEM."))
    compare("queues", names, ["ALIAS", "FAR", "ORDERS", "OTHERS", "TO.THERE"])
    compare("a remote queue", qm.attributes("FAR").remote_manager, "THERE")
    compare("a process definition", qm.admin.process("WORK").application_id, "echo")
    compare("a channel", channels.channel(qm, "HERE.THERE").transmission_queue, "TO.THERE")
    compare("roles", {user.name: sorted(user.roles) for user in qm.accounts.users()}, ROLES)
    compare("a grant", qm.accounts.user("shop").may("put", "ORDERS"), True)
    compare("what is on its way", qm.get("TO.THERE").transmission, Transmission("NEAR", "THERE"))
    compare("description", qm.attributes("ORDERS").description, "what came in")
    compare("maximal depth", qm.attributes("OTHERS").max_depth, 10)
    bodies = [message.body for message in qm.browse("ALIAS")]
    whole = [b"priority 7", b"priority 4", b"priority 1"]
    compare("by priority", [body for body in bodies if body.startswith(b"priority")], whole)
    compare("a property", next(qm.browse("ORDERS")).properties.get("colour"), "red")
    chosen = inorder.Match(group_id=next((m.group_id for m in qm.browse("ORDERS") if m.body == b"header"), b"none"))
    compare("the group", [one.body for one in qm.get_group("ORDERS", match=chosen)], [b"header", b"line 1"])
    compare("a long body", qm.get("OTHERS").body, b"long " * 20_000)
    compare("named units", sorted(unit.name for unit in qm.inspect.units()), ["7", "monday"])
    qm.settle("monday", "commit")
    compare("the prepared put", qm.get("OTHERS").body, b"prepared")
    with contextlib.suppress(NoMessageAvailable):
        compare("what waits to be confirmed", qm.get("OTHERS").body, None)
    return found


def keep(version: str, releases: Path = RELEASES) -> Path:
    """Writes the folder of a release. Raises: FileExistsError, the folder exists: a release is kept once."""
    folder = releases / version
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as made:
        store = Path(made) / FILE
        with inorder.connect(store, name="KEPT") as qm:
            filled(qm)
        (folder / f"{FILE}.gz").write_bytes(gzip.compress(store.read_bytes(), mtime=0))
    (folder / TABLES).write_text(f"-- version {VERSION}\n{SCHEMA}", encoding="utf-8")
    return folder


def taken_out(folder: Path, store: Path) -> None:
    """Writes the store of a release to a path."""
    store.write_bytes(gzip.decompress((folder / f"{FILE}.gz").read_bytes()))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("version", help="of the release, as the changelog has it")
    print(f"kept in {keep(parser.parse_args().version)}")


if __name__ == "__main__":
    main()
