"""Steps of a history that define, open and close queues."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule
from tests.machine import choices
from tests.machine.history import History
from tests.machine.side import Side

MODELS = ("MODEL.T", "MODEL.P")


class Definitions(History):
    @initialize(a=choices.queue_attributes, b=choices.queue_attributes)
    def define(self, a: Mapping[str, Any], b: Mapping[str, Any]) -> None:
        for name, attributes in (("A", a), ("B", b)):
            self._create(name, attributes)
        self.both(lambda side: side.operator.create_queue("ALIAS", type="alias", base_queue="A", default_priority=9))
        self.both(
            lambda side: side.operator.create_queue("MODEL.T", type="model", shareable=True, default_input="shared")
        )
        self.both(
            lambda side: side.operator.create_queue(
                "MODEL.P", type="model", definition_type="permanent_dynamic", default_persistence=True, order="commit"
            )
        )
        for number in (0, 1, 2, 0):
            self.open(number, "A", {})

    def _comparable(self, attributes: Mapping[str, Any]) -> Mapping[str, Any]:
        is_other = self.skips_numbers and attributes.get("read_order") == "unordered"
        return {**attributes, "read_order": "relaxed"} if is_other else attributes

    def _create(self, name: str, attributes: Mapping[str, Any]) -> None:
        self.both(lambda side: side.operator.create_queue(name, **self._comparable(attributes)))

    @rule(name=st.sampled_from(["A", "B", "C"]), attributes=choices.queue_attributes)
    def create(self, name: str, attributes: Mapping[str, Any]) -> None:
        self._create(name, attributes)

    @rule(name=choices.any_name, changes=choices.changes)
    def alter(self, name: str, changes: Mapping[str, Any]) -> None:
        self.both(lambda side: side.operator.alter_queue(self._named(side, name), **self._comparable(changes)))

    @rule(changes=choices.manager_changes)
    def alter_manager(self, changes: Mapping[str, Any]) -> None:
        self.both(lambda side: side.operator.admin.alter_manager(**changes))

    @rule()
    def allow_all(self) -> None:
        """Removes limits and inhibitions, which would otherwise last for the rest of the history."""
        for name in ("A", "B", "ALIAS"):
            self.both(lambda side, name=name: side.operator.alter_queue(name, get_allowed=True, put_allowed=True))  # type: ignore[misc]
        self.both(lambda side: side.operator.alter_queue("A", max_length=1000, max_depth=1000, expiry=None))
        self.both(lambda side: side.operator.admin.alter_manager(max_uncommitted=1000, max_handles=256))

    @rule(base=st.sampled_from(["A", "B", "B", "ALIAS", "NONE"]))
    def alter_alias(self, base: str) -> None:
        self.both(lambda side: side.operator.alter_queue("ALIAS", base_queue=base))

    @rule(name=choices.any_name, purge=st.booleans())
    def delete_queue(self, name: str, purge: bool) -> None:
        if name in ("A", "ALIAS", *MODELS) and not purge:
            return  # these queues are needed
        self.both(lambda side: side.operator.delete_queue(self._named(side, name), purge=purge))

    def _named(self, side: Side, name: str) -> str:
        """The queue's name on this side; DYNAMIC stands for the latest dynamic queue."""
        known = self.seen.get("queue") or ["NONE"]
        return str(side.translate("queue", known[-1] if name == "DYNAMIC" else name))

    @rule(
        number=choices.connections,
        name=choices.any_name,
        options=choices.opens,
        dynamic=st.sampled_from(["*", "DYN.*", "DYN.*", "D", "bad name"]),
    )
    def open_one(self, number: int, name: str, options: Mapping[str, Any], dynamic: str) -> None:
        if name == "DYNAMIC":
            name = (self.seen.get("queue") or ["NONE"])[-1]
        self.open(self.free(number), name, options, dynamic if name in MODELS else "*")

    @rule(choice=choices.handles, delete=st.booleans(), purge=st.booleans())
    def close(self, choice: int, delete: bool, purge: bool) -> None:
        if (handle := self.handle(choice)) is not None:
            self.close_handle(handle, delete=delete, purge=purge)

    @rule(number=choices.connections, name=choices.queues)
    def close_default(self, number: int, name: str) -> None:
        number = self.free(number)
        self.both(lambda side: side.connections[number].close_queue(name))

    @rule(
        choice=choices.handles, attribute=st.sampled_from(["get_allowed", "put_allowed", "order"]), value=st.booleans()
    )
    def set_through_a_handle(self, choice: int, attribute: str, value: bool) -> None:
        self.on_handle(choice, lambda _, queue: queue.set(**{attribute: value}))

    @rule(choice=choices.handles)
    def inquire(self, choice: int) -> None:
        self.on_handle(choice, lambda _, queue: (queue.attributes(), queue.status()))

    @rule()
    def look(self) -> None:
        self.look_around()
