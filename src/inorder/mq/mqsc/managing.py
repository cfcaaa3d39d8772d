"""PING QMGR, and DISPLAY QMSTATUS: clients ask with them whether the queue manager responds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...client.manager import QueueManager
from ..words import here, integers, lacking
from .commands import ObjectCommand
from .objects import ALL, Row, Words, chosen, read_display
from .parameters import Parameter, refuse_all

STATUS: Final = "QMSTATUS"
TARGETS: Final = ("QMGR", STATUS)
WORDS: Final = Words(
    who="the status of the queue manager",
    keywords={},
    shown=here("qmstatus"),
    integers=integers("qmstatus"),
    unsupported_names=lacking("qmstatus"),
)


def read_manager_command(verb: str, target: str, parameters: Sequence[Parameter]) -> ObjectCommand:
    """Reads a command. Raises MqscSyntaxError; Unsupported."""
    if target == STATUS:
        return read_display(target, "", parameters, WORDS)
    refuse_all(parameters)
    return ObjectCommand(verb=verb, target=target, name="")


def run_manager_command(qm: QueueManager, command: ObjectCommand) -> tuple[str, str, tuple[Row, ...]]:
    """Runs a command; returns the number of the answer, its text, and the row of a DISPLAY."""
    name = qm.admin.manager_attributes().name
    if command.target != STATUS:
        return "AMQ8415I", f"Queue manager {name} responds.", ()
    row: Row = {"QMNAME": name, "TYPE": "QMGR", "STATUS": "RUNNING", "CONNS": len(qm.inspect.connections())}
    shown = chosen("qmstatus", row, command.asked or (ALL,), ("QMNAME", "TYPE", "STATUS"))
    return "AMQ8705I", "Display Queue Manager Status Details.", (shown,)
