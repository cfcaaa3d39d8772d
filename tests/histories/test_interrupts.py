"""An exception from outside at any place of any call: nothing stays held, and the call has happened or not."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from tests.helpers.interrupted import PORTIONS, disturbs_nobody, leaves_nothing_held
from tests.helpers.interrupting import IS_KNOWN

IS_LONG = bool(os.environ.get("INORDER_LONG"))
PLACES = 10**9 if IS_LONG else 100
RANDOM_PLACES = 10_000 if IS_LONG else 100


@pytest.mark.skipif(not IS_KNOWN, reason="where exceptions come is written down for CPython 3.11")
@pytest.mark.parametrize(
    "portion",
    [pytest.param(one, marks=pytest.mark.nightly if one else pytest.mark.gate) for one in range(PORTIONS)],
)
def test_an_exception_at_any_place_leaves_nothing_held(portion: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        leaves_nothing_held(Path(folder) / "store.db", PLACES, portion)


@pytest.mark.nightly
@pytest.mark.parametrize("how", ["signals", "threads"])
def test_exceptions_at_random_times_and_in_bursts_disturb_no_other_writer(how: str) -> None:
    """A writer in this process puts and gets meanwhile, always successfully."""
    with tempfile.TemporaryDirectory() as folder:
        disturbs_nobody(Path(folder) / "store.db", how, RANDOM_PLACES)
