"""The verbs about definitions other than queues: channels, processes, the name of the queue manager.

A store keeps their attributes as JSON without interpreting them. The module that defines a kind checks the values, and
an alter names the attributes that it has read before.
"""

from __future__ import annotations

from dataclasses import replace

from ...errors import ObjectExists, ObjectInUse, QueueCondition, Reason, UnknownObject, nearest_names, written
from ...model.parameters import is_storable
from ...rules.naming import check_own_name
from ..seam.definitions import queue_of
from ..seam.tables import ConnectionRow, ObjectRow, ProcessRow
from ..seam.telemetry import event
from .catalog import Catalog
from .operation import Verb, in_verb
from .process import OpenStore


def find_object(verb: Verb, kind: str, name: str) -> ObjectRow:
    """An object that is defined. Raises: UnknownObject 2085."""
    if not isinstance(name, str) or not is_storable(name):
        raise UnknownObject(f"there is no {kind} {written(name)}", kind=kind, object=name, nearest=[])
    found = verb.backend.select(ObjectRow, type=kind, name=name)
    if found:
        return found[0]
    near = nearest_names(name, sorted(one.name for one in verb.backend.select(ObjectRow) if one.type == kind))
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    raise UnknownObject(f"there is no {kind} {written(name)}{hint}", kind=kind, object=name, nearest=near)


class ObjectVerbs(OpenStore):
    """The part of a store that keeps definitions of objects; `protocol.Store` says what the verbs guarantee."""

    @event("rename", about=lambda *_: [])
    @in_verb(buries=True)
    def rename(self, verb: Verb, owner: int, name: str) -> str:
        others = [one for one in verb.backend.select(ConnectionRow) if one.id != owner]
        if others or len(verb.backend.select(ProcessRow)) > 1:
            programs = ", ".join(sorted({one.program for one in others}))
            raise ObjectInUse(
                f"queue manager {self.name} cannot be renamed while other programs have its store open"
                f"{programs and f' ({programs})'}. Close it in all programs, and try again. Nothing was changed"
            )
        catalog = Catalog(verb)
        before = catalog.manager
        check_own_name(name, (queue_of(row.attributes) for row in catalog.rows()))
        catalog.change_manager(replace(before, name=name))
        verb.remember(self, "name")
        self.name = name
        return before.name

    @event("define_object", keys="kind object", about=lambda _, kind, name, __: [kind, name])
    @in_verb(feeds=True)
    def define_object(self, verb: Verb, kind: str, name: str, attributes: str) -> None:
        if verb.backend.select(ObjectRow, type=kind, name=name):
            raise ObjectExists(f"there is a {kind} {name!r} already", kind=kind, object=name)
        self._save(verb, ObjectRow(kind, name, attributes, verb.now))

    @event("alter_object", keys="kind object", about=lambda _, kind, name, *__: [kind, name])
    @in_verb()
    def alter_object(self, verb: Verb, kind: str, name: str, before: str, attributes: str) -> None:
        if find_object(verb, kind, name).attributes != before:
            raise QueueCondition(f"{kind} {name} was altered meanwhile", reason=Reason.OBJECT_CHANGED)
        self._save(verb, ObjectRow(kind, name, attributes, verb.now))

    def _save(self, verb: Verb, row: ObjectRow) -> None:
        verb.backend.save(row)
        verb.durable = True
        if row.type == "process":
            for queue in Catalog(verb).rows():
                attributes = queue_of(queue.attributes)
                if attributes.type == "local" and attributes.trigger_control and attributes.process == row.name:
                    verb.released.add(queue.id)

    @event("delete_object", keys="kind object", about=lambda _, kind, name: [kind, name])
    @in_verb()
    def delete_object(self, verb: Verb, kind: str, name: str) -> None:
        find_object(verb, kind, name)
        verb.backend.remove_records(ObjectRow, type=kind, name=name)
        verb.durable = True

    @event("object", keys="kind object", about=lambda _, kind, name: [kind, name])
    @in_verb(writes=False)
    def object(self, verb: Verb, kind: str, name: str) -> ObjectRow:
        return find_object(verb, kind, name)

    @event("objects", keys="kind", about=lambda _, kind: [kind])
    @in_verb(writes=False)
    def objects(self, verb: Verb, kind: str) -> list[ObjectRow]:
        return [one for one in verb.backend.select(ObjectRow) if one.type == kind]
