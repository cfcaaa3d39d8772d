"""Checks whether a store can be opened at an address, before anything is created.

A store is a separate PostgreSQL schema with our mark: the table `store`, with the version of its tables. It is
created in one transaction, so that no crash leaves half of it.
"""

from __future__ import annotations

import secrets
from contextlib import closing, suppress
from typing import Final

from psycopg import sql

from ...errors import StoreError, StoreForeign, StoreNewer, StoreOlder
from ..seam.backend import Passing
from ..seam.migrations import Ladder
from .address import Address
from .faults import told_as_ours
from .link import Link
from .statements import LADDER, SCHEMA

OLDEST_SERVER: Final = 150000
MADE_BY: Final = "inorder"

SERVER: Final = sql.SQL("""
SELECT pg_backend_pid(), current_setting('server_version_num')::bigint, current_setting('fsync'),
    current_setting('server_encoding'), pg_is_in_recovery()
""")
# Whether the schema exists, this user may use it, and it contains anything, and our mark.
FOUND: Final = """
SELECT count(s.oid) > 0, coalesce(bool_or(has_schema_privilege(s.oid, 'USAGE')), false),
    coalesce(bool_or(
        EXISTS (SELECT 1 FROM pg_class c WHERE c.relnamespace = s.oid)
        OR EXISTS (SELECT 1 FROM pg_proc p WHERE p.pronamespace = s.oid)
    ), false),
    coalesce(bool_or((
        SELECT count(*) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        WHERE c.relnamespace = s.oid AND c.relname = 'store' AND c.relkind = 'r' AND a.attname IN ('made_by', 'version')
    ) = 2), false)
FROM pg_namespace s WHERE s.nspname = ?1
"""


def open_link(address: Address, manager: str, program: str) -> Link:
    """Connects to the store at an address, and creates the store if it is missing.

    Args:
        manager: the attributes of the queue manager of a new store, as JSON.
    Raises: StoreError, StoreForeign, StoreNewer; nothing was created then.
    """
    link = linked(address, program)
    try:
        with told_as_ours(address):
            if not _is_ours(link):
                _make(link, manager)
    except BaseException:
        link.close()
        raise
    return link


def is_there(address: Address, program: str) -> bool:
    """Whether there is a store at the address. Raises: as `open_link`."""
    with closing(linked(address, program)) as link, told_as_ours(address):
        return _is_ours(link)


def are_one(first: Address, second: Address) -> bool:
    """Whether two addresses name one store: a lock taken through one is visible through the other.

    Raises: as `open_link`.
    """
    if first.schema != second.schema:
        return False
    key = secrets.randbits(62)
    with closing(linked(first, "compare")) as one, closing(linked(second, "compare")) as other:
        with told_as_ours(first):
            one.execute("SELECT pg_advisory_lock(?)", (key,))
        with told_as_ours(second):
            ((is_free,),) = other.execute("SELECT pg_try_advisory_lock(?)", (key,))
    return not is_free


def drop(address: Address) -> None:
    """Deletes a store, even if others use it; their running calls finish first. Raises: StoreError, StoreForeign."""
    with closing(linked(address, "drop")) as link:
        is_dropped = False
        while not is_dropped:
            # Calls lock the tables in another order; if two block each other, the server ends one.
            with suppress(Passing), told_as_ours(address):
                if version_in(link, LADDER) is not None:
                    link.script(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(address.schema)))
                is_dropped = True


def linked(address: Address, program: str) -> Link:
    """Connects to a server that can hold a store. Raises: StoreError."""
    link = Link(address, program)
    try:
        with told_as_ours(address):
            _refuse_server(link)
    except BaseException:
        link.close()
        raise
    return link


