"""Which branches of the rules a run has reached, and how often.

The rules are pure functions that other modules have imported by name. `watched` puts a counting one in the place of
each, in every module of the package that has it, for as long as a run lasts; it counts only what the left store
does. What callers are told, results and errors, is counted by whoever compares the answers.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest import mock

from tests.machine.pairs import Failed, Outcome

from inorder import Message, PutResult, Reason
from inorder.message import ANY_GROUP, ANY_SEGMENT, SEGMENTATION_ALLOWED
from inorder.rules import duplicates, gets, grouping, lifecycle, ordering, segmentation
from inorder.rules.grouping import GroupState
from inorder.rules.lifecycle import Event, Presented, State
from inorder.rules.ordering import Decision, Kind
from inorder.stores import arriving, confirming, queued
from inorder.stores.backend import Expired
from inorder.stores.memory.backend import MemoryBackend
from inorder.stores.queue import LocalQueue

Branch = tuple[str, str]


class Branches:
    """Counts of branches, by group and name."""

    def __init__(self) -> None:
        self.counts: Counter[Branch] = Counter()
        self._counting = False

    @contextmanager
    def counting(self) -> Iterator[None]:
        """What happens meanwhile is counted; the left store works, and calls that wait on it."""
        self._counting = True
        try:
            yield
        finally:
            self._counting = False

    def note(self, group: str, name: str) -> None:
        self.counts[group, name] += 1

    def note_outcome(self, outcome: Outcome) -> None:
        """The reason of an error, or the warnings of what was returned."""
        if isinstance(outcome, Failed):
            self._reason("reason", outcome.reason)
            return
        for one in _flat(outcome.value):
            if isinstance(one, Message | PutResult):
                self._reason("warning", one.warning)
            elif isinstance(one, Reason):
                self._reason("warning", one)
            elif isinstance(one, Failed):
                self._reason("reason", one.reason)

    def _reason(self, group: str, reason: Any) -> None:
        if reason is not None:
            self.note(group, reason.name)

    def missing(self, wanted: Iterable[Branch]) -> list[Branch]:
        """What was never reached."""
        return [one for one in wanted if not self.counts[one]]

    # --- watching the rules

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Counts what the rules are asked and answer."""
        notes = self._notes()
        with (
            mock.patch.multiple(
                LocalQueue,
                judge=self._judging(),
                entered_by_others=self._entered(),
                _decide_member=self._deciding_member(),
            ),
            mock.patch.object(MemoryBackend, "expire", self._expiring()),
        ):
            replaced = {original: _replaced(original, self._watch(original, note)) for original, note in notes.items()}
            try:
                yield
            finally:
                for original, places in replaced.items():
                    for module, name in places:
                        setattr(module, name, original)

    def _watch(self, function: Callable[..., Any], note: Callable[..., None]) -> Callable[..., Any]:
        def called(*given: Any, **named: Any) -> Any:
            result = function(*given, **named)
            if self._counting:
                note(result, *given, **named)
            return result

        return called

    def _notes(self) -> Mapping[Callable[..., Any], Callable[..., None]]:
        """For each function of the rules, how an answer of it is counted."""
        return {
            lifecycle.step: self._step,
            arriving.arrive: self._arrive,
            grouping.number_put: self._number_put,
            grouping.wanted: self._wanted,
            grouping.has_what_it_needs: self._needs,
            ordering.blocks_itself: self._if_so("strict", "self-blocked"),
            ordering.is_deadlocked: self._if_so("strict", "deadlock"),
            ordering.draws_number: self._draws,
            ordering.decide: self._decide,
            segmentation.join: lambda joined, *_: self.note("join", "one" if joined.used == 1 else "several"),
            segmentation.split: lambda *_: self.note("split", "done"),
            gets.within_group: lambda *_: self.note("whole group", "further message"),
            queued.pending_of: self._pending_of,
            queued.is_marked: lambda result, *_: self.note("marks", "marked" if result else "unmarked"),
            confirming._undoing: lambda event, *_: self.note("undo", "nothing" if event is None else event.name),
            lifecycle.adds_backout: self._if_so("back out", "counted"),
            queued.presented: self._presented,
            duplicates.judge: self._judge_key,
        }

    def _if_so(self, group: str, name: str) -> Callable[..., None]:
        def note(result: object, *_: Any) -> None:
            if result:
                self.note(group, name)

        return note

    def _judge_key(self, result: duplicates.Verdict, kept: duplicates.Kept | None, unit: int | None, _: float) -> None:
        held = kept is not None and kept.unit is not None
        how = "nobody has it" if kept is None else "a unit has it" if held else "it is kept until later, or was"
        self.note("key", f"{result.name.lower()}: {how}")

    def _draws(self, result: bool, order: str, moment: ordering.Moment) -> None:
        self.note("number", f"order {order} at {moment.name.lower()}: {'drawn' if result else 'not yet'}")

    def _step(self, result: lifecycle.Step, state: State, event: Event, presents: Presented = Presented.NONE) -> None:
        if event is not Event.EXPIRE:  # of which the table is asked beforehand, for all states: see `_expiring`
            self.note("cell", cell_name(event, state, result))

    def _arrive(self, _: bool, __: Any, ___: Any, messages: Any, unit: Any) -> None:
        event = Event.PUT if unit is None else Event.PUT_HELD
        if messages:
            self.note("cell", cell_name(event, State.ABSENT, lifecycle.step(State.ABSENT, event)))

    def _expiring(self) -> Callable[..., Expired]:
        expire = MemoryBackend.expire

        def expiring(one: MemoryBackend, queue: int, now: float, most: int) -> Expired:
            before = one.of_queue(queue)
            result = expire(one, queue, now, most)
            if self._counting and result.total:
                left = {row.number for row in one.of_queue(queue)}
                for row in before:
                    if row.number not in left:
                        self.note("cell", cell_name(Event.EXPIRE, row.state, lifecycle.step(row.state, Event.EXPIRE)))
            return result

        return expiring

    def _number_put(self, _: Any, state: GroupState, message: Message, *, logical: bool, new_id: Any) -> None:
        flags = message.flags
        case = (
            logical,
            bool(flags & ANY_GROUP),
            bool(flags & ANY_SEGMENT),
            bool(flags & SEGMENTATION_ALLOWED),
            state.group_open,
            state.message_open,
        )
        self.note("put", grouping._PUT_CASES[case].name)

    def _wanted(self, _: Any, state: GroupState, options: Any) -> None:
        self.note("get", _get_row(state, logical=options.logical))

    def _needs(self, result: bool, message: Message, needs: str, members: Any) -> None:
        if needs != "nothing":
            self.note("needs", f"{needs}: {'there' if result else 'missing'}")

    def _presented(self, result: Presented, row: Any, reader: Any) -> None:
        if reader.lock_id:
            self.note("lock id", f"presented: {result.name.lower()}")

    # --- strict reading

    def _pending_of(self, result: Any, *_: Any) -> None:
        if result is not None:
            self.note("pending", result.kind.name)
            if result.own:
                self.note("strict", "passed over: the call's own unit got it")

    def _judging(self) -> Callable[..., Any]:
        judge = LocalQueue.judge

        def judging(one: LocalQueue, row: Any, wanted: Any, reader: Any, *, logical: bool) -> Any:
            result = judge(one, row, wanted, reader, logical=logical)
            if self._counting and result is None:
                self.note("strict", "does not take part")
            elif self._counting and result and result.pending and result.pending.kind is Kind.GROUP_INCOMPLETE:
                self.note("pending", Kind.GROUP_INCOMPLETE.name)
                self.note("strict", "an incomplete group stands there")
            return result

        return judging

    def _entered(self) -> Callable[..., Any]:
        entered = LocalQueue.entered_by_others

        def finding(one: LocalQueue, wanted: Any, reader: Any) -> Any:
            result = entered(one, wanted, reader)
            if self._counting and result:
                self.note("strict", "an entered group stands there")
            return result

        return finding

    def _deciding_member(self) -> Callable[..., Any]:
        decide = LocalQueue._decide_member

        def deciding(one: LocalQueue, wanted: Any, reader: Any) -> Any:
            result = decide(one, wanted, reader)
            if self._counting:
                kind = result.pending.kind.value if result.pending else "taken"
                self.note("strict", f"next member: {kind}")
            return result

        return deciding

    def _decide(self, result: Decision[Any], _: Any) -> None:
        if result.row is not None:
            passed = result.pending is not None and result.pending.place.rank != result.row.place.rank
            self.note("strict", "taken, a level passed over" if passed else "taken")
        elif result.withheld is not None:
            self.note("strict", "withheld" if len(result.blockers) == 1 else "withheld at several levels")
        else:
            self.note("strict", "nothing, but pending" if result.pending else "nothing")


def report(wanted: Iterable[Branch], **columns: Branches) -> str:
    """A line for each branch that is asked for: how often each kind of history reached it."""
    head = "".join(f"{name:>12}" for name in columns)
    lines = [
        "".join(f"{one.counts[branch]:12,}" for one in columns.values()) + f"  {': '.join(branch)}" for branch in wanted
    ]
    return "\n".join([head, *lines])


def _replaced(original: Callable[..., Any], watching: Callable[..., Any]) -> list[tuple[Any, str]]:
    """Puts `watching` wherever the package has `original`; where that was."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("inorder.")]
    places = [(module, name) for module in modules for name, value in vars(module).items() if value is original]
    assert places, original
    for module, name in places:
        setattr(module, name, watching)
    return places


def _get_row(state: GroupState, *, logical: bool) -> str:
    if not logical:
        return "G5"
    if state.message_open:
        return "G4" if state.group_open else "G2"
    return "G3" if state.group_open else "G1"


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple) and not isinstance(value, PutResult):
        for one in value:
            yield from _flat(one)
    else:
        yield value


def cell_name(event: Event, state: State, step: lifecycle.Step) -> str:
    outcome = step.answer.name if step.to is None else step.to.name
    return f"{event.name} in {state.name}: {outcome}"
