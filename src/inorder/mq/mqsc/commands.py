"""Commands as values: the parser makes them, and `running` runs them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ...model.attributes import QueueType


@dataclass(frozen=True, slots=True, kw_only=True)
class Define:
    """DEFINE: a new queue; with `replace` it also resets an existing one.

    Args:
        attributes: by our names.
        like: the queue whose attributes are the defaults.
        without_effect: MQ keywords whose values have no effect here.
    """

    name: str
    type: QueueType
    attributes: Mapping[str, Any] = field(default_factory=dict)
    like: str | None = None
    replace: bool = False
    without_effect: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Alter:
    """ALTER of a queue; `changes` by our names."""

    name: str
    type: QueueType
    changes: Mapping[str, Any]
    without_effect: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterManager:
    """ALTER QMGR; `changes` by our names."""

    changes: Mapping[str, Any]
    without_effect: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """DELETE; with `purge` including the messages.

    Args:
        ignores_state: whether it succeeds if there is no such queue.
    """

    name: str
    type: QueueType
    purge: bool = False
    ignores_state: bool = False
    without_effect: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Clear:
    """CLEAR QLOCAL."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """WHERE: a keyword, an operator and a value in MQSC's form; a switch is compared as True or False."""

    keyword: str
    operator: str
    value: int | float | str | bool


Handles = Literal["ALL", "INPUT", "OUTPUT"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Display:
    """DISPLAY of queues: QUEUE and the types, or QSTATUS.

    Args:
        name: the name of one queue, or the beginning of a name followed by "*".
        type: only queues of this type; None is all.
        keywords: the keywords to show, ALL is everything; empty is everything of one object, or only names of several.
        is_status: whether it is QSTATUS.
        handles: QSTATUS of handles, by the uses for which they are open; None: of queues.
    """

    name: str
    type: QueueType | None = None
    keywords: tuple[str, ...] = ()
    where: Condition | None = None
    is_status: bool = False
    handles: Handles | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DisplayManager:
    """DISPLAY QMGR; `keywords` as in `Display`."""

    keywords: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """END, QUIT or EXIT: the rest is not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectCommand:
    """A command about channels, process definitions or connections.

    Args:
        verb: "DEFINE" ... "RESOLVE"; target: the object: "CHANNEL", "CHSTATUS", "PROCESS", "CONN".
        name: the name of one object, or in a DISPLAY the beginning of a name followed by "*".
        given: attributes by our names; or the arguments of the command: "mode", "number", "action", "type".
        asked: the keywords that a DISPLAY asks for, as in `Display`.
        like: the object whose attributes are the defaults.
        ignores_state: whether a DELETE succeeds if there is no such object.
        without_effect: MQ keywords whose values have no effect here.
    """

    verb: str
    target: str
    name: str
    given: Mapping[str, Any] = field(default_factory=dict)
    asked: tuple[str, ...] = ()
    where: Condition | None = None
    like: str | None = None
    replace: bool = False
    ignores_state: bool = False
    without_effect: tuple[str, ...] = ()


Command = Define | Alter | AlterManager | Delete | Clear | Display | DisplayManager | ObjectCommand | End
