"""MQ's constants under MQ's names: ``mq.MQGMO_WAIT`` after ``from . import constants as mq``.

`constants.txt` has them by their prefix, as NAME=VALUE; MQFMT's are eight characters. The reason codes that inorder has
come from `inorder.reasons`; PCF's numbers of attributes and commands come from the table of MQ's words.
`header_constants.txt` has those that only the headers for C programs need: the others of MQ's headers, without those
for exits, for z/OS and for bridges to it.

Rules: section 3 of *mqi*.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final

from ..mq.words import words_of
from ..reasons import Reason

MQ_REASON_MAX: Final = 8999  # reason codes above are inorder's own
KINDS: Final = ("queue", "qstatus", "handle", "process", "manager", "qmstatus", "channel", "chstatus", "conn")


@cache
def constants() -> Mapping[str, Any]:
    """All constants, by name: integers, and bytes for MQFMT."""
    found: dict[str, Any] = {}
    for kind in KINDS:
        found |= {each.name: each.number for each in words_of(kind).values() if each.name and each.number is not None}
    for reason in Reason:
        if reason <= MQ_REASON_MAX:
            found[f"MQRC_{reason.name}"] = int(reason)
    found |= _listed("constants.txt")
    found["MQFMT_NONE"] = bytes(8).replace(b"\0", b" ")
    return MappingProxyType(found)


def of_headers() -> Mapping[str, Any]:
    """All constants, and those that only C programs need."""
    return {**constants(), **_listed("header_constants.txt")}


def _listed(file: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    prefix = ""
    for item in (files(__package__) / file).read_text(encoding="utf-8").split():
        name, given, value = item.partition("=")
        if not given:
            prefix = name
        else:
            found[prefix + name] = value.ljust(8).encode() if prefix == "MQFMT_" else int(value, 0)
    return found


def __getattr__(name: str) -> Any:
    """Makes every constant a name of this module when the first of them is asked for."""
    if not name.startswith("MQ") or name not in constants():
        raise AttributeError(f"inorder.mqi.constants has no {name}")
    globals().update(constants())
    return constants()[name]
