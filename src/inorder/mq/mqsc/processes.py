"""Commands about process definitions, DEFINE, ALTER, DELETE, DISPLAY PROCESS: reads them without I/O, and runs them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ...client.admin import PROCESS as KIND
from ...client.manager import QueueManager
from ...errors import UnknownObject
from ...model.attribute import Attribute
from ...model.process_attributes import PROCESS_ATTRIBUTES, SYSTEM_PROCESS, ProcessAttributes, define_process
from ...stores.seam.definitions import process_of
from .. import words
from .commands import ObjectCommand
from .filters import is_like
from .objects import (
    Row,
    Words,
    alteration,
    chosen,
    deleted,
    meets,
    no_match,
    read_define,
    read_delete,
    read_display,
    wanted,
    without,
)
from .parameters import Parameter
from .tokens import CommandToken
from .values import INTEGER, Scalar, allowed_values, mqsc_value, read_value

OBJECT: Final = "PROCESS"
TYPE: Final = "application_type"

# MQAT_...: the words of MQSC; a number without a word is written as a number.
TYPES: Final[Mapping[str, int]] = {
    "CICS": 1, "MVS": 2, "IMS": 3, "UNIX": 6, "OS400": 8, "WINDOWS": 9, "WINDOWSNT": 11, "NSK": 13, "NOTESAGENT": 22,
    "WLM": 31, "DEF": 6,
}  # fmt: skip
TYPE_WORDS: Final[Mapping[int, str]] = {number: word for word, number in TYPES.items() if word != "DEF"}

# The message numbers of runmqsc's answers.
NUMBERS: Final[Mapping[str, str]] = {
    "DEFINE": "AMQ8010I", "ALTER": "AMQ8011I", "DELETE": "AMQ8012I", "DISPLAY": "AMQ8407I"
}  # fmt: skip


def _read(attribute: Attribute, token: CommandToken) -> Any:
    """Reads the value of an attribute; a type may be a word."""
    if attribute.name != TYPE or INTEGER.fullmatch(token.value):
        return read_value(attribute, token)
    if token.value not in TYPES:
        raise token.refused(f"{allowed_values(attribute)}, or one of {', '.join(TYPES)}")
    return TYPES[token.value]


WORDS: Final = Words(
    who="a process definition",
    keywords={one.mqsc: one for one in PROCESS_ATTRIBUTES.values()},
    shown=words.here("process"),
    unsupported_names=words.lacking("process"),
    read=_read,
)


def read_process_command(verb: str, name: str, parameters: Sequence[Parameter]) -> ObjectCommand:
    """Reads a command. Raises MqscSyntaxError; Unsupported."""
    if verb == "DISPLAY":
        return read_display(OBJECT, name, parameters, WORDS)
    if verb == "DELETE":
        return read_delete(OBJECT, name, parameters, WORDS)
    return read_define(verb, OBJECT, name, parameters, WORDS)


# --- run


def run_process_command(qm: QueueManager, command: ObjectCommand) -> tuple[str, str, tuple[Row, ...]]:
    """Runs a command; returns the number of the answer, its text, and the rows of a DISPLAY.

    Raises the errors of `create_process` and the other calls; UnknownObject if a DISPLAY finds nothing.
    """
    number, name = NUMBERS[command.verb], command.name
    match command.verb:
        case "DEFINE":
            text = _define(qm, command)
        case "ALTER":
            qm.admin.alter_process(name, **command.given)
            text = f"Process {name} altered."
        case "DELETE":
            text = deleted(command, "Process", qm.admin.delete_process)
        case _:
            return number, "Display Process details.", _displayed(qm, command)
    return number, text + without(command), ()


def _define(qm: QueueManager, command: ObjectCommand) -> str:
    name, given = command.name, dict(command.given)
    defaults = command.like or SYSTEM_PROCESS.name
    if defaults != name:
        given = _changeable(qm.admin.process(defaults)) | given
    if not command.replace or name not in {one.name for one in qm.admin.processes()}:
        qm.admin.create_process(name, **given)
        return f"Process {name} defined."
    qm.admin.alter_process(name, **_changeable(define_process(name, **given)))
    return f"Process {name} replaced."


def _changeable(one: ProcessAttributes) -> Any:
    return {name: getattr(one, name) for name in PROCESS_ATTRIBUTES if name != "name"}


def _displayed(qm: QueueManager, command: ObjectCommand) -> tuple[Row, ...]:
    if not command.name.endswith("*"):
        qm.admin.process(command.name)  # this raises with the most similar names
    rows = tuple(_rows(qm, command))
    if not rows:
        raise UnknownObject(no_match("process", command), kind="process", object=command.name)
    return rows


def _rows(qm: QueueManager, command: ObjectCommand) -> Iterator[Row]:
    with qm._session:
        found = qm._store.objects(KIND)
    altered = {each.name: each.altered_at for each in found}
    every = {SYSTEM_PROCESS.name: SYSTEM_PROCESS} | {each.name: process_of(each.attributes) for each in found}
    for name, one in sorted(every.items()):
        row = process_row(one) | alteration(qm, altered.get(name))
        if is_like(one.name, command.name) and meets(command.where, one, row, WORDS.keywords):
            yield chosen("process", row, wanted(command.name, command.asked, command.where), (OBJECT,))


def process_row(one: ProcessAttributes) -> dict[str, Scalar]:
    """The attributes by their keywords, as MQSC writes them; the name is the first."""
    row = {word: mqsc_value(each, getattr(one, each.name)) for word, each in WORDS.keywords.items()}
    return row | {"APPLTYPE": TYPE_WORDS.get(one.application_type, one.application_type)}
