"""A page of a browse: the messages that consecutive calls would return at one moment, in one operation.

Each message is read as in any browse (`Reading`). Only messages that follow the first one in the same order need no new
search. They end with that order, or before a message that this reader cannot get, which the search must judge.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from ...errors import InorderError
from ...rules.grouping import GroupState, Wanted
from ...rules.ordering import Cursor
from ..seam.queued import Far, QueuedMessage, available
from ..seam.records import GetOutcome
from .reading import Found, Reading, page_end

PAGE_BYTES = 1 << 20  # of bodies, read at once


class Ready(NamedTuple):
    """Rows that come next, with their bodies. A search would find them after a cursor at this row."""

    wanted: Wanted
    rows: Iterator[QueuedMessage]


class PageReading(Reading):
    """Reads a page; see the module."""

    _ready: Ready | None = None
    _left = 0

    def outcomes(self, most: int) -> list[GetOutcome]:
        """Returns the outcomes of up to `most` consecutive browses, each with its new state and cursor. Ends before one
        that would return nothing, and after a page of bytes.
        """
        found: list[GetOutcome] = []
        self._left, size = most, 0
        while self._left:
            try:
                outcome = self.run()
            except InorderError:
                if found:
                    break  # the next call begins with it, and raises the error
                raise
            if not outcome.messages:
                break
            found.append(outcome)
            self._left -= 1
            size += len(outcome.messages[0].body)
            following = self.request.options if self.request.options.browse == "next" else None
            if following is None or outcome.messages[0].warning is not None or size >= PAGE_BYTES:
                break
            self.request = self.request._replace(state=outcome.state, cursor=outcome.cursor)
        return found

    def _find(self, state: GroupState, cursor: Cursor) -> Found:
        if self._ready is not None:
            row = next(self._ready.rows, None)
            if row is not None:
                return Found(self._ready.wanted, (row,))
            self._ready = None
        found = super()._find(state, cursor)
        if found.rows and self._left > 1 and self._is_plain(found):
            rows = self._following(found.wanted, found.rows[0])
            self._ready = Ready(found.wanted, iter(rows[1:]))
            return found._replace(rows=rows[:1])
        return found

    def _is_plain(self, found: Found) -> bool:
        """Whether the next message of the browse is simply the next in place order."""
        options, wanted = self.request.options, found.wanted
        looks_on = options.logical or wanted.joins or wanted.member is not None or wanted.needs != "nothing"
        return not (looks_on or self.notify or options.lock_id or options.buffer is not None)

    def _following(self, wanted: Wanted, first: QueuedMessage) -> Sequence[QueuedMessage]:
        """Returns the first row and the next ones, with their bodies; strictly, on its level, up to a pending one."""
        if self.strict:
            others: Iterator[QueuedMessage] = self._undisputed(wanted, first)
        else:
            others = self.queue.find_all(wanted, self.reader, first.place)
        rows = [first]
        with contextlib.suppress(Far):  # a shorter page
            rows.extend(islice(others, self._left - 1))
        rows = rows[: page_end((row.message.length for row in rows), len(rows), PAGE_BYTES)]
        return self.operation.backend.read(rows)

    def _undisputed(self, wanted: Wanted, first: QueuedMessage) -> Iterator[QueuedMessage]:
        for row in self.queue.backend.rows_at(self.queue, wanted, self.reader, first.place.rank, first.place):
            if not self.queue.selects(row, wanted, self.reader):
                continue
            if not available(row, self.reader):
                return
            yield row

    def _read(self, state: GroupState, rows: Sequence[QueuedMessage]) -> Sequence[QueuedMessage]:
        return rows if self._ready is not None else super()._read(state, rows)
