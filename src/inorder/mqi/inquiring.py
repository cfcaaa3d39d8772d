"""MQINQ, MQSET and MQSTAT: attributes by MQ's numbers, of the tables of attributes in `inorder.model`.

A selector that MQ knows for this kind of object, but that has no value here, is answered like a selector of another
type of queue: warning 2068, the value -1 or asterisks.

Rules: 4.1, M-15.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from ..errors import ArgumentError, Reason
from ..model.attribute import NAME_LENGTH_MAX as NAME_LENGTH
from ..model.attribute import Attribute
from ..model.attributes import DEAD_LETTERS, MANAGER_ATTRIBUTES, QUEUE_ATTRIBUTES, QueueAttributes, QueueStatus
from ..model.process_attributes import PROCESS_ATTRIBUTES
from ..mq.words import COMMAND_QUEUE, LEVEL, VERSION, words_of
from . import constants as mq
from .connections import MqiConnection, OpenObject, connection_of
from .layouts import STS
from .opening import object_of
from .refusals import MQCC_FAILED, MQCC_OK, MQCC_WARNING, Refused

if TYPE_CHECKING:
    from typing_extensions import Buffer

INTEGERS: Final = range(1, 2_001)  # MQIA_FIRST to MQIA_LAST
CHARACTERS: Final = range(2_001, 4_001)  # MQCA_FIRST to MQCA_LAST
SELECTORS_MAX: Final = 256
DATE_LENGTH, TIME_LENGTH, VERSION_LENGTH = 12, 8, 8
NOT_APPLICABLE: Final = -1
PLATFORM: Final = 11 if sys.platform == "win32" else 3  # MQPL_WINDOWS_NT, MQPL_UNIX
UNLIMITED: Final = -1
LENGTHS: Final = {
    mq.MQCA_CREATION_DATE: DATE_LENGTH, mq.MQCA_ALTERATION_DATE: DATE_LENGTH, mq.MQCA_CREATION_TIME: TIME_LENGTH,
    mq.MQCA_ALTERATION_TIME: TIME_LENGTH, mq.MQCA_COMMAND_INPUT_Q_NAME: NAME_LENGTH,
    mq.MQCA_Q_MGR_IDENTIFIER: NAME_LENGTH, mq.MQCA_VERSION: VERSION_LENGTH,
}  # fmt: skip
STATUS: Final = {
    mq.MQIA_CURRENT_Q_DEPTH: "current_depth", mq.MQIA_OPEN_INPUT_COUNT: "open_input_count",
    mq.MQIA_OPEN_OUTPUT_COUNT: "open_output_count",
}  # fmt: skip
TIMES: Final = {
    mq.MQCA_CREATION_DATE: ("created_at", "%Y-%m-%d"), mq.MQCA_CREATION_TIME: ("created_at", "%H.%M.%S"),
    mq.MQCA_ALTERATION_DATE: ("altered_at", "%Y-%m-%d"), mq.MQCA_ALTERATION_TIME: ("altered_at", "%H.%M.%S"),
}  # fmt: skip
KINDS: Final = {mq.MQOT_Q: "queue", mq.MQOT_Q_MGR: "manager", mq.MQOT_PROCESS: "process"}
TABLES: Final = {"queue": QUEUE_ATTRIBUTES, "manager": MANAGER_ATTRIBUTES, "process": PROCESS_ATTRIBUTES}
BY_NUMBER: Final = {
    kind: {one.selector: one for one in table.values() if one.selector is not None} for kind, table in TABLES.items()
}
NOTHING: Final = [0, 0, 0], (0, "", b"")  # as `MqiConnection.take_counts`
Answer = tuple[list[int], bytes, int, int]


def inquire(handle: int, hobj: int, selectors: Sequence[int], int_count: int, char_length: int) -> Answer:
    """MQINQ.

    Args:
        int_count: how many integers the program has room for.
        char_length: how many characters.

    Raises: Refused 2006, 2019, 2021, 2038, 2065 to 2067.
    """
    if not 0 <= len(selectors) <= SELECTORS_MAX:
        raise Refused(Reason.SELECTOR_LIMIT_EXCEEDED)
    if int_count < 0:
        raise Refused(Reason.INT_ATTR_COUNT_ERROR)
    if char_length < 0:
        raise Refused(Reason.CHAR_ATTR_LENGTH_ERROR)
    connection = connection_of(handle)
    with connection:
        opened = object_of(connection, hobj)
        if not opened.options & mq.MQOO_INQUIRE:
            raise Refused(Reason.NOT_OPEN_FOR_INQUIRE)
        kind = KINDS[opened.kind]
        for one in selectors:
            _check(kind, one)
        found = dict(zip(selectors, _values(connection, opened, kind, selectors), strict=True))
    ints = [found[one] for one in selectors if one in INTEGERS]
    texts = [_padded(kind, one, found[one]) for one in selectors if one in CHARACTERS]
    warning = 0
    if any(value is None for value in found.values()):
        warning = int(Reason.SELECTOR_NOT_FOR_TYPE)
    chars = b"".join(texts)
    if len(ints) > int_count:
        warning = int(Reason.INT_ATTR_COUNT_TOO_SMALL)
    if len(chars) > char_length:
        warning = int(Reason.CHAR_ATTRS_TOO_SHORT)
    given = [NOT_APPLICABLE if value is None else int(value) for value in ints[:int_count]]
    return given, chars[:char_length], MQCC_WARNING if warning else MQCC_OK, warning


def _check(kind: str, selector: int) -> None:
    known = {each.number for each in words_of(kind).values()} | BY_NUMBER[kind].keys()
    if selector not in known or (selector not in INTEGERS and selector not in CHARACTERS):
        raise Refused(Reason.SELECTOR_ERROR)


def _values(connection: MqiConnection, opened: OpenObject, kind: str, selectors: Iterable[int]) -> Iterator[Any]:
    """MQ's value for each selector; None: the object has none."""
    if kind == "queue":
        assert opened.queue is not None
        attributes = opened.queue.attributes()
        status = cache(opened.queue.status)
        return (_of_queue(attributes, status, one) for one in selectors)
    if kind == "manager":
        manager = connection.manager.admin.manager_attributes()
        return (_of_manager(connection, manager, one) for one in selectors)
    process = connection.manager.admin.process(opened.name)
    return (_of(process, BY_NUMBER[kind].get(one)) for one in selectors)


