"""The memory store: the specification that other stores must agree with."""

from __future__ import annotations

from .store import MemoryStore

__all__ = ["MemoryStore"]
