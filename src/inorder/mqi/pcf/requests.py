"""Turns a request in PCF into a command of MQSC, through the table of MQ's words.

A request names a command, an object and its attributes by numbers; `inorder.mq.words` has the words for all of them. So
PCF shares MQSC's grammar, checks and outcomes. This module has only the differences: the names of copies, the lists of
attributes, the kinds of a status, filters and identifiers of connections.

Rules: *mqi* M-14.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from ...errors import ArgumentError
from ...mq.mqsc import Source
from ...mq.mqsc.connecting import OF_TYPE
from ...mq.mqsc.json_commands import source_of
from ...mq.mqsc.words import LOCAL_KEYWORDS, TYPES, is_switch, keywords_of
from ...mq.words import MqWord, commands, words_of
from ..constants import constants
from .coding import (
    BYTE_STRING,
    BYTE_STRING_FILTER,
    COMMAND,
    COMMAND_XR,
    GROUP,
    INTEGER,
    INTEGER64,
    INTEGER64_LIST,
    INTEGER_LIST,
    LAST,
    NAMES,
    STRING,
    STRING_FILTER,
    STRING_LIST,
    Header,
    PcfFault,
    PcfParameter,
)

OPERATORS: Final = {
    "LESS": "LT", "EQUAL": "EQ", "GREATER": "GT", "NOT_LESS": "GE", "NOT_EQUAL": "NE", "NOT_GREATER": "LE",
    "LIKE": "LK", "NOT_LIKE": "NL", "CONTAINS": "CT", "EXCLUDES": "EX", "CONTAINS_GEN": "CTG", "EXCLUDES_GEN": "EXG",
}  # fmt: skip
LISTS: Final = {
    "queue": "MQIACF_Q_ATTRS", "qstatus": "MQIACF_Q_STATUS_ATTRS", "process": "MQIACF_PROCESS_ATTRS",
    "manager": "MQIACF_Q_MGR_ATTRS", "qmstatus": "MQIACF_Q_MGR_STATUS_ATTRS", "channel": "MQIACF_CHANNEL_ATTRS",
    "chstatus": "MQIACH_CHANNEL_INSTANCE_ATTRS", "conn": "MQIACF_CONNECTION_ATTRS",
}  # fmt: skip
"""The parameter with the attributes that an inquiry asks for, by the kind of object."""
NAME: Final = {
    "queue": "MQCA_Q_NAME", "qstatus": "MQCA_Q_NAME", "process": "MQCA_PROCESS_NAME", "channel": "MQCACH_CHANNEL_NAME",
    "chstatus": "MQCACH_CHANNEL_NAME", "conn": "MQBACF_CONNECTION_ID",
}  # fmt: skip
"""The parameter with the name of the object; the queue manager has none."""
NAMED: Final = {
    "queue": "QUEUE", "qstatus": "QUEUE", "handle": "QUEUE", "process": "PROCESS", "manager": "QMNAME",
    "qmstatus": "QMNAME", "channel": "CHANNEL", "chstatus": "CHANNEL", "conn": "CONN",
}  # fmt: skip
"""The keyword of the name, which every answer has."""
COPIES: Final = {10: "queue", 22: "channel", 4: "process"}  # MQCMD_COPY_...
NAME_LISTS: Final = {18: "queue", 20: "channel", 19: "process"}  # MQCMD_INQUIRE_..._NAMES
COPIED: Final = {"queue": "Q", "channel": "CHANNEL", "process": "PROCESS"}
ESCAPE: Final = 38
ALL: Final = "ALL"
EVERY: Final = 1001  # MQQT_ALL; our own types of queues have it and higher numbers, and PCF cannot name them
TEXTS: Final = (2001, 4000)  # MQCA_FIRST to MQCA_LAST, with MQCACF_ and MQCACH_
CONNECTION_PREFIX: Final = 16  # bytes of a connection's identifier before the number of the connection


def number(name: str) -> int:
    """The number of a constant."""
    return int(constants()[name])


def is_text_number(code: int) -> bool:
    """Whether the parameter with this number is a text: MQCA_, MQCACF_ or MQCACH_."""
    return TEXTS[0] <= code <= TEXTS[1]


@cache
def numbers_of(word: MqWord) -> Mapping[str | bool, int]:
    """MQ's numbers for the words that are values; for a switch of True and False."""
    attribute = word.attribute
    if attribute is not None and attribute.mq_values:
        return dict(zip(attribute.mqsc_words or (True, False), attribute.mq_values, strict=True))
    return {value: number(name) for value, name in word.constants.items()}


