"""The rules: pure functions and tables, without clock, store, randomness or I/O."""

from __future__ import annotations
