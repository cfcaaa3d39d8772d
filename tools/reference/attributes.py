"""The page of attributes, read off the tables of `inorder.attributes`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, fields
from typing import Any

from inorder.attribute import Attribute
from inorder.attributes import MANAGER_ATTRIBUTES, QUEUE_ATTRIBUTES, QueueStatus, QueueType, define_queue
from inorder.channel_attributes import CHANNEL_ATTRIBUTES

from .markdown import code, codes, page, table

HEADINGS = ("attribute", "in MQ", "number", "meaning", "values", "default", "changed by")
CHANGED_BY = {"create": "nobody", "alter": "alter", "set": "alter, set"}
OTHER_TYPES: tuple[QueueType, ...] = ("model", "alias")

QUEUES = """\
`qm.create_queue(NAME, **attributes)` and `qm.alter_queue` take them as keywords, `inorder queue create` and `alter` as
options with hyphens, `qm.inquire` tells them. `create_alias` makes an alias, `create_model` a model. What is given is
checked at once: a name that does not exist, a value out of range, or an attribute that a queue of this type does not
have is an error, and nothing has changed.

*Changed by*: **alter** with `qm.alter_queue`; **set** also with `Queue.set` of a handle that is open for set.
Numbers such as R4.11 or B-18 are those of [the rules](../spec/README.md).

*In MQ* and *number* are what MQINQ and MQSET call it. `qm.inquire` and `Queue.set` take them too, and then speak in
MQ's values, which stand in brackets where they are others: `qm.inquire("ORDERS", "MaxQDepth", 9)` tells
`{"MaxQDepth": 999999999, 9: 0}`, for gets are not inhibited, and `queue.set(InhibitGet=1)`, or `queue.set({9: 1})`,
inhibits them, as `queue.set(get_allowed=False)` does."""

STATUS = """\
`qm.inquire` and `qm.status` tell them; nobody sets them."""

TYPES = """\
A local queue has all attributes but `base_queue`, and so has a model, for the queues that it makes."""

MANAGER = """\
`qm.manager_attributes` tells them, `qm.alter_manager` changes them."""

CHANNELS = """\
`inorder.channels.define_channel` and `alter_channel` take them, `inorder channel create` and `alter` as options with
hyphens; in MQSC they have MQ's keywords. The name and the type stay as they are."""

CHANNEL_HEADINGS = ("attribute", "in MQSC", "of", "meaning", "values", "default")


def attributes_page() -> str:
    return page(
        "Attributes",
        "Every attribute is declared once, in `src/inorder/attributes.py`; this page is made from there.",
        "## Queues",
        QUEUES,
        attributes_table(QUEUE_ATTRIBUTES),
        "### By type of queue",
        TYPES,
        "\n".join(_of_type(kind) for kind in OTHER_TYPES),
        "### Status",
        STATUS,
        table(("name", "in MQ", "number"), map(_status_row, fields(QueueStatus))),
        "## The queue manager",
        MANAGER,
        attributes_table(MANAGER_ATTRIBUTES),
        "## Channels",
        CHANNELS,
        table(CHANNEL_HEADINGS, map(_channel_row, CHANNEL_ATTRIBUTES.values())),
    )


def _channel_row(attribute: Attribute) -> tuple[str, ...]:
    of = ", ".join(sorted(attribute.applies_to))
    return code(attribute.name), attribute.mqsc, of, attribute.doc, _values(attribute), _default(attribute)


def attributes_table(attributes: Mapping[str, Attribute]) -> str:
    return table(HEADINGS, map(_row, attributes.values()))


def _row(attribute: Attribute) -> tuple[str, ...]:
    return (
        code(attribute.name),
        attribute.mq_name or "",
        str(attribute.selector or ""),
        attribute.doc,
        _values(attribute),
        _default(attribute),
        CHANGED_BY[attribute.changed_by],
    )


def _status_row(each: Field[Any]) -> tuple[str, ...]:
    return code(each.name), each.metadata.get("mq_name", ""), str(each.metadata.get("selector", ""))


def _values(attribute: Attribute) -> str:
    if attribute.kind in ("choice", "boolean"):
        ours = attribute.choices or (True, False)
        return ", ".join(code(str(each)) + _in_mq(attribute, each) for each in ours)
    return attribute.allowed.replace("A-Z a-z 0-9 . / _ %", "`A-Z` `a-z` `0-9` `.` `/` `_` `%`")


def _in_mq(attribute: Attribute, value: object) -> str:
    return f" ({attribute.to_mq(value)})" if attribute.mq_values else ""


def _default(attribute: Attribute) -> str:
    if attribute.kind == "name" and attribute.minimum and not attribute.default:
        return "required"
    if isinstance(attribute.default, str):
        return code(attribute.default) or "empty"
    if attribute.kind == "integer":
        return f"{attribute.default:,}"
    return code(str(attribute.default))


def _of_type(kind: QueueType) -> str:
    """How a queue of another type differs from a local one."""
    lacks = [name for name, each in QUEUE_ATTRIBUTES.items() if kind not in each.applies_to]
    local, other = define_queue("Q"), define_queue("Q", kind)
    differs = [
        f"`{name}` is `{getattr(other, name)}`"
        for name in QUEUE_ATTRIBUTES
        if name not in ("type", *lacks) and getattr(other, name) != getattr(local, name)
    ]
    return (
        "* "
        + f"**{kind}**: "
        + "; ".join([f"defaults: {', '.join(differs)}" if differs else "the same defaults", f"has no {codes(lacks)}"])
    )