def _of_queue(attributes: QueueAttributes, status: Callable[[], QueueStatus], selector: int) -> Any:
    has_status = attributes.type == "local" or attributes.mode == "synchronous"
    if selector in STATUS:
        return getattr(status(), STATUS[selector]) if has_status else None
    if selector in TIMES:
        return _time(selector, status()) if has_status or attributes.type == "alias" else None
    if selector == mq.MQIA_PROPERTY_CONTROL:
        return None if attributes.type == "remote" else mq.MQPROP_COMPATIBILITY  # as every queue here has it
    attribute = BY_NUMBER["queue"].get(selector)
    if attribute is None or attributes.type not in attribute.applies_to:
        return None
    return _of(attributes, attribute)


def _of_manager(connection: MqiConnection, manager: Any, selector: int) -> Any:
    fixed: dict[int, Any] = {
        mq.MQIA_COMMAND_LEVEL: LEVEL, mq.MQIA_PLATFORM: PLATFORM, mq.MQIA_SYNCPOINT: 1, mq.MQIA_DIST_LISTS: 0,
        mq.MQCA_COMMAND_INPUT_Q_NAME: COMMAND_QUEUE, mq.MQCA_VERSION: VERSION,
    }  # fmt: skip
    if selector in fixed:
        return fixed[selector]
    if selector == mq.MQCA_Q_MGR_IDENTIFIER:
        return f"{manager.name}_{connection.session.services.store.identifier()}"
    if selector in (mq.MQCA_CREATION_DATE, mq.MQCA_CREATION_TIME):
        return _time(selector, connection.manager.inspect.status(DEAD_LETTERS))
    return _of(manager, BY_NUMBER["manager"].get(selector))


def _time(selector: int, status: QueueStatus) -> str:
    name, form = TIMES[selector]
    return time.strftime(form, time.gmtime(getattr(status, name)))


