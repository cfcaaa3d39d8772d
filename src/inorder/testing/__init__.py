"""For tests of your own code: a clock that stands still, and a queue manager that is gone afterwards.

`inorder.testing.fixtures` has both as fixtures of pytest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..support.old_paths import in_testing
from .clock import ManualClock
from .stores import STORES, temporary_manager

__all__ = ["STORES", "ManualClock", "temporary_manager"]

if not TYPE_CHECKING:  # a type checker would take every name for one that is there
    __getattr__ = in_testing  # what 0.1.0 had here: the runner of scenario tables
