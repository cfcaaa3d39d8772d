"""`inorder.upgrade`: a store of an older release becomes one of this release."""

from __future__ import annotations

import os
from collections.abc import Callable

from .errors import CallerError, Reason, bad_argument, is_url
from .manager import check_client
from .options import is_path
from .programs import program_name, running_script
from .stores.migrations import Upgraded


def upgrade(
    store: str | os.PathLike[str],
    *,
    backup: str | os.PathLike[str] | bool = True,
    progress: Callable[[int, int], object] | None = None,
) -> Upgraded:
    """Upgrades a store that an older release made, in one transaction.

    Nobody may have the store open, this process neither. A crash, a full disk or an error leaves it as it was. Releases
    older than the upgrade cannot open it afterwards; they can open the backup. A store that is of this release already
    is left alone.

    Args:
        store: the path of a file, or the URL of a PostgreSQL database with the role that owns the store.
        backup: where a copy of the file goes before anything is changed. It is never written over a file. True: beside
            the store, as `orders.db.schema-10` if that is the version found; False: no copy is made. A store in
            PostgreSQL is backed up by pg_dump, so that False must be said there.
        progress: called with the bytes copied and the bytes in all, for each few MiB and at the end. What it raises
            ends the upgrade.

    Returns: the version found, the version now, and the path of the backup.

    Raises: ArgumentError, there is a file where the backup is to go. StoreError: there is no store, others have it
    open, or this role does not own it. StoreOlder 9070, it is too old to be upgraded; StoreNewer 9015; StoreForeign
    9014; StoreFull 2192. CallerError 2298, a backup of a store in PostgreSQL.
    """
    if not isinstance(backup, bool) and not (isinstance(backup, str | os.PathLike) and is_path(backup)):
        raise bad_argument("backup", backup, "the path of a file, in UTF-8, or True or False")
    if progress is not None and not callable(progress):
        raise bad_argument("progress", progress, "a function, or None")
    if is_url(store):
        return _upgrade_on_server(str(store), backup)
    if not isinstance(store, str | os.PathLike) or not is_path(store) or store == ":memory:":
        raise bad_argument("store", store, "the path of a file, in UTF-8, or a URL")
    from .stores.sqlite import upgrade_file  # noqa: PLC0415 - who does not upgrade does not load the database

    return upgrade_file(store, backup=backup, progress=progress)


def _upgrade_on_server(url: str, backup: str | os.PathLike[str] | bool) -> Upgraded:
    check_client()
    from .stores.postgresql import parse, upgrade_schema  # noqa: PLC0415 - as above

    address = parse(url)
    if backup is not False:
        raise CallerError(
            f"{address} is backed up by PostgreSQL's own means: pg_dump -n {address.schema}. Do that first, and then "
            "say backup=False",
            reason=Reason.FUNCTION_NOT_SUPPORTED,
        )
    return upgrade_schema(address, program=program_name(running_script()))
