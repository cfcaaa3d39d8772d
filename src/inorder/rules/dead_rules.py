"""A table of rules for dead letters, as MQ's runmqdlq has it: which rule a letter falls under, and which one is next.

The rules are judged in their order. The first one whose patterns all fit is tried; if its action fails, as often as its
RETRY says; then the next one behind it that fits. Where none is left the letter stays, as if by IGNORE::

    fits(first rule) -> try, 1 .. RETRY times -> done
                              | all have failed
                              v
    fits(next rule)  -> try, 1 .. RETRY times -> done
                              | none is left
                              v
                            ignored

In a pattern `*` stands for any characters and `?` for one; blanks at the end do not count. A number is compared as a
number. What a letter says of its queue manager, if nothing, is this one.
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
# How many characters the field has; of a number 0.
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
# For these the letter says which queue, or which queue manager.
SYMBOLS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"FWDQ": ("&DESTQ", "&REPLYQ"), "FWDQM": ("&DESTQM", "&REPLYQM")}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadRule:
    """One rule.

    Args:
        line: where it begins in its file, from 1.
        patterns: what a letter must be, by MQ's keywords; a field that is not there may be anything.
        queue, manager: of "fwd": where to, or one of `SYMBOLS`; an empty manager is this one.
        header: of "fwd": the letter keeps what says why it is dead.
        tries: how often the action is tried, from 1.
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
        rules: in the order in which they are judged.
        queue: where the dead letters lie; empty: where the queue manager puts them.
        manager: the queue manager that the table is for; empty: any.
        retry_seconds: between two tries.
        wait: seconds for which the next letter is waited for when nothing is left to do; 0: not at all; `FOREVER`.
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
    """Which rule is tried next, and how often it has failed before."""

    rule: int
    failed: int = 0


def facts(message: Message, why: WhyDead, manager: str) -> dict[str, Value]:
    """What a letter is, by the keywords of patterns.

    Args:
        manager: the name of the queue manager that it lies with.
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
    """Whether a letter, as `facts` has it, falls under a rule."""
    return all(_is_like(letter[name], pattern) for name, pattern in rule.patterns.items())


def _is_like(value: Value, pattern: Value) -> bool:
    if isinstance(pattern, int):
        return value == pattern
    expression = "".join({"*": ".*", "?": "."}.get(sign) or re.escape(sign) for sign in pattern.rstrip(" "))
    return re.fullmatch(expression, str(value).rstrip(" "), re.DOTALL) is not None


def first_try(rules: Sequence[DeadRule], letter: Mapping[str, Value], behind: int = -1) -> Try | None:
    """The first rule behind another one under which a letter falls; None: there is none."""
    return next((Try(at) for at in range(behind + 1, len(rules)) if fits(rules[at], letter)), None)


def next_try(rules: Sequence[DeadRule], letter: Mapping[str, Value], last: Try) -> Try | None:
    """What is tried when a try has failed: the same rule again, or the next one that fits; None: the letter stays."""
    failed = last.failed + 1
    if failed < rules[last.rule].tries:
        return Try(last.rule, failed)
    return first_try(rules, letter, last.rule)


def sign(rule: DeadRule) -> str:
    """Names a rule by what it does, wherever it stands in a table, and however often it is tried."""
    said = rule.action, sorted(rule.patterns.items()), rule.queue, rule.manager, rule.header
    return f"rule {hashlib.sha256(repr(said).encode()).hexdigest()[:SIGN_LENGTH]}"


def try_after(rules: Sequence[DeadRule], letter: Mapping[str, Value], signed: str, failed: int) -> Try | None:
    """What is tried of a letter at which a rule has failed so often, maybe in an earlier run; None: the letter stays.

    A rule that is not in the table any more counts for nothing.
    """
    at = next((at for at, rule in enumerate(rules) if sign(rule) == signed and fits(rule, letter)), None)
    if at is None or failed < 1:
        return first_try(rules, letter)
    return next_try(rules, letter, Try(at, failed - 1))


def target(rule: DeadRule, message: Message, why: WhyDead) -> tuple[str, str]:
    """Where an action puts a letter: a queue, and its queue manager. An empty queue: the letter names none."""
    if rule.action == "retry":
        return why.queue, why.manager
    queue = {"&DESTQ": why.queue, "&REPLYQ": message.reply_to_queue}.get(rule.queue, rule.queue)
    manager = {"&DESTQM": why.manager, "&REPLYQM": message.reply_to_queue_manager}.get(rule.manager, rule.manager)
    return queue, manager
