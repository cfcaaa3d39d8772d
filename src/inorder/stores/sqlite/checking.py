"""Whether a store is sound: what SQLite says of the file, and what must be true of its tables."""

from __future__ import annotations

from ..base_operating import CheckProgress
from .home import Home
from .statements import checks
from .verb import Verb

FILE = ("PRAGMA integrity_check", "PRAGMA foreign_key_check")


def problems(home: Home, progress: CheckProgress | None = None) -> list[str]:
    """Everything that is wrong, in words; empty if the store is sound.

    It reads the whole file, on one state of it: others may work meanwhile, other threads of this process wait.

    Args:
        progress: called with the statements that are done and all there are, before each and at the end. What it
            raises ends the check.

    Raises: StoreDamaged, if the file is too damaged to be read; what `Database.reading` raises.
    """
    statements = [*FILE, *checks().values()]
    found: list[str] = []
    with Verb(home, writes=False, though_stopped=True) as verb:
        for number, sql in enumerate(statements):
            if progress is not None:
                progress(number, len(statements))
            found += [text for row in verb.execute(sql) if (text := _said(*row)) != "ok"]
    if progress is not None:
        progress(len(statements), len(statements))
    return found


def _said(text: str, row: object = None, parent: object = None, _: object = None) -> str:
    """A row of an answer in words: ours and those of `integrity_check` are words already."""
    return text if parent is None else f"table {text}, row {row}: what it refers to in {parent} is missing"
