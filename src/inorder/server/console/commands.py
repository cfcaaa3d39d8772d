"""The box for MQSC: a command runs as `runCommand` runs it, and its answer is in the layout of runmqsc.

The form on the page carries the earlier commands, so no server keeps them. Before a destroying command runs, the
visitor must type the name of its object.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from ...mq.mqsc import Answer, MqscSyntaxError, Source, columns, commands_in, parse
from ...mq.mqsc.commands import Clear, Define, Delete, ObjectCommand
from ...mq.mqsc.lines import COMMAND_LENGTH_MAX
from ...mq.mqsc.running import is_fatal
from ..admin import answered
from .page import Page, Visit
from .rendering import shown

EARLIER_MAX: Final = 20
EXAMPLES: Final = (
    "DISPLAY QLOCAL(*) WHERE(CURDEPTH GT 0)",
    "DISPLAY QSTATUS(*) TYPE(HANDLE)",
    "DISPLAY CHSTATUS(*)",
    "DISPLAY CONN(*) TYPE(HANDLE)",
    "DISPLAY QMGR",
    "DEFINE QLOCAL(ORDERS.EU) MAXDEPTH(100000) DESCR('orders from Europe')",
    "ALTER QLOCAL(ORDERS.EU) PUT(DISABLED)",
    "DEFINE QALIAS(SALES) TARGET(ORDERS.EU)",
    "ALTER QMGR DEADQ(SYSTEM.DEAD.LETTER.QUEUE)",
    "CLEAR QLOCAL(ORDERS.EU)",
)
DESTROYING: Final = ("DELETE", "RESET", "RESOLVE", "STOP")  # verbs of channels and process definitions


def named_in(source: Source) -> str:
    """The object that a command destroys or changes for good; the visitor must type its name. Empty: no such object."""
    try:
        command = parse(source)
    except MqscSyntaxError:
        return ""  # it will not run
    if isinstance(command, Delete | Clear) or (isinstance(command, Define) and command.replace):
        return command.name
    if isinstance(command, ObjectCommand) and (command.verb in DESTROYING or command.replace):
        return command.name
    return ""


async def show(visit: Visit) -> Mapping[str, Any]:
    """GET mqsc: the box."""
    visit.query()
    return _values("", [])


def _values(command: str, earlier: list[str]) -> dict[str, Any]:
    return {
        "command": command, "earlier": earlier, "answer": None, "lines": [], "asks": "", "ran": "",
        "examples": EXAMPLES,
    }  # fmt: skip


async def act(visit: Visit) -> Response:
    """POST mqsc: runs one command, or asks for a name first."""
    text = visit.text("command").strip()
    earlier = [one for one in visit.texts("earlier") if one.strip()][-EARLIER_MAX:]
    if recalled := visit.text("recall"):
        return shown(visit, _values(recalled, earlier))
    values = _values(text, earlier)
    if len(text) > COMMAND_LENGTH_MAX:
        wrong = f"A command has at most {COMMAND_LENGTH_MAX:,} characters, with all its lines, not {len(text):,}."
        return shown(visit, values, wrong=wrong)
    sources = list(commands_in(text.splitlines()))
    if len(sources) != 1:
        wrong = f"Give one command at a time, not {len(sources):,}." if sources else "Give a command."
        return shown(visit, values, wrong=wrong)
    name = named_in(sources[0])
    if name and (wrong := visit.unconfirmed(name)):
        return shown(visit, values | {"asks": name}, wrong=wrong if "typed" in visit.form else "")
    answer = await answered(visit, sources[0])
    if answer.error is not None and is_fatal(answer.error):
        raise answer.error
    done = {"answer": answer, "lines": _lines(answer), "ran": text, "earlier": [*earlier, text][-EARLIER_MAX:]}
    kept = text if answer.failed else ""  # so that the visitor can correct it
    return shown(visit, values | done | {"command": kept}, status=422 if answer.failed else 200)


def _lines(answer: Answer) -> list[str]:
    """The answer as runmqsc writes it."""
    headed = f"{answer.number}: {answer.text}" if answer.number else answer.text
    return [line for row in answer.rows for line in (headed, *columns(row))] or [headed]


PAGES: Final = (
    Page(path="mqsc", title="MQSC", authority="display", template="mqsc.html", show=show, act=act, menu="MQSC"),
)
