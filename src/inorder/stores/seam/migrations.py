"""Upgrades the tables of an older release to those of this one, in numbered steps, all in this file.

A store records the version of its tables. A release that changes them adds one `MigrationStep` for each kind of store
here, and changes `schema.sql` to the result of the step. The versions of steps are consecutive and end at the release's
own. The oldest version that can be upgraded is the one before the first step. An upgrade runs the missing steps in one
transaction, and commits only if the tables then equal those of a new store.

How to write a step: `CONTRIBUTING.md`, "Change the schema".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationStep:
    """Brings the tables from the version before to this one.

    Args:
        version: of the tables afterwards.
        statements: SQL, in the store's own dialect, separated by semicolons. They run inside a transaction.
    """

    version: int
    statements: str


class Ladder:
    """The steps of one kind of store.

    Args:
        newest: the version of the tables that this release creates.
        steps: in order, the last one leading to `newest`.
    """

    def __init__(self, newest: int, steps: Sequence[MigrationStep] = ()) -> None:
        self.newest, self._steps = newest, tuple(steps)
        self.oldest = newest - len(self._steps)
        versions = [step.version for step in self._steps]
        assert versions == list(range(self.oldest + 1, newest + 1)), f"the steps lead to {versions}, not to {newest}"

    def can_upgrade(self, version: int) -> bool:
        """Whether this version is older than the newest one, and not too old to upgrade."""
        return self.oldest <= version < self.newest

    def from_version(self, version: int) -> Sequence[MigrationStep]:
        """Returns the steps that a store of this version lacks."""
        assert self.oldest <= version <= self.newest, version
        return self._steps[version - self.oldest :]


# The steps begin at the tables of 0.1.0, the first release.
SQLITE: Final[Sequence[MigrationStep]] = (
    # Adds marks of messages, put keys met in the future, speed and reset of channels, bodies in pieces, two types of
    # queues, global units, and the history of queues.
    MigrationStep(
        version=11,
        statements="ALTER TABLE message ADD COLUMN put_by TEXT; ALTER TABLE putkey ADD COLUMN met_at REAL; "
        "ALTER TABLE manager ADD COLUMN created_at REAL NOT NULL DEFAULT 0; "
        "UPDATE manager SET created_at = coalesce((SELECT min(created_at) FROM definition), 0);"
        """
        CREATE TABLE body (
            identifier TEXT NOT NULL,
            incarnation INTEGER NOT NULL,
            channel TEXT NOT NULL,
            position INTEGER NOT NULL CHECK (position >= 0),
            batch BLOB NOT NULL,
            digest BLOB NOT NULL,
            size INTEGER NOT NULL CHECK (size > 0),
            held INTEGER NOT NULL CHECK (held BETWEEN 0 AND size),
            PRIMARY KEY (identifier, incarnation, channel, position)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE piece (
            identifier TEXT NOT NULL,
            incarnation INTEGER NOT NULL,
            channel TEXT NOT NULL,
            position INTEGER NOT NULL,
            first INTEGER NOT NULL CHECK (first >= 0),
            data BLOB NOT NULL,
            PRIMARY KEY (identifier, incarnation, channel, position, first)
        ) STRICT;

        CREATE TABLE globalunit (
            name TEXT PRIMARY KEY,
            connection INTEGER NOT NULL,
            user TEXT NOT NULL,
            program TEXT NOT NULL,
            started_at REAL NOT NULL,
            branches TEXT NOT NULL,
            outcome TEXT NOT NULL CHECK (outcome IN ('', 'commit', 'back_out'))
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE sample (
            seconds INTEGER NOT NULL,
            slot INTEGER NOT NULL
                CHECK (slot BETWEEN 0 AND CASE seconds WHEN 60 THEN 59 WHEN 900 THEN 95 WHEN 7200 THEN 83 ELSE -1 END),
            at REAL NOT NULL,
            queues TEXT NOT NULL CHECK (json_valid(queues)),
            PRIMARY KEY (seconds, slot)
        ) STRICT;

        CREATE TABLE former AS SELECT * FROM definition;
        DROP TABLE definition;
        CREATE TABLE definition (
            id INTEGER PRIMARY KEY,
            name TEXT NOT NULL UNIQUE,
            type TEXT NOT NULL
                CHECK (type IN ('local', 'alias', 'model', 'remote', 'store_and_forward', 'home_server')),
            attributes TEXT NOT NULL CHECK (json_valid(attributes)),
            created_at REAL NOT NULL,
            altered_at REAL NOT NULL
        ) STRICT;
        INSERT INTO definition SELECT * FROM former;
        DROP TABLE former;

        CREATE TABLE former AS SELECT * FROM channel;
        DROP TABLE channel;
        CREATE TABLE channel (
            name TEXT PRIMARY KEY,
            status TEXT NOT NULL
                CHECK (status IN ('inactive', 'starting', 'running', 'retrying', 'paused', 'stopping', 'stopped',
                    'triggered', 'waiting')),
            carrier INTEGER,
            epoch INTEGER NOT NULL CHECK (epoch >= 0),
            stop TEXT NOT NULL CHECK (stop IN ('', 'quiesce', 'force', 'terminate')),
            short_retries INTEGER NOT NULL CHECK (short_retries >= 0),
            long_retries INTEGER NOT NULL CHECK (long_retries >= 0),
            reason INTEGER NOT NULL,
            error TEXT NOT NULL,
            changed_at REAL NOT NULL,
            fast INTEGER NOT NULL DEFAULT 0 CHECK (fast IN (0, 1)),
            reset INTEGER NOT NULL DEFAULT 0 CHECK (reset IN (0, 1))
        ) STRICT, WITHOUT ROWID;
        INSERT INTO channel SELECT *, 0, 0 FROM former;
        DROP TABLE former;
        """,
    ),
)
POSTGRESQL: Final[Sequence[MigrationStep]] = (
    # The same.
    MigrationStep(
        version=4,
        statements='ALTER TABLE message ADD COLUMN put_by text COLLATE "C"; '
        "ALTER TABLE putkey ADD COLUMN met_at double precision; "
        "ALTER TABLE channel ADD COLUMN fast bigint NOT NULL DEFAULT 0 CHECK (fast IN (0, 1)); "
        "ALTER TABLE channel ADD COLUMN reset bigint NOT NULL DEFAULT 0 CHECK (reset IN (0, 1)); "
        "ALTER TABLE manager ADD COLUMN created_at double precision NOT NULL DEFAULT 0; "
        "UPDATE manager SET created_at = coalesce((SELECT min(created_at) FROM definition), 0); "
        """
        CREATE TABLE body (
            identifier text COLLATE "C" NOT NULL,
            incarnation bigint NOT NULL,
            channel text COLLATE "C" NOT NULL,
            position bigint NOT NULL CHECK (position >= 0),
            batch bytea NOT NULL,
            digest bytea NOT NULL,
            size bigint NOT NULL CHECK (size > 0),
            held bigint NOT NULL CHECK (held BETWEEN 0 AND size),
            PRIMARY KEY (identifier, incarnation, channel, position)
        );

        CREATE TABLE piece (
            identifier text COLLATE "C" NOT NULL,
            incarnation bigint NOT NULL,
            channel text COLLATE "C" NOT NULL,
            position bigint NOT NULL,
            first bigint NOT NULL CHECK (first >= 0),
            data bytea NOT NULL,
            PRIMARY KEY (identifier, incarnation, channel, position, first)
        );

        CREATE TABLE globalunit (
            name text COLLATE "C" PRIMARY KEY,
            connection bigint NOT NULL,
            "user" text COLLATE "C" NOT NULL,
            program text COLLATE "C" NOT NULL,
            started_at double precision NOT NULL,
            branches text COLLATE "C" NOT NULL,
            outcome text COLLATE "C" NOT NULL CHECK (outcome IN ('', 'commit', 'back_out'))
        );

        CREATE TABLE sample (
            seconds bigint NOT NULL,
            slot bigint NOT NULL
                CHECK (slot BETWEEN 0 AND CASE seconds WHEN 60 THEN 59 WHEN 900 THEN 95 WHEN 7200 THEN 83 ELSE -1 END),
            at double precision NOT NULL,
            queues text COLLATE "C" NOT NULL CHECK (queues::json IS NOT NULL),
            PRIMARY KEY (seconds, slot)
        );

        ALTER TABLE channel DROP CONSTRAINT channel_status_check;
        ALTER TABLE channel ADD CONSTRAINT channel_status_check
            CHECK (status IN ('inactive', 'starting', 'running', 'retrying', 'paused', 'stopping', 'stopped',
                'triggered', 'waiting'));
        ALTER TABLE definition DROP CONSTRAINT definition_type_check;
        ALTER TABLE definition ADD CONSTRAINT definition_type_check
            CHECK (type IN ('local', 'alias', 'model', 'remote', 'store_and_forward', 'home_server'));
        """
        "DROP FUNCTION is_other(bigint);",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgraded:
    """The result of an upgrade.

    Attributes:
        found: the version of its tables before.
        version: their version now; equal to `found` if there was nothing to do.
        backup: the copy that was made first; None: none was requested, or there was nothing to do.
    """

    found: int
    version: int
    backup: Path | None = None
