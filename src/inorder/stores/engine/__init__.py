"""What each operation means, once for all backends."""

from __future__ import annotations
