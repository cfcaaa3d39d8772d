"""Compares strict logical readers, in random histories, with an independent oracle (lifecycle B, C-12).

Writers put groups, segmented messages and single messages, of mixed priorities and in units, alone or together in a
lease; each draws its numbers as a separate process does. Three readers get in logical order, in units, under confirm
ids and outside of both; they prepare, back out, undo, close and die. A third party removes pieces, and some expire.
`tests/helpers/logical_oracle.py`, written from the rules alone, predicts the outcome of every call.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.helpers import logical_oracle
from tests.helpers.logical_history import History, Step
from tests.helpers.support import Stores, drawing_apart, examples
from tests.tiers import EVERY

from inorder import connect
from inorder.testing import ManualClock

ORDERS = ["put", "prepare", "commit"]
STEPS = 50
NOTHING: Step = ("nothing", 0, 0)  # the simplest step: Hypothesis shrinks unneeded steps to it


def steps_of(verbs: str) -> list[Step]:
    """Every verb with each actor and each choice of an object."""
    return [(verb.strip(), who, which) for verb in verbs.split(",") for who in range(3) for which in range(12)]


PUTS = steps_of("put chain, put chain in unit, put piece, put piece in unit, put single, put single in unit")
PUTS += steps_of("put single in lease, put piece in lease")
WRITERS = steps_of("writer commits, writer commits, writer backs out, writer prepares, settle put, lease")
GETS = steps_of("get on, get on, get on, get on, get on, get in unit, get, get confirmed, get confirmed")
ENDS = steps_of("reader commits, reader backs out, reader backs out, reader prepares, reader prepares, confirm")
RETURNS = steps_of("settle get, undo")
PARTINGS = steps_of("get single, get single in unit, get single in unit, get single confirmed, close, crash")
THIRD_PARTY = steps_of("remove, remove in unit, third commits, third backs out, delete")
TIME = steps_of("put chain that expires, put chain that expires, put piece that expires, clock")


def histories(steps: list[Step]) -> st.SearchStrategy[list[Step]]:
    """Histories of one length, since most shorter ones end before a reader has entered a group and left it."""
    return st.lists(st.sampled_from([NOTHING, *steps]), min_size=STEPS, max_size=STEPS)


EVERYTHING = histories([*PUTS, *WRITERS, *GETS, *GETS, *ENDS, *RETURNS, *PARTINGS, *THIRD_PARTY, *TIME])
# In these no reader leaves a group early, no message returns without its reader, and no third party removes one.
CALM = histories([*PUTS, *WRITERS, *GETS, *GETS, *ENDS, *steps_of("settle get commit")])


@contextmanager
def history(store: str, order: str, *, mixed: bool = True) -> Iterator[History]:
    clock = ManualClock()
    with Stores(store) as stores, connect(drawing_apart(stores.make(clock)), program="test") as qm:
        yield History(qm, clock, order, mixed=mixed)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("store", EVERY)
def test_every_call_has_the_outcome_that_the_oracle_predicts(order: str, store: str) -> None:
    @examples(store)
    @given(steps=EVERYTHING)
    def holds(steps: list[Step]) -> None:
        with history(store, order) as one:
            one.run(steps)
            one.resolve()
            one.drain()
            assert one.seen() == one.oracle.left()

    holds()


@pytest.mark.nightly
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("store", EVERY)
def test_several_readers_commit_what_a_reader_at_the_end_would_read(order: str, store: str) -> None:
    """The master property (B-53): at each level groups are whole, and nothing is read before an earlier message."""

    @examples(store)
    @given(steps=CALM)
    def holds(steps: list[Step]) -> None:
        with history(store, order, mixed=False) as one:
            one.run(steps)
            one.resolve()
            one.drain()
            assert one.seen() == []
            assert committed(one) == one.oracle.logical_sequences()

    holds()


def committed(one: History) -> dict[int, list[str]]:
    """The committed gets, by the level of the group's first message; a get that was backed out was repeated."""
    level_of = {piece.chain or piece.name: piece.level for piece in one.got if piece.is_first}
    last = {piece: n for n, piece in enumerate(one.got)}
    found: dict[int, list[str]] = defaultdict(list)
    for piece in sorted(last, key=lambda piece: last[piece]):
        found[level_of[piece.chain or piece.name]].append(piece.name)
    return dict(found)


def test_the_oracle_imports_nothing_of_the_program() -> None:
    tree = ast.parse(Path(logical_oracle.__file__).read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = [name for node in imports for name in ([node.module] if isinstance(node, ast.ImportFrom) else [])]
    modules += [alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names]
    assert set(modules) <= {"__future__", "collections.abc", "dataclasses", "typing"}
    assert not any(isinstance(node, ast.Name) and node.id == "__import__" for node in ast.walk(tree))
