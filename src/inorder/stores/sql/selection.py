"""Selections as SQL: the part of a search that the database does."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from .asking import Asking
from .codec import DESCRIBED_COLUMNS, NARROW_COLUMNS

Heads = tuple[int, ...]  # values of the column `head`
ALL_HEADS: Heads = (0, 1, 2)
HEADS: Heads = (1, 2)
WHOLE: Heads = (2,)
UNFINISHED: Heads = (1,)

CONTENT_JOIN = "JOIN content c ON c.id = m.id"
UID_CONDITION = (
    "((m.uid_number = :uid_number AND m.uid_origin = :uid_origin) OR (m.uid_number IS NULL AND m.id = :own_uid))"
)
OPEN, HELD_BY = " AND m.available", " AND m.holder = :wanted"


class Selection(NamedTuple):
    """The rows that a call may choose, as SQL.

    Args:
        one: it names a unique id, so there is at most one row, found by one step in an index, held or not.
        described: rows have everything but the bodies, because a selector needs it.
        asking: rows have only the columns that this selector needs, and are `queued.SeenRow`.
    """

    joins: str
    condition: str
    values: dict[str, Any]
    one: bool = False
    described: bool = False
    asking: Asking | None = None

    @property
    def columns(self) -> str:
        """The columns of the rows, as SQL."""
        if self.asking is not None:
            return self.asking.columns
        return DESCRIBED_COLUMNS if self.described else NARROW_COLUMNS

    def such(self, condition: str, **values: Any) -> Selection:
        return self._replace(condition=self.condition + condition, values={**self.values, **values})


EVERYTHING = Selection("", "", {})


@functools.lru_cache(maxsize=256)
def _text(sql: str, joins: str, condition: str, heads: Heads, columns: str) -> str:
    text = _filled(sql, joins, condition, columns)
    arms = [text.replace("{head}", str(head)) for head in heads]
    return f"{' UNION ALL '.join(arms)} ORDER BY rank, number, ordinal LIMIT :limit"


def ordered(sql: str, chosen: Selection, heads: Heads = (0,)) -> str:
    """Fills a selection into a statement about places, for these values of `head`, in order."""
    return _text(sql, chosen.joins, chosen.condition, heads, chosen.columns)


def filled(sql: str, chosen: Selection) -> str:
    """Fills a selection into a statement."""
    return _filled(sql, chosen.joins, chosen.condition, chosen.columns)


def _filled(sql: str, joins: str, condition: str, columns: str) -> str:
    return sql.replace(NARROW_COLUMNS, columns).replace("{joins}", joins).replace("{chosen}", condition)
