"""For tests of your own code: a clock that stands still, and a queue manager that is deleted afterwards.

`inorder.testing.fixtures` has both as fixtures of pytest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..support.old_paths import renamed
from .clock import ManualClock
from .stores import STORES, temporary_manager

__all__ = ["STORES", "ManualClock", "temporary_manager"]

if not TYPE_CHECKING:  # otherwise a type checker would accept any name
    __getattr__ = renamed(
        __name__,
        Failure="inorder_scenarios.ScenarioFailure",
        Scenario="inorder_scenarios.Scenario",
        TableError="inorder_scenarios.TableError",
        read_scenarios="inorder_scenarios.read_scenarios",
        run_scenario="inorder_scenarios.run_scenario",
    )
