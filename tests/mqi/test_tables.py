"""The scenario tables through the MQI, except those with actions that it lacks. Rules: M-1, M-8 to M-11."""

from __future__ import annotations

from functools import partial

import pytest
from inorder_scenarios import Scenario, run_scenario
from inorder_scenarios.mqi import connect, is_spoken
from tests.histories.test_scenarios import SCENARIOS, label
from tests.tiers import gate

pytestmark = gate
SPOKEN = [scenario for scenario in SCENARIOS if is_spoken(scenario)]


def test_at_least_800_scenarios_run_through_the_mqi() -> None:
    assert len(SPOKEN) >= 800


@pytest.mark.parametrize("scenario", SPOKEN, ids=label)
def test_the_table_holds_through_the_mqi(scenario: Scenario) -> None:
    failure = run_scenario(scenario, "memory", partial(connect, scenario))
    assert failure is None, str(failure)
