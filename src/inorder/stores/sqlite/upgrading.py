"""Upgrades the tables of a store in a file from an older release to this one, completely or not at all.

No other process has the store open meanwhile: this process is alone on the sidecar, and holds the turn. A process that
opens the store waits for the turn before it looks at the tables, so a process of either release sees the version that
is then valid.

The steps run in a rollback journal, as the creation of a store does, and not in the log. So the version in the file's
header is the one that counts, and a new log begins with the new tables. A crash, a full disk or a step that fails
leaves the store as it was; SQLite rolls back an interrupted transaction when the file is opened next.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import apsw

from ...errors import ForkedConnection, StoreError
from ...support.locks import AtEnd
from ..engine.points import reach
from ..seam.migrations import Ladder, Upgraded
from .backup import copy_to, refuse_target
from .coordination import TURN, Coordination, attach, attached, detach
from .faults import PASSING, store_error
from .files import identity_of
from .forks import inherited, opening
from .opening import (
    APPLICATION_ID,
    OBJECTS,
    SIDECAR,
    made,
    older,
    refuse_newer,
    refuse_other_schema,
    refuse_unfit,
    resolved,
)
from .statements import LADDER, SCHEMA

PATIENCE_MS: Final = 1_000  # with another program that reads the file as an SQLite database
SETTINGS: Final = """
PRAGMA synchronous = EXTRA;
PRAGMA fullfsync = ON;
PRAGMA mmap_size = 0;
PRAGMA foreign_keys = OFF;
"""

Progress = Callable[[int, int], object]


def upgrade_file(
    path: str | os.PathLike[str],
    *,
    backup: str | os.PathLike[str] | bool = True,
    progress: Progress | None = None,
    ladder: Ladder = LADDER,
    schema: str = SCHEMA,
) -> Upgraded:
    """Bring the tables of a store in a file to the version of this release.

    Args:
        backup: the path of the copy that is made first; True: beside the store, named after its version; False: none.
        progress: called with the bytes copied and the total; an exception from it ends the upgrade.
        ladder: the steps, which end with the tables of `schema`.

    Raises: StoreError, if there is no store, or others have it open; ArgumentError, if the copy's file exists;
    StoreOlder, if it is too old; StoreNewer, StoreForeign, StoreFull, StoreDamaged.
    """
    file = resolved(path)
    if not file.exists():
        raise StoreError(f"there is no store at {file}", path=str(file))
    found = refuse_unfit(file)
    if found is not None:
        _refuse_out_ofreach(file, found, ladder)
    with _alone(file), _connected(file) as connection:
        reach("upgrade-alone")
        found = _version(file, connection, ladder)
        if found == ladder.newest:
            return Upgraded(found=found, version=found)
        copy = _backed_up(file, connection, found, backup, progress)
        _climb(file, connection, found, ladder, schema)
        return Upgraded(found=found, version=ladder.newest, backup=copy)


def _refuse_out_ofreach(file: Path, found: int, ladder: Ladder) -> None:
    refuse_newer(file, found, ladder)
    if found != ladder.newest and not ladder.can_upgrade(found):
        raise older(file, found, ladder)


def _version(file: Path, connection: apsw.Connection, ladder: Ladder) -> int:
    """Return the version after SQLite has rolled back an interrupted transaction."""
    if connection.pragma("application_id") != APPLICATION_ID:
        raise StoreError(f"there is no store in {file} yet: the file is empty", path=str(file))
    found = connection.pragma("user_version")
    assert isinstance(found, int), found
    _refuse_out_ofreach(file, found, ladder)
    return found


def _backed_up(
    file: Path,
    connection: apsw.Connection,
    found: int,
    backup: str | os.PathLike[str] | bool,
    progress: Progress | None,
) -> Path | None:
    if backup is False:
        return None
    target = resolved(f"{file}.schema-{found}" if backup is True else backup)
    refuse_target(target, file, argument="backup")
    copy_to(target, connection, file, argument="backup", progress=progress)
    reach("upgrade-backed-up")
    return target


def _climb(file: Path, connection: apsw.Connection, found: int, ladder: Ladder, schema: str) -> None:
    if connection.pragma("journal_mode", "delete") != "delete":
        raise _in_use(file)
    connection.execute("BEGIN EXCLUSIVE")
    reach("upgrade-begun")
    for step in ladder.from_version(found):
        connection.execute(step.statements).fetchall()
        assert connection.in_transaction, f"the step to version {step.version} has ended the transaction"
        connection.pragma("user_version", step.version)
        reach(f"upgrade-step {step.version}")
    # Makes the next start skip the reserved numbers, because this upgrade may have created the sidecar.
    connection.execute("UPDATE manager SET boot = ''")
    refuse_other_schema(file, connection.execute(OBJECTS), schema)
    reach("upgrade-checked")
    connection.execute("COMMIT")
    reach("upgrade-committed")


def _in_use(file: Path) -> StoreError:
    return StoreError(
        f"{file} cannot be upgraded while others have it open. Close it in all programs, and try again. Nothing was "
        "changed.",
        path=str(file),
    )


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    """Keep all others from opening the store during the block. Raises: StoreError, if others have it open."""
    sidecar, user = Path(f"{file}{SIDECAR}"), object()
    with opening:
        if file in inherited:
            raise ForkedConnection(f"{file}: this process was forked inside a call on it and cannot open it")
        if sidecar in attached():
            raise _in_use(file)
        with (
            AtEnd(detach, sidecar, user) as again,
            again,
            _in_turn(file, attach(sidecar, made(file), user, identity_of(file))),
        ):
            yield


@contextmanager
def _in_turn(file: Path, shared: Coordination) -> Iterator[None]:
    # Checked before the turn, which another process may hold for long, and again in it: the store may then be open.
    if not shared.is_alone:
        raise _in_use(file)
    with AtEnd(shared.give, TURN) as again, again:
        shared.take(TURN)
        if not shared.is_alone:
            raise _in_use(file)
        yield


@contextmanager
def _connected(file: Path) -> Iterator[apsw.Connection]:
    """Open a connection that is closed at the end, which rolls back an open transaction. Translates its errors to
    ours.
    """
    connection: apsw.Connection | None = None
    try:
        connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READWRITE)
        connection.set_busy_timeout(PATIENCE_MS)
        connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        connection.execute(SETTINGS).fetchall()
        yield connection
    except PASSING as error:
        raise _in_use(file) from error
    except Exception as error:
        ours = store_error(file, error, connection)
        if ours is None:
            raise
        raise ours from error
    finally:
        if connection is not None:
            with contextlib.suppress(apsw.Error):  # the error being raised says more
                connection.close()