@cache
def by_number(kind: str) -> Mapping[int, MqWord]:
    """The words for a kind of object or status by their numbers."""
    return {each.number: each for each in words_of(kind).values() if each.number is not None}


@cache
def known_commands() -> Mapping[int, tuple[str, str]]:
    """The verb and the kind of object for the numbers of commands that are here."""
    found = {
        each.number: (verb, each.kind)
        for (verb, _), each in commands().items()
        if each.number is not None and not each.why
    }
    return (
        found
        | {code: ("COPY", kind) for code, kind in COPIES.items()}
        | {code: ("DISPLAY", kind) for code, kind in NAME_LISTS.items()}
    )


@dataclass(slots=True)
class Request:
    """A command that was read, to be given to MQSC.

    Attributes:
        kind: the kind of the object, as in `inorder.mq.words`; "handle": the handles of queues.
        parameters: values by keywords, for `source_of`; origins: the parameters that they come from.
        asked: the keywords that an inquiry asks for.
        info: of an inquiry of connections, CONN, HANDLE or ALL.
    """

    header: Header
    verb: str
    kind: str
    name: str = ""
    name_at: PcfParameter | None = None
    type: str | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, PcfParameter] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    info: str = "CONN"

    @property
    def target(self) -> str:
        """The object in MQSC."""
        if self.kind == "queue":
            return self.type or "QUEUE"
        return {"handle": "QSTATUS", "qstatus": "QSTATUS", "manager": "QMGR", "chstatus": "CHSTATUS"}.get(
            self.kind, self.kind.upper()
        )

    def source(self) -> Source:
        """The command in MQSC. Raises PcfFault."""
        verb = "DEFINE" if self.verb == "COPY" else self.verb
        asked = self._shown() if verb == "DISPLAY" else None
        try:
            return source_of(verb, self.target, self.name or None, self.parameters, asked)
        except ArgumentError as error:
            raise self.fault_at(str(error.data["argument"])) from None

    def _shown(self) -> list[str]:
        """The keywords that MQSC is asked for: without those that objects of this type do not have, as in MQ."""
        known: Collection[str] = self.asked
        if self.kind == "queue" and self.type is not None:
            kind = TYPES[self.type]
            known = {ALL, *keywords_of(kind), *(LOCAL_KEYWORDS if kind == "local" else ())}
        elif self.kind == "conn":
            known = {ALL, *OF_TYPE[self.info]}
        found = [word for word in self.asked if word in known]
        return found or ([NAMED[self.kind]] if self.asked else [ALL])

    def fault_at(self, member: str, *, is_word: bool = False) -> PcfFault:
        """The fault in a part of the command, as `source_of` names it. `is_word`: in the keyword, not its value."""
        kind = member.partition(".")[2].upper()
        if member == "name" or not kind:
            names = "CHANNEL_NAME_ERROR" if self.kind in ("channel", "chstatus") else "OBJECT_NAME_ERROR"
            return PcfFault(f"MQRCCF_{names}", self.name_at.number if self.name_at else None)
        return self.fault(kind, is_word=is_word)

    def fault(self, keyword: str, *, is_word: bool = True) -> PcfFault:
        """The fault in a keyword or its value."""
        at = self.origins.get(keyword)
        if at is None:
            return PcfFault("MQRCCF_PARM_COUNT_TOO_SMALL")
        return _wrong(at) if is_word else PcfFault("MQRCCF_ATTR_VALUE_ERROR", at.number)


