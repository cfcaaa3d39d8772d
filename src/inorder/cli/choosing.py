"""Options that several commands share: selection, order, and the size of a unit of work."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from .. import FOREVER, Match
from ..errors import ArgumentError
from ..model.fields import NUMBER_MAX
from ..model.options import MATCHABLE, UniqueIds
from ..model.parameters import ID_LENGTH, TEXT_ID, Integer, Octets, ParameterKind, Seconds

F = TypeVar("F", bound=Callable[..., Any])
UNIT_MESSAGES = 1_000  # small enough not to delay other programs


class Of(click.ParamType):  # type: ignore[type-arg]
    """An argument of one of the kinds that all interfaces share."""

    name = "value"

    def __init__(self, kind: ParameterKind[Any] | None) -> None:
        assert kind is not None
        self._kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):  # a default
            return value
        try:
            return self._kind.read(max(param.opts, key=len) if param else self.name, value)
        except ArgumentError as error:
            raise click.UsageError(f"{error.args[0]}.", ctx) from None


ORDER = click.option(
    "--order", type=click.Choice(("physical", "logical")), default="physical", show_default=True,
    help="Physical: in order of arrival. Logical: groups and segments in sequence.",
)  # fmt: skip
READ_ORDER = click.option("--read-order", type=click.Choice(("strict", "relaxed")), help="Default: the queue's.")
UNIT_SIZE = click.option(
    "--unit-size", type=click.IntRange(1, NUMBER_MAX), default=UNIT_MESSAGES, show_default=True, metavar="N",
    help="Messages in a unit of work; fewer if they exceed 64 MiB.",
)  # fmt: skip
DMPMQMSG = "dmpmqmsg"


def takes_format(what: str) -> Callable[[F], F]:
    """Gives a command --format, as the keyword `form`: None, or "dmpmqmsg"."""
    return click.option("--format", "form", type=click.Choice((DMPMQMSG,)), help=what)


NAMED_ID = Of(Octets(ID_LENGTH, named=True))
METAVARS: Mapping[type, str] = {Integer: "N", Octets: "HEX", UniqueIds: "ORIGIN:NUMBER"}


WAIT = click.option(
    "--wait",
    type=Of(Seconds(also={"forever": FOREVER})),
    default=0,
    metavar="SECONDS|forever",
    help="Wait this long for a message; default: do not wait.",
)


def takes_match(function: F) -> F:
    """Gives a command the options that choose messages, and its function a `Match` as `match`."""

    @click.option(
        "--selector",
        metavar="TEXT",
        help="Only messages that match this selector, such as \"colour = 'red' AND size > 3\".",
    )
    @functools.wraps(function)
    def command(*given: Any, **named: Any) -> Any:
        fields = {one.name: named.pop(one.name) for one in MATCHABLE}
        match = Match(
            selector=named.pop("selector"), **{name: value for name, value in fields.items() if value is not None}
        )
        return function(*given, match=match, **named)

    for one in reversed(MATCHABLE):
        is_named = isinstance(one.kind, Octets) and one.kind.named
        metavar = f"HEX|{TEXT_ID}TEXT" if is_named else METAVARS[type(one.kind)]
        word = f"--{one.name.replace('_', '-')}"
        command = click.option(word, one.name, type=Of(one.kind), metavar=metavar, help=f"Only {one.doc}")(command)
    return command  # type: ignore[return-value]
