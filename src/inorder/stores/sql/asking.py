"""Evaluates a selector on a row, reading only the columns that the selector uses.

A long search looks at a hundred thousand rows, nearly none of which fits, so it makes no messages from them. The
evaluator of the rules gets values in the form of a message's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from ...model.fields import EXPIRY_SECONDS_MIN, NO_ACCOUNTING
from ...model.message import NO_ID, Place
from ...model.properties import PropertyValue, decoded
from ...rules.selectors import Selector
from ..seam.damage import DECODING
from ..seam.queued import SeenRow, cost_of
from .descriptors import BETWEEN, FIELDS, values_of

if TYPE_CHECKING:
    from .codec import Codec

Convert = Callable[[Any, int], Any]  # makes a message's value from a column's value and the message's number
_tuple = tuple.__new__  # makes a named tuple without an extra call

ALWAYS: Final = ("m.rank", "m.number", "m.ordinal", "m.id", "c.descriptor")
NOTHING: Final[Mapping[str, PropertyValue]] = {}
DESCRIBED: Final = frozenset(FIELDS)


def _as_it_is(value: Any, _: int) -> Any:
    return value


def _or_no_id(value: Any, _: int) -> Any:
    return value or NO_ID


def _truth(value: Any, _: int) -> bool:
    return bool(value)


class Asking:
    """A selector to be evaluated on rows.

    Args:
        at: the time at which remaining expiries are computed.

    Attributes:
        columns: the columns of the rows, as SQL.
    """

    def __init__(self, codec: Codec, selector: Selector, at: float) -> None:
        self._codec, self._matches, self._selector = codec, selector.matches, selector
        self._reads_properties = bool(selector.names)
        of_columns: Mapping[str, tuple[str, Convert]] = {
            "priority": ("m.priority", _as_it_is),
            "persistent": ("m.persistent", _truth),
            "correlation_id": ("m.correlation_id", _or_no_id),
            "group_id": ("m.group_id", _or_no_id),
            "message_id": ("m.message_id", lambda value, number: value or codec.own_id(number)),
            "sequence_number": ("m.sequence_number", _as_it_is),
            "offset": ('m."offset"', _as_it_is),
            "flags": ("m.flags", _as_it_is),
            "original_length": ("m.original_length", _as_it_is),
            "put_at": ("c.put_at", _as_it_is),
            "backout_count": ("m.backouts", _as_it_is),
            "expiry": (
                "m.expires_at",
                lambda ends, _: math.inf if ends is None else max(EXPIRY_SECONDS_MIN, ends - at),
            ),
        }
        narrow = sorted(selector.fields - DESCRIBED)
        self._narrow = [(name, of_columns[name][1]) for name in narrow]
        self._has_fields = bool(selector.fields)
        self._described = [(name, FIELDS.index(name)) for name in sorted(selector.fields & DESCRIBED)]
        columns = [*ALWAYS, *(of_columns[name][0] for name in narrow)]
        self.columns = ", ".join(columns)
        self._shapes = codec.shapes_of([column.split(".")[1].strip('"') for column in columns])

    def seen(self, columns: tuple[Any, ...]) -> SeenRow:
        """Returns a row, and whether the selector fits it. Raises: StoreDamaged."""
        rank, place_number, ordinal, number, descriptor, *values = columns
        if tuple(map(type, columns)) not in self._shapes.known and (wrong := self._shapes.wrong(columns)):
            raise self._codec.damaged(number, wrong)
        begun, between, properties = descriptor.partition(BETWEEN)
        try:
            fields = self._fields(begun, values, number) if self._has_fields else NOTHING
            read = decoded(properties[:-1]) if between and self._reads_properties else NOTHING
            fits = self._matches(fields, read) is True
        except DECODING as error:
            raise self._codec.damaged(
                number, f"its descriptor cannot be {descriptor!r:.60} ({error!s:.100})"
            ) from error
        place = _tuple(Place, (rank, place_number, ordinal))
        return _tuple(SeenRow, (place, number, fits, cost_of(properties, self._selector)))

    def _fields(self, begun: str, values: list[Any], number: int) -> dict[str, Any]:
        fields = {name: convert(value, number) for (name, convert), value in zip(self._narrow, values, strict=True)}
        if self._described:
            described = values_of(begun)
            for name, index in self._described:
                fields[name] = described[index]
            if fields.get("accounting_token", NO_ACCOUNTING) is None:
                fields["accounting_token"] = NO_ACCOUNTING
        return fields
