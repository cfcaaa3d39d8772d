"""A dead-letter queue handler: applies a table of rules to dead letters, like MQ's runmqdlq (C-5).

`rules.dead_rules` decides which rule is next. A rule's action is one unit of work: the letter is got, and put
where the rule says, or it stays. So a handler that is killed loses no letter, and several may run at the same time.
A failed try is recorded in the letter by its back out (`rules.retries`): the rule, the time, and the number of
failures in a row. So the next run continues where the last one stopped. A handler remembers ignored letters only while
it runs.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Literal, NamedTuple, cast

from ..client.dead_letters import DeadLetter
from ..client.defining import local_name
from ..client.manager import QueueManager
from ..errors import CallerError, InorderError, NoMessageAvailable, Reason, StoreError, bad_argument
from ..model.message import Got, UniqueId
from ..model.options import Match, check_function, check_instance, check_switch
from ..rules.dead_letters import is_dead, revived, why_dead
from ..rules.dead_rules import DeadRule, DeadRules, Try, Value, facts, first_try, next_try, sign, target, try_after
from ..rules.dead_rules_syntax import DeadRulesError, read_rules
from ..rules.retries import Later, failure_of, without

LOOK_SECONDS = 1.0  # how soon a waiting handler notices a new letter

HandledAs = Literal["discarded", "retried", "forwarded", "failed", "ignored"]
Wait = Callable[[float], bool]


class DeadEvent(NamedTuple):
    """The action of a handler on a dead letter; in a dry run, the action that it would take.

    Args:
        event: "discarded"; "retried", put where it should have gone; "forwarded"; "failed", the action failed;
            "ignored", it stays.
        letter: the letter, without its body.
        line: the rule's line in its file; 0: no rule is left for it, or the message is not a dead letter.
        queue, manager: where it was put, or should have been; otherwise empty.
        error: why the action failed, or why no rule applies; otherwise None.
    """

    event: HandledAs
    letter: DeadLetter
    line: int = 0
    queue: str = ""
    manager: str = ""
    error: InorderError | None = None


class Handled(NamedTuple):
    """The number of letters handled in each way; `failed` counts tries."""

    discarded: int = 0
    retried: int = 0
    forwarded: int = 0
    failed: int = 0
    ignored: int = 0


Report = Callable[[DeadEvent], object]


def handle_dead_letters(
    qm: QueueManager,
    rules: DeadRules,
    *,
    queue: str | None = None,
    dry_run: bool = False,
    wait: Wait | None = None,
    report: Report | None = None,
) -> Handled:
    """Applies a table of rules to the dead letters, until none is left to handle and the table's WAIT is over.

    Args:
        rules: the table: `rules.dead_rules_syntax.read_rules` reads one.
        queue: the queue of the dead letters; None: the table's, otherwise the queue manager's.
        dry_run: change nothing: report for each letter the action of its first rule, then end.
        wait: called to wait a number of seconds; True ends the handler. Default: sleeps, and never ends it.
        report: called with each `DeadEvent`. An exception from it ends the handler.

    Messages keep their ids, group, priority, remaining expiry, and their putter and put time; unique ids and places are
    new. A message that is not a dead letter stays.

    Raises ArgumentError if the table is for another queue manager; UnknownQueue 2085 if there is no such queue;
    CallerError 2128 if the connection has a unit of work open; StoreError and its subclasses.
    """
    check_instance("rules", rules, DeadRules, "a DeadRules, as read_rules returns it")
    check_switch("dry_run", dry_run)
    check_function("wait", wait)
    check_function("report", report)
    with qm.connect() as own:
        tell = report or (lambda event: None)
        handler = _Handler(own, rules, queue, wait or threading.Event().wait, tell, dry_run=dry_run)
        handler.run()
    return handler.handled


class _Known(NamedTuple):
    """A letter whose action has failed, and its next try; `next` None: it stays."""

    next: Try | None
    due_at: float = math.inf


class _Handler:
    """One call of `handle_dead_letters`."""

    def __init__(
        self, own: QueueManager, rules: DeadRules, queue: str | None, wait: Wait, report: Report, *, dry_run: bool
    ) -> None:
        self._own, self._rules, self._wait, self._report, self._dry_run = own, rules, wait, report, dry_run
        self._manager = own.admin.manager_attributes().name
        if rules.manager not in ("", self._manager):
            raise bad_argument("rules", rules.manager, f"for queue manager {self._manager}, or for any: INPUTQM(' ')")
        self._queue = local_name(own, own.dead.place(queue or rules.queue or None))
        self._known: dict[UniqueId, _Known] = {}
        self._seen: object = None
        self.handled = Handled()

    def run(self) -> None:
        idle = 0.0
        while True:
            had_work = self._pass()
            if self._dry_run:
                return
            idle = 0.0 if had_work else idle
            due_at = min((one.due_at for one in self._known.values()), default=math.inf)
            if due_at == math.inf and idle >= self._rules.wait:
                return
            seconds = min(LOOK_SECONDS, max(0.0, due_at - self._now()))
            if self._wait(seconds):
                return
            idle += seconds

    def _pass(self) -> bool:
        """Handles all letters that are due; returns whether there were any."""
        self._own.admin.check_store()
        now = self._now()
        due = [uid for uid, one in self._known.items() if one.due_at <= now]
        before = self._moment()
        if before == self._seen and not due:
            return False
        there, had_work = set[UniqueId](), False
        for letter in self._letters():
            uid = letter.message.uid
            assert uid is not None, "it lies on a queue"
            there.add(uid)
            known = self._known.get(uid)
            if known is None or known.due_at <= now:
                had_work = True
                self._handle(uid, letter, known)
        self._known = {uid: one for uid, one in self._known.items() if uid in there}
        self._seen = before
        return had_work

    def _letters(self) -> Iterator[DeadLetter]:
        """The letters that can be got, without bodies."""
        for sight in self._own.inspect.look(self._queue, preview=0):
            if sight.state == "available":
                message = cast(Got, sight.message)  # a message on a queue has all of it
                yield DeadLetter(message, why_dead(message))

    def _moment(self) -> object:
        """A value that changes when a message comes, goes, or can be got again; None: the queue was never used."""
        found = next(iter(self._own.inspect.overview(self._queue)), None)
        return (
            None if found is None else (found.arrived, found.depth, found.puts, found.gets, found.locked, found.delayed)
        )

    # --- one letter

    def _handle(self, uid: UniqueId, letter: DeadLetter, known: _Known | None) -> None:
        if not is_dead(letter.message):
            error = CallerError("it has no reason for being a dead letter", reason=Reason.FORMAT_ERROR)
            self._stays(uid, DeadEvent("ignored", letter, error=error))
            return
        rules, given = self._rules.rules, facts(letter.message, letter.why, self._manager)
        known = self._remembered(letter, given) if known is None else known
        if known.next is not None and known.due_at > self._now() and not self._dry_run:
            self._known[uid] = known
            return
        at = known.next
        while at is not None:
            rule = rules[at.rule]
            queue, manager = target(rule, letter.message, letter.why) if rule.action in ("retry", "fwd") else ("", "")
            if rule.action == "ignore":
                self._stays(uid, DeadEvent("ignored", letter, rule.line))
                return
            try:
                event = self._act(rule, letter, queue, manager)
            except StoreError:
                raise
            except InorderError as error:
                if error.reason is Reason.UOW_IN_PROGRESS:
                    raise
                self._tell(DeadEvent("failed", letter, rule.line, queue, manager, error))
                following = next_try(rules, given, at)
                if following is not None and following.rule == at.rule:
                    self._known[uid] = _Known(following, self._now() + self._rules.retry_seconds)
                    return
                at = following
            else:
                self._known.pop(uid, None)
                if event is not None:
                    self._tell(event)
                return
        self._stays(uid, DeadEvent("ignored", letter))

    def _remembered(self, letter: DeadLetter, given: Mapping[str, Value]) -> _Known:
        """The next try for a letter that this run has not handled yet, from the record of earlier tries in it."""
        rules, last = self._rules.rules, failure_of(letter.message)
        if last is None:
            return _Known(first_try(rules, given), -math.inf)
        following = try_after(rules, given, last.work, last.tries)
        is_again = following is not None and following.failed > 0
        return _Known(following, min(last.time, self._now()) + self._rules.retry_seconds if is_again else -math.inf)

    def _act(self, rule: DeadRule, letter: DeadLetter, queue: str, manager: str) -> DeadEvent | None:
        """Does a rule's action; None if another reader has the letter."""
        if rule.action == "discard":
            return DeadEvent("discarded", letter, rule.line) if self._dry_run or self._discard(letter) else None
        done: HandledAs = "retried" if rule.action == "retry" else "forwarded"
        if self._dry_run:
            self._check(queue, manager)
        elif not self._put(letter, rule, queue, manager):
            return None
        return DeadEvent(done, letter, rule.line, queue, manager)

    def _discard(self, letter: DeadLetter) -> bool:
        try:
            self._own.get(self._queue, match=Match(uid=letter.message.uid), read_order="relaxed", syncpoint=False)
        except NoMessageAvailable:
            return False
        return True

    def _put(self, letter: DeadLetter, rule: DeadRule, queue: str, manager: str) -> bool:
        """Whether the letter could be got. Raises the error of the put, which is then recorded in the letter."""
        with self._own.unit_of_work() as unit:
            try:
                message: Got = self._own.get(self._queue, match=Match(uid=letter.message.uid), read_order="relaxed")
            except NoMessageAvailable:
                return False
            keeps_header = rule.action == "fwd" and rule.header
            going = message.with_values(properties=without(message)) if keeps_header else revived(message)
            try:
                self._check(queue, manager)
                self._own.put(queue, going, manager=manager, context="set_all")
            except StoreError:
                raise
            except InorderError as error:
                unit._put_off(Later(error=str(error), work=sign(rule)))
                raise
        return True

    def _check(self, queue: str, manager: str) -> None:
        """Raises CallerError if there is no target, or it is the letter's own queue."""
        if not queue:
            raise CallerError("the letter names no queue", reason=Reason.UNKNOWN_OBJECT_NAME)
        if manager in ("", self._manager) and local_name(self._own, queue) == self._queue:
            raise CallerError(
                f"{queue} is its own queue: it would return forever", reason=Reason.OPTION_NOT_VALID_FOR_TYPE
            )

    def _stays(self, uid: UniqueId, event: DeadEvent) -> None:
        self._known[uid] = _Known(None)
        self._tell(event)

    # --- helpers

    def _tell(self, event: DeadEvent) -> None:
        self.handled = self.handled._replace(**{event.event: getattr(self.handled, event.event) + 1})
        self._report(event)

    def _now(self) -> float:
        return self._own._session.services.now()


__all__ = [
    "DeadEvent",
    "DeadRule",
    "DeadRules",
    "DeadRulesError",
    "Handled",
    "handle_dead_letters",
    "read_rules",
]
