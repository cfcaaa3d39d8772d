"""An actor that uses the MQI: it packs structures, calls the verbs, and reads only the structures.

Each call uses another version of the structures, among those that have the fields that the step needs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from inorder.client.manager import QueueManager
from inorder.errors import InorderError, Reason
from inorder.model.fields import GIVEN
from inorder.mqi import constants as mq
from inorder.mqi import verbs
from inorder.mqi.connections import MqiConnection, add
from inorder.mqi.layouts import DLH, GMO, MD, OD, PMO, XQH

from .actors import FEEDBACKS, FLAGS, PAD, NameTable, StepOutcome, number, report_options, translate_error, yes
from .bulk import BulkActor
from .language import HERE, Scenario, ScenarioStep
from .sites import Site

FIELDS = frozenset(
    "report message-type expiry feedback encoding ccsid format priority persistent id correlation reply-to "
    "reply-to-queue-manager group seq offset original-length".split()
)
MATCHES: Mapping[str, tuple[str, int, int]] = {
    "match-id": ("MsgId", mq.MQMO_MATCH_MSG_ID, 1),
    "match-correlation": ("CorrelId", mq.MQMO_MATCH_CORREL_ID, 1),
    "match-group": ("GroupId", mq.MQMO_MATCH_GROUP_ID, 2),
    "match-seq": ("MsgSeqNumber", mq.MQMO_MATCH_MSG_SEQ_NUMBER, 2),
    "match-offset": ("Offset", mq.MQMO_MATCH_OFFSET, 2),
}
READING: Mapping[str, int] = {
    "logical": mq.MQGMO_LOGICAL_ORDER,
    "complete": mq.MQGMO_COMPLETE_MSG,
    "all-messages": mq.MQGMO_ALL_MSGS_AVAILABLE,
    "all-segments": mq.MQGMO_ALL_SEGMENTS_AVAILABLE,
    "accept-truncated": mq.MQGMO_ACCEPT_TRUNCATED_MSG,
    "syncpoint": mq.MQGMO_SYNCPOINT,
    "syncpoint-if-persistent": mq.MQGMO_SYNCPOINT_IF_PERSISTENT,
    "under-cursor": mq.MQGMO_MSG_UNDER_CURSOR,
    "lock": mq.MQGMO_LOCK,
    "mark-handle": mq.MQGMO_MARK_BROWSE_HANDLE,
    "mark-co-op": mq.MQGMO_MARK_BROWSE_CO_OP,
    "unmarked": mq.MQGMO_UNMARKED_BROWSE_MSG,
}
BROWSING: Mapping[str, int] = {
    "first": mq.MQGMO_BROWSE_FIRST,
    "next": mq.MQGMO_BROWSE_NEXT,
    "cursor": mq.MQGMO_BROWSE_MSG_UNDER_CURSOR,
}
NEEDS: Mapping[str, int] = {
    "put": mq.MQOO_OUTPUT,
    "get": mq.MQOO_INPUT_AS_Q_DEF,
    "get-all": mq.MQOO_INPUT_AS_Q_DEF,
    "browse": mq.MQOO_BROWSE,
    "browse-all": mq.MQOO_BROWSE,
    "unlock": mq.MQOO_BROWSE,
}
# Only a coordinator prepares a unit of work: in MQ this is part of XA, not of the MQI, so the actor calls Python's
# prepare.
SPOKEN = frozenset({*NEEDS, "commit", "backout", "prepare", "disconnect", "crash", "close", "open", "resumes"})
SAID = frozenset("id group seq offset flags warning segment backouts priority length original-length feedback".split())
KEYS = FIELDS | MATCHES.keys() | {"on", "length", "wait", "buffer", "manager"}
WORDS = READING.keys() | FLAGS.keys() | {"exclusive", "co-op"}
BUFFER = 1 << 20
INPUTS = mq.MQOO_INPUT_AS_Q_DEF | mq.MQOO_INPUT_SHARED | mq.MQOO_INPUT_EXCLUSIVE
GROUPED = mq.MQGMO_LOGICAL_ORDER | mq.MQGMO_COMPLETE_MSG | mq.MQGMO_ALL_MSGS_AVAILABLE | mq.MQGMO_ALL_SEGMENTS_AVAILABLE
STATUSES = {b" ": "no", b"G": "in", b"S": "in", b"L": "last"}


def is_spoken(scenario: Scenario) -> bool:
    """Whether the MQI can express every step of the scenario's actors and every expected value."""
    return all(step.actor == HERE or _is_spoken(step) for step in scenario.steps)


