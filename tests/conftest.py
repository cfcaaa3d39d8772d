"""Hypothesis profiles: the everyday one repeats itself; INORDER_LONG=1 searches longer, at random."""

from __future__ import annotations

import os

from hypothesis import settings

# No deadline in either: no test here judges by the clock. A failure prints the blob that replays it.
settings.register_profile("everyday", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("long", max_examples=10_000, deadline=None, print_blob=True)

PROFILE = "long" if os.environ.get("INORDER_LONG") else "everyday"
settings.load_profile(PROFILE)


def pytest_report_header() -> str:
    return f"inorder: hypothesis profile {PROFILE} (INORDER_LONG=1 for the long one)"
