"""Exports messages as a file, and imports them from one.

An export has the messages that a browse would show. It reads them page by page, and leaves them on the queue. Between
two pages no queue is open and no connection is held, so a client that reads slowly, or never ends, costs one page of
memory. Changes to the queue during the export may or may not be in the file.

An import puts the messages of a JSON Lines file, as an export writes it: all or none.
"""

from __future__ import annotations

import io
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, aclosing
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import groupby
from types import MappingProxyType
from typing import Any, BinaryIO, Final, Protocol

from starlette.datastructures import UploadFile
from starlette.responses import Response

from ...aio import QueueManager as QueueManagerOfTasks
from ...client.manager import QueueManager
from ...errors import ArgumentError, InorderError, bad_argument
from ...formats import FormatError, dmpmqmsg
from ...formats.json_lines import lines_of, message_of
from ...model.message import Message, UniqueId
from ...model.options import Match
from ...model.parameters import one_of
from ...stores.seam.views import MessageView
from ..api.streaming import Streamed
from ..problems import problem
from . import acting, forms, listing
from .acting import noted, refused
from .labels import counted
from .page import Page, Visit
from .rendering import shown

PREVIEW: Final = 65_536  # bytes of a body that are read with its page; a longer body is read alone
PAGE: Final = 100  # messages
FILE_ALLOWED: Final = "a JSON Lines file with one message per line"
PARQUET: Final = b"PAR1"  # the first bytes of such a file


# --- export


class ExportFile(Protocol):
    """A file that is sent while it is made."""

    def rows(self, messages: Sequence[Message]) -> bytes:
        """The next bytes, with these messages."""
        ...

    def end(self) -> bytes:
        """The last bytes."""
        ...


class _Lines:
    """Lines of JSON."""

    def rows(self, messages: Sequence[Message]) -> bytes:
        return lines_of(messages)

    def end(self) -> bytes:
        return b""


class _Dump:
    """Text as dmpmqmsg writes it.

    Args:
        bare: whether to leave out properties, for which the format has no place.
    """

    def __init__(self, bare: bool) -> None:
        self._bare, self._goes_on = bare, False

    def rows(self, messages: Sequence[Message]) -> bytes:
        text = io.BytesIO()
        dmpmqmsg.write(messages, text, leave_out_properties=self._bare, goes_on=self._goes_on)
        self._goes_on = True
        return text.getvalue()

    def end(self) -> bytes:
        return b"" if self._goes_on else self.rows([])


