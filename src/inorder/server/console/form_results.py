"""Acts of visitors. Each is written to the store's log before it begins, with user and address."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from starlette.responses import Response

from ...client.manager import QueueManager
from ...client.operator_log import Acting
from ...errors import InorderError, StoreError
from ..operator_log import acted
from ..problems import Problem, of_admin_error, stated
from .acting import UnavailableMessage
from .page import Visit
from .rendering import shown

T = TypeVar("T")


async def noted(
    visit: Visit, act: str, queue: str, work: Callable[[QueueManager], T], counts: Callable[[T], int | None]
) -> T:
    """Runs an act that cannot be undone, and logs it.

    Args:
        act: its name in the log.
        queue: on which; "": on the queue manager.
        work: called with a connection, in the thread of that.
        counts: returns the number of messages from the result of `work`.

    Raises: the errors of `work`; the log then says failed.
    """

    def inside(qm: QueueManager, note: Acting) -> T:
        found = work(qm)
        note.messages = counts(found)
        return found

    return await acted(visit.context, visit.request, act, queue, inside)


def told(visit: Visit, queue: str, missing: Sequence[UnavailableMessage]) -> Sequence[UnavailableMessage]:
    """The unavailable messages, with their holders if the visitor may see them."""
    if visit.identity.may("display", queue):
        return missing
    return [one._replace(why="it has gone, or is not available now") for one in missing]


def text_in(visit: Visit, name: str) -> str:
    """A text field of the form; empty if it is missing or a file."""
    value = visit.form.get(name)
    return value if isinstance(value, str) else ""


def texts_in(visit: Visit, name: str) -> list[str]:
    """All text fields of the form with this name."""
    return [value for value in visit.form.getlist(name) if isinstance(value, str)]


def refused(visit: Visit, error: InorderError | Problem, values: Mapping[str, Any], template: str = "") -> Response:
    """Shows a page again with the error as `problem`. `values` has the visitor's input.

    Raises: StoreError, and Problem 401 if the session has ended, for the error page.
    """
    if isinstance(error, StoreError) or (isinstance(error, Problem) and error.code == 401):
        raise error
    if isinstance(error, Problem):
        record, status = error.record(), error.code
        said = f"{record['message'].partition(': ')[2]} {record['action']}"
    else:
        said, status = stated(error), of_admin_error(error, "").code
    return shown(visit, {**values, "problem": said}, status=status, template=template)
