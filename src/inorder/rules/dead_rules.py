"""Rules for dead letters, as in MQ's runmqdlq: which rule a letter matches, and which one comes next.

The rules are tried in order. The action of the first rule whose patterns all match is tried, as often as its RETRY
says; if it fails each time, the next matching rule is tried. If none is left, the letter stays, as with IGNORE::

    matches(first rule) -> try, 1 .. RETRY times -> done
                              | all have failed
                              v
    matches(next rule)  -> try, 1 .. RETRY times -> done
                              | none is left
                              v
                            ignored

In a pattern `*` stands for any characters and `?` for one; blanks at the end do not count. Numbers are compared as
numbers. A letter that names no queue manager counts as one for this queue manager.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from ..model.message import Message
from ..model.options import FOREVER
from ..support import old_paths
from .dead_letters import WhyDead

Action = Literal["discard", "ignore", "retry", "fwd"]
Value = str | int

RETRY_SECONDS: Final = 60
SIGN_LENGTH: Final = 16
# The length of each field in characters; 0 for a number.
FIELDS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "APPLIDAT": 32,
        "APPLNAME": 28,
        "APPLTYPE": 0,
        "DESTQ": 48,
        "DESTQM": 48,
        "FEEDBACK": 0,
        "FORMAT": 8,
        "MSGTYPE": 0,
        "PERSIST": 0,
        "REASON": 0,
        "REPLYQ": 48,
        "REPLYQM": 48,
        "USERID": 12,
    }
)
# These stand for the queue or queue manager that the letter names.
SYMBOLS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"FWDQ": ("&DESTQ", "&REPLYQ"), "FWDQM": ("&DESTQM", "&REPLYQM")}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadRule:
    """One rule.

    Args:
        line: its first line in the file, from 1.
        patterns: the values that a letter must have, by MQ's keywords; other fields may have any value.
        queue, manager: for "fwd": the destination, or one of `SYMBOLS`; an empty manager is this one.
        header: for "fwd": whether the letter keeps the properties that say why it is dead.
        tries: the number of tries of the action, from 1.
    """

    line: int
    action: Action
    patterns: Mapping[str, Value] = field(default_factory=dict)
    queue: str = ""
    manager: str = ""
    header: bool = True
    tries: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadRules:
    """A table of rules.

    Args:
        rules: in the order in which they are tried.
        queue: the queue of the dead letters; empty: the queue manager's dead-letter queue.
        manager: the queue manager that the table is for; empty: any.
        retry_seconds: the time between two tries.
        wait: seconds to wait for another letter when none is left; 0: not at all; or `FOREVER`.
    """

    rules: Sequence[DeadRule]
    queue: str = ""
    manager: str = ""
    retry_seconds: int = RETRY_SECONDS
    wait: float = FOREVER

    def __post_init__(self) -> None:
        wait: Any = self.wait
        if wait is None:
            old_paths.warn("wait=None of DeadRules is now wait=inorder.FOREVER, which is the default")
            object.__setattr__(self, "wait", FOREVER)


class Try(NamedTuple):
    """The rule that is tried next, and the number of its failures so far."""

    rule: int
    failed: int = 0


def facts(message: Message, why: WhyDead, manager: str) -> dict[str, Value]:
    """The values of a letter, by the keywords of patterns.

    Args:
        manager: the name of the queue manager that has the letter.
    """
    return {
        "APPLIDAT": message.application_identity_data,
        "APPLNAME": message.put_application_name,
        "APPLTYPE": message.put_application_type,
        "DESTQ": why.queue,
        "DESTQM": why.manager or manager,
        "FEEDBACK": message.feedback,
        "FORMAT": message.format,
        "MSGTYPE": int(message.message_type),
        "PERSIST": int(bool(message.persistent)),
        "REASON": why.reason,
        "REPLYQ": message.reply_to_queue,
        "REPLYQM": message.reply_to_queue_manager,
        "USERID": message.user_identifier,
    }


def fits(rule: DeadRule, letter: Mapping[str, Value]) -> bool:
    """Whether a letter, given by its `facts`, matches a rule."""
    return all(_is_like(letter[name], pattern) for name, pattern in rule.patterns.items())


def _is_like(value: Value, pattern: Value) -> bool:
    if isinstance(pattern, int):
        return value == pattern
    expression = "".join({"*": ".*", "?": "."}.get(sign) or re.escape(sign) for sign in pattern.rstrip(" "))
    return re.fullmatch(expression, str(value).rstrip(" "), re.DOTALL) is not None


def first_try(rules: Sequence[DeadRule], letter: Mapping[str, Value], after: int = -1) -> Try | None:
    """Finds the first rule after another one that matches a letter; None if there is none."""
    return next((Try(at) for at in range(after + 1, len(rules)) if fits(rules[at], letter)), None)


def next_try(rules: Sequence[DeadRule], letter: Mapping[str, Value], last: Try) -> Try | None:
    """Decides what follows a failed try: the same rule again, or the next that matches; None: the letter stays."""
    failed = last.failed + 1
    if failed < rules[last.rule].tries:
        return Try(last.rule, failed)
    return first_try(rules, letter, last.rule)


def sign(rule: DeadRule) -> str:
    """Identifies a rule by its patterns and action, independent of its place in a table and its number of tries."""
    said = rule.action, sorted(rule.patterns.items()), rule.queue, rule.manager, rule.header
    return f"rule {hashlib.sha256(repr(said).encode()).hexdigest()[:SIGN_LENGTH]}"


def try_after(rules: Sequence[DeadRule], letter: Mapping[str, Value], signed: str, failed: int) -> Try | None:
    """Decides what to try for a letter for which a rule has failed, maybe in an earlier run; None: the letter stays.

    A rule that has been removed from the table has no effect.
    """
    at = next((at for at, rule in enumerate(rules) if sign(rule) == signed and fits(rule, letter)), None)
    if at is None or failed < 1:
        return first_try(rules, letter)
    return next_try(rules, letter, Try(at, failed - 1))


def target(rule: DeadRule, message: Message, why: WhyDead) -> tuple[str, str]:
    """Where an action puts a letter: a queue and its queue manager. The queue is empty if the letter names none."""
    if rule.action == "retry":
        return why.queue, why.manager
    queue = {"&DESTQ": why.queue, "&REPLYQ": message.reply_to_queue}.get(rule.queue, rule.queue)
    manager = {"&DESTQM": why.manager, "&REPLYQM": message.reply_to_queue_manager}.get(rule.manager, rule.manager)
    return queue, manager
