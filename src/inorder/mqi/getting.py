"""MQGET.

A get that removes a message asks inside the operation whether the message fits with its headers, and if not, it has not
happened. A store elsewhere cannot be asked: there the data alone must fit, and a message that does not with its headers
is cut.

Rules: 3.1 to 3.12, M-10 to M-12.
"""

from __future__ import annotations

import contextlib
import struct
from typing import TYPE_CHECKING, Any, Final

from ..errors import NoMessageAvailable, QueueCondition, Reason
from ..model.attribute import NAME_LENGTH_MAX as NAME_LENGTH
from ..model.message import IN_GROUP, LAST_IN_GROUP, LAST_SEGMENT, SEGMENT, SEGMENTATION_ALLOWED, Got
from ..model.options import GetOptions, Match
from . import properties
from .connections import MqiConnection, OpenObject, connection_of
from .constants import MQCCSI_APPL, MQCCSI_Q_MGR, MQGMO_UNLOCK, MQOO_BROWSE, MQOO_SAVE_ALL_CONTEXT
from .conversion import Data, converted, converted_beginning
from .descriptor import CONTEXT_FIELDS, DEFAULT_MD, FLAGS, padded, text_of, version_of, write_got
from .headers import CHARACTER_SET, ENCODING, FORMAT, FORMAT_LENGTH, RowAndBody, has_headers, presented
from .layouts import GMO
from .opening import object_of
from .options import LOOKS, POSITIONS, Getting, get_options, matching
from .refusals import MQCC_OK, MQCC_WARNING, Refused

if TYPE_CHECKING:
    from .handles import MessageHandle

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
HANDLE: Final = struct.Struct("=q")
HANDLE_AT: Final = 104
CHARACTERS: Final = struct.Struct("=ii")  # Encoding and CodedCharSetId of MQMD
CHARACTERS_AT: Final = 24
VERSIONS: Final = {b"GMO " + struct.pack("=i", version): version for version in range(GMO.oldest, GMO.newest + 1)}
NO_TOKEN: Final = bytes(16)
STATUSES: Final = tuple(
    (b"L" if flags & LAST_IN_GROUP else b"G" if flags & IN_GROUP else b" ")
    + (b"L" if flags & LAST_SEGMENT else b"S" if flags & SEGMENT else b" ")
    + (b"A" if flags & SEGMENTATION_ALLOWED else b" ")
    for flags in range(32)
)
"""GroupStatus, SegmentStatus and Segmentation, by MsgFlags (R1.11)."""
Answer = tuple[int, int, int]


class DoesNotFit(QueueCondition):
    """The message is longer than the buffer, so the get has not happened."""

    reason = Reason.TRUNCATED_MSG_FAILED


def get(handle: int, hobj: int, md: Any, gmo: Any, buffer: Any, longest: int | None = None) -> Answer:
    """Gets or browses a message; returns the length of its data.

    Args:
        longest: the greatest length before a conversion; None: the length of the buffer.

    Raises: Refused, InorderError.
    """
    connection = connection_of(handle)
    with connection:
        opened = object_of(connection, hobj)
        if md is None:
            md = bytearray(DEFAULT_MD)
        md_version, version = version_of(md), 1
        options = wait = match = message_handle = 0
        token = NO_TOKEN
        if gmo is not None:
            head, options, wait = HEAD.unpack_from(gmo)
            version = VERSIONS.get(head, 0)
            if not version:
                raise Refused(Reason.GMO_ERROR)
            if version > 1:
                (match,) = MATCH.unpack_from(gmo, MATCH_AT)
                if version > 2:
                    (token,) = TOKEN.unpack_from(gmo, TOKEN_AT)
                    if version > 3:
                        (message_handle,) = HANDLE.unpack_from(gmo, HANDLE_AT)
        _check_open(opened, options)
        view = memoryview(buffer).cast("B")
        room = len(view) if longest is None else longest
        asks = opened.takes_back and not options & LOOKS
        getting = get_options(options, match, wait, -1 if asks else room, md_version, version)
        if getting.unlocks:
            return _unlock(opened)
        wanted = getting.options
        if (getting.match or opened.selector is not None) and not wanted.by_cursor:
            wanted = matching(wanted, getting.match, opened.selector, md, token)
        fills = None
        if message_handle or getting.headers:
            fills = properties.handle_for_get(handle, message_handle, getting.headers)
        call = _Call(connection, opened, getting, (md, md_version), (gmo, version), (view, room), fills)
        if not asks or getting.accepts_truncated:
            return call.look(wanted)
        try:
            opened.read(wanted, call.check)
        except DoesNotFit:
            return call.answer(Reason.TRUNCATED_MSG_FAILED)
        return call.answer(0)


def _check_open(opened: OpenObject, options: int) -> None:
    """Refuses a get from an object that is no queue (2037), and a browse (2036) on a handle that the program did not
    open to browse: the queue of one that can only inquire is open so.
    """
    if opened.queue is None:
        raise Refused(Reason.NOT_OPEN_FOR_INPUT)
    if options & (POSITIONS | MQGMO_UNLOCK) and not opened.options & MQOO_BROWSE:
        raise Refused(Reason.NOT_OPEN_FOR_BROWSE)


def _unlock(opened: OpenObject) -> Answer:
    assert opened.queue is not None
    warning = opened.queue.unlock()
    return (0, MQCC_OK, 0) if warning is None else (0, MQCC_WARNING, int(warning))


