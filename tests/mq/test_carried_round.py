"""Kills between two queue managers: no promise is broken, and the judge names each breach that a test plants."""

from __future__ import annotations

import copy
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tools.proof import carried_round
from tools.proof.carried import THERE
from tools.proof.carried_round import ENDS, check, lives_of
from tools.proof.history import Call
from tools.proof.lives import Parent

from inorder import Feedback
from inorder.mq.channels.points import POINTS

pytestmark = pytest.mark.nightly

SEED = int(os.environ.get("INORDER_CRASH_SEED", random.SystemRandom().getrandbits(32)))
MESSAGES_MIN = 30  # promised puts that a round should have


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Call]]:
    parents = [Parent() for _ in range(4)]
    chance = random.Random(SEED)
    try:
        for number in range(20):
            folder = tmp_path_factory.mktemp("between") / f"{number}"
            folder.mkdir()
            kills, calls, findings = carried_round.run_round(folder, chance, parents, lives=2)
            assert not findings, f"INORDER_CRASH_SEED={SEED} tries the same plan\n{findings}"
            assert kills.total() == 8
            if sum(call.what == "put" and call.outcome == "promised" for call in calls) >= MESSAGES_MIN:
                break
        yield calls  # on a slow machine the last round may have fewer; tests skip what it lacks
    finally:
        for parent in parents:
            parent.close()


class Planted:
    """The histories of a round; a test plants a fault in them."""

    def __init__(self, calls: list[Call]) -> None:
        self.calls = copy.deepcopy(calls)
        drained = {call.intent["queue"]: call for call in self.calls if call.what == "drained"}
        self.there: list[list[Any]] = drained["Q"].told["messages"]
        self.reports: list[list[Any]] = drained["R"].told["messages"]
        self.left = {call.intent["store"]: call.told for call in self.calls if call.what == "left"}
        self.puts = {call.intent["label"]: call for call in self.calls if call.what == "put"}

    def message(self, **intent: Any) -> list[Any]:
        """An entry of the final reading whose message was put with these fields, outside of a unit by default."""
        wanted = {"unit": 0, **intent}
        for told in self.there:
            put = self.puts[told[0]]
            if put.outcome == "promised" and all(put.intent[name] == value for name, value in wanted.items()):
                return told
        pytest.skip(f"this round has no message put with {intent}: INORDER_CRASH_SEED={SEED}")

    def report_of(self, label: str, feedback: Feedback) -> list[Any]:
        return next(one for one in self.reports if one[0] == label and one[3] == feedback)

    def findings(self) -> str:
        return "\n".join(text for _, text in check(self.calls))


def lost(round_: Planted) -> str:
    told = round_.message(reports=False)
    round_.there.remove(told)
    return "is lost"


def doubled(round_: Planted) -> str:
    round_.there.append(round_.message(reports=False))
    return "more than once"


def invented(round_: Planted) -> str:
    round_.there.append(["nobody/1/0/1/1", [0, 1, 0], 0, 0])
    return "which was never put"


def backed_out(round_: Planted) -> str:
    label = round_.message(reports=False)[0]
    put = round_.puts[label]
    put.intent["unit"] = 10**9  # a unit that never ended
    return "was backed out, but arrived"


def overtaken(round_: Planted) -> str:
    """Swaps two messages of the same priority."""
    one = round_.message(reports=False, priority=0)
    before = round_.puts[one[0]]
    for other in reversed(round_.there):
        put = round_.puts[other[0]]
        if put.intent["priority"] == 0 and put.outcome == "promised" and put.begun_at > before.ended_at:
            one[1], other[1] = other[1], one[1]
            return "stands before"
    pytest.skip(f"this round has no two messages one after the other: INORDER_CRASH_SEED={SEED}")


def no_coa(round_: Planted) -> str:
    label = round_.message(reports=True)[0]
    round_.reports.remove(round_.report_of(label, Feedback.COA))
    return "its reports are"


def no_cod(round_: Planted) -> str:
    label = round_.message(reports=True)[0]
    round_.reports.remove(round_.report_of(label, Feedback.COD))
    return "its reports are"


def coa_twice(round_: Planted) -> str:
    label = round_.message(reports=True)[0]
    round_.reports.append(round_.report_of(label, Feedback.COA))
    return "or twice"


def read_and_expired(round_: Planted) -> str:
    told = round_.message(reports=True)
    round_.puts[told[0]].intent["expires"] = True
    round_.reports.append([told[0], told[1], told[2], int(Feedback.EXPIRATION)])
    return "more than once"


def not_triggered(round_: Planted) -> str:
    round_.left[THERE]["depths"]["INIT"] -= 1
    return "trigger messages"


def in_doubt(round_: Planted) -> str:
    round_.left[THERE]["in_doubt"] = 1
    return "has left"


def a_batch_too_many(round_: Planted) -> str:
    round_.left[THERE]["came"] += 1
    return "batches sent"


def torn(round_: Planted) -> str:
    """Removes a message of a unit whose commit had an unknown outcome."""
    units = Counter(
        (call.process, call.intent["unit"])
        for label, call in round_.puts.items()
        if call.intent["unit"] and not call.intent["reports"] and any(told[0] == label for told in round_.there)
    )
    unit, count = max(units.items(), key=lambda item: item[1], default=(None, 0))
    if unit is None or count < 2:
        pytest.skip(f"this round has no unit of two messages: INORDER_CRASH_SEED={SEED}")
    for call in round_.calls:
        if call.what == "commit" and (call.process, call.intent["unit"]) == unit:
            call.outcome = "unknown"
    label = next(one for one, call in round_.puts.items() if (call.process, call.intent["unit"]) == unit
                 and not call.intent["reports"])  # fmt: skip
    round_.there.remove(next(told for told in round_.there if told[0] == label))
    return "is torn apart"


FAULTS: list[Callable[[Planted], str]] = [
    lost, doubled, invented, backed_out, overtaken, no_coa, no_cod, coa_twice,
    read_and_expired, not_triggered, in_doubt, a_batch_too_many, torn,
]  # fmt: skip


def test_a_round_breaks_no_promise(calls: list[Call]) -> None:
    assert list(check(calls)) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_breach_is_reported(calls: list[Call], fault: Callable[[Planted], str]) -> None:
    planted = Planted(calls)
    said = fault(planted)
    assert said in planted.findings(), f"INORDER_CRASH_SEED={SEED}"


def test_the_plan_follows_from_the_seed_and_has_every_point_of_a_channel() -> None:
    plans = [list(lives_of(random.Random(1), "0001", 8, 40)) for _ in range(2)]
    assert plans[0] == plans[1]
    ends = {life.end for lives in plans[0] for life in lives}
    assert ends == {end for of_role in ENDS.values() for end in of_role}
    assert ends > set(POINTS) | {"delivered"}
