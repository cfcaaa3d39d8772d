"""Commands about channels: reads them without I/O, and runs them.

DEFINE, ALTER, DELETE, DISPLAY, START, STOP, PING, RESET and RESOLVE CHANNEL, DISPLAY CHSTATUS, and our own
TRIGGER QHOME.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from ...client.manager import QueueManager
from ...errors import Reason, UnknownObject
from ...model.attribute import Attribute
from ...model.channel_attributes import CHANNEL_ATTRIBUTES, SYSTEM_CHANNELS, ChannelAttributes, define
from ...stores.seam.channel_records import ChannelNow
from ...stores.seam.damage import utc
from ...stores.seam.definitions import CHANNEL, channel_of
from .. import channels, words
from .commands import ObjectCommand
from .errors import unsupported
from .filters import is_like
from .objects import (
    ALL,
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
from .parameters import Parameter, ignores_state, without_effect
from .tokens import CommandToken
from .values import Scalar, allowed_values, mqsc_value, read_value
from .words import age

OBJECTS: Final = ("CHANNEL", "CHSTATUS")
VERBS: Final = ("START", "STOP", "PING", "RESET", "RESOLVE")
STATUS: Final = (
    "CHANNEL CHLTYPE CONNAME RQMNAME STATUS XMITQ INDOUBT CURMSGS CURSEQNO LSTSEQNO MSGS BYTSSENT SHORTRTS LONGRTS "
    "STOPREQ XQMSGSA XQMSGAGE LSTMSGDA LSTMSGTI REASON NPMSPEED"
).split()
STATUS_SHOWN: Final = ("CHLTYPE", "CONNAME", "RQMNAME", "STATUS", "XMITQ")  # if nothing is asked for
MODES: Final = {"QUIESCE": "quiesce", "FORCE": "force", "TERMINATE": "terminate"}
OPERANDS: Final[Mapping[str, str]] = {
    "START": "IGNSTATE(...)",
    "STOP": "MODE(...) or IGNSTATE(...)",
    "RESOLVE": "ACTION(...)",
    "RESET": "SEQNUM(...)",
}
ACTIONS: Final = {"COMMIT": "commit", "BACKOUT": "back_out"}

# The message numbers of runmqsc's answers.
NUMBERS: Final[Mapping[tuple[str, str], str]] = {
    ("DEFINE", "CHANNEL"): "AMQ8014I",
    ("DELETE", "CHANNEL"): "AMQ8015I",
    ("ALTER", "CHANNEL"): "AMQ8016I",
    ("START", "CHANNEL"): "AMQ8018I",
    ("STOP", "CHANNEL"): "AMQ8019I",
    ("PING", "CHANNEL"): "AMQ8020I",
    ("RESET", "CHANNEL"): "AMQ8023I",
    ("RESOLVE", "CHANNEL"): "AMQ8025I",
    ("TRIGGER", "QHOME"): "AMQ8018I",
    ("DISPLAY", "CHANNEL"): "AMQ8414I",
    ("DISPLAY", "CHSTATUS"): "AMQ8417I",
}


def _read(attribute: Attribute, token: CommandToken) -> Any:
    """Reads the value of an attribute; refuses MQ's other channel types by name."""
    if attribute.name == "type" and token.value in words.channel_types():
        what, why = f"MQ's channel type {token.value}", words.channel_types()[token.value]
        raise unsupported(token.at, what, why, allowed_values(attribute))
    return read_value(attribute, token)


DEFAULTS: Final[Mapping[str, str]] = {one.type: name for name, one in SYSTEM_CHANNELS.items()}
KEYWORDS: Final = {one.mqsc: one for one in CHANNEL_ATTRIBUTES.values()}
WORDS: Final = Words(
    who="a channel",
    keywords=KEYWORDS,
    shown=words.here("channel"),
    unsupported_names=words.lacking("channel"),
    read=_read,
)
STATUS_WORDS: Final = Words(
    who="a channel's status",
    keywords={},
    shown=STATUS,
    integers=words.integers("chstatus"),
    unsupported_names=words.lacking("chstatus"),
)