def _parquet(queue: str) -> ExportFile:
    if find_spec("pyarrow") is None:
        raise problem("INWB0040E", "Parquet", "pyarrow")
    made: ExportFile = import_module("inorder.arrow.parquet").ParquetFile(queue)
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A kind of file.

    Args:
        begin: begins a file for a queue.
    """

    word: str
    suffix: str
    media_type: str
    begin: Callable[[str], ExportFile]


FORMS: Final[Mapping[str, Form]] = MappingProxyType(
    {
        "jsonl": Form(word="JSON Lines", suffix=".jsonl", media_type="application/jsonl", begin=lambda queue: _Lines()),
        "parquet": Form(word="Parquet", suffix=".parquet", media_type="application/vnd.apache.parquet", begin=_parquet),
        "dmpmqmsg": Form(
            word="dmpmqmsg", suffix=".mqm", media_type="text/plain; charset=us-ascii", begin=lambda queue: _Dump(False)
        ),
        "dmpmqmsg-bare": Form(
            word="dmpmqmsg, without properties",
            suffix=".mqm",
            media_type="text/plain; charset=us-ascii",
            begin=lambda queue: _Dump(True),
        ),
    }
)


async def show_export(visit: Visit) -> Mapping[str, Any] | Response:
    """GET queue/NAME/export: the form; with ?form= the file."""
    given = visit.query("form", "selector")
    selector, form = given.get("selector", "").strip(), given.get("form", "")
    values = {
        "forms": FORMS, "selector": selector, "form": form, "has_parquet": find_spec("pyarrow") is not None,
    }  # fmt: skip
    if "form" in given:
        try:
            return await download(visit, [], Match(selector=selector or None), form)
        except ArgumentError as error:
            return refused(visit, error, values)
    await visit.context.qm.attributes(visit.queue)
    return values


async def download(visit: Visit, uids: Sequence[UniqueId], match: Match, form: str) -> Response:
    """The file of the messages with these ids; without ids, of all messages that match.

    The first page is read and written before the answer begins, so that the console can show an error on a page. A
    later error closes the connection, so no client takes an incomplete file for a complete one.

    Raises: ArgumentError, if there is no such form, or it has no place for these messages; Problem 501; the errors of
    `qm.inspect.look`.
    """
    if form not in FORMS:
        raise bad_argument("form", form, one_of(FORMS))
    chosen = FORMS[form]
    pieces = _pieces(visit, uids, match, chosen.begin(visit.queue))
    try:
        first = await anext(pieces)
    except FormatError as error:
        instead = "" if "bare" in form else f"; choose {FORMS['dmpmqmsg-bare'].word!r}, or another form"
        text = f"{error.args[0]}{instead}"
        raise ArgumentError(text, reason=error.reason, argument="form", value=form, allowed=text) from None
    name = re.sub(r"[^A-Za-z0-9._-]", "_", visit.queue) + chosen.suffix
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Streamed(
        _with_first(first, pieces), ExitStack(), seconds=None, media_type=chosen.media_type, headers=headers
    )


async def _with_first(first: bytes, pieces: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
    async with aclosing(pieces):
        yield first
        async for piece in pieces:
            yield piece


async def _pieces(
    visit: Visit, uids: Sequence[UniqueId], match: Match, file: ExportFile
) -> AsyncGenerator[bytes, None]:
    """The file, piece by piece. The thread of a connection reads and writes a piece, and is then free again."""
    qm, queue, is_first = visit.context.qm, visit.queue, True
    listed = acting.pages_of(qm, queue, match, preview=PREVIEW, most=PAGE)
    async for page in _chosen(qm, queue, uids) if uids else listed:
        for run in _runs([one for one in page if one.state == "available"]):
            if not is_first:  # a slow reader may have lost the authority by now
                await visit.demand_again("browse", queue)
            is_first = False
            if run[0].length <= PREVIEW:
                messages = [one.message for one in run]
                yield await qm.run(lambda _, messages=messages: file.rows(messages))  # type: ignore[misc]
            else:
                yield await qm.run(lambda one, long=run[0]: _alone(one, queue, long, file))  # type: ignore[misc]
    yield file.end()


async def _chosen(
    qm: QueueManagerOfTasks, queue: str, uids: Sequence[UniqueId]
) -> AsyncIterator[Sequence[MessageView]]:
    """The messages with these ids, page by page."""
    for begin in range(0, len(uids), PAGE):
        some = uids[begin : begin + PAGE]
        found = await qm.run(lambda one, some=some: acting.chosen(one, queue, some, preview=PREVIEW))  # type: ignore[misc]
        yield found.sights


def _runs(sights: Sequence[MessageView]) -> Iterator[Sequence[MessageView]]:
    """Neighbours whose whole bodies were read with the page; and each message with a longer body alone."""
    for is_long, group in groupby(sights, lambda one: one.length > PREVIEW):
        run = list(group)
        yield from [[one] for one in run] if is_long else [run]


def _alone(qm: QueueManager, queue: str, sight: MessageView, file: ExportFile) -> bytes:
    """The bytes of a message with a long body, if it is still available."""
    whole = acting.sight_of(qm, queue, listing.uid_in(sight.message), sight.length)
    return file.rows([whole.message]) if whole is not None and whole.state == "available" else b""


# --- import


async def show_import(visit: Visit) -> Mapping[str, Any]:
    """GET queue/NAME/import: the form."""
    visit.query()
    await visit.context.qm.attributes(visit.queue)
    return {}


async def act_import(visit: Visit) -> Response:
    """POST queue/NAME/import: puts the messages of a file, in one unit of work."""
    keeps = visit.text("keep") == "yes"
    if keeps:
        visit.demand("control")  # it sets the user of the puts, for which MQ has the authority setall
    try:
        lines = _file(visit)
        put_by = None if keeps else visit.identity.context
        count = await noted(visit, "import", visit.queue, lambda qm: put_lines(qm, visit.queue, lines, put_by))
    except FormatError as error:
        return shown(visit, {}, wrong=f"{error.args[0].rstrip('.')}. Nothing was put.")
    except InorderError as error:
        return refused(visit, error, {})
    return forms.done(visit, f"{counted(count)} put.", "queue", visit.queue)


def _file(visit: Visit) -> BinaryIO:
    """The uploaded file. Raises: ArgumentError, if there is none, or it is empty or Parquet."""
    file = visit.form.get("file")
    if not isinstance(file, UploadFile) or not file.size:
        raise acting.left_out("file", f"no file is chosen, or it is empty: choose {FILE_ALLOWED}")
    beginning = file.file.read(len(PARQUET))
    file.file.seek(0)
    if beginning == PARQUET:
        raise acting.left_out("file", f"file must be {FILE_ALLOWED}, not Parquet, which cannot be imported here")
    return file.file


def put_lines(qm: QueueManager, queue: str, lines: Iterable[bytes], put_by: Mapping[str, Any] | None) -> int:
    """Puts a message for each non-empty line while reading, in one unit of work. Returns the number of messages.

    Args:
        put_by: the identity context of the present user; None keeps the user and time of the original puts.

    Raises: FormatError, which names the line; ArgumentError, if all lines are empty; the errors of a put. In all cases
    no message was put.
    """
    count = 0
    with qm.unit_of_work():
        for number, line in enumerate(lines, 1):
            if line.strip():
                message = message_of(line, f"line {number:,}")
                if put_by is None:
                    qm.put(queue, message, context="set_all", syncpoint=True)
                else:
                    qm.put(queue, message.replace(**put_by), context="set_identity", syncpoint=True)
                count += 1
        if not count:
            raise bad_argument("file", "", FILE_ALLOWED)
    return count


PAGES: Final = (
    Page(path="queue/{queue}/import", title="Import to {queue}", authority="put", template="import.html",
         show=show_import, act=act_import),
    Page(path="queue/{queue}/export", title="Export {queue}", authority="browse", template="export.html",
         show=show_export),
)  # fmt: skip
