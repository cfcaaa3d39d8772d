"""Work that fails is tried again later: what is kept of a failure with the message, and how long it waits.

A message whose unit of work is backed out returns to its place with one more in its backout count. The back out may
say how long it is not to be read, and why the work failed. The time is that of a delivery delay: a relaxed reader
passes the message over, a strict one waits behind it (B-26). Why is kept among its properties, so that it is with the
message wherever it goes, and everybody sees it who sees the message:

    retry.error     what went wrong, in words; cut where it is long
    retry.time      when, seconds since 1970
    retry.attempt   which attempt that was: the backout count since then
    retry.since     if a target has not taken what the work puts: since when, seconds since 1970
    retry.work      which work has failed, where a program keeps several apart
    retry.tries     how often that work has failed in a row
    retry.given_up  if no other attempt is to be made: the reason of the dead letter that it is to be, 0 if it is to be
                    removed; then the number and the origin of its unique id

The next failure replaces them, and a dead letter has them as its own (`rules.dead_letters`). If the backout count is
above `retry.attempt`, the attempts since then ended without a word: their program was killed, or backed out plainly.

That a message is given up holds where it lies. On another queue, or in another store, it is another message, and is
worked on as any other: its unique id is another one, or it has not been backed out there as often.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from ..errors import ArgumentError, bad_argument
from ..model.message import Message, UniqueId
from ..model.properties import Properties

PREFIX: Final = "retry."
GIVEN_UP: Final = "retry.given_up"
ERROR_CHARACTERS_MAX: Final = 1_000
FACTOR_MAX: Final = 1_000.0
SECONDS_MAX: Final = 99_999_999.9  # of a delivery delay
_KINDS: Final[Mapping[str, type]] = {
    "error": str, "time": float, "attempt": int, "work": str, "tries": int, "given_up": str, "since": float,
}  # fmt: skip
REASON_DIGITS_MAX: Final = 10
_ALWAYS: Final = {"error", "time", "attempt"}


class GivenUp(NamedTuple):
    """No other attempt is to be made of a message.

    Args:
        uid: which one; of a group the first.
        reason: of the dead letter that it is to be; 0: it is to be removed.
    """

    uid: UniqueId
    reason: int = 0

    @property
    def text(self) -> str:
        return f"{self.reason:d} {self.uid.number} {self.uid.origin}"


class Later(NamedTuple):
    """How a unit is backed out whose work has failed.

    Args:
        delay: seconds before what the unit got may be read again; 0: at once.
        error: what went wrong, in words; empty: nothing is kept of it.
        work: which work it was; empty: it is not counted by itself.
        given_up: a message that the unit got and that is not to be tried again; the error is kept with it.
        since: since when a target has not taken what the work puts, seconds since 1970; 0: the work failed otherwise.
        counts: whether an attempt is used up. If not, the backout counts stay as they are.
    """

    delay: float = 0.0
    error: str = ""
    work: str = ""
    given_up: GivenUp | None = None
    since: float = 0.0
    counts: bool = True


class Failure(NamedTuple):
    """What is kept with a message of the last attempt that failed.

    Args:
        work, tries: which work it was, and how often it has failed in a row; empty and 0: it is not counted by itself.
        given_up: what is to become of the message, as `GivenUp.text` says it; empty: it is to be tried again.
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
    """What is to be kept of an attempt that has failed now."""
    last = failure_of(message)
    before = last.tries if last is not None and last.work == later.work else 0
    final = later.given_up.text if later.given_up and later.given_up.uid == message.uid else ""
    return Failure(later.error, now, attempt, later.work, before + 1 if later.work else 0, final, later.since)


def noted(message: Message, failure: Failure) -> Properties:
    """The message's properties with this failure among them; as they were, where it finds no room (2478, 2498)."""
    said = failure._asdict() | {"error": failure.error[:ERROR_CHARACTERS_MAX]}
    try:
        header = {PREFIX + name: value for name, value in said.items() if value or name in _ALWAYS}
        return Properties(dict(without(message)) | header)
    except ArgumentError:
        return message.properties


def without(message: Message) -> Properties:
    """The message's properties as its putter gave them."""
    text = message.properties.text
    if text is None or PREFIX not in text:
        return message.properties
    return Properties({name: value for name, value in message.properties.items() if not name.startswith(PREFIX)})


def failure_of(message: Message) -> Failure | None:
    """What is kept of the last failure; None: there was none, or it left nothing."""
    text = message.properties.text
    if text is None or PREFIX not in text:
        return None
    values = {name: message.properties.get(PREFIX + name) for name in Failure._fields}
    said = {name: value for name, value in values.items() if value is not None}
    if any(not isinstance(value, _KINDS[name]) for name, value in said.items()) or not said.keys() >= _ALWAYS:
        return None  # anybody may write such properties
    return Failure(**said)


def given_up(message: Message) -> GivenUp | None:
    """What is to become of a message that a failure has given up where it lies; None: it is to be worked on."""
    text = message.properties.text
    if text is None or GIVEN_UP not in text:  # what only failed is not read for this
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
    """How long a message waits between attempts: longer after each, up to a limit.

    Args:
        first: seconds after the first attempt, from 0.
        factor: by how much each wait is longer than the one before, 1 to 1,000.
        most: seconds that no wait is longer than, but for the jitter; from `first`, at most 99,999,999.
        jitter: how much a wait may be longer or shorter at random, as a part of it, 0 to 1: what failed together does
            not come back together.

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
        """Seconds to wait after this attempt, from 1; `luck`: a random number from 0 up to 1."""
        try:
            wait = min(self.most, self.first * self.factor ** (attempt - 1))
        except OverflowError:
            wait = self.most if self.first else 0.0
        return min(SECONDS_MAX, wait * (1 + self.jitter * (2 * luck - 1)))


def _check(name: str, value: object, least: float, most: float) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not least <= value <= most:  # type: ignore[arg-type, operator]
        raise bad_argument(name, value, f"a number from {least:,} to {most:,}")
