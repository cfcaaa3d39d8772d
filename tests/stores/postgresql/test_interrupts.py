"""An exception from outside, at any place of any call, while statements are on their way to the server and back.

The connection goes on, or it is lost and says so; nothing stays held in either case.
"""

from __future__ import annotations

import os

import pytest
from tests.helpers.interrupted import PORTIONS, disturbs_nobody, leaves_nothing_held
from tests.helpers.interrupting import IS_KNOWN
from tests.tiers import nightly

IS_LONG = bool(os.environ.get("INORDER_LONG"))
PLACES = 10**9 if IS_LONG else 12
RANDOM_PLACES = 100


@pytest.mark.skipif(not IS_KNOWN, reason="where exceptions come is written down for CPython 3.11")
@pytest.mark.parametrize("portion", [0, *(pytest.param(one, marks=nightly) for one in range(1, PORTIONS))])
def test_an_exception_at_any_place_leaves_nothing_held(url: str, portion: int) -> None:
    leaves_nothing_held(url, PLACES, portion)


@nightly
@pytest.mark.skipif(not IS_LONG, reason="it makes many connections: INORDER_LONG=1")
@pytest.mark.parametrize("how", ["signals", "threads"])
def test_exceptions_at_random_times_and_in_bursts(url: str, how: str) -> None:
    disturbs_nobody(url, how, RANDOM_PLACES)
