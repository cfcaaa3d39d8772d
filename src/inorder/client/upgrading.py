"""`inorder.upgrade` and `inorder.rename`: changes to a store that no program has open."""

from __future__ import annotations

import os
from collections.abc import Callable

from ..errors import Reason, StoreError, bad_argument
from ..model.attribute import check_queue_name
from ..model.options import check_function, is_path
from ..stores.open import PATH_OR_URL, locate
from ..stores.seam.migrations import Upgraded
from .manager import connect
from .programs import program_name, running_script


def upgrade(
    store: str | os.PathLike[str],
    *,
    backup: str | os.PathLike[str] | bool = True,
    progress: Callable[[int, int], object] | None = None,
) -> Upgraded:
    """Upgrades a store of an older release, in one transaction.

    No program, including this one, may have the store open. A crash, a full disk or an error leaves it unchanged.
    Older releases cannot open it after the upgrade; they can open the backup. A store of this release is not changed.

    Args:
        store: the path of a file, or the URL of a PostgreSQL database with the role that owns the store.
        backup: the path for a copy of the file, made before any change; it never overwrites a file. True: beside
            the store, for example `orders.db.schema-10` for version 10; False: no copy. Use pg_dump to back up a
            store in PostgreSQL, and give False.
        progress: called with the bytes copied and the bytes in all, every few MiB and at the end. An exception from it
            ends the upgrade.

    Returns: the version found, the version now, and the path of the backup.

    Raises: ArgumentError, the backup's file exists. StoreError: the store does not exist, other programs have it
    open, or this role does not own it. StoreOlder 9070, it is too old to be upgraded; StoreNewer 9015; StoreForeign
    9014; StoreFull 2192. CallerError 2298, a backup of a store in PostgreSQL.
    """
    if not isinstance(backup, bool) and not (isinstance(backup, str | os.PathLike) and is_path(backup)):
        raise bad_argument("backup", backup, "the path of a file, in UTF-8, or True or False")
    check_function("progress", progress)
    return locate(store, PATH_OR_URL).upgrade(program_name(running_script()), backup, progress)


def rename(store: str | os.PathLike[str], name: str) -> str:
    """Renames the queue manager of a store that no program has open.

    Message ids, group ids and unique ids do not change, and new ones still begin with the queue manager's first name
    (`ManagerAttributes.origin`). Messages keep the names in their fields, and other queue managers still use the old
    name: see "Rename a queue manager" in the how-to on channels.

    Args:
        store: the path of a file, or the URL of a PostgreSQL database.
        name: 1 to 48 characters out of A-Z a-z 0-9 . / _ %. Case counts.

    Returns: the old name.

    Raises: ObjectInUse 2042, this process or another has the store open. ArgumentError 2058, the name is not valid, or
    a transmission queue or remote queue here leads to a queue manager of this name. StoreError, the store does not
    exist; and its kinds as `connect`.
    """
    check_queue_name(name, argument="name", reason=Reason.Q_MGR_NAME_ERROR)
    program = program_name(running_script())
    where = locate(store, PATH_OR_URL)
    if where.is_in_memory:
        raise bad_argument("store", store, PATH_OR_URL)
    if not where.is_there(program):
        raise StoreError(f"there is no store at {where}", path=str(where))
    with connect(store, program=program) as qm, qm._session:
        return qm._store.rename(qm._session.owner, name)


__all__ = ["Upgraded", "rename", "upgrade"]
