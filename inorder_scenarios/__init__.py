"""The runner of scenario tables, which judges `inorder`. It is no part of it: only wheels of 0.1.1 have it, too.

    python -m inorder_scenarios FILE... [--store memory]

`inorder_scenarios.language` describes the language of the tables.
"""

from __future__ import annotations

from .language import Scenario, TableError, read_scenarios
from .runner import ScenarioFailure, run_scenario

__all__ = ["Scenario", "ScenarioFailure", "TableError", "read_scenarios", "run_scenario"]
