"""A program that is killed before any statement of a call.

INORDER_LONG=1 kills at every statement, otherwise at some of them.
"""

from __future__ import annotations

import os
import random

import pytest
from tests.helpers.support import until
from tests.stores.killing import ACTS, check_kills
from tests.stores.postgresql.server import sessions
from tests.tiers import nightly

IS_LONG = bool(os.environ.get("INORDER_LONG"))
SOME = 4  # statements, beside the first and the last
IN_GATE = "commit"


@pytest.mark.parametrize("act", [IN_GATE, *(pytest.param(one, marks=nightly) for one in ACTS if one != IN_GATE)])
def test_a_call_that_was_killed_has_happened_or_not(url: str, act: str) -> None:
    def among(count: int) -> list[int]:
        between = range(1, count)
        return [*between] if IS_LONG else random.Random(act).sample(between, min(SOME, len(between)))

    check_kills("postgresql", url, act, among, lambda name: until(lambda: not sessions(url, name), "it was noticed"))
