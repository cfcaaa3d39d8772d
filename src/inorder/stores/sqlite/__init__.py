"""The SQLite store: a file that any number of processes and threads use at once."""

from __future__ import annotations

from .store import SqliteStore

__all__ = ["SqliteStore"]
