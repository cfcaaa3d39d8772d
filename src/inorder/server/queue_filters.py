"""The filter of version 1's `GET queue`: ``storage.maximumDepth:greaterThan:5000``, one for each request."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..model.parameters import one_of
from ..mq.mqsc.filters import is_like

COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "lessThan": operator.lt,
    "greaterThan": operator.gt,
    "lessThanOrEqualTo": operator.le,
    "greaterThanOrEqualTo": operator.ge,
}
EQUAL: Final[Mapping[str, bool]] = {"equalTo": True, "notEqualTo": False}
OPERATORS: Final = (*COMPARE, *EQUAL)
FORM: Final = "ATTRIBUTE:OPERATOR:VALUE, as in status.currentDepth:greaterThan:0"
SWITCHES: Final = {"true": True, "false": False}


class NotComparable(ValueError):
    """The attribute cannot be compared with the value, or by the operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A condition on one attribute.

    Args:
        path: the path of the attribute, as in storage.maximumDepth.
        operator: one of `OPERATORS`.
        value: as in the query.
    """

    path: str
    operator: str
    value: str

    def fits(self, found: Mapping[str, Any]) -> bool:
        """Whether a queue, as JSON with this attribute, fulfils the condition. A queue without the attribute does not.

        Raises: NotComparable.
        """
        group, _, name = self.path.partition(".")
        there = found.get(group, {}).get(name)
        if there is None:
            return False
        if isinstance(there, str) and self.operator in EQUAL:  # an asterisk at the end stands for any text
            return is_like(there, self.value) is EQUAL[self.operator]
        value = self._like(there)
        if self.operator in EQUAL:
            return (there == value) is EQUAL[self.operator]
        return COMPARE[self.operator](there, value)

    def _like(self, there: Any) -> Any:
        """The value, with the type of the attribute."""
        if isinstance(there, bool):
            if self.value not in SWITCHES or self.operator not in EQUAL:
                raise NotComparable(f"must compare {self.path} with true or false, by {' or '.join(EQUAL)}")
            return SWITCHES[self.value]
        if isinstance(there, int):
            digits = self.value.removeprefix("-")
            if not (digits.isascii() and digits.isdecimal() and len(digits) <= 20):
                raise NotComparable(f"must compare {self.path} with an integer, not {self.value!r}")
            return int(self.value)
        return self.value


def read_filter(text: str, paths: Collection[str]) -> Filter:
    """Reads a filter in a query. Raises: ValueError, if it is not valid."""
    path, _, rest = text.partition(":")
    word, separator, value = rest.partition(":")
    if not separator:
        raise ValueError(f"must be {FORM}")
    if path not in paths:
        raise ValueError(f"must name {one_of(sorted(paths))}, not {path!r}")
    if word not in OPERATORS:
        raise ValueError(f"must compare by {one_of(OPERATORS)}, not {word!r}")
    return Filter(path=path, operator=word, value=value)
