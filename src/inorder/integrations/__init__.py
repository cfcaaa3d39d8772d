"""Events of a store for the tools that watch programs; each file here needs its own library, and no other."""

from __future__ import annotations
