"""The user whose authority counts when the queue manager puts a message on behalf of a user (between P-3).

A message that asks for reports is stored with a mark: the server user who put it. That user needs `put` on the
destination of the report, both at the put and when the report is made. A program that opens the store directly has no
mark and is not checked. A trigger message has the mark of the queue manager, and a trigger monitor starts programs only
for such messages. A report does not have that mark, because its body comes from others.

A message that a channel brings to a server has the mark of the channel's user. Its putter could not be told of a
refusal, so the message is accepted even if that user may not put its report: the report then becomes a dead letter.

Marks are in a separate column, `put_by`. They are not part of the message: no caller, dump or channel can set them, and
no get or export shows them. A message that is put again gets the mark of its new user.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ...errors import NotAuthorized
from ...model.kinds import Report
from ...model.message import REPORT_GENERATED, Message, Row
from ...rules.authorities import LAUNCH_TOKEN, Grants, may
from ..seam.damage import decodes
from ..seam.tables import ObjectRow
from .operation import Operation

OWN: Final = ""
"""The mark of the queue manager."""
UNKNOWN: Final = ":"
"""The mark of an unknown user: for a message whose putter is no longer recorded."""
USER: Final = "user"  # the kind of object
ANY_REPORT: Final = int(REPORT_GENERATED | Report.EXCEPTION)  # a plain integer: it is tested for each message
REPORT, REPLY_TO, REPLY_TO_MANAGER = (
    Message.FIELDS[name].index for name in ("report", "reply_to_queue", "reply_to_queue_manager")
)


class UserRights(NamedTuple):
    """The rights of a user. The identifier changes when the user is deleted or disabled."""

    identifier: str
    enabled: bool
    roles: Sequence[str]
    queues: Grants


@decodes("a user")
def _read(text: str) -> UserRights:
    kept = json.loads(text)
    return UserRights(*(kept[name] for name in UserRights._fields))


def _found(operation: Operation, name: str) -> UserRights | None:
    rows = operation.backend.select(ObjectRow, type=USER, name=name)
    return _read(rows[0].attributes) if rows else None


def mark_of(operation: Operation, user: str | None) -> str | None:
    """Returns the mark for messages put on behalf of a user; None: a program puts them.

    The holder of a server's launch token has the server's rights, and the server is a program.
    """
    if user is None or user == LAUNCH_TOKEN:
        return None
    found = _found(operation, user)
    return UNKNOWN if found is None else f"{found.identifier}:{user}"


def of_gone(operation: Operation) -> str | None:
    """Returns the mark for a message that has left the store: if there are users, any of them may have put it."""
    return UNKNOWN if any(one.type == USER for one in operation.backend.select(ObjectRow)) else None


def mark_asked(operation: Operation, user: str, rows: Iterable[Row]) -> str | None:
    """Returns the mark for rows put on behalf of a user; None: none of them asks for reports. Raises: as `check`."""
    return check(operation, user, ((row[REPORT], row[REPLY_TO], row[REPLY_TO_MANAGER]) for row in rows))


def asks_for_reports(row: Row) -> bool:
    """Whether the queue manager may have to put a report about this message."""
    return bool(row[REPORT] & ANY_REPORT)


def check(operation: Operation, user: str, asked: Iterable[tuple[int, str, str]]) -> str | None:
    """Returns the mark of a user who puts messages, if some of them ask for reports.

    Args:
        asked: for each message its report options, and the queue and queue manager of replies.

    Raises: NotAuthorized 2035, if the user may not put on the destination of a report.
    """
    targets = {(queue, manager) for report, queue, manager in asked if report & ANY_REPORT and queue}
    mark = mark_of(operation, user) if targets else None
    for queue, manager in sorted(targets):
        if not may_put(operation, mark, queue, manager):
            name = operation.store.definitions.names.asked_of(queue, manager)
            where = f"queue {name}" if name else f"queue manager {manager}"
            raise NotAuthorized(
                f"user {user} may not put on {where}, the destination of the reports that the message asks for",
                user=user,
                authority="put",
                queue=name,
            )
    return mark


def may_put(operation: Operation, mark: str | None, name: str, manager: str = "") -> bool:
    """Whether messages that the queue manager makes on this mark's authority may be put there now."""
    if not mark:
        return True
    identifier, _, user = mark.partition(":")
    found = _found(operation, user) if user else None
    if found is None or not found.enabled or found.identifier != identifier:
        return False
    return may(found.roles, found.queues, "put", operation.store.definitions.names.asked_of(name, manager))
