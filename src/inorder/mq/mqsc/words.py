"""The words of the language: verbs, objects, and the keywords of attributes and of the status of queues.

The keywords of attributes come from the table in `inorder.model.attributes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from ...model.attribute import COUNT_MAX, Attribute
from ...model.attributes import MANAGER_ATTRIBUTES, QUEUE_ATTRIBUTES, QueueStatus, QueueType
from ...stores.seam.damage import utc

CHANNEL_VERBS: Final = ("START", "STOP", "PING", "RESET", "RESOLVE")
ON_ALL: Final = ("DEFINE", "ALTER", "DISPLAY", "DELETE")
VERBS: Final = (*ON_ALL, "CLEAR", *CHANNEL_VERBS)
ENDS: Final = frozenset({"END", "QUIT", "EXIT"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectKind:
    """A kind of object that can be defined, altered, displayed and deleted.

    Args:
        word, short: its name in commands.
        type: the type in `inorder.model.attributes`, whose table has its keywords.
        who: its name in errors.
        default: the object whose attributes a DEFINE without LIKE copies.
        verbs: the commands for it.
    """

    word: str
    short: str
    type: QueueType
    who: str
    default: str
    verbs: tuple[str, ...] = ON_ALL


KINDS: Final[Mapping[str, ObjectKind]] = MappingProxyType(
    {
        each.word: each
        for each in (
            ObjectKind(
                word="QLOCAL",
                short="QL",
                type="local",
                who="a local queue",
                default="SYSTEM.DEFAULT.LOCAL.QUEUE",
                verbs=(*ON_ALL, "CLEAR"),
            ),
            ObjectKind(
                word="QALIAS",
                short="QA",
                type="alias",
                who="an alias queue",
                default="SYSTEM.DEFAULT.ALIAS.QUEUE",
            ),
            ObjectKind(
                word="QMODEL",
                short="QM",
                type="model",
                who="a model queue",
                default="SYSTEM.DEFAULT.MODEL.QUEUE",
            ),
            ObjectKind(
                word="QREMOTE",
                short="QR",
                type="remote",
                who="a remote queue",
                default="SYSTEM.DEFAULT.REMOTE.QUEUE",
            ),
        )
    }
)
BY_TYPE: Final[Mapping[str, ObjectKind]] = MappingProxyType({each.type: each for each in KINDS.values()})
OTHERS: Final[Mapping[str, tuple[str, ...]]] = {  # objects of only some verbs
    "DEFINE": ("CHANNEL", "PROCESS"),
    "ALTER": ("QMGR", "CHANNEL", "PROCESS"),
    "DISPLAY": ("QUEUE", "QSTATUS", "QMGR", "CHANNEL", "CHSTATUS", "PROCESS", "CONN"),
    "DELETE": ("CHANNEL", "PROCESS"),
    **dict.fromkeys(CHANNEL_VERBS, ("CHANNEL",)),
}

# The short forms are MQ's. DELETE has none there, so that a mistyped DEF deletes nothing.
SHORT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "DEF": "DEFINE",
        "ALT": "ALTER",
        "DIS": "DISPLAY",
        "Q": "QUEUE",
        "QS": "QSTATUS",
        **{each.short: each.word for each in KINDS.values()},
        "CHL": "CHANNEL",
        "CHS": "CHSTATUS",
        "PRO": "PROCESS",
        "STA": "START",
    }
)
SYNONYMS: Final[Mapping[str, str]] = MappingProxyType({"TARGQ": "TARGET"})  # of keywords
TYPES: Final[Mapping[str, QueueType]] = MappingProxyType({each.word: each.type for each in KINDS.values()})
OBJECTS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {verb: (*(each.word for each in KINDS.values() if verb in each.verbs), *OTHERS.get(verb, ())) for verb in VERBS}
)

QUEUE_KEYWORDS: Final[Mapping[str, Attribute]] = MappingProxyType(
    {each.mqsc: each for each in QUEUE_ATTRIBUTES.values()}
)
MANAGER_KEYWORDS: Final[Mapping[str, Attribute]] = MappingProxyType(
    {each.mqsc: each for each in MANAGER_ATTRIBUTES.values()}
)

# The keywords of QSTATUS, and those of QLOCAL besides the attributes.
STATUS_KEYWORDS: Final = ("CURDEPTH", "IPPROCS", "MSGAGE", "OPPROCS", "UNCOM")
LOCAL_KEYWORDS: Final = ("CURDEPTH", "IPPROCS", "OPPROCS", "CRDATE", "CRTIME", "ALTDATE", "ALTTIME")
INTEGER_STATUS: Final = frozenset(STATUS_KEYWORDS)


def keywords_of(owner: str) -> dict[str, Attribute]:
    """The keywords of a type of queue, or of "manager", with their attributes."""
    table = MANAGER_KEYWORDS if owner == "manager" else QUEUE_KEYWORDS
    return {keyword: each for keyword, each in table.items() if owner in each.applies_to}


def is_switch(attribute: Attribute) -> bool:
    """Whether it is written KEYWORD or NOKEYWORD, without a value."""
    return attribute.kind == "boolean" and not attribute.mqsc_words


def is_ours(attribute: Attribute) -> bool:
    """Whether MQ does not have this attribute, so that the keyword is ours."""
    return attribute.mq_name is None


def status_values(status: QueueStatus) -> dict[str, int | str]:
    """The status of a queue, by keywords; dates and times are UTC, written as in MQ."""
    created, altered = map(utc, (status.created_at, status.altered_at))
    return {
        "CURDEPTH": status.current_depth,
        "IPPROCS": status.open_input_count,
        "OPPROCS": status.open_output_count,
        "UNCOM": status.uncommitted,
        "CRDATE": f"{created:%Y-%m-%d}",
        "CRTIME": f"{created:%H.%M.%S}",
        "ALTDATE": f"{altered:%Y-%m-%d}",
        "ALTTIME": f"{altered:%H.%M.%S}",
    }


def age(oldest_put_at: float | None, now: float) -> int:
    """The age of the oldest message, in whole seconds; 0 without messages."""
    return 0 if oldest_put_at is None else min(max(0, int(now - oldest_put_at)), COUNT_MAX)
