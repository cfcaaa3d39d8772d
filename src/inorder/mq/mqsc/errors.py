"""Errors in an MQSC script, found before it is run; a branch of the tree in `inorder.errors`.

::

    InorderError
    └── CallerError
        └── MqscSyntaxError          a command is not valid: the place, the text found, the allowed text
            └── Unsupported              it is valid in MQ, but asks for something unsupported
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
    """A command is not valid MQSC; data: line, column, found, allowed, nearest (the most similar names)."""

    reason = Reason.ARGUMENT_ERROR

    @property
    def what(self) -> str:
        """The text that was found, and the allowed text, without the place."""
        return str(self.args[0]).partition(": ")[2]


class Unsupported(MqscSyntaxError):
    """Valid in MQ, but asks for something that is not supported; data: also what, and the keyword of an
    attribute.
    """


def unsupported(at: ScriptPosition, what: str, why: str, allowed: str, *, keyword: str | None = None) -> Unsupported:
    """Makes the error for something that MQ supports and we do not.

    Args:
        what: a command, an object or an attribute, as in "MQ's object CHANNEL".
        why: a sentence about the missing feature.
        keyword: the keyword of an attribute, without which the command may be run.
    """
    found = f"{what}, which is not supported: {why}"
    text = f"line {at.line}, column {at.column}: found {found}; allowed is {allowed}"
    return Unsupported(
        text, line=at.line, column=at.column, found=found, allowed=allowed, nearest=[], what=what, keyword=keyword
    )


def syntax_error(at: ScriptPosition, found: str, allowed: str, *, nearest: Sequence[str] = ()) -> MqscSyntaxError:
    """Makes the error for text in the wrong place.

    Args:
        at: where it begins.
        found: a description of the text.
        allowed: a description of allowed texts, to be read after "allowed is".
        nearest: the names that might be meant.
    """
    hint = f" (nearest: {', '.join(nearest)})" if nearest else ""
    text = f"line {at.line}, column {at.column}: found {found}; allowed is {allowed}{hint}"
    return MqscSyntaxError(text, line=at.line, column=at.column, found=found, allowed=allowed, nearest=list(nearest))


def unknown_word(at: ScriptPosition, word: str, what: str, known: Iterable[str]) -> MqscSyntaxError:
    """Makes the error for an unknown word: with the most similar ones, or otherwise with all.

    Args:
        what: the kind of word, to be read after "allowed is".
    """
    names = list(known)
    near = nearest_names(word, names)
    return syntax_error(at, shown(word), what if near else f"{what}: {', '.join(names)}", nearest=near)


def shown(text: str) -> str:
    """Formats a piece of a script for an error."""
    return repr(text if len(text) <= FOUND_MAX else f"{text[: FOUND_MAX - 3]}...")
