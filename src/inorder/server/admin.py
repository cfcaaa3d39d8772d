"""IBM's administration interface: commands in MQSC, the queue manager, the installation."""

from __future__ import annotations

import platform
from dataclasses import replace
from typing import Any

from starlette.responses import JSONResponse, Response

from .. import __version__
from ..client.manager import QueueManager
from ..client.operator_log import Acting
from ..errors import ArgumentError, InorderError, StoreError
from ..mq.mqsc import Answer, MqscSyntaxError, Source, columns, commands_in, parse, run_command
from ..mq.mqsc.authorities import Need, need_of, seen
from ..mq.mqsc.commands import Display
from ..mq.mqsc.json_commands import object_of, source_of
from ..mq.mqsc.lines import COMMAND_LENGTH_MAX
from ..mq.mqsc.running import COMMAND_FAILED
from .calls import Call
from .operator_log import acted
from .problems import problem, stated
from .queues import paths_in

FAILED = 2  # MQCC_FAILED
INSTALLATION = "inorder"
COMMAND = {"type", "parameters"}
JSON_COMMAND = {"type", "command", "qualifier", "name", "parameters", "responseParameters"}


async def mqsc(call: Call) -> Response:
    """POST mqsc: runs one command, given as text or as an object."""
    call.check_manager()
    call.query()
    given = await call.object()
    kind = given.get("type")
    if kind == "runCommand":
        return await _run(call, _source_in(given), _as_text)
    if kind == "runCommandJSON":
        return await _run(call, _source_of(given), _as_object)
    raise problem("INWB0004E", "type must be one of: runCommand, runCommandJSON")


def _source_in(given: dict[str, Any]) -> Source:
    """Reads the command of a runCommand."""
    parameters = given.get("parameters")
    command = parameters.get("command") if isinstance(parameters, dict) else None
    if given.keys() - COMMAND or not isinstance(command, str) or len(parameters or ()) != 1:
        raise problem("INWB0004E", 'must be {"type": "runCommand", "parameters": {"command": TEXT}}')
    if len(command) > COMMAND_LENGTH_MAX:
        raise problem("INWB0004E", f"must have a command of at most {COMMAND_LENGTH_MAX:,} characters")
    sources = list(commands_in(command.splitlines()))
    if len(sources) != 1:
        raise problem("INWB0004E", f"must have one command, not {len(sources)}")
    return sources[0]


def _source_of(given: dict[str, Any]) -> Source:
    """Reads the command of a runCommandJSON."""
    if unknown := sorted(given.keys() - JSON_COMMAND):
        raise problem("INWB0004E", f"members must be among {', '.join(sorted(JSON_COMMAND))}, not {', '.join(unknown)}")
    try:
        return source_of(
            given.get("command"),
            given.get("qualifier"),
            given.get("name"),
            given.get("parameters"),
            given.get("responseParameters"),
        )
    except ArgumentError as error:
        raise problem("MQWB0120E", error.args[0]) from None


async def _run(call: Call, source: Source, shown: Any) -> Response:
    answer = await answered(call, source)
    if isinstance(answer.error, StoreError):
        raise answer.error
    if answer.error is not None:
        answer = replace(answer, error=call.identity.shown(answer.error))
    items = shown(answer)
    codes = (FAILED, COMMAND_FAILED) if answer.failed else (0, 0)
    return JSONResponse(
        {"commandResponse": items, "overallCompletionCode": codes[0], "overallReasonCode": codes[1]},
    )


async def answered(call: Call, source: Source) -> Answer:
    """Runs a command, and returns its answer. Raises: Problem 403, if the user may not run it."""
    try:
        command = parse(source)
    except MqscSyntaxError:
        return await call.context.qm.run(lambda qm: run_command(source, qm))  # the answer says that it cannot be read
    need = need_of(command)
    if need.authority is None:
        return await call.context.qm.run(lambda qm: run_command(source, qm))
    if isinstance(command, Display) and need.is_each:
        answer = await call.context.qm.run(lambda qm: run_command(source, qm))
        return seen(command, answer, lambda queue: call.identity.may("inquire", queue))
    call.demand(need.authority, need.queue)
    if not need.act:
        return await call.context.qm.run(lambda qm: run_command(source, qm))
    return await _noted(call, source, need)


async def _noted(call: Call, source: Source, need: Need) -> Answer:
    """Runs a command that changes something, and logs it as an act."""
    answers: list[Answer] = []

    def work(qm: QueueManager, acting: Acting) -> None:
        answers.append(run_command(source, qm))
        acting.messages = answers[0].messages
        if answers[0].error is not None:
            raise answers[0].error  # so that the log has it

    try:
        await acted(call.context, call.request, need.act, need.on, work)
    except InorderError as error:
        if not answers or error is not answers[0].error:
            raise  # the log could not be written
    return answers[0]


def _codes(answer: Answer) -> dict[str, int]:
    return {"completionCode": FAILED if answer.failed else 0, "reasonCode": answer.reason}


def _headed(answer: Answer) -> str:
    text = stated(answer.error) if answer.outcome == "refused" and answer.error is not None else answer.text
    return f"{answer.number}: {text}" if answer.number else text


def _as_text(answer: Answer) -> list[dict[str, Any]]:
    """The answer in the layout of runmqsc, with an item for each object of a DISPLAY."""
    codes = _codes(answer)
    if answer.rows:
        return [{**codes, "text": ["".join((_headed(answer), *columns(row)))]} for row in answer.rows]
    return [{**codes, "text": [_headed(answer)] if answer.text else []}]


def _as_object(answer: Answer) -> list[dict[str, Any]]:
    if answer.outcome == "not valid":
        raise problem("MQWB0120E", answer.text)
    codes = _codes(answer)
    if answer.rows:
        return [{**codes, "parameters": object_of(row)} for row in answer.rows]
    return [{**codes, **({"message": [_headed(answer)]} if answer.text else {})}]


# --- the queue manager, and the installation


async def managers(call: Call) -> Response:
    """GET qmgr, and qmgr/NAME: the one queue manager."""
    if "qmgr" in call.names:
        call.check_manager()
    call.demand("display")
    given = call.query("attributes", "status", "state")
    one: dict[str, Any] = {"name": call.context.name, "state": "running"}
    if given.get("state", "running") != "running":
        return JSONResponse({"qmgr": []})
    _add(one, "extended", given, "attributes", {"installationName": INSTALLATION})
    _add(one, "status", given, "status", {})
    return JSONResponse({"qmgr": [one]})


async def installation(call: Call) -> Response:
    """GET installation: the software of this server."""
    if call.names.get("installation", INSTALLATION) != INSTALLATION:
        raise problem("INWB0001E", call.request.url.path)
    call.demand("display")
    given = call.query("attributes")
    one: dict[str, Any] = {"name": INSTALLATION, "platform": "unix", "version": __version__}
    system = f"{platform.system()} {platform.release()}"
    _add(one, "extended", given, "attributes", {"operatingSystem": system, "level": __version__})
    return JSONResponse({"installation": [one]})


def _add(to: dict[str, Any], group: str, given: dict[str, str], parameter: str, values: dict[str, Any]) -> None:
    """Adds the attributes of a group that a parameter names. Raises: Problem 400, if there is no such attribute."""
    if parameter in given:
        paths = paths_in(given, parameter, (group,), frozenset(f"{group}.{name}" for name in values))
        to[group] = {name: value for name, value in values.items() if f"{group}.{name}" in paths}
