"""Every scenario table, against every store: the executable specification."""

from __future__ import annotations

from pathlib import Path

import pytest

from inorder.testing import STORES, Scenario, read_scenarios, run_scenario

TABLES = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))
SCENARIOS = [scenario for table in TABLES for scenario in read_scenarios(table)]


def label(scenario: Scenario) -> str:
    return f"{Path(scenario.file).stem}:{scenario.line}"


@pytest.mark.parametrize("store", sorted(STORES))
@pytest.mark.parametrize("scenario", SCENARIOS, ids=label)
def test_the_table_holds(scenario: Scenario, store: str) -> None:
    failure = run_scenario(scenario, store)
    assert failure is None, str(failure)


def test_titles_are_unique() -> None:
    titles = [scenario.title for scenario in SCENARIOS]
    repeated = sorted({title for title in titles if titles.count(title) > 1})
    assert not repeated, f"give each scenario its own title: {repeated}"
