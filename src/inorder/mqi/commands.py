"""Requests in PCF that programs put: they are answered in the same call, or at the commit of their unit of work.

Rules: M-14.
"""

from __future__ import annotations

import logging
from typing import Final

from ..model.fields import UniqueId
from ..mq.words import COMMAND_QUEUE
from .connections import MqiConnection

log = logging.getLogger("inorder.mqi")

NAME: Final = COMMAND_QUEUE.ljust(48).encode()


def after_put(connection: MqiConnection, resolved: bytes, request: UniqueId, *, in_unit: bool) -> None:
    """Answers a message that was put, if it is a request outside a unit of work.

    Args:
        resolved: the names of the queue and queue manager of the put, filled with blanks.
    """
    if resolved[: len(NAME)] != NAME or resolved[len(NAME) :].rstrip().decode() != connection.own_name:
        return
    if in_unit:
        connection.requests.append(request)
    else:
        _answer(connection, [request])


def after_commit(connection: MqiConnection) -> None:
    """Answers the requests of the unit of work."""
    if connection.requests:
        requests, connection.requests = connection.requests, []
        _answer(connection, requests)


def _answer(connection: MqiConnection, requests: list[UniqueId]) -> None:
    from .pcf.serving import answer_requests, rights_of  # noqa: PLC0415 - few programs put commands

    try:
        may = rights_of(connection.manager, connection.session.program.user)
        answer_requests(connection.manager, requests, may)
    except Exception:  # the put has succeeded, and its request waits for `inorder mqi serve-commands`
        log.exception("a request on %s was not answered", COMMAND_QUEUE)
