"""Reports events of a store to monitoring tools; each file here needs its own library, and no other."""

from __future__ import annotations
