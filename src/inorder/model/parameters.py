"""Kinds of parameters: check values from Python, read values from texts, and refuse with one wording.

`check` is for values from Python; `read` is for texts: of a query, a header, a form, an option of Spark or of the
command. Both raise the same error, "NAME must be ALLOWED, not VALUE", with the kind's reason.
"""

from __future__ import annotations

import copy
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeGuard, TypeVar
from uuid import UUID

from ..errors import ArgumentError, Reason, bad_argument

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")

UNBOUNDED: Final = sys.float_info.max
"""The most seconds if there is no limit: a large integer could overflow a clock."""
TEXT_ID: Final = "text:"
"""Marks an id that is given as text, in places where an id is otherwise hexadecimal digits."""
WHOLE_MAX: Final = 2**63 - 1  # the largest integer that a store can keep
ID_LENGTH: Final = 24
BYTES_LIKE: Final = (bytes, bytearray, memoryview)  # made once: building a union costs more than the check
REAL: Final = (int, float)
INTEGER: Final = re.compile(r"[+-]?[0-9]{1,20}")
NUMBER: Final = re.compile(r"([0-9]{1,15}(\.[0-9]{0,20})?|\.[0-9]{1,20})([eE][-+]?[0-9]{1,3})?")
HEX: Final = re.compile(r"([0-9a-fA-F]{2})*")
POWERS: Final = {2**64 - 1: "2**64 - 1", 2**63 - 1: "2**63 - 1", -(2**63): "-2**63"}
NONE: Final[Mapping[str, Any]] = MappingProxyType({"None": None})
NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


def one_of(words: Iterable[object]) -> str:
    """The words of a choice, to be read after "must be"."""
    return f"one of: {', '.join(map(str, words))}"


