"""For tests: a clock that stands still, a queue manager that is gone afterwards, and the scenario tables.

    python -m inorder.testing FILE... [--store memory]

runs scenario tables, the project's own or yours; their language is described in `inorder.testing.language`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..support.old_paths import renamed
from .clock import ManualClock
from .language import Scenario, TableError, read_scenarios
from .runner import ScenarioFailure, run_scenario
from .stores import STORES, temporary_manager

if not TYPE_CHECKING:  # a type checker would take every name for one that is there
    __getattr__ = renamed(__name__, Failure="ScenarioFailure")

__all__ = [
    "STORES",
    "ManualClock",
    "Scenario",
    "ScenarioFailure",
    "TableError",
    "read_scenarios",
    "run_scenario",
    "temporary_manager",
]