def _is_spoken(step: ScenarioStep) -> bool:
    expected = step.expected
    return (
        step.verb in SPOKEN
        and not (step.verb == "unlock" and step.names)
        and step.flags <= WORDS
        and step.keys.keys() <= KEYS
        and expected.facts.keys() <= (SAID if expected.kind in ("ok", "message") else frozenset())
        and expected.kind != "pending"
        and (expected.kind != "error" or expected.value == "" or expected.value.isdigit())
        and (expected.kind != "list" or expected.value.removeprefix("error=").isdigit() or not expected.value)
    )


@dataclass(frozen=True, slots=True)
class ReadMessage:
    """A message as the structures of a get describe it."""

    body: bytes
    length: int
    descriptor: Any
    group_status: str
    segment_status: str
    group_id: bytes
    sequence_number: int
    offset: int
    uid: None = None

    def with_values(self, **values: Any) -> ReadMessage:
        return replace(self, **values)


class MqiError(Exception):
    """A call failed with this reason."""

    def __init__(self, reason: int) -> None:
        super().__init__(reason)
        self.reason = reason


class MqiActor(BulkActor):
    """A connection (hconn) and its object handles."""

    def __init__(self, connection: int, manager: QueueManager, table: NameTable, steps: list[ScenarioStep]) -> None:
        super().__init__(manager, table)
        self._connection, self._steps = connection, steps
        self._objects: dict[tuple[str, str], tuple[int, int]] = {}  # with the options of the open
        self._is_in_pieces = any(step.flags & FLAGS.keys() for step in steps)
        self._calls = 0

    def act(self, handle: str, step: ScenarioStep) -> StepOutcome:
        self._calls += step.line
        try:
            done: StepOutcome = getattr(self, f"_{step.verb.replace('-', '_')}")(handle, step)
        except MqiError as error:
            if error.reason == Reason.NO_MSG_AVAILABLE:
                return StepOutcome("none")
            return StepOutcome("error", str(error.reason), (_reason_name(error.reason),))
        except InorderError as error:  # from a prepare
            return translate_error(error)
        return done

    def _version(self, least: int, newest: int) -> int:
        """A version of a structure, from the least that the step needs."""
        return least + self._calls % (newest - least + 1)

    # --- handles

    def _object(self, handle: str, step: ScenarioStep) -> int:
        """The handle for a step, opened for the later steps, too, if the queue can be opened for all of them."""
        key = handle, self._table.queue(step.keys.get("on"))
        options, need = self._objects.get(key, (0, 0))[1], NEEDS[step.verb]
        if not options & need and not (need & INPUTS and options & INPUTS):
            options = self._needs(step, self._steps.index(step))
            try:
                self._objects[key] = self._opened(step, options), options
            except MqiError as error:
                if error.reason != Reason.OPTION_NOT_VALID_FOR_TYPE or options == need:
                    raise
                self._objects[key] = self._opened(step, need), need
        return self._objects[key][0]

    def _needs(self, step: ScenarioStep, at: int) -> int:
        """The open options for the steps of this handle from `at` on, until it is closed."""
        where, options = step.keys.get("on", self._table.first_queue), 0
        for later in self._steps[at:]:
            same_actor = later.actor.partition(".")[0] == step.actor.partition(".")[0]
            if same_actor and later.verb in ("crash", "disconnect"):
                break
            if later.actor == step.actor and later.keys.get("on", self._table.first_queue) == where:
                if later.verb in ("close", "open"):
                    break
                options |= NEEDS.get(later.verb, 0)
                options |= mq.MQOO_BROWSE if "under-cursor" in later.flags else 0
        return options

    def _opened(self, step: ScenarioStep, options: int) -> int:
        name, manager = self._table.queue(step.keys.get("on")), step.keys.get("manager", "")
        descriptor = OD.new(self._version(1, 4), ObjectName=name.encode(), ObjectQMgrName=manager.encode())
        found, completion, reason = verbs.mqopen(self._connection, descriptor, options)
        _check(completion, reason)
        return found

    def _open(self, handle: str, step: ScenarioStep) -> StepOutcome:
        options = self._needs(step, self._steps.index(step) + 1)
        if "co-op" in step.flags:
            options |= mq.MQOO_BROWSE | mq.MQOO_CO_OP
        else:
            exclusive = "exclusive" in step.flags
            options = options & ~INPUTS | (mq.MQOO_INPUT_EXCLUSIVE if exclusive else mq.MQOO_INPUT_SHARED)
        self._objects[handle, self._table.queue(step.keys.get("on"))] = self._opened(step, options), options
        return StepOutcome("ok")

    def _close(self, handle: str, step: ScenarioStep) -> StepOutcome:
        found, _ = self._objects.pop((handle, self._table.queue(step.keys.get("on"))))
        completion, reason = verbs.mqclose(self._connection, found, mq.MQCO_NONE)
        return StepOutcome("ok", facts={"warning": _check(completion, reason)})

    # --- puts

    def _put(self, handle: str, step: ScenarioStep) -> StepOutcome:
        name = step.names[0]
        body = name.encode("ascii")
        length = number(step.keys.get("length", str(len(body))))
        fields = self._descriptor_fields(step)
        options = mq.MQPMO_LOGICAL_ORDER if "logical" in step.flags else 0
        options |= mq.MQPMO_SYNCPOINT if "syncpoint" in step.flags else 0
        descriptor = MD.new(self._version(2 if self._needs_groups(step, fields) else 1, 2), **fields)
        put_options = PMO.new(self._version(1, 3), Options=options)
        data = body.ljust(length, PAD)
        found = self._object(handle, step)
        completion, reason = verbs.mqput(self._connection, found, descriptor, put_options, data)
        warning = _check(completion, reason)
        put = MD.read(descriptor)
        group = put.GroupId, put.MsgSeqNumber, put.Offset
        self._table.puts.setdefault(group, []).append((name, length))
        facts = {"id": put.MsgId, "group": put.GroupId, "seq": put.MsgSeqNumber, "offset": put.Offset}
        return StepOutcome("ok", facts=facts | {"flags": put.MsgFlags, "warning": warning})

    def _needs_groups(self, step: ScenarioStep, fields: Mapping[str, Any]) -> bool:
        asked = {"GroupId", "MsgSeqNumber", "Offset", "OriginalLength"} & fields.keys()
        return bool(asked or fields["MsgFlags"] or "logical" in step.flags or step.expected.facts)

    def _descriptor_fields(self, step: ScenarioStep) -> dict[str, Any]:
        fields: dict[str, Any] = {"MsgFlags": sum(FLAGS[flag] for flag in step.flags if flag in FLAGS)}
        for name, about in GIVEN.items():
            if about.word in step.keys:
                fields[about.mq_name] = self._mq_value(name, step.keys[about.word])
        return fields

    def _mq_value(self, name: str, text: str) -> Any:
        match name:
            case "persistent":
                return int(yes(name, text))
            case "expiry":
                return round(float(text) * 10)
            case "report":
                return report_options(text)
            case "message_id" | "correlation_id" | "group_id":
                return self._table.id_of(text)
            case "format" | "reply_to_queue" | "reply_to_queue_manager":
                return text.encode()
        return number(text)

    # --- gets and browses

    def _get(self, handle: str, step: ScenarioStep) -> StepOutcome:
        return self._read(handle, step, 0)[1]

    def _browse(self, handle: str, step: ScenarioStep) -> StepOutcome:
        return self._read(handle, step, BROWSING[step.names[0]])[1]

    def _get_all(self, handle: str, step: ScenarioStep) -> StepOutcome:
        return self._all(lambda: self._read(handle, step, 0))

    def _browse_all(self, handle: str, step: ScenarioStep) -> StepOutcome:
        positions = iter(["first"])
        return self._all(lambda: self._read(handle, step, BROWSING[next(positions, "next")]))

    def _all(self, read: Callable[[], tuple[ReadMessage, StepOutcome]]) -> StepOutcome:
        names: list[str] = []
        while True:
            try:
                names.append(self._table.name_of(read()[0]))  # type: ignore[arg-type]
            except MqiError as error:
                if error.reason == Reason.NO_MSG_AVAILABLE:
                    return StepOutcome("list", "", tuple(names))
                reason = str(error.reason), _reason_name(error.reason)
                return StepOutcome("list", f"error={reason[0]}", tuple(names), ending=reason)

    def _unlock(self, handle: str, step: ScenarioStep) -> StepOutcome:
        options = GMO.new(self._version(1, 4), Options=mq.MQGMO_UNLOCK)
        found = self._object(handle, step)
        _, completion, reason = verbs.mqget(self._connection, found, MD.new(), options, bytearray())
        return StepOutcome("ok", facts={"warning": _check(completion, reason)})

    def _read(self, handle: str, step: ScenarioStep, browse: int) -> tuple[ReadMessage, StepOutcome]:
        self._calls += 1
        options = browse | sum(READING[flag] for flag in step.flags)
        wait = step.keys.get("wait")
        if wait is not None:
            options |= mq.MQGMO_WAIT
        matches, wanted, least = 0, {}, 1
        for key, (field, option, version) in MATCHES.items():
            if key in step.keys:
                text = step.keys[key]
                wanted[field] = number(text) if field in ("MsgSeqNumber", "Offset") else self._table.id_of(text)
                matches |= option
                least = max(least, version)
        status = {"group", "segment", "seq", "offset", "flags", "original-length"} & step.expected.facts.keys()
        grouped = options & GROUPED
        asked = self._version(2 if least == 2 or status or grouped or self._is_in_pieces else 1, 4)
        interval = 0 if wait is None else -1 if wait == "forever" else round(float(wait) * 1000)
        get_options = GMO.new(asked, Options=options, WaitInterval=interval, MatchOptions=matches)
        descriptor = MD.new(2, **wanted)
        buffer = bytearray(number(step.keys["buffer"]) if "buffer" in step.keys else BUFFER)
        found = self._object(handle, step)
        length, completion, reason = verbs.mqget(self._connection, found, descriptor, get_options, buffer)
        warning = _check(completion, reason)
        got, gave = MD.read(descriptor), GMO.read(get_options)
        body = _without_headers(got.Format, bytes(buffer[:length]))
        length -= min(length, len(buffer)) - len(body)
        message = ReadMessage(
            body, length, got, STATUSES[gave.GroupStatus], STATUSES[gave.SegmentStatus],
            got.GroupId, got.MsgSeqNumber, got.Offset,
        )  # fmt: skip
        return message, self._told(message, warning)

    def _told(self, message: ReadMessage, warning: str) -> StepOutcome:
        got = message.descriptor
        facts = {
            "group": (message.group_status, message.group_id),
            "segment": message.segment_status,
            "seq": got.MsgSeqNumber,
            "original-length": got.OriginalLength,
            "offset": got.Offset,
            "flags": got.MsgFlags,
            "backouts": got.BackoutCount,
            "priority": got.Priority,
            "length": message.length,
            "warning": warning,
            "feedback": FEEDBACKS.get(got.Feedback, got.Feedback),
            "id": got.MsgId,
            "correlation": got.CorrelId,
        }
        return StepOutcome("message", facts=facts, message=message)  # type: ignore[arg-type]

    def name(self, step: ScenarioStep, message: Any) -> str:
        return self._table.name_of(message)

    # --- units of work

    def _commit(self, handle: str, step: ScenarioStep) -> StepOutcome:
        _check(*verbs.mqcmit(self._connection))
        return StepOutcome("ok")

    def _backout(self, handle: str, step: ScenarioStep) -> StepOutcome:
        _check(*verbs.mqback(self._connection))
        return StepOutcome("ok")

    def _disconnect(self, handle: str, step: ScenarioStep) -> StepOutcome:
        _check(*verbs.mqdisc(self._connection))
        return StepOutcome("ok")


