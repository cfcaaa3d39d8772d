"""The tables of attributes, read off the tables of `inorder.model.attributes`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, fields
from typing import Any

from inorder.model.attribute import Attribute
from inorder.model.attributes import MANAGER_ATTRIBUTES, QUEUE_ATTRIBUTES, QueueStatus, QueueType, define_queue
from inorder.model.channel_attributes import CHANNEL_ATTRIBUTES

from .markdown import Parts, code, codes, table

HEADINGS = ("attribute", "in MQ", "number", "meaning", "values", "default", "changed by")
CHANGED_BY = {"create": "nobody", "alter": "alter", "set": "alter, set"}
TYPES: tuple[QueueType, ...] = ("local", "model", "alias", "remote", "store_and_forward", "home_server")
OF_ALL = ("name", "type", "description")

CHANNEL_HEADINGS = ("attribute", "in MQSC", "of", "meaning", "values", "default")


def parts() -> Parts:
    """The parts of docs/reference/attributes.md."""
    return {
        "queues": attributes_table(QUEUE_ATTRIBUTES),
        "types": "\n".join(map(_of_type, TYPES)),
        "status": table(("name", "in MQ", "number"), map(_status_row, fields(QueueStatus))),
        "manager": attributes_table(MANAGER_ATTRIBUTES),
        "channels": table(CHANNEL_HEADINGS, map(_channel_row, CHANNEL_ATTRIBUTES.values())),
    }


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
    """The attributes of a type of queue; for a model, the defaults that differ from a local queue's."""
    has = [name for name, each in QUEUE_ATTRIBUTES.items() if kind in each.applies_to and name not in OF_ALL]
    if kind == "model":
        local, model = define_queue("Q"), define_queue("Q", kind)
        differs = [
            f"`{name}` is `{getattr(model, name)}`" for name in has if getattr(model, name) != getattr(local, name)
        ]
        return f"* **model**: those of a local queue, for the queues that it creates; by default {', '.join(differs)}"
    lacks = [name for name in QUEUE_ATTRIBUTES if name not in (*OF_ALL, *has)]
    return f"* **{kind}**: " + (codes(has) if len(has) < len(lacks) else f"all but {codes(lacks)}")
