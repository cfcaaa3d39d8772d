"""The store in an SQLite file: durable, and open in any number of processes at once."""

from __future__ import annotations
