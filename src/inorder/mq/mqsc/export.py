"""Writes definitions as a script of DEFINE commands, to move them to another store, or to MQ."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from ...model.attribute import Attribute
from ...model.attributes import ManagerAttributes, QueueAttributes
from ...model.channel_attributes import CHANNEL_ATTRIBUTES, ChannelAttributes
from ...model.process_attributes import ProcessAttributes
from ..words import words_of
from .channelling import channel_row
from .lines import INSERTS, LINE_LENGTH_MAX
from .processes import process_row
from .values import Scalar, mqsc_value, written
from .words import BY_TYPE, MANAGER_KEYWORDS, keywords_of

INDENT = "   "
INSERT_START: Final = re.compile("|".join(rf"\+(?={re.escape(one[1:])})" for one in INSERTS))
LONG_PART: Final = re.compile(f".{{{LINE_LENGTH_MAX - len('DEFINE -')}}}")  # with the widest text before and after it


def export_queue(queue: QueueAttributes) -> str:
    """Writes the command that defines this queue, on several lines, with one attribute on each line after the first.

    It says REPLACE, so that a script can be run again. Attributes that MQ refuses are written only if they are not at
    their defaults, so that MQ can define a queue that does not use them from the same text.
    """
    items = [_item(word, mqsc_value(each, getattr(queue, each.name))) for word, each in _told(queue)]
    kind = mqsc_value(keywords_of(queue.type)["TYPE"], queue.type)
    return " +\n".join(
        [f"DEFINE {written(str(kind), queue.name)}", *(INDENT + item for item in items), f"{INDENT}REPLACE"]
    )


def _told(queue: QueueAttributes) -> Iterator[tuple[str, Attribute]]:
    for word, each in keywords_of(queue.type).items():
        is_default = getattr(queue, each.name) == each.default
        if each.name not in ("name", "type") and not (is_default and _is_unknown_to_mq(queue, each)):
            yield word, each


def _is_unknown_to_mq(queue: QueueAttributes, attribute: Attribute) -> bool:
    """Whether MQ refuses the attribute: it has no DEFTYPE in DEFINE QLOCAL, and INDXTYPE only on z/OS."""
    of_no_use = attribute.name == "definition_type" and queue.type == "local"
    return attribute.mq_name is None or of_no_use or attribute.name == "index_type"


def export_manager(manager: ManagerAttributes) -> str | None:
    """Writes the command that sets the attributes of this queue manager that are not at their defaults; None without
    any.

    The name is not included: it is set when a store is created.
    """
    items = [
        _item(word, mqsc_value(each, getattr(manager, each.name)))
        for word, each in MANAGER_KEYWORDS.items()
        if each.changed_by != "create" and getattr(manager, each.name) != each.default
    ]
    return " +\n".join(["ALTER QMGR", *(INDENT + item for item in items)]) if items else None


def export_queues(queues: Iterable[QueueAttributes]) -> Iterator[str]:
    """Writes the commands for queues, an alias after its base queue; each may be several lines, without the last line
    end.

    An alias whose base queue became a model or an alias later comes before it, because DEFINE refuses an alias of an
    existing queue of these types. The default objects come last, so that no other DEFINE takes its defaults from them.

    Temporary dynamic queues belong to the handle that opened them: a comment names them instead.
    """
    by_name = {queue.name: queue for queue in queues}
    defaults = {each.default for each in BY_TYPE.values()}

    def place(queue: QueueAttributes) -> tuple[bool, int, str]:
        wrong, one = 0, queue
        while one.type == "alias" and (base := by_name.get(one.base_queue)) and base.type not in ("local", "remote"):
            wrong, one = wrong + 1, base
        return queue.name in defaults, -wrong if wrong else int(queue.type == "alias"), queue.name

    for queue in sorted(by_name.values(), key=place):
        if queue.type == "local" and queue.definition_type == "temporary_dynamic":
            yield f"* {queue.name} is a temporary dynamic queue, which ends with its opener"
        else:
            yield export_queue(queue)


def export_process(process: ProcessAttributes) -> str:
    """Writes the command that defines this process, with REPLACE."""
    return _define(process_row(process))


def export_channel(channel: ChannelAttributes) -> str:
    """Writes the command that defines this channel, with REPLACE. Our own READORDER and SENDER are left out if they are
    the defaults.
    """
    row = channel_row(channel)
    for each in CHANNEL_ATTRIBUTES.values():
        if words_of("channel")[each.mqsc].is_ours and getattr(channel, each.name) == each.default:
            row.pop(each.mqsc, None)
    return _define(row)


def _define(row: Mapping[str, Scalar]) -> str:
    """Writes a definition whose name is its first item."""
    first, *items = [_item(word, value) for word, value in row.items()]
    return " +\n".join([f"DEFINE {first}", *(INDENT + item for item in items), f"{INDENT}REPLACE"])


def _item(word: str, value: Scalar) -> str:
    """Writes an attribute. It is broken where its line would be too long, and inside a text that stands for the name of
    the queue manager in a script.
    """
    return LONG_PART.sub(r"\g<0>-\n", INSERT_START.sub(r"\g<0>-\n", written(word, value)))
