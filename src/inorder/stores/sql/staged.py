"""Staged rows in an SQL database (spark 3): contents are written to their final place, and the put moves narrow rows in
bulk.

Staged rows are in the table `staged`, under their unit; no search of a queue looks there.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any
from zlib import crc32

from ...model.fields import LATER
from ...model.message import REPORT_GENERATED, Message
from ...rules.lifecycle import Event, State, step
from ...rules.puts import make_id
from ...rules.staged_columns import KEYS, Batch, Columns
from ...rules.staging import check_next, rank_range
from ..seam.backend import SearchedQueue
from ..seam.tables import StagingRow
from .attention import DUE, EXPIRES, GROUPS, REPORTS
from .codec import Codec
from .descriptors import FIELDS, with_properties
from .engine import Engine
from .leftovers import fits_one_step

ID_PREFIX_LENGTH = 16


class SqlStagings:
    """The part of a backend for stagings."""

    engine: Engine
    sql: Mapping[str, str]
    codec: Codec
    has_leftovers: bool
    insert: Callable[[str, Sequence[Any]], None]
    attend: Callable[[int, int], None]

    def hold_stagings(self, names: Collection[str], *, begins: bool) -> None:
        """Nothing to do where only one operation writes at a time."""

    def stage(self, unit: int, first: int, batch: Batch) -> None:
        if batch.numbers:
            self.insert("insert content", list(itertools.chain.from_iterable(_contents(batch.numbers, batch.columns))))
            keys = [self.engine.keys(batch.columns[name]) for name in KEYS]
            rows = _staged(unit, first, batch.numbers, batch.wholes, batch.columns, keys)
            self.insert("insert staged row", list(itertools.chain.from_iterable(rows)))

    def put_staged(
        self,
        queue: SearchedQueue,
        stagings: Sequence[StagingRow],
        first: int,
        now: float,
        put_by: str | None,
        *,
        own: bool,
        tells: bool,
    ) -> Sequence[Message]:
        values = rank_range(queue.attributes)._asdict() | {
            "queue": queue.id,
            "state": step(State.ABSENT, Event.PUT).to,
            "now": now,
            "put_by": put_by,
            "own": int(own),
            "number": first,
            "ordinal": 0,
        }
        units = {"units": json.dumps([one.unit for one in stagings])}
        expire, are_due, report, are_in_groups = next(self.engine.execute(self.sql["needs of staged rows"], units))
        self.attend(queue.id, EXPIRES * expire | DUE * are_due | REPORTS * report | GROUPS * are_in_groups)
        if any(one.has_numbers for one in stagings):
            self._check_numbers(units)
        if any(one.has_keys for one in stagings):
            prefix = make_id(self.codec.origin, 0)[:ID_PREFIX_LENGTH]
            self.engine.execute(self.sql["put staged in groups"], values | units | {"prefix": prefix})
        elif any(one.has_order for one in stagings):
            self.engine.execute(self.sql["put staged in order"], values | units)
        else:
            before = 0
            for one in stagings:  # in their stored order
                turn = {"number": first + before} if own else {"ordinal": before}
                self.engine.execute(self.sql["put staged"], {**values, **turn, "unit": one.unit})
                before += one.messages
        if not tells:
            return ()
        return [self.codec.full(columns) for columns in self.engine.execute(self.sql["messages of stagings"], units)]

    def _check_numbers(self, units: Mapping[str, str]) -> None:
        wrong = next(self.engine.execute(self.sql["first wrong number in groups"], units), None)
        if wrong is not None:
            group_id, *before, sequence_number, offset = wrong
            check_next(group_id, tuple(before), sequence_number, offset)

    def end_staging(self, staging: StagingRow, *, drops: bool) -> None:
        if drops:
            at_once = fits_one_step(staging.messages, staging.size)
            name = "delete contents of staging" if at_once else "leave contents of staging for sweep"
            self.engine.execute(self.sql[name], (staging.unit,))
            self.has_leftovers |= not at_once
        self.engine.execute(self.sql["delete staged rows"], (staging.unit,))


def _contents(numbers: Sequence[int], columns: Columns) -> Iterator[tuple[Any, ...]]:
    return zip(
        numbers,
        columns["put_at"],
        columns["expiry"],
        [delay or None for delay in columns["delay"]],
        map(with_properties, zip(*(columns[name] for name in FIELDS), strict=True), columns["properties"]),
        map(crc32, columns["body"], numbers),
        columns["body"],
        *(columns[name] for name in LATER),
        strict=True,
    )


def _staged(
    unit: int,
    first: int,
    numbers: Sequence[int],
    wholes: Sequence[int],
    columns: Columns,
    keys: Sequence[Sequence[Any]],
) -> Iterator[tuple[Any, ...]]:
    return zip(
        itertools.repeat(unit, len(wholes)),
        range(first, first + len(wholes)),
        range(first, first + len(wholes)) if isinstance(wholes, range) else [first + whole for whole in wholes],
        numbers,
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
        [1 if report & REPORT_GENERATED else None for report in columns["report"]],
        *keys,
        strict=True,
    )
