"""The checker of crashes finds nothing where all promises were kept, and names each planted fault."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.rehearsal import rehearse
from tools.proof import crash_points
from tools.proof.acts import Finding, Reading
from tools.proof.checker import check_round
from tools.proof.history import Call, History, calls_of, read_folder, read_lines
from tools.proof.order import Known

from inorder.stores.engine.points import POINTS

Plant = Callable[["Round"], str]
SEED = 20


class Round:
    """The histories of one round, in which faults are planted."""

    def __init__(self, folder: Path) -> None:
        self.calls = read_folder(folder)
        assert not any(call.what == "get" and call.outcome == "unknown" for call in self.calls), "choose another seed"
        self.reading = Reading(self.calls)
        self.seen = {call.intent["queue"]: call.told for call in self.calls if call.what == "seen"}

    def standing(self, queue: str = "BY_PUT") -> list[list[Any]]:
        """The observer's reports of persistent messages that nothing else had seen."""
        times = Counter(sighting.label for sighting in self.reading.sightings)
        return [told for told in self.seen[queue]["messages"] if told[3] and times[told[0]] == 1]

    def add(self, queue: str, told: list[Any]) -> None:
        self.seen[queue]["messages"].append(told)
        self.seen[queue]["depth"] += 1

    def remove(self, queue: str, told: list[Any]) -> None:
        self.seen[queue]["messages"].remove(told)
        self.seen[queue]["depth"] -= 1

    def findings(self) -> list[Finding]:
        return check_round(self.calls, Known())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rehearse(tmp_path_factory.mktemp("rehearsal"), SEED, rounds=1, workers=1, lines_max=600)[0]


@pytest.fixture
def planted(folder: Path) -> Round:
    return Round(folder)


@pytest.mark.parametrize("seed", range(2))
def test_a_run_that_kept_its_promises_has_no_findings(tmp_path: Path, seed: int) -> None:
    known = Known()
    for round_folder in rehearse(tmp_path, seed):
        assert check_round(read_folder(round_folder), known) == [], f"seed {seed}"


def alone(planted: Round, queue: str) -> list[Any]:
    """A message that the observer saw, put by an act that did nothing else."""
    acts = {told[0]: planted.reading.puts[told[0]].act for told in planted.standing(queue)}
    return next(told for told in planted.standing(queue) if acts[told[0]].puts == [told[0]] and not acts[told[0]].gets)


def lose_a_put(planted: Round) -> str:
    lost = alone(planted, "BY_PUT")
    planted.remove("BY_PUT", lost)
    return str(lost[0])


def resurrect_a_get(planted: Round) -> str:
    """A strict reader had also passed its place."""
    got = next(
        call.told["messages"][0]
        for call in planted.calls
        if call.what == "get" and call.told and call.intent["queue"] == "BY_COMMIT"
        if call.intent["strict"] and not (call.intent["unit"] or call.intent.get("confirm_id"))
    )
    planted.add("BY_COMMIT", got)
    return str(got[0])


def halve_a_unit(planted: Round) -> str:
    there = {told[0]: (queue, told) for queue in planted.seen for told in planted.standing(queue)}
    act = next(act for act in planted.reading.acts if act.title.startswith("unit") and len(there.keys() & act.puts) > 1)
    planted.remove(*there[next(label for label in act.puts if label in there)])
    return act.title


def double_a_message(planted: Round) -> str:
    planted.add("BY_PUT", planted.standing()[0])
    return str(planted.standing()[0][0])


def swap_two_messages(planted: Round) -> str:
    first, *_, last = [told for told in planted.standing() if told[2][0] == 0]
    first[2], last[2] = last[2], first[2]
    return str(first[0])


def repeat_a_number(planted: Round) -> str:
    """The later message gets the place of the earlier one, so the order is wrong as well."""
    first, *_, last = [told for told in planted.standing() if told[2][0] == 0]
    last[2] = first[2]
    return str(last[0])


def repeat_a_unique_id(planted: Round) -> str:
    first, second, *_ = planted.standing()
    for call in planted.calls:
        if call.what == "put" and call.intent["labels"] == [second[0]]:
            call.told["uids"] = [first[1]]
    second[1] = first[1]
    return str(second[0])


def invent_a_message(planted: Round) -> str:
    planted.add("BY_PUT", ["nobody/1/0/1/1", ["INORDER", 10**9], [0, 10**9, 0], True])
    return "nobody/1/0/1/1"


def forget_a_prepared_unit(planted: Round) -> str:
    held = [act for act in planted.reading.acts if act.hold and act.hold.what == "prepare" and len(act.closings) == 1]
    forgotten = held[0].closings[0][0]
    planted.calls.remove(forgotten)
    return held[0].title


def damage_a_body(planted: Round) -> str:
    """So the message of a promised put is missing."""
    damaged = alone(planted, "BY_PUT")
    damaged[0] = "?b'half a bo'"
    return "half a bo"


FAULTS: dict[Plant, tuple[str, set[str]]] = {
    lose_a_put: ("lost", set()),
    resurrect_a_get: ("resurrected", {"strict"}),
    halve_a_unit: ("half", set()),
    double_a_message: ("doubled", set()),
    swap_two_messages: ("order", set()),
    repeat_a_number: ("number-repeated", {"order"}),
    repeat_a_unique_id: ("uid-repeated", set()),
    invent_a_message: ("invented", set()),
    forget_a_prepared_unit: ("vanished", set()),
    damage_a_body: ("damaged", {"lost"}),
}


