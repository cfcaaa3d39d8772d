"""Two stores with the same random history must give the same answers, at every step.

Each run must reach each branch of `tests.machine.wanted`, by a history that is written out or by chance, and says how
often it did: `pytest -rP` shows the table. INORDER_LONG=1 runs fifty times as many histories. The quick gate has
some random histories; the full one many more and those that are written out, and shows that a fault would be found.
"""

from __future__ import annotations

import os
from typing import TypeVar
from unittest import mock

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.internal.conjecture import engine
from hypothesis.internal.conjecture.engine import ConjectureRunner
from hypothesis.stateful import run_state_machine_as_test
from tests.machine.between import Between
from tests.machine.between import directed as directed_between
from tests.machine.branches import Branches, report
from tests.machine.directed import PARTS
from tests.machine.everything import Everything, InBulk
from tests.machine.faults import FAULTS, FAULTS_IN_BULK, FAULTS_OF_KEYS, Fault, OtherNumbers
from tests.machine.history import History
from tests.machine.once import directed as directed_once
from tests.machine.pairs import Differs
from tests.machine.side import MakeStore
from tests.machine.wanted import WANTED

from inorder.testing.stores import STORES

LONG = bool(os.environ.get("INORDER_LONG"))
EXAMPLES, STEPS = (5_000, 60) if LONG else (100, 50)
EXAMPLES_IN_FILE = 5_000 if LONG else 40
EXAMPLES_IN_QUICK_GATE = 4
SHRINKING_SECONDS = 60
RIGHT: dict[str, MakeStore] = {"other numbers": OtherNumbers}
RIGHT |= {name: make for name, make in STORES.items() if name != "memory"}

M = TypeVar("M", bound=History)


def machine(right: MakeStore, reached: Branches, kind: type[M]) -> type[M]:
    skips = right is STORES.get("postgresql")
    given = {"make": (STORES["memory"], right), "branches": reached, "skips_numbers": skips}
    compared: type[M] = type("Compared", (kind,), given)
    return compared


def random_histories(
    right: MakeStore,
    reached: Branches,
    *phases: Phase,
    examples: int = EXAMPLES,
    kind: type[History] = Everything,
) -> None:
    """Raises: Differs, or what a store raises that it should not."""
    chosen = settings(
        max_examples=examples,
        stateful_step_count=STEPS,
        suppress_health_check=list(HealthCheck),
        phases=phases or tuple(Phase),
        report_multiple_bugs=False,
    )
    # Hypothesis would follow each new history by up to six that repeat parts of it: fewer new ones in the same time.
    with (
        mock.patch.object(ConjectureRunner, "generate_mutations_from", create=True),
        mock.patch.object(engine, "MAX_SHRINKING_SECONDS", SHRINKING_SECONDS),
    ):
        run_state_machine_as_test(machine(right, reached, kind), settings=chosen)


def directed_histories(right: MakeStore, reached: Branches) -> None:
    """What chance reaches late: see `tests.machine.directed`, `between` and `once`."""
    for part in PARTS:
        history = machine(right, reached, Everything)()
        history.define(a={}, b={})
        for step in part(history):
            step()
            history.clear()
        history.teardown()
    directed_between(machine(right, reached, Between)())
    directed_once(machine(right, reached, Between)())


@pytest.mark.parametrize("kind", [Everything, InBulk, Between])
def test_memory_and_a_file_agree_on_some_histories(kind: type[History]) -> None:
    random_histories(STORES["sqlite"], Branches(), examples=EXAMPLES_IN_QUICK_GATE, kind=kind)


@pytest.mark.nightly
@pytest.mark.parametrize("right", RIGHT)
def test_two_stores_agree_on_every_history(right: str) -> None:
    directed, random = Branches(), Branches()
    with directed.watched():
        directed_histories(RIGHT[right], directed)
    with random.watched():
        examples = EXAMPLES_IN_FILE if right in STORES else EXAMPLES
        random_histories(RIGHT[right], random, examples=examples)
        random_histories(RIGHT[right], random, examples=settings().max_examples // 2, kind=InBulk)
        random_histories(RIGHT[right], random, examples=settings().max_examples // 2, kind=Between)
    table = report(WANTED, directed=directed, random=random)
    print(f"memory and {right}: how often each branch was reached\n{table}")
    missing = set(directed.missing(WANTED)) & set(random.missing(WANTED))
    if right == "postgresql":  # all queues of these histories keep their order there (`skips_numbers`)
        missing.discard(("reason", "ORDER_UNSUPPORTED"))
    assert not missing, f"never reached: {sorted(missing)}"


@pytest.mark.nightly
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_a_planted_fault_is_found(fault: Fault) -> None:
    with pytest.raises((Differs, AssertionError)):
        random_histories(fault.store, Branches(), Phase.generate)


@pytest.mark.nightly
@pytest.mark.parametrize("fault", FAULTS_OF_KEYS.values(), ids=FAULTS_OF_KEYS.keys())
def test_a_fault_that_is_planted_in_keys_is_found(fault: Fault) -> None:
    with pytest.raises((Differs, AssertionError)):
        random_histories(fault.store, Branches(), Phase.generate, kind=Between)


@pytest.mark.nightly
@pytest.mark.parametrize("fault", FAULTS_IN_BULK.values(), ids=FAULTS_IN_BULK.keys())
def test_a_fault_that_is_planted_in_bulk_is_found(fault: Fault) -> None:
    with pytest.raises((Differs, AssertionError)):
        random_histories(fault.store, Branches(), Phase.generate, kind=InBulk)
