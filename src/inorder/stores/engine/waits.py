"""Records of waiting calls: the cause of the wait, and the connections that block it (B-31)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from ...errors import OrderDeadlock
from ...rules.ordering import is_deadlocked
from ..seam.damage import decodes
from ..seam.looking import pending_as_text
from ..seam.records import GetOutcome
from ..seam.tables import WaitRow
from .operation import Operation
from .process import OpenConnection, OpenHandle


class Looks:
    """The looks of a waiting call, and the outcome of the last one."""

    def __init__(self, look: Callable[[], tuple[GetOutcome, float | None]]) -> None:
        self._look = look
        self.outcome: GetOutcome | None = None

    def __call__(self) -> tuple[bool, float | None]:
        """Looks once. Returns whether it found something, and when to look again even if nothing has changed."""
        self.outcome = None
        self.outcome, again_at = self._look()
        return bool(self.outcome.messages), again_at


def begin_wait(
    operation: Operation, handle: OpenHandle, outcome: GetOutcome, in_its_way: Sequence[frozenset[int]] | None
) -> None:
    """Records that the connection is about to wait. Raises: OrderDeadlock, if all that block it wait for it."""
    connection, backend = handle.connection, operation.backend
    operation.waiter = connection.id
    connection.waits = True
    operation.store.host.looked(handle.queue, handle.queue_name)
    levels = json.dumps([sorted(level) for level in in_its_way]) if in_its_way else None
    pending, withheld = pending_as_text(outcome.pending), int(outcome.withheld is not None)
    backend.save(WaitRow(connection.id, handle.queue, pending, withheld, levels))
    if not in_its_way:
        return
    waits = {one.connection: levels_of(one.levels) for one in backend.select(WaitRow) if one.levels is not None}
    if is_deadlocked(connection.id, waits):
        end_wait(operation, connection)
        raise OrderDeadlock("readers wait for messages that other readers hold, in a circle: back out or commit")


@decodes("the connections that block a call")
def levels_of(text: str) -> list[frozenset[int]]:
    """Decodes the connections that block a call, by level. Raises: StoreDamaged."""
    return [frozenset(level) for level in json.loads(text)]


def end_wait(operation: Operation, connection: OpenConnection) -> None:
    """Removes the record of the connection's wait: it has a result, has given up, or looks again."""
    if connection.waits:
        operation.remember(connection, "waits")
        connection.waits = False
        operation.backend.remove_records(WaitRow, connection=connection.id)
