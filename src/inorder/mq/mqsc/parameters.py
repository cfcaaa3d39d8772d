"""The parameters after the name of an object: keywords, some with values, each only once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from ..words import SYNONYMS, MqWord
from .errors import syntax_error, unsupported
from .tokens import CommandToken
from .words import QUEUE_KEYWORDS, is_switch

SWITCHES: Final = ("REPLACE", "PURGE", *(word for word, each in QUEUE_KEYWORDS.items() if is_switch(each)))


@dataclass(frozen=True, slots=True)
class Parameter:
    """A keyword, and the values in parentheses after it; None without parentheses."""

    token: CommandToken
    values: tuple[CommandToken, ...] | None

    @property
    def keyword(self) -> str:
        return SYNONYMS.get(self.token.value, self.token.value)

    @property
    def topic(self) -> str:
        """The subject: SHARE for NOSHARE, so that no subject occurs twice."""
        bare = self.keyword.removeprefix("NO")
        return bare if bare in SWITCHES else self.keyword

    def value(self, allowed: str) -> CommandToken:
        """The single value. Raises MqscSyntaxError if there is none, or more than one."""
        if self.values is None:
            raise syntax_error(self.token.at, f"{self.keyword} without a value", allowed)
        if len(self.values) != 1:
            raise self.values[1].refused(f"one value, as in {allowed}")
        return self.values[0]

    def word(self, words: Collection[str]) -> str:
        """The single value, which must be one of these words. Raises MqscSyntaxError."""
        allowed = " or ".join(f"{self.keyword}({word})" for word in words)
        token = self.value(allowed)
        if token.value not in words:
            raise token.refused(allowed)
        return token.value

    def refuse_value(self, allowed: str) -> None:
        if self.values is not None:
            raise syntax_error(self.values[0].at, f"a value after {self.keyword}", allowed)


class Tokens:
    """The tokens of a command, taken from the left."""

    def __init__(self, tokens: Sequence[CommandToken]) -> None:
        self._tokens = tokens
        self._next = 0

    @property
    def next(self) -> CommandToken:
        return self._tokens[self._next]

    def take(self) -> CommandToken:
        token = self.next
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token

    def take_kind(self, kind: str, allowed: str) -> CommandToken:
        if self.next.kind != kind:
            raise self.next.refused(allowed)
        return self.take()

    def take_end(self) -> None:
        if self.next.kind == ";":
            self.take()
            self.take_kind("end", "nothing after the semicolon: each command must begin on a new line")
        self.take_kind("end", "the end of the command")

    def take_values(self, keyword: str) -> tuple[CommandToken, ...]:
        """Takes the values in parentheses, and the parentheses."""
        self.take_kind("(", f"{keyword}(...)")
        values = []
        while self.next.is_value:
            values.append(self.take())
        if not values:
            raise self.next.refused(f"a value in {keyword}(...); ' ' is an empty value")
        self.take_kind(")", f"a closing parenthesis after {keyword}({values[-1].value}")
        return tuple(values)

    def take_parameters(self) -> list[Parameter]:
        """Takes everything up to and including the end of the command; no subject may occur twice."""
        found: dict[str, Parameter] = {}
        while self.next.kind not in ("end", ";"):
            parameter = self._take_parameter()
            if parameter.topic in found:
                raise syntax_error(parameter.token.at, f"{parameter.keyword} again", f"{parameter.topic} only once")
            found[parameter.topic] = parameter
        self.take_end()
        return list(found.values())

    def _take_parameter(self) -> Parameter:
        token = self.take_kind("word", "a keyword")
        return Parameter(token, self.take_values(token.value) if self.next.kind == "(" else None)


def ignores_state(parameter: Parameter) -> bool:
    """Reads IGNSTATE: whether the command succeeds if the object is already in the state that it asks for."""
    return parameter.word(("NO", "YES")) == "YES"


def refuse_all(parameters: Iterable[Parameter]) -> None:
    """Raises MqscSyntaxError if a command without parameters has any."""
    for each in parameters:
        raise each.token.refused("nothing more")


def without_effect(parameter: Parameter, unsupported_names: Mapping[str, MqWord]) -> str:
    """The keyword, if its value has no effect here. Raises Unsupported if it asks for an unsupported feature."""
    known = unsupported_names[parameter.keyword]
    value = None if parameter.values is None else " ".join(token.value for token in parameter.values)
    if not known.is_harmless(value):
        refuse_unsupported(parameter, known)
    return parameter.keyword


def refuse_unsupported(parameter: Parameter, known: MqWord, *, is_shown: bool = False) -> NoReturn:
    """Raises Unsupported with the reason. `is_shown`: it is asked for, and has no value."""
    at = parameter.token.at
    allowed = "a command without it"
    harmless = " or ".join(f"{parameter.keyword}({each})" for each in sorted(filter(None, known.harmless)))
    if harmless and not is_shown:
        allowed += f", or {harmless}"
    raise unsupported(at, f"MQ's attribute {parameter.keyword}", known.why, allowed, keyword=parameter.keyword)
