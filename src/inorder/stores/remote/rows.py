"""Rows: messages on the wire, in the order of `Message.FIELDS`.

`msgspec` reads a row as a struct. It ignores fields that a newer release has appended, and fills in those that an
older release lacks.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from ...errors import bad_argument
from ...model.fields import EXPIRY_SECONDS_MIN, GIVEN, NUMBER_MAX, MessageFields
from ...model.message import Message, Row, check_together
from ...model.options import UniqueIds
from ...model.parameters import WHOLE_MAX
from ...model.properties import NO_PROPERTIES, Properties, decoded
from ...support.decoders import building

BLANK: Final[Row] = (*Message().row[: Message.properties.index], None, *Message().row[Message.properties.index + 1 :])
LEAST: Final = Message.warning.index  # every release has these
PROPERTIES: Final = Message.properties.index
BODY, LENGTH, UID, PLACE = Message.body.index, Message.length.index, Message.uid.index, Message.place.index


def _row_type() -> Any:
    """The type of a row for `msgspec`. A short row would take hundreds of times its length, so it is refused."""
    hints = typing.get_type_hints(MessageFields)
    kinds = {
        name: typing.get_args(hints[name])[0] if name in hints else type(field.default)
        for name, field in Message.FIELDS.items()
    }
    kinds["properties"] = str | None
    fields = list(kinds.items())
    later = [(*field, default) for field, default in zip(fields[LEAST:], BLANK[LEAST:], strict=True)]
    return msgspec.defstruct("Row", [*fields[:LEAST], *later], array_like=True, gc=False)


ROW: Final = _row_type()
CHECKS: Final = tuple(
    (field.index, name, field.check, field.default)
    for name, field in GIVEN.items()
    if name != "properties" and field.check is not None
)
EXPIRY: Final = Message.expiry.index
check_uid = UniqueIds().check
astuple = msgspec.structs.astuple


def converted(plain: Any, kind: Any, **given: Any) -> Any:
    """As `msgspec.convert`, for threads that may read the type at the same time."""
    with building:
        return msgspec.convert(plain, kind, **given)


def named(fault: object, names: Sequence[str]) -> str:
    """Returns the text of a fault in `msgspec`, with the number of an argument or field replaced by its name."""

    def name(found: re.Match[str]) -> str:
        return names[int(found[1])] if int(found[1]) < len(names) else found[0]

    return re.sub(r"\$\[([0-9]+)\](?=[^`]*`$)", name, str(fault))


def row_of(plain: Any) -> Any:
    """The row in a plain value. Raises: ValueError, it is none."""
    try:
        return converted(plain, ROW, builtin_types=(bytes,))
    except msgspec.ValidationError as error:
        raise ValueError(named(error, tuple(Message.FIELDS))) from None


def messages_of_answer(rows: Iterable[Any]) -> list[Any]:
    """The messages in the rows of an answer."""
    return Message.from_rows(
        [
            (*one[:PROPERTIES], Properties.from_text(one[PROPERTIES]), *one[PROPERTIES + 1 :])
            for one in map(astuple, rows)
        ]
    )


def message_of_call(read: Any) -> Message:
    """The message in a row of a call, checked as by its constructor. Raises: as `Message`; ValueError.

    It may be a message from a get: less than a tenth of a second of its expiry may be left, and it has values that the
    queue manager has set.
    """
    row = list(astuple(read))
    text = row[PROPERTIES]
    row[PROPERTIES] = NO_PROPERTIES if text is None else Properties(decoded(text))
    for index, name, check, default in CHECKS:
        value = row[index]
        if value != default and not (index == EXPIRY and 0 <= value < EXPIRY_SECONDS_MIN):
            row[index] = check(name, value)
    row[LENGTH] = min(max(row[LENGTH], len(row[BODY])), NUMBER_MAX)
    if row[UID] is not None:
        check_uid("uid", row[UID])
    if row[PLACE] is not None and max(map(abs, row[PLACE])) > WHOLE_MAX:
        raise bad_argument("place", row[PLACE], "numbers of 64 bits")
    made = tuple(row)
    check_together(made)
    return Message.from_row(made)
