"""The steps of `qm`, the operator of a scenario."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from inorder.client.manager import QueueManager
from inorder.errors import InorderError
from inorder.model.attributes import QueueType

from .actors import NameTable, StepOutcome, number, translate_error, yes
from .language import ScenarioStep
from .once import define_schedule

ATTRIBUTES: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "delivery": ("delivery", str),
    "default-priority": ("default_priority", number),
    "order": ("order", str),
    "read-order": ("read_order", str),
    "max-depth": ("max_depth", number),
    "max-length": ("max_length", number),
    "persistent": ("default_persistence", lambda value: yes("persistent", value)),
    "backout-threshold": ("backout_threshold", number),
    "get": ("get_allowed", lambda value: yes("get", value)),
    "put": ("put_allowed", lambda value: yes("put", value)),
    "shareable": ("shareable", lambda value: yes("shareable", value)),
    "alias-of": ("base_queue", str),
    "usage": ("usage", str),
    "transmission-queue": ("transmission_queue", str),
    "mode": ("mode", str),
    "connection": ("connection", str),
    "targets": ("targets", str),
    "home-server": ("remote_manager", str),
    "max-uncommitted": ("max_uncommitted", number),
    "default-transmission": ("default_transmission_queue", str),
    "dead-letter-queue": ("dead_letter_queue", str),
}

TYPES: Mapping[str, QueueType] = {
    "alias-of": "alias",
    "remote": "remote",
    "targets": "store_and_forward",
    "home-server": "home_server",
}


def operate(manager: QueueManager, table: NameTable, step: ScenarioStep) -> StepOutcome:
    """Does one step of the operator, except for clock and restart."""
    attributes: dict[str, Any] = {}
    for key, value in step.keys.items():
        if key in ATTRIBUTES:
            name, convert = ATTRIBUTES[key]
            attributes[name] = convert(value)
    if "remote" in step.keys:
        attributes["remote_queue"], _, attributes["remote_manager"] = step.keys["remote"].partition("@")
    try:
        return _operate(manager, table, step, attributes)
    except InorderError as error:
        return translate_error(error)


def _operate(manager: QueueManager, table: NameTable, step: ScenarioStep, attributes: dict[str, Any]) -> StepOutcome:
    if step.verb == "queue":
        name = step.names[0]
        kind: QueueType = next((kind for key, kind in TYPES.items() if key in step.keys), "local")
        manager.create_queue(name, type=kind, **attributes)
        if attributes.get("mode") == "synchronous":
            table.elsewhere[name] = attributes["remote_manager"].lower()
        table.first_queue = table.first_queue or name
    elif step.verb == "alter":
        manager.alter_queue(step.names[0], **attributes)
    elif step.verb == "delete":
        manager.delete_queue(step.names[0], purge=True)
    elif step.verb == "schedule":
        define_schedule(table, step)
    elif step.verb == "settle":
        name, outcome = step.names
        if outcome not in ("commit", "backout"):
            raise ValueError(f"settle takes commit or backout, not {outcome!r}")
        manager.settle(name, "commit" if outcome == "commit" else "back_out")
    elif step.verb == "finish-claims":
        application, upto = step.names
        finished = manager.bulk.finish_claims(table.queue(step.keys.get("on")), application, number(upto))
        return StepOutcome("number", str(finished))
    elif step.verb == "release-claims":
        released = manager.bulk.release_claims(table.queue(step.keys.get("on")), step.names[0])
        return StepOutcome("number", str(released))
    elif step.verb == "leave-claimed-group":
        manager.bulk.leave_claimed_group(table.queue(step.keys.get("on")), step.names[0])
    elif step.verb == "set":
        manager.admin.alter_manager(**attributes)
    elif step.verb == "depth":
        return StepOutcome("number", str(manager.depth(step.names[0] if step.names else table.queue())))
    return StepOutcome("ok")
