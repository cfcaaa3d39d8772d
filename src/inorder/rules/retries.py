"""Failed work that is tried again later: the record of a failure in the message, and the delay.

A message whose unit of work is backed out returns to its place, with its backout count raised by one. The back out may
give a delay before it can be read again, and the error. The delay works like a delivery delay: a relaxed reader
skips the message, a strict one waits for it (B-26). The error is stored in the message's properties, so that it stays
with the message wherever that goes, and every reader of the message sees it:

    retry.error     a description of the error, cut if it is long
    retry.time      when, seconds since 1970
    retry.attempt   the number of the attempt: the backout count after it
    retry.since     if a target refuses the messages that the work puts: since when, seconds since 1970
    retry.work      the failed work, if a program runs several kinds
    retry.tries     the number of failures of that work in a row
    retry.earlier   if the message has the property job.keep: the failures before the last one, as JSON
    retry.given_up  if no other attempt is to be made: the reason of the dead letter to be made, 0 if the message is to
                    be removed; then the number and the origin of its unique id

The next failure replaces these, and a dead letter has its own properties for them (`rules.dead_letters`). If the
backout count is above `retry.attempt`, later attempts ended without a record: their program was killed, or just backed
out.

A message is given up only on this queue. On another queue, or in another store, it is a different message and is worked
on as usual: it has another unique id, or fewer backouts there.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ..errors import ArgumentError, bad_argument
from ..model.fields import EXPIRY_SECONDS_MAX
from ..model.message import Message, UniqueId
from ..model.properties import Properties

PREFIX: Final = "retry."
GIVEN_UP: Final = "retry.given_up"
EARLIER: Final = "retry.earlier"
KEEP: Final = "job.keep"  # the sender wants the result, and all failures; see `work.results`
EARLIER_MAX: Final = 20
EARLIER_CHARACTERS_MAX: Final = 200  # of each error
ERROR_CHARACTERS_MAX: Final = 1_000
FACTOR_MAX: Final = 1_000.0
SECONDS_MAX: Final = EXPIRY_SECONDS_MAX  # the limit of a delivery delay
_KINDS: Final[Mapping[str, type]] = {
    "error": str, "time": float, "attempt": int, "work": str, "tries": int, "given_up": str, "since": float,
}  # fmt: skip
REASON_DIGITS_MAX: Final = 10
_ALWAYS: Final = {"error", "time", "attempt"}


class GivenUp(NamedTuple):
    """A message that is not to be tried again.

    Args:
        uid: its unique id; for a group that of the first message.
        reason: the reason of the dead letter to be made; 0: the message is to be removed.
    """

    uid: UniqueId
    reason: int = 0

    @property
    def text(self) -> str:
        return f"{self.reason:d} {self.uid.number} {self.uid.origin}"


class Later(NamedTuple):
    """How to back out a unit whose work has failed.

    Args:
        delay: seconds before the unit's messages may be read again; 0: immediately.
        error: a description of the error; empty: none is recorded.
        work: the name of the work; empty: failures are not counted by name.
        given_up: a message of the unit that is not to be tried again; the error is stored with it.
        since: since when a target refuses the messages that the work puts, seconds since 1970; 0: another error.
        counts: whether this uses up an attempt. If not, the backout counts stay unchanged.
    """

    delay: float = 0.0
    error: str = ""
    work: str = ""
    given_up: GivenUp | None = None
    since: float = 0.0
    counts: bool = True


class Failure(NamedTuple):
    """The record of the last failed attempt in a message.

    Args:
        work, tries: the name of the work, and its number of failures in a row; empty and 0: not counted by name.
        given_up: how the message was given up, as `GivenUp.text`; empty: try again.
        since: as in `Later`.
    """

    error: str
    time: float
    attempt: int
    work: str = ""
    tries: int = 0
    given_up: str = ""
    since: float = 0.0


def failed(message: Message, later: Later, now: float, attempt: int) -> Failure:
    """Makes the record of an attempt that has failed now."""
    last = failure_of(message)
    before = last.tries if last is not None and last.work == later.work else 0
    final = later.given_up.text if later.given_up and later.given_up.uid == message.uid else ""
    return Failure(later.error, now, attempt, later.work, before + 1 if later.work else 0, final, later.since)


def noted(message: Message, failure: Failure) -> Properties:
    """The message's properties with this failure recorded; unchanged if there is no room for it (2478, 2498)."""
    said = failure._asdict() | {"error": failure.error[:ERROR_CHARACTERS_MAX]}
    header = {PREFIX + name: value for name, value in said.items() if value or name in _ALWAYS}
    own = dict(without(message))
    for given in (own | header | _earlier(message), own | header):
        try:
            return Properties(given)
        except ArgumentError:
            continue
    return message.properties


