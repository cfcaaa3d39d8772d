"""Acts of visitors: each is noted in the store's log before it begins, with who does it and from where."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from starlette.responses import Response

from ...client.manager import QueueManager
from ...client.operator_log import Acting
from ...errors import InorderError, StoreError
from ..acting import acted
from ..problems import Problem, of_admin_error, stated
from .acting import Missing
from .page import Visit
from .rendering import shown

T = TypeVar("T")


async def noted(
    visit: Visit, act: str, queue: str, work: Callable[[QueueManager], T], counts: Callable[[T], int | None]
) -> T:
    """Does something that cannot be taken back, and notes it.

    Args:
        act: what it is, as the log has it.
        queue: on which; "": on the queue manager.
        work: is called with a connection, in its thread.
        counts: how many messages it was about, of what it returned.

    Raises: what it raises; the log has it as failed.
    """

    def inside(qm: QueueManager, note: Acting) -> T:
        found = work(qm)
        note.messages = counts(found)
        return found

    return await acted(visit.context, visit.request, act, queue, inside)


def told(visit: Visit, queue: str, missing: Sequence[Missing]) -> Sequence[Missing]:
    """What could not be had, with who holds it for those who may know that."""
    if visit.identity.may("display", queue):
        return missing
    return [one._replace(why="it has gone, or cannot be had now") for one in missing]


def text_in(visit: Visit, name: str) -> str:
    """A field of the form that is a text; empty: it is not there, or it is a file."""
    value = visit.form.get(name)
    return value if isinstance(value, str) else ""


def texts_in(visit: Visit, name: str) -> list[str]:
    """All fields of the form with this name that are texts."""
    return [value for value in visit.form.getlist(name) if isinstance(value, str)]


def refused(visit: Visit, error: InorderError | Problem, values: Mapping[str, Any], template: str = "") -> Response:
    """A page again, with what was wrong as `problem`; `values` have what was chosen and filled in.

    Raises: StoreError, and Problem 401, the visitor is out: for the page of errors.
    """
    if isinstance(error, StoreError) or (isinstance(error, Problem) and error.code == 401):
        raise error
    if isinstance(error, Problem):
        record, status = error.record(), error.code
        said = f"{record['message'].partition(': ')[2]} {record['action']}"
    else:
        said, status = stated(error), of_admin_error(error, "").code
    return shown(visit, {**values, "problem": said}, status=status, template=template)
