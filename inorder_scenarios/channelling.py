"""The steps of a scenario's operators for channels, and the runs that they begin.

A run continues on its own thread until it ends, is held at a point that the table names, or dies there. At its death an
exception takes it out of all calls, and its connections are lost. This is the state that a killed process leaves,
because all points are between two transactions.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from inorder.errors import InorderError, Reason, StoreError
from inorder.mq import channels
from inorder.mq.channels import points
from inorder.mq.channels.sides import Receiver

from .actors import StepOutcome, number, translate_error
from .language import OPERATOR, ScenarioStep
from .sites import URL, Site, Sites, manager_name

CHANNEL_VERBS = frozenset(
    "define-connection define-channel alter-channel run-channel pull trigger resume-channel kill-channel stop-channel "
    "start-channel reset-channel resolve-channel channel-status received".split()
)
EXITS = ("tests.helpers.channelled",)  # modules whose functions a table may name
WAITS = "waits"  # an extra point: the run waits for a second or less before it tries again
NUMBERS: Mapping[str, str] = {
    "batch-size": "batch_size",
    "bytes": "batch_kilobytes",
    "short-retries": "short_retry_count",
    "long-retries": "long_retry_count",
    "short-interval": "short_retry_interval",
    "long-interval": "long_retry_interval",
    "retries": "message_retry_count",
    "interval": "message_retry_interval",
}
TEXTS: Mapping[str, str] = {
    "queue": "transmission_queue",
    "read-order": "read_order",
    "exit": "message_exit",
    "speed": "nonpersistent_speed",
}
PLACES = (*points.POINTS, *points.FAST_POINTS, WAITS)
NO_RETRIES = {"short_retry_count": 0, "long_retry_count": 0}


class Killed(BaseException):
    """Ends a run as if its process had died."""


class ChannelRun:
    """One run of a channel, on its own thread.

    Args:
        stands_at: the point at which it stops, and on which visit.
        dies: whether it dies there instead.
        pulls: whether it is a home-server queue that collects.
    """

    def __init__(
        self, sites: Sites, site: Site, channel: str, stands_at: tuple[str, int], *, dies: bool, pulls: bool = False
    ) -> None:
        self._call = channels.pull if pulls else channels.run_channel
        self._sites, self._site, self._channel = sites, site, channel
        (self._point, self._left), self._dies = stands_at, dies
        self._changed = threading.Condition()
        self._held = False
        self.outcome: StepOutcome | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"run of {channel}", daemon=True)

    def begin(self) -> StepOutcome:
        """Starts the run; returns how it ended, or that it is held."""
        self._thread.start()
        return self._stands()

    def resume(self) -> StepOutcome:
        """Lets a held run continue."""
        with self._changed:
            self._held = False
            self._changed.notify_all()
        return self._stands()

    def kill(self) -> StepOutcome:
        """Makes a held run die."""
        self._dies = True
        return self.resume()

    def _stands(self) -> StepOutcome:
        with self._changed:
            self._changed.wait_for(lambda: self._held or self.outcome is not None)
            if self.outcome is None:
                return StepOutcome("held")
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self.outcome

    # --- on its thread

    def _run(self) -> None:
        outcome = StepOutcome("failed")
        try:
            outcome = self._carry()
        except Killed:
            outcome = StepOutcome("killed")
        except InorderError as error:
            outcome = translate_error(error)
        except BaseException as error:  # noqa: BLE001 - raised again where the run is read
            self._error = error
        with self._changed:
            self.outcome = outcome
            self._changed.notify_all()

    def _carry(self) -> StepOutcome:
        with _watched(self), self._site.reach("carrier") as carrier:
            now = self._call(
                carrier,
                self._channel,
                until_empty=True,
                wait=self._wait,
                exits=EXITS,
                connects=lambda to: reach(self._sites, to),
            )
        return shown(now)

    def _wait(self, seconds: float) -> bool:
        if seconds:
            self.comes_to(WAITS)
            self._sites.clock.advance(seconds)
        return False

    def comes_to(self, point: str) -> None:
        self._left -= point == self._point
        if self._left or point != self._point:
            return
        with self._changed:
            self._held = not self._dies
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._held)
        if self._dies:
            raise Killed


_watching: dict[int, ChannelRun] = {}
_lock = threading.Lock()


@contextmanager
def _watched(run: ChannelRun) -> Iterator[None]:
    """Reports the points that this thread reaches to the run."""
    with _lock:
        _watching[threading.get_ident()] = run
        points.reached = _reached
    try:
        yield
    finally:
        with _lock:
            del _watching[threading.get_ident()]
            points.reached = _reached if _watching else None


def _reached(point: str) -> None:
    run = _watching.get(threading.get_ident())
    if run is not None:
        run.comes_to(point)


def reach(sites: Sites, connection: str) -> Receiver:
    """Returns the receiver at a queue manager, by its name in the table. Raises: StoreError, it has none."""
    name = connection.removeprefix(URL)
    if not OPERATOR.fullmatch(name):
        raise StoreError(f"there is no store at {connection}", path=connection)
    return Receiver(sites[name].reach("channel"))


def shown(now: channels.ChannelNow) -> StepOutcome:
    """Returns the status of a channel as an outcome."""
    facts = {
        "state": now.status,
        "stop": now.stop or "no",
        "number": now.number,
        "in-doubt": now.in_doubt,
        "waiting": now.waiting,
        "sent": now.messages,
        "reason": Reason(now.reason).name if now.reason else "none",
        "speed": now.nonpersistent_speed,
    }
    return StepOutcome("ok", facts=facts)


class Runs:
    """The held runs of a scenario, by queue manager and channel, and the other steps for channels."""

    def __init__(self, sites: Sites) -> None:
        self._sites = sites
        self._held: dict[tuple[str, str], ChannelRun] = {}

    def act(self, site: Site, step: ScenarioStep) -> StepOutcome:
        """Does one step of an operator. Raises: ValueError, a fault of the table."""
        try:
            done: StepOutcome = getattr(self, f"_{step.verb.replace('-', '_')}")(site, step)
            return done
        except InorderError as error:
            return translate_error(error)

    def kill_all(self) -> None:
        """Kills all held runs at the end of the scenario."""
        for run in self._held.values():
            with suppress(Killed):
                run.kill()

    # --- definitions

    def _define_connection(self, site: Site, step: ScenarioStep) -> StepOutcome:
        channels.define_connection(site.operator, step.names[0], URL + step.keys["to"])
        return StepOutcome("ok")

    def _define_channel(self, site: Site, step: ScenarioStep) -> StepOutcome:
        given = _attributes(step)
        if "receiver" in step.flags:
            channels.define_channel(site.operator, step.names[0], "receiver", **given)
        else:
            if "to" not in step.keys:
                raise ValueError("a sender channel goes somewhere: say to=qm2")
            own: dict[str, Any] = {"transmission_queue": manager_name(step.keys["to"]), **NO_RETRIES}
            channels.define_channel(site.operator, step.names[0], **(own | given))
        return StepOutcome("ok")

    def _alter_channel(self, site: Site, step: ScenarioStep) -> StepOutcome:
        channels.alter_channel(site.operator, step.names[0], **_attributes(step))
        return StepOutcome("ok")

    # --- runs

    def _run_channel(self, site: Site, step: ScenarioStep) -> StepOutcome:
        known = site.name, step.names[0]
        if {"kill", "hold"} <= step.keys.keys():
            raise ValueError("a run can be held or killed, not both")
        pulls = step.verb == "pull"
        run = ChannelRun(self._sites, site, step.names[0], _point(step), dies="kill" in step.keys, pulls=pulls)
        return self._after(known, run, run.begin())

    _pull = _run_channel

    def _trigger(self, site: Site, step: ScenarioStep) -> StepOutcome:
        channels.trigger_transmission(site.operator, step.names[0])
        return StepOutcome("ok")

    def _resume_channel(self, site: Site, step: ScenarioStep) -> StepOutcome:
        known, run = self._of(site, step)
        return self._after(known, run, run.resume())

    def _kill_channel(self, site: Site, step: ScenarioStep) -> StepOutcome:
        known, run = self._of(site, step)
        return self._after(known, run, run.kill())

    def _after(self, known: tuple[str, str], run: ChannelRun, outcome: StepOutcome) -> StepOutcome:
        if outcome.kind == "held":
            if self._held.setdefault(known, run) is not run:
                run.kill()
                raise ValueError(f"one run of {known[1]} is held already")
        elif self._held.get(known) is run:
            del self._held[known]
        return outcome

    def _of(self, site: Site, step: ScenarioStep) -> tuple[tuple[str, str], ChannelRun]:
        known = site.name, step.names[0]
        if known not in self._held:
            raise ValueError(f"no run of {step.names[0]} is held")
        return known, self._held[known]

    # --- operators

    def _stop_channel(self, site: Site, step: ScenarioStep) -> StepOutcome:
        mode: Any = step.names[1]
        channels.stop_channel(site.operator, step.names[0], mode)
        return StepOutcome("ok")

    def _start_channel(self, site: Site, step: ScenarioStep) -> StepOutcome:
        channels.start_channel(site.operator, step.names[0])
        return StepOutcome("ok")

    def _reset_channel(self, site: Site, step: ScenarioStep) -> StepOutcome:
        name, first = step.names
        channels.reset_channel(site.operator, name, number(first))
        return StepOutcome("ok")

    def _resolve_channel(self, site: Site, step: ScenarioStep) -> StepOutcome:
        action: Any = step.names[1] if len(step.names) > 1 else None
        done = channels.resolve_channel(
            site.operator,
            step.names[0],
            action,
            force="force" in step.flags,
            connects=lambda to: reach(self._sites, to),
        )
        return StepOutcome("ok", facts={"action": done})

    def _channel_status(self, site: Site, step: ScenarioStep) -> StepOutcome:
        found = [now for now in channels.status(site.operator) if now.name == step.names[0]]
        if not found:
            raise ValueError(f"there is no sender channel {step.names[0]!r}")
        return shown(found[0])

    def _received(self, site: Site, step: ScenarioStep) -> StepOutcome:
        came = channels.received(site.operator)
        if len(came) > 1:
            raise ValueError("several channels have come here")
        return StepOutcome("number", str(came[0].number if came else 0))


def _attributes(step: ScenarioStep) -> dict[str, Any]:
    given: dict[str, Any] = {NUMBERS[key]: number(value) for key, value in step.keys.items() if key in NUMBERS}
    given |= {TEXTS[key]: value for key, value in step.keys.items() if key in TEXTS}
    return given | ({"connection": step.keys["to"]} if "to" in step.keys else {})


def _point(step: ScenarioStep) -> tuple[str, int]:
    asked = step.keys.get("kill") or step.keys.get("hold")
    if asked is None:
        return "", 1
    point, _, nth = asked.partition(":")
    if point not in PLACES:
        raise ValueError(f"there is no point {point!r}; it is one of {', '.join(PLACES)}")
    times = number(nth or "1")
    if times < 1:
        raise ValueError(f"a point is come to for the first time, not for time {times}")
    return point, times