def _earlier(message: Message) -> dict[str, str]:
    """The property with the failures before this one, if the message keeps them."""
    failures = [(attempt, at, _brief(error)) for attempt, at, error in failed_attempts(message)]
    if not failures or KEEP not in message.properties:
        return {}
    return {EARLIER: json.dumps(failures[-EARLIER_MAX:], ensure_ascii=False)}


def _brief(error: str) -> str:
    """The beginning of a long description, and its end in parentheses, which is the place of the error."""
    place = error[error.rfind(" (") :] if error.endswith(")") else ""
    if len(error) <= EARLIER_CHARACTERS_MAX or len(place) >= EARLIER_CHARACTERS_MAX:
        return error[:EARLIER_CHARACTERS_MAX]
    return error[: EARLIER_CHARACTERS_MAX - len(place)] + place


def failed_attempts(message: Message) -> Sequence[tuple[int, float, str]]:
    """The attempts that have failed: number, time, error. If the message keeps them, the last one and at most 20 before
    it; else the last one. A failure that used up no attempt is not among them.
    """
    last, earlier = failure_of(message), earlier_failures(message)
    if last is None or last.attempt == (earlier[-1][0] if earlier else 0):
        return earlier
    return [*earlier, (last.attempt, last.time, last.error)]


def earlier_failures(message: Message) -> Sequence[tuple[int, float, str]]:
    """The failures before the last one, if the message keeps them, at most 20: attempt, time, error."""
    text = message.properties.text
    kept = message.properties.get(EARLIER) if text is not None and EARLIER in text else None
    try:
        return [(int(number), float(at), str(error)) for number, at, error in json.loads(kept)] if kept else []
    except (TypeError, ValueError, OverflowError):
        return []  # any program may write such properties


def without(message: Message) -> Properties:
    """The properties that the message was put with."""
    text = message.properties.text
    if text is None or PREFIX not in text:
        return message.properties
    return Properties({name: value for name, value in message.properties.items() if not name.startswith(PREFIX)})


def failure_of(message: Message) -> Failure | None:
    """Reads the record of the last failure; None if there is none."""
    text = message.properties.text
    if text is None or PREFIX not in text:
        return None
    values = {name: message.properties.get(PREFIX + name) for name in Failure._fields}
    said = {name: value for name, value in values.items() if value is not None}
    if any(not isinstance(value, _KINDS[name]) for name, value in said.items()) or not said.keys() >= _ALWAYS:
        return None  # any program may write such properties
    return Failure(**said)


def given_up(message: Message) -> GivenUp | None:
    """Returns how a message was given up on this queue; None: it was not, so work on it."""
    text = message.properties.text
    if text is None or GIVEN_UP not in text:  # a fast exit for messages that failed but were not given up
        return None
    last = failure_of(message)
    if last is None or message.uid is None or not 0 < last.attempt <= message.backout_count:
        return None
    reason = last.given_up.partition(" ")[0]
    if not reason.isdecimal() or len(reason) > REASON_DIGITS_MAX:
        return None
    found = GivenUp(message.uid, int(reason))
    return found if found.text == last.given_up else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """The wait of a message between attempts: longer after each, up to a limit.

    Args:
        first: seconds after the first attempt, from 0.
        factor: multiplies the wait after each attempt, 1 to 1,000.
        most: the longest wait in seconds, without the jitter; from `first`, at most 99,999,999.
        jitter: the fraction by which a wait is lengthened or shortened at random, 0 to 1, so that messages that failed
            together do not return together.

    Raises: ArgumentError, a value is out of its range.
    """

    first: float = 1.0
    factor: float = 2.0
    most: float = 600.0
    jitter: float = 0.1

    def __post_init__(self) -> None:
        _check("first", self.first, 0, SECONDS_MAX)
        _check("factor", self.factor, 1, FACTOR_MAX)
        _check("most", self.most, self.first, SECONDS_MAX)
        _check("jitter", self.jitter, 0, 1)

    def after(self, attempt: int, luck: float) -> float:
        """Seconds to wait after this attempt, from 1; `luck` is a random number from 0 up to 1."""
        try:
            wait = min(self.most, self.first * self.factor ** (attempt - 1))
        except OverflowError:
            wait = self.most if self.first else 0.0
        return min(SECONDS_MAX, wait * (1 + self.jitter * (2 * luck - 1)))


def _check(name: str, value: object, least: float, most: float) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not least <= value <= most:  # type: ignore[arg-type, operator]
        raise bad_argument(name, value, f"a number from {least:,} to {most:,}")
