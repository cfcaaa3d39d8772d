"""The operations on definitions other than queues: channels, processes, the name of the queue manager.

A store keeps their attributes as JSON, and interprets only those of channels. The module that defines a kind checks the
values, and an alter contains the attributes as they were read before.
"""

from __future__ import annotations

from dataclasses import replace

from ...errors import ObjectExists, ObjectInUse, QueueCondition, Reason, UnknownObject, nearest_names, written
from ...model.channel_attributes import ChannelAttributes
from ...model.parameters import is_storable
from ...rules.naming import check_own_name
from ..seam.definitions import CHANNEL, channel_of, queue_of
from ..seam.tables import ChannelRow, ConnectionRow, ObjectRow, ProcessRow
from ..seam.telemetry import event
from ..seam.views import WORKER, WorkerRecord, checked_text, record_of
from . import arriving_bodies
from .carriers import channel_now
from .catalog import Catalog
from .operation import Operation, in_operation
from .process import OpenStore


def find_object(operation: Operation, kind: str, name: str) -> ObjectRow:
    """Returns an object. Raises: UnknownObject 2085."""
    if not isinstance(name, str) or not is_storable(name):
        raise UnknownObject(f"there is no {kind} {written(name)}", kind=kind, object=name, nearest=[])
    found = operation.backend.select(ObjectRow, type=kind, name=name)
    if found:
        return found[0]
    near = nearest_names(name, (one.name for one in operation.backend.select(ObjectRow) if one.type == kind))
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    raise UnknownObject(f"there is no {kind} {written(name)}{hint}", kind=kind, object=name, nearest=near)


def find_channel(operation: Operation, name: str) -> ChannelAttributes:
    """Returns the definition of a channel. Raises: UnknownObject 2085."""
    return channel_of(find_object(operation, CHANNEL, name).attributes)


def _check_free(operation: Operation, definition: ChannelAttributes) -> None:
    channel_now(operation, definition.name, definition.transmission_queue, {}).check_free()


class ObjectVerbs(OpenStore):
    """The operations on definitions of objects; `protocol.Store` documents them."""

    @event("rename", about=lambda *_: [])
    @in_operation(ends_dead=True)
    def rename(self, operation: Operation, owner: int, name: str) -> str:
        others = [one for one in operation.backend.select(ConnectionRow) if one.id != owner]
        if others or len(operation.backend.select(ProcessRow)) > 1:
            programs = ", ".join(sorted({one.program for one in others}))
            raise ObjectInUse(
                f"queue manager {self.name} cannot be renamed while other programs have its store open"
                f"{programs and f' ({programs})'}. Close it in all programs, and try again. Nothing was changed"
            )
        catalog = Catalog(operation)
        before = catalog.manager
        check_own_name(name, (queue_of(row.attributes) for row in catalog.rows()))
        catalog.change_manager(replace(before, name=name))
        operation.remember(self, "name")
        self.name = name
        return before.name

    @event("define_object", keys="kind object", about=lambda _, kind, name, __: [kind, name])
    @in_operation(feeds=True)
    def define_object(self, operation: Operation, kind: str, name: str, attributes: str) -> None:
        if operation.backend.select(ObjectRow, type=kind, name=name):
            raise ObjectExists(f"{kind} {name!r} already exists", kind=kind, object=name)
        self._save(operation, ObjectRow(kind, name, attributes, operation.now))

    @event("alter_object", keys="kind object", about=lambda _, kind, name, *__: [kind, name])
    @in_operation()
    def alter_object(self, operation: Operation, kind: str, name: str, before: str, attributes: str) -> None:
        if find_object(operation, kind, name).attributes != before:
            raise QueueCondition(f"{kind} {name} was altered meanwhile", reason=Reason.OBJECT_CHANGED)
        if kind == CHANNEL:
            there = channel_of(before)
            if there.transmission_queue != channel_of(attributes).transmission_queue:
                _check_free(operation, there)
        self._save(operation, ObjectRow(kind, name, attributes, operation.now))

    def _save(self, operation: Operation, row: ObjectRow) -> None:
        operation.backend.save(row)
        operation.durable = True
        if row.type == "process":
            for queue in Catalog(operation).rows():
                attributes = queue_of(queue.attributes)
                if attributes.type == "local" and attributes.trigger_control and attributes.process == row.name:
                    operation.released.add(queue.id)

    @event("delete_object", keys="kind object", about=lambda _, kind, name: [kind, name])
    @in_operation()
    def delete_object(self, operation: Operation, kind: str, name: str) -> None:
        there = find_object(operation, kind, name)
        if kind == CHANNEL:
            _check_free(operation, channel_of(there.attributes))
        operation.backend.remove_records(ObjectRow, type=kind, name=name)
        if kind == CHANNEL:
            arriving_bodies.forget_channel(operation, name)
            for row in operation.backend.select(ChannelRow, name=name):  # a new definition's channel is not stopped
                operation.backend.save(row._replace(status="inactive", stop="", reason=0, error=""))
        operation.durable = True

    @event("object", keys="kind object", about=lambda _, kind, name: [kind, name])
    @in_operation(writes=False)
    def object(self, operation: Operation, kind: str, name: str) -> ObjectRow:
        return find_object(operation, kind, name)

    @event("objects", keys="kind", about=lambda _, kind: [kind])
    @in_operation(writes=False)
    def objects(self, operation: Operation, kind: str) -> list[ObjectRow]:
        return [one for one in operation.backend.select(ObjectRow) if one.type == kind]

    @event("note_worker", about=lambda *_: [])
    @in_operation(feeds=True)
    def note_worker(self, operation: Operation, owner: int, record: WorkerRecord | None) -> None:
        backend, name = operation.backend, str(owner)
        if record is None:
            backend.remove_records(ObjectRow, type=WORKER, name=name)
            return
        text = checked_text(record._replace(connection=owner))
        if not backend.select(ObjectRow, type=WORKER, name=name):
            connected = {one.id for one in backend.select(ConnectionRow)}
            for one in backend.select(ObjectRow):
                if one.type == WORKER and record_of(one.attributes).connection not in connected:
                    backend.remove_records(ObjectRow, type=WORKER, name=one.name)
        backend.save(ObjectRow(WORKER, name, text, operation.now))