def read_channel_command(verb: str, target: str, name: str, parameters: Sequence[Parameter]) -> ObjectCommand:
    """Reads a command. Raises MqscSyntaxError; Unsupported."""
    if verb == "DISPLAY" and target == "CHSTATUS":
        return read_display(target, name, parameters, STATUS_WORDS)
    if verb == "DISPLAY":
        chooses = [each for each in parameters if each.keyword in ("TYPE", "CHLTYPE") and each.values is not None]
        rest = [each for each in parameters if each not in chooses]
        found = read_display(target, name, rest, WORDS)
        return replace(found, given={"type": _type(chooses[-1])}) if chooses else found
    if verb in ("DEFINE", "ALTER"):
        return read_define(verb, target, name, parameters, WORDS)
    if verb == "DELETE":
        return read_delete(target, name, parameters, WORDS)
    given, idle = _operands(verb, parameters)
    return ObjectCommand(verb=verb, target=target, name=name, given=given, without_effect=idle)


def _type(parameter: Parameter) -> str:
    """The type of the channels that a DISPLAY shows. Raises MqscSyntaxError; Unsupported."""
    kind = KEYWORDS["CHLTYPE"]
    token = parameter.value(allowed_values(kind))
    return "" if token.value == ALL else str(_read(kind, token))


