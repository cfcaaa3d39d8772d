"""The operations on users of a server: failed log-ins, the operator log, and marks.

Users and tokens are objects (`objects.py`). Failed log-ins are counted in buckets (`rules.log_ins`), which all servers
share. An action is recorded before it starts, and its outcome afterwards. If the process is killed in between, the
record says "begun". The log keeps the newest actions, up to the queue manager's attribute `acts_kept`. `authority`
explains marks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ...errors import Reason
from ...model.fields import NUMBER_MAX
from ...model.message import Message
from ...model.parameters import Integer
from ...rules.log_ins import BUCKETS_MAX, Bucket, counted, empty_at, forgiven, limit_of, shared_key, wait
from ..seam.queued import number_of
from ..seam.records import Act
from ..seam.tables import AttemptRow, UpTo
from ..seam.telemetry import event
from . import authority
from .catalog import Catalog
from .operation import Operation, in_operation
from .process import OpenStore
from .reports import report_exception

NOT_GOT = {"priority": 0, "persistent": True}  # values for a message that did not come from a get
ActOutcome = Literal["done", "failed"]
NUMBER_LAST = 2**63 - 1
REASON = Integer(0, NUMBER_MAX, Reason.FEEDBACK_ERROR)
ACTS_REMOVED_MAX = 1000  # at once, after `acts_kept` was lowered


class PeopleVerbs(OpenStore):
    """The operations on users' log-ins and actions; `protocol.LocalStore` documents them, `Store` those on marks."""

    # --- log-ins

    @event("try_log_in")
    @in_operation(feeds=True)
    def try_log_in(self, operation: Operation, keys: Sequence[str]) -> float:
        now = operation.backend.common_time(operation.now)
        operation.backend.remove_records(AttemptRow, empty_at=UpTo(now))
        buckets = {key: _bucket(operation, key) for key in dict.fromkeys(_kept(operation, key) for key in keys)}
        seconds = max((wait(one, limit_of(key), now) for key, one in buckets.items()), default=0.0)
        if not seconds:
            for key, one in buckets.items():
                _save(operation, key, counted(one, limit_of(key), now))
        return seconds

    @event("forgive_log_in")
    @in_operation()
    def forgive_log_in(self, operation: Operation, keys: Sequence[str]) -> None:
        now = operation.backend.common_time(operation.now)
        for key in dict.fromkeys(_kept(operation, key) for key in keys):
            _save(operation, key, forgiven(_bucket(operation, key), limit_of(key), now))

    # --- acts

    @event("begin_act", keys="act queue", about=lambda _, __, ___, *given: given)
    @in_operation(feeds=True)
    def begin_act(self, operation: Operation, user: str, address: str, act: str, queue: str) -> int:
        number, now = operation.number(), operation.backend.common_time(operation.now)
        operation.backend.save(Act(number, now, user, address, act, queue, "begun", None, ""))
        for old in operation.backend.newest_acts(None, ACTS_REMOVED_MAX, skip=Catalog(operation).manager.acts_kept):
            operation.backend.remove_records(Act, id=old.id)
        operation.durable = True
        return number

    @event("end_act", keys="outcome", about=lambda _, __, outcome, *___: [outcome])
    @in_operation()
    def end_act(self, operation: Operation, number: int, outcome: ActOutcome, messages: int | None, error: str) -> None:
        for row in operation.backend.select(Act, id=number):  # newer ones may have replaced it
            operation.backend.save(row._replace(outcome=outcome, messages=messages, error=error))
            operation.durable = True

    @event("acts", "acts", measured=lambda found, *_: [len(found)])
    @in_operation(writes=False)
    def acts(self, operation: Operation, before: Act | None, most: int) -> list[Act]:
        older_than = None if before is None else (before.at, before.id)
        return list(operation.backend.newest_acts(older_than, most))

    # --- marks

    @event("is_own")
    @in_operation(writes=False)
    def is_own(self, operation: Operation, token: bytes) -> bool:
        return _marks(operation, token) == [authority.OWN]

    @event("report_exception")
    @in_operation(feeds=True)
    def report_exception(
        self, operation: Operation, owner: int, message: Message, reason: int, *, in_unit: bool
    ) -> None:
        connection, unit = self.connection(owner), None
        REASON.check("reason", reason)
        known = _marks(operation, message.token)
        if in_unit:
            unit = operation.enlist(connection, 1, operation.manager.max_uncommitted)
        put_by = known[0] if known else authority.of_gone(operation)
        if connection.user is not None and authority.may_put(
            operation, put_by, message.reply_to_queue, message.reply_to_queue_manager
        ):
            put_by = authority.mark_of(operation, connection.user)  # the caller may have invented the message
        missing = {name: one for name, one in NOT_GOT.items() if getattr(message, name) is None}
        message = message.with_values(**missing)
        report_exception(operation, message, reason, put_by, unit=unit)
        operation.durable = True


def _marks(operation: Operation, token: bytes) -> Sequence[str | None]:
    """The mark of the message with this token, if there is one. Any client may have sent the token."""
    number = number_of(token)
    return operation.backend.signed(number) if number <= NUMBER_LAST else ()


def _kept(operation: Operation, key: str) -> str:
    """Returns the bucket of a user or an address: its own, or a shared one if there are too many."""
    has_room = operation.backend.select(AttemptRow, key=key) or len(operation.backend.select(AttemptRow)) < BUCKETS_MAX
    return key if has_room else shared_key(key)


def _bucket(operation: Operation, key: str) -> Bucket:
    found = operation.backend.select(AttemptRow, key=key)
    return Bucket(found[0].level, found[0].at) if found else Bucket()


def _save(operation: Operation, key: str, bucket: Bucket) -> None:
    if bucket.level:
        operation.backend.save(AttemptRow(key, *bucket, empty_at(bucket, limit_of(key))))
    else:
        operation.backend.remove_records(AttemptRow, key=key)