@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_reported(planted: Round, plant: Plant) -> None:
    """The finding has the kind and names the message or unit; all other findings follow from the fault."""
    assert planted.findings() == []
    named = plant(planted)
    kind, following = FAULTS[plant]
    findings = planted.findings()
    assert {finding.kind for finding in findings} == {kind, *following}
    assert [finding for finding in findings if finding.kind == kind and named in finding.text]


PUT = {"what": "put", "queue": "BY_PUT", "labels": ["a/1/0/1/1"], "unit": 0, "priority": 0, "persistent": True}
TOLD = ["a/1/0/1/1", ["X", 1], [0, 1, 0], True]


def lines_of(process: str, *lines: dict[str, Any]) -> list[Call]:
    return calls_of(process, [{"at": 0, **line} for line in lines])


def test_a_truncated_line_counts_as_not_written(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    history = History(path)
    history.write({"call": 1, "is": "intent", "what": "commit", "unit": 1})
    history.close()
    with path.open("ab") as file:
        file.write(b'{"at": 5, "call": 1, "is": "promi')
    assert [call.outcome for call in calls_of("a", read_lines(path))] == ["unknown"]


def test_an_unanswered_get_explains_one_missing_message_and_no_more() -> None:
    promised = {"is": "promised", "uids": [["X", 1]]}
    get = {"call": 9, "is": "intent", "what": "get", "queue": "BY_PUT", "unit": 0}
    one = lines_of("a", {"call": 1, "is": "intent", **PUT}, {**promised, "call": 1}, get)
    assert check_round(one, Known()) == []
    second = {"call": 2, "is": "intent", **PUT, "labels": ["a/2/0/1/1"]}
    two = lines_of("a", second, {**promised, "call": 2, "uids": [["X", 2]]})
    assert [finding.kind for finding in check_round([*one, *two], Known())] == ["lost", "lost"]


def test_a_unit_that_died_in_its_prepare_may_have_been_backed_out() -> None:
    calls = lines_of(
        "a",
        {"call": 1, "is": "intent", **PUT},
        {"call": 1, "is": "promised", "uids": [["X", 1]]},
        {"call": 2, "is": "intent", "what": "get", "queue": "BY_PUT", "unit": 1},
        {"call": 2, "is": "promised", "messages": [TOLD]},
        {"call": 3, "is": "intent", "what": "prepare", "unit": 1, "name": "a-1"},
    )
    seen = lines_of(
        "b",
        {"call": 1, "is": "intent", "what": "seen", "queue": "BY_PUT"},
        {"call": 1, "is": "promised", "messages": [TOLD], "depth": 1},
    )
    assert check_round(calls + seen, Known()) == []


def test_a_message_read_before_it_was_on_disk_may_be_lost_in_a_crash_of_the_server() -> None:
    put = lines_of("a", {"call": 1, "is": "intent", **PUT})
    get = lines_of(
        "b",
        {"call": 1, "is": "intent", "what": "get", "queue": "BY_PUT", "unit": 1},
        {"call": 1, "is": "promised", "messages": [TOLD], "durable": False},
    )
    crash = lines_of("server", {"call": 1, "is": "intent", "what": "crash"}, {"call": 1, "is": "promised"})
    assert [finding.kind for finding in check_round(put + get, Known())] == ["lost"]
    assert check_round(put + get + crash, Known()) == []
    get[0].told["durable"] = True
    assert [finding.kind for finding in check_round(put + get + crash, Known())] == ["lost"]


@pytest.mark.parametrize(("lost", "kinds"), [({"lost": True}, []), ({}, ["two-holders"])])
def test_a_process_with_a_lost_connection_held_its_messages_until_an_unknown_time(
    lost: dict[str, Any], kinds: list[str]
) -> None:
    put = lines_of("a", {"call": 1, "is": "intent", **PUT}, {"call": 1, "is": "promised", "uids": [TOLD[1]], "at": 1})
    get = {"call": 1, "is": "intent", "what": "get", "queue": "BY_PUT", "unit": 1}
    held = lines_of(
        "b",
        {**get, "at": 2},
        {"call": 1, "is": "promised", "messages": [TOLD], "at": 3},
        {**get, "call": 2, "at": 6},
        {"call": 2, "is": "refused", **lost, "at": 7},
    )
    other = lines_of("c", {**get, "at": 4}, {"call": 1, "is": "promised", "messages": [TOLD], "at": 5})
    seen = lines_of(
        "d",
        {"call": 1, "is": "intent", "what": "seen", "queue": "BY_PUT", "at": 8},
        {"call": 1, "is": "promised", "messages": [TOLD], "depth": 1, "at": 9},
    )
    assert [finding.kind for finding in check_round(put + held + other + seen, Known())] == kinds


def run_to(came: str, asked: str | None) -> int:
    code = (
        "from inorder.stores.engine import points\n"
        f"for point in {came!r}.split(): points.reached and points.reached(point)"
    )
    environment = crash_points.environment(asked) if asked else None
    return subprocess.run([sys.executable, "-c", code], env=environment, check=False, capture_output=True).returncode


def test_a_process_is_killed_when_it_reaches_the_point_for_the_nth_time() -> None:
    assert run_to(" ".join(POINTS), None) == 0
    assert run_to("begun written begun", "begun:2") == -signal.SIGKILL
    assert run_to("begun written", "begun:2") == 0
    assert run_to("begun", "nowhere:1") == 1
    assert run_to("begun", "begun:soon") == 1