def _operands(verb: str, parameters: Sequence[Parameter]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The arguments of a command, and the keywords without effect: no START or STOP fails because of a state."""
    given: dict[str, Any] = {}
    idle: list[str] = []
    for each in parameters:
        match verb, each.keyword:
            case "STOP", "MODE":
                given["mode"] = MODES[each.word(MODES)]
            case "RESOLVE", "ACTION":
                given["action"] = ACTIONS[each.word(ACTIONS)]
            case "RESET", "SEQNUM":
                given["number"] = _number(each.value("SEQNUM(1 to 999999999)"))
            case "START" | "STOP", "IGNSTATE":
                ignores_state(each)
                idle.append(each.keyword)
            case _ if each.keyword in WORDS.unsupported_names:
                idle.append(without_effect(each, WORDS.unsupported_names))
            case _:
                raise each.token.refused(OPERANDS.get(verb, "nothing more"))
    return given, tuple(idle)


def _number(token: CommandToken) -> int:
    if not token.value.isdecimal() or not 1 <= int(token.value[:12]) <= 999_999_999:
        raise token.refused("SEQNUM(1 to 999999999)")
    return int(token.value)


# --- run


def run_channel_command(qm: QueueManager, command: ObjectCommand) -> tuple[str, str, tuple[Row, ...]]:
    """Runs a command; returns the number of the answer, its text, and the rows of a DISPLAY.

    Raises the errors of `inorder.mq.channels`; UnknownObject if a DISPLAY finds nothing.
    """
    number = NUMBERS[command.verb, command.target]
    if command.verb != "DISPLAY":
        return number, _done(qm, command) + without(command), ()
    rows = _statuses(qm, command) if command.target == "CHSTATUS" else _definitions(qm, command)
    if not rows:
        raise _nothing_matches(command)
    shown = "Channel Status" if command.target == "CHSTATUS" else "Channel"
    return number, f"Display {shown} details.", tuple(rows)


def _nothing_matches(command: ObjectCommand) -> UnknownObject:
    if command.target == "CHANNEL":
        return UnknownObject(no_match("channel", command), kind="channel", object=command.name)
    text = no_match("channel that runs or has run", command)
    return UnknownObject(text, reason=Reason.CHL_STATUS_NOT_FOUND, kind="channel", object=command.name)


def _done(qm: QueueManager, command: ObjectCommand) -> str:
    name, given = command.name, dict(command.given)
    match command.verb:
        case "DEFINE":
            text = _define(qm, command)
        case "ALTER":
            given.pop("type", None)
            channels.alter_channel(qm, name, **given)
            text = f"Channel {name} altered."
        case "DELETE":
            text = deleted(command, "Channel", partial(channels.delete_channel, qm))
        case "START":
            channels.start_channel(qm, name)
            text = f"Channel {name} may run: `inorder channel run {name}` runs it."
        case "TRIGGER":
            channels.trigger_transmission(qm, name)
            text = f"Queue {name} was triggered: `inorder channel pull {name}` collects its messages."
        case "STOP":
            channels.stop_channel(qm, name, **given)
            text = f"Channel {name} was asked to stop."
        case "PING":
            text = f"Channel {name} reaches queue manager {channels.ping_channel(qm, name)}."
        case "RESET":
            channels.reset_channel(qm, name, **given)
            text = f"The next batch of channel {name} is {given.get('number', 1)}."
        case _:
            done = channels.resolve_channel(qm, name, **given)
            text = f"The batch of channel {name} is {'confirmed' if done == 'commit' else 'back in its place'}."
    return text


def _define(qm: QueueManager, command: ObjectCommand) -> str:
    name, given = command.name, dict(command.given)
    kind = given.pop("type", "sender")
    defaults = command.like or DEFAULTS[kind]
    if defaults != name:
        like = channels.channel(qm, defaults)
        kind = command.given.get("type", like.type)
        given = {**_attributes_of(like, kind), **given}
    try:
        there = channels.channel(qm, name) if command.replace else None
    except UnknownObject:
        there = None
    if kind == "sender" and not given.get("user"):
        given.pop("user", None)  # MQ's dumps write MCAUSER(' ')
    if there is None or there.type != kind:
        channels.define_channel(qm, name, kind, **given)
        return f"Channel {name} defined."
    wanted = _attributes_of(define(name, kind, **given), kind)
    channels.alter_channel(qm, name, **{one: wanted[one] for one in wanted if wanted[one] != getattr(there, one)})
    return f"Channel {name} replaced."


def _attributes_of(one: ChannelAttributes, kind: str) -> dict[str, Any]:
    """The attributes that a channel of this type can copy from another one."""
    return {
        each.name: getattr(one, each.name)
        for each in CHANNEL_ATTRIBUTES.values()
        if each.changed_by != "create" and {one.type, kind} <= each.applies_to
    }


def _definitions(qm: QueueManager, command: ObjectCommand) -> list[Row]:
    if not command.name.endswith("*"):
        channels.channel(qm, command.name)  # this raises with the most similar names
    with qm._session:
        found = [each for each in qm._store.objects(CHANNEL) if is_like(each.name, command.name)]
    rows: list[Row] = []
    kind, asked = command.given.get("type"), wanted(command.name, command.asked, command.where)
    altered = {each.name: each.altered_at for each in found}
    system = {name: one for name, one in SYSTEM_CHANNELS.items() if is_like(name, command.name)}
    for name, one in sorted((system | {each.name: channel_of(each.attributes) for each in found}).items()):
        row = channel_row(one) | alteration(qm, altered.get(name))
        if (not kind or kind == one.type) and meets(command.where, one, row, KEYWORDS):
            rows.append(chosen("channel", row, asked, ("CHANNEL", "CHLTYPE")))
    return rows


def channel_row(one: ChannelAttributes) -> dict[str, Scalar]:
    """The attributes of a channel by their keywords, as MQSC writes them."""
    return {
        word: mqsc_value(each, getattr(one, each.name))
        for word, each in KEYWORDS.items()
        if one.type in each.applies_to
    }


def _statuses(qm: QueueManager, command: ObjectCommand) -> list[Row]:
    """The statuses of channels that run, have run, or were stopped: one that never ran has none, as in MQ."""
    places, now = {one.name: one.connection for one in channels.channels(qm)}, qm._session.services.now()
    found = [one for one in channels.status(qm) if is_like(one.name, command.name) and _has_run(one)]
    ends = channels.other_ends(qm) if found else {}
    rows = [_status(one, places.get(one.name, ""), ends.get(one.queue, one.queue), now) for one in found]
    asked = (*(command.asked or STATUS_SHOWN), *([command.where.keyword] if command.where else ()))
    return [chosen("chstatus", row, asked, ("CHANNEL",)) for row in rows if meets(command.where, None, row)]


def _has_run(one: ChannelNow) -> bool:
    return one.status != "inactive" or one.sent_at is not None or bool(one.number or one.in_doubt or one.reason)


def _status(one: ChannelNow, place: str, other_end: str, now: float) -> Row:
    sent = None if one.sent_at is None else utc(one.sent_at)
    date, time = (f"{sent:%Y-%m-%d}", f"{sent:%H.%M.%S}") if sent else ("", "")
    values: list[int | str] = [
        one.name, "SDR", place, other_end, one.status.upper(), one.queue, "YES" if one.in_doubt else "NO", one.in_doubt,
        one.number + bool(one.in_doubt), one.number, one.messages, one.size, one.short_retries, one.long_retries,
        "YES" if one.stop else "NO", one.waiting, age(one.oldest_put_at, now), date, time,
        one.reason, one.nonpersistent_speed.upper(),
    ]  # fmt: skip
    return dict(zip(STATUS, values, strict=True))
