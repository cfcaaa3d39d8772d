"""Decides which unfinished acts happened, and finds faults that no decision can explain.

A process that was killed in the middle of a commit leaves an act that happened or did not. Every act of a round is
given one fate; then each message must be where the fates require. Of all choices for the unfinished acts the one with
the fewest faults is taken: if even that has a fault, a promise was broken. Acts that share no message are decided
separately, so there are few choices at a time.
"""

from __future__ import annotations

from collections import ChainMap, Counter, defaultdict
from collections.abc import Iterator, Mapping, MutableMapping
from itertools import product

from .acts import Act, Finding, Put, Reading

Fates = MutableMapping[Act, bool]
UNFINISHED_TOGETHER_MAX = 14

# The faults of one message. Its loss weighs less than the others: it may have been got by a call that died.
TEXTS = {
    "lost": "was put, is missing, and was given to no call",
    "resurrected": "was got, but is on a queue again",
    "got-twice": "was got twice",
    "uncommitted": "came out of a unit that did not commit, or a put that was undone",
    "invented": "was never put",
}
WEIGHTS = {"lost": 1} | dict.fromkeys(("resurrected", "got-twice", "uncommitted", "invented"), 1000)


class Judge:
    """Compares the fates of acts with the observations."""

    def __init__(self, reading: Reading, before: Mapping[str, Put]) -> None:
        self._reading = reading
        self._puts = {**before, **reading.puts}
        self._visible = {sighting.label for found in reading.seen.values() for sighting in found}
        self._sighted = {sighting.label for sighting in reading.sightings if reading.is_lasting(sighting)}
        self._getters: dict[str, list[Act]] = defaultdict(list)
        for act in reading.acts:
            for label in act.gets:
                self._getters[label].append(act)

    def choose(self) -> Fates:
        """The fate of each act: as recorded, or as it explains most."""
        fates = {act: True in act.fates for act in self._reading.acts}
        for acts, labels in self._knots():
            assert len(acts) <= UNFINISHED_TOGETHER_MAX, f"{len(acts)} unfinished acts on the same messages"
            chosen = min(
                (dict(zip(acts, choice, strict=True)) for choice in product((True, False), repeat=len(acts))),
                key=lambda choice: self._weight(labels, ChainMap(choice, fates)),
            )
            fates |= chosen
        return fates

    def _knots(self) -> Iterator[tuple[list[Act], set[str]]]:
        """Unfinished acts that share messages, with all their messages."""
        unfinished = [act for act in self._reading.acts if len(act.fates) != 1]
        while unfinished:
            acts = [unfinished.pop()]
            labels = {*acts[0].puts, *acts[0].gets}
            while near := [act for act in unfinished if labels & {*act.puts, *act.gets}]:
                acts += near
                labels = labels.union(*(act.puts for act in near), *(act.gets for act in near))
                unfinished = [act for act in unfinished if act not in near]
            yield acts, labels

    def _weight(self, labels: set[str], fates: Fates) -> int:
        return sum(WEIGHTS[kind] for label in labels if (kind := self._fault(label, fates)) is not None)

    def _fault(self, label: str, fates: Fates) -> str | None:
        """The fault of one message under these fates."""
        put = self._puts.get(label)
        if put is None:
            return "invented"
        was_put = fates.get(put.act, True)  # a message from before this round was put
        got = sum(fates[act] for act in self._getters[label])
        if not was_put and (got or label in self._visible or label in self._sighted):
            return "uncommitted"
        if got > 1:
            return "got-twice"
        if label in self._visible:
            return "resurrected" if got else None
        return "lost" if was_put and not got and put.persistent else None

    def findings(self, fates: Fates) -> list[Finding]:
        """The faults that these fates cannot explain."""
        labels = sorted(self._puts.keys() | self._sighted | self._getters.keys())
        faults = {label: kind for label in labels if (kind := self._fault(label, fates)) is not None}
        self._excuse(faults)
        halves = list(self._halves(faults, fates))
        return halves + [Finding(kind, f"{label}{self._where(label)} {TEXTS[kind]}") for label, kind in faults.items()]

    def _excuse(self, faults: dict[str, str]) -> None:
        """Excuses missing messages by gets whose process died before the answer, up to the number that they can have
        taken.
        """
        lost = Counter(self._puts[label].queue for label, kind in faults.items() if kind == "lost")
        for queue, total in lost.items():
            if total <= self._reading.blind[queue]:
                for label in [label for label, kind in faults.items() if kind == "lost"]:
                    if self._puts[label].queue == queue:
                        del faults[label]

    def _halves(self, faults: dict[str, str], fates: Fates) -> Iterator[Finding]:
        """Acts that happened in part: reported once each, instead of message by message."""
        for act, happened in fates.items():
            of_puts, of_gets = ("lost", "resurrected") if happened else ("uncommitted", "uncommitted")
            wrong = [label for label in act.puts if faults.get(label) == of_puts]
            wrong += [label for label in act.gets if faults.get(label) == of_gets]
            total = len(act.puts) + len(act.gets)
            if 0 < len(wrong) < total:
                for label in wrong:
                    del faults[label]
                did = "happened" if happened else "did not happen"
                yield Finding("half", f"{act.title} {did}, but not so for {', '.join(wrong)}, {len(wrong)} of {total}")

    def _where(self, label: str) -> str:
        put = self._puts.get(label)
        return "" if put is None else f" on {put.queue} ({put.call}; {put.act.title})"
