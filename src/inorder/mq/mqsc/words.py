"""The words of the language that inorder has: verbs, objects, and the keywords of queues and the queue manager.

They come from the table in `inorder.mq.words`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from ...model.attribute import COUNT_MAX, Attribute
from ...model.attributes import MANAGER_ATTRIBUTES, QUEUE_ATTRIBUTES, QueueStatus, QueueType
from ...stores.seam.damage import utc
from .. import words

ENDS: Final = frozenset({"END", "QUIT", "EXIT"})


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueKind:
    """A type of queue.

    Args:
        word: its name in commands.
        type: in `inorder.model.attributes`, whose table has its keywords.
        who: its name in errors.
        default: the object whose attributes a DEFINE without LIKE copies; empty: none.
    """

    word: str
    type: QueueType
    who: str
    default: str = ""


BY_TYPE: Final[Mapping[str, QueueKind]] = MappingProxyType(
    {
        each.type: each
        for each in (
            QueueKind(word="QLOCAL", type="local", who="a local queue", default="SYSTEM.DEFAULT.LOCAL.QUEUE"),
            QueueKind(word="QALIAS", type="alias", who="an alias queue", default="SYSTEM.DEFAULT.ALIAS.QUEUE"),
            QueueKind(word="QMODEL", type="model", who="a model queue", default="SYSTEM.DEFAULT.MODEL.QUEUE"),
            QueueKind(word="QREMOTE", type="remote", who="a remote queue", default="SYSTEM.DEFAULT.REMOTE.QUEUE"),
            QueueKind(word="QFORWARD", type="store_and_forward", who="a store-and-forward queue"),
            QueueKind(word="QHOME", type="home_server", who="a home-server queue"),
        )
    }
)
TYPES: Final[Mapping[str, QueueType]] = MappingProxyType({each.word: each.type for each in BY_TYPE.values()})
VERBS: Final = words.verbs()
SHORT: Final = words.short_forms()
OBJECTS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({verb: words.objects_of(verb) for verb in VERBS})

QUEUE_KEYWORDS: Final[Mapping[str, Attribute]] = MappingProxyType(
    {each.mqsc: each for each in QUEUE_ATTRIBUTES.values()}
)
MANAGER_KEYWORDS: Final[Mapping[str, Attribute]] = MappingProxyType(
    {each.mqsc: each for each in MANAGER_ATTRIBUTES.values()}
)

STATUS_KEYWORDS: Final = words.here("qstatus")
LOCAL_KEYWORDS: Final = words.here("queue")  # of QLOCAL besides the attributes
INTEGER_STATUS: Final = words.integers("qstatus")


def keywords_of(owner: str) -> dict[str, Attribute]:
    """The keywords of a type of queue, or of "manager", with their attributes."""
    table = MANAGER_KEYWORDS if owner == "manager" else QUEUE_KEYWORDS
    return {keyword: each for keyword, each in table.items() if owner in each.applies_to}


def is_switch(attribute: Attribute) -> bool:
    """Whether it is written KEYWORD or NOKEYWORD, without a value."""
    return attribute.kind == "boolean" and not attribute.mqsc_words


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
