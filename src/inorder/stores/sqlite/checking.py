"""Whether a store is sound: what SQLite says of the file, and what must be true of its tables."""

from __future__ import annotations

from .home import Home
from .statements import checks
from .verb import Verb


def problems(home: Home) -> list[str]:
    """Everything that is wrong, in words; empty if the store is sound.

    It reads the whole file, on one state of it: others may work meanwhile, other threads of this process wait.

    Raises: StoreDamaged, if the file is too damaged to be read; what `Database.reading` raises.
    """
    with Verb(home, writes=False, though_stopped=True) as verb:
        damage = [text for (text,) in verb.execute("PRAGMA integrity_check") if text != "ok"]
        dangling = [
            f"table {table}, row {row}: what it refers to in {parent} is missing"
            for table, row, parent, _ in verb.execute("PRAGMA foreign_key_check")
        ]
        wrong = [text for check in checks().values() for (text,) in verb.execute(check)]
    return [*damage, *dangling, *wrong]
