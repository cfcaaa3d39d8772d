"""The words of the language: verbs, objects, and the keywords of attributes and of what a queue is at the moment.

Attributes have their keywords in `inorder.attributes`, the one table of them; here they are only looked up.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ..attributes import MANAGER_ATTRIBUTES, QUEUE_ATTRIBUTES, Attribute, QueueStatus, QueueType
from ..stores.damage import utc

VERBS: Final = ("DEFINE", "ALTER", "DISPLAY", "DELETE", "CLEAR")
ENDS: Final = frozenset({"END", "QUIT", "EXIT"})

# The short forms are MQ's. DELETE has none there, so that nobody deletes by a slip of DEF.
SHORT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "DEF": "DEFINE",
        "ALT": "ALTER",
        "DIS": "DISPLAY",
        "QL": "QLOCAL",
        "QA": "QALIAS",
        "QM": "QMODEL",
        "Q": "QUEUE",
        "QS": "QSTATUS",
    }
)
SYNONYMS: Final[Mapping[str, str]] = MappingProxyType({"TARGQ": "TARGET"})  # of keywords
TYPES: Final[Mapping[str, QueueType]] = MappingProxyType({"QLOCAL": "local", "QALIAS": "alias", "QMODEL": "model"})
OBJECTS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "DEFINE": tuple(TYPES),
        "ALTER": (*TYPES, "QMGR"),
        "DISPLAY": ("QUEUE", *TYPES, "QSTATUS", "QMGR"),
        "DELETE": tuple(TYPES),
        "CLEAR": ("QLOCAL",),
    }
)

QUEUE_KEYWORDS: Final[Mapping[str, Attribute]] = MappingProxyType(
    {each.mqsc: each for each in QUEUE_ATTRIBUTES.values()}
)
MANAGER_KEYWORDS: Final[Mapping[str, Attribute]] = MappingProxyType(
    {each.mqsc: each for each in MANAGER_ATTRIBUTES.values()}
)

# What QSTATUS tells, and what QLOCAL tells besides the attributes.
STATUS_KEYWORDS: Final = ("CURDEPTH", "IPPROCS", "OPPROCS", "UNCOM")
LOCAL_KEYWORDS: Final = ("CURDEPTH", "IPPROCS", "OPPROCS", "CRDATE", "CRTIME", "ALTDATE", "ALTTIME")
INTEGER_STATUS: Final = frozenset(STATUS_KEYWORDS)


def keywords_of(owner: str) -> dict[str, Attribute]:
    """The keywords of a type of queue, or of "manager", by their names."""
    table = MANAGER_KEYWORDS if owner == "manager" else QUEUE_KEYWORDS
    return {keyword: each for keyword, each in table.items() if owner in each.applies_to}


def is_switch(attribute: Attribute) -> bool:
    """Whether it is written KEYWORD or NOKEYWORD, without a value."""
    return attribute.kind == "boolean" and not attribute.mqsc_words


def is_ours(attribute: Attribute) -> bool:
    """Whether MQ has no such attribute, so that its keyword is ours."""
    return attribute.mq_name is None


def status_values(status: QueueStatus) -> dict[str, int | str]:
    """What a queue is at the moment, by keywords; dates and times are UTC, written as MQ does."""
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
