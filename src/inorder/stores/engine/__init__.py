"""The meaning of each operation, written once for all backends."""

from __future__ import annotations
