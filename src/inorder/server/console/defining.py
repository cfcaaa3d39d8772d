"""Forms for definitions of queues: create, alter, inhibit, clear, delete. Each runs a command of MQSC.

So the authorities, the log of acts and the words of errors are those of MQSC.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from starlette.responses import Response

from ...errors import InorderError
from ...model.attribute import Attribute
from ...model.attributes import QUEUE_ATTRIBUTES, QueueAttributes, QueueType
from ...model.parameters import one_of
from ...mq.mqsc import Answer, commands_in
from ...mq.mqsc.running import is_fatal
from ...mq.mqsc.values import mqsc_value, written
from ...mq.mqsc.words import BY_TYPE, is_switch
from ..admin import answered
from ..problems import Problem, problem
from . import acting, forms
from .labels import field_name
from .page import Page, Visit
from .rendering import shown

USUAL: Final = (
    "description", "base_queue", "remote_queue", "remote_manager", "transmission_queue", "put_allowed", "get_allowed",
    "max_depth", "max_length", "delivery", "order", "read_order", "default_priority", "default_persistence",
    "usage", "backout_threshold", "backout_requeue_queue",
)  # fmt: skip
"""The attributes that a form shows first."""
WAS: Final = "was."  # before the name of a field: its text when the form was shown
SWITCHES: Final = {"yes": True, "no": False}


async def run(visit: Visit, command: str) -> Answer:
    """Runs a command. Raises: Problem 403; StoreError."""
    [source] = commands_in([command])
    answer = await answered(visit, source)
    if answer.error is not None and is_fatal(answer.error):
        raise answer.error
    return answer


def fields_of(kind: QueueType) -> list[Attribute]:
    """The attributes of a type of queue that a form can change, the usual ones first."""
    found = [one for one in QUEUE_ATTRIBUTES.values() if kind in one.applies_to and one.changed_by != "create"]
    return sorted(found, key=lambda one: USUAL.index(one.name) if one.name in USUAL else len(USUAL))


def text_of(attribute: Attribute, value: object) -> str:
    """A value as its field shows it."""
    if attribute.kind == "boolean":
        return "yes" if value else "no"
    return "" if value is None else str(value)


def _value_of(attribute: Attribute, text: str) -> Any:
    """Reads a field. Raises: ArgumentError."""
    if attribute.kind == "boolean":
        return attribute.check(SWITCHES.get(text, text))
    if not text and attribute.kind == "seconds":
        return None
    return attribute.takes.read(field_name(attribute.name), text)


def _changes(visit: Visit, kind: QueueType, before: QueueAttributes | None) -> list[str]:
    """The keywords for the fields that the visitor has changed. Raises: ArgumentError."""
    found = []
    for one in fields_of(kind):
        text = visit.form.get(one.name)
        usual = one.default if before is None else getattr(before, one.name)
        is_left = text == visit.form.get(WAS + one.name)  # another may have altered it since the form was shown
        if isinstance(text, str) and not is_left and text.strip() != text_of(one, usual):
            value = mqsc_value(one, _value_of(one, text.strip()))
            found.append(written(one.mqsc, value))
    return found


def _values(visit: Visit, kind: QueueType, given: Mapping[str, str], **others: Any) -> dict[str, Any]:
    fields = fields_of(kind)
    shown_first = [one for one in fields if one.name in USUAL]
    return {
        "type": kind, "types": {one.type: one.who for one in BY_TYPE.values()}, "fields": shown_first,
        "more": [one for one in fields if one.name not in USUAL], "given": given, "is_switch": is_switch,
        "name": "", "asks": "", "was": {}, **others,
    }  # fmt: skip


def _given(visit: Visit, kind: QueueType, before: QueueAttributes | None, prefix: str = "") -> dict[str, str]:
    """The texts of all fields: those that the visitor has sent, or the values of now, or the defaults."""
    usual = {
        one.name: text_of(one, one.default if before is None else getattr(before, one.name)) for one in fields_of(kind)
    }
    return usual | {name: visit.text(prefix + name) for name in usual if prefix + name in visit.form}


def _failed(visit: Visit, found: Answer | InorderError | Problem, values: Mapping[str, Any]) -> Response:
    if isinstance(found, Answer):
        return shown(visit, values, wrong=f"{found.number}: {found.text}")
    return acting.refused(visit, found, values)


# --- a new queue


def _kind(text: str) -> QueueType:
    if text not in BY_TYPE:
        raise problem("INWB0003E", "type", f"must be {one_of(BY_TYPE)}, or left out")
    return BY_TYPE[text].type


async def show_new(visit: Visit) -> Mapping[str, Any]:
    """GET define: the form for a new queue of a type."""
    kind = _kind(visit.query("type").get("type", "local"))
    return _values(visit, kind, _given(visit, kind, None))


async def create(visit: Visit) -> Response:
    """POST define: creates the queue."""
    kind, name = _kind(visit.text("type")), visit.text("name").strip()
    values = _values(visit, kind, _given(visit, kind, None), name=name)
    try:
        if not name:
            raise acting.left_out("name", "the name of the queue is missing: fill it in")
        QUEUE_ATTRIBUTES["name"].check(name)
        words = [f"DEFINE {written(BY_TYPE[kind].word, name)}", *_changes(visit, kind, None)]
        answer = await run(visit, " ".join(words))
    except (InorderError, Problem) as error:
        return _failed(visit, error, values)
    if answer.failed:
        return _failed(visit, answer, values)
    return forms.done(visit, answer.text, *(("queue", name) if kind == "local" else ("",)))


# --- an existing queue


def _was(visit: Visit, found: QueueAttributes) -> dict[str, str]:
    """The texts of all fields when the form was first shown."""
    return _given(visit, found.type, found, WAS)


async def show(visit: Visit) -> Mapping[str, Any]:
    """GET queue/NAME/alter: its definition as a form."""
    visit.query()
    found = await visit.context.qm.attributes(visit.queue)
    return _values(visit, found.type, _given(visit, found.type, found), name=found.name, was=_was(visit, found))


ACTS: Final = ("alter", "clear", "delete")


async def act(visit: Visit) -> Response:
    """POST queue/NAME/alter: alters the queue, clears or deletes it."""
    name, what = visit.queue, visit.choice("action", ACTS)
    found = await visit.context.qm.attributes(name)
    values = _values(
        visit, found.type, _given(visit, found.type, found), name=name, asks="" if what == "alter" else what,
        was=_was(visit, found),
    )  # fmt: skip
    try:
        if what == "alter":
            changes: Sequence[str] = _changes(visit, found.type, found)
            if not changes:
                return forms.done(visit, "Nothing was different.", "queue", name, "alter")
            command = f"ALTER {written(BY_TYPE[found.type].word, name)} {' '.join(changes)}"
        elif wrong := visit.unconfirmed(name, "the name of the queue"):
            return shown(visit, values, wrong=wrong)
        else:
            purge = " PURGE" if what == "delete" and visit.text("purge") and found.type == "local" else ""
            command = f"{what.upper()} {written(BY_TYPE[found.type].word, name)}{purge}"
        answer = await run(visit, command)
    except (InorderError, Problem) as error:
        return _failed(visit, error, values)
    if answer.failed:
        return _failed(visit, answer, values)
    is_there = what != "delete" and found.type == "local"
    return forms.done(visit, answer.text, *(("queue", name) if is_there else ("",)))


PAGES: Final = (
    Page(path="define", title="New queue", authority="administer", template="define.html", show=show_new, act=create),
    Page(path="queue/{queue}/alter", title="Definition of {queue}", authority="alter", template="define.html",
         show=show, act=act),
)  # fmt: skip
