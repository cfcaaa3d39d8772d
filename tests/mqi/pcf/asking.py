"""PCF requests as tests write them, and PCF replies as values."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

from inorder import QueueManager
from inorder.mqi.constants import constants
from inorder.mqi.pcf.answering import May, PcfCommand, everything
from inorder.mqi.pcf.coding import (
    COMMAND_XR,
    INTEGER_FILTER,
    LAST,
    NATIVE,
    STRING_FILTER,
    Coding,
    Header,
    parameter,
    read,
    write,
)


class Filter(NamedTuple):
    """A condition, for example Filter("EQUAL", 5)."""

    operator: str
    value: int | str


class Reply(NamedTuple):
    reason: int
    last: bool
    values: Mapping[str, Any]


def number(name: str | int) -> int:
    return name if isinstance(name, int) else int(constants()[name])


def request(command: str | int, given: Mapping[str, Any], coding: Coding = NATIVE, kind: int = COMMAND_XR) -> bytes:
    """A request. The parameters have the names of their constants."""
    code = command if isinstance(command, int) else number(f"MQCMD_{command}")
    return write(Header(kind, 3, code), [_parameter(name, value, coding) for name, value in given.items()], coding)


def _parameter(name: str, value: Any, coding: Coding) -> bytes:
    if not isinstance(value, Filter):
        return parameter(number(name), value, coding)
    operator = number(f"MQCFOP_{value.operator}")
    if isinstance(value.value, int):
        return coding.integers(INTEGER_FILTER, 20, number(name), operator, value.value)
    text = coding.texts.encode(value.value)
    size = -(-len(text) // 4) * 4
    head = coding.integers(STRING_FILTER, 24 + size, number(name), operator, 0, len(text))
    return head + struct.pack(f"{size}s", text)


def replies_in(messages: list[bytes], coding: Coding = NATIVE) -> list[Reply]:
    names = {
        code: name
        for name, code in constants().items()
        if name.startswith(("MQIA_", "MQCA_", "MQIACF_", "MQIACH_", "MQCACF_", "MQCACH_", "MQBACF_"))
    }
    found = []
    for place, message in enumerate(messages, 1):
        header, parameters = read(message, coding)
        assert header.sequence == place
        assert (header.completion == 2) == bool(header.reason)
        values = {names[each.number]: each.value for each in parameters}
        found.append(Reply(header.reason, header.control == LAST, values))
    assert [each.last for each in found] == [False] * (len(found) - 1) + [True]
    return found


def ask(
    qm: QueueManager, command: str | int, *, coding: Coding = NATIVE, may: May = everything, **given: Any
) -> list[Reply]:
    """The replies to a request. Names of parameters omit the first MQ: CA_Q_NAME="A" for MQCA_Q_NAME."""
    data = request(command, {f"MQ{name}": value for name, value in given.items()}, coding)
    return replies_in(PcfCommand(data, coding).answer(qm, may), coding)


def reason(qm: QueueManager, command: str | int, **given: Any) -> int:
    """The reason of a request with a single reply, whose only value may be the wrong parameter."""
    (reply,) = ask(qm, command, **given)
    assert reply.values.keys() <= {"MQIACF_PARAMETER_ID"}
    return reply.reason
