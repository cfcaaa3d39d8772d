"""What goes wrong with an MQSC script before anything is done; a branch of the tree in `inorder.errors`.

::

    InorderError
    └── CallerError
        └── MqscSyntaxError          a command is not in the language: where, what was found, what is allowed
            └── Unsupported              it is in MQ's, and asks for something that is not here
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...errors import CallerError, Reason, nearest_names

FOUND_MAX = 40


class ScriptPosition(NamedTuple):
    """A place in a script, counted from 1."""

    line: int
    column: int


class MqscSyntaxError(CallerError):
    """A command is not valid MQSC; data: line, column, found, allowed, nearest (the names most like it)."""

    reason = Reason.ARGUMENT_ERROR

    @property
    def what(self) -> str:
        """What was found, and what is allowed, without the place."""
        return str(self.args[0]).partition(": ")[2]


class Unsupported(MqscSyntaxError):
    """MQ has it, and it asks for something that is not here; data: also what, and the keyword of an
    attribute."""


def unsupported(at: ScriptPosition, what: str, why: str, allowed: str, *, keyword: str | None = None) -> Unsupported:
    """The error for what MQ has and we have not.

    Args:
        what: a command, an object or an attribute, as in "MQ's object CHANNEL".
        why: a sentence about what is not there.
        keyword: of an attribute: a command without it may be run.
    """
    found = f"{what}, which is not supported: {why}"
    text = f"line {at.line}, column {at.column}: found {found}; allowed is {allowed}"
    return Unsupported(
        text, line=at.line, column=at.column, found=found, allowed=allowed, nearest=[], what=what, keyword=keyword
    )


def syntax_error(at: ScriptPosition, found: str, allowed: str, *, nearest: Sequence[str] = ()) -> MqscSyntaxError:
    """The error for what does not belong where it stands.

    Args:
        at: where it begins.
        found: what is there, in words.
        allowed: what may be there, to be read after "allowed is".
        nearest: the names that might be meant.
    """
    hint = f" (nearest: {', '.join(nearest)})" if nearest else ""
    text = f"line {at.line}, column {at.column}: found {found}; allowed is {allowed}{hint}"
    return MqscSyntaxError(text, line=at.line, column=at.column, found=found, allowed=allowed, nearest=list(nearest))


def unknown_word(at: ScriptPosition, word: str, what: str, known: Iterable[str]) -> MqscSyntaxError:
    """The error for a word that is none of those known: with the nearest ones, or else with all.

    Args:
        what: what it should be, to be read after "allowed is".
    """
    names = list(known)
    near = nearest_names(word, names)
    return syntax_error(at, shown(word), what if near else f"{what}: {', '.join(names)}", nearest=near)


def shown(text: str) -> str:
    """A piece of a script as an error shows it."""
    return repr(text if len(text) <= FOUND_MAX else f"{text[: FOUND_MAX - 3]}...")
