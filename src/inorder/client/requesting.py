"""The part of a connection for requests and replies.

A request is a message that names a queue for its reply. The correlation id of the reply is the message id of the
request, so many requesters can share a reply queue and each gets its own replies. The descriptor of the request says
everything about the reply, so either end may be a program that does not use these calls:

    reply_to_queue            where the reply goes
    report                    `Report` bits select the reply's message id and correlation id; 0: as above
    priority, persistent      the reply has the same
    expiry                    the remaining time is the time to live of the reply

By default a request expires when its requester stops waiting, so no program works on an abandoned request, and late
replies expire too. Request and reply are outside any unit of work of the requester. Inside one, the request would only
become visible at the commit, after the wait for its reply.
"""

from __future__ import annotations

import logging
import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

from ..errors import (
    ArgumentError,
    CallerError,
    ConnectionBroken,
    NoMessageAvailable,
    QueueDeleted,
    Reason,
    UnknownQueue,
    bad_argument,
)
from ..model.fields import EXPIRY_SECONDS_MAX, EXPIRY_SECONDS_MIN
from ..model.message import NO_ID, Descriptor, Got, Message, MessageType, Report
from ..model.options import (
    FOREVER,
    GetOptions,
    Match,
    OpenKeywords,
    PutOptions,
    check_instance,
    check_whole,
)
from ..model.parameters import Seconds, is_integer
from ..rules.puts import PutResult
from ..rules.reports import ACTIONS, fields_of_report
from ..support.advice import unknown_name
from .by_name import by_name
from .defining import Defining, local_attributes
from .keywords import DEFAULT_PUT, MESSAGE_FIELDS, Data, PutCall, changed, split_put
from .queue import Queue
from .unit_of_work import UnitOfWork

if TYPE_CHECKING:
    from typing_extensions import Unpack

log = logging.getLogger("inorder.requesting")

P = ParamSpec("P")
T = TypeVar("T")
Answer = Callable[[Got], Data | None]

MODEL = "SYSTEM.DEFAULT.MODEL.QUEUE"  # as in MQ
GONE = (UnknownQueue, QueueDeleted)
TIMEOUT = Seconds(above=True, reason=Reason.WAIT_INTERVAL_ERROR, also={"inorder.FOREVER": FOREVER})


class Asked(NamedTuple):
    """A request that was put.

    Args:
        reply_to: the handle of the connection's own queue for replies, or the name of a queue.
        reply_queue: the name of that queue.
        match: selects the replies to this request.
    """

    queue: str
    message_id: bytes
    reply_to: Queue | str
    reply_queue: str
    match: Match


class Aside(NamedTuple):
    """The queue for requests that fail repeatedly, and the number of back outs that moves them there."""

    after: int
    queue: str


class Replies(Iterator[Got]):
    """An iterator over the replies to one request, as they arrive; made by `QueueManager.replies`.

    Attributes:
        message_id: the request's message id.
    """

    def __init__(self, manager: Requesting, asked: Asked, timeout: float, count: int | None) -> None:
        self.message_id = asked.message_id
        self._manager, self._asked, self._timeout, self._count = manager, asked, timeout, count
        self._came = 0
        self._ends_at = manager._now() + timeout

    def __next__(self) -> Got:
        return self.next_within(self.left)

    def next_within(self, seconds: float) -> Got:
        """Returns the next reply that arrives within `seconds`. Raises: as the end of the loop."""
        if self._came == self._count:
            raise StopIteration
        try:
            message = self._manager._next_reply(self._asked, seconds)
        except NoMessageAvailable:
            if self._count is None:
                raise StopIteration from None
            raise _no_reply(self._asked, self._timeout, self._came, self._count) from None
        self._came += 1
        return message

    @property
    def left(self) -> float:
        """Seconds left for more replies; 0: the loop is over."""
        return 0.0 if self._came == self._count else max(0.0, self._ends_at - self._manager._now())

    @property
    def reply_queue(self) -> str:
        """The name of the queue to which the replies go."""
        return self._asked.reply_queue


