"""A round of kills between two queue managers: the plan of its lives, and the judgement of their histories.

Whichever process was killed, and whenever, the histories must show this:

* a message that was put outside of units, or committed, arrives once; one that was backed out never does; of a unit
  with an unknown outcome everything or nothing arrives;
* the messages of a priority stand at their target in the order of their puts, as far as histories know that order;
* a message that expires is either read or reported; COA comes once for each arrival, COD once for each committed get;
* each arrival made one trigger message;
* no message is a dead letter, nothing remains on its way or in doubt, both sides agree on the number of batches.
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from inorder.model.attribute import COUNT_MAX
from inorder.mq.channels.points import POINTS as CHANNEL_POINTS

from .acts import Finding
from .carried import DRAIN, FEEDBACKS, HERE, ROLES, THERE, URLS, create, place
from .carried_served import served
from .history import Call, read_folder
from .lives import LIFE_SECONDS_MAX, NTH, RANDOM, Life, Parent, live

STORE_POINTS = ("begun", "written", "committed", "before-sync", "synced", "settled")
Ends = Mapping[str, tuple[str, ...]]
ENDS: Ends = {
    "putter": (RANDOM, *STORE_POINTS),
    "reader": (RANDOM, *STORE_POINTS),
    "carrier": (RANDOM, *STORE_POINTS, *CHANNEL_POINTS, "delivered"),
}
# Where stores are elsewhere, only their servers reach the points of transactions.
ENDS_ELSEWHERE: Ends = {"putter": (RANDOM,), "reader": (RANDOM,), "carrier": (RANDOM, *CHANNEL_POINTS)}
ELSEWHERE_SECONDS_MAX = 2.0  # of a life there
DRAIN_SECONDS_MAX = 120


def lives_of(
    chance: random.Random, round_name: str, workers: int, lives: int, ends: Ends = ENDS
) -> Iterator[list[Life]]:
    """The plan of a round: the lives of each worker."""
    for number in range(workers):
        role = ROLES[number % len(ROLES)]
        yield [
            Life(
                name=f"r{round_name}-{role}{number}-l{life}",
                seed=chance.getrandbits(32),
                end=chance.choice(ends[role]),
                nth=chance.choice(NTH),
                seconds=chance.uniform(0, ELSEWHERE_SECONDS_MAX if ends is ENDS_ELSEWHERE else LIFE_SECONDS_MAX),
                role=role,
            )
            for life in range(lives)
        ]


def run_served_round(
    folder: Path, chance: random.Random, parents: list[Parent], lives: int
) -> tuple[Counter[str], list[Call], list[Finding]]:
    """As `run_round`, with each store behind a server, which is killed too, and a network that breaks."""
    with served(folder, chance) as breakers:
        create(folder, short_retry_interval=0, short_retry_count=COUNT_MAX)
        for one in breakers:
            one.start()
        try:
            kills, findings = run_lives(folder, chance, parents, lives, ENDS_ELSEWHERE)
        finally:
            for one in breakers:
                one.stop()
        for one in breakers:
            kills += one.broken
        findings += run_drain(folder)
    calls = read_folder(folder)
    return kills, calls, findings or list(check(calls))


def run_round(
    folder: Path, chance: random.Random, parents: list[Parent], lives: int, url: str | None = None
) -> tuple[Counter[str], list[Call], list[Finding]]:
    """Runs one round in an empty folder; returns the ends of its lives, all calls, and the faults.

    Args:
        url: the server that has the stores, instead of files.
    """
    if url is not None:
        for name in (HERE, THERE):
            schema = f"{folder.parent.name}_{folder.name}_{name}".replace("-", "_").lower()
            (folder / f"{name}{URLS}").write_text(f"{url}?schema={schema}")
    create(folder)
    kills, findings = run_lives(folder, chance, parents, lives)
    findings += run_drain(folder)
    calls = read_folder(folder)
    return kills, calls, findings or list(check(calls))


def run_lives(
    folder: Path, chance: random.Random, parents: list[Parent], lives: int, ends: Ends = ENDS
) -> tuple[Counter[str], list[Finding]]:
    """Runs the lives of all workers; returns their ends and their complaints.

    Args:
        ends: with the ends of stores elsewhere, a worker may also end because its connection is lost.
    """
    plan = list(lives_of(chance, folder.name, len(parents), lives, ends))
    kills, findings = Counter[str](), list[Finding]()

    def lived(parent: Parent, planned: list[Life]) -> list[tuple[str, list[Finding]]]:
        return [live(parent, folder, folder, life, may_lose=ends is ENDS_ELSEWHERE) for life in planned]

    with ThreadPoolExecutor(max_workers=len(parents)) as slots:
        for found in slots.map(lived, parents, plan):
            for end, complaints in found:
                kills[end] += 1
                findings += complaints
    return kills, findings


def run_drain(folder: Path) -> list[Finding]:
    """Runs the final process; returns a finding if it fails."""
    command = [sys.executable, "-m", "tools.proof.carried", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DRAIN_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        return [Finding("unusable", f"the rest cannot be carried in {DRAIN_SECONDS_MAX} s: a process waits")]
    return [Finding("unusable", f"the rest cannot be carried: {done.stderr[-2000:]}")] if done.returncode else []


def remove(folder: Path) -> None:
    """Removes the stores of a round on a server; stores in files are removed with the folder."""
    for name in (HERE, THERE):
        if (folder / f"{name}{URLS}").exists():
            from inorder.stores.postgresql import drop, parse  # noqa: PLC0415 - a proof of files does without

            drop(parse(place(folder, name)))


# ---- the judgement


@dataclass
class Sent:
    """One message: its put, and its later history.

    Attributes:
        fate: whether it was put for good; None: unknown.
        places: its places at its target, one for each of its readers.
        reads: committed gets of it; maybe: gets whose commit is uncertain; drained: gets at the end.
        reports: the number of reports of each kind.
    """

    put: Call
    fate: bool | None
    places: set[tuple[int, ...]] = field(default_factory=set)
    reads: int = 0
    maybe: int = 0
    drained: int = 0
    reports: Counter[str] = field(default_factory=Counter)

    @property
    def arrived(self) -> bool:
        return bool(self.reads or self.maybe or self.drained or self.reports["coa"])


Unit = tuple[str, int]


def check(calls: list[Call]) -> Iterator[Finding]:
    """The faults of a round that was drained."""
    ends = {_unit_of(call): call for call in calls if call.what in ("commit", "back_out")}
    sent = {call.intent["label"]: Sent(call, _fate(call, ends)) for call in calls if call.what == "put"}
    yield from _read(calls, ends, sent)
    for label, one in sent.items():
        yield from (Finding("between", f"{label} {what}") for what in _wrong(one))
    yield from _torn(sent)
    yield from _disorder(sent)
    yield from _rest(calls, sum(one.arrived for one in sent.values()))


def _unit_of(call: Call) -> Unit:
    return call.process, call.intent["unit"]


def _fate(call: Call, ends: Mapping[Unit, Call]) -> bool | None:
    """Whether the effect of a call in its unit stays."""
    if call.outcome == "refused":
        return False
    if not call.intent["unit"]:
        return True if call.outcome == "promised" else None
    end = ends.get(_unit_of(call))
    if end is None or end.what == "back_out":
        return False
    return {"promised": True, "unknown": None, "refused": False}[end.outcome]


def _read(calls: Iterable[Call], ends: Mapping[Unit, Call], sent: Mapping[str, Sent]) -> Iterator[Finding]:
    """Records reads and reports; returns a finding for a message that was never put."""
    for call in calls:
        if call.what not in ("get", "drained") or call.outcome != "promised":
            continue
        for label, place_there, _, feedback in call.told["messages"]:
            if label not in sent:
                yield Finding("between", f"{call} has got {label!r}, which was never put")
            elif call.intent.get("queue") == "R":
                sent[label].reports[FEEDBACKS.get(feedback, str(feedback))] += 1
            else:
                _note(sent[label], call, ends)
                sent[label].places.add(tuple(place_there))


def _note(one: Sent, call: Call, ends: Mapping[Unit, Call]) -> None:
    if call.what == "drained":
        one.drained += 1
    else:
        fate = _fate(call, ends)
        one.reads += fate is True
        one.maybe += fate is None


def _wrong(one: Sent) -> Iterator[str]:
    """The faults of a single message."""
    reported, asked = one.reports, one.put.intent["reports"]
    expired = reported["expiration"]
    gone = one.reads + one.drained
    if one.fate is False and (one.places or reported):
        yield "was backed out, but arrived"
    if gone > 1 or (gone and expired) or len(one.places) > 1:
        yield f"arrived more than once: {gone} reads, {expired} expired, at {sorted(one.places)}"
    if one.fate and not (gone or expired or one.maybe):
        yield "was put for good, but is lost"
    if (expired and not one.put.intent["expires"]) or set(reported) - set(FEEDBACKS.values()):
        yield f"has reports of events that did not happen: {dict(reported)}"
    if any(count > 1 for count in reported.values()) or (reported and not asked):
        yield f"has reports that it did not ask for, or twice: {dict(reported)}"
    if asked and gone and not (reported["coa"] and reported["cod"]):
        yield f"was read, and its reports are {dict(reported)}"
    if asked and one.maybe and not gone and not expired and not reported["cod"]:
        yield "is gone by a get with an unknown end, and COD is missing"
    if reported["cod"] and not (gone or one.maybe):
        yield "was reported as delivered, but was not got"


def _torn(sent: Mapping[str, Sent]) -> Iterator[Finding]:
    """Finds units with an unknown end, of which only some messages arrived; messages that expire do not count."""
    units: dict[Unit, set[bool]] = defaultdict(set)
    for one in sent.values():
        if one.fate is None and one.put.outcome == "promised" and not one.put.intent["expires"]:
            units[_unit_of(one.put)].add(one.arrived)
    yield from (Finding("between", f"unit {unit} is torn apart") for unit, there in units.items() if len(there) > 1)


def _disorder(sent: Mapping[str, Sent]) -> Iterator[Finding]:
    """Finds two messages of a priority in the wrong order, if the first was put before the second put began."""
    levels: dict[int, list[Sent]] = defaultdict(list)
    for one in sent.values():
        if one.places and one.put.outcome == "promised":
            levels[one.put.intent["priority"]].append(one)
    for found in levels.values():
        ended = sorted(found, key=lambda one: one.put.ended_at)
        begun = sorted(found, key=lambda one: one.put.begun_at)
        highest: tuple[int, ...] = ()
        before: Sent | None = None
        done = iter(ended)
        following = next(done, None)
        for one in begun:
            while following is not None and following.put.ended_at < one.put.begun_at:
                if max(following.places) > highest:
                    highest, before = max(following.places), following
                following = next(done, None)
            if highest > min(one.places) and before is not None:
                yield Finding("between", f"{one.put} stands before {before.put}, which was earlier")


def _rest(calls: Iterable[Call], arrived: int) -> Iterator[Finding]:
    """The messages that remain at both sides after all was read."""
    told = {call.intent["store"]: call.told for call in calls if call.what == "left" and call.process == DRAIN}
    here, there = told[HERE], told[THERE]
    for name, left in told.items():
        depths = {queue: depth for queue, depth in left["depths"].items() if depth and queue != "INIT"}
        if depths or left["units"] or left["in_doubt"] or left["check"]:
            yield Finding("between", f"{name} has left {depths}, {left}")
    if (here["sent"], there["sent"]) != (there["came"], here["came"]):
        yield Finding("between", f"{here['sent']}, {there['sent']} batches sent, {there['came']}, {here['came']} came")
    if there["depths"]["INIT"] != arrived:
        yield Finding("between", f"{arrived} messages arrived and made {there['depths']['INIT']} trigger messages")
