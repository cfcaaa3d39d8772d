"""Upgrades the tables of a store in PostgreSQL from an older release to this one, in one transaction.

It locks the table with the version. A process that opens the store reads that version in the transaction in which it
registers itself (`host.run`): either it is already registered, and the upgrade is refused, or it waits for the lock and
finds the new version. Programs that only read the tables register nowhere. If one has a table locked for longer than
the time-out, the upgrade is refused, too, and does not keep the store closed meanwhile.
"""

from __future__ import annotations

from contextlib import closing
from typing import Final

from psycopg import sql

from ...errors import StoreError
from ..engine.points import reach
from ..seam.backend import Passing
from ..seam.migrations import Ladder, Upgraded
from .address import Address
from .faults import told_as_ours
from .link import Link
from .opening import linked, older, version_in
from .statements import LADDER, STATEMENTS

IS_OWNER = "SELECT pg_has_role(c.relowner, 'USAGE') FROM pg_class c WHERE c.oid = 'store'::regclass"
LOCK = "LOCK TABLE store, process IN ACCESS EXCLUSIVE MODE"
# For each lock: longer than `deadlock_timeout`, after which PostgreSQL ends an autovacuum that is in the way.
PATIENCE: Final = "SELECT set_config('lock_timeout', '3s', true)"


def upgrade_schema(address: Address, *, program: str, ladder: Ladder = LADDER) -> Upgraded:
    """Brings the tables of a store to the version of this release.

    Raises: StoreError, if there is no store, others have it open, or this role does not own it; StoreOlder, if it is
    too old; StoreNewer, StoreForeign, StoreFull.
    """
    with closing(linked(address, program)) as link:
        try:
            with told_as_ours(address):
                return _upgraded(link, ladder)
        except Passing as error:
            raise _in_use(address) from error


def _upgraded(link: Link, ladder: Ladder) -> Upgraded:
    found = _version(link, ladder)
    if found == ladder.newest:
        return Upgraded(found=found, version=found)
    link.begin("BEGIN")
    link.execute(PATIENCE)
    _be_alone(link)
    found = _version(link, ladder)  # another upgrade may have come first
    _climb(link, found, ladder)
    return Upgraded(found=found, version=ladder.newest)


def _version(link: Link, ladder: Ladder) -> int:
    found = version_in(link, ladder)
    if found is None:
        raise StoreError(f"there is no store at {link.address}", path=str(link.address))
    if found != ladder.newest and not ladder.can_upgrade(found):
        raise older(link.address, found, ladder)
    return found


def _be_alone(link: Link) -> None:
    at = link.address
    ((is_owner,),) = link.execute(IS_OWNER)
    if not is_owner:
        raise StoreError(
            f"{at} can only be upgraded by the role that owns it. Connect as that role. Nothing was changed.",
            path=str(at),
        )
    link.script(sql.SQL(LOCK))
    for (process,) in link.execute(STATEMENTS["all processes"]).fetchall():
        ((is_free,),) = link.execute(STATEMENTS["process is dead"], (process,))
        if not is_free:
            raise _in_use(at)
    reach("upgrade-alone")


def _climb(link: Link, found: int, ladder: Ladder) -> None:
    link.execute("SELECT set_config('synchronous_commit', ?, true)", (link.flush_level,))
    reach("upgrade-begun")
    for step in ladder.from_version(found):
        link.script(sql.SQL(step.statements))
        link.execute("UPDATE store SET version = ?", (step.version,))
        link.execute("SELECT 1").fetchall()  # waits until the step has been done
        reach(f"upgrade-step {step.version}")
    reach("upgrade-checked")
    link.commit()
    reach("upgrade-committed")


def _in_use(at: Address) -> StoreError:
    return StoreError(
        f"{at} cannot be upgraded while others have it open, or read its tables as pg_dump does. Close it in all "
        "programs, and try again. Nothing was changed.",
        path=str(at),
    )
