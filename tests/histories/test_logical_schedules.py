"""What strict logical readers are given, in random histories, held against an oracle of its own (lifecycle B, C-12).

Writers put groups, segmented messages and single messages, of mixed priorities and in units, alone or together in a
lease; each draws its numbers as a process of its own does. Three readers get in
logical order, in units, under confirm ids and outside of both; they prepare, back out, undo, close and die. A third
party removes pieces, and some expire. The outcome of every call is what `tests/helpers/logical_oracle.py` says, which
is written from the rules and knows nothing of the code.
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
NOTHING: Step = ("nothing", 0, 0)  # the simplest step: what a failing history can do without becomes that


def steps_of(verbs: str) -> list[Step]:
    """Every verb with everyone who may do it and each of the things that it may be done to."""
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
    """All of one length, or most were too short for a reader to come into a group and out of it again."""
    return st.lists(st.sampled_from([NOTHING, *steps]), min_size=STEPS, max_size=STEPS)


EVERYTHING = histories([*PUTS, *WRITERS, *GETS, *GETS, *ENDS, *RETURNS, *PARTINGS, *THIRD_PARTY, *TIME])
# No reader parts from a group that it is inside, no message goes back without its reader, none is taken from under it.
CALM = histories([*PUTS, *WRITERS, *GETS, *GETS, *ENDS, *steps_of("settle get commit")])


@contextmanager
def history(store: str, order: str, *, mixed: bool = True) -> Iterator[History]:
    clock = ManualClock()
    with Stores(store) as stores, connect(drawing_apart(stores.make(clock)), program="test") as qm:
        yield History(qm, clock, order, mixed=mixed)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("store", EVERY)
def test_every_call_ends_as_the_rules_say(order: str, store: str) -> None:
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
def test_what_several_readers_commit_is_what_a_laid_back_one_reads(order: str, store: str) -> None:
    """The master property (B-53): at each level groups whole, and nothing before what is in front of it."""

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
    """The gets that counted, by the level of the group's first message; a get that was backed out was done again."""
    level_of = {piece.chain or piece.name: piece.level for piece in one.got if piece.is_first}
    last = {piece: n for n, piece in enumerate(one.got)}
    found: dict[int, list[str]] = defaultdict(list)
    for piece in sorted(last, key=lambda piece: last[piece]):
        found[level_of[piece.chain or piece.name]].append(piece.name)
    return dict(found)


def test_the_oracle_knows_nothing_of_the_code() -> None:
    tree = ast.parse(Path(logical_oracle.__file__).read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = [name for node in imports for name in ([node.module] if isinstance(node, ast.ImportFrom) else [])]
    modules += [alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names]
    assert set(modules) <= {"__future__", "collections.abc", "dataclasses", "typing"}
    assert not any(isinstance(node, ast.Name) and node.id == "__import__" for node in ast.walk(tree))