def _wrong(at: PcfParameter) -> PcfFault:
    """The fault of a parameter that the command does not have."""
    return PcfFault(f"MQRCCF_{NAMES[at.type]}_PARM_ID_ERROR", at.number)


def check_header(header: Header) -> None:
    """Raises: PcfFault, the message is not one request."""
    if header.type not in (COMMAND, COMMAND_XR):
        raise PcfFault("MQRCCF_CFH_TYPE_ERROR")
    if header.sequence != 1:
        raise PcfFault("MQRCCF_CFH_MSG_SEQ_NUMBER_ERR")
    if header.control != LAST:
        raise PcfFault("MQRCCF_CFH_CONTROL_ERROR")


def read_request(header: Header, parameters: Sequence[PcfParameter]) -> Request:
    """Reads a request. Raises PcfFault."""
    if header.command not in known_commands():
        raise PcfFault("MQRCCF_CFH_COMMAND_ERROR")
    request = Request(header, *known_commands()[header.command])
    _check_once(parameters)
    if request.kind == "qstatus":
        request.kind = _status_kind(parameters)
    for each in parameters:
        if each.is_filter:
            _filter(request, each)
        elif not (_special(request, each) or _name(request, each)):
            _attribute(request, each)
    if request.kind in NAME and not request.name:
        raise PcfFault("MQRCCF_PARM_COUNT_TOO_SMALL", number(NAME[request.kind]))
    if request.kind == "queue" and request.type is None and request.verb in ("DEFINE", "ALTER", "COPY"):
        raise PcfFault("MQRCCF_PARM_COUNT_TOO_SMALL", number("MQIA_Q_TYPE"))
    if request.verb == "COPY" and "LIKE" not in request.parameters:
        raise PcfFault("MQRCCF_PARM_COUNT_TOO_SMALL", number(f"MQCACF_FROM_{COPIED[request.kind]}_NAME"))
    return request


def _check_once(parameters: Sequence[PcfParameter]) -> None:
    """Raises: PcfFault, a parameter occurs twice, or there are two filters."""
    seen: set[int] = set()
    for each in parameters:
        if each.is_filter:
            continue
        if each.number in seen:
            name = NAMES[each.type]
            raise PcfFault(f"MQRCCF_{name}_DUPLICATE_{'VALUE' if name == 'CFIL' else 'PARM'}", each.number)
        seen.add(each.number)
    if sum(each.is_filter for each in parameters) > 1:
        raise PcfFault("MQRCCF_FILTER_ERROR")


def _status_kind(parameters: Sequence[PcfParameter]) -> str:
    kinds = {number("MQIACF_Q_STATUS"): "qstatus", number("MQIACF_Q_HANDLE"): "handle"}
    for each in parameters:
        if each.number == number("MQIACF_Q_STATUS_TYPE"):
            return _one_of(each, kinds)
    return "qstatus"


def _one_of(at: PcfParameter, allowed: Mapping[int, str], fault: str = "MQRCCF_PARM_VALUE_ERROR") -> str:
    if at.type not in (INTEGER, INTEGER64):
        raise _wrong(at)
    if at.value not in allowed:
        raise PcfFault(fault, at.number)
    return allowed[at.value]  # type: ignore[index]


# ---- parameters that are not words of MQSC


