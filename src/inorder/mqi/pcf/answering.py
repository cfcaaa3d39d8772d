"""Answers requests in PCF: bytes in, the bytes of the replies out.

Rules: *mqi* M-14.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...client.manager import QueueManager
from ...errors import InorderError, NotAuthorized, StoreError, UnknownObject
from ...mq.mqsc import Answer, MqscSyntaxError, columns, commands_in, parse, run_command
from ...mq.mqsc.authorities import need_of, seen
from ...mq.mqsc.commands import Display
from ...mq.mqsc.lines import Source
from ...mq.words import words_of
from ...rules.authorities import Authority
from ..conversion import CharacterSet
from .coding import Coding, Header, PcfFault, PcfParameter, no_texts, parameter, read
from .replies import failure, fault_of, length_of, messages, reason_of, rows_in
from .requests import ESCAPE, NAME_LISTS, Request, check_header, number, numbers_of, read_request

May = Callable[[Authority, str], bool]
"""Whether the user has an authority on a queue, or on the queue manager, which is ''."""

LISTED: Final = {
    "queue": ("QUEUE", "MQCACF_Q_NAMES", "TYPE", "MQIACF_Q_TYPES"),
    "channel": ("CHANNEL", "MQCACH_CHANNEL_NAMES", "CHLTYPE", "MQIACH_CHANNEL_TYPES"),
    "process": ("PROCESS", "MQCACF_PROCESS_NAMES", "", ""),
}
"""The parameters of lists of names: of which keyword, and the types of the objects."""


def everything(authority: Authority, queue: str) -> bool:
    """A program that opens the store itself may do everything."""
    return True


class PcfCommand:
    """A request that was read, and its answer.

    Attributes:
        changes: whether it may change something; the others only look, and may be repeated.
    """

    def __init__(self, data: bytes, coding: Coding, texts_of: Callable[[int], CharacterSet | None] = no_texts) -> None:
        self.coding = coding
        self.header = Header(0, 1, 0)
        self.fault: PcfFault | None = None
        self.request: Request | None = None
        self.parameters: tuple[PcfParameter, ...] = ()
        try:
            self.header, self.parameters = read(data, coding, texts_of)
            check_header(self.header)
            if self.header.command != ESCAPE:
                self.request = read_request(self.header, self.parameters)
        except PcfFault as fault:
            self.header = fault.header or self.header
            self.fault = fault

    @property
    def changes(self) -> bool:
        """Whether it may change something; requests that only look may be repeated."""
        if self.fault is not None:
            return False
        return self.request is None or self.request.verb not in ("DISPLAY", "PING")

    def answer(self, qm: QueueManager, may: May = everything) -> list[bytes]:
        """Runs the command; returns the replies, at least one. Raises: StoreError, the store is in trouble."""
        if self.fault is not None:
            return failure(self.header, self.fault, self.coding)
        try:
            if self.request is None:
                return self._escape(qm, may)
            return messages(self.header, self._run(qm, may, self.request), self.coding)
        except PcfFault as fault:
            return failure(self.header, fault, self.coding)
        except StoreError:
            raise
        except InorderError as error:
            kind = self.request.kind if self.request else ""
            return failure(self.header, PcfFault(reason_of(error.reason, kind)), self.coding)

    def _run(self, qm: QueueManager, may: May, request: Request) -> list[list[bytes]]:
        if request.kind == "queue" and request.verb == "CLEAR":
            request.type = "QLOCAL"
        if request.kind == "queue" and request.verb == "DELETE" and request.type is None:
            there = words_of("queue")["TYPE"]
            assert there.attribute is not None
            kinds = dict(zip(there.attribute.choices, there.attribute.mqsc_words, strict=True))
            request.type = kinds[qm.attributes(request.name).type]
        answer = run_as(request.source(), qm, may)
        if isinstance(answer.error, StoreError) and "channel" not in answer.error.data:
            raise answer.error
        is_list = self.header.command in NAME_LISTS
        if is_list and isinstance(answer.error, UnknownObject) and request.name.endswith("*"):
            return [self._names(request, answer)]
        if answer.failed:
            raise fault_of(request, answer)
        if is_list:
            return [self._names(request, answer)]
        if request.verb != "DISPLAY":
            return [[]]
        manager = qm.admin.manager_attributes().name if request.kind == "conn" else ""
        return rows_in(request.kind, answer.rows, manager, self.coding)

    def _names(self, request: Request, answer: Answer) -> list[bytes]:
        """The names of objects, and their types, as lists."""
        keyword, names, of, types = LISTED[request.kind]
        length = length_of(words_of(request.kind)[keyword])
        found = [parameter(number(names), [str(row[keyword]).ljust(length) for row in answer.rows], self.coding)]
        if of and answer.rows:
            kinds = numbers_of(words_of(request.kind)[of])
            found.append(parameter(number(types), [kinds[str(row[of])] for row in answer.rows], self.coding))
        return found

    def _escape(self, qm: QueueManager, may: May) -> list[bytes]:
        """Runs a command in MQSC, and answers with the lines of runmqsc, each in a message."""
        given = {each.number: each for each in self.parameters}
        kind, text = given.get(number("MQIACF_ESCAPE_TYPE")), given.get(number("MQCACF_ESCAPE_TEXT"))
        if kind is None or text is None or not isinstance(text.value, str):
            raise PcfFault("MQRCCF_PARM_COUNT_TOO_SMALL")
        if kind.value != number("MQET_MQSC"):
            raise PcfFault("MQRCCF_ESCAPE_TYPE_ERROR", kind.number)
        lines: list[str] = []
        reason = 0
        for source in commands_in(text.value.splitlines()):
            answer = run_as(source, qm, may)
            reason = reason or answer.reason
            lines.append(f"{answer.number}: {answer.text}" if answer.number else answer.text)
            for row in answer.rows:
                lines += columns(row)
        replies = [
            [parameter(kind.number, kind.value, self.coding), parameter(text.number, line, self.coding)]
            for line in lines or [""]
        ]
        return messages(self.header, replies, self.coding, reason=reason)


def run_as(source: Source, qm: QueueManager, may: May) -> Answer:
    """Runs a command for a user; a DISPLAY of several queues shows those that the user may see.

    Raises: NotAuthorized 2035.
    """
    try:
        command = parse(source)
    except MqscSyntaxError:
        return run_command(source, qm)
    need = need_of(command)
    if need.authority is not None and not need.is_each and not may(need.authority, need.queue):
        where = f"queue {need.queue}" if need.queue else "the queue manager"
        raise NotAuthorized(f"the user may not {need.authority} on {where}", authority=need.authority, queue=need.queue)
    answer = run_command(source, qm)
    if not need.is_each or not isinstance(command, Display):
        return answer
    return seen(command, answer, lambda queue: may("inquire", queue))
