"""Commands about channels: read without I/O, and run.

DEFINE, ALTER, DELETE, DISPLAY, START, STOP, PING, RESET and RESOLVE CHANNEL, DISPLAY CHSTATUS.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from .. import channels
from ..channel_attributes import CHANNEL_ATTRIBUTES, ChannelAttributes, define
from ..errors import UnknownObject
from ..manager import QueueManager
from ..stores.damage import utc
from ..stores.records import ChannelNow
from .commands import ChannelCommand
from .errors import syntax_error, unknown_word
from .filters import is_like
from .parameters import Parameter
from .tokens import Token
from .values import allowed_values, mqsc_value, read_value

OBJECTS: Final = ("CHANNEL", "CHSTATUS")
VERBS: Final = ("START", "STOP", "PING", "RESET", "RESOLVE")
KEYWORDS: Final = {one.mqsc: one for one in CHANNEL_ATTRIBUTES.values()}
STATUS: Final = (
    "CHANNEL XMITQ CONNAME STATUS INDOUBT CURMSGS CURSEQNO LSTSEQNO MSGS BYTSSENT SHORTRTS LONGRTS STOPREQ XQMSGSA "
    "LSTMSGDA LSTMSGTI REASON"
).split()
MODES: Final = {"QUIESCE": "quiesce", "FORCE": "force", "TERMINATE": "terminate"}
ACTIONS: Final = {"COMMIT": "commit", "BACKOUT": "back_out"}

# The numbers of runmqsc's answers.
NUMBERS: Final[Mapping[tuple[str, str], str]] = {
    ("DEFINE", "CHANNEL"): "AMQ8014I",
    ("DELETE", "CHANNEL"): "AMQ8015I",
    ("ALTER", "CHANNEL"): "AMQ8016I",
    ("START", "CHANNEL"): "AMQ8018I",
    ("STOP", "CHANNEL"): "AMQ8019I",
    ("PING", "CHANNEL"): "AMQ8020I",
    ("RESET", "CHANNEL"): "AMQ8023I",
    ("RESOLVE", "CHANNEL"): "AMQ8025I",
    ("DISPLAY", "CHANNEL"): "AMQ8414I",
    ("DISPLAY", "CHSTATUS"): "AMQ8417I",
}

Row = Mapping[str, int | str | bool]


def read_channel_command(verb: str, target: str, name: str, parameters: Sequence[Parameter]) -> ChannelCommand:
    """Raises: MqscSyntaxError."""
    if verb == "DISPLAY":
        known = STATUS if target == "CHSTATUS" else list(KEYWORDS)
        return ChannelCommand(verb=verb, target=target, name=name, asked=_asked(parameters, known))
    if verb in ("DEFINE", "ALTER"):
        rest = [one for one in parameters if not (verb == "DEFINE" and one.topic == "REPLACE")]
        replace = any(one.keyword == "REPLACE" for one in parameters)
        return ChannelCommand(verb=verb, target=target, name=name, given=_attributes(rest), replace=replace)
    return ChannelCommand(verb=verb, target=target, name=name, given=_operands(verb, parameters))


def _attributes(parameters: Iterable[Parameter]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for each in parameters:
        known = KEYWORDS.get(each.keyword)
        if known is None or known.name == "name":
            raise unknown_word(each.token.at, each.keyword, "an attribute of a channel", list(KEYWORDS))
        given[known.name] = read_value(known, each.value(allowed_values(known)))
    return given


def _asked(parameters: Iterable[Parameter], known: Sequence[str]) -> tuple[str, ...]:
    asked = []
    for each in parameters:
        if each.keyword not in (*known, "ALL"):
            raise unknown_word(each.token.at, each.keyword, "a keyword to display", [*known, "ALL"])
        each.refuse_value(f"{each.keyword} alone")
        asked.append(each.keyword)
    return () if "ALL" in asked else tuple(asked)


def _operands(verb: str, parameters: Sequence[Parameter]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for each in parameters:
        match verb, each.keyword:
            case "STOP", "MODE":
                given["mode"] = _word(each, MODES)
            case "RESOLVE", "ACTION":
                given["action"] = _word(each, ACTIONS)
            case "RESET", "SEQNUM":
                given["number"] = _number(each.value("SEQNUM(1 to 999999999)"))
            case _:
                allowed = {"STOP": "MODE(...)", "RESOLVE": "ACTION(...)", "RESET": "SEQNUM(...)"}
                raise syntax_error(each.token.at, each.token.found, allowed.get(verb, "nothing more"))
    return given


def _word(parameter: Parameter, words: Mapping[str, str]) -> str:
    allowed = " or ".join(f"{parameter.keyword}({word})" for word in words)
    token = parameter.value(allowed)
    if token.value not in words:
        raise syntax_error(token.at, token.found, allowed)
    return words[token.value]


def _number(token: Token) -> int:
    if not token.value.isdecimal() or not 1 <= int(token.value[:12]) <= 999_999_999:
        raise syntax_error(token.at, token.found, "SEQNUM(1 to 999999999)")
    return int(token.value)


# --- run


def run_channel_command(qm: QueueManager, command: ChannelCommand) -> tuple[str, str, tuple[Row, ...]]:
    """The number of the answer, what is done, in words, and what a DISPLAY found.

    Raises: as the calls of `inorder.channels`; UnknownObject, a DISPLAY finds none.
    """
    number = NUMBERS[command.verb, command.target]
    if command.verb != "DISPLAY":
        return number, _done(qm, command), ()
    rows = _statuses(qm, command) if command.target == "CHSTATUS" else _definitions(qm, command)
    if not rows:
        raise UnknownObject(f"no channel fits {command.name}", kind="channel", object=command.name)
    shown = "Channel Status" if command.target == "CHSTATUS" else "Channel"
    return number, f"Display {shown} details.", tuple(rows)


def _done(qm: QueueManager, command: ChannelCommand) -> str:
    name, given = command.name, dict(command.given)
    match command.verb:
        case "DEFINE":
            text = _define(qm, command)
        case "ALTER":
            given.pop("type", None)
            channels.alter_channel(qm, name, **given)
            text = f"Channel {name} altered."
        case "DELETE":
            channels.delete_channel(qm, name)
            text = f"Channel {name} deleted."
        case "START":
            channels.start_channel(qm, name)
            text = f"Channel {name} may run: `inorder channel run {name}` carries it."
        case "STOP":
            channels.stop_channel(qm, name, **given)
            text = f"Channel {name} is to stop."
        case "PING":
            text = f"Channel {name} reaches queue manager {channels.ping_channel(qm, name)}."
        case "RESET":
            channels.reset_channel(qm, name, **given)
            text = f"The next batch of channel {name} is {given.get('number', 1)} on both sides."
        case _:
            done = channels.resolve_channel(qm, name, **given)
            text = f"The batch of channel {name} is {'confirmed' if done == 'commit' else 'back in its place'}."
    return text


def _define(qm: QueueManager, command: ChannelCommand) -> str:
    name, given = command.name, dict(command.given)
    kind = given.pop("type", "sender")
    try:
        there = channels.channel(qm, name) if command.replace else None
    except UnknownObject:
        there = None
    if there is None or there.type != kind:
        channels.define_channel(qm, name, kind, **given)
        return f"Channel {name} defined."
    wanted = define(name, kind, **given)
    changes = {
        one.name: getattr(wanted, one.name)
        for one in CHANNEL_ATTRIBUTES.values()
        if one.changed_by != "create" and getattr(wanted, one.name) != getattr(there, one.name)
    }
    channels.alter_channel(qm, name, **changes)
    return f"Channel {name} replaced."


def _fits(name: str, pattern: str) -> bool:
    return is_like(name, pattern) if pattern.endswith("*") else name == pattern


def _definitions(qm: QueueManager, command: ChannelCommand) -> list[Row]:
    if not command.name.endswith("*"):
        channels.channel(qm, command.name)  # which says what is like it
    found = [one for one in channels.channels(qm) if _fits(one.name, command.name)]
    return [_chosen(_definition(one), command.asked, ("CHANNEL", "CHLTYPE")) for one in found]


def _definition(one: ChannelAttributes) -> Row:
    return {
        word: mqsc_value(each, getattr(one, each.name))
        for word, each in KEYWORDS.items()
        if one.type in each.applies_to
    }


def _statuses(qm: QueueManager, command: ChannelCommand) -> list[Row]:
    places = {one.name: one.connection for one in channels.channels(qm)}
    found = [one for one in channels.status(qm) if _fits(one.name, command.name)]
    return [_chosen(_status(one, places.get(one.name, "")), command.asked, ("CHANNEL",)) for one in found]


def _status(one: ChannelNow, place: str) -> Row:
    sent = None if one.sent_at is None else utc(one.sent_at)
    date, time = (f"{sent:%Y-%m-%d}", f"{sent:%H.%M.%S}") if sent else ("", "")
    values: list[int | str] = [
        one.name, one.queue, place, one.status.upper(), "YES" if one.in_doubt else "NO", one.in_doubt,
        one.number + bool(one.in_doubt), one.number, one.messages, one.size, one.short_retries, one.long_retries,
        "YES" if one.stop else "NO", one.waiting, date, time,
        one.reason,
    ]  # fmt: skip
    return dict(zip(STATUS, values, strict=True))


def _chosen(row: Row, asked: Sequence[str], always: Sequence[str]) -> Row:
    return {word: value for word, value in row.items() if not asked or word in (*always, *asked)}