def _special(request: Request, at: PcfParameter) -> bool:
    """Reads a parameter that PCF writes otherwise than MQSC; returns whether it is one."""
    kind, code = request.kind, at.number
    if at.type == GROUP:
        raise PcfFault("MQRCCF_CFGR_PARM_ID_ERROR", code)
    listed = "qstatus" if kind == "handle" else kind
    if request.verb == "DISPLAY" and code == number(LISTS[listed]):
        request.asked = _asked(kind, at)
    elif kind in ("queue", "qstatus", "handle") and code == number("MQIA_Q_TYPE"):
        request.type = _queue_type(request, at)
    elif kind == "channel" and request.verb == "DISPLAY" and code == number("MQIACH_CHANNEL_TYPE"):
        kinds = {number("MQCHT_ALL"): ALL, **_reverse(words_of("channel")["CHLTYPE"])}
        _keep(request, "CHLTYPE", _one_of(at, kinds, "MQRCCF_CHANNEL_TYPE_ERROR"), at)
    elif kind in ("qstatus", "handle") and code == number("MQIACF_Q_STATUS_TYPE"):
        _keep(request, "TYPE", "HANDLE" if kind == "handle" else "QUEUE", at)
    elif kind == "handle" and code == number("MQIACF_OPEN_TYPE"):
        kinds = {number("MQQSOT_ALL"): ALL, number("MQQSOT_INPUT"): "INPUT", number("MQQSOT_OUTPUT"): "OUTPUT"}
        _keep(request, "OPENTYPE", _one_of(at, kinds), at)
    elif kind == "conn" and code == number("MQIACF_CONN_INFO_TYPE"):
        kinds = {number(f"MQIACF_CONN_INFO_{word}"): word for word in ("CONN", "HANDLE", ALL)}
        request.info = _one_of(at, kinds)
        _keep(request, "TYPE", request.info, at)
    elif kind == "chstatus" and code == number("MQIACH_CHANNEL_INSTANCE_TYPE"):
        kinds = {number("MQOT_CURRENT_CHANNEL"): "", number("MQOT_SAVED_CHANNEL"): ""}
        _one_of(at, kinds, "MQRCCF_CHL_INST_TYPE_ERROR")
    elif kind == "chstatus" and code in (number("MQCACH_CONNECTION_NAME"), number("MQCACH_XMIT_Q_NAME")):
        if text := _text(at):
            _keep(request, "WHERE", (by_number(kind)[code].keyword, "EQ", text), at)
    elif request.verb == "COPY" and code == number(f"MQCACF_FROM_{COPIED[kind]}_NAME"):
        _keep(request, "LIKE", _text(at), at)
    else:
        return False
    return True


def _keep(request: Request, keyword: str, value: Any, at: PcfParameter) -> None:
    request.parameters[keyword.lower() if keyword != "LIKE" else keyword] = value
    request.origins[keyword] = at


def _reverse(word: MqWord) -> dict[int, str]:
    return {code: str(each) for each, code in numbers_of(word).items()}


def _queue_type(request: Request, at: PcfParameter) -> str | None:
    """The type of queue; monitoring programs say it for a status too, which only local queues have."""
    kinds = {code: word for code, word in _reverse(words_of("queue")["TYPE"]).items() if code < EVERY}
    kinds |= {EVERY: ""} if request.verb in ("DISPLAY", "DELETE") else {}
    if request.kind != "queue":
        kinds = {EVERY: "", number("MQQT_LOCAL"): ""}
    return _one_of(at, kinds, "MQRCCF_Q_TYPE_ERROR") or None


def _asked(kind: str, at: PcfParameter) -> list[str]:
    """The keywords for a list of attributes. Raises: PcfFault 2067, one is not here."""
    values = at.value if at.type in (INTEGER_LIST, INTEGER64_LIST) else [at.value]
    if at.type not in (INTEGER_LIST, INTEGER64_LIST, INTEGER):
        raise _wrong(at)
    asked: list[str] = []
    for code in values:  # type: ignore[union-attr]
        if code == number("MQIACF_ALL"):
            return [ALL]
        word = by_number(kind).get(code)  # type: ignore[arg-type]
        if code == number(NAME.get(kind, "MQCA_Q_MGR_NAME")) or (kind, code) == ("handle", number("MQCA_Q_NAME")):
            continue  # every answer has it
        if word is None or word.why or word.use == "give":
            raise PcfFault("MQRC_SELECTOR_ERROR", code)  # type: ignore[arg-type]
        if word.keyword != "TYPE":
            asked.append(word.keyword)
    return asked or [NAMED[kind]]


