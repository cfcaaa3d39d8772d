"""The runner of scenario tables: steps to calls, calls to outcomes, outcomes against what the table says.

Each step of an actor runs on a thread of its own, which ends with it: so any step of the actor may go on with the unit
of work that an earlier one has opened, also one that waits. The runner watches the queue manager's waiting room until
every call under way has either ended or is asleep with nothing left to look at. So nothing here sleeps, and a table
runs the same way every time.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ..errors import InorderError
from ..manager import QueueManager, connect
from .actors import Outcome, Table
from .bulk import BulkActor
from .clock import ManualClock
from .language import Expected, Scenario, Step, TableError
from .operator import operate
from .stores import RestartableStore, make_store


@dataclass(frozen=True, slots=True)
class Failure:
    """Where a scenario failed, what was expected, and what came."""

    file: str
    line: int
    title: str
    step: str
    expected: str
    got: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.title}: `{self.step}` expected {self.expected}, got {self.got}"


@dataclass(slots=True, eq=False)
class Call:
    """A call that may wait, on its own thread."""

    owner: int
    step: Step
    outcome: Outcome | None = None
    error: BaseException | None = None  # which no table can expect: a word it does not know, or an error of ours
    thread: threading.Thread | None = None
    read: bool = False


@dataclass(slots=True)
class Stage:
    """Everything of one running scenario."""

    store: RestartableStore
    clock: ManualClock
    operator: QueueManager
    table: Table = field(default_factory=Table)
    actors: dict[str, BulkActor] = field(default_factory=dict)
    calls: dict[str, Call] = field(default_factory=dict)


def run_scenario(scenario: Scenario, store: str = "memory") -> Failure | None:
    """Runs one scenario against a fresh store; None if all is as the table says."""
    clock = ManualClock()
    fresh = make_store(store, clock)
    stage = Stage(fresh, clock, connect(fresh, program="operator"))
    try:
        for step in scenario.steps:
            got = _step(stage, scenario, step)
            if got is not None:
                return Failure(scenario.file, step.line, scenario.title, step.text, step.expected.text, got)
        unread = [call for call in stage.calls.values() if not call.read]
        if unread:
            step = unread[0].step
            return Failure(
                scenario.file, step.line, scenario.title, step.text, "a later `resumes`", "a wait that nobody reads"
            )
        return None
    finally:
        _strike(stage)


def _step(stage: Stage, scenario: Scenario, step: Step) -> str | None:
    """Runs one step; None if it brought what was expected, else what it brought."""
    try:
        outcome = _outcome(stage, step)
    except ValueError as wrong:
        if isinstance(wrong, InorderError):
            raise
        raise TableError(scenario.file, step.line, str(wrong)) from None
    _settle(stage)
    return difference(stage.table, step.expected, outcome)


def _outcome(stage: Stage, step: Step) -> Outcome:
    name, _, number = step.actor.partition(".")
    if name == "qm":
        return _operator(stage, step)
    if name in stage.calls and step.verb not in ("resumes", "crash"):
        raise ValueError(f"{name} waits: it may only resume or crash")
    if step.verb == "resumes":
        return _resume(stage, name)
    if step.verb == "crash":
        return _crash(stage, name)
    actor = stage.actors.get(name)
    if actor is None:
        actor = stage.actors[name] = BulkActor(stage.operator.connect(program=name), stage.table)
    if step.verb == "disconnect":
        del stage.actors[name]
    return _call(stage, name, Call(actor.manager.owner, step), lambda: actor.act(number, step))


def _operator(stage: Stage, step: Step) -> Outcome:
    if step.verb == "clock":
        if not step.names[0].startswith("+"):
            raise ValueError("the clock only moves forward: qm clock +SECONDS")
        stage.clock.advance(float(step.names[0]))
        return Outcome("ok")
    if step.verb == "restart":
        stage.store.restart()
        for call in stage.calls.values():
            _join(call)
        stage.calls.clear()
        for actor in stage.actors.values():
            actor.manager.abandon()
        stage.actors.clear()
        stage.operator.abandon()
        stage.operator = connect(stage.store, program="operator")
        return Outcome("ok")
    return operate(stage.operator, stage.table, step)


# --- the calls of actors


def _call(stage: Stage, name: str, call: Call, act: Callable[[], Outcome]) -> Outcome:
    room = stage.store.waiting

    def run() -> None:
        try:
            call.outcome = act()
        except BaseException as error:  # noqa: BLE001 - raised again by whoever reads the call
            call.outcome, call.error = Outcome("failed"), error
        room.poke()

    call.thread = threading.Thread(target=run, name=f"{name}: {call.step.text}", daemon=True)
    stage.calls[name] = call
    call.thread.start()
    return _read(stage, name, call)


def _resume(stage: Stage, name: str) -> Outcome:
    if name not in stage.calls:
        raise ValueError(f"{name} does not wait")
    call = stage.calls[name]
    call.read = True
    return _read(stage, name, call)


def _read(stage: Stage, name: str, call: Call) -> Outcome:
    _settle(stage)
    if call.outcome is None:
        return Outcome("waits")
    _join(call)
    del stage.calls[name]
    if call.error is not None:
        raise call.error
    if call.outcome.message is not None:
        return replace(call.outcome, value=stage.table.name_of(call.outcome.message))
    return call.outcome


def _settle(stage: Stage) -> None:
    """Blocks until every call under way has ended or is asleep."""
    room = stage.store.waiting
    room.watch_until(
        lambda: all(call.outcome is not None or room.is_asleep(call.owner) for call in stage.calls.values())
    )


def _crash(stage: Stage, name: str) -> Outcome:
    actor = stage.actors.pop(name, None)
    if actor is not None:
        actor.manager.abandon()
    call = stage.calls.pop(name, None)
    if call is not None:
        _join(call)
    return Outcome("ok")


def _join(call: Call) -> None:
    assert call.thread is not None
    call.thread.join()


def _strike(stage: Stage) -> None:
    stage.store.stop()
    for call in stage.calls.values():
        _join(call)
    for actor in stage.actors.values():
        with contextlib.suppress(InorderError):
            actor.manager.abandon()
    stage.store.close_store()


# --- what was expected


def difference(table: Table, expected: Expected, got: Outcome) -> str | None:
    """None if `got` is what the table says, else `got` in the table's own words."""
    if expected.kind == "error":
        same = got.kind == "error" and expected.value in ("", got.value, *got.items)
    elif expected.kind == "list":
        same = (
            got.kind == "list"
            and got.items == expected.items
            and (expected.value == got.value or expected.value.removeprefix("error=") in got.ending)
        )
    elif expected.kind == "message":
        same = got.kind == "message" and got.value == expected.value
    elif expected.kind == "token":
        return None if got.kind == "token" and table.agrees("token", expected.value, got.facts["token"]) else str(got)
    elif expected.kind == "number":
        same = got.kind == "number" and got.value == expected.value
    else:
        same = got.kind == expected.kind
    if same:
        same = all(table.agrees(key, said, got.facts.get(key)) for key, said in expected.facts.items())
    return None if same else str(got)