class _Call:
    """One MQGET: the message found, and the answer."""

    __slots__ = (
        "_connection",
        "_fills",
        "_getting",
        "_gmo",
        "_md",
        "_md_version",
        "_message",
        "_opened",
        "_room",
        "_shown",
        "_version",
        "_view",
    )

    def __init__(
        self,
        connection: MqiConnection,
        opened: OpenObject,
        getting: Getting,
        md: tuple[Any, int],
        gmo: tuple[Any, int],
        buffer: tuple[memoryview, int],
        fills: MessageHandle | None,
    ) -> None:
        self._connection, self._opened, self._getting, self._fills = connection, opened, getting, fills
        (self._md, self._md_version), (self._gmo, self._version), (self._view, self._room) = md, gmo, buffer

    def present(self, message: Got) -> int:
        """Makes the answer of a message; returns the length of its data."""
        self._message, row, body = message, message.row, message.body
        if self._fills is None and not has_headers(row, self._md_version):
            self._shown = RowAndBody(row, body)
            return message.length
        self._shown = presented(message, self._md_version, self._getting.headers, self._fills)
        return message.length + len(self._shown.body) - len(body)

    def check(self, message: Got) -> None:
        """Inside the operation of a get: raises DoesNotFit, so that the message stays."""
        if self.present(message) > self._room:
            raise DoesNotFit("the message does not fit into the buffer")

    def look(self, wanted: Any) -> Answer:
        """Reads a message without asking inside the operation, and answers."""
        opened, queue = self._opened, self._opened.queue
        assert queue is not None
        before = queue.internals.browsed
        length = self.present(opened.read(wanted))
        if length <= self._room:
            return self.answer(0)
        if self._getting.accepts_truncated:
            return self.answer(Reason.TRUNCATED_MSG_ACCEPTED)
        is_taken = self._message.warning is not Reason.TRUNCATED_MSG_FAILED
        if is_taken and not wanted.browse:
            return self.answer(Reason.TRUNCATED_MSG_ACCEPTED)
        if is_taken:
            self._unmark(wanted)
            queue.internals.browse_back(before)
        return self.answer(Reason.TRUNCATED_MSG_FAILED)

    def _unmark(self, wanted: Any) -> None:
        """Ends the mark of a message that a browse has marked but does not return."""
        if wanted.mark_handle or wanted.mark_co_op:
            marks: Any = {"unmark_handle": wanted.mark_handle, "unmark_co_op": wanted.mark_co_op}
            match = Match(token=self._message.token)
            with contextlib.suppress(NoMessageAvailable):  # another handle has removed it
                self._opened.read(GetOptions(browse="first", complete=wanted.complete, match=match, **marks))

    def answer(self, cut: int) -> Answer:
        """Writes the outputs.

        Args:
            cut: the reason why the data is cut; 0: it is whole.
        """
        message, (row, body), getting, view = self._message, self._shown, self._getting, self._view
        length = message.length + len(body) - len(message.body)
        reason = int(cut or message.warning or 0)
        if getting.converts and body and view and cut != Reason.TRUNCATED_MSG_FAILED:
            row, body, refusal = self._converted(row, body, is_cut=bool(cut))
            reason = reason or refusal
            if reason != Reason.TRUNCATED_MSG_ACCEPTED:
                length = len(body)
            elif len(body) < len(view):
                view[len(body) :] = bytes(len(view) - len(body))
        returned = min(len(body), len(view))
        view[:returned] = body[:returned] if returned < len(body) else body
        write_got(self._md, self._md_version, row)
        if self._fills is not None:
            properties.got(self._fills, self._md)
        if self._gmo is not None:
            self._write_options(row, returned)
        opened = self._opened
        if opened.options & MQOO_SAVE_ALL_CONTEXT and cut != Reason.TRUNCATED_MSG_FAILED:
            opened.saved = None if getting.options.browse else row[CONTEXT_FIELDS]
        return length, MQCC_WARNING if reason else MQCC_OK, reason

    def _converted(self, row: Any, body: bytes, *, is_cut: bool) -> tuple[Any, bytes, int]:
        """The data in the encoding and the character set that the descriptor asks for; a reason if it is as it was, or
        if it is cut because it is too long now.
        """
        encoding, character_set = CHARACTERS.unpack_from(self._md, CHARACTERS_AT)
        if character_set in (MQCCSI_Q_MGR, MQCCSI_APPL):
            character_set = self._connection.character_set
        given = Data(body, padded(row[FORMAT], FORMAT_LENGTH), row[ENCODING], row[CHARACTER_SET])
        data, refusal = (given, 0) if is_cut else converted(given, encoding, character_set)
        if is_cut or len(data.body) > len(self._view):
            if not self._getting.accepts_truncated:
                return row, body, int(Reason.CONVERTED_MSG_TOO_BIG)
            data = converted_beginning(given, encoding, character_set, len(self._view))
            refusal = int(Reason.TRUNCATED_MSG_ACCEPTED)
        made = (*row[:ENCODING], data.encoding, data.ccsid, text_of(data.format), *row[FORMAT + 1 :])
        return made, data.body, refusal

    def _write_options(self, row: Any, returned: int) -> None:
        gmo = self._gmo
        NAME.pack_into(gmo, NAME_AT, self._opened.resolved[:NAME_LENGTH])
        if self._version > 1:
            STATUS.pack_into(gmo, STATUS_AT, STATUSES[row[FLAGS]])
            if self._version > 2:
                TOKEN_AND_LENGTH.pack_into(gmo, TOKEN_AT, self._message.token, returned)
