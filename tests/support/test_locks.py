"""Blocks that release something at their end, wherever an exception arrives."""

from __future__ import annotations

from contextlib import suppress

import pytest
from tests.helpers.interrupting import IS_KNOWN, OUTSIDE, Interruption

from inorder.support.locks import AtEnd


@pytest.mark.skipif(not IS_KNOWN, reason="where exceptions come is written down for CPython 3.11")
def test_two_nested_blocks_release_what_is_held_wherever_an_exception_arrives() -> None:
    held: list[int] = []

    def give_back() -> None:
        held.clear()

    def call() -> None:
        with AtEnd(give_back) as again, again:
            held.append(1)

    counting = Interruption()
    counting.during(call)
    assert counting.places > 4
    for place in range(counting.places):
        with suppress(*OUTSIDE):
            Interruption(place).during(call)
        assert not held, place
