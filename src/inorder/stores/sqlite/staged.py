"""Stagings as rows: found by name, written in bulk, dropped (spark 3)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ..staging import Batch, Columns
from .handles import SqliteHandle
from .leftovers import fits_one_step
from .shelf import SqliteQueue
from .statements import statement
from .transaction import SqliteTransaction

STAGING = statement("staging")
BEGIN_UNIT = statement("begin unit")
BEGIN_STAGING = statement("begin staging")
COUNT_STAGED = statement("count staged")
STAGE = statement("stage")
ARRIVE_CONTENT = statement("arrive content")
REMOVE_STAGED = statement("remove staged")
END_STAGING = statement("end staging")
END_UNIT = statement("end unit")
REMOVE_CONTENTS_OF_STAGING = statement("remove contents of staging")
LEAVE_CONTENTS_OF_STAGING = statement("leave contents of staging")


class SqliteStaging(NamedTuple):
    """A staging as its rows have it: `staging` in queries_bulk.sql."""

    unit: int
    queue: int
    expires_at: float
    given: int
    messages: int
    size: int
    has_keys: int
    has_order: int
    has_numbers: int


def found_staging(verb: SqliteTransaction, name: str) -> SqliteStaging | None:
    """What stands under a name; its time may be over."""
    row = next(verb.execute(STAGING, (name,)), None)
    return None if row is None else SqliteStaging(*row)


def drop_staging(verb: SqliteTransaction, unit: int, messages: int, size: int) -> None:
    """A staging goes, with what is staged; the contents of a large one later, in steps."""
    at_once = fits_one_step(messages, size)
    verb.execute(REMOVE_CONTENTS_OF_STAGING if at_once else LEAVE_CONTENTS_OF_STAGING, (unit,))
    verb.home.has_leftovers |= not at_once
    end_staging(verb, unit)


def end_staging(verb: SqliteTransaction, unit: int) -> None:
    """A staging is over; its contents stay, or are seen to."""
    verb.execute(REMOVE_STAGED, (unit,))
    verb.execute(END_STAGING, (unit,))
    verb.execute(END_UNIT, (unit,))


def begin_staging(verb: SqliteTransaction, handle: SqliteHandle, queue: SqliteQueue, name: str) -> SqliteStaging:
    """A staging with nothing in it."""
    unit, program = next(verb.numbers), handle.connection.program
    verb.execute(BEGIN_UNIT, (unit, "staging", name, queue.id, None, program.user, program.name, verb.now, None))
    verb.execute(BEGIN_STAGING, (unit, verb.now))
    return SqliteStaging(unit, queue.id, verb.now, 0, 0, 0, 0, 0, 0)


def write_staged(verb: SqliteTransaction, staging: SqliteStaging, batch: Batch, expires_at: float) -> None:
    """Adds rows to a staging, and says how long it lasts now."""
    if batch.numbers:
        verb.execute_many(ARRIVE_CONTENT, _contents(batch.numbers, batch.columns))
        verb.execute_many(STAGE, _staged(staging, batch))
    added = len(batch.numbers), batch.size, batch.has_keys, batch.has_order, batch.has_numbers
    verb.execute(COUNT_STAGED, (staging.unit, expires_at, batch.given, *added))


def _contents(numbers: Sequence[int], columns: Columns) -> Iterator[tuple[Any, ...]]:
    """The values for `content`, as `codec.content_columns` has them."""
    names = (
        "report", "message_type", "expiry", "feedback", "encoding", "coded_character_set_id", "format",
        "reply_to_queue", "reply_to_queue_manager", "user_identifier", "accounting_token", "application_identity_data",
        "put_application_type", "put_application_name", "put_at", "application_origin_data", "delay", "body",
    )  # fmt: skip
    return zip(numbers, *(columns[name] for name in names), strict=True)


def _staged(staging: SqliteStaging, batch: Batch) -> Iterator[tuple[Any, ...]]:
    """The values for `staged`."""
    columns, first = batch.columns, staging.messages
    wholes = batch.wholes
    return zip(
        itertools.repeat(staging.unit, len(wholes)),
        range(first, first + len(wholes)),
        range(first, first + len(wholes)) if isinstance(wholes, range) else [first + whole for whole in wholes],
        batch.numbers,
        columns["priority"],
        columns["persistent"],
        columns["message_id"],
        columns["correlation_id"],
        columns["expiry"],
        columns["delay"],
        columns["group_id"],
        columns["sequence_number"],
        columns["offset"],
        list(map(len, columns["body"])),
        columns["flags"],
        columns["original_length"],
        columns["group_key"],
        columns["order_key"],
        strict=True,
    )
