"""Writes the outcome of a command in PCF: the rows of an inquiry as parameters, and errors as reason codes.

Rules: *mqi* M-14.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final, cast

from ...errors import Reason
from ...mq.mqsc import Answer, Unsupported
from ...mq.mqsc.objects import OBJECTS, Found, Row
from ...mq.mqsc.values import Value
from ...mq.words import MqWord, words_of
from ..constants import MQ_REASON_MAX, constants
from .coding import FAILED, LAST, NOT_LAST, RESPONSE, Coding, Header, Padded, PcfFault, parameter, write
from .requests import NAME, NAMED, Request, is_text_number, number, numbers_of

LENGTH: Final = re.compile(r"char(\d+)")
LENGTHS: Final = {"date": 12, "time": 8}  # MQ_DATE_LENGTH, MQ_TIME_LENGTH
UNLIMITED: Final = {"MARKINT": -1, "TRIGINT": 999_999_999}
"""MQ's numbers for an attribute in seconds that is None: no limit, and the longest time there is."""

REASONS: Final[Mapping[Reason, str]] = {
    Reason.OBJECT_ALREADY_EXISTS: "MQRCCF_OBJECT_ALREADY_EXISTS",
    Reason.OBJECT_TYPE_ERROR: "MQRCCF_Q_WRONG_TYPE",
    Reason.CHL_STATUS_NOT_FOUND: "MQRCCF_CHL_STATUS_NOT_FOUND",
    Reason.CHANNEL_IN_DOUBT: "MQRCCF_CHANNEL_INDOUBT",
    Reason.NOT_FOUND: "MQRCCF_CHANNEL_NOT_ACTIVE",
    Reason.ARGUMENT_ERROR: "MQRCCF_ATTR_VALUE_ERROR",
}
"""The reasons for which PCF has separate names; the others have the MQI's."""
OF_CHANNELS: Final[Mapping[Reason, str]] = {
    Reason.UNKNOWN_OBJECT_NAME: "MQRCCF_CHANNEL_NOT_FOUND",
    Reason.OBJECT_ALREADY_EXISTS: "MQRCCF_CHANNEL_ALREADY_EXISTS",
    Reason.OBJECT_IN_USE: "MQRCCF_CHANNEL_IN_USE",
}


def reason_of(reason: Reason, kind: str) -> int:
    """MQ's reason code for the reason of an error; MQRCCF_COMMAND_FAILED if MQ has none."""
    name = (OF_CHANNELS.get(reason) if kind == "channel" else None) or REASONS.get(reason)
    if name is not None:
        return number(name)
    return int(reason) if reason <= MQ_REASON_MAX else number("MQRCCF_COMMAND_FAILED")


def fault_of(request: Request, answer: Answer) -> PcfFault:
    """The fault in a request that MQSC has refused, or of a command that has failed."""
    error = answer.error
    assert error is not None, "a command that fails has an error"
    if answer.outcome == "refused":
        return PcfFault(reason_of(error.reason, request.kind))
    if isinstance(error, Unsupported) and error.data["keyword"] is not None:
        return request.fault(str(error.data["keyword"]))
    member = answer.source.members[int(cast(int, error.data["line"])) - 1]
    if member in ("command", "qualifier"):
        if isinstance(error, Unsupported):  # an object that every queue manager of MQ has
            return PcfFault(reason_of(Reason.UNKNOWN_OBJECT_NAME, request.kind))
        return PcfFault("MQRCCF_CFH_COMMAND_ERROR")
    if isinstance(error, Unsupported):
        return PcfFault("MQRCCF_CHANNEL_TYPE_ERROR", number("MQIACH_CHANNEL_TYPE"))
    return request.fault_at(member, is_word=error.data["column"] == 1)


# ---- messages


def failure(header: Header, fault: PcfFault, coding: Coding) -> list[bytes]:
    """The reply to a request that failed: one message, with the parameter that is wrong."""
    at = fault.parameter
    named = [] if at is None else [parameter(number("MQIACF_PARAMETER_ID"), at, coding)]
    reply = Header(RESPONSE, header.version, header.command, 1, LAST, FAILED, fault.reason)
    return [write(reply, named, coding)]


