"""Puts the messages of a JSON Lines file, as an export writes it, on a queue: all or none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, BinaryIO, Final

from starlette.datastructures import UploadFile
from starlette.responses import Response

from ...client.manager import QueueManager
from ...errors import InorderError, bad_argument
from ...formats import FormatError
from ...formats.json_lines import message_of
from . import acting, notices
from .form_results import noted, refused, text_in
from .page import Page, Visit, to
from .rendering import shown

FILE_ALLOWED: Final = "a JSON Lines file with one message per line"
PARQUET: Final = b"PAR1"  # with which such a file begins
VALUES: Final[Mapping[str, Any]] = {"problem": ""}


async def show(visit: Visit) -> Mapping[str, Any]:
    """GET queue/NAME/import: the form."""
    visit.query()
    await visit.context.qm.attributes(visit.queue)
    return VALUES


async def act(visit: Visit) -> Response:
    """POST queue/NAME/import: puts the messages of a file, in one unit of work."""
    keeps = text_in(visit, "keep") == "yes"
    if keeps:
        visit.demand("control")  # it sets the user of the puts, for which MQ has the authority setall
    try:
        lines = _file(visit)
        put_by = None if keeps else visit.identity.context
        count = await noted(visit, "import", visit.queue, lambda qm: put_lines(qm, visit.queue, lines, put_by), int)
    except FormatError as error:
        return shown(visit, {"problem": f"{error.args[0].rstrip('.')}. Nothing was put."}, status=422)
    except InorderError as error:
        return refused(visit, error, VALUES)
    text = f"{count:,} {'message' if count == 1 else 'messages'} put."
    return notices.leave(visit.context, to("queue", visit.queue), text)


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
    Page(
        path="queue/{queue}/import",
        title="Import to {queue}",
        authority="put",
        queue="queue",
        template="import.html",
        show=show,
        act=act,
    ),
)
