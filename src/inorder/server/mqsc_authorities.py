"""Which authority a command in MQSC needs, as a table: IBM's rules, in the words of `rules.authorities`.

What names one queue is asked of that queue. A DISPLAY of several shows those that its user may inquire. Definitions of
channels and processes say where messages go and which programs are run, and the attributes of the queue manager how
much of the log of acts is kept: to change these is to administer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from ..mq.mqsc.commands import (
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
from ..rules.authorities import MANAGER, Authority


class Need(NamedTuple):
    """What a command needs, and what it does.

    Attributes:
        authority: None: it needs nothing.
        queue: of which it is asked; "": of the queue manager.
        act, on: as the log of acts has it, and the queue that it is about; "": it changes nothing, and is not noted.
        is_each: it is asked of each queue that is found.
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
    }
)
"""Of channels and process definitions, by the verb."""
LOOKING: Final = ("DISPLAY", "PING")


def _display(command: Display) -> Need:
    if command.name.endswith("*"):
        return Need("inquire", is_each=True)
    return Need("inquire", command.name)


def _object(command: ObjectCommand) -> Need:
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
    """What a command needs."""
    return NEEDS[type(command)](command)