def messages(header: Header, replies: Sequence[Sequence[bytes]], coding: Coding, *, reason: int = 0) -> list[bytes]:
    """The replies to a request: a message for each list of parameters."""
    reply = Header(RESPONSE, header.version, header.command, completion=FAILED if reason else 0, reason=reason)
    return [
        write(reply._replace(sequence=place, control=LAST if place == len(replies) else NOT_LAST), each, coding)
        for place, each in enumerate(replies, 1)
    ]


# ---- rows


def rows_in(kind: str, rows: Iterable[Found], manager: str, coding: Coding) -> list[list[bytes]]:
    """The parameters for each object of an inquiry. `manager`: the name of the queue manager."""
    return [list(_row(kind, each, manager, coding)) for found in rows for each in _apart(kind, found)]


def _apart(kind: str, found: Found) -> Iterator[Row]:
    """A connection and each of its handles, which are separate objects in PCF."""
    own = {word: cast(Value, value) for word, value in found.items() if word != OBJECTS}
    if kind != "conn":
        yield own
        return
    if own["TYPE"] != "HANDLE":
        yield {**own, "TYPE": "CONN"}
    for each in cast("tuple[Row, ...]", found.get(OBJECTS, ())):
        yield {"CONN": own["CONN"], "TYPE": "HANDLE", **each}


def _row(kind: str, row: Row, manager: str, coding: Coding) -> Iterator[bytes]:
    table = words_of(kind)
    first = [word for word in (NAMED[kind], "TYPE", "CHLTYPE") if word in row]
    for keyword in (*first, *(word for word in row if word not in first)):
        value = row[keyword]
        if (said := _special(kind, keyword, value, manager)) is not None:
            yield parameter(*said, coding)
        elif (word := table.get(keyword)) is not None and word.number is not None:
            yield parameter(word.number, written(word, value), coding)


def _special(kind: str, keyword: str, value: Value, manager: str) -> tuple[int, int | bytes | Padded] | None:
    """A value that PCF writes otherwise than MQSC; None: there is no such one."""
    match kind, keyword:
        case "qstatus" | "handle", "QUEUE":
            return number(NAME["qstatus"]), Padded(str(value), 48)
        case "qstatus" | "handle", "TYPE":
            return number("MQIACF_Q_STATUS_TYPE"), number("MQIACF_Q_HANDLE" if value == "HANDLE" else "MQIACF_Q_STATUS")
        case "conn", "CONN":
            return number("MQBACF_CONNECTION_ID"), connection_id(str(value), manager)
        case "conn", "TYPE":
            return number("MQIACF_CONN_INFO_TYPE"), number(f"MQIACF_CONN_INFO_{value}")
    return None


def connection_id(digits: str, manager: str) -> bytes:
    """The identifier of a connection: MQ's mark, the beginning of the queue manager's name, and our number of it."""
    return b"AMQC" + manager.encode()[:12].ljust(12) + bytes.fromhex(digits)


def written(word: MqWord, value: Value) -> int | Padded | list[str]:
    """A value of MQSC in PCF's form."""
    if isinstance(value, tuple):
        if word.constants:
            return sum(int(constants()[word.constants[each]]) for each in value)
        return list(value)
    numbers = numbers_of(word)
    if value in numbers:
        return numbers[value]  # type: ignore[index]
    if isinstance(value, int | Decimal):
        return int(value)
    if word.number is not None and not is_text_number(word.number):
        return UNLIMITED.get(word.keyword, -1)
    return Padded(value, length_of(word))


def length_of(word: MqWord) -> int:
    """The length of a text, which blanks fill up; 0 if it varies."""
    if word.attribute is not None and word.attribute.max_length:
        return word.attribute.max_length
    found = LENGTH.fullmatch(word.values)
    return int(found[1]) if found else LENGTHS.get(word.values, 0)
