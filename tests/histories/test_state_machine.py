"""Two stores with the same random history must give the same answers, at every step.

The gate has seeds for SQLite, PostgreSQL and a store elsewhere; six short ones also run in `make test`. Many more
histories run each night, and faults planted in one of the stores, each of which must be found. INORDER_LONG=1 runs
at least fifty times as many histories.
"""

from __future__ import annotations

import os
from unittest import mock

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.internal.conjecture import engine
from hypothesis.internal.conjecture.engine import ConjectureRunner
from hypothesis.stateful import run_state_machine_as_test
from tests.helpers.support import drawing_apart
from tests.machine.between import Between, BetweenElsewhere
from tests.machine.everything import Everything, InBulk
from tests.machine.faults import FAULTS, Fault, OtherNumbers
from tests.machine.history import History
from tests.machine.pairs import Differs
from tests.machine.side import MakeStore
from tests.tiers import gate, nightly

from inorder.stores.seam.records import StageRequest
from inorder.support.clock import Clock
from inorder.testing.stores import STORES, RestartableStore

LONG = bool(os.environ.get("INORDER_LONG"))
EXAMPLES, STEPS = (5_000, 60) if LONG else (100, 50)
EXAMPLES_IN_FILE = 5_000 if LONG else 40
EXAMPLES_OF_A_SEED = 6
EXAMPLES_WITH_FAULT = 2_000  # at most: the first that shows the fault is the last
SHRINKING_SECONDS = 60
RIGHT: dict[str, MakeStore] = {"other numbers": OtherNumbers}
RIGHT |= {name: make for name, make in STORES.items() if name != "memory"}
KINDS: tuple[type[History], ...] = (Everything, InBulk, Between)
SEEDS = [
    *(pytest.param(number, "sqlite", EXAMPLES_OF_A_SEED // 2) for number in range(6)),
    *(pytest.param(number, "sqlite", EXAMPLES_OF_A_SEED, marks=gate) for number in range(6, 13)),
    *(pytest.param(number, "postgresql", EXAMPLES_OF_A_SEED, marks=gate) for number in range(13, 23)),
    *(pytest.param(number, "remote", EXAMPLES_OF_A_SEED, marks=gate) for number in range(23, 26)),
]


def machine(right: str | MakeStore, kind: type[History]) -> type[History]:
    """Histories of a kind that compare this store with the one in memory, as if each connection were a process."""
    make = RIGHT[right] if isinstance(right, str) else right
    specification: MakeStore = STORES["memory"]
    if right == "remote":
        specification = bounding_stagings
        kind = BetweenElsewhere if kind is Between else kind
    given = {
        "make": (specification, lambda clock: drawing_apart(make(clock), all_puts=False)),
        "skips_numbers": right == "postgresql",
    }
    return type("Compared", (kind,), given)


def bounding_stagings(clock: Clock) -> RestartableStore:
    """A store in memory whose users stage at most `max_depth` rows for a queue, as those of a server do."""
    store = STORES["memory"](clock)
    stage = store.stage

    def bounded(request: StageRequest) -> None:
        stage(request._replace(is_bounded=True))

    store.stage = bounded  # type: ignore[method-assign]
    return store


def random_histories(compared: type[History], *phases: Phase, examples: int = EXAMPLES) -> None:
    """Raises: Differs, or an unexpected error of a store."""
    chosen = settings(
        max_examples=examples,
        stateful_step_count=STEPS,
        suppress_health_check=list(HealthCheck),
        phases=phases or tuple(Phase),
        report_multiple_bugs=False,
    )
    # Otherwise Hypothesis would repeat parts of each new history up to six times, and try fewer new ones.
    with (
        mock.patch.object(ConjectureRunner, "generate_mutations_from", create=True),
        mock.patch.object(engine, "MAX_SHRINKING_SECONDS", SHRINKING_SECONDS),
    ):
        run_state_machine_as_test(compared, settings=chosen)


@pytest.mark.parametrize(("number", "right", "examples"), SEEDS)
def test_two_stores_agree_on_the_histories_of_a_seed(number: int, right: str, examples: int) -> None:
    kind = KINDS[number % len(KINDS)]
    random_histories(seed(number)(machine(right, kind)), examples=examples)


@nightly
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("right", RIGHT)
def test_two_stores_agree_on_every_history(right: str) -> None:
    random_histories(machine(right, Everything), examples=EXAMPLES_IN_FILE if right in STORES else EXAMPLES)
    for kind in (InBulk, Between):
        random_histories(machine(right, kind), examples=settings().max_examples // 2)


@nightly
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_a_planted_fault_is_found(fault: Fault) -> None:
    kind = {"bulk": InBulk, "keys": Between}.get(fault.shows_in, Everything)
    with pytest.raises((Differs, AssertionError)):
        random_histories(machine(fault.store, kind), Phase.generate, examples=EXAMPLES_WITH_FAULT)
