"""MQGET.

Rules: 3.1 to 3.12, M-10 to M-12.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from ..errors import Reason
from ..model.message import (
    IN_GROUP,
    LAST_IN_GROUP,
    LAST_SEGMENT,
    SEGMENT,
    SEGMENTATION_ALLOWED,
    Message,
)
from .connections import OpenObject, connection_of
from .constants import MQOO_BROWSE, MQOO_SAVE_ALL_CONTEXT
from .descriptor import CONTEXT_FIELDS, DEFAULT_MD, FLAGS, version_of, write_got
from .layouts import GMO
from .opening import NAME_LENGTH, object_of
from .options import get_options, matching
from .refusals import MQCC_OK, MQCC_WARNING, Refused

HEAD: Final = struct.Struct("=8sii")  # identifier and version, Options, WaitInterval
NAME: Final = struct.Struct("=48s")
NAME_AT: Final = 24
MATCH: Final = struct.Struct("=i")
MATCH_AT: Final = 72
STATUS: Final = struct.Struct("=3s")
STATUS_AT: Final = 76
TOKEN: Final = struct.Struct("=16s")
TOKEN_AT: Final = 80
TOKEN_AND_LENGTH: Final = struct.Struct("=16si")
VERSIONS: Final = {b"GMO " + struct.pack("=i", version): version for version in range(GMO.oldest, GMO.newest + 1)}
NO_TOKEN: Final = bytes(16)
STATUSES: Final = tuple(
    (b"L" if flags & LAST_IN_GROUP else b"G" if flags & IN_GROUP else b" ")
    + (b"L" if flags & LAST_SEGMENT else b"S" if flags & SEGMENT else b" ")
    + (b"A" if flags & SEGMENTATION_ALLOWED else b" ")
    for flags in range(32)
)
"""GroupStatus, SegmentStatus and Segmentation, by MsgFlags (R1.11)."""


def get(handle: int, hobj: int, md: Any, gmo: Any, buffer: Any) -> tuple[int, int, int]:
    """Gets or browses a message; returns the length of its data. Raises: Refused, InorderError."""
    connection = connection_of(handle)
    with connection:
        opened = object_of(connection, hobj)
        if opened.queue is None:
            raise Refused(Reason.NOT_OPEN_FOR_INPUT)
        if md is None:
            md = bytearray(DEFAULT_MD)
        md_version, version = version_of(md), 1
        options = wait = match = 0
        token = NO_TOKEN
        if gmo is not None:
            (
                head,
                options,
                wait,
            ) = HEAD.unpack_from(gmo)
            version = VERSIONS.get(head, 0)
            if not version:
                raise Refused(Reason.GMO_ERROR)
            if version > 1:
                (match,) = MATCH.unpack_from(gmo, MATCH_AT)
                if version > 2:
                    (token,) = TOKEN.unpack_from(gmo, TOKEN_AT)
        view = memoryview(buffer).cast("B")
        getting = get_options(options, match, wait, len(view), md_version, version)
        if getting.unlocks:
            return _unlock(opened)
        wanted = getting.options
        if (getting.match or opened.selector is not None) and not wanted.by_cursor:
            wanted = matching(wanted, getting.match, opened.selector, md, token)
        message = opened.read(wanted)
        row, body = message.row, message.body
        length = message.length
        returned = len(body)
        view[:returned] = body
        write_got(md, md_version, row)
        if gmo is not None:
            _write_options(gmo, version, opened, message, returned)
        if opened.options & MQOO_SAVE_ALL_CONTEXT and not wanted.browse:
            opened.saved = row[CONTEXT_FIELDS]
        warning = message.warning
        return (length, MQCC_OK, 0) if warning is None else (length, MQCC_WARNING, int(warning))


def _unlock(opened: OpenObject) -> tuple[int, int, int]:
    if not opened.options & MQOO_BROWSE or opened.queue is None:
        raise Refused(Reason.NOT_OPEN_FOR_BROWSE)
    warning = opened.queue.unlock()
    return (0, MQCC_OK, 0) if warning is None else (0, MQCC_WARNING, int(warning))


def _write_options(gmo: Any, version: int, opened: OpenObject, message: Message, returned: int) -> None:
    NAME.pack_into(gmo, NAME_AT, opened.resolved[:NAME_LENGTH])
    if version > 1:
        STATUS.pack_into(gmo, STATUS_AT, STATUSES[message.row[FLAGS]])
        if version > 2:
            TOKEN_AND_LENGTH.pack_into(gmo, TOKEN_AT, message.token, returned)