def _of(thing: object, attribute: Attribute | None) -> Any:
    if attribute is None:
        return None
    value = getattr(thing, attribute.name)
    if attribute.kind == "seconds":
        return UNLIMITED if value is None else int(value * attribute.mqsc_per_second)
    return attribute.to_mq(value)


def _padded(kind: str, selector: int, value: str | None) -> bytes:
    """A text with MQ's length for the attribute; asterisks for none."""
    attribute = BY_NUMBER[kind].get(selector)
    length = LENGTHS.get(selector) or (attribute.max_length if attribute is not None else _length(kind, selector))
    return b"*" * length if value is None else value.encode()[:length].ljust(length)


def _length(kind: str, selector: int) -> int:
    word = next(each for each in words_of(kind).values() if each.number == selector)
    digits = word.values.removeprefix("char")
    return int(digits) if digits.isdigit() else NAME_LENGTH


# ---- MQSET


def set_values(handle: int, hobj: int, selectors: Sequence[int], ints: Sequence[int], chars: bytes) -> tuple[int, int]:
    """MQSET.

    Raises: Refused 2006, 2007, 2019, 2021, 2040, 2066 to 2068; ArgumentError 2020, 2075 to 2078.
    """
    if len(selectors) > SELECTORS_MAX:
        raise Refused(Reason.SELECTOR_LIMIT_EXCEEDED)
    connection = connection_of(handle)
    with connection:
        opened = object_of(connection, hobj)
        if not opened.options & mq.MQOO_SET or opened.queue is None:
            raise Refused(Reason.NOT_OPEN_FOR_SET)
        integers, rest = iter(ints), chars
        changes: dict[Any, Any] = {}
        for one in selectors:
            attribute = BY_NUMBER["queue"].get(one)
            if attribute is None or attribute.changed_by != "set":
                raise Refused(Reason.SELECTOR_ERROR)
            if one in CHARACTERS:
                if len(rest) < attribute.max_length:
                    raise Refused(Reason.CHAR_ATTR_LENGTH_ERROR)
                changes[one], rest = _text(rest[: attribute.max_length]), rest[attribute.max_length :]
            else:
                value = next(integers, None)
                if value is None:
                    raise Refused(Reason.INT_ATTR_COUNT_ERROR)
                changes[one] = value
        try:
            opened.queue.set(changes)
        except ArgumentError as error:
            if error.reason is Reason.ARGUMENT_ERROR:  # a text with control characters
                raise Refused(Reason.CHAR_ATTRS_ERROR) from None
            raise
    return MQCC_OK, 0


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode(errors="replace").rstrip(" ")


# ---- MQSTAT


def status(handle: int, kind: int, sts: Buffer) -> tuple[int, int]:
    """MQSTAT: the outcomes of puts whose answer the program did not wait for. Only a client has failures among them;
    others are told at once. Of reconnections, which do not happen, there is nothing to report.

    Raises: Refused 2426 (a wrong MQSTS), 2430.
    """
    if kind not in (mq.MQSTAT_TYPE_ASYNC_ERROR, mq.MQSTAT_TYPE_RECONNECTION, mq.MQSTAT_TYPE_RECONNECTION_ERROR):
        raise Refused(mq.MQRC_STAT_TYPE_ERROR)
    connection = connection_of(handle)
    with connection:
        values = STS.read(sts)
        is_about_puts = kind == mq.MQSTAT_TYPE_ASYNC_ERROR
        counts, (reason, name, resolved) = connection.take_counts() if is_about_puts else NOTHING
        values.CompCode, values.Reason = MQCC_FAILED if reason else MQCC_OK, reason
        values.PutSuccessCount, values.PutWarningCount, values.PutFailureCount = counts
        if reason:
            values.ObjectType, values.ObjectName = mq.MQOT_Q, name.ljust(NAME_LENGTH).encode()
            values.ResolvedObjectName, values.ResolvedQMgrName = resolved[:NAME_LENGTH], resolved[NAME_LENGTH:]
        STS.write(sts, values)
    return MQCC_OK, 0
