"""The runner of scenario tables: makes the calls of the steps, and compares their outcomes with the table.

Each step of an actor runs on its own thread, which ends with the step. So any step of the actor, even one that waits,
may continue the unit of work that an earlier step has opened. The runner watches the queue manager's waiting room until
every call under way has either ended or is asleep with nothing left to check. So nothing here sleeps, and a table
runs the same way every time.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from inorder.client import owners
from inorder.client.owners import OwnerSession
from inorder.errors import InorderError

from .actors import NameTable, StepOutcome
from .bulk import BulkActor
from .channelling import CHANNEL_VERBS, Runs
from .language import HERE, Expected, Scenario, ScenarioStep, TableError
from .operator import operate
from .sites import Site, Sites, manager_name

Connect = Callable[[Site, str], BulkActor]


@dataclass(frozen=True, slots=True)
class ScenarioFailure:
    """The place where a scenario failed, the expected outcome, and the actual one."""

    file: str
    line: int
    title: str
    step: str
    expected: str
    got: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.title}: `{self.step}` expected {self.expected}, got {self.got}"


@dataclass(slots=True, eq=False)
class PendingCall:
    """A call, which may wait, on its own thread.

    Attributes:
        site: the queue manager at which it waits, which has the queue.
        actor: its actor, a connection to the queue manager of the step.
    """

    site: Site
    actor: BulkActor
    step: ScenarioStep
    outcome: StepOutcome | None = None
    error: BaseException | None = None  # an error that no table can expect: an unknown word, or a fault of our own
    thread: threading.Thread | None = None
    read: bool = False

    def is_asleep(self) -> bool:
        """Whether it waits, with nothing left to check."""
        session = self.actor.manager._session
        owners = {one.of.manager: one for one in session.owners.values() if isinstance(one, OwnerSession)}
        session = owners.get(manager_name(self.site.name), session) if self.site.name != self.step.manager else session
        return self.site.store.waiting.is_asleep(session.owner)


@dataclass(slots=True)
class Stage:
    """The state of one running scenario; actors and calls are by name and queue manager."""

    sites: Sites
    connect: Connect
    actors: dict[tuple[str, str], BulkActor] = field(default_factory=dict)
    calls: dict[tuple[str, str], PendingCall] = field(default_factory=dict)
    runs: Runs = field(init=False)

    def __post_init__(self) -> None:
        self.runs = Runs(self.sites)


def connect(site: Site, name: str) -> BulkActor:
    """Returns an actor with this name at this queue manager; it makes the calls of the Python interface."""
    return BulkActor(site.operator.connect(program=name), site.table)


def run_scenario(scenario: Scenario, store: str = "memory", connect: Connect = connect) -> ScenarioFailure | None:
    """Runs one scenario against a fresh store, or several; returns None if all outcomes are as expected.

    Args:
        connect: makes an actor that has not taken a step yet, or has crashed.
    """
    stage = Stage(Sites(store), connect)
    reach, owners.reach = owners.reach, stage.sites.reach_owner
    try:
        for step in scenario.steps:
            got = _step(stage, scenario, step)
            if got is not None:
                return ScenarioFailure(scenario.file, step.line, scenario.title, step.text, step.expected.text, got)
        unread = [call for call in stage.calls.values() if not call.read]
        if unread:
            step = unread[0].step
            return ScenarioFailure(
                scenario.file, step.line, scenario.title, step.text, "a later `resumes`", "a wait that no step reads"
            )
        return None
    finally:
        owners.reach = reach
        _strike(stage)


def _step(stage: Stage, scenario: Scenario, step: ScenarioStep) -> str | None:
    """Runs one step; returns None if the outcome is as expected, else the outcome."""
    site = stage.sites[step.manager]
    try:
        outcome = _outcome(stage, site, step)
    except ValueError as wrong:
        if isinstance(wrong, InorderError):
            raise
        raise TableError(scenario.file, step.line, str(wrong)) from None
    _settle(stage)
    return difference(site.table, step.expected, outcome)


def _outcome(stage: Stage, site: Site, step: ScenarioStep) -> StepOutcome:
    name, _, number = step.actor.partition(".")
    if name == HERE:
        return _operator(stage, site, step)
    who = name, site.name
    if who in stage.calls and step.verb not in ("resumes", "crash"):
        raise ValueError(f"{name} waits: it may only resume or crash")
    if step.verb == "resumes":
        return _resume(stage, who)
    if step.verb == "crash":
        return _crash(stage, who)
    actor = stage.actors.get(who)
    if actor is None:
        actor = stage.actors[who] = stage.connect(site, name)
    if step.verb == "disconnect":
        del stage.actors[who]
    at = site.table.elsewhere.get(step.keys.get("on", site.table.first_queue), site.name)
    return _call(stage, who, PendingCall(stage.sites[at], actor, step), number)


def _operator(stage: Stage, site: Site, step: ScenarioStep) -> StepOutcome:
    if step.verb == "clock":
        if not step.names[0].startswith("+"):
            raise ValueError("the clock only moves forward: qm clock +SECONDS")
        stage.sites.clock.advance(float(step.names[0]))
        return StepOutcome("ok")
    if step.verb == "restart":
        site.store.restart()
        for who in [who for who, call in stage.calls.items() if site in (call.site, stage.sites[who[1]])]:
            _join(stage.calls.pop(who))
        for who in [who for who in stage.actors if who[1] == site.name]:
            stage.actors.pop(who).manager.internals.abandon()
        site.connect()
        return StepOutcome("ok")
    if step.verb in CHANNEL_VERBS:
        return stage.runs.act(site, step)
    return operate(site.operator, site.table, step)


# --- the calls of actors


def _call(stage: Stage, who: tuple[str, str], call: PendingCall, handle: str) -> StepOutcome:
    room = call.site.store.waiting

    def run() -> None:
        try:
            call.outcome = call.actor.act(handle, call.step)
        except BaseException as error:  # noqa: BLE001 - raised again where the call is read
            call.outcome, call.error = StepOutcome("failed"), error
        room.poke()

    call.thread = threading.Thread(target=run, name=f"{who[0]}: {call.step.text}", daemon=True)
    stage.calls[who] = call
    call.thread.start()
    return _read(stage, who, call)


def _resume(stage: Stage, who: tuple[str, str]) -> StepOutcome:
    if who not in stage.calls:
        raise ValueError(f"{who[0]} does not wait")
    call = stage.calls[who]
    call.read = True
    return _read(stage, who, call)


def _read(stage: Stage, who: tuple[str, str], call: PendingCall) -> StepOutcome:
    _settle(stage)
    if call.outcome is None:
        return StepOutcome("waits")
    _join(call)
    del stage.calls[who]
    if call.error is not None:
        raise call.error
    if call.outcome.message is not None:
        return replace(call.outcome, value=call.actor.name(call.step, call.outcome.message))
    return call.outcome


def _settle(stage: Stage) -> None:
    """Waits until every running call has ended or sleeps."""
    for site in stage.sites.values():
        room = site.store.waiting
        calls = [call for call in stage.calls.values() if call.site is site]
        room.watch_until(
            lambda: all(call.outcome is not None or call.is_asleep() for call in calls)  # noqa: B023
        )


def _crash(stage: Stage, who: tuple[str, str]) -> StepOutcome:
    actor = stage.actors.pop(who, None)
    if actor is not None:
        actor.manager.internals.abandon()
    call = stage.calls.pop(who, None)
    if call is not None:
        _join(call)
    return StepOutcome("ok")


def _join(call: PendingCall) -> None:
    assert call.thread is not None
    call.thread.join()


def _strike(stage: Stage) -> None:
    stage.runs.kill_all()
    for site in stage.sites.values():
        site.store.stop()
    for call in stage.calls.values():
        _join(call)
    for actor in stage.actors.values():
        with contextlib.suppress(InorderError):
            actor.manager.internals.abandon()
    for site in stage.sites.values():
        site.store.close_store()


# --- expected outcomes


def difference(table: NameTable, expected: Expected, got: StepOutcome) -> str | None:
    """Returns None if `got` is as expected, else `got` in the table's own words."""
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
