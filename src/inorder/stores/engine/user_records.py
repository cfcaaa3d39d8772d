"""The verbs about users of a server: failed log-ins, the log of acts, and marks.

Users and tokens are objects (`objects.py`). Failed log-ins are counted in buckets (`rules.log_ins`), which all servers
share. An act is recorded before it starts, and its outcome afterwards. If the process is killed in between, the record
says "begun". The log keeps the newest acts, up to the queue manager's attribute `acts_kept`. `authority` explains
marks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ...model.message import Message
from ...rules.log_ins import BUCKETS_MAX, Bucket, counted, empty_at, forgiven, limit_of, shared_key, wait
from ..seam.queued import number_of
from ..seam.records import Act
from ..seam.tables import ActRow, AttemptRow, UpTo
from ..seam.telemetry import event
from . import authority
from .catalog import Catalog
from .operation import Verb, in_verb
from .process import OpenStore
from .reports import report_exception

NOT_GOT = {"priority": 0, "persistent": True}  # what a message has not that no get has returned
ActOutcome = Literal["done", "failed"]
ACTS_REMOVED_MAX = 1000  # at once, where fewer are to be kept than before


class PeopleVerbs(OpenStore):
    """The part of a store for users' log-ins and acts; `protocol.Store` says what the verbs guarantee."""

    # --- log-ins

    @event("try_log_in")
    @in_verb(feeds=True)
    def try_log_in(self, verb: Verb, keys: Sequence[str]) -> float:
        now = verb.backend.common_time(verb.now)
        verb.backend.remove_records(AttemptRow, empty_at=UpTo(now))
        buckets = {key: _bucket(verb, key) for key in dict.fromkeys(_kept(verb, key) for key in keys)}
        seconds = max((wait(one, limit_of(key), now) for key, one in buckets.items()), default=0.0)
        if not seconds:
            for key, one in buckets.items():
                _save(verb, key, counted(one, limit_of(key), now))
        return seconds

    @event("forgive_log_in")
    @in_verb()
    def forgive_log_in(self, verb: Verb, keys: Sequence[str]) -> None:
        now = verb.backend.common_time(verb.now)
        for key in dict.fromkeys(_kept(verb, key) for key in keys):
            _save(verb, key, forgiven(_bucket(verb, key), limit_of(key), now))

    # --- acts

    @event("begin_act", keys="act queue", about=lambda _, __, ___, *given: given)
    @in_verb(feeds=True)
    def begin_act(self, verb: Verb, user: str, address: str, act: str, queue: str) -> int:
        number, now = verb.number(), verb.backend.common_time(verb.now)
        verb.backend.save(ActRow(number, now, user, address, act, queue, "begun", None, ""))
        for old in verb.backend.newest_acts(None, ACTS_REMOVED_MAX, skip=Catalog(verb).manager.acts_kept):
            verb.backend.remove_records(ActRow, id=old.id)
        verb.durable = True
        return number

    @event("end_act", keys="outcome", about=lambda _, __, outcome, *___: [outcome])
    @in_verb()
    def end_act(self, verb: Verb, number: int, outcome: ActOutcome, messages: int | None, error: str) -> None:
        for row in verb.backend.select(ActRow, id=number):  # more recent ones may have taken its place
            verb.backend.save(row._replace(outcome=outcome, messages=messages, error=error))
            verb.durable = True

    @event("acts", "acts", measured=lambda found, *_: [len(found)])
    @in_verb(writes=False)
    def acts(self, verb: Verb, before: Act | None, most: int) -> list[Act]:
        behind = None if before is None else (before.at, before.id)
        return [Act(*row) for row in verb.backend.newest_acts(behind, most)]

    # --- marks

    @event("is_own")
    @in_verb(writes=False)
    def is_own(self, verb: Verb, token: bytes) -> bool:
        return verb.backend.signed(number_of(token)) == [authority.OWN]

    @event("report_exception")
    @in_verb(feeds=True)
    def report_exception(self, verb: Verb, owner: int, message: Message, reason: int, *, in_unit: bool) -> None:
        connection, unit = self.connection(owner), None
        known = verb.backend.signed(number_of(message.token))
        if in_unit:
            unit = verb.enlist(connection, 1, verb.manager.max_uncommitted)
        put_by = known[0] if known else authority.of_gone(verb)
        missing = {name: one for name, one in NOT_GOT.items() if getattr(message, name) is None}
        message = message.with_values(**missing)
        report_exception(verb, message, reason, put_by, unit=unit)
        verb.durable = True


def _kept(verb: Verb, key: str) -> str:
    """The bucket of a user or an address: its own, or a shared one if there are too many."""
    has_room = verb.backend.select(AttemptRow, key=key) or len(verb.backend.select(AttemptRow)) < BUCKETS_MAX
    return key if has_room else shared_key(key)


def _bucket(verb: Verb, key: str) -> Bucket:
    found = verb.backend.select(AttemptRow, key=key)
    return Bucket(found[0].level, found[0].at) if found else Bucket()


def _save(verb: Verb, key: str, bucket: Bucket) -> None:
    if bucket.level:
        verb.backend.save(AttemptRow(key, *bucket, empty_at(bucket, limit_of(key))))
    else:
        verb.backend.remove_records(AttemptRow, key=key)