def _name(request: Request, at: PcfParameter) -> bool:
    """Reads the name of the object; returns whether the parameter is one."""
    kind = "qstatus" if request.kind == "handle" else request.kind
    if kind not in NAME:
        return False
    if kind == "conn":
        return _connection(request, at)
    code = number(f"MQCACF_TO_{COPIED[kind]}_NAME" if request.verb == "COPY" else NAME[kind])
    if at.number != code:
        return False
    request.name, request.name_at = _text(at), at
    return True


def _connection(request: Request, at: PcfParameter) -> bool:
    """Reads the identifier of a connection, or its beginning: our number of it is at its end."""
    if at.number not in (number("MQBACF_CONNECTION_ID"), number("MQBACF_GENERIC_CONNECTION_ID")):
        return False
    if at.type != BYTE_STRING:
        raise _wrong(at)
    assert isinstance(at.value, bytes)
    digits = at.value[CONNECTION_PREFIX:].hex().upper()
    generic = at.number == number("MQBACF_GENERIC_CONNECTION_ID") or not at.value.strip(b"\0")
    request.name, request.name_at = (f"{digits}*" if generic else digits), at
    return True


def _text(at: PcfParameter) -> str:
    if at.type != STRING:
        raise _wrong(at)
    assert isinstance(at.value, str)
    return at.value


# ---- attributes


def _attribute(request: Request, at: PcfParameter) -> None:
    word = by_number(request.kind).get(at.number)
    if word is None or word.use == "show":
        raise _wrong(at)
    value = _written(word, at)
    if word.use == "give" and (word.values == "-" or word.is_harmless(None)):
        if value in ("YES", "1") and not word.why:
            _keep(request, word.keyword, "yes", at)
        return
    _keep(request, word.keyword, value, at)


def _written(word: MqWord, at: PcfParameter) -> Any:
    """The value as `source_of` takes it. Raises PcfFault."""
    is_text = isinstance(at.value, str) or (isinstance(at.value, list) and at.type == STRING_LIST)
    if is_text_number(at.number) != is_text or isinstance(at.value, bytes | tuple):
        raise _wrong(at)
    if isinstance(at.value, list):
        return [_one(word, each, at) for each in at.value] or ""
    return _one(word, at.value, at)


def _one(word: MqWord, value: str | int, at: PcfParameter) -> str | int:
    if isinstance(value, str):
        return value
    numbers = numbers_of(word)
    for each, code in numbers.items():
        if code == value:
            return each if isinstance(each, str) else "yes" if each else "no"
    if word.keyword == "CHLTYPE":
        raise PcfFault("MQRCCF_CHANNEL_TYPE_ERROR", at.number)
    if numbers and word.keyword != "APPLTYPE":
        raise PcfFault("MQRCCF_ATTR_VALUE_ERROR", at.number)
    attribute = word.attribute
    if value == -1 and (attribute is None or attribute.kind == "seconds"):
        return "NOLIMIT" if attribute is None else attribute.mqsc_none
    return value


def _filter(request: Request, at: PcfParameter) -> None:
    """Reads a filter as the condition of a DISPLAY. Raises PcfFault."""
    name = NAMES[at.type]
    word = by_number(request.kind).get(at.number)
    is_text = at.type == STRING_FILTER
    fits = word is not None and not word.why and word.use != "give" and word.keyword != "TYPE"
    if not fits or at.type == BYTE_STRING_FILTER or is_text_number(at.number) != is_text or request.verb != "DISPLAY":
        raise PcfFault(f"MQRCCF_{name}_PARM_ID_ERROR", at.number)
    assert word is not None
    assert isinstance(at.value, str | int)
    operators = {number(f"MQCFOP_{constant}"): operator for constant, operator in OPERATORS.items()}
    if at.operator not in operators:
        raise PcfFault(f"MQRCCF_{name}_OPERATOR_ERROR", at.number)
    value = _one(word, at.value, at)
    if word.attribute is not None and is_switch(word.attribute):
        value = str(value).upper()
    _keep(request, "WHERE", (word.keyword, operators[at.operator], str(value)), at)
