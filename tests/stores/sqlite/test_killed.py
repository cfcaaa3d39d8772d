"""Kills a program at any point of a call on a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.stores.killing import ACTS, check_kills
from tests.tiers import gate, nightly

IN_GATE = ("confirm and claim", "stage", "settle of a staging")


@gate
@pytest.mark.parametrize("act", [*IN_GATE, *(pytest.param(one, marks=nightly) for one in ACTS if one not in IN_GATE)])
def test_a_killed_call_has_happened_completely_or_not_at_all(path: Path, act: str) -> None:
    check_kills("sqlite", str(path), act, lambda count: range(1, count), lambda _: None)