class Requesting(Defining):
    """The calls of `QueueManager` for requests and replies."""

    _reply_queues: dict[str, Queue]  # temporary queues of this connection, by the name of their model
    _name = ""

    # --- asking

    def request(self, queue: str, body: Data, *, timeout: float, **fields: Unpack[Descriptor]) -> Got:
        """Puts a request, waits for the reply, and returns it.

        Args:
            queue: the queue from which the other program gets requests.
            timeout: seconds to wait for the reply, more than 0; or `FOREVER`.
            **fields: fields of the message. `reply_to_queue` is a queue that any number of requesters may share, or a
                model for temporary queues. Without it the connection creates one temporary queue for all its requests,
                which is deleted with the connection. `expiry` defaults to `timeout`. `persistent` defaults to False
                if replies go to a temporary queue, which takes no persistent messages. `report` may have `Report`
                bits.

        Raises: NoMessageAvailable 2033, no reply in time; data: queue, message_id, reply_to_queue, timeout.
        UnknownQueue 2085, ObjectInUse 2042, about either queue. ArgumentError, about a field. As a put and a get.

        Put and get are outside any unit of work: the request is visible at once, and the reply is removed when the
        call returns.
        """
        TIMEOUT.check("timeout", timeout)
        asked = self._ask(queue, body, timeout, fields)
        try:
            return self._next_reply(asked, timeout)
        except NoMessageAvailable:
            raise _no_reply(asked, timeout, 0, 1) from None

    def replies(
        self, queue: str, body: Data, *, timeout: float, count: int | None = None, **fields: Unpack[Descriptor]
    ) -> Replies:
        """Puts a request that several programs may answer, and returns an iterator over the replies as they arrive.

        Args:
            timeout: seconds from now in which replies are accepted, or `FOREVER`.
            count: the number of replies after which the loop ends; None: it takes all replies that arrive in time.
            **fields: as in `request`.

        Raises: as `request`. In the loop: NoMessageAvailable 2033, fewer than `count` replies arrived in time; the
        loop has yielded those.
        """
        TIMEOUT.check("timeout", timeout)
        if count is not None:
            check_whole("count", count, 1)
        return Replies(self, self._ask(queue, body, timeout, fields), timeout, count)

    def _ask(self, queue: str, body: Data, timeout: float, fields: Any) -> Asked:
        for name in fields:
            if name not in MESSAGE_FIELDS:
                raise unknown_name("field", name, Descriptor.__annotations__, Reason.ARGUMENT_ERROR)
        message = body if isinstance(body, Message) else Message(body)
        reply_to = self._opened_for_replies(fields.get("reply_to_queue", message.reply_to_queue))
        reply_queue = reply_to.name if isinstance(reply_to, Queue) else reply_to
        defaults: dict[str, Any] = {"message_type": MessageType.REQUEST}
        if message.expiry is None:
            defaults["expiry"] = _life(timeout)
        if message.persistent is None and isinstance(reply_to, Queue):
            defaults["persistent"] = False
        message = message.replace(**{**defaults, **fields, "reply_to_queue": reply_queue})
        by_correlation = bool(message.report & Report.PASS_CORRELATION_ID)
        options = {
            "syncpoint": False,
            "new_message_id": "message_id" not in fields,
            "new_correlation_id": by_correlation and message.correlation_id == NO_ID,
        }
        put = self.put(queue, message, changed(DEFAULT_PUT, options))
        match = Match(correlation_id=put.correlation_id if by_correlation else put.message_id)
        return Asked(queue, put.message_id, reply_to, reply_queue, match)

    def _next_reply(self, asked: Asked, seconds: float) -> Got:
        options = GetOptions(match=asked.match, wait=seconds, syncpoint=False)
        if isinstance(asked.reply_to, Queue):
            return asked.reply_to.get(options)
        return self.get(asked.reply_to, options)

    def _now(self) -> float:
        """Returns the time of the clock that waits use."""
        return self._session.services.store.clock.monotonic()

    @by_name
    def _open_for_input(self, queue: str) -> None:
        handle = self._default(queue)
        with self._session:
            handle.internals.opened_for("input")

    def _opened_for_replies(self, name: str) -> Queue | str:
        """Opens the queue for replies: a temporary one of this connection, or an existing one, by its name."""
        model = name or MODEL
        known = self._reply_queues.get(model)
        if known is not None:
            if self._is_there(known):
                return known
            self._reply_queues.pop(model, known).close()
        if name and (name in self._queues or self.attributes(name).type != "model"):
            self._open_for_input(name)
            return name
        if self.attributes(model).definition_type != "temporary_dynamic":
            raise bad_argument(
                "reply_to_queue", model, "a queue, or a model that makes temporary queues", Reason.Q_TYPE_ERROR
            )
        return self._reply_queues.setdefault(model, self.open(model, input="as_queue"))

    def _is_there(self, replies: Queue) -> bool:
        """Whether a temporary queue still exists: a store elsewhere may have lost the connection, and the queue."""
        try:
            with self._session:
                self._store.check_handle(replies.internals.number)
        except (QueueDeleted, ConnectionBroken):
            return False
        return True

    # --- answering

    def reply(
        self, request: Message, body: Data, options: PutOptions | None = None, **keywords: Unpack[PutCall]
    ) -> PutResult:
        """Puts the reply to a request on the queue that the request names.

        Args:
            request: the request as it was got.
            body: the data, or a whole message.
            options: the options of the put; or give them by keyword.
            **keywords: fields of the message, and options. Defaults: the `report` bits of the request select
                `message_id` and `correlation_id`; priority and persistence are the request's, but not persistent if
                the queue takes no persistent messages; `expiry` is the request's remaining time.

        Raises: CallerError 2027, the request names no queue for a reply. WrongQueueType 2087 and as `open`, no
        transmission queue leads to the queue manager that it names. UnknownQueue 2085, QueueDeleted 2052, the
        requester has ended. As a put.

        In a unit of work the reply is invisible before the commit. If the same unit got the request, either the request
        is answered exactly once or it returns to its queue.
        """
        check_instance("request", request, Message, "a message from a get")
        if not request.reply_to_queue:
            raise CallerError(
                "the message does not ask for a reply: it names no queue for one", reason=Reason.MISSING_REPLY_TO_Q
            )
        there = request.reply_to_queue_manager
        manager = "" if there == self._own_name() else there
        fields, options = split_put(keywords, options)
        message = body if isinstance(body, Message) else Message(body)
        is_said = "persistent" in fields or message.persistent is not None
        message = message.replace(**{**_fields_of_reply(request, message), **fields})
        try:
            return self.put(request.reply_to_queue, message, options, manager=manager)
        except ArgumentError as error:
            if is_said or error.reason is not Reason.PERSISTENT_NOT_ALLOWED:
                raise
        return self.put(request.reply_to_queue, message.replace(persistent=False), options, manager=manager)

    def report(
        self,
        message: Message,
        feedback: int,
        /,
        body: Data = b"",
        options: PutOptions | None = None,
        **keywords: Unpack[PutCall],
    ) -> PutResult | None:
        """Puts a report about a message that was got, for example with `Feedback.PAN` (success) or `Feedback.NAN`.

        Args:
            message: the message as it was got.
            feedback: PAN, NAN, or a number of your own, from 65536.
            body: the data of the report.
            options: the options of the put; or give them by keyword.
            **keywords: fields of the report, and options. The defaults follow the `report` bits of the message, as
                in reports of the queue manager.

        Returns: the result of the put; None: the message does not ask for this PAN or NAN, and nothing was put.

        Raises: as `reply`.

        In a unit of work the report is invisible before the commit. If the same unit got the message, the report is
        sent if and only if the message is processed.
        """
        check_instance("message", message, Message, "a message from a get")
        if not is_integer(feedback):
            raise bad_argument("feedback", feedback, "a Feedback, or an integer", Reason.FEEDBACK_ERROR)
        if feedback in ACTIONS and not message.report & ACTIONS[feedback]:
            return None
        left = math.inf if message.expiry is None else _life(message.expiry)
        said: dict[str, Any] = {**fields_of_report(message, left), "feedback": feedback, **keywords}
        return self.reply(message, body, options, **said)

    def _own_name(self) -> str:
        """Returns the name of the queue manager, which does not change while it is open."""
        if not self._name:
            with self._session:
                self._name = self._session.store.manager().name
        return self._name

    def serve(self, queue: str, answer: Answer, *, wait: float = FOREVER) -> int:
        """Answers requests, one after another; one unit of work gets each request and puts its reply.

        Args:
            answer: a function that takes the request and returns the body of the reply, or a message; None: no reply.
                Its own puts and gets through this connection are part of the same unit of work.
            wait: the seconds without a request after which the loop ends, from 0; or `FOREVER`.

        Returns: the number of requests.

        If `answer` raises, the request is backed out and the loop ends. If the queue has a `backout_threshold` and a
        `backout_requeue_queue`, the error is logged and the loop goes on: the request returns, and after that many
        back outs it is put on that queue. If the requester has ended, no reply is put.

        Raises: CallerError 2128, the connection has a unit of work. As a get, a reply, and `answer`.
        """
        if not callable(answer):
            raise bad_argument("answer", answer, "a function that takes a request", Reason.OPTIONS_ERROR)
        served = 0
        while self._serve_one(queue, answer, wait):
            served += 1
        return served

    def _serve_one(self, queue: str, answer: Answer, wait: float) -> bool:
        """Serves the next request; returns whether one arrived."""
        with self.unit_of_work() as unit:
            try:
                request = self.get(queue, wait=wait)
            except NoMessageAvailable:
                return False
            aside = self._place_aside(queue) if request.backout_count else None
            if aside is not None and request.backout_count >= aside.after:
                self.put(aside.queue, request, context="set_all")
                return True
            try:
                self._answer(request, answer)
            except Exception:
                if self._place_aside(queue) is None:
                    raise
                log.exception("a request on %s failed and will be tried again: %s", queue, request.message_id.hex())
                unit.back_out()
        return True

    def _answer(self, request: Got, answer: Answer) -> None:
        body = answer(request)
        if body is None:
            return
        try:
            self.reply(request, body)
        except GONE:
            log.info("no program waits for the reply to %s: %s", request.message_id.hex(), request.reply_to_queue)

    def _place_aside(self, queue: str) -> Aside | None:
        """Returns the queue for requests that fail repeatedly; None: the queue has none (R6.9)."""
        found = local_attributes(self, queue)
        if not (found.backout_threshold and found.backout_requeue_queue):
            return None
        return Aside(found.backout_threshold, found.backout_requeue_queue)

    # --- provided by `QueueManager`

    @abstractmethod
    def open(
        self, name: str, *, manager: str = "", dynamic_name: str = "*", **options: Unpack[OpenKeywords]
    ) -> Queue: ...
    @abstractmethod
    def unit_of_work(self) -> UnitOfWork: ...


