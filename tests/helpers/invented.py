"""A future release that changes the tables of a store by two invented steps, for each kind of store.

The first step adds a column and an index, the second rebuilds a table and copies its rows.
"""

from __future__ import annotations

from typing import Final

from inorder.stores.postgresql import statements as postgresql
from inorder.stores.seam.migrations import Ladder, MigrationStep
from inorder.stores.sqlite import statements as sqlite

ADDED: Final = "note TEXT NOT NULL DEFAULT 'none'"
INDEX: Final = "CREATE INDEX definition_note ON definition (note)"


def _next_schema() -> str:
    """The tables of the future release, as in its schema.sql."""
    begin, end = "CREATE TABLE definition (", ") STRICT;"
    before, _, rest = sqlite.SCHEMA.partition(begin)
    inside, _, after = rest.partition(end)
    return f"{before}{begin}{inside.rstrip()},\n    {ADDED}\n{end}\n{INDEX};\n{PROCESS[1]}{after}".replace(
        PROCESS[0], "", 1
    )


PROCESS: Final = (
    "CREATE TABLE process (\n    id INTEGER PRIMARY KEY\n) STRICT;",
    "CREATE TABLE process (\n    id INTEGER PRIMARY KEY CHECK (id > 0)  -- nobody is 0\n) STRICT;",
)
assert PROCESS[0] in sqlite.SCHEMA

SCHEMA: Final = _next_schema()


def _two_steps(version: int, *second: str) -> Ladder:
    first = f"ALTER TABLE definition ADD COLUMN {ADDED};\n{INDEX};"
    return Ladder(
        version + 2,
        [
            MigrationStep(version=version + 1, statements=first),
            MigrationStep(version=version + 2, statements="\n".join(second)),
        ],
    )


SQLITE: Final = _two_steps(
    sqlite.VERSION,
    "CREATE TABLE next (id INTEGER PRIMARY KEY CHECK (id > 0)) STRICT;",
    "INSERT INTO next SELECT * FROM process;",
    "DROP TABLE process;",
    "ALTER TABLE next RENAME TO process;",
)
POSTGRESQL: Final = _two_steps(postgresql.VERSION, "ALTER TABLE process ADD CHECK (id > 0);")