def _refuse_server(link: Link) -> None:
    """Raises: StoreError, if this server cannot hold a store."""
    at = link.address
    ((pid, version, fsync, encoding, is_standby),) = link.script(SERVER)
    if pid != link.server_pid:
        why = (
            "it is reached through a pooler such as PgBouncer, but a store needs its own session from end to end, "
            "for the locks that show which processes are alive. Connect to the server itself"
        )
    elif version < OLDEST_SERVER:
        why = f"the server is PostgreSQL {version // 10000}, and a store needs {OLDEST_SERVER // 10000} or later"
    elif fsync != "on":
        why = "the server runs with fsync=off, so acknowledged changes may be lost. Switch it on"
    elif encoding != "UTF8":
        why = f"the database is encoded as {encoding}, and a store needs UTF8. Create one with ENCODING 'UTF8'"
    elif is_standby:
        why = (
            "the server is a standby, which cannot be written. Name the primary: of several hosts "
            "target_session_attrs=read-write finds it"
        )
    else:
        return
    raise StoreError(f"{at} cannot be used: {why}.", path=str(at))


def _is_ours(link: Link) -> bool:
    """Whether the store exists. Raises: StoreForeign, StoreNewer, StoreOlder, StoreError."""
    found = version_in(link, LADDER)
    if found is not None and found != LADDER.newest:
        raise older(link.address, found, LADDER)
    return found is not None


def version_in(link: Link, ladder: Ladder) -> int | None:
    """Returns the version of the tables; None: the store is missing. Raises: StoreForeign, StoreNewer, StoreError."""
    at = link.address
    ((has_schema, may_use, has_content, is_marked),) = link.execute(FOUND, (at.schema,))
    if not has_schema:
        return None
    if not may_use:
        raise StoreError(
            f"this user lacks a privilege for {at} (USAGE on the schema {at.schema}). The page on PostgreSQL has the "
            "GRANTs for owners and users.",
            path=str(at),
        )
    if not has_content:
        return None
    marks = link.execute("SELECT made_by, version FROM store").fetchall() if is_marked else []
    if [made_by for made_by, _ in marks] != [MADE_BY]:
        raise StoreForeign(
            f"{at}: the schema {at.schema} has other contents. It was not changed: name another schema.", path=str(at)
        )
    ((_, version),) = marks
    assert isinstance(version, int), version
    if version > ladder.newest:
        raise newer(at, version, ladder)
    return version


def newer(at: Address, version: int, ladder: Ladder) -> StoreNewer:
    """Returns the error for a store whose version is above ours."""
    return StoreNewer(
        f"{at} was written by a newer release of inorder (version {version} of its tables; this release knows up to "
        f"{ladder.newest}). It was not changed: use that release, or another schema.",
        path=str(at),
        version=version,
    )


def older(at: Address, version: int, ladder: Ladder) -> StoreOlder:
    """Returns the error for a store whose version is below ours, with the remedy."""
    can_upgrade = ladder.can_upgrade(version)
    remedy = (
        "Its owner upgrades it with inorder upgrade --no-backup, after pg_dump"
        if can_upgrade
        else f"It is too old to upgrade: the oldest version that can be upgraded is {ladder.oldest}. Move its messages "
        "to another store with the release that created it"
    )
    return StoreOlder(
        f"{at} was written by an older release of inorder (version {version} of its tables; this release needs "
        f"{ladder.newest}). {remedy}.",
        path=str(at),
        version=version,
        upgradable=can_upgrade,
    )


def refuse_upgraded(link: Link) -> None:
    """Inside the transaction that registers a process: raises StoreNewer if the store was upgraded meanwhile."""
    ((version,),) = link.execute("SELECT version FROM store")
    if version != LADDER.newest:
        raise newer(link.address, version, LADDER)


def _make(link: Link, manager: str) -> None:
    """Creates the store in one transaction, under a lock: a second process waits, and then finds the store."""
    at = link.address
    link.begin("BEGIN")
    link.execute("SELECT pg_advisory_xact_lock(hashtextextended('inorder ' || ?, 0))", (at.schema,))
    link.execute("SELECT set_config('synchronous_commit', ?, true)", (link.flush_level,))
    if not _is_ours(link):
        ((has_schema,),) = link.execute("SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = ?)", (at.schema,))
        if not has_schema:  # a role that may not create a schema may have been given one
            link.script(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(at.schema)))
        link.script(sql.SQL(SCHEMA))
        link.execute("INSERT INTO store (version, made_by) VALUES (?, ?)", (LADDER.newest, MADE_BY))
        link.execute("INSERT INTO manager (id, attributes) VALUES (1, ?)", (manager,))
    link.commit()
