"""Kinds of parameters: those that only our own interface has, and its forms of the shared ones."""

from __future__ import annotations

from typing import Any, Final

from ...errors import ArgumentError
from ...model.options import MATCHABLE, Matchable
from ...model.parameters import TEXT_ID, Integer, Octets, ParameterKind, Switch
from ...rules.browse_token import decode
from .describing import ApiParameter

ID_MAX: Final = 2**64 - 1
HELD_UNDER: Final = Integer(1, ID_MAX)
FLAG: Final = Switch(("true", "false"))


def flag(name: str, summary: str, *, default: bool = False, **more: Any) -> ApiParameter:
    """A parameter that is true or false."""
    return ApiParameter(name, summary, FLAG, default=default, **more)


def _matching(one: Matchable) -> ApiParameter:
    named = isinstance(one.kind, Octets) and one.kind.named
    how = f" In hex, or {TEXT_ID}TEXT; a shorter one gets NULs." if named else ""
    return ApiParameter(one.name, f"Only {one.doc}{how}", one.kind)


MATCHING: Final = tuple(_matching(one) for one in MATCHABLE)


class BrowseCursor(ParameterKind[str]):
    """The position of a strict browse, from an earlier answer; `allowed` names that answer."""

    __slots__ = ()
    most: Final = 4_000
    schema = {"type": "string", "minLength": 1, "maxLength": most}  # noqa: RUF012 - a constant

    def _meant(self, text: str) -> str | None:
        try:
            if len(text) <= self.most:
                decode(text)
                return text
        except ArgumentError:
            pass
        return None