def _without_headers(format_: bytes, data: bytes) -> bytes:
    """The body after the header of a transmission queue or of a dead letter."""
    while format_ in (mq.MQFMT_XMIT_Q_HEADER, mq.MQFMT_DEAD_LETTER_HEADER):
        if format_ == mq.MQFMT_XMIT_Q_HEADER:
            format_, data = MD.read(XQH.read(data).MsgDesc).Format, data[XQH.size() :]
        else:
            format_, data = DLH.read(data).Format, data[DLH.size() :]
    return data


def _check(completion: int, reason: int) -> str:
    """The warning of a call as a table writes it. Raises MqiError if the call failed."""
    if completion == mq.MQCC_FAILED:
        raise MqiError(reason)
    return str(reason) if completion == mq.MQCC_WARNING else "no"


@functools.cache
def _reason_name(reason: int) -> str:
    return Reason(reason).name if reason in Reason._value2member_map_ else str(reason)


def connect(scenario: Scenario, site: Site, name: str) -> MqiActor:
    """An actor of this name, at this queue manager."""
    manager = site.operator.connect(program=name)
    connection = MqiConnection(manager, "", share=mq.MQCNO_HANDLE_SHARE_BLOCK, is_client=False)
    steps = [step for step in scenario.steps if step.manager == site.name]
    return MqiActor(add(connection), manager, site.table, steps)
