"""The authority that each MQSC command needs, as a table: IBM's rules, in terms of `rules.authorities`.

A command about one queue needs the authority on that queue. A DISPLAY of several shows the queues that its user may
inquire. Channel and process definitions decide where messages go and which programs run, and the queue manager's
attributes decide how long the log of acts is kept. To change these, a user needs the authority "administer".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from ...rules.authorities import MANAGER, Authority
from .commands import (
    Alter,
    AlterManager,
    Clear,
    Command,
    Define,
    Delete,
    Display,
    DisplayManager,
    End,
    ObjectCommand,
)
from .managing import TARGETS as MANAGER_TARGETS
from .running import REFUSED_FOR, Answer, nothing_fits


class Need(NamedTuple):
    """The authority that a command needs, and its act in the log.

    Attributes:
        authority: None: the command needs none.
        queue: on which the user needs it; "": on the queue manager.
        act, on: its name in the log of acts, and the queue that it changes; "": it changes nothing, and is not logged.
        is_each: whether the user needs the authority on each queue that the command finds.
    """

    authority: Authority | None
    queue: str = MANAGER
    act: str = ""
    on: str = ""
    is_each: bool = False


OF_OBJECTS: Final[Mapping[str, Authority]] = MappingProxyType(
    {
        "DISPLAY": "display",
        "DEFINE": "administer",
        "ALTER": "administer",
        "DELETE": "administer",
        "START": "control",
        "STOP": "control",
        "PING": "control",
        "RESET": "control",
        "RESOLVE": "control",
        "TRIGGER": "control",
    }
)
"""Of channels, process definitions and home-server queues, by the verb."""
LOOKING: Final = ("DISPLAY", "PING")


def _display(command: Display) -> Need:
    if command.name.endswith("*"):
        return Need("inquire", is_each=True)
    return Need("inquire", command.name)


def _object(command: ObjectCommand) -> Need:
    if command.target in MANAGER_TARGETS:
        return Need("inquire")
    act = "" if command.verb in LOOKING else f"{command.verb.lower()} {command.target.lower()} {command.name}"
    return Need(OF_OBJECTS[command.verb], act=act)


NEEDS: Final[Mapping[type[Command], Callable[[Any], Need]]] = MappingProxyType(
    {
        Define: lambda command: Need("administer", act="define", on=command.name),
        Alter: lambda command: Need("alter", command.name, act="alter", on=command.name),
        AlterManager: lambda _: Need("administer", act="alter the queue manager"),
        Delete: lambda command: Need("administer", act="delete", on=command.name),
        Clear: lambda command: Need("clear", command.name, act="clear", on=command.name),
        Display: _display,
        DisplayManager: lambda _: Need("inquire"),
        ObjectCommand: _object,
        End: lambda _: Need(None),
    }
)


def need_of(command: Command) -> Need:
    """The needs of a command."""
    return NEEDS[type(command)](command)


def seen(command: Display, answer: Answer, may_inquire: Callable[[str], bool]) -> Answer:
    """The queues of a DISPLAY of several that the user may see. The answer does not show whether there are others."""
    rows = tuple(row for row in answer.rows if may_inquire(str(row["QUEUE"])))
    if rows or not answer.rows:
        return replace(answer, rows=rows)
    error = nothing_fits(command)
    number = REFUSED_FOR[error.reason]
    return replace(answer, outcome="refused", number=number, text=str(error), rows=(), error=error)
