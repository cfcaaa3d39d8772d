"""The command server: answers the requests on SYSTEM.ADMIN.COMMAND.QUEUE.

One unit of work gets a request and puts its replies. A command that changes something is not part of that unit, so
before it runs, a mark for the request is committed to another queue, and the unit removes the mark. A server that dies
in between leaves the request and its mark: the next one finds both, does not run the command again, and answers with
MQRC_CALL_INTERRUPTED, because it is unknown whether it was done. So no command is done twice, and none is lost.

Rules: *mqi* M-14.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator
from typing import Any, Final

from ...client.manager import QueueManager
from ...client.programs import user_name
from ...errors import (
    CallerError,
    InorderError,
    NoMessageAvailable,
    NotAuthorized,
    QueueCondition,
    StoreError,
    UnknownQueue,
)
from ...model.fields import UniqueId
from ...model.message import Got, Message
from ...model.options import Match
from ...mq.words import COMMAND_QUEUE
from ..conversion import INTEGERS, NORMAL, UNICODE, character_set
from .answering import May, PcfCommand, everything
from .coding import Coding, PcfFault
from .replies import failure, reason_of

log = logging.getLogger("inorder.mqi")

BEGUN_QUEUE: Final = "SYSTEM.ADMIN.COMMAND.BEGUN"
FORMAT: Final = "MQADMIN"
INTERRUPTED, UNEXPECTED = "MQRC_CALL_INTERRUPTED", "MQRC_UNEXPECTED_ERROR"
ID_BYTES: Final = 24
LOOK_SECONDS: Final = 1.0


def answer_requests(manager: QueueManager, requests: list[UniqueId], may: May) -> None:
    """Answers requests that a program has just put, through separate connections.

    A request that this program may not get, or that another server has got, is left to it.
    """
    with manager.connect() as serving, manager.connect() as running:
        server = CommandServer(serving, running)
        for each in requests:
            try:
                server.answer_next(Match(uid=each), may=may)
            except NotAuthorized:
                log.debug("the request %s waits for `inorder mqi serve-commands`", each)


def serve_commands(
    manager: QueueManager, *, ends: Callable[[], bool] = lambda: False, until_empty: bool = False
) -> Iterator[None]:
    """Answers all requests, each with the rights of the user in its context; yields after each.

    Args:
        ends: asked every second whether to end.
        until_empty: end when no request is left.

    Raises: UnknownQueue 2085, there is no command queue; as a get.
    """
    with manager.connect() as serving, manager.connect() as running:
        server = CommandServer(serving, running)
        while not ends():
            if server.answer_next(Match(), wait=0 if until_empty else LOOK_SECONDS):
                yield
            elif until_empty:
                return


class CommandServer:
    """Answers requests, one after another.

    Args:
        serving: the connection that gets requests and puts replies.
        running: the connection that runs commands.
    """

    def __init__(self, serving: QueueManager, running: QueueManager) -> None:
        self._serving, self._running = serving, running
        self._manager_ccsid = running.admin.manager_attributes().coded_character_set_id

    def answer_next(self, match: Match, *, wait: float = 0, may: May | None = None) -> bool:
        """Answers the next request that matches; returns whether there was one.

        Args:
            may: the rights of the user; None: the rights of the user who put the request.
        """
        with self._serving.unit_of_work():
            try:
                request = self._serving.get(COMMAND_QUEUE, match=match, wait=wait)
            except NoMessageAvailable:
                return False
            for body in self._replies(request, may):
                self._reply(request, body)
        return True

    def _replies(self, request: Got, may: May | None) -> list[bytes]:
        texts = character_set(request.coded_character_set_id or self._manager_ccsid, request.encoding)
        coding = Coding(">" if request.encoding & INTEGERS == NORMAL else "<", texts or UNICODE)
        call = PcfCommand(bytes(request.body), coding, lambda ccsid: character_set(ccsid, request.encoding))
        if request.format != FORMAT:
            call.fault = PcfFault("MQRCCF_MD_FORMAT_ERROR")
        elif texts is None:
            call.fault = PcfFault("MQRCCF_CCSID_ERROR")
        try:
            rights = rights_of(self._running, request.user_identifier) if may is None else may
            return self._run_once(request, call, rights) if call.changes else call.answer(self._running, rights)
        except StoreError:
            raise
        except InorderError as error:
            return failure(call.header, PcfFault(reason_of(error.reason, "")), coding)
        except Exception:
            log.exception("a command in PCF failed")
            return failure(call.header, PcfFault(UNEXPECTED), coding)

    def _run_once(self, request: Got, call: PcfCommand, may: May) -> list[bytes]:
        """Runs a command that changes something, unless a server has begun it before."""
        mark = mark_of(request)
        if self._take(mark):
            log.warning("a server ended while it ran the command in %s", request.message_id.hex())
            return failure(call.header, PcfFault(INTERRUPTED), call.coding)
        self._begin(request, mark)
        replies = call.answer(self._running, may)
        self._take(mark)
        return replies

    def _begin(self, request: Got, mark: bytes) -> None:
        fields: Any = {"correlation_id": mark, "persistent": request.persistent, "expiry": request.expiry}
        try:
            self._running.put(BEGUN_QUEUE, b"", **fields)
        except UnknownQueue:
            make_begun_queue(self._running)
            self._running.put(BEGUN_QUEUE, b"", **fields)

    def _take(self, mark: bytes) -> bool:
        """Removes a mark in the unit of work; returns whether there was one."""
        try:
            self._serving.get(BEGUN_QUEUE, match=Match(correlation_id=mark))
        except (NoMessageAvailable, UnknownQueue):
            return False
        return True

    def _reply(self, request: Got, body: bytes) -> None:
        if not request.reply_to_queue:
            return
        reply = Message(
            body, format=FORMAT, encoding=request.encoding, coded_character_set_id=request.coded_character_set_id
        )
        try:
            self._serving.reply(request, reply)
        except (QueueCondition, CallerError) as error:
            log.warning("a reply to %s is lost: %s", request.message_id.hex(), error)


def make_begun_queue(manager: QueueManager) -> None:
    """Creates the queue for marks, unless it exists. A mark lives as long as its request, also through a restart."""
    manager.create_queue(BEGUN_QUEUE, exist_ok=True, nonpersistent_class="high")


def mark_of(request: Got) -> bytes:
    """The correlation id of the mark for a request."""
    assert request.uid is not None, "a message that was got has a unique id"
    text = f"{request.uid.origin}:{request.uid.number}"
    return hashlib.blake2b(text.encode(), digest_size=ID_BYTES).digest()


def rights_of(manager: QueueManager, user: str) -> May:
    """The rights of the user in a message's context.

    Without users in the store every program may do everything. With users, a user may do everything that the user's
    roles and grants say, and this program's own user everything; others may do nothing.
    """
    try:
        users = {each.name: each for each in manager.accounts.users()}
    except CallerError:  # the store is elsewhere, and its server asks for the authorities itself
        return everything
    if user in users:
        return users[user].may
    if not users or user == user_name():
        return everything
    return lambda authority, queue: False
