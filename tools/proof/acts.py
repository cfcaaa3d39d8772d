"""The contents of histories: messages that were put, and acts, each of which happens wholly or not at all.

An act is a call outside units of work, a unit of work, or the calls under a confirm id. It has *closings*, calls that
commit or undo it, and perhaps a *hold*, the call after which it outlives its process (a prepare, a put or get with
a confirm id). Its *fates* are the outcomes that the histories leave possible: yes, no, or, if a process was killed in
the middle of a closing call, either.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from .history import Call
from .labels import parse
from .worker import QUEUES

YES, NO = frozenset({True}), frozenset({False})


class Finding(NamedTuple):
    """A broken promise: the kind of fault, and a description."""

    kind: str
    text: str


@dataclass(eq=False)
class Act:
    """A unit that happens wholly or not at all.

    Args:
        title: the name in findings.
        last_at: the last sign of life of the process that began it (`history.Call`).
        puts, gets: labels.
    """

    title: str
    last_at: float
    puts: list[str] = field(default_factory=list)
    gets: list[str] = field(default_factory=list)
    hold: Call | None = None
    closings: list[tuple[Call, bool]] = field(default_factory=list)

    @property
    def fates(self) -> frozenset[bool]:
        """Whether it may have happened, as far as the histories show; empty if it was held and no call ended it."""
        told = frozenset(fate for call, fate in self.closings if call.outcome == "promised")
        possible = frozenset(fate for call, fate in self.closings if call.outcome == "unknown")
        if told:
            return told
        if self.hold is None or self.hold.outcome == "unknown":
            return possible | NO  # it ended with its process, at the latest
        return possible

    @property
    def released_at(self) -> float:
        """The time until which it certainly held the messages that it got."""
        if self.hold is None or self.hold.outcome == "unknown":
            return min([self.last_at, *(call.begun_at for call, _ in self.closings)])
        return min((call.begun_at for call, _ in self.closings), default=math.inf)

    def commits(self) -> list[Call]:
        """The calls that may have committed it."""
        told = [call for call, fate in self.closings if fate and call.outcome == "promised"]
        return told or [call for call, fate in self.closings if fate and call.outcome == "unknown"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Put:
    """A message that was put, or whose put began."""

    label: str
    queue: str
    priority: int
    persistent: bool
    act: Act
    call: Call
    uid: tuple[str, int] | None

    def drawn_by(self) -> list[Call]:
        """The calls that may have drawn its number, by the order rule of its queue (lifecycle B-5)."""
        rule = QUEUES[self.queue]
        if rule == "put":
            return [self.call]
        if rule == "prepare" and self.act.hold is not None and self.act.hold.what == "prepare":
            return [self.act.hold]
        return self.act.commits()


class Sighting(NamedTuple):
    """A message as a get, a lock or the observer received it."""

    label: str
    queue: str
    uid: tuple[str, int]
    place: tuple[int, int, int]
    call: Call
    act: Act | None  # the act that got it


class Reading:
    """The contents of all histories of one round.

    Attributes:
        blind: for each queue, the number of messages that gets may have taken whose process died before the answer.
        strict: the strict gets among the sightings.
        seen: for each queue, the messages that the observer saw.
        has_crashed: whether the server with the store has crashed: messages that a call saw without a sync may be gone.
    """

    def __init__(self, calls: Iterable[Call]) -> None:
        self.acts: list[Act] = []
        self.puts: dict[str, Put] = {}
        self.sightings: list[Sighting] = []
        self.strict: list[Sighting] = []
        self.blind: Counter[str] = Counter()
        self.seen: dict[str, list[Sighting]] = {}
        self.findings: list[Finding] = []
        self.has_crashed = False
        self._units: dict[tuple[str, int], Act] = {}
        self._named: dict[str, Act] = {}
        self._confirms: dict[tuple[str, int], Act] = {}
        calls = list(calls)
        for openings in (True, False):
            for call in calls:
                if call.outcome != "refused" and (call.what in OPENINGS) is openings:
                    getattr(self, f"_on_{call.what}")(call)
        for act in self.acts:
            if len(act.fates) == 0:
                self._find("vanished", f"{act.title} was held by {act.hold}, and no call ended it, but it is missing")
            said = {fate for call, fate in act.closings if call.outcome == "promised"}
            if len(said) > 1:
                self._find("settled-twice", f"{act.title} was ended both ways, as its callers were told")

    def _find(self, kind: str, text: str) -> None:
        self.findings.append(Finding(kind, text))

    def _act(self, call: Call, title: str) -> Act:
        self.acts.append(Act(title, call.last_at))
        return self.acts[-1]

    def _home(self, call: Call) -> Act:
        """The act of a put or get: its unit of work, its confirm id, or itself."""
        if call.intent["unit"]:
            return self._unit(call)
        act = self._act(call, str(call))
        if confirm_id := call.intent.get("confirm_id"):
            act.hold = call
            self._confirms[call.intent["queue"], confirm_id] = act
        else:
            act.closings.append((call, True))
        return act

    def _unit(self, call: Call) -> Act:
        key = (call.process, call.intent["unit"])
        if key not in self._units:
            self._units[key] = self._act(call, f"unit {key[1]} of {call.process}")
        return self._units[key]

    # --- openings

    def _on_put(self, call: Call) -> None:
        act, intent = self._home(call), call.intent
        uids = call.told.get("uids") or [None] * len(intent["labels"])
        for label, uid in zip(intent["labels"], uids, strict=True):
            act.puts.append(label)
            self.puts[label] = Put(
                label=label,
                queue=intent["queue"],
                priority=intent["priority"],
                persistent=intent["persistent"],
                act=act,
                call=call,
                uid=uid and (uid[0], uid[1]),
            )

    def _on_get(self, call: Call) -> None:
        act = self._home(call)
        if call.outcome == "unknown" and not call.intent["unit"]:
            self.blind[call.intent["queue"]] += 0 if "confirm_id" in call.intent else call.intent.get("count", 1)
        found = self._saw(call, act)
        act.gets += [sighting.label for sighting in found]
        if call.intent.get("strict") and "lock_id" not in call.intent:
            self.strict += found
        if call.intent.get("group") and found:
            self._check_whole(call, [sighting.label for sighting in found])

    def _check_whole(self, call: Call, labels: list[str]) -> None:
        members = [parse(label) for label in labels]
        first = members[0]
        groups = {(member.putter, member.group) for member in members}
        if len(groups) > 1 or [member.place for member in members] != list(range(1, first.size + 1)):
            self._find("group-not-whole", f"{call} was given, as one whole group, {', '.join(labels)}")

    def _on_prepare(self, call: Call) -> None:
        act = self._unit(call)
        act.hold = call
        self._named[call.intent["name"]] = act

    def _on_lock(self, call: Call) -> None:
        self._saw(call, None)

    _on_browse = _on_lock

    def _on_delete(self, call: Call) -> None:
        act = self._act(call, str(call))
        act.gets.append(call.intent["label"])
        act.closings.append((call, True))

    def _on_seen(self, call: Call) -> None:
        queue = call.intent["queue"]
        found = self.seen[queue] = self._saw(call, None)
        for label, times in Counter(sighting.label for sighting in found).items():
            if times > 1:
                self._find("doubled", f"{label} is on {queue} {times} times")
        total = len(call.told.get("messages", ()))
        if total != call.told.get("depth", total):
            self._find("depth", f"{queue} has {total} messages, and says that it has {call.told['depth']}")

    def _saw(self, call: Call, act: Act | None) -> list[Sighting]:
        found = []
        for label, uid, place, _persistent in call.told.get("messages", ()):
            if label.startswith("?"):
                self._find("damaged", f"{call} was given a body that was never put: {label[1:]}")
                continue
            found.append(Sighting(label, call.intent["queue"], (uid[0], uid[1]), tuple(place), call, act))
        self.sightings += found
        return found

    # --- closings

    def _on_commit(self, call: Call) -> None:
        self._end_unit(call, fate=True)

    def _on_back_out(self, call: Call) -> None:
        self._end_unit(call, fate=False)

    def _end_unit(self, call: Call, *, fate: bool) -> None:
        act = self._units.get((call.process, call.intent["unit"]))
        if act is not None:  # a unit that held nothing does not count
            act.closings.append((call, fate))

    def _on_settle(self, call: Call) -> None:
        act = self._named.get(call.intent["name"])
        if act is not None:
            act.closings.append((call, call.intent["outcome"] == "commit"))
        elif call.outcome == "promised":
            self._find("invented", f"{call} settled the unit {call.intent['name']}, which was never prepared")

    def _on_confirm_put(self, call: Call) -> None:
        if not call.told.get("warned"):
            self._end_confirm(call, fate=True)

    _on_confirm_get = _on_confirm_put

    def _on_undo(self, call: Call) -> None:
        self._end_confirm(call, fate=False)

    def _end_confirm(self, call: Call, *, fate: bool) -> None:
        act = self._confirms.get((call.intent["queue"], call.intent["confirm_id"]))
        if act is not None:
            act.closings.append((call, fate))
        elif call.outcome == "promised":
            self._find("invented", f"{call} ended confirm id {call.intent['confirm_id']}, which was never used")

    def _on_release(self, call: Call) -> None:
        """Does nothing: no promise is about the end of a lock."""

    def _on_crash(self, _call: Call) -> None:
        self.has_crashed = True

    def is_lasting(self, sighting: Sighting) -> bool:
        """Whether a message that was seen there stays."""
        call = sighting.call
        return call.what == "seen" or bool(call.told.get("durable")) or not self.has_crashed

    def _on_units(self, call: Call) -> None:
        """When the observer has ended all named units, none may remain; the owners of the others are dead."""
        if call.intent["when"] == "left":
            for kind, name, queue, puts, gets, locks in call.told.get("units", []):
                what = " ".join(filter(None, (kind, "unit", name, queue)))
                self._find("left", f"a {what} is still there with {puts} puts, {gets} gets and {locks} locks")


OPENINGS = frozenset({"put", "get", "browse", "prepare", "lock", "delete", "seen", "units", "crash"})
