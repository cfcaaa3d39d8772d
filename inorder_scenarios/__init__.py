"""The runner of scenario tables, which tests `inorder`. It is a separate package; the wheels of 0.2 include it.

    python -m inorder_scenarios FILE... [--store memory]

`inorder_scenarios.language` describes the language of the tables.
"""

from __future__ import annotations

from .language import Scenario, TableError, read_scenarios
from .runner import ScenarioFailure, run_scenario

__all__ = ["Scenario", "ScenarioFailure", "TableError", "read_scenarios", "run_scenario"]
