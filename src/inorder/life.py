"""Which process this is, without a call of the system each time: a child made by fork begins a life of its own."""

from __future__ import annotations

import os

current: object = object()
"""Another one in each process; whoever was made in this one keeps it, and compares with `is`."""


def _begin() -> None:
    global current  # noqa: PLW0603 - it is of the process, as the module is
    current = object()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin)
