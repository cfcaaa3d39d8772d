"""Every scenario table, the executable specification, on every store of its tier."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from inorder_scenarios import Scenario, ScenarioFailure, read_scenarios, run_scenario
from tests.tiers import EVERY, LONG_WAY, REMOTE, gate, nightly

MADE_ID = re.compile(r"\b414d5120[0-9a-f]{40}\b")  # "AMQ "
TABLES = sorted((Path(__file__).parents[1] / "scenarios").glob("*.txt"))
SCENARIOS = [scenario for table in TABLES for scenario in read_scenarios(table)]


def label(scenario: Scenario) -> str:
    return f"{Path(scenario.file).stem}:{scenario.line}"


@pytest.mark.parametrize("store", ["memory", *(one for one in EVERY if one.values[0] not in ("memory", REMOTE))])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=label)
def test_the_table_holds(scenario: Scenario, store: str) -> None:
    failure = run_scenario(scenario, store)
    assert failure is None, str(failure)


def in_gate(number: int) -> ParameterSet:
    """Marks one of twenty scenarios for the gate, and the others as nightly."""
    one = SCENARIOS[number]
    return pytest.param(one, id=label(one), marks=nightly if number % 20 else gate)


@pytest.mark.parametrize("scenario", [in_gate(number) for number in range(len(SCENARIOS))])
def test_the_table_holds_for_a_remote_store(scenario: Scenario) -> None:
    failure = run_scenario(scenario, REMOTE)
    assert failure is None, str(failure)


def unordered(scenario: Scenario) -> Scenario:
    """The same scenario; each queue without a given read order keeps no order."""
    steps = [
        replace(step, keys={"read-order": "unordered", **step.keys})
        if step.verb == "queue" and "alias-of" not in step.keys
        else step
        for step in scenario.steps
    ]
    return replace(scenario, steps=tuple(steps))


@nightly
@pytest.mark.parametrize("store", ["sqlite", LONG_WAY, "postgresql"])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=label)
def test_unordered_queues_have_the_same_outcomes_as_in_memory(scenario: Scenario, store: str) -> None:
    """Where a table reads strictly, both stores fail with the same error at the same step."""
    assert failure_of(unordered(scenario), store) == failure_of(unordered(scenario), "memory")


def failure_of(scenario: Scenario, store: str) -> ScenarioFailure | None:
    """The failure without generated ids, whose numbers differ between stores."""
    failure = run_scenario(scenario, store)
    return failure and replace(failure, got=MADE_ID.sub("(made)", failure.got))


def test_titles_are_unique() -> None:
    titles = [scenario.title for scenario in SCENARIOS]
    repeated = sorted({title for title in titles if titles.count(title) > 1})
    assert not repeated, f"give each scenario its own title: {repeated}"
