"""Splits the text of a command into tokens: words, quoted texts, parentheses, and the end.

Blanks and commas separate tokens. A word has letters, digits and . / _ % *, and is converted to capital letters;
a value with any other character must be in single quotes, and a quote in it must be doubled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from .errors import MqscSyntaxError, ScriptPosition, shown, syntax_error
from .lines import CommandText

TokenKind = Literal["word", "text", "(", ")", ";", "end"]
WORD: Final = re.compile(r"[A-Za-z0-9./_%*]+")
QUOTED: Final = re.compile(r"'((?:[^']|'')*)'")
SEPARATORS: Final = re.compile(r"[ \t,]+")
SIGNS: Final[Mapping[str, TokenKind]] = MappingProxyType({"(": "(", ")": ")", ";": ";"})
UNQUOTED: Final = "A-Z a-z 0-9 . / _ % *"


@dataclass(frozen=True, slots=True)
class CommandToken:
    """A piece of a command.

    Args:
        value: a word in capital letters, or a quoted text without its quotes.
        at: its beginning.
    """

    kind: TokenKind
    value: str
    at: ScriptPosition

    @property
    def is_value(self) -> bool:
        return self.kind in ("word", "text")

    @property
    def found(self) -> str:
        """Names the token for an error."""
        return "the end of the command" if self.kind == "end" else shown(self.value)

    def refused(self, allowed: str, *, nearest: Sequence[str] = ()) -> MqscSyntaxError:
        """Makes the error for this token in the wrong place; the arguments are those of `syntax_error`."""
        return syntax_error(self.at, self.found, allowed, nearest=nearest)


def tokens_of(text: CommandText) -> Iterator[CommandToken]:
    """The tokens of a command; the last one is its end.

    Raises MqscSyntaxError for a character that must be quoted, or a quote that is never closed.
    """
    offset = 0
    while offset < len(text.text):
        if blanks := SEPARATORS.match(text.text, offset):
            offset = blanks.end()
            continue
        token, offset = _token(text, offset)
        yield token
    yield CommandToken("end", "", text.position(len(text.text)))


def _token(text: CommandText, offset: int) -> tuple[CommandToken, int]:
    at = text.position(offset)
    character = text.text[offset]
    if (sign := SIGNS.get(character)) is not None:
        return CommandToken(sign, character, at), offset + 1
    if word := WORD.match(text.text, offset):
        return CommandToken("word", word[0].upper(), at), word.end()
    if character != "'":
        raise syntax_error(at, shown(character), f"{UNQUOTED} outside single quotes")
    quoted = QUOTED.match(text.text, offset)
    if quoted is None:
        raise syntax_error(at, "a single quote that is never closed", "a closing one; a quote in a text is written ''")
    return CommandToken("text", quoted[1].replace("''", "'"), at), quoted.end()
