"""The connections to the queue manager, and their queues: DISPLAY CONN, and DISPLAY QSTATUS of handles.

The tables list the keywords and the source of each value. `inorder.mq.words` has MQ's names for values that the store
does not keep, each with the reason. A DISPLAY reads the connections, then their units of work, then the waits; each at
one moment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from ...client.manager import QueueManager
from ...errors import UnknownObject
from ...stores.seam.damage import utc
from ...stores.seam.views import ConnectionView, Opening, Unit
from ..words import integers, lacking
from .commands import Handles, ObjectCommand
from .filters import is_like
from .objects import OBJECTS, Found, Row, Words, chosen, meets, no_match, read_display, wanted
from .parameters import Parameter
from .tokens import CommandToken
from .values import Value

OBJECT: Final = "CONN"
SHOWN: Final = "AMQ8276I"  # the message number of runmqsc's answer
NUMBER: Final = re.compile(r"[0-9A-F]{1,16}|[0-9A-F]{0,15}\*")
TYPES: Final[Mapping[str, str]] = {"CONN": "CONN", "HANDLE": "HANDLE", "ALL": "ALL", "*": "ALL"}


class SeenConnection(NamedTuple):
    """A connection, or one of its handles.

    Args:
        unit: its unit of work, if one is open.
        waits: the queues on which it waits.
        handle: None: the connection itself.
    """

    connection: ConnectionView
    unit: Unit | None
    waits: frozenset[str]
    handle: Opening | None = None

    @property
    def opening(self) -> Opening:
        assert self.handle is not None, "only a handle has the keywords of handles"
        return self.handle


Keywords = Mapping[str, Callable[[SeenConnection], Value | None]]  # None: the value is unknown, and not shown


def _begun(form: str) -> Callable[[SeenConnection], str]:
    return lambda seen: "" if seen.unit is None else format(utc(seen.unit.started_at), form)


def _unit_state(seen: SeenConnection) -> str:
    """PREPARED: a global unit is being committed; UNRESOLVED: it is decided, but an owner has not settled its part."""
    if seen.unit is None:
        return "NONE"
    if seen.unit.kind != "global":
        return "ACTIVE"
    return "UNRESOLVED" if seen.unit.outcome else "PREPARED"


def _state(seen: SeenConnection) -> str:
    """ACTIVE: a call waits. The store knows the queue on which a connection waits, but not the handle."""
    reads = seen.opening.input is not None or not seen.opening.output
    return "ACTIVE" if reads and seen.opening.queue in seen.waits else "INACTIVE"


def _options(seen: SeenConnection) -> tuple[str, ...]:
    """The options that the store keeps: not browse alone, inquire and set."""
    handle = seen.opening
    found = {
        "MQOO_INPUT_SHARED": handle.input == "shared",
        "MQOO_INPUT_EXCLUSIVE": handle.input == "exclusive",
        "MQOO_BROWSE": handle.co_op,  # which requires it
        "MQOO_OUTPUT": handle.output,
        "MQOO_CO_OP": handle.co_op,
    }
    return tuple(word for word, is_so in found.items() if is_so)


OWNER: Final[Keywords] = {
    "APPLTAG": lambda seen: seen.connection.program.name,
    "APPLTYPE": lambda _: "USER",  # a store has no processes of its own
    "CONNAME": lambda seen: seen.connection.host,
    "PID": lambda seen: seen.connection.process,
    "USERID": lambda seen: seen.connection.program.user,
}
CONNECTION: Final[Keywords] = {
    "CONN": lambda seen: f"{seen.connection.connection:016X}",
    **OWNER,
    "UOWSTATE": _unit_state,
    "UOWSTDA": _begun("%Y-%m-%d"),
    "UOWSTTI": _begun("%H.%M.%S"),
}
HANDLE: Final[Keywords] = {
    "OBJNAME": lambda seen: seen.opening.name,
    "OBJTYPE": lambda _: "QUEUE",
    "HSTATE": _state,
    "OPENOPTS": _options,
}
STATUS: Final[Keywords] = {
    "QUEUE": lambda seen: seen.opening.queue,
    **OWNER,
    "HSTATE": _state,
    "INPUT": lambda seen: {None: "NO", "shared": "SHARED", "exclusive": "EXCL"}[seen.opening.input],
    "OUTPUT": lambda seen: "YES" if seen.opening.output else "NO",
}
OF_TYPE: Final[Mapping[str, Sequence[str]]] = {
    "CONN": (*CONNECTION,),
    "HANDLE": ("CONN", *HANDLE),
    "ALL": (*CONNECTION, *HANDLE),
}
COMPARED: Final = OF_TYPE["ALL"]  # by WHERE, whatever is shown


# --- read


def connection_number(token: CommandToken) -> str:
    """The number in CONN(...), or its beginning and an asterisk. Raises MqscSyntaxError."""
    number = token.value.upper()
    if not NUMBER.fullmatch(number):
        allowed = "1 to 16 hexadecimal digits, as DISPLAY CONN(*) shows them, or their beginning and *"
        raise token.refused(allowed)
    return number


def read_display_of_connections(name: str, parameters: Sequence[Parameter]) -> ObjectCommand:
    """Reads DISPLAY CONN. Raises MqscSyntaxError; Unsupported."""
    kind, rest = "CONN", []
    for each in parameters:
        if each.keyword == "TYPE" and each.values is not None:
            kind = TYPES[each.word(TYPES)]
        else:
            rest.append(each)
    words = Words(
        who="a connection",
        keywords={},
        shown=OF_TYPE[kind],
        integers=integers("conn"),
        unsupported_names=lacking("conn"),
        compared=COMPARED,
    )
    return replace(read_display(OBJECT, name, rest, words), given={"type": kind})


# --- run


def run_display_of_connections(qm: QueueManager, command: ObjectCommand) -> tuple[str, str, tuple[Found, ...]]:
    """Runs DISPLAY CONN; returns the number of the answer, its text, and the connections. Raises UnknownObject without
    any.
    """
    kind = command.given["type"]
    rows = tuple(row for each in _connections(qm) if (row := _connection_row(each, command, kind)) is not None)
    if not rows:
        raise UnknownObject(no_match("connection", command), kind="connection", object=command.name)
    return SHOWN, "Display Connection details.", rows


def handle_rows(qm: QueueManager, handles: Handles) -> Iterator[Row]:
    """The handles that have a queue open, with their options."""
    for each in _connections(qm):
        for one in _handles(each):
            row = _row(one, STATUS)
            if {"ALL": True, "INPUT": row["INPUT"] != "NO", "OUTPUT": row["OUTPUT"] == "YES"}[handles]:
                yield row | {"TYPE": "HANDLE"}


def _connections(qm: QueueManager) -> list[SeenConnection]:
    connections = qm.inspect.connections()
    found = sorted(qm.inspect.units(), key=lambda one: (one.kind == "global", one.outcome == ""))
    units = {one.connection: one for one in found if one.connection is not None}
    waits = qm.inspect.waits()
    return [
        SeenConnection(
            one,
            units.get(one.connection),
            frozenset(wait.queue for wait in waits if wait.connection == one.connection),
        )
        for one in connections
    ]


def _handles(seen: SeenConnection) -> list[SeenConnection]:
    return [seen._replace(handle=one) for one in seen.connection.opened]


def _row(seen: SeenConnection, keywords: Keywords) -> dict[str, Value]:
    return {word: value for word, of in keywords.items() if (value := of(seen)) is not None}


def _connection_row(seen: SeenConnection, command: ObjectCommand, kind: str) -> Found | None:
    """A connection with the handles that meet the condition; None if it is not to be shown."""
    own = _row(seen, CONNECTION)
    handles = [_row(one, HANDLE) for one in _handles(seen)]
    meant = [one for one in handles if meets(command.where, None, own | one)]
    if not is_like(str(own["CONN"]), command.name) or not (meant or meets(command.where, None, own)):
        return None
    row: dict[str, Value | tuple[Row, ...]] = {"CONN": own["CONN"], "TYPE": kind}
    asked = wanted(command.name, command.asked, command.where)
    if kind != "HANDLE":
        row |= chosen("conn", own, asked, ("CONN",))
    if kind != "CONN" and meant:
        row[OBJECTS] = tuple(chosen("conn", one, asked, ("OBJNAME", "OBJTYPE")) for one in meant)
    return row