def _fields_of_reply(request: Message, reply: Message) -> dict[str, Any]:
    """Returns the reply's fields that follow from the request (mq-semantics 1.2); fields of the reply win."""
    by_correlation = request.report & Report.PASS_CORRELATION_ID
    said: dict[str, Any] = {
        "message_type": MessageType.REPLY,
        "correlation_id": request.correlation_id if by_correlation else request.message_id,
    }
    if request.report & Report.PASS_MESSAGE_ID:
        said["message_id"] = request.message_id
    if request.report & Report.PASS_DISCARD_AND_EXPIRY:
        said["report"] = request.report & Report.DISCARD_MESSAGE | reply.report
    if reply.priority is None:
        said["priority"] = request.priority
    if reply.persistent is None:
        said["persistent"] = request.persistent
    if reply.expiry is None and request.expiry is not None:
        said["expiry"] = _life(request.expiry)
    return said


def _life(seconds: float) -> float:
    """Returns a time as an expiry, within its bounds."""
    return math.inf if seconds == math.inf else min(EXPIRY_SECONDS_MAX, max(EXPIRY_SECONDS_MIN, seconds))


def _no_reply(asked: Asked, timeout: float, came: int, wanted: int) -> NoMessageAvailable:
    few = f"{came:,} of {wanted:,} replies" if wanted > 1 else "no reply"
    return NoMessageAvailable(
        f"{few} within {timeout:,} s to the request {asked.message_id.hex()} on {asked.queue}",
        queue=asked.queue,
        message_id=asked.message_id,
        reply_to_queue=asked.reply_queue,
        timeout=timeout,
    )