def is_storable(value: str) -> bool:
    """Whether the text can be stored: Python allows lone surrogates, which UTF-8 does not."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_storable(text: str) -> str:
    """The text with an escape in place of each lone surrogate."""
    return text.encode(errors="backslashreplace").decode()


def is_integer(value: object) -> TypeGuard[int]:
    """Whether this is an integer; True, which Python counts as 1, is not."""
    return isinstance(value, int) and not isinstance(value, bool)


class ParameterKind(Generic[T]):
    """A kind of parameter.

    Args:
        allowed: the values in words, to be read after "must be".
        reason: the reason code of the refusal.
        also: further values by their words, such as "forever"; `read` accepts these words.
    """

    __slots__ = ("_words", "allowed", "also", "reason")
    schema: Mapping[str, Any] = NOTHING
    """The JSON schema of the texts that `read` takes."""
    types: frozenset[type] = frozenset()
    """The Python types whose values, if in range, are kept as they are or as an equal value of the first type."""

    def __init__(self, allowed: str, reason: Reason = Reason.ARGUMENT_ERROR, also: Mapping[str, Any] = NOTHING) -> None:
        self._words, self.reason = allowed, reason
        self._take(also)

    def _take(self, also: Mapping[str, Any]) -> None:
        *most, last = self._words, *also
        self.allowed = f"{', '.join(most)}, or {last}" if most else last
        self.also = also

    def taking(self, also: Mapping[str, Any] = NOTHING) -> Self:
        """The same kind with these further values instead of its own, for an interface with other words for them."""
        made = copy.copy(self)
        made._take(also)
        return made

    def worded(self, words: Mapping[Any, str]) -> Self:
        """The same kind for an interface with these words for the further values; a value without a word is refused."""
        return self.taking({word: value for value, word in words.items() if value in self.also.values()})

    def check(self, name: str, value: Any) -> Any:
        """Checks a value and returns it as it is stored. Raises ArgumentError if it is not of this kind."""
        raise NotImplementedError

    def read(self, name: str, text: str) -> Any:
        """Reads a value from a text. Raises ArgumentError if the text has none."""
        if text in self.also:
            return self.also[text]
        value = self._meant(text)
        if value is None:
            raise self.refusal(name, text)
        return value

    def refusal(self, name: str, value: object) -> ArgumentError:
        """Makes the error for a value that is not of this kind."""
        return bad_argument(name, value, self.allowed, self.reason)

    def _meant(self, text: str) -> T | None:
        raise NotImplementedError

    def _besides(self, name: str, value: Any) -> Any:
        """Finds one of the `also` values. Raises ArgumentError if this is none."""
        for one in self.also.values():
            if one is value or (isinstance(value, float) and value == one):
                return one
        raise self.refusal(name, value)


class Integer(ParameterKind[int]):
    """A whole number. `what` is the noun in its description, by default "an integer"; `words` replace all of it."""

    __slots__ = ("high", "low")
    types = frozenset({int})

    def __init__(
        self,
        low: int = 0,
        high: int = WHOLE_MAX,
        reason: Reason = Reason.ARGUMENT_ERROR,
        *,
        what: str = "an integer",
        words: str = "",
        also: Mapping[str, Any] = NOTHING,
    ) -> None:
        self.low, self.high = low, high
        bounds = f"{low}" if low == high else f"{what} from {_shown(low)} to {_shown(high)}"
        super().__init__(words or bounds, reason, also)

    def check(self, name: str, value: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool) and self.low <= value <= self.high:
            return int(value)
        return self._besides(name, value)

    def _meant(self, text: str) -> int | None:
        return int(text) if INTEGER.fullmatch(text) and self.low <= int(text) <= self.high else None

    @property
    def schema(self) -> Mapping[str, Any]:  # type: ignore[override]
        return {"type": "integer", "minimum": self.low, "maximum": self.high}


class Seconds(ParameterKind[float]):
    """A duration or a point in time; with `above`, the value must be above the lower bound."""

    __slots__ = ("above", "high", "low")
    types = frozenset({float, int})

    def __init__(
        self,
        low: float = 0,
        high: float = UNBOUNDED,
        reason: Reason = Reason.ARGUMENT_ERROR,
        *,
        above: bool = False,
        words: str = "",
        also: Mapping[str, Any] = NOTHING,
    ) -> None:
        self.low, self.high, self.above = low, high, above
        bounds = f"a number of seconds {'above' if above else 'from'} {_shown(low)}"
        if high < UNBOUNDED:
            bounds += f" {'and up to' if above else 'to'} {_shown(high)}"
        super().__init__(words or bounds, reason, also)

    def check(self, name: str, value: Any) -> Any:
        is_number = isinstance(value, REAL) and not isinstance(value, bool)
        if is_number and self.low <= value <= self.high and not (self.above and value == self.low):
            return float(value)
        return self._besides(name, value)

    def _meant(self, text: str) -> float | None:
        value = float(text) if NUMBER.fullmatch(text) else math.nan
        return value if self.low <= value <= self.high and not (self.above and value == self.low) else None

    @property
    def schema(self) -> Mapping[str, Any]:  # type: ignore[override]
        return {"type": "number", "exclusiveMinimum" if self.above else "minimum": self.low, "maximum": self.high}


class Choice(ParameterKind[str]):
    """One of some words."""

    __slots__ = ("words",)
    types = frozenset({str})

    def __init__(
        self, words: Iterable[str], reason: Reason = Reason.ARGUMENT_ERROR, *, also: Mapping[str, Any] = NOTHING
    ) -> None:
        self.words = tuple(words)
        super().__init__(one_of(self.words), reason, also)

    def check(self, name: str, value: Any) -> Any:
        if isinstance(value, str) and value in self.words:
            return str.__str__(value)  # a member of an enumeration becomes a plain str, which every store can keep
        return self._besides(name, value)

    def _meant(self, text: str) -> str | None:
        return text if text in self.words else None

    @property
    def schema(self) -> Mapping[str, Any]:  # type: ignore[override]
        return {"type": "string", "enum": list(self.words)}


class Switch(ParameterKind[bool]):
    """True or False; `words` are the texts for the two, and are also used in the refusal."""

    __slots__ = ("words",)
    schema = MappingProxyType({"type": "boolean"})
    types = frozenset({bool})

    def __init__(
        self,
        words: tuple[str, str] = ("True", "False"),
        reason: Reason = Reason.ARGUMENT_ERROR,
        *,
        also: Mapping[str, Any] = NOTHING,
    ) -> None:
        self.words = words
        super().__init__(", ".join(words) if also else " or ".join(words), reason, also)

    def check(self, name: str, value: Any) -> Any:
        if value is True or value is False:
            return value
        return self._besides(name, value)

    def _meant(self, text: str) -> bool | None:
        return text == self.words[0] if text in self.words else None


class Text(ParameterKind[str]):
    """A text with a limited length; `fits` restricts it further, and `words` then describe it. Can trim trailing
    blanks.
    """

    __slots__ = ("fits", "least", "most", "trimmed")
    types = frozenset({str})

    def __init__(
        self,
        most: int,
        reason: Reason = Reason.ARGUMENT_ERROR,
        *,
        least: int = 0,
        words: str = "",
        fits: Callable[[str], bool] = is_storable,
        trimmed: bool = False,
        also: Mapping[str, Any] = NOTHING,
    ) -> None:
        self.least, self.most, self.fits, self.trimmed = least, most, fits, trimmed
        counted = f"{least:,} to {most:,}" if least else f"at most {most:,}"
        super().__init__(words or f"a text of {counted} characters", reason, also)

    def check(self, name: str, value: Any) -> Any:
        if isinstance(value, str) and self.least <= len(value) <= self.most and self.fits(value):
            return value.rstrip(" \0") if self.trimmed else str.__str__(value)
        return self._besides(name, value)

    def _meant(self, text: str) -> str | None:
        return text if self.least <= len(text) <= self.most and self.fits(text) else None

    @property
    def schema(self) -> Mapping[str, Any]:  # type: ignore[override]
        return {"type": "string", "minLength": self.least, "maxLength": self.most}


class Octets(ParameterKind[bytes]):
    """Bytes of a fixed length; shorter values are padded with NUL; a text is read as hexadecimal digits.

    A `named` id may also be a text, which is encoded as UTF-8, a UUID, or `text:` followed by a text.
    """

    __slots__ = ("least", "length", "named")
    types = frozenset({bytes})

    def __init__(self, length: int, reason: Reason = Reason.MD_ERROR, *, least: int = 1, named: bool = False) -> None:
        self.length, self.least, self.named = length, least, named
        words = f"bytes (at most {length})"
        super().__init__(
            f"{words}, a text of at most as many bytes in UTF-8, or a uuid.UUID" if named else words, reason
        )

    def check(self, name: str, value: Any) -> bytes:
        given = value
        if self.named and isinstance(value, str) and is_storable(value):
            given = value.encode()
        elif self.named and isinstance(value, UUID):
            given = value.bytes
        try:
            octets = bytes(given) if isinstance(given, BYTES_LIKE) else None
        except ValueError:  # a memoryview that was released
            octets = None
        if octets is None or len(octets) > self.length:
            raise self.refusal(name, value)
        return octets.ljust(self.length, b"\0")

    def read(self, name: str, text: str) -> bytes:
        found = self._meant(text)
        if found is None or not self.least <= len(found) <= self.length:
            raise bad_argument(name, text, self.readable, self.reason)
        return found.ljust(self.length, b"\0")

    @property
    def readable(self) -> str:
        """The texts that `read` accepts, in words."""
        digits, counted = (f"{2 * self.least} to ", f"{self.least} to ") if self.least else ("at most ", "at most ")
        words = f"{digits}{2 * self.length} hexadecimal digits, two for each byte"
        return f"{words}, or {TEXT_ID} and a text of {counted}{self.length} bytes" if self.named else words

    def _meant(self, text: str) -> bytes | None:
        if self.named and text.startswith(TEXT_ID):
            made_up = text.removeprefix(TEXT_ID)
            return made_up.encode() if is_storable(made_up) else None
        return bytes.fromhex(text) if HEX.fullmatch(text) else None

    @property
    def schema(self) -> Mapping[str, Any]:  # type: ignore[override]
        pattern = f"([0-9a-fA-F]{{2}}){{{self.least},{self.length}}}"
        if self.named:
            pattern += f"|{TEXT_ID}.{{{self.least},{self.length}}}"
        return {"type": "string", "pattern": f"^({pattern})$"}


def _shown(bound: float) -> str:
    if bound in POWERS:
        return POWERS[int(bound)]
    return f"{int(bound):,}" if math.isfinite(bound) and bound == int(bound) else f"{bound:,}"
